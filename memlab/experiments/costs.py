"""What the language model behind pipelines reads and writes: tokens and their price."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from memlab import llm
from memlab.evaluate import Table
from memlab.pipelines import Pipeline
from memlab.records import Dataset, Run
from memlab.retrieve import Bench

WRITING_TASKS = frozenset({"summary", "rollup", "cluster", "groups", "facts", "endings"})
"""Tasks that are done once, when conversations are written; others are done for each question."""
PRICES = ((0.15, 0.60), (3.0, 15.0))
"""Prices of a small and of a large hosted model: for a million tokens read, and written."""


def token_cost(read: float, written: float, at: tuple[float, float]) -> float:
    """Give the price of tokens read and written, at a price of a million of each.

    >>> from memlab.experiments.costs import token_cost
    >>> token_cost(1_000_000, 100_000, (3.0, 15.0))
    4.5
    """
    return (read * at[0] + written * at[1]) / 1e6


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
    asked, thousands = max(1, dataset.questions.height), max(1, dataset.turns.height) / 1000
    rows = []
    for run in runs:
        about: dict[str, Any] = run.provenance.get("llm", {})
        tasks: dict[str, Sequence[int]] = about.get("tasks", {})
        reading, writing = (
            [
                sum(row[side] for task, row in tasks.items() if (task in WRITING_TASKS) == once) / n
                for side in (1, 2)
            ]
            for once, n in ((False, asked), (True, thousands))
        )
        row = {"system": run.name, "unanswered": about.get("unanswered", 0)}
        row |= {"read a question": round(reading[0]), "written a question": round(reading[1])}
        row |= {
            "read for 1,000 turns": round(writing[0]),
            "written for 1,000 turns": round(writing[1]),
        }
        for at in prices:
            row[f"1,000 questions at {at[0]:g}/{at[1]:g}"] = round(
                1000 * token_cost(reading[0], reading[1], at), 2
            )
        rows.append(row)
    return Table(rows)


def estimate_costs(pipelines: Sequence[Pipeline], bench: Bench) -> Table:
    """Estimate what pipelines would ask of their services, and ask nothing; what is recorded is free.

    A token is counted as four characters, an answer as 100 tokens, of the longer tasks as many as
    recorded ones have. What later stages ask depends on what earlier ones are answered: of a
    pipeline with several such stages this is about as much as it will be, not a bound.

    :returns: ``pipeline``, ``prompts``, ``read`` and ``written`` in tokens, and the price at each
        of :data:`PRICES`.
    """
    rows = []
    for each in pipelines:
        with llm.track_spending(estimate=True), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Else what another pipeline was not answered would be remembered.
            tasks = (
                each.run(bench.with_queries(bench.queries))
                .provenance.get("llm", {})
                .get("tasks", {})
            )
        rows.append({"pipeline": str(each)} | estimated_row(tasks))
    return Table(rows)


def estimated_row(tasks: Mapping[str, Sequence[int]]) -> dict[str, float]:
    """Give ``prompts``, tokens ``read`` and ``written``, and the price at each of :data:`PRICES`.

    :param tasks: as :meth:`memlab.llm.ModelSpending.describe` gives them.
    """
    prompts, read, written = (sum(row[side] for row in tasks.values()) for side in (0, 1, 2))
    prices = {
        f"price at {a:g}/{b:g}": round(token_cost(read, written, (a, b)), 2) for a, b in PRICES
    }
    return {"prompts": prompts, "read": read, "written": written} | prices
