"""Trees of summaries: drawn as an icicle, and what their layers keep."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl

from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._text import clean, escape, fit, place, plain, text_px, wrap

_ROW_PX, _LEGIBLE_PX = 26, 10
_MOST_PX = {"column": 370, "full": 560}
_SIDE_PX, _HEAD_PX = 8, 16
# The last topic of a label: one that has no room is left out rather than cut.
_LAST = r"[,:] [^,:]*$"


def _laid(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Give the nodes of a forest from the top, each with its depth and the rows that it covers.

    Every leaf has a row of its own, in the order of the frame, and every other node the rows of its leaves.
    """
    rows = frame.to_dicts()
    by_id = {row["node_id"]: row for row in rows}
    below: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        below.setdefault(row["parent"] if row["parent"] in by_id else None, []).append(row)
    stack = [(row, 0, branch) for branch, row in reversed(list(enumerate(below.get(None, []))))]
    laid, leaves = list[dict[str, Any]](), 0
    while stack:
        row, depth, branch = stack.pop()
        children = below.get(row["node_id"], [])
        laid.append({**row, "depth": depth, "branch": branch, "first": leaves, "leaf": not children})
        leaves += not children
        stack += [(child, depth + 1, branch) for child in reversed(children)]
    ends = dict[Any, int]()
    for row in reversed(laid):
        row["end"] = row["first"] + 1 if row["leaf"] else ends[row["node_id"]]
        row["middle"] = (row["first"] + row["end"]) / 2
        ends[row["parent"]] = max(ends.get(row["parent"], 0), row["end"])
    return laid


def icicle(frame: pl.DataFrame, *, title: str = "") -> go.Figure:
    """Draw a tree from the left to the right: each node a box as high as all that is below it.

    Every leaf is as high as any other. Of a label as many topics stand in a box as have room; the
    page says all of it where the mouse points.

    :param frame: a row a node, in the order to draw from the top: ``node_id``, ``parent`` (null, or an id that is not
        in the frame, at the top), ``label`` and ``n_turns``; where there is ``kind``, it heads the columns.

    >>> import polars as pl
    >>> from memlab.figures import rollup
    >>> nodes = {"node_id": ["m", "w"], "parent": [None, "m"], "label": ["May", "6 May: a trip"], "n_turns": [9, 9]}
    >>> len(rollup.icicle(pl.DataFrame(nodes)).data)
    2
    """
    style.need(frame, ("node_id", "parent", "label", "n_turns"), "icicle")
    nodes = _laid(frame)
    deepest, leaves = max(node["depth"] for node in nodes), sum(node["leaf"] for node in nodes)
    # The labels of the lowest nodes say most.
    wide = np.array([1.0] * deepest + [2.4 if deepest else 1.0])
    edges = np.concatenate([[0.0], np.cumsum(wide / wide.sum())])
    traces = []
    for odd in (0, 1):
        # The second tint starts at the second branch, or, of a single one, at the second depth.
        single = nodes[-1]["branch"] == 0
        boxes = [row for row in nodes if (row["depth"] if single else row["branch"]) % 2 == odd]
        traces.append(
            go.Bar(
                orientation="h", showlegend=False, hoverinfo="text", hovertext=[_hover(row) for row in boxes],
                marker={"color": style.SEQUENCE[odd], "line": {"color": "white", "width": 1}},
                base=[edges[row["depth"]] for row in boxes],
                x=[edges[row["depth"] + 1] - edges[row["depth"]] for row in boxes],
                y=[row["middle"] for row in boxes], width=[row["end"] - row["first"] for row in boxes],
            )
        )  # fmt: skip
    heads = {row["depth"]: clean(row["kind"]) for row in nodes} if "kind" in frame.columns else {}

    def layout_for(px: int) -> dict[str, Any]:
        row_px = min(float(_ROW_PX), _MOST_PX["column" if px <= style.WIDTHS["column"] else "full"] / leaves)
        across = px - 2 * _SIDE_PX
        notes = [_boxed(row, edges, across, row_px) for row in nodes]
        for depth, name in heads.items():
            heading = escape(fit(name, (edges[depth + 1] - edges[depth]) * across, style.SMALL, bold=True))
            notes.append(style.note(f"<b>{heading}</b>", edges[depth], 1, "left bottom", xref="x"))
        return style.layout(
            px, plot_px=round(row_px * leaves), left=_SIDE_PX, right=_SIDE_PX, title=title, bottom=8,
            head_px=_HEAD_PX * bool(heads), annotations=[note for note in notes if note], barmode="overlay", bargap=0,
            xaxis={"visible": False, "range": [0, 1]}, yaxis={"visible": False, "range": [leaves, 0]},
        )  # fmt: skip

    return style.finish(traces, layout_for)


def _hover(row: dict[str, Any]) -> str:
    return f"{style.broken(wrap(row['label'], 360, style.TEXT, lines=4))}<br>{row['n_turns']:,} turns"


