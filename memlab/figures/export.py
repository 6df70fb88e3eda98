"""Figures to files: HTML, SVG, PDF and PNG at paper widths, with the data and where it came from."""

from __future__ import annotations

import base64
import contextlib
import html
import io
import json
import os
import re
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from memlab import __version__
from memlab.errors import ExportError
from memlab.figures import _browser
from memlab.figures._text import clean
from memlab.figures.style import WIDTHS, Width, for_width

if TYPE_CHECKING:
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
    figure: go.Figure | None = field(default=None, repr=False, compare=False)

    def path(self, format: str, width: Width = "full") -> Path:
        """Give the path of one file: ``html``, ``parquet``, ``json``, or a picture format at a width."""
        return self.directory / _file(self.name, format, width)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        if self.figure is not None:
            bundle["application/vnd.plotly.v1+json"] = json.loads(for_width(self.figure, "full").to_json())
        if self.path("png").exists():
            bundle["image/png"] = base64.b64encode(self.path("png").read_bytes()).decode()
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
    created_at: datetime | None = None,
) -> Exported:
    """Write a figure for a paper, with everything needed to draw it again.

    ``NAME.svg``, ``.pdf`` and ``.png`` are 7 in wide, ``NAME.column.svg`` and so on 3.5 in, each laid out for its
    width; ``NAME.html`` is interactive and needs no network; ``NAME.parquet`` holds what is plotted; ``NAME.json``
    says what it is, where it came from and what was written. All files are made before the first is put in its
    place, each by an atomic rename, so a failure leaves no half of anything. The same call on the same machine writes
    the same bytes.

    :param data: what is plotted; read from the traces where not given.
    :param provenance: anything that JSON can hold.
    :param width: ``column`` or ``full`` where only one is wanted.
    :param created_at: noted in the sidecar where given, left out where not, so that exports repeat.
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
        files |= {_file(name, fmt, w): drawn for w in widths for fmt, drawn in pictures(fig, PICTURES, w).items()}
    except ExportError as error:
        failure = error
    files[f"{name}.json"] = _sidecar(name, files, table, caption, provenance, created_at)
    target = Path(directory)
    _put(target, files, stale=_pictures_of(name) - files.keys())
    if failure is not None:
        message = f"figure {name!r}: page and data are in {target}, pictures are not: {failure}"
        if not isinstance(failure, _browser.NoBrowser):
            raise ExportError(message) from failure
        warnings.warn(message, stacklevel=2)
    return Exported(name, target, tuple(files), fig)


def pictures(fig: go.Figure, formats: Collection[str], width: Width) -> dict[str, bytes]:
    """Draw a figure once at a paper width, and give it as ``svg``, ``pdf`` and ``png``, or those of them wanted."""
    laid_out = for_width(fig, width)
    for i, trace in enumerate(laid_out.data):
        trace.uid = f"t{i}"  # else random, and written into the SVG
    drawn = _browser.draw(laid_out, formats, scale=PNG_SCALE)
    return {format: _REPEATABLE.get(format, bytes)(picture) for format, picture in drawn.items()}


def plotted(fig: go.Figure) -> pl.DataFrame:
    """Read the points of a figure off its traces: ``trace``, ``x``, ``y``; text where a value is not a number."""
    points = []
    for i, trace in enumerate(fig.data):
        columns = (getattr(trace, axis, None) for axis in "xy")
        rows = zip_longest(*([] if column is None else column for column in columns))
        points += [[trace.name or f"trace {i}", *(None if v is None else str(v) for v in row)] for row in rows]
    table = pl.DataFrame(points, schema=dict.fromkeys(("trace", "x", "y"), pl.String()), orient="row")
    numbers = [c for c in "xy" if table[c].cast(pl.Float64, strict=False).null_count() == table[c].null_count()]
    return table.with_columns(pl.col(numbers).cast(pl.Float64))


def _file(name: str, format: str, width: Width) -> str:
    return f"{name}.column.{format}" if width == "column" and format in PICTURES else f"{name}.{format}"


def _pictures_of(name: str) -> set[str]:
    return {_file(name, fmt, w) for w in WIDTHS for fmt in PICTURES}


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
<style>
body{{font:15px/1.5 "Liberation Sans",Arial,sans-serif;color:#222;max-width:720px;margin:2rem auto;padding:0 1rem}}
p{{color:#444}}</style></head>
<body>{figure}<p>{caption}</p></body></html>
"""


def _page(fig: go.Figure, name: str, caption: str) -> bytes:
    import plotly.io

    quiet = {"displaylogo": False, "plotlyServerURL": "", "responsive": False}
    body = plotly.io.to_html(for_width(fig, "full"), include_mathjax=False, full_html=False, div_id=name, config=quiet)
    words = html.escape(clean(caption))
    return _PAGE.format(title=html.escape(name), figure=body, caption=words).encode("utf-8", "replace")


def _sidecar(
    name: str, files: Mapping[str, bytes], table: pl.DataFrame, caption: str, provenance: Mapping[str, Any] | None,
    created_at: datetime | None,
) -> bytes:  # fmt: skip
    import plotly

    fields: dict[str, Any] = {
        "name": name,
        "caption": clean(caption),
        "provenance": dict(provenance or {}),
        "data": {"rows": table.height, "columns": {c: str(t) for c, t in table.schema.items()}},
        "files": sorted([*files, f"{name}.json"]),
        "versions": {"memlab": __version__, "plotly": plotly.__version__},
    }
    if created_at is not None:
        fields["created_at"] = created_at.isoformat()
    return (json.dumps(fields, indent=2, default=str) + "\n").encode()


def _put(target: Path, files: Mapping[str, bytes], *, stale: set[str]) -> None:
    """Write all files beside their places, then rename each; pictures of an earlier export that were not made go."""
    staged: dict[Path, Path] = {}
    try:
        target.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            waiting = target / f".{file}.{os.getpid()}.part"
            staged[waiting] = target / file
            waiting.write_bytes(content)
        for waiting, place in staged.items():
            os.replace(waiting, place)
        for old in stale:
            (target / old).unlink(missing_ok=True)
    except OSError as error:
        for waiting in staged:
            with contextlib.suppress(OSError):
                waiting.unlink(missing_ok=True)
        raise ExportError(
            f"could not write to {target} ({error.strerror or error}); "
            "give a directory that can be written, on a disk with room, as directory="
        ) from error


def _same_svg(drawn: bytes) -> bytes:
    """Replace plotly's random id, which names every clip path, by a fixed one."""
    clip = re.search(rb'id="defs-([0-9a-f]{6})"', drawn)
    return drawn.replace(clip[1], b"memlab") if clip else drawn


def _same_pdf(drawn: bytes) -> bytes:
    """Blank the two dates that the browser writes, at the same length, since a PDF counts bytes."""
    return re.sub(rb"(/(?:CreationDate|ModDate) \(D:)\d{14}", rb"\g<1>20000101000000", drawn)


_REPEATABLE = {"svg": _same_svg, "pdf": _same_pdf}
