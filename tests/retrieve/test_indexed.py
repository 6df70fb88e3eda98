"""The two paths of one contract: by matrix product and bm25s, and through LanceDB."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import memlab
from memlab.errors import DataError
from memlab.pipelines import pipeline
from memlab.records import RUN_SCHEMA, Dataset, Run
from memlab.retrieve import Bench, bm25, dense, hybrid, rrf
from memlab.retrieve.passages import LONG
from memlab.store import MemoryStore, search

Ranking = Callable[[Run], dict[str, list[str]]]


def stored(data: Dataset, place: Path) -> Bench:
    store = MemoryStore.open(place)
    bench = Bench.of(data, encoder="hashing:64", store=store, progress=False)
    assert bench.turn_vectors is not None  # encoded here
    store.search.create_indexes(bench.encoder)
    return bench


@pytest.fixture(scope="module")
def many(talk: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return stored(talk, tmp_path_factory.mktemp("many") / "store")


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    data = memlab.sample(["owen"])
    assert len(data.scopes) == 1
    return stored(data, tmp_path_factory.mktemp("one") / "store")


def assert_same_up_to_float_ties(exact: Run, indexed: Run) -> None:
    """The same scores rank by rank, and another document only where its score is the same."""
    assert indexed.frame.select("query_id", "rank").equals(exact.frame.select("query_id", "rank"))
    one, two = exact.frame["score"].to_numpy(), indexed.frame["score"].to_numpy()
    np.testing.assert_allclose(one, two, atol=1e-5)
    assert (exact.frame["doc_id"] == indexed.frame["doc_id"]).mean() > 0.99
    score = dict(zip(exact.frame.select("query_id", "doc_id").iter_rows(), one, strict=True))
    for pair, value in zip(indexed.frame.select("query_id", "doc_id").iter_rows(), two, strict=True):
        assert abs(score.get(pair, value) - value) < 1e-5


@pytest.mark.parametrize("k", [1, 10, 10_000])
def test_dense_agrees(many: Bench, k: int) -> None:
    indexed = dense(many, k=k, path="indexed")
    assert dict(indexed.frame.schema) == RUN_SCHEMA
    assert indexed.level == "turn"
    assert_same_up_to_float_ties(dense(many, k=k), indexed)


def test_dense_agrees_through_a_vector_index(one: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "INDEXED_SCOPE", 50)
    made = one.store.search.create_indexes(one.encoder)
    assert made.filter(index="IvfFlat")["made"].item() in ("made", "there")
    exact = dense(one, k=10_000).frame
    score = dict(zip(exact.select("query_id", "doc_id").iter_rows(), exact["score"], strict=True))
    indexed = dense(one, k=10, path="indexed").frame
    # Exact search ranks a long turn by its best passage, the index compares it whole: only there may scores differ.
    turns = one.documents("turn")
    long = set(turns.ids[turns.n_tokens > LONG])
    pairs = [pair for pair in indexed.select("query_id", "doc_id").iter_rows() if pair[1] not in long]
    found = indexed.filter(~pl.col("doc_id").is_in(list(long)))
    np.testing.assert_allclose(found["score"], [score[pair] for pair in pairs], atol=1e-5)
    # What lies in a partition that is not probed is missing.
    first = exact.filter(pl.col("rank") <= 10).select("query_id", "doc_id")
    assert first.join(indexed, on=["query_id", "doc_id"], how="semi").height > 0.8 * first.height


def test_equal_texts_stand_in_the_order_of_the_exact_path(world: Dataset, tmp_path: Path, ranking: Ranking) -> None:
    bench = stored(world, tmp_path / "store")
    seen = {"ann/s1/1", "ann/s1/3", "ann/s3/1", "ann/s4/3"}
    exact = ranking(dense(bench))
    assert ranking(dense(bench, path="indexed")) == exact
    found = ranking(bm25(bench, path="indexed"))["ann/q0"]
    assert [doc for doc in found if doc in seen] == [doc for doc in exact["ann/q0"] if doc in seen]


def test_bm25_finds_the_same_words(many: Bench, one: Bench, ranking: Ranking) -> None:
    """In one scope the statistics are those of the table too; tokenizers, stop words, k1 and b still differ."""
    exact, indexed = ranking(bm25(one, k=10)), ranking(bm25(one, k=10, path="indexed"))
    overlap = np.array([len(set(exact[q]) & set(indexed[q])) / len(indexed[q]) for q in indexed])
    # Measured over seeds 0 to 4: 0.83 to 0.88, and 0.91 to 0.99 of the first places.
    assert overlap.mean() > 0.75
    assert np.mean([exact[q][0] in indexed[q] for q in indexed]) > 0.85
    # A query without a known word finds nothing here, and the first turns at score 0 there.
    matched = bm25(one, k=10).frame.filter(pl.col("score") > 0)["query_id"].unique()
    assert set(indexed) <= set(exact)
    assert len(set(matched) - set(indexed)) <= 0.02 * len(exact)
    # Where scopes share the table, a search still never leaves its own.
    found = bm25(many, path="indexed").frame.join(many.queries.select("query_id", "scope"), on="query_id")
    assert found.height
    assert found.select(pl.col("doc_id").str.starts_with(pl.col("scope") + "/").all()).item()


def test_words_that_every_question_has_do_not_search(one: Bench) -> None:
    asked = pl.DataFrame(
        {"scope": one.queries["scope"][:2], "text": ["garden watering", "How much is the garden watering?"]}
    )
    run = bm25(one.with_queries(asked), path="indexed", k=20).frame
    first, second = (run.filter(query_id=f"query-{i}").drop("query_id") for i in range(2))
    assert first.height
    assert first.equals(second)


@pytest.mark.parametrize("text", ["", "???", "zyzzyva qwxt", "the of and", "*", "a AND (b OR", '"half', "content:x"])
def test_odd_questions_never_fail(one: Bench, text: str) -> None:
    bench = one.with_queries(pl.DataFrame({"scope": one.queries["scope"][:1], "text": [text]}))
    assert bm25(bench, path="indexed", k=3).frame.height <= 3
    assert hybrid(bench, path="indexed", k=3).frame.height == 3


def test_hybrid_is_the_fusion_of_both(one: Bench, ranking: Ranking) -> None:
    parts = [dense(one, k=20, path="indexed"), bm25(one, k=20, path="indexed")]
    assert ranking(hybrid(one, k=20, path="indexed")) == ranking(rrf(parts, k=20))


def test_a_pipeline_goes_on_from_the_index(one: Bench) -> None:
    run = pipeline("hybrid(k=30, path='indexed') | mmr(k=5) | budget(tokens=300)").run(one)
    assert run.frame["query_id"].n_unique() == one.queries.height
    assert run.provenance["versions"] == one.provenance["versions"]
    assert run.text_of(run.frame["doc_id"].head(1).to_list())[0] in one.documents("turn").texts


def test_turns_that_the_bench_does_not_hold_are_left_out(talk: Dataset, many: Bench) -> None:
    part = talk.take(talk.scopes[:1])
    bench = Bench.of(part, encoder="hashing:64", store=many.store, progress=False)
    assert_same_up_to_float_ties(dense(bench, k=10), dense(bench, k=10, path="indexed"))
    assert bm25(bench, path="indexed").frame["doc_id"].str.starts_with(talk.scopes[0] + "/").all()


def test_what_the_indexes_cannot_do(one: Bench) -> None:
    for retriever in (dense, bm25, hybrid):
        with pytest.raises(DataError, match="path='indexed' ranks turns; use path='exact' for sessions"):
            retriever(one, level="session", path="indexed")
    for given in ({"k1": 1.2}, {"b": 0.5}):
        with pytest.raises(DataError, match="has the index's own k1 and b"):
            bm25(one, path="indexed", **given)
