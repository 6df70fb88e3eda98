"""Trees of summaries, drawn as an icicle."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures.text_and_glyphs import cut_to_width, escape, printable_line, wrap

_ROW_PX = 26
_LEGIBLE_PX = 9
_MOST_PX = {"column": 370, "full": 560}
_SIDE_PX = 8
_HEAD_PX = 16
_NAMED_WIDTH = 2.4
"""Of the lowest depth whose boxes have names, where those above it are 1 wide."""
_UNNAMED_WIDTH = 0.4
"""Of the depths below that one."""
_TWO_LINES_PX = 27
"""Height of a leaf whose label has two lines."""
_TWO_LINES_MOST_PX = 352
"""Of all such leaves."""
_MOST_LINES = 6
_NOTE_PX = 8
_NOTE_FONT = {"color": style.GREY, "size": _NOTE_PX}
_TINTS = ("#C3DBEC", "#8CBBDC")
# A topic of a label that has no room is counted rather than cut, but for the first.
_LATER_TOPIC = re.compile(r", [^,:]*$")


def _place_tree_nodes(tree_rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Give the nodes of a forest from the top, each with its depth and the rows that it covers.

    Every leaf has a row of its own, in the order of the frame, and every other node the rows of its
    leaves.
    """
    node_rows = tree_rows.to_dicts()
    known_ids = {node_row["node_id"] for node_row in node_rows}
    rows_by_parent = dict[Any, list[dict[str, Any]]]()
    for node_row in node_rows:
        parent = node_row["parent"]
        if parent not in known_ids:
            parent = None
        rows_by_parent.setdefault(parent, []).append(node_row)
    laid_out = list[dict[str, Any]]()

    def place_subtree_and_give_end_row(
        node_row: dict[str, Any], depth: int, branch_number: int, first: int
    ) -> int:
        laid_out.append(node_row | {"depth": depth, "branch": branch_number, "first": first})
        node_place = len(laid_out) - 1
        children = rows_by_parent.get(node_row["node_id"], [])
        end_row = first
        if not children:
            end_row += 1
        for child_row in children:
            end_row = place_subtree_and_give_end_row(child_row, depth + 1, branch_number, end_row)
        laid_out[node_place] |= {"end": end_row, "middle": (first + end_row) / 2}
        return end_row

    end_row = 0
    for branch_number, node_row in enumerate(rows_by_parent.get(None, [])):
        end_row = place_subtree_and_give_end_row(node_row, 0, branch_number, end_row)
    return laid_out


def _leaf_height_px(paper_width: str, n_leaves: int) -> float:
    """Give the height of a leaf at a paper width."""
    return min(float(_ROW_PX), _MOST_PX[paper_width] / n_leaves)


def _lowest_named_depth(nodes: list[dict[str, Any]], deepest: int, leaf_height_px: float) -> int:
    """Find the lowest depth of which at least half of the boxes are high enough for their names."""
    for depth in range(deepest, 0, -1):
        box_heights = [
            node_row["end"] - node_row["first"] for node_row in nodes if node_row["depth"] == depth
        ]
        if np.median(box_heights) * leaf_height_px >= _LEGIBLE_PX:
            return depth
    return 0


