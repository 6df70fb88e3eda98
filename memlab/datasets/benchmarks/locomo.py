"""LoCoMo (Maharana et al., ACL 2024): ten long conversations between two people, with questions and
annotations.

A scope is a conversation, a session what the file calls ``session_<k>``, and ``D<k>:<n>`` is its
n-th turn. Both speakers are people and get the role ``user``. A turn's time is its session's date,
read as UTC. Adversarial questions (category 5) keep their evidence and are not marked as
abstention, because the reference protocol ranks for them too; their answer is null, since the one
that the file gives them is the trap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memlab.datasets import record_fields
from memlab.datasets.message_identity import (
    make_benchmark_question,
    make_turn_record,
    turn_id_of_record,
)
from memlab.datasets.record_fields import BadField, JsonObject, JsonValue, Record, describe_value
from memlab.datasets.record_sources import Source
from memlab.records import encode_id_part

KEYS = {"qa", "sample_id", "session_summary", "event_summary", "observation"}
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""Category number to its name; several projects swap them, these are the paper's."""
parse_date = record_fields.make_date_parser(
    "%I:%M %p on %d %B, %Y", "%I:%M %p on %d %B %Y", example="1:56 pm on 8 May, 2023"
)
CitedTurn = tuple[int, int]
"""The numbers of a session and of a turn in it, by which evidence cites the turn."""
_ID = r"D\s*:?\s*(\d{1,9})\s*[:;.]\s*"
_CITED = re.compile(
    rf"{_ID}(\d{{1,9}})(?!\d)(?:\s*(?:[-–]|to)\s*(?:{_ID})?(\d{{1,9}})(?![\d:]))?", re.IGNORECASE
)
_LONGEST = 100  # turns of a range; more is a fault of typing
_LONGEST_CITED = 10_000  # characters that cite turns
_SESSION = re.compile(r"session_(0|[1-9]\d{0,8})")


def read_locomo(source: Source) -> Iterator[Record]:
    """Read conversations: their turns, questions, summaries, observations and events."""
    seen_names: set[str] = set()
    for file, number, raw_conversation in source.stream_numbered_member_values():
        with file.record(f"conversation {number - 1}", raw_conversation):
            record = Record(raw_conversation)
            reader = ConversationReader(
                file, record.read_field("sample_id", record_fields.check_name), CATEGORIES
            )
            with file.record(reader.name, raw_conversation):
                if reader.name in seen_names:
                    raise BadField("sample_id", f"{reader.name!r} again", "an id of its own")
                talk_record = Record(record.read_field("conversation", Record))
                raw_questions = record.read_field("qa", record_fields.check_list)
                seen_names.add(reader.name)
                turns = reader.read_turns_of_sessions(
                    talk_record, _read_session_turns, "conversation"
                )
                idle_dates = [
                    key
                    for key in talk_record
                    if key.endswith("_date_time") and key[:-10] not in talk_record
                ]
                if idle_dates:
                    dates = (
                        f"{len(idle_dates)} dates of sessions that are not there "
                        f"({idle_dates[0][:-10]} … {idle_dates[-1][:-10]})"
                    )
                    reader.note("session_date_time", dates, "ignored")
                yield from (
                    *turns,
                    *reader.read_questions(raw_questions),
                    *reader.read_summaries_and_annotations(record),
                )


def parse_cited_turns(text: str) -> list[CitedTurn]:
    """Read the turns that a text cites, by session and number.

    A range within a session is all of its turns.

    >>> from memlab.datasets.benchmarks.locomo import parse_cited_turns
    >>> parse_cited_turns("D8:6; D9:17"), parse_cited_turns("D:1:2 - D1:4")
    ([(8, 6), (9, 17)], [(1, 2), (1, 3), (1, 4)])
    """
    turns: list[tuple[int, int]] = []
    for first_session, first_turn, last_session, last_turn in _CITED.findall(text):
        is_range_of_session = (
            last_turn
            and (last_session or first_session) == first_session
            and 0 <= int(last_turn) - int(first_turn) < _LONGEST
        )
        end_turns = [
            (int(first_session), int(first_turn)),
            *([(int(last_session or first_session), int(last_turn))] if last_turn else []),
        ]
        turns += (
            [
                (int(first_session), turn_number)
                for turn_number in range(int(first_turn), int(last_turn) + 1)
            ]
            if is_range_of_session
            else end_turns
        )
    return turns


def parse_dia_id_of_message(message: Record) -> CitedTurn:
    """Read the session and the number that a message is cited by."""
    dia_id = message.read_field("dia_id", record_fields.check_text)
    id_parts = re.fullmatch(r"\s*D(\d{1,9}):(\d{1,9})\s*", dia_id)
    if id_parts is None:
        raise BadField("dia_id", describe_value(dia_id), '"D<k>:<n>"')
    return int(id_parts[1]), int(id_parts[2])


