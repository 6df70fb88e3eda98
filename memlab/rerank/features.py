"""What a learned reranker knows about a question and a turn: scores, neighbourhood, session, words,
dates.

Everything is of the scope alone: its own documents, its own statistics, and the question as it was
asked. Nothing depends on other questions, and ids are not read.

Similarities are in standard deviations from the mean of the scope, never cosines: what a cosine of
.6 says differs from encoder to encoder, so that what is learned with one serves another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from memlab.embed.token_vectors import TokenEncoder, TokenVectors
from memlab.rerank._words import (
    TOKEN_MATCHES,
    neighbour_values,
    question_features,
    rephrase_in_first_person,
    token_match_features,
    turn_features,
    word_overlaps,
)
from memlab.retrieve import Bench
from memlab.retrieve.best import best
from memlab.retrieve.bm25 import absent_bm25_scores, bm25_scores
from memlab.retrieve.cosine import cosines
from memlab.retrieve.dense import dense_scores
from memlab.retrieve.documents import (
    NO_SCORES,
    Moments,
    best_per_group,
    estimate_spread,
    group_starts,
    lower_scores,
    standardise_rows,
)
from memlab.retrieve.fusion import assistant_penalty
from memlab.retrieve.late_interaction import (
    ScopeTokens,
    query_tokens,
    scope_tokens,
    sum_per_question,
)
from memlab.retrieve.two_stage import summary_vectors

BLOCK_CELLS = 1_000_000
"""Pairs of question and passage that are looked at together, so that a large memory does not need
large arrays.
"""

NEIGHBOUR_STEPS = (1, -1, 2, -2)
ABSENT = -3.0
"""What a neighbour scores that is not there: less than nearly all, in standard deviations."""

NOT_KNOWN = np.full((1, 1), np.nan, np.float32)
"""A feature that the encoder cannot give; a model reads its mean instead."""

OWN_FEATURES = ("first_person_z", "first_person_best_of_session")
SCORER_FEATURES = (
    "z",
    "best_of_session",
    "three_of_session",
    "below_best_of_session",
    "at-1",
    "at+1",
    "at-2",
    "at+2",
)
"""What is known of a turn by the score of each scorer, the last four in the order of
:data:`NEIGHBOUR_STEPS`.
"""


@dataclass(frozen=True)
class Candidates:
    """The candidates of some questions of one scope, with what is known about them.

    :param rows: (q,) rows of the questions in the bench.
    :param at: (q, c) places of the candidates among the turns of the bench; repeated where padded.
    :param mask: (q, c) whether there is a candidate.
    :param session: (q, c) number of the candidate's session within the scope.
    :param n_sessions: sessions of the scope.
    :param values: (q, c, f) float32, in the order of ``names``; NaN where an encoder without token
        vectors leaves a feature out.
    :param names: (f,) names of the features.
    """

    rows: np.ndarray
    at: np.ndarray
    mask: np.ndarray
    session: np.ndarray
    n_sessions: int
    values: np.ndarray
    names: tuple[str, ...]

    def value(self, name: str) -> np.ndarray:
        """Give one feature: (q, c)."""
        return self.values[..., self.names.index(name)]


def candidate_features(bench: Bench, places: np.ndarray, mask: np.ndarray) -> Iterator[Candidates]:
    """Look at candidates, scope by scope and some questions at a time.

    :param places: (n queries, c) places of each question's candidates among the turns, padded at
        the end.
    :param mask: (n queries, c) whether there is a candidate.
    :raises DataError: when the bench has no encoder.
    """
    summaries = summary_vectors(bench)
    rewritten = rephrase_in_first_person(bench)
    token_benches: tuple[Bench, ...] = ()
    if isinstance(bench.encoder, TokenEncoder):
        token_benches = (bench, rewritten)
    asked_tokens = [query_tokens(token_bench) for token_bench in token_benches]
    scope_scores = zip(
        dense_scores(bench, level="turn"),
        dense_scores(rewritten, level="turn"),
        bm25_scores(bench, level="turn"),
        bm25_scores(bench, level="session"),
        strict=True,
    )
    for (rows, turns, dense), (_, _, rewritten_dense), (_, _, bm25), (
        _,
        sessions,
        session_bm25,
    ) in scope_scores:
        n_passages = turns.stop - turns.start
        token_passages = None
        if asked_tokens:
            token_passages = scope_tokens(bench, turns)
            n_passages = len(token_passages.inverse)
        block_size = max(1, BLOCK_CELLS // max(1, n_passages))
        for block_start in range(0, len(rows), block_size):
            block_rows = slice(block_start, block_start + block_size)
            block_queries = rows[block_rows]
            scope_features = _ScopeFeatures(bench, block_queries, turns, sessions)
            late_scores = None
            if token_passages is None:
                scope_features.without_tokens()
            else:
                late_scores = scope_features.late(
                    token_passages, *(tokens.take(block_queries) for tokens in asked_tokens)
                )
            scope_features.own("dense", rewritten_dense[block_rows])
            scorers = {"dense": dense[block_rows], "bm25": bm25[block_rows], "late": late_scores}
            scope_features.scores(scorers, session_bm25[block_rows])
            scope_features.summaries_words_and_shapes(summaries)
            candidate_rows = np.where(mask[block_queries], places[block_queries] - turns.start, 0)
            feature_values = np.stack(
                [
                    np.take_along_axis(column, candidate_rows, axis=1)
                    for column in scope_features.columns.values()
                ],
                axis=-1,
            )
            yield Candidates(
                block_queries,
                candidate_rows + turns.start,
                mask[block_queries],
                scope_features.session[candidate_rows],
                scope_features.n_sessions,
                feature_values,
                tuple(scope_features.columns),
            )


def best_candidate_places(bench: Bench, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Choose the first ``n`` candidates of ``best``: places (n queries, c) and whether there is a
    candidate; c ≤ n.
    """
    return ranking_to_places(best(bench, k=n).frame, bench)


