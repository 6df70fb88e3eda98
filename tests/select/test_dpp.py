"""DPP against determinants computed one by one, and its laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.records import Run
from memlab.retrieve import Bench
from memlab.select.diversity import dpp

Make = Callable[..., tuple[Run, Bench]]
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def largest_volume(embedded: np.ndarray, scores: np.ndarray, k: int, diversity: float) -> list[int]:
    """Take what makes the determinant of the taken kernel largest, as long as it adds any volume."""
    weight = np.exp((1 - diversity) * (scores - scores.mean()) / scores.std())
    wide = embedded.astype(np.float64)
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    kernel = weight[:, None] * (wide @ wide.T) * weight
    chosen: list[int] = []
    volume = 1.0
    while len(chosen) < min(k, len(scores)):
        left = [i for i in range(len(scores)) if i not in chosen]
        grown = {i: np.linalg.det(kernel[np.ix_([*chosen, i], [*chosen, i])]) / volume for i in left}
        best = max(left, key=lambda i: round(grown[i], 9))
        if grown[best] < 1e-4 * weight[best] ** 2:
            break
        chosen.append(best)
        volume *= grown[best]
    return chosen


@pytest.mark.parametrize("diversity", [0.1, 0.5, 1.0])
@pytest.mark.parametrize(("k", "candidates", "dim"), [(10, 200, 16), (5, 12, 16), (40, 200, 6)])
def test_dpp_takes_the_largest_determinant(
    random_run: Make, diversity: float, k: int, candidates: int, dim: int
) -> None:
    for seed in range(3):
        run, bench = random_run(24, 2, seed=seed, dim=dim)
        vectors = dict(zip(bench.documents("turn").ids, bench.documents("turn").vectors(), strict=True))
        got = dpp(run, bench, diversity=diversity, k=k, candidates=candidates).frame
        for (query,), rows in run.frame.group_by("query_id", maintain_order=True):
            ids, scores = rows["doc_id"].to_list(), rows["score"].head(candidates).to_numpy()
            embedded = np.stack([vectors[d] for d in ids[:candidates]])
            chosen = [ids[i] for i in largest_volume(embedded, scores, k, diversity)]
            assert len(chosen) == min(k, dim, len(scores))
            expected = chosen + [d for d in ids if d not in chosen]
            assert got.filter(pl.col("query_id") == query)["doc_id"].to_list() == expected


@pytest.mark.filterwarnings("error")
@QUICK
@given(
    n=st.integers(12, 40),
    seed=st.integers(0, 1000),
    copies=st.sampled_from([1, 4]),
    levels=st.sampled_from([0, 1, 3]),
    diversity=st.floats(0, 1),
    k=st.integers(1, 45),
    candidates=st.integers(1, 45),
)
def test_a_reordering_of_the_candidates_alone(
    random_run: Make, n: int, seed: int, copies: int, levels: int, diversity: float, k: int, candidates: int
) -> None:
    run, bench = random_run(n, 2, seed=seed, copies=copies, levels=levels)
    got = dpp(run, bench, diversity=diversity, k=k, candidates=candidates).frame
    assert got.select("query_id", "rank").equals(run.frame.select("query_id", "rank"))
    for (query,), rows in got.group_by("query_id"):
        before = run.frame.filter(pl.col("query_id") == query)["doc_id"].to_list()
        after = rows["doc_id"].to_list()
        assert sorted(after) == sorted(before)
        assert set(after[:candidates]) == set(before[:candidates])
        left = after[min(k, candidates) :]
        assert left == [d for d in before if d in set(left)]


def test_copies_are_not_taken(random_run: Make) -> None:
    run, bench = random_run(40, 1, copies=4, dim=16)
    documents = bench.documents("turn")
    got = dpp(run, bench, diversity=0.8, k=40).frame["doc_id"]
    at = documents.at(got)
    assert len(np.unique(documents.vectors()[at[:10]], axis=0)) == 10
    behind = got[10:].to_list()
    assert behind == [d for d in run.frame["doc_id"] if d in set(behind)]


def test_all_alike_or_no_diversity_changes_nothing(random_run: Make) -> None:
    run, bench = random_run(32, 2, copies=2, levels=2)
    assert dpp(run, bench, diversity=0.0).frame["doc_id"].equals(run.frame["doc_id"])
    same = replace(bench, turn_vectors=np.repeat(bench.turn_vectors[:1], 32, axis=0))
    assert dpp(run, same, diversity=0.5).frame["doc_id"].equals(run.frame["doc_id"])


def test_a_query_selects_alone_as_among_many(random_run: Make) -> None:
    run, bench = random_run(360, 70, copies=2)
    many = dpp(run, bench, k=8, candidates=20).frame
    for query in ("q0", "q63", "q64"):
        alone = dpp(replace(run, frame=run.frame.filter(pl.col("query_id") == query)), bench, k=8, candidates=20)
        assert alone.frame.equals(many.filter(pl.col("query_id") == query))


def test_no_candidates_and_wrong_arguments(random_run: Make) -> None:
    run, bench = random_run()
    none = replace(run, frame=run.frame.head(0))
    assert dpp(none, bench).frame.equals(none.frame)
    assert dpp(run.top(1), bench).frame["doc_id"].equals(run.top(1).frame["doc_id"])
    for wrong, message in (
        ({"diversity": -0.1}, "diversity is -0.1; it lies between 0"),
        ({"diversity": float("nan")}, "diversity is nan"),
        ({"k": 0}, "k is 0"),
        ({"candidates": 0}, "candidates is 0"),
    ):
        with pytest.raises(DataError, match=message):
            dpp(run, bench, **wrong)
    with pytest.raises(DataError, match="needs embeddings"):
        dpp(run, replace(bench, turn_vectors=None))
