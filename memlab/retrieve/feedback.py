"""Feedback: search again for what is like the first results (``prf``), or for what is not (``negative_feedback``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError, at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.arrays import cosines, standardised, starts, units
from memlab.retrieve.bench import Bench
from memlab.retrieve.ranking import added, depth, in_order, of_turns, rank
from memlab.retrieve.subqueries import by_vectors, one_of_each

FEEDBACK = ("rm3", "rocchio")

# Of RM3: what the feedback adds weighs as much as the question; words in more than a tenth of the turns (and more than
# five), such as the speakers' names, tell none of them apart. Of Rocchio: the weight of the feedback beside the
# question's 1.
RM3_MIX, RM3_COMMON, RM3_FEW, ROCCHIO_BETA = 0.5, 0.1, 5, 0.75

# Scores that differ by less than this part of the largest are ties that were put in order.
FLAT = 1e-4

# Questions that are worked on at a time: by RM3, and by negative feedback.
CHUNK, QUERIES = 256, 64
_NEVER = np.iinfo(np.int64).max


@stage
def prf(
    run: Run,
    bench: Bench,
    *,
    n_docs: int = 5,
    n_terms: int = 10,
    weight: float = 0.5,
    kinds: Sequence[str] = FEEDBACK,
    k: int = 200,
) -> Run:
    """Search again with what the first results say: pseudo-relevance feedback, without a language model.

    ``rm3`` is BM25 with the question's words and the words that the first results share; ``rocchio`` is dense search
    with the question's vector moved towards theirs. Their scores are added to the run's, each list standardised over
    what it holds, since ranks forget how much better one turn is than the next. Results that the run lists at a score
    of 0 or less teach nothing; a question without others keeps its ranking.

    :param n_docs: how many of the first results are taken as relevant.
    :param n_terms: how many of their words are added.
    :param weight: of the scores of each kind; those of the run weigh 1.
    :param kinds: ``rm3``, ``rocchio`` or both; a bench without an encoder has ``rm3`` alone.
    :raises DataError: for an unknown kind, a count that is not positive, a negative weight, or ``rocchio`` without
        embeddings.

    Source: Lavrenko and Croft, Relevance-Based Language Models (SIGIR 2001); RM3: Abdul-Jaleel et al., UMass at TREC
    2004; Rocchio, Relevance Feedback in Information Retrieval (1971).

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve import prf
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> plain = retrieve.bm25(bench, k=5)
    >>> prf(plain, bench, weight=0.0, k=5).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    of_turns(run, "prf")
    one_of_each(kinds, FEEDBACK)
    at_least(1, n_docs=n_docs, n_terms=n_terms)
    at_least(0, weight=weight)
    first = run.frame.filter((pl.col("rank") <= n_docs) & (pl.col("score") > 0))
    query = bench.asked(first, "row")["row"].to_numpy()
    at = bench.documents("turn").at(first["doc_id"])
    lists = []
    for kind in kinds:
        if kind == "rm3":
            again = rank(bench, _rm3_scores(bench, query, at, n_terms), level="turn", k=k)
        else:
            again = by_vectors(bench, _rocchio(bench, query, at), k=k)
        lists.append(again.frame.join(first, on="query_id", how="semi", maintain_order="left"))
    return bench.show(_summed([run.frame, *lists], [1.0, *[weight] * len(lists)], k))


def _rocchio(bench: Bench, query: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Move the queries' vectors towards the mean of their feedback: (q, d) unit rows."""
    if bench.query_vectors is None:
        raise DataError("the queries are not embedded; make the bench with an encoder, or use kinds=('rm3',)")
    relevant = _share(query, at, len(bench.query_vectors), len(bench.documents("turn").ids))
    return units(bench.query_vectors + ROCCHIO_BETA * (relevant @ bench.documents("turn").vectors()))


def _rm3_scores(
    bench: Bench, query: np.ndarray, at: np.ndarray, n_terms: int
) -> Iterator[tuple[np.ndarray, slice, np.ndarray]]:
    """Give BM25 scores of the weighted words of question and feedback, as :func:`bm25.bm25_scores` does."""
    documents = bench.documents("turn")
    for rows, span in bench.by_scope("turn"):
        words = documents.words_in(span)
        postings = words.weights(*words.normalisation)
        scores = np.zeros((len(rows), span.stop - span.start), np.float32)
        common = words.frequency > max(RM3_FEW, RM3_COMMON * words.n)
        asked = _parts(words.asked([bench.query_words[row] for row in rows]))
        inside = np.isin(query, rows)
        used, column = np.unique(at[inside] - span.start, return_inverse=True)
        terms = _parts(words.counts[:, used].T.tocsr())
        relevant = _share(np.searchsorted(rows, query[inside]), column, len(rows), len(used))
        for start in range(0, len(rows) if len(words.number) else 0, CHUNK):
            chunk = slice(start, start + CHUNK)
            shared = (relevant[chunk] @ terms).toarray()
            shared[:, common] = 0
            mixed = RM3_MIX * asked[chunk].toarray() + (1 - RM3_MIX) * _largest(shared, n_terms)
            scores[chunk] = (postings.T @ mixed.T).T
        yield rows, span, scores


def _share(row: np.ndarray, column: np.ndarray, n_rows: int, n_columns: int) -> Any:
    """Count pairs, as parts of their row's number: a sparse (n_rows, n_columns)."""
    from scipy.sparse import csr_array

    total = np.bincount(row, minlength=n_rows)
    return csr_array((1.0 / total[row], (row, column)), shape=(n_rows, n_columns))


def _parts(counts: Any) -> Any:
    """Give each row's counts as parts of their sum."""
    total = np.repeat(counts.sum(axis=1), np.diff(counts.indptr))
    counts.data = counts.data / total
    return counts


def _largest(shares: np.ndarray, n: int) -> np.ndarray:
    """Keep each row's ``n`` largest numbers, and what ties with the last of them; scaled to sum to 1."""
    if n < shares.shape[1]:
        threshold = np.partition(shares, -n, axis=1)[:, -n, None]
        shares = np.where(shares >= threshold, shares, 0.0)
    total = shares.sum(axis=1, keepdims=True)
    return np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)


