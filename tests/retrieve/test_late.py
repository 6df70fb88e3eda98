"""Late interaction against loops in numpy, and what a ranking by it may not depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from remembering import minilm

from memlab.embed.token_vectors import TokenVectors, compress_tokens, token_cosines
from memlab.records import Dataset, Level, Run
from memlab.retrieve import Bench, late_interaction
from memlab.retrieve.late_interaction import CONTEXT, late_scores

Ranking = Callable[[Run], dict[str, list[str]]]
LEVELS: tuple[Level, ...] = ("turn", "session")


@pytest.fixture(scope="module")
def bench(world: Dataset) -> Bench:
    return Bench.of(world, encoder=minilm())


def words(tokens: TokenVectors, i: int) -> tuple[list[int], np.ndarray]:
    place = slice(tokens.start[i], tokens.start[i + 1])
    return tokens.ids[place].tolist(), tokens.vectors[place]


def naive(data: Dataset, bench: Bench, scope: str, asked: str, context: int) -> list[float]:
    """Score the turns of a scope, in its order, without any array trick."""
    turns = data.turns.filter(scope=scope)
    texts, sessions = turns["text"].to_list(), turns["session_id"].to_list()
    before = []
    for i in range(len(texts)):
        earlier = [texts[j] for j in range(max(0, i - context), i) if sessions[j] == sessions[i]]
        before.append(" ".join(earlier).lstrip())
    encoder: Any = bench.encoder
    held = compress_tokens(encoder.encode_tokens(texts, before=before))
    documents = [words(held, i) for i in range(len(texts))]
    ids, query = words(encoder.encode_tokens([asked], kind="query"), 0)
    scores = []
    for _, vectors in documents:
        total = weight = 0.0
        for token, vector in zip(ids, query, strict=True):
            frequency = sum(token in other for other, _ in documents)
            rarity = np.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
            weight += rarity
            total += rarity * max((float(token_cosines(vector[None], row[None])[0, 0]) for row in vectors), default=0.0)
        scores.append(total / weight if weight else 0.0)
    return scores


@pytest.mark.slow
def test_scores_are_those_of_a_loop(world: Dataset, bench: Bench) -> None:
    seen = 0
    for rows, span, scores in late_scores(bench, level="turn"):
        for row, ours in zip(rows, scores, strict=True):
            query = bench.queries.row(int(row), named=True)
            assert bench.documents("turn").spans[query["scope"]] == (span.start, span.stop)
            theirs = naive(world, bench, query["scope"], query["text"], CONTEXT)
            np.testing.assert_allclose(ours, theirs, atol=1e-5)
            seen += 1
    assert seen == bench.queries.height


def test_equal_turns_tie_and_stand_by_lot(bench: Bench, ranking: Ranking) -> None:
    turns, span = bench.documents("turn"), slice(*bench.documents("turn").spans["ann"])
    by_lot = turns.ids[span][np.argsort(turns.lot[span])].tolist()
    ranked = ranking(late_interaction(bench))
    said = {"ann/s1/2", "ann/s3/3"}  # "the dentist pulled a tooth", asked for and said twice
    assert set(ranked["ann/q4"][:2]) == said
    assert ranked["ann/q3"] == by_lot, "an empty question: all tie"


def test_a_first_turn_has_nothing_before_it_and_scopes_and_sessions_end_it(world: Dataset) -> None:
    encoder = minilm()
    list(late_scores(Bench.of(world, encoder=encoder), level="turn"))
    before = {key[-1]: key[1] for key in encoder.asked if len(key) == 3 and key[0] == "document"}
    assert before["only one turn about a doctor"] == ""
    assert before["we planted roses and tulips"] == "rain again the dentist pulled a tooth"
    assert before["roses need water"] == ""
    assert before["the the the"] == "I saw the doctor today !!!"
