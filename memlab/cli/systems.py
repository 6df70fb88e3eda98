"""Verbs for memories from outside: comparing them, and serving memlab's own."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memlab.cli._options import (
    CrossValidate,
    Engine,
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
from memlab.errors import DataError

if TYPE_CHECKING:
    from memlab.config import Settings


@verb(in_force, "store", "encoder", "on_error", "language", "seed")
def compare(
    chosen: Settings,
    dataset: Path_,
    system: Systems = None,
    run: Rankings = None,
    out: Out = None,
    format: Format = None,
    pool: Pool = None,
    baseline: Annotated[
        str | None, typer.Option(help="The system, or the file of the run, that the others are compared with.")
    ] = None,
    fail_below: Annotated[
        float | None, typer.Option(help="Exit with 1 where recall_all@10 lies this far below the baseline's.", min=0)
    ] = None,
    cross_validate: CrossValidate = None,
    timeout: Timeout = 600.0,
    engine: Engine = "local",
) -> None:
    """Compare memories, pipelines and rankings on the same questions: complete recall, answers, tokens and time.

    What a memory returned is kept in the directory scope by scope: the same command goes on where it was stopped.
    """
    from memlab.experiments import compare as compare_systems
    from memlab.figures import export, systems

    import_systems(system or [])
    (data,) = load_files([dataset], chosen, format=format, pool=pool)
    typer.echo(data.describe())
    directory = out or Path(chosen.results) / data.name / "systems"
    runs = [*(run or [])]
    if baseline and os.path.isfile(baseline):
        if Path(baseline) not in runs:
            runs.append(Path(baseline))
        baseline = Path(baseline).stem
    done = compare_systems(
        system or ([] if runs else ["bm25", "best"]),
        data,
        runs=runs,
        baseline=baseline,
        encoder=load_encoder(chosen, engine),
        store=chosen.store,
        folder=directory / "returned",
        cross_validate=cross_validate,
        models=Path(chosen.results) / "cross-validated",
        timeout=timeout,
        seed=chosen.seed,
    )
    done.export(directory)
    caption = f"Complete recall on {data.name} against tokens and against the time of one search."
    export(
        systems.trade_off(done.systems),
        "systems-trade-off",
        caption=caption,
        provenance=done.about,
        directory=directory,
    )
    typer.echo(str(done))
    for line in done.problems["problem"].head(20):
        typer.echo(line, err=True)
    if done.problems.height > 20:
        typer.echo(f"and {done.problems.height - 20:,} more problems, in {directory / 'systems.json'}", err=True)
    typer.echo(f"tables, {directory / 'report.html'} (question by question), and what was returned: {directory}")
    if fail_below is not None:
        recall = dict(done.systems.select("system", "recall_all@10").iter_rows())
        floor = recall[done.about["baseline"]] - fail_below
        lost = [f"{name} {value:.3f}" for name, value in recall.items() if value < floor]
        if lost:
            typer.echo(f"recall_all@10 below {floor:.3f}: {', '.join(lost)}", err=True)
            raise typer.Exit(1)


@verb(in_force, "encoder")
def serve(
    chosen: Settings,
    pipeline: Annotated[str, typer.Option(help="The pipeline that ranks.")] = "best",
    host: Annotated[str, typer.Option(help="Another than this machine's own needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.", min=0, max=65535)] = 9000,
) -> None:
    """Serve a pipeline as a memory over HTTP; where MEMLAB_MEMORY_TOKEN is set, it is asked for as bearer token."""
    from memlab.memories import PipelineMemory, bearer, server

    token = bearer()
    memory = PipelineMemory(pipeline, encoder=load_encoder(chosen))
    try:
        running = server(memory, host=host, port=port, token=token)
    except OSError as error:
        raise DataError(f"{host}:{port} cannot be served ({error.strerror or error}); choose another --port") from None
    typer.echo(f"{pipeline} at http://{host}:{running.server_address[1]}; Ctrl-C ends it")
    with running, suppress(KeyboardInterrupt):
        running.serve_forever()
