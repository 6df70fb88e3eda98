"""Every interval and test of memlab: is a difference real, is it none, and what could have been seen?

Intervals are percentile bootstraps, tests are paired randomisation tests, corrected by Holm;
equivalence is two one-sided tests. All work on *units*: a unit is a question, or a whole
conversation where the questions about one chat are not independent of each other.

Sources: Smucker, Allan & Carterette, CIKM 2007 (randomisation test for retrieval); Phipson & Smyth
2010 (the (b + 1) / (m + 1) rule); Holm 1979; Efron & Tibshirani 1993, ch. 13 (percentile interval);
Miettinen, Biometrics 1968 (power of McNemar's test); Schuirmann 1987 (two one-sided tests); Bonett
& Price 2012 (interval of paired proportions).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.evaluate.tables import Table

ALPHA, POWER = 0.05, 0.8
MARGIN = 0.05
"""A difference in the share of questions that is too small to matter, where no other margin is stated."""
RESAMPLES = 2_000
PERMUTATIONS = 10_000
EXACT_UP_TO = 14
CELLS = 4_000_000


def bootstrap_interval(
    values: np.ndarray, *, scopes: np.ndarray | None = None, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Give 95 % percentile intervals of means by resampling units with replacement.

    :param values: (n, m), m columns over the questions.
    :param scopes: (n,) the conversation of each question, where conversations are resampled and not
        questions. With fewer than twenty of them intervals are too narrow (Cameron, Gelbach &
        Miller 2008).
    :returns: low (m,) and high (m,); NaN with fewer than two units, where nothing can be said.

    >>> import numpy as np
    >>> from memlab.evaluate.significance import bootstrap_interval
    >>> low, high = bootstrap_interval(np.array([[0.0], [1.0]] * 50), seed=1)
    >>> bool(0.38 < low[0] < 0.42 and 0.58 < high[0] < 0.62)
    True
    """
    sums, sizes = _sum_units(values, scopes)
    units, columns = sums.shape
    if units < 2:
        return np.full(columns, np.nan), np.full(columns, np.nan)
    drawn = _resample_counts if RESAMPLES * units <= CELLS else _resample_counts.__wrapped__
    means = [counts.astype(np.float64) for counts in drawn(units, seed)]
    means = [(weights @ sums) / (weights @ sizes)[:, None] for weights in means]
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975], axis=0)
    return low, high


@lru_cache(maxsize=32)
def _resample_counts(units: int, seed: int) -> list[np.ndarray]:
    """Count how often each unit stands in each resample; the same for every run on the same questions."""
    rng = np.random.default_rng(seed)
    counts = []
    for rows in split_draws(RESAMPLES, units):
        drawn = rng.integers(0, units, size=(rows, units)) + units * np.arange(rows)[:, None]
        counts.append(
            np.bincount(drawn.ravel(), minlength=rows * units)
            .reshape(rows, units)
            .astype(np.uint16)
        )
    return counts


