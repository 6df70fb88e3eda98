"""What pipelines did on datasets: rankings, reports, tables, files."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from memlab.datasets import corrected
from memlab.errors import DataError
from memlab.evaluate import (
    MULTI_SESSION,
    Comparison,
    Measure,
    Report,
    compare,
    evaluate,
    file_names,
    results_table,
    to_markdown,
    write_qrels,
    write_reports,
    write_run,
)
from memlab.evaluate.groups import SEVERAL
from memlab.evaluate.printing import to_html
from memlab.records import LEVELS, Dataset, Level, Run, qrels

_BESIDE = ["dataset", "level", "group", "system", "measure"]
CELLS = {**dict.fromkeys(("dataset", "pipeline", "level", "run_id"), pl.String()), "read": pl.Boolean()}


@dataclass(frozen=True, repr=False)
class Experiment:
    """What some pipelines did on one dataset or several.

    :param name: under which :func:`memlab.reopen` finds it in a store.
    :param datasets: what was asked.
    :param runs: the rankings: by dataset, by pipeline, by level.
    :param reports: what each run reached, in the same order.
    :param cells: a row a run, in the same order: ``dataset``, ``pipeline``, ``level``, ``run_id`` (null where it was
        not saved), and ``read``: whether the run was in the store before, so that nothing was ranked.
    """

    name: str
    datasets: tuple[Dataset, ...]
    runs: tuple[Run, ...]
    reports: tuple[Report, ...]
    cells: pl.DataFrame

    def __getitem__(self, dataset: str) -> Experiment:
        """Give what was done on one dataset, by its name."""
        data = tuple(data for data in self.datasets if data.name == dataset)
        if not data:
            names = ", ".join(data.name for data in self.datasets)
            raise DataError(f"experiment {self.name!r} has no dataset {dataset!r}; it has {names}")
        rows = [i for i, name in enumerate(self.cells["dataset"]) if name == dataset]
        runs, reports = tuple(self.runs[i] for i in rows), tuple(self.reports[i] for i in rows)
        return Experiment(self.name, data, runs, reports, self.cells[rows])

    def of(self, level: Level) -> tuple[Report, ...]:
        """Give the reports of a level."""
        return tuple(report for report in self.reports if report.level == level)

    def compare(
        self,
        measure: str | Measure,
        *,
        level: Level = "turn",
        where: pl.Expr | str | None = None,
        baseline: str | None = None,
    ) -> Comparison:
        """Compare the pipelines on each dataset, as :func:`memlab.evaluate.compare` does, ``dataset`` in front."""
        parts = []
        for data in self.datasets:
            reports = self[data.name].of(level)
            if reports:
                table = compare(reports, measure=measure, baseline=baseline, where=where, seed=reports[0].seed)
                parts.append(table.select(pl.lit(data.name).alias("dataset"), pl.all()))
        if not parts:
            raise DataError(f"experiment {self.name!r} ranks no {level}s")
        return Comparison(pl.concat(parts))

    def corrected(self, path: str | Path) -> Experiment:
        """Measure the same rankings against evidence that an audit corrects; see :func:`memlab.datasets.corrected`.

        Nothing is ranked again, and a model that learned from the evidence learned from the original.

        :param path: a file of errors, or a folder of them.
        :raises DataError: when it is malformed, or is not about these datasets.
        """
        mended = {data.name: corrected(data, path) for data in self.datasets}
        reports = [
            evaluate(
                replace(run, provenance={**run.provenance, "corrections": Path(path).name}),
                mended[dataset],
                measures=report.measures,
                seed=report.seed,
            )
            for run, report, dataset in zip(self.runs, self.reports, self.cells["dataset"], strict=True)
        ]
        cells = self.cells.with_columns(pl.col("dataset").replace({name: new.name for name, new in mended.items()}))
        return replace(
            self,
            name=f"{self.name}-corrected",
            datasets=tuple(mended.values()),
            reports=tuple(reports),
            cells=cells,
        )

    def beside(self, corrected: Experiment) -> pl.DataFrame:
        """Set complete recall beside what it is on corrected evidence.

        :param corrected: what :meth:`corrected` gave.
        :returns: a row a run, group (all questions, and those with evidence in several sessions) and measure:
            ``dataset``, ``level``, ``group``, ``system``, ``measure``, ``n``, ``original``, ``n corrected``,
            ``corrected``.
        """
        tables = []
        for made, names in ((self, ("n", "original")), (corrected, ("n corrected", "corrected"))):
            rows = []
            for dataset, report in zip(self.cells["dataset"], made.reports, strict=True):
                recall = [measure for measure in report.measures if measure.name == "recall_all"] or report.measures
                for by, group in (("all", "all"), ("evidence_sessions", MULTI_SESSION)):
                    means = report.summary(by, measures=recall).filter(pl.col("group") == group)
                    rows += [
                        (dataset, report.level, group, report.name, *row)
                        for row in means.select("measure", "n", "mean").iter_rows()
                    ]
            tables.append(pl.DataFrame(rows, schema=[*_BESIDE, *names], orient="row"))
        return tables[0].join(tables[1], on=_BESIDE, how="left", maintain_order="left")

    def write(self, directory: str | Path) -> None:
        """Write ``NAME.turn.trec`` and ``NAME.session.trec``, qrels, per-query Parquet and the reports.

        Of several datasets, each gets a folder of its name.

        :raises ExportError: when a file cannot be written.
        """
        for data in self.datasets:
            part = self[data.name]
            folder = Path(directory) / data.name if len(self.datasets) > 1 else Path(directory)
            names = file_names([run.name for run in part.runs])
            for run in part.runs:
                write_run(run, folder / f"{names[run.name]}.{run.level}.trec")
            for level in LEVELS:
                write_qrels(qrels(data.questions, level), folder / f"qrels.{level}.trec")
            write_reports(part.reports, folder, provenance={"data": data.describe()})

    def to_markdown(self) -> str:
        """Give the tables over all questions and over those with evidence in several sessions, for both levels."""
        parts = []
        for data in self.datasets:
            if len(self.datasets) > 1:
                parts.append(f"## {data.name}")
            for head, table in _tables(self[data.name]):
                parts.append(f"{head}\n\n{to_markdown(table)}")
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        names = ", ".join(data.name for data in self.datasets)
        return (
            f"Experiment({self.name!r}: {len(self.runs)} runs on {names}; .to_markdown(), .compare('recall_all@10'), "
            ".write('results'))"
        )

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{html.escape(self.name)}</b>: {len(self.runs)} runs</p>"]
        for data in self.datasets:
            head, table = _tables(self[data.name])[0]
            parts.append(f"<p>{html.escape(f'{data.name}: {head}')}</p>{to_html(table)}")
        parts.append(
            "<p>Next: <code>.compare('recall_all@10')</code> tests the differences, <code>.to_markdown()</code> gives "
            "all tables, <code>.write('results')</code> writes runs, qrels and reports; <code>.runs</code> and "
            "<code>.reports</code> hold the rankings and every question.</p>"
        )
        return "".join(parts)


def _tables(part: Experiment) -> Sequence[tuple[str, pl.DataFrame]]:
    """Give the tables of one dataset, with their heads."""
    tables = []
    for level in LEVELS:
        if reports := part.of(level):
            head = f"{level}s, all questions with evidence (n = {reports[0].per_query.height:,})"
            tables.append((head, results_table(reports)))
            if several := reports[0].per_query.filter(SEVERAL).height:
                table = results_table(reports, by="evidence_sessions", group=MULTI_SESSION)
                tables.append((f"{level}s, evidence in two or more sessions (n = {several:,})", table))
    return tables


def means(report: Report) -> dict[str, float]:
    """Give the mean of each measure over all questions."""
    return dict(report.summary().select("measure", "mean").iter_rows())
