"""Figures for a paper: one file per family of charts, one export, one gallery.

A chart function takes a frame and gives a ``plotly.graph_objects.Figure``; it never shows or writes. :func:`export`
writes one with its data and provenance, :func:`gallery` makes a page of all that were exported.
"""

from __future__ import annotations

from memlab.figures import (
    anatomy,
    corpus,
    curves,
    decay,
    decay_live,
    decay_truth,
    follow_ups,
    ladder,
    learning,
    maps,
    rollup,
    selection,
    similarity,
    style,
    sweeps,
)
from memlab.figures._browser import exporting
from memlab.figures._browser import find as browser
from memlab.figures.export import Exported, export
from memlab.figures.gallery import gallery

__all__ = [
    "Exported",
    "anatomy",
    "browser",
    "corpus",
    "curves",
    "decay",
    "decay_live",
    "decay_truth",
    "export",
    "exporting",
    "follow_ups",
    "gallery",
    "ladder",
    "learning",
    "maps",
    "rollup",
    "selection",
    "similarity",
    "style",
    "sweeps",
]
