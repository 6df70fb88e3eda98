"""Whether a context contains an answer: numbers and dates are compared as values, the rest as stemmed words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import polars as pl

from memlab.conversation.contexts import TITLES
from memlab.errors import DataError
from memlab.text.dates import date_range, dates
from memlab.text.numbers import numbers
from memlab.text.tokens import blank_out, normalize_characters, stem, words
from memlab.text.words import NUMBERS, STOP_WORDS

MAX_ITEM_WORDS = 5
"""Content words of an item; an answer with a longer one is in words of its own, which no text is bound to."""

_YES_NO = re.compile(
    r"\W*(?:(?:most )?likely |probably |presumably )*(?:yes|no)\b(?! one|thing)", re.I
)
_REASONS = re.compile(r"\b(?:because|since (?!\W*(?:\d{4}|\w+ \d{4}))|so that|due to)\b", re.I)
_ACCEPTABLE = re.compile(r"([^.]+)\.([^.]+?)(?:\([^)]*\))?\s*(?:is|are) also acceptable", re.I)
_MISSING_SPACE = re.compile(r"(?<=\d)(?=[A-Z][a-z]{2})")  # "14September"
_RELATIVE_TO = re.compile(r"\b(before|after|of)(?= [^,;]*\d)", re.I)
_ASIDE = re.compile(r"\([^)]*\)")
_CLAUSE = re.compile(r"[,;\n]")
_BREAK = re.compile(r"\s*(?:[,;&\n]|\band\b|\bas well as\b)\s*", re.I)
_TITLES = frozenset(TITLES.values())
_UNITS = frozenset(("dollar", "usd", "buck", "percent", "time"))


class Content(NamedTuple):
    """The content of a line or of an item of an answer: values in normal form and stems of content words."""

    numbers: frozenset[str]
    dates: frozenset[str]
    words: frozenset[str]
    text: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is neither a value nor a content word."""
        return not (self.words or self.numbers or self.dates)

    def has(self, item: Content) -> bool:
        """Say whether it contains all values and words of an item."""
        if item.empty:
            return bool(re.search(rf"(?<!\w){re.escape(item.text.strip(' .'))}(?!\w)", self.text))
        # A year alone is stated by every date of it, and by the bare number.
        known = self.numbers.union(value[:4] for value in self.dates)
        stated = (any(_date_implies(value, asked) for value in self.dates) for asked in item.dates)
        return item.words <= self.words and item.numbers <= known and all(stated)


def _date_implies(value: str, other: str) -> bool:
    """Say whether a date implies another: it may be more precise, and may leave out the year of a day."""
    inner, outer = date_range(value), date_range(other)
    if inner and outer:
        return outer[0] <= inner[0] and inner[1] <= outer[1]
    if outer:
        return outer[0] == outer[1] and value == f"{outer[0]:%m-%d}"
    if inner and len(other) == len("05"):
        return other == f"{inner[0]:%m}" == f"{inner[1]:%m}"
    return (
        inner[0] == inner[1] and other == f"{inner[0]:%m-%d}"
        if inner
        else f"{value}-".startswith(f"{other}-")
    )


@lru_cache(maxsize=200_000)
def parse_content(text: str) -> Content:
    """Read the values and words of a text.

    >>> sorted(parse_content("Two of them cost $1,250 on May 7, 2023.").numbers)
    ['1250', '2']
    """
    text = _MISSING_SPACE.sub(" ", normalize_characters(text))
    day_values = dates(text)
    amounts = numbers(blank_out(text, day_values), ordinals=True)
    years = {day.value for day in day_values if len(day.value) == len("2023")}
    rest = words(blank_out(blank_out(text, day_values), amounts))
    content = (word for word in rest if word not in STOP_WORDS and word not in NUMBERS)
    stems = frozenset(stem(word for word in content if len(word) > 1 or word.isdigit()))
    values = years.union(f"{number.value:.12g}" for number in amounts)
    return Content(
        frozenset(values),
        frozenset(day.value for day in day_values) - years,
        stems - _UNITS,
        text.casefold(),
    )


