"""Gold facts: what there is to know of a chat and what must not be read into it, at which times."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any

from memlab import datasets
from memlab.datasets.record_sources import Source
from memlab.errors import DataError
from memlab.evaluate.gold_entries import AGREEING, NAMING, GoldEntry
from memlab.knowledge.known_facts import FactRow
from memlab.records import Dataset, encode_id_part
from memlab.text.verb_lemmas import base_form_stems

SUFFIX = ".gold.jsonl"
JOINT_LOG_FILE = "sample.jsonl"
"""The chats of a folder in one file, where annotations have no chat of their name beside them."""


@dataclass(frozen=True)
class ChatAnnotations:
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
    entries: list[GoldEntry] = field(repr=False)
    closed: bool

    def entries_of_kind(self, entry_kind: str) -> list[GoldEntry]:
        """Give the entries of one kind."""
        return [entry for entry in self.entries if entry.kind == entry_kind]

    def was_entry_stated_until(self, entry: GoldEntry, as_of: datetime | None = None) -> bool:
        """Whether it had been stated by a time (``None``: the end)."""
        return self._was_turn_said_until(entry.since, as_of)

    def is_active_at(self, entry: GoldEntry, as_of: datetime | None = None) -> bool:
        """Whether a fact was active at a time, by all stated until then (``None``: the end)."""
        if not self.was_entry_stated_until(entry, as_of):
            return False
        if entry.until is None:
            return True
        return not self._was_turn_said_until(entry.until, as_of)

    def fact_only_names_person(self, fact: FactRow) -> bool:
        """Say whether a fact only says what somebody of the chat is called.

        For example "has a sister named Kavita".
        """
        stated_stems = set(base_form_stems(f"{fact['slot']} {fact['value']}")) - NAMING
        if not stated_stems:
            return False
        return any(_are_two_names_of_one_person(stated_stems, names) for names in self.people)

    def _was_turn_said_until(self, turn_id: str, as_of: datetime | None) -> bool:
        """Whether a turn was said by a time (``None``: the end)."""
        return as_of is None or self.times[turn_id] <= as_of


def read_gold_annotations(folder: str | Path) -> list[ChatAnnotations]:
    """Read the gold annotations of a folder, by name.

    Each file lies beside its chat, or beside the file :data:`JOINT_LOG_FILE` that has several.

    :raises DataError: when there are none, or a line cannot be read: with file, line and reason.

    >>> from memlab.evaluate.gold_facts import read_gold_annotations
    >>> len(read_gold_annotations("data/facts/dev"))
    9
    """
    gold_files = sorted(Path(folder).glob(f"*{SUFFIX}"))
    if not gold_files:
        raise DataError(
            f"{folder} has no gold annotations; give a folder with NAME.jsonl and NAME{SUFFIX}"
        )
    chats_by_log: dict[Path, Dataset] = {}
    annotations = []
    for gold_file in gold_files:
        log_file = _own_or_joint_chat_log_beside(gold_file)
        if log_file not in chats_by_log:
            chats_by_log[log_file] = datasets.load(log_file)
        annotations.append(_read_chat_annotations(gold_file, chats_by_log[log_file]))
    return annotations


def turn_id_of_message(scope: str, message_id: str) -> str:
    """Give the id of the turn that a chat log calls so."""
    return f"{scope}/{encode_id_part(message_id)}"


def read_json_lines(json_lines_path: str | Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines.

    :raises DataError: when it cannot be read, or a line is no JSON: with file and line.
    """
    return [row for _, row in Source(Path(json_lines_path)).stream_numbered_json_lines()]


def _own_or_joint_chat_log_beside(gold_file: Path) -> Path:
    """Give the chat log beside a file of annotations."""
    chat_name = gold_file.name.removesuffix(SUFFIX)
    own_log = gold_file.with_name(f"{chat_name}.jsonl")
    if own_log.exists():
        return own_log
    return gold_file.with_name(JOINT_LOG_FILE)


def _read_chat_annotations(gold_file: Path, chats: Dataset) -> ChatAnnotations:
    """Read a file of annotations: its first line is of the chat, each other one an entry."""
    header, *entry_rows = read_json_lines(gold_file)
    chat_turns = chats.turns.filter(chats.turns["scope"] == header["scope"])
    turn_times = dict(chat_turns.select("turn_id", "timestamp").iter_rows())
    names_by_person = {
        person["name"]: (person["name"], *person["names"]) for person in header["people"]
    }
    entries = []
    for line_number, row in enumerate(entry_rows, 2):
        try:
            entry = _gold_entry_from_json(row, header["scope"], names_by_person)
            _check_entry_mode_and_turns(entry, turn_times)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{gold_file}, line {line_number}: {error!r}; see data/README.md for what a line "
                "holds"
            ) from None
        entries.append(entry)
    return ChatAnnotations(
        header["scope"],
        chats,
        turn_times,
        dates=[_end_of_utc_day(day) for day in header["dates"]],
        people=list(names_by_person.values()),
        entries=entries,
        closed=header.get("closed", False),
    )


def _gold_entry_from_json(
    entry_row: Mapping[str, Any], scope: str, names_by_person: Mapping[str, tuple[str, ...]]
) -> GoldEntry:
    """Make an entry of a line.

    :param names_by_person: the names of each subject of the chat.
    """
    columns = dict(entry_row)
    kind = columns.pop("is")
    trap_kind = columns.pop("kind", None)
    if "message" in columns:
        columns["since"] = columns.pop("message")
    columns["since"] = turn_id_of_message(scope, columns["since"])
    if "until" in columns:
        columns["until"] = turn_id_of_message(scope, columns["until"])
    columns["value"] = tuple(columns["value"])
    columns["about"] = tuple(columns.get("about", ()))
    subject_names = names_by_person[columns["subject"]]
    other_names: list[str] = []
    for person_names in names_by_person.values():
        other_names += [name for name in person_names if name not in subject_names]
    return GoldEntry(
        kind=kind, trap=trap_kind, names=subject_names, others=tuple(other_names), **columns
    )


def _check_entry_mode_and_turns(entry: GoldEntry, chat_turn_ids: Collection[str]) -> None:
    """Check the mode of an entry, and that its messages are in the chat.

    :raises ValueError: where they are not.
    """
    if entry.mode not in AGREEING:
        raise ValueError(f"mode {entry.mode!r}; give one of {', '.join(AGREEING)}")
    for turn_id in (entry.since, entry.until):
        if turn_id is not None and turn_id not in chat_turn_ids:
            raise ValueError(f"{turn_id!r} is no message of the chat")


def _end_of_utc_day(iso_date: str) -> datetime:
    """Give the last moment of a date."""
    return datetime.combine(datetime.fromisoformat(iso_date), time.max, UTC)


def _are_two_names_of_one_person(stated_stems: set[str], person_names: tuple[str, ...]) -> bool:
    """Whether words are two names of one person, or more, and nothing else."""
    name_stem_sets = [set(base_form_stems(name)) for name in person_names]
    if not stated_stems <= set().union(*name_stem_sets):
        return False
    contained_names = [name for name in name_stem_sets if name <= stated_stems]
    return len(contained_names) > 1
