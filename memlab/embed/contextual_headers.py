"""Contextual headers: scope, time and participants, put before the texts that are embedded.

A question has the header that turns have, in the same words. The fields are an attribute of the
encoder (``memlab.embed.load(name, header=("time",))``), so that whoever writes texts for it knows
what stands before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from memlab.errors import DataError
from memlab.records import decode_id_part

HEADER_FIELDS = ("scope", "time", "participants")
DAY_FORMAT = "%-d %B %Y"


def validated_header_fields(header: Iterable[str]) -> tuple[str, ...]:
    """Give the fields of a header as a tuple.

    :raises DataError: for an unknown field.

    >>> from memlab.embed.contextual_headers import validated_header_fields
    >>> validated_header_fields(["time", "scope"])
    ('time', 'scope')
    """
    header_fields = tuple(header)
    for field_name in header_fields:
        if field_name not in HEADER_FIELDS:
            raise DataError(
                f"header field {field_name!r} is not known; choose from {', '.join(HEADER_FIELDS)}"
            )
    return header_fields


def header_fields_or_empty(encoder: object) -> tuple[str, ...]:
    """Give the header fields that an encoder carries; none for a bare encoder or for ``None``.

    >>> from memlab.embed import load
    >>> from memlab.embed.contextual_headers import header_fields_or_empty
    >>> header_fields_or_empty(load("hashing:64", header=["time"])), header_fields_or_empty(None)
    (('time',), ())
    """
    header_fields: tuple[str, ...] = getattr(encoder, "header", ())
    return header_fields


def header_texts(
    rows: pl.DataFrame, header_fields: Sequence[str], turns: pl.DataFrame, *, group_column: str
) -> pl.Series:
    """Write headers, a text a row: ``[scope: u | time: 8 May 2023] ``.

    Where all fields are null the text is empty.

    :param rows: ``scope``, ``timestamp`` and the column ``group_column``.
    :param header_fields: fields of :data:`HEADER_FIELDS`, in the order in which they are to stand.
    :param group_column: the column of the group whose speakers in ``turns`` are the participants.
    :raises DataError: for an unknown field.
    """
    if not validated_header_fields(header_fields):
        return pl.Series("header", [""] * rows.height, dtype=pl.String)
    speakers = pl.col("speaker").unique(maintain_order=True).str.join(", ")
    group_speakers = turns.group_by(group_column, maintain_order=True).agg(participants=speakers)
    field_rows = rows.select(
        {group_column, "scope"}, time=pl.col("timestamp").dt.strftime(DAY_FORMAT)
    )
    field_rows = field_rows.join(group_speakers, on=group_column, how="left", maintain_order="left")
    field_rows = field_rows.with_columns(
        pl.col("scope").map_elements(decode_id_part, return_dtype=pl.String)
    )
    named_fields = [pl.lit(f"{field_name}: ") + pl.col(field_name) for field_name in header_fields]
    joined_fields = pl.concat_str(named_fields, separator=" | ", ignore_nulls=True)
    return field_rows.select(
        header=pl.when(joined_fields == "").then(pl.lit("")).otherwise("[" + joined_fields + "] ")
    )["header"]