@lru_cache(maxsize=50_000)
def parse_gold(answer: str | None) -> tuple[tuple[Content, ...], ...]:
    """Read a gold answer: alternatives, each of items that are all needed.

    There is none where an answer cannot be looked for in a text: yes or no, one that gives reasons,
    or one with a clause of more than :data:`MAX_ITEM_WORDS` content words.

    >>> [len(parse_gold(text)) for text in ("clarinet and violin", "Likely no", "5 days. 6 days is also acceptable.")]
    [1, 0, 2]
    """
    text = normalize_characters(answer or "").strip()
    if not text or _YES_NO.match(text) or _REASONS.search(text):
        return ()
    accepted = _ACCEPTABLE.match(text)
    sides = [accepted[1], accepted[2]] if accepted else [text]
    # "The week before 9 June" is stated by its days, and by "last week" under the 9th of June.
    sides += [counted for side in sides if (counted := _RELATIVE_TO.sub(r"\1:", side)) != side]
    clauses = (clause for side in sides for clause in _CLAUSE.split(_ASIDE.sub(" ", side)))
    long = any(len(parse_content(clause).words) > MAX_ITEM_WORDS for clause in clauses)
    return () if long else tuple(_split_list(side) for side in sides)


def _split_list(text: str) -> tuple[Content, ...]:
    """Split a list into its items, not within a date or an amount; an aside in brackets is not asked for."""
    outside = _ASIDE.sub(" ", text)
    text = outside if re.search(r"\w", outside) else text
    # "21 August, 2022" and "$1,250" are one value each.
    text = re.sub(r"(?<=\w),(?= ?\d{4}\b)|(?<=\d),(?=\d{3}\b)", "", _MISSING_SPACE.sub(" ", text))
    parts = (parse_content(part) for part in _BREAK.split(text) if re.search(r"\w", part))
    return tuple(item for item in parts if not item.empty) or (parse_content(text),)


def contains_answer(context: str, answer: str | None) -> bool:
    """Say whether a context contains an answer.

    Every item of the answer ("clarinet and violin" has two) must stand in one line of the context:
    all its content words, stemmed, and all its numbers and dates, compared as values. A line is
    read with the bracketed line that it stands under. A date that is only meant ("last week") is
    not there. An answer that cannot be looked for (:func:`parse_gold`) is never contained.

    >>> from memlab.conversation import contains_answer
    >>> text = "[8 May 2023]\\nMel: The two lamps were $1,250.\\nMel: I bought them last week."
    >>> [contains_answer(text, answer) for answer in ("1250 dollars", "2 lamps", "May 8, 2023", "1 May 2023")]
    [True, True, True, False]
    """
    return _lines_contain(_context_lines(context), parse_gold(answer))


def _lines_contain(lines: Sequence[Content], alternatives: Sequence[Sequence[Content]]) -> bool:
    return any(
        all(any(line.has(item) for line in lines) for item in items) for items in alternatives
    )


def _context_lines(text: str) -> list[Content]:
    lines, head = [], ""
    for line in text.split("\n"):
        if line in _TITLES:
            head = ""
        elif line.startswith("[") and line.endswith("]"):
            head = line
        else:
            lines.append(parse_content(f"{line} {head}" if head else line))
    return lines


def answer_presence(contexts: Mapping[str, pl.DataFrame], questions: pl.DataFrame) -> pl.DataFrame:
    """Say for every question and kind of context whether the context contains the gold answer.

    :param contexts: name → ``query_id`` and ``text``, such as ``Contexts.texts``.
    :param questions: rows of :class:`memlab.records.Question`.
    :returns: ``context``, ``query_id`` and ``holds`` (null where the answer cannot be looked for,
        or there is none).
    :raises DataError: for a question that a way of making contexts has none for.
    """
    asked = questions.select("query_id", answer=pl.when(~pl.col("abstention")).then("answer"))
    parts = []
    for name, context in contexts.items():
        if missing := [column for column in ("query_id", "text") if column not in context.columns]:
            raise DataError(
                f"context {name!r} has no column {missing[0]!r}; it needs query_id and text"
            )
        rows = asked.join(
            context.select("query_id", "text"), on="query_id", how="left", maintain_order="left"
        )
        if rows["text"].null_count():
            raise DataError(
                f"context {name!r} has none for question {rows.filter(pl.col('text').is_null())[0, 0]!r}"
            )
        golds = [parse_gold(answer) for answer in rows["answer"]]
        present = [_lines_contain(_context_lines(text), wanted) if wanted else None
                for text, wanted in zip(rows["text"], golds, strict=True)]  # fmt: skip
        there = pl.Series(present, dtype=pl.Boolean)
        parts.append(rows.select(pl.lit(name).alias("context"), "query_id", holds=there))
    return pl.concat(parts)
