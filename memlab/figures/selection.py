"""Selection strategies: sweeps over a parameter, paired differences, and where the top of a ranking lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.figures import style
from memlab.figures._text import clean, escape, plain, text_px, wrap

if TYPE_CHECKING:
    import plotly.graph_objects as go

_ROW_PX, _SECOND_LINE_PX = 32, 12


def sweep(
    frame: pl.DataFrame, *, measure: str = "recall_all@10", reference: str = "plain top-k", title: str = ""
) -> go.Figure:
    """Draw a measure over a parameter of a selection, with the plain ranking as a grey line to beat.

    Several parameters give a panel each: one under the other at column width, side by side at page width.

    :param frame: ``parameter`` (its name), ``value``, ``system``, ``mean``, ``low``, ``high``, and ``baseline`` (the
        value of the plain ranking, the same in every row of a panel; leave it out where there is none).
    :param reference: what the baseline is called.

    >>> import polars as pl
    >>> from memlab.figures import selection
    >>> measured = {"mean": [0.1, 0.2], "low": [0.0, 0.1], "high": [0.2, 0.3]}
    >>> rows = pl.DataFrame({"parameter": "λ", "value": [0.5, 1.0], "system": "mmr", **measured})
    >>> len(selection.sweep(rows).data)
    1
    """
    style.need(frame, ("parameter", "value", "system", "mean", "low", "high"), "sweep")
    parameters, systems = style.series(frame, "parameter"), style.series(frame, "system")
    traces, named = list[Any](), set[str]()
    for p, parameter in enumerate(parameters):
        rows = frame.filter(pl.col("parameter") == parameter)
        for i, system in enumerate(systems):
            points = rows.filter(pl.col("system") == system).sort("value")
            if points.height:
                traces.append(_swept(points, system, i, panel=p, legend=system not in named))
                named.add(system)
        if "baseline" in frame.columns and rows["baseline"].drop_nulls().len():
            traces.append(_reference(rows, reference, panel=p, legend=reference not in named))
            named.add(reference)
    bounds = frame.select(pl.max_horizontal(*(c for c in ("high", "mean", "baseline") if c in frame.columns)).max())
    y_top = min(1.02, float(bounds.item()) * 1.1 or 1.0)
    names = [n for n in [*map(str, systems), reference] if n in named]
    return style.finish(traces, _sweep_layout(parameters, names, measure=measure, title=title, y_top=y_top))


def _axes(panel: int) -> dict[str, str]:
    return {"xaxis": f"x{panel + 1 if panel else ''}", "yaxis": f"y{panel + 1 if panel else ''}"}


def _swept(points: pl.DataFrame, system: str, i: int, *, panel: int, legend: bool) -> go.Scatter:
    import plotly.graph_objects as go

    return go.Scatter(
        x=points["value"].to_list(), y=points["mean"].to_list(), name=style.named(system), legendgroup=system,
        showlegend=legend, mode="lines+markers", line={"color": style.colour(i), "width": 1.5, "dash": style.dash(i)},
        marker={"symbol": style.SYMBOLS[i % len(style.SYMBOLS)], "size": 5},
        error_y={"array": (points["high"] - points["mean"]).to_list(), "thickness": 0.8, "width": 2,
                 "arrayminus": (points["mean"] - points["low"]).to_list()},
        **_axes(panel),
    )  # fmt: skip


def _reference(rows: pl.DataFrame, name: str, *, panel: int, legend: bool) -> go.Scatter:
    import plotly.graph_objects as go

    ends = [rows["value"].min(), rows["value"].max()]
    return go.Scatter(
        x=ends, y=[rows["baseline"].mean()] * 2, name=plain(name), legendgroup=name, legendrank=2000, showlegend=legend,
        mode="lines", line={"color": style.GREY, "width": 1.2, "dash": "dash"}, **_axes(panel),
    )  # fmt: skip


def _sweep_layout(parameters: list[str], names: list[str], *, measure: str, title: str, y_top: float) -> Any:
    panels = len(parameters)

    def layout_for(px: int) -> dict[str, Any]:
        head, top = style.heading(title, px)
        legend, legend_px = style.legend_below(names, px)
        beside = px > style.WIDTHS["column"] or panels == 1
        plot_px = 190 if beside else 160 * panels + 40 * (panels - 1)
        layout: dict[str, Any] = {
            "title": head, "legend": legend, "showlegend": True, "height": top + plot_px + 36 + legend_px,
            "margin": {"t": top, "l": 42, "r": 12, "b": 36 + legend_px},
        }  # fmt: skip
        for p, parameter in enumerate(parameters):
            gap = (36 / (px - 54) if beside else 40 / plot_px) if panels > 1 else 0
            size = (1 - gap * (panels - 1)) / panels
            first = p * (size + gap)
            share, whole = [first, min(first + size, 1.0)], [0.0, 1.0]
            across, up = (share, whole) if beside else (whole, [max(0.0, 1 - first - size), 1 - first])
            key = str(p + 1) if p else ""
            layout[f"xaxis{key}"] = {"domain": across, "anchor": f"y{key}", "title": {"text": plain(parameter)}}
            quiet = beside and p > 0
            layout[f"yaxis{key}"] = {
                "domain": up, "anchor": f"x{key}", "range": [0, y_top], "showticklabels": not quiet,
                "title": {"text": "" if quiet else plain(measure)},
            }  # fmt: skip
        return layout

    return layout_for


def forest(frame: pl.DataFrame, *, measure: str = "recall_all@10", alpha: float = 0.05, title: str = "") -> go.Figure:
    """Draw paired differences to a baseline with their intervals.

    A filled mark is significant after Holm's correction; blue is better than the baseline, vermilion worse, grey
    neither.

    :param frame: a row a system: ``system``, ``difference``, ``low``, ``high``, ``p_holm``, ``n`` and ``baseline``
        (the baseline's name), in the order to draw from the top. The baseline's own row is left out.
    """
    import plotly.graph_objects as go

    style.need(frame, ("system", "difference", "low", "high", "p_holm", "n", "baseline"), "forest")
    frame = frame.drop_nulls(["difference", "p_holm"]).filter(pl.col("system") != pl.col("baseline"))
    style.need(frame, (), "forest (without the baseline's own row)")
    rows = frame.with_columns(at=frame.height - 1.0 - pl.int_range(pl.len())).to_dicts()
    traces, labels = list[Any](), list[dict[str, Any]]()
    for row in rows:
        sure = row["p_holm"] < alpha
        tint = (style.PALETTE[0] if row["difference"] > 0 else style.PALETTE[1]) if sure else style.GREY
        said = f"{_signed(row['difference'])} [{_signed(row['low'])}, {_signed(row['high'])}] {_p(row['p_holm'])}"
        traces.append(
            go.Scatter(
                x=[row["difference"]], y=[row["at"]], mode="markers", name=plain(row["system"]), showlegend=False,
                marker={"color": tint if sure else "white", "size": 7, "line": {"color": tint, "width": 1.5}},
                error_x={"array": [row["high"] - row["difference"]], "arrayminus": [row["difference"] - row["low"]],
                         "thickness": 1.5, "width": 0, "color": tint},
                text=[f"{plain(row['system'])}<br>{said}"], hoverinfo="text",
            )
        )  # fmt: skip
        labels.append({"name": clean(row["system"]), "said": said, "y": row["at"] + 1})
    ends = [0.0, *frame["low"], *frame["high"]]
    counts = sorted(set(frame["n"].to_list()))
    n = f"n = {counts[0]:,}" if len(counts) == 1 else f"n = {counts[0]:,}–{counts[-1]:,}"
    xlabel = f"difference in {measure} to {clean(frame['baseline'][0])} ({n})"
    return style.finish(
        traces, _forest_layout(labels, span=(min(ends), max(ends)), xlabel=xlabel, alpha=alpha, title=title)
    )


def _p(value: float) -> str:
    return "p<.001" if value < 0.001 else "p=" + f"{value:.3f}".removeprefix("0")


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("+0.", "+.").replace("-0.", "−.").replace("-", "−")


def _forest_layout(
    labels: list[dict[str, Any]], *, span: tuple[float, float], xlabel: str, alpha: float, title: str
) -> Any:
    pad = (span[1] - span[0] or 0.01) * 0.05
    said_px = max(text_px(label["said"], style.SMALL) for label in labels) + 6
    key = f"filled: p < {alpha:g} after Holm's correction"

    def layout_for(px: int) -> dict[str, Any]:
        head, top = style.heading(title, px)
        names = [wrap(label["name"], px - 20 - said_px, style.SMALL) for label in labels]
        row = _ROW_PX + _SECOND_LINE_PX * (max(map(len, names)) > 1)
        below = wrap(xlabel, px - 20, style.TEXT)
        bottom = 36 + 12 * len(below)
        texts = []
        for label, lines in zip(labels, names, strict=True):
            common = {"y": label["y"] - 8 / row, "yanchor": "top", "xref": "paper", "borderpad": 0}
            common |= {"showarrow": False, "bgcolor": "white"}
            name = "<br>".join(map(escape, lines))
            texts += [
                {"text": name, "x": 0, "xanchor": "left", "align": "left", **common},
                {"text": label["said"], "x": 1, "xanchor": "right", "font": {"color": style.GREY}, **common},
            ]
        texts.append({"text": key, "x": 1, "xref": "paper", "xanchor": "right", "y": 0, "yref": "paper",
                      "yanchor": "top", "yshift": 15 - bottom, "font": {"size": 8, "color": style.GREY}})  # fmt: skip
        return {
            "title": head, "annotations": texts, "height": top + row * len(labels) + 10 + bottom,
            "margin": {"t": top, "l": 10, "r": 10, "b": bottom}, "showlegend": False,
            "xaxis": {"title": {"text": "<br>".join(map(escape, below))}, "range": [span[0] - pad, span[1] + pad],
                      "zeroline": True, "zerolinecolor": style.INK, "zerolinewidth": 1},
            "yaxis": {"visible": False, "range": [-10 / row, len(labels)]},
        }  # fmt: skip

    return layout_for


def spans(
    frame: pl.DataFrame, *, xlabel: str = "clusters that one answer's evidence spans", title: str = ""
) -> go.Figure:
    """Draw how many questions have their evidence in one, two, three … clusters, beside what chance would give.

    :param frame: ``clusters`` (a number or a text), ``count`` (questions), and ``expected`` (the count under the null
        model; optional), a row each, in the order to draw.
    """
    import plotly.graph_objects as go

    style.need(frame, ("clusters", "count"), "spans")
    x = [clean(v) for v in frame["clusters"]]
    traces: list[Any] = [
        go.Bar(x=x, y=frame["count"].to_list(), name="observed", marker={"color": style.colour(0)},
               text=[f"{v:,}" for v in frame["count"]], textposition="outside", textfont={"size": style.SMALL},
               cliponaxis=False)
    ]  # fmt: skip
    top_value = float(frame["count"].max())  # type: ignore[arg-type]
    if "expected" in frame.columns:
        traces.append(
            go.Bar(x=x, y=frame["expected"].to_list(), name="a random set of the same size",
                   marker={"color": style.NOISE}, text=[f"{v:,.0f}" for v in frame["expected"]], textposition="outside",
                   textfont={"size": style.SMALL, "color": style.GREY}, cliponaxis=False)
        )  # fmt: skip
        top_value = max(top_value, float(frame["expected"].max()))  # type: ignore[arg-type]

    def layout_for(px: int) -> dict[str, Any]:
        head, top = style.heading(title, px)
        legend, legend_px = style.legend_below([t.name for t in traces], px) if len(traces) > 1 else ({}, 0)
        return {
            "title": head, "legend": legend, "showlegend": len(traces) > 1, "height": top + 180 + 36 + legend_px,
            "margin": {"t": top, "l": 42, "r": 12, "b": 36 + legend_px},
            "xaxis": {"type": "category", "title": {"text": plain(xlabel)}, "showgrid": False},
            "yaxis": {"title": {"text": "questions"}, "tickformat": ",", "range": [0, top_value * 1.14 or 1]},
        }  # fmt: skip

    return style.finish(traces, layout_for)


def concentration(frame: pl.DataFrame, *, k: int = 10, title: str = "") -> go.Figure:
    """Draw how much of the first k falls into one cluster, as the share of questions at or above each amount.

    Read it at .5: the height of a line is the share of questions where one cluster holds at least half of the top k.

    :param frame: ``largest_share`` (of the k, in the cluster that holds most of them), a row a question; ``system``
        where several are compared, such as a ranking and its null model.
    """
    import plotly.graph_objects as go

    style.need(frame, ("largest_share",), "concentration")
    held = frame if "system" in frame.columns else frame.with_columns(system=pl.lit("ranking"))
    systems = style.series(held, "system")
    traces = []
    for i, system in enumerate(systems):
        values = np.sort(held.filter(pl.col("system") == system)["largest_share"].drop_nulls().to_numpy())
        share = 1 - np.arange(len(values)) / max(len(values), 1)
        x, first = np.unique(values, return_index=True)
        traces.append(
            go.Scatter(
                x=[0.0, *x, 1.0],
                y=[1.0, *share[first], share[first][-1] if len(x) and x[-1] >= 1 else 0.0],
                name=style.named(system),
                mode="lines",
                line={"color": style.colour(i), "width": 1.6, "shape": "vh", "dash": style.dash(i)},
            )
        )

    def layout_for(px: int) -> dict[str, Any]:
        head, top = style.heading(title, px)
        legend, legend_px = style.legend_below(list(map(clean, systems)), px) if len(systems) > 1 else ({}, 0)
        return {
            "title": head, "legend": legend, "showlegend": len(systems) > 1, "height": top + 180 + 36 + legend_px,
            "margin": {"t": top, "l": 42, "r": 12, "b": 36 + legend_px},
            "xaxis": {"title": {"text": f"share of the top {k} in one cluster, at least"},
                      "range": [0, 1.01], "dtick": 0.2},
            "yaxis": {"title": {"text": "share of questions"}, "range": [0, 1.02]},
        }  # fmt: skip

    return style.finish(traces, layout_for)
