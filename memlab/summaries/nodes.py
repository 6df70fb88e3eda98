"""Rows of nodes, whatever they summarise: turns, sessions, weeks, clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab.cluster import cluster_terms
from memlab.language.sentences import sentences
from memlab.records import Node, schema
from memlab.summaries.asking import Item

NODES = pl.Schema(schema(Node))
Row = dict[str, Any]
EMPTY: Row = {name: [] for name, kind in NODES.items() if isinstance(kind, pl.List)}
_LISTS = {"": ("sentences", "evidence"), "decisions": ("decisions", "decision_evidence"),
          "open_questions": ("open_questions", "open_question_evidence")}  # fmt: skip
_TOPICS = 6


def leaves(turns: pl.DataFrame) -> list[Row]:
    """Give turns as rows of what summaries stand on: each has one sentence, with what its image shows."""
    image = ("\n[image: " + pl.col("caption") + "]").fill_null("")
    said = turns.select(
        "turn_id", "scope", "session_id", "speaker", (pl.col("text") + image).str.strip_chars(), "timestamp"
    )
    return [
        {**EMPTY, "node_id": turn, "scope": scope, "session": session, "speaker": speaker, "sentences": [text],
         "evidence": [[turn]], "turns": [turn], "start": time, "end": time, "level": 0}
        for turn, scope, session, speaker, text, time in said.iter_rows()
    ]  # fmt: skip


def items(rows: Sequence[Row]) -> list[Item]:
    """Give what a summary above some nodes may stand on."""
    return [
        Item(row["node_id"], text, tuple(turns), row["start"], row.get("speaker", ""), kind)
        for row in rows
        for kind, (texts, evidence) in _LISTS.items()
        for text, turns in zip(row[texts], row[evidence], strict=True)
    ]


def above(part: Sequence[Row], written: Row, *, kind: str, method: str) -> Row:
    """Give the row of what was written of some nodes."""
    about = {
        "scope": part[0]["scope"], "level": part[0]["level"] + 1, "kind": kind, "method": method, "parent": None,
        "children": [row["node_id"] for row in part],
        "turns": list(dict.fromkeys(turn for row in part for turn in row["turns"])),
        "start": min((row["start"] for row in part if row["start"]), default=None),
        "end": max((row["end"] for row in part if row["end"]), default=None),
    }  # fmt: skip
    return {**EMPTY, **written, **about}


def with_topics(rows: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Fill in topics that no model gave: noun phrases that set a row's turns apart from those of the scope's others.

    What an assistant says is left out, unless nobody else speaks. See :func:`memlab.cluster.cluster_terms`.

    :param rows: ``scope``, ``turns`` (ids) and ``topics``, null where they are to be found.
    """
    said = turns.select(
        "turn_id", "speaker", "role", said=pl.Series(map(sentences, turns["text"]), dtype=pl.List(pl.String))
    )
    person = pl.col("role") != "assistant"
    told = (
        rows.with_row_index("row")
        .filter(pl.col("topics").is_null().any().over("scope"))
        .select("row", "scope", turn_id="turns")
        .explode("turn_id")
        .join(said, on="turn_id", maintain_order="left")
        .filter(person | ~person.any().over("row"))
        .explode("said")
        .drop_nulls("said")
    )
    found = dict[int, list[str]]()
    for part in told.partition_by("scope", maintain_order=True):
        labels = part["row"].to_numpy().astype(np.int64)
        named = cluster_terms(part["said"].to_list(), labels, n_terms=_TOPICS, speakers=part["speaker"].to_list())
        found |= dict(named.select("label", "terms").iter_rows())
    own = pl.Series("topics", [found.get(row, []) for row in range(rows.height)], dtype=pl.List(pl.String))
    return rows.with_columns(pl.coalesce("topics", own))
