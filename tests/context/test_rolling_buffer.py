"""The last turns verbatim, the rest in two hundred words, and no work before it is needed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from chat_server import FAULTS, ChatServer, said
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.context import ByModel, RollingBuffer, append_turns, extractive, update_summary
from memlab.context.buffer import MAX_PENDING, MAX_WORDS
from memlab.records import Turn

awkward = st.one_of(
    st.text(max_size=80),
    st.sampled_from(
        ["", "🙂", "word " * 900, "x" * 900, "I paid $1,250 on 3 May to Dr. Lee in Oslo.", "\ud800 Hi Bob: 5"]
    ),
)


def turns(texts: Sequence[str], first: int = 1) -> list[Turn]:
    return [Turn(f"u/s/{n}", "u", "u/s", n, "Mel", "user", text) for n, text in enumerate(texts, first)]


@given(st.lists(awkward, max_size=14), st.data())
@settings(max_examples=25, deadline=None)
def test_one_by_one_is_at_once(texts: list[str], data: st.DataObject) -> None:
    said_turns = turns(texts)
    at_once = update_summary(append_turns(RollingBuffer(), said_turns))
    step = RollingBuffer()
    for turn in said_turns:
        step = append_turns(step, [turn], pending=data.draw(st.integers(0, 9)))
        step = update_summary(step) if data.draw(st.booleans()) else step
        assert len(" ".join(step.summary).split()) <= MAX_WORDS
    assert update_summary(step) == at_once
    assert at_once.turns[-4:] == tuple(said_turns[-4:])
    assert len(at_once.turns) <= 5
    assert at_once.n_summarised + len(at_once.turns) == len(texts)


def test_the_summariser_is_called_late_and_by_pairs() -> None:
    seen = []

    def note(summary: tuple[str, ...], pair: Sequence[Turn]) -> tuple[str, ...]:
        seen.append([turn.n for turn in pair])
        return (*summary, "x")

    buffer = append_turns(RollingBuffer(), turns(["a"] * 9), summarise=note)
    assert seen == []
    assert buffer.calls == 0
    buffer = update_summary(buffer, summarise=note)
    assert seen == [[1, 2], [3, 4]]
    assert buffer.calls == 2
    assert len(buffer.turns) == 5
    assert update_summary(buffer, summarise=note) == buffer
    assert len(seen) == 2
    crowded = append_turns(buffer, turns(["a"] * MAX_PENDING, 10), summarise=note)
    assert crowded.calls == 2 + (MAX_PENDING + 5 - 4) // 2
    assert len(crowded.turns) == 5


def test_dates_amounts_and_names_outlive_small_talk() -> None:
    told = [f"I paid ${n},250 to Dr. Lee{n} on {n} May." for n in range(1, 13)]
    chatter = [
        f"Well I was thinking about how nice the weather is going to be for all of us again {n}" for n in "abcd" * 9
    ]
    mixed = [text for pair in zip(chatter, told * 3, strict=True) for text in pair]
    buffer = update_summary(append_turns(RollingBuffer(), turns(mixed)))
    text = " ".join(buffer.summary)
    assert all(f"${n},250" in text and f"{n} May" in text for n in range(1, 13))
    assert "Mel: " in text
    assert len(text.split()) <= MAX_WORDS


def test_thanks_and_greetings_are_left_out() -> None:
    assert extractive((), turns(["Hi! Thanks so much, wow!", "I moved to Oslo."])) == ("Mel: I moved to Oslo.",)


def test_text_shows_summary_then_turns() -> None:
    buffer = update_summary(append_turns(RollingBuffer(), turns([f"I saw {n} boats in Oslo" for n in range(6)])))
    lines = buffer.text.split("\n")
    assert lines[0].startswith("Mel: I saw 0 boats")
    assert lines[1:] == [f"Mel: I saw {n} boats in Oslo" for n in range(2, 6)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch):
    from chat_server import KEY

    monkeypatch.setenv("LAB_TEST_KEY", KEY)
    made = ChatServer()
    yield made
    made.close()


def test_a_model_writes_the_summary(server: ChatServer) -> None:
    by_model = ByModel(server.service())
    buffer = update_summary(append_turns(RollingBuffer(), turns(["I moved to Oslo."] * 6)), summarise=by_model)
    assert buffer.summary == ("Anna bought tea.",)
    assert not by_model.failures
    assert len(server.requests) == 1
    assert "I moved to Oslo." in server.requests[0]["messages"][-1]["content"]


@pytest.mark.parametrize("fault", ["500", "no JSON", "wrong schema", "empty answer"])
def test_a_model_that_fails_is_replaced(server: ChatServer, fault: str) -> None:
    server.answers = [FAULTS[fault]]
    by_model = ByModel(server.service(max_retries=0))
    buffer = update_summary(append_turns(RollingBuffer(), turns(["I moved to Oslo."] * 6)), summarise=by_model)
    assert buffer.summary == ("Mel: I moved to Oslo.",)
    assert len(by_model.failures) == 1


def test_a_model_that_writes_too_much_is_replaced(server: ChatServer) -> None:
    import json

    server.answers = [lambda request: said(json.dumps({"sentences": ["w " * 150] * 2}))]
    by_model = ByModel(server.service())
    buffer = update_summary(append_turns(RollingBuffer(), turns(["I moved to Oslo."] * 6)), summarise=by_model)
    assert buffer.summary == ("Mel: I moved to Oslo.",)
    assert "300 words" in by_model.failures[0]
