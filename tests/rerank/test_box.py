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
from memlab.rerank import BUNDLED_MODEL, Model, bundled_model_fits, training_lists
from memlab.rerank.learned import score_candidates
from memlab.rerank.model import scope_fingerprints
from memlab.rerank.training import TrainingLists
from memlab.retrieve import Bench

TALK = sorted(Path("data/train").glob("*.jsonl"))
HELD = sorted(Path("data/heldout").glob("*.jsonl"))


@pytest.fixture(scope="module")
def box() -> Model:
    return Model.load(BUNDLED_MODEL)


@pytest.fixture(scope="module")
def lists(small: Dataset, bench: Bench) -> list[TrainingLists]:
    return training_lists(bench, small)


def test_it_learned_from_the_talk_that_is_here_and_from_nothing_else(box: Model) -> None:
    talk = [memlab.datasets.load(file) for file in TALK]
    assert box.about["data"] == [{"name": data.name, "fingerprint": data.fingerprint()} for data in talk]
    scopes = {mark for data in talk for mark in scope_fingerprints(data.turns, data.scopes).values()}
    assert set(box.about["scopes"]) == scopes
    assert box.about["questions"] == sum((~data.questions["abstention"]).sum() for data in talk)
    for held in map(memlab.datasets.load, HELD):
        assert not set(box.about["scopes"]) & set(scope_fingerprints(held.turns, held.scopes).values())


def test_it_is_made_of_features_that_are_still_computed(box: Model, lists: list[TrainingLists]) -> None:
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


def test_another_encoder_does_not_fit(small: Dataset) -> None:
    assert not bundled_model_fits(StandIn(), ())
    assert bundled_model_fits(memlab.embed.load(str(minilm_path())), ())  # the same weights, named by their folder
    assert not bundled_model_fits(memlab.embed.load("minilm"), ("weather",))


@pytest.mark.nightly
def test_it_completes_more_answers_than_the_untrained_sum() -> None:
    data = memlab.sample()
    done = memlab.run(["best", "best | learned"], data, encoder="minilm", levels=["turn"])
    untrained, learned = (report.per_query["recall_all@10"].mean() for report in done.reports)
    assert learned > untrained


def test_it_is_compared_where_nothing_can_be_trained(small: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    header = Bench.of(small, encoder=StandIn()).header
    assert bundled_model_fits(memlab.embed.load("minilm"), header)
    assert bundled_model_fits(memlab.embed.load("minilm:bf16"), header)
    one = small.take(small.scopes[:1])
    monkeypatch.setattr("memlab.experiments.running.bundled_model_fits", lambda encoder, header: True)
    monkeypatch.setattr(
        sys.modules["memlab.rerank.learned"], "_load_fitting_model", lambda path, bench: Model.load(BUNDLED_MODEL)
    )
    names = memlab.run(None, one, encoder=StandIn(), levels=["turn"]).cells["pipeline"].to_list()
    assert names == ["bm25", "dense", "hybrid", "best", "best | learned"]
