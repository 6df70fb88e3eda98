"""Where the learned reranker carries over: datasets that it has never seen the like of."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from memlab.evaluate import MULTI_SESSION, compare
from memlab.experiments.running import run_pipelines
from memlab.records import LEVELS, Dataset, Level
from memlab.retrieve import Bench

UNTRAINED = "combsum(turn=(1, 1, 2), session=(1, 1, 2))"
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
        several = pl.col("n_evidence_sessions") >= 2
        subsets = {"all": pl.lit(True)}
        if done.reports[0].per_query.filter(several).height:
            subsets[MULTI_SESSION] = several
        for measure in TRANSFER[level]:
            for subset, where in subsets.items():
                table = compare(done.reports, measure=measure, where=where, seed=seed)
                named = table.with_columns(
                    trained=pl.Series(["nothing", *models]),
                    measured=pl.lit(dataset.name),
                    level=pl.lit(level),
                    measure=pl.lit(measure),
                    questions=pl.lit(subset),
                )
                tables.append(named.select(named.columns[-5:] + named.columns[1:-5]))
    return pl.concat(tables)
