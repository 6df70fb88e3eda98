"""Decay tuned to labelled observations: simulate, compare families on facts held out, and recommend a setting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.knowledge import settings_file
from memlab.knowledge.calibration import scores
from memlab.knowledge.confidence import ConfidenceSettings
from memlab.knowledge.decay import FAMILIES, SPACE, Accesses, AnyCurve, PlateauLinear, parameters
from memlab.knowledge.likelihood import MIN_OBSERVATIONS, Fit, chances, fit, need, observed

CONSTANT, DEFAULT = "constant", "default"
POOLED, OWN = "pooled", "per predicate"
MIN_LABELS = 100


@dataclass(frozen=True)
class Curves:
    """Curves of one family.

    :param pooled: fitted to every observation.
    :param own: fits by predicate, of those with enough labels.
    :param too_few: predicates with too few labels, or of one kind only, which are given the pooled curve.
    """

    pooled: Fit
    own: dict[str, Fit] = field(default_factory=dict)
    too_few: tuple[str, ...] = ()

    def chances(self, observations: pl.DataFrame) -> np.ndarray:
        """Give P(still true) of each observation, under its predicate's own curve where there is one."""
        data = observed(observations)
        chance = chances(self.pooled.curve, data)
        for predicate, fitted in self.own.items():
            its = observations["predicate"].eq_missing(pl.Series([predicate])).to_numpy()
            chance = np.where(its, chances(fitted.curve, data), chance)
        return chance


@dataclass(frozen=True)
class Comparison:
    """Families compared on facts held out.

    :param table: what :func:`memlab.knowledge.calibration.scores` gives.
    :param predictions: every observation under every candidate: ``family``, ``fit``, ``group``, ``predicate``,
        ``age_days``, ``still_true`` and ``chance``, said by curves that saw nothing of its group.
    :param too_few: predicates that had too few labels in some fold for a curve of their own there.
    """

    table: pl.DataFrame
    predictions: pl.DataFrame
    too_few: tuple[str, ...]


@dataclass(frozen=True)
class Recommendation:
    """A setting for ``memlab.toml``: curves fitted to all observations, why these, and the comparison behind them."""

    curves: Curves
    why: str
    comparison: Comparison

    @property
    def table(self) -> dict[str, Any]:
        """The keys ``decay`` and ``decay_by_predicate`` of the table ``[confidence]``."""
        own = {predicate: _rounded(fitted.curve) for predicate, fitted in self.curves.own.items()}
        return {"decay": _rounded(self.curves.pooled.curve), "decay_by_predicate": own}

    @property
    def settings(self) -> ConfidenceSettings:
        """The settings of memlab with these curves."""
        return ConfidenceSettings.of(self.table)

    def write(self, path: str | Path = "memlab.toml") -> Path:
        """Write the curves into a settings file; every other setting and comment in it stays as it is.

        :raises DataError: when the file is not valid TOML, or the curves cannot be written without touching more.
        :raises ExportError: when the file cannot be written.
        """
        return settings_file.write(Path(path), "confidence", self.table)


def simulate(
    curve: AnyCurve,
    *,
    n: int,
    seed: int = 0,
    max_age_days: float = 730.0,
    max_accesses: int = 6,
    predicate: str = "simulated",
) -> pl.DataFrame:
    """Draw labelled observations whose chance of "still true" is exactly the curve.

    Ages of the last access are uniform up to ``max_age_days``. Before it each fact was accessed up to
    ``max_accesses`` − 1 times more, each number as likely, at ages that are uniform between the last access and twice
    the maximum.

    :returns: ``fact_id``, ``predicate``, ``age_days``, ``accesses_days`` and ``still_true``.
    :raises DataError: for sizes below 1.

    >>> from memlab.knowledge import tuning
    >>> from memlab.knowledge.decay import Exponential
    >>> float(tuning.simulate(Exponential(100), n=4000, max_age_days=100, seed=0)["still_true"].mean().__round__(2))
    0.72
    """
    if n < 1 or max_accesses < 1 or max_age_days <= 0:
        raise DataError(f"n is {n}, max_accesses {max_accesses}, max_age_days {max_age_days}; all must be positive")
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, max_age_days, n)
    older = np.repeat(np.arange(n), rng.integers(0, max_accesses, n))
    row = np.concatenate([np.arange(n), older])
    each = np.concatenate([age, rng.uniform(age[older], 2 * max_age_days)])
    true = rng.uniform(size=n) < curve.retention(age, Accesses(row, each))
    lists = pl.DataFrame({"row": row, "each": each}).group_by("row", maintain_order=True).agg("each").sort("row")
    return pl.DataFrame(
        {
            "fact_id": [f"{predicate}/{i}" for i in range(n)],
            "predicate": [predicate] * n,
            "age_days": age,
            "accesses_days": lists["each"],
            "still_true": true,
        }
    )


def fit_curves(
    observations: pl.DataFrame, name: str, *, min_labels: int = MIN_LABELS, intervals: bool = True, seed: int = 0
) -> Curves:
    """Fit a family to all observations, and to each predicate that has enough of them.

    :param min_labels: how many labels, and of both kinds, a predicate needs for a curve of its own.
    :raises DataError: see :func:`memlab.knowledge.likelihood.fit`; also without the column ``predicate``.
    """
    need(observations, "predicate")
    pooled = fit(observations, name, intervals=intervals, seed=seed)
    own, too_few = dict[str, Fit](), list[str]()
    for (predicate,), part in observations.drop_nulls("predicate").group_by("predicate", maintain_order=True):
        if part.height >= max(min_labels, MIN_OBSERVATIONS) and part["still_true"].n_unique() == 2:
            own[str(predicate)] = fit(part, name, intervals=intervals, seed=seed)
        else:
            too_few.append(str(predicate))
    return Curves(pooled, own, tuple(too_few))


