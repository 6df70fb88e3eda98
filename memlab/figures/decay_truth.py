"""Decay against what is known: is the true curve recovered, and does the current value outrank the stale one?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.figures import style
from memlab.figures._text import clean, plain
from memlab.figures.selection import rows_layout

if TYPE_CHECKING:
    import plotly.graph_objects as go


def recovery(frame: pl.DataFrame, *, confidence: float = 0.9, title: str = "") -> go.Figure:
    """Draw fitted parameters of simulated sets over the true ones, with their intervals, a line a set.

    Blue intervals hold the truth, vermilion ones do not. What lies beyond a quarter or four times is cut off.

    :param frame: a row a set and parameter: ``family``, ``parameter``, ``truth``, ``estimate``, ``low``, ``high``.
    :param confidence: of the intervals.

    >>> import polars as pl
    >>> from memlab.figures import decay_truth
    >>> row = {"family": "exponential", "parameter": "half_life_days", "truth": 9.0, "estimate": 8.0, "low": 7.0}
    >>> [mark.name for mark in decay_truth.recovery(pl.DataFrame([row | {"high": 10.0}])).data]
    ['exponential: half_life_days = 9']
    """
    import plotly.graph_objects as go

    style.need(frame, ("family", "parameter", "truth", "estimate", "low", "high"), "recovery")
    parts = frame.partition_by("family", "parameter", maintain_order=True)
    labels, traces = list[dict[str, Any]](), list[Any]()
    for i, rows in enumerate(parts):
        held = (rows["low"] <= rows["truth"]) & (rows["truth"] <= rows["high"])
        y, truth = float(len(parts) - i), rows["truth"][0]
        name = f"{rows['family'][0]}: {rows['parameter'][0]} = {truth:g}"
        labels.append({"name": clean(name), "said": [f"{int(held.sum())} of {rows.height}"], "y": y})
        at = y - 0.4 - 0.5 * (np.arange(rows.height) + 0.5) / rows.height
        for kind, tint in ((True, style.colour(0)), (False, style.colour(1))):
            its = (held == kind).to_numpy()
            if not its.any():
                continue
            x, low, high = (
                np.log2(np.clip(rows[c].to_numpy()[its] / truth, 0.25, 4)) for c in ("estimate", "low", "high")
            )
            traces.append(
                go.Scatter(x=x, y=at[its], mode="markers", name=plain(name), showlegend=False, hoverinfo="skip",
                           marker={"size": 3, "color": tint},
                           error_x={"array": high - x, "arrayminus": x - low, "thickness": 1, "width": 0})
            )  # fmt: skip
    xlabel = f"fitted parameter over the true one, {confidence:.0%} intervals (log scale)"
    key = "right: intervals that hold the truth; vermilion: those that do not"
    layout_for = rows_layout(labels, span=(-2, 2), deep=2, xlabel=xlabel, key=key, title=title)

    def as_ratio(px: int) -> dict[str, Any]:
        layout = layout_for(px)
        ticks = {"tickvals": [-2, -1, 0, 1, 2], "ticktext": ["¼", "½", "1", "2", "4"]}
        return {**layout, "xaxis": {**layout["xaxis"], **ticks}}

    return style.finish(traces, as_ratio)


def outranked(frame: pl.DataFrame, *, confidence: float = 0.9, title: str = "") -> go.Figure:
    """Draw how often the current value outranks the stale ones under each condition, with intervals.

    :param frame: what :func:`memlab.knowledge.outranking.summary` gives: ``condition``, ``n``, ``share``, ``low`` and
        ``high``; where there is ``data``, a mark of its own shape and colour for each.
    :param confidence: of the intervals.
    """
    import plotly.graph_objects as go

    style.need(frame, ("condition", "n", "share", "low", "high"), "outranked")
    frame = frame if "data" in frame.columns else frame.with_columns(data=pl.lit(""))
    several, conditions = style.series(frame, "data"), style.series(frame, "condition")
    labels, traces = list[dict[str, Any]](), list[Any]()
    for row, name in enumerate(conditions):
        y, said = float(len(conditions) - row), list[str]()
        for its in frame.filter(pl.col("condition") == name).to_dicts():
            i = several.index(its["data"])
            said.append(f"{its['share']:.1%}")
            spread = {"array": [its["high"] - its["share"]], "arrayminus": [its["share"] - its["low"]]}
            traces.append(
                go.Scatter(x=[its["share"]], y=[y - 0.94 + 0.2 * (len(several) - 1 - i)], mode="markers",
                           name=plain(name), marker={"size": 7, "color": style.colour(i), "symbol": style.SYMBOLS[i]},
                           error_x=spread | {"thickness": 1.5, "width": 0}, showlegend=False, hoverinfo="name+x")
            )  # fmt: skip
        labels.append({"name": clean(name), "said": [" · ".join(said)], "y": y})
    n = " · ".join(f"{rows['n'][0]:,}" for rows in frame.partition_by("data", maintain_order=True))
    xlabel = f"share of questions where the current value outranks the stale ones, {confidence:.0%} intervals (n = {n})"
    key = ", ".join(f"{shape} {clean(name)}" for shape, name in zip("●■◆▲", several, strict=False) if name)
    key = key or "ties count as not outranked"
    return style.finish(
        traces, rows_layout(labels, span=(0, 1), deep=len(several), xlabel=xlabel, key=key, title=title)
    )
