"""Whether a context contains an answer.

Numbers and dates are compared as values, the rest as stemmed words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import NamedTuple

import polars as pl

from memlab.conversation.contexts import TITLES
from memlab.errors import DataError
from memlab.text.closed_word_classes import NUMBERS, STOP_WORDS
from memlab.text.date_expressions import date_range, dates
from memlab.text.number_expressions import numbers
from memlab.text.tokens_and_sentences import blank_out, normalize_characters, stem, words

MAX_ITEM_WORDS = 5
"""Content words of an item; a longer one is in words of its own, which no text is bound to."""

_YES_NO = re.compile(
    r"\W*(?:(?:most )?likely |probably |presumably )*(?:yes|no)\b(?! one|thing)", re.I
)
_REASONS = re.compile(r"\b(?:because|since (?!\W*(?:\d{4}|\w+ \d{4}))|so that|due to)\b", re.I)
_ACCEPTABLE = re.compile(r"([^.]+)\.([^.]+?)(?:\([^)]*\))?\s*(?:is|are) also acceptable", re.I)
_MISSING_SPACE = re.compile(r"(?<=\d)(?=[A-Z][a-z]{2})")  # "14September"
_RELATIVE_TO = re.compile(r"\b(before|after|of)(?= [^,;]*\d)", re.I)
_ASIDE = re.compile(r"\([^)]*\)")
_CLAUSE = re.compile(r"[,;\n]")
_WORD_CHARACTER = re.compile(r"\w")
# "21 August, 2022" and "$1,250" are one value each.
_COMMA_WITHIN_VALUE = re.compile(r"(?<=\w),(?= ?\d{4}\b)|(?<=\d),(?=\d{3}\b)")
_BREAK = re.compile(r"\s*(?:[,;&\n]|\band\b|\bas well as\b)\s*", re.I)
_TITLES = frozenset(TITLES.values())
_UNITS = frozenset(("dollar", "usd", "buck", "percent", "time"))


class Content(NamedTuple):
    """What a line or an item of an answer states: values in normal form, stems of content words."""

    numbers: frozenset[str]
    dates: frozenset[str]
    words: frozenset[str]
    text: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a value nor a content word."""
        return not any((self.words, self.numbers, self.dates))

    def states_all_of(self, item: Content) -> bool:
        """Say whether it contains all values and words of an item."""
        if item.is_empty:
            wording = re.escape(item.text.strip(" ."))
            return re.search(rf"(?<!\w){wording}(?!\w)", self.text) is not None
        if not item.words <= self.words:
            return False
        # A year alone is stated by every date of it, and by the bare number.
        known_numbers = self.numbers.union(stated_date[:4] for stated_date in self.dates)
        if not item.numbers <= known_numbers:
            return False
        return all(self._states_date(wanted_date) for wanted_date in item.dates)

    def _states_date(self, wanted_date: str) -> bool:
        return any(
            _does_date_imply_wanted_date(stated_date, wanted_date) for stated_date in self.dates
        )


def _does_date_imply_wanted_date(stated_date: str, wanted_date: str) -> bool:
    """Say whether a date implies another.

    It may be more precise, and may leave out the year of a day.
    """
    stated_range = date_range(stated_date)
    wanted_range = date_range(wanted_date)
    if stated_range is None:
        if wanted_range is None:
            return f"{stated_date}-".startswith(f"{wanted_date}-")
        return stated_date == _single_day_without_year_or_empty(wanted_range)
    first_day, last_day = stated_range
    if wanted_range is not None:
        return wanted_range[0] <= first_day and last_day <= wanted_range[1]
    if len(wanted_date) == len("05"):
        return wanted_date == f"{first_day:%m}" == f"{last_day:%m}"
    return wanted_date == _single_day_without_year_or_empty(stated_range)


def _single_day_without_year_or_empty(first_and_last_day: tuple[date, date]) -> str:
    """Write a single day as "05-07"; a longer time is no day, and gives an empty text."""
    first_day, last_day = first_and_last_day
    if first_day != last_day:
        return ""
    return f"{first_day:%m-%d}"


