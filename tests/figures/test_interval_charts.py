"""Intervals in rows, bars of shares and lines over time: what they draw, at both widths, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go
import polars as pl
import pytest
from drawn_words import drawn

from memlab.errors import DataError
from memlab.evaluate.misses import CAUSES
from memlab.figures import bars, curves, intervals, style
from memlab.knowledge import confidence
from memlab.knowledge.decay import FAMILIES

NASTY = "<b>late</b> & learned, cross-validated by conversation"
FORMS = ("as asked", "rewritten", "stands <alone>")


def measured() -> pl.DataFrame:
    rows = [
        {"kind": kind, "form": form, "n": 1200 + i, "mean": mean, "low": mean - 0.05, "high": mean + 0.05}
        for i, kind in enumerate(("pronoun", "a kind with a very long name that is wrapped at the width of a column"))
        for form, mean in zip(FORMS, (0.25, 0.5, 0.75), strict=True)
    ]
    return pl.DataFrame(rows)


def steps() -> pl.DataFrame:
    rows = [
        ("bm25", 0.5, 0.45, 0.55, None, None, None, None, 2.25),
        ("hybrid", 0.4, 0.35, 0.45, -0.1, -0.15, -0.05, 0.0004, 31.0),
        (NASTY, 0.7, 0.65, 0.75, 0.3, 0.25, 0.35, 0.012, 1234.0),
        ("no gain", 0.71, None, None, 0.01, None, None, 0.8, None),
    ]
    names = ["system", "mean", "mean_low", "mean_high", "difference", "low", "high", "p_holm", "ms"]
    table = pl.DataFrame(rows, schema=names, orient="row")
    groups = (("all questions", 1155), ("evidence in ≥ 2 sessions", 201))
    return pl.concat([table.with_columns(group=pl.lit(name), n=pl.lit(n)) for name, n in groups])


def caused() -> pl.DataFrame:
    n = [0, 3, 0, 0, 5, 2, 0, 10, 0, 0]
    table = pl.DataFrame({"cause": list(CAUSES), "n": n}).with_columns(share=pl.col("n") / pl.col("n").sum())
    return pl.concat([table.with_columns(group=pl.lit(name)) for name in ("all", "≥ 2")])


def path() -> pl.DataFrame:
    return confidence.trajectory({name: make() for name, make in FAMILIES.items()}, accesses_days=(0.0, 60.0))


CHARTS: dict[str, tuple[Callable[[], go.Figure], list[str]]] = {
    "means": (
        lambda: intervals.means(measured(), between=" → "),
        ["pronoun (n = 1,200)", "25% → 50% → 75%", "● as asked, ■ rewritten, ◆ stands <alone>"],
    ),
    "ablation": (
        lambda: intervals.ablation(steps(), title="Steps"),
        ["Steps", "● all questions (n = 1,155)", "bm25, 2.2 ms", ".400 −.100 [−.150, −.050] p<.001", "no gain"],
    ),
    "shares": (lambda: bars.shares(caused(), xlabel="share of items"), ["other words", "share of items", "≥ 2", "10"]),
    "over time": (
        lambda: curves.over_time(path(), events=[60], title="<b>t</b>"),
        ["<b>t</b>", "days", "confidence", *FAMILIES, "heard again"],
    ),
}


@pytest.mark.parametrize("name", CHARTS)
def test_it_is_drawn_with_its_words_on_it_and_room_for_the_plot(name: str) -> None:
    make, expected = CHARTS[name]
    shown = drawn(make(), rendered=name in ("ablation", "shares"))
    for text in expected:
        assert text in shown, f"{text!r} not drawn; drawn: {shown}"
    for width, px in style.WIDTHS.items():
        layout = style.for_width(make(), width).layout
        assert layout.width == px
        assert layout.height < 3 * px
        assert px - layout.margin.l - layout.margin.r > px / 2
        assert layout.height - layout.margin.t - layout.margin.b > 80


def test_means_have_a_mark_a_series_within_the_axis() -> None:
    fig = intervals.means(measured())
    assert [mark.x[0] for mark in fig.data] == [0.25, 0.5, 0.75] * 2
    assert len({mark.marker.symbol for mark in fig.data}) == len({mark.marker.color for mark in fig.data}) == 3
    values = measured().filter(kind="pronoun").with_columns(pl.col("mean", "low", "high") * 40)
    fig = intervals.means(values, digits=2)
    low, high = fig.layout.xaxis.range
    assert low < 8 < 32 < high
    text = " ".join(note.text for note in fig.layout.annotations)
    assert "10.00 · 20.00 · 30.00" in text
    assert "as asked (n = 1,200)" in text, "of one row the series say it"


def test_a_step_is_filled_only_where_it_is_significant() -> None:
    marks = intervals.ablation(steps()).data
    first, down, up, neither = marks[::2]
    assert first.marker.color == neither.marker.color == "white"
    assert (down.marker.color, up.marker.color) == (style.PALETTE[1], style.PALETTE[0])
    assert [mark.marker.symbol for mark in marks] == ["circle", "square"] * 4
    heights = [mark.y[0] for mark in marks]
    assert heights == sorted(heights, reverse=True)
    assert intervals.ablation(steps().drop("ms")).data


def test_causes_that_took_nothing_are_left_out_unless_none_took_any() -> None:
    fig = bars.shares(caused())
    assert list(fig.layout.yaxis.ticktext) == ["caption", "follow-on", "implied", "other words"]
    assert list(fig.data[0].x) == pytest.approx([0.15, 0.25, 0.1, 0.5])
    nothing = caused().with_columns(pl.lit(0).alias("n"), share=pl.lit(0.0))
    assert len(bars.shares(nothing).layout.yaxis.ticktext) == len(CAUSES)


def test_a_repetition_is_a_vertical_step() -> None:
    line = curves.over_time(path()).data[1]
    at = [i for i, day in enumerate(line.x) if day == 60]
    assert len(at) == 2
    assert line.y[at[0]] < line.y[at[1]]
    retained = curves.over_time(path(), measure="retention").data[1]
    assert retained.y[at[1]] == 1


@pytest.mark.parametrize(
    ("chart", "frame"),
    [
        (intervals.means, measured()),
        (intervals.ablation, steps()),
        (bars.shares, caused()),
        (curves.over_time, path()),
    ],
)
def test_missing_columns_and_no_rows_are_named(chart: Callable[[pl.DataFrame], go.Figure], frame: pl.DataFrame) -> None:
    with pytest.raises(DataError, match=rf"needs the column\(s\) {frame.columns[0]}"):
        chart(frame.drop(frame.columns[0]))
    with pytest.raises(DataError, match="nothing to draw"):
        chart(frame.clear())
