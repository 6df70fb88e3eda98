"""Rankings that another system made elsewhere: TREC runs, JSON of ids, JSON lines of texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from memlab.datasets.identity import message_turn
from memlab.embed.text import turn_texts
from memlab.errors import DataError
from memlab.memories.collecting import PROBLEMS, RETURNED, Failure, Returned, problem, read_rows
from memlab.records import RUN_SCHEMA, Dataset, Run, raw_part
from memlab.terminal import short


def read_ranking(path: str | Path, data: Dataset, *, k: int = 50) -> Returned:
    """Read what a system returned for the questions of a dataset, elsewhere.

    By the end of the name: ``.json`` holds ``{query_id: [turn ids]}``, ``.jsonl`` one ``{"query_id", "text"}`` a line,
    best first, with ``score``, ``source_ids`` and ``time`` where there are any. A message of a chat log may be called
    by its own id. A TREC run is read by
    :func:`memlab.evaluate.read_run` and comes here through :func:`as_returned`.

    :raises DataError: for a file that is none of these, and for ids that the dataset does not hold: names three.
    """
    place = Path(path)
    try:
        text = place.read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.splitlines() if line.strip()] if place.suffix == ".jsonl" else []
        ids = json.loads(text) if place.suffix == ".json" else {}
    except OSError as error:
        raise DataError(f"{place}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: no JSON ({error}); expected {{query_id: [ids]}}, or a line of JSON a text") from None
    if place.suffix == ".json":
        if not isinstance(ids, dict) or not all(isinstance(each, list) for each in ids.values()):
            raise DataError(f"{place}: expected {{query_id: [ids of turns, best first]}}")
        ranked = [
            (query, str(turn), at + 1, float(-at))
            for query, turns in ids.items()
            for at, turn in enumerate(dict.fromkeys(turns))
        ]
        run = Run(pl.DataFrame(ranked, RUN_SCHEMA, orient="row"), "turn")
        return as_returned(run.top(k), data, place.stem)
    grouped: dict[str, list[dict[str, Any]]] = {}
    for number, line in enumerate(lines, 1):
        if not isinstance(line, dict) or not isinstance(line.get("query_id"), str):
            raise DataError(f"{place}: line {number}: expected an object with query_id and text")
        grouped.setdefault(line.pop("query_id"), []).append(line)
    scopes = dict(data.questions.select("query_id", "scope").iter_rows())
    _known(place.stem, [*grouped], [*scopes], "question")
    members = dict(data.turns.group_by("scope").agg("turn_id").iter_rows())
    rows, problems = [], []
    for query, items in grouped.items():
        try:
            read, odd = read_rows(items, _called(scopes[query], members[scopes[query]]), k)
        except Failure as error:
            raise DataError(f"{place}: query {query!r}: {error}") from None
        rows += [(query, *row) for row in read]
        problems += [problem(place.stem, scopes[query], query, text) for text in odd]
    return Returned(
        place.stem,
        pl.DataFrame(rows, schema=RETURNED, orient="row"),
        problems=pl.DataFrame(problems, schema=PROBLEMS, orient="row"),
        provenance={"file": place.name},
    )


def as_returned(run: Run, data: Dataset, name: str) -> Returned:
    """Read a ranking of turns as texts that name their turn.

    :raises DataError: when it ranks turns of another scope or dataset: names three.
    """
    asked = data.questions.select("query_id", "scope")
    texts = data.turns.select(
        doc_id="turn_id",
        own="scope",
        text=pl.Series(turn_texts(data.turns), dtype=pl.String),
        source_ids=pl.concat_list("turn_id"),
        time=pl.col("timestamp").dt.to_string("iso:strict"),
    )
    _known(name, run.frame["query_id"].unique(maintain_order=True).to_list(), asked["query_id"].to_list(), "question")
    rows = run.frame.join(asked, on="query_id", how="left", maintain_order="left")
    rows = rows.with_columns(doc_id=_turns(rows, texts["doc_id"]))
    _known(name, rows["doc_id"].unique(maintain_order=True).to_list(), texts["doc_id"].to_list(), "turn")
    rows = rows.join(texts, on="doc_id", how="left", maintain_order="left")
    strange = rows.filter(pl.col("scope") != pl.col("own"))
    if strange.height:
        query, turn, scope = strange.select("query_id", "doc_id", "scope").row(0)
        raise DataError(
            f"{name}: {turn!r} is no turn of {scope!r}, the scope of query {query!r}; scopes are never mixed"
        )
    return Returned(name, rows.select(*RETURNED), provenance=run.provenance)


def _turns(rows: pl.DataFrame, own: pl.Series) -> pl.Series:
    """Give the turn ids of a ranking that may call messages by their own ids (``scope``, ``doc_id``)."""
    strange = rows.filter(~pl.col("doc_id").is_in(own.implode())).select("scope", "doc_id").unique().rows()
    turns = {(scope, doc): message_turn(scope, doc) for scope, doc in strange if doc.strip()}
    there = set(own.filter(own.is_in([*turns.values()])))
    ids = (turns.get((scope, doc), doc) for scope, doc in rows.select("scope", "doc_id").iter_rows())
    return pl.Series([i if i in there else d for i, d in zip(ids, rows["doc_id"], strict=True)], dtype=pl.String)


def _called(scope: str, turns: list[str]) -> dict[str, str]:
    """Map what a message may be called to its turn: the message's own id, and the turn's."""
    own = {raw_part(turn.removeprefix(f"{scope}/")): turn for turn in turns}
    return own | {turn: turn for turn in turns}


def _known(name: str, ids: list[str], own: list[str], what: str) -> None:
    strange = sorted(set(ids) - set(own))
    if strange:
        examples = ", ".join(repr(short(each, 60)) for each in strange[:3])
        raise DataError(
            f"{name}: {len(strange):,} of {len(ids):,} {what}s are not the dataset's ({examples}); its ids look like "
            f"{own[0]!r}"
        )
