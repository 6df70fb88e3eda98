"""Sessions of which several records hold a part: what a record repeats of those before it."""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

from memlab.datasets.importers.export_messages import MessageFields
from memlab.datasets.importers.logged_model_calls import (
    SessionAndRepeats,
    count_overlapping_messages,
    hash_message_prefixes,
)
from memlab.datasets.importers.loose_json import JsonValue


class RepeatedMessages(NamedTuple):
    """How many of the first messages of a record are repeated, and how many of them count."""

    n_repeated: int
    n_counted: int


class NamedSession:
    """What is known so far of a session that several records name.

    :param said: its messages.
    :param records: digests of its records and of their beginnings, of those that have a time or an
        id.
    """

    def __init__(self) -> None:
        self.said = list[MessageFields]()
        self.records = set[int]()

    def add_record_and_count_repeated(
        self, messages: list[MessageFields], id_or_time: JsonValue
    ) -> RepeatedMessages:
        """Take up a record.

        A record is repeated if an earlier one with its time or id begins with it. It repeats what
        the session ends with if it goes on beyond that, as calls that bring their history do, or if
        its messages have the times or ids of those. Of others that say the same both are kept: a
        quiz asks twice. The history from the first message on is read once and does not count.

        :param id_or_time: the id of the record or, without one, its time; ``None`` without both.
        """
        repeated = self._remember_record_and_count_repeated(messages, id_or_time)
        is_history = repeated == len(self.said) < len(messages)
        self.said.extend(map(dict, messages[repeated:]))
        if is_history:
            return RepeatedMessages(repeated, 0)
        return RepeatedMessages(repeated, repeated)

    def _remember_record_and_count_repeated(
        self, messages: list[MessageFields], id_or_time: JsonValue
    ) -> int:
        if id_or_time is not None:
            record_hashes = [
                hash((id_or_time, digest)) for digest in hash_message_prefixes(messages)
            ]
            if record_hashes[-1] in self.records:
                return len(messages)
            self.records.update(record_hashes)
        overlap = count_overlapping_messages(self.said, messages)
        if not overlap:
            return 0
        compared_marks = set(map(_compare_ids_or_times, self.said[-overlap:], messages[:overlap]))
        if "same" in compared_marks:
            return overlap
        # Without the ids or times of what was said a record repeats it only on its way to more.
        if "other" in compared_marks or overlap == len(messages):
            return 0
        return overlap


def _compare_ids_or_times(
    old_message: MessageFields, new_message: MessageFields
) -> Literal["same", "other", ""]:
    """Say whether the ids, else the times, of two messages are the ``same`` or ``other``.

    :returns: nothing for messages without them.
    """
    for mark_key in ("id", "timestamp"):
        old_mark = old_message.get(mark_key)
        new_mark = new_message.get(mark_key)
        if not old_mark or not new_mark:
            continue
        if str(old_mark) == str(new_mark):
            return "same"
        return "other"
    return ""


class SessionsByOwnId:
    """Conversations that only name themselves, by ids that may begin anew in each file."""

    def __init__(self) -> None:
        self.copies = Counter[tuple[str, str]]()
        self.names: dict[tuple[str, str], str] = {}
        self.known: dict[tuple[str, str, int], list[str]] = {}

    def begin_session_with_unique_name(
        self, scope: str, own_id: str, messages: list[MessageFields]
    ) -> str:
        """Give a session of its own to a conversation of a name."""
        session = own_id
        while (scope, session) in self.names:
            self.copies[scope, own_id] += 1
            session = f"{own_id} ({self.copies[scope, own_id] + 1})"
        self.names[scope, session] = own_id
        self._remember_messages(scope, session, messages)
        return session

    def find_continued_or_begin_session(
        self, scope: str, own_id: str, messages: list[MessageFields]
    ) -> SessionAndRepeats:
        """Give the session of a conversation, and how many of its first messages are repeated.

        One that begins with all that another of this name said, and goes on, is the same; any other
        is one of its own.
        """
        digests = hash_message_prefixes(messages)
        for n_known in reversed(range(len(messages))):
            known_sessions = self.known.get((scope, own_id, digests[n_known]))
            if known_sessions:
                session = known_sessions.pop(0)
                self._remember_messages(scope, session, messages)
                return SessionAndRepeats(session, n_known)
        return SessionAndRepeats(self.begin_session_with_unique_name(scope, own_id, messages), 0)

    def was_begun_with_own_id(self, scope: str, session: str, own_id: str) -> bool:
        """Say whether a session is one of a conversation of a name."""
        return self.names.get((scope, session)) == own_id

    def _remember_messages(self, scope: str, session: str, messages: list[MessageFields]) -> None:
        history_key = scope, self.names[scope, session], hash_message_prefixes(messages)[-1]
        self.known.setdefault(history_key, []).append(session)
