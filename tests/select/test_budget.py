"""Where a ranking is cut: tokens."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlab.records import Run
from memlab.retrieve import Bench
from memlab.select import budget

Make = Callable[..., tuple[Run, Bench]]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 100), tokens=st.integers(1, 140))
def test_the_longest_beginning_that_fits(random_run: Make, seed: int, tokens: int) -> None:
    run, bench = random_run(40, 3, seed=seed)
    documents = bench.documents("turn")
    length = dict(zip(documents.ids, documents.n_tokens.tolist(), strict=True))
    got = budget(run, bench, tokens=tokens)
    for (query,), rows in run.frame.group_by("query_id"):
        kept = got.frame.filter(query_id=query)
        assert kept.equals(rows.head(kept.height))
        assert sum(length[d] for d in kept["doc_id"]) <= tokens
        if kept.height < rows.height:
            assert sum(length[d] for d in rows["doc_id"].head(kept.height + 1)) > tokens
