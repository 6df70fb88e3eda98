"""Names of the branches of merge trees: of those that part no further, the largest."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab import llm
from memlab.cluster.clusterers import NOISE
from memlab.cluster.names_by_model import name_clusters
from memlab.errors import warn_user

NAMED = 4
"""Branches of a tree that are named."""


def add_end_branch_names_and_warn(
    merge_tree_boxes: pl.DataFrame,
    turns: pl.DataFrame,
    turn_vectors: np.ndarray,
    leaf_places: np.ndarray,
    *,
    service: str | llm.Service | None = llm.RECORDED,
    language: str = "en",
) -> pl.DataFrame:
    """Name the largest branches of a tree that part no further, by a model or by their terms.

    Warns of those that a service was asked to name and did not.

    :param merge_tree_boxes: of one tree, from the top, see
        :meth:`memlab.cluster.MergeTree.branches`.
    :param turns: ``turn_id``, ``speaker``, ``text``, a row a turn.
    :param turn_vectors: (n, d) unit rows, what turns were joined by.
    :param leaf_places: (n,) the place of each turn in the tree, as ``first`` and ``end`` of boxes.
    :param service: see :func:`memlab.cluster.names_by_model.name_clusters`.
    :param language: of the texts, ISO 639-1.
    :returns: the boxes with ``name``: that of a branch stands at its lowest box, and is empty
        elsewhere.

    >>> import numpy as np
    >>> import polars as pl
    >>> from memlab.cluster import merge_tree
    >>> from memlab.evaluate.branch_names import add_end_branch_names_and_warn
    >>> noise = np.random.default_rng(0).normal(scale=0.1, size=(6, 2))
    >>> turn_vectors = np.repeat(np.eye(2), 3, axis=0) + noise
    >>> texts = ["my boat", "a boat", "the boat", "the train", "a train", "train"]
    >>> turns = pl.DataFrame({"turn_id": list("abcdef"), "speaker": "Mel", "text": texts})
    >>> tree = merge_tree(turn_vectors)
    >>> places = tree.spans[tree.leaf_of, 0]
    >>> sorted(add_end_branch_names_and_warn(tree.branches(3), turns, turn_vectors, places)["name"])
    ['', 'boat', 'train']
    """
    end_boxes = list_end_branches_largest_first(merge_tree_boxes)
    labels = np.full(len(leaf_places), NOISE)
    for cluster_label, (first_place, end_place) in enumerate(
        end_boxes.select("first", "end").iter_rows()
    ):
        labels[(leaf_places >= first_place) & (leaf_places < end_place)] = cluster_label
    named_clusters = name_clusters(
        turns, labels, turn_vectors, service=service, language=language, only=range(NAMED)
    )
    if named_clusters.note:
        warn_user(named_clusters.note)
    label_names = named_clusters.names()
    branch_names = dict(
        zip(end_boxes["branch"], map(label_names.get, range(end_boxes.height)), strict=True)
    )
    name_of_branch = pl.col("branch").replace_strict(
        branch_names, default=None, return_dtype=pl.String
    )
    is_lowest = pl.col("place") == pl.col("place").max().over("branch")
    placed_boxes = merge_tree_boxes.with_row_index("place")
    return placed_boxes.with_columns(
        name=pl.when(is_lowest).then(name_of_branch).fill_null("")
    ).drop("place")


def list_end_branches_largest_first(merge_tree_boxes: pl.DataFrame) -> pl.DataFrame:
    """Give the branches that part no further: ``branch``, ``first``, ``end`` at their widest, the
    largest first.
    """
    widest_spans = merge_tree_boxes.group_by("branch", maintain_order=True).agg(
        pl.col("first").min(), pl.col("end").max()
    )
    end_rows = list[tuple[int, int, int]]()
    for branch, first_place, end_place in widest_spans.iter_rows():
        is_inside = (pl.col("first") >= first_place) & (pl.col("end") <= end_place)
        if widest_spans.filter(is_inside).height == 1:
            end_rows.append((branch, first_place, end_place))
    end_rows.sort(key=lambda row: (row[1] - row[2], row[1]))
    return pl.DataFrame(end_rows, schema=["branch", "first", "end"], orient="row")
