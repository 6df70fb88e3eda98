"""ZIP archives, read in place: what may hold text, the faults of what is broken, and what is too large to be a chat."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn
from zlib import error as ZlibError

TEXTS = (".json", ".jsonl", ".ndjson", ".txt", ".af", ".csv", ".tsv", ".parquet", ".html", ".htm")
"""Endings of the files of a folder or an archive that may hold a chat."""
FAULTS = (OSError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, ZlibError)
"""What a file or a broken archive raises, when it is opened or read."""
_MOST, _RATIO, _SMALL = 16 << 30, 200, 64 << 20  # bytes of text; of text to packed; what is always read


def is_archive(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def is_text(name: str) -> bool:
    """Say whether a file of a folder or an archive may hold a chat, by its name."""
    parts = PurePosixPath(name).parts
    hidden = any((part.startswith(".") and part != "..") or part == "__MACOSX" for part in parts)
    return name.lower().endswith(TEXTS) and not hidden


def is_zip_bomb(unpacked: int, packed: int) -> bool:
    """Say whether so many bytes are more than any chat unpacks to."""
    return unpacked > _RATIO * packed + _SMALL


def natural_sort_key(name: str) -> list[str]:
    """Give a key to sort names by, in which 2 stands before 10."""
    return [part.zfill(20) if part.isdecimal() else part for part in re.findall(r"\d+|\D+", name)]


def list_text_entries(
    path: Path, fail: Callable[..., NoReturn]
) -> tuple[zipfile.ZipFile, list[tuple[str, zipfile.ZipInfo]]]:
    """List the entries of an archive that may hold text, by their names; a name is a label, nothing is written.

    :param fail: called for an archive that is broken, encrypted, or far larger unpacked than packed.
    """
    try:
        archive = zipfile.ZipFile(path)
        listed = [(entry.filename.replace("\\", "/").lstrip("/"), entry) for entry in archive.infolist()]
    except FAULTS as error:
        fail(f"is no whole ZIP archive ({error}); download it again", error)
    kept = [(name, entry) for name, entry in listed if is_text(name) and not entry.is_dir()]
    total, packed = (sum(getattr(entry, size) for _, entry in kept) for size in ("file_size", "compress_size"))
    if total > _MOST or is_zip_bomb(total, packed):
        fail(f"holds {total:,} bytes of text in {packed:,}: no chat does; unpack it, and give the file you mean")
    for name, entry in kept:
        if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            fail(f"{name!r} has a password or a packing other than deflate; unpack the archive, and give the folder")
    return archive, sorted(kept, key=lambda pair: natural_sort_key(pair[0]))


class Entry(io.RawIOBase):
    """An entry of an archive that is unpacked while it is read; its faults are those of its file.

    :param inner: the entry as :mod:`zipfile` opens it.
    :param fail: called where the archive turns out to be broken.
    """

    def __init__(self, inner: Any, fail: Callable[..., NoReturn]) -> None:
        self.inner, self.fail = inner, fail

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self.inner.tell())

    def readinto(self, buffer: Any) -> int:
        try:
            chunk = self.inner.read(len(buffer))
        except FAULTS as error:
            self.fail(f"cannot be unpacked ({error}); check that the archive was downloaded whole", error)
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        self.inner.close()
        super().close()
