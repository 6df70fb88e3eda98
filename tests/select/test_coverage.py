"""Coverage of the question's parts: the greedy choice, and what the parts are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memlab.datasets import chatlog
from memlab.records import Run, run_from_scores
from memlab.retrieve import Bench
from memlab.select.coverage import _choose_greedily, _match_question_parts, coverage

MATCHES = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(0, 4)), elements=st.integers(0, 4).map(float))


def small(texts: list[str], asked: list[str], *, encoder: str | None = "hashing:32") -> tuple[Run, Bench]:
    """One scope of given turns, and a run over all of them in that order."""
    rows = [{"scope": "u", "session": "s", "id": str(i), "sender": "user", "text": t} for i, t in enumerate(texts)]
    rows += [{"scope": "u", "question": text, "evidence": ["0"]} for text in asked]
    bench = Bench.of(chatlog.dataset(rows, "small"), encoder=encoder)
    ids, queries = bench.documents("turn").ids, bench.queries["query_id"].to_numpy()
    columns = np.repeat(queries, len(ids)), np.tile(ids, len(queries))
    return run_from_scores(*columns, -np.tile(np.arange(len(ids)), len(queries)) * 1.0, level="turn", k=99), bench


@given(MATCHES, st.integers(1, 7))
def test_each_choice_adds_most_to_the_best_match_of_every_part(matches: np.ndarray, k: int) -> None:
    relevance, taken = np.linspace(1, 0, len(matches)), list[int]()
    for place in _choose_greedily(relevance, matches, k).tolist():
        left = [i for i in range(len(matches)) if i not in taken]
        worth = {i: relevance[i] + matches[[*taken, i]].max(axis=0).sum() for i in left}
        assert place == max(worth, key=lambda i: round(worth[i], 9))
        taken.append(place)
    assert len(taken) == min(k, len(matches))


def test_a_part_that_is_covered_lets_another_through() -> None:
    said = ["the piano again", "piano lessons", "a piano concert", "we sold the car", "nothing"]
    run, bench = small(said, ["Did we sell the car or the piano?"])
    for parameters, expected in (({"k": 2, "lambda_": 0.3}, [0, 3, 1, 2, 4]), ({"lambda_": 1.0}, [0, 1, 2, 3, 4])):
        got = coverage(run, bench, **parameters).frame
        assert bench.documents("turn").at(got["doc_id"]).tolist() == expected


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
