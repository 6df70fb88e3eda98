"""The sentence splitter, with offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CODE = re.compile(r"(```.*?(?:```|\Z))", re.S)
# A line that goes on in lower case was only wrapped.
_LINE = re.compile(r"\s*\n\s*(?![a-z])|(?<=[.!?:;])\s*\n\s*")
_FULL_WIDTH = re.compile(r"(?<=[。！？｡])(?=[^\s。！？｡」』）”’\"'])")
_TRAILING_OFF = re.compile(r"(?:\.\.|…)$")
# A very long line is cut at white space: the splitter takes quadratic time on brackets that never close.
_BOUNDED = re.compile(r".{1,1000}\Z|.{1,999}(?= )|.{1,1000}", re.S)
_WORD = re.compile(r"\w")
# What the splitter splits behind, and some more: a text without it is one sentence, which is known much sooner.
_END = re.compile(
    r"[.!?\u203c\u203d\u2047-\u2049\u3002\ufe52\ufe57\uff01\uff0e\uff1f\uff61]['\u2019\"\u201d]?[\])]*\s|\n\n"
)


def sentences(text: str) -> list[str]:
    """Split a text into sentences; nothing but white space between them is lost.

    Lines are sentences of their own, code between fences stays whole, and what has no word (an emoji, "!!") stays with
    the sentence before it.

    >>> from memlab.text.sentences import sentences
    >>> sentences("I met Dr. Lee at 3 p.m. today. It cost $1,250! 😊")
    ['I met Dr. Lee at 3 p.m. today.', 'It cost $1,250! 😊']
    """
    return [text[start:end] for start, end in sentence_spans(text)]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Give start and end of each sentence of a text: ``text[start:end]``."""
    joined: list[tuple[int, int]] = []
    at = 0
    for piece in _segments(text):
        start = text.index(piece, at)
        at = start + len(piece)
        before = text[slice(*joined[-1])] if joined else ""
        if before and (not _WORD.search(piece) or (piece[0].islower() and _TRAILING_OFF.search(before))):
            joined[-1] = joined[-1][0], at
        else:
            joined.append((start, at))
    return joined


def _segments(text: str) -> Iterator[str]:
    from segtok.segmenter import split_multi

    for block in _CODE.split(text):
        if block.startswith("```"):
            yield block
            continue
        for line in _LINE.split(block):
            for part in _BOUNDED.findall(line):
                for sentence in split_multi(part) if _END.search(part) else (part,):
                    yield from (piece.strip() for piece in _FULL_WIDTH.split(sentence) if piece.strip())
