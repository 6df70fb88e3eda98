"""Intervals in rows: means of series, paired differences to a baseline, steps of an ablation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures.text_and_glyphs import (
    drawable_text,
    escape,
    format_p,
    format_signed,
    printable_line,
    text_px,
    widest_px,
    wrap,
)
from memlab.interval_and_p_labels import (
    ALPHA,
    describe_intervals_for_caption,
    is_smallest_p_of_drawn_flips,
    smallest_p_of_sign_flips,
)

_ROW_PX = 32
_SECOND_LINE_PX = 13
_FURTHER_PX = 10
_LANE_PX = 15
_LIFT_PX = 5
_NAME_LIFT_PX = 6
"""Between the highest mark of a row and the name above it, in a column."""
_LINE_PX = 13  # of numbers, one above the other
_NAMES_PX = 160
_MEANING_BY_FILL = {style.PALETTE[0]: "blue: better", style.PALETTE[1]: "orange: worse"}
"""Of the filled marks of differences."""
_MARK_SHARE = 0.034
"""Of an axis in a column, that a mark covers."""
_GAP = {"type": "rect", "layer": "between", "fillcolor": "white", "line": {"width": 0}}
_KEY_PX = 8
_BRACKET_PX = (-11.5, -9.0, -6.5)
"""Foot, middle and head of a bracket, from the middle of its mark upwards."""
_BRACKET_TEXT = "bracket under a mark: its interval, which is narrower than the mark"
_PART = re.compile(rf"\S.*?(?:; |, (?=[{style.SHAPES}{style.OPEN_SHAPES}])|$)")


class _RowTexts(NamedTuple):
    """What is written around rows.

    :param xlabel: under the axis.
    :param key: what shapes and colours mean, in small type below.
    :param tints: the colour of each shape in the key, where it is not grey.
    :param numbers_head: what the numbers on the right are, above them.
    :param between: puts the numbers of a row on one line, with this between them.
    """

    xlabel: str
    key: str
    tints: Mapping[str, str] = {}
    numbers_head: str = ""
    between: str = ""


class _RowNumbers(NamedTuple):
    """The numbers of a row, in the order of its marks.

    :param lines: as they stand under each other.
    :param markup: the same as plotly takes it, each in its ink.
    """

    lines: list[str]
    markup: str


def _write_row_numbers(numbers: list[str], inks: list[str], between: str) -> _RowNumbers:
    """Write the numbers of a row, on one line where something stands between them."""
    inked_numbers = [
        f'<span style="color:{ink}">{escape(number)}</span>'
        for number, ink in zip(numbers, inks, strict=True)
    ]
    if between:
        return _RowNumbers([between.join(numbers)], escape(between).join(inked_numbers))
    return _RowNumbers(numbers, "<br>".join(inked_numbers))


def _draw_marked_rows(
    mark_rows: list[dict[str, Any]],
    texts: _RowTexts,
    *,
    span: tuple[float, float] | None = None,
    xaxis: style.AxisLayout | None = None,
) -> go.Figure:
    """Draw rows of marks, each beside its name (in a column under it), its numbers on the right.

    :param mark_rows: ``name`` (of the row), ``series``, ``x``, ``low``, ``high``, ``tint``,
        ``fill``, ``symbol`` and ``numbers``; where there is ``ink``, numbers have that colour.
    :param span: of the axis; where not given, that of the intervals and 0.
    :param xaxis: what is different about the axis.
    """
    numbers_by_row: dict[str, list[str]] = {mark_row["name"]: [] for mark_row in mark_rows}
    inks_by_row: dict[str, list[str]] = {row_name: [] for row_name in numbers_by_row}
    row_names = list(numbers_by_row)
    most_marks = max(Counter(mark_row["name"] for mark_row in mark_rows).values())
    lines_each = most_marks
    if texts.between:
        lines_each = 1
    row_height = _least_row_height_px(most_marks, lines_each)
    axis_low, axis_high = span or _axis_ends_around_marks_and_zero(mark_rows)
    axis_length = axis_high - axis_low or 0.01
    mark_traces = list[Any]()
    brackets = list[dict[str, Any]]()
    for mark_row in mark_rows:
        # Several marks of a row stand nearer to its own name than to the next.
        lane_number = most_marks - 1 - len(numbers_by_row[mark_row["name"]])
        mark_height = (
            len(row_names)
            - row_names.index(mark_row["name"])
            - 1
            + (_lowest_lane_above_row_end_px(most_marks) + _LANE_PX * lane_number) / row_height
        )
        numbers_by_row[mark_row["name"]].append(mark_row["numbers"])
        inks_by_row[mark_row["name"]].append(mark_row.get("ink", style.GREY))
        series_name = drawable_text(mark_row["series"])
        mark_traces.append(
            go.Scatter(
                x=[mark_row["x"]],
                y=[mark_height],
                mode="markers",
                name=series_name,
                showlegend=False,
                marker={
                    "color": mark_row["fill"],
                    "symbol": mark_row["symbol"],
                    **_mark_edge(mark_row["tint"], mark_row["fill"]),
                },
                error_x=style.error_bar(
                    mark_row["x"], mark_row["low"], mark_row["high"], color=mark_row["tint"]
                ),
                text=[f"{drawable_text(mark_row['name'])}<br>{series_name}: {mark_row['numbers']}"],
                hoverinfo="text",
            )
        )
        if _is_hidden_by_mark(mark_row, axis_length):
            brackets.append(_bracket_under_mark(mark_row, mark_height))
    numbers_by_name = {
        printable_line(row_name): _write_row_numbers(
            own_numbers, inks_by_row[row_name], texts.between
        )
        for row_name, own_numbers in numbers_by_row.items()
    }
    axis_pad = axis_length * 0.05
    x_axis = {
        "range": [axis_low - axis_pad, axis_high + axis_pad],
        "zeroline": True,
        "zerolinecolor": style.INK,
        "zerolinewidth": 1,
    }
    if xaxis is not None:
        x_axis |= xaxis

    row_texts = texts
    if brackets:
        row_texts = texts._replace(key=f"{texts.key}; {_BRACKET_TEXT}")

    def layout_for(px: int) -> style.FigureLayout:
        row_layout = _layout_of_rows(px, numbers_by_name, most_marks, row_texts, x_axis)
        return row_layout | {"shapes": [*row_layout["shapes"], *brackets]}

    return style.make_figure(mark_traces, layout_for)


def _bracket_under_mark(mark_row: dict[str, Any], mark_height: float) -> dict[str, Any]:
    """Draw an interval that its mark would hide as a bracket below the mark.

    In the mark it would look like a sign.
    """
    low, high = mark_row["low"], mark_row["high"]
    foot, middle, head = _BRACKET_PX
    ends = f"M{low},{foot}V{head}M{high},{foot}V{head}"
    return {
        "type": "path",
        "path": f"{ends}M{low},{middle}H{high}",
        "xref": "x",
        "yref": "y",
        "ysizemode": "pixel",
        "yanchor": mark_height,
        "line": {"color": mark_row["tint"], "width": 1.2},
    }


def _is_hidden_by_mark(mark_row: dict[str, Any], axis_length: float) -> bool:
    """Say whether the interval is about as short as its mark in a column, and not of one point."""
    if mark_row["low"] is None or mark_row["high"] is None:
        return False
    interval_length = mark_row["high"] - mark_row["low"]
    return bool(0 < interval_length < _MARK_SHARE * axis_length)


def _mark_edge(tint: str, fill: str) -> style.MarkerLook:
    """Give size and edge of a mark: a filled one has no edge, which would cut its corners."""
    if tint == fill:
        return {"size": 8.5, "line": {"width": 0}}
    return {"size": 7, "line": {"color": tint, "width": 1.5}}


def _axis_ends_around_marks_and_zero(mark_rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Give the ends of an axis that holds 0 and all marks with their intervals."""
    axis_ends = [0.0]
    for mark_row in mark_rows:
        ends = (mark_row["low"], mark_row["high"], mark_row["x"])
        axis_ends += [end for end in ends if end is not None]
    return min(axis_ends), max(axis_ends)


