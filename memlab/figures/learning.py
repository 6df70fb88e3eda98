"""What a reranker learned: the worth of its features, and complete recall by the number of conversations learned."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._text import clean, escape, plain, text_px

_ROW_PX, _HEAD_PX, _AXIS_PX = 21, 18, 40
_HEAD = {"font": {"size": style.TEXT}}
_LEARNED = "learned, on other conversations"
_PANELS = {"group": "groups of features", "feature": "single features"}


def importance(
    frame: pl.DataFrame, *, measure: str = "recall_all@10", features: int = 15, title: str = ""
) -> go.Figure:
    """Draw what is lost when a feature says nothing any more: bars with intervals, groups beside single features.

    :param frame: what :func:`memlab.learning.importance` gives: ``kind`` (``group`` or ``feature``), ``name``,
        ``questions``, ``n``, ``loss``, ``low``, ``high``.
    :param features: how many single features are drawn; of groups all are. Both are in the order of their loss over the
        questions that come first in the frame.

    >>> import polars as pl
    >>> from memlab.figures import learning
    >>> rows = {"kind": "group", "name": ["late", "dates"], "questions": "all", "n": 90, "loss": [0.2, 0.0]}
    >>> fig = learning.importance(pl.DataFrame(rows).with_columns(low=pl.col("loss") - 0.1, high=pl.col("loss") + 0.1))
    >>> fig.data[0].x
    (0.2, 0.0)
    """
    style.need(frame, ("kind", "name", "questions", "n", "loss", "low", "high"), "importance")
    subsets = style.series(frame, "questions")
    shown: dict[str, list[str]] = {}
    for kind in _PANELS:
        rows = frame.filter(pl.col("kind") == kind, pl.col("questions") == subsets[0]).sort("loss", descending=True)
        if rows.height:
            shown[kind] = rows["name"].to_list()[: features if kind == "feature" else None]
    traces, names = list[Any](), list[str]()
    for i, subset in enumerate(subsets):
        of = frame.filter(pl.col("questions") == subset)
        names.append(f"{_subset_name(subset)} (n = {of['n'][0]:,})")
        for p, (kind, order) in enumerate(shown.items()):
            rows = pl.DataFrame({"name": order}).join(
                of.filter(pl.col("kind") == kind), on="name", maintain_order="left"
            )
            traces.append(_bars(rows, names[-1], i, len(subsets), panel=p))
    drawn = frame.filter(pl.col("name").is_in([n for members in shown.values() for n in members]))
    ends = [0.0, *drawn["loss"], *drawn["low"].drop_nulls(), *drawn["high"].drop_nulls()]
    pad = (max(ends) - min(ends) or 0.01) * 0.04
    rooms = [max(text_px(clean(name), style.SMALL) for name in members) + 8 for members in shown.values()]
    facets = [
        {"px": _ROW_PX * len(members), "head": f"<b>{escape(_PANELS[kind])}</b>", "look": _HEAD,
         "xaxis": {"range": [min(ends) - pad, max(ends) + pad], "nticks": 6, "zeroline": True,
                   "zerolinecolor": style.INK, "zerolinewidth": 0.8,
                   "title": {"text": plain(f"loss in {measure} when permuted")}},
         "yaxis": {"range": [0.5 - len(members), 0.5], "tickvals": [-row for row in range(len(members))],
                   "ticktext": list(map(plain, members)), "ticks": "", "showgrid": False}}
        for kind, members in shown.items()
    ]  # fmt: skip

    def layout_for(px: int) -> dict[str, Any]:
        beside = px > style.WIDTHS["column"] and len(shown) > 1
        return style.panels(
            px, facets, columns=2 if beside else 1, gap=(rooms[-1] + 12, _HEAD_PX + _AXIS_PX), title=title,
            names=names, head_px=_HEAD_PX, left=rooms[0] if beside else max(rooms), bottom=_AXIS_PX, barmode="overlay",
        )  # fmt: skip

    return style.finish(traces, layout_for)


def _subset_name(subset: str) -> str:
    return "all questions" if subset == "all" else f"evidence in {subset} sessions"


def _bars(rows: pl.DataFrame, name: str, i: int, n: int, *, panel: int) -> go.Bar:
    at = [-float(row) for row in range(rows.height)]
    thick = 0.72 / n
    ends = rows.with_columns(pl.col("low", "high").fill_null(pl.col("loss")))
    return go.Bar(
        x=rows["loss"].to_list(), y=[y + 0.36 - thick * (i + 0.5) for y in at], width=thick * 0.92, orientation="h",
        name=plain(name), legendgroup=name, legendrank=i, showlegend=panel == 0, marker={"color": style.colour(i)},
        error_x=style.interval(ends["loss"], ends["low"], ends["high"], thickness=0.9, width=1.5, color=style.INK),
        text=[f"{clean(r['name'])}: {r['loss']:+.3f} [{r['low']:+.3f}, {r['high']:+.3f}]" for r in ends.to_dicts()],
        textposition="none", hoverinfo="text", **style.axes(panel),
    )  # fmt: skip


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
    edge = (high - low or 0.3) * 0.06
    traces, facets = list[Any](), list[dict[str, Any]]()
    for p, subset in enumerate(style.series(frame, "questions")):
        rows = frame.filter(pl.col("questions") == subset).sort("conversations")
        rows = rows.with_columns(pl.col("low", "high").fill_null(pl.col("mean")))
        traces += _learned(rows, reference, panel=p)
        least, most = min([*rows["low"], *rows["untrained"]]), max([*rows["high"], *rows["untrained"]])
        pad = (most - least or 0.1) * 0.1
        facets.append({
            "head": f"<b>{escape(_subset_name(subset))} (n = {rows['n'][0]:,})</b>", "look": _HEAD,
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


def _learned(rows: pl.DataFrame, reference: str, *, panel: int) -> list[Any]:
    axes, x, tint = style.axes(panel), rows["conversations"].to_list(), style.colour(0)
    hover = [f"{n} conversations: {m:.3f}" for n, m in zip(x, rows["mean"], strict=True)]
    return [
        style.band(x, rows["low"], rows["high"], style.faded(tint, 0.14), **axes),
        style.line(x, rows["mean"], _LEARNED, tint, legendgroup="learned", showlegend=panel == 0, mode="lines+markers",
                   marker={"size": 6}, text=hover, hoverinfo="text", **axes),
        style.line([0.5, x[-1] * 1.5], [rows["untrained"][0]] * 2, plain(reference), width=1.2, dash="dash",
                   legendgroup="reference", showlegend=panel == 0, hoverinfo="name+y", **axes),
    ]  # fmt: skip
