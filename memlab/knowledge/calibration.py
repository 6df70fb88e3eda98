"""Are stated chances true? Wilson's interval, and the table behind a reliability diagram."""

from __future__ import annotations

import numpy as np
import polars as pl

_BINS = 10


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


def reliability(predictions: pl.DataFrame) -> pl.DataFrame:
    """Group predictions by chance into ten bins of equal width, and hold the mean chance against the share still true.

    The upper edge belongs to a bin only at 1. Empty bins are left out. The interval is Wilson's of 90 %, which takes
    observations as independent.

    :param predictions: those of :class:`memlab.knowledge.tuning.Comparison`: ``family``, ``fit``, ``chance`` and
        ``still_true``.
    :returns: ``family``, ``fit``, ``bin`` (from 0), ``n``, ``chance`` (mean), ``share``, ``low`` and ``high``.

    >>> import polars as pl
    >>> from memlab.knowledge import calibration
    >>> predictions = pl.DataFrame({"chance": [0.11, 0.12, 0.91, 1.0], "still_true": [False, True, True, True]})
    >>> predictions = predictions.with_columns(family=pl.lit("weibull"), fit=pl.lit("pooled"))
    >>> calibration.reliability(predictions)["share"].to_list()
    [0.5, 1.0]
    """
    at = (pl.col("chance") * _BINS).floor().cast(pl.Int64).clip(0, _BINS - 1).alias("bin")
    table = predictions.sort("chance").group_by("family", "fit", at, maintain_order=True).agg(
        n=pl.len().cast(pl.Int64), chance=pl.col("chance").mean(), share=pl.col("still_true").mean()
    )  # fmt: skip
    n = table["n"].to_numpy()
    low, high = wilson(table["share"].to_numpy() * n, n)
    order = predictions.select("family", "fit").unique(maintain_order=True)
    table = table.with_columns(pl.Series("low", low), pl.Series("high", high))
    return order.join(table, on=["family", "fit"], maintain_order="left_right")
