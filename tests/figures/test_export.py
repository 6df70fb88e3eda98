"""Export with a real browser, and what happens where there is none."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import plotly
import plotly.graph_objects as go
import polars as pl
import pytest

from memlab.errors import ExportError
from memlab.figures import Exported, bars, export, style
from memlab.figures.export import PNG_SCALE, _same_svg, plotted, put

DATA = pl.DataFrame({"cause": ["a", "b", "c"], "group": "all", "n": [2, 1, 1], "share": [0.5, 0.25, 0.25]})
CAPTION = "All <script>alert(1)</script> of it: 5 % & λ ≥ .7"


def chart() -> go.Figure:
    return bars.shares(DATA, title="Evidence a question")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    directory = tmp_path_factory.mktemp("figures") / "new"
    provenance = {"dataset": "sample", "seed": 0, "path": Path("x")}
    return export(chart(), "evidence", data=DATA, caption=CAPTION, provenance=provenance, directory=directory)


def png_size(path: Path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def test_every_file_is_written_and_nothing_else(exported: Exported) -> None:
    names = {f"evidence{w}.{f}" for w in ("", ".column") for f in ("svg", "pdf", "png")}
    names |= {"evidence.html", "evidence.parquet", "evidence.json"}
    assert set(exported.files) == names
    script = {f"plotly-{plotly.__version__}.min.js"}
    assert {p.name for p in exported.directory.iterdir()} == names | script


def test_png_is_as_wide_as_paper_at_print_resolution(exported: Exported) -> None:
    for width, px in style.WIDTHS.items():
        assert png_size(exported.path("png", width))[0] == px * PNG_SCALE
        head = exported.path("png", width).read_bytes()
        at = head.index(b"pHYs")
        across, down, unit = struct.unpack(">IIB", head[at + 4 : at + 13])
        assert (across, down, unit) == (15118, 15118, 1), "384 dots an inch, told in dots a metre"
        assert struct.unpack(">I", head[at + 13 : at + 17])[0] == zlib.crc32(head[at : at + 13])
    assert PNG_SCALE >= 3


def test_vector_files_are_vectors(exported: Exported) -> None:
    for width in style.WIDTHS:
        svg = exported.path("svg", width).read_text(encoding="utf-8")
        assert "<image" not in svg
        assert "Evidence a question" in svg
        pdf = exported.path("pdf", width).read_bytes()
        assert pdf.startswith(b"%PDF")
        assert b"/Subtype /Image" not in pdf
        assert b"/FontFile" in pdf
        assert b"/Title (evidence)" in pdf


def test_pdf_is_as_wide_as_paper(exported: Exported) -> None:
    for width, inches in (("column", 3.5), ("full", 7.0)):
        box = re.search(rb"/MediaBox \[([\d. ]+)\]", exported.path("pdf", width).read_bytes())  # type: ignore[arg-type]
        assert box is not None
        assert float(box[1].split()[2]) / 72 == pytest.approx(inches, abs=0.02)


def test_pdf_holds_the_whole_picture_at_its_size(exported: Exported) -> None:
    """A browser's margins would shrink it and cut its foot off."""
    for width, px in style.WIDTHS.items():
        pdf = exported.path("pdf", width).read_bytes()
        streams = [zlib.decompress(s) for s in re.findall(rb"FlateDecode.*?stream\r?\n(.*?)endstream", pdf, re.DOTALL)]
        page = next(stream for stream in streams if b" cm" in stream)
        scales = [float(n) for n in re.findall(rb"^([\d.]+) 0 0 -?[\d.]+ 0 [\d.]+ cm", page, re.MULTILINE)[:2]]
        assert np.prod(scales) == pytest.approx(0.75, rel=1e-3), "points a pixel"
        assert b"0 0 %d " % px in page, "the paper, from corner to corner"


def test_page_needs_no_network_and_escapes_its_caption(exported: Exported) -> None:
    page = exported.path("html").read_text(encoding="utf-8")
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="https?:', page)
    assert "Plotly.newPlot" in page
    (script,) = re.findall(r'<script[^>]* src="([^"]+)"', page)
    assert (exported.directory / script).read_bytes().startswith(b"/**")
    assert len(page) < 100_000, "plotly.js lies beside it, once for all"
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; of it: 5 % &amp; λ ≥ .7" in page


