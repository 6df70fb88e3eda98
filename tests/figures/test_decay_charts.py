"""Charts of decay: their words, their marks, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl
import pytest
from drawn_words import drawn

from memlab.errors import DataError
from memlab.figures import decay, decay_truth, style
from memlab.knowledge import confidence
from memlab.knowledge.decay import FAMILIES


def path(heard: tuple[float, ...] = (0.0, 60.0)) -> pl.DataFrame:
    return confidence.trajectory({name: make() for name, make in FAMILIES.items()}, accesses_days=heard)


def bins() -> pl.DataFrame:
    rows = [
        (family, fit, i, 10 * (i + 1), i / 10 + 0.05, i / 10 + 0.08, i / 10 + 0.02, i / 10 + 0.1)
        for family, fit in (("constant", "pooled"), ("weibull", "pooled"), ("weibull", "per predicate"))
        for i in range(2, 9)
    ]
    names = ["family", "fit", "bin", "n", "chance", "share", "low", "high"]
    return pl.DataFrame(rows, schema=names, orient="row")


def scored() -> pl.DataFrame:
    rows = [
        (None, "constant", "pooled", 1040, 0.69, 0.1, 0.08),
        (None, "weibull", "per predicate", 1040, 0.59, 0.0, 0.0),
        (None, "<b>", "pooled", 1040, 0.6, 0.01, -0.002),
        ("likes", "weibull", "pooled", 40, 0.1, 0.0, 0.0),
    ]
    names = ["predicate", "family", "fit", "n", "log_loss", "difference", "difference_low"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    spread = {"low": pl.col("log_loss") - 0.03, "high": pl.col("log_loss") + 0.03}
    return frame.with_columns(**spread, difference_high=pl.col("difference") + 0.02)


def sets() -> pl.DataFrame:
    rows = [
        ("weibull", "shape", 1.5, 1.4, 1.2, 1.7),
        ("weibull", "shape", 1.5, 1.8, 1.6, 2.0),
        ("weibull", "half_life_days", 200.0, 210.0, 190.0, 230.0),
        ("plateau_linear", "floor", 0.5, 0.4, 0.0, 9.0),
    ]
    return pl.DataFrame(rows, schema=["family", "parameter", "truth", "estimate", "low", "high"], orient="row")


def bought() -> pl.DataFrame:
    rows = [
        (data, condition, 40, hits, hits / 40, hits / 40 - 0.1, min(hits / 40 + 0.1, 1.0))
        for data, each in (("simulated", (10, 38)), ("<i>", (20, 21)))
        for condition, hits in zip(("no decay", "supersession"), each, strict=True)
    ]
    return pl.DataFrame(rows, schema=["data", "condition", "n", "hits", "share", "low", "high"], orient="row")


CHARTS: dict[str, tuple[Callable[[], go.Figure], list[str]]] = {
    "curves": (
        lambda: decay.decay_curves(path(), events=[60], title="<b>t</b>"),
        ["<b>t</b>", "days", "confidence", *FAMILIES, "heard again"],
    ),
    "reliability": (
        lambda: decay.reliability(bins(), title="t"),
        ["constant, pooled", "weibull, per predicate", "n = 420, fullest bin 90", "stated chance", "share still true",
         "facts per bin"],
    ),
    "families": (
        lambda: decay.families(scored()),
        ["constant", "weibull, per predicate", "<b>, pooled", "0.590 best", "0.690 +.100 [+.080, +.120]",
         "held-out log-loss in nats, 90% intervals (n = 1,040; less is better)", "open: surely worse"],
    ),
    "recovery": (
        lambda: decay_truth.recovery(sets(), title="t"),
        ["weibull: shape = 1.5", "1 of 2", "weibull: half_life_days = 200", "plateau_linear: floor = 0.5", "¼",
         "fitted parameter over the true one, 90% intervals (log scale)", "open: those that do not"],
    ),
    "outranked": (
        lambda: decay_truth.outranked(bought()),
        ["no decay", "supersession", "25.0% · 50.0%", "95.0% · 52.5%", "● simulated, ■ <i>", "(n = 40 · 40)",
         "share of questions where the current value outranks the stale"],
    ),
}  # fmt: skip


# One of each family goes through the browser, and what has a layout of its own.
RENDERED = ("reliability", "recovery")


@pytest.mark.parametrize("name", CHARTS)
def test_it_is_drawn_with_its_words_on_it(name: str) -> None:
    make, expected = CHARTS[name]
    shown = drawn(make(), rendered=name in RENDERED)
    for text in expected:
        assert text in shown, f"{text!r} not drawn; drawn: {shown}"
    assert "likes" not in shown


@pytest.mark.parametrize("name", CHARTS)
def test_it_has_a_layout_for_each_width(name: str) -> None:
    fig = CHARTS[name][0]()
    for width, px in style.WIDTHS.items():
        layout = style.for_width(fig, width).layout
        margin = layout.margin
        assert layout.width == px
        assert 60 < layout.height < 3 * px
        assert px - margin.l - margin.r > 60
        assert layout.height - margin.t - margin.b > 40


def test_a_repetition_is_a_vertical_step() -> None:
    line = decay.decay_curves(path()).data[1]
    at = [i for i, day in enumerate(line.x) if day == 60]
    assert len(at) == 2
    assert line.y[at[0]] < line.y[at[1]]
    assert line.line.simplify is False
    retained = decay.decay_curves(path(), measure="retention").data[1]
    assert retained.y[at[1]] == 1


def test_families_are_in_the_order_of_their_loss_and_open_where_surely_worse() -> None:
    marks = decay.families(scored()).data
    assert [mark.x[0] for mark in marks] == [0.59, 0.6, 0.69]
    assert [mark.marker.color == "white" for mark in marks] == [False, False, True]
    assert [mark.marker.symbol for mark in marks] == ["diamond", "circle", "circle"]
    assert decay.families(scored().filter(predicate="likes")).data[0].x[0] == 0.1


def test_reliability_draws_each_bin_in_its_panel() -> None:
    fig = decay.reliability(bins())
    assert len(fig.data) == 9
    mark, bar = fig.data[8], fig.data[7]
    assert mark.xaxis == bar.xaxis == "x3"
    assert list(mark.x) == bins().filter(fit="per predicate")["chance"].to_list()
    assert mark.y[0] + mark.error_y.array[0] == pytest.approx(0.3)
    assert max(bar.y) < 0.22
    alone = decay.reliability(bins().filter(fit="per predicate").drop("family", "fit"))
    assert len(alone.data) == 3


@pytest.mark.parametrize(
    ("chart", "frame"),
    [
        (decay.decay_curves, path()),
        (decay.reliability, bins()),
        (decay.families, scored()),
        (decay_truth.outranked, bought()),
    ],
)
def test_missing_column_and_no_rows_are_named(chart: Callable[..., Any], frame: pl.DataFrame) -> None:
    gone = "n" if "n" in frame.columns else "day"
    with pytest.raises(DataError, match=rf"{chart.__name__} needs the column\(s\) {gone}; the frame has"):
        chart(frame.drop(gone))
    with pytest.raises(DataError, match="nothing to draw"):
        chart(frame.clear())


def test_an_interval_that_misses_the_truth_has_another_colour_and_none_leaves_the_plot() -> None:
    marks = decay_truth.recovery(sets()).data
    covered, missed = marks[0], marks[1]
    assert covered.marker.color != missed.marker.color
    assert 2 ** covered.x[0] == pytest.approx(1.4 / 1.5)
    assert 2 ** (missed.x[0] - missed.error_x.arrayminus[0]) == pytest.approx(1.6 / 1.5)
    drawn = [mark for mark in marks if mark.error_x.array is not None]
    for mark in drawn:
        for x, up, down in zip(mark.x, mark.error_x.array, mark.error_x.arrayminus, strict=True):
            assert -2 <= x - down <= x <= x + up <= 2
    arrows = [(mark.x[0], mark.marker.symbol) for mark in marks if mark not in drawn]
    assert arrows == [(-2, "triangle-left"), (2, "triangle-right")], "of the interval from 0 to 18 times"


def test_the_sets_of_a_parameter_do_not_cover_each_other() -> None:
    """Twelve on a page, and four of eleven parameters in a column, are more than a mark apart."""
    for width, n_sets, apart in (("full", 12, 4.5), ("column", 4, 5.0)):
        rows = [("family", f"p{i}", 1.0, 1 + j / 50, 0.9, 1.2) for i in range(11) for j in reversed(range(n_sets))]
        frame = pl.DataFrame(rows, schema=sets().columns, orient="row")
        fig = style.for_width(decay_truth.recovery(frame), width)
        plot_px = fig.layout.height - fig.layout.margin.t - fig.layout.margin.b
        assert (np.diff(fig.data[0].x) > 0).all(), "least first"
        assert -np.diff(fig.data[0].y).max() * plot_px / 11 >= apart


def test_each_data_has_its_shape_and_conditions_keep_their_order() -> None:
    marks = decay_truth.outranked(bought()).data
    assert [mark.name for mark in marks] == ["no decay", "no decay", "supersession", "supersession"]
    assert [mark.marker.symbol for mark in marks] == ["circle", "square"] * 2
    assert [mark.x[0] for mark in marks] == [0.25, 0.5, 0.95, 0.525]
    alone = decay_truth.outranked(bought().filter(data="simulated").drop("data"))
    assert len(alone.data) == 2


def test_intervals_that_are_not_known_are_left_out() -> None:
    none = pl.lit(None, pl.Float64)
    assert decay.families(scored().with_columns(low=none, high=none, difference_low=none, difference_high=none)).data
