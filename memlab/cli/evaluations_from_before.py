"""What `memlab evaluate` prints and writes: as it was measured, or as it was kept from before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import memlab
from memlab.atomic_files import sha256
from memlab.cli import shared_options as opt
from memlab.cli.shared_options import echo
from memlab.datasets.fetch import resolve_path_or_benchmark_name
from memlab.embed import describe_encoder
from memlab.errors import DataError, MemlabError
from memlab.experiments.experiment import Experiment
from memlab.experiments.kept_evaluations import (
    EvaluationCache,
    KeptEvaluation,
    collect_exported_files,
    write_collected_files,
)
from memlab.experiments.parallel_scopes import pipeline_asks_service
from memlab.terminal_text import count_noun

if TYPE_CHECKING:
    from memlab.config import Settings
    from memlab.pipelines import Pipeline


@dataclass(frozen=True)
class EvaluatedFile:
    """A file that is evaluated, and where its results go.

    :param file: as it was named; ``named_folder`` the folder that was named for the results.
    """

    file: Path
    file_options: opt.FileOptions
    settings: Settings
    named_folder: Path | None

    def open_cache_if_fit(
        self, pipelines: Sequence[Pipeline] | None, **options: Any
    ) -> EvaluationCache | None:
        """Give the evaluations of the store, asked for this one; ``None`` where it may depend on
        what no key can hold, as the code of a plug-in or the answers of a service.

        :param options: of the command, on which what is printed depends.
        """
        settings = self.settings
        located_file = resolve_path_or_benchmark_name(self.file)
        read_files = [located_file]
        if self.file_options.questions is not None:
            read_files.append(self.file_options.questions)
        if settings.plugins or settings.on_error != "raise":
            return None
        if any(map(pipeline_asks_service, pipelines or ())):
            return None
        stage_dependencies = None
        if pipelines is not None:
            stage_dependencies = [(str(stages), stages.dependencies()) for stages in pipelines]
        # What cannot be read is said by those who need it, in their order.
        with suppress(MemlabError, OSError):
            if not all(read_file.is_file() for read_file in read_files):
                return None
            dependencies = {
                "files": [(str(read_file), sha256(read_file)) for read_file in read_files],
                "given": [str(self.file), self.file_options, self.named_folder is not None],
                "settings": settings.model_dump(mode="json"),
                "encoder": describe_encoder(opt.load_encoder(settings)),
                "pipelines": stage_dependencies,
                "options": options,
            }
            return EvaluationCache.of_store(settings.store, dependencies)
        return None

    def choose_folder_and_print_note(self, dataset_name: str) -> Path:
        """Give the folder of the results: the named one, else that of the dataset."""
        if self.named_folder is not None:
            return self.named_folder
        result_folder = opt.choose_result_folder_and_print_note(
            self.settings, dataset_name, self.file, self.file_options
        )
        result_folder.write_owner_markers()
        return result_folder.results

    def print_and_write(self, evaluation: KeptEvaluation) -> None:
        """Print and write what was kept, as the command does that reads all runs back."""
        for line in evaluation.loaded:
            echo(line)
        folder = self.choose_folder_and_print_note(evaluation.dataset)
        write_collected_files(evaluation.files, folder)
        for text in evaluation.measured:
            echo(text)
        print_folders_and_counts([folder], evaluation.name, evaluation.n_runs, evaluation.n_runs)

    def export_and_collect(self, experiment: Experiment, folder: Path) -> dict[str, bytes] | None:
        """Write what was measured to a folder.

        :returns: the files, where they are short enough to be kept.
        """
        export: Callable[[Experiment, Path], object] = Experiment.export
        if self.named_folder is None:
            export = export_with_conclusions
        files = collect_exported_files(experiment, partial(export, experiment))
        if files is None:
            export(experiment, folder)
        else:
            write_collected_files(files, folder)
        return files


def describe_measured(experiment: Experiment) -> tuple[str, ...]:
    """Give the texts that say what was measured: tables, equal scores, and what is out of date."""
    return (
        f"{experiment}\n",
        *_counts_of_tied_scores(experiment),
        *_ranks_of_stale_turns(experiment),
    )


def _counts_of_tied_scores(experiment: Experiment) -> list[str]:
    """Say of each ranking in how many questions the tenth place was drawn by lot."""
    tied_lines = []
    for report in experiment.reports:
        n_tied = report.provenance["ties"]
        if n_tied:
            n_questions = report.per_query.height
            tied_lines.append(
                f"{report.name}, {report.level}s: equal scores at place 10 in {n_tied:,} of "
                f"{count_noun(n_questions, 'questions')}, by lot"
            )
    return tied_lines


def _ranks_of_stale_turns(experiment: Experiment) -> list[str]:
    """Say of each dataset with outdated statements how often rankings of turns have them."""
    stale_tables = []
    for dataset in experiment.datasets:
        has_stale = dataset.questions["stale"].list.len().sum()
        if not has_stale:
            continue
        turn_runs = [run for run in experiment[dataset.name].runs if run.level == "turn"]
        stale_turns = memlab.evaluate.stale_table(turn_runs, dataset)
        table = memlab.evaluate.printed_tables.to_markdown(stale_turns)
        stale_tables.append(f"\nwhat must not come back, {dataset.name}\n\n{table}")
    return stale_tables


def export_with_conclusions(experiment: Experiment, folder: Path) -> None:
    """Write what was measured and, for the page of results, what was found in sentences."""
    from memlab.evaluate.report_files import write_texts_and_frames

    experiment.export(folder)
    with suppress(DataError):  # where no question cites evidence, nothing was found
        write_texts_and_frames(folder, {"conclusions.md": f"{experiment.conclusions()}\n"})


def print_folders_and_counts(
    folders: Sequence[Path], experiment_name: str, n_read_back: int, n_runs: int
) -> None:
    """Print where the results are, and how many of the runs were read back."""
    echo(f"runs, qrels, per-query results and reports: {', '.join(map(str, folders))}")
    echo(
        f"comparison {experiment_name!r} in the store: {n_read_back} of {n_runs} "
        "runs were there before"
    )
