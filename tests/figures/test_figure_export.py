"""Export with a real browser, what happens where there is none, and the page of everything exported."""

from __future__ import annotations

import copy
import html
import json
import pickle
import re
import resource
import struct
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import plotly
import plotly.graph_objects as go
import plotly.io
import polars as pl
import pytest
from _plotly_utils import optional_imports
from choreographer.browsers.chromium import chromium_based_browsers

from memlab.errors import ExportError
from memlab.figures import ExportedFigure, bars, browser_rendering, export, style, write_gallery
from memlab.figures.figure_export import (
    PNG_SCALE,
    _stabilise_svg,
    plotted_points,
    trace_values_or_empty,
)

DATA = pl.DataFrame(
    {"cause": ["a", "b", "c"], "group": "all", "n": [2, 1, 1], "share": [0.5, 0.25, 0.25]}
)
CAPTION = "All <script>alert(1)</script> of it: 5 % & λ ≥ .7"
ABOUT = {"dataset": "sample", "seed": 0, "path": Path("x")}


def make(directory: Path, name: str = "evidence", **more: Any) -> ExportedFigure:
    return export(
        bars.share_bars(DATA, xlabel="Evidence a question"), name, directory=directory, **more
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> ExportedFigure:
    return make(
        tmp_path_factory.mktemp("figures") / "new", data=DATA, caption=CAPTION, provenance=ABOUT
    )


def test_every_file_is_written_and_says_what_it_is(exported: ExportedFigure) -> None:
    names = {f"evidence{w}.{f}" for w in ("", ".column") for f in ("svg", "pdf", "png")}
    names |= {"evidence.html", "evidence.parquet", "evidence.json"}
    assert set(exported.files) == names
    assert {path.name for path in exported.directory.iterdir()} == names | {
        f"plotly-{plotly.__version__}.min.js"
    }
    fields = json.loads(exported.path("json").read_text(encoding="utf-8"))
    assert fields["caption"] == CAPTION
    assert fields["provenance"] == {"dataset": "sample", "seed": 0, "path": "x"}
    assert fields["data"]["rows"] == 3
    assert set(fields["files"]) == names
    bundle = exported._repr_mimebundle_()
    assert bundle["application/vnd.plotly.v1+json"]["data"]
    assert bundle["image/svg+xml"] == exported.path("svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(("width", "px"), style.WIDTHS.items())
def test_pictures_have_the_size_of_the_paper(
    exported: ExportedFigure, width: style.Width, px: int
) -> None:
    png = exported.path("png", width).read_bytes()
    assert struct.unpack(">I", png[16:20])[0] == px * PNG_SCALE >= 3 * px
    at = png.index(b"pHYs")
    assert struct.unpack(">IIB", png[at + 4 : at + 13]) == (15118, 15118, 1), (
        "384 dots an inch, in dots a metre"
    )
    assert struct.unpack(">I", png[at + 13 : at + 17])[0] == zlib.crc32(png[at : at + 13])
    svg = exported.path("svg", width).read_text(encoding="utf-8")
    assert "<image" not in svg
    assert "Evidence a question" in svg
    pdf = exported.path("pdf", width).read_bytes()
    assert b"/Subtype /Image" not in pdf
    assert b"/FontFile" in pdf
    assert b"/Title (evidence)" in pdf
    # A browser's margins would shrink the picture and cut its foot off.
    streams = [
        zlib.decompress(s)
        for s in re.findall(rb"FlateDecode.*?stream\r?\n(.*?)endstream", pdf, re.DOTALL)
    ]
    page = next(stream for stream in streams if b" cm" in stream)
    scales = [
        float(n) for n in re.findall(rb"^([\d.]+) 0 0 -?[\d.]+ 0 [\d.]+ cm", page, re.MULTILINE)[:2]
    ]
    assert np.prod(scales) == pytest.approx(0.75, rel=1e-3), "points a pixel"
    assert b"0 0 %d " % px in page, "the paper, from corner to corner"


def test_page_needs_no_network_and_escapes_its_caption(exported: ExportedFigure) -> None:
    page = exported.path("html").read_text(encoding="utf-8")
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="https?:', page)
    (script,) = re.findall(r'<script[^>]* src="([^"]+)"', page)
    assert (exported.directory / script).read_bytes().startswith(b"/**")
    assert len(page) < 100_000, "plotly.js lies beside it, once for all"
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; of it: 5 % &amp; λ ≥ .7" in page


def test_second_export_writes_the_same_bytes_and_what_is_no_longer_made_goes(
    exported: ExportedFigure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in make(tmp_path, data=DATA, caption=CAPTION, provenance=ABOUT).files:
        assert (tmp_path / name).read_bytes() == (exported.directory / name).read_bytes(), name
    assert pl.read_parquet(tmp_path / "evidence.parquet").equals(DATA)
    (tmp_path / "evidence.notes.txt").write_text("mine")
    monkeypatch.setattr(
        browser_rendering,
        "find_browser_path",
        Mock(side_effect=browser_rendering.NoBrowser("no browser to draw with")),
    )
    with pytest.warns(UserWarning, match="pictures are not: no browser"):
        lonely = make(tmp_path, data=DATA)
    written = {path.name for path in tmp_path.iterdir() if not path.name.startswith("plotly-")}
    assert written == {"evidence.html", "evidence.json", "evidence.parquet", "evidence.notes.txt"}
    assert "image/svg+xml" not in lonely._repr_mimebundle_()


@pytest.fixture
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Mock(side_effect=browser_rendering.NoBrowser("no browser to draw with"))
    monkeypatch.setattr(browser_rendering, "find_browser_path", missing)


COPIES: dict[str, Callable[[go.Figure], go.Figure]] = {
    "copied": copy.deepcopy,
    "pickled": lambda fig: pickle.loads(pickle.dumps(fig)),
    "read from JSON": lambda fig: plotly.io.from_json(fig.to_json()),
    "made of a dictionary": lambda fig: go.Figure(fig.to_dict()),
}


@pytest.mark.filterwarnings("ignore:figure 'x'")
@pytest.mark.parametrize("kind", COPIES)
def test_the_data_of_a_copied_figure_are_numbers(
    kind: str, tmp_path: Path, no_browser: None
) -> None:
    """plotly 7.1 gives a copy dictionaries with ``bdata`` where the figure itself holds arrays."""
    line = go.Scatter(x=np.array([1, 2, 300], "i2"), y=np.array([0.5, np.nan, -2]), name="a")
    bars = go.Bar(x=["u", "v", "w"], y=np.array([1, 2, 3], "u1"), text=["p", "q", "r"])
    fig = COPIES[kind](go.Figure([line, bars]))
    assert isinstance(fig.data[0].x, dict), "else there is nothing to unpack"
    table = pl.read_parquet(export(fig, "x", directory=tmp_path).path("parquet"))
    assert table["y"].to_list()[2:] == [-2, 1, 2, 3]
    assert table["x"].to_list() == ["1", "2", "300", "u", "v", "w"]
    assert table["text"].to_list() == [None, None, None, "p", "q", "r"]
    numbers = go.Figure(go.Scatter(x=np.arange(3), y=np.arange(3) / 2))
    assert plotted_points(COPIES[kind](numbers)).rows() == plotted_points(numbers).rows()
    grid = COPIES[kind](go.Figure(go.Heatmap(z=np.arange(6.0).reshape(2, 3))))
    np.testing.assert_array_equal(trace_values_or_empty(grid.data[0].z), [[0, 1, 2], [3, 4, 5]])


def test_a_figure_whose_points_cannot_be_read_asks_for_its_data(
    tmp_path: Path, no_browser: None
) -> None:
    pie = go.Figure(go.Pie(labels=["a", "b"], values=[1, 2]))
    with pytest.raises(ExportError, match=r"kind pie has no x and y.*data="):
        export(pie, "x", directory=tmp_path)
    with pytest.warns(UserWarning, match="no browser"):
        assert export(pie, "x", data=DATA, directory=tmp_path).path("html").exists()


def test_a_page_has_the_same_bytes_wherever_orjson_can_be_imported(
    tmp_path: Path, no_browser: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """plotly takes orjson where it is there, which writes "é" and .0000001 otherwise than json does."""
    fig = go.Figure(go.Scatter(x=["é"], y=[1e-7]))
    pages = []
    monkeypatch.setattr(optional_imports, "_not_importable", set())
    fake = Mock(dumps=Mock(return_value=b'"of orjson"'), OPT_NON_STR_KEYS=1, OPT_SERIALIZE_NUMPY=2)
    for module in (None, fake):
        monkeypatch.setitem(sys.modules, "orjson", module)
        monkeypatch.setattr(optional_imports, "_not_importable", set())
        with pytest.warns(UserWarning, match="no browser"):
            exported = export(fig, "x", directory=tmp_path)
        assert exported._repr_mimebundle_()["application/vnd.plotly.v1+json"]["data"]
        pages.append(exported.path("html").read_text())
    assert fig.to_json() == '"of orjson"', "what plotly takes by itself"
    assert pages[0] == pages[1]
    assert '"x":["\\u00e9"],"y":[1e-07]' in pages[1]
    assert plotly.io.json.config.default_engine == "auto"


def test_the_order_in_which_the_browser_ends_its_work_is_not_in_the_picture() -> None:
    head = b'<svg class="main-svg" width="336" height="220" %s><defs id="defs-0a1b2c"/><path style=""/></svg>'
    one, other = (
        _stabilise_svg(head % a, "x")
        for a in (b'style="" viewBox="0 0 336 220"', b'viewBox="0 0 336 220" style=""')
    )
    assert one == other
    assert b'<path style=""/>' in one


@pytest.mark.parametrize("name", ["", "../up", "a/b", "A", "a.b", "é", "-a", "a\n"])
def test_bad_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="cannot be called"):
        make(tmp_path, name)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_browser_that_cannot_draw_is_an_error_beside_page_and_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # What scripts/setup.sh asks before it offers to install one.
    setup = Path(__file__).parents[2] / "scripts" / "setup.sh"
    (code,) = re.findall(r"^browser\(\) .*? -c '(.*?)'", setup.read_text(), re.M)
    exec(code, {})
    assert capsys.readouterr().out.strip() == browser_rendering.find_browser_path()
    monkeypatch.setattr(
        browser_rendering, "_current", None
    )  # the one that runs is kept for other tests
    for path in ("/no/such/chrome", "/bin/true"):
        monkeypatch.setenv("BROWSER_PATH", path)
        with pytest.raises(ExportError, match=rf"{path}.*BROWSER_PATH"):
            make(tmp_path, "x")
        assert json.loads((tmp_path / "x.json").read_text())["files"] == [
            "x.html",
            "x.json",
            "x.parquet",
        ]
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match=r"file.* cannot be written"):
        make(tmp_path / "file")
    monkeypatch.delenv("BROWSER_PATH")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("choreographer.browsers.chromium.Chromium.find_browser", lambda **_: None)
    with pytest.raises(browser_rendering.NoBrowser, match="apt-get install chromium") as missing:
        browser_rendering.find_browser_path()
    searched = str(missing.value)
    assert "BROWSER_PATH is not set, the PATH has none of chrome, chromium" in searched
    places = [
        place for browser in chromium_based_browsers.values() for place in browser.typical_paths
    ]
    assert len(places) > 5
    assert not [place for place in places if place not in searched]
    assert "choreographer/deps" in searched, "where choreographer puts a browser that it fetches"


@pytest.mark.nightly
def test_browser_that_was_killed_is_started_again(tmp_path: Path) -> None:
    make(tmp_path, "a")
    assert browser_rendering._current is not None
    browser_rendering._current.browser.subprocess.kill()
    assert make(tmp_path, "b").path("png").read_bytes().startswith(b"\x89PNG")


def test_disk_that_fills_up_leaves_the_last_export_whole(tmp_path: Path) -> None:
    first = make(tmp_path, "x")
    before = {name: (tmp_path / name).read_bytes() for name in first.files}
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The limit lets small files through and stops the page.
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, unlimited[1]))
    try:
        with pytest.raises(ExportError, match="cannot be written"):
            make(tmp_path, "x", caption="another")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert {
        p.name: p.read_bytes() for p in tmp_path.iterdir() if not p.name.startswith("plotly-")
    } == before


