"""Adaptive k: where the cut falls, and what moves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.records import Run, run_from_scores
from memlab.retrieve import Bench
from memlab.select.adaptive import adaptive

Make = Callable[..., tuple[Run, Bench]]


def asked(bench: Bench, texts: list[str]) -> Bench:
    queries = bench.queries.head(len(texts)).with_columns(text=pl.Series(texts))
    return replace(bench, queries=queries)


def scored(run: Run, *scores: list[float]) -> Run:
    """Give each query of a run other scores over the same documents."""
    frames = [run.frame.filter(pl.col("query_id") == f"q{i}").head(len(s)) for i, s in enumerate(scores)]
    both = pl.concat(frames)
    return run_from_scores(
        both["query_id"].to_numpy(), both["doc_id"].to_numpy(), np.concatenate(scores), level="turn", k=200
    )


def kept(run: Run, bench: Bench, **given_: float) -> list[int]:
    """Give how many documents of each query are kept."""
    return adaptive(run, bench, **given_).frame.group_by("query_id", maintain_order=True).len()["len"].to_list()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 1000),
    levels=st.sampled_from([0, 1, 3]),
    k=st.integers(1, 60),
    several=st.floats(1, 4),
    typical=st.integers(1, 60),
    candidates=st.integers(1, 60),
)
def test_the_beginning_of_each_ranking_is_kept(
    random_run: Make, seed: int, levels: int, k: int, several: float, typical: int, candidates: int
) -> None:
    run, bench = random_run(40, 3, seed=seed, levels=levels)
    bench = asked(bench, ["How many doctors did I see?", "Where do I live?", ""])
    given_ = {"k": k, "several": several, "typical": typical, "candidates": candidates}
    got = adaptive(run, bench, **given_).frame
    for query in bench.queries["query_id"]:
        before, kept = (frame.filter(pl.col("query_id") == query) for frame in (run.frame, got))
        assert 1 <= kept.height <= candidates
        assert kept.equals(before.head(kept.height))


def test_form_and_contenders_make_the_budget(random_run: Make) -> None:
    run, bench = random_run(40, 3)
    bench = asked(bench, ["How many doctors did I see?", "Where do I live?", "Which pets do I have?"])
    # Half-way between the last and the first, and at it: 4, 4 and 1 contenders.
    run = scored(run, [10, 9, 8, 6, 3, 2], [4, 3, 3, 2.5, 1, 1], [9, 1, 1, 1, 1, 0])
    assert kept(run, bench, k=4, several=1.5, typical=4) == [6, 4, 3]
    assert kept(run, bench, k=2, several=1.0, typical=1) == [4, 4, 2]
    assert kept(run, bench, k=4, several=1.0, typical=16) == [2, 2, 1]


def test_scores_of_another_scale_give_the_same_cut(random_run: Make) -> None:
    run, bench = random_run(40, 3)
    other = replace(run, frame=run.frame.with_columns(score=pl.col("score") * 100 - 7))
    assert kept(run, bench) == kept(other, bench)


def test_a_query_is_cut_alone_as_among_many(random_run: Make) -> None:
    run, bench = random_run(360, 70)
    many = adaptive(run, bench).frame
    for query in ("q0", "q63", "q64"):
        one = replace(run, frame=run.frame.filter(pl.col("query_id") == query))
        assert adaptive(one, bench).frame.equals(many.filter(pl.col("query_id") == query))


def test_equal_scores_one_candidate_and_none(random_run: Make) -> None:
    run, bench = random_run(40, 2, levels=1)
    assert adaptive(run.top(1), bench).frame.equals(run.top(1).frame)
    none = replace(run, frame=run.frame.head(0))
    assert adaptive(none, bench).frame.equals(none.frame)
    named = replace(run, name="mine", provenance={"x": 1})
    assert (adaptive(named, bench).name, adaptive(named, bench).provenance) == ("mine", {"x": 1})


def test_wrong_arguments(random_run: Make) -> None:
    run, bench = random_run()
    for wrong, message in (
        ({"k": 0}, "k is 0; expected at least 1"),
        ({"typical": 0}, "typical is 0; expected at least 1"),
        ({"several": 0.5}, "several is 0.5; expected at least 1"),
        ({"several": float("nan")}, "several is nan"),
        ({"candidates": 0}, "candidates is 0"),
    ):
        with pytest.raises(DataError, match=message):
            adaptive(run, bench, **wrong)
