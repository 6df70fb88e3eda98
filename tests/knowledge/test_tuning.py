"""Curves fitted to labels: the truth is found again, comparison is on held-out facts, advice is written."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from memlab.config import write_settings
from memlab.errors import DataError
from memlab.knowledge import tuning
from memlab.knowledge.decay import (
    Accesses,
    AnyCurve,
    BaseLevel,
    Exponential,
    PlateauLinear,
    PowerLaw,
    Weibull,
    parameters,
)

TRUTHS: list[AnyCurve] = [
    Exponential(200), Weibull(200, 1.5), PowerLaw(150, 1.0), BaseLevel(150, 1.5, 0.5), PlateauLinear(30, 365, 0.5),
]  # fmt: skip


def simulated(curve: AnyCurve, *, n: int, seed: int = 0, predicate: str = "simulated") -> pl.DataFrame:
    """Draw labels whose chance of "still true" is the curve, of facts that were accessed up to five times more."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 730, n)
    older = np.repeat(np.arange(n), rng.integers(0, 6, n))
    row = np.concatenate([np.arange(n), older])
    each = np.concatenate([age, rng.uniform(age[older], 1460)])
    true = rng.uniform(size=n) < curve.retention(age, Accesses(row, each))
    accesses = pl.DataFrame({"row": row, "each": each}).group_by("row").agg("each").sort("row")["each"]
    frame = pl.DataFrame({"age_days": age, "accesses_days": accesses, "still_true": true})
    fact = pl.format("{}/{}", pl.lit(predicate), pl.int_range(n))
    return frame.with_columns(fact_id=fact, predicate=pl.lit(predicate))


@pytest.mark.parametrize(
    ("sets", "alpha"),
    [pytest.param(40, 0.005, marks=pytest.mark.slow), pytest.param(100, 0.05, marks=pytest.mark.nightly)],
)
@pytest.mark.parametrize("truth", TRUTHS, ids=lambda c: c.family)
def test_intervals_hold_the_truth_as_often_as_they_say(truth: AnyCurve, sets: int, alpha: float) -> None:
    """As a fair 90 % would: within what a binomial of this many sets leaves to chance."""
    # Below 2,000 observations too few facts die near the end of the plateau to bound it from below.
    n = 2000 if truth.family == "plateau_linear" else 1000
    hits = dict.fromkeys(parameters(truth), 0)
    for seed in range(sets):
        fitted = tuning.fit(simulated(truth, n=n, seed=seed), truth.family)
        for name, _, low, high in fitted.intervals.iter_rows():
            hits[name] += low <= getattr(truth, name) <= high
    low, high = binom.ppf([alpha / 2, 1 - alpha / 2], sets, 0.9)
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


def test_a_fit_repeats_and_does_not_depend_on_the_order_of_rows() -> None:
    frame = simulated(Weibull(200, 1.5), n=300, seed=0)
    one = tuning.fit(frame, "weibull", seed=4, intervals=False).curve
    assert one == tuning.fit(frame, "weibull", seed=4, intervals=False).curve
    mixed = tuning.fit(frame.sample(fraction=1, shuffle=True, seed=1), "weibull", seed=4, intervals=False).curve
    assert mixed.half_life_days == pytest.approx(one.half_life_days, rel=2e-3)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame({"age_days": [1.0] * 30}), "still_true"),
        (pl.DataFrame({"age_days": [1.0] * 30, "still_true": [True] * 30}), "30 of them still true"),
        (pl.DataFrame({"age_days": [-1.0], "still_true": [True]}), "row 0"),
        (pl.DataFrame({"age_days": [1.0, None], "still_true": [True, False]}), "row 1"),
        (pl.DataFrame({"age_days": [1.0], "still_true": [1]}), "Int64"),
    ],
)
def test_bad_observations_are_named(frame: pl.DataFrame, message: str) -> None:
    with pytest.raises(DataError, match=message):
        tuning.fit(frame, "exponential")


@pytest.fixture(scope="module")
def observations() -> pl.DataFrame:
    each = {"lives in": Exponential(400), "reads": Exponential(25)}
    return pl.concat(simulated(c, n=150, seed=i, predicate=p) for i, (p, c) in enumerate(each.items()))


@pytest.fixture(scope="module")
def comparison(observations: pl.DataFrame) -> pl.DataFrame:
    return tuning.compare(observations, families=["exponential", "weibull"])


def test_comparison_finds_that_predicates_differ(comparison: pl.DataFrame) -> None:
    every = comparison.sort("log_loss")
    assert every["fit"][0] == tuning.OWN
    assert every["family"][-1] in (tuning.CONSTANT, tuning.DEFAULT)


def test_a_group_is_never_in_both_parts(observations: pl.DataFrame) -> None:
    # A label that is a function of the group: whoever had seen the group would know it.
    grouped = observations.with_columns(scope=pl.int_range(pl.len()) // 30).with_columns(
        still_true=pl.col("scope") % 2 == 0
    )
    table = tuning.compare(grouped, families=["exponential"], group="scope")
    assert table["log_loss"].min() > 0.6


def test_the_recommendation_is_simple_and_written(tmp_path: Path, observations: pl.DataFrame) -> None:
    one = observations.filter(predicate="reads")
    advice = tuning.recommend(one, comparison=tuning.compare(one, families=["exponential", "weibull"]))
    assert advice.table["decay"]["family"] == "exponential"
    path = tmp_path / "memlab.toml"
    path.write_text("# mine\nseed = 3\n[confidence]\nreinforcement_limit = 2.0  # kept\n")
    advice.write(path)
    written = tomllib.loads(path.read_text())
    assert written == {"seed": 3, "confidence": {"reinforcement_limit": 2.0, "decay": advice.table["decay"]}}
    assert "# mine" in path.read_text()
    assert "# kept" in path.read_text()


@pytest.mark.parametrize("text", ["confidence = 3\n", "confidence.seed = 1\n[a"])
def test_a_file_that_cannot_be_changed_alone_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "memlab.toml"
    path.write_text(text)
    with pytest.raises(DataError):
        write_settings(path, "confidence", {"decay": {"family": "exponential"}})
    assert path.read_text() == text
