"""Searching for what is like what is found, and for what is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from memlab import retrieve
from memlab.errors import DataError
from memlab.records import Dataset, Run
from memlab.retrieve import Bench, bm25, dense, hybrid, negative_feedback, prf, sessions_from_turns
from memlab.retrieve.feedback import FEEDBACK, TERMS, _largest, _rocchio
from memlab.retrieve.subqueries import by_vectors

Ranking = Callable[[Run], dict[str, list[str]]]


@pytest.fixture(scope="module")
def chat(talk: Dataset) -> Bench:
    return Bench.of(talk, encoder="hashing:32")


@pytest.fixture(scope="module")
def odd(world: Dataset) -> Bench:
    return Bench.of(world, encoder="hashing:32")


def test_prf_finds_what_shares_words_with_the_first_results(world: Dataset) -> None:
    asked = Bench.of(world, encoder=None).with_queries(pl.DataFrame({"scope": ["ann"], "text": ["planted roses"]}))
    documents = asked.documents("turn")
    run = bm25(asked, k=1)
    assert documents.texts[documents.at(run.frame["doc_id"])[0]] == "we planted roses and tulips"
    texts = [documents.texts[i] for i in documents.at(prf(run, asked).frame["doc_id"])]
    assert "tulips need water" in texts[:3]


def test_rocchio_moves_a_question_towards_the_mean_of_its_feedback(chat: Bench) -> None:
    moved = _rocchio(chat, {0: np.array([1, 2])})
    towards = chat.query_vectors[0] + 0.75 * chat.turn_vectors[[1, 2]].mean(axis=0)
    np.testing.assert_allclose(moved[0], towards / np.linalg.norm(towards), atol=1e-6)
    np.testing.assert_allclose(moved[1:], chat.query_vectors[1:], atol=1e-6)
    assert by_vectors(chat, chat.query_vectors, k=20).frame.equals(dense(chat, k=20).frame)


def test_the_largest_shares_of_words_are_kept_with_what_ties() -> None:
    shares = np.r_[np.full(3, 0.2), np.full(TERMS - 1, 0.5), 0.1]
    assert (_largest(shares) > 0).tolist() == [True] * (TERMS + 2) + [False]
    assert _largest(shares[:TERMS]).all()


def test_without_feedback_a_ranking_stays(odd: Bench, ranking: Ranking) -> None:
    run = bm25(odd)
    assert prf(replace(run, frame=run.frame.clear()), odd).frame.height == 0
    unmatched = run.frame.filter(pl.col("score").max().over("query_id") <= 0)["query_id"].unique().to_list()
    assert len(unmatched) >= 3
    before, after = ranking(run), ranking(prf(run, odd))
    assert {q: after[q] for q in unmatched} == {q: before[q] for q in unmatched}
    assert after != before
    assert ranking(prf(run, odd, weight=0.0)) == before


def test_what_repeats_is_pushed_back(world: Dataset) -> None:
    """The same sentence five times: after them, what else the question asks for comes before a sixth copy."""
    said = ["I saw the doctor today"] * 6 + ["the dentist pulled a tooth", "rain again", "no", "tea", "so", "well"]
    turns = world.turns.filter(scope="cyd").head(1)
    rows = turns.select(pl.all().repeat_by(len(said)).explode()).with_columns(
        text=pl.Series(said), n=pl.int_range(1, len(said) + 1, dtype=pl.Int32), turn_id=pl.format("t{}", pl.row_index())
    )
    asked = pl.DataFrame({"scope": ["cyd"], "text": ["doctor today dentist tooth saw"]})
    bench = Bench.of(replace(world, turns=rows), encoder="hashing:32").with_queries(asked)
    run = retrieve.combsum(bench, turn=(1, 1, 0), session=(0, 0, 0))
    away, towards = (negative_feedback(run, bench, beta=beta).frame["doc_id"][FEEDBACK] for beta in (1.0, -1.0))
    texts = dict(zip(rows["turn_id"], said, strict=True))
    assert (texts[away], texts[towards]) == ("the dentist pulled a tooth", "I saw the doctor today")


@pytest.mark.parametrize("first", [retrieve.dense, retrieve.bm25, retrieve.combsum])
@pytest.mark.parametrize("k", [1, 7, 200])
def test_negative_feedback_keeps_the_first_and_finds_others(chat: Bench, first: Callable[..., Run], k: int) -> None:
    run = first(chat, k=k)
    assert negative_feedback(run, chat, beta=0.0).frame["doc_id"].equals(run.frame["doc_id"])
    moved = negative_feedback(run, chat, beta=1.0).frame
    kept = pl.col("rank") <= FEEDBACK
    assert moved.filter(kept)["doc_id"].equals(run.frame.filter(kept)["doc_id"])
    assert moved["rank"].max() <= k
    assert not moved.select("query_id", "doc_id").is_duplicated().any()


def test_it_reaches_turns_that_the_run_left_out(chat: Bench, ranking: Ranking) -> None:
    run = bm25(chat, k=10)
    got = ranking(negative_feedback(run, chat, beta=1.0))
    assert any(set(got[q]) - set(before) for q, before in ranking(run).items())


def test_words_alone_do_without_embeddings(talk: Dataset) -> None:
    bench = Bench.of(talk, encoder=None)
    run = bm25(bench)
    assert not negative_feedback(run, bench, beta=1.0).frame["doc_id"].equals(run.frame["doc_id"])
    assert prf(run, bench).frame.height


def test_what_goes_in_is_kept_and_wrong_arguments(odd: Bench) -> None:
    run = replace(hybrid(odd), name="mine", provenance={"x": 1})
    got = negative_feedback(run, odd)
    assert (got.name, got.provenance, got.text_of is not None) == ("mine", {"x": 1}, True)
    none = replace(run, frame=run.frame.clear())
    assert negative_feedback(none, odd).frame.equals(none.frame)
    for stage, wrong, message in (
        (negative_feedback, {"rounds": 0}, "rounds is 0"),
        (negative_feedback, {"beta": float("nan")}, "beta is nan"),
        (prf, {"weight": -1.0}, "weight is -1"),
    ):
        with pytest.raises(DataError, match=message):
            stage(run, odd, **wrong)
        with pytest.raises(DataError, match="takes a ranking of turns"):
            stage(sessions_from_turns(run, odd), odd)
