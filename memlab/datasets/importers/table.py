"""Chat-log records as a JSON list, a CSV file or a Parquet file: a row a message, a column a field."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import polars as pl

from memlab.datasets._fields import Record
from memlab.datasets.importers.common import Export, Message
from memlab.datasets.importers.files import Member

_FIELDS = ("scope", "session", "id", "sender", "role", "text", "timestamp", "caption")
_SEPARATORS = (",", ";", "\t")
_CSV = (".csv", ".tsv")


def matches(member: Member) -> bool:
    if keys := columns(member):
        return "text" in keys and bool(keys & {"sender", "role"})
    return member.head.lstrip()[:1] == "[" and {"scope", "text"} <= member.keys and "qa" not in member.keys


def columns(member: Member) -> set[str]:
    """Give the columns of a CSV or Parquet file; none for any other."""
    if member.head.startswith("PAR1"):
        return set(_frame(member, rows=0).columns)
    if not member.name.lower().endswith(_CSV):
        return set()
    return set(_header(member))


def _header(member: Member) -> list[str]:
    first = member.head.lstrip("\ufeff").partition("\n")[0].rstrip("\r")
    return [cell.strip().strip('"') for cell in first.split(_separator(first))]


def _separator(first: str) -> str:
    return max(_SEPARATORS, key=first.count)


def _frame(member: Member, rows: int | None = None) -> pl.DataFrame:
    try:
        with member.open() as file:
            if member.head.startswith("PAR1"):
                return pl.read_parquet(io.BytesIO(file.read()) if member.archive else member.path, n_rows=rows)
            first = member.head.lstrip("\ufeff").partition("\n")[0]
            return pl.read_csv(io.BytesIO(file.read()), separator=_separator(first), infer_schema=False, n_rows=rows)
    except (OSError, pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        member.fail(f"cannot be read as a table ({str(error)[:200]}); was it written whole, in UTF-8?", error)


def rows(member: Member) -> Iterator[tuple[int, Any]]:
    """Stream the rows of a table, or the values of a JSON file, with their numbers from 1."""
    if not columns(member):
        yield from member.values()
        return
    for number, row in enumerate(_frame(member).iter_rows(named=True), 1):
        yield number, {key.strip(): value for key, value in row.items() if value not in (None, "") or key == "text"}


def read(source: Export) -> Iterator[Message]:
    """Read every row; a table without scopes is one, named by its file."""
    for member in source.members:
        for number, raw in rows(member):
            record: dict[str, Any] = {}
            with member.record(f"row {number}", raw):
                record = Record(raw, f"row {number}")
                record = {key: record[key] for key in (*_FIELDS, *record) if key in record}
                record["text"] = "" if record.get("text", "") is None else record.get("text")
                record.setdefault("scope", member.path.stem)
            if record:
                yield record
