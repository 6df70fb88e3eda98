"""REALTALK (Lee et al., 2025): ten chats of two people each over three weeks, with questions; LoCoMo's layout, nearly.

What is read: ``Chat_<n>_<a>_<b>.json``, or the folder of them. A scope is a file, a session what it calls
``session_<k>``, a turn a message in its place there. Both speakers are people and get the role ``user``; a turn has its
own time, read as UTC. Evidence cites ``dia_id``, whose session numbers do not follow the sessions of the file in half
of the chats, so that it is resolved through the messages; ranges are taken as all of their messages, what is clearly
meant is repaired, and the rest is dropped, with an issue each. Event annotations are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from memlab.datasets._fields import Bad, Record, date_check, micros, show
from memlab.datasets._json import objects
from memlab.datasets._read import Rows, Source
from memlab.datasets.locomo import Conversation
from memlab.records import id_part

FILES = ("Chat_*.json",)
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "commonsense"}
"""Category number to its name in the paper."""

parse_date = date_check(
    r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4}),?\s+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}))?",
    "29.12.2023, 00:51:12",
)
_SESSION = re.compile(r"session_(0|[1-9]\d{0,8})")
_DIA = re.compile(r"\s*D(\d{1,9}):(\d{1,9})\s*")


def read(source: Source) -> Iterator[Rows]:
    """Stream REALTALK's chats: the rows of each chat."""
    for file in source.files(*FILES):
        for index, raw in objects(file):
            name = source.named(file) + (f"-{index}" if index else "")
            with file.record(name, raw):
                record = Record(raw)
                chat = _Chat(file, name, id_part(name), Rows(), CATEGORIES)
                questions = record.listed("qa")
                chat.turns(record)
                if not chat.rows.turns:
                    raise Bad("", "no turns", "session_1, session_2 … with messages")
                chat.questions(questions)
                yield chat.rows


class _Chat(Conversation):
    """A conversation whose messages have their own times, and ids that tell nothing of their session."""

    def turns(self, conversation: Record) -> None:
        for k in sorted(int(m[1]) for key in conversation if (m := _SESSION.fullmatch(key))):
            key = f"session_{k}"
            with self.source.record(self.name, conversation[key]):
                messages = conversation.listed(key)
                day = conversation.read(f"{key}_date_time", parse_date, None)
                for n, raw in enumerate(messages, 1):
                    with self.source.record(f"{self.name}: {key}[{n - 1}]", raw):
                        self._message(Record(raw), f"{self.scope}/{key}", n, day)
                if not messages:
                    self.note(key, "a session without messages", "dropped empty session")

    def _message(self, message: Record, session: str, n: int, day: datetime | None) -> None:
        dia = message.text("dia_id")
        match = _DIA.fullmatch(dia)
        if match is None:
            raise Bad("dia_id", show(dia), '"D<k>:<n>"')
        cited = int(match[1]), int(match[2])
        if cited in self.turn_ids:
            raise Bad("dia_id", f"{dia!r} again", "an id of its own")
        speaker, caption = message.name("speaker"), message.text("blip_caption", None)
        text = message.text("clean_text", None)
        if text is None and caption is None:
            self.note(f"{session.rpartition('/')[2]}[{n - 1}]: clean_text", "nothing", "kept without a text")
        said = message.read("date_time", parse_date, day)
        time = None if said is None else micros(said)
        self.turn_ids[cited] = f"{session}/{n}"
        self.rows.turns.append((self.scope, session, n, speaker, "user", text or "", caption, time))
