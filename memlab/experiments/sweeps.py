"""One or two parameters of a pipeline over several values, and pipelines by the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from string import Formatter
from time import process_time
from typing import Any

import numpy as np
import polars as pl

from memlab.embed.wrapper import forget_texts
from memlab.errors import DataError
from memlab.evaluate import Report, compare_reports
from memlab.evaluate.groups import ALL_QUESTIONS, question_groups
from memlab.experiments.run_pipelines import distinct_pipelines, run
from memlab.pipelines import Pipeline
from memlab.records import Dataset
from memlab.retrieve import Bench

Values = Sequence[Any] | Mapping[str, Sequence[Any]]
_MOST_PARAMETERS = 2
_NAMED_GROUPS = ("question_type", "form", "evidence_sessions")
"""Columns of ``per_query`` whose values name a group of questions."""


def sweep(
    template: str,
    values: Values,
    baseline: Report,
    bench: Bench,
    dataset: Dataset,
    *,
    measure: str,
    group: str | None = None,
) -> pl.DataFrame:
    """Measure one or two parameters of a pipeline, for :func:`memlab.figures.sweep_panels.sweep`.

    Frames of several sweeps have the same columns of the same types, and concatenate.

    :param template: the pipeline with ``{name}`` where a value goes:
        ``hybrid | mmr(lambda_={lambda_})``. A text that is a value is written with its quotes.
    :param values: of the one parameter, or of each by its name in the template; of two, every
        combination is measured.
    :param baseline: what the values are held against; gives the level, the seed and the plain
        value.
    :param measure: such as ``recall_all@10``.
    :param group: which questions: ``all questions``, ``evidence in ≥ 2 sessions``, or a question
        type, form or number of evidence sessions of these data; by default those with evidence in
        two or more sessions, or all where there are none.
    :returns: a row a combination: ``system`` (the stage with the parameter), the columns of
        :func:`memlab.evaluate.significance.compare_paired`, corrected for the number of
        combinations (:func:`memlab.evaluate.verdicts` corrects for those of several sweeps),
        ``measure``, ``group``, ``baseline`` with its interval ``baseline_low`` and
        ``baseline_high``, ``parameter``, ``setting`` (the value as a text) and ``value`` (as a
        number, null where it is none); ``parameter_2``, ``setting_2`` and ``value_2`` are null
        where there is one parameter. ``mean_low`` to ``mean_high`` is the interval of the mean,
        within the range of the measure; ``low`` to ``high`` that of the difference.
    :raises DataError: when the template names no parameter or more than two, ``values`` are not
        theirs, or there is no such group.

    >>> import memlab
    >>> from memlab.experiments import sweep
    >>> data = memlab.sample(turns=200)
    >>> bench = memlab.Bench.of(data, encoder=None)
    >>> plain = memlab.run("bm25", data, bench=bench).reports[0]
    >>> over = {"b": [0.0, 0.4], "k1": [0.9, 1.2]}
    >>> measured = sweep("bm25(b={b}, k1={k1})", over, plain, bench, data, measure="recall_all@10")
    >>> measured.select("parameter", "setting", "parameter_2", "setting_2").row(-1)
    ('b', '0.4', 'k1', '1.2')
    """
    over = _values_by_parameter(template, values)
    settings = []
    texts = []
    for own in product(*over.values()):
        settings.append(dict(zip(over, own, strict=True)))
        texts.append(_fill_template(template, settings[-1]))
    swept = run(
        texts, dataset, bench=bench, levels=[baseline.level], measures=[measure], seed=baseline.seed
    )
    asked, where = _find_group(baseline.per_query, group)
    # A value may be the baseline's own; by numbers no two have one name.
    reports = [replace(each, name=str(n)) for n, each in enumerate([baseline, *swept.reports])]
    compared = compare_reports(reports, measure=measure, where=where)
    base = compared.row(0, named=True)
    rows = compared[1:].with_columns(
        pl.col("mean_low", "mean_high").clip(0, 1),
        system=pl.lit(_swept_stages(template)),
        measure=pl.lit(measure),
        group=pl.lit(asked),
        baseline=pl.lit(base["mean"]),
        baseline_low=pl.lit(base["mean_low"], pl.Float64).clip(0, 1),
        baseline_high=pl.lit(base["mean_high"], pl.Float64).clip(0, 1),
    )
    return pl.DataFrame(rows).hstack(_setting_columns(settings))


def _values_by_parameter(template: str, values: Values) -> dict[str, Sequence[Any]]:
    """Give the values of each parameter that a template names, in its order."""
    try:
        names = _field_names(template)
    except ValueError:
        names = []
    if not 1 <= len(names) <= _MOST_PARAMETERS:
        raise DataError(
            f"{template!r} is no template of one or two parameters; "
            "write the value of one as {parameter}"
        )
    if isinstance(values, Mapping):
        over = dict(values)
    elif len(names) == 1:
        over = {names[0]: values}
    else:
        over = {}
    if set(over) != set(names):
        wanted = ", ".join(f"{name!r}: [...]" for name in names)
        raise DataError(f"{template!r} names {' and '.join(names)}; give values={{{wanted}}}")
    for name, own in over.items():
        if isinstance(own, str) or not len(own):
            raise DataError(f"the values of {name} are {own!r}; give a list of one or more")
    return {name: over[name] for name in names}


def _fill_template(template: str, setting: Mapping[str, Any]) -> str:
    """Write values into a template, texts with quotes where the template has none around them."""
    parts = []
    for before, name, _, _ in Formatter().parse(template):
        parts.append(before)
        if name:
            value = setting[name]
            written = str(value)
            if isinstance(value, str) and before.rstrip().endswith("="):
                written = repr(value)
            parts.append(written)
    return "".join(parts)


def _swept_stages(template: str) -> str:
    """Name the stages of a template with a parameter: ``hybrid | mmr(lambda_={x})`` is ``mmr``."""
    swept = filter(_field_names, template.split("|"))
    return " | ".join(stage.split("(")[0].strip() for stage in swept)


def _field_names(template: str) -> list[str]:
    """List the parameters that a template names, each once."""
    named = [name for _, name, _, _ in Formatter().parse(template)]
    return list(dict.fromkeys(filter(None, named)))


def _find_group(per_query: pl.DataFrame, group: str | None) -> tuple[str, pl.Expr | None]:
    """Find a group of questions by its name: its name, and its predicate over ``per_query``."""
    groups = question_groups(per_query)
    wanted = group
    if wanted is None:
        wanted = [*groups][-1]  # those of several sessions where there are any
    if wanted == ALL_QUESTIONS:
        return wanted, None
    for column in _NAMED_GROUPS:
        for name in per_query[column].drop_nulls().unique().sort():
            groups.setdefault(name, pl.col(column) == name)
    if wanted not in groups:
        raise DataError(f"no group of questions is called {group!r}; there are {', '.join(groups)}")
    return wanted, groups[wanted]


def _setting_columns(settings: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Give the columns that say what was set; those of a second parameter may be null."""
    columns = dict[str, pl.Series]()
    names = list(settings[0])
    for place, end in enumerate(("", "_2")):
        name = None
        texts: list[str | None] = [None] * len(settings)
        numbers: list[float | None] = [None] * len(settings)
        if place < len(names):
            name = names[place].strip("_")
            own = [setting[names[place]] for setting in settings]
            texts = [*map(str, own)]
            numbers = [*map(_as_number, own)]
        columns[f"parameter{end}"] = pl.Series([name] * len(settings), dtype=pl.String)
        columns[f"setting{end}"] = pl.Series(texts, dtype=pl.String)
        columns[f"value{end}"] = pl.Series(numbers, dtype=pl.Float64)
    return pl.DataFrame(columns)


def _as_number(value: Any) -> float | None:
    """Give a value as a number, ``None`` where it is none: a text, a list, a truth value."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return None
    return float(value)


Clock = Callable[[], float]
"""Gives the time in seconds: of the processor or of the wall clock, as ``time`` has them."""
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
        "system": list(map(str, read)),
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
