"""Wilson's interval of a proportion."""

from __future__ import annotations

import numpy as np


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