def _boxed(row: dict[str, Any], edges: np.ndarray, across: int, row_px: float) -> dict[str, Any] | None:
    high = (row["end"] - row["first"]) * row_px
    if high < _LEGIBLE_PX:
        return None
    room = (edges[row["depth"] + 1] - edges[row["depth"]]) * across - 8
    most, label = max(1, min(4, int((high - 2) // 11))), str(row["label"])
    while (lines := wrap(label, room, style.SMALL, lines=most))[-1].endswith("…") and re.search(_LAST, label):
        label = re.sub(_LAST, "", label)
    return style.note(style.broken(lines), edges[row["depth"]], row["middle"], "left middle", xref="x", yref="y",
                      xshift=3, align="left")  # fmt: skip


def compression(frame: pl.DataFrame, *, reference: str = "", title: str = "") -> go.Figure:
    """Draw how much of the evidence each layer of a tree still stands on, over how much shorter it is.

    :param frame: a row a layer, from the bottom up: ``series`` (whose tree), ``layer`` (its name), ``compression``
        (times shorter than the turns) and ``evidence_kept`` (share), with ``low`` and ``high`` where these are known.
    :param reference: the series that is drawn as a grey line without names.

    >>> import polars as pl
    >>> from memlab.figures import rollup
    >>> layers = {"series": "weeks", "layer": ["session", "week"], "compression": [5.0, 9.0]}
    >>> len(rollup.compression(pl.DataFrame(layers | {"evidence_kept": [0.6, 0.4]})).data)
    1
    """
    style.need(frame, ("series", "layer", "compression", "evidence_kept"), "compression")
    names = [name for name in style.series(frame, "series") if name != reference]
    traces = list[Any]()
    for name, rows in style.parts(frame, "series"):
        x, y = rows["compression"], rows["evidence_kept"]
        if name == reference:
            traces.append(style.line(x, y, style.named(name), width=1.2, dash="dash"))
            continue
        known = {"low", "high"} <= set(rows.columns)
        bars = style.interval(y, rows["low"], rows["high"], thickness=0.8, width=2) if known else None
        traces.append(style.marked(x, y, name, names.index(name), text=list(map(plain, rows["layer"])),
                                   hoverinfo="text+x+y", error_y=bars))  # fmt: skip
    marks = frame.filter(pl.col("series") != reference)
    times = np.log10(frame["compression"].to_numpy().astype(float))
    span = (min(0.0, times.min()) - 0.06, times.max() + 0.2)
    order = [*names, reference] if reference else names

    def layout_for(px: int) -> dict[str, Any]:
        high, across = 230, px - 42 - 12
        scale = np.array([across / (span[1] - span[0]), -high / 1.05])
        spots = np.column_stack([np.log10(marks["compression"].to_numpy().astype(float)), marks["evidence_kept"]])
        anchors, every = ((part - [span[0], 1.05]) * scale for part in (spots, _along(frame)))
        layers = list(map(clean, marks["layer"]))
        sizes = np.array([(text_px(name, style.SMALL) + 4, 11.0) for name in layers])
        centres = place(anchors, sizes, every, area=(across, high), radii=(9, 14, 20, 28))
        tints = [style.darker(style.colour(names.index(name)), 0.15) for name in marks["series"]]
        notes = [
            style.note(escape(name), at[0] / across, 1 - at[1] / high, "center middle", font={"color": tint})
            for name, at, tint in zip(layers, centres, tints, strict=True) if not np.isnan(at[0])
        ]  # fmt: skip
        ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if np.log10(tick) <= span[1]]
        return style.layout(
            px, title=title, names=list(map(clean, order)) if len(order) > 1 else [], plot_px=high, annotations=notes,
            xaxis={"type": "log", "range": list(span), "tickvals": ticks, "ticktext": list(map(str, ticks)),
                   "title": {"text": "times shorter than the turns (log scale)"}},
            yaxis={"range": [0, 1.05], "tickformat": ".0%", "title": {"text": "evidence that it stands on"}},
        )  # fmt: skip

    return style.finish(traces, layout_for)


def _along(frame: pl.DataFrame) -> np.ndarray:
    """Give points along the lines and intervals of a frame, which labels should not cover: (m, 2)."""
    ends = {f"{c}_end": pl.col(c if c in frame.columns else "evidence_kept") for c in ("low", "high")}
    table = frame.select(pl.col("compression").log10(), "evidence_kept", **ends)
    parts = []
    for rows in table.with_columns(frame["series"]).partition_by("series", maintain_order=True):
        x, y, low, high = rows.drop("series").cast(pl.Float64).to_numpy().T
        steps = np.linspace(0, len(x) - 1, 30 * len(x))
        parts.append(np.column_stack([np.interp(steps, np.arange(len(x)), values) for values in (x, y)]))
        parts += [np.column_stack([x, low + t * (high - low)]) for t in np.linspace(0, 1, 12)]
    points = np.concatenate(parts)
    return points[~np.isnan(points).any(axis=1)]
