"""One look for every chart: palette, fonts, template, and layouts at the two widths of a paper.

A figure is drawn for print: 336 px are 3.5 in (a column) and 672 px are 7 in (a page), so a font of 10 px is 7.5 pt
at either width. What must change with the width (where labels sit, how long a snippet is) a chart says through
:func:`finish`; :func:`for_width` gives the figure at one width. Nothing is registered with plotly: a notebook's own
figures keep their look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Literal

import polars as pl

from memlab.errors import DataError
from memlab.figures._plotly import go
from memlab.figures._text import escape, text_px, wrap

Width = Literal["column", "full"]
WIDTHS: dict[Width, int] = {"column": 336, "full": 672}

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours (2008) without yellow, which a white page swallows."""
EVIDENCE = "#F0E442"
"""Okabe and Ito's yellow, always with a black edge: evidence, and nothing else, in every chart."""
SEQUENCE = ("#C3DBEC", "#8CBBDC", "#4F9BC9", "#0072B2", "#004A75", "#002A45")
"""Light to dark, for ordered groups such as the number of evidence sessions."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "pentagon")
INK, GREY, NOISE, RULE = "#222222", "#767676", "#C4C4C4", "#E6E6E6"
FONT = "Liberation Sans, Arial, Helvetica, DejaVu Sans, sans-serif"
TEXT, SMALL = 10, 9
LINE_PX = 13
LEGEND_ROW_PX, _LEGEND_SYMBOL_PX, _NAME_PX = 19, 46, 240
_WIDTHS_KEY = "memlab_widths"


@cache
def template() -> go.layout.Template:
    """Give the plotly template of memlab: white ground, hairline axes, small type.

    >>> from memlab.figures import style
    >>> style.template().layout.colorway[0]
    '#0072B2'
    """
    axis = {
        "showgrid": True, "gridcolor": RULE, "gridwidth": 0.6, "zeroline": False, "linecolor": GREY, "linewidth": 0.8,
        "showline": True, "ticks": "outside", "ticklen": 3, "tickwidth": 0.8, "tickcolor": GREY,
        "tickfont": {"size": SMALL}, "title": {"font": {"size": TEXT}, "standoff": 4}, "automargin": False,
    }  # fmt: skip
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": TEXT, "color": INK},
            "colorway": list(PALETTE),
            "paper_bgcolor": "white",
            "plot_bgcolor": "white",
            "xaxis": axis,
            "yaxis": axis,
            "margin": {"l": 44, "r": 12, "t": 12, "b": 36, "pad": 0, "autoexpand": False},
            "legend": {"font": {"size": SMALL}, "bgcolor": "rgba(0,0,0,0)", "itemwidth": 30, "tracegroupgap": 0},
            "hoverlabel": {"font": {"family": FONT, "size": 11}, "align": "left"},
            "annotationdefaults": {"font": {"size": SMALL}, "showarrow": False},
            "bargap": 0.25,
        }
    )


def colour(i: int) -> str:
    """Give the colour of the i-th series; the order is fixed and repeats after seven."""
    return PALETTE[i % len(PALETTE)]


def dash(i: int) -> str:
    """Give the dash of the i-th series: it changes when the colours start again."""
    return ("solid", "dash", "dot")[i // len(PALETTE) % 3]


def faded(hex_colour: str, alpha: float) -> str:
    """Give a colour with an opacity.

    >>> from memlab.figures.style import faded
    >>> faded("#0072B2", 0.2)
    'rgba(0,114,178,0.2)'
    """
    red, green, blue = (int(hex_colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"


def darker(hex_colour: str, share: float = 0.3) -> str:
    """Mix a colour with black, so that it can carry text on white."""
    channels = (round(int(hex_colour[i : i + 2], 16) * (1 - share)) for i in (1, 3, 5))
    return "#" + "".join(f"{c:02X}" for c in channels)


def need(frame: pl.DataFrame, columns: Iterable[str], chart: str) -> None:
    """Check that a frame has what a chart draws.

    :raises DataError: when a column is missing or there are no rows.
    """
    missing = [c for c in columns if c not in frame.columns]
    if missing:
        raise DataError(f"{chart} needs the column(s) {', '.join(missing)}; the frame has {', '.join(frame.columns)}")
    if frame.is_empty():
        raise DataError(f"{chart} has nothing to draw: the frame has no rows; check the filter that made it")


def series(frame: pl.DataFrame, column: str) -> list[Any]:
    """Give the distinct values of a column in order of first appearance, which is the order of the colours."""
    return frame[column].unique(maintain_order=True).to_list()


def heading(title: str, px: int, *, top: int = 10) -> tuple[dict[str, Any], int]:
    """Give a title wrapped to the width, and the top margin that it needs."""
    if not title:
        return {"text": ""}, top
    lines = wrap(title, px - 16, 11, lines=2, bold=True)
    return {"text": "<br>".join(f"<b>{escape(line)}</b>" for line in lines)}, 10 + 14 * len(lines)


def _with_title(layout: dict[str, Any]) -> dict[str, Any]:
    """Draw the title as an annotation: plotly cuts off the first line of a title that has two."""
    text = layout.get("title", {}).get("text")
    if not text:
        return layout
    left, top = layout["margin"]["l"], layout["margin"]["t"]
    at = {"x": 0, "xref": "paper", "xanchor": "left", "xshift": 8 - left, "align": "left"}
    at |= {"y": 1, "yref": "paper", "yanchor": "top", "yshift": top - 4}
    note = {"text": text, "font": {"size": 11}, "showarrow": False, "borderpad": 0, **at}
    return {**layout, "title": {"text": ""}, "annotations": [note, *layout.get("annotations", ())]}


def named(name: object) -> str:
    """Give the name of a series as the legend draws it: a long one on two lines."""
    return "<br>".join(map(escape, wrap(name, _NAME_PX, SMALL)))


def legend_below(names: Sequence[str], px: int) -> tuple[dict[str, Any], int]:
    """Give a legend under the plot, in as many columns as its longest name allows, and the height that it takes."""
    room = px - 40
    lines = [wrap(name, _NAME_PX, SMALL) for name in names]
    entry = max((text_px(line, SMALL) for block in lines for line in block), default=0) + _LEGEND_SYMBOL_PX + 4
    columns = max(1, min(len(names), int(room // entry)))
    wide = {"entrywidth": room / columns - _LEGEND_SYMBOL_PX, "entrywidthmode": "pixels", "orientation": "h"}
    rows = [max(map(len, lines[i : i + columns])) for i in range(0, len(lines), columns)]
    height = sum(LEGEND_ROW_PX + 8 * (n > 1) for n in rows) + 10
    return {**wide, "px": height}, height


def _with_legend(layout: dict[str, Any], px: int) -> dict[str, Any]:
    """Put the legend at the lower left corner of the picture.

    plotly lets a legend be as wide as the picture only when it lies below and left of the plot in plot units.
    """
    if not layout.get("showlegend"):
        return layout
    margin = layout["margin"]
    legend = dict(layout["legend"])
    across, down = px - margin["l"] - margin["r"], layout["height"] - margin["t"] - margin["b"]
    place = {"x": 4 / across - margin["l"] / across, "xanchor": "left", "yanchor": "top"}
    place["y"] = -max(margin["b"] - legend.pop("px"), 1) / down
    return {**layout, "legend": {**legend, **place}}


def layout(
    px: int,
    *,
    plot_px: float,
    title: str = "",
    names: Sequence[str] = (),
    head_px: int = 0,
    left: float = 42,
    right: float = 12,
    bottom: int = 36,
    **own: Any,
) -> dict[str, Any]:
    """Give the layout of a picture: a title, a plot, its axis, and under it the names of its series.

    :param px: width of the picture.
    :param plot_px: height of the plot.
    :param names: of the series, where there is a legend.
    :param head_px: room between title and plot.
    :param bottom: room for the axis; the legend stands below it.
    :param own: what else plotly takes; ``legend`` is added to the one made here.
    """
    head, top = heading(title, px)
    legend, legend_px = legend_below(names, px) if names else ({}, 0)
    margin = {"t": top + head_px, "l": left, "r": right, "b": bottom + legend_px}
    height = int(top + head_px + plot_px + bottom + legend_px)
    own["legend"] = legend | own.get("legend", {})
    return {"title": head, "showlegend": bool(names), "height": height, "margin": margin, **own}


def axes(panel: int) -> dict[str, str]:
    """Name the axes of the i-th panel, for its traces."""
    key = str(panel + 1) if panel else ""
    return {"xaxis": f"x{key}", "yaxis": f"y{key}"}


def add_panel(
    layout: dict[str, Any],
    panel: int,
    across: tuple[float, float],
    down: tuple[float, float],
    *,
    xaxis: dict[str, Any],
    yaxis: dict[str, Any],
    head: str = "",
    **look: Any,
) -> None:
    """Put a panel with its axes into a layout, and its head above it.

    :param across: left and right end as shares of the plot; ``down``: lower and upper end.
    :param look: of the head.
    """
    x, y = axes(panel).values()
    layout[f"xaxis{x[1:]}"] = {"domain": [max(0.0, across[0]), min(1.0, across[1])], "anchor": y, **xaxis}
    layout[f"yaxis{y[1:]}"] = {"domain": [max(0.0, down[0]), min(1.0, down[1])], "anchor": x, **yaxis}
    if head:
        at = {"x": across[0], "xref": "paper", "xanchor": "left", "y": min(1.0, down[1]), "yref": "paper"}
        layout["annotations"].append({"text": head, "yanchor": "bottom", **at, **look})


def plot(traces: Sequence[Any], **fixed: Any) -> go.Figure:
    """Make a figure whose :func:`layout` differs between the widths by title and legend alone."""
    return finish(traces, lambda px: layout(px, **fixed))


def interval(x: Any, low: Any, high: Any, **look: Any) -> dict[str, Any]:
    """Give the bar of an interval around a value, or around a column of them."""
    columns = [v if isinstance(v, pl.Series) else pl.Series([v], dtype=pl.Float64) for v in (x, low, high)]
    up, down = (columns[2] - columns[0]).to_list(), (columns[0] - columns[1]).to_list()
    return {"array": up, "arrayminus": down, "thickness": 1.5, "width": 0, **look}


def finish(traces: Sequence[Any], layout_for: Callable[[int], dict[str, Any]]) -> go.Figure:
    """Make a figure of traces and a layout that depends on the width in pixels.

    :param layout_for: gives the layout, with ``height`` and ``margin``, at a width; it is asked for each paper width.
    """
    layouts = {width: {**_with_legend(_with_title(layout_for(px)), px), "width": px} for width, px in WIDTHS.items()}
    fig = go.Figure(data=list(traces), layout={"template": template(), "meta": {_WIDTHS_KEY: layouts}})
    return fig.update_layout(layouts["full"])


def for_width(fig: go.Figure, width: Width) -> go.Figure:
    """Give a copy of a figure laid out for a paper width.

    A figure that no chart function of memlab made gets the template and keeps its shape.

    >>> import polars as pl
    >>> from memlab.figures import corpus, style
    >>> fig = corpus.evidence_histogram(pl.DataFrame({"n_evidence": [1, 1, 2, 4]}))
    >>> style.for_width(fig, "column").layout.width
    336
    """
    copy = go.Figure(fig)
    layouts = (copy.layout.meta or {}).get(_WIDTHS_KEY) if isinstance(copy.layout.meta, dict) else None
    if layouts is None:
        px, own = WIDTHS[width], copy.layout
        shape = own.height / own.width if own.height and own.width else 0.7
        return copy.update_layout(template=template(), width=px, height=round(px * shape))
    copy.layout.meta = None
    for name in ("annotations", "shapes"):
        if name in layouts[width]:
            copy.layout[name] = ()
    return copy.update_layout(layouts[width])
