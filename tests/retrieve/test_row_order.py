"""Rankings do not depend on the engine of polars.

An inner join keeps no order unless told (polars 2.1, with two threads, some thousand rows), and the
streaming engine, which is the default of lazy frames there, keeps none of a left join either.
"""

from __future__ import annotations

import polars as pl
import pytest
from stand_in import StandIn

from memlab import Bench, pipeline, sample
from memlab.records import LEVELS

PIPELINES = [
    "bm25",
    "best",
    "two_stage(k=200)",
    "combsum | mmr",
    *[
        pytest.param(text, marks=pytest.mark.nightly)
        for text in (
            "combsum | decompose(retriever='combsum')",
            "combsum | light",
            "combsum | expand_cluster",
            "combsum | resonate",
            "combsum | feedback(positive=0.4, negative=0.25)",
            "combsum | fill_sessions",
        )
    ],
]


@pytest.fixture(scope="module")
def whole() -> Bench:
    return Bench.of(sample(), encoder=StandIn(), progress=False)


@pytest.mark.parametrize("text", PIPELINES)
@pytest.mark.slow
def test_rankings_are_the_same_by_the_streaming_engine(whole: Bench, text: str) -> None:
    expected = {level: pipeline(text).run(whole, level=level).frame for level in LEVELS}
    with pl.Config():
        pl.Config.set_engine_affinity("streaming")
        fresh = whole.with_changes(turns=whole.turns)
        assert fresh.queries.height * fresh.turns.height > 1000
        for level, frame in expected.items():
            assert pipeline(text).run(fresh, level=level).frame.equals(frame)
