"""Pseudo-relevance feedback: search again for what is like the first results."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from memlab.errors import check_at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.arrays import scale_to_unit
from memlab.retrieve.bench import Bench
from memlab.retrieve.fusion import rank_by_gains
from memlab.retrieve.ranking import Scored, rank, require_turn_run
from memlab.retrieve.subqueries import rank_by_vectors
from memlab.retrieve.word_statistics import count_words

FEEDBACK = 5
"""First results that are taken as relevant."""

# Of RM3: words that are added; what they weigh beside the question's; a word in more than a tenth of the turns (and
# more than five), such as a speaker's name, tells none of them apart. Of Rocchio: the weight beside the question's 1.
TERMS, MIX, COMMON, FEW, BETA = 10, 0.5, 0.1, 5, 0.75

# Scores that differ by less than this part of the largest are ties that were put in order.
FLAT = 1e-4


@stage
def prf(run: Run, bench: Bench, *, weight: float = 0.5, k: int = 200) -> Run:
    """Search again with terms of the first five results: pseudo-relevance feedback (RM3 and Rocchio).

    RM3 is BM25 with the question's words and the words that the first results share; Rocchio's method, where there is
    an encoder, is dense search with the question's vector moved towards theirs. Their scores are added to the run's,
    each list standardised over what it holds, since ranks forget how much better one turn is than the next. Results
    that the run lists at a score of 0 or less teach nothing; a question without others keeps its ranking.

    :param weight: of the scores of each search; those of the run weigh 1.
    :raises DataError: for a ranking of sessions, or a negative weight.

    Source: Lavrenko and Croft, Relevance-Based Language Models (SIGIR 2001); RM3: Abdul-Jaleel et al., UMass at TREC
    2004; Rocchio, Relevance Feedback in Information Retrieval (1971).

    >>> from memlab import retrieve, sample
    >>> from memlab.retrieve import prf
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> plain = retrieve.bm25(bench, k=5)
    >>> prf(plain, bench, weight=0.0, k=5).frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    require_turn_run(run, "prf")
    check_at_least(0, weight=weight)
    first = run.frame.filter((pl.col("rank") <= FEEDBACK) & (pl.col("score") > 0))
    placed = bench.asked(first, "row").with_columns(at=bench.documents("turn").at(first["doc_id"]))
    relevant = {row: np.array(at) for row, at in placed.group_by("row").agg("at").iter_rows()}
    again = [rank(bench, _rm3_scores(bench, relevant), level="turn", k=k)]
    if bench.encoder is not None:
        vectors, moved = bench.documents("turn").vectors(), bench.query_vectors.astype(np.float64)
        for row, at in relevant.items():
            moved[row] += BETA * vectors[at].mean(axis=0, dtype=np.float64)
        again.append(rank_by_vectors(bench, scale_to_unit(moved), k=k))
    score = pl.col("score")
    spread = score.std().over("query_id")
    flat = spread.fill_null(0) <= FLAT * score.abs().max().over("query_id")
    # From 0 for the lowest of a list, which is what it gives to what it does not hold.
    gain = pl.when(flat).then(0.0).otherwise((score - score.min().over("query_id")) / spread)
    lists = [run.frame.with_columns(gain=gain)]
    for each in again:
        taught = each.frame.join(first, on="query_id", how="semi", maintain_order="left")
        lists.append(taught.with_columns(gain=weight * gain))
    return bench.show(rank_by_gains(lists, level="turn", k=k))


def _rm3_scores(bench: Bench, relevant: Mapping[int, np.ndarray]) -> Scored:
    """Give BM25 scores of the weighted words of question and feedback; noughts for a question without feedback.

    :param relevant: row of a question → places of the turns that it learns from.
    """
    for rows, span in bench.by_scope("turn"):
        words = bench.documents("turn").words_in(span)
        by_turn, postings = words.counts.tocsc(), words.weights(*words.normalisation).T.tocsr()
        common = words.frequency > max(FEW, COMMON * words.n)
        scores = np.zeros((len(rows), span.stop - span.start), np.float32)
        for i, row in enumerate(rows.tolist()):
            if row in relevant and len(common):
                shares = by_turn[:, relevant[row] - span.start].toarray()
                shared = np.where(common, 0.0, (shares / np.maximum(shares.sum(axis=0), 1)).mean(axis=1))
                if len(shared) > TERMS:  # the largest, and what ties with the last of them
                    shared = np.where(shared >= np.partition(shared, -TERMS)[-TERMS], shared, 0.0)
                asked = count_words([bench.query_words[row]], words.number).toarray()[0]
                asked, shared = (part / max(part.sum(), 1e-300) for part in (asked, shared))
                scores[i] = postings @ (MIX * asked + (1 - MIX) * shared)
        yield rows, span, scores
