"""What is in a dataset: kinds of questions, evidence, sessions over time, lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._text import clean, escape, fit, plain, text_px

_MOST_PIECES = 10


def question_kinds(frame: pl.DataFrame, *, title: str = "") -> go.Figure:
    """Draw the number of questions of each kind, split by the number of evidence sessions.

    :param frame: ``question_type``, ``evidence_sessions`` (a number or a text such as "4+") and ``count``, a row each.

    >>> import polars as pl
    >>> from memlab.figures import corpus
    >>> counts = {"question_type": ["temporal", "temporal"], "evidence_sessions": [1, 2], "count": [5, 3]}
    >>> len(corpus.question_kinds(pl.DataFrame(counts)).data)
    2
    """
    style.need(frame, ("question_type", "evidence_sessions", "count"), "question_kinds")
    totals = frame.group_by("question_type", maintain_order=True).agg(pl.col("count").sum())
    kinds, sums = totals.sort("count", maintain_order=True).get_columns()
    splits = sorted(style.series(frame, "evidence_sessions"), key=lambda v: (len(str(v).rstrip("+")), str(v)))
    traces: list[Any] = []
    for i, split in enumerate(splits):
        shade = style.SEQUENCE[round(i * (len(style.SEQUENCE) - 1) / max(len(splits) - 1, 1))]
        of_split = dict(frame.filter(pl.col("evidence_sessions") == split).select("question_type", "count").iter_rows())
        traces.append(
            go.Bar(y=list(range(len(kinds))), x=[of_split.get(kind, 0) for kind in kinds], orientation="h",
                   name=plain(split), marker={"color": shade, "line": {"color": "white", "width": 0.5}})
        )  # fmt: skip
    named = [str(split) for split in splits]

    def layout_for(px: int) -> dict[str, Any]:
        left = min(int(max(text_px(clean(kind), style.SMALL) for kind in kinds)) + 14, px * 2 // 5)
        plot_px = max(22 * len(kinds), 44)
        legend = {"traceorder": "normal", "y": -40 / plot_px,
                  "title": {"text": "sessions that the evidence is in", "side": "top", "font": {"size": style.SMALL}},
                  "entrywidth": max(text_px(name, style.SMALL) for name in named) + 2}  # fmt: skip
        at = {"xref": "x", "yref": "y", "xshift": 2, "bgcolor": "rgba(255,255,255,0.85)"}
        return style.layout(
            px, title=title, names=named, plot_px=plot_px, left=left, legend=legend, barmode="stack",
            right=int(text_px(f"{max(sums):,}", style.SMALL)) + 14, bottom=40 + style.LEGEND_ROW_PX,
            annotations=[style.note(f"{v:,}", v, i, "left middle", **at) for i, v in enumerate(sums)],
            xaxis={"title": {"text": "questions"}, "range": [0, max(sums)], "nticks": 6},
            yaxis={"tickvals": list(range(len(kinds))), "range": [-0.5, len(kinds) - 0.5], "showgrid": False,
                   "ticks": "", "ticktext": [escape(fit(kind, left - 12, style.SMALL)) for kind in kinds]},
        )  # fmt: skip

    return style.finish(traces, layout_for)


def evidence_histogram(frame: pl.DataFrame, *, title: str = "") -> go.Figure:
    """Draw how many pieces of evidence questions need; those that need more than ten share the last bar.

    :param frame: ``n_evidence``, a row a question.
    """
    style.need(frame, ("n_evidence",), "evidence_histogram")
    pieces = frame["n_evidence"].drop_nulls().cast(pl.Int64)
    first = min(int(pieces.min() or 0), 1)  # type: ignore[arg-type]
    counts = np.bincount(pieces.clip(upper_bound=_MOST_PIECES).to_numpy(), minlength=1)[first:]
    x = [str(i) for i in range(first, first + len(counts))]
    if (pieces > _MOST_PIECES).any():
        x[-1] += "+"
    bars = go.Bar(
        x=x, y=counts.tolist(), name="questions", marker={"color": style.colour(0)}, cliponaxis=False,
        text=[f"{v:,}" if v else "" for v in counts], textposition="outside", textfont={"size": style.SMALL},
    )  # fmt: skip
    return style.plot(
        [bars], title=title, plot_px=160, left=46,
        xaxis={"type": "category", "showgrid": False, "title": {"text": "pieces of evidence that the answer needs"}},
        yaxis={"title": {"text": f"questions (n = {len(pieces):,})", "standoff": 3}, "tickformat": ",",
               "range": [0, float(counts.max()) * 1.14 or 1]},
    )  # fmt: skip


def token_lengths(frame: pl.DataFrame, *, unit: str = "turn", title: str = "") -> go.Figure:
    """Draw the distribution of lengths in tokens on a log axis, with the median marked.

    :param frame: ``tokens``, a row a text; ``role`` splits it into lines.
    :param unit: what a row is.
    """
    style.need(frame, ("tokens",), "token_lengths")
    texts = frame if "role" in frame.columns else frame.with_columns(role=pl.lit(f"{unit}s"))
    texts = texts.drop_nulls(["tokens", "role"]).with_columns(tokens=pl.max_horizontal("tokens", pl.lit(1)))
    style.need(texts, (), "token_lengths")
    shortest, longest = texts.select(pl.col("tokens").min(), longest=pl.col("tokens").max().cast(pl.Float64)).row(0)
    edges = np.unique(np.round(np.geomspace(shortest, longest + 1, 40))) - 0.5
    edges = np.append(edges, longest + 0.5) if edges[-1] <= longest else edges
    traces, names, rules = list[Any](), list[str](), list[dict[str, Any]]()
    for i, (role, of_role) in enumerate(style.parts(texts, "role")):
        values = of_role["tokens"].to_numpy()
        density = np.histogram(values, edges)[0] / np.diff(np.log10(edges)) / len(values)
        middle = float(np.median(values))
        names.append(f"{clean(role)}: median {middle:,.0f}, n = {len(values):,}")
        tint = style.colour(i)
        traces.append(style.line(
            np.repeat(edges, 2), [0.0, *np.repeat(density, 2), 0.0], style.named(names[-1]), tint, width=1.2,
            dash=style.dash(i), line={"simplify": False}, fill="tozeroy", hoverinfo="name",
            fillcolor=style.faded(tint, 0.18),
        ))  # fmt: skip
        rules.append({"type": "line", "x0": middle, "x1": middle, "yref": "paper", "y0": 0, "y1": 1,
                      "line": {"color": tint, "width": 1, "dash": "dot"}})  # fmt: skip
    decades = [10.0**e for e in range(int(np.ceil(np.log10(longest))) + 1)]
    steps = (1, 2, 5) if len(decades) <= 3 else (1, 3) if len(decades) <= 5 else (1,)
    ticks = [v * m for v in decades for m in steps if edges[0] <= v * m <= longest * 1.05]

    return style.plot(
        traces, title=title, names=names, plot_px=150, shapes=rules,
        xaxis={"type": "log", "title": {"text": f"tokens in a {plain(unit)} (log scale)"}, "tickangle": 0,
               "tickvals": ticks, "ticktext": [f"{t:,.0f}" for t in ticks],
               "range": [float(np.log10(edges[0])), float(np.log10(longest * 1.1))]},
        yaxis={"title": {"text": f"density of {plain(unit)}s"}, "rangemode": "tozero", "nticks": 5},
    )  # fmt: skip
