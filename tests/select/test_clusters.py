"""One of each cluster in turn, whole clusters, and a clusterer of one's own in both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from memlab.records import Run
from memlab.retrieve import Bench
from memlab.select import by_cluster, expand_cluster

Make = Callable[..., tuple[Run, Bench]]


def grouped(run: Run, bench: Bench, group: np.ndarray) -> tuple[Bench, list[int]]:
    """Give the documents of a group nearly the same direction; and the groups in order of rank."""
    noise = np.random.default_rng(0).standard_normal((len(group), 40)) * 0.01
    noise[np.bincount(group)[group] == 1] = 0
    vectors = (np.eye(40)[group] + noise).astype(np.float32)
    clear = replace(bench, vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    return clear, group[clear.documents("turn").at(run.frame["doc_id"])].tolist()


@pytest.mark.parametrize(
    ("clustering", "group"),
    [("kmeans", np.arange(40) % 4), ("hdbscan", np.r_[np.zeros(10, int), np.ones(10, int), np.arange(2, 22)])],
)
def test_the_best_of_each_clear_group_come_first(random_run: Make, clustering: str, group: np.ndarray) -> None:
    """Four groups; or two tight ones among twenty loners, each of which is a cluster of its own."""
    run, bench = random_run(40, 1)
    clear, before = grouped(run, bench, group)
    got = by_cluster(run, clear, clustering=clustering, n_clusters=4).frame["doc_id"]
    rounds = [before[:place].count(label) for place, label in enumerate(before)]
    assert got.equals(run.frame["doc_id"].gather(np.argsort(rounds, kind="stable")))


@pytest.mark.parametrize(("clustering", "size"), [("kmeans", 4), ("hdbscan", 3)])
@pytest.mark.parametrize("seeds", [1, 5])
def test_whole_clusters_follow_the_seeds(random_run: Make, clustering: str, size: int, seeds: int) -> None:
    run, bench = random_run(40, 3, seed=3)
    clear, _ = grouped(run, bench, np.arange(40) % 10)
    documents = clear.documents("turn")
    group = dict(zip(documents.ids, (np.arange(40) % 10).tolist(), strict=True))
    vectors = dict(zip(documents.ids, documents.vectors().astype(float), strict=True))
    got = expand_cluster(run, clear, seeds=seeds, cluster_size=size, clustering=clustering).frame
    assert got.height > run.frame.height, "members come that the run did not hold"
    for (query,), rows in got.group_by("query_id"):
        before = run.frame.filter(query_id=query)["doc_id"].to_list()
        first = before[:seeds]
        wanted = {d for d in group if group[d] in {group[s] for s in first}}
        outside = sorted(wanted - set(before), key=lambda d: -max(vectors[d] @ vectors[s] for s in first))
        inside = [d for d in before[seeds:] if d in wanted]
        assert rows["doc_id"].to_list() == first + inside + outside + [d for d in before if d not in wanted]
