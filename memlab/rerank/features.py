"""What a learned reranker knows about a question and a turn: scores, neighbourhood, session, words, dates.

Everything is of the scope alone: its own documents, its own statistics, and the question as it was asked. Nothing
depends on other questions, and ids are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from memlab.embed.tokens import TokenVectors
from memlab.rerank._matches import RAW, first_person, matches
from memlab.rerank._words import neighbour, overlaps, question_shapes, turn_shapes
from memlab.retrieve import Bench
from memlab.retrieve.arrays import best_of, cosines, lowered, ordered, standardised, starts
from memlab.retrieve.bm25 import bm25_scores
from memlab.retrieve.dense import dense_scores
from memlab.retrieve.fusion import combsum
from memlab.retrieve.late import ScopeTokens, query_tokens, scope_tokens, totals
from memlab.retrieve.speakers import ASSISTANT, lowered_by
from memlab.retrieve.two_stage import summary_vectors

BLOCK = 1_000_000
"""Pairs of question and passage that are looked at together, so that a large memory does not need large arrays."""

SIMILAR_TO = (5, 10)
NEIGHBOURS = (1, -1, 2, -2)
ABSENT = -3.0
"""What a neighbour scores that is not there: less than nearly all, in standard deviations."""


@dataclass(frozen=True)
class Candidates:
    """The candidates of some questions of one scope, with what is known about them.

    :param rows: (q,) rows of the questions in the bench.
    :param at: (q, c) places of the candidates among the turns of the bench; repeated where padded.
    :param mask: (q, c) whether there is a candidate.
    :param session: (q, c) number of the candidate's session within the scope.
    :param n_sessions: sessions of the scope.
    :param values: (q, c, f) float32, in the order of ``names``.
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


