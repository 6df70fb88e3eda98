"""Merge trees of turns without their smallest branches, one question's evidence at their feet."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from memlab.errors import DataError
from memlab.figures import style
from memlab.figures._text_measuring import (
    drawable_text,
    escape,
    printable_line,
    spread_labels,
    text_px,
    wrap,
)

_HIGH_PX = {"column": 130, "full": 190}
_LEFT, _RIGHT, _GAP, _FOOT = 42, 10, 34, 12
_TINTS = {False: ("#DEDEDE", "#C8C8C8"), True: ("#8CBBDC", "#4F9BC9")}
"""Of branches side by side; blue in the branch with all evidence."""
_KEY_TINT = _TINTS[True][1]
_BELOW = 0.16
"""Of the height of a tree: room for the marks under it."""
_STAR: dict[str, Any] = {"symbol": "star", "size": 11, "line": {"color": "black", "width": 1}}
_RING: dict[str, Any] = {"symbol": "circle-open", "size": 6, "color": "black"}
_MARKS: dict[str, dict[str, Any]] = {
    "○ retrieved, no evidence": {**_RING, "line": {"width": 1.2}},
    "☆ evidence, missed": {**_STAR, "color": "white"},
    "★ evidence, retrieved": {**_STAR, "color": style.EVIDENCE},
}
_MOST_NAMES, _NAME_PX, _NAME_LINES, _LINE_PX, _BETWEEN_NAMES_PX = 4, 67, 4, 11, 4
"""Of a tree; the width of a name, its lines and their height, and what is between two names."""
_BOX = ("panel", "first", "end", "low", "high", "branch", "holds")
_LEAF = ("panel", "x", "enters", "evidence", "rank")


@style.said_where_empty
def condensed_tree(
    boxes: pl.DataFrame, leaves: pl.DataFrame, *, title: str = "", note: str = ""
) -> go.Figure:
    """Draw merge trees of the same turns, a question's evidence and what was retrieved below.

    A branch is as wide as it has turns, and narrows from the top where turns leave it. The one that
    holds all evidence is blue. Under the trees evidence is a star, yellow where it was retrieved
    and white where it was missed, with a line up to where it enters; what else was retrieved is a
    ring. The four widest of the branches that have a name are named above the foot.

    :param boxes: rows of :meth:`memlab.cluster.MergeTree.branches` with ``panel`` (what stands
        above a tree) and ``holds`` (bool: whether the box is in the branch with all evidence);
        ``name``, where there is one, at the lowest box of a branch that has a name.
    :param leaves: a row a turn: ``panel``, ``x`` (its place), ``enters`` (the height at which the
        drawn part of the tree begins above it), ``evidence`` (bool) and ``rank`` (null where it was
        not retrieved); ``text`` is shown on hover.
    :param title: drawn above the trees: the question.
    :param note: what else the key says.
    :raises DataError: when a height is not finite.

    >>> import polars as pl
    >>> from memlab.figures.condensed_tree import condensed_tree
    >>> box = {"panel": "average", "first": 0, "end": 2, "low": 0.4, "high": 0.4}
    >>> box |= {"branch": 0, "holds": True}
    >>> found = {"evidence": True, "rank": [1, None]}
    >>> leaves = pl.DataFrame({"panel": "average", "x": [0.5, 1.5], **found})
    >>> leaves = leaves.with_columns(enters=0.4)
    >>> [trace.name for trace in condensed_tree(pl.DataFrame([box]), leaves).data[:3]]
    ['the branch with all evidence', 'where evidence enters', 'evidence, missed']
    """
    style.check_columns(boxes, _BOX, "condensed_tree")
    style.check_columns(leaves, _LEAF, "condensed_tree")
    heights = [*boxes["low"], *boxes["high"], *leaves["enters"]]
    if not all(map(math.isfinite, heights)):
        raise DataError("condensed_tree got a height that is not finite; join the turns again")
    hit, proof = pl.col("rank").is_not_null(), pl.col("evidence")
    rules = dict(zip(_MARKS, (~proof & hit, proof & ~hit, proof & hit), strict=True))
    trees = style.rows_by_value(boxes, "panel")
    traces = list[Any]()
    spans = list[tuple[list[float], list[float]]]()
    for panel, (head, rows) in enumerate(trees):
        own = leaves.filter(panel=head)
        top = max(rows.select(pl.col("high").max()).item(), 1e-9)
        foot = -_BELOW / 2 * top
        drawn = [*_draw_boxes(rows, 0.015 * top), _draw_stems(own.filter(proof), foot)]
        for mark, rule in rules.items():
            drawn.append(_draw_dots(mark[2:], own.filter(rule), foot, _MARKS[mark]))
        traces += [trace.update(style.panel_axes(panel)) for trace in drawn if len(trace.x)]
        place = pl.col("x")
        across = list(own.select(place.min() - 1, right=place.max() + 1).row(0))
        spans.append((across, [-_BELOW * top, 1.06 * top]))
    key = [("■ the branch with all evidence", _KEY_TINT)]
    key += [(mark, "black") for mark, rule in rules.items() if leaves.filter(rule).height]
    heads = [printable_line(head) for head, _ in trees]

    def layout_for(px: int) -> dict[str, Any]:
        width: style.Width = "column" if px <= style.WIDTHS["column"] else "full"
        across = min(len(heads), style.WIDTHS["full"] // style.WIDTHS["column"])
        across = 1 if width == "column" else across
        wide = (px - _LEFT - _RIGHT - _GAP * (across - 1)) / across
        lines = [wrap(head, wide, style.SMALL, lines=4) for head in heads]
        header = 8 + 12 * max(map(len, lines))
        foot = [*_key_lines(key, px), *map(escape, wrap(note, px - 16, style.SMALL, lines=4))]
        facets, names = [], list[dict[str, Any]]()
        for place, (head, span) in enumerate(zip(lines, spans, strict=True)):
            first_of_row = place % across == 0
            facets.append(_facet(head, span, label="distance" if first_of_row else ""))
            labels = _branch_labels(trees[place][1], span, (wide, float(_HIGH_PX[width])))
            x, y = style.panel_axes(place).values()
            names += [label | {"xref": x, "yref": y} for label in labels]
        placed = style.panels_layout(
            px,
            facets,
            columns=across,
            high=_HIGH_PX[width],
            gap=(_GAP, header),
            left=_LEFT,
            right=_RIGHT,
            title=title,
            head_px=header,
            bottom=_FOOT + 12 * len(foot),
        )
        look = {"size": style.SMALL, "color": style.GREY}
        text = "<br>".join(foot)
        below = style.text_note(text, 0, 0, xshift=8 - _LEFT, yshift=-4, align="left", font=look)
        return placed | {"annotations": [*placed["annotations"], *names, below]}

    return style.make_figure(traces, layout_for)


def _facet(head: list[str], span: tuple[list[float], list[float]], *, label: str) -> dict[str, Any]:
    """Give the heading and the axes of a tree."""
    across, upwards = span
    return {
        "head": style.join_lines(head),
        "xaxis": {"visible": False, "range": across},
        "yaxis": {"range": upwards, "title": {"text": label}, "tick0": 0, "nticks": 5},
    }


def _branch_labels(
    boxes: pl.DataFrame, span: tuple[list[float], list[float]], area: tuple[float, float]
) -> list[dict[str, Any]]:
    """Write the names of the widest branches side by side above the foot, with lines to them.

    :param span: what the axes show; ``area`` is the size of the plot in pixels.
    """
    if "name" not in boxes.columns:
        return []
    widths = boxes.group_by("branch").agg(wide=pl.col("end").max() - pl.col("first").min())
    named = boxes.filter(pl.col("name") != "").join(widths, on="branch")
    widest = named.sort("wide", "first", descending=[True, False]).head(_MOST_NAMES).sort("first")
    scale = np.array(area) / [side[1] - side[0] for side in span]
    corner = np.array([side[0] for side in span])
    middle = (pl.col("first") + pl.col("end")) / 2
    ends = (widest.select(middle, "low").to_numpy() - corner) * scale
    half = _NAME_PX / 2
    gap = _NAME_PX + _BETWEEN_NAMES_PX
    places = spread_labels(ends[:, 0].tolist(), gap, low=half, high=area[0] - half)
    foot = -corner[1] * scale[1] + 4
    labels = []
    for name, (x, y), place in zip(widest["name"], ends.tolist(), places, strict=True):
        lines = wrap(name, _NAME_PX, style.SMALL, lines=_NAME_LINES)
        top = foot + len(lines) * _LINE_PX
        at = corner + np.array([x, y]) / scale
        # Where the text is, in pixels from the end of the branch, to the right and downwards.
        labels.append(
            {
                "x": at[0],
                "y": at[1],
                "ax": float(place - x),
                "ay": float(y - top),
                "text": "<br>".join(map(escape, lines)),
                "yanchor": "top",
                "showarrow": True,
                "arrowhead": 0,
                "arrowwidth": 0.7,
                "arrowcolor": style.GREY,
                "borderpad": 0,
                "font": {"size": style.SMALL, "color": style.INK},
                "bgcolor": "rgba(255,255,255,0.85)",
            }
        )
    return labels


def _draw_boxes(boxes: pl.DataFrame, crown: float) -> list[go.Scatter]:
    """Fill the boxes, those of one tint as one trace; branches side by side differ.

    :param crown: least height of a box: the uppermost has none of its own.
    """
    traces = list[go.Scatter]()
    for holds, name in ((False, "other branches"), (True, "the branch with all evidence")):
        for odd, tint in enumerate(_TINTS[holds]):
            x, y = list[float | None](), list[float | None]()
            rows = boxes.filter(holds=holds).filter(pl.col("branch") % 2 == odd)
            for first, end, low, high in rows.select("first", "end", "low", "high").iter_rows():
                upper = max(high, low + crown)
                x += [first, first, end, end, first, None]
                y += [round(value, 4) for value in (low, upper, upper, low, low)]
                y.append(None)
            traces.append(
                go.Scatter(
                    x=x,
                    y=y,
                    name=name,
                    mode="lines",
                    line={"width": 0},
                    fill="toself",
                    fillcolor=tint,
                    hoverinfo="skip",
                    showlegend=False,
                )
            )
    return traces


def _draw_stems(leaves: pl.DataFrame, foot: float) -> go.Scatter:
    """Draw a line from each turn up to where it enters the tree."""
    x, y = list[float | None](), list[float | None]()
    for place, enters in leaves.select("x", "enters").iter_rows():
        x += [place, place, None]
        y += [foot, round(enters, 4), None]
    name = "where evidence enters"
    return style.line(x, y, name, style.INK, width=0.7, hoverinfo="skip", showlegend=False)


def _draw_dots(name: str, leaves: pl.DataFrame, y: float, marker: dict[str, Any]) -> go.Scatter:
    texts = [""] * leaves.height
    if "text" in leaves.columns:
        texts = leaves["text"].to_list()
    hover = [style.join_lines(wrap(text, 360, style.TEXT, lines=4)) for text in texts]
    return go.Scatter(
        x=leaves["x"].to_list(),
        y=[y] * leaves.height,
        name=drawable_text(name),
        mode="markers",
        marker=marker,
        text=hover,
        hoverinfo="text+name",
        showlegend=False,
        cliponaxis=False,
    )


def _key_lines(entries: list[tuple[str, str]], px: int) -> list[str]:
    """Give the key, whose marks have their colours, in as many lines as it needs."""
    lines, taken = list[str](), math.inf
    for whole, tint in entries:
        wide = text_px(whole, style.SMALL) + 12
        mark = f"<span style='color:{tint}'>{whole[0]}</span>{escape(whole[1:])}"
        if taken + wide > px - 16:
            lines.append(mark)
            taken = wide
        else:
            lines[-1] += f"   {mark}"
            taken += wide
    return lines
