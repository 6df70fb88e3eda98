"""Asking a memory something else on a question's behalf: its rewritings, its parts, what its first hits mention."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from pydantic import BaseModel

from memlab import llm
from memlab.errors import DataError, at_least
from memlab.records import Run
from memlab.retrieve.arrays import cosines
from memlab.retrieve.bench import Bench
from memlab.retrieve.bm25 import bm25
from memlab.retrieve.dense import dense
from memlab.retrieve.fusion import combsum, hybrid, rrf_lists
from memlab.retrieve.late import late
from memlab.retrieve.ranking import rank

RETRIEVERS: Mapping[str, Callable[..., Run]] = {f.__name__: f for f in (dense, bm25, late, hybrid, combsum)}


def ask(bench: Bench, asked: pl.DataFrame, *, retriever: str = "hybrid", k: int = 200) -> pl.DataFrame:
    """Search turns with other texts than the questions' own, all of them in one batch.

    :param asked: ``query_id`` and ``text``: any number of rows a question, in the order in which they are asked.
    :param retriever: ``dense``, ``bm25``, ``late``, ``hybrid`` or ``combsum``.
    :returns: ``query_id``, ``part`` (the row of ``asked``), ``doc_id``, ``rank``, ``score``.
    :raises DataError: for an unknown retriever, or a question that the bench does not hold.

    >>> import polars as pl
    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.subqueries import ask
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder=None)
    >>> question = bench.queries["query_id"][0]
    >>> asked = pl.DataFrame({"query_id": [question] * 2, "text": ["a new bike", "the old bike"]})
    >>> ask(bench, asked, retriever="bm25", k=3)["part"].to_list()
    [0, 0, 0, 1, 1, 1]
    """
    if retriever not in RETRIEVERS:
        raise DataError(f"retriever is {retriever!r}; choose from {', '.join(RETRIEVERS)}")
    parts = asked.select("query_id", "text").with_row_index("part")
    queries = bench.asked(parts, "scope", "timestamp").with_columns(query_id=pl.col("part").cast(pl.String))
    hits = RETRIEVERS[retriever](bench.with_queries(queries), level="turn", k=k).frame
    return (
        hits.with_columns(part=pl.col("query_id").cast(pl.UInt32))
        .drop("query_id")
        .join(parts.select("part", "query_id"), on="part", how="left", maintain_order="left")
        .select("query_id", "part", "doc_id", "rank", "score")
    )


def written(
    asked: pl.DataFrame, service: str, *, task: str, shape: type[BaseModel], system: str, what: str
) -> list[Any]:
    """Let a language model write something for each question, and warn where it does not answer.

    :param asked: a row a question: what the model reads, by name, each a text or a list of texts.
    :param task: of the request, as ``shape`` and ``system``; see :class:`memlab.llm.Request`.
    :param what: is written, in the plural.
    :returns: for each row an instance of ``shape``, or ``None``.
    """
    requests = [
        llm.Request(task, 1, tuple(_texts(row)), json.dumps(row, ensure_ascii=False), shape, system)
        for row in asked.iter_rows(named=True)
    ]
    answers = llm.ask(requests, service)
    if line := llm.unanswered(answers, what):
        warnings.warn(line, stacklevel=4)
    return [answer.value for answer in answers]


def _texts(row: Mapping[str, Any]) -> list[str]:
    return [text for value in row.values() for text in ([value] if isinstance(value, str) else value)]


def by_vectors(bench: Bench, vectors: np.ndarray, *, k: int = 200) -> Run:
    """Rank turns by their cosine with given vectors.

    :param vectors: (q, d) unit rows, one for each of the bench's queries.
    :raises DataError: without embeddings.
    """
    turns = bench.documents("turn").vectors()
    scored = ((rows, span, cosines(vectors[rows], turns[span])) for rows, span in bench.by_scope("turn"))
    return rank(bench, scored, level="turn", k=k)


def one_of_each(kinds: Sequence[str], choices: Sequence[str]) -> None:
    """Refuse kinds that there are not, or twice.

    :raises DataError: naming what there is.
    """
    if not kinds or not set(kinds) <= set(choices) or len(set(kinds)) < len(kinds):
        raise DataError(f"kinds={tuple(kinds)}; choose from {', '.join(choices)}, each once")


def joined(run: Run, bench: Bench, hits: pl.DataFrame, *, weight: float = 0.5, guard: bool = True, k: int = 200) -> Run:
    """Fuse a run with what other queries found for its questions, by guarded reciprocal rank fusion.

    :param hits: what :func:`ask` gave; ``weight`` may stand in it for each row, else ``weight`` goes for all.
    :param weight: of an expansion's list; the run's own list weighs 1.
    :raises DataError: for a negative weight.
    """
    at_least(0, weight=weight)
    if "weight" not in hits.columns:
        hits = hits.with_columns(weight=pl.lit(float(weight)))
    columns = ["query_id", "doc_id", "rank", "score", "weight"]
    lists = pl.concat([run.frame.with_columns(weight=pl.lit(1.0)).select(columns), hits.select(columns)])
    return bench.show(rrf_lists(lists, run, k=k, guard=guard))


def texts_of(run: Run, bench: Bench, k: int) -> pl.DataFrame:
    """Give the first ``k`` turns of each question with their place among the documents: what an expansion reads.

    :returns: ``query_id``, ``doc_id``, ``rank``, ``score``, ``at``, ``text``.
    """
    documents = bench.documents("turn")
    first = run.frame.filter(pl.col("rank") <= k)
    at = documents.at(first["doc_id"])
    texts = pl.Series([documents.texts[place] for place in at], dtype=pl.String)
    return first.with_columns(at=at, text=texts)
