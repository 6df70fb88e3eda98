"""Rows of nodes: leaves from turns, parents from groups of nodes, whoever writes them."""

from __future__ import annotations

import hashlib

import polars as pl

from memlab.cluster import cluster_terms
from memlab.embed.text import turn_texts
from memlab.records import Node, schema
from memlab.rollup.summarisers import POOL, SOURCE, WRITTEN, Summariser
from memlab.summarize import split, topics

INSTEAD = " instead of "
"""Stands in ``service`` where another summariser than the one asked wrote a node; such a node is never reused."""

SCHEMA = schema(Node)
_TERMS = 3
_ABOUT = ("scope", "level", "kind", "children", "turns", "start", "end", "method")


def sentences_of(turns: pl.DataFrame) -> pl.DataFrame:
    """Split turns into sentences; a turn that is only an image says what the image shows.

    :param turns: rows of :class:`memlab.records.Turn`.
    :returns: as :func:`memlab.summarize.split`, with ``timestamp``, ``evidence`` and ``said``.
    """
    spoken = pl.when(pl.col("text").str.strip_chars() == "").then(pl.col("caption")).otherwise(pl.col("text"))
    times = turns.select("turn_id", "timestamp")
    return (
        split(turns.with_columns(text=spoken.fill_null("")))
        .join(times, on="turn_id", how="left", maintain_order="left")
        .with_columns(evidence=pl.concat_list("turn_id"), said=pl.lit(True))
    )


def turn_nodes(turns: pl.DataFrame) -> pl.DataFrame:
    """Make a leaf of each turn.

    :param turns: rows of :class:`memlab.records.Turn`.
    """
    sentences = sentences_of(turns).group_by("turn_id").agg(sentences="text", evidence="evidence")
    own = pl.concat_list("turn_id")
    return (
        turns.with_columns(text=pl.Series(turn_texts(turns), dtype=pl.String))
        .join(sentences, on="turn_id", how="left", maintain_order="left")
        .with_columns(
            node_id=pl.struct("turn_id", "text").map_elements(
                lambda row: _digest(row["turn_id"], row["text"]), return_dtype=pl.String
            ),
            level=pl.lit(0),
            kind=pl.lit("turn"),
            turns=own,
            start="timestamp",
            end="timestamp",
            method=pl.lit("turn"),
            service=pl.lit(SOURCE),
        )
        .pipe(as_nodes)
    )


def as_nodes(rows: pl.DataFrame) -> pl.DataFrame:
    """Give rows the columns of :class:`memlab.records.Node`; lists that are missing are empty."""
    missing = [pl.lit(None, kind).alias(name) for name, kind in SCHEMA.items() if name not in rows.columns]
    empty = [pl.col(name).fill_null(pl.lit([], kind)) for name, kind in SCHEMA.items() if isinstance(kind, pl.List)]
    cast = [pl.col(name).cast(kind) for name, kind in SCHEMA.items()]
    return rows.with_columns(missing).select(cast).with_columns(empty)


