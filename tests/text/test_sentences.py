"""Sentences with their places."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memlab.text.sentences import sentence_spans, sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I met Dr. Lee at 3 p.m. today. Fine!", ["I met Dr. Lee at 3 p.m. today.", "Fine!"]),
        ("See https://a.b/c?d=1.5&e=2 now. Bye.", ["See https://a.b/c?d=1.5&e=2 now.", "Bye."]),
        ("Then... we left. Wow... Great.", ["Then... we left.", "Wow...", "Great."]),
        ("Buy:\n- Milk\n- Two eggs", ["Buy:", "- Milk", "- Two eggs"]),
        ("this line was\nwrapped here", ["this line was\nwrapped here"]),
        ("```\nx = 1. \nY. Z\n``` Done. Next.", ["```\nx = 1. \nY. Z\n```", "Done.", "Next."]),
        ("今日は。元気ですか？はい！", ["今日は。", "元気ですか？", "はい！"]),
        ("😂", ["😂"]),
        (" \n ", []),
    ],
)
def test_what_a_sentence_is(text, expected):
    assert sentences(text) == expected


@given(st.text(alphabet=st.sampled_from("aB1 .!?…\n,;:()\"'`-😂。é\u00a0\u200b"), max_size=80))
@example("```" * 3)
@example("a (b. c " * 300)
@example("x" * 5_000)
@settings(max_examples=80, deadline=None)
def test_sentences_tile_the_text(text):
    """Between them, before and after, stands nothing but white space."""
    at = 0
    for start, end in sentence_spans(text):
        assert not text[at:start].strip()
        assert start < end
        assert not text[start].isspace()
        at = end
    assert not text[at:].strip()
