"""A memory whose calls of its model are counted while it writes and while it searches."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import polars as pl

from memlab.llm.proxy import ModelProxy
from memlab.llm.proxy.call_counts import SEARCHING, WRITING, Counts
from memlab.memories.memory import Memory, SearchableSystem, import_by_module_reference
from memlab.memories.returned_rows import JsonValue, SearchAnswer


class ProxiedMemory(Memory):
    """A memory that asks its model through a proxy.

    What it is includes the recording and the service, so that results of another recording are not
    taken for its own.

    :param system: a class, an object, a function or ``module:name``.
    :param proxy: one that listens; it counts by phase.

    >>> from memlab.llm.proxy import ModelProxy
    >>> with ModelProxy(None) as proxy:
    ...     system = ProxiedMemory(lambda query, turns, k: turns["text"].tail(k), proxy)
    ...     _ = system.search("ann", "Who?", 3, None)
    >>> [row["calls"] for row in system.model_calls("ann")]
    [0, 0]
    """

    def __init__(self, system: SearchableSystem, proxy: ModelProxy) -> None:
        self._proxy = proxy
        self._counts = dict[str, Counts]()
        self._scope = ""
        super().__init__(import_by_module_reference(system) if isinstance(system, str) else system)
        service = proxy.service and [proxy.service.name, proxy.service.model]
        self.settings = {**self.settings, "recording": proxy.digest, "service": service}

    def _get_or_create_counts(self, scope: str) -> Counts:
        return self._counts.setdefault(scope, Counts())

    def reset(self, scope: str) -> None:
        """Forget everything of a scope."""
        self._scope = scope
        self._counts[scope] = Counts()
        with self._proxy.counting(WRITING, self._get_or_create_counts(scope)):
            super().reset(scope)

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        """Take in turns."""
        with self._proxy.counting(WRITING, self._get_or_create_counts(scope)):
            super().ingest(scope, turns)

    def wait(self) -> None:
        """Return when what was taken in can be found."""
        with self._proxy.counting(WRITING, self._get_or_create_counts(self._scope)):
            super().wait()

    def search(self, scope: str, query: str, k: int, now: datetime | None) -> SearchAnswer:
        """Give at most ``k`` texts."""
        with self._proxy.counting(SEARCHING, self._get_or_create_counts(scope)):
            return super().search(scope, query, k, now)

    def usage(self, scope: str) -> JsonValue:
        """Say what a scope takes, and where the memory does not, what its model read and wrote."""
        stated_usage = super().usage(scope)
        if not isinstance(stated_usage, Mapping):
            return stated_usage
        counted_usage = {"tokens_read": 0, "tokens_written": 0}
        for phase_counts in self._get_or_create_counts(scope).phases.values():
            counted_usage["tokens_read"] += phase_counts.read
            counted_usage["tokens_written"] += phase_counts.written
        return counted_usage | {
            usage_name: usage_value
            for usage_name, usage_value in stated_usage.items()
            if usage_value is not None
        }

    def model_calls(self, scope: str) -> list[dict[str, Any]]:
        """Give what a scope asked of the model, a row a phase, also of one that asked nothing."""
        call_rows = list[dict[str, Any]]()
        for phase_name in (WRITING, SEARCHING):
            phase_counts = self._get_or_create_counts(scope).get_or_add_counts_of_phase(phase_name)
            refusals = phase_counts.unanswered()
            call_row = {
                "scope": scope,
                "phase": phase_name,
                **phase_counts.describe(*self._proxy.prices),
            }
            call_row |= {"prompts": len(phase_counts.asked), "prompts_refused": len(refusals)}
            call_row["refusal"] = next(iter(refusals.values()), None)
            call_rows.append(call_row)
        return call_rows
