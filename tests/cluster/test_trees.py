"""Merge trees by hand and by brute force, HDBSCAN with all that it knows, and where evidence meets in a tree."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

from memlab.cluster import (
    NOISE,
    MergeTree,
    density_clusters,
    hdbscan_labels,
    merge_tree,
    observed_and_null_merges,
    scope_trees,
)
from memlab.cluster.hdbscan_clusters import place_among_known_rows
from memlab.cluster.merge_trees import LINKAGES
from memlab.errors import DataError


def leaves_below(tree: MergeTree) -> list[set[int]]:
    """Give the leaves of each node, as sets."""
    below = [{leaf} for leaf in range(tree.n_leaves)]
    for left, right in tree.children.tolist():
        below.append(below[left] | below[right])
    return below


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 33])
def test_the_lowest_common_node_is_the_first_that_holds_the_set(n: int, linkage: str) -> None:
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n, 6))
    rows = np.vstack([rows, rows[: n // 2]])
    tree = merge_tree(rows, linkage=linkage)
    below = leaves_below(tree)
    for k in (1, 2, 4):
        sets = rng.integers(0, len(rows), (40, k))
        wanted = [
            next(node for node, own in enumerate(below) if own >= set(tree.leaf_of[each]))
            for each in sets
        ]
        assert tree.lowest_common(sets).tolist() == wanted
    counts = np.bincount(tree.leaf_of)
    assert tree.sizes.tolist() == [sum(counts[leaf] for leaf in own) for own in below]
    for node, own in enumerate(below):
        assert set(tree.leaf_of[tree.is_below(node)]) == own
        assert np.ptp(tree.spans[node]) == len(own)


def test_average_and_single_linkage_by_hand() -> None:
    """Directions at 0, 20, 45 and 75 degrees: the chain grows one by one, the average joins two pairs."""
    angles = np.radians([0, 20, 45, 75])
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    distance = 1 - np.cos(angles[:, None] - angles)
    average, single = (merge_tree(rows, linkage=linkage) for linkage in LINKAGES)
    assert single.sizes.tolist() == [1, 1, 1, 1, 2, 3, 4]
    np.testing.assert_allclose(single.heights, distance[[0, 1, 2], [1, 2, 3]], atol=1e-6)
    assert average.sizes.tolist() == [1, 1, 1, 1, 2, 2, 4]
    np.testing.assert_allclose(average.heights[-1], distance[:2, 2:].mean(), atol=1e-6)
    assert average.height_of(average.lowest_common(np.array([2, 3]))) == average.heights[1]
    assert average.height_of(average.leaf_of[0]) == 0


def test_copies_are_one_leaf_and_count_in_every_size() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(12, 5))
    repeated = np.vstack([rows, np.tile(rows[4], (9, 1))])
    once, tree = merge_tree(rows), merge_tree(repeated)
    assert tree.children.tolist() == once.children.tolist()
    np.testing.assert_array_equal(tree.heights, once.heights)
    assert tree.sizes[tree.leaf_of[4]] == 10
    assert tree.sizes[-1] == 21
    assert tree.lowest_common(np.array([4, 15])) == tree.leaf_of[4]
    mixed = rng.permutation(len(repeated))
    again = merge_tree(repeated[mixed])
    assert again.children.tolist() == tree.children.tolist(), "wherever the rows stand"
    np.testing.assert_array_equal(again.leaf_of, tree.leaf_of[mixed])


def test_branches_are_the_lowest_with_so_many_rows() -> None:
    rows = np.random.default_rng(4).normal(size=(30, 5))
    tree = merge_tree(rows)
    below = leaves_below(tree)
    for least in (1, 2, 7, 30, 99):
        for row, node in enumerate(tree.branches_above(np.arange(30), least).tolist()):
            holding = [each for each, own in enumerate(below) if tree.leaf_of[row] in own]
            large = [each for each in holding if len(below[each]) >= least]
            assert node == min(large, default=len(below) - 1)
    with pytest.raises(DataError, match="least is 0"):
        tree.branches_above(np.arange(3), 0)


def test_what_has_no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="at least one row"):
        merge_tree(np.zeros((0, 3)))
    with pytest.raises(DataError, match="linkage is 'ward'; choose from average, single"):
        merge_tree(np.eye(3), linkage="ward")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="row 1 of 3 holds NaN"):
        merge_tree(np.array([[1.0, 0], [np.nan, 0], [0, 1]]))
    monkeypatch.setattr("memlab.cluster.merge_trees.MOST_ROWS", 4)
    assert merge_tree(np.vstack([np.eye(4), np.eye(4)])).sizes[-1] == 8
    with pytest.raises(DataError, match=r"5 different rows; .* at most 4"):
        merge_tree(np.eye(5))


def groups(*sizes: int, width: int = 16, seed: int = 0) -> np.ndarray:
    """Directions around well-separated axes."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    return np.eye(width)[truth] + rng.normal(scale=0.08, size=(len(truth), width))


