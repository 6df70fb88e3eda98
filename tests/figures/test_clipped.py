"""No text of any picture is cut off or lies on another, and no column is taller than 4.5 in.

No font is installed but what the machine happens to have.
"""

from __future__ import annotations

from pathlib import Path

import plotly.graph_objects as go
import pytest
from clipped import clipped, read, svg

from memlab.figures import style
from memlab.figures._text import text_px

DEMO = Path(__file__).parents[2] / "figures"


def test_every_text_of_the_demos_figures_can_be_read() -> None:
    """The demo exports all figures of all notebooks on the sample; .ci/run makes it before the tests."""
    drawn = sorted(DEMO.glob("*.svg"))
    if not drawn:
        pytest.skip("make demo was not run")
    seen = {path.name: read(path.read_text(encoding="utf-8")) for path in drawn}
    problems = [f"{name}: {problem}" for name, picture in seen.items() for problem in clipped(picture)]
    assert not problems, "\n".join(problems)


def test_text_is_as_wide_as_it_was_measured() -> None:
    words = ["How many doctors did I see?", "AVATAR To. fi", "≥ 2 sessions → α·λ", "Привет, Ελλάς", "|||lll…"]
    fig = go.Figure(layout={"template": style.template(), "width": 336, "height": 200})
    for i, text in enumerate(words):
        bold = {"size": 10, "weight": 700} if i == 0 else {"size": 10}
        fig.add_annotation(x=0, y=i / 5, xref="paper", yref="paper", text=text, font=bold, xanchor="left")
    widths = {text["words"]: text["width"] for text in read(svg(fig))["texts"]}
    for i, text in enumerate(words):
        assert widths[text] == pytest.approx(text_px(text, 10, bold=i == 0), abs=0.6), text
