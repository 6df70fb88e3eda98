"""The graph of facts, names and words; relevance in it is PageRank from a question."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from memlab.text.closed_word_classes import ARTICLES, STOP_WORDS
from memlab.text.tokens_and_sentences import normalize_characters, stem, words

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ALPHA = 0.85
"""The probability of following an edge rather than beginning anew."""
_TOLERANCE = 1e-9
_MOST_STEPS = 300
"""Of PageRank: the change of a node's share at which it ends, on average, and after how many steps
at the latest."""
_MAX_NAME_WORDS = 4
"""Words of the longest value that is a name; a longer one is a clause."""
_MAX_KEY_WORDS = 6
"""Words of the longest name that is looked for in a text."""

NameStems = tuple[str, ...]
"""A name or a word as a node: its stems."""
FactIdOrName = str | NameStems
"""A node of the graph."""


class NameFinder:
    """Finds the names of a graph in texts; a name of stop words alone is none.

    :param names: as tuples of stems.
    """

    def __init__(self, names: Iterable[NameStems]) -> None:
        self.names: set[NameStems] = set()
        # How many stems the longest name has that begins with a stem.
        self.longest: dict[str, int] = {}
        for name_stems in names:
            if len(name_stems) > _MAX_KEY_WORDS or _stems_of_stop_words().issuperset(name_stems):
                continue
            self.names.add(name_stems)
            self.longest[name_stems[0]] = max(len(name_stems), self.longest.get(name_stems[0], 0))

    def longest_name_at_or_empty(self, text_stems: NameStems, start: int) -> NameStems:
        """Give the longest name that begins at a place of a text, or an empty one."""
        for n_stems in range(self.longest.get(text_stems[start], 0), 0, -1):
            name_stems = text_stems[start : start + n_stems]
            if name_stems in self.names:
                return name_stems
        return ()


@dataclass(frozen=True)
class FactGraph:
    """Facts, names and words, and which of them are joined.

    :param places: the row of each node: the id of a fact, or the stems of a name or a word.
    :param names: the names among the nodes as they are written, by their stems.
    :param finder: finds them in a text.
    :param steps: (n, n) ``scipy.sparse.csr_array`` float64: the probability of going from one node
        to another, even over those that it is joined to; a row of zeros for a node that is alone.
    """

    places: Mapping[FactIdOrName, int]
    names: Mapping[NameStems, str]
    finder: NameFinder
    steps: csr_array

    def neighbours(self, node: FactIdOrName) -> list[FactIdOrName]:
        """Give the nodes that a node is joined to, in the order in which they were added."""
        first_edge, end_edge = self.steps.indptr[self.places[node] :][:2].tolist()
        joined_places = np.sort(self.steps.indices[first_edge:end_edge]).tolist()
        all_nodes = list(self.places)
        return [all_nodes[place] for place in joined_places]


def build_graph(facts: pl.DataFrame, entities: pl.DataFrame | None = None) -> FactGraph:
    """Build the graph that joins the facts of one scope through names and words that they share.

    Nodes are the ids of facts, and names and words as tuples of stems. What facts are about, short
    values, who said them, and entities are names. Edges join

    - a fact to the names that stand in it, and to its content words, so that two facts about
      pottery meet although nobody calls pottery an entity;
    - a name to those that are a part of it ("Ann", "Ann Lee");
    - two entities that are related to each other.

    :param facts: rows of :class:`memlab.records.Fact` of one scope.
    :param entities: rows of :class:`memlab.records.Entity` of that scope.

    >>> from datetime import datetime, UTC
    >>> from memlab.knowledge.fact_graph import build_graph
    >>> from memlab.records import Fact, frame
    >>> when = datetime(2026, 3, 1, tzinfo=UTC)
    >>> known = build_graph(frame(Fact, [
    ...     Fact("f1", "u", "Ann", "employer", "Acme", "stated", [], when),
    ...     Fact("f2", "u", "Acme", "seat", "Oslo", "stated", [], when),
    ... ]))
    >>> known.neighbours(("oslo",))
    ['f2']
    """
    names_by_key = _first_written_name_by_stems(facts, entities)
    finder = NameFinder(names_by_key)
    place_by_node: dict[FactIdOrName, int] = {}
    for name_key in names_by_key:
        place_by_node[name_key] = len(place_by_node)
    edge_starts: list[int] = []
    edge_ends: list[int] = []
    edge_lists = [
        _edges_from_facts_to_names_and_words(facts, finder),
        _edges_from_names_to_one_word_names(names_by_key),
    ]
    if entities is not None:
        edge_lists.append(_edges_between_related_entities(entities))
    for edge_list in edge_lists:
        for node, joined_nodes in edge_list:
            node_place = place_by_node.setdefault(node, len(place_by_node))
            edge_starts.extend([node_place] * len(joined_nodes))
            edge_ends.extend(
                place_by_node.setdefault(other_node, len(place_by_node))
                for other_node in joined_nodes
            )
    steps = _build_transition_matrix(
        np.array(edge_starts, np.int32), np.array(edge_ends, np.int32), len(place_by_node)
    )
    return FactGraph(place_by_node, names_by_key, finder, steps)


def _build_transition_matrix(
    edge_starts: np.ndarray, edge_ends: np.ndarray, n_nodes: int
) -> csr_array:
    """Give the probabilities of going from each of n nodes to those that it is joined to.

    :param edge_starts: one node of each edge; an edge may come twice, either way.
    :param edge_ends: its other node.
    """
    from scipy.sparse import csr_array

    edge_rows = np.concatenate([edge_starts, edge_ends])
    edge_columns = np.concatenate([edge_ends, edge_starts])
    steps = csr_array(
        (np.ones(len(edge_rows)), (edge_rows, edge_columns)), shape=(n_nodes, n_nodes)
    )
    steps.sum_duplicates()
    degree = np.diff(steps.indptr)
    steps.data = np.repeat(1.0 / np.maximum(degree, 1), degree)
    return steps


def score_facts_and_find_names(
    graph: FactGraph, question: str
) -> tuple[dict[str, float], list[str]]:
    """Score each fact by personalised PageRank from the names and words of a question.

    :returns: fact id → relevance, the greatest 1, empty for a question that names nothing known;
        and the names.

    Source: Haveliwala, Topic-Sensitive PageRank (WWW 2002); over such a graph: Gutiérrez et al.,
    HippoRAG (2024).
    """
    stems = _stems_without_articles(question)
    if not stems:
        return {}, []
    found_names = _find_names_in_text(stems, graph.finder)
    other_words = sorted(set(stems).difference(*found_names))
    single_words = [
        (question_word,) for question_word in other_words if (question_word,) in graph.places
    ]
    begin_places = [graph.places[node_key] for node_key in (*found_names, *single_words)]
    if not begin_places:
        return {}, []
    visited = dict(
        zip(graph.places, _personalised_pagerank(graph.steps, begin_places).tolist(), strict=True)
    )
    return _scale_fact_shares_to_greatest(visited), [
        graph.names[node_key] for node_key in found_names
    ]


def _personalised_pagerank(transitions: csr_array, start_nodes: list[int]) -> np.ndarray:
    """Give how often a walk that begins anew at some nodes is at each: (n,), of sum 1.

    It starts there too: a node that cannot be reached has exactly 0.
    """
    start_shares = np.zeros(transitions.shape[0])
    start_shares[start_nodes] = 1.0
    start_shares /= start_shares.sum()
    dead_ends = np.flatnonzero(np.diff(transitions.indptr) == 0)
    visit_shares = start_shares
    for _ in range(_MOST_STEPS):
        shares_before = visit_shares
        stuck_share = float(np.cumsum(shares_before[dead_ends])[-1]) if len(dead_ends) else 0.0
        visit_shares = (
            ALPHA * (shares_before @ transitions + stuck_share * start_shares)
            + (1 - ALPHA) * start_shares
        )
        if np.abs(visit_shares - shares_before).sum() < len(visit_shares) * _TOLERANCE:
            break
    return visit_shares


def _scale_fact_shares_to_greatest(
    share_by_node: Mapping[FactIdOrName, float],
) -> dict[str, float]:
    """Give of all nodes the facts, each share divided by the greatest; nothing where all are 0."""
    fact_shares = {node: share for node, share in share_by_node.items() if isinstance(node, str)}
    greatest_share = max(fact_shares.values(), default=0.0)
    if not greatest_share:
        return {}
    return {fact: share / greatest_share for fact, share in fact_shares.items()}


def _first_written_name_by_stems(
    facts: pl.DataFrame, entities: pl.DataFrame | None
) -> dict[NameStems, str]:
    """Give each name by its stems, as it is written first: of entities, then of facts."""
    all_names = _list_names_in_facts(facts)
    if entities is not None:
        related_names = entities["related"].explode().drop_nulls()
        all_names = [*entities["name"], *related_names, *all_names]
    names_by_key: dict[NameStems, str] = {}
    for name in all_names:
        name_key = _stems_without_articles(name)
        if name_key:
            names_by_key.setdefault(name_key, name)
    return names_by_key


def _list_names_in_facts(facts: pl.DataFrame) -> list[str]:
    """Give what facts are about, their short values, and who said them."""
    fact_names: list[str] = []
    for about, value, speaker in facts.select("about", "value", "said_by").iter_rows():
        fact_names.append(about)
        if len(words(value)) <= _MAX_NAME_WORDS:
            fact_names.append(value)
        if speaker:
            fact_names.append(speaker)
    return fact_names


Edges = Iterator[tuple[FactIdOrName, list[NameStems]]]
"""Nodes, and what each of them is joined to."""


def _edges_from_facts_to_names_and_words(facts: pl.DataFrame, name_finder: NameFinder) -> Edges:
    """Join each fact to the names that stand in it, and to its words that are no stop words."""
    stop_stems = _stems_of_stop_words()
    for fact_id, about, slot, value in facts.select(
        "fact_id", "about", "slot", "value"
    ).iter_rows():
        fact_stems = _stems_without_articles(f"{about} {slot} {value}")
        joined_nodes = _find_names_in_text(fact_stems, name_finder)
        joined_nodes += [(word,) for word in fact_stems if word not in stop_stems]
        if joined_nodes:
            yield fact_id, joined_nodes


def _edges_from_names_to_one_word_names(names: Collection[NameStems]) -> Edges:
    """Join names of several words to the names that are one of these."""
    for name_key in names:
        if len(name_key) == 1:
            continue
        part_keys: list[NameStems] = [(word,) for word in name_key if (word,) in names]
        if part_keys:
            yield name_key, part_keys


def _edges_between_related_entities(entities: pl.DataFrame) -> Edges:
    """Join each entity to those that it is related to; not a name to itself."""
    related_pairs = entities.select("name", "related").explode("related").drop_nulls("related")
    for name, other_name in related_pairs.iter_rows():
        name_key = _stems_without_articles(name)
        related_key = _stems_without_articles(other_name)
        if not name_key or not related_key:
            continue
        if name_key != related_key:
            yield name_key, [related_key]


@lru_cache(maxsize=100_000)
def _stems_without_articles(text: str) -> NameStems:
    """Give the stems of a text, without articles and possessive endings."""
    bare_text = re.sub(r"'s\b", "", normalize_characters(text))
    content_words = [word for word in words(bare_text) if word not in ARTICLES]
    return tuple(stem(content_words))


@cache
def _stems_of_stop_words() -> frozenset[str]:
    return frozenset(stem(STOP_WORDS)) | STOP_WORDS


def _find_names_in_text(text_stems: NameStems, name_finder: NameFinder) -> list[NameStems]:
    """Find names in a text from left to right; of several that begin at one word, the longest."""
    found_names: dict[NameStems, None] = {}
    stem_place = 0
    while stem_place < len(text_stems):
        name_key = name_finder.longest_name_at_or_empty(text_stems, stem_place)
        if name_key:
            found_names[name_key] = None
        stem_place += max(len(name_key), 1)
    return list(found_names)
