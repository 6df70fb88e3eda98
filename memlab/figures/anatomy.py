"""The anatomy of one question: where its evidence was after each stage."""

from __future__ import annotations

import math
import re
from typing import Any

import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures.label_placement import spread_labels
from memlab.figures.text_and_glyphs import (
    cut_to_width,
    drawable_text,
    escape,
    printable_line,
    widest_px,
    wrap,
)
from memlab.system_names import hide_model_files_in_pipeline_text

_HEAD_PX = 12
_PLOT_PX = 200
_LEFT_PX = 76
_RANK_GAP_PX = 11
"""Between the ranks that are written on the right."""
_FOLLOWS = "…"
"""How the name of a stage begins that works on the ranking of the one before it."""
_APART = 0.12
"""Between the marks of two items at a stage, where 1 is from stage to stage."""
_SPREAD = 0.6
"""Between the marks of the first and the last item at a stage."""
_STEPS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10000)
_FINE_STEPS = (1, 2, 5, 10, 20, 50, 100)
"""Ranks that are named on the axis: of few, those between are named too."""


@style.sentence_if_empty
def evidence_ranks_by_stage(stages: pl.DataFrame, *, k: int = 10, title: str = "") -> go.Figure:
    """Draw where each evidence item stands after each stage, the first ``k`` ranks shaded.

    A line joins a stage and the one that works on its ranking, which is named ``… | stage``; what
    stands alone, such as the scores that a first stage puts together, has marks without lines.
    A stage is named without the file of its model, and with ``(…)`` for parameters where they find
    no room; all of them are shown on hover. The last ranks stand on the right.

    :param stages: ``stage`` (in order), ``text`` (of an item) and ``rank``, null where it is not
        ranked: :attr:`memlab.explanation.Explanation.stages`. Where it has a ``snippet``, the
        legend names an item by it, else by the start of its text.

    >>> import polars as pl
    >>> from memlab.figures import anatomy
    >>> rows = {"stage": ["bm25", "… | mmr"], "text": ["I saw Dr. Lee."] * 2, "rank": [40, 3]}
    >>> list(anatomy.evidence_ranks_by_stage(pl.DataFrame(rows)).data[0].y)
    [40, 3]
    """
    style.check_columns(stages, ("stage", "text", "rank"), "through_stages")
    stage_order = style.distinct_values(stages, "stage")
    deepest = max(int(stages["rank"].max() or 1), 2 * k)  # type: ignore[arg-type]
    missing_rank = deepest * 1.6
    item_traces = list[Any]()
    item_names = list[str]()
    last_ranks = list[int | None]()
    name_column = "text"
    if "snippet" in stages.columns:
        name_column = "snippet"
    # Two items may have one text.
    numbered = stages.with_columns(copy=pl.int_range(pl.len()).over("stage", "text"))
    n_items = numbered.n_unique(["text", "copy"])
    mark_distance = min(_APART, _SPREAD / n_items)
    # Two lines an item fit a column of a paper up to so many items.
    name_lines = 1
    if n_items <= 5:
        name_lines = 2
    for item_number, ((item_text, _), item_rows) in enumerate(
        numbered.group_by("text", "copy", maintain_order=True)
    ):
        rank_by_stage = dict(item_rows.select("stage", "rank").iter_rows())
        mark_places = list[float]()
        mark_heights = list[float | None]()
        hover_texts = list[str]()
        for stage_number, stage_name in enumerate(stage_order):
            if stage_number and not printable_line(stage_name).startswith(_FOLLOWS):
                mark_places.append(stage_number - 0.5)
                mark_heights.append(None)
                hover_texts.append("")
            stage_rank = rank_by_stage.get(stage_name)
            # Items of one rank stand side by side.
            mark_places.append(stage_number + mark_distance * (item_number - (n_items - 1) / 2))
            mark_heights.append(stage_rank or missing_rank)
            rank_text = f"{drawable_text(stage_name)}: {stage_rank or 'not ranked'}"
            hover_texts.append(f"{rank_text}<br>{drawable_text(item_text)}")
        last_ranks.append(rank_by_stage.get(stage_order[-1]))
        item_names.append(cut_to_width(item_rows[name_column][0], name_lines * 230, style.SMALL))
        item_traces.append(
            style.marked_line(
                mark_places,
                mark_heights,
                item_names[-1],
                len(style.PALETTE) + item_number,  # looks that no usual system has
                showlegend=True,
                text=hover_texts,
                hoverinfo="text",
            )
        )
    tick_steps = _FINE_STEPS if deepest <= 10 * k else _STEPS
    rank_ticks: list[tuple[float, str]] = [
        (tick_rank, f"{tick_rank:,}") for tick_rank in tick_steps if tick_rank <= deepest
    ]
    if stages["rank"].null_count():
        rank_ticks.append((missing_rank, "not ranked"))
    rank_range = [math.log10(missing_rank * 1.25), math.log10(0.8)]
    inks = [item_trace.line.color for item_trace in item_traces]
    rank_texts = [f"{last_rank:,}" for last_rank in last_ranks if last_rank is not None]
    right_px = 8 + math.ceil(widest_px(rank_texts, style.SMALL))
    help_text = _shading_and_line_help(stage_order, k)
    rank_notes = _last_rank_notes(last_ranks, inks, rank_range)
    tick_places, tick_texts = map(list, zip(*rank_ticks, strict=True))

    def layout_for(px: int) -> style.FigureLayout:
        stage_room = (px - _LEFT_PX - right_px) / len(stage_order)
        stage_heads = [
            style.join_lines(_wrap_stage_name(stage_name, max(stage_room - 8, 30)))
            for stage_name in _whole_stage_names(stage_order)
        ]
        heads_height = 24 + 12 * max(stage_head.count("<br>") + 1 for stage_head in stage_heads)
        shaded_band = {
            "type": "rect",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "yref": "y",
            "y0": 0.8,
            "y1": k + 0.5,
            "fillcolor": style.rgba_colour(style.EVIDENCE, 0.25),
            "line": {"width": 0},
            "layer": "below",
        }
        return style.layout(
            px,
            plot_px=_PLOT_PX,
            right=right_px,
            title=title,
            head_px=_HEAD_PX,
            left=_LEFT_PX,
            bottom=heads_height,
            names=item_names,
            shapes=[shaded_band],
            xaxis={
                "tickvals": list(range(len(stage_order))),
                "ticktext": stage_heads,
                "range": [-0.4, len(stage_order) - 0.6],
            },
            yaxis={
                "type": "log",
                "range": rank_range,
                "tickvals": tick_places,
                "ticktext": tick_texts,
                "title": {"text": "rank (log scale)"},
            },
            annotations=[
                *rank_notes,
                style.text_annotation(
                    escape(cut_to_width(help_text, px - _LEFT_PX - right_px, 8)),
                    1,
                    1,
                    "right bottom",
                    yshift=2,
                    font={"color": style.GREY, "size": 8},
                ),
            ],
        )

    return style.make_figure(item_traces, layout_for)


