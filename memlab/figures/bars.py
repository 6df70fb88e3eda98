"""Bars: shares of kinds, group by group."""

from __future__ import annotations

from itertools import chain
from typing import Any

import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures._text_measuring import drawable_text, printable_line, widest_px, wrap

_NAME_LINES = 4
"""Of a cause with its rule, beside its bars."""


@style.said_where_empty
def share_bars(frame: pl.DataFrame, *, xlabel: str = "share") -> go.Figure:
    """Draw shares as bars, a row a cause and in it a bar a group, with counts on their right.

    Rows whose counts are all 0 are left out.

    :param frame: ``cause``, ``group``, ``n`` and ``share``, in the order to draw from the top;
        where there is ``rule``, it stands behind the name of a cause and says what it is.

    >>> import polars as pl
    >>> from memlab.figures import bars
    >>> counted = {"n": [3, 1], "share": [0.75, 0.25]}
    >>> frame = pl.DataFrame({"cause": ["pronouns", "label"], "group": "all", **counted})
    >>> list(bars.share_bars(frame).data[0].x)
    [0.75, 0.25]
    """
    style.check_columns(frame, ("cause", "group", "n", "share"), "shares")
    if frame["n"].sum():
        frame = frame.filter(pl.col("n").sum().over("cause") > 0)
    groups, names = style.rows_by_value(frame, "group"), style.distinct_values(frame, "cause")
    labels = list(map(printable_line, names))
    if "rule" in frame.columns:
        rules = dict(frame.select("cause", "rule").iter_rows())
        labels = [f"{name}: {rules[name]}" for name in names]
    step, traces, counts = 0.8 / len(groups), list[Any](), list[dict[str, Any]]()
    for i, (group, part) in enumerate(groups):
        at = [len(names) - 1 - names.index(name) + 0.4 - step * (i + 0.5) for name in part["cause"]]
        tint = style.colour(i)
        traces.append(
            go.Bar(
                x=part["share"].to_list(),
                y=at,
                width=step * 0.9,
                orientation="h",
                name=drawable_text(group),
                marker={"color": style.rgba_colour(tint, (0.75, 0.35)[i % 2])},
            )
        )
        font = {"size": 8, "color": style.darken_colour(tint, 0.15)}
        counts += [
            style.text_note(
                f"{n:,}", share, y, "left middle", xref="x", yref="y", xshift=3, font=font
            )
            for n, share, y in zip(part["n"], part["share"], at, strict=True)
        ]
    most = float(frame["share"].max())  # type: ignore[arg-type]

    def layout_for(px: int) -> dict[str, Any]:
        texts = [wrap(label, 0.45 * px, style.SMALL, lines=_NAME_LINES) for label in labels]
        left = widest_px(chain.from_iterable(texts), style.SMALL)
        below = wrap(xlabel, px - left - 44, style.TEXT, lines=3)
        return style.layout(
            px,
            names=[printable_line(group) for group, _ in groups] if len(groups) > 1 else [],
            plot_px=(max(12 * len(groups), 11 * max(map(len, texts))) + 6) * len(names),
            left=round(left) + 16,
            bottom=48 + 12 * max(0, len(below) - 2),
            barmode="overlay",
            annotations=counts,
            xaxis={
                "title": {"text": style.join_lines(below)},
                "tickformat": ".0%",
                "range": [0, most * 1.15 or 1],
            },
            yaxis={
                "tickvals": [len(names) - 1 - i for i in range(len(names))],
                "ticktext": list(map(style.join_lines, texts)),
                "range": [-0.6, len(names) - 0.4],
                "showgrid": False,
                "ticks": "",
            },
        )

    return style.make_figure(traces, layout_for)
