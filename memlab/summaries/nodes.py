"""Rows of nodes, whatever they summarise: turns, sessions, weeks, clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from memlab.cluster import cluster_terms
from memlab.language.sentences import sentences
from memlab.records import Node, schema
from memlab.summaries.asking import Item, evidence_of, unique
from memlab.summaries.writing import Row

NODES = pl.Schema(schema(Node))
_TOPICS = 6


def leaves(turns: pl.DataFrame) -> list[Row]:
    """Give turns as rows of what summaries stand on: each has one sentence, with what its image shows."""
    image = ("\n[image: " + pl.col("caption") + "]").fill_null("")
    text = (pl.col("text") + image).str.strip_chars()
    rows = turns.select("turn_id", "scope", "speaker", "timestamp", said=text).iter_rows()
    return [
        {"node_id": turn, "scope": scope, "speaker": speaker, "sentences": [said], "evidence": [[turn]],
         "turns": [turn], "start": time, "end": time, "level": 0}
        for turn, scope, speaker, time, said in rows
    ]  # fmt: skip


def items(rows: Sequence[Row]) -> list[Item]:
    """Give what a summary above some nodes may stand on."""
    return [
        Item(row["node_id"], text, turns, row["start"], row.get("speaker", ""), kind)
        for row in rows
        for kind in ("", "decisions", "open_questions")
        for text, turns in zip(*_column(row, kind or "sentences"), strict=True)
    ]


def _column(row: Row, name: str) -> tuple[list[str], list[list[str]]]:
    return row.get(name) or [], row.get(evidence_of(name)) or []


def above(part: Sequence[Row], written: Row, *, kind: str, method: str) -> Row:
    """Give the row of what was written of some nodes."""
    return written | {
        "scope": part[0]["scope"], "level": part[0]["level"] + 1, "kind": kind, "method": method,
        "children": [row["node_id"] for row in part], "turns": unique(turn for row in part for turn in row["turns"]),
        "start": min((row["start"] for row in part if row["start"]), default=None),
        "end": max((row["end"] for row in part if row["end"]), default=None),
    }  # fmt: skip


def framed(rows: Sequence[Row], turns: pl.DataFrame, language: str) -> pl.DataFrame:
    """Give rows as a frame of nodes, with topics."""
    lists = pl.col(pl.List(pl.String), pl.List(pl.List(pl.String)))
    nodes = with_topics(pl.DataFrame(rows, schema=NODES), turns, language)
    return nodes.with_columns(lists.fill_null([]))


def with_topics(rows: pl.DataFrame, turns: pl.DataFrame, language: str) -> pl.DataFrame:
    """Fill in topics that no model gave: phrases that set a row's turns apart from those of the scope's others.

    What an assistant says is left out, unless nobody else speaks. See :func:`memlab.cluster.cluster_terms`.

    :param rows: ``scope``, ``turns`` (ids) and ``topics``, null where they are to be found.
    """
    said = turns.select(
        "turn_id", "speaker", "role", said=pl.Series(map(sentences, turns["text"]), dtype=pl.List(pl.String))
    )
    person = pl.col("role") != "assistant"
    named = (
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
    for part in named.partition_by("scope", maintain_order=True):
        labels, speakers = part["row"].to_numpy().astype(np.int64), part["speaker"].to_list()
        terms = cluster_terms(part["said"].to_list(), labels, n_terms=_TOPICS, speakers=speakers, language=language)
        found |= dict(terms.select("label", "terms").iter_rows())
    own = pl.Series("topics", [found.get(row, []) for row in range(rows.height)], dtype=pl.List(pl.String))
    return rows.with_columns(pl.coalesce("topics", own))
