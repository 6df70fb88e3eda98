"""Sources of records: a file, the files of a folder or those of a ZIP archive, and what was odd or
bad in them.

Nothing is unpacked to the disk: :mod:`memlab.datasets.zip_archives` lists what is in an archive,
and :mod:`memlab.datasets.json_streaming` reads JSON of any size. A bad record stops the load or
goes to quarantine, see :meth:`Source.record`.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from functools import cached_property
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NoReturn

import polars as pl

from memlab.datasets import json_streaming, zip_archives
from memlab.datasets.record_fields import (
    BadField,
    JsonObject,
    JsonValue,
    Report,
    describe_value,
    escape_surrogates,
    is_date_with_slashes,
    is_spreadsheet_day_count,
    parse_time,
)
from memlab.datasets.zip_archives import PackedEntry
from memlab.errors import DataError
from memlab.records import Dataset, Issue
from memlab.sessions import GAP

KeyPath = str
"""The keys that lead to a value of JSON, with dots between them: ``messages.role``."""
QUARANTINE = Path(".memlab") / "quarantine"
_HEAD = 1 << 16
_FURTHER = 1 << 22
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
    packed: PackedEntry | None = None

    def __post_init__(self) -> None:
        if not self.name:
            self.name = self.path.name
        self.looked = _HEAD
        self.stem = ""
        if self.name:
            self.stem = PurePosixPath(self.name).with_suffix("").as_posix()

    @cached_property
    def is_folder_or_archive(self) -> bool:
        """Whether it is a folder or a ZIP archive."""
        if os.path.isdir(self.path):
            return True
        try:
            with self.path.open("rb") as byte_stream:
                return byte_stream.read(4) == b"PK\x03\x04"
        except (OSError, ValueError):
            return False

    @property
    def n_bytes(self) -> int:
        if self.packed:
            return self.packed[1].file_size
        return self.path.stat().st_size

    def files(self, *patterns: str, of_unread_kinds: bool = False) -> list[Source]:
        """Give the file itself, the files of a folder that match the first pattern that any does,
        or, without a pattern, all files of a folder, of the archives in it or of an archive that
        may hold text; 2 stands before 10.

        :param of_unread_kinds: give instead the files that may hold a chat and are not read, see
            :data:`memlab.datasets.zip_archives.UNREAD`.
        :raises DataError: for an archive that is broken, encrypted, or far larger unpacked than
            packed.
        """
        plain_source = replace(self, members=[])
        packed_by_name: dict[str, PackedEntry | None]
        if os.path.isdir(self.path):
            packed_by_name = dict.fromkeys(self._names_of_matching_files(patterns))
            if not patterns:
                packed_by_name = self._replace_archives_by_their_entries(packed_by_name)
        elif self.is_folder_or_archive and not patterns:
            packed_by_name = dict(zip_archives.list_chat_entries(self.path))
        elif of_unread_kinds:
            return []
        else:
            return [plain_source]
        endings = zip_archives.UNREAD if of_unread_kinds else zip_archives.TEXTS
        files = []
        for name in sorted(packed_by_name, key=_pad_numbers_for_sorting):
            if patterns or zip_archives.has_chat_file_name(name, endings):
                packed = packed_by_name[name]
                files.append(replace(plain_source, path=self.path / name, name=name, packed=packed))
        return files

    def _names_of_matching_files(self, patterns: tuple[str, ...]) -> list[str]:
        """Find the files of a folder that match the first pattern that any does."""
        for pattern in patterns or ("**/*",):
            paths = filter(Path.is_file, self.path.glob(pattern))
            names = [path.relative_to(self.path).as_posix() for path in paths]
            if names:
                return names
        return []

    def _replace_archives_by_their_entries(
        self, packed_by_name: dict[str, PackedEntry | None]
    ) -> dict[str, PackedEntry | None]:
        """Put what is in the ZIPs of a folder in their place, but for those that lie there
        unpacked, or are broken.
        """
        text_paths = [
            self.path / name for name in packed_by_name if zip_archives.has_chat_file_name(name)
        ]
        zip_names = [
            name for name in packed_by_name if zip_archives.has_chat_file_name(name, (".zip",))
        ]
        if not zip_names:
            return packed_by_name
        path_by_size = {(path.name, path.stat().st_size): path for path in text_paths}
        for name in zip_names:
            try:
                zip_entries = zip_archives.list_chat_entries(self.path / name)
            except DataError:
                if text_paths:
                    continue
                raise
            if zip_entries and _are_all_entries_unpacked(zip_entries, path_by_size):
                continue
            del packed_by_name[name]
            for entry_name, packed in zip_entries.items():
                packed_by_name[f"{name}/{entry_name}"] = packed
        return packed_by_name

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the file in a ``with`` block, past a byte order mark.

        Of UTF-16, which is read whole, as UTF-8.

        :raises DataError: when it is missing, unreadable or empty, or its archive turns out to be
            broken.
        """
        if os.path.isdir(self.path):
            self.fail("is a directory, expected a file; name one of the files in it")
        try:
            byte_stream: Any
            if self.packed:
                archive, entry = self.packed
                byte_stream = archive.open(entry)
            else:
                byte_stream = self.path.open("rb")
            with byte_stream:
                first_bytes = byte_stream.peek(4)[:4]
                if first_bytes in (b"", codecs.BOM_UTF8):
                    self.fail(
                        "is empty, expected conversations; check that it was written or downloaded "
                        "whole"
                    )
                if first_bytes.startswith(codecs.BOM_UTF8):
                    byte_stream.read(len(codecs.BOM_UTF8))
                encoding = _find_utf16_encoding(first_bytes)
                if encoding:
                    decoded_text = byte_stream.read().decode(encoding, "surrogatepass")
                    byte_stream = io.BytesIO(decoded_text.encode("utf-8", "surrogatepass"))
                yield byte_stream
        except zip_archives.FAULTS as error:
            reason = getattr(error, "strerror", None) or error
            self.fail(
                f"cannot be read ({reason}); check the path, and that it was downloaded whole",
                error,
            )

    @cached_property
    def is_api_page(self) -> bool:
        """Whether it is the page of an API: an object around a list of records, the newest of which
        may stand first.
        """
        first_keys = self.first_keys
        is_paged = "data" in first_keys and bool(first_keys & {"object", "has_more", "first_id"})
        return is_paged and self.head.lstrip()[:1] == "{"

    @cached_property
    def head(self) -> str:
        """The beginning of the file as text."""
        with self.open() as byte_stream:
            first_bytes = byte_stream.read(self.looked)
        return first_bytes.decode("utf-8", "replace")

    @cached_property
    def keys(self) -> set[KeyPath]:
        """Dotted paths of the keys at the beginning of a JSON file, and those of records in an
        object around them; empty for any other."""
        if self.head.lstrip()[:1] not in ("{", "["):
            return set()
        paths = json_streaming.keys(self.head)
        inner_paths = [path.partition(".")[2] for path in paths if path.startswith(_AROUND)]
        return paths.union(inner_paths)

    @cached_property
    def first_keys(self) -> set[str]:
        """The keys of the first record of a JSON file, without those within them, or the columns of
        a table.
        """
        return json_streaming.keys(self.head, first_object_only=True) | self.columns

    @property
    def is_parquet(self) -> bool:
        return self.head.startswith("PAR1")

    @cached_property
    def columns(self) -> set[str]:
        """The columns of a CSV or Parquet file; none for any other."""
        if self.is_parquet:
            return set(self.read_table(max_rows=0).columns)
        if not self.name.lower().endswith((".csv", ".tsv")):
            return set()
        return {cell.strip().strip('"') for cell in self.csv_separator_and_header_cells()[1]}

    def csv_separator_and_header_cells(self) -> tuple[str, list[str]]:
        """Give what stands between the cells of a CSV file, and those of its first line."""
        header_line = self.head.lstrip("\ufeff").partition("\n")[0].rstrip("\r")
        separator = max((",", ";", "\t"), key=header_line.count)
        return separator, header_line.split(separator)

    def forget_cached_beginning(self) -> None:
        """Let go of the beginning: an export may have a hundred thousand files."""
        self.looked = _HEAD
        for cached_name in (
            "head",
            "keys",
            "keys_of_first_record",
            "columns",
            "is_api_page",
        ):
            self.__dict__.pop(cached_name, None)

    def extend_beginning_if_json(self) -> bool:
        """Look at more of a JSON file, whose first record may be longer than its beginning.

        False for any other.
        """
        further = self.looked == _HEAD < self.n_bytes and self.head.lstrip()[:1] in (
            "{",
            "[",
        )
        if further:
            self.forget_cached_beginning()
            self.looked = _FURTHER
        return further

    def values(self) -> Iterator[tuple[int, JsonValue]]:
        """Stream the values of a JSON list or of JSON lines, or the rows of a table, with their
        numbers from 1.

        Of an object that is nothing but around records, as an API gives them, the records are
        given.
        """
        if self.columns:
            yield from self._stream_numbered_rows()
        elif self._holds_json_lines():
            yield from self.stream_numbered_json_lines()
        else:
            values = (value for _, value in self.stream_json())
            records = chain.from_iterable(map(json_streaming.unwrap_api_page, values))
            yield from enumerate(records, 1)

    def _stream_numbered_rows(self) -> Iterator[tuple[int, JsonObject]]:
        """Stream the rows of a table, without empty cells; an empty text stays one."""
        for number, row in enumerate(self.read_table().iter_rows(named=True), 1):
            filled = {column: cell for column, cell in row.items() if cell not in (None, "")}
            if not filled:
                continue
            if "text" in row:
                filled["text"] = row["text"]
            in_order = filter(filled.__contains__, row)
            yield number, {column.strip(): filled[column] for column in in_order}

    def _holds_json_lines(self) -> bool:
        """Say whether each line is a value, by the name; one that is spread over lines is none."""
        if not self.name.lower().endswith((".jsonl", ".ndjson")):
            return False
        return re.match(r"\s*[\[{][ \t\r]*\n", self.head) is None

    def stream_json(
        self, *list_paths: str, repair: Callable[[str], str] | None = None
    ) -> Iterator[tuple[str, JsonValue]]:
        """Stream the values of a JSON file (``json_streaming.stream_paths_and_values``)."""
        n_values = 0
        with self.open() as file:
            try:
                for path, value in json_streaming.stream_paths_and_values(
                    file, *list_paths, repair=repair
                ):
                    yield path, value
                    n_values += 1
            except json_streaming.BrokenJson as bad:
                self.raise_or_quarantine_bad_record(
                    "the file" if list_paths else f"record {n_values}", bad, bad.rest
                )

    def stream_numbered_json_lines(self) -> Iterator[tuple[int, JsonValue]]:
        """Stream the objects, or lists, of a JSON-lines file with their line numbers (from 1).

        Blank lines are skipped.
        """
        for number, lines in self.stream_line_chunks_with_first_number():
            yield from self.decode_numbered_lines(lines, number)

    def stream_line_chunks_with_first_number(self) -> Iterator[tuple[int, bytes]]:
        """Read some megabytes of whole lines at a time, each with the number of its first line
        (from 1).
        """
        longest_line = json_streaming.LONGEST
        number = 1
        with self.open() as byte_stream:
            while chunk := byte_stream.read(min(_CHUNK, longest_line)):
                end_of_whole = chunk.rfind(b"\n") + 1
                last_line = chunk[end_of_whole:] + byte_stream.readline(
                    longest_line - len(chunk) + end_of_whole
                )
                if len(last_line) == longest_line:
                    yield number, chunk[:end_of_whole]
                    number += chunk.count(b"\n", 0, end_of_whole)
                    fault_text = f"line {number}: has {longest_line:,} bytes and more"
                    self.fail(f"{fault_text}; expected one record on a line")
                chunk_lines = chunk[:end_of_whole] + last_line
                yield number, chunk_lines
                number += chunk_lines.count(b"\n")

    def decode_numbered_lines(
        self, raw_lines: bytes, first_number: int
    ) -> Iterator[tuple[int, JsonValue]]:
        """Decode lines of JSON one by one, with their numbers; those that are none are rejected.

        :param first_number: the number of the first line.
        """
        for number, line in enumerate(raw_lines.split(b"\n"), first_number):
            line = line.rstrip(b"\r")
            if not line.strip():
                continue
            try:
                value = json_streaming.decode_json_line(line)
            except BadField as bad:
                self.raise_or_quarantine_bad_record(
                    f"line {number}", bad, line.decode("utf-8", "surrogateescape")
                )
            else:
                yield number, value

    def read_table(self, max_rows: int | None = None) -> pl.DataFrame:
        """Read a CSV or Parquet file, or its first rows; the cells of a CSV are texts.

        :raises DataError: when it cannot be read.
        """
        table_bytes: Any = self.path
        if self.packed or not self.is_parquet:
            with self.open() as byte_stream:
                table_bytes = io.BytesIO(byte_stream.read())
        try:
            if self.is_parquet:
                return self._read_parquet_table(table_bytes, max_rows)
            return self._read_csv_table(table_bytes, max_rows)
        except (OSError, pl.exceptions.PolarsError, UnicodeDecodeError) as error:
            fault_text = f"cannot be read as a table ({str(error)[:200]})"
            self.fail(f"{fault_text}; was it written whole, in UTF-8?", error)

    def _read_csv_table(self, csv_file: Path | io.BytesIO, max_rows: int | None) -> pl.DataFrame:
        separator, _ = self.csv_separator_and_header_cells()
        options: dict[str, Any] = {
            "separator": separator,
            "infer_schema": False,
            "n_rows": max_rows,
        }
        if separator == "\t":
            # A cell between tabs may begin with a quote that does not end it.
            with suppress(pl.exceptions.PolarsError):
                return pl.read_csv(csv_file, **options)
            return pl.read_csv(csv_file, **options, quote_char=None)
        return pl.read_csv(csv_file, **options)

    def _read_parquet_table(
        self, parquet_file: Path | io.BytesIO, max_rows: int | None
    ) -> pl.DataFrame:
        n_rows = pl.scan_parquet(parquet_file).select(pl.len()).collect().item()
        # A text takes 16 bytes unpacked, however often it is repeated.
        if zip_archives.is_zip_bomb(16 * n_rows, self.n_bytes):
            fault_text = f"holds {n_rows:,} rows in {self.n_bytes:,} bytes: no chat does"
            self.fail(f"{fault_text}; see how it was written")
        return pl.read_parquet(parquet_file, n_rows=max_rows)

    def text(self) -> str:
        """Read a whole text file, in UTF-8 or UTF-16.

        :raises DataError: for another encoding.
        """
        with self.open() as byte_stream:
            file_bytes = byte_stream.read()
        try:
            return str(file_bytes, "utf-8")
        except UnicodeDecodeError as error:
            byte_text = (
                f"a byte that is not UTF-8 (0x{file_bytes[error.start]:02x}, byte "
                f"{error.start + 1})"
            )
            self.fail(f"found {byte_text}; save the file as UTF-8", error)

    def parse_time(self, value: JsonValue, field_label: str) -> datetime:
        """Read a time, see :func:`memlab.datasets.record_fields.parse_time`.

        The file says in which order it writes dates.
        """
        date_order = self.find_or_decide_date_order() if is_date_with_slashes(value) else None
        if not self.report.serials and is_spreadsheet_day_count(value):
            self.report.serials = True
            action = "read as days since 1900, as spreadsheets count them"
            self.note("timestamp", f"{describe_value(value)} and the like", action)
        return parse_time(value, field_label, date_order)

    def find_or_decide_date_order(self) -> str:
        """Say whether the day or the month stands first in dates such as 2/1/2026, decided over all
        that is read.
        """
        from memlab.datasets import time_forms

        if self.date_order in ("dmy", "mdy"):
            return self.date_order
        if self.report.date_order is None:
            self.report.date_order = time_forms.decide_and_note_date_order(self)
        return self.report.date_order

    def fail(self, message: str, cause: BaseException | None = None) -> NoReturn:
        raise DataError(escape_surrogates(f"{self.path}: {message}")) from cause

    def note(self, where: str, found: str, action: str) -> None:
        """Record something odd that did not stop the load."""
        place_and_finding = (
            escape_surrogates(f"{self.path.name}: {where}"),
            escape_surrogates(found),
        )
        self.report.issues.append(Issue(*place_and_finding, action))

    def drop(self, plural_kind: str, scope: str = "", n: int = 1) -> tuple[()]:
        """Count what is left out, by kind in the plural, and give nothing, which is what is kept of
        it.
        """
        self.keep(plural_kind, scope, "left out", n)
        return ()

    def keep(self, plural_kind: str, scope: str = "", how: str = "kept", n: int = 1) -> None:
        """Count what is kept in another form than in the file."""
        self.report.counts[how, plural_kind, scope] += n

    def stream_numbered_member_values(self) -> Iterator[tuple[Source, int, JsonValue]]:
        """Stream the values of all members, each with its file and its number there."""
        for file in self.members:
            for number, raw_value in file.values():
                yield file, number, raw_value

    @contextmanager
    def record(self, record_label: str, raw_record: JsonValue) -> Iterator[None]:
        """Read a record in a ``with`` block, which ends where the record is bad.

        :param record_label: names it in messages.
        :param raw_record: the record as it was read, or as much of it as could be.
        """
        n_noted = len(self.report.issues)
        try:
            yield
        except BadField as bad:
            # What was noted of it goes with it, but not what was set aside.
            new_issues = self.report.issues[n_noted:]
            self.report.issues[n_noted:] = [
                issue for issue in new_issues if issue.action == "quarantined"
            ]
            self.raise_or_quarantine_bad_record(record_label, bad, raw_record)

    def raise_or_quarantine_bad_record(
        self, record_label: str, bad_field: BadField, raw_record: JsonValue
    ) -> None:
        """Stop at a bad record, or write it to the side file with its reason."""
        report = self.report
        quarantine_file = self.quarantine_dir / f"{self.path.name}.quarantine.jsonl"
        if self.on_error == "raise":
            self.fail(
                f"{record_label}: {bad_field}. Correct it, or load with "
                'on_error="quarantine" to set it aside',
                bad_field,
            )
        report.bad += 1
        if report.bad > _MOST_BAD:
            many_bad_text = (
                f"{_MOST_BAD:,} records before it are bad too: is this its format (format=)?"
            )
            self.fail(f"{record_label}: {bad_field}; {many_bad_text}", bad_field)
        reject_fields = {"source": str(self.path), "record": record_label, "reason": str(bad_field)}
        try:
            reject_line = json.dumps({**reject_fields, "raw": raw_record}, default=str)
        except (RecursionError, ValueError, TypeError):
            reject_line = json.dumps({**reject_fields, "raw": None})
        try:
            if quarantine_file not in report.aside:
                quarantine_file.parent.mkdir(parents=True, exist_ok=True)
                known_lines = set[str]()
                if quarantine_file.exists():
                    known_lines.update(quarantine_file.read_text("utf-8").splitlines())
                report.aside[quarantine_file] = known_lines
            if reject_line not in report.aside[quarantine_file]:
                with quarantine_file.open("a", encoding="utf-8") as side_stream:
                    side_stream.write(reject_line + "\n")
                report.aside[quarantine_file].add(reject_line)
        except OSError as error:
            reason = (
                f"it could not be set aside in {quarantine_file} ({error}): give quarantine_dir="
            )
            self.fail(f"{record_label}: {bad_field}; and {reason}", error)
        self.note(record_label, str(bad_field), "quarantined")


def _pad_numbers_for_sorting(file_name: str) -> str:
    """Write a name so that 2 stands before 10."""
    return re.sub(r"\d+", lambda digits: digits[0].zfill(20), file_name)


def _are_all_entries_unpacked(
    zip_entries: dict[str, PackedEntry],
    path_by_name_and_size: dict[tuple[str, int], Path],
) -> bool:
    """Say whether all files of an archive lie there unpacked, by name, size and checksum."""
    for entry_name, (_, entry) in zip_entries.items():
        path = path_by_name_and_size.get((PurePosixPath(entry_name).name, entry.file_size))
        if path is None or zlib.crc32(path.read_bytes()) != entry.CRC:
            return False
    return True


def _find_utf16_encoding(first_bytes: bytes) -> str:
    """Find the form of UTF-16 of a file; empty for another encoding."""
    wide_match = _UTF16.match(first_bytes)
    if wide_match is None:
        return ""
    if wide_match[1]:
        return "utf-16-le"
    if wide_match[2]:
        return "utf-16-be"
    return "utf-16"
