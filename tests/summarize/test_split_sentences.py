from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memlab.records import Turn, frame
from memlab.summarize import split, spoken


def _split(text: str) -> list[str]:
    return split(frame(Turn, [Turn("u/s/1", "u", "u/s", 1, "Mel", "user", text)]))["text"].to_list()


def _letters(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("I met Dr. Lee at 3 p.m. today. Fine!", ["I met Dr. Lee at 3 p.m. today.", "Fine!"]),
        ("It cost $1,250.50! Version 3.11, e.g. here.", ["It cost $1,250.50!", "Version 3.11, e.g. here."]),
        ("See https://a.b/c?d=1.5&e=2 now. Bye.", ["See https://a.b/c?d=1.5&e=2 now.", "Bye."]),
        ("Then... we left. Wow... Great.", ["Then... we left.", "Wow...", "Great."]),
        ("That's great!! 😂😂 I love it :)", ["That's great!!", "😂😂 I love it :)"]),
        ("I went home. 😂", ["I went home. 😂"]),
        ('"No way!" she said. "Really?" he asked.', ['"No way!" she said.', '"Really?" he asked.']),
        ("Buy:\n- Milk\n- Two eggs", ["Buy:", "- Milk", "- Two eggs"]),
        ("this line was\nwrapped here", ["this line was\nwrapped here"]),
        ("```\nx = 1. \nY. Z\n``` Done. Next.", ["```\nx = 1. \nY. Z\n```", "Done.", "Next."]),
        ("今日は。元気ですか？はい！", ["今日は。", "元気ですか？", "はい！"]),
        ("😂", ["😂"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_what_a_sentence_is(text, sentences):
    assert _split(text) == sentences


@given(st.text(alphabet=st.sampled_from("aB1 .!?…\n,;:()\"'`-😂。é\u00a0\u200b"), max_size=80))
@example("```" * 3)
@example("a (b. c " * 300)
@example("x" * 5_000)
@settings(max_examples=80, deadline=None)
def test_no_text_is_lost(text):
    assert _letters("".join(_split(text))) == _letters(text)


def test_rows_belong_to_their_turns(chat):
    turns = chat("Mel: One. Two!", "user: ", "user: Three.")
    rows = split(turns)
    assert rows.select("turn_id", "position", "text").rows() == [
        ("u/s/1", 1, "One."), ("u/s/1", 2, "Two!"), ("u/s/3", 1, "Three."),
    ]  # fmt: skip
    assert rows.select(spoken())["spoken"].to_list() == ["Mel: One.", "Mel: Two!", "Three."]
    assert split(turns.clear()).schema == rows.schema
