"""What a failed call says: a wrong argument becomes one :class:`DataError` instead of an error of a library.

Nothing is checked before a call, so that whatever works is taken: a numpy integer for a count, a
Series for a list. Only when a call fails with an error that is not memlab's are its arguments
compared with the annotations of the function, and the error says which one does not fit. Where all
do, as a frame does that lacks a column, the error says what the library said. The error that was
raised at first is its cause, which Python shows above it.
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
    MutableMapping,
    Sequence,
)
from dataclasses import is_dataclass
from functools import cache, wraps
from numbers import Integral, Real
from reprlib import Repr
from types import FunctionType, NoneType, TracebackType, UnionType
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin

from memlab.errors import DataError, MemlabError

F = TypeVar("F", bound=Callable[..., Any])
Translate = Callable[[str, Any, BaseException], MemlabError | None]
"""Gives the error that stands for one of a library: of a name, its first argument, what was raised."""

VAGUE = "an argument holds what cannot be used, or this is a fault of memlab, which the error above shows"
"""Ends the error of a call whose arguments all are of the right types."""

_ANY = (Any, inspect.Parameter.empty)
_NUMBERS = {int: Integral, float: Real}
_PLAIN = (str, bytes, int, float, complex, bool, NoneType)
_LISTS = (list, Sequence, Collection, Iterable)
_PASSING = (MemlabError, AssertionError, ModuleNotFoundError, MemoryError)
_COMPILED = (".pyx", ".pxd")  # of libraries; their paths do not say where they lie
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


class _NoSuch:
    """Stands for a class whose module is not imported, so that no argument can be one."""


class _Names(dict[str, Any]):
    """The names of a module, and those that it imports for the type checker alone."""

    def __missing__(self, name: str) -> Any:
        for module in [*sys.modules.values()]:
            own = str(getattr(module, "__name__", "")).partition(".")[0] == "memlab"
            if own and name in vars(module):
                return vars(module)[name]
        return _NoSuch


def explain_arguments(namespace: MutableMapping[str, Any]) -> None:
    """Let the public functions and classes of a module say which argument was wrong when they fail.

    :param namespace: the globals of a module. What its ``__all__`` names, or else what is defined in
        it, is replaced there and where it is defined.
    """
    listed = namespace.get("__all__") or _defined_names(namespace)
    for name in set(listed) & namespace.keys():  # some are imported when first asked for
        value = namespace[name]
        if inspect.isclass(value):
            explain_methods(value)
        elif inspect.isfunction(value) and _is_own(value.__module__):
            namespace[name] = explained(value)
            home = vars(sys.modules[str(value.__module__)])
            own_name = str(value.__name__)
            if home.get(own_name) is value:
                home[own_name] = namespace[name]


def _defined_names(namespace: Mapping[str, Any]) -> list[str]:
    """Give the public names that a module without ``__all__`` defines."""
    here = namespace["__name__"]
    public = [name for name in namespace if not name.startswith("_")]
    return [name for name in public if getattr(namespace[name], "__module__", "") == here]


def explain_methods(owner: type, translate: Translate | None = None) -> None:
    """Do the same for the public methods of a class, those that it inherits from memlab's classes too.

    :param translate: asked where the arguments are of the right types.
    """
    if issubclass(owner, BaseException) or getattr(owner, "_is_protocol", False):
        return
    if hasattr(owner, "__pydantic_validator__"):
        # Made after the class, so that pydantic does not take it for an initialiser of the class's
        # own, which it would call for tables within tables too.
        setattr(owner, "__init__", explained(owner.__init__))  # noqa: B010
    for each in owner.__mro__:
        for name, value in [*vars(each).items()] if _is_own(each.__module__) else ():
            # A dataclass that checks nothing cannot fail when it is made.
            makes = name == "__init__" and (
                not is_dataclass(each) or hasattr(each, "__post_init__")
            )
            if name.startswith("_") and not makes:
                continue
            if inspect.isfunction(value):
                setattr(each, name, explained(value, translate))
            elif isinstance(value, classmethod | staticmethod):
                setattr(each, name, type(value)(explained(value.__func__, translate)))


def explained(function: F, translate: Translate | None = None) -> F:
    """Let a function say which argument was wrong when it fails with an error of a library.

    What a caller's own code raises, such as a stage or a memory, passes as it is; and so does the
    ``TypeError`` of a call that does not fit the signature.

    >>> from memlab.arguments import explained
    >>> @explained
    ... def double(text: str) -> str:
    ...     return text.upper() * 2
    >>> double(7)
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: double: text is 7; expected str
    """
    if getattr(function, "__explained__", False) or not inspect.isfunction(function):
        return function
    explain = _explain

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            explanation = explain(function, args, kwargs, error, translate)
            if explanation is None:
                raise
            raise explanation from error

    def iterate(*args: Any, **kwargs: Any) -> Any:
        try:
            yield from function(*args, **kwargs)
        except BaseException as error:
            explanation = explain(function, args, kwargs, error, translate)
            if explanation is None:
                raise
            raise explanation from error

    outer: Any = iterate if inspect.isgeneratorfunction(function) else call
    # The globals stay those of the function, by which doctest and the registries know its module.
    named = FunctionType(
        outer.__code__, function.__globals__, function.__name__, None, outer.__closure__
    )
    wrapper: Any = wraps(function)(named)
    wrapper.__explained__ = True
    return wrapper


def is_panic(error: BaseException) -> bool:
    """Say whether an error is a panic of a library in Rust, whose classes cannot all be imported."""
    return type(error).__name__ in ("PanicException", "RustPanic")


def _explain(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    error: BaseException,
    translate: Translate | None,
) -> MemlabError | None:
    """Make one error of memlab's of what a call raised; ``None`` for what passes as it is."""
    inner = getattr(error, "explains_argument", False)  # of a function that this one called
    if isinstance(error, _PASSING) and not inner:
        return None
    if not (is_panic(error) or isinstance(error, Exception)) or _is_of_others(error.__traceback__):
        return None
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return None
    where = function.__qualname__
    if function.__name__ == "__init__":
        where = type(args[0]).__name__
    for name, value, hint in _annotated(function, bound):
        if not fits(value, hint):
            expected = inspect.signature(function).parameters[name].annotation
            written = inspect.formatannotation(expected).strip("'")
            return _explanation(f"{where}: {name} is {_describe(value)}; expected {written}")
    if inner:
        return None
    translated = translate(where, next(iter(args), None), error) if translate else None
    if translated is not None:
        return translated
    said = " ".join(str(error).split())[:300]
    kind = type(error).__name__
    return _explanation(f"{where}: {kind}: {said}; {VAGUE}")


