"""One parameter of a pipeline over several values, and pipelines by the clock."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from string import Formatter
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.evaluate import Report, compare_reports
from memlab.evaluate.groups import ALL_QUESTIONS, HAS_SEVERAL_SESSIONS, SEVERAL_SESSIONS
from memlab.experiments.run_pipelines import distinct_pipelines, run
from memlab.pipelines import Pipeline
from memlab.records import Dataset
from memlab.retrieve import Bench


def sweep(
    template: str,
    values: Sequence[Any],
    baseline: Report,
    bench: Bench,
    dataset: Dataset,
    *,
    measure: str,
) -> pl.DataFrame:
    """Measure one parameter of a pipeline over several values, for :func:`memlab.figures.sweep_panels.sweep`.

    :param template: the pipeline with ``{parameter}`` where the value goes: ``hybrid | mmr(lambda_={lambda_})``.
    :param baseline: what the values are held against; gives the level, the seed and the plain
        value.
    :param measure: what is drawn, such as ``recall_all@10``, over the hard questions (evidence in
        two or more sessions, or all where there are none).
    :returns: a row a value: the columns of
        :func:`memlab.evaluate.significance.compare_paired`, ties aside, corrected for the number of
        values (:func:`memlab.evaluate.verdicts` corrects for those of several sweeps), ``measure``,
        ``baseline``, ``value``, ``group`` (which questions), ``parameter`` and ``system``.
    :raises DataError: when the template does not name exactly one parameter.
    """
    try:
        names = [name for _, name, _, _ in Formatter().parse(template) if name]
    except ValueError:
        names = []
    if len(names) != 1:
        raise DataError(
            f"{template!r} is no template of one parameter; write the value of one as {{parameter}}"
        )
    texts = [template.format(**{names[0]: value}) for value in values]
    swept = run(
        texts, dataset, bench=bench, levels=[baseline.level], measures=[measure], seed=baseline.seed
    )
    several = baseline.per_query.filter(HAS_SEVERAL_SESSIONS).height
    compared = compare_reports(
        [baseline, *swept.reports], measure=measure, where=HAS_SEVERAL_SESSIONS if several else None
    )
    system = swept.runs[0].name.split(" | ")[-1].split("(")[0]
    rows = compared[1:].drop("system", "tie").with_columns(
        measure=pl.lit(measure), baseline=pl.lit(compared["mean"][0]), value=pl.Series(values, strict=False)
    )  # fmt: skip
    rows = rows.with_columns(group=pl.lit(SEVERAL_SESSIONS if several else ALL_QUESTIONS))
    return rows.with_columns(parameter=pl.lit(names[0].strip("_")), system=pl.lit(system))


def latency(
    pipelines: Sequence[str | Pipeline], bench: Bench, *, queries: int = 50, seed: int = 0
) -> pl.DataFrame:
    """Time pipelines over turns: many questions at once, and one at a time.

    The indexes are warm, and no ranking is remembered from one run to the next. Left out is the
    encoding of the question itself, which is the same for every pipeline; what a stage encodes on
    its behalf counts, and is not read from a store's cache.

    :param queries: how many questions are drawn.
    :param seed: of the draw.
    :returns: ``system``, ``n`` (questions), ``batch_ms`` (milliseconds a question, the median of
        three runs) and ``single_ms`` (the median over the questions).
    :raises DataError: when the bench has no questions, or ``queries`` is not positive.

    >>> import memlab
    >>> from memlab.experiments import latency
    >>> data = memlab.sample(turns=200)
    >>> latency(["bm25"], memlab.Bench.of(data, encoder=None), queries=3)["n"].item()
    3
    """
    read = distinct_pipelines(pipelines)
    if queries < 1 or not bench.queries.height:
        raise DataError(
            f"queries is {queries} and the bench has {bench.queries.height}; nothing can be timed"
        )
    rng = np.random.default_rng(seed)
    rows = np.sort(
        rng.choice(bench.queries.height, min(queries, bench.queries.height), replace=False)
    )
    measured = []
    for stages in read:
        # Vectors of documents come from the store; what is timed does not, or it would find what it
        # encoded here.
        stages.run(bench.with_rows(rows))
        batch = [time_run(stages, bench.with_rows(rows, stored=False)) for _ in range(3)]
        single = [time_run(stages, bench.with_rows(row, stored=False)) for row in rows[:, None]]
        measured.append((str(stages), len(rows), median(batch) / len(rows), median(single)))
    return pl.DataFrame(measured, schema=["system", "n", "batch_ms", "single_ms"], orient="row")


def time_run(stages: Pipeline, bench: Bench) -> float:
    """Give the milliseconds that a pipeline takes for a bench."""
    start = perf_counter()
    stages.run(bench)
    return 1000 * (perf_counter() - start)
