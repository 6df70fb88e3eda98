"""Sessions of which several records hold a part: what a record repeats of those before it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from memlab.datasets.importers.export_messages import Message
from memlab.datasets.importers.logged_model_calls import count_overlap, digest_beginnings


class NamedSession:
    """What is known so far of a session that several records name.

    :param said: its messages.
    :param records: digests of its records and of their beginnings, of those that have a time or an
        id.
    """

    def __init__(self) -> None:
        self.said = list[Message]()
        self.records = set[int]()

    def add(self, turns: list[Message], mark: Any) -> tuple[int, int]:
        """Take up a record.

        A record is repeated if an earlier one with its time or id begins with it. It repeats what
        the session ends with if it goes on beyond that, as calls that bring their history do, or if
        its messages have the times or ids of those. Of others that say the same both are kept: a
        quiz asks twice. The history from the first message on is read once and does not count.

        :param mark: the id of the record or, without one, its time; ``None`` without both.
        :returns: how many of its first messages are repeated, and how many of them count.
        """
        repeated = self._count_repeated(turns, mark)
        is_history = repeated == len(self.said) < len(turns)
        self.said.extend(map(dict, turns[repeated:]))
        if is_history:
            return repeated, 0
        return repeated, repeated

    def _count_repeated(self, turns: list[Message], mark: Any) -> int:
        if mark is not None:
            record_hashes = [hash((mark, digest)) for digest in digest_beginnings(turns)]
            if record_hashes[-1] in self.records:
                return len(turns)
            self.records.update(record_hashes)
        overlap = count_overlap(self.said, turns)
        if not overlap:
            return 0
        compared_marks = set(map(_compare_marks, self.said[-overlap:], turns[:overlap]))
        if "same" in compared_marks:
            return overlap
        # Without the ids or times of what was said a record repeats it only on its way to more.
        if "other" in compared_marks or overlap == len(turns):
            return 0
        return overlap


def _compare_marks(old: Message, new: Message) -> str:
    """Say whether the ids, else the times, of two messages are the ``same`` or ``other``.

    :returns: nothing for messages without them.
    """
    for mark_key in ("id", "timestamp"):
        old_mark = old.get(mark_key)
        new_mark = new.get(mark_key)
        if not old_mark or not new_mark:
            continue
        if str(old_mark) == str(new_mark):
            return "same"
        return "other"
    return ""


class OwnSessions:
    """Conversations that only name themselves, by ids that may begin anew in each file."""

    def __init__(self) -> None:
        self.copies = Counter[tuple[str, str]]()
        self.names: dict[tuple[str, str], str] = {}
        self.known: dict[tuple[str, str, int], list[str]] = {}

    def begin(self, scope: str, name: str, turns: list[Message]) -> str:
        """Give a session of its own to a conversation of a name."""
        session = name
        while (scope, session) in self.names:
            self.copies[scope, name] += 1
            session = f"{name} ({self.copies[scope, name] + 1})"
        self.names[scope, session] = name
        self._keep(scope, session, turns)
        return session

    def find(self, scope: str, name: str, turns: list[Message]) -> tuple[str, int]:
        """Give the session of a conversation, and how many of its first messages are repeated.

        One that begins with all that another of this name said, and goes on, is the same; any other
        is one of its own.
        """
        digests = digest_beginnings(turns)
        for n_known in reversed(range(len(turns))):
            known_sessions = self.known.get((scope, name, digests[n_known]))
            if known_sessions:
                session = known_sessions.pop(0)
                self._keep(scope, session, turns)
                return session, n_known
        return self.begin(scope, name, turns), 0

    def is_of(self, scope: str, session: str, name: str) -> bool:
        """Say whether a session is one of a conversation of a name."""
        return self.names.get((scope, session)) == name

    def _keep(self, scope: str, session: str, turns: list[Message]) -> None:
        history_key = scope, self.names[scope, session], digest_beginnings(turns)[-1]
        self.known.setdefault(history_key, []).append(session)
