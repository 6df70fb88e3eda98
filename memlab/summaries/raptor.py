"""RAPTOR: a tree of clusters over the turns of each scope, with summaries of clusters, and of their
clusters.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, pairwise
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

MAX_TOP_NODES = 8
MAX_LAYERS = 5
CHUNK_SIZE = 5
MAX_ADDED = 0.25
"""The share of a scope's entries that may join groups later, before these are formed anew."""
GROUPS = "groups"
"""The task of requests whose prompt is the answer to be recorded: groups are computed, no model is
asked.
"""
GROUPS_VERSION = 2
"""Raised when other groups are formed of the same entries: 2 compares turns by speaker-centred
vectors.
"""


class Tree(NamedTuple):
    """Rows of :class:`memlab.records.Node`, layer by layer, in each by scope and time.

    And their (n, d) vectors.
    """

    nodes: pl.DataFrame
    vectors: np.ndarray


def build_raptor_tree(
    bench: Bench,
    *,
    service: Writer = None,
    seed: int = 0,
    known: Tree | None = None,
) -> Tree:
    """Build a tree for each scope: group the entries of a layer by their vectors, summarise each
    group, embed, repeat.

    Turns are compared by their speaker-centred vectors, so that groups are of what is said and not
    of who says it; summaries as they are encoded.

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
    >>> turns = []
    >>> for day in range(20):
    ...     text = f"Day {day} of my trip."
    ...     turns.append(memlab.Turn(f"u/s/{day}", "u", "u/s", day, "Mel", "user", text))
    >>> turns = memlab.records.frame(memlab.Turn, turns)
    >>> data = memlab.Dataset("trip", "example", turns, sessions_of(turns))
    >>> bench = memlab.Bench.of(data, encoder="hashing:64")
    >>> tree = memlab.summaries.build_raptor_tree(bench)
    >>> tree.nodes["kind"].unique().to_list(), len(tree.vectors) == tree.nodes.height
    (['cluster'], True)
    """
    turns, vectors = _turns_and_vectors(bench)
    growth = _Growth(bench, service, seed, known)
    layer = growth.add_layer(turn_rows(turns), vectors)
    while layer and len(growth.layers) < MAX_LAYERS:
        layer = growth.add_layer(layer, growth.vectors[-1])
    places = {turn_id: place for place, turn_id in enumerate(turns["turn_id"])}
    for row in chain.from_iterable(growth.layers):
        row["turns"] = sorted(row["turns"], key=places.__getitem__)
    # Framed at the end: a layer's parents are written with the layer above.
    nodes = [node_frame(rows, turns, bench.language) for rows in growth.layers or [[]]]
    return Tree(pl.concat(nodes), np.concatenate([vectors[:0], *growth.vectors]))


class _Growth:
    """A tree while its layers are added, from below: their rows and vectors."""

    def __init__(self, bench: Bench, service: Writer, seed: int, known: Tree | None) -> None:
        self.bench = bench
        self.service = service
        self.seed = seed
        self.known = known
        self.layers: list[list[Row]] = []
        self.vectors: list[np.ndarray] = []
        self.known_nodes = None
        if known is not None:
            self.known_nodes = known.nodes
        self.earlier = _earlier_layers(self.known_nodes, service)
        rows = chain.from_iterable(self.earlier.values())
        self.old_parents = {row["node_id"]: row["parent"] for row in rows}

    def add_layer(self, below: list[Row], vectors: np.ndarray) -> list[Row]:
        """Group the entries of the layer below, and summarise and embed each group.

        :returns: the rows of the new layer; none where no scope has enough entries for one.
        """
        earlier = self.earlier.get(len(self.layers) + 1, [])
        groups = _group_scopes(below, vectors, earlier, self.service, self.seed)
        if not groups:
            return []
        parts = [group.part for group in groups]
        layer = write_summaries(CLUSTER, parts, self.service, known=self.known_nodes)
        for group, node in zip(groups, layer, strict=True):
            node["kind"] = "cluster"
            node["method"] = group.method
            node["added"] = group.added
            node["was"] = group.was
            node["old_parent"] = self.old_parents.get(group.was)
            _note_parent(group, node["node_id"])
        self.layers.append(layer)
        texts = [row["text"] for row in layer]
        self.vectors.append(encode_texts(self.bench, texts, self.known))
        return layer


