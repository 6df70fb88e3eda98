"""Training of the learned reranker: what it learns from, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from memlab.distributed import parallel_map
from memlab.errors import DataError
from memlab.records import Dataset, qrels
from memlab.rerank.features import Candidates, best_candidate_places, candidate_features
from memlab.rerank.model import Model, fit, predict, scope_fingerprints
from memlab.retrieve import Bench

CANDIDATES, HARD, SOME = 200, 50, 0.15
"""First candidates of a question; those of them that are learned from in any case, and the share of the others."""

N_HELD_OUT_FOLDS, MOST_FOLDS = 3, 10
"""Of conversations: those that scores of a model are measured on, and models of a cross-validation at most."""


@dataclass(frozen=True, eq=False)
class TrainingLists:
    """Questions with candidates and what of them is evidence: what a model learns from.

    :param candidates: of one scope.
    :param scope: its fingerprint.
    :param encoder: what the bench's vectors were made with.
    :param header: the fields of its contextual header.
    :param turns: (q, c) whether a candidate is evidence.
    :param n_evidence: (q,) evidence items, among the candidates or not.
    """

    candidates: Candidates
    scope: str
    encoder: str
    header: tuple[str, ...]
    turns: np.ndarray
    n_evidence: np.ndarray


def training_lists(bench: Bench, dataset: Dataset) -> list[TrainingLists]:
    """Gather the questions of a dataset that have evidence, with their first candidates.

    :raises DataError: when no question has evidence in a turn.
    """
    documents = bench.documents("turn")
    pairs = qrels(dataset.questions, "turn").frame.select("query_id", "doc_id")
    pairs = pairs.join(bench.queries.select("query_id").with_row_index("row"), on="query_id")
    pairs = (
        pairs.join(documents.place, on="doc_id").select(pl.col("row").cast(pl.Int64), "at").unique()
    )
    if pairs.is_empty():
        raise DataError(
            f"no question of {dataset.name!r} names a turn as evidence; there is nothing to learn from"
        )
    n, (row, at) = len(documents.ids), pairs.to_numpy().T
    counts, prints = (
        np.bincount(row, minlength=len(bench.queries)),
        scope_fingerprints(bench.turns, dataset.scopes),
    )
    lists = []
    for part in candidate_features(bench, *best_candidate_places(bench, CANDIDATES)):
        keep = counts[part.rows] > 0
        if keep.any():
            of_queries = ("rows", "at", "mask", "session", "values")
            part = replace(part, **{name: getattr(part, name)[keep] for name in of_queries})
            scope, encoder = (
                bench.queries["scope"][int(part.rows[0])],
                str(bench.provenance.get("encoder")),
            )
            turns = np.isin(part.rows[:, None] * n + part.at, row * n + at) & part.mask
            lists.append(
                TrainingLists(part, prints[scope], encoder, bench.header, turns, counts[part.rows])
            )
    return lists


def train(lists: Sequence[TrainingLists], *, seed: int = 0) -> Model:
    """Train a reranker on questions with evidence.

    :raises DataError: when there are no lists, or no question has its evidence among its
        candidates.
    """
    values, wanted, mask, session = _sample_examples(lists, seed)
    about = {
        "features": list(lists[0].candidates.names),
        "encoder": lists[0].encoder,
        "header": list(lists[0].header),
        "scopes": sorted({part.scope for part in lists}),
        "questions": sum(len(part.turns) for part in lists),
        "seed": seed,
    }
    return Model(
        fit(values, wanted, mask, seed=seed),
        fit(values, wanted, mask, group=session, seed=seed),
        about,
    )


def _sample_examples(lists: Sequence[TrainingLists], seed: int) -> list[np.ndarray]:
    """Give evidence, hard others and some of the rest: features (q, c, f); evidence, presence and session (q, c)."""
    if not lists:
        raise DataError(
            "there are no questions to learn from; give conversations whose questions name evidence turns"
        )
    rng = np.random.default_rng(seed)
    parts = []
    for part in lists:
        c = part.candidates.mask.shape[1]
        hard = (np.arange(c) < HARD) | (rng.random((len(part.turns), c)) < SOME) | part.turns
        seen = hard & part.candidates.mask
        order = np.argsort(~seen, axis=1, kind="stable")[:, : int(seen.sum(axis=1).max(initial=1))]
        values = np.take_along_axis(part.candidates.values, order[..., None], axis=1)
        others = (
            np.take_along_axis(x, order, axis=1)
            for x in (part.turns, seen, part.candidates.session)
        )
        parts.append((values, *others))
    width = max(values.shape[1] for values, *_ in parts)

    def wider(x: np.ndarray) -> np.ndarray:
        return np.pad(x, [(0, 0), (0, width - x.shape[1])] + [(0, 0)] * (x.ndim - 2))

    values, wanted, mask, session = (
        np.concatenate([wider(part[i]) for part in parts]) for i in range(4)
    )
    learnable = (wanted & mask).any(axis=1)
    if not learnable.any():
        raise DataError(
            "no question has its evidence among its candidates; there is nothing to learn from"
        )
    return [x[learnable] for x in (values, wanted, mask, session)]


def held_out_scores(lists: Sequence[TrainingLists], *, seed: int = 0) -> dict[str, float]:
    """Measure complete recall of conversations, each ranked by a network that did not learn from it.

    :returns: recall_all at 10 and 20 turns; empty where there is one conversation alone.
    """
    number = np.unique([part.scope for part in lists], return_inverse=True)[1] % N_HELD_OUT_FOLDS
    complete: dict[int, list[np.ndarray]] = {10: [], 20: []}
    for fold in np.unique(number) if number.max(initial=0) else []:
        values, wanted, mask, _ = _sample_examples(
            [part for part, f in zip(lists, number, strict=True) if f != fold], seed
        )
        network = fit(values, wanted, mask, seed=seed)
        for part in (part for part, f in zip(lists, number, strict=True) if f == fold):
            scores = np.where(
                part.candidates.mask, predict(network, part.candidates.values), -np.inf
            )
            ranked = np.take_along_axis(
                part.turns, np.argsort(-scores, axis=1, kind="stable"), axis=1
            )
            for k, counted in complete.items():
                counted.append(ranked[:, :k].sum(axis=1) == part.n_evidence)
    return {
        f"recall_all@{k}": float(np.concatenate(counted).mean())
        for k, counted in complete.items()
        if counted
    }


def cross_validate(
    lists: Sequence[TrainingLists], directory: str | Path, *, seed: int = 0, engine: str = "local"
) -> Path:
    """Train one model for each fold of conversations, at most ten, on all the others, and write them to a folder.

    :param engine: ``ray``: a worker of a cluster trains a fold, see
        :func:`memlab.distributed.parallel_map`.
    :returns: the folder, for ``learned(model=...)``.
    :raises DataError: when there is only one conversation.
    """
    from tqdm.auto import tqdm

    scopes = sorted({part.scope for part in lists})
    if len(scopes) < 2:
        raise DataError(
            "cross-validation by scope needs two conversations with evidence, and there is one; add others"
        )
    fold_of = {scope: i % MOST_FOLDS for i, scope in enumerate(scopes)}
    directory = Path(directory)
    for old in directory.glob("fold-*.safetensors"):
        old.unlink()
    n = min(MOST_FOLDS, len(scopes))
    models = parallel_map(_train_fold, range(n), list(lists), fold_of, seed, engine=engine)
    for fold, model in enumerate(tqdm(models, total=n, desc="training folds")):
        model.save(directory / f"fold-{fold}.safetensors")
    return directory


def _train_fold(fold: int, lists: list[TrainingLists], fold_of: dict[str, int], seed: int) -> Model:
    """Train the model of a fold, on all other conversations."""
    return train([part for part in lists if fold_of[part.scope] != fold], seed=seed)
