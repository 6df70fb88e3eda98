"""Gold annotations: what there is to know of a chat, what must not be read into it, and whether a fact agrees."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from functools import cached_property
from pathlib import Path
from typing import Any

from memlab.errors import DataError
from memlab.evaluate.polarity import POLARITIES, ending_stems, polarity
from memlab.text.lemmas import base_forms, strip_contrast
from memlab.text.tokens import normalize_text
from memlab.text.words import ARTICLES, DEMONSTRATIVES, FIRST_PERSON, POSSESSIVES

SUFFIX = ".gold.jsonl"
JOINT_LOG_FILE = "sample.jsonl"
"""The chats of a folder in one file, where annotations have no chat of their name beside them: ``data/sample``."""
_DETERMINERS = ARTICLES | POSSESSIVES | DEMONSTRATIVES
_IGNORED_WORDS = frozenset(base_forms("new old current first own real actual name now"))
_NAMING = frozenset(base_forms("have be name named call called"))
_ACCEPTED_POLARITIES = {"is": {"is"}, "not": {"not"}, "plan": {"plan", "is"}, "was": {"was", "not"}}
_CODE = re.compile(r"(?=(?:\D*\d){3})\S*\d\S*(?:\s+\S*\d\S*)*")


@dataclass(frozen=True)
class Entry:
    """An annotation; see ``data/README.md``.

    :param kind: ``fact``, ``trap`` or ``neutral``; ``trap`` says of a trap why it is one.
    :param names: what the subject is called.
    :param about: words of the relation, of which one must occur; ``value``: wordings of which one must.
    :param mode: how it was stated: ``is``, ``not``, ``plan`` or ``was``.
    :param since: the message that states it (of a trap and a neutral line: the message meant); ``until``: that ends it.
    :param same: the id of another entry that says the same of another subject: to know one is enough.
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

    @property
    def group(self) -> str:
        """The id under which it is counted."""
        return self.same or self.id

    @cached_property
    def relation(self) -> frozenset[str]:
        """Stems of the relation."""
        return frozenset(base_forms(" ".join(self.about)))

    @cached_property
    def owners(self) -> list[tuple[str, ...]]:
        """The subject's names in words, the longest first."""
        return sorted({base_forms(name) for name in self.names}, key=len, reverse=True)


@dataclass(frozen=True)
class Annotations:
    """The gold annotations of one chat.

    :param log: the chat's file; ``times``: when each of its messages was said, by id; ``texts``: what each says.
    :param dates: the ends of the days for which knowledge is measured as of.
    :param closed: only totals may be printed.
    """

    scope: str
    log: Path
    dates: tuple[datetime, ...]
    closed: bool
    times: dict[str, datetime]
    texts: dict[str, str]
    people: tuple[tuple[str, ...], ...] = field(repr=False)
    entries: tuple[Entry, ...] = field(repr=False)

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


def read_gold(folder: str | Path) -> list[Annotations]:
    """Read the gold annotations of a folder, each beside its chat or the file :data:`JOINT_LOG_FILE`, by name.

    :raises DataError: when there are none, or a line cannot be read: with file, line and reason.

    >>> from memlab.evaluate.gold import read_gold
    >>> len(read_gold("data/facts/dev"))
    9
    """
    files = sorted(Path(folder).glob(f"*{SUFFIX}"))
    if not files:
        raise DataError(f"{folder} has no gold annotations; give a folder with NAME.jsonl and NAME{SUFFIX}")
    return [_read_annotations(file) for file in files]


def _read_annotations(file: Path) -> Annotations:
    head, *rows = json_lines(file)
    log = file.with_name(file.name.removesuffix(SUFFIX) + ".jsonl")
    log = log if log.exists() else file.with_name(JOINT_LOG_FILE)
    messages = [row for row in json_lines(log) if "text" in row and row.get("scope", head["scope"]) == head["scope"]]
    times = {row["id"]: datetime.fromisoformat(row["timestamp"]) for row in messages}
    people = {one["name"]: (one["name"], *one["names"]) for one in head["people"]}
    entries = []
    for n, row in enumerate(rows, 2):
        try:
            entry = _make_entry(row, people)
            if entry.mode not in POLARITIES or not {entry.since, entry.until or entry.since} <= times.keys():
                raise ValueError(f"mode {entry.mode!r}, or a message of it that the chat does not have")
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{file}, line {n}: {error!r}; see data/README.md for what a line holds") from None
        entries.append(entry)
    dates = tuple(datetime.combine(datetime.fromisoformat(day), time.max, UTC) for day in head["dates"])
    texts, closed = {row["id"]: row["text"] for row in messages}, head.get("closed", False)
    return Annotations(head["scope"], log, dates, closed, times, texts, tuple(people.values()), tuple(entries))


def _make_entry(row: Mapping[str, Any], people: Mapping[str, tuple[str, ...]]) -> Entry:
    same = {name: row[name] for name in ("id", "subject", "mode", "until", "corrected", "same") if name in row}
    words: dict[str, Any] = {name: tuple(row.get(name, ())) for name in ("value", "about")}
    words["names"] = people[row["subject"]]
    return Entry(kind=row["is"], trap=row.get("kind"), since=row.get("since") or row["message"], **words, **same)