def ranking_to_places(frame: pl.DataFrame, bench: Bench) -> tuple[np.ndarray, np.ndarray]:
    """Lay a ranking of turns out as one row a question of the bench.

    See :func:`candidate_features`.

    :raises DataError: for a question that the bench does not hold.
    """
    query_row = bench.asked(frame.select("query_id"), "row")["row"]
    n_ranks = int(frame["rank"].to_numpy().max(initial=1))
    places, mask = (
        np.zeros((len(bench.queries), n_ranks), np.int64),
        np.zeros((len(bench.queries), n_ranks), bool),
    )
    row_and_rank = query_row.to_numpy(), frame["rank"].to_numpy() - 1
    places[row_and_rank], mask[row_and_rank] = bench.documents("turn").at(frame["doc_id"]), True
    return places, mask


class _ScopeFeatures:
    """Features of every question (rows) and every turn (columns) of a scope, by name."""

    def __init__(self, bench: Bench, rows: np.ndarray, turns: slice, sessions: slice) -> None:
        self.bench, self.rows, self.turns, self.of_sessions = bench, rows, turns, sessions
        self.session = bench.documents("turn").session[turns] - sessions.start
        self.n_sessions = sessions.stop - sessions.start
        self.shape = (len(rows), turns.stop - turns.start)
        self.first = group_starts(self.session)
        self.count = np.diff(self.first, append=self.shape[1])
        self.place = np.arange(self.shape[1]) - np.repeat(self.first, self.count)
        self.columns: dict[str, np.ndarray] = {}

    def add(self, name: str, values: np.ndarray) -> None:
        self.columns[name] = np.broadcast_to(np.asarray(values, np.float32), self.shape)

    def z(self, scores: np.ndarray, others: Moments | None = None) -> np.ndarray:
        """Standardise scores of turns: (q, n).

        :param others: see :func:`memlab.retrieve.documents.estimate_spread`.
        """
        absent = self.bench.documents("turn").absent
        return standardise_rows(scores, estimate_spread(scores, absent, others))

    def z_of_session(self, scores: np.ndarray, others: Moments | None = None) -> np.ndarray:
        """Standardise scores of sessions, for their turns: (q, n_sessions) → (q, n).

        :param others: as above; by default the spread is that of the sessions at hand.
        """
        absent = 0 if others is None else self.bench.documents("session").absent
        return standardise_rows(scores, estimate_spread(scores, absent, others))[:, self.session]

    def best(self, scores: np.ndarray) -> np.ndarray:
        """Take the best turn of each session: (q, n) → (q, n_sessions)."""
        return best_per_group(scores, self.session, self.n_sessions)

    def late(self, tokens: ScopeTokens, asked: TokenVectors, rewritten: TokenVectors) -> np.ndarray:
        """How the words of the question match those of turn, neighbours and session.

        Gives late interaction's score.
        """
        match_scores = token_match_features(tokens, asked, self.session)
        for match_name, scores in match_scores.items():
            if match_name != "late":
                self.add(f"{match_name}_z", self.z(scores))
        weights = tokens.weights(rewritten)
        self.own("late", sum_per_question(tokens.best(rewritten), weights, rewritten))
        return match_scores["late"]

    def without_tokens(self) -> None:
        """Leave out what token vectors would say of the words of the question."""
        for name in TOKEN_MATCHES:
            self.add(f"{name}_z", NOT_KNOWN)
        for name in OWN_FEATURES:
            self.add(f"late_{name}", NOT_KNOWN)

    def own(self, name: str, scores: np.ndarray) -> None:
        """How well the turn matches the question as its speaker would put it."""
        turn_z = self.z(scores)
        session_z = self.z_of_session(self.best(turn_z))
        for feature, values in zip(OWN_FEATURES, (turn_z, session_z), strict=True):
            self.add(f"{name}_{feature}", values)

    def scores(self, scorers: dict[str, np.ndarray | None], of_sessions: np.ndarray) -> None:
        """How well turn, neighbours and session match, by scorer, and the untrained sum of all.

        :param scorers: (q, n) scores by name; ``None`` for one that the encoder cannot give.
        """
        score_sum = np.zeros(self.shape)
        penalty = assistant_penalty(self.bench, self.rows, self.turns)
        for scorer_name, scores in scorers.items():
            if scores is None:
                for feature in SCORER_FEATURES:
                    self.add(f"{scorer_name}_{feature}", NOT_KNOWN)
            else:
                score_sum += self.of_scorer(scorer_name, scores, penalty)
        absent_scores = absent_bm25_scores(self.bench, self.rows, self.of_sessions, level="session")
        session_z = self.z_of_session(of_sessions, absent_scores)
        score_sum += session_z
        self.add("bm25_of_session", session_z)
        self.add("sum", score_sum)

    def of_scorer(self, name: str, scores: np.ndarray, less: np.ndarray | None) -> np.ndarray:
        """How well turn, neighbours and session match by one scorer.

        Gives its part of the untrained sum: (q, n).

        :param less: how much lower assistants' turns rank in the sum, see
            :func:`memlab.retrieve.fusion.assistant_penalty`.
        """
        absent_scores = no_absent = None
        if name == "bm25":
            absent_scores = absent_bm25_scores(self.bench, self.rows, self.turns, level="turn")
            no_absent = NO_SCORES
        turn_z = self.z(scores, absent_scores)
        best_z = self.z_of_session(self.best(scores), no_absent)
        features = (
            turn_z,
            best_z,
            self.z_of_session(self.three_best(scores), no_absent),
            turn_z - self.best(turn_z)[:, self.session],
            *(
                neighbour_values(turn_z, self.session, step, absent=ABSENT)
                for step in NEIGHBOUR_STEPS
            ),
        )
        for feature, values in zip(SCORER_FEATURES, features, strict=True):
            self.add(f"{name}_{feature}", values)
        if less is None:
            return turn_z + best_z
        score_spread = estimate_spread(scores, self.bench.documents("turn").absent, absent_scores)
        lowered_scores = lower_scores(scores, less, score_spread)
        return self.z(lowered_scores, absent_scores) + self.z_of_session(
            self.best(lowered_scores), no_absent
        )

    def three_best(self, scores: np.ndarray) -> np.ndarray:
        """Average the three best turns of each session: (q, n_sessions)."""
        best_first = np.lexsort((-scores, np.broadcast_to(self.session, self.shape)), axis=1)
        three_highest = np.where(
            self.place < 3, np.take_along_axis(scores, best_first, axis=1), 0.0
        )
        lowest_score = scores.min(axis=1, keepdims=True, initial=0.0)  # of a session without turns
        session_means = np.repeat(lowest_score.astype(np.float64), self.n_sessions, axis=1)
        session_means[:, self.session[self.first]] = np.add.reduceat(
            three_highest, self.first, axis=1
        ) / np.minimum(self.count, 3)
        return session_means

    def summaries_words_and_shapes(self, summaries: np.ndarray | None) -> None:
        """The session's summary, shared words, what kind of turn and question it is, who speaks,
        dates that fit.
        """
        summary_z, session_lengths = np.zeros(1), np.repeat(self.count, self.count)
        if summaries is not None:
            summary_z = self.z_of_session(
                cosines(self.bench.query_vectors[self.rows], summaries[self.of_sessions])
            )
        columns = {
            "summary": summary_z,
            **word_overlaps(self.bench, self.rows, self.turns, self.session),
            **turn_features(self.bench, self.turns.start, self.turns.stop),
            **question_features(self.bench, self.rows, self.turns, self.session),
            "place_in_session": np.log1p(self.place),
            "share_of_session": self.place / session_lengths,
            "turns_of_session": np.log1p(session_lengths),
            "age": self.session / max(1, self.n_sessions - 1),
        }
        for name, values in columns.items():
            self.add(name, values)
