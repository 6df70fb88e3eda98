"""Few dimensions out of many: seeded UMAP, and principal components where there are too few points for it."""

from __future__ import annotations

import contextlib
import warnings
from types import ModuleType

import numpy as np

from memlab.errors import DataError

EXACT_NEIGHBORS_UP_TO = 20_000
_BLOCK_ROWS = 1024


def project(
    embeddings: np.ndarray, *, n_components: int = 2, n_neighbors: int = 15, min_dist: float = 0.1, seed: int = 0
) -> np.ndarray:
    """Lay embeddings out in a few dimensions so that near neighbours stay near.

    UMAP under cosine distance. With the same seed, data (in any order) and machine the coordinates repeat, whatever
    the number of threads, at the price of one thread; between machines they differ, so keep them as data and never
    compare them. Distances between far groups mean little. Up to ``n_components + 2`` points, too few for UMAP's
    spectral start, principal components are given instead, and missing dimensions are zero.

    :param embeddings: (n, d) finite numbers; rows need not have unit length, and all-zero rows are allowed.
    :param n_components: dimensions to give.
    :param n_neighbors: how many neighbours make a point's surroundings: few show detail, many the large shape. Cut to
        the number of points there are.
    :param min_dist: how close points may lie in the picture; 0 packs groups tightly, which suits clustering.
    :param seed: of the layout.
    :returns: (n, n_components) float32.
    :raises DataError: when the array is not (n, d), holds NaN or infinity, or a parameter is out of range.

    McInnes, Healy and Melville, "UMAP: Uniform Manifold Approximation and Projection", 2018.

    >>> import numpy as np
    >>> from memlab.cluster import project
    >>> project(np.eye(3), n_components=2).shape
    (3, 2)
    """
    if n_components < 1 or n_neighbors < 2 or not 0 <= min_dist <= 1:
        raise DataError(
            f"n_components={n_components}, n_neighbors={n_neighbors}, min_dist={min_dist}: expected n_components ≥ 1, "
            "n_neighbors ≥ 2 and min_dist between 0 and 1"
        )
    unordered = unit_rows(embeddings)
    order = fixed_order(unordered)
    rows = unordered[order]
    if len(rows) <= n_components + 2 or (rows == rows[0]).all():
        laid = principal_components(rows, n_components=n_components)
    else:
        laid = _umap(rows, n_components, min(n_neighbors, len(rows) - 1), min_dist, seed)
    coordinates = np.empty_like(laid)
    coordinates[order] = laid
    return coordinates


def principal_components(embeddings: np.ndarray, *, n_components: int) -> np.ndarray:
    """Give the first principal components, zero where the data have fewer; the largest loading of each is positive.

    :param embeddings: (n, d), n may be 0.
    :returns: (n, n_components) float32.
    """
    coordinates = np.zeros((len(embeddings), n_components), np.float32)
    if len(embeddings) == 0:
        return coordinates
    centred = embeddings - embeddings.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[:n_components]
    axes *= np.where(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)] < 0, -1, 1)[:, None]
    coordinates[:, : len(axes)] = centred @ axes.T
    return coordinates


def unit_rows(embeddings: np.ndarray) -> np.ndarray:
    """Check embeddings and give them unit length, so that Euclidean distance orders pairs as cosine does.

    :param embeddings: (n, d); all-zero rows stay zero.
    :returns: (n, d) float32, contiguous.
    :raises DataError: when the array is not (n, d) or holds NaN or infinity.
    """
    rows = np.asarray(embeddings, dtype=np.float64)
    if rows.ndim != 2 or (len(rows) and rows.shape[1] == 0):
        raise DataError(f"embeddings have shape {rows.shape}; expected (number of texts, dimensions)")
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise DataError(
            f"embeddings: row {bad[0]} holds NaN or infinity ({len(bad)} such rows of {len(rows)}); "
            "encode these texts again or leave them out"
        )
    # Scaling by the largest entry first keeps the squares from overflowing or vanishing.
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    rows = rows / np.where(largest > 0, largest, 1)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.ascontiguousarray(rows / np.where(norms > 0, norms, 1), dtype=np.float32)


def fixed_order(rows: np.ndarray) -> np.ndarray:
    """Give an order of rows that depends on their values alone.

    UMAP and HDBSCAN break ties by position; after sorting, the same set of rows gives the same result in any order.

    :param rows: (n, d).
    :returns: (n,) positions.

    >>> import numpy as np
    >>> from memlab.cluster.projection import fixed_order
    >>> rows = np.array([[0.5, 1.0], [0.25, 2.0], [0.5, 0.0]])
    >>> np.array_equal(rows[fixed_order(rows)], rows[::-1][fixed_order(rows[::-1])])
    True
    """
    if rows.size == 0:
        return np.arange(len(rows))
    plain = np.ascontiguousarray(rows) + 0.0  # −0.0 and 0.0 are equal but differ in their bytes
    return np.argsort(plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1]))).ravel(), kind="stable")


def _umap(rows: np.ndarray, n_components: int, n_neighbors: int, min_dist: float, seed: int) -> np.ndarray:
    with warnings.catch_warnings():
        # UMAP warns about its single thread, the missing search index and spectral starts that it repairs itself.
        warnings.simplefilter("ignore")
        import umap
        from threadpoolctl import threadpool_limits

        _keep_compiled_code(umap.umap_, "smooth_knn_dist", "compute_membership_strengths")
        _keep_compiled_code(umap.layouts, "_nb_optimize_layout_euclidean_single_epoch")
        # Sums of two threads differ in their last bits, and UMAP makes another map of them.
        with threadpool_limits(1):
            exact = exact_neighbors(rows, n_neighbors) if len(rows) <= EXACT_NEIGHBORS_UP_TO else (None, None)
            layout = umap.UMAP(
                n_components=n_components, n_neighbors=n_neighbors, min_dist=min_dist, metric="cosine", n_jobs=1,
                random_state=seed, precomputed_knn=(*exact, None),
            ).fit_transform(rows)  # fmt: skip
    return np.asarray(layout, dtype=np.float32)


def exact_neighbors(rows: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
    """Find each unit row's nearest rows by cosine distance, itself first.

    :param rows: (n, d) of unit length.
    :param n_neighbors: how many, at most n.
    :returns: (n, n_neighbors) indices int32, and distances float32, nearest first.
    """
    n = len(rows)
    indices = np.empty((n, n_neighbors), np.int32)
    distances = np.empty((n, n_neighbors), np.float32)
    for start in range(0, n, _BLOCK_ROWS):
        own = np.arange(start, min(start + _BLOCK_ROWS, n))
        distance = np.maximum(1 - rows[own] @ rows.T, 0)
        distance[np.arange(len(own)), own] = -1
        near = np.argpartition(distance, n_neighbors - 1, axis=1)[:, :n_neighbors]
        order = np.argsort(np.take_along_axis(distance, near, axis=1), axis=1, kind="stable")
        indices[own] = np.take_along_axis(near, order, axis=1)
        distances[own] = np.maximum(np.take_along_axis(distance, indices[own], axis=1), 0)
    return indices, distances


def _keep_compiled_code(module: ModuleType, *names: str) -> None:
    """Let numba keep what it compiles for UMAP on disk: eight seconds that every process would pay again."""
    for name in names:
        # numba raises RuntimeError where neither the package nor the user's cache directory can be written.
        with contextlib.suppress(RuntimeError, AttributeError):
            getattr(module, name).enable_caching()
