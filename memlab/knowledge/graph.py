"""The graph of facts, names and words, and the relevance of each fact to a question by PageRank over it."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import polars as pl

from memlab.text.tokens import normalize_characters, stem, words
from memlab.text.words import ARTICLES, STOP_WORDS

if TYPE_CHECKING:
    import networkx

ALPHA = 0.85
"""The probability of following an edge rather than beginning anew."""
_MAX_NAME_WORDS = 4  # words; longer objects are clauses, not names


def build_graph(facts: pl.DataFrame, entities: pl.DataFrame | None = None) -> networkx.Graph:
    """Build the graph that joins the facts of one scope through names and words that they share.

    Nodes are the ids of facts, and names and words as tuples of stems. Subjects, short objects, speakers and entities
    are names; a fact is joined to the names that stand in it and to its content words, so that two facts about pottery
    meet although nobody calls pottery an entity; a name to those of which it is a part ("Ann", "Ann Lee").

    :param facts: rows of :class:`memlab.records.Fact` of one scope.
    :param entities: rows of :class:`memlab.records.Entity` of that scope.

    >>> from datetime import datetime, UTC
    >>> from memlab.knowledge import graph
    >>> from memlab.records import Fact, frame
    >>> when = datetime(2026, 3, 1, tzinfo=UTC)
    >>> known = graph.build_graph(frame(Fact, [
    ...     Fact("f1", "u", "Ann", "works at", "Acme", "stated", [], when),
    ...     Fact("f2", "u", "Acme", "is based in", "Oslo", "stated", [], when),
    ... ]))
    >>> sorted(known[("oslo",)])
    ['f2']
    """
    import networkx

    rows = facts.select("fact_id", "subject", "predicate", "object", "speaker").rows()
    names = [] if entities is None else entities["name"].to_list()
    for _, subject, _, value, speaker in rows:
        names += [subject, value if len(words(value)) <= _MAX_NAME_WORDS else "", speaker or ""]
    known = {key: name for name in reversed(names) if (key := _text_stems(name))}
    graph = networkx.Graph()
    graph.add_nodes_from((key, {"name": name}) for key, name in known.items())
    for fact, subject, predicate, value, _ in rows:
        stems = _text_stems(f"{subject} {predicate} {value}")
        graph.add_edges_from((fact, key) for key in _find_names(stems, known))
        graph.add_edges_from((fact, (word,)) for word in stems if word not in _stop_stems())
    graph.add_edges_from((key, (part,)) for key in known if len(key) > 1 for part in key if (part,) in known)
    return graph


def fact_relevance(graph: networkx.Graph, question: str) -> tuple[dict[str, float], list[str]]:
    """Score each fact by personalised PageRank from the names and words of a question.

    :returns: fact id → relevance, the greatest 1, empty for a question that names nothing known; and the names.

    Source: Haveliwala, Topic-Sensitive PageRank (WWW 2002); over such a graph: Gutiérrez et al., HippoRAG (2024).
    """
    import networkx

    stems = _text_stems(question)
    names = dict(graph.nodes(data="name")) if stems else {}
    names_found = _find_names(stems, {key for key, name in names.items() if name})
    rest = set(stems) - {word for key in names_found for word in key}
    seeds = [*names_found, *((word,) for word in sorted(rest) if (word,) in graph)]
    if not seeds:
        return {}, []
    visited = networkx.pagerank(graph, alpha=ALPHA, personalization=dict.fromkeys(seeds, 1.0), tol=1e-9, max_iter=300)
    facts = {node: share for node, share in visited.items() if isinstance(node, str)}
    most = max(facts.values(), default=0.0)
    return {fact: share / most for fact, share in facts.items() if most}, [names[key] for key in names_found]


@lru_cache(maxsize=100_000)
def _text_stems(text: str) -> tuple[str, ...]:
    """Give the stems of a text, without articles and possessive endings."""
    return tuple(stem(word for word in words(re.sub(r"'s\b", "", normalize_characters(text))) if word not in ARTICLES))


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(stem(STOP_WORDS)) | STOP_WORDS


def _find_names(stems: tuple[str, ...], names: Collection[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Find the names in a text from left to right; of several that begin at one word, the longest."""
    found, at = dict[tuple[str, ...], None](), 0
    while at < len(stems):
        keys = (stems[at : at + n] for n in range(6, 0, -1))
        key = next((key for key in keys if key in names and not _stop_stems().issuperset(key)), None)
        found |= {key: None} if key else {}
        at += len(key or " ")
    return list(found)
