"""What systems return (read as pipelines, memories or files) and what that is worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab import memories
from memlab.conversation import answer_presence
from memlab.embed import Encoder
from memlab.errors import PipelineError, check_at_least
from memlab.evaluate import Report, evaluate, read_run
from memlab.evaluate.confidence_intervals import Unit, clustering_scopes, mean_intervals
from memlab.evaluate.tables import BOUNDS
from memlab.experiments.sweeps import TIMED_QUESTIONS, time_in_turn
from memlab.files import fix_place
from memlab.memories import Memory, ReturnedTexts
from memlab.memories.collecting import problem_row
from memlab.pipelines import Pipeline, pipeline
from memlab.records import Dataset, Run, qrels
from memlab.records.dataset import describe_sources
from memlab.retrieve import Bench
from memlab.source_labels import COLUMN
from memlab.store import MemoryStore
from memlab.system_names import check_system_names

DEFAULT_DEPTH = 50
System = Pipeline | Memory | ReturnedTexts


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
        clustering_scopes([], self.unit)  # refuses another unit before anything runs
        check_at_least(1, k=self.k)
        check_at_least(0, seed=self.seed, timeout=self.timeout)

    def read(self, systems: Any, data: Dataset, others: Sequence[str] = ()) -> dict[str, System]:
        """Read systems, with or without names, and the rankings of :attr:`runs`, by name in tables.

        :param others: further names that stand in the tables.
        :raises DataError: when there is nothing, or two have one name.
        """
        listed = systems if isinstance(systems, (list, tuple, Mapping)) else [systems]
        pairs = (
            listed.items()
            if isinstance(listed, Mapping)
            else [(_system_name(system), system) for system in listed]
        )
        named: list[tuple[str, System]] = [(name, self._system(system)) for name, system in pairs]
        files = [self._file(Path(path), data) for path in self.runs]
        named += [(each.name, each) for each in files]
        check_system_names([*(name for name, _ in named), *others], reserved=BOUNDS)
        return dict(named)

    def bench(self, data: Dataset) -> Bench:
        """Make the bench of the pipelines."""
        store = str(self.store) if isinstance(self.store, Path) else self.store
        return Bench.of(data, encoder=self.encoder, store=store)

    def returned(
        self, named: Mapping[str, System], bench: Bench, data: Dataset, *, timed: bool = False
    ) -> Iterator[tuple[ReturnedTexts, np.ndarray]]:
        """Ask one system after the other all questions; with the milliseconds of single searches."""
        folder = (
            fix_place(self.folder) if self.folder else None
        )  # A memory may change the directory.
        stages = {name: each for name, each in named.items() if isinstance(each, Pipeline)}
        runs = {name: each.run(bench).top(self.k) for name, each in stages.items()}
        times: dict[str, np.ndarray] = {}
        if timed and stages:
            measured = _time_questions([*stages.values()], bench, self.seed)
            times = dict(zip(stages, measured, strict=True))
        for name, system in named.items():
            if isinstance(system, ReturnedTexts):
                yield system, np.array([])
            elif isinstance(system, Pipeline):
                run = runs.pop(name)
                # The name that was given, or the pipeline's text and what it had to leave out.
                shown = run.name if name == str(system) else name
                found = memories.run_to_returned_texts(run, data, shown)
                yield found, times.get(name, np.array([]))
            else:
                found = memories.collect(
                    system, data, name=name, k=self.k, folder=folder, timeout=self.timeout
                )
                yield found, found.costs.explode("query_ms")["query_ms"].drop_nulls().to_numpy()

    def _system(self, system: Any) -> Pipeline | Memory:
        if isinstance(system, Pipeline):
            return system
        if (
            isinstance(system, str)
            and "://" not in system
            and not memories.is_module_reference(system)
        ):
            try:
                return pipeline(system)
            except PipelineError as error:
                raise PipelineError(
                    f"{error}; a memory is written module:name or http://HOST:PORT"
                ) from None
        return memories.memory(system, timeout=self.timeout)

    def _file(self, path: Path, data: Dataset) -> ReturnedTexts:
        if path.suffix in (".json", ".jsonl"):
            found = memories.read_ranking(path, data, k=self.k)
        else:
            found = memories.run_to_returned_texts(
                read_run(path, "turn").top(self.k), data, path.stem
            )
        lines = (
            [problem_row(found.name, "", "", line)] if (line := found.partial_answers(data)) else []
        )
        partial = pl.DataFrame(lines, schema=found.problems.schema, orient="row")
        return replace(found, problems=pl.concat([partial, found.problems]))


def _system_name(system: Any) -> str:
    if isinstance(system, (str, Pipeline)):
        return str(system)
    return str(getattr(system, "__name__", type(system).__name__))


def _time_questions(pipelines: Sequence[Pipeline], bench: Bench, seed: int) -> np.ndarray:
    """Time single questions by the wall clock: waiting for a model is part of a search.

    :returns: (p, n) milliseconds, by pipeline and question.
    """
    rows = np.random.default_rng(seed).permutation(bench.queries.height)[:TIMED_QUESTIONS, None]
    return time_in_turn(pipelines, bench, [*rows], clock=perf_counter)


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
    found: ReturnedTexts,
    times: np.ndarray,
    data: Dataset,
    encoder: Encoder | None,
    asked: AskingOptions,
) -> SystemOutcome:
    """Measure one system: values by question, its row of the table, and the sources of its texts.

    :param times: of single searches, in milliseconds.
    :param asked: gives the seed and the unit.
    """
    sources = memories.attribute(found, data, encoder)
    rows = memories.dated_lines(found).join(
        sources, on=["query_id", "rank"], how="left", maintain_order="left"
    )
    ranking = memories.rank_source_turns(found, sources)
    report = evaluate(ranking, data, seed=asked.seed, unit=asked.unit)
    values = _measure_questions(rows, data, report)
    means = values.select(pl.col(r"^.*@.*$").mean()).row(0, named=True)
    scopes = clustering_scopes(values["scope"], asked.unit)
    spans = mean_intervals(values.select("recall_all@10").to_numpy(), scopes=scopes)
    span = spans.select("low", "high", "level", "unit", "units").row(0, named=True)
    ways = {how: n / max(1, rows.height) for how, n in rows["how"].value_counts().iter_rows()}
    n_prompts, n_refused = found.prompts if found.calls.height else (None, None)
    row = {
        "system": found.name,
        "n": values.height,
        **{name: means[name] for name in ("recall_any@10", "recall_all@10")},
        **{f"recall_all@10_{name}": value for name, value in span.items()},
        "recall_all@10, ≥ 2 sessions": values.filter(pl.col("n_sessions") >= 2)[
            "recall_all@10"
        ].mean(),
        **{name: mean for name, mean in means.items() if "tokens" in name and "any" not in name},
        "tokens returned": rows["n_tokens"].sum() / max(1, data.questions.height),
        "named": ways.get("given", 0.0),
        "attributed": sum(ways.get(how, 0.0) for how in ("span", "copy", "matched")),
        "ingest s": _total_cost(found, "ingest_seconds"),
        "until found s": _total_cost(found, "wait_seconds"),
        "p50 ms": float(np.percentile(times, 50)) if len(times) else None,
        "p95 ms": float(np.percentile(times, 95)) if len(times) else None,
        "MB": _total_cost(found, "bytes", 1e6),
        "tokens read": _total_cost(found, "tokens_read"),
        "tokens written": _total_cost(found, "tokens_written"),
        "failed scopes": len(found.failed),
        "problems": found.problems.height,
        "prompts": n_prompts,
        "prompts refused": n_refused,
        "status": found.status(),
    }
    described = describe_sources(values)
    if described:
        row[COLUMN] = described
    system = pl.lit(found.name).alias("system")
    texts = rows.select(system, "query_id", "rank", "text", "n_tokens", "how", "turn_ids")
    return SystemOutcome(values, row, texts, ranking, report)


def _total_cost(found: ReturnedTexts, column: str, unit: float = 1) -> float | None:
    values = found.costs[column].drop_nulls()
    return float(values.sum()) / unit if len(values) else None


def _measure_questions(rows: pl.DataFrame, data: Dataset, report: Report) -> pl.DataFrame:
    """Measure each question with evidence: in the first ten turns, and in so many tokens."""
    asked = report.per_query.select("query_id")
    questions = data.questions.join(asked, on="query_id", how="semi", maintain_order="left")
    after = (
        rows.explode("turn_ids").group_by("query_id", doc_id="turn_ids").agg(pl.col("after").min())
    )
    items = qrels(questions, "turn").frame.join(after, on=["query_id", "doc_id"], how="left")
    # Tokens up to the last and to the first item of evidence.
    tokens = pl.col("after").fill_null(2**31 - 1)
    found = items.group_by("query_id").agg(all=tokens.max(), any=tokens.min())
    values = report.per_query.join(found, on="query_id", how="left", maintain_order="left")
    within = (
        (pl.col(of) <= budget).cast(pl.Float64).alias(f"recall_{of}@{budget} tokens")
        for budget in BUDGETS
        for of in ("all", "any")
    )
    texts = {report.name: memories.fit_to_budget(rows, asked, ANSWER_BUDGET)}
    by_source = [name for name in ("source",) if name in values.columns]
    return values.select(
        pl.lit(report.name).alias("system"),
        *(
            "query_id",
            "scope",
            pl.col("n_evidence_sessions").alias("n_sessions"),
            "recall_all@10",
            "recall_any@10",
        ),
        *within,
        answer_presence(texts, questions)["holds"]
        .cast(pl.Float64)
        .alias(f"answer@{ANSWER_BUDGET} tokens"),
        *by_source,
    )
