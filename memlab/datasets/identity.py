"""Who a message of a chat log is, whatever stands around it: its own id, else a digest of time, speaker and text.

A session that the log names keeps that name; another is named by its first message. Places are columns, not ids: a
message that comes late, is edited or deleted changes no other's id.
"""

from __future__ import annotations

import hashlib

import polars as pl

from memlab.records import decode_id_part, encode_id_part

_DIGEST, _BEGUN = "~", "@"
"""What the last part of an id begins with where it is a digest, or a session is named by its first message."""


def _encode_marked_part(raw: str, mark: str) -> str:
    part = encode_id_part(raw)
    return f"%{ord(mark):02X}{part[1:]}" if part.startswith(mark) else part


def encode_names(names: pl.Series) -> pl.Series:
    """Make parts of ids of names."""
    parts = {name: encode_id_part(name) for name in names.unique()}
    return names.replace_strict(parts, return_dtype=pl.String)


def decode_names(parts: pl.Series) -> pl.Series:
    """Undo :func:`encode_names`."""
    names = {part: decode_id_part(part) for part in parts.unique()}
    return parts.replace_strict(names, return_dtype=pl.String)


def with_turn_ids(messages: pl.DataFrame) -> pl.DataFrame:
    """Give messages their ``turn_id``; exact doubles without an id are numbered in the order of the rows.

    :param messages: ``scope`` (encoded), ``id`` (null where there is none), ``timestamp``, ``speaker`` and ``text``.
    """
    about = messages.select("scope", "id", pl.col("timestamp").cast(pl.Int64), "speaker", "text").iter_rows()
    ids = [
        f"{scope}/{_message_digest(*said) if name is None else _encode_marked_part(name, _DIGEST)}"
        for scope, name, *said in about
    ]
    double = pl.int_range(1, pl.len() + 1).over("turn_id")
    numbered = pl.when(double > 1).then(pl.format("{}-{}", "turn_id", double)).otherwise("turn_id")
    return messages.with_columns(turn_id=pl.Series(ids, dtype=pl.String)).with_columns(turn_id=numbered)


def _message_digest(time: int | None, speaker: str, text: str) -> str:
    return _DIGEST + hashlib.blake2b(f"{time}\x1f{speaker}\x1f{text}".encode(), digest_size=8).hexdigest()


def with_session_ids(placed: pl.DataFrame) -> pl.DataFrame:
    """Give messages their ``session_id``.

    :param placed: ``scope`` (encoded), ``session``, ``named`` (as the log calls it, null where it does not), ``n`` and
        ``turn_id``.
    """
    names = {name: _encode_marked_part(name, _BEGUN) for name in placed["named"].drop_nulls().unique()}
    begun = pl.col("turn_id").sort_by("n").first().over("scope", "session").str.split("/").list.last()
    name = pl.coalesce(pl.col("named").replace_strict(names, return_dtype=pl.String), _BEGUN + begun)
    return placed.with_columns(session_id=pl.format("{}/{}", "scope", name))


def merge_stored_turns(stored: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Put messages to the stored turns of a chat log: one with the same ``turn_id`` takes the place of the other.

    :param stored: turns, which become the messages that they were: ``raw_scope``, ``named`` and ``id`` beside.
    """
    scope, session, turn = (pl.col(c).str.split("/").list.last() for c in ("scope", "session_id", "turn_id"))
    parts = stored.select(
        raw_scope=scope,
        named=pl.when(~session.str.starts_with(_BEGUN)).then(session),
        id=pl.when(~turn.str.starts_with(_DIGEST)).then(turn),
    )
    raw = {part: decode_id_part(part) for column in parts for part in column.drop_nulls().unique()}
    old = stored.with_columns(parts.select(pl.all().replace_strict(raw, default=None, return_dtype=pl.String)))
    columns = ["raw_scope", "scope", "named", "speaker", "role", "text", "caption", "id", "timestamp", "turn_id"]
    both = pl.concat([old.select(columns), new.select(columns)]).with_row_index("_at")
    first = both.group_by("turn_id").agg(_first=pl.col("_at").min())
    return both.unique("turn_id", keep="last").join(first, on="turn_id").sort("_first").drop("_at", "_first")
