"""Figures for a paper: in goes a frame, out comes a figure, and from there files and a gallery.

One file per family of charts. A chart function gives a ``plotly.graph_objects.Figure`` and never
shows or writes it; ``style`` holds the look and the layouts, ``intervals`` rows of marks with
intervals, ``map_marks`` and ``map_names`` what maps mark and name, ``text_and_glyphs`` measures and
wraps words, ``label_placement`` keeps labels off each other. Nothing of what makes the frames is
imported. :func:`export` writes a figure with its data and provenance, :func:`write_gallery` makes a
page of all.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from memlab.errors import explain_arguments, require_extra

with require_extra("figures", "a figure"):
    import plotly  # noqa: F401  else an import below would fail without the name of the extra

from memlab.figures import (
    anatomy,
    bars,
    cost_of_recall,
    curves,
    intervals,
    style,
    sweep_panels,
)
from memlab.figures.figure_export import ExportedFigure, export
from memlab.figures.figure_gallery import write_gallery

__all__ = [
    "ExportedFigure",
    "anatomy",
    "bars",
    "condensed_tree",
    "cost_of_recall",
    "curves",
    "export",
    "icicle",
    "intervals",
    "maps",
    "style",
    "sweep_panels",
    "write_gallery",
]


def __getattr__(name: str) -> Any:
    """Import maps and trees when they are first asked for: one notebook draws each."""
    if name not in ("condensed_tree", "icicle", "maps"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


explain_arguments(globals())
