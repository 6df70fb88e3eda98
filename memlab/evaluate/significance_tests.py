"""Every test of memlab: is a difference real, is it none, and what could have been seen?

Tests are paired randomisation tests, corrected by Holm; equivalence is two one-sided tests. All
work on *units*: a unit is a question, or a whole scope where the questions about one memory are not
independent of each other. Beside a corrected p stands an interval of the corrected level
(:mod:`memlab.evaluate.confidence_intervals`).

Sources: Smucker, Allan & Carterette, CIKM 2007 (randomisation test for retrieval); Phipson & Smyth
2010 (the (b + 1) / (m + 1) rule); Holm 1979; Miettinen, Biometrics 1968 (power of McNemar's test);
Schuirmann 1987 (two one-sided tests); Bonett & Price 2012 (variance of paired proportions).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from memlab.errors import DataError
from memlab.evaluate.confidence_intervals import (
    LEVEL,
    are_columns_binary,
    bootstrap_interval,
    column_means_or_nan,
    limit_blas_to_one_thread,
    mean_intervals,
    paired_difference_intervals,
    recompute_intervals_at_level,
    split_draws_into_block_sizes,
    sums_and_sizes_of_units,
    two_sided_t_quantile,
    wilson_interval,
)
from memlab.evaluate.printed_tables import Table
from memlab.interval_and_p_labels import ABOUT, ALPHA, PERMUTATIONS, smallest_p_of_sign_flips

__all__ = [
    "ALPHA",
    "LEVEL",
    "bootstrap_interval",
    "compare_paired",
    "compare_with_null",
    "equivalence_p",
    "holm",
    "randomisation_test",
    "smallest_detectable_difference",
    "verdicts",
    "wilson_interval",
]

POWER = 0.8
MARGIN = 0.05
MARGIN_OF_BASE = 0.25
"""A difference that is too small to matter, where no other margin is stated: the smaller of so many
points and that share of what the baseline reaches."""
EXACT_UP_TO = 14


def fewest_units_for_significance(n_tests: int = 1) -> int:
    """Give the number of questions, or of scopes, from which a paired test can be significant at
    all.

    What :func:`memlab.interval_and_p_labels.smallest_p_of_sign_flips` says of so many must be below
    ``.05 / n_tests``.

    >>> from memlab.evaluate.significance_tests import fewest_units_for_significance
    >>> fewest_units_for_significance(), fewest_units_for_significance(n_tests=64)
    (6, 12)
    """
    n_units = 1
    while smallest_p_of_sign_flips(n_units) >= ALPHA / max(n_tests, 1):
        n_units += 1
    return n_units


def randomisation_test(differences: np.ndarray, *, seed: int = 0) -> float:
    """Give the two-sided p of paired differences under random flips of their signs.

    Every flip is counted where there are few non-zero differences; else 10,000 are drawn and p is
    (b + 1) / (10,000 + 1), which is never zero.

    :param differences: (n,) paired differences, one a unit.

    >>> import numpy as np
    >>> from memlab.evaluate.significance_tests import randomisation_test
    >>> randomisation_test(np.array([1.0, 1.0, 1.0, 1.0, 0.0]))
    0.125
    """
    nonzero = differences[np.abs(differences) > 1e-12]
    n_nonzero = len(nonzero)
    if n_nonzero == 0:
        return 1.0
    return _p_under_sign_flips(np.ascontiguousarray(nonzero, np.float64).tobytes(), seed)


@lru_cache(maxsize=4_096)
def _p_under_sign_flips(nonzero_difference_bytes: bytes, seed: int) -> float:
    """Give the p of differences that are not 0, as bytes of float64.

    Tables, files and conclusions of one experiment test the same differences again and again.
    """
    nonzero = np.frombuffer(nonzero_difference_bytes)
    n_nonzero = len(nonzero)
    # Sums of the same numbers in another order differ in the last bits: a tie with the observed sum
    # must count.
    observed_sum = abs(nonzero.sum()) - 1e-10 * np.abs(nonzero).sum()
    if n_nonzero <= EXACT_UP_TO:
        sign_rows = (np.arange(2**n_nonzero)[:, None] >> np.arange(n_nonzero) & 1) * 2.0 - 1.0
        return float((np.abs(sign_rows @ nonzero) >= observed_sum).mean())
    # The sum of each choice of eight differences, by the byte that says which: (256, n / 8).
    n_bytes = -(-n_nonzero // 8)
    padded_differences = np.zeros(8 * n_bytes)
    padded_differences[:n_nonzero] = nonzero
    byte_choices = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    with limit_blas_to_one_thread():
        choice_sums = byte_choices.astype(np.float64) @ padded_differences.reshape(n_bytes, 8).T
    generator = np.random.default_rng(seed)
    n_extreme = 0
    for n_draws in split_draws_into_block_sizes(PERMUTATIONS, n_nonzero):
        drawn_bytes = generator.integers(0, 256, size=(n_draws, n_bytes), dtype=np.uint8)
        positive_sums = np.zeros(n_draws)
        for byte_column in range(n_bytes):
            positive_sums += choice_sums[drawn_bytes[:, byte_column], byte_column]
        n_extreme += int((np.abs(2.0 * positive_sums - nonzero.sum()) >= observed_sum).sum())
    return (n_extreme + 1) / (PERMUTATIONS + 1)


def holm(p: np.ndarray) -> np.ndarray:
    """Adjust p values for their number by Holm's step-down procedure.

    :param p: (n,) p values; NaN where nothing was tested.
    :returns: (n,) adjusted values in the same order, each at least its p and at most 1.

    >>> import numpy as np
    >>> from memlab.evaluate.significance_tests import holm
    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    n_tests = int((~np.isnan(p)).sum())
    adjusted_p = np.full(len(p), np.nan)
    order_of_p = np.argsort(p, kind="stable")[:n_tests]  # NaN sorts last
    adjusted_p[order_of_p] = np.minimum(
        1.0, np.maximum.accumulate(p[order_of_p] * np.arange(n_tests, 0, -1))
    )
    return adjusted_p


