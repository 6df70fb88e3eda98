"""Many pipelines over one bench: runs, reports, files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from string import Formatter
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.evaluate import (
    MULTI_SESSION,
    Measure,
    Report,
    compare,
    describe_questions,
    evaluate,
    file_names,
    hard_group,
    results_table,
    to_markdown,
    write_qrels,
    write_reports,
    write_run,
)
from memlab.pipelines import Pipeline, pipeline
from memlab.records import LEVELS, Dataset, Level, Run, qrels
from memlab.retrieve import Bench
from memlab.store import MemoryStore


@dataclass(frozen=True)
class Experiment:
    """What some pipelines did on one dataset.

    :param dataset: what was asked.
    :param runs: the rankings, by level and in the order of the pipelines.
    :param reports: what each run reached, in the same order.
    """

    dataset: Dataset
    runs: tuple[Run, ...]
    reports: tuple[Report, ...]

    def write(self, directory: str | Path) -> None:
        """Write ``NAME.turn.trec`` and ``NAME.session.trec``, qrels, per-query Parquet and the reports.

        :raises ExportError: when a file cannot be written.
        """
        directory = Path(directory)
        names = file_names([run.name for run in self.runs])
        for run in self.runs:
            write_run(run, directory / f"{names[run.name]}.{run.level}.trec")
        for level in LEVELS:
            write_qrels(qrels(self.dataset.questions, level), directory / f"qrels.{level}.trec")
        write_reports(self.reports, directory, provenance={"data": self.dataset.describe()})

    def save(self, store: MemoryStore) -> list[str]:
        """Keep the runs in a store's runs table; gives their ids."""
        measured = zip(self.runs, self.reports, strict=True)
        return [
            store.save_run(run, measures=dict(report.summary().select("measure", "mean").iter_rows()))
            for run, report in measured
        ]

    def to_markdown(self) -> str:
        """Give the tables over all questions and over those with evidence in several sessions, for both levels."""
        parts = []
        for level in LEVELS:
            held = [report for report in self.reports if report.level == level]
            if not held:
                continue
            n = held[0].per_query.height
            parts.append(f"{level}s, all questions with evidence (n = {n:,})\n\n{to_markdown(results_table(held))}")
            several = held[0].per_query.filter(held[0].per_query["n_evidence_sessions"] >= 2).height
            if several:
                table = results_table(held, by="evidence_sessions", group=MULTI_SESSION)
                parts.append(f"{level}s, evidence in two or more sessions (n = {several:,})\n\n{to_markdown(table)}")
        return "\n\n".join(parts)


def measurable(dataset: Dataset) -> tuple[Level, ...]:
    """Give the levels at which a dataset's questions have evidence: a chat log may cite sessions alone.

    :raises DataError: when no question has evidence at any level.
    """
    levels = tuple(level for level in LEVELS if qrels(dataset.questions, level).frame.height) or LEVELS
    for level in levels:
        describe_questions(dataset, level)
    return levels


def distinct(pipelines: Sequence[str | Pipeline]) -> list[Pipeline]:
    """Read pipelines that are to be compared.

    :raises PipelineError: when one of them cannot be read.
    :raises DataError: when there is none, or one stands there twice.
    """
    read = [pipeline(text) for text in pipelines]
    if not read or len(set(map(str, read))) < len(read):
        raise DataError(f"pipelines are {[str(one) for one in read]}; give at least one, and none twice")
    return read


def run_pipelines(
    pipelines: Sequence[str | Pipeline],
    bench: Bench,
    dataset: Dataset,
    *,
    levels: Sequence[Level] = LEVELS,
    measures: Sequence[str | Measure] | None = None,
    seed: int = 0,
) -> Experiment:
    """Run pipelines and measure them, each at every level.

    :param pipelines: their texts; the first is the baseline of comparisons.
    :param measures: those of the level by default.
    :param seed: of the bootstrap and the randomisation tests.
    :raises PipelineError: before anything runs, when one of them cannot be read.
    :raises DataError: when there is none, or one stands there twice.

    >>> import memlab
    >>> data = memlab.datasets.synthetic.generate(turns=200, seed=0)
    >>> bench = memlab.Bench.of(data, encoder="hashing")
    >>> done = memlab.run_pipelines(["bm25", "hybrid | mmr"], bench, data)
    >>> [run.level for run in done.runs]
    ['turn', 'session', 'turn', 'session']
    """
    from tqdm.auto import tqdm

    jobs = [(one, level) for one in distinct(pipelines) for level in levels]
    bar = tqdm(jobs, desc="pipelines", disable=len(bench.queries) * len(jobs) < 2_000, mininterval=1)
    runs = tuple(one.run(bench, level=level) for one, level in bar)
    return Experiment(dataset, runs, tuple(evaluate(run, dataset, measures=measures, seed=seed) for run in runs))


