"""Relevance feedback: search again, towards the first hits or away from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from memlab.errors import DataError, check_at_least
from memlab.records import Run
from memlab.registry import Count, Weight, stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.bm25 import default_k1_and_b
from memlab.retrieve.documents import columns_best_first, standardise_rows
from memlab.retrieve.rankings_from_scores import rerank_by_scores
from memlab.select.selection_candidates import candidates_by_query

POSITIVE = 0.4
"""Weight of the similarity to the hits, where no weight is given."""

TERMS = 10
"""Words of a hit that are searched for: those that weigh most in it."""

FLAT = 1e-5
"""A score so near to the last one, as a share of the distance from first to last, equals it."""


@dataclass(frozen=True, eq=False)
class _FeedbackQuery:
    """A query's ranking among the n documents of its scope.

    :param query_id: of the query; ``row`` is its row in the bench.
    :param span: where the documents of its scope are in the bench.
    :param listed: (c,) which of them the run holds, best first.
    :param scores: (c,) theirs, standardised.
    :param n_hits: how many of the first are feedback.
    """

    query_id: str
    row: int
    span: slice
    listed: np.ndarray
    scores: np.ndarray
    n_hits: int

    @property
    def hit_places(self) -> np.ndarray:
        """The documents that are feedback: (h,)."""
        return self.listed[: self.n_hits]


CompareWithHits = Callable[[_FeedbackQuery], np.ndarray]
"""Says how similar each document of a query's scope is to each of its hits: (n, h) float64."""


@stage
def feedback(
    run: Run,
    bench: Bench,
    *,
    positive: Weight | None = None,
    negative: Weight = 0.0,
    on: Literal["vectors", "terms", "both"] = "both",
    hits: Count = 5,
) -> Run:
    """Search again, towards the first hits (``positive``) or away from them (``negative``).

    Rocchio's method moves a question towards hits that are relevant, and away from hits that are
    not. The score of a moved question is a sum; the question's own part of it is the run's score,
    whatever stage ranked it, and what is searched for here is the rest::

        score + positive · similarity to the hits − negative · similarity to the nearest hit

    The first is pseudo-relevance feedback: the mean over the hits, where none is compared with
    itself or a copy of its text. The second is for "the same question, but not what was found":
    copies of a hit and what resembles one go down, the hits themselves stay where they are, so that
    with ``negative`` alone the new finds begin behind them. Scores are standardised over the
    documents that the run holds of the query, similarities over those of its scope, so that a
    weight means the same after any stage. Documents that the run does not hold start at its lowest
    score and may come in; a ranking stays as long as it was.

    Hits that score as the last document does, such as those that BM25 lists at 0 to fill its
    places, teach nothing; a query without others keeps its ranking. Defaults were chosen on
    ``data/train``, where no weight above 0 for ``negative`` found more evidence.

    :param positive: weight of the similarity to the hits, against 1 for the score; by default 0.4,
        and 0 where ``negative`` is above 0.
    :param negative: weight of the similarity to the nearest hit. Where both are 0 the run stays as
        it is.
    :param on: what similarity is of: ``vectors`` (cosine, speaker-centred), ``terms`` (BM25 with
        the ten words that weigh most in a hit and are not the question's) or ``both``, their mean;
        without an encoder ``both`` is terms alone.
    :param hits: how many of the first documents are feedback.
    :raises DataError: for a weight that is negative or infinite, ``hits`` below 1, another ``on``,
        or ``vectors`` without embeddings.

    Source: Rocchio, Relevance Feedback in Information Retrieval (1971); words of the hits: Lavrenko
    and Croft, Relevance-Based Language Models (SIGIR 2001), and RM3, Abdul-Jaleel et al., UMass at
    TREC 2004; the nearest of several hits: MultiNeg, Wang, Fang and Zhai, A Study of Methods for
    Negative Relevance Feedback (SIGIR 2008).

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder="hashing")
    >>> plain = memlab.retrieve.dense(bench, k=20)
    >>> other = memlab.select.feedback(plain, bench, negative=1.0)
    >>> found, next_found = (other.top(k).frame["doc_id"] for k in (5, 10))
    >>> found.equals(plain.top(5).frame["doc_id"]), next_found.equals(plain.top(10).frame["doc_id"])
    (True, False)
    """
    if positive is None:
        positive = _default_positive_weight(negative)
    for weight_name, weight_value in (("positive", positive), ("negative", negative)):
        check_at_least(0, **{weight_name: weight_value})
        if math.isinf(weight_value):
            raise DataError(f"{weight_name} is {weight_value}; expected a finite number")
    check_at_least(1, hits=hits)
    comparisons = _comparisons_with_hits_by_name(run, bench, on)
    if positive == negative == 0 or run.frame.is_empty():
        return run
    copy_groups = (
        pl.Series(bench.documents(run.level).texts, dtype=pl.String).rank("dense").to_numpy()
    )
    query_rankings = []
    for query in _feedback_queries(run, bench, hits):
        scores = _score_documents_by_run_and_hits(
            query, comparisons, copy_groups[query.span], positive, negative
        )
        query_rankings.append(_best_documents_as_run_rows(query, bench, run, scores))
    return rerank_by_scores(run, bench, pl.concat(query_rankings))


