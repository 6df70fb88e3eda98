"""The page of everything exported."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from memlab.errors import ExportError
from memlab.figures import write_gallery


def sidecar(directory: Path, file: str, **fields: object) -> None:
    pictures = [f"{file}{w}.{f}" for w in ("", ".column") for f in ("svg", "pdf", "png")]
    known = {"name": file, "caption": "", "provenance": {}, "files": [*pictures, f"{file}.html", f"{file}.json"]}
    (directory / f"{file}.json").write_text(json.dumps(known | fields), encoding="utf-8")


def links(page: str) -> list[str]:
    return [html.unescape(link) for link in re.findall(r'(?:href|src)="([^"]*)"', page)]


def test_gallery_shows_every_figure_by_notebook_in_its_order_with_relative_links(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": "# Why *so* few?\n\n**Half** <script>alert(1)</script> are missed."},
        {"cell_type": "code", "source": 'export(fig, "zeta")'},
        {"cell_type": "code", "source": 'export(fig, "alpha")'},
        {"cell_type": "markdown", "source": "not in the opening"},
    ]
    (tmp_path / "01_why.ipynb").write_text(json.dumps({"cells": cells}))
    for name, made_by in (("zeta", "01_why.ipynb"), ("alpha", "01_why.ipynb"), ("gone", "00_gone.ipynb")):
        sidecar(tmp_path, name, made_by={"notebook": made_by, "commit": "abc123"})
    sidecar(tmp_path, "by-hand", caption="drawn", provenance={"dataset": "sample", "seeds": [0, 1]})
    (tmp_path / "report.json").write_text("[1]")
    page = write_gallery(tmp_path, notebooks=tmp_path).read_text(encoding="utf-8")
    assert "<strong>Half</strong>" in page
    assert "<script" not in page
    text = html.unescape(re.sub(r"<[^>]*>", " ", page))
    at = [text.rindex(word) for word in ("00_gone", "Why *so* few?", "zeta", "alpha", "Other figures")]
    assert at == sorted(at)
    assert "not in the opening" not in text
    assert all(expected in text for expected in ("abc123", "drawn", "sample", "[0, 1]", "column.pdf"))
    assert "alpha.svg" in links(page)
    assert not [link for link in links(page) if link.startswith(("http", "/", "file:"))]


@pytest.mark.parametrize(
    "field",
    [{"files": 5}, {"name": {}}, {"caption": ["x"]}, {"provenance": []}, {"made_by": [1]}, {"versions": "1"}],
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
    assert not [link for link in links(page) if not link.startswith("#") and re.search("[:/]", link)]
    assert "n" * 5000 in page, "a name that no disk takes"
