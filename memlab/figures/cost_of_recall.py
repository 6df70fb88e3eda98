"""Memories side by side: what complete recall costs in tokens and in time."""

from __future__ import annotations

import math
import re
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
    widest_px,
    wrap,
)
from memlab.interval_and_p_labels import describe_intervals_for_caption

_BUDGET = re.compile(r"recall_all@(\d+) tokens")
_INTERVAL = ("recall_all@10_low", "recall_all@10_high")
_FRONTIER = "no other is faster and finds as much"
_SIDE_BY_SIDE = "marks of one number of tokens stand side by side"
_MOST_DECADES = 3
"""Of an axis of times that has room for the numbers of 2 and 5 in each."""
_MEASURE = "recall_all@10"
_SHARE_TITLE = "share of questions"
_LEFT_PX = 46
_RIGHT_PX = 18
_GAP_PX = 50
"""Between panels that stand beside each other."""
_LEAST_ROW_PX = 14
_LINE_END_PX = 11
"""Between the ends of lines, from text to text."""
_END_GAP_PX = 4
_ROOM_RIGHT_OF_ENDS_PX = 14
"""Of the margin, in a column, or of the gap, into which the ends of lines may reach."""
_SHIFT_STEP = 0.03
"""From mark to mark of a budget, in powers of ten: about the width of a mark."""
_MOST_OF_A_STEP = 0.7
"""Of the distance of two budgets, that the marks of one take."""
_ROOM_BESIDE = 0.05
"""On either side of the axis of tokens, in powers of ten."""
_WIDEST_NAME_PX = 130
_SHARE_NUMBER_PX = 26
"""Beside a row, for its share."""


@style.sentence_if_empty
def trade_off(table: pl.DataFrame) -> go.Figure:
    """Draw complete recall against the tokens given to a model, and against the time of one search.

    On the left the marks of a budget stand side by side, so that none hides another, and each line
    ends at its share of the largest budget; there are no intervals. On the right each system's mark
    carries the interval of its share, whose level is said below; the dotted line joins those that
    no other system beats in both. A ranking that was only read has no time: where there is one, the
    right panel has a row a system in place of the axis of time, the best at the top, with its name
    and its share, and a line below says which were read. A system of which nothing was measured is
    named below.

    :param table: :attr:`memlab.experiments.compare_systems.Comparison.systems`.

    >>> import polars as pl
    >>> from memlab.figures import cost_of_recall
    >>> row = {"system": "bm25", "n": 10, "recall_all@10": 0.5, "p50 ms": 2.0}
    >>> row |= {"recall_all@10_low": 0.237, "recall_all@10_high": 0.763}
    >>> row |= {"recall_all@200 tokens": 0.3, "recall_all@500 tokens": 0.4}
    >>> fig = cost_of_recall.trade_off(pl.DataFrame(row))
    >>> [trace.name for trace in fig.data]
    ['bm25', 'bm25']
    """
    columns = ("system", "n", "recall_all@10", "p50 ms", *_INTERVAL)
    style.check_columns(table, columns, "trade_off")
    unmeasured_names = table.filter(pl.col("recall_all@10").is_null())["system"].to_list()
    table = table.drop_nulls("recall_all@10")
    style.check_columns(table, columns, "trade_off (where something was measured)")
    table = style.shorten_names(table, "system")
    number_by_system = style.assign_series_numbers(table["system"])
    is_timed = table["p50 ms"].null_count() == 0
    notes = [_unmeasured_systems_note_or_empty(unmeasured_names), _SIDE_BY_SIDE]
    if is_timed:
        right_traces = _draw_shares_by_time(table, number_by_system)
        if any(trace.name == _FRONTIER for trace in right_traces):
            notes.append(f"dotted line: {_FRONTIER}")
    else:
        table = table.sort("recall_all@10", descending=True, maintain_order=True)
        right_traces = _draw_share_rows(table, number_by_system)
        notes.append(_read_systems_note_or_empty(table))
    budgets = _budget_columns(table)
    share_columns = ["recall_all@10", _INTERVAL[1], *budgets.values()]
    share_axis = style.share_axis(
        table.select(pl.max_horizontal(share_columns).max()).item() or 1.0
    )
    line_ends = _line_ends(table, budgets, number_by_system, is_named=is_timed)
    parts = _TradeOffParts(
        table, budgets, share_axis, line_ends, "; ".join(filter(None, notes)), is_timed
    )
    return style.make_figure(
        [*_draw_shares_by_tokens(table, budgets, number_by_system), *right_traces],
        lambda px: _lay_out_trade_off(px, parts),
    )