def sidecar(directory: Path, file: str, **fields: object) -> None:
    pictures = [f"{file}{w}.{f}" for w in ("", ".column") for f in ("svg", "pdf", "png")]
    known = {
        "name": file,
        "caption": "",
        "provenance": {},
        "files": [*pictures, f"{file}.html", f"{file}.json"],
    }
    (directory / f"{file}.json").write_text(json.dumps(known | fields), encoding="utf-8")


def links(page: str) -> list[str]:
    return [html.unescape(link) for link in re.findall(r'(?:href|src)="([^"]*)"', page)]


def test_gallery_shows_every_figure_by_notebook_in_its_order_with_relative_links(
    tmp_path: Path,
) -> None:
    cells = [
        {
            "cell_type": "markdown",
            "source": "# Why *so* few?\n\n**Half** <script>alert(1)</script> are missed.",
        },
        {"cell_type": "code", "source": 'export(fig, "zeta")'},
        {"cell_type": "code", "source": 'export(fig, "alpha")'},
        {"cell_type": "markdown", "source": "not in the opening"},
    ]
    (tmp_path / "01_why.ipynb").write_text(json.dumps({"cells": cells}))
    for name, made_by in (
        ("zeta", "01_why.ipynb"),
        ("alpha", "01_why.ipynb"),
        ("gone", "00_gone.ipynb"),
    ):
        sidecar(tmp_path, name, made_by={"notebook": made_by, "commit": "abc123"})
    sidecar(tmp_path, "by-hand", caption="drawn", provenance={"dataset": "sample", "seeds": [0, 1]})
    (tmp_path / "report.json").write_text("[1]")
    page = write_gallery(tmp_path, notebooks=tmp_path).read_text(encoding="utf-8")
    assert "<strong>Half</strong>" in page
    assert "<script" not in page
    text = html.unescape(re.sub(r"<[^>]*>", " ", page))
    at = [
        text.rindex(word) for word in ("00_gone", "Why *so* few?", "zeta", "alpha", "Other figures")
    ]
    assert at == sorted(at)
    assert "not in the opening" not in text
    assert all(
        expected in text for expected in ("abc123", "drawn", "sample", "[0, 1]", "column.pdf")
    )
    assert "alpha.svg" in links(page)
    assert not [link for link in links(page) if link.startswith(("http", "/", "file:"))]


