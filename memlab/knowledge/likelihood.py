"""Decay curves fitted to labelled observations by maximum likelihood, with intervals from the profile likelihood.

An observation is one fact at one age, and whether it was still true then. The chance of "still true" is the curve
read as a survival function, so the likelihood is Bernoulli (current-status data). The profile likelihood, not the
curvature at the top, gives the intervals: it does not depend on how a parameter is written, may be skew, and ends at
a bound where the data do not limit a parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.knowledge.decay import SPACE, Accesses, AnyCurve, PlateauLinear, family

CLIP = 1e-6
"""Chances are kept this far from 0 and 1: a curve that is sure and wrong costs 13.8 nats, not infinity."""
MIN_OBSERVATIONS = 20
_SCREENED, _STARTS = 64, 3


@dataclass(frozen=True)
class Fit:
    """A fitted curve.

    :param intervals: ``parameter``, ``estimate``, ``low``, ``high`` and ``bounded`` (false where an end is only the
        edge of what was sought: the data do not limit the parameter on that side); empty where none were asked for.
    :param log_likelihood: in nats, at the top.
    """

    curve: AnyCurve
    intervals: pl.DataFrame
    log_likelihood: float


class Observed(NamedTuple):
    """Observations as arrays."""

    age: np.ndarray
    true: np.ndarray
    accesses: Accesses | None


def need(observations: pl.DataFrame, *names: str) -> None:
    """Refuse observations without a column.

    :raises DataError: naming what is missing.
    """
    missing = [name for name in names if name not in observations.columns]
    if missing:
        columns = ", ".join(observations.columns)
        raise DataError(f"observations need the column(s) {', '.join(missing)}; the frame has {columns}")


def observed(observations: pl.DataFrame) -> Observed:
    """Check observations and give them as arrays.

    :raises DataError: for a missing column, an age or label that is missing or out of range.
    """
    need(observations, "age_days", "still_true")
    age = observations["age_days"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    wrong = np.flatnonzero(~((age >= 0) & np.isfinite(age)))
    if wrong.size:
        raise DataError(f"age_days is {age[wrong[0]]} in row {wrong[0]}; expected a number of days from 0")
    label = observations["still_true"]
    if label.dtype != pl.Boolean or label.null_count():
        raise DataError(
            f"still_true is {label.dtype} with {label.null_count()} nulls; expected true or false in each row"
        )
    accesses = None
    if "accesses_days" in observations.columns:
        accesses = Accesses.of(observations["accesses_days"], age)
        if not ((accesses.age_days >= 0) & np.isfinite(accesses.age_days)).all():
            raise DataError("accesses_days holds a number below 0 or none at all; expected lists of days from 0")
    return Observed(age, label.to_numpy(), accesses)


def chances(curve: AnyCurve, data: Observed) -> np.ndarray:
    """Give P(still true) of each observation under a curve, clipped by :data:`CLIP`."""
    return np.clip(curve.retention(data.age, data.accesses), CLIP, 1 - CLIP)


def losses(chance: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Give the log-loss of each observation in nats."""
    return -np.log(np.where(true, chance, 1 - chance))


def fit(
    observations: pl.DataFrame, name: str, *, intervals: bool = True, confidence: float = 0.9, seed: int = 0
) -> Fit:
    """Fit a decay family by maximum likelihood.

    The best of 64 places drawn within the bounds start a Nelder–Mead search each, since the plateau has corners. An
    observation counts as independent of the others: with many of one fact the intervals are too narrow.

    :param observations: ``age_days`` and ``still_true``; ``accesses_days`` (a list of ages) for base-level activation.
    :param name: the family: plateau_linear, exponential, power_law, weibull or base_level.
    :param intervals: whether to find intervals too, which takes most of the time; of this ``confidence``.
    :param seed: of the places drawn.
    :raises DataError: for fewer than 20 observations, all of one label, or a bad column.

    >>> from memlab.knowledge import likelihood, tuning
    >>> from memlab.knowledge.decay import Exponential
    >>> fitted = likelihood.fit(tuning.simulate(Exponential(200), n=2000, seed=0), "exponential")
    >>> low, high = fitted.intervals.select("low", "high").row(0)
    >>> 180 < low < 200 < high < 225
    True
    """
    if not 0 < confidence < 1:
        raise DataError(f"confidence is {confidence}; it lies between 0 and 1, such as 0.9")
    search = _Search(name, observed(observations))
    n, n_true = len(search.data.true), int(search.data.true.sum())
    if n < MIN_OBSERVATIONS or n_true in (0, n):
        raise DataError(
            f"{n} observations, {n_true} of them still true, do not determine a {name} curve; give at least "
            f"{MIN_OBSERVATIONS}, of both kinds"
        )
    search.climb(seed)
    rows = search.intervals(confidence) if intervals else []
    schema = {"parameter": pl.String, "estimate": pl.Float64, "low": pl.Float64, "high": pl.Float64}
    table = pl.DataFrame(rows, schema=schema | {"bounded": pl.Boolean}, orient="row")
    return Fit(search.curve(search.top), table, -search.loss(search.top))


