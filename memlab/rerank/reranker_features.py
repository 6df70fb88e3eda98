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
from typing import NamedTuple

import numpy as np
import polars as pl

from memlab.embed.token_vectors import TokenEncoder, TokenVectors
from memlab.rerank.word_features import (
    TOKEN_MATCHES,
    neighbour_values,
    question_feature_values_by_name,
    rephrase_in_first_person,
    token_match_values_by_name,
    turn_feature_values_by_name,
    word_overlap_values_by_name,
)
from memlab.retrieve import Bench
from memlab.retrieve.best_pipeline import best
from memlab.retrieve.bm25 import bm25_scores, estimate_absent_bm25_scores
from memlab.retrieve.cosine import cosines
from memlab.retrieve.dense import dense_scores
from memlab.retrieve.documents import (
    NO_SCORES,
    MeanAndMeanSquare,
    best_score_per_group,
    estimate_mean_and_deviation_of_scope,
    first_row_of_each_group,
    lower_by_deviations,
    standardise_rows,
)
from memlab.retrieve.late_interaction import (
    ScopeTokens,
    query_tokens,
    scope_tokens,
    sum_weighted_cosines_per_question,
)
from memlab.retrieve.rank_fusion import assistant_penalty_in_deviations
from memlab.retrieve.two_stage import session_summary_vectors

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

    def feature_values(self, feature_name: str) -> np.ndarray:
        """Give one feature: (q, c)."""
        return self.values[..., self.names.index(feature_name)]


def candidate_features(
    bench: Bench, candidate_places: np.ndarray, is_candidate: np.ndarray
) -> Iterator[Candidates]:
    """Look at candidates, scope by scope and some questions at a time.

    :param candidate_places: (n queries, c) places of each question's candidates among the turns,
        padded at the end.
    :param is_candidate: (n queries, c) whether there is a candidate.
    :raises DataError: when the bench has no encoder.
    """
    summaries = session_summary_vectors(bench)
    rewritten = rephrase_in_first_person(bench)
    tokens: list[TokenVectors] = []
    if isinstance(bench.encoder, TokenEncoder):
        tokens = [query_tokens(bench), query_tokens(rewritten)]
    for scores in _score_questions_and_rewritten_ones(bench, rewritten):
        token_passages = None
        if tokens:
            token_passages = scope_tokens(bench, scores.turns)
        for block in _question_blocks(scores, token_passages):
            rows = scores.rows[block]
            features = _ScopeFeatures(bench, rows, scores.turns, scores.sessions)
            late_scores = None
            if token_passages is None:
                features.add_missing_token_features()
            else:
                block_tokens = [question_tokens.take(rows) for question_tokens in tokens]
                late_scores = features.add_token_match_features(token_passages, *block_tokens)
            features.add_first_person_features("dense", scores.rewritten_dense[block])
            scorers = {
                "dense": scores.dense[block],
                "bm25": scores.bm25[block],
                "late": late_scores,
            }
            features.add_features_of_all_scorers(scorers, scores.session_bm25[block])
            features.add_summary_word_and_date_features(summaries)
            yield features.candidates_with_features(candidate_places[rows], is_candidate[rows])


class _QuestionAndScopeScores(NamedTuple):
    """The questions (q) of a scope, and what its turns (n) and sessions score for them.

    :param rewritten_dense: as ``dense``, for the questions as their speakers would put them.
    """

    rows: np.ndarray
    turns: slice
    sessions: slice
    dense: np.ndarray
    rewritten_dense: np.ndarray
    bm25: np.ndarray
    session_bm25: np.ndarray


def _score_questions_and_rewritten_ones(
    bench: Bench, rewritten: Bench
) -> Iterator[_QuestionAndScopeScores]:
    scope_scores = zip(
        dense_scores(bench, level="turn"),
        dense_scores(rewritten, level="turn"),
        bm25_scores(bench, level="turn"),
        bm25_scores(bench, level="session"),
        strict=True,
    )
    for of_dense, of_rewritten, of_bm25, of_session_bm25 in scope_scores:
        rows, turns, dense = of_dense
        _, sessions, session_bm25 = of_session_bm25
        rewritten_dense = of_rewritten[2]
        bm25 = of_bm25[2]
        yield _QuestionAndScopeScores(
            rows, turns, sessions, dense, rewritten_dense, bm25, session_bm25
        )


