"""Hold what the rules read against chats with marked facts: `scripts/marked.py [FOLDER] [--errors PREDICATE]`.

How the chats of `data/facts/marked` are marked stands in `data/README.md`. A statement is right if its message is
marked with words of its value in the same manner (is, not, plan, was); a marked fact is found if a right one says it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import polars as pl

from memlab.knowledge.extraction import by_rule
from memlab.language.manner import bases, manner
from memlab.records import Turn, frame

START = datetime(2026, 1, 1, tzinfo=UTC)
MEANT = {"is": {"is"}, "plan": {"plan", "is"}, "ended": {"not", "was"}, "not": {"not"}, "was": {"was", "not"}}


class Mark(NamedTuple):
    """A fact that a message tells: who, relation, value and mode."""

    who: str
    relation: str
    value: str
    mode: str


def marked(file: Path) -> Iterator[tuple[Turn, list[Mark]]]:
    """Read the messages of a file, each with what is marked of it: lists that are whole when the file is read."""
    chat = session = at = 0
    marks: list[Mark] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            chat, session, at = chat + 1, 0, 0
        elif not line.strip():
            session += 1
        elif line.startswith("="):
            marks.append(Mark(*(part.strip() for part in line[1:].split("|"))))
        elif said := re.match(r"([^:]{1,30}): ?(.*)$", line):
            scope, at = f"{file.stem}-{chat}", at + 1
            when = START + timedelta(days=7 * session, minutes=at)
            role = "assistant" if said[1] == "assistant" else "user"
            marks = []
            yield Turn(f"{scope}/{at}", scope, f"{scope}/{session}", at, said[1], role, said[2], None, when), marks


def judged(folder: Path) -> tuple[pl.DataFrame, int, int]:
    """Read all messages; give each statement with whether it is right, how many facts are marked, and how many told."""
    told = [pair for file in sorted(folder.glob("*.txt")) for pair in marked(file)]
    marks = {turn.turn_id: of for turn, of in told}
    facts = by_rule(frame(Turn, [turn for turn, _ in told])).facts.filter(pl.col("subject") != "it")
    rows, heard = [], set()
    for fact in facts.iter_rows(named=True):
        words, meant = set(bases(fact["object"])), manner(fact["predicate"], fact["object"])
        right = {
            (turn, mark)
            for turn in fact["evidence"]
            for mark in marks[turn]
            if words & set(bases(mark.value)) and meant in MEANT[mark.mode]
        }
        heard |= right
        rows.append((fact["predicate"], bool(right), f"{fact['subject']} | {fact['object']}", fact["text"]))
    columns = {"predicate": pl.String, "right": pl.Boolean, "what": pl.String, "text": pl.String}
    return pl.DataFrame(rows, schema=columns, orient="row"), sum(map(len, marks.values())), len(heard)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("data/facts/marked"))
    parser.add_argument("--errors", help="print what is not right of this predicate")
    chosen = parser.parse_args()
    rows, wanted, heard = judged(chosen.folder)
    print(f"{rows['right'].sum()} of {rows.height} statements are right; {heard} of {wanted} marked facts are told")
    if chosen.errors:
        for what, text in rows.filter(~pl.col("right"), predicate=chosen.errors)["what", "text"].iter_rows():
            print(f"{what}  <- {text}")
        return
    table = rows.group_by("predicate").agg(n=pl.len(), right=pl.col("right").mean()).sort("n", descending=True)
    with pl.Config(tbl_rows=40, float_precision=2):
        print(table.head(40))


if __name__ == "__main__":
    main()
