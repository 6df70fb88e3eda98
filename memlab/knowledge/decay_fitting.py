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
from memlab.terminal_text import count_noun

CONSTANT = "constant"
DEFAULT = "default"
MIN_LABELS = 20
FOLDS = 5
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
    ages, is_true = _check_and_read_ages_and_truths(labels)
    if len(is_true) < MIN_LABELS or is_true.all() or not is_true.any():
        raise DataError(
            f"{len(is_true)} labels, {is_true.sum()} of them still true, do not determine a {name} "
            "curve; give at least "
            f"{MIN_LABELS}, of both kinds"
        )
    parameter_names = list(FAMILIES[name]().parameters)
    bounds = np.array([BOUNDS[parameter_name] for parameter_name in parameter_names])
    is_linear = bounds[:, 0] == 0
    bounds[~is_linear] = np.log(bounds[~is_linear])

    def curve_at_point(search_point: np.ndarray) -> AnyCurve:
        parameter_values = np.where(is_linear, search_point, np.exp(search_point))
        return FAMILIES[name](**dict(zip(parameter_names, parameter_values.tolist(), strict=True)))

    def loss_at_point(search_point: np.ndarray) -> float:
        try:
            survival = _clipped_survival_probabilities(curve_at_point(search_point), ages)
        except DataError:  # the floor is reached before the plateau ends
            return 1e9
        return float(-np.log(np.where(is_true, survival, 1 - survival)).sum())

    optimum = differential_evolution(
        loss_at_point, bounds, popsize=12, tol=1e-4, polish=False, rng=seed
    )
    best_place = _find_point_of_least_loss(loss_at_point, optimum.x, bounds)
    limit = loss_at_point(best_place) + float(chi2.ppf(_INTERVAL_LEVEL, 1)) / 2
    parameter_rows = []
    for parameter_number, parameter_name in enumerate(parameter_names if intervals else ()):
        place_ends = (
            best_place[parameter_number],
            *_profile_likelihood_low_and_high(
                loss_at_point, best_place, bounds, parameter_number, limit
            ),
        )
        values = (
            float(place_end if is_linear[parameter_number] else np.exp(place_end))
            for place_end in place_ends
        )
        parameter_rows.append((parameter_name, *values, _INTERVAL_LEVEL))
    columns = {
        "parameter": pl.String(),
        "estimate": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "level": pl.Float64(),
    }
    return Fit(
        curve_at_point(best_place), pl.DataFrame(parameter_rows, schema=columns, orient="row")
    )


