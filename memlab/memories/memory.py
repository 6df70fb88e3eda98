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
from memlab.memories.memory_identity import SearchableSystem, describe_memory_for_provenance
from memlab.memories.returned_rows import JsonValue, SearchAnswer, format_error_line
from memlab.memories.search_limits_of_frameworks import (
    MEM0_ARGUMENTS,
    LangChainSearch,
    is_invoke_of_langchain_retriever,
    is_mem0_object,
    mem0_names_taken_by_kwargs,
    notes_on_missing_mem0_parameters,
    owner_of_search_method,
    set_llamaindex_limit_to_k,
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
    ``memlab.memories.search_limits_of_frameworks``); ``notes`` has a line for what a mem0 cannot be
    given.

    :param system: a class, an object or a function, as :func:`memory` takes them.
    :raises DataError: when it cannot be made, has no search, or its search takes what nobody gives.
    """

    def __init__(self, system: SearchableSystem) -> None:
        self._system = system
        self._turns = dict[str, pl.DataFrame]()
        first_object = self._make_or_reuse_system_object()
        system_name = getattr(system, "__name__", type(system).__name__)
        search_method = _find_search_callable(first_object)
        if search_method is None:
            raise DataError(
                f"{system_name} has no search; a memory is a function or has search(query, k)"
            )
        search_parameters = _is_needed_by_search_parameter(search_method, first_object)
        self.notes = list[str]()
        search_arguments = _search_arguments_under_every_name("", "", 1, None)
        if is_mem0_object(owner_of_search_method(search_method, first_object)):
            search_arguments |= MEM0_ARGUMENTS
            self.notes = notes_on_missing_mem0_parameters(search_parameters)
        _raise_if_search_needs_unknown_argument(system_name, search_parameters, search_arguments)
        self._scoped = not search_parameters.keys().isdisjoint(_SCOPE)
        self._each = inspect.isclass(system) and not self._scoped
        keeping_method = _first_callable_attribute_or_none(first_object, "ingest", "add")
        is_emptied = (
            self._scoped or self._each or _first_callable_attribute_or_none(first_object, "reset")
        )
        if keeping_method and not is_emptied:
            raise DataError(
                f"the search of {system_name} takes no scope or user_id; "
                "give the class: an object for each scope"
            )
        self._objects = dict[str, Any]()
        if not self._each:
            self._objects[""] = first_object
        self._langchain = LangChainSearch()
        self.settings = describe_memory_for_provenance(system, first_object)

    def reset(self, scope: str) -> None:
        """Forget everything of a scope: one user, one memory."""
        self._turns.pop(scope, None)
        self._objects.pop(scope, None)
        scope_object = self._get_or_make_object_of_scope(scope)
        for verb_name in ("reset", "delete_all"):
            reset_method = _first_callable_attribute_or_none(scope_object, verb_name)
            # Where scopes stand side by side, never one that forgets them all.
            if reset_method and self._resets_only_one_scope(reset_method):
                _call_with_accepted_arguments(
                    reset_method, _scope_under_every_parameter_name(scope)
                )
                break
        initialize_method = _first_callable_attribute_or_none(scope_object, "initialize")
        if initialize_method:
            _call_with_accepted_arguments(
                initialize_method, _scope_under_every_parameter_name(scope)
            )

    def _resets_only_one_scope(self, reset_method: Callable[..., Any]) -> bool:
        return not self._scoped or not _is_needed_by_parameter_name(reset_method).keys().isdisjoint(
            _SCOPE
        )

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        """Take in turns, :data:`TURNS`, in order of time; may be called again with later ones."""
        all_turns = turns
        if scope in self._turns:
            all_turns = pl.concat([self._turns[scope], turns])
        self._turns[scope] = all_turns
        scope_object = self._get_or_make_object_of_scope(scope)
        ingest_method = _first_callable_attribute_or_none(scope_object, "ingest")
        add_method = _first_callable_attribute_or_none(scope_object, "add")
        if ingest_method:
            _call_with_accepted_arguments(
                ingest_method, _scope_under_every_parameter_name(scope), turns=turns
            )
        elif add_method:
            for turn_row in turns.iter_rows(named=True):
                turn_text, turn_arguments = _text_and_other_arguments_of_add(turn_row)
                add_arguments = {**_scope_under_every_parameter_name(scope), **turn_arguments}
                _call_with_accepted_arguments(add_method, add_arguments, text=turn_text)

    def wait(self) -> None:
        """Return when what was taken in can be found."""
        for made_object in self._objects.values():
            wait_method = _first_callable_attribute_or_none(made_object, "wait")
            if wait_method:
                wait_method()

    def search(self, scope: str, query: str, k: int, now: datetime | None) -> SearchAnswer:
        """Give at most ``k`` texts, best first, as ``list_returned_rows`` reads them.

        :param now: when it is asked; ``None`` where nobody knows.
        """
        scope_object = self._get_or_make_object_of_scope(scope)
        search_method: Any = _find_search_callable(scope_object)
        method_owner = owner_of_search_method(search_method, scope_object)
        if is_invoke_of_langchain_retriever(search_method, method_owner):
            return self._langchain(search_method, query, k)
        search_parameters = _is_needed_by_search_parameter(search_method, scope_object)
        search_arguments = _search_arguments_under_every_name(scope, query, k, now)
        search_arguments["turns"] = self._turns.get(scope, pl.DataFrame(schema=TURNS))
        if "queries" in search_parameters:  # one that takes several, each with its time
            search_arguments["now"] = [now]
        if is_mem0_object(method_owner):
            search_arguments |= MEM0_ARGUMENTS
        with set_llamaindex_limit_to_k(method_owner, search_parameters, k):
            return _call_with_accepted_arguments(
                search_method, search_arguments, search_parameters, query=query
            )

    def usage(self, scope: str) -> JsonValue:
        """Say what a scope takes on disk and what models read for it, where the system does."""
        usage_method = _first_callable_attribute_or_none(
            self._get_or_make_object_of_scope(scope), "usage"
        )
        if usage_method is None:
            return {}
        return _call_with_accepted_arguments(usage_method, _scope_under_every_parameter_name(scope))

    def model_calls(self, scope: str) -> list[dict[str, Any]]:
        """Give what a scope asked of a model by phase, where somebody counts that.

        :returns: rows of :data:`memlab.memories.running_a_memory.CALLS_SCHEMA`.
        """
        return []

    def _get_or_make_object_of_scope(self, scope: str) -> SearchableSystem:
        object_key = scope if self._each else ""
        if object_key not in self._objects:
            self._objects[object_key] = self._make_or_reuse_system_object()
        return self._objects[object_key]

    def _make_or_reuse_system_object(self) -> SearchableSystem:
        if not inspect.isclass(self._system):
            return self._system
        try:
            return self._system()
        except Exception as error:  # whatever somebody else's code raises
            class_name = self._system.__name__
            failure = format_error_line(error)
            raise DataError(
                f"{class_name}() failed ({failure}); give an object that is made"
            ) from error


def import_by_module_reference(module_reference: str) -> SearchableSystem:
    """Import what ``module:name`` names.

    :raises DataError: when it cannot be imported.
    """
    module_name, _, system_name = module_reference.partition(":")
    try:
        return getattr(importlib.import_module(module_name), system_name)
    except DataError:
        raise
    except (Exception, SystemExit) as error:  # whatever the code of a module raises
        raise DataError(
            f"{module_reference!r} cannot be imported ({format_error_line(error)}); is the module "
            "here?"
        ) from error


def memory(system: SearchableSystem, *, timeout: float = 600.0) -> Memory:
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
    return Memory(import_by_module_reference(system))


def is_module_reference(text: str) -> bool:
    """Say whether a text is ``module:name``, and neither a pipeline nor an address."""
    return re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*", text) is not None


def _raise_if_search_needs_unknown_argument(
    system_name: str, is_needed_by_name: Mapping[str, bool], search_arguments: Mapping[str, Any]
) -> None:
    """Refuse a search that needs what nobody gives; the query may have any name."""
    strange_names = [
        parameter
        for parameter, is_needed in is_needed_by_name.items()
        if is_needed and parameter not in search_arguments
    ]
    n_unnamed = 0 if "query" in is_needed_by_name else 1
    if len(strange_names) > n_unnamed:
        raise DataError(
            f"{system_name} takes {', '.join(strange_names)}; a search takes "
            f"{', '.join(search_arguments)}"
        )


def _text_and_other_arguments_of_add(turn_row: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Give the text of a turn for ``add``, and what else it may take."""
    turn_text = turn_row["text"]
    if turn_row["speaker"]:
        turn_text = f"{turn_row['speaker']}: {turn_text}"
    turn_fields = {
        "turn": turn_row["id"],
        "session": turn_row["session"],
        "speaker": turn_row["speaker"],
    }
    turn_fields["time"] = turn_row["time"] and turn_row["time"].isoformat()
    chat_messages = [{"role": "user", "content": turn_text}]
    return turn_text, {
        **turn_fields,
        "id": turn_row["id"],
        "metadata": turn_fields,
        "messages": chat_messages,
    }


