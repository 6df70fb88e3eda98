"""A measure over one parameter in small panels, or over two as a heat map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go
import polars as pl
import polars.selectors as cs

from memlab.errors import DataError
from memlab.figures import style
from memlab.figures.text_and_glyphs import (
    cut_to_width,
    drawable_text,
    escape,
    printable_line,
    text_px,
    widest_px,
    wrap,
)
from memlab.interval_and_p_labels import ALPHA, describe_intervals_for_caption
from memlab.system_names import shorten_names_distinctly

_HEADER_PX = 16
_SECOND_LINE_PX = 12
_FOOT_PX = 38
_GAP_PX = 16
_NOTE_PX = 16
"""Below all else, for the group of questions."""
_LEFT_PX = 42
_RIGHT_PX = 12
_ROOM_BESIDE = 0.07
"""Of the span of a parameter, as the room on either side of its values."""
_LABEL_GAP_PX = 4
_ROOM_ABOVE = 1.08
"""Of the highest bar, as the end of the axis."""
_LINES = ("parameter", "value", "mean", "baseline", "system")
_CELLS = ("parameter", "setting", "parameter_2", "setting_2", "mean", "baseline")
_BELOW = "#EFB58F"
_EQUAL = "#FFFFFF"
_ABOVE = "#8CBBDC"
"""Of cells below the base, at it and above it: pale, so that black text stands on all of them."""
_LEAST_SPAN = 0.01
"""Of the colours: smaller differences stay pale."""
_BAR_PX = 62
"""Room for a bar of colours."""
_CELL_PX = (38, 30)
"""The height of a cell with an interval, and of one without."""


@style.sentence_if_empty
def sweep(
    frame: pl.DataFrame, *, measure: str = "recall_all@10", reference: str = "plain top-k"
) -> go.Figure:
    """Draw a measure over a parameter, a panel a system, or over two parameters as a heat map.

    The plain ranking is a grey line to beat, with a band for its interval. All panels have the same
    y axis. Where there is ``p_holm``, a mark is filled where p is below .05 after Holm's
    correction, and open elsewhere.

    Of two parameters each cell has the mean, with its interval where there is room, on blue where
    it is above the plain ranking and on orange where it is below; ▲ and ▼ mark what is
    significant. The plain ranking and its interval stand below.

    :param frame: what :func:`memlab.experiments.sweep` gives, or ``system`` (of a panel),
        ``parameter`` (its name, on the x axis), ``value`` (a number; where one is null, the texts
        of ``setting`` are drawn at equal distances), ``mean`` and ``baseline`` (what the plain
        ranking reaches); bars are ``mean_low`` to ``mean_high``, or else ``low`` to ``high``.
        ``baseline_low`` and ``baseline_high`` may be there; ``n``, ``level`` and ``unit`` are said
        in the legend, one ``group`` of questions below.
    :param reference: what the baseline is called.
    :raises DataError: when there are several systems with two parameters each: draw one at a time.

    >>> import polars as pl
    >>> from memlab.figures import sweep_panels
    >>> ends = {"low": [0.0, 0.1], "high": [0.2, 0.3]}
    >>> measured = {"mean": [0.1, 0.2], "baseline": [0.1, 0.1], **ends}
    >>> rows = pl.DataFrame({"parameter": "λ", "value": [0.5, 1.0], "system": "mmr", **measured})
    >>> [trace.name for trace in sweep_panels.sweep(rows).data]
    ['plain top-k', 'with the parameter']
    """
    if "parameter_2" in frame.columns and frame["parameter_2"].count():
        return _draw_heat_map(frame, measure, reference)
    end_columns = _names_of_interval_end_columns(frame)
    style.check_columns(frame, (*_LINES, *end_columns), "sweep")
    frame = frame.drop_nulls("mean")
    style.check_columns(frame, _LINES, "sweep (where something was measured)")
    has_band = "baseline_low" in frame.columns and frame["baseline_low"].count() > 0
    legend_names = [_marks_legend_name(frame), reference]
    if has_band:
        legend_names[1] += f"; band: its {_interval_with_level(frame)}"
    rows_by_system = style.rows_by_value(frame, "system")
    panel_traces = list[Any]()
    panel_heads = list[str]()
    panel_axes = list[_ParameterAxis]()
    for panel_number, (system_name, system_rows) in enumerate(rows_by_system):
        panel_rows = system_rows.sort("value", maintain_order=True)
        parameter_axis = _parameter_axis(panel_rows)
        x_places = parameter_axis.places
        own_options: dict[str, Any] = {
            "showlegend": panel_number == 0,
            **style.panel_axes(panel_number),
        }
        if has_band:
            panel_traces.append(
                _draw_baseline_band(x_places, panel_rows, reference, style.panel_axes(panel_number))
            )
        baseline_look: dict[str, Any] = {
            "width": 1.2,
            "dash": "dash",
            "legendgroup": reference,
            "legendrank": 1001,
        }
        baseline_label = style.legend_name(legend_names[1])
        panel_traces.append(
            style.line(
                x_places, panel_rows["baseline"], baseline_label, **baseline_look, **own_options
            )
        )
        error_bars = style.error_bar(
            panel_rows["mean"],
            panel_rows[end_columns[0]],
            panel_rows[end_columns[1]],
            thickness=0.8,
            width=2,
        )
        line_look = {
            "error_y": error_bars,
            "legendgroup": legend_names[0],
            "line": {"dash": "solid"},
            "marker": _panel_marker_look(panel_rows),
        }
        if not parameter_axis.is_ordered:
            line_look["mode"] = "markers"
        panel_traces.append(
            style.marked_line(
                x_places, panel_rows["mean"], legend_names[0], 0, **line_look, **own_options
            )
        )
        panel_heads.append(printable_line(system_name))
        panel_axes.append(parameter_axis)
    y_range = _y_axis_range(frame, end_columns)

    def layout_for(px: int) -> style.FigureLayout:
        return _lay_out_panels(px, panel_heads, panel_axes, legend_names, measure, y_range)

    panels_figure = style.make_figure(panel_traces, layout_for)
    style.write_note_below(panels_figure, _question_group_note_or_empty(frame))
    return panels_figure


def _question_group_note_or_empty(sweep_rows: pl.DataFrame) -> str:
    """Say over which questions a sweep was measured, where the frame says one group."""
    if "group" not in sweep_rows.columns or sweep_rows["group"].n_unique() != 1:
        return ""
    return f"questions: {printable_line(sweep_rows['group'][0])}"


def _names_of_interval_end_columns(sweep_rows: pl.DataFrame) -> tuple[str, str]:
    """Name the columns of the interval of a mean; ``low`` may be of the difference."""
    if {"mean_low", "mean_high"} <= {*sweep_rows.columns}:
        return "mean_low", "mean_high"
    return "low", "high"


class _ParameterAxis(NamedTuple):
    """The axis of a parameter, with a tick at each value of the sweep.

    :param title: the name of the parameter.
    :param places: of the values.
    :param labels: of the values.
    :param ends: of the axis.
    :param is_ordered: values are numbers; texts have no order that a line could follow.
    """

    title: str
    places: list[float]
    labels: list[str]
    ends: tuple[float, float]
    is_ordered: bool

    def layout(self, axis_px: float) -> style.AxisLayout:
        """Give the axis at a width in pixels, where numbers that have no room are left out."""
        labels = self.labels
        if self.is_ordered:
            labels = _labels_with_room(self.places, labels, axis_px / (self.ends[1] - self.ends[0]))
        return {
            "title": {"text": drawable_text(self.title)},
            "tickvals": self.places,
            "ticktext": list(map(drawable_text, labels)),
            "range": [*self.ends],
        }


def _parameter_axis(panel_rows: pl.DataFrame) -> _ParameterAxis:
    """Give the axis of the parameter of a panel, whose rows are in the order of its values."""
    parameter_name = panel_rows["parameter"][0]
    if not panel_rows["value"].null_count():
        places = panel_rows["value"].cast(pl.Float64).to_list()
        room = _ROOM_BESIDE * (places[-1] - places[0]) or 1.0
        labels = [f"{place:,.10g}" for place in places]
        ends = (places[0] - room, places[-1] + room)
        return _ParameterAxis(parameter_name, places, labels, ends, is_ordered=True)
    if "setting" not in panel_rows.columns:
        raise DataError("sweep has a value that is null; name each in the column setting")
    places = np.arange(panel_rows.height, dtype=float).tolist()
    labels = list(map(printable_line, panel_rows["setting"]))
    ends = (-0.4, panel_rows.height - 0.6)
    return _ParameterAxis(parameter_name, places, labels, ends, is_ordered=False)


def _labels_with_room(
    places: Sequence[float], labels: Sequence[str], px_per_unit: float
) -> list[str]:
    """Blank the labels that would touch the one before, or the last, which stays."""
    half_widths = [text_px(label, style.SMALL) / 2 + _LABEL_GAP_PX / 2 for label in labels]
    last_start = places[-1] * px_per_unit - half_widths[-1]
    free_from = -math.inf
    shown_labels = list[str]()
    for place, label, half_width in zip(places[:-1], labels[:-1], half_widths[:-1], strict=True):
        start = place * px_per_unit - half_width
        end = start + 2 * half_width
        if start < free_from or end > last_start:
            shown_labels.append("")
            continue
        shown_labels.append(label)
        free_from = end
    return [*shown_labels, labels[-1]]


def _draw_baseline_band(
    x_places: Sequence[float], panel_rows: pl.DataFrame, baseline_name: str, axes: dict[str, Any]
) -> go.Scatter:
    """Draw the interval of the plain ranking behind its line."""
    band_low = panel_rows["baseline_low"].to_list()
    band_high = panel_rows["baseline_high"].to_list()
    return style.line(
        [*x_places, *reversed(x_places)],
        [*band_high, *reversed(band_low)],
        style.legend_name(baseline_name),
        line={"width": 0},
        fill="toself",
        fillcolor=style.rgba_colour(style.GREY, 0.15),
        hoverinfo="skip",
        legendgroup=baseline_name,
        showlegend=False,
        **axes,
    )


def _y_axis_range(sweep_rows: pl.DataFrame, end_columns: tuple[str, str]) -> list[float]:
    """Give the ends of the axis: 0, and beyond every bar, but not far beyond 1."""
    drawn_columns = sweep_rows.select(
        cs.by_name("mean", "baseline", "baseline_high", *end_columns, require_all=False)
    )
    highest_value = (
        drawn_columns.select(pl.max_horizontal(pl.all()).max()).item() * _ROOM_ABOVE or 1.0
    )
    lowest_value = drawn_columns.select(pl.min_horizontal(pl.all()).min()).item() * _ROOM_ABOVE
    if highest_value < 1.2:
        highest_value = min(highest_value, 1.03)
    return [min(lowest_value, 0.0), highest_value]


def _lay_out_panels(
    picture_px: int,
    system_names: Sequence[str],
    x_axes: Sequence[_ParameterAxis],
    legend_names: Sequence[str],
    measure: str,
    y_range: list[float],
) -> style.FigureLayout:
    """Lay panels out in two or three columns, each under the name of its system."""
    is_column = picture_px <= style.WIDTHS["column"]
    n_columns = 3
    if is_column and len(system_names) <= 6:
        n_columns = 2
    n_columns = min(len(system_names), n_columns)
    n_rows = math.ceil(len(system_names) / n_columns)
    panel_width = (picture_px - _LEFT_PX - _RIGHT_PX - _GAP_PX * (n_columns - 1)) / n_columns
    short_heads = shorten_names_distinctly(system_names, width=int(panel_width / 4))
    head_lines = [
        wrap(short_heads[panel_head], panel_width, style.SMALL, bold=True)
        for panel_head in system_names
    ]
    header_px = _HEADER_PX
    if max(map(len, head_lines)) > 1:
        header_px += _SECOND_LINE_PX
    panel_height = 105
    if n_rows == 1:
        panel_height = 190
    if is_column:
        room_px = style.TALLEST_PX - 10 - _NOTE_PX
        room_px -= style.legend_below_plot(legend_names, picture_px)[1]
        panel_height = max(48, min(panel_height, room_px // n_rows - header_px - _FOOT_PX))
    measure_label = escape(cut_to_width(measure, panel_height + header_px, style.TEXT))
    panel_facets = []
    for panel_number, x_axis in enumerate(x_axes):
        is_first_column = panel_number % n_columns == 0
        axis_title = ""
        if is_first_column:
            axis_title = measure_label
        y_axis = {
            "range": y_range,
            "showticklabels": is_first_column,
            "nticks": 6,
            "title": {"text": axis_title},
        }
        panel_head = f"<b>{style.join_lines(head_lines[panel_number])}</b>"
        panel_facets.append(
            {"head": panel_head, "xaxis": x_axis.layout(panel_width), "yaxis": y_axis}
        )
    return style.panel_grid_layout(
        picture_px,
        panel_facets,
        columns=n_columns,
        high=panel_height,
        gap=(_GAP_PX, header_px + _FOOT_PX),
        names=legend_names,
        head_px=header_px,
        bottom=_FOOT_PX,
    )


def _marks_legend_name(sweep_rows: pl.DataFrame) -> str:
    """Name the marks in the legend, with what their bars and their filling say."""
    mark_texts = ["with the parameter"]
    if "n" in sweep_rows.columns:
        mark_texts[0] += f" (n = {style.format_count_range(sweep_rows['n'])})"
    if "p_holm" in sweep_rows.columns:
        filling_text = "no mark has"
        if (sweep_rows["p_holm"] < ALPHA).any():
            filling_text = "filled:"
        mark_texts.append(f"{filling_text} p < {ALPHA:g}, corrected")
    if "level" in sweep_rows.columns:
        mark_texts.append(f"bars: {describe_intervals_for_caption(sweep_rows)}")
    return "; ".join(mark_texts)


def _interval_with_level(sweep_rows: pl.DataFrame) -> str:
    """Name the interval of the plain ranking, with its level where the frame says one of means."""
    levels = sweep_rows.select(cs.by_name("mean_level", require_all=False)).unique()
    if levels.shape != (1, 1) or levels.item() is None:
        return "interval"
    return f"{100 * levels.item():.3g} % interval"


def _panel_marker_look(panel_rows: pl.DataFrame) -> style.MarkerLook:
    """Give the look of a panel's marks: open where the difference is not significant."""
    line_colour = style.colour(0)
    mark_fills = [line_colour] * panel_rows.height
    if "p_holm" in panel_rows.columns:
        significant_rows = (panel_rows["p_holm"] < ALPHA).fill_null(False)
        mark_fills = [
            line_colour if is_significant else "white" for is_significant in significant_rows
        ]
    return {
        "symbol": style.SYMBOLS[0],
        "size": 5,
        "color": mark_fills,
        "line": {"color": line_colour, "width": 1},
    }


