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

from memlab.datasets.other_field_names import find_key_by_usual_name
from memlab.datasets.record_fields import SERIALS, JsonObject, JsonValue
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
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
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


def tabulate_json_lines(raw_lines: bytes, known_fields: frozenset[str]) -> MessageTable | None:
    """Decode and check lines of JSON; ``None`` where not every line is a plain message.

    :param known_fields: the fields of a message that are no unread texts.

    >>> line = b'{"scope": "me", "sender": "Ann", "text": "Hi", "timestamp": "2026-03-01T09:00Z"}'
    >>> known = frozenset(("scope", "sender", "text", "timestamp"))
    >>> tabulate_json_lines(line, known).messages.height
    1
    >>> tabulate_json_lines(b'{"scope": "me", "sender": "Ann"}', known) is None
    True
    """
    n_objects = _count_lines_if_objects(raw_lines)
    if n_objects is None:
        return None
    column_types = _column_types_of_first_line(raw_lines)
    if column_types is None:
        return None
    try:
        if not raw_lines.isascii():
            raw_lines.decode()
        decoded_table = _decode_json_lines(raw_lines, column_types)
        late_columns = set(decoded_table.column_names).difference(column_types).intersection(_TYPES)
        if late_columns:
            # The decoder guessed the types of columns that the first line has not.
            column_types |= dict(
                zip(late_columns, map(_TYPES.__getitem__, late_columns), strict=True)
            )
            decoded_table = _decode_json_lines(raw_lines, column_types)
    except (UnicodeDecodeError, pa.ArrowException):
        return None
    if decoded_table.num_rows != n_objects:
        return None
    may_hold_nul = b"\0" in raw_lines or b"u0000" in raw_lines
    return _message_table_if_plain(decoded_table, known_fields, may_hold_nul=may_hold_nul)


def _count_lines_if_objects(raw_lines: bytes) -> int | None:
    """Count the lines, where each begins as an object and ends as one; ``None`` where one does not.

    Together with the number of objects it says that none spans two lines.
    """
    outer_bytes = raw_lines[:1] + raw_lines.rstrip()[-1:]
    if outer_bytes != b"{}":
        return None
    byte_codes = np.frombuffer(raw_lines, np.uint8)
    line_breaks = np.flatnonzero(byte_codes[:-1] == _LINE_FEED)
    line_ends = byte_codes[line_breaks - 1]
    line_ends = np.where(line_ends == _CARRIAGE_RETURN, byte_codes[line_breaks - 2], line_ends)
    is_other = (line_ends != _CLOSING) | (byte_codes[line_breaks + 1] != _OPENING)
    if is_other.any():
        return None
    return len(line_breaks) + 1


def _column_types_of_first_line(raw_lines: bytes) -> dict[str, pa.DataType] | None:
    """Find the types of the columns of the first line; the decoder refuses a line with others."""
    try:
        first_object = json.loads(io.BytesIO(raw_lines).readline())
    except (ValueError, RecursionError):
        return None
    column_types = dict[str, pa.DataType]()
    for column_name in _TYPES.keys() & first_object.keys():
        other_types = _OTHER_TYPES.get(column_name, {})
        column_types[column_name] = other_types.get(
            type(first_object[column_name]), _TYPES[column_name]
        )
    return column_types


def _decode_json_lines(raw_lines: bytes, column_types: dict[str, pa.DataType]) -> pa.Table:
    # Threads would take more memory and as long: a chunk is small.
    return pa.json.read_json(
        pa.py_buffer(raw_lines),
        read_options=pa.json.ReadOptions(use_threads=False, block_size=len(raw_lines) + 1),
        parse_options=pa.json.ParseOptions(explicit_schema=pa.schema(list(column_types.items()))),
    )


def tabulate_records(
    records: list[JsonObject], known_fields: frozenset[str]
) -> MessageTable | None:
    """Check records in memory.

    ``None`` where not every one is a plain message without other fields.

    :param known_fields: the fields that a message has.
    """
    key_forms = set(map(tuple, records))
    all_keys = set(chain.from_iterable(key_forms))
    if not all_keys <= known_fields:
        return None
    column_arrays = {}
    try:
        for name, values in _values_by_column(records, key_forms).items():
            column = _make_column_array(name, values)
            if column is None:
                return None
            column_arrays[name] = column
    except (pa.ArrowException, UnicodeEncodeError, OverflowError):
        return None
    return _message_table_if_plain(pa.table(column_arrays), known_fields, may_hold_nul=True)


def _values_by_column(
    records: list[JsonObject], key_orders: set[tuple[str, ...]]
) -> dict[str, Sequence[JsonValue]]:
    """List the values of records by those of their keys that a chat log has.

    :param key_orders: the keys of each record in their order; of most records they are the same.
    """
    column_names = set(chain.from_iterable(key_orders)).intersection(_TYPES)
    if len(key_orders) > 1:
        return {
            column_name: [record.get(column_name) for record in records]
            for column_name in column_names
        }
    (shared_keys,) = key_orders
    columns = dict(zip(shared_keys, zip(*map(dict.values, records), strict=True), strict=True))
    return {column_name: columns[column_name] for column_name in column_names}


