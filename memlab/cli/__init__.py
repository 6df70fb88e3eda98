"""The command line ``memlab``: thin, every verb is one public function or a few."""

from __future__ import annotations

import contextlib
import gc
import sys
import warnings
from collections.abc import Callable
from functools import partial

import typer

from memlab.cli import answering, data, listing, measure, memory, rollups, systems
from memlab.cli._options import app
from memlab.errors import MemlabError
from memlab.terminal import escape_controls, mask_secrets, one_line

__all__ = ["answering", "app", "data", "listing", "main", "measure", "memory", "rollups", "systems"]


def _write(write: Callable[[str], int], text: str) -> int:
    """Write what steers no terminal: names of files, texts and ids come from outside."""
    write(escape_controls(text))
    return len(text)


def main() -> None:
    """Run the command line; an error that the user can mend is one line and exit code 2."""
    # Imports make objects that stay: looking through them again and again is a fifth of a short command's time.
    gc.set_threshold(100_000)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        stream.write = partial(_write, stream.write)  # type: ignore[method-assign]
    warnings.formatwarning = lambda message, *_, **__: f"memlab: {one_line(str(message))}\n"
    try:
        app()
    except MemlabError as error:
        typer.echo(f"memlab: {one_line(mask_secrets(str(error)))}", err=True)
        raise SystemExit(2) from None
