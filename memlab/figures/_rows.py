"""Rows of marks with intervals, each row with its own name: forests, ladders, tables of means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._text import clean, plain, text_px, wrap

_ROW_PX, _SECOND_LINE_PX, _FURTHER_PX, _LANE_PX, _LIFT_PX = 32, 13, 10, 15, 5
_NAMES_PX = 160
_GAP = {"type": "rect", "layer": "between", "fillcolor": "white", "line": {"width": 0}}
_PART = re.compile(r"\S.*?(?:; |, (?=[●■◆▲✚])|$)")


def verdict(difference: float | None, p: float | None, alpha: float) -> dict[str, str]:
    """Give the colours of a paired difference: blue better, vermilion worse; grey and open where it is not sure."""
    if p is None or difference is None or p >= alpha:
        return {"tint": style.GREY, "fill": "white"}
    tint = style.PALETTE[0] if difference > 0 else style.PALETTE[1]
    return {"tint": tint, "fill": tint}


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


def _row_px(deep: int, lines: int) -> int:
    return _ROW_PX + _SECOND_LINE_PX * max(lines - 1, deep > 1) + _FURTHER_PX * (deep - 1)


def even(text: str, px: float, size: float, *, lines: int) -> list[str]:
    """Wrap a text so that its last line is not a single word."""
    done = wrap(text, px, size, lines=lines)
    if len(done) < 2:
        return done
    longest = max(text_px(f"{word} ", size) for word in text.split())
    return wrap(text, min(px, text_px(text, size) / len(done) + longest), size, lines=len(done))


def marked_rows(
    marks: list[dict[str, Any]],
    *,
    span: tuple[float, float] | None = None,
    between: str = "",
    **layout: Any,
) -> go.Figure:
    """Draw rows of marks, each row beside its name (in a column under it), its numbers on the right.

    :param marks: as :func:`mark` takes them, with ``numbers``; ``series`` where several stand in a row.
    :param span: of the axis; where not given, that of the intervals and 0.
    :param between: puts the numbers of a row on one line, with this between them.
    :param layout: see :func:`rows_layout`.
    """
    names = list(dict.fromkeys(row["name"] for row in marks))
    deep = max(sum(row["name"] == name for row in marks) for name in names)
    row_px = _row_px(deep, 1 if between else deep)
    numbers: dict[str, list[str]] = {name: [] for name in names}

    def height(name: str, nth: int) -> float:
        # Several marks of a row stand nearer to its own name than to the next.
        return len(names) - names.index(name) - 1 + ((deep > 1) * _LIFT_PX + _LANE_PX * (deep - 1 - nth)) / row_px

    traces = list[Any]()
    for row in marks:
        traces.append(mark(row, height(row["name"], len(numbers[row["name"]]))))
        numbers[row["name"]].append(row["numbers"])
    labels = [
        {"name": clean(name), "numbers": [between.join(own)] if between else own, "y": float(len(names) - i)}
        for i, (name, own) in enumerate(numbers.items())
    ]
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
    shapes: Sequence[dict[str, Any]] = (),
) -> Any:
    """Lay rows out: ``name`` (left), ``numbers`` (right, a line each) and ``y`` of each, ``deep`` lanes of marks in it.

    :param key: what shapes and colours mean, in small type below.
    :param xaxis: what is different about the axis.
    """
    pad = (span[1] - span[0] or 0.01) * 0.05
    numbers_px = max(text_px(numbers, style.SMALL) for label in labels for numbers in label["numbers"]) + 8
    lines = max(len(label["numbers"]) for label in labels)

    def layout_for(px: int) -> dict[str, Any]:
        column = px <= style.WIDTHS["column"]
        longest = max(text_px(label["name"], style.SMALL) for label in labels)
        before = 0 if column else min(longest, _NAMES_PX) + 8  # a column has no room for names beside the plot
        below = even(xlabel, px - 20 - before - numbers_px, style.TEXT, lines=3)
        keys = key_lines(key, px - 20)
        bottom = 26 + 12 * len(below) + 10 * len(keys)
        room = style.TALLEST - bottom - 20 - 28 * bool(title)
        lanes = _LANE_PX * (deep - 1)

        def least(second: bool) -> float:
            """Give the height of a row with room for a name, of two lines or one, between its marks and the last."""
            return (21 + 12 * second) / (1 - lanes / _row_px(deep, max(lines, 1 + second)))

        second = not column or least(True) * len(labels) <= room
        names = [wrap(label["name"], px - 20 if column else before - 8, style.SMALL, lines=1 + second)
                 for label in labels]  # fmt: skip
        whole = row = float(_row_px(deep, max(lines, *map(len, names))))
        middle = ((deep > 1) * _LIFT_PX + lanes / 2) / whole  # of the marks, above the end of their row
        ends = [middle - 0.5, len(labels) + middle - 0.5]
        if column:
            row = max(min(row, room / len(labels)), least(max(map(len, names)) > 1))
            ends = [-10 / row, len(labels)]
        else:
            row = max(0.7 * _row_px(deep, lines), 12 * max(map(len, names)) + 6)
        texts, bands = list[dict[str, Any]](), list[dict[str, Any]]()
        for label, own_lines in zip(labels, names, strict=True):
            beside = {"y": label["y"] - 1 + middle, "yref": "y", "align": "left"}
            above = beside | {"y": beside["y"] + lanes / 2 / whole, "yshift": 6}
            # A name stands in a gap of the grid as wide as the plot: a line that it alone broke would look cut off.
            foot = above["y"] + 6 / row
            head = foot + (12 * len(own_lines) + 2) / row if bands else ends[1]
            bands.append(_GAP | {"x0": span[0] - pad, "x1": span[1] + pad, "y0": foot, "y1": head})
            corner, at = ("left bottom", above) if column else ("left middle", beside)
            texts.append(style.note(style.broken(own_lines), 0, anchor=corner, xshift=-before, **at))
            texts.append(style.note(style.broken(label["numbers"]), 1, anchor="left middle", xshift=8,
                                    font={"color": style.GREY}, **beside))  # fmt: skip
        texts.append(style.note(style.broken(keys), 0, 0, "left bottom", align="left", xshift=-before,
                                yshift=3 - bottom, font={"size": 8, "color": style.GREY}))  # fmt: skip
        return style.layout(
            px, title=title, plot_px=row * len(labels) + 10 * column, left=10 + before, right=10 + numbers_px,
            bottom=bottom, annotations=texts, shapes=[*shapes, *(bands if column else ())],
            xaxis={"title": {"text": style.broken(below)}, "range": [span[0] - pad, span[1] + pad],
                   "zeroline": True, "zerolinecolor": style.INK, "zerolinewidth": 1, **(xaxis or {})},
            yaxis={"visible": False, "range": ends},
        )  # fmt: skip

    return layout_for


def key_lines(key: str, px: float) -> list[str]:
    """Break a key between its shapes and statements, and within one only where it is longer than a line."""
    lines = [""]
    for part in map(str.strip, _PART.findall(key)):
        if lines[-1] and text_px(f"{lines[-1]} {part}", 8) <= px:
            lines[-1] += f" {part}"
        else:
            lines += even(part, px, 8, lines=3)
    return [line.rstrip(";,") for line in lines[1:]]
