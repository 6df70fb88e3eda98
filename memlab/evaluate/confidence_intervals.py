"""Intervals of means over questions, each by the method that its values and their independence ask
for.

Shares (values of 0 and 1) have Wilson's interval, paired differences of shares Newcombe's, other
means a percentile bootstrap. Where questions of one scope (the conversations of one memory) are
asked, and there are five scopes or more, the scope is the unit: a question of a scope says
something of the next one. Then means and differences have a t interval from the variance between
scopes, and shares Wilson's with the number of questions that are worth as much. What was chosen
stands beside each interval: ``level``, ``unit``, ``units`` and ``method``.

Sources: Wilson, JASA 1927; Newcombe, Statistics in Medicine 17, 1998, 2635–2650 (method 10); Efron
& Tibshirani 1993, ch. 13 (percentile interval); Cameron & Miller, J. Human Resources 2015 (variance
by cluster, t with clusters − 1 degrees of freedom); Korn & Graubard, Survey Methodology 1998, and
Dean & Pagano, J. Survey Statistics and Methodology 2015 (effective sample size).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from memlab.errors import DataError
from memlab.interval_and_p_labels import BOOTSTRAP, CLUSTERED, CLUSTERED_WILSON, NEWCOMBE, WILSON

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

LEVEL = 0.95
FEWEST_SCOPES = 5
"""From how many scopes on they are the unit, where some scope has more than one question."""
RESAMPLES = 2_000
CELLS = 4_000_000
Unit = Literal["auto", "question", "scope"]
INTERVAL_COLUMNS: dict[str, Any] = {
    "low": pl.Float64,
    "high": pl.Float64,
    "level": pl.Float64,
    "unit": pl.String,
    "units": pl.Int64,
    "method": pl.String,
}
"""What :func:`mean_intervals` says of each interval."""


def scopes_if_they_are_the_unit(scopes: ArrayLike, unit: Unit | str = "auto") -> np.ndarray | None:
    """Give the scope of each question where scopes are the unit, and ``None`` where questions are.

    :param scopes: (n,) the scope of each question.
    :param unit: ``question`` (also ``query``), ``scope``, or ``auto``: scopes where there are five
        or more and one of them has several questions.
    :raises DataError: for another unit.

    >>> from memlab.evaluate.confidence_intervals import scopes_if_they_are_the_unit
    >>> scopes = ["a", "a", "b"]
    >>> scopes_if_they_are_the_unit(scopes) is None
    True
    >>> scopes_if_they_are_the_unit(scopes, "scope").tolist()
    ['a', 'a', 'b']
    """
    if unit not in ("auto", "question", "query", "scope"):
        raise DataError(f"unit is {unit!r}; expected 'auto', 'question' or 'scope'")
    scope_names = np.asarray(scopes)
    n_scopes = len(np.unique(scope_names))
    if unit == "scope" or (unit == "auto" and FEWEST_SCOPES <= n_scopes < len(scope_names)):
        return scope_names
    return None


def column_means_or_nan(values: np.ndarray) -> np.ndarray:
    """Give the mean of each column of values (n, m), NaN where there is no row."""
    return values.mean(axis=0) if len(values) else np.full(values.shape[1], np.nan)


def mean_intervals(
    values: np.ndarray,
    *,
    scopes: np.ndarray | None = None,
    shares: ArrayLike | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> pl.DataFrame:
    """Give the interval of the mean of each column.

    :param values: (n, m), m columns over n questions.
    :param scopes: (n,) the scope of each question where it is the unit, of
        :func:`scopes_if_they_are_the_unit`.
    :param shares: (m,) which columns say yes or no, by 1 and 0; by default those that hold nothing
        else.
    :param seed: of the bootstrap.
    :returns: m rows: ``low`` and ``high`` (null with fewer than two units, and where all values are
        equal and no shares), ``level``, ``unit``, ``units`` (their number) and ``method``.

    >>> import numpy as np
    >>> from memlab.evaluate.confidence_intervals import mean_intervals
    >>> low, high, method = mean_intervals(np.ones((5, 1))).select("low", "high", "method").row(0)
    >>> round(low, 3), high, method
    (0.566, 1.0, 'Wilson')
    """
    columns = mean_interval_columns(values, scopes=scopes, shares=shares, level=level, seed=seed)
    return _interval_columns_to_frame_nan_to_null(columns)


def mean_interval_columns(
    question_values: np.ndarray,
    *,
    scopes: np.ndarray | None = None,
    shares: ArrayLike | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> dict[str, list[float | int | str]]:
    """Give the columns of :func:`mean_intervals` as lists, NaN where those have nulls.

    A report has a few rows for each of many groups, and a frame of each takes longer than its
    intervals.
    """
    shares = are_columns_binary(question_values) if shares is None else np.asarray(shares, bool)
    low_ends, high_ends = np.full((2, question_values.shape[1]), np.nan)
    if scopes is not None:
        low_ends, high_ends = t_interval_over_scopes(question_values, scopes, level=level)
        low_ends[shares], high_ends[shares] = wilson_interval_over_scopes(
            question_values[:, shares], scopes, level=level
        )
    elif len(question_values) > 1:
        share_hits = question_values[:, shares].sum(axis=0)
        low_ends[shares], high_ends[shares] = wilson_interval(
            share_hits, len(question_values), level=level
        )
        other_values = question_values[:, ~shares]
        low_ends[~shares], high_ends[~shares] = bootstrap_interval(
            other_values, level=level, seed=seed
        )
    return _make_labelled_interval_columns(
        low_ends,
        high_ends,
        shares,
        _MethodNames(WILSON, BOOTSTRAP),
        n_questions=len(question_values),
        scopes=scopes,
        level=level,
    )


def paired_difference_intervals(
    values: np.ndarray,
    reference_columns: np.ndarray,
    *,
    scopes: np.ndarray | None = None,
    shares: ArrayLike | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> pl.DataFrame:
    """Give the interval of the mean difference of each column to another one, question by question.

    :param values: (n, m), m columns over n questions.
    :param reference_columns: (m,) the column that each is compared with.
    :param scopes: as in :func:`mean_intervals`, whose columns these rows have; differences that are
        all equal have an interval where both columns are shares and questions are the unit.
    """
    own_values = values
    reference_values = values[:, reference_columns]
    differences = own_values - reference_values
    is_share = are_columns_binary(values) if shares is None else np.asarray(shares, bool)
    is_paired_share = np.asarray(is_share & is_share[reference_columns], bool)
    low_ends, high_ends = np.full((2, values.shape[1]), np.nan)
    if scopes is not None:
        low_ends, high_ends = t_interval_over_scopes(differences, scopes, level=level)
        is_paired_share = np.zeros_like(is_paired_share)  # a difference is no share
    elif len(values) > 1:
        own_values = own_values[:, is_paired_share] == 1
        reference_values = reference_values[:, is_paired_share] == 1
        both_hit = own_values & reference_values
        only_own_hit = own_values & ~reference_values
        only_reference_hit = ~own_values & reference_values
        low_ends[is_paired_share], high_ends[is_paired_share] = newcombe_interval(
            both_hit.sum(axis=0),
            only_own_hit.sum(axis=0),
            only_reference_hit.sum(axis=0),
            len(values),
            level=level,
        )
        other_differences = differences[:, ~is_paired_share]
        low_ends[~is_paired_share], high_ends[~is_paired_share] = bootstrap_interval(
            other_differences, level=level, seed=seed
        )
    columns = _make_labelled_interval_columns(
        low_ends,
        high_ends,
        is_paired_share,
        _MethodNames(NEWCOMBE, BOOTSTRAP),
        n_questions=len(values),
        scopes=scopes,
        level=level,
    )
    return _interval_columns_to_frame_nan_to_null(columns)


def are_columns_binary(values: np.ndarray) -> np.ndarray:
    """Say of each column of (n, m) whether it holds nothing but 0 and 1."""
    return np.asarray(((values == 0) | (values == 1)).all(axis=0))


class _MethodNames(NamedTuple):
    """What intervals of shares and those of other values are called, questions being the unit."""

    of_shares: str
    of_others: str


def _make_labelled_interval_columns(
    low_ends: np.ndarray,
    high_ends: np.ndarray,
    is_share: np.ndarray,
    methods: _MethodNames,
    *,
    n_questions: int,
    scopes: np.ndarray | None,
    level: float,
) -> dict[str, list[float | int | str]]:
    """Put the ends of intervals beside what they are."""
    method_names = np.where(is_share, methods.of_shares, methods.of_others)
    unit = "question"
    units = n_questions
    if scopes is not None:
        unit = "scope"
        units = len(np.unique(scopes))
        method_names = np.where(is_share, CLUSTERED_WILSON, CLUSTERED)
    n_intervals = len(low_ends)
    return {
        "low": low_ends.tolist(),
        "high": high_ends.tolist(),
        "level": [level] * n_intervals,
        "unit": [unit] * n_intervals,
        "units": [units] * n_intervals,
        "method": method_names.tolist(),
    }


def _interval_columns_to_frame_nan_to_null(
    interval_columns: dict[str, list[float | int | str]],
) -> pl.DataFrame:
    """Make a frame of columns of intervals, with nulls for ends that are unknown."""
    series = []
    for name, kind in INTERVAL_COLUMNS.items():
        values = pl.Series(name, interval_columns[name], dtype=kind)
        if name in ("low", "high"):
            values = values.fill_nan(None)
        series.append(values)
    return pl.DataFrame(series)


@lru_cache(maxsize=64)
def two_sided_normal_quantile(level: float) -> float:
    """Give how many standard errors a two-sided normal interval reaches to each side."""
    from scipy.special import ndtri  # scipy.stats has the same, and takes a second to import

    return float(ndtri((1 + level) / 2))


@lru_cache(maxsize=64)
def two_sided_t_quantile(level: float, n_units: int) -> float:
    """Give the same for Student's t with ``n_units`` − 1 degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(n_units - 1, (1 + level) / 2))