def _least_row_height_px(n_lanes: int, n_lines: int) -> int:
    """Give the least height of a row with lanes of marks and lines of text."""
    n_second_lines = max(n_lines - 1, 0)
    if n_lanes > 1:
        n_second_lines = max(n_second_lines, 1)
    text_px = _ROW_PX + _SECOND_LINE_PX * n_second_lines + _FURTHER_PX * (n_lanes - 1)
    return max(text_px, _LANE_PX * (n_lanes + 1))


def _lowest_lane_above_row_end_px(n_lanes: int) -> int:
    """Give how far the marks of a row with several lanes stand above its end."""
    if n_lanes > 1:
        return _LIFT_PX
    return 0


class _PlacedRows(NamedTuple):
    """Where rows stand at one width.

    :param names: of each row, in lines.
    :param row_px: pixels from row to row.
    :param middle: of the marks of a row, above its end, where a row is 1 high.
    :param lanes: from the lowest to the highest mark of a row, where a row is 1 high.
    :param y_range: the ends of the axis.
    """

    names: list[list[str]]
    row_px: float
    middle: float
    lanes: float
    y_range: tuple[float, float]


def _place_rows_in_column(
    row_names: list[str], max_name_px: float, n_lanes: int, n_lines: int, room_px: float
) -> _PlacedRows:
    """Place rows at column width, where a name stands above the marks of its row.

    Names take two lines where all rows have room for that, else one.
    """
    lanes_px = _LANE_PX * (n_lanes - 1)

    def least_row_px(n_name_lines: int) -> float:
        """Give the height of a row with room for a name above its marks."""
        marks_share = lanes_px / _least_row_height_px(n_lanes, max(n_lines, n_name_lines))
        return (9 + 12 * n_name_lines) / (1 - marks_share)

    n_name_lines = 1
    if least_row_px(2) * len(row_names) <= room_px:
        n_name_lines = 2
    names = [wrap(name, max_name_px, style.SMALL, lines=n_name_lines) for name in row_names]
    most_name_lines = max(map(len, names))
    unit_px = float(_least_row_height_px(n_lanes, max(n_lines, most_name_lines)))
    numbers_px = _LINE_PX * n_lines + _FURTHER_PX / 2
    row_px = max(
        min(unit_px, room_px / len(row_names)),
        least_row_px(min(most_name_lines, 2)),
        numbers_px,
    )
    middle = (_lowest_lane_above_row_end_px(n_lanes) + lanes_px / 2) / unit_px
    lanes = lanes_px / unit_px
    first_name_px = _NAME_LIFT_PX + 12 * len(names[0])
    top = len(row_names) - 1 + middle + lanes / 2 + first_name_px / row_px
    return _PlacedRows(names, row_px, middle, lanes, (-10 / row_px, top))


