"""Permutation importance: honest, repeatable, and large where a feature alone carries the ranking."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from memlab import DataError, pipeline
from memlab.evaluate import MULTI_SESSION, evaluate
from memlab.experiments.learning import UNTRAINED, _permuted, group_of, importance
from memlab.records import Dataset
from memlab.rerank import Model, train
from memlab.rerank.training import Lists
from memlab.retrieve import Bench


@pytest.fixture(scope="module")
def measured(lists: list[Lists], models: list[Model]) -> pl.DataFrame:
    return importance(lists, models, k=5, repeats=1)


def test_every_feature_has_a_group(lists: list[Lists]) -> None:
    of = {name: group_of(name) for name in lists[0].candidates.names}
    assert "other" not in of.values(), [name for name, group in of.items() if group == "other"]
    assert group_of("a feature of tomorrow") == "other"
    expected = {
        "dense_z": "dense",
        "bm25_at+2": "neighbours",
        "bm25_of_session": "session",
        "words_of_session": "session",
        "words_of_known": "words",
        "asks": "turn shape",
        "asks_what": "question shape",
        "question_weight": "question shape",
        "names_date": "question shape",
        "date_near": "dates",
        "other_named": "speaker",
    }
    assert {name: of[name] for name in expected} == expected


def test_what_is_lost_is_lost_from_what_the_pipeline_reaches(
    measured: pl.DataFrame, asked: Dataset, read: Bench, folds: Path
) -> None:
    run = pipeline(f"{UNTRAINED} | learned(model={str(folds)!r})").run(read)
    report = evaluate(run, asked, measures=["recall_all@5"])
    for by, group in (("all", "all"), ("evidence_sessions", MULTI_SESSION)):
        expected = report.summary(by).filter(group=group).row(0, named=True)
        held = measured.filter(questions=group)
        assert held["n"].unique().to_list() == [expected["n"]]
        assert held["plain"].unique().item() == pytest.approx(expected["mean"])


def test_each_feature_and_group_has_its_row(measured: pl.DataFrame, lists: list[Lists]) -> None:
    names = lists[0].candidates.names
    for _, rows in measured.group_by("questions"):
        assert sorted(rows.filter(kind="feature")["name"]) == sorted(names)
        assert set(rows.filter(kind="group")["name"]) == {group_of(name) for name in names}
        for _, part in rows.group_by("kind"):
            assert part["loss"].is_sorted(descending=True)
    assert (measured["low"] <= measured["loss"]).all()
    assert (measured["loss"] <= measured["high"]).all()
    assert measured["questions"].unique(maintain_order=True).to_list() == ["all", MULTI_SESSION]


def only(one: Lists, name: str, seed: int = 0) -> Lists:
    """Let one feature tell evidence and the others nothing."""
    values = np.random.default_rng(seed).normal(size=one.candidates.values.shape).astype(np.float32)
    values[..., one.candidates.names.index(name)] = one.turns * 4.0 + values[..., 0] * 0.1
    values[..., one.candidates.names.index("age")] = 0.5
    return replace(one, candidates=replace(one.candidates, values=values))


def test_the_one_feature_that_tells_evidence_is_found(lists: list[Lists]) -> None:
    told = [only(one, "bm25_z", seed) for seed in range(8) for one in lists[1:]]
    found = importance([only(lists[0], "bm25_z", 8)], [train(told)], k=5, repeats=2).filter(questions="all")
    assert found["plain"][0] > 0.8
    features, groups = found.filter(kind="feature"), found.filter(kind="group")
    assert features["name"][0] == "bm25_z"
    assert groups["name"][0] == "BM25"
    assert features["loss"][0] > 0.3
    assert features["loss"][0] > 1.5 * features["loss"][1]
    assert features.filter(name="age").row(0)[-4:] == (0.0, 0.0, 0.0, 1.0)


def test_a_model_that_learned_from_what_it_ranks_is_refused(lists: list[Lists], models: list[Model]) -> None:
    honest = [m for m in models if lists[0].scope not in m.about["scopes"]]
    with pytest.raises(DataError, match="each of 1 models learned from conversation"):
        importance(lists, honest)
    with pytest.raises(DataError, match="repeats is 0"):
        importance(lists, models, repeats=0)


def test_columns_are_permuted_as_one_and_padding_stays(lists: list[Lists]) -> None:
    found = lists[0].candidates
    held = np.ones_like(found.mask)
    held[:, ::3] = False
    found = replace(found, mask=held)
    order = np.random.default_rng(0).permutation(int(held.sum()))
    moved = _permuted(found, [0, 3], order)
    others = [i for i in range(len(found.names)) if i not in (0, 3)]
    np.testing.assert_array_equal(moved.values[..., others], found.values[..., others])
    np.testing.assert_array_equal(moved.values[~held], found.values[~held])
    np.testing.assert_array_equal(moved.values[held][:, [0, 3]], found.values[held][order][:, [0, 3]])
    assert not np.array_equal(moved.values, found.values)


def test_one_seed_gives_one_result(lists: list[Lists], models: list[Model]) -> None:
    first, again = (importance(lists[:1], models, k=5, repeats=1, seed=3) for _ in range(2))
    assert first.equals(again)
