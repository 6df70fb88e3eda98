"""Chat-log records as a JSON list, a CSV file or a Parquet file: a row a message, a column a field."""

from __future__ import annotations

from collections.abc import Iterator

from memlab.datasets.importers.common import Message
from memlab.datasets.reading import Source

_FIELDS = ("scope", "session", "id", "sender", "role", "text", "timestamp", "caption")


def detect(file: Source) -> bool:
    if columns := file.columns:
        return "text" in columns and bool(columns & {"sender", "role"})
    return file.head.lstrip()[:1] == "[" and {"scope", "text"} <= file.keys and "qa" not in file.keys


def records(source: Source) -> Iterator[Message]:
    """Read every row; a table without scopes is one, named by its file."""
    for file in source.members:
        for record in file.read_each("row", lambda record: [record]):
            row = {key: record[key] for key in (*_FIELDS, *record) if key in record}
            yield {"scope": file.path.stem, **row, "text": "" if row.get("text") is None else row["text"]}
