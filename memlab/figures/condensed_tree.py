"""Merge trees of turns without their smallest branches, one question's evidence at their feet."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
import polars as pl

from memlab.errors import DataError
from memlab.figures import style
from memlab.figures.label_placement import spread_labels
from memlab.figures.text_and_glyphs import (
    drawable_text,
    escape,
    printable_line,
    text_px,
    widest_px,
    wrap,
)

_HIGH_PX = {"column": 142, "full": 208}
_LEAST_HIGH_PX = 100
_LEFT_PX = 42
_RIGHT_PX = 10
_GAP_PX = 52
_ROOM_ABOVE = 1.06
"""Of the height of a tree, as the end of its axis."""
_FOOT_PX = 12
_TINTS = {False: ("#DEDEDE", "#C8C8C8"), True: ("#8CBBDC", "#4F9BC9")}
"""Of branches side by side; blue in the branch with all evidence."""
_BRANCH_NAMES = {
    True: "the branch with all evidence",
    False: "other branches (tints part neighbours)",
}
_BELOW = 0.3
"""Of the height of a tree: room for the marks under it."""
_EVIDENCE_ROW = 0.085
_RETRIEVED_ROW = 0.2
"""Of the height of a tree: how far below it stars and rings stand, apart so that none is hidden."""
_ROW_FONT = {"size": 8, "color": style.GREY}
_STAR: dict[str, Any] = {"symbol": "star", "size": 11, "line": {"color": "black", "width": 1}}
_RING: dict[str, Any] = {"symbol": "circle-open", "size": 6, "color": "black"}
_RINGS_APART_PX = 8.5
"""Between the middles of rings, which are moved apart so that all can be counted."""
_RETRIEVED = "○ retrieved"
_MARKS: dict[str, dict[str, Any]] = {
    _RETRIEVED: {**_RING, "line": {"width": 1.2}},
    "☆ evidence, missed": {**_STAR, "color": "white"},
    "★ evidence, retrieved": {**_STAR, "color": style.EVIDENCE},
}
_MARK_LOOKS = {"★ evidence, retrieved": f"{style.EVIDENCE};stroke:black;stroke-width:0.6px"}
"""Looks of marks in the key, where they are not black."""
_MOST_NAMES = 4
"""Names of branches that are written into a tree."""
_NAME_WIDTHS = (84, 67, 56)
"""Widths at which a name is wrapped, until one has room between the lines of the evidence."""
_NAME_LINES = 4
_LINE_PX = 11
_BETWEEN_NAMES_PX = 4
_FARTHEST_PX = 72
"""Of a name, to the side of its branch."""
_STEP_PX = 3
"""Between the places that are tried for a name."""
_BOX = ("panel", "first", "end", "low", "high", "branch", "holds")
_LEAF = ("panel", "x", "enters", "evidence", "rank")


class _NameArea(NamedTuple):
    """Where the name of a branch stands, in pixels from the lower left corner of its tree.

    :param branch_end: where the line from the name ends.
    """

    lines: list[str]
    middle: float
    left: float
    right: float
    bottom: float
    top: float
    branch_end: np.ndarray


class _KeyEntry(NamedTuple):
    """What marks of the picture mean.

    :param marks: characters with their colours.
    :param text: what they mean.
    """

    marks: tuple[tuple[str, str], ...]
    text: str


@style.sentence_if_empty
def condensed_tree(
    boxes: pl.DataFrame, leaves: pl.DataFrame, *, title: str = "", note: str = ""
) -> go.Figure:
    """Draw merge trees of the same turns, a question's evidence and what was retrieved below.

    A branch is as wide as it has turns, and narrows from the top where turns leave it. The one that
    holds all evidence is blue; branches side by side differ in tint. Under the trees evidence is a
    star, yellow where it was retrieved and white where it was missed, with a line up to where it
    enters; all that was retrieved is a ring in a row of its own, in which rings that would hide
    each other stand side by side. The key counts them. The four widest of the branches that have a
    name are named above the foot, as far as there is room between the lines of the evidence.

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
    ['the branch with all evidence', 'where evidence enters', 'retrieved']
    """
    style.check_columns(boxes, _BOX, "condensed_tree")
    style.check_columns(leaves, _LEAF, "condensed_tree")
    heights = [*boxes["low"], *boxes["high"], *leaves["enters"]]
    if not all(map(math.isfinite, heights)):
        raise DataError("condensed_tree got a height that is not finite; join the turns again")
    is_retrieved = pl.col("rank").is_not_null()
    is_evidence = pl.col("evidence")
    mark_filters = dict(
        zip(
            _MARKS,
            (is_retrieved, is_evidence & ~is_retrieved, is_evidence & is_retrieved),
            strict=True,
        )
    )
    boxes_by_tree = style.rows_by_value(boxes, "panel")
    tree_traces = list[Any]()
    has_moved = False
    ranges_by_tree = list[tuple[list[float], list[float]]]()
    for tree_number, (tree_head, tree_boxes) in enumerate(boxes_by_tree):
        tree_leaves = leaves.filter(panel=tree_head)
        tree_height = max(tree_boxes.select(pl.col("high").max()).item(), 1e-9)
        evidence_height = -_EVIDENCE_ROW * tree_height
        drawn_traces = [
            *_draw_branch_boxes(tree_boxes, 0.015 * tree_height),
            _draw_evidence_lines(tree_leaves.filter(is_evidence), evidence_height),
        ]
        for mark_name, mark_filter in mark_filters.items():
            marked_leaves = tree_leaves.filter(mark_filter)
            mark_height = evidence_height
            if mark_name == _RETRIEVED:
                mark_height = -_RETRIEVED_ROW * tree_height
                own_places = marked_leaves["x"].to_list()
                marked_leaves = _move_rings_apart(marked_leaves, tree_leaves)
                has_moved = has_moved or marked_leaves["x"].to_list() != own_places
            drawn_traces.append(
                _draw_leaf_marks(mark_name[2:], marked_leaves, mark_height, _MARKS[mark_name])
            )
        tree_traces += [
            trace.update(style.panel_axes(tree_number)) for trace in drawn_traces if len(trace.x)
        ]
        leaf_place = pl.col("x")
        trees_across = list(
            tree_leaves.select(leaf_place.min() - 1, right=leaf_place.max() + 1).row(0)
        )
        ranges_by_tree.append((trees_across, [-_BELOW * tree_height, _ROOM_ABOVE * tree_height]))
    key_entries = []
    for has_evidence, branch_name in _BRANCH_NAMES.items():
        if boxes.filter(holds=has_evidence).height:
            branch_marks = tuple(("■", branch_tint) for branch_tint in _TINTS[has_evidence])
            key_entries.append(_KeyEntry(branch_marks, branch_name))
    # Every tree has the same turns.
    counted_leaves = leaves.filter(panel=boxes_by_tree[0][0])
    for mark_name, mark_filter in mark_filters.items():
        n_marked = counted_leaves.filter(mark_filter).height
        if n_marked:
            mark_tint = _MARK_LOOKS.get(mark_name, "black")
            mark_text = f"{mark_name[2:]} ({n_marked:,})"
            if mark_name == _RETRIEVED and has_moved:
                mark_text = f"{mark_name[2:]} ({n_marked:,}; moved apart)"
            key_entries.append(_KeyEntry(((mark_name[0], mark_tint),), mark_text))
    row_names = {}
    if leaves.filter(is_evidence).height:
        row_names["evidence"] = _EVIDENCE_ROW
    if leaves.filter(mark_filters[_RETRIEVED]).height:
        row_names["retrieved"] = _RETRIEVED_ROW
    tree_heads = [printable_line(tree_head) for tree_head, _ in boxes_by_tree]

    def layout_for(px: int) -> style.FigureLayout:
        width_name: style.Width = "column" if px <= style.WIDTHS["column"] else "full"
        trees_across = min(len(tree_heads), style.WIDTHS["full"] // style.WIDTHS["column"])
        trees_across = 1 if width_name == "column" else trees_across
        tree_width = (px - _LEFT_PX - _RIGHT_PX - _GAP_PX * (trees_across - 1)) / trees_across
        head_lines = [wrap(tree_head, tree_width, style.SMALL, lines=4) for tree_head in tree_heads]
        header_px = 8 + 12 * max(map(len, head_lines))
        foot_lines = [
            *_wrap_key_entries(key_entries, px),
            *map(escape, wrap(note, px - 16, style.SMALL, lines=4)),
        ]
        bottom_px = _FOOT_PX + 12 * len(foot_lines)
        tree_height = _HIGH_PX[width_name]
        if width_name == "column":
            n_title_lines = len(wrap(title, px - 16, 11, lines=3, bold=True))
            room_px = style.TALLEST_PX - 10 - 14 * n_title_lines - bottom_px
            tree_height = min(tree_height, int(room_px / len(tree_heads)) - header_px)
            tree_height = max(tree_height, _LEAST_HIGH_PX)
        tree_facets = []
        branch_names = list[dict[str, Any]]()
        for leaf_place, (tree_head, axis_ranges) in enumerate(
            zip(head_lines, ranges_by_tree, strict=True)
        ):
            tree_facets.append(
                _merge_tree_panel(tree_head, axis_ranges, axis_label="cosine distance")
            )
            branch_labels = _label_widest_branches(
                boxes_by_tree[leaf_place][1],
                leaves.filter(is_evidence, panel=boxes_by_tree[leaf_place][0])["x"].to_numpy(),
                axis_ranges,
                (tree_width, float(tree_height)),
            )
            x_axis, y_axis = style.panel_axes(leaf_place).values()
            branch_names += [
                _mark_row_label(row_name, -row_share * axis_ranges[1][1] / _ROOM_ABOVE, x_axis)
                | {"yref": y_axis}
                for row_name, row_share in row_names.items()
            ]
            branch_names += [
                branch_label | {"xref": x_axis, "yref": y_axis} for branch_label in branch_labels
            ]
        panel_layout = style.panel_grid_layout(
            px,
            tree_facets,
            columns=trees_across,
            high=tree_height,
            gap=(_GAP_PX, header_px),
            left=_LEFT_PX,
            right=_RIGHT_PX,
            title=title,
            head_px=header_px,
            bottom=bottom_px,
        )
        note_font = {"size": style.SMALL, "color": style.GREY}
        note_text = "<br>".join(foot_lines)
        note_below = style.text_annotation(
            note_text, 0, 0, xshift=8 - _LEFT_PX, yshift=-4, align="left", font=note_font
        )
        return panel_layout | {
            "annotations": [*panel_layout["annotations"], *branch_names, note_below]
        }

    return style.make_figure(tree_traces, layout_for)


def _merge_tree_panel(
    heading_lines: list[str], axis_ranges: tuple[list[float], list[float]], *, axis_label: str
) -> style.Panel:
    """Give the heading and the axes of a tree."""
    x_range, y_range = axis_ranges
    tick_step = _tick_distance(y_range[1])
    y_axis = {
        "range": y_range,
        "title": {"text": axis_label},
        # Below 0 stand the rows of marks.
        "tickvals": np.arange(0, y_range[1], tick_step).round(6).tolist(),
    }
    return {
        "head": style.join_lines(heading_lines),
        "xaxis": {"visible": False, "range": x_range},
        "yaxis": y_axis,
    }


def _tick_distance(axis_end: float) -> float:
    """Choose the distance of the ticks of an axis that starts at 0: 1, 2 or 5 times a power of 10.

    At most six ticks stand on it.
    """
    power = 10.0 ** math.floor(math.log10(axis_end / 5))
    for multiple in (1, 2, 5):
        if multiple * power >= axis_end / 5:
            return multiple * power
    return 10 * power


def _move_rings_apart(retrieved_leaves: pl.DataFrame, tree_leaves: pl.DataFrame) -> pl.DataFrame:
    """Move rings along their row, as little as possible, until none hides another."""
    first_leaf, last_leaf = tree_leaves.select(left=pl.col("x").min(), right=pl.col("x").max()).row(
        0
    )
    plot_px = style.WIDTHS["column"] - _LEFT_PX - _RIGHT_PX
    least_apart = _RINGS_APART_PX * (last_leaf - first_leaf + 2) / plot_px
    ring_places = spread_labels(
        retrieved_leaves["x"].to_list(), least_apart, low=first_leaf, high=last_leaf
    )
    return retrieved_leaves.with_columns(x=pl.Series(ring_places, dtype=pl.Float64))


def _mark_row_label(row_name: str, row_height: float, x_axis: str) -> style.Annotation:
    """Name a row of marks on the left of a tree."""
    x_place = {"xref": f"{x_axis} domain", "xshift": -3}
    return style.text_annotation(row_name, 0, row_height, "right middle", font=_ROW_FONT, **x_place)


def _label_widest_branches(
    boxes: pl.DataFrame,
    evidence_places: np.ndarray,
    axis_ranges: tuple[list[float], list[float]],
    plot_size_px: tuple[float, float],
) -> list[style.Annotation]:
    """Write the names of the widest branches below the tree, with lines to them.

    No name stands on a line of the evidence, on the tree, or on what belongs to another name.

    :param evidence_places: of the lines of the evidence.
    :param axis_ranges: what the axes show; ``plot_size_px`` is the size of the plot in pixels.
    """
    if "name" not in boxes.columns:
        return []
    branch_widths = boxes.group_by("branch").agg(wide=pl.col("end").max() - pl.col("first").min())
    named_boxes = boxes.filter(pl.col("name") != "").join(branch_widths, on="branch")
    widest_boxes = named_boxes.sort("wide", "first", descending=[True, False]).head(_MOST_NAMES)
    px_per_unit = np.array(plot_size_px) / [
        axis_range[1] - axis_range[0] for axis_range in axis_ranges
    ]
    lower_corner = np.array([axis_range[0] for axis_range in axis_ranges])
    box_middle = (pl.col("first") + pl.col("end")) / 2
    branch_ends = (widest_boxes.select(box_middle, "low").to_numpy() - lower_corner) * px_per_unit
    stem_places = (evidence_places - lower_corner[0]) * px_per_unit[0]
    foot_px = -lower_corner[1] * px_per_unit[1] + 4
    tree_edges = boxes.select("first", "end", "low").to_numpy()
    tree_edges = (tree_edges - lower_corner[[0, 0, 1]]) * px_per_unit[[0, 0, 1]]
    taken_areas = list[_NameArea]()
    branch_labels = []
    for branch_name, branch_end in zip(widest_boxes["name"], branch_ends, strict=True):
        name_area = _find_name_area(
            branch_name,
            branch_end,
            stem_places,
            tree_edges,
            taken_areas,
            foot_px=foot_px,
            plot_px=plot_size_px[0],
        )
        if name_area is None:
            continue
        taken_areas.append(name_area)
        arrow_x, arrow_y = lower_corner + branch_end / px_per_unit
        # Where the text is, in pixels from the end of the branch, to the right and downwards.
        branch_labels.append(
            {
                "x": arrow_x,
                "y": arrow_y,
                "ax": float(name_area.middle - branch_end[0]),
                "ay": float(branch_end[1] - name_area.top),
                "text": "<br>".join(map(escape, name_area.lines)),
                "yanchor": "top",
                "showarrow": True,
                "arrowhead": 0,
                "arrowwidth": 0.7,
                "arrowcolor": style.GREY,
                "borderpad": 0,
                "font": {"size": style.SMALL, "color": style.INK},
            }
        )
    return sorted(branch_labels, key=lambda branch_label: branch_label["x"])


def _find_name_area(
    branch_name: str,
    branch_end: np.ndarray,
    stem_places: np.ndarray,
    tree_edges: np.ndarray,
    taken_areas: list[_NameArea],
    *,
    foot_px: float,
    plot_px: float,
) -> _NameArea | None:
    """Find the place for a name that is nearest to being below its branch.

    :param tree_edges: left and right edge and foot of each box of the tree.
    :returns: nothing where there is no free place.
    """
    free_areas = list[tuple[float, _NameArea]]()
    for name_width in _NAME_WIDTHS:
        name_lines = wrap(branch_name, name_width, style.SMALL, lines=_NAME_LINES)
        half_name = widest_px(name_lines, style.SMALL) / 2
        name_height = len(name_lines) * _LINE_PX
        for bottom in np.arange(foot_px, branch_end[1] - name_height - 6, _STEP_PX):
            for middle in np.arange(half_name + 1, plot_px - half_name, _STEP_PX):
                name_area = _NameArea(
                    name_lines,
                    middle,
                    middle - half_name,
                    middle + half_name,
                    bottom,
                    bottom + name_height,
                    branch_end,
                )
                aside = abs(middle - branch_end[0])
                if aside > _FARTHEST_PX:
                    continue
                n_crossed = np.sum((stem_places - middle) * (stem_places - branch_end[0]) < 0)
                place_cost = aside + 0.3 * (bottom - foot_px) + 6 * len(name_lines) + 12 * n_crossed
                free_areas.append((float(place_cost), name_area))
    for _, name_area in sorted(free_areas, key=lambda free_area: free_area[0]):
        if _is_free(name_area, stem_places, tree_edges, taken_areas):
            return name_area
    return None


def _is_free(
    name_area: _NameArea,
    stem_places: np.ndarray,
    tree_edges: np.ndarray,
    taken_areas: list[_NameArea],
) -> bool:
    """Tell whether a name stands on nothing, and its line on no other name."""
    left = name_area.left - _BETWEEN_NAMES_PX
    right = name_area.right + _BETWEEN_NAMES_PX
    if ((stem_places > left) & (stem_places < right)).any():
        return False
    is_above = (tree_edges[:, 1] > left) & (tree_edges[:, 0] < right)
    if (tree_edges[is_above, 2] < name_area.top + 3).any():
        return False
    for taken_area in taken_areas:
        is_beside = taken_area.right < left or taken_area.left > right
        is_apart = (
            taken_area.bottom > name_area.top + _BETWEEN_NAMES_PX
            or taken_area.top + _BETWEEN_NAMES_PX < name_area.bottom
        )
        if not is_beside and not is_apart:
            return False
        if _leader_meets(name_area, taken_area) or _leader_meets(taken_area, name_area):
            return False
        if _leaders_cross(name_area, taken_area):
            return False
    return True


def _leaders_cross(name_area: _NameArea, other_area: _NameArea) -> bool:
    """Tell whether the lines from two names to their branches cross."""
    ends = [
        (np.array([area.middle, area.top]), area.branch_end) for area in (name_area, other_area)
    ]
    parts = []
    for (start, end), other_line in zip(ends, ends[::-1], strict=True):
        along = end - start
        # On which side of this line the ends of the other one are.
        sides = [
            along[0] * (place - start)[1] - along[1] * (place - start)[0] for place in other_line
        ]
        parts.append(sides[0] * sides[1] <= 0)
    return all(parts)


def _leader_meets(name_area: _NameArea, other_area: _NameArea) -> bool:
    """Tell whether the line from a name to its branch runs through another name."""
    line_start = np.array([name_area.middle, name_area.top])
    shares = np.linspace(0, 1, 20)[:, None]
    line_places = line_start + shares * (name_area.branch_end - line_start)
    low_corner = np.array([other_area.left - 2, other_area.bottom - 2])
    high_corner = np.array([other_area.right + 2, other_area.top + 2])
    return bool(((line_places > low_corner) & (line_places < high_corner)).all(axis=1).any())


def _draw_branch_boxes(boxes: pl.DataFrame, min_box_height: float) -> list[go.Scatter]:
    """Fill the boxes, those of one tint as one trace; branches side by side differ.

    :param min_box_height: least height of a box: the uppermost has none of its own.
    """
    box_traces = list[go.Scatter]()
    for has_evidence in (False, True):
        trace_name = _BRANCH_NAMES[has_evidence]
        for parity, box_colour in enumerate(_TINTS[has_evidence]):
            outline_x = list[float | None]()
            outline_y = list[float | None]()
            tint_boxes = boxes.filter(holds=has_evidence).filter(pl.col("branch") % 2 == parity)
            for first_leaf, end_leaf, low_height, high_height in tint_boxes.select(
                "first", "end", "low", "high"
            ).iter_rows():
                upper_height = max(high_height, low_height + min_box_height)
                outline_x += [first_leaf, first_leaf, end_leaf, end_leaf, first_leaf, None]
                outline_y += [
                    round(corner_height, 4)
                    for corner_height in (
                        low_height,
                        upper_height,
                        upper_height,
                        low_height,
                        low_height,
                    )
                ]
                outline_y.append(None)
            box_traces.append(
                go.Scatter(
                    x=outline_x,
                    y=outline_y,
                    name=trace_name,
                    mode="lines",
                    line={"width": 0},
                    fill="toself",
                    fillcolor=box_colour,
                    hoverinfo="skip",
                    showlegend=False,
                )
            )
    return box_traces


def _draw_evidence_lines(evidence_leaves: pl.DataFrame, foot_height: float) -> go.Scatter:
    """Draw a line from each turn up to where it enters the tree."""
    stem_x = list[float | None]()
    stem_y = list[float | None]()
    for leaf_place, entry_height in evidence_leaves.select("x", "enters").iter_rows():
        stem_x += [leaf_place, leaf_place, None]
        stem_y += [foot_height, round(entry_height, 4), None]
    trace_name = "where evidence enters"
    return style.line(
        stem_x, stem_y, trace_name, style.INK, width=0.7, hoverinfo="skip", showlegend=False
    )


def _draw_leaf_marks(
    mark_name: str, marked_leaves: pl.DataFrame, mark_height: float, marker_look: style.MarkerLook
) -> go.Scatter:
    leaf_texts = [""] * marked_leaves.height
    if "text" in marked_leaves.columns:
        leaf_texts = marked_leaves["text"].to_list()
    hover_texts = [
        style.join_lines(wrap(leaf_text, 360, style.TEXT, lines=4)) for leaf_text in leaf_texts
    ]
    return go.Scatter(
        x=marked_leaves["x"].to_list(),
        y=[mark_height] * marked_leaves.height,
        name=drawable_text(mark_name),
        mode="markers",
        marker=marker_look,
        text=hover_texts,
        hoverinfo="text+name",
        showlegend=False,
        cliponaxis=False,
    )


def _wrap_key_entries(entries: list[_KeyEntry], picture_px: int) -> list[str]:
    """Give the key, whose marks have their colours, in as many lines as it needs."""
    key_lines = list[str]()
    taken_px = math.inf
    for entry in entries:
        mark_letters = "".join(letter for letter, _ in entry.marks)
        entry_px = text_px(f"{mark_letters} {entry.text}", style.SMALL) + 12
        mark_markup = "".join(
            f"<span style='color:{mark_colour}'>{letter}</span>"
            for letter, mark_colour in entry.marks
        )
        entry_markup = f"{mark_markup} {escape(entry.text)}"
        if taken_px + entry_px > picture_px - 16:
            key_lines.append(entry_markup)
            taken_px = entry_px
        else:
            key_lines[-1] += f"   {entry_markup}"
            taken_px += entry_px
    return key_lines
