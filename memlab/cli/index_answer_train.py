"""Verbs that ask models: the index of sessions, answers, proposed questions, and the learned reranker."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

import memlab
from memlab.cli import _options as opt
from memlab.cli._memory import read_date
from memlab.cli._options import echo, register_command
from memlab.errors import ModelError
from memlab.terminal import choose_one, count_noun, shorten_line

if TYPE_CHECKING:
    from memlab.config import Settings
    from memlab.evaluate import Table
    from memlab.store import MemoryStore

GROUP = "Models"


@register_command(GROUP, "index --service recorded")
def index(
    dataset: Annotated[str | None, typer.Option(help="A dataset of the store; all by default.")] = None,
    service: opt.Service = None,
    now: Annotated[str | None, typer.Option(help="The present, in UTC; the clock by default.")] = None,
    watch: Annotated[
        float | None,
        typer.Option(
            help="Look again every so many seconds, until stopped.", min=1, max=opt.DAY,
            callback=opt.refuse_nan,
        ),
    ] = None,
    dry_run: opt.DryRun = False, engine: opt.Engine = "local", store: opt.Store = None,
    encoder: opt.EncoderName = None,
) -> None:  # fmt: skip
    """Summarise finished sessions and extract their entities and facts; what failed is tried again.

    Weeks, months and clusters that `memlab rollup --tree` wrote with this service are brought up to date.
    """
    from memlab.indexing.tree_refreshing import refresh_trees

    chosen, present = opt.settings_in_force(store=store, encoder=encoder), read_date(now)
    wanted = chosen.index.model_copy(update={"service": service} if service else {})
    options: dict[str, Any] = {
        "settings": wanted, "service": None if wanted.service == memlab.indexing.EXTRACTIVE else wanted.service,
        "now": present, "gap": timedelta(minutes=chosen.gap_minutes), "progress": True,
    }  # fmt: skip
    memory = memlab.MemoryStore.open(chosen.store, create=False)
    if dry_run:
        echo(_estimate_costs(memory, _index_names(memory, dataset), chosen, options))
        return
    model = opt.load_encoder(chosen, engine)
    while True:
        faults: list[str] = []
        for name in _index_names(memory, dataset):
            events = memlab.indexing.index(memory, name, encoder=model, engine=engine, **options)
            for line in memlab.indexing.report_lines(memory, name, events):
                echo(line)
            for line in refresh_trees(memory, name, service=options["service"], encoder=model):
                echo(line)
            failed = events.filter(kind="failed")
            if failed.height and failed.height == events.height:
                faults.append(f"{name}: nothing was made: {failed['reason'][0]}")
        if watch is None and faults:
            raise ModelError(" | ".join(faults))
        if watch is None:
            return
        time.sleep(watch)


def _index_names(memory: MemoryStore, dataset: str | None) -> list[str]:
    """Give the dataset that is named, or all that the store has now."""
    there = memory.datasets()["name"].to_list()
    if not dataset:
        return there
    return [choose_one(there, dataset, "dataset", "memlab ingest FILE puts one there")]


def _estimate_costs(
    memory: MemoryStore, names: list[str], chosen: Settings, options: dict[str, Any]
) -> Table:
    """Say what an index would cost; no service is asked, for vectors neither."""
    from memlab.evaluate import Table
    from memlab.experiments.costs import estimated_row
    from memlab.indexing.tree_refreshing import has_trees, refresh_trees

    is_remote, model = chosen.encoder.startswith("endpoint:"), None
    rows, uncounted = list[dict[str, Any]](), list[str]()
    for name in names:
        with memlab.llm.track_spending(estimate=True) as spent:
            memlab.indexing.index(memory, name, **options)
            has_own_trees = has_trees(memory, name, options["service"])
            if has_own_trees and is_remote:
                uncounted.append(name)
            elif has_own_trees:
                if model is None:
                    model = opt.load_encoder(chosen)
                refresh_trees(memory, name, service=options["service"], encoder=model)
        rows.append({"dataset": name} | estimated_row(spent.describe()["tasks"]))
    if uncounted:
        what = f"weeks, months and clusters of {count_noun(len(uncounted), 'datasets')}"
        echo(f"{what} are not counted: {chosen.encoder} would be asked for vectors", err=True)
    return Table(rows)


@register_command(GROUP, "answer my-chats.jsonl --system best --service recorded")
def answer(
    dataset: opt.Path_,
    system: opt.Systems = None,
    run: opt.Rankings = None,
    bound: Annotated[
        list[str] | None,
        typer.Option(help="evidence, whole history, nothing, another's, or none; all four by default."),
    ] = None,
    service: Annotated[
        str | None, typer.Option(help="The service that answers, or recorded; without, contexts are measured.")
    ] = None,
    judge: Annotated[str | None, typer.Option(help="The service that judges; by default the same.")] = None,
    budget: Annotated[int, typer.Option(help="Tokens of a context.", min=1)] = 1000,
    show_prompts: Annotated[
        bool, typer.Option("--show-prompts", help="Show what would be asked, and ask nothing.")
    ] = False,
    out: opt.Out = None, format: opt.Format = None, pool: opt.Pool = None, scope: opt.Scopes = None,
    sample: opt.Sample = None, questions: opt.QuestionFile = None, source: opt.QuestionSources = None,
    timeout: opt.Timeout = 600.0, unit: opt.Unit = "auto", store: opt.Store = None,
    encoder: opt.EncoderName = None, on_error: opt.OnError = None, language: opt.Language = None, seed: opt.Seed = None,
) -> None:  # fmt: skip
    """Have questions answered from what systems return, and the answers judged by rubric.

    A service with `record` keeps answers and verdicts: the same command goes on where it was
    stopped. Without --service the contexts are measured instead: whether the answer stands there.
    `whole history` is long, and asked about for every question: leave it out (name the others with
    --bound) where tokens cost.
    """
    from memlab.experiments.context_bounds import BOUNDS, prompt_examples, system_contexts

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
    echo(data.describe())
    directory, returned = out, out
    if directory is None:
        folder = opt.result_folder(chosen, data.name, dataset, scope=scope, sample=sample)
        if not show_prompts:
            folder.keep()
        # Where memlab compare keeps what memories returned: it is not asked for twice.
        directory, returned = folder.results / "answers", folder.results / "systems"
    systems = system or ([] if run else ["best"])
    options: dict[str, Any] = {
        "runs": run or [],
        "bounds": BOUNDS if not bound else [] if bound == ["none"] else bound,
        "budget": budget,
        "encoder": opt.load_encoder(chosen),
        "store": chosen.store,
        "folder": (returned or directory) / "returned",
        "timeout": timeout,
        "seed": chosen.seed,
        "unit": unit,
    }
    if show_prompts:
        echo(prompt_examples(system_contexts(systems, data, **options)))
        return
    done = memlab.answer_questions(systems, data, service=service, judge_by=judge, **options)
    done.export(directory)
    echo(done)
    opt.echo_problems(pl.DataFrame(done.about["problems"]), directory / "answers.json")
    echo(f"tables, prompts and a row for each answer: {directory}")
    opt.end_without_result(done.without_result())


@register_command(GROUP, "questions export.zip --service NAME --n 60 --dry-run")
def questions(
    dataset: opt.Path_,
    service: Annotated[
        str, typer.Option(help="The service that proposes and is asked again: one of [llm.services], or recorded.")
    ],
    n: Annotated[int, typer.Option("--n", help="How many questions.", min=1)] = 60,
    candidates: Annotated[
        int, typer.Option(help="Messages beside the evidence that are graded for each; 0 for none.", min=0)
    ] = 60,
    dry_run: opt.DryRun = False, out: opt.Out = None, format: opt.Format = None, pool: opt.Pool = None,
    scope: opt.Scopes = None, store: opt.Store = None, encoder: opt.EncoderName = None, on_error: opt.OnError = None,
    language: opt.Language = None, seed: opt.Seed = None,
) -> None:  # fmt: skip
    """Let a language model propose questions with evidence, and ask again about each; a person is to accept them.

    They go to `proposed.jsonl`. What the service answers is kept, in its own `record` or beside that file: the same
    command goes on where it was stopped.
    """
    from memlab.evaluate import Table
    from memlab.experiments.costs import estimated_row
    from memlab.questions.proposing import refuse_to_replace

    chosen = opt.settings_in_force(
        store=store, encoder=encoder, on_error=on_error, language=language, seed=seed
    )
    (data,) = opt.load_files([dataset], chosen, format=format, pool=pool, scope=scope)
    echo(data.describe())
    directory = out or Path(chosen.results) / data.name / "questions"
    asked: str | memlab.llm.Service = service
    if service != memlab.llm.RECORDED:
        asked = memlab.llm.configured_service(service)
        asked = replace(asked, record=asked.record or str(directory / "answers.jsonl"))
    options: dict[str, Any] = {
        "service": asked,
        "n": n,
        "candidates": candidates,
        "seed": chosen.seed,
    }
    if dry_run:
        # An encoder at an endpoint would be asked, and what is counted hardly depends on it.
        with memlab.llm.track_spending(estimate=True) as spent:
            memlab.datasets.propose_questions(data, encoder="hashing", **options)
        tasks = spent.describe()["tasks"]
        rows = [{"task": task} | estimated_row({task: of}) for task, of in tasks.items()]
        echo(Table([*rows, {"task": "all"} | estimated_row(tasks)]))
        return
    refuse_to_replace(directory / "proposed.jsonl")
    options["encoder"] = opt.load_encoder(chosen)
    made = memlab.datasets.propose_questions(data, **options)
    made.write(directory / "proposed.jsonl")
    echo(made.describe())
    echo(f"proposals, for a person to read: {directory / 'proposed.jsonl'}")


@register_command(GROUP, "train my-chats.jsonl --out results/model.safetensors")
def train(
    dataset: Annotated[list[Path], typer.Argument(help="Files whose questions name evidence.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The file of the model.")] = Path("results/model.safetensors"),
    format: opt.Format = None, pool: opt.Pool = None, store: opt.Store = None, encoder: opt.EncoderName = None,
    on_error: opt.OnError = None, language: opt.Language = None, seed: opt.Seed = None,
) -> None:  # fmt: skip
    """Train the learned reranker on your conversations, for use as `learned(model='FILE')`.

    A quarter of the conversations, at least one, is held out: the model does not learn from them, and
    its complete recall on them is printed. The file holds that model.
    """
    from memlab import rerank

    chosen = opt.settings_in_force(
        store=store, encoder=encoder, on_error=on_error, language=language, seed=seed
    )
    model, memory = opt.load_encoder(chosen), memlab.MemoryStore.open(chosen.store)
    lists, about = [], []
    for data in opt.load_files(dataset, chosen, format=format, pool=pool):
        bench = memlab.Bench.of(data, encoder=model, store=memory)
        lists += rerank.training_lists(bench, data)
        about.append({"name": data.name, "fingerprint": data.fingerprint()})
        echo(data.describe())
    rest, held_out = rerank.hold_out_scopes(lists, seed=chosen.seed)
    made = rerank.train(rest, seed=chosen.seed)
    reached = rerank.held_out_recall(made, held_out) if held_out else {}
    made = replace(made, about={**made.about, "data": about, "held_out": reached})
    made.save(out)
    echo(
        f"learned from {made.about['questions']:,} questions of {len(made.about['scopes']):,} conversations: {out}"
    )
    if not held_out:
        echo("one conversation alone: nothing could be held out, and nothing was measured")
        return
    names = shorten_line(", ".join(dict.fromkeys(part.name for part in held_out)))
    echo(f"held out, which the model did not learn from: {names} (n = {reached['n']:,} questions)")
    echo(
        f"  recall_all@10 {reached['best']:.3f} with best, {reached['learned']:.3f} with the model"
    )
