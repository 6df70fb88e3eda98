"""Atomic writing of files, locks, and digests of files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO

from memlab.errors import ExportError


@contextmanager
def open_atomically(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name only when it is complete.

    A full disk or an interruption leaves what was there before, and no partial file beside it; what
    a process that was killed left in the folder is removed.

    :raises ExportError: when the folder or the file cannot be written.
    """
    partial = path.parent / f".{path.name}.{os.getpid()}.partial"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_stale_partials(path.parent)
        with partial.open("wb") as stream, lock_path(partial):
            yield stream
        partial.replace(path)
    except OSError as error:
        raise ExportError(
            f"{path}: cannot be written: {error.strerror or error}; nothing was changed: free space, or write to "
            "another folder"
        ) from error
    finally:
        remove(partial)


@contextmanager
def lock_path(path: Path, *, alone: bool = False, wait: bool = False) -> Iterator[bool]:
    """Lock a folder, or a file, which is made; the system unlocks it when the process ends.

    :param alone: an exclusive lock; otherwise several processes share it.
    :param wait: wait for the exclusive lock; otherwise it is not taken where another process has
        one.
    :returns: whether it is locked; never where the file system has no locks.
    """
    handle, held = -1, False
    with suppress(ImportError, OSError):
        import fcntl

        # Network file systems lock files, not folders, and alone only what can be written.
        as_file = os.O_CREAT | (os.O_RDWR if alone else os.O_RDONLY)
        handle = os.open(path, os.O_RDONLY if path.is_dir() else as_file, 0o666)
        fcntl.flock(
            handle,
            (fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            | (fcntl.LOCK_NB if alone and not wait else 0),
        )
        held = True
    try:
        yield held
    finally:
        if held:  # A process that was forked meanwhile has the handle too.
            fcntl.flock(handle, fcntl.LOCK_UN)
        if handle >= 0:
            os.close(handle)


def remove_stale_partials(folder: Path) -> None:
    """Remove temporary files whose process has ended, here or on another machine."""
    for path in folder.glob(".*.partial"):
        process = path.suffixes[-2][1:] if len(path.suffixes) > 1 else ""
        if (
            process.isdecimal()
            and not Path(f"/proc/{process}").exists()
            and Path("/proc/self").exists()
        ):
            with lock_path(path, alone=True) as held:
                if held:
                    remove(path)


def remove(path: Path) -> None:
    """Remove a file or a folder, as far as that can be done."""
    with suppress(OSError):
        if path.is_dir():
            rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def digest(path: Path) -> str:
    """Give a digest of a file, or of the names and contents of all files of a folder.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from memlab.files import digest
    >>> file = Path(tempfile.mkdtemp(), "model")
    >>> _ = file.write_text("one")
    >>> digest(file)
    '7692c3ad3540bb80'
    """
    if not path.is_dir():
        return sha256(path)[:16]
    whole = hashlib.sha256()
    for file in sorted(inner for inner in path.rglob("*") if inner.is_file()):
        whole.update(f"{file.relative_to(path)}\0{sha256(file)}\n".encode())
    return whole.hexdigest()[:16]


def sha256(path: Path) -> str:
    """Give the SHA-256 of a file; an unchanged file is read once in a process."""
    state = path.stat()
    return _read_digest(str(path.resolve()), state.st_mtime_ns, state.st_ctime_ns, state.st_size)


@lru_cache(maxsize=1024)
def _read_digest(path: str, changed: int, moved: int, size: int) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