def _whole_stage_names(stage_order: list[str]) -> list[str]:
    """Name a stage that works on the ranking of another with that one in front."""
    whole_names = list[str]()
    for stage_name in stage_order:
        whole_name = stage_name
        if whole_names and printable_line(stage_name).startswith(_FOLLOWS):
            whole_name = whole_names[-1] + printable_line(stage_name).removeprefix(_FOLLOWS)
        whole_names.append(whole_name)
    return whole_names


def _last_rank_notes(
    last_ranks: list[int | None], inks: list[str], axis_range: list[float]
) -> list[style.Annotation]:
    """Write the ranks at the last stage on the right, in the colours of their items."""
    ranked = [
        (last_rank, ink)
        for last_rank, ink in zip(last_ranks, inks, strict=True)
        if last_rank is not None
    ]
    low_axis, high_axis = axis_range
    px_per_unit = _PLOT_PX / (high_axis - low_axis)
    rank_heights = [(math.log10(last_rank) - low_axis) * px_per_unit for last_rank, _ in ranked]
    note_heights = spread_labels(rank_heights, _RANK_GAP_PX, low=4, high=_PLOT_PX - 4)
    return [
        style.text_annotation(
            f"{last_rank:,}",
            1,
            note_height / _PLOT_PX,
            "left middle",
            xshift=3,
            font={"size": style.SMALL, "color": ink},
        )
        for (last_rank, ink), note_height in zip(ranked, note_heights.tolist(), strict=True)
    ]


def _shading_and_line_help(stage_names: list[str], k: int) -> str:
    """Say what is shaded and what lines join."""
    help_text = f"shaded: first {k}"
    if any(printable_line(stage).startswith(_FOLLOWS) for stage in stage_names):
        help_text += "; a line: reranked by the next stage"
    return help_text


def _wrap_stage_name(stage_name: str, max_px: float) -> list[str]:
    """Write the name of a stage in at most three lines, parameters where they have room."""
    whole_name = printable_line(hide_model_files_in_pipeline_text(stage_name))
    name_lines = wrap(whole_name, max_px, style.SMALL, lines=3)
    if " ".join(name_lines) == whole_name:
        return name_lines
    return wrap(re.sub(r"\(.*\)", "(…)", whole_name), max_px, style.SMALL, lines=3)
