"""Rows of nodes: leaves from turns, layers from groups of the nodes below, whoever writes them."""

from __future__ import annotations

import hashlib

import polars as pl

from memlab.embed.text import turn_text
from memlab.records import Node, frame, schema
from memlab.rollup.summarisers import POOL, SOURCE, WRITTEN, Summariser
from memlab.summarize import split, topics

INSTEAD = " instead of "
"""Stands in ``service`` where another summariser than the one asked wrote a node; such a node is never reused."""

SCHEMA = pl.Schema(schema(Node))
# Clusters are many, and drawn small.
_TERMS, _TOPICS = 3, 6
_ABOUT = ("scope", "level", "kind", "children", "turns", "start", "end", "method")
_WROTE = ("sentences", "evidence", "service")


def sentences_of(turns: pl.DataFrame) -> pl.DataFrame:
    """Split turns into sentences; a turn that is only an image says what the image shows.

    :returns: as :func:`memlab.summarize.split`, with ``timestamp``, ``evidence`` and ``said``.
    """
    text = pl.when(pl.col("text").str.strip_chars() == "").then(pl.col("caption")).otherwise(pl.col("text"))
    return (
        split(turns.with_columns(text=text.fill_null("")))
        .join(turns.select("turn_id", "timestamp"), on="turn_id", how="left", maintain_order="left")
        .with_columns(evidence=pl.concat_list("turn_id"), said=pl.lit(True))
    )


def turn_nodes(turns: pl.DataFrame) -> pl.DataFrame:
    """Make a leaf of each turn: rows of :class:`memlab.records.Turn` in, of :class:`memlab.records.Node` out."""
    sentences = sentences_of(turns).group_by("turn_id").agg(sentences="text", evidence="evidence")
    rows = turns.with_columns(text=turn_text())
    ids = [_digest(turn, text) for turn, text in rows.select("turn_id", "text").iter_rows()]
    return rows.join(sentences, on="turn_id", how="left", maintain_order="left").pipe(
        as_nodes,
        node_id=pl.Series(ids, dtype=pl.String),
        level=pl.lit(0),
        kind=pl.lit("turn"),
        turns=pl.concat_list("turn_id"),
        start="timestamp",
        end="timestamp",
        method=pl.lit("turn"),
        service=pl.lit(SOURCE),
    )


def as_nodes(rows: pl.DataFrame, **columns: pl.Expr | pl.Series | str) -> pl.DataFrame:
    """Give rows the columns of :class:`memlab.records.Node`; lists that are missing are empty."""
    rows = rows.with_columns(**columns)
    missing = [pl.lit(None).alias(name) for name in SCHEMA if name not in rows.columns]
    empty = [pl.col(name).fill_null(pl.lit([], kind)) for name, kind in SCHEMA.items() if isinstance(kind, pl.List)]
    return rows.with_columns(missing).select(*SCHEMA).cast(SCHEMA).with_columns(empty)


def session_nodes(turns: pl.DataFrame, summariser: Summariser, *, previous: pl.DataFrame | None = None) -> pl.DataFrame:
    """Summarise each session as a leaf, in order of first appearance."""
    about = turns.group_by("session_id", maintain_order=True).agg(
        pl.col("scope").first(), turns="turn_id", start=pl.col("timestamp").min(), end=pl.col("timestamp").max()
    )
    about = about.with_columns(
        group="session_id",
        level=pl.lit(0),
        kind=pl.lit("session"),
        children=pl.lit([], pl.List(pl.String)),
        method=pl.lit("session"),
    )
    pool = sentences_of(turns).with_columns(group="session_id", kind=pl.lit("session"))
    return _written(about, pool.select(*POOL), turns, summariser, previous)


