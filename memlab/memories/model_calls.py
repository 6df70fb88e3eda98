"""A memory whose calls of its model and encoder are counted while it writes and while it searches."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import polars as pl

from memlab.llm.proxy import ModelProxy
from memlab.llm.proxy.counts import SEARCHING, WRITING
from memlab.memories.memory import Memory, import_memory


class ProxiedMemory(Memory):
    """A memory that asks its model through a proxy.

    :param system: a class, an object, a function or ``module:name``.
    :param proxy: one that listens; it counts by phase.

    >>> from memlab.llm.proxy import ModelProxy
    >>> with ModelProxy(None) as proxy:
    ...     system = ProxiedMemory(lambda query, turns, k: turns["text"].tail(k), proxy)
    ...     _ = system.search("ann", "Who?", 3, None)
    >>> list(proxy.counts.phases)
    []
    """

    def __init__(self, system: Any, proxy: ModelProxy) -> None:
        self._proxy = proxy
        super().__init__(import_memory(system) if isinstance(system, str) else system)
        self._begun = self._tokens()

    def reset(self, scope: str) -> None:
        """Forget everything of a scope."""
        self._begun = self._tokens()
        with self._proxy.counting(WRITING):
            super().reset(scope)

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        """Take in turns."""
        with self._proxy.counting(WRITING):
            super().ingest(scope, turns)

    def wait(self) -> None:
        """Return when what was taken in can be found."""
        with self._proxy.counting(WRITING):
            super().wait()

    def search(self, scope: str, query: str, k: int, now: datetime | None) -> Any:
        """Give at most ``k`` texts."""
        with self._proxy.counting(SEARCHING):
            return super().search(scope, query, k, now)

    def usage(self, scope: str) -> Any:
        """Say what a scope takes, and where the memory does not, what its model read and wrote."""
        said = super().usage(scope)
        if not isinstance(said, Mapping):
            return said
        read, written = self._tokens()
        own = {"tokens_read": read - self._begun[0], "tokens_written": written - self._begun[1]}
        return own | {name: value for name, value in said.items() if value is not None}

    def _tokens(self) -> tuple[int, int]:
        phases = self._proxy.counts.phases.values()
        return sum(each.read for each in phases), sum(each.written for each in phases)
