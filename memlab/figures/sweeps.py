"""A measure over a parameter of a selection, or over a budget, in small panels."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._text import clean, escape, fit, plain

_HEADER_PX, _FOOT_PX = 16, 38


def sweep(
    frame: pl.DataFrame,
    *,
    panel: str = "parameter",
    series: str = "system",
    measure: str = "recall_all@10",
    reference: str = "plain top-k",
    log_x: bool = False,
    title: str = "",
) -> go.Figure:
    """Draw a measure over a parameter of a selection, with the plain ranking as a grey line to beat.

    Panels that show the same have the same y axis.

    :param frame: ``parameter`` (its name, on the x axis), ``value``, ``mean``, ``low``, ``high``, the columns named by
        ``panel`` and ``series``, and, where there are, ``baseline`` (what the plain ranking reaches at that value) and
        ``ylabel`` (what the panel shows, in place of ``measure``, where panels show different things).
    :param panel: the column whose values get a panel each, and head it.
    :param series: the column whose values get a line each.
    :param reference: what the baseline is called.
    :param log_x: draw values on a logarithmic axis, and name each on it.
    :raises DataError: when a column is missing, or a value on a logarithmic axis is not positive.

    >>> import polars as pl
    >>> from memlab.figures import sweeps
    >>> measured = {"mean": [0.1, 0.2], "low": [0.0, 0.1], "high": [0.2, 0.3]}
    >>> rows = pl.DataFrame({"parameter": "λ", "value": [0.5, 1.0], "system": "mmr", **measured})
    >>> len(sweeps.sweep(rows).data)
    1
    """
    style.need(frame, dict.fromkeys(("parameter", "value", "mean", "low", "high", panel, series)), "sweep")
    wrong = frame.filter(pl.col("value") <= 0)["value"].to_list() if log_x else []
    if wrong:
        raise DataError(f"sweep has the value {wrong[0]} on a logarithmic axis; give values above 0")
    systems = style.series(frame, series)
    names = [*map(str, systems)]
    traces, panels = list[Any](), list[dict[str, Any]]()
    for p, head in enumerate(style.series(frame, panel)):
        rows = frame.filter(pl.col(panel) == head)
        n_baseline = rows["baseline"].drop_nulls().len() if "baseline" in rows.columns else 0
        if n_baseline:
            traces += _references(rows, series, reference, panel=p, legend=reference not in names)
            names += [reference] if reference not in names else []
        for i, system in enumerate(systems):
            points = rows.filter(pl.col(series) == system).sort("value")
            if points.height:
                shown = not any(t.legendgroup == str(system) for t in traces)
                traces.append(_swept(points, str(system), i, panel=p, legend=shown))
        ends = rows.select(pl.max_horizontal(*(c for c in ("high", "mean", "baseline") if c in rows.columns)).max())
        panels.append(
            {"head": "" if panel == "parameter" else clean(head), "x": clean(rows["parameter"][0]),
             "y": clean(rows["ylabel"][0]) if "ylabel" in rows.columns else measure, "most": float(ends.item()),
             "ticks": sorted(set(rows["value"].to_list())) if log_x else None}
        )  # fmt: skip
    for facet in panels:
        # A share stays a share: no axis of one goes far above 1.
        top = max(other["most"] for other in panels if other["y"] == facet["y"]) * 1.08 or 1.0
        facet["top"] = min(top, 1.03) if top < 1.2 else top
    return style.finish(traces, _layout(panels, names, own="ylabel" in frame.columns, title=title))


def _swept(points: pl.DataFrame, name: str, i: int, *, panel: int, legend: bool) -> go.Scatter:
    error = style.interval(points["mean"], points["low"], points["high"], thickness=0.8, width=2)
    return style.marked(points["value"], points["mean"], name, i, legendgroup=name, showlegend=legend, error_y=error,
                        **style.axes(panel))  # fmt: skip


def _references(rows: pl.DataFrame, series: str, name: str, *, panel: int, legend: bool) -> list[go.Scatter]:
    """Draw the plain ranking: one line for each that the series of a panel are held against."""
    lines: list[tuple[list[float], list[float]]] = []
    for (_,), part in rows.drop_nulls("baseline").sort("value").group_by(series, maintain_order=True):
        line = (part["value"].to_list(), part["baseline"].to_list())
        if line not in lines:
            lines.append(line)
    return [
        style.line(x, y, style.named(name), width=1.2, dash="dash", legendgroup=name, legendrank=2000,
                   showlegend=legend and i == 0, **style.axes(panel))
        for i, (x, y) in enumerate(lines)
    ]  # fmt: skip


def _columns(n: int, px: int) -> int:
    if px <= style.WIDTHS["column"]:
        return 1 if n <= 3 else 2
    return n if n <= 4 else 3 if n <= 6 or n == 9 else 4


def _layout(panels: list[dict[str, Any]], names: list[str], *, own: bool, title: str) -> Any:
    header = _HEADER_PX if any(panel["head"] for panel in panels) else 0

    def layout_for(px: int) -> dict[str, Any]:
        columns, gap_px = _columns(len(panels), px), 46 if own else 16
        wide = (px - 42 - 12 - gap_px * (columns - 1)) / columns
        high = (190 if columns < 3 else 160) if len(panels) <= columns else 105 if columns > 1 else 150
        facets = []
        for p, panel in enumerate(panels):
            quiet = p % columns > 0 and not own
            heading = fit(panel["head"], wide, style.SMALL, bold=True)
            ylabel = "" if quiet else escape(fit(panel["y"], high + header, style.TEXT))
            facets.append({
                "px": high, "head": f"<b>{escape(heading)}</b>" if heading else "",
                "xaxis": {"title": {"text": plain(panel["x"])}, **_x_axis(panel["ticks"])},
                "yaxis": {"range": [0, panel["top"]], "showticklabels": not quiet, "title": {"text": ylabel},
                          "nticks": 6},
            })  # fmt: skip
        return style.panels(px, facets, columns=columns, gap=(gap_px, header + _FOOT_PX), title=title,
                            names=names if len(names) > 1 else [], head_px=header, bottom=_FOOT_PX)  # fmt: skip

    return layout_for


def _x_axis(ticks: list[float] | None) -> dict[str, Any]:
    if ticks is None:
        return {"nticks": 6}
    ends = [math.log10(ticks[0]), math.log10(ticks[-1])]
    pad = (ends[1] - ends[0] or 1) * 0.08
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks],
            "range": [ends[0] - pad, ends[1] + pad]}  # fmt: skip
