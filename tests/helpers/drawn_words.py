"""What is written on a chart."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

import plotly.graph_objects as go
from clipped import clipped

from memlab.figures import style
from memlab.figures.export import pictures


def drawn(fig: go.Figure, *, rendered: bool) -> str:
    """Give the words of a chart at column width: as a browser draws them, or as the figure holds them."""
    if not rendered:
        return _plain(_texts(style.copy_for_width(fig, "column")))
    svg = pictures(fig, ["svg"], "column")["svg"].decode()
    assert "<image" not in svg
    assert re.search(r'<svg[^>]* width="336"', svg)
    assert clipped(svg) == []
    return words(svg)


def words(svg: str) -> str:
    """Give the words of an SVG picture, text by text, without its markup."""
    return _plain(re.findall(r"<text[^>]*>(.*?)</text>", svg, flags=re.DOTALL))


def _texts(fig: go.Figure) -> Iterable[str]:
    layout = fig.layout
    yield from (note.text for note in layout.annotations)
    yield layout.legend.title.text or ""
    for axis in (layout[key] for key in layout if key.startswith(("xaxis", "yaxis"))):
        yield from (axis.title.text or "", *map(str, axis.ticktext or ()))
    for trace in fig.data:
        if layout.showlegend and trace.showlegend is not False:
            yield trace.name
        if trace.type == "bar" and trace.textposition == "outside":
            yield from trace.text
        yield from (text for text in trace.x or () if isinstance(text, str))


def _plain(texts: Iterable[str]) -> str:
    return " ".join(" ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split()) for text in texts)
