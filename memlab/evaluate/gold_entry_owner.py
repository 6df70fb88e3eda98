"""Whom or what an annotation is of, and whether a row is about that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memlab.evaluate.fact_words import FactWords
from memlab.text.verb_lemmas import base_form_stems

_IGNORED = frozenset(
    base_form_stems(
        "new old current first own real actual name now of for at in on count number amount "
        "home house flat apartment place household"
    )
)
"""Words behind the name of a subject that name nobody else: "Mel's home"."""


@dataclass(frozen=True)
class EntryOwner:
    """The subject of an annotation by its names, with the relation that a fact has to be of.

    :param name_stems: the words of each name, the longest first.
    :param relation_stems: stems of the words of the relation; ``relation_content_stems``: those
        that are no stop words.
    """

    name_stems: tuple[tuple[str, ...], ...]
    relation_stems: frozenset[str]
    relation_content_stems: frozenset[str]

    def is_fact_about_owner_or_possession(self, fact_words: FactWords) -> bool:
        """Whether a row is about the subject, or about what belongs to it and to the relation."""
        if self._is_owner_among_fact_subjects(fact_words):
            return True
        if starts_with_any_name(fact_words.slot_stems, self.name_stems):
            return True
        if self.does_fact_subject_start_with_name(fact_words):
            return False
        return self._is_nameless_fact_about_relation(fact_words)

    def does_fact_subject_start_with_name(self, fact_words: FactWords) -> bool:
        """Whether a row begins with a name of the subject: then it is the subject's."""
        return any(
            starts_with_any_name(owner_words, self.name_stems)
            for owner_words in fact_words.iter_owned_and_ownerless_subjects()
        )

    def has_name_among(self, stems: frozenset[str]) -> bool:
        """Whether words hold a name of the subject."""
        return any(map(stems.issuperset, self.name_stems))

    def is_exactly_named_by(self, stems: frozenset[str]) -> bool:
        """Whether words are a name of the subject and nothing else."""
        return stems in map(frozenset, self.name_stems)

    def are_relation_or_ignored_stems(self, stems: Iterable[str]) -> bool:
        """Whether words are of the relation, or say nothing."""
        return (self.relation_stems | _IGNORED).issuperset(stems)

    def _is_owner_among_fact_subjects(self, fact_words: FactWords) -> bool:
        """Whether a subject of a row, with or without its owners, is this one's."""
        for subject in fact_words.subjects:
            for position, owner_words in enumerate(subject):
                # What follows the name of an owner has one owner less than is left.
                is_last_owner = len(subject) - position <= 2
                if self._is_name_before_relation(owner_words, is_last_owner=is_last_owner):
                    return True
        return False

    def _is_name_before_relation(
        self, subject_stems: tuple[str, ...], *, is_last_owner: bool
    ) -> bool:
        """Whether words are a name of the subject, and behind it only what is of the relation.

        :param is_last_owner: whether nobody else is an owner there: then the last word is enough.
        """
        for owner_name in self.name_stems:
            if subject_stems[: len(owner_name)] != owner_name:
                continue
            following_words = subject_stems[len(owner_name) :]
            if self.are_relation_or_ignored_stems(following_words):
                return True
            if is_last_owner and following_words[-1] in self.relation_stems:
                return True
        return False

    def _is_nameless_fact_about_relation(self, fact_words: FactWords) -> bool:
        """Whether a row that names nobody in front is about what is of the relation.

        If that only has a word of it, the rest of the row or who said it must be the subject.
        """
        is_named = self.has_name_among(
            fact_words.slot_and_value_stems | fact_words.sentence_stems | fact_words.speaker
        )
        for subject in fact_words.subjects:
            subject_words = subject[0]
            if subject_words and self.are_relation_or_ignored_stems(subject_words):
                return True
            has_owner = len(subject) > 1
            if (
                is_named
                and not has_owner
                and not self.relation_content_stems.isdisjoint(subject_words)
            ):
                return True
        return False


def starts_with_any_name(stems: tuple[str, ...], names_as_stems: Iterable[tuple[str, ...]]) -> bool:
    """Whether words begin with one of some names."""
    return any(stems[: len(name_words)] == name_words for name_words in names_as_stems)
