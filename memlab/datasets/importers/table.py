"""Tables of chat-log records: JSON, CSV or Parquet, a row a message."""

from __future__ import annotations

from collections.abc import Iterator

from memlab.datasets.fields import Record
from memlab.datasets.importers.export_messages import Message
from memlab.datasets.source import Source

_NO_ROW = {"scope", "memlab", "question", "content", "messages", "conversations", "parts", "qa"}
_FIELDS = ("scope", "session", "id", "sender", "role", "text", "timestamp", "caption")


def is_table_of_messages(file: Source) -> bool:
    if columns := file.columns:
        return "text" in columns and bool(columns & {"sender", "role"})
    if file.head.lstrip()[:1] == "[" and "text" in file.keys and file.keys & {"scope", "sender"}:
        return "qa" not in file.keys
    first = file.first_keys  # a chat log is one by its scopes, or by its header
    return "text" in first and bool(first & {"sender", "role"}) and not file.keys & _NO_ROW


def read_table_of_messages(source: Source) -> Iterator[Message]:
    """Read every row of JSON, a CSV or a Parquet file; those of a file without scopes are one, named by it."""
    for file, number, raw in source.member_values():
        with file.record(f"row {number}", raw):
            record = Record(raw, f"row {number}")
            row = {key: record[key] for key in (*_FIELDS, *record) if key in record}
            yield {
                "scope": file.path.stem,
                **row,
                "text": "" if row.get("text") is None else row["text"],
            }