def layer_above(
    edges: pl.DataFrame,
    below: pl.DataFrame,
    turns: pl.DataFrame,
    *,
    summariser: Summariser,
    previous: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Write a node over each group of nodes, in order of the groups.

    :param edges: ``group`` and ``node_id``, in order of group, then time; ``level``, ``kind`` and ``method`` of the
        node above.
    :param below: the nodes that are grouped.
    :param previous: nodes that were made before; what did not change keeps what was written.
    """
    place = turns.select(turns="turn_id").with_row_index("place")
    nodes = edges.join(
        below.select("node_id", "scope", "start", "end", "turns"), on="node_id", how="left", maintain_order="left"
    )
    of_groups = nodes.select("group", "turns").explode("turns").unique().join(place, on="turns").sort("place")
    about = (
        nodes.group_by("group", maintain_order=True)
        .agg(
            pl.col("scope", "level", "kind", "method").first(),
            children="node_id",
            start=pl.col("start").min(),
            end=pl.col("end").max(),
        )
        .join(
            of_groups.group_by("group", maintain_order=True).agg("turns"), on="group", how="left", maintain_order="left"
        )
    )
    return _written(about, _pool(edges, below, turns), turns, summariser, previous)


def _pool(edges: pl.DataFrame, nodes: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """List the sentences of groups, those of summaries without their speaker's name; one that stands on no turn not."""
    sources = turns.select("turn_id", "session_id", "speaker", "timestamp")
    leaf = pl.col("service") == SOURCE
    named = pl.col("text").str.starts_with(pl.col("speaker") + ": ")
    return (
        edges.select("group", "kind", "node_id")
        .join(nodes.select("node_id", "scope", "service", "sentences", "evidence"), on="node_id", maintain_order="left")
        .filter(pl.col("sentences").list.len() > 0)
        .explode("sentences", "evidence")
        .filter(pl.col("evidence").list.len() > 0)
        .with_columns(turn_id=pl.col("evidence").list.first(), text="sentences")
        .join(sources, on="turn_id", how="left", maintain_order="left")
        .with_columns(
            text=pl.when(~leaf & named)
            .then(pl.col("text").str.strip_prefix(pl.col("speaker") + ": "))
            .otherwise("text"),
            # What a model wrote names whom it means.
            speaker=pl.when(leaf | named).then("speaker").otherwise(pl.lit("other")),
            position=pl.int_range(1, pl.len() + 1).over("group", "turn_id"),
            said=leaf,
        )
        .select(*POOL)
        .cast(POOL)
    )


def _written(
    about: pl.DataFrame, pool: pl.DataFrame, turns: pl.DataFrame, summariser: Summariser, previous: pl.DataFrame | None
) -> pl.DataFrame:
    """Write the nodes of groups in one call of the summariser; what ``previous`` holds is taken from there."""
    named = _named(about, pool, summariser)
    old = (frame(Node) if previous is None else previous).select("node_id", *_WROTE)
    old = old.filter(~pl.col("service").str.contains(INSTEAD, literal=True)).unique("node_id")
    wrote = named.select("group", "node_id").join(old, on="node_id").drop("node_id")
    new = pool.filter(~pl.col("group").is_in(wrote["group"].implode()))
    if new.height:
        wrote = pl.concat([wrote, summariser.write(new).select(*WRITTEN).cast(WRITTEN)])
    # Topics set groups apart: those of one change with the others, so they are never kept.
    wrote = wrote.join(_topics(about, turns), on="group", how="full", coalesce=True)
    return named.join(wrote, on="group", how="left", maintain_order="left").pipe(
        as_nodes, text=pl.col("sentences").list.join(" ").fill_null(""), service=pl.col("service").fill_null(SOURCE)
    )


def _topics(about: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Name what each group's turns are about, against the other groups of its scope: ``group``, ``topics``."""
    of_groups = about.select("group", "scope", "kind", turn_id="turns").explode("turn_id")
    sentences = sentences_of(turns).select("turn_id", "speaker", "role", "text")
    said = of_groups.join(sentences, on="turn_id", maintain_order="left")
    return topics(said, by="group", n_topics=_TERMS if "cluster" in said["kind"] else _TOPICS)


def _named(about: pl.DataFrame, pool: pl.DataFrame, summariser: Summariser) -> pl.DataFrame:
    """Give each group the id that its sentences with their days, its children and the recipe come to."""
    spoken = pool.group_by("group").agg(said=pl.struct("speaker", "text", "timestamp", "evidence"))
    rows = about.join(spoken, on="group", how="left", maintain_order="left")
    sources = rows.select("scope", "level", "kind", "children", "turns", "said").rows()
    ids = [_digest(summariser.recipe, *map(str, row)) for row in sources]
    return about.select("group", *_ABOUT).with_columns(node_id=pl.Series(ids, dtype=pl.String))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:24]
