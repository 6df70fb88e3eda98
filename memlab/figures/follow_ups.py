"""Follow-up questions: recall before and after rewriting, a conversation turn by turn, and a budget that fills up."""

from __future__ import annotations

import math
from typing import Any

import polars as pl

from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._rows import marked_rows, rows_layout
from memlab.figures._text import clean, plain

# A second factor beside colour, for print in grey.
_PATTERNS = ("", "/", "", "\\", "")


def recall(frame: pl.DataFrame, *, measure: str = "recall_all@10", title: str = "") -> go.Figure:
    """Draw recall by kind of follow-up, a mark a form of the question, with its interval.

    :param frame: a row a kind and form: ``kind``, ``form``, ``n``, ``mean``, ``low`` and ``high``, in the order to draw
        from the top.

    >>> import polars as pl
    >>> from memlab.figures import follow_ups
    >>> row = {"kind": "pronoun", "form": "as asked", "n": 9, "mean": 0.5, "low": 0.3, "high": 0.7}
    >>> len(follow_ups.recall(pl.DataFrame([row])).data)
    1
    """
    style.need(frame, ("kind", "form", "n", "mean", "low", "high"), "recall")
    forms, marks = style.series(frame, "form"), []
    for kind, rows in style.parts(frame, "kind"):
        name = f"{clean(kind)} (n = {rows['n'][0]:,})"
        for row in rows.iter_rows(named=True):
            i = forms.index(row["form"])
            marks.append({**row, "name": name, "x": row["mean"], "tint": style.colour(i), "fill": style.colour(i),
                          "symbol": style.SYMBOLS[i], "numbers": f"{row['mean']:.0%}", "series": row["form"],
                          "hover": f"{plain(row['form'])}: {row['mean']:.1%}"})  # fmt: skip
    return marked_rows(marks, span=(0, 1), between=" → ", xlabel=measure, key=style.key(forms), title=title,
                       xaxis={"zeroline": False})  # fmt: skip


def ranks(frame: pl.DataFrame, *, k: int = 10, title: str = "") -> go.Figure:
    """Draw a conversation turn by turn: where the last piece of a question's evidence stands in each ranking.

    The grey line is the cut at ``k``; what is not ranked at all stands at the right edge, as an open mark.

    :param frame: a row a turn and form, turns from the top: ``turn``, ``question``, ``form`` and ``rank`` (null where
        evidence is not ranked).
    """
    style.need(frame, ("turn", "question", "form", "rank"), "ranks")
    forms, turns = style.series(frame, "form"), style.parts(frame, "turn")
    most = max(float(frame["rank"].max() or 1), 2.0 * k)  # type: ignore[arg-type]
    edge = math.log10(most) + 0.1
    labels, traces = list[dict[str, Any]](), list[Any]()
    for i, (turn, rows) in enumerate(turns):
        y = float(len(turns) - i)
        rank_texts = ["–" if rank is None else str(rank) for rank in rows["rank"]]
        labels.append({"name": f"{turn}. {clean(rows['question'][0])}", "numbers": [" → ".join(rank_texts)], "y": y})
        places = [edge if rank is None else math.log10(rank) for rank in rows["rank"]]
        ends = [min(places), max(places)]
        traces.append(style.line(ends, [y - 0.75] * 2, "", style.NOISE, width=1, hoverinfo="skip", showlegend=False))
        for form, place, rank, text in zip(rows["form"], places, rows["rank"], rank_texts, strict=True):
            j = forms.index(form)
            tint, lane = style.colour(j), 0.1 * (j - (len(forms) - 1) / 2)
            traces.append(
                go.Scatter(x=[place], y=[y - 0.75 - lane], mode="markers", name=plain(form), showlegend=False,
                           text=[f"{plain(form)}: {text}"], hoverinfo="text",
                           marker={"size": 7, "symbol": style.SYMBOLS[j], "color": "white" if rank is None else tint,
                                   "line": {"color": tint, "width": 1.5}})
            )  # fmt: skip
    xlabel = f"rank of the last piece of evidence (log; line: first {k})"
    ticks = [tick for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500) if tick <= most]
    axis = {"zeroline": False, "tickvals": [math.log10(t) for t in ticks], "ticktext": list(map(str, ticks))}
    cut = {"type": "line", "x0": math.log10(k + 0.5), "x1": math.log10(k + 0.5), "y0": 0, "y1": 1, "yref": "paper",
           "layer": "below", "line": {"color": style.GREY, "width": 1, "dash": "dot"}}  # fmt: skip
    layout = rows_layout(labels, span=(0, edge), deep=2, xlabel=xlabel, key=f"{style.key(forms)}; open: not ranked",
                         title=title, xaxis=axis, shapes=[cut])  # fmt: skip
    return style.finish(traces, layout)


def filling(frame: pl.DataFrame, *, budget: int, unbounded: pl.DataFrame | None = None, title: str = "") -> go.Figure:
    """Draw what each context of a long session is made of, a column a question, under the budget.

    :param frame: ``question`` (number in the session), ``source`` and ``n_tokens``; the sources in the order in which
        they are stacked from below.
    :param budget: the most tokens of a context.
    :param unbounded: ``question`` and ``n_tokens`` that it would have with the whole session as it was said.
    """
    style.need(frame, ("question", "source", "n_tokens"), "filling")
    last = int(frame["question"].max())  # type: ignore[arg-type]
    traces: list[Any] = []
    for i, (source, of_source) in enumerate(style.parts(frame, "source")):
        rows = of_source.sort("question", maintain_order=True)
        pattern = {"shape": _PATTERNS[i % 5], "fgcolor": "white", "fillmode": "overlay", "size": 5, "solidity": 0.25}
        traces.append(
            go.Bar(x=rows["question"].to_list(), y=rows["n_tokens"].to_list(), name=style.named(source), width=0.86,
                   marker={"color": style.colour(i), "line": {"width": 0}, "pattern": pattern}, hoverinfo="name+x+y")
        )  # fmt: skip
    ends = pl.DataFrame({"question": [0.4, last + 0.6], "n_tokens": [budget] * 2})
    for name, drawn, dash in ((f"budget ({budget:,})", ends, "dash"), ("whole session", unbounded, "dot")):
        if drawn is not None:
            look: dict[str, Any] = {"width": 1.4, "dash": dash, "hoverinfo": "name+y"}
            traces.append(style.line(drawn["question"], drawn["n_tokens"], name, style.INK, **look))
    names = [plain(trace.name) for trace in traces]
    heights = [budget, frame.group_by("question").agg(pl.col("n_tokens").sum())["n_tokens"].max()]
    heights += [] if unbounded is None else [unbounded["n_tokens"].max()]
    top = 1.08 * max(map(float, heights))  # type: ignore[arg-type]

    return style.plot(
        traces, title=title, names=names, plot_px=190, left=46, right=10, bottom=38, barmode="stack",
        xaxis={"title": {"text": "question of the session"}, "range": [0.4, last + 0.6], "showgrid": False,
               "nticks": 10},
        yaxis={"title": {"text": "tokens in the context"}, "range": [0, top]},
    )  # fmt: skip