class _LineEnd(NamedTuple):
    """What stands beside the end of a line of the left panel.

    :param text: its share, where the panel names systems behind shape and name.
    :param share: at the largest budget.
    :param colour: of the line, dark enough for text.
    """

    text: str
    share: float
    colour: str


class _TradeOffParts(NamedTuple):
    """What a trade-off shows, whatever its width.

    :param table: of the systems that are drawn.
    :param budgets: the column of each number of tokens.
    :param share_axis: the axis of shares that both panels have.
    :param line_ends: of each line of the left panel.
    :param note: what stands below.
    :param is_timed: the right panel has an axis of time.
    """

    table: pl.DataFrame
    budgets: dict[int, str]
    share_axis: style.AxisLayout
    line_ends: list[_LineEnd]
    note: str
    is_timed: bool


def _budget_columns(system_table: pl.DataFrame) -> dict[int, str]:
    """Give the column of each number of tokens, the smallest first."""
    budgets: dict[int, str] = {}
    for column in system_table.columns:
        budget_match = _BUDGET.fullmatch(column)
        if budget_match:
            budgets[int(budget_match[1])] = column
    return dict(sorted(budgets.items()))


def _shifts_in_decades(n_systems: int, token_budgets: list[int]) -> np.ndarray:
    """Give by how much the marks of each system are shifted on the axis of tokens."""
    shift_step = _SHIFT_STEP
    if len(token_budgets) > 1:
        nearest_budgets = np.diff(np.log10(token_budgets)).min()
        shift_step = min(shift_step, _MOST_OF_A_STEP * nearest_budgets / n_systems)
    return (np.arange(n_systems) - (n_systems - 1) / 2) * shift_step


def _draw_shares_by_tokens(
    system_table: pl.DataFrame, budgets: dict[int, str], number_by_system: dict[str, int]
) -> list[go.Scatter]:
    """Draw the line of each system over budgets of tokens, its marks beside those of the others."""
    system_traces = []
    shifts = _shifts_in_decades(system_table.height, list(budgets))
    for system_row, shift in zip(system_table.iter_rows(named=True), shifts, strict=True):
        shares = [system_row[column] for column in budgets.values()]
        system_traces.append(
            style.marked_line(
                [token_budget * 10**shift for token_budget in budgets],
                shares,
                system_row["system"],
                number_by_system[system_row["system"]],
                showlegend=False,
                text=[f"{token_budget:,} tokens" for token_budget in budgets],
                hovertemplate="%{text}: %{y:.3f}",
                **style.panel_axes(0),
            )
        )
    return system_traces


def _line_ends(
    system_table: pl.DataFrame,
    budgets: dict[int, str],
    number_by_system: dict[str, int],
    *,
    is_named: bool,
) -> list[_LineEnd]:
    """Give what stands beside the end of each line that was measured at the largest budget."""
    line_ends = []
    for system_row in system_table.iter_rows(named=True):
        last_shares = [system_row[column] for column in [*budgets.values()][-1:]]
        series_number = number_by_system[system_row["system"]]
        for share in last_shares:
            text = _share_text(share)
            if is_named:
                shape = style.shape_of(style.symbol(series_number))
                room_px = _WIDEST_NAME_PX - _SHARE_NUMBER_PX
                name = cut_to_width(system_row["system"], room_px, style.SMALL)
                text = f"{shape} {name} {text}".rstrip()
            text_colour = style.darken_colour(style.colour(series_number), 0.15)
            line_ends.append(_LineEnd(text, share or 0.0, text_colour))
    return line_ends


