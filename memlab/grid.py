"""Many pipelines over many datasets, resumable, and kept in the store to be opened again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

import memlab
from memlab.errors import DataError
from memlab.evaluate import Measure, Report, compare, evaluate
from memlab.experiment import Experiment, distinct, measurable
from memlab.pipelines import Pipeline
from memlab.records import Dataset, Level, Run
from memlab.replay import model_files, seen_dataset
from memlab.retrieve import Bench
from memlab.store import MemoryStore
from memlab.store import runs as kept_runs

if TYPE_CHECKING:
    from memlab.embed import Encoder

# What a run depends on, by its names in the provenance.
_KEY = ("dataset", "fingerprint", "encoder", "header", "pipeline", "level", "code", "files")
_NO_PART_OF_A_RANKING = {
    *(
        "cli",
        "config",
        "context",
        "crossval",
        "datasets",
        "errors",
        "evaluate",
        "experiment",
        "figures",
        "grid",
        "indexing",
        "knowledge",
        "learning",
        "notebooks",
        "replay",
    ),
    "terminal",
}

_CELLS = {**dict.fromkeys(("dataset", "pipeline", "level", "run_id"), pl.String()), "read": pl.Boolean()}


@dataclass(frozen=True)
class Grid:
    """What some pipelines did on some datasets.

    :param name: under which :func:`reopen` finds it.
    :param experiments: one a dataset.
    :param cells: ``dataset``, ``pipeline``, ``level``, ``run_id``, and ``read``: whether the run was in the store
        before, so that nothing was ranked.
    """

    name: str
    experiments: tuple[Experiment, ...]
    cells: pl.DataFrame

    def __getitem__(self, dataset: str) -> Experiment:
        """Give the experiment on a dataset, by its name."""
        for one in self.experiments:
            if one.dataset.name == dataset:
                return one
        held = ", ".join(one.dataset.name for one in self.experiments)
        raise DataError(f"grid {self.name!r} has no dataset {dataset!r}; it has {held}")

    def compare(
        self,
        measure: str | Measure,
        *,
        level: Level = "turn",
        where: pl.Expr | None = None,
        baseline: str | None = None,
    ) -> pl.DataFrame:
        """Compare the pipelines on each dataset, as :func:`memlab.evaluate.compare` does, ``dataset`` in front."""
        parts = []
        for one in self.experiments:
            reports = [report for report in one.reports if report.level == level]
            if reports:
                seed = reports[0].seed
                table = compare(reports, measure=measure, baseline=baseline, where=where, seed=seed)
                parts.append(table.select(pl.lit(one.dataset.name).alias("dataset"), pl.all()))
        if not parts:
            raise DataError(f"grid {self.name!r} ranks no {level}s")
        return pl.concat(parts)

    def to_markdown(self) -> str:
        """Give the tables of each dataset, under its name."""
        return "\n\n".join(f"## {one.dataset.name}\n\n{one.to_markdown()}" for one in self.experiments)

    def write(self, directory: str | Path) -> None:
        """Write the files of each dataset into a folder of its name; see :meth:`Experiment.write`."""
        for one in self.experiments:
            one.write(Path(directory) / one.dataset.name)


def run_grid(
    pipelines: Sequence[str | Pipeline],
    datasets: Sequence[Dataset],
    *,
    store: MemoryStore,
    encoder: Encoder | str | None = "minilm",
    header: Sequence[str] = (),
    name: str | None = None,
    levels: Sequence[Level] | None = None,
    seed: int = 0,
) -> Grid:
    """Run pipelines on datasets and measure them, each at every level; what was run before is read from the store.

    Each run is saved as soon as it is there, so a grid that was killed goes on where it stopped when it is called
    again. A run is read back when it was of the same dataset, encoder, header, pipeline, model files and level, and
    of the same code: the modules of memlab that rank, and the packages that they need.

    :param pipelines: their texts; the first is the baseline of comparisons.
    :param datasets: with different names, which are those that the store knows them by.
    :param name: under which the comparison is kept, see :func:`reopen`; the datasets' names by default.
    :param levels: those at which a dataset has evidence by default.
    :param seed: of the bootstrap and the randomisation tests.
    :raises PipelineError: before anything runs, when a pipeline cannot be read.
    :raises DataError: before anything runs, for no or twice the same pipeline or dataset, or one without evidence.

    >>> import tempfile, memlab
    >>> from memlab.grid import reopen, run_grid
    >>> store = memlab.MemoryStore.open(tempfile.mkdtemp())
    >>> data = memlab.datasets.synthetic.generate(turns=200, seed=0)
    >>> first, again = (run_grid(["bm25", "hybrid"], [data], store=store, encoder="hashing:64") for _ in range(2))
    >>> first.cells["read"].any(), again.cells["read"].all()
    (False, True)
    >>> reopen(store, first.name).to_markdown() == first.to_markdown()
    True
    """
    from tqdm.auto import tqdm

    stages = distinct(pipelines)
    names = [data.name for data in datasets]
    if not names or len(set(names)) < len(names):
        raise DataError(f"datasets are {names}; give at least one, and each its own name: datasets.load(…, name=…)")
    plan = [(data, tuple(levels) if levels else measurable(data)) for data in datasets]
    model = _loaded(encoder)
    finished = _finished(store)
    experiments, cells = [], []
    with tqdm(total=sum(len(stages) * len(held) for _, held in plan), desc="grid", unit=" runs", delay=2) as bar:
        for data, held in plan:
            bench, runs, reports = _Bench(data, model, store, tuple(header)), [], []
            for one, level in ((one, level) for one in stages for level in held):
                about = bench.about(one, level)
                run_id = finished.get(_key(about))
                run = store.run(run_id) if run_id else bench.run(one, level, about)
                report = evaluate(run, data, seed=seed)
                saved = store.save_run(run, measures=_means(report))
                cells.append((data.name, str(one), level, saved, run_id is not None))
                runs.append(run)
                reports.append(report)
                bar.update()
            experiments.append(Experiment(data, tuple(runs), tuple(reports)))
    grid = Grid(name or "+".join(names), tuple(experiments), pl.DataFrame(cells, schema=_CELLS, orient="row"))
    content = {"seed": seed, "cells": grid.cells.drop("read").to_dicts()}
    kept_runs.save_grid(store, grid.name, content, now=datetime.now(UTC))
    return grid


def reopen(store: MemoryStore, name: str) -> Grid:
    """Open a comparison again from the store alone: the same runs on the data that they saw, so the same reports.

    :raises StoreError: when there is no grid of that name, or the store no longer holds what its runs saw.
    """
    content = kept_runs.load_grid(store, name)
    cells = pl.DataFrame(content["cells"], schema={k: v for k, v in _CELLS.items() if k != "read"})
    experiments = []
    for part in cells.partition_by("dataset", maintain_order=True):
        runs = tuple(store.run(run_id) for run_id in part["run_id"])
        data = seen_dataset(store, runs[0].provenance)
        reports = tuple(evaluate(run, data, seed=content["seed"]) for run in runs)
        experiments.append(Experiment(data, runs, reports))
    return Grid(name, tuple(experiments), cells.with_columns(read=pl.lit(True)))


class _Bench:
    """A bench that is made when the first run needs it: where all runs are there, nothing is encoded."""

    def __init__(self, data: Dataset, encoder: Encoder | None, store: MemoryStore, header: tuple[str, ...]) -> None:
        self.data, self.encoder, self.store, self.header = data, encoder, store, header
        self.fingerprint = data.fingerprint()
        self.made: Bench | None = None

    def about(self, one: Pipeline, level: Level) -> dict[str, Any]:
        """Give what a run depends on, in the words of its provenance."""
        about: dict[str, Any] = {"dataset": self.data.name, "fingerprint": self.fingerprint, "level": level}
        if self.encoder is not None:
            about |= {"encoder": self.encoder.identity.describe(), "header": list(self.header)}
        return about | {"pipeline": str(one), "code": code(), "files": model_files(one)}

    def run(self, one: Pipeline, level: Level, about: Mapping[str, Any]) -> Run:
        if self.made is None:
            self.made = Bench.of(self.data, encoder=self.encoder, store=self.store, header=self.header)
        run = one.run(self.made, level=level)
        # As it comes back from the store, so that a report does not show whether its run was read.
        return replace(run, provenance=json.loads(json.dumps({**run.provenance, **about}, sort_keys=True)))


def _loaded(encoder: Encoder | str | None) -> Encoder | None:
    from memlab.embed import load

    return load(encoder) if isinstance(encoder, str) else encoder


def _key(about: Mapping[str, Any]) -> str:
    return json.dumps([about.get(name) for name in _KEY], sort_keys=True)


def _finished(store: MemoryStore) -> dict[str, str]:
    """Give the runs of the store by what they depend on, the latest of each kind."""
    finished: dict[str, str] = {}
    for run_id, text in store.runs().select("run_id", "provenance").iter_rows():
        about = json.loads(text)
        # An index ranks by the whole table, which no key of one dataset can tell.
        if "path='indexed'" not in about.get("pipeline", "") and "code" in about:
            finished.setdefault(_key(about), run_id)
    return finished


def _means(report: Report) -> dict[str, float]:
    return dict(report.summary().select("measure", "mean").iter_rows())


@cache
def code() -> str:
    """Name the code that rankings depend on: memlab's version, and a hash of what ranks and of what it needs.

    >>> from memlab.grid import code
    >>> code()
    'memlab ... (...)'
    """
    root = Path(memlab.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        if place.parts[0].removesuffix(".py") not in _NO_PART_OF_A_RANKING:
            digest.update(place.as_posix().encode() + b"\0" + path.read_bytes())
    with suppress(PackageNotFoundError):
        needed = sorted(line for line in requires("memlab") or () if "extra ==" not in line)
        for package in (re.split(r"[^\w.-]", line)[0] for line in needed):
            digest.update(f"{package}=={version(package)}\n".encode())
    return f"memlab {memlab.__version__} ({digest.hexdigest()[:8]})"
