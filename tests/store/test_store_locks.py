"""Locks hold wherever the working directory is, say who has them, and let go of one who waits."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from store_data import build

from memlab import atomic_files
from memlab.errors import StoreError
from memlab.store import MemoryStore

HANGS = 120
"""Seconds after which something that waits for itself is taken for hanging."""


def is_held(store: Path) -> bool:
    """Say whether some dataset of a store is held."""
    held = []
    for path in store.glob(".memlab.*.lock"):
        with atomic_files.lock_path(path, alone=True) as free:
            held.append(not free)
    return any(held)


@pytest.mark.parametrize(
    "named",
    ["store", "./a/../store", "~/store", "file://{}/store", "FILE://localhost{}/store", "file:{}/store"],
)  # fmt: skip
def test_a_store_stays_where_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    store = MemoryStore.open(named.format(tmp_path))
    assert store.uri == str(tmp_path / "store")
    monkeypatch.chdir(tmp_path / "a")
    with store.alone("small"):
        assert is_held(tmp_path / "store")
        store.ingest(build())
    assert not is_held(tmp_path / "store")
    assert not list((tmp_path / "a").iterdir())
    assert MemoryStore.open(tmp_path / "store").dataset("small").turns.height == 24
    assert store.size() == sum(f.stat().st_size for f in tmp_path.rglob("*") if f.is_file())


def test_a_file_system_without_locks_is_stated_once(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuses(handle: int, kind: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuses)
    for _ in range(2):
        with store.alone("small") as since:
            assert since is not None
            assert since["turns"] == store.versions()["turns"]
    assert caplog.text.count("has no locks: of two processes that write to one scope") == 1


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.ENOSPC])
def test_what_is_no_lack_of_locks_is_an_error(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    store.ingest(build())

    def refuses(handle: int, kind: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuses)
    with pytest.raises(StoreError, match=f"holding dataset 'small' failed .*{os.strerror(number)}"):
        store.ingest(build(n_turns=6))
    assert store.dataset("small").fingerprint() == build().fingerprint()


def test_a_store_that_is_gone_is_not_made_again(store: MemoryStore, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    os.rename(store.uri, moved)
    with pytest.raises(StoreError, match="is gone: it was moved or removed while it was open"):
        store.ingest(build())
    assert not Path(store.uri).exists()


def finishes(work: Callable[[], object]) -> bool:
    """Say whether work ends, in a thread that may be left waiting."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(HANGS)
    return not thread.is_alive()


def test_a_thread_does_not_wait_for_itself(store: MemoryStore, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(store.uri)

    def work() -> None:
        with store.alone("small"), MemoryStore.open(store.uri).alone("small"):
            MemoryStore.open(link).ingest(build())
            store.optimize()

    assert finishes(work)
    assert not is_held(Path(store.uri))
    assert store.dataset("small").turns.height == 24


HOLD = """
import sys
from memlab.store import MemoryStore
with MemoryStore.open(sys.argv[1]).alone("small"):
    print("held", flush=True)
    sys.stdin.readline()
"""
WAIT = """
import sys
import lancedb, polars, pyarrow
from memlab import atomic_files
from memlab.store import MemoryStore
atomic_files.STATED_AFTER = 0
with MemoryStore.open(sys.argv[1]).alone("small"):
    print("held")
"""


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, "-c", code, *arguments], text=True, **pipes)


@pytest.mark.slow
def test_one_who_waits_says_for_whom_and_goes_on(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic_files, "STATED_AFTER", 0.0)
    lines, stated = list[str](), threading.Event()

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())
            stated.set()

    kept = Kept()
    logging.getLogger("memlab.atomic_files").addHandler(kept)
    with python(HOLD, store.uri) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        thread = threading.Thread(target=store.ingest, args=(build(),))
        thread.start()
        assert stated.wait(HANGS)
        assert store.datasets().is_empty()
        holder.stdin.write("\n")
        holder.stdin.close()
        thread.join()
    logging.getLogger("memlab.atomic_files").removeHandler(kept)
    assert f"dataset 'small' of {store.uri}: process {holder.pid} of " in lines[0]
    assert " has had it since 20" in lines[0]
    assert store.dataset("small").turns.height == 24


@pytest.mark.slow
def test_one_who_waits_answers_an_interrupt(store: MemoryStore) -> None:
    with store.alone("small"), python(WAIT, store.uri) as waiting:
        assert waiting.stderr is not None
        line = waiting.stderr.readline()
        assert f"process {os.getpid()} of" in line
        waiting.send_signal(signal.SIGINT)
        out, errors = waiting.communicate(timeout=HANGS)
    assert out == ""
    assert errors.endswith("KeyboardInterrupt\n")
