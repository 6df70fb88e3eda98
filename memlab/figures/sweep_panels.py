"""A measure over one parameter in small panels, or over two as a heat map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl
import polars.selectors as cs

from memlab.errors import DataError
from memlab.figures import style
from memlab.figures._text_measuring import (
    cut_to_width,
    drawable_text,
    escape,
    printable_line,
    widest_px,
    wrap,
)
from memlab.interval_labels import ALPHA, describe_intervals
from memlab.system_names import short_names

_HEADER_PX, _SECOND_LINE_PX, _FOOT_PX, _GAP_PX = 16, 12, 38, 16
_LEFT_PX, _RIGHT_PX = 42, 12
_ROOM_ABOVE = 1.08
"""Of the highest bar, as the end of the axis."""
_LINES = ("parameter", "value", "mean", "baseline", "system")
_CELLS = ("parameter", "setting", "parameter_2", "setting_2", "mean", "baseline")
_BELOW, _EQUAL, _ABOVE = "#EFB58F", "#FFFFFF", "#8CBBDC"
"""Of cells below the base, at it and above it: pale, so that black text stands on all of them."""
_LEAST_SPAN = 0.01
"""Of the colours: smaller differences stay pale."""
_BAR_PX, _CELL_PX = 62, (38, 30)
"""Room for a bar of colours, and the height of a cell with an interval and without one."""


@style.said_where_empty
def sweep(
    frame: pl.DataFrame, *, measure: str = "recall_all@10", reference: str = "plain top-k"
) -> go.Figure:
    """Draw a measure over a parameter, a panel a system, or over two parameters as a heat map.

    The plain ranking is a grey line to beat, with a band for its interval. All panels have the same
    y axis. Where there is ``p_holm``, a mark is filled where p is below .05 after Holm's
    correction, and open elsewhere.

    Of two parameters each cell has the mean, with its interval where there is room, on blue where
    it is above the plain ranking and on orange where it is below; ▲ and ▼ mark what is
    significant. The plain ranking and its interval stand below.

    :param frame: what :func:`memlab.experiments.sweep` gives, or ``system`` (of a panel),
        ``parameter`` (its name, on the x axis), ``value`` (a number; where one is null, the texts
        of ``setting`` are drawn at equal distances), ``mean`` and ``baseline`` (what the plain
        ranking reaches); bars are ``mean_low`` to ``mean_high``, or else ``low`` to ``high``.
        ``baseline_low`` and ``baseline_high`` may be there; ``level`` and ``unit`` are said in the
        legend.
    :param reference: what the baseline is called.
    :raises DataError: when there are several systems with two parameters each: draw one at a time.

    >>> import polars as pl
    >>> from memlab.figures import sweep_panels
    >>> ends = {"low": [0.0, 0.1], "high": [0.2, 0.3]}
    >>> measured = {"mean": [0.1, 0.2], "baseline": [0.1, 0.1], **ends}
    >>> rows = pl.DataFrame({"parameter": "λ", "value": [0.5, 1.0], "system": "mmr", **measured})
    >>> [trace.name for trace in sweep_panels.sweep(rows).data]
    ['plain top-k', 'with the parameter']
    """
    if "parameter_2" in frame.columns and frame["parameter_2"].count():
        return _heat_map(frame, measure, reference)
    ends = _interval_ends(frame)
    style.check_columns(frame, (*_LINES, *ends), "sweep")
    frame = frame.drop_nulls("mean")
    style.check_columns(frame, _LINES, "sweep (where something was measured)")
    banded = "baseline_low" in frame.columns and frame["baseline_low"].count() > 0
    names = [_name_marks(frame), reference]
    if banded:
        names[1] += "; band: its interval"
    panels = style.rows_by_value(frame, "system")
    traces, heads, axes = list[Any](), list[str](), list[dict[str, Any]]()
    for panel, (head, own_rows) in enumerate(panels):
        rows = own_rows.sort("value", maintain_order=True)
        x, ticks = _places(rows)
        own: dict[str, Any] = {"showlegend": panel == 0, **style.panel_axes(panel)}
        if banded:
            traces.append(_baseline_band(x, rows, reference, style.panel_axes(panel)))
        plain: dict[str, Any] = {
            "width": 1.2,
            "dash": "dash",
            "legendgroup": reference,
            "legendrank": 1001,
        }
        label = style.legend_name(names[1])
        traces.append(style.line(x, rows["baseline"], label, **plain, **own))
        error = style.error_bar(rows["mean"], rows[ends[0]], rows[ends[1]], thickness=0.8, width=2)
        look = {"error_y": error, "legendgroup": names[0], "marker": _marks(rows)}
        if "tickvals" in ticks:  # texts have no order that a line could follow
            look["mode"] = "markers"
        traces.append(style.marked_line(x, rows["mean"], names[0], 0, **look, **own))
        heads.append(printable_line(head))
        axes.append({"title": {"text": drawable_text(rows["parameter"][0])}, **ticks})
    y_range = _axis_range(frame, ends)

    def layout_for(px: int) -> dict[str, Any]:
        return _lay_out_panels(px, heads, axes, names, measure, y_range)

    return style.make_figure(traces, layout_for)


def _interval_ends(frame: pl.DataFrame) -> tuple[str, str]:
    """Name the columns of the interval of a mean; ``low`` may be of the difference."""
    if {"mean_low", "mean_high"} <= {*frame.columns}:
        return "mean_low", "mean_high"
    return "low", "high"


def _places(rows: pl.DataFrame) -> tuple[list[float], dict[str, Any]]:
    """Give where the values of a panel stand on its axis, and its ticks."""
    if not rows["value"].null_count():
        return rows["value"].to_list(), {"nticks": 6}
    if "setting" not in rows.columns:
        raise DataError("sweep has a value that is null; name each in the column setting")
    places = np.arange(rows.height, dtype=float).tolist()
    labels = list(map(drawable_text, rows["setting"]))
    return places, {"tickvals": places, "ticktext": labels, "range": [-0.4, rows.height - 0.6]}


def _baseline_band(
    x: Sequence[float], rows: pl.DataFrame, reference: str, axes: dict[str, Any]
) -> go.Scatter:
    """Draw the interval of the plain ranking behind its line."""
    low, high = rows["baseline_low"].to_list(), rows["baseline_high"].to_list()
    return style.line(
        [*x, *reversed(x)],
        [*high, *reversed(low)],
        style.legend_name(reference),
        line={"width": 0},
        fill="toself",
        fillcolor=style.rgba_colour(style.GREY, 0.15),
        hoverinfo="skip",
        legendgroup=reference,
        showlegend=False,
        **axes,
    )


def _axis_range(frame: pl.DataFrame, ends: tuple[str, str]) -> list[float]:
    """Give the ends of the axis: 0, and beyond every bar, but not far beyond 1."""
    drawn = frame.select(cs.by_name("mean", "baseline", "baseline_high", *ends, require_all=False))
    highest = drawn.select(pl.max_horizontal(pl.all()).max()).item() * _ROOM_ABOVE or 1.0
    lowest = drawn.select(pl.min_horizontal(pl.all()).min()).item() * _ROOM_ABOVE
    if highest < 1.2:
        highest = min(highest, 1.03)
    return [min(lowest, 0.0), highest]


def _lay_out_panels(
    px: int,
    heads: Sequence[str],
    axes: Sequence[dict[str, Any]],
    names: Sequence[str],
    measure: str,
    y_range: list[float],
) -> dict[str, Any]:
    """Lay panels out in two or three columns, each under the name of its system."""
    column = px <= style.WIDTHS["column"]
    columns = 3
    if column and len(heads) <= 6:
        columns = 2
    columns = min(len(heads), columns)
    down = math.ceil(len(heads) / columns)
    wide = (px - _LEFT_PX - _RIGHT_PX - _GAP_PX * (columns - 1)) / columns
    short = short_names(heads, width=int(wide / 4))
    lines = [wrap(short[head], wide, style.SMALL, bold=True) for head in heads]
    header = _HEADER_PX
    if max(map(len, lines)) > 1:
        header += _SECOND_LINE_PX
    high = 105
    if down == 1:
        high = 190
    if column:
        room = style.TALLEST_PX - 10 - style.legend_below(names, px)[1]
        high = max(48, min(high, room // down - header - _FOOT_PX))
    label = escape(cut_to_width(measure, high + header, style.TEXT))
    facets = []
    for panel, xaxis in enumerate(axes):
        first = panel % columns == 0
        title = ""
        if first:
            title = label
        yaxis = {"range": y_range, "showticklabels": first, "nticks": 6, "title": {"text": title}}
        head = f"<b>{style.join_lines(lines[panel])}</b>"
        facets.append({"head": head, "xaxis": xaxis, "yaxis": yaxis})
    return style.panels_layout(
        px,
        facets,
        columns=columns,
        high=high,
        gap=(_GAP_PX, header + _FOOT_PX),
        names=names,
        head_px=header,
        bottom=_FOOT_PX,
    )


def _name_marks(frame: pl.DataFrame) -> str:
    """Name the marks in the legend, with what their bars and their filling say."""
    parts = ["with the parameter"]
    if "p_holm" in frame.columns:
        parts.append(f"filled: p < {ALPHA:g}, corrected")
    if "level" in frame.columns:
        parts.append(f"bars: {describe_intervals(frame)}")
    return "; ".join(parts)


def _marks(rows: pl.DataFrame) -> dict[str, Any]:
    """Give the look of a panel's marks: open where the difference is not significant."""
    tint = style.colour(0)
    fill = [tint] * rows.height
    if "p_holm" in rows.columns:
        significant = (rows["p_holm"] < ALPHA).fill_null(False)
        fill = [tint if each else "white" for each in significant]
    return {
        "symbol": style.SYMBOLS[0],
        "size": 5,
        "color": fill,
        "line": {"color": tint, "width": 1},
    }


