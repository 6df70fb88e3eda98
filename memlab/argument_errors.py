"""What a failed call says: a wrong argument becomes one :class:`DataError`.

Nothing is checked before a call, so that whatever works is taken: a numpy integer for a count, a
Series for a list. Only when a call fails with an error that is not memlab's are its arguments
compared with the annotations of the function, and the error says which one does not fit. Where all
do, as a frame does that lacks a column, the error says what the library said. The error that was
raised at first is its cause, which Python shows above it. :func:`memlab.errors.explained` imports
this module when a call fails.
"""

from __future__ import annotations

import builtins
import inspect
import sys
import sysconfig
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import cache, partial
from numbers import Integral, Real
from reprlib import Repr
from types import FrameType, NoneType, TracebackType, UnionType
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin

_ANY = (Any, inspect.Parameter.empty)
_NUMBERS = {int: Integral, float: Real}
_PLAIN = (str, bytes, int, float, complex, bool, NoneType)
_LISTS = (list, Sequence, Collection, Iterable)
_COMPILED = (".pyx", ".pxd")  # of libraries; their paths do not say where they lie
_SHORT = Repr()
_SHORT.maxstring = 60
_SHORT.maxother = 60


class _NoSuch:
    """Stands for a class whose module is not imported, so that no argument can be one."""


class _Names(dict[str, Any]):
    """The names of a module, and those that it imports for the type checker alone."""

    def __missing__(self, name: str) -> Any:
        for module in [*sys.modules.values()]:
            is_own = str(getattr(module, "__name__", "")).partition(".")[0] == "memlab"
            if is_own and name in vars(module):
                return vars(module)[name]
        return _NoSuch


def find_misfit(function: Callable[..., Any], bound: inspect.BoundArguments) -> str | None:
    """Say which argument of a call is of another type than the function's annotations.

    ``None`` where all fit.

    >>> import inspect
    >>> from memlab.argument_errors import find_misfit
    >>> def double(text: str) -> str:
    ...     return text * 2
    >>> find_misfit(double, inspect.signature(double).bind(7))
    'text is 7; expected str'
    """
    for name, value, hint in _annotated(function, bound):
        if not fits(value, hint):
            expected = bound.signature.parameters[name].annotation
            written = inspect.formatannotation(expected).strip("'")
            return f"{name} is {_describe(value)}; expected {written}"
    return None


def _annotated(
    function: Callable[..., Any], bound: inspect.BoundArguments
) -> Iterator[tuple[str, Any, Any]]:
    """Iterate over the name, value and type of each argument.

    Those of ``*args`` and ``**kwargs`` one by one.
    """
    hints = parameter_hints(function)
    for name, value in bound.arguments.items():
        parameter_kind = bound.signature.parameters[name].kind
        values = [value]
        if parameter_kind is inspect.Parameter.VAR_POSITIONAL:
            values = [*value]
        elif parameter_kind is inspect.Parameter.VAR_KEYWORD:
            values = [*value.values()]
        for argument in values:
            yield name, argument, hints[name]


