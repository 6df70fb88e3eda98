"""What a reranker learned: the worth of its features, and complete recall by the number of conversations learned."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._text import clean, escape, plain, text_px

_ROW_PX, _HEAD_PX, _AXIS_PX = 21, 18, 40
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
    xlabel = f"loss in {measure} when permuted"
    return style.finish(
        traces, _importance_layout(shown, names, span=(min(ends), max(ends)), xlabel=xlabel, title=title)
    )


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


def _importance_layout(
    shown: dict[str, list[str]], legends: list[str], *, span: tuple[float, float], xlabel: str, title: str
) -> Any:
    pad = (span[1] - span[0] or 0.01) * 0.04
    rooms = [max(text_px(clean(name), style.SMALL) for name in members) + 8 for members in shown.values()]
    sizes = [len(members) for members in shown.values()]

    def layout_for(px: int) -> dict[str, Any]:
        beside = px > style.WIDTHS["column"] and len(shown) > 1
        gap_px = _HEAD_PX + (0 if beside else _AXIS_PX)
        plot_px = _ROW_PX * max(sizes) if beside else _ROW_PX * sum(sizes) + gap_px * (len(sizes) - 1)
        room = rooms[0] if beside else max(rooms)
        across = px - room - 12
        layout = style.layout(
            px, title=title, names=legends, plot_px=plot_px, head_px=_HEAD_PX, left=room, bottom=_AXIS_PX,
            barmode="overlay", annotations=[],
        )  # fmt: skip
        done = 0
        for p, (kind, names) in enumerate(shown.items()):
            share = (across - rooms[-1] - 12) / 2 / across
            wide = ((0, share) if p == 0 else (1 - share, 1)) if beside else (0, 1)
            high = 1 - (0 if beside else done / plot_px)
            done += _ROW_PX * len(names) + gap_px
            style.add_panel(
                layout, p, wide, (high - _ROW_PX * len(names) / plot_px, high), head=f"<b>{escape(_PANELS[kind])}</b>",
                font={"size": style.TEXT},
                xaxis={"range": [span[0] - pad, span[1] + pad], "nticks": 6, "title": {"text": plain(xlabel)},
                       "zeroline": True, "zerolinecolor": style.INK, "zerolinewidth": 0.8},
                yaxis={"range": [0.5 - len(names), 0.5], "tickvals": [-row for row in range(len(names))],
                       "ticktext": list(map(plain, names)), "ticks": "", "showgrid": False},
            )  # fmt: skip
        return layout

    return layout_for


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
    subsets = style.series(frame, "questions")
    traces, panels = list[Any](), list[dict[str, Any]]()
    sizes = sorted(frame["conversations"].unique().to_list())
    for p, subset in enumerate(subsets):
        rows = frame.filter(pl.col("questions") == subset).sort("conversations")
        filled = rows.with_columns(pl.col("low", "high").fill_null(pl.col("mean")))
        low, high = min([*filled["low"], *filled["untrained"]]), max([*filled["high"], *filled["untrained"]])
        pad = (high - low or 0.1) * 0.1
        bounds = [max(0.0, low - pad), min(1.02, high + pad)]
        panels.append({"text": f"{_subset_name(subset)} (n = {rows['n'][0]:,})", "range": bounds})
        traces += _learned(filled, reference, panel=p)
    return style.finish(traces, _curve_layout(panels, sizes, [reference], measure=measure, title=title))


def _learned(rows: pl.DataFrame, reference: str, *, panel: int) -> list[Any]:
    axes = style.axes(panel)
    x = rows["conversations"].to_list()
    band = go.Scatter(
        x=[*x, *reversed(x)], y=[*rows["high"], *reversed(rows["low"])], fill="toself", mode="lines",
        fillcolor=style.faded(style.colour(0), 0.14), line={"width": 0}, hoverinfo="skip", showlegend=False, **axes,
    )  # fmt: skip
    line = go.Scatter(
        x=x, y=rows["mean"].to_list(), name=_LEARNED, legendgroup="learned", showlegend=panel == 0,
        mode="lines+markers", line={"color": style.colour(0), "width": 1.5}, marker={"size": 6},
        text=[f"{n} conversations: {m:.3f}" for n, m in zip(x, rows["mean"], strict=True)], hoverinfo="text", **axes,
    )  # fmt: skip
    plain_sum = go.Scatter(
        x=[0.5, x[-1] * 1.5], y=[rows["untrained"][0]] * 2, name=plain(reference), legendgroup="reference",
        mode="lines", showlegend=panel == 0, line={"color": style.GREY, "width": 1.2, "dash": "dash"},
        hoverinfo="name+y", **axes,
    )  # fmt: skip
    return [band, line, plain_sum]


def _curve_layout(panels: list[dict[str, Any]], sizes: list[int], names: list[str], *, measure: str, title: str) -> Any:
    import math

    low, high = math.log10(sizes[0]), math.log10(sizes[-1])
    edge = (high - low or 0.3) * 0.06

    def layout_for(px: int) -> dict[str, Any]:
        n, beside = len(panels), px > style.WIDTHS["column"] or len(panels) == 1
        one_px = 190 if beside else 130
        gap_px = 0 if beside else _HEAD_PX + _AXIS_PX
        plot_px = one_px if beside else one_px * n + gap_px * (n - 1)
        layout = style.layout(
            px, title=title, names=[_LEARNED, *names], plot_px=plot_px, head_px=_HEAD_PX, left=46, bottom=_AXIS_PX,
            annotations=[],
        )  # fmt: skip
        for p, panel in enumerate(panels):
            share = (1 - (n - 1) * 48 / (px - 58)) / n if beside else 1
            left = p * (share + 48 / (px - 58)) if beside else 0
            up = 1 - (0 if beside else p * (one_px + gap_px) / plot_px)
            style.add_panel(
                layout, p, (left, left + share), (up - one_px / plot_px, up), head=f"<b>{escape(panel['text'])}</b>",
                font={"size": style.TEXT},
                xaxis={"type": "log", "tickvals": sizes, "range": [low - edge, high + edge],
                       "title": {"text": "conversations learned from (log scale)"}},
                yaxis={"range": panel["range"], "nticks": 7, "title": {"text": "" if beside and p else plain(measure)}},
            )  # fmt: skip
        return layout

    return layout_for
