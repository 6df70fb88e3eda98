"""The charts of the ladder: what they draw, at both widths, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go
import polars as pl
import pytest
from drawn_words import drawn

from memlab.errors import DataError
from memlab.evaluate import CAUSES
from memlab.figures import ladder, style

NASTY = "<b>late</b> & learned, cross-validated by conversation"


def steps(ceiling: float = 1.0) -> pl.DataFrame:
    rows = [
        ("bm25", 0.5, 0.45, 0.55, None, None, None, None, 2.25),
        ("hybrid", 0.4, 0.35, 0.45, -0.1, -0.15, -0.05, 0.0004, 31.0),
        (NASTY, 0.7, 0.65, 0.75, 0.3, 0.25, 0.35, 0.012, 1234.0),
        ("no gain", 0.71, None, None, 0.01, None, None, 0.8, None),
    ]
    names = ["system", "mean", "mean_low", "mean_high", "difference", "low", "high", "p_holm", "ms"]
    table = pl.DataFrame(rows, schema=names, orient="row").with_columns(chance=pl.lit(0.0125), ceiling=pl.lit(ceiling))
    groups = (("all questions", 1155), ("evidence in ≥ 2 sessions", 201))
    return pl.concat([table.with_columns(group=pl.lit(name), n=pl.lit(n)) for name, n in groups])


def caused() -> pl.DataFrame:
    n = [0, 3, 0, 0, 5, 2, 0, 10, 0, 0]
    table = pl.DataFrame({"cause": list(CAUSES), "n": n}).with_columns(
        share=pl.col("n") / pl.col("n").sum(), alone=pl.col("n") / (2 * pl.col("n").sum())
    )
    return pl.concat([table.with_columns(group=pl.lit(name)) for name in ("all", "≥ 2")])


CHARTS: dict[str, tuple[Callable[[], go.Figure], list[str]]] = {
    "climb": (
        lambda: ladder.climb(steps(), title="A ladder"),
        [
            "A ladder",
            "● all questions (n = 1,155, chance 0.013)",
            "bm25, 2.2 ms",
            ".400 −.100 [−.150, −.050] p<.001",
            "no gain",
        ],
    ),
    "causes": (lambda: ladder.causes(caused()), ["other words", "all: pieces", "≥ 2: answers", "10"]),
}


# One of each family goes through the browser, and what has a layout of its own.
RENDERED = ("climb",)


@pytest.mark.parametrize("name", CHARTS)
def test_it_is_drawn_with_its_words_on_it(name: str) -> None:
    make, expected = CHARTS[name]
    shown = drawn(make(), rendered=name in RENDERED)
    for text in expected:
        assert text in shown, f"{text!r} not drawn; drawn: {shown}"


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("width", list(style.WIDTHS))
def test_it_leaves_room_for_the_plot(name: str, width: style.Width) -> None:
    layout = style.for_width(CHARTS[name][0](), width).layout
    px, margin = style.WIDTHS[width], layout.margin
    assert layout.width == px
    assert layout.height < 3 * px
    assert px - margin.l - margin.r > px / 2
    assert layout.height - margin.t - margin.b > 80


def test_a_step_is_filled_only_where_it_is_significant() -> None:
    first, down, up, neither = ladder.climb(steps()).data[::2]
    assert first.marker.color == neither.marker.color == "white"
    assert (down.marker.color, up.marker.color) == (style.PALETTE[1], style.PALETTE[0])


def test_steps_go_down_the_page_in_their_order_and_the_groups_of_one_under_each_other() -> None:
    marks = ladder.climb(steps()).data
    assert [mark.x[0] for mark in marks[::2]] == [0.5, 0.4, 0.7, 0.71]
    assert [mark.marker.symbol for mark in marks] == ["circle", "square"] * 4
    heights = [mark.y[0] for mark in marks]
    assert heights == sorted(heights, reverse=True)


def test_a_ceiling_is_named_where_it_is_below_one() -> None:
    low = ladder.climb(steps(ceiling=0.9)).layout.annotations
    assert any("ceiling 0.900" in note.text for note in low)
    assert not any("ceiling" in note.text for note in ladder.climb(steps()).layout.annotations)


def test_causes_that_took_nothing_are_left_out_unless_none_took_any() -> None:
    fig = ladder.causes(caused())
    assert list(fig.layout.yaxis.ticktext) == ["caption", "follow-on", "implied", "other words"]
    assert list(fig.data[0].x) == pytest.approx([0.15, 0.25, 0.1, 0.5])
    nothing = caused().with_columns(pl.lit(0).alias("n"), share=pl.lit(0.0), alone=pl.lit(0.0))
    assert len(ladder.causes(nothing).layout.yaxis.ticktext) == len(CAUSES)


@pytest.mark.parametrize(
    ("chart", "frame"),
    [
        (ladder.climb, steps()),
        (ladder.causes, caused()),
    ],
)
def test_missing_columns_and_no_rows_are_named(chart: Callable[[pl.DataFrame], go.Figure], frame: pl.DataFrame) -> None:
    with pytest.raises(DataError, match=rf"needs the column\(s\) {frame.columns[0]}"):
        chart(frame.drop(frame.columns[0]))
    with pytest.raises(DataError, match="nothing to draw"):
        chart(frame.clear())
