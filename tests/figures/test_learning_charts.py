"""Charts of what a reranker learned: their words, their order, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go
import polars as pl
import pytest
from drawn_words import drawn

from memlab.errors import DataError
from memlab.figures import learning, style


def worth(n: int = 20) -> pl.DataFrame:
    rows = [
        (kind, f"{kind[0]}_{i}", questions, size, 0.1 - 0.01 * i + shift)
        for questions, size, shift in (("all", 1155, 0.0), ("≥ 2", 201, 0.02))
        for kind in ("group", "feature")
        for i in range(n if kind == "feature" else 4)
    ]
    frame = pl.DataFrame(rows, schema=["kind", "name", "questions", "n", "loss"], orient="row")
    return frame.with_columns(low=pl.col("loss") - 0.03, high=pl.col("loss") + 0.02)


def grown() -> pl.DataFrame:
    rows = [
        (size, questions, n, base + size / 100, base - 0.02, base + 0.1, base + 0.02)
        for questions, n, base in (("all", 1155, 0.7), ("≥ 2", 201, 0.2))
        for size in (1, 2, 5)
    ]
    names = ["conversations", "questions", "n", "mean", "low", "high", "untrained"]
    return pl.DataFrame(rows, schema=names, orient="row")


CHARTS: dict[str, tuple[Callable[[], go.Figure], list[str]]] = {
    "importance": (
        lambda: learning.importance(worth(), title="<b>t</b>"),
        ["<b>t</b>", "g_0", "g_3", "● all questions (n = 1,155)", "■ evidence in ≥ 2 sessions (n = 201)",
         "loss in recall_all@10 when permuted"],
    ),
    "curve": (
        lambda: learning.learning_curve(grown()),
        ["all questions (n = 1,155)", "evidence in ≥ 2 sessions (n = 201)", "untrained sum", "recall_all@10",
         "conversations learned from (log scale)", "learned, on other conversations"],
    ),
}  # fmt: skip


# One of each family goes through the browser, and what has a layout of its own.
RENDERED = ("importance",)


@pytest.mark.parametrize("name", CHARTS)
def test_it_is_drawn_with_its_words_on_it(name: str) -> None:
    make, expected = CHARTS[name]
    shown = drawn(make(), rendered=name in RENDERED)
    for text in expected:
        assert text in shown, f"{text!r} not drawn; drawn: {shown}"
    assert "f_0" not in shown


@pytest.mark.parametrize("name", CHARTS)
def test_it_has_a_layout_for_each_width(name: str) -> None:
    fig = CHARTS[name][0]()
    for width, px in style.WIDTHS.items():
        shown = style.for_width(fig, width)
        layout, margin = shown.layout, shown.layout.margin
        assert layout.width == px
        assert 60 < layout.height < 3 * px
        assert px - margin.l - margin.r > 60
        for axis in (*shown.select_xaxes(), *shown.select_yaxes()):
            assert axis.domain is None or 0 <= axis.domain[0] < axis.domain[1] <= 1


def test_rows_follow_the_first_group_of_questions() -> None:
    shuffled = worth().sort("name", descending=True)
    names = [mark.text[0].split("<br>")[0] for mark in learning.importance(shuffled).data]
    assert names == [f"g_{i}" for i in range(4) for _ in range(2)]


def test_intervals_reach_where_they_should_and_those_with_0_are_open() -> None:
    marks = learning.importance(worth()).data
    assert marks[0].x[0] - marks[0].error_x.arrayminus[0] == pytest.approx(0.07)
    assert marks[0].x[0] + marks[0].error_x.array[0] == pytest.approx(0.12)
    assert marks[0].marker.color != "white"
    frame = worth().with_columns(low=-pl.col("loss"))
    assert {mark.marker.color for mark in learning.importance(frame).data} == {"white"}


def test_curve_holds_all_that_it_draws() -> None:
    fig = learning.learning_curve(grown())
    for p, axis in enumerate((fig.layout.yaxis, fig.layout.yaxis2)):
        for trace in fig.data[3 * p : 3 * p + 3]:
            assert axis.range[0] <= min(trace.y) <= max(trace.y) <= axis.range[1]
    single = learning.learning_curve(grown().filter(conversations=2, questions="all"))
    assert single.layout.xaxis.range[0] < single.layout.xaxis.range[1]


@pytest.mark.parametrize(("chart", "frame"), [(learning.importance, worth()), (learning.learning_curve, grown())])
def test_missing_column_and_no_rows_are_named(chart: Callable[..., Any], frame: pl.DataFrame) -> None:
    gone = frame.columns[0]
    with pytest.raises(DataError, match=rf"{chart.__name__} needs the column\(s\) {gone}; the frame has"):
        chart(frame.drop(gone))
    with pytest.raises(DataError, match="nothing to draw"):
        chart(frame.clear())


def test_intervals_that_are_not_known_are_left_out() -> None:
    none = pl.lit(None, pl.Float64)
    assert learning.importance(worth().with_columns(low=none, high=none)).data
    assert learning.learning_curve(grown().with_columns(low=none, high=none)).data
