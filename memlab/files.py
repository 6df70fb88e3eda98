"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from memlab.errors import ExportError


@contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name only when everything is in it.

    A full disk or an interruption leaves what was there before, and no partial file beside it.

    :raises ExportError: when the folder or the file cannot be written.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as stream:
            yield stream
        partial.replace(path)
    except OSError as error:
        raise ExportError(
            f"{path}: cannot be written: {error.strerror or error}; nothing was changed: free space, or write to "
            "another folder"
        ) from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
