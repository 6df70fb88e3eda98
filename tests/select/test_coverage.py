"""Coverage of the question's parts: its objective, the greedy choice, and the parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import memlab
from memlab import retrieve
from memlab.errors import DataError
from memlab.records import Dataset, Question, Run, Session, Turn, frame, run_from_scores
from memlab.retrieve import Bench
from memlab.select.coverage import coverage, gains, parts_and_matches

MATCHES = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.integers(0, 4).map(float))
REPEAT = st.sampled_from([0.0, 0.3, 0.5, 1.0])


def covered(matches: np.ndarray, repeat: float) -> np.ndarray:
    """Say how well documents (d, parts) cover parts: the best match, ``repeat`` times the second, and so on."""
    return repeat ** np.arange(len(matches)) @ -np.sort(-matches, axis=0)


def small(said: list[str], asked: list[str], scores: list[float] | None = None) -> tuple[Run, Bench]:
    """One scope of given turns, and a run over all of them, the first said first unless scores say else."""
    turns = [Turn(f"u/s/{i}", "u", "u/s", i, "user", "user", text) for i, text in enumerate(said, 1)]
    questions = [Question(f"q{i}", "u", text, None, "t", None, [], []) for i, text in enumerate(asked)]
    sessions = [Session("u/s", "u", 1, None, None, len(said), [])]
    data = Dataset("small", "chatlog", frame(Turn, turns), frame(Session, sessions), frame(Question, questions))
    ids = np.array([turn.turn_id for turn in turns] * len(asked), dtype=object)
    queries = np.repeat(np.array([q.query_id for q in questions], dtype=object), len(said))
    values = np.tile(scores or np.arange(len(said), 0, -1), len(asked)).astype(float)
    return run_from_scores(queries, ids, values, level="turn", k=len(said)), Bench.of(data, encoder="hashing:32")


def chosen(run: Run, bench: Bench, **parameters: float) -> list[int]:
    got = coverage(run, bench, retriever="bm25", **parameters).frame
    return [int(d.rsplit("/", 1)[1]) for d in got.filter(pl.col("query_id") == "q0")["doc_id"]]


@settings(deadline=None)
@given(MATCHES, REPEAT, st.randoms(use_true_random=False))
def test_coverage_is_monotone_and_submodular(matches: np.ndarray, repeat: float, random: object) -> None:
    """More never hurts, and a document adds to a set at most what it adds to a part of the set."""
    documents = list(range(len(matches)))
    larger = [d for d in documents[1:] if random.random() < 0.7]
    smaller = [d for d in larger if random.random() < 0.5]

    def value(taken: list[int]) -> float:
        return float(covered(matches[taken], repeat).sum())

    to_smaller, to_larger = (value([*taken, 0]) - value(taken) for taken in (smaller, larger))
    assert to_smaller >= to_larger - 1e-9
    assert to_larger >= -1e-9
    assert value([]) == 0


@settings(deadline=None)
@given(MATCHES, REPEAT, st.integers(0, 5))
def test_gains_are_what_coverage_grows_by(matches: np.ndarray, repeat: float, n: int) -> None:
    n = min(n, len(matches))
    taken = -np.sort(-matches[:n], axis=0)
    got = gains(matches[None], taken[None], repeat)[0]
    before = covered(taken, repeat).sum()
    expected = [covered(np.vstack([taken, row]), repeat).sum() - before for row in matches]
    np.testing.assert_allclose(got, expected, atol=1e-9)


def test_facility_location_and_plain_sum() -> None:
    matches = np.array([[1.0, 0.2], [0.5, 0.4], [0.0, 0.3]])
    np.testing.assert_allclose(covered(matches, 0.0), matches.max(axis=0))
    np.testing.assert_allclose(covered(matches, 1.0), matches.sum(axis=0))


def test_a_part_that_is_covered_lets_another_through() -> None:
    said = ["the piano again", "piano lessons", "a piano concert", "we sold the car", "nothing"]
    run, bench = small(said, ["Did we sell the car or the piano?"])
    assert chosen(run, bench, k=2, lambda_=0.0)[:2] == [4, 1]  # the rarer word first
    assert chosen(run, bench, k=3, lambda_=0.3)[:2] == [1, 4]
    assert chosen(run, bench, lambda_=1.0) == [1, 2, 3, 4, 5]


def test_repeat_keeps_counting_matches_of_one_part() -> None:
    said = ["noise one", "doctor one", "noise two", "doctor two", "noise three", "doctor three"]
    run, bench = small(said, ["How many doctors did I see?"])
    assert chosen(run, bench, k=6, lambda_=0.3, repeat=0.0) == [2, 1, 3, 4, 5, 6]
    assert chosen(run, bench, k=6, lambda_=0.3, repeat=1.0) == [2, 4, 6, 1, 3, 5]


def test_the_greedy_choice_is_the_formula() -> None:
    """Against a slow greedy over the stage's own parts, on talk with facets."""
    bench = Bench.of(memlab.sample(turns=200), encoder="hashing:32")
    queries = bench.queries.head(3).with_columns(
        text=pl.lit("Did I buy the bike or the car, and how much was the sofa?")
    )
    bench = bench.with_queries(pl.concat([bench.queries.head(6).tail(3), queries]))
    run = retrieve.hybrid(bench, k=30)
    known, matches = parts_and_matches(run, bench, 20, retriever="hybrid")
    assert set(known["kind"]) == {"word", "facet"}
    for repeat in (0.0, 0.5):
        got = coverage(run, bench, k=8, candidates=20, lambda_=0.4, repeat=repeat).frame
        for (query,), rows in run.frame.group_by("query_id", maintain_order=True):
            weight = known.filter(pl.col("query_id") == query)["weight"].to_numpy()
            match = np.zeros((20, max(1, len(weight))))
            for part, rank, value in matches.filter(pl.col("query_id") == query).drop("query_id").iter_rows():
                match[rank - 1, part] = value * weight[part]
            score = rows["score"].head(20).to_numpy()
            relevance = (score - score.min()) / (score.max() - score.min())
            taken: list[int] = []
            while len(taken) < 8:
                worth = {
                    i: 0.4 * relevance[[*taken, i]].sum() + 0.6 * covered(match[[*taken, i]], repeat).sum()
                    for i in range(20)
                    if i not in taken
                }
                taken.append(max(worth, key=lambda i: round(worth[i], 9)))
            ids = rows["doc_id"].to_list()
            expected = [ids[i] for i in taken] + [d for i, d in enumerate(ids) if i not in taken]
            assert got.filter(pl.col("query_id") == query)["doc_id"].to_list() == expected


