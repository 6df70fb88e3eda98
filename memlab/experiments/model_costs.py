"""What the language model behind pipelines reads and writes: tokens and their price."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from memlab import llm
from memlab.evaluate import Report, Table
from memlab.evaluate.system_comparison import mean_rows_by_question_group
from memlab.pipelines import Pipeline
from memlab.records import Dataset, Run
from memlab.retrieve import Bench

WRITING_TASKS = frozenset({"summary", "rollup", "cluster", "groups", "facts", "endings"})
"""Tasks that are done once, when conversations are written; others are done for each question."""
PRICES = ((0.15, 0.60), (3.0, 15.0))
"""Prices of a small and of a large hosted model: for a million tokens read, and written."""


def price_of_tokens(
    tokens_read: float, tokens_written: float, input_output_price_per_million: tuple[float, float]
) -> float:
    """Give the price of tokens read and written, at a price of a million of each.

    >>> from memlab.experiments.model_costs import price_of_tokens
    >>> price_of_tokens(1_000_000, 100_000, (3.0, 15.0))
    4.5
    """
    return (
        tokens_read * input_output_price_per_million[0]
        + tokens_written * input_output_price_per_million[1]
    ) / 1e6


def costs(
    runs: Sequence[Run], dataset: Dataset, *, prices: Sequence[tuple[float, float]] = PRICES
) -> Table:
    """Say what the language model of each pipeline read and wrote, recorded answers included.

    :param runs: rankings of pipelines on the dataset.
    :param prices: of a million tokens read and written, at each price point.
    :returns: ``system``, ``unanswered`` (requests without an answer), tokens ``read`` and
        ``written`` a question, ``read`` and ``written`` for 1,000 turns when they are written, and
        for each price point the price of 1,000 questions, writing left out.

    >>> import memlab
    >>> data = memlab.sample(turns=60)
    >>> run = memlab.pipeline("bm25").run(memlab.Bench.of(data, encoder=None))
    >>> memlab.experiments.costs([run], data).height
    1
    """
    n_questions = max(1, dataset.questions.height)
    n_thousand_turns = max(1, dataset.turns.height) / 1000
    cost_rows = []
    for pipeline_run in runs:
        spending: dict[str, Any] = pipeline_run.provenance.get("llm", {})
        asking: list[Sequence[int]] = []
        writing: list[Sequence[int]] = []
        for task, counts in spending.get("tasks", {}).items():
            if task in WRITING_TASKS:
                writing.append(counts)
            else:
                asking.append(counts)
        read, written = _tokens_read_and_written_per_unit(asking, n_units=n_questions)
        read_once, written_once = _tokens_read_and_written_per_unit(
            writing, n_units=n_thousand_turns
        )
        cost_row = {
            "system": pipeline_run.name,
            "unanswered": spending.get("unanswered", 0),
            "read a question": round(read),
            "written a question": round(written),
            "read for 1,000 turns": round(read_once),
            "written for 1,000 turns": round(written_once),
        }
        for price in prices:
            cost = 1000 * price_of_tokens(read, written, price)
            cost_row[_price_column_name(price)] = round(cost, 2)
        cost_rows.append(cost_row)
    return Table(cost_rows)


def points_of_measure_by_price(
    reports: Sequence[Report],
    costs_table: pl.DataFrame,
    *,
    price: tuple[float, float],
    measure: str,
) -> pl.DataFrame:
    """Set a measure beside the price of each pipeline: points for
    :func:`memlab.figures.curves.recall_curves`.

    :param reports: of rankings of turns.
    :param costs_table: what :func:`costs` gave of the same rankings, in their order, at this price.
    :returns: a row a pipeline and group of questions: the columns of
        :func:`memlab.evaluate.system_comparison.mean_rows_by_question_group`, ``system`` the group
        and ``k`` the price of 1,000 questions.
    """
    points = []
    for report, cost in zip(reports, costs_table[_price_column_name(price)], strict=True):
        means = mean_rows_by_question_group(report, measure=measure)
        points.append(means.rename({"group": "system"}).with_columns(k=pl.lit(cost)))
    return pl.concat(points)


def _price_column_name(input_and_output_price: tuple[float, float]) -> str:
    return f"1,000 questions at {input_and_output_price[0]:g}/{input_and_output_price[1]:g}"


def _tokens_read_and_written_per_unit(
    prompts_read_written_of_tasks: Sequence[Sequence[int]], *, n_units: float
) -> tuple[float, float]:
    """Give tokens read and written for each of so many units: questions, or thousands of turns.

    :param prompts_read_written_of_tasks: prompts, tokens read and tokens written of each task.
    """
    read = 0
    written = 0
    for _, task_read, task_written in prompts_read_written_of_tasks:
        read += task_read
        written += task_written
    return read / n_units, written / n_units


def estimate_pipeline_costs(pipelines: Sequence[Pipeline], bench: Bench) -> Table:
    """Estimate what pipelines would ask of their services, and ask nothing.

    What is recorded is free.
    A token is counted as four characters, an answer as 100 tokens, of the longer tasks as many as
    recorded ones have. What later stages ask depends on what earlier ones are answered: of a
    pipeline with several such stages this is about as much as it will be, not a bound.

    :returns: ``pipeline``, ``prompts``, ``read`` and ``written`` in tokens, and the price at each
        of :data:`PRICES`.
    """
    estimated_rows = []
    for estimated_pipeline in pipelines:
        with llm.track_spending(estimate=True), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Else what another pipeline was not answered would be remembered.
            fresh_bench = bench.with_queries(bench.queries)
            spending = estimated_pipeline.run(fresh_bench).provenance.get("llm", {})
            counts_by_task = spending.get("tasks", {})
        estimated_rows.append(
            {"pipeline": str(estimated_pipeline)} | estimated_cost_columns(counts_by_task)
        )
    return Table(estimated_rows)


def estimated_cost_columns(counts_by_task: Mapping[str, Sequence[int]]) -> dict[str, float]:
    """Give ``prompts``, tokens ``read`` and ``written``, and the price at each of :data:`PRICES`.

    :param counts_by_task: as :meth:`memlab.llm.ModelSpending.describe` gives them.
    """
    n_prompts = sum(task_counts[0] for task_counts in counts_by_task.values())
    tokens_read = sum(task_counts[1] for task_counts in counts_by_task.values())
    tokens_written = sum(task_counts[2] for task_counts in counts_by_task.values())
    price_columns = {
        f"price at {input_price:g}/{output_price:g}": round(
            price_of_tokens(tokens_read, tokens_written, (input_price, output_price)), 2
        )
        for input_price, output_price in PRICES
    }
    return {"prompts": n_prompts, "read": tokens_read, "written": tokens_written} | price_columns
