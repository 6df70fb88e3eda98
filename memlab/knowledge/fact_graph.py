"""The graph of facts, names and words; relevance in it is PageRank from a question."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import polars as pl

from memlab.errors import require_extra
from memlab.text.tokens import normalize_characters, stem, words
from memlab.text.words import ARTICLES, STOP_WORDS

if TYPE_CHECKING:
    import networkx

ALPHA = 0.85
"""The probability of following an edge rather than beginning anew."""
_MAX_NAME_WORDS = 4
"""Words of the longest value that is a name; a longer one is a clause."""
_MAX_KEY_WORDS = 6
"""Words of the longest name that is looked for in a text."""

Key = tuple[str, ...]
"""A name or a word as a node: its stems."""


def build_graph(facts: pl.DataFrame, entities: pl.DataFrame | None = None) -> networkx.Graph:
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
    >>> sorted(known[("oslo",)])
    ['f2']
    """
    with require_extra("knowledge", "the graph of facts"):
        import networkx

    known = _named_keys(facts, entities)
    graph = networkx.Graph()
    for key, name in known.items():
        graph.add_node(key, name=name)
    graph.add_edges_from(_fact_edges(facts, known))
    graph.add_edges_from(_part_edges(known))
    if entities is not None:
        graph.add_edges_from(_relation_edges(entities))
    return graph


def fact_relevance(graph: networkx.Graph, question: str) -> tuple[dict[str, float], list[str]]:
    """Score each fact by personalised PageRank from the names and words of a question.

    :returns: fact id → relevance, the greatest 1, empty for a question that names nothing known;
        and the names.

    Source: Haveliwala, Topic-Sensitive PageRank (WWW 2002); over such a graph: Gutiérrez et al.,
    HippoRAG (2024).
    """
    with require_extra("knowledge", "the graph of facts"):
        import networkx

    stems = _text_stems(question)
    if not stems:
        return {}, []
    named = {key: name for key, name in graph.nodes(data="name") if name}
    found = _find_names(stems, named)
    rest = sorted(set(stems).difference(*found))
    alone = [(word,) for word in rest if (word,) in graph]
    begin = dict.fromkeys([*found, *alone], 1.0)
    if not begin:
        return {}, []
    # networkx 3.6 starts evenly on all nodes and stops at a tolerance, so that what cannot be
    # reached would keep some of it; started at the seeds, it has exactly none.
    visited = networkx.pagerank(
        graph, alpha=ALPHA, personalization=begin, nstart=begin, tol=1e-9, max_iter=300
    )
    return _relative_to_greatest(visited), [named[key] for key in found]


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


def _fact_edges(facts: pl.DataFrame, known: Collection[Key]) -> Iterator[tuple[str, Key]]:
    """Join each fact to the names that stand in it, and to its words that are no stop words."""
    for fact, about, slot, value in facts.select("fact_id", "about", "slot", "value").iter_rows():
        stems = _text_stems(f"{about} {slot} {value}")
        for key in _find_names(stems, known):
            yield fact, key
        for word in stems:
            if word not in _stop_stems():
                yield fact, (word,)


def _part_edges(known: Collection[Key]) -> Iterator[tuple[Key, Key]]:
    """Join names of several words to the names that are one of these."""
    for key in known:
        if len(key) == 1:
            continue
        for word in key:
            if (word,) in known:
                yield key, (word,)


def _relation_edges(entities: pl.DataFrame) -> Iterator[tuple[Key, Key]]:
    """Join each entity to those that it is related to; not a name to itself."""
    pairs = entities.select("name", "related").explode("related").drop_nulls("related")
    for name, other in pairs.iter_rows():
        key = _text_stems(name)
        related = _text_stems(other)
        if not key or not related:
            continue
        if key != related:
            yield key, related


@lru_cache(maxsize=100_000)
def _text_stems(text: str) -> Key:
    """Give the stems of a text, without articles and possessive endings."""
    bare = re.sub(r"'s\b", "", normalize_characters(text))
    content = [word for word in words(bare) if word not in ARTICLES]
    return tuple(stem(content))


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(stem(STOP_WORDS)) | STOP_WORDS


def _find_names(stems: Key, names: Collection[Key]) -> list[Key]:
    """Find names in a text from left to right; of several that begin at one word, the longest."""
    found: dict[Key, None] = {}
    start = 0
    while start < len(stems):
        key = _longest_name(stems[start : start + _MAX_KEY_WORDS], names)
        if key:
            found[key] = None
        start += max(len(key), 1)
    return list(found)


def _longest_name(stems: Key, names: Collection[Key]) -> Key:
    """Give the longest name that a text begins with, or an empty one; stop words alone are none."""
    for n in range(len(stems), 0, -1):
        key = stems[:n]
        if key in names and not _stop_stems().issuperset(key):
            return key
    return ()
