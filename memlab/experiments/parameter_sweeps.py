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

from memlab.embed.encoder_wrapper import forget_texts
from memlab.errors import DataError
from memlab.evaluate import Report, compare_reports
from memlab.evaluate.groups_of_questions import ALL_QUESTIONS, group_predicates_by_name
from memlab.experiments.run_pipelines import read_distinct_pipelines, run
from memlab.pipelines import Pipeline
from memlab.records import Dataset
from memlab.retrieve import Bench

SweptValues = Sequence[Any] | Mapping[str, Sequence[Any]]
_MOST_PARAMETERS = 2
_NAMED_GROUPS = ("question_type", "form", "evidence_sessions")
"""Columns of ``per_query`` whose values name a group of questions."""


def sweep(
    template: str,
    values: SweptValues,
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
        :func:`memlab.evaluate.significance_tests.compare_paired`, corrected for the number of
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
    values_by_name = _checked_values_by_parameter(template, values)
    combinations = []
    pipeline_texts = []
    for combination in product(*values_by_name.values()):
        combinations.append(dict(zip(values_by_name, combination, strict=True)))
        pipeline_texts.append(_fill_template_with_values(template, combinations[-1]))
    swept_experiment = run(
        pipeline_texts,
        dataset,
        bench=bench,
        levels=[baseline.level],
        measures=[measure],
        seed=baseline.seed,
    )
    group_name, group_filter = _group_name_and_predicate(baseline.per_query, group)
    # A value may be the baseline's own; by numbers no two have one name.
    named_reports = [
        replace(swept_report, name=str(report_number))
        for report_number, swept_report in enumerate([baseline, *swept_experiment.reports])
    ]
    compared = compare_reports(named_reports, measure=measure, where=group_filter)
    baseline_row = compared.row(0, named=True)
    sweep_rows = compared[1:].with_columns(
        pl.col("mean_low", "mean_high").clip(0, 1),
        system=pl.lit(_name_swept_stages(template)),
        measure=pl.lit(measure),
        group=pl.lit(group_name),
        baseline=pl.lit(baseline_row["mean"]),
        baseline_low=pl.lit(baseline_row["mean_low"], pl.Float64).clip(0, 1),
        baseline_high=pl.lit(baseline_row["mean_high"], pl.Float64).clip(0, 1),
    )
    return pl.DataFrame(sweep_rows).hstack(_setting_frame_of_combinations(combinations))


def _checked_values_by_parameter(template: str, values: SweptValues) -> dict[str, Sequence[Any]]:
    """Give the values of each parameter that a template names, in its order."""
    try:
        parameter_names = _parameter_names_of_template(template)
    except ValueError:
        parameter_names = []
    if not 1 <= len(parameter_names) <= _MOST_PARAMETERS:
        raise DataError(
            f"{template!r} is no template of one or two parameters; "
            "write the value of one as {parameter}"
        )
    if isinstance(values, Mapping):
        values_by_name = dict(values)
    elif len(parameter_names) == 1:
        values_by_name = {parameter_names[0]: values}
    else:
        values_by_name = {}
    if set(values_by_name) != set(parameter_names):
        wanted_form = ", ".join(f"{parameter_name!r}: [...]" for parameter_name in parameter_names)
        raise DataError(
            f"{template!r} names {' and '.join(parameter_names)}; give values={{{wanted_form}}}"
        )
    for parameter_name, parameter_values in values_by_name.items():
        if isinstance(parameter_values, str) or not len(parameter_values):
            raise DataError(
                f"the values of {parameter_name} are {parameter_values!r}; give a list of one or "
                "more"
            )
    return {parameter_name: values_by_name[parameter_name] for parameter_name in parameter_names}


def _fill_template_with_values(template: str, value_by_parameter: Mapping[str, Any]) -> str:
    """Write values into a template, texts with quotes where the template has none around them."""
    text_parts = []
    for text_before, parameter_name, _, _ in Formatter().parse(template):
        text_parts.append(text_before)
        if parameter_name:
            parameter_value = value_by_parameter[parameter_name]
            written_value = str(parameter_value)
            if isinstance(parameter_value, str) and text_before.rstrip().endswith("="):
                written_value = repr(parameter_value)
            text_parts.append(written_value)
    return "".join(text_parts)


def _name_swept_stages(template: str) -> str:
    """Name the stages of a template with a parameter: ``hybrid | mmr(lambda_={x})`` is ``mmr``."""
    swept_stages = filter(_parameter_names_of_template, template.split("|"))
    return " | ".join(stage_text.split("(")[0].strip() for stage_text in swept_stages)


def _parameter_names_of_template(template: str) -> list[str]:
    """List the parameters that a template names, each once."""
    field_names: dict[str, None] = {}
    for _, field_name, _, _ in Formatter().parse(template):
        if field_name:
            field_names[field_name] = None
    return [*field_names]


def _group_name_and_predicate(
    per_query: pl.DataFrame, group: str | None
) -> tuple[str, pl.Expr | None]:
    """Find a group of questions by its name: its name, and its predicate over ``per_query``."""
    filter_by_group = group_predicates_by_name(per_query)
    wanted_group = group
    if wanted_group is None:
        wanted_group = [*filter_by_group][-1]  # those of several sessions where there are any
    if wanted_group == ALL_QUESTIONS:
        return wanted_group, None
    for column_name in _NAMED_GROUPS:
        for group_value in per_query[column_name].drop_nulls().unique().sort():
            filter_by_group.setdefault(group_value, pl.col(column_name) == group_value)
    if wanted_group not in filter_by_group:
        raise DataError(
            f"no group of questions is called {group!r}; there are {', '.join(filter_by_group)}"
        )
    return wanted_group, filter_by_group[wanted_group]


def _setting_frame_of_combinations(combinations: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Give the columns that say what was set; those of a second parameter may be null."""
    setting_columns = dict[str, pl.Series]()
    parameter_names = list(combinations[0])
    for parameter_index, column_ending in enumerate(("", "_2")):
        parameter_name = None
        setting_texts: list[str | None] = [None] * len(combinations)
        setting_numbers: list[float | None] = [None] * len(combinations)
        if parameter_index < len(parameter_names):
            parameter_name = parameter_names[parameter_index].strip("_")
            parameter_values = [
                setting[parameter_names[parameter_index]] for setting in combinations
            ]
            setting_texts = [*map(str, parameter_values)]
            setting_numbers = [*map(_number_or_none, parameter_values)]
        setting_columns[f"parameter{column_ending}"] = pl.Series(
            [parameter_name] * len(combinations), dtype=pl.String
        )
        setting_columns[f"setting{column_ending}"] = pl.Series(setting_texts, dtype=pl.String)
        setting_columns[f"value{column_ending}"] = pl.Series(setting_numbers, dtype=pl.Float64)
    return pl.DataFrame(setting_columns)


def _number_or_none(parameter_value: object) -> float | None:
    """Give a value as a number, ``None`` where it is none: a text, a list, a truth value."""
    if isinstance(parameter_value, bool) or not isinstance(
        parameter_value, int | float | np.number
    ):
        return None
    return float(parameter_value)


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
    pipelines_read = read_distinct_pipelines(pipelines)
    if queries < 1 or not bench.queries.height:
        raise DataError(
            f"queries is {queries} and the bench has {bench.queries.height}; nothing can be timed"
        )
    random_draw = np.random.default_rng(seed)
    question_rows = np.sort(
        random_draw.choice(bench.queries.height, min(queries, bench.queries.height), replace=False)
    )
    for timed_pipeline in pipelines_read:
        timed_pipeline.run(bench.with_query_rows(question_rows))
    batch_times = time_pipelines_in_turn_ms(
        pipelines_read, bench, [question_rows] * 3, clock=clock
    ) / len(question_rows)
    single_rounds = [
        time_pipelines_in_turn_ms(pipelines_read, bench, [*question_rows[:, None]], clock=clock)
        for _ in range(3)
    ]
    # The least of three: other processes empty the processor's caches, and nothing makes it faster.
    single_times = np.min(single_rounds, axis=0)
    low_quartile, median_time, high_quartile = np.quantile(single_times, [0.25, 0.5, 0.75], axis=1)
    columns = {
        "system": list(map(str, pipelines_read)),
        "n": [len(question_rows)] * len(pipelines_read),
        "batch_ms": np.median(batch_times, axis=1),
        "single_ms": median_time,
        "low_ms": low_quartile,
        "high_ms": high_quartile,
    }
    return pl.DataFrame(columns)


def time_pipelines_in_turn_ms(
    pipelines: Sequence[Pipeline],
    bench: Bench,
    question_row_parts: Sequence[np.ndarray],
    *,
    clock: Clock = process_time,
) -> np.ndarray:
    """Ask parts of the questions one after the other, each of all pipelines in turn.

    Each is encoded anew, and before it the pipeline is asked the part before, which is not counted:
    what is remembered of the last question is not of this one, whoever asked it first, and models
    are loaded.

    :param question_row_parts: rows of the bench's questions.
    :returns: (p, n) milliseconds, by pipeline and part.
    """
    milliseconds = np.zeros((len(pipelines), len(question_row_parts)))
    for part_number, part_rows in enumerate(question_row_parts):
        for pipeline_number, timed_pipeline in enumerate(pipelines):
            _time_pipeline_run_ms(timed_pipeline, bench, question_row_parts[part_number - 1], clock)
            milliseconds[pipeline_number, part_number] = _time_pipeline_run_ms(
                timed_pipeline, bench, part_rows, clock
            )
    return milliseconds


def _time_pipeline_run_ms(
    timed_pipeline: Pipeline, bench: Bench, question_rows: np.ndarray, clock: Clock
) -> float:
    """Give the milliseconds that a pipeline takes for some questions, by a clock."""
    asked_bench = bench.with_query_rows(question_rows, with_store=False)
    fresh_bench = asked_bench.with_queries(asked_bench.queries)
    forget_texts(fresh_bench.encoder)
    start_time = clock()
    timed_pipeline.run(fresh_bench)
    return 1000 * (clock() - start_time)