def pool_of_nodes(edges: pl.DataFrame, nodes: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """List the sentences of groups of nodes.

    A sentence that begins with its speaker's name is given without it, as one of the conversation. One that stands on
    no turn is left out.

    :param edges: ``group``, ``kind`` and ``node_id``, in order of group, then time.
    :param turns: rows of :class:`memlab.records.Turn`.
    :returns: as :data:`memlab.rollup.summarisers.POOL`.
    """
    sources = turns.select("turn_id", "session_id", "speaker", "timestamp")
    named = pl.col("speaker") + ": "
    leaf = pl.col("service") == SOURCE
    return (
        edges.select("group", "kind", "node_id")
        .join(nodes.select("node_id", "scope", "service", "sentences", "evidence"), on="node_id", maintain_order="left")
        .filter(pl.col("sentences").list.len() > 0)
        .explode("sentences", "evidence")
        .filter(pl.col("evidence").list.len() > 0)
        .with_columns(turn_id=pl.col("evidence").list.first(), text="sentences")
        .join(sources, on="turn_id", how="left", maintain_order="left")
        .with_columns(
            text=pl.when(~leaf & pl.col("text").str.starts_with(named))
            .then(pl.col("text").str.strip_prefix(named))
            .otherwise("text"),
            # What a model wrote names whom it means.
            speaker=pl.when(leaf | pl.col("text").str.starts_with(named)).then("speaker").otherwise(pl.lit("other")),
            position=pl.int_range(1, pl.len() + 1).over("group", "turn_id"),
            said=leaf,
        )
        .select(pl.col(name).cast(kind) for name, kind in POOL.items())
    )


def parents(
    about: pl.DataFrame, pool: pl.DataFrame, *, summariser: Summariser, previous: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Write the nodes of groups, in one call of the summariser; what ``previous`` holds already is taken from there.

    :param about: a row for each group: ``group``, and ``scope``, ``level``, ``kind``, ``children``, ``turns``,
        ``start``, ``end`` and ``method`` of its node.
    :param pool: their sentences, see :data:`memlab.rollup.summarisers.POOL`.
    :param previous: nodes that were made before.
    :returns: rows of :class:`memlab.records.Node`, in the order of ``about``.
    """
    named = _named(about, pool, summariser)
    kept = named.select("group", "node_id").head(0).with_columns(pl.lit(None, SCHEMA[n]).alias(n) for n in _WROTE)
    if previous is not None:
        reused = previous.filter(~pl.col("service").str.contains(INSTEAD, literal=True)).unique("node_id")
        kept = named.select("group", "node_id").join(reused.select("node_id", *_WROTE), on="node_id")
    new = pool.filter(~pl.col("group").is_in(kept["group"].implode()))
    written = kept.head(0).drop("node_id")
    if new.height:
        group_topics = _topics(new)
        made = summariser.write(new).select(pl.col(name).cast(kind) for name, kind in WRITTEN.items())
        written = made.join(group_topics, on="group", how="left").select("group", *_WROTE)
    wrote = pl.concat([kept.drop("node_id"), written])
    return (
        named.join(wrote, on="group", how="left", maintain_order="left")
        .with_columns(
            text=pl.col("sentences").list.join(" ").fill_null(""), service=pl.col("service").fill_null(SOURCE)
        )
        .pipe(as_nodes)
    )


_WROTE = ("sentences", "evidence", "service", "topics")


def _topics(pool: pl.DataFrame) -> pl.DataFrame:
    """Name what each group is about: ``group``, ``topics``."""
    if pool["kind"][0] != "cluster":
        return topics(pool.with_columns(scope=pl.col("group")), by="group")
    # Clusters are many, and what sets them apart within their scope is what they are called.
    parts = []
    for (_,), rows in pool.group_by("scope", maintain_order=True):
        groups = rows["group"].unique(maintain_order=True)
        labels = rows["group"].replace_strict(groups, range(len(groups)), return_dtype=pl.Int64).to_numpy()
        terms = cluster_terms(rows["text"].to_list(), labels, n_terms=_TERMS)["terms"]
        parts.append(pl.DataFrame({"group": groups, "topics": terms}))
    return pl.concat(parts)


def _named(about: pl.DataFrame, pool: pl.DataFrame, summariser: Summariser) -> pl.DataFrame:
    """Give each group the id that its sentences with their days, its children and the recipe come to."""
    spoken = pool.group_by("group").agg(said=pl.struct("speaker", "text", "timestamp", "evidence"))
    rows = about.join(spoken, on="group", how="left", maintain_order="left")
    sources = rows.select("scope", "level", "kind", "children", "turns", "said").rows()
    ids = [_digest(summariser.recipe, *map(str, row)) for row in sources]
    return about.select("group", *_ABOUT).with_columns(node_id=pl.Series(ids, dtype=pl.String))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:24]
