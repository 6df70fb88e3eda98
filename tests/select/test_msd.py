"""Max-sum diversification against its formula, and its laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from memlab.errors import DataError
from memlab.records import Run
from memlab.retrieve import Bench
from memlab.select.diversity import msd

Make = Callable[..., tuple[Run, Bench]]


def by_formula(embedded: np.ndarray, scores: np.ndarray, k: int, diversity: float) -> list[int]:
    spread = scores.max() - scores.min()
    relevance = (scores - scores.min()) / spread if spread > 0 else np.ones(len(scores))
    distance = 1 - embedded.astype(np.float64) @ embedded.astype(np.float64).T
    chosen = [0]
    while len(chosen) < min(k, len(scores)):
        left = [i for i in range(len(scores)) if i not in chosen]
        worth = {i: (1 - diversity) * relevance[i] + diversity * sum(distance[i, j] for j in chosen) for i in left}
        chosen.append(max(left, key=lambda i: worth[i]))
    return chosen


@pytest.mark.parametrize("diversity", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize(("k", "candidates"), [(50, 200), (5, 200), (7, 12), (1, 1)])
def test_msd_is_its_formula(random_run: Make, diversity: float, k: int, candidates: int) -> None:
    for seed in range(3):
        run, bench = random_run(30, 2, seed=seed)
        vectors = dict(zip(bench.documents("turn").ids, bench.documents("turn").vectors(), strict=True))
        got = msd(run, bench, diversity=diversity, k=k, candidates=candidates).frame
        assert got.select("query_id", "rank").equals(run.frame.select("query_id", "rank"))
        for (query,), rows in run.frame.group_by("query_id", maintain_order=True):
            ids, scores = rows["doc_id"].to_list(), rows["score"].head(candidates).to_numpy()
            embedded = np.stack([vectors[d] for d in ids[:candidates]])
            chosen = [ids[i] for i in by_formula(embedded, scores, k, diversity)]
            expected = chosen + [d for d in ids if d not in chosen]
            assert got.filter(pl.col("query_id") == query)["doc_id"].to_list() == expected


def test_no_diversity_keeps_ties_in_order(random_run: Make) -> None:
    run, bench = random_run(40, 3, copies=4, levels=2)
    assert msd(run, bench, diversity=0.0).frame["doc_id"].equals(run.frame["doc_id"])


def test_a_query_selects_alone_as_among_many(random_run: Make) -> None:
    run, bench = random_run(360, 70, copies=2)
    many = msd(run, bench, k=8, candidates=20).frame
    for query in ("q0", "q63", "q64"):
        alone = msd(replace(run, frame=run.frame.filter(pl.col("query_id") == query)), bench, k=8, candidates=20)
        assert alone.frame.equals(many.filter(pl.col("query_id") == query))


def test_no_candidates_and_wrong_arguments(random_run: Make) -> None:
    run, bench = random_run()
    none = replace(run, frame=run.frame.head(0))
    assert msd(none, bench).frame.equals(none.frame)
    assert msd(run.top(1), bench).frame["doc_id"].equals(run.top(1).frame["doc_id"])
    for wrong, message in (
        ({"diversity": 1.1}, "diversity is 1.1; it lies between 0"),
        ({"k": -1}, "k is -1"),
        ({"candidates": 0}, "candidates is 0"),
    ):
        with pytest.raises(DataError, match=message):
            msd(run, bench, **wrong)
    with pytest.raises(DataError, match="needs embeddings"):
        msd(run, replace(bench, turn_vectors=None))
