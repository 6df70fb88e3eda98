"""Figures to files: HTML, SVG, PDF and PNG at paper widths, with data and provenance."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import os
import re
import struct
import threading
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import plotly
import plotly.graph_objects as go
import plotly.io
import polars as pl

from memlab import __version__
from memlab.atomic_files import make_absolute, open_atomically
from memlab.errors import ExportError, warn_user
from memlab.figures import browser_rendering
from memlab.figures.figure_provenance import figure_origin
from memlab.figures.style import FONT, WIDTHS, Width, attached_provenance, copy_for_width
from memlab.figures.text_and_glyphs import (
    characters_of_other_fonts,
    font_face_rules,
    font_packages,
    printable_line,
)

PICTURES = ("svg", "pdf", "png")
PNG_SCALE = 4
"""A pixel of layout is 1/96 in: four make 384 dots an inch."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_LABEL = re.compile(r"<text\b.*?</text>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_NAMED_CHARACTERS = 8
_OWN_HEIGHT = 450
"""What plotly gives a figure that has no height."""
_engine_lock = threading.Lock()
_PLOTLY_JS = f"plotly-{plotly.__version__}.min.js"
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>{faces}
body{{font:15px/1.5 "Liberation Sans",Arial,sans-serif;color:#222;max-width:720px;
margin:2rem auto;padding:0 1rem}}
p{{color:#444}}</style></head>
<body>{figure}<p>{caption}</p></body></html>
"""


@dataclass(frozen=True)
class ExportedFigure:
    """What an export wrote.

    :param name: the name of the figure.
    :param directory: where the files are.
    :param files: their names: the sidecar, the page, the data, and a picture for each format and
        width.
    :param figure: what was exported, for showing it: a notebook shows it alive, and as a picture
        where no script runs.
    """

    name: str
    directory: Path = field(repr=False)
    files: tuple[str, ...]
    figure: go.Figure = field(repr=False, compare=False)

    def path(self, format: str, width: Width = "full") -> Path:
        """Give the path of a file: ``html``, ``parquet``, ``json``, or a format at a width."""
        return self.directory / _picture_file_name(self.name, format, width)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        # No PNG beside the plotly figure: JupyterLab would show that, at 2,688 px, until a mouse
        # comes.
        figure_json = json.loads(copy_for_width(self.figure, "full").to_json(engine="json"))
        mime_bundle = {"text/plain": repr(self), "application/vnd.plotly.v1+json": figure_json}
        if self.path("svg").exists():
            mime_bundle["image/svg+xml"] = self.path("svg").read_text(encoding="utf-8")
        return mime_bundle


def export(
    fig: go.Figure,
    name: str,
    *,
    data: pl.DataFrame | None = None,
    caption: str = "",
    provenance: Mapping[str, Any] | None = None,
    directory: str | os.PathLike[str] = "figures",
) -> ExportedFigure:
    """Write a figure for a paper, with everything needed to draw it again.

    ``NAME.svg``, ``.pdf`` and ``.png`` are 7 in wide, ``NAME.column.svg`` and so on 3.5 in, each
    laid out for its width; ``NAME.html`` is interactive and needs no network but the one
    ``plotly-VERSION.min.js`` beside all pages; ``NAME.parquet`` holds what is plotted;
    ``NAME.json`` says what it is, where it came from (the notebook or script, its parameters and
    commit, see :func:`memlab.figures.figure_provenance.figure_origin`) and what was written. All
    files are made before the first is put in its place, each by an atomic rename, so a failure
    leaves no half of anything. The same call on the same machine writes the same bytes.

    :param data: what is plotted; read off the figure where not given.
    :param provenance: anything that JSON can hold; where not given, what the figure says of
        itself, as the picture of an explorer does.
    :raises ExportError: for a bad name, a browser that fails (page, data and sidecar are written
        all the same), or a directory that cannot be written. Where no browser is installed, a
        warning says so instead.

    >>> from memlab.figures import export
    >>> export(None, "Fig 1")
    Traceback (most recent call last):
    memlab.errors.ExportError: a figure cannot be called 'Fig 1': use small letters, digits, - and _
    """
    if not _NAME.fullmatch(name):
        raise ExportError(f"a figure cannot be called {name!r}: use small letters, digits, - and _")
    data_table = plotted_points(fig) if data is None else data
    target_folder = make_absolute(directory)
    failure = None
    file_contents = {
        f"{name}.parquet": _parquet_bytes(data_table, name),
        f"{name}.html": _html_page_bytes(fig, name, caption),
    }
    picture_bytes: dict[str, bytes] = {}
    try:
        for width_name in WIDTHS:
            drawn = pictures(fig, PICTURES, width_name, name)
            for picture_format, picture in drawn.items():
                picture_bytes[_picture_file_name(name, picture_format, width_name)] = picture
    except ExportError as error:
        failure = error
    file_contents |= picture_bytes
    sidecar = {
        "name": name,
        "caption": printable_line(caption),
        "made_by": figure_origin(),
        "provenance": dict(attached_provenance(fig) if provenance is None else provenance),
        "data": {
            "rows": data_table.height,
            "columns": {column: str(dtype) for column, dtype in data_table.schema.items()},
        },
        "files": sorted([*file_contents, f"{name}.json"]),
        "font": FONT.split(",")[0],
        "versions": {"memlab": __version__, "plotly": plotly.__version__},
    }
    file_contents[f"{name}.json"] = (json.dumps(sidecar, indent=2, default=str) + "\n").encode()
    every_picture: set[str] = set()
    for width_name in WIDTHS:
        every_picture.update(_picture_file_name(name, format, width_name) for format in PICTURES)
    write_files_atomically_and_remove_stale(
        target_folder,
        file_contents | _plotly_js_file_if_missing(target_folder),
        stale=every_picture - file_contents.keys(),
    )
    _warn_of_missing_glyphs_in(picture_bytes, name)
    if failure is not None:
        message = (
            f"figure {name!r}: page and data are in {target_folder}, pictures are not: {failure}"
        )
        if not isinstance(failure, browser_rendering.NoBrowser):
            raise ExportError(message) from failure
        warn_user(message)
    return ExportedFigure(name, target_folder, tuple(file_contents), fig)


def pictures(
    fig: go.Figure, formats: Collection[str], width: Width, name: str = "figure"
) -> dict[str, bytes]:
    """Draw a figure once at a paper width, as ``svg``, ``pdf`` and ``png``, or some of them.

    :param name: titles the PDF, and keeps the ids of two SVGs on one page apart.
    """
    laid_out = copy_for_width(fig, width)
    _set_trace_ids(laid_out)
    picture_bytes = browser_rendering.draw(laid_out, formats, scale=PNG_SCALE, title=name)
    finishers = {
        "svg": lambda svg: _stabilise_svg(svg, f"{name} {width}"),
        "pdf": _stabilise_pdf,
        "png": _set_png_resolution,
    }
    return {
        picture_format: finishers[picture_format](picture)
        for picture_format, picture in picture_bytes.items()
    }


def svg_as_shown(fig: go.Figure | Mapping[str, Any], key: str) -> str:
    """Draw a figure of anybody's as an SVG in its own look and size, 7 in wide where it has none.

    :param fig: a figure, or its JSON as plotly gives it to a notebook.
    :param key: keeps the ids of two SVGs on one page apart.
    :raises ExportError: when no browser is found, or the figure cannot be drawn.
    """
    try:
        shown_figure = go.Figure(fig)
    except ValueError as error:
        raise ExportError(f"this version of plotly cannot read it: {error}") from error
    shown_figure.layout.width = shown_figure.layout.width or WIDTHS["full"]
    shown_figure.layout.height = shown_figure.layout.height or _OWN_HEIGHT
    _set_trace_ids(shown_figure)
    return _stabilise_svg(browser_rendering.draw(shown_figure, ["svg"])["svg"], key).decode()


def _warn_of_missing_glyphs_in(
    picture_bytes_by_name: Mapping[str, bytes], figure_name: str
) -> None:
    """Say once which characters of the labels of some pictures no font of this machine has."""
    label_texts: list[str] = []
    for file_name, picture in picture_bytes_by_name.items():
        if file_name.endswith(".svg"):
            label_texts += _LABEL.findall(picture.decode())
    label_text = html.unescape(_TAG.sub("", "".join(label_texts)))
    missing = browser_rendering.characters_without_glyph(
        "".join(characters_of_other_fonts(label_text))
    )
    if not missing:
        return
    shown_characters = " ".join(missing[:_NAMED_CHARACTERS])
    if len(missing) > _NAMED_CHARACTERS:
        shown_characters += " …"
    count_text = "1 character" if len(missing) == 1 else f"{len(missing):,} characters"
    warn_user(
        f"figure {figure_name!r}: no installed font has {count_text} of its labels "
        f"({shown_characters}), which its pictures show as boxes or not at all; install one, "
        f"for example with `apt-get install {' '.join(font_packages(missing))}`, and export again"
    )


def _set_trace_ids(fig: go.Figure) -> None:
    """Name the traces of a figure by their numbers: plotly's names are random, and in the SVG."""
    for trace_number, trace in enumerate(fig.data):
        trace.uid = f"t{trace_number}"


def plotted_points(fig: go.Figure) -> pl.DataFrame:
    """Read the points that a figure shows: ``trace``, ``x``, ``y`` and ``text``.

    A column of numbers alone is one of floats.

    :raises ExportError: for a kind of trace that has no x and y, such as a pie.
    """
    point_rows = list[tuple[str | None, ...]]()
    for trace_number, trace in enumerate(fig.data):
        if "x" not in trace or "y" not in trace:
            raise ExportError(
                f"a trace of the kind {trace.type} has no x and y to read its points off; "
                "give what is plotted as data="
            )
        x_values = trace_values_or_empty(trace.x)
        y_values = trace_values_or_empty(trace.y)
        # A histogram in two dimensions has no texts.
        text_values = trace_values_or_empty(getattr(trace, "text", None))
        for point_values in zip_longest(x_values, y_values, text_values):
            value_texts = [
                None if point_value is None else str(point_value) for point_value in point_values
            ]
            point_rows.append((trace.name or f"trace {trace_number}", *value_texts))
    point_table = pl.DataFrame(
        point_rows, dict.fromkeys(("trace", "x", "y", "text"), pl.String()), orient="row"
    )
    number_columns = []
    for column in ("x", "y"):
        texts = point_table[column]
        numbers = texts.cast(pl.Float64, strict=False)
        if numbers.null_count() == texts.null_count():
            number_columns.append(column)
    return point_table.with_columns(pl.col(number_columns).cast(pl.Float64))


def trace_values_or_empty(value: Any) -> Sequence[Any] | np.ndarray:
    """Give the values of a property of a trace, none where it is empty or one text.

    A figure that was copied, pickled or read from JSON holds ``{"dtype", "bdata", "shape"}`` where
    the figure that was made held an array (plotly 7.1): this unpacks it. Whoever reads data off a
    trace reads it through here.

    :param value: of ``x``, ``y``, ``text`` and the like.

    >>> import copy
    >>> import numpy as np
    >>> import plotly.graph_objects as go
    >>> from memlab.figures.figure_export import trace_values_or_empty
    >>> fig = copy.deepcopy(go.Figure(go.Scatter(y=np.array([0.5, 1.0]))))
    >>> trace_values_or_empty(fig.data[0].y).tolist()
    [0.5, 1.0]
    """
    if value is None or isinstance(value, str):
        return ()
    if not isinstance(value, Mapping):
        return value
    # plotly.js calls bytes that are colours "uint8c", and writes all numbers with the lowest byte
    # first.
    number_type = np.dtype(value["dtype"].removesuffix("c")).newbyteorder("<")
    number_array = np.frombuffer(base64.b64decode(value["bdata"]), number_type)
    shape_text = str(value.get("shape", number_array.size))
    return number_array.reshape(
        [int(dimension) for dimension in shape_text.split(",") if dimension.strip()]
    )


def write_files_atomically_and_remove_stale(
    folder: Path, files: Mapping[str, bytes], *, stale: Collection[str] = ()
) -> None:
    """Write all files beside their places, then rename each; pictures of an earlier export go."""
    with ExitStack() as open_files:
        for file_name, content in files.items():
            file_stream = open_files.enter_context(open_atomically(folder / file_name))
            file_stream.write(content)
            file_stream.flush()
    for stale_name in stale:
        (folder / stale_name).unlink(missing_ok=True)


def _picture_file_name(figure_name: str, picture_format: str, width: Width) -> str:
    if width == "column" and picture_format in PICTURES:
        return f"{figure_name}.column.{picture_format}"
    return f"{figure_name}.{picture_format}"


def _parquet_bytes(plotted_data: pl.DataFrame, figure_name: str) -> bytes:
    parquet_file = io.BytesIO()
    try:
        plotted_data.write_parquet(parquet_file)
    except (pl.exceptions.PolarsError, AttributeError) as error:
        raise ExportError(
            f"the data of figure {figure_name!r} cannot be written as Parquet: {error}"
        ) from error
    return parquet_file.getvalue()


def _html_page_bytes(fig: go.Figure, figure_name: str, caption: str) -> bytes:
    page_options = {"displaylogo": False, "plotlyServerURL": "", "responsive": False}
    page_figure = copy_for_width(fig, "full")
    with _json_by_standard_library():
        figure_markup = plotly.io.to_html(
            page_figure,
            include_plotlyjs=_PLOTLY_JS,
            include_mathjax=False,
            full_html=False,
            div_id=figure_name,
            config=page_options,
        )
    font_rules = font_face_rules(
        json.dumps(page_figure.to_plotly_json(), ensure_ascii=False, default=str) + caption
    )
    page_text = _PAGE.format(
        title=html.escape(figure_name),
        faces=font_rules,
        figure=figure_markup,
        caption=html.escape(printable_line(caption)),
    )
    return page_text.encode("utf-8", "replace")


@contextmanager
def _json_by_standard_library() -> Iterator[None]:
    """Let plotly write JSON by Python's own module.

    plotly 7.1 takes orjson where it can be imported, which writes "é" and .0000001 in other bytes.
    """
    json_config = plotly.io.json.config
    with _engine_lock:
        engine_before = json_config.default_engine
        json_config.default_engine = "json"
        try:
            yield
        finally:
            json_config.default_engine = engine_before


def plotly_script() -> bytes:
    """Give the script that draws the figures of a page, 4.8 MB."""
    return _plotly_script_path().read_bytes()


def _plotly_script_path() -> Path:
    return Path(plotly.__file__).parent / "package_data" / "plotly.min.js"


def _plotly_js_file_if_missing(export_folder: Path) -> dict[str, bytes]:
    """Give the script of every page where it is not in its place yet."""
    script_path = export_folder / _PLOTLY_JS
    if script_path.is_file() and script_path.stat().st_size == _plotly_script_path().stat().st_size:
        return {}
    return {script_path.name: plotly_script()}


def _stabilise_svg(svg_bytes: bytes, key: str) -> bytes:
    """Replace plotly's random id, which names every clip path, by one of the figure and its width.

    The empty style of the outermost element goes: it stands before or behind ``viewBox``, by which
    of two callbacks of the browser came first.
    """
    svg_bytes = re.sub(rb'^(<svg [^>]*?) style=""', rb"\1", svg_bytes)
    clip_match = re.search(rb'id="defs-([0-9a-f]{6})"', svg_bytes)
    if clip_match:
        return svg_bytes.replace(
            clip_match[1], hashlib.sha256(key.encode()).hexdigest()[:6].encode()
        )
    return svg_bytes


def _stabilise_pdf(pdf_bytes: bytes) -> bytes:
    """Blank the two dates that the browser writes, at the same length, since a PDF counts bytes."""
    return re.sub(rb"(/(?:CreationDate|ModDate) \(D:)\d{14}", rb"\g<1>20000101000000", pdf_bytes)


def _set_png_resolution(png_bytes: bytes) -> bytes:
    """Write into a PNG, before its data, how many dots make an inch (``pHYs``, in dots a metre)."""
    dots_per_metre = round(96 * PNG_SCALE / 0.0254)
    dpi_chunk = b"pHYs" + struct.pack(">IIB", dots_per_metre, dots_per_metre, 1)
    chunk_place = png_bytes.index(b"IDAT") - 4
    return (
        png_bytes[:chunk_place]
        + struct.pack(">I", 9)
        + dpi_chunk
        + struct.pack(">I", zlib.crc32(dpi_chunk))
        + png_bytes[chunk_place:]
    )
