"""Figures to files: HTML, SVG, PDF and PNG at paper widths, with the data and where it came from."""

from __future__ import annotations

import hashlib
import html
import io
import json
import re
import struct
import warnings
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from memlab import __version__
from memlab.errors import ExportError
from memlab.figures import _browser
from memlab.figures._font import faces
from memlab.figures._text import clean
from memlab.figures.origin import origin
from memlab.figures.style import WIDTHS, Width, for_width
from memlab.files import atomic

if TYPE_CHECKING:
    import os

    import plotly.graph_objects as go

PICTURES = ("svg", "pdf", "png")
PNG_SCALE = 4
"""A pixel of layout is 1/96 in: four make 384 dots an inch."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_GL_POINTS = 20_000
_RASTER = ("surface", "isosurface", "volume", "splom", "parcoords")


@dataclass(frozen=True)
class Exported:
    """What an export wrote.

    :param name: the name of the figure.
    :param directory: where the files are.
    :param files: their names: the sidecar, the page, the data, and a picture for each format and width.
    :param figure: what was exported, for showing it: a notebook shows it alive, and as a picture where no script runs.
    """

    name: str
    directory: Path
    files: tuple[str, ...]
    figure: go.Figure = field(repr=False, compare=False)

    def path(self, format: str, width: Width = "full") -> Path:
        """Give the path of one file: ``html``, ``parquet``, ``json``, or a picture format at a width."""
        return self.directory / _file(self.name, format, width)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        # No PNG beside the plotly figure: JupyterLab would show that, at 2,688 px, until a mouse comes.
        shown = json.loads(for_width(self.figure, "full").to_json())
        bundle = {"text/plain": repr(self), "application/vnd.plotly.v1+json": shown}
        if self.path("svg").exists():
            bundle["image/svg+xml"] = self.path("svg").read_text(encoding="utf-8")
        return bundle


def export(
    fig: go.Figure,
    name: str,
    *,
    data: pl.DataFrame | None = None,
    caption: str = "",
    provenance: Mapping[str, Any] | None = None,
    directory: str | os.PathLike[str] = "figures",
    width: Width | Literal["both"] = "both",
) -> Exported:
    """Write a figure for a paper, with everything needed to draw it again.

    ``NAME.svg``, ``.pdf`` and ``.png`` are 7 in wide, ``NAME.column.svg`` and so on 3.5 in, each laid out for its
    width; ``NAME.html`` is interactive and needs no network but the one ``plotly-VERSION.min.js`` beside all pages;
    ``NAME.parquet`` holds what is plotted; ``NAME.json`` says what it is, where it came from (the notebook or script,
    its parameters and commit, see :func:`memlab.figures.origin.origin`) and what was written. All files are made
    before the first is put in its place, each by an atomic rename, so a failure leaves no half of anything. The same
    call on the same machine writes the same bytes.

    :param data: what is plotted; read off the figure where not given.
    :param provenance: anything that JSON can hold.
    :param width: ``column`` or ``full`` where only one is wanted.
    :raises ExportError: for a bad name, a browser that fails (page, data and sidecar are written all the same), or a
        directory that cannot be written. Where no browser is installed, a warning says so instead.

    >>> from memlab.figures import export
    >>> export(None, "Figure 1")
    Traceback (most recent call last):
    memlab.errors.ExportError: a figure cannot be called 'Figure 1': use small letters, digits, - and _
    """
    if not _NAME.fullmatch(name):
        raise ExportError(f"a figure cannot be called {name!r}: use small letters, digits, - and _")
    if width != "both" and width not in WIDTHS:
        raise ExportError(f"no paper width {width!r}; use 'column' (3.5 in), 'full' (7 in) or 'both'")
    widths: list[Width] = list(WIDTHS) if width == "both" else [width]
    fig = _drawable(fig, name)
    table = data if data is not None else plotted(fig)
    files = {f"{name}.parquet": _parquet(table, name), f"{name}.html": _page(fig, name, caption)}
    failure: ExportError | None = None
    try:
        _browser.find()
        files |= {_file(name, fmt, w): drawn for w in widths for fmt, drawn in pictures(fig, PICTURES, w, name).items()}
    except ExportError as error:
        failure = error
    files[f"{name}.json"] = _sidecar(name, fig, files, table, caption, provenance)
    target = Path(directory)
    pictures_of_name = {_file(name, fmt, w) for w in WIDTHS for fmt in PICTURES}
    put(target, files | _plotly_js(target), stale=pictures_of_name - files.keys())
    if failure is not None:
        message = f"figure {name!r}: page and data are in {target}, pictures are not: {failure}"
        if not isinstance(failure, _browser.NoBrowser):
            raise ExportError(message) from failure
        warnings.warn(message, stacklevel=2)
    return Exported(name, target, tuple(files), fig)


def pictures(fig: go.Figure, formats: Collection[str], width: Width, name: str = "figure") -> dict[str, bytes]:
    """Draw a figure once at a paper width, and give it as ``svg``, ``pdf`` and ``png``, or those of them wanted.

    :param name: titles the PDF, and keeps the ids of two SVGs on one page apart.
    """
    laid_out = for_width(fig, width)
    for i, trace in enumerate(laid_out.data):
        trace.uid = f"t{i}"  # else random, and written into the SVG
    drawn = _browser.draw(laid_out, formats, scale=PNG_SCALE, title=name)
    finish = {"svg": lambda svg: _same_svg(svg, f"{name} {width}"), "pdf": _same_pdf, "png": _with_dpi}
    return {format: finish[format](picture) for format, picture in drawn.items()}


def plotted(fig: go.Figure) -> pl.DataFrame:
    """Read what a figure shows: ``trace``, ``x``, ``y``, and ``z`` and ``text`` where there are any.

    Points come trace by trace, the cells of a heat map row by row, then what is written on the figure as the trace
    ``annotations``. A column of numbers alone is one of numbers.
    """
    rows = [row for i, trace in enumerate(fig.data) for row in _points(trace, trace.name or f"trace {i}")]
    rows += [("annotations", note.x, note.y, None, note.text) for note in fig.layout.annotations if note.text]
    texts = [[None if value is None else str(value) for value in row] for row in rows]
    schema = dict.fromkeys(("trace", "x", "y", "z", "text"), pl.String())
    table = pl.DataFrame(texts, schema=schema, orient="row")
    numbers = [c for c in "xyz" if table[c].cast(pl.Float64, strict=False).null_count() == table[c].null_count()]
    empty = [c for c in ("z", "text") if table[c].null_count() == table.height]
    return table.with_columns(pl.col(numbers).cast(pl.Float64)).drop(empty)


def _points(trace: Any, name: str) -> Iterator[tuple[Any, ...]]:
    x, y, z, text = ([] if (v := getattr(trace, key, None)) is None else v for key in ("x", "y", "z", "text"))
    if len(z):
        yield from (
            (name, x[j] if len(x) else j, y[i] if len(y) else i, value, None)
            for i, row in enumerate(z)
            for j, value in enumerate(row)
        )
        return
    words = [text] * max(len(x), len(y)) if isinstance(text, str) else text
    yield from ((name, *row[:2], None, row[2]) for row in zip_longest(x, y, words))


def _file(name: str, format: str, width: Width) -> str:
    return f"{name}.column.{format}" if width == "column" and format in PICTURES else f"{name}.{format}"


def _drawable(fig: go.Figure, name: str) -> go.Figure:
    """Turn WebGL traces, which a vector file can only hold as a raster, into drawn ones, or refuse."""
    import plotly.graph_objects as go

    spec = fig.to_dict()
    for trace in spec.get("data", ()):
        kind = trace.get("type", "scatter")
        if kind in ("scattergl", "scatterpolargl"):
            points = max(len(getattr(t, "x", None) or ()) if t.type == kind else 0 for t in fig.data)
            if points > _GL_POINTS:
                raise ExportError(
                    f"figure {name!r} draws {points:,} points with WebGL; keep {_GL_POINTS:,} or bin them"
                )
            trace["type"] = kind.removesuffix("gl")
        elif kind.endswith(("gl", "3d")) or kind in _RASTER:
            raise ExportError(f"figure {name!r} has a {kind} trace, which is drawn as a raster; use go.Scatter")
    return go.Figure(spec)


def _parquet(table: pl.DataFrame, name: str) -> bytes:
    buffer = io.BytesIO()
    try:
        table.write_parquet(buffer)
    except (pl.exceptions.PolarsError, AttributeError) as error:
        raise ExportError(f"the data of figure {name!r} cannot be written as Parquet: {error}") from error
    return buffer.getvalue()


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>{faces}
body{{font:15px/1.5 "Liberation Sans",Arial,sans-serif;color:#222;max-width:720px;margin:2rem auto;padding:0 1rem}}
p{{color:#444}}</style></head>
<body>{figure}<p>{caption}</p></body></html>
"""


