"""Bars: shares of kinds, group by group."""

from __future__ import annotations

from itertools import chain
from typing import Any

import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures.text_and_glyphs import drawable_text, printable_line, widest_px, wrap

_RULE_PX = 8
_NAME_LINES = 4
"""Of a cause, and of its rule, beside its bars."""
_NOTE_LINES = 6


@style.sentence_if_empty
def share_bars(frame: pl.DataFrame, *, xlabel: str = "share", note: str = "") -> go.Figure:
    """Draw shares as bars, a row a cause and in it a bar a group, with counts on their right.

    Rows whose counts are all 0 are left out, and named below.

    :param frame: ``cause``, ``group``, ``n`` and ``share``, in the order to draw from the top;
        where there is ``rule``, it stands below the name of a cause and says what it is.
    :param note: what else stands below.

    >>> import polars as pl
    >>> from memlab.figures import bars
    >>> counted = {"n": [3, 1], "share": [0.75, 0.25]}
    >>> frame = pl.DataFrame({"cause": ["pronouns", "label"], "group": "all", **counted})
    >>> list(bars.share_bars(frame).data[0].x)
    [0.75, 0.25]
    """
    style.check_columns(frame, ("cause", "group", "n", "share"), "shares")
    below = note
    if frame["n"].sum():
        n_of_cause = pl.col("n").sum().over("cause")
        unseen_causes = style.distinct_values(frame.filter(n_of_cause == 0), "cause")
        frame = frame.filter(n_of_cause > 0)
        if unseen_causes:
            below = f"{note} None: {', '.join(map(printable_line, unseen_causes))}."
    group_rows = style.rows_by_value(frame, "group")
    causes = style.distinct_values(frame, "cause")
    row_labels = list(map(printable_line, causes))
    rule_by_cause = dict[str, str]()
    if "rule" in frame.columns:
        rule_by_cause = dict(frame.select("cause", "rule").iter_rows())
    bar_height = 0.8 / len(group_rows)
    bar_traces = list[Any]()
    count_notes = list[dict[str, Any]]()
    for group_number, (group_name, bar_rows) in enumerate(group_rows):
        bar_places = [
            len(causes) - 1 - causes.index(cause) + 0.4 - bar_height * (group_number + 0.5)
            for cause in bar_rows["cause"]
        ]
        bar_colour = style.colour(group_number)
        bar_traces.append(
            go.Bar(
                x=bar_rows["share"].to_list(),
                y=bar_places,
                width=bar_height * 0.9,
                orientation="h",
                name=drawable_text(group_name),
                marker={"color": style.rgba_colour(bar_colour, (0.75, 0.35)[group_number % 2])},
            )
        )
        count_font = {"size": 8, "color": style.darken_colour(bar_colour, 0.15)}
        marked_bars = zip(bar_rows["n"], bar_rows["share"], bar_places, strict=True)
        for count, bar_share, bar_place in marked_bars:
            count_notes.append(
                style.text_annotation(
                    f"{count:,} ({bar_share:.0%})",
                    bar_share,
                    bar_place,
                    "left middle",
                    xref="x",
                    yref="y",
                    xshift=3,
                    font=count_font,
                    bgcolor="white",  # a line of the grid would run through it
                )
            )
    legend_names: list[str] = []
    if len(group_rows) > 1:
        legend_names = [printable_line(group_name) for group_name, _ in group_rows]
    largest_share = float(frame["share"].max())  # type: ignore[arg-type]

    def layout_for(px: int) -> style.FigureLayout:
        is_bold = bool(rule_by_cause)
        wrapped_labels = [
            wrap(row_label, 0.45 * px, style.SMALL, lines=_NAME_LINES, bold=is_bold)
            for row_label in row_labels
        ]
        wrapped_rules = [
            wrap(rule_by_cause.get(cause, ""), 0.45 * px, _RULE_PX, lines=_NAME_LINES)
            for cause in causes
        ]
        label_texts = []
        most_lines = 1
        for label_lines, rule_lines in zip(wrapped_labels, wrapped_rules, strict=True):
            label_text = style.join_lines(label_lines)
            if any(rule_lines):
                rule_text = style.join_lines(rule_lines)
                label_text = (
                    f"<b>{label_text}</b><br>"
                    f"<span style='font-size:{_RULE_PX}px'>{rule_text}</span>"
                )
                most_lines = max(most_lines, len(label_lines) + len(rule_lines))
            label_texts.append(label_text)
            most_lines = max(most_lines, len(label_lines))
        row_px = max(12 * len(group_rows), 11 * most_lines) + 6
        label_width = max(
            widest_px(chain.from_iterable(wrapped_labels), style.SMALL, bold=is_bold),
            widest_px(chain.from_iterable(wrapped_rules), _RULE_PX),
        )
        axis_lines = wrap(xlabel, px - label_width - 44, style.TEXT, lines=3)
        left = round(label_width) + 16
        axis_px = 48 + 12 * max(0, len(axis_lines) - 2)
        note_lines = wrap(below.strip(), px - 20, _RULE_PX, lines=_NOTE_LINES)
        notes = list(count_notes)
        if note_lines:
            note_font = {"size": _RULE_PX, "color": style.GREY}
            notes.append(
                style.text_annotation(
                    style.join_lines(note_lines),
                    0,
                    0,
                    xshift=8 - left,
                    yshift=-axis_px,
                    align="left",
                    font=note_font,
                )
            )
        return style.layout(
            px,
            names=legend_names,
            plot_px=row_px * len(causes),
            left=left,
            bottom=axis_px + 11 * len(note_lines),
            barmode="overlay",
            annotations=notes,
            xaxis={
                "title": {"text": style.join_lines(axis_lines)},
                "tickformat": ".0%",
                "range": [0, largest_share * (1 + 44 / (px - label_width - 60)) or 1],
            },
            yaxis={
                "tickvals": [*range(len(causes) - 1, -1, -1)],
                "ticktext": label_texts,
                "range": [-0.6, len(causes) - 0.4],
                "showgrid": False,
                "ticks": "",
            },
        )

    return style.make_figure(bar_traces, layout_for)
