"""No text of any picture is cut off or lies on another or on a mark, and no column is taller than 4.5 in.

No font is installed but what the machine happens to have.
"""

from __future__ import annotations

import re
from pathlib import Path

import plotly.graph_objects as go
import polars as pl
import pytest
from clipped import clipped, read

from memlab.figures import anatomy, intervals, style, sweeps, systems
from memlab.figures._text import text_px
from memlab.figures.export import pictures

DEMO = Path(__file__).parents[2] / "figures"


def svg(fig: go.Figure, width: style.Width = "column") -> str:
    return pictures(fig, ["svg"], width)["svg"].decode()


def test_every_text_of_the_demos_figures_can_be_read() -> None:
    """The demo exports all figures of all notebooks on the sample; .ci/run makes it before the tests."""
    drawn = sorted(DEMO.glob("*.svg"))
    if not drawn:
        pytest.skip("make demo was not run")
    problems = [f"{path.name}: {problem}" for path in drawn for problem in clipped(path.read_text(encoding="utf-8"))]
    assert not problems, "\n".join(problems)


def crossed(values: pl.Series, **others: list[object]) -> pl.DataFrame:
    """Give every combination of columns, with values that repeat over them and an interval around each."""
    frame = pl.DataFrame({values.name: [0]}).drop(values.name)
    for name, own in others.items():
        part = pl.DataFrame({name: own})
        frame = frame.join(part, how="cross") if frame.width else part
    repeated = values.gather([i % len(values) for i in range(frame.height)])
    return frame.with_columns(repeated).with_columns(low=pl.col(values.name) - 0.05, high=pl.col(values.name) + 0.06)


SELECTORS = ["mmr", "dpp", "msd", "by_cluster", "by_cluster(clustering='hdbscan')", "expand_cluster",
             "expand_cluster(clustering='hdbscan')", "fill_sessions", "coverage"]  # fmt: skip
MEASURES = ["recall_all@10", "recall_all@20"]
PANELS = [f"({letter}) {name}" for letter, name in zip("abcdefghi", SELECTORS, strict=True)]


def compared() -> go.Figure:
    frame = crossed(pl.Series("difference", [0.05, 0.0, -0.1, 0.02]), system=SELECTORS, measure=MEASURES)
    return intervals.forest(frame.with_columns(p_holm=1.0, n=67, baseline=pl.lit("combsum")), measure="recall_all@k")


def swept() -> go.Figure:
    frame = crossed(pl.Series("mean", [0.1, 0.2, 0.3, 0.4]), system=PANELS, value=[200, 400, 800, 1600])
    return sweeps.sweep(frame.with_columns(parameter=pl.lit("min_cluster_size"), baseline=0.2))


def climbed() -> go.Figure:
    steps = ["BM25", "+ dense, ranks fused", "scores instead of ranks", "+ evidence of the session",
             "+ late interaction", "+ assistant held back", "+ learned reranker", "+ question rewritten by a model",
             "+ neighbours of the session, reranked", "+ time"]  # fmt: skip
    groups = ["all questions", "evidence in ≥ 2 sessions"]
    frame = crossed(pl.Series("mean", [0.4, 0.5, 0.6]), group=groups, system=steps)
    frame = frame.with_columns(n=137, mean_low="low", mean_high="high", ms=660.0)
    tested = {"difference": -0.022, "low": -0.066, "high": 0.015, "p_holm": 1.0}
    later = pl.when(pl.col("system") != "BM25")
    return intervals.ablation(frame.with_columns(later.then(value).alias(name) for name, value in tested.items()))


