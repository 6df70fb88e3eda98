"""A measure over a parameter of a selection, or over a budget, in small panels."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._text import clean, escape, fit, plain, wrap

_HEADER_PX, _SECOND_LINE_PX, _FOOT_PX = 16, 12, 38


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
    ranks = {str(system): 1000 + 2 * i for i, system in enumerate(systems)}
    traces, panels = list[Any](), list[dict[str, Any]]()
    for p, (head, rows) in enumerate(style.parts(frame, panel)):
        lines = _references(rows, series, reference)
        for nth, (name, (x, y)) in enumerate(lines.items()):
            tint = style.darker(style.colour(nth), 0.15) if len(lines) > 1 else style.GREY
            own: dict[str, Any] = {"legendgroup": name, "showlegend": name not in ranks, **style.axes(p)}
            # In the legend a series' own reference stands after it, that of all series after all.
            rank = ranks.setdefault(name, 1001 + 2 * nth if len(lines) > 1 else 2000)
            look: dict[str, Any] = {"width": 1.2, "dash": ("dash", "dot")[nth % 2], "legendrank": rank}
            traces.append(style.line(x, y, style.named(name), tint, **look, **own))
        for i, system in enumerate(systems):
            points = rows.filter(pl.col(series) == system).sort("value")
            if points.height:
                error = style.interval(points["mean"], points["low"], points["high"], thickness=0.8, width=2)
                first = not any(t.legendgroup == str(system) for t in traces)
                traces.append(style.marked(points["value"], points["mean"], system, i, error_y=error, showlegend=first,
                                           legendgroup=str(system), legendrank=ranks[str(system)],
                                           **style.axes(p)))  # fmt: skip
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
    names = sorted(ranks, key=ranks.__getitem__)
    return style.finish(traces, _layout(panels, names, own="ylabel" in frame.columns, title=title))


def _references(rows: pl.DataFrame, series: str, name: str) -> dict[str, tuple[list[float], list[float]]]:
    """Give the plain ranking's line, or, where the series of a panel have different ones, a line for each."""
    if "baseline" not in rows.columns:
        return {}
    lines = {
        str(system): (part["value"].to_list(), part["baseline"].to_list())
        for (system,), part in rows.drop_nulls("baseline").sort("value").group_by(series, maintain_order=True)
    }
    differ = any(line != other for line in lines.values() for other in lines.values())
    return {f"{name}, {system}" if differ else name: line for system, line in lines.items()}


def _columns(n: int, px: int) -> int:
    if px <= style.WIDTHS["column"]:
        return 1 if n <= 3 else 2 if n <= 6 else 3
    return n if n <= 4 else 3 if n <= 6 or n == 9 else 4


def _header(heads: list[list[str]]) -> int:
    lines = max(map(len, heads))
    return (lines > 0) * _HEADER_PX + (lines > 1) * _SECOND_LINE_PX


def _layout(panels: list[dict[str, Any]], names: list[str], *, own: bool, title: str) -> Any:
    def layout_for(px: int) -> dict[str, Any]:
        columns, gap_px = _columns(len(panels), px), 46 if own else 16
        wide = (px - 42 - 12 - gap_px * (columns - 1)) / columns
        down = math.ceil(len(panels) / columns)
        heads = [wrap(panel["head"], wide, style.SMALL, bold=True) for panel in panels]
        first, header = _header(heads[:columns]), _header(heads)
        high = (190 if columns < 3 else 160) if down == 1 else 105 if columns > 1 else 150
        alike = len({panel["x"] for panel in panels}) == 1
        # A row above another needs no title of the same axis; a column is no taller than 4.5 in.
        foot = 22 if alike else _FOOT_PX
        if px <= style.WIDTHS["column"]:
            legend = style.legend_below(names, px)[1] if len(names) > 1 else 0
            room = style.TALLEST - 38 * bool(title) - 10 - first - _FOOT_PX - legend - (header + foot) * (down - 1)
            high = max(48, min(high, room // down))
        facets = []
        for p, panel in enumerate(panels):
            quiet, above = p % columns > 0 and not own, alike and p + columns < len(panels)
            ylabel = "" if quiet else escape(fit(panel["y"], high + header, style.TEXT))
            facets.append({
                "px": high, "head": f"<b>{style.broken(heads[p])}</b>" if heads[p] else "", "look": {"align": "left"},
                "xaxis": {"title": {"text": "" if above else plain(panel["x"])}, **_x_axis(panel["ticks"])},
                "yaxis": {"range": [0, panel["top"]], "showticklabels": not quiet, "title": {"text": ylabel},
                          "nticks": 6},
            })  # fmt: skip
        return style.panels(px, facets, columns=columns, gap=(gap_px, header + foot), title=title,
                            names=names if len(names) > 1 else [], head_px=first, bottom=_FOOT_PX)  # fmt: skip

    return layout_for


def _x_axis(ticks: list[float] | None) -> dict[str, Any]:
    if ticks is None:
        return {"nticks": 6}
    ends = [math.log10(ticks[0]), math.log10(ticks[-1])]
    pad = (ends[1] - ends[0] or 1) * 0.08
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks],
            "range": [ends[0] - pad, ends[1] + pad]}  # fmt: skip
