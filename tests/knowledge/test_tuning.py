"""Curves fitted to labels: the truth is found again, comparison is on held-out facts, advice is written."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from memlab.errors import DataError
from memlab.knowledge import tuning
from memlab.knowledge.decay import AnyCurve, BaseLevel, Exponential, PlateauLinear, PowerLaw, Weibull

PLATEAU = PlateauLinear(30, 365, 0.5)
OTHERS = (Exponential(200), PowerLaw(150, 1.0), BaseLevel(150, 1.5))


def simulated(curve: AnyCurve, *, n: int, seed: int = 0) -> pl.DataFrame:
    """Draw labels whose chance of "still true" is the curve."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 730, n)
    frame = pl.DataFrame({"age_days": age, "still_true": rng.uniform(size=n) < curve.retention(age)})
    return frame.with_row_index("fact_id")


@pytest.mark.parametrize(
    ("truth", "sets"),
    [
        pytest.param(Weibull(200, 1.5), 40, marks=pytest.mark.slow),
        *(pytest.param(truth, 100, marks=pytest.mark.nightly) for truth in OTHERS),
        pytest.param(PLATEAU, 400, marks=pytest.mark.nightly),  # of docs/evaluation/knowledge.md
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_say(truth: AnyCurve, sets: int) -> None:
    """As a fair 90 % would: within what a binomial of this many sets leaves to chance."""
    # Below 2,000 labels too few facts die near the end of the plateau to bound it from below.
    n = 2000 if truth == PLATEAU else 1000
    hits = dict.fromkeys(truth.parameters, 0)
    for seed in range(sets):
        fitted = tuning.fit(simulated(truth, n=n, seed=seed), truth.family)
        for name, _, low, high in fitted.intervals.iter_rows():
            hits[name] += low <= getattr(truth, name) <= high
    low, high = binom.ppf([0.0025, 0.9975], sets, 0.9)
    assert all(low <= count <= high for count in hits.values()), hits


def test_exponential_agrees_with_a_grid() -> None:
    frame = simulated(Exponential(120), n=400, seed=3)
    age, true = frame["age_days"].to_numpy(), frame["still_true"].to_numpy()
    grid = np.exp(np.linspace(np.log(60), np.log(240), 2_001))
    chance = np.clip(np.exp2(-age / grid[:, None]), 1e-6, 1 - 1e-6)
    loss = -np.log(np.where(true, chance, 1 - chance)).sum(axis=1)
    inside = grid[loss <= loss.min() + 2.705543 / 2]
    (row,) = tuning.fit(frame, "exponential").intervals.rows()
    assert row[1:] == pytest.approx((grid[loss.argmin()], inside[0], inside[-1]), rel=3e-3)


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        ({"age_days": [1.0] * 30}, "still_true"),
        ({"age_days": [1.0] * 30, "still_true": [True] * 30}, "30 of them still true"),
        ({"age_days": [1.0, None], "still_true": [True, False]}, "row 1"),
        ({"age_days": [1.0], "still_true": [1]}, "Int64"),
    ],
)
def test_bad_labels_are_named(columns: dict[str, list[Any]], word: str) -> None:
    with pytest.raises(DataError, match=word):
        tuning.fit(pl.DataFrame(columns), "exponential")
    few = pl.DataFrame({"fact_id": range(24), "age_days": 1.0, "still_true": [True, False] * 12})
    with pytest.raises(DataError, match="give at least 25"):
        tuning.recommend(few)


def test_a_group_is_never_in_both_parts() -> None:
    # A label that is a function of the group: whoever had seen the group would know it.
    group = pl.int_range(pl.len()) // 30
    labels = simulated(Exponential(100), n=300).with_columns(scope=group, still_true=group % 2 == 0)
    assert tuning.compare(labels, families=["exponential"], group="scope")["log_loss"].min() > 0.6


def test_the_recommendation_is_simple_and_written(tmp_path: Path) -> None:
    labels = simulated(Exponential(25), n=300)
    comparison = tuning.compare(labels, families=["exponential", "weibull"])
    assert comparison.sort("log_loss")["family"][-1] in (tuning.CONSTANT, tuning.DEFAULT)
    advice = tuning.recommend(labels, comparison=comparison)
    assert advice.decay["family"] == "exponential"
    path = tmp_path / "memlab.toml"
    path.write_text("# mine\nseed = 3\n[confidence]\nreinforcement_limit = 2.0  # kept\n")
    advice.write(path)
    written = {"seed": 3, "confidence": {"reinforcement_limit": 2.0, "decay": advice.decay}}
    assert tomllib.loads(path.read_text()) == written
    assert path.read_text().count("#") == 2
    path.write_text(odd := "confidence = 3\n")
    with pytest.raises(DataError):
        advice.write(path)
    assert path.read_text() == odd, "a file that cannot be changed alone is left as it is"