def _break_before_n(row_name: str, max_name_px: float) -> list[str]:
    """Wrap a name so that its n, where it ends with one, has a line of its own."""
    own_name, bracket, remark = row_name.rpartition(" (")
    if "n = " not in remark or text_px(own_name, style.SMALL) > max_name_px:
        return wrap(row_name, max_name_px, style.SMALL, lines=2)
    return [own_name, bracket.strip() + remark]


def _place_rows_on_page(
    row_names: list[str], max_name_px: float, n_lanes: int, n_lines: int
) -> _PlacedRows:
    """Place rows at page width, where a name of at most two lines stands beside its marks.

    Where one name has a second line, all of them have their n there.
    """
    names = [wrap(name, max_name_px, style.SMALL, lines=2) for name in row_names]
    if max(map(len, names)) > 1:
        names = [_break_before_n(name, max_name_px) for name in row_names]
    most_name_lines = max(map(len, names))
    unit_px = float(_least_row_height_px(n_lanes, max(n_lines, most_name_lines)))
    row_px = max(0.7 * _least_row_height_px(n_lanes, n_lines), 12 * most_name_lines + 6)
    lanes_px = _LANE_PX * (n_lanes - 1)
    middle = (_lowest_lane_above_row_end_px(n_lanes) + lanes_px / 2) / unit_px
    y_range = (middle - 0.5, len(row_names) + middle - 0.5)
    return _PlacedRows(names, row_px, middle, lanes_px / unit_px, y_range)


