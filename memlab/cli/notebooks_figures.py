"""Verbs that show results: notebooks and figures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

import memlab
from memlab.cli import shared_options as opt
from memlab.cli.shared_options import echo, register_command
from memlab.errors import DataError

GROUP = "Share"


@register_command(GROUP, "notebooks my-chats.jsonl --only 00")
def notebooks(
    dataset: opt.Path_ = Path("data/sample/sample.jsonl"),
    out: opt.Out = None,
    source: opt.Source = opt.NOTEBOOKS,
    only: Annotated[
        str, typer.Option(help="Run only notebooks whose name holds this; '0[1-4]' works too.")
    ] = "",
    jobs: Annotated[
        int, typer.Option(help="How many run at a time, each of up to 2 GB.", min=1)
    ] = 1,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A parameter of a notebook, as n_scopes=None or tokens=[500]; may be repeated.",
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Run also those whose cells, data, settings and code have not changed."
        ),
    ] = False,
    pool: opt.Pool = None,
    scope: opt.Scopes = None,
    sample: opt.Sample = None,
    questions: opt.QuestionFile = None,
    store: opt.Store = None,
    encoder: opt.EncoderName = None,
    language: opt.Language = None,
    seed: opt.Seed = None,
) -> None:
    """Run the notebooks on a dataset; the executed ones are kept, figures are exported."""
    from memlab.datasets import dataset_name
    from memlab.datasets.fetch import resolve_path_or_benchmark_name
    from memlab.notebooks import (
        copy_shipped_notebooks,
        findings,
        notebook_dataset,
        run_notebooks,
        write_results_page,
    )
    from memlab.notebooks.results_page import NOTEBOOKS, former_results_note_or_empty

    dataset_part: dict[str, Any] = {
        "pool": pool,
        "scopes": opt.scopes_or_sample_size(scope, sample),
    }
    if questions is not None:
        # A notebook runs in its own folder, and its record shows no folder of this machine.
        dataset_part["questions"] = os.path.relpath(questions.resolve(), source.resolve())
    settings = opt.settings_in_force(store=store, encoder=encoder, language=language, seed=seed)
    dataset_place = resolve_path_or_benchmark_name(dataset)
    if not os.path.exists(dataset_place):  # else a notebook would find it, a minute later
        raise DataError(f"{dataset} is not there; check the path, or fetch it (memlab datasets)")
    data_name = dataset_name(dataset, pool=pool, seed=settings.seed)
    file_options = opt.FileOptions(scope=scope, sample=sample)
    result_folder = opt.choose_result_folder_and_print_note(
        settings, data_name, dataset, file_options
    )
    store_place = settings.store
    if "://" not in store_place:
        store_place = str(Path(store_place).resolve())
    parameters = {
        "dataset": str(dataset_place.resolve()),
        "part": {name: value for name, value in dataset_part.items() if value is not None},
        "language": settings.language,
        "seed": settings.seed,
        "encoder": settings.encoder,
        "store": store_place,
        "figures": str(result_folder.figures.resolve()),
    }
    notebook_folder = out or result_folder.results / NOTEBOOKS
    notebook_settings = opt.parse_parameter_assignments(set_ or [])
    if source == opt.NOTEBOOKS:
        copies = copy_shipped_notebooks(source)
        if copies:
            echo(f"{source}: the {len(copies)} notebooks of memlab, which are yours to change")
    notebook_runs = run_notebooks(
        source,
        notebook_folder,
        parameters,
        only=only,
        chosen=notebook_settings,
        jobs=jobs,
        again=again,
    )
    echo(f"notebooks take a minute or more each; as far as one came it stands in {notebook_folder}")
    result_folder.write_owner_markers(notebooks=notebook_folder)
    former_files = former_results_note_or_empty(Path(settings.results), Path(settings.figures))
    if former_files:
        echo(former_files, err=True)
    finished_notebooks = []
    for notebook_path, seconds in notebook_runs:
        finished_notebooks.append(notebook_path)
        duration_note = "kept, nothing changed; --again runs it anyway"
        if seconds:
            duration_note = f"{seconds:.0f} s"
        echo(f"{notebook_path}  {duration_note}")
    memlab.figures.write_gallery(result_folder.figures, notebooks=notebook_folder)
    results_page = write_results_page(settings.results)
    for finding in findings(min(finished_notebooks))[:1]:
        finding_dataset = notebook_dataset(
            min(finished_notebooks)
        )  # none where a notebook is about the sample alone
        echo(f"found{finding_dataset and f' in {finding_dataset}'}: {finding}")
    echo(f"open:  {results_page}")


@register_command(GROUP, "figures")
def figures(
    directory: Annotated[
        Path | None, typer.Argument(help="Where figures were exported to.", show_default=False)
    ] = None,
    source: opt.Source = opt.NOTEBOOKS,
) -> None:
    """Make the gallery of all exported figures, by notebook."""
    settings = opt.settings_in_force(figures=str(directory) if directory else None)
    echo(memlab.figures.write_gallery(settings.figures, notebooks=source))
