"""RAPTOR: a tree of clusters over the turns of each scope, with summaries of clusters, and of their clusters."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl
from pydantic import BaseModel

from memlab import llm
from memlab.cluster.clusterers import mixture_memberships
from memlab.embed import Encoder, load
from memlab.embed.turn_texts import turn_texts
from memlab.errors import DataError
from memlab.summaries.summary_prompts import CLUSTER
from memlab.summaries.summary_rows import Row, Writer, node_frame, turn_rows, write_summaries

MAX_TOP_NODES, MAX_LAYERS, CHUNK_SIZE = 8, 5, 5
GROUPS = "groups"
"""The task of requests whose prompt is the answer to be recorded: groups are computed, no model is asked."""


class Tree(NamedTuple):
    """Rows of :class:`memlab.records.Node`, layer by layer, in each by scope and time; and their (n, d) vectors."""

    nodes: pl.DataFrame
    vectors: np.ndarray


def build_raptor_tree(
    turns: pl.DataFrame,
    *,
    encoder: Encoder | str = "settings",
    vectors: np.ndarray | None = None,
    service: Writer = None,
    language: str = "en",
    seed: int = 0,
) -> Tree:
    """Build a tree for each scope: group the entries of a layer by their vectors, summarise each group, embed, repeat.

    An entry belongs to every group that it is in with a probability above a tenth; ``parent`` is
    the one that it belongs to most. A scope is done when a layer has at most eight entries, or
    after five layers. A layer has at most half as many nodes as the one below; where the mixture
    finds more groups, or only one, neighbours in time are put together five by five, so that it
    ends for any input.

    UMAP gives other groups for vectors that differ in their last bits, as those of another machine
    may; ``recorded`` reads the groups too, so that its trees are the same everywhere. Groups that
    are recorded depend on neither ``seed`` nor ``encoder``, and none are computed.

    :param turns: rows of :class:`memlab.records.Turn`, in order of scope, session and place.
    :param encoder: embeds turns and summaries, for the grouping and for ``vectors`` of the tree.
    :param vectors: (n, d) unit rows of the turns, where these are known.
    :param service: see :func:`memlab.summaries.summarize_sessions`, as ``language``.
    :param seed: of the grouping; recorded groups have none.
    :raises DataError: when there is not one vector a turn.
    :raises ModelError: when the service cannot be asked at all.

    Source: Sarthi et al., "RAPTOR", ICLR 2024, section 3.

    >>> import memlab
    >>> turns = [memlab.Turn(f"u/s/{n}", "u", "u/s", n, "Mel", "user", f"Day {n} of my trip.") for n in range(20)]
    >>> tree = memlab.summaries.build_raptor_tree(memlab.records.frame(memlab.Turn, turns), encoder="hashing:64")
    >>> tree.nodes["kind"].unique().to_list(), len(tree.vectors) == tree.nodes.height
    (['cluster'], True)
    """
    embedder = load(encoder)
    vectors = np.asarray(embedder.encode(turn_texts(turns)) if vectors is None else vectors)
    if len(vectors) != turns.height:
        raise DataError(
            f"there are {len(vectors):,} vectors for {turns.height:,} turns; give one for each"
        )
    below, place = turn_rows(turns), {turn: n for n, turn in enumerate(turns["turn_id"])}
    layers, of_layers = list[list[Row]](), [vectors[:0]]
    while len(layers) < MAX_LAYERS and (groups := _group_scopes(below, vectors, service, seed)):
        below = write_summaries(CLUSTER, [part for _, part, _ in groups], service)
        for (method, part, weights), node in zip(groups, below, strict=True):
            node |= {
                "kind": "cluster",
                "method": method,
                "turns": sorted(node["turns"], key=place.__getitem__),
            }
            for entry, weight in zip(part, weights, strict=True):
                if weight > entry.get("weight", 0):
                    entry |= {"weight": weight, "parent": node["node_id"]}
        layers.append(below)
        vectors = np.asarray(embedder.encode([row["text"] for row in below]))
        of_layers.append(vectors)
    # Framed at the end: a layer's parents are written with the layer above.
    nodes = [node_frame(rows, turns, language) for rows in layers or [[]]]
    return Tree(pl.concat(nodes), np.concatenate(of_layers))


class _Groups(BaseModel):
    """Groups of the entries of a scope: their places, the weight of each in its group, how they were put together."""

    method: str
    members: list[list[int]]
    weights: list[list[float]]


def _group_scopes(
    entries: list[Row], vectors: np.ndarray, service: Writer, seed: int
) -> list[tuple[str, list[Row], list[float]]]:
    """Group the entries of each large scope; give for each group the method, its entries and their weights."""
    found, scopes = [], np.array([row["scope"] for row in entries])
    for scope in dict.fromkeys(scopes.tolist()):
        at = np.flatnonzero(scopes == scope)
        if len(at) > MAX_TOP_NODES:
            groups = _group_entries([entries[i] for i in at], vectors[at], service, seed)
            for members, weights in zip(groups.members, groups.weights, strict=True):
                found.append((groups.method, [entries[at[i]] for i in members], weights))
    return found


def _group_entries(entries: list[Row], vectors: np.ndarray, service: Writer, seed: int) -> _Groups:
    """Group the entries of a scope as recorded, else by a mixture over their vectors, else by neighbours in time."""
    about = tuple(part for row in entries for part in (row["node_id"], *row["sentences"]))
    request = llm.Request(GROUPS, 1, about, "", _Groups)
    if service == llm.RECORDED and (recorded := llm.ask([request], service)[0].value):
        return recorded
    soft = mixture_memberships(vectors, seed=seed).T.tocsr()
    if 1 < soft.shape[0] <= len(vectors) // 2:
        soft.sort_indices()
        method, parts = (
            "mixture",
            [(soft.indices[a:b], soft.data[a:b]) for a, b in pairwise(soft.indptr)],
        )
    else:
        method, at = "chunks", np.arange(len(vectors))
        parts = [
            (each, np.ones(len(each)))
            for each in np.split(at, range(CHUNK_SIZE, len(at), CHUNK_SIZE))
        ]
    groups = _Groups(
        method=method,
        members=[at.tolist() for at, _ in parts],
        weights=[w.tolist() for _, w in parts],
    )
    if callable(service):
        groups = service([replace(request, prompt=groups.model_dump_json())])[0].value or groups
    return groups