def _default_positive_weight(negative_weight: float) -> float:
    if negative_weight > 0:
        return 0.0
    return POSITIVE


def _feedback_queries(run: Run, bench: Bench, max_hits: int) -> Iterator[_FeedbackQuery]:
    """Go through the queries of a run, in its order."""
    spans = bench.documents(run.level).spans
    query_rows = bench.join_question_columns(run.frame.filter(rank=1), "row", "scope")
    candidates = candidates_by_query(run, bench)
    for query_row, (places, relevance) in zip(
        query_rows.iter_rows(named=True), candidates, strict=True
    ):
        scope_slice = slice(*spans[query_row["scope"]])
        standing_out = int((relevance > relevance[-1] + FLAT).sum())
        scores = standardise_rows(relevance[None])[0]
        n_hits = min(max_hits, standing_out)
        yield _FeedbackQuery(
            query_row["query_id"],
            query_row["row"],
            scope_slice,
            places - scope_slice.start,
            scores,
            n_hits,
        )


def _score_documents_by_run_and_hits(
    query: _FeedbackQuery,
    comparisons: list[CompareWithHits],
    text_numbers: np.ndarray,
    positive_weight: float,
    negative_weight: float,
) -> np.ndarray:
    """Score every document of a query's scope by the run and its similarity to the hits: (n,).

    :param text_numbers: (n,) numbers, equal where texts are.
    """
    scores = np.full(len(text_numbers), query.scores.min())
    scores[query.listed] = query.scores
    if not query.n_hits:
        return scores
    is_copy = text_numbers[:, None] == text_numbers[query.hit_places]
    for compare in comparisons:
        similarity = compare(query)
        if positive_weight:
            towards = standardise_rows(_mean_similarity_to_other_hits(similarity, is_copy)[None])[0]
            scores += positive_weight / len(comparisons) * towards
        if negative_weight:
            nearest = standardise_rows(similarity.max(axis=1)[None])[0]
            distance_from_nearest = nearest - nearest.min()
            distance_from_nearest[query.hit_places] = 0.0
            scores -= negative_weight / len(comparisons) * distance_from_nearest
    return scores


def _mean_similarity_to_other_hits(similarity: np.ndarray, is_copy: np.ndarray) -> np.ndarray:
    """Give the mean similarity of each document to the hits, itself and copies aside: (n,).

    A document without another hit is given the mean of the others, and so neither gains nor loses.

    :param is_copy: (n, h) whether a document has the text of a hit.
    """
    n_compared = (~is_copy).sum(axis=1)
    similarity_sum = np.where(is_copy, 0.0, similarity).sum(axis=1)
    mean_similarity = similarity_sum / np.maximum(n_compared, 1)
    if n_compared.any():
        mean_similarity[n_compared == 0] = mean_similarity[n_compared > 0].mean()
    return mean_similarity


