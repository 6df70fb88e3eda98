"""The errors that memlab raises for what a user can put right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real


class MemlabError(Exception):
    """Base of every error that memlab raises on purpose.

    The message says what was found, where, what was expected, and what to do next.

    >>> from memlab import DataError, MemlabError
    >>> issubclass(DataError, MemlabError)
    True
    """


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
    memlab.errors.ModelError: a chart needs nonesuch, which is not installed; run: pip install "memlab[figures]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        command = f'pip install "memlab[{extra}]"'
        raise ModelError(
            f"{what} needs {missing}, which is not installed; run: {command}"
        ) from error


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
        if not isinstance(value, Real) or not value >= minimum:
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
        if not isinstance(value, Real) or not minimum <= value <= maximum:
            raise DataError(f"{name} is {value!r}; it lies between {minimum} and {maximum}")
