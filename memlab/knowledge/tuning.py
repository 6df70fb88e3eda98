"""Decay tuned to labelled observations: whether a fact of some age was still true.

The chance of "still true" is the curve read as a survival function, so the likelihood is Bernoulli (current-status
data). Intervals come from the profile likelihood. Families are compared on facts that they have not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.config import write_settings
from memlab.errors import DataError
from memlab.knowledge.decay import FAMILIES, SPACE, Accesses, AnyCurve, PlateauLinear, family, parameters

CONSTANT, DEFAULT, POOLED, OWN = "constant", "default", "pooled", "per predicate"
MIN_OBSERVATIONS, MIN_LABELS, FOLDS = 20, 100, 5
"""What a curve needs, what a predicate needs for a curve of its own, and the folds of a comparison."""
CLIP = 1e-6  # chances are kept this far from 0 and 1: a curve that is sure and wrong costs 13.8 nats, not infinity
_SCREENED, _STARTS, _CONFIDENCE = 64, 3, 0.9
LABELS: dict[str, Any] = {
    "fact_id": pl.String(), "predicate": pl.String(), "age_days": pl.Float64(), "accesses_days": pl.List(pl.Float64()),
    "still_true": pl.Boolean(),
}  # fmt: skip
"""The columns of labelled observations: ``age_days`` since the last access, ``accesses_days`` the age of each."""


class Fit(NamedTuple):
    """A fitted curve; ``intervals``: ``parameter``, ``estimate``, ``low`` and ``high``, if they were asked for."""

    curve: AnyCurve
    intervals: pl.DataFrame


@dataclass(frozen=True)
class Recommendation:
    """A setting for ``memlab.toml``, and why it is this one.

    :param table: the keys ``decay`` and ``decay_by_predicate`` of the table ``[confidence]``.
    """

    table: dict[str, Any]
    why: str

    def write(self, path: str | Path = "memlab.toml") -> Path:
        """Write the curves into a settings file; see :func:`memlab.config.write_settings`."""
        return write_settings(Path(path), "confidence", self.table)


def fit(observations: pl.DataFrame, name: str, *, intervals: bool = True, seed: int = 0) -> Fit:
    """Fit a decay family by maximum likelihood, with 90 % intervals from the profile likelihood.

    The best of 64 places drawn within the bounds start a Nelder–Mead search each, since the plateau has corners. An
    observation counts as independent of the others: with many of one fact the intervals are too narrow.

    :param observations: ``age_days`` and ``still_true``; ``accesses_days`` (a list of ages) for base-level activation.
    :param name: the family: plateau_linear, exponential, power_law, weibull or base_level.
    :param intervals: whether to find intervals too, which takes most of the time.
    :raises DataError: for fewer than 20 observations, all of one label, or a bad column.

    >>> from memlab.knowledge import simulated, tuning
    >>> facts, truth = simulated.simulate(4_000, seed=1, hazards={"lives in": 1.0})
    >>> seen = simulated.observations(facts, truth, dates=[facts["asserted_at"].max()])
    >>> low, high = tuning.fit(seen, "exponential").intervals.select("low", "high").row(0)
    >>> low < 253 < high  # the true half-life: 365 · ln 2
    True
    """
    likelihood = _Likelihood(name, observations)
    n, n_true = observations.height, int(likelihood.true.sum())
    if n < MIN_OBSERVATIONS or n_true in (0, n):
        raise DataError(
            f"{n} observations, {n_true} of them still true, do not determine a {name} curve; give at least "
            f"{MIN_OBSERVATIONS}, of both kinds"
        )
    top = likelihood.maximum(seed)
    rows = [
        (p.name, *likelihood.values(i, [top[i], *likelihood.interval(top, i)]))
        for i, p in enumerate(SPACE[name] if intervals else ())
    ]
    columns = {"parameter": pl.String(), "estimate": pl.Float64(), "low": pl.Float64(), "high": pl.Float64()}
    return Fit(likelihood.curve(top), pl.DataFrame(rows, schema=columns, orient="row"))


def _observed(observations: pl.DataFrame) -> tuple[np.ndarray, np.ndarray, Accesses | None]:
    """Check observations and give ages, labels and all accesses as arrays.

    :raises DataError: for a missing column, an age or label that is missing or out of range.
    """
    if missing := {"age_days", "still_true"} - set(observations.columns):
        raise DataError(f"observations need the column {min(missing)}; the frame has {observations.columns}")
    age, label = observations["age_days"].cast(pl.Float64).fill_null(np.nan).to_numpy(), observations["still_true"]
    wrong = np.flatnonzero(~((age >= 0) & np.isfinite(age)))
    if wrong.size:
        raise DataError(f"age_days is {age[wrong[0]]} in row {wrong[0]}; expected a number of days from 0")
    if label.dtype != pl.Boolean or label.null_count():
        raise DataError(f"still_true is {label.dtype}, {label.null_count()} missing; expected true or false")
    if "accesses_days" not in observations.columns:
        return age, label.to_numpy(), None
    lists = observations.select(each="accesses_days", last="age_days").with_row_index("row")
    flat = lists.explode("each", empty_as_null=True).select("row", pl.coalesce("each", "last"))
    return age, label.to_numpy(), Accesses(flat["row"].cast(pl.Int64).to_numpy(), flat["each"].to_numpy())


def _chances(curve: AnyCurve, age: np.ndarray, accesses: Accesses | None) -> np.ndarray:
    return np.clip(curve.retention(age, accesses), CLIP, 1 - CLIP)


class _Likelihood:
    """The loss of a family on observations. A place is an array of its parameters, on the scale they are sought on."""

    def __init__(self, name: str, observations: pl.DataFrame) -> None:
        self.make: Callable[..., AnyCurve] = family(name)
        self.space = SPACE[name]
        self.bounds = np.array([np.log([p.low, p.high]) if p.log else [p.low, p.high] for p in self.space])
        self.age, self.true, self.accesses = _observed(observations)

    def values(self, i: int, places: Sequence[float]) -> list[float]:
        """Give the values of parameter i at places on its scale."""
        p = self.space[i]
        return [float(np.clip(np.exp(place) if p.log else place, p.low, p.high)) for place in places]

    def curve(self, place: np.ndarray) -> AnyCurve:
        return self.make(**{p.name: self.values(i, [place[i]])[0] for i, p in enumerate(self.space)})

    def loss(self, place: np.ndarray) -> float:
        if self.make is PlateauLinear and place[0] >= place[1] - 1e-6:
            return np.inf
        chance = _chances(self.curve(place), self.age, self.accesses)
        return float(-np.log(np.where(self.true, chance, 1 - chance)).sum())

    def maximum(self, seed: int) -> np.ndarray:
        """Find the most likely place from the best of many; days are drawn where there are ages."""
        from scipy.stats import qmc

        ages = np.log(np.quantile(self.age, [0.02, 1.0]).clip(0.1) * [0.5, 2.0])
        days = [p.name.endswith("_days") for p in self.space]
        box = np.array([np.clip(ages, *its) if day else its for day, its in zip(days, self.bounds, strict=True)])
        drawn = qmc.Sobol(len(box), rng=np.random.default_rng(seed)).random(_SCREENED)
        places = np.clip(qmc.scale(drawn, box[:, 0], box[:, 1] + 1e-9), *self.bounds.T)
        starts = places[np.argsort([self.loss(place) for place in places], kind="stable")][:_STARTS]
        best = min((_minimise(self.loss, start, self.bounds, step=0.3) for start in starts), key=self.loss)
        return _minimise(self.loss, best, self.bounds, step=0.05)

    def interval(self, top: np.ndarray, i: int) -> list[float]:
        """Find where the best with parameter i fixed falls short of the top by half a chi-square, below and above."""
        from scipy.stats import chi2

        limit = self.loss(top) + float(chi2.ppf(_CONFIDENCE, 1)) / 2
        return [self._end(top, i, bound, limit) for bound in self.bounds[i]]

    def _end(self, top: np.ndarray, i: int, bound: float, limit: float) -> float:
        """Follow the profile of parameter i from the top towards a bound, to where it crosses the limit."""
        from scipy.optimize import brentq

        others = np.delete(np.arange(len(top)), i)
        warm = top[others]

        def excess(value: float) -> float:
            nonlocal warm
            rest = _minimise(lambda rest: self.loss(np.insert(rest, i, value)), warm, self.bounds[others], step=0.1)
            least = self.loss(np.insert(rest, i, value))
            warm = rest if np.isfinite(least) else warm
            return min(least, 1e9) - limit

        inner, step = float(top[i]), 0.05
        while inner != bound:
            outer = float(np.clip(inner + np.copysign(step, bound - top[i]), *self.bounds[i]))
            if excess(outer) > 0:
                return float(brentq(excess, inner, outer, xtol=1e-3)) if excess(inner) < 0 else inner
            inner, step = outer, step * 2
        return float(bound)


def _minimise(loss: Callable[[np.ndarray], float], start: np.ndarray, bounds: np.ndarray, *, step: float) -> np.ndarray:
    from scipy.optimize import minimize

    if not len(start):
        return start
    # The simplex points inwards, so that it keeps its size at a bound.
    shift = np.where(start + step > bounds[:, 1], -step, step)
    simplex = np.vstack([start, start + np.diag(shift)])
    options = {"initial_simplex": simplex, "xatol": 1e-3, "fatol": 1e-4, "maxiter": 400}
    return np.asarray(minimize(loss, start, method="Nelder-Mead", bounds=bounds, options=options).x)


def _own(observations: pl.DataFrame, name: str, seed: int) -> dict[str, AnyCurve]:
    """Fit a family to each predicate with enough labels of both kinds."""
    return {
        str(key[0]): fit(part, name, intervals=False, seed=seed).curve
        for key, part in observations.drop_nulls("predicate").group_by("predicate", maintain_order=True)
        if part.height >= MIN_LABELS and part["still_true"].n_unique() == 2
    }


def compare(
    observations: pl.DataFrame, *, families: Sequence[str] = tuple(FAMILIES), group: str = "fact_id", seed: int = 0
) -> pl.DataFrame:
    """Predict each fact by curves fitted without it, for every family, pooled and by predicate, in five folds.

    Beside the families stand ``constant``, the share still true whatever the age, which a curve must beat to say
    anything, and ``default``, the plateau-linear curve of memlab, not fitted. A predicate with 100 labels has a curve
    of its own, the others the pooled one.

    :param observations: ``predicate``, ``age_days``, ``still_true``, the column named by ``group``, and
        ``accesses_days`` where known.
    :param group: what is never split between fitting and testing: ``fact_id``, or ``scope`` to carry over to other
        people.
    :returns: ``family``, ``fit``, ``n``, ``log_loss`` with ``low`` and ``high``, and the paired ``difference`` of
        log-loss to the best family with ``difference_low`` and ``difference_high`` (90 %, groups taken as independent).
    :raises DataError: for a missing column, fewer groups than folds, or a fold without enough to fit.
    """
    from sklearn.model_selection import GroupKFold

    if {"predicate", group} - set(observations.columns) or observations[group].n_unique() < FOLDS:
        raise DataError(f"observations need predicate, {group} and at least {FOLDS} different {group}")
    several = observations["predicate"].n_unique() > 1
    chance: dict[tuple[str, str], np.ndarray] = {}
    folds = GroupKFold(FOLDS, shuffle=True, random_state=seed)
    for learn, test in folds.split(observations, groups=observations[group].to_list()):
        train, its = observations[learn], observations[test]
        age, _, accesses = _observed(its)
        given = {
            (CONSTANT, POOLED): np.full(len(test), train["still_true"].mean()),
            (DEFAULT, POOLED): _chances(PlateauLinear(), age, accesses),
        }
        for name in families:
            pooled = fit(train, name, intervals=False, seed=seed).curve
            given[name, POOLED] = by_predicate = _chances(pooled, age, accesses)
            if several:
                for predicate, curve in _own(train, name, seed).items():
                    where = its["predicate"].eq_missing(pl.Series([predicate])).to_numpy()
                    by_predicate = np.where(where, _chances(curve, age, accesses), by_predicate)
                given[name, OWN] = by_predicate
        for key, values in given.items():
            chance.setdefault(key, np.zeros(observations.height))[test] = values
    true = observations["still_true"].to_numpy()
    losses = {key: -np.log(np.where(true, values, 1 - values)) for key, values in chance.items()}
    best = min((key for key in losses if key[0] in FAMILIES), key=lambda key: float(losses[key].mean()))
    rows = [
        (*key, len(true), *_mean(loss, observations[group]), *_mean(loss - losses[best], observations[group]))
        for key, loss in losses.items()
    ]
    measures = ["log_loss", "low", "high", "difference", "difference_low", "difference_high"]
    return pl.DataFrame(rows, schema=["family", "fit", "n", *measures], orient="row")


def _mean(values: np.ndarray, groups: pl.Series) -> tuple[float, float, float]:
    """Give a mean with its normal interval; values of one group may depend on each other."""
    from scipy.stats import norm

    mean, (_, at) = float(values.mean()), np.unique(groups.to_numpy(), return_inverse=True)
    sums = np.bincount(at, weights=values - mean)
    half = norm.ppf((1 + _CONFIDENCE) / 2) * np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / len(values)
    return mean, mean - half, mean + half


def recommend(observations: pl.DataFrame, *, comparison: pl.DataFrame | None = None, seed: int = 0) -> Recommendation:
    """Choose the simplest family that is not surely worse than the best, and fit it to all observations.

    Not surely worse: the 90 % interval of its held-out log-loss over the best one's includes 0. Simplest: fewest
    parameters, counted over all its curves; then the lower log-loss.

    :param comparison: what :func:`compare` gave for these observations; made here where not given.

    >>> from memlab.knowledge import simulated, tuning
    >>> facts, truth = simulated.simulate(2_000, seed=1, hazards={"lives in": 1.0})
    >>> advice = tuning.recommend(simulated.observations(facts, truth, dates=[facts["asserted_at"].max()]))
    >>> advice.table["decay"]["family"]
    'exponential'
    """
    table = compare(observations, seed=seed) if comparison is None else comparison
    n_own = (observations["predicate"].drop_nulls().value_counts()["count"] >= MIN_LABELS).sum()
    n_curves = pl.when(pl.col("fit") == OWN).then(1 + n_own).otherwise(1)
    n_each = pl.col("family").replace_strict({name: len(space) for name, space in SPACE.items()})
    fitted = table.filter(pl.col("family").is_in(list(FAMILIES))).with_columns(parameters=n_each * n_curves)
    near = fitted.filter(pl.col("difference_low") <= 0).sort("parameters", "log_loss")
    best, chosen = fitted.sort("log_loss").row(0, named=True), near.row(0, named=True)
    name = chosen["family"]
    own = _own(observations, name, seed) if chosen["fit"] == OWN else {}
    place = "the best of all" if chosen == best else f"not surely worse than {best['family']} ({best['fit']})"
    why = (
        f"{name} ({chosen['fit']}): held-out log-loss {chosen['log_loss']:.4f}, {place}, with "
        f"{chosen['parameters']} parameters, on {chosen['n']:,} observations"
    )
    pooled = fit(observations, name, intervals=False, seed=seed).curve
    by_predicate = {predicate: _rounded(curve) for predicate, curve in own.items()}
    return Recommendation({"decay": _rounded(pooled), "decay_by_predicate": by_predicate}, why)


def _rounded(curve: AnyCurve) -> dict[str, Any]:
    """Give four significant digits: more than any data know, and readable in a file."""
    return {"family": curve.family} | {k: float(f"{v:.4g}") for k, v in parameters(curve).items()}