def split_draws(draws: int, width: int) -> list[int]:
    """Split a number of draws of so many values each into sizes that fit into memory."""
    step = max(1, CELLS // width)
    return [min(step, draws - start) for start in range(0, draws, step)]


def _sum_units(values: np.ndarray, scopes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Sum values (n, m) by unit: sums (u, m) and the number of questions of each unit (u,)."""
    if scopes is None:
        return values, np.ones(len(values))
    names, code = np.unique(scopes, return_inverse=True)
    sums = np.zeros((len(names), values.shape[1]))
    np.add.at(sums, code, values)
    return sums, np.bincount(code).astype(np.float64)


def column_means(values: np.ndarray) -> np.ndarray:
    """Give the mean of each column of values (n, m), NaN where there is no row."""
    return values.mean(axis=0) if len(values) else np.full(values.shape[1], np.nan)


def fewest_questions(tests: int = 1) -> int:
    """Give the number of questions from which a paired test can be significant at all.

    With n questions that all differ in one direction the exact p is 2 / 2^n; the smallest p of a
    family must be below ``.05 / tests``.

    >>> from memlab.evaluate.significance import fewest_questions
    >>> fewest_questions(), fewest_questions(tests=64)
    (6, 12)
    """
    return math.ceil(math.log2(2 * max(tests, 1) / ALPHA))


def randomisation_test(differences: np.ndarray, *, seed: int = 0) -> float:
    """Give the two-sided p of paired differences under random flips of their signs.

    Every flip is counted where there are few non-zero differences; else 10,000 are drawn and p is
    (b + 1) / (10,000 + 1), which is never zero.

    :param differences: (n,) paired differences, one a unit.

    >>> import numpy as np
    >>> from memlab.evaluate.significance import randomisation_test
    >>> randomisation_test(np.array([1.0, 1.0, 1.0, 1.0, 0.0]))
    0.125
    """
    nonzero = differences[np.abs(differences) > 1e-12]
    n = len(nonzero)
    if n == 0:
        return 1.0
    # Sums of the same numbers in another order differ in the last bits: a tie with the observed sum
    # must count.
    observed = abs(nonzero.sum()) - 1e-10 * np.abs(nonzero).sum()
    if n <= EXACT_UP_TO:
        signs = (np.arange(2**n)[:, None] >> np.arange(n) & 1) * 2.0 - 1.0
        return float((np.abs(signs @ nonzero) >= observed).mean())
    rng, extreme = np.random.default_rng(seed), 0
    for rows in split_draws(PERMUTATIONS, n):
        drawn = rng.integers(0, 256, size=(rows, -(-n // 8)), dtype=np.uint8)
        positive = np.unpackbits(drawn, axis=1, count=n).astype(np.float64) @ nonzero
        extreme += int((np.abs(2.0 * positive - nonzero.sum()) >= observed).sum())
    return (extreme + 1) / (PERMUTATIONS + 1)


def holm(p: np.ndarray) -> np.ndarray:
    """Adjust p values for their number by Holm's step-down procedure.

    :param p: (n,) p values; NaN where nothing was tested.
    :returns: (n,) adjusted values in the same order, each at least its p and at most 1.

    >>> import numpy as np
    >>> from memlab.evaluate.significance import holm
    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    n, adjusted = int((~np.isnan(p)).sum()), np.full(len(p), np.nan)
    order = np.argsort(p, kind="stable")[:n]  # NaN sorts last
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(n, 0, -1)))
    return adjusted


def compare_paired(
    values: np.ndarray, reference: np.ndarray, *, scopes: np.ndarray | None = None, seed: int = 0
) -> pl.DataFrame:
    """Test each column of values against another one: the one paired test that every comparison uses.

    :param values: (n, m) what each of m systems reached on n questions.
    :param reference: (m,) the column that each is compared with; a column that is its own is not
        tested.
    :param scopes: (n,) as in :func:`bootstrap_interval`.
    :returns: m rows: ``n``, ``mean`` with its 95 % interval ``mean_low``, ``mean_high``, and, null
        where nothing is tested, ``difference`` with its 95 % interval ``low``, ``high``; ``p``;
        ``p_holm`` over all columns that are tested; questions won, tied and lost: ``win``, ``tie``,
        ``loss``.

    >>> import numpy as np
    >>> from memlab.evaluate.significance import compare_paired
    >>> compare_paired(np.array([[0.0, 1.0]] * 8), np.array([0, 0])).row(1)[4:]
    (1.0, 1.0, 1.0, 0.0078125, 0.0078125, 8, 0, 0)
    """
    differences = values - values[:, reference]
    differences[np.abs(differences) < 1e-12] = 0.0
    (mean_low, mean_high), (low, high) = (
        bootstrap_interval(each, scopes=scopes, seed=seed) for each in (values, differences)
    )
    # Without a question nothing is tested.
    tested = (reference != np.arange(len(reference))) & (len(values) > 0)
    p = np.array(
        [randomisation_test(column, seed=seed) for column in _sum_units(differences, scopes)[0].T]
    )
    rows = {"difference": column_means(differences), "low": low, "high": high, "p": p}
    rows["p_holm"] = holm(np.where(tested, p, np.nan))
    rows |= {
        "win": (differences > 0).sum(0),
        "tie": (differences == 0).sum(0),
        "loss": (differences < 0).sum(0),
    }
    means = pl.DataFrame(
        {"mean": column_means(values), "mean_low": mean_low, "mean_high": mean_high}
    )
    compared = pl.DataFrame(rows).with_columns(pl.when(pl.Series(tested)).then(pl.all()))
    return (
        means.select(pl.lit(len(values), pl.Int64).alias("n"), pl.all())
        .hstack(compared)
        .fill_nan(None)
    )


