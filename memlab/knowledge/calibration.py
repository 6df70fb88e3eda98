"""Are stated chances true? Log-loss, Brier score, calibration error, and the table behind a reliability diagram."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.knowledge.likelihood import losses

_CANDIDATE, _CONFIDENCE = ("family", "fit"), 0.9


def wilson(hits: np.ndarray, n: np.ndarray, *, confidence: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
    """Give Wilson's interval of a proportion.

    :param hits: (b,) successes; ``n`` (b,) trials, at least 1.
    :returns: low (b,) and high (b,).

    Source: Wilson, Probable inference (JASA 1927); Brown, Cai and DasGupta (Statistical Science 2001).

    >>> import numpy as np
    >>> from memlab.knowledge.calibration import wilson
    >>> [round(float(end[0]), 3) for end in wilson(np.array([8]), np.array([10]), confidence=0.95)]
    [0.49, 0.943]
    """
    from scipy.stats import norm

    z, share = float(norm.ppf((1 + confidence) / 2)), hits / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # Rounding must not push an end past the share of 0 or 1 that it meets.
    return np.minimum(middle - half, share).clip(0), np.maximum(middle + half, share).clip(None, 1)


def reliability(predictions: pl.DataFrame, *, bins: int = 10, confidence: float = 0.9) -> pl.DataFrame:
    """Group predictions by chance into bins of equal width, and hold the mean chance against the share still true.

    :param predictions: ``chance`` and ``still_true``; a table for each ``family`` and ``fit`` where there are those.
    :param bins: how many bins divide [0, 1]; the upper edge belongs to a bin only at 1. Empty bins are left out.
    :param confidence: of Wilson's interval of the share; it takes observations as independent.
    :returns: ``family``, ``fit``, ``bin`` (from 0), ``n``, ``chance`` (mean), ``share``, ``low`` and ``high``.
    :raises DataError: for fewer than one bin, or a missing column.

    >>> import polars as pl
    >>> from memlab.knowledge import calibration
    >>> predictions = pl.DataFrame({"chance": [0.1, 0.12, 0.9, 1.0], "still_true": [False, True, True, True]})
    >>> calibration.reliability(predictions, bins=2)["share"].to_list()
    [0.5, 1.0]
    """
    missing = [c for c in ("chance", "still_true") if c not in predictions.columns]
    if missing or predictions.is_empty():
        raise DataError(
            f"calibration needs rows with chance and still_true; found {predictions.height} rows with the columns "
            f"{', '.join(predictions.columns)}"
        )
    if bins < 1:
        raise DataError(f"bins is {bins}; give at least one")
    keys = [c for c in _CANDIDATE if c in predictions.columns]
    at = (pl.col("chance") * bins).floor().cast(pl.Int64).clip(0, bins - 1).alias("bin")
    table = (
        predictions.group_by([*keys, at], maintain_order=True)
        .agg(pl.len().cast(pl.Int64).alias("n"), pl.col("chance").mean(), pl.col("still_true").mean().alias("share"))
        .sort("bin", maintain_order=True)
    )
    order = predictions.select(keys).unique(maintain_order=True)
    table = order.join(table, on=keys, maintain_order="left_right") if keys else table
    n = table["n"].to_numpy()
    low, high = wilson(table["share"].to_numpy() * n, n, confidence=confidence)
    return table.with_columns(pl.Series("low", low), pl.Series("high", high))


def scores(predictions: pl.DataFrame) -> pl.DataFrame:
    """Score candidates on the same observations, overall and by predicate.

    Intervals (90 %) take the groups as independent, not the observations in them (cluster-robust, normal). Differences
    are paired: each observation under this candidate and under the best fitted one of the same rows. The calibration
    error is the mean distance of share and chance over the bins of :func:`reliability`, by size (Naeini, Cooper and
    Hauskrecht, AAAI 2015). It depends on the binning, and is above 0 for a perfect forecast of few observations:
    compare, do not test.

    :param predictions: see :class:`memlab.knowledge.tuning.Comparison`; all candidates in the same order of rows.
    :returns: ``predicate`` (null: all), ``family``, ``fit``, ``n``, ``log_loss`` with ``low`` and ``high``, ``brier``,
        ``ece``, and ``difference`` (of log-loss to the best) with ``difference_low`` and ``difference_high``.
    """
    parts: list[tuple[Any, pl.DataFrame]] = [(None, predictions)]
    if predictions["predicate"].n_unique() > 1:
        named = predictions.drop_nulls("predicate").partition_by("predicate", as_dict=True, maintain_order=True)
        parts += [(key[0], part) for key, part in named.items()]
    rows = [row for predicate, part in parts for row in _scored(predicate, part)]
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.col("predicate").cast(pl.String))


def _scored(predicate: Any, part: pl.DataFrame) -> list[dict[str, Any]]:
    candidates = part.partition_by(_CANDIDATE, as_dict=True, maintain_order=True)
    loss = {key: losses(rows["chance"].to_numpy(), rows["still_true"].to_numpy()) for key, rows in candidates.items()}
    best = min((key for key in loss if key[0] not in ("constant", "default")), key=lambda key: loss[key].mean())
    table = []
    for key, rows in candidates.items():
        group = rows["group"].rank("dense").to_numpy().astype(np.int64) - 1
        low, high = _interval(loss[key], group)
        apart_low, apart_high = _interval(loss[key] - loss[best], group)
        gaps = reliability(rows).select(((pl.col("chance") - pl.col("share")).abs() * pl.col("n")).sum())
        brier = rows.select(((pl.col("chance") - pl.col("still_true").cast(pl.Float64)) ** 2).mean()).item()
        table.append(
            {"predicate": predicate, "family": key[0], "fit": key[1], "n": rows.height,
             "log_loss": float(loss[key].mean()), "low": low, "high": high,
             "brier": brier, "ece": gaps.item() / rows.height,
             "difference": float((loss[key] - loss[best]).mean()),
             "difference_low": apart_low, "difference_high": apart_high}
        )  # fmt: skip
    return table


def _interval(values: np.ndarray, group: np.ndarray) -> tuple[float | None, float | None]:
    """Give the interval of a mean over observations that are independent only between groups."""
    from scipy.stats import norm

    mean, groups = values.mean(), int(group.max()) + 1
    if groups < 2:
        return None, None
    off = np.bincount(group, weights=values - mean, minlength=groups)
    error = np.sqrt((off**2).sum() * groups / (groups - 1)) / len(values)
    half = float(norm.ppf((1 + _CONFIDENCE) / 2) * error)
    return float(mean - half), float(mean + half)
