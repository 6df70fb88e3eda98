"""The files of an export: one, those of a folder, or those of a ZIP archive, which is never unpacked to disk."""

from __future__ import annotations

import codecs
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO
from zlib import error as ZlibError

import polars as pl
from tqdm import tqdm

from memlab.datasets._json import key_paths, lines, objects
from memlab.datasets._read import Source, natural
from memlab.terminal import one_line

TEXTS = (".json", ".jsonl", ".ndjson", ".txt", ".af", ".csv", ".tsv", ".parquet", ".html", ".htm")
_HEAD = 1 << 16
_MOST = 16 << 30
_RATIO, _SMALL = 200, 64 << 20
_LINES = (".jsonl", ".ndjson")
_FAULTS = (OSError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, ZlibError)
"""What a broken archive raises, when it is opened or read."""
_CSV = (".csv", ".tsv")
_SEPARATORS = (",", ";", "\t")


@dataclass
class Member(Source):
    """One file of an export, read from the disk or straight out of an archive.

    :param name: its path in the folder or archive, with ``/``.
    """

    name: str = ""
    archive: zipfile.ZipFile | None = None
    entry: zipfile.ZipInfo | None = None

    def open(self) -> BinaryIO:
        if self.archive is None or self.entry is None:
            return super().open()
        try:
            file = io.BufferedReader(_Entry(self, self.archive.open(self.entry)))
            start = file.peek(3)
        except _FAULTS as error:
            self.fail(f"cannot be read ({error}); was the archive downloaded whole, without a password?", error)
        if start.startswith(codecs.BOM_UTF8):
            file.read(3)
        return file

    def progress(self) -> Any:
        size = self.entry.file_size if self.entry else self.path.stat().st_size
        return tqdm(total=size, unit="B", unit_scale=True, desc=one_line(self.name), delay=2, leave=False)

    @cached_property
    def head(self) -> str:
        """The beginning of the file as text."""
        with self.open() as file:
            start = file.read(_HEAD)
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return start.decode("utf-16", "replace")
        return start.decode("utf-8", "replace")

    @cached_property
    def keys(self) -> set[str]:
        """Dotted paths of the keys at the beginning of a JSON file; empty for any other."""
        return key_paths(self.head) if self.head.lstrip()[:1] in ("{", "[") else set()

    @cached_property
    def columns(self) -> set[str]:
        """The columns of a CSV or Parquet file; none for any other."""
        if self.head.startswith("PAR1"):
            return set(self.frame(rows=0).columns)
        first, separator = self._header
        cells = first.split(separator) if self.name.lower().endswith(_CSV) else []
        return {cell.strip().strip('"') for cell in cells}

    @property
    def _header(self) -> tuple[str, str]:
        """The first line, and what its cells stand between."""
        first = self.head.lstrip("\ufeff").partition("\n")[0].rstrip("\r")
        return first, max(_SEPARATORS, key=first.count)

    def frame(self, rows: int | None = None) -> pl.DataFrame:
        """Read a CSV or Parquet file, or its first rows; the cells of a CSV are texts.

        :raises DataError: when it cannot be read.
        """
        try:
            with self.open() as file:
                if self.head.startswith("PAR1"):
                    return pl.read_parquet(io.BytesIO(file.read()) if self.archive else self.path, n_rows=rows)
                raw = io.BytesIO(file.read())
            return pl.read_csv(raw, separator=self._header[1], infer_schema=False, n_rows=rows)
        except (OSError, pl.exceptions.PolarsError, UnicodeDecodeError) as error:
            self.fail(f"cannot be read as a table ({str(error)[:200]}); was it written whole, in UTF-8?", error)

    def forget(self) -> None:
        """Let go of the beginning: an export may have a hundred thousand files."""
        for read in ("head", "keys", "columns"):
            self.__dict__.pop(read, None)

    def values(self) -> Iterator[tuple[int, Any]]:
        """Stream what stands in a JSON file: the values of its list, or of its lines, with their numbers from 1."""
        if self.name.lower().endswith(_LINES):
            yield from lines(self)
        else:
            yield from ((index + 1, value) for index, value in objects(self))

    def text(self) -> str:
        """Read a whole text file, in UTF-8 or UTF-16.

        :raises DataError: for another encoding.
        """
        with self.open() as file:
            raw = file.read()
        encoding = "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError as error:
            byte = f"a byte that is not {encoding.upper()} (0x{raw[error.start]:02x}, byte {error.start + 1})"
            self.fail(f"found {byte}; save the file as UTF-8", error)


class _Entry(io.RawIOBase):
    """An entry of an archive whose faults are those of its file."""

    def __init__(self, member: Member, inner: Any) -> None:
        self.member, self.inner, self.at = member, inner, 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.at

    def readinto(self, buffer: Any) -> int:
        try:
            chunk = self.inner.read(len(buffer))
        except _FAULTS as error:
            self.member.fail(f"cannot be unpacked ({error}); was the archive downloaded whole?", error)
        buffer[: len(chunk)] = chunk
        self.at += len(chunk)
        return len(chunk)


def is_archive(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def members(source: Source) -> list[Member]:
    """Give the files of an export that may hold text, by their paths, 2 before 10.

    :raises DataError: for an archive that is broken, encrypted, or far larger unpacked than packed.
    """
    shared = {f.name: getattr(source, f.name) for f in fields(Source)}
    if is_archive(source.path):
        return sorted(_entries(source, shared), key=lambda member: natural(member.name))
    if not source.path.is_dir():
        return [Member(**shared, name=source.path.name)]
    found = []
    for path in source.path.rglob("*"):
        name = path.relative_to(source.path).as_posix()
        if _is_text(name) and path.is_file():
            found.append(Member(**{**shared, "path": path}, name=name))
    return sorted(found, key=lambda member: natural(member.name))


def _entries(source: Source, shared: dict[str, Any]) -> list[Member]:
    try:
        archive = zipfile.ZipFile(source.path)
        entries = [entry for entry in archive.infolist() if not entry.is_dir() and _is_text(_posix(entry.filename))]
    except _FAULTS as error:
        source.fail(f"is no whole ZIP archive ({error}); download it again", error)
    total = sum(entry.file_size for entry in entries)
    packed = sum(entry.compress_size for entry in entries)
    if total > _MOST or total > _RATIO * packed + _SMALL:
        source.fail(f"holds {total:,} bytes of text in {packed:,}: no chat does; unpack it, and give the file you mean")
    for entry in entries:
        if entry.flag_bits & 1:
            source.fail(f"{entry.filename!r} has a password; unpack the archive, and give the folder")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            source.fail(f"{entry.filename!r} is packed by another method than deflate; unpack it, and give the folder")
    # A name is a label: nothing is written under it.
    return [
        Member(
            **{**shared, "path": source.path / _posix(entry.filename).lstrip("/")},
            name=_posix(entry.filename).lstrip("/"),
            archive=archive,
            entry=entry,
        )
        for entry in entries
    ]


def _posix(name: str) -> str:
    return name.replace("\\", "/")


def _is_text(name: str) -> bool:
    parts = PurePosixPath(name).parts
    hidden = any((part.startswith(".") and part != "..") or part == "__MACOSX" for part in parts)
    return name.lower().endswith(TEXTS) and not hidden
