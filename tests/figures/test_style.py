"""The look of the charts."""

from __future__ import annotations

import plotly.graph_objects as go
import plotly.io
import pytest
from clipped import read

from memlab.figures import style
from memlab.figures.export import pictures


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", style.PALETTE)
def test_palette_shows_on_white_and_its_darker_shade_carries_text(colour: str) -> None:
    assert 1.05 / (luminance(colour) + 0.05) > 2.2
    assert 1.05 / (luminance(style.darker(colour)) + 0.05) > 3.5


def test_series_stay_apart_when_the_colours_start_again() -> None:
    lines = [style.draw_marked_line([0], [0], str(i), i) for i in range(20)]
    looks = {(line.line.color, line.line.dash, line.marker.symbol) for line in lines}
    assert len(looks) == 20


def test_template_is_not_registered_and_a_figure_of_ones_own_gets_it_only_for_print() -> None:
    before = plotly.io.templates.default
    own = go.Figure(go.Scatter(x=[1], y=[2]), layout={"width": 800, "height": 400, "title": "mine"})
    laid_out = style.copy_for_width(own, "column")
    assert (laid_out.layout.width, laid_out.layout.height) == (336, 168)
    assert laid_out.layout.template.layout.font.size == style.TEXT
    assert laid_out.layout.title.text == "mine"
    assert own.layout.template.layout.font.size is None
    assert plotly.io.templates.default == before


def test_a_legend_is_in_columns_only_where_they_take_no_more_rows() -> None:
    names = ["dense", "hybrid(k=200)", "hybrid(k=200) | mmr(lambda_=0.7)"]
    flowing, height = style.legend_below(names, 336)
    assert flowing["entrywidth"] == 0
    assert height == style.LEGEND_ROW_PX * 2 + 10
    lines = [style.line([0, 1], [i, i], name) for i, name in enumerate(names)]
    drawn = style.copy_for_width(style.plot(lines, plot_px=100, names=names), "column")
    texts = {text["words"]: text for text in read(pictures(drawn, ["svg"], "column")["svg"].decode())["texts"]}
    assert texts[names[0]]["top"] == texts[names[1]]["top"] < texts[names[2]]["top"]
