"""Intervals in rows: means of several series, paired differences to a baseline, and the steps of an ablation."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures._rows import marked_rows
from memlab.figures._text import format_p, format_signed, printable_line

_ALPHA = 0.05


def mean_intervals(
    frame: pl.DataFrame, *, rows: str = "kind", series: str = "form", measure: str = "recall_all@10",
    digits: int | None = None, between: str = " · ",
) -> go.Figure:  # fmt: skip
    """Draw a value with its interval for each row and series, the numbers of a row on its right.

    :param frame: ``n``, ``mean``, ``low``, ``high`` and the columns named by ``rows`` and ``series``, in the order to
        draw from the top. Where a row has one ``n`` and rows have different ones, its name says it.
    :param series: each of its values has a colour and a shape.
    :param measure: what the values are, under the axis.
    :param digits: decimals of the numbers; shares are written as percent, on an axis from 0 to 1, where not given.
    :param between: what stands between the numbers of a row; an arrow where the series follow each other.

    >>> import polars as pl
    >>> from memlab.figures import intervals
    >>> row = {"kind": "pronoun", "form": "as asked", "n": 9, "mean": 0.5, "low": 0.3, "high": 0.7}
    >>> len(intervals.mean_intervals(pl.DataFrame([row])).data)
    1
    """
    style.check_columns(frame, (rows, series, "n", "mean", "low", "high"), "means")
    names, marks = style.distinct_values(frame, series), []
    write = "{:.0%}".format if digits is None else f"{{:.{digits}f}}".format
    per_row = frame[rows].n_unique() > 1 and not (frame.group_by(rows).agg(pl.col("n").n_unique())["n"] > 1).any()
    of_rows = per_row and frame["n"].n_unique() > 1
    for head, part in style.rows_by_value(frame, rows):
        name = f"{printable_line(head)} (n = {part['n'][0]:,})" if of_rows else printable_line(head)
        for row in part.iter_rows(named=True):
            i = names.index(row[series])
            look = {"tint": style.colour(i), "fill": style.colour(i), "symbol": style.SYMBOLS[i % len(style.SYMBOLS)]}
            marks.append({**row, **look, "name": name, "x": row["mean"], "numbers": write(row["mean"]),
                          "series": row[series]})  # fmt: skip
    counted = [f"{name} (n = {style.format_counts(part['n'])})" for name, part in style.rows_by_value(frame, series)]
    span = (0.0, 1.0) if digits is None else frame.select(pl.col("low").min(), pl.col("high").max()).row(0)
    key = style.shape_legend(names if of_rows else counted) if len(names) > 1 or not of_rows else ""
    return marked_rows(marks, span=span, between=between, xlabel=measure, key=key,
                       xaxis={"zeroline": False, "nticks": 6})  # fmt: skip


def forest(frame: pl.DataFrame, *, measure: str = "recall_all@10") -> go.Figure:
    """Draw paired differences to a baseline with their intervals.

    A filled mark is significant after Holm's correction (none where ``p_holm`` is null: not tested here); blue is
    better than the baseline, vermilion worse, grey neither.

    :param frame: a row a system: ``system``, ``difference``, ``low``, ``high``, ``p_holm``, ``n`` and ``baseline``
        (the baseline's name), in the order to draw from the top. The baseline's own row is left out. With ``measure``,
        a row a system and measure: each measure has a mark of its own shape.
    :param measure: what the differences are in; of several measures what they have in common, such as
        ``recall_all@k``.
    """
    style.check_columns(frame, ("system", "difference", "low", "high", "p_holm", "n", "baseline"), "forest")
    frame = frame.drop_nulls("difference").filter(pl.col("system") != pl.col("baseline"))
    style.check_columns(frame, (), "forest (without the baseline's own row)")
    frame = frame if "measure" in frame.columns else frame.with_columns(measure=pl.lit(measure))
    measures = style.distinct_values(frame, "measure")
    marks = [
        {**row, "name": row["system"], "series": row["measure"], "x": row["difference"],
        "numbers": _difference_text(row),
         "symbol": style.SYMBOLS[measures.index(row["measure"])], **_verdict_colours(row)}
        for row in frame.to_dicts()
    ]  # fmt: skip
    xlabel = (
        f"difference in {measure} to {printable_line(frame['baseline'][0])} (n = {style.format_counts(frame['n'])})"
    )
    key = f"{style.shape_legend(measures)}; " * (len(measures) > 1) + f"filled: p < {_ALPHA:g} after Holm's correction"
    return marked_rows(marks, xlabel=xlabel, key=key)


def ablation(frame: pl.DataFrame, *, measure: str = "recall_all@10") -> go.Figure:
    """Draw a measure step by step, each with what it gains on the step before, in each group of questions.

    A mark is the mean of a step with its interval; each group has a mark of its own shape. On the right stand the mean
    and the gain with the paired interval and p. Filled: significant after Holm's correction; blue better, vermilion
    worse, grey neither.

    :param frame: a row a step and group, in the order to draw from the top: ``group``, ``system``, ``n``, ``mean``,
        ``mean_low``, ``mean_high``, ``difference``, ``low``, ``high`` and ``p_holm`` (null in the first row), as
        :func:`memlab.evaluate.compare` gives them; where there is ``ms``, milliseconds for one question.

    >>> import polars as pl
    >>> from memlab.figures import intervals
    >>> step = {"group": ["all"], "system": ["bm25"], "n": [10], "mean": [0.5], "mean_low": [0.3], "mean_high": [0.7]}
    >>> test = dict.fromkeys(("difference", "low", "high", "p_holm"), [None])
    >>> len(intervals.ablation(pl.DataFrame({**step, **test})).data)
    1
    """
    columns = ("group", "system", "n", "mean", "mean_low", "mean_high", "difference", "low", "high", "p_holm")
    style.check_columns(frame, columns, "ablation")
    frame = frame.with_columns(pl.col("mean_low", "mean_high").fill_null(pl.col("mean")))
    groups, steps = style.distinct_values(frame, "group"), style.distinct_values(frame, "system")
    marks = [
        {"name": printable_line(row["system"]) + _milliseconds_text(row.get("ms")), "series": row["group"],
         "x": row["mean"], "low": row["mean_low"], "high": row["mean_high"],
         "symbol": style.SYMBOLS[groups.index(row["group"])], **_verdict_colours(row),
         "numbers": "  ".join([f"{row['mean']:.3f}".lstrip("0"), _difference_text(row)]).rstrip()}
        for row in sorted(frame.to_dicts(), key=lambda row: (steps.index(row["system"]), groups.index(row["group"])))
    ]  # fmt: skip
    about = [f"{group} (n = {rows['n'][0]:,})" for group, rows in style.rows_by_value(frame, "group")]
    key = f"{style.shape_legend(about)}; right: mean, and gain on the step before; "
    key += "ms: median time of one question; " * ("ms" in frame.columns)
    key += f"filled: p < {_ALPHA:g} against the step before, after Holm's correction"
    return marked_rows(marks, xlabel=measure, key=key, xaxis={"zeroline": False})


def _verdict_colours(row: dict[str, Any]) -> dict[str, str]:
    """Give the colours of a paired difference: blue better, vermilion worse; grey and open where it is not sure."""
    if row["p_holm"] is None or row["difference"] is None or row["p_holm"] >= _ALPHA:
        return {"tint": style.GREY, "fill": "white"}
    tint = style.PALETTE[0] if row["difference"] > 0 else style.PALETTE[1]
    return {"tint": tint, "fill": tint}


def _difference_text(row: dict[str, Any]) -> str:
    """Write a difference with its interval and p, as far as there are any."""
    if row["difference"] is None:
        return ""
    span = "" if row["low"] is None else f" [{format_signed(row['low'])}, {format_signed(row['high'])}]"
    return f"{format_signed(row['difference'])}{span}" + (
        "" if row["p_holm"] is None else f" {format_p(row['p_holm'])}"
    )


def _milliseconds_text(value: float | None) -> str:
    return "" if value is None else f", {value:,.1f} ms" if value < 10 else f", {value:,.0f} ms"
