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

from memlab.datasets import fields
from memlab.datasets.fields import BadField, Record, describe_value
from memlab.datasets.message_identity import question_record, turn_id, turn_record
from memlab.datasets.source import Source
from memlab.records import encode_id_part

KEYS = {"qa", "sample_id", "session_summary", "event_summary", "observation"}
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""Category number to its name; several projects swap them, these are the paper's."""
parse_date = fields.make_date_parser(
    "%I:%M %p on %d %B, %Y", "%I:%M %p on %d %B %Y", example="1:56 pm on 8 May, 2023"
)
_ID = r"D\s*:?\s*(\d{1,9})\s*[:;.]\s*"
_CITED = re.compile(
    rf"{_ID}(\d{{1,9}})(?!\d)(?:\s*(?:[-–]|to)\s*(?:{_ID})?(\d{{1,9}})(?![\d:]))?", re.IGNORECASE
)
_LONGEST = 100  # turns of a range; more is a fault of typing
_LONGEST_CITED = 10_000  # characters that cite turns
_SESSION = re.compile(r"session_(0|[1-9]\d{0,8})")


def read_locomo(source: Source) -> Iterator[Record]:
    """Read conversations: their turns, questions, summaries, observations and events."""
    seen: set[str] = set()
    for file, number, raw in source.member_values():
        with file.record(f"conversation {number - 1}", raw):
            record = Record(raw)
            chat = ConversationReader(file, record.take("sample_id", fields.check_name), CATEGORIES)
            with file.record(chat.name, raw):
                if chat.name in seen:
                    raise BadField("sample_id", f"{chat.name!r} again", "an id of its own")
                talk, asked = (
                    Record(record.take("conversation", Record)),
                    record.take("qa", fields.check_list),
                )
                seen.add(chat.name)
                turns = chat.sessions(talk, _read_turns, "conversation")
                if idle := [
                    key for key in talk if key.endswith("_date_time") and key[:-10] not in talk
                ]:
                    dates = (
                        f"{len(idle)} dates of sessions that are not there "
                        f"({idle[0][:-10]} … {idle[-1][:-10]})"
                    )
                    chat.note("session_date_time", dates, "ignored")
                yield from (*turns, *chat.questions(asked), *chat.statements(record))


def parse_citations(text: str) -> list[tuple[int, int]]:
    """Read the turns that a text cites, by session and number.

    A range within a session is all of its turns.

    >>> from memlab.datasets.benchmarks.locomo import parse_citations
    >>> parse_citations("D8:6; D9:17"), parse_citations("D:1:2 - D1:4")
    ([(8, 6), (9, 17)], [(1, 2), (1, 3), (1, 4)])
    """
    turns: list[tuple[int, int]] = []
    for first, n, last, end in _CITED.findall(text):
        whole = end and (last or first) == first and 0 <= int(end) - int(n) < _LONGEST
        ends = [(int(first), int(n)), *([(int(last or first), int(end))] if end else [])]
        turns += [(int(first), k) for k in range(int(n), int(end) + 1)] if whole else ends
    return turns


def read_dia_id(message: Record) -> tuple[int, int]:
    """Read the session and the number that a message is cited by."""
    written = message.take("dia_id", fields.check_text)
    if (found := re.fullmatch(r"\s*D(\d{1,9}):(\d{1,9})\s*", written)) is None:
        raise BadField("dia_id", describe_value(written), '"D<k>:<n>"')
    return int(found[1]), int(found[2])


