"""Measures agree with ir_measures, LongMemEval's formula and themselves; chance and ceiling with all rankings."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import ir_measures
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import RR, P, R, SetF, SetP, Success, alpha_nDCG, nDCG

from memlab.errors import DataError
from memlab.evaluate import Measure, read_measure
from memlab.evaluate.evaluation_report import ceiling_of_measure, chance_of_measure
from memlab.evaluate.ranking_measures import kendall_tau, score_queries
from memlab.records import Qrels, run_from_scores
from memlab.registry import measures as NAMES

SAME = {f"ndcg@{k}": nDCG @ k for k in (1, 3, 100)} | {f"recall@{k}": R @ k for k in (1, 5, 100)}
SAME |= {f"recall_any@{k}": Success @ k for k in (1, 5)} | {
    f"precision@{k}": P @ k for k in (1, 100)
}
SAME |= {"mrr@1": RR @ 1, "mrr": RR, "ndcg": nDCG, "precision_returned": SetP, "f1": SetF}
SAME |= {f"alpha_ndcg@{k}": alpha_nDCG(alpha=0.5) @ k for k in (5, 20)}


@pytest.mark.parametrize("seed", range(4))
def test_like_trec_eval_and_ndeval(case, seed):
    run, qrels = case(seed)
    judged = qrels.frame.select("query_id", "doc_id", "relevance", "subtopic").rows()
    ranked = run.frame.select("query_id", "doc_id", "score").rows()
    calculated = ir_measures.iter_calc(
        list(SAME.values()),
        [ir_measures.Qrel(*row) for row in judged],
        [ir_measures.ScoredDoc(*row) for row in ranked],
    )
    theirs = {(m.measure, m.query_id): m.value for m in calculated}
    ours = score_queries(run, qrels, [*SAME, "recall_all@5"])
    assert ours["recall_all@5"].to_list() == [float(value == 1) for value in ours["recall@5"]]
    assert set(ours["query_id"]) == set(qrels.frame.filter(pl.col("relevance") > 0)["query_id"])
    for name, their in SAME.items():
        for query, value in ours.select("query_id", name).iter_rows():
            assert value == pytest.approx(theirs.get((their, query), 0.0), abs=1e-9), (name, query)


def longmemeval(hits: list[int], relevant: int, k: int) -> float:
    """Their definition, in words: the first gain, then each later gain over log2 of its index from 1, plus 1."""

    def dcg(gains: list[int]) -> float:
        return gains[0] + sum(g / math.log2(i + 1) for i, g in enumerate(gains) if i >= 1)

    return dcg(hits[:k]) / dcg(sorted([1] * relevant + [0] * k, reverse=True)[:k])


@given(
    st.lists(st.sampled_from([0, 1]), min_size=1, max_size=30),
    st.integers(1, 4),
    st.integers(1, 35),
)
def test_ndcg_longmemeval_is_their_formula(hits, missed, k):
    docs = np.array([f"d{i}" for i in range(len(hits))])
    run = run_from_scores(
        np.array(["q"] * len(docs)), docs, -np.arange(len(docs), dtype=float), level="session", k=99
    )
    relevant = [d for d, h in zip(docs, hits, strict=True) if h] + [
        f"missed{i}" for i in range(missed)
    ]
    judged = pl.DataFrame(
        {"query_id": "q", "doc_id": relevant, "relevance": 1, "subtopic": relevant}
    )
    got = score_queries(run, Qrels(judged, "session"), f"ndcg_longmemeval@{k}").item(0, 1)
    assert got == pytest.approx(longmemeval(hits + [0] * 40, len(relevant), k), abs=1e-12)


@given(st.permutations("abcde"))
def test_kendall_tau_counts_pairs(stated):
    pairs = [(stated.index(a) < stated.index(b)) for a, b in itertools.combinations("abcde", 2)]
    assert kendall_tau(stated, "abcde") == pytest.approx(2 * sum(pairs) / len(pairs) - 1)
    assert kendall_tau(stated[:1], "abcde") == kendall_tau([], "abcde") == 0
    for stated_twice, reference in (("aa", "ab"), ("a", "a")):
        with pytest.raises(DataError):
            kendall_tau(stated_twice, reference)


OPEN = ("alpha_ndcg", "precision_returned", "f1")
"""Measures whose value by chance depends on more than counts."""


@pytest.mark.parametrize(("n", "m"), [(5, 2), (5, 5), (1, 1)])
def test_chance_and_ceiling_against_every_ranking(n, m):
    orders = list(itertools.permutations(range(n)))
    queries = np.repeat([f"q{i}" for i in range(len(orders))], n)
    docs = np.array([f"s{d}/{d}" for d in np.concatenate(orders)])
    run = run_from_scores(
        queries, docs, np.tile(-np.arange(n, dtype=float), len(orders)), level="turn", k=n
    )
    relevant = pl.DataFrame({"doc_id": [f"s{d}/{d}" for d in range(m)]})
    judged = pl.DataFrame({"query_id": np.unique(queries)}).join(relevant, how="cross")
    judged = judged.with_columns(relevance=pl.lit(1), subtopic=pl.col("doc_id"))
    wanted = [
        Measure(name, k) for name in NAMES for k in (1, 3, 10, None) if name != "precision" or k
    ]
    table = score_queries(run, Qrels(judged, "turn"), wanted)
    for each in wanted:
        if each.name not in (
            "precision_returned",
            "f1",
        ):  # best by a ranking that returns the evidence alone
            assert ceiling_of_measure(n, m, each).item() == pytest.approx(
                table[str(each)].max(), abs=1e-12
            ), each
        if each.name in OPEN:
            assert np.isnan(chance_of_measure(n, m, each)).all()
        else:
            assert chance_of_measure(n, m, each).item() == pytest.approx(
                table[str(each)].mean(), abs=1e-12
            ), each


def test_refusals(case):
    for n, m in ((5, 0), (5, 6)):
        with pytest.raises(DataError, match=f"{m} evidence items among {n}"):
            chance_of_measure([9, n], [1, m], "recall@10")
    assert str(read_measure(" ndcg @ 5 ")) == "ndcg@5"
    for text in ("recal@10", "recall@ten", "recall@", "recall@0", ""):
        with pytest.raises(DataError):
            read_measure(text)
    run, qrels = case(2)
    query, doc = run.frame.row(0)[:2]
    twice = replace(
        run,
        frame=pl.concat([run.frame, run.frame.head(1).with_columns(rank=pl.lit(9999, pl.Int32))]),
    )
    own = replace(
        qrels, frame=qrels.frame.head(1).with_columns(query_id=pl.lit(query), relevance=1)
    )
    for args, fault in (
        ((run, replace(qrels, level="session"), "mrr"), "one level"),
        ((run, qrels, "precision"), "precision@10"),
        ((twice, own, "mrr"), f"'{doc}' twice for query '{query}'"),
        ((replace(run, frame=run.frame.filter(pl.col("rank") > 1)), qrels, "mrr"), "ranks from 1"),
        (
            (run, replace(qrels, frame=pl.concat([qrels.frame, qrels.frame])), "mrr"),
            "qrels judge document",
        ),
    ):
        with pytest.raises(DataError, match=fault):
            score_queries(*args)
