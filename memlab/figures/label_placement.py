"""Where labels stand so that they cover neither each other nor what is drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def spread_labels(positions: Sequence[float], gap: float, *, low: float, high: float) -> np.ndarray:
    """Move labels on a line as little as possible (in squares) until neighbours are ``gap`` apart.

    Subtracting ``i · gap`` from the i-th position in order turns the problem into isotonic
    regression.
    """
    from scipy.optimize import isotonic_regression

    wanted_places = np.asarray(positions, dtype=float)
    position_order = np.argsort(wanted_places, kind="stable")
    gap_steps = np.arange(len(wanted_places)) * gap
    flattened = wanted_places
    if len(wanted_places):
        flattened = isotonic_regression(wanted_places[position_order] - gap_steps).x
    flattened = np.clip(flattened, low, max(low, high - gap * max(len(flattened) - 1, 0)))
    placed_labels = np.empty(len(wanted_places))
    placed_labels[position_order] = flattened + gap_steps
    return placed_labels


def place_labels(
    anchors: np.ndarray,
    sizes: np.ndarray,
    obstacles: np.ndarray,
    *,
    area: tuple[float, float],
    radii: Sequence[float],
    weights: np.ndarray | None = None,
    most_covered: float = np.inf,
) -> np.ndarray:
    """Find a place for each label near its anchor: in the area, on no other label, over few points.

    Greedy, in the order given. Each label tries rings of places around its anchor and takes the
    cheapest.

    :param anchors: (n, 2) pixels.
    :param sizes: (n, 2) width and height of each label in pixels.
    :param obstacles: (m, 2) pixels of what would be covered; ``weights`` (n, m) says how bad each
        is for each label (1 where not given).
    :param area: width and height of the plot in pixels.
    :param radii: distances from the anchor to try.
    :param most_covered: the sum of weights that a label may cover.
    :returns: (n, 2) centres; NaN where no free place was found.
    """
    angles = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    ring_list = []
    for radius in radii:
        ring_angles = angles
        if not radius:
            ring_angles = angles[:1]
        ring_list += [(radius * np.cos(angle), radius * np.sin(angle)) for angle in ring_angles]
    ring_places = np.array(ring_list)
    point_weights = weights
    if point_weights is None:
        point_weights = np.ones((len(anchors), len(obstacles)))
    centres = np.full((len(anchors), 2), np.nan)
    for label_index, (anchor, label_size) in enumerate(zip(anchors, sizes, strict=True)):
        offsets = ring_places + np.sign(np.round(ring_places, 6)) * label_size / 2 * (
            np.abs(ring_places) > 0.3 * np.abs(ring_places).max(1, keepdims=True)
        )
        tried_places = anchor + offsets
        is_inside = (
            (tried_places - label_size / 2 >= 1)
            & (tried_places + label_size / 2 <= np.asarray(area) - 1)
        ).all(axis=1)
        placed_labels = np.flatnonzero(~np.isnan(centres[:, 0]))
        is_clashing = (
            (
                np.abs(tried_places[:, None] - centres[placed_labels])
                < (label_size + sizes[placed_labels]) / 2 + 1.5
            )
            .all(axis=2)
            .any(axis=1)
        )
        free_places = np.flatnonzero(is_inside & ~is_clashing)
        if not len(free_places):
            continue
        covered = (np.abs(tried_places[free_places, None] - obstacles) < label_size / 2 + 2).all(
            axis=2
        ) @ point_weights[label_index]
        place_costs = covered + 0.3 * np.linalg.norm(ring_places[free_places], axis=1)
        best_place = int(np.argmin(place_costs))
        if covered[best_place] <= most_covered:
            centres[label_index] = tried_places[free_places[best_place]]
    return centres
