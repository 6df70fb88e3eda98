"""The learned reranker: turns from what is known of them, and sessions from their turns."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from memlab.embed.encoder import HALF, Encoder
from memlab.embed.headers import header_of
from memlab.errors import ModelError, check_at_least
from memlab.records import Level, Run
from memlab.registry import stage
from memlab.rerank import features
from memlab.rerank.features import Candidates, ranking_to_places
from memlab.rerank.network_ensemble import Model, predict
from memlab.retrieve import Bench
from memlab.retrieve.ranking import rank_scored_pairs, require_turn_run

BUNDLED_MODEL = Path(__file__).with_name("box.safetensors")
"""The model that comes with memlab; its card is ``box.md`` beside it, ``scripts/box.py`` makes it again."""


@stage
def learned(
    run: Run, bench: Bench, *, level: Level = "turn", model: str = "", candidates: int = 200
) -> Run:
    """Rerank candidates by a trained model: yours, or the bundled one.

    Two small networks score turns by about ninety features of question, turn, neighbourhood,
    session and scope: one learned to put turns first, the other also to put sessions first, which
    rank by the shares of their turns together. The score that a turn had before does not matter,
    only that it is a candidate. The bundled model learned from invented conversations, and to what
    it says the untrained sum is added.

    :param model: a file that ``memlab train`` wrote. Empty: the bundled model.
    :param candidates: how many of the run's first documents to rank; the rest is left out.
    :raises DataError: when the run ranks sessions, or the encoder gives no token embeddings.
    :raises ModelError: for a model that was trained with another encoder, header or memlab.

    Source: the features are those of learning to rank (Liu, Learning to Rank for Information
    Retrieval, 2009) over conversations; what is learned, and how, :func:`memlab.rerank.network_ensemble.fit`.

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
    require_turn_run(run, "learned")
    check_at_least(1, candidates=candidates)
    trained = _load_fitting_model(Path(model) if model else BUNDLED_MODEL, bench)
    places, mask = ranking_to_places(run.top(candidates).frame, bench)
    found = []
    for part in features.candidate_features(bench, places, mask):
        scope = bench.queries["scope"][int(part.rows[0])]
        if list(part.names) != list(trained.about["features"]):
            raise ModelError(
                f"model {model!r} was trained with other features, by another memlab; train it again"
            )
        values = score_candidates(trained, part, level=level)
        row, column = np.nonzero(np.isfinite(values))
        at = (
            part.at[row, column]
            if level == "turn"
            else bench.documents("session").spans[scope][0] + column
        )
        order = np.lexsort((bench.documents(level).lot[at], row))
        found.append((part.rows[row[order]], at[order], values[row, column][order]))
    return rank_scored_pairs(bench, found, level=level, k=max(candidates, 200))


def score_candidates(model: Model, part: Candidates, *, level: Level = "turn") -> np.ndarray:
    """Score candidates, or the sessions that they stand in, which rank by the sum of their turns' shares.

    A model that says so (``about["sum"]``, by level) adds so much of the untrained sum, both in
    standard deviations from the mean of what there is to rank.

    :returns: (q, c) scores of turns or (q, s) of sessions, float64; −inf where there is none.
    """
    network, weight = (
        model.turns if level == "turn" else model.sessions,
        model.about.get("sum", {}).get(level, 0.0),
    )
    scores = np.where(part.mask, predict(network, part.values), -np.inf).astype(np.float64)
    untrained = np.where(part.mask, part.value("sum"), -np.inf)
    if level == "session":
        row, best = (
            np.arange(len(scores))[:, None],
            np.full((len(scores), part.n_sessions), -np.inf),
        )
        np.maximum.at(best, (row, part.session), untrained)
        untrained = best
        first = np.maximum(
            scores.max(axis=1, keepdims=True), -1e9
        )  # a question may have no candidate
        cell, n = part.session + row * part.n_sessions, best.size
        shares = np.bincount(cell.ravel(), np.exp(scores - first).ravel(), minlength=n).reshape(
            best.shape
        )
        there = np.bincount(cell[part.mask], minlength=n).reshape(best.shape) > 0
        scores = np.where(there, np.log(np.maximum(shares, 1e-300)), -np.inf)
    return (
        _standardise_scores(scores) + weight * _standardise_scores(untrained) if weight else scores
    )


def _standardise_scores(scores: np.ndarray) -> np.ndarray:
    """Put the finite scores of each row in standard deviations from their mean: (q, n)."""
    there = np.isfinite(scores)
    n = np.maximum(there.sum(axis=1, keepdims=True), 1)
    mean = np.where(there, scores, 0.0).sum(axis=1, keepdims=True) / n
    apart = np.where(there, scores - mean, 0.0)
    return np.where(
        there, apart / (np.sqrt((apart**2).sum(axis=1, keepdims=True) / n) + 1e-6), -np.inf
    )


def _load_fitting_model(path: Path, bench: Bench) -> Model:
    """Load a model and see that it was trained with the bench's encoder and header."""
    state = path.stat() if os.path.isfile(path) else None
    model = _load_cached_model(
        str(path), state.st_mtime_ns if state else 0, state.st_size if state else 0
    )
    own: dict[str, Any] = {"encoder": bench.provenance.get("encoder"), "header": list(bench.header)}
    name = (
        "header"
        if _strip_encoder_name(model.about["encoder"]) == _strip_encoder_name(own["encoder"])
        else "encoder"
    )
    if name == "encoder" or model.about["header"] != own["header"]:
        whose = (
            "the model that comes with memlab" if path == BUNDLED_MODEL else f"model {str(path)!r}"
        )
        raise ModelError(
            f"{whose} was trained with {name} {model.about[name]!r}; the bench has {own[name]!r}: take the same "
            f"{name}, or train a model (memlab train FILE)"
        )
    return model


def bundled_model_fits(encoder: Encoder | None) -> bool:
    """Say whether the bundled reranker works with an encoder and its contextual header.

    >>> import memlab
    >>> from memlab.rerank import bundled_model_fits
    >>> bundled_model_fits(memlab.embed.load("hashing:32")), bundled_model_fits(None)
    (False, False)
    """
    about = _load_cached_model(str(BUNDLED_MODEL), 0, 0).about
    same = encoder is not None and _strip_encoder_name(about["encoder"]) == _strip_encoder_name(
        encoder.identity.describe()
    )
    return same and about["header"] == list(header_of(encoder))


def _strip_encoder_name(encoder: str | None) -> str | None:
    """Give what two descriptions of one encoder share: the digest of the weights, not the name that they go by.

    Vectors in half precision are near enough to the exact ones for a reranker.
    """
    return encoder and re.sub(r"^(\w+) .*(?= \([^()]+\), \d+-d)", r"\1", encoder.replace(HALF, ""))


@lru_cache(maxsize=32)
def _load_cached_model(path: str, changed: int, size: int) -> Model:
    return Model.load(path)