class ConversationReader:
    """Reads the parts of one conversation, in LoCoMo or REALTALK.

    What is bad in it is set aside one by one.
    """

    def __init__(self, source: Source, name: str, categories: Mapping[int, str]) -> None:
        self.source, self.name, self.categories = source, name, categories
        self.turn_ids: dict[tuple[int, int], str] = {}  # by what evidence cites: session and number

    def note(self, where: str, found: str, action: str) -> None:
        self.source.note(f"{self.name}: {where}", found, action)

    def sessions(
        self,
        talk: Record,
        read: Callable[[ConversationReader, Record, str], Iterator[Record]],
        where: str = "",
    ) -> list[Record]:
        """Read the turns of the sessions in order of their numbers."""
        turns: list[Record] = []
        for k in sorted(int(found[1]) for key in talk if (found := _SESSION.fullmatch(key))):
            key = f"session_{k}"
            with self.source.record(self.name, talk[key]):
                if not talk.take(key, fields.check_list):
                    self.note(key, "a session without turns", "dropped empty session")
                else:
                    turns += read(self, talk, key)
        if not turns:
            raise BadField(where, "no turns", "session_1, session_2 … with turns")
        return turns

    def turn(self, cited: tuple[int, int], session: str, n: int, text: str, **said: Any) -> Record:
        """Give the record of a turn that evidence cites so."""
        if cited in self.turn_ids:
            raise BadField("dia_id", f"'D{cited[0]}:{cited[1]}' again", "an id of its own")
        given = turn_record(self.name, session, n, "user", text, **said)
        self.turn_ids[cited] = turn_id(given)
        return given

    def questions(self, asked: list[Any]) -> Iterator[Record]:
        for i, raw in enumerate(asked):
            with self.source.record(f"{self.name}: qa[{i}]", raw):
                record = Record(raw)
                category = record.take("category", fields.check_integer)
                if category not in self.categories:
                    raise BadField(
                        "category",
                        describe_value(category),
                        f"a number from 1 to {max(self.categories)}",
                    )
                text = record.take("question", fields.check_name)
                answer = record.take("answer", fields.check_answer, None)
                if answer is None and category != 5:
                    self.note(f"qa[{i}]: answer", "nothing", "kept without an answer")
                evidence = self.evidence(record.get("evidence", []), f"qa[{i}]")
                kind = self.categories[category]
                yield question_record(
                    self.name, i, text, answer=answer, type=kind, evidence=evidence
                )

    def evidence(self, raw: Any, where: str) -> list[str]:
        """Read turn ids, repair what is clearly meant, and drop what cites no turn, with an issue
        each.
        """
        if not isinstance(raw, (str, list)):
            raise BadField("evidence", describe_value(raw), 'a list of turn ids such as "D1:3"')
        turns: list[str] = []
        for i, entry in enumerate([raw] if isinstance(raw, str) else raw):
            text, at = fields.check_text(entry, f"evidence[{i}]"), f"{where}: evidence[{i}]"
            if len(text) > _LONGEST_CITED:
                raise BadField(
                    f"evidence[{i}]", f"{len(text):,} characters", f"at most {_LONGEST_CITED:,}"
                )
            numbers = parse_citations(text)
            if not numbers:
                self.note(at, describe_value(text), "dropped evidence")
            elif text != f"D{numbers[0][0]}:{numbers[0][1]}":
                self.note(at, describe_value(text), "repaired")
            for k, n in numbers:
                if (k, n) in self.turn_ids:
                    turns.append(self.turn_ids[k, n])
                else:
                    self.note(
                        at, f"D{k}:{n}, which is no turn of the conversation", "dropped evidence"
                    )
        return list(dict.fromkeys(turns))

    def statements(self, record: Record) -> Iterator[Record]:
        """Read what the file says of sessions: a summary each, and observations and events of
        speakers.
        """
        there = {turn.split("/")[1] for turn in self.turn_ids.values()}
        for part in ("session_summary", "observation", "event_summary"):
            with self.source.record(self.name, record.get(part)):
                said = record.take(part, Record, Record({}))
                for key in said:
                    found = _SESSION.search(key)
                    if not found or found[0] not in there:
                        self.note(f"{part}.{key}", "statements about no session", "ignored")
                        continue
                    with self.source.record(self.name, said[key]):
                        about = {"scope": self.name, "session": found[0]}
                        if part != "session_summary":
                            kind = "event" if part == "event_summary" else part
                            yield from self._annotations(
                                about | {"kind": kind}, Record(said[key], f"{part}.{key}")
                            )
                        elif fields.check_text(said[key], f"{part}.{key}").strip():
                            yield Record(about | {"summary": said[key]})

    def _annotations(self, about: dict[str, Any], said: Record) -> Iterator[Record]:
        """Read the statements about a session.

        The number of one is its place in its session, never renumbered.
        """
        kind, n = about["kind"], 0
        for speaker in (key for key in said if key != "date"):
            where = f"{said.where}.{speaker}"
            with self.source.record(self.name, said[speaker]):
                fields.check_name(speaker, f"{said.where}: speaker")
                for i, raw in enumerate(said.take(speaker, fields.check_list)):
                    with self.source.record(f"{self.name}: {where}[{i}]", raw):
                        if kind != "event" and (not isinstance(raw, list) or len(raw) != 2):
                            raise BadField(
                                "", describe_value(raw), "a list of a text and its evidence"
                            )
                        text, evidence = (raw, []) if kind == "event" else raw
                        turns = self.evidence(evidence, f"{where}[{i}]")
                        if fields.check_text(text, "text").strip():
                            number = f"{encode_id_part(self.name)}/{about['session']}/{kind}{n}"
                            one = {"annotation": text, "annotation_id": number, "speaker": speaker}
                            yield Record(about | one | {"evidence": turns})
                        else:
                            self.note(f"{where}[{i}]", "an empty text", "ignored")
                    n += 1


def _read_turns(chat: ConversationReader, talk: Record, key: str) -> Iterator[Record]:
    """Read the turns of a session, whose date is the time of each."""
    time = None
    if f"{key}_date_time" not in talk:
        chat.note(f"{key}_date_time", "no date", "kept without a time")
    else:
        with chat.source.record(chat.name, talk[f"{key}_date_time"]):
            time = talk.take(f"{key}_date_time", parse_date)
    for place, raw in enumerate(talk[key]):
        with chat.source.record(f"{chat.name}: {key}[{place}]", raw):
            said = Record(raw)
            k, n = read_dia_id(said)
            if f"session_{k}" != key or n < 1:
                raise BadField(
                    "dia_id",
                    describe_value(said["dia_id"]),
                    f'"{key.replace("session_", "D")}:<n>"',
                )
            speaker, text = (
                said.take("speaker", fields.check_name),
                said.take("text", fields.check_text),
            )
            caption = said.take("blip_caption", fields.check_text, None)
            yield chat.turn((k, n), key, n, text, sender=speaker, caption=caption, timestamp=time)
