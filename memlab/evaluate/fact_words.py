"""The words of a fact's row, as gold annotations are compared with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

from memlab.evaluate.fact_polarity import (
    contains_negation,
    is_denied_fact,
    is_ending_or_cancelling_event,
    remove_negations_unless_all,
)
from memlab.knowledge.known_facts import FactRow
from memlab.text.closed_word_classes import FIRST_PERSON, NEGATIONS, STOP_WORDS
from memlab.text.tokens_and_sentences import normalize_characters
from memlab.text.verb_lemmas import base_form_stems, strip_denied_part_of_contrast

_CODE = re.compile(r"(?=(?:\D*\d){3})\S*\d\S*(?:\s+\S*\d\S*)*")
_DATE = re.compile(r"\d{4}-\d{2}(?:-\d{2})?")
_BETWEEN_SUBJECTS = re.compile(r",\s*|\s+(?:and|&|\+)\s+")
_SPEAKERS = FIRST_PERSON | {"user"}
"""Words that stand for who speaks."""

SubjectForms = list[tuple[str, ...]]
"""Words of whom or what a row is about, then those without each owner: "Nora's boss", "boss"."""


@dataclass(frozen=True)
class FactWords:
    """A row of :class:`memlab.records.Fact` in words, which are stems of base forms.

    :param about: whom or what it is about, as it is written.
    :param subjects: the same in words; of several that it lists ("Ann and Bo") also each.
    :param speaker: words of the name of who said it.
    :param slot: as it is written.
    :param text: slot and value, ``sentence``: the sentence, both without what a value is contrasted
        with; ``slot_and_value_stems`` and ``sentence_stems``: their words.
    :param value_stems: words of the value alone.
    :param completed: whether the sentence alone says what the value is: that is a date, or nothing
        but a denial.
    :param denies: whether it is a denial; ``ends``: whether it is an event that ends or cancels
        something.
    """

    about: str
    subjects: list[SubjectForms]
    speaker: frozenset[str]
    slot: str
    text: str
    slot_and_value_stems: frozenset[str]
    sentence: str
    sentence_stems: frozenset[str]
    value_stems: frozenset[str]
    completed: bool
    denies: bool
    ends: bool

    @cached_property
    def about_slot_value_stems(self) -> frozenset[str]:
        """The words of about, slot and value."""
        subject_words = [subject[0] for subject in self.subjects]
        return self.slot_and_value_stems.union(*subject_words)

    @cached_property
    def all_stems(self) -> frozenset[str]:
        """The words of about, slot, value and sentence."""
        return self.about_slot_value_stems | self.sentence_stems

    @property
    def slot_stems(self) -> tuple[str, ...]:
        """The words of the slot, in their order."""
        return base_form_stems(self.slot)

    def iter_owned_and_ownerless_subjects(self) -> Iterator[tuple[str, ...]]:
        """Give each subject, with and without its owners."""
        for subject in self.subjects:
            yield from subject

    def states_wording(self, wording: str) -> bool:
        """Whether slot and value hold a wording, or the sentence that completes them does."""
        affirmed_wording = wording
        if self.denies and contains_negation(wording):
            affirmed_wording = remove_negations_unless_all(wording)
        if text_contains_value_words_or_code(self.text, affirmed_wording):
            return True
        return self._may_sentence_complete_wording(
            affirmed_wording
        ) and text_contains_value_words_or_code(self.sentence, affirmed_wording)

    def _may_sentence_complete_wording(self, wording: str) -> bool:
        """Whether the sentence may say the rest of a wording, of which the row says a part."""
        if self.completed:
            return True
        wording_stems = frozenset(base_form_stems(wording))
        content_stems = drop_stop_words_and_numbers(wording_stems)
        is_value_in_wording = self.value_stems <= wording_stems
        if not is_value_in_wording and content_stems.isdisjoint(self.value_stems):
            return False
        if _states_other_number_than_wording(self.value_stems, wording_stems):
            return False
        n_stated = len(content_stems & self.about_slot_value_stems)
        half_of_content = len(content_stems) / 2
        if is_value_in_wording:
            return n_stated >= half_of_content
        return n_stated > half_of_content


class _FactTexts(NamedTuple):
    """The texts of a row of which its words are read, and how it is stated."""

    about: str
    slot: str
    value: str
    sentence: str
    speaker: str
    denies: bool
    ends: bool


def read_fact_words(fact: FactRow) -> FactWords:
    """Read the words of a row.

    :param fact: ``about``, ``slot`` and ``value``; ``sentence`` and ``said_by`` if there.

    >>> from memlab.evaluate.fact_words import read_fact_words
    >>> fact = {"about": "my boss", "slot": "name", "value": "Henrik", "said_by": "Nora"}
    >>> row = read_fact_words(fact)
    >>> row.subjects, sorted(row.slot_and_value_stems)
    ([[('nora', 'boss')]], ['henrik', 'name'])
    """
    fact_texts = _FactTexts(
        about=str(fact["about"]),
        slot=str(fact["slot"]),
        value=strip_denied_part_of_contrast(str(fact["value"])),
        sentence=strip_denied_part_of_contrast(str(fact.get("sentence") or "")),
        speaker=str(fact.get("said_by") or "user"),
        denies=is_denied_fact(fact),
        ends=is_ending_or_cancelling_event(fact),
    )
    return _fact_words_of_texts(fact_texts)


@lru_cache(maxsize=4096)
def _fact_words_of_texts(fact_texts: _FactTexts) -> FactWords:
    """Read the words of a row, once for all entries that it is compared with."""
    normalised_about = normalize_characters(fact_texts.about)
    slot_and_value = f"{fact_texts.slot} {fact_texts.value}"
    value_stems = frozenset(base_form_stems(fact_texts.value))
    is_date = _DATE.fullmatch(fact_texts.value.strip()) is not None
    return FactWords(
        about=normalised_about,
        subjects=[
            _stems_of_subject_and_ownerless_forms(subject_text, fact_texts.speaker)
            for subject_text in _list_whole_and_each_subject(normalised_about)
        ],
        speaker=frozenset(base_form_stems(fact_texts.speaker)),
        slot=fact_texts.slot,
        text=slot_and_value,
        slot_and_value_stems=frozenset(base_form_stems(slot_and_value)),
        sentence=fact_texts.sentence,
        sentence_stems=frozenset(base_form_stems(fact_texts.sentence)),
        value_stems=value_stems,
        completed=is_date or NEGATIONS.issuperset(value_stems),
        denies=fact_texts.denies,
        ends=fact_texts.ends,
    )


def text_contains_value_words_or_code(text: str, value_wording: str) -> bool:
    """Say whether a text holds the words of a value, or its code.

    >>> from memlab.evaluate.fact_words import text_contains_value_words_or_code
    >>> text_contains_value_words_or_code("She's got a third cat", "3 cats")
    True
    >>> text_contains_value_words_or_code("344178", "4417")
    False
    """
    if not _CODE.fullmatch(value_wording):
        return set(base_form_stems(text)).issuperset(base_form_stems(value_wording))
    # A code may be spaced and signed otherwise, and does not stand within a longer one.
    code_letters = re.sub(r"[^0-9a-z]+", "", value_wording.lower())
    code_pattern = r"[^0-9a-z]?".join(code_letters)
    return re.search(rf"(?<![0-9a-z]){code_pattern}(?![0-9a-z])", text.lower()) is not None


def drop_stop_words_and_numbers(stems: frozenset[str]) -> frozenset[str]:
    """Give the stems that are neither numbers nor stop words."""
    return stems - _stems_of_digits(stems) - _stop_words_and_their_stems()


def _list_whole_and_each_subject(about_text: str) -> list[str]:
    """Give what a row is about, and of several subjects also each.

    "Ann and Bo's cat" is Ann's cat too.
    """
    subject_texts = _BETWEEN_SUBJECTS.split(about_text)
    if len(subject_texts) == 1:
        return subject_texts
    _, owner, owned = subject_texts[-1].partition("'s ")
    if owner:
        for position, subject_text in enumerate(subject_texts[:-1]):
            if owner not in subject_text:
                subject_texts[position] = f"{subject_text}{owner}{owned}"
    return [about_text, *subject_texts]


def _stems_of_subject_and_ownerless_forms(subject_text: str, speaker_name: str) -> SubjectForms:
    """Give the words of a subject, then those without each owner.

    "I" and "the user" are who speaks.
    """
    subject_words = subject_text.split()
    owner_starts = [0]
    for position, word in enumerate(subject_words):
        if word.lower() in _SPEAKERS:
            subject_words[position] = speaker_name
        if subject_words[position].endswith("'s") and position + 1 < len(subject_words):
            owner_starts.append(position + 1)
    return [base_form_stems(" ".join(subject_words[owner_start:])) for owner_start in owner_starts]


def _states_other_number_than_wording(
    stated_stems: frozenset[str], wording_stems: frozenset[str]
) -> bool:
    """Whether words name another number than the one that is asked for."""
    if not _stems_of_digits(wording_stems):
        return False
    return not _stems_of_digits(stated_stems) <= wording_stems


def _stems_of_digits(stems: frozenset[str]) -> frozenset[str]:
    """Give the numbers among words."""
    return frozenset(filter(str.isdigit, stems))


@cache
def _stop_words_and_their_stems() -> frozenset[str]:
    return STOP_WORDS | frozenset(base_form_stems(" ".join(STOP_WORDS)))
