"""What the index knows of chats with answer sheets: current facts, facts as of a date, closings, and silence."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab import datasets, indexing
from memlab.config import IndexSettings
from memlab.embed import Encoder
from memlab.errors import DataError
from memlab.evaluate.printing import to_markdown
from memlab.evaluate.sheets import Entry, Sheet, agrees, meant, mentions, names_somebody, same_words, sheets, wording
from memlab.knowledge import Resolved, active, resolve
from memlab.knowledge.calibration import wilson
from memlab.llm import Service
from memlab.records import Dataset, Fact, frame
from memlab.store import MemoryStore

MEASURES = (
    "current precision", "current recall", "as-of precision", "as-of recall", "closings precision", "closings recall",
    "silence",
)  # fmt: skip
_OUTCOMES = {
    "scope": pl.String(), "style": pl.String(), "measure": pl.String(), "hit": pl.Boolean(), "kind": pl.String(),
    "what": pl.String(), "closed": pl.Boolean(),
}  # fmt: skip
_STATED = ("scope", "id", "messages", "subject", "predicate", "object", "source", "text")
# What holds for an hour may have been noted as long as it is forgotten after a day.
_MOMENT = timedelta(days=1)


@dataclass(frozen=True)
class _Reading:
    """A chat's sheet, the facts of a memory at the end and on each date, and the message behind each turn id."""

    sheet: Sheet
    end: Resolved
    on: list[tuple[datetime, Resolved]]
    messages: dict[str, str]

    def cited(self, row: Mapping[str, Any]) -> set[str]:
        return {self.messages[turn] for turn in row["evidence"] if turn in self.messages}


def measure_folder(
    folder: str | Path,
    *,
    settings: IndexSettings | None = None,
    service: str | Service | None = None,
    encoder: Encoder | None = None,
) -> pl.DataFrame:
    """Index the chats of a folder in a store of their own, and hold what is known against their answer sheets.

    A fact that is believed counts for precision if it says what a line of the sheet says that holds (a hit); if it
    falls into a trap, says what no longer holds, contradicts or is nowhere on the sheet (a miss); neither way if it is
    a neutral line, or tells truly that something was planned, is over or was not so. Recall asks which lines that hold
    are told by such a fact. A closing is right if it ends a line that has ended, not before that was said. A trap is
    passed in silence unless a fact from its message says it (for what holds for an hour: for more than a day).

    :param service: the language model that extracts; ``None`` for rules.
    :param encoder: matches near-equal wordings when facts are resolved; ``None``: normal forms only.
    :returns: a row for each thing counted: ``scope``, ``style``, ``measure``, ``hit``, ``kind`` (of a trap; of what was
        wrong), ``what`` (in words; null where ``closed``) and ``closed``: see :func:`totals`.
    :raises DataError: when the folder has no sheets, or one is bad.
    """
    facts_alone = (settings or IndexSettings()).model_copy(update={"summaries": False})
    parts = []
    with tempfile.TemporaryDirectory(prefix="memlab-knowledge-") as place:
        store = MemoryStore.open(place)
        for sheet in sheets(folder):
            data = datasets.load(sheet.log)
            store.ingest(data)
            failed = indexing.index(store, data.name, settings=facts_alone, service=service).filter(kind="failed")
            if failed.height:
                raise DataError(
                    f"{failed.height} sessions of {data.name} were not indexed ({failed['reason'][0]}), so nothing is "
                    "measured; see that the service answers, and run it again"
                )
            known = partial(indexing.resolved, store, data.name, scopes=[sheet.scope], encoder=encoder)
            parts.append(measure_chat(sheet, data, known))
    return pl.concat(parts)


