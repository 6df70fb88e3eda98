"""Verbs that measure: pipelines, memories beside them, one question, and what the index knows."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import memlab
from memlab.cli import _options as opt
from memlab.cli._options import echo, register_command
from memlab.errors import DataError, MemlabError
from memlab.terminal import count_noun, issue_lines, mask_secrets

if TYPE_CHECKING:
    from memlab.config import Settings
    from memlab.embed import Encoder
    from memlab.experiments.compare_systems import Comparison
    from memlab.experiments.experiment import Experiment
    from memlab.llm.proxy import ModelProxy
    from memlab.records import Dataset

GROUP = "Measure"


@register_command(GROUP, "evaluate my-chats.jsonl --pipeline bm25 --pipeline 'hybrid | mmr'")
def evaluate(
    dataset: Annotated[list[Path], typer.Argument(help="LoCoMo, LongMemEval or chat-log files.", show_default=False)],
    pipeline: Annotated[
        list[str] | None,
        typer.Option(help="For example 'hybrid | mmr', or @FILE with one a line; may be repeated."),
    ] = None,
    out: opt.Out = None, format: opt.Format = None, pool: opt.Pool = None,
    scope: opt.Scopes = None, sample: opt.Sample = None, questions: opt.QuestionFile = None,
    source: opt.QuestionSources = None,
    name: Annotated[str | None, typer.Option(help="Name of the comparison in the store.", show_default=False)] = None,
    corrections: Annotated[
        Path | None,
        typer.Option(help="A file of errors in LoCoMo's evidence, as its audit has it; reported beside the original."),
    ] = None,
    dry_run: opt.DryRun = False,
    unit: opt.Unit = "auto",
    engine: opt.Engine = "local", jobs: opt.Jobs = 1, store: opt.Store = None, encoder: opt.EncoderName = None,
    on_error: opt.OnError = None, language: opt.Language = None, seed: opt.Seed = None,
) -> None:  # fmt: skip
    """Measure pipelines on datasets, at turn and session level; write runs, qrels and reports.

    Without --pipeline: bm25, dense, hybrid, best, and best | learned where encoder and header are those that the
    bundled model was made for.

    Each run is kept in the store when it is there. The same command, also after an interruption,
    reads those back and runs the rest.
    """
    from memlab.experiments.run_pipelines import distinct_pipelines, measurable_levels

    chosen = opt.settings_in_force(
        store=store, encoder=encoder, on_error=on_error, language=language, seed=seed
    )
    texts = [
        text for each in pipeline or [] for text in opt.pipeline_lines(each)
    ] or chosen.pipelines
    stages = distinct_pipelines(texts) if texts else None
    if dry_run and not stages:
        raise DataError("--dry-run estimates what pipelines would ask: name them with --pipeline")
    data: list[Dataset] = []
    for part in opt.load_files(
        dataset,
        chosen,
        format=format,
        pool=pool,
        scope=scope,
        sample=sample,
        source=source,
        questions=questions,
    ):
        data.append(part)
        for line in (part.describe(), *issue_lines(part)):
            echo(line)
        if "turn" not in measurable_levels(part):
            echo("no question cites turns: sessions alone are measured")
    if corrections:  # what cannot be read is said before anything is ranked
        from memlab.datasets.benchmarks.corrections import CORRECTED, apply_corrections

        for part in data:
            n = apply_corrections(part, corrections).issues.filter(action=CORRECTED).height
            echo(
                f"{corrections}: the evidence of {n:,} of {part.questions.height:,} questions "
                "is corrected"
            )
    model = opt.load_encoder(chosen, engine)
    if dry_run:
        from memlab.experiments.costs import estimate_costs

        for part in data:
            bench = memlab.Bench.of(part, encoder=model, store=chosen.store)
            echo(estimate_costs(stages or [], bench))
        return
    done = memlab.run(
        stages, data, store=chosen.store, encoder=model, name=name,
        seed=chosen.seed, engine=engine, jobs=jobs, unit=unit,
    )  # fmt: skip
    directories = _export_by_dataset(done, out, chosen, dataset, scope=scope, sample=sample)
    echo(f"{done}\n")
    for one in done.reports:
        if tied := one.provenance["ties"]:
            n = one.per_query.height
            echo(
                f"{one.name}, {one.level}s: equal scores at place 10 in {tied:,} of "
                f"{count_noun(n, 'questions')}, by lot"
            )
    for part in data:
        if part.questions["stale"].list.len().sum():
            ranked = [
                one
                for one, owner in zip(done.runs, done.cells["dataset"], strict=True)
                if owner == part.name
            ]
            table = memlab.evaluate.stale_table(
                [one for one in ranked if one.level == "turn"], part
            )
            echo(
                f"\nwhat must not come back, {part.name}\n\n{memlab.evaluate.tables.to_markdown(table)}"
            )
    if corrections:
        mended_too = done.corrected(corrections)
        if out or len(data) == 1:
            mended_too.export(directories[0] / "corrected")
        else:
            for part, directory in zip(mended_too.datasets, directories, strict=True):
                mended_too[part.name].export(directory / "corrected")
        echo(f"\nwith the evidence that {corrections.name} corrects\n\n{mended_too}")
    echo(f"runs, qrels, per-query results and reports: {', '.join(map(str, directories))}")
    n_read = done.cells["read"].sum()
    echo(
        f"comparison {done.name!r} in the store: {n_read} of {done.cells.height} runs were there before"
    )


def _export_by_dataset(
    done: Experiment,
    out: Path | None,
    chosen: Settings,
    files: list[Path],
    *,
    scope: list[str] | None,
    sample: int | None,
) -> list[Path]:
    """Export what was measured to the directory that was named, else of each dataset to its own folder."""
    if out:
        return [done.export(out)]
    directories = []
    for data, file in zip(done.datasets, files, strict=True):
        folder = opt.result_folder(chosen, data.name, file, scope=scope, sample=sample)
        folder.keep()
        one = done[data.name]
        one.export(folder.results)
        _write_conclusions(one, folder.results)
        directories.append(folder.results)
    return directories


def _write_conclusions(done: Experiment, directory: Path) -> None:
    """Write what was found in sentences, for the page of results."""
    from memlab.evaluate.report_files import write_files

    with suppress(DataError):  # where no question cites evidence, nothing was found
        write_files(directory, {"conclusions.md": f"{done.conclusions()}\n"})


@register_command(GROUP, "compare my-chats.jsonl --system best --system my_memory:search")
def compare(
    dataset: opt.Path_,
    system: opt.Systems = None,
    run: opt.Rankings = None,
    out: opt.Out = None, format: opt.Format = None, pool: opt.Pool = None, scope: opt.Scopes = None,
    sample: opt.Sample = None, questions: opt.QuestionFile = None, source: opt.QuestionSources = None,
    baseline: Annotated[
        str | None, typer.Option(help="The system, or the file of the run, that the others are compared with.")
    ] = None,
    fail_below: Annotated[
        float | None,
        typer.Option(
            help="Exit with 1 where recall_all@10 lies this far below the baseline's.",
            min=0, max=1, callback=opt.refuse_nan,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            help="Calls of the memories' models: read from this file, and written to it with --service.",
            show_default=False,
        ),
    ] = None,
    service: Annotated[
        str | None, typer.Option(help="Who answers what is not in --record: one of [llm.services].", show_default=False)
    ] = None,
    timeout: opt.Timeout = 600.0, unit: opt.Unit = "auto", engine: opt.Engine = "local",
    store: opt.Store = None, encoder: opt.EncoderName = None, on_error: opt.OnError = None,
    language: opt.Language = None, seed: opt.Seed = None,
) -> None:  # fmt: skip
    """Compare memories, pipelines and rankings on the same questions: complete recall, answers, tokens and time.

    What a memory returned is kept in the directory scope by scope: the same command goes on where
    it was stopped. A system without any result ends the command with 1.
    """
    from memlab.experiments.run_pipelines import measurable_levels

    chosen = opt.settings_in_force(
        store=store, encoder=encoder, on_error=on_error, language=language, seed=seed
    )
    opt.enable_system_imports(system or [])
    (data,) = opt.load_files(
        [dataset],
        chosen,
        format=format,
        pool=pool,
        scope=scope,
        sample=sample,
        source=source,
        questions=questions,
    )
    if "turn" not in measurable_levels(data):
        raise DataError(
            f"no question of {data.name!r} cites turns; systems are compared by the turns that they find"
        )
    echo(data.describe())
    runs = [*(run or [])]
    if baseline and os.path.isfile(baseline):
        runs += [Path(baseline)] * (Path(baseline) not in runs)
        baseline = Path(baseline).stem
    if service is not None and record is None:
        raise DataError("--service answers for --record FILE; give the file that keeps its answers")
    model, systems = opt.load_encoder(chosen, engine), system or ([] if runs else ["bm25", "best"])
    directory = out
    if directory is None:
        folder = opt.result_folder(chosen, data.name, dataset, scope=scope, sample=sample)
        folder.keep()
        directory = folder.results / "systems"
    with _recorded_calls(record, service, model) as calls:
        done = memlab.compare(
            _asking_through(calls, systems), data, runs=runs, baseline=baseline,
            encoder=model, store=chosen.store, folder=directory / "returned",
            timeout=timeout, seed=chosen.seed, unit=unit,
        )  # fmt: skip
    done.export(directory)
    echo(done)
    if calls is not None:
        for line in (*done.call_lines(), *_matching_lines(calls, done, directory / "returned")):
            echo(line)
    opt.echo_problems(done.problems, directory / "systems.json")
    echo(f"tables, results by question, and what was returned: {directory}")
    try:
        caption = (
            f"Complete recall on {data.name} against tokens and against the time of one search."
        )
        fig, about = (
            memlab.figures.cost_of_recall.trade_off(done.systems),
            {"caption": caption, "provenance": done.about},
        )
        memlab.figures.export(
            fig, "systems-trade-off", data=done.systems, directory=directory, **about
        )
    except MemlabError as error:
        echo(f"no picture was made: {mask_secrets(str(error))}", err=True)
    opt.end_without_result(done.without_result())
    if fail_below is not None:
        recall = dict(done.systems.select("system", "recall_all@10").iter_rows())
        floor = recall[done.about["baseline"]] - fail_below
        if lost := [f"{name} {value:.3f}" for name, value in recall.items() if value < floor]:
            echo(f"recall_all@10 below {floor:.3f}: {', '.join(lost)}", err=True)
            raise typer.Exit(1)


def _matching_lines(calls: ModelProxy, done: Comparison, folder: Path) -> list[str]:
    """Say how much of a recording was asked for, unless results of an earlier run were read back."""
    n_counted = int(done.calls["prompts"].sum())
    if n_counted and not calls.asked:
        return [
            f"the {count_noun(n_counted, 'prompts')} were asked by an earlier run, whose results "
            f"are read from {folder}: nothing was replayed; --out FOLDER replays them"
        ]
    return calls.matching_lines()


def _recorded_calls(
    record: Path | None, service: str | None, encoder: Encoder
) -> AbstractContextManager[ModelProxy | None]:
    """Give the proxy that memories ask through, or nothing."""
    if record is None:
        return nullcontext()
    from memlab.llm.proxy import ModelProxy

    if service is None and not record.is_file():
        raise DataError(f"{record} is no file; name a --service that answers, and it is made")
    return ModelProxy(record, service=service, encoder=encoder)


def _asking_through(calls: ModelProxy | None, systems: list[str]) -> list[str] | dict[str, Any]:
    """Make memories of modules ask through the proxy; pipelines and addresses stay as they are."""
    if calls is None:
        return systems
    from memlab.memories import ProxiedMemory, is_module_reference

    made: dict[str, Any] = {}
    for name in systems:
        made[name] = ProxiedMemory(name, calls) if is_module_reference(name) else name
    return made


@register_command(GROUP, "why owen/q12 data/sample/sample.jsonl --pipeline 'best | learned'")
def why(
    query_id: Annotated[str, typer.Argument(help="The question, as runs and reports name it.")],
    dataset: opt.Path_,
    pipeline: Annotated[str, typer.Option(help="The pipeline.")] = "best",
    system: Annotated[
        str | None, typer.Option(help="A memory instead: module:name or http://HOST:PORT.", show_default=False)
    ] = None,
    k: opt.K = 10, format: opt.Format = None, pool: opt.Pool = None, scope: opt.Scopes = None,
    questions: opt.QuestionFile = None, store: opt.Store = None,
    encoder: opt.EncoderName = None, on_error: opt.OnError = None, language: opt.Language = None, seed: opt.Seed = None,
) -> None:  # fmt: skip
    """Follow the evidence of one question through a pipeline: its rank after each stage, and what stands above it.

    Of a memory from outside: what it returned, what of the evidence is not there, and the nearest
    thing that is.
    """
    from memlab.explanation import explain

    chosen = opt.settings_in_force(
        store=store, encoder=encoder, on_error=on_error, language=language, seed=seed
    )
    (data,) = opt.load_files(
        [dataset], chosen, format=format, pool=pool, scope=scope, questions=questions
    )
    about: dict[str, Any] = {"encoder": opt.load_encoder(chosen), "store": chosen.store}
    asked = data.questions.filter(query_id=query_id)
    own = data.take(asked["scope"]) if asked.height else data
    if system and asked.height:
        opt.enable_system_imports([system])
        own = replace(own, questions=asked)
        echo(memlab.compare({"memory": system}, own, **about).why(query_id, k=k))
        return
    bench = memlab.Bench.of(own, **about)
    echo(explain(query_id, pipeline, bench, own, k=k))


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
    """Measure what the index knows of chats with gold facts: active and as of dates, endings, false positives."""
    from memlab.evaluate.fact_measures import format_outcomes, measure_folder, unmatched_facts

    chosen = opt.settings_in_force(encoder=encoder)
    named = service or chosen.index.service
    about: dict[str, Any] = {
        "facts": facts,
        "settings": chosen.index,
        "service": None if named == "extractive" else named,
        "encoder": opt.load_encoder(chosen),
    }
    if unmatched is not None:
        found = unmatched_facts(folder, **about)
        found.write_ndjson(unmatched)
        echo(f"{unmatched}: {count_noun(found.height, 'facts')} that no gold fact speaks of")
        return
    outcomes = measure_folder(folder, verdicts=verdicts, **about)
    echo(format_outcomes(outcomes, errors=errors))