def _make_column_array(column_name: str, values: Sequence[JsonValue]) -> pa.Array | None:
    """Make a column of values of one kind; ``None`` where they are of several."""
    value_types = set(map(type, values)) - {type(None)}
    if value_types <= {str}:
        return pa.array(values, pa.string())
    if column_name == "timestamp":
        if value_types <= {int, float}:
            return pa.array(values, pa.float64())
        return _make_time_array(values) if value_types == {datetime} else None
    if value_types == {int} and column_name in NAMES:
        return pa.array(values, pa.int64())
    if (column_name, value_types) == ("quoted", {list}):
        quotations = chain.from_iterable(filter(None, values))
        if set(map(type, quotations)) <= {str}:
            return pa.array(values, pa.list_(pa.string()))
    return None


def _make_time_array(values: Sequence[datetime | None]) -> pa.Array | None:
    """Make a column of times that all have a zone, or that all have none; ``None`` for others."""
    time_zones = {value.tzinfo for value in values if value is not None}
    if time_zones == {None}:
        return pa.array(values, pa.timestamp("us"))
    return None if None in time_zones else pa.array(values, _UTC)


def _message_table_if_plain(
    decoded_table: pa.Table, known_fields: frozenset[str], *, may_hold_nul: bool
) -> MessageTable | None:
    """Check messages in columns.

    :param may_hold_nul: whether a text may hold a NUL character, which is looked for then.
    """
    column_names = set(decoded_table.column_names)
    if _NO_MESSAGE & column_names or not column_names.issuperset(_NEEDED):
        return None
    written_times = pa.nulls(decoded_table.num_rows, pa.timestamp("us"))
    if "timestamp" in column_names:
        written_times = decoded_table["timestamp"].combine_chunks()
    parsed_times = _parse_times_of_one_form(written_times)
    if parsed_times is None:
        return None
    typed_columns: Any = pl.from_arrow(decoded_table.select(list(_TYPES.keys() & column_names)))
    text_columns = typed_columns.select(_text_column_expressions(typed_columns))
    if may_hold_nul and _contain_nul(text_columns):
        return None
    if not _are_plain_messages(text_columns):
        return None
    quoted_column = _quoted_column_if_plain(typed_columns)
    if quoted_column is None:
        return None
    other_columns = decoded_table.drop_columns(list(_TYPES.keys() & column_names))
    if not all(map(_is_plain_json_column, other_columns.columns)):
        return None
    unread_columns: Any = other_columns.drop_columns(
        list(known_fields.intersection(other_columns.column_names))
    )
    if _may_some_message_use_other_field_names(decoded_table, unread_columns):
        return None
    other_keys = {}
    for column_name in unread_columns.column_names:
        n_filled = len(unread_columns[column_name]) - unread_columns[column_name].null_count
        if n_filled:
            other_keys[column_name] = n_filled
    if not any(map(_may_hold_three_words, unread_columns.columns)):
        unread_columns = None
    read_columns = text_columns.with_columns(
        quoted_column, _times_without_zone_as_utc(parsed_times).alias("timestamp")
    )
    return MessageTable(
        read_columns,
        _first_row_and_time_without_zone(written_times, parsed_times),
        unread_columns,
        other_keys,
    )


def _may_some_message_use_other_field_names(
    decoded_table: pa.Table, unread_columns: pa.Table
) -> bool:
    """Say whether a message may lack a field and have it under another name: then each is looked
    at.
    """
    column_names = set(decoded_table.column_names)
    for row in unread_columns.slice(0, 1).to_pylist():
        first_values = dict.fromkeys(row, None)
        for name in row:
            column = unread_columns[name].drop_null()
            if len(column):
                first_values[name] = column[0].as_py()
        for name, key in find_key_by_usual_name(first_values).items():
            if name not in column_names or decoded_table[name].null_count:
                return bool(key)
    return False


def _text_column_expressions(typed_columns: pl.DataFrame) -> list[pl.Expr]:
    """Give the columns of texts, null where the messages have none."""
    text_expressions = []
    for name in _TEXTS:
        column = pl.col(name) if name in typed_columns.columns else pl.lit(None)
        text_expressions.append(column.cast(pl.String).alias(name))
    return text_expressions


def _are_plain_messages(text_columns: pl.DataFrame) -> bool:
    """Say whether messages have what each needs, names that are not blank, and text that can be
    stored.
    """
    needed_columns = text_columns.select("scope", "text", pl.coalesce("sender", "role"))
    if needed_columns.null_count().sum_horizontal().item():
        return False
    name_columns = text_columns.select(NAMES)
    begins_plainly = name_columns.select(pl.all().is_between(*_PLAIN_NAMES).all()).row(0)
    for name, is_plain in zip(NAMES, begins_plainly, strict=True):
        if not is_plain and not name_columns[name].str.contains(_NOT_BLANK).all():
            return False
    return True


def _contain_nul(text_columns: pl.DataFrame) -> bool:
    filled_columns = [
        name for name in _TEXTS if text_columns[name].null_count() < text_columns.height
    ]
    return bool(
        text_columns.select(pl.any_horizontal(_any_has_nul_expr(pl.col(filled_columns)))).item()
    )


