"""Whom or what an annotation is of, and whether a row is about that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memlab.evaluate.fact_words import RowWords
from memlab.text.verb_lemmas import base_form_stems

_IGNORED = frozenset(
    base_form_stems(
        "new old current first own real actual name now of for at in on count number amount "
        "home house flat apartment place household"
    )
)
"""Words behind the name of a subject that name nobody else: "Mel's home"."""


@dataclass(frozen=True)
class Owner:
    """The subject of an annotation by its names, with the relation that a fact has to be of.

    :param names: the words of each name, the longest first.
    :param relation: stems of the words of the relation; ``content``: those that are no stop words.
    """

    names: tuple[tuple[str, ...], ...]
    relation: frozenset[str]
    content: frozenset[str]

    def has_row(self, row: RowWords) -> bool:
        """Whether a row is about the subject, or about what belongs to it and to the relation."""
        if self._is_owner_in(row):
            return True
        if begins_with(row.slot_words, self.names):
            return True
        if self.begins(row):
            return False
        return self._has_nameless(row)

    def begins(self, row: RowWords) -> bool:
        """Whether a row begins with a name of the subject: then it is the subject's."""
        return any(begins_with(owner_words, self.names) for owner_words in row.parts())

    def is_named_in(self, said: frozenset[str]) -> bool:
        """Whether words hold a name of the subject."""
        return any(map(said.issuperset, self.names))

    def is_called(self, said: frozenset[str]) -> bool:
        """Whether words are a name of the subject and nothing else."""
        return said in map(frozenset, self.names)

    def covers(self, rest: Iterable[str]) -> bool:
        """Whether words are of the relation, or say nothing."""
        return (self.relation | _IGNORED).issuperset(rest)

    def _is_owner_in(self, row: RowWords) -> bool:
        """Whether a subject of a row, with or without its owners, is this one's."""
        for subject in row.subjects:
            for position, owner_words in enumerate(subject):
                # What follows the name of an owner has one owner less than is left.
                is_last_owner = len(subject) - position <= 2
                if self._is_owned(owner_words, alone=is_last_owner):
                    return True
        return False

    def _is_owned(self, owner_words: tuple[str, ...], *, alone: bool) -> bool:
        """Whether words are a name of the subject, and behind it only what is of the relation.

        :param alone: whether nobody else is an owner there: then the last word is enough.
        """
        for owner_name in self.names:
            if owner_words[: len(owner_name)] != owner_name:
                continue
            following_words = owner_words[len(owner_name) :]
            if self.covers(following_words):
                return True
            if alone and following_words[-1] in self.relation:
                return True
        return False

    def _has_nameless(self, row: RowWords) -> bool:
        """Whether a row that names nobody in front is about what is of the relation.

        If that only has a word of it, the rest of the row or who said it must be the subject.
        """
        is_named = self.is_named_in(row.said | row.sentence_words | row.speaker)
        for subject in row.subjects:
            subject_words = subject[0]
            if subject_words and self.covers(subject_words):
                return True
            has_owner = len(subject) > 1
            if is_named and not has_owner and not self.content.isdisjoint(subject_words):
                return True
        return False


def begins_with(said: tuple[str, ...], names: Iterable[tuple[str, ...]]) -> bool:
    """Whether words begin with one of some names."""
    return any(said[: len(name_words)] == name_words for name_words in names)
