"""Many pipelines over one bench: runs, reports, files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memlab.evaluate import (
    MULTI_SESSION,
    Report,
    evaluate,
    file_names,
    results_table,
    to_markdown,
    write_qrels,
    write_reports,
    write_run,
)
from memlab.pipelines import Pipeline, pipeline
from memlab.records import LEVELS, Dataset, Run, qrels
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
            n = held[0].per_query.height
            parts.append(f"{level}s, all questions with evidence (n = {n:,})\n\n{to_markdown(results_table(held))}")
            several = held[0].per_query.filter(held[0].per_query["n_evidence_sessions"] >= 2).height
            if several:
                table = results_table(held, by="evidence_sessions", group=MULTI_SESSION)
                parts.append(f"{level}s, evidence in two or more sessions (n = {several:,})\n\n{to_markdown(table)}")
        return "\n\n".join(parts)


def run_pipelines(pipelines: Sequence[str | Pipeline], bench: Bench, dataset: Dataset, *, seed: int = 0) -> Experiment:
    """Run pipelines at turn and session level and measure them.

    :param pipelines: their texts; the first is the baseline of comparisons.
    :param seed: of the bootstrap and the randomisation tests.
    :raises PipelineError: before anything runs, when one of them cannot be read.

    >>> import memlab
    >>> data = memlab.datasets.synthetic.generate(turns=200, seed=0)
    >>> bench = memlab.Bench.of(data, encoder="hashing")
    >>> done = memlab.run_pipelines(["bm25", "hybrid | mmr"], bench, data)
    >>> [run.level for run in done.runs]
    ['turn', 'session', 'turn', 'session']
    """
    from tqdm.auto import tqdm

    read = [pipeline(text) for text in pipelines]
    jobs = [(one, level) for one in read for level in LEVELS]
    bar = tqdm(jobs, desc="pipelines", disable=len(bench.queries) * len(jobs) < 2_000)
    runs = tuple(one.run(bench, level=level) for one, level in bar)
    return Experiment(dataset, runs, tuple(evaluate(run, dataset, seed=seed) for run in runs))
