"""Trees of summaries, drawn as an icicle."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures._text_measuring import cut_to_width, escape, printable_line, wrap

_ROW_PX, _LEGIBLE_PX = 26, 10
_MOST_PX = {"column": 370, "full": 560}
_SIDE_PX, _HEAD_PX = 8, 16
_NAMED_WIDTH, _UNNAMED_WIDTH = 2.4, 0.4
"""Of the lowest depth whose boxes have names, and of those below it, where others are 1 wide."""
_NOTE_FONT = {"color": style.GREY, "size": 8}
_TINTS = ("#C3DBEC", "#8CBBDC")
# A topic of a label that has no room is left out rather than cut, but for the first.
_LATER_TOPIC = re.compile(r", [^,:]*$")


def _lay_out_nodes(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Give the nodes of a forest from the top, each with its depth and the rows that it covers.

    Every leaf has a row of its own, in the order of the frame, and every other node the rows of its
    leaves.
    """
    rows = frame.to_dicts()
    known, below = {row["node_id"] for row in rows}, dict[Any, list[dict[str, Any]]]()
    for row in rows:
        below.setdefault(row["parent"] if row["parent"] in known else None, []).append(row)
    laid = list[dict[str, Any]]()

    def place(row: dict[str, Any], depth: int, branch: int, first: int) -> int:
        laid.append(row | {"depth": depth, "branch": branch, "first": first})
        at, children = len(laid) - 1, below.get(row["node_id"], [])
        end = first + (not children)
        for child in children:
            end = place(child, depth + 1, branch, end)
        laid[at] |= {"end": end, "middle": (first + end) / 2}
        return end

    end = 0
    for branch, row in enumerate(below.get(None, [])):
        end = place(row, 0, branch, end)
    return laid


def _row_px(width: str, leaves: int) -> float:
    """Give the height of a leaf at a paper width."""
    return min(float(_ROW_PX), _MOST_PX[width] / leaves)


def _lowest_named_depth(nodes: list[dict[str, Any]], deepest: int, row_px: float) -> int:
    """Find the lowest depth of which at least half of the boxes are high enough for their names."""
    for depth in range(deepest, 0, -1):
        heights = [row["end"] - row["first"] for row in nodes if row["depth"] == depth]
        if np.median(heights) * row_px >= _LEGIBLE_PX:
            return depth
    return 0


@style.said_where_empty
def icicle(frame: pl.DataFrame) -> go.Figure:
    """Draw a tree from the left to the right: each node a box as high as all that is below it.

    Every leaf is as high as any other. Of a label as many topics stand in a box as have room; the
    page says all of it where the mouse points. How many boxes have no room for a name stands below.

    :param frame: a row a node, in the order to draw from the top: ``node_id``, ``parent`` (null, or
        an id that is not in the frame, at the top), ``label`` and ``n_turns``; where there is
        ``kind``, it heads the columns.

    >>> import polars as pl
    >>> from memlab.figures import icicle
    >>> nodes = {"node_id": ["m", "w"], "parent": [None, "m"], "label": ["May", "6 May: a trip"]}
    >>> len(icicle.icicle(pl.DataFrame({**nodes, "n_turns": 9})).data)
    2
    """
    style.check_columns(frame, ("node_id", "parent", "label", "n_turns"), "icicle")
    nodes = _lay_out_nodes(frame)
    deepest, leaves = max(node["depth"] for node in nodes), max(node["end"] for node in nodes)
    wide = np.ones(deepest + 1)
    if deepest:
        # The labels of the lowest nodes say most, as far as they have room.
        lowest = _lowest_named_depth(nodes, deepest, _row_px("full", leaves))
        wide[lowest] = _NAMED_WIDTH
        wide[lowest + 1 :] = _UNNAMED_WIDTH
    edges = np.concatenate([[0.0], np.cumsum(wide / wide.sum())])
    # The second tint starts at the second branch, or, of a single one, at the second depth.
    by, traces = "depth" if nodes[-1]["branch"] == 0 else "branch", []
    for odd, tint in enumerate(_TINTS):
        boxes = [row for row in nodes if row[by] % 2 == odd]
        hover = [
            style.join_lines(
                [*wrap(row["label"], 360, style.TEXT, lines=4), f"{row['n_turns']:,} turns"]
            )
            for row in boxes
        ]
        traces.append(
            go.Bar(
                orientation="h",
                showlegend=False,
                hoverinfo="text",
                hovertext=hover,
                marker={"color": tint, "line": {"color": "white", "width": 1}},
                base=[edges[row["depth"]] for row in boxes],
                x=[edges[row["depth"] + 1] - edges[row["depth"]] for row in boxes],
                y=[row["middle"] for row in boxes],
                width=[row["end"] - row["first"] for row in boxes],
            )
        )
    heads = dict[int, str]()
    if "kind" in frame.columns:
        heads = {row["depth"]: printable_line(row["kind"]) for row in nodes}

    def layout_for(px: int) -> dict[str, Any]:
        width = style.width_name(px)
        row_px = _row_px(width, leaves)
        rooms = np.diff(edges) * (px - 2 * _SIDE_PX)
        notes = []
        for row in nodes:
            high = (row["end"] - row["first"]) * row_px
            if high >= _LEGIBLE_PX:
                room = rooms[row["depth"]] - 8
                notes.append(_box_label(row, edges[row["depth"]], room, high))
        bottom = 8
        unnamed = len(nodes) - len(notes)
        if unnamed:
            text = f"{unnamed:,} of {len(nodes):,} boxes have no room for their names"
            notes.append(style.text_note(text, 0, 0, yshift=-4, font=_NOTE_FONT))
            bottom += 14
        for depth, name in heads.items():
            heading = escape(cut_to_width(name, rooms[depth], style.SMALL, bold=True))
            notes.append(
                style.text_note(f"<b>{heading}</b>", edges[depth], 1, "left bottom", xref="x")
            )
        return style.layout(
            px,
            plot_px=round(row_px * leaves),
            left=_SIDE_PX,
            right=_SIDE_PX,
            bottom=bottom,
            head_px=_HEAD_PX * bool(heads),
            annotations=notes,
            barmode="overlay",
            bargap=0,
            xaxis={"visible": False, "range": [0, 1]},
            yaxis={"visible": False, "range": [leaves, 0]},
        )

    return style.make_figure(traces, layout_for)


def _box_label(row: dict[str, Any], left: float, room: float, high: float) -> dict[str, Any]:
    """Write as many topics of a label into its box as have room."""
    most = max(1, min(4, int((high - 2) // 11)))
    # "week of 3 May: …" stands in a column that is headed "week".
    label = str(row["label"]).removeprefix(f"{row.get('kind')} of ")
    lines = wrap(label, room, style.SMALL, lines=most)
    while lines and lines[-1].endswith("…"):
        later = _LATER_TOPIC.search(label)
        if later is None:
            break
        label = label[: later.start()]
        lines = wrap(label, room, style.SMALL, lines=most)
    return style.text_note(
        style.join_lines(lines),
        left,
        row["middle"],
        "left middle",
        xref="x",
        yref="y",
        xshift=3,
        align="left",
    )
