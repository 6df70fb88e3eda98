"""The look of the charts."""

from __future__ import annotations

import plotly.graph_objects as go
import plotly.io
from clipped import read

from memlab.figures import style
from memlab.figures.export import pictures


def test_series_stay_apart_when_the_colours_start_again() -> None:
    lines = [style.marked_line([0], [0], str(i), i) for i in range(20)]
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
    drawn = style.copy_for_width(
        style.make_figure(lines, lambda px: style.layout(px, plot_px=100, names=names)), "column"
    )
    texts = {text["words"]: text for text in read(pictures(drawn, ["svg"], "column")["svg"].decode())["texts"]}
    assert texts[names[0]]["top"] == texts[names[1]]["top"] < texts[names[2]]["top"]
