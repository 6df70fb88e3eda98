"""The words of a fact's row, as gold annotations are compared with them, and how it is stated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

from memlab.text.lemmas import base_form_stems, normalize_negations, strip_contrast
from memlab.text.tokens import normalize_characters, words
from memlab.text.words import FIRST_PERSON, NEGATIONS, STOP_WORDS

_CODE = re.compile(r"(?=(?:\D*\d){3})\S*\d\S*(?:\s+\S*\d\S*)*")
_DATE = re.compile(r"\d{4}-\d{2}(?:-\d{2})?")
_BETWEEN_SUBJECTS = re.compile(r",\s*|\s+(?:and|&|\+)\s+")

Subject = list[tuple[str, ...]]
"""The words of whom or what a row is about, then those without each owner: "Nora's boss", "boss"."""


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

    @property
    def row_words(self) -> frozenset[str]:
        """The words of about, slot and value."""
        about = [word for subject in self.subjects for word in subject[0]]
        return self.said | frozenset(about)

    @property
    def all_words(self) -> frozenset[str]:
        """The words of about, slot, value and sentence."""
        return self.row_words | self.sentence_words

    def parts(self) -> Iterator[tuple[str, ...]]:
        """Give each subject, with and without its owners."""
        for subject in self.subjects:
            yield from subject

    @property
    def slot_words(self) -> tuple[str, ...]:
        """The words of the slot, in their order."""
        return base_form_stems(self.slot)

    def states(self, wording: str) -> bool:
        """Whether slot and value hold a wording, or the sentence that completes them does."""
        asked = wording
        if self.denies and is_denial(wording):
            asked = _without_denial(wording) or wording
        if contains_value(self.text, asked):
            return True
        return self._completes(asked) and contains_value(self.sentence, asked)

    def _completes(self, wording: str) -> bool:
        """Whether the sentence may say the rest of a wording, of which slot and value say a part."""
        if self.completed:
            return True
        asked = frozenset(base_form_stems(wording))
        content = frozenset(word for word in asked if has_content(word))
        is_part = self.value_words <= asked
        if not is_part and content.isdisjoint(self.value_words):
            return False
        if _numbers(asked) and not _numbers(self.value_words) <= asked:
            return False
        told = 2 * len(content & self.row_words)
        return told > len(content) or (is_part and told == len(content))


def read_row(fact: Mapping[str, Any]) -> RowWords:
    """Read the words of a row: ``about``, ``slot`` and ``value``; ``sentence`` and ``said_by`` if there.

    >>> from memlab.evaluate.row_words import read_row
    >>> row = read_row({"about": "my boss", "slot": "name", "value": "Henrik", "said_by": "Nora"})
    >>> row.subjects, sorted(row.said)
    ([[('nora', 'boss')]], ['henrik', 'name'])
    """
    return _read_texts(
        str(fact["about"]),
        str(fact["slot"]),
        strip_contrast(str(fact["value"])),
        strip_contrast(str(fact.get("sentence") or "")),
        str(fact.get("said_by") or "user"),
        (_denies(fact), _tells_ending(fact, "ends") or _tells_ending(fact, "cancelled")),
    )


@lru_cache(maxsize=4096)
def _read_texts(
    about: str, slot: str, value: str, sentence: str, speaker: str, roles: tuple[bool, bool]
) -> RowWords:
    """Read the words of a row; ``roles``: whether it denies, and whether it ends something."""
    about = normalize_characters(about)
    text = f"{slot} {value}"
    value_words = frozenset(base_form_stems(value))
    bare = NEGATIONS.issuperset(value_words) or _DATE.fullmatch(value.strip()) is not None
    return RowWords(
        about=about,
        subjects=[_owned_words(one, speaker) for one in _list_subjects(about)],
        speaker=frozenset(base_form_stems(speaker)),
        slot=slot,
        text=text,
        said=frozenset(base_form_stems(text)),
        sentence=sentence,
        sentence_words=frozenset(base_form_stems(sentence)),
        value_words=value_words,
        completed=bare,
        denies=roles[0],
        ends=roles[1],
    )


def polarity(fact: Mapping[str, Any]) -> str:
    """Say how a row is stated.

    ``not``: it is denied, its value begins with a denial ("none", "no dog"), or it is an event that
    only tells what was cancelled. ``plan``. ``was``: it was over when it was said (``until``), or is
    an event that ends something: what is so from then on has a row of its own. ``event``: any other
    one; it supports what is and what was so. Else ``is``.

    >>> from memlab.evaluate.row_words import polarity
    >>> from datetime import datetime
    >>> job = {"about": "Ann", "slot": "employer", "value": "Acme", "asserted_at": datetime(2026, 3, 14)}
    >>> polarity(job), polarity(job | {"until": "2026-02"}), polarity(job | {"until": "2026-03"})
    ('is', 'was', 'is')
    """
    kind = fact.get("kind") or "state"
    if _denies(fact):
        return "not"
    if kind == "plan":
        return "plan"
    if _is_over(fact.get("until"), fact.get("asserted_at")):
        return "was"
    if kind != "event":
        return "is"
    if _tells_ending(fact, "cancelled"):
        return "not"
    if _tells_ending(fact, "ends"):
        return "was"
    return "event"


def is_ahead(fact: Mapping[str, Any]) -> bool:
    """Whether what a row states begins on a later day than that on which it was said."""
    since, when = fact.get("since"), fact.get("asserted_at")
    if not since or when is None:
        return False
    said: str = when.date().isoformat()
    return bool(since > said[: len(since)])


def is_denial(wording: str) -> bool:
    """Whether a wording of a value has a word of denial: "no bullet points", "none"."""
    return not NEGATIONS.isdisjoint(words(normalize_negations(wording)))


def contains_value(text: str, value: str) -> bool:
    """Say whether a text holds the words of a value, or its code.

    >>> from memlab.evaluate.row_words import contains_value
    >>> contains_value("She's got a third cat", "3 cats"), contains_value("344178", "4417")
    (True, False)
    """
    if not _CODE.fullmatch(value):
        return set(base_form_stems(text)).issuperset(base_form_stems(value))
    # A code may be spaced and signed otherwise, and does not stand within a longer one.
    signs = r"[^0-9a-z]?".join(map(re.escape, re.sub(r"[^0-9a-z]+", "", value.lower())))
    return re.search(rf"(?<![0-9a-z]){signs}(?![0-9a-z])", text.lower()) is not None


def _list_subjects(about: str) -> list[str]:
    """Give what a row is about, and of several subjects also each: "Ann and Bo's cat" is Ann's cat too."""
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
    """Give the words of a subject, then those without each owner; "I" and "the user" are who speaks."""
    own = FIRST_PERSON | {"user"}
    named = [speaker if word.lower() in own else word for word in about.split()]
    starts = [0]
    for n, word in enumerate(named, 1):
        if word.endswith("'s") and n < len(named):
            starts.append(n)
    return [base_form_stems(" ".join(named[start:])) for start in starts]


