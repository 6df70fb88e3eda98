"""LoCoMo (Maharana et al., ACL 2024): ten long conversations between two people, with questions and annotations.

A scope is a conversation, a session what the file calls ``session_<k>``, and ``D<k>:<n>`` is its n-th turn. Both
speakers are people and get the role ``user``. A turn's time is its session's date, read as UTC. Adversarial questions
(category 5) keep their evidence and are not marked as abstention, because the reference protocol ranks for them too;
their answer is null, since the one that the file gives them is the trap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from memlab.datasets._fields import Bad, Record, as_name, as_text, date_check, micros, sessions_of_turns, show
from memlab.datasets._json import objects
from memlab.datasets._read import Rows, Source
from memlab.records import Annotation, Question, id_part

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""Category number to its name; several projects swap them, these are the paper's."""

parse_date = date_check(
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})\s*(?P<half>[ap])m\s+on\s+(?P<day>\d{1,2})\s+(?P<month>[a-z]+),?\s+(?P<year>\d{4})",
    "1:56 pm on 8 May, 2023",
)
_ID = r"D\s*:?\s*(\d{1,9})\s*[:;.]\s*"
_CITED = re.compile(rf"{_ID}(\d{{1,9}})(?!\d)(?:\s*(?:[-–]|to)\s*(?:{_ID})?(\d{{1,9}})(?![\d:]))?", re.IGNORECASE)
_LONGEST = 100  # turns of a range; more is a fault of typing
_LONGEST_CITED = 10_000  # characters that cite turns
_SESSION = re.compile(r"session_(0|[1-9]\d{0,8})")


def read(source: Source) -> Iterator[Rows]:
    """Stream a LoCoMo file: the rows of each conversation."""
    seen: set[str] = set()
    for index, raw in objects(source):
        with source.record(f"conversation {index}", raw) as reading:
            record = Record(raw)
            name = reading.label = record.name("sample_id")
            if name in seen:
                raise Bad("sample_id", f"{name!r} again", "an id of its own")
            conversation, questions = Record(record.object("conversation")), record.listed("qa")
            seen.add(name)
            reader = Conversation(source, name, id_part(name), Rows())
            reader.turns(conversation)
            if not reader.rows.turns:
                raise Bad("conversation", "no turns", "session_1, session_2 … with turns")
            reader.questions(questions)
            for part, read_part in (
                ("session_summary", reader.summary),
                ("observation", reader.annotations),
                ("event_summary", reader.annotations),
            ):
                with source.record(name, record.get(part)):
                    for key in Record(record.get(part, {}), part):
                        read_part(part, key, record[part][key])
            yield reader.rows


def cited(text: str) -> list[tuple[int, int]]:
    """Read the turns that a text cites, by session and number; a range within a session is all of its turns.

    >>> from memlab.datasets.locomo import cited
    >>> cited("D8:6; D9:17"), cited("D:1:2 - D1:4")
    ([(8, 6), (9, 17)], [(1, 2), (1, 3), (1, 4)])
    """
    turns: list[tuple[int, int]] = []
    for first, n, last, end in _CITED.findall(text):
        whole = end and (last or first) == first and 0 <= int(end) - int(n) < _LONGEST
        ends = [(int(first), int(n)), *([(int(last or first), int(end))] if end else [])]
        turns += [(int(first), k) for k in range(int(n), int(end) + 1)] if whole else ends
    return turns


