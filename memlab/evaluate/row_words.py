"""The words of a fact's row, as gold annotations are compared with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple

from memlab.evaluate.row_polarity import denies, ends_something, is_denial, without_denial
from memlab.text.lemmas import base_form_stems, strip_contrast
from memlab.text.tokens import normalize_characters
from memlab.text.words import FIRST_PERSON, NEGATIONS, STOP_WORDS

_CODE = re.compile(r"(?=(?:\D*\d){3})\S*\d\S*(?:\s+\S*\d\S*)*")
_DATE = re.compile(r"\d{4}-\d{2}(?:-\d{2})?")
_BETWEEN_SUBJECTS = re.compile(r",\s*|\s+(?:and|&|\+)\s+")
_SPEAKERS = FIRST_PERSON | {"user"}
"""Words that stand for who speaks."""

Subject = list[tuple[str, ...]]
"""Words of whom or what a row is about, then those without each owner: "Nora's boss", "boss"."""


@dataclass(frozen=True)
class RowWords:
    """A row of :class:`memlab.records.Fact` in words, which are stems of base forms.

    :param about: whom or what it is about, as it is written.
    :param subjects: the same in words; of several that it lists ("Ann and Bo") also each.
    :param speaker: words of the name of who said it.
    :param slot: as it is written.
    :param text: slot and value, ``sentence``: the sentence, both without what a value is contrasted
        with; ``said`` and ``sentence_words``: their words.
    :param value_words: words of the value alone.
    :param completed: whether the sentence alone says what the value is: that is a date, or nothing
        but a denial.
    :param denies: whether it is a denial; ``ends``: whether it is an event that ends or cancels
        something.
    """

    about: str
    subjects: list[Subject]
    speaker: frozenset[str]
    slot: str
    text: str
    said: frozenset[str]
    sentence: str
    sentence_words: frozenset[str]
    value_words: frozenset[str]
    completed: bool
    denies: bool
    ends: bool

    @cached_property
    def row_words(self) -> frozenset[str]:
        """The words of about, slot and value."""
        wholes = [subject[0] for subject in self.subjects]
        return self.said.union(*wholes)

    @cached_property
    def all_words(self) -> frozenset[str]:
        """The words of about, slot, value and sentence."""
        return self.row_words | self.sentence_words

    @property
    def slot_words(self) -> tuple[str, ...]:
        """The words of the slot, in their order."""
        return base_form_stems(self.slot)

    def parts(self) -> Iterator[tuple[str, ...]]:
        """Give each subject, with and without its owners."""
        for subject in self.subjects:
            yield from subject

    def states(self, wording: str) -> bool:
        """Whether slot and value hold a wording, or the sentence that completes them does."""
        asked = wording
        if self.denies and is_denial(wording):
            asked = without_denial(wording)
        if contains_value(self.text, asked):
            return True
        return self._is_completed(asked) and contains_value(self.sentence, asked)

    def _is_completed(self, wording: str) -> bool:
        """Whether the sentence may say the rest of a wording, of which the row says a part."""
        if self.completed:
            return True
        asked = frozenset(base_form_stems(wording))
        content = content_words(asked)
        is_part = self.value_words <= asked
        if not is_part and content.isdisjoint(self.value_words):
            return False
        if _has_other_number(self.value_words, asked):
            return False
        stated = len(content & self.row_words)
        half = len(content) / 2
        if is_part:
            return stated >= half
        return stated > half


class _Texts(NamedTuple):
    """The texts of a row of which its words are read, and how it is stated."""

    about: str
    slot: str
    value: str
    sentence: str
    speaker: str
    denies: bool
    ends: bool


def read_row(fact: Mapping[str, Any]) -> RowWords:
    """Read the words of a row.

    :param fact: ``about``, ``slot`` and ``value``; ``sentence`` and ``said_by`` if there.

    >>> from memlab.evaluate.row_words import read_row
    >>> row = read_row({"about": "my boss", "slot": "name", "value": "Henrik", "said_by": "Nora"})
    >>> row.subjects, sorted(row.said)
    ([[('nora', 'boss')]], ['henrik', 'name'])
    """
    texts = _Texts(
        about=str(fact["about"]),
        slot=str(fact["slot"]),
        value=strip_contrast(str(fact["value"])),
        sentence=strip_contrast(str(fact.get("sentence") or "")),
        speaker=str(fact.get("said_by") or "user"),
        denies=denies(fact),
        ends=ends_something(fact),
    )
    return _read_texts(texts)


@lru_cache(maxsize=4096)
def _read_texts(texts: _Texts) -> RowWords:
    """Read the words of a row, once for all entries that it is compared with."""
    about = normalize_characters(texts.about)
    text = f"{texts.slot} {texts.value}"
    value_words = frozenset(base_form_stems(texts.value))
    is_date = _DATE.fullmatch(texts.value.strip()) is not None
    return RowWords(
        about=about,
        subjects=[_owned_words(one, texts.speaker) for one in _list_subjects(about)],
        speaker=frozenset(base_form_stems(texts.speaker)),
        slot=texts.slot,
        text=text,
        said=frozenset(base_form_stems(text)),
        sentence=texts.sentence,
        sentence_words=frozenset(base_form_stems(texts.sentence)),
        value_words=value_words,
        completed=is_date or NEGATIONS.issuperset(value_words),
        denies=texts.denies,
        ends=texts.ends,
    )


def contains_value(text: str, value: str) -> bool:
    """Say whether a text holds the words of a value, or its code.

    >>> from memlab.evaluate.row_words import contains_value
    >>> contains_value("She's got a third cat", "3 cats"), contains_value("344178", "4417")
    (True, False)
    """
    if not _CODE.fullmatch(value):
        return set(base_form_stems(text)).issuperset(base_form_stems(value))
    # A code may be spaced and signed otherwise, and does not stand within a longer one.
    letters = re.sub(r"[^0-9a-z]+", "", value.lower())
    signs = r"[^0-9a-z]?".join(letters)
    return re.search(rf"(?<![0-9a-z]){signs}(?![0-9a-z])", text.lower()) is not None


def content_words(said: frozenset[str]) -> frozenset[str]:
    """Give the stems that are neither numbers nor stop words."""
    return said - _numbers(said) - _stop_stems()


def _list_subjects(about: str) -> list[str]:
    """Give what a row is about, and of several subjects also each.

    "Ann and Bo's cat" is Ann's cat too.
    """
    listed = _BETWEEN_SUBJECTS.split(about)
    if len(listed) == 1:
        return listed
    _, owner, owned = listed[-1].partition("'s ")
    if owner:
        for n, one in enumerate(listed[:-1]):
            if owner not in one:
                listed[n] = f"{one}{owner}{owned}"
    return [about, *listed]


def _owned_words(about: str, speaker: str) -> Subject:
    """Give the words of a subject, then those without each owner.

    "I" and "the user" are who speaks.
    """
    named = about.split()
    starts = [0]
    for n, word in enumerate(named):
        if word.lower() in _SPEAKERS:
            named[n] = speaker
        if named[n].endswith("'s") and n + 1 < len(named):
            starts.append(n + 1)
    return [base_form_stems(" ".join(named[start:])) for start in starts]


def _has_other_number(said: frozenset[str], asked: frozenset[str]) -> bool:
    """Whether words name another number than the one that is asked for."""
    if not _numbers(asked):
        return False
    return not _numbers(said) <= asked


def _numbers(said: frozenset[str]) -> frozenset[str]:
    """Give the numbers among words."""
    return frozenset(filter(str.isdigit, said))


@cache
def _stop_stems() -> frozenset[str]:
    return STOP_WORDS | frozenset(base_form_stems(" ".join(STOP_WORDS)))
