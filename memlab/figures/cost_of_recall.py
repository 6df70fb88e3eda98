"""Memories side by side: what complete recall costs in tokens and in time."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures.text_and_glyphs import cut_to_width, drawable_text, escape, printable_line
from memlab.interval_and_p_labels import describe_intervals_for_caption

_BUDGET = re.compile(r"recall_all@(\d+) tokens")
_INTERVAL = ("recall_all@10_low", "recall_all@10_high")
_ROOM_ABOVE = 1.08
"""Of the highest mark, as the end of both axes."""
_NAMED_WITHOUT_TIME = 2  # systems; of more there is no place for the names


@style.said_where_empty
def trade_off(table: pl.DataFrame) -> go.Figure:
    """Draw complete recall against the tokens given to a model, and against the time of one search.

    On the right each system's mark carries the interval of its share, whose level is said below;
    the dotted line joins those that no other system beats in both. A ranking that was only read has
    no time, and stands on the left alone.

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
    table = table.drop_nulls("recall_all@10")
    style.check_columns(table, columns, "trade_off (where something was measured)")
    table = style.shorten_names(table, "system")
    budgets: dict[int, str] = {}
    for column in table.columns:
        budget_match = _BUDGET.fullmatch(column)
        if budget_match:
            budgets[int(budget_match[1])] = column
    token_budgets = sorted(budgets)
    system_names = table["system"].to_list()
    system_traces = []
    for series_number, system_row in enumerate(table.iter_rows(named=True)):
        budget_shares = [system_row[budgets[token_budget]] for token_budget in token_budgets]
        system_traces.append(
            style.marked_line(
                token_budgets,
                budget_shares,
                system_row["system"],
                series_number,
                showlegend=True,
                hovertemplate="%{x:,} tokens: %{y:.3f}",
                **style.panel_axes(0),
            )
        )
    timed_systems = table.with_row_index("i").drop_nulls(["p50 ms", "recall_all@10"])
    system_traces += _timed_traces(timed_systems)
    n_questions = max(table["n"].to_list())
    untimed_names = table.filter(pl.col("p50 ms").is_null())["system"].to_list()
    timeless_note = _timeless_note(untimed_names)
    if timed_systems.height:
        log_times = np.log10(timed_systems["p50 ms"].to_numpy())
    else:
        log_times = np.array([0.0, 3.0])
    lowest_power = math.floor(log_times.min() - 0.15)
    highest_power = math.ceil(log_times.max() + 0.15)
    interval_text = describe_intervals_for_caption(table, "recall_all@10")
    time_title = f"median time of a search, ms; bars: {interval_text}"
    decades = [10.0**decade_power for decade_power in range(lowest_power, highest_power + 1)]

    share_columns = ["recall_all@10", _INTERVAL[1], *budgets.values()]
    highest_share = min(
        1.0, _ROOM_ABOVE * (table.select(pl.max_horizontal(share_columns).max()).item() or 1.0)
    )

    def layout_for(px: int) -> dict[str, Any]:
        is_beside = px > style.WIDTHS["column"]
        panel_height: float = 190
        n_columns = 2
        share_title = ""
        if not is_beside:
            legend_px = style.legend_below(system_names, px)[1]
            panel_height = max(60, min(150, (style.TALLEST_PX - 122 - legend_px) / 2))
            n_columns = 1
            share_title = "recall_all@10"
        budget_shares = {"range": [0, highest_share], "nticks": 7}
        shown_timeless = escape(cut_to_width(timeless_note, 150, style.SMALL))
        panel_facets = [
            {
                "head": f"<b>in so many tokens</b> (n = {n_questions:,})",
                "xaxis": {
                    "type": "log",
                    "tickvals": token_budgets,
                    "ticktext": [f"{tick_value:,}" for tick_value in token_budgets],
                    "title": {"text": "tokens in the context"},
                },
                "yaxis": {**budget_shares, "title": {"text": "all evidence there"}},
            },
            {
                "head": f"<b>in the first ten turns</b> {shown_timeless}",
                "xaxis": {
                    "type": "log",
                    "range": [lowest_power, highest_power],
                    "tickvals": decades,
                    "ticktext": [f"{tick_value:,g}" for tick_value in decades],
                    "title": {"text": time_title},
                },
                "yaxis": {**budget_shares, "title": {"text": share_title}},
            },
        ]
        return style.panels_layout(
            px,
            panel_facets,
            columns=n_columns,
            high=panel_height,
            gap=(40, 58),
            head_px=18,
            left=46,
            right=18,
            names=system_names,
        )

    return style.make_figure(system_traces, layout_for)


def _timed_traces(timed_systems: pl.DataFrame) -> list[Any]:
    """Draw systems by the time of a search, and a line through those that no other beats.

    :param timed_systems: rows of the table with a time, and ``i``, their numbers in it.
    """
    timed_traces = []
    best_systems = timed_systems.sort("p50 ms", -pl.col("recall_all@10")).filter(
        pl.col("recall_all@10") > pl.col("recall_all@10").cum_max().shift(fill_value=-1)
    )
    if best_systems.height > 1:
        timed_traces.append(
            style.line(
                best_systems["p50 ms"],
                best_systems["recall_all@10"],
                "",
                dash="dot",
                width=1,
                hoverinfo="skip",
                showlegend=False,
                **style.panel_axes(1),
            )
        )
    for system_row in timed_systems.iter_rows(named=True):
        system_share = system_row["recall_all@10"]
        system_colour = style.colour(system_row["i"])
        low_end, high_end = (system_row[end_column] for end_column in _INTERVAL)
        interval_label = ""
        if low_end is not None:
            interval_label = f" [{low_end:.3f}, {high_end:.3f}]"
        timed_traces.append(
            go.Scatter(
                x=[system_row["p50 ms"]],
                y=[system_share],
                mode="markers",
                name=drawable_text(system_row["system"]),
                showlegend=False,
                marker={
                    "color": system_colour,
                    "size": 8,
                    "symbol": style.SYMBOLS[system_row["i"] % len(style.SYMBOLS)],
                },
                error_y=style.error_bar(system_share, low_end, high_end, color=system_colour),
                hovertemplate=f"%{{y:.3f}}{interval_label}, %{{x:,.1f}} ms",
                **style.panel_axes(1),
            )
        )
    return timed_traces


def _timeless_note(names: list[str]) -> str:
    """Name the systems that have no time, or count them where they are many."""
    if len(names) > _NAMED_WITHOUT_TIME:
        return f"(no time of {len(names)} systems)"
    if names:
        return f"(no time: {', '.join(map(printable_line, names))})"
    return ""
