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
from memlab.summaries.summary_rows import (
    NodeRow,
    Writer,
    node_frame,
    turns_as_node_rows,
    write_summaries,
)

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
    turns, vectors = _ordered_turns_and_vectors(bench)
    growth = _GrowingTree(bench, service, seed, known)
    current_layer = growth.write_next_layer(turns_as_node_rows(turns), vectors)
    while current_layer and len(growth.layers) < MAX_LAYERS:
        current_layer = growth.write_next_layer(current_layer, growth.vectors[-1])
    place_by_turn = {turn_id: place for place, turn_id in enumerate(turns["turn_id"])}
    for node_row in chain.from_iterable(growth.layers):
        node_row["turns"] = sorted(node_row["turns"], key=place_by_turn.__getitem__)
    # Framed at the end: a layer's parents are written with the layer above.
    node_frames = [node_frame(rows, turns, bench.language) for rows in growth.layers or [[]]]
    return Tree(pl.concat(node_frames), np.concatenate([vectors[:0], *growth.vectors]))


class _GrowingTree:
    """A tree while its layers are added, from below: their rows and vectors."""

    def __init__(self, bench: Bench, service: Writer, seed: int, known: Tree | None) -> None:
        self.bench = bench
        self.service = service
        self.seed = seed
        self.known = known
        self.layers: list[list[NodeRow]] = []
        self.vectors: list[np.ndarray] = []
        self.known_nodes = None
        if known is not None:
            self.known_nodes = known.nodes
        self.earlier = _reusable_earlier_rows_by_layer(self.known_nodes, service)
        earlier_rows = chain.from_iterable(self.earlier.values())
        self.old_parents = {
            earlier_row["node_id"]: earlier_row["parent"] for earlier_row in earlier_rows
        }

    def write_next_layer(
        self, rows_below: list[NodeRow], vectors_below: np.ndarray
    ) -> list[NodeRow]:
        """Group the entries of the layer below, and summarise and embed each group.

        :returns: the rows of the new layer; none where no scope has enough entries for one.
        """
        earlier = self.earlier.get(len(self.layers) + 1, [])
        groups = _group_entries_of_large_scopes(
            rows_below, vectors_below, earlier, self.service, self.seed
        )
        if not groups:
            return []
        member_lists = [group.part for group in groups]
        layer_rows = write_summaries(
            CLUSTER, member_lists, self.service, known_nodes=self.known_nodes
        )
        for group, node_row in zip(groups, layer_rows, strict=True):
            node_row["kind"] = "cluster"
            node_row["method"] = group.method
            node_row["added"] = group.added
            node_row["was"] = group.was
            node_row["old_parent"] = self.old_parents.get(group.was)
            _set_parent_of_entries(group, node_row["node_id"])
        self.layers.append(layer_rows)
        node_texts = [row["text"] for row in layer_rows]
        self.vectors.append(encode_summaries(self.bench, node_texts, self.known))
        return layer_rows


def _set_parent_of_entries(group: _Group, node_id: str) -> None:
    """Make a node the parent of those entries of its group that belong to no other one more."""
    for entry, weight in zip(group.part, group.weights, strict=True):
        if weight > entry.get("weight", 0):
            entry["weight"] = weight
            entry["parent"] = node_id


def _ordered_turns_and_vectors(bench: Bench) -> tuple[pl.DataFrame, np.ndarray]:
    """Give the turns of a bench in order of scope, session and place, and their speaker-centred
    vectors.

    :raises DataError: for a bench without an encoder, or when there is not one vector a turn.
    """
    bench.embedder()
    if bench.vectors is not None and len(bench.vectors) != bench.turns.height:
        counts_text = f"{len(bench.vectors):,} vectors for {bench.turns.height:,} turns"
        raise DataError(f"there are {counts_text}; give one for each")
    turns = turns_by_scope_session_and_place(bench)
    documents = bench.documents("turn")
    return turns, documents.speaker_centred()[documents.at(turns["turn_id"])]


def turns_by_scope_session_and_place(bench: Bench) -> pl.DataFrame:
    """Give the turns of a bench in order of scope, session and place."""
    document_places = bench.documents("turn").at(bench.turns["turn_id"])
    return bench.turns[np.argsort(document_places, kind="stable")]


