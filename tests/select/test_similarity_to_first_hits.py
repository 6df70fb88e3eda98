"""What resembles the first hits comes nearer to them, by the formula, and at its edges."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_runs import drawn, places, standardised
from talk import odd_world

import memlab
from memlab.errors import DataError
from memlab.retrieve import Bench
from memlab.select import mmr, resonate


@pytest.mark.parametrize("seeds", [1, 3, 40])
@pytest.mark.parametrize("weight", [0.1, 2.0])
def test_a_score_is_the_sum_of_two_standardised_ones(seeds: int, weight: float) -> None:
    run, bench = drawn(np.random.default_rng(1).normal(size=30).tolist(), seed=2)
    centred = bench.documents("turn").speaker_centred().astype(float)
    before = places(run, bench)
    nearest = []
    for place in before:
        others = [seed for seed in before[:seeds] if seed != place]
        nearest.append(
            max((float(centred[place] @ centred[seed]) for seed in others), default=np.nan)
        )
    nearest = np.where(np.isnan(nearest), np.nanmean(nearest), nearest).tolist()
    expected = standardised(run.frame["score"].to_list()) + weight * standardised(nearest)
    found = resonate(run, bench, seeds=seeds, weight=weight, margin=0.0)
    assert places(found, bench) == [before[rank] for rank in np.argsort(-expected)]
    np.testing.assert_allclose(found.frame["score"], -np.sort(-expected), atol=1e-5)


def test_what_resembles_a_first_hit_passes_what_does_not() -> None:
    """Of four topics, the first two hits are of the first: its other turns come next."""
    topic = np.array([0, 0, 1, 2, 3, 1, 0, 2, 3, 0])
    noise = 0.1 * np.random.default_rng(0).normal(size=(10, 4))
    run, bench = drawn(np.linspace(1, 0, 10).tolist(), vectors=np.eye(4)[topic] + noise)
    found = places(resonate(run, bench, seeds=2, weight=2.0, margin=0.0), bench)
    assert set(found[:4]) == {0, 1, 6, 9}
    assert sorted(found) == list(range(10))


@pytest.mark.parametrize("level", ["turn", "session"])
def test_without_weight_the_run_stays_as_it_is(level: str) -> None:
    bench = Bench.of(odd_world(), encoder="hashing", progress=False)
    run = memlab.pipeline("dense").run(bench, level=level)
    assert resonate(run, bench, weight=0.0) is run
    assert resonate(run, bench, weight=0) is run


@pytest.mark.parametrize("level", ["turn", "session"])
def test_nothing_is_brought_in_or_left_out(level: str) -> None:
    bench = Bench.of(odd_world(), encoder="hashing", progress=False)
    run = memlab.pipeline("dense(k=5)").run(bench, level=level)
    found = resonate(run, bench, weight=3.0, margin=0.0)
    assert found.level == level
    assert found.frame.sort("query_id", "doc_id")[["query_id", "doc_id"]].equals(
        run.frame.sort("query_id", "doc_id")[["query_id", "doc_id"]]
    )


@pytest.mark.parametrize("n", [1, 2, 3])
def test_fewer_candidates_than_first_hits_keep_their_order_where_nothing_tells_them_apart(
    n: int,
) -> None:
    """One has nobody to resemble, two resemble each other equally, three of one direction all do."""
    spread = np.eye(3)[:n] if n < 3 else np.ones((3, 3))
    run, bench = drawn(np.linspace(1, 0, n).tolist(), vectors=spread)
    found = resonate(run, bench, seeds=5, weight=10.0, margin=0.0)
    assert places(found, bench) == places(run, bench)


def test_a_query_whose_first_hit_does_not_stand_out_keeps_its_ranking() -> None:
    """The first score lies 2.5 standard deviations above the tenth, or is one of an even descent."""
    clear = [4.0, *np.linspace(1, 0, 39)]
    even = np.linspace(1, 0, 40).tolist()
    for scores, stays in ((clear, False), (even, True)):
        run, bench = drawn(scores, seed=6)
        distances = standardised(run.frame["score"].to_list())
        assert (distances[0] - distances[9] < 2.0) == stays
        found = resonate(run, bench, weight=0.5)
        assert found.frame.equals(run.frame) == stays
        assert not resonate(run, bench, weight=0.5, margin=0.0).frame.equals(run.frame)


def test_equal_scores_leave_the_similarity_alone() -> None:
    """A run lowers equal scores by a float32 step each, which is no difference to standardise."""
    run, bench = drawn([0.7] * 20, seed=3)
    centred = bench.documents("turn").speaker_centred().astype(float)
    before = places(run, bench)
    similar = (centred[before] @ centred[before[:2]].T).round(6)
    similar[similar >= 1] = -1
    found = resonate(run, bench, seeds=2, weight=1e-3, margin=0.0)
    assert places(found, bench) == [
        before[rank] for rank in np.argsort(-similar.max(axis=1), kind="stable")
    ]


@pytest.mark.parametrize("score", [0.0, 0.7, -3.0, 1e6])
def test_where_scores_are_equal_relevance_decides_nothing(score: float) -> None:
    run, bench = drawn([score] * 20, seed=4)
    balanced, diverse = mmr(run, bench, lambda_=0.5), mmr(run, bench, lambda_=0.0)
    assert places(balanced, bench) == places(diverse, bench)
    assert places(diverse, bench) != places(run, bench)


def test_a_copy_of_a_first_hit_gains_what_the_hit_gains() -> None:
    vectors = np.random.default_rng(5).normal(size=(25, 12))
    vectors[20] = vectors[0]
    scores = np.linspace(1, 0, 25).tolist()
    run, bench = drawn(scores, vectors=vectors)
    plain = dict(zip(places(run, bench), standardised(scores), strict=True))
    found = resonate(run, bench, seeds=3, weight=1.0, margin=0.0)
    total = dict(zip(places(found, bench), found.frame["score"].to_list(), strict=True))
    assert total[20] - plain[20] == pytest.approx(total[0] - plain[0], abs=1e-5)


def test_copies_of_one_message_alone_keep_their_order() -> None:
    run, bench = drawn(np.linspace(1, 0, 8).tolist(), vectors=np.ones((8, 3)))
    assert places(resonate(run, bench, weight=5.0, margin=0.0), bench) == places(run, bench)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": 0}, "seeds is 0; expected at least 1"),
        ({"weight": -0.1}, "weight is -0.1; expected at least 0"),
        ({"weight": float("nan")}, "weight is nan; expected at least 0"),
        ({"weight": float("inf")}, "weight is inf; expected a finite number"),
        ({"margin": -1.0}, "margin is -1.0; expected at least 0"),
        ({"margin": float("inf")}, "margin is inf; expected a finite number"),
    ],
)
def test_what_cannot_be_weighed_is_refused(given: dict[str, float], message: str) -> None:
    run, bench = drawn([1.0, 0.5, 0.0])
    with pytest.raises(DataError, match=message):
        resonate(run, bench, **given)


def test_without_an_encoder_the_error_says_what_is_missing() -> None:
    bench = Bench.of(odd_world(), encoder=None)
    run = memlab.retrieve.bm25(bench)
    with pytest.raises(DataError, match="needs embeddings: make the bench with an encoder"):
        resonate(run, bench)
