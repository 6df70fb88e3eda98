"""Many pipelines over many datasets: the same as each alone, resumed after a kill, opened again from the store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import grid_worker
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from talk import excerpt, write

import memlab
from memlab import Bench, Dataset, MemoryStore, datasets, embed
from memlab.errors import DataError, PipelineError, StoreError
from memlab.experiments import Experiment, reopen, replaying, run, running
from memlab.experiments.replaying import RANKING_MODULES, code_version
from memlab.experiments.running import CONTROLS

WORKER = Path(grid_worker.__file__)
TEXTS = ("bm25", "hybrid | mmr(lambda_=0.7)")
LEVELS = ("turn", "session")


class Counting:
    """An encoder that counts the texts that it is asked for."""

    def __init__(self, dim: int = 32) -> None:
        self.inner = embed.load(f"hashing:{dim}")
        self.identity, self.dim, self.asked = self.inner.identity, dim, 0

    def encode(self, texts: Iterable[str], *, kind: Any = "document", progress: bool = True) -> np.ndarray:
        held = list(texts)
        self.asked += len(held)
        return self.inner.encode(held, kind=kind, progress=progress)


@pytest.fixture(scope="module")
def two() -> list[Dataset]:
    return [replace(excerpt(240, scopes=[scope]), name=scope) for scope in ("nadia", "owen")]


@pytest.fixture(scope="module")
def done(two: list[Dataset], tmp_path_factory: pytest.TempPathFactory) -> tuple[Experiment, MemoryStore]:
    store = MemoryStore.open(tmp_path_factory.mktemp("grid") / "store")
    return run(TEXTS, two, store=store, encoder="hashing:32", name="pair", seed=4), store


def assert_same(one: Experiment, other: Experiment) -> None:
    assert one.to_markdown() == other.to_markdown()
    assert one.cells.drop("read", "run_id").equals(other.cells.drop("read", "run_id"))
    assert [d.fingerprint() for d in one.datasets] == [d.fingerprint() for d in other.datasets]
    for ranked, again in zip(one.runs, other.runs, strict=True):
        assert_frame_equal(ranked.frame, again.frame)
    for report, again in zip(one.reports, other.reports, strict=True):
        assert_frame_equal(report.per_query, again.per_query)
        assert (report.name, report.level, report.seed) == (again.name, again.level, again.seed)


def test_what_was_run_is_read_and_nothing_is_encoded(two: list[Dataset], done: tuple[Experiment, MemoryStore]) -> None:
    grid, store = done
    cells = [(data.name, text, level) for data in two for text in TEXTS for level in LEVELS]
    assert grid.cells.select("dataset", "pipeline", "level").rows() == cells
    assert not grid.cells["read"].any()
    counting, rows = Counting(), store.runs.listing().height
    again = run(TEXTS, two, store=store, encoder=counting, name="pair", seed=4)
    assert again.cells["read"].all()
    assert (counting.asked, store.runs.listing().height) == (0, rows)
    assert again.cells["run_id"].equals(grid.cells["run_id"])
    assert_same(grid, again)
    for report, read in zip(grid.reports, again.reports, strict=True):
        assert str(report.provenance) == str(read.provenance), "a report does not show that its run was read"


@pytest.mark.slow
def test_a_run_of_something_else_is_not_read(
    two: list[Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore.open(tmp_path / "store")
    data = two[0]

    def read(**changed: Any) -> bool:
        settings: dict[str, Any] = {"encoder": "hashing:32", "header": ()} | changed
        held = settings.pop("data", data)
        cells = run(["dense"], [held], store=store, levels=["turn"], **settings).cells
        return bool(cells["read"].item())

    assert not read()
    assert read()
    assert not read(encoder="hashing:64")
    assert not read(header=("participants",))
    assert read(header=("participants",))
    asked = data.questions.with_columns(text=pl.col("text") + " Say it.")
    assert not read(data=replace(data, questions=asked))
    monkeypatch.setattr(running, "code_version", lambda: "memlab 99 (abc)")
    assert not read()
    monkeypatch.undo()
    assert read()


def test_the_code_is_part_of_what_a_run_depends_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "memlab"
    for room in ("retrieve", "explorer"):
        (package / room).mkdir(parents=True)
        (package / room / "a.py").write_text("1")
    (package / "__init__.py").touch()
    monkeypatch.setattr(replaying.memlab, "__file__", str(package / "__init__.py"))
    names = []
    for room in ("", "explorer", "retrieve"):
        if room:
            (package / room / "a.py").write_text("2")
        names.append(code_version.__wrapped__())
    assert names[0] == names[1], "an edit of the explorer changes no ranking"
    assert names[1] != names[2]
    functions = [*map(memlab.stages.__getitem__, memlab.stages), *map(memlab.encoders.__getitem__, memlab.encoders)]
    rooms = {function.__module__.split(".")[1] for function in functions if function.__module__.startswith("memlab.")}
    assert rooms <= set(RANKING_MODULES), "every stage and every encoder is part of it"


@pytest.mark.slow
def test_a_grid_is_opened_again_from_the_store_alone(two: list[Dataset], tmp_path: Path) -> None:
    place = tmp_path / "store"
    store = MemoryStore.open(place)
    grid = run(TEXTS, two, store=store, encoder="hashing:32", name="kept", seed=3)
    changed = replace(two[0], turns=two[0].turns.with_columns(text=pl.lit("all is new")))
    store.ingest(changed)
    again = reopen(MemoryStore.open(place, create=False), "kept")
    assert_same(grid, again)
    assert again.cells["read"].all()
    assert again.compare("recall_all@10").equals(grid.compare("recall_all@10"))
    query = grid[two[0].name].worst(1)["query_id"][0]
    assert str(again[two[0].name].why(query)) == str(grid[two[0].name].why(query))
    for folder, one in (("one", grid), ("two", again)):
        one.export(tmp_path / folder)
    files = sorted(p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*.*"))
    assert {p.parts[0] for p in files} == {data.name for data in two}
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file
    with pytest.raises(StoreError, match="it has: kept"):
        reopen(store, "other")


def test_what_is_refused_before_anything_runs(two: list[Dataset], tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path / "store")
    bare = replace(two[0], questions=two[0].questions.clear())
    for texts, data, said in (
        ([], two, "at least one, and none twice"),
        (["bm25", " bm25 "], two, "at least one, and none twice"),
        (["bm25"], [], "its own name"),
        (["bm25"], [two[0], two[0]], "its own name"),
        (["bm25"], [two[1], bare], "none with evidence"),
    ):
        with pytest.raises(DataError, match=said):
            run(texts, data, store=store, encoder=None)
    with pytest.raises(PipelineError, match="'mrr'"):
        run(["bm25", "bm25 | mrr"], two, store=store, encoder=None)
    assert store.runs.listing().height == store.datasets().height == 0


@pytest.mark.slow
def test_a_killed_grid_goes_on_where_it_stopped(tmp_path: Path) -> None:
    command = [sys.executable, str(WORKER), str(tmp_path / "killed")]
    quiet: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    undisturbed = run(
        grid_worker.TEXTS, grid_worker.made(), store=MemoryStore.open(tmp_path / "whole"), encoder="hashing:32"
    )
    names = [data.name for data in undisturbed.datasets]
    # The turns of "dense | mmr" are those that "dense" has ranked, and its sessions come from its turns.
    calls = [f"{name} {f} {level}" for name in names for f in ("bm25", "dense") for level in LEVELS]
    with subprocess.Popen([*command, "6"], **quiet) as process:
        assert process.stdout is not None
        begun = [process.stdout.readline().strip() for _ in range(6)]
        process.kill()
    assert begun == calls[:6], "it hangs in the sixth"
    assert process.returncode == -9
    store = MemoryStore.open(tmp_path / "killed")
    assert store.runs.listing().height == 7, "six of the first dataset, one of the second"
    with pytest.raises(StoreError, match="no grid 'killed'"):
        reopen(store, "killed")
    rest = subprocess.run([*command, "0"], check=True, **quiet).stdout.splitlines()
    assert rest == [*calls[5:], "read 7"], "what was done is not done again"
    assert_same(reopen(store, "killed"), undisturbed)
    assert store.runs.listing().height == 12


def test_one_instead_of_a_list_a_path_instead_of_a_store_and_a_file_instead_of_data(tmp_path: Path) -> None:
    write(tmp_path / "talk.jsonl", excerpt(100, scopes=["owen"]))
    done = run("bm25", tmp_path / "talk.jsonl", store=tmp_path / "store", encoder=None)
    data = datasets.load(tmp_path / "talk.jsonl")
    assert run(["bm25"], data, store=str(tmp_path / "store"), encoder=None).cells["read"].all()
    assert_same(reopen(tmp_path / "store", done.name), done)
    held = run("bm25", data, bench=Bench.of(data, encoder=None))
    assert held.cells["run_id"].null_count() == held.cells.height, "in memory nothing is saved"
    with pytest.raises(DataError, match="each a file or what"):
        run("bm25", [Bench.of(data, encoder=None)])  # type: ignore[list-item]
    assert run(None, data, encoder="hashing:32", levels=["turn"]).cells["pipeline"].to_list() == [*CONTROLS, "best"]
    with pytest.raises(DataError, match="bench= is for one dataset in memory"):
        run("bm25", data, bench=Bench.of(data, encoder=None), store=tmp_path / "store")
