"""Follow-up questions: recall before and after rewriting, and a budget that fills up."""

from __future__ import annotations

from typing import Any

import polars as pl

from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._rows import marked_rows
from memlab.figures._text import clean, plain

# A second factor beside colour, for print in grey.
_PATTERNS = ("", "/", "", "\\", "")


def recall(frame: pl.DataFrame, *, measure: str = "recall_all@10", between: str = " → ", title: str = "") -> go.Figure:
    """Draw recall by kind of follow-up, a mark a form of the question, with its interval.

    :param frame: a row a kind and form: ``kind``, ``form``, ``n``, ``mean``, ``low`` and ``high``, in the order to draw
        from the top.
    :param between: what stands between the numbers of one kind; an arrow where the forms follow each other.

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
    return marked_rows(marks, span=(0, 1), between=between, xlabel=measure, key=style.key(forms), title=title,
                       xaxis={"zeroline": False})  # fmt: skip


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
