"""Chat-log records as a JSON list, a CSV file or a Parquet file: a row a message, a column a field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlab.datasets._fields import Record
from memlab.datasets.importers.common import Export, Message
from memlab.datasets.importers.files import Member

_FIELDS = ("scope", "session", "id", "sender", "role", "text", "timestamp", "caption")


def matches(member: Member) -> bool:
    if keys := member.columns:
        return "text" in keys and bool(keys & {"sender", "role"})
    return member.head.lstrip()[:1] == "[" and {"scope", "text"} <= member.keys and "qa" not in member.keys


def rows(member: Member) -> Iterator[tuple[int, Any]]:
    """Stream the rows of a table, or the values of a JSON file, with their numbers from 1."""
    if not member.columns:
        yield from member.values()
        return
    for number, row in enumerate(member.frame().iter_rows(named=True), 1):
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