def bonferroni_level(n_tests: int) -> float:
    """Give the level of intervals of which all hold together in 95 of 100 cases (Bonferroni).

    >>> from memlab.evaluate.significance_tests import bonferroni_level
    >>> bonferroni_level(1), bonferroni_level(5)
    (0.95, 0.99)
    """
    return 1 - ALPHA / max(1, n_tests)


def compare_paired(
    values: np.ndarray,
    reference: np.ndarray,
    *,
    scopes: np.ndarray | None = None,
    shares: ArrayLike | None = None,
    seed: int = 0,
) -> pl.DataFrame:
    """Test each column of values against another one: the one paired test that every comparison
    uses.

    :param values: (n, m) what each of m systems reached on n questions.
    :param reference: (m,) the column that each is compared with; a column that is its own is not
        tested.
    :param scopes: (n,) the scope of each question where scopes are the unit, of
        :func:`memlab.evaluate.confidence_intervals.scopes_if_they_are_the_unit`: they are flipped
            as wholes.
    :param shares: (m,) which columns say yes or no, as in
        :func:`memlab.evaluate.confidence_intervals.mean_intervals`.
    :returns: m rows: ``n``, ``mean`` with its 95 % interval ``mean_low``, ``mean_high`` and
        ``mean_level``, and, null where nothing is tested, ``difference`` with its interval ``low``,
        ``high`` at ``level`` (Bonferroni's over all columns that are tested), ``unit`` and
        ``units``, ``method``; ``p``, not corrected; ``p_holm`` over all columns that are tested;
        questions won, tied and lost: ``win``, ``tie``, ``loss``.

    >>> import numpy as np
    >>> from memlab.evaluate.significance_tests import compare_paired
    >>> row = compare_paired(np.array([[0.0, 1.0]] * 8), np.array([0, 0])).row(1, named=True)
    >>> row["difference"], round(row["low"], 3), row["level"], row["p"], row["win"]
    (1.0, 0.541, 0.95, 0.0078125, 8)
    """
    differences = values - values[:, reference]
    differences[np.abs(differences) < 1e-12] = 0.0
    # Without a question nothing is tested.
    is_tested = (reference != np.arange(len(reference))) & (len(values) > 0)
    interval_level = bonferroni_level(int(is_tested.sum()))
    unit_sums, _ = sums_and_sizes_of_units(differences, scopes)
    p_values = np.array([randomisation_test(column, seed=seed) for column in unit_sums.T])
    interval_options: dict[str, Any] = {"scopes": scopes, "shares": shares, "seed": seed}
    intervals = paired_difference_intervals(
        values, reference, level=interval_level, **interval_options
    )
    comparison = pl.DataFrame({"difference": column_means_or_nan(differences)}).hstack(intervals)
    comparison = comparison.with_columns(
        p=pl.Series(p_values, dtype=pl.Float64),
        p_holm=holm(np.where(is_tested, p_values, np.nan)),
        win=(differences > 0).sum(axis=0),
        tie=(differences == 0).sum(axis=0),
        loss=(differences < 0).sum(axis=0),
    )
    # The unit is that of the mean's interval too.
    pair_columns = pl.all().exclude("unit", "units")
    comparison = comparison.with_columns(pl.when(pl.Series(is_tested)).then(pair_columns))
    mean_rows = mean_intervals(values, **interval_options)
    mean_bounds = mean_rows.select(mean_low="low", mean_high="high", mean_level="level")
    mean_columns = pl.DataFrame({"mean": column_means_or_nan(values)}).hstack(mean_bounds)
    count_column = pl.lit(len(values), pl.Int64).alias("n")
    return mean_columns.select(count_column, pl.all()).hstack(comparison).fill_nan(None)


