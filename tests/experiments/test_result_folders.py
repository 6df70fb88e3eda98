"""Each dataset has its own folder of results and figures, whatever it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memlab.experiments.result_folders import (
    MARKER,
    ResultFolder,
    choose_result_folder,
    read_folder_marker,
    safe_folder_name,
)


def choose(folder: Path, name: str, file: str, **part: Any) -> ResultFolder:
    places = {"results": folder / "results", "figures": folder / "figures"}
    return choose_result_folder(name, folder / file, part=part, **places)


def test_two_datasets_of_one_name_never_share_a_folder(tmp_path: Path) -> None:
    first = choose(tmp_path, "log", "a/log.jsonl")
    assert (first.results.name, first.note) == ("log", "")
    assert not first.results.exists(), "choosing writes nothing"
    first.write_owner_markers()
    assert choose(tmp_path, "log", "a/log.jsonl").results == first.results
    second = choose(tmp_path, "log", "b/log.jsonl")
    assert second.results.name == second.figures.name == "log-2"
    assert "is left as it is, and this goes to log-2" in second.note
    second.write_owner_markers(notebooks=second.results / "notebooks")
    assert choose(tmp_path, "log", "b/log.jsonl").results == second.results
    assert choose(tmp_path, "log", "c/log.jsonl").results.name == "log-3"
    assert choose(tmp_path, "log", "a/log.jsonl", scopes=["ann"]).results.name == "log-of-ann"


def test_what_was_there_before_is_left(tmp_path: Path) -> None:
    """Figures of one's own, a file, or the results of a version that kept no datasets apart."""
    (tmp_path / "figures" / "log").mkdir(parents=True)
    assert choose(tmp_path, "log", "log.jsonl").note == "", "an empty folder is nobody's"
    (tmp_path / "figures" / "log" / "own.svg").write_text("<svg/>")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "log-2").write_text("")
    assert choose(tmp_path, "log", "log.jsonl").results.name == "log-3"


def test_a_project_that_moves_keeps_its_folders(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    choose(tmp_path / "old", "log", "log.jsonl").write_owner_markers()
    (tmp_path / "old").rename(tmp_path / "new")
    assert choose(tmp_path / "new", "log", "log.jsonl").results.name == "log"
    marker = (tmp_path / "new" / "results" / "log" / MARKER).read_text()
    assert "jsonl" not in marker, "no path is shown"


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("sample", "sample"),
        ("../../etc/passwd", "etc-passwd"),
        ("a/b\\c:d*e", "a-b-c-d-e"),
        ("..", "dataset"),
        ("", "dataset"),
        ("notebooks", "dataset-notebooks"),
        ("Gallery", "dataset-Gallery"),
        ("bücher 2026.1", "bücher-2026.1"),
        ("tea\0\n", "tea"),
    ],
)
def test_names_of_folders(name: str, safe: str) -> None:
    assert safe_folder_name(name, {}) == safe


def test_a_long_name_is_cut_and_stays_its_own() -> None:
    one, two = (safe_folder_name("茶" * 90 + end, {}) for end in "ab")
    assert one != two
    assert max(len(one.encode()), len(two.encode())) < 100
    assert safe_folder_name("x", {"scopes": 3}) == "x-3-memories"


@pytest.mark.parametrize("text", ["", "[]", '{"name": 5}', "{", "\ud800"])
def test_a_marker_of_somebody_else_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / MARKER).write_bytes(text.encode("utf-8", "surrogatepass"))
    assert read_folder_marker(tmp_path) is None