def encode_summaries(bench: Bench, summary_texts: list[str], known_tree: Tree | None) -> np.ndarray:
    """Encode summaries; with a known tree, which the store keeps, what it has is taken from it, but
    for zeros.

    :returns: (n, d) float32 unit rows.
    """
    encoder = bench.embedder()
    if bench.store is None or known_tree is None:
        return np.asarray(encoder.encode(summary_texts))
    known_vectors = zip(known_tree.nodes["text"], known_tree.vectors, strict=True)
    vector_by_text = {text: vector for text, vector in known_vectors if vector.any()}
    new_texts = [text for text in dict.fromkeys(summary_texts) if text not in vector_by_text]
    # The nodes have their vectors, and not the cache too.
    vectors = bench.store.encode(encoder, new_texts, progress=bench.progress, remember=False)
    vector_by_text.update(zip(new_texts, vectors, strict=True))
    return np.stack([vector_by_text[text] for text in summary_texts])


class _Group(NamedTuple):
    """Entries that are put together, the weight of each, and how.

    ``was`` is the node that they were under before.
    """

    method: str
    part: list[NodeRow]
    weights: list[float]
    added: int = 0
    was: str = ""


def _reusable_earlier_rows_by_layer(
    known_nodes: pl.DataFrame | None, service: Writer
) -> dict[int, list[NodeRow]]:
    """Give the nodes of an earlier tree by layer; none where groups are read or cost nothing."""
    if known_nodes is None or service is None or service == llm.RECORDED:
        return {}
    layers = dict[int, list[NodeRow]]()
    for row in known_nodes.filter(kind="cluster").to_dicts():
        layers.setdefault(row["level"], []).append(row)
    return layers


class _Groups(BaseModel):
    """Groups of the entries of a scope: their places, the weight of each in its group, how they
    were put together.
    """

    method: str
    members: list[list[int]]
    weights: list[list[float]]


def _group_entries_of_large_scopes(
    entries: list[NodeRow],
    entry_vectors: np.ndarray,
    earlier_rows: list[NodeRow],
    service: Writer,
    seed: int,
) -> list[_Group]:
    """Group the entries of each large scope.

    Where it has earlier groups, they stay as long as they may.
    """
    all_groups: list[_Group] = []
    scopes = np.array([earlier_row["scope"] for earlier_row in entries])
    earlier_by_scope: dict[str, list[NodeRow]] = {}
    for earlier_row in earlier_rows:
        earlier_by_scope.setdefault(earlier_row["scope"], []).append(earlier_row)
    for scope_name in dict.fromkeys(scopes.tolist()):
        in_scope = np.flatnonzero(scopes == scope_name)
        if len(in_scope) <= MAX_TOP_NODES:
            continue
        scope_entries = [entries[place] for place in in_scope]
        scope_vectors = entry_vectors[in_scope]
        scope_groups = _extend_earlier_groups(
            scope_entries, scope_vectors, earlier_by_scope.get(scope_name, [])
        )
        if not scope_groups:
            scope_groups = _form_new_groups(scope_entries, scope_vectors, service, seed)
        all_groups += scope_groups
    return all_groups


def _form_new_groups(
    entries: list[NodeRow], entry_vectors: np.ndarray, service: Writer, seed: int
) -> list[_Group]:
    """Put the entries of a scope into groups that it did not have."""
    formed_groups = _read_groups_or_compute_them(entries, entry_vectors, service, seed)
    groups = []
    for members, weights in zip(formed_groups.members, formed_groups.weights, strict=True):
        member_entries = [entries[place] for place in members]
        groups.append(_Group(formed_groups.method, member_entries, weights))
    return groups