def _layout_of_rows(
    px: int,
    numbers_by_name: dict[str, _RowNumbers],
    n_lanes: int,
    texts: _RowTexts,
    xaxis: style.AxisLayout,
) -> style.FigureLayout:
    """Lay rows out: names on the left, lines of numbers on the right, lanes of marks between."""
    is_column = px <= style.WIDTHS["column"]
    row_names = [*numbers_by_name]
    row_numbers = [*numbers_by_name.values()]
    n_lines = max(len(numbers.lines) for numbers in row_numbers)
    number_lines = chain.from_iterable(numbers.lines for numbers in row_numbers)
    numbers_px = 8 + max(widest_px(number_lines, style.SMALL), text_px(texts.numbers_head, _KEY_PX))
    left_px: float = 0
    name_px: float = px - 20  # a column has no room for names beside the plot
    if not is_column:
        name_px = min(widest_px(row_names, style.SMALL), _NAMES_PX)
        left_px = name_px + 8
    axis_lines = _wrap_evenly(texts.xlabel, px - 20 - left_px - numbers_px, style.TEXT, max_lines=3)
    key_lines = _wrap_key_statements(texts.key, px - 20)
    bottom = 26 + 12 * len(axis_lines) + 10 * len(key_lines)
    head_px = 0
    if is_column:
        room_px = style.TALLEST_PX - bottom - 20
        rows = _place_rows_in_column(row_names, name_px, n_lanes, n_lines, room_px)
        name_notes, gaps = _row_names_and_grid_gaps(rows, xaxis["range"])
        plot_px = rows.row_px * (rows.y_range[1] - rows.y_range[0])
    else:
        rows = _place_rows_on_page(row_names, name_px, n_lanes, n_lines)
        name_notes = _row_names_left_of_plot(rows, left_px)
        gaps = []
        plot_px = rows.row_px * len(row_names)
        if texts.numbers_head:
            head_px = _LINE_PX
    notes: list[dict[str, Any]] = []
    for name_note, numbers, row_y in zip(name_notes, row_numbers, _row_middles(rows), strict=True):
        notes.append(name_note)
        notes.append(
            style.text_annotation(
                numbers.markup,
                1,
                anchor="left middle",
                xshift=8,
                font={"color": style.GREY},
                y=row_y,
                yref="y",
                align="left",
            )
        )
    notes.append(
        style.text_annotation(
            _tint_shapes(style.join_lines(key_lines), texts.tints),
            0,
            0,
            "left bottom",
            align="left",
            xshift=-left_px,
            yshift=3 - bottom,
            font={"size": _KEY_PX, "color": style.GREY},
        )
    )
    if texts.numbers_head:
        notes.append(_numbers_head_note(texts.numbers_head, is_column=is_column))
    return style.layout(
        px,
        plot_px=plot_px,
        head_px=head_px,
        left=10 + left_px,
        right=10 + numbers_px,
        bottom=bottom,
        annotations=notes,
        shapes=gaps,
        xaxis={"title": {"text": style.join_lines(axis_lines)}, **xaxis},
        yaxis={"visible": False, "range": [*rows.y_range]},
    )


def _numbers_head_note(numbers_head: str, *, is_column: bool) -> style.Annotation:
    """Say what the numbers are: in a column beside the first name, else above the plot."""
    anchor = "left bottom"
    if is_column:
        anchor = "left top"
    head_font = {"size": _KEY_PX, "color": style.GREY}
    return style.text_annotation(escape(numbers_head), 1, 1, anchor, xshift=8, font=head_font)


def _tint_shapes(key_text: str, tints: Mapping[str, str]) -> str:
    """Write each shape of a key in the colour of its marks."""
    tinted_text = key_text
    for shape, tint in tints.items():
        tinted_text = tinted_text.replace(shape, f'<span style="color:{tint}">{shape}</span>')
    return tinted_text


def _row_middles(placed_rows: _PlacedRows) -> list[float]:
    """Give where the middle of each row's marks is on the axis, from the top row."""
    n_rows = len(placed_rows.names)
    return [n_rows - number - 1 + placed_rows.middle for number in range(n_rows)]


def _row_names_left_of_plot(placed_rows: _PlacedRows, left_px: float) -> list[style.Annotation]:
    """Write each name on the left of the plot."""
    notes = []
    for name_lines, row_y in zip(placed_rows.names, _row_middles(placed_rows), strict=True):
        notes.append(
            style.text_annotation(
                style.join_lines(name_lines),
                0,
                anchor="left middle",
                xshift=-left_px,
                y=row_y,
                yref="y",
                align="left",
            )
        )
    return notes


def _row_names_and_grid_gaps(
    placed_rows: _PlacedRows, x_range: list[float]
) -> tuple[list[style.Annotation], list[dict[str, Any]]]:
    """Write each name above the marks of its row, in a gap of the grid.

    The gap is as wide as the plot: a line that the name alone broke would look cut off.
    """
    notes = []
    gaps: list[dict[str, Any]] = []
    for name_lines, row_y in zip(placed_rows.names, _row_middles(placed_rows), strict=True):
        name_y = row_y + placed_rows.lanes / 2
        notes.append(
            style.text_annotation(
                style.join_lines(name_lines),
                0,
                anchor="left bottom",
                xshift=0,
                y=name_y,
                yref="y",
                align="left",
                yshift=_NAME_LIFT_PX,
            )
        )
        gap_foot = name_y + _NAME_LIFT_PX / placed_rows.row_px
        gap_head = placed_rows.y_range[1]
        if gaps:
            gap_head = gap_foot + (12 * len(name_lines) + 2) / placed_rows.row_px
        gaps.append(_GAP | {"x0": x_range[0], "x1": x_range[1], "y0": gap_foot, "y1": gap_head})
    return notes, gaps


