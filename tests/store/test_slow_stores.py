"""An object store that answers late: the wait for it is stated, and Ctrl-C ends it."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import time

import pytest

from memlab.errors import StoreError
from memlab.store import MemoryStore, database, store_opening
from memlab.store.database import Database

WAITING = """
import os, signal, sys, threading, time
import polars as pl
pl.DataFrame({"a": [1]}).lazy().select(pl.col("a") + 1).collect()  # its handler restarts waits
from memlab.store.database import Database
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
begun = time.monotonic()
try:
    with Database(None, sys.argv[1]).translating_errors("reading turns"):
        threading.Event().wait()
except KeyboardInterrupt:
    print(f"ended after {time.monotonic() - begun:.0f} s")
"""


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setattr(database, "SLOW_AFTER", 0.05)
    monkeypatch.setattr(database, "STATED_EVERY", 0.1)
    return Database(None, "s3://bucket/store")


def test_a_wait_is_stated_while_it_lasts(slow: Database, caplog: pytest.LogCaptureFixture) -> None:
    with slow.translating_errors("reading turns"):
        deadline = time.monotonic() + 30
        while len(caplog.records) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "store s3://bucket/store: reading and writing took 0 s so far" in caplog.text
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_many_short_waits_count_together(slow: Database, caplog: pytest.LogCaptureFixture) -> None:
    deadline = time.monotonic() + 30
    while not caplog.records and time.monotonic() < deadline:
        with slow.translating_errors("reading turns"), slow.translating_errors("reading datasets"):
            time.sleep(0.01)
    assert "so far" in caplog.text


def test_a_failure_ends_the_counting(slow: Database, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(StoreError, match="run it again"), slow.translating_errors("reading turns"):
        raise OSError("lost")
    n_stated = len(caplog.records)
    time.sleep(0.2)
    assert len(caplog.records) == n_stated


def test_a_store_of_this_machine_is_not_counted(caplog: pytest.LogCaptureFixture) -> None:
    local = Database(None, "/nowhere")
    local._state_at = 0.0
    with local.translating_errors("reading turns"):
        time.sleep(0.05)
    assert not caplog.records


@pytest.mark.parametrize("place", ["s3://bucket/store", "/nowhere"])
def test_ctrl_c_ends_a_wait_without_a_limit(place: str) -> None:
    command = [sys.executable, "-c", WAITING, place]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith("ended after"), done.stderr


def test_an_object_store_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"http://127.0.0.1:{silent.getsockname()[1]}"
        keys = {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "secret"}
        about = {"AWS_REGION": "us-east-1", "AWS_ENDPOINT": where, "AWS_ALLOW_HTTP": "true"}
        for name, value in (keys | about).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(store_opening, "DEADLINE", 0.5)
        with pytest.raises(StoreError, match="did not answer within"):
            MemoryStore.open("s3://talk/memory")
