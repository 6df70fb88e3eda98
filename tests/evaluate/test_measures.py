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
from memlab.evaluate import (
    Measure,
    kendall_tau,
    measure,
    mrr,
    ndcg,
    ndcg_longmemeval,
    precision,
    recall,
    recall_all,
    recall_any,
    score,
)
from memlab.records import Qrels, Run, run_from_scores
from memlab.registry import measures as NAMES

SEEDS = range(12)


def reference(run: Run, qrels: Qrels, measures: dict[str, object]) -> dict[str, dict[str, float]]:
    judged = [
        ir_measures.Qrel(q, d, r, s)
        for q, d, r, s in qrels.frame.select("query_id", "doc_id", "relevance", "subtopic").iter_rows()
    ]
    ranked = [ir_measures.ScoredDoc(q, d, s) for q, d, s in run.frame.select("query_id", "doc_id", "score").iter_rows()]
    found: dict[str, dict[str, float]] = {name: {} for name in measures}
    names = {theirs: ours for ours, theirs in measures.items()}
    for metric in ir_measures.iter_calc(list(measures.values()), judged, ranked):
        found[names[metric.measure]][metric.query_id] = metric.value
    return found


def assert_equal(run: Run, qrels: Qrels, measures: dict[str, object]) -> None:
    ours = score(run, qrels, list(measures))
    for name, values in reference(run, qrels, measures).items():
        mine = dict(zip(ours["query_id"], ours[name], strict=True))
        assert mine.keys() == set(qrels.frame.filter(pl.col("relevance") > 0)["query_id"])
        for query, value in mine.items():
            assert value == pytest.approx(values.get(query, 0.0), abs=1e-9), (name, query)


@pytest.mark.parametrize("seed", SEEDS)
def test_like_trec_eval(case, seed):
    run, qrels = case(seed)
    same = {f"ndcg@{k}": nDCG @ k for k in (1, 3, 10, 100)} | {f"recall@{k}": R @ k for k in (1, 5, 10, 100)}
    same |= {f"recall_any@{k}": Success @ k for k in (1, 5, 10)} | {f"precision@{k}": P @ k for k in (1, 10, 100)}
    same |= {f"mrr@{k}": RR @ k for k in (1, 10)} | {"mrr": RR, "ndcg": nDCG}
    assert_equal(run, qrels, same)


@pytest.mark.parametrize("seed", SEEDS)
def test_alpha_ndcg_like_ndeval(case, seed):
    run, qrels = case(seed)
    assert_equal(run, qrels, {f"alpha_ndcg@{k}": alpha_nDCG(alpha=0.5) @ k for k in (5, 10, 20)})


def longmemeval(hits: list[int], relevant: int, k: int) -> float:
    """Their definition, in words: the first gain, then each later gain over log2 of its index from 1, plus 1."""

    def dcg(gains: list[int]) -> float:
        return gains[0] + sum(g / math.log2(i + 1) for i, g in enumerate(gains) if i >= 1)

    return dcg(hits[:k]) / dcg(sorted([1] * relevant + [0] * k, reverse=True)[:k])


