"""Merge trees: rows joined two groups at a time until all are one, and the branches in which rows
lie.

A cut through such a tree is a clustering; the tree itself needs no number of clusters and no least
size. Average linkage joins the two groups whose members are the most similar on average, single
linkage those with the most similar two members, which makes long chains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl

from memlab.cluster.clusterers import as_items
from memlab.cluster.projection import unit_rows
from memlab.errors import DataError, check_at_least

Linkage = Literal["average", "single"]
LINKAGES: tuple[Linkage, ...] = ("average", "single")
MOST_ROWS = 10_000
"""Of a tree: all pairs of different rows are compared, 400 MB of distances for so many."""


@dataclass(frozen=True, eq=False)
class MergeTree:
    """Rows, joined two groups at a time until all are one.

    Nodes are numbered as SciPy numbers them: the m different rows first, then the merges from the
    nearest to the farthest; the last one holds all rows. Equal rows are one leaf.

    :param children: (m − 1, 2) the nodes that each merge joins.
    :param heights: (m − 1,) distance at which it does, in ascending order.
    :param leaf_of: (n,) the leaf of each row.
    """

    children: np.ndarray
    heights: np.ndarray
    leaf_of: np.ndarray

    @property
    def n_leaves(self) -> int:
        """How many different rows there are."""
        return len(self.children) + 1

    @cached_property
    def sizes(self) -> np.ndarray:
        """How many rows each node holds, copies counted: (2m − 1,)."""
        leaves = self.n_leaves
        sizes = np.zeros(leaves + len(self.children), np.int64)
        sizes[:leaves] = np.bincount(self.leaf_of, minlength=leaves)
        for merge, (left, right) in enumerate(self.children.tolist()):
            sizes[leaves + merge] = sizes[left] + sizes[right]
        return sizes

    @cached_property
    def parents(self) -> np.ndarray:
        """The node above each: (2m − 1,), −1 for the one that holds all."""
        leaves = self.n_leaves
        parents = np.full(leaves + len(self.children), -1)
        parents[self.children] = leaves + np.arange(len(self.children))[:, None]
        return parents

    @cached_property
    def spans(self) -> np.ndarray:
        """First place and end of the leaves of each node, from left to right: (2m − 1, 2)."""
        leaves = self.n_leaves
        below = np.ones(leaves + len(self.children), np.int64)
        for merge, (left, right) in enumerate(self.children.tolist()):
            below[leaves + merge] = below[left] + below[right]
        first = np.zeros(len(below), np.int64)
        for merge, (left, right) in reversed([*enumerate(self.children.tolist())]):
            first[left] = first[leaves + merge]
            first[right] = first[left] + below[left]
        return np.stack([first, first + below], axis=1)

    @cached_property
    def _joints(self) -> np.ndarray:
        """The highest merge between leaves side by side, over 1, 2, 4, … of these gaps: (levels, m
        − 1).
        """
        leaves, spans = self.n_leaves, self.spans
        merges = leaves + np.arange(len(self.children))
        highest = np.zeros(len(self.children), np.int64)
        highest[spans[self.children[:, 1], 0] - 1] = merges
        levels, step = [highest], 1
        while 2 * step <= len(highest):
            wider = levels[-1].copy()
            wider[:-step] = np.maximum(levels[-1][:-step], levels[-1][step:])
            levels.append(wider)
            step *= 2
        return np.stack(levels)

    def lowest_common(self, rows: np.ndarray) -> np.ndarray:
        """Give the lowest node that holds all rows of a set.

        :param rows: (…, k) places of rows, k of each set.
        :returns: (…) nodes; of copies of one row its leaf.

        >>> import numpy as np
        >>> from memlab.cluster import merge_tree
        >>> tree = merge_tree(np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]))
        >>> tree.lowest_common(np.array([[0, 1], [0, 2]])).tolist()
        [3, 4]
        """
        spans, leaves = self.spans, self.leaf_of[rows]
        places = spans[leaves, 0]
        first, last = places.min(axis=-1), places.max(axis=-1)
        common = np.asarray(leaves[..., 0])
        apart = last > first
        gaps = (last - first)[apart]
        if len(gaps):
            level = np.frexp(gaps)[1] - 1
            begin, end = first[apart], last[apart] - (1 << level)
            common[apart] = np.maximum(self._joints[level, begin], self._joints[level, end])
        return common

    def share_below(self, nodes: np.ndarray) -> np.ndarray:
        """Give the share of all rows that hang under nodes: (…) from (…)."""
        return np.asarray(self.sizes[nodes] / len(self.leaf_of))

    def height_of(self, nodes: np.ndarray) -> np.ndarray:
        """Give the distance at which nodes are joined: (…) from (…), 0 for leaves."""
        return np.concatenate([np.zeros(self.n_leaves), self.heights])[nodes]

    def branches_above(self, rows: np.ndarray, least: int) -> np.ndarray:
        """Go up from rows to the lowest node that holds so many rows.

        :param rows: (k,) places of rows.
        :param least: rows of a branch; where the tree has fewer, all of it is the branch.
        :returns: (k,) nodes.
        :raises DataError: when ``least`` is below 1.
        """
        check_at_least(1, least=least)
        nodes = self.leaf_of[rows].copy()
        root = len(self.sizes) - 1
        climbing = (self.sizes[nodes] < least) & (nodes != root)
        while climbing.any():
            nodes[climbing] = self.parents[nodes[climbing]]
            climbing = (self.sizes[nodes] < least) & (nodes != root)
        return nodes

    def branches(self, least: int) -> pl.DataFrame:
        """Give the tree as it is drawn, without what has fewer leaves: a box a node.

        A box is as wide as the node has leaves, and reaches from the distance at which these are
        joined up to that at which the node is joined with another. Where a node of fewer leaves
        falls off, the branch goes on; where both sides have enough, two branches begin.

        :param least: leaves of a node.
        :returns: ``node``, ``first`` and ``end`` (places of its leaves), ``low`` and ``high``
            (distances; of the uppermost box both the same), ``branch`` (numbers from 0, from the
            top) and ``level`` (splits above it); no rows where the tree has fewer leaves.
        :raises DataError: when ``least`` is below 2.
        """
        check_at_least(2, least=least)
        leaves, spans = self.n_leaves, self.spans
        large = np.flatnonzero(spans[:, 1] - spans[:, 0] >= least)[::-1]
        number, level = np.zeros((2, len(spans)), np.int64)
        begun = 1
        for node in large.tolist():
            children = [child for child in self.children[node - leaves] if child in large]
            number[children], level[children] = number[node], level[node]
            if len(children) == 2:
                number[children] = begun, begun + 1
                level[children] = level[node] + 1
                begun += 2
        above = np.minimum(self.parents[large], len(spans) - 1)
        above[above < 0] = len(spans) - 1
        return pl.DataFrame(
            {
                "node": large,
                "first": spans[large, 0],
                "end": spans[large, 1],
                "low": self.height_of(large),
                "high": self.height_of(above),
                "branch": number[large],
                "level": level[large],
            }
        )

    def is_below(self, node: int) -> np.ndarray:
        """Say of each row whether it hangs under a node: (n,) bool."""
        first, end = self.spans[node]
        places = self.spans[self.leaf_of, 0]
        return np.asarray((places >= first) & (places < end))


def merge_tree(vectors: np.ndarray, *, linkage: Linkage = "average") -> MergeTree:
    """Join rows by cosine distance, two groups at a time, until all are one.

    Equal rows are one leaf, however many they are. The tree does not depend on the order of rows,
    but for which child is called the first.

    :param vectors: (n, d) finite numbers, n ≥ 1; rows are scaled to unit length.
    :param linkage: ``average`` joins the groups with the least mean distance between their members
        (UPGMA), ``single`` those with the least distance between any two.
    :raises DataError: when the array is not (n, d), has no row, holds NaN or infinity or more than
        10,000 different rows, or for another linkage.

    Sokal and Michener, "A statistical method for evaluating systematic relationships", 1958;
    by ``scipy.cluster.hierarchy.linkage``.

    >>> import numpy as np
    >>> from memlab.cluster import merge_tree
    >>> tree = merge_tree(np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.0, 1.0]]))
    >>> tree.children.tolist(), tree.heights.round(2).tolist(), tree.sizes.tolist()
    ([[1, 2], [0, 3]], [0.2, 0.7], [2, 1, 1, 2, 4])
    """
    from scipy.cluster.hierarchy import linkage as join
    from scipy.spatial.distance import pdist

    if linkage not in LINKAGES:
        raise DataError(f"linkage is {linkage!r}; choose from {', '.join(LINKAGES)}")
    rows = unit_rows(vectors)
    if not len(rows):
        raise DataError("a merge tree needs at least one row; there is none")
    # In an order of their own: ties are broken by position.
    _, first, leaf_of = np.unique(as_items(rows), return_index=True, return_inverse=True)
    if len(first) > MOST_ROWS:
        raise DataError(
            f"{len(first):,} different rows; a merge tree compares all pairs, and takes at most "
            f"{MOST_ROWS:,}: take fewer, such as the turns of one scope"
        )
    if len(first) == 1:
        return MergeTree(np.zeros((0, 2), np.int64), np.zeros(0), leaf_of)
    # Half the squared distance of unit rows is 1 − cosine, and a row of zeros is as far from all.
    distances = pdist(rows[first].astype(np.float64), "sqeuclidean") / 2
    joined = join(distances, linkage)
    return MergeTree(joined[:, :2].astype(np.int64), joined[:, 2], leaf_of)


def scope_trees(
    vectors: np.ndarray, spans: Mapping[str, tuple[int, int]], *, linkage: Linkage = "average"
) -> dict[str, MergeTree]:
    """Make the merge tree of the turns of each scope; see :func:`merge_tree`.

    :param vectors: (n, d) finite numbers, such as ``bench.documents("turn").speaker_centred()``: as
        they are encoded, turns are joined by who says them.
    :param spans: first row and end of each scope, as ``bench.documents("turn").spans``.

    >>> import numpy as np
    >>> from memlab.cluster import scope_trees
    >>> scope_trees(np.eye(3), {"ann": (0, 2), "ben": (2, 3)})["ann"].sizes.tolist()
    [1, 1, 2]
    """
    return {
        scope: merge_tree(vectors[first:end], linkage=linkage)
        for scope, (first, end) in spans.items()
    }
