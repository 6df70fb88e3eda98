"""MMR, DPP and MSD: what all three keep, and that copies come last."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab.records import Run
from memlab.retrieve import Bench
from memlab.select import dpp, mmr, msd

Make = Callable[..., tuple[Run, Bench]]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 1000),
    copies=st.sampled_from([1, 4]),
    levels=st.sampled_from([0, 1, 3]),
    diversity=st.floats(0, 1),
    k=st.integers(1, 45),
)
def test_a_reordering_that_keeps_the_first_and_the_rest(
    random_run: Make, seed: int, copies: int, levels: int, diversity: float, k: int
) -> None:
    run, bench = random_run(30, 2, seed=seed, copies=copies, levels=levels)
    for stage in (mmr, dpp, msd):
        strength = {"lambda_": 1 - diversity} if stage is mmr else {"diversity": diversity}
        got = stage(run, bench, k=k, **strength).frame
        assert got.select("query_id", "rank").equals(run.frame.select("query_id", "rank"))
        for (query,), rows in got.group_by("query_id"):
            before = run.frame.filter(query_id=query)["doc_id"].to_list()
            after = rows["doc_id"].to_list()
            assert sorted(after) == sorted(before)
            assert after[0] == before[0]
            assert after[k:] == [d for d in before if d in set(after[k:])]


def test_copies_come_last(random_run: Make) -> None:
    run, bench = random_run(40, 1, copies=4, dim=16)
    documents = bench.documents("turn")
    for got in (mmr(run, bench, lambda_=0.0, k=10), dpp(run, bench, diversity=0.8, k=10)):
        first = documents.vectors()[documents.at(got.frame["doc_id"].head(10))]
        assert len(np.unique(first, axis=0)) == 10
