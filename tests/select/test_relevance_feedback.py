"""Feedback searches again, towards the first hits or away from them: by the formula, and at its edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from drawn_runs import drawn, places, standardised
from talk import odd_world, world

import memlab
from memlab.errors import DataError
from memlab.records import LEVELS, Level, Run, run_from_scores
from memlab.retrieve import Bench, bm25
from memlab.select import feedback

GARDEN = [
    "we planted roses and tulips",
    "the roses bloom in June",
    "tulips need water",
    "the train to Ghent was late",
    "a late train again",
    "Ghent has canals",
    "June was dry",
    "no news today",
]


def garden(question: str, *, encoder: str | None = None) -> Bench:
    """Make a bench of one scope that talks of a garden and of a train."""
    return Bench.of(world({"u": [GARDEN]}, {"u": [question]}), encoder=encoder, progress=False)


def texts_of(run: Run, bench: Bench) -> list[str]:
    return [bench.documents("turn").texts[place].split(": ", 1)[-1] for place in places(run, bench)]


def without(values: np.ndarray, place: int) -> np.ndarray:
    return np.delete(values, place)


@pytest.mark.parametrize("hits", [1, 3, 29])
def test_towards_the_hits_is_the_mean_over_the_others(hits: int) -> None:
    run, bench = drawn(np.random.default_rng(1).normal(size=30).tolist(), seed=2)
    centred = bench.documents("turn").speaker_centred().astype(float)
    before = places(run, bench)
    similarity = []
    for place in before:
        others = [hit for hit in before[:hits] if hit != place]
        similarity.append(float((centred[others] @ centred[place]).mean()) if others else np.nan)
    similarity = np.where(np.isnan(similarity), np.nanmean(similarity), similarity).tolist()
    expected = standardised(run.frame["score"].to_list()) + 0.7 * standardised(similarity)
    found = feedback(run, bench, positive=0.7, on="vectors", hits=hits)
    assert places(found, bench) == [before[rank] for rank in np.argsort(-expected)]
    np.testing.assert_allclose(found.frame["score"], -np.sort(-expected), atol=1e-4)


def test_away_from_the_nearest_hit_is_counted_from_the_farthest_document() -> None:
    run, bench = drawn(np.random.default_rng(3).normal(size=30).tolist(), seed=4)
    centred = bench.documents("turn").speaker_centred().astype(float)
    before = places(run, bench)
    nearest = standardised((centred[before] @ centred[before[:3]].T).max(axis=1).tolist())
    away = nearest - nearest.min()
    away[:3] = 0.0
    expected = standardised(run.frame["score"].to_list()) - 0.7 * away
    found = feedback(run, bench, negative=0.7, on="vectors", hits=3)
    assert places(found, bench) == [before[rank] for rank in np.argsort(-expected)]
    np.testing.assert_allclose(found.frame["score"], -np.sort(-expected), atol=1e-4)


def test_terms_are_those_of_the_hits_that_the_question_lacks() -> None:
    """Each word of a hit asks BM25 alone: its score, as a share of the length of the hit's."""
    bench = garden("planted? again?")
    run = bm25(bench)
    before = places(run, bench)
    similarity = np.zeros((len(before), 2))
    for column, hit in enumerate(before[:2]):
        words = sorted(set(bench.documents("turn").words[hit]) - set(bench.query_words[0]))
        asked = pl.DataFrame({"scope": "u", "text": words, "query_id": words})
        alone = bm25(bench.with_queries(asked)).frame
        ids = bench.documents("turn").ids[before]
        scores = np.array([
            [alone.filter(query_id=word, doc_id=doc)["score"].item() for doc in ids]
            for word in words
        ])  # fmt: skip
        own = scores[:, column]
        similarity[:, column] = own @ scores / np.linalg.norm(own)
    # Neither hit is compared with itself, and there are two.
    mean = similarity.mean(axis=1)
    mean[0], mean[1] = similarity[0, 1], similarity[1, 0]
    expected = standardised(run.frame["score"].to_list()) + standardised(mean.tolist())
    found = feedback(run, bench, positive=1.0, on="terms", hits=2)
    np.testing.assert_allclose(found.frame["score"], -np.sort(-expected), atol=1e-4)