def _page(fig: go.Figure, name: str, caption: str) -> bytes:
    import plotly.io

    quiet = {"displaylogo": False, "plotlyServerURL": "", "responsive": False}
    shown = for_width(fig, "full")
    body = plotly.io.to_html(
        shown, include_plotlyjs=_plotly_js_name(), include_mathjax=False, full_html=False, div_id=name, config=quiet
    )
    words = html.escape(clean(caption))
    fonts = faces(json.dumps(shown.to_plotly_json(), ensure_ascii=False, default=str) + caption)
    page = _PAGE.format(title=html.escape(name), faces=fonts, figure=body, caption=words)
    return page.encode("utf-8", "replace")


def _plotly_js_name() -> str:
    import plotly

    return f"plotly-{plotly.__version__}.min.js"


def _plotly_js(target: Path) -> dict[str, bytes]:
    """Give the script of every page, 4.8 MB, where it is not in its place yet."""
    import plotly

    script, place = Path(plotly.__file__).parent / "package_data" / "plotly.min.js", target / _plotly_js_name()
    if place.is_file() and place.stat().st_size == script.stat().st_size:
        return {}
    return {place.name: script.read_bytes()}


def _sidecar(
    name: str, fig: go.Figure, files: Mapping[str, bytes], table: pl.DataFrame, caption: str,
    provenance: Mapping[str, Any] | None,
) -> bytes:  # fmt: skip
    import plotly

    fields = {
        "name": name,
        "caption": clean(caption),
        "made_by": origin(),
        "provenance": dict(provenance or {}),
        "data": {"rows": table.height, "columns": {c: str(t) for c, t in table.schema.items()}},
        "files": sorted([*files, f"{name}.json"]),
        "font": (fig.layout.font.family or fig.layout.template.layout.font.family or "").split(",")[0],
        "versions": {"memlab": __version__, "plotly": plotly.__version__},
    }
    return (json.dumps(fields, indent=2, default=str) + "\n").encode()


