"""Work on a local cluster of four workers: the same rows, ranks and measures, also when a worker or the head dies."""

from __future__ import annotations

import importlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import psutil
import pytest
from talk import excerpt, write

import memlab
from memlab import DataError, ModelError, distributed
from memlab.config import IndexSettings
from memlab.distributed import parallel_map
from memlab.errors import install_command
from memlab.indexing import index
from memlab.records import Dataset
from memlab.store import MemoryStore

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PATIENT = {
    "health_check_initial_delay_ms": 600_000,
    "health_check_timeout_ms": 600_000,
    "health_check_failure_threshold": 100,
    "gcs_rpc_server_reconnect_timeout_s": 600,
    "raylet_liveness_self_check_interval_ms": 600_000,
    "agent_register_timeout_ms": 600_000,
    "worker_register_timeout_seconds": 600,
    "memory_monitor_refresh_ms": 0,
}
"""Settings of Ray by which no node and no worker is given up because a machine is busy: only a kill ends one."""
STARTS = 5
"""How often a cluster is started until its node is there."""
needs_ray = pytest.mark.skipif(
    not find_spec("ray"), reason="the extra memlab[ray] is not installed"
)


def test_what_workers_cannot_do_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="engine is 'spark'; choose local or ray"):
        parallel_map(divmod, [1], 2, engine="spark")

    def kept_here(run: memlab.Run, bench: memlab.Bench) -> memlab.Run:
        return run

    monkeypatch.setitem(memlab.stages, "kept_here", kept_here)
    data, own = memlab.sample(["owen"], turns=60), memlab.embed.load("hashing:64").model
    with pytest.raises(
        DataError, match="takes a store that its workers reach, and an encoder by its name"
    ):
        memlab.run("bm25", data, engine="ray", encoder=own, store=tmp_path)
    with pytest.raises(DataError, match="stage kept_here is not of memlab"):
        memlab.run("bm25 | kept_here", data, engine="ray", encoder="hashing:64", store=tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModelError, match=re.escape(install_command("ray"))):
        list(parallel_map(divmod, [1], 2, engine="ray"))


