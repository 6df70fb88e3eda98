"""A layout that fills its frame."""

from __future__ import annotations

import numpy as np
import pytest

from memlab.explorer.map_layout import stretch_layout_to_frame


def two_islands(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    upper, lower = rng.normal((0, 9), 0.4, (60, 2)), rng.normal((1, -9), 0.4, (90, 2))
    return np.vstack([upper, lower])


def empty_share(places: np.ndarray, across: int = 12, up: int = 8) -> float:
    """Give the share of a frame's cells without a point, at one scale on both axes."""
    low, side = places.min(axis=0), max(np.ptp(places[:, 0]) / across, np.ptp(places[:, 1]) / up)
    cells = {tuple(cell) for cell in np.floor((places - low) / side * 0.999).astype(int)}
    return 1 - len(cells) / (across * up)


@pytest.mark.parametrize("seed", [0, 1])
def test_it_spans_the_frame_with_less_empty(seed: int) -> None:
    places = two_islands(seed)
    filled = stretch_layout_to_frame(places, aspect=1.5)
    np.testing.assert_allclose(np.abs(filled).max(axis=0), [0.95, 0.95 / 1.5])
    assert empty_share(filled) < empty_share(places) - 0.15
    ours, theirs = (
        np.linalg.norm(at[:, None] - at[None], axis=2) + np.diag([np.inf] * len(at))
        for at in (filled, places)
    )
    islands = np.arange(len(places)) < 60
    for distances in (ours, theirs):
        assert (islands[distances.argmin(axis=1)] == islands).all(), "islands stay apart"


def test_turning_what_goes_in_by_a_half_changes_nothing_but_the_side() -> None:
    places = two_islands(2)
    once, turned = stretch_layout_to_frame(places), stretch_layout_to_frame(-places)
    np.testing.assert_allclose(np.abs(once), np.abs(turned), atol=1e-6)


@pytest.mark.parametrize("places", [np.zeros((0, 2)), np.zeros((1, 2)), np.ones((5, 2))])
def test_few_or_equal_places_stay_finite(places: np.ndarray) -> None:
    filled = stretch_layout_to_frame(places)
    assert filled.shape == places.shape
    assert not filled.any()
