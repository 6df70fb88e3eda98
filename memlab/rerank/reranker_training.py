"""Training of the learned reranker: what it learns from, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Dataset, qrels
from memlab.rerank.learned_reranker import score_candidates
from memlab.rerank.network_ensemble import Model, content_fingerprint_by_scope, fit_ranking_networks
from memlab.rerank.reranker_features import Candidates, best_candidate_places, candidate_features
from memlab.retrieve import Bench

CANDIDATES = 200
HARD = 50
SOME = 0.15
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
    evidence_pairs = qrels(dataset.questions, "turn").frame.select("query_id", "doc_id")
    query_rows = bench.queries.select("query_id").with_row_index("row")
    # In one order wherever it runs, since lists are drawn from with a seed.
    evidence_pairs = evidence_pairs.join(query_rows, on="query_id", maintain_order="left")
    evidence_pairs = evidence_pairs.join(documents.place_of_id, on="doc_id", maintain_order="left")
    evidence_pairs = evidence_pairs.select(pl.col("row").cast(pl.Int64), "at").unique(
        maintain_order=True
    )
    if evidence_pairs.is_empty():
        raise DataError(
            f"no question of {dataset.name!r} names a turn as evidence; there is nothing to learn "
            "from"
        )
    n_documents = len(documents.ids)
    (evidence_rows, evidence_places) = evidence_pairs.to_numpy().T
    evidence_counts = np.bincount(evidence_rows, minlength=len(bench.queries))
    fingerprints = content_fingerprint_by_scope(bench.turns, dataset.scopes)
    scope_lists = []
    for scope_candidates in candidate_features(bench, *best_candidate_places(bench, CANDIDATES)):
        has_evidence = evidence_counts[scope_candidates.rows] > 0
        if has_evidence.any():
            of_queries = ("rows", "at", "mask", "session", "values")
            scope_candidates = replace(
                scope_candidates,
                **{name: getattr(scope_candidates, name)[has_evidence] for name in of_queries},
            )
            scope = bench.queries["scope"][int(scope_candidates.rows[0])]
            encoder = str(bench.provenance.get("encoder"))
            is_evidence = (
                np.isin(
                    scope_candidates.rows[:, None] * n_documents + scope_candidates.at,
                    evidence_rows * n_documents + evidence_places,
                )
                & scope_candidates.mask
            )
            scope_lists.append(
                TrainingLists(
                    scope_candidates,
                    fingerprints[scope],
                    scope,
                    encoder,
                    bench.header,
                    is_evidence,
                    evidence_counts[scope_candidates.rows],
                )
            )
    return scope_lists


def train(lists: Sequence[TrainingLists], *, seed: int = 0) -> Model:
    """Train a reranker on questions with evidence.

    :raises DataError: when there are no lists, or no question has its evidence among its
        candidates.
    """
    example_values, is_positive, example_mask, example_sessions = _sample_training_examples(
        lists, seed
    )
    description = {
        "features": list(lists[0].candidates.names),
        "encoder": lists[0].encoder,
        "header": list(lists[0].header),
        "scopes": sorted({scope_list.scope for scope_list in lists}),
        "questions": sum(len(scope_list.turns) for scope_list in lists),
        "seed": seed,
    }
    return Model(
        fit_ranking_networks(example_values, is_positive, example_mask, seed=seed),
        fit_ranking_networks(
            example_values, is_positive, example_mask, group_of_item=example_sessions, seed=seed
        ),
        description,
    )


class _TrainingExamples(NamedTuple):
    """The candidates (c) of questions (q) that a model learns from, with f features each.

    :param features: (q, c, f).
    :param is_evidence: (q, c).
    :param is_candidate: (q, c) whether there is one.
    :param session: (q, c) its number.
    """

    features: np.ndarray
    is_evidence: np.ndarray
    is_candidate: np.ndarray
    session: np.ndarray


def _sample_training_examples(lists: Sequence[TrainingLists], seed: int) -> _TrainingExamples:
    """Draw evidence, hard others and some of the rest."""
    if not lists:
        raise DataError(
            "there are no questions to learn from; give conversations whose questions name "
            "evidence turns"
        )
    generator = np.random.default_rng(seed)
    example_parts = []
    for scope_list in lists:
        n_candidates = scope_list.candidates.mask.shape[1]
        is_chosen = (
            (np.arange(n_candidates) < HARD)
            | (generator.random((len(scope_list.turns), n_candidates)) < SOME)
            | scope_list.turns
        )
        is_seen = is_chosen & scope_list.candidates.mask
        seen_first = np.argsort(~is_seen, axis=1, kind="stable")[
            :, : int(is_seen.sum(axis=1).max(initial=1))
        ]
        seen_values = np.take_along_axis(
            scope_list.candidates.values, seen_first[..., None], axis=1
        )
        other_arrays = (
            np.take_along_axis(example_array, seen_first, axis=1)
            for example_array in (scope_list.turns, is_seen, scope_list.candidates.session)
        )
        example_parts.append((seen_values, *other_arrays))
    widest_list = max(seen_values.shape[1] for seen_values, *_ in example_parts)

    def pad_to_widest(example_array: np.ndarray) -> np.ndarray:
        return np.pad(
            example_array,
            [(0, 0), (0, widest_list - example_array.shape[1])]
            + [(0, 0)] * (example_array.ndim - 2),
        )

    seen_values, is_positive, mask, session = (
        np.concatenate([pad_to_widest(scope_list[array_number]) for scope_list in example_parts])
        for array_number in range(4)
    )
    is_learnable = (is_positive & mask).any(axis=1)
    if not is_learnable.any():
        raise DataError(
            "no question has its evidence among its candidates; there is nothing to learn from"
        )
    return _TrainingExamples(
        seen_values[is_learnable],
        is_positive[is_learnable],
        mask[is_learnable],
        session[is_learnable],
    )


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
    scopes = sorted({scope_list.scope for scope_list in lists})
    if len(scopes) < 2:
        return list(lists), []
    shuffled_places = np.random.default_rng(seed).permutation(len(scopes))
    n_held_out = max(1, round(HELD_OUT_SHARE * len(scopes)))
    chosen_scopes = {scopes[place] for place in shuffled_places[:n_held_out]}
    other_lists = [scope_list for scope_list in lists if scope_list.scope not in chosen_scopes]
    held_out = [scope_list for scope_list in lists if scope_list.scope in chosen_scopes]
    return other_lists, held_out


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
    complete_before: list[np.ndarray] = []
    complete_after: list[np.ndarray] = []
    for scope_list in lists:
        scores = score_candidates(model, scope_list.candidates)
        best_first = np.argsort(-scores, axis=1, kind="stable")
        reranked = np.take_along_axis(scope_list.turns, best_first, axis=1)
        complete_before.append(scope_list.turns[:, :k].sum(axis=1) == scope_list.n_evidence)
        complete_after.append(reranked[:, :k].sum(axis=1) == scope_list.n_evidence)
    is_complete = np.concatenate(complete_before)
    return {
        "n": len(is_complete),
        "best": float(is_complete.mean()),
        "learned": float(np.concatenate(complete_after).mean()),
    }
