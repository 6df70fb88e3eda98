"""Verbs that measure: pipelines, memories beside them, one question, and what the index knows."""

from __future__ import annotations

import os
import shlex
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import memlab
from memlab.cli import shared_options as opt
from memlab.cli.shared_options import echo, register_command
from memlab.errors import DataError, MemlabError
from memlab.terminal_text import count_noun, mask_url_credentials, summarise_issues_as_lines

if TYPE_CHECKING:
    from memlab.config import Settings
    from memlab.embed import Encoder
    from memlab.experiments.compare_systems import Comparison
    from memlab.experiments.experiment import Experiment
    from memlab.llm.proxy import ModelProxy
    from memlab.pipelines import Pipeline
    from memlab.records import Dataset

GROUP = "Measure"


@register_command(GROUP, "evaluate my-chats.jsonl --pipeline bm25 --pipeline 'hybrid | mmr'")
def evaluate(
    dataset: Annotated[
        list[Path],
        typer.Argument(help="LoCoMo, LongMemEval or chat-log files.", show_default=False),
    ],
    pipeline: Annotated[
        list[str] | None,
        typer.Option(help="For example 'hybrid | mmr', or @FILE with one a line; may be repeated."),
    ] = None,
    *,
    out: opt.Out = None,
    file_options: opt.FileOptions,
    name: Annotated[
        str | None, typer.Option(help="Name of the comparison in the store.", show_default=False)
    ] = None,
    corrections: Annotated[
        Path | None,
        typer.Option(
            help="A file of errors in LoCoMo's evidence, as its audit has it; reported beside the "
            "original."
        ),
    ] = None,
    dry_run: opt.DryRun = False,
    unit: opt.Unit = "auto",
    engine: opt.Engine = "local",
    jobs: opt.Jobs = 1,
    setting_options: opt.SettingOptions,
) -> None:
    """Measure pipelines on datasets, at turn and session level; write runs, qrels and reports.

    Without --pipeline: bm25, dense, hybrid, best, and best | learned where encoder and header are
    those that the bundled model was made for.

    Each run is kept in the store when it is there. The same command, also after an interruption,
    reads those back and runs the rest.
    """
    from memlab.cli import evaluations_from_before as before
    from memlab.experiments.kept_evaluations import counting_warnings

    settings = setting_options.in_force()
    pipelines_given = _read_pipelines_of_option_or_settings(pipeline, settings)
    if dry_run and not pipelines_given:
        raise DataError("--dry-run estimates what pipelines would ask: name them with --pipeline")
    evaluated_file = before.EvaluatedFile(dataset[0], file_options, settings, out)
    cache = None
    has_special_options = dry_run or corrections is not None or engine != "local"
    if len(dataset) == 1 and not has_special_options:
        cache = evaluated_file.open_cache_if_fit(pipelines_given, name=name, unit=unit)
    if cache is not None:
        kept_evaluation = cache.find()
        if kept_evaluation is not None:
            evaluated_file.print_and_write(kept_evaluation)
            return
    with counting_warnings() as warnings_of_loading:
        datasets_read, loaded_lines = _load_files_and_print_lines(dataset, file_options, settings)
    if corrections:  # what cannot be read is said before anything is ranked
        _print_corrected_evidence(datasets_read, corrections)
    text_encoder = opt.load_encoder(settings, engine)
    if dry_run:
        _print_estimated_costs(pipelines_given or [], datasets_read, text_encoder, settings)
        return
    experiment = memlab.run(
        pipelines_given,
        datasets_read,
        store=settings.store,
        encoder=text_encoder,
        name=name,
        seed=settings.seed,
        engine=engine,
        jobs=jobs,
        unit=unit,
    )
    with counting_warnings() as warnings_of_measuring:
        kept_files = None
        if cache is None:
            directories = _export_experiment_by_dataset(
                experiment, out, settings, dataset, file_options
            )
        else:
            directories = [evaluated_file.choose_folder_and_print_note(datasets_read[0].name)]
            kept_files = evaluated_file.export_and_collect(experiment, directories[0])
        measured_texts = before.describe_measured(experiment)
    for measured_text in measured_texts:
        echo(measured_text)
    if corrections:
        _export_and_print_corrected(experiment, corrections, out, directories)
    n_read_back = int(experiment.cells["read"].sum())
    before.print_folders_and_counts(
        directories, experiment.name, n_read_back, experiment.cells.height
    )
    n_warnings = warnings_of_loading.n_warnings + warnings_of_measuring.n_warnings
    if cache is not None and kept_files is not None and not n_warnings:
        cache.keep_if_saved(experiment, loaded_lines, measured_texts, kept_files)


