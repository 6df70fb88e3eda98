"""ZIP archives, read in place: the entries that may hold a chat, and what no chat unpacks to."""

from __future__ import annotations

import zipfile
from pathlib import Path, PurePosixPath
from typing import NoReturn
from zlib import error as ZlibError

from memlab.datasets.record_fields import escape_surrogates
from memlab.errors import DataError

TEXTS = (".json", ".jsonl", ".ndjson", ".txt", ".af", ".csv", ".tsv", ".parquet", ".html", ".htm")
"""Endings of the files of a folder or an archive that may hold a chat."""
UNREAD = (".zip", ".gz", ".tgz", ".bz2", ".7z", ".rar", ".db", ".sqlite", ".md")
"""Endings of files that may hold one too, and are reported as left out.

Archives of a folder are opened first.
"""
FAULTS = (OSError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, ZlibError)
"""What a file or a broken archive raises, when it is opened or read."""
PackedEntry = tuple[zipfile.ZipFile, zipfile.ZipInfo]
"""An archive, and an entry in it."""
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_MOST_TEXT = 16 << 30  # bytes of the texts of an archive
_MOST_RATIO = 200  # of unpacked bytes to packed ones
_ALWAYS_READ = 64 << 20  # bytes that are read however small they were packed


def has_chat_file_name(file_name: str, endings: tuple[str, ...] = TEXTS) -> bool:
    """Say whether a file of a folder or an archive may hold a chat, by its name."""
    for path_part in PurePosixPath(file_name).parts:
        if path_part == "__MACOSX":
            return False
        if path_part.startswith(".") and path_part != "..":  # it is hidden
            return False
    return file_name.lower().endswith(endings)


def is_zip_bomb(n_unpacked_bytes: int, n_packed_bytes: int) -> bool:
    """Say whether so many bytes are more than any chat unpacks to."""
    return n_unpacked_bytes > _MOST_RATIO * n_packed_bytes + _ALWAYS_READ


def list_chat_entries(archive_path: Path) -> dict[str, PackedEntry]:
    """List the entries of an archive that may hold a chat, by their names.

    A name is a label, nothing is written.

    :raises DataError: for an archive that is broken, encrypted, or far larger unpacked than packed.
    """
    entries: dict[str, zipfile.ZipInfo] = {}
    try:
        archive = zipfile.ZipFile(archive_path)
        for entry in archive.infolist():
            if not entry.is_dir():
                entries[entry.filename.replace("\\", "/").lstrip("/")] = entry
    except FAULTS as error:
        _fail_about_archive(
            archive_path, f"is no whole ZIP archive ({error}); download it again", error
        )
    kept_entries = {}
    unpacked_bytes = packed_bytes = 0
    unreadable = []
    for name, entry in entries.items():
        if has_chat_file_name(name, TEXTS + UNREAD):
            kept_entries[name] = archive, entry
        if has_chat_file_name(name):
            unpacked_bytes += entry.file_size
            packed_bytes += entry.compress_size
            if entry.flag_bits & 1 or entry.compress_type not in _PACKINGS:
                unreadable.append(name)
    if unpacked_bytes > _MOST_TEXT or is_zip_bomb(unpacked_bytes, packed_bytes):
        fault_text = f"holds {unpacked_bytes:,} bytes of text in {packed_bytes:,}: no chat does"
        _fail_about_archive(archive_path, f"{fault_text}; unpack it, and give the file you mean")
    if unreadable:
        fault_text = f"{unreadable[0]!r} has a password or a packing other than deflate"
        _fail_about_archive(archive_path, f"{fault_text}; unpack the archive, and give the folder")
    return kept_entries


def _fail_about_archive(
    archive_path: Path, message: str, cause: BaseException | None = None
) -> NoReturn:
    raise DataError(escape_surrogates(f"{archive_path}: {message}")) from cause
