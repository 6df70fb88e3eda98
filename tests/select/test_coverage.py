"""Coverage of the question's parts: the greedy choice, and what the parts are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memlab.records import Dataset, Question, Run, Session, Turn, frame, run_from_scores
from memlab.retrieve import Bench
from memlab.select.coverage import _choose_greedily, _match_question_parts, coverage

MATCHES = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(0, 4)), elements=st.integers(0, 4).map(float))


def small(texts: list[str], asked: list[str], *, encoder: str | None = "hashing:32") -> tuple[Run, Bench]:
    """One scope of given turns, and a run over all of them in that order."""
    turns = [Turn(f"u/s/{i}", "u", "u/s", i, "user", "user", text) for i, text in enumerate(texts, 1)]
    questions = [Question(f"q{i}", "u", text, None, "t", None, [], []) for i, text in enumerate(asked)]
    sessions = [Session("u/s", "u", 1, None, None, len(texts), [])]
    data = Dataset("small", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions))
    pairs = [(question.query_id, turn.turn_id, -turn.n) for question in questions for turn in turns]
    queries, ids, scores = (np.array(column, dtype=object) for column in zip(*pairs, strict=True))
    run = run_from_scores(queries, ids, scores.astype(float), level="turn", k=len(texts))
    return run, Bench.of(data, encoder=encoder)


def chosen(run: Run, bench: Bench, **parameters: float) -> list[int]:
    got = coverage(run, bench, **parameters).frame
    return [int(d.rsplit("/", 1)[1]) for d in got.filter(query_id="q0")["doc_id"]]


@settings(deadline=None)
@given(MATCHES, st.integers(1, 7))
def test_each_choice_adds_most_to_the_best_match_of_every_part(matches: np.ndarray, k: int) -> None:
    relevance = np.linspace(1, 0, len(matches))
    taken: list[int] = []
    for place in _choose_greedily(relevance, matches, k).tolist():
        worth = {
            i: relevance[i] + matches[[*taken, i]].max(axis=0).sum() for i in range(len(matches)) if i not in taken
        }
        assert place == max(worth, key=lambda i: round(worth[i], 9))
        taken.append(place)
    assert len(taken) == min(k, len(matches))


def test_a_part_that_is_covered_lets_another_through() -> None:
    run, bench = small(
        ["the piano again", "piano lessons", "a piano concert", "we sold the car", "nothing"],
        ["Did we sell the car or the piano?"],
    )
    assert chosen(run, bench, k=2, lambda_=0.3)[:2] == [1, 4]
    assert chosen(run, bench, lambda_=1.0) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("encoder", ["hashing:32", None])
def test_words_weigh_half_and_facets_half(encoder: str | None) -> None:
    texts = ["Ann likes tennis", "Bob likes chess", "Bob saw Ann", "rain"]
    run, bench = small(texts, ["What do Ann and Bob both like?", "zyzzyva?", "Bob?"], encoder=encoder)
    both, none, word = _match_question_parts(run, bench, [np.arange(4)] * 3)
    assert both.shape == (4, 3 + 2), "ann, bob and like; and one facet each"
    assert both[:, 3:].max(axis=0).tolist() == [0.25, 0.25]
    assert (both[:, :3].max(axis=0) < 0.5).all()
    assert none.shape == (4, 0)
    assert ((word > 0).ravel() == [False, True, True, False]).all()
