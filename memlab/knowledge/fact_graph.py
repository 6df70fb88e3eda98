"""The graph of facts, names and words; relevance in it is PageRank from a question."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
import polars as pl

from memlab.text.tokens import normalize_characters, stem, words
from memlab.text.words import ARTICLES, STOP_WORDS

ALPHA = 0.85
"""The probability of following an edge rather than beginning anew."""
_TOLERANCE, _MOST_STEPS = 1e-9, 300
"""Of PageRank: the change of a node's share at which it ends, on average, and after how many steps
at the latest."""
_MAX_NAME_WORDS = 4
"""Words of the longest value that is a name; a longer one is a clause."""
_MAX_KEY_WORDS = 6
"""Words of the longest name that is looked for in a text."""

Key = tuple[str, ...]
"""A name or a word as a node: its stems."""


class NameFinder:
    """Finds the names of a graph in texts; a name of stop words alone is none.

    :param names: as tuples of stems.
    """

    def __init__(self, names: Iterable[Key]) -> None:
        self.names: set[Key] = set()
        # How many stems the longest name has that begins with a stem.
        self.longest: dict[str, int] = {}
        for key in names:
            if len(key) > _MAX_KEY_WORDS or _stop_stems().issuperset(key):
                continue
            self.names.add(key)
            self.longest[key[0]] = max(len(key), self.longest.get(key[0], 0))

    def longest_at(self, stems: Key, start: int) -> Key:
        """Give the longest name that begins at a place of a text, or an empty one."""
        for n in range(self.longest.get(stems[start], 0), 0, -1):
            key = stems[start : start + n]
            if key in self.names:
                return key
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

    places: Mapping[str | Key, int]
    names: Mapping[Key, str]
    finder: NameFinder
    steps: Any

    def neighbours(self, node: str | Key) -> list[str | Key]:
        """Give the nodes that a node is joined to, in the order in which they were added."""
        begin, end = self.steps.indptr[self.places[node] :][:2].tolist()
        joined = np.sort(self.steps.indices[begin:end]).tolist()
        nodes = list(self.places)
        return [nodes[place] for place in joined]


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
    known = _named_keys(facts, entities)
    finder = NameFinder(known)
    places: dict[str | Key, int] = {}
    for key in known:
        places[key] = len(places)
    starts: list[int] = []
    ends: list[int] = []
    edges = [_fact_edges(facts, finder), _part_edges(known)]
    if entities is not None:
        edges.append(_relation_edges(entities))
    for some in edges:
        for node, joined in some:
            place = places.setdefault(node, len(places))
            starts.extend([place] * len(joined))
            ends.extend(places.setdefault(other, len(places)) for other in joined)
    steps = _even_steps(np.array(starts, np.int32), np.array(ends, np.int32), len(places))
    return FactGraph(places, known, finder, steps)


def _even_steps(starts: np.ndarray, ends: np.ndarray, n: int) -> Any:
    """Give the probabilities of going from each of n nodes to those that it is joined to.

    :param starts: one node of each edge; an edge may come twice, either way.
    :param ends: its other node.
    """
    from scipy.sparse import csr_array

    row, column = np.concatenate([starts, ends]), np.concatenate([ends, starts])
    steps = csr_array((np.ones(len(row)), (row, column)), shape=(n, n))
    steps.sum_duplicates()
    degree = np.diff(steps.indptr)
    steps.data = np.repeat(1.0 / np.maximum(degree, 1), degree)
    return steps


def fact_relevance(graph: FactGraph, question: str) -> tuple[dict[str, float], list[str]]:
    """Score each fact by personalised PageRank from the names and words of a question.

    :returns: fact id → relevance, the greatest 1, empty for a question that names nothing known;
        and the names.

    Source: Haveliwala, Topic-Sensitive PageRank (WWW 2002); over such a graph: Gutiérrez et al.,
    HippoRAG (2024).
    """
    stems = _text_stems(question)
    if not stems:
        return {}, []
    found = _find_names(stems, graph.finder)
    rest = sorted(set(stems).difference(*found))
    alone = [(word,) for word in rest if (word,) in graph.places]
    begin = [graph.places[key] for key in (*found, *alone)]
    if not begin:
        return {}, []
    visited = dict(zip(graph.places, _visit(graph.steps, begin).tolist(), strict=True))
    return _relative_to_greatest(visited), [graph.names[key] for key in found]


def _visit(steps: Any, begin: list[int]) -> np.ndarray:
    """Give how often a walk that begins anew at some nodes is at each: (n,), of sum 1.

    It starts there too: a node that cannot be reached has exactly 0.
    """
    anew = np.zeros(steps.shape[0])
    anew[begin] = 1.0
    anew /= anew.sum()
    ends = np.flatnonzero(np.diff(steps.indptr) == 0)
    shares = anew
    for _ in range(_MOST_STEPS):
        before = shares
        stuck = float(np.cumsum(before[ends])[-1]) if len(ends) else 0.0
        shares = ALPHA * (before @ steps + stuck * anew) + (1 - ALPHA) * anew
        if np.abs(shares - before).sum() < len(shares) * _TOLERANCE:
            break
    return shares


def _relative_to_greatest(visited: Mapping[str | Key, float]) -> dict[str, float]:
    """Give of all nodes the facts, each share divided by the greatest; nothing where all are 0."""
    facts = {node: share for node, share in visited.items() if isinstance(node, str)}
    most = max(facts.values(), default=0.0)
    if not most:
        return {}
    return {fact: share / most for fact, share in facts.items()}


def _named_keys(facts: pl.DataFrame, entities: pl.DataFrame | None) -> dict[Key, str]:
    """Give each name by its stems, as it is written first: of entities, then of facts."""
    names = _names_in_facts(facts)
    if entities is not None:
        related = entities["related"].explode().drop_nulls()
        names = [*entities["name"], *related, *names]
    known: dict[Key, str] = {}
    for name in names:
        key = _text_stems(name)
        if key:
            known.setdefault(key, name)
    return known


def _names_in_facts(facts: pl.DataFrame) -> list[str]:
    """Give what facts are about, their short values, and who said them."""
    names: list[str] = []
    for about, value, speaker in facts.select("about", "value", "said_by").iter_rows():
        names.append(about)
        if len(words(value)) <= _MAX_NAME_WORDS:
            names.append(value)
        if speaker:
            names.append(speaker)
    return names


Edges = Iterator[tuple[str | Key, list[Key]]]
"""Nodes, and what each of them is joined to."""


def _fact_edges(facts: pl.DataFrame, finder: NameFinder) -> Edges:
    """Join each fact to the names that stand in it, and to its words that are no stop words."""
    stop = _stop_stems()
    for fact, about, slot, value in facts.select("fact_id", "about", "slot", "value").iter_rows():
        stems = _text_stems(f"{about} {slot} {value}")
        joined = _find_names(stems, finder)
        joined += [(word,) for word in stems if word not in stop]
        if joined:
            yield fact, joined


def _part_edges(known: Collection[Key]) -> Edges:
    """Join names of several words to the names that are one of these."""
    for key in known:
        if len(key) == 1:
            continue
        parts: list[Key] = [(word,) for word in key if (word,) in known]
        if parts:
            yield key, parts


def _relation_edges(entities: pl.DataFrame) -> Edges:
    """Join each entity to those that it is related to; not a name to itself."""
    pairs = entities.select("name", "related").explode("related").drop_nulls("related")
    for name, other in pairs.iter_rows():
        key = _text_stems(name)
        related = _text_stems(other)
        if not key or not related:
            continue
        if key != related:
            yield key, [related]


@lru_cache(maxsize=100_000)
def _text_stems(text: str) -> Key:
    """Give the stems of a text, without articles and possessive endings."""
    bare = re.sub(r"'s\b", "", normalize_characters(text))
    content = [word for word in words(bare) if word not in ARTICLES]
    return tuple(stem(content))


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(stem(STOP_WORDS)) | STOP_WORDS


def _find_names(stems: Key, names: NameFinder) -> list[Key]:
    """Find names in a text from left to right; of several that begin at one word, the longest."""
    found: dict[Key, None] = {}
    start = 0
    while start < len(stems):
        key = names.longest_at(stems, start)
        if key:
            found[key] = None
        start += max(len(key), 1)
    return list(found)
