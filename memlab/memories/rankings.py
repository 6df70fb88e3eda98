"""Rankings that another system made elsewhere, read as what a memory returned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.memories.collecting import (
    PROBLEMS_SCHEMA,
    RETURNED_SCHEMA,
    ReturnedTexts,
    known_turns,
    problem_row,
)
from memlab.memories.returned_rows import KnownTurn, list_returned_rows, select_usable_rows
from memlab.records import Dataset, Run, decode_id_part
from memlab.terminal import count_noun, shorten_line


def read_ranking(path: str | Path, data: Dataset, *, k: int = 50) -> ReturnedTexts:
    """Read what a system returned for the questions of a dataset, elsewhere.

    By the end of the name: ``.json`` holds ``{query_id: [turn ids]}``, best first, or
    ``{query_id: {turn id: score}}``; ``.jsonl`` one ``{"query_id", "text"}`` a line, best first,
    with ``score``, ``source_ids`` and ``time`` where there are any. A message of a chat log may be
    called by its own id. A TREC run is read by :func:`memlab.evaluate.read_run` and comes here
    through :func:`run_to_returned_texts`. What cannot be used of it is left out, with a line in
    ``problems``.

    :raises DataError: for a file that is none of these, and one of which nothing can be used: names
        three of its ids.
    """
    place = Path(path)
    odd = list[str]()
    try:
        text = place.read_text(encoding="utf-8-sig")
        read = _read_lines if place.suffix == ".jsonl" else _read_object
        asked = read(text, odd)
    except OSError as error:
        raise DataError(f"{place}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise DataError(
            f"{place}: {shorten_line(error)}; expected JSON, {{query_id: [ids of turns, best "
            "first]}, or in .jsonl a line of JSON with query_id and text for each text"
        ) from None
    return _make_returned_texts(place.stem, asked, odd, data, {"file": place.name}, k=k)


def _read_lines(text: str, odd: list[str]) -> dict[str, list[Any]]:
    """Read a row a line, by its question.

    :param odd: gets a line for each that cannot be read.
    """
    asked = dict[str, list[Any]]()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            asked.setdefault(row["query_id"] + "", []).append(row)
        except (ValueError, RecursionError, TypeError, KeyError):
            odd.append(f"line {number}: no JSON with query_id and text, left out")
    return asked


def _read_object(text: str, odd: list[str]) -> dict[str, list[Any]]:
    """Read ids of turns by question: a list, best first, or each with its score."""
    asked = dict[str, list[Any]]()
    for query, ids in json.loads(text).items():
        if not isinstance(ids, dict):
            asked[query] = [{"source_ids": turn, "score": -at} for at, turn in enumerate(ids)]
            continue
        rows = [{"source_ids": turn, "score": score} for turn, score in ids.items()]
        asked[query] = sorted(rows, key=_falling_score)
    return asked


def _falling_score(row: dict[str, Any]) -> Any:
    return -row["score"]


def run_to_returned_texts(run: Run, data: Dataset, name: str) -> ReturnedTexts:
    """Read a ranking of turns as texts that name their turn, like :func:`read_ranking`."""
    asked: dict[str, list[Any]] = {}
    for query, turn, score in run.frame.select("query_id", "doc_id", "score").iter_rows():
        asked.setdefault(query, []).append({"source_ids": turn, "score": score})
    return _make_returned_texts(name, asked, [], data, run.provenance, k=max(1, run.frame.height))


def _make_returned_texts(
    name: str,
    asked: Mapping[str, list[Any]],
    odd: list[str],
    data: Dataset,
    provenance: Mapping[str, Any],
    *,
    k: int,
) -> ReturnedTexts:
    """Take what is of the dataset's questions and of the turns of their scopes.

    :param odd: what was wrong so far.
    """
    scopes = dict(data.questions.select("query_id", "scope").iter_rows())
    known = _turns_by_their_names(data)
    strange = [query for query in asked if query not in scopes]
    if strange:
        shown = ", ".join(repr(shorten_line(query, 60)) for query in strange[:3])
        count = f"{len(strange):,} of {count_noun(len(asked), 'questions')}"
        verb = "is" if len(strange) == 1 else "are"
        odd = [*odd, f"{count} {verb} not the dataset's ({shown}), left out"]
    problems = [problem_row(name, "", "", line) for line in odd]
    rows = list[tuple[Any, ...]]()
    for query, given in asked.items():
        if query not in scopes:
            continue
        scope = scopes[query]
        read, lines = select_usable_rows(list_returned_rows(given[:k], k), known.get(scope, {}), k)
        rows += [(query, *row) for row in read]
        problems += [problem_row(name, scope, query, line) for line in lines]
    if problems and not rows:
        question = next(iter(scopes), None)
        turn = data.turns["turn_id"].first()
        raise DataError(
            f"nothing is of {data.name!r}: {problems[0][2]}; its questions look like "
            f"{question!r}, its turns like {turn!r}"
        )
    frame = pl.DataFrame(rows, schema=RETURNED_SCHEMA, orient="row")
    return ReturnedTexts(
        name,
        frame,
        problems=pl.DataFrame(problems, PROBLEMS_SCHEMA, orient="row"),
        provenance=provenance,
    )


def _turns_by_their_names(data: Dataset) -> dict[str, dict[str, KnownTurn]]:
    """Give the turns of each scope by what a file may call them: their ids, and a chat log's."""
    turns = known_turns(data.turns)
    known = dict[str, dict[str, KnownTurn]]()
    for scope, ids in data.turns.group_by("scope").agg("turn_id").iter_rows():
        own = {decode_id_part(turn.removeprefix(f"{scope}/")): turns[turn] for turn in ids}
        known[scope] = own | {turn: turns[turn] for turn in ids}
    return known