@pytest.mark.parametrize(
    "field",
    [
        {"files": 5},
        {"name": {}},
        {"caption": ["x"]},
        {"provenance": []},
        {"made_by": [1]},
        {"versions": "1"},
    ],
)
def test_a_broken_sidecar_is_named(tmp_path: Path, field: dict[str, object]) -> None:
    sidecar(tmp_path, "a", **field)
    with pytest.raises(ExportError, match=r"a\.json is not a figure's sidecar"):
        write_gallery(tmp_path)
    for text in ("{", "[" * 100_000):
        (tmp_path / "a.json").write_text(text)
        with pytest.raises(ExportError, match=r"a\.json is not a figure's sidecar"):
            write_gallery(tmp_path)


@pytest.mark.parametrize(
    "file", ["javascript:alert(1)", "//example.org/a", "../../a.html", "\ud800", "data:text/html,x"]
)
def test_no_file_of_a_sidecar_is_an_address(tmp_path: Path, file: str) -> None:
    sidecar(tmp_path, "a", files=[file, 5], made_by={"notebook": "/etc/passwd"})
    sidecar(tmp_path, "b", made_by={"notebook": "n" * 5000})
    page = write_gallery(tmp_path).read_text(encoding="utf-8")
    assert not [
        link for link in links(page) if not link.startswith("#") and re.search("[:/]", link)
    ]
    assert "n" * 5000 in page, "a name that no disk takes"


