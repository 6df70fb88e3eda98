"""The errors that memlab raises for what a user can put right."""

from __future__ import annotations

import inspect
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import wraps
from importlib.metadata import PackageNotFoundError, distribution
from numbers import Real
from types import FunctionType
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

# What wraps calls and warns, below, is for memlab's own modules.
__all__ = [
    "DataError",
    "ExportError",
    "MemlabError",
    "ModelError",
    "PipelineError",
    "StoreError",
    "check_at_least",
    "check_between",
    "install_command",
    "require_extra",
]

F = TypeVar("F", bound=Callable[..., Any])


class MemlabError(Exception):
    """Base of every error that memlab raises on purpose.

    The message says what was found, where, what was expected, and what to do next.

    >>> from memlab import DataError, MemlabError
    >>> issubclass(DataError, MemlabError)
    True
    """


TranslateError = Callable[[str, Any, BaseException], MemlabError | None]
"""Gives the error that stands for one of a library: of a name, its first argument, what was raised.
"""


VAGUE = (
    "an argument holds what cannot be used, or this is a fault of memlab, "
    "which the error above shows"
)
"""Ends the error of a call whose arguments all are of the right types."""

_PASSING = (MemlabError, AssertionError, ModuleNotFoundError, MemoryError)


class DataError(MemlabError):
    """A record, file or argument that cannot be used as it is."""


class StoreError(MemlabError):
    """The store could not be opened, read or written."""


class ModelError(MemlabError):
    """A model could not be found, loaded or run, or a library is missing that an extra installs."""


class ExportError(MemlabError):
    """A figure or a table could not be exported."""


class PipelineError(MemlabError):
    """A pipeline string names no known stage, or gives a stage a wrong parameter."""


