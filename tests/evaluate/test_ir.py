"""``RAll`` in ``ir_measures`` is memlab's ``recall_all``."""

from __future__ import annotations

import ir_measures
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from memlab.evaluate import score
from memlab.evaluate.ir import RAll
from memlab.records import Qrels, Run


def qrels_of(judged: dict[str, dict[str, int]]) -> Qrels:
    rows = [(q, d, r, "s") for q, docs in judged.items() for d, r in docs.items()]
    types = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32, "subtopic": pl.String}
    return Qrels(pl.DataFrame(rows, schema=types, orient="row"), "turn")


def run_of(ranked: dict[str, list[str]]) -> Run:
    rows = [(q, d, i, -float(i)) for q, docs in ranked.items() for i, d in enumerate(docs, 1)]
    types = {"query_id": pl.String, "doc_id": pl.String, "rank": pl.Int32, "score": pl.Float64}
    return Run(pl.DataFrame(rows, schema=types, orient="row"), "turn")


DOCS = [f"d{i}" for i in range(6)]
RANKED = st.dictionaries(st.sampled_from("abc"), st.lists(st.sampled_from(DOCS), unique=True), min_size=1)
JUDGED = st.dictionaries(
    st.sampled_from("abc"), st.dictionaries(st.sampled_from(DOCS), st.integers(1, 3), min_size=1), min_size=1
)


@given(RANKED, JUDGED, st.integers(1, 7))
def test_it_is_recall_all(ranked: dict[str, list[str]], judged: dict[str, dict[str, int]], k: int) -> None:
    scores = {query: {doc: -float(i) for i, doc in enumerate(docs)} for query, docs in ranked.items()}
    theirs = {(m.query_id, str(m.measure)): m.value for m in ir_measures.iter_calc([RAll @ k, RAll], judged, scores)}
    ours = score(run_of(ranked), qrels_of(judged), [f"recall_all@{k}", "recall_all"])
    for query, at_k, whole in ours.iter_rows():
        assert (theirs[query, f"RAll@{k}"], theirs[query, "RAll"]) == (at_k, whole)


def test_it_is_read_from_text_and_stands_beside_the_librarys_own() -> None:
    assert ir_measures.parse_measure("RAll@10") == RAll @ 10
    judged = {"q": {"a": 1, "b": 1}, "r": {"a": 1}, "none": {"a": 0}}
    ranked = {"q": {"a": 2.0, "x": 1.0, "b": 0.5}, "r": {"a": 1.0}}
    wanted = [ir_measures.parse_measure(text) for text in ("RAll@2", "RAll@3", "R@2", "nDCG@2")]
    means = ir_measures.calc_aggregate(wanted, judged, ranked)
    assert [round(means[measure], 3) for measure in wanted[:3]] == [0.333, 0.667, 0.5]
