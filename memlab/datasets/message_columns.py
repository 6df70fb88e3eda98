"""Messages as columns: a chunk of a chat log is decoded and checked at once where every line of it
is plain.

A chunk in which anything is odd (a bad field, a question, a type that changes from line to line) is
no table: ``None`` is given, and it is read record by record, which says what is wrong and where.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from memlab.datasets.fields import SERIALS
from memlab.datasets.other_names import find_other_names
from memlab.records import TIMESTAMP

NAMES = ("scope", "session", "sender", "role", "id", "forwarded_from")
"""Columns that name something: texts that are not blank, or whole numbers."""
_TEXTS = (*NAMES, "text", "caption")
_TYPES = dict.fromkeys((*_TEXTS, "timestamp"), pa.string()) | {"quoted": pa.list_(pa.string())}
"""The columns that a chat log has, with their types."""
_OTHER_TYPES: dict[str, dict[type, pa.DataType]] = {
    **{name: {int: pa.int64()} for name in NAMES},
    "timestamp": {int: pa.float64(), float: pa.float64()},
    "quoted": {str: pa.string()},
}
"""The types of columns whose first value is of another kind."""
_NEEDED = frozenset(("scope", "text"))
_NO_MESSAGE = frozenset(("memlab", "question"))
_NOT_BLANK = r"[^\s\x1c-\x1f]"
_PLAIN_NAMES = pl.lit("!"), pl.lit("~")
"""Between these a name begins with a character that shows; to compare takes less than to search."""
_UTC = pa.timestamp("us", "UTC")
_LARGEST_INTEGER = 2**53
"""Up to which every whole number is a float."""
_EPOCH_MICROSECONDS = ((0.0, 1e6), (1e11, 1e3), (1e14, 1.0))
"""From which count on a number since 1970 is one of micro-, of milliseconds, of seconds."""
_EPOCH, _MICROSECOND = datetime(1970, 1, 1), timedelta(microseconds=1)
_FIRST_USUAL = (datetime(2, 1, 1) - _EPOCH) // _MICROSECOND
_LAST_USUAL = (datetime(9999, 1, 1) - _EPOCH) // _MICROSECOND
_DEEPEST = 50
"""Levels of an object that are looked through in columns."""
_LINE_FEED, _CARRIAGE_RETURN, _OPENING, _CLOSING = b"\n\r{}"


@dataclass
class MessageTable:
    """Messages that are all plain.

    :param messages: a row a message, with the columns that a chat log has, null where a message
        has nothing; ``timestamp`` in UTC.
    :param zoneless: the row and the text of the first time where times have no zone, and are taken
        as UTC.
    :param unread: the fields that a chat log has not, where they may hold words.
    :param other_keys: in how many messages each of the fields stands that a chat log has not.
    """

    messages: pl.DataFrame
    zoneless: tuple[int, Any] | None
    unread: pa.Table | None
    other_keys: dict[str, int]


def tabulate_lines(raw: bytes, known: frozenset[str]) -> MessageTable | None:
    """Decode and check lines of JSON; ``None`` where not every line is a plain message.

    :param known: the fields of a message that are no unread texts.

    >>> line = b'{"scope": "me", "sender": "Ann", "text": "Hi", "timestamp": "2026-03-01T09:00Z"}'
    >>> known = frozenset(("scope", "sender", "text", "timestamp"))
    >>> tabulate_lines(line, known).messages.height
    1
    >>> tabulate_lines(b'{"scope": "me", "sender": "Ann"}', known) is None
    True
    """
    size = _count_objects(raw)
    if size is None:
        return None
    types = _find_types(raw)
    if types is None:
        return None
    try:
        if not raw.isascii():
            raw.decode()
        table = _decode_lines(raw, types)
        late = set(table.column_names).difference(types).intersection(_TYPES)
        if late:
            # The decoder guessed the types of columns that the first line has not.
            types |= dict(zip(late, map(_TYPES.__getitem__, late), strict=True))
            table = _decode_lines(raw, types)
    except (UnicodeDecodeError, pa.ArrowException):
        return None
    if table.num_rows != size:
        return None
    may_hold_nul = b"\0" in raw or b"u0000" in raw
    return _check_table(table, known, may_hold_nul=may_hold_nul)


def _count_objects(raw: bytes) -> int | None:
    """Count the lines, where each begins as an object and ends as one; ``None`` where one does not.

    Together with the number of objects it says that none spans two lines.
    """
    outer = raw[:1] + raw.rstrip()[-1:]
    if outer != b"{}":
        return None
    codes = np.frombuffer(raw, np.uint8)
    breaks = np.flatnonzero(codes[:-1] == _LINE_FEED)
    ends = codes[breaks - 1]
    ends = np.where(ends == _CARRIAGE_RETURN, codes[breaks - 2], ends)
    is_other = (ends != _CLOSING) | (codes[breaks + 1] != _OPENING)
    if is_other.any():
        return None
    return len(breaks) + 1


def _find_types(raw: bytes) -> dict[str, pa.DataType] | None:
    """Find the types of the columns of the first line; the decoder refuses a line with others."""
    try:
        first = json.loads(io.BytesIO(raw).readline())
    except (ValueError, RecursionError):
        return None
    types = dict[str, pa.DataType]()
    for name in _TYPES.keys() & first.keys():
        other = _OTHER_TYPES.get(name, {})
        types[name] = other.get(type(first[name]), _TYPES[name])
    return types


def _decode_lines(raw: bytes, types: dict[str, pa.DataType]) -> pa.Table:
    # Threads would take more memory and as long: a chunk is small.
    return pa.json.read_json(
        pa.py_buffer(raw),
        read_options=pa.json.ReadOptions(use_threads=False, block_size=len(raw) + 1),
        parse_options=pa.json.ParseOptions(explicit_schema=pa.schema(list(types.items()))),
    )


def tabulate_records(records: list[Any], known: frozenset[str]) -> MessageTable | None:
    """Check records in memory.

    ``None`` where not every one is a plain message without other fields.

    :param known: the fields that a message has.
    """
    forms = set(map(tuple, records))
    there = set(chain.from_iterable(forms))
    if not there <= known:
        return None
    arrays = {}
    try:
        for name, values in _list_columns(records, forms).items():
            column = _make_array(name, values)
            if column is None:
                return None
            arrays[name] = column
    except (pa.ArrowException, UnicodeEncodeError, OverflowError):
        return None
    return _check_table(pa.table(arrays), known, may_hold_nul=True)


def _list_columns(records: list[Any], forms: set[tuple[str, ...]]) -> dict[str, Sequence[Any]]:
    """List the values of records by those of their keys that a chat log has.

    :param forms: the keys of each record in their order; of most records they are the same.
    """
    names = set(chain.from_iterable(forms)).intersection(_TYPES)
    if len(forms) > 1:
        return {name: [record.get(name) for record in records] for name in names}
    (keys,) = forms
    columns = dict(zip(keys, zip(*map(dict.values, records), strict=True), strict=True))
    return {name: columns[name] for name in names}


def _make_array(name: str, values: Sequence[Any]) -> pa.Array | None:
    """Make a column of values of one kind; ``None`` where they are of several."""
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= {str}:
        return pa.array(values, pa.string())
    if name == "timestamp":
        if kinds <= {int, float}:
            return pa.array(values, pa.float64())
        return _make_time_array(values) if kinds == {datetime} else None
    if kinds == {int} and name in NAMES:
        return pa.array(values, pa.int64())
    if (name, kinds) == ("quoted", {list}):
        parts = chain.from_iterable(filter(None, values))
        if set(map(type, parts)) <= {str}:
            return pa.array(values, pa.list_(pa.string()))
    return None


def _make_time_array(values: Sequence[datetime | None]) -> pa.Array | None:
    """Make a column of times that all have a zone, or that all have none; ``None`` for others."""
    zones = {value.tzinfo for value in values if value is not None}
    if zones == {None}:
        return pa.array(values, pa.timestamp("us"))
    return None if None in zones else pa.array(values, _UTC)


def _check_table(
    table: pa.Table, known: frozenset[str], *, may_hold_nul: bool
) -> MessageTable | None:
    """Check messages in columns.

    :param may_hold_nul: whether a text may hold a NUL character, which is looked for then.
    """
    names = set(table.column_names)
    if _NO_MESSAGE & names or not names.issuperset(_NEEDED):
        return None
    written = pa.nulls(table.num_rows, pa.timestamp("us"))
    if "timestamp" in names:
        written = table["timestamp"].combine_chunks()
    times = _read_times(written)
    if times is None:
        return None
    given: Any = pl.from_arrow(table.select(list(_TYPES.keys() & names)))
    texts = given.select(_list_texts(given))
    if may_hold_nul and _holds_nul(texts):
        return None
    if not _is_plain(texts):
        return None
    quoted = _read_quoted(given)
    if quoted is None:
        return None
    others = table.drop_columns(list(_TYPES.keys() & names))
    if not all(map(_is_plain_json, others.columns)):
        return None
    unread: Any = others.drop_columns(list(known.intersection(others.column_names)))
    if _has_other_names(table, unread):
        return None
    other_keys = {}
    for name in unread.column_names:
        count = len(unread[name]) - unread[name].null_count
        if count:
            other_keys[name] = count
    if not any(map(_may_hold_words, unread.columns)):
        unread = None
    read = texts.with_columns(quoted, _in_utc(times).alias("timestamp"))
    return MessageTable(read, _find_zoneless(written, times), unread, other_keys)


def _has_other_names(table: pa.Table, unread: pa.Table) -> bool:
    """Say whether a message may lack a field and have it under another name: then each is looked
    at.
    """
    names = set(table.column_names)
    for row in unread.slice(0, 1).to_pylist():
        lacking = dict.fromkeys(row, None)
        for name in row:
            column = unread[name].drop_null()
            if len(column):
                lacking[name] = column[0].as_py()
        for name, key in find_other_names(lacking).items():
            if name not in names or table[name].null_count:
                return bool(key)
    return False


def _list_texts(given: pl.DataFrame) -> list[pl.Expr]:
    """Give the columns of texts, null where the messages have none."""
    texts = []
    for name in _TEXTS:
        column = pl.col(name) if name in given.columns else pl.lit(None)
        texts.append(column.cast(pl.String).alias(name))
    return texts


def _is_plain(texts: pl.DataFrame) -> bool:
    """Say whether messages have what each needs, names that are not blank, and text that can be
    stored.
    """
    needed = texts.select("scope", "text", pl.coalesce("sender", "role"))
    if needed.null_count().sum_horizontal().item():
        return False
    names = texts.select(NAMES)
    begins_plainly = names.select(pl.all().is_between(*_PLAIN_NAMES).all()).row(0)
    for name, is_plain in zip(NAMES, begins_plainly, strict=True):
        if not is_plain and not names[name].str.contains(_NOT_BLANK).all():
            return False
    return True


def _holds_nul(texts: pl.DataFrame) -> bool:
    filled = [name for name in _TEXTS if texts[name].null_count() < texts.height]
    return bool(texts.select(pl.any_horizontal(_has_nul(pl.col(filled)))).item())


def _has_nul(column: pl.Expr) -> pl.Expr:
    return column.str.contains("\0", literal=True).any()


def _read_quoted(given: pl.DataFrame) -> pl.Series | None:
    """Give lists of quoted parts, null for none; ``None`` where one of them is no plain text."""
    if "quoted" not in given.columns or not given["quoted"].count():
        return pl.Series("quoted", [None], pl.List(pl.String)).new_from_index(0, given.height)
    column = given["quoted"]
    rows = column.to_frame("quoted")
    if not isinstance(column.dtype, pl.List):
        rows = rows.select(pl.concat_list("quoted").list.drop_nulls())
    listed = pl.col("quoted").cast(pl.List(pl.String))
    filled = rows.select(pl.when(listed.list.len() > 0).then(listed).alias("quoted"))
    parts = filled.drop_nulls().explode("quoted")
    text = pl.col("quoted")
    is_odd = parts.select(text.is_null().any() | _has_nul(text)).item()
    return None if is_odd else filled["quoted"]


def _read_times(column: pa.Array) -> pl.Series | None:
    """Read times that are all written in one form, with or without a zone; ``None`` for others."""
    if pa.types.is_floating(column.type):
        return _read_epoch_times(column)
    for form in (_UTC, pa.timestamp("us")):
        try:
            times: Any = pl.from_arrow(pc.cast(column, form))
        except pa.ArrowException:
            continue
        counts = times.to_physical()
        # The first and the last days of all are left to the reader of records, which knows its
        # limits.
        is_usual = counts.is_between(_FIRST_USUAL, _LAST_USUAL).all()
        return times if is_usual else None
    return None


def _read_epoch_times(column: pa.Array) -> pl.Series | None:
    """Read counts since 1970; ``None`` where one is too large or negative."""
    counts: Any = pl.from_arrow(column)
    if counts.is_between(*SERIALS).any():
        return None
    unit = pl.lit(None, pl.Float64)
    for least, microseconds in _EPOCH_MICROSECONDS:
        unit = pl.when(pl.col("count") >= least).then(microseconds).otherwise(unit)
    scaled = (pl.col("count") * unit).round(mode="half_to_even")
    times = counts.to_frame("count").select(scaled).to_series()
    is_exact = times.is_between(0, _LARGEST_INTEGER, closed="left").all()
    if times.null_count() > counts.null_count():
        return None
    if not is_exact:
        return None
    return times.cast(pl.Int64).cast(TIMESTAMP)


def _in_utc(times: pl.Series) -> pl.Series:
    if times.dtype == TIMESTAMP:
        return times
    return times.dt.replace_time_zone("UTC").cast(TIMESTAMP)


def _find_zoneless(written: pa.Array, times: pl.Series) -> tuple[int, Any] | None:
    """Find the first time where they have no zone: its row, and how it is written."""
    if times.dtype == TIMESTAMP:
        return None
    for row in times.is_not_null().arg_true().head(1):
        return row, written[row].as_py()
    return None


def _is_plain_json(column: pa.ChunkedArray) -> bool:
    """Say whether values nest no deeper than can be looked through, and hold no number that JSON
    has not.
    """
    try:
        leaves = list(_list_leaves(column.combine_chunks()))
    except RecursionError:
        return False
    for leaf in leaves:
        if not pa.types.is_floating(leaf.type):
            continue
        if pc.any(pc.invert(pc.is_finite(leaf))).as_py():
            return False
    return True


def _may_hold_words(column: pa.ChunkedArray) -> bool:
    """Say whether a column holds a text that may have three words."""
    for leaf in _list_leaves(column.combine_chunks()):
        if not pa.types.is_string(leaf.type):
            continue
        spaces = pc.count_substring_regex(leaf, "[ \n]")
        if pc.any(pc.greater(spaces, 1)).as_py():
            return True
    return False


def _list_leaves(values: Any, depth: int = 0) -> Iterator[Any]:
    """Give the arrays of the plain values in an array of objects and lists.

    :raises RecursionError: for objects in objects in objects.
    """
    if depth > _DEEPEST:
        raise RecursionError
    if pa.types.is_struct(values.type):
        for place in range(values.type.num_fields):
            yield from _list_leaves(values.field(place), depth + 1)
    elif pa.types.is_list(values.type):
        yield from _list_leaves(values.flatten(), depth + 1)
    else:
        yield values
