"""Where the learned reranker carries over: datasets that it has never seen the like of."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import polars as pl

from memlab.evaluate import MULTI_SESSION, compare
from memlab.evaluate.groups import SEVERAL
from memlab.experiments.running import run_pipelines
from memlab.records import LEVELS, Dataset, Level
from memlab.retrieve import Bench

UNTRAINED = "best"
"""What the reranker takes its candidates from, and what it has to beat."""

TRANSFER: Mapping[Level, tuple[str, ...]] = {"turn": ("recall_all@10",), "session": ("recall_all@5", "recall_all@10")}


def transfer(models: Mapping[str, str | Path], bench: Bench, dataset: Dataset, *, seed: int = 0) -> pl.DataFrame:
    """Measure models on a dataset beside the untrained sum of scores that they reorder.

    :param models: a file or the folder of a cross-validation by what it was trained on, as it is to be called.
    :param seed: of the intervals and tests.
    :returns: ``trained`` (``nothing`` for the untrained sum), ``measured``, ``level``, ``measure``, ``questions``, and
        the columns of :func:`memlab.evaluate.compare`.
    """
    systems = [UNTRAINED, *(f"{UNTRAINED} | learned(model={Path(path).as_posix()!r})" for path in models.values())]
    tables = []
    for level in LEVELS:
        done = run_pipelines(systems, bench, dataset, levels=[level], measures=TRANSFER[level], seed=seed)
        subsets = {"all": pl.lit(True), MULTI_SESSION: SEVERAL}
        for measure, (subset, where) in product(TRANSFER[level], subsets.items()):
            if done.reports[0].per_query.filter(where).height:
                about = {"measured": dataset.name, "level": level, "measure": measure, "questions": subset}
                table = compare(done.reports, measure=measure, where=where, seed=seed).drop("system")
                trained = pl.Series("trained", ["nothing", *models])
                tables.append(table.select(trained, *(pl.lit(v).alias(name) for name, v in about.items()), pl.all()))
    return pl.concat(tables)
