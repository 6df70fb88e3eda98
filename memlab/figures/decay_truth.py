"""Decay against what is known: is the true curve recovered, and does the current value outrank the stale one?"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._rows import marked_rows, rows_layout
from memlab.figures._text import clean, plain


def recovery(frame: pl.DataFrame, *, confidence: float = 0.9, title: str = "") -> go.Figure:
    """Draw fitted parameters of simulated sets over the true ones, with their intervals, a line a set.

    Filled intervals hold the truth, open ones do not. What lies beyond a quarter or four times is cut off.

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
    labels, traces = list[dict[str, Any]](), list[Any]()
    for i, rows in enumerate(parts):
        covered = (rows["low"] <= rows["truth"]) & (rows["truth"] <= rows["high"])
        y, truth = float(len(parts) - i), rows["truth"][0]
        name = f"{rows['family'][0]}: {rows['parameter'][0]} = {truth:g}"
        labels.append({"name": clean(name), "numbers": [f"{int(covered.sum())} of {rows.height}"], "y": y})
        at = y - 0.62 - 0.36 * (np.arange(rows.height) + 0.5) / rows.height
        for kind, tint, fill in ((True, style.colour(0), style.colour(0)), (False, style.colour(1), "white")):
            its = (covered == kind).to_numpy()
            if not its.any():
                continue
            x, low, high = (
                np.log2(np.clip(rows[c].to_numpy()[its] / truth, 0.25, 4)) for c in ("estimate", "low", "high")
            )
            traces.append(
                go.Scatter(x=x, y=at[its], mode="markers", name=plain(name), showlegend=False, hoverinfo="skip",
                           marker={"size": 4.5, "color": fill, "line": {"color": tint, "width": 1.4}},
                           error_x={"array": high - x, "arrayminus": x - low, "thickness": 1.4, "width": 0,
                                    "color": tint})
            )  # fmt: skip
    xlabel = f"fitted parameter over the true one, {confidence:.0%} intervals (log scale)"
    key = "a mark a simulated set; right: intervals that hold the truth; open: those that do not"
    ratios = {"tickvals": [-2, -1, 0, 1, 2], "ticktext": ["¼", "½", "1", "2", "4"]}
    layout = rows_layout(labels, span=(-2, 2), deep=2, xlabel=xlabel, key=key, title=title, xaxis=ratios)
    return style.finish(traces, layout)


def outranked(frame: pl.DataFrame, *, confidence: float = 0.9, title: str = "") -> go.Figure:
    """Draw how often the current value outranks the stale ones under each condition, with intervals.

    :param frame: what :func:`memlab.knowledge.outranking.summary` gives: ``condition``, ``n``, ``share``, ``low`` and
        ``high``; where there is ``data``, a mark of its own shape and colour for each.
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
