"""Atomic writing of files, locks, waits that can be ended, and digests of files."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO, TypeVar

from memlab.errors import DataError, ExportError

T = TypeVar("T")

_log = logging.getLogger(__name__)

STATED_AFTER = 2.0
STATED_EVERY = 60.0
"""Seconds of waiting for a lock after which its holder is stated, and stated again."""

_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.1
_IS_LOCKED = (errno.EWOULDBLOCK, errno.EACCES)
_HAS_NO_LOCKS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS)


_INSTALLED_DATA = Path(__file__).parent / "data"
_CHECKOUT_DATA = Path(__file__).parents[1] / "data"


def shipped_data(*path_parts: str) -> Path:
    """Give the place of a file or folder of the data that comes with memlab.

    An installed package has it in itself, the sample alone (``setup.py`` puts it there); a checkout
    has it in its folder ``data``. Nothing need be there.

    >>> from memlab.atomic_files import shipped_data
    >>> shipped_data("sample", "sample.jsonl").is_file()
    True
    """
    installed = _INSTALLED_DATA.joinpath(*path_parts)
    if installed.exists():
        return installed
    return _CHECKOUT_DATA.joinpath(*path_parts)


def shipped_notebooks() -> Path:
    """Give the folder of the notebooks that come with memlab: of the package, or of the checkout.

    Nothing need be there.

    >>> from memlab.atomic_files import shipped_notebooks
    >>> (shipped_notebooks() / "00_tour.ipynb").is_file()
    True
    """
    installed_folder = _INSTALLED_DATA / "notebooks"
    if installed_folder.exists():
        return installed_folder
    return _CHECKOUT_DATA.parent / "notebooks"


def make_absolute(path: str | os.PathLike[str]) -> Path:
    """Give the absolute path of what is read or written later, maybe from another working
    directory.

    :raises DataError: when the path is relative and the working directory was removed.

    >>> from memlab.atomic_files import make_absolute
    >>> make_absolute("/data/../data/answers.jsonl").as_posix()
    '/data/answers.jsonl'
    """
    try:
        return Path(os.path.abspath(os.path.expanduser(path)))
    except FileNotFoundError as error:
        raise DataError(
            f"{os.fspath(path)!r} is of a working directory that was removed; change to another "
            "one, "
            "or name an absolute path"
        ) from error


@contextmanager
def open_atomically(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that gets its name only when it is complete.

    A full disk or an interruption leaves what was there before, and no partial file beside it; what
    a process that was killed left in the folder is removed.

    :raises ExportError: when the folder or the file cannot be written.
    """
    partial_file = path.parent / f".{path.name}.{os.getpid()}.partial"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_stale_partials(path.parent)
        with partial_file.open("wb") as stream, lock_path(partial_file):
            yield stream
        partial_file.replace(path)
    except OSError as error:
        raise ExportError(
            f"{path}: cannot be written: {error.strerror or error}; nothing was changed: free "
            "space, or write to "
            "another folder"
        ) from error
    finally:
        remove(partial_file)


@contextmanager
def lock_path(path: Path, *, alone: bool = False, wait_for: str = "") -> Iterator[bool]:
    """Lock a folder, or a file, which is made; the system unlocks it when the process ends.

    A file that is waited for has in it who holds it and since when.

    :param alone: an exclusive lock; otherwise several processes share it, and wait for one who has
        it alone.
    :param wait_for: wait for the exclusive lock; what is waited for, which is stated with the
        holder after :data:`STATED_AFTER` seconds. Without it the lock is not taken where another
        process has one. Ctrl-C ends the waiting.
    :returns: whether it is locked; never where the file system has no locks.
    :raises OSError: when the file cannot be opened or locked for any other reason.
    """
    try:
        import fcntl
    except ImportError:  # a system without this kind of lock
        yield False
        return
    handle = _open_or_create_descriptor_to_lock(path, is_exclusive=alone)
    is_locked: bool | None = None
    try:
        lock_kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        if alone and not wait_for:
            is_locked = _try_lock_or_none_if_unsupported(handle, lock_kind | fcntl.LOCK_NB)
        else:
            is_locked = _wait_for_lock_and_log_holder(
                handle, lock_kind | fcntl.LOCK_NB, path, wait_for or str(path)
            )
        if is_locked and alone and wait_for:
            _write_lock_holder(handle)
        yield bool(is_locked)
    finally:
        if is_locked:  # A process that was forked meanwhile has the handle too.
            if alone and wait_for:
                _clear_lock_holder(handle)
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _open_or_create_descriptor_to_lock(path: Path, *, is_exclusive: bool) -> int:
    """Open what is to be locked.

    Network file systems lock alone only what can be written, and files.
    """
    if path.is_dir():
        return os.open(path, os.O_RDONLY)
    open_mode = os.O_RDWR if is_exclusive else os.O_RDONLY
    try:
        return os.open(path, os.O_CREAT | open_mode, 0o666)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        # Of another user, or on a disk that cannot be written: local ones lock it all the same.
        return os.open(path, os.O_RDONLY)


