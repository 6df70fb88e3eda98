"""Digests of the source code of functions, by which a changed plug-in is recognised."""

from __future__ import annotations

import hashlib
import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from memlab.errors import PipelineError

_PLAIN_TYPES = (bool, int, float, complex, str, bytes, type(None))


def source_digest(function: Callable[..., Any]) -> str:
    """Give a digest of the source of a function and of what it uses of its own module.

    The digest covers the text of the function, of the functions and classes of the same module that
    it names, directly or through each other, and the values of plain variables that they name:
    numbers, text, arrays, and lists, tuples, sets and dicts of these. It covers neither imports
    from other modules nor other objects, such as a frame: give these as a parameter or a file. A
    list that the function itself fills changes the digest each time.

    :raises PipelineError: when there is no source to read, as at a bare prompt.

    >>> from memlab.code_digest import source_digest
    >>> len(source_digest(source_digest))
    16
    """
    parts: list[str] = []
    _collect_sources(function, parts, set())
    return hashlib.sha256("\x1e".join(parts).encode()).hexdigest()[:16]


def _collect_sources(function: Any, parts: list[str], seen: set[int]) -> None:
    if id(function) in seen:
        return
    seen.add(id(function))
    parts.append(_source_text(function.__code__))
    parts += [repr(v) for v in (function.__defaults__, function.__kwdefaults__) if is_plain(v)]
    for name, value in _outer_variables(function):
        if isinstance(value, FunctionType):
            if _module_name(value) == _module_name(function):
                _collect_sources(value, parts, seen)
        elif inspect.isclass(value) and value.__module__ == _module_name(function):
            parts.append(inspect.getsource(value))
        elif isinstance(value, np.ndarray) and value.dtype != object:
            parts.append(
                f"{name}={value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
            )
        elif is_plain(value):
            stable = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
            parts.append(f"{name}={stable!r}")


def is_own_code(function: Callable[..., Any]) -> bool:
    """Say whether a function is defined in memlab."""
    return _module_name(function).partition(".")[0] == "memlab"


def _module_name(function: Any) -> str:
    return str(function.__globals__.get("__name__", ""))


def _outer_variables(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Give the global and closure variables that a function names, sorted by name."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    known, named = function.__globals__, _code_names(function.__code__)
    outside = {name: known[name] for name in named if name in known}
    for name, cell in cells:
        try:
            outside[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    yield from sorted(outside.items())


def _code_names(code: CodeType) -> set[str]:
    inner = [_code_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def is_plain(value: Any) -> bool:
    """Say whether a value is a number, text or a container of these, so that ``repr`` says what it is."""
    if type(value) is dict:
        return all(map(is_plain, (*value.keys(), *value.values())))
    if type(value) in (list, tuple, set, frozenset):
        return all(map(is_plain, value))
    return isinstance(value, _PLAIN_TYPES)


@lru_cache(maxsize=4096)
def _source_text(code: CodeType) -> str:
    # Read when the function is registered; a file that is edited later does not change what is
    # running.
    linecache.checkcache(code.co_filename)
    try:
        return textwrap.dedent(inspect.getsource(code)).rstrip()
    except (OSError, TypeError) as error:
        raise PipelineError(
            f"the source of {code.co_name!r} cannot be read ({error}), and by it memlab tells whether a saved run is "
            "still its own: define it in a file or in a notebook cell"
        ) from None