CHARTS = {
    "forest": compared,
    "sweep": swept,
    "ablation": climbed,
    "trade-off": lambda: systems.trade_off(
        crossed(pl.Series("recall_all@10", [0.3, 0.4]), system=[f"memory {i}" for i in range(8)])
        .with_columns(pl.lit(0.4).alias(f"recall_all@{n} tokens") for n in (200, 1000))
        .with_columns(pl.lit(12.0).alias("p50 ms"), n=137)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHARTS)
def test_a_column_is_no_taller_than_it_may_be_and_hides_nothing(name: str) -> None:
    """Each chart as tall as the notebooks make it."""
    fig = CHARTS[name]()
    assert clipped(svg(fig)) == []
    assert clipped(svg(fig, "full")) == []


@pytest.mark.parametrize("name", ["forest", "ablation"])
@pytest.mark.parametrize("width", list(style.WIDTHS))
def test_numbers_of_rows_stand_right_of_the_plot_and_its_zero_line(name: str, width: style.Width) -> None:
    fig = CHARTS[name]()
    margin = style.copy_for_width(fig, width).layout.margin
    end = style.WIDTHS[width] - margin.r
    numbers = [
        text for text in read(svg(fig, width))["texts"] if re.match(r"[+−]?\.\d|\d+ (out|in)|\d+ → ", text["words"])
    ]
    assert len(numbers) >= 8
    assert min(text["left"] for text in numbers) > end


@pytest.mark.parametrize("width", list(style.WIDTHS))
def test_ranks_of_missed_evidence_stand_in_the_column_of_ranks_and_on_no_line(width: style.Width) -> None:
    hits = pl.DataFrame({"rank": [1, 2, 3], "score": [0.5, 0.4, 0.3], "session": "s1", "evidence": False, "text": "no"})
    missed = pl.DataFrame({"rank": [18, 1105, None], "session": "s2", "text": "yes"})
    fig = anatomy.question_anatomy(hits, misses=missed, question="Which?")
    drawn, margin = svg(fig, width), style.copy_for_width(fig, width).layout.margin
    assert clipped(drawn) == []
    ranks = [text for text in read(drawn)["texts"] if text["words"] in {"1", "2", "3", "18", "1105", "—"}]
    assert len(ranks) == 6
    assert max(text["right"] for text in ranks) < margin.l


def test_what_is_cut_or_covered_is_named() -> None:
    fig = go.Figure(
        go.Bar(x=[1], y=["a"], orientation="h"), {"template": style.template(), "height": 200, "width": 336}
    )
    fig.update_layout(xaxis_range=[0, 3.2])
    assert clipped(svg(fig)) == []
    placed = {"xref": "paper", "yref": "paper", "showarrow": False}
    fig.add_annotation(x=0.25, y=0.5, text="too long for the bar that it is in", xanchor="center", **placed)
    fig.add_annotation(x=1, y=1.05, text="leaves the page to the right", xanchor="left", **placed)
    fig.add_annotation(x=0.3, y=-0.02, text="on the ticks", yanchor="top", **placed)
    problems = "\n".join(clipped(svg(fig)))
    assert "that it is in' leaves its cell" in problems
    assert "'leaves the page to the right' leaves the page" in problems
    assert "'on the ticks' lies on '1'" in problems


def test_a_tall_column_and_a_hidden_mark_are_named() -> None:
    fig = go.Figure(go.Scatter(x=[0, 1, 2], y=[0, 1, 0], mode="markers"), {"template": style.template()})
    note = {"x": 1, "y": 1, "text": "on a mark", "showarrow": False}
    fig.update_layout(height=433, width=336, annotations=[note])
    assert clipped(svg(fig)) == ["the column is 4.51 in tall"]
    fig.update_layout(height=432, annotations=[{**note, "bgcolor": "white"}])
    assert clipped(svg(fig)) == ["'on a mark' hides 1 mark(s)"]


def test_text_is_as_wide_as_it_was_measured() -> None:
    words = ["How many doctors did I see?", "AVATAR To. fi", "≥ 2 sessions → α·λ", "Привет, Ελλάς", "|||lll…"]
    fig = go.Figure(layout={"template": style.template(), "width": 336, "height": 200})
    for i, text in enumerate(words):
        bold = {"size": 10, "weight": 700} if i == 0 else {"size": 10}
        fig.add_annotation(x=0, y=i / 5, xref="paper", yref="paper", text=text, font=bold, xanchor="left")
    boxes = {text["words"]: text["right"] - text["left"] for text in read(svg(fig))["texts"]}
    for i, text in enumerate(words):
        assert boxes[text] == pytest.approx(text_px(text, 10, bold=i == 0), abs=0.6), text
