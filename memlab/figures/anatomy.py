"""The anatomy of one question: what was ranked where, what was missed, and where the evidence was after each stage."""

from __future__ import annotations

import math
from typing import Any

import plotly.graph_objects as go
import polars as pl

from memlab.figures import style
from memlab.figures._text import (
    begin_at_relevant_sentence,
    cut_to_width,
    drawable_text,
    escape,
    printable_line,
    text_px,
    wrap,
)

_ROW_PX = 15
_GAP_PX, _AXIS_PX, _HEAD_PX = 8, 34, 18
_ABSENT = "—"


def question_anatomy(hits: pl.DataFrame, *, misses: pl.DataFrame, question: str = "", system: str = "") -> go.Figure:
    """Draw the ranking of one question row by row: score, session, text, and which rows are evidence.

    Evidence is a filled mark on a yellow row. Sessions that hold evidence have a colour each; rows of other sessions
    are grey. Evidence that is not among the hits is listed under them. A text begins at the sentence that shares most
    words with the question.

    :param hits: ``rank``, ``score``, ``session`` (a short name or an ordinal), ``evidence`` (bool) and ``text``, the
        first k in order of rank.
    :param misses: evidence that is not among the hits: ``session``, ``text`` and ``rank`` (null where it was not
        retrieved at all).
    :param question: drawn above the ranking.
    :param system: the name of the ranking, named under the question.

    >>> import polars as pl
    >>> from memlab.figures import anatomy
    >>> hit = {"rank": 1, "score": 0.7, "session": "s3", "evidence": True, "text": "I saw Dr. Lee."}
    >>> hits = pl.DataFrame([hit])
    >>> fig = anatomy.question_anatomy(hits, misses=hits.clear(), question="How many doctors?")
    >>> "1 of 1" in fig.layout.annotations[-1].text
    True
    """
    style.check_columns(hits, ("rank", "score", "session", "evidence", "text"), "question_anatomy")
    rows = hits.sort("rank").to_dicts()
    lost = [row | {"evidence": True} for row in misses.sort("rank", nulls_last=True).to_dicts()]
    listed = [
        row | {"session": printable_line(row["session"]), "text": begin_at_relevant_sentence(row["text"], question)}
        for row in (*rows, *lost)
    ]
    colours = {s: style.colour(i) for i, s in enumerate(dict.fromkeys(r["session"] for r in listed if r["evidence"]))}
    x, y, proofs = [row["score"] for row in rows], list(range(len(rows))), [bool(row["evidence"]) for row in rows]
    tints = [colours.get(row["session"], style.GREY) for row in listed[: len(rows)]]
    marks = go.Scatter(
        x=x, y=y, mode="markers", name="rank", cliponaxis=False, hoverinfo="text",
        text=[f"rank {row['rank']}: {escape(row['text'])}" for row in listed[: len(rows)]],
        marker={"size": [11 if e else 6 for e in proofs], "symbol": ["star" if e else "circle" for e in proofs],
                "color": [t if e else "white" for t, e in zip(tints, proofs, strict=True)], "opacity": 1,
                "line": {"color": tints, "width": 1.4}},
    )  # fmt: skip
    summary = f"{sum(proofs)} of {sum(proofs) + len(lost)} evidence items in the first {rows[-1]['rank']}"
    summary += f" of {printable_line(system)}" if system else ""
    low, high = min(x), max(x)
    pad = (high - low or abs(high) or 1.0) * 0.12
    ranks = [_ABSENT if row["rank"] is None else str(row["rank"]) for row in listed]
    rank_px = max(text_px(rank, style.SMALL) for rank in ranks) + 10

    def layout_for(px: int) -> dict[str, Any]:
        strip = int(px * (0.185 if px <= style.WIDTHS["column"] else 0.2))
        session_px = min(max(text_px(row["session"], style.SMALL) for row in listed), px * 0.2) + 4
        # Pixels from the left edge of the picture, whose plot begins at the rank column.
        session_at = rank_px + strip + _GAP_PX
        text_at = session_at + _GAP_PX + session_px

        def written(text: str, down: float, at: float, color: str, side: str = "left") -> dict[str, Any]:
            font = {"size": style.SMALL, "color": color}
            return style.text_note(
                text, 0, 1, f"{side} middle", xshift=at - rank_px, yshift=-down, font=font, borderpad=1
            )

        texts = list[dict[str, Any]]()
        for i, (row, rank) in enumerate(zip(listed, ranks, strict=True)):
            tint, ink = colours.get(row["session"]), style.INK if row["evidence"] else style.GREY
            session = escape(cut_to_width(row["session"], session_px, style.SMALL))
            down = _ROW_PX * (i + 0.5) + _HEAD_PX * (i >= len(rows))
            texts += [
                written(rank, down, rank_px - 4, ink, "right"),
                written(f"<b>{session}</b>" if row["evidence"] else session, down, session_at,
                        style.darker(tint) if tint else style.GREY),
                written(escape(cut_to_width(row["text"], px - text_at - 6, style.SMALL)), down, text_at, ink),
            ]  # fmt: skip
        if lost:
            heading = f"<b>missed</b> (rank, or {_ABSENT} where not retrieved)"
            texts.append(written(heading, _ROW_PX * len(rows) + _HEAD_PX / 2 + 1, session_at, style.PALETTE[1]))
        lines = wrap(question, px - 16, style.TEXT + 1, lines=3, bold=True)
        header = [f"<b>{escape(line)}</b>" for line in lines]
        header.append(f"<span style='font-size:{style.SMALL}px;color:{style.GREY}'>{escape(summary)}</span>")
        texts.append(style.text_note("<br>".join(header), 0, 1, "left bottom", xshift=8 - rank_px, yshift=5,
                                align="left", font={"size": style.TEXT + 1}))  # fmt: skip
        look = {"type": "rect", "layer": "below", "fillcolor": style.EVIDENCE, "opacity": 0.28, "line": {"width": 0},
                "xref": "paper", "x0": -rank_px / strip, "x1": (px - rank_px) / strip}  # fmt: skip
        return style.layout(
            px, plot_px=_ROW_PX * len(rows), head_px=20 + 14 * len(lines), left=rank_px, right=px - rank_px - strip,
            # What was missed has no score: it stands under the axis, beside whose title there is room.
            bottom=max(_AXIS_PX, _HEAD_PX + _ROW_PX * len(lost) + 4 if lost else 0), annotations=texts,
            shapes=[{**look, "y0": i - 0.5, "y1": i + 0.5} for i, proof in enumerate(proofs) if proof],
            xaxis={"range": [low - pad, high + pad], "nticks": 3,
                   "title": {"text": "score", "font": {"size": style.SMALL}}},
            yaxis={"visible": False, "range": [len(rows) - 0.5, -0.5]},
        )  # fmt: skip

    return style.finish_figure([style.line(x, y, "score", style.NOISE, width=1, hoverinfo="skip"), marks], layout_for)