class ConversationReader:
    """Reads the parts of one conversation, in LoCoMo or REALTALK.

    What is bad in it is set aside one by one.
    """

    def __init__(self, source: Source, name: str, categories: Mapping[int, str]) -> None:
        self.source = source
        self.name = name
        self.categories = categories
        self.turn_ids: dict[tuple[int, int], str] = {}  # by what evidence cites: session and number

    def note(self, where: str, found: str, action: str) -> None:
        self.source.note(f"{self.name}: {where}", found, action)

    def read_turns_of_sessions(
        self,
        conversation: Record,
        read_turns_of_session: Callable[[ConversationReader, Record, str], Iterator[Record]],
        field_label: str = "",
    ) -> list[Record]:
        """Read the turns of the sessions in order of their numbers."""
        turns: list[Record] = []
        session_keys = [_SESSION.fullmatch(key) for key in conversation]
        for session_number in sorted(int(key[1]) for key in session_keys if key):
            list_key = f"session_{session_number}"
            with self.source.record(self.name, conversation[list_key]):
                if not conversation.read_field(list_key, record_fields.check_list):
                    self.note(list_key, "a session without turns", "dropped empty session")
                else:
                    turns += read_turns_of_session(self, conversation, list_key)
        if not turns:
            raise BadField(field_label, "no turns", "session_1, session_2 … with turns")
        return turns

    def make_turn_and_keep_its_id(
        self, citation: CitedTurn, session: str, turn_number: int, text: str, **other_fields: Any
    ) -> Record:
        """Give the record of a turn that evidence cites so."""
        if citation in self.turn_ids:
            raise BadField("dia_id", f"'D{citation[0]}:{citation[1]}' again", "an id of its own")
        turn_message = make_turn_record(
            self.name, session, turn_number, "user", text, **other_fields
        )
        self.turn_ids[citation] = turn_id_of_record(turn_message)
        return turn_message

    def read_questions(self, raw_questions: list[JsonValue]) -> Iterator[Record]:
        for question_number, raw_question in enumerate(raw_questions):
            with self.source.record(f"{self.name}: qa[{question_number}]", raw_question):
                record = Record(raw_question)
                category = record.read_field("category", record_fields.check_integer)
                if category not in self.categories:
                    raise BadField(
                        "category",
                        describe_value(category),
                        f"a number from 1 to {max(self.categories)}",
                    )
                question_text = record.read_field("question", record_fields.check_name)
                answer = record.read_field("answer", record_fields.check_and_join_answer, None)
                if answer is None and category != 5:
                    self.note(f"qa[{question_number}]: answer", "nothing", "kept without an answer")
                evidence = self.resolve_evidence_and_note_repairs(
                    record.get("evidence", []), f"qa[{question_number}]"
                )
                question_type = self.categories[category]
                yield make_benchmark_question(
                    self.name,
                    question_number,
                    question_text,
                    answer=answer,
                    type=question_type,
                    evidence=evidence,
                )

    def resolve_evidence_and_note_repairs(
        self, raw_evidence: JsonValue, field_label: str
    ) -> list[str]:
        """Read turn ids, repair what is clearly meant, and drop what cites no turn, with an issue
        each.
        """
        if not isinstance(raw_evidence, (str, list)):
            raise BadField(
                "evidence", describe_value(raw_evidence), 'a list of turn ids such as "D1:3"'
            )
        turns: list[str] = []
        for entry_number, entry in enumerate(
            [raw_evidence] if isinstance(raw_evidence, str) else raw_evidence
        ):
            entry_text = record_fields.check_text(entry, f"evidence[{entry_number}]")
            entry_place = f"{field_label}: evidence[{entry_number}]"
            if len(entry_text) > _LONGEST_CITED:
                raise BadField(
                    f"evidence[{entry_number}]",
                    f"{len(entry_text):,} characters",
                    f"at most {_LONGEST_CITED:,}",
                )
            cited_turns = parse_cited_turns(entry_text)
            if not cited_turns:
                self.note(entry_place, describe_value(entry_text), "dropped evidence")
            elif entry_text != f"D{cited_turns[0][0]}:{cited_turns[0][1]}":
                self.note(entry_place, describe_value(entry_text), "repaired")
            for session_number, turn_number in cited_turns:
                if (session_number, turn_number) in self.turn_ids:
                    turns.append(self.turn_ids[session_number, turn_number])
                else:
                    self.note(
                        entry_place,
                        f"D{session_number}:{turn_number}, which is no turn of the conversation",
                        "dropped evidence",
                    )
        return list(dict.fromkeys(turns))

    def read_summaries_and_annotations(self, record: Record) -> Iterator[Record]:
        """Read what the file says of sessions: a summary each, and observations and events of
        speakers.
        """
        known_sessions = {turn.split("/")[1] for turn in self.turn_ids.values()}
        for statement_kind in ("session_summary", "observation", "event_summary"):
            with self.source.record(self.name, record.get(statement_kind)):
                statements_of_kind = record.read_field(statement_kind, Record, Record({}))
                for list_key in statements_of_kind:
                    session_key = _SESSION.search(list_key)
                    if not session_key or session_key[0] not in known_sessions:
                        self.note(
                            f"{statement_kind}.{list_key}", "statements about no session", "ignored"
                        )
                        continue
                    with self.source.record(self.name, statements_of_kind[list_key]):
                        statement_fields = {"scope": self.name, "session": session_key[0]}
                        if statement_kind != "session_summary":
                            kind = "event" if statement_kind == "event_summary" else statement_kind
                            yield from self._read_annotations_of_session(
                                statement_fields | {"kind": kind},
                                Record(
                                    statements_of_kind[list_key], f"{statement_kind}.{list_key}"
                                ),
                            )
                        elif record_fields.check_text(
                            statements_of_kind[list_key], f"{statement_kind}.{list_key}"
                        ).strip():
                            yield Record(
                                statement_fields | {"summary": statements_of_kind[list_key]}
                            )

    def _read_annotations_of_session(
        self, statement_fields: JsonObject, statements: Record
    ) -> Iterator[Record]:
        """Read the statements about a session.

        The number of one is its place in its session, never renumbered.
        """
        kind = statement_fields["kind"]
        annotation_number = 0
        for speaker in (key for key in statements if key != "date"):
            speaker_place = f"{statements.where}.{speaker}"
            with self.source.record(self.name, statements[speaker]):
                record_fields.check_name(speaker, f"{statements.where}: speaker")
                for entry_number, raw_entry in enumerate(
                    statements.read_field(speaker, record_fields.check_list)
                ):
                    with self.source.record(
                        f"{self.name}: {speaker_place}[{entry_number}]", raw_entry
                    ):
                        if kind != "event" and (
                            not isinstance(raw_entry, list) or len(raw_entry) != 2
                        ):
                            raise BadField(
                                "", describe_value(raw_entry), "a list of a text and its evidence"
                            )
                        statement_text, evidence = (raw_entry, []) if kind == "event" else raw_entry
                        turns = self.resolve_evidence_and_note_repairs(
                            evidence, f"{speaker_place}[{entry_number}]"
                        )
                        if record_fields.check_text(statement_text, "text").strip():
                            session_id = (
                                f"{encode_id_part(self.name)}/{statement_fields['session']}"
                            )
                            annotation_id = f"{session_id}/{kind}{annotation_number}"
                            annotation_fields = {
                                "annotation": statement_text,
                                "annotation_id": annotation_id,
                                "speaker": speaker,
                            }
                            yield Record(statement_fields | annotation_fields | {"evidence": turns})
                        else:
                            self.note(
                                f"{speaker_place}[{entry_number}]", "an empty text", "ignored"
                            )
                    annotation_number += 1


