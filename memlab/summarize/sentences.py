"""Turns as sentences, each with the turn that it comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from memlab.embed.text import ROLES

SCHEMA = {
    "turn_id": pl.String,
    "session_id": pl.String,
    "scope": pl.String,
    "speaker": pl.String,
    "position": pl.Int32,
    "text": pl.String,
}

# The splitter takes quadratic time on brackets that never close.
_LONGEST = 1_000

_CODE = re.compile(r"(```.*?(?:```|\Z))", re.S)
# A line that goes on in lower case was only wrapped.
_LINE = re.compile(r"\s*\n\s*(?![a-z])|(?<=[.!?:;])\s*\n\s*")
_FULL_WIDTH = re.compile(r"(?<=[。！？｡])(?=[^\s。！？｡」』）”’\"'])")
_TRAILING_OFF = re.compile(r"(?:\.\.|…)$")
_WORD = re.compile(r"\w")


def split(turns: pl.DataFrame) -> pl.DataFrame:
    """Split turns into sentences; nothing but white space between them is lost.

    Lines are sentences of their own, code between fences stays whole, and what has no word (an emoji, "!!") stays with
    the sentence before it. A turn without text has no sentence.

    :param turns: rows of :class:`memlab.records.Turn`.
    :returns: ``turn_id``, ``session_id``, ``scope``, ``speaker``, ``position`` (place within the turn, from 1) and
        ``text``, in the order of the turns.

    >>> import memlab
    >>> turn = memlab.Turn("u/s/1", "u", "u/s", 1, "Mel", "user", "I met Dr. Lee at 3 p.m. today. It cost $1,250! 😊")
    >>> memlab.summarize.sentences.split(memlab.records.frame(memlab.Turn, [turn]))["text"].to_list()
    ['I met Dr. Lee at 3 p.m. today.', 'It cost $1,250! 😊']
    """
    columns = ("turn_id", "session_id", "scope", "speaker")
    parts = [list(_sentences(text)) for text in turns["text"]]
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


def _sentences(text: str) -> Iterator[str]:
    """Split one text; pieces without a word, and what goes on after "...", join the sentence before."""
    held = ""
    for piece in _pieces(text):
        goes_on = _TRAILING_OFF.search(held) and piece[:1].islower()
        if held and (goes_on or not _WORD.search(piece)):
            held = f"{held} {piece}"
            continue
        if held:
            yield held
        held = piece
    if held:
        yield held


def _pieces(text: str) -> Iterator[str]:
    from segtok.segmenter import split_multi

    for block in _CODE.split(text):
        if block.startswith("```"):
            yield block
            continue
        for line in _LINE.split(block):
            for part in _bounded(line):
                for sentence in split_multi(part):
                    yield from (piece.strip() for piece in _FULL_WIDTH.split(sentence) if piece.strip())


def _bounded(line: str) -> Iterator[str]:
    """Cut a very long line at white space."""
    while len(line) > _LONGEST:
        at = line.rfind(" ", 1, _LONGEST)
        at = at if at > 0 else _LONGEST
        yield line[:at]
        line = line[at:]
    yield line