class _Search:
    """The loss of a family on observations, over its parameters as they are searched, and the best place so far."""

    def __init__(self, name: str, data: Observed) -> None:
        self.kind: Callable[..., AnyCurve] = family(name)
        self.space, self.data = SPACE[name], data
        self.bounds = np.array([[p.scaled(p.low), p.scaled(p.high)] for p in self.space])
        self.top = self.bounds.mean(axis=1)

    def curve(self, place: np.ndarray) -> AnyCurve:
        return self.kind(**{p.name: p.value(z) for p, z in zip(self.space, place, strict=True)})

    def loss(self, place: np.ndarray) -> float:
        if self.kind is PlateauLinear and place[0] >= place[1] - 1e-6:
            return np.inf
        return float(losses(chances(self.curve(place), self.data), self.data.true).sum())

    def climb(self, seed: int) -> None:
        """Find the top from the best of many places."""
        from scipy.stats import qmc

        # Days are drawn where there are ages; the search itself may leave them.
        box = self.bounds.copy()
        ages = np.log(np.quantile(self.data.age, [0.02, 1.0]).clip(0.1) * [0.5, 2.0])
        for i, p in enumerate(self.space):
            if p.name.endswith("_days"):
                box[i] = np.clip(ages, *self.bounds[i])
        drawn = qmc.Sobol(len(box), rng=np.random.default_rng(seed)).random(_SCREENED)
        places = np.clip(qmc.scale(drawn, box[:, 0], box[:, 1] + 1e-9), self.bounds[:, 0], self.bounds[:, 1])
        starts = places[np.argsort([self.loss(place) for place in places], kind="stable")][:_STARTS]
        best = min((_minimise(self.loss, start, self.bounds, step=0.3) for start in starts), key=self.loss)
        self.top = _minimise(self.loss, best, self.bounds, step=0.05)

    def intervals(self, confidence: float) -> list[tuple[str, float, float, float, bool]]:
        """Find where the best with one parameter fixed falls short of the top by half a chi-square.

        A better top that comes to light on the way replaces the first one, and the search begins again.
        """
        from scipy.stats import chi2

        for _ in range(3):
            before = self.top
            limit = self.loss(before) + float(chi2.ppf(confidence, 1)) / 2
            ends = [[self._end(i, bound, limit) for bound in self.bounds[i]] for i in range(len(before))]
            if self.loss(self.top) > self.loss(before) - 1e-3:
                self.top = before
                break
            self.top = _minimise(self.loss, self.top, self.bounds, step=0.05)
        return [
            (p.name, p.value(z), p.value(low), p.value(high), bool(low > bounds[0] and high < bounds[1]))
            for p, z, (low, high), bounds in zip(self.space, self.top, ends, self.bounds, strict=True)
        ]

    def _end(self, i: int, bound: float, limit: float) -> float:
        """Follow the profile of parameter i from the top towards a bound until it crosses the limit."""
        from scipy.optimize import brentq

        start = self.top
        others = np.delete(np.arange(len(start)), i)
        warm = start[others]

        def excess(value: float) -> float:
            nonlocal warm

            def fixed(rest: np.ndarray) -> float:
                return self.loss(np.insert(rest, i, value))

            rest = _minimise(fixed, warm, self.bounds[others], step=0.1)
            least = fixed(rest)
            warm = rest if np.isfinite(least) else warm
            if least < self.loss(self.top):
                self.top = np.insert(rest, i, value)
            return min(least, 1e9) - limit

        inner, step = float(start[i]), 0.05
        while inner != bound:
            outer = float(np.clip(inner + np.copysign(step, bound - start[i]), *self.bounds[i]))
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
    return minimize(loss, start, method="Nelder-Mead", bounds=bounds, options=options).x
