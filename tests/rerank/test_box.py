"""Small networks that learn to rank lists, and the bundled reranker: what it learned from, how the sum tempers it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stand_in import StandIn

import memlab
from memlab.records import Dataset
from memlab.rerank import BUNDLED_MODEL, Model, bundled_model_fits
from memlab.rerank.learned import score_candidates
from memlab.rerank.model import BATCH, fit, predict, scope_fingerprints
from memlab.rerank.training import TrainingLists

Lists = tuple[np.ndarray, np.ndarray, np.ndarray]


def planted(n: int, *, seed: int = 0) -> Lists:
    """Make lists whose positives are the two items of greatest x0 − 2·x1, on features of unlike scales."""
    values = np.random.default_rng(seed).normal(size=(n, 10, 5)).astype(np.float32)
    worth = values[..., 0] - 2 * values[..., 1]
    positive = worth >= np.sort(worth, axis=1)[:, [-2]]
    return values * np.array([1, 100, 1, 0.01, 1], np.float32) + 7, positive, np.ones((n, 10), bool)


@pytest.fixture(scope="module")
def network() -> dict[str, np.ndarray]:
    return dict(fit(*planted(300)))


def test_a_planted_rule_is_learned_and_lists_are_scored_alone(network: dict[str, np.ndarray]) -> None:
    values, positive, _ = planted(BATCH + 3, seed=1)
    scores = predict(network, values)
    assert scores.dtype == np.float32
    assert np.take_along_axis(positive, np.argsort(-scores, axis=1)[:, :2], axis=1).mean() > 0.9  # by chance 0.2
    for i in (0, BATCH - 1, BATCH, BATCH + 2):
        np.testing.assert_allclose(predict(network, values[i : i + 1])[0], scores[i], atol=1e-5)
    order = np.random.default_rng(0).permutation(values.shape[1])
    np.testing.assert_allclose(predict(network, values[:, order]), scores[:, order], atol=1e-5)
    assert predict(network, values[:0]).shape == (0, values.shape[1])


def test_groups_are_learned_by_the_sum_of_their_items() -> None:
    """The positive item is the only one of a kind in its list; all items of its group share a mark."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 12, 3)).astype(np.float32)
    group = np.tile(np.repeat(np.arange(4), 3), (300, 1))
    wanted = rng.integers(0, 4, 300)
    values[..., 0] += 3 * (group == wanted[:, None])
    positive = np.zeros((300, 12), bool)
    positive[np.arange(300), wanted * 3 + rng.integers(0, 3, 300)] = True
    network = fit(values[:200], positive[:200], np.ones((200, 12), bool), group=group[:200])
    shares = np.exp(predict(network, values[200:])).reshape(100, 4, 3).sum(axis=2)
    assert (shares.argmax(axis=1) == wanted[200:]).mean() > 0.9  # by chance 0.25


def test_the_seed_gives_the_weights_and_torchs_own_state_is_left_alone() -> None:
    import torch

    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one = fit(*planted(40), seed=3)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(6)
    again, other = fit(*planted(40), seed=3), fit(*planted(40), seed=4)
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not np.array_equal(one["weight_0"], other["weight_0"])


@pytest.fixture(scope="module")
def box() -> Model:
    return Model.load(BUNDLED_MODEL)


def test_it_learned_from_the_talk_that_is_here_by_features_that_are_still_computed(
    box: Model, lists: list[TrainingLists]
) -> None:
    talk, held_out = (
        [memlab.datasets.load(file) for file in sorted(Path(folder).glob("*.jsonl"))]
        for folder in ("data/train", "data/heldout")
    )
    assert box.about["data"] == [{"name": data.name, "fingerprint": data.fingerprint()} for data in talk]
    scopes = {mark for data in talk for mark in scope_fingerprints(data.turns, data.scopes).values()}
    assert set(box.about["scopes"]) == scopes
    assert box.about["questions"] == sum((~data.questions["abstention"]).sum() for data in talk)
    assert not any(scopes & set(scope_fingerprints(data.turns, data.scopes).values()) for data in held_out)
    assert box.about["features"] == list(lists[0].candidates.names)


@pytest.mark.parametrize("level", ["turn", "session"])
def test_the_untrained_sum_tempers_it(box: Model, lists: list[TrainingLists], level: str) -> None:
    part = lists[0].candidates
    alone, half, nearly_all = (
        score_candidates(replace(box, about={**box.about, "sum": {level: weight}}), part, level=level)
        for weight in (0.0, 0.5, 1e6)
    )
    for other in (half, nearly_all):
        assert (np.isfinite(other) == np.isfinite(alone)).all()
    for row, there in enumerate(np.isfinite(alone)):
        best = np.where(part.mask[row], part.value("sum")[row], -np.inf).argmax()
        assert nearly_all[row].argmax() == (best if level == "turn" else part.session[row, best])
        assert half[row][there].mean() == pytest.approx(0, abs=1e-4)


@pytest.mark.nightly
def test_it_completes_more_answers_than_the_untrained_sum() -> None:
    done = memlab.run(["best", "best | learned"], memlab.sample(), encoder="minilm", levels=["turn"])
    untrained, learned = (report.per_query["recall_all@10"].mean() for report in done.reports)
    assert learned > untrained


def test_it_is_compared_where_it_fits_and_nothing_can_be_trained(
    small: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not bundled_model_fits(StandIn(), ())
    assert not bundled_model_fits(memlab.embed.load("minilm"), ("weather",))
    assert all(bundled_model_fits(memlab.embed.load(same), ()) for same in ("minilm", "minilm:bf16"))
    monkeypatch.setattr("memlab.experiments.running.bundled_model_fits", lambda encoder, header: True)
    monkeypatch.setattr(
        sys.modules["memlab.rerank.learned"], "_load_fitting_model", lambda path, bench: Model.load(BUNDLED_MODEL)
    )
    done = memlab.run(None, small.take(small.scopes[:1]), encoder=StandIn(), levels=["turn"])
    assert done.cells["pipeline"].to_list() == ["bm25", "dense", "hybrid", "best", "best | learned"]