@lru_cache(maxsize=200_000)
def parse_values_and_words(text: str) -> Content:
    """Read the values and words of a text.

    >>> sorted(parse_values_and_words("Two of them cost $1,250 on May 7, 2023.").numbers)
    ['1250', '2']
    """
    normalized = _MISSING_SPACE.sub(" ", normalize_characters(text))
    found_dates = dates(normalized)
    without_dates = blank_out(normalized, found_dates)
    found_numbers = numbers(without_dates, ordinals=True)
    without_values = blank_out(without_dates, found_numbers)

    date_values = frozenset(found_date.value for found_date in found_dates)
    year_values = frozenset(value for value in date_values if len(value) == len("2023"))
    number_values = year_values.union(f"{number.value:.12g}" for number in found_numbers)
    word_stems = frozenset(stem(filter(_is_content_word, words(without_values))))
    return Content(
        number_values, date_values - year_values, word_stems - _UNITS, normalized.casefold()
    )


def _is_content_word(word: str) -> bool:
    if word in STOP_WORDS:
        return False
    if word in NUMBERS:
        return False
    return len(word) > 1 or word.isdigit()


@lru_cache(maxsize=50_000)
def parse_gold_alternatives(answer: str | None) -> tuple[tuple[Content, ...], ...]:
    """Read a gold answer: alternatives, each of items that are all needed.

    There is none where an answer cannot be looked for in a text: yes or no, one that gives reasons,
    or one with a clause of more than :data:`MAX_ITEM_WORDS` content words.

    >>> [len(parse_gold_alternatives(text)) for text in ("clarinet and violin", "Likely no")]
    [1, 0]
    >>> len(parse_gold_alternatives("5 days. 6 days is also acceptable."))
    2
    """
    gold_text = normalize_characters(answer or "").strip()
    if not gold_text or _YES_NO.match(gold_text) or _REASONS.search(gold_text):
        return ()
    alternatives = _accepted_and_anchored_wordings(gold_text)
    if any(_has_long_clause(alternative) for alternative in alternatives):
        return ()
    return tuple(_parse_list_items(alternative) for alternative in alternatives)


def _accepted_and_anchored_wordings(answer_text: str) -> list[str]:
    """List the texts of which any one answers: those accepted, then each by its anchor alone."""
    alternatives = [answer_text]
    if accepted := _ACCEPTABLE.match(answer_text):
        alternatives = [accepted[1], accepted[2]]
    # "The week before 9 June" is stated by its days, and by "last week" under the 9th of June.
    for alternative in alternatives.copy():
        by_anchor = _RELATIVE_TO.sub(r"\1:", alternative)
        if by_anchor != alternative:
            alternatives.append(by_anchor)
    return alternatives


def _has_long_clause(text: str) -> bool:
    clauses = _CLAUSE.split(_ASIDE.sub(" ", text))
    return any(len(parse_values_and_words(clause).words) > MAX_ITEM_WORDS for clause in clauses)


def _parse_list_items(text: str) -> tuple[Content, ...]:
    """Split a list into its items, not within a date or an amount.

    An aside in brackets is not asked for, unless there is nothing else.
    """
    text_outside_asides = _ASIDE.sub(" ", text)
    if _WORD_CHARACTER.search(text_outside_asides):
        text = text_outside_asides
    text = _COMMA_WITHIN_VALUE.sub("", _MISSING_SPACE.sub(" ", text))
    list_items = []
    for list_part in _BREAK.split(text):
        if not _WORD_CHARACTER.search(list_part):
            continue
        list_item = parse_values_and_words(list_part)
        if not list_item.is_empty:
            list_items.append(list_item)
    if not list_items:
        return (parse_values_and_words(text),)
    return tuple(list_items)


