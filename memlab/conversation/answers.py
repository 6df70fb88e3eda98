"""Whether a context holds an answer: numbers and dates compared as values, the rest as stemmed words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import polars as pl

from memlab.conversation.contexts import TITLES
from memlab.conversation.tokens import counted
from memlab.errors import DataError
from memlab.text.calendar import MONTH_NAME, says
from memlab.text.dates import dates
from memlab.text.numbers import numbers
from memlab.text.tokens import plain, stem, without, words
from memlab.text.words import NUMBERS, STOP_WORDS

UNMEASURABLE = ("none", "yes/no", "open")
"""Kinds of answers that cannot be looked for in a text."""

LONGEST_ITEM = 5
"""Content words of an item; one with more is in words of its own, which no text is bound to."""

_YES_NO = re.compile(r"\W*(?:(?:most )?likely |probably |presumably )*(?:yes|no)\b(?! one|thing)", re.I)
_REASONS = re.compile(r"\b(?:because|since (?!\W*(?:\d{4}|\w+ \d{4}))|so that|due to)\b", re.I)
_ACCEPTABLE = re.compile(r"([^.]+)\.([^.]+?)(?:\([^)]*\))?\s*(?:is|are) also acceptable", re.I)
_GLUED = re.compile(rf"(?<=\d)(?={MONTH_NAME}\b)", re.I)
_COUNTED_FROM = re.compile(r"\b(before|after|of)(?= [^,;]*\d)", re.I)
_ASIDE = re.compile(r"\([^)]*\)")
_CLAUSE = re.compile(r"[,;\n]")
_BREAK = re.compile(r"\s*(?:[,;&\n]|\band\b|\bas well as\b)\s*", re.I)
_YEAR = 4
_TITLES = frozenset(TITLES.values())
_UNITS = frozenset(("dollar", "usd", "buck", "percent", "time"))


class Content(NamedTuple):
    """What a text states, or an item of an answer asks for: values in normal form and stems of content words."""

    numbers: frozenset[str]
    dates: frozenset[str]
    words: frozenset[str]
    text: str = ""

    @property
    def empty(self) -> bool:
        """Whether there is neither a value nor a content word."""
        return not (self.words or self.numbers or self.dates)

    def has(self, item: Content) -> bool:
        """Say whether it states an item: all its values and words."""
        if item.empty:
            return bool(re.search(rf"(?<!\w){re.escape(item.text.strip(' .'))}(?!\w)", self.text))
        years = {date[:_YEAR] for date in self.dates}
        return (
            item.words <= self.words
            and all(number in self.numbers or number in years for number in item.numbers)
            and all(any(says(date, asked) for date in self.dates) for asked in item.dates)
        )


class Answer(NamedTuple):
    """A gold answer: its kind, and alternatives, each of items that are all needed.

    The kind is ``list``, ``date``, ``number`` or ``text``; or one of :data:`UNMEASURABLE`, where ``open`` is one that
    gives reasons or has a clause of more than :data:`LONGEST_ITEM` content words.
    """

    kind: str
    alternatives: tuple[tuple[Content, ...], ...] = ()

    def stands_in(self, lines: Sequence[Content]) -> bool:
        """Say whether all items of an alternative stand in lines, each in one."""
        return self.kind not in UNMEASURABLE and any(
            all(any(line.has(item) for line in lines) for item in items) for items in self.alternatives
        )


@lru_cache(maxsize=200_000)
def read(text: str) -> Content:
    """Read the values and words of a text.

    >>> sorted(read("Two of them cost $1,250 on May 7, 2023.").numbers)
    ['1250', '2']
    """
    text = _GLUED.sub(" ", plain(text))
    days = dates(text)
    amounts = numbers(without(text, days), ordinals=True)
    # A year alone is stated by every date of it, and by the bare number; a weekday is a word.
    days = [day for day in days if day.value[0].isdigit()]
    years = {day.value for day in days if len(day.value) == _YEAR}
    values = years.union(f"{number.value:.12g}" for number in amounts)
    rest = words(without(without(text, days), amounts))
    content = (word for word in rest if word not in STOP_WORDS and word not in NUMBERS)
    stems = frozenset(stem(word for word in content if len(word) > 1 or word.isdigit()))
    return Content(frozenset(values), frozenset(day.value for day in days) - years, stems - _UNITS, text.casefold())


@lru_cache(maxsize=50_000)
def gold(answer: str | None) -> Answer:
    """Read a gold answer: what kind it is, and what a text must state to hold it.

    >>> [gold(a).kind for a in ("May 2023", "rock climbing, fishing", "Likely no", "twice", None)]
    ['date', 'list', 'yes/no', 'number', 'none']
    """
    text = plain(answer or "").strip()
    if not text:
        return Answer("none")
    if _YES_NO.match(text):
        return Answer("yes/no")
    accepted = _ACCEPTABLE.match(text)
    sides = [accepted[1], accepted[2]] if accepted else [text]
    # "The week before 9 June" is stated by its days, and by "last week" under the 9th of June.
    sides += [counted for side in sides if (counted := _COUNTED_FROM.sub(r"\1:", side)) != side]
    alternatives = tuple(_items(side) for side in sides)
    clauses = (clause for side in sides for clause in _CLAUSE.split(_ASIDE.sub(" ", side)))
    if _REASONS.search(text) or any(len(read(clause).words) > LONGEST_ITEM for clause in clauses):
        return Answer("open", alternatives)
    first = alternatives[0]
    kind = "list" if len(first) > 1 else "date" if first[0].dates else "number" if first[0].numbers else "text"
    return Answer(kind, alternatives)


def _items(text: str) -> tuple[Content, ...]:
    """Split a list into its items, not within a date or an amount; an aside in brackets is not asked for."""
    outside = _ASIDE.sub(" ", text)
    text = outside if re.search(r"\w", outside) else text
    # "21 August, 2022" and "$1,250" are one value each.
    text = re.sub(r"(?<=\w),(?= ?\d{4}\b)", "", _GLUED.sub(" ", text))
    parts = (read(part) for part in _BREAK.split(re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)) if re.search(r"\w", part))
    return tuple(item for item in parts if not item.empty) or (read(text),)


def holds(context: str, answer: str | None) -> bool:
    """Say whether a context holds an answer.

    Every item of the answer ("clarinet and violin" has two) must stand in one line of the context: all its content
    words, stemmed, and all its numbers and dates, compared as values. A line is read with the bracketed line that it
    stands under. A date that is only meant ("last week") is not there. An answer that cannot be looked for
    (:data:`UNMEASURABLE`) is never held.

    >>> from memlab.conversation import holds
    >>> text = "[8 May 2023]\\nMel: The two lamps were $1,250.\\nMel: I bought them last week."
    >>> [holds(text, answer) for answer in ("1250 dollars", "2 lamps", "May 8, 2023", "1 May 2023", "two beds")]
    [True, True, True, False, False]
    """
    return gold(answer).stands_in(_lines(context))


def _lines(text: str) -> list[Content]:
    lines, head = [], ""
    for line in text.split("\n"):
        if line in _TITLES:
            head = ""
        elif line.startswith("[") and line.endswith("]"):
            head = line
        else:
            lines.append(read(f"{line} {head}" if head else line))
    return lines


def holding(contexts: Mapping[str, pl.DataFrame], questions: pl.DataFrame) -> pl.DataFrame:
    """Say for every question and way of making contexts whether the answer is there.

    :param contexts: name → ``query_id`` and ``text``, such as ``Contexts.texts``; tokens are counted where there is no
        ``n_tokens``.
    :param questions: rows of :class:`memlab.records.Question`.
    :returns: ``context``, ``query_id``, ``question_type``, ``answer_kind``, ``holds`` (null where it cannot be looked
        for) and ``n_tokens``.
    :raises DataError: for a question that a way of making contexts has none for.
    """
    measured = pl.when(~pl.col("abstention")).then("answer")
    golds = [gold(text) for text in questions.select(measured)["answer"]]
    kinds = pl.Series("answer_kind", [each.kind for each in golds], dtype=pl.String)
    asked = questions.select("query_id", "question_type", kinds)
    parts = []
    for name, made in contexts.items():
        if lacking := [column for column in ("query_id", "text") if column not in made.columns]:
            raise DataError(f"context {name!r} has no column {lacking[0]!r}; it needs query_id and text")
        sized = made if "n_tokens" in made.columns else counted(made)
        rows = asked.join(sized, on="query_id", how="left", maintain_order="left")
        if rows["text"].null_count():
            raise DataError(f"context {name!r} has none for question {rows.filter(pl.col('text').is_null())[0, 0]!r}")
        there = [each.stands_in(_lines(text)) for each, text in zip(golds, rows["text"], strict=True)]
        held = pl.when(~kinds.is_in(UNMEASURABLE)).then(pl.Series("holds", there, dtype=pl.Boolean)).alias("holds")
        rows = rows.with_columns(held, context=pl.lit(name))
        parts.append(rows.select("context", "query_id", "question_type", "answer_kind", "holds", "n_tokens"))
    return pl.concat(parts)
