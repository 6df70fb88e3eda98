"""The texts that stand for turns, sessions and questions wherever they are indexed or embedded.

BM25, encoders and the full-text index all read what these functions give. A contextual header, see
:mod:`memlab.embed.contextual_headers`, can be put before the text.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from memlab.embed.contextual_headers import DAY_FORMAT, header_texts

ROLES = ("user", "assistant", "system", "other")


def turn_texts(turns: pl.DataFrame, *, header: Sequence[str] = ()) -> list[str]:
    """Write each turn as one text: header, who speaks, what is said, what an image shows.

    A caption is given as a sentence about the speaker, since an encoder reads "Mel shared a photo
    of a dog" better than a bare tag. A speaker who is only a role ("user") is left out.

    :param turns: rows of :class:`memlab.records.Turn`; with ``participants`` in the header, whole
        sessions.
    :param header: fields of :data:`memlab.embed.contextual_headers.HEADER_FIELDS`, in the order in
        which they are to stand: the ``header`` of the encoder.
    :raises DataError: for an unknown header field.

    >>> import memlab
    >>> turn = memlab.Turn("u/s/1", "u", "u/s", 1, "Mel", "user", "Look!", "a dog")
    >>> turns = memlab.records.frame(memlab.Turn, [turn])
    >>> memlab.embed.turn_texts.turn_texts(turns)
    ['Mel: Look! Mel shared a dog.']
    >>> memlab.embed.turn_texts.turn_texts(turns, header=("scope", "participants"))
    ['[scope: u | participants: Mel] Mel: Look! Mel shared a dog.']
    """
    text_headers = header_texts(turns, header, turns, group_column="session_id")
    return (text_headers + turns.select(text=turn_text_expr())["text"]).to_list()


def turn_text_expr() -> pl.Expr:
    """Write turns as :func:`turn_texts` does without a header, as an expression over their rows."""
    return _turn_body_expr(" " + _speaker_in_form_expr("{} shared ") + pl.col("caption") + ".")


def session_texts(turns: pl.DataFrame, sessions: pl.DataFrame) -> list[str]:
    """Write each session as one text: its date, then its turns, one a line.

    Captions stand bare here: "Mel shared" over and over would make a long document look as if it
    were about Mel.

    :param turns: every turn of the sessions.
    :param sessions: rows of :class:`memlab.records.Session`; a session without turns gives its date
        alone.
    """
    session_bodies = turns.select("session_id", body=_turn_body_expr(" " + pl.col("caption")))
    session_bodies = session_bodies.group_by("session_id", maintain_order=True).agg(
        pl.col("body").str.join("\n")
    )
    ordered_sessions = sessions.select("session_id", "start").join(
        session_bodies, on="session_id", how="left", maintain_order="left"
    )
    day_text = pl.col("start").dt.strftime(DAY_FORMAT + ", %A\n").fill_null("")
    return ordered_sessions.select(day_text + pl.col("body").fill_null("")).to_series().to_list()


def query_texts(
    questions: pl.DataFrame, turns: pl.DataFrame, *, header: Sequence[str] = ()
) -> list[str]:
    """Write each question with the header that its scope's turns have.

    ``time`` is when the question is asked, ``participants`` are those of the whole scope.

    :param questions: ``scope``, ``text`` and ``timestamp`` are read, never the evidence.
    """
    text_headers = header_texts(questions, header, turns, group_column="scope")
    return (text_headers + questions["text"]).to_list()


def _speaker_in_form_expr(text_form: str) -> pl.Expr:
    """Write the speaker into a form; nothing where the speaker is only a role."""
    return (
        pl.when(pl.col("speaker").is_in(ROLES))
        .then(pl.lit(""))
        .otherwise(pl.format(text_form, "speaker"))
    )


def _turn_body_expr(caption_sentence: pl.Expr) -> pl.Expr:
    return (
        _speaker_in_form_expr("{}: ")
        + pl.col("text")
        + pl.when(pl.col("caption").is_null()).then(pl.lit("")).otherwise(caption_sentence)
    )
