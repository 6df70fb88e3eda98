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
from memlab.knowledge.graph import KnowledgeGraph
from memlab.records import top

_BLOCK, _TOPICS = 256, 3
_NEEDED = ("fact_id", "scope", "subject", "predicate", "object", "status", "repeats", "last_access")
_COMPONENTS = ("vector", "graph", "confidence")
# What a product of float32 gives beyond this depends on the size of the batch.
_DECIMALS = 6
_RESULT = {
    "query_id": pl.String(), "rank": pl.UInt32(), "fact_id": pl.String(), "score": pl.Float64(),
    **dict.fromkeys(_COMPONENTS, pl.Float64()), "entities": pl.List(pl.String()),
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
    >>> held = resolve(frame(Fact, [
    ...     Fact("f1", "u", "Ann", "works at", "Acme", "stated", [], when),
    ...     Fact("f2", "u", "Bo", "plays", "chess", "stated", [], when),
    ... ])).facts
    >>> asked = pl.DataFrame({"scope": ["u"], "text": ["Where does Ann work?"]})
    >>> search.search_facts(asked, confidence.score(held, now=when)).select("fact_id", "score").rows()
    [('f1', 0.6), ('f2', 0.3)]
    """
    weights = settings or RecallSettings()
    _check(facts, k)
    asked = _asked(questions)
    pool = candidates(facts, superseded=superseded)
    known = (graph or graphs.build(pool)) if weights.graph else None
    named = None if known is None else graphs.seeds(known, asked)
    vectors = _vectors(asked, pool["said"].to_list(), encoder if weights.vector else None)
    parts = [pl.DataFrame(schema=_RESULT).drop("entities")]
    for rows, its in _by_scope(asked, pool):
        statements = pool[its]
        start = np.flatnonzero(statements["is_head"].to_numpy())
        heads = statements[start]
        values = {"confidence": heads["confidence"].to_numpy()[None, :] * bool(weights.confidence)}
        values["vector"] = np.maximum.reduceat(_cosines(vectors, rows, its), start, axis=1)
        near = np.zeros((len(rows), len(its)))
        if known is not None and named is not None:
            near = graphs.rate(known, rows, named, statements["fact_id"])
        best = np.maximum.reduceat(near, start, axis=1)
        greatest = best.max(axis=1, keepdims=True)
        values["graph"] = np.divide(best, greatest, out=np.zeros_like(best), where=greatest > 0)
        parts.append(_ranked(asked["query_id"].gather(rows), heads, values, weights, k))
    return _with_entities(pl.concat(parts), asked, named).select(list(_RESULT))


def candidates(facts: pl.DataFrame, *, superseded: bool = False) -> pl.DataFrame:
    """List the statements that are compared with questions: each fact that holds, followed by its repeats.

    :returns: the facts with ``is_head`` (false for a repeat) and ``said`` (the text that is compared).
    """
    rows = facts.with_row_index("head").with_columns(is_head=pl.col("status") != "repeat", said=statement())
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
    _positive(k)
    asked = _asked(questions)
    pool = summaries.with_columns(said=pl.Series(summary_texts(summaries), dtype=pl.String), last_access="start")
    vectors = _vectors(asked, pool["said"].to_list(), encoder)
    parts = [pl.DataFrame(schema={**_RESULT, "session_id": pl.String()})]
    columns = ["query_id", "rank", "session_id", "score"]
    for rows, its in _by_scope(asked, pool):
        ids = asked["query_id"].gather(rows)
        parts.append(_ranked(ids, pool[its], {"score": _cosines(vectors, rows, its)}, None, k).select(columns))
    return pl.concat([part.select(columns) for part in parts])


def summary_texts(summaries: pl.DataFrame) -> list[str]:
    """Write each summary as one text, with the header of time, participants and topics that turns can have."""
    fields = {
        "time": summaries["start"].dt.strftime("%-d %B %Y"),
        "participants": summaries["participants"].list.join(", "),
        "topics": summaries["topics"].list.head(_TOPICS).list.join(", "),
    }
    filled = {name: column.replace("", None) for name, column in fields.items()}
    return (headers(filled, summaries.height) + summaries["summary"]).to_list()


def _positive(k: int) -> None:
    if k < 1:
        raise DataError(f"k is {k}; a ranking needs at least one place")


def _check(facts: pl.DataFrame, k: int) -> None:
    _positive(k)
    missing = [name for name in (*_NEEDED, "confidence") if name not in facts.columns]
    if missing:
        raise DataError(
            f"facts have no column {missing[0]!r}; give the facts of knowledge.resolve, scored by confidence.score"
        )


def _asked(questions: pl.DataFrame) -> pl.DataFrame:
    missing = [name for name in ("scope", "text") if name not in questions.columns]
    if missing:
        raise DataError(f"questions have no column {missing[0]!r}; expected scope, text and perhaps query_id")
    asked = questions
    if "query_id" not in questions.columns:
        asked = questions.with_columns(query_id=pl.int_range(pl.len()).cast(pl.String))
    repeated = asked.filter(pl.col("query_id").is_duplicated())["query_id"]
    if len(repeated):
        raise DataError(f"query id {repeated[0]!r} stands twice; ids are unique")
    return asked.select("query_id", "scope", "text")


def _vectors(asked: pl.DataFrame, said: list[str], encoder: Encoder | None) -> tuple[np.ndarray, np.ndarray]:
    """Encode questions and texts; vectors of no dimension, whose cosine is 0, without an encoder."""
    if encoder is None or not said or not asked.height:
        return np.zeros((asked.height, 0), np.float32), np.zeros((len(said), 0), np.float32)
    texts = asked["text"].to_list()
    return encoder.encode(texts, kind="query", progress=False), encoder.encode(said, kind="document", progress=False)


def _by_scope(asked: pl.DataFrame, pool: pl.DataFrame) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Give the questions of each scope in blocks, with the rows of its pool."""
    its = dict(pool.with_row_index("i").group_by("scope").agg(pl.col("i").sort()).iter_rows())
    for scope, rows in asked.with_row_index("i").group_by("scope", maintain_order=True).agg("i").iter_rows():
        for at in range(0, len(rows) if scope in its else 0, _BLOCK):
            yield np.asarray(rows[at : at + _BLOCK]), np.asarray(its[scope])


def _cosines(vectors: tuple[np.ndarray, np.ndarray], rows: np.ndarray, its: np.ndarray) -> np.ndarray:
    product: np.ndarray = (vectors[0][rows] @ vectors[1][its].T).astype(np.float64)
    return np.clip(product, 0.0, 1.0)


def _ranked(
    ids: pl.Series, heads: pl.DataFrame, values: dict[str, np.ndarray], weights: RecallSettings | None, k: int
) -> pl.DataFrame:
    """Sum the components and keep the best ``k`` of each question."""
    if weights is not None:
        values = values | {"score": sum(getattr(weights, name) * values[name] for name in _COMPONENTS)}
    score = np.round(np.broadcast_to(values["score"], (len(ids), heads.height)), _DECIMALS)
    row, column = top(score, k)
    found = heads[column].with_columns(
        pl.Series("row", row),
        ids.gather(row).alias("query_id"),
        *(pl.Series(n, np.broadcast_to(v, score.shape)[row, column]) for n, v in values.items() if n != "score"),
        score=score[row, column],
    )
    order = ["row", "score", "last_access", "said"]
    found = found.sort(order, descending=[False, True, True, False], nulls_last=True, maintain_order=True)
    found = found.with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over("row"))
    return found.filter(pl.col("rank") <= k).select(
        [n for n in _RESULT if n in found.columns] + ["session_id"] * ("fact_id" not in found.columns)
    )


def _with_entities(found: pl.DataFrame, asked: pl.DataFrame, named: pl.DataFrame | None) -> pl.DataFrame:
    if named is None:
        return found.with_columns(entities=pl.lit([], pl.List(pl.String)))
    ids = asked["query_id"].gather(named["query"])
    names = named.with_columns(query_id=ids).group_by("query_id").agg(entities=pl.col("name"))
    return found.join(names, on="query_id", how="left", maintain_order="left").with_columns(
        pl.col("entities").fill_null(pl.lit([], pl.List(pl.String)))
    )