@contextmanager
def require_extra(extra: str, what: str) -> Iterator[None]:
    """Import a library that only an extra of memlab installs.

    :raises ModelError: where it is missing, with the command that installs it.

    >>> from memlab.errors import require_extra
    >>> with require_extra("figures", "a chart"):
    ...     import nonesuch
    Traceback (most recent call last):
        ...
    memlab.errors.ModelError: a chart needs nonesuch, which is not installed; run: pip install ...
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        raise ModelError(
            f"{what} needs {missing}, which is not installed; run: {install_command(extra)}"
        ) from error


def install_command(extra: str) -> str:
    """Give the command that installs an extra from where memlab itself was installed: a package
    index, or a folder, such as a clone.

    Source: PEP 610, ``direct_url.json``.

    >>> from memlab.errors import install_command
    >>> install_command("figures").startswith("pip install ")
    True
    """
    address, is_editable = _install_url_or_empty_and_if_editable()
    if not address:
        return f'pip install "memlab[{extra}]"'
    if is_editable:
        folder = url2pathname(urlsplit(address).path)
        return f'pip install -e "{folder}[{extra}]"'
    return f'pip install "memlab[{extra}] @ {address}"'


def _install_url_or_empty_and_if_editable() -> tuple[str, bool]:
    """Give the address of the folder that memlab was installed from, and whether it is editable.

    The address is "" where it came from an index.
    """
    try:
        origin = json.loads(distribution("memlab").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return "", False
    folder_info = origin.get("dir_info")
    if folder_info is None:
        return "", False
    return origin["url"], folder_info.get("editable", False)


def check_at_least(minimum: float, **values: float) -> None:
    """Refuse numbers that are too small.

    :raises DataError: naming the first of them.

    >>> from memlab.errors import check_at_least
    >>> check_at_least(1, k=10, depth=0)
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: depth is 0; expected at least 1
    """
    for name, value in values.items():
        if not isinstance(value, Real):
            raise DataError(f"{name} is {value!r}; expected a number, at least {minimum}")
        if not value >= minimum:
            raise DataError(f"{name} is {value!r}; expected at least {minimum}")


def check_between(minimum: float, maximum: float, **values: float) -> None:
    """Refuse numbers outside a range.

    :raises DataError: naming the first of them.

    >>> from memlab.errors import check_between
    >>> check_between(0, 1, share=1.5)
    Traceback (most recent call last):
        ...
    memlab.errors.DataError: share is 1.5; it lies between 0 and 1
    """
    for name, value in values.items():
        if not isinstance(value, Real):
            expected = f"a number between {minimum} and {maximum}"
            raise DataError(f"{name} is {value!r}; expected {expected}")
        if not minimum <= value <= maximum:
            raise DataError(f"{name} is {value!r}; it lies between {minimum} and {maximum}")


def warn_user(message: str) -> None:
    """Warn of something at the line of the caller's that led to it, however deep in memlab.

    Where no line of a caller's is on the stack, as in a thread, the place is memlab's.

    >>> import warnings
    >>> from memlab.errors import warn_user
    >>> with warnings.catch_warnings(record=True) as stated:
    ...     warnings.simplefilter("always")
    ...     warn_user("3 of 4 questions have no answer")
    >>> str(stated[0].message), stated[0].category.__name__
    ('3 of 4 questions have no answer', 'UserWarning')
    """
    from memlab.argument_errors import find_callers_frame

    calling_frame = sys._getframe(1)
    frame = find_callers_frame(calling_frame) or calling_frame
    frame_globals = frame.f_globals
    warnings.warn_explicit(
        message,
        UserWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=str(frame_globals.get("__name__", "")),
        registry=frame_globals.setdefault("__warningregistry__", {}),
    )


def explain_arguments(namespace: MutableMapping[str, Any]) -> None:
    """Let the public functions and classes of a module say which argument was wrong when they fail.

    :param namespace: the globals of a module. What its ``__all__`` names, or else what is
        defined in it, is replaced there and where it is defined.
    """
    public_names = namespace.get("__all__") or _public_names_defined_in(namespace)
    for name in set(public_names) & namespace.keys():  # some are imported when first asked for
        exported = namespace[name]
        if inspect.isclass(exported):
            explain_methods(exported)
        elif inspect.isfunction(exported) and _is_memlab_module(exported.__module__):
            namespace[name] = explained(exported)
            home_module = vars(sys.modules[str(exported.__module__)])
            own_name = str(exported.__name__)
            if home_module.get(own_name) is exported:
                home_module[own_name] = namespace[name]


def _public_names_defined_in(module_globals: Mapping[str, Any]) -> list[str]:
    """Give the public names that a module without ``__all__`` defines."""
    module_name = module_globals["__name__"]
    public_names = [name for name in module_globals if not name.startswith("_")]
    return [
        name
        for name in public_names
        if getattr(module_globals[name], "__module__", "") == module_name
    ]


def explain_methods(owner: type, translate_error: TranslateError | None = None) -> None:
    """Do the same for the public methods of a class, those that it inherits from memlab's classes
    too.

    :param translate_error: asked where the arguments are of the right types.
    """
    if issubclass(owner, BaseException) or getattr(owner, "_is_protocol", False):
        return
    if hasattr(owner, "__pydantic_validator__"):
        # Made after the class, so that pydantic does not take it for an initialiser of the class's
        # own, which it would call for tables within tables too.
        setattr(owner, "__init__", explained(owner.__init__))  # noqa: B010
    for base_class in owner.__mro__:
        for name, member in (
            [*vars(base_class).items()] if _is_memlab_module(base_class.__module__) else ()
        ):
            # A dataclass that checks nothing cannot fail when it is made.
            is_initialiser = name == "__init__" and (
                not is_dataclass(base_class) or hasattr(base_class, "__post_init__")
            )
            if name.startswith("_") and not is_initialiser:
                continue
            if inspect.isfunction(member):
                setattr(base_class, name, explained(member, translate_error))
            elif isinstance(member, classmethod | staticmethod):
                setattr(base_class, name, type(member)(explained(member.__func__, translate_error)))


def explained(function: F, translate_error: TranslateError | None = None) -> F:
    """Let a function say which argument was wrong when it fails with an error of a library.

    What a caller's own code raises, such as a stage or a memory, passes as it is; and so does the
    ``TypeError`` of a call that does not fit the signature.

    >>> from memlab.errors import explained
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
    explain = _memlab_error_for_failed_call

    def call_or_explain(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            explanation = explain(function, args, kwargs, error, translate_error)
            if explanation is None:
                raise
            raise explanation from error

    def iterate_or_explain(*args: Any, **kwargs: Any) -> Any:
        try:
            yield from function(*args, **kwargs)
        except BaseException as error:
            explanation = explain(function, args, kwargs, error, translate_error)
            if explanation is None:
                raise
            raise explanation from error

    outer_function: Any = (
        iterate_or_explain if inspect.isgeneratorfunction(function) else call_or_explain
    )
    # The globals stay those of the function, by which doctest and the registries know its module.
    named_function = FunctionType(
        outer_function.__code__,
        function.__globals__,
        function.__name__,
        None,
        outer_function.__closure__,
    )
    wrapper: Any = wraps(function)(named_function)
    wrapper.__explained__ = True
    return wrapper


def is_panic(error: BaseException) -> bool:
    """Say whether an error is a panic of a Rust library; not all their classes can be imported."""
    return type(error).__name__ in ("PanicException", "RustPanic")


def _is_memlab_module(module_name: str) -> bool:
    """Say whether a module is memlab's, by its name."""
    return module_name.partition(".")[0] == "memlab"


def _memlab_error_for_failed_call(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    error: BaseException,
    translate_error: TranslateError | None,
) -> MemlabError | None:
    """Make one error of memlab's of what a call raised; ``None`` for what passes as it is."""
    is_of_argument = getattr(
        error, "explains_argument", False
    )  # of a function that this one called
    if isinstance(error, _PASSING) and not is_of_argument:
        return None
    if not (is_panic(error) or isinstance(error, Exception)):
        return None
    from memlab.argument_errors import describe_first_misfit, was_raised_in_callers_code

    if was_raised_in_callers_code(error.__traceback__, wrapper_file=__file__):
        return None
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return None
    function_name = function.__qualname__
    if function.__name__ == "__init__":
        function_name = type(args[0]).__name__
    misfit = describe_first_misfit(function, bound)
    if misfit is not None:
        return _make_argument_error(f"{function_name}: {misfit}")
    if is_of_argument:
        return None
    translated = None
    if translate_error is not None:
        translated = translate_error(function_name, next(iter(args), None), error)
    if translated is not None:
        return translated
    error_text = " ".join(str(error).split())[:300]
    return _make_argument_error(f"{function_name}: {type(error).__name__}: {error_text}; {VAGUE}")


def _make_argument_error(message: str) -> DataError:
    explaining_error = DataError(message)
    vars(explaining_error)["explains_argument"] = True
    return explaining_error
