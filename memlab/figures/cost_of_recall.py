"""Memories side by side: what complete recall costs in tokens and in time."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures._text_measuring import cut_to_width, drawable_text, escape, printable_line
from memlab.interval_labels import describe_intervals

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
    needed = ("system", "n", "recall_all@10", "p50 ms", *_INTERVAL)
    style.check_columns(table, needed, "trade_off")
    table = table.drop_nulls("recall_all@10")
    style.check_columns(table, needed, "trade_off (where something was measured)")
    table = style.shorten_names(table, "system")
    budgets = {
        int(match[1]): match[0] for name in table.columns if (match := _BUDGET.fullmatch(name))
    }
    tokens, names = sorted(budgets), table["system"].to_list()
    traces = []
    for i, row in enumerate(table.iter_rows(named=True)):
        recall = [row[budgets[budget]] for budget in tokens]
        traces.append(
            style.marked_line(
                tokens,
                recall,
                row["system"],
                i,
                showlegend=True,
                hovertemplate="%{x:,} tokens: %{y:.3f}",
                **style.panel_axes(0),
            )
        )
    timed = table.with_row_index("i").drop_nulls(["p50 ms", "recall_all@10"])
    best = timed.sort("p50 ms", -pl.col("recall_all@10")).filter(
        pl.col("recall_all@10") > pl.col("recall_all@10").cum_max().shift(fill_value=-1)
    )
    if best.height > 1:
        traces.append(
            style.line(
                best["p50 ms"],
                best["recall_all@10"],
                "",
                dash="dot",
                width=1,
                hoverinfo="skip",
                showlegend=False,
                **style.panel_axes(1),
            )
        )
    for row in timed.iter_rows(named=True):
        share, tint = row["recall_all@10"], style.colour(row["i"])
        low, high = (row[end] for end in _INTERVAL)
        span = ""
        if low is not None:
            span = f" [{low:.3f}, {high:.3f}]"
        traces.append(
            go.Scatter(
                x=[row["p50 ms"]],
                y=[share],
                mode="markers",
                name=drawable_text(row["system"]),
                showlegend=False,
                marker={
                    "color": tint,
                    "size": 8,
                    "symbol": style.SYMBOLS[row["i"] % len(style.SYMBOLS)],
                },
                error_y=style.error_bar(share, low, high, color=tint),
                hovertemplate=f"%{{y:.3f}}{span}, %{{x:,.1f}} ms",
                **style.panel_axes(1),
            )
        )
    n, untimed = (
        max(table["n"].to_list()),
        table.filter(pl.col("p50 ms").is_null())["system"].to_list(),
    )
    timeless = ""
    if len(untimed) > _NAMED_WITHOUT_TIME:
        timeless = f"(no time of {len(untimed)} systems)"
    elif untimed:
        timeless = f"(no time: {', '.join(map(printable_line, untimed))})"
    ends = np.log10(timed["p50 ms"].to_numpy()) if timed.height else np.array([0.0, 3.0])
    lowest, highest = math.floor(ends.min() - 0.15), math.ceil(ends.max() + 0.15)
    drawn = describe_intervals(table, "recall_all@10")
    under = f"median time of a search, ms; bars: {drawn}"
    decades = [10.0**power for power in range(lowest, highest + 1)]

    shares = ["recall_all@10", _INTERVAL[1], *budgets.values()]
    top = min(1.0, _ROOM_ABOVE * (table.select(pl.max_horizontal(shares).max()).item() or 1.0))

    def layout_for(px: int) -> dict[str, Any]:
        beside = px > style.WIDTHS["column"]
        high = (
            190
            if beside
            else max(60, min(150, (style.TALLEST_PX - 122 - style.legend_below(names, px)[1]) / 2))
        )
        recall = {"range": [0, top], "nticks": 7}
        shown_timeless = escape(cut_to_width(timeless, 150, style.SMALL))
        facets = [
            {
                "head": f"<b>in so many tokens</b> (n = {n:,})",
                "xaxis": {
                    "type": "log",
                    "tickvals": tokens,
                    "ticktext": [f"{t:,}" for t in tokens],
                    "title": {"text": "tokens in the context"},
                },
                "yaxis": {**recall, "title": {"text": "all evidence there"}},
            },
            {
                "head": f"<b>in the first ten turns</b> {shown_timeless}",
                "xaxis": {
                    "type": "log",
                    "range": [lowest, highest],
                    "tickvals": decades,
                    "ticktext": [f"{t:,g}" for t in decades],
                    "title": {"text": under},
                },
                "yaxis": {**recall, "title": {"text": "" if beside else "recall_all@10"}},
            },
        ]
        return style.panels_layout(
            px,
            facets,
            columns=1 + beside,
            high=high,
            gap=(40, 58),
            head_px=18,
            left=46,
            right=18,
            names=names,
        )

    return style.make_figure(traces, layout_for)
