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
from memlab.errors import DataError
from memlab.retrieve import Bench
from memlab.summaries.summary_prompts import CLUSTER
from memlab.summaries.summary_rows import Row, Writer, node_frame, turn_rows, write_summaries

MAX_TOP_NODES, MAX_LAYERS, CHUNK_SIZE = 8, 5, 5
MAX_ADDED = 0.25
"""The share of a scope's entries that may join groups later, before these are formed anew."""
GROUPS = "groups"
"""The task of requests whose prompt is the answer to be recorded: groups are computed, no model is asked."""


class Tree(NamedTuple):
    """Rows of :class:`memlab.records.Node`, layer by layer, in each by scope and time; and their (n, d) vectors."""

    nodes: pl.DataFrame
    vectors: np.ndarray


def build_raptor_tree(
    bench: Bench,
    *,
    service: Writer = None,
    seed: int = 0,
    known: Tree | None = None,
) -> Tree:
    """Build a tree for each scope: group the entries of a layer by their vectors, summarise each group, embed, repeat.

    An entry belongs to every group that it is in with a probability above a tenth; ``parent`` is
    the one that it belongs to most. A scope is done when a layer has at most eight entries, or
    after five layers. A layer has at most half as many nodes as the one below; where the mixture
    finds more groups, or only one, neighbours in time are put together five by five, so that it
    ends for any input.

    UMAP gives other groups for vectors that differ in their last bits, as those of another machine
    may; ``recorded`` reads the groups too, so that its trees are the same everywhere. Groups that
    are recorded depend on neither ``seed`` nor encoder, and none are computed.

    With ``known`` and a model, the groups of that tree stay: a new entry joins the one whose mean
    vector is most similar, and only groups with a new or changed entry are summarised again. Once a
    quarter of a scope's turns joined later, its groups are formed anew.

    :param bench: with the turns, and the encoder that embeds turns and summaries.
    :param service: see :func:`memlab.summaries.summarize_sessions`.
    :param seed: of the grouping; recorded groups have none.
    :param known: an earlier tree of these scopes; vectors of its texts are taken from it.
    :raises DataError: for a bench without an encoder, or when there is not one vector a turn.
    :raises ModelError: when the service cannot be asked at all.

    Source: Sarthi et al., "RAPTOR", ICLR 2024, section 3.

    >>> import memlab
    >>> from memlab.sessions import sessions_of
    >>> turns = [memlab.Turn(f"u/s/{n}", "u", "u/s", n, "Mel", "user", f"Day {n} of my trip.") for n in range(20)]
    >>> turns = memlab.records.frame(memlab.Turn, turns)
    >>> bench = memlab.Bench.of(memlab.Dataset("trip", "example", turns, sessions_of(turns)), encoder="hashing:64")
    >>> tree = memlab.summaries.build_raptor_tree(bench)
    >>> tree.nodes["kind"].unique().to_list(), len(tree.vectors) == tree.nodes.height
    (['cluster'], True)
    """
    turns, vectors = _turns_and_vectors(bench)
    below, place = turn_rows(turns), {turn: n for n, turn in enumerate(turns["turn_id"])}
    before = None if known is None else known.nodes
    earlier = _earlier_layers(before, service)
    old_parents = {row["node_id"]: row["parent"] for rows in earlier.values() for row in rows}
    layers, of_layers = list[list[Row]](), [vectors[:0]]
    while len(layers) < MAX_LAYERS:
        earlier_layer = earlier.get(len(layers) + 1, [])
        groups = _group_scopes(below, vectors, earlier_layer, service, seed)
        if not groups:
            break
        below = write_summaries(CLUSTER, [group.part for group in groups], service, known=before)
        for group, node in zip(groups, below, strict=True):
            node |= {
                "kind": "cluster",
                "method": group.method,
                "turns": sorted(node["turns"], key=place.__getitem__),
                "added": group.added,
                "was": group.was,
                "old_parent": old_parents.get(group.was),
            }
            for entry, weight in zip(group.part, group.weights, strict=True):
                if weight > entry.get("weight", 0):
                    entry |= {"weight": weight, "parent": node["node_id"]}
        layers.append(below)
        vectors = encode_texts(bench, [row["text"] for row in below], known)
        of_layers.append(vectors)
    # Framed at the end: a layer's parents are written with the layer above.
    nodes = [node_frame(rows, turns, bench.language) for rows in layers or [[]]]
    return Tree(pl.concat(nodes), np.concatenate(of_layers))


