"""Lines: a measure over k or its price, and confidence over time."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures.label_placement import spread_labels
from memlab.figures.text_and_glyphs import (
    cut_to_width,
    drawable_text,
    escape,
    printable_line,
    text_px,
    widest_px,
    wrap,
)
from memlab.interval_and_p_labels import describe_intervals_for_caption

_LEFT_PX = 42
_STEPS_OF_A_LINE = 300
_PLOT_HEIGHTS = (250, 190)
_MARKED_HEIGHTS = (300, 240, 260, 280, 300)
"""Of a plot whose points have names; at column width the least that has room for most names."""
_BESIDE_MARK_PX = 4.0
"""Between the middle of a mark and its name."""
_MARK_PX = 6.0
_OWN_LINE_CLEARANCE_PX = 1.0
_LINE_CLEARANCE_PX = 1.5
_MARK_CLEARANCE_PX = 3.5
_LEAST_LEAD_PX = 4.0
"""By how much a name that no line leads to is nearer to its mark than to one on its side of it."""
_EVENT_HEIGHT = 0.013
"""Of the middle of a mark that stands on the axis of days, where confidence is at most 1."""
_NICE_K = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)


@style.sentence_if_empty
def recall_curves(
    frame: pl.DataFrame,
    *,
    measure: str = "recall_all@k",
    axis: str = "k",
    log_x: bool = True,
    note: str = "",
) -> go.Figure:
    """Draw a measure over the cut-off k, or over its price, one line a system with its interval.

    At column width the systems are named in a legend under the plot, best first; at page width
    beside their lines.

    :param frame: ``system``, ``k``, ``mean``, ``low``, ``high``; also ``chance`` and ``ceiling``,
        drawn in grey, ``point``, a short name that stands near its mark, and ``level``, ``unit``
        and ``units``, said beside the x axis.
    :param measure: the name of the measure, on the y axis.
    :param axis: what the column ``k`` holds, on the x axis.
    :param note: what stands below, such as what the names of points mean.

    >>> import polars as pl
    >>> from memlab.figures import curves
    >>> ends = {"low": [0.1, 0.3], "high": [0.3, 0.5]}
    >>> points = pl.DataFrame({"system": "bm25", "k": [5, 10], "mean": [0.2, 0.4], **ends})
    >>> [trace.name for trace in curves.recall_curves(points).data if trace.showlegend]
    ['bm25']
    """
    columns = ("system", "k", "mean", "low", "high")
    style.check_columns(frame, columns, "recall_curves")
    frame = frame.drop_nulls("mean")
    style.check_columns(frame, columns, "recall_curves (where something was measured)")
    frame = style.shorten_names(frame, "system")
    highest_mean = max(float(frame.select(pl.max_horizontal("high", "mean").max()).item()), 1e-3)
    shown_systems = _system_names_with_n(frame)
    number_by_system = dict(
        zip(
            shown_systems.unique(maintain_order=True),
            style.assign_series_numbers(frame["system"]).values(),
            strict=True,
        )
    )
    frame = frame.with_columns(system=shown_systems)
    last_means = frame.sort("k").group_by("system").agg(pl.col("mean").last())
    best_first = last_means.sort("mean", "system", descending=[True, False])["system"].to_list()
    curve_traces = list[Any]()
    for system_name, system_rows in style.rows_by_value(frame, "system"):
        series_number = number_by_system[system_name]
        curve_rows = system_rows.sort("k")
        banded_rows = curve_rows.drop_nulls(["low", "high"])
        band_colour = style.rgba_colour(style.colour(series_number), 0.12)
        curve_traces += [
            style.line(
                [*banded_rows["k"], *banded_rows["k"].reverse()],
                [*banded_rows["high"], *banded_rows["low"].reverse()],
                drawable_text(system_name),
                line={"width": 0, "color": None, "dash": None},
                fill="toself",
                fillcolor=band_colour,
                hoverinfo="skip",
                legendgroup=system_name,
                showlegend=False,
            ),
            style.marked_line(
                curve_rows["k"],
                curve_rows["mean"],
                system_name,
                series_number,
                legendgroup=system_name,
                legendrank=best_first.index(system_name),
                showlegend=True,
                hovertemplate=f"{drawable_text(axis)} = %{{x:~g}}: %{{y:.3f}}",
            ),
        ]
    bound_traces = [
        *_draw_chance_or_ceiling(frame, "chance", highest_mean, len(best_first)),
        *_draw_chance_or_ceiling(frame, "ceiling", highest_mean, len(best_first) + 1),
    ]
    highest_value = highest_mean
    for trace in bound_traces:
        highest_value = max([highest_value, *(value for value in trace.y if value is not None)])
    y_axis = style.share_axis(highest_value)
    y_top = y_axis["range"][1]
    named_traces = [trace for trace in (*curve_traces, *bound_traces) if trace.showlegend]
    line_ends = []
    for trace in named_traces:
        end_height = trace.y[-1]
        if end_height is None:
            end_height = y_top
        line_ends.append((trace.legendgroup or trace.name, end_height, trace.line.color))
    by_rank = sorted(named_traces, key=lambda trace: trace.legendrank)
    cut_offs = sorted(frame["k"].unique().to_list())
    axis_ticks = _cut_off_ticks(cut_offs)
    axis_low = cut_offs[0]
    axis_high = cut_offs[-1]
    if log_x:
        axis_low, axis_high = math.log10(max(axis_low, 0.5)), math.log10(axis_high)
    axis_length = axis_high - axis_low or 1
    axis_pad = axis_length * 0.03
    point_marks = []
    if "point" in frame.columns:
        x_range = (axis_low - axis_pad, axis_high + axis_pad)
        point_marks = _points_with_names_as_shares(frame, number_by_system, x_range, y_top, log_x)
    return _make_line_figure(
        [*curve_traces, *bound_traces],
        line_ends,
        legend_names=[trace.legendgroup or trace.name for trace in by_rank],
        plot_heights=_MARKED_HEIGHTS if point_marks else _PLOT_HEIGHTS,
        measure=measure,
        yaxis=y_axis,
        marks=point_marks,
        note=note,
        axis_title=_x_axis_title(frame, axis, log_x),
        xaxis={
            "type": "log" if log_x else "linear",
            "tickvals": axis_ticks if axis == "k" else None,
            "range": [axis_low - axis_pad, axis_high + axis_pad],
        },
    )


def _cut_off_ticks(cut_offs: list[Any]) -> list[Any]:
    """Choose which cut-offs are named on the axis: all of few, else round ones or every so many."""
    if len(cut_offs) <= 8:
        return cut_offs
    round_ones = [k for k in _NICE_K if k in cut_offs]
    return round_ones or cut_offs[:: len(cut_offs) // 6]


_NamedPoint = tuple[float, float, str, str]
"""A point of the plot as shares of its width and height, its name and its colour."""


def _points_with_names_as_shares(
    curve_points: pl.DataFrame,
    number_by_system: dict[str, int],
    x_range: tuple[float, float],
    y_top: float,
    log_x: bool,
) -> list[_NamedPoint]:
    """Give the points that have a name."""
    point_marks = []
    for system_name, system_rows in style.rows_by_value(curve_points, "system"):
        mark_colour = style.darken_colour(style.colour(number_by_system[system_name]), 0.15)
        for point_row in system_rows.drop_nulls("point").iter_rows(named=True):
            x_value = point_row["k"]
            if log_x:
                x_value = math.log10(max(x_value, 0.5))
            x_share = (x_value - x_range[0]) / (x_range[1] - x_range[0])
            point_marks.append(
                (
                    x_share,
                    point_row["mean"] / y_top,
                    printable_line(point_row["point"]),
                    mark_colour,
                )
            )
    return point_marks


class _PointLabel(NamedTuple):
    """Where the name of a point stands.

    :param point: which is named.
    :param centre: of the name, in pixels from the lower left corner of the plot.
    :param mark: the place of its point, in pixels.
    :param is_led: a thin line joins both.
    """

    point: _NamedPoint
    centre: np.ndarray
    mark: np.ndarray
    is_led: bool


def _label_points(
    named_points: Sequence[_NamedPoint],
    plot_width_px: float,
    plot_height_px: float,
    *,
    is_column: bool,
) -> tuple[list[style.Annotation], int]:
    """Write the names of points beside their marks, as many as have room.

    A name is never nearer to another mark than to its own, and on no mark, line or other name. A
    thin line leads to a name that has no such place beside its mark; a column has room for few.

    :returns: the names, and how many points have none.
    """
    plot_size = np.array([plot_width_px, plot_height_px])
    colours = {point_colour for *_, point_colour in named_points}
    can_lead = not is_column or len(colours) == 1
    chosen_labels = _best_point_labels(named_points, named_points, plot_size, can_lead=can_lead)
    if len(chosen_labels) < len(named_points):
        chosen_labels = _best_point_labels(named_points, named_points, plot_size, can_lead=True)
    annotations = [_point_label_annotation(label, plot_size) for label in chosen_labels]
    return annotations, len(named_points) - len(chosen_labels)


def _best_point_labels(
    labelled_points: Sequence[_NamedPoint],
    all_points: Sequence[_NamedPoint],
    plot_size: np.ndarray,
    *,
    can_lead: bool,
) -> list[_PointLabel]:
    """Place names from the top, from the foot and from either side, and take what is best."""
    label_sets = []
    for axis_number, is_descending in ((1, True), (1, False), (0, False), (0, True)):
        in_order = sorted(
            labelled_points,
            key=operator.itemgetter(axis_number),
            reverse=is_descending,
        )
        label_sets.append(_place_point_labels(in_order, all_points, plot_size, can_lead=can_lead))
    return max(label_sets, key=_label_set_rank)


def _label_set_rank(labels: Sequence[_PointLabel]) -> tuple[int, int]:
    """Rank names that were placed: most of them first, then with fewest leading lines."""
    return len(labels), -sum(label.is_led for label in labels)


def _unnamed_points_note(n_unnamed: int) -> str:
    """Say how many points have no room for their name."""
    if n_unnamed == 1:
        return "one point has no room for its name"
    return f"{n_unnamed} points have no room for their names"


def _point_label_annotation(label: _PointLabel, plot_size: np.ndarray) -> style.Annotation:
    """Give the name of a point as plotly takes it, with the line that leads to it."""
    *_, point_name, point_colour = label.point
    label_look = {"font": {"size": style.SMALL, "color": point_colour}}
    if not label.is_led:
        centre_x, centre_y = label.centre / plot_size
        return style.text_annotation(
            escape(point_name), centre_x, centre_y, "center middle", **label_look
        )
    mark_x, mark_y = label.mark / plot_size
    shift_x, shift_y = label.centre - label.mark
    leading_line = {
        "showarrow": True,
        "arrowhead": 0,
        "arrowwidth": 0.6,
        "arrowcolor": point_colour,
        "standoff": 3,
        "ax": shift_x,
        "ay": -shift_y,
    }
    return style.text_annotation(
        escape(point_name), mark_x, mark_y, "center middle", **label_look, **leading_line
    )


def _place_point_labels(
    labelled_points: Sequence[_NamedPoint],
    all_points: Sequence[_NamedPoint],
    plot_size: np.ndarray,
    *,
    can_lead: bool,
) -> list[_PointLabel]:
    """Place names beside their marks in the order given; a name that has no place is left out."""
    mark_places = np.array([point[:2] for point in all_points]) * plot_size
    steps_by_colour: dict[str, list[np.ndarray]] = {point[-1]: [] for point in all_points}
    for mark_number, (first_point, second_point) in enumerate(pairwise(all_points)):
        if first_point[-1] == second_point[-1]:
            first_mark, second_mark = mark_places[mark_number : mark_number + 2]
            steps = np.linspace(first_mark, second_mark, _STEPS_OF_A_LINE)
            steps_by_colour[first_point[-1]].append(steps)
    placed_labels = list[_PointLabel]()
    placed_boxes = list[tuple[np.ndarray, np.ndarray]]()
    leading_lines = list[np.ndarray]()
    for point in labelled_points:
        own_mark = np.array(point[:2]) * plot_size
        half_size = np.array([text_px(point[2], style.SMALL) + 1, 9.0]) / 2
        own_steps = steps_by_colour[point[-1]]
        other_steps = [
            steps
            for line_colour, line_steps in steps_by_colour.items()
            if line_colour != point[-1]
            for steps in line_steps
        ]
        is_own = (mark_places == own_mark).all(axis=1)
        for direction, distance, is_led in _label_offsets(can_lead=can_lead):
            centre = own_mark + direction * (half_size + distance)
            if not direction[0]:
                # At the edge of the plot a name above its mark begins at the edge.
                centre[0] = np.clip(centre[0], half_size[0] + 1, plot_size[0] - half_size[0] - 1)
            box = (centre - half_size, centre + half_size)
            if (box[0] < 1).any() or (box[1] > plot_size - 1).any():
                continue
            if any(_boxes_overlap(box, other_box) for other_box in placed_boxes):
                continue
            if _least_distance(leading_lines, box) < _LINE_CLEARANCE_PX:
                continue
            if _least_distance(own_steps, box) < _OWN_LINE_CLEARANCE_PX:
                continue
            if _least_distance(other_steps, box) < _LINE_CLEARANCE_PX:
                continue
            nearest_other = _least_distance([mark_places[~is_own]], box)
            if nearest_other < _MARK_CLEARANCE_PX:
                continue
            own_distance = _least_distance([own_mark[None]], box)
            if not is_led and nearest_other <= own_distance:
                continue
            is_on_its_side = ~is_own & ((mark_places - own_mark) @ (centre - own_mark) > 0)
            nearest_there = _least_distance([mark_places[is_on_its_side]], box)
            if not is_led and nearest_there < own_distance + _LEAST_LEAD_PX:
                continue
            if is_led:
                leading_line = np.linspace(own_mark, centre, _STEPS_OF_A_LINE // 5)
                # Another line may run through the mark itself.
                is_off_mark = np.linalg.norm(leading_line - own_mark, axis=1) > _MARK_PX
                leading_line = leading_line[is_off_mark]
                drawn_places = [*other_steps, *leading_lines, mark_places[~is_own]]
                if _crosses(leading_line, drawn_places, placed_boxes):
                    continue
                leading_lines.append(leading_line)
            placed_labels.append(_PointLabel(point, centre, own_mark, is_led))
            placed_boxes.append(box)
            break
    return placed_labels


def _label_offsets(*, can_lead: bool) -> list[tuple[np.ndarray, float, bool]]:
    """Give the places of a name from the best on: direction, distance, and whether a line leads."""
    sides = [np.array(side) for side in ((0, 1), (0, -1), (1, 0), (-1, 0))]
    corners = [np.array(corner) for corner in ((-1, 1), (1, -1), (1, 1), (-1, -1))]
    places = [(side, _BESIDE_MARK_PX, False) for side in sides]
    places += [(corner, 1.5, False) for corner in corners]
    if can_lead:
        for distance in (6.0, 9.0, 13.0, 18.0, 24.0, 32.0):
            places += [(direction, distance, True) for direction in (*sides, *corners)]
    return places


def _least_distance(
    place_groups: Sequence[np.ndarray], box: tuple[np.ndarray, np.ndarray]
) -> float:
    """Give how far the nearest of places is from a box; 0 inside."""
    least_distance = math.inf
    for places in place_groups:
        outside = np.maximum(np.maximum(box[0] - places, places - box[1]), 0)
        distances = np.linalg.norm(outside, axis=1)
        least_distance = min(least_distance, float(distances.min(initial=math.inf)))
    return least_distance


def _boxes_overlap(
    box: tuple[np.ndarray, np.ndarray], other_box: tuple[np.ndarray, np.ndarray]
) -> bool:
    return bool(((box[0] < other_box[1] + 1.5) & (other_box[0] < box[1] + 1.5)).all())


def _crosses(
    leading_line: np.ndarray,
    place_groups: Sequence[np.ndarray],
    placed_boxes: Sequence[tuple[np.ndarray, np.ndarray]],
) -> bool:
    """Say whether a leading line runs over what is drawn or over a name."""
    if any(_least_distance([leading_line], box) < 1 for box in placed_boxes):
        return True
    return any(_least_distance(place_groups, (step, step)) < 1.5 for step in leading_line)


def _system_names_with_n(curve_points: pl.DataFrame) -> pl.Series:
    """Give the names of systems, each with its n where systems have different ones."""
    system_names = curve_points["system"].cast(pl.String)
    if "n" not in curve_points.columns or curve_points["n"].n_unique() == 1:
        return system_names
    count_spread = curve_points.group_by("system").agg(pl.col("n").n_unique())["n"]
    if (count_spread > 1).any() or system_names.str.contains("n = ", literal=True).any():
        return system_names
    counted_names = [
        style.name_with_count(name, f"{count:,}")
        for name, count in zip(system_names, curve_points["n"], strict=True)
    ]
    return pl.Series(counted_names)


def _x_axis_title(curve_points: pl.DataFrame, x_name: str, log_x: bool) -> str:
    """Name the x axis, what the bands are, and of how many questions, as far as the frame says it.

    Systems whose names say their own n are left to say it.
    """
    title_text = printable_line(x_name)
    if log_x:
        title_text += " (log scale)"
    if "level" in curve_points.columns:
        title_text += f"; bands: {describe_intervals_for_caption(curve_points)}"
    has_named_counts = (
        curve_points["system"].cast(pl.String).str.contains("n = ", literal=True).any()
    )
    if "n" in curve_points.columns and not has_named_counts:
        title_text += f"; n = {style.format_count_range(curve_points['n'])}"
    return title_text


def _draw_chance_or_ceiling(
    curve_points: pl.DataFrame, bound_column: str, highest_mean: float, legend_rank: int
) -> list[go.Scatter]:
    """Draw chance or the ceiling; a ceiling far above every line is only named."""
    if (
        bound_column not in curve_points.columns
        or curve_points[bound_column].null_count() == curve_points.height
    ):
        return []
    bound_rows = (
        curve_points.drop_nulls(bound_column)
        .group_by("k")
        .agg(pl.col(bound_column).mean())
        .sort("k")
    )
    lowest_value = float(bound_rows[bound_column].min())  # type: ignore[arg-type]
    bound_name = bound_column
    x_values: Any = bound_rows["k"]
    y_values: Any = bound_rows[bound_column]
    hoverinfo = "name+y"
    if bound_column == "ceiling" and lowest_value > 2.5 * highest_mean:
        shown_value = int(lowest_value * 100 + 1e-9) / 100
        bound_name = f"{bound_column} (≥ {shown_value:.2f}, off the scale)"
        x_values = [None]
        y_values = [None]
        hoverinfo = "skip"
    dash = "dashdot"
    if bound_column == "chance":
        dash = "dot"
    return [
        style.line(
            x_values,
            y_values,
            bound_name,
            width=1,
            dash=dash,
            showlegend=True,
            legendrank=legend_rank,
            hoverinfo=hoverinfo,
        )
    ]


def _make_line_figure(
    traces: Sequence[Any],
    line_ends: Sequence[tuple[str, float, str]],
    *,
    legend_names: Sequence[str],
    plot_heights: Sequence[int],
    measure: str,
    yaxis: style.AxisLayout,
    axis_title: str,
    xaxis: style.AxisLayout,
    notes: Sequence[style.Annotation] = (),
    marks: Sequence[_NamedPoint] = (),
    note: str = "",
) -> go.Figure:
    """Make a figure of lines, whose names (name, y, colour) stand beside their ends at page width.

    :param legend_names: of the legend, at column width, or where a name is too long.
    :param plot_heights: height of the plot with names beside it; then the heights that are tried
        with names under it, until all points are named.
    :param yaxis: range and ticks of the y axis, which begins at 0.
    :param axis_title: of the x axis, on as many lines as it needs.
    :param notes: added where the names stand beside the lines.
    :param marks: points that are named.
    :param note: what stands below all else.
    """
    widest_name = widest_px([printable_line(line_name) for line_name, *_ in line_ends], style.SMALL)
    y_top = yaxis["range"][1]

    def layout_for(px: int) -> style.FigureLayout:
        is_beside = px > style.WIDTHS["column"] and widest_name <= 0.38 * px
        if is_beside:
            return layout_at_height(px, plot_heights[0], is_beside)[0]
        tried_layouts = [layout_at_height(px, height, is_beside) for height in plot_heights[1:]]
        fitting_layouts = [
            tried_layout
            for tried_layout in tried_layouts
            if tried_layout[0]["height"] <= style.TALLEST_PX
        ]
        best_layout, _ = min(fitting_layouts or tried_layouts[:1], key=operator.itemgetter(1))
        return best_layout

    def layout_at_height(px: int, plot_px: int, is_beside: bool) -> tuple[style.FigureLayout, int]:
        """Give a layout, and how many points it leaves without a name."""
        right_px = 12
        if is_beside:
            right_px = int(widest_name) + 16
        end_places = [end_height / y_top * plot_px for _, end_height, _ in line_ends]
        label_places = spread_labels(end_places, 12, low=4, high=plot_px) / plot_px
        end_labels = [
            style.text_annotation(
                escape(cut_to_width(line_name, right_px - 10, style.SMALL)),
                1,
                end_height,
                "left middle",
                xshift=5,
                font={"size": style.SMALL, "color": style.darken_colour(line_colour, 0.15)},
            )
            for (line_name, _, line_colour), end_height in zip(line_ends, label_places, strict=True)
        ]
        title_lines = wrap(axis_title, px - _LEFT_PX - right_px, style.TEXT, lines=3)
        beside_notes = []
        if is_beside:
            beside_notes = [*end_labels, *notes]
        mark_labels = list[style.Annotation]()
        n_unnamed = 0
        own_note = note
        if marks:
            mark_labels, n_unnamed = _label_points(
                marks,
                px - _LEFT_PX - right_px,
                plot_px,
                is_column=px <= style.WIDTHS["column"],
            )
            if n_unnamed:
                own_note = "; ".join(filter(None, (note, _unnamed_points_note(n_unnamed))))
        line_layout = style.layout(
            px,
            names=[] if is_beside else legend_names,
            plot_px=plot_px,
            left=_LEFT_PX,
            right=right_px,
            bottom=24 + 12 * len(title_lines),
            annotations=[*mark_labels, *beside_notes],
            xaxis={**xaxis, "title": {"text": style.join_lines(title_lines)}},
            yaxis={"title": {"text": drawable_text(measure)}, **yaxis},
        )
        return style.add_note_to_layout(line_layout, own_note, picture_px=px), n_unnamed

    return style.make_figure(traces, layout_for)


@style.sentence_if_empty
def confidence_curves(frame: pl.DataFrame, *, events: Sequence[float] = ()) -> go.Figure:
    """Draw confidence over time, one line a family, with repetitions as jumps.

    At column width the families are named in a legend under the plot, at page width beside their
    lines.

    :param frame: what :func:`memlab.knowledge.confidence.trajectory` gives: ``family``,
        ``day`` and ``confidence``.
    :param events: the days on which the fact was heard again, marked under the plot.

    >>> from memlab.figures import curves
    >>> from memlab.knowledge import confidence
    >>> from memlab.knowledge.decay_curves import Exponential, PlateauLinear
    >>> families = {"plateau_linear": PlateauLinear(), "exponential": Exponential()}
    >>> [line.name for line in curves.confidence_curves(confidence.trajectory(families)).data]
    ['plateau_linear', 'exponential']
    """
    style.check_columns(frame, ("family", "day", "confidence"), "over_time")
    number_by_family = style.assign_series_numbers(style.distinct_values(frame, "family"))
    curve_traces = []
    line_ends = []
    for family_name, family_rows in style.rows_by_value(frame, "family"):
        family_number = number_by_family[family_name]
        curve_rows = family_rows.sort("day", maintain_order=True)
        curve_traces.append(
            style.line(
                curve_rows["day"],
                curve_rows["confidence"],
                style.legend_name(family_name),
                style.colour(family_number),
                width=1.6,
                dash=style.dash(family_number),
                line={"simplify": False},
                hovertemplate="day %{x:~g}: %{y:.3f}",
            )
        )
        line_ends.append(
            (
                printable_line(family_name),
                float(curve_rows["confidence"][-1]),
                style.colour(family_number),
            )
        )
    family_names = [printable_line(curve_trace.name) for curve_trace in curve_traces]
    event_notes = []
    if events:
        family_names.append("heard again")
        curve_traces.append(
            go.Scatter(
                x=[*events],
                y=[_EVENT_HEIGHT] * len(events),
                mode="markers",
                name="heard again",
                hoverinfo="name+x",
                cliponaxis=False,
                marker={"symbol": "triangle-up", "size": 8, "color": style.INK},
            )
        )
        # Beside the lines only the marks still need a legend, and a legend of one is a note.
        event_notes = [style.text_annotation("▲ heard again", 1, 0, "right top", yshift=-19)]
    day_range = [frame["day"].min(), frame["day"].max()]
    return _make_line_figure(
        curve_traces,
        line_ends,
        legend_names=family_names,
        plot_heights=(200, 200),
        measure="confidence",
        yaxis={"range": [0, 1.03]},
        notes=event_notes,
        axis_title="days after the fact was first heard",
        xaxis={"range": day_range, "nticks": 9},
    )