def _draw_heat_map(sweep_rows: pl.DataFrame, measure: str, baseline_name: str) -> go.Figure:
    """Draw a measure over two parameters of one system, a cell a combination."""
    style.check_columns(sweep_rows, _CELLS, "sweep")
    sweep_rows = sweep_rows.drop_nulls("mean")
    style.check_columns(sweep_rows, _CELLS, "sweep (where something was measured)")
    distinct_columns = cs.by_name("system", "parameter", "parameter_2", "group", require_all=False)
    if (
        sweep_rows.select(distinct_columns).n_unique() > 1
        or sweep_rows.select(pl.struct("setting", "setting_2").is_duplicated().any()).item()
    ):
        raise DataError(
            "sweep draws two parameters of one system, over one group of questions, at a time; "
            "filter the frame"
        )
    first_settings = style.distinct_values(sweep_rows, "setting")
    second_settings = style.distinct_values(sweep_rows, "setting_2")
    column_numbers = list(map(first_settings.index, sweep_rows["setting"]))
    row_numbers = list(map(second_settings.index, sweep_rows["setting_2"]))
    baseline_value = sweep_rows["baseline"][0]
    colour_span = max(_LEAST_SPAN, (sweep_rows["mean"] - baseline_value).abs().max())
    colour_axis = {
        "colorscale": [[0, _BELOW], [0.5, _EQUAL], [1, _ABOVE]],
        "cmin": baseline_value - colour_span,
        "cmax": baseline_value + colour_span,
    }
    # plotly writes a heat map into an SVG as pixels; bars stay lines and surfaces.
    cell_bars = go.Bar(
        x=column_numbers,
        base=(np.array(row_numbers) - 0.5).tolist(),
        y=[1] * len(row_numbers),
        width=1,
        marker={
            "color": sweep_rows["mean"].to_list(),
            "coloraxis": "coloraxis",
            "line": {"color": "white", "width": 1},
        },
        text=list(map(_format_measure, sweep_rows["mean"])),
        textposition="none",
        hoverinfo="text",
        showlegend=False,
        name=drawable_text(measure),
    )
    has_level = "level" in sweep_rows.columns or "mean_level" in sweep_rows.columns

    def layout_for(px: int) -> style.FigureLayout:
        row_labels = [
            cut_to_width(shown_text, px / 4, style.SMALL) for shown_text in second_settings
        ]
        left_px = 28 + round(widest_px(row_labels, style.SMALL))
        cell_px = (px - left_px - _RIGHT_PX) / len(first_settings)
        cell_texts = _cell_texts(sweep_rows, cell_px)
        has_means = "." in cell_texts[0]
        has_intervals = "<br>" in cell_texts[0]
        key_text = _describe_cells_and_baseline(sweep_rows, measure, baseline_name)
        if has_intervals and has_level:
            key_text += f"; in brackets: {describe_intervals_for_caption(sweep_rows)}"
        key_lines = wrap(key_text, px - 20, style.SMALL, lines=4)
        cell_notes = [
            style.text_annotation(
                shown_text, column_number, row_number, "center middle", xref="x", yref="y"
            )
            for shown_text, column_number, row_number in zip(
                cell_texts, column_numbers, row_numbers, strict=True
            )
        ]
        key_note = style.text_annotation(
            style.join_lines(key_lines),
            0,
            0,
            "left top",
            align="left",
            xshift=10 - left_px,
            yshift=-36,
        )
        right_px = _BAR_PX
        row_px = _CELL_PX[1]
        if has_means:
            right_px = _RIGHT_PX
        if has_intervals:
            row_px = _CELL_PX[0]
        column_labels = [
            cut_to_width(shown_text, px / 4, style.SMALL) for shown_text in first_settings
        ]
        across_px = (px - left_px - right_px) / len(first_settings)
        colour_bar = {
            "thickness": 10,
            "x": 1.02,
            "tickfont": {"size": style.SMALL},
            "tickformat": ".2f",
        }
        return style.layout(
            px,
            plot_px=row_px * len(second_settings),
            left=left_px,
            right=right_px,
            bottom=44 + 12 * len(key_lines),
            annotations=[*cell_notes, key_note],
            barmode="overlay",
            coloraxis={**colour_axis, "showscale": not has_means, "colorbar": colour_bar},
            xaxis=_heat_map_axis(sweep_rows["parameter"][0], column_labels, across_px),
            yaxis=_heat_map_axis(sweep_rows["parameter_2"][0], row_labels, math.inf),
        )

    return style.make_figure([cell_bars], layout_for)


