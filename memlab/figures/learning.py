"""What a reranker learned: the worth of its features, and complete recall by the number of conversations learned."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._rows import marked_rows
from memlab.figures._text import escape, plain, signed

_HEAD_PX, _AXIS_PX = 18, 40
_MOST = 8
_LEARNED = "learned, on other conversations"


def importance(frame: pl.DataFrame, *, measure: str = "recall_all@10", title: str = "") -> go.Figure:
    """Draw what is lost when a group of features says nothing any more, with intervals.

    Filled where ``p_holm`` is below .05, or, without it, where the interval leaves out 0. Single features are not
    drawn: alike ones stand in for each other. A column has room for the eight groups that lose most, and says within
    which range the others lie.

    :param frame: what :func:`memlab.learning.importance` gives: ``kind`` (``group`` or ``feature``), ``name``,
        ``questions``, ``n``, ``loss``, ``low``, ``high``, and ``p_holm`` where it was corrected. Groups are in the
        order of their loss over the questions that come first.

    >>> import polars as pl
    >>> from memlab.figures import learning
    >>> rows = {"kind": "group", "name": ["late", "dates"], "questions": "all", "n": 90, "loss": [0.2, 0.0]}
    >>> fig = learning.importance(pl.DataFrame(rows).with_columns(low=pl.col("loss") - 0.1, high=pl.col("loss") + 0.1))
    >>> fig.data[0].x
    (0.2,)
    """
    style.need(frame, ("kind", "name", "questions", "n", "loss", "low", "high"), "importance")
    groups = frame.filter(pl.col("kind") == "group").with_columns(pl.col("low", "high").fill_null(pl.col("loss")))
    style.need(groups, (), "importance (of groups of features)")
    corrected = "p_holm" in groups.columns
    shown = pl.col("p_holm") < 0.05 if corrected else ~pl.lit(0.0).is_between("low", "high")
    groups, subsets = groups.with_columns(shown=shown), style.series(groups, "questions")
    order = groups.filter(pl.col("questions") == subsets[0]).sort("loss", descending=True)["name"].to_list()
    marks = []
    for row in sorted(groups.to_dicts(), key=lambda row: (order.index(row["name"]), subsets.index(row["questions"]))):
        nth = subsets.index(row["questions"])
        loss, low, high, tint = row["loss"], row["low"], row["high"], style.colour(nth)
        marks.append({**row, "x": loss, "tint": tint, "fill": tint if row["shown"] else "white",
                      "symbol": style.SYMBOLS[nth], "series": _subset_name(row["questions"]),
                      "numbers": f"{signed(loss)} [{signed(low)}, {signed(high)}]"})  # fmt: skip
    sizes = dict(groups.select("questions", "n").iter_rows())
    names = style.key(f"{_subset_name(subset)} (n = {sizes[subset]:,})" for subset in subsets)
    means = "p < 0.05 after Holm's correction" if corrected else "the interval leaves out 0"
    key = f"{names}; filled: {means}"
    others, rest = groups.filter(pl.col("name").is_in(order[_MOST:])), ""
    if others.height:
        within = f"[{signed(min(others['low']))}, {signed(max(others['high']))}]"
        rest = f"{len(order) - _MOST} more groups, not shown: all intervals within {within}"
    return marked_rows(marks, xlabel=f"loss in {measure} when permuted", key=key, title=title, most=_MOST, rest=rest)


def _subset_name(subset: str) -> str:
    return "all questions" if subset == "all" else f"evidence in {subset} sessions"


def learning_curve(
    frame: pl.DataFrame, *, measure: str = "recall_all@10", reference: str = "untrained sum", title: str = ""
) -> go.Figure:
    """Draw complete recall on other conversations over the number of conversations learned from, a panel a group.

    Each panel has its own scale, which need not begin at 0.

    :param frame: what :func:`memlab.learning.curve` gives: ``conversations``, ``questions``, ``n``, ``mean``, ``low``,
        ``high``, ``untrained``.
    :param reference: what the untrained ranking is called.
    """
    style.need(frame, ("conversations", "questions", "n", "mean", "low", "high", "untrained"), "learning_curve")
    sizes = sorted(frame["conversations"].unique().to_list())
    low, high = math.log10(sizes[0]), math.log10(sizes[-1])
    edge, tint = (high - low or 0.3) * 0.06, style.colour(0)
    traces, facets = list[Any](), list[dict[str, Any]]()
    for p, (subset, of_subset) in enumerate(style.parts(frame, "questions")):
        rows = of_subset.sort("conversations").with_columns(pl.col("low", "high").fill_null(pl.col("mean")))
        axes, x, untrained = {"showlegend": p == 0, **style.axes(p)}, rows["conversations"], rows["untrained"]
        hover = [f"{n} conversations: {m:.3f}" for n, m in zip(x, rows["mean"], strict=True)]
        traces += [
            style.band(x, rows["low"], rows["high"], style.faded(tint, 0.14), **style.axes(p)),
            style.line(x, rows["mean"], _LEARNED, tint, legendgroup="learned", mode="lines+markers",
                       marker={"size": 6}, text=hover, hoverinfo="text", **axes),
            style.line([0.5, x[-1] * 1.5], [untrained[0]] * 2, plain(reference), width=1.2, dash="dash",
                       legendgroup="reference", hoverinfo="name+y", **axes),
        ]  # fmt: skip
        least, most = min([*rows["low"], *untrained]), max([*rows["high"], *untrained])
        pad = (most - least or 0.1) * 0.1
        facets.append({
            "head": f"<b>{escape(_subset_name(subset))} (n = {rows['n'][0]:,})</b>",
            "look": {"font": {"size": style.TEXT}},
            "xaxis": {"type": "log", "tickvals": sizes, "range": [low - edge, high + edge],
                      "title": {"text": "conversations learned from (log scale)"}},
            "yaxis": {"range": [max(0.0, least - pad), min(1.02, most + pad)], "nticks": 7},
        })  # fmt: skip

    def layout_for(px: int) -> dict[str, Any]:
        beside = px > style.WIDTHS["column"] or len(facets) == 1
        for p, facet in enumerate(facets):
            facet["px"] = 190 if beside else 130
            facet["yaxis"] = {**facet["yaxis"], "title": {"text": "" if beside and p else plain(measure)}}
        return style.panels(
            px, facets, columns=len(facets) if beside else 1, gap=(48, _HEAD_PX + _AXIS_PX), title=title,
            names=[_LEARNED, reference], head_px=_HEAD_PX, left=46, bottom=_AXIS_PX,
        )  # fmt: skip

    return style.finish(traces, layout_for)
