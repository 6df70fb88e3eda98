"""Verbs that show results: notebooks and figures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

import memlab
from memlab.cli import _options as opt
from memlab.cli._options import echo, register_command

GROUP = "Share"


@register_command(GROUP, "notebooks my-chats.jsonl --only 00")
def notebooks(
    dataset: opt.Path_ = Path("data/sample/sample.jsonl"),
    out: opt.Out = None,
    source: opt.Source = opt.NOTEBOOKS,
    only: Annotated[str, typer.Option(help="Run only notebooks whose name holds this; '0[1-4]' works too.")] = "",
    jobs: Annotated[int, typer.Option(help="How many run at a time, each of up to 2 GB.", min=1)] = 1,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter of a notebook, as n_scopes=None or tokens=[500]; may be repeated."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Run also those whose cells, data, settings and code have not changed.")
    ] = False,
    pool: opt.Pool = None, scope: opt.Scopes = None, sample: opt.Sample = None,
    questions: opt.QuestionFile = None,
    store: opt.Store = None, encoder: opt.EncoderName = None, language: opt.Language = None,
    seed: opt.Seed = None,
) -> None:  # fmt: skip
    """Run the notebooks on a dataset; the executed ones are kept, figures are exported."""
    from memlab.datasets import dataset_name
    from memlab.datasets.fetch import locate_file
    from memlab.notebooks import findings, notebook_dataset, run_notebooks, write_results_page
    from memlab.notebooks.results_page import NOTEBOOKS, former_results

    part: dict[str, Any] = {"pool": pool, "scopes": opt.wanted_scopes(scope, sample)}
    if questions is not None:
        # A notebook runs in its own folder, and its record shows no folder of this machine.
        part["questions"] = os.path.relpath(questions.resolve(), source.resolve())
    chosen = opt.settings_in_force(store=store, encoder=encoder, language=language, seed=seed)
    name = dataset_name(dataset, pool=pool, seed=chosen.seed)
    folder = opt.result_folder(chosen, name, dataset, scope=scope, sample=sample)
    parameters = {
        "dataset": str(locate_file(dataset).resolve()),
        "part": {name: value for name, value in part.items() if value is not None},
        "language": chosen.language,
        "seed": chosen.seed,
        "encoder": chosen.encoder,
        "store": chosen.store if "://" in chosen.store else str(Path(chosen.store).resolve()),
        "figures": str(folder.figures.resolve()),
    }
    directory, values = out or folder.results / NOTEBOOKS, opt.read_assignments(set_ or [])
    running = run_notebooks(
        source, directory, parameters, only=only, chosen=values, jobs=jobs, again=again
    )
    folder.keep(notebooks=directory)
    if left := former_results(Path(chosen.results), Path(chosen.figures)):
        echo(left, err=True)
    done = []
    for path, seconds in running:
        done.append(path)
        took = f"{seconds:.0f} s" if seconds else "kept, nothing changed; --again runs it anyway"
        echo(f"{path}  {took}")
    memlab.figures.write_gallery(folder.figures, notebooks=directory)
    page = write_results_page(chosen.results)
    for found in findings(min(done))[:1]:
        read = notebook_dataset(min(done))  # none where a notebook is about the sample alone
        echo(f"found{read and f' in {read}'}: {found}")
    echo(f"open:  {page}")


@register_command(GROUP, "figures")
def figures(
    directory: Annotated[
        Path | None, typer.Argument(help="Where figures were exported to.", show_default=False)
    ] = None,
    source: opt.Source = opt.NOTEBOOKS,
) -> None:
    """Make the gallery of all exported figures, by notebook."""
    chosen = opt.settings_in_force(figures=str(directory) if directory else None)
    echo(memlab.figures.write_gallery(chosen.figures, notebooks=source))
