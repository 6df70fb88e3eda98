"""A bench that is made when the first run needs it, and the runs over it: one after the other, or on many workers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from memlab.distributed import spread
from memlab.embed import Encoder
from memlab.embed.spread import loaded
from memlab.experiments.identity import code
from memlab.pipelines import Pipeline
from memlab.records import Dataset, Level, Run
from memlab.retrieve import Bench
from memlab.store import MemoryStore

Cell = tuple[Pipeline, Level]


@dataclass
class LazyBench:
    """A bench that is made when the first run needs it: where all runs are there, nothing is encoded."""

    data: Dataset
    encoder: Encoder | None
    store: MemoryStore | None
    header: tuple[str, ...]
    made: Bench | None
    engine: str

    @cached_property
    def fingerprint(self) -> str:
        return self.data.fingerprint()

    def about(self, stages: Pipeline, level: Level) -> dict[str, Any]:
        """Give what a run depends on, in the words of its provenance."""
        about: dict[str, Any] = {"dataset": self.data.name, "fingerprint": self.fingerprint, "level": level}
        if self.encoder is not None:
            about |= {"encoder": self.encoder.identity.describe(), "header": list(self.header)}
        if self.made is not None:
            about |= {k: v for k, v in self.made.provenance.items() if k in ("encoder", "header", "fingerprint")}
        return about | {"pipeline": str(stages), "code": code(), **stages.dependencies()}

    def whole(self) -> Bench:
        if self.made is None:
            self.made = Bench.of(self.data, encoder=self.encoder, store=self.store, header=self.header)
        return self.made

    def runs(self, cells: Sequence[Cell]) -> Iterator[Run]:
        """Run pipelines at levels, one after the other or on many workers."""
        if self.engine == "local" or not cells:
            ranked: Iterator[Run] = (stages.run(self.whole(), level=level) for stages, level in cells)
        else:
            self._rehearse(cells)
            assert self.store is not None  # checked before
            there: Any = self.encoder
            encoder = there and (there.spec, there.services, there.identity)
            place = (os.getcwd(), self.store.uri, self.fingerprint, self.data, encoder, self.header)
            ranked = map(self.whole().show, spread(_ranked_there, cells, *place, engine=self.engine))
        for cell, run in zip(cells, ranked, strict=True):
            # As it comes back from the store, so that a report does not show whether its run was read.
            about = {**run.provenance, **self.about(*cell)}
            yield replace(run, provenance=json.loads(json.dumps(about, sort_keys=True)))

    def _rehearse(self, cells: Sequence[Cell]) -> None:
        """Rank a question of each scope here, so that what pipelines encode is encoded once, by all workers."""
        bench = self.whole()
        bench.query_vectors  # noqa: B018
        rows = bench.queries.with_row_index("row").unique("scope", keep="first", maintain_order=True)["row"]
        part = bench.with_rows(rows.to_numpy())
        for stages, level in cells:
            stages.run(part, level=level)


def _ranked_there(
    cell: Cell, folder: str, uri: str, fingerprint: str, data: Dataset, encoder: Any, header: tuple[str, ...]
) -> Run:
    """Run a pipeline on a worker, which keeps the bench for the next."""
    if os.path.isdir(folder):
        os.chdir(folder)  # paths of models and of the store start there
    place = (uri, fingerprint, encoder and encoder[-1], header)
    if place not in _there:
        _there.clear()
        own, store = encoder and loaded(*encoder), MemoryStore.open(uri, create=False)
        _there[place] = Bench.of(data, encoder=own, store=store, header=header, ingest=False, progress=False)
    stages, level = cell
    return replace(stages.run(_there[place], level=level), text_of=None, evidence=None)


_there: dict[tuple[Any, ...], Bench] = {}  # of a worker: the last
