"""The words of a fact's row, as gold annotations are compared with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple

from memlab.evaluate.fact_polarity import denies, ends_something, is_denial, without_denial
from memlab.text.closed_word_classes import FIRST_PERSON, NEGATIONS, STOP_WORDS
from memlab.text.tokens_and_sentences import normalize_characters
from memlab.text.verb_lemmas import base_form_stems, strip_contrast

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
        subject_words = [subject[0] for subject in self.subjects]
        return self.said.union(*subject_words)

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
        affirmed_wording = wording
        if self.denies and is_denial(wording):
            affirmed_wording = without_denial(wording)
        if contains_value(self.text, affirmed_wording):
            return True
        return self._is_completed(affirmed_wording) and contains_value(
            self.sentence, affirmed_wording
        )

    def _is_completed(self, wording: str) -> bool:
        """Whether the sentence may say the rest of a wording, of which the row says a part."""
        if self.completed:
            return True
        wording_stems = frozenset(base_form_stems(wording))
        content_stems = content_words(wording_stems)
        is_value_in_wording = self.value_words <= wording_stems
        if not is_value_in_wording and content_stems.isdisjoint(self.value_words):
            return False
        if _has_other_number(self.value_words, wording_stems):
            return False
        n_stated = len(content_stems & self.row_words)
        half_of_content = len(content_stems) / 2
        if is_value_in_wording:
            return n_stated >= half_of_content
        return n_stated > half_of_content


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

    >>> from memlab.evaluate.fact_words import read_row
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
    normalised_about = normalize_characters(texts.about)
    slot_and_value = f"{texts.slot} {texts.value}"
    value_words = frozenset(base_form_stems(texts.value))
    is_date = _DATE.fullmatch(texts.value.strip()) is not None
    return RowWords(
        about=normalised_about,
        subjects=[
            _owned_words(subject_text, texts.speaker)
            for subject_text in _list_subjects(normalised_about)
        ],
        speaker=frozenset(base_form_stems(texts.speaker)),
        slot=texts.slot,
        text=slot_and_value,
        said=frozenset(base_form_stems(slot_and_value)),
        sentence=texts.sentence,
        sentence_words=frozenset(base_form_stems(texts.sentence)),
        value_words=value_words,
        completed=is_date or NEGATIONS.issuperset(value_words),
        denies=texts.denies,
        ends=texts.ends,
    )


def contains_value(text: str, value: str) -> bool:
    """Say whether a text holds the words of a value, or its code.

    >>> from memlab.evaluate.fact_words import contains_value
    >>> contains_value("She's got a third cat", "3 cats"), contains_value("344178", "4417")
    (True, False)
    """
    if not _CODE.fullmatch(value):
        return set(base_form_stems(text)).issuperset(base_form_stems(value))
    # A code may be spaced and signed otherwise, and does not stand within a longer one.
    code_letters = re.sub(r"[^0-9a-z]+", "", value.lower())
    code_pattern = r"[^0-9a-z]?".join(code_letters)
    return re.search(rf"(?<![0-9a-z]){code_pattern}(?![0-9a-z])", text.lower()) is not None


def content_words(said: frozenset[str]) -> frozenset[str]:
    """Give the stems that are neither numbers nor stop words."""
    return said - _numbers(said) - _stop_stems()


def _list_subjects(about: str) -> list[str]:
    """Give what a row is about, and of several subjects also each.

    "Ann and Bo's cat" is Ann's cat too.
    """
    subject_texts = _BETWEEN_SUBJECTS.split(about)
    if len(subject_texts) == 1:
        return subject_texts
    _, owner, owned = subject_texts[-1].partition("'s ")
    if owner:
        for position, subject_text in enumerate(subject_texts[:-1]):
            if owner not in subject_text:
                subject_texts[position] = f"{subject_text}{owner}{owned}"
    return [about, *subject_texts]


def _owned_words(about: str, speaker: str) -> Subject:
    """Give the words of a subject, then those without each owner.

    "I" and "the user" are who speaks.
    """
    about_words = about.split()
    owner_starts = [0]
    for position, word in enumerate(about_words):
        if word.lower() in _SPEAKERS:
            about_words[position] = speaker
        if about_words[position].endswith("'s") and position + 1 < len(about_words):
            owner_starts.append(position + 1)
    return [base_form_stems(" ".join(about_words[owner_start:])) for owner_start in owner_starts]


def _has_other_number(stated_words: frozenset[str], wording_words: frozenset[str]) -> bool:
    """Whether words name another number than the one that is asked for."""
    if not _numbers(wording_words):
        return False
    return not _numbers(stated_words) <= wording_words


def _numbers(stated_words: frozenset[str]) -> frozenset[str]:
    """Give the numbers among words."""
    return frozenset(filter(str.isdigit, stated_words))


@cache
def _stop_stems() -> frozenset[str]:
    return STOP_WORDS | frozenset(base_form_stems(" ".join(STOP_WORDS)))
