"""What systems return (read as pipelines, memories or files) and what that is worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab import memories
from memlab.atomic_files import make_absolute
from memlab.conversation import answer_presence
from memlab.embed import Encoder
from memlab.errors import PipelineError, check_at_least
from memlab.evaluate import Report, evaluate, read_run
from memlab.evaluate.confidence_intervals import Unit, mean_intervals, scopes_if_they_are_the_unit
from memlab.evaluate.printed_tables import BOUNDS
from memlab.experiments.parameter_sweeps import TIMED_QUESTIONS, time_pipelines_in_turn_ms
from memlab.memories import Memory, ReturnedTexts
from memlab.memories.running_a_memory import make_problem_row
from memlab.pipelines import Pipeline, pipeline
from memlab.question_source_labels import COLUMN
from memlab.records import Dataset, Run, qrels
from memlab.records.dataset import describe_question_sources_or_empty
from memlab.retrieve import Bench
from memlab.store import MemoryStore
from memlab.system_names import check_system_names

DEFAULT_DEPTH = 50
System = Pipeline | Memory | ReturnedTexts
SystemLike = Any
"""A pipeline or its text, or what :func:`memlab.memories.memory` makes a memory of."""
SystemsLike = Any
"""One of these, several, or several by name."""


@dataclass(frozen=True)
class AskingOptions:
    """How systems are asked: what :func:`memlab.compare` and :func:`memlab.answer_questions` share.

    :param runs: files of what other systems have ranked: TREC runs of turns, or what
        :func:`memlab.memories.read_ranking` reads.
    :param encoder: of the pipelines, and of the attribution.
    :param store: where the encoder's vectors are kept.
    :param folder: where what memories returned is kept, so that a comparison that was stopped goes
        on.
    :param k: texts that a system gives at most.
    :param timeout: seconds of one request to a memory.
    :param unit: what intervals and tests take as independent: ``question``, ``scope``, or ``auto``:
        scopes where there are five or more.
    """

    runs: Sequence[str | Path] = ()
    encoder: Encoder | str | None = "settings"
    store: MemoryStore | str | Path | None = None
    folder: str | Path | None = None
    k: int = DEFAULT_DEPTH
    timeout: float = 600.0
    seed: int = 0
    unit: Unit = "auto"

    def __post_init__(self) -> None:
        scopes_if_they_are_the_unit([], self.unit)  # refuses another unit before anything runs
        check_at_least(1, k=self.k)
        check_at_least(0, seed=self.seed, timeout=self.timeout)

    def read_systems_and_run_files_by_name(
        self, systems: SystemsLike, data: Dataset, reserved_names: Sequence[str] = ()
    ) -> dict[str, System]:
        """Read systems, with or without names, and the rankings of :attr:`runs`, by name in tables.

        :param reserved_names: further names that stand in the tables.
        :raises DataError: when there is nothing, or two have one name.
        """
        names: list[str] = []
        systems_read: list[System] = []
        for name, system in _pairs_of_name_and_system(systems):
            names.append(name)
            systems_read.append(self._read_pipeline_or_memory(system))
        for path in self.runs:
            ranking = self._read_ranking_file_and_note_gaps(Path(path), data)
            names.append(ranking.name)
            systems_read.append(ranking)
        check_system_names([*names, *reserved_names], reserved=BOUNDS)
        return dict(zip(names, systems_read, strict=True))

    def make_bench(self, data: Dataset) -> Bench:
        """Make the bench of the pipelines."""
        store_place = self.store
        if isinstance(store_place, Path):
            store_place = str(store_place)
        return Bench.of(data, encoder=self.encoder, store=store_place)

    def ask_systems_and_iter_texts_and_ms(
        self,
        system_by_name: Mapping[str, System],
        bench: Bench,
        data: Dataset,
        *,
        with_search_times: bool = False,
    ) -> Iterator[tuple[ReturnedTexts, np.ndarray]]:
        """Ask one system after the other all questions; give the milliseconds of searches too."""
        returned_folder = None
        if self.folder:
            returned_folder = make_absolute(self.folder)  # a memory may change the directory
        named_pipelines: dict[str, Pipeline] = {}
        pipeline_runs: dict[str, Run] = {}
        for system_name, system in system_by_name.items():
            if isinstance(system, Pipeline):
                named_pipelines[system_name] = system
                pipeline_runs[system_name] = system.run(bench).top(self.k)
        times_by_system: dict[str, np.ndarray] = {}
        if with_search_times and named_pipelines:
            measured_times = _time_single_questions_ms(
                [*named_pipelines.values()], bench, self.seed
            )
            times_by_system = dict(zip(named_pipelines, measured_times, strict=True))
        for system_name, asked_system in system_by_name.items():
            if isinstance(asked_system, ReturnedTexts):
                yield asked_system, np.array([])
            elif isinstance(asked_system, Pipeline):
                pipeline_run = pipeline_runs.pop(system_name)
                # The name that was given, or the pipeline's text and what it had to leave out.
                shown_name = system_name
                if shown_name == str(asked_system):
                    shown_name = pipeline_run.name
                returned_texts = memories.run_to_returned_texts(pipeline_run, data, shown_name)
                yield returned_texts, times_by_system.get(system_name, np.array([]))
            else:
                returned_texts = memories.collect(
                    asked_system,
                    data,
                    name=system_name,
                    k=self.k,
                    folder=returned_folder,
                    timeout=self.timeout,
                )
                search_times = returned_texts.costs.explode("query_ms")["query_ms"]
                yield returned_texts, search_times.drop_nulls().to_numpy()

    def _read_pipeline_or_memory(self, system: SystemLike) -> Pipeline | Memory:
        if isinstance(system, Pipeline):
            return system
        is_text = isinstance(system, str)
        if not is_text or "://" in system or memories.is_module_reference(system):
            return memories.memory(system, timeout=self.timeout)
        try:
            pipeline_read = pipeline(system)
        except PipelineError as error:
            raise PipelineError(
                f"{error}; a memory is written module:name or http://HOST:PORT"
            ) from None
        pipeline_read.check_services_and_models()
        return pipeline_read

    def _read_ranking_file_and_note_gaps(self, run_path: Path, data: Dataset) -> ReturnedTexts:
        if run_path.suffix in (".json", ".jsonl"):
            returned_texts = memories.read_ranking(run_path, data, k=self.k)
        else:
            returned_texts = memories.run_to_returned_texts(
                read_run(run_path, "turn").top(self.k), data, run_path.stem
            )
        partial_rows = []
        partial_line = returned_texts.partial_answers(data)
        if partial_line:
            partial_rows.append(make_problem_row(returned_texts.name, "", "", partial_line))
        problems = returned_texts.problems
        partial_problems = pl.DataFrame(partial_rows, schema=problems.schema, orient="row")
        return replace(returned_texts, problems=pl.concat([partial_problems, problems]))


def _pairs_of_name_and_system(systems: SystemsLike) -> list[tuple[str, SystemLike]]:
    """Give one system, several, or several by name, as pairs of name and system."""
    if isinstance(systems, Mapping):
        return [*systems.items()]
    if not isinstance(systems, (list, tuple)):
        systems = [systems]
    return [(_default_system_name(system), system) for system in systems]


def _default_system_name(system: SystemLike) -> str:
    if isinstance(system, (str, Pipeline)):
        return str(system)
    return str(getattr(system, "__name__", type(system).__name__))


def _time_single_questions_ms(pipelines: Sequence[Pipeline], bench: Bench, seed: int) -> np.ndarray:
    """Time single questions by the wall clock: waiting for a model is part of a search.

    :returns: (p, n) milliseconds, by pipeline and question.
    """
    question_rows = np.random.default_rng(seed).permutation(bench.queries.height)[
        :TIMED_QUESTIONS, None
    ]
    return time_pipelines_in_turn_ms(pipelines, bench, [*question_rows], clock=perf_counter)


BUDGETS = (200, 500, 1_000, 2_000, 4_000)
ANSWER_BUDGET = 1_000


class SystemOutcome(NamedTuple):
    """What one system made of the questions.

    :param per_query: a row a question with evidence, as
        :attr:`memlab.experiments.compare_systems.Comparison.per_query`.
    :param row: of the table.
    :param texts: what it returned, attributed.
    :param ranking: the turns in the order in which its texts bring them; ``report``: what it
        reached.
    """

    per_query: pl.DataFrame
    row: dict[str, Any]
    texts: pl.DataFrame
    ranking: Run
    report: Report


def measure_system(
    returned_texts: ReturnedTexts,
    search_times_ms: np.ndarray,
    data: Dataset,
    encoder: Encoder | None,
    asking_options: AskingOptions,
) -> SystemOutcome:
    """Measure one system: values by question, its row of the table, and the sources of its texts.

    :param search_times_ms: of single searches, in milliseconds.
    :param asking_options: gives the seed and the unit.
    """
    sources = memories.attribute(returned_texts, data, encoder)
    text_rows = memories.dated_lines(returned_texts).join(
        sources, on=["query_id", "rank"], how="left", maintain_order="left"
    )
    ranking = memories.rank_source_turns(returned_texts, sources)
    ranking_report = evaluate(ranking, data, seed=asking_options.seed, unit=asking_options.unit)
    question_values = _measure_values_by_question(text_rows, data, ranking_report)
    measure_means = question_values.select(pl.col(r"^.*@.*$").mean()).row(0, named=True)
    value_scopes = scopes_if_they_are_the_unit(question_values["scope"], asking_options.unit)
    intervals = mean_intervals(
        question_values.select("recall_all@10").to_numpy(), scopes=value_scopes
    )
    interval = intervals.select("low", "high", "level", "unit", "units").row(0, named=True)
    origins = text_rows["how"]
    attributed_origins = ("span", "copy", "matched")
    n_prompts = None
    n_refused = None
    if returned_texts.calls.height:
        n_prompts, n_refused = returned_texts.prompts
    p50_ms = None
    p95_ms = None
    if len(search_times_ms):
        p50_ms, p95_ms = map(float, np.percentile(search_times_ms, [50, 95]))
    multi_session = question_values.filter(pl.col("n_sessions") >= 2)
    system_row: dict[str, Any] = {
        "system": returned_texts.name,
        "n": question_values.height,
        "recall_any@10": measure_means["recall_any@10"],
        "recall_all@10": measure_means["recall_all@10"],
    }
    for column_name, interval_value in interval.items():
        system_row[f"recall_all@10_{column_name}"] = interval_value
    system_row["recall_all@10, ≥ 2 sessions"] = multi_session["recall_all@10"].mean()
    budget_measures = [name for name in measure_means if "tokens" in name and "any" not in name]
    for measure in budget_measures:
        system_row[measure] = measure_means[measure]
    system_row |= {
        "tokens returned": text_rows["n_tokens"].sum() / max(1, data.questions.height),
        "named": _share_of_origins(origins, ["given"]),
        "attributed": _share_of_origins(origins, attributed_origins),
        "ingest s": _total_of_cost_column(returned_texts, "ingest_seconds"),
        "until found s": _total_of_cost_column(returned_texts, "wait_seconds"),
        "p50 ms": p50_ms,
        "p95 ms": p95_ms,
        "MB": _total_of_cost_column(returned_texts, "bytes", 1e6),
        "tokens read": _total_of_cost_column(returned_texts, "tokens_read"),
        "tokens written": _total_of_cost_column(returned_texts, "tokens_written"),
        "failed scopes": len(returned_texts.failed),
        "problems": returned_texts.problems.height,
        "prompts": n_prompts,
        "prompts refused": n_refused,
        "status": returned_texts.status(),
    }
    source_note = describe_question_sources_or_empty(question_values)
    if source_note:
        system_row[COLUMN] = source_note
    system_column = pl.lit(returned_texts.name).alias("system")
    attributed_texts = text_rows.select(
        system_column, "query_id", "rank", "text", "n_tokens", "how", "turn_ids"
    )
    return SystemOutcome(question_values, system_row, attributed_texts, ranking, ranking_report)


def _share_of_origins(origins: pl.Series, counted_origins: Sequence[str]) -> float:
    """Give the share of texts whose origin, a column ``how``, is among some."""
    total = 0.0
    for name in counted_origins:
        total += float((origins == name).sum()) / max(1, len(origins))
    return total


def _total_of_cost_column(
    returned_texts: ReturnedTexts, column: str, divisor: float = 1
) -> float | None:
    cost_values = returned_texts.costs[column].drop_nulls()
    if cost_values.is_empty():
        return None
    return float(cost_values.sum()) / divisor


def _measure_values_by_question(
    text_rows: pl.DataFrame, data: Dataset, report: Report
) -> pl.DataFrame:
    """Measure each question with evidence: in the first ten turns, and in so many tokens."""
    question_ids = report.per_query.select("query_id")
    questions = data.questions.join(question_ids, on="query_id", how="semi", maintain_order="left")
    first_place_of_turn = (
        text_rows.explode("turn_ids")
        .group_by("query_id", doc_id="turn_ids")
        .agg(pl.col("after").min())
    )
    evidence_items = qrels(questions, "turn").frame.join(
        first_place_of_turn, on=["query_id", "doc_id"], how="left"
    )
    # Tokens up to the last and to the first item of evidence.
    tokens_before = pl.col("after").fill_null(2**31 - 1)
    tokens_by_question = evidence_items.group_by("query_id").agg(
        all=tokens_before.max(), any=tokens_before.min()
    )
    question_values = report.per_query.join(
        tokens_by_question, on="query_id", how="left", maintain_order="left"
    )
    budget_columns = []
    for budget, coverage in product(BUDGETS, ("all", "any")):
        is_within = (pl.col(coverage) <= budget).cast(pl.Float64)
        budget_columns.append(is_within.alias(f"recall_{coverage}@{budget} tokens"))
    context_texts = {report.name: memories.fit_to_budget(text_rows, question_ids, ANSWER_BUDGET)}
    holds_answer = answer_presence(context_texts, questions)["holds"]
    source_columns = []
    if "source" in question_values.columns:
        source_columns.append("source")
    return question_values.select(
        pl.lit(report.name).alias("system"),
        "query_id",
        "scope",
        pl.col("n_evidence_sessions").alias("n_sessions"),
        "recall_all@10",
        "recall_any@10",
        *budget_columns,
        holds_answer.cast(pl.Float64).alias(f"answer@{ANSWER_BUDGET} tokens"),
        *source_columns,
    )
