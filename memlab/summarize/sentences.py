"""Turns as sentences, each with the turn that it comes from; their words, and which sentences share them."""

from __future__ import annotations

import polars as pl

from memlab.embed.text import ROLES
from memlab.language.names import called
from memlab.language.sentences import sentences
from memlab.language.tokens import WORD, keyed, stems
from memlab.language.words import COURTESY, FIRST_PERSON, NUMBERS, SECOND_PERSON, STOP_WORDS, TIMES


def split(turns: pl.DataFrame) -> pl.DataFrame:
    """Split turns into sentences, as :func:`memlab.language.sentences.sentences` does; one without text has none.

    :returns: ``turn_id``, ``session_id``, ``scope``, ``speaker``, ``role``, ``position`` (place within the turn,
        from 1) and ``text``, in the order of the turns.

    >>> import memlab
    >>> turn = memlab.Turn("u/s/1", "u", "u/s", 1, "Mel", "user", "I met Dr. Lee at 3 p.m. today. It cost $1,250! 😊")
    >>> memlab.summarize.sentences.split(memlab.records.frame(memlab.Turn, [turn]))["text"].to_list()
    ['I met Dr. Lee at 3 p.m. today.', 'It cost $1,250! 😊']
    """
    columns = ("turn_id", "session_id", "scope", "speaker", "role")
    parts = [sentences(text) for text in turns["text"]]
    return (
        turns.select(*columns, text=pl.Series(parts, dtype=pl.List(pl.String)))
        .with_columns(position=pl.int_ranges(1, pl.col("text").list.len() + 1, dtype=pl.Int32))
        .filter(pl.col("text").list.len() > 0)
        .explode("position", "text")
        .select(*columns, "position", "text")
    )


def spoken() -> pl.Expr:
    """Write a sentence with its speaker, since "I went" alone does not say who; a mere role is left out.

    >>> import polars as pl
    >>> pl.DataFrame({"speaker": ["Mel", "user"], "text": ["I went.", "Hi."]}).select(spoken())["spoken"].to_list()
    ['Mel: I went.', 'Hi.']
    """
    named = pl.when(pl.col("speaker").is_in(ROLES)).then(pl.lit("")).otherwise(pl.col("speaker") + ": ")
    return (named + pl.col("text")).alias("spoken")


def words(sentences: pl.DataFrame) -> pl.DataFrame:
    """List every word of every sentence.

    :returns: ``row`` (place of the sentence), ``scope``, ``stem``, and what the word is: ``content`` (it tells
        something), ``name`` (a capital inside a sentence, not of somebody who takes part), ``number``, ``time``,
        ``own`` ("I", "we've"), ``other`` ("your").

    >>> import polars as pl
    >>> from memlab.summarize import words
    >>> rows = words(pl.DataFrame({"scope": "u", "speaker": "Mel", "text": ["I saw two boats."]}))
    >>> rows.filter("content")["stem"].to_list()
    ['saw', 'boat']
    """
    table = (
        sentences.select("scope", pl.col("text").str.extract_all(WORD).alias("token"))
        .with_row_index("row")
        .explode("token")
        .drop_nulls("token")
        .with_columns(word=keyed(pl.col("token")))
        .with_columns(person=pl.col("word").str.extract(r"^([^']+)"))
        .join(_partners(sentences), on=["scope", "word"], how="left", maintain_order="left")
    )
    capital = pl.col("token").str.contains(r"^\p{Lu}\p{L}")
    inside = pl.col("row") == pl.col("row").shift(1)
    partner = capital & pl.col("partner").fill_null(False)
    digits = pl.col("token").str.contains(r"\d")
    numeral = pl.col("word").is_in(NUMBERS)
    tells = ~pl.col("word").is_in(STOP_WORDS | COURTESY) & ~numeral & (pl.col("word").str.len_chars() > 1)
    return table.select(
        "row",
        "scope",
        stem=stems(table["word"]),
        content=(tells | digits) & ~partner,
        name=capital & inside & ~partner & tells,
        number=digits | numeral,
        time=pl.col("word").is_in(TIMES),
        own=pl.col("person").is_in(FIRST_PERSON),
        other=pl.col("person").is_in(SECOND_PERSON),
    )


def _partners(sentences: pl.DataFrame) -> pl.DataFrame:
    """List what those who take part in a scope are called."""
    names = sentences.group_by("scope").agg(pl.col("speaker").unique()).iter_rows()
    rows = [(scope, word) for scope, speakers in names for word in called(speakers)]
    schema = {"scope": pl.String, "word": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(partner=True)


def shared(asked: pl.DataFrame, others: pl.DataFrame, tokens: pl.DataFrame, *, by: str) -> pl.DataFrame:
    """Count the telling words that sentences share with what else stands in their group.

    :param asked: ``row`` and ``by``.
    :param others: ``row``, ``by``, and ``other``, the name of what the row is part of; all its rows count together.
    :param tokens: what :func:`words` gives for all of them.
    :param by: the column that names the group.
    :returns: ``row``, ``other``, ``shared`` (different stems) and ``share`` (of those of the row), where there are any.
    """
    telling = tokens.filter("content").select("row", "stem").unique()
    wanted = asked.select("row", by).join(telling, on="row").with_columns(total=pl.len().over("row"))
    told = others.select("row", by, "other").join(telling, on="row").drop("row").unique()
    pairs = wanted.join(told, on=[by, "stem"]).group_by("row", "other")
    return pairs.agg(pl.col("total").first(), shared=pl.len()).select(
        "row", "other", "shared", share=pl.col("shared") / pl.col("total")
    )