@style.sentence_if_empty
def icicle(frame: pl.DataFrame, *, note: str = "") -> go.Figure:
    """Draw a tree from the left to the right: each node a box as high as all that is below it.

    Every leaf is as high as any other. Of a label as many topics stand in a box as have room, and
    behind them how many more there are (``+2``); the page says all of it where the mouse points.
    Where boxes have no room for a label, how many have one stands below. Of a tree whose leaves
    have no room for two lines in a column, the column shows as many of the first branches as have
    it, and says how many there are.

    :param frame: a row a node, in the order to draw from the top: ``node_id``, ``parent`` (null, or
        an id that is not in the frame, at the top), ``label`` and ``n_turns``; where there is
        ``kind``, it heads the columns.
    :param note: what else stands below.

    >>> import polars as pl
    >>> from memlab.figures import icicle
    >>> nodes = {"node_id": ["m", "w"], "parent": [None, "m"], "label": ["May", "6 May: a trip"]}
    >>> len(icicle.icicle(pl.DataFrame({**nodes, "n_turns": 9})).data)
    2
    """
    style.check_columns(frame, ("node_id", "parent", "label", "n_turns"), "icicle")
    laid_nodes = _place_tree_nodes(frame)
    deepest = max(laid_node["depth"] for laid_node in laid_nodes)
    n_leaves = max(laid_node["end"] for laid_node in laid_nodes)
    depth_widths = np.ones(deepest + 1)
    if deepest:
        # The labels of the lowest nodes say most, as far as they have room.
        lowest_named = _lowest_named_depth(laid_nodes, deepest, _leaf_height_px("full", n_leaves))
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

    def layout_for(px: int) -> style.FigureLayout:
        width_name = style.width_name(px)
        top_nodes = [node_row for node_row in laid_nodes if node_row["depth"] == 0]
        n_shown_tops, n_shown_leaves = len(top_nodes), n_leaves
        leaf_px = _leaf_height_px(width_name, n_leaves)
        if width_name == "column" and leaf_px < _TWO_LINES_PX - 2:
            fitting = [
                node_row["end"]
                for node_row in top_nodes
                if node_row["end"] * _TWO_LINES_PX <= _TWO_LINES_MOST_PX
            ]
            if fitting:
                n_shown_tops, n_shown_leaves = len(fitting), fitting[-1]
                leaf_px = float(_TWO_LINES_PX)
        shown_nodes = [node_row for node_row in laid_nodes if node_row["end"] <= n_shown_leaves]
        depth_rooms = np.diff(depth_edges) * (px - 2 * _SIDE_PX)
        head_px = 0
        if depth_heads:
            head_px = _HEAD_PX
        box_notes = []
        labelled_nodes = []
        has_counts = False
        for node_row in shown_nodes:
            box_height = (node_row["end"] - node_row["first"]) * leaf_px
            if box_height < _LEGIBLE_PX:
                continue
            box_room = depth_rooms[node_row["depth"]] - 8
            label_lines, n_left_out = _fit_label_to_box(node_row, box_room, box_height)
            has_counts = has_counts or n_left_out > 0
            labelled_nodes.append(node_row)
            box_notes.append(
                style.text_annotation(
                    style.join_lines(label_lines),
                    depth_edges[node_row["depth"]],
                    node_row["middle"],
                    "left middle",
                    xref="x",
                    yref="y",
                    xshift=3,
                    align="left",
                )
            )
        foot_parts = _describe_labelled_counts(shown_nodes, labelled_nodes)
        if n_shown_tops < len(top_nodes):
            foot_parts.append(
                f"{n_shown_tops:,} of {len(top_nodes):,} {_plural_kind(top_nodes[0])} shown, "
                "all of them at page width"
            )
        if has_counts:
            foot_parts.append("+2: two more topics, for which there is no room")
        if note:
            foot_parts.append(printable_line(note))
        bottom_px = 8
        if foot_parts:
            foot_lines = wrap("; ".join(foot_parts), px - 2 * _SIDE_PX, _NOTE_PX, lines=3)
            foot_text = style.join_lines(foot_lines)
            box_notes.append(
                style.text_annotation(foot_text, 0, 0, yshift=-4, align="left", font=_NOTE_FONT)
            )
            bottom_px += 4 + 10 * len(foot_lines)
        for depth_number, depth_head in depth_heads.items():
            heading = escape(
                cut_to_width(depth_head, depth_rooms[depth_number], style.SMALL, bold=True)
            )
            box_notes.append(
                style.text_annotation(
                    f"<b>{heading}</b>", depth_edges[depth_number], 1, "left bottom", xref="x"
                )
            )
        return style.layout(
            px,
            plot_px=round(leaf_px * n_shown_leaves),
            left=_SIDE_PX,
            right=_SIDE_PX,
            bottom=bottom_px,
            head_px=head_px,
            annotations=box_notes,
            barmode="overlay",
            bargap=0,
            xaxis={"visible": False, "range": [0, 1]},
            yaxis={"visible": False, "range": [n_shown_leaves, 0]},
        )

    return style.make_figure(box_traces, layout_for)


def _describe_labelled_counts(
    nodes: list[dict[str, Any]], labelled_nodes: list[dict[str, Any]]
) -> list[str]:
    """Say of each kind of node that has unlabelled boxes how many are labelled."""
    n_labelled = Counter(_plural_kind(node_row) for node_row in labelled_nodes)
    count_texts = []
    for kind, n_nodes in Counter(map(_plural_kind, nodes)).items():
        if n_labelled[kind] < n_nodes:
            count_texts.append(
                f"{n_labelled[kind]:,} of {n_nodes:,} {kind} labelled, the others have no room"
            )
    return count_texts


def _plural_kind(node_row: dict[str, Any]) -> str:
    """Give what a node is, in the plural."""
    if node_row.get("kind"):
        return f"{printable_line(node_row['kind'])}s"
    return "boxes"


def _fit_label_to_box(
    node_row: dict[str, Any], room_px: float, height_px: float
) -> tuple[list[str], int]:
    """Break a label into the lines of its box, with as many topics as have room.

    :returns: the lines, and how many topics are left out.
    """
    most_lines = max(1, min(_MOST_LINES, int((height_px - 2) // 12)))
    # "week of 3 May: …" stands in a column that is headed "week".
    kept_text = str(node_row["label"]).removeprefix(f"{node_row.get('kind')} of ")
    label_lines = wrap(kept_text, room_px, style.SMALL, lines=most_lines)
    n_left_out = 0
    while label_lines and label_lines[-1].endswith("…"):
        later_topic = _LATER_TOPIC.search(kept_text)
        if later_topic is None:
            break
        kept_text = kept_text[: later_topic.start()]
        n_left_out += 1
        label_lines = wrap(f"{kept_text}, +{n_left_out}", room_px, style.SMALL, lines=most_lines)
    if label_lines and label_lines[-1].endswith("…"):
        count_text = ""
        if n_left_out:
            count_text = f" +{n_left_out}"
        label_lines = _wrap_whole_words(kept_text, count_text, room_px, most_lines)
    return label_lines, n_left_out


def _wrap_whole_words(label_text: str, ending: str, max_px: float, max_lines: int) -> list[str]:
    """Wrap as many words of a text as have room, with an ellipsis and an ending behind them."""
    words = printable_line(label_text).split(" ")
    for n_words in range(len(words) - 1, 0, -1):
        shortened = " ".join(words[:n_words]).rstrip(",:;") + f"…{ending}"
        lines = wrap(shortened, max_px, style.SMALL, lines=max_lines)
        if " ".join(lines) == shortened:
            return lines
    return wrap(label_text, max_px, style.SMALL, lines=max_lines)