def labelled(*labels: str) -> go.Figure:
    """A chart with a label at each point."""
    points = go.Scatter(y=[*range(len(labels))], text=labels, mode="text")
    return go.Figure(points, {"template": style.template(), "width": 336, "height": 200})


def test_what_no_installed_font_has_is_said_once_for_all_pictures(tmp_path: Path) -> None:
    """A character for private use is in no font; a joiner and a soft hyphen need none."""
    fig = labelled("Ann \U0010fff0", "tea \U0010fff0 – λ\u200d\u00ad")
    with pytest.warns(UserWarning, match="no installed font has") as stated:
        exported = export(fig, "private", directory=tmp_path)
    [message] = [str(each.message) for each in stated]
    assert message.startswith(
        "figure 'private': no installed font has 1 character of its labels (\U0010fff0)"
    )
    assert "apt-get install fonts-noto-core`" in message
    assert exported.path("png").is_file()


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["お茶の時間", "tea"], "5 characters of its labels (お 茶 の 時 間)"),
        (["차 마시는 시간"], "fonts-noto-cjk`"),
        (["وقت الشاي"], "fonts-noto-core`"),
        (["tea 🎉", "お茶"], "fonts-noto-cjk fonts-noto-color-emoji`"),
        (["お茶の時間 木曜日午後"], "10 characters of its labels (お 茶 の 時 間 木 曜 日 …)"),
    ],
)
def test_without_their_fonts_labels_are_said_with_the_packages_that_have_them(
    labels: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        browser_rendering, "characters_without_glyph", lambda characters: characters
    )
    with pytest.warns(UserWarning, match=re.escape(said)) as stated:
        export(labelled(*labels), "scripts", directory=tmp_path)
    assert len(stated) == 1


def test_with_their_fonts_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Mock(return_value="")
    monkeypatch.setattr(browser_rendering, "characters_without_glyph", asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export(labelled("お茶", "tea & λ"), "scripts", directory=tmp_path)
    asked.assert_called_once_with("お茶")


def test_the_browser_draws_what_an_installed_font_has() -> None:
    """Its own letters it has; what is no letter of any font it has not."""
    assert browser_rendering.characters_without_glyph("aZ9\U0010fff0") == "\U0010fff0"
    assert browser_rendering.characters_without_glyph("") == ""
