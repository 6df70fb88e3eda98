"""The graph of what is known: names, words and facts; and how near each fact is to what a question names."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING

import polars as pl

from memlab.errors import DataError
from memlab.language.tokens import plain, stem, words
from memlab.language.words import ARTICLES, STOP_WORDS

if TYPE_CHECKING:
    import networkx

ALPHA = 0.85
_LONGEST = 4  # words; longer objects are clauses, not names


def build(facts: pl.DataFrame, entities: pl.DataFrame | None = None) -> networkx.Graph:
    """Join the facts of one scope through what they speak of.

    Nodes are ``("fact", id)``, ``("name", words)`` and ``("word", stem)``. Subjects, short objects, speakers and
    entities are names; a fact is joined to its subject, its object, the names that stand in it and its content words,
    so that two facts about pottery meet although nobody calls pottery an entity; a name to those of which it is a part
    ("Ann", "Ann Lee").

    :param facts: rows of :class:`memlab.records.Fact` of one scope.
    :param entities: rows of :class:`memlab.records.Entity` of that scope.

    >>> from datetime import datetime, UTC
    >>> from memlab.knowledge import graph
    >>> from memlab.records import Fact, frame
    >>> when = datetime(2026, 3, 1, tzinfo=UTC)
    >>> known = graph.build(frame(Fact, [
    ...     Fact("f1", "u", "Ann", "works at", "Acme", "stated", [], when),
    ...     Fact("f2", "u", "Acme", "is based in", "Oslo", "stated", [], when),
    ... ]))
    >>> sorted(node for node in known[("name", ("oslo",))] if node[0] == "fact")
    [('fact', 'f2')]
    """
    import networkx

    graph = networkx.Graph()
    told = facts.select("fact_id", "subject", "predicate", "object", "speaker").rows() if facts.height else []
    named = [] if entities is None else entities["name"].to_list()
    names = {key: name for name in reversed(named) if (key := _key(name))}
    for _, subject, _, value, speaker in told:
        short = value if len(words(value)) <= _LONGEST else ""
        names |= {key: text for text in (subject, short, speaker or "") if (key := _key(text)) and key not in names}
    for key, name in names.items():
        graph.add_node(("name", key), name=name)
    for fact, subject, predicate, value, _ in told:
        stems = _key(f"{subject} {predicate} {value}")
        for key in dict.fromkeys([*_spans(stems, names.keys()), *_spans(_key(subject), names.keys())]):
            graph.add_edge(("fact", fact), ("name", key))
        for word in stems:
            if not _stopped(word):
                graph.add_edge(("fact", fact), ("word", word))
    for key in names:
        for part in key if len(key) > 1 else ():
            if (part,) in names:
                graph.add_edge(("name", key), ("name", (part,)))
    return graph


def seeds(graph: networkx.Graph, question: str) -> list[tuple[str, object]]:
    """Find the names and words of a graph that a question names: the longest names first, each word once.

    >>> from memlab.knowledge import graph
    >>> import networkx
    >>> known = networkx.Graph([(("name", ("york",)), ("fact", "f1")), (("name", ("new", "york")), ("fact", "f2"))])
    >>> graph.seeds(known, "Who lives in New York?")
    [('name', ('new', 'york'))]
    """
    stems = _key(question)
    names = {key for kind, key in graph if kind == "name"} if stems else set()
    found = _spans(stems, names)
    rest = set(stems) - {word for key in found for word in key}
    return [("name", key) for key in found] + [("word", word) for word in sorted(rest) if ("word", word) in graph]


def relevance(graph: networkx.Graph, question: str, *, alpha: float = ALPHA) -> dict[str, float]:
    """Rate how near each fact is to what a question names: personalised PageRank from its names and words.

    :param alpha: the probability of following an edge rather than beginning anew.
    :returns: fact id → relevance, the greatest 1; empty for a question that names nothing known.
    :raises DataError: when ``alpha`` is not within (0, 1).

    Source: Haveliwala, Topic-Sensitive PageRank (WWW 2002); over such a graph: Gutiérrez et al., HippoRAG (2024).
    """
    import networkx

    if not 0 < alpha < 1:
        raise DataError(f"alpha is {alpha}; the probability of following an edge lies between 0 and 1")
    begin = seeds(graph, question)
    if not begin:
        return {}
    visited = networkx.pagerank(graph, alpha=alpha, personalization=dict.fromkeys(begin, 1.0), tol=1e-9, max_iter=300)
    facts = {node[1]: share for node, share in visited.items() if node[0] == "fact"}
    most = max(facts.values(), default=0.0)
    return {fact: share / most for fact, share in facts.items()} if most else {}


@lru_cache(maxsize=100_000)
def _key(text: str) -> tuple[str, ...]:
    """Give the stems of a text, without articles and possessive endings."""
    return tuple(stem(word for word in words(re.sub(r"'s\b", "", plain(text))) if word not in ARTICLES))


@lru_cache(maxsize=1)
def _stops() -> frozenset[str]:
    return frozenset(stem(STOP_WORDS)) | STOP_WORDS


def _stopped(word: str) -> bool:
    return word in _stops()


def _spans(stems: tuple[str, ...], names: Collection[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Find the names that stand in a text, the longest first; what one covers is not looked at again."""
    free, found = [True] * len(stems), list[tuple[str, ...]]()
    for length in range(min(6, len(stems)), 0, -1):
        for at in range(len(stems) - length + 1):
            key = stems[at : at + length]
            if key in names and all(free[at : at + length]) and not all(map(_stopped, key)):
                free[at : at + length] = [False] * length
                found.append(key)
    return list(dict.fromkeys(found))