def _note_parent(group: _Group, node: str) -> None:
    """Make a node the parent of those entries of its group that belong to no other one more."""
    for entry, weight in zip(group.part, group.weights, strict=True):
        if weight > entry.get("weight", 0):
            entry["weight"] = weight
            entry["parent"] = node


def _turns_and_vectors(bench: Bench) -> tuple[pl.DataFrame, np.ndarray]:
    """Give the turns of a bench in order of scope, session and place, and their speaker-centred
    vectors.

    :raises DataError: for a bench without an encoder, or when there is not one vector a turn.
    """
    bench.embedder()
    if bench.vectors is not None and len(bench.vectors) != bench.turns.height:
        given = f"{len(bench.vectors):,} vectors for {bench.turns.height:,} turns"
        raise DataError(f"there are {given}; give one for each")
    turns = ordered_turns(bench)
    documents = bench.documents("turn")
    return turns, documents.speaker_centred()[documents.at(turns["turn_id"])]


def ordered_turns(bench: Bench) -> pl.DataFrame:
    """Give the turns of a bench in order of scope, session and place."""
    at = bench.documents("turn").at(bench.turns["turn_id"])
    return bench.turns[np.argsort(at, kind="stable")]


def encode_texts(bench: Bench, texts: list[str], known: Tree | None) -> np.ndarray:
    """Encode summaries; with a known tree, which the store keeps, what it has is taken from it, but
    for zeros.

    :returns: (n, d) float32 unit rows.
    """
    encoder = bench.embedder()
    if bench.store is None or known is None:
        return np.asarray(encoder.encode(texts))
    known_vectors = zip(known.nodes["text"], known.vectors, strict=True)
    vector_by_text = {text: vector for text, vector in known_vectors if vector.any()}
    new_texts = [text for text in dict.fromkeys(texts) if text not in vector_by_text]
    # The nodes have their vectors, and not the cache too.
    vectors = bench.store.encode(encoder, new_texts, progress=bench.progress, remember=False)
    vector_by_text.update(zip(new_texts, vectors, strict=True))
    return np.stack([vector_by_text[text] for text in texts])


class _Group(NamedTuple):
    """Entries that are put together, the weight of each, and how.

    ``was`` is the node that they were under before.
    """

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
    """Groups of the entries of a scope: their places, the weight of each in its group, how they
    were put together.
    """

    method: str
    members: list[list[int]]
    weights: list[list[float]]


def _group_scopes(
    entries: list[Row], vectors: np.ndarray, earlier: list[Row], service: Writer, seed: int
) -> list[_Group]:
    """Group the entries of each large scope.

    Where it has earlier groups, they stay as long as they may.
    """
    found: list[_Group] = []
    scopes = np.array([row["scope"] for row in entries])
    earlier_by_scope: dict[str, list[Row]] = {}
    for row in earlier:
        earlier_by_scope.setdefault(row["scope"], []).append(row)
    for scope in dict.fromkeys(scopes.tolist()):
        in_scope = np.flatnonzero(scopes == scope)
        if len(in_scope) <= MAX_TOP_NODES:
            continue
        own_entries = [entries[place] for place in in_scope]
        own_vectors = vectors[in_scope]
        groups = _extend_groups(own_entries, own_vectors, earlier_by_scope.get(scope, []))
        if not groups:
            groups = _new_groups(own_entries, own_vectors, service, seed)
        found += groups
    return found


