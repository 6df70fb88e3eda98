"""What the test of an interrupted grid runs in a process of its own: ``python grid_worker.py STORE STOP``."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from functools import wraps
from types import SimpleNamespace
from typing import Any

from talk import excerpt

from memlab import MemoryStore, pipelines
from memlab.experiments import run as run_all
from memlab.experiments import running

TEXTS = ("bm25", "dense", "dense | mmr(k=5)")


def made() -> list[Any]:
    return [replace(excerpt(200, scopes=[scope]), name=scope) for scope in ("nadia", "owen")]


def run(place: str, stop: int) -> None:
    """Run the grid; say which retriever ranks what, and hang at the retrieval of that number."""
    state = SimpleNamespace(counted=0, stop=stop)  # which is no part of the identity of a stage

    def telling(function: Any) -> Any:
        @wraps(function)
        def told(bench: Any, **parameters: Any) -> Any:
            state.counted += 1
            print(bench.name, function.__name__, parameters["level"], flush=True)
            if state.counted == state.stop:
                time.sleep(600)
            return function(bench, **parameters)

        return told

    # Somebody may edit memlab while the test runs, and then the second process would be right to start anew.
    running.code_version = lambda: "the same"  # type: ignore[assignment]
    for name in ("bm25", "dense"):
        pipelines.stages[name] = telling(pipelines.stages[name])
    done = run_all(TEXTS, made(), store=MemoryStore.open(place), encoder="hashing:32", name="killed")
    print("read", done.cells["read"].sum(), flush=True)


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]))