def sweep(
    template: str,
    values: Sequence[Any],
    baseline: Report,
    bench: Bench,
    dataset: Dataset,
    *,
    measure: str | Sequence[str],
) -> pl.DataFrame:
    """Measure one parameter of a pipeline over several values, for :func:`memlab.figures.sweeps.sweep`.

    :param template: the pipeline with ``{parameter}`` where the value goes: ``hybrid | mmr(lambda_={lambda_})``.
    :param baseline: what the values are held against; gives the level, the seed and the plain value.
    :param measure: what is drawn, such as ``recall_all@10``, or several, over the hard questions
        (:func:`evaluate.hard_group`).
    :returns: a row a measure and value: ``measure``, ``parameter``, ``value``, ``system``, ``mean`` with its 95 %
        interval ``low``, ``high``, ``baseline``, the paired ``difference`` with its interval ``difference_low``,
        ``difference_high``, and ``p``, not corrected for the number of values.
    :raises DataError: when the template does not name exactly one parameter.
    """
    try:
        names = [name for _, name, _, _ in Formatter().parse(template) if name]
    except ValueError as error:
        raise DataError(f"{template!r} is no template ({error}); write the value as {{parameter}}") from error
    if len(names) != 1:
        raise DataError(f"{template!r} names {len(names)} parameters in braces; a sweep goes over one")
    measures = [measure] if isinstance(measure, str) else list(measure)
    texts = [template.format(**{names[0]: value}) for value in values]
    done = run_pipelines(texts, bench, dataset, levels=[baseline.level], measures=measures, seed=baseline.seed)
    parameter, system = names[0].strip("_"), done.runs[0].name.split(" | ")[-1].split("(")[0]
    rows = pl.concat(
        _held_against(baseline, done.reports, one).with_columns(value=pl.Series(values)) for one in measures
    )
    return rows.with_columns(parameter=pl.lit(parameter), system=pl.lit(system)).select(
        "measure", "parameter", "value", "system", "mean", "low", "high", "baseline",
        "difference", "difference_low", "difference_high", "p",
    )  # fmt: skip


def _held_against(baseline: Report, reports: Sequence[Report], measure: str) -> pl.DataFrame:
    by, group = hard_group(baseline)
    where = pl.col("n_evidence_sessions") >= 2 if by != "all" else None
    compared = compare([baseline, *reports], measure=measure, where=where, seed=baseline.seed)[1:]
    return pl.concat([_mean(report, measure, by, group) for report in reports]).with_columns(
        measure=pl.lit(measure),
        baseline=pl.lit(_mean(baseline, measure, by, group)["mean"].item()),
        difference=compared["difference"],
        difference_low=compared["low"],
        difference_high=compared["high"],
        p=compared["p"],
    )


def latency(pipelines: Sequence[str | Pipeline], bench: Bench, *, queries: int = 50, seed: int = 0) -> pl.DataFrame:
    """Time pipelines over turns: many questions at once, and one at a time.

    The indexes are warm, and no ranking is remembered from one run to the next. Left out is the encoding of the
    question itself, which is the same for every pipeline; what a stage encodes on its behalf counts, and is not read
    from a store's cache.

    :param queries: how many questions are drawn.
    :param seed: of the draw.
    :returns: ``system``, ``n`` (questions), ``batch_ms`` (milliseconds a question, the median of three runs) and
        ``single_ms`` (the median over the questions).
    :raises DataError: when the bench has no questions, or ``queries`` is not positive.

    >>> import memlab
    >>> from memlab.experiment import latency
    >>> data = memlab.datasets.synthetic.generate(turns=200, seed=0)
    >>> latency(["bm25"], memlab.Bench.of(data, encoder=None), queries=3)["n"].item()
    3
    """
    read = distinct(pipelines)
    if queries < 1 or not bench.queries.height:
        raise DataError(f"queries is {queries} and the bench has {bench.queries.height}; nothing can be timed")
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(bench.queries.height, min(queries, bench.queries.height), replace=False))
    measured = []
    for one in read:
        # The indexed path lives in the store; any other would find there what it encoded when it warmed up.
        store = bench.store if "path='indexed'" in str(one) else None
        one.run(_asking(bench, rows, store))
        batch = [_seconds(one, _asking(bench, rows, store)) for _ in range(3)]
        single = [_seconds(one, _asking(bench, rows[[i]], store)) for i in range(len(rows))]
        measured.append((str(one), len(rows), 1000 * median(batch) / len(rows), 1000 * median(single)))
    return pl.DataFrame(measured, schema=["system", "n", "batch_ms", "single_ms"], orient="row")


def _asking(bench: Bench, rows: np.ndarray, store: MemoryStore | None) -> Bench:
    """Give a bench with some of the questions, the same documents and no remembered rankings."""
    vectors = None if bench.query_vectors is None else bench.query_vectors[rows]
    part = replace(bench, queries=bench.queries[rows], query_vectors=vectors, store=store)
    part.__dict__["_documents"] = bench._documents
    return part


def _seconds(one: Pipeline, bench: Bench) -> float:
    start = perf_counter()
    one.run(bench)
    return perf_counter() - start


def _mean(report: Report, measure: str, by: str, group: str) -> pl.DataFrame:
    return report.summary(by, measures=[measure]).filter(pl.col("group") == group).select("mean", "low", "high")
