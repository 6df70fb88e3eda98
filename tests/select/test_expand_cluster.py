"""What resembles the best hits comes with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import memlab
from memlab import retrieve
from memlab.errors import DataError
from memlab.records import Run
from memlab.retrieve import Bench
from memlab.select.clusters import expand_cluster

Make = Callable[..., tuple[Run, Bench]]


@pytest.fixture
def clear(random_run: Make) -> tuple[Run, Bench, dict[str, int]]:
    """Ten clear groups of four; the run holds 35 of the 40 documents at most."""
    run, bench = random_run(40, 3, dim=10, seed=3)
    group = np.arange(40) % 10
    noise = np.random.default_rng(0).standard_normal((40, 10)).astype(np.float32) * 0.01
    vectors = np.eye(10, dtype=np.float32)[group] + noise
    bench = replace(bench, turn_vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    return run, bench, dict(zip(bench.documents("turn").ids, group.tolist(), strict=True))


@pytest.mark.parametrize(("clustering", "size"), [("kmeans", 4), ("hdbscan", 3)])
@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_whole_clusters_follow_the_seeds(
    clear: tuple[Run, Bench, dict[str, int]], seeds: int, clustering: str, size: int
) -> None:
    run, bench, group = clear
    got = expand_cluster(run, bench, seeds=seeds, cluster_size=size, clustering=clustering).frame
    vectors = dict(zip(bench.documents("turn").ids, bench.turn_vectors.astype(float), strict=True))
    for (query,), rows in got.group_by("query_id"):
        before = run.frame.filter(pl.col("query_id") == query)["doc_id"].to_list()
        after = rows["doc_id"].to_list()
        first = before[:seeds]
        wanted = {d for d in group if group[d] in {group[s] for s in first}}
        inside = [d for d in before[seeds:] if d in wanted]
        outside = sorted(wanted - set(before), key=lambda d: -max(vectors[d] @ vectors[s] for s in first))
        assert after == first + inside + outside + [d for d in before if d not in wanted]
        assert rows["rank"].to_list() == list(range(1, len(after) + 1))
        assert (rows["score"].diff().drop_nulls() < 0).all()


def test_the_run_gains_what_it_did_not_hold(clear: tuple[Run, Bench, dict[str, int]]) -> None:
    run, bench, _ = clear
    short = run.top(5)
    assert expand_cluster(short, bench, seeds=5, cluster_size=4).frame.height > short.frame.height


def test_nothing_dense_brings_nothing(random_run: Make) -> None:
    run, bench = random_run(40, 2, dim=40)
    apart = replace(bench, turn_vectors=np.eye(40, dtype=np.float32))
    got = expand_cluster(run, apart, clustering="hdbscan", cluster_size=3)
    assert got.frame["doc_id"].equals(run.frame["doc_id"])
    everything = expand_cluster(run, bench, cluster_size=1000).frame
    assert everything.group_by("query_id").len()["len"].to_list() == [40, 40]


def test_scopes_never_mix_and_a_query_stands_alone() -> None:
    bench = Bench.of(memlab.sample(turns=200), encoder="hashing:32")
    run = retrieve.hybrid(bench, k=20)
    got = expand_cluster(run, bench, seeds=3).frame
    assert (got["query_id"].str.extract("^([^/]*)/") == got["doc_id"].str.extract("^([^/]*)/")).all()
    assert got["query_id"].unique(maintain_order=True).equals(run.frame["query_id"].unique(maintain_order=True))
    for query in (got["query_id"][0], got["query_id"][-1]):
        alone = expand_cluster(replace(run, frame=run.frame.filter(pl.col("query_id") == query)), bench, seeds=3).frame
        assert alone.equals(got.filter(pl.col("query_id") == query))


def test_copies_come_in_order_of_time(random_run: Make) -> None:
    run, bench = random_run(24, 1, copies=6)
    short = run.top(1)
    got = expand_cluster(short, bench, cluster_size=6).frame["doc_id"].to_list()
    number = [int(d.rsplit("/", 1)[1]) for d in got[1:]]
    assert len(number) == 5
    assert number == sorted(number)


def test_what_goes_in_is_kept_and_wrong_arguments(random_run: Make) -> None:
    run, bench = random_run()
    named = replace(run, name="mine", provenance={"x": 1})
    got = expand_cluster(named, bench)
    assert (got.name, got.provenance, got.level) == ("mine", {"x": 1}, "turn")
    none = replace(run, frame=run.frame.head(0))
    assert expand_cluster(none, bench).frame.equals(none.frame)
    for wrong, message in (
        ({"seeds": 0}, "seeds is 0"),
        ({"cluster_size": 1}, "cluster_size is 1"),
        ({"clustering": "dbscan"}, "clustering is 'dbscan'; choose from kmeans, hdbscan"),
    ):
        with pytest.raises(DataError, match=message):
            expand_cluster(run, bench, **wrong)
    with pytest.raises(DataError, match="needs embeddings"):
        expand_cluster(run, replace(bench, turn_vectors=None))
