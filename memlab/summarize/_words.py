"""The words of sentences as one frame, and what kind of word each is."""

from __future__ import annotations

from functools import cache
from typing import Any

import polars as pl

TOKEN = r"[\p{L}\p{N}]+(?:['’.,][\p{L}\p{N}]+)*"
_SHORTEST_NICKNAME = 3

# Said to be polite; they tell nothing of what a conversation was about.
_SAID_PHATIC = """
    hey hi hello hiya yo bye goodbye thanks thank thx cheers please sorry welcome congrats congratulations wow whoa
    oh ooh ah aw aww haha hahaha lol hmm mmm yeah yep yup yes nah no nope ok okay sure alright right great good nice
    cool awesome amazing fantastic wonderful lovely sweet beautiful gorgeous incredible impressive brilliant perfect
    excellent terrific super fun glad happy proud excited exciting inspiring inspiration love luck lucky kind hope hug
    hugs wishes wish care see later soon talk catch chat hear heard hearing know think thought mean means meant guess
    totally absolutely definitely exactly agree agreed understand understood understandable appreciate interesting
    sounds sound looks look looking forward keep going things thing stuff lot lots bit way really very much truly
    always never wait let lets let's feel feeling feels guy guys girl man dude buddy friend pal mate day weekend
    take sharing share shared telling tell told say said saying ask asked day's true fair point noted gonna wanna
    that's it's i'm you're i've you've i'll you'll i'd we're don't can't didn't doesn't isn't what's how's here's
    there's they're we've we'll he's she's couldn't wouldn't won't wasn't haven't up been going doing got get
    best cute stunning delicious yummy sad bad awful rough tough
"""
_SAID_TIMES = """
    today tonight tomorrow yesterday monday tuesday wednesday thursday friday saturday sunday january february march
    april june july august september october november december week weeks month months year years weekend morning
    afternoon evening night summer winter spring autumn fall birthday anniversary ago
"""
_SAID_NUMBERS = """
    two three four five six seven eight nine ten eleven twelve dozen twenty thirty forty fifty hundred thousand
    million first second third fourth fifth once twice half
"""

PHATIC = frozenset(_SAID_PHATIC.split())
_TIMES = frozenset(_SAID_TIMES.split())
_NUMBERS = frozenset(_SAID_NUMBERS.split())


def words(sentences: pl.DataFrame) -> pl.DataFrame:
    """List every word of every sentence.

    :param sentences: what :func:`memlab.summarize.sentences.split` gives.
    :returns: ``row`` (place of the sentence), ``scope``, ``stem``, and what the word is: ``content`` (it tells
        something), ``name`` (a capital inside a sentence, not of somebody who takes part), ``number``, ``time``.
    """
    table = (
        sentences.select("scope", pl.col("text").str.extract_all(TOKEN).alias("token"))
        .with_row_index("row")
        .explode("token")
        .drop_nulls("token")
        .with_columns(word=pl.col("token").str.to_lowercase().str.replace_all("’", "'"))
        .with_columns(pl.col("word").str.strip_suffix("'s"))
    )
    capital = pl.col("token").str.contains(r"^\p{Lu}\p{L}")
    inside = pl.col("row") == pl.col("row").shift(1)
    table = table.join(called(sentences), on=["scope", "word"], how="left", maintain_order="left").with_columns(
        partner=capital & pl.col("partner").fill_null(False)
    )
    digits = pl.col("token").str.contains(r"\d")
    told = ~pl.col("word").is_in(list(_function_words() | PHATIC)) & (pl.col("word").str.len_chars() > 1)
    return table.select(
        "row",
        "scope",
        stem=_stems(table["word"]),
        content=(told | digits) & ~pl.col("partner"),
        name=capital & inside & ~pl.col("partner") & told,
        number=digits | pl.col("word").is_in(list(_NUMBERS)),
        time=pl.col("word").is_in(list(_TIMES)),
        partner="partner",
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


def stemmed(words: list[str]) -> list[str]:
    """Stem lower-case words."""
    stems: list[str] = _stemmer().stemWords(words)
    return stems


def _stems(column: pl.Series) -> pl.Series:
    known = column.unique(maintain_order=True)
    stems = pl.Series(stemmed(known.to_list()), dtype=pl.String)
    return column.replace_strict(known, stems, return_dtype=pl.String) if known.len() else column


@cache
def _function_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS)


@cache
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")
