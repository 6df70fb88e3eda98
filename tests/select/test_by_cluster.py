"""Round robin over clusters."""

from __future__ import annotations

import warnings
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import DataError
from memlab.records import Run
from memlab.retrieve import Bench
from memlab.select import by_cluster
from memlab.select.clusters import round_robin

Make = Callable[..., tuple[Run, Bench]]


def taken_in_turn(labels: list[int]) -> list[int]:
    """The same in plain Python: queues, and in each round one from every queue that is not empty."""
    queues: dict[int, deque[int]] = defaultdict(deque)
    for place, label in enumerate(labels):
        queues[label].append(place)
    order: list[int] = []
    while any(queues.values()):
        order += sorted(queue.popleft() for queue in queues.values() if queue)
    return order


@given(st.lists(st.integers(-1, 6), max_size=40))
def test_round_robin(labels: list[int]) -> None:
    order = round_robin(np.array(labels, dtype=np.int64)).tolist()
    assert order == taken_in_turn(labels)
    assert sorted(order) == list(range(len(labels)))
    for label in set(labels):
        within = [place for place in order if labels[place] == label]
        assert within == sorted(within)
    held, start = [labels[place] for place in order], 0
    while start < len(held):  # a round has every group that is not used up, and each once
        left = set(held[start:])
        assert set(held[start : start + len(left)]) == left
        start += len(left)


def test_groups_may_have_any_number() -> None:
    assert round_robin(np.array([7, 7, -1, 7, 3])).tolist() == round_robin(np.array([0, 0, 1, 0, 2])).tolist()


@pytest.mark.parametrize("candidates", [1, 7, 50])
def test_one_group_changes_nothing(random_run: Make, candidates: int) -> None:
    run, bench = random_run(40, 3)
    assert by_cluster(run, bench, n_clusters=1, candidates=candidates).frame["doc_id"].equals(run.frame["doc_id"])


def test_as_many_groups_as_candidates_change_nothing(random_run: Make) -> None:
    run, bench = random_run(40, 1)
    assert by_cluster(run, bench, n_clusters=100).frame["doc_id"].equals(run.frame["doc_id"])


@pytest.mark.parametrize(("n_clusters", "candidates", "copies"), [(3, 20, 1), (10, 50, 2), (10, 50, 20), (40, 15, 5)])
def test_a_reordering_of_the_candidates_alone(random_run: Make, n_clusters: int, candidates: int, copies: int) -> None:
    run, bench = random_run(40, 4, copies=copies)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # fewer distinct points than clusters makes k-means warn
        got = by_cluster(run, bench, n_clusters=n_clusters, candidates=candidates)
    assert got.frame.select("query_id", "rank").equals(run.frame.select("query_id", "rank"))
    for (query,), rows in got.frame.group_by("query_id"):
        before = run.frame.filter(pl.col("query_id") == query)["doc_id"].to_list()
        after = rows["doc_id"].to_list()
        assert after[0] == before[0]
        assert sorted(after[:candidates]) == sorted(before[:candidates])
        assert after[candidates:] == before[candidates:]


def test_the_best_of_each_clear_group_come_first(random_run: Make) -> None:
    run, bench = random_run(40, 1, dim=40)
    group = np.repeat([0, 1, 2, 3], 10)
    noise = np.random.default_rng(0).standard_normal((40, 40)).astype(np.float32) * 0.001
    vectors = np.eye(40, dtype=np.float32)[group] + noise
    clear = replace(bench, turn_vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    documents = clear.documents("turn")
    before = group[documents.at(run.frame["doc_id"])]
    got = by_cluster(run, clear, n_clusters=4).frame["doc_id"]
    expected = run.frame["doc_id"].to_numpy()[taken_in_turn(before.tolist())]
    assert got.to_list() == expected.tolist()
    assert set(group[documents.at(got)][:4]) == {0, 1, 2, 3}


def test_density_makes_what_is_alike_wait(random_run: Make) -> None:
    """Two tight groups of ten among twenty loners: the loners and the best of each group come first."""
    run, bench = random_run(40, 1, dim=40)
    rng = np.random.default_rng(0)
    group = np.r_[np.zeros(10, int), np.ones(10, int), np.arange(2, 22)]
    vectors = np.eye(40, dtype=np.float32)[group]
    vectors[:20] += rng.standard_normal((20, 40)).astype(np.float32) * 0.001
    clear = replace(bench, turn_vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    before = group[clear.documents("turn").at(run.frame["doc_id"])]
    got = by_cluster(run, clear, clustering="hdbscan", min_cluster_size=5)
    expected = run.frame["doc_id"].to_numpy()[taken_in_turn(before.tolist())]
    assert got.frame["doc_id"].to_list() == expected.tolist()
    apart = replace(bench, turn_vectors=np.eye(40, dtype=np.float32))
    assert by_cluster(run, apart, clustering="hdbscan").frame["doc_id"].equals(run.frame["doc_id"])
    assert by_cluster(run.top(1), apart, clustering="hdbscan").frame["doc_id"].equals(run.top(1).frame["doc_id"])


def test_the_same_seed_gives_the_same_order(random_run: Make) -> None:
    run, bench = random_run(60, 4)
    one, two = (by_cluster(run, bench, n_clusters=6, seed=3).frame for _ in range(2))
    assert one.equals(two)
    others = [by_cluster(run, bench, n_clusters=6, seed=s).frame["doc_id"].to_list() for s in range(4)]
    assert len({tuple(o) for o in others}) > 1


def test_a_query_groups_alone_as_among_many(random_run: Make) -> None:
    run, bench = random_run(360, 70)
    many = by_cluster(run, bench, n_clusters=4, candidates=12).frame
    for query in ("q0", "q63", "q64"):
        alone = by_cluster(
            replace(run, frame=run.frame.filter(pl.col("query_id") == query)), bench, n_clusters=4, candidates=12
        )
        assert alone.frame.equals(many.filter(pl.col("query_id") == query))


def test_global_random_numbers_are_left_alone(random_run: Make) -> None:
    run, bench = random_run()
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    by_cluster(run, bench, n_clusters=3)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_no_candidates_and_wrong_arguments(random_run: Make) -> None:
    run, bench = random_run()
    none = replace(run, frame=run.frame.head(0))
    assert by_cluster(none, bench).frame.equals(none.frame)
    with pytest.raises(DataError, match="n_clusters is 0; expected at least 1"):
        by_cluster(run, bench, n_clusters=0)
    with pytest.raises(DataError, match="clustering is 'k-means'; choose from kmeans, hdbscan"):
        by_cluster(run, bench, clustering="k-means")
    with pytest.raises(DataError, match="min_cluster_size is 1; expected at least 2"):
        by_cluster(run, bench, clustering="hdbscan", min_cluster_size=1)
    with pytest.raises(DataError, match="candidates is -1"):
        by_cluster(run, bench, candidates=-1)
    with pytest.raises(DataError, match="needs embeddings"):
        by_cluster(run, replace(bench, turn_vectors=None))