def _share_text(share: float | None) -> str:
    """Write a share without a nought before the point; nothing where it was not measured."""
    if share is None:
        return ""
    return f"{share:.3f}".removeprefix("0")


def _lay_out_trade_off(px: int, parts: _TradeOffParts) -> style.FigureLayout:
    """Lay the two panels out beside each other, in a column under each other."""
    is_beside = px > style.WIDTHS["column"]
    axis_px = 36
    if parts.is_timed:
        axis_px += 12
    note_px = 0
    if parts.note:
        note_px = 4 + 12 * len(wrap(parts.note, px - 20, style.SMALL, lines=4))
    panel_height: float = 190
    n_columns = 2
    if not is_beside:
        panel_height = max(60, (style.TALLEST_PX - 86 - axis_px - note_px) / 2)
        n_columns = 1
    panel_height = max(panel_height, _LINE_END_PX * len(parts.line_ends))
    colours_text = ""
    if parts.is_timed:
        right_facet = _search_time_panel(parts)
    else:
        panel_height = max(panel_height, _LEAST_ROW_PX * parts.table.height)
        right_facet = _share_rows_panel(parts, px)
        colours_text = "; colours as below"
        if is_beside:
            colours_text = "; colours as at right"
    count_text = f"n = {max(parts.table['n'].to_list()):,}"
    token_head = f"<b>all evidence in so many tokens</b> ({count_text}{colours_text})"
    right_facet["head"] = f"<b>all evidence in the first ten turns</b> ({count_text})"
    panel_layout = style.panel_grid_layout(
        px,
        [_token_panel(parts, px) | {"head": token_head}, right_facet],
        columns=n_columns,
        high=panel_height,
        gap=(_GAP_PX, 58),
        head_px=18,
        left=_LEFT_PX,
        right=_RIGHT_PX,
        bottom=axis_px,
    )
    notes = [*panel_layout["annotations"], *_label_line_ends(parts, panel_height)]
    if not parts.is_timed:
        notes += _label_share_rows(parts.table)
    return style.add_note_to_layout(
        panel_layout | {"annotations": notes}, parts.note, picture_px=px
    )


def _token_panel(parts: _TradeOffParts, picture_px: int) -> style.Panel:
    """Give the axes of the panel of tokens, which leaves room for what its lines end at."""
    budgets = list(parts.budgets)
    across_px = picture_px - _LEFT_PX - _RIGHT_PX
    panel_px: float = across_px
    if picture_px > style.WIDTHS["column"]:
        panel_px = (across_px - _GAP_PX) / 2
    ends_px = widest_px([line_end.text for line_end in parts.line_ends], style.SMALL)
    plot_px = panel_px + _ROOM_RIGHT_OF_ENDS_PX - ends_px - _END_GAP_PX
    ends = np.log10([budgets[0], budgets[-1]]) if budgets else np.zeros(2)
    beside = _shifts_in_decades(parts.table.height, budgets).max(initial=0) + _ROOM_BESIDE
    return {
        "xaxis": {
            "type": "log",
            "domain": [0, min(plot_px, panel_px) / across_px],
            "range": [ends[0] - beside, ends[1] + beside],
            "tickvals": budgets,
            "ticktext": [f"{token_budget:,}" for token_budget in budgets],
            "title": {"text": "tokens in the context (log scale); no intervals"},
        },
        "yaxis": {**parts.share_axis, "title": {"text": _SHARE_TITLE}},
    }


