"""The reranker that comes with memlab: what it learned from, and how it is tempered by the untrained sum."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stand_in import StandIn

import memlab
from memlab.embed.models import minilm_path
from memlab.records import Dataset
from memlab.rerank import BUNDLED_MODEL, Model, bundled_model_fits
from memlab.rerank.learned import score_candidates
from memlab.rerank.model import scope_fingerprints
from memlab.rerank.training import TrainingLists


@pytest.fixture(scope="module")
def box() -> Model:
    return Model.load(BUNDLED_MODEL)


def test_it_learned_from_the_talk_that_is_here_by_features_that_are_still_computed(
    box: Model, lists: list[TrainingLists]
) -> None:
    talk, held_out = (
        [memlab.datasets.load(file) for file in sorted(Path(folder).glob("*.jsonl"))]
        for folder in ("data/train", "data/heldout")
    )
    assert box.about["data"] == [{"name": data.name, "fingerprint": data.fingerprint()} for data in talk]
    scopes = {mark for data in talk for mark in scope_fingerprints(data.turns, data.scopes).values()}
    assert set(box.about["scopes"]) == scopes
    assert box.about["questions"] == sum((~data.questions["abstention"]).sum() for data in talk)
    assert not any(scopes & set(scope_fingerprints(data.turns, data.scopes).values()) for data in held_out)
    assert box.about["features"] == list(lists[0].candidates.names)


@pytest.mark.parametrize("level", ["turn", "session"])
def test_the_untrained_sum_tempers_it(box: Model, lists: list[TrainingLists], level: str) -> None:
    part = lists[0].candidates
    alone, half, nearly_all = (
        score_candidates(replace(box, about={**box.about, "sum": {level: weight}}), part, level=level)
        for weight in (0.0, 0.5, 1e6)
    )
    for other in (half, nearly_all):
        assert (np.isfinite(other) == np.isfinite(alone)).all()
    for row, there in enumerate(np.isfinite(alone)):
        best = np.where(part.mask[row], part.value("sum")[row], -np.inf).argmax()
        assert nearly_all[row].argmax() == (best if level == "turn" else part.session[row, best])
        assert half[row][there].mean() == pytest.approx(0, abs=1e-4)


@pytest.mark.nightly
def test_it_completes_more_answers_than_the_untrained_sum() -> None:
    done = memlab.run(["best", "best | learned"], memlab.sample(), encoder="minilm", levels=["turn"])
    untrained, learned = (report.per_query["recall_all@10"].mean() for report in done.reports)
    assert learned > untrained


def test_it_is_compared_where_it_fits_and_nothing_can_be_trained(
    small: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not bundled_model_fits(StandIn(), ())
    assert not bundled_model_fits(memlab.embed.load("minilm"), ("weather",))
    for same in ("minilm", "minilm:bf16", str(minilm_path())):  # the last names the same weights by their folder
        assert bundled_model_fits(memlab.embed.load(same), ())
    monkeypatch.setattr("memlab.experiments.running.bundled_model_fits", lambda encoder, header: True)
    monkeypatch.setattr(
        sys.modules["memlab.rerank.learned"], "_load_fitting_model", lambda path, bench: Model.load(BUNDLED_MODEL)
    )
    done = memlab.run(None, small.take(small.scopes[:1]), encoder=StandIn(), levels=["turn"])
    assert done.cells["pipeline"].to_list() == ["bm25", "dense", "hybrid", "best", "best | learned"]
