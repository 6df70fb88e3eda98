"""Decay against what is known: is the true curve recovered, and does the current value outrank the stale one?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._rows import even, key_lines, marked_rows
from memlab.figures._text import clean, escape, text_px

_CUT, _LINE_PX = 2.0, 6.5
_KEY = "a mark a simulated set; right: intervals that hold the truth; open: those that do not; arrows: goes on beyond"


def recovery(frame: pl.DataFrame, *, confidence: float = 0.9, title: str = "") -> go.Figure:
    """Draw fitted parameters of simulated sets over the true ones, with their intervals, a line a set, least first.

    Filled intervals hold the truth, open ones do not. An arrow ends what goes on beyond a quarter or four times.

    :param frame: a row a set and parameter: ``family``, ``parameter``, ``truth``, ``estimate``, ``low``, ``high``.
    :param confidence: of the intervals.

    >>> import polars as pl
    >>> from memlab.figures import decay_truth
    >>> row = {"family": "exponential", "parameter": "half_life_days", "truth": 9.0, "estimate": 8.0, "low": 7.0}
    >>> [mark.name for mark in decay_truth.recovery(pl.DataFrame([row | {"high": 10.0}])).data]
    ['exponential: half_life_days = 9']
    """
    style.need(frame, ("family", "parameter", "truth", "estimate", "low", "high"), "recovery")
    parts = frame.partition_by("family", "parameter", maintain_order=True)
    names = [(f"{clean(p['family'][0])}:", f"{clean(p['parameter'][0])} = {p['truth'][0]:g}") for p in parts]
    numbers = [f"{int(_covered(part).sum())} of {part.height}" for part in parts]
    traces = [
        mark for i, (part, name) in enumerate(zip(parts, names, strict=True))
        for mark in _sets(part.sort("estimate"), escape(" ".join(name)), len(parts) - i)
    ]  # fmt: skip
    most = max(part.height for part in parts)
    xlabel = f"fitted parameter over the true one, {confidence:.0%} intervals (log scale)"

    def layout_for(px: int) -> dict[str, Any]:
        column = px <= style.WIDTHS["column"]
        shown = [list(name) if column else [" ".join(name)] for name in names]
        before = max(text_px(line, style.SMALL) for lines in shown for line in lines) + 8
        right = 18 + max(text_px(number, style.SMALL) for number in numbers)
        below, small = even(xlabel, px - before - right - 10, style.TEXT, lines=3), key_lines(_KEY, px - 20)
        bottom = 26 + 12 * len(below) + 10 * len(small)
        row = min(max(26.0, _LINE_PX * (most + 1)), 60.0)
        if column:
            row = min(row, (style.TALLEST - bottom - 20 - 28 * bool(title)) / len(parts))
        texts, rules = list[dict[str, Any]](), list[dict[str, Any]]()
        for i, (lines, number) in enumerate(zip(shown, numbers, strict=True)):
            beside: dict[str, Any] = {"y": len(parts) - i - 0.5, "yref": "y", "align": "left"}
            texts += [
                style.note(style.broken(lines), 0, anchor="left middle", xshift=-before, **beside),
                style.note(number, 1, anchor="left middle", xshift=8, font={"color": style.GREY}, **beside),
            ]
            rules.append(
                {
                    "type": "line",
                    "xref": "paper",
                    "x0": -before / (px - before - right - 10),
                    "x1": 1,
                    "y0": len(parts) - i,
                    "y1": len(parts) - i,
                    "layer": "below",
                    "line": {"color": style.RULE, "width": 0.8},
                }
            )
        texts.append(
            style.note(
                style.broken(small),
                0,
                0,
                "left bottom",
                align="left",
                xshift=-before,
                yshift=3 - bottom,
                font={"size": 8, "color": style.GREY},
            )
        )
        return style.layout(
            px, title=title, plot_px=row * len(parts), left=10 + before, right=right, bottom=bottom, annotations=texts,
            shapes=rules[1:],
            xaxis={"title": {"text": style.broken(below)}, "range": [-1.05 * _CUT, 1.05 * _CUT], "zeroline": True,
                   "zerolinecolor": style.INK, "zerolinewidth": 1, "tickvals": [-2, -1, 0, 1, 2],
                   "ticktext": ["¼", "½", "1", "2", "4"]},
            yaxis={"visible": False, "range": [0, len(parts)]},
        )  # fmt: skip

    return style.finish(traces, layout_for)


def _covered(rows: pl.DataFrame) -> np.ndarray:
    return ((rows["low"] <= rows["truth"]) & (rows["truth"] <= rows["high"])).to_numpy()


def _sets(rows: pl.DataFrame, name: str, top: float) -> Iterator[go.Scatter]:
    """Draw the sets of one parameter under each other, in the unit below ``top``."""
    at, covered, quiet = top - (np.arange(rows.height) + 1) / (rows.height + 1), _covered(rows), {"showlegend": False}
    values = (pl.col("estimate", "low", "high") / pl.col("truth")).clip(2.0**-9, 2.0**9).log(2)
    x, low, high = rows.select(values).to_numpy().T
    arrows = (("triangle-left", -_CUT, at[low < -_CUT]), ("triangle-right", _CUT, at[high > _CUT]))
    x, low, high = (np.clip(values, -_CUT, _CUT) for values in (x, low, high))
    for kind, tint, fill in ((True, style.colour(0), style.colour(0)), (False, style.colour(1), "white")):
        its = covered == kind
        if its.any():
            error = style.interval(*(pl.Series(values[its]) for values in (x, low, high)), color=tint)
            look = {"size": 4.5, "color": fill, "line": {"color": tint, "width": 1.4}}
            yield go.Scatter(x=x[its], y=at[its], mode="markers", name=name, hoverinfo="skip", marker=look,
                             error_x=error, **quiet)  # fmt: skip
    for symbol, edge, where in arrows:
        if len(where):
            look = {"size": 6, "color": style.GREY, "symbol": symbol}
            yield go.Scatter(x=[edge] * len(where), y=where, mode="markers", hoverinfo="skip", marker=look, **quiet)


def outranked(frame: pl.DataFrame, *, confidence: float = 0.9, title: str = "") -> go.Figure:
    """Draw how often the current value outranks the stale ones under each condition, with intervals.

    :param frame: what :func:`memlab.knowledge.recall.current_first` gives (``condition``, ``n``, ``share``) with the
        ends ``low`` and ``high`` of an interval; where there is ``data``, a mark of its own shape and colour for each.
    :param confidence: of the intervals.
    """
    style.need(frame, ("condition", "n", "share", "low", "high"), "outranked")
    frame = frame if "data" in frame.columns else frame.with_columns(data=pl.lit(""))
    several, marks = style.series(frame, "data"), []
    for name, rows in style.parts(frame, "condition"):
        for row in rows.iter_rows(named=True):
            i = several.index(row["data"])
            marks.append({**row, "name": name, "x": row["share"], "tint": style.colour(i), "fill": style.colour(i),
                          "symbol": style.SYMBOLS[i], "numbers": f"{row['share']:.1%}"})  # fmt: skip
    n = " · ".join(f"{rows['n'][0]:,}" for rows in frame.partition_by("data", maintain_order=True))
    xlabel = f"share of questions where the current value outranks the stale ones, {confidence:.0%} intervals (n = {n})"
    key = style.key(several) or "ties count as not outranked"
    return marked_rows(marks, span=(0, 1), between=" · ", xlabel=xlabel, key=key, title=title,
                       xaxis={"zeroline": False})  # fmt: skip
