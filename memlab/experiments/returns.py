"""What systems return: read as pipelines, memories or files, trained where they learn, and asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from memlab.embed import Encoder
from memlab.errors import DataError, PipelineError
from memlab.evaluate import read_run
from memlab.experiments.folds import train_folds, untrained, with_models
from memlab.experiments.outcomes import clock
from memlab.memories import Memory, Returned, as_returned, collect, memory, names_module, read_ranking
from memlab.pipelines import Pipeline, pipeline
from memlab.records import Dataset
from memlab.retrieve import Bench
from memlab.store import MemoryStore

DEPTH = 50
MODELS = Path("results/cross-validated")


@dataclass(frozen=True)
class Asked:
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
    models: str | Path = MODELS
    k: int = DEPTH
    timeout: float = 600.0
    seed: int = 0

    def named(self, systems: Any) -> list[tuple[str, Pipeline | Memory]]:
        """Read one system, several, or several by name; each with the name that it has in tables."""
        if isinstance(systems, Mapping):
            return [(name, _system(system, self.timeout)) for name, system in systems.items()]
        listed = systems if isinstance(systems, (list, tuple)) else [systems]
        return [(_name(system), _system(system, self.timeout)) for system in listed]

    def files(self, data: Dataset) -> list[Returned]:
        """Read the rankings from files."""
        return [_from_file(Path(path), data, self.k) for path in self.runs]

    def bench(self, data: Dataset) -> Bench:
        return Bench.of(
            data, encoder=self.encoder, store=str(self.store) if isinstance(self.store, Path) else self.store
        )

    def returned(
        self, named: Sequence[tuple[str, Pipeline | Memory]], bench: Bench, data: Dataset, *, timed: bool = False
    ) -> Iterator[tuple[Returned, np.ndarray]]:
        """Ask one system after the other all questions; with the times of single searches in milliseconds."""
        pipelines = [system for _, system in named if isinstance(system, Pipeline)]
        crossed = self.cross_validate == "scope" and untrained(pipelines)
        if crossed:
            train_folds(bench, data, self.models, seed=self.seed)
        for name, system in named:
            if isinstance(system, Pipeline):
                (stages,) = with_models([system], self.models) if crossed else [system]
                found = as_returned(stages.run(bench).top(self.k), data, name)
                yield found, clock(stages, bench, self.seed) if timed else np.array([])
            else:
                found = collect(system, data, name=name, k=self.k, folder=self.folder, timeout=self.timeout)
                yield found, found.costs.explode("query_ms")["query_ms"].drop_nulls().to_numpy()


def distinct_names(names: Sequence[str]) -> None:
    """Refuse no name, and the same twice.

    :raises DataError: for either.
    """
    if not names or len(set(names)) < len(names):
        raise DataError(f"systems are {[*names]}; give at least one, each its own name")


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


def _from_file(path: Path, data: Dataset, k: int) -> Returned:
    if path.suffix in (".json", ".jsonl"):
        return read_ranking(path, data, k=k)
    return as_returned(read_run(path, "turn").top(k), data, path.stem)