def _label_line_ends(parts: _TradeOffParts, panel_height: float) -> list[style.Annotation]:
    """Write beside the end of each line what it ends at."""
    axis_top = parts.share_axis["range"][1]
    wanted_places = [line_end.share / axis_top * panel_height for line_end in parts.line_ends]
    places = spread_labels(wanted_places, _LINE_END_PX, low=4, high=panel_height)
    return [
        style.text_annotation(
            escape(line_end.text),
            1,
            place / panel_height,
            "left middle",
            xref="x domain",
            yref="y domain",
            xshift=_END_GAP_PX,
            font={"size": style.SMALL, "color": line_end.colour},
        )
        for line_end, place in zip(parts.line_ends, places, strict=True)
    ]


def _search_time_panel(parts: _TradeOffParts) -> style.Panel:
    """Give the axes of the panel of times."""
    system_table = parts.table
    log_times = np.log10(system_table["p50 ms"].to_numpy())
    lowest_power = math.floor(log_times.min() - 0.15)
    highest_power = math.ceil(log_times.max() + 0.15)
    tick_steps: tuple[int, ...] = (1, 2, 5)
    if highest_power - lowest_power > _MOST_DECADES:
        tick_steps = (1,)
    ticks = []
    for decade_power in range(lowest_power, highest_power):
        ticks += [tick_step * 10.0**decade_power for tick_step in tick_steps]
    ticks.append(10.0**highest_power)
    axis_lines = [
        "median time of a search, ms (log scale)",
        f"bars: {_interval_text(system_table)}",
    ]
    return {
        "xaxis": {
            "type": "log",
            "range": [lowest_power, highest_power],
            "tickvals": ticks,
            "ticktext": [f"{tick:,g}" for tick in ticks],
            "title": {"text": style.join_lines(axis_lines)},
        },
        "yaxis": {**parts.share_axis, "title": {"text": _SHARE_TITLE}},
    }


def _interval_text(system_table: pl.DataFrame) -> str:
    return describe_intervals_for_caption(system_table, _MEASURE)


def _row_names_px(system_table: pl.DataFrame) -> float:
    """Give the room of the names beside the rows."""
    row_names = map(printable_line, system_table["system"])
    return min(_WIDEST_NAME_PX, widest_px(row_names, style.SMALL) + 1)


def _share_rows_panel(parts: _TradeOffParts, picture_px: int) -> style.Panel:
    """Give the axes of the panel of rows, between their names and their shares.

    In a column it stands below, and its names begin where the numbers of the axis above do.
    """
    system_table = parts.table
    across_px = picture_px - _LEFT_PX - _RIGHT_PX
    panel_start_px = 0.0
    if picture_px > style.WIDTHS["column"]:
        panel_start_px = (across_px + _GAP_PX) / 2
    plot_start_px = panel_start_px + _row_names_px(system_table) + 6
    plot_end_px = across_px + _RIGHT_PX - 4 - _SHARE_NUMBER_PX
    return {
        "xaxis": {
            **parts.share_axis,
            "domain": [plot_start_px / across_px, min(1.0, plot_end_px / across_px)],
            "title": {"text": f"{_MEASURE}; bars: {_interval_text(system_table)}"},
        },
        "yaxis": {"visible": False, "range": [-0.6, system_table.height - 0.4]},
    }


def _unmeasured_systems_note_or_empty(system_names: list[str]) -> str:
    """Say which systems are not drawn, and why."""
    if not system_names:
        return ""
    shown_names = ", ".join(map(printable_line, system_names))
    return f"not drawn: {shown_names} (no {_MEASURE} was measured)"


def _read_systems_note_or_empty(system_table: pl.DataFrame) -> str:
    """Say which systems were run, and so have times, and that the others were only read."""
    run_names = system_table.drop_nulls("p50 ms")["system"]
    if run_names.is_empty():
        return "all were recorded, without times of a search"
    shown_names = ", ".join(map(printable_line, run_names))
    return f"run here: {shown_names}; the others were recorded, without times of a search"


