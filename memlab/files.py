"""Files that are there whole or not at all, and digests of what is in them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from memlab.errors import ExportError


@contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name only when everything is in it.

    A full disk or an interruption leaves what was there before, and no partial file beside it.

    :raises ExportError: when the folder or the file cannot be written.
    """
    partial = path.parent / f".{path.name}.{os.getpid()}.partial"
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


def digest(path: Path) -> str:
    """Name what is in a file, or in all files of a folder and what they are called.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from memlab.files import digest
    >>> file = Path(tempfile.mkdtemp(), "model")
    >>> _ = file.write_text("one")
    >>> digest(file)
    '7692c3ad3540bb80'
    """
    if not path.is_dir():
        return _digest_of(path)[:16]
    whole = hashlib.sha256()
    for file in sorted(inner for inner in path.rglob("*") if inner.is_file()):
        whole.update(f"{file.relative_to(path)}\0{_digest_of(file)}\n".encode())
    return whole.hexdigest()[:16]


def _digest_of(path: Path) -> str:
    state = path.stat()
    return _read_digest(str(path.resolve()), state.st_mtime_ns, state.st_ctime_ns, state.st_size)


@lru_cache(maxsize=1024)
def _read_digest(path: str, changed: int, moved: int, size: int) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
