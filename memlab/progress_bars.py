"""Progress of long work: a bar where somebody watches, at most two lines where a log is written.

Every bar of the package is made by :func:`progress_bar`, which alone decides between the two.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from contextlib import AbstractContextManager, nullcontext
from typing import Any

_log = logging.getLogger("memlab")
_QUIET_SECONDS = 5.0
"""What takes less is not worth a line of a log."""
_LONG_REST = 20.0
"""Seconds that must be left for the line that says how far the work is."""
_FIRST_PART = 0.05
"""The share of the work by which it is known how fast it goes."""
LOG_VARIABLE = "MEMLAB_LOG_PROGRESS"
"""The variable by which a kernel knows that ``memlab notebooks`` runs it, and reads its stderr."""
LOG_MARK = "progress: "
"""How the lines begin that such a kernel writes for who waits."""
_hides_all = False


def progress_bar(
    rows: Iterable[Any] | None = None,
    *,
    what: str,
    total: int | None = None,
    unit: str = "it",
    hidden: bool = False,
    **bar_options: Any,
) -> Any:
    """Make a bar of progress, which is iterated over or updated.

    In a terminal and in Jupyter it is a bar of tqdm; where stderr is a file or a pipe a
    :class:`LoggedProgress`, since a bar there is one long line of carriage returns.

    :param rows: what is iterated over; without it the caller calls ``update``.
    :param unit: what is counted, in the plural, such as ``turns``.
    :param hidden: show nothing, as of work that is short.
    :param bar_options: further options of tqdm, such as ``delay``; of a bar that does not
        ``leave`` anything a log does not have the end.

    >>> from memlab.progress_bars import progress_bar
    >>> [row for row in progress_bar([1, 2], what="doubling", hidden=True)]
    [1, 2]
    """
    if total is None and isinstance(rows, Sized):
        total = len(rows)
    if not hidden and not is_watched():
        is_passing = not bar_options.get("leave", True)
        return LoggedProgress(rows, what=what, total=total, unit=unit, is_passing=is_passing)
    if is_notebook():
        from tqdm.auto import tqdm
    else:
        from tqdm import tqdm
    return tqdm(rows, desc=what, total=total, unit=f" {unit}", disable=hidden, **bar_options)


def hide_bars() -> None:
    """Show no progress from here on: of a worker, whose parent shows it."""
    global _hides_all
    _hides_all = True
    os.environ["TQDM_DISABLE"] = "1"  # read when tqdm is imported, which memlab does later


def say_progress(line: str) -> None:
    """Write a line for who waits to the log ``memlab``, which is stderr where nobody set it up
    otherwise.
    """
    if LOG_VARIABLE in os.environ:
        line = LOG_MARK + line
    with _clear_bars():
        _log.warning("%s", line)


def is_watched() -> bool:
    """Say whether stderr is a terminal or the output of a notebook, where a bar can be redrawn."""
    if LOG_VARIABLE in os.environ:
        return False
    if is_notebook():
        return True
    return bool(getattr(sys.stderr, "isatty", bool)())


def is_notebook() -> bool:
    """Say whether stderr is that of a Jupyter kernel."""
    return type(sys.stderr).__module__.startswith("ipykernel")


def _clear_bars() -> AbstractContextManager[None]:
    """Clear the bars while a line is written to stderr, and draw them again below it."""
    shown_bars = sys.modules.get("tqdm")
    if shown_bars is None or not is_watched():
        return nullcontext()
    cleared: AbstractContextManager[None] = shown_bars.tqdm.external_write_mode(file=sys.stderr)
    return cleared


def _is_silenced() -> bool:
    """Say whether somebody wants no progress: the parent of a worker, or who set tqdm's variable.

    ``memlab notebooks`` sets that too, for the bars of other packages.
    """
    return _hides_all or ("TQDM_DISABLE" in os.environ and LOG_VARIABLE not in os.environ)


class LoggedProgress:
    """The progress of long work in a log: how far it is after the first part, and its end.

    Work of less than five seconds, and work within other work, is not logged.

    >>> from memlab.progress_bars import LoggedProgress
    >>> with LoggedProgress(what="ingest", total=2, unit="turns") as progress:
    ...     progress.update(2)
    """

    _n_open = 0

    def __init__(
        self,
        rows: Iterable[Any] | None = None,
        *,
        what: str,
        total: int | None = None,
        unit: str = "it",
        is_passing: bool = False,
    ) -> None:
        self.rows = rows
        self.what = what
        self.total = total
        self.unit = unit
        self.is_passing = is_passing
        self.n_done = 0
        self._began_at = time.monotonic()
        self._is_announced = False
        self._is_silent = False

    def __enter__(self) -> LoggedProgress:
        self._began_at = time.monotonic()
        self._is_silent = LoggedProgress._n_open > 0 or _is_silenced()
        LoggedProgress._n_open += 1
        return self

    def __exit__(self, error_class: type[BaseException] | None, *_: object) -> None:
        LoggedProgress._n_open -= 1
        seconds = time.monotonic() - self._began_at
        if self._is_silent or self.is_passing or seconds < _QUIET_SECONDS:
            return
        ending = ""
        if error_class is not None:
            ending = ", not to its end"
        counted = f"{self.n_done:,} {self.unit}"
        say_progress(f"{self.what}: {counted} in {seconds:.0f} s{ending}")

    def __iter__(self) -> Iterator[Any]:
        with self:
            for row in self.rows or ():
                yield row
                self.update()

    def update(self, n_more: int | None = 1) -> None:
        """Count what was done, and log once how far that is, where much is left."""
        self.n_done += n_more or 0
        if self._is_announced or self._is_silent or not self.total:
            return
        if self.n_done < self.total * _FIRST_PART:
            return
        seconds = time.monotonic() - self._began_at
        seconds_left = seconds / self.n_done * (self.total - self.n_done)
        if seconds < _QUIET_SECONDS or seconds_left < _LONG_REST:
            return
        self._is_announced = True
        counted = f"{self.n_done:,} of {self.total:,} {self.unit}"
        say_progress(f"{self.what}: {counted} after {seconds:.0f} s")
