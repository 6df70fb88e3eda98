"""What a conversation keeps in mind, for how long, and how much of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memlab.context import Memories, SessionMemory, remember
from memlab.context.memory import MOST_ACTIVE, MOST_TERMS
from memlab.errors import DataError

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def test_the_newest_meaning_and_use_come_first() -> None:
    memory = remember(SessionMemory("c"), terms={"it": "the lamp", "She": "Ann"}, sessions=["a", "b"], now=NOON)
    memory = remember(memory, terms={"It": "the bill"}, sessions=["b", "c"], documents=["t"], now=NOON + MINUTE)
    assert (memory.meaning("IT"), memory.meaning("she"), memory.meaning("he")) == ("the bill", "Ann", None)
    assert memory.in_play() == ["b", "c", "a"]
    assert memory.in_play(turns=1) == ["b", "c"]
    assert memory.in_play("turn") == ["t"]
    assert memory.turn_count == 2
    assert memory.last_access == NOON + MINUTE
    assert [(one.id, one.n, one.turn) for one in memory.sessions] == [("b", 2, 2), ("c", 1, 2), ("a", 1, 1)]


def test_a_memory_is_bounded() -> None:
    memory = SessionMemory("c")
    for n in range(200):
        memory = remember(memory, terms={f"term {n}": "x"}, documents=[f"t{n}"], sessions=[f"s{n}"], now=NOON)
    assert (len(memory.terms), len(memory.documents), len(memory.sessions)) == (MOST_TERMS, MOST_ACTIVE, MOST_ACTIVE)
    assert memory.sessions[0].id == "s199"
    assert memory.meaning("term 199") == "x"
    assert memory.meaning("term 0") is None


def test_memories_expire_and_give_way() -> None:
    kept = Memories(ttl=10 * MINUTE, most=2)
    for n, name in enumerate(("a", "b")):
        kept.put(remember(kept.get(name, now=NOON), now=NOON + n * MINUTE))
    # Reading is a use: "b" is now the one longest out of use.
    assert kept.get("a", now=NOON + 5 * MINUTE).turn_count == 1
    kept.put(remember(kept.get("c", now=NOON + 5 * MINUTE), now=NOON + 5 * MINUTE))
    assert len(kept) == 2
    assert kept.get("b", now=NOON + 5 * MINUTE).turn_count == 0
    assert kept.get("a", now=NOON + 15 * MINUTE).turn_count == 1
    assert kept.get("a", now=NOON + 26 * MINUTE).turn_count == 0
    assert len(kept) == 0


def test_conversations_do_not_mix() -> None:
    kept = Memories()
    kept.put(remember(kept.get("a", now=NOON), terms={"it": "x"}, now=NOON))
    assert kept.get("b", now=NOON).meaning("it") is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: remember(remember(SessionMemory("c"), now=NOON), now=NOON - MINUTE), "in order of time"),
        (lambda: remember(remember(SessionMemory("c"), now=NOON), now=NOON.replace(tzinfo=None)), "with a time zone"),
        (lambda: Memories().put(SessionMemory("c")), "put what remember gave"),
        (lambda: Memories(most=0), "above 0"),
        (lambda: SessionMemory("c").in_play("week"), "choose turn or session"),
    ],
)
def test_what_is_wrong_is_said(wrong, message: str) -> None:
    with pytest.raises(DataError, match=message):
        wrong()