def contains_answer(context: str, answer: str | None) -> bool:
    """Say whether a context contains an answer.

    Every item of the answer ("clarinet and violin" has two) must stand in one line of the context:
    all its content words, stemmed, and all its numbers and dates, compared as values. A line is
    read with the bracketed line that it stands under. A date that is only meant ("last week") is
    not there. An answer that cannot be looked for (:func:`parse_gold_alternatives`) is never
    contained.

    >>> from memlab.conversation import contains_answer
    >>> text = "[8 May 2023]\\nMel: The two lamps were $1,250.\\nMel: I bought them last week."
    >>> contains_answer(text, "1250 dollars"), contains_answer(text, "2 lamps")
    (True, True)
    >>> contains_answer(text, "May 8, 2023"), contains_answer(text, "1 May 2023")
    (True, False)
    """
    return _lines_contain_an_alternative(
        _parse_context_lines(context), parse_gold_alternatives(answer)
    )


def _lines_contain_an_alternative(
    context_lines: Sequence[Content], alternatives: Sequence[Sequence[Content]]
) -> bool:
    """Say whether all items of one of the alternatives stand in lines."""

    def is_item_in_some_line(item: Content) -> bool:
        return any(line.states_all_of(item) for line in context_lines)

    return any(all(map(is_item_in_some_line, items)) for items in alternatives)


def _parse_context_lines(context: str) -> list[Content]:
    """Read the lines of a context, each with the heading in brackets that it stands under."""
    line_contents = []
    heading = ""
    for line in context.split("\n"):
        if line in _TITLES:
            heading = ""
        elif line.startswith("[") and line.endswith("]"):
            heading = line
        elif heading:
            line_contents.append(parse_values_and_words(f"{line} {heading}"))
        else:
            line_contents.append(parse_values_and_words(line))
    return line_contents


def answer_presence(contexts: Mapping[str, pl.DataFrame], questions: pl.DataFrame) -> pl.DataFrame:
    """Say for every question and kind of context whether the context contains the gold answer.

    :param contexts: name → ``query_id`` and ``text``, such as ``Contexts.texts``.
    :param questions: rows of :class:`memlab.records.Question`.
    :returns: ``context``, ``query_id`` and ``holds`` (null where the answer cannot be looked for,
        or there is none).
    :raises DataError: for a question that a way of making contexts has none for.
    """
    answers = questions.select("query_id", answer=pl.when(~pl.col("abstention")).then("answer"))
    presence_tables = []
    for context_name, context in contexts.items():
        answer_rows = _join_context_to_every_answer_or_raise(answers, context, context_name)
        presence_values = []
        for text, answer in answer_rows.select("text", "answer").iter_rows():
            presence_values.append(_contains_answer_if_searchable(text, answer))
        holds_column = pl.Series(presence_values, dtype=pl.Boolean)
        presence_tables.append(
            answer_rows.select(
                pl.lit(context_name).alias("context"), "query_id", holds=holds_column
            )
        )
    return pl.concat(presence_tables)


def _join_context_to_every_answer_or_raise(
    answers: pl.DataFrame, context: pl.DataFrame, context_name: str
) -> pl.DataFrame:
    """Put the text of a kind of context beside the answer of each question."""
    for column in ("query_id", "text"):
        if column not in context.columns:
            raise DataError(
                f"context {context_name!r} has no column {column!r}; it needs query_id and text"
            )
    context_texts = context.select("query_id", "text")
    answer_rows = answers.join(context_texts, on="query_id", how="left", maintain_order="left")
    without_context = answer_rows.filter(pl.col("text").is_null())
    if without_context.height:
        raise DataError(
            f"context {context_name!r} has none for question {without_context['query_id'][0]!r}"
        )
    return answer_rows


def _contains_answer_if_searchable(context: str, answer: str | None) -> bool | None:
    """Say whether a context contains an answer; null where it cannot be looked for."""
    alternatives = parse_gold_alternatives(answer)
    if not alternatives:
        return None
    return _lines_contain_an_alternative(_parse_context_lines(context), alternatives)
