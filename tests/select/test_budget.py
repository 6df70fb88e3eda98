"""A token budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab import retrieve, select
from memlab.datasets import synthetic
from memlab.errors import DataError
from memlab.records import RUN_SCHEMA, Run
from memlab.retrieve import Bench
from memlab.select import budget

Make = Callable[..., tuple[Run, Bench]]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 100), tokens=st.integers(1, 140))
def test_the_longest_beginning_that_fits(random_run: Make, seed: int, tokens: int) -> None:
    run, bench = random_run(40, 3, seed=seed)
    documents = bench.documents("turn")
    length = dict(zip(documents.ids, documents.n_tokens.tolist(), strict=True))
    assert set(length.values()) == set(range(7))
    got = budget(run, bench, tokens=tokens)
    for (query,), rows in run.frame.group_by("query_id"):
        kept = got.frame.filter(pl.col("query_id") == query)
        assert kept.equals(rows.head(kept.height))
        assert sum(length[d] for d in kept["doc_id"]) <= tokens
        if kept.height < rows.height:
            assert sum(length[d] for d in rows["doc_id"].head(kept.height + 1)) > tokens


def test_a_first_document_that_does_not_fit_leaves_nothing(random_run: Make) -> None:
    run, bench = random_run(40, 1)
    long = bench.documents("turn").ids[bench.documents("turn").n_tokens == 6]
    other = replace(run, frame=run.frame.with_columns(query_id=pl.lit("other"), doc_id=pl.lit(long[0])).head(1))
    both = replace(run, frame=pl.concat([other.frame, run.frame]))
    kept = budget(both, bench, tokens=5).frame
    assert "other" not in kept["query_id"]
    assert dict(kept.schema) == RUN_SCHEMA
    assert budget(other, bench, tokens=5).frame.height == 0
    assert budget(other, bench, tokens=6).frame.height == 1


def test_a_large_budget_keeps_everything_and_a_cut_run_goes_on(random_run: Make) -> None:
    run, bench = random_run()
    named = replace(run, name="mine", provenance={"x": 1})
    got = budget(named, bench, tokens=10_000)
    assert got.frame.equals(named.frame)
    assert (got.name, got.provenance, got.level) == ("mine", {"x": 1}, "turn")
    cut = budget(run, bench, tokens=20)
    assert select.mmr(cut, bench).frame.height == select.by_cluster(cut, bench).frame.height == cut.frame.height
    nothing = replace(run, frame=run.frame.head(0))
    assert budget(nothing, bench).frame.equals(nothing.frame)


def test_sessions_are_counted_with_their_date() -> None:
    bench = Bench.of(synthetic.generate(120, seed=0), encoder=None)
    sessions = bench.documents("session")
    assert (sessions.n_tokens > 4).all()
    run = retrieve.bm25(bench, level="session")
    kept = budget(run, bench, tokens=int(sessions.n_tokens.max())).frame
    assert kept.group_by("query_id").len()["len"].min() >= 1


def test_no_budget_is_an_error(random_run: Make) -> None:
    run, bench = random_run()
    for tokens in (0, -5):
        with pytest.raises(DataError, match=f"tokens is {tokens}; a budget is at least one token"):
            budget(run, bench, tokens=tokens)
