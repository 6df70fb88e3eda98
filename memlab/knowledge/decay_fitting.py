"""Fitting of decay curves to labels, each of which says whether a fact of some age was still true.

The chance of "still true" is the curve read as a survival function, so the likelihood is Bernoulli
(current-status data). Intervals come from the profile likelihood. Families are compared on facts
that they have not seen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.knowledge.decay_curves import BOUNDS, FAMILIES, AnyCurve, PlateauLinear

CONSTANT, DEFAULT = "constant", "default"
MIN_LABELS, FOLDS = 20, 5
MIN_CHANCE = 1e-6
"""How far chances are kept from 0 and 1: a curve that is sure and wrong costs 13.8 nats, not
infinity.
"""
_INTERVAL_LEVEL = 0.9


class Fit(NamedTuple):
    """A fitted curve and, if asked for, ``intervals``: ``parameter``, ``estimate``, ``low``,
    ``high``, ``level``.
    """

    curve: AnyCurve
    intervals: pl.DataFrame


@dataclass(frozen=True)
class Recommendation:
    """A curve for the settings, ``decay`` of the table ``[confidence]``, and why it is this one."""

    decay: dict[str, Any]
    why: str

    def settings_text(self) -> str:
        """Write the curve as the table that is pasted into ``memlab.toml``, in place of one that is
        there.

        >>> from memlab.knowledge.decay_fitting import Recommendation
        >>> settings = {"family": "exponential", "half_life_days": 80.5}
        >>> print(Recommendation(settings, "").settings_text())
        [confidence.decay]
        family = "exponential"
        half_life_days = 80.5
        """
        # A text and a finite number look in JSON as they do in TOML.
        values = [f"{name} = {json.dumps(value)}" for name, value in self.decay.items()]
        return "\n".join(["[confidence.decay]", *values])


def fit(labels: pl.DataFrame, name: str, *, intervals: bool = True, seed: int = 0) -> Fit:
    """Fit a decay family by maximum likelihood, with 90 % intervals from the profile likelihood.

    A label counts as independent of the others: with many of one fact the intervals are too narrow.

    :param labels: ``age_days``, since the fact was last heard, and ``still_true``.
    :param name: the family: plateau_linear, exponential, power_law, weibull or base_level.
    :param intervals: whether to find intervals too.
    :param seed: of the search (differential evolution, since the plateau has corners).
    :raises DataError: for an unknown family, fewer than 20 labels, all of one kind, or a bad
        column.

    >>> import numpy as np
    >>> import polars as pl
    >>> from memlab.knowledge import decay_fitting
    >>> age, drawn = np.arange(2_000.0), np.random.default_rng(0).random(2_000)
    >>> labels = pl.DataFrame({"age_days": age, "still_true": drawn < 0.5 ** (age / 300)})
    >>> low, high = decay_fitting.fit(labels, "exponential").intervals.select("low", "high").row(0)
    >>> low < 300 < high  # the true half-life
    True
    """
    from scipy.optimize import differential_evolution
    from scipy.stats import chi2

    if name not in FAMILIES:
        raise DataError(f"{name!r} is no decay family; there are {', '.join(FAMILIES)}")
    age, true = _check_labels(labels)
    if len(true) < MIN_LABELS or true.all() or not true.any():
        raise DataError(
            f"{len(true)} labels, {true.sum()} of them still true, do not determine a {name} "
            "curve; give at least "
            f"{MIN_LABELS}, of both kinds"
        )
    names = list(FAMILIES[name]().parameters)
    bounds = np.array([BOUNDS[each] for each in names])
    linear = bounds[:, 0] == 0
    bounds[~linear] = np.log(bounds[~linear])

    def curve(place: np.ndarray) -> AnyCurve:
        values = np.where(linear, place, np.exp(place))
        return FAMILIES[name](**dict(zip(names, values.tolist(), strict=True)))

    def loss(place: np.ndarray) -> float:
        try:
            chance = _survival_probabilities(curve(place), age)
        except DataError:  # the floor is reached before the plateau ends
            return 1e9
        return float(-np.log(np.where(true, chance, 1 - chance)).sum())

    optimum = differential_evolution(loss, bounds, popsize=12, tol=1e-4, polish=False, rng=seed)
    best = _minimise(loss, optimum.x, bounds)
    limit = loss(best) + float(chi2.ppf(_INTERVAL_LEVEL, 1)) / 2
    rows = []
    for i, each in enumerate(names if intervals else ()):
        ends = (best[i], *_profile_interval(loss, best, bounds, i, limit))
        values = (float(end if linear[i] else np.exp(end)) for end in ends)
        rows.append((each, *values, _INTERVAL_LEVEL))
    columns = {
        "parameter": pl.String(),
        "estimate": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "level": pl.Float64(),
    }
    return Fit(curve(best), pl.DataFrame(rows, schema=columns, orient="row"))


def _check_labels(labels: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Check labels and give ``age_days`` and ``still_true`` as arrays.

    :raises DataError: for a missing column, an age or label that is missing or out of range.
    """
    if missing := {"age_days", "still_true"} - set(labels.columns):
        raise DataError(f"labels need the column {min(missing)}; the frame has {labels.columns}")
    age, true = (
        labels["age_days"].cast(pl.Float64).fill_null(np.nan).to_numpy(),
        labels["still_true"],
    )
    wrong = np.flatnonzero(~((age >= 0) & np.isfinite(age)))
    if wrong.size:
        raise DataError(
            f"age_days is {age[wrong[0]]} in row {wrong[0]}; expected a number of days from 0"
        )
    if true.dtype != pl.Boolean or true.null_count():
        raise DataError(
            f"still_true is {true.dtype}, {true.null_count()} missing; expected true or false"
        )
    return age, true.to_numpy()