def _heat_map(frame: pl.DataFrame, measure: str, reference: str) -> go.Figure:
    """Draw a measure over two parameters of one system, a cell a combination."""
    style.check_columns(frame, _CELLS, "sweep")
    frame = frame.drop_nulls("mean")
    style.check_columns(frame, _CELLS, "sweep (where something was measured)")
    kinds = cs.by_name("system", "parameter", "parameter_2", "group", require_all=False)
    if (
        frame.select(kinds).n_unique() > 1
        or frame.select(pl.struct("setting", "setting_2").is_duplicated().any()).item()
    ):
        raise DataError(
            "sweep draws two parameters of one system, over one group of questions, at a time; "
            "filter the frame"
        )
    across = style.distinct_values(frame, "setting")
    upward = style.distinct_values(frame, "setting_2")
    columns = list(map(across.index, frame["setting"]))
    rows = list(map(upward.index, frame["setting_2"]))
    base = frame["baseline"][0]
    span = max(_LEAST_SPAN, (frame["mean"] - base).abs().max())
    colours = {
        "colorscale": [[0, _BELOW], [0.5, _EQUAL], [1, _ABOVE]],
        "cmin": base - span,
        "cmax": base + span,
    }
    # plotly writes a heat map into an SVG as pixels; bars stay lines and surfaces.
    cells = go.Bar(
        x=columns,
        base=(np.array(rows) - 0.5).tolist(),
        y=[1] * len(rows),
        width=1,
        marker={
            "color": frame["mean"].to_list(),
            "coloraxis": "coloraxis",
            "line": {"color": "white", "width": 1},
        },
        text=list(map(_share, frame["mean"])),
        textposition="none",
        hoverinfo="text",
        showlegend=False,
        name=drawable_text(measure),
    )
    named = "level" in frame.columns or "mean_level" in frame.columns

    def layout_for(px: int) -> dict[str, Any]:
        labels = [cut_to_width(text, px / 4, style.SMALL) for text in upward]
        left = 28 + round(widest_px(labels, style.SMALL))
        cell_px = (px - left - _RIGHT_PX) / len(across)
        texts = _cell_texts(frame, cell_px)
        has_means = "." in texts[0]
        has_intervals = "<br>" in texts[0]
        key = _describe_base(frame, measure, reference)
        if has_intervals and named:
            key += f"; in brackets: {describe_intervals(frame)}"
        lines = wrap(key, px - 20, style.SMALL, lines=4)
        notes = [
            style.text_note(text, x, y, "center middle", xref="x", yref="y")
            for text, x, y in zip(texts, columns, rows, strict=True)
        ]
        below = style.text_note(
            style.join_lines(lines), 0, 0, "left top", align="left", xshift=10 - left, yshift=-36
        )
        right, high = _BAR_PX, _CELL_PX[1]
        if has_means:
            right = _RIGHT_PX
        if has_intervals:
            high = _CELL_PX[0]
        beside = [cut_to_width(text, px / 4, style.SMALL) for text in across]
        across_px = (px - left - right) / len(across)
        bar = {"thickness": 10, "x": 1.02, "tickfont": {"size": style.SMALL}, "tickformat": ".2f"}
        return style.layout(
            px,
            plot_px=high * len(upward),
            left=left,
            right=right,
            bottom=44 + 12 * len(lines),
            annotations=[*notes, below],
            barmode="overlay",
            coloraxis={**colours, "showscale": not has_means, "colorbar": bar},
            xaxis=_cell_axis(frame["parameter"][0], beside, across_px),
            yaxis=_cell_axis(frame["parameter_2"][0], labels, math.inf),
        )

    return style.make_figure([cells], layout_for)