def _try_lock_or_none_if_unsupported(descriptor: int, lock_mode: int) -> bool | None:
    """Lock an open file: ``False`` where another has a lock, ``None`` where there are no locks."""
    import fcntl

    try:
        fcntl.flock(descriptor, lock_mode)
    except OSError as error:
        if error.errno in _IS_LOCKED:
            return False
        if error.errno in _HAS_NO_LOCKS:
            return None
        raise
    return True


def _wait_for_lock_and_log_holder(
    descriptor: int, lock_mode: int, path: Path, waited_for: str
) -> bool | None:
    """Ask for a lock until it is given, and state who has it.

    One that waited in the system would go on waiting after Ctrl-C: polars has its handler restart
    system calls, in the whole process.
    """
    pause_seconds = _FIRST_PAUSE
    state_at = time.monotonic() + STATED_AFTER
    while (is_locked := _try_lock_or_none_if_unsupported(descriptor, lock_mode)) is False:
        if time.monotonic() >= state_at:
            _log.warning(
                "waiting for %s: %s; Ctrl-C ends the waiting",
                waited_for,
                _describe_lock_holder(path),
            )
            state_at += STATED_EVERY
        time.sleep(pause_seconds)
        pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE)
    return is_locked


def _write_lock_holder(descriptor: int) -> None:
    """Note in a locked file who has it; one that cannot be written, or a full disk, has no note."""
    held_since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {socket.gethostname()} {held_since}".encode(), 0)


def _clear_lock_holder(descriptor: int) -> None:
    with suppress(OSError):
        os.ftruncate(descriptor, 0)


def _describe_lock_holder(lock_file: Path) -> str:
    """Say who has an exclusive lock, as far as its file says."""
    noted_holder = ""
    with suppress(OSError, ValueError):
        noted_holder = lock_file.read_text(encoding="utf-8")
    process, _, host_and_time = noted_holder.partition(" ")
    host_name, _, held_since = host_and_time.partition(" ")
    if not held_since:
        return "another process has it"
    holder_text = f"process {process} of {host_name}"
    if (process, host_name) == (str(os.getpid()), socket.gethostname()):
        holder_text = f"another thread of this process ({process})"
    return f"{holder_text} has had it since {held_since}"


def let_ctrl_c_end_waits() -> None:
    """Let Ctrl-C end the waits of this process that have no time limit.

    A library may have its handler of the signal restart system calls, as polars does when it first
    collects: whoever waits for a thread, a lock or an answer then goes on waiting.
    """
    if hasattr(signal, "siginterrupt"):  # not on Windows
        signal.siginterrupt(signal.SIGINT, True)


def call_with_time_limit(seconds: float, function: Callable[[], T]) -> T:
    """Call a function that may wait for another machine, and give up waiting after some seconds.

    Its thread goes on until the function ends, or the process.

    :raises TimeoutError: when it did not end in time.
    :raises BaseException: as the function does.

    >>> from memlab.atomic_files import call_with_time_limit
    >>> call_with_time_limit(60, lambda: 2 + 2)
    4
    """
    results = list[T]()
    errors = list[BaseException]()

    def call_and_keep_outcome() -> None:
        try:
            results.append(function())
        except BaseException as error:  # raised again in the thread that asked
            errors.append(error)

    let_ctrl_c_end_waits()
    thread = threading.Thread(target=call_and_keep_outcome, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError(f"it did not answer within {seconds:g} seconds")
    if errors:
        raise errors[0]
    return results[0]


def remove_stale_partials(folder: Path) -> None:
    """Remove temporary files whose process has ended, here or on another machine."""
    for path in folder.glob(".*.partial"):
        process_id = path.suffixes[-2][1:] if len(path.suffixes) > 1 else ""
        if (
            process_id.isdecimal()
            and not Path(f"/proc/{process_id}").exists()
            and Path("/proc/self").exists()
        ):
            # Another process may be removing it too.
            with suppress(OSError), lock_path(path, alone=True) as is_locked:
                if is_locked:
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
    >>> from memlab.atomic_files import digest
    >>> file = Path(tempfile.mkdtemp(), "model")
    >>> _ = file.write_text("one")
    >>> digest(file)
    '7692c3ad3540bb80'
    """
    if not path.is_dir():
        return sha256(path)[:16]
    folder_digest = hashlib.sha256()
    for inner_file in sorted(inner for inner in path.rglob("*") if inner.is_file()):
        folder_digest.update(f"{inner_file.relative_to(path)}\0{sha256(inner_file)}\n".encode())
    return folder_digest.hexdigest()[:16]


def sha256(path: Path) -> str:
    """Give the SHA-256 of a file; an unchanged file is read once in a process."""
    state = path.stat()
    return _sha256_of_unchanged_file(
        str(path.resolve()), state.st_mtime_ns, state.st_ctime_ns, state.st_size
    )


@lru_cache(maxsize=1024)
def _sha256_of_unchanged_file(
    path: str, modified_ns: int, status_changed_ns: int, n_bytes: int
) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