def wilson_interval(
    hits: ArrayLike, n: ArrayLike, *, level: float = LEVEL, quantile: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Give Wilson's intervals of shares: low and high (m,) of m counts; NaN where n is 0.

    :param hits: (m,) counts, of ``n`` each; neither need be whole.
    :param quantile: taken in place of the normal one of the level.

    >>> from memlab.evaluate.confidence_intervals import wilson_interval
    >>> [end.round(3).tolist() for end in wilson_interval([5, 5], [10, 5])]
    [[0.237, 0.566], [0.763, 1.0]]
    """
    hits, n = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(n, np.float64))
    z = two_sided_normal_quantile(level) if quantile is None else quantile
    with np.errstate(divide="ignore", invalid="ignore"):
        share = hits / n
        middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
        half_width = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    # At 0 and 1 the ends are exact, whatever the last bits of a square root.
    low_end = np.where(hits == 0, 0.0, middle - half_width)
    high_end = np.where(hits == n, 1.0, middle + half_width)
    return np.where(n > 0, low_end, np.nan), np.where(n > 0, high_end, np.nan)


def newcombe_interval(
    both: ArrayLike, win: ArrayLike, loss: ArrayLike, n: ArrayLike, *, level: float = LEVEL
) -> tuple[np.ndarray, np.ndarray]:
    """Give Newcombe's interval of a difference of paired shares, (win − loss) / n: his method 10.

    Wilson's intervals of the two shares are squared and added, less what their correlation φ takes
    away; φ is lowered by n / 2 where it is positive. Two systems that never differ have an interval
    as wide as few questions ask for.

    :param both: (m,) questions that both systems answer; ``win``, ``loss``: that the first alone,
        and the second alone; of ``n`` each.

    >>> from memlab.evaluate.confidence_intervals import newcombe_interval
    >>> [end.round(4).item() for end in newcombe_interval(36, 12, 2, 50)]
    [0.0569, 0.3404]
    """
    both, win, loss, n = (np.asarray(count_like, np.float64) for count_like in (both, win, loss, n))
    neither = n - both - win - loss
    first_hits = both + win
    second_hits = both + loss
    first_low, first_high = wilson_interval(first_hits, n, level=level)
    second_low, second_high = wilson_interval(second_hits, n, level=level)
    product = first_hits * (n - first_hits) * second_hits * (n - second_hits)
    agreement = both * neither - win * loss
    corrected = np.where(agreement > 0, np.maximum(agreement - n / 2, 0), agreement)
    phi = np.where(product > 0, corrected / np.sqrt(np.where(product > 0, product, 1)), 0.0)
    below_distance = _combine_correlated_distances(
        first_hits / n - first_low, second_high - second_hits / n, phi
    )
    above_distance = _combine_correlated_distances(
        first_high - first_hits / n, second_hits / n - second_low, phi
    )
    difference = (win - loss) / n
    return np.maximum(difference - below_distance, -1.0), np.minimum(
        difference + above_distance, 1.0
    )


def _combine_correlated_distances(
    first_distance: np.ndarray, second_distance: np.ndarray, correlation: np.ndarray
) -> np.ndarray:
    squared = (
        first_distance**2 + second_distance**2 - 2 * correlation * first_distance * second_distance
    )
    return np.asarray(np.sqrt(np.maximum(squared, 0)))


def standard_error_over_scopes(question_values: np.ndarray, scopes: np.ndarray) -> np.ndarray:
    """Give the standard error of the mean of each column (m,), scopes being independent and
    questions not.

    The mean is a ratio of totals over scopes, and this its linearised error with the factor
    scopes / (scopes − 1).
    """
    unit_sums, unit_sizes = sums_and_sizes_of_units(question_values, scopes)
    residuals = unit_sums - unit_sizes[:, None] * question_values.mean(axis=0)
    # Equal values leave rounding behind, which is no variance.
    residuals[np.abs(residuals) < 1e-12 * len(question_values)] = 0.0
    units = len(unit_sizes)
    return np.asarray(
        np.sqrt((residuals**2).sum(axis=0) * units / (units - 1)) / len(question_values)
    )


def t_interval_over_scopes(
    question_values: np.ndarray, scopes: np.ndarray, *, level: float = LEVEL
) -> tuple[np.ndarray, np.ndarray]:
    """Give t intervals of the mean of each column over scopes: low and high (m,).

    NaN with one scope, and where all scopes have the same mean: a variance that was not seen.

    >>> import numpy as np
    >>> from memlab.evaluate.confidence_intervals import t_interval_over_scopes
    >>> values = np.array([[0.1], [0.2], [0.3], [0.8]])
    >>> low, high = t_interval_over_scopes(values, np.array(["a", "a", "b", "b"]))
    >>> round(float(low[0]), 2), round(float(high[0]), 2)
    (-2.19, 2.89)
    """
    n_units = len(np.unique(scopes))
    columns = question_values.shape[1]
    if n_units < 2:
        return np.full(columns, np.nan), np.full(columns, np.nan)
    standard_error = standard_error_over_scopes(question_values, scopes)
    half_width = two_sided_t_quantile(level, n_units) * np.where(
        standard_error > 0, standard_error, np.nan
    )
    column_mean = question_values.mean(axis=0)
    return column_mean - half_width, column_mean + half_width


def wilson_interval_over_scopes(
    question_values: np.ndarray, scopes: np.ndarray, *, level: float = LEVEL
) -> tuple[np.ndarray, np.ndarray]:
    """Give Wilson's intervals of shares whose questions come in scopes: low and high (m,).

    The effective number of questions is the one whose binomial variance is the variance between
    scopes, at most the number asked; where no question or every question is a hit, that variance is
    not seen, and each scope counts once. The quantile is that of t with scopes − 1 degrees of
    freedom.
    """
    n_units = len(np.unique(scopes))
    n_columns = question_values.shape[1]
    if n_units < 2:
        return np.full(n_columns, np.nan), np.full(n_columns, np.nan)
    mean_share = question_values.mean(axis=0)
    variance = standard_error_over_scopes(question_values, scopes) ** 2
    binomial = mean_share * (1 - mean_share)
    effective = np.full(n_columns, float(len(question_values)))
    is_overdispersed = variance * len(question_values) > binomial
    effective[is_overdispersed] = binomial[is_overdispersed] / variance[is_overdispersed]
    effective[binomial == 0] = n_units
    quantile = two_sided_t_quantile(level, n_units)
    return wilson_interval(mean_share * effective, effective, quantile=quantile)


def bootstrap_interval(
    values: np.ndarray, *, level: float = LEVEL, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Give percentile intervals of means by resampling questions with replacement.

    Two thousand resamples show the ends of a 95 % interval; at another level each side is scaled as
    that of a normal interval would be.

    :param values: (n, m), m columns over the questions.
    :returns: low (m,) and high (m,); NaN with fewer than two questions, and where all values of a
        column are equal, of which nothing can be said.

    >>> import numpy as np
    >>> from memlab.evaluate.confidence_intervals import bootstrap_interval
    >>> low, high = bootstrap_interval(np.array([[0.0], [1.0]] * 50), seed=1)
    >>> bool(0.38 < low[0] < 0.42 and 0.58 < high[0] < 0.62)
    True
    """
    n_rows, n_columns = values.shape
    low_ends, high_ends = np.full((2, n_columns), np.nan)
    if n_rows < 2 or not n_columns:
        return low_ends, high_ends
    is_varied = np.ptp(values, axis=0) > 1e-12
    varied_values = values[:, is_varied]
    resample = (
        _draw_resample_count_blocks
        if RESAMPLES * n_rows <= CELLS
        else _draw_resample_count_blocks.__wrapped__
    )
    with limit_blas_to_one_thread():
        resampled_means = [
            counts.astype(np.float64) @ varied_values / n_rows for counts in resample(n_rows, seed)
        ]
    quantiles = np.quantile(
        np.concatenate(resampled_means), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0
    )
    if level != LEVEL:
        mean = varied_values.mean(axis=0)
        quantiles = mean + (quantiles - mean) * two_sided_normal_quantile(
            level
        ) / two_sided_normal_quantile(LEVEL)
    low_ends[is_varied], high_ends[is_varied] = quantiles
    return low_ends, high_ends


def limit_blas_to_one_thread() -> AbstractContextManager[object]:
    """Let products of matrices have one thread: small ones take twice the time with two, which wait
    for each other, and their last bits depend on the number of cores.
    """
    return _load_thread_controller().limit(limits=1, user_api="blas")


@cache
def _load_thread_controller() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@lru_cache(maxsize=32)
def _draw_resample_count_blocks(n_units: int, seed: int) -> list[np.ndarray]:
    """Count how often each unit stands in each resample.

    The same for every run on the same questions.
    """
    rng = np.random.default_rng(seed)
    count_blocks = []
    for n_draws in split_draws_into_block_sizes(RESAMPLES, n_units):
        drawn_cells = (
            rng.integers(0, n_units, size=(n_draws, n_units))
            + n_units * np.arange(n_draws)[:, None]
        )
        count_blocks.append(
            np.bincount(drawn_cells.ravel(), minlength=n_draws * n_units)
            .reshape(n_draws, n_units)
            .astype(np.uint16)
        )
    return count_blocks


def split_draws_into_block_sizes(n_draws: int, values_per_draw: int) -> list[int]:
    """Split a number of draws of so many values each into sizes that fit into memory."""
    block_size = max(1, CELLS // values_per_draw)
    return [min(block_size, n_draws - first_draw) for first_draw in range(0, n_draws, block_size)]


def sums_and_sizes_of_units(
    question_values: np.ndarray, scopes: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Sum values (n, m) by unit: sums (u, m) and the number of questions of each unit (u,)."""
    if scopes is None:
        return question_values, np.ones(len(question_values))
    unit_names, unit_codes = np.unique(scopes, return_inverse=True)
    unit_sums = np.zeros((len(unit_names), question_values.shape[1]))
    np.add.at(unit_sums, unit_codes, question_values)
    return unit_sums, np.bincount(unit_codes).astype(np.float64)


def recompute_intervals_at_level(paired_comparisons: pl.DataFrame, level: float) -> pl.DataFrame:
    """Give the intervals of paired differences at another level, from what the rows say.

    Newcombe's are made again from the counts; those over scopes are scaled by the quantiles of t,
    each side of a bootstrap by those of the normal distribution.

    :param paired_comparisons: rows of :func:`memlab.evaluate.significance_tests.compare_paired`; a
        row without an interval stays as it is.
    """
    interval_rows = []
    for row in paired_comparisons.iter_rows(named=True):
        if row["low"] is not None:
            row["low"], row["high"] = _interval_ends_at_level(row, level)
        if row["level"] is not None:
            row["level"] = level
        interval_rows.append((row["low"], row["high"], row["level"]))
    interval_schema = dict.fromkeys(("low", "high", "level"), pl.Float64)
    return paired_comparisons.with_columns(
        pl.DataFrame(interval_rows, schema=interval_schema, orient="row")
    )


def _interval_ends_at_level(comparison_row: Mapping[str, Any], level: float) -> tuple[float, float]:
    if comparison_row["method"] == NEWCOMBE:
        both_hits = round(comparison_row["n"] * comparison_row["mean"]) - comparison_row["win"]
        low_end, high_end = newcombe_interval(
            both_hits,
            comparison_row["win"],
            comparison_row["loss"],
            comparison_row["n"],
            level=level,
        )
        return float(low_end), float(high_end)
    if comparison_row["unit"] == "scope":
        new_quantile = two_sided_t_quantile(level, int(comparison_row["units"]))
        old_quantile = two_sided_t_quantile(comparison_row["level"], int(comparison_row["units"]))
    else:
        new_quantile = two_sided_normal_quantile(level)
        old_quantile = two_sided_normal_quantile(comparison_row["level"])
    ratio = new_quantile / old_quantile
    difference = comparison_row["difference"]
    bounds = [
        difference + (comparison_row[end_name] - difference) * ratio for end_name in ("low", "high")
    ]
    return bounds[0], bounds[1]
