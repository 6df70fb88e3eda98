"""Pipelines × datasets: resumable, and kept in a store to be opened again."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.datasets import load as load_dataset
from memlab.distributed import check_engine, parallel_map
from memlab.embed import Encoder, describe_encoder
from memlab.embed import load as load_encoder
from memlab.embed.ray_workers import NamedEncoder
from memlab.errors import DataError, check_at_least
from memlab.evaluate import evaluate
from memlab.evaluate.confidence_intervals import Unit, clustering_scopes
from memlab.evaluate.groups import describe_questions
from memlab.evaluate.measures import MeasureLike
from memlab.evaluate.tables import BOUNDS
from memlab.experiments import replaying
from memlab.experiments.experiment import CELLS, Experiment
from memlab.experiments.scope_parts import (
    Cell,
    asks_service,
    load_named_encoder,
    rank_in_processes,
)
from memlab.pipelines import Pipeline, pipeline
from memlab.records import LEVELS, Dataset, Level, Run, qrels
from memlab.records.dataset import refuse_frame
from memlab.retrieve import DEFAULT, Bench
from memlab.store import MemoryStore
from memlab.system_names import check_system_names

CONTROLS = ("bm25", "dense", "hybrid")
_log = logging.getLogger("memlab")


def run(
    pipelines: str | Pipeline | Sequence[str | Pipeline] | Mapping[str, str | Pipeline] | None,
    datasets: Dataset | str | Path | Sequence[Dataset | str | Path],
    *,
    store: MemoryStore | str | Path | None = None,
    bench: Bench | None = None,
    encoder: Encoder | str | None = "settings",
    levels: Level | Sequence[Level] | None = None,
    measures: Sequence[MeasureLike] | None = None,
    name: str | None = None,
    seed: int = 0,
    engine: str = "local",
    jobs: int = 1,
    unit: Unit = "auto",
) -> Experiment:
    """Run pipelines on datasets and evaluate them at turn and session level; runs in the store are read back.

    With a store each run is saved as soon as it is there, so that an experiment that was killed
    goes on where it stopped when it is called again. A run is read back when it was of the same
    dataset, encoder, header, pipeline, model files and level, and was made by the same code.
    Without a store everything stays in memory. On the command line it is ``memlab evaluate``.

    :param pipelines: their texts; the first is the baseline of comparisons. A mapping names them:
        tables, figures and files show the names, and a run is read back whatever it was called.
        ``None``: :data:`CONTROLS`, ``best`` and ``best | learned``; without an encoder ``bm25`` and
        ``best``.
    :param datasets: one or several, or their files; each with a name of its own.
    :param bench: of the one dataset, where it was made before; nothing is encoded again, and
        nothing saved.
    :param encoder: an encoder or its name, see :func:`memlab.embed.load`, which also takes the
        fields of a contextual header; ``None`` for BM25 alone.
    :param levels: those at which a dataset has evidence by default. Where a level is named and no
        question has evidence there, a warning says so, and reports are of no questions.
    :param measures: those of the level by default.
    :param name: under which the experiment is kept; by default the names of the datasets. One of
        the same name is replaced, its runs stay.
    :param seed: of the bootstrap and the randomisation tests.
    :param engine: ``ray``: texts are encoded and pipelines run by the workers of a cluster, see
        :func:`memlab.distributed.parallel_map`. It takes the name of an encoder, and a store that
        all of them reach.
    :param jobs: how many processes of this machine rank, each some scopes with one thread; the
        rankings are the same, to the last bit where the encoder gives the same vectors. A process
        takes the memory of the encoder, and loads it by its name. Pipelines that ask a service run
        in this process. With a store, runs are saved when all scopes are ranked.
    :param unit: what intervals and tests take as independent: ``question``, ``scope``, or ``auto``:
        scopes where there are five or more and one has several questions.
    :raises PipelineError: before anything runs, when a pipeline cannot be read.
    :raises DataError: before anything runs, for no or twice the same pipeline, name or dataset, or,
        where no level is named, one without evidence.

    >>> import tempfile, memlab
    >>> store = memlab.MemoryStore.open(tempfile.mkdtemp())
    >>> data = memlab.sample(turns=200)
    >>> first, again = (memlab.run(["bm25", "hybrid"], data, store=store, encoder="hashing:64") for _ in range(2))
    >>> first.cells["read"].any(), again.cells["read"].all()
    (False, True)
    >>> str(memlab.reopen(store, first.name)) == str(first)
    True
    """
    data = distinct_datasets(datasets)
    check_at_least(0, seed=seed)
    check_at_least(1, jobs=jobs)
    clustering_scopes([], unit)  # refuses another unit before anything runs
    levels = [levels] if isinstance(levels, str) else levels
    if bench is not None and (store is not None or len(data) > 1):
        raise DataError(
            "bench= is for one dataset in memory; leave it out to save runs or to take several datasets"
        )
    by_name = isinstance(encoder, str | None) or getattr(encoder, "spec", None) is not None
    if check_engine(engine) == "ray" and (store is None or not by_name):
        raise DataError(
            "engine 'ray' takes a store that its workers reach, and an encoder by its name; no bench"
        )
    model = bench.encoder if bench else None
    if bench is None and encoder is not None:
        model = load_encoder(encoder, engine=engine)
    if pipelines is None:
        pipelines = ["bm25", DEFAULT]
        if model is not None:
            pipelines = [*CONTROLS, DEFAULT, f"{DEFAULT} | learned"]
    given_names = pipeline_names(pipelines)
    stages = distinct_pipelines(pipelines)
    if engine == "ray":
        _refuse_foreign(stages, "engine")
    if jobs > 1:
        _refuse_jobs(engine, bench, model)
        _refuse_foreign(stages, "jobs")
    at = {part.name: tuple(levels) if levels else measurable_levels(part) for part in data}
    for part in data:
        for level in at[part.name]:
            if qrels(part.questions, level).frame.is_empty():
                warn_once(unmeasurable_line(part, level))
    memory = MemoryStore.open(store) if isinstance(store, (str, Path)) else store
    sources = [_DatasetSource(part, model, memory, bench, engine, jobs) for part in data]
    how: dict[str, Any] = {"measures": measures, "seed": seed, "unit": unit}
    done = _rank_cells(stages, given_names, sources, at, **how)
    title = name or "+".join(part.name for part in data)
    if memory:
        content: dict[str, Any] = {
            "seed": seed,
            "unit": unit,
            "cells": done.cells.drop("read").to_dicts(),
        }
        memory.grids.save(
            title, content | ({"measures": [str(m) for m in measures]} if measures else {})
        )
    return replace(done, name=title)


def _refuse_foreign(stages: Sequence[Pipeline], option: str) -> None:
    """Refuse stages that other processes do not know."""
    for each in stages:
        for name in each.dependencies()["stages"]:
            raise DataError(
                f"stage {name} is not of memlab, and workers do not know it: run it without {option}="
            )


def _refuse_jobs(engine: str, bench: Bench | None, encoder: Encoder | None) -> None:
    """Refuse what several processes of one machine cannot do."""
    if engine != "local":
        raise DataError("jobs= is for engine 'local'; a Ray cluster has workers of its own")
    if bench is not None:
        raise DataError("jobs= makes a bench in each process: leave bench= out")
    if encoder is not None and getattr(encoder, "spec", None) is None:
        raise DataError("jobs= takes an encoder by its name, so that each process loads it")


def _rank_cells(
    stages: Sequence[Pipeline],
    given_names: Sequence[str] | None,
    sources: Sequence[_DatasetSource],
    at: Mapping[str, Sequence[Level]],
    *,
    measures: Sequence[MeasureLike] | None,
    seed: int,
    unit: Unit,
) -> Experiment:
    """Read or make each run, measure it, and save it as soon as it is there.

    The store has a run under its pipeline's text; a name that was given is the experiment's.
    """
    from tqdm.auto import tqdm

    memory = sources[0].store
    saved = {} if memory is None else _saved_runs(memory)
    runs, reports, cells = [], [], []
    with tqdm(
        total=sum(len(stages) * len(levels) for levels in at.values()), desc="runs", delay=2
    ) as bar:
        for source in sources:
            pairs = [(each, level) for each in stages for level in at[source.data.name]]
            ids = [saved.get(replaying.run_key(source.about(*pair))) for pair in pairs]
            new = source.runs([pair for pair, run_id in zip(pairs, ids, strict=True) if not run_id])
            for (each, level), run_id in zip(pairs, ids, strict=True):
                made = memory.runs.load(run_id) if memory and run_id else next(new)
                report = evaluate(made, source.data, measures=measures, seed=seed, unit=unit)
                means = dict(report.summary().select("measure", "mean").iter_rows())
                saved_as = None
                if memory:
                    saved_as = memory.runs.save(made, measures=means, run_id=run_id)
                if given_names:
                    made = replace(made, name=given_names[stages.index(each)])
                    report = replace(report, name=made.name)
                cells.append((source.data.name, made.name, level, saved_as, run_id is not None))
                runs.append(made)
                reports.append(report)
                bar.update()
    table = pl.DataFrame(cells, schema=CELLS, orient="row")
    benches = {source.data.name: partial(getattr, source, "bench") for source in sources}
    return Experiment(
        "", tuple(source.data for source in sources), tuple(runs), tuple(reports), table, benches
    )


@dataclass
class _DatasetSource:
    """A dataset, and its bench, which is made when the first run needs it: where all are saved, nothing is encoded."""

    data: Dataset
    encoder: Encoder | None
    store: MemoryStore | None
    given: Bench | None
    engine: str
    jobs: int

    @cached_property
    def bench(self) -> Bench:
        return self.given or Bench.of(self.data, encoder=self.encoder, store=self.store)

    @cached_property
    def fingerprint(self) -> str:
        return self.data.fingerprint()

    def about(self, stages: Pipeline, level: Level) -> dict[str, Any]:
        """Give what a run depends on, in the words of its provenance."""
        about: dict[str, Any] = {
            "dataset": self.data.name,
            "fingerprint": self.fingerprint,
            "level": level,
        }
        if self.encoder is not None:
            about |= describe_encoder(self.encoder)
        return about | {
            "pipeline": str(stages),
            "code": replaying.code_version(),
            **stages.dependencies(),
        }

    def runs(self, cells: Sequence[Cell]) -> Iterator[Run]:
        """Run pipelines at levels, one after the other or on many workers."""
        if not cells:
            return
        if self.engine == "ray":
            workers = parallel_map(_rank_on_worker, cells, *self._place(cells), engine=self.engine)
            ranked: Iterator[Run] = map(self.bench.show, workers)
        else:
            ranked = self._rank_here(cells)
        for cell, made in zip(cells, ranked, strict=True):
            # As it comes back from the store, so that a report does not show whether its run was
            # read.
            about = {**made.provenance, **self.about(*cell)}
            yield replace(made, provenance=json.loads(json.dumps(about, sort_keys=True)))

    def _rank_here(self, cells: Sequence[Cell]) -> Iterator[Run]:
        """Run pipelines on this machine, where several processes are wanted each on some scopes."""
        apart: list[Cell] = []
        if self.jobs > 1:
            apart = [cell for cell in cells if not asks_service(cell[0])]
            if len(apart) < len(cells):
                warn_once("pipelines that ask a service run in one process, whatever jobs= says")
        made = None
        if apart:
            if self.store is not None:
                self._encode_once(apart)
            made = rank_in_processes(
                self.bench, self.data, apart, encoder=self._named(), jobs=self.jobs
            )
            if made is None:
                warn_once(f"{self.data.name}: too few scopes to divide; jobs= changes nothing")
        for cell in cells:
            if made is not None and cell in apart:
                yield made[apart.index(cell)]
            else:
                stages, level = cell
                yield stages.run(self.bench, level=level)

    def _encode_once(self, cells: Sequence[Cell]) -> None:
        """Let the store have what pipelines encode, so that workers read it: the first question asks for it."""
        bench = self.bench
        bench.query_vectors  # noqa: B018
        first = bench.with_rows(np.arange(min(1, bench.queries.height)))
        for stages, level in cells:
            stages.run(first, level=level)

    def _named(self) -> NamedEncoder | None:
        """Give what other processes load the encoder by."""
        if self.encoder is None:
            return None
        wrapped: Any = self.encoder
        named: NamedEncoder = wrapped.by_name()
        return named

    def _place(self, cells: Sequence[Cell]) -> tuple[Any, ...]:
        """Give what workers of a cluster make their bench of, whose texts are encoded."""
        self._encode_once(cells)
        assert self.store is not None  # checked before
        return os.getcwd(), self.store.uri, self.fingerprint, self.data, self._named()


_worker_bench: dict[tuple[Any, ...], Bench] = {}  # of a worker: the last


def _rank_on_worker(
    cell: Cell,
    folder: str,
    uri: str,
    fingerprint: str,
    data: Dataset,
    named: NamedEncoder | None,
) -> Run:
    """Run a pipeline on a worker, which keeps the bench for the next."""
    if os.path.isdir(folder):
        os.chdir(folder)  # paths of models and of the store start there
    place = (uri, fingerprint, named)
    if place not in _worker_bench:
        _worker_bench.clear()
        own = None if named is None else load_named_encoder(named)
        store = MemoryStore.open(uri, create=False)
        _worker_bench[place] = Bench.of(
            data, encoder=own, store=store, ingest=False, progress=False
        )
    stages, level = cell
    return replace(stages.run(_worker_bench[place], level=level), text_of=None, evidence=None)


def reopen(store: MemoryStore | str | Path, name: str) -> Experiment:
    """Open a saved experiment from the store alone: the same runs and reports.

    :raises StoreError: when there is no experiment of that name, or the store no longer holds what
        its runs saw.
    """
    memory = store if isinstance(store, MemoryStore) else MemoryStore.open(store, create=False)
    content = memory.grids.load(name)
    cells = pl.DataFrame(content["cells"], schema={k: v for k, v in CELLS.items() if k != "read"})
    runs = tuple(
        replace(memory.runs.load(run_id), name=shown)
        for run_id, shown in cells.select("run_id", "pipeline").iter_rows()
    )
    seen = dict(zip(cells["dataset"], (each.provenance for each in runs), strict=True))
    data = {name: replaying.load_run_dataset(memory, about) for name, about in seen.items()}
    benches = {
        name: partial(replaying.load_run_bench, memory, about) for name, about in seen.items()
    }
    asked = {name: content[name] for name in ("measures", "seed", "unit") if name in content}
    reports = tuple(
        evaluate(each, data[of], **asked) for each, of in zip(runs, cells["dataset"], strict=True)
    )
    return Experiment(
        name, tuple(data.values()), runs, reports, cells.with_columns(read=pl.lit(True)), benches
    )


def measurable_levels(dataset: Dataset) -> tuple[Level, ...]:
    """Give the levels at which a dataset's questions have evidence: a chat log may cite sessions alone.

    :raises DataError: when no question has evidence at any level.
    """
    levels = tuple(level for level in LEVELS if qrels(dataset.questions, level).frame.height)
    if not levels:
        raise DataError(unmeasurable_line(dataset, LEVELS[0]))
    for level in levels:
        describe_questions(dataset, level)
    return levels


@cache
def warn_once(line: str) -> None:
    """Log a warning the first time, since a notebook measures the same data again and again."""
    _log.warning(line)


def unmeasurable_line(dataset: Dataset, level: Level) -> str:
    """Say that a dataset has nothing to measure, and what helps."""
    return (
        f"dataset {dataset.name!r} has {dataset.questions.height} questions and none with evidence {level}s; "
        "measures need evidence ids: ask without measuring, or label some questions"
    )


def pipeline_names(pipelines: Any) -> list[str] | None:
    """Give the names that a mapping gives its pipelines; ``None`` where they are not named.

    :raises DataError: for names that tables cannot show.

    >>> from memlab.experiments.run_pipelines import pipeline_names
    >>> pipeline_names({"MMR": "hybrid | mmr"})
    ['MMR']
    """
    if not isinstance(pipelines, Mapping):
        return None
    check_system_names(pipelines, reserved=BOUNDS)
    return [*pipelines]


def distinct_pipelines(
    pipelines: str | Pipeline | Sequence[str | Pipeline] | Mapping[str, str | Pipeline],
) -> list[Pipeline]:
    """Read one pipeline, or several that are to be compared.

    :raises PipelineError: when one of them cannot be read.
    :raises DataError: when there is none, or one stands there twice.
    """
    listed: Iterable[str | Pipeline]
    if isinstance(pipelines, (str, Pipeline)):
        listed = [pipelines]
    elif isinstance(pipelines, Mapping):
        listed = pipelines.values()
    else:
        listed = pipelines
    read = [*map(pipeline, listed)]
    if not read or len(set(map(str, read))) < len(read):
        raise DataError(f"pipelines are {[*map(str, read)]}; give at least one, and none twice")
    return read


def distinct_datasets(datasets: Any) -> list[Dataset]:
    """Read one dataset or its file, or several of different names."""
    refuse_frame(datasets, "datasets")
    listed = [datasets]
    if isinstance(datasets, Iterable) and not isinstance(datasets, str):
        listed = [*datasets]
    for part in listed:
        refuse_frame(part, "datasets")
    data = [load_dataset(part) if isinstance(part, (str, Path)) else part for part in listed]
    names = [part.name if isinstance(part, Dataset) else None for part in data]
    if not names or None in names or len(set(names)) < len(names):
        raise DataError(
            f"datasets are {names}; give at least one, each a file or what memlab.datasets.load gives, and each its "
            "own name: datasets.load(…, name=…)"
        )
    return data


def _saved_runs(store: MemoryStore) -> dict[str, str]:
    """Give the runs of the store by what they depend on, the latest of each kind."""
    saved: dict[str, str] = {}
    for run_id, text in store.runs.listing().select("run_id", "provenance").iter_rows():
        about = json.loads(text)
        # What a model did not answer is asked again.
        if "code" in about and not about.get("llm", {}).get("unanswered"):
            saved.setdefault(replaying.run_key(about), run_id)
    return saved
