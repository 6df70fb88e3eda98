"""Intervals in rows: means of series, paired differences to a baseline, steps of an ablation."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any

import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures._text_measuring import (
    drawable_text,
    format_p,
    format_signed,
    printable_line,
    text_px,
    widest_px,
    wrap,
)
from memlab.interval_labels import ALPHA, describe_intervals

_ROW_PX, _SECOND_LINE_PX, _FURTHER_PX, _LANE_PX, _LIFT_PX = 32, 13, 10, 15, 5
_LINE_PX = 13  # of numbers, one above the other
_NAMES_PX = 160
_GAP = {"type": "rect", "layer": "between", "fillcolor": "white", "line": {"width": 0}}
_PART = re.compile(rf"\S.*?(?:; |, (?=[{style.SHAPES}])|$)")


def marked_rows(
    marks: list[dict[str, Any]],
    *,
    xlabel: str,
    key: str,
    span: tuple[float, float] | None = None,
    between: str = "",
    xaxis: dict[str, Any] | None = None,
) -> go.Figure:
    """Draw rows of marks, each beside its name (in a column under it), its numbers on the right.

    :param marks: ``name`` (of the row), ``series``, ``x``, ``low``, ``high``, ``tint``, ``fill``,
        ``symbol`` and ``numbers``.
    :param key: what shapes and colours mean, in small type below.
    :param span: of the axis; where not given, that of the intervals and 0.
    :param between: puts the numbers of a row on one line, with this between them.
    :param xaxis: what is different about the axis.
    """
    numbers: dict[str, list[str]] = {row["name"]: [] for row in marks}
    names = list(numbers)
    deep = max(sum(row["name"] == name for row in marks) for name in names)
    lines_each = deep
    if between:
        lines_each = 1
    row_px, traces = _row_height_px(deep, lines_each), list[Any]()
    for row in marks:
        # Several marks of a row stand nearer to its own name than to the next.
        lane = deep - 1 - len(numbers[row["name"]])
        y = (
            len(names)
            - names.index(row["name"])
            - 1
            + ((deep > 1) * _LIFT_PX + _LANE_PX * lane) / row_px
        )
        numbers[row["name"]].append(row["numbers"])
        of_series = drawable_text(row["series"])
        traces.append(
            go.Scatter(
                x=[row["x"]],
                y=[y],
                mode="markers",
                name=of_series,
                showlegend=False,
                marker={
                    "color": row["fill"],
                    "size": 7,
                    "symbol": row["symbol"],
                    "line": {"color": row["tint"], "width": 1.5},
                },
                error_x=style.error_bar(row["x"], row["low"], row["high"], color=row["tint"]),
                text=[f"{drawable_text(row['name'])}<br>{of_series}: {row['numbers']}"],
                hoverinfo="text",
            )
        )
    rows = dict[str, list[str]]()
    for name, own in numbers.items():
        rows[printable_line(name)] = own
        if between:
            rows[printable_line(name)] = [between.join(own)]
    low, high = span or _ends_of_marks(marks)
    pad = (high - low or 0.01) * 0.05
    axis = {
        "range": [low - pad, high + pad],
        "zeroline": True,
        "zerolinecolor": style.INK,
        "zerolinewidth": 1,
    }
    if xaxis is not None:
        axis |= xaxis

    def layout_for(px: int) -> dict[str, Any]:
        return _layout(px, rows, deep, xlabel, key, axis)

    return style.make_figure(traces, layout_for)


def _ends_of_marks(marks: list[dict[str, Any]]) -> tuple[float, float]:
    """Give the ends of an axis that holds 0 and all marks with their intervals."""
    ends = [0.0]
    for row in marks:
        ends += [row[end] for end in ("low", "high", "x") if row[end] is not None]
    return min(ends), max(ends)


def _row_height_px(deep: int, lines: int) -> int:
    rows = _ROW_PX + _SECOND_LINE_PX * max(lines - 1, deep > 1) + _FURTHER_PX * (deep - 1)
    return max(rows, _LANE_PX * (deep + 1))


def _layout(
    px: int, rows: dict[str, list[str]], deep: int, xlabel: str, key: str, xaxis: dict[str, Any]
) -> dict[str, Any]:
    """Lay rows out: names (left), lines of numbers (right), and ``deep`` lanes of marks in each."""
    column = px <= style.WIDTHS["column"]
    lines, lanes = max(map(len, rows.values())), _LANE_PX * (deep - 1)
    numbers_px = widest_px(chain.from_iterable(rows.values()), style.SMALL) + 8
    before: float = 0
    name_px: float = px - 20  # a column has no room for names beside the plot
    if not column:
        name_px = min(widest_px(rows, style.SMALL), _NAMES_PX)
        before = name_px + 8
    below = _wrap_evenly(xlabel, px - 20 - before - numbers_px, style.TEXT, lines=3)
    keys = _wrap_legend(key, px - 20)
    bottom = 26 + 12 * len(below) + 10 * len(keys)
    room = style.TALLEST_PX - bottom - 20

    def least(second: bool) -> float:
        """Give the height of a row with room for a name, of two lines or one, above its marks."""
        return (21 + 12 * second) / (1 - lanes / _row_height_px(deep, max(lines, 1 + second)))

    second = not column or least(True) * len(rows) <= room
    names = [wrap(name, name_px, style.SMALL, lines=1 + second) for name in rows]
    most = max(map(len, names))
    whole = row = float(_row_height_px(deep, max(lines, most)))
    middle = ((deep > 1) * _LIFT_PX + lanes / 2) / whole  # of the marks, above the end of their row
    ends = [middle - 0.5, len(rows) + middle - 0.5]
    if column:
        of_numbers = _LINE_PX * lines + _FURTHER_PX / 2
        row = max(min(row, room / len(rows)), least(most > 1), of_numbers)
        ends = [-10 / row, len(rows)]
    else:
        row = max(0.7 * _row_height_px(deep, lines), 12 * most + 6)
    texts, bands = list[dict[str, Any]](), list[dict[str, Any]]()
    for i, (name, numbers) in enumerate(zip(names, rows.values(), strict=True)):
        beside: dict[str, Any] = {"y": len(rows) - i - 1 + middle, "yref": "y", "align": "left"}
        above = beside | {"y": beside["y"] + lanes / 2 / whole, "yshift": 6}
        # A name stands in a gap of the grid as wide as the plot: a line that it alone broke would
        # look cut off.
        foot = above["y"] + 6 / row
        head = ends[1]
        if bands:
            head = foot + (12 * len(name) + 2) / row
        bands.append(
            _GAP | {"x0": xaxis["range"][0], "x1": xaxis["range"][1], "y0": foot, "y1": head}
        )
        corner, at = "left middle", beside
        if column:
            corner, at = "left bottom", above
        texts.append(
            style.text_note(style.join_lines(name), 0, anchor=corner, xshift=-before, **at)
        )
        texts.append(
            style.text_note(
                style.join_lines(numbers),
                1,
                anchor="left middle",
                xshift=8,
                font={"color": style.GREY},
                **beside,
            )
        )
    texts.append(
        style.text_note(
            style.join_lines(keys),
            0,
            0,
            "left bottom",
            align="left",
            xshift=-before,
            yshift=3 - bottom,
            font={"size": 8, "color": style.GREY},
        )
    )
    return style.layout(
        px,
        plot_px=row * len(rows) + 10 * column,
        left=10 + before,
        right=10 + numbers_px,
        bottom=bottom,
        annotations=texts,
        shapes=bands[: len(bands) * column],
        xaxis={"title": {"text": style.join_lines(below)}, **xaxis},
        yaxis={"visible": False, "range": ends},
    )


def _wrap_evenly(text: str, px: float, size: float, *, lines: int) -> list[str]:
    """Wrap a text so that its last line is not a single word."""
    done = wrap(text, px, size, lines=lines)
    if len(done) < 2:
        return done
    longest = widest_px(text.split(), size) + text_px(" ", size)
    return wrap(text, min(px, text_px(text, size) / len(done) + longest), size, lines=len(done))


def _wrap_legend(key: str, px: float) -> list[str]:
    """Break a key between its statements, and within one only where it is longer than a line."""
    lines = [""]
    for part in map(str.strip, _PART.findall(key)):
        if lines[-1] and text_px(f"{lines[-1]} {part}", 8) <= px:
            lines[-1] += f" {part}"
        else:
            lines += _wrap_evenly(part, px, 8, lines=3)
    return [line.rstrip(";,") for line in lines[1:]]


@style.said_where_empty
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
        ``series``, in the order to draw from the top. Where a row has one ``n`` and rows have
        different ones, its name says it. What the intervals are (``level``, ``unit``, ``units``)
        is said below.
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
    symbols, marks = style.series_symbols(frame, series), []
    form, span = "{:.0%}", (0.0, 1.0)
    if digits is not None:
        form = f"{{:.{digits}f}}"
        span = frame.select(pl.col("low").min(), pl.col("high").max()).row(0)
    per_row = (
        frame[rows].n_unique() > 1
        and not (frame.group_by(rows).agg(pl.col("n").n_unique())["n"] > 1).any()
    )
    of_rows = per_row and frame["n"].n_unique() > 1
    for head, part in style.rows_by_value(frame, rows):
        name = printable_line(head)
        if of_rows:
            name += f" (n = {part['n'][0]:,})"
        for row in part.iter_rows(named=True):
            i = list(symbols).index(row[series])
            look = {
                "tint": style.colour(i),
                "fill": style.colour(i),
                "symbol": symbols[row[series]],
            }
            marks.append(
                {
                    **row,
                    **look,
                    "name": name,
                    "x": row["mean"],
                    "numbers": form.format(row["mean"]).replace("-", "−"),
                    "series": row[series],
                }
            )
    counted = [
        f"{name} (n = {style.format_counts(part['n'])})"
        for name, part in style.rows_by_value(frame, series)
    ]
    keys = []
    if not of_rows:
        keys.append(style.shape_legend(counted))
    elif len(symbols) > 1:
        keys.append(style.shape_legend(symbols))
    if "level" in frame.columns:
        keys.append(f"bars: {describe_intervals(frame)}")
    key = "; ".join(keys)
    return marked_rows(
        marks,
        span=span,
        between=between,
        xlabel=measure,
        key=key,
        xaxis={"zeroline": False, "nticks": 6},
    )


@style.said_where_empty
def forest(frame: pl.DataFrame, *, measure: str = "recall_all@10") -> go.Figure:
    """Draw paired differences to a baseline with their intervals.

    A filled mark is significant after Holm's correction (none where ``p_holm`` is null: not tested
    here); blue is better than the baseline, vermilion worse, open and grey neither. What the
    intervals are, and whether they hold together, is said below.

    :param frame: a row a system: ``system``, ``difference``, ``low``, ``high``, ``p_holm``, ``n``
        and ``baseline`` (the baseline's name), in the order to draw from the top. The baseline's
        own row is left out. With ``measure``, a row a system and measure: each measure has a mark
        of its own shape.
    :param measure: what the differences are in; of several measures what they have in common, such
        as ``recall_all@k``.
    """
    style.check_columns(
        frame, ("system", "difference", "low", "high", "p_holm", "n", "baseline"), "forest"
    )
    frame = frame.drop_nulls("difference").filter(pl.col("system") != pl.col("baseline"))
    style.check_columns(frame, (), "forest (without the baseline's own row)")
    frame = style.shorten_names(frame, "system")
    if "measure" not in frame.columns:
        frame = frame.with_columns(measure=pl.lit(measure))
    symbols = style.series_symbols(frame, "measure")
    marks = [
        {
            **row,
            "name": row["system"],
            "series": row["measure"],
            "x": row["difference"],
            "numbers": _difference_text(row),
            "symbol": symbols[row["measure"]],
            **_verdict_colours(row),
        }
        for row in frame.to_dicts()
    ]
    baseline, counts = printable_line(frame["baseline"][0]), style.format_counts(frame["n"])
    xlabel = f"difference in {measure} to {baseline} (n = {counts})"
    key = f"filled: p < {ALPHA:g} after Holm's correction; {_describe_bars(frame)}"
    if len(symbols) > 1:
        key = f"{style.shape_legend(symbols)}; {key}"
    return marked_rows(marks, xlabel=xlabel, key=key)


@style.said_where_empty
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
    symbols, steps = style.series_symbols(frame, "group"), style.distinct_values(frame, "system")
    groups = list(symbols)
    marks = [
        {
            "name": printable_line(row["system"]),
            "series": row["group"],
            "x": row["mean"],
            "low": row["mean_low"],
            "high": row["mean_high"],
            "symbol": symbols[row["group"]],
            **_verdict_colours(row),
            "numbers": "  ".join(
                [f"{row['mean']:.3f}".lstrip("0"), _difference_text(row)]
            ).rstrip(),
        }
        for row in sorted(
            frame.to_dicts(),
            key=lambda row: (steps.index(row["system"]), groups.index(row["group"])),
        )
    ]
    about = [
        f"{group} (n = {rows['n'][0]:,})" for group, rows in style.rows_by_value(frame, "group")
    ]
    key = f"{style.shape_legend(about)}; right: mean, and gain on the step before; "
    key += f"filled: p < {ALPHA:g} against the step before, after Holm's correction"
    if "mean_level" in frame.columns:
        key += f"; bars: {describe_intervals(frame)}, each alone"
    if "level" in frame.columns:
        key += f"; of gains: {_describe_bars(frame).removeprefix('bars: ')}"
    return marked_rows(marks, xlabel=measure, key=key, xaxis={"zeroline": False})


def _describe_bars(frame: pl.DataFrame) -> str:
    """Say what the intervals of differences are, and whether they are as careful as corrected p."""
    said = f"bars: {describe_intervals(frame, 'difference')}"
    if "level" not in frame.columns or frame["p_holm"].count() < 2:
        return said
    levels = frame.drop_nulls(["p_holm", "level"])["level"].unique()
    # Intervals that miss 1 in 20 divided by the number of tests are all right together in 19 of 20.
    tests = [round(ALPHA / (1 - level)) for level in levels]
    if min(tests, default=1) < 2:
        return f"{said}, uncorrected"
    return f"{said}, corrected for {' and '.join(map(str, sorted(tests)))} tests"


def _verdict_colours(row: dict[str, Any]) -> dict[str, str]:
    """Give the colours of a difference: blue better, vermilion worse, grey and open neither."""
    if row["p_holm"] is None or row["difference"] is None or row["p_holm"] >= ALPHA:
        return {"tint": style.GREY, "fill": "white"}
    tint = style.PALETTE[1]
    if row["difference"] > 0:
        tint = style.PALETTE[0]
    return {"tint": tint, "fill": tint}


def _difference_text(row: dict[str, Any]) -> str:
    """Write a difference with its interval and p, as far as there are any."""
    if row["difference"] is None:
        return ""
    text = format_signed(row["difference"])
    if row["low"] is not None:
        text += f" [{format_signed(row['low'])}, {format_signed(row['high'])}]"
    if row["p_holm"] is not None:
        text += f" {format_p(row['p_holm'])}"
    return text
