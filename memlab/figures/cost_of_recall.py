"""Memories side by side: what complete recall costs in tokens and in time."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
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
_MOST_DECADES = 3
"""Of an axis of times that has room for the numbers of 2 and 5 in each."""
_SHARES_TITLE = "recall_all@10"
_LEFT_PX = 46
_RIGHT_PX = 18
_GAP_PX = 40
"""Between panels that stand beside each other."""
_LEAST_ROW_PX = 14
_WIDEST_NAME_PX = 130
_SHARE_NUMBER_PX = 26
"""Beside a row, for its share."""


@style.sentence_if_empty
def trade_off(table: pl.DataFrame) -> go.Figure:
    """Draw complete recall against the tokens given to a model, and against the time of one search.

    On the right each system's mark carries the interval of its share, whose level is said below;
    the dotted line joins those that no other system beats in both. A ranking that was only read has
    no time: where there is one, the right panel has a row a system in place of the axis of time,
    with its name and its share. A system of which nothing was measured is named below.

    :param table: :attr:`memlab.experiments.compare_systems.Comparison.systems`.

    >>> import polars as pl
    >>> from memlab.figures import cost_of_recall
    >>> row = {"system": "bm25", "n": 10, "recall_all@10": 0.5, "p50 ms": 2.0}
    >>> row |= {"recall_all@10_low": 0.237, "recall_all@10_high": 0.763}
    >>> row |= {"recall_all@200 tokens": 0.3, "recall_all@500 tokens": 0.4}
    >>> fig = cost_of_recall.trade_off(pl.DataFrame(row))
    >>> [trace.name for trace in fig.data if trace.showlegend]
    ['bm25']
    """
    columns = ("system", "n", "recall_all@10", "p50 ms", *_INTERVAL)
    style.check_columns(table, columns, "trade_off")
    unmeasured_names = table.filter(pl.col("recall_all@10").is_null())["system"].to_list()
    table = table.drop_nulls("recall_all@10")
    style.check_columns(table, columns, "trade_off (where something was measured)")
    table = style.shorten_names(table, "system")
    budgets: dict[int, str] = {}
    for column in table.columns:
        budget_match = _BUDGET.fullmatch(column)
        if budget_match:
            budgets[int(budget_match[1])] = column
    token_budgets = sorted(budgets)
    number_by_system = style.assign_series_numbers(table["system"])
    is_timed = table["p50 ms"].null_count() == 0
    system_traces = [
        style.marked_line(
            token_budgets,
            [system_row[budgets[token_budget]] for token_budget in token_budgets],
            system_row["system"],
            number_by_system[system_row["system"]],
            showlegend=is_timed,
            hovertemplate="%{x:,} tokens: %{y:.3f}",
            **style.panel_axes(0),
        )
        for system_row in table.iter_rows(named=True)
    ]
    legend_names = []
    if is_timed:
        system_traces += _draw_shares_by_time(table, number_by_system)
        # The names of the drawn lines, and what the dotted one is.
        legend_names = [trace.name for trace in system_traces if trace.showlegend]
    else:
        system_traces += _draw_share_rows(table, number_by_system)
    interval_text = describe_intervals_for_caption(table, "recall_all@10")
    share_columns = ["recall_all@10", _INTERVAL[1], *budgets.values()]
    share_axis = style.share_axis(
        table.select(pl.max_horizontal(share_columns).max()).item() or 1.0
    )
    count_text = f"n = {max(table['n'].to_list()):,}"
    share_head = f"<b>all evidence in the first ten turns</b> ({count_text})"
    token_head = f"<b>all evidence in so many tokens</b> ({count_text}"
    token_facet = {
        "xaxis": {
            "type": "log",
            "tickvals": token_budgets,
            "ticktext": [f"{token_budget:,}" for token_budget in token_budgets],
            "title": {"text": "tokens in the context (log scale)"},
        },
        "yaxis": {**share_axis, "title": {"text": "share of questions"}},
    }

    def layout_for(px: int) -> style.FigureLayout:
        is_beside = px > style.WIDTHS["column"]
        note_lines = _unmeasured_systems_note_lines(unmeasured_names, px - 20)
        axis_px = 36
        if is_timed:
            axis_px += 12
        bottom = axis_px + 12 * len(note_lines)
        legend_px = 0
        if legend_names:
            legend_px = style.legend_below_plot(legend_names, px)[1]
        panel_height: float = 190
        n_columns = 2
        share_title = ""
        if not is_beside:
            room_px = style.TALLEST_PX - 86 - bottom - legend_px
            panel_height = max(60, min(150, room_px / 2))
            n_columns = 1
            share_title = _SHARES_TITLE
        token_head_end = ")"
        if is_timed:
            right_facet = _search_time_panel(table, interval_text)
            right_facet["yaxis"] = {**share_axis, "title": {"text": share_title}}
        else:
            token_head_end = "; colours as below)"
            if is_beside:
                token_head_end = "; colours as at right)"
            panel_height = max(panel_height, _LEAST_ROW_PX * table.height)
            right_facet = _share_rows_panel(table, share_axis, interval_text, px)
        right_facet["head"] = share_head
        panel_layout = style.panel_grid_layout(
            px,
            [token_facet | {"head": token_head + token_head_end}, right_facet],
            columns=n_columns,
            high=panel_height,
            gap=(_GAP_PX, 58),
            head_px=18,
            left=_LEFT_PX,
            right=_RIGHT_PX,
            bottom=bottom,
            names=legend_names,
        )
        notes = [*panel_layout["annotations"]]
        if not is_timed:
            notes += _label_share_rows(table)
        if note_lines:
            notes.append(
                style.text_annotation(
                    style.join_lines(note_lines),
                    0,
                    0,
                    align="left",
                    xshift=10 - _LEFT_PX,
                    yshift=-axis_px,
                    font={"size": style.SMALL, "color": style.GREY},
                )
            )
        return panel_layout | {"annotations": notes}

    return style.make_figure(system_traces, layout_for)


def _search_time_panel(system_table: pl.DataFrame, interval_text: str) -> style.Panel:
    """Give the axis of the panel of times."""
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
    axis_lines = ["median time of a search, ms (log scale)", f"bars: {interval_text}"]
    return {
        "xaxis": {
            "type": "log",
            "range": [lowest_power, highest_power],
            "tickvals": ticks,
            "ticktext": [f"{tick:,g}" for tick in ticks],
            "title": {"text": style.join_lines(axis_lines)},
        },
    }


def _row_names_px(system_table: pl.DataFrame) -> float:
    """Give the room of the names beside the rows."""
    row_names = map(printable_line, system_table["system"])
    return min(_WIDEST_NAME_PX, widest_px(row_names, style.SMALL) + 1)


def _share_rows_panel(
    system_table: pl.DataFrame, share_axis: style.AxisLayout, interval_text: str, picture_px: int
) -> style.Panel:
    """Give the axes of the panel of rows, between their names and their shares.

    In a column it stands below, and its names begin where the numbers of the axis above do.
    """
    across_px = picture_px - _LEFT_PX - _RIGHT_PX
    panel_start_px = 0.0
    if picture_px > style.WIDTHS["column"]:
        panel_start_px = (across_px + _GAP_PX) / 2
    plot_start_px = panel_start_px + _row_names_px(system_table) + 6
    plot_end_px = across_px + _RIGHT_PX - 4 - _SHARE_NUMBER_PX
    return {
        "xaxis": {
            **share_axis,
            "domain": [plot_start_px / across_px, min(1.0, plot_end_px / across_px)],
            "title": {"text": f"{_SHARES_TITLE}; bars: {interval_text}"},
        },
        "yaxis": {"visible": False, "range": [-0.6, system_table.height - 0.4]},
    }


def _unmeasured_systems_note_lines(system_names: list[str], max_px: float) -> list[str]:
    """Say which systems are not drawn, and why."""
    if not system_names:
        return []
    shown_names = ", ".join(map(printable_line, system_names))
    return wrap(f"not drawn: {shown_names} (no {_SHARES_TITLE} was measured)", max_px, style.SMALL)


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
        share_text = f"{system_row['recall_all@10']:.3f}".removeprefix("0")
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
                showlegend=True,
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
