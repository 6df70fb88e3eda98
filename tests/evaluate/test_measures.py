"""The measures agree with ir_measures (trec_eval, ndeval), with LongMemEval's own formula and with themselves."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import ir_measures
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import RR, P, R, Success, alpha_nDCG, nDCG

from memlab.errors import DataError
from memlab.evaluate import Measure, measure
from memlab.evaluate.measures import kendall_tau, score
from memlab.records import Qrels, run_from_scores
from memlab.registry import measures as NAMES

SEEDS = range(12)
SAME = {f"ndcg@{k}": nDCG @ k for k in (1, 3, 10, 100)} | {f"recall@{k}": R @ k for k in (1, 5, 10, 100)}
SAME |= {f"recall_any@{k}": Success @ k for k in (1, 5, 10)} | {f"precision@{k}": P @ k for k in (1, 10, 100)}
SAME |= {f"mrr@{k}": RR @ k for k in (1, 10)} | {"mrr": RR, "ndcg": nDCG}
SAME |= {f"alpha_ndcg@{k}": alpha_nDCG(alpha=0.5) @ k for k in (5, 10, 20)}


@pytest.mark.parametrize("seed", SEEDS)
def test_like_trec_eval_and_ndeval(case, seed):
    run, qrels = case(seed)
    judged = [
        ir_measures.Qrel(*row) for row in qrels.frame.select("query_id", "doc_id", "relevance", "subtopic").rows()
    ]
    ranked = [ir_measures.ScoredDoc(*row) for row in run.frame.select("query_id", "doc_id", "score").rows()]
    theirs = {(m.measure, m.query_id): m.value for m in ir_measures.iter_calc(list(SAME.values()), judged, ranked)}
    ours = score(run, qrels, list(SAME))
    assert set(ours["query_id"]) == set(qrels.frame.filter(pl.col("relevance") > 0)["query_id"])
    for name, their in SAME.items():
        for query, value in ours.select("query_id", name).iter_rows():
            assert value == pytest.approx(theirs.get((their, query), 0.0), abs=1e-9), (name, query)


def longmemeval(hits: list[int], relevant: int, k: int) -> float:
    """Their definition, in words: the first gain, then each later gain over log2 of its index from 1, plus 1."""

    def dcg(gains: list[int]) -> float:
        return gains[0] + sum(g / math.log2(i + 1) for i, g in enumerate(gains) if i >= 1)

    return dcg(hits[:k]) / dcg(sorted([1] * relevant + [0] * k, reverse=True)[:k])


@settings(deadline=None)
@given(st.lists(st.sampled_from([0, 1]), min_size=1, max_size=30), st.integers(0, 4), st.integers(1, 35))
def test_ndcg_longmemeval_is_their_formula(hits, missed, k):
    if sum(hits) + missed == 0:
        return
    docs = np.array([f"d{i}" for i in range(len(hits))])
    run = run_from_scores(np.array(["q"] * len(docs)), docs, -np.arange(len(docs), dtype=float), level="session", k=99)
    relevant = [d for d, h in zip(docs, hits, strict=True) if h] + [f"missed{i}" for i in range(missed)]
    judged = pl.DataFrame({"query_id": "q", "doc_id": relevant, "relevance": 1, "subtopic": relevant})
    got = score(run, Qrels(judged, "session"), f"ndcg_longmemeval@{k}").item(0, 1)
    assert got == pytest.approx(longmemeval(hits + [0] * 40, len(relevant), k), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_laws(case, seed):
    run, qrels = case(seed)
    depths, names = [1, 2, 3, 5, 8, 13, 40], ("recall_any", "recall", "recall_all")
    table = score(run, qrels, [f"{m}@{k}" for m, k in itertools.product(names, depths)])
    for k in depths:
        assert (table[f"recall_all@{k}"] <= table[f"recall@{k}"]).all()
        assert (table[f"recall@{k}"] <= table[f"recall_any@{k}"]).all()
        assert ((table[f"recall@{k}"] == 1) == (table[f"recall_all@{k}"] == 1)).all()
    for name, (low, high) in itertools.product(names, itertools.pairwise(depths)):
        assert (table[f"{name}@{low}"] <= table[f"{name}@{high}"]).all()
    everything = score(run, qrels, [Measure(n, 10) for n in NAMES]).drop("query_id").to_numpy()
    assert ((everything >= 0) & (everything <= 1 + 1e-12)).all()


def test_what_returns_less_is_more_precise(case):
    """Precision of what is returned and F1, by their definitions, over a run that was cut at different depths."""
    run, qrels = case(5)
    for k in (1, 3, 10):
        cut = run.top(k)
        for query, precise, both in score(cut, qrels, ["precision_returned", "f1"]).iter_rows():
            found = set(cut.frame.filter(query_id=query)["doc_id"])
            wanted = set(qrels.frame.filter((pl.col("query_id") == query) & (pl.col("relevance") > 0))["doc_id"])
            hits = len(found & wanted)
            assert precise == (hits / len(found) if found else 0)
            assert both == pytest.approx(2 * hits / (len(found) + len(wanted)))


@given(st.permutations("abcde"))
def test_kendall_tau_counts_pairs(stated):
    pairs = [(stated.index(a) < stated.index(b)) for a, b in itertools.combinations("abcde", 2)]
    assert kendall_tau(stated, "abcde") == pytest.approx(2 * sum(pairs) / len(pairs) - 1)
    assert kendall_tau(stated[:1], "abcde") == kendall_tau([], "abcde") == 0
    for stated_twice, reference in (("aa", "ab"), ("a", "a")):
        with pytest.raises(DataError):
            kendall_tau(stated_twice, reference)


def test_measures_are_values_and_other_texts_none():
    assert measure("recall_all@10") == measure(Measure("recall_all", 10))
    assert str(measure(" ndcg @ 5 ")) == "ndcg@5"
    for text in ("recal@10", "recall@ten", "recall@", "recall@0", ""):
        with pytest.raises(DataError):
            measure(text)


def test_refusals(case):
    run, qrels = case(2)
    query, doc = run.frame.row(0)[:2]
    twice = replace(run, frame=pl.concat([run.frame, run.frame.head(1).with_columns(rank=pl.lit(9999, pl.Int32))]))
    own = replace(qrels, frame=qrels.frame.head(1).with_columns(query_id=pl.lit(query), relevance=1))
    for args, fault in (
        ((run, replace(qrels, level="session"), "mrr"), "one level"),
        ((run, qrels, "precision"), "precision@10"),
        ((twice, own, "mrr"), f"'{doc}' twice for query '{query}'"),
        ((replace(run, frame=run.frame.filter(pl.col("rank") > 1)), qrels, "mrr"), "ranks from 1"),
        ((run, replace(qrels, frame=pl.concat([qrels.frame, qrels.frame])), "mrr"), "qrels judge document"),
    ):
        with pytest.raises(DataError, match=fault):
            score(*args)
