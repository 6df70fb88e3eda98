"""What pipelines did on datasets: rankings, reports, tables, files."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from memlab.datasets.benchmarks.locomo_corrections import apply_corrections
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
from memlab.evaluate.conclusions import Conclusions
from memlab.evaluate.printed_tables import tables_to_markdown
from memlab.evaluate.ranking_measures import MeasureLike
from memlab.evaluate.report_files import (
    file_stem_by_system_name,
    mean_tables_by_caption,
    paper_tables_by_caption,
    tables_to_latex,
    write_reports,
)
from memlab.evaluate.system_comparison import (
    compare_reports_by_group,
    no_bold_system_note_or_empty,
)
from memlab.evaluate.trec_files import write_qrels, write_run
from memlab.experiments.joined_experiments import (
    list_rows_of_new_runs_and_warn,
    map_their_dataset_names_to_ours,
    remeasure_under_one_protocol_and_warn,
)
from memlab.experiments.model_costs import PRICES, costs, points_of_measure_by_price
from memlab.explanation import Explanation, explain, make_empty_explanation
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
        chosen_datasets = tuple(
            chosen_datasets for chosen_datasets in self.datasets if chosen_datasets.name == dataset
        )
        if not chosen_datasets:
            known_names = ", ".join(chosen_datasets.name for chosen_datasets in self.datasets)
            raise DataError(
                f"experiment {self.name!r} has no dataset {dataset!r}; it has {known_names}"
            )
        if len(self.datasets) == 1:
            return self
        run_rows = (self.cells["dataset"] == dataset).arg_true().to_list()
        chosen_runs = tuple(self.runs[run_row] for run_row in run_rows)
        chosen_reports = tuple(self.reports[run_row] for run_row in run_rows)
        return Experiment(
            self.name,
            chosen_datasets,
            chosen_runs,
            chosen_reports,
            self.cells[run_rows],
            self.benches,
        )

    @property
    def data(self) -> Dataset:
        """The dataset, where there is one."""
        if len(self.datasets) > 1:
            dataset_names = ", ".join(repr(dataset.name) for dataset in self.datasets)
            raise DataError(
                f"experiment {self.name!r} is of {dataset_names}; choose one of them: done[NAME]"
            )
        return self.datasets[0]

    def at(self, level: Level) -> tuple[Report, ...]:
        """Give the reports at turn or session level."""
        level_reports = tuple(report for report in self.reports if report.level == level)
        if not level_reports:
            raise DataError(f"experiment {self.name!r} ranks no {level}s")
        return level_reports

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
        dataset_tables = []
        for dataset in self.datasets:
            test_table = compare_reports(self[dataset.name].at(level), measure=measure, **options)
            dataset_tables.append(
                test_table.select(pl.lit(dataset.name).alias("dataset"), pl.all())
            )
        # Where questions of one dataset were proposed, its rows say so.
        return Table(pl.concat(dataset_tables, how="diagonal"))

    def conclusions(
        self, measure: MeasureLike = "recall_all@10", *, baseline: str | None = None
    ) -> Conclusions:
        """Say in sentences what the comparison with a system found, or what cannot be said.

        :param baseline: the system that the others are compared with, as in :meth:`compare`; the
            first by default.
        :raises DataError: when no system is called so.

        Each follows from :func:`memlab.evaluate.system_comparison.compare_reports_by_group` of the
        rankings of turns, or of sessions where no turns were ranked.

        >>> import memlab
        >>> done = memlab.run(["bm25"], memlab.sample(), encoder=None, levels=["turn"])
        >>> done.conclusions()[0][:45]
        '`bm25` finds all evidence among the first 10 '
        """
        all_sentences = list[str]()
        for dataset in self.datasets:
            dataset_experiment = self[dataset.name]
            level_reports = dataset_experiment.at(dataset_experiment.reports[0].level)
            group_tests = compare_reports_by_group(
                level_reports, measure=measure, baseline=baseline
            )
            measure_name = str(read_measure(measure))
            sentences = [*conclusions.on_recall(group_tests, measure=measure_name)]
            sentences += conclusions.on_some_versus_all_evidence(
                level_reports[-1], measure=measure_name
            )
            sentences += conclusions.on_one_versus_several_sessions(
                level_reports[-1], measure=measure_name
            )
            sentences += conclusions.notes_if_single_memory(
                level_reports[0].per_query["scope"].n_unique()
            )
            sentences += conclusions.notes_on_question_sources(level_reports[0].per_query)
            if len(self.datasets) > 1:
                sentences = [f"{dataset.name}: {sentence}" for sentence in sentences]
            all_sentences += sentences
        return Conclusions(all_sentences)

    def costs(self, *, prices: Sequence[tuple[float, float]] = PRICES) -> Table:
        """Say what the language models read and wrote; see :func:`memlab.experiments.costs`.

        :param prices: of a million tokens read and written, at each price point.
        """
        turn_runs = [run for run in self.runs if run.level == "turn"]
        return costs(turn_runs, self.data, prices=prices)

    def price_points(
        self, *, price: tuple[float, float] = PRICES[-1], measure: str = "recall_all@10"
    ) -> pl.DataFrame:
        """Set a measure of the rankings of turns beside the price of 1,000 questions.

        :param price: of a million tokens read, and written.
        :returns: points for :func:`memlab.figures.curves.recall_curves`: a row a pipeline and group
            of questions, ``system`` the group and ``k`` the price, as :meth:`costs` has it.
        """
        spent = self.costs(prices=[price])
        return points_of_measure_by_price(self.at("turn"), spent, price=price, measure=measure)

    def worst(
        self, n: int = 5, *, system: str | None = None, measure: MeasureLike = "recall@10"
    ) -> Table:
        """List the questions with the lowest score; of equals, most evidence first.

        :param system: its name; the last by default, since the first is the baseline.
        :param measure: any, also one that the experiment did not take.
        :returns: ``query_id``, ``question``, ``answer``, the measure, and ``n_relevant``, the
            number of evidence items; and ``source`` where some questions were proposed by a model.
        """
        check_at_least(0, n=n)
        report = evaluate(
            self.runs[self._row_of_last_turn_ranking(system)], self.data, measures=measure
        )
        (measure_name,) = map(str, report.measures)
        question_texts = self.data.questions.select("query_id", "answer", question="text")
        question_rows = report.per_query.join(question_texts, on="query_id", maintain_order="left")
        question_rows = question_rows.sort(
            measure_name, "n_relevant", descending=[False, True], maintain_order=True
        ).head(n)
        columns = ["query_id", "question", "answer", measure_name, "n_relevant"]
        source_columns = [
            column_name for column_name in ("source",) if column_name in question_rows.columns
        ]
        return Table(question_rows.select(*columns, *source_columns))

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
        run_row = self._row_of_last_turn_ranking(system)
        dataset = self.data
        if query_id is None:
            lowest_question = self.worst(1, system=system)
            if lowest_question.is_empty():
                return make_empty_explanation()
            query_id = lowest_question["query_id"][0]
        # What ranked: a system may have a name of its own.
        run_provenance = self.runs[run_row].provenance
        pipeline_text = run_provenance.get("pipeline", self.cells["pipeline"][run_row])
        dataset_bench = self.benches[dataset.name]()
        if run_provenance.get("encoder") != dataset_bench.provenance.get("encoder"):
            raise DataError(
                f"{self.cells['pipeline'][run_row]!r} was ranked with another encoder than the "
                "first "
                "of the joined experiments has; ask the experiment that ranked it"
            )
        return explain(query_id, pipeline_text, dataset_bench, dataset, k=k)

    def misses(self, *, system: str | None = None, k: int = 10) -> pl.DataFrame:
        """List the evidence that a system has not among the first k turns, with its causes.

        See :func:`memlab.evaluate.misses`.
        """
        return misses(self.runs[self._row_of_last_turn_ranking(system)], self.data, k=k)

    def _row_of_last_turn_ranking(self, system: str | None) -> int:
        """Find the ranking of turns of a system, by default the last."""
        run_row = None
        system_names = self.cells["pipeline"].to_list()
        # The text of a pipeline finds it too, where no system has that name.
        by_text = system not in system_names
        for row_number, (ranking, system_name) in enumerate(
            zip(self.runs, system_names, strict=True)
        ):
            shown_name = system_name
            if by_text:
                shown_name = ranking.provenance.get("pipeline")
            if ranking.level == "turn" and system in (None, shown_name):
                run_row = row_number
        if run_row is None:
            wanted_name = "any system"
            if system is not None:
                wanted_name = repr(system)
            known_names = ", ".join(dict.fromkeys(system_names))
            raise DataError(f"no ranking of turns by {wanted_name}; the systems are {known_names}")
        return run_row

    def corrected(self, path: str | Path) -> Experiment:
        """Measure the same rankings by corrected evidence.

        :func:`memlab.datasets.apply_corrections` corrects it.
        Nothing is ranked again, and a model that learned from the evidence learned from the
        original.

        :param path: a file of errors, or a folder of them.
        :raises DataError: when it is malformed, or is not about these datasets.
        """
        corrected_datasets = {
            dataset.name: apply_corrections(dataset, path) for dataset in self.datasets
        }
        corrected_reports = []
        for ranking, old_report, dataset_name in zip(
            self.runs, self.reports, self.cells["dataset"], strict=True
        ):
            corrected_run = replace(
                ranking, provenance={**ranking.provenance, "corrections": Path(path).name}
            )
            evaluation_options: dict[str, Any] = {"seed": old_report.seed, "unit": old_report.unit}
            corrected_reports.append(
                evaluate(
                    corrected_run,
                    corrected_datasets[dataset_name],
                    measures=old_report.measures,
                    **evaluation_options,
                )
            )
        corrected_cells = self.cells.with_columns(
            pl.col("dataset").replace(
                {
                    dataset_name: corrected_dataset.name
                    for dataset_name, corrected_dataset in corrected_datasets.items()
                }
            )
        )
        corrected_benches = {
            corrected_datasets[dataset_name].name: make_bench
            for dataset_name, make_bench in self.benches.items()
        }
        return Experiment(
            f"{self.name}-corrected",
            (*corrected_datasets.values(),),
            self.runs,
            (*corrected_reports,),
            corrected_cells,
            corrected_benches,
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
            type_names = f"{type(self).__name__} and {type(other).__name__}"
            raise DataError(
                f"only what was made the same way is joined, not {type_names}: "
                "make both by memlab.run, or both by memlab.compare"
            )
        dataset_names = map_their_dataset_names_to_ours(self.datasets, other.datasets)
        their_cells = other.cells.with_columns(pl.col("dataset").replace(dataset_names))
        new_rows = list_rows_of_new_runs_and_warn(self.cells, self.runs, their_cells, other.runs)
        added_cells = their_cells.filter(pl.int_range(pl.len()).is_in(new_rows))
        joined_cells = pl.concat([self.cells, added_cells]).with_row_index("row")
        row_order: list[int] = []
        for dataset in self.datasets:
            row_order += joined_cells.filter(dataset=dataset.name)["row"].to_list()
        joined_runs = [*self.runs, *(other.runs[cell_row] for cell_row in new_rows)]
        joined_reports = [*self.reports, *(other.reports[cell_row] for cell_row in new_rows)]
        cell_datasets = [self[dataset_name].data for dataset_name in joined_cells["dataset"]]
        measured_reports = remeasure_under_one_protocol_and_warn(
            joined_runs, joined_reports, cell_datasets
        )
        return Experiment(
            " + ".join(dict.fromkeys((self.name, other.name))),
            self.datasets,
            tuple(joined_runs[cell_row] for cell_row in row_order),
            tuple(measured_reports[cell_row] for cell_row in row_order),
            joined_cells.drop("row")[row_order],
            self.benches,
        )

    def export(self, directory: str | Path, *, baseline: str | None = None) -> Path:
        """Write runs, qrels, per-query Parquet and the reports.

        Runs are ``NAME.turn.trec`` and ``NAME.session.trec``.
        Of several datasets, each gets a folder of its name.

        :param baseline: the system that the others are tested against; the first by default.
        :raises DataError: when no system is called so.
        :raises ExportError: when a file cannot be written.
        """
        for dataset in self.datasets:
            dataset_experiment = self[dataset.name]
            dataset_folder = Path(directory)
            if len(self.datasets) > 1:
                dataset_folder = dataset_folder / dataset.name
            file_by_system = file_stem_by_system_name(
                [ranking.name for ranking in dataset_experiment.runs]
            )
            for ranking in dataset_experiment.runs:
                write_run(
                    ranking, dataset_folder / f"{file_by_system[ranking.name]}.{ranking.level}.trec"
                )
            for level in LEVELS:
                relevant_ids = qrels(dataset.questions, level, dataset.turns, rejected=True)
                write_qrels(relevant_ids, dataset_folder / f"qrels.{level}.trec")
            data_provenance = {"data": dataset.describe()}
            write_reports(
                dataset_experiment.reports,
                dataset_folder,
                provenance=data_provenance,
                baseline=baseline,
            )
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
        shown_level = self.reports[0].level
        if "turn" in self.cells["level"]:
            shown_level = "turn"
        return tables_to_latex(
            {shown_level: paper_tables_by_caption(self[self.data.name].at(shown_level), baseline)}
        )

    def tables(self) -> dict[str, pl.DataFrame]:
        """Give what is printed of one dataset: means with bounds, and a model's price."""
        table_by_title: dict[str, pl.DataFrame] = {}
        for shown_level in self.cells["level"].unique(maintain_order=True):
            table_by_title |= mean_tables_by_caption(self.at(shown_level))
        asks_model = any(
            "llm" in ranking.provenance for ranking in self.runs if ranking.level == "turn"
        )
        if asks_model:
            table_by_title["language model: tokens and price"] = self.costs()
        return table_by_title

    def to_markdown(self) -> str:
        """Give the tables over all and over multi-session questions, for both levels."""
        markdown_parts = []
        has_best = False
        for dataset in self.datasets:
            table_by_title = self[dataset.name].tables()
            dataset_markdown = tables_to_markdown(table_by_title)
            if len(self.datasets) > 1:
                dataset_markdown = f"## {dataset.name}\n\n{dataset_markdown}"
            markdown_parts.append(dataset_markdown)
            has_best |= any(getattr(table, "best", None) for table in table_by_title.values())
        if has_best:
            markdown_parts.append(
                "A bold value is significantly the best of its column (p < .05, corrected by Holm)."
            )
        return "\n\n".join([*markdown_parts, *self._notes_where_no_system_can_be_bold()])

    def _notes_where_no_system_can_be_bold(self) -> list[str]:
        """Say where no system can be bold, whatever it reaches."""
        table_notes = []
        for dataset in self.datasets:
            dataset_experiment = self[dataset.name]
            table_notes += [
                no_bold_system_note_or_empty(dataset_experiment.at(level))
                for level in dataset_experiment.cells["level"].unique()
            ]
        return list(filter(None, dict.fromkeys(table_notes)))

    def __str__(self) -> str:
        return self.to_markdown()

    def __repr__(self) -> str:
        dataset_names = ", ".join(dataset.name for dataset in self.datasets)
        return (
            f"{type(self).__name__}({self.name!r}: {len(self.runs)} runs on {dataset_names}; "
            "print it for tables; "
            ".compare('recall_all@10'), .worst(5), .why(query_id), .misses(), .export('results'))"
        )

    def _repr_html_(self) -> str:
        html_parts = [f"<p>{html.escape(repr(self))}</p>"]
        for dataset in self.datasets:
            table_title, first_table = next(iter(self[dataset.name].tables().items()))
            heading = html.escape(f"{dataset.name}: {table_title}")
            html_parts.append(f"<p>{heading}</p>{Table(first_table)._repr_html_()}")
        return "".join(html_parts)
