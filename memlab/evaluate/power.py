"""What a comparison could have seen, and when "no difference" is shown: power and equivalence of paired tests.

Both work on counts of questions won, tied and lost, which are a row of :func:`memlab.evaluate.compare`.

Sources: Miettinen, Biometrics 1968 (power of McNemar's test given the share of discordant pairs); Schuirmann 1987
(two one-sided tests); Bonett & Price, J. Educ. Behav. Stat. 2012 (adjusted Wald interval of paired proportions).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.evaluate.comparison import Comparison
from memlab.evaluate.significance import holm

ALPHA, POWER = 0.05, 0.8
MARGIN = 0.05
"""A difference in the share of questions that is too small to matter, where no other margin is stated."""


def detectable(n: int, discordant: float, *, tests: int = 1) -> float | None:
    """Give the smallest difference that a paired test of ``n`` questions would show in four of five cases.

    The test is McNemar's exact one, which a randomisation test of answers right or wrong equals, at
    ``.05 / tests``: what the smallest p of a family must pass under Holm's correction.

    :param discordant: share of questions on which the two systems differ; a larger difference raises it to itself.
    :returns: a difference of shares, in steps of .005; null where even a difference of all is not shown.
    :raises DataError: when n is not positive or a share is not one.

    >>> from memlab.evaluate import detectable
    >>> detectable(78, 0.2), detectable(78, 0.2, tests=64), detectable(1000, 0.2)
    (0.145, 0.195, 0.045)
    """
    from scipy.stats import binom

    if n < 1 or tests < 1 or not 0 <= discordant <= 1:
        raise DataError(
            f"n = {n}, tests = {tests}, discordant = {discordant}; expected counts of 1 and more, and a share"
        )
    pairs = np.arange(n + 1)
    # The most losses with which so many discordant pairs are shown: 2 · P(X ≤ losses) ≤ alpha / tests.
    most = binom.ppf(ALPHA / tests / 2, pairs, 0.5)
    most = np.where(2 * binom.cdf(most, pairs, 0.5) <= ALPHA / tests, most, most - 1)
    for difference in np.arange(0.005, 1.0025, 0.005):
        share = max(discordant, difference)
        shown = binom.cdf(most, pairs, (1 - difference / share) / 2)
        if float(binom.pmf(pairs, n, share) @ shown) >= POWER:
            return round(float(difference), 3)
    return None


def equivalence(difference: float, n: int, win: int, loss: int, *, margin: float = MARGIN) -> float:
    """Give the p of two one-sided tests that a paired difference of shares lies within ± ``margin``.

    One question won and one lost are added (Bonett & Price), so that no variance is 0: where two systems never differ
    on few questions, that does not show that they never would. Differences of less than a whole question count as
    whole ones in the variance, which errs on the side of not shown.

    :param difference: mean of the ``n`` paired differences, of which ``win`` are positive and ``loss`` negative.
    :raises DataError: when the margin is not positive, or the counts exceed n.

    >>> from memlab.evaluate import equivalence
    >>> round(equivalence(0.0, 1000, 20, 20), 4), round(equivalence(0.0, 40, 0, 0), 3)
    (0.0, 0.069)
    """
    from scipy.stats import norm

    if margin <= 0 or n < 1 or min(win, loss) < 0 or win + loss > n:
        raise DataError(
            f"margin = {margin}, n = {n}, win = {win}, loss = {loss}; expected a positive margin and counts"
        )
    mean = difference * n / (n + 2)
    variance = ((win + loss + 2) / (n + 2) - mean**2) / (n + 2)
    return float(norm.sf((margin - abs(mean)) / np.sqrt(variance)))


def least_agreeing(tests: int) -> int:
    """Give how many questions must change, all to one side, to be shown by the strictest of several tests.

    >>> from memlab.evaluate import least_agreeing
    >>> least_agreeing(1), least_agreeing(64)
    (6, 12)
    """
    return int(np.floor(np.log2(2 * tests / ALPHA))) + 1


def verdicts(tables: Comparison | Iterable[pl.DataFrame], *, margin: float = MARGIN) -> Comparison:
    """Judge all the comparisons behind one claim as one family: what is shown, what is shown to be none, what is open.

    :param tables: what :func:`compare` gave, one or several, of measures that are shares of questions.
    :param margin: differences within it do not matter.
    :returns: their rows with ``p_holm`` over all of them, ``detectable`` (the difference that this comparison would
        have shown in four of five cases, at the corrected level), ``p_equal`` (:func:`equivalence`, corrected for all
        of them) and ``verdict``: ``better``, ``worse``, ``as good`` (within the margin) or ``open``. Rows of a
        baseline have none.
    :raises DataError: as :func:`detectable` and :func:`equivalence` do.
    """
    frame = tables if isinstance(tables, pl.DataFrame) else pl.concat(tables, how="diagonal_relaxed")
    tested = frame["p"].is_not_null().to_numpy()
    rows = frame.filter(pl.Series(tested)).select("difference", "n", "win", "loss").to_dicts()
    p, equal, seen = (np.full(frame.height, np.nan) for _ in range(3))
    p[tested] = holm(frame["p"].drop_nulls().to_numpy())
    equal[tested] = holm(np.array([equivalence(**row, margin=margin) for row in rows]))
    seen[tested] = [
        detectable(row["n"], (row["win"] + row["loss"]) / row["n"], tests=len(rows)) or np.nan for row in rows
    ]
    verdict = (
        pl.when(pl.col("p").is_null()).then(None)
        .when((pl.col("p_holm") < ALPHA) & (pl.col("difference") > 0)).then(pl.lit("better"))
        .when(pl.col("p_holm") < ALPHA).then(pl.lit("worse"))
        .when(pl.col("p_equal") < ALPHA).then(pl.lit("as good"))
        .otherwise(pl.lit("open"))
    )  # fmt: skip
    added = {"p_holm": p, "detectable": seen, "p_equal": equal}
    columns = [pl.Series(name, values).fill_nan(None) for name, values in added.items()]
    return Comparison(frame.with_columns(columns).with_columns(verdict=verdict))


def seen_from(table: pl.DataFrame) -> str:
    """Say in words which differences a family that :func:`verdicts` judged would have shown.

    >>> import polars as pl
    >>> from memlab.evaluate import seen_from
    >>> seen_from(pl.DataFrame({"p": [None, 0.1, 1.0], "detectable": [None, 0.085, 0.195]}))
    'of 8.5% to 19.5%'
    """
    seen = table.filter(pl.col("p").is_not_null())["detectable"].to_list()
    sizes = sorted(value for value in seen if value is not None)
    if not sizes:
        return "of no size at all, so few are the questions,"
    if len(sizes) < len(seen) or sizes[0] == sizes[-1]:
        return f"of {sizes[0]:.1%} or more"
    return f"of {sizes[0]:.1%} to {sizes[-1]:.1%}"


def count_verdicts(families: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Count the verdicts of several families of tests, each judged by :func:`verdicts`.

    :returns: a row a family: ``family``, ``tests``, ``better``, ``worse``, ``as good``, ``open``.
    """
    kinds = ("better", "worse", "as good", "open")
    rows = []
    for name, table in families.items():
        judged = table["verdict"].drop_nulls()
        rows.append({"family": name, "tests": len(judged), **{kind: int((judged == kind).sum()) for kind in kinds}})
    return pl.DataFrame(rows)
