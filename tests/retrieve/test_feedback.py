"""Searching for what is not like what is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab import retrieve
from memlab.errors import DataError
from memlab.language.analysis import tokenize
from memlab.records import Dataset, Run
from memlab.retrieve import Bench
from memlab.retrieve.arrays import standardised
from memlab.retrieve.bm25 import bm25_scores
from memlab.retrieve.feedback import negative_feedback

Ranking = Callable[[Run], dict[str, list[str]]]
QUICK = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture(scope="module")
def bench(world: Dataset) -> Bench:
    return Bench.of(world, encoder="hashing:32")


@pytest.fixture(scope="module")
def chat(talk: Dataset) -> Bench:
    return Bench.of(talk, encoder="hashing:32")


def term_scores(bench: Bench, span: slice, tokens: list[str]) -> np.ndarray:
    """BM25 of each of some words alone: (t, n), noughts for a word that does not stand in the scope."""
    words = bench.documents("turn").words_in(span)
    alone = [words.scores([[token]], *words.normalisation)[0].astype(float) for token in tokens]
    return np.array(alone).reshape(len(tokens), span.stop - span.start)


def one_at_a_time(run: Run, bench: Bench, query: str, **p: float) -> list[str]:
    """The rounds as the docstring tells them, for one question, a turn at a time."""
    documents = bench.documents("turn")
    row = bench.queries["query_id"].to_list().index(query)
    span = slice(*documents.spans[bench.queries["scope"][row]])
    ids, embeddings = documents.ids[span].tolist(), documents.embeddings[span].astype(np.float64)
    mine = run.frame.filter(pl.col("query_id") == query)
    score = dict(zip(mine["doc_id"], standardised(mine["score"].to_numpy()[None])[0], strict=True))
    relevance = np.array([score.get(d, min(score.values()) - 1e-9) for d in ids])
    words = tokenize([bench.queries["text"][row]])[0]
    terms = term_scores(bench, span, words)

    def fit(found: list[str], beta: float) -> np.ndarray:
        at = [ids.index(d) for d in found]
        mean = embeddings[at].sum(axis=0)
        moved = bench.query_vectors[row] - beta * mean / max(np.linalg.norm(mean), 1e-12)
        moved /= max(np.linalg.norm(moved), 1e-12)
        share = np.array([(term[at] > 0).mean() for term in terms])
        lexical = (terms * np.maximum(1 - beta * share, 0)[:, None]).sum(axis=0) if words else np.zeros(len(ids))
        return standardised((embeddings @ moved)[None])[0] + standardised(lexical[None])[0]

    found = mine["doc_id"].to_list()[: int(p["start"])]
    base = fit(found, 0.0)
    for _ in range(int(p["rounds"])):
        value = relevance + fit(found, p["beta"]) - base
        new = [
            i
            for i in np.argsort(-np.round(value, 5), kind="stable")
            if ids[i] not in found and value[i] >= p["threshold"]
        ]
        if not new:
            break
        found += [ids[i] for i in new[: int(p["step"])]]
    return (found + [d for d in mine["doc_id"] if d not in found])[: int(run.frame["rank"].max())]


@pytest.mark.parametrize("k", [12, 200])
@pytest.mark.parametrize("beta", [-0.4, 0.1, 0.7])
def test_it_is_what_its_words_say(chat: Bench, ranking: Ranking, beta: float, k: int) -> None:
    run = retrieve.hybrid(chat, k=k)
    p = {"rounds": 3, "start": 2, "step": 2, "beta": beta, "threshold": 0.5}
    got = ranking(negative_feedback(run, chat, **p))
    asked = chat.queries["query_id"].gather_every(3).to_list()
    same = [got[q][:8] == one_at_a_time(run, chat, q, **p)[:8] for q in asked]
    # Turns that differ by less than the reference rounds to may change places.
    assert np.mean(same) > 0.9


def test_what_repeats_is_pushed_back(bench: Bench) -> None:
    """The same sentence three times: after the first, what else the question asks for comes before its copies."""
    ours = bench.with_queries(pl.DataFrame({"scope": ["ann"], "text": ["doctor today dentist tooth"]}))
    run = retrieve.bm25(ours)
    plain = run.frame["doc_id"].to_list()
    moved = negative_feedback(run, ours, start=1, step=1, rounds=3, beta=1.0, threshold=-9.0).frame["doc_id"].to_list()
    towards = (
        negative_feedback(run, ours, start=1, step=1, rounds=3, beta=-1.0, threshold=-9.0).frame["doc_id"].to_list()
    )
    assert moved[0] == towards[0] == plain[0]
    texts = dict(zip(ours.documents("turn").ids, ours.documents("turn").texts, strict=True))
    assert texts[moved[1]] != texts[moved[0]]
    assert texts[towards[1]] == texts[towards[0]]


@QUICK
@given(
    rounds=st.integers(1, 3),
    start=st.integers(1, 8),
    step=st.integers(1, 8),
    beta=st.floats(-1, 1),
    threshold=st.sampled_from([-99.0, -0.5, 0.0, 1.0]),
    k=st.sampled_from([1, 3, 9, 200]),
)
def test_laws(
    bench: Bench, ranking: Ranking, rounds: int, start: int, step: int, beta: float, threshold: float, k: int
) -> None:
    run = retrieve.bm25(bench, k=k)
    before = ranking(run)
    got = negative_feedback(run, bench, rounds=rounds, start=start, step=step, beta=beta, threshold=threshold)
    assert list(ranking(got)) == list(before)
    for query, documents in ranking(got).items():
        scope = query.split("/")[0]
        assert documents[:start] == before[query][:start]
        assert len(set(documents)) == len(documents) <= k
        assert all(d.startswith(scope) for d in documents)
        if k == 200:
            assert set(documents) == set(before[query])
    assert (got.frame.select(pl.col("score").diff().over("query_id"))["score"].drop_nulls() < 0).all()
    more = negative_feedback(run, bench, rounds=rounds + 1, start=start, step=step, beta=beta, threshold=threshold)
    for query, documents in ranking(more).items():
        n = min(start + step * rounds, len(documents)) if threshold == -99 else start
        assert documents[:n] == ranking(got)[query][:n]


@pytest.mark.parametrize("first", [retrieve.dense, retrieve.bm25, retrieve.hybrid, retrieve.combsum])
@pytest.mark.parametrize("k", [1, 4, 200])
def test_no_beta_no_change(chat: Bench, first: Callable[..., Run], k: int) -> None:
    run = first(chat, k=k)
    for threshold in (-5.0, 1.0):
        got = negative_feedback(run, chat, beta=0.0, threshold=threshold, start=2)
        assert got.frame["doc_id"].equals(run.frame["doc_id"])


def test_nothing_above_the_threshold_changes_nothing(chat: Bench) -> None:
    run = retrieve.hybrid(chat)
    assert negative_feedback(run, chat, beta=1.0, threshold=99.0).frame["doc_id"].equals(run.frame["doc_id"])


def test_a_question_alone_ranks_as_among_many(chat: Bench) -> None:
    run = retrieve.hybrid(chat)
    many = negative_feedback(run, chat, beta=0.4).frame
    for query in chat.queries["query_id"].gather_every(9):
        own = chat.with_queries(chat.queries.filter(pl.col("query_id") == query))
        alone = negative_feedback(
            replace(run, frame=run.frame.filter(pl.col("query_id") == query)), own, beta=0.4
        ).frame
        assert alone.equals(many.filter(pl.col("query_id") == query))


def test_it_reaches_turns_that_the_run_left_out(chat: Bench, ranking: Ranking) -> None:
    run = retrieve.bm25(chat, k=10)
    got = ranking(negative_feedback(run, chat, start=1, step=3, beta=1.0, threshold=-9.0))
    assert any(set(got[q]) - set(before) for q, before in ranking(run).items())


def test_words_alone_do_without_embeddings(world: Dataset) -> None:
    bench = Bench.of(world, encoder=None)
    run = retrieve.bm25(bench)
    got = negative_feedback(run, bench, start=1, step=1, beta=1.0, threshold=-9.0)
    assert not got.frame["doc_id"].equals(run.frame["doc_id"])


def test_words_add_up_to_bm25(chat: Bench) -> None:
    words = tokenize(chat.queries["text"].to_list())
    for rows, span, scores in bm25_scores(chat, level="turn"):
        for row, expected in zip(rows[:5], scores, strict=False):
            assert np.allclose(term_scores(chat, span, words[row]).sum(axis=0), expected, atol=1e-4)
    assert not term_scores(chat, span, ["zyzzyva"]).any()


def test_what_goes_in_is_kept_and_wrong_arguments(bench: Bench) -> None:
    run = replace(retrieve.bm25(bench), name="mine", provenance={"x": 1})
    got = negative_feedback(run, bench)
    assert (got.name, got.provenance, got.text_of is not None) == ("mine", {"x": 1}, True)
    none = replace(run, frame=run.frame.head(0))
    assert negative_feedback(none, bench).frame.equals(none.frame)
    for wrong, message in (
        ({"rounds": 0}, "rounds is 0"),
        ({"start": 0}, "start is 0"),
        ({"step": 0}, "step is 0"),
        ({"beta": 1.5}, "beta=1.5"),
        ({"beta": float("nan")}, "beta=nan"),
        ({"threshold": float("inf")}, "threshold=inf"),
    ):
        with pytest.raises(DataError, match=message):
            negative_feedback(run, bench, **wrong)
    with pytest.raises(DataError, match="give it a ranking of turns"):
        negative_feedback(retrieve.bm25(bench, level="session"), bench)