def _heat_map_axis(parameter: str, value_labels: Sequence[str], cell_px: float) -> style.AxisLayout:
    """Give the axis of a parameter, with as many of its values as have room."""
    widest_label = widest_px(value_labels, style.SMALL) + 6
    label_step = max(1, math.ceil(widest_label / cell_px))
    return {
        "title": {"text": drawable_text(parameter)},
        "tickvals": list(range(0, len(value_labels), label_step)),
        "ticktext": list(map(escape, value_labels[::label_step])),
        "range": [-0.5, len(value_labels) - 0.5],
        "tickangle": 0,
        "showgrid": False,
        "ticks": "",
    }


def _cell_texts(sweep_rows: pl.DataFrame, cell_px: float) -> list[str]:
    """Write what has room in each cell: mean and interval, mean, or significance."""
    end_columns = _names_of_interval_end_columns(sweep_rows)
    cell_marks = list[str]()
    mean_texts = list[str]()
    interval_texts = list[str]()
    for cell_row in sweep_rows.iter_rows(named=True):
        cell_marks.append(_significance_mark_or_empty(cell_row))
        mean_texts.append(f"{cell_marks[-1]} {_format_measure(cell_row['mean'])}".strip())
        interval_texts.append(_format_measure_interval(cell_row, end_columns))
    if widest_px(mean_texts, style.SMALL) > cell_px - 4:
        return cell_marks
    if widest_px(interval_texts, 8) > cell_px - 6:
        return mean_texts
    cell_pairs = zip(mean_texts, interval_texts, strict=True)
    return [
        f'{mean_text}<br><span style="font-size:8px">{interval_text}</span>'
        for mean_text, interval_text in cell_pairs
    ]


