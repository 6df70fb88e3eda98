"""What systems return: read as pipelines, memories or files, trained where they learn, and asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from memlab.embed import Encoder
from memlab.errors import DataError, PipelineError
from memlab.evaluate import evaluate, read_run
from memlab.experiments.experiment import CELLS, Experiment
from memlab.experiments.folds import train_folds, untrained, with_models
from memlab.memories import (
    Memory,
    Returned,
    as_returned,
    attribute,
    collect,
    memory,
    names_module,
    ranked,
    read_ranking,
)
from memlab.pipelines import Pipeline, pipeline
from memlab.records import Dataset
from memlab.retrieve import Bench

DEPTH = 50


def named_systems(systems: Any, *, timeout: float) -> list[tuple[str, Pipeline | Memory]]:
    """Read the systems, each with the name that it has in tables; ``timeout`` is that of one request to an address."""
    if isinstance(systems, Mapping):
        return [(name, _system(system, timeout)) for name, system in systems.items()]
    listed = systems if isinstance(systems, (list, tuple)) else [systems]
    return [(_name(system), _system(system, timeout)) for system in listed]


def _name(system: Any) -> str:
    if isinstance(system, (str, Pipeline)):
        return str(system)
    return str(getattr(system, "__name__", type(system).__name__))


def _system(system: Any, timeout: float) -> Pipeline | Memory:
    if isinstance(system, Pipeline):
        return system
    if isinstance(system, str) and "://" not in system and not names_module(system):
        try:
            return pipeline(system)
        except PipelineError as error:
            raise PipelineError(f"{error}; a memory is written module:name or http://HOST:PORT") from None
    return memory(system, timeout=timeout)


def returned(
    named: list[tuple[str, Pipeline | Memory]],
    bench: Bench,
    data: Dataset,
    cross_validate: str | None,
    models: str | Path,
    *,
    k: int = DEPTH,
    folder: str | Path | None,
    timeout: float,
    seed: int,
) -> Iterator[tuple[Pipeline | Memory, Returned]]:
    """Ask one system after the other all questions.

    :param cross_validate: ``"scope"``: a ``learned`` without a model gets those of the other conversations.
    :param folder: for memories, as ``timeout``; see :func:`memlab.memories.collect`.
    """
    pipelines = [system for _, system in named if isinstance(system, Pipeline)]
    crossed = cross_validate == "scope" and untrained(pipelines)
    if crossed:
        train_folds(bench, data, models, seed=seed)
    for name, system in named:
        if isinstance(system, Pipeline):
            (stages,) = with_models([system], models) if crossed else [system]
            yield stages, as_returned(stages.run(bench).top(k), data, name)
        else:
            yield system, collect(system, data, name=name, k=k, folder=folder, timeout=timeout)


def from_file(path: Path, data: Dataset, k: int) -> Returned:
    if path.suffix in (".json", ".jsonl"):
        return read_ranking(path, data, k=k)
    return as_returned(read_run(path, "turn").top(k), data, path.stem)


def with_rankings(done: Experiment, paths: Sequence[str | Path], *, encoder: Encoder | None = None) -> Experiment:
    """Put rankings from elsewhere beside the pipelines of an experiment on one dataset, at the levels that it has.

    :param paths: TREC runs of turns, or what :func:`memlab.memories.read_ranking` reads; each is named by its file.
    :param encoder: for texts without ids, see :func:`memlab.memories.attribute`.
    :raises DataError: for several datasets, two of one name, or ids that the dataset does not hold.
    """
    if not paths:
        return done
    if len(done.datasets) > 1:
        raise DataError("rankings are of one dataset; evaluate it alone")
    (data,) = done.datasets
    names = [*(report.name for report in done.reports), *(Path(path).stem for path in paths)]
    taken = [name for name in names[len(done.reports) :] if names.count(name) > 1]
    if taken:
        raise DataError(f"two rankings are called {taken[0]!r}; rename a file")
    runs, reports, cells = [*done.runs], [*done.reports], [done.cells]
    levels = list(dict.fromkeys(report.level for report in done.reports))
    for path in map(Path, paths):
        found = from_file(path, data, 200)
        sources = attribute(found, data, encoder)
        for level in levels:
            runs.append(ranked(found, sources, level, turns=data.turns))
            reports.append(evaluate(runs[-1], data, measures=done.of(level)[0].measures, seed=done.reports[0].seed))
            row = {"dataset": data.name, "pipeline": path.stem, "level": level, "run_id": None, "read": False}
            cells.append(pl.DataFrame([row], schema=CELLS))
    return replace(done, runs=tuple(runs), reports=tuple(reports), cells=pl.concat(cells))