def compare_with_null(
    observed: np.ndarray, null: np.ndarray, *, scopes: np.ndarray | None = None, seed: int = 0
) -> dict[str, Any]:
    """Set a mean over questions beside its null distribution.

    :param observed: (n,) a value a question; NaN where it has none.
    :param null: (draws, n) the same under the null hypothesis.
    :param scopes: (n,) the scope of each question where scopes are the unit.
    :returns: ``n``, ``mean`` with its interval ``low``, ``high`` at ``level`` over ``units`` of
        ``unit`` (None where there is none); mean and middle 95 % of the draws, ``chance``,
        ``chance_low`` and ``chance_high``, and the two-sided ``p``, (b + 1) / (draws + 1), not
        corrected.

    >>> import numpy as np
    >>> from memlab.evaluate.significance_tests import compare_with_null
    >>> compare_with_null(np.array([1.0, 1.0]), np.zeros((99, 2)))["p"]
    0.01
    """
    is_measured = ~np.isnan(observed)
    measured_values = observed[is_measured]
    null_means = null[:, is_measured].mean(axis=1)
    measured_scopes = None if scopes is None else scopes[is_measured]
    column = measured_values[:, None]
    # Equal numbers, such as one cluster for every question, are no shares of questions.
    is_share = are_columns_binary(column) & (len(np.unique(measured_values)) > 1)
    interval = mean_intervals(column, scopes=measured_scopes, shares=is_share, seed=seed).row(
        0, named=True
    )
    measured_mean = float(measured_values.mean())
    chance_mean = float(null_means.mean())
    chance_low, chance_high = np.quantile(null_means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    n_extreme = int(
        (np.abs(null_means - chance_mean) >= abs(measured_mean - chance_mean) - 1e-9).sum()
    )
    result_row = {"n": len(measured_values), "mean": measured_mean}
    result_row |= {
        column_name: interval[column_name]
        for column_name in ("low", "high", "level", "unit", "units")
    }
    result_row |= {"chance": chance_mean, "chance_low": chance_low, "chance_high": chance_high}
    return result_row | {"p": (n_extreme + 1) / (len(null_means) + 1)}


def smallest_detectable_difference(n: int, discordant: float, *, tests: int = 1) -> float | None:
    """Give the smallest difference that a paired test of ``n`` questions would show in four of five
    cases.

    The test is McNemar's exact one, which a randomisation test of answers right or wrong equals, at
    ``.05 / n_tests``: what the smallest p of a family must pass under Holm's correction.

    :param discordant: share of questions on which the two systems differ; a larger difference
        raises it to itself.
    :returns: a difference of shares, in steps of .005; null where even a difference of all would
        not be significant.

    >>> from memlab.evaluate.significance_tests import smallest_detectable_difference
    >>> differences = [smallest_detectable_difference(n, 0.2) for n in (78, 1000)]
    >>> differences, smallest_detectable_difference(78, 0.2, tests=64)
    ([0.145, 0.045], 0.195)
    """
    from scipy.stats import binom

    discordant_pairs = np.arange(n + 1)
    # The most losses with which so many discordant pairs are significant: 2 · P(X ≤ losses) ≤ alpha
    # / tests.
    most_losses = binom.ppf(ALPHA / tests / 2, discordant_pairs, 0.5)
    most_losses = np.where(
        2 * binom.cdf(most_losses, discordant_pairs, 0.5) <= ALPHA / tests,
        most_losses,
        most_losses - 1,
    )
    for difference in np.arange(0.005, 1.0025, 0.005):
        share = max(discordant, difference)
        power = binom.pmf(discordant_pairs, n, share) @ binom.cdf(
            most_losses, discordant_pairs, (1 - difference / share) / 2
        )
        if float(power) >= POWER:
            return round(float(difference), 3)
    return None


def equivalence_p(
    difference: float, n: int, win: int, loss: int, *, margin: float = MARGIN
) -> float:
    """Give the p of two one-sided tests that a paired difference of shares lies within ±
    ``margin``.

    One question won and one lost are added (Bonett & Price), so that no variance is 0: where two
    systems never differ on few questions, that is no evidence that they never would.

    :param difference: mean of the ``n`` paired differences, of which ``win`` are positive and
        ``loss`` negative.
    :raises DataError: when the margin is not positive.

    >>> from memlab.evaluate.significance_tests import equivalence_p
    >>> round(equivalence_p(0.0, 1000, 20, 20), 4), round(equivalence_p(0.0, 40, 0, 0), 3)
    (0.0, 0.069)
    """
    from scipy.stats import norm

    if margin <= 0:
        raise DataError(f"the margin is {margin}; expected a difference of shares above 0")
    shrunk_mean = difference * n / (n + 2)
    variance = ((win + loss + 2) / (n + 2) - shrunk_mean**2) / (n + 2)
    return float(norm.sf((margin - abs(shrunk_mean)) / np.sqrt(variance)))


def verdicts(
    tables: pl.DataFrame | Iterable[pl.DataFrame], *, margin: float | None = None
) -> Table:
    """Judge all the comparisons behind one claim as one family: superiority, equivalence, or
    inconclusive.

    :param tables: what :func:`memlab.evaluate.compare_reports` gave, one or several, of
        measures that are shares of questions.
    :param margin: differences within it do not matter; by default the smaller of .05 and a quarter
        of what the baseline reaches.
    :returns: their rows with ``p_holm`` and intervals at Bonferroni's level over all of them,
        ``detectable`` (the difference that this comparison would have seen in four of five cases,
        at the corrected level; null where none would be significant), ``margin`` and
        ``margin_of_base`` (as a share of what the baseline reaches), ``p_equal`` (two one-sided
        tests, corrected for all of them; null where the margin is not smaller than the base, so
        that no loss could show) and ``verdict``: ``better``, ``worse`` (harmful), ``equivalent``
        (within the margin) or ``inconclusive``. Rows of a baseline have none.
    :raises DataError: for another table, or a margin that is not positive.

    >>> import polars as pl
    >>> from memlab.evaluate import verdicts
    >>> row = {"system": "b", "n": 100, "difference": 0.2, "p": 1e-6, "win": 20, "loss": 0}
    >>> verdicts(pl.DataFrame([row]))["verdict"].item()
    'better'
    """
    table_list = [tables] if isinstance(tables, pl.DataFrame) else [*tables, pl.DataFrame()]
    joined_tables = pl.concat(table_list, how="diagonal_relaxed")
    if not {"p", "difference", "n", "win", "loss"} <= {*joined_tables.columns}:
        raise DataError("verdicts takes what compare gave: one table or several")
    if margin is not None and margin <= 0:
        raise DataError(f"the margin is {margin}; expected a difference of shares above 0")
    n_tests = joined_tables["p"].count()
    if {"mean", "low", "high", *ABOUT} <= {*joined_tables.columns}:
        joined_tables = recompute_intervals_at_level(joined_tables, bonferroni_level(n_tests))
    judged_rows = [
        _detectable_margin_and_equivalence_p(row, n_tests, margin)
        for row in joined_tables.iter_rows(named=True)
    ]
    judged_schema = dict.fromkeys(_JudgedComparison._fields, pl.Float64)
    judged_table = pl.DataFrame(judged_rows, schema=judged_schema, orient="row")
    joined_tables = joined_tables.with_columns(judged_table).with_columns(
        p_holm=holm(joined_tables["p"].to_numpy()),
        p_equal=holm(judged_table["p_equal"].cast(pl.Float64).to_numpy()),
    )
    joined_tables = joined_tables.fill_nan(None)
    verdict_column = (
        pl.when(pl.col("p").is_null())
        .then(None)
        .when((pl.col("p_holm") < ALPHA) & (pl.col("difference") > 0))
        .then(pl.lit("better"))
        .when(pl.col("p_holm") < ALPHA)
        .then(pl.lit("worse"))
        .when(pl.col("p_equal") < ALPHA)
        .then(pl.lit("equivalent"))
        .otherwise(pl.lit("inconclusive"))
    )
    return Table(joined_tables.with_columns(verdict=verdict_column))


class _JudgedComparison(NamedTuple):
    """What a verdict on one comparison rests on: columns of :func:`verdicts`."""

    detectable: float | None = None
    margin: float | None = None
    margin_of_base: float | None = None
    p_equal: float | None = None


def _detectable_margin_and_equivalence_p(
    comparison_row: Mapping[str, Any], n_tests: int, margin: float | None
) -> _JudgedComparison:
    """Give what one comparison could have seen, its margin, that as a share of its base, and p of
    equivalence.
    """
    if comparison_row["p"] is None:
        return _JudgedComparison()
    system_mean = comparison_row.get("mean")
    baseline_mean = (
        None if system_mean is None else max(0.0, system_mean - comparison_row["difference"])
    )
    if margin is None:
        margin = MARGIN if baseline_mean is None else min(MARGIN, MARGIN_OF_BASE * baseline_mean)
    margin_of_base = margin / baseline_mean if baseline_mean else None
    could_lose = baseline_mean is not None and 0 < margin < baseline_mean
    n_questions = comparison_row["n"]
    n_won = comparison_row["win"]
    n_lost = comparison_row["loss"]
    if comparison_row.get("unit") == "scope":
        n_units = comparison_row["units"]
        standard_error = _standard_error_from_scope_interval(comparison_row)
        detectable = _detectable_difference_over_scopes(n_units, standard_error, n_tests)
        p_equal = _equivalence_p_over_scopes(
            comparison_row["difference"], n_units, standard_error, margin
        )
    else:
        detectable = smallest_detectable_difference(
            n_questions, (n_won + n_lost) / n_questions, tests=n_tests
        )
        p_equal = None
        if could_lose:
            p_equal = equivalence_p(
                comparison_row["difference"], n_questions, n_won, n_lost, margin=margin
            )
    return _JudgedComparison(detectable, margin, margin_of_base, p_equal if could_lose else None)


def _standard_error_from_scope_interval(comparison_row: Mapping[str, Any]) -> float | None:
    """Give the standard error that an interval over scopes was made of.

    Null where no variance was seen.
    """
    if comparison_row["low"] is None:
        return None
    return float(
        (comparison_row["high"] - comparison_row["low"])
        / 2
        / two_sided_t_quantile(comparison_row["level"], comparison_row["units"])
    )


def _detectable_difference_over_scopes(
    n_units: int, standard_error: float | None, n_tests: int
) -> float | None:
    """Give what a t test over scopes would show in four of five cases.

    Null where flips of them cannot show any.
    """
    if standard_error is None or smallest_p_of_sign_flips(n_units) >= ALPHA / n_tests:
        return None
    quantile_sum = two_sided_t_quantile(bonferroni_level(n_tests), n_units) + two_sided_t_quantile(
        2 * POWER - 1, n_units
    )
    return round(standard_error * quantile_sum, 3)


def _equivalence_p_over_scopes(
    difference: float, n_units: int, standard_error: float | None, margin: float
) -> float | None:
    from scipy.stats import t

    if standard_error is None:
        return None
    return float(t.sf((margin - abs(difference)) / standard_error, n_units - 1))
