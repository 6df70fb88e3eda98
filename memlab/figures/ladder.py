"""A ladder of pipelines, what weak first results look like, and why evidence is missed."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.evaluate.printing import number
from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._rows import marked_rows, verdict
from memlab.figures._text import clean, p_text, plain, signed, text_px

_CAUSES_AXIS = (
    "share of missed pieces (bars; right: how many), of lost<br>answers that miss pieces for this cause only (marks)"
)


def climb(frame: pl.DataFrame, *, measure: str = "recall_all@10", alpha: float = 0.05, title: str = "") -> go.Figure:
    """Draw how a measure climbs from step to step, in each group of questions.

    A mark is the mean of a step with its interval; each group has a mark of its own shape. On the right stand the mean
    and what it gains on the step before, with the paired interval and p. Filled: significant after Holm's correction;
    blue better, vermilion worse, grey neither.

    :param frame: a row a step and group, in the order to draw from the top: ``group``, ``system``, ``n``, ``mean``,
        ``mean_low``, ``mean_high``, ``difference``, ``low``, ``high``, ``p_holm`` (null in the first row), ``chance``
        and ``ceiling`` (the same for a group), and ``ms`` (milliseconds for one question).

    >>> import polars as pl
    >>> from memlab.figures import ladder
    >>> step = {"group": ["all"], "system": ["bm25"], "n": [10], "mean": [0.5], "mean_low": [0.3], "mean_high": [0.7]}
    >>> test = dict.fromkeys(("difference", "low", "high", "p_holm"), [None])
    >>> len(ladder.climb(pl.DataFrame({**step, **test, "chance": [0.1], "ceiling": [1.0], "ms": [2.0]})).data)
    1
    """
    columns = ("group", "system", "n", "mean", "mean_low", "mean_high", "difference", "low", "high", "p_holm", "chance")
    style.need(frame, (*columns, "ceiling", "ms"), "climb")
    frame = frame.with_columns(pl.col("mean_low", "mean_high").fill_null(pl.col("mean")))
    groups, steps = style.series(frame, "group"), style.series(frame, "system")
    marks = []
    for row in sorted(frame.to_dicts(), key=lambda row: (steps.index(row["system"]), groups.index(row["group"]))):
        mean = f"{row['mean']:.3f}".lstrip("0")
        marks.append({
            "name": f"{clean(row['system'])}, {_ms(row['ms'])}".removesuffix(", "), "series": row["group"],
            "x": row["mean"], "low": row["mean_low"], "high": row["mean_high"],
            "symbol": style.SYMBOLS[groups.index(row["group"])], "numbers": f"{mean}  {_gain(row)}".rstrip(),
            "hover": "{mean:.3f} [{mean_low:.3f}, {mean_high:.3f}]".format(**row),
            **verdict(row["difference"], row["p_holm"], alpha),
        })  # fmt: skip
    about = [f"{group} ({_about(rows.row(0, named=True))})" for group, rows in style.parts(frame, "group")]
    key = f"{style.key(about)}; right: mean, and gain on the step before; ms: median time of one question; "
    key += f"filled: p < {alpha:g} against the step before, after Holm's correction"
    return marked_rows(marks, xlabel=measure, key=key, title=title, xaxis={"zeroline": False})


def _about(row: dict[str, Any]) -> str:
    about = f"n = {row['n']:,}, chance {number(row['chance'])}"
    return about if row["ceiling"] > 0.9995 else f"{about}, ceiling {number(row['ceiling'])}"


def _gain(row: dict[str, Any]) -> str:
    if row["difference"] is None:
        return ""
    span = "" if row["low"] is None else f" [{signed(row['low'])}, {signed(row['high'])}]"
    return f"{signed(row['difference'])}{span} {p_text(row['p_holm'])}"


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f} ms" if value < 10 else f"{value:,.0f} ms"


def causes(frame: pl.DataFrame, *, title: str = "") -> go.Figure:
    """Draw what share of the missed evidence each cause has, and what share of lost answers it alone holds back.

    Numbers at the right are the pieces missed. Causes that took nothing are left out.

    :param frame: a row a cause and group, in the order to draw from the top: ``group``, ``cause``, ``n``, ``share`` and
        ``alone``, as :func:`memlab.evaluate.by_cause` gives them.
    """
    style.need(frame, ("group", "cause", "n", "share", "alone"), "causes")
    if frame["n"].sum():
        frame = frame.filter(pl.col("n").sum().over("cause") > 0)
    groups, names = style.parts(frame, "group"), style.series(frame, "cause")
    step = 0.8 / len(groups)
    traces, counts = list[Any](), list[dict[str, Any]]()
    for i, (group, rows) in enumerate(groups):
        at = [len(names) - 1 - names.index(cause) + 0.4 - step * (i + 0.5) for cause in rows["cause"]]
        tint, edge = style.colour(i), {"color": "white", "width": 0.8}
        marker = {"color": tint, "symbol": style.SYMBOLS[(2, 1)[i % 2]], "size": 6, "line": edge}
        traces += [
            go.Bar(x=rows["share"].to_list(), y=at, width=step * 0.9, orientation="h", name=plain(f"{group}: pieces"),
                   marker={"color": style.faded(tint, (0.6, 0.25)[i % 2])}),
            go.Scatter(x=rows["alone"].to_list(), y=at, mode="markers", name=plain(f"{group}: answers"), marker=marker,
                       cliponaxis=False),
        ]  # fmt: skip
        font = {"size": 8, "color": style.darker(tint, 0.15)}
        counts += [style.note(f"{n:,}", 1, y, "right middle", yref="y", font=font)
                   for n, y in zip(rows["n"], at, strict=True)]  # fmt: skip
    most = float(frame.select(pl.max_horizontal("share", "alone").max()).item())
    left = round(max(text_px(clean(name), style.SMALL) for name in names)) + 16
    return style.plot(
        traces, title=title, names=[trace.name for trace in traces], plot_px=(12 * len(groups) + 6) * len(names),
        left=left, bottom=50, barmode="overlay", annotations=counts,
        xaxis={"title": {"text": _CAUSES_AXIS}, "tickformat": ".0%", "range": [0, most * 1.18 or 1]},
        yaxis={"tickvals": [len(names) - 1 - i for i in range(len(names))], "ticktext": list(map(plain, names)),
               "range": [-0.6, len(names) - 0.4], "showgrid": False, "ticks": ""},
    )  # fmt: skip
