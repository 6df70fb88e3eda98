"""Trees of summaries, drawn as an icicle."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures.text_and_glyphs import cut_to_width, escape, printable_line, wrap

_ROW_PX = 26
_LEGIBLE_PX = 10
_MOST_PX = {"column": 370, "full": 560}
_SIDE_PX = 8
_HEAD_PX = 16
_NAMED_WIDTH = 2.4
"""Of the lowest depth whose boxes have names, where those above it are 1 wide."""
_UNNAMED_WIDTH = 0.4
"""Of the depths below that one."""
_NOTE_FONT = {"color": style.GREY, "size": 8}
_TINTS = ("#C3DBEC", "#8CBBDC")
# A topic of a label that has no room is left out rather than cut, but for the first.
_LATER_TOPIC = re.compile(r", [^,:]*$")


def _lay_out_nodes(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Give the nodes of a forest from the top, each with its depth and the rows that it covers.

    Every leaf has a row of its own, in the order of the frame, and every other node the rows of its
    leaves.
    """
    node_rows = frame.to_dicts()
    known_ids = {node_row["node_id"] for node_row in node_rows}
    rows_by_parent = dict[Any, list[dict[str, Any]]]()
    for node_row in node_rows:
        parent = node_row["parent"]
        if parent not in known_ids:
            parent = None
        rows_by_parent.setdefault(parent, []).append(node_row)
    laid_out = list[dict[str, Any]]()

    def place(node_row: dict[str, Any], depth: int, branch_number: int, first: int) -> int:
        laid_out.append(node_row | {"depth": depth, "branch": branch_number, "first": first})
        node_place = len(laid_out) - 1
        children = rows_by_parent.get(node_row["node_id"], [])
        end_row = first
        if not children:
            end_row += 1
        for child_row in children:
            end_row = place(child_row, depth + 1, branch_number, end_row)
        laid_out[node_place] |= {"end": end_row, "middle": (first + end_row) / 2}
        return end_row

    end_row = 0
    for branch_number, node_row in enumerate(rows_by_parent.get(None, [])):
        end_row = place(node_row, 0, branch_number, end_row)
    return laid_out


def _leaf_px(width: str, n_leaves: int) -> float:
    """Give the height of a leaf at a paper width."""
    return min(float(_ROW_PX), _MOST_PX[width] / n_leaves)


def _lowest_named_depth(nodes: list[dict[str, Any]], deepest: int, leaf_px: float) -> int:
    """Find the lowest depth of which at least half of the boxes are high enough for their names."""
    for depth in range(deepest, 0, -1):
        box_heights = [
            node_row["end"] - node_row["first"] for node_row in nodes if node_row["depth"] == depth
        ]
        if np.median(box_heights) * leaf_px >= _LEGIBLE_PX:
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
    laid_nodes = _lay_out_nodes(frame)
    deepest = max(laid_node["depth"] for laid_node in laid_nodes)
    n_leaves = max(laid_node["end"] for laid_node in laid_nodes)
    depth_widths = np.ones(deepest + 1)
    if deepest:
        # The labels of the lowest nodes say most, as far as they have room.
        lowest_named = _lowest_named_depth(laid_nodes, deepest, _leaf_px("full", n_leaves))
        depth_widths[lowest_named] = _NAMED_WIDTH
        depth_widths[lowest_named + 1 :] = _UNNAMED_WIDTH
    depth_edges = np.concatenate([[0.0], np.cumsum(depth_widths / depth_widths.sum())])
    # The second tint starts at the second branch, or, of a single one, at the second depth.
    tint_column = "depth" if laid_nodes[-1]["branch"] == 0 else "branch"
    box_traces = []
    for parity, box_colour in enumerate(_TINTS):
        tint_boxes = [node_row for node_row in laid_nodes if node_row[tint_column] % 2 == parity]
        hover_texts = [
            style.join_lines(
                [
                    *wrap(node_row["label"], 360, style.TEXT, lines=4),
                    f"{node_row['n_turns']:,} turns",
                ]
            )
            for node_row in tint_boxes
        ]
        box_traces.append(
            go.Bar(
                orientation="h",
                showlegend=False,
                hoverinfo="text",
                hovertext=hover_texts,
                marker={"color": box_colour, "line": {"color": "white", "width": 1}},
                base=[depth_edges[node_row["depth"]] for node_row in tint_boxes],
                x=[
                    depth_edges[node_row["depth"] + 1] - depth_edges[node_row["depth"]]
                    for node_row in tint_boxes
                ],
                y=[node_row["middle"] for node_row in tint_boxes],
                width=[node_row["end"] - node_row["first"] for node_row in tint_boxes],
            )
        )
    depth_heads = dict[int, str]()
    if "kind" in frame.columns:
        depth_heads = {
            node_row["depth"]: printable_line(node_row["kind"]) for node_row in laid_nodes
        }

    def layout_for(px: int) -> dict[str, Any]:
        width_name = style.width_name(px)
        leaf_px = _leaf_px(width_name, n_leaves)
        depth_rooms = np.diff(depth_edges) * (px - 2 * _SIDE_PX)
        head_px = 0
        if depth_heads:
            head_px = _HEAD_PX
        box_notes = []
        for node_row in laid_nodes:
            box_height = (node_row["end"] - node_row["first"]) * leaf_px
            if box_height >= _LEGIBLE_PX:
                box_room = depth_rooms[node_row["depth"]] - 8
                box_notes.append(
                    _box_label(node_row, depth_edges[node_row["depth"]], box_room, box_height)
                )
        bottom_px = 8
        n_unnamed = len(laid_nodes) - len(box_notes)
        if n_unnamed:
            unnamed_note = (
                f"{n_unnamed:,} of {len(laid_nodes):,} boxes have no room for their names"
            )
            box_notes.append(style.text_note(unnamed_note, 0, 0, yshift=-4, font=_NOTE_FONT))
            bottom_px += 14
        for depth_number, depth_head in depth_heads.items():
            heading = escape(
                cut_to_width(depth_head, depth_rooms[depth_number], style.SMALL, bold=True)
            )
            box_notes.append(
                style.text_note(
                    f"<b>{heading}</b>", depth_edges[depth_number], 1, "left bottom", xref="x"
                )
            )
        return style.layout(
            px,
            plot_px=round(leaf_px * n_leaves),
            left=_SIDE_PX,
            right=_SIDE_PX,
            bottom=bottom_px,
            head_px=head_px,
            annotations=box_notes,
            barmode="overlay",
            bargap=0,
            xaxis={"visible": False, "range": [0, 1]},
            yaxis={"visible": False, "range": [n_leaves, 0]},
        )

    return style.make_figure(box_traces, layout_for)


def _box_label(
    node_row: dict[str, Any], left_edge: float, room_px: float, height_px: float
) -> dict[str, Any]:
    """Write as many topics of a label into its box as have room."""
    most_lines = max(1, min(4, int((height_px - 2) // 11)))
    # "week of 3 May: …" stands in a column that is headed "week".
    label_text = str(node_row["label"]).removeprefix(f"{node_row.get('kind')} of ")
    label_lines = wrap(label_text, room_px, style.SMALL, lines=most_lines)
    while label_lines and label_lines[-1].endswith("…"):
        later_topic = _LATER_TOPIC.search(label_text)
        if later_topic is None:
            break
        label_text = label_text[: later_topic.start()]
        label_lines = wrap(label_text, room_px, style.SMALL, lines=most_lines)
    return style.text_note(
        style.join_lines(label_lines),
        left_edge,
        node_row["middle"],
        "left middle",
        xref="x",
        yref="y",
        xshift=3,
        align="left",
    )
