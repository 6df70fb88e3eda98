"""What a conversation keeps in mind from turn to turn: what its pronouns stand for, and what is in play."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from memlab.errors import DataError

MOST_TERMS = 32
MOST_ACTIVE = 64


@dataclass(frozen=True)
class Active:
    """A turn or session in use: ``turn`` says in which turn of the conversation it last was."""

    id: str
    turn: int


@dataclass(frozen=True)
class SessionMemory:
    """What is kept of one conversation; a value: :func:`remember` gives a new one.

    :param last_access: when its last turn was; ``None`` for a new one.
    :param terms: what each pronoun or phrase last stood for, the newest first, in lower case.
    :param documents: turns in play, the newest first; ``sessions``: sessions in play.
    """

    session_id: str
    turn_count: int = 0
    last_access: datetime | None = None
    terms: tuple[tuple[str, str], ...] = ()
    documents: tuple[Active, ...] = ()
    sessions: tuple[Active, ...] = ()

    def meaning(self, term: str) -> str | None:
        """Give what a pronoun or phrase last stood for."""
        return dict(self.terms).get(term.casefold())

    def in_play(self, level: str = "session", *, turns: int | None = None) -> list[str]:
        """List ids in play, the newest first.

        :param level: ``turn`` or ``session``.
        :param turns: only what was in use within so many turns.
        """
        levels = {"turn": self.documents, "session": self.sessions}
        if level not in levels:
            raise DataError(f"level is {level!r}; choose turn or session")
        return [use.id for use in levels[level] if turns is None or self.turn_count - use.turn < turns]


def remember(
    memory: SessionMemory,
    *,
    terms: Mapping[str, str] | None = None,
    documents: Iterable[str] = (),
    sessions: Iterable[str] = (),
    now: datetime,
) -> SessionMemory:
    """Note one turn of a conversation.

    :param terms: what was resolved in it: pronoun or phrase → what it stood for.
    :param documents: ids of the turns that were retrieved or used for it, the most useful first; ``sessions`` likewise.
    :returns: the memory after the turn; at most :data:`MOST_TERMS` terms and :data:`MOST_ACTIVE` of each kind in play,
        those that were longest out of use forgotten first.
    :raises DataError: when ``now`` lies before the last access, or one of them has a time zone and the other none.

    >>> from datetime import datetime
    >>> from memlab.context import SessionMemory, remember
    >>> memory = remember(SessionMemory("chat"), terms={"She": "Dr. Lee"}, sessions=["u/s1"], now=datetime(2026, 5, 1))
    >>> memory.meaning("she"), memory.in_play(), memory.turn_count
    ('Dr. Lee', ['u/s1'], 1)
    """
    last = memory.last_access or now
    used = f"now is {now.isoformat()}, and conversation {memory.session_id!r} was last used at {last}"
    if (now.tzinfo is None) != (last.tzinfo is None):
        raise DataError(f"{used}; give all times with a time zone, or none")
    if now < last:
        raise DataError(f"{used}; turns are remembered in order of time")
    turn = memory.turn_count + 1
    fresh = {term.casefold(): meaning for term, meaning in (terms or {}).items()}
    before = {term: meaning for term, meaning in memory.terms if term not in fresh}
    return replace(
        memory,
        turn_count=turn,
        last_access=now,
        terms=tuple((fresh | before).items())[:MOST_TERMS],
        documents=_used(memory.documents, documents, turn),
        sessions=_used(memory.sessions, sessions, turn),
    )


def _used(active: tuple[Active, ...], ids: Iterable[str], turn: int) -> tuple[Active, ...]:
    fresh = {name: Active(name, turn) for name in ids}
    return (*fresh.values(), *(use for use in active if use.id not in fresh))[:MOST_ACTIVE]