def _cell_axis(parameter: str, labels: Sequence[str], cell_px: float) -> dict[str, Any]:
    """Give the axis of a parameter, with as many of its values as have room."""
    widest = widest_px(labels, style.SMALL) + 6
    step = max(1, math.ceil(widest / cell_px))
    return {
        "title": {"text": drawable_text(parameter)},
        "tickvals": list(range(0, len(labels), step)),
        "ticktext": list(map(escape, labels[::step])),
        "range": [-0.5, len(labels) - 0.5],
        "tickangle": 0,
        "showgrid": False,
        "ticks": "",
    }


def _cell_texts(frame: pl.DataFrame, cell_px: float) -> list[str]:
    """Write what has room in each cell: mean and interval, mean, or significance."""
    ends = _interval_ends(frame)
    marks, means, intervals = list[str](), list[str](), list[str]()
    for row in frame.iter_rows(named=True):
        marks.append(_significance_mark(row))
        means.append(f"{marks[-1]} {_share(row['mean'])}".strip())
        intervals.append(_interval(row, ends))
    if widest_px(means, style.SMALL) > cell_px - 4:
        return marks
    if widest_px(intervals, 8) > cell_px - 6:
        return means
    pairs = zip(means, intervals, strict=True)
    return [f'{mean}<br><span style="font-size:8px">{interval}</span>' for mean, interval in pairs]