def test_both_is_the_mean_of_two_searches() -> None:
    bench = garden("roses?", encoder="hashing")
    run = memlab.pipeline("combsum").run(bench)
    gains = []
    for on in ("vectors", "terms", "both"):
        found = feedback(run, bench, positive=1.0, negative=0.5, on=on)
        gains.append(found.frame.sort("doc_id")["score"].to_numpy())
    np.testing.assert_allclose(gains[2], (gains[0] + gains[1]) / 2, atol=1e-5)


def test_words_of_the_first_hits_find_what_the_question_does_not() -> None:
    bench = garden("planted roses")
    found = feedback(bm25(bench), bench, positive=1.0, hits=1)
    assert texts_of(found, bench)[0] == GARDEN[0]
    assert set(texts_of(found, bench)[1:3]) == {GARDEN[1], GARDEN[2]}


@pytest.mark.parametrize("level", LEVELS)
def test_what_a_ranking_does_not_hold_comes_in(level: Level) -> None:
    """Two of eight documents have a word of the question; another one shares a word with the first hit."""
    said = [[text] for text in GARDEN]
    bench = Bench.of(world({"u": said}, {"u": ["planted roses? canals?"]}), encoder=None)
    run = bm25(bench, level=level, k=2)
    found = feedback(run, bench, positive=5.0, hits=1)
    planted, tulips, canals = bench.documents(level).ids[[0, 2, 5]]
    assert (found.level, found.frame.height) == (level, 2)
    assert {*run.frame["doc_id"]} == {planted, canals}
    assert {*found.frame["doc_id"]} == {planted, tulips}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("pipeline", ["dense(k=7)", "combsum", "bm25 | mmr(lambda_=0.5)"])
def test_away_alone_begins_behind_the_hits(pipeline: str, level: Level) -> None:
    bench = Bench.of(odd_world(), encoder="hashing", progress=False)
    run = memlab.pipeline(pipeline).run(bench, level=level)
    for weight in (0.3, 4.0):
        found = feedback(run, bench, negative=weight, hits=2)
        assert (
            found.frame.group_by("query_id")
            .len()
            .sort("query_id")
            .equals(run.frame.group_by("query_id").len().sort("query_id"))
        )
        for query, ranked in run.frame.group_by("query_id", maintain_order=True):
            scores = ranked["score"].to_numpy()
            n_hits = min(2, int((scores > scores[-1] + 1e-4 * np.ptp(scores)).sum()))
            first = found.frame.filter(query_id=query[0])["doc_id"].head(n_hits)
            assert first.equals(ranked["doc_id"].head(n_hits))


def test_what_resembles_a_hit_goes_behind_what_does_not_and_the_other_way_round() -> None:
    """Of four topics, the first two hits are of the first: its other turns come last, or next."""
    topic = np.array([0, 0, 1, 2, 3, 1, 0, 2, 3, 0])
    noise = 0.1 * np.random.default_rng(0).normal(size=(10, 4))
    run, bench = drawn(np.linspace(1, 0, 10).tolist(), vectors=np.eye(4)[topic] + noise)
    away = places(feedback(run, bench, negative=3.0, hits=2, on="vectors"), bench)
    towards = places(feedback(run, bench, positive=3.0, hits=2, on="vectors"), bench)
    assert (away[:2], set(away[-2:])) == ([0, 1], {6, 9})
    assert set(towards[:4]) == {0, 1, 6, 9}


def test_a_copy_of_a_hit_gains_as_the_hit_does_and_is_not_what_else_there_is() -> None:
    vectors = np.random.default_rng(5).normal(size=(25, 12))
    vectors[20] = vectors[0]
    texts = [f"word {number}" for number in range(25)]
    texts[20] = texts[0]
    scores = np.linspace(1, 0, 25).tolist()
    run, bench = drawn(scores, vectors=vectors, texts=texts)
    before = dict(enumerate(standardised(scores)))
    towards = feedback(run, bench, positive=1.0)
    total = dict(zip(places(towards, bench), towards.frame["score"].to_list(), strict=True))
    assert total[20] - before[20] == pytest.approx(total[0] - before[0], abs=1e-4)
    away = feedback(run, bench, negative=1.0)
    assert places(away, bench)[0] == 0
    assert places(away, bench)[-1] == 20


