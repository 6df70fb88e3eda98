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


def describe_first_misfit(
    function: Callable[..., Any], bound_arguments: inspect.BoundArguments
) -> str | None:
    """Say which argument of a call is of another type than the function's annotations.

    ``None`` where all fit.

    >>> import inspect
    >>> from memlab.argument_errors import describe_first_misfit
    >>> def double(text: str) -> str:
    ...     return text * 2
    >>> describe_first_misfit(double, inspect.signature(double).bind(7))
    'text is 7; expected str'
    """
    for name, value, hint in _iterate_arguments_with_types(function, bound_arguments):
        if not fits_type(value, hint):
            expected = bound_arguments.signature.parameters[name].annotation
            return f"{name} is {_describe_argument(value)}; expected {written_type(expected, hint)}"
    return None


def written_type(annotation: Any, type_hint: Any) -> str:
    """Write the type of a parameter as its function does; of one with a range the plain type.

    >>> from typing import Annotated
    >>> from memlab.argument_errors import written_type
    >>> written_type("Count | None", Annotated[int, "from 1 on"] | None)
    'int | None'
    """
    members = [type_hint]
    if get_origin(type_hint) in (Union, UnionType):
        members = [*get_args(type_hint)]
    if not any(get_origin(member) is Annotated for member in members):
        return inspect.formatannotation(annotation).strip("'")
    return " | ".join(map(_write_plain_type, members))


def _write_plain_type(member: Any) -> str:
    if member is type(None):
        return "None"
    if get_origin(member) is Annotated:
        member = get_args(member)[0]
    return inspect.formatannotation(member).removeprefix("collections.abc.")


def _iterate_arguments_with_types(
    function: Callable[..., Any], bound_arguments: inspect.BoundArguments
) -> Iterator[tuple[str, Any, Any]]:
    """Iterate over the name, value and type of each argument.

    Those of ``*args`` and ``**kwargs`` one by one.
    """
    hints = evaluate_parameter_types(function)
    for name, value in bound_arguments.arguments.items():
        parameter_kind = bound_arguments.signature.parameters[name].kind
        values = [value]
        if parameter_kind is inspect.Parameter.VAR_POSITIONAL:
            values = [*value]
        elif parameter_kind is inspect.Parameter.VAR_KEYWORD:
            values = [*value.values()]
        for argument in values:
            yield name, argument, hints[name]


def evaluate_parameter_types(function: Callable[..., Any]) -> dict[str, Any]:
    """Read the types of the parameters of a function; one that cannot be evaluated is ``Any``."""
    known_names = _Names(vars(builtins))
    known_names.update(getattr(inspect.unwrap(function), "__globals__", {}))
    hints = dict[str, Any]()
    for name, parameter in inspect.signature(function).parameters.items():
        hints[name] = _evaluate_annotation(parameter.annotation, known_names)
    return hints


def _evaluate_annotation(annotation: Any, known_names: _Names) -> object:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, {}, known_names)
    except Exception:  # whatever stands in an annotation
        return Any


def fits_type(value: Any, type_hint: Any) -> bool:
    """Say whether a value is of a type, as far as that can be seen without using it up."""
    origin = get_origin(type_hint)
    inner_hints = get_args(type_hint)
    if type_hint in _ANY or isinstance(type_hint, TypeVar | ForwardRef | str):
        return True
    if origin in (Union, UnionType):
        return any(map(partial(fits_type, value), inner_hints))
    if origin is Literal:
        return type(value) in _PLAIN and value in inner_hints
    if origin is Annotated:
        return fits_type(value, inner_hints[0])
    if type_hint is None:
        return value is None
    if type_hint in _NUMBERS:
        return isinstance(value, _NUMBERS[type_hint])
    container = origin or type_hint
    if not isinstance(container, type):
        return True
    if container in _LISTS:
        if hasattr(value, "__array__"):
            return _array_fits_item_types(value, inner_hints)
    elif getattr(container, "_is_protocol", False):
        return all(map(partial(hasattr, value), _attributes_of_protocol(container)))
    if not isinstance(value, container):
        return False
    return _items_fit_types(value, container, inner_hints)


def _array_fits_item_types(array: Any, item_types: tuple[Any, ...]) -> bool:
    """Say whether an array or a Series may stand for a list: one of plain values."""
    if getattr(array, "ndim", 1) == 0:
        return False
    return not item_types or item_types[0] in (*_PLAIN, *_ANY)


def _items_fit_types(value: Any, container_type: type, item_types: tuple[Any, ...]) -> bool:
    """Say whether the items of a container are of their types, as far as they can be seen."""
    if isinstance(value, str | bytes):
        return container_type in (
            str,
            bytes,
        )  # a text is a sequence of texts, and never meant as one
    if not item_types or container_type is type:
        return True
    if isinstance(value, Mapping) and len(item_types) == 2:
        key_hint, value_hint = item_types
        return _all_fit_type(value, key_hint) and _all_fit_type(value.values(), value_hint)
    if isinstance(value, tuple) and container_type is tuple and item_types[-1] is not Ellipsis:
        return len(value) == len(item_types) and all(map(fits_type, value, item_types))
    if isinstance(value, list | tuple | set | frozenset):
        return _all_fit_type(value, item_types[0])
    return True


def _all_fit_type(values: Iterable[Any], item_type: Any) -> bool:
    return all(fits_type(value, item_type) for value in values)


def _attributes_of_protocol(protocol: type) -> set[str]:
    """List the attributes that a protocol asks for."""
    member_names = set[str]()
    for base in protocol.__mro__[:-1]:
        if getattr(base, "_is_protocol", False):
            member_names.update(vars(base).get("__annotations__", ()), vars(base))
    return {name for name in member_names if not name.startswith("_")}


def _describe_argument(argument: Any) -> str:
    """Show a plain value; of any other its type."""
    if type(argument) in _PLAIN:
        return _SHORT.repr(argument)
    type_name = type(argument).__name__
    return f"{_indefinite_article(type_name)} {type_name}"


def _indefinite_article(noun: str) -> str:
    return "an" if noun[:1].lower() in "aeiou" else "a"


@cache
def _library_folders() -> tuple[str, ...]:
    """List the folders of Python and of the packages that are installed."""
    return tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})


def was_raised_in_callers_code(traceback: TracebackType | None, *, wrapper_file: str) -> bool:
    """Say whether an error was raised in, or below, code of the caller's that memlab called.

    :param wrapper_file: the file of what called the function, which is neither's.
    """
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_filename != wrapper_file and _is_frame_of_caller(frame):
            return True
        traceback = traceback.tb_next
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
    while frame is not None and not _is_frame_of_caller(frame):
        frame = frame.f_back
    return frame


def _is_frame_of_caller(frame: FrameType) -> bool:
    """Say whether a frame is neither memlab's nor of Python or an installed package."""
    module = str(frame.f_globals.get("__name__", ""))
    code_file = frame.f_code.co_filename
    is_library = code_file.startswith((*_library_folders(), "<frozen")) or code_file.endswith(
        _COMPILED
    )
    is_own = module.partition(".")[0] == "memlab"
    return not is_library and not is_own