def _significance_mark(row: dict[str, Any]) -> str:
    """Mark what is significantly above or below the plain ranking."""
    p = row.get("p_holm")
    if p is None or p >= ALPHA:
        return ""
    if row["mean"] > row["baseline"]:
        return "▲"
    return "▼"


def _interval(row: dict[str, Any], ends: tuple[str, str]) -> str:
    low, high = map(row.get, ends)
    if low is None or high is None:
        return ""
    return f"[{_share(low)}, {_share(high)}]"


def _share(value: float) -> str:
    """Write a value as a figure does, without a nought before the point."""
    return f"{value:.3f}".removeprefix("0")


def _describe_base(frame: pl.DataFrame, measure: str, reference: str) -> str:
    """Say what the cells hold, and what the plain ranking reaches."""
    base = frame.row(0, named=True)
    cells = measure
    if "group" in base:
        cells += f", {base['group']}"
    if "n" in base:
        cells += f" (n = {style.format_counts(frame['n'])})"
    plain = f"{reference}: {_share(base['baseline'])}"
    interval = _interval(base, ("baseline_low", "baseline_high"))
    parts = [cells, f"{plain} {interval}".rstrip() + ", blue above, orange below"]
    if "p_holm" in frame.columns:
        parts.append(f"▲/▼: p < {ALPHA:g}, corrected")
    return "; ".join(parts)