def compare_with_null(observed: np.ndarray, null: np.ndarray, *, seed: int = 0) -> dict[str, float]:
    """Set a mean over questions beside its null distribution.

    :param observed: (n,) a value a question; NaN where it has none.
    :param null: (draws, n) the same under the null hypothesis.
    :returns: ``n``, ``mean`` with its 95 % bootstrap interval over questions ``low``, ``high``;
        mean and middle 95 % of the draws, ``chance``, ``chance_low`` and ``chance_high``, and the
        two-sided ``p``, (b + 1) / (draws + 1).

    >>> import numpy as np
    >>> from memlab.evaluate.significance import compare_with_null
    >>> compare_with_null(np.array([1.0, 1.0]), np.zeros((99, 2)))["p"]
    0.01
    """
    those = ~np.isnan(observed)
    values, draws = observed[those], null[:, those].mean(axis=1)
    (low,), (high,) = bootstrap_interval(values[:, None], seed=seed)
    mean, chance = float(values.mean()), float(draws.mean())
    chance_low, chance_high = np.quantile(draws, [0.025, 0.975]).tolist()
    extreme = int((np.abs(draws - chance) >= abs(mean - chance) - 1e-9).sum())
    about = {
        "n": len(values),
        "mean": mean,
        "low": float(low),
        "high": float(high),
        "chance": chance,
    }
    return about | {
        "chance_low": chance_low,
        "chance_high": chance_high,
        "p": (extreme + 1) / (len(draws) + 1),
    }