def _explanation(message: str) -> DataError:
    error = DataError(message)
    vars(error)["explains_argument"] = True
    return error


def _annotated(
    function: Callable[..., Any], bound: inspect.BoundArguments
) -> Iterator[tuple[str, Any, Any]]:
    """Give the name, value and type of each argument; those of ``*args`` and ``**kwargs`` one by one."""
    hints = parameter_hints(function)
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            yield from ((name, each, hints[name]) for each in value)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            yield from ((name, each, hints[name]) for each in value.values())
        else:
            yield name, value, hints[name]


def parameter_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Give the types of the parameters of a function; one that cannot be evaluated is ``Any``."""
    names = _Names(vars(builtins))
    names.update(getattr(inspect.unwrap(function), "__globals__", {}))
    hints = dict[str, Any]()
    for name, parameter in inspect.signature(function).parameters.items():
        hints[name] = _evaluate(parameter.annotation, names)
    return hints


def _evaluate(hint: Any, names: _Names) -> Any:
    try:
        return eval(hint, {}, names) if isinstance(hint, str) else hint
    except Exception:  # whatever stands in an annotation
        return Any


def fits(value: Any, hint: Any) -> bool:
    """Say whether a value is of a type, as far as that can be seen without using it up."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint in _ANY or isinstance(hint, TypeVar | ForwardRef | str):
        return True
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in inner)
    if origin is Literal:
        return type(value) in _PLAIN and value in inner
    if origin is Annotated:
        return fits(value, inner[0])
    if hint is None:
        return value is None
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint])
    if not isinstance(origin or hint, type):
        return True
    if getattr(origin or hint, "_is_protocol", False) and (origin or hint) not in _LISTS:
        return all(hasattr(value, name) for name in _members(origin or hint))
    if hasattr(value, "__array__") and (origin or hint) in _LISTS:
        # Arrays and Series stand for lists of plain values.
        return getattr(value, "ndim", 1) > 0 and (not inner or inner[0] in (*_PLAIN, *_ANY))
    if not isinstance(value, origin or hint):
        return False
    return _items_fit(value, origin or hint, inner)


def _items_fit(value: Any, container: type, inner: tuple[Any, ...]) -> bool:
    if isinstance(value, str | bytes):
        return container in (str, bytes)  # a text is a sequence of texts, and never meant as one
    if not inner or container is type:
        return True
    if isinstance(value, Mapping) and len(inner) == 2:
        return all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items())
    if isinstance(value, tuple) and container is tuple and inner[-1] is not Ellipsis:
        return len(value) == len(inner) and all(map(fits, value, inner))
    if isinstance(value, list | tuple | set | frozenset):
        return all(fits(each, inner[0]) for each in value)
    return True


def _members(protocol: type) -> set[str]:
    """Give the attributes that a protocol asks for."""
    names = set[str]()
    for each in protocol.__mro__[:-1]:
        if getattr(each, "_is_protocol", False):
            names.update(vars(each).get("__annotations__", ()), vars(each))
    return {name for name in names if not name.startswith("_")}


def _describe(value: Any) -> str:
    """Show a plain value; of any other its type."""
    if type(value) in _PLAIN:
        return _SHORT.repr(value)
    kind = type(value).__name__
    return f"{_article(kind)} {kind}"


def _article(noun: str) -> str:
    return "an" if noun[:1].lower() in "aeiou" else "a"


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == "memlab"


@cache
def _library_folders() -> tuple[str, ...]:
    """Give the folders of Python and of the packages that are installed."""
    return tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})


def _is_of_others(trace: TracebackType | None) -> bool:
    """Say whether an error was raised in, or below, code of the caller's that memlab called."""
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        file = trace.tb_frame.f_code.co_filename
        is_library = file.startswith((*_library_folders(), "<frozen")) or file.endswith(_COMPILED)
        if file != __file__ and not is_library and not _is_own(module):
            return True
        trace = trace.tb_next
    return False
