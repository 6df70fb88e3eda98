"""How the searches of other libraries are given k, where their parameters do not name it.

langchain-core 1.8.3: ``BaseRetriever.invoke(query, k=…)`` passes the keyword on only where
``_get_relevant_documents`` has a parameter besides the query and ``run_manager``. The retriever of
a vector store obeys it (its default is 4 rows, MMR chooses among 20), one with other parameters
raises TypeError, and one without drops it without a word.

llama-index-core 0.14.25: ``retrieve`` has no such keyword; the attribute ``similarity_top_k``
(default 2) says it.

mem0ai 2.2.1: ``search`` has ``top_k`` (default 20) and ``threshold`` (default .1), and its
``**kwargs`` swallow ``limit`` and ``k``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

MEM0_ARGUMENTS = {"threshold": 0.0}
"""What a search of mem0 is given besides: the least threshold. A negative cosine is below it."""
_LIMIT = "similarity_top_k"
_MEM0_NAMES = ("top_k", "threshold", "filters")
_REFUSED = "unexpected keyword argument 'k'"


def owner_of_search_method(search_method: Callable[..., Any], system: Any) -> Any:
    """Give the object whose method a search is; a wrapper may have borrowed the method."""
    return getattr(search_method, "__self__", system)


def is_invoke_of_langchain_retriever(
    search_method: Callable[..., Any], method_owner: object
) -> bool:
    """Say whether a search is the ``invoke`` of a retriever, also of one with bound settings."""
    if getattr(search_method, "__name__", "") != "invoke":
        return False
    return hasattr(method_owner, "_get_relevant_documents")


class LangChainSearch:
    """Calls a retriever with ``k``, and without once it has refused the keyword."""

    def __init__(self) -> None:
        self._refuses = False

    def __call__(self, invoke: Callable[..., Any], query: str, k: int) -> Any:
        if self._refuses:
            return invoke(query)
        try:
            return invoke(query, k=k)
        except TypeError as error:
            if _REFUSED not in str(error):
                raise
        self._refuses = True
        return invoke(query)


def takes_k_by_some_name(is_needed_by_name: Mapping[str, bool]) -> bool:
    """Say whether a search takes k under one of its names."""
    return not is_needed_by_name.keys().isdisjoint(("k", "top_k", "limit"))


@contextmanager
def set_llamaindex_limit_to_k(
    method_owner: object, is_needed_by_name: Mapping[str, bool], k: int
) -> Iterator[None]:
    """Set what a retriever of LlamaIndex reads as k, where it has that, and set it back.

    :param is_needed_by_name: the names that its search takes; where k is one of them nothing is
        set.
    """
    limit_before = getattr(method_owner, _LIMIT, None)
    if takes_k_by_some_name(is_needed_by_name) or not isinstance(limit_before, int):
        yield
        return
    try:
        setattr(method_owner, _LIMIT, k)
    except AttributeError:  # a property that cannot be set
        yield
        return
    try:
        yield
    finally:
        setattr(method_owner, _LIMIT, limit_before)


def is_mem0_object(candidate: object) -> bool:
    """Say whether an object is mem0's, or of a class that is made from one of mem0's."""
    classes = type(candidate).__mro__
    return any(base_class.__module__.partition(".")[0] == "mem0" for base_class in classes)


def mem0_names_taken_by_kwargs(search_method: Callable[..., Any]) -> tuple[str, ...]:
    """Give the names that a search of mem0 takes by ``**kwargs``, as that of a subclass may."""
    for parameter in inspect.signature(search_method).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            return _MEM0_NAMES
    return ()


def notes_on_missing_mem0_parameters(is_needed_by_name: Mapping[str, bool]) -> list[str]:
    """Say what a search of mem0 cannot be given.

    :param is_needed_by_name: the names that it takes.
    """
    note_lines = []
    if not takes_k_by_some_name(is_needed_by_name):
        note_lines.append("search takes neither top_k nor limit: mem0's own number of rows holds")
    if "threshold" not in is_needed_by_name:
        note_lines.append("search takes no threshold: mem0's own leaves out what is less similar")
    return note_lines
