"""What a conversation keeps in mind from turn to turn: what its pronouns stand for, and what is in play."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from threading import Lock

from memlab.errors import DataError

MOST_TERMS = 32
MOST_ACTIVE = 64
TTL = timedelta(minutes=30)


@dataclass(frozen=True)
class Active:
    """A turn or session in use: ``at`` and ``turn`` say when it last was, ``n`` how often."""

    id: str
    at: datetime
    turn: int
    n: int = 1


@dataclass(frozen=True)
class SessionMemory:
    """What is kept of one conversation; a value: :func:`remember` gives a new one.

    :param last_access: when it was last written or read through :class:`Memories`; ``None`` for a new one.
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
    if _since(memory, now) < timedelta(0):
        raise DataError(f"{_used_at(memory, now)}; turns are remembered in order of time")
    turn = memory.turn_count + 1
    fresh = {term.casefold(): meaning for term, meaning in (terms or {}).items()}
    before = {term: meaning for term, meaning in memory.terms if term not in fresh}
    return replace(
        memory,
        turn_count=turn,
        last_access=now,
        terms=tuple((fresh | before).items())[:MOST_TERMS],
        documents=_used(memory.documents, documents, now, turn),
        sessions=_used(memory.sessions, sessions, now, turn),
    )


def _since(memory: SessionMemory, now: datetime) -> timedelta:
    last = memory.last_access or now
    if (now.tzinfo is None) != (last.tzinfo is None):
        raise DataError(f"{_used_at(memory, now)}; give all times with a time zone, or none")
    return now - last


def _used_at(memory: SessionMemory, now: datetime) -> str:
    return f"now is {now.isoformat()}, and conversation {memory.session_id!r} was last used at {memory.last_access}"


def _used(active: tuple[Active, ...], ids: Iterable[str], now: datetime, turn: int) -> tuple[Active, ...]:
    before = {use.id: use for use in active}
    fresh = {name: Active(name, now, turn, before[name].n + 1 if name in before else 1) for name in ids}
    return (*fresh.values(), *(use for use in active if use.id not in fresh))[:MOST_ACTIVE]


@dataclass
class Memories:
    """The memories of the conversations that a process serves, by session id; safe to share between threads.

    :param ttl: how long a conversation is kept after its last use.
    :param most: how many are kept; the one that was longest out of use goes first.

    >>> from datetime import datetime, timedelta
    >>> from memlab.context import Memories, remember
    >>> memories, noon = Memories(ttl=timedelta(minutes=5)), datetime(2026, 5, 1, 12)
    >>> memories.put(remember(memories.get("chat", now=noon), now=noon))
    >>> [memories.get("chat", now=noon + timedelta(minutes=m)).turn_count for m in (4, 8, 14)]
    [1, 1, 0]
    """

    ttl: timedelta = TTL
    most: int = 1_000
    _memories: OrderedDict[str, SessionMemory] = field(default_factory=OrderedDict, init=False, repr=False)
    _lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.ttl <= timedelta(0) or self.most < 1:
            raise DataError(f"ttl is {self.ttl} and most is {self.most}; both are above 0")

    def get(self, session_id: str, *, now: datetime) -> SessionMemory:
        """Give the memory of a conversation; a new one where there is none, or where it has expired."""
        with self._lock:
            self._expire(now)
            memory = self._memories.get(session_id)
            if memory is None:
                return SessionMemory(session_id)
            memory = replace(memory, last_access=max(now, memory.last_access or now))
            self._keep(memory)
            return memory

    def put(self, memory: SessionMemory) -> None:
        """Keep a memory; one that was never used, whose age nobody knows, is a ``DataError``."""
        if memory.last_access is None:
            raise DataError(f"conversation {memory.session_id!r} has no time of use; put what remember gave")
        with self._lock:
            self._expire(memory.last_access)
            self._keep(memory)
            while len(self._memories) > self.most:
                self._memories.popitem(last=False)

    def __len__(self) -> int:
        return len(self._memories)

    def _keep(self, memory: SessionMemory) -> None:
        self._memories[memory.session_id] = memory
        self._memories.move_to_end(memory.session_id)

    def _expire(self, now: datetime) -> None:
        for name in [name for name, memory in self._memories.items() if _since(memory, now) > self.ttl]:
            del self._memories[name]