def _draw_share_rows(
    system_table: pl.DataFrame, number_by_system: dict[str, int]
) -> list[go.Scatter]:
    """Draw the share of each system in a row of its own, the first at the top."""
    row_traces = []
    for row_number, system_row in enumerate(system_table.iter_rows(named=True)):
        mark_trace = _draw_share_mark(system_row, number_by_system[system_row["system"]], "error_x")
        share = system_row["recall_all@10"]
        mark_trace.update(x=[share], y=[system_table.height - 1 - row_number])
        row_traces.append(mark_trace)
    return row_traces


def _label_share_rows(system_table: pl.DataFrame) -> list[style.Annotation]:
    """Write the name of each system on the left of its row, on the right its share."""
    names_px = _row_names_px(system_table)
    row_labels = []
    for row_number, system_row in enumerate(system_table.iter_rows(named=True)):
        row_name = cut_to_width(system_row["system"], names_px, style.SMALL)
        share_text = _share_text(system_row["recall_all@10"])
        for label_text, label_share, shift_px in (
            (row_name, 0, -names_px - 6),
            (share_text, 1, 6),
        ):
            row_labels.append(
                style.text_annotation(
                    escape(label_text),
                    label_share,
                    system_table.height - 1 - row_number,
                    "left middle",
                    xref="x2 domain",
                    yref="y2",
                    xshift=shift_px,
                    font={"size": style.SMALL},
                )
            )
    return row_labels


def _draw_shares_by_time(
    system_table: pl.DataFrame, number_by_system: dict[str, int]
) -> list[go.Scatter]:
    """Draw systems by the time of a search, and a line through those that no other beats."""
    timed_traces = []
    best_systems = system_table.sort("p50 ms", -pl.col("recall_all@10")).filter(
        pl.col("recall_all@10") > pl.col("recall_all@10").cum_max().shift(fill_value=-1)
    )
    if best_systems.height > 1:
        timed_traces.append(
            style.line(
                best_systems["p50 ms"],
                best_systems["recall_all@10"],
                _FRONTIER,
                dash="dot",
                width=1,
                hoverinfo="skip",
                showlegend=False,
                **style.panel_axes(1),
            )
        )
    for system_row in system_table.iter_rows(named=True):
        mark_trace = _draw_share_mark(system_row, number_by_system[system_row["system"]], "error_y")
        mark_trace.update(x=[system_row["p50 ms"]], y=[system_row["recall_all@10"]])
        timed_traces.append(mark_trace)
    return timed_traces


def _draw_share_mark(
    system_row: dict[str, Any], series_number: int, error_bar_name: str
) -> go.Scatter:
    """Draw the mark of a system's share in ten turns, which has no place yet, with its interval.

    :param error_bar_name: ``error_x`` or ``error_y``: along which axis the interval lies.
    """
    system_share = system_row["recall_all@10"]
    low_end, high_end = (system_row[end_column] for end_column in _INTERVAL)
    system_colour = style.colour(series_number)
    hover_text = f"{drawable_text(system_row['system'])}: {system_share:.3f}"
    if low_end is not None:
        hover_text += f" [{low_end:.3f}, {high_end:.3f}]"
    if system_row["p50 ms"] is not None:
        hover_text += f", {system_row['p50 ms']:,.1f} ms"
    mark_look = {
        "color": system_colour,
        "size": 8,
        "symbol": style.symbol(series_number),
    }
    interval_bar = style.error_bar(system_share, low_end, high_end, color=system_colour)
    return go.Scatter(
        mode="markers",
        name=drawable_text(system_row["system"]),
        showlegend=False,
        marker=mark_look,
        text=[hover_text],
        hoverinfo="text",
        **{error_bar_name: interval_bar},
        **style.panel_axes(1),
    )
