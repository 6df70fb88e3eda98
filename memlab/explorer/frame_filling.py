"""A layout that fills its frame: turned, stretched, and with its crowds loosened."""

from __future__ import annotations

import numpy as np

ASPECT = 1.5
"""Width of a map by its height."""
_LOOSENED = 0.5
_STEP_DEGREES = 3


def fill_frame(places: np.ndarray, *, aspect: float = ASPECT) -> np.ndarray:
    """Turn and stretch a layout until it fills a frame; its directions and distances mean nothing.

    The layout is turned so that it fits the frame largest, and each axis is stretched to its side.
    Then each coordinate moves half of the way to its rank, which narrows gaps and loosens crowds:
    along an axis the order of points stays.

    :param places: (n, 2) finite coordinates, such as UMAP's.
    :param aspect: width of the frame by its height.
    :returns: (n, 2) float64, from −.95 to .95 along the longer side, with the middle at 0; an axis
        along which all places are equal stays at 0.

    >>> import numpy as np
    >>> from memlab.explorer.frame_filling import fill_frame
    >>> line = np.column_stack([np.zeros(3), [0.0, 5.0, 6.0]])  # it is turned to a diagonal
    >>> np.abs(fill_frame(line)).max(axis=0).round(2).tolist()
    [0.95, 0.63]
    """
    if not len(places):
        return np.zeros((0, 2))
    turned = _turn_to_fit(np.asarray(places, dtype=np.float64), aspect)
    sides = 1.9 * np.array([aspect, 1.0]) / max(aspect, 1.0)
    filled = np.zeros_like(turned)
    for axis, side in enumerate(sides):
        values, where = np.unique(turned[:, axis].round(9), return_inverse=True)
        if len(values) > 1:
            stretched = (values - values[0]) / (values[-1] - values[0])
            ranks = np.linspace(0, 1, len(values))
            loosened = (1 - _LOOSENED) * stretched + _LOOSENED * ranks
            filled[:, axis] = side * (loosened[where] - 0.5)
    return filled


def _turn_to_fit(places: np.ndarray, aspect: float) -> np.ndarray:
    """Turn a layout about its mean so that it fits a frame largest; the first of equal angles."""
    centred = places - places.mean(axis=0)
    angles = np.deg2rad(np.arange(0, 180, _STEP_DEGREES))
    turns = np.array([[[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]] for a in angles])
    scales = []
    for turn in turns:
        across, up = np.maximum(np.ptp(centred @ turn, axis=0), 1e-9)
        scales.append(round(min(aspect / across, 1.0 / up), 9))
    turned: np.ndarray = centred @ turns[int(np.argmax(scales))]
    return turned
