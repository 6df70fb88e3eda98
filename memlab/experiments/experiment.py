"""What pipelines did on datasets: rankings, reports, tables, files."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from memlab.datasets.benchmarks.corrections import apply_corrections
from memlab.errors import DataError, check_at_least
from memlab.evaluate import (
    Report,
    Table,
    compare_reports,
    conclusions,
    evaluate,
    misses,
    read_measure,
    results_table,
)
from memlab.evaluate.comparison import best_note, compare_by_group
from memlab.evaluate.conclusions import Conclusions
from memlab.evaluate.measures import MeasureLike
from memlab.evaluate.report_files import (
    file_names,
    latex_tables,
    main_tables,
    paper_tables,
    write_reports,
)
from memlab.evaluate.tables import tables_to_markdown
from memlab.evaluate.trec import write_qrels, write_run
from memlab.experiments.costs import costs
from memlab.experiments.joining import list_new_runs, match_datasets, measure_alike
from memlab.explanation import Explanation, explain, explain_nothing
from memlab.records import LEVELS, Dataset, Level, Run, qrels
from memlab.retrieve import Bench

CELLS = {
    **dict.fromkeys(("dataset", "pipeline", "level", "run_id"), pl.String()),
    "read": pl.Boolean(),
}


@dataclass(frozen=True, repr=False)
class Experiment:
    """Runs and reports of systems on datasets: what ``memlab.run`` and ``memlab.compare`` return.

    :param name: under which :func:`memlab.reopen` finds it in a store.
    :param datasets: what was asked.
    :param runs: the rankings: by dataset, by system, by level.
    :param reports: what each run reached, in the same order; ``reports[0].per_query`` has a row a
        question.
    :param cells: a row a run, in the same order: ``dataset``, ``pipeline``, ``level``, ``run_id``
        (null where it was not saved), and ``read``: whether the run was in the store already, so
        that nothing was ranked.
    :param benches: makes the bench of a dataset by its name, for :meth:`why`.
    """

    name: str
    datasets: tuple[Dataset, ...]
    runs: tuple[Run, ...]
    reports: tuple[Report, ...]
    cells: pl.DataFrame
    benches: Mapping[str, Callable[[], Bench]]

    def __getitem__(self, dataset: str) -> Experiment:
        """Give the runs and reports of one dataset, by its name."""
        data = tuple(data for data in self.datasets if data.name == dataset)
        if not data:
            names = ", ".join(data.name for data in self.datasets)
            raise DataError(f"experiment {self.name!r} has no dataset {dataset!r}; it has {names}")
        if len(self.datasets) == 1:
            return self
        rows = (self.cells["dataset"] == dataset).arg_true().to_list()
        runs, reports = tuple(self.runs[i] for i in rows), tuple(self.reports[i] for i in rows)
        return Experiment(self.name, data, runs, reports, self.cells[rows], self.benches)

    @property
    def data(self) -> Dataset:
        """The dataset, where there is one."""
        if len(self.datasets) > 1:
            names = ", ".join(repr(data.name) for data in self.datasets)
            raise DataError(
                f"experiment {self.name!r} is of {names}; choose one of them: done[NAME]"
            )
        return self.datasets[0]

    def at(self, level: Level) -> tuple[Report, ...]:
        """Give the reports at turn or session level."""
        reports = tuple(report for report in self.reports if report.level == level)
        if not reports:
            raise DataError(f"experiment {self.name!r} ranks no {level}s")
        return reports

    def table(self, level: Level = "turn", **options: Any) -> Table:
        """Give systems × measures with ceiling and chance, of one dataset.

        :param options: ``measures``, ``by`` and ``group``, as in
            :func:`memlab.evaluate.results_table`.
        """
        return results_table(self[self.data.name].at(level), **options)

    def compare(
        self, measure: MeasureLike = "recall_all@10", *, level: Level = "turn", **options: Any
    ) -> Table:
        """Test differences between systems on each dataset, with intervals and Holm's correction.

        :param options: ``where``, ``baseline``, ``stepwise`` and ``unit``, as in
            :func:`memlab.evaluate.compare_reports`.
        """
        parts = []
        for data in self.datasets:
            table = compare_reports(self[data.name].at(level), measure=measure, **options)
            parts.append(table.select(pl.lit(data.name).alias("dataset"), pl.all()))
        # Where questions of one dataset were proposed, its rows say so.
        return Table(pl.concat(parts, how="diagonal"))

    def conclusions(self, measure: MeasureLike = "recall_all@10") -> Conclusions:
        """Say in sentences what the comparison with the first system found, or what cannot be said.

        Each follows from :func:`memlab.evaluate.comparison.compare_by_group` of the rankings of
        turns, or of sessions where no turns were ranked.

        >>> import memlab
        >>> done = memlab.run(["bm25"], memlab.sample(), encoder=None, levels=["turn"])
        >>> done.conclusions()[0][:45]
        '`bm25` finds all evidence among the first 10 '
        """
        said = list[str]()
        for data in self.datasets:
            part = self[data.name]
            reports = part.at(part.reports[0].level)
            judged = compare_by_group(reports, measure=measure)
            name = str(read_measure(measure))
            found = [*conclusions.recall(judged, measure=name)]
            found += conclusions.some_and_all(reports[-1], measure=name)
            found += conclusions.sessions_apart(reports[-1], measure=name)
            found += conclusions.of_one_memory(reports[0].per_query["scope"].n_unique())
            found += conclusions.of_sources(reports[0].per_query)
            if len(self.datasets) > 1:
                found = [f"{data.name}: {sentence}" for sentence in found]
            said += found
        return Conclusions(said)

    def costs(self, **options: Any) -> Table:
        """Say what the language models read and wrote; see :func:`memlab.experiments.costs`."""
        return costs([run for run in self.runs if run.level == "turn"], self.data, **options)

    def worst(
        self, n: int = 5, *, system: str | None = None, measure: MeasureLike = "recall@10"
    ) -> Table:
        """List the questions with the lowest score; of equals, those with most evidence items first.

        :param system: its name; the last by default, since the first is the baseline.
        :param measure: any, also one that the experiment did not take.
        :returns: ``query_id``, ``question``, ``answer``, the measure, and ``n_relevant``, the
            number of evidence items; and ``source`` where some questions were proposed by a model.
        """
        check_at_least(0, n=n)
        report = evaluate(self.runs[self._index(system)], self.data, measures=measure)
        (wanted,) = map(str, report.measures)
        asked = self.data.questions.select("query_id", "answer", question="text")
        rows = report.per_query.join(asked, on="query_id", maintain_order="left")
        rows = rows.sort(wanted, "n_relevant", descending=[False, True], maintain_order=True).head(
            n
        )
        columns = ["query_id", "question", "answer", wanted, "n_relevant"]
        by_source = [name for name in ("source",) if name in rows.columns]
        return Table(rows.select(*columns, *by_source))

    def why(
        self, query_id: str | None = None, *, system: str | None = None, k: int = 10
    ) -> Explanation | str:
        """Follow the evidence of a question through a pipeline: :func:`memlab.explanation.explain`.

        :param query_id: of the question; by default that which :meth:`worst` names first. Where no
            question has evidence, an explanation without rows says so.
        :param system: the pipeline; the last by default.
        :raises DataError: when there is no such question, it has no evidence, or the system comes
            from a joined experiment with another encoder.
        """
        row, data = self._index(system), self.data
        if query_id is None:
            lowest = self.worst(1, system=system)
            if lowest.is_empty():
                return explain_nothing()
            query_id = lowest["query_id"][0]
        # What ranked: a system may have a name of its own.
        about = self.runs[row].provenance
        stages = about.get("pipeline", self.cells["pipeline"][row])
        bench = self.benches[data.name]()
        if about.get("encoder") != bench.provenance.get("encoder"):
            raise DataError(
                f"{self.cells['pipeline'][row]!r} was ranked with another encoder than the first "
                "of the joined experiments has; ask the experiment that ranked it"
            )
        return explain(query_id, stages, bench, data, k=k)

    def misses(self, *, system: str | None = None, k: int = 10) -> pl.DataFrame:
        """List the evidence that a system has not among the first k turns, with its causes.

        See :func:`memlab.evaluate.misses`.
        """
        return misses(self.runs[self._index(system)], self.data, k=k)

    def _index(self, system: str | None) -> int:
        """Find the ranking of turns of a system, by default the last."""
        found = None
        names = self.cells["pipeline"].to_list()
        # The text of a pipeline finds it too, where no system has that name.
        by_text = system not in names
        for row, (run, name) in enumerate(zip(self.runs, names, strict=True)):
            shown = name
            if by_text:
                shown = run.provenance.get("pipeline")
            if run.level == "turn" and system in (None, shown):
                found = row
        if found is None:
            wanted = "any system"
            if system is not None:
                wanted = repr(system)
            known = ", ".join(dict.fromkeys(names))
            raise DataError(f"no ranking of turns by {wanted}; the systems are {known}")
        return found

    def corrected(self, path: str | Path) -> Experiment:
        """Measure the same rankings by corrected evidence: :func:`memlab.datasets.apply_corrections`.

        Nothing is ranked again, and a model that learned from the evidence learned from the
        original.

        :param path: a file of errors, or a folder of them.
        :raises DataError: when it is malformed, or is not about these datasets.
        """
        mended = {data.name: apply_corrections(data, path) for data in self.datasets}
        reports = []
        for run, old, name in zip(self.runs, self.reports, self.cells["dataset"], strict=True):
            noted = replace(run, provenance={**run.provenance, "corrections": Path(path).name})
            how: dict[str, Any] = {"seed": old.seed, "unit": old.unit}
            reports.append(evaluate(noted, mended[name], measures=old.measures, **how))
        cells = self.cells.with_columns(
            pl.col("dataset").replace({name: new.name for name, new in mended.items()})
        )
        benches = {mended[name].name: bench for name, bench in self.benches.items()}
        return Experiment(
            f"{self.name}-corrected", (*mended.values(),), self.runs, (*reports,), cells, benches
        )

    def join(self, other: Experiment) -> Experiment:
        """Put the systems of two experiments on the same data side by side, this one's first.

        Runs of the same pipeline, encoder, code and model files are one. All are measured by what
        either took, with this one's seed and unit, so each system of one is tested against any of
        the other. Nothing is ranked again.

        :param other: of ``memlab.run``, or opened by :func:`memlab.reopen`, perhaps from the store
            of somebody else.
        :raises DataError: for other data, or for different runs of one name, with what differs.

        >>> import memlab
        >>> data = memlab.sample(turns=200)
        >>> first = memlab.run("bm25", data, encoder=None)
        >>> second = memlab.run({"own": "bm25(b=0)"}, data, encoder=None)
        >>> first.join(second).compare(baseline="bm25")["system"].to_list()
        ['bm25', 'own']
        """
        if type(self) is not type(other):
            kinds = f"{type(self).__name__} and {type(other).__name__}"
            raise DataError(
                f"only what was made the same way is joined, not {kinds}: "
                "make both by memlab.run, or both by memlab.compare"
            )
        names = match_datasets(self.datasets, other.datasets)
        theirs = other.cells.with_columns(pl.col("dataset").replace(names))
        new = list_new_runs(self.cells, self.runs, theirs, other.runs)
        added = theirs.filter(pl.int_range(pl.len()).is_in(new))
        cells = pl.concat([self.cells, added]).with_row_index("row")
        order = [
            row
            for data in self.datasets
            for row in cells.filter(dataset=data.name)["row"].to_list()
        ]
        every_run = [*self.runs, *(other.runs[row] for row in new)]
        every_report = [*self.reports, *(other.reports[row] for row in new)]
        data = [self[name].data for name in cells["dataset"]]
        measured = measure_alike(every_run, every_report, data)
        return Experiment(
            " + ".join(dict.fromkeys((self.name, other.name))),
            self.datasets,
            tuple(every_run[row] for row in order),
            tuple(measured[row] for row in order),
            cells.drop("row")[order],
            self.benches,
        )

    def export(self, directory: str | Path, *, baseline: str | None = None) -> Path:
        """Write ``NAME.turn.trec``, ``NAME.session.trec``, qrels, per-query Parquet and the reports.

        Of several datasets, each gets a folder of its name.

        :param baseline: the system that the others are tested against; the first by default.
        :raises DataError: when no system is called so.
        :raises ExportError: when a file cannot be written.
        """
        for data in self.datasets:
            part = self[data.name]
            folder = Path(directory)
            if len(self.datasets) > 1:
                folder = folder / data.name
            names = file_names([run.name for run in part.runs])
            for run in part.runs:
                write_run(run, folder / f"{names[run.name]}.{run.level}.trec")
            for level in LEVELS:
                judged = qrels(data.questions, level, data.turns, rejected=True)
                write_qrels(judged, folder / f"qrels.{level}.trec")
            about = {"data": data.describe()}
            write_reports(part.reports, folder, provenance=about, baseline=baseline)
        return Path(directory)

    def to_latex(self, *, baseline: str | None = None) -> str:
        """Give the tables of one dataset that a paper prints as LaTeX, as ``report.tex`` has them.

        Over all questions, and over those with evidence in several sessions: the means of every
        measure, and the tests of ``recall_all@10`` or else of the main measure; of rankings of
        turns, or of sessions where no turns were ranked. :meth:`compare` and :meth:`table` give any
        other one.

        :param baseline: the system that the others are tested against; the first by default.
        :raises DataError: when no system is called so.
        """
        level = self.reports[0].level
        if "turn" in self.cells["level"]:
            level = "turn"
        return latex_tables({level: paper_tables(self[self.data.name].at(level), baseline)})

    def tables(self) -> dict[str, pl.DataFrame]:
        """Give what is printed of one dataset, by heading: means with bounds, and a model's price."""
        tables: dict[str, pl.DataFrame] = {}
        for level in self.cells["level"].unique(maintain_order=True):
            tables |= main_tables(self.at(level))
        asked = any("llm" in run.provenance for run in self.runs if run.level == "turn")
        if asked:
            tables["language model: tokens and price"] = self.costs()
        return tables

    def to_markdown(self) -> str:
        """Give the tables over all and over multi-session questions, for both levels."""
        parts = []
        has_best = False
        for data in self.datasets:
            tables = self[data.name].tables()
            part = tables_to_markdown(tables)
            if len(self.datasets) > 1:
                part = f"## {data.name}\n\n{part}"
            parts.append(part)
            has_best |= any(getattr(table, "best", None) for table in tables.values())
        if has_best:
            parts.append(
                "A bold value is significantly the best of its column (p < .05, corrected by Holm)."
            )
        return "\n\n".join([*parts, *self._notes()])

    def _notes(self) -> list[str]:
        """Say where no system can be bold, whatever it reaches."""
        notes = []
        for data in self.datasets:
            part = self[data.name]
            notes += [best_note(part.at(level)) for level in part.cells["level"].unique()]
        return list(filter(None, dict.fromkeys(notes)))

    def __str__(self) -> str:
        return self.to_markdown()

    def __repr__(self) -> str:
        names = ", ".join(data.name for data in self.datasets)
        return (
            f"{type(self).__name__}({self.name!r}: {len(self.runs)} runs on {names}; "
            "print it for tables; "
            ".compare('recall_all@10'), .worst(5), .why(query_id), .misses(), .export('results'))"
        )

    def _repr_html_(self) -> str:
        parts = [f"<p>{html.escape(repr(self))}</p>"]
        for data in self.datasets:
            head, table = next(iter(self[data.name].tables().items()))
            parts.append(
                f"<p>{html.escape(f'{data.name}: {head}')}</p>{Table(table)._repr_html_()}"
            )
        return "".join(parts)
