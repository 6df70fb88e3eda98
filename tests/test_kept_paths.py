"""Relative paths that are kept are those of the working directory in which they were given."""

from __future__ import annotations

import json
import os
from pathlib import Path

import plotly.graph_objects as go
import polars as pl
import pytest

import memlab
from memlab import llm
from memlab.errors import DataError, MemlabError
from memlab.figures import export
from memlab.llm.recorded_answers import append_to_recording_or_warn, read_recorded_rows_or_empty
from memlab.memories import collect
from memlab.store import MemoryStore

MESSAGE = {"scope": "ann", "session": "s", "sender": "Ann", "text": "I like tea.", "id": "1"}


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder to go to, from one in which paths are given."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "there"


@pytest.mark.parametrize("given", ["answers.jsonl", "./a/../answers.jsonl", "~/answers.jsonl"])
def test_a_service_records_where_it_was_made(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    here = Path.cwd()
    monkeypatch.setenv("HOME", str(here))
    service = llm.Service("local", "http://127.0.0.1:1/v1", "m", record=given)
    monkeypatch.chdir(elsewhere)
    append_to_recording_or_warn(service, ("summary", 1, "key"), "said", (1, 1))
    assert read_recorded_rows_or_empty(here / "answers.jsonl")["key"]["answer"] == "said"
    assert not list(elsewhere.iterdir())


def test_a_service_of_the_settings_records_beside_them(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = '[llm.services.local]\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "m"\n'
    Path("memlab.toml").write_text(table + 'record = "answers.jsonl"\n')
    here, service = Path.cwd(), llm.configured_service("local")
    monkeypatch.chdir(elsewhere)
    assert service.record == str(here / "answers.jsonl")


def test_bad_records_are_set_aside_where_loading_began(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, log = Path.cwd(), tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, [MESSAGE, {"scope": 5}])))
    parts = memlab.datasets.stream(log, on_error="quarantine")
    monkeypatch.chdir(elsewhere)
    assert sum(part.turns.height for part in parts) == 1
    assert list((here / ".memlab" / "quarantine").iterdir())
    assert not list(elsewhere.iterdir())


def test_an_exported_figure_is_found_from_elsewhere(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pl.DataFrame({"evidence": [1, 2], "share": [0.5, 0.5]})
    exported = export(_figure(data), "x", data=data)
    monkeypatch.chdir(elsewhere)
    assert exported.path("html").exists()
    assert str(exported.directory) not in repr(exported)


def _figure(data: pl.DataFrame) -> go.Figure:
    return go.Figure(go.Bar(x=data["evidence"].to_list(), y=data["share"].to_list()))


def wanders(turns: pl.DataFrame, query: str, k: int) -> pl.Series:
    os.chdir("/")
    return turns["text"].tail(k)


def test_a_memory_that_changes_the_directory_is_kept_in_one_folder(elsewhere: Path) -> None:
    here = Path.cwd()
    collect(wanders, memlab.sample(turns=60), name="latest", k=3, folder="kept")
    assert Path.cwd() == Path("/")
    assert list((here / "kept").iterdir())


def test_a_working_directory_that_was_removed_is_one_error(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(elsewhere)
    elsewhere.rmdir()
    for call in (
        lambda: MemoryStore.open("store"),
        lambda: llm.Service("local", "http://127.0.0.1:1/v1", "m", record="answers.jsonl"),
        lambda: memlab.datasets.load("log.jsonl"),
    ):
        with pytest.raises(MemlabError, match=r"removed|cannot be read"):
            call()
    with pytest.raises(DataError, match="working directory that was removed"):
        MemoryStore.open("store")