def measure_chat(sheet: Sheet, data: Dataset, known: Callable[..., Resolved]) -> pl.DataFrame:
    """Hold what is known of one chat against its sheet; rows as of :func:`measure_folder`.

    :param data: the chat as it was read: the turns that evidence names.
    :param known: gives the resolved facts; called with ``as_of``, a date or ``None``.

    >>> from functools import partial
    >>> import memlab
    >>> from memlab.evaluate.knowledge import frozen, measure_chat, stated, totals
    >>> from memlab.evaluate.sheets import sheets
    >>> from memlab.knowledge import resolve
    >>> sheet = sheets("data/facts/dev")[0]
    >>> data = memlab.datasets.load(sheet.log)
    >>> known = partial(resolve, frozen(stated("data/facts/frozen.jsonl"), sheet, data))
    >>> totals(measure_chat(sheet, data, known)).filter(measure="silence")["n"].item()
    46
    """
    # By time and text, since a turn's id is opaque.
    ids = {(sheet.times[key], text): key for key, text in sheet.texts.items()}
    said = data.turns.select("turn_id", "timestamp", "text").iter_rows()
    messages = {turn: ids[when, text] for turn, when, text in said if (when, text) in ids}
    on = [(day, known(as_of=day)) for day in sheet.dates]
    reading = _Reading(sheet, known(as_of=None), on, messages)
    rows = [
        (sheet.scope, sheet.style, measure, hit, kind, None if sheet.closed else what, sheet.closed)
        for measure, hit, kind, what in [*_facts(reading), *_closings(reading), *_silence(reading)]
    ]
    return pl.DataFrame(rows, schema=_OUTCOMES, orient="row")


def measure_frozen(folder: str | Path, file: str | Path, *, encoder: Encoder | None = None) -> pl.DataFrame:
    """Resolve facts that stand in a file, and hold them against the answer sheets of a folder: no model is asked.

    :param file: JSON lines as in ``data/facts/frozen.jsonl``; see ``data/README.md``.
    :param encoder: matches near-equal wordings when facts are resolved.
    :returns: rows as of :func:`measure_folder`.
    :raises DataError: when the folder has no sheets, or the file or a line of it cannot be read.
    """
    parts, rows = [], stated(file)
    for sheet in sheets(folder):
        data = datasets.load(sheet.log)
        facts = frozen(rows, sheet, data)
        parts.append(measure_chat(sheet, data, partial(resolve, facts, encoder=encoder)))
    return pl.concat(parts)


def stated(file: str | Path) -> list[dict[str, Any]]:
    """Read a file of stated facts and endings, as JSON lines.

    :raises DataError: for a file that cannot be read, or a line that is no statement.
    """
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file} cannot be read ({error}); name a file of facts such as frozen.jsonl") from None
    rows = []
    for n, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
            missing = [key for key in _STATED if key not in rows[-1]]
        except (ValueError, TypeError) as error:
            raise DataError(f"{file}, line {n}: no JSON object ({error})") from None
        if missing:
            raise DataError(f"{file}, line {n}: {missing[0]!r} is missing; a statement has {', '.join(_STATED)}")
    return rows


def frozen(stated: list[dict[str, Any]], sheet: Sheet, data: Dataset) -> pl.DataFrame:
    """Give the facts of one chat, of what :func:`stated` read: rows of :class:`memlab.records.Fact`.

    :raises DataError: for a message that the chat does not have.
    """
    turns = {(row["timestamp"], row["text"]): row for row in data.turns.iter_rows(named=True)}
    facts: dict[str, Fact] = {}
    for row in stated:
        if row["scope"] == sheet.scope:
            if not row["messages"] or not set(row["messages"]) <= sheet.texts.keys():
                raise DataError(f"fact {row['id']!r} of {sheet.scope!r} names messages that are not there")
            said = [turns[sheet.times[message], sheet.texts[message]] for message in row["messages"]]
            value = f"not {row['corrects']} but {row['object']}" if row.get("corrects") else row["object"]
            fact = Fact(
                f"{said[0]['turn_id']}/{row['id']}", said[0]["scope"], row["subject"], row["predicate"], value,
                row["source"], [turn["turn_id"] for turn in said], said[0]["timestamp"], None, said[0]["speaker"],
                row["text"], said[0]["session_id"],
            )  # fmt: skip
            facts.setdefault(fact.fact_id, fact)
    return frame(Fact, facts.values())


