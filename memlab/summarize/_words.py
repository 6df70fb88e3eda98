"""The words of sentences as one frame, and what each tells of a conversation."""

from __future__ import annotations

import polars as pl

from memlab.language.tokens import WORD, keyed, stems
from memlab.language.words import COURTESY, FIRST_PERSON, NUMBERS, SECOND_PERSON, STOP_WORDS, TIMES

_SHORTEST_NICKNAME = 3


def words(sentences: pl.DataFrame) -> pl.DataFrame:
    """List every word of every sentence.

    :param sentences: what :func:`memlab.summarize.sentences.split` gives.
    :returns: ``row`` (place of the sentence), ``scope``, ``stem``, and what the word is: ``content`` (it tells
        something), ``name`` (a capital inside a sentence, not of somebody who takes part), ``number``, ``time``,
        ``own`` ("I", "we've"), ``other`` ("your").

    >>> import memlab
    >>> from memlab.summarize import split, words
    >>> words(split(memlab.datasets.synthetic.generate(turns=60, seed=0).turns)).columns[:4]
    ['row', 'scope', 'stem', 'content']
    """
    table = (
        sentences.select("scope", pl.col("text").str.extract_all(WORD).alias("token"))
        .with_row_index("row")
        .explode("token")
        .drop_nulls("token")
        .with_columns(word=keyed(pl.col("token")))
        .with_columns(person=pl.col("word").str.extract(r"^([^']+)"))
    )
    table = table.join(called(sentences), on=["scope", "word"], how="left", maintain_order="left")
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


def called(sentences: pl.DataFrame) -> pl.DataFrame:
    """List what those who take part in a scope are called: the words of their names, and how these begin ("Mel")."""
    names = (
        sentences.select("scope", word=pl.col("speaker").str.to_lowercase().str.extract_all(r"\p{L}+"))
        .unique()
        .explode("word")
        .drop_nulls("word")
        .unique()
    )
    lengths = pl.int_ranges(_SHORTEST_NICKNAME, pl.col("word").str.len_chars() + 1)
    short = names.with_columns(length=lengths).explode("length").drop_nulls("length")
    begun = short.select("scope", word=pl.col("word").str.slice(0, pl.col("length")))
    return pl.concat([names, begun]).unique().with_columns(partner=True)
