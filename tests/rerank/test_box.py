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

Lists = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def planted(n: int, *, seed: int = 0) -> Lists:
    """Make lists of four groups: the positive item is the only one of its group, all of which share a mark."""
    rng = np.random.default_rng(seed)
    values, group = rng.normal(size=(n, 12, 3)).astype(np.float32), np.tile(np.repeat(np.arange(4), 3), (n, 1))
    wanted = rng.integers(0, 4, n)
    values[..., 0] += 3 * (group == wanted[:, None])
    positive = np.zeros((n, 12), bool)
    positive[np.arange(n), wanted * 3 + rng.integers(0, 3, n)] = True
    return values * np.array([1, 100, 0.01], np.float32) + 7, positive, group, wanted


def learn(n: int, *, seed: int = 0) -> dict[str, np.ndarray]:
    values, positive, group, _ = planted(n)
    return dict(fit(values, positive, np.ones_like(positive), group=group, seed=seed))


def test_groups_are_learned_by_the_sum_of_their_items_and_lists_are_scored_alone() -> None:
    network, (values, _, _, wanted) = learn(200), planted(BATCH + 3, seed=1)
    scores = predict(network, values)
    shares = np.exp(scores).reshape(-1, 4, 3).sum(axis=2)
    assert (shares.argmax(axis=1) == wanted).mean() > 0.9  # by chance 0.25
    for i in (0, BATCH - 1, BATCH, BATCH + 2):
        np.testing.assert_allclose(predict(network, values[i : i + 1])[0], scores[i], atol=1e-5)
    order = np.random.default_rng(0).permutation(12)
    np.testing.assert_allclose(predict(network, values[:, order]), scores[:, order], atol=1e-5)
    assert predict(network, values[:0]).shape == (0, 12)


def test_the_seed_gives_the_weights_and_torchs_own_state_is_left_alone() -> None:
    import torch

    before = torch.random.get_rng_state()
    one = learn(40, seed=3)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(6)
    again, other = learn(40, seed=3), learn(40, seed=4)
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
