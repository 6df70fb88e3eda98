"""Verbs that ask models: sessions' index, answers, proposed questions, the learned reranker."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

import memlab
from memlab.cli import shared_options as opt
from memlab.cli.opening_memory import parse_date_or_none
from memlab.cli.shared_options import echo, register_command
from memlab.errors import ModelError
from memlab.terminal_text import choose_name_or_only_one, count_noun, shorten_line

if TYPE_CHECKING:
    from memlab.config import Settings
    from memlab.evaluate import Table
    from memlab.store import MemoryStore

GROUP = "Models"


@register_command(GROUP, "index --service recorded")
def index(
    dataset: Annotated[
        str | None, typer.Option(help="A dataset of the store; all by default.")
    ] = None,
    service: opt.Service = None,
    now: Annotated[
        str | None, typer.Option(help="The present, in UTC; the clock by default.")
    ] = None,
    watch: Annotated[
        float | None,
        typer.Option(
            help="Look again every so many seconds, until stopped.",
            min=1,
            max=opt.DAY,
            callback=opt.refuse_nan,
        ),
    ] = None,
    dry_run: opt.DryRun = False,
    engine: opt.Engine = "local",
    store: opt.Store = None,
    encoder: opt.EncoderName = None,
) -> None:
    """Summarise finished sessions and extract their entities and facts; what failed is tried again.

    Weeks, months and clusters that `memlab rollup --tree` wrote with this service are brought up to
    date.
    """
    from memlab.indexing.tree_refreshing import rewrite_outdated_trees

    settings = opt.settings_in_force(store=store, encoder=encoder)
    present_time = parse_date_or_none(now)
    index_settings = settings.index
    if service:
        index_settings = index_settings.model_copy(update={"service": service})
    model_service: str | None = index_settings.service
    if model_service == memlab.indexing.EXTRACTIVE:
        model_service = None
    options: dict[str, Any] = {
        "settings": index_settings,
        "service": model_service,
        "now": present_time,
        "gap": timedelta(minutes=settings.gap_minutes),
        "progress": True,
    }
    memory_store = memlab.MemoryStore.open(settings.store, create=False)
    if dry_run:
        echo(
            _estimate_index_costs(
                memory_store, _named_or_all_datasets(memory_store, dataset), settings, options
            )
        )
        return
    text_encoder = opt.load_encoder(settings, engine)
    while True:
        fault_lines: list[str] = []
        for dataset_name in _named_or_all_datasets(memory_store, dataset):
            index_events = memlab.indexing.index(
                memory_store, dataset_name, encoder=text_encoder, engine=engine, **options
            )
            for report_line in memlab.indexing.report_lines(
                memory_store, dataset_name, index_events
            ):
                echo(report_line)
            for report_line in rewrite_outdated_trees(
                memory_store, dataset_name, service=options["service"], encoder=text_encoder
            ):
                echo(report_line)
            failed_events = index_events.filter(kind="failed")
            if failed_events.height and failed_events.height == index_events.height:
                fault_lines.append(
                    f"{dataset_name}: nothing was made: {failed_events['reason'][0]}"
                )
        if watch is None and fault_lines:
            raise ModelError(" | ".join(fault_lines))
        if watch is None:
            return
        time.sleep(watch)


def _named_or_all_datasets(memory_store: MemoryStore, named_dataset: str | None) -> list[str]:
    """Give the dataset that is named, or all that the store has now."""
    stored_names = memory_store.datasets()["name"].to_list()
    if not named_dataset:
        return stored_names
    return [
        choose_name_or_only_one(
            stored_names, named_dataset, "dataset", "memlab ingest FILE puts one there"
        )
    ]


def _estimate_index_costs(
    memory_store: MemoryStore, dataset_names: list[str], settings: Settings, options: dict[str, Any]
) -> Table:
    """Say what an index would cost; no service is asked, for vectors neither."""
    from memlab.evaluate import Table
    from memlab.experiments.model_costs import estimated_cost_columns
    from memlab.indexing.tree_refreshing import has_whole_trees, rewrite_outdated_trees

    is_remote = settings.encoder.startswith("endpoint:")
    text_encoder = None
    cost_rows = list[dict[str, Any]]()
    uncounted_names = list[str]()
    for dataset_name in dataset_names:
        with memlab.llm.track_spending(estimate=True) as spending:
            memlab.indexing.index(memory_store, dataset_name, **options)
            has_own_trees = has_whole_trees(memory_store, dataset_name, options["service"])
            if has_own_trees and is_remote:
                uncounted_names.append(dataset_name)
            elif has_own_trees:
                if text_encoder is None:
                    text_encoder = opt.load_encoder(settings)
                rewrite_outdated_trees(
                    memory_store, dataset_name, service=options["service"], encoder=text_encoder
                )
        cost_rows.append(
            {"dataset": dataset_name} | estimated_cost_columns(spending.describe()["tasks"])
        )
    if uncounted_names:
        uncounted_trees = (
            f"weeks, months and clusters of {count_noun(len(uncounted_names), 'datasets')}"
        )
        echo(
            f"{uncounted_trees} are not counted: {settings.encoder} would be asked for vectors",
            err=True,
        )
    return Table(cost_rows)


@register_command(GROUP, "answer my-chats.jsonl --system best --service recorded")
def answer(
    dataset: opt.Path_,
    system: opt.Systems = None,
    run: opt.Rankings = None,
    bound: Annotated[
        list[str] | None,
        typer.Option(
            help="evidence, whole history, nothing, another's, or none; all four by default."
        ),
    ] = None,
    service: Annotated[
        str | None,
        typer.Option(help="The service that answers, or recorded; without, contexts are measured."),
    ] = None,
    judge: Annotated[
        str | None, typer.Option(help="The service that judges; by default the same.")
    ] = None,
    budget: Annotated[int, typer.Option(help="Tokens of a context.", min=1)] = 1000,
    show_prompts: Annotated[
        bool, typer.Option("--show-prompts", help="Show what would be asked, and ask nothing.")
    ] = False,
    *,
    out: opt.Out = None,
    file_options: opt.FileOptions,
    timeout: opt.Timeout = 600.0,
    unit: opt.Unit = "auto",
    setting_options: opt.SettingOptions,
) -> None:
    """Have questions answered from what systems return, and the answers judged by rubric.

    A service with `record` keeps answers and verdicts: the same command goes on where it was
    stopped. Without --service the contexts are measured instead: whether the answer stands there.
    `whole history` is long, and asked about for every question: leave it out (name the others with
    --bound) where tokens cost.
    """
    from memlab.experiments.context_bounds import (
        BOUNDS,
        format_prompts_and_first_example,
        make_system_contexts,
    )

    settings = setting_options.in_force()
    opt.enable_system_imports(system or [])
    (dataset_read,) = opt.load_files([dataset], file_options, settings)
    echo(dataset_read.describe())
    directory = out
    returned_folder = out
    if directory is None:
        result_folder = opt.choose_result_folder_and_print_note(
            settings, dataset_read.name, dataset, file_options
        )
        if not show_prompts:
            result_folder.write_owner_markers()
        # Where memlab compare keeps what memories returned: it is not asked for twice.
        directory = result_folder.results / "answers"
        returned_folder = result_folder.results / "systems"
    systems = system or []
    if not systems and not run:
        systems = ["best"]
    bounds = bound or BOUNDS
    if bounds == ["none"]:
        bounds = []
    options: dict[str, Any] = {
        "runs": run or [],
        "bounds": bounds,
        "budget": budget,
        "encoder": opt.load_encoder(settings),
        "store": settings.store,
        "folder": (returned_folder or directory) / "returned",
        "timeout": timeout,
        "seed": settings.seed,
        "unit": unit,
    }
    if show_prompts:
        echo(
            format_prompts_and_first_example(make_system_contexts(systems, dataset_read, **options))
        )
        return
    answered = memlab.answer_questions(
        systems, dataset_read, service=service, judge_by=judge, **options
    )
    answered.export(directory)
    echo(answered)
    opt.print_memory_problems(pl.DataFrame(answered.about["problems"]), directory / "answers.json")
    echo(f"tables, prompts and a row for each answer: {directory}")
    opt.exit_if_without_result(answered.without_result())


@register_command(GROUP, "questions export.zip --service NAME --n 60 --dry-run")
def questions(
    dataset: opt.Path_,
    service: Annotated[
        str,
        typer.Option(
            help="The service that proposes and is asked again: one of [llm.services], or recorded."
        ),
    ],
    *,
    n: Annotated[int, typer.Option("--n", help="How many questions.", min=1)] = 60,
    candidates: Annotated[
        int,
        typer.Option(
            help="Messages beside the evidence that are graded for each; 0 for none.", min=0
        ),
    ] = 60,
    dry_run: opt.DryRun = False,
    out: opt.Out = None,
    format: opt.Format = None,
    pool: opt.Pool = None,
    scope: opt.Scopes = None,
    setting_options: opt.SettingOptions,
) -> None:
    """Let a language model propose questions with evidence, and ask again about each; a person is
    to accept them.

    They go to `proposed.jsonl`. What the service answers is kept, in its own `record` or beside
    that file: the same command goes on where it was stopped.
    """
    from memlab.evaluate import Table
    from memlab.experiments.model_costs import estimated_cost_columns
    from memlab.questions.proposing import raise_if_proposals_file_exists

    settings = setting_options.in_force()
    file_options = opt.FileOptions(format=format, pool=pool, scope=scope)
    (dataset_read,) = opt.load_files([dataset], file_options, settings)
    echo(dataset_read.describe())
    directory = out or Path(settings.results) / dataset_read.name / "questions"
    asking_service: str | memlab.llm.Service = service
    if service != memlab.llm.RECORDED:
        asking_service = memlab.llm.configured_service(service)
        record = asking_service.record or str(directory / "answers.jsonl")
        asking_service = replace(asking_service, record=record)
    options: dict[str, Any] = {
        "service": asking_service,
        "n": n,
        "candidates": candidates,
        "seed": settings.seed,
    }
    if dry_run:
        # An encoder at an endpoint would be asked, and what is counted hardly depends on it.
        with memlab.llm.track_spending(estimate=True) as spending:
            memlab.datasets.propose_questions(dataset_read, encoder="hashing", **options)
        cost_by_task = spending.describe()["tasks"]
        cost_rows = [
            {"task": task_name} | estimated_cost_columns({task_name: task_cost})
            for task_name, task_cost in cost_by_task.items()
        ]
        echo(Table([*cost_rows, {"task": "all"} | estimated_cost_columns(cost_by_task)]))
        return
    raise_if_proposals_file_exists(directory / "proposed.jsonl")
    options["encoder"] = opt.load_encoder(settings)
    proposals = memlab.datasets.propose_questions(dataset_read, **options)
    proposals.write(directory / "proposed.jsonl")
    echo(proposals.describe())
    echo(f"proposals, for a person to read: {directory / 'proposed.jsonl'}")


@register_command(GROUP, "train my-chats.jsonl --out results/model.safetensors")
def train(
    dataset: Annotated[
        list[Path], typer.Argument(help="Files whose questions name evidence.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The file of the model.")] = Path(
        "results/model.safetensors"
    ),
    *,
    format: opt.Format = None,
    pool: opt.Pool = None,
    setting_options: opt.SettingOptions,
) -> None:
    """Train the learned reranker on your conversations, for use as `learned(model='FILE')`.

    A quarter of the conversations, at least one, is held out: the model does not learn from them,
    and its complete recall on them is printed. The file holds that model.
    """
    from memlab import rerank

    settings = setting_options.in_force()
    opt.refuse_place_within_file(out.parent)  # before anything is encoded
    text_encoder = opt.load_encoder(settings)
    memory_store = memlab.MemoryStore.open(settings.store)
    training_lists = []
    data_records = []
    file_options = opt.FileOptions(format=format, pool=pool)
    for dataset_read in opt.load_files(dataset, file_options, settings):
        training_bench = memlab.Bench.of(dataset_read, encoder=text_encoder, store=memory_store)
        training_lists += rerank.training_lists(training_bench, dataset_read)
        data_records.append({"name": dataset_read.name, "fingerprint": dataset_read.fingerprint()})
        echo(dataset_read.describe())
    learned_lists, held_out = rerank.hold_out_scopes(training_lists, seed=settings.seed)
    trained_model = rerank.train(learned_lists, seed=settings.seed)
    held_out_recall = rerank.held_out_recall(trained_model, held_out) if held_out else {}
    about = {**trained_model.about, "data": data_records, "held_out": held_out_recall}
    trained_model = replace(trained_model, about=about)
    trained_model.save(out)
    echo(
        f"learned from {trained_model.about['questions']:,} questions of "
        f"{len(trained_model.about['scopes']):,} conversations: {out}"
    )
    if not held_out:
        echo("one conversation alone: nothing could be held out, and nothing was measured")
        return
    held_out_names = shorten_line(
        ", ".join(dict.fromkeys(held_out_list.name for held_out_list in held_out))
    )
    echo(
        f"held out, which the model did not learn from: {held_out_names} (n = "
        f"{held_out_recall['n']:,} questions)"
    )
    echo(
        f"  recall_all@10 {held_out_recall['best']:.3f} with best, "
        f"{held_out_recall['learned']:.3f} with the model"
    )
