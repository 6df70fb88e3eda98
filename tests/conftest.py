"""What every test may use."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from stand_in import StandIn

# Two processes run at a time, each with a core: threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# jsonschema, which nbformat imports, builds 38 parsers of addresses where it finds this: two
# seconds.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# Stores of tests are hundreds of small files: in memory they take a fifth less of processor time
# than on a disk. pytest reads the variable, which the processes of one run share.
IN_MEMORY = Path("/dev/shm")
MEMORY_FOR_FILES = 4 << 30
TEMPORARY_ROOT = "PYTEST_DEBUG_TEMPROOT"
made_in_memory: list[str] = []


def has_room_in_memory() -> bool:
    """Say whether files of tests can be kept in memory: a run takes less than a gigabyte."""
    if not IN_MEMORY.is_dir() or not os.access(IN_MEMORY, os.W_OK):
        return False
    return shutil.disk_usage(IN_MEMORY).free > MEMORY_FOR_FILES


if TEMPORARY_ROOT not in os.environ and has_room_in_memory():
    made_in_memory.append(tempfile.mkdtemp(prefix="memlab-tests-", dir=IN_MEMORY))
    os.environ[TEMPORARY_ROOT] = made_in_memory[0]


def pytest_unconfigure() -> None:
    """Give the memory back."""
    for folder in made_in_memory:
        shutil.rmtree(folder, ignore_errors=True)


# No test may depend on how busy the machine is.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples at each run: new ones are for the nightly run, so that no change is refused for
# what somebody else wrote.
settings.register_profile("default", patient, max_examples=40, derandomize=True)
settings.register_profile("nightly", patient, max_examples=400)
settings.load_profile("default")

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"


def _shared(relative: str) -> Path:
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"the research conversations are not beside the project (no {relative})")
    return path


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A language-model service on loopback that answers by schema, or as the test says; its key is in place."""
    from model_server import KEY, KEY_ENV, running

    from memlab.llm.service_capabilities import forget_habits

    monkeypatch.setenv(KEY_ENV, KEY)
    forget_habits()  # of another server at the same port
    yield from running()


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a store is that nothing was written to: to copy it takes a third of making one."""
    from memlab.store import MemoryStore

    place = tmp_path_factory.mktemp("empty") / "store"
    MemoryStore.open(place)
    return place


@pytest.fixture
def store(empty_store: Path, tmp_path: Path) -> Any:
    """An empty store."""
    from memlab.store import MemoryStore

    return MemoryStore.open(shutil.copytree(empty_store, tmp_path / "store"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems() -> None:
    gc.freeze()  # what was imported stays: no collection need look at it


class _Examples:
    """Doctests, of which none but the encoder's own needs what MiniLM knows."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            if isinstance(item, pytest.DoctestItem) and not item.nodeid.startswith("memlab/embed/"):
                patch.setattr("memlab.embed.transformer_encoder.load_minilm", lambda **_: StandIn())
            return (yield)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Examples())


@pytest.fixture(scope="session")
def locomo_path() -> Path:
    return _shared("locomo/locomo_dev.json")


@pytest.fixture(scope="session")
def longmemeval_path() -> Path:
    return _shared("longmemeval/longmemeval_oracle_user_dev.json")


@dataclass(frozen=True)
class Outcome:
    """What a command line gave: its exit code, its output, and the lines of stderr that are no progress bar."""

    code: int
    out: str
    err: str

    @property
    def messages(self) -> list[str]:
        return [line for line in self.err.split("\n") if line and "\r" not in line]


@cache
def _command(app: Any) -> Any:
    """Read the options of all verbs once, not at each call: a tenth of a second."""
    from typer.main import get_group

    return get_group(app)


@pytest.fixture(scope="session")
def memlab_cli() -> Callable[..., Outcome]:
    """Run ``memlab …`` in this process, in a folder of its own and without variables of ours."""

    def run(*arguments: object, cwd: Path, **variables: str) -> Outcome:
        from memlab.cli import main

        kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMLAB_")}
        out, err, code = io.StringIO(), io.StringIO(), 0
        with pytest.MonkeyPatch.context() as patch, contextlib.chdir(cwd):
            patch.setattr(os, "environ", kept | variables)
            patch.setattr(sys, "argv", ["memlab", *map(str, arguments)])
            patch.setattr("typer.main.get_command", _command)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    main()
                except SystemExit as stop:
                    code = int(stop.code or 0)
        return Outcome(code, out.getvalue(), err.getvalue())

    return run
