"""The texts that stand for turns, sessions and questions wherever they are indexed or embedded.

One rule for every door: BM25, encoders and the full-text index all read what these functions give. A contextual
header can be put before the text, in the same words at write and at query time.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from memlab.errors import DataError
from memlab.records import raw_part

HEADER_FIELDS = ("scope", "time", "participants", "topics")

_DAY = "%-d %B %Y"
ROLES = ("user", "assistant", "system", "other")


def turn_texts(turns: pl.DataFrame, *, header: Sequence[str] = ()) -> list[str]:
    """Write each turn as one text: header, who speaks, what is said, what an image shows.

    A caption is given as a sentence about the speaker, since an encoder reads "Mel shared a photo of a dog" better
    than a bare tag. A speaker who is only a role ("user") is left out.

    :param turns: rows of :class:`memlab.records.Turn`; with ``participants`` or ``topics`` in the header, whole
        sessions, since both are read off the session's other turns.
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
    written = headers(_turn_fields(turns, header, turns), turns.height)
    return (written + turns.select(text=turn_text())["text"]).to_list()


def turn_text() -> pl.Expr:
    """Write turns as :func:`turn_texts` does without a header, as an expression over their rows."""
    return _body(" " + _named("{} shared ") + pl.col("caption") + ".")


def session_texts(turns: pl.DataFrame, sessions: pl.DataFrame, *, header: Sequence[str] = ()) -> list[str]:
    """Write each session as one text: its header and date, then its turns, one a line.

    Captions stand bare here: "Mel shared" over and over would make a long document look as if it were about Mel.

    :param turns: every turn of the sessions.
    :param sessions: rows of :class:`memlab.records.Session`; a session without turns gives its date alone.
    """
    first = turns.unique("session_id", keep="first", maintain_order=True)
    heads = first.select("session_id", head=headers(_turn_fields(first, header, turns), first.height))
    joined = (
        turns.select("session_id", body=_body(" " + pl.col("caption")))
        .group_by("session_id", maintain_order=True)
        .agg(pl.col("body").str.join("\n"))
    )
    day = pl.col("start").dt.strftime(_DAY + ", %A\n").fill_null("")
    return (
        sessions.select("session_id", "start")
        .join(heads, on="session_id", how="left", maintain_order="left")
        .join(joined, on="session_id", how="left", maintain_order="left")
        .select(text=pl.col("head").fill_null("") + day + pl.col("body").fill_null(""))["text"]
        .to_list()
    )


def query_texts(questions: pl.DataFrame, turns: pl.DataFrame, *, header: Sequence[str] = ()) -> list[str]:
    """Write each question with the header that its scope's turns have; what a question cannot know is left out.

    ``time`` is when the question is asked, ``participants`` are those of the whole scope, ``topics`` are unknown.

    :param questions: ``scope``, ``text`` and ``timestamp`` are read, never the evidence.
    """
    fields = {
        "scope": lambda: _scopes(questions),
        "time": lambda: questions["timestamp"].dt.strftime(_DAY),
        "participants": lambda: _beside(questions, _participants(turns, "scope")),
    }
    written = {name: fields[name]() for name in _checked(header) if name in fields}
    return (headers(written, questions.height) + questions["text"]).to_list()


def _named(form: str) -> pl.Expr:
    """Write the speaker into a form; nothing where the speaker is only a role."""
    return pl.when(pl.col("speaker").is_in(ROLES)).then(pl.lit("")).otherwise(pl.format(form, "speaker"))


def _body(caption: pl.Expr) -> pl.Expr:
    return _named("{}: ") + pl.col("text") + pl.when(pl.col("caption").is_null()).then(pl.lit("")).otherwise(caption)


def _checked(header: Sequence[str]) -> Sequence[str]:
    unknown = [name for name in header if name not in HEADER_FIELDS]
    if unknown:
        raise DataError(f"header field {unknown[0]!r} is not known; choose from {', '.join(HEADER_FIELDS)}")
    return header


def _turn_fields(turns: pl.DataFrame, header: Sequence[str], context: pl.DataFrame) -> dict[str, pl.Series]:
    fields = {
        "scope": lambda: _scopes(turns),
        "time": lambda: turns["timestamp"].dt.strftime(_DAY),
        "participants": lambda: _beside(turns, _participants(context, "session_id")),
        "topics": lambda: _beside(turns, _topics(context)),
    }
    return {name: fields[name]() for name in _checked(header)}


def _scopes(rows: pl.DataFrame) -> pl.Series:
    scopes = rows["scope"].unique()
    return rows["scope"].replace_strict(scopes, [raw_part(s) for s in scopes], return_dtype=pl.String)


def _beside(rows: pl.DataFrame, texts: pl.DataFrame) -> pl.Series:
    """Give each row the text of its scope or session, a column each."""
    by = texts.columns[0]
    return rows.select(by).join(texts, on=by, how="left", maintain_order="left").to_series(1)


def _participants(turns: pl.DataFrame, by: str) -> pl.DataFrame:
    return turns.group_by(by, maintain_order=True).agg(
        participants=pl.col("speaker").unique(maintain_order=True).str.join(", ")
    )


def _topics(turns: pl.DataFrame) -> pl.DataFrame:
    """Name each session's three words of highest tf-idf among the sessions of its scope."""
    words = (
        turns.select("scope", "session_id", word=pl.col("text").str.to_lowercase().str.extract_all(r"[\p{L}]{4,}"))
        .explode("word")
        .drop_nulls("word")
    )
    n_sessions = turns.group_by("scope").agg(total=pl.col("session_id").n_unique())
    spread = words.group_by("scope", "word").agg(df=pl.col("session_id").n_unique())
    return (
        words.group_by("scope", "session_id", "word", maintain_order=True)
        .len("tf")
        .join(spread, on=["scope", "word"], how="left", maintain_order="left")
        .join(n_sessions, on="scope", how="left", maintain_order="left")
        .with_columns(weight=pl.col("tf") * (((pl.col("total") + 1) / (pl.col("df") + 1)).log() + 1e-9))
        .sort("session_id", "weight", "word", descending=[False, True, False])
        .group_by("session_id", maintain_order=True)
        .agg(topics=pl.col("word").head(3).str.join(", "))
    )


def headers(fields: dict[str, pl.Series], height: int) -> pl.Series:
    """Write fields as headers, a text each: ``[scope: u | time: 8 May 2023] ``; nothing where all are null."""
    if not fields:
        return pl.Series("header", [""] * height, dtype=pl.String)
    named = [pl.lit(f"{name}: ") + pl.col(name) for name in fields]
    joined = pl.concat_str(named, separator=" | ", ignore_nulls=True)
    bracketed = pl.when(joined == "").then(pl.lit("")).otherwise("[" + joined + "] ")
    return pl.DataFrame(fields).select(header=bracketed)["header"]
