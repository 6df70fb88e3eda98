"""Tuning decay: the truth is recovered, families are told apart on facts held out, the setting is written."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from memlab.errors import DataError
from memlab.knowledge import calibration, likelihood, tuning
from memlab.knowledge.confidence import ConfidenceSettings
from memlab.knowledge.decay import AnyCurve, BaseLevel, Exponential, PlateauLinear, PowerLaw, Weibull, parameters

TRUTHS = [
    Exponential(200),
    Weibull(200, 1.5),
    PowerLaw(150, 1.0),
    BaseLevel(150, 1.5, 0.5),
    PlateauLinear(30, 365, 0.5),
]


def recovered(truth: AnyCurve, *, n: int, seeds: range) -> dict[str, int]:
    """Count by parameter how many 90 % intervals hold the truth."""
    hits = dict.fromkeys(parameters(truth), 0)
    for seed in seeds:
        fitted = likelihood.fit(tuning.simulate(truth, n=n, seed=seed), truth.family)
        for name, low, high in fitted.intervals.select("parameter", "low", "high").iter_rows():
            hits[name] += low <= getattr(truth, name) <= high
    return hits


@pytest.mark.parametrize(
    ("sets", "alpha"),
    [pytest.param(40, 0.005, marks=pytest.mark.slow), pytest.param(100, 0.05, marks=pytest.mark.nightly)],
)
@pytest.mark.parametrize("truth", TRUTHS, ids=lambda c: c.family)
def test_intervals_hold_the_truth_as_often_as_they_say(truth: AnyCurve, sets: int, alpha: float) -> None:
    """As a fair 90 % would: within what a binomial of this many sets leaves to chance."""
    # Below 2,000 observations too few facts die near the end of the plateau to bound it from below.
    n = 2000 if truth.family == "plateau_linear" else 1000
    hits = recovered(truth, n=n, seeds=range(sets))
    low, high = binom.ppf([alpha / 2, 1 - alpha / 2], sets, 0.9)
    assert all(low <= count <= high for count in hits.values()), hits


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda c: c.family)
def test_truth_is_near_what_is_fitted(truth: AnyCurve) -> None:
    fitted = likelihood.fit(tuning.simulate(truth, n=1500, seed=11), truth.family)
    assert fitted.intervals["parameter"].to_list() == list(parameters(truth))
    for name, value, low, high, _ in fitted.intervals.iter_rows():
        assert low <= value <= high
        assert getattr(fitted.curve, name) == value
        # Three times the half-width of a 90 % interval is five standard errors.
        wide = 3 * max(high - value, value - low)
        assert abs(getattr(truth, name) - value) < wide
    data = likelihood.observed(tuning.simulate(truth, n=1500, seed=11))
    at_truth = -likelihood.losses(likelihood.chances(truth, data), data.true).sum()
    assert fitted.log_likelihood >= at_truth - 1e-3


def test_exponential_agrees_with_a_grid() -> None:
    frame = tuning.simulate(Exponential(120), n=400, seed=3)
    data = likelihood.observed(frame)
    grid = np.exp(np.linspace(np.log(60), np.log(240), 20_001))
    loss = np.array([likelihood.losses(likelihood.chances(Exponential(h), data), data.true).sum() for h in grid[::10]])
    inside = grid[::10][loss <= loss.min() + 2.705543 / 2]
    fitted = likelihood.fit(frame, "exponential").intervals
    assert fitted["estimate"][0] == pytest.approx(grid[::10][loss.argmin()], rel=2e-3)
    assert fitted["low"][0] == pytest.approx(inside[0], rel=3e-3)
    assert fitted["high"][0] == pytest.approx(inside[-1], rel=3e-3)


def test_fit_repeats_and_does_not_depend_on_the_order_of_rows() -> None:
    frame = tuning.simulate(Weibull(200, 1.5), n=300, seed=0)
    one, two = (likelihood.fit(frame, "weibull", seed=4) for _ in range(2))
    assert one.curve == two.curve
    mixed = likelihood.fit(frame.sample(fraction=1, shuffle=True, seed=1), "weibull", seed=4)
    assert mixed.curve.half_life_days == pytest.approx(one.curve.half_life_days, rel=2e-3)  # type: ignore[union-attr]


def test_parameter_that_the_data_do_not_limit_is_said_to_be_unbounded() -> None:
    # The power law of a large exponent is the exponential curve.
    fitted = likelihood.fit(tuning.simulate(Exponential(200), n=300, seed=0), "power_law").intervals
    row = fitted.filter(parameter="exponent").row(0, named=True)
    assert not row["bounded"]
    assert row["high"] == pytest.approx(50)
    assert fitted.filter(parameter="half_life_days")["bounded"][0]


def test_without_a_list_there_is_one_access() -> None:
    frame = tuning.simulate(BaseLevel(150, 1.5), n=200, seed=0, max_accesses=1)
    none = frame.with_columns(accesses_days=pl.lit(None, pl.List(pl.Float64)))
    empty = frame.with_columns(accesses_days=pl.lit([], pl.List(pl.Float64)))
    frames = (frame, none, empty, frame.drop("accesses_days"))
    fits = [likelihood.fit(f, "base_level", intervals=False) for f in frames]
    assert len({fit.log_likelihood for fit in fits}) == 1


def test_simulation_is_seeded_and_has_the_hazard_that_is_known() -> None:
    curve = Weibull(100, 2)
    frame = tuning.simulate(curve, n=20_000, seed=1, max_age_days=200)
    assert frame.equals(tuning.simulate(curve, n=20_000, seed=1, max_age_days=200))
    bins = frame.with_columns(chance=pl.Series(curve.retention(frame["age_days"].to_numpy())))
    table = calibration.reliability(bins, confidence=0.9999)
    assert ((table["low"] <= table["chance"]) & (table["chance"] <= table["high"])).all()
    assert frame["accesses_days"].list.min().equals(frame["age_days"].alias("accesses_days"))
    assert set(frame["accesses_days"].list.len().unique()) == {1, 2, 3, 4, 5, 6}


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame({"age_days": [1.0] * 30}), r"need the column\(s\) still_true; the frame has age_days"),
        (pl.DataFrame({"age_days": [1.0] * 30, "still_true": [True] * 30}), "30 observations, 30 of them still true"),
        (pl.DataFrame({"age_days": [1.0, 2.0], "still_true": [True, False]}), "2 observations, 1 of them still true"),
        (pl.DataFrame({"age_days": [-1.0], "still_true": [True]}), r"age_days is -1.0 in row 0"),
        (pl.DataFrame({"age_days": [1.0, None], "still_true": [True, False]}), "age_days is nan in row 1"),
        (pl.DataFrame({"age_days": [1.0], "still_true": [1]}), "still_true is Int64 with 0 nulls"),
        (
            pl.DataFrame({"age_days": [1.0], "still_true": [True], "accesses_days": [[-1.0]]}),
            "accesses_days holds a number below 0",
        ),
    ],
)
def test_bad_observations_are_named(frame: pl.DataFrame, message: str) -> None:
    with pytest.raises(DataError, match=message):
        likelihood.fit(frame, "exponential")


@pytest.fixture(scope="module")
def observations() -> pl.DataFrame:
    parts = [(Weibull(150, 3), 240, "works_at"), (Exponential(900), 200, "likes"), (Exponential(900), 30, "rare")]
    return pl.concat(tuning.simulate(c, n=n, seed=i, predicate=p) for i, (c, n, p) in enumerate(parts))


@pytest.fixture(scope="module")
def comparison(observations: pl.DataFrame) -> tuning.Comparison:
    return tuning.compare(observations, folds=3, families=("exponential", "weibull"))


@pytest.fixture(scope="module")
def advice(observations: pl.DataFrame, comparison: tuning.Comparison) -> tuning.Recommendation:
    return tuning.recommend(observations, comparison=comparison)


def test_comparison_finds_the_family_and_that_predicates_differ(comparison: tuning.Comparison) -> None:
    table = comparison.table.filter(pl.col("predicate").is_null()).sort("log_loss")
    assert table.row(0, named=True)["family"] == "weibull"
    assert table.row(0, named=True)["fit"] == tuning.OWN
    assert set(table["family"]) == {"exponential", "weibull", "constant", "default"}
    assert table["n"].unique().to_list() == [470]
    assert table["difference"][0] == 0
    assert table.filter(family="constant")["difference_low"][0] > 0
    assert ((table["low"] <= table["log_loss"]) & (table["log_loss"] <= table["high"])).all()


def test_predicates_with_few_labels_fall_back_and_that_is_said(
    comparison: tuning.Comparison, observations: pl.DataFrame
) -> None:
    assert comparison.too_few == ("rare",)
    rare = comparison.table.filter(predicate="rare", family="weibull")
    assert rare["log_loss"].n_unique() == 1
    curves = tuning.fit_curves(observations, "exponential", intervals=False)
    assert (set(curves.own), curves.too_few) == ({"works_at", "likes"}, ("rare",))


def test_a_group_is_never_in_both_parts(observations: pl.DataFrame) -> None:
    # Each group is one label: whoever has seen the group knows the answer.
    scoped = observations.filter(predicate="likes").with_columns(
        scope=pl.when("still_true").then(pl.lit("a")).otherwise(pl.lit("b"))
    )
    with pytest.raises(DataError, match="of them still true"):
        tuning.compare(scoped, folds=2, group="scope", families=("exponential",))
    with pytest.raises(DataError, match="folds is 5 with 2 different scope"):
        tuning.compare(scoped, group="scope")


def test_scores_are_those_of_scikit_learn(comparison: tuning.Comparison) -> None:
    from sklearn.metrics import brier_score_loss, log_loss

    predicted = comparison.predictions.filter(family="weibull", fit="pooled")
    row = comparison.table.filter(pl.col("predicate").is_null(), family="weibull", fit="pooled").row(0, named=True)
    assert row["log_loss"] == pytest.approx(log_loss(predicted["still_true"], predicted["chance"]))
    assert row["brier"] == pytest.approx(brier_score_loss(predicted["still_true"], predicted["chance"]))


def test_calibration_error_is_the_weighted_gap_of_share_and_chance(comparison: tuning.Comparison) -> None:
    for (family, fit), rows in comparison.predictions.partition_by(["family", "fit"], as_dict=True).items():
        chance, true = rows["chance"].to_numpy(), rows["still_true"].to_numpy()
        at = np.digitize(chance, np.linspace(0, 1, 11)[1:-1])
        gap = sum(abs(chance[at == i].sum() - true[at == i].sum()) for i in range(10)) / rows.height
        row = comparison.table.filter(pl.col("predicate").is_null(), family=family, fit=fit)
        assert row["ece"][0] == pytest.approx(gap)
    table = calibration.reliability(comparison.predictions)
    assert ((table["low"] <= table["share"]) & (table["share"] <= table["high"])).all()


def test_wilson_is_scipys() -> None:
    from scipy.stats import binomtest

    hits, n = np.array([0, 3, 10]), np.array([5, 7, 10])
    low, high = calibration.wilson(hits, n)
    golden = [binomtest(int(h), int(m)).proportion_ci(0.9, "wilson") for h, m in zip(hits, n, strict=True)]
    np.testing.assert_allclose(low, [g.low for g in golden], atol=1e-12)
    np.testing.assert_allclose(high, [g.high for g in golden], atol=1e-12)


def test_recommendation_prefers_the_simpler_of_equals_and_is_written(tmp_path: Path) -> None:
    frame = tuning.simulate(Exponential(100), n=400, seed=0)
    advice = tuning.recommend(frame, comparison=tuning.compare(frame, folds=3))
    assert advice.table["decay"]["family"] == "exponential"
    assert "held-out log-loss" in advice.why
    assert "on 400 observations" in advice.why
    path = advice.write(tmp_path / "memlab.toml")
    settings = tomllib.loads(path.read_text())
    assert ConfidenceSettings.of(settings["confidence"]) == advice.settings
    assert advice.settings.decay.half_life_days == pytest.approx(100, rel=0.3)  # type: ignore[union-attr]


SETTINGS = '''# mine
seed = 3
note = """
[confidence.decay]
"""

[confidence]   # how sure
reinforcement_step = 0.2  # by taste

[confidence.decay]
family = "weibull"
shape = 2
# of the service

[llm.services.local]
base_url = "http://localhost"  # [confidence.decay]

[confidence.decay_by_predicate."works at"]
family = "exponential"
'''


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_writing_keeps_every_other_setting_and_comment(
    tmp_path: Path, advice: tuning.Recommendation, newline: str
) -> None:
    path = tmp_path / "memlab.toml"
    path.write_bytes(SETTINGS.replace("\n", newline).encode())
    advice.write(path)
    once = path.read_bytes()
    advice.write(path)
    assert path.read_bytes() == once
    settings = tomllib.loads(once.decode())
    assert (settings["seed"], settings["note"]) == (3, "[confidence.decay]\n")
    assert settings["llm"]["services"]["local"]["base_url"] == "http://localhost"
    assert settings["confidence"]["reinforcement_step"] == 0.2
    assert {k: settings["confidence"][k] for k in advice.table} == advice.table
    for comment in (b"# mine", b"# how sure", b"# by taste", b"# of the service", b"# [confidence.decay]"):
        assert comment in once
    assert once.count(b"\r\n") == (once.count(b"\n") if newline == "\r\n" else 0)
    assert [p.name for p in tmp_path.iterdir()] == ["memlab.toml"]


@pytest.mark.parametrize(
    "text", ["[confidence]\ndecay = {family = 'weibull'}\n", "confidence.undated = 0.5\n", "a = 1"]
)
def test_tables_are_changed_however_they_are_written(tmp_path: Path, advice: tuning.Recommendation, text: str) -> None:
    path = tmp_path / "memlab.toml"
    path.write_text(text)
    advice.write(path)
    before = tomllib.loads(text)
    assert tomllib.loads(path.read_text()) == before | {"confidence": before.get("confidence", {}) | advice.table}


@pytest.mark.parametrize("text", ["confidence = 3\n", "confidence.seed = 1\n[a"])
def test_a_file_that_cannot_be_changed_alone_is_left_as_it_is(
    tmp_path: Path, advice: tuning.Recommendation, text: str
) -> None:
    path = tmp_path / "memlab.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=r"cannot be changed alone; write this into it by hand|is not valid TOML"):
        advice.write(path)
    assert path.read_text() == text


def test_labels_in_words_are_refused_in_words() -> None:
    labelled = tuning.simulate(Exponential(100), n=60, seed=0)
    words = labelled.with_columns(still_true=pl.when("still_true").then(pl.lit("yes")).otherwise(pl.lit("no")))
    with pytest.raises(DataError, match=r"still_true holds String, such as \['(yes|no)'\]; expected true or false"):
        tuning.recommend(words)