def _read_pipelines_of_option_or_settings(
    pipeline_options: list[str] | None, settings: Settings
) -> list[Pipeline] | None:
    """Read the pipelines that are named; ``None`` where none is."""
    from memlab.experiments.run_pipelines import read_distinct_pipelines

    pipeline_texts: list[str] = []
    for pipeline_option in pipeline_options or []:
        pipeline_texts += opt.read_pipelines(pipeline_option)
    if not pipeline_texts:
        pipeline_texts = [*settings.pipelines]
    if not pipeline_texts:
        return None
    return read_distinct_pipelines(pipeline_texts)


def _load_files_and_print_lines(
    files: list[Path], file_options: opt.FileOptions, settings: Settings
) -> tuple[list[Dataset], list[str]]:
    """Load datasets; of each print, and give, what it holds and what was odd in it."""
    from memlab.experiments.run_pipelines import levels_with_evidence_or_raise

    datasets_read: list[Dataset] = []
    loaded_lines: list[str] = []
    for dataset_part in opt.load_files(files, file_options, settings):
        datasets_read.append(dataset_part)
        dataset_lines = [dataset_part.describe(), *summarise_issues_as_lines(dataset_part)]
        for dataset_line in dataset_lines:
            echo(dataset_line)
        if "turn" not in levels_with_evidence_or_raise(dataset_part):
            dataset_lines.append("no question cites turns: sessions alone are measured")
            echo(dataset_lines[-1])
        loaded_lines += dataset_lines
    return datasets_read, loaded_lines


def _print_estimated_costs(
    pipelines: list[Pipeline], datasets: list[Dataset], encoder: Encoder, settings: Settings
) -> None:
    """Print what the pipelines would ask of language models."""
    from memlab.experiments.model_costs import estimate_pipeline_costs

    for dataset in datasets:
        dataset_bench = memlab.Bench.of(dataset, encoder=encoder, store=settings.store)
        echo(estimate_pipeline_costs(pipelines, dataset_bench))


def _export_and_print_corrected(
    experiment: Experiment, corrections: Path, named_folder: Path | None, directories: list[Path]
) -> None:
    """Measure by corrected evidence too: write that beside the original, and print it."""
    corrected_experiment = experiment.corrected(corrections)
    if named_folder or len(experiment.datasets) == 1:
        corrected_experiment.export(directories[0] / "corrected")
    else:
        corrected_parts = zip(corrected_experiment.datasets, directories, strict=True)
        for dataset_part, export_folder in corrected_parts:
            corrected_experiment[dataset_part.name].export(export_folder / "corrected")
    echo(f"\nwith the evidence that {corrections.name} corrects\n\n{corrected_experiment}")


def _print_corrected_evidence(datasets: list[Dataset], corrections: Path) -> None:
    """Say of each dataset how many questions a file of corrections is about."""
    from memlab.datasets.benchmarks.locomo_corrections import CORRECTED, apply_corrections

    for dataset in datasets:
        issues = apply_corrections(dataset, corrections).issues
        n_corrected = issues.filter(action=CORRECTED).height
        n_questions = dataset.questions.height
        echo(
            f"{corrections}: the evidence of {n_corrected:,} of {n_questions:,} questions "
            "is corrected"
        )


def _export_experiment_by_dataset(
    experiment: Experiment,
    named_folder: Path | None,
    settings: Settings,
    dataset_files: list[Path],
    file_options: opt.FileOptions,
) -> list[Path]:
    """Export what was measured to the named directory, else of each dataset to its own folder."""
    from memlab.cli.evaluations_from_before import export_with_conclusions

    if named_folder:
        return [experiment.export(named_folder)]
    directories = []
    for dataset_read, dataset_file in zip(experiment.datasets, dataset_files, strict=True):
        result_folder = opt.choose_result_folder_and_print_note(
            settings, dataset_read.name, dataset_file, file_options
        )
        result_folder.write_owner_markers()
        export_with_conclusions(experiment[dataset_read.name], result_folder.results)
        directories.append(result_folder.results)
    return directories


