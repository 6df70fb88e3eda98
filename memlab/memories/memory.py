"""Whatever can be searched, as a memory with all its verbs."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.memories.http_client import HttpMemory
from memlab.memories.memory_identity import describe_memory
from memlab.memories.returned_rows import error_line
from memlab.memories.row_limits import (
    MEM0_ARGUMENTS,
    LangChainSearch,
    is_langchain_retriever,
    is_mem0,
    llamaindex_limit,
    mem0_names,
    mem0_notes,
    owner_of,
)

TURNS = {
    "id": pl.String(),
    "session": pl.String(),
    "speaker": pl.String(),
    "time": pl.Datetime("us", "UTC"),
    "text": pl.String(),
}
"""Columns of what a memory takes in; ``time`` may be null."""

_SCOPE = ("scope", "user_id", "filters")


class Memory:
    """A memory: ``reset``, ``ingest``, ``wait`` and ``search``.

    Each verb of the system is given what it names.

    A verb that the system lacks has a plain default: its ``add`` is called turn by turn instead of
    ``ingest``, a class whose search takes no scope is made anew for each scope, and nothing is
    waited for. Retrievers of LangChain and LlamaIndex, and mem0, are given k in their own way (see
    ``memlab.memories.row_limits``); ``notes`` has a line for what a mem0 cannot be given.

    :param system: a class, an object or a function, as :func:`memory` takes them.
    :raises DataError: when it cannot be made, has no search, or its search takes what nobody gives.
    """

    def __init__(self, system: Any) -> None:
        self._system = system
        self._turns = dict[str, pl.DataFrame]()
        first = self._make()
        name = getattr(system, "__name__", type(system).__name__)
        search = _find_search_method(first)
        if search is None:
            raise DataError(f"{name} has no search; a memory is a function or has search(query, k)")
        takes = _read_search_parameters(search, first)
        self.notes = list[str]()
        given = _search_arguments("", "", 1, None)
        if is_mem0(owner_of(search, first)):
            given |= MEM0_ARGUMENTS
            self.notes = mem0_notes(takes)
        _check_parameters(name, takes, given)
        self._scoped = not takes.keys().isdisjoint(_SCOPE)
        self._each = inspect.isclass(system) and not self._scoped
        keeps = _find_method(first, "ingest", "add")
        is_emptied = self._scoped or self._each or _find_method(first, "reset")
        if keeps and not is_emptied:
            raise DataError(
                f"the search of {name} takes no scope or user_id; "
                "give the class: an object for each scope"
            )
        self._objects = dict[str, Any]()
        if not self._each:
            self._objects[""] = first
        self._langchain = LangChainSearch()
        self.settings = describe_memory(system, first)

    def reset(self, scope: str) -> None:
        """Forget everything of a scope: one user, one memory."""
        self._turns.pop(scope, None)
        self._objects.pop(scope, None)
        system = self._object(scope)
        for name in ("reset", "delete_all"):
            reset = _find_method(system, name)
            # Where scopes stand side by side, never one that forgets them all.
            if reset and self._forgets_one_scope(reset):
                _call_with_accepted_arguments(reset, _scope_arguments(scope))
                break
        if initialize := _find_method(system, "initialize"):
            _call_with_accepted_arguments(initialize, _scope_arguments(scope))

    def _forgets_one_scope(self, reset: Callable[..., Any]) -> bool:
        return not self._scoped or not _read_parameters(reset).keys().isdisjoint(_SCOPE)

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        """Take in turns, :data:`TURNS`, in order of time; may be called again with later ones."""
        whole = turns
        if scope in self._turns:
            whole = pl.concat([self._turns[scope], turns])
        self._turns[scope] = whole
        system = self._object(scope)
        if ingest := _find_method(system, "ingest"):
            _call_with_accepted_arguments(ingest, _scope_arguments(scope), turns=turns)
        elif add := _find_method(system, "add"):
            for turn in turns.iter_rows(named=True):
                text, about = _add_arguments(turn)
                given = {**_scope_arguments(scope), **about}
                _call_with_accepted_arguments(add, given, text=text)

    def wait(self) -> None:
        """Return when what was taken in can be found."""
        for system in self._objects.values():
            if wait := _find_method(system, "wait"):
                wait()

    def search(self, scope: str, query: str, k: int, now: datetime | None) -> Any:
        """Give at most ``k`` texts, best first, as ``list_returned_rows`` reads them.

        :param now: when it is asked; ``None`` where nobody knows.
        """
        system = self._object(scope)
        search = _find_search_method(system)
        owner = owner_of(search, system)
        if is_langchain_retriever(search, owner):
            return self._langchain(search, query, k)
        takes = _read_search_parameters(search, system)
        given = _search_arguments(scope, query, k, now)
        given["turns"] = self._turns.get(scope, pl.DataFrame(schema=TURNS))
        if "queries" in takes:  # one that takes several, each with its time
            given["now"] = [now]
        if is_mem0(owner):
            given |= MEM0_ARGUMENTS
        with llamaindex_limit(owner, takes, k):
            return _call_with_accepted_arguments(search, given, takes, query=query)

    def usage(self, scope: str) -> Any:
        """Say what a scope takes on disk and what models read for it, where the system does."""
        usage = _find_method(self._object(scope), "usage")
        if usage is None:
            return {}
        return _call_with_accepted_arguments(usage, _scope_arguments(scope))

    def model_calls(self, scope: str) -> list[dict[str, Any]]:
        """Give what a scope asked of a model by phase, where somebody counts that.

        :returns: rows of :data:`memlab.memories.collecting.CALLS_SCHEMA`.
        """
        return []

    def _object(self, scope: str) -> Any:
        key = scope if self._each else ""
        if key not in self._objects:
            self._objects[key] = self._make()
        return self._objects[key]

    def _make(self) -> Any:
        if not inspect.isclass(self._system):
            return self._system
        try:
            return self._system()
        except Exception as error:  # whatever somebody else's code raises
            name = self._system.__name__
            what = error_line(error)
            raise DataError(f"{name}() failed ({what}); give an object that is made") from error


def import_memory(text: str) -> Any:
    """Import what ``module:name`` names.

    :raises DataError: when it cannot be imported.
    """
    module, _, name = text.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except DataError:
        raise
    except (Exception, SystemExit) as error:  # whatever the code of a module raises
        raise DataError(
            f"{text!r} cannot be imported ({error_line(error)}); is the module here?"
        ) from error


def memory(system: Any, *, timeout: float = 600.0) -> Memory:
    """Make a memory of a function, a class, an object, ``module:name``, or an ``http://`` address.

    :param system: what searches: it takes a query, and by name what else it needs: ``k`` (or
        ``top_k``, ``limit``), ``turns`` (:data:`TURNS`), ``scope`` (or ``user_id``), ``now``.
    :param timeout: seconds for one request to an address.
    :raises DataError: when it is none of these; says what it lacks.

    >>> from memlab.memories import memory
    >>> latest = memory(lambda query, turns, k: turns["text"].tail(k))
    >>> latest.search("ann", "Who?", 3, None).to_list()
    []
    """
    if isinstance(system, Memory):
        return system
    if not isinstance(system, str):
        return Memory(system)
    if system.startswith(("http://", "https://")):
        return Memory(HttpMemory(system, timeout=timeout))
    if not is_module_reference(system):
        raise DataError(
            f"{system!r} names no memory; write module:name, such as my_system:search, "
            "or http://HOST:PORT"
        )
    return Memory(import_memory(system))


def is_module_reference(text: str) -> bool:
    """Say whether a text is ``module:name``, and neither a pipeline nor an address."""
    return re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*", text) is not None


def _check_parameters(name: str, takes: Mapping[str, bool], given: Mapping[str, Any]) -> None:
    """Refuse a search that needs what nobody gives; the query may have any name."""
    strange = [each for each, is_needed in takes.items() if is_needed and each not in given]
    n_unnamed = 0 if "query" in takes else 1
    if len(strange) > n_unnamed:
        raise DataError(f"{name} takes {', '.join(strange)}; a search takes {', '.join(given)}")


def _add_arguments(turn: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Give the text of a turn for ``add``, and what else it may take."""
    text = turn["text"]
    if turn["speaker"]:
        text = f"{turn['speaker']}: {text}"
    about = {"turn": turn["id"], "session": turn["session"], "speaker": turn["speaker"]}
    about["time"] = turn["time"] and turn["time"].isoformat()
    messages = [{"role": "user", "content": text}]
    return text, {**about, "id": turn["id"], "metadata": about, "messages": messages}


