"""What encoders read of messages: late interaction against loops, long messages by their best passage."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from remembering import minilm
from talk import dialogue, ranking

from memlab.embed import load
from memlab.embed.token_vectors import compress_tokens, token_cosines
from memlab.embed.turn_texts import turn_texts
from memlab.records import Dataset
from memlab.retrieve import Bench, dense, late
from memlab.retrieve.dense import dense_scores
from memlab.retrieve.late_interaction import CONTEXT, late_scores
from memlab.retrieve.passages import cut_long_turns_into_passages, split_into_passages
from memlab.text.tokens_and_sentences import WORD_OR_SIGN

ADVICE = (
    "Weigh the flour, since cups vary by a fifth. Let the dough rest overnight in the fridge. A covered pot gives the "
    "steam that the crust needs. Bake it dark, and let it cool before you cut it. "
)
FACT = "The clinic that you asked about is run by Dr. Okonkwo, and it opens at seven on Thursdays."
LONG_ANSWER = ADVICE * 4 + FACT + " " + ADVICE * 5
TALK = [
    "I slept badly, what now?",
    LONG_ANSWER,
    "Thanks, and how are you?",
    "Doctors are busy people.",
    "Bread then.",
]


@pytest.fixture(scope="module")
def bench(world: Dataset) -> Bench:
    return Bench.of(world, encoder=minilm())


def told(texts: list[str], speaker: str = "user") -> Dataset:
    """One session in one scope, and a question about the fact."""
    said = [f"{speaker}: {text}" for text in texts]
    return dialogue(
        "\n".join(["== u 2026-05-01", *said, "? fact: When does Dr. Okonkwo's clinic open? < 1.2"])
    )


def late_by_hand(bench: Bench, scope: str, asked: str) -> np.ndarray:
    """Score the turns of a scope, in its order: the mean of the best cosines of the question's tokens, by rarity."""
    encoder: Any = bench.encoder
    turns = bench.turns.filter(scope=scope).select("text", "session_id").rows()
    before = []
    for i, (_, session) in enumerate(turns):
        earlier = [text for text, other in turns[max(0, i - CONTEXT) : i] if other == session]
        before.append(" ".join(earlier).lstrip())
    held = compress_tokens(encoder.encode_tokens([text for text, _ in turns], before=before))
    documents = [held.take(np.array([i])) for i in range(len(turns))]
    question = encoder.encode_tokens([asked], kind="query")
    frequency = np.sum([np.isin(question.ids, document.ids) for document in documents], axis=0)
    rarity = np.log(1 + (len(turns) - frequency + 0.5) / (frequency + 0.5))
    best = [
        token_cosines(question.vectors, d.vectors).max(axis=1) if len(d.ids) else 0 * rarity
        for d in documents
    ]
    return np.array(best) @ rarity / max(rarity.sum(), 1e-9)


def test_late_interaction_by_hand_and_no_other_session_is_read_before_a_turn(bench: Bench) -> None:
    seen = 0
    for rows, span, found in late_scores(bench, level="turn"):
        for row, ours in zip(rows, found, strict=True):
            scope, text = bench.queries.select("scope", "text").row(int(row))
            assert bench.documents("turn").spans[scope] == (span.start, span.stop)
            np.testing.assert_allclose(ours, late_by_hand(bench, scope, text), atol=1e-5)
            seen += 1
    assert seen == bench.queries.height
    before = {key[-1]: key[1] for key in bench.encoder.model.asked if len(key) == 3}  # type: ignore[union-attr]
    assert before["only one turn about a doctor"] == before["roses need water"] == ""
    assert before["the the the"] == "I saw the doctor today !!!"


def test_equal_turns_tie_and_stand_by_lot(bench: Bench) -> None:
    turns, span = bench.documents("turn"), slice(*bench.documents("turn").spans["ann"])
    ranked = ranking(late(bench))
    assert set(ranked["ann/q4"][:2]) == {
        "ann/s1/2",
        "ann/s3/3",
    }  # the one question that is said, twice
    assert ranked["ann/q3"] == turns.ids[span][np.argsort(turns.tie_order[span])].tolist(), (
        "an empty question: all tie"
    )


@given(
    text=st.text(st.sampled_from("ab .!?\n,é医"), max_size=300) | st.text(max_size=80),
    size=st.integers(1, 12),
)
def test_parts_are_small_and_lose_nothing_but_white_space(text: str, size: int) -> None:
    parts = split_into_passages(text, size)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(0 < len(re.findall(WORD_OR_SIGN, part)) <= size for part in parts)


def test_every_passage_says_who_speaks_and_the_last_shows_the_caption() -> None:
    data = told([LONG_ANSWER, "hi"], speaker="Ann")
    data = replace(data, turns=data.turns.with_columns(caption=pl.Series(["a loaf", "a cat"])))
    *parts, last, other = cut_long_turns_into_passages(Bench.of(data, encoder=None)).texts
    assert all(part.startswith("Ann: ") for part in (*parts, last))
    assert not any("a loaf" in part for part in parts)
    assert last.endswith("Ann shared a loaf.")
    assert other == "Ann: hi Ann shared a cat."


@pytest.mark.parametrize("header", [(), ("scope", "participants")])
def test_passages_are_embedded_with_the_header(header: tuple[str, ...]) -> None:
    encoder = load("hashing:64", header=header)
    bench = Bench.of(told(TALK, speaker="Ann"), encoder=encoder)
    vectors = encoder.encode(
        turn_texts(told(split_into_passages(LONG_ANSWER), speaker="Ann").turns, header=header)
    )
    ((_, _, scores),) = dense_scores(bench, level="turn")
    np.testing.assert_allclose(scores[0, 1], (vectors @ bench.query_vectors[0]).max(), atol=1e-6)


def test_a_fact_within_a_long_answer_is_found_by_the_best_passage() -> None:
    bench = Bench.of(told(TALK), encoder=minilm())
    assert len(cut_long_turns_into_passages(bench).texts) > len(TALK) + 5
    for retriever in (dense, late):
        ((first, *_),) = ranking(retriever(bench)).values()
        assert first == bench.documents("turn").ids[1]