def put(target: Path, files: Mapping[str, bytes], *, stale: Collection[str] = ()) -> None:
    """Write all files beside their places, then rename each; pictures of an earlier export that were not made go."""
    with ExitStack() as whole:
        for file, content in files.items():
            stream = whole.enter_context(atomic(target / file))
            stream.write(content)
            stream.flush()
    for old in stale:
        (target / old).unlink(missing_ok=True)


def _same_svg(drawn: bytes, key: str) -> bytes:
    """Replace plotly's random id, which names every clip path, by one of the figure and its width.

    The empty style of the outermost element goes: it stands before or behind ``viewBox``, by which of two callbacks of
    the browser came first.
    """
    drawn = re.sub(rb'^(<svg [^>]*?) style=""', rb"\1", drawn)
    clip = re.search(rb'id="defs-([0-9a-f]{6})"', drawn)
    return drawn.replace(clip[1], hashlib.sha256(key.encode()).hexdigest()[:6].encode()) if clip else drawn


def _same_pdf(drawn: bytes) -> bytes:
    """Blank the two dates that the browser writes, at the same length, since a PDF counts bytes."""
    return re.sub(rb"(/(?:CreationDate|ModDate) \(D:)\d{14}", rb"\g<1>20000101000000", drawn)


def _with_dpi(drawn: bytes) -> bytes:
    """Write into a PNG how many dots make an inch (chunk ``pHYs``, in dots a metre), before its first data."""
    dots = round(96 * PNG_SCALE / 0.0254)
    chunk = b"pHYs" + struct.pack(">IIB", dots, dots, 1)
    at = drawn.index(b"IDAT") - 4
    return drawn[:at] + struct.pack(">I", 9) + chunk + struct.pack(">I", zlib.crc32(chunk)) + drawn[at:]