def through_stages(stages: pl.DataFrame, *, k: int = 10, title: str = "") -> go.Figure:
    """Draw where each evidence item of a question stands after each stage, the first ``k`` ranks shaded.

    :param stages: ``stage`` (in order), ``text`` (of an item) and ``rank``, null where it is not ranked:
        :attr:`memlab.evaluate.why.Explanation.stages` with the texts of its evidence.

    >>> import polars as pl
    >>> from memlab.figures import anatomy
    >>> rows = {"stage": ["bm25", "… | mmr"], "text": ["I saw Dr. Lee."] * 2, "rank": [40, 3]}
    >>> list(anatomy.through_stages(pl.DataFrame(rows)).data[0].y)
    [40, 3]
    """
    style.check_columns(stages, ("stage", "text", "rank"), "through_stages")
    order = style.distinct_values(stages, "stage")
    deepest = max(int(stages["rank"].max() or 1), 2 * k)  # type: ignore[arg-type]
    missing = deepest * 1.6
    traces, names = list[Any](), list[str]()
    for i, (item, rows) in enumerate(style.rows_by_value(stages, "text")):
        ranks = dict(rows.select("stage", "rank").iter_rows())
        hover = [
            f"{drawable_text(stage)}: {ranks.get(stage) or 'not ranked'}<br>{drawable_text(item)}" for stage in order
        ]
        heights = [ranks.get(stage) or missing for stage in order]
        names.append(cut_to_width(begin_at_relevant_sentence(item, title), 2 * 230, style.SMALL))
        traces.append(style.draw_marked_line(list(range(len(order))), heights, names[-1], i, showlegend=True,
                                   text=hover, hoverinfo="text"))  # fmt: skip
    ticks: list[tuple[float, str]] = [
        (v, f"{v:,}") for v in (1, 3, 10, 30, 100, 300, 1000, 3000, 10000) if v == 1 or v < deepest
    ]
    ticks += [(missing, "not ranked")] if stages["rank"].null_count() else []

    def layout_for(px: int) -> dict[str, Any]:
        room = (px - 88) / len(order)
        heads = [style.join_lines(wrap(stage, max(room - 8, 30), style.SMALL, lines=3)) for stage in order]
        deep = 24 + 12 * max(head.count("<br>") + 1 for head in heads)
        band = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "y0": 0.8, "y1": k + 0.5,
                "fillcolor": style.faded(style.EVIDENCE, 0.25), "line": {"width": 0}, "layer": "below"}  # fmt: skip
        return style.layout(
            px, plot_px=200, title=title, left=76, bottom=deep, names=names, shapes=[band],
            xaxis={"tickvals": list(range(len(order))), "ticktext": heads, "range": [-0.4, len(order) - 0.6]},
            yaxis={"type": "log", "range": [math.log10(missing * 1.25), math.log10(0.8)],
                   "tickvals": [v for v, _ in ticks], "ticktext": [text for _, text in ticks],
                   "title": {"text": "rank"}},
            annotations=[style.text_note(f"first {k}", 1, math.log10(k + 0.5), "right top", yref="y", xshift=-2,
                                    font={"color": style.GREY, "size": 8})],
        )  # fmt: skip

    return style.finish_figure(traces, layout_for)