def _survival_probabilities(curve: AnyCurve, age: np.ndarray) -> np.ndarray:
    return np.clip(curve.retention(age), MIN_CHANCE, 1 - MIN_CHANCE)


Loss = Callable[[np.ndarray], float]


def _minimise(loss: Loss, start: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    from scipy.optimize import minimize

    if not len(start):
        return start
    # The simplex points inwards, so that it keeps its size at a bound.
    shift = np.where(start + 0.1 > bounds[:, 1], -0.1, 0.1)
    options = {
        "initial_simplex": np.vstack([start, start + np.diag(shift)]),
        "xatol": 1e-3,
        "fatol": 1e-4,
    }
    return np.asarray(minimize(loss, start, method="Nelder-Mead", bounds=bounds, options=options).x)


def _profile_interval(
    loss: Loss, top: np.ndarray, bounds: np.ndarray, i: int, limit: float
) -> list[float]:
    """Find the ends of the interval of parameter i, where its profile of the loss crosses a limit,
    or its bounds.
    """
    from scipy.optimize import brentq

    others = np.delete(np.arange(len(top)), i)

    def excess(value: float) -> float:
        rest = _minimise(lambda rest: loss(np.insert(rest, i, value)), top[others], bounds[others])
        return loss(np.insert(rest, i, value)) - limit

    return [
        float(end) if excess(end) <= 0 else brentq(excess, top[i], end, xtol=1e-3)
        for end in bounds[i]
    ]


def compare_curves(
    labels: pl.DataFrame,
    *,
    families: Sequence[str] = tuple(FAMILIES),
    group: str = "fact_id",
    seed: int = 0,
) -> pl.DataFrame:
    """Compare the decay families by their log-loss on held-out facts, in five folds.

    Beside the families stand ``constant``, the share still true whatever the age, which a curve
    must beat to say anything, and ``default``, the plateau-linear curve of memlab, not fitted.

    :param labels: ``age_days``, ``still_true`` and the column named by ``group``.
    :param group: what is never split between fitting and testing: ``fact_id``, or ``scope`` to
        carry over to other people.
    :returns: ``family``, ``n``, ``log_loss`` with ``low`` and ``high``, and the paired
        ``difference`` of log-loss to the best family with ``difference_low`` and
        ``difference_high``; ``level`` (.9), ``unit`` (what ``group`` names) and ``units`` of all
        intervals.
    :raises DataError: for a missing column, fewer groups than folds or than 25 labels, or a fold of
        one kind.
    """
    from sklearn.model_selection import GroupKFold

    if group not in labels.columns or labels[group].n_unique() < FOLDS:
        raise DataError(f"labels need the column {group}, with at least {FOLDS} different values")
    age, true = _check_labels(labels)
    if len(true) < (least := MIN_LABELS * FOLDS // (FOLDS - 1)):
        raise DataError(
            f"{len(true)} labels are too few to compare families in {FOLDS} folds; give at least "
            f"{least}"
        )
    chance = {name: np.zeros(len(true)) for name in (CONSTANT, DEFAULT, *families)}
    folds = GroupKFold(FOLDS, shuffle=True, random_state=seed)
    for learn, test in folds.split(labels, groups=labels[group].to_list()):
        chance[CONSTANT][test] = true[learn].mean()
        chance[DEFAULT][test] = _survival_probabilities(PlateauLinear(), age[test])
        for name in families:
            curve = fit(labels[learn], name, intervals=False, seed=seed).curve
            chance[name][test] = _survival_probabilities(curve, age[test])
    losses = {name: -np.log(np.where(true, its, 1 - its)) for name, its in chance.items()}
    best = min(families, key=lambda name: float(losses[name].mean()))
    rows = []
    for name, loss in losses.items():
        means = (_mean_with_interval(each, labels[group]) for each in (loss, loss - losses[best]))
        rows.append((name, len(true), *chain(*means)))
    measures = ["log_loss", "low", "high", "difference", "difference_low", "difference_high"]
    table = pl.DataFrame(rows, schema=["family", "n", *measures], orient="row")
    return table.with_columns(
        level=pl.lit(_INTERVAL_LEVEL),
        unit=pl.lit(group.removesuffix("_id")),
        units=pl.lit(labels[group].n_unique(), pl.Int64),
    )


def _mean_with_interval(values: np.ndarray, groups: pl.Series) -> tuple[float, float, float]:
    """Give a mean with its normal interval, clustered by group."""
    from scipy.stats import norm

    mean, (_, at) = float(values.mean()), np.unique(groups.to_numpy(), return_inverse=True)
    sums = np.bincount(at, weights=values - mean)
    half = (
        norm.ppf((1 + _INTERVAL_LEVEL) / 2)
        * np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1))
        / len(values)
    )
    return mean, mean - half, mean + half


