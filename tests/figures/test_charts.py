"""Each family of charts: what it draws, what it refuses, and that a browser draws all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl
import pytest
from drawn_words import drawn

from memlab.errors import DataError
from memlab.figures import anatomy, curves, intervals, maps, style, sweeps

LONG = "hybrid(k=200) | mmr(lambda_=0.7)"
NASTY = "<script>alert('x')</script> & $x$"


def points(n: int = 120) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    label = rng.integers(-1, 9, n)
    xy = rng.normal(0, 1, (n, 2)) + 6 * np.column_stack([label % 3, label // 3])
    evidence = np.zeros(n, bool)
    evidence[[3, 40, 77]] = True
    return pl.DataFrame({"x": xy[:, 0], "y": xy[:, 1], "label": label, "evidence": evidence, "text": [NASTY] * n})


def terms() -> pl.DataFrame:
    return pl.DataFrame({"label": list(range(9)), "terms": [[f"word{i}", "clinic", "visit"] for i in range(9)]})


def recalls(systems: tuple[str, ...] = ("bm25", "dense", LONG), top: float = 0.8) -> pl.DataFrame:
    rows = [
        (s, k, m := top * k / (k + 4 + 2 * i), m - 0.03, m + 0.03, 0.001 * k, 0.99)
        for i, s in enumerate(systems)
        for k in (1, 5, 10, 50)
    ]
    return pl.DataFrame(rows, schema=["system", "k", "mean", "low", "high", "chance", "ceiling"], orient="row")


def hits() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "rank": [1, 2, 3, 4],
            "score": [0.8, 0.7, 0.65, 0.3],
            "session": ["s3", "s9", "s3", "s12"],
            "evidence": [True, False, False, True],
            "text": ["I saw Dr. Lee", NASTY, "something else", "the dentist"],
        }
    )


def misses() -> pl.DataFrame:
    return pl.DataFrame({"rank": [37, None], "session": ["s4", "s5"], "text": ["a third doctor", "a fourth doctor"]})


def swept() -> pl.DataFrame:
    rows = [("λ", v, LONG, v / 5, v / 5 - 0.02, v / 5 + 0.02, 0.15) for v in (0.3, 0.7, 1.0)]
    rows += [("clusters", v, "by_cluster", 0.1, 0.08, 0.12, 0.15) for v in (2.0, 5.0, 10.0)]
    return pl.DataFrame(rows, schema=["parameter", "value", "system", "mean", "low", "high", "baseline"], orient="row")


def compared() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "system": ["dense", "bm25", LONG],
            "difference": [None, 0.051, -0.02],
            "low": [None, 0.02, -0.05],
            "high": [None, 0.08, 0.01],
            "p_holm": [None, 0.0004, 0.31],
            "n": [332] * 3,
            "baseline": ["dense"] * 3,
        }
    )


HITS_BY_N = pl.DataFrame(
    {"n_evidence": ["1", "2+"], "measured": [0.6, 0.2], "low": [0.5, 0.1], "high": [0.7, 0.3], "predicted": [0.6, 0.16]}
    | {"predicted_low": [0.6, 0.1], "predicted_high": [0.6, 0.2], "as_single": [0.6, 0.36], "n": [90, 30]}
)

CHARTS: dict[str, tuple[Callable[[], go.Figure], list[str]]] = {
    "map": (lambda: maps.embedding_map(points(), terms=terms(), title=NASTY), [NASTY, "evidence (3)", "word"]),
    "recall": (lambda: curves.recall_curves(recalls(), title="t"), [LONG, "recall_all@k", "chance", "k (log scale)"]),
    "independent": (lambda: curves.independent_hits(HITS_BY_N, label=LONG), ["if found independently", "n=30", LONG]),
    "anatomy": (
        lambda: anatomy.question_anatomy(hits(), misses=misses(), question="How many doctors?", system="bm25"),
        ["How many doctors?", "2 of 4 evidence items in the first 4", "missed", "37", "I saw Dr. Lee", "<script>"],
    ),
    "sweep": (lambda: sweeps.sweep(swept()), ["λ", "clusters", "plain top-k", LONG]),
    "forest": (lambda: intervals.forest(compared()), ["+.051 [+.020, +.080] p<.001", "−.020", "(n = 332)", LONG]),
}


# One of each family goes through the browser, and what has a layout of its own.
RENDERED = ("map", "recall", "anatomy", "sweep", "forest")


@pytest.mark.parametrize("name", CHARTS)
def test_chart_is_drawn_as_vectors_with_its_words_on_it(name: str) -> None:
    make, expected = CHARTS[name]
    shown = drawn(make(), rendered=name in RENDERED)
    for text in expected:
        assert " ".join(text.split()) in shown, f"{text!r} not drawn; drawn: {shown}"


@pytest.mark.parametrize("name", CHARTS)
def test_chart_has_a_layout_for_each_width_that_leaves_room_for_the_plot(name: str) -> None:
    fig = CHARTS[name][0]()
    for width, px in style.WIDTHS.items():
        layout = style.for_width(fig, width).layout
        margin = layout.margin
        assert layout.width == px
        assert layout.meta is None
        assert 60 < layout.height < 3 * px
        assert px - margin.l - margin.r > 60
        assert layout.height - margin.t - margin.b > 40
    assert fig.layout.width == style.WIDTHS["full"]


def test_same_frame_gives_the_same_figure() -> None:
    assert maps.embedding_map(points(), terms=terms()) == maps.embedding_map(points(), terms=terms())


@pytest.mark.parametrize(
    ("chart", "frame"),
    [
        (maps.embedding_map, points()),
        (curves.recall_curves, recalls()),
        (curves.independent_hits, HITS_BY_N),
        (anatomy.question_anatomy, hits()),
        (sweeps.sweep, swept()),
        (intervals.forest, compared()),
    ],
)
def test_missing_column_and_no_rows_are_named(chart: Callable[..., Any], frame: pl.DataFrame) -> None:
    gone = frame.columns[0]
    with pytest.raises(DataError, match=rf"{chart.__name__} needs the column\(s\) {gone}; the frame has"):
        chart(frame.drop(gone))
    with pytest.raises(DataError, match="nothing to draw"):
        chart(frame.clear())


def test_map_colours_the_clusters_that_hold_evidence_first() -> None:
    frame = points().with_columns(label=pl.when("evidence").then(8).otherwise("label"))
    fig = maps.embedding_map(frame, terms=terms())
    coloured = [t for t in fig.data if t.marker.color in style.PALETTE]
    assert len(coloured) == 6
    assert any("word8" in t.name for t in coloured)
    stars = fig.data[-1]
    assert stars.name == "evidence"
    assert len(stars.x) == 3


def test_map_has_one_scale_for_both_axes() -> None:
    for width, px in style.WIDTHS.items():
        layout = style.for_width(maps.embedding_map(points()), width).layout
        across, up = np.diff(layout.xaxis.range)[0], np.diff(layout.yaxis.range)[0]
        high = layout.height - layout.margin.t - layout.margin.b
        assert across / (px - layout.margin.l - layout.margin.r) == pytest.approx(up / high, rel=0.01)


def test_large_map_is_thinned_and_says_so() -> None:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"x": rng.normal(size=7000), "y": rng.normal(size=7000), "label": rng.integers(-1, 3, 7000)})
    frame = frame.with_columns(evidence=pl.int_range(pl.len()) < 2)
    fig = maps.embedding_map(frame)
    assert "6,000 of 7,000 points drawn" in fig.layout.annotations[-1].text
    assert len(fig.data[-1].x) == 2


def test_map_refuses_a_coordinate_that_is_not_finite() -> None:
    with pytest.raises(DataError, match="not finite"):
        maps.embedding_map(points().with_columns(x=pl.lit(float("nan"))))


def test_recall_starts_at_nought_and_names_a_ceiling_that_is_off_the_scale() -> None:
    near, far = curves.recall_curves(recalls()), curves.recall_curves(recalls(top=0.2))
    assert near.layout.yaxis.range[0] == far.layout.yaxis.range[0] == 0
    assert near.layout.yaxis.range[1] > 0.99
    assert far.layout.yaxis.range[1] < 0.3
    assert any("ceiling (≥ 0.99, off the scale)" in a.text for a in far.layout.annotations)


def test_end_labels_do_not_overlap() -> None:
    systems = tuple(f"system {i}" for i in range(9))
    frame = recalls(systems).with_columns(mean=pl.lit(0.5), low=pl.lit(0.4), high=pl.lit(0.6))
    fig = curves.recall_curves(frame)
    layout = fig.layout
    plot_px = layout.height - layout.margin.t - layout.margin.b
    heights = sorted(a.y * plot_px for a in layout.annotations if a.text.startswith("system"))
    assert len(heights) == 9
    assert np.diff(heights).min() >= style.SMALL + 2


def test_forest_fills_only_what_is_significant() -> None:
    better, neither = intervals.forest(compared()).data
    assert better.marker.color == style.PALETTE[0]
    assert neither.marker.color == "white"


def test_map_tells_hits_misses_and_false_ones_apart_by_shape() -> None:
    ranked = points().with_columns(rank=pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.int_range(pl.len()) + 1))
    fig = maps.embedding_map(ranked, question=(0.0, 0.0))
    looks = {trace.name: (trace.marker.symbol, trace.marker.color) for trace in fig.data[-4:]}
    assert looks == {
        "retrieved, no evidence": ("circle-open", "black"),
        "evidence, missed": ("star", "white"),
        "evidence, retrieved": ("star", style.EVIDENCE),
        "the question": ("cross", "black"),
    }


def test_anatomy_marks_evidence_by_shape_and_fill() -> None:
    marks = anatomy.question_anatomy(hits(), misses=misses()).data[1].marker
    assert list(marks.symbol) == ["star", "circle", "circle", "star"]
    assert [c == "white" for c in marks.color] == [False, True, True, False]
    assert marks.line.color[0] == marks.line.color[2] != marks.line.color[3]
