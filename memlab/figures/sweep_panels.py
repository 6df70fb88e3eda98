"""A measure over parameters, in small panels."""

from __future__ import annotations

import math
from typing import Any

import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures._text_measuring import cut_to_width, drawable_text, escape, printable_line, wrap
from memlab.interval_labels import ALPHA, describe_intervals
from memlab.system_names import short_names

_HEADER_PX, _SECOND_LINE_PX, _FOOT_PX, _GAP_PX = 16, 12, 38, 16


@style.said_where_empty
def sweep(
    frame: pl.DataFrame, *, measure: str = "recall_all@10", reference: str = "plain top-k"
) -> go.Figure:
    """Draw a measure over a parameter, a panel a system, with the plain ranking as a grey line to beat.

    All panels have the same y axis. Where there is ``p_holm``, a mark is filled where p is below .05
    after Holm's correction, and open elsewhere.

    :param frame: ``system`` (of a panel), ``parameter`` (its name, on the x axis), ``value``,
        ``mean``, ``low``, ``high`` and ``baseline`` (what the plain ranking reaches); ``level`` and
        ``unit`` are said in the legend.
    :param reference: what the baseline is called.

    >>> import polars as pl
    >>> from memlab.figures import sweep_panels
    >>> measured = {"mean": [0.1, 0.2], "low": [0.0, 0.1], "high": [0.2, 0.3], "baseline": [0.1, 0.1]}
    >>> rows = pl.DataFrame({"parameter": "λ", "value": [0.5, 1.0], "system": "mmr", **measured})
    >>> [trace.name for trace in sweep_panels.sweep(rows).data]
    ['plain top-k', 'with the parameter']
    """
    columns = ("parameter", "value", "mean", "low", "high", "baseline", "system")
    style.check_columns(frame, columns, "sweep")
    frame = frame.drop_nulls("mean")
    style.check_columns(frame, columns, "sweep (where something was measured)")
    names = [_name_marks(frame), reference]
    traces, heads = list[Any](), list[tuple[str, str]]()
    for p, (head, rows) in enumerate(
        style.rows_by_value(frame.sort("value", maintain_order=True), "system")
    ):
        error = style.error_bar(rows["mean"], rows["low"], rows["high"], thickness=0.8, width=2)
        own: dict[str, Any] = {"showlegend": p == 0, **style.panel_axes(p)}
        traces += [
            style.line(
                rows["value"],
                rows["baseline"],
                style.legend_name(reference),
                width=1.2,
                dash="dash",
                legendgroup=reference,
                legendrank=1001,
                **own,
            ),
            style.marked_line(
                rows["value"],
                rows["mean"],
                names[0],
                0,
                error_y=error,
                legendgroup=names[0],
                marker=_marks(rows),
                **own,
            ),
        ]
        heads.append((printable_line(head), drawable_text(rows["parameter"][0])))
    most = frame.select(pl.max_horizontal("high", "mean", "baseline").max()).item() * 1.08 or 1.0
    top = min(most, 1.03) if most < 1.2 else most

    def layout_for(px: int) -> dict[str, Any]:
        column = px <= style.WIDTHS["column"]
        columns = min(len(heads), 2 if column and len(heads) <= 6 else 3)
        down = math.ceil(len(heads) / columns)
        wide = (px - 42 - 12 - _GAP_PX * (columns - 1)) / columns
        short = short_names([head for head, _ in heads], width=int(wide / 4))
        lines = [wrap(short[head], wide, style.SMALL, bold=True) for head, _ in heads]
        header = _HEADER_PX + _SECOND_LINE_PX * (max(map(len, lines)) > 1)
        high = 190 if down == 1 else 105
        if column:
            room = style.TALLEST_PX - 10 - style.legend_below(names, px)[1]
            high = max(48, min(high, room // down - header - _FOOT_PX))
        label = escape(cut_to_width(measure, high + header, style.TEXT))
        facets = [
            {
                "head": f"<b>{style.join_lines(lines[p])}</b>",
                "xaxis": {"title": {"text": parameter}, "nticks": 6},
                "yaxis": {
                    "range": [0, top],
                    "showticklabels": p % columns == 0,
                    "nticks": 6,
                    "title": {"text": "" if p % columns else label},
                },
            }
            for p, (_, parameter) in enumerate(heads)
        ]
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

    return style.make_figure(traces, layout_for)


def _name_marks(frame: pl.DataFrame) -> str:
    """Name the marks in the legend, with what their bars and their filling say."""
    parts = ["with the parameter"]
    if "p_holm" in frame.columns:
        parts.append(f"filled: p < {ALPHA:g}, corrected")
    if "level" in frame.columns:
        # Of the difference to the plain ranking, drawn about the mean.
        told = "difference" if "difference" in frame.columns else "mean"
        parts.append(f"bars: {describe_intervals(frame, told)}")
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
