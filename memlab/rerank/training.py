"""Training of the learned reranker: what it learns from, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Dataset, qrels
from memlab.rerank._second import alike_elsewhere, relative, session_values, turn_values
from memlab.rerank.features import Candidates, candidates, first_places
from memlab.rerank.listwise import Network, fit, predict
from memlab.rerank.model import Model, scope_fingerprints
from memlab.retrieve import Bench

CANDIDATES = 200
HARD = 50
SOME = 0.15
INNER = 5


@dataclass(frozen=True, eq=False)
class Lists:
    """Questions with candidates and what of them is evidence: what a model learns from.

    :param found: of one scope.
    :param scope: its fingerprint.
    :param vectors: (n, d) embeddings of all turns of the bench.
    :param encoder: what made them.
    :param turns: (q, c) whether a candidate is evidence.
    :param n_evidence: (q,) pieces of evidence, among the candidates or not.
    :param sessions: (q, s) whether a session holds evidence.
    """

    found: Candidates
    scope: str
    vectors: np.ndarray
    encoder: str
    turns: np.ndarray
    n_evidence: np.ndarray
    sessions: np.ndarray


def training_lists(bench: Bench, dataset: Dataset) -> list[Lists]:
    """Gather the questions of a dataset that have evidence, with their first candidates.

    :raises DataError: when no question has evidence in a turn.
    """
    wanted = {
        level: qrels(dataset.questions, level).frame.select("query_id", "doc_id") for level in ("turn", "session")
    }
    documents = bench.documents("turn")
    row_of = bench.queries.select("query_id", "scope").with_row_index("row")
    marks: dict[str, np.ndarray] = {}
    for level, frame in wanted.items():
        found = frame.join(row_of, on="query_id").join(bench.documents(level).place, on="doc_id")  # type: ignore[arg-type]
        marks[level] = found.select("row", "at").cast(pl.Int64).to_numpy().T
    asked = np.unique(marks["turn"][0])
    if not len(asked):
        raise DataError(f"no question of {dataset.name!r} names a turn as evidence; there is nothing to learn from")
    places, held = first_places(bench, CANDIDATES)
    lists = []
    prints = scope_fingerprints(bench.turns, dataset.scopes)
    n_turns, n_sessions = len(documents.ids), len(bench.documents("session").ids)
    counts = np.bincount(marks["turn"][0], minlength=len(bench.queries))
    evidence = np.unique(marks["turn"][0] * n_turns + marks["turn"][1])
    of_session = np.unique(marks["session"][0] * n_sessions + marks["session"][1])
    first = {scope: span[0] for scope, span in bench.documents("session").spans.items()}
    for part in candidates(bench, places, held):
        scope = bench.queries["scope"][int(part.rows[0])]
        turns = np.isin(part.rows[:, None] * n_turns + part.at, evidence) & part.held
        numbers = part.rows[:, None] * n_sessions + first[scope] + np.arange(part.n_sessions)
        keep = np.isin(part.rows, asked)
        if keep.any():
            kept = replace(
                part,
                rows=part.rows[keep],
                at=part.at[keep],
                held=part.held[keep],
                session=part.session[keep],
                values=part.values[keep],
            )
            lists.append(
                Lists(
                    kept,
                    prints[scope],
                    documents.vectors(),
                    str(bench.provenance.get("encoder")),
                    turns[keep],
                    counts[part.rows[keep]],
                    np.isin(numbers[keep], of_session),
                )
            )
    return lists


def train(lists: Sequence[Lists], *, seed: int = 0) -> Model:
    """Learn from questions with evidence.

    The second stage must see first-stage scores as honest as it will get later: each conversation is scored by a
    first stage that did not learn from it.

    :raises DataError: when there are no lists.
    """
    if not lists:
        raise DataError("there are no questions to learn from; give conversations whose questions name evidence turns")
    folds = _folds([one.scope for one in lists])
    scores: list[np.ndarray] = [np.zeros(0)] * len(lists)
    for fold in range(int(folds.max()) + 1):
        inside = [one for one, f in zip(lists, folds, strict=True) if f != fold] or list(lists)
        network = _first(inside, seed)
        for i in np.flatnonzero(folds == fold).tolist():
            scores[i] = relative(predict(network, lists[i].found.values), lists[i].found.held)
    alike = [alike_elsewhere(one.found, s, one.vectors) for one, s in zip(lists, scores, strict=True)]
    described = [session_values(one.found, s, a) for one, s, a in zip(lists, scores, alike, strict=True)]
    sessions = _fit([v for v, _ in described], [one.sessions for one in lists], [held for _, held in described], seed)
    of_sessions = [relative(predict(sessions, v), held) for v, held in described]
    again = [turn_values(one.found, s, o, a) for one, s, o, a in zip(lists, scores, of_sessions, alike, strict=True)]
    second = _fit(again, [one.turns for one in lists], [one.found.held for one in lists], seed)
    about = {
        "features": list(lists[0].found.names),
        "encoder": lists[0].encoder,
        "scopes": sorted({one.scope for one in lists}),
        "questions": sum(len(one.turns) for one in lists),
        "seed": seed,
        "scores": _scores(lists, scores),
    }
    return Model(_first(lists, seed), sessions, second, about)


def _scores(lists: Sequence[Lists], scores: Sequence[np.ndarray]) -> dict[str, float]:
    """Measure first-stage scores of conversations that the stage did not learn from, by all their evidence."""
    complete: dict[int, list[np.ndarray]] = {10: [], 20: []}
    for one, score in zip(lists, scores, strict=True):
        rank = np.argsort(np.argsort(-score, axis=1, kind="stable"), axis=1, kind="stable")
        for k, found in complete.items():
            inside = (one.turns & (rank < k)).sum(axis=1) == one.n_evidence
            found.append(inside)
    return {f"recall_all@{k}": float(np.concatenate(found).mean()) for k, found in complete.items()}


def cross_validate(lists: Sequence[Lists], directory: str | Path, *, folds: int = 10, seed: int = 0) -> Path:
    """Train one model for each fold of conversations, on all the others, and write them to a folder.

    :param folds: at most so many; as many as there are conversations where those are fewer.
    :returns: the folder, for ``learned(model=...)``.
    :raises DataError: when there is only one conversation.
    """
    from tqdm.auto import tqdm

    scopes = sorted({one.scope for one in lists})
    if len(scopes) < 2:
        raise DataError("cross-validation by scope needs two conversations with evidence, and there is one; add others")
    fold_of = {scope: i % folds for i, scope in enumerate(scopes)}
    directory = Path(directory)
    for old in directory.glob("fold-*.safetensors"):
        old.unlink()
    for fold in tqdm(range(min(folds, len(scopes))), desc="training folds"):
        model = train([one for one in lists if fold_of[one.scope] != fold], seed=seed)
        model.save(directory / f"fold-{fold}.safetensors")
    return directory


def _folds(scopes: Sequence[str]) -> np.ndarray:
    """Put scopes into at most five folds; the lists of one scope stay together unless there is only one scope."""
    number = np.unique(np.array(scopes), return_inverse=True)[1]
    return (number if number.max(initial=0) else np.arange(len(scopes))) % INNER


def _first(lists: Sequence[Lists], seed: int) -> Network:
    """Train the first stage on the evidence, the hardest others, and some of the rest."""
    rng = np.random.default_rng(seed)
    values, positive, held = [], [], []
    for one in lists:
        c = one.found.held.shape[1]
        hard = (np.arange(c) < HARD) | (rng.random((len(one.turns), c)) < SOME) | one.turns
        order = np.argsort(~(hard & one.found.held), axis=1, kind="stable")
        width = int((hard & one.found.held).sum(axis=1).max(initial=1))
        order = order[:, :width]
        values.append(np.take_along_axis(one.found.values, order[..., None], axis=1))
        positive.append(np.take_along_axis(one.turns, order, axis=1))
        held.append(np.take_along_axis(hard & one.found.held, order, axis=1))
    return _fit(values, positive, held, seed)


def _fit(
    values: Sequence[np.ndarray], positive: Sequence[np.ndarray], held: Sequence[np.ndarray], seed: int
) -> Network:
    width = max(v.shape[1] for v in values)

    def padded(parts: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate([np.pad(p, [(0, 0), (0, width - p.shape[1])] + [(0, 0)] * (p.ndim - 2)) for p in parts])

    items, wanted, there = padded(values), padded(positive), padded(held)
    learnable = (wanted & there).any(axis=1)
    if not learnable.any():
        raise DataError("no question has its evidence among its candidates; there is nothing to learn from")
    return fit(items[learnable], wanted[learnable], there[learnable], seed=seed)