@pytest.mark.parametrize("n_components", [None, 3])
@pytest.mark.parametrize("least", [2, 3, 5, 8])
@pytest.mark.slow
def test_labels_are_those_of_scikit_learn_and_every_number_is_there(
    least: int, n_components: int | None
) -> None:
    """With copies of rows in and outside dense groups, more of them than a cluster has."""
    rows = groups(40, 25, 15)
    lone = np.tile(-np.eye(16)[0], (9, 1))
    rows = np.vstack([rows, np.tile(rows[50], (30, 1)), lone, np.zeros((2, 16))])
    given = {"min_cluster_size": least, "n_components": n_components}
    found = density_clusters(rows, **given)
    labels = hdbscan_labels(rows, **given)
    np.testing.assert_array_equal(found.labels, labels)
    assert found.n_clusters == labels.max() + 1
    assert found.memberships.shape == (len(rows), found.n_clusters)
    for values in (found.strengths, found.memberships, found.outlier_scores):
        assert np.isfinite(values).all()
        assert values.min() >= 0
        assert values.max() <= 1 + 1e-9
    assert (found.strengths[labels == NOISE] == 0).all()
    assert (found.strengths[labels != NOISE] > 0).all()
    assert found.memberships.sum(axis=1).max() <= 1 + 1e-9
    for same in (range(80, 110), range(110, 119)):
        assert len({found.outlier_scores[row] for row in same}) == 1
    assert found.merges.sizes[-1] == len(rows)
    root = found.merges.n_leaves
    assert found.condensed.filter(child=root).is_empty()
    leaves = found.condensed.filter(pl.col("child") < root)["child"]
    assert sorted(leaves) == list(range(root)), "every leaf falls out of the tree once"


def test_the_middle_of_a_group_is_firm_and_what_lies_between_belongs_to_both() -> None:
    rows = groups(30, 30, seed=2)
    between = np.eye(16)[:1] + np.eye(16)[1:2]
    found = density_clusters(np.vstack([rows, between]), n_components=None)
    assert set(found.labels[:30]) - {NOISE} == {found.labels[0]}
    other = 1 - found.labels[0]
    assert found.memberships[-1, other] > found.memberships[:30, other].max()
    assert found.strengths[-1] < np.median(found.strengths)
    assert found.outlier_scores[-1] > 2 * np.median(found.outlier_scores)
    centre = np.argmax(rows[:30] @ rows[:30].mean(axis=0))
    outside = np.argmin(rows[:30] @ rows[:30].mean(axis=0))
    assert found.outlier_scores[centre] < found.outlier_scores[outside]


@pytest.mark.parametrize("n_components", [None, 3])
def test_new_rows_are_placed_in_the_clusters_of_their_group(n_components: int | None) -> None:
    rows = groups(40, 30, 20, seed=5)
    found = density_clusters(rows, n_components=n_components, min_cluster_size=15)
    placed = found.place(3 * np.eye(16)[:3])
    for axis, label in enumerate(placed.labels):
        of_group = found.labels[np.repeat([0, 1, 2], [40, 30, 20]) == axis]
        assert label in set(of_group) - {NOISE}
        assert placed.memberships[axis].argmax() == label
    assert (placed.strengths > 0).all()
    one = found.place(np.eye(16)[1:2])
    np.testing.assert_allclose(one.memberships[0], placed.memberships[1])
    with pytest.raises(DataError, match=r"width 5 .* width 16"):
        found.place(np.ones((1, 5)))
    assert found.place(np.zeros((0, 16))).labels.shape == (0,)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9])
