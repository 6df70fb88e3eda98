"""Follow-up questions: recall of each form of them."""

from __future__ import annotations

import polars as pl

from memlab.figures import style
from memlab.figures._plotly import go
from memlab.figures._rows import marked_rows
from memlab.figures._text import clean, plain


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
