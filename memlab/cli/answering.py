"""The verb for answers: having questions answered from what systems return."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memlab.cli._options import (
    CrossValidate,
    Format,
    Out,
    Path_,
    Pool,
    Rankings,
    Systems,
    Timeout,
    import_systems,
    in_force,
    load_encoder,
    load_files,
    verb,
)

if TYPE_CHECKING:
    from memlab.config import Settings


@verb(in_force, "store", "encoder", "on_error", "language", "seed")
def answer(
    chosen: Settings,
    dataset: Path_,
    system: Systems = None,
    run: Rankings = None,
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
    out: Out = None,
    format: Format = None,
    pool: Pool = None,
    cross_validate: CrossValidate = None,
    timeout: Timeout = 600.0,
) -> None:
    """Have questions answered from what systems return, and the answers judged by rubric.

    A service with `record` keeps answers and verdicts: the same command goes on where it was stopped. Without
    --service the contexts are measured instead: whether the answer stands there. `whole history` is long, and asked
    about for every question: leave it out (name the others with --bound) where tokens cost.
    """
    from memlab.experiments import answer_questions
    from memlab.experiments.contexts import BOUNDS, prompt_examples, system_contexts

    import_systems(system or [])
    (data,) = load_files([dataset], chosen, format=format, pool=pool)
    typer.echo(data.describe())
    directory = out or Path(chosen.results) / data.name / "answers"
    systems = system or ([] if run else ["best"])
    options: dict[str, Any] = {
        "runs": run or [],
        "bounds": BOUNDS if not bound else [] if bound == ["none"] else bound,
        "budget": budget,
        "encoder": load_encoder(chosen),
        "store": chosen.store,
        # Where memlab compare keeps what memories returned: it is not asked for twice.
        "folder": (out or Path(chosen.results) / data.name / "systems") / "returned",
        "cross_validate": cross_validate,
        "models": Path(chosen.results) / "cross-validated",
        "timeout": timeout,
        "seed": chosen.seed,
    }
    if show_prompts:
        typer.echo(prompt_examples(system_contexts(systems, data, **options)))
        return
    done = answer_questions(systems, data, service=service, judge_by=judge, **options)
    done.export(directory)
    typer.echo(str(done))
    for problem in done.about["problems"][:20]:
        typer.echo(problem["problem"], err=True)
    typer.echo(f"tables, prompts and a row for each answer: {directory}")