def test_few_rows_equal_ones_and_no_cluster(n: int) -> None:
    for rows in (np.random.default_rng(n).normal(size=(n, 8)), np.ones((n, 8))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = density_clusters(rows)
            placed = found.place(np.eye(8)[:2])
        np.testing.assert_array_equal(found.labels, hdbscan_labels(rows))
        assert found.merges.sizes[-1] == n
        assert placed.labels.tolist() == [NOISE, NOISE]
        assert placed.memberships.shape == (2, found.n_clusters)
    copies = density_clusters(np.ones((n, 8)))
    assert copies.n_clusters == (1 if n >= 5 else 0)
    assert set(copies.strengths) == {1.0 if n >= 5 else 0.0}
    with pytest.raises(DataError, match="at least one row"):
        density_clusters(np.zeros((0, 3)))
    with pytest.raises(DataError, match="min_cluster_size is 1"):
        density_clusters(np.eye(3), min_cluster_size=1)


def test_what_the_two_libraries_do_differently_at_the_same_parameters() -> None:
    """``docs/evaluation/libraries.md`` says so: scikit-learn counts the row itself as its neighbour."""
    import hdbscan
    import sklearn.cluster

    rows = np.random.default_rng(1).normal(size=(150, 2))
    how = {"min_cluster_size": 5, "cluster_selection_method": "leaf"}
    theirs = {"algorithm": "prims_kdtree", **how}
    ours = sklearn.cluster.HDBSCAN(min_samples=4, copy=True, **how).fit_predict(rows)
    same = hdbscan.HDBSCAN(min_samples=3, **theirs).fit_predict(rows)
    other = hdbscan.HDBSCAN(min_samples=4, **theirs).fit_predict(rows)
    np.testing.assert_array_equal(ours, same)
    assert (ours != other).any()
    for model in (
        sklearn.cluster.HDBSCAN(min_samples=4, copy=True, **how),
        hdbscan.HDBSCAN(min_samples=3, **theirs),
    ):
        assert set(model.fit_predict(np.ones((20, 2)))) == {NOISE}, "equal rows are noise in both"
    few = rows[:3]
    with pytest.raises(ValueError, match="min_samples"):
        sklearn.cluster.HDBSCAN(min_samples=4, copy=True, **how).fit(few)
    assert hdbscan.HDBSCAN(min_samples=4, **theirs).fit_predict(few).tolist() == [NOISE] * 3
    repeated = np.vstack([rows, np.tile(rows[0], (9, 1))])
    model = hdbscan.HDBSCAN(min_samples=3, prediction_data=True, **theirs).fit(repeated)
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        soft = hdbscan.all_points_membership_vectors(model)
    assert np.isnan(soft).any(), "copies of a row have no memberships: each is clustered once here"


def test_a_row_is_placed_where_its_nearest_rows_are() -> None:
    known = np.eye(4)
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    placed = place_among_known_rows(np.array([[0.0, 1.0, 0.0, 0.0]]), known, points)
    weights = np.exp(-np.array([1.0, 0.0, 1.0, 1.0]) / 0.75)
    np.testing.assert_allclose(placed[0], weights @ points / weights.sum())


def turns_of(scope: str, n: int, **columns: list[str]) -> pl.DataFrame:
    ids = [f"{scope}{i}" for i in range(n)]
    return pl.DataFrame({"scope": [scope] * n, "turn_id": ids, **columns})


def test_evidence_meets_where_it_does_and_random_turns_as_often_as_counted() -> None:
    """Two groups of four: a pair of one group meets within half of the memory, one of both in all of it."""
    rows = groups(4, 4, width=8, seed=7)
    turns = pl.concat([turns_of("a", 8), turns_of("b", 8)])
    trees = scope_trees(np.vstack([rows, rows]), {"a": (0, 8), "b": (8, 16)})
    sets = pl.DataFrame(
        {"query_id": ["q", "q", "r", "r", "s", "p", "p"],
         "turn_id": ["a0", "a5", "b0", "b1", "a3", "a6", "a6"]}
    )  # fmt: skip
    observed, null = observed_and_null_merges(sets, trees, turns, draws=4000)
    # Scope by scope; of one turn, even listed twice, nothing can meet.
    assert observed[0] == 1.0
    assert np.isnan(observed[[1, 2]]).all()
    assert observed[3] <= 0.5
    assert null.shape == (4000, 4)
    assert (null[:, 0] == 1).mean() == pytest.approx(16 / 28, abs=0.03)
    assert np.isnan(null[:, 1]).all()
    again, _ = observed_and_null_merges(sets, trees, turns, draws=3)
    np.testing.assert_array_equal(again, observed)


def test_random_turns_of_the_same_speaker_and_session_alone_stand_for_a_turn() -> None:
    rows = groups(4, 4, width=8, seed=7)
    speaker = ["Ana"] * 4 + ["Mika"] * 4
    turns = turns_of("a", 8, speaker=speaker, session_id=["s", "s", "t", "t"] * 2)
    trees = scope_trees(rows, {"a": (0, 8)})
    sets = pl.DataFrame({"query_id": ["q", "q"], "turn_id": ["a0", "a2"]})
    free = observed_and_null_merges(sets, trees, turns, draws=2000)[1]
    assert 0 < (free == 1).mean() < 1
    within = observed_and_null_merges(sets, trees, turns, within=["speaker"], draws=2000)[1]
    assert (within <= 0.5).all(), "all that Ana says lies in one half"
    both = ["speaker", "session_id"]
    stricter = observed_and_null_merges(sets, trees, turns, within=both, draws=2000)[1]
    tree = trees["a"]
    pairs = np.array([[i, j] for i in (0, 1) for j in (2, 3)])
    wanted = tree.share_below(tree.lowest_common(pairs)).mean()
    assert stricter.mean() == pytest.approx(wanted, abs=0.02)


def test_turns_trees_and_sets_that_do_not_fit() -> None:
    turns, trees = turns_of("a", 4), scope_trees(np.eye(4), {"a": (0, 4)})
    sets = pl.DataFrame({"query_id": ["q", "q"], "turn_id": ["a0", "a9"]})
    with pytest.raises(DataError, match="turn 'a9' is not listed"):
        observed_and_null_merges(sets, trees, turns)
    with pytest.raises(DataError, match="listed twice"):
        observed_and_null_merges(sets, trees, pl.concat([turns, turns]))
    for wrong in ({}, {"a": merge_tree(np.eye(3))}):
        with pytest.raises(DataError, match="none of the 4 turns of scope 'a'"):
            observed_and_null_merges(sets.head(1), wrong, turns)
    observed, null = observed_and_null_merges(sets.clear(), trees, turns)
    assert (observed.shape, null.shape) == ((0,), (1000, 0))
