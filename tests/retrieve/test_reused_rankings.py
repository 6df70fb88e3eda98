"""What one stage ranked is not ranked again by the next, and numbers give what names gave."""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
import pytest

import memlab
from memlab import retrieve
from memlab.records import run_from_scores
from memlab.retrieve.rank_fusion import rank_by_summed_gains


def test_hybrid_takes_the_rankings_of_dense_and_bm25(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = memlab.Bench.of(memlab.sample(turns=60), encoder="hashing:64")
    expected = retrieve.hybrid(bench.with_changes(), k=20).frame
    ranked = [retrieve.dense(bench, k=20), retrieve.bm25(bench, k=20)]
    with monkeypatch.context() as patch:
        for name in ("dense", "bm25"):
            patch.setattr(sys.modules[f"memlab.retrieve.{name}"], "rank_scope_scores", None)
        assert retrieve.hybrid(bench, k=20).frame.equals(expected)
        assert retrieve.dense(bench, k=20) is ranked[0]
        with pytest.raises(memlab.DataError):
            retrieve.bm25(bench, k=20, b=0.1)
    asked = bench.with_queries(bench.queries.head(1))
    assert retrieve.dense(asked, k=20).frame.height < ranked[0].frame.height


@pytest.mark.parametrize("n_lists", [2, 3])
def test_gains_are_summed_as_by_name(n_lists: int) -> None:
    rng = np.random.default_rng(0)
    lists = []
    for _ in range(n_lists):
        pairs = pl.DataFrame(
            {
                "query_id": rng.permutation(np.repeat([f"q{n}" for n in range(5)], 20)),
                "doc_id": [f"d{n}" for n in rng.integers(0, 30, 100)],
                "gain": rng.integers(0, 4, 100) / 3,
            }
        )
        lists.append(pairs.unique(["query_id", "doc_id"], keep="first", maintain_order=True))
    by_name = (
        pl.concat(lists)
        .group_by("query_id", "doc_id", maintain_order=True)
        .agg(pl.col("gain").sum())
    )
    expected = run_from_scores(
        by_name["query_id"], by_name["doc_id"], by_name["gain"], level="turn", k=9
    )
    assert rank_by_summed_gains(lists, level="turn", k=9).frame.equals(expected.frame)


def test_rows_of_a_query_need_not_be_neighbours() -> None:
    query_ids, scores = ["b", "a", "b", "a", "b"], [1.0, 2.0, 3.0, 2.0, 3.0]
    ranked = run_from_scores(
        np.array(query_ids),
        np.array(["1", "2", "3", "4", "5"]),
        np.array(scores),
        level="turn",
        k=2,
    )
    assert ranked.frame["query_id"].to_list() == ["b", "b", "a", "a"]
    assert ranked.frame["doc_id"].to_list() == ["3", "5", "2", "4"]
