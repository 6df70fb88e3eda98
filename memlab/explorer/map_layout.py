"""A layout that fills its frame: turned, stretched, and with its crowds loosened."""

from __future__ import annotations

import numpy as np

ASPECT = 1.5
"""Width of a map by its height."""
_LOOSENED = 0.5
_STEP_DEGREES = 3


def stretch_layout_to_frame(places: np.ndarray, *, aspect: float = ASPECT) -> np.ndarray:
    """Turn and stretch a layout until it fills a frame; its directions and distances mean nothing.

    The layout is turned so that it fits the frame largest, and each axis is stretched to its side.
    Then each coordinate moves half of the way to its rank, which narrows gaps and loosens crowds:
    along an axis the order of points stays.

    :param places: (n, 2) finite coordinates, such as UMAP's.
    :param aspect: width of the frame by its height.
    :returns: (n, 2) float64, from −.95 to .95 along the longer side, with the middle at 0; an axis
        along which all places are equal stays at 0.

    >>> import numpy as np
    >>> from memlab.explorer.map_layout import stretch_layout_to_frame
    >>> line = np.column_stack([np.zeros(3), [0.0, 5.0, 6.0]])  # it is turned to a diagonal
    >>> np.abs(stretch_layout_to_frame(line)).max(axis=0).round(2).tolist()
    [0.95, 0.63]
    """
    if not len(places):
        return np.zeros((0, 2))
    turned_places = _rotate_to_aspect(np.asarray(places, dtype=np.float64), aspect)
    side_lengths = 1.9 * np.array([aspect, 1.0]) / max(aspect, 1.0)
    filled_places = np.zeros_like(turned_places)
    for axis_number, side_length in enumerate(side_lengths):
        distinct_values, value_of_place = np.unique(
            turned_places[:, axis_number].round(9), return_inverse=True
        )
        if len(distinct_values) > 1:
            stretched = (distinct_values - distinct_values[0]) / (
                distinct_values[-1] - distinct_values[0]
            )
            even_places = np.linspace(0, 1, len(distinct_values))
            loosened = (1 - _LOOSENED) * stretched + _LOOSENED * even_places
            filled_places[:, axis_number] = side_length * (loosened[value_of_place] - 0.5)
    return filled_places


def _rotate_to_aspect(layout_points: np.ndarray, width_to_height: float) -> np.ndarray:
    """Turn a layout about its mean so that it fits a frame largest; the first of equal angles."""
    centred = layout_points - layout_points.mean(axis=0)
    angles = np.deg2rad(np.arange(0, 180, _STEP_DEGREES))
    rotations = np.array(
        [[[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]] for angle in angles]
    )
    fitting_scales = []
    for rotation in rotations:
        width, height = np.maximum(np.ptp(centred @ rotation, axis=0), 1e-9)
        fitting_scales.append(round(min(width_to_height / width, 1.0 / height), 9))
    turned_places: np.ndarray = centred @ rotations[int(np.argmax(fitting_scales))]
    return turned_places
