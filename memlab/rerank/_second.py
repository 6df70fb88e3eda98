"""What the second stage of the learned reranker reads off the first: of sessions, and of turns."""

from __future__ import annotations

import numpy as np

from memlab.rerank.features import Candidates

BEST = 4
FIRST = 10
LOWEST = -12.0
_OF_SESSION = ("summary", "age", "turns_of_session", "month_named", "date_near", "date_before")
_OF_TURN = (
    *("sum", "late_z", "bm25_z", "length", "speaker_named", "other_named", "digits", "time_words", "asks", "answers"),
    *("words", "captioned", "place_in_session", "asks_time", "asks_plural", "asks_how_many", "asks_opinion"),
    "question_length",
)


def relative(scores: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Give scores as what they lack to the first of their list: 0 for the first, never below −12."""
    first = np.where(held, scores, -np.inf).max(axis=1, keepdims=True)
    return np.where(held, np.maximum(scores - first, LOWEST), LOWEST).astype(np.float32)


def session_values(found: Candidates, scores: np.ndarray, alike: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Describe each session of the scope by its candidates.

    :param scores: (q, c) of the first stage, as :func:`relative` gives them.
    :param alike: (q, c) what :func:`alike_elsewhere` gives.
    :returns: (q, s, f) and (q, s) whether the session has a candidate.
    """
    q, s = len(scores), found.n_sessions
    group = np.where(found.held, found.session + np.arange(q)[:, None] * s, q * s).ravel()
    order = np.lexsort((-scores.ravel(), group))
    ordered = group[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    depth = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
    inside = ordered < q * s
    best = np.full((q * s, BEST), LOWEST, np.float32)
    for k in range(BEST):
        these = order[inside & (depth == k)]
        best[group[these], k] = scores.ravel()[these]
    held = np.bincount(group[found.held.ravel()], minlength=q * s) > 0
    share = np.exp(scores) * found.held
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-9)  # a question may have no candidate
    shares = np.bincount(group, weights=share.ravel(), minlength=q * s + 1)[: q * s].reshape(q, s)
    first_of = np.zeros(q * s, np.int64)
    these = order[inside & (depth == 0)]
    first_of[group[these]] = these
    names = [i for i, name in enumerate(found.names) if _describes_session(name)]
    of_first = found.values.reshape(-1, len(found.names))[first_of][:, names].reshape(q, s, -1)
    top = best[:, 0].reshape(q, s)
    sorted_top = -np.sort(-top, axis=1)
    before = np.pad(top, ((0, 0), (1, 1)), constant_values=LOWEST)
    columns = [
        *np.moveaxis(best.reshape(q, s, BEST), 2, 0),
        best.reshape(q, s, BEST)[..., :3].mean(axis=2),
        shares,
        np.log(shares + 1e-6),
        np.argsort(np.argsort(-top, axis=1, kind="stable"), axis=1, kind="stable") / 10,
        *(top - sorted_top[:, [min(k, s - 1)]] for k in (4, 9)),
        before[:, :-2],
        before[:, 2:],
        np.broadcast_to(-np.sum(share * np.log(share + 1e-9), axis=1)[:, None], top.shape),
        np.broadcast_to(np.log(np.float32(s)), top.shape),
        alike.ravel()[first_of].reshape(q, s),
    ]
    values = np.concatenate([np.stack(columns, axis=-1), of_first], axis=-1).astype(np.float32)
    return np.where(held.reshape(q, s)[..., None], values, 0.0).astype(np.float32), held.reshape(q, s)


def _describes_session(name: str) -> bool:
    """Say whether a feature is the same for all turns of a session."""
    if name.endswith("_below_best_of_session"):
        return False
    return (
        name.endswith("_of_session")
        or name in _OF_SESSION
        or name.startswith(("asks_", "question_", "names_", "n_named"))
    )


def alike_elsewhere(found: Candidates, scores: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Say how much a candidate is like the first hits of other sessions, which evidence often is: (q, c).

    :param vectors: (n, d) embeddings of all turns.
    """
    first = np.argsort(-np.where(found.held, scores, -np.inf), axis=1, kind="stable")[:, :FIRST]
    weight = np.take_along_axis(np.exp(scores) * found.held, first, axis=1)  # padding counts for nothing
    place, session = (np.take_along_axis(x, first, axis=1) for x in (found.at, found.session))
    alike = np.empty(scores.shape, np.float32)
    for row in range(len(scores)):
        cosine = vectors[found.at[row]] @ vectors[place[row]].T
        other = found.session[row][:, None] != session[row][None, :]
        alike[row] = (cosine * weight[row] * other).max(axis=1)
    return alike


def turn_values(found: Candidates, scores: np.ndarray, sessions: np.ndarray, alike: np.ndarray) -> np.ndarray:
    """Describe each candidate by the first stage's score, its neighbours' and its session's: (q, c, f).

    :param scores: (q, c) of the first stage, as :func:`relative` gives them.
    :param sessions: (q, s) of the second stage's sessions, as :func:`relative` gives them.
    """
    of_session = np.take_along_axis(sessions, found.session, axis=1)
    place = np.argsort(np.argsort(-sessions, axis=1, kind="stable"), axis=1, kind="stable")
    rank = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1, kind="stable")
    tenth = -np.sort(-scores, axis=1)[:, 9:10] if scores.shape[1] > 9 else np.full((len(scores), 1), LOWEST)
    mass = np.where(found.held, np.exp(scores), 0.0).sum(axis=1, keepdims=True)
    best = np.full(sessions.shape, LOWEST, np.float32)
    rows = np.broadcast_to(np.arange(len(scores))[:, None], scores.shape)
    np.maximum.at(best, (rows[found.held], found.session[found.held]), scores[found.held])
    columns = [
        scores,
        np.log1p(rank),
        of_session,
        np.log1p(np.take_along_axis(place, found.session, axis=1)),
        scores - np.take_along_axis(best, found.session, axis=1),
        scores - tenth,
        np.broadcast_to(np.log(np.maximum(mass, 1e-9)), scores.shape),
        *(_neighbour(found, scores, step) for step in (1, -1, 2, -2)),
        alike,
        *(found.value(name) for name in _OF_TURN),
    ]
    return np.stack(columns, axis=-1).astype(np.float32)


def _neighbour(found: Candidates, scores: np.ndarray, step: int) -> np.ndarray:
    """Give each candidate the score of the turn ``step`` places before it in its session; the lowest where unknown."""
    low = int(found.at.min(initial=0)) - 2
    width = int(found.at.max(initial=0)) - low + 3
    rows = np.broadcast_to(np.arange(len(scores))[:, None], scores.shape)
    board, number = np.full((len(scores), width), LOWEST, np.float32), np.full((len(scores), width), -1)
    cells = rows[found.held], found.at[found.held] - low
    board[cells], number[cells] = scores[found.held], found.session[found.held]
    there = rows, found.at - low - step
    return np.where(number[there] == found.session, board[there], LOWEST)