def parameter_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Read the types of the parameters of a function; one that cannot be evaluated is ``Any``."""
    known_names = _Names(vars(builtins))
    known_names.update(getattr(inspect.unwrap(function), "__globals__", {}))
    hints = dict[str, Any]()
    for name, parameter in inspect.signature(function).parameters.items():
        hints[name] = _evaluate(parameter.annotation, known_names)
    return hints


def _evaluate(hint: Any, names: _Names) -> Any:
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, {}, names)
    except Exception:  # whatever stands in an annotation
        return Any


def fits(value: Any, hint: Any) -> bool:
    """Say whether a value is of a type, as far as that can be seen without using it up."""
    origin = get_origin(hint)
    inner_hints = get_args(hint)
    if hint in _ANY or isinstance(hint, TypeVar | ForwardRef | str):
        return True
    if origin in (Union, UnionType):
        return any(map(partial(fits, value), inner_hints))
    if origin is Literal:
        return type(value) in _PLAIN and value in inner_hints
    if origin is Annotated:
        return fits(value, inner_hints[0])
    if hint is None:
        return value is None
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint])
    container = origin or hint
    if not isinstance(container, type):
        return True
    if container in _LISTS:
        if hasattr(value, "__array__"):
            return _array_fits(value, inner_hints)
    elif getattr(container, "_is_protocol", False):
        return all(map(partial(hasattr, value), _members(container)))
    if not isinstance(value, container):
        return False
    return _items_fit(value, container, inner_hints)


def _array_fits(value: Any, inner: tuple[Any, ...]) -> bool:
    """Say whether an array or a Series may stand for a list: one of plain values."""
    if getattr(value, "ndim", 1) == 0:
        return False
    return not inner or inner[0] in (*_PLAIN, *_ANY)


def _items_fit(value: Any, container: type, inner: tuple[Any, ...]) -> bool:
    """Say whether the items of a container are of their types, as far as they can be seen."""
    if isinstance(value, str | bytes):
        return container in (str, bytes)  # a text is a sequence of texts, and never meant as one
    if not inner or container is type:
        return True
    if isinstance(value, Mapping) and len(inner) == 2:
        key_hint, value_hint = inner
        return _all_fit(value, key_hint) and _all_fit(value.values(), value_hint)
    if isinstance(value, tuple) and container is tuple and inner[-1] is not Ellipsis:
        return len(value) == len(inner) and all(map(fits, value, inner))
    if isinstance(value, list | tuple | set | frozenset):
        return _all_fit(value, inner[0])
    return True


def _all_fit(values: Iterable[Any], hint: Any) -> bool:
    return all(fits(value, hint) for value in values)


def _members(protocol: type) -> set[str]:
    """List the attributes that a protocol asks for."""
    member_names = set[str]()
    for base in protocol.__mro__[:-1]:
        if getattr(base, "_is_protocol", False):
            member_names.update(vars(base).get("__annotations__", ()), vars(base))
    return {name for name in member_names if not name.startswith("_")}


def _describe(value: Any) -> str:
    """Show a plain value; of any other its type."""
    if type(value) in _PLAIN:
        return _SHORT.repr(value)
    type_name = type(value).__name__
    return f"{_article(type_name)} {type_name}"


def _article(noun: str) -> str:
    return "an" if noun[:1].lower() in "aeiou" else "a"


@cache
def _library_folders() -> tuple[str, ...]:
    """List the folders of Python and of the packages that are installed."""
    return tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})


def is_of_others(trace: TracebackType | None, *, wrapper: str) -> bool:
    """Say whether an error was raised in, or below, code of the caller's that memlab called.

    :param wrapper: the file of what called the function, which is neither's.
    """
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_filename != wrapper and _is_callers(frame):
            return True
        trace = trace.tb_next
    return False


def find_callers_frame(frame: FrameType | None) -> FrameType | None:
    """Find the innermost frame of the caller's code, from a frame outwards; ``None`` without one.

    >>> import sys
    >>> from memlab.argument_errors import find_callers_frame
    >>> names = {"__name__": "mine", "sys": sys}
    >>> exec(compile("here = sys._getframe()", "mine.py", "exec"), names)
    >>> find_callers_frame(names["here"]).f_code.co_filename
    'mine.py'
    """
    while frame is not None and not _is_callers(frame):
        frame = frame.f_back
    return frame


def _is_callers(frame: FrameType) -> bool:
    """Say whether a frame is neither memlab's nor of Python or an installed package."""
    module = str(frame.f_globals.get("__name__", ""))
    code_file = frame.f_code.co_filename
    is_library = code_file.startswith((*_library_folders(), "<frozen")) or code_file.endswith(
        _COMPILED
    )
    is_own = module.partition(".")[0] == "memlab"
    return not is_library and not is_own