def test_parts_of_a_question() -> None:
    said = ["Ann likes tennis", "Bob likes chess", "Bob saw Ann", "rain"]
    run, bench = small(said, ["What do Ann and Bob both like?", "zyzzyva?", "Bob?"])
    shown, matches = parts_and_matches(run, bench, 100, retriever="bm25")
    assert shown.columns == ["query_id", "part", "text", "kind", "weight"]
    both = shown.filter(pl.col("query_id") == "q0")
    assert both.filter(pl.col("kind") == "word")["text"].to_list() == ["ann", "bob", "like"]
    facets = both.filter(pl.col("kind") == "facet")["text"].to_list()
    assert len(facets) == 2
    assert ["Bob" not in facets[0], "Ann" not in facets[1]] == [True, True]
    assert both.group_by("kind").agg(pl.col("weight").sum())["weight"].to_list() == pytest.approx([0.5, 0.5])
    assert both["part"].to_list() == list(range(5))
    assert "q1" not in shown["query_id"]
    assert shown.filter(pl.col("query_id") == "q2").select("text", "weight").rows() == [("bob", 1.0)]
    assert matches["match"].is_between(0, 1).all()


def test_words_count_as_bm25_counts_them() -> None:
    """With nothing saturated and no relevance, a question without facets ranks as BM25 does."""
    bench = Bench.of(memlab.sample(turns=200), encoder="hashing:32")
    run = retrieve.bm25(bench, k=40)
    plain = (
        parts_and_matches(run, bench, 40, retriever="hybrid")[0]
        .group_by("query_id")
        .agg(pl.col("kind").is_in(["word"]).all())
    )
    plain = plain.filter("kind")["query_id"]
    assert len(plain) > 5
    got = coverage(run, bench, k=40, lambda_=0.0, repeat=1.0)
    same = [r.frame.filter(pl.col("query_id").is_in(plain.implode()))["doc_id"].to_list() for r in (got, run)]
    assert same[0] == same[1]


def test_a_question_without_parts_stays_and_stands_alone() -> None:
    said = ["roses", "tulips", "roses and tulips", "", "roses"]
    run, bench = small(said, ["zyzzyva?", "", "tulips", "roses or tulips?"], [1.0, 1.0, 1.0, 1.0, 0.5])
    got = coverage(run, bench)
    assert got.frame.head(10)["doc_id"].equals(run.frame.head(10)["doc_id"])
    for query in ("q0", "q2", "q3"):
        alone = coverage(replace(run, frame=run.frame.filter(pl.col("query_id") == query)), bench)
        assert alone.frame.equals(got.frame.filter(pl.col("query_id") == query))
    none = replace(run, frame=run.frame.head(0))
    assert coverage(none, bench).frame.equals(none.frame)
    assert coverage(run.top(1), bench).frame["doc_id"].equals(run.top(1).frame["doc_id"])


def test_scopes_have_statistics_of_their_own() -> None:
    data = memlab.sample(turns=200)
    whole = Bench.of(data, encoder="hashing:32")
    run = retrieve.hybrid(whole, k=20)
    got = coverage(run, whole).frame
    scope = data.scopes[-1]
    own = Bench.of(data.take([scope]), encoder="hashing:32")
    assert coverage(retrieve.hybrid(own, k=20), own).frame["doc_id"].to_list() == (
        got.filter(pl.col("query_id").str.starts_with(f"{scope}/"))["doc_id"].to_list()
    )


def test_wrong_arguments() -> None:
    run, bench = small(["roses", "tulips"], ["roses or tulips?"])
    for wrong, message in (
        ({"lambda_": 1.5}, "lambda_ is 1.5; it lies between 0"),
        ({"repeat": -0.5}, "repeat is -0.5; it lies between 0"),
        ({"k": 0}, "k is 0"),
        ({"candidates": 0}, "candidates is 0"),
        ({"retriever": "grep"}, "retriever is 'grep'"),
    ):
        with pytest.raises(DataError, match=message):
            coverage(run, bench, **wrong)
    with pytest.raises(DataError, match="the run ranks sessions"):
        coverage(retrieve.bm25(bench, level="session"), bench)
    other = replace(run, frame=run.frame.with_columns(query_id=pl.lit("x")))
    with pytest.raises(DataError, match="question 'x' is not in this bench"):
        coverage(other, bench)