def _wrap_evenly(row_name: str, max_px: float, font_px: float, *, max_lines: int) -> list[str]:
    """Wrap a text so that its last line is not a single word."""
    wrapped_lines = wrap(row_name, max_px, font_px, lines=max_lines)
    if len(wrapped_lines) < 2:
        return wrapped_lines
    longest_word = widest_px(row_name.split(), font_px) + text_px(" ", font_px)
    return wrap(
        row_name,
        min(max_px, text_px(row_name, font_px) / len(wrapped_lines) + longest_word),
        font_px,
        lines=len(wrapped_lines),
    )


def _wrap_key_statements(key_text: str, max_px: float) -> list[str]:
    """Break a key between its statements, and within one only where it is longer than a line."""
    key_lines = [""]
    for statement in map(str.strip, _PART.findall(key_text)):
        if key_lines[-1] and text_px(f"{key_lines[-1]} {statement}", _KEY_PX) <= max_px:
            key_lines[-1] += f" {statement}"
        else:
            key_lines += _wrap_evenly(statement, max_px, _KEY_PX, max_lines=3)
    return [key_line.rstrip(";,") for key_line in key_lines[1:]]


@style.sentence_if_empty
def mean_intervals(
    frame: pl.DataFrame,
    *,
    rows: str = "kind",
    series: str = "form",
    measure: str = "recall_all@10",
    digits: int | None = None,
    between: str = " · ",
) -> go.Figure:
    """Draw a value with its interval for each row and series, the numbers of a row on its right.

    :param frame: ``n``, ``mean``, ``low``, ``high`` and the columns named by ``rows`` and
        ``series``, in the order to draw from the top. Where a series has different ``n``, the
        names of rows say them, in the order of the series where they differ within a row. What the
        intervals are (``level``, ``unit``, ``units``) is said below.
    :param series: each of its values has a colour and a shape.
    :param measure: what the values are, under the axis.
    :param digits: decimals of the numbers; shares are written as percent, on an axis from 0 to 1,
        where not given.
    :param between: what stands between the numbers of a row; an arrow where the series follow each
        other.

    >>> import polars as pl
    >>> from memlab.figures import intervals
    >>> row = {"kind": "pronoun", "form": "as asked", "n": 9, "mean": 0.5, "low": 0.3, "high": 0.7}
    >>> len(intervals.mean_intervals(pl.DataFrame([row])).data)
    1
    """
    columns = (rows, series, "n", "mean", "low", "high")
    style.check_columns(frame, columns, "means")
    frame = frame.drop_nulls("mean")
    style.check_columns(frame, columns, "means (where something was measured)")
    frame = style.shorten_names(frame, series)
    number_by_series = {frame[series][0]: 0}
    if frame[series].n_unique() > 1:
        style.series_symbols(frame, series)
        number_by_series = style.assign_series_numbers(style.distinct_values(frame, series))
    symbols = {
        series_name: style.symbol(number) for series_name, number in number_by_series.items()
    }
    mark_rows = []
    number_format = "{:.0%}"
    axis_span = (0.0, 1.0)
    if digits is not None:
        number_format = f"{{:.{digits}f}}"
        axis_span = frame.select(pl.col("low").min(), pl.col("high").max()).row(0)
    series_counts = frame.group_by(series).agg(pl.col("n").n_unique())["n"]
    shows_row_counts = frame[rows].n_unique() > 1 and bool((series_counts > 1).any())
    for row_value, row_group in style.rows_by_value(frame, rows):
        row_name = printable_line(row_value)
        if shows_row_counts:
            row_name = style.name_with_count(row_name, _row_count_text(row_group, series))
        for mean_row in row_group.iter_rows(named=True):
            series_number = number_by_series[mean_row[series]]
            mark_look = {
                "tint": style.colour(series_number),
                "fill": style.colour(series_number),
                "symbol": symbols[mean_row[series]],
            }
            if len(symbols) > 1:
                mark_look["ink"] = style.darken_colour(style.colour(series_number), 0.15)
            mark_rows.append(
                {
                    **mean_row,
                    **mark_look,
                    "name": row_name,
                    "x": mean_row["mean"],
                    "numbers": number_format.format(mean_row["mean"]).replace("-", "−"),
                    "series": mean_row[series],
                }
            )
    counted_series = {
        style.name_with_count(
            str(series_name), style.format_count_range(series_rows["n"])
        ): symbols[series_name]
        for series_name, series_rows in style.rows_by_value(frame, series)
    }
    key_parts = []
    if not shows_row_counts:
        key_parts.append(style.shape_legend(counted_series))
    elif len(symbols) > 1:
        key_parts.append(style.shape_legend(symbols))
    if "level" in frame.columns:
        key_parts.append(f"bars: {_describe_mean_intervals(frame, series)}")
    tints = {
        style.shape_of(symbols[series_name]): style.colour(series_number)
        for series_name, series_number in number_by_series.items()
    }
    texts = _RowTexts(measure, "; ".join(key_parts), tints, between=between)
    return _draw_marked_rows(
        mark_rows, texts, span=axis_span, xaxis={"zeroline": False, "nticks": 6}
    )