def _any_has_nul_expr(column: pl.Expr) -> pl.Expr:
    return column.str.contains("\0", literal=True).any()


def _quoted_column_if_plain(typed_columns: pl.DataFrame) -> pl.Series | None:
    """Give lists of quoted parts, null for none; ``None`` where one of them is no plain text."""
    if "quoted" not in typed_columns.columns or not typed_columns["quoted"].count():
        return pl.Series("quoted", [None], pl.List(pl.String)).new_from_index(
            0, typed_columns.height
        )
    column = typed_columns["quoted"]
    quoted_rows = column.to_frame("quoted")
    if not isinstance(column.dtype, pl.List):
        quoted_rows = quoted_rows.select(pl.concat_list("quoted").list.drop_nulls())
    quoted_list = pl.col("quoted").cast(pl.List(pl.String))
    filled_rows = quoted_rows.select(
        pl.when(quoted_list.list.len() > 0).then(quoted_list).alias("quoted")
    )
    quotations = filled_rows.drop_nulls().explode("quoted")
    quotation = pl.col("quoted")
    is_odd = quotations.select(quotation.is_null().any() | _any_has_nul_expr(quotation)).item()
    return None if is_odd else filled_rows["quoted"]


def _parse_times_of_one_form(written_times: pa.Array) -> pl.Series | None:
    """Read times that are all written in one form, with or without a zone; ``None`` for others."""
    if pa.types.is_floating(written_times.type):
        return _parse_epoch_times(written_times)
    for time_type in (_UTC, pa.timestamp("us")):
        try:
            parsed_times: Any = pl.from_arrow(pc.cast(written_times, time_type))
        except pa.ArrowException:
            continue
        microsecond_counts = parsed_times.to_physical()
        # The first and the last days of all are left to the reader of records, which knows its
        # limits.
        is_usual = microsecond_counts.is_between(_FIRST_USUAL, _LAST_USUAL).all()
        return parsed_times if is_usual else None
    return None


def _parse_epoch_times(written_counts: pa.Array) -> pl.Series | None:
    """Read counts since 1970; ``None`` where one is too large or negative."""
    epoch_counts: Any = pl.from_arrow(written_counts)
    if epoch_counts.is_between(*SERIALS).any():
        return None
    unit_microseconds = pl.lit(None, pl.Float64)
    for least_count, microseconds in _EPOCH_MICROSECONDS:
        unit_microseconds = (
            pl.when(pl.col("count") >= least_count).then(microseconds).otherwise(unit_microseconds)
        )
    scaled_counts = (pl.col("count") * unit_microseconds).round(mode="half_to_even")
    scaled_times = epoch_counts.to_frame("count").select(scaled_counts).to_series()
    is_exact = scaled_times.is_between(0, _LARGEST_INTEGER, closed="left").all()
    if scaled_times.null_count() > epoch_counts.null_count():
        return None
    if not is_exact:
        return None
    return scaled_times.cast(pl.Int64).cast(TIMESTAMP)


def _times_without_zone_as_utc(times: pl.Series) -> pl.Series:
    if times.dtype == TIMESTAMP:
        return times
    return times.dt.replace_time_zone("UTC").cast(TIMESTAMP)


def _first_row_and_time_without_zone(
    written_times: pa.Array, parsed_times: pl.Series
) -> tuple[int, JsonValue] | None:
    """Find the first time where they have no zone: its row, and how it is written."""
    if parsed_times.dtype == TIMESTAMP:
        return None
    for row in parsed_times.is_not_null().arg_true().head(1):
        return row, written_times[row].as_py()
    return None


def _is_plain_json_column(column: pa.ChunkedArray) -> bool:
    """Say whether values nest no deeper than can be looked through, and hold no number that JSON
    has not.
    """
    try:
        leaves = list(_leaf_arrays(column.combine_chunks()))
    except RecursionError:
        return False
    for leaf in leaves:
        if not pa.types.is_floating(leaf.type):
            continue
        if pc.any(pc.invert(pc.is_finite(leaf))).as_py():
            return False
    return True


def _may_hold_three_words(column: pa.ChunkedArray) -> bool:
    """Say whether a column holds a text that may have three words."""
    for leaf in _leaf_arrays(column.combine_chunks()):
        if not pa.types.is_string(leaf.type):
            continue
        space_counts = pc.count_substring_regex(leaf, "[ \n]")
        if pc.any(pc.greater(space_counts, 1)).as_py():
            return True
    return False


def _leaf_arrays(nested_array: pa.Array, depth: int = 0) -> Iterator[pa.Array]:
    """Give the arrays of the plain values in an array of objects and lists.

    :raises RecursionError: for objects in objects in objects.
    """
    if depth > _DEEPEST:
        raise RecursionError
    if pa.types.is_struct(nested_array.type):
        for field_number in range(nested_array.type.num_fields):
            yield from _leaf_arrays(nested_array.field(field_number), depth + 1)
    elif pa.types.is_list(nested_array.type):
        yield from _leaf_arrays(nested_array.flatten(), depth + 1)
    else:
        yield nested_array
