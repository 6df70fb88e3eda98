"""Pipelines × datasets: resumable, and kept in a store to be opened again."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.datasets import load as load_dataset
from memlab.distributed import check_engine, parallel_map
from memlab.embed import Encoder, describe_encoder
from memlab.embed import load as load_encoder
from memlab.embed.ray_workers import NamedEncoder
from memlab.errors import DataError, check_at_least
from memlab.evaluate import Report, evaluate
from memlab.evaluate.confidence_intervals import Unit, scopes_if_they_are_the_unit
from memlab.evaluate.groups_of_questions import grouping_columns_of_questions
from memlab.evaluate.printed_tables import BOUNDS
from memlab.evaluate.ranking_measures import MeasureLike
from memlab.experiments import run_replay
from memlab.experiments.experiment import CELLS, Experiment
from memlab.experiments.parallel_scopes import (
    Cell,
    load_named_encoder,
    pipeline_asks_service,
    rank_scopes_in_processes_if_divisible,
)
from memlab.pipelines import Pipeline, pipeline
from memlab.progress_bars import progress_bar
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
    """Run pipelines on datasets and evaluate them at turn and session level.

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
    >>> first = memlab.run(["bm25", "hybrid"], data, store=store, encoder="hashing:64")
    >>> again = memlab.run(["bm25", "hybrid"], data, store=store, encoder="hashing:64")
    >>> first.cells["read"].any(), again.cells["read"].all()
    (False, True)
    >>> str(memlab.reopen(store, first.name)) == str(first)
    True
    """
    # What can be refused is refused before anything is read or encoded.
    if pipelines is not None:
        pipelines_read = read_distinct_pipelines(pipelines)
    check_at_least(0, seed=seed)
    check_at_least(1, jobs=jobs)
    scopes_if_they_are_the_unit([], unit)
    distinct_data = read_distinct_datasets(datasets)
    if bench is not None and (store is not None or len(distinct_data) > 1):
        raise DataError(
            "bench= is for one dataset in memory; leave it out to save runs or to take several "
            "datasets"
        )
    _raise_if_ray_options_unfit(engine, store, encoder)
    loaded_encoder = None
    if bench is not None:
        loaded_encoder = bench.encoder
    elif encoder is not None:
        loaded_encoder = load_encoder(encoder, engine=engine)
    if pipelines is None:
        pipelines = _default_pipeline_texts(loaded_encoder)
        pipelines_read = read_distinct_pipelines(pipelines)
    given_names = given_pipeline_names(pipelines)
    if engine == "ray":
        _raise_if_stages_are_foreign(pipelines_read, "engine")
    if jobs > 1:
        _raise_if_jobs_impossible(engine, bench, loaded_encoder)
        _raise_if_stages_are_foreign(pipelines_read, "jobs")
    if isinstance(levels, str):
        levels = [levels]
    levels_by_dataset = _levels_by_dataset_with_warnings(distinct_data, levels)
    memory_store = store
    if isinstance(memory_store, (str, Path)):
        memory_store = MemoryStore.open(memory_store)
    dataset_sources = [
        _DatasetSource(dataset, loaded_encoder, memory_store, bench, engine, jobs)
        for dataset in distinct_data
    ]
    cells = _rank_measure_and_save_cells(
        pipelines_read,
        dataset_sources,
        levels_by_dataset,
        given_names=given_names,
        evaluation_options={"measures": measures, "seed": seed, "unit": unit},
    )
    experiment = replace(
        _measured_cells_to_unnamed_experiment(cells, dataset_sources),
        name=name or "+".join(dataset.name for dataset in distinct_data),
    )
    if memory_store:
        content: dict[str, Any] = {
            "seed": seed,
            "unit": unit,
            "cells": experiment.cells.drop("read").to_dicts(),
        }
        if measures:
            content["measures"] = [str(measure) for measure in measures]
        memory_store.grids.save(experiment.name, content)
    return experiment


def _raise_if_ray_options_unfit(
    engine: str, store: MemoryStore | str | Path | None, encoder: Encoder | str | None
) -> None:
    """Refuse an unknown engine, and a cluster whose workers could not reach what they need."""
    if check_engine(engine) != "ray":
        return
    has_name = isinstance(encoder, str | None) or getattr(encoder, "spec", None) is not None
    if store is None or not has_name:
        raise DataError(
            "engine 'ray' takes a store that its workers reach, and an encoder by its name; no "
            "bench"
        )


def _default_pipeline_texts(encoder: Encoder | None) -> list[str | Pipeline]:
    """Give the pipelines that are run where none is named."""
    if encoder is None:
        return ["bm25", DEFAULT]
    return [*CONTROLS, DEFAULT, f"{DEFAULT} | learned"]


def _levels_by_dataset_with_warnings(
    datasets: Sequence[Dataset], levels: Sequence[Level] | None
) -> dict[str, tuple[Level, ...]]:
    """Give the levels at which each dataset is ranked; warn of those without evidence."""
    levels_by_dataset: dict[str, tuple[Level, ...]] = {}
    for dataset in datasets:
        dataset_levels = tuple(levels or ()) or levels_with_evidence_or_raise(dataset)
        levels_by_dataset[dataset.name] = dataset_levels
    for dataset in datasets:
        for level in levels_by_dataset[dataset.name]:
            if qrels(dataset.questions, level).frame.is_empty():
                log_warning_once(message_of_no_evidence(dataset, level))
    return levels_by_dataset


def _raise_if_stages_are_foreign(pipelines: Sequence[Pipeline], option_name: str) -> None:
    """Refuse stages that other processes do not know."""
    for checked_pipeline in pipelines:
        for stage_name in checked_pipeline.dependencies()["stages"]:
            raise DataError(
                f"stage {stage_name} is not of memlab, and workers do not know it: run it without "
                f"{option_name}="
            )


def _raise_if_jobs_impossible(engine: str, bench: Bench | None, encoder: Encoder | None) -> None:
    """Refuse what several processes of one machine cannot do."""
    if engine != "local":
        raise DataError("jobs= is for engine 'local'; a Ray cluster has workers of its own")
    if bench is not None:
        raise DataError("jobs= makes a bench in each process: leave bench= out")
    if encoder is not None and getattr(encoder, "spec", None) is None:
        raise DataError("jobs= takes an encoder by its name, so that each process loads it")


class _MeasuredCell(NamedTuple):
    """A run, what it reached, and its row of ``Experiment.cells``."""

    run: Run
    report: Report
    row: tuple[str, str, Level, str | None, bool]


def _rank_measure_and_save_cells(
    pipelines: Sequence[Pipeline],
    dataset_sources: Sequence[_DatasetSource],
    levels_by_dataset: Mapping[str, Sequence[Level]],
    *,
    given_names: Sequence[str] | None,
    evaluation_options: Mapping[str, Any],
) -> list[_MeasuredCell]:
    """Read or make each run, measure it, and save it as soon as it is there.

    The store has a run under its pipeline's text; a name that was given is the experiment's.

    :param evaluation_options: ``measures``, ``seed`` and ``unit`` of :func:`evaluate`.
    """
    store = dataset_sources[0].store
    run_id_by_key: dict[str, str] = {}
    if store is not None:
        run_id_by_key = _reusable_run_id_by_key(store)
    n_levels = sum(len(levels) for levels in levels_by_dataset.values())
    measured: list[_MeasuredCell] = []
    n_cells = len(pipelines) * n_levels
    with progress_bar(what="pipelines", total=n_cells, unit="runs", delay=2) as run_bar:
        for source in dataset_sources:
            cells = [*product(pipelines, levels_by_dataset[source.data.name])]
            keys = [
                run_replay.run_key_of_provenance(source.dependencies_of_run(*cell))
                for cell in cells
            ]
            new_cells = [
                cell for cell, key in zip(cells, keys, strict=True) if key not in run_id_by_key
            ]
            new_runs = source.rank_cells_and_iter_runs(new_cells)
            for (cell_pipeline, level), key in zip(cells, keys, strict=True):
                saved_id = run_id_by_key.get(key)
                if store is not None and saved_id is not None:
                    ranking = store.runs.load(saved_id)
                else:
                    ranking = next(new_runs)
                report = evaluate(ranking, source.data, **evaluation_options)
                run_id = None
                if store is not None:
                    means = dict(report.summary().select("measure", "mean").iter_rows())
                    run_id = store.runs.save(ranking, measures=means, run_id=saved_id)
                if given_names:
                    ranking = replace(ranking, name=given_names[pipelines.index(cell_pipeline)])
                    report = replace(report, name=ranking.name)
                row = (source.data.name, ranking.name, level, run_id, saved_id is not None)
                measured.append(_MeasuredCell(ranking, report, row))
                run_bar.update()
    return measured


def _measured_cells_to_unnamed_experiment(
    cells: Sequence[_MeasuredCell], dataset_sources: Sequence[_DatasetSource]
) -> Experiment:
    """Put measured runs into an experiment that has no name yet."""
    benches = {source.data.name: partial(getattr, source, "bench") for source in dataset_sources}
    return Experiment(
        "",
        tuple(source.data for source in dataset_sources),
        tuple(cell.run for cell in cells),
        tuple(cell.report for cell in cells),
        pl.DataFrame([cell.row for cell in cells], schema=CELLS, orient="row"),
        benches,
    )


@dataclass
class _DatasetSource:
    """A dataset, and its bench, which is made when the first run needs it.

    Where all runs are saved, nothing is encoded.
    """

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

    def dependencies_of_run(self, stages: Pipeline, level: Level) -> dict[str, Any]:
        """Give what a run depends on, in the words of its provenance."""
        dependencies: dict[str, Any] = {
            "dataset": self.data.name,
            "fingerprint": self.fingerprint,
            "level": level,
        }
        if self.encoder is not None:
            dependencies |= describe_encoder(self.encoder)
        return dependencies | {
            "pipeline": str(stages),
            "code": run_replay.code_version(),
            **stages.dependencies(),
        }

    def rank_cells_and_iter_runs(self, cells: Sequence[Cell]) -> Iterator[Run]:
        """Run pipelines at levels, one after the other or on many workers."""
        if not cells:
            return
        for cell_pipeline, _ in cells:
            cell_pipeline.check_services_and_models()
        if self.engine == "ray":
            workers = parallel_map(
                _rank_cell_on_worker_keeping_bench,
                cells,
                *self._encode_and_list_ray_worker_arguments(cells),
                engine=self.engine,
            )
            rankings: Iterator[Run] = map(self.bench.show, workers)
        else:
            rankings = self._iter_local_runs_and_warn(cells)
        for ranked_cell, ranking in zip(cells, rankings, strict=True):
            # As it comes back from the store, so that a report does not show whether its run was
            # read.
            provenance = {**ranking.provenance, **self.dependencies_of_run(*ranked_cell)}
            yield replace(ranking, provenance=json.loads(json.dumps(provenance, sort_keys=True)))

    def _iter_local_runs_and_warn(self, cells: Sequence[Cell]) -> Iterator[Run]:
        """Run pipelines on this machine, where several processes are wanted each on some scopes."""
        divided_cells: list[Cell] = []
        if self.jobs > 1:
            divided_cells = [
                ranked_cell for ranked_cell in cells if not pipeline_asks_service(ranked_cell[0])
            ]
            if len(divided_cells) < len(cells):
                log_warning_once(
                    "pipelines that ask a service run in one process, whatever jobs= says"
                )
        divided_runs = None
        if divided_cells:
            if self.store is not None:
                self._encode_all_into_store(divided_cells)
            divided_runs = rank_scopes_in_processes_if_divisible(
                self.bench,
                self.data,
                divided_cells,
                encoder=self._named_encoder_for_workers(),
                jobs=self.jobs,
            )
            if divided_runs is None:
                log_warning_once(
                    f"{self.data.name}: too few scopes to divide; jobs= changes nothing"
                )
        for ranked_cell in cells:
            if divided_runs is not None and ranked_cell in divided_cells:
                yield divided_runs[divided_cells.index(ranked_cell)]
            else:
                cell_pipeline, cell_level = ranked_cell
                yield cell_pipeline.run(self.bench, level=cell_level)

    def _encode_all_into_store(self, cells: Sequence[Cell]) -> None:
        """Let the store have what pipelines encode, so that workers read it.

        The first question asks for all of it.
        """
        full_bench = self.bench
        full_bench.query_vectors  # noqa: B018
        first_question = full_bench.with_query_rows(np.arange(min(1, full_bench.queries.height)))
        for cell_pipeline, cell_level in cells:
            cell_pipeline.run(first_question, level=cell_level)

    def _named_encoder_for_workers(self) -> NamedEncoder | None:
        """Give what other processes load the encoder by."""
        if self.encoder is None:
            return None
        wrapped_encoder: Any = self.encoder
        named_encoder: NamedEncoder = wrapped_encoder.named_encoder()
        return named_encoder

    def _encode_and_list_ray_worker_arguments(
        self, cells: Sequence[Cell]
    ) -> tuple[str, str, str, Dataset, NamedEncoder | None]:
        """Give what workers of a cluster make their bench of, whose texts are encoded."""
        self._encode_all_into_store(cells)
        assert self.store is not None  # checked before
        return (
            os.getcwd(),
            self.store.uri,
            self.fingerprint,
            self.data,
            self._named_encoder_for_workers(),
        )


_worker_bench: dict[tuple[Any, ...], Bench] = {}  # of a worker: the last


def _rank_cell_on_worker_keeping_bench(
    cell: Cell,
    folder: str,
    store_uri: str,
    fingerprint: str,
    data: Dataset,
    named_encoder: NamedEncoder | None,
) -> Run:
    """Run a pipeline on a worker, which keeps the bench for the next."""
    if os.path.isdir(folder):
        os.chdir(folder)  # paths of models and of the store start there
    bench_key = (store_uri, fingerprint, named_encoder)
    if bench_key not in _worker_bench:
        _worker_bench.clear()
        worker_encoder = None if named_encoder is None else load_named_encoder(named_encoder)
        worker_store = MemoryStore.open(store_uri, create=False)
        _worker_bench[bench_key] = Bench.of(
            data, encoder=worker_encoder, store=worker_store, ingest=False, progress=False
        )
    cell_pipeline, cell_level = cell
    return replace(
        cell_pipeline.run(_worker_bench[bench_key], level=cell_level), text_of=None, evidence=None
    )


def reopen(store: MemoryStore | str | Path, name: str) -> Experiment:
    """Open a saved experiment from the store alone: the same runs and reports.

    :raises StoreError: when there is no experiment of that name, or the store no longer holds what
        its runs saw.
    """
    if not isinstance(store, MemoryStore):
        store = MemoryStore.open(store, create=False)
    content = store.grids.load(name)
    saved_columns = {column: dtype for column, dtype in CELLS.items() if column != "read"}
    cells = pl.DataFrame(content["cells"], schema=saved_columns)
    runs: list[Run] = []
    provenance_by_dataset: dict[str, Mapping[str, Any]] = {}
    for dataset_name, system_name, run_id in cells.select(
        "dataset", "pipeline", "run_id"
    ).iter_rows():
        saved_run = replace(store.runs.load(run_id), name=system_name)
        runs.append(saved_run)
        provenance_by_dataset[dataset_name] = saved_run.provenance
    datasets: dict[str, Dataset] = {}
    bench_makers = {}
    for dataset_name, provenance in provenance_by_dataset.items():
        datasets[dataset_name] = run_replay.load_and_check_run_dataset(store, provenance)
        bench_makers[dataset_name] = partial(run_replay.load_run_bench, store, provenance)
    evaluation_options: dict[str, Any] = {}
    for option_name in ("measures", "seed", "unit"):
        if option_name in content:
            evaluation_options[option_name] = content[option_name]
    reports = [
        evaluate(saved_run, datasets[dataset_name], **evaluation_options)
        for saved_run, dataset_name in zip(runs, cells["dataset"], strict=True)
    ]
    return Experiment(
        name,
        tuple(datasets.values()),
        tuple(runs),
        tuple(reports),
        cells.with_columns(read=pl.lit(True)),
        bench_makers,
    )


def levels_with_evidence_or_raise(dataset: Dataset) -> tuple[Level, ...]:
    """Give the levels at which a dataset's questions have evidence.

    A chat log may cite sessions alone.

    :raises DataError: when no question has evidence at any level.
    """
    levels_found = tuple(
        checked_level
        for checked_level in LEVELS
        if qrels(dataset.questions, checked_level).frame.height
    )
    if not levels_found:
        raise DataError(message_of_no_evidence(dataset, LEVELS[0]))
    for checked_level in levels_found:
        grouping_columns_of_questions(dataset, checked_level)
    return levels_found


@cache
def log_warning_once(warning_line: str) -> None:
    """Log a warning the first time, since a notebook measures the same data again and again."""
    _log.warning(warning_line)


def message_of_no_evidence(dataset: Dataset, level: Level) -> str:
    """Say that a dataset has nothing to measure, and what helps."""
    return (
        f"dataset {dataset.name!r} has {dataset.questions.height} questions and none with "
        f"evidence {level}s; "
        "measures need questions with the ids of their evidence: --questions FILE gives some, "
        "memlab questions proposes them, and memlab search asks without measuring"
    )


def given_pipeline_names(pipelines: object) -> list[str] | None:
    """Give the names that a mapping gives its pipelines; ``None`` where they are not named.

    :raises DataError: for names that tables cannot show.

    >>> from memlab.experiments.run_pipelines import given_pipeline_names
    >>> given_pipeline_names({"MMR": "hybrid | mmr"})
    ['MMR']
    """
    if not isinstance(pipelines, Mapping):
        return None
    check_system_names(pipelines, reserved=BOUNDS)
    return [*pipelines]


def read_distinct_pipelines(
    pipelines: str | Pipeline | Sequence[str | Pipeline] | Mapping[str, str | Pipeline],
) -> list[Pipeline]:
    """Read one pipeline, or several that are to be compared.

    :raises PipelineError: when one of them cannot be read.
    :raises DataError: when there is none, or one stands there twice.
    """
    listed_pipelines: Iterable[str | Pipeline]
    if isinstance(pipelines, (str, Pipeline)):
        listed_pipelines = [pipelines]
    elif isinstance(pipelines, Mapping):
        listed_pipelines = pipelines.values()
    else:
        listed_pipelines = pipelines
    pipelines_read = [*map(pipeline, listed_pipelines)]
    if not pipelines_read or len(set(map(str, pipelines_read))) < len(pipelines_read):
        raise DataError(
            f"pipelines are {[*map(str, pipelines_read)]}; give at least one, and none twice"
        )
    return pipelines_read


def read_distinct_datasets(
    datasets: Dataset | str | Path | Sequence[Dataset | str | Path],
) -> list[Dataset]:
    """Read one dataset or its file, or several of different names."""
    refuse_frame(datasets, "datasets")
    listed_datasets: list[Any] = [datasets]
    if isinstance(datasets, Iterable) and not isinstance(datasets, str):
        listed_datasets = [*datasets]
    for dataset in listed_datasets:
        refuse_frame(dataset, "datasets")
    datasets_read: list[Dataset] = []
    for dataset in listed_datasets:
        if isinstance(dataset, (str, Path)):
            dataset = load_dataset(dataset)
        datasets_read.append(dataset)
    dataset_names: list[str | None] = []
    for dataset in datasets_read:
        is_dataset = isinstance(dataset, Dataset)
        dataset_names.append(dataset.name if is_dataset else None)
    if not dataset_names or None in dataset_names or len(set(dataset_names)) < len(dataset_names):
        raise DataError(
            f"datasets are {dataset_names}; give at least one, each a file or what "
            "memlab.datasets.load gives, and each its "
            "own name: datasets.load(…, name=…)"
        )
    return datasets_read


def _reusable_run_id_by_key(store: MemoryStore) -> dict[str, str]:
    """Give the runs of the store by what they depend on, the latest of each kind."""
    run_id_by_key: dict[str, str] = {}
    for run_id, provenance_text in store.runs.listing().select("run_id", "provenance").iter_rows():
        provenance = json.loads(provenance_text)
        # What a model did not answer is asked again.
        if "code" in provenance and not provenance.get("llm", {}).get("unanswered"):
            run_id_by_key.setdefault(run_replay.run_key_of_provenance(provenance), run_id)
    return run_id_by_key