@register_command(GROUP, "compare my-chats.jsonl --system best --system my_memory:search")
def compare(
    dataset: opt.Path_,
    system: opt.Systems = None,
    run: opt.Rankings = None,
    *,
    out: opt.Out = None,
    file_options: opt.FileOptions,
    baseline: Annotated[
        str | None,
        typer.Option(help="The system, or the file of the run, that the others are compared with."),
    ] = None,
    fail_below: Annotated[
        float | None,
        typer.Option(
            help="Exit with 1 where recall_all@10 lies this far below the baseline's.",
            min=0,
            max=1,
            callback=opt.refuse_nan,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            help="Calls of the memories' models: read from this file, and written to it with "
            "--service.",
            show_default=False,
        ),
    ] = None,
    service: Annotated[
        str | None,
        typer.Option(
            help="Who answers what is not in --record: one of [llm.services].", show_default=False
        ),
    ] = None,
    timeout: opt.Timeout = 600.0,
    unit: opt.Unit = "auto",
    engine: opt.Engine = "local",
    setting_options: opt.SettingOptions,
) -> None:
    """Compare memories, pipelines and rankings on the same questions: complete recall, answers,
    tokens and time.

    What a memory returned is kept in the directory scope by scope: the same command goes on where
    it was stopped. A system without any result ends the command with 1.
    """
    from memlab.experiments.run_pipelines import levels_with_evidence_or_raise

    settings = setting_options.in_force()
    opt.enable_system_imports(system or [])
    (dataset_read,) = opt.load_files([dataset], file_options, settings)
    if "turn" not in levels_with_evidence_or_raise(dataset_read):
        raise DataError(
            f"no question of {dataset_read.name!r} cites turns; systems are compared by the turns "
            "that they find"
        )
    echo(dataset_read.describe())
    run_files = [*(run or [])]
    if baseline and os.path.isfile(baseline):
        baseline_file = Path(baseline)
        if baseline_file not in run_files:
            run_files.append(baseline_file)
        baseline = baseline_file.stem
    if service is not None and record is None:
        raise DataError("--service answers for --record FILE; give the file that keeps its answers")
    text_encoder = opt.load_encoder(settings, engine)
    system_names = system or []
    if not system_names and not run_files:
        system_names = ["bm25", "best"]
    directory = out
    if directory is None:
        result_folder = opt.choose_result_folder_and_print_note(
            settings, dataset_read.name, dataset, file_options
        )
        result_folder.write_owner_markers()
        directory = result_folder.results / "systems"
    with _open_recording_proxy(record, service, text_encoder) as model_calls:
        comparison = memlab.compare(
            _systems_through_proxy(model_calls, system_names),
            dataset_read,
            runs=run_files,
            baseline=baseline,
            encoder=text_encoder,
            store=settings.store,
            folder=directory / "returned",
            timeout=timeout,
            seed=settings.seed,
            unit=unit,
        )
    comparison.export(directory)
    echo(comparison)
    if model_calls is not None:
        call_lines = comparison.describe_model_calls()
        call_lines += _describe_replayed_calls(model_calls, comparison, directory / "returned")
        for call_line in call_lines:
            echo(call_line)
    opt.print_memory_problems(comparison.problems, directory / "systems.json")
    echo(f"tables, results by question, and what was returned: {directory}")
    try:
        memlab.figures.export(
            memlab.figures.cost_of_recall.trade_off(comparison.systems),
            "systems-trade-off",
            data=comparison.systems,
            directory=directory,
            caption=f"Complete recall on {dataset_read.name} against tokens and against the time "
            "of one search.",
            provenance=comparison.about,
        )
    except MemlabError as error:
        echo(f"no picture was made: {mask_url_credentials(str(error))}", err=True)
    opt.exit_if_without_result(comparison.without_result())
    if fail_below is not None:
        recall_by_system = dict(comparison.systems.select("system", "recall_all@10").iter_rows())
        lowest_allowed = recall_by_system[comparison.about["baseline"]] - fail_below
        failing_systems = [
            f"{system_name} {system_recall:.3f}"
            for system_name, system_recall in recall_by_system.items()
            if system_recall < lowest_allowed
        ]
        if failing_systems:
            failures = ", ".join(failing_systems)
            echo(f"recall_all@10 below {lowest_allowed:.3f}: {failures}", err=True)
            raise typer.Exit(1)


def _describe_replayed_calls(
    model_calls: ModelProxy, comparison: Comparison, returned_folder: Path
) -> list[str]:
    """Say how much of a recording was asked for, unless an earlier run's results were read."""
    n_prompts = int(comparison.calls["prompts"].sum())
    if n_prompts and not model_calls.asked:
        return [
            f"the {count_noun(n_prompts, 'prompts')} were asked by an earlier run, whose results "
            f"are read from {returned_folder}: nothing was replayed; --out FOLDER replays them"
        ]
    return model_calls.matching_lines()


def _open_recording_proxy(
    record_file: Path | None, service_name: str | None, encoder: Encoder
) -> AbstractContextManager[ModelProxy | None]:
    """Give the proxy that memories ask through, or nothing."""
    if record_file is None:
        return nullcontext()
    from memlab.llm.proxy import ModelProxy

    if service_name is None and not record_file.is_file():
        raise DataError(f"{record_file} is no file; name a --service that answers, and it is made")
    return ModelProxy(record_file, service=service_name, encoder=encoder)