def _summed(lists: list[pl.DataFrame], weights: list[float], k: int) -> Run:
    """Add scores, each list's standardised within the query; what a list does not hold has that list's lowest."""
    score, query = pl.col("score"), "query_id"
    spread = score.std().over(query)
    flat = spread.fill_null(0) <= FLAT * score.abs().max().over(query)
    gain = pl.when(flat).then(0.0).otherwise((score - score.min().over(query)) / spread)
    parts = [part.select(query, "doc_id", gain=weight * gain) for part, weight in zip(lists, weights, strict=True)]
    return added(parts, level="turn", k=k)


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

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve.feedback import negative_feedback
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> plain = retrieve.hybrid(bench)
    >>> negative_feedback(plain, bench, beta=0.0).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    of_turns(run, "negative_feedback")
    at_least(1, rounds=rounds, start=start, step=step)
    if not (abs(beta) <= 1 and np.isfinite(threshold)):
        raise DataError(f"beta={beta}, threshold={threshold}; beta lies between -1 and 1, and the threshold is finite")
    at = pl.Series(bench.documents("turn").at(run.frame["doc_id"]), dtype=pl.Int64)
    listed = bench.asked(run.frame.with_columns(query=pl.col("query_id").rle_id(), at=at), "row", "scope")
    order = [listed.select("query", "at", key=pl.col("rank").cast(pl.Int64) + _NEVER // 2)]
    for ranked in listed.with_columns(chunk=pl.col("query") // QUERIES).partition_by("scope", "chunk"):
        questions = _Questions(ranked, bench)
        taken = questions.search(start=start, rounds=rounds, step=step, beta=beta, threshold=threshold)
        row, column = np.nonzero(taken < _NEVER)
        finds = {"query": questions.numbers[row], "at": questions.span.start + column, "key": taken[row, column]}
        order.insert(0, pl.DataFrame(finds, schema=order[0].schema))
    # The first time that a turn stands counts.
    ranked = pl.concat(order).unique(["query", "at"], keep="first", maintain_order=True).sort("query", "key")
    ids = run.frame["query_id"].unique(maintain_order=True).gather(ranked["query"])
    return in_order(run, bench, ranked.select("at", query_id=ids), k=depth(run))


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

    def __init__(self, ranked: pl.DataFrame, bench: Bench) -> None:
        documents = bench.documents("turn")
        first = ranked.unique("query", keep="first", maintain_order=True)
        self.numbers, rows = first["query"].to_numpy(), first["row"].to_numpy()
        self.span = slice(*documents.spans[first["scope"][0]])
        at = ranked["query"].rle_id().to_numpy(), ranked["at"].to_numpy() - self.span.start
        shape = (len(rows), self.span.stop - self.span.start)
        self.rank = np.full(shape, _NEVER)
        self.rank[at] = ranked["rank"].to_numpy()
        centred, spread = pl.col("score") - pl.col("score").mean(), pl.col("score").std(ddof=0)
        z = pl.when(spread > 1e-12).then(centred / spread).otherwise(0.0).over("query")
        relevance = np.full(shape, np.inf)
        relevance[at] = ranked.select(z=z)["z"].to_numpy()
        self.relevance = np.where(self.rank < _NEVER, relevance, relevance.min(axis=1, keepdims=True))
        words = documents.words_in(self.span)
        counts = words.asked([bench.query_words[row] for row in rows])
        used = np.unique(counts.indices)
        self.weights = counts[:, used].toarray()
        self.terms = words.weights(*words.normalisation)[used].toarray()
        vectors, embeddings = bench.query_vectors, documents.embeddings
        self.vectors = None if vectors is None else vectors[rows]
        self.embeddings = None if embeddings is None else embeddings[self.span]

    def search(self, *, start: int, rounds: int, step: int, beta: float, threshold: float) -> np.ndarray:
        """Give (q, n) the order in which turns are found: the run's first, then those of each round."""
        taken = np.where(self.rank <= start, self.rank, _NEVER)
        base = self._fit(taken, 0.0)
        for number in range(rounds):
            score = self.relevance + (self._fit(taken, beta) - base)
            score[(taken < _NEVER) | (score < threshold)] = -np.inf
            best = np.lexsort((self.rank, -score), axis=1)[:, :step]
            row, place = np.nonzero(np.isfinite(np.take_along_axis(score, best, axis=1)))
            if not len(row):
                break
            taken[row, best[row, place]] = start + 1 + number * step + place
        return taken

    def _fit(self, taken: np.ndarray, beta: float) -> np.ndarray:
        """Score every turn for the questions moved away from what is found: (q, n)."""
        row, column = np.nonzero(taken < _NEVER)
        start = starts(row)
        share = np.add.reduceat(self.terms[:, column] > 0, start, axis=1, dtype=np.float64).T
        n_taken = np.bincount(row)[:, None]
        weights = self.weights * np.maximum(1 - beta * share / n_taken, 0)
        # float64, then rounded: equal turns score equally only so, whatever the shape of the batch.
        fit = standardised((weights @ self.terms).astype(np.float32))
        if self.vectors is not None and self.embeddings is not None:
            direction = units(np.add.reduceat(self.embeddings[column], start, axis=0, dtype=np.float64))
            fit += standardised(cosines(units(self.vectors - beta * direction), self.embeddings))
        return fit