def wilson_interval(hits: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give Wilson's 95 % intervals of shares: low and high (m,) of m counts; NaN where n is 0.

    >>> import numpy as np
    >>> from memlab.evaluate.significance import wilson_interval
    >>> [end.round(3).tolist() for end in wilson_interval(np.array([5]), np.array([10]))]
    [[0.237], [0.763]]
    """
    from scipy.stats import binomtest

    cases = zip(hits.tolist(), n.tolist(), strict=True)
    ends = [
        binomtest(round(k), int(of)).proportion_ci(method="wilson") if of else (np.nan, np.nan)
        for k, of in cases
    ]
    low, high = np.array(ends).reshape(-1, 2).T
    return low, high


def smallest_detectable_difference(n: int, discordant: float, *, tests: int = 1) -> float | None:
    """Give the smallest difference that a paired test of ``n`` questions would show in four of five cases.

    The test is McNemar's exact one, which a randomisation test of answers right or wrong equals, at
    ``.05 / tests``: what the smallest p of a family must pass under Holm's correction.

    :param discordant: share of questions on which the two systems differ; a larger difference
        raises it to itself.
    :returns: a difference of shares, in steps of .005; null where even a difference of all would
        not be significant.

    >>> from memlab.evaluate.significance import smallest_detectable_difference
    >>> [smallest_detectable_difference(n, 0.2) for n in (78, 1000)], smallest_detectable_difference(78, 0.2, tests=64)
    ([0.145, 0.045], 0.195)
    """
    from scipy.stats import binom

    pairs = np.arange(n + 1)
    # The most losses with which so many discordant pairs are significant: 2 · P(X ≤ losses) ≤ alpha
    # / tests.
    most = binom.ppf(ALPHA / tests / 2, pairs, 0.5)
    most = np.where(2 * binom.cdf(most, pairs, 0.5) <= ALPHA / tests, most, most - 1)
    for difference in np.arange(0.005, 1.0025, 0.005):
        share = max(discordant, difference)
        power = binom.pmf(pairs, n, share) @ binom.cdf(most, pairs, (1 - difference / share) / 2)
        if float(power) >= POWER:
            return round(float(difference), 3)
    return None


def equivalence_p(
    difference: float, n: int, win: int, loss: int, *, margin: float = MARGIN
) -> float:
    """Give the p of two one-sided tests that a paired difference of shares lies within ± ``margin``.

    One question won and one lost are added (Bonett & Price), so that no variance is 0: where two
    systems never differ on few questions, that is no evidence that they never would.

    :param difference: mean of the ``n`` paired differences, of which ``win`` are positive and
        ``loss`` negative.
    :raises DataError: when the margin is not positive.

    >>> from memlab.evaluate.significance import equivalence_p
    >>> round(equivalence_p(0.0, 1000, 20, 20), 4), round(equivalence_p(0.0, 40, 0, 0), 3)
    (0.0, 0.069)
    """
    from scipy.stats import norm

    if margin <= 0:
        raise DataError(f"the margin is {margin}; expected a difference of shares above 0")
    mean = difference * n / (n + 2)
    variance = ((win + loss + 2) / (n + 2) - mean**2) / (n + 2)
    return float(norm.sf((margin - abs(mean)) / np.sqrt(variance)))


def verdicts(tables: pl.DataFrame | Iterable[pl.DataFrame], *, margin: float = MARGIN) -> Table:
    """Judge all the comparisons behind one claim as one family: superiority, equivalence, or inconclusive.

    :param tables: what :func:`memlab.evaluate.compare_reports` gave, one or several, of measures that are
        shares of questions.
    :param margin: differences within it do not matter.
    :returns: their rows with ``p_holm`` over all of them, ``detectable`` (the difference that this
        comparison would have seen in four of five cases, at the corrected level), ``p_equal``
        (:func:`equivalence_p`, corrected for all of them) and ``verdict``: ``better``, ``worse``,
        ``equivalent`` (within the margin) or ``inconclusive``. Rows of a baseline have none.

    >>> import polars as pl
    >>> from memlab.evaluate import verdicts
    >>> row = {"system": "b", "n": 100, "difference": 0.2, "p": 1e-6, "win": 20, "loss": 0}
    >>> verdicts(pl.DataFrame([row]))["verdict"].item()
    'better'
    """
    listed = [tables] if isinstance(tables, pl.DataFrame) else [*tables, pl.DataFrame()]
    frame = pl.concat(listed, how="diagonal_relaxed")
    if "p" not in frame.columns:
        raise DataError("verdicts takes what compare gave: one table or several")
    tests, detectable, equal = frame["p"].count(), [], []
    for p, difference, n, win, loss in frame.select(
        "p", "difference", "n", "win", "loss"
    ).iter_rows():
        size = (
            None if p is None else smallest_detectable_difference(n, (win + loss) / n, tests=tests)
        )
        detectable.append(size)
        equal.append(
            np.nan if p is None else equivalence_p(difference, n, win, loss, margin=margin)
        )
    frame = frame.with_columns(
        p_holm=holm(frame["p"].to_numpy()),
        detectable=pl.Series(detectable, dtype=pl.Float64),
        p_equal=holm(np.array(equal)),
    ).fill_nan(None)
    verdict = (
        pl.when(pl.col("p").is_null()).then(None)
        .when((pl.col("p_holm") < ALPHA) & (pl.col("difference") > 0)).then(pl.lit("better"))
        .when(pl.col("p_holm") < ALPHA).then(pl.lit("worse"))
        .when(pl.col("p_equal") < ALPHA).then(pl.lit("equivalent"))
        .otherwise(pl.lit("inconclusive"))
    )  # fmt: skip
    return Table(frame.with_columns(verdict=verdict))
