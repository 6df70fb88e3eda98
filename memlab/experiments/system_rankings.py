"""What systems return: read as pipelines, memories or files, trained where they learn, and asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from memlab.embed import Encoder
from memlab.errors import DataError, PipelineError
from memlab.evaluate import read_run
from memlab.experiments.folds import has_untrained_stage, train_folds, with_models
from memlab.experiments.running import MODELS_FOLDER
from memlab.memories import (
    Memory,
    ReturnedTexts,
    collect,
    is_module_reference,
    memory,
    read_ranking,
    run_to_returned_texts,
)
from memlab.pipelines import Pipeline, pipeline
from memlab.records import Dataset
from memlab.retrieve import Bench
from memlab.store import MemoryStore

DEFAULT_DEPTH = 50
N_TIMED_QUESTIONS = 20
System = Pipeline | Memory | ReturnedTexts


@dataclass(frozen=True)
class AskingOptions:
    """How systems are asked: what :func:`memlab.compare` and :func:`memlab.answer_questions` share.

    :param runs: files of what other systems have ranked: TREC runs of turns, or what
        :func:`memlab.memories.read_ranking` reads.
    :param encoder: of the pipelines, and of the attribution.
    :param store: where the encoder's vectors are kept.
    :param folder: where what memories returned is kept, so that a comparison that was stopped goes on.
    :param cross_validate: ``"scope"``: ``learned`` without a model ranks each conversation by one that learned from the
        others, kept under ``models``.
    :param k: texts that a system gives at most.
    :param timeout: seconds of one request to a memory.
    """

    runs: Sequence[str | Path] = ()
    encoder: Encoder | str | None = "settings"
    store: MemoryStore | str | Path | None = None
    folder: str | Path | None = None
    cross_validate: str | None = None
    models: str | Path = MODELS_FOLDER
    k: int = DEFAULT_DEPTH
    timeout: float = 600.0
    seed: int = 0

    def read(self, systems: Any, data: Dataset, others: Sequence[str] = ()) -> dict[str, System]:
        """Read one system, several, or several by name, and the rankings of :attr:`runs`, by their names in tables.

        :param others: further names that stand in the tables.
        :raises DataError: when there is nothing, or two have one name.
        """
        listed = systems if isinstance(systems, (list, tuple, Mapping)) else [systems]
        pairs = listed.items() if isinstance(listed, Mapping) else [(_system_name(system), system) for system in listed]
        named: list[tuple[str, System]] = [(name, self._system(system)) for name, system in pairs]
        files = [self._file(Path(path), data) for path in self.runs]
        named += [(each.name, each) for each in files]
        names = [*(name for name, _ in named), *others]
        if not names or len(set(names)) < len(names):
            raise DataError(f"systems are {names}; give at least one, each its own name")
        return dict(named)

    def bench(self, data: Dataset) -> Bench:
        """Make the bench of the pipelines."""
        store = str(self.store) if isinstance(self.store, Path) else self.store
        return Bench.of(data, encoder=self.encoder, store=store)

    def returned(
        self, named: Mapping[str, System], bench: Bench, data: Dataset, *, timed: bool = False
    ) -> Iterator[tuple[ReturnedTexts, np.ndarray]]:
        """Ask one system after the other all questions; with the times of single searches in milliseconds."""
        pipelines = [system for system in named.values() if isinstance(system, Pipeline)]
        crossed = self.cross_validate == "scope" and has_untrained_stage(pipelines)
        if crossed:
            train_folds(bench, data, self.models, seed=self.seed)
        for name, system in named.items():
            if isinstance(system, ReturnedTexts):
                yield system, np.array([])
            elif isinstance(system, Pipeline):
                (stages,) = with_models([system], self.models) if crossed else [system]
                found = run_to_returned_texts(stages.run(bench).top(self.k), data, name)
                yield found, _time_questions(stages, bench, self.seed) if timed else np.array([])
            else:
                found = collect(system, data, name=name, k=self.k, folder=self.folder, timeout=self.timeout)
                yield found, found.costs.explode("query_ms")["query_ms"].drop_nulls().to_numpy()

    def _system(self, system: Any) -> Pipeline | Memory:
        if isinstance(system, Pipeline):
            return system
        if isinstance(system, str) and "://" not in system and not is_module_reference(system):
            try:
                return pipeline(system)
            except PipelineError as error:
                raise PipelineError(f"{error}; a memory is written module:name or http://HOST:PORT") from None
        return memory(system, timeout=self.timeout)

    def _file(self, path: Path, data: Dataset) -> ReturnedTexts:
        if path.suffix in (".json", ".jsonl"):
            return read_ranking(path, data, k=self.k)
        return run_to_returned_texts(read_run(path, "turn").top(self.k), data, path.stem)


def _system_name(system: Any) -> str:
    if isinstance(system, (str, Pipeline)):
        return str(system)
    return str(getattr(system, "__name__", type(system).__name__))


def _time_questions(stages: Pipeline, bench: Bench, seed: int) -> np.ndarray:
    """Time single questions, in milliseconds, each encoded anew where a stage reads its vector.

    The first warms models and indexes, and is asked twice.
    """
    rows = np.random.default_rng(seed).permutation(bench.queries.height)[:N_TIMED_QUESTIONS]
    spent = []
    for row in (*rows[:1], *rows):
        alone = bench.with_rows(np.array([row]), stored=False)
        started = perf_counter()
        stages.run(alone.with_queries(alone.queries))
        spent.append(1000 * (perf_counter() - started))
    return np.array(spent[1:])
