"""What the test of an interrupted grid runs in a process of its own: ``python grid_worker.py STORE STOP``."""

from __future__ import annotations

import itertools
import sys
import time
from dataclasses import replace
from typing import Any

from talk import excerpt

from memlab.experiments import run, running

TEXTS = ("bm25", "dense", "dense | mmr(k=5)")
CODE = "the same"
"""The version of the code: somebody may edit memlab while the test runs, and then all would rightly be ranked anew."""


def made() -> list[Any]:
    return [replace(excerpt(200, scopes=[scope]), name=scope) for scope in ("nadia", "owen")]


def hang(place: str, stop: int) -> None:
    """Run the grid; say so and hang when the run of that number is measured, before it is saved."""
    evaluate, number = running.evaluate, itertools.count(1)

    def hanging(*arguments: Any, **options: Any) -> Any:
        if next(number) == stop:
            print("hangs", flush=True)
            time.sleep(600)
        return evaluate(*arguments, **options)

    running.evaluate, running.code_version = hanging, lambda: CODE  # type: ignore[assignment]
    run(TEXTS, made(), store=place, encoder="hashing:32", name="killed")


if __name__ == "__main__":
    hang(sys.argv[1], int(sys.argv[2]))