def _extend_earlier_groups(
    entries: list[NodeRow], entry_vectors: np.ndarray, earlier_rows: list[NodeRow]
) -> list[_Group]:
    """Put each new entry into the earlier group that is most similar to it.

    None where the groups are to be formed anew: too many entries joined since they were.
    """
    kept_groups = _earlier_groups_with_places(entries, earlier_rows)
    placed_entries = set(chain.from_iterable(members for _, members in kept_groups))
    new_places = sorted(set(range(len(entries))) - placed_entries)
    n_added = [earlier_row["added"] for earlier_row, _ in kept_groups]
    n_joined = sum(n_added) + len(new_places)
    if len(kept_groups) < 2 or n_joined > MAX_ADDED * len(entries):
        return []

    group_means = np.stack([entry_vectors[members].mean(axis=0) for _, members in kept_groups])
    group_means /= np.maximum(np.linalg.norm(group_means, axis=1, keepdims=True), 1e-12)
    for place in new_places:
        nearest = int((group_means @ entry_vectors[place]).argmax())
        kept_groups[nearest][1].append(place)
        n_added[nearest] += 1

    groups = []
    for (earlier_row, members), count in zip(kept_groups, n_added, strict=True):
        member_entries = [entries[place] for place in sorted(members)]
        weights = [
            _weight_of_entry_in_earlier_group(entry, earlier_row) for entry in member_entries
        ]
        groups.append(
            _Group(earlier_row["method"], member_entries, weights, count, earlier_row["node_id"])
        )
    return groups


def _earlier_groups_with_places(
    entries: list[NodeRow], earlier_rows: list[NodeRow]
) -> list[tuple[NodeRow, list[int]]]:
    """Find the earlier nodes that still have entries, each with the places of these."""
    place_by_node = {}
    for place, entry in enumerate(entries):
        node_id = entry.get("was") or entry["node_id"]
        place_by_node[node_id] = place
    kept_groups = []
    for earlier_row in earlier_rows:
        members = [
            place_by_node[child_id]
            for child_id in earlier_row["children"]
            if child_id in place_by_node
        ]
        if members:
            kept_groups.append((earlier_row, members))
    return kept_groups


def _weight_of_entry_in_earlier_group(entry: NodeRow, earlier_group: NodeRow) -> float:
    """Weigh an entry in an earlier group: highest in that which was its parent."""
    if entry.get("old_parent") == earlier_group["node_id"]:
        return 1.0
    return 0.5


def _read_groups_or_compute_them(
    entries: list[NodeRow], entry_vectors: np.ndarray, service: Writer, seed: int
) -> _Groups:
    """Group the entries of a scope as recorded, else by a mixture over their vectors.

    Where that finds none, neighbours in time are put together.
    """
    asked_about: list[str] = []
    for entry in entries:
        asked_about += [entry["node_id"], *entry["sentences"]]
    request = llm.Request(GROUPS, GROUPS_VERSION, tuple(asked_about), "", _Groups)
    if service == llm.RECORDED:
        recorded = llm.ask([request], service)[0].value
        if recorded:
            return recorded
    groups = _mixture_groups(entry_vectors, seed) or _chunks_of_five(len(entry_vectors))
    if callable(service):
        answer = service([replace(request, prompt=groups.model_dump_json())])[0]
        return answer.value or groups
    return groups


def _mixture_groups(entry_vectors: np.ndarray, seed: int) -> _Groups | None:
    """Group by a mixture.

    ``None`` where it finds one group, or more than half as many as there are entries.
    """
    memberships = mixture_memberships(entry_vectors, seed=seed).T.tocsr()
    n_groups = memberships.shape[0]
    if not 1 < n_groups <= len(entry_vectors) // 2:
        return None
    memberships.sort_indices()
    members = []
    weights = []
    for row_start, row_end in pairwise(memberships.indptr):
        members.append(memberships.indices[row_start:row_end].tolist())
        weights.append(memberships.data[row_start:row_end].tolist())
    return _Groups(method="mixture", members=members, weights=weights)


def _chunks_of_five(n_entries: int) -> _Groups:
    """Group entries by fives, in order of time."""
    members = []
    weights = []
    for start in range(0, n_entries, CHUNK_SIZE):
        chunk_places = list(range(start, min(start + CHUNK_SIZE, n_entries)))
        members.append(chunk_places)
        weights.append([1.0] * len(chunk_places))
    return _Groups(method="chunks", members=members, weights=weights)