def candidates(bench: Bench, places: np.ndarray, mask: np.ndarray) -> Iterator[Candidates]:
    """Look at candidates, scope by scope and some questions at a time.

    :param places: (n queries, c) places of each question's candidates among the turns, padded at the end.
    :param mask: (n queries, c) whether there is a candidate.
    :raises DataError: when the bench's encoder gives no token embeddings.
    """
    summaries, rewritten = summary_vectors(bench), first_person(bench)
    asked_tokens = query_tokens(bench), query_tokens(rewritten)
    scored = zip(
        dense_scores(bench, level="turn"),
        dense_scores(rewritten, level="turn"),
        bm25_scores(bench, level="turn"),
        bm25_scores(bench, level="session"),
        strict=True,
    )
    for (rows, turns, dense), (_, _, own_dense), (_, _, bm25), (_, sessions, of_sessions) in scored:
        texts = scope_tokens(bench, turns)
        size = max(1, BLOCK // max(1, len(texts.inverse)))
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            asked = rows[part]
            scope = _Scope(bench, asked, turns, sessions)
            late = scope.late(texts, *(tokens.take(asked) for tokens in asked_tokens))
            scope.own("dense", own_dense[part])
            scope.scores(dense[part], bm25[part], late, of_sessions[part])
            scope.summaries(summaries)
            scope.words_and_shapes()
            at = np.where(mask[asked], places[asked] - turns.start, 0)
            values = np.stack([np.take_along_axis(column, at, axis=1) for column in scope.columns.values()], axis=-1)
            yield Candidates(
                asked, at + turns.start, mask[asked], scope.session[at], scope.n_sessions, values, tuple(scope.columns)
            )


def first_places(bench: Bench, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Choose candidates by the sum of standardised dense, BM25 and late scores of turn and session.

    :returns: places (n queries, c) and whether there is a candidate; c ≤ n.
    """
    run = combsum(bench, k=n, turn=(1.0, 1.0, 2.0), session=(1.0, 1.0, 2.0), assistant=ASSISTANT)
    return run_places(run.frame, bench)


def run_places(frame: pl.DataFrame, bench: Bench) -> tuple[np.ndarray, np.ndarray]:
    """Lay a ranking of turns out as one row a question of the bench; see :func:`candidates`.

    :raises DataError: for a question that the bench does not hold.
    """
    row = bench.asked(frame.select("query_id"), "row")["row"]
    width = int(frame["rank"].to_numpy().max(initial=1))
    places, mask = np.zeros((len(bench.queries), width), np.int64), np.zeros((len(bench.queries), width), bool)
    cell = row.to_numpy(), frame["rank"].to_numpy() - 1
    places[cell], mask[cell] = bench.documents("turn").at(frame["doc_id"]), True
    return places, mask


class _Scope:
    """Features of every question (rows) and every turn (columns) of a scope, by name."""

    def __init__(self, bench: Bench, rows: np.ndarray, turns: slice, sessions: slice) -> None:
        self.bench, self.rows, self.turns, self.of_sessions = bench, rows, turns, sessions
        self.session = bench.documents("turn").session[turns] - sessions.start
        self.n_sessions = sessions.stop - sessions.start
        self.shape = (len(rows), turns.stop - turns.start)
        self.first = starts(self.session)
        self.count = np.diff(np.r_[self.first, self.shape[1]])
        self.place = np.arange(self.shape[1]) - np.repeat(self.first, self.count)
        self.columns: dict[str, np.ndarray] = {}
        self.weight = bench.documents("turn").weight_in(turns)
        self.weight_of_sessions = bench.documents("session").weight_in(sessions)

    def add(self, name: str, values: np.ndarray) -> None:
        self.columns[name] = np.broadcast_to(np.asarray(values, np.float32), self.shape)

    def z(self, scores: np.ndarray) -> np.ndarray:
        """Standardise scores of turns: (q, n)."""
        return standardised(scores, self.weight)

    def z_of_session(self, scores: np.ndarray) -> np.ndarray:
        """Standardise scores of sessions, for their turns: (q, n_sessions) → (q, n)."""
        return standardised(scores, self.weight_of_sessions)[:, self.session]

    def best(self, scores: np.ndarray) -> np.ndarray:
        """Take the best turn of each session: (q, n) → (q, n_sessions)."""
        return best_of(scores, self.session, self.n_sessions)

    def late(self, tokens: ScopeTokens, asked: TokenVectors, rewritten: TokenVectors) -> np.ndarray:
        """How the words of the question match those of turn, neighbours and session; gives late interaction's score."""
        columns = matches(tokens, asked, self.session)
        for name, scores in columns.items():
            if name != "late":
                self.add(f"{name}_z", self.z(scores))
            if name in RAW:
                self.add(name, scores)
        self.own("late", totals(tokens.best(rewritten), tokens.weights(rewritten), rewritten))
        return columns["late"]

    def own(self, name: str, scores: np.ndarray) -> None:
        """How well the turn matches the question as its speaker would put it."""
        of_turn = self.z(scores)
        self.add(f"{name}_first_person_z", of_turn)
        self.add(f"{name}_first_person_best_of_session", self.z_of_session(self.best(of_turn)))

    def scores(self, dense: np.ndarray, bm25: np.ndarray, late: np.ndarray, of_sessions: np.ndarray) -> None:
        """Scores of turn, neighbours and session by each scorer, and the similarity of the turn to the first hits."""
        total = np.zeros(self.shape)
        less = lowered_by(self.bench, self.rows, self.turns)
        for name, scores in (("dense", dense), ("bm25", bm25), ("late", late)):
            of_turn, of_best = self.z(scores), self.z_of_session(self.best(scores))
            total += of_turn + of_best if less is None else self.sum_lowered(scores, less)
            if name != "bm25":  # whose scale depends on the scope
                self.add(name, scores)
                self.add(f"{name}_below_first", scores - scores.max(axis=1, keepdims=True))
            self.add(f"{name}_z", of_turn)
            self.add(f"{name}_best_of_session", of_best)
            self.add(f"{name}_three_of_session", self.z_of_session(self.three_best(scores)))
            self.add(f"{name}_below_best_of_session", of_turn - self.best(of_turn)[:, self.session])
            for step in NEIGHBOURS:
                self.add(f"{name}_at{-step:+d}", neighbour(of_turn, self.session, step, absent=ABSENT))
        session = self.z_of_session(of_sessions)
        total += session
        self.add("bm25_of_session", session)
        self.add("sum", total)
        vectors = self.bench.documents("turn").vectors()[self.turns]
        order = ordered(total, self.bench.documents("turn").lot[self.turns])
        for n in SIMILAR_TO:
            self.add(f"similar_to_first_{n}", cosines(vectors[order[:, :n]].mean(axis=1), vectors))

    def sum_lowered(self, scores: np.ndarray, less: np.ndarray) -> np.ndarray:
        """Standardise scores of turns and of their sessions, those of an assistant lowered: (q, n)."""
        scores = lowered(scores, less, self.weight)
        return self.z(scores) + self.z_of_session(self.best(scores))

    def three_best(self, scores: np.ndarray) -> np.ndarray:
        """Average the three best turns of each session: (q, n_sessions)."""
        order = np.lexsort((-scores, np.broadcast_to(self.session, self.shape)), axis=1)
        best = np.where(self.place < 3, np.take_along_axis(scores, order, axis=1), 0.0)
        lowest = scores.min(axis=1, keepdims=True, initial=0.0)  # of a session without turns
        means = np.repeat(lowest.astype(np.float64), self.n_sessions, axis=1)
        means[:, self.session[self.first]] = np.add.reduceat(best, self.first, axis=1) / np.minimum(self.count, 3)
        return means

    def summaries(self, vectors: np.ndarray | None) -> None:
        """How well the session's summary matches, where there is one."""
        if vectors is None:
            self.add("summary", np.zeros(1))
        else:
            scores = cosines(self.bench.query_vectors[self.rows], vectors[self.of_sessions])
            self.add("summary", self.z_of_session(scores))

    def words_and_shapes(self) -> None:
        """Shared words, what kind of turn and of question it is, who speaks, whether a date that is named fits."""
        turns, of_session = self.turns, np.repeat(self.count, self.count)
        columns = {
            **overlaps(self.bench, self.rows, turns, self.session),
            **turn_shapes(self.bench, turns.start, turns.stop),
            **question_shapes(self.bench, self.rows, turns, self.session),
            "place_in_session": np.log1p(self.place),
            "share_of_session": self.place / of_session,
            "turns_of_session": np.log1p(of_session),
            "age": self.session / max(1, self.n_sessions - 1),
        }
        for name, values in columns.items():
            self.add(name, values)
