"""Every chart: its words at both widths, nothing cut off or covered, what it marks, and what it refuses.

The rows are as many and the names as long as the notebooks have them.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io
import polars as pl
import pytest
from clipped import clipped, read, svg
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.evaluate.causes_of_misses import CAUSES
from memlab.figures import (
    anatomy,
    bars,
    condensed_tree,
    cost_of_recall,
    curves,
    icicle,
    intervals,
    map_marks,
    map_names,
    maps,
    style,
    sweep_panels,
)
from memlab.figures.text_and_glyphs import text_px
from memlab.knowledge import confidence
from memlab.knowledge.decay_curves import FAMILIES

LONG = "hybrid(k=200) | mmr(lambda_=0.7)"


@pytest.fixture(autouse=True)
def _first_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every test draw the first figures of its process: names have no looks yet."""
    monkeypatch.setattr(style, "_number_by_name", {})


NASTY = "<script>alert('x')</script> & $x$"
TERMS = pl.DataFrame(
    {"label": list(range(9)), "terms": [f"word{i} · clinic · visit" for i in range(9)]}
)


def points(n: int = 120) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    label = rng.integers(-1, 9, n)
    xy = rng.normal(0, 1, (n, 2)) + 6 * np.column_stack([label % 3, label // 3])
    frame = pl.DataFrame({"x": xy[:, 0], "y": xy[:, 1], "label": label, "text": [NASTY] * n})
    row = pl.int_range(pl.len())
    return frame.with_columns(
        evidence=row.is_in([3, 40, 77]), rank=pl.when(row % 2 == 0).then(row + 1)
    )


def joined() -> pl.DataFrame:
    """Two trees of forty turns, of which the left half holds all evidence."""
    rows = [
        {"panel": f"{head}: 54 % of the memory {NASTY}", "first": first, "end": end,
         "low": low, "high": high, "branch": branch, "holds": holds}
        for head in ("average linkage", "single linkage")
        for first, end, low, high, branch, holds in (
            (0, 40, 1.0, 1.0, 0, False), (0, 20, 0.6, 1.0, 1, True), (20, 40, 0.4, 1.0, 2, False))
    ]  # fmt: skip
    return pl.DataFrame(rows)


def joined_leaves() -> pl.DataFrame:
    place = pl.int_range(40)
    heads = joined()["panel"].unique(maintain_order=True).to_list()
    own = pl.DataFrame({"text": [NASTY] * 40}).select(
        "text", x=place + 0.5, enters=pl.lit(0.6), evidence=place.is_in([2, 9, 17]),
        rank=pl.when(place.is_in([9, 30])).then(place + 1),
    )  # fmt: skip
    return pl.concat([own.with_columns(panel=pl.lit(head)) for head in heads])


WHERE = pl.DataFrame({"panel": [f"as encoded: 97 % of the turns {NASTY}"], "x": [0.0], "y": [0.0]})


def spoken() -> pl.DataFrame:
    heads = (f"{way}: 97 % of the turns {NASTY}" for way in ("as encoded", "speaker-centred"))
    names = pl.Series(
        "speaker", [["Ana", "Mika", "Joe", LONG, None, ""][i % 6] for i in range(120)]
    )
    return pl.concat(points().with_columns(names, panel=pl.lit(head)) for head in heads)


def written(fig: go.Figure, width: style.Width = "full") -> str:
    """Give all annotations of a figure as text."""
    notes = style.copy_for_width(fig, width).layout.annotations
    lines = " ".join(note.text for note in notes).replace("<br>", " ")
    return html.unescape(re.sub("<[^>]*>", "", lines))


def recalls(top: float = 0.8) -> pl.DataFrame:
    rows = [
        (s, k, m := top * k / (k + 4 + 2 * i), m - 0.03, m + 0.03, 0.001 * k, 0.99)
        for i, s in enumerate((LONG, *(f"system {i}" for i in range(8))))
        for k in (1, 5, 10, 50)
    ]
    return pl.DataFrame(
        rows, schema=["system", "k", "mean", "low", "high", "chance", "ceiling"], orient="row"
    )


def crossed(values: pl.Series, **others: list[object]) -> pl.DataFrame:
    """Give every combination of columns, with values that repeat over them and an interval around each."""
    frame = pl.DataFrame({name: [own] for name, own in others.items()})
    for name in others:
        frame = frame.explode(name)
    repeated = values.gather([i % len(values) for i in range(frame.height)])
    return frame.with_columns(repeated).with_columns(
        low=pl.col(values.name) - 0.05, high=pl.col(values.name) + 0.06
    )


SELECTORS = ["mmr", "dpp", "msd", "by_cluster", "by_cluster(clustering='hdbscan')", "expand_cluster",
             "expand_cluster(clustering='hdbscan')", "fill_sessions"]  # fmt: skip


def swept() -> pl.DataFrame:
    named = [f"({letter}) {name}" for letter, name in zip("abcdefgh", SELECTORS, strict=True)]
    frame = crossed(
        pl.Series("mean", [0.1, 0.2, 0.3, 0.4]), system=named, value=[200, 400, 800, 1600]
    )
    return frame.with_columns(parameter=pl.lit("min_cluster_size"), baseline=0.2)


def swept_twice() -> pl.DataFrame:
    """Two parameters of one system, with the base and its interval."""
    frame = crossed(
        pl.Series("mean", [0.1, 0.2, 0.3, 0.4]), setting_2=["average", NASTY], setting=["2", "20"]
    )
    frame = frame.rename({"low": "mean_low", "high": "mean_high"}).with_columns(
        system=pl.lit("by_cluster"),
        parameter=pl.lit("n_clusters"),
        parameter_2=pl.lit("clustering"),
        p_holm=pl.Series([0.001, 0.3, 0.3, 0.001]),
        value=2.0,
    )
    base = {"baseline": 0.25, "baseline_low": 0.2, "baseline_high": 0.31, "n": 291}
    return frame.with_columns(pl.lit(value).alias(name) for name, value in base.items())


def compared() -> pl.DataFrame:
    measures = ["recall_all@10", "recall_all@20"]
    frame = crossed(
        pl.Series("difference", [0.051, 0.0, -0.1, 0.02]),
        system=[LONG, *SELECTORS[1:]],
        measure=measures,
    )
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
    frame = frame.with_columns(n=1137, mean_low="low", mean_high="high")
    tested = {"difference": pl.col("mean") - 0.5, "low": -0.15, "high": 0.05, "p_holm": 0.0004}
    later = pl.when(pl.col("system") != "BM25")
    return frame.with_columns(later.then(value).alias(name) for name, value in tested.items())


def caused() -> pl.DataFrame:
    n = [0, 3, 0, 0, 5, 2, 0, 10, 0, 0]
    table = pl.DataFrame({"cause": list(CAUSES), "n": n}).with_columns(
        share=pl.col("n") / pl.col("n").sum()
    )
    return pl.concat([table.with_columns(group=pl.lit(name)) for name in ("all", "≥ 2")])


def path() -> pl.DataFrame:
    return confidence.trajectory(
        {name: make() for name, make in FAMILIES.items()}, accesses_days=(0.0, 60.0)
    )


def months() -> pl.DataFrame:
    trip = "<b>a trip</b> & a piano that nobody has room for, in no flat of the town, whatever is tried"
    rows = [("m1", None, "May: garden"), ("m2", None, "June: piano"), ("w1", "m1", "6 – 12 May: seeds"),
            ("w2", "m1", trip), ("w3", "m2", "3 – 9 June: keys"),
            *((f"s{i}", w, f"day {i}") for i, w in ((1, "w1"), (2, "w2"), (3, "w2"), (4, "w3")))]  # fmt: skip
    table = pl.DataFrame(rows, schema=["node_id", "parent", "label"], orient="row")
    kinds = {"m": "month", "w": "week", "s": "session"}
    return table.with_columns(n_turns=5, kind=pl.col("node_id").str.head(1).replace_strict(kinds))


def side_by_side() -> pl.DataFrame:
    frame = crossed(
        pl.Series("recall_all@10", [0.3, 0.4]), system=["read", *(f"memory {i}" for i in range(8))]
    )
    timed = pl.when(pl.col("system") != "read").then(12.0).alias("p50 ms")
    ends = {f"recall_all@10_{end}": pl.lit(share) for end, share in (("low", 0.2), ("high", 0.5))}
    return frame.with_columns(
        timed, *(pl.lit(0.4).alias(f"recall_all@{n} tokens") for n in (200, 1000)), n=137, **ends
    )


def timed_side_by_side() -> pl.DataFrame:
    """Six systems with their times, of which the slower find more."""
    place = pl.int_range(pl.len())
    frame = side_by_side().drop_nulls("p50 ms").unique("system", maintain_order=True).head(6)
    return frame.with_columns(
        pl.col("p50 ms") * (place + 1), (place + 20).alias("recall_all@10") / 50
    )


def labelled(
    frame: pl.DataFrame, level: float, *, prefix: str = "", units: int = 6
) -> pl.DataFrame:
    """Say of the intervals of a frame what they are, as the package's own frames do."""
    about = {"level": level, "unit": "scope", "units": units}
    return frame.with_columns(pl.lit(value).alias(prefix + name) for name, value in about.items())


Chart = Callable[[pl.DataFrame], go.Figure]
CHARTS: dict[str, tuple[Chart, pl.DataFrame, list[str]]] = {
    "map": (lambda frame: maps.embedding_map(frame, terms=TERMS, question=(0, 0), title=NASTY), points(),
            [NASTY, "missed (2)", "the question", "word"]),
    "speakers": (lambda frame: maps.speaker_maps(frame, questions=WHERE, title=NASTY),
                 spoken(), [NASTY, "as encoded: 97 %", "speaker-centred", "● nobody", "■ Ana", "others",
                            "☆ missed (2)", "○ retrieved, no evidence"]),
    "recall": (curves.recall_curves, recalls(), [LONG, "recall_all@k", "chance", "k (log scale)"]),
    "over time": (lambda frame: curves.confidence_curves(frame, events=[60]), path(),
                  ["days", "confidence", *FAMILIES, "heard again"]),
    "sweep": (sweep_panels.sweep, swept(), ["min_cluster_size", "plain top-k", "(b) dpp"]),
    "sweep, two": (sweep_panels.sweep, labelled(swept_twice(), 0.95, prefix="mean_"),
                   ["n_clusters", "clustering", "average", "▼ .100", "▲ .400", "[.350, .460]", "(n = 291)",
                    "plain top-k: .250 [.200, .310]", "in brackets: 95 % intervals over 6 scopes"]),
    "forest": (lambda frame: intervals.forest(frame, measure="recall_all@k"), compared(),
               ["+.051 [+.001, +.111] p<.001", "−.100", "(n = 332)", "fill_sessions", "difference [interval] p",
              "filled: p < 0.05 after Holm's correction (blue: better)"]),
    "means": (lambda frame: intervals.mean_intervals(frame, between=" → "), measured(),
              ["pronoun (n = 1,200)", "25% → 50% → 75%", "● as asked, ■ rewritten, ◆ stands <alone>"]),
    "ablation": (intervals.ablation, steps(),
                 ["○ all questions (n = 1,137)", "BM25", ".400 −.100 [−.150, +.050] p<.001", "+ time",
              "mean gain [interval] p", "(blue: better, orange: worse)"]),
    "shares": (lambda frame: bars.share_bars(frame, xlabel="share of items"), caused(),
               ["other words", "share of items", "≥ 2", "10"]),
    "trees": (lambda frame: condensed_tree.condensed_tree(frame, joined_leaves(), title=NASTY), joined(),
              [NASTY, "average linkage: 54 %", "distance", "the branch with all evidence", "evidence, missed"]),
    "icicle": (icicle.icicle, months(), ["month", "May: garden", "day 4"]),
    "trade-off": (
        cost_of_recall.trade_off,
        side_by_side(),
        ["all evidence in so many tokens", "share of questions", "recall_all@10; bars", "read", "memory 7", "colours as", ".300", "1,000"],
    ),
    "trade-off, timed": (
        cost_of_recall.trade_off,
        timed_side_by_side(),
        ["median time of a search, ms (log scale)", "bars: intervals", "no other is faster", "memory 5"],
    ),
    "recall, labelled": (curves.recall_curves, labelled(recalls(), 0.95),
                         ["k (log scale); bands: 95 % intervals over 6 scopes"]),
    "sweep, labelled": (sweep_panels.sweep, labelled(swept().with_columns(p_holm=0.2), 0.9984),
                        ["with the parameter; no mark has p < 0.05, corrected; bars: 99.8 % intervals over 6 scopes"]),
    "forest, corrected": (intervals.forest, labelled(compared(), 1 - 0.05 / 16),
                          ["bars: 99.7 % intervals over 6 scopes, corrected for 16 tests"]),
    "forest, uncorrected": (intervals.forest, labelled(compared(), 0.95),
                            ["bars: 95 % intervals over 6 scopes, uncorrected"]),
    "means, labelled": (intervals.mean_intervals, labelled(measured(), 0.9),
                        ["bars: 90 % intervals over 6 scopes"]),
    "ablation, labelled": (intervals.ablation, labelled(steps(), 1 - 0.05 / 18).with_columns(mean_level=0.95),
                           ["bars, of means: 95 % intervals over 6 scopes, each alone",
                            "in brackets, of gains: 99.7 % intervals over 6 scopes, corrected for 18 tests"]),
    "trade-off, labelled": (cost_of_recall.trade_off, labelled(side_by_side(), 0.95, prefix="recall_all@10_"),
                            ["recall_all@10; bars: 95 % intervals over 6 scopes"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_drawn_with_its_words_and_nothing_is_cut_off_or_covered(name: str) -> None:
    chart, frame, expected = CHARTS[name]
    fig = chart(frame)
    for width, px in style.WIDTHS.items():
        layout = style.copy_for_width(fig, width).layout
        assert (layout.width, layout.meta) == (px, None)
        assert layout.height < 3 * px
        assert px - layout.margin.l - layout.margin.r > 60
        assert layout.height - layout.margin.t - layout.margin.b > 40
        picture = svg(fig, width)
        assert "<image" not in picture
        seen = read(picture)
        assert clipped(seen) == []
        shown = " ".join(text["words"] for text in seen["texts"])
        assert [text for text in expected if text not in shown] == [], shown
        if name in ("forest", "ablation"):
            numbers = [text for text in seen["texts"] if re.match(r"[+−]?\.\d", text["words"])]
            assert len(numbers) >= 8
            assert min(text["left"] for text in numbers) > px - layout.margin.r, "right of the plot"
    assert chart(frame) == fig, "the same frame gives the same figure"


def test_every_text_of_the_demos_figures_can_be_read() -> None:
    """The demo exports all figures of all notebooks on the sample; .ci/run makes it before the tests."""
    drawn = sorted((Path(__file__).parents[2] / "figures" / "sample").glob("*.svg"))
    if not drawn:
        pytest.skip("make demo was not run")
    seen = {path.name: read(path.read_text(encoding="utf-8")) for path in drawn}
    problems = [
        f"{name}: {problem}" for name, picture in seen.items() for problem in clipped(picture)
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", CHARTS)
def test_a_missing_column_is_named_and_no_rows_are_a_sentence(name: str) -> None:
    chart, frame, _ = CHARTS[name]
    gone = frame.columns[0]
    with pytest.raises(DataError, match=rf"needs the column\(s\) {gone}; the frame has"):
        chart(frame.drop(gone))
    said = chart(frame.clear())
    for width, px in style.WIDTHS.items():
        layout = style.copy_for_width(said, width).layout
        (note,) = layout.annotations
        assert note.text.replace("<br>", " ") == style.NOTHING_TO_DRAW
        assert layout.width == px


def test_a_map_names_each_cluster_marks_by_shape_and_has_one_scale() -> None:
    frame = points().with_columns(label=pl.when("evidence").then(8).otherwise("label"))
    fig = maps.embedding_map(frame, terms=TERMS, question=(0.0, 0.0))
    labels = frame.filter(~pl.col("evidence"))["label"]
    names = dict(TERMS.select("label", "terms").iter_rows())
    tints = {trace.name: trace.marker.color for trace in fig.data if trace.type == "scatter"}
    for label in labels.unique():
        assert (names.get(label, f"cluster {label}") if label >= 0 else "in no cluster") in tints
    loose = next(iter(tints.values())) if (labels < 0).any() else "#D8D8D8"
    assert loose == "#D8D8D8", "below all others, and pale"
    assert len({(trace.marker.symbol, trace.marker.color) for trace in fig.data[-4:]}) == 4, (
        "told apart by shape"
    )
    for width, px in style.WIDTHS.items():
        layout = style.copy_for_width(fig, width).layout
        across, up = np.diff(layout.xaxis.range)[0], np.diff(layout.yaxis.range)[0]
        high = layout.height - layout.margin.t - layout.margin.b
        assert across / (px - layout.margin.l - layout.margin.r) == pytest.approx(
            up / high, rel=0.01
        )
    noted = maps.embedding_map(points(400), terms=TERMS, note="owen: first 10 of bm25")
    assert noted.data[0].type == "contour"
    assert "owen: first 10 of bm25" in "".join(note.text for note in noted.layout.annotations)


def clustered(n_clusters: int) -> pl.DataFrame:
    """Give clusters of nine turns each on a grid."""
    rng = np.random.default_rng(3)
    middles = np.array([(number % 6, number // 6) for number in range(n_clusters)], float)
    at = np.repeat(middles, 9, axis=0) + rng.normal(scale=0.1, size=(n_clusters * 9, 2))
    frame = pl.DataFrame(
        {"x": at[:, 0], "y": at[:, 1], "label": np.repeat(np.arange(n_clusters), 9)}
    )
    return frame.with_columns(evidence=pl.lit(False), rank=pl.lit(None, pl.Int32))


def map_key(fig: go.Figure, width: style.Width) -> str:
    key_note = style.copy_for_width(fig, width).layout.annotations[-1].text
    return re.sub("<[^>]*>", "", key_note.replace("<br>", "\n"))


def cluster_tints(fig: go.Figure) -> dict[str, str]:
    return {
        trace.name: trace.marker.color for trace in fig.data if trace.name.startswith("cluster ")
    }


def test_clusters_with_evidence_or_retrieved_turns_have_a_colour_and_others_none() -> None:
    row = pl.int_range(pl.len())
    frame = clustered(20).with_columns(
        evidence=row == 19 * 9,
        rank=pl.when(row.is_in([4 * 9, 4 * 9 + 1, 7 * 9])).then(1),
        second=row == 11 * 9,
    )
    fig = maps.embedding_map(frame, terms=TERMS.clear())
    tints = cluster_tints(fig)
    marked = [f"cluster {label}" for label in (19, 4, 7, 11)]
    assert [tints[name] for name in marked] == list(map_names.TINTS)[:4]
    assert {tint for name, tint in tints.items() if name not in marked} == {map_names.OTHER_TINT}
    for width in style.WIDTHS:
        key = map_key(fig, width)
        assert "in colour (stars: the rim): the 4 clusters with evidence or retrieved turns" in key
        assert "● 16 other clusters" in key
    every = frame.with_columns(rank=pl.when(row % 9 == 0).then(1))
    crowded = maps.embedding_map(every, terms=TERMS.clear())
    assert list(cluster_tints(crowded).values()).count(map_names.OTHER_TINT) == 12
    assert "8 of the 20 clusters with evidence" in map_key(crowded, "full")
    unasked = maps.embedding_map(clustered(20), terms=TERMS.clear())
    assert "in colour: the 8 largest clusters" in map_key(unasked, "full")


def test_a_star_has_a_rim_in_the_colour_of_its_cluster_or_speaker() -> None:
    row = pl.int_range(pl.len())
    frame = clustered(9).with_columns(
        evidence=row.is_in([0, 9, 10]),
        rank=pl.when(row == 9).then(1),
        speaker=pl.when(row % 2 == 0).then(pl.lit("Ana")).otherwise(pl.lit("Bo")),
    )
    fig = maps.embedding_map(frame, terms=TERMS.clear())
    rim_of = {trace.name: trace for trace in fig.data}["rim of evidence"]
    tints = cluster_tints(fig)
    rims = set(rim_of.marker.color)
    assert rims == {tints["cluster 0"], tints["cluster 1"]}
    assert len(rim_of.x) == 3
    assert rim_of.marker.line.color == rim_of.marker.color
    stars = [trace for trace in fig.data if trace.marker.symbol == "star"]
    assert stars[0] is rim_of, "behind the stars"
    assert "ranks come from full vectors or words" in map_key(fig, "column").replace("\n", " ")
    spoken = maps.speaker_maps(frame.with_columns(panel=pl.lit("a")))
    (rim,) = [trace for trace in spoken.data if trace.name == "rim of evidence"]
    dots = {trace.name: trace.marker.color for trace in spoken.data[:2]}
    assert sorted(rim.marker.color) == sorted([dots["Ana"], dots["Ana"], dots["Bo"]])
    assert "rim of a star: its speaker" in map_key(spoken, "column")


def test_a_number_far_from_its_cluster_has_a_line_to_it_and_a_scattered_cluster_no_name() -> None:
    rng = np.random.default_rng(1)
    places = rng.uniform(0, 200, (60, 2))
    drawn = map_names.DrawnPoints(places, np.arange(60) % 3, np.empty((0, 2)), 5.0)
    grey = map_names.MapCluster(0, "scattered", map_names.OTHER_TINT, "#000000")
    area = np.array([300.0, 300.0])
    placed = map_names.place_cluster_names(drawn, [grey], plot_area=area, width_name="full")
    assert not placed.notes
    together = drawn._replace(labels=(places[:, 0] > 100).astype(int))
    placed = map_names.place_cluster_names(together, [grey], plot_area=area, width_name="full")
    assert len(placed.notes) == 1
    names = [f"a very long name {number}" * 3 for number in range(2)]
    marked = [
        map_names.MapCluster(number, names[number], tint, ink)
        for number, (tint, ink) in enumerate(list(map_names.TINTS.items())[:2])
    ]
    crowd = together._replace(mark_centres=places)
    numbered = map_names.place_cluster_names(crowd, marked, plot_area=area, width_name="column")
    assert [cluster.label for cluster in numbered.numbered] == [0, 1]
    for leader, ink in numbered.leaders:
        own = places[crowd.labels == [cluster.ink for cluster in marked].index(ink)]
        assert np.linalg.norm(own - leader[1], axis=1).min() < 1e-6
    assert len(numbered.leaders) == 2


def test_what_two_pipelines_retrieved_has_marks_of_its_own_and_the_key_counts_them() -> None:
    row = pl.int_range(pl.len())
    frame = clustered(9).with_columns(
        evidence=row < 4, rank=pl.when(row.is_in([0, 1, 10, 20])).then(1), second=row.is_in([1, 2, 20, 30, 40])
    )  # fmt: skip
    fig = maps.embedding_map(frame, terms=TERMS.clear(), first="best", second="bm25")
    drawn = {trace.name: (trace.marker.symbol, len(trace.x)) for trace in fig.data[-6:]}
    assert drawn == {
        "retrieved by the first pipeline alone, no evidence": ("circle-open", 1),
        "retrieved by both, no evidence": ("square-open", 1),
        "retrieved by the second pipeline alone, no evidence": ("triangle-up-open", 2),
        "evidence, retrieved": ("star", 2),
        "evidence, missed": ("star", 2),
        "evidence, retrieved by the second pipeline": ("triangle-up", 2),
    }
    for width in style.WIDTHS:
        key = map_key(fig, width)
        assert "retrieved by best (2)   ☆ missed by best (2)" in key
        assert "▲ on a star: by bm25 (2)" in key
        assert "retrieved, no evidence:   ○ best alone (1)   □ both (1)   △ bm25 alone (2)" in key
        written = style.copy_for_width(fig, width).layout.annotations
        assert "Evidence retrieved: best 2 of 4, bm25 2 of 4" in [note.text for note in written]
    alone = maps.embedding_map(frame.drop("second"), terms=TERMS.clear(), first="best")
    assert "○ retrieved by best, no evidence (2)" in map_key(alone, "column")


def test_no_line_of_a_name_ends_at_a_mark_or_is_long() -> None:
    rng = np.random.default_rng(0)
    frame = clustered(24).with_columns(
        x=pl.col("x") + rng.normal(scale=0.4, size=24 * 9),
        rank=pl.when(pl.int_range(pl.len()) % 4 == 0).then(1),
    )
    names = pl.DataFrame({"label": range(24), "terms": [f"a long name {i}" for i in range(24)]})
    fig = maps.embedding_map(frame, terms=names)
    rings = next(trace for trace in fig.data if trace.marker.symbol == "circle-open")
    ring_places = np.column_stack([rings.x, rings.y])
    layout = style.copy_for_width(fig, "full").layout
    px_per_unit = (672 - 16) / np.diff(layout.xaxis.range)[0]
    for line in layout.shapes:
        ends = np.array([[line.x0, line.y0], [line.x1, line.y1]]) * px_per_unit
        assert np.linalg.norm(ends[1] - ends[0]) <= 46
        assert np.linalg.norm(ring_places * px_per_unit - ends[1], axis=1).min() >= 8.5


def test_colours_are_near_where_places_are_and_stay_when_others_come() -> None:
    around = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    ring = np.column_stack([3 * np.cos(around), np.sin(around)])
    tints = style.position_colours(ring, ring)
    rgb = np.array([[int(tint[i : i + 2], 16) for i in (1, 3, 5)] for tint in tints], float)
    beside = np.linalg.norm(rgb - np.roll(rgb, 1, axis=0), axis=1)
    across = np.linalg.norm(rgb - np.roll(rgb, 12, axis=0), axis=1)
    assert beside.max() < across.min() / 2
    assert style.position_colours(ring[5:7], ring) == tints[5:7]
    assert style.position_colours(np.zeros((1, 2)), np.zeros((1, 2)))[0].startswith("#")
    assert style.scale_colours(6) == list(style.SCALE)
    assert style.scale_colours(1) == [style.SCALE[0]]
    assert style.scale_colours(0) == []


def test_names_stand_at_their_clusters_without_overlap_and_the_key_has_the_rest() -> None:
    frame = clustered(24).with_columns(
        evidence=pl.col("label") == 23,
        speaker=pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit("Ana")).otherwise(pl.lit("Bo")),
    )  # fmt: skip
    frame = frame.with_columns(rank=pl.when(pl.col("label") % 4 == 1).then(1))
    names = pl.DataFrame({"label": range(24), "terms": [f"name{i} · of {i}" for i in range(24)]})
    fig = maps.embedding_map(frame, terms=names)
    # Empty bands are narrowed, so a cluster is drawn nearer to its neighbours than it was.
    drawn_at = {}
    for trace in fig.data:
        if trace.name.startswith(("evidence", "name")):
            label = 23 if trace.name.startswith("evidence") else int(trace.name[4:].split(" ")[0])
            drawn_at[label] = (np.median(trace.x), np.median(trace.y))
    for width, px in style.WIDTHS.items():
        layout = style.copy_for_width(fig, width).layout
        written = [note for note in layout.annotations if re.search(r">name\d", note.text)]
        numbered = [note for note in layout.annotations if re.search(r"<b>\d</b>", note.text)]
        key = map_key(fig, width)
        in_key = re.findall(r"● \d name(\d+)", key)
        assert len(in_key) == len(numbered)
        named = [int(re.search(r"name(\d+)", note.text)[1]) for note in written]
        assert {23, 1, 5, 9, 13, 17, 21} <= {*named, *map(int, in_key)}, "all that have a colour"
        if width == "full":
            others = len(written) + len(numbered) - 7
            assert others > 0
            assert f"17 other clusters, {others} of them named" in key
        assert "● Bo (144)" in key
        assert "■ Ana (72)" in key
        scale = (px - 16) / np.diff(layout.xaxis.range)[0]
        boxes = []
        for note in written:
            lines = re.findall(r">(?:<b>)?([^<>]+)(?:</b>)?</span>", note.text)
            wide = max(text_px(line, style.SMALL) for line in lines)
            boxes.append((note.x * scale, note.y * scale, wide / 2, 5 * len(lines)))
            label = int(re.search(r"name(\d+)", note.text)[1])
            assert abs(note.x - drawn_at[label][0]) < 1.2
            assert abs(note.y - drawn_at[label][1]) < 1.2
        for i, (x, y, w, h) in enumerate(boxes):
            for x2, y2, w2, h2 in boxes[:i]:
                assert abs(x - x2) >= w + w2 or abs(y - y2) >= h + h2
    shapes = {trace.name: trace.marker.symbol for trace in fig.data if trace.name == "name0 · of 0"}
    assert set(shapes["name0 · of 0"]) == {"circle", "square"}


def test_sessions_are_coloured_in_order_and_speakers_by_name() -> None:
    frame = pl.DataFrame({"x": range(20), "y": [0, 1] * 10, "label": range(20)})
    frame = frame.with_columns(evidence=False, rank=pl.lit(None, pl.Int32))
    names = pl.DataFrame({"label": range(20), "terms": [f"day {i}" for i in range(20)]})
    fig = maps.embedding_map(frame, terms=names, kind="session")
    tints = [trace.marker.color for trace in fig.data if trace.type == "scatter"]
    assert tints == style.scale_colours(20)
    notes = [note.text for note in fig.layout.annotations]
    assert not any(text.startswith("<b>day") for text in notes), "a session lies anywhere"
    assert "first: day 0" in notes[-1]
    assert "last: day 19" in notes[-1]
    few = frame.with_columns(label=pl.col("label") % 6)
    spoken = maps.embedding_map(few, terms=names.head(6), kind="speaker")
    tints = [trace.marker.color for trace in spoken.data if trace.type == "scatter"]
    assert tints == [style.NOISE, *style.SPEAKER_TINTS]
    assert "other speakers" in spoken.layout.annotations[-1].text


def test_a_large_map_is_thinned_and_says_so_and_a_coordinate_must_be_finite() -> None:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {"x": rng.normal(size=7000), "y": rng.normal(size=7000), "label": rng.integers(-1, 3, 7000)}
    )
    frame = frame.with_columns(evidence=pl.int_range(pl.len()) < 2, rank=pl.lit(None, pl.Int32))
    fig = maps.embedding_map(frame, terms=TERMS)
    assert ",000 of 7,000 points drawn" in fig.layout.annotations[-1].text
    assert len(fig.data[-1].x) == 2
    equal = pl.DataFrame({"stage": ["bm25"] * 2, "text": ["Thanks!"] * 2, "rank": [1, 50]})
    assert [line.y[0] for line in anatomy.evidence_ranks_by_stage(equal).data] == [1, 50]
    named = equal.with_columns(stage=pl.lit("… | learned(model='./results/a.safetensors')"))
    assert anatomy.evidence_ranks_by_stage(named).layout.xaxis.ticktext == ("… | learned",)
    cut = equal.with_columns(snippet=pl.lit("… after the snippet"))
    assert {line.name for line in anatomy.evidence_ranks_by_stage(cut).data} == {
        "… after the snippet"
    }
    with pytest.raises(DataError, match="not finite"):
        maps.embedding_map(points().with_columns(x=pl.lit(float("nan"))), terms=TERMS)


def test_recall_starts_at_nought_and_names_a_ceiling_off_the_scale() -> None:
    near, far = curves.recall_curves(recalls()), curves.recall_curves(recalls(top=0.2))
    assert near.layout.yaxis.range[0] == far.layout.yaxis.range[0] == 0
    assert near.layout.yaxis.range[1] > 0.99
    assert far.layout.yaxis.range[1] < 0.3
    assert any("ceiling (≥ 0.99, off the scale)" in a.text for a in far.layout.annotations)


def test_a_sweep_shows_every_bar_in_the_order_given_and_joins_no_texts() -> None:
    frame = (
        swept().filter(pl.col("value") <= 400).with_columns(baseline_low=0.15, baseline_high=0.9)
    )
    frame = frame.with_columns(mean_low=pl.lit(-0.2), mean_high=pl.lit(0.5), low=9.0, high=9.0)
    fig = sweep_panels.sweep(frame)
    low, high = fig.layout.yaxis.range
    assert low < -0.2
    assert 0.9 < high < 1.1, "low and high are of the difference where the mean has its own"
    heads = [note.text for note in fig.layout.annotations[: len(SELECTORS)]]
    assert [head[3:6] for head in heads] == [f"({letter})" for letter in "abcdefgh"]
    assert {trace.name for trace in fig.data if trace.mode == "lines" and trace.showlegend} == {
        "plain top-k; band: its interval"
    }
    texts = frame.with_columns(value=pl.lit(None, pl.Float64), setting=pl.lit("average"))
    modes = {trace.mode for trace in sweep_panels.sweep(texts).data if trace.marker.size}
    assert modes == {"markers"}
    both = pl.concat([swept_twice(), swept_twice().with_columns(system=pl.lit("other"))])
    with pytest.raises(DataError, match="two parameters of one system"):
        sweep_panels.sweep(both)


def test_only_what_is_significant_is_filled() -> None:
    marks = intervals.forest(compared(), measure="recall_all@k").data
    significant = [mark for mark in marks if mark.x[0] == 0.051]
    assert significant
    assert [mark for mark in marks if mark.marker.color != "white"] == significant
    marks = intervals.ablation(steps()).data
    assert [mark.marker.symbol for mark in marks] == ["circle", "square"] * 10
    assert [mark for mark in marks if mark.marker.color == "white"] == list(marks[:2]), (
        "the first is the baseline"
    )
    heights = [mark.y[0] for mark in marks]
    assert heights == sorted(heights, reverse=True)
    panels = swept().with_columns(p_holm=pl.when(pl.col("value") > 400).then(0.01).otherwise(0.3))
    filled = [mark.marker.color for mark in sweep_panels.sweep(panels).data if mark.marker.size]
    assert {
        colours[:2] == ("white", "white") and "white" not in colours[2:] for colours in filled
    } == {True}
    row = compared().head(1).with_columns(low=None, high=None)  # of one question: no interval
    many = pl.concat(
        [row.with_columns(system=pl.lit(f"{LONG} | {LONG} | {LONG}{i}")) for i in range(3)]
    )
    names = {re.sub(r"<br>", " ", note.text) for note in intervals.forest(many).layout.annotations}
    assert {i for i in range(3) if any(name.endswith(f"(lambda_=0.7){i}") for name in names)} == {
        0,
        1,
        2,
    }
    with pytest.raises(DataError, match="9 series, and 8 shapes"):
        intervals.forest(
            pl.concat([row.with_columns(measure=pl.lit(f"recall@{i}")) for i in range(9)])
        )


def test_means_have_a_mark_a_series_within_the_axis() -> None:
    values = measured().filter(kind="pronoun").with_columns(pl.col("mean", "low", "high") * 40)
    fig = intervals.mean_intervals(values, digits=2)
    assert len({(mark.marker.symbol, mark.marker.color) for mark in fig.data}) == 3
    low, high = fig.layout.xaxis.range
    assert low < 8 < 32 < high
    text = written(fig)
    assert "10.00 · 20.00 · 30.00" in text
    assert "as asked (n = 1,200)" in text, "of one row the series say it"


def test_causes_that_took_nothing_are_left_out_unless_none_took_any() -> None:
    fig = bars.share_bars(caused())
    assert list(fig.layout.yaxis.ticktext) == ["caption", "follow-on", "implied", "other words"]
    assert list(fig.data[0].x) == pytest.approx([0.15, 0.25, 0.1, 0.5])
    assert len(bars.share_bars(caused().with_columns(n=0, share=0.0)).layout.yaxis.ticktext) == len(
        CAUSES
    )
    noted = bars.share_bars(caused(), note="The first rule that holds is the cause.")
    for width in style.WIDTHS:
        said = style.copy_for_width(noted, width).layout.annotations[-1].text.replace("<br>", " ")
        assert said.startswith("The first rule that holds is the cause. None: ")
        assert said.endswith(".")
        assert set(said.split("None: ")[1].rstrip(".").split(", ")) == {
            cause for cause in CAUSES if cause not in fig.layout.yaxis.ticktext
        }
    ruled = bars.share_bars(caused().with_columns(rule=pl.lit("what it is")))
    assert ruled.layout.yaxis.ticktext[0] == (
        "<b>caption</b><br><span style='font-size:8px'>what it is</span>"
    )
    wide = style.copy_for_width(
        bars.share_bars(caused().with_columns(cause=pl.lit(f"{LONG} | {LONG}"))), "column"
    )
    assert wide.layout.margin.l < 200, "a long name leaves the bars their room"


def test_a_box_is_as_high_as_its_leaves_and_inside_its_parent() -> None:
    boxes, fig = {}, icicle.icicle(months())
    for drawn_boxes in fig.data:
        columns = (
            drawn_boxes.hovertext,
            drawn_boxes.base,
            drawn_boxes.x,
            drawn_boxes.y,
            drawn_boxes.width,
        )
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
    assert (
        labels[1].replace("<br>", " ")
        == "&lt;b&gt;a trip&lt;/b&gt; &amp; a piano that nobody has room for, +2"
    )


@given(st.lists(st.integers(-1, 11), min_size=1, max_size=12))
def test_every_node_of_any_forest_is_drawn_once(above: list[int]) -> None:
    parents = [str(a) if 0 <= a < i else None for i, a in enumerate(above)]
    columns: dict[str, Any] = {"node_id": [str(i) for i in range(len(above))], "parent": parents}
    frame = pl.DataFrame(columns, schema_overrides={"parent": pl.String}).with_columns(
        label=pl.lit("x"), n_turns=1
    )
    assert sum(len(boxes.y) for boxes in icicle.icicle(frame).data) == len(above)


def test_marks_of_a_map_that_would_hide_each_other_are_moved_apart_and_the_key_says_so() -> None:
    crowd = points().with_columns(evidence=pl.int_range(pl.len()) < 3, rank=pl.lit(None, pl.Int32))
    marked = pl.col("evidence")
    piled = crowd.with_columns(
        pl.when(~marked).then(name).otherwise(0.5).alias(name) for name in "xy"
    )
    fig = maps.embedding_map(piled, terms=TERMS, first="best")
    (stars,) = (trace for trace in fig.data if trace.name == "evidence, missed")
    layout = style.copy_for_width(fig, "column").layout
    scale = (layout.width - layout.margin.l - layout.margin.r) / np.diff(layout.xaxis.range)[0]
    places = np.column_stack([stars.x, stars.y]) * scale
    for first in range(3):
        for second in range(first):
            assert np.linalg.norm(places[first] - places[second]) > 14.5, "a star is 14 wide"
    key = re.sub("<[^>]*>", "", layout.annotations[-1].text.replace("<br>", " "))
    assert "moved apart" in key
    assert "evidence:   ☆ missed by best (3)" in key


def test_a_question_stands_beside_the_only_turn_of_a_map() -> None:
    frame = pl.DataFrame({"x": [0.0], "y": [0.0], "label": [-1], "evidence": [True], "rank": [1]})
    fig = maps.embedding_map(frame, terms=TERMS.clear(), question=(0.0, 0.0))
    cross, star = fig.data[-2:]
    for width, px in style.WIDTHS.items():
        layout = style.copy_for_width(fig, width).layout
        px_per_unit = (px - 16) / np.diff(layout.xaxis.range)[0]
        apart = np.hypot(cross.x[0] - star.x[0], cross.y[0] - star.y[0]) * px_per_unit
        assert 14 < apart < 48


def test_a_column_shows_the_first_branches_whose_leaves_have_two_lines() -> None:
    rows = [(f"m{n}", None, f"month {n}") for n in range(8)]
    rows += [(f"w{n}", f"m{n // 4}", f"topic {n}") for n in range(32)]
    frame = pl.DataFrame(rows, schema=["node_id", "parent", "label"], orient="row")
    fig = icicle.icicle(frame.with_columns(n_turns=3), note="weeks begin on Monday")
    column, full = (style.copy_for_width(fig, width).layout for width in ("column", "full"))
    texts = " ".join(note.text for note in column.annotations).replace("<br>", " ")
    assert "topic 11" in texts
    assert "topic 12" not in texts
    assert "3 of 8 boxes shown, all of them at page width; weeks begin on Monday" in texts
    assert column.height <= style.TALLEST_PX
    assert "topic 31" in " ".join(note.text for note in full.annotations)


def test_series_stay_apart_when_the_colours_start_again() -> None:
    lines = [style.marked_line([0], [0], str(i), i) for i in range(20)]
    looks = {(line.line.color, line.line.dash, line.marker.symbol) for line in lines}
    assert len(looks) == 20


def test_names_stand_side_by_side_below_their_branches() -> None:
    name = pl.when(pl.col("low") < 1).then("Garden & seeds " + pl.col("branch").cast(pl.String))
    fig = condensed_tree.condensed_tree(
        joined().with_columns(name=name.fill_null("")), joined_leaves()
    )
    for width in style.WIDTHS:
        drawn = style.copy_for_width(fig, width)
        labels = [note for note in drawn.layout.annotations if note.showarrow]
        assert [note.text.replace("<br>", " ") for note in labels] == [
            "Garden &amp; seeds 1",
            "Garden &amp; seeds 2",
        ] * 2
        assert all(note.ay > 0 for note in labels), "below"
        assert [note.y for note in labels] == pytest.approx([0.6, 0.4] * 2)
    unnamed = condensed_tree.condensed_tree(joined(), joined_leaves())
    assert not any(note.showarrow for note in unnamed.layout.annotations)


def test_template_is_not_registered_and_a_figure_of_ones_own_gets_it_only_for_print() -> None:
    before = plotly.io.templates.default
    own = go.Figure(go.Scatter(x=[1], y=[2]), layout={"width": 800, "height": 400, "title": "mine"})
    laid_out = style.copy_for_width(own, "column")
    assert (laid_out.layout.width, laid_out.layout.height) == (336, 168)
    assert laid_out.layout.template.layout.font.size == style.TEXT
    assert laid_out.layout.title.text == "mine"
    assert own.layout.template.layout.font.size is None
    assert plotly.io.templates.default == before


def test_a_tree_is_blue_where_it_holds_all_evidence_and_evidence_stands_under_it() -> None:
    fig = condensed_tree.condensed_tree(joined(), joined_leaves())
    blue = [trace for trace in fig.data if trace.name == "the branch with all evidence"]
    # The corners of its boxes: the left half, from .6 up.
    assert [(min(t.x[:5]), max(t.x[:5]), min(t.y[:5]), max(t.y[:5])) for t in blue] == [
        (0, 20, 0.6, 1.0)
    ] * 2
    for name, places in (
        ("evidence, missed", [2.5, 17.5]),
        ("evidence, retrieved", [9.5]),
        ("retrieved", [9.5, 30.5]),
    ):
        own = [trace for trace in fig.data if trace.name == name]
        assert [list(trace.x) for trace in own] == [places, places]
        assert all(y < 0.4 for trace in own for y in trace.y), "below what is drawn of the tree"
    with pytest.raises(DataError, match="not finite"):
        condensed_tree.condensed_tree(
            joined().with_columns(high=pl.lit(float("nan"))), joined_leaves()
        )


def test_of_a_box_without_room_the_first_topic_is_cut_and_its_heading_not_repeated() -> None:
    topic = "a very long talk about the frame of a bicycle and its gravel wheels"
    weeks = [f"week of {day} May 2026: {topic}, a cat" for day in range(1, 31)]
    rows = [{"node_id": "m", "parent": None, "kind": "month", "label": "May 2026", "n_turns": 1}]
    rows += [
        {"node_id": week, "parent": "m", "kind": "week", "label": week, "n_turns": 1}
        for week in weeks
    ]
    drawn = style.copy_for_width(icicle.icicle(pl.DataFrame(rows)), "column")
    labels = [note.text for note in drawn.layout.annotations if "May 2026: " in note.text]
    assert len(labels) == 30
    assert labels[2].startswith("3 May 2026: a very long talk")
    assert all(label.endswith("… +1") for label in labels)
    assert all(label.split("…")[0].split()[-1] in topic.split() for label in labels), "whole words"
    notes = " ".join(note.text for note in drawn.layout.annotations)
    assert "+2: two more topics" in notes.replace("<br>", " ")


def test_of_many_leaves_the_boxes_above_are_wide_and_the_unnamed_are_counted() -> None:
    rows = [("m1", None, "May"), ("m2", None, "June")]
    rows += [(f"w{n}", f"m{1 + n // 40}", f"week {n}") for n in range(80)]
    frame = pl.DataFrame(rows, schema=["node_id", "parent", "label"], orient="row")
    fig = icicle.icicle(frame.with_columns(n_turns=3))
    for width in style.WIDTHS:
        notes = [note.text for note in style.copy_for_width(fig, width).layout.annotations]
        assert notes == ["May", "June", "2 of 82 boxes labelled, the others have no room"]
    widths = {row for trace in fig.data for row in trace.x}
    assert max(widths) > 0.8, "the months have the room that the weeks have no use for"


def test_only_a_stage_that_works_on_another_is_joined_to_it() -> None:
    rows = {
        "stage": ["bm25", "dense", "hybrid", "… | mmr"],
        "text": ["tea"] * 4,
        "rank": [4, 3, 2, 1],
    }
    fig = anatomy.evidence_ranks_by_stage(pl.DataFrame(rows))
    assert list(fig.data[0].y) == [4, None, 3, None, 2, 1]
    assert fig.layout.yaxis.ticktext == ("1", "2", "5", "10", "20")


def test_the_trade_off_ends_above_the_tick_above_its_highest_mark() -> None:
    low = side_by_side().with_columns(pl.col("^recall_all@.*$") / 2)
    for frame, top in ((side_by_side(), 0.6 * 1.02), (low, 0.3 * 1.02)):
        layout = cost_of_recall.trade_off(frame).layout
        assert layout.yaxis.range == layout.xaxis2.range == (0, pytest.approx(top))
        layout = cost_of_recall.trade_off(frame.drop_nulls("p50 ms")).layout
        assert layout.yaxis.range == layout.yaxis2.range == (0, pytest.approx(top))


def test_a_system_of_which_nothing_was_measured_is_named() -> None:
    blank = pl.when(pl.col("system") == "memory 3").then(None).otherwise("recall_all@10")
    fig = cost_of_recall.trade_off(side_by_side().with_columns(blank.alias("recall_all@10")))
    notes = [note.text.partition(";")[0] for note in fig.layout.annotations]
    assert "not drawn: memory 3 (no recall_all@10 was measured)" in notes


def test_a_name_has_one_look_in_all_figures() -> None:
    row = {"k": [5, 10], "mean": [0.2, 0.4], "low": [0.1, 0.3], "high": [0.3, 0.5]}
    first = pl.concat([pl.DataFrame({"system": name, **row}) for name in ("mine", "bm25")])
    second = pl.concat([pl.DataFrame({"system": name, **row}) for name in ("theirs", "mine")])
    looks = []
    for frame in (first, second):
        marked = [trace for trace in curves.recall_curves(frame).data if trace.showlegend]
        looks.append(
            {
                trace.name: (trace.line.color, trace.line.dash, trace.marker.symbol)
                for trace in marked
            }
        )
    assert looks[0]["mine"] == looks[1]["mine"]
    assert len({*looks[0].values(), *looks[1].values()}) == 3
    assert looks[0]["bm25"][0] == style.PALETTE[0], "in every notebook"
    eight = style.assign_series_numbers(["bm25", "best", *(f"memory {i}" for i in "abcdef")])
    assert len({style.colour(number) for number in eight.values()}) == 8
    assert len({(style.symbol(number), style.dash(number)) for number in eight.values()}) == 8
    many = style.assign_series_numbers([f"system {i}" for i in range(60)])
    assert len({(style.colour(i), style.symbol(i)) for i in list(many.values())[:40]}) == 40


def test_differences_that_nobody_tested_are_filled_where_their_interval_excludes_0() -> None:
    frame = compared().filter(pl.col("measure") == compared()["measure"][0])
    frame = frame.with_columns(p_holm=pl.lit(None, pl.Float64))
    fig = intervals.forest(frame, lower_is_better=True)
    for mark, test_row in zip(fig.data, frame.iter_rows(named=True), strict=False):
        excludes = test_row["low"] > 0 or test_row["high"] < 0
        assert (mark.marker.color != "white") == excludes
        if excludes:
            assert mark.marker.color == style.PALETTE[int(test_row["difference"] > 0)], "a loss"
    assert (
        "filled: the interval excludes 0, not corrected (blue: better, orange: worse)"
        in written(fig)
    )


def test_a_map_of_few_points_has_no_lines_of_density() -> None:
    assert "contour" not in {
        trace.type for trace in maps.embedding_map(points(30), terms=TERMS).data
    }


def test_what_is_shaded_is_said_above_the_plot() -> None:
    rows = {"stage": ["bm25", "mmr"], "text": ["tea"] * 2, "rank": [40, 1]}
    for width in ("full", "column"):
        drawn = style.copy_for_width(anatomy.evidence_ranks_by_stage(pl.DataFrame(rows)), width)
        [note] = [note for note in drawn.layout.annotations if "first 10" in note.text]
        assert (note.y, note.yanchor) == (1, "bottom")
        assert drawn.layout.margin.t >= 20


def test_points_of_a_curve_are_named_near_their_marks_and_apart() -> None:
    names = ["none", "all", "50", "100"]
    rows = [
        {
            "system": system,
            "k": k,
            "mean": mean,
            "low": mean - 0.05,
            "high": mean + 0.05,
            "point": name,
        }
        for system, lift in (("a", 0.0), ("b", 0.02))
        for k, mean, name in zip(
            (0.0, 3.0, 13.0, 23.0), (0.4 + lift, 0.5, 0.8, 0.9), names, strict=True
        )
    ]
    fig = curves.recall_curves(pl.DataFrame(rows), axis="price", log_x=False)
    notes = style.copy_for_width(fig, "full").layout.annotations
    named = [note for note in notes if note.text in names]
    assert sorted(note.text for note in named) == sorted(names * 2)
    assert len({(note.x, note.y) for note in named}) == 8
    assert all(0 <= note.x <= 1 and 0 <= note.y <= 1 for note in named)
    in_column = style.copy_for_width(fig, "column").layout.annotations
    in_column_named = [note for note in in_column if note.text in names]
    assert len(in_column_named) >= 6
    note_text = f"{8 - len(in_column_named)} points have no room for their names"
    if len(in_column_named) == 7:
        note_text = "one point has no room for its name"
    assert (note_text in {note.text for note in in_column}) == (len(in_column_named) < 8)


@pytest.mark.parametrize(("units", "limited"), [(6, True), (14, False)])
def test_tests_of_too_few_scopes_say_that_none_can_be_significant(
    units: int, limited: bool
) -> None:
    row = {"system": "by_cluster", "difference": -0.22, "low": -0.36, "high": -0.08}
    row |= {"p_holm": 1.0, "n": 100, "level": 0.999, "unit": "scope", "units": units}
    fig = intervals.forest(pl.DataFrame(row), baseline="best")
    key = " ".join(note.text.replace("<br>", " ") for note in fig.layout.annotations)
    limit = "of 6 scopes no p is below 0.031, so that none of 50 tests can be significant"
    assert (limit in key) == limited


def test_a_ring_shows_the_corners_of_the_square_in_it() -> None:
    square = 6.5  # the points of a small map
    assert map_marks.ring_diameter_px(square) > square * 2**0.5 + 1.4
    assert map_marks.ring_diameter_px(3.0) == 8


def test_a_baseline_is_named_in_place_of_its_column() -> None:
    row = {"system": "mmr", "difference": -0.1, "low": -0.2, "high": 0.0, "p_holm": 0.01, "n": 10}
    frame = pl.DataFrame([row | {"baseline": 0.35}])
    fig = intervals.forest(frame, measure="recall_all@10", baseline="best")
    assert "difference in recall_all@10 to best (n = 10)" in str(fig.layout)


def test_a_line_has_no_gap_in_which_a_mark_would_stand_alone() -> None:
    mark_px = style.marked_line([0], [0], "best", 0).marker.size
    for name in style.DASHES:
        lengths = style.line([0], [0], "best", dash=name).line.dash
        gaps = [float(length.removesuffix("px")) for length in lengths.split(",")[1::2]]
        assert all(gap <= mark_px / 2 for gap in gaps), name
    assert len({style.line([0], [0], "", dash=name).line.dash for name in style.DASHES}) == 16


def test_lines_of_different_colours_have_different_dashes() -> None:
    assert len({style.dash(number) for number in range(16)}) == 16
    usual = style.assign_series_numbers(["bm25", "dense", "hybrid", "best", "combsum"])
    assert len({style.dash(number) for number in usual.values()}) == 5


def test_eight_systems_of_a_second_figure_have_eight_shapes() -> None:
    shared = ["bm25", "best", "mem0-verbatim"]
    style.assign_series_numbers([*shared, "combsum", "my memory", "LangChain"])
    numbers = style.assign_series_numbers([*shared, "a", "b", "c", "d", "e"]).values()
    assert len({style.colour(number) for number in numbers}) == 8
    assert len({style.symbol(number) for number in numbers}) == 8


def test_a_p_that_no_draw_reached_is_a_bound_and_the_tests_that_are_not_drawn_are_counted() -> None:
    row = {
        "difference": -0.1,
        "low": -0.2,
        "high": -0.01,
        "n": 100,
        "unit": "question",
        "units": 100,
    }
    row |= {"level": 1 - 0.05 / 50, "baseline": "best"}
    tests = {"mmr": 1 / 10_001, "dpp": 2 / 10_001, "msd": 0.5}
    rows = [row | {"system": name, "p": p, "p_holm": min(50 * p, 1.0)} for name, p in tests.items()]
    for width in style.WIDTHS:
        text = written(intervals.forest(pl.DataFrame(rows)), width)
        assert "−.100 [−.200, −.010] p≤.005" in text
        assert "−.100 [−.200, −.010] p=.010" in text
        assert "−.100 [−.200, −.010] p=1 " in text
        assert "corrected for 50 tests, of which 3 are drawn" in text
        assert "(orange: worse)" in text


def test_rows_of_differences_say_their_n_where_it_differs() -> None:
    row = {"difference": 0.1, "low": 0.0, "high": 0.2, "p_holm": 0.5, "baseline": "best"}
    rows = [row | {"system": name, "n": n} for name, n in (("weeks", 1291), ("clusters", 150))]
    for width in style.WIDTHS:
        text = written(intervals.forest(pl.DataFrame(rows)), width)
        assert "weeks (n = 1,291)" in text
        assert "clusters (n = 150)" in text
    fig = intervals.forest(pl.DataFrame(rows))
    assert fig.layout.xaxis.title.text == "difference in recall_all@10 to best"
    same = intervals.forest(pl.DataFrame(rows).with_columns(n=150))
    assert same.layout.xaxis.title.text.endswith("to best (n = 150)")


def test_a_name_with_a_remark_in_brackets_has_its_n_there() -> None:
    row = {"difference": 0.1, "low": 0.0, "high": 0.2, "p_holm": 0.5, "baseline": "best"}
    names = {"best + weeks (4 memories)": 291, "by_cluster(n=2)": 150}
    rows = [row | {"system": name, "n": n} for name, n in names.items()]
    for width in style.WIDTHS:
        text = written(intervals.forest(pl.DataFrame(rows)), width)
        assert "best + weeks (4 memories, n = 291)" in text
        assert "by_cluster(n=2) (n = 150)" in text
    ends = {"mean": 0.2, "low": 0.1, "high": 0.3, "k": 10}
    points = [ends | {"system": name, "n": n} for name, n in names.items()]
    assert "(4 memories, n = 291)" in written(curves.recall_curves(pl.DataFrame(points)))


def test_an_interval_narrower_than_its_mark_is_a_bracket_under_it() -> None:
    row = {"difference": 0.001, "low": -0.001, "high": 0.002, "p_holm": 0.5, "n": 9}
    wide = row | {"system": "b", "low": -0.2, "high": 0.2}
    rows = pl.DataFrame([row | {"system": "a"}, wide]).with_columns(baseline=pl.lit("best"))
    fig = intervals.forest(rows, lower_is_better=True)
    for width in style.WIDTHS:
        drawn = style.copy_for_width(fig, width)
        (bracket,) = (shape for shape in drawn.layout.shapes if shape.type == "path")
        assert bracket.yanchor == drawn.data[0].y[0]
        assert bracket.ysizemode == "pixel"
        assert "-0.001" in bracket.path
        assert "0.002" in bracket.path
        assert "bracket under a mark" in written(fig, width)
        axis_title = drawn.layout.xaxis.title.text.replace("<br>", " ")
        assert axis_title.endswith("right of 0: worse")
    assert len(fig.data) == 2, "nothing is drawn in a mark"
    plain = intervals.forest(rows.filter(system="b"))
    assert "bracket" not in written(plain)


def test_rows_of_means_say_of_what_their_numbers_are_and_which_series_has_no_interval() -> None:
    row = {"kind": "week", "mean": 0.5, "level": 0.95, "unit": "question", "units": 291}
    rows = [
        row | {"form": "questions", "n": 291, "low": 0.4, "high": 0.6},
        row | {"form": "turns", "n": 2644, "low": None, "high": None},
    ]
    frame = pl.DataFrame(rows + [each | {"kind": "month", "n": each["n"] // 2} for each in rows])
    for width in style.WIDTHS:
        fig = intervals.mean_intervals(frame)
        text = written(fig, width)
        assert "week (n = 291 questions, 2,644 turns)" in text
        assert "month (n = 145 questions, 1,322 turns)" in text
        assert "bars: 95 % intervals over questions, none for turns" in text
        notes = style.copy_for_width(fig, width).layout.annotations
        [numbers] = {note.text for note in notes if "50%" in note.text}
        inks = [style.darken_colour(mark.marker.color, 0.15) for mark in fig.data[:2]]
        assert re.findall("color:(#[0-9A-F]+)", numbers) == inks, "in the colours of their marks"
    many = frame.with_columns(form="a form with a long name: " + pl.col("form"))
    assert "week (n = 291 · 2,644)" in written(intervals.mean_intervals(many))


def test_names_of_rows_break_before_their_n_where_one_has_no_room() -> None:
    frame = measured().with_columns(kind=pl.col("kind").str.replace("long name.*", "long name too"))
    long_name = pl.when(pl.col("kind") != "pronoun").then("kind").otherwise(pl.lit("pronoun" * 3))
    fig = intervals.mean_intervals(frame.with_columns(kind=long_name))
    names = [note.text for note in fig.layout.annotations if "(n = " in note.text]
    assert names[:2] == [
        "pronoun" * 3 + "<br>(n = 1,200)",
        "a kind with a very long name too<br>(n = 1,201)",
    ]


def test_a_sweep_says_over_which_questions_it_was_measured() -> None:
    frame = swept().with_columns(group=pl.lit("evidence in ≥ 2 sessions"))
    for width in style.WIDTHS:
        fig = sweep_panels.sweep(frame)
        assert "questions: evidence in ≥ 2 sessions" in written(fig, width)
        assert style.copy_for_width(fig, "column").layout.height <= style.TALLEST_PX
    assert "questions:" not in written(sweep_panels.sweep(swept()))


def test_a_sweep_has_ticks_at_its_values_and_numbers_where_they_have_room() -> None:
    frame = swept()
    fig = sweep_panels.sweep(frame)
    for width, px in style.WIDTHS.items():
        layout = style.copy_for_width(fig, width).layout
        for axis_name in ("xaxis", "xaxis8"):
            axis = layout[axis_name]
            assert list(axis.tickvals) == [200, 400, 800, 1600]
            assert axis.ticktext[-1] == "1,600"
            assert axis.range[0] < 200 < 1600 < axis.range[1]
            panel_px = (px - layout.margin.l - layout.margin.r) * np.diff(axis.domain)[0]
            px_per_unit = panel_px / np.diff(axis.range)[0]
            ends = [
                (value * px_per_unit - half, value * px_per_unit + half)
                for value, label in zip(axis.tickvals, axis.ticktext, strict=True)
                if (half := text_px(label, style.SMALL) / 2)
            ]
            assert len(ends) >= 2
            assert all(end < start for (_, end), (start, _) in pairwise(ends))
    single = sweep_panels.sweep(frame.filter(value=400)).layout.xaxis
    assert (list(single.tickvals), list(single.ticktext)) == ([400], ["400"])
    assert single.range[0] < 400 < single.range[1]


def test_an_axis_of_shares_ends_above_its_last_tick() -> None:
    for highest in (0.004, 0.04, 0.1, 0.22, 0.43, 0.62, 0.92, 1.0):
        axis = style.share_axis(highest)
        ticks = axis["range"][1] / 1.02 / axis["dtick"]
        assert ticks == pytest.approx(round(ticks))
        assert highest < axis["range"][1] <= 1.02
        assert round(ticks) <= 6
    high = recalls().with_columns(ceiling=pl.lit(None, pl.Float64), high=pl.lit(0.9))
    assert curves.recall_curves(high).layout.yaxis.range[1] == 1.02


def test_all_points_of_the_language_models_picture_have_names_that_no_line_touches() -> None:
    picture = Path(__file__).parents[2] / "docs" / "pictures" / "language-model.json"
    values = pl.DataFrame(json.loads(picture.read_text(encoding="utf-8"))["values"])
    fig = curves.recall_curves(values, axis="US$", log_x=False, note="all: of a model " * 7)
    for width in style.WIDTHS:
        layout = style.copy_for_width(fig, width).layout
        named = [note for note in layout.annotations if note.text in values["point"].to_list()]
        assert len(named) == values.height
        assert layout.height <= style.TALLEST_PX
        plot_px = np.array(
            [
                layout.width - layout.margin.l - layout.margin.r,
                layout.height - layout.margin.t - layout.margin.b,
            ]
        )
        for led in (note for note in named if note.showarrow):
            mark = np.array([led.x, led.y]) * plot_px
            line = np.linspace(mark, mark + np.array([led.ax, -led.ay]), 50)
            for other in named:
                centre = np.array([other.x, other.y]) * plot_px
                if other.showarrow:
                    centre = centre + np.array([other.ax, -other.ay])
                half = np.array([text_px(other.text, style.SMALL), 8.0]) / 2
                touches = (np.abs(line - centre) < half).all(axis=1).any()
                assert other is led or not touches, (width, led.text, other.text)


def test_numbers_beside_bars_stand_on_white_and_marks_of_days_on_the_axis() -> None:
    bar_notes = bars.share_bars(caused()).layout.annotations
    counts = [note for note in bar_notes if "%" in note.text]
    assert {note.bgcolor for note in counts} == {"white"}
    fig = curves.confidence_curves(path(), events=[60])
    plot_px = fig.layout.height - fig.layout.margin.t - fig.layout.margin.b
    middle_px = fig.data[-1].y[0] / fig.layout.yaxis.range[1] * plot_px
    # Of a triangle a quarter of its size lies below its middle.
    assert middle_px == pytest.approx(fig.data[-1].marker.size / 4, abs=1)


def test_times_have_numbers_between_decades_where_these_are_few() -> None:
    layout = cost_of_recall.trade_off(timed_side_by_side()).layout
    assert list(layout.xaxis2.ticktext[:5]) == ["1", "2", "5", "10", "20"]
    assert layout.xaxis2.ticktext[-1] == "1,000"
    wide = timed_side_by_side().with_columns(pl.col("p50 ms") ** pl.int_range(pl.len()))
    ticks = cost_of_recall.trade_off(wide).layout.xaxis2.ticktext
    assert set(ticks[:3]) == {"0.1", "1", "10"}