def _read_session_turns(
    reader: ConversationReader, conversation: Record, session_key: str
) -> Iterator[Record]:
    """Read the turns of a session, whose date is the time of each."""
    session_time = None
    if f"{session_key}_date_time" not in conversation:
        reader.note(f"{session_key}_date_time", "no date", "kept without a time")
    else:
        with reader.source.record(reader.name, conversation[f"{session_key}_date_time"]):
            session_time = conversation.read_field(f"{session_key}_date_time", parse_date)
    for place, raw_message in enumerate(conversation[session_key]):
        with reader.source.record(f"{reader.name}: {session_key}[{place}]", raw_message):
            message_record = Record(raw_message)
            session_number, turn_number = parse_dia_id_of_message(message_record)
            if f"session_{session_number}" != session_key or turn_number < 1:
                raise BadField(
                    "dia_id",
                    describe_value(message_record["dia_id"]),
                    f'"{session_key.replace("session_", "D")}:<n>"',
                )
            speaker = message_record.read_field("speaker", record_fields.check_name)
            text = message_record.read_field("text", record_fields.check_text)
            caption = message_record.read_field("blip_caption", record_fields.check_text, None)
            yield reader.make_turn_and_keep_its_id(
                (session_number, turn_number),
                session_key,
                turn_number,
                text,
                sender=speaker,
                caption=caption,
                timestamp=session_time,
            )
