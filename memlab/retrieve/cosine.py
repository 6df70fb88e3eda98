"""Cosine similarity of unit vectors, and scaling to length 1."""

from __future__ import annotations

import numpy as np


def cosines(queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Multiply unit rows: (q, d), (n, d) → (q, n) float32.

    In float64, rounded afterwards: how float32 sums round depends on the shape of the batch and on
    the processor, and equal texts would then not tie.
    """
    # So many documents at a time that the wide copy stays small: for one query it is most of the
    # work.
    block_size = min(16_384, 256 + 16 * len(queries))
    scores = np.empty((len(queries), len(documents)), np.float32)
    wide_queries = queries.astype(np.float64)
    for block_start in range(0, len(documents), block_size):
        scores[:, block_start : block_start + block_size] = (
            wide_queries @ documents[block_start : block_start + block_size].astype(np.float64).T
        )
    return scores


def scale_to_unit(vectors: np.ndarray) -> np.ndarray:
    """Scale rows to length 1, in their own type; rows of zeros stay."""
    row_lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, row_lengths, out=np.zeros_like(vectors), where=row_lengths > 0)
