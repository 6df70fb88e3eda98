"""The learned reranker: turns from what is known of them, and sessions from their turns."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from memlab.embed.token_vectors import TokenEncoder
from memlab.errors import ModelError, check_at_least
from memlab.records import Level, Run
from memlab.registry import Count, ModelFile, stage
from memlab.rerank import reranker_features
from memlab.rerank.network_ensemble import Model, predict_scores
from memlab.rerank.reranker_features import Candidates, padded_turn_places_by_question
from memlab.retrieve import Bench
from memlab.retrieve.best_pipeline import log_and_note_left_out_scorers, no_token_vectors_message
from memlab.retrieve.rankings_from_scores import ScoredPairs, rank_scored_pairs, refuse_session_run

BUNDLED_MODEL = Path(__file__).with_name("box.safetensors")
"""The model that comes with memlab.

Its card is ``box.md`` beside it, ``scripts/box.py`` makes it again.
"""


@stage
def learned(
    run: Run, bench: Bench, *, level: Level = "turn", model: ModelFile = "", candidates: Count = 200
) -> Run:
    """Rerank candidates by a trained model: yours, or the bundled one.

    Two small networks score turns by some eighty features of question, turn, neighbourhood,
    session and scope: one learned to put turns first, the other also to put sessions first, which
    rank by the shares of their turns together. The score that a turn had before does not matter,
    only that it is a candidate. The bundled model learned from invented conversations, and to what
    it says the untrained sum is added.

    A model serves any encoder: what it learned is how a turn compares with the others of its scope.
    Where an encoder gives no token vectors and no token encoder stands beside it, the features of
    late interaction are left out, which is logged once and stands in the provenance as
    ``left_out``.

    :param model: a file that ``memlab train`` wrote. Empty: the bundled model.
    :param candidates: how many of the run's first documents to rank; the rest is left out.
    :raises DataError: when the run ranks sessions, or the bench has no encoder.
    :raises ModelError: for a model that was trained with other features, by another memlab.

    Source: the features are those of learning to rank (Liu, Learning to Rank for Information
    Retrieval, 2009) over conversations; what is learned, and how,
    :func:`memlab.rerank.network_ensemble.fit_ranking_networks`.

    >>> import tempfile, memlab
    >>> from memlab.rerank import learned, train, training_lists
    >>> data = memlab.sample(turns=60)
    >>> bench = memlab.Bench.of(data, encoder="minilm", progress=False)
    >>> path = f"{tempfile.mkdtemp()}/model.safetensors"
    >>> train(training_lists(bench, data)).save(path)
    >>> run = memlab.retrieve.hybrid(bench)
    >>> learned(run, bench, model=path, level="session").level
    'session'
    """
    refuse_session_run(run, "learned")
    check_at_least(1, candidates=candidates)
    encoder = bench.embedder()
    model_path = BUNDLED_MODEL
    if model:
        model_path = Path(model)
    trained_model = _load_model_once_per_file_state(model_path)
    places, mask = padded_turn_places_by_question(run.top(candidates).frame, bench)
    scored_pairs = []
    for query_candidates in reranker_features.candidate_features(bench, places, mask):
        scope = bench.queries["scope"][int(query_candidates.rows[0])]
        if list(query_candidates.names) != list(trained_model.about["features"]):
            raise ModelError(
                f"model {str(model_path)!r} was trained with other features, by another memlab; "
                "train it again"
            )
        candidate_scores = score_candidates(trained_model, query_candidates, level=level)
        query_rows, document_columns = np.nonzero(np.isfinite(candidate_scores))
        document_places = (
            query_candidates.at[query_rows, document_columns]
            if level == "turn"
            else bench.documents("session").spans[scope][0] + document_columns
        )
        ranking_order = np.lexsort((bench.documents(level).tie_order[document_places], query_rows))
        scored_pairs.append(
            ScoredPairs(
                query_candidates.rows[query_rows[ranking_order]],
                document_places[ranking_order],
                candidate_scores[query_rows, document_columns][ranking_order],
            )
        )
    ranked = rank_scored_pairs(bench, scored_pairs, level=level, k=max(candidates, 200))
    if isinstance(encoder, TokenEncoder):
        return ranked
    return log_and_note_left_out_scorers(
        ranked, "learned", ("late",), no_token_vectors_message(encoder)
    )


def score_candidates(model: Model, candidates: Candidates, *, level: Level = "turn") -> np.ndarray:
    """Score candidates, or the sessions that they stand in, which rank by the sum of their turns'
    shares.

    A model that says so (``about["sum"]``, by level) adds so much of the untrained sum, both in
    standard deviations from the mean of what there is to rank.

    :returns: (q, c) scores of turns or (q, s) of sessions, float64; −inf where there is none.
    """
    network = model.turns if level == "turn" else model.sessions
    sum_weight = model.about.get("sum", {}).get(level, 0.0)
    scores = np.where(candidates.mask, predict_scores(network, candidates.values), -np.inf).astype(
        np.float64
    )
    untrained = np.where(candidates.mask, candidates.feature_values("sum"), -np.inf)
    if level == "session":
        row_numbers = np.arange(len(scores))[:, None]
        session_best = np.full((len(scores), candidates.n_sessions), -np.inf)
        np.maximum.at(session_best, (row_numbers, candidates.session), untrained)
        untrained = session_best
        highest_score = np.maximum(
            scores.max(axis=1, keepdims=True), -1e9
        )  # a question may have no candidate
        session_cells = candidates.session + row_numbers * candidates.n_sessions
        n_cells = session_best.size
        score_shares = np.bincount(
            session_cells.ravel(), np.exp(scores - highest_score).ravel(), minlength=n_cells
        ).reshape(session_best.shape)
        has_candidate = (
            np.bincount(session_cells[candidates.mask], minlength=n_cells).reshape(
                session_best.shape
            )
            > 0
        )
        scores = np.where(has_candidate, np.log(np.maximum(score_shares, 1e-300)), -np.inf)
    return (
        _standardise_finite_scores(scores) + sum_weight * _standardise_finite_scores(untrained)
        if sum_weight
        else scores
    )


def _standardise_finite_scores(scores_per_question: np.ndarray) -> np.ndarray:
    """Put the finite scores of each row in standard deviations from their mean: (q, n)."""
    is_scored = np.isfinite(scores_per_question)
    n_scored = np.maximum(is_scored.sum(axis=1, keepdims=True), 1)
    mean_score = np.where(is_scored, scores_per_question, 0.0).sum(axis=1, keepdims=True) / n_scored
    deviation = np.where(is_scored, scores_per_question - mean_score, 0.0)
    return np.where(
        is_scored,
        deviation / (np.sqrt((deviation**2).sum(axis=1, keepdims=True) / n_scored) + 1e-6),
        -np.inf,
    )


def _load_model_once_per_file_state(model_path: Path) -> Model:
    """Load a model; one that was loaded before is read again where its file has changed."""
    changed_at = 0
    file_size = 0
    if model_path.is_file():
        file_state = model_path.stat()
        changed_at = file_state.st_mtime_ns
        file_size = file_state.st_size
    return _load_model_cached_by_file_state(str(model_path), changed_at, file_size)


@lru_cache(maxsize=32)
def _load_model_cached_by_file_state(model_path: str, modified_ns: int, file_size: int) -> Model:
    return Model.load(model_path)
