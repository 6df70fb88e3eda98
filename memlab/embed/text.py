"""The texts that stand for turns, sessions and questions wherever they are indexed or embedded.

BM25, encoders and the full-text index all read what these functions give. A contextual header can
be put before the text, in the same words at write and at query time.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from memlab.errors import DataError
from memlab.records import decode_id_part

HEADER_FIELDS = ("scope", "time", "participants")
ROLES = ("user", "assistant", "system", "other")
_DAY = "%-d %B %Y"


def turn_texts(turns: pl.DataFrame, *, header: Sequence[str] = ()) -> list[str]:
    """Write each turn as one text: header, who speaks, what is said, what an image shows.

    A caption is given as a sentence about the speaker, since an encoder reads "Mel shared a photo
    of a dog" better than a bare tag. A speaker who is only a role ("user") is left out.

    :param turns: rows of :class:`memlab.records.Turn`; with ``participants`` in the header, whole
        sessions.
    :param header: fields of :data:`HEADER_FIELDS`, in the order in which they are to stand.
    :raises DataError: for an unknown header field.

    >>> import memlab
    >>> turn = memlab.Turn("u/s/1", "u", "u/s", 1, "Mel", "user", "Look!", "a dog")
    >>> turns = memlab.records.frame(memlab.Turn, [turn])
    >>> memlab.embed.text.turn_texts(turns)
    ['Mel: Look! Mel shared a dog.']
    >>> memlab.embed.text.turn_texts(turns, header=("scope", "participants"))
    ['[scope: u | participants: Mel] Mel: Look! Mel shared a dog.']
    """
    return (
        _headers(turns, header, turns, "session_id") + turns.select(text=turn_text_expr())["text"]
    ).to_list()


def turn_text_expr() -> pl.Expr:
    """Write turns as :func:`turn_texts` does without a header, as an expression over their rows."""
    return _body_expr(" " + _speaker_expr("{} shared ") + pl.col("caption") + ".")


def session_texts(
    turns: pl.DataFrame, sessions: pl.DataFrame, *, header: Sequence[str] = ()
) -> list[str]:
    """Write each session as one text: its header and date, then its turns, one a line.

    Captions stand bare here: "Mel shared" over and over would make a long document look as if it
    were about Mel.

    :param turns: every turn of the sessions.
    :param sessions: rows of :class:`memlab.records.Session`; a session without turns gives its date
        alone.
    """
    first = turns.unique("session_id", keep="first", maintain_order=True)
    heads = first.select("session_id", head=_headers(first, header, turns, "session_id"))
    joined = turns.select("session_id", body=_body_expr(" " + pl.col("caption")))
    joined = joined.group_by("session_id", maintain_order=True).agg(pl.col("body").str.join("\n"))
    placed = sessions.select("session_id", "start")
    for part in (heads, joined):
        placed = placed.join(part, on="session_id", how="left", maintain_order="left")
    day = pl.col("start").dt.strftime(_DAY + ", %A\n").fill_null("")
    return (
        placed.select(pl.col("head").fill_null("") + day + pl.col("body").fill_null(""))
        .to_series()
        .to_list()
    )


def query_texts(
    questions: pl.DataFrame, turns: pl.DataFrame, *, header: Sequence[str] = ()
) -> list[str]:
    """Write each question with the header that its scope's turns have.

    ``time`` is when the question is asked, ``participants`` are those of the whole scope.

    :param questions: ``scope``, ``text`` and ``timestamp`` are read, never the evidence.
    """
    return (_headers(questions, header, turns, "scope") + questions["text"]).to_list()


def _speaker_expr(form: str) -> pl.Expr:
    """Write the speaker into a form; nothing where the speaker is only a role."""
    return (
        pl.when(pl.col("speaker").is_in(ROLES))
        .then(pl.lit(""))
        .otherwise(pl.format(form, "speaker"))
    )


def _body_expr(caption: pl.Expr) -> pl.Expr:
    return (
        _speaker_expr("{}: ")
        + pl.col("text")
        + pl.when(pl.col("caption").is_null()).then(pl.lit("")).otherwise(caption)
    )


def _headers(rows: pl.DataFrame, header: Sequence[str], turns: pl.DataFrame, by: str) -> pl.Series:
    """Write headers, a text a row: ``[scope: u | time: 8 May 2023] ``; nothing where all fields are null.

    :param by: the column of the group whose speakers in ``turns`` are the participants.
    """
    if unknown := [name for name in header if name not in HEADER_FIELDS]:
        raise DataError(
            f"header field {unknown[0]!r} is not known; choose from {', '.join(HEADER_FIELDS)}"
        )
    if not header:
        return pl.Series("header", [""] * rows.height, dtype=pl.String)
    speakers = pl.col("speaker").unique(maintain_order=True).str.join(", ")
    groups = turns.group_by(by, maintain_order=True).agg(participants=speakers)
    fields = rows.select({by, "scope"}, time=pl.col("timestamp").dt.strftime(_DAY))
    fields = fields.join(groups, on=by, how="left", maintain_order="left")
    fields = fields.with_columns(
        pl.col("scope").map_elements(decode_id_part, return_dtype=pl.String)
    )
    named = [pl.lit(f"{name}: ") + pl.col(name) for name in header]
    joined = pl.concat_str(named, separator=" | ", ignore_nulls=True)
    return fields.select(
        header=pl.when(joined == "").then(pl.lit("")).otherwise("[" + joined + "] ")
    )["header"]