def test_sidecar_says_what_it_is(exported: Exported) -> None:
    fields = json.loads(exported.path("json").read_text(encoding="utf-8"))
    assert fields["caption"] == CAPTION
    assert fields["provenance"] == {"dataset": "sample", "seed": 0, "path": "x"}
    assert fields["data"] == {
        "rows": 3,
        "columns": {"cause": "String", "group": "String", "n": "Int64", "share": "Float64"},
    }
    assert set(fields["files"]) == set(exported.files)
    assert set(fields["versions"]) == {"memlab", "plotly"}
    assert fields["font"] == style.FONT.split(",")[0]
    assert {"script", "notebook"} & fields["made_by"].keys()
    assert "created_at" not in fields


def test_data_is_read_back(exported: Exported) -> None:
    assert pl.read_parquet(exported.path("parquet")).equals(DATA)


def test_second_export_writes_the_same_bytes(exported: Exported, tmp_path: Path) -> None:
    provenance = {"dataset": "sample", "seed": 0, "path": Path("x")}
    again = export(chart(), "evidence", data=DATA, caption=CAPTION, provenance=provenance, directory=tmp_path)
    for name in again.files:
        assert (tmp_path / name).read_bytes() == (exported.directory / name).read_bytes(), name


def test_the_order_in_which_the_browser_ends_its_work_is_not_in_the_picture() -> None:
    head = b'<svg class="main-svg" width="336" height="220" %s><defs id="defs-0a1b2c"/><path style=""/></svg>'
    one, other = (
        _same_svg(head % a, "x") for a in (b'style="" viewBox="0 0 336 220"', b'viewBox="0 0 336 220" style=""')
    )
    assert one == other
    assert b'<path style=""/>' in one


def test_pictures_of_a_width_that_is_no_longer_wanted_go(tmp_path: Path) -> None:
    (tmp_path / "old.png").write_bytes(b"stale")
    (tmp_path / "old.notes.txt").write_text("mine")
    done = export(chart(), "old", directory=tmp_path, width="column")
    assert not (tmp_path / "old.png").exists()
    assert (tmp_path / "old.column.png").exists()
    assert (tmp_path / "old.notes.txt").read_text() == "mine"
    assert "old.png" not in done.files


def test_webgl_becomes_vectors_and_a_raster_is_refused(tmp_path: Path) -> None:
    fig = go.Figure(go.Scattergl(x=[1, 2], y=[3, 4], mode="markers"))
    done = export(fig, "gl", directory=tmp_path, width="column")
    assert "<image" not in done.path("svg", "column").read_text()
    assert fig.data[0].type == "scattergl"
    with pytest.raises(ExportError, match="scatter3d trace"):
        export(go.Figure(go.Scatter3d(x=[1], y=[1], z=[1])), "threed", directory=tmp_path)
    many = list(range(20_001))
    with pytest.raises(ExportError, match="20,001 points"):
        export(go.Figure(go.Scattergl(x=many, y=many)), "many", directory=tmp_path)


def test_what_is_drawn_is_read_off_a_heat_map_and_its_words() -> None:
    fig = go.Figure(
        [go.Heatmap(x=["a", "b"], y=["u"], z=[[0.25, 1.0]]), go.Scatter(x=[1], y=[2], text=["hi"], name="t")]
    )
    fig.add_annotation(x=0, y=1, text="note")
    assert plotted(fig).rows() == [
        ("trace 0", "a", "u", 0.25, None),
        ("trace 0", "b", "u", 1.0, None),
        ("t", "1", "2", None, "hi"),
        ("annotations", "0", "1", None, "note"),
    ]


def test_data_is_read_off_the_traces_where_none_is_given() -> None:
    fig = go.Figure([go.Scatter(x=[1, 2], y=[0.5, None], name="a"), go.Bar(x=["u", "v"], y=[3, 4])])
    table = plotted(fig)
    assert table.to_dict(as_series=False) == {
        "trace": ["a", "a", "trace 1", "trace 1"],
        "x": ["1", "2", "u", "v"],
        "y": [0.5, None, 3.0, 4.0],
    }


@pytest.mark.parametrize("name", ["", "../up", "a/b", "A", "a.b", "é", "-a", "a\n"])
def test_bad_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="cannot be called"):
        export(chart(), name, directory=tmp_path)
    assert not list(tmp_path.iterdir())


def test_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match=r"file.* cannot be written"):
        export(chart(), "x", directory=tmp_path / "file", width="column")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_read_only_directory_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ExportError, match="cannot be written"):
        export(chart(), "x", directory=tmp_path, width="column")


