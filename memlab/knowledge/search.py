"""Which facts answer a question: similarity, nearness in the graph and confidence, in one score."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from memlab.config import RecallSettings
from memlab.embed import Encoder
from memlab.embed.text import headers
from memlab.errors import DataError
from memlab.knowledge import graph as graphs
from memlab.knowledge._phrases import statement
from memlab.knowledge.confidence import need_scored
from memlab.knowledge.graph import KnowledgeGraph
from memlab.records import top

_BLOCK, _TOPICS = 256, 3
_NEEDED = ("fact_id", "scope", "subject", "predicate", "object", "status", "repeats", "last_access")
_SIMILARITY = RecallSettings(vector=1, graph=0, confidence=0)
# What a product of float32 gives beyond this depends on the size of the batch.
_DECIMALS = 6
_RESULT = {
    "query_id": pl.String(), "rank": pl.UInt32(), "fact_id": pl.String(), "score": pl.Float64(),
    "vector": pl.Float64(), "graph": pl.Float64(), "confidence": pl.Float64(), "entities": pl.List(pl.String()),
}  # fmt: skip


def search_facts(
    questions: pl.DataFrame,
    facts: pl.DataFrame,
    *,
    encoder: Encoder | None = None,
    graph: KnowledgeGraph | None = None,
    settings: RecallSettings | None = None,
    k: int = 10,
    superseded: bool = False,
) -> pl.DataFrame:
    """Rank the facts of each question's scope: weight · vector + weight · graph + weight · confidence.

    Each component lies in [0, 1]:

    - ``vector``: cosine of question and "subject predicate object", below 0 taken as 0;
    - ``graph``: personalised PageRank from what the question names, divided by the greatest of the question's
      candidates; 0 for all where it names nothing known, and then ``entities`` is empty;
    - ``confidence``: as :func:`memlab.knowledge.confidence.score` gave it.

    A repeated fact is one candidate: its similarity and nearness are the best of its statements. Equal scores: the one
    heard last comes first, then the order of the text.

    :param questions: ``scope`` and ``text``; ``query_id``, or the row number stands for it.
    :param facts: ``Resolved.facts``, scored at the time of reading by :func:`memlab.knowledge.confidence.score`.
    :param encoder: for the similarity; ``None``: 0 for all.
    :param graph: of these facts; built from them alone where it is not given.
    :param settings: the weights; a component of weight 0 is not computed and given as 0.
    :param superseded: rank what no longer holds too (its confidence is 0).
    :returns: ``query_id``, ``rank`` (from 1), ``fact_id``, ``score``, the components, and ``entities``: what of the
        question stands in the graph.
    :raises DataError: for missing columns or ``k`` below 1.

    >>> from datetime import datetime, UTC
    >>> import polars as pl
    >>> from memlab.knowledge import confidence, resolve, search
    >>> from memlab.records import Fact, frame
    >>> when = datetime(2026, 3, 1, tzinfo=UTC)
    >>> facts = resolve(frame(Fact, [
    ...     Fact("f1", "u", "Ann", "works at", "Acme", "stated", [], when),
    ...     Fact("f2", "u", "Bo", "plays", "chess", "stated", [], when),
    ... ])).facts
    >>> asked = pl.DataFrame({"scope": ["u"], "text": ["Where does Ann work?"]})
    >>> search.search_facts(asked, confidence.score(facts, now=when)).select("fact_id", "score").rows()
    [('f1', 0.6), ('f2', 0.3)]
    """
    asked, weights = _asked(questions, k), settings or RecallSettings()
    need_scored(facts, *_NEEDED)
    pool = candidates(facts, superseded=superseded)
    graph = (graph or graphs.build(pool)) if weights.graph else None
    return _ranked(asked, pool, weights, k, encoder, graph)


def candidates(facts: pl.DataFrame, *, superseded: bool = False) -> pl.DataFrame:
    """List the statements that are compared with questions: each fact that holds, followed by its repeats.

    :returns: the facts with ``is_head`` (false for a repeat) and ``statement`` (the text that is compared).
    """
    rows = facts.with_row_index("head").with_columns(is_head=pl.col("status") != "repeat", statement=statement())
    heads = rows.filter("is_head", True if superseded else pl.col("status") == "active")
    again = rows.filter(~pl.col("is_head")).drop("head")
    # A repeat of what no longer holds has no head here.
    again = again.join(heads.select("scope", "head", repeats="fact_id"), on=["scope", "repeats"], how="inner")
    both = pl.concat([heads, again.select(heads.columns)])
    return both.sort("head", "is_head", descending=[False, True], maintain_order=True).drop("head")


def search_summaries(questions: pl.DataFrame, summaries: pl.DataFrame, *, encoder: Encoder, k: int = 3) -> pl.DataFrame:
    """Rank the session summaries of each question's scope by the similarity of their texts.

    :param questions: ``scope`` and ``text``; ``query_id``, or the row number stands for it.
    :param summaries: rows of :class:`memlab.records.Summary`.
    :returns: ``query_id``, ``rank`` (from 1), ``session_id`` and ``score`` (cosine); ties: the latest session first.
    :raises DataError: for ``k`` below 1.
    """
    asked = _asked(questions, k)
    pool = summaries.select(
        "scope", fact_id="session_id", last_access="start", is_head=pl.lit(True), confidence=pl.lit(0.0),
        statement=pl.Series(summary_texts(summaries), dtype=pl.String),
    )  # fmt: skip
    ranking = _ranked(asked, pool, _SIMILARITY, k, encoder)
    return ranking.select("query_id", "rank", pl.col("fact_id").alias("session_id"), "score")


def summary_texts(summaries: pl.DataFrame) -> list[str]:
    """Write each summary as one text, with the header of time, participants and topics that turns can have."""
    fields = {
        "time": summaries["start"].dt.strftime("%-d %B %Y"),
        "participants": summaries["participants"].list.join(", "),
        "topics": summaries["topics"].list.head(_TOPICS).list.join(", "),
    }
    filled = {name: column.replace("", None) for name, column in fields.items()}
    return (headers(filled, summaries.height) + summaries["summary"]).to_list()


def _asked(questions: pl.DataFrame, k: int) -> pl.DataFrame:
    if k < 1:
        raise DataError(f"k is {k}; a ranking needs at least one place")
    missing = [name for name in ("scope", "text") if name not in questions.columns]
    if missing:
        raise DataError(f"questions have no column {missing[0]!r}; expected scope, text and perhaps query_id")
    if "query_id" not in questions.columns:
        questions = questions.with_columns(query_id=pl.int_range(pl.len()).cast(pl.String))
    repeated = questions.filter(pl.col("query_id").is_duplicated())["query_id"]
    if len(repeated):
        raise DataError(f"query id {repeated[0]!r} stands twice; ids are unique")
    return questions.select("query_id", "scope", "text")


def _ranked(
    asked: pl.DataFrame,
    pool: pl.DataFrame,
    weights: RecallSettings,
    k: int,
    encoder: Encoder | None,
    graph: KnowledgeGraph | None = None,
) -> pl.DataFrame:
    """Sum the components of every statement of a question's scope, and keep the best ``k`` facts of each question."""
    named = None if graph is None else graphs.seeds(graph, asked)
    # Vectors of no dimension have the cosine 0.
    queries, documents = np.zeros((asked.height, 0)), np.zeros((pool.height, 0))
    if encoder is not None and weights.vector and asked.height and pool.height:
        queries = encoder.encode(asked["text"].to_list(), kind="query", progress=False)
        documents = encoder.encode(pool["statement"].to_list(), kind="document", progress=False)
    parts = [pl.DataFrame(schema=_RESULT).drop("entities")]
    for rows, its in _by_scope(asked, pool):
        statements = pool[its]
        start = np.flatnonzero(statements["is_head"].to_numpy())
        heads = statements[start]
        cosines = np.clip((queries[rows] @ documents[its].T).astype(np.float64), 0.0, 1.0)
        near = np.zeros((len(rows), len(its)))
        if graph is not None and named is not None:
            near = graphs.rate(graph, rows, named, statements["fact_id"])
        near = np.maximum.reduceat(near, start, axis=1)
        greatest = near.max(axis=1, keepdims=True)
        values = {
            "vector": np.maximum.reduceat(cosines, start, axis=1),
            "graph": np.divide(near, greatest, out=np.zeros_like(near), where=greatest > 0),
            "confidence": np.tile(heads["confidence"].to_numpy() * bool(weights.confidence), (len(rows), 1)),
        }
        values["score"] = np.round(sum(getattr(weights, name) * value for name, value in values.items()), _DECIMALS)
        row, column = top(values["score"], k)
        best = heads.select("fact_id", "last_access", "statement")[column].with_columns(
            pl.Series("row", row),
            asked["query_id"].gather(rows[row]).alias("query_id"),
            *(pl.Series(name, value[row, column]) for name, value in values.items()),
        )
        order = ["row", "score", "last_access", "statement"]
        best = best.sort(order, descending=[False, True, True, False], nulls_last=True, maintain_order=True)
        best = best.with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over("row"))
        parts.append(best.filter(pl.col("rank") <= k).select(parts[0].columns))
    ranking = pl.concat(parts)
    entities = pl.DataFrame(schema={"query_id": pl.String, "entities": pl.List(pl.String)})
    if named is not None:
        ids = asked["query_id"].gather(named["query"])
        entities = named.with_columns(query_id=ids).group_by("query_id").agg(entities=pl.col("name"))
    ranking = ranking.join(entities, on="query_id", how="left", maintain_order="left")
    return ranking.with_columns(pl.col("entities").fill_null(pl.lit([], pl.List(pl.String))))


def _by_scope(asked: pl.DataFrame, pool: pl.DataFrame) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Give the questions of each scope in blocks, with the rows of its pool."""
    places = dict(pool.with_row_index("i").group_by("scope").agg(pl.col("i").sort()).iter_rows())
    for scope, rows in asked.with_row_index("i").group_by("scope", maintain_order=True).agg("i").iter_rows():
        for at in range(0, len(rows) if scope in places else 0, _BLOCK):
            yield np.asarray(rows[at : at + _BLOCK]), np.asarray(places[scope])