def _first_callable_attribute_or_none(
    method_owner: object, *method_names: str
) -> Callable[..., Any] | None:
    """Find the first of these names that can be called."""
    for verb_name in method_names:
        found_method = getattr(method_owner, verb_name, None)
        if callable(found_method):
            return found_method
    return None


def _find_search_callable(system: SearchableSystem) -> Callable[..., SearchAnswer] | None:
    """Find what searches: ``invoke`` of a retriever of LangChain, ``retrieve`` of LlamaIndex."""
    named_method = _first_callable_attribute_or_none(system, "search", "retrieve", "invoke")
    if named_method is None and callable(system):
        return system
    return named_method


def _is_needed_by_parameter_name(function: Callable[..., Any]) -> dict[str, bool]:
    """Give the names of a function's parameters, and whether each is needed."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some functions of C say nothing
        return {}
    variadic_kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    is_needed_by_name = dict[str, bool]()
    for parameter in parameters:
        if parameter.kind not in variadic_kinds:
            is_needed_by_name[parameter.name] = parameter.default is parameter.empty
    return is_needed_by_name


def _is_needed_by_search_parameter(
    search_method: Callable[..., Any], system: SearchableSystem
) -> dict[str, bool]:
    """Give the names that a search takes, of mem0 also those that only its ``**kwargs`` takes."""
    parameters = _is_needed_by_parameter_name(search_method)
    if not is_mem0_object(owner_of_search_method(search_method, system)):
        return parameters
    return dict.fromkeys(mem0_names_taken_by_kwargs(search_method), False) | parameters


def _call_with_accepted_arguments(
    function: Callable[..., Any],
    given_arguments: Mapping[str, Any],
    is_needed_by_name: Mapping[str, bool] | None = None,
    **first_argument: Any,
) -> Any:
    """Call a function with what it names.

    :param is_needed_by_name: the names, where they are known; read here by default.
    :param first_argument: goes to the first other parameter where none has its name.
    """
    accepted_names = is_needed_by_name or _is_needed_by_parameter_name(function)
    given_arguments = {**given_arguments, **first_argument}
    if accepted_names.keys().isdisjoint(first_argument):
        other_names = [
            parameter for parameter in accepted_names if parameter not in given_arguments
        ]
        given_arguments |= dict(zip(other_names, first_argument.values(), strict=False))
    return function(
        **{
            parameter: given_arguments[parameter]
            for parameter in accepted_names
            if parameter in given_arguments
        }
    )


def _scope_under_every_parameter_name(scope: str) -> dict[str, Any]:
    return {"scope": scope, "user_id": scope, "filters": {"user_id": scope}}


def _search_arguments_under_every_name(
    scope: str, query: str, k: int, now: datetime | None
) -> dict[str, Any]:
    query_arguments = {
        "query": query,
        "queries": [query],
        "turns": None,
        "now": now,
        "query_timestamp": now,
    }
    return {
        **query_arguments,
        "k": k,
        "top_k": k,
        "limit": k,
        **_scope_under_every_parameter_name(scope),
    }
