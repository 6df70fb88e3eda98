"""Few dimensions out of many: seeded UMAP, and principal components where there are too few points
for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from types import ModuleType
from typing import NamedTuple

import numpy as np

from memlab.errors import DataError, require_extra
from memlab.terminal_text import say_if_step_takes_long


class Neighbours(NamedTuple):
    """The places (n, k) of the rows nearest to each, and their distances (n, k)."""

    indices: np.ndarray
    distances: np.ndarray


class _LayoutSettings(NamedTuple):
    """What decides a layout: a digest of the unit rows, and the parameters of UMAP."""

    rows_digest: bytes
    n_components: int
    n_neighbors: int
    min_dist: float
    seed: int


# Neighbours are found exactly up to so many rows: UMAP's own search is random and has to be
# compiled.
_EXACT_UP_TO = 20_000
# On one core, as measured: 12.8 s for 12,000 points in 64 dimensions.
_SECONDS_A_POINT = 0.0011
# So many bytes, at eight a pair, are compared in one product, and rows of it at a time are sorted
# while they are in the cache of a core. In products of another size distances differ in their last
# bits.
_BYTES_OF_PRODUCT = 1 << 30
_ROWS_SORTED = 64
# The neighbours that were found last, which the layout in two dimensions and the one that is
# clustered share: by a digest of the rows, how many neighbours each has, and the seed of the
# search.
_last_neighbours: dict[tuple[bytes, int, int], Neighbours] = {}
# The layouts that were made last, so that the same rows are not laid out again in this process.
_MOST_KEPT_LAYOUTS = 32
_kept_layouts: dict[_LayoutSettings, np.ndarray] = {}


def project(
    embeddings: np.ndarray,
    *,
    n_components: int = 2,
    n_neighbors: int = 15,
    min_dist: float = 0.1,
    seed: int = 0,
) -> np.ndarray:
    """Project embeddings to few dimensions by UMAP under cosine distance.

    With the same seed, data and machine the coordinates repeat, at the price of one thread; between
    machines they differ, so keep them as data. Distances between far groups mean little. Up to
    ``n_components + 2`` points, too few for UMAP's spectral start, principal components are given,
    and missing dimensions are zero. Of more than 20,000 points neighbours are searched by
    nearest-neighbour descent. Neighbours and layouts are kept while the process lasts: the next
    layout of the same points needs no search, and the same layout no work.

    :param embeddings: (n, d) finite numbers; rows need not have unit length, and all-zero rows are
        allowed.
    :param n_neighbors: neighbours that make a point's surroundings: few show detail, many the large
        shape.
    :param min_dist: how close points may lie in the layout; 0 packs groups tightly, which suits
        clustering.
    :returns: (n, n_components) float32.
    :raises DataError: when the array is not (n, d), holds NaN or infinity, or a parameter is out of
        range.

    McInnes, Healy and Melville, "UMAP: Uniform Manifold Approximation and Projection", 2018.

    >>> import numpy as np
    >>> from memlab.cluster import project
    >>> project(np.eye(3), n_components=2).shape
    (3, 2)
    """
    if n_components < 1 or n_neighbors < 2 or not 0 <= min_dist <= 1:
        raise DataError(
            f"n_components={n_components}, n_neighbors={n_neighbors}, min_dist={min_dist}: "
            "expected n_components ≥ 1, "
            "n_neighbors ≥ 2 and min_dist between 0 and 1"
        )
    unit_vectors = check_and_scale_to_unit(embeddings)
    if len(unit_vectors) > n_components + 2 and (unit_vectors != unit_vectors[0]).any():
        settings = _LayoutSettings(
            hashlib.blake2b(unit_vectors.data).digest(),
            n_components,
            min(n_neighbors, len(unit_vectors) - 1),
            min_dist,
            seed,
        )
        return _kept_or_new_layout(unit_vectors, settings)
    centred_rows = unit_vectors - unit_vectors.mean(axis=0) if len(unit_vectors) else unit_vectors
    left_vectors, singular_values, _ = np.linalg.svd(centred_rows, full_matrices=False)
    coordinates = np.zeros((len(unit_vectors), n_components), np.float32)
    coordinates[:, : len(singular_values)] = (left_vectors * singular_values)[:, :n_components]
    return coordinates


def check_and_scale_to_unit(embeddings: np.ndarray) -> np.ndarray:
    """Check embeddings and scale their rows to unit length: (n, d) float32.

    All-zero rows stay zero.

    :raises DataError: when the array is not (n, d) or holds NaN or infinity.
    """
    float_rows = np.asarray(embeddings, dtype=np.float64)
    if float_rows.ndim != 2 or (len(float_rows) and float_rows.shape[1] == 0):
        raise DataError(
            f"embeddings have shape {float_rows.shape}; expected (number of texts, dimensions)"
        )
    if len(invalid_rows := np.flatnonzero(~np.isfinite(float_rows).all(axis=1))):
        raise DataError(
            f"embeddings: row {invalid_rows[0]} of {len(float_rows)} holds NaN or infinity; encode "
            "it again or leave it out"
        )
    row_norms = np.linalg.norm(float_rows, axis=1, keepdims=True)
    return np.ascontiguousarray(
        float_rows / np.where(row_norms > 0, row_norms, 1), dtype=np.float32
    )


def _kept_or_new_layout(unit_vectors: np.ndarray, settings: _LayoutSettings) -> np.ndarray:
    layout = _kept_layouts.pop(settings, None)
    if layout is None:
        layout = _project_by_umap(unit_vectors, settings)
    # The one that was asked for last stands last, and the first one goes.
    _kept_layouts[settings] = layout
    if len(_kept_layouts) > _MOST_KEPT_LAYOUTS:
        del _kept_layouts[next(iter(_kept_layouts))]
    return layout.copy()


def _project_by_umap(unit_vectors: np.ndarray, settings: _LayoutSettings) -> np.ndarray:
    from threadpoolctl import threadpool_limits

    # Sums of two threads differ in their last bits, and UMAP makes another layout of them.
    with warnings.catch_warnings(), threadpool_limits(1):
        # UMAP warns about its single thread, the missing search index and spectral starts that it
        # repairs itself.
        warnings.simplefilter("ignore")
        with require_extra("clusters", "UMAP"):
            import umap

        say_if_step_takes_long(
            f"laying out {len(unit_vectors):,} points", len(unit_vectors) * _SECONDS_A_POINT
        )
        _enable_numba_cache(umap.umap_, "smooth_knn_dist", "compute_membership_strengths")
        _enable_numba_cache(umap.layouts, "_nb_optimize_layout_euclidean_single_epoch")
        indices, distances = _cached_nearest_neighbours(unit_vectors, settings)
        projected_points = umap.UMAP(
            n_components=settings.n_components,
            n_neighbors=settings.n_neighbors,
            min_dist=settings.min_dist,
            metric="cosine",
            n_jobs=1,
            random_state=settings.seed,
            precomputed_knn=(indices, distances, None),
        ).fit_transform(unit_vectors)
    return np.asarray(projected_points, dtype=np.float32)


def _cached_nearest_neighbours(unit_vectors: np.ndarray, settings: _LayoutSettings) -> Neighbours:
    """Find the nearest rows of each by cosine distance, itself first: (n, k) places and distances.

    Those that were found last are kept: two layouts of the same rows need them.
    """
    relevant_seed = settings.seed if len(unit_vectors) > _EXACT_UP_TO else 0
    cache_key = (settings.rows_digest, settings.n_neighbors, relevant_seed)
    neighbours = _last_neighbours.get(cache_key)
    if neighbours is None:
        neighbours = _search_nearest_neighbours(unit_vectors, settings.n_neighbors, settings.seed)
        _last_neighbours.clear()
        _last_neighbours[cache_key] = neighbours
    indices, distances = neighbours
    # UMAP writes into them.
    return Neighbours(indices.copy(), distances.copy())


def _search_nearest_neighbours(unit_vectors: np.ndarray, n_neighbors: int, seed: int) -> Neighbours:
    if len(unit_vectors) <= _EXACT_UP_TO:
        return _compare_all_pairs(unit_vectors, n_neighbors)
    from umap.umap_ import nearest_neighbors

    indices, distances, _ = nearest_neighbors(
        unit_vectors, n_neighbors, "cosine", {}, False, np.random.RandomState(seed), n_jobs=1
    )
    return Neighbours(indices, distances)


def _compare_all_pairs(unit_vectors: np.ndarray, n_neighbors: int) -> Neighbours:
    """Find the nearest rows of each exactly: places (n, k) and cosine distances (n, k) float32.

    They are those of scikit-learn's ``NearestNeighbors(metric="cosine", algorithm="brute")`` to the
    last bit, since a layout of others would be another one; its passes over all pairs at once take
    more than half of its time.
    """
    from sklearn.preprocessing import normalize

    n_rows = len(unit_vectors)
    normalised_rows = normalize(unit_vectors)
    rows_of_product = max(min(_BYTES_OF_PRODUCT // (8 * n_rows), n_rows), 1)
    neighbours = Neighbours(
        np.empty((n_rows, n_neighbors), np.int64), np.empty((n_rows, n_neighbors), np.float32)
    )
    for product_start in range(0, n_rows, rows_of_product):
        product_rows = normalised_rows[product_start : product_start + rows_of_product]
        distances = product_rows @ normalised_rows.T
        for block_start in range(0, len(distances), _ROWS_SORTED):
            block = distances[block_start : block_start + _ROWS_SORTED]
            np.subtract(1, block, out=block)
            np.clip(block, 0, 2, out=block)
            first_row = product_start + block_start
            # Only where one product holds all pairs does scikit-learn know a row by its place.
            if rows_of_product == n_rows:
                np.fill_diagonal(block[:, first_row:], 0)
            nearest = np.argpartition(block, n_neighbors - 1, axis=1)[:, :n_neighbors]
            nearest_distances = np.take_along_axis(block, nearest, axis=1)
            order = np.argsort(nearest_distances, axis=1)
            block_rows = slice(first_row, first_row + len(block))
            neighbours.indices[block_rows] = np.take_along_axis(nearest, order, axis=1)
            neighbours.distances[block_rows] = np.take_along_axis(nearest_distances, order, axis=1)
    return neighbours


def _enable_numba_cache(module: ModuleType, *function_names: str) -> None:
    """Let numba keep on disk what it compiles for UMAP: eight seconds that every process would pay
    again.
    """
    for function_name in function_names:
        # numba raises RuntimeError where neither the package nor the user's cache directory can be
        # written.
        with contextlib.suppress(RuntimeError, AttributeError):
            getattr(module, function_name).enable_caching()
