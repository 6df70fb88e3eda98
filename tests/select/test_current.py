"""What holds before what held."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memlab
from memlab import datasets
from memlab.errors import DataError
from memlab.retrieve import Bench
from memlab.select import current

DATA = datasets.load("data/facts/updates.jsonl")
BENCH = Bench.of(DATA, encoder="hashing", progress=False)
VECTORS = BENCH.documents("turn").vectors().astype(np.float64)
PLAIN = memlab.pipeline("dense").run(BENCH)


@pytest.mark.slow
@given(similarity=st.floats(-1, 1), candidates=st.integers(1, 30))
def test_only_the_first_change_places_and_the_later_of_likes_is_first(similarity: float, candidates: int) -> None:
    ranked = current(PLAIN, BENCH, similarity=similarity, candidates=candidates)
    both = PLAIN.frame.select("query_id", "rank", "doc_id").join(
        ranked.frame.select("query_id", "rank", new="doc_id"), on=["query_id", "rank"]
    )
    assert both.height == PLAIN.frame.height
    rest = both.filter(pl.col("rank") > candidates)
    assert (rest["doc_id"] == rest["new"]).all()
    first = both.filter(pl.col("rank") <= candidates).group_by("query_id").agg("doc_id", "new")
    assert (first["doc_id"].list.sort() == first["new"].list.sort()).all()
    for (query,), part in both.filter(pl.col("rank") <= candidates).group_by("query_id"):
        at = BENCH.documents("turn").at(part.sort("rank")["new"])
        told = BENCH.turns[at]
        earlier, later = np.triu_indices(len(at), 1)
        alike = (VECTORS[at] @ VECTORS[at].T).round(6)[earlier, later] >= similarity
        alike &= told["speaker"].to_numpy()[earlier] == told["speaker"].to_numpy()[later]
        alike &= told["session_id"].to_numpy()[earlier] != told["session_id"].to_numpy()[later]
        times = told["timestamp"].to_numpy()
        assert (times[earlier][alike] >= times[later][alike]).all(), query


def test_it_brings_what_holds_to_the_front_in_people_s_words() -> None:
    from memlab.evaluate.stale import stale_table

    runs = [PLAIN, current(PLAIN, BENCH, similarity=0.2)]
    before, after = stale_table(runs, DATA)["current first"]
    assert after > before
    for k in (10, 20):
        shares = stale_table(runs, DATA, k=k)
        assert shares[f"stale@{k}"].n_unique() == shares[f"current@{k}"].n_unique() == 1


def test_it_refuses() -> None:
    with pytest.raises(DataError, match="a cosine lies between"):
        current(PLAIN, BENCH, similarity=2)
    with pytest.raises(DataError, match="ranking of turns"):
        current(memlab.pipeline("dense").run(BENCH, level="session"), BENCH)