def totals(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Put shares with Wilson's 95 % intervals beside each measure, in its order.

    :param outcomes: of :func:`measure_folder`.
    :returns: ``measure``, ``n``, ``share``, ``low`` and ``high`` (null where ``n`` is 0).
    """
    table = outcomes.group_by("measure").agg(n=pl.len().cast(pl.Int64), hits=pl.col("hit").sum())
    table = pl.DataFrame({"measure": MEASURES}).join(table, on="measure", how="left", maintain_order="left")
    table = table.with_columns(pl.col("n", "hits").fill_null(0))
    n = table["n"].to_numpy()
    low, high = wilson(table["hits"].to_numpy(), np.maximum(n, 1), confidence=0.95)
    some = pl.col("n") > 0
    return table.with_columns(
        share=pl.when(some).then(pl.col("hits") / pl.col("n")),
        low=pl.when(some).then(pl.Series(low)),
        high=pl.when(some).then(pl.Series(high)),
    ).drop("hits")


def written(outcomes: pl.DataFrame, *, errors: int = 20) -> str:
    """Write totals down; of what is not ``closed`` also shares by style and by kind of trap, and what was wrong."""
    whole = totals(outcomes)
    interval = pl.format("{} – {}", *(pl.col(end).round(3) for end in ("low", "high")))
    parts = [to_markdown(whole.select("measure", "n", "share", interval.alias("95 %")))]
    free = outcomes.filter(~pl.col("closed"))
    if free.height:
        traps = free.filter(measure="silence")
        parts += [_crossed(free, "style"), _crossed(traps.rename({"kind": "trap"}), "trap")]
    for measure in MEASURES if errors else ():
        wrong = free.filter(~pl.col("hit"), measure=measure)
        if wrong.height:
            lines = [f"- {kind}: {scope}: {what}" for kind, scope, what in wrong["kind", "scope", "what"].iter_rows()]
            head = f"{measure}: {wrong.height} errors" + ("" if wrong.height <= errors else f", the first {errors}")
            parts.append("\n".join([head, *lines[:errors]]))
    return "\n\n".join(parts)


def _crossed(outcomes: pl.DataFrame, by: str) -> str:
    cell = pl.format("{} of {}", pl.col("hit").sum(), pl.len()).alias("cell")
    table = outcomes.group_by(by, "measure").agg(cell).pivot("measure", index=by, values="cell").fill_null("–")
    return to_markdown(table.select(by, *(m for m in MEASURES if m in table.columns)).sort(by))


_Row = tuple[str, bool, str | None, str]


def _facts(reading: _Reading) -> list[_Row]:
    rows: list[_Row] = []
    for name, when, resolved in [("current", None, reading.end), *(("as-of", *pair) for pair in reading.on)]:
        heard: set[str] = set()
        for row in active(resolved, as_of=when).iter_rows(named=True):
            verdict, lines = _verdict(row, reading, when)
            heard |= {entry.group for entry in lines if verdict == "right"}
            if verdict != "neutral":
                rows.append((f"{name} precision", verdict == "right", verdict, _sentence(row)))
        holding = [e for e in reading.sheet.of("fact") if reading.sheet.holds(e, when) and not _dropped(e, when)]
        asked = {e.group: e for e in sorted(holding, key=lambda e: e.same is None)}
        rows += [(f"{name} recall", group in heard, entry.mode, _line(entry)) for group, entry in asked.items()]
    return rows


def _dropped(entry: Entry, when: datetime | None) -> bool:
    """Whether it need not be known: what was over before it was told, and on a date what was only said by mistake."""
    return entry.mode == "was" or (when is not None and entry.corrected)


def _verdict(row: Mapping[str, Any], reading: _Reading, when: datetime | None) -> tuple[str, list[Entry]]:
    """Say what a believed fact is by the sheet: right (by which lines), trap, stale, wrong, unlisted or neutral."""
    sheet, cited = reading.sheet, reading.cited(row)
    facts = [entry for entry in sheet.of("fact") if same_words(row, entry) and sheet.said(entry, when)]
    told = [entry for entry in facts if agrees(row, entry)]
    holding = [entry for entry in told if sheet.holds(entry, when)]
    # "Chemistry at the old school": what holds does not excuse what does not.
    current = frozenset[str]().union(*(wording(row, entry) for entry in holding))
    if any(not wording(row, entry) <= current for entry in told if entry not in holding):
        return "stale", []
    if holding:
        return ("neutral" if all(_dropped(entry, when) for entry in holding) else "right"), holding
    traps = [entry for entry in sheet.of("trap") if _from(cited, entry) and same_words(row, entry)]
    if any(agrees(row, entry) for entry in traps):
        return "trap", []
    denied = any(meant(row, entry) == "not" for entry in facts)
    if denied and all(entry.mode == "is" and sheet.holds(entry, when) for entry in facts):
        return "wrong", []
    near = any(_from(cited, entry) and mentions(row, entry) for entry in sheet.of("neutral"))
    return ("neutral" if traps or facts or near or names_somebody(row, sheet) else "unlisted"), []


def _from(cited: set[str], entry: Entry) -> bool:
    return not cited or entry.since in cited


def _closings(reading: _Reading) -> list[_Row]:
    sheet = reading.sheet
    facts = {row["fact_id"]: row for row in reading.end.facts.iter_rows(named=True)}
    ended = [entry for entry in sheet.of("fact") if entry.until]
    rows: list[_Row] = []
    heard: set[str] = set()
    for log in reading.end.log.iter_rows(named=True):
        row = facts[log["old"]]
        over = [e for e in ended if agrees(row, e) and log["at"] >= sheet.times[str(e.until)] - _MOMENT]
        # A correction takes effect from when the wrong value was said.
        over += [e for e in ended if e.corrected and e not in over and agrees(row, e)]
        what = f"{_sentence(row)} <- {_sentence(facts[log['new']])}" if log["new"] in facts else _sentence(row)
        heard |= {entry.group for entry in over}
        verdict, _ = _verdict(row, reading, None)
        if over or verdict not in ("neutral", "trap"):
            rows.append(("closings precision", bool(over), None if over else verdict, what))
    asked = {entry.group: entry for entry in sorted(ended, key=lambda entry: entry.same is None)}
    return rows + [("closings recall", group in heard, entry.mode, _line(entry)) for group, entry in asked.items()]


def _silence(reading: _Reading) -> list[_Row]:
    claimed = reading.end.facts.filter(pl.col("status").is_in(["active", "superseded", "ended", "repeat"]))
    facts = claimed.to_dicts()
    return [
        ("silence", not broken, trap.trap, f"{_line(trap)} <- {_sentence(broken[0])}" if broken else _line(trap))
        for trap in reading.sheet.of("trap")
        for broken in [[f for f in facts if _from(reading.cited(f), trap) and _lasts(f, trap) and agrees(f, trap)]]
    ]


def _lasts(row: Mapping[str, Any], trap: Entry) -> bool:
    if trap.trap != "moment" or row["valid_to"] is None or row["valid_from"] is None:
        return True
    return bool(row["valid_to"] - row["valid_from"] > _MOMENT)


def _sentence(row: Mapping[str, Any]) -> str:
    return f"{row['subject']} | {row['predicate']} | {row['object']}"


def _line(entry: Entry) -> str:
    way = "" if entry.mode == "is" else f" ({entry.mode})"
    return f"{entry.id}: {entry.subject}, {entry.about[0] if entry.about else ''}{way}: {entry.value[0]}"