def test_hits_that_bm25_lists_without_a_word_of_the_question_teach_nothing() -> None:
    bench = garden("canals?")
    run = bm25(bench)
    several, single = (feedback(run, bench, positive=1.0, hits=hits) for hits in (5, 1))
    assert several.frame.equals(single.frame)


@pytest.mark.parametrize("weights", [{"positive": 2.0}, {"negative": 2.0}])
@pytest.mark.parametrize("score", [0.0, 0.7, -3.0])
def test_equal_scores_keep_their_order(score: float, weights: dict[str, float]) -> None:
    run, bench = drawn([score] * 20, seed=3)
    assert places(feedback(run, bench, **weights), bench) == places(run, bench)


@pytest.mark.parametrize("on", ["vectors", "terms", "both"])
@pytest.mark.parametrize("weights", [{}, {"negative": 2.0}, {"positive": 1.0, "negative": 1.0}])
def test_a_scope_of_one_turn_and_vectors_of_zeros_keep_their_order(
    weights: dict[str, float], on: str
) -> None:
    for n in (1, 2, 4):
        run, bench = drawn(np.linspace(1, 0, n).tolist(), vectors=np.ones((n, 3)))
        silent = bench.with_changes(vectors=np.zeros((n, 3), np.float32))
        found = feedback(run, silent, on=on, **weights)
        assert places(found, bench) == places(run, bench)
        assert np.isfinite(found.frame["score"].to_numpy()).all()


def test_a_hit_without_a_further_word_moves_nothing() -> None:
    run, bench = drawn([3.0, 2.0, 1.0, 0.0], texts=["?", "!", "…", "word"])
    found = feedback(run, bench, on="terms", hits=2, positive=3.0)
    assert places(found, bench) == places(run, bench)


def test_without_weights_the_run_stays_as_it_is() -> None:
    run, bench = drawn([3.0, 2.0, 1.0, 0.0])
    assert feedback(run, bench, positive=0.0) is run
    assert feedback(run, bench, positive=0, negative=0) is run


def test_towards_is_the_default_and_away_alone_where_it_is_asked_for() -> None:
    run, bench = drawn(np.random.default_rng(7).normal(size=30).tolist(), seed=8)
    usual, away = feedback(run, bench), feedback(run, bench, negative=0.5)
    assert usual.frame.equals(feedback(run, bench, positive=0.4, negative=0.0).frame)
    assert away.frame.equals(feedback(run, bench, positive=0.0, negative=0.5).frame)
    both = feedback(run, bench, positive=0.4, negative=0.5)
    assert not both.frame.equals(away.frame)
    assert not both.frame.equals(usual.frame)


@pytest.mark.parametrize(
    "text",
    ["best | feedback", "best | feedback(negative=0.5)", "bm25 | feedback(on='terms', hits=3)"],
)
def test_a_pipeline_is_written_as_it_was_read(text: str) -> None:
    assert str(memlab.pipeline(text)) == text


def test_without_an_encoder_both_is_terms_alone() -> None:
    bench = garden("roses?")
    run = bm25(bench)
    assert feedback(run, bench).frame.equals(feedback(run, bench, on="terms").frame)
    with pytest.raises(DataError, match="needs embeddings: make the bench with an encoder"):
        feedback(run, bench, on="vectors")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hits": 0}, "hits is 0; expected at least 1"),
        ({"positive": -0.1}, "positive is -0.1; expected at least 0"),
        ({"negative": -0.1}, "negative is -0.1; expected at least 0"),
        ({"negative": float("nan")}, "negative is nan; expected at least 0"),
        ({"positive": float("inf")}, "positive is inf; expected a finite number"),
        ({"on": "words"}, "on is 'words'; choose from vectors, terms, both"),
    ],
)
def test_what_cannot_be_used_is_refused(given: dict[str, Any], message: str) -> None:
    run, bench = drawn([1.0, 0.5, 0.0])
    with pytest.raises(DataError, match=message):
        feedback(run, bench, **given)


def test_a_question_that_the_bench_does_not_hold_is_refused() -> None:
    _, bench = drawn([1.0, 0.5, 0.0])
    other = run_from_scores(["new"], [bench.documents("turn").ids[0]], [1.0], level="turn")
    with pytest.raises(DataError, match="question 'new' is not in this bench"):
        feedback(other, bench)
