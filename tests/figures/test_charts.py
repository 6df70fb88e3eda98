"""Every chart: its words at both widths, nothing cut off or covered, what it marks, and what it refuses.

The rows are as many and the names as long as the notebooks have them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl
import pytest
from clipped import clipped, read
from drawn_words import drawn
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.evaluate.misses import CAUSES
from memlab.figures import anatomy, bars, curves, intervals, maps, rollup, style, sweeps, systems
from memlab.figures.export import pictures
from memlab.knowledge import confidence
from memlab.knowledge.decay import FAMILIES

LONG = "hybrid(k=200) | mmr(lambda_=0.7)"
NASTY = "<script>alert('x')</script> & $x$"
TERMS = pl.DataFrame({"label": list(range(9)), "terms": [f"word{i} · clinic · visit" for i in range(9)]})


def points(n: int = 120) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    label = rng.integers(-1, 9, n)
    xy = rng.normal(0, 1, (n, 2)) + 6 * np.column_stack([label % 3, label // 3])
    frame = pl.DataFrame({"x": xy[:, 0], "y": xy[:, 1], "label": label, "text": [NASTY] * n})
    row = pl.int_range(pl.len())
    return frame.with_columns(evidence=row.is_in([3, 40, 77]), rank=pl.when(row % 2 == 0).then(row + 1))


def recalls(systems: tuple[str, ...] = ("bm25", "dense", LONG), top: float = 0.8) -> pl.DataFrame:
    rows = [
        (s, k, m := top * k / (k + 4 + 2 * i), m - 0.03, m + 0.03, 0.001 * k, 0.99)
        for i, s in enumerate(systems)
        for k in (1, 5, 10, 50)
    ]
    return pl.DataFrame(rows, schema=["system", "k", "mean", "low", "high", "chance", "ceiling"], orient="row")


def crossed(values: pl.Series, **others: list[object]) -> pl.DataFrame:
    """Give every combination of columns, with values that repeat over them and an interval around each."""
    frame = pl.DataFrame({name: [own] for name, own in others.items()})
    for name in others:
        frame = frame.explode(name)
    repeated = values.gather([i % len(values) for i in range(frame.height)])
    return frame.with_columns(repeated).with_columns(low=pl.col(values.name) - 0.05, high=pl.col(values.name) + 0.06)


SELECTORS = ["mmr", "dpp", "msd", "by_cluster", "by_cluster(clustering='hdbscan')", "expand_cluster",
             "expand_cluster(clustering='hdbscan')", "fill_sessions", "coverage"]  # fmt: skip


def swept(panels: int = 9) -> pl.DataFrame:
    named = [f"({letter}) {name}" for letter, name in zip("abcdefghi", SELECTORS, strict=True)][:panels]
    frame = crossed(pl.Series("mean", [0.1, 0.2, 0.3, 0.4]), system=named, value=[200, 400, 800, 1600])
    return frame.with_columns(parameter=pl.lit("min_cluster_size"), baseline=0.2)


def compared() -> pl.DataFrame:
    measures = ["recall_all@10", "recall_all@20"]
    frame = crossed(pl.Series("difference", [0.051, 0.0, -0.1, 0.02]), system=[LONG, *SELECTORS[1:]], measure=measures)
    p_holm = pl.when(pl.col("difference") == 0.051).then(0.0004).otherwise(1.0)
    return frame.with_columns(p_holm=p_holm, n=332, baseline=pl.lit("combsum"))


def measured() -> pl.DataFrame:
    return pl.DataFrame([
        {"kind": kind, "form": form, "n": 1200 + i, "mean": mean, "low": mean - 0.05, "high": mean + 0.05}
        for i, kind in enumerate(("pronoun", "a kind with a very long name that is wrapped at the width of a column"))
        for form, mean in zip(("as asked", "rewritten", "stands <alone>"), (0.25, 0.5, 0.75), strict=True)
    ])  # fmt: skip


def steps() -> pl.DataFrame:
    names = ["BM25", "+ dense, ranks fused", NASTY, "+ evidence of the session", "+ late interaction",
             "+ assistant held back", "+ learned reranker", "+ question rewritten by a model",
             "+ neighbours of the session, reranked", "+ time"]  # fmt: skip
    groups = ["all questions", "evidence in ≥ 2 sessions"]
    frame = crossed(pl.Series("mean", [0.5, 0.4, 0.7]), group=groups, system=names)
    frame = frame.with_columns(n=1137, mean_low="low", mean_high="high", ms=2.25)
    tested = {"difference": pl.col("mean") - 0.5, "low": -0.15, "high": 0.05, "p_holm": 0.0004}
    later = pl.when(pl.col("system") != "BM25")
    return frame.with_columns(later.then(value).alias(name) for name, value in tested.items())


def caused() -> pl.DataFrame:
    n = [0, 3, 0, 0, 5, 2, 0, 10, 0, 0]
    table = pl.DataFrame({"cause": list(CAUSES), "n": n}).with_columns(share=pl.col("n") / pl.col("n").sum())
    return pl.concat([table.with_columns(group=pl.lit(name)) for name in ("all", "≥ 2")])


def path() -> pl.DataFrame:
    return confidence.trajectory({name: make() for name, make in FAMILIES.items()}, accesses_days=(0.0, 60.0))


def months() -> pl.DataFrame:
    trip = "<b>a trip</b> & a piano that nobody has room for, in no flat of the town, whatever is tried"
    rows = [("m1", None, "May: garden"), ("m2", None, "June: piano"), ("w1", "m1", "6 – 12 May: seeds"),
            ("w2", "m1", trip), ("w3", "m2", "3 – 9 June: keys"),
            *((f"s{i}", w, f"day {i}") for i, w in ((1, "w1"), (2, "w2"), (3, "w2"), (4, "w3")))]  # fmt: skip
    table = pl.DataFrame(rows, schema=["node_id", "parent", "label"], orient="row")
    kinds = {"m": "month", "w": "week", "s": "session"}
    return table.with_columns(n_turns=5, kind=pl.col("node_id").str.head(1).replace_strict(kinds))


def side_by_side() -> pl.DataFrame:
    frame = crossed(pl.Series("recall_all@10", [0.3, 0.4]), system=["read", *(f"memory {i}" for i in range(8))])
    timed = pl.when(pl.col("system") != "read").then(12.0).alias("p50 ms")
    return frame.with_columns(timed, *(pl.lit(0.4).alias(f"recall_all@{n} tokens") for n in (200, 1000)), n=137)


Chart = Callable[[pl.DataFrame], go.Figure]
CHARTS: dict[str, tuple[Chart, pl.DataFrame, list[str]]] = {
    "map": (lambda frame: maps.embedding_map(frame, terms=TERMS, question=(0, 0), title=NASTY), points(),
            [NASTY, "evidence, missed (2)", "the question", "word"]),
    "recall": (curves.recall_curves, recalls(), [LONG, "recall_all@k", "chance", "k (log scale)"]),
    "over time": (lambda frame: curves.confidence_curves(frame, events=[60]), path(),
                  ["days", "confidence", *FAMILIES, "heard again"]),
    "sweep": (sweeps.sweep, swept(), ["min_cluster_size", "plain top-k", "(b) dpp"]),
    "forest": (lambda frame: intervals.forest(frame, measure="recall_all@k"), compared(),
               ["+.051 [+.001, +.111] p<.001", "−.100", "(n = 332)", "fill_sessions"]),
    "means": (lambda frame: intervals.mean_intervals(frame, between=" → "), measured(),
              ["pronoun (n = 1,200)", "25% → 50% → 75%", "● as asked, ■ rewritten, ◆ stands <alone>"]),
    "ablation": (intervals.ablation, steps(),
                 ["● all questions (n = 1,137)", "BM25, 2.2 ms", ".400 −.100 [−.150, +.050] p<.001", "+ time"]),
    "shares": (lambda frame: bars.share_bars(frame, xlabel="share of items"), caused(),
               ["other words", "share of items", "≥ 2", "10"]),
    "icicle": (rollup.icicle, months(), ["month", "May: garden", "day 4"]),
    "trade-off": (systems.trade_off, side_by_side(), ["all evidence there", "(no time: read)", "memory 7", "1,000"]),
}  # fmt: skip
# One of each kind goes through the browser.
RENDERED = ("map", "recall", "anatomy", "sweep", "forest", "ablation", "shares", "icicle", "trade-off")


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_drawn_with_its_words_and_nothing_is_cut_off_or_covered(name: str) -> None:
    chart, frame, expected = CHARTS[name]
    fig = chart(frame)
    shown = drawn(fig, rendered=name in RENDERED)
    for text in expected:
        assert " ".join(text.split()) in shown, f"{text!r} not drawn; drawn: {shown}"
    for width, px in style.WIDTHS.items():
        layout = style.copy_for_width(fig, width).layout
        assert layout.width == px
        assert layout.meta is None
        assert layout.height < 3 * px
        assert px - layout.margin.l - layout.margin.r > 60
        assert layout.height - layout.margin.t - layout.margin.b > 40
        if name in ("forest", "sweep", "ablation", "trade-off"):
            picture = pictures(fig, ["svg"], width)["svg"].decode()
            assert clipped(picture) == []
            if name in ("forest", "ablation"):
                numbers = [text for text in read(picture)["texts"] if re.match(r"[+−]?\.\d", text["words"])]
                assert len(numbers) >= 8
                assert min(text["left"] for text in numbers) > px - layout.margin.r, "right of the plot"
    assert chart(frame) == fig, "the same frame gives the same figure"


@pytest.mark.parametrize("name", CHARTS)
def test_missing_column_and_no_rows_are_named(name: str) -> None:
    chart, frame, _ = CHARTS[name]
    gone = frame.columns[0]
    with pytest.raises(DataError, match=rf"needs the column\(s\) {gone}; the frame has"):
        chart(frame.drop(gone))
    with pytest.raises(DataError, match="nothing to draw"):
        chart(frame.clear())


def test_map_colours_the_clusters_that_hold_evidence_first_and_has_one_scale() -> None:
    frame = points().with_columns(label=pl.when("evidence").then(8).otherwise("label"))
    fig = maps.embedding_map(frame, terms=TERMS, question=(0.0, 0.0))
    coloured = [t for t in fig.data if t.type == "scatter" and t.marker.color in style.PALETTE]
    assert len(coloured) == 6
    assert any("word8" in t.name for t in coloured)
    assert len({(trace.marker.symbol, trace.marker.color) for trace in fig.data[-4:]}) == 4, "told apart by shape"
    for width, px in style.WIDTHS.items():
        layout = style.copy_for_width(fig, width).layout
        across, up = np.diff(layout.xaxis.range)[0], np.diff(layout.yaxis.range)[0]
        high = layout.height - layout.margin.t - layout.margin.b
        assert across / (px - layout.margin.l - layout.margin.r) == pytest.approx(up / high, rel=0.01)
    noted = maps.embedding_map(points().with_columns(second=pl.lit(True)), terms=TERMS, note="owen: first 10 of bm25")
    assert (noted.data[0].type, noted.data[-1].name) == ("contour", "of the second pipeline")
    assert "owen: first 10 of bm25" in drawn(noted, rendered=False)


def test_a_large_map_is_thinned_and_says_so_and_a_coordinate_must_be_finite() -> None:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"x": rng.normal(size=7000), "y": rng.normal(size=7000), "label": rng.integers(-1, 3, 7000)})
    frame = frame.with_columns(evidence=pl.int_range(pl.len()) < 2, rank=pl.lit(None, pl.Int32))
    fig = maps.embedding_map(frame, terms=TERMS)
    assert ",000 of 7,000 points drawn" in drawn(fig, rendered=False)
    assert len(fig.data[-1].x) == 2
    equal = pl.DataFrame({"stage": ["bm25"] * 2, "text": ["Thanks!"] * 2, "rank": [1, 50]})
    assert [line.y[0] for line in anatomy.evidence_ranks_by_stage(equal).data] == [1, 50]
    with pytest.raises(DataError, match="not finite"):
        maps.embedding_map(points().with_columns(x=pl.lit(float("nan"))), terms=TERMS)


def test_recall_starts_at_nought_names_a_ceiling_off_the_scale_and_ends_do_not_overlap() -> None:
    near, far = curves.recall_curves(recalls()), curves.recall_curves(recalls(top=0.2))
    assert near.layout.yaxis.range[0] == far.layout.yaxis.range[0] == 0
    assert near.layout.yaxis.range[1] > 0.99
    assert far.layout.yaxis.range[1] < 0.3
    assert any("ceiling (≥ 0.99, off the scale)" in a.text for a in far.layout.annotations)
    layout = curves.recall_curves(recalls(tuple(f"system {i}" for i in range(9)))).layout
    plot_px = layout.height - layout.margin.t - layout.margin.b
    heights = sorted(a.y * plot_px for a in layout.annotations if a.text.startswith("system"))
    assert len(heights) == 9
    assert np.diff(heights).min() >= style.SMALL + 2


def test_only_what_is_significant_is_filled() -> None:
    marks = intervals.forest(compared(), measure="recall_all@k").data
    significant = [mark for mark in marks if mark.x[0] == 0.051]
    assert significant
    assert [mark for mark in marks if mark.marker.color != "white"] == significant
    marks = intervals.ablation(steps()).data
    assert [mark.marker.symbol for mark in marks] == ["circle", "square"] * 10
    assert [mark for mark in marks if mark.marker.color == "white"] == list(marks[:2]), "the first is the baseline"
    heights = [mark.y[0] for mark in marks]
    assert heights == sorted(heights, reverse=True)
    row = compared().head(1).with_columns(low=None, high=None)  # of one question: no interval
    many = pl.concat([row.with_columns(system=pl.lit(f"{LONG} | {LONG} | {LONG}{i}")) for i in range(3)])
    names = {re.sub(r"<br>", " ", note.text) for note in intervals.forest(many).layout.annotations}
    assert {i for i in range(3) if any(name.endswith(f"(lambda_=0.7){i}") for name in names)} == {0, 1, 2}
    with pytest.raises(DataError, match="9 series, and 8 shapes"):
        intervals.forest(pl.concat([row.with_columns(measure=pl.lit(f"recall@{i}")) for i in range(9)]))


def test_means_have_a_mark_a_series_within_the_axis() -> None:
    values = measured().filter(kind="pronoun").with_columns(pl.col("mean", "low", "high") * 40)
    fig = intervals.mean_intervals(values, digits=2)
    assert len({(mark.marker.symbol, mark.marker.color) for mark in fig.data}) == 3
    low, high = fig.layout.xaxis.range
    assert low < 8 < 32 < high
    text = " ".join(note.text for note in fig.layout.annotations)
    assert "10.00 · 20.00 · 30.00" in text
    assert "as asked (n = 1,200)" in text, "of one row the series say it"


def test_causes_that_took_nothing_are_left_out_unless_none_took_any() -> None:
    fig = bars.share_bars(caused())
    assert list(fig.layout.yaxis.ticktext) == ["caption", "follow-on", "implied", "other words"]
    assert list(fig.data[0].x) == pytest.approx([0.15, 0.25, 0.1, 0.5])
    assert len(bars.share_bars(caused().with_columns(n=0, share=0.0)).layout.yaxis.ticktext) == len(CAUSES)
    wide = style.copy_for_width(bars.share_bars(caused().with_columns(cause=pl.lit(f"{LONG} | {LONG}"))), "column")
    assert wide.layout.margin.l < 200, "a long name leaves the bars their room"


@pytest.mark.parametrize("panels", [1, 3, 9])
@pytest.mark.parametrize("width", style.WIDTHS)
def test_panels_lie_side_by_side_and_on_no_other(panels: int, width: style.Width) -> None:
    layout = style.copy_for_width(sweeps.sweep(swept(panels)), width).layout.to_plotly_json()
    boxes = [(*layout[f"xaxis{i}"]["domain"], *layout[f"yaxis{i}"]["domain"]) for i in ["", *range(2, panels + 1)]]
    assert len(set(boxes)) == panels
    for i, (left, right, low, high) in enumerate(boxes):
        assert 0 <= left < right <= 1
        assert 0 <= low < high <= 1
        assert all(right <= a or b <= left or high <= c or d <= low for a, b, c, d in boxes[:i])


def test_a_box_is_as_high_as_its_leaves_and_inside_its_parent() -> None:
    boxes, fig = {}, rollup.icicle(months())
    for drawn_boxes in fig.data:
        columns = (drawn_boxes.hovertext, drawn_boxes.base, drawn_boxes.x, drawn_boxes.y, drawn_boxes.width)
        for name, left, wide, middle, high in zip(*columns, strict=True):
            boxes[name.split("<br>")[0]] = (left, left + wide, middle - high / 2, middle + high / 2)
    assert boxes["May: garden"][2:] == (0, 3)
    assert boxes["June: piano"][2:] == (3, 4)
    assert boxes["6 – 12 May: seeds"][2:] == boxes["day 1"][2:] == (0, 1)
    assert boxes["May: garden"][1] == boxes["6 – 12 May: seeds"][0]
    assert boxes["day 4"][1] == pytest.approx(1)
    labels = [next(note.text for note in style.copy_for_width(fig, width).layout.annotations if "trip" in note.text)
              for width in ("full", "column")]  # fmt: skip
    assert labels[0].startswith("&lt;b&gt;a trip&lt;/b&gt; &amp;")
    assert labels[1].replace("<br>", " ") == "&lt;b&gt;a trip&lt;/b&gt; &amp; a piano that nobody has room for"


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(-1, 11), min_size=1, max_size=12))
def test_every_node_of_any_forest_is_drawn_once(above: list[int]) -> None:
    parents = [str(a) if 0 <= a < i else None for i, a in enumerate(above)]
    columns: dict[str, Any] = {"node_id": [str(i) for i in range(len(above))], "parent": parents}
    frame = pl.DataFrame(columns, schema_overrides={"parent": pl.String}).with_columns(label=pl.lit("x"), n_turns=1)
    assert sum(len(boxes.y) for boxes in rollup.icicle(frame).data) == len(above)