def _row_count_text(row_group: pl.DataFrame, series: str) -> str:
    """Write the n of a row, or of each series in it, with its name as far as there is room."""
    if row_group["n"].n_unique() == 1:
        return f"{row_group['n'][0]:,}"
    row_counts = [f"{count:,}" for count in row_group["n"]]
    counted_series = [
        f"{row_count} {printable_line(series_name)}"
        for row_count, series_name in zip(row_counts, row_group[series], strict=True)
    ]
    named_text = ", ".join(counted_series)
    if text_px(f"(n = {named_text})", style.SMALL) <= _NAMES_PX:
        return named_text
    return " · ".join(row_counts)


def _describe_mean_intervals(mean_rows: pl.DataFrame, series: str) -> str:
    """Say what the intervals of means are, and which series have none."""
    text = describe_intervals_for_caption(mean_rows)
    barless_series = [
        printable_line(series_name)
        for series_name, series_rows in style.rows_by_value(mean_rows, series)
        if not series_rows["low"].count()
    ]
    if barless_series:
        text += f", none for {' and '.join(barless_series)}"
    return text


@style.sentence_if_empty
def forest(
    frame: pl.DataFrame,
    *,
    measure: str = "recall_all@10",
    baseline: str = "",
    lower_is_better: bool = False,
) -> go.Figure:
    """Draw paired differences to a baseline with their intervals.

    A filled mark is significant after Holm's correction or, where no row has a ``p_holm``, has an
    interval that excludes 0; blue is better than the baseline, vermilion worse, open and grey
    neither. What the intervals are, and whether they hold together, is said below.

    :param frame: a row a system: ``system``, ``difference``, ``low``, ``high``, ``p_holm``, ``n``
        and ``baseline`` (the baseline's name), in the order to draw from the top. The baseline's
        own row is left out. With ``measure``, a row a system and measure: each measure has a mark
        of its own shape.
    :param measure: what the differences are in; of several measures what they have in common, such
        as ``recall_all@k``.
    :param baseline: its name, in place of the column.
    :param lower_is_better: the measure is a loss.
    """
    if baseline:
        frame = frame.with_columns(baseline=pl.lit(baseline))
    style.check_columns(
        frame, ("system", "difference", "low", "high", "p_holm", "n", "baseline"), "forest"
    )
    frame = frame.drop_nulls("difference").filter(pl.col("system") != pl.col("baseline"))
    style.check_columns(frame, (), "forest (without the baseline's own row)")
    frame = style.shorten_names(frame, "system")
    if "measure" not in frame.columns:
        frame = frame.with_columns(measure=pl.lit(measure))
    symbols = style.series_symbols(frame, "measure")
    is_tested = frame["p_holm"].count() > 0
    shape_names = _measures_with_n(frame, symbols)
    has_counted_names = shape_names == symbols and _has_n_for_each(frame, "system")
    mark_rows = []
    for test_row in frame.to_dicts():
        is_distinct = _is_significant(test_row)
        if not is_tested:
            is_distinct = _interval_excludes_zero(test_row)
        mark_rows.append(
            {
                **test_row,
                "name": _name_with_n(test_row, is_counted=has_counted_names),
                "series": test_row["measure"],
                "x": test_row["difference"],
                "numbers": _difference_text(test_row),
                "symbol": symbols[test_row["measure"]],
                **_difference_mark_colours(test_row["difference"], is_distinct, lower_is_better),
            }
        )
    baseline_name = printable_line(frame["baseline"][0])
    xlabel = f"difference in {measure} to {baseline_name}"
    if shape_names == symbols and not has_counted_names:
        xlabel += f" (n = {style.format_count_range(frame['n'])})"
    if lower_is_better:
        xlabel += "; right of 0: worse"
    filling_text = f"p < {ALPHA:g} after Holm's correction"
    numbers_head = "difference [interval] p"
    if not is_tested:
        filling_text = "the interval excludes 0, not corrected"
        numbers_head = "difference [interval]"
    key_text = f"filled: {filling_text}{_colours_note_or_empty(mark_rows)}"
    key_text += f"; {_describe_difference_intervals(frame)}"
    if len(symbols) > 1:
        key_text = f"{style.shape_legend(shape_names, style.OPEN_SHAPES)}; {key_text}"
    key_text += _note_if_significance_is_impossible(frame)
    return _draw_marked_rows(mark_rows, _RowTexts(xlabel, key_text, numbers_head=numbers_head))


