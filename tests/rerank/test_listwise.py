"""Small networks that learn to rank lists."""

from __future__ import annotations

import numpy as np
import pytest

from memlab.rerank.listwise import BATCH, fit, predict

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
