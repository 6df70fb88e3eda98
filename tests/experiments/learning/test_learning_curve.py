"""The learning curve: what is drawn, and that nothing is ranked by what learned from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab import DataError, pipeline
from memlab.evaluate import MULTI_SESSION, evaluate
from memlab.experiments import learning
from memlab.experiments.learning import UNTRAINED, curve
from memlab.records import Dataset
from memlab.rerank import Model
from memlab.rerank.training import Lists
from memlab.retrieve import Bench


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """List what is learned from, in place of learning; a question is complete with the share that was learned."""
    made: list[tuple[str, ...]] = []

    def train(lists: list[Lists], *, seed: int) -> Model:
        made.append(tuple(sorted(one.scope for one in lists)))
        return Model({}, {}, {"scopes": list(made[-1]), "seed": seed})

    measured = learning._complete

    def complete(model: Model | None, of: Lists, *, k: int) -> np.ndarray:
        if model is None:
            return measured(None, of, k=k)
        assert of.scope not in model.about["scopes"]
        return np.full(len(of.turns), len(model.about["scopes"]) / 10)

    monkeypatch.setattr(learning, "train", train)
    monkeypatch.setattr(learning, "_complete", complete)
    return made


def test_each_size_ranks_every_conversation(lists: list[Lists], drawn: list[tuple[str, ...]]) -> None:
    found = curve(lists, sizes=[1, 7], repeats=3)
    assert found["conversations"].unique(maintain_order=True).to_list() == [1, 2]
    assert [len(d) for d in drawn] == sorted(len(d) for d in drawn)
    for size, times in ((1, 3), (2, 1)):
        models = [d for d in drawn if len(d) == size]
        assert min(sum(one.scope not in d for d in models) for one in lists) >= times
        assert found.filter(conversations=size)["models"].unique().to_list() == [len(models)]
        assert found.filter(conversations=size)["mean"].to_list() == pytest.approx([size / 10] * 2)
    assert set(drawn[-3:]) == {tuple(sorted(one.scope for one in lists if one is not left)) for left in lists}
    again = curve(lists, sizes=[1, 7], repeats=3)
    assert again.equals(found)
    assert drawn[: len(drawn) // 2] == drawn[len(drawn) // 2 :]


def test_known_models_are_not_trained_again(lists: list[Lists], models: list[Model], drawn: list[Any]) -> None:
    curve(lists, sizes=[2], known=models)
    assert drawn == []
    curve(lists, sizes=[2], known=models, seed=1)
    assert len(drawn) == 3


def test_the_reference_is_what_the_untrained_pipeline_reaches(
    lists: list[Lists], asked: Dataset, read: Bench, drawn: list[Any]
) -> None:
    found = curve(lists, sizes=[2], k=5)
    report = evaluate(pipeline(UNTRAINED).run(read), asked, measures=["recall_all@5"])
    for by, group in (("all", "all"), ("evidence_sessions", MULTI_SESSION)):
        expected = report.summary(by).filter(group=group).row(0, named=True)
        row = found.filter(questions=group).row(0, named=True)
        assert row["n"] == expected["n"]
        assert row["untrained"] == pytest.approx(expected["mean"])
        assert row["gain"] == pytest.approx(row["mean"] - row["untrained"])
        assert row["gain_low"] <= row["gain"] <= row["gain_high"]


def test_a_real_training_reaches_more_with_more(lists: list[Lists], models: list[Model]) -> None:
    found = curve(lists, sizes=[1], known=models).filter(pl.col("questions") == "all")
    assert found["conversations"].to_list() == [1, 2]
    assert found["mean"].is_between(0.05, 1).all()


def test_what_cannot_be_drawn_is_refused(lists: list[Lists]) -> None:
    with pytest.raises(DataError, match="needs two conversations with evidence, and there is one"):
        curve(lists[:1])
    for bad in ({"sizes": []}, {"sizes": [0]}, {"repeats": 0}):
        with pytest.raises(DataError, match="give positive numbers"):
            curve(lists, **bad)  # type: ignore[arg-type]