def _check_and_read_ages_and_truths(labels: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Check labels and give ``age_days`` and ``still_true`` as arrays.

    :raises DataError: for a missing column, an age or label that is missing or out of range.
    """
    missing_columns = {"age_days", "still_true"} - set(labels.columns)
    if missing_columns:
        raise DataError(
            f"labels need the column {min(missing_columns)}; the frame has {labels.columns}"
        )
    ages = labels["age_days"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    still_true = labels["still_true"]
    wrong_rows = np.flatnonzero(~((ages >= 0) & np.isfinite(ages)))
    if wrong_rows.size:
        raise DataError(
            f"age_days is {ages[wrong_rows[0]]} in row {wrong_rows[0]}; expected a number of days "
            "from 0"
        )
    if still_true.dtype != pl.Boolean or still_true.null_count():
        raise DataError(
            f"still_true is {still_true.dtype}, {still_true.null_count()} missing; expected true "
            "or false"
        )
    return ages, still_true.to_numpy()


def _clipped_survival_probabilities(curve: AnyCurve, ages_in_days: np.ndarray) -> np.ndarray:
    return np.clip(curve.retention(ages_in_days), MIN_CHANCE, 1 - MIN_CHANCE)


Loss = Callable[[np.ndarray], float]


def _find_point_of_least_loss(
    loss: Loss, start_point: np.ndarray, parameter_bounds: np.ndarray
) -> np.ndarray:
    from scipy.optimize import minimize

    if not len(start_point):
        return start_point
    # The simplex points inwards, so that it keeps its size at a bound.
    simplex_shift = np.where(start_point + 0.1 > parameter_bounds[:, 1], -0.1, 0.1)
    options = {
        "initial_simplex": np.vstack([start_point, start_point + np.diag(simplex_shift)]),
        "xatol": 1e-3,
        "fatol": 1e-4,
    }
    return np.asarray(
        minimize(
            loss, start_point, method="Nelder-Mead", bounds=parameter_bounds, options=options
        ).x
    )


def _profile_likelihood_low_and_high(
    loss: Loss,
    best_point: np.ndarray,
    parameter_bounds: np.ndarray,
    parameter_number: int,
    loss_limit: float,
) -> list[float]:
    """Find the ends of the interval of parameter i, where its profile of the loss crosses a limit,
    or its bounds.
    """
    from scipy.optimize import brentq

    other_numbers = np.delete(np.arange(len(best_point)), parameter_number)

    def loss_above_limit(value: float) -> float:
        other_values = _find_point_of_least_loss(
            lambda other_values: loss(np.insert(other_values, parameter_number, value)),
            best_point[other_numbers],
            parameter_bounds[other_numbers],
        )
        return loss(np.insert(other_values, parameter_number, value)) - loss_limit

    return [
        float(end)
        if loss_above_limit(end) <= 0
        else brentq(loss_above_limit, best_point[parameter_number], end, xtol=1e-3)
        for end in parameter_bounds[parameter_number]
    ]


def compare_curves(
    labels: pl.DataFrame,
    *,
    families: Sequence[str] = tuple(FAMILIES),
    group: str = "fact_id",
    level: float = _INTERVAL_LEVEL,
    seed: int = 0,
) -> pl.DataFrame:
    """Compare the decay families by their log-loss on held-out facts, in five folds.

    Beside the families stand ``constant``, the share still true whatever the age, which a curve
    must beat to say anything, and ``default``, the plateau-linear curve of memlab, not fitted.

    :param labels: ``age_days``, ``still_true`` and the column named by ``group``.
    :param group: what is never split between fitting and testing: ``fact_id``, or ``scope`` to
        carry over to other people.
    :param level: of the intervals.
    :returns: ``family``, ``n``, ``log_loss`` with ``low`` and ``high``, and the paired
        ``difference`` of log-loss to the best family with ``difference_low`` and
        ``difference_high``; ``level``, ``unit`` (what ``group`` names) and ``units`` of all
        intervals.
    :raises DataError: for a missing column, fewer groups than folds or than 25 labels, or a fold of
        one kind.
    """
    from sklearn.model_selection import GroupKFold

    if group not in labels.columns or labels[group].n_unique() < FOLDS:
        raise DataError(f"labels need the column {group}, with at least {FOLDS} different values")
    ages, is_true = _check_and_read_ages_and_truths(labels)
    least_labels = MIN_LABELS * FOLDS // (FOLDS - 1)
    if len(is_true) < least_labels:
        raise DataError(
            f"{len(is_true)} labels are too few to compare families in {FOLDS} folds; give at "
            f"least {least_labels}"
        )
    survival_by_name = {name: np.zeros(len(is_true)) for name in (CONSTANT, DEFAULT, *families)}
    folds = GroupKFold(FOLDS, shuffle=True, random_state=seed)
    for learning_rows, test_rows in folds.split(labels, groups=labels[group].to_list()):
        survival_by_name[CONSTANT][test_rows] = is_true[learning_rows].mean()
        survival_by_name[DEFAULT][test_rows] = _clipped_survival_probabilities(
            PlateauLinear(), ages[test_rows]
        )
        for name in families:
            curve = fit(labels[learning_rows], name, intervals=False, seed=seed).curve
            survival_by_name[name][test_rows] = _clipped_survival_probabilities(
                curve, ages[test_rows]
            )
    losses_by_name = {
        name: -np.log(np.where(is_true, survival, 1 - survival))
        for name, survival in survival_by_name.items()
    }
    best_family = min(families, key=lambda name: float(losses_by_name[name].mean()))
    family_rows = []
    for name, loss in losses_by_name.items():
        means_with_intervals = (
            _clustered_mean_low_high(label_losses, labels[group], level)
            for label_losses in (loss, loss - losses_by_name[best_family])
        )
        family_rows.append((name, len(is_true), *chain(*means_with_intervals)))
    measures = ["log_loss", "low", "high", "difference", "difference_low", "difference_high"]
    table = pl.DataFrame(family_rows, schema=["family", "n", *measures], orient="row")
    return table.with_columns(
        level=pl.lit(level),
        unit=pl.lit(group.removesuffix("_id")),
        units=pl.lit(labels[group].n_unique(), pl.Int64),
    )


def _clustered_mean_low_high(
    values: np.ndarray, groups: pl.Series, level: float
) -> tuple[float, float, float]:
    """Give a mean with its normal interval, clustered by group."""
    from scipy.stats import norm

    mean_value = float(values.mean())
    (_, group_numbers) = np.unique(groups.to_numpy(), return_inverse=True)
    group_sums = np.bincount(group_numbers, weights=values - mean_value)
    half_width = (
        norm.ppf((1 + level) / 2)
        * np.sqrt((group_sums**2).sum() * len(group_sums) / (len(group_sums) - 1))
        / len(values)
    )
    return mean_value, mean_value - half_width, mean_value + half_width


def recommend(
    labels: pl.DataFrame, *, comparison: pl.DataFrame | None = None, seed: int = 0
) -> Recommendation:
    """Choose the simplest family that is not significantly worse than the best, and fit it to all
    labels.

    Simplest: with the fewest parameters, then with the lowest log-loss. Not significantly worse:
    the interval of the difference of its held-out log-loss to the best one's includes 0.

    :param comparison: what :func:`compare_curves` gave for these labels, whose level counts; made
        here, with 90 % intervals, where not given.
    """
    table = compare_curves(labels, seed=seed) if comparison is None else comparison
    n_parameters = {name: len(kind().parameters) for name, kind in FAMILIES.items()}
    fitted_rows = table.filter(pl.col("family").is_in(list(FAMILIES)))
    fitted_rows = fitted_rows.with_columns(
        parameters=pl.col("family").replace_strict(n_parameters)
    ).sort("log_loss")
    candidates = fitted_rows.filter(pl.col("difference_low") <= 0).sort("parameters", "log_loss")
    best_row = fitted_rows.row(0, named=True)
    chosen_row = candidates.row(0, named=True)
    standing = (
        "the best of all"
        if chosen_row == best_row
        else f"not significantly worse than {best_row['family']}"
    )
    reason = (
        f"{chosen_row['family']}: held-out log-loss {chosen_row['log_loss']:.4f}, {standing}, with "
        f"{count_noun(chosen_row['parameters'], 'parameters')}, on {chosen_row['n']:,} labels"
    )
    curve = fit(labels, chosen_row["family"], intervals=False, seed=seed).curve
    # Four significant digits: more than any data know, and readable in a file.
    rounded = {name: float(f"{value:.4g}") for name, value in curve.parameters.items()}
    return Recommendation({"family": curve.family} | rounded, reason)
