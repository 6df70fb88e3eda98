"""One parameter of a pipeline over several values, and pipelines by the clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import Formatter
from time import process_time
from typing import Any

import numpy as np
import polars as pl

from memlab.embed.wrapper import forget_texts
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
    rows = (
        compared[1:]
        .drop("system", "tie")
        .with_columns(
            measure=pl.lit(measure),
            baseline=pl.lit(compared["mean"][0]),
            value=pl.Series(values, strict=False),
        )
    )
    rows = rows.with_columns(group=pl.lit(SEVERAL_SESSIONS if several else ALL_QUESTIONS))
    return rows.with_columns(parameter=pl.lit(names[0].strip("_")), system=pl.lit(system))


Clock = Callable[[], float]
"""Gives the time in seconds: of the processor or of the wall clock, as Python's module of time has them."""
TIMED_QUESTIONS = 40


def latency(
    pipelines: Sequence[str | Pipeline],
    bench: Bench,
    *,
    queries: int = TIMED_QUESTIONS,
    seed: int = 0,
    clock: Clock = process_time,
) -> pl.DataFrame:
    """Time pipelines over turns by the processor: many questions at once, and one at a time.

    The pipelines take turns, question by question, so that whatever slows the machine slows all of
    them, and the time is that of the processor (all threads together), which other processes do not
    lengthen. Waiting for a language model is not in it. The encoding of the questions is, and is
    not read from a store's cache; turns are encoded before, and no ranking is remembered.

    :param queries: how many questions are drawn.
    :param seed: of the draw.
    :param clock: gives seconds; another one measures something else.
    :returns: ``system``, ``n`` (questions), ``batch_ms`` (milliseconds a question, the median of
        three runs), ``single_ms`` (of each question the least of three runs, the median over the
        questions), ``low_ms`` and ``high_ms`` (its quartiles: two systems whose quartiles overlap
        are not distinguished).
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
    for stages in read:
        stages.run(bench.with_rows(rows))
    batches = time_in_turn(read, bench, [rows] * 3, clock=clock) / len(rows)
    rounds = [time_in_turn(read, bench, [*rows[:, None]], clock=clock) for _ in range(3)]
    # The least of three: other processes empty the processor's caches, and nothing makes it faster.
    alone = np.min(rounds, axis=0)
    low, middle, high = np.quantile(alone, [0.25, 0.5, 0.75], axis=1)
    columns = {
        "system": [str(stages) for stages in read],
        "n": [len(rows)] * len(read),
        "batch_ms": np.median(batches, axis=1),
        "single_ms": middle,
        "low_ms": low,
        "high_ms": high,
    }
    return pl.DataFrame(columns)


def time_in_turn(
    pipelines: Sequence[Pipeline],
    bench: Bench,
    parts: Sequence[np.ndarray],
    *,
    clock: Clock = process_time,
) -> np.ndarray:
    """Ask parts of the questions one after the other, each of all pipelines in turn.

    Each is encoded anew, and before it the pipeline is asked the part before, which is not counted:
    what is remembered of the last question is not of this one, whoever asked it first, and models
    are loaded.

    :param parts: rows of the bench's questions.
    :returns: (p, n) milliseconds, by pipeline and part.
    """
    times = np.zeros((len(pipelines), len(parts)))
    for n, rows in enumerate(parts):
        for place, stages in enumerate(pipelines):
            _time_run(stages, bench, parts[n - 1], clock)
            times[place, n] = _time_run(stages, bench, rows, clock)
    return times


def _time_run(stages: Pipeline, bench: Bench, rows: np.ndarray, clock: Clock) -> float:
    """Give the milliseconds that a pipeline takes for some questions, by a clock."""
    asked = bench.with_rows(rows, stored=False)
    fresh = asked.with_queries(asked.queries)
    forget_texts(fresh.encoder)
    start = clock()
    stages.run(fresh)
    return 1000 * (clock() - start)
