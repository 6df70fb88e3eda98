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
from memlab.records import Dataset, encode_id_part
from memlab.text.lemmas import base_form, base_form_stems, normalize_negations, strip_contrast
from memlab.text.tokens import normalize_characters, stem, words
from memlab.text.words import FIRST_PERSON, HAVE, NEGATIONS, wordset

SUFFIX = ".gold.jsonl"
JOINT_LOG_FILE = "sample.jsonl"
"""The chats of a folder in one file, where annotations have no chat of their name beside them: ``data/sample``."""
_IGNORED = frozenset(base_form_stems("new old current first own real actual name now"))
_NAMING = frozenset(base_form_stems("have be name named call called"))
_CODE = re.compile(r"(?=(?:\D*\d){3})\S*\d\S*(?:\s+\S*\d\S*)*")
_ACCEPTED = {"is": {"is"}, "not": {"not"}, "plan": {"plan", "is"}, "was": {"was", "not"}}
_ENDING_WORDS = """stop quit leave cease end drop cancel abandon refuse avoid former ex off over resign break separate
    divorce split lose sell"""
_HOPE_WORDS = """plan want wish hope think consider intend dream try might maybe perhaps possibly probably if whether
    suppose expect could may must shall should will would"""
_PAST_WORDS = """was were had lived worked studied taught loved liked hated adored played drove owned stayed served ran
    kept drank ate smoked knew sang wore led sat slept dated used formerly previously once"""
_ENDING, _HOPE = (frozenset(stem(wordset(each))) for each in (_ENDING_WORDS, _HOPE_WORDS))
_PAST = wordset(_PAST_WORDS)


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

    @cached_property
    def relation(self) -> frozenset[str]:
        """Stems of the relation."""
        return frozenset(base_form_stems(" ".join(self.about)))

    @cached_property
    def owners(self) -> list[tuple[str, ...]]:
        """The subject's names in words, the longest first."""
        return sorted({base_form_stems(name) for name in self.names}, key=len, reverse=True)

    def matches(self, fact: Mapping[str, Any]) -> bool:
        """Say whether a fact says what the entry says: the same words, with the same polarity or modality.

        >>> from memlab.evaluate.gold_facts import Entry
        >>> boss = Entry("b", "fact", "Nora", ("Nora", "Noor"), ("Henrik",), "m3", about=("boss", "report"))
        >>> row = {"subject": "Noor", "predicate": "reports to", "object": "Henrik", "speaker": "Nora"}
        >>> boss.matches(row), boss.matches(row | {"predicate": "no longer reports to"})
        (True, False)
        """
        return self.matches_ignoring_polarity(fact) and self.polarity(fact) in _ACCEPTED[self.mode]

    def matches_ignoring_polarity(self, fact: Mapping[str, Any]) -> bool:
        """Say whether a fact speaks of the entry's subject, relation and value, whatever its polarity.

        The fact's subject, or what in it belongs to somebody ("Nora's flat's code"), must begin with a name of the
        entry's subject, and what else it holds belong to the relation ("Nora's boss"); or hold nothing but the relation
        ("gym code"); or hold the value, and the object the name ("Ingrid | is boss of | Nora"). A word of the relation
        must occur, and all words of one wording of the value, in predicate and object, without what a value is
        contrasted with. Words are compared by base form and stem, numbers by their value, codes and telephone numbers
        without their signs.

        :param fact: ``subject``, ``predicate``, ``object`` and ``speaker``.
        """
        subjects, value = (
            _subject_words(fact),
            f"{fact['predicate']} {strip_contrast(fact['object'])}",
        )
        said = set(base_form_stems(value))
        owned = (
            (part, name) for part in subjects for name in self.owners if part[: len(name)] == name
        )
        part, owner = next(owned, (subjects[0], ()))
        rest = set(part[len(owner) :])
        if part and rest <= self.relation | _IGNORED:
            said |= rest
        elif not owner and any(said.issuperset(name) for name in self.owners):
            value = str(fact["subject"])
        else:
            return False
        # Whoever quits something need not say what it was to them.
        related = not self.relation or not (self.relation | _ENDING).isdisjoint(said)
        return related and bool(self.value_words(value))

    def polarity(self, fact: Mapping[str, Any]) -> str:
        """Say how a fact is stated: ``is``, ``not`` (never, or no longer), ``plan`` (or wish, or perhaps) or ``was``.

        A word of the entry's relation ends nothing: "broke up with" where that is what is asked.
        """
        predicate, value = str(fact["predicate"]), strip_contrast(str(fact["object"]))
        said, opens = (words(normalize_negations(text)) for text in (predicate, value))
        stems = {*stem(base_form(word) for word in said)}
        if not (_ENDING - self.relation).isdisjoint(stems) or not NEGATIONS.isdisjoint(
            said + opens[:1]
        ):
            return "not"
        if not _HOPE.isdisjoint(stems):
            return "plan"
        perfect = len(said) > 1 and said[0] in (HAVE - {"had"}) | {"'ve"}
        return "was" if not perfect and not _PAST.isdisjoint(said) else "is"

    def value_words(self, text: str) -> frozenset[str]:
        """Give the words of the wordings of the entry's value that a text holds."""
        return frozenset(
            word
            for value in self.value
            if contains_value(text, value)
            for word in base_form_stems(value)
        )

    def is_mentioned(self, fact: Mapping[str, Any]) -> bool:
        """Say whether a fact names the entry's subject and value at all: enough for what counts neither way."""
        whole = f"{' '.join(_subject_words(fact)[0])} {fact['predicate']} {fact['object']}"
        named = any(set(base_form_stems(whole)).issuperset(owner) for owner in self.owners)
        return named and bool(self.value_words(whole))


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
        said = set(base_form_stems(f"{fact['predicate']} {fact['object']}")) - _NAMING
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
            entry = Entry(kind=kind, trap=trap, names=people[row["subject"]], **row)
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


def contains_value(text: str, value: str) -> bool:
    """Say whether a text holds the words of a value, or its code.

    >>> from memlab.evaluate.gold_facts import contains_value
    >>> contains_value("She's got a third cat", "3 cats"), contains_value("344178", "4417")
    (True, False)
    """
    if not _CODE.fullmatch(value):
        return set(base_form_stems(text)).issuperset(base_form_stems(value))
    # A code may be spaced and signed otherwise, and does not stand within a longer one.
    signs = r"[^0-9a-z]?".join(map(re.escape, re.sub(r"[^0-9a-z]+", "", value.lower())))
    return re.search(rf"(?<![0-9a-z]){signs}(?![0-9a-z])", text.lower()) is not None


def _subject_words(fact: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Give the words of a fact's subject, then those without each owner; "I", "my", "the user" are who speaks."""
    text, speaker = normalize_characters(str(fact["subject"])), fact.get("speaker") or "user"
    named = [speaker if word.lower() in FIRST_PERSON | {"user"} else word for word in text.split()]
    starts = [0, *(n for n, word in enumerate(named, 1) if word.endswith("'s") and n < len(named))]
    return [base_form_stems(" ".join(named[start:])) for start in starts]
