"""Lines: a measure over k or its price, and confidence over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures._text_measuring import (
    cut_to_width,
    drawable_text,
    escape,
    place_labels,
    printable_line,
    spread_labels,
    text_px,
    widest_px,
)
from memlab.interval_labels import describe_intervals

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_LEFT_PX = 42
_STEPS_OF_A_LINE = 60
_NICE_K = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)


@style.said_where_empty
def recall_curves(
    frame: pl.DataFrame, *, measure: str = "recall_all@k", axis: str = "k", log_x: bool = True
) -> go.Figure:
    """Draw a measure over the cut-off k, or over its price, one line a system with its interval.

    At column width the systems are named in a legend under the plot, best first; at page width
    beside their lines.

    :param frame: ``system``, ``k``, ``mean``, ``low``, ``high``; also ``chance`` and ``ceiling``,
        drawn in grey, ``point``, a short name that stands near its mark at page width, and
        ``level``, ``unit`` and ``units``, said beside the x axis.
    :param measure: the name of the measure, on the y axis.
    :param axis: what the column ``k`` holds, on the x axis.

    >>> import polars as pl
    >>> from memlab.figures import curves
    >>> ends = {"low": [0.1, 0.3], "high": [0.3, 0.5]}
    >>> points = pl.DataFrame({"system": "bm25", "k": [5, 10], "mean": [0.2, 0.4], **ends})
    >>> [trace.name for trace in curves.recall_curves(points).data if trace.showlegend]
    ['bm25']
    """
    columns = ("system", "k", "mean", "low", "high")
    style.check_columns(frame, columns, "recall_curves")
    frame = frame.drop_nulls("mean")
    style.check_columns(frame, columns, "recall_curves (where something was measured)")
    frame = style.shorten_names(frame, "system")
    last = frame.sort("k").group_by("system").agg(pl.col("mean").last())
    best_first = last.sort("mean", "system", descending=[True, False])["system"].to_list()
    top = max(float(frame.select(pl.max_horizontal("high", "mean").max()).item()), 1e-3)
    traces = list[Any]()
    for i, (name, of_system) in enumerate(style.rows_by_value(frame, "system")):
        rows = of_system.sort("k")
        banded, tint = rows.drop_nulls(["low", "high"]), style.rgba_colour(style.colour(i), 0.12)
        traces += [
            style.line(
                [*banded["k"], *banded["k"].reverse()],
                [*banded["high"], *banded["low"].reverse()],
                drawable_text(name),
                line={"width": 0, "color": None, "dash": None},
                fill="toself",
                fillcolor=tint,
                hoverinfo="skip",
                legendgroup=name,
                showlegend=False,
            ),
            style.marked_line(
                rows["k"],
                rows["mean"],
                name,
                i,
                legendgroup=name,
                legendrank=best_first.index(name),
                showlegend=True,
                hovertemplate=f"{drawable_text(axis)} = %{{x:~g}}: %{{y:.3f}}",
            ),
        ]
    limits = [
        t
        for i, c in enumerate(("chance", "ceiling"))
        for t in _draw_bound(frame, c, top, len(best_first) + i)
    ]
    y_top = min(1.02, max([top, *(v for t in limits for v in t.y if v is not None)]) * 1.06)
    shown = [t for t in (*traces, *limits) if t.showlegend]
    ends = [
        (t.legendgroup or t.name, y_top if t.y[-1] is None else t.y[-1], t.line.color)
        for t in shown
    ]
    ks = sorted(frame["k"].unique().to_list())
    ticks = ks if len(ks) <= 8 else [v for v in _NICE_K if v in ks] or ks[:: len(ks) // 6]
    low, high = ks[0], ks[-1]
    if log_x:
        low, high = math.log10(max(low, 0.5)), math.log10(high)
    pad = (high - low or 1) * 0.03
    marks = []
    if "point" in frame.columns:
        marks = _named_marks(frame, (low - pad, high + pad), y_top, log_x)
    return _name_line_ends(
        [*traces, *limits],
        ends,
        names=[t.legendgroup or t.name for t in sorted(shown, key=lambda t: t.legendrank)],
        tall=(250, 190),
        measure=measure,
        y_top=y_top,
        marks=marks,
        xaxis={
            "title": {"text": _axis_title(frame, axis, log_x)},
            "type": "log" if log_x else "linear",
            "tickvals": ticks if axis == "k" else None,
            "range": [low - pad, high + pad],
        },
    )


_Mark = tuple[float, float, str, str]
"""A point of the plot as shares of its width and height, its name and its colour."""


def _named_marks(
    frame: pl.DataFrame, span: tuple[float, float], y_top: float, log_x: bool
) -> list[_Mark]:
    """Give the points that have a name."""
    marks = []
    for i, (_, rows) in enumerate(style.rows_by_value(frame, "system")):
        ink = style.darken_colour(style.colour(i), 0.15)
        for row in rows.drop_nulls("point").iter_rows(named=True):
            x = row["k"]
            if log_x:
                x = math.log10(max(x, 0.5))
            across = (x - span[0]) / (span[1] - span[0])
            marks.append((across, row["mean"] / y_top, printable_line(row["point"]), ink))
    return marks


def _mark_labels(marks: Sequence[_Mark], wide: float, high: float) -> list[dict[str, Any]]:
    """Write the names of points near their marks, off marks and lines and on no other name."""
    if not marks:
        return []
    places = np.array([(x * wide, y * high) for x, y, *_ in marks])
    sizes = np.array([(text_px(text, style.SMALL) + 2, 9.0) for *_, text, _ in marks])
    along = [places]
    for i, (before, after) in enumerate(pairwise(marks)):
        if before[-1] == after[-1]:
            along.append(np.linspace(places[i], places[i + 1], _STEPS_OF_A_LINE))
    covered = np.concatenate(along)
    # The highest are placed first, for they have the least room.
    order = np.argsort(-places[:, 1], kind="stable")
    centres = np.empty_like(places)
    centres[order] = place_labels(
        places[order], sizes[order], covered, area=(wide, high), radii=(6, 9, 13, 18)
    )
    return [
        style.text_note(
            escape(text),
            x / wide,
            y / high,
            "center middle",
            font={"size": style.SMALL, "color": ink},
        )
        for (*_, text, ink), (x, y) in zip(marks, centres, strict=True)
        if not math.isnan(x)
    ]


def _axis_title(frame: pl.DataFrame, axis: str, log_x: bool) -> str:
    """Name the x axis, and what the bands are where the frame says it."""
    title = drawable_text(axis)
    if log_x:
        title += " (log scale)"
    if "level" in frame.columns:
        title += f"; bands: {describe_intervals(frame)}"
    return title


def _draw_bound(frame: pl.DataFrame, column: str, top: float, rank: int) -> list[go.Scatter]:
    """Draw chance or the ceiling; a ceiling far above every line is only named."""
    if column not in frame.columns or frame[column].null_count() == frame.height:
        return []
    rows = frame.drop_nulls(column).group_by("k").agg(pl.col(column).mean()).sort("k")
    lowest = float(rows[column].min())  # type: ignore[arg-type]
    off_scale = column == "ceiling" and lowest > 2.5 * top
    name = (
        f"{column} (≥ {int(lowest * 100 + 1e-9) / 100:.2f}, off the scale)" if off_scale else column
    )
    x, y = ([None], [None]) if off_scale else (rows["k"], rows[column])
    return [
        style.line(
            x,
            y,
            name,
            width=1,
            dash="dot" if column == "chance" else "dashdot",
            showlegend=True,
            legendrank=rank,
            hoverinfo="skip" if off_scale else "name+y",
        )
    ]


def _name_line_ends(
    traces: Sequence[Any],
    ends: Sequence[tuple[str, float, str]],
    *,
    names: Sequence[str],
    tall: tuple[int, int],
    measure: str,
    y_top: float,
    notes: Sequence[dict[str, Any]] = (),
    marks: Sequence[_Mark] = (),
    **own: Any,
) -> go.Figure:
    """Make a figure of lines, whose names (name, y, colour) stand beside their ends at page width.

    :param names: of the legend, at column width, or where a name is too long.
    :param tall: height of the plot, names beside it and under it.
    :param notes: added where the names stand beside the lines.
    :param marks: points that are named at page width; a column has no room for it.
    """
    widest = widest_px([printable_line(name) for name, *_ in ends], style.SMALL)

    def layout_for(px: int) -> dict[str, Any]:
        beside = px > style.WIDTHS["column"] and widest <= 0.38 * px
        plot_px, right = tall[1], 12
        if beside:
            plot_px, right = tall[0], int(widest) + 16
        at = (
            spread_labels([y / y_top * plot_px for _, y, _ in ends], 12, low=4, high=plot_px)
            / plot_px
        )
        labels = [
            style.text_note(
                escape(cut_to_width(name, right - 10, style.SMALL)),
                1,
                y,
                "left middle",
                xshift=5,
                font={"size": style.SMALL, "color": style.darken_colour(colour, 0.15)},
            )
            for (name, _, colour), y in zip(ends, at, strict=True)
        ]
        named = _mark_labels(marks, px - _LEFT_PX - right, plot_px)
        return style.layout(
            px,
            names=[] if beside else names,
            plot_px=plot_px,
            left=_LEFT_PX,
            right=right,
            annotations=[*named, *labels, *notes] if beside else [],
            yaxis={"title": {"text": drawable_text(measure)}, "range": [0, y_top]},
            **own,
        )

    return style.make_figure(traces, layout_for)


@style.said_where_empty
def confidence_curves(frame: pl.DataFrame, *, events: Sequence[float] = ()) -> go.Figure:
    """Draw confidence over time, one line a family, with repetitions as jumps.

    At column width the families are named in a legend under the plot, at page width beside their
    lines.

    :param frame: what :func:`memlab.knowledge.confidence.trajectory` gives: ``family``, ``day`` and
        ``confidence``.
    :param events: the days on which the fact was heard again, marked under the plot.

    >>> from memlab.figures import curves
    >>> from memlab.knowledge import confidence
    >>> from memlab.knowledge.decay_curves import Exponential, PlateauLinear
    >>> families = {"plateau_linear": PlateauLinear(), "exponential": Exponential()}
    >>> [line.name for line in curves.confidence_curves(confidence.trajectory(families)).data]
    ['plateau_linear', 'exponential']
    """
    style.check_columns(frame, ("family", "day", "confidence"), "over_time")
    lines, ends = [], []
    for i, (name, of_family) in enumerate(style.rows_by_value(frame, "family")):
        rows = of_family.sort("day", maintain_order=True)
        lines.append(
            style.line(
                rows["day"],
                rows["confidence"],
                style.legend_name(name),
                style.colour(i),
                width=1.6,
                dash=_DASHES[i % len(_DASHES)],
                line={"simplify": False},
                hovertemplate="day %{x:~g}: %{y:.3f}",
            )
        )
        ends.append((printable_line(name), float(rows["confidence"][-1]), style.colour(i)))
    names, notes = [printable_line(line.name) for line in lines], []
    if events:
        names.append("heard again")
        lines.append(
            go.Scatter(
                x=[*events],
                y=[0.0] * len(events),
                mode="markers",
                name="heard again",
                hoverinfo="name+x",
                cliponaxis=False,
                marker={"symbol": "triangle-up", "size": 8, "color": style.INK},
            )
        )
        # Beside the lines only the marks still need a legend, and a legend of one is a note.
        notes = [style.text_note("▲ heard again", 1, 0, "right top", yshift=-19)]
    days = [frame["day"].min(), frame["day"].max()]
    return _name_line_ends(
        lines,
        ends,
        names=names,
        tall=(200, 200),
        measure="confidence",
        y_top=1.03,
        notes=notes,
        bottom=38,
        xaxis={"title": {"text": "days"}, "range": days, "nticks": 9},
    )
