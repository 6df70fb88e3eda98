"""Ranking of facts for a question by similarity, relevance in the graph and confidence.

The graph joins facts, names and words; relevance in it is PageRank from the question.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.config import RecallSettings
from memlab.embed import Encoder
from memlab.errors import DataError, require_extra
from memlab.knowledge.confidence import ConfidenceSettings, score
from memlab.knowledge.supersession import Resolved
from memlab.text.tokens import normalize_characters, stem, words
from memlab.text.words import ARTICLES, STOP_WORDS

if TYPE_CHECKING:
    import networkx


ALPHA = 0.85
"""The probability of following an edge rather than beginning anew."""
_MAX_NAME_WORDS = 4  # words; longer objects are clauses, not names


def build_graph(facts: pl.DataFrame, entities: pl.DataFrame | None = None) -> networkx.Graph:
    """Build the graph that joins the facts of one scope through names and words that they share.

    Nodes are the ids of facts, and names and words as tuples of stems. Subjects, short objects,
    speakers and entities are names; a fact is joined to the names that stand in it and to its
    content words, so that two facts about pottery meet although nobody calls pottery an entity; a
    name to those of which it is a part ("Ann", "Ann Lee").

    :param facts: rows of :class:`memlab.records.Fact` of one scope.
    :param entities: rows of :class:`memlab.records.Entity` of that scope.

    >>> from datetime import datetime, UTC
    >>> from memlab.knowledge.fact_search import build_graph
    >>> from memlab.records import Fact, frame
    >>> when = datetime(2026, 3, 1, tzinfo=UTC)
    >>> known = build_graph(frame(Fact, [
    ...     Fact("f1", "u", "Ann", "works at", "Acme", "stated", [], when),
    ...     Fact("f2", "u", "Acme", "is based in", "Oslo", "stated", [], when),
    ... ]))
    >>> sorted(known[("oslo",)])
    ['f2']
    """
    with require_extra("knowledge", "the graph of facts"):
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
    graph.add_edges_from(
        (key, (part,)) for key in known if len(key) > 1 for part in key if (part,) in known
    )
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
    names = dict(graph.nodes(data="name")) if stems else {}
    names_found = _find_names(stems, {key for key, name in names.items() if name})
    rest = set(stems) - {word for key in names_found for word in key}
    seeds = [*names_found, *((word,) for word in sorted(rest) if (word,) in graph)]
    if not seeds:
        return {}, []
    begin = dict.fromkeys(seeds, 1.0)
    # networkx 3.6 starts evenly on all nodes and stops at a tolerance, so that what cannot be reached
    # would keep some of it; started at the seeds, it has exactly none.
    visited = networkx.pagerank(
        graph, alpha=ALPHA, personalization=begin, nstart=begin, tol=1e-9, max_iter=300
    )
    facts = {node: share for node, share in visited.items() if isinstance(node, str)}
    most = max(facts.values(), default=0.0)
    return {fact: share / most for fact, share in facts.items() if most}, [
        names[key] for key in names_found
    ]


@lru_cache(maxsize=100_000)
def _text_stems(text: str) -> tuple[str, ...]:
    """Give the stems of a text, without articles and possessive endings."""
    return tuple(
        stem(
            word
            for word in words(re.sub(r"'s\b", "", normalize_characters(text)))
            if word not in ARTICLES
        )
    )


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(stem(STOP_WORDS)) | STOP_WORDS


def _find_names(
    stems: tuple[str, ...], names: Collection[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """Find the names in a text from left to right; of several that begin at one word, the longest."""
    found, at = dict[tuple[str, ...], None](), 0
    while at < len(stems):
        keys = (stems[at : at + n] for n in range(6, 0, -1))
        key = next(
            (key for key in keys if key in names and not _stop_stems().issuperset(key)), None
        )
        found |= {key: None} if key else {}
        at += len(key or " ")
    return list(found)


_RESULT_SCHEMA = {
    "query_id": pl.String(), "rank": pl.UInt32(), "fact_id": pl.String(), "score": pl.Float64(),
    "vector": pl.Float64(), "graph": pl.Float64(), "confidence": pl.Float64(), "entities": pl.List(pl.String()),
}  # fmt: skip
_DECIMALS = 6  # what a product of float32 gives beyond these depends on the size of the batch


def search_facts(
    questions: pl.DataFrame,
    facts: pl.DataFrame,
    *,
    encoder: Encoder | None = None,
    entities: pl.DataFrame | None = None,
    settings: RecallSettings | None = None,
    k: int = 10,
    superseded: bool = False,
) -> pl.DataFrame:
    """Rank the facts of each question's scope: .4 · vector + .3 · graph + .3 · confidence, unless settings say else.

    Each component lies in [0, 1]:

    - ``vector``: cosine of question and "subject predicate object", below 0 taken as 0;
    - ``graph``: personalised PageRank from what the question names, divided by the greatest; 0
      where it names nothing known, and then ``entities`` is empty;
    - ``confidence``: as :func:`memlab.knowledge.confidence.score` gave it.

    Of equal scores the fact heard last comes first.

    :param questions: ``scope`` and ``text``; ``query_id``, or the row number stands for it.
    :param facts: ``Resolved.facts``, scored by :func:`memlab.knowledge.confidence.score`; repeats
        are not ranked.
    :param encoder: for the similarity; ``None``: 0 for all.
    :param entities: rows of :class:`memlab.records.Entity`: names of the graph beside those of the
        facts.
    :param settings: the weights; a component of weight 0 is not computed and given as 0.
    :param superseded: rank what no longer holds too (its confidence is 0).
    :returns: ``query_id``, ``rank`` (from 1), ``fact_id``, ``score``, the components, and
        ``entities``: what of the question stands in the graph.
    :raises DataError: for missing columns or ``k`` below 1.

    >>> from datetime import datetime, UTC
    >>> import polars as pl
    >>> from memlab.knowledge import confidence, fact_search, resolve
    >>> from memlab.records import Fact, frame
    >>> when = datetime(2026, 3, 1, tzinfo=UTC)
    >>> facts = resolve(frame(Fact, [
    ...     Fact("f1", "u", "Ann", "works at", "Acme", "stated", [], when),
    ...     Fact("f2", "u", "Ben", "lives in", "Rome", "stated", [], when),
    ... ])).facts
    >>> asked = pl.DataFrame({"scope": ["u"], "text": ["Where does Ben live?"]})
    >>> fact_search.search_facts(asked, confidence.score(facts, now=when))["fact_id"].to_list()
    ['f2', 'f1']
    """
    weights = settings or RecallSettings()
    needed = [
        (questions, "scope"),
        (questions, "text"),
        *((facts, c) for c in ("fact_id", "status", "confidence")),
    ]
    missing = [name for table, name in needed if name not in table.columns]
    if missing or k < 1:
        raise DataError(
            f"no column {missing[0]!r} to rank facts by"
            if missing
            else f"k is {k}; give at least 1"
        )
    if "query_id" not in questions.columns:
        questions = questions.with_columns(query_id=pl.int_range(pl.len()).cast(pl.String))
    pool = facts.filter(
        pl.col("status") != "repeat", True if superseded else pl.col("status") == "active"
    )
    parts = [pl.DataFrame(schema={"_place": pl.UInt32(), **_RESULT_SCHEMA})]
    for (scope,), asked in questions.with_row_index("_place").group_by(
        "scope", maintain_order=True
    ):
        scope_facts = pool.filter(scope=scope)
        cosines = np.zeros((asked.height, scope_facts.height))
        if encoder is not None and weights.vector and scope_facts.height:
            cosines = similarities(asked["text"], fact_statements(scope_facts), encoder)
        named = None if entities is None else entities.filter(scope=scope)
        network = build_graph(scope_facts, named) if weights.graph else None
        rows = asked.select("_place", "query_id", "text").rows()
        for (place, query, text), cosine in zip(rows, cosines, strict=True):
            relevance, names = ({}, []) if network is None else fact_relevance(network, text)
            nearness = pl.Series(
                [relevance.get(fact, 0.0) for fact in scope_facts["fact_id"]], dtype=pl.Float64
            )
            ranked = scope_facts.select(
                "fact_id", "last_access", _place=pl.lit(place, pl.UInt32), query_id=pl.lit(query),
                vector=pl.Series(cosine), graph=nearness,
                confidence=pl.col("confidence") * bool(weights.confidence), entities=pl.lit(names, pl.List(pl.String)),
            )  # fmt: skip
            total: Any = sum(pl.col(name) * weight for name, weight in weights)
            best = ranked.with_columns(score=total.round(_DECIMALS)).sort(
                "score", "last_access", descending=True, nulls_last=True, maintain_order=True
            )
            parts.append(
                best.head(k).with_row_index("rank", offset=1).select("_place", *_RESULT_SCHEMA)
            )
    return pl.concat(parts).sort("_place", "rank").drop("_place")


def current_first_shares(
    questions: pl.DataFrame,
    labels: pl.DataFrame,
    resolved: Resolved,
    *,
    conditions: Mapping[str, tuple[ConfidenceSettings, bool]],
    encoder: Encoder | None = None,
) -> pl.DataFrame:
    """Measure how often the current value of a fact ranks above every value that it replaced, with and without decay.

    Facts are ranked by .4 · vector + .3 · confidence; a tie counts as not.

    :param questions: ``query_id``, ``scope``, ``text`` and ``now``, the time at which it is asked.
    :param labels: ``query_id``, ``fact_id`` and ``current``: whether it states the current value or
        one before.
    :param conditions: by name: the constants of confidence, and whether what was superseded is left
        out.
    :returns: ``condition``, ``n`` and ``share``.
    :raises DataError: for no questions.
    """
    if questions.is_empty():
        raise DataError(
            "there is no question whose current value is to be ranked; give some that name stale messages"
        )
    heads = resolved.facts.select("fact_id", head=pl.coalesce("repeats", "fact_id"))
    status = pl.when(pl.col("status") == "repeat").then("status").otherwise(pl.lit("active"))
    rows = []
    for name, (settings, without_superseded) in conditions.items():
        facts = (
            resolved.facts
            if without_superseded
            else resolved.facts.with_columns(status, superseded=pl.lit(False))
        )
        how: dict[str, Any] = {
            "encoder": encoder,
            "settings": RecallSettings(graph=0),
            "k": max(facts.height, 1),
        }
        ranked = pl.concat(
            search_facts(asked, score(facts, now=now, settings=settings), **how)
            for (now,), asked in questions.group_by("now", maintain_order=True)
        )
        scores = labels.join(heads, on="fact_id").join(
            ranked.select("query_id", "score", head="fact_id"), on=["query_id", "head"], how="left"
        )
        current, stale = (
            pl.col("score").filter(side).max() for side in (pl.col("current"), ~pl.col("current"))
        )
        above = (
            scores.group_by("query_id")
            .agg(above=current > pl.coalesce(stale, -1.0))["above"]
            .fill_null(False)
        )
        rows.append((name, above.len(), above.mean() or 0.0))
    return pl.DataFrame(rows, schema=["condition", "n", "share"], orient="row")


def fact_statements(facts: pl.DataFrame) -> pl.Series:
    """Write facts as "subject predicate object", the text that a question is compared with.

    Their sentences say more (whose, when), but rank the current value below a stale one more often.
    """
    return facts.select(
        statement=pl.concat_str("subject", "predicate", "object", separator=" ")
    ).to_series()


def fact_sentences(facts: pl.DataFrame) -> pl.Series:
    """Give the sentence of each fact, or subject, predicate and object where it has none."""
    return facts.select(pl.coalesce("text", fact_statements(facts).alias("said"))).to_series()


def similarities(questions: pl.Series, texts: pl.Series, encoder: Encoder) -> np.ndarray:
    """Give the cosines of questions and texts, clipped to [0, 1]: (q, n)."""
    asked = encoder.encode(questions.to_list(), kind="query", progress=False)
    documents = encoder.encode(texts.to_list(), kind="document", progress=False)
    return np.clip((asked @ documents.T).astype(np.float64), 0.0, 1.0)
