"""What one question costs: `scripts/one_question.py DATASET [STORE]`, its encoding included, on one core.

The largest scope; every question is asked once, by one of the pipelines in turn; the model learned from the sample.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import memlab
from memlab.rerank import train, training_lists

PIPELINES = ("combsum", "late", "best", "best | learned")
EACH = 40


def measured(
    data: memlab.Dataset, store: memlab.MemoryStore | str | None = None, *, each: int = EACH
) -> list[list[float]]:
    """Ask the questions of the largest scope; gives the milliseconds of each pipeline's, the first of which loads."""
    bench = memlab.Bench.of(largest(data), store=store)
    asked = bench.queries.select("scope", "text").unique(maintain_order=True)
    with TemporaryDirectory() as place:
        model = Path(place) / "model.safetensors"
        made = memlab.sample()
        train(training_lists(memlab.Bench.of(made, progress=False, store=store), made)).save(model)
        texts = [text.replace("learned", f"learned(model={str(model)!r})") for text in PIPELINES]
        pipelines = [memlab.pipeline(text) for text in texts]
        times: list[list[float]] = [[] for _ in pipelines]
        for row in range(min(asked.height, (each + 1) * len(pipelines))):
            start = time.perf_counter()
            pipelines[row % len(pipelines)].run(bench.with_queries(asked[row]))
            times[row % len(pipelines)].append(1000 * (time.perf_counter() - start))
    return times


def largest(data: memlab.Dataset) -> memlab.Dataset:
    return data.take([data.turns["scope"].value_counts().sort("count", "scope")["scope"][-1]])


def main(dataset: str, store: str | None = None) -> None:
    data = largest(memlab.datasets.load(dataset))
    times = measured(data, store)
    print(f"{data.scopes[0]}: {data.turns.height:,} turns")
    for text, each in zip(PIPELINES, times, strict=True):
        print(
            f"{text:16} {np.median(each[1:]):6.1f} ms, 90 % under {np.quantile(each[1:], 0.9):.1f}, n = {len(each) - 1}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
