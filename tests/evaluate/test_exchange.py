"""What two rankings of the same candidates exchange, by hand and by law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import memlab
from memlab import Bench, Dataset, pipeline
from memlab.errors import DataError
from memlab.evaluate.exchange import exchange, exchanged


@pytest.fixture(scope="module")
def data() -> Dataset:
    return memlab.sample(["owen"])


@pytest.fixture(scope="module")
def bench(data: Dataset) -> Bench:
    return Bench.of(data, encoder="hashing:32", progress=False)


def test_sides_by_hand(data: Dataset, bench: Bench) -> None:
    plain = pipeline("bm25").run(bench)
    query, scope, text = bench.queries.row(0)[:3]
    del scope, text
    first = plain.frame.filter(pl.col("query_id") == query)["doc_id"].to_list()
    order = [first[0], first[3], first[2], first[1], *first[4:]]
    frame = plain.frame.filter(pl.col("query_id") == query).with_columns(doc_id=pl.Series(order))
    asked = data.questions.filter(pl.col("query_id") == query).with_columns(evidence=pl.lit([first[1]]))
    table = exchanged(plain, replace(plain, frame=frame), asked, bench, k=2)
    assert table.select("doc_id", "side", "rank", "evidence", "expected").rows() == [
        (first[1], "out", 2, True, 1.0),
        (first[3], "in", 4, False, 0.0),
    ]
    documents = bench.documents("turn")
    stays, *moved = (documents.vectors()[documents.at(pl.Series([doc]))[0]] for doc in (first[0], first[1], first[3]))
    assert table["likeness"].to_list() == pytest.approx([float(stays @ one) for one in moved], abs=1e-6)


@pytest.mark.parametrize(
    "text", ["bm25 | mmr(lambda_=0.3)", "bm25 | expand_cluster", "bm25 | fill_sessions(sessions=8)"]
)
def test_the_balance_is_the_change_in_evidence_found(data: Dataset, bench: Bench, text: str) -> None:
    plain, chosen = pipeline("bm25").run(bench), pipeline(text).run(bench)
    table = exchanged(plain, chosen, data.questions, bench, k=8)
    held = data.questions.select("query_id", doc_id="evidence").explode("doc_id").drop_nulls()

    def found(run_frame: pl.DataFrame) -> int:
        return run_frame.filter(pl.col("rank") <= 8).join(held, on=["query_id", "doc_id"], how="semi").height

    gained = table.filter(pl.col("evidence"))["side"].to_list()
    assert gained.count("in") - gained.count("out") == found(chosen.frame) - found(plain.frame)
    assert table.select("query_id", "doc_id").is_duplicated().sum() == 0
    assert (table.filter(pl.col("side") == "out")["rank"] <= 8).all()
    assert (table.filter(pl.col("side") == "in")["rank"].drop_nulls() > 8).all()
    assert table["side"].n_unique() == 2
    assert table["likeness"].drop_nulls().is_between(-1.0001, 1.0001).all()
    summed = exchange(table, seed=1)
    for side, n, share, low, high in summed.select("side", "n", "share", "low", "high").iter_rows():
        part = table.filter(pl.col("side") == side)
        assert (n, share) == (part.height, pytest.approx(part["evidence"].mean()))
        assert low <= share <= high


def test_equal_rankings_exchange_nothing(data: Dataset, bench: Bench) -> None:
    plain = pipeline("bm25").run(bench)
    table = exchanged(plain, plain, data.questions, bench)
    assert table.height == 0
    assert exchange(table).rows() == [(side, 0, *[None] * 5) for side in ("out", "in")]


def test_expected_is_the_share_of_evidence_at_a_rank(data: Dataset, bench: Bench) -> None:
    plain, chosen = pipeline("bm25").run(bench), pipeline("bm25 | mmr(lambda_=0.2)").run(bench)
    asked = data.questions.filter(pl.col("evidence").list.len() > 0)
    held = asked.select("query_id", doc_id="evidence").explode("doc_id").with_columns(hit=1)
    ranked = plain.frame.join(asked, on="query_id", how="semi").join(held, on=["query_id", "doc_id"], how="left")
    share = dict(ranked.group_by("rank").agg(pl.col("hit").fill_null(0).mean()).iter_rows())
    for rank, expected in exchanged(plain, chosen, data.questions, bench).select("rank", "expected").iter_rows():
        assert expected == pytest.approx(share[rank])


def test_without_embeddings_there_is_no_likeness(data: Dataset) -> None:
    bare = Bench.of(data, encoder=None, progress=False)
    plain, chosen = pipeline("bm25").run(bare), pipeline("bm25 | fill_sessions(sessions=8)").run(bare)
    table = exchanged(plain, chosen, data.questions, bare)
    assert table.height
    assert table["likeness"].null_count() == table.height
    assert exchange(table)["likeness"].to_list() == [None, None]


def test_sessions_are_exchanged_too(data: Dataset, bench: Bench) -> None:
    plain, chosen = (pipeline(text).run(bench, level="session") for text in ("bm25", "dense"))
    table = exchanged(plain, chosen, data.questions, bench, k=3)
    assert set(table["doc_id"]) <= set(bench.documents("session").ids)
    assert np.isin(table["side"].unique().to_list(), ("out", "in")).all()


def test_runs_that_cannot_be_compared(data: Dataset, bench: Bench) -> None:
    plain = pipeline("bm25").run(bench)
    with pytest.raises(DataError, match="compare level by level"):
        exchanged(plain, pipeline("bm25").run(bench, level="session"), data.questions, bench)
    with pytest.raises(DataError, match="k is 0"):
        exchanged(plain, plain, data.questions, bench, k=0)
