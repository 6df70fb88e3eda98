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

from memlab.cluster.clusterers import view_rows_as_comparable_items
from memlab.cluster.umap_projection import check_and_scale_to_unit
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
        n_leaves = self.n_leaves
        node_sizes = np.zeros(n_leaves + len(self.children), np.int64)
        node_sizes[:n_leaves] = np.bincount(self.leaf_of, minlength=n_leaves)
        for merge_number, (left_child, right_child) in enumerate(self.children.tolist()):
            node_sizes[n_leaves + merge_number] = node_sizes[left_child] + node_sizes[right_child]
        return node_sizes

    @cached_property
    def parents(self) -> np.ndarray:
        """The node above each: (2m − 1,), −1 for the one that holds all."""
        n_leaves = self.n_leaves
        parent_nodes = np.full(n_leaves + len(self.children), -1)
        parent_nodes[self.children] = n_leaves + np.arange(len(self.children))[:, None]
        return parent_nodes

    @cached_property
    def spans(self) -> np.ndarray:
        """First place and end of the leaves of each node, from left to right: (2m − 1, 2)."""
        n_leaves = self.n_leaves
        leaves_below = np.ones(n_leaves + len(self.children), np.int64)
        for merge_number, (left_child, right_child) in enumerate(self.children.tolist()):
            leaves_below[n_leaves + merge_number] = (
                leaves_below[left_child] + leaves_below[right_child]
            )
        first_leaves = np.zeros(len(leaves_below), np.int64)
        for merge_number, (left_child, right_child) in reversed(
            [*enumerate(self.children.tolist())]
        ):
            first_leaves[left_child] = first_leaves[n_leaves + merge_number]
            first_leaves[right_child] = first_leaves[left_child] + leaves_below[left_child]
        return np.stack([first_leaves, first_leaves + leaves_below], axis=1)

    @cached_property
    def _highest_merge_by_window(self) -> np.ndarray:
        """The highest merge between leaves side by side, over 1, 2, 4, … of these gaps: (levels, m
        − 1).
        """
        n_leaves = self.n_leaves
        leaf_spans = self.spans
        merge_nodes = n_leaves + np.arange(len(self.children))
        highest_merges = np.zeros(len(self.children), np.int64)
        highest_merges[leaf_spans[self.children[:, 1], 0] - 1] = merge_nodes
        level_table = [highest_merges]
        step_width = 1
        while 2 * step_width <= len(highest_merges):
            wider_level = level_table[-1].copy()
            wider_level[:-step_width] = np.maximum(
                level_table[-1][:-step_width], level_table[-1][step_width:]
            )
            level_table.append(wider_level)
            step_width *= 2
        return np.stack(level_table)

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
        leaf_spans = self.spans
        row_leaves = self.leaf_of[rows]
        leaf_places = leaf_spans[row_leaves, 0]
        first_places = leaf_places.min(axis=-1)
        last_places = leaf_places.max(axis=-1)
        common_nodes = np.asarray(row_leaves[..., 0])
        are_apart = last_places > first_places
        place_gaps = (last_places - first_places)[are_apart]
        if len(place_gaps):
            level_of_gap = np.frexp(place_gaps)[1] - 1
            window_start = first_places[are_apart]
            window_end = last_places[are_apart] - (1 << level_of_gap)
            common_nodes[are_apart] = np.maximum(
                self._highest_merge_by_window[level_of_gap, window_start],
                self._highest_merge_by_window[level_of_gap, window_end],
            )
        return common_nodes

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
        branch_nodes = self.leaf_of[rows].copy()
        root_node = len(self.sizes) - 1
        is_too_small = (self.sizes[branch_nodes] < least) & (branch_nodes != root_node)
        while is_too_small.any():
            branch_nodes[is_too_small] = self.parents[branch_nodes[is_too_small]]
            is_too_small = (self.sizes[branch_nodes] < least) & (branch_nodes != root_node)
        return branch_nodes

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
        n_leaves = self.n_leaves
        leaf_spans = self.spans
        large_nodes = np.flatnonzero(leaf_spans[:, 1] - leaf_spans[:, 0] >= least)[::-1]
        branch_numbers, branch_levels = np.zeros((2, len(leaf_spans)), np.int64)
        n_branches = 1
        for parent_node in large_nodes.tolist():
            large_children = [
                child_node
                for child_node in self.children[parent_node - n_leaves]
                if child_node in large_nodes
            ]
            branch_numbers[large_children], branch_levels[large_children] = (
                branch_numbers[parent_node],
                branch_levels[parent_node],
            )
            if len(large_children) == 2:
                branch_numbers[large_children] = n_branches, n_branches + 1
                branch_levels[large_children] = branch_levels[parent_node] + 1
                n_branches += 2
        nodes_above = np.minimum(self.parents[large_nodes], len(leaf_spans) - 1)
        nodes_above[nodes_above < 0] = len(leaf_spans) - 1
        return pl.DataFrame(
            {
                "node": large_nodes,
                "first": leaf_spans[large_nodes, 0],
                "end": leaf_spans[large_nodes, 1],
                "low": self.height_of(large_nodes),
                "high": self.height_of(nodes_above),
                "branch": branch_numbers[large_nodes],
                "level": branch_levels[large_nodes],
            }
        )

    def is_below(self, node: int) -> np.ndarray:
        """Say of each row whether it hangs under a node: (n,) bool."""
        first_place, end_place = self.spans[node]
        row_places = self.spans[self.leaf_of, 0]
        return np.asarray((row_places >= first_place) & (row_places < end_place))


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
    unit_vectors = check_and_scale_to_unit(vectors)
    if not len(unit_vectors):
        raise DataError("a merge tree needs at least one row; there is none")
    # In an order of their own: ties are broken by position.
    _, first_copies, leaf_of = np.unique(
        view_rows_as_comparable_items(unit_vectors), return_index=True, return_inverse=True
    )
    if len(first_copies) > MOST_ROWS:
        raise DataError(
            f"{len(first_copies):,} different rows; a merge tree compares all pairs, and takes at "
            f"most {MOST_ROWS:,}: take fewer, such as the turns of one scope"
        )
    if len(first_copies) == 1:
        return MergeTree(np.zeros((0, 2), np.int64), np.zeros(0), leaf_of)
    # Half the squared distance of unit rows is 1 − cosine, and a row of zeros is as far from all.
    distances = pdist(unit_vectors[first_copies].astype(np.float64), "sqeuclidean") / 2
    joined_pairs = join(distances, linkage)
    return MergeTree(joined_pairs[:, :2].astype(np.int64), joined_pairs[:, 2], leaf_of)


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
        scope_name: merge_tree(vectors[span_start:span_end], linkage=linkage)
        for scope_name, (span_start, span_end) in spans.items()
    }
