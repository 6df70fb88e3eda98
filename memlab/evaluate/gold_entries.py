"""Annotations of a chat, each a fact to be known or a trap, and whether a row agrees with one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from memlab.evaluate.fact_polarity import contains_negation, polarity_of_fact
from memlab.evaluate.fact_words import (
    FactWords,
    drop_stop_words_and_numbers,
    read_fact_words,
    text_contains_value_words_or_code,
)
from memlab.evaluate.gold_entry_owner import EntryOwner, starts_with_any_name
from memlab.knowledge.known_facts import FactRow
from memlab.text.verb_lemmas import base_form_stems

AGREEING = {
    "is": {"is", "event"},
    "not": {"not", "was"},
    "plan": {"plan", "is", "event"},
    "was": {"was", "not", "event"},
}
"""By the mode of an entry the polarities of a fact that agree with it.

See :func:`memlab.evaluate.fact_polarity.polarity_of_fact`.
"""
NAMING = frozenset(base_form_stems("have be name named call called"))
"""Stems that say of a name that it is one."""
_COUNT_OR_YES = re.compile(r"\d{0,2}|yes|true|none|no")


@dataclass(frozen=True)
class GoldEntry:
    """An annotation; see ``data/README.md``.

    :param kind: ``fact``, ``trap`` or ``neutral``; ``trap`` says of a trap why it is one.
    :param names: what the subject is called.
    :param value: wordings of which a fact must hold one; ``about``: words of the relation, of which
        it must hold one.
    :param since: the turn that states it (of a trap and a neutral line: the turn meant); ``until``:
        that ends it.
    :param mode: how it was stated: ``is``, ``not``, ``plan`` or ``was``.
    :param same: the id of another entry that says the same of another subject: to know one is
        enough.
    :param others: what the other subjects of the chat are called.
    """

    id: str
    kind: str
    subject: str
    names: tuple[str, ...]
    value: tuple[str, ...]
    since: str
    about: tuple[str, ...] = ()
    mode: str = "is"
    until: str | None = None
    corrected: bool = False
    trap: str | None = None
    same: str | None = None
    others: tuple[str, ...] = field(default=(), repr=False)

    @property
    def equivalence_group_id(self) -> str:
        """The id of the entry that stands for all that say the same."""
        return self.same or self.id

    @cached_property
    def relation_stems(self) -> frozenset[str]:
        """Stems of the relation."""
        return frozenset(base_form_stems(" ".join(self.about)))

    @cached_property
    def relation_content_stems(self) -> frozenset[str]:
        """Stems of the relation that are neither stop words nor numbers."""
        return drop_stop_words_and_numbers(self.relation_stems)

    @cached_property
    def subject_and_relation(self) -> EntryOwner:
        """The subject by its names, with the relation."""
        name_stems = dict.fromkeys(map(base_form_stems, self.names))
        longest_first = sorted(name_stems, key=len, reverse=True)
        return EntryOwner(tuple(longest_first), self.relation_stems, self.relation_content_stems)

    @cached_property
    def stems_of_each_name_in_chat(self) -> list[tuple[str, ...]]:
        """The words of each name of the chat."""
        return list(map(base_form_stems, (*self.others, *self.names)))

    def matches_with_polarity(self, fact: FactRow) -> bool:
        """Say whether a fact says what the entry says: the same words, with the same polarity.

        Where a wording of the value is itself a denial ("no bullet points"), a fact that denies
        agrees with an entry that is so. An event that ends something agrees with an entry that its
        message begins: "Mel broke up with Ann" with "single", not with "dates Ann".

        :param fact: a row of :class:`memlab.records.Fact`, at least ``about``, ``slot`` and
            ``value``.

        >>> from memlab.evaluate.gold_entries import GoldEntry
        >>> boss = GoldEntry("b", "fact", "Nora", ("Nora", "Noor"), ("Henrik",), "m3", ("boss",))
        >>> row = {"about": "Noor", "slot": "boss", "value": "Henrik", "said_by": "Nora"}
        >>> boss.matches_with_polarity(row), boss.matches_with_polarity(row | {"holds": False})
        (True, False)
        >>> boss.matches_with_polarity(row | {"kind": "plan"})
        False
        """
        stated_values = self.value_wordings_stated_by(fact)
        if not stated_values:
            return False
        fact_polarity = polarity_of_fact(fact)
        if fact_polarity in AGREEING[self.mode]:
            return True
        if self.mode != "is":
            return False
        if fact_polarity == "not" and any(map(contains_negation, stated_values)):
            return True
        return read_fact_words(fact).ends and self._is_fact_from_turn_cited_by(fact)

    def matches_ignoring_polarity(self, fact: FactRow) -> bool:
        """Say whether a fact speaks of the entry's subject, relation and value."""
        return bool(self.value_wordings_stated_by(fact))

    def value_wordings_stated_by(self, fact: FactRow) -> list[str]:
        """Give the wordings of the entry's value that a fact states of its subject and relation.

        - **Subject**: ``about``, or one of several that it lists, begins with a name of the
          subject, and what else it holds belongs to the relation ("Nora's boss"), or ends in a word
          of it ("Gran's Fairlawns room") and belongs to nobody else ("Nora's sister's boss" does
          not do). Or the slot begins with a name of it ("flat 9 | rent day", of the rent). Or it
          names nobody and belongs to the relation ("gym code"); if it only has a word of it
          ("Fairlawns room"), the rest of the row must name the subject, or the subject have said
          it. "I" and "the user" are who speaks.
        - **Relation**: a word of it occurs, in ``about``, ``slot``, ``value`` or ``sentence``. Of a
          trap, and where the wording is a number alone, no stop word ("have") that the sentence
          alone has. An event that ends something need not say what that was: "Mel left Acme".
        - **Value**: all words of one wording occur in ``slot`` and ``value`` together, or in
          ``sentence``, which says more than the row states: "Mel moved from Oslo to Bergen" does
          not say that Mel lives in Oslo. So a sentence only completes the value: where ``value`` is
          a date or nothing but a denial; or is a part of the wording and the row without its
          sentence has half of the wording's content ("6" of "six hens"); or has a word of content
          of it, no other number, and the row more than half. What a value is contrasted with ("not
          Oslo but Bergen", "from Oslo to Bergen") is left out of both.
        - **The other way round**, of what is not the subject's: ``value`` is the subject's name,
          and ``slot`` holds the value ("Nora | boss | Henrik", of Henrik, whose role is boss), or
          ``about`` does and there is a word of the relation or no slot but "name". Or ``about``
          holds the value, the rest of the row names the subject, and ``slot`` and ``value`` the
          relation ("Henrik | role | boss of Nora"). Stop words of the relation do not count.

        Words are compared by base form and stem, numbers by their value, codes and telephone
        numbers without their signs. In a fact that denies, a wording is looked for without its own
        denial: "no bullet points" is stated where "bullet points" do not hold.
        """
        fact_words = read_fact_words(fact)
        if self.subject_and_relation.is_fact_about_owner_or_possession(
            fact_words
        ) or self._is_stated_without_naming_anybody(fact, fact_words):
            return self._value_wordings_in_subject_fact(fact_words)
        if self.subject_and_relation.does_fact_subject_start_with_name(fact_words):
            return []
        return self._value_wordings_in(self._value_text_of_reversed_fact_or_empty(fact_words))

    def is_slot_within_relation(self, slot: str) -> bool:
        """Whether all words of a slot are of the relation, or say nothing."""
        return self.subject_and_relation.are_relation_or_ignored_stems(base_form_stems(slot))

    def value_stems_stated_by(self, fact: FactRow) -> frozenset[str]:
        """Give the words of the wordings of the value that a fact states.

        Not by its slot alone, unless its value only counts or affirms that ("boat": "one", "mango
        allergy": "yes").
        """
        stated_values = self.value_wordings_stated_by(fact)
        if not _COUNT_OR_YES.fullmatch(" ".join(read_fact_words(fact).value_stems)):
            slot_text = str(fact["slot"])
            stated_values = [
                value
                for value in stated_values
                if not text_contains_value_words_or_code(slot_text, value)
            ]
        return frozenset().union(*map(base_form_stems, stated_values))

    def subject_and_value_occur_in(self, fact: FactRow) -> bool:
        """Say whether a fact names the entry's subject and value at all.

        That is enough for what counts neither way.
        """
        fact_words = read_fact_words(fact)
        if not self.subject_and_relation.has_name_among(fact_words.all_stems):
            return False
        return bool(
            self._value_wordings_in(f"{fact_words.about} {fact_words.text} {fact_words.sentence}")
        )

    def _is_fact_from_turn_cited_by(self, fact: FactRow) -> bool:
        """Whether a fact is from the message that states the entry, which is no trap."""
        cited_turns = fact.get("evidence")
        if self.kind != "fact" or cited_turns is None:
            return False
        return self.since in cited_turns

    def _is_stated_without_naming_anybody(self, fact: FactRow, fact_words: FactWords) -> bool:
        """Whether a row from the entry's message is about what no name of the chat stands for."""
        if not self._is_fact_from_turn_cited_by(fact):
            return False
        return not any(
            starts_with_any_name(owner_words, self.stems_of_each_name_in_chat)
            for owner_words in fact_words.iter_owned_and_ownerless_subjects()
        )

    def _value_wordings_in_subject_fact(self, fact_words: FactWords) -> list[str]:
        """Give the wordings of the value that a row about the subject states."""
        if not self._has_or_needs_no_relation_word(fact_words):
            return []
        stated_values = filter(fact_words.states_wording, self.value)
        return [
            value
            for value in stated_values
            if not self._is_number_without_relation(value, fact_words)
        ]

    def _value_wordings_in(self, text: str) -> list[str]:
        """Give the wordings of the value that a text holds."""
        return [value for value in self.value if text_contains_value_words_or_code(text, value)]

    def _has_or_needs_no_relation_word(self, fact_words: FactWords) -> bool:
        """Whether a row holds a word of the relation, or need not: see above."""
        if fact_words.ends or not self.relation_stems:
            return True
        if not self.relation_stems.isdisjoint(fact_words.about_slot_value_stems):
            return True
        needed_words = self.relation_stems
        if self.kind == "trap" and self.relation_content_stems:
            needed_words = self.relation_content_stems
        return not needed_words.isdisjoint(fact_words.sentence_stems)

    def _is_number_without_relation(self, wording: str, fact_words: FactWords) -> bool:
        """Whether a wording is a number alone, and nothing says of what."""
        if not all(map(str.isdigit, base_form_stems(wording))):
            return False
        if not self.relation_content_stems:
            return False
        if not self.relation_stems.isdisjoint(fact_words.about_slot_value_stems):
            return False
        return self.relation_content_stems.isdisjoint(fact_words.sentence_stems)

    def _value_text_of_reversed_fact_or_empty(self, fact_words: FactWords) -> str:
        """Give what holds the value in a row that is about the value rather than the subject."""
        relation_stems = self.relation_content_stems
        if self.subject_and_relation.is_exactly_named_by(fact_words.value_stems):
            if not relation_stems.isdisjoint(fact_words.all_stems):
                return f"{fact_words.about} {fact_words.slot}"
            if NAMING.issuperset(fact_words.slot_stems):
                return fact_words.about
            return fact_words.slot
        is_named = self.subject_and_relation.has_name_among(
            fact_words.slot_and_value_stems | fact_words.sentence_stems
        )
        if is_named and not relation_stems.isdisjoint(fact_words.slot_and_value_stems):
            return fact_words.about
        return ""
