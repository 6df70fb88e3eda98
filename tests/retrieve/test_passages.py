"""Long messages: what they are cut into, and that encoders rank them by their best passage."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from remembering import minilm

from memlab.embed import load
from memlab.embed.text import turn_texts
from memlab.records import Dataset, Question, Run, Session, Turn, frame
from memlab.retrieve import Bench, dense, late_interaction
from memlab.retrieve.dense import dense_scores
from memlab.retrieve.passages import cut_passages, split_text
from memlab.text.tokens import WORD_OR_SIGN

ADVICE = (
    "Weigh the flour, since cups vary by a fifth. Let the dough rest overnight in the fridge. A covered pot gives the "
    "steam that the crust needs. Bake it dark, and let it cool before you cut it. "
)
FACT = "The clinic that you asked about is run by Dr. Okonkwo, and it opens at seven on Thursdays."
LONG_ANSWER = ADVICE * 4 + FACT + " " + ADVICE * 5
TALK = ["I slept badly, what now?", LONG_ANSWER, "Thanks, and how are you?", "Doctors are busy people.", "Bread then."]


def told(texts: list[str], asked: str = "When does Dr. Okonkwo's clinic open?", speaker: str = "user") -> Dataset:
    """One session in one scope."""
    at = datetime(2024, 1, 1, tzinfo=UTC)
    turns = [Turn(f"u/s/{n}", "u", "u/s", n, speaker, "user", text) for n, text in enumerate(texts, 1)]
    session = Session("u/s", "u", 1, at, at, len(texts), [speaker])
    question = Question("u/q", "u", asked, "", "t", None, ["u/s/2"], ["u/s"])
    return Dataset("told", "chatlog", frame(Turn, turns), frame(Session, [session]), frame(Question, [question]))


def scores(bench: Bench) -> np.ndarray:
    ((_, _, only),) = dense_scores(bench, level="turn")
    return only[0]


words = st.text(st.sampled_from("ab .!?\n,é医"), max_size=300) | st.text(max_size=80)


@given(text=words, size=st.integers(1, 12))
def test_parts_are_small_and_lose_nothing_but_white_space(text: str, size: int) -> None:
    parts = split_text(text, size)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(0 < len(re.findall(WORD_OR_SIGN, part)) <= size for part in parts)


def test_every_passage_says_who_speaks_and_the_last_shows_the_caption() -> None:
    data = told([LONG_ANSWER, "hi"], speaker="Ann")
    data = replace(data, turns=data.turns.with_columns(caption=pl.Series(["a loaf", "a cat"])))
    cut = cut_passages(Bench.of(data, encoder=None))
    *parts, last, other = cut.texts
    assert all(part.startswith("Ann: ") for part in (*parts, last))
    assert not any("a loaf" in part for part in parts)
    assert last.endswith("Ann shared a loaf.")
    assert other == "Ann: hi Ann shared a cat."


@pytest.mark.slow
def test_a_message_has_the_cosine_of_its_best_passage() -> None:
    bench = Bench.of(told(TALK), encoder=minilm())
    cut = cut_passages(bench)
    assert len(cut.texts) > len(TALK) + 5
    # As turns of their own they are scored one by one.
    apart = scores(Bench.of(told(cut.texts), encoder=minilm()))
    expected = [apart[first:last].max() for first, last in pairwise(cut.start)]
    np.testing.assert_allclose(scores(bench), expected, atol=1e-6)


@pytest.mark.parametrize("header", [(), ("scope", "participants")])
def test_passages_are_embedded_with_the_header(header: tuple[str, ...]) -> None:
    encoder = load("hashing:64")
    data = told(TALK, speaker="Ann")
    bench = Bench.of(data, encoder=encoder, header=header)
    rows = told(split_text(LONG_ANSWER), speaker="Ann").turns
    vectors = encoder.encode(turn_texts(rows, header=header))
    assert bench.query_vectors is not None
    np.testing.assert_allclose(scores(bench)[1], (vectors @ bench.query_vectors[0]).max(), atol=1e-6)


@pytest.mark.parametrize("retriever", [dense, late_interaction])
def test_a_fact_within_a_long_answer_is_found(
    retriever: Callable[..., Run], ranking: Callable[[Run], dict[str, list[str]]]
) -> None:
    bench = Bench.of(told(TALK), encoder=minilm())
    assert ranking(retriever(bench))["u/q"][0] == "u/s/2"
