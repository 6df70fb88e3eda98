"""The anatomy of one question: what was ranked where, and what was missed."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._text import clean, escape, fit, text_px, wrap

_ROW_PX = 15
_RANK_PX, _GAP_PX = 22, 8
_ABSENT = "—"


def question_anatomy(
    hits: pl.DataFrame, *, misses: pl.DataFrame | None = None, question: str = "", system: str = ""
) -> go.Figure:
    """Draw the ranking of one question row by row: score, session, text, and which rows are evidence.

    Evidence is a filled mark on a yellow row. Sessions that hold evidence have a colour each; rows of other sessions
    are grey. Evidence that is not among the hits is listed under them.

    :param hits: ``rank``, ``score``, ``session`` (a short name or an ordinal), ``evidence`` (bool) and ``text``, the
        first k in order of rank.
    :param misses: evidence that is not among the hits: ``session``, ``text`` and ``rank`` (null where it was not
        retrieved at all).
    :param question: drawn above the ranking.
    :param system: the name of the ranking, drawn under the score axis.

    >>> import polars as pl
    >>> from memlab.figures import anatomy
    >>> hit = {"rank": 1, "score": 0.7, "session": "s3", "evidence": True, "text": "I saw Dr. Lee."}
    >>> fig = anatomy.question_anatomy(pl.DataFrame([hit]), question="How many doctors?")
    >>> "1 of 1" in fig.layout.annotations[-1].text
    True
    """
    style.need(hits, ("rank", "score", "session", "evidence", "text"), "question_anatomy")
    hits = hits.sort("rank")
    none = pl.DataFrame(schema={"rank": pl.Int64, "session": pl.String, "text": pl.String})
    lost = none if misses is None else misses
    if lost.height:
        style.need(lost, ("rank", "session", "text"), "question_anatomy (misses)")
        lost = lost.sort("rank", nulls_last=True)
    evidence_sessions = [*hits.filter(pl.col("evidence"))["session"].to_list(), *lost["session"].to_list()]
    colours = {s: style.colour(i) for i, s in enumerate(dict.fromkeys(map(str, evidence_sessions)))}
    return style.finish(_marks(hits, colours), _layout(hits, lost, colours, question=question, system=system))


def _marks(hits: pl.DataFrame, colours: dict[str, str]) -> list[go.Scatter]:
    y = list(range(hits.height))
    tints = [colours.get(str(s), style.GREY) for s in hits["session"]]
    filled = [t if e else "white" for t, e in zip(tints, hits["evidence"], strict=True)]
    hover = [f"rank {r}: {escape(clean(t))}" for r, t in hits.select("rank", "text").iter_rows()]
    decline = go.Scatter(x=hits["score"].to_list(), y=y, mode="lines", line={"color": style.NOISE, "width": 1},
                         hoverinfo="skip", name="score")  # fmt: skip
    marks = go.Scatter(
        x=hits["score"].to_list(), y=y, mode="markers", text=hover, hoverinfo="text", name="rank",
        marker={"size": [11 if e else 6 for e in hits["evidence"]], "color": filled, "opacity": 1,
                "symbol": ["star" if e else "circle" for e in hits["evidence"]],
                "line": {"color": tints, "width": 1.4}},
        cliponaxis=False,
    )  # fmt: skip
    return [decline, marks]


def _layout(hits: pl.DataFrame, lost: pl.DataFrame, colours: dict[str, str], *, question: str, system: str) -> Any:
    n_hits, all_of_it = int(hits["evidence"].sum()), int(hits["evidence"].sum()) + lost.height
    summary = f"{n_hits} of {all_of_it} pieces of evidence in the top {int(hits['rank'][-1])}"
    rows = hits.height + (lost.height + 1.4 if lost.height else 0)
    low, high = float(hits["score"].min()), float(hits["score"].max())  # type: ignore[arg-type]
    pad = (high - low or abs(high) or 1.0) * 0.12

    def layout_for(px: int) -> dict[str, Any]:
        lines = wrap(question, px - 16, style.TEXT + 1, lines=3, bold=True) if question else []
        top = 30 + 14 * len(lines)
        sessions = [clean(s) for s in [*hits["session"], *lost["session"]]]
        session_px = min(max(text_px(s, style.SMALL) for s in sessions), px * 0.2) + 4
        strip_px = int(px * 0.22)
        columns = {"session": _RANK_PX + strip_px + _GAP_PX, "text": _RANK_PX + strip_px + 2 * _GAP_PX + session_px}
        plot = {"columns": columns, "room": px - columns["text"] - 6, "session_px": session_px}
        texts = [t for i, row in enumerate(hits.iter_rows(named=True)) for t in _row(i, row, colours, plot)]
        texts += _missed(lost, hits.height, colours, plot)
        header = [f"<b>{escape(line)}</b>" for line in lines]
        header.append(f"<span style='font-size:{style.SMALL}px;color:{style.GREY}'>{summary}</span>")
        block = {"yref": "paper", "y": 1, "yanchor": "bottom", "yshift": 5, "align": "left", **_at(8)}
        texts.append({"text": "<br>".join(header), "font": {"size": style.TEXT + 1}, **block})
        axis = fit(f"score, {system}" if system else "score", strip_px * 1.25, style.SMALL)
        return {
            "annotations": texts, "shapes": _bands(hits, px), "showlegend": False,
            "height": int(top + _ROW_PX * rows + 34),
            "margin": {"t": top, "l": _RANK_PX, "r": px - _RANK_PX - strip_px, "b": 34},
            "xaxis": {"range": [low - pad, high + pad], "nticks": 3, "anchor": "free", "position": 0,
                      "title": {"text": escape(axis), "font": {"size": style.SMALL}}},
            "yaxis": {"visible": False, "range": [rows - 0.5, -0.5]},
        }  # fmt: skip

    return layout_for


def _at(px: float) -> dict[str, Any]:
    """Place an annotation by pixels from the left edge of the picture, whose plot begins at the rank column."""
    return {"x": 0, "xref": "paper", "xanchor": "left", "xshift": px - _RANK_PX}


def _row(i: float, row: dict[str, Any], colours: dict[str, str], plot: dict[str, Any]) -> list[dict[str, Any]]:
    tint = colours.get(str(row["session"]))
    proof = bool(row.get("evidence", True))
    ink = style.INK if proof else style.GREY
    common = {"y": i, "yanchor": "middle", "showarrow": False, "font": {"size": style.SMALL, "color": ink}}
    rank = _ABSENT if row["rank"] is None else str(row["rank"])
    session = escape(fit(row["session"], plot["session_px"], style.SMALL))
    text = escape(fit(row["text"], plot["room"], style.SMALL))
    named = {"size": style.SMALL, "color": style.darker(tint) if tint else style.GREY}
    return [
        {**common, "text": rank, **_at(_RANK_PX - 4), "xanchor": "right"},
        {**common, "text": f"<b>{session}</b>" if proof else session, **_at(plot["columns"]["session"]), "font": named},
        {**common, "text": text, **_at(plot["columns"]["text"])},
    ]


def _missed(lost: pl.DataFrame, after: int, colours: dict[str, str], plot: dict[str, Any]) -> list[dict[str, Any]]:
    if not lost.height:
        return []
    first = after + 1.3
    heading = f"<b>missed</b> (rank, or {_ABSENT} where not retrieved)"
    tint = {"font": {"size": style.SMALL, "color": style.PALETTE[1]}, "showarrow": False}
    head = {"text": heading, "y": first - 1.0, "yanchor": "middle", **tint, **_at(plot["columns"]["session"])}
    rows = [t for i, row in enumerate(lost.iter_rows(named=True)) for t in _missed_row(first + i, row, colours, plot)]
    return [head, *rows]


def _missed_row(y: float, row: dict[str, Any], colours: dict[str, str], plot: dict[str, Any]) -> list[dict[str, Any]]:
    """A missed piece has no place on the score axis: its rank stands beside its session instead."""
    rank, *rest = _row(y, {**row, "evidence": True}, colours, plot)
    return [{**rank, **_at(plot["columns"]["session"] - 6), "xanchor": "right"}, *rest]


def _bands(hits: pl.DataFrame, px: int) -> list[dict[str, Any]]:
    strip = int(px * 0.22)
    tint = {"fillcolor": style.EVIDENCE, "opacity": 0.28, "line": {"width": 0}}
    across = {"xref": "paper", "x0": -_RANK_PX / strip, "x1": (px - _RANK_PX) / strip}
    return [
        {"type": "rect", **across, "y0": i - 0.5, "y1": i + 0.5, "layer": "below", **tint}
        for i, proof in enumerate(hits["evidence"])
        if proof
    ]
