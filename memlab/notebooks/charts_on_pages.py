"""Charts on the page of a notebook: in letters of the size of the text, and interactive."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from memlab.figures.figure_export import font_face_rules, plotly_script

PLOTLY = "application/vnd.plotly.v1+json"
TEXT_PX = 15
"""The letters of a page; those of a chart become as large."""
MOST_BYTES = 3_000_000
"""What the charts of a page may take to come to life; plotly's own script takes 4.8 MB beside."""
_LARGEST_SCALE = 1.5
_PLOTLY_FONT_PX = 12.0
_DRAWN_PX = 672.0
_FONT_SIZE = re.compile(r"font-size: ?([\d.]+)px")
_SIZE = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)(?:px)?"')
_SCRIPT = """
for (const place of document.querySelectorAll(".chart[data-chart]")) {
  const spec = JSON.parse(document.getElementById(place.dataset.chart).textContent);
  const picture = place.querySelector("img"), layout = spec.layout;
  layout.width ||= picture.naturalWidth; layout.height ||= picture.naturalHeight;
  const live = document.createElement("div");
  live.className = "live";
  const fit = () => {
    const scale = place.clientWidth / layout.width;
    live.style.cssText = `width:${layout.width}px;transform:scale(${scale})`;
    place.style.height = `${layout.height * scale}px`;
  };
  place.append(live);
  fit();
  const options = {
    displaylogo: false, plotlyServerURL: "", responsive: false, plotGlPixelRatio: 3,
    modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
  };
  Plotly.newPlot(live, spec.data, layout, options).then(() => picture.remove());
  addEventListener("resize", fit);
}
"""


class PageCharts:
    """The charts of one page, which share a script.

    >>> from memlab.notebooks.charts_on_pages import PageCharts
    >>> charts = PageCharts()
    >>> picture = '<svg width="672" height="300"><text style="font-size: 10px">recall</text></svg>'
    >>> charts.add_chart_html({"data": [], "layout": {}}, picture)[:45]
    '<div class="chart" style="width:1008px" data-'
    """

    def __init__(self) -> None:
        self._specs: list[str] = []

    def add_chart_html(self, plotly_spec: Mapping[str, Any], svg_picture: str) -> str:
        """Add a chart to the page, and give its place: its picture, until a script draws it.

        A chart that would make the page too large stays a picture.

        :param plotly_spec: a figure as plotly gives it to a notebook.
        :param svg_picture: the same as an SVG.
        """
        chart_json = json.dumps(
            {"data": plotly_spec.get("data", []), "layout": plotly_spec.get("layout", {})},
            ensure_ascii=False,
            separators=(",", ":"),
        )
        n_taken = sum(map(len, self._specs))
        if n_taken + len(chart_json) + len(svg_picture) > MOST_BYTES:
            return self.static_picture_html(svg_picture)
        chart_name = f"chart-{len(self._specs)}"
        self._specs.append(chart_json)
        return _sized_picture_html(svg_picture, f' data-chart="{chart_name}"')

    def static_picture_html(self, svg_picture: str) -> str:
        """Give the place of a picture that stays one."""
        return _sized_picture_html(svg_picture, "")

    def chart_script(self) -> str:
        """Give the scripts of the page, none where no chart comes to life."""
        if not self._specs:
            return ""
        spec_scripts = ""
        for chart_number, chart_spec in enumerate(self._specs):
            # A text in a chart may end the script.
            safe_spec = chart_spec.replace("</", "<\\/")
            spec_scripts += (
                f'<script type="application/json" id="chart-{chart_number}">{safe_spec}</script>\n'
            )
        plotly_code = plotly_script().decode("utf-8")
        return f"{spec_scripts}<script>{plotly_code}</script>\n<script>{_SCRIPT}</script>"

    def font_face_rules(self) -> str:
        """Give the font of the charts, as far as they need it."""
        if not self._specs:
            return ""
        return font_face_rules("".join(self._specs))


def _sized_picture_html(svg_picture: str, attributes: str) -> str:
    encoded = base64.b64encode(svg_picture.encode("utf-8", "replace")).decode()
    shown_width = round(_svg_width(svg_picture) * _svg_text_scale(svg_picture))
    image_markup = f'<img src="data:image/svg+xml;base64,{encoded}" alt="figure">'
    return f'<div class="chart" style="width:{shown_width}px"{attributes}>{image_markup}</div>'


def _svg_width(svg_picture: str) -> float:
    width_match = _SIZE.search(svg_picture)
    if width_match is None:
        return _DRAWN_PX
    return float(width_match[1])


def _svg_text_scale(svg_picture: str) -> float:
    """Give how much larger a picture must be for most of its letters to be as large as the text."""
    font_sizes = Counter(map(float, _FONT_SIZE.findall(svg_picture)))
    drawn_size = _PLOTLY_FONT_PX
    if font_sizes:
        # Of labels: a title, or the legend that a script hides, is one of many.
        drawn_size = font_sizes.most_common(1)[0][0]
    return min(max(TEXT_PX / max(drawn_size, 1.0), 1.0), _LARGEST_SCALE)
