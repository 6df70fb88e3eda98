"""Small networks that learn to rank lists."""

from __future__ import annotations

import numpy as np

from memlab.rerank.listwise import BATCH, fit, predict


def planted(n: int = 80, c: int = 10, f: int = 5, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make lists whose positives are the two items of greatest x0 − 2·x1, on features of unlike scales."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, c, f)).astype(np.float32)
    worth = values[..., 0] - 2 * values[..., 1]
    positive = worth >= np.sort(worth, axis=1)[:, [-2]]
    return values * np.array([1, 100, 1, 0.01, 1], np.float32) + 7, positive, np.ones((n, c), bool)


def test_a_planted_rule_is_learned() -> None:
    values, positive, held = planted(300)
    network = fit(values, positive, held)
    values, positive, _ = planted(100, seed=1)
    scores = predict(network, values)
    assert scores.dtype == np.float32
    first = np.argsort(-scores, axis=1)[:, :2]
    found = np.take_along_axis(positive, first, axis=1).mean()
    assert found > 0.9  # by chance 0.2


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
    alone = fit(values[:200], positive[:200], np.ones((200, 12), bool))
    assert not np.array_equal(network["weight_0"], alone["weight_0"])


def test_the_seed_gives_the_weights_and_torchs_own_state_is_left_alone() -> None:
    import torch

    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one = fit(*planted(), seed=3)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(6)
    np.random.seed(1)  # noqa: NPY002
    again, other = fit(*planted(), seed=3), fit(*planted(), seed=4)
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not np.array_equal(one["weight_0"], other["weight_0"])


def test_lists_are_scored_alone() -> None:
    network = fit(*planted())
    values = planted(BATCH + 3, seed=2)[0]
    whole = predict(network, values)
    for i in (0, BATCH - 1, BATCH, BATCH + 2):
        np.testing.assert_allclose(predict(network, values[i : i + 1])[0], whole[i], atol=1e-5)
    order = np.random.default_rng(0).permutation(values.shape[1])
    np.testing.assert_allclose(predict(network, values[:, order]), whole[:, order], atol=1e-5)
    assert predict(network, values[:0]).shape == (0, values.shape[1])