def recommend(
    labels: pl.DataFrame, *, comparison: pl.DataFrame | None = None, seed: int = 0
) -> Recommendation:
    """Choose the simplest family that is not significantly worse than the best, and fit it to all
    labels.

    Simplest: with the fewest parameters, then with the lowest log-loss. Not significantly worse:
    the 90 % interval of the difference of its held-out log-loss to the best one's includes 0.

    :param comparison: what :func:`compare_curves` gave for these labels; made here where not given.
    """
    table = compare_curves(labels, seed=seed) if comparison is None else comparison
    n_each = {name: len(kind().parameters) for name, kind in FAMILIES.items()}
    fitted = table.filter(pl.col("family").is_in(list(FAMILIES)))
    fitted = fitted.with_columns(parameters=pl.col("family").replace_strict(n_each)).sort(
        "log_loss"
    )
    candidates = fitted.filter(pl.col("difference_low") <= 0).sort("parameters", "log_loss")
    best, chosen = fitted.row(0, named=True), candidates.row(0, named=True)
    place = (
        "the best of all" if chosen == best else f"not significantly worse than {best['family']}"
    )
    why = (
        f"{chosen['family']}: held-out log-loss {chosen['log_loss']:.4f}, {place}, with "
        f"{chosen['parameters']} "
        f"parameter(s), on {chosen['n']:,} labels"
    )
    curve = fit(labels, chosen["family"], intervals=False, seed=seed).curve
    # Four significant digits: more than any data know, and readable in a file.
    rounded = {name: float(f"{value:.4g}") for name, value in curve.parameters.items()}
    return Recommendation({"family": curve.family} | rounded, why)