def json_lines(file: str | Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines.

    :raises DataError: when it cannot be read, or a line is no JSON.
    """
    rows: list[dict[str, Any]] = []
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
        rows.extend(json.loads(line.strip() or "null") for line in lines)
    except (OSError, ValueError) as error:
        raise DataError(f"{file}, line {len(rows) + 1}: {error}") from error
    return [row for row in rows if row]


def same_words(fact: Mapping[str, Any], entry: Entry) -> bool:
    """Say whether a fact speaks of an entry's subject, relation and value, whatever its polarity.

    The fact's subject, or what in it belongs to somebody ("Nora's flat's code"), must begin with a name of the entry's
    subject, and what else it holds belong to the relation ("Nora's boss"); or hold nothing but the relation ("gym
    code"); or hold the value, and the object the name ("Ingrid | is boss of | Nora"). A word of the relation must
    occur, and all words of one wording of the value, in predicate and object, without what a value is contrasted with.
    Words are compared by base form and stem, numbers by their value, codes and telephone numbers without their signs.

    :param fact: ``subject``, ``predicate``, ``object`` and ``speaker``.
    """
    subjects, tail = _subject_words(fact), f"{fact['predicate']} {strip_contrast(fact['object'])}"
    words, subject = set(base_forms(tail)), subjects[0]
    owned = ((part, name) for part in subjects for name in entry.owners if part[: len(name)] == name)
    part, owner = next(owned, (subject, None))
    rest = set(part[len(owner or ()) :])
    related = rest <= entry.relation | _IGNORED_WORDS
    if owner is not None or (subject and related):
        return related and _names_relation(words | rest, entry) and _holds_value(tail, entry)
    named = any(words.issuperset(owner) for owner in entry.owners)
    return named and _holds_value(str(fact["subject"]), entry) and _names_relation(words, entry)


def agrees(fact: Mapping[str, Any], entry: Entry) -> bool:
    """Say whether a fact says what an entry says: the same words, with the same polarity or modality.

    >>> from memlab.evaluate.gold import Entry, agrees
    >>> boss = Entry("b", "fact", "Nora", ("Nora", "Noor"), ("Henrik",), "m3", about=("boss", "report"))
    >>> row = {"subject": "Noor", "predicate": "reports to", "object": "Henrik", "speaker": "Nora"}
    >>> agrees(row, boss), agrees(row | {"predicate": "no longer reports to"}, boss)
    (True, False)
    """
    return same_words(fact, entry) and fact_polarity(fact, entry) in _ACCEPTED_POLARITIES[entry.mode]


def fact_polarity(fact: Mapping[str, Any], entry: Entry) -> str:
    """Give the polarity or modality of a fact with respect to an entry's relation."""
    return polarity(str(fact["predicate"]), str(fact["object"]), relation=entry.relation)


def occurs(text: str, value: str) -> bool:
    """Say whether a text holds the words of a value, or its code.

    >>> from memlab.evaluate.gold import occurs
    >>> occurs("She's got a third cat", "3 cats"), occurs("it is 44-17 now", "4417"), occurs("344178", "4417")
    (True, True, False)
    """
    if not _CODE.fullmatch(value):
        return set(base_forms(text)).issuperset(base_forms(value))
    # A code may be spaced and signed otherwise, and does not stand within a longer one.
    signs = r"[^0-9a-z]?".join(map(re.escape, re.sub(r"[^0-9a-z]+", "", value.lower())))
    return re.search(rf"(?<![0-9a-z]){signs}(?![0-9a-z])", text.lower()) is not None


def held_value_words(fact: Mapping[str, Any], entry: Entry) -> frozenset[str]:
    """Give the words of an entry's value that a fact holds."""
    text = f"{fact['subject']} {fact['predicate']} {strip_contrast(fact['object'])}"
    return frozenset(word for value in entry.value if occurs(text, value) for word in base_forms(value))


def mentions(fact: Mapping[str, Any], entry: Entry) -> bool:
    """Say whether a fact names an entry's subject and value at all: enough for what counts neither way."""
    whole = f"{' '.join(_subject_words(fact)[0])} {fact['predicate']} {fact['object']}"
    words = set(base_forms(whole))
    return any(words.issuperset(owner) for owner in entry.owners) and _holds_value(whole, entry)


def names_somebody(fact: Mapping[str, Any], gold: Annotations) -> bool:
    """Say whether a fact only says what somebody of the chat is called: "has a sister named Kavita"."""
    words = set(base_forms(f"{fact['predicate']} {fact['object']}")) - _NAMING
    for names in gold.people:
        known = [set(base_forms(name)) for name in names]
        if words and words <= set().union(*known) and sum(words >= name for name in known) > 1:
            return True
    return False


def _subject_words(fact: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Give the words of a fact's subject, then those without each owner; "I", "my", "the user" are who speaks."""
    text, speaker = normalize_text(str(fact["subject"])), fact.get("speaker") or "user"
    words = [speaker if word.lower() in FIRST_PERSON | {"user"} else word for word in text.split()]
    words = [word for word in words if word.lower() not in _DETERMINERS]
    starts = [0, *(n for n, word in enumerate(words, 1) if word.endswith("'s") and n < len(words))]
    return [base_forms(" ".join(words[start:])) for start in starts]


def _names_relation(words: set[str], entry: Entry) -> bool:
    # Whoever quits something need not say what it was to them.
    return not entry.relation or not (entry.relation | ending_stems()).isdisjoint(words)


def _holds_value(text: str, entry: Entry) -> bool:
    return any(occurs(text, value) for value in entry.value)