@dataclass
class Conversation:
    """Reads the parts of one conversation into rows; what is bad in it is set aside piece by piece.

    :param turn_ids: the turn of each session and number that evidence may cite.
    """

    source: Source
    name: str
    scope: str
    rows: Rows
    categories: Mapping[int, str] = field(default_factory=lambda: CATEGORIES)
    turn_ids: dict[tuple[int, int], str] = field(default_factory=dict)

    def note(self, where: str, found: str, action: str) -> None:
        self.source.note(f"{self.name}: {where}", found, action)

    def turns(self, conversation: Record) -> None:
        for k in sorted(int(m[1]) for key in conversation if (m := _SESSION.fullmatch(key))):
            key = f"session_{k}"
            with self.source.record(self.name, conversation[key]):
                turns = conversation.listed(key)
                if not turns:
                    self.note(key, "a session without turns", "dropped empty session")
                    continue
                time, seen = self._time(conversation, f"{key}_date_time"), set[int]()
                for place, raw in enumerate(turns):
                    with self.source.record(f"{self.name}: {key}[{place}]", raw):
                        self._turn(Record(raw), k, time, seen)
        dated = [key.removesuffix("_date_time") for key in conversation if key.endswith("_date_time")]
        if idle := [key for key in dated if key not in conversation]:
            dates = f"{len(idle)} dates of sessions that are not there ({idle[0]} … {idle[-1]})"
            self.note("session_date_time", dates, "ignored")
        self.sessions = {session for _, session, *_ in self.rows.turns}

    def _time(self, conversation: dict[str, Any], field: str) -> int | None:
        if field not in conversation:
            self.note(field, "no date", "kept without a time")
            return None
        with self.source.record(self.name, conversation[field]):
            return micros(parse_date(conversation[field], field))
        return None

    def _turn(self, turn: Record, k: int, time: int | None, seen: set[int]) -> None:
        dia_id = turn.text("dia_id")
        match = re.fullmatch(r"D(\d{1,9}):(\d{1,9})", dia_id.strip())
        if match is None or int(match[1]) != k or int(match[2]) < 1:
            raise Bad("dia_id", show(dia_id), f'"D{k}:<n>"')
        n = int(match[2])
        if n in seen:
            raise Bad("dia_id", f"{dia_id!r} again", "an id of its own")
        speaker, text = turn.name("speaker"), turn.text("text")
        caption = turn.text("blip_caption", None)
        seen.add(n)
        self.turn_ids[k, n] = f"{self.scope}/session_{k}/{n}"
        self.rows.turns.append((self.scope, f"{self.scope}/session_{k}", n, speaker, "user", text, caption, time))

    def questions(self, questions: list[Any]) -> None:
        for i, raw in enumerate(questions):
            field = f"qa[{i}]"
            with self.source.record(f"{self.name}: {field}", raw):
                record = Record(raw)
                category = record.read("category", self.category)
                text, answer = record.name("question"), record.answer("answer", None)
                if answer is None and category != 5:
                    self.note(f"{field}: answer", "nothing", "kept without an answer")
                evidence = self._evidence(record.get("evidence", []), field)
                sessions = sessions_of_turns(evidence)
                asked = (f"{self.scope}/q{i}", self.scope, text, answer, self.categories[category], None)
                self.rows.questions.append(Question(*asked, evidence, sessions))

    def category(self, value: Any, where: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value not in self.categories:
            raise Bad(where, show(value), f"a number from {min(self.categories)} to {max(self.categories)}")
        return value

    def _evidence(self, raw: Any, field: str) -> list[str]:
        """Read turn ids, repair what is clearly meant, and drop what cites no turn, with an issue each."""
        if not isinstance(raw, (str, list)):
            raise Bad("evidence", show(raw), 'a list of turn ids such as "D1:3"')
        turns: list[str] = []
        for i, entry in enumerate([raw] if isinstance(raw, str) else raw):
            text, where = as_text(entry, f"evidence[{i}]"), f"{field}: evidence[{i}]"
            if len(text) > _LONGEST_CITED:
                raise Bad(f"evidence[{i}]", f"{len(text):,} characters", f"at most {_LONGEST_CITED:,}")
            numbers = cited(text)
            if not numbers:
                self.note(where, show(text), "dropped evidence")
            elif text != f"D{numbers[0][0]}:{numbers[0][1]}":
                self.note(where, show(text), "repaired")
            for k, n in numbers:
                if (k, n) in self.turn_ids:
                    turns.append(self.turn_ids[k, n])
                else:
                    self.note(where, f"D{k}:{n}, which is no turn of the conversation", "dropped evidence")
        return list(dict.fromkeys(turns))

    def summary(self, part: str, key: str, raw: Any) -> None:
        with self.source.record(self.name, raw):
            text, session_id = as_text(raw, f"{part}.{key}"), f"{self.scope}/{key.removesuffix('_summary')}"
            if session_id not in self.sessions:
                self.note(f"{part}.{key}", "a summary of no session", "ignored")
            elif text.strip():
                self.rows.summaries[session_id] = text

    def annotations(self, part: str, key: str, raw: Any) -> None:
        """Read what is said of a session; an annotation's number is its place in its session, never renumbered."""
        match, number = _SESSION.search(key), 0
        session_id = f"{self.scope}/{match[0]}" if match else ""
        if session_id not in self.sessions:
            self.note(f"{part}.{key}", "statements about no session", "ignored")
            return
        kind = "event" if part == "event_summary" else part
        with self.source.record(self.name, raw):
            said = Record(raw, f"{part}.{key}")
            for speaker in said:
                if speaker == "date":  # the session's own
                    continue
                field = f"{part}.{key}.{speaker}"
                with self.source.record(self.name, said[speaker]):
                    as_name(speaker, f"{part}.{key}: speaker")
                    for i, statement in enumerate(said.listed(speaker)):
                        with self.source.record(f"{self.name}: {field}[{i}]", statement):
                            text, cited = _statement(statement, kind)
                            evidence = self._evidence(cited, f"{field}[{i}]")
                            if text.strip():
                                row = (f"{session_id}/{kind}{number}", self.scope, session_id, kind, speaker, text)
                                self.rows.annotations.append(Annotation(*row, evidence))
                            else:
                                self.note(f"{field}[{i}]", "an empty text", "ignored")
                        number += 1


def _statement(raw: Any, kind: str) -> tuple[str, Any]:
    """Give text and evidence: an event is a text alone, an observation a pair."""
    if kind == "event":
        return as_text(raw, ""), []
    if not isinstance(raw, list) or len(raw) != 2:
        raise Bad("", show(raw), "a list of a text and its evidence")
    return as_text(raw[0], "text"), raw[1]
