"""Rows of marks with intervals, each row under its own name: forests, ladders, tables of means."""

from __future__ import annotations

from typing import Any

from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._text import clean, escape, plain, text_px, wrap

_ROW_PX, _SECOND_LINE_PX, _LANE_PX, _LIFT_PX = 32, 12, 10, 7


def mark(row: dict[str, Any], y: float, **axes: Any) -> go.Scatter:
    """Draw a value with its interval.

    :param row: ``x``, ``low``, ``high``, ``name`` (of the row), ``tint``, ``fill``, ``symbol``, and ``hover``.
    """
    return go.Scatter(
        x=[row["x"]], y=[y], mode="markers", name=plain(row.get("series", row["name"])), showlegend=False,
        marker={"color": row["fill"], "size": 7, "symbol": row.get("symbol", "circle"),
                "line": {"color": row["tint"], "width": 1.5}},
        error_x=style.interval(row["x"], row["low"], row["high"], color=row["tint"]),
        text=[f"{plain(row['name'])}<br>{row.get('hover', row.get('numbers'))}"], hoverinfo="text", **axes,
    )  # fmt: skip


def marked_rows(
    marks: list[dict[str, Any]],
    *,
    span: tuple[float, float] | None = None,
    ticks: list[dict[str, Any]] | None = None,
    between: str = "",
    **layout: Any,
) -> go.Figure:
    """Draw rows of marks, each row under its name, its numbers on the right.

    :param marks: as :func:`mark` takes them, with ``numbers``; ``series`` where several stand in a row.
    :param span: of the axis; where not given, that of the intervals and 0.
    :param ticks: ``name``, ``x`` and ``nth`` (of the mark in its row) of small grey ticks.
    :param between: puts the numbers of a row on one line, with this between them.
    :param layout: see :func:`rows_layout`.
    """
    names = list(dict.fromkeys(row["name"] for row in marks))
    deep = max(sum(row["name"] == name for row in marks) for name in names)
    row_px = _ROW_PX + _SECOND_LINE_PX + (deep - 1) * _LANE_PX
    # Several marks of a row stand nearer to its own name than to the next.
    lane, lift = _LANE_PX / row_px, (deep > 1) * _LIFT_PX / row_px
    labels: list[dict[str, Any]] = [
        {"name": clean(name), "numbers": [], "y": float(len(names) - i)} for i, name in enumerate(names)
    ]
    traces = list[Any]()
    for row in marks:
        label = labels[names.index(row["name"])]
        traces.append(mark(row, label["y"] - 1 + lift + lane * (deep - 1 - len(label["numbers"]))))
        label["numbers"].append(row["numbers"])
    for label in labels if between else ():
        label["numbers"] = [between.join(label["numbers"])]
    for tick in ticks or ():
        at = labels[names.index(tick["name"])]["y"] - 1 + lift + lane * (deep - 1 - tick["nth"])
        traces.append(
            go.Scatter(x=[tick["x"]], y=[at], mode="markers", hoverinfo="x", showlegend=False, name="expected",
                       marker={"symbol": "line-ns", "size": 9, "line": {"color": style.INK, "width": 1.5}})
        )  # fmt: skip
    ends = [0.0, *(row[end] for row in marks for end in ("low", "high", "x"))]
    return style.finish(traces, rows_layout(labels, span=span or (min(ends), max(ends)), deep=deep, **layout))


def rows_layout(
    labels: list[dict[str, Any]],
    *,
    span: tuple[float, float],
    deep: int,
    xlabel: str,
    key: str,
    title: str = "",
    xaxis: dict[str, Any] | None = None,
) -> Any:
    """Lay rows out: ``name`` (left), ``numbers`` (right, a line each) and ``y`` of each, ``deep`` lanes of marks in it.

    :param key: what shapes and colours mean, in small type below.
    :param xaxis: what is different about the axis.
    """
    pad = (span[1] - span[0] or 0.01) * 0.05
    numbers_px = max(text_px(numbers, style.SMALL) for label in labels for numbers in label["numbers"]) + 6

    def layout_for(px: int) -> dict[str, Any]:
        head, top = style.heading(title, px)
        names = [wrap(label["name"], px - 20 - numbers_px, style.SMALL) for label in labels]
        row = _ROW_PX + _SECOND_LINE_PX * (deep > 1 or max(map(len, names)) > 1) + (deep - 1) * _LANE_PX
        below, keys = wrap(xlabel, px - 20, style.TEXT), wrap(key, px - 20, 8)
        bottom = 26 + 12 * len(below) + 10 * len(keys)
        texts = []
        for label, lines in zip(labels, names, strict=True):
            common = {"y": label["y"] - 8 / row, "yanchor": "top", "xref": "paper", "borderpad": 0}
            common |= {"showarrow": False, "bgcolor": "white"}
            name, numbers = ("<br>".join(map(escape, part)) for part in (lines, label["numbers"]))
            texts += [
                {"text": name, "x": 0, "xanchor": "left", "align": "left", **common},
                {"text": numbers, "x": 1, "xanchor": "right", "align": "right", "font": {"color": style.GREY}} | common,
            ]
        texts.append({"text": "<br>".join(map(escape, keys)), "x": 1, "xref": "paper", "xanchor": "right", "y": 0,
                      "yref": "paper", "yanchor": "bottom", "align": "right", "yshift": 3 - bottom,
                      "font": {"size": 8, "color": style.GREY}})  # fmt: skip
        return {
            "title": head, "annotations": texts, "height": top + row * len(labels) + 10 + bottom,
            "margin": {"t": top, "l": 10, "r": 10, "b": bottom}, "showlegend": False,
            "xaxis": {"title": {"text": "<br>".join(map(escape, below))}, "range": [span[0] - pad, span[1] + pad],
                      "zeroline": True, "zerolinecolor": style.INK, "zerolinewidth": 1, **(xaxis or {})},
            "yaxis": {"visible": False, "range": [-10 / row, len(labels)]},
        }  # fmt: skip

    return layout_for