def _significance_mark_or_empty(cell_row: dict[str, Any]) -> str:
    """Mark what is significantly above or below the plain ranking."""
    corrected_p = cell_row.get("p_holm")
    if corrected_p is None or corrected_p >= ALPHA:
        return ""
    if cell_row["mean"] > cell_row["baseline"]:
        return "▲"
    return "▼"


def _format_measure_interval(cell_row: dict[str, Any], end_columns: tuple[str, str]) -> str:
    low_end, high_end = map(cell_row.get, end_columns)
    if low_end is None or high_end is None:
        return ""
    return f"[{_format_measure(low_end)}, {_format_measure(high_end)}]"


def _format_measure(value: float) -> str:
    """Write a value as a figure does, without a nought before the point."""
    return f"{value:.3f}".removeprefix("0")


def _describe_cells_and_baseline(sweep_rows: pl.DataFrame, measure: str, baseline_name: str) -> str:
    """Say what the cells hold, and what the plain ranking reaches."""
    first_row = sweep_rows.row(0, named=True)
    cells_text = measure
    if "group" in first_row:
        cells_text += f", {first_row['group']}"
    if "n" in first_row:
        cells_text += f" (n = {style.format_count_range(sweep_rows['n'])})"
    baseline_text = f"{baseline_name}: {_format_measure(first_row['baseline'])}"
    interval_text = _format_measure_interval(first_row, ("baseline_low", "baseline_high"))
    description = [
        cells_text,
        f"{baseline_text} {interval_text}".rstrip() + ", blue above, orange below",
    ]
    if "p_holm" in sweep_rows.columns:
        description.append(f"▲/▼: p < {ALPHA:g}, corrected")
    return "; ".join(description)
