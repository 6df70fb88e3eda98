"""Rows of marks with intervals, each row with its own name: forests, ladders, tables of means."""

from __future__ import annotations

import re
from typing import Any

import plotly.graph_objects as go

from memlab.figures import style
from memlab.figures._text import drawable_text, printable_line, text_px, wrap

_ROW_PX, _SECOND_LINE_PX, _FURTHER_PX, _LANE_PX, _LIFT_PX = 32, 13, 10, 15, 5
_NAMES_PX = 160
_GAP = {"type": "rect", "layer": "between", "fillcolor": "white", "line": {"width": 0}}
_PART = re.compile(r"\S.*?(?:; |, (?=[●■◆▲✚])|$)")


def marked_rows(
    marks: list[dict[str, Any]], *, xlabel: str, key: str, span: tuple[float, float] | None = None, between: str = "",
    xaxis: dict[str, Any] | None = None,
) -> go.Figure:  # fmt: skip
    """Draw rows of marks, each row beside its name (in a column under it), its numbers on the right.

    :param marks: ``name`` (of the row), ``series``, ``x``, ``low``, ``high``, ``tint``, ``fill``, ``symbol`` and
        ``numbers``.
    :param key: what shapes and colours mean, in small type below.
    :param span: of the axis; where not given, that of the intervals and 0.
    :param between: puts the numbers of a row on one line, with this between them.
    :param xaxis: what is different about the axis.
    """
    numbers: dict[str, list[str]] = {row["name"]: [] for row in marks}
    names = list(numbers)
    deep = max(sum(row["name"] == name for row in marks) for name in names)
    row_px, traces = _row_height_px(deep, 1 if between else deep), list[Any]()
    for row in marks:
        # Several marks of a row stand nearer to its own name than to the next.
        lane = deep - 1 - len(numbers[row["name"]])
        y = len(names) - names.index(row["name"]) - 1 + ((deep > 1) * _LIFT_PX + _LANE_PX * lane) / row_px
        numbers[row["name"]].append(row["numbers"])
        traces.append(go.Scatter(
            x=[row["x"]], y=[y], mode="markers", name=drawable_text(row["series"]), showlegend=False,
            marker={"color": row["fill"], "size": 7, "symbol": row["symbol"],
                    "line": {"color": row["tint"], "width": 1.5}},
            error_x=style.error_bar(row["x"], row["low"], row["high"], color=row["tint"]),
            text=[f"{drawable_text(row['name'])}<br>{drawable_text(row['series'])}: {row['numbers']}"],
            hoverinfo="text",
        ))  # fmt: skip
    written = {name: [between.join(own)] if between else own for name, own in numbers.items()}
    ends = [0.0, *(row[end] for row in marks for end in ("low", "high", "x"))]
    low, high = span or (min(ends), max(ends))
    pad = (high - low or 0.01) * 0.05
    axis = {"range": [low - pad, high + pad], "zeroline": True, "zerolinecolor": style.INK, "zerolinewidth": 1}
    rows = {printable_line(name): own for name, own in written.items()}
    return style.make_figure(traces, lambda px: _layout(px, rows, deep, xlabel, key, axis | (xaxis or {})))


def _row_height_px(deep: int, lines: int) -> int:
    return _ROW_PX + _SECOND_LINE_PX * max(lines - 1, deep > 1) + _FURTHER_PX * (deep - 1)


def _layout(
    px: int, rows: dict[str, list[str]], deep: int, xlabel: str, key: str, xaxis: dict[str, Any]
) -> dict[str, Any]:
    """Lay rows out: names (left), the lines of their numbers (right), and ``deep`` lanes of marks in each."""
    column = px <= style.WIDTHS["column"]
    lines, lanes = max(map(len, rows.values())), _LANE_PX * (deep - 1)
    numbers_px = max(text_px(number, style.SMALL) for own in rows.values() for number in own) + 8
    longest = max(text_px(name, style.SMALL) for name in rows)
    before = 0 if column else min(longest, _NAMES_PX) + 8  # a column has no room for names beside the plot
    below = _wrap_evenly(xlabel, px - 20 - before - numbers_px, style.TEXT, lines=3)
    keys = _wrap_legend(key, px - 20)
    bottom = 26 + 12 * len(below) + 10 * len(keys)
    room = style.TALLEST_PX - bottom - 20

    def least(second: bool) -> float:
        """Give the height of a row with room for a name, of two lines or one, between its marks and the last."""
        return (21 + 12 * second) / (1 - lanes / _row_height_px(deep, max(lines, 1 + second)))

    second = not column or least(True) * len(rows) <= room
    names = [wrap(name, px - 20 if column else before - 8, style.SMALL, lines=1 + second) for name in rows]
    most = max(map(len, names))
    whole = row = float(_row_height_px(deep, max(lines, most)))
    middle = ((deep > 1) * _LIFT_PX + lanes / 2) / whole  # of the marks, above the end of their row
    ends = [middle - 0.5, len(rows) + middle - 0.5]
    if column:
        row = max(min(row, room / len(rows)), least(most > 1))
        ends = [-10 / row, len(rows)]
    else:
        row = max(0.7 * _row_height_px(deep, lines), 12 * most + 6)
    texts, bands = list[dict[str, Any]](), list[dict[str, Any]]()
    for i, (name, numbers) in enumerate(zip(names, rows.values(), strict=True)):
        beside: dict[str, Any] = {"y": len(rows) - i - 1 + middle, "yref": "y", "align": "left"}
        above = beside | {"y": beside["y"] + lanes / 2 / whole, "yshift": 6}
        # A name stands in a gap of the grid as wide as the plot: a line that it alone broke would look cut off.
        foot = above["y"] + 6 / row
        head = foot + (12 * len(name) + 2) / row if bands else ends[1]
        bands.append(_GAP | {"x0": xaxis["range"][0], "x1": xaxis["range"][1], "y0": foot, "y1": head})
        corner, at = ("left bottom", above) if column else ("left middle", beside)
        texts.append(style.text_note(style.join_lines(name), 0, anchor=corner, xshift=-before, **at))
        texts.append(style.text_note(style.join_lines(numbers), 1, anchor="left middle", xshift=8,
                                font={"color": style.GREY}, **beside))  # fmt: skip
    texts.append(style.text_note(style.join_lines(keys), 0, 0, "left bottom", align="left", xshift=-before,
                            yshift=3 - bottom, font={"size": 8, "color": style.GREY}))  # fmt: skip
    return style.layout(
        px, plot_px=row * len(rows) + 10 * column, left=10 + before, right=10 + numbers_px, bottom=bottom,
        annotations=texts, shapes=bands if column else (),
        xaxis={"title": {"text": style.join_lines(below)}, **xaxis}, yaxis={"visible": False, "range": ends},
    )  # fmt: skip


def _wrap_evenly(text: str, px: float, size: float, *, lines: int) -> list[str]:
    """Wrap a text so that its last line is not a single word."""
    done = wrap(text, px, size, lines=lines)
    if len(done) < 2:
        return done
    longest = max(text_px(f"{word} ", size) for word in text.split())
    return wrap(text, min(px, text_px(text, size) / len(done) + longest), size, lines=len(done))


def _wrap_legend(key: str, px: float) -> list[str]:
    """Break a key between its shapes and statements, and within one only where it is longer than a line."""
    lines = [""]
    for part in map(str.strip, _PART.findall(key)):
        if lines[-1] and text_px(f"{lines[-1]} {part}", 8) <= px:
            lines[-1] += f" {part}"
        else:
            lines += _wrap_evenly(part, px, 8, lines=3)
    return [line.rstrip(";,") for line in lines[1:]]
