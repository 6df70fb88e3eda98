"""The graph of what is known: entities, words and facts; and how near each fact is to what a question names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.knowledge import _phrases
from memlab.knowledge._phrases import Phrases

if TYPE_CHECKING:
    import networkx
    from scipy.sparse import csr_array

ALPHA = 0.85
_STEPS, _BLOCK = 100, 256
_NODES = {"node": pl.Int64(), "scope": pl.String(), "kind": pl.String(), "name": pl.String(), "fact_id": pl.String()}
_EDGES = {"source": pl.Int64(), "target": pl.Int64(), "kind": pl.String(), "weight": pl.Float64()}


@dataclass(frozen=True)
class KnowledgeGraph:
    """One undirected graph for each scope, in two frames.

    :param nodes: ``node`` (row number), ``scope``, ``kind`` (``entity``, ``term``: a content word of facts, ``fact``),
        ``name`` and ``fact_id`` (of facts); the nodes of a scope stand together, its facts in their order.
    :param edges: ``source``, ``target``, ``kind`` (``subject``, ``object``, ``mentions``, ``term``, ``alias``,
        ``relation``) and ``weight``; between two nodes at most one of each kind.
    :param phrases: how the entities of each scope are called, for finding them in a text.
    """

    nodes: pl.DataFrame
    edges: pl.DataFrame
    phrases: dict[str, Phrases] = field(repr=False)

    def network(self, scope: str) -> networkx.Graph:
        """Give the graph of one scope as a :class:`networkx.Graph`, weights of parallel edges summed.

        :raises DataError: for a scope that it does not have.
        """
        import networkx

        nodes = self.nodes.filter(scope=scope)
        if nodes.is_empty():
            scopes = self.nodes["scope"].unique(maintain_order=True).to_list()
            raise DataError(f"the graph has no scope {scope!r}; it has {', '.join(scopes[:10])}")
        graph = networkx.Graph()
        for node, kind, name, fact_id in nodes.select("node", "kind", "name", "fact_id").iter_rows():
            graph.add_node(node, kind=kind, name=name, fact_id=fact_id)
        within = self.edges.join(nodes.select(source="node"), on="source", how="semi")
        for source, target, weight in (
            within.group_by("source", "target", maintain_order=True).agg(pl.col("weight").sum()).iter_rows()
        ):
            graph.add_edge(source, target, weight=weight)
        return graph


def build(
    facts: pl.DataFrame, entities: pl.DataFrame | None = None, relations: pl.DataFrame | None = None
) -> KnowledgeGraph:
    """Join facts through what they speak of, each scope by itself.

    Subjects, short objects, speakers and what an index of entities names are entities; the content words of a fact are
    nodes too, so that two facts about pottery meet although no rule calls pottery an entity. A fact is joined to its
    subject, its object, every entity whose name stands in it, and its words; a person to those who share a part of the
    name ("Ann Lee", "Ann"); entities to each other where a relation says so. Every edge weighs 1.

    :param facts: rows of :class:`memlab.records.Fact`; where they are resolved, near-equal names are one entity.
    :param entities: rows of :class:`memlab.records.Entity`.
    :param relations: rows of :class:`memlab.records.Relation`.
    :raises DataError: for facts without their columns.

    >>> from datetime import datetime, UTC
    >>> from memlab.knowledge import graph
    >>> from memlab.records import Fact, frame
    >>> known = graph.build(frame(Fact, [
    ...     Fact("f1", "u", "Ann", "works at", "Acme", "stated", [], datetime(2026, 3, 1, tzinfo=UTC)),
    ...     Fact("f2", "u", "Acme", "is based in", "Oslo", "stated", [], datetime(2026, 3, 1, tzinfo=UTC)),
    ... ]))
    >>> known.nodes.filter(kind="entity")["name"].to_list()
    ['Ann', 'Acme', 'Oslo']
    """
    missing = [name for name in ("fact_id", "scope", "subject", "predicate", "object") if name not in facts.columns]
    if missing:
        raise DataError(f"facts have no column {missing[0]!r}; give rows of memlab.records.Fact")
    nodes, edges = [pl.DataFrame(schema=_NODES)], [pl.DataFrame(schema=_EDGES)]
    phrases: dict[str, Phrases] = {}
    first = 0
    for (scope,), its in facts.group_by("scope", maintain_order=True):
        named = None if entities is None else entities.filter(pl.col("scope") == scope)
        related = None if relations is None else relations.filter(pl.col("scope") == scope)
        called = _phrases.collect(its, named, related)
        part = _nodes(str(scope), its, called, first)
        nodes.append(part)
        edges.append(_edges(its, related, called, first))
        phrases[str(scope)] = called
        first += part.height
    return KnowledgeGraph(pl.concat(nodes), pl.concat(edges), phrases)


def seeds(graph: KnowledgeGraph, questions: pl.DataFrame) -> pl.DataFrame:
    """Find the entities and words that questions name.

    Whole words only, whatever their case, ending or possessive; the longest name first, so that "New York" is not
    "York"; a part of a person's name and initials ("NYC") stand for the name. What is left over is matched word by
    word with the words of facts.

    :param questions: ``scope`` and ``text``.
    :returns: ``query`` (row of the question), ``node``, ``name`` and ``kind``; no row for a question that names
        nothing known.
    """
    start = dict(graph.nodes.group_by("scope").agg(pl.col("node").first()).iter_rows())
    asked = [
        (query, start[scope] + place)
        for query, (scope, text) in enumerate(questions.select("scope", "text").iter_rows())
        if scope in graph.phrases
        for place in graph.phrases[scope].asked(text)
    ]
    pairs = pl.DataFrame(asked, schema={"query": pl.Int64, "node": pl.Int64}, orient="row")
    return pairs.join(graph.nodes.select("node", "name", "kind"), on="node", how="left", maintain_order="left")


def relevance(graph: KnowledgeGraph, questions: pl.DataFrame, *, alpha: float = ALPHA) -> pl.DataFrame:
    """Rate how near each fact is to what a question names: personalised PageRank from its entities and words.

    A walk starts at one of the seeds, all alike, follows an edge with probability ``alpha``, or begins anew; the share
    of its time that it spends at a fact is the relevance. A name that many facts share says little of each.

    :param questions: ``scope`` and ``text``.
    :returns: ``query`` (row of the question), ``fact_id``, ``relevance`` in [0, 1]: every fact of the scope in its
        order; all 0 for a question that names nothing known (see :func:`seeds`).
    :raises DataError: when ``alpha`` is not within (0, 1).

    Source: Haveliwala, Topic-Sensitive PageRank (WWW 2002); over such a graph: Gutiérrez et al., HippoRAG (2024).
    """
    columns = {"query": pl.Int64, "fact_id": pl.String, "relevance": pl.Float64}
    parts = [pl.DataFrame(schema=columns)]
    named = seeds(graph, questions)
    facts = dict(graph.nodes.filter(kind="fact").group_by("scope").agg("fact_id").iter_rows())
    asked = questions.select("scope").with_row_index("query").filter(pl.col("scope").is_in(list(facts)))
    for scope, rows in asked.group_by("scope", maintain_order=True).agg("query").iter_rows():
        ids = pl.Series(facts[scope], dtype=pl.String)
        for at in range(0, len(rows), _BLOCK):
            block = np.asarray(rows[at : at + _BLOCK])
            rated = rate(graph, block, named, ids, alpha=alpha)
            values = [np.repeat(block, len(ids)), pl.concat([ids] * len(block)), rated.ravel()]
            parts.append(pl.DataFrame(dict(zip(columns, values, strict=True)), schema=columns))
    return pl.concat(parts).sort("query", maintain_order=True)


def rate(
    graph: KnowledgeGraph, rows: np.ndarray, seeds: pl.DataFrame, fact_ids: pl.Series, *, alpha: float = ALPHA
) -> np.ndarray:
    """Give the relevance of facts of one scope to questions of that scope, as an array.

    :param rows: rows of the questions, the column ``query`` of ``seeds``.
    :param seeds: as :func:`seeds` gives them.
    :param fact_ids: facts of one scope; one that the graph does not have is given 0.
    :returns: (q, n).
    :raises DataError: when ``alpha`` is not within (0, 1).
    """
    if not 0 < alpha < 1:
        raise DataError(f"alpha is {alpha}; the probability of following an edge lies between 0 and 1")
    rated = np.zeros((len(rows), len(fact_ids)))
    of = pl.DataFrame({"fact_id": fact_ids}).with_row_index("i").join(graph.nodes.drop_nulls("fact_id"), on="fact_id")
    if of.is_empty():
        return rated
    scope = of["scope"][0]
    nodes = graph.nodes.filter(scope=scope)
    start = int(nodes["node"][0])
    at = pl.DataFrame({"query": rows.astype(np.int64)}).with_row_index("column")
    begin = seeds.join(at, on="query").filter(pl.col("node").is_between(start, start + nodes.height - 1))
    origin = np.zeros((nodes.height, len(rows)))
    origin[begin["node"].to_numpy() - start, begin["column"].to_numpy()] = 1.0
    visited = pagerank(_walk(graph, start, nodes.height), origin, alpha=alpha)
    rated[:, of["i"].to_numpy()] = visited[of["node"].to_numpy() - start].T
    return rated


def pagerank(walk: csr_array, origin: np.ndarray, *, alpha: float = ALPHA) -> np.ndarray:
    """Run personalised PageRank for many origins at once.

    The number of steps is fixed, so that no question depends on the others of its block; what is left of the error is
    below alpha¹⁰⁰, 10⁻⁷ for 0.85.

    :param walk: (n, n) weight of each edge from column to row.
    :param origin: (n, q) weights of where each walk begins; a column of zeros gives zeros.
    :returns: (n, q), columns that sum to 1 or 0.
    """
    out = np.asarray(walk.sum(axis=0)).ravel()
    step = walk * np.divide(1.0, out, out=np.zeros_like(out), where=out > 0)[None, :]
    total = origin.sum(axis=0)
    begin = np.divide(origin, total, out=np.zeros_like(origin), where=total > 0)
    visited, ends = begin, out == 0
    for _ in range(_STEPS):
        # A node without an edge sends the walk back to its beginning.
        visited = alpha * (step @ visited + begin * visited[ends].sum(axis=0)) + (1 - alpha) * begin
    return visited


def _walk(graph: KnowledgeGraph, start: int, size: int) -> csr_array:
    from scipy.sparse import csr_array

    its = graph.edges.filter(pl.col("source").is_between(start, start + size - 1))
    ends = its.select("source", "target").to_numpy().T - start
    half = csr_array((its["weight"].to_numpy(), tuple(ends)), shape=(size, size))
    return (half + half.T).tocsr()


def _nodes(scope: str, facts: pl.DataFrame, called: Phrases, first: int) -> pl.DataFrame:
    kinds = (
        ["entity"] * called.n_entities + ["term"] * (len(called.names) - called.n_entities) + ["fact"] * facts.height
    )
    statements = facts.select(said=_phrases.statement())["said"].to_list()
    ids = [None] * len(called.names) + facts["fact_id"].to_list()
    place = range(first, first + len(kinds))
    columns = {
        "node": place,
        "scope": [scope] * len(kinds),
        "kind": kinds,
        "name": called.names + statements,
        "fact_id": ids,
    }
    return pl.DataFrame(columns, schema=_NODES)


def _edges(facts: pl.DataFrame, relations: pl.DataFrame | None, called: Phrases, first: int) -> pl.DataFrame:
    of_facts = len(called.names)
    rows = [(place, of_facts + fact, kind) for fact, links in enumerate(called.links) for place, kind in links]
    rows += [(a, b, "alias") for a, b in called.aliases]
    for subject, obj in () if relations is None else relations.select("subject", "object").iter_rows():
        ends = (called.place(subject), called.place(obj))
        if None not in ends and ends[0] != ends[1]:
            rows.append((min(ends), max(ends), "relation"))  # type: ignore[type-var, arg-type]
    frame = pl.DataFrame(rows, schema={"source": pl.Int64, "target": pl.Int64, "kind": pl.String}, orient="row")
    return frame.unique(maintain_order=True).with_columns(
        pl.col("source") + first, pl.col("target") + first, weight=pl.lit(1.0)
    )
