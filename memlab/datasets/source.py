"""Sources of records: a file, the files of a folder or those of a ZIP archive, and what was odd or
bad in them.

Nothing is unpacked to the disk: :mod:`memlab.datasets.archives` lists what is in an archive, and
:mod:`memlab.datasets.json_values` reads JSON of any size. A bad record stops the load or goes to
quarantine, see :meth:`Source.record`.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

import polars as pl

from memlab.datasets import archives, json_values
from memlab.datasets.fields import (
    BadField,
    Report,
    describe_value,
    escape_surrogates,
    is_serial,
    is_slashed,
    parse_time,
)
from memlab.errors import DataError
from memlab.records import Dataset, Issue
from memlab.sessions import GAP

QUARANTINE = Path(".memlab") / "quarantine"
_HEAD, _FURTHER = 1 << 16, 1 << 22
_CHUNK = 1 << 21
_MOST_BAD = 20_000  # records of a load that are set aside
_AROUND = ("data.", "conversations.")
_UTF16 = re.compile(
    rb"(?s)\xff\xfe|\xfe\xff|([^\0]\0){2}|(\0[^\0]){2}"
)  # by its mark, or by half of its bytes


@dataclass
class Source:
    """What is read, with the options of the load and its report, which the files of a folder or
    archive share.

    :param on_error: ``raise``, or ``quarantine``: bad records go to a side file, which is only ever
        added to, and a line that it holds is not written again.
    :param language: of the conversations; ``None`` for what the file says, English where it says
        nothing.
    :param into: gives what is there of some scopes, where a chat log goes on one that is there.
    :param tz: the zone of times without one; UTC where it is left out.
    :param assistants: senders who are the assistant where no role is given; ``people``: senders who
        are none, whatever their name says.
    :param date_order: of dates that can be read in several ways: ``dmy``, ``mdy`` or ``ymd``.
    :param name: the path in the folder or archive, with ``/``; the file's name where it stands
        alone.
    :param members: the files that its format reads, where they were chosen already.
    :param packed: the archive and the entry in it, which is read in place.
    """

    path: Path
    on_error: str = "raise"
    quarantine_dir: Path = QUARANTINE
    gap: timedelta = GAP
    language: str | None = None
    into: Callable[[list[str]], Dataset] | None = None
    tz: tzinfo | None = None
    assistants: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    date_order: str | None = None
    name: str = ""
    members: list[Source] = field(default_factory=list)
    report: Report = field(default_factory=Report)
    packed: tuple[zipfile.ZipFile, zipfile.ZipInfo] | None = None

    def __post_init__(self) -> None:
        self.name, self.looked = self.name or self.path.name, _HEAD
        self.stem = PurePosixPath(self.name).with_suffix("").as_posix() if self.name else ""

    @cached_property
    def holds_files(self) -> bool:
        """Whether it is a folder or a ZIP archive."""
        if os.path.isdir(self.path):
            return True
        try:
            with self.path.open("rb") as file:
                return file.read(4) == b"PK\x03\x04"
        except (OSError, ValueError):
            return False

    @property
    def size(self) -> int:
        return self.packed[1].file_size if self.packed else self.path.stat().st_size

    def files(self, *patterns: str, unread: bool = False) -> list[Source]:
        """Give the file itself, the files of a folder that match the first pattern that any does,
        or, without a pattern, all files of a folder, of the archives in it or of an archive that
        may hold text; 2 stands before 10.

        :param unread: give instead the files that may hold a chat and are not read, see
            :data:`memlab.datasets.archives.UNREAD`.
        :raises DataError: for an archive that is broken, encrypted, or far larger unpacked than
            packed.
        """
        alone, found = replace(self, members=[]), dict[str, Any]()
        if not os.path.isdir(self.path):
            if patterns or not self.holds_files:
                return [] if unread else [alone]
            found = archives.list_entries(self.path)
        else:
            for pattern in patterns or ("**/*",):
                paths = self.path.glob(pattern) if not found else ()
                found |= {
                    path.relative_to(self.path).as_posix(): None for path in paths if path.is_file()
                }
            found = found if patterns else self._open_archives(found)
        endings = archives.UNREAD if unread else archives.TEXTS
        names = (name for name in found if patterns or archives.may_hold_text(name, endings))
        order = sorted(
            names, key=lambda name: re.sub(r"\d+", lambda number: number[0].zfill(20), name)
        )
        return [
            replace(alone, path=self.path / name, name=name, packed=found[name]) for name in order
        ]

    def _open_archives(self, found: dict[str, Any]) -> dict[str, Any]:
        """Put what is in the ZIPs of a folder in their place, but for those that lie there
        unpacked, or are broken.
        """
        texts = [(name, self.path / name) for name in found if archives.may_hold_text(name)]
        zips = [name for name in found if archives.may_hold_text(name, (".zip",))]
        if not zips:
            return found
        unpacked = {(path.name, path.stat().st_size): path for _, path in texts}
        for name in zips:
            try:
                inside = archives.list_entries(self.path / name)
            except DataError:
                if texts:
                    continue
                raise
            there = (
                (unpacked.get((PurePosixPath(n).name, e.file_size)), e.CRC)
                for n, (_, e) in inside.items()
            )
            if not inside or not all(
                path and zlib.crc32(path.read_bytes()) == crc for path, crc in there
            ):
                del found[name]
                found |= {f"{name}/{entry}": packed for entry, packed in inside.items()}
        return found

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Open the file in a ``with`` block, past a byte order mark.

        Of UTF-16, which is read whole, as UTF-8.

        :raises DataError: when it is missing, unreadable or empty, or its archive turns out to be
            broken.
        """
        if os.path.isdir(self.path):
            self.fail("is a directory, expected a file; name one of the files in it")
        try:
            file: Any = self.packed[0].open(self.packed[1]) if self.packed else self.path.open("rb")
            with file:
                start = file.peek(4)[:4]
                if start in (b"", codecs.BOM_UTF8):
                    self.fail(
                        "is empty, expected conversations; check that it was written or downloaded "
                        "whole"
                    )
                if start.startswith(codecs.BOM_UTF8):
                    file.read(len(codecs.BOM_UTF8))
                if wide := _UTF16.match(start):
                    encoding = "utf-16-le" if wide[1] else "utf-16-be" if wide[2] else "utf-16"
                    text = file.read().decode(encoding, "surrogatepass")
                    file = io.BytesIO(text.encode("utf-8", "surrogatepass"))
                yield file
        except archives.FAULTS as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            self.fail(
                f"cannot be read ({why}); check the path, and that it was downloaded whole", error
            )

    @cached_property
    def is_api_list(self) -> bool:
        """Whether it is the page of an API: an object around a list of records, the newest of which
        may stand first.
        """
        keys = self.first_keys
        paged = "data" in keys and bool(keys & {"object", "has_more", "first_id"})
        return paged and self.head.lstrip()[:1] == "{"

    @cached_property
    def head(self) -> str:
        """The beginning of the file as text."""
        with self.open() as file:
            start = file.read(self.looked)
        return start.decode("utf-8", "replace")

    @cached_property
    def keys(self) -> set[str]:
        """Dotted paths of the keys at the beginning of a JSON file, and those of records in an
        object around them; empty for any other."""
        found = json_values.key_paths(self.head) if self.head.lstrip()[:1] in ("{", "[") else set()
        return found | {path.partition(".")[2] for path in found if path.startswith(_AROUND)}

    @cached_property
    def first_keys(self) -> set[str]:
        """The keys of the first record of a JSON file, without those within them, or the columns of
        a table.
        """
        return json_values.key_paths(self.head, first=True) | self.columns

    @property
    def is_parquet(self) -> bool:
        return self.head.startswith("PAR1")

    @cached_property
    def columns(self) -> set[str]:
        """The columns of a CSV or Parquet file; none for any other."""
        if self.is_parquet:
            return set(self.read_table(rows=0).columns)
        if not self.name.lower().endswith((".csv", ".tsv")):
            return set()
        return {cell.strip().strip('"') for cell in self.split_header()[1]}

    def split_header(self) -> tuple[str, list[str]]:
        """Give what stands between the cells of a CSV file, and those of its first line."""
        line = self.head.lstrip("\ufeff").partition("\n")[0].rstrip("\r")
        separator = max((",", ";", "\t"), key=line.count)
        return separator, line.split(separator)

    def forget(self) -> None:
        """Let go of the beginning: an export may have a hundred thousand files."""
        self.looked = _HEAD
        for read in ("head", "keys", "first_keys", "columns", "is_api_list"):
            self.__dict__.pop(read, None)

    def look_further(self) -> bool:
        """Look at more of a JSON file, whose first record may be longer than its beginning.

        False for any other.
        """
        further = self.looked == _HEAD < self.size and self.head.lstrip()[:1] in ("{", "[")
        if further:
            self.forget()
            self.looked = _FURTHER
        return further

    def values(self) -> Iterator[tuple[int, Any]]:
        """Stream the values of a JSON list or of JSON lines, or the rows of a table, with their
        numbers from 1.

        Of an object that is nothing but around records, as an API gives them, the records are
        given.
        """
        if self.columns:
            for number, row in enumerate(self.read_table().iter_rows(named=True), 1):
                if any(cell not in (None, "") for cell in row.values()):
                    yield (
                        number,
                        {
                            k.strip(): cell
                            for k, cell in row.items()
                            if cell not in (None, "") or k == "text"
                        },
                    )
        elif self.name.lower().endswith((".jsonl", ".ndjson")) and not re.match(
            r"\s*[\[{][ \t\r]*\n", self.head
        ):
            yield from self.stream_json_lines()
        else:
            values = (
                each
                for _, value in self.stream_json()
                for each in json_values.unwrap_records(value)
            )
            yield from enumerate(values, 1)

    def stream_json(
        self, *lists: str, repair: Callable[[str], str] | None = None
    ) -> Iterator[tuple[str, Any]]:
        """Stream the values of a JSON file: :func:`memlab.datasets.json_values.iterate_values`."""
        n = 0
        with self.open() as file:
            try:
                for path, value in json_values.iterate_values(file, *lists, repair=repair):
                    yield path, value
                    n += 1
            except json_values.BrokenJson as bad:
                self.reject("the file" if lists else f"record {n}", bad, bad.rest)

    def stream_json_lines(self) -> Iterator[tuple[int, Any]]:
        """Stream the objects, or lists, of a JSON-lines file with their line numbers (from 1).

        Blank lines are skipped.
        """
        for number, lines in self.read_line_chunks():
            yield from self.decode_lines(lines, number)

    def read_line_chunks(self) -> Iterator[tuple[int, bytes]]:
        """Read some megabytes of whole lines at a time, each with the number of its first line
        (from 1).
        """
        most = json_values.LONGEST
        number = 1
        with self.open() as file:
            while chunk := file.read(min(_CHUNK, most)):
                whole = chunk.rfind(b"\n") + 1
                last = chunk[whole:] + file.readline(most - len(chunk) + whole)
                if len(last) == most:
                    yield number, chunk[:whole]
                    number += chunk.count(b"\n", 0, whole)
                    what = f"line {number}: has {most:,} bytes and more"
                    self.fail(f"{what}; expected one record on a line")
                lines = chunk[:whole] + last
                yield number, lines
                number += lines.count(b"\n")

    def decode_lines(self, lines: bytes, first: int) -> Iterator[tuple[int, Any]]:
        """Decode lines of JSON one by one, with their numbers; those that are none are rejected.

        :param first: the number of the first line.
        """
        for number, line in enumerate(lines.split(b"\n"), first):
            line = line.rstrip(b"\r")
            if not line.strip():
                continue
            try:
                value = json_values.decode_line(line)
            except BadField as bad:
                self.reject(f"line {number}", bad, line.decode("utf-8", "surrogateescape"))
            else:
                yield number, value

    def read_table(self, rows: int | None = None) -> pl.DataFrame:
        """Read a CSV or Parquet file, or its first rows; the cells of a CSV are texts.

        :raises DataError: when it cannot be read.
        """
        raw: Any = self.path
        if self.packed or not self.is_parquet:
            with self.open() as file:
                raw = io.BytesIO(file.read())
        try:
            return self._read_parquet(raw, rows) if self.is_parquet else self._read_csv(raw, rows)
        except (OSError, pl.exceptions.PolarsError, UnicodeDecodeError) as error:
            what = f"cannot be read as a table ({str(error)[:200]})"
            self.fail(f"{what}; was it written whole, in UTF-8?", error)

    def _read_csv(self, raw: Any, rows: int | None) -> pl.DataFrame:
        separator, _ = self.split_header()
        options: dict[str, Any] = {"separator": separator, "infer_schema": False, "n_rows": rows}
        if separator == "\t":
            # A cell between tabs may begin with a quote that does not end it.
            with suppress(pl.exceptions.PolarsError):
                return pl.read_csv(raw, **options)
            return pl.read_csv(raw, **options, quote_char=None)
        return pl.read_csv(raw, **options)

    def _read_parquet(self, raw: Any, rows: int | None) -> pl.DataFrame:
        n = pl.scan_parquet(raw).select(pl.len()).collect().item()
        # A text takes 16 bytes unpacked, however often it is repeated.
        if archives.is_zip_bomb(16 * n, self.size):
            what = f"holds {n:,} rows in {self.size:,} bytes: no chat does"
            self.fail(f"{what}; see how it was written")
        return pl.read_parquet(raw, n_rows=rows)

    def text(self) -> str:
        """Read a whole text file, in UTF-8 or UTF-16.

        :raises DataError: for another encoding.
        """
        with self.open() as file:
            raw = file.read()
        try:
            return str(raw, "utf-8")
        except UnicodeDecodeError as error:
            byte = f"a byte that is not UTF-8 (0x{raw[error.start]:02x}, byte {error.start + 1})"
            self.fail(f"found {byte}; save the file as UTF-8", error)

    def parse_time(self, value: Any, where: str) -> datetime:
        """Read a time, see :func:`memlab.datasets.fields.parse_time`.

        The file says in which order it writes dates.
        """
        order = self.find_date_order() if is_slashed(value) else None
        if not self.report.serials and is_serial(value):
            self.report.serials = True
            action = "read as days since 1900, as spreadsheets count them"
            self.note("timestamp", f"{describe_value(value)} and the like", action)
        return parse_time(value, where, order)

    def find_date_order(self) -> str:
        """Say whether the day or the month stands first in dates such as 2/1/2026, decided over all
        that is read.
        """
        from memlab.datasets import time_forms

        if self.date_order in ("dmy", "mdy"):
            return self.date_order
        if self.report.date_order is None:
            self.report.date_order = time_forms.decide_order_of_files(self)
        return self.report.date_order

    def fail(self, message: str, cause: BaseException | None = None) -> NoReturn:
        raise DataError(escape_surrogates(f"{self.path}: {message}")) from cause

    def note(self, where: str, found: str, action: str) -> None:
        """Record something odd that did not stop the load."""
        about = escape_surrogates(f"{self.path.name}: {where}"), escape_surrogates(found)
        self.report.issues.append(Issue(*about, action))

    def drop(self, kind: str, scope: str = "", n: int = 1) -> tuple[()]:
        """Count what is left out, by kind in the plural, and give nothing, which is what is kept of
        it.
        """
        self.keep(kind, scope, "left out", n)
        return ()

    def keep(self, kind: str, scope: str = "", how: str = "kept", n: int = 1) -> None:
        """Count what is kept in another form than in the file."""
        self.report.counts[how, kind, scope] += n

    def member_values(self) -> Iterator[tuple[Source, int, Any]]:
        """Stream the values of all members, each with its file and its number there."""
        for file in self.members:
            for number, raw in file.values():
                yield file, number, raw

    @contextmanager
    def record(self, label: str, raw: Any) -> Iterator[None]:
        """Read a record in a ``with`` block, which ends where the record is bad.

        :param label: names it in messages.
        :param raw: the record as it was read, or as much of it as could be.
        """
        noted = len(self.report.issues)
        try:
            yield
        except BadField as bad:
            # What was noted of it goes with it, but not what was set aside.
            since = self.report.issues[noted:]
            self.report.issues[noted:] = [issue for issue in since if issue.action == "quarantined"]
            self.reject(label, bad, raw)

    def reject(self, record: str, bad: BadField, raw: Any) -> None:
        """Stop at a bad record, or write it to the side file with its reason."""
        report, target = self.report, self.quarantine_dir / f"{self.path.name}.quarantine.jsonl"
        if self.on_error == "raise":
            self.fail(
                f'{record}: {bad}. Correct it, or load with on_error="quarantine" to set it aside',
                bad,
            )
        report.bad += 1
        if report.bad > _MOST_BAD:
            most = f"{_MOST_BAD:,} records before it are bad too: is this its format (format=)?"
            self.fail(f"{record}: {bad}; {most}", bad)
        about = {"source": str(self.path), "record": record, "reason": str(bad)}
        try:
            line = json.dumps({**about, "raw": raw}, default=str)
        except (RecursionError, ValueError, TypeError):
            line = json.dumps({**about, "raw": None})
        try:
            if target not in report.aside:
                target.parent.mkdir(parents=True, exist_ok=True)
                report.aside[target] = (
                    set(target.read_text("utf-8").splitlines()) if target.exists() else set()
                )
            if line not in report.aside[target]:
                with target.open("a", encoding="utf-8") as side:
                    side.write(line + "\n")
                report.aside[target].add(line)
        except OSError as error:
            why = f"it could not be set aside in {target} ({error}): give quarantine_dir="
            self.fail(f"{record}: {bad}; and {why}", error)
        self.note(record, str(bad), "quarantined")
