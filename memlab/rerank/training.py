"""Training of the learned reranker: what it learns from, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Dataset, qrels
from memlab.rerank.features import Candidates, best_candidate_places, candidate_features
from memlab.rerank.learned import score_candidates
from memlab.rerank.network_ensemble import Model, fit, scope_fingerprints
from memlab.retrieve import Bench

CANDIDATES, HARD, SOME = 200, 50, 0.15
"""First candidates of a question.

Those of them that are learned from in any case, and the share of the others.
"""

HELD_OUT_SHARE = 0.25
"""Of the conversations, those that ``memlab train`` measures a model on."""


@dataclass(frozen=True, eq=False)
class TrainingLists:
    """Questions with candidates and what of them is evidence: what a model learns from.

    :param candidates: of one scope.
    :param scope: its fingerprint.
    :param name: what the dataset calls it.
    :param encoder: what the bench's vectors were made with.
    :param header: the fields of its contextual header.
    :param turns: (q, c) whether a candidate is evidence.
    :param n_evidence: (q,) evidence items, among the candidates or not.
    """

    candidates: Candidates
    scope: str
    name: str
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
    asked = bench.queries.select("query_id").with_row_index("row")
    # In one order wherever it runs, since lists are drawn from with a seed.
    pairs = pairs.join(asked, on="query_id", maintain_order="left")
    pairs = pairs.join(documents.place, on="doc_id", maintain_order="left")
    pairs = pairs.select(pl.col("row").cast(pl.Int64), "at").unique(maintain_order=True)
    if pairs.is_empty():
        raise DataError(
            f"no question of {dataset.name!r} names a turn as evidence; there is nothing to learn "
            "from"
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
                TrainingLists(
                    part, prints[scope], scope, encoder, bench.header, turns, counts[part.rows]
                )
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
    """Give evidence, hard others and some of the rest: features (q, c, f).

    Evidence, presence and session (q, c).
    """
    if not lists:
        raise DataError(
            "there are no questions to learn from; give conversations whose questions name "
            "evidence turns"
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


def hold_out_scopes(
    lists: Sequence[TrainingLists], *, seed: int = 0
) -> tuple[list[TrainingLists], list[TrainingLists]]:
    """Set a quarter of the conversations apart, at least one, which a model does not learn from.

    A conversation that stands in two files is on one side with all its questions.

    :param seed: chooses the conversations.
    :returns: the lists to learn from, and those held out: none where there is one conversation.

    >>> from types import SimpleNamespace
    >>> from memlab.rerank import hold_out_scopes
    >>> lists = [SimpleNamespace(scope=scope) for scope in ("ann", "bo", "cyd", "cyd")]
    >>> [sorted(part.scope for part in side) for side in hold_out_scopes(lists)]
    [['ann', 'bo'], ['cyd', 'cyd']]
    """
    scopes = sorted({part.scope for part in lists})
    if len(scopes) < 2:
        return list(lists), []
    shuffled = np.random.default_rng(seed).permutation(len(scopes))
    n_held_out = max(1, round(HELD_OUT_SHARE * len(scopes)))
    chosen = {scopes[place] for place in shuffled[:n_held_out]}
    rest = [part for part in lists if part.scope not in chosen]
    held_out = [part for part in lists if part.scope in chosen]
    return rest, held_out


def held_out_recall(
    model: Model, lists: Sequence[TrainingLists], *, k: int = 10
) -> dict[str, float]:
    """Measure the complete recall of turns in conversations that a model did not learn from.

    :param lists: of these conversations, at least one.
    :returns: ``n``: their questions with evidence; ``best`` and ``learned``: recall_all@k of the
        retriever that gave the candidates, and of the model that reranks them.

    >>> import memlab
    >>> from memlab.rerank import BUNDLED_MODEL, Model, held_out_recall, training_lists
    >>> data = memlab.sample(turns=60)
    >>> bench = memlab.Bench.of(data, encoder="minilm", progress=False)
    >>> reached = held_out_recall(Model.load(BUNDLED_MODEL), training_lists(bench, data))
    >>> sorted(reached)
    ['best', 'learned', 'n']
    """
    before: list[np.ndarray] = []
    after: list[np.ndarray] = []
    for part in lists:
        scores = score_candidates(model, part.candidates)
        order = np.argsort(-scores, axis=1, kind="stable")
        reranked = np.take_along_axis(part.turns, order, axis=1)
        before.append(part.turns[:, :k].sum(axis=1) == part.n_evidence)
        after.append(reranked[:, :k].sum(axis=1) == part.n_evidence)
    complete = np.concatenate(before)
    return {
        "n": len(complete),
        "best": float(complete.mean()),
        "learned": float(np.concatenate(after).mean()),
    }
