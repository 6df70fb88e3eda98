"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
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


def file_names(names: Sequence[str]) -> dict[str, str]:
    """Give each pipeline a short name that every file system takes, in the same order; alike ones are numbered.

    >>> from memlab.evaluate import file_names
    >>> file_names(["hybrid(k=200) | mmr(lambda_=0.7)", "bm25", "BM25"])
    {'hybrid(k=200) | mmr(lambda_=0.7)': 'hybrid-k-200-mmr-lambda_-0.7', 'bm25': 'bm25', 'BM25': 'bm25-2'}
    """
    given: dict[str, str] = {}
    for name in names:
        stem = re.sub(r"[^a-z0-9_.]+", "-", name.lower()).strip("-.")[:80] or "run"
        free, number = stem, 1
        while free in given.values():
            number += 1
            free = f"{stem}-{number}"
        given.setdefault(name, free)
    return given