def _best_documents_as_run_rows(
    query: _FeedbackQuery, bench: Bench, run: Run, document_scores: np.ndarray
) -> pl.DataFrame:
    """Give the best documents of a scope, as many as the run holds: ``query_id``, ``doc_id``,
    ``score``.

    Ties are in the order of the run, and behind it in that of the documents' lot.
    """
    documents = bench.documents(run.level)
    tie_order = len(document_scores) + documents.tie_order[query.span]
    tie_order[query.listed] = np.arange(len(query.listed))
    best_places = columns_best_first(document_scores[None], tie_order)[0, : len(query.listed)]
    doc_id = documents.place_of_id["doc_id"].gather(query.span.start + best_places)
    return pl.DataFrame({"doc_id": doc_id, "score": document_scores[best_places]}).select(
        pl.lit(query.query_id).alias("query_id"), "doc_id", "score"
    )


def _comparisons_with_hits_by_name(
    run: Run, bench: Bench, compared_by: str
) -> list[CompareWithHits]:
    """Give what documents are compared with hits by.

    :raises DataError: for another name, or ``vectors`` without embeddings.
    """
    if compared_by not in ("vectors", "terms", "both"):
        raise DataError(f"on is {compared_by!r}; choose from vectors, terms, both")
    by_terms = _make_term_comparison(run, bench)
    if compared_by == "terms" or (
        compared_by == "both" and bench.documents(run.level).embed is None
    ):
        return [by_terms]
    by_vectors = _make_vector_comparison(run, bench)
    if compared_by == "vectors":
        return [by_vectors]
    return [by_vectors, by_terms]


def _make_vector_comparison(run: Run, bench: Bench) -> CompareWithHits:
    """Compare by the cosine of speaker-centred vectors.

    :raises DataError: without embeddings.
    """
    vectors = bench.documents(run.level).speaker_centred()

    def compare_vectors(query: _FeedbackQuery) -> np.ndarray:
        # In float64 and rounded, so that equal texts are equally similar whatever the batch.
        exact_vectors = vectors[query.span].astype(np.float64)
        similarity: np.ndarray = (exact_vectors @ exact_vectors[query.hit_places].T).round(6)
        return similarity

    return compare_vectors


def _make_term_comparison(run: Run, bench: Bench) -> CompareWithHits:
    """Compare by BM25 with the words that weigh most in a hit, but for those of the question.

    The weights of a hit's words are scaled to length 1, so that long hits count as short ones do.
    """
    documents = bench.documents(run.level)

    def compare_terms(query: _FeedbackQuery) -> np.ndarray:
        scope_words = documents.words_in(query.span)
        weights = scope_words.score_by_word_and_document(*default_k1_and_b(scope_words, run.level))
        similarity = np.zeros((query.span.stop - query.span.start, query.n_hits))
        question_words = set(bench.query_words[query.row])
        for column, hit_place in enumerate(query.hit_places.tolist()):
            hit_words = dict.fromkeys(documents.words[query.span.start + hit_place])
            word_rows = [
                scope_words.number[word] for word in hit_words if word not in question_words
            ]
            postings = weights[sorted(word_rows)]
            hit_weights = _unit_vector_of_top_weights(postings[:, [hit_place]].toarray().ravel())
            similarity[:, column] = postings.T @ hit_weights
        return similarity

    return compare_terms


def _unit_vector_of_top_weights(term_weights: np.ndarray) -> np.ndarray:
    """Keep the largest weights and what ties with the last of them, scaled to length 1: (v,)."""
    kept_weights = term_weights
    if len(term_weights) > TERMS:
        least_kept = np.partition(term_weights, -TERMS)[-TERMS]
        kept_weights = np.where(term_weights >= least_kept, term_weights, 0.0)
    weight_norm = np.linalg.norm(kept_weights)
    return kept_weights / max(weight_norm, 1e-300)