def test_a_cluster_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()
    silent = SimpleNamespace(is_initialized=lambda: False, init=lambda **_: answers.wait())
    monkeypatch.setitem(sys.modules, "ray", silent)
    monkeypatch.setattr(distributed, "DEADLINE", 0.01)
    monkeypatch.setenv("RAY_ADDRESS", "192.0.2.1:6379")
    said = r"no Ray cluster at 192.0.2.1:6379 \(TimeoutError: it did not answer within 0.01 seconds"
    with pytest.raises(ModelError, match=said):
        list(parallel_map(divmod, [1], 2, engine="ray"))
    answers.set()
    with pytest.raises(DataError, match="function is a str"):
        parallel_map("divmod", [1], 2)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Start four workers, however few cores there are."""
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")  # else they wait for the other tests
        about = {
            "num_cpus": 4,
            "log_to_driver": False,
            "logging_level": "ERROR",
            "include_dashboard": False,
            "_system_config": PATIENT,
        }
        # Ray gives a node 30 s to start, and the node gives its agent 15 s: a busy machine needs
        # more.
        for _ in range(STARTS):
            with suppress(Exception):
                ray.init(**about)
            if ray.is_initialized():
                break
            ray.shutdown()
        assert ray.is_initialized(), "Ray's own node did not start"
        yield
        ray.shutdown()


@pytest.fixture(scope="module")
def talk() -> Dataset:
    return excerpt(300, scopes=["owen"])


def _rows(store: MemoryStore, name: str) -> list[list[dict[str, Any]]]:
    """Give the facts, of which there are none without a model, and the summaries of a dataset, in one order."""
    tables = [
        store.knowledge.rows(kind, name).sort(pl.all()).to_dicts()
        for kind in ("facts", "summaries")
    ]
    assert tables[1]
    return tables


@pytest.mark.slow
def test_results_come_in_order_and_an_error_as_it_was_raised(cluster: None) -> None:
    names = [f"part {n}" for n in range(40)]
    assert list(parallel_map(os.path.join, names, "end", engine="ray")) == [
        f"{name}/end" for name in names
    ]
    with pytest.raises(TypeError, match="expected str"):
        list(parallel_map(os.path.join, [1], "end", engine="ray"))


@pytest.mark.nightly
def test_same_rows_and_ranks_as_on_one_machine(
    cluster: None, talk: Dataset, tmp_path: Path
) -> None:
    pipelines = ["bm25", "best", "best | mmr"]
    stores = [MemoryStore.open(tmp_path / engine) for engine in distributed.ENGINES]
    done = [
        memlab.run(pipelines, talk, store=at, engine=by)
        for by, at in zip(distributed.ENGINES, stores, strict=True)
    ]
    for here, there in zip(*(each.runs for each in done), strict=True):
        assert (here.name, here.level, here.provenance["code"]) == (
            there.name,
            there.level,
            there.provenance["code"],
        )
        both = here.frame.join(there.frame, on=["query_id", "doc_id"], suffix="_there")
        # Texts that are read together round each other's vectors, and one bit of a token can turn.
        assert (
            both.filter(pl.col("rank") == pl.col("rank_there")).height >= 0.98 * here.frame.height
        )
    for engine, store in zip(distributed.ENGINES, stores, strict=True):
        index(store, talk.name, service="recorded", now=NOW, engine=engine)
    assert _rows(stores[0], talk.name) == _rows(stores[1], talk.name)
    assert memlab.run(pipelines, talk, store=stores[1]).cells["read"].all(), (
        "one machine reads what workers ranked"
    )


@pytest.mark.nightly
@needs_ray
def test_a_store_in_a_bucket(
    talk: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = pytest.importorskip("moto.server").ThreadedMotoServer(
        ip_address="127.0.0.1", port=0, verbose=False
    )
    server.start()
    try:
        where = "http://{}:{}".format(*server.get_host_and_port())
        keys = {
            "AWS_ACCESS_KEY_ID": "someone",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }
        for name, value in (keys | {"AWS_ENDPOINT": where, "AWS_ALLOW_HTTP": "true"}).items():
            monkeypatch.setenv(name, value)
        importlib.import_module("boto3").client("s3", endpoint_url=where).create_bucket(
            Bucket="talk"
        )
        data = memlab.datasets.load(write(tmp_path / "talk.jsonl", talk))
        common = ["--store", "s3://talk/memory", "--encoder", "hashing:64"]
        measured = [
            "evaluate",
            "talk.jsonl",
            "--pipeline",
            "bm25",
            "--out",
            "out",
            "--engine",
            "ray",
        ]
        for verb in (["ingest", "talk.jsonl"], ["index"], measured):
            command = [sys.executable, "-c", "from memlab.cli import main; main()", *verb, *common]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
        store = MemoryStore.open(common[1], create=False)
        assert store.turns(data.name).height == data.turns.height
        assert store.knowledge.session_states(data.name).height == data.sessions.height
        assert memlab.run("bm25", data, store=store, encoder="hashing:64").cells["read"].all()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "talk.jsonl"]
    finally:
        server.stop()


@pytest.mark.nightly
@needs_ray
def test_a_killed_head_goes_on_where_it_stopped(talk: Dataset, tmp_path: Path) -> None:
    place = str(tmp_path / "store")
    store, other = MemoryStore.open(place), MemoryStore.open(tmp_path / "whole")
    for each in (store, other):
        each.ingest(talk)
    code = (
        "import sys; from datetime import *; from memlab.config import IndexSettings;"
        "from memlab.indexing import index;"
        "from memlab.store import MemoryStore; store = MemoryStore.open(sys.argv[1]);"
        "index(store, sys.argv[2], settings=IndexSettings(batch=2), now=datetime(2030, 1, 1, tzinfo=UTC), engine='ray')"
    )
    command = [sys.executable, "-c", code, place, talk.name]
    head = subprocess.Popen(command, start_new_session=True)
    while head.poll() is None and not store.knowledge.session_states(talk.name).height:
        time.sleep(0.05)
    os.killpg(head.pid, signal.SIGKILL)
    head.wait()
    assert store.knowledge.session_states(talk.name).height
    subprocess.run(command, check=True)
    index(other, talk.name, settings=IndexSettings(batch=2), now=NOW)
    assert _rows(store, talk.name) == _rows(other, talk.name)
    assert (
        store.knowledge.session_states(talk.name)["attempts"].to_list()
        == [1] * talk.sessions.height
    )


@contextmanager
def _killing(most: int) -> Iterator[list[int]]:
    """Kill workers that are at work, at moments that are drawn; gives the ids of those that were."""
    killed, ended, rng = list[int](), threading.Event(), random.Random(0)

    def kill() -> None:
        while len(killed) < most and not ended.wait(0.05 + 0.2 * rng.random()):
            # Of this cluster: others of the machine have theirs.
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    title = " ".join(process.cmdline())
                    # A node ends with its agents, which are called as workers are.
                    is_worker = title.startswith("ray::") and "Agent" not in title
                    if is_worker and "IDLE" not in title:
                        process.kill()
                        killed.append(process.pid)
                        break

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


@pytest.mark.nightly
@needs_ray
def test_workers_that_are_killed_change_nothing(
    cluster: None, talk: Dataset, tmp_path: Path
) -> None:
    settings = IndexSettings(batch=1)
    stores = [MemoryStore.open(tmp_path / name) for name in ("local", "ray")]
    for store in stores:
        store.ingest(talk)
    index(stores[0], talk.name, settings=settings, now=NOW)
    with _killing(3) as killed:
        index(stores[1], talk.name, settings=settings, now=NOW, engine="ray")
    assert killed
    assert _rows(stores[0], talk.name) == _rows(stores[1], talk.name)
    pipelines = ["bm25", "bm25 | mmr", "hybrid"]
    common = {"encoder": "hashing:64", "levels": ["turn"]}
    here = memlab.run(pipelines, talk, store=stores[0], **common)
    with _killing(3) as killed:
        there = memlab.run(pipelines, talk, store=stores[1], engine="ray", **common)
    assert killed
    for one, other in zip(here.runs, there.runs, strict=True):
        assert one.frame.equals(other.frame)