def _question_blocks(
    scope_scores: _QuestionAndScopeScores, passage_tokens: ScopeTokens | None
) -> Iterator[slice]:
    """Divide the questions of a scope into blocks that are looked at together."""
    n_passages = scope_scores.turns.stop - scope_scores.turns.start
    if passage_tokens is not None:
        n_passages = len(passage_tokens.inverse)
    block_size = max(1, BLOCK_CELLS // max(1, n_passages))
    for block_start in range(0, len(scope_scores.rows), block_size):
        yield slice(block_start, block_start + block_size)


class CandidatePlaces(NamedTuple):
    """The candidates of the questions of a bench.

    :param places: (n queries, c) among the turns of the bench, padded at the end.
    :param is_candidate: (n queries, c) whether there is one.
    """

    places: np.ndarray
    is_candidate: np.ndarray


def best_candidate_places(bench: Bench, max_candidates: int) -> CandidatePlaces:
    """Choose the first ``max_candidates`` candidates of ``best``: places (n queries, c) and whether
    there is a candidate; c ≤ n.
    """
    return padded_turn_places_by_question(best(bench, k=max_candidates).frame, bench)


def padded_turn_places_by_question(ranking: pl.DataFrame, bench: Bench) -> CandidatePlaces:
    """Lay a ranking of turns out as one row a question of the bench.

    See :func:`candidate_features`.

    :raises DataError: for a question that the bench does not hold.
    """
    query_row = bench.join_question_columns(ranking.select("query_id"), "row")["row"]
    n_ranks = int(ranking["rank"].to_numpy().max(initial=1))
    places = np.zeros((len(bench.queries), n_ranks), np.int64)
    is_candidate = np.zeros((len(bench.queries), n_ranks), bool)
    row_and_rank = query_row.to_numpy(), ranking["rank"].to_numpy() - 1
    places[row_and_rank] = bench.documents("turn").at(ranking["doc_id"])
    is_candidate[row_and_rank] = True
    return CandidatePlaces(places, is_candidate)


class _ScopeFeatures:
    """Features of every question (rows) and every turn (columns) of a scope, by name."""

    def __init__(self, bench: Bench, rows: np.ndarray, turns: slice, sessions: slice) -> None:
        self.bench = bench
        self.rows = rows
        self.turns = turns
        self.session_slice = sessions
        self.session_numbers = bench.documents("turn").session[turns] - sessions.start
        self.n_sessions = sessions.stop - sessions.start
        self.shape = (len(rows), turns.stop - turns.start)
        self.session_starts = first_row_of_each_group(self.session_numbers)
        self.session_lengths = np.diff(self.session_starts, append=self.shape[1])
        self.place_in_session = np.arange(self.shape[1]) - np.repeat(
            self.session_starts, self.session_lengths
        )
        self.columns: dict[str, np.ndarray] = {}

    def candidates_with_features(self, places: np.ndarray, is_candidate: np.ndarray) -> Candidates:
        """Give what is known of some turns of each question.

        :param places: (q, c) places among the turns of the bench; anything where not in
            ``is_candidate``.
        """
        scope_places = np.where(is_candidate, places - self.turns.start, 0)
        columns = self.columns.values()
        feature_values = [np.take_along_axis(column, scope_places, axis=1) for column in columns]
        return Candidates(
            self.rows,
            scope_places + self.turns.start,
            is_candidate,
            self.session_numbers[scope_places],
            self.n_sessions,
            np.stack(feature_values, axis=-1),
            tuple(self.columns),
        )

    def add_feature(self, feature_name: str, values: np.ndarray) -> None:
        self.columns[feature_name] = np.broadcast_to(np.asarray(values, np.float32), self.shape)

    def standardise_turn_scores(
        self, scores: np.ndarray, absent_moments: MeanAndMeanSquare | None = None
    ) -> np.ndarray:
        """Standardise scores of turns: (q, n).

        :param absent_moments: see
            :func:`memlab.retrieve.documents.estimate_mean_and_deviation_of_scope`.
        """
        absent = self.bench.documents("turn").n_absent
        return standardise_rows(
            scores, estimate_mean_and_deviation_of_scope(scores, absent, absent_moments)
        )

    def standardised_session_score_per_turn(
        self, scores: np.ndarray, absent_moments: MeanAndMeanSquare | None = None
    ) -> np.ndarray:
        """Standardise scores of sessions, for their turns: (q, n_sessions) → (q, n).

        :param absent_moments: as above; by default the spread is that of the sessions at hand.
        """
        absent = 0 if absent_moments is None else self.bench.documents("session").n_absent
        return standardise_rows(
            scores, estimate_mean_and_deviation_of_scope(scores, absent, absent_moments)
        )[:, self.session_numbers]

    def best_turn_score_per_session(self, turn_scores: np.ndarray) -> np.ndarray:
        """Take the best turn of each session: (q, n) → (q, n_sessions)."""
        return best_score_per_group(turn_scores, self.session_numbers, self.n_sessions)

    def add_token_match_features(
        self,
        passage_tokens: ScopeTokens,
        question_tokens: TokenVectors,
        rewritten_tokens: TokenVectors,
    ) -> np.ndarray:
        """Add how the words of the question match those of turn, neighbours and session.

        :returns: (q, n) scores of late interaction.
        """
        match_scores = token_match_values_by_name(
            passage_tokens, question_tokens, self.session_numbers
        )
        for match_name, scores in match_scores.items():
            if match_name != "late":
                self.add_feature(f"{match_name}_z", self.standardise_turn_scores(scores))
        weights = passage_tokens.token_weights(rewritten_tokens)
        self.add_first_person_features(
            "late",
            sum_weighted_cosines_per_question(
                passage_tokens.best_cosine_per_turn(rewritten_tokens), weights, rewritten_tokens
            ),
        )
        return match_scores["late"]

    def add_missing_token_features(self) -> None:
        """Add that nothing is known of what token vectors would say of the words."""
        for name in TOKEN_MATCHES:
            self.add_feature(f"{name}_z", NOT_KNOWN)
        for name in OWN_FEATURES:
            self.add_feature(f"late_{name}", NOT_KNOWN)

    def add_first_person_features(self, scorer_name: str, scores: np.ndarray) -> None:
        """Add how well the turn matches the question as its speaker would put it."""
        turn_z = self.standardise_turn_scores(scores)
        session_z = self.standardised_session_score_per_turn(
            self.best_turn_score_per_session(turn_z)
        )
        for feature, values in zip(OWN_FEATURES, (turn_z, session_z), strict=True):
            self.add_feature(f"{scorer_name}_{feature}", values)

    def add_features_of_all_scorers(
        self, scores_by_scorer: dict[str, np.ndarray | None], session_scores: np.ndarray
    ) -> None:
        """Add how well turn, neighbours and session match, by scorer, and the untrained sum.

        :param scores_by_scorer: (q, n) scores by name; ``None`` for one that the encoder cannot
            give.
        """
        score_sum = np.zeros(self.shape)
        penalty = assistant_penalty_in_deviations(self.bench, self.rows, self.turns)
        for scorer_name, scores in scores_by_scorer.items():
            if scores is None:
                for feature in SCORER_FEATURES:
                    self.add_feature(f"{scorer_name}_{feature}", NOT_KNOWN)
            else:
                score_sum += self.add_features_of_scorer(scorer_name, scores, penalty)
        mean_and_mean_square_of_absent_scores = estimate_absent_bm25_scores(
            self.bench, self.rows, self.session_slice, level="session"
        )
        session_z = self.standardised_session_score_per_turn(
            session_scores, mean_and_mean_square_of_absent_scores
        )
        score_sum += session_z
        self.add_feature("bm25_of_session", session_z)
        self.add_feature("sum", score_sum)

    def add_features_of_scorer(
        self, scorer_name: str, scores: np.ndarray, assistant_deviations: np.ndarray | None
    ) -> np.ndarray:
        """Add how well turn, neighbours and session match by one scorer.

        :returns: (q, n) its part of the untrained sum.
        :param assistant_deviations: how much lower assistants' turns rank in the sum, see
            :func:`memlab.retrieve.rank_fusion.assistant_penalty_in_deviations`.
        """
        mean_and_mean_square_of_absent_scores = no_absent = None
        if scorer_name == "bm25":
            mean_and_mean_square_of_absent_scores = estimate_absent_bm25_scores(
                self.bench, self.rows, self.turns, level="turn"
            )
            no_absent = NO_SCORES
        turn_z = self.standardise_turn_scores(scores, mean_and_mean_square_of_absent_scores)
        best_z = self.standardised_session_score_per_turn(
            self.best_turn_score_per_session(scores), no_absent
        )
        neighbours_z = [
            neighbour_values(turn_z, self.session_numbers, step, absent=ABSENT)
            for step in NEIGHBOUR_STEPS
        ]
        features = (
            turn_z,
            best_z,
            self.standardised_session_score_per_turn(
                self.mean_of_three_best_per_session(scores), no_absent
            ),
            turn_z - self.best_turn_score_per_session(turn_z)[:, self.session_numbers],
            *neighbours_z,
        )
        for feature, values in zip(SCORER_FEATURES, features, strict=True):
            self.add_feature(f"{scorer_name}_{feature}", values)
        if assistant_deviations is None:
            return turn_z + best_z
        score_spread = estimate_mean_and_deviation_of_scope(
            scores, self.bench.documents("turn").n_absent, mean_and_mean_square_of_absent_scores
        )
        lowered_scores = lower_by_deviations(scores, assistant_deviations, score_spread)
        lowered_turn_z = self.standardise_turn_scores(
            lowered_scores, mean_and_mean_square_of_absent_scores
        )
        lowered_best = self.best_turn_score_per_session(lowered_scores)
        return lowered_turn_z + self.standardised_session_score_per_turn(lowered_best, no_absent)

    def mean_of_three_best_per_session(self, turn_scores: np.ndarray) -> np.ndarray:
        """Average the three best turns of each session: (q, n_sessions)."""
        best_first = np.lexsort(
            (-turn_scores, np.broadcast_to(self.session_numbers, self.shape)), axis=1
        )
        sorted_scores = np.take_along_axis(turn_scores, best_first, axis=1)
        three_highest = np.where(self.place_in_session < 3, sorted_scores, 0.0)
        sums = np.add.reduceat(three_highest, self.session_starts, axis=1)
        # A session without turns has the lowest score.
        lowest_score = turn_scores.min(axis=1, keepdims=True, initial=0.0)
        session_means = np.repeat(lowest_score.astype(np.float64), self.n_sessions, axis=1)
        with_turns = self.session_numbers[self.session_starts]
        session_means[:, with_turns] = sums / np.minimum(self.session_lengths, 3)
        return session_means

    def add_summary_word_and_date_features(self, summaries: np.ndarray | None) -> None:
        """Add the session's summary, shared words, what kind of turn and question it is, who
        speaks, and dates that fit.
        """
        summary_z = np.zeros(1)
        session_lengths = np.repeat(self.session_lengths, self.session_lengths)
        if summaries is not None:
            summary_z = self.standardised_session_score_per_turn(
                cosines(
                    self.bench.require_query_vectors()[self.rows], summaries[self.session_slice]
                )
            )
        columns = {
            "summary": summary_z,
            **word_overlap_values_by_name(self.bench, self.rows, self.turns, self.session_numbers),
            **turn_feature_values_by_name(self.bench, self.turns.start, self.turns.stop),
            **question_feature_values_by_name(
                self.bench, self.rows, self.turns, self.session_numbers
            ),
            "place_in_session": np.log1p(self.place_in_session),
            "share_of_session": self.place_in_session / session_lengths,
            "turns_of_session": np.log1p(session_lengths),
            "age": self.session_numbers / max(1, self.n_sessions - 1),
        }
        for name, values in columns.items():
            self.add_feature(name, values)