def _denies(fact: Mapping[str, Any]) -> bool:
    """Whether a row is a denial, by what it holds or by how its value begins."""
    if fact.get("holds") is False:
        return True
    begin = words(normalize_negations(strip_contrast(str(fact["value"]))))[:1]
    return not NEGATIONS.isdisjoint(begin)


def _tells_ending(fact: Mapping[str, Any], effect: str) -> bool:
    """Whether a row is an event with an effect."""
    return fact.get("kind") == "event" and effect in (fact.get("effects") or [])


def _without_denial(wording: str) -> str:
    """Give a wording without its words of denial; empty where it has no other."""
    said = words(normalize_negations(wording))
    return " ".join(word for word in said if word not in NEGATIONS)


def _is_over(until: str | None, when: datetime | None) -> bool:
    """Whether a last day, month or year lies before a time; not where either is unknown."""
    if not until or when is None:
        return False
    return until < when.date().isoformat()[: len(until)]


@cache
def has_content(word: str) -> bool:
    """Whether a stem is neither a number nor a stop word."""
    return not word.isdigit() and word not in _stop_stems()


def _numbers(said: frozenset[str]) -> frozenset[str]:
    """Give the numbers among words."""
    return frozenset(word for word in said if word.isdigit())


@cache
def _stop_stems() -> frozenset[str]:
    return STOP_WORDS | frozenset(base_form_stems(" ".join(STOP_WORDS)))
