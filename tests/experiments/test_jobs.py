"""Pipelines in several processes: the same bytes, one error, and no process that outlives what started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import psutil
import pytest
from talk import world, write

import memlab
from memlab import DataError, ModelError
from memlab.distributed import map_in_processes
from memlab.experiments.parallel_scopes import divide_dataset_into_parts, pipeline_asks_service
from memlab.records import Dataset
from memlab.retrieve import Bench
from memlab.store import MemoryStore

ENCODER = "hashing:64"
PIPELINES = ["bm25", "hybrid | mmr", "best | current"]
LONG = """
import sys, memlab
data = memlab.datasets.load(sys.argv[1])
for _ in range(1000):
    memlab.run(["best | mmr", "hybrid | dpp"], data, encoder="hashing:64", jobs=2)
"""


@pytest.fixture(scope="module")
def talk() -> Dataset:
    return memlab.sample(turns=240)


def _assert_same(here: memlab.Run, there: memlab.Run) -> None:
    assert there.frame.equals(here.frame)
    assert (there.name, there.level) == (here.name, here.level)
    assert there.provenance == here.provenance


@pytest.mark.slow
def test_processes_rank_the_same_bytes(talk: Dataset) -> None:
    alone = memlab.run(PIPELINES, talk, encoder=ENCODER)
    beside = memlab.run(PIPELINES, talk, encoder=ENCODER, jobs=2)
    assert len(divide_dataset_into_parts(talk, Bench.of(talk, encoder=None), 2)) > 1
    assert beside.cells.equals(alone.cells)
    for here, there in zip(alone.runs, beside.runs, strict=True):
        _assert_same(here, there)
    assert str(beside) == str(alone)


def test_copies_in_other_scopes_decide_ties_as_in_one_process(talk: Dataset) -> None:
    same = talk.turns.with_columns(
        text=pl.lit("yes") + (pl.int_range(pl.len()) % 3).cast(pl.String)
    )
    copies = memlab.records.Dataset(**{**vars(talk), "turns": same})
    for here, there in zip(
        memlab.run("bm25", copies, encoder=None).runs,
        memlab.run("bm25", copies, encoder=None, jobs=2).runs,
        strict=True,
    ):
        _assert_same(here, there)


@pytest.mark.slow
def test_runs_of_processes_are_saved_and_read_back(talk: Dataset, tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path)
    made = memlab.run(PIPELINES, talk, encoder=ENCODER, store=store, jobs=2)
    again = memlab.run(PIPELINES, talk, encoder=ENCODER, store=store)
    assert not made.cells["read"].any()
    assert again.cells["read"].all()
    alone = memlab.run(PIPELINES, talk, encoder=ENCODER)
    for here, there in zip(alone.runs, made.runs, strict=True):
        assert there.frame.equals(here.frame)


@pytest.mark.slow
def test_an_error_names_its_pipeline(talk: Dataset) -> None:
    wrong = "combsum(turn=(0, 0, 0), session=(0, 0, 0))"
    with pytest.raises(DataError, match=r"pipeline 'combsum\(turn=\(0, 0, 0\), .*': stage"):
        memlab.run(["bm25", wrong], talk, encoder=ENCODER, jobs=2)


def test_what_processes_cannot_do_is_refused(talk: Dataset) -> None:
    with pytest.raises(DataError, match="jobs is 0"):
        memlab.run("bm25", talk, encoder=None, jobs=0)
    with pytest.raises(DataError, match="jobs= is for engine 'local'"):
        memlab.run("bm25", talk, encoder=None, jobs=2, engine="ray", store="unused")
    with pytest.raises(DataError, match="leave bench= out"):
        memlab.run("bm25", talk, bench=Bench.of(talk, encoder=None), jobs=2)
    with pytest.raises(DataError, match="takes an encoder by its name"):
        memlab.run("bm25", talk, encoder=memlab.embed.load(ENCODER).model, jobs=2)


def test_a_pipeline_that_asks_a_service_stays_in_one_process() -> None:
    assert not pipeline_asks_service(memlab.pipeline("best | mmr"))
    assert not pipeline_asks_service(memlab.pipeline("bm25 | decompose"))
    assert pipeline_asks_service(memlab.pipeline("bm25 | decompose(service='recorded')"))


def test_a_process_that_ends_early_is_one_error() -> None:
    with pytest.raises(ModelError, match="one of 2 processes ended before its work was done"):
        list(map_in_processes(os._exit, [3, 3], jobs=2))


def _start(tmp_path: Path, talk: Dataset) -> tuple[subprocess.Popen[bytes], list[psutil.Process]]:
    """Start a program that ranks for long, and wait until two processes work for it."""
    path = write(tmp_path / "talk.jsonl", talk)
    head = subprocess.Popen(
        [sys.executable, "-c", LONG, str(path)],
        start_new_session=True,
        stderr=subprocess.PIPE,
    )
    workers: list[psutil.Process] = []
    while len(workers) < 2:
        assert head.poll() is None
        time.sleep(0.2)
        workers = []
        for child in psutil.Process(head.pid).children(recursive=True):
            if sum(child.cpu_times()[:2]) > 2:
                workers.append(child)
    return head, workers


@pytest.mark.nightly
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_processes_end_with_what_started_them(
    sent: signal.Signals, talk: Dataset, tmp_path: Path
) -> None:
    head, workers = _start(tmp_path, talk)
    said = b""
    for _ in range(6):
        # Again, as a person does: Python drops an interrupt that falls into a finalizer.
        if sent == signal.SIGINT:
            os.killpg(head.pid, sent)  # as a terminal does
        else:
            head.send_signal(sent)
        with suppress(subprocess.TimeoutExpired):
            _, said = head.communicate(timeout=20)
            break
    assert head.returncode != 0
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive
    if sent == signal.SIGINT:
        # Python may warn of a semaphore after it.
        assert "KeyboardInterrupt" in said.decode().splitlines()


@pytest.mark.slow
def test_the_command_takes_jobs(
    talk: Dataset, tmp_path: Path, memlab_cli: Callable[..., Any]
) -> None:
    write(tmp_path / "talk.jsonl", talk)
    asked = ("evaluate", "talk.jsonl", "--pipeline", "hybrid | mmr", "--encoder", ENCODER)
    beside = memlab_cli(*asked, "--store", "beside", "--jobs", "2", cwd=tmp_path)
    alone = memlab_cli(*asked, "--store", "alone", cwd=tmp_path)
    assert (beside.code, alone.code) == (0, 0), beside.err
    assert beside.out == alone.out
    assert memlab_cli(*asked, "--jobs", "0", cwd=tmp_path).code == 2


def test_parts_are_large_enough_to_be_read_as_the_whole_is() -> None:
    said = {f"s{n}": [["word " * (i % 5 + 1) for i in range(1 + 9 * (n % 3))]] for n in range(30)}
    asked = {scope: [f"what was said in {scope}?"] for scope in said}
    data = world(said, asked)
    parts = divide_dataset_into_parts(data, Bench.of(data, encoder=None), 2)
    assert 2 <= len(parts) <= 8
    covered = []
    for part in parts:
        assert part.data.turns.height > 16
        assert part.data.questions["text"].n_unique() > 1
        covered.extend(part.data.scopes)
    assert sorted(covered) == sorted(data.scopes)


def test_named_pipelines_keep_their_names_in_several_processes(talk: Dataset) -> None:
    named = dict(zip(("lexical", "MMR", "what holds"), PIPELINES, strict=True))
    made = memlab.run(named, talk, encoder=ENCODER, jobs=2, levels="turn")
    alone = memlab.run(named, talk, encoder=ENCODER, levels="turn")
    assert [run.name for run in made.runs] == [*named]
    assert str(made) == str(alone)