def compare(
    observations: pl.DataFrame,
    *,
    families: Sequence[str] = tuple(FAMILIES),
    folds: int = 5,
    group: str = "fact_id",
    min_labels: int = MIN_LABELS,
    seed: int = 0,
) -> Comparison:
    """Predict each fact by curves fitted without it, for every family, pooled and by predicate.

    Beside the families stand ``constant``, the share still true whatever the age, which a curve must beat to say
    anything, and ``default``, the plateau-linear curve of memlab as it is, not fitted.

    :param observations: ``predicate``, ``age_days``, ``still_true``, the column named by ``group``, and
        ``accesses_days`` where known.
    :param group: what is never split between fitting and testing: ``fact_id``, or ``scope`` to carry over to other
        people.
    :param min_labels: see :func:`fit_curves`.
    :param seed: of the folds and of the fits.
    :raises DataError: for a missing column, labels that are not true or false, fewer groups than folds, or a fold
        without enough to fit.
    """
    need(observations, "predicate", "age_days", "still_true", group)
    if observations.schema["still_true"] != pl.Boolean:
        label = observations["still_true"].drop_nulls().head(1).to_list()
        raise DataError(
            f"still_true holds {observations.schema['still_true']}, such as {label}; expected true or false: "
            "observations.with_columns(pl.col('still_true') == 'yes')"
        )
    groups = observations[group].unique(maintain_order=True)
    if not 2 <= folds <= groups.len():
        raise DataError(
            f"folds is {folds} with {groups.len()} different {group}; give at least 2, and at most as many as those"
        )
    drawn = pl.DataFrame({group: groups, "_fold": np.random.default_rng(seed).permutation(groups.len()) % folds})
    fold = observations.join(drawn, on=group, how="left", nulls_equal=True, maintain_order="left")["_fold"].to_numpy()
    by_predicate = observations["predicate"].n_unique() > 1
    chance: dict[tuple[str, str], np.ndarray] = defaultdict(lambda: np.zeros(observations.height))
    too_few = set[str]()
    for i in range(folds):
        train, test, its = observations.filter(fold != i), observations.filter(fold == i), fold == i
        chance[CONSTANT, POOLED][its] = train["still_true"].mean()
        chance[DEFAULT, POOLED][its] = chances(PlateauLinear(), observed(test))
        for name in families:
            enough = min_labels if by_predicate else observations.height + 1
            curves = fit_curves(train, name, min_labels=enough, intervals=False, seed=seed)
            chance[name, POOLED][its] = Curves(curves.pooled).chances(test)
            if by_predicate:
                chance[name, OWN][its] = curves.chances(test)
                too_few.update(curves.too_few)
    labels = observations.select(pl.col(group).alias("group"), "predicate", "age_days", "still_true")
    predictions = pl.concat(
        labels.select(pl.lit(name).alias("family"), pl.lit(how).alias("fit"), pl.all(), pl.Series("chance", values))
        for (name, how), values in chance.items()
    )
    return Comparison(scores(predictions), predictions, tuple(sorted(too_few)))


def recommend(
    observations: pl.DataFrame,
    *,
    comparison: Comparison | None = None,
    min_labels: int = MIN_LABELS,
    seed: int = 0,
) -> Recommendation:
    """Choose the simplest family that is not surely worse than the best, and fit it to all observations.

    Not surely worse: the 90 % interval of its held-out log-loss over the best one's includes 0. Simplest: fewest
    parameters, counted over all its curves; then the lower log-loss.

    :param comparison: what :func:`compare` gave for these observations; made here where not given.
    :raises DataError: see :func:`compare`.

    >>> from memlab.knowledge import tuning
    >>> from memlab.knowledge.decay import Exponential
    >>> advice = tuning.recommend(tuning.simulate(Exponential(100), n=300, seed=0))
    >>> advice.table["decay"]["family"], advice.settings.decay.family
    ('exponential', 'exponential')
    """
    comparison = comparison or compare(observations, min_labels=min_labels, seed=seed)
    n_own = observations["predicate"].drop_nulls().value_counts().filter(pl.col("count") >= min_labels).height
    n_curves = pl.when(pl.col("fit") == OWN).then(1 + n_own).otherwise(1)
    n_each = pl.col("family").replace_strict({name: len(space) for name, space in SPACE.items()})
    fitted = comparison.table.filter(pl.col("predicate").is_null(), pl.col("family").is_in(list(FAMILIES)))
    fitted = fitted.with_columns(parameters=n_each * n_curves).sort("log_loss")
    best = fitted.row(0, named=True)
    near = fitted.filter(pl.col("difference_low").fill_null(0) <= 0)
    chosen = near.sort("parameters", "log_loss", maintain_order=True).row(0, named=True)
    enough = min_labels if chosen["fit"] == OWN else observations.height + 1
    curves = fit_curves(observations, chosen["family"], min_labels=enough, seed=seed)
    if chosen["fit"] == POOLED:
        curves = Curves(curves.pooled)
    place = "the best of all" if chosen == best else f"not surely worse than {best['family']} ({best['fit']})"
    why = (
        f"{chosen['family']} ({chosen['fit']}): held-out log-loss {chosen['log_loss']:.4f}, {place}, with "
        f"{chosen['parameters']} parameters, on {chosen['n']:,} observations"
    )
    return Recommendation(curves, why, comparison)


def _rounded(curve: AnyCurve) -> dict[str, Any]:
    """Give four significant digits: more than any data know, and readable in a file."""
    return {"family": curve.family} | {k: float(f"{v:.4g}") for k, v in parameters(curve).items()}
