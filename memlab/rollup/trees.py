"""A tree over the turns or sessions of each scope: group what is alike, summarise, embed, and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from memlab.cluster.mixture import mixture_memberships
from memlab.embed import Encoder, load
from memlab.embed.text import turn_texts
from memlab.errors import DataError
from memlab.records import Node, frame
from memlab.rollup.nodes import parents, pool_of_nodes, sentences_of, turn_nodes
from memlab.rollup.summarisers import POOL, Extractive, Summariser

LEAVES = ("turns", "sessions")

# Nodes that one look takes in: no layer is put on so few.
FEW = 8
LAYERS = 5
_CHUNK = 5


@dataclass(frozen=True)
class Tree:
    """Nodes and their vectors.

    :param nodes: rows of :class:`memlab.records.Node`: leaves first, then layer by layer; in each by scope and time.
    :param vectors: (n, d) float32 unit rows.
    """

    nodes: pl.DataFrame
    vectors: np.ndarray


def grow(
    turns: pl.DataFrame,
    *,
    encoder: Encoder | str = "minilm",
    vectors: np.ndarray | None = None,
    leaves: str = "turns",
    summariser: Summariser | None = None,
    reduce: str = "umap",
    seed: int = 0,
) -> Tree:
    """Build a tree for each scope: group the nodes of a layer by their vectors, summarise each group, embed it, repeat.

    A scope is done when a layer has at most eight nodes, or after five layers. A layer has at most half as many nodes
    as the one below; where the mixture finds more groups than that, or only one, neighbours in time are put together
    five by five instead. So it ends for any input. A node may stand below several parents (``children``); ``parent``
    is the one it belongs to most, and these parents alone form a forest over all leaves.

    :param turns: rows of :class:`memlab.records.Turn`, in order of scope, session and place.
    :param encoder: embeds the texts of nodes: an encoder or its name.
    :param vectors: (n, d) unit rows of the leaves, where these are known already.
    :param leaves: ``turns``, or ``sessions``, which are summarised first.
    :param summariser: what writes the nodes; ``None`` for :class:`memlab.rollup.Extractive`.
    :param reduce: ``umap`` or ``pca``; see :func:`memlab.cluster.mixture.mixture_memberships`.
    :param seed: of the grouping.
    :raises DataError: for other leaves, or vectors that do not fit them.

    Source: Sarthi et al., "RAPTOR", ICLR 2024, section 3.

    >>> import memlab
    >>> from memlab.rollup import grow
    >>> turns = memlab.datasets.synthetic.generate(turns=60, seed=0).turns
    >>> nodes = grow(turns, encoder="hashing:64", reduce="pca").nodes
    >>> nodes.filter(kind="turn").height, nodes.filter(kind="cluster").height > 0
    (60, True)
    """
    writer = summariser or Extractive()
    embedder = load(encoder)
    below = _leaves(turns, leaves, writer)
    known = np.asarray(embedder.encode(_texts(below, turns))) if vectors is None else vectors
    if len(known) != below.height:
        raise DataError(f"there are {len(known):,} vectors for {below.height:,} {leaves}; give one for each")
    layers, of_layers = [], [known]
    for level in range(1, LAYERS + 1):
        edges = _edges(below, of_layers[-1], reduce=reduce, seed=seed)
        if edges.is_empty():
            break
        about = _about(edges, below, turns, level)
        pool = pool_of_nodes(edges.with_columns(kind=pl.lit("cluster")), below, turns)
        above = parents(about, pool, summariser=writer)
        layers.append(_with_parents(below, edges, about, above))
        of_layers.append(np.asarray(embedder.encode(above["text"].to_list())))
        below = above
    return Tree(pl.concat([*layers, below]), np.concatenate(of_layers))


def _leaves(turns: pl.DataFrame, leaves: str, summariser: Summariser) -> pl.DataFrame:
    if leaves not in LEAVES:
        raise DataError(f"leaves is {leaves!r}; choose from {', '.join(LEAVES)}")
    if not turns.height:
        return frame(Node)
    return turn_nodes(turns) if leaves == "turns" else session_nodes(turns, summariser)


def session_nodes(turns: pl.DataFrame, summariser: Summariser, *, previous: pl.DataFrame | None = None) -> pl.DataFrame:
    """Summarise each session as a leaf, in order of first appearance."""
    about = turns.group_by("session_id", maintain_order=True).agg(
        pl.col("scope").first(),
        turns="turn_id",
        start=pl.col("timestamp").min(),
        end=pl.col("timestamp").max(),
    )
    about = about.with_columns(
        group="session_id",
        level=pl.lit(0),
        kind=pl.lit("session"),
        children=pl.lit([], pl.List(pl.String)),
        method=pl.lit("session"),
    )
    pool = sentences_of(turns).with_columns(group="session_id", kind=pl.lit("session"))
    return parents(about, pool.select(list(POOL)), summariser=summariser, previous=previous)


def _texts(leaves: pl.DataFrame, turns: pl.DataFrame) -> list[str]:
    """Give what is embedded of leaves: of turns the same texts as everywhere."""
    if leaves.height and leaves["kind"][0] == "turn":
        return turn_texts(turns)
    return leaves["text"].to_list()


def _edges(below: pl.DataFrame, vectors: np.ndarray, *, reduce: str, seed: int) -> pl.DataFrame:
    """Group the nodes of each scope that still has many: rows by group, then by time."""
    parts = []
    rows = below.with_row_index("row").group_by("scope", maintain_order=True).agg("row")["row"].to_list()
    for number, members in enumerate(rows):
        if len(members) <= FEW:
            continue
        memberships, method = mixture_memberships(vectors[members], reduce=reduce, seed=seed), "mixture"
        if not 1 < memberships.shape[1] <= len(members) // 2:
            memberships, method = _chunks(len(members)), "chunks"
        pairs = memberships.tocoo()
        part = pl.DataFrame({"row": np.array(members)[pairs.row], "column": pairs.col, "weight": pairs.data})
        parts.append(
            part.select(
                pl.col("row").cast(pl.UInt32),
                pl.format("{}-{}", pl.lit(number), "column").alias("group"),
                "weight",
                method=pl.lit(method),
                order=pl.col("column") + number * below.height,
            )
        )
    if not parts:
        return pl.DataFrame(schema={"row": pl.UInt32, "group": pl.String, "weight": pl.Float64, "method": pl.String})
    rows_of = pl.concat(parts).sort("order", "row").drop("order")
    return rows_of.join(below.select("node_id").with_row_index("row"), on="row", how="left", maintain_order="left")


def _chunks(n: int) -> Any:
    """Put neighbours together, five by five."""
    from scipy.sparse import csr_array

    group = np.arange(n) // _CHUNK
    return csr_array((np.ones(n), (np.arange(n), group)), shape=(n, int(group.max()) + 1))


def _about(edges: pl.DataFrame, below: pl.DataFrame, turns: pl.DataFrame, level: int) -> pl.DataFrame:
    children = below.with_row_index("row").select("row", "scope", "start", "end", "turns")
    nodes = edges.join(children, on="row", maintain_order="left")
    place = turns.select(turns="turn_id").with_row_index("place")
    of_groups = (
        nodes.select("group", "turns")
        .explode("turns")
        .unique(maintain_order=True)
        .join(place, on="turns", maintain_order="left")
        .sort("place", maintain_order=True)
        .group_by("group", maintain_order=True)
        .agg("turns")
    )
    return (
        nodes.group_by("group", maintain_order=True)
        .agg(
            pl.col("scope", "method").first(),
            children="node_id",
            start=pl.col("start").min(),
            end=pl.col("end").max(),
        )
        .join(of_groups, on="group", how="left", maintain_order="left")
        .with_columns(level=pl.lit(level), kind=pl.lit("cluster"))
    )


def _with_parents(below: pl.DataFrame, edges: pl.DataFrame, about: pl.DataFrame, above: pl.DataFrame) -> pl.DataFrame:
    """Give each node the parent that it belongs to most; of equals, the first."""
    ids = about.select("group").with_columns(parent=above["node_id"])
    best = (
        edges.join(ids, on="group", maintain_order="left")
        .sort("weight", descending=True, maintain_order=True)
        .unique("row", keep="first", maintain_order=True)
        .select("node_id", "parent")
    )
    columns = below.columns
    return below.drop("parent").join(best, on="node_id", how="left", maintain_order="left").select(columns)
