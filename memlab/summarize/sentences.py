"""Turns as sentences, each with the turn that it comes from."""

from __future__ import annotations

import polars as pl

from memlab.embed.text import ROLES
from memlab.language.sentences import sentences

SCHEMA = {
    "turn_id": pl.String,
    "session_id": pl.String,
    "scope": pl.String,
    "speaker": pl.String,
    "position": pl.Int32,
    "text": pl.String,
}


def split(turns: pl.DataFrame) -> pl.DataFrame:
    """Split turns into sentences, as :func:`memlab.language.sentences.sentences` does; one without text has none.

    :param turns: rows of :class:`memlab.records.Turn`.
    :returns: ``turn_id``, ``session_id``, ``scope``, ``speaker``, ``position`` (place within the turn, from 1) and
        ``text``, in the order of the turns.

    >>> import memlab
    >>> turn = memlab.Turn("u/s/1", "u", "u/s", 1, "Mel", "user", "I met Dr. Lee at 3 p.m. today. It cost $1,250! 😊")
    >>> memlab.summarize.sentences.split(memlab.records.frame(memlab.Turn, [turn]))["text"].to_list()
    ['I met Dr. Lee at 3 p.m. today.', 'It cost $1,250! 😊']
    """
    columns = ("turn_id", "session_id", "scope", "speaker")
    parts = [sentences(text) for text in turns["text"]]
    return (
        turns.select(*columns, text=pl.Series(parts, dtype=pl.List(pl.String)))
        .with_columns(position=pl.int_ranges(1, pl.col("text").list.len() + 1, dtype=pl.Int32))
        .filter(pl.col("text").list.len() > 0)
        .explode("position", "text")
        .select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())
    )


def spoken() -> pl.Expr:
    """Write a sentence with its speaker, since "I went" alone does not say who; a mere role is left out.

    >>> import polars as pl
    >>> pl.DataFrame({"speaker": ["Mel", "user"], "text": ["I went.", "Hi."]}).select(spoken())["spoken"].to_list()
    ['Mel: I went.', 'Hi.']
    """
    named = pl.when(pl.col("speaker").is_in(ROLES)).then(pl.lit("")).otherwise(pl.col("speaker") + ": ")
    return (named + pl.col("text")).alias("spoken")
