"""The pictures of README, docs and notebooks: each stands in a page, and shows what the demo's run computes."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest
from PIL import Image

from memlab.errors import ExportError
from memlab.figures.figure_provenance import source_digest
from memlab.figures.style import PALETTE

ROOT = Path(__file__).parents[1]
FOLDERS = ("figures/gallery", "docs/pictures")
PAGES = [
    *(ROOT / "README.md", ROOT / "data" / "README.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "notebooks").glob("*.py"),
]


def load_script() -> ModuleType:
    place = importlib.util.spec_from_file_location("gallery_script", ROOT / "scripts/gallery.py")
    assert place is not None
    assert place.loader is not None
    script = importlib.util.module_from_spec(place)
    place.loader.exec_module(script)
    return script


gallery = load_script()
each = pytest.mark.parametrize(("place", "name"), gallery.PICTURES.items())


def read_sidecar(place: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((ROOT / place).with_suffix(".json").read_text("utf-8"))
    return read


def test_every_picture_stands_in_a_page_and_every_page_shows_one_that_is_there() -> None:
    shown: set[str] = set()
    for page in PAGES:
        for link in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", page.read_text("utf-8")):
            picture = (page.parent / link).resolve()
            assert picture.is_file(), f"{page.name} shows {link}"
            shown.add(picture.relative_to(ROOT).as_posix())
    there = {
        path.relative_to(ROOT).as_posix() for of in FOLDERS for path in (ROOT / of).glob("*.png")
    }
    assert there == shown == set(gallery.PICTURES)
    undrawn = {Path(place) for place, name in gallery.PICTURES.items() if name in gallery.KEPT}
    sidecars = {
        path.with_suffix(".png").name for of in FOLDERS for path in (ROOT / of).glob("*.json")
    }
    names = {Path(place).name for place in there}
    assert names - {path.name for path in undrawn} <= sidecars <= names


@each
def test_a_picture_is_small_and_says_what_it_shows(place: str, name: str) -> None:
    with Image.open(ROOT / place) as picture:
        assert picture.width == gallery.WIDTH
    assert (ROOT / place).stat().st_size < 300_000
    if name in gallery.KEPT and not (ROOT / place).with_suffix(".json").is_file():
        pytest.skip(f"{name} was not drawn since pictures have sidecars: {gallery.KEPT[name]}")
    about = read_sidecar(place)
    assert about["figure"] == name
    assert about["caption"]
    assert len({len(column) for column in about["values"].values()}) == 1
    assert about["made_by"].keys() & {"notebook", "script"}


@each
def test_a_picture_shows_what_the_demo_computes(place: str, name: str) -> None:
    """The demo is the run on the sample; .ci/run makes it before the tests."""
    figures = ROOT / "figures" / "sample"
    if not (figures / f"{name}.parquet").is_file():
        pytest.skip(f"the figure {name} was not exported here")
    about = read_sidecar(place)
    now = gallery.describe_figure(name, figures)
    notebook = ROOT / "notebooks" / now["made_by"].get("notebook", "")
    if notebook.is_file() and source_digest(notebook) != now["made_by"]["source"]:
        pytest.skip(f"{name} was exported by an older notebook")
    if now["provenance"].get("fingerprint") != about["provenance"].get("fingerprint"):
        pytest.skip(f"{name} was exported of other data")
    found = gallery.differences(about["values"], now["values"])
    assert not found, f"{place} is stale, run make gallery: {found[:5]}"


def write_figure(folder: Path, table: pl.DataFrame, **made_by: str) -> None:
    folder.mkdir(exist_ok=True)
    table.write_parquet(folder / "recall.parquet")
    Image.new("RGBA", (2688, 800), (0, 0, 0, 0)).save(folder / "recall.png")
    about = {"name": "recall", "caption": "Recall.", "files": [], "versions": {}}
    parameters = {"seed": 3, "store": "elsewhere"}
    about |= {"made_by": {**made_by, "parameters": parameters}}
    about |= {"provenance": {"fingerprint": "f", "versions": {}}}
    (folder / "recall.json").write_text(json.dumps(about))


TABLE = pl.DataFrame(
    {
        "system": ["a", "b"],
        "n": [100, 100],
        "mean": [0.5, 0.123456],
        "p": [None, 0.01],
        "p50 ms": 9.9,
    }
)


def test_a_picture_is_remade_with_the_values_that_it_shows(tmp_path: Path) -> None:
    write_figure(tmp_path / "out", TABLE, script="x.py")
    wanted = {"pictures/sample-recall.png": "recall"}
    (line,) = gallery.remake(wanted, tmp_path / "out", tmp_path)
    assert line.startswith("pictures/sample-recall.png  ")
    with Image.open(tmp_path / "pictures/sample-recall.png") as picture:
        assert picture.size == (1344, 400)
        assert picture.convert("RGB").getpixel((0, 0)) == (255, 255, 255)
    about = json.loads((tmp_path / "pictures/sample-recall.json").read_text())
    assert about["parameters"] == {"seed": 3}
    assert about["values"] == {
        "system": ["a", "b"],
        "n": [100, 100],
        "mean": [0.5, 0.1235],
        "p": [None, 0.01],
    }
    (tmp_path / "out/recall.png").unlink()
    with pytest.raises(ExportError, match=r"recall\.png is not there: run make gallery"):
        list(gallery.remake(wanted, tmp_path / "out", tmp_path))
    kept = list(gallery.remake({"x.png": "language-model"}, tmp_path / "out", tmp_path))
    assert kept == ["x.png  kept: python scripts/language_model.py draws it, in some minutes"]


def test_the_colours_of_the_palette_stay_apart_among_many_greys(tmp_path: Path) -> None:
    drawn = np.full((400, gallery.WIDTH, 3), 255, np.uint8)
    drawn[::2] = np.random.default_rng(0).integers(0, 256, (200, gallery.WIDTH, 1))
    tints = [tuple(bytes.fromhex(colour.lstrip("#"))) for colour in PALETTE]
    for place, tint in enumerate(tints):
        drawn[10:16, 10 * place : 10 * place + 6] = tint
    Image.fromarray(drawn).save(tmp_path / "drawn.png")
    gallery.shrink(tmp_path / "drawn.png", tmp_path / "small.png")
    with Image.open(tmp_path / "small.png") as picture:
        small = np.asarray(picture.convert("RGB")).astype(int)
    for place, tint in enumerate(tints):
        assert np.abs(small[12, 10 * place + 3] - tint).max() <= 16


def test_a_figure_of_an_older_notebook_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/00_a.ipynb").write_text('{"cells": []}')
    write_figure(tmp_path / "out", TABLE, notebook="00_a.ipynb", source="another")
    with pytest.raises(ExportError, match=r"recall was drawn by an older 00_a\.ipynb"):
        list(gallery.remake({"a.png": "recall"}, tmp_path / "out", tmp_path))


@pytest.mark.parametrize(
    ("column", "values", "differs"),
    [
        ("mean", [0.51, 0.1235], False),  # one question of a hundred
        ("mean", [0.54, 0.1235], True),
        ("p", [None, 0.4], False),
        ("system", ["a", "c"], True),
        ("n", [101, 100], True),
        ("n", [100], True),
    ],
)
def test_what_differs_by_more_than_a_question_is_named(
    column: str, values: list[Any], differs: bool
) -> None:
    shown = gallery.shown_values(TABLE)
    found = gallery.differences(shown, shown | {column: values})
    assert bool(found) == differs
    assert not differs or found[0].startswith(column)


def test_of_a_map_the_marks_are_counted() -> None:
    traces = ["in no cluster"] * 200 + ["evidence, missed"] * 3 + ["the question"]
    table = pl.DataFrame({"trace": traces, "x": 0.5, "y": 0.5})
    assert gallery.shown_values(table) == {
        "mark": ["evidence, missed", "the question"],
        "points": [3, 1],
    }