@style.sentence_if_empty
def ablation(frame: pl.DataFrame, *, measure: str = "recall_all@10") -> go.Figure:
    """Draw a measure step by step, each with its gain on the step before, by group of questions.

    A mark is the mean of a step with its interval; each group has a mark of its own shape. On the
    right stand the mean and the gain with the paired interval and p after Holm's correction.
    Filled: significant; blue better, vermilion worse, open and grey neither. What the intervals
    are is said below.

    :param frame: a row a step and group, in the order to draw from the top: ``group``, ``system``,
        ``n``, ``mean``, ``mean_low``, ``mean_high``, ``difference``, ``low``, ``high`` and
        ``p_holm`` (null in the first row), as :func:`memlab.evaluate.compare_reports` gives them.

    >>> import polars as pl
    >>> from memlab.figures import intervals
    >>> step = {"group": ["all"], "system": ["bm25"], "n": [10]}
    >>> step |= {"mean": [0.5], "mean_low": [0.3], "mean_high": [0.7]}
    >>> test = dict.fromkeys(("difference", "low", "high", "p_holm"), [None])
    >>> len(intervals.ablation(pl.DataFrame({**step, **test})).data)
    1
    """
    columns = (
        "group",
        "system",
        "n",
        "mean",
        "mean_low",
        "mean_high",
        "difference",
        "low",
        "high",
        "p_holm",
    )
    style.check_columns(frame, columns, "ablation")
    frame = frame.drop_nulls("mean")
    style.check_columns(frame, columns, "ablation (where something was measured)")
    frame = style.shorten_names(frame, "system")
    frame = frame.with_columns(pl.col("mean_low", "mean_high").fill_null(pl.col("mean")))
    symbols = style.series_symbols(frame, "group")
    step_names = style.distinct_values(frame, "system")
    group_names = list(symbols)
    mark_rows = [
        {
            "name": printable_line(step_row["system"]),
            "series": step_row["group"],
            "x": step_row["mean"],
            "low": step_row["mean_low"],
            "high": step_row["mean_high"],
            "symbol": symbols[step_row["group"]],
            **_difference_mark_colours(step_row["difference"], _is_significant(step_row)),
            "numbers": "  ".join(
                [f"{step_row['mean']:.3f}".lstrip("0"), _difference_text(step_row)]
            ).rstrip(),
        }
        for step_row in sorted(
            frame.to_dicts(),
            key=lambda step_row: (
                step_names.index(step_row["system"]),
                group_names.index(step_row["group"]),
            ),
        )
    ]
    counted_groups = {
        style.name_with_count(str(group_name), f"{group_rows['n'][0]:,}"): symbols[group_name]
        for group_name, group_rows in style.rows_by_value(frame, "group")
    }
    key_text = style.shape_legend(counted_groups, style.OPEN_SHAPES)
    if "mean_level" in frame.columns:
        key_text += f"; bars, of means: {describe_intervals_for_caption(frame)}, each alone"
    key_text += "; gain: on the step before"
    if "level" in frame.columns:
        gain_intervals = _describe_difference_intervals(frame).removeprefix("bars: ")
        key_text += f"; in brackets, of gains: {gain_intervals}"
    key_text += f"; filled: the gain has p < {ALPHA:g} after Holm's correction"
    key_text += _colours_note_or_empty(mark_rows) + _note_if_significance_is_impossible(frame)
    texts = _RowTexts(measure, key_text, numbers_head="mean  gain [interval] p")
    return _draw_marked_rows(mark_rows, texts, xaxis={"zeroline": False})


def _note_if_significance_is_impossible(test_rows: pl.DataFrame) -> str:
    """Say that no mark can be filled where the test has too few units for its correction.

    An interval may exclude 0 there beside p = 1: it estimates, and the test counts how often signs
    fall as they did. Empty where a mark can be filled, or it is not known.
    """
    if not {"unit", "units", "level"} <= {*test_rows.columns}:
        return ""
    tested_rows = test_rows.drop_nulls(["p_holm", "units", "level"]).filter(unit="scope")
    if tested_rows.is_empty():
        return ""
    n_units: Any = tested_rows["units"].max()
    level: Any = tested_rows["level"].max()
    n_tests = max(1, round(ALPHA / (1 - level)))
    least_p = smallest_p_of_sign_flips(n_units)
    if least_p * n_tests < ALPHA:
        return ""
    return (
        f"; of {n_units:,} scopes no p is below {least_p:.3f}, so that none of {n_tests:,} tests "
        "can be significant"
    )


