"""Selection strategies: paired differences, and where the top of a ranking lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from memlab.evaluate.significance import wilson
from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._rows import marked_rows, verdict
from memlab.figures._text import clean, p_text, signed


def forest(frame: pl.DataFrame, *, measure: str = "recall_all@10", alpha: float = 0.05, title: str = "") -> go.Figure:
    """Draw paired differences to a baseline with their intervals.

    A filled mark is significant after Holm's correction (none where ``p_holm`` is null: not tested here); blue is
    better than the baseline, vermilion worse, grey neither.

    :param frame: a row a system: ``system``, ``difference``, ``low``, ``high``, ``p_holm``, ``n`` and ``baseline``
        (the baseline's name), in the order to draw from the top. The baseline's own row is left out. With ``measure``,
        a row a system and measure: each measure has a mark of its own shape.
    :param measure: what the differences are in; of several measures what they have in common, such as
        ``recall_all@k``.
    """
    style.need(frame, ("system", "difference", "low", "high", "p_holm", "n", "baseline"), "forest")
    frame = frame.drop_nulls("difference").filter(pl.col("system") != pl.col("baseline"))
    style.need(frame, (), "forest (without the baseline's own row)")
    several = "measure" in frame.columns and frame["measure"].n_unique() > 1
    measures = style.series(frame, "measure") if several else [measure]
    marks = []
    for row in frame.to_dicts():
        numbers = f"{signed(row['difference'])} [{signed(row['low'])}, {signed(row['high'])}]"
        numbers += f" {p_text(row['p_holm'])}" if row["p_holm"] is not None else ""
        marks.append({**row, "name": row["system"], "x": row["difference"], "numbers": numbers,
                      "symbol": style.SYMBOLS[measures.index(row["measure"]) if several else 0],
                      **verdict(row["difference"], row["p_holm"], alpha)})  # fmt: skip
    counts = sorted(frame["n"])
    n = "–".join(dict.fromkeys(f"{count:,}" for count in (counts[0], counts[-1])))
    xlabel = f"difference in {measure} to {clean(frame['baseline'][0])} (n = {n})"
    key = f"filled: p < {alpha:g} after Holm's correction"
    if several:
        key = f"{style.key(measures)}; {key}"
    return marked_rows(marks, xlabel=xlabel, key=key, title=title)


def spans(frame: pl.DataFrame, *, title: str = "") -> go.Figure:
    """Draw how many questions have their evidence in one, two, three … clusters, beside what chance would give.

    :param frame: ``clusters`` (a number or a text), ``count`` (questions), and ``expected`` (the count under the null
        model; optional, with the ends ``expected_low``, ``expected_high`` of its distribution), a row each, in the
        order to draw.
    """
    style.need(frame, ("clusters", "count"), "spans")
    x, traces, top = [clean(v) for v in frame["clusters"]], list[Any](), 0.0
    null = "clusters permuted" if "expected_low" in frame.columns else "a random set of the same size"
    kinds = {"count": ("observed", style.colour(0), style.INK), "expected": (null, style.NOISE, style.GREY)}
    for column, (name, tint, ink) in kinds.items():
        if column in frame.columns:
            y, ends = frame[column], [frame[end] for end in (f"{column}_low", f"{column}_high") if end in frame.columns]
            bar = style.interval(y.cast(pl.Float64), *ends, color=ink, thickness=1, width=3) if ends else None
            texts = None if ends else [f"{v:,.0f}" for v in y]
            traces.append(go.Bar(x=x, y=y.to_list(), name=name, marker={"color": tint}, text=texts, error_y=bar,
                                 textposition="outside", textfont={"size": style.SMALL, "color": ink},
                                 cliponaxis=False))  # fmt: skip
            top = max(top, *y, *(ends[1] if ends else ()))
    return style.plot(
        traces, title=title, names=[t.name for t in traces] if len(traces) > 1 else [], plot_px=180,
        xaxis={"type": "category", "title": {"text": "clusters that one answer's evidence spans"}, "showgrid": False},
        yaxis={"title": {"text": "questions"}, "tickformat": ",", "range": [0, top * 1.14 or 1]},
    )  # fmt: skip


def concentration(frame: pl.DataFrame, *, k: int = 10, title: str = "") -> go.Figure:
    """Draw how much of the first k falls into one cluster, as the share of questions at or above each amount.

    Read it at .5: the height of a line is the share of questions where one cluster holds at least half of the first k.
    Bands are 95 % Wilson intervals, and of a null model the middle 95 % of its draws.

    :param frame: ``largest_share`` (of the k, in the cluster that holds most of them), a row a question; ``system``
        where several are compared; ``draw`` where a null model has several (null elsewhere).
    """
    style.need(frame, ("largest_share",), "concentration")
    missing = {"system": "ranking", "draw": None}
    rows = frame.with_columns(pl.lit(v).alias(c) for c, v in missing.items() if c not in frame.columns)
    steps = rows["largest_share"].drop_nulls().unique().to_numpy()
    grid, names, traces = np.unique([0.0, *steps, *np.clip(steps + 1e-6, 0, 1), 1.0]), list[str](), list[Any]()
    for i, (system, of_system) in enumerate(style.parts(rows, "system")):
        draws = of_system.drop_nulls("largest_share").partition_by("draw")
        above = np.array([(part["largest_share"].to_numpy()[:, None] >= grid - 1e-9).mean(axis=0) for part in draws])
        n = draws[0].height
        names.append(f"{clean(system)} (n = {n:,})" if len(draws) == 1 else clean(system))
        ends = wilson(above[0] * n, np.full(len(grid), n))
        low, high = ends if len(draws) == 1 else np.quantile(above, (0.025, 0.975), axis=0)
        look: dict[str, Any] = {"width": 1.6, "dash": ("solid", "dash", "dot")[i % 3], "line": {"simplify": False}}
        traces += [style.band(grid, low, high, style.faded(style.colour(i), 0.2)),
                   style.line(grid, above.mean(axis=0), style.named(names[-1]), style.colour(i), **look)]  # fmt: skip
    return style.plot(
        traces, title=title, names=names if len(names) > 1 else [], plot_px=180,
        xaxis={"title": {"text": f"share of the first {k} in one cluster, at least"}, "range": [0, 1.01], "dtick": 0.2},
        yaxis={"title": {"text": "share of questions"}, "range": [0, 1.02]},
    )  # fmt: skip
