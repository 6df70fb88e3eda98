"""Are stated chances true? Wilson's interval, and the table behind a reliability diagram."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.errors import DataError

_CANDIDATE = ("family", "fit")


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
