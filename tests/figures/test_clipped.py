"""No text of any picture is cut off or lies on another or on a mark, and no column is taller than 4.5 in.

No font is installed but what the machine happens to have.
"""

from __future__ import annotations

from pathlib import Path

import plotly.graph_objects as go
import pytest
from clipped import clipped, read

from memlab.figures import style
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


def test_what_is_cut_covered_or_too_tall_is_named() -> None:
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
    note = {"x": 1, "y": 1, "text": "on a mark", "showarrow": False, "bgcolor": "white"}
    fig = go.Figure(go.Scatter(x=[0, 1, 2], y=[0, 1, 0], mode="markers"), {"template": style.template()})
    fig.update_layout(height=433, width=336, annotations=[note])
    assert clipped(svg(fig)) == ["the column is 4.51 in tall", "'on a mark' hides 1 mark(s)"]


def test_text_is_as_wide_as_it_was_measured() -> None:
    words = ["How many doctors did I see?", "AVATAR To. fi", "≥ 2 sessions → α·λ", "Привет, Ελλάς", "|||lll…"]
    fig = go.Figure(layout={"template": style.template(), "width": 336, "height": 200})
    for i, text in enumerate(words):
        bold = {"size": 10, "weight": 700} if i == 0 else {"size": 10}
        fig.add_annotation(x=0, y=i / 5, xref="paper", yref="paper", text=text, font=bold, xanchor="left")
    boxes = {text["words"]: text["right"] - text["left"] for text in read(svg(fig))["texts"]}
    for i, text in enumerate(words):
        assert boxes[text] == pytest.approx(text_px(text, 10, bold=i == 0), abs=0.6), text
