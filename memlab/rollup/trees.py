"""A tree over the turns or sessions of each scope: group what is alike, summarise, embed, and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from memlab.cluster.mixture import mixture_memberships
from memlab.embed import Encoder, load
from memlab.errors import DataError
from memlab.records import Node, frame
from memlab.rollup.nodes import layer_above, session_nodes, turn_nodes
from memlab.rollup.summarisers import Extractive, Summariser

LEAVES = ("turns", "sessions")

# Nodes that one look takes in: no layer is put on so few.
FEW = 8
LAYERS = 5
_CHUNK = 5


@dataclass(frozen=True)
class Tree:
    """Nodes and their unit vectors, (n, d) float32: leaves first, then layer by layer; in each by scope and time."""

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
    five by five. So it ends for any input. A node may stand below several parents (``children``); ``parent`` is the one
    it belongs to most, and these alone form a forest over all leaves.

    :param turns: rows of :class:`memlab.records.Turn`, in order of scope, session and place.
    :param encoder: embeds the texts of nodes.
    :param vectors: (n, d) unit rows of the leaves, where these are known already.
    :param leaves: ``turns``, or ``sessions``, which are summarised first.
    :param summariser: what writes the nodes; ``None`` for :class:`memlab.rollup.Extractive`.
    :param reduce: ``umap`` or ``pca``; see :func:`memlab.cluster.mixture.mixture_memberships`.
    :param seed: of the grouping.
    :raises DataError: for other leaves, or vectors that do not fit them.

    Source: Sarthi et al., "RAPTOR", ICLR 2024, section 3.

    >>> import memlab
    >>> from memlab.rollup import grow
    >>> turns = memlab.sample(turns=60).turns
    >>> nodes = grow(turns, encoder="hashing:64", reduce="pca").nodes
    >>> nodes.filter(kind="turn").height == turns.height, nodes.filter(kind="cluster").height > 0
    (True, True)
    """
    if leaves not in LEAVES:
        raise DataError(f"leaves is {leaves!r}; choose from {', '.join(LEAVES)}")
    writer, embedder = summariser or Extractive(), load(encoder)
    if not turns.height:
        below = frame(Node)
    else:
        below = turn_nodes(turns) if leaves == "turns" else session_nodes(turns, writer)
    leaf_vectors = np.asarray(embedder.encode(below["text"].to_list())) if vectors is None else vectors
    if len(leaf_vectors) != below.height:
        raise DataError(f"there are {len(leaf_vectors):,} vectors for {below.height:,} {leaves}; give one for each")
    layers, of_layers = [], [leaf_vectors]
    for level in range(1, LAYERS + 1):
        edges = _edges(below, of_layers[-1], reduce=reduce, seed=seed)
        if edges.is_empty():
            break
        edges = edges.with_columns(level=pl.lit(level), kind=pl.lit("cluster"))
        above = layer_above(edges, below, turns, summariser=writer)
        layers.append(_with_parents(below, edges, above["node_id"]))
        of_layers.append(np.asarray(embedder.encode(above["text"].to_list())))
        below = above
    return Tree(pl.concat([*layers, below]), np.concatenate(of_layers))


def _edges(below: pl.DataFrame, vectors: np.ndarray, *, reduce: str, seed: int) -> pl.DataFrame:
    """Group the nodes of each scope that still has many; rows by group, then by time."""
    schema = pl.Schema({"row": pl.UInt32, "group": pl.UInt32, "weight": pl.Float64, "method": pl.String})
    parts, n_groups = [pl.DataFrame(schema=schema)], 0
    for rows in below.with_row_index("row").group_by("scope", maintain_order=True).agg("row")["row"].to_list():
        if len(rows) <= FEW:
            continue
        memberships, method = mixture_memberships(vectors[rows], reduce=reduce, seed=seed), "mixture"
        if not 1 < memberships.shape[1] <= len(rows) // 2:
            memberships, method = _chunks(len(rows)), "chunks"
        pairs = memberships.tocoo()
        columns = {"row": np.array(rows)[pairs.row], "group": n_groups + pairs.col, "weight": pairs.data}
        parts.append(pl.DataFrame(columns).with_columns(method=pl.lit(method)).cast(schema))
        n_groups += memberships.shape[1]
    edges = pl.concat(parts).sort("group", "row").with_columns(pl.col("group").cast(pl.String))
    return edges.with_columns(node_id=below["node_id"].gather(edges["row"])).drop("row")


def _chunks(n: int) -> Any:
    """Put neighbours together, five by five."""
    from scipy.sparse import csr_array

    return csr_array((np.ones(n), (np.arange(n), np.arange(n) // _CHUNK)))


def _with_parents(below: pl.DataFrame, edges: pl.DataFrame, above: pl.Series) -> pl.DataFrame:
    """Give each node the parent that it belongs to most; of equals, the first."""
    groups = edges.select("group").unique(maintain_order=True).with_columns(parent=above)
    best = edges.join(groups, on="group", maintain_order="left").sort("weight", descending=True, maintain_order=True)
    best = best.unique("node_id", keep="first", maintain_order=True).select("node_id", "parent")
    return below.drop("parent").join(best, on="node_id", how="left", maintain_order="left").select(below.columns)