def test_the_setup_looks_for_the_browser_that_draws() -> None:
    from memlab.figures import _browser

    setup = Path(__file__).parents[2] / "scripts" / "setup.sh"
    (code,) = re.findall(r"^browser\(\) .*? -c '(.*?)'", setup.read_text(), re.M)
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == _browser.find()


@pytest.mark.slow
def test_browser_that_was_stopped_is_started_again(tmp_path: Path) -> None:
    from memlab.figures import _browser

    export(chart(), "a", directory=tmp_path, width="column")
    assert _browser._current is not None
    _browser.stop()
    assert _browser._current is None
    export(chart(), "b", directory=tmp_path, width="column")
    assert (tmp_path / "b.column.png").exists()


def test_browser_that_was_killed_is_started_again(tmp_path: Path) -> None:
    from memlab.figures import _browser

    export(chart(), "a", directory=tmp_path, width="column")
    assert _browser._current is not None
    _browser._current.browser.subprocess.kill()
    export(chart(), "b", directory=tmp_path, width="column")
    assert png_size(tmp_path / "b.column.png")[0] == 336 * PNG_SCALE


_FAULT = """
import sys, polars as pl
from memlab.errors import ExportError
from memlab.figures import bars, export
{before}
try:
    fig = bars.shares(pl.DataFrame({{"cause": ["a"], "group": ["all"], "n": [1], "share": [1.0]}}))
    export(fig, "x", directory=sys.argv[1], width="column")
except ExportError as error:
    print(error)
    sys.exit(3)
"""


def run_fault(directory: Path, *, before: str = "", **environment: str) -> str:
    command = [sys.executable, "-c", _FAULT.format(before=before), str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 3, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("browser", ["/no/such/chrome", "/bin/true"])
def test_without_a_browser_page_and_data_are_written_and_the_message_says_what_to_do(
    tmp_path: Path, browser: str
) -> None:
    message = run_fault(tmp_path, BROWSER_PATH=browser)
    assert browser in message
    assert "BROWSER_PATH" in message
    written = {path.name for path in tmp_path.iterdir() if not path.name.startswith("plotly-")}
    assert written == {"x.html", "x.json", "x.parquet"}
    assert json.loads((tmp_path / "x.json").read_text())["files"] == ["x.html", "x.json", "x.parquet"]


def test_no_browser_on_the_path_names_what_was_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from choreographer.browsers.chromium import Chromium

    from memlab.figures import _browser

    monkeypatch.delenv("BROWSER_PATH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(Chromium, "find_browser", lambda **_: None)
    with pytest.raises(ExportError, match=r"PATH has none of chromium, .*apt-get install chromium"):
        _browser.find()


def test_what_a_killed_export_left_goes_and_what_a_live_one_writes_stays(tmp_path: Path) -> None:
    gone, alive = (tmp_path / f".bars.svg.{pid}.partial" for pid in (4_194_305, os.getpid()))
    for path in (gone, alive):
        path.write_text("half")
    put(tmp_path, {"bars.json": b"{}"})
    assert {path.name for path in tmp_path.iterdir()} == {alive.name, "bars.json"}


@pytest.mark.slow
def test_disk_that_fills_up_leaves_the_last_export_whole(tmp_path: Path) -> None:
    first = export(chart(), "x", directory=tmp_path, width="column")
    before = {name: (tmp_path / name).read_bytes() for name in first.files}
    # The limit lets small files through and stops the page.
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, resource.RLIM_INFINITY))"
    message = run_fault(tmp_path, before=limit, BROWSER_PATH="/no/such/chrome")
    assert "cannot be written" in message
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if not p.name.startswith("plotly-")} == before


def test_a_machine_without_a_browser_gets_a_page_and_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memlab.figures import _browser

    def nowhere() -> str:
        raise _browser.NoBrowser("no browser to draw with")

    monkeypatch.setattr(_browser, "find", nowhere)
    with pytest.warns(UserWarning, match="pictures are not: no browser"):
        done = export(chart(), "lonely", directory=tmp_path)
    written = {path.name for path in tmp_path.iterdir() if not path.name.startswith("plotly-")}
    assert written == {"lonely.html", "lonely.json", "lonely.parquet"}
    assert "image/svg+xml" not in done._repr_mimebundle_()


def test_a_notebook_shows_it_alive_and_as_a_picture(exported: Exported) -> None:
    bundle = exported._repr_mimebundle_()
    assert bundle["application/vnd.plotly.v1+json"]["data"]
    assert bundle["image/svg+xml"] == exported.path("svg").read_text(encoding="utf-8")
    assert "image/png" not in bundle, "JupyterLab would show it at four times the size until a mouse comes"
