"""What a memory is: four verbs, what it takes in, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

import polars as pl

TURNS = {
    "id": pl.String(),
    "session": pl.String(),
    "speaker": pl.String(),
    "time": pl.Datetime("us", "UTC"),
    "text": pl.String(),
}
"""Columns of what a memory takes in; ``time`` may be null."""

Rows = pl.DataFrame | Sequence[Mapping[str, Any]]
"""What a search gives, best first: ``query`` (which of the queries, from 0), ``text``, and where it has them ``score``,
``source_ids`` (ids of turns that the text comes from) and ``time``."""


USAGE = ("bytes", "tokens_read", "tokens_written")


@runtime_checkable
class Memory(Protocol):
    """A memory system: a class of this shape can stand beside every pipeline.

    It may have a fifth verb, ``usage(scope)``: a mapping with any of :data:`USAGE`, what the scope takes on disk and
    what models read and wrote for it so far.

    >>> from memlab.memories import Memory, memory
    >>> isinstance(memory(lambda turns, query, k: turns["text"].head(k)), Memory)
    True
    """

    def reset(self, scope: str) -> None:
        """Forget everything of a scope: one user, one memory."""

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        """Take in turns, :data:`TURNS`, in order of time; may be called again with later ones."""

    def wait(self) -> None:
        """Return when what was taken in can be found."""

    def search(self, scope: str, queries: Sequence[str], k: int, now: Sequence[datetime | None]) -> Rows:
        """Give at most ``k`` rows for each query; ``now`` is when each is asked, ``None`` where nobody knows."""


class TurnsByScope:
    """Keeps the turns that a memory is told: what a memory that indexes them itself builds on."""

    def __init__(self) -> None:
        self._turns: dict[str, pl.DataFrame] = {}
        self._made: dict[str, Any] = {}  # of a scope's turns; gone when they change

    def turns(self, scope: str) -> pl.DataFrame:
        """Give the turns of a scope so far."""
        return self._turns.get(scope, pl.DataFrame(schema=TURNS))

    def reset(self, scope: str) -> None:
        self._turns[scope] = pl.DataFrame(schema=TURNS)
        self._made.pop(scope, None)

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        self._turns[scope] = pl.concat([self.turns(scope), turns])
        self._made.pop(scope, None)

    def wait(self) -> None:
        """Nothing is left to do."""
