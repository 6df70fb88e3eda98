"""Negative feedback: after each find, search for the question but not for what is found."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Run, run_from_scores
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.bm25 import normalisation
from memlab.retrieve.dense import cosines
from memlab.retrieve.fusion import standardised

CHUNK = 64
_NEVER = np.iinfo(np.int64).max


@stage
def negative_feedback(
    run: Run,
    bench: Bench,
    *,
    rounds: int = 10,
    start: int = 5,
    step: int = 1,
    beta: float = 0.1,
    threshold: float = 1.0,
) -> Run:
    """Search again and again for the question *not* like what is found, and put each find behind those before it.

    The first ``start`` turns of the run are found already. A round moves the question's embedding away from the mean
    direction of the finds, q − β · mean, and weighs each word of the question by 1 − β · (share of the finds that hold
    it). How much better a turn fits the moved question than the question itself, by standardised cosine and BM25, is
    added to its standardised score in the run; so β = 0 gives the run as it was, whatever ranked it. The ``step`` best
    new turns are found next. A question for which a round finds nothing is done, and the rest of its run follows.

    This asks for variety, as MMR does. Words that all finds share, such as a speaker's name, come to weigh less, which
    helps; where the pieces of one answer resemble each other, it pushes them back, and other topics come in.

    :param rounds: searches after the first, at most.
    :param start: turns of the run that count as found at the beginning.
    :param step: turns that a round may find.
    :param beta: how far to move away; less than 0 moves towards the finds, as pseudo-relevance feedback does.
    :param threshold: the lowest score of a find, in standard deviations above the mean of the question's ranking.
    :raises DataError: for a ranking of sessions, or numbers that cannot be used.

    Source: Rocchio, Relevance Feedback in Information Retrieval (1971), its negative term; Wang, Fang and Zhai, A
    Study of Methods for Negative Relevance Feedback (SIGIR 2008).

    >>> from memlab import datasets, retrieve
    >>> from memlab.retrieve.feedback import negative_feedback
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="hashing")
    >>> plain = retrieve.hybrid(bench)
    >>> negative_feedback(plain, bench, beta=0.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    if run.level != "turn":
        raise DataError("negative_feedback searches turns, and the run ranks sessions; give it a ranking of turns")
    if min(rounds, start, step) < 1:
        raise DataError(f"rounds={rounds}, start={start}, step={step}; each is at least 1")
    if not (abs(beta) <= 1 and np.isfinite(threshold)):
        raise DataError(f"beta={beta}, threshold={threshold}; beta lies between -1 and 1, and the threshold is finite")
    asked = bench.queries.with_row_index("row").select("query_id", "row", "scope")
    listed = (
        run.frame.with_columns(query=pl.col("query_id").rle_id())
        .with_columns(at=pl.Series(bench.documents("turn").at(run.frame["doc_id"]), dtype=pl.Int64))
        .join(asked, on="query_id", how="left", maintain_order="left")
    )
    order = [listed.select("query", "at", key=pl.col("rank").cast(pl.Int64) + _NEVER // 2)]
    for ranked in listed.with_columns(chunk=pl.col("query") // CHUNK).partition_by("scope", "chunk"):
        questions = _Questions.of(ranked, bench)
        found = questions.search(start=start, rounds=rounds, step=step, beta=beta, threshold=threshold)
        row, column = np.nonzero(found < _NEVER)
        finds = {"query": questions.numbers[row], "at": questions.span.start + column, "key": found[row, column]}
        order.insert(0, pl.DataFrame(finds, schema=order[0].schema))
    return _in_order(run, bench, pl.concat(order))


@dataclass(frozen=True)
class _Questions:
    """The questions of one scope, and what they search.

    :param numbers: (q,) the questions' places in the run.
    :param span: where the scope's n turns are.
    :param rank: (q, n) ranks in the run, from 1.
    :param relevance: (q, n) standardised scores of the run; what it does not hold is worth its last.
    :param weights: (q, t) how often each question holds each word.
    :param terms: (t, n) BM25 scores of single words.
    :param vectors: (q, d) the questions' embeddings, or none.
    :param embeddings: (n, d) the turns' embeddings, or none.
    """

    numbers: np.ndarray
    span: slice
    rank: np.ndarray
    relevance: np.ndarray
    weights: np.ndarray
    terms: np.ndarray
    vectors: np.ndarray | None
    embeddings: np.ndarray | None

    @classmethod
    def of(cls, ranked: pl.DataFrame, bench: Bench) -> _Questions:
        documents = bench.documents("turn")
        first = ranked.unique("query", keep="first", maintain_order=True)
        span, rows = slice(*documents.spans[first["scope"][0]]), first["row"].to_numpy()
        at = ranked["query"].rle_id().to_numpy(), ranked["at"].to_numpy() - span.start
        shape = (len(rows), span.stop - span.start)
        rank = np.full(shape, _NEVER)
        rank[at] = ranked["rank"].to_numpy()
        centred, spread = pl.col("score") - pl.col("score").mean(), pl.col("score").std(ddof=0)
        z = pl.when(spread > 1e-12).then(centred / spread).otherwise(0.0).over("query")
        relevance = np.full(shape, np.inf)
        relevance[at] = ranked.select(z=z)["z"].to_numpy()
        relevance = np.where(rank < _NEVER, relevance, relevance.min(axis=1, keepdims=True))
        words = documents.words_in(span)
        counts = words.asked([bench.query_words[row] for row in rows])
        used = np.unique(counts.indices)
        terms = words.weights(*normalisation(words, "turn"))[used].toarray()
        vectors, embeddings = bench.query_vectors, documents.embeddings
        return cls(
            first["query"].to_numpy(),
            span,
            rank,
            relevance,
            counts[:, used].toarray(),
            terms,
            None if vectors is None else vectors[rows],
            None if embeddings is None else embeddings[span],
        )

    def search(self, *, start: int, rounds: int, step: int, beta: float, threshold: float) -> np.ndarray:
        """Give (q, n) the order in which turns are found: the run's first, then those of each round."""
        found = np.where(self.rank <= start, self.rank, _NEVER)
        base = self._fit(found, 0.0)
        for number in range(rounds):
            score = self.relevance + (self._fit(found, beta) - base)
            score[(found < _NEVER) | (score < threshold)] = -np.inf
            best = np.lexsort((self.rank, -score), axis=1)[:, :step]
            row, place = np.nonzero(np.isfinite(np.take_along_axis(score, best, axis=1)))
            if not len(row):
                break
            found[row, best[row, place]] = start + 1 + number * step + place
        return found

    def _fit(self, found: np.ndarray, beta: float) -> np.ndarray:
        """Score every turn for the questions moved away from what is found: (q, n)."""
        row, column = np.nonzero(found < _NEVER)
        start = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
        held = np.add.reduceat(self.terms[:, column] > 0, start, axis=1, dtype=np.float64).T
        n_found = np.bincount(row)[:, None]
        weights = self.weights * np.maximum(1 - beta * held / n_found, 0)
        # float64, then rounded: equal turns score equally only so, whatever the shape of the batch.
        fit = standardised((weights @ self.terms).astype(np.float32))
        if self.vectors is not None and self.embeddings is not None:
            direction = _unit(np.add.reduceat(self.embeddings[column], start, axis=0, dtype=np.float64))
            fit += standardised(cosines(_unit(self.vectors - beta * direction), self.embeddings))
        return fit


def _unit(rows: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows, dtype=np.float64), where=length > 0)


def _in_order(run: Run, bench: Bench, order: pl.DataFrame) -> Run:
    """Give the run's questions their turns by key; the first time that a turn stands counts."""
    ranked = order.unique(["query", "at"], keep="first", maintain_order=True).sort("query", "key")
    ids = run.frame["query_id"].unique(maintain_order=True).to_numpy()[ranked["query"].to_numpy()]
    place = ranked.select(pl.int_range(1, pl.len() + 1).over("query"))["literal"].to_numpy()
    documents = bench.documents("turn").ids[ranked["at"].to_numpy()]
    found = run_from_scores(
        ids, documents, 1.0 / place, level="turn", k=int(run.frame["rank"].to_numpy().max(initial=1))
    )
    return replace(bench.show(found), name=run.name, provenance=run.provenance)
