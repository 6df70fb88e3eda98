"""Chance is the mean over all rankings, the ceiling the best of them."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.evaluate import Measure
from memlab.evaluate.bounds import ceiling, chance
from memlab.evaluate.measures import score
from memlab.records import Qrels, run_from_scores
from memlab.registry import measures as NAMES

OPEN = ("alpha_ndcg", "precision_returned", "f1")
"""Measures whose value by chance depends on more than counts."""


@pytest.mark.parametrize(("n", "m"), [(5, 1), (5, 2), (5, 5), (4, 3), (1, 1), (6, 2)])
def test_against_every_ranking(n, m):
    orders = list(itertools.permutations(range(n)))
    queries = np.repeat([f"q{i}" for i in range(len(orders))], n)
    docs = np.array([f"s{d}/{d}" for d in np.concatenate(orders)])
    run = run_from_scores(queries, docs, np.tile(-np.arange(n, dtype=float), len(orders)), level="turn", k=n)
    relevant = [f"s{d}/{d}" for d in range(m)]
    judged = pl.DataFrame({"query_id": np.unique(queries)}).join(pl.DataFrame({"doc_id": relevant}), how="cross")
    judged = judged.with_columns(relevance=pl.lit(1), subtopic=pl.col("doc_id"))
    wanted = [Measure(name, k) for name in NAMES for k in (1, 2, 3, 5, 10, None) if name != "precision" or k]
    table = score(run, Qrels(judged, "turn"), wanted)
    for each in wanted:
        if each.name not in ("precision_returned", "f1"):  # best by a ranking that returns the evidence alone
            assert ceiling(n, m, each).item() == pytest.approx(table[str(each)].max(), abs=1e-12), each
        if each.name in OPEN:
            assert np.isnan(chance(n, m, each)).all()
        else:
            assert chance(n, m, each).item() == pytest.approx(table[str(each)].mean(), abs=1e-12), each


@settings(deadline=None)
@given(n=st.integers(1, 400), m=st.integers(1, 400), k=st.integers(1, 500))
def test_laws(n, m, k):
    m = min(n, m)
    any_, part, all_ = (chance(n, m, Measure(name, k)).item() for name in ("recall_any", "recall", "recall_all"))
    assert -1e-12 <= all_ <= part + 1e-12
    assert part <= any_ + 1e-12 <= 1 + 1e-9
    for name in NAMES:
        low, high = chance(n, m, Measure(name, k)).item(), ceiling(n, m, Measure(name, k)).item()
        assert name in OPEN or low <= high + 1e-9


def test_known_values_and_impossible_evidence():
    assert ceiling(600, 12, "recall_all@10").item() == 0.0
    assert ceiling(600, 12, "recall@10").item() == pytest.approx(10 / 12)
    assert chance(25, 2, "recall_all@10").item() == pytest.approx(10 * 9 / (25 * 24))
    assert chance([], [], "recall@10").shape == (0,)
    for n, m in ((5, 0), (5, 6)):
        with pytest.raises(DataError, match=f"{m} evidence items among {n}"):
            chance([9, n], [1, m], "recall@10")


@pytest.mark.shared_data
def test_chance_on_real_conversations(locomo_path):
    from memlab import datasets
    from memlab.evaluate.groups import describe_questions

    table = describe_questions(datasets.load(locomo_path), "session")
    n, m = table["n_docs"].to_numpy(), table["n_relevant"].to_numpy()
    # The whole of LoCoMo is published at .371 and .325; these six of its ten conversations are a little shorter.
    assert table.height == pytest.approx(1155, abs=2)
    assert chance(n, m, "recall@10").mean() == pytest.approx(0.371, abs=0.02)
    assert chance(n, m, "recall_all@10").mean() == pytest.approx(0.325, abs=0.02)
