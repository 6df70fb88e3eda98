"""Gold annotations: what there is to know of a chat, what must not be read into it, and whether a fact agrees."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from functools import cached_property
from pathlib import Path
from typing import Any

from memlab import datasets
from memlab.datasets.source import Source
from memlab.errors import DataError
from memlab.evaluate.row_words import (
    RowWords,
    contains_value,
    has_content,
    is_denial,
    polarity,
    read_row,
)
from memlab.records import Dataset, encode_id_part
from memlab.text.lemmas import base_form_stems

SUFFIX = ".gold.jsonl"
JOINT_LOG_FILE = "sample.jsonl"
"""The chats of a folder in one file, where annotations have no chat of their name beside them: ``data/sample``."""
_IGNORED = frozenset(
    base_form_stems(
        "new old current first own real actual name now of for at in on count number amount "
        "home house flat apartment place household"
    )
)
"""Words behind the name of a subject that name nobody else: "Mel's home"."""
_COUNT_OR_YES = re.compile(r"\d{0,2}|yes|true|none|no")
_NAMING = frozenset(base_form_stems("have be name named call called"))
_ACCEPTED = {
    "is": {"is", "event"},
    "not": {"not", "was"},
    "plan": {"plan", "is", "event"},
    "was": {"was", "not", "event"},
}
"""The polarities of a fact (:func:`polarity`) that agree with each way in which an entry was stated."""
WORDS_OF_OTHERS = frozenset({"quote", "rumour"})
"""Traps into which a fact does not fall that is stated as words of others."""


@dataclass(frozen=True)
class Entry:
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

    @cached_property
    def relation(self) -> frozenset[str]:
        """Stems of the relation."""
        return frozenset(base_form_stems(" ".join(self.about)))

    @cached_property
    def relation_content(self) -> frozenset[str]:
        """Stems of the relation that are no stop words."""
        return frozenset(word for word in self.relation if has_content(word))

    @cached_property
    def owners(self) -> list[tuple[str, ...]]:
        """The subject's names in words, the longest first."""
        return sorted({base_form_stems(name) for name in self.names}, key=len, reverse=True)

    def matches(self, fact: Mapping[str, Any]) -> bool:
        """Say whether a fact says what the entry says: the same words, with the same polarity.

        Where a wording of the value is itself a denial ("no bullet points"), a fact that denies
        agrees with an entry that is so. An event that ends something agrees with an entry that its
        message begins: "Mel broke up with Ann" with "single", not with "dates Ann".

        :param fact: a row of :class:`memlab.records.Fact`, at least ``about``, ``slot`` and
            ``value``.

        >>> from memlab.evaluate.gold_facts import Entry
        >>> boss = Entry("b", "fact", "Nora", ("Nora", "Noor"), ("Henrik",), "m3", about=("boss", "report"))
        >>> row = {"about": "Noor", "slot": "boss", "value": "Henrik", "said_by": "Nora"}
        >>> boss.matches(row), boss.matches(row | {"holds": False}), boss.matches(row | {"kind": "plan"})
        (True, False, False)
        """
        stated = self.stated_wordings(fact)
        if not stated:
            return False
        way = polarity(fact)
        if way in _ACCEPTED[self.mode]:
            return True
        if self.mode != "is":
            return False
        if way == "not" and any(is_denial(value) for value in stated):
            return True
        begins_here = self.kind == "fact" and self.since in (fact.get("evidence") or ())
        return begins_here and read_row(fact).ends

    def matches_ignoring_polarity(self, fact: Mapping[str, Any]) -> bool:
        """Say whether a fact speaks of the entry's subject, relation and value, whatever its polarity."""
        return bool(self.stated_wordings(fact))

    def stated_wordings(self, fact: Mapping[str, Any]) -> list[str]:
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
          ``sentence``, which says more than the row states: "Mel moved from Oslo to Bergen" does not
          say that Mel lives in Oslo. So a sentence only completes the value: where ``value`` is a
          date or nothing but a denial; or is a part of the wording and the row without its sentence
          has half of the wording's content ("6" of "six hens"); or has a word of content of it, no
          other number, and the row more than half. What a value is contrasted with ("not Oslo but
          Bergen", "from Oslo to Bergen") is left out of both.
        - **The other way round**, of what is not the subject's: ``value`` is the subject's name, and
          ``slot`` holds the value ("Nora | boss | Henrik", of Henrik, whose role is boss), or
          ``about`` does and there is a word of the relation or no slot but "name". Or ``about``
          holds the value, the rest of the row names the subject, and ``slot`` and ``value`` the
          relation ("Henrik | role | boss of Nora"). Stop words of the relation do not count.

        Words are compared by base form and stem, numbers by their value, codes and telephone
        numbers without their signs. In a fact that denies, a wording is looked for without its own
        denial: "no bullet points" is stated where "bullet points" do not hold.
        """
        row = read_row(fact)
        if self._has_subject(row) or self._is_of_a_thing(fact, row):
            if not row.ends and not self._is_related(row):
                return []
            stated = [value for value in self.value if row.states(value)]
            return [value for value in stated if not self._is_bare_count(value, row)]
        if self._begins(row):
            return []
        return self._held(self._text_of_reversed(row))

    def has_relation(self, slot: str) -> bool:
        """Whether all words of a slot are of the relation, or say nothing."""
        return self._belongs(base_form_stems(slot))

    def value_words(self, fact: Mapping[str, Any]) -> frozenset[str]:
        """Give the words of the wordings of the value that a fact states.

        Not by its slot alone, unless its value only counts or affirms that ("boat": "one", "mango
        allergy": "yes").
        """
        stated = self.stated_wordings(fact)
        if not _COUNT_OR_YES.fullmatch(" ".join(read_row(fact).value_words)):
            slot = str(fact["slot"])
            stated = [value for value in stated if not contains_value(slot, value)]
        return frozenset(word for value in stated for word in base_form_stems(value))

    def is_mentioned(self, fact: Mapping[str, Any]) -> bool:
        """Say whether a fact names the entry's subject and value at all: enough for what counts neither way."""
        row = read_row(fact)
        whole = f"{row.about} {row.text} {row.sentence}"
        return self._is_named_in(row.all_words) and bool(self._held(whole))

    def _held(self, text: str) -> list[str]:
        """Give the wordings of the value that a text holds."""
        return [value for value in self.value if contains_value(text, value)]

    def _is_related(self, row: RowWords) -> bool:
        """Whether a row holds a word of the relation, or there is none."""
        if not self.relation or not self.relation.isdisjoint(row.row_words):
            return True
        told = self.relation
        if self.kind == "trap":
            told = self.relation_content or told
        return not told.isdisjoint(row.sentence_words)

    def _is_bare_count(self, wording: str, row: RowWords) -> bool:
        """Whether a wording is a number alone, and nothing says of what."""
        if any(not word.isdigit() for word in base_form_stems(wording)):
            return False
        if not self.relation_content or not self.relation.isdisjoint(row.row_words):
            return False
        return self.relation_content.isdisjoint(row.sentence_words)

    def _text_of_reversed(self, row: RowWords) -> str:
        """Give what holds the value in a row that is about the value rather than the subject: see above."""
        relation = self.relation_content
        if row.value_words in {frozenset(name) for name in self.owners}:
            if not relation.isdisjoint(row.all_words):
                return f"{row.about} {row.slot}"
            only_names = _NAMING.issuperset(base_form_stems(row.slot))
            return row.about if only_names else row.slot
        named = self._is_named_in(row.said | row.sentence_words)
        if named and not relation.isdisjoint(row.said):
            return row.about
        return ""

    def _is_named_in(self, said: frozenset[str]) -> bool:
        """Whether words hold a name of the subject."""
        return any(said.issuperset(name) for name in self.owners)

    def _begins(self, row: RowWords) -> bool:
        """Whether what a row is about begins with a name of the subject: then it is the subject's."""
        return any(part[: len(name)] == name for part in row.parts() for name in self.owners)

    def _has_subject(self, row: RowWords) -> bool:
        """Whether a row is about the entry's subject, or about what belongs to it and to the relation."""
        for subject in row.subjects:
            for n, part in enumerate(subject):
                # What follows the name of an owner has one owner less than is left.
                alone = len(subject) - n <= 2
                if self._is_owned(part, alone=alone):
                    return True
        if any(row.slot_words[: len(name)] == name for name in self.owners):
            return True
        if self._begins(row):
            return False
        for subject in row.subjects:
            whole = subject[0]
            if whole and self._belongs(whole):
                return True
            named = self._is_named_in(row.said | row.sentence_words | row.speaker)
            if named and len(subject) == 1 and not self.relation_content.isdisjoint(whole):
                return True
        return False

    def _is_of_a_thing(self, fact: Mapping[str, Any], row: RowWords) -> bool:
        """Whether a row from the entry's message is about what no name of the chat stands for."""
        if self.kind != "fact" or self.since not in (fact.get("evidence") or ()):
            return False
        names = {base_form_stems(name) for name in (*self.others, *self.names)}
        for part in row.parts():
            if any(part[: len(name)] == name for name in names):
                return False
        return True

    def _is_owned(self, part: tuple[str, ...], *, alone: bool) -> bool:
        """Whether words are a name of the subject, with nothing behind it but what belongs to the relation."""
        for name in self.owners:
            if part[: len(name)] != name:
                continue
            rest = part[len(name) :]
            if self._belongs(rest) or (alone and rest[-1] in self.relation):
                return True
        return False

    def _belongs(self, rest: tuple[str, ...]) -> bool:
        """Whether words are of the relation, or say nothing."""
        return set(rest) <= self.relation | _IGNORED


@dataclass(frozen=True)
class Annotations:
    """The gold annotations of one chat.

    :param data: the file that the chat is in; ``times``: when each of the chat's turns was said, by
        id.
    :param dates: the ends of the days for which knowledge is measured as of.
    :param people: the names of each of them; ``closed``: only totals may be printed.
    """

    scope: str
    data: Dataset = field(repr=False)
    times: dict[str, datetime] = field(repr=False)
    dates: list[datetime]
    people: list[tuple[str, ...]] = field(repr=False)
    entries: list[Entry] = field(repr=False)
    closed: bool

    def of_kind(self, kind: str) -> list[Entry]:
        """Give the entries of one kind."""
        return [entry for entry in self.entries if entry.kind == kind]

    def stated(self, entry: Entry, when: datetime | None = None) -> bool:
        """Whether it had been stated by a time (``None``: the end)."""
        return when is None or self.times[entry.since] <= when

    def active(self, entry: Entry, when: datetime | None = None) -> bool:
        """Whether a fact was active at a time, by everything stated until then (``None``: the end)."""
        over = entry.until is not None and (when is None or self.times[entry.until] <= when)
        return self.stated(entry, when) and not over

    def only_names_person(self, fact: Mapping[str, Any]) -> bool:
        """Say whether a fact only says what somebody of the chat is called: "has a sister named Kavita"."""
        said = set(base_form_stems(f"{fact['slot']} {fact['value']}")) - _NAMING
        people = [[set(base_form_stems(name)) for name in names] for names in self.people]
        return bool(said) and any(
            said <= set().union(*known) and sum(said >= name for name in known) > 1
            for known in people
        )


def read_gold(folder: str | Path) -> list[Annotations]:
    """Read the gold annotations of a folder, each beside its chat or the file :data:`JOINT_LOG_FILE`, by name.

    :raises DataError: when there are none, or a line cannot be read: with file, line and reason.

    >>> from memlab.evaluate.gold_facts import read_gold
    >>> len(read_gold("data/facts/dev"))
    9
    """
    files = sorted(Path(folder).glob(f"*{SUFFIX}"))
    if not files:
        raise DataError(
            f"{folder} has no gold annotations; give a folder with NAME.jsonl and NAME{SUFFIX}"
        )
    own = [file.with_name(file.name.removesuffix(SUFFIX) + ".jsonl") for file in files]
    logs = [log if log.exists() else log.with_name(JOINT_LOG_FILE) for log in own]
    chats = {log: datasets.load(log) for log in dict.fromkeys(logs)}
    return [_read_annotations(file, chats[log]) for file, log in zip(files, logs, strict=True)]


def _read_annotations(file: Path, data: Dataset) -> Annotations:
    head, *rows = read_json_lines(file)
    turns = data.turns.filter(data.turns["scope"] == head["scope"])
    times = dict(turns.select("turn_id", "timestamp").iter_rows())
    people = {one["name"]: (one["name"], *one["names"]) for one in head["people"]}
    entries = []
    for n, row in enumerate(rows, 2):
        try:
            kind, trap = row.pop("is"), row.pop("kind", None)
            row["since"] = row.pop("message", None) or row["since"]
            row |= {name: tuple(row[name]) for name in ("value", "about") if name in row}
            row |= {
                name: message_turn_id(head["scope"], row[name])
                for name in ("since", "until")
                if name in row
            }
            names = people[row["subject"]]
            others = tuple(name for known in people.values() for name in known if name not in names)
            entry = Entry(kind=kind, trap=trap, names=names, others=others, **row)
            if (
                entry.mode not in _ACCEPTED
                or not {entry.since, entry.until or entry.since} <= times.keys()
            ):
                raise ValueError(
                    f"mode {entry.mode!r}, or a message of it that the chat does not have"
                )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{file}, line {n}: {error!r}; see data/README.md for what a line holds"
            ) from None
        entries.append(entry)
    dates = [datetime.combine(datetime.fromisoformat(day), time.max, UTC) for day in head["dates"]]
    return Annotations(
        head["scope"], data, times, dates, [*people.values()], entries, head.get("closed", False)
    )


def message_turn_id(scope: str, message: str) -> str:
    """Give the id of the turn that a chat log calls so."""
    return f"{scope}/{encode_id_part(message)}"


def read_json_lines(file: str | Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines.

    :raises DataError: when it cannot be read, or a line is no JSON: with file and line.
    """
    return [row for _, row in Source(Path(file)).stream_json_lines()]