@settings(deadline=None)
@given(
    hits=st.lists(st.sampled_from([0, 1]), min_size=1, max_size=30),
    missed=st.integers(0, 4),
    k=st.integers(1, 35),
)
def test_ndcg_longmemeval_is_their_formula(hits, missed, k):
    if sum(hits) + missed == 0:
        return
    docs = [f"d{i}" for i in range(len(hits))]
    run = run_from_scores(
        np.array(["q"] * len(docs)), np.array(docs), -np.arange(len(docs), dtype=float), level="session", k=99
    )
    relevant = [d for d, h in zip(docs, hits, strict=True) if h] + [f"missed{i}" for i in range(missed)]
    judged = pl.DataFrame({"query_id": "q", "doc_id": relevant, "relevance": 1, "subtopic": relevant})
    got = score(run, Qrels(judged, "session"), ndcg_longmemeval @ k).item(0, 1)
    assert got == pytest.approx(longmemeval(hits + [0] * 40, len(relevant), k), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_laws(case, seed):
    run, qrels = case(seed)
    depths = [1, 2, 3, 5, 8, 13, 40]
    table = score(run, qrels, [m @ k for m, k in itertools.product((recall_any, recall, recall_all), depths)])
    for k in depths:
        assert (table[f"recall_all@{k}"] <= table[f"recall@{k}"]).all()
        assert (table[f"recall@{k}"] <= table[f"recall_any@{k}"]).all()
        assert ((table[f"recall@{k}"] == 1) == (table[f"recall_all@{k}"] == 1)).all()
    for name, (low, high) in itertools.product(("recall_any", "recall", "recall_all"), itertools.pairwise(depths)):
        assert (table[f"{name}@{low}"] <= table[f"{name}@{high}"]).all()
    everything = score(run, qrels, [Measure(n, 10) for n in NAMES]).drop("query_id").to_numpy()
    assert ((everything >= 0) & (everything <= 1 + 1e-12)).all()


def test_what_returns_less_is_more_precise(case):
    """Precision of what is returned and F1, by their definitions, over a run that was cut at different depths."""
    run, qrels = case(5)
    for k in (1, 3, 10):
        cut, table = run.top(k), score(run.top(k), qrels, ["precision_returned", "f1", "precision_returned@2", "f1@2"])
        for query, precise, both, *_ in table.iter_rows():
            found = set(cut.frame.filter(query_id=query)["doc_id"])
            wanted = set(qrels.frame.filter((pl.col("query_id") == query) & (pl.col("relevance") > 0))["doc_id"])
            hits = len(found & wanted)
            assert precise == (hits / len(found) if found else 0)
            assert both == pytest.approx(2 * hits / (len(found) + len(wanted)))
        if k <= 2:
            assert (table["precision_returned"] == table["precision_returned@2"]).all()
            assert (table["f1"] == table["f1@2"]).all()


@given(st.permutations("abcde"))
def test_kendall_tau_counts_pairs(stated):
    pairs = [(stated.index(a) < stated.index(b)) for a, b in itertools.combinations("abcde", 2)]
    assert kendall_tau(stated, "abcde") == pytest.approx(2 * sum(pairs) / len(pairs) - 1)
    assert kendall_tau(stated[:1], "abcde") == kendall_tau([], "abcde") == 0
    for stated_twice, reference in (("aa", "ab"), ("a", "a")):
        with pytest.raises(DataError):
            kendall_tau(stated_twice, reference)


def test_measures_are_values():
    assert recall_all @ 10 == measure("recall_all@10") == measure(Measure("recall_all", 10))
    assert str(measure(" ndcg @ 5 ")) == "ndcg@5"
    assert len({recall @ 10, measure("recall@10"), mrr, ndcg @ 10}) == 3
    assert str(mrr) == "mrr"


@pytest.mark.parametrize(
    ("text", "names"),
    [("recal@10", "recall_any"), ("recall@ten", "ten"), ("recall@", "recall@"), ("recall@0", "0"), ("", "''")],
)
def test_unknown_measures(text, names):
    with pytest.raises(DataError, match=names):
        measure(text)


def test_refusals(case):
    run, qrels = case(2)
    with pytest.raises(DataError, match=r"ranks turns.*judge sessions"):
        score(run, replace(qrels, level="session"), mrr)
    with pytest.raises(DataError, match="precision@10"):
        score(run, qrels, precision)
    query, doc = run.frame.row(0)[:2]
    twice = pl.concat([run.frame, run.frame.head(1).with_columns(rank=pl.lit(9999, pl.Int32))])
    judged = qrels.frame.head(1).with_columns(query_id=pl.lit(query))
    with pytest.raises(DataError, match=rf"'{doc}' twice for query '{query}'"):
        score(replace(run, frame=twice), replace(qrels, frame=judged), mrr)
    with pytest.raises(DataError, match="ranks from 2"):
        score(replace(run, frame=run.frame.filter(pl.col("rank") > 1)), qrels, mrr)
    with pytest.raises(DataError, match="judge document"):
        score(run, replace(qrels, frame=pl.concat([qrels.frame, qrels.frame])), mrr)
