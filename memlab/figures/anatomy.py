"""The anatomy of one question: where its evidence was after each stage."""

from __future__ import annotations

import math
import re
from typing import Any

import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures._text_measuring import cut_to_width, drawable_text, printable_line, wrap
from memlab.system_names import hide_model_files

_HEAD_PX = 12
_FOLLOWS = "…"
"""How the name of a stage begins that works on the ranking of the one before it."""
_APART, _SPREAD = 0.08, 0.4
"""Between the marks of two items at a stage, and of all, where 1 is from stage to stage."""
_STEPS = (1, 3, 10, 30, 100, 300, 1000, 3000, 10000)
_FINE_STEPS = (1, 2, 5, 10, 20, 50, 100)
"""Ranks that are named on the axis: of few, those between are named too."""


@style.said_where_empty
def evidence_ranks_by_stage(stages: pl.DataFrame, *, k: int = 10, title: str = "") -> go.Figure:
    """Draw where each evidence item stands after each stage, the first ``k`` ranks shaded.

    A line joins a stage and the one that works on its ranking, which is named ``… | stage``; what
    stands alone, such as the scores that a first stage puts together, has marks without lines.
    A stage is named without the file of its model, and with ``(…)`` for parameters where they find
    no room; all of them are shown on hover.

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
    order = style.distinct_values(stages, "stage")
    deepest = max(int(stages["rank"].max() or 1), 2 * k)  # type: ignore[arg-type]
    missing = deepest * 1.6
    traces, names = list[Any](), list[str]()
    short = "snippet" if "snippet" in stages.columns else "text"
    numbered = stages.with_columns(
        copy=pl.int_range(pl.len()).over("stage", "text")
    )  # two items may have one text
    items = numbered.n_unique(["text", "copy"])
    apart = min(_APART, _SPREAD / items)
    # Two lines an item fit a column of a paper up to so many items.
    lines = 2 if items <= 5 else 1
    for i, ((item, _), rows) in enumerate(numbered.group_by("text", "copy", maintain_order=True)):
        ranks = dict(rows.select("stage", "rank").iter_rows())
        places, heights, hover = list[float](), list[float | None](), list[str]()
        for place, stage in enumerate(order):
            if place and not printable_line(stage).startswith(_FOLLOWS):
                places.append(place - 0.5)
                heights.append(None)
                hover.append("")
            rank = ranks.get(stage)
            # Items of one rank stand side by side.
            places.append(place + apart * (i - (items - 1) / 2))
            heights.append(rank or missing)
            told = f"{drawable_text(stage)}: {rank or 'not ranked'}"
            hover.append(f"{told}<br>{drawable_text(item)}")
        names.append(cut_to_width(rows[short][0], lines * 230, style.SMALL))
        traces.append(
            style.marked_line(
                places,
                heights,
                names[-1],
                i,
                showlegend=True,
                text=hover,
                hoverinfo="text",
            )
        )
    steps = _FINE_STEPS if deepest <= 10 * k else _STEPS
    ticks: list[tuple[float, str]] = [(v, f"{v:,}") for v in steps if v <= deepest]
    ticks += [(missing, "not ranked")] if stages["rank"].null_count() else []

    def layout_for(px: int) -> dict[str, Any]:
        room = (px - 88) / len(order)
        heads = [style.join_lines(_stage_lines(stage, max(room - 8, 30))) for stage in order]
        deep = 24 + 12 * max(head.count("<br>") + 1 for head in heads)
        band = {
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
            plot_px=200,
            title=title,
            head_px=_HEAD_PX,
            left=76,
            bottom=deep,
            names=names,
            shapes=[band],
            xaxis={
                "tickvals": list(range(len(order))),
                "ticktext": heads,
                "range": [-0.4, len(order) - 0.6],
            },
            yaxis={
                "type": "log",
                "range": [math.log10(missing * 1.25), math.log10(0.8)],
                "tickvals": [v for v, _ in ticks],
                "ticktext": [text for _, text in ticks],
                "title": {"text": "rank"},
            },
            annotations=[
                style.text_note(
                    f"shaded: first {k}",
                    1,
                    1,
                    "right bottom",
                    yshift=2,
                    font={"color": style.GREY, "size": 8},
                )
            ],
        )

    return style.make_figure(traces, layout_for)


def _stage_lines(stage: str, px: float) -> list[str]:
    """Write the name of a stage in at most three lines, parameters where they have room."""
    whole = printable_line(hide_model_files(stage))
    lines = wrap(whole, px, style.SMALL, lines=3)
    return (
        lines
        if " ".join(lines) == whole
        else wrap(re.sub(r"\(.*\)", "(…)", whole), px, style.SMALL, lines=3)
    )
