"""From whatever somebody has to a memory: an object, a class, a function, a module's name, an address."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import polars as pl

from memlab.errors import DataError, PipelineError
from memlab.memories.contract import Memory, Rows, TurnsByScope
from memlab.memories.http import HttpMemory
from memlab.sources import source_digest


class FromFunction(TurnsByScope):
    """A function ``search(turns, query, k)`` as a memory that holds all turns of a scope.

    :param function: takes turns, :data:`TURNS`, a query and k; gives texts, rows or a frame, best first. Where it has a
        parameter ``now``, it is told when the query is asked.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self._dated = "now" in inspect.signature(function).parameters

    def search(self, scope: str, queries: Sequence[str], k: int, now: Sequence[datetime | None]) -> Rows:
        turns = self.turns(scope)
        rows: list[dict[str, Any]] = []
        for number, (query, asked) in enumerate(zip(queries, now, strict=True)):
            about = {"now": asked} if self._dated else {}
            answer = self.function(turns, query, k, **about)
            items = answer.to_dicts() if isinstance(answer, pl.DataFrame) else list(answer)
            rows += [{**({"text": item} if isinstance(item, str) else item), "query": number} for item in items]
        return rows


def memory(system: Any) -> Memory:
    """Read a memory: an object or a class with the four verbs, a function, ``module:name``, or an ``http://`` address.

    :raises DataError: when it is none of these, and says which verb is missing.

    >>> from memlab.memories import memory
    >>> memory("statistics:mean")
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: 'statistics:mean' takes (data); a memory that is a function takes (turns, query, k)
    """
    name = repr(system) if isinstance(system, str) else getattr(system, "__name__", type(system).__name__)
    if isinstance(system, str):
        if system.startswith(("http://", "https://")):
            return HttpMemory(system)
        system = _imported(system)
    if inspect.isclass(system):
        system = system()
    if isinstance(system, Memory):
        return system
    if not inspect.isroutine(system):
        missing = [verb for verb in ("reset", "ingest", "wait", "search") if not hasattr(system, verb)]
        raise DataError(f"{name} has no {', '.join(missing)}; a memory has reset, ingest, wait and search")
    taken = tuple(inspect.signature(system).parameters)
    if taken[:3] != ("turns", "query", "k"):
        raise DataError(f"{name} takes ({', '.join(taken)}); a memory that is a function takes (turns, query, k)")
    return FromFunction(system)


def described(system: Memory) -> dict[str, Any]:
    """Say what a memory is, for provenance: what changes with its code, as far as that can be read here.

    >>> from memlab.memories.loading import described, memory
    >>> described(memory("http://127.0.0.1:9000"))
    {'url': 'http://127.0.0.1:9000'}
    """
    if isinstance(system, HttpMemory):
        return {"url": system.url}
    if isinstance(system, FromFunction):
        return {"function": system.function.__qualname__, "source": source(system.function)}
    kind = type(system)
    settings = getattr(system, "settings", None)
    about = {"class": f"{kind.__module__}.{kind.__qualname__}", "source": source(kind)}
    return about | ({"settings": dict(settings)} if isinstance(settings, Mapping) else {})


def source(code: Any) -> str | None:
    """Give a digest of what code says, as far as that can be read here."""
    try:
        if inspect.isfunction(code):
            return source_digest(code)
        return hashlib.sha256(inspect.getsource(code).encode()).hexdigest()[:16]
    except (PipelineError, OSError, TypeError):
        return None


def _imported(name: str) -> Any:
    module, colon, attribute = name.partition(":")
    if not colon or not attribute.isidentifier():
        raise DataError(f"{name!r} names no memory; write module:name, such as my_system:search, or http://HOST:PORT")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise DataError(f"{name!r} cannot be imported ({type(error).__name__}: {error}); is the module here?") from None