def _new_groups(
    entries: list[Row], vectors: np.ndarray, service: Writer, seed: int
) -> list[_Group]:
    """Put the entries of a scope into groups that it did not have."""
    formed = _form_groups(entries, vectors, service, seed)
    groups = []
    for members, weights in zip(formed.members, formed.weights, strict=True):
        part = [entries[place] for place in members]
        groups.append(_Group(formed.method, part, weights))
    return groups


def _extend_groups(entries: list[Row], vectors: np.ndarray, earlier: list[Row]) -> list[_Group]:
    """Put each new entry into the earlier group that is most similar to it.

    None where the groups are to be formed anew: too many entries joined since they were.
    """
    kept = _kept_members(entries, earlier)
    placed = set(chain.from_iterable(members for _, members in kept))
    new_places = sorted(set(range(len(entries))) - placed)
    n_added = [row["added"] for row, _ in kept]
    n_joined = sum(n_added) + len(new_places)
    if len(kept) < 2 or n_joined > MAX_ADDED * len(entries):
        return []

    means = np.stack([vectors[members].mean(axis=0) for _, members in kept])
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    for place in new_places:
        nearest = int((means @ vectors[place]).argmax())
        kept[nearest][1].append(place)
        n_added[nearest] += 1

    groups = []
    for (row, members), count in zip(kept, n_added, strict=True):
        part = [entries[place] for place in sorted(members)]
        weights = [_earlier_weight(entry, row) for entry in part]
        groups.append(_Group(row["method"], part, weights, count, row["node_id"]))
    return groups


def _kept_members(entries: list[Row], earlier: list[Row]) -> list[tuple[Row, list[int]]]:
    """Find the earlier nodes that still have entries, each with the places of these."""
    place_by_node = {}
    for place, entry in enumerate(entries):
        node_id = entry.get("was") or entry["node_id"]
        place_by_node[node_id] = place
    kept = []
    for row in earlier:
        members = [place_by_node[child] for child in row["children"] if child in place_by_node]
        if members:
            kept.append((row, members))
    return kept


def _earlier_weight(entry: Row, group: Row) -> float:
    """Weigh an entry in an earlier group: highest in that which was its parent."""
    if entry.get("old_parent") == group["node_id"]:
        return 1.0
    return 0.5


def _form_groups(entries: list[Row], vectors: np.ndarray, service: Writer, seed: int) -> _Groups:
    """Group the entries of a scope as recorded, else by a mixture over their vectors.

    Where that finds none, neighbours in time are put together.
    """
    about: list[str] = []
    for entry in entries:
        about += [entry["node_id"], *entry["sentences"]]
    request = llm.Request(GROUPS, GROUPS_VERSION, tuple(about), "", _Groups)
    if service == llm.RECORDED:
        recorded = llm.ask([request], service)[0].value
        if recorded:
            return recorded
    groups = _mixture_groups(vectors, seed) or _chunk_groups(len(vectors))
    if callable(service):
        answer = service([replace(request, prompt=groups.model_dump_json())])[0]
        return answer.value or groups
    return groups


def _mixture_groups(vectors: np.ndarray, seed: int) -> _Groups | None:
    """Group by a mixture.

    ``None`` where it finds one group, or more than half as many as there are entries.
    """
    memberships = mixture_memberships(vectors, seed=seed).T.tocsr()
    n_groups = memberships.shape[0]
    if not 1 < n_groups <= len(vectors) // 2:
        return None
    memberships.sort_indices()
    members = []
    weights = []
    for start, end in pairwise(memberships.indptr):
        members.append(memberships.indices[start:end].tolist())
        weights.append(memberships.data[start:end].tolist())
    return _Groups(method="mixture", members=members, weights=weights)


def _chunk_groups(n_entries: int) -> _Groups:
    """Group entries by fives, in order of time."""
    members = []
    weights = []
    for start in range(0, n_entries, CHUNK_SIZE):
        chunk = list(range(start, min(start + CHUNK_SIZE, n_entries)))
        members.append(chunk)
        weights.append([1.0] * len(chunk))
    return _Groups(method="chunks", members=members, weights=weights)