def _find_method(system: Any, *names: str) -> Callable[..., Any] | None:
    """Find the first of these names that can be called."""
    for name in names:
        verb = getattr(system, name, None)
        if callable(verb):
            return verb
    return None


def _find_search_method(system: Any) -> Any:
    """Find what searches: ``invoke`` of a retriever of LangChain, ``retrieve`` of LlamaIndex."""
    named = _find_method(system, "search", "retrieve", "invoke")
    if named is None and callable(system):
        return system
    return named


def _read_parameters(function: Callable[..., Any]) -> dict[str, bool]:
    """Give the names of a function's parameters, and whether each is needed."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some functions of C say nothing
        return {}
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = dict[str, bool]()
    for each in parameters:
        if each.kind not in several:
            named[each.name] = each.default is each.empty
    return named


def _read_search_parameters(search: Callable[..., Any], system: Any) -> dict[str, bool]:
    """Give the names that a search takes, of mem0 also those that only its ``**kwargs`` takes."""
    takes = _read_parameters(search)
    if not is_mem0(owner_of(search, system)):
        return takes
    return dict.fromkeys(mem0_names(search), False) | takes


def _call_with_accepted_arguments(
    function: Callable[..., Any],
    given: Mapping[str, Any],
    takes: Mapping[str, bool] | None = None,
    **first: Any,
) -> Any:
    """Call a function with what it names.

    :param takes: the names, where they are known; read here by default.
    :param first: goes to the first other parameter where none has its name.
    """
    names = takes or _read_parameters(function)
    given = {**given, **first}
    if names.keys().isdisjoint(first):
        other = [name for name in names if name not in given]
        given |= dict(zip(other, first.values(), strict=False))
    return function(**{name: given[name] for name in names if name in given})


def _scope_arguments(scope: str) -> dict[str, Any]:
    return {"scope": scope, "user_id": scope, "filters": {"user_id": scope}}


def _search_arguments(scope: str, query: str, k: int, now: datetime | None) -> dict[str, Any]:
    what = {"query": query, "queries": [query], "turns": None, "now": now, "query_timestamp": now}
    return {**what, "k": k, "top_k": k, "limit": k, **_scope_arguments(scope)}