def _describe_difference_intervals(test_rows: pl.DataFrame) -> str:
    """Say what the intervals of differences are, and whether they are as careful as corrected p."""
    bars_text = f"bars: {describe_intervals_for_caption(test_rows, 'difference')}"
    if "level" not in test_rows.columns or test_rows["p_holm"].count() < 2:
        return bars_text
    interval_levels = test_rows.drop_nulls(["p_holm", "level"])["level"].unique()
    # Intervals that miss 1 in 20 divided by the number of tests are all right together in 19 of 20.
    test_counts = [round(ALPHA / (1 - interval_level)) for interval_level in interval_levels]
    if min(test_counts, default=1) < 2:
        return f"{bars_text}, uncorrected"
    count_text = " and ".join(map(str, sorted(test_counts)))
    correction_text = f"corrected for {count_text} tests"
    n_drawn = test_rows["p_holm"].count()
    if len(test_counts) == 1 and n_drawn < test_counts[0]:
        correction_text += f", of which {n_drawn:,} are drawn"
    return f"{bars_text}, {correction_text}"


def _colours_note_or_empty(mark_rows: list[dict[str, Any]]) -> str:
    """Say what the colours of filled marks mean, of those that are there."""
    fills = {mark_row["fill"] for mark_row in mark_rows}
    meanings = [meaning for fill, meaning in _MEANING_BY_FILL.items() if fill in fills]
    if not meanings:
        return ""
    return f" ({', '.join(meanings)})"


def _has_n_for_each(test_rows: pl.DataFrame, column: str) -> bool:
    """Say whether n differs between the values of a column, and each of them has one."""
    counts = test_rows.group_by(column).agg(pl.col("n").n_unique())["n"]
    return test_rows["n"].n_unique() > 1 and bool((counts == 1).all())


def _name_with_n(test_row: dict[str, Any], *, is_counted: bool) -> str:
    """Name a row of differences, with its n where other rows have others."""
    row_name = str(test_row["system"])
    if is_counted:
        return style.name_with_count(row_name, f"{test_row['n']:,}")
    return row_name


def _is_significant(test_row: dict[str, Any]) -> bool:
    return test_row["p_holm"] is not None and test_row["p_holm"] < ALPHA


def _interval_excludes_zero(test_row: dict[str, Any]) -> bool:
    """Say whether the interval of a difference lies on one side of 0."""
    if test_row["low"] is None or test_row["high"] is None:
        return False
    return bool(test_row["low"] > 0 or test_row["high"] < 0)


def _measures_with_n(test_rows: pl.DataFrame, symbols: dict[Any, str]) -> dict[Any, str]:
    """Give the shapes of measures, whose names say their n where each has one and they differ."""
    counts = test_rows.group_by("measure").agg(pl.col("n").n_unique())["n"]
    if (counts > 1).any() or test_rows["n"].n_unique() == 1:
        return symbols
    return {
        style.name_with_count(
            str(measure_name), style.format_count_range(measure_rows["n"])
        ): symbols[measure_name]
        for measure_name, measure_rows in style.rows_by_value(test_rows, "measure")
    }


def _difference_mark_colours(
    difference: float | None, is_distinct: bool, lower_is_better: bool = False
) -> dict[str, str]:
    """Give the colours of a difference: blue better, vermilion worse, grey and open neither."""
    if difference is None or not is_distinct:
        return {"tint": style.GREY, "fill": "white"}
    is_better = difference > 0
    if lower_is_better:
        is_better = difference < 0
    verdict_colour = style.PALETTE[1]
    if is_better:
        verdict_colour = style.PALETTE[0]
    return {"tint": verdict_colour, "fill": verdict_colour}


def _difference_text(test_row: dict[str, Any]) -> str:
    """Write a difference with its interval and p, as far as there are any."""
    if test_row["difference"] is None:
        return ""
    difference_text = format_signed(test_row["difference"])
    if test_row["low"] is not None:
        difference_text += f" [{format_signed(test_row['low'])}, {format_signed(test_row['high'])}]"
    if test_row["p_holm"] is not None:
        is_bound = is_smallest_p_of_drawn_flips(test_row.get("p"))
        difference_text += f" {format_p(test_row['p_holm'], is_bound=is_bound)}"
    return difference_text