def _systems_through_proxy(
    model_calls: ModelProxy | None, system_names: list[str]
) -> list[str] | dict[str, Any]:
    """Make memories of modules ask through the proxy; pipelines and addresses stay as they are."""
    if model_calls is None:
        return system_names
    from memlab.memories import ProxiedMemory, is_module_reference

    proxied_systems: dict[str, Any] = {}
    for system_name in system_names:
        proxied_systems[system_name] = (
            ProxiedMemory(system_name, model_calls)
            if is_module_reference(system_name)
            else system_name
        )
    return proxied_systems


@register_command(GROUP, "why owen/q12 data/sample/sample.jsonl --pipeline 'best | learned'")
def why(
    query_id: Annotated[str, typer.Argument(help="The question, as runs and reports name it.")],
    dataset: opt.Path_,
    pipeline: Annotated[str, typer.Option(help="The pipeline.")] = "best",
    system: Annotated[
        str | None,
        typer.Option(help="A memory instead: module:name or http://HOST:PORT.", show_default=False),
    ] = None,
    *,
    k: opt.K = 10,
    format: opt.Format = None,
    pool: opt.Pool = None,
    scope: opt.Scopes = None,
    questions: opt.QuestionFile = None,
    setting_options: opt.SettingOptions,
) -> None:
    """Follow the evidence of one question through a pipeline: its rank after each stage, and what
    stands above it.

    Of a memory from outside: what it returned, what of the evidence is not there, and the nearest
    thing that is.
    """
    from memlab.explanation import explain

    if not dataset.exists() and (query_id == "sample" or Path(query_id).exists()):
        raise DataError(
            "memlab why takes the question before the conversations: "
            f"memlab why {shlex.quote(str(dataset))} {shlex.quote(query_id)}"
        )
    settings = setting_options.in_force()
    file_options = opt.FileOptions(format=format, pool=pool, scope=scope, questions=questions)
    (dataset_read,) = opt.load_files([dataset], file_options, settings)
    bench_options: dict[str, Any] = {"encoder": opt.load_encoder(settings), "store": settings.store}
    asked_question = dataset_read.questions.filter(query_id=query_id)
    asked_data = dataset_read
    if asked_question.height:
        asked_data = dataset_read.take(asked_question["scope"])
    if system and asked_question.height:
        opt.enable_system_imports([system])
        asked_data = replace(asked_data, questions=asked_question)
        echo(memlab.compare({"memory": system}, asked_data, **bench_options).why(query_id, k=k))
        return
    asked_bench = memlab.Bench.of(asked_data, **bench_options)
    echo(explain(query_id, pipeline, asked_bench, asked_data, k=k))


@register_command(GROUP, "knowledge data/facts/dev --facts data/facts/frozen.jsonl")
def knowledge(
    folder: Annotated[
        Path,
        typer.Argument(help="Chats with gold facts, such as data/facts/dev.", show_default=False),
    ],
    service: opt.Service = None,
    facts: Annotated[
        Path | None,
        typer.Option(
            help="Facts as they were stated, such as data/facts/frozen.jsonl: only resolved."
        ),
    ] = None,
    errors: Annotated[
        int,
        typer.Option(
            help="Of each measure, how many errors are printed.", min=0, max=opt.MOST_RESULTS
        ),
    ] = 20,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines of readers (scope, meaning, true): precision after them too.",
            show_default=False,
        ),
    ] = None,
    unmatched: Annotated[
        Path | None,
        typer.Option(
            help="Measure nothing; write the active facts without a gold fact there, for readers.",
            show_default=False,
        ),
    ] = None,
    encoder: opt.EncoderName = None,
) -> None:
    """Measure what the index knows of chats with gold facts: active and as of dates, endings, false
    positives.
    """
    from memlab.evaluate.knowledge_scores import (
        format_fact_outcomes,
        list_unannotated_facts,
        score_annotated_chats,
    )

    settings = opt.settings_in_force(encoder=encoder)
    service_name = service or settings.index.service
    measure_options: dict[str, Any] = {
        "facts": facts,
        "settings": settings.index,
        "service": None if service_name == "extractive" else service_name,
        "encoder": opt.load_encoder(settings),
    }
    if unmatched is not None:
        unmatched_rows = list_unannotated_facts(folder, **measure_options)
        unmatched_rows.write_ndjson(unmatched)
        echo(
            f"{unmatched}: {count_noun(unmatched_rows.height, 'facts')} that no gold fact speaks of"
        )
        return
    outcomes = score_annotated_chats(folder, verdicts=verdicts, **measure_options)
    echo(format_fact_outcomes(outcomes, max_errors=errors))