def _turns_and_vectors(bench: Bench) -> tuple[pl.DataFrame, np.ndarray]:
    """Give the turns of a bench in order of scope, session and place, and their vectors.

    :raises DataError: for a bench without an encoder, or when there is not one vector a turn.
    """
    bench.embedder()
    if bench.vectors is not None and len(bench.vectors) != bench.turns.height:
        given = f"{len(bench.vectors):,} vectors for {bench.turns.height:,} turns"
        raise DataError(f"there are {given}; give one for each")
    turns, documents = ordered_turns(bench), bench.documents("turn")
    return turns, documents.vectors()[documents.at(turns["turn_id"])]


def ordered_turns(bench: Bench) -> pl.DataFrame:
    """Give the turns of a bench in order of scope, session and place."""
    at = bench.documents("turn").at(bench.turns["turn_id"])
    return bench.turns[np.argsort(at, kind="stable")]


def encode_texts(bench: Bench, texts: list[str], known: Tree | None) -> np.ndarray:
    """Encode summaries; with a known tree, which the store keeps, what it has is taken from it, but for zeros.

    :returns: (n, d) float32 unit rows.
    """
    encoder = bench.embedder()
    if bench.store is None or known is None:
        return np.asarray(encoder.encode(texts))
    pairs = zip(known.nodes["text"], known.vectors, strict=True)
    made = {text: vector for text, vector in pairs if vector.any()}
    new = [text for text in dict.fromkeys(texts) if text not in made]
    # The nodes have their vectors, and not the cache too.
    vectors = bench.store.encode(encoder, new, progress=bench.progress, remember=False)
    made |= dict(zip(new, vectors, strict=True))
    return np.stack([made[text] for text in texts])


class _Group(NamedTuple):
    """Entries that are put together, the weight of each, and how; ``was`` is the node that they were under before."""

    method: str
    part: list[Row]
    weights: list[float]
    added: int = 0
    was: str = ""


def _earlier_layers(known: pl.DataFrame | None, service: Writer) -> dict[int, list[Row]]:
    """Give the nodes of an earlier tree by layer; none where groups are read or cost nothing."""
    if known is None or service is None or service == llm.RECORDED:
        return {}
    layers = dict[int, list[Row]]()
    for row in known.filter(kind="cluster").to_dicts():
        layers.setdefault(row["level"], []).append(row)
    return layers


class _Groups(BaseModel):
    """Groups of the entries of a scope: their places, the weight of each in its group, how they were put together."""

    method: str
    members: list[list[int]]
    weights: list[list[float]]


def _group_scopes(
    entries: list[Row], vectors: np.ndarray, earlier: list[Row], service: Writer, seed: int
) -> list[_Group]:
    """Group the entries of each large scope; where it has earlier groups, they stay as long as they may."""
    found, scopes = list[_Group](), np.array([row["scope"] for row in entries])
    for scope in dict.fromkeys(scopes.tolist()):
        at = np.flatnonzero(scopes == scope)
        if len(at) <= MAX_TOP_NODES:
            continue
        own, before = [entries[i] for i in at], [row for row in earlier if row["scope"] == scope]
        kept = _extend_groups(own, vectors[at], before)
        if not kept:
            groups = _group_entries(own, vectors[at], service, seed)
            for members, weights in zip(groups.members, groups.weights, strict=True):
                kept.append(_Group(groups.method, [own[i] for i in members], weights))
        found += kept
    return found


def _extend_groups(entries: list[Row], vectors: np.ndarray, earlier: list[Row]) -> list[_Group]:
    """Give the earlier groups with the entries that are there, each new entry in the group most similar to it.

    None where the groups are to be formed anew: too many entries joined since they were.
    """
    place = {row.get("was") or row["node_id"]: at for at, row in enumerate(entries)}
    groups = [[place[child] for child in row["children"] if child in place] for row in earlier]
    pairs = [(row, members) for row, members in zip(earlier, groups, strict=True) if members]
    joined = {at for _, members in pairs for at in members}
    new = [at for at in range(len(entries)) if at not in joined]
    added = [row["added"] for row, _ in pairs]
    if len(pairs) < 2 or sum(added) + len(new) > MAX_ADDED * len(entries):
        return []
    means = np.stack([vectors[members].mean(axis=0) for _, members in pairs])
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    for at in new:
        nearest = int((means @ vectors[at]).argmax())
        pairs[nearest][1].append(at)
        added[nearest] += 1
    kept = []
    for (row, members), n_added in zip(pairs, added, strict=True):
        members.sort()
        part = [entries[at] for at in members]
        weights = [_earlier_weight(entry, row) for entry in part]
        kept.append(_Group(row["method"], part, weights, n_added, row["node_id"]))
    return kept


def _earlier_weight(entry: Row, group: Row) -> float:
    """Give the weight of an entry in an earlier group: highest in that which was its parent."""
    if entry.get("old_parent") == group["node_id"]:
        return 1.0
    return 0.5


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
