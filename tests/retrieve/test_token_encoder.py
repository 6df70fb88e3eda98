"""Late interaction, the best pipeline and the features of rerankers, with tokens of another encoder."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from polars.testing import assert_frame_equal
from stand_in import StandIn

import memlab
from memlab import DataError, pipeline
from memlab.rerank.reranker_features import best_candidate_places, candidate_features
from memlab.retrieve import Bench
from memlab.retrieve.best_pipeline import _log_left_out_scorers_once


@pytest.fixture(scope="module")
def data() -> memlab.Dataset:
    return memlab.sample(turns=80)


def bench_of(data: memlab.Dataset, encoder: Any, token_encoder: Any = None) -> Bench:
    return Bench.of(data, encoder=encoder, token_encoder=token_encoder, progress=False)


def test_late_ranks_as_with_the_token_encoder_alone_and_dense_as_without(
    data: memlab.Dataset,
) -> None:
    both = bench_of(data, "hashing:48", StandIn())
    for text, alone in (("late", StandIn()), ("dense", "hashing:48")):
        expected = pipeline(text).run(bench_of(data, alone))
        found = pipeline(text).run(both)
        assert_frame_equal(found.frame, expected.frame)
        assert found.provenance["token_encoder"] == StandIn().identity.describe()
        assert "token_encoder" not in expected.provenance
    with pytest.raises(DataError, match="or token_encoder='minilm' beside it"):
        pipeline("late").run(bench_of(data, "hashing:48"))


def test_best_says_once_what_it_leaves_out_and_is_whole_with_a_token_encoder(
    data: memlab.Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    _log_left_out_scorers_once.cache_clear()
    whole = bench_of(data, "hashing:48", StandIn())
    weights = "turn=(1, 1, 2), session=(1, 1, 2), assistant=1"
    with caplog.at_level(logging.WARNING, "memlab.retrieve.best"):
        run = pipeline("best").run(whole)
        assert not caplog.records
        assert_frame_equal(run.frame, pipeline(f"combsum({weights})").run(whole).frame)
        runs = [
            pipeline("best").run(bench_of(data, encoder))
            for encoder in ("hashing:40", "hashing:40", None)
        ]
    assert "left_out" not in run.provenance
    assert [each.provenance["left_out"] for each in runs] == [["late"], ["late"], ["dense", "late"]]
    said = [record.getMessage() for record in caplog.records]
    assert [text.partition(":")[0] for text in said] == [
        "best is ranked without late",
        "best is ranked without dense and late",
    ]


def test_features_of_rerankers_take_tokens_of_the_token_encoder(data: memlab.Dataset) -> None:
    found = {}
    for name, bench in {
        "both": bench_of(data, "hashing:48", StandIn()),
        "tokens": bench_of(data, StandIn()),
    }.items():
        places, mask = best_candidate_places(bench_of(data, "hashing:48", StandIn()), 10)
        found[name] = list(candidate_features(bench, places, mask))
    for both, tokens in zip(found["both"], found["tokens"], strict=True):
        np.testing.assert_allclose(
            both.feature_values("late_z"), tokens.feature_values("late_z"), rtol=1e-4, atol=1e-4
        )
        assert not np.allclose(both.feature_values("dense_z"), tokens.feature_values("dense_z"))
