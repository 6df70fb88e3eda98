"""ZIP archives, read in place: what may hold text, the faults of what is broken, and what is too large to be a chat."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import NoReturn
from zlib import error as ZlibError

TEXTS = (".json", ".jsonl", ".ndjson", ".txt", ".af", ".csv", ".tsv", ".parquet", ".html", ".htm")
"""Endings of the files of a folder or an archive that may hold a chat."""
FAULTS = (OSError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, ZlibError)
"""What a file or a broken archive raises, when it is opened or read."""
_MOST, _RATIO, _SMALL = 16 << 30, 200, 64 << 20  # bytes of text; of text to packed; what is always read


def may_hold_text(name: str) -> bool:
    """Say whether a file of a folder or an archive may hold a chat, by its name."""
    parts = PurePosixPath(name).parts
    hidden = any((part.startswith(".") and part != "..") or part == "__MACOSX" for part in parts)
    return name.lower().endswith(TEXTS) and not hidden


def is_zip_bomb(unpacked: int, packed: int) -> bool:
    """Say whether so many bytes are more than any chat unpacks to."""
    return unpacked > _RATIO * packed + _SMALL


def list_text_entries(path: Path, fail: Callable[..., NoReturn]) -> dict[str, tuple[zipfile.ZipFile, zipfile.ZipInfo]]:
    """List the entries of an archive that may hold text, by their names; a name is a label, nothing is written.

    :param fail: called for an archive that is broken, encrypted, or far larger unpacked than packed.
    """
    try:
        archive = zipfile.ZipFile(path)
        entries = {entry.filename.replace("\\", "/").lstrip("/"): entry for entry in archive.infolist()}
    except FAULTS as error:
        fail(f"is no whole ZIP archive ({error}); download it again", error)
    kept = {name: (archive, entry) for name, entry in entries.items() if may_hold_text(name) and not entry.is_dir()}
    total, packed = (sum(getattr(each, size) for _, each in kept.values()) for size in ("file_size", "compress_size"))
    if total > _MOST or is_zip_bomb(total, packed):
        fail(f"holds {total:,} bytes of text in {packed:,}: no chat does; unpack it, and give the file you mean")
    for name, (_, entry) in kept.items():
        if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            fail(f"{name!r} has a password or a packing other than deflate; unpack the archive, and give the folder")
    return kept
