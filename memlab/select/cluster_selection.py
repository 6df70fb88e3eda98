"""Clusters: the best document of each in turn, or all members of those of the first hits.

Documents are clustered by their speaker-centred vectors, see :mod:`memlab.embed.speaker_centring`;
with ``centred=False`` as they are encoded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from memlab.cluster import MergeTree, cluster_labels, merge_tree
from memlab.errors import check_at_least, warn_user
from memlab.records import Level, Run
from memlab.registry import Clustering, ClusterSize, Count, Seed, clusterers, stage
from memlab.retrieve.bench import Bench, cache_per_bench
from memlab.retrieve.rankings_from_scores import rerank_in_order
from memlab.select.selection_candidates import (
    candidates_by_query,
    put_chosen_first,
    similarity_vectors,
)


@stage
def by_cluster(
    run: Run,
    bench: Bench,
    *,
    n_clusters: Count = 10,
    candidates: Count = 50,
    clustering: Clustering = "kmeans",
    min_cluster_size: ClusterSize = 5,
    seed: Seed = 0,
    centred: bool = True,
) -> Run:
    """Cluster the first candidates, then take the best of each cluster in turn.

    In a round, clusters come in the order of their best remaining candidate. A candidate that the
    clusterer leaves as noise is a cluster of its own. :func:`expand_cluster` does the opposite.

    :param n_clusters: how many clusters to make, where the clusterer takes a number, as ``kmeans``
        does.
    :param candidates: how many of the run's first documents to cluster; the rest follow as they
        were.
    :param clustering: a name of :data:`memlab.clusterers`.
    :param min_cluster_size: least members of a cluster, where the clusterer takes it, as
        ``hdbscan`` does.
    :param seed: of the clusterer.
    :param centred: ``False`` compares documents as they are encoded, speakers' names included.
    :raises DataError: for a count out of range, an unknown clusterer, or without embeddings.

    Warns where no question has a cluster among its candidates, so that the ranking is unchanged.

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder="hashing")
    >>> plain = memlab.retrieve.dense(bench)
    >>> one_cluster = memlab.select.by_cluster(plain, bench, n_clusters=1)
    >>> one_cluster.frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    vectors = similarity_vectors(run, bench, centred=centred)
    cluster_options = {"n_clusters": n_clusters, "min_cluster_size": min_cluster_size, "seed": seed}
    check_at_least(1, n_clusters=n_clusters)
    check_at_least(2, min_cluster_size=min_cluster_size)
    query_labels = []
    for places, _ in candidates_by_query(run, bench, candidates):
        query_labels.append(
            _cluster_numbers_with_single_noise(vectors[places], clustering, **cluster_options)
        )
    if query_labels and not any(map(_shares_a_label_or_has_under_two_rows, query_labels)):
        warn_user(
            f"by_cluster: {clustering} found no cluster of two among the first {candidates} "
            "candidates of any question, so the ranking is unchanged; raise "
            f"candidates={candidates}{_advise_size_setting(clustering, cluster_options)}"
        )
    return put_chosen_first(
        run,
        bench,
        [_round_robin_candidate_ranks(labels_of_query) for labels_of_query in query_labels],
    )


def _advise_size_setting(clustering: str, options: Mapping[str, int]) -> str:
    """Name the settings of a clusterer that make it join more, which are too high; "" for none."""
    taken_names = inspect.signature(clusterers[clustering]).parameters
    settings = [
        f"{name}={options[name]}"
        for name in ("n_clusters", "min_cluster_size")
        if name in taken_names
    ]
    if not settings:
        return ""
    return f", or lower {' and '.join(settings)}"


def _shares_a_label_or_has_under_two_rows(labels: np.ndarray) -> bool:
    """Say whether two rows share a label; of fewer than two rows nothing is amiss."""
    return len(labels) < 2 or len(np.unique(labels)) < len(labels)


def _round_robin_candidate_ranks(cluster_of_candidate: np.ndarray) -> np.ndarray:
    """Order candidates so that each round holds the best remaining one of every cluster: ranks from
    0.
    """
    round_of_row = (
        pl.Series("label", cluster_of_candidate)
        .to_frame()
        .select(pl.int_range(pl.len()).over("label"))
    )
    return np.argsort(round_of_row.to_series().to_numpy(), kind="stable")


@stage
def expand_cluster(
    run: Run,
    bench: Bench,
    *,
    seeds: Count = 5,
    cluster_size: ClusterSize = 5,
    clustering: Clustering = "kmeans",
    seed: Seed = 0,
    centred: bool = True,
    branch: ClusterSize | None = None,
) -> Run:
    """Keep the first documents in front, then bring in every member of their clusters, then the
    rest as it was.

    Evidence items of one question often resemble each other more than they resemble the question.
    The whole scope is clustered, not the candidates alone: members that the run does not hold come
    after those that it holds, the most similar to a seed first.

    :param seeds: how many of the first documents bring their clusters.
    :param cluster_size: members of a cluster: on average where the clusterer takes a number of
        clusters, as ``kmeans`` does, at least where it takes a size, as ``hdbscan`` does.
    :param clustering: a name of :data:`memlab.clusterers`; a seed that is noise brings nothing.
    :param seed: of the clusterer.
    :param centred: ``False`` compares documents as they are encoded, speakers' names included.
    :param branch: takes branches of the scope's average-linkage tree instead of clusters: up from
        each of the first documents to the lowest branch with so many. Nothing is random then.
    :raises DataError: for a count out of range, an unknown clusterer, without embeddings, or for
        branches of a scope with more documents than :func:`memlab.cluster.merge_tree` takes.

    Source: Liu and Croft, Cluster-based retrieval using language models (SIGIR 2004).

    >>> import memlab
    >>> bench = memlab.Bench.of("data/sample/sample.jsonl", encoder="hashing")
    >>> plain = memlab.retrieve.dense(bench, k=20)
    >>> memlab.select.expand_cluster(plain, bench).frame.height > plain.frame.height
    True
    """
    check_at_least(2, cluster_size=cluster_size)
    check_at_least(1, seeds=seeds)
    if branch is not None:
        check_at_least(2, branch=branch)
    documents = bench.documents(run.level)
    vectors = similarity_vectors(run, bench, centred=centred)
    query_ids = run.frame["query_id"].unique(maintain_order=True)
    query_rankings = []
    for query_id, (places, _) in zip(query_ids, candidates_by_query(run, bench), strict=True):
        scope_start, scope_end = _scope_span_of_document(bench, run.level, places[0])
        first_places = places[:seeds]
        other_places = places[seeds:]
        scope_clustering = _ScopeClustering(
            run.level, scope_start, scope_end, clustering, cluster_size, seed, centred
        )
        if branch is None:
            members = _document_places_sharing_a_cluster(bench, scope_clustering, first_places)
        else:
            members = _document_places_in_lowest_branches(
                bench, scope_clustering, first_places, branch
            )
        new_members = np.setdiff1d(members, places)
        # In float64 and rounded, so that equal texts are equally similar whatever the number of
        # pairs.
        similarity = (
            vectors[new_members].astype(np.float64) @ vectors[first_places].astype(np.float64).T
        ).max(axis=1)
        new_members = new_members[
            np.lexsort((documents.tie_order[new_members], -similarity.round(6)))
        ]
        is_member = np.isin(other_places, members)
        ranked = np.r_[first_places, other_places[is_member], new_members, other_places[~is_member]]
        query_rankings.append(pl.DataFrame({"query_id": query_id, "at": ranked}))
    return rerank_in_order(run, bench, pl.concat(query_rankings)) if query_rankings else run


def _scope_span_of_document(bench: Bench, level: Level, document_place: int) -> tuple[int, int]:
    """Give where the scope of a document begins and ends."""
    scope_spans = bench.documents(level).spans.values()
    return next(span for span in scope_spans if span[0] <= document_place < span[1])


class _ScopeClustering(NamedTuple):
    """What decides the clusters of a scope, whose documents are from ``start`` to ``end``."""

    level: Level
    start: int
    end: int
    clustering: str
    size: int
    seed: int
    centred: bool


def _document_places_sharing_a_cluster(
    bench: Bench, scope_clustering: _ScopeClustering, first_places: np.ndarray
) -> np.ndarray:
    """Give the places of the documents that share a cluster with one of the first."""
    labels = _cluster_of_each_document(
        bench, scope_clustering, clusterers.get(scope_clustering.clustering)
    )
    touched_labels = labels[first_places - scope_clustering.start]
    return scope_clustering.start + np.flatnonzero(np.isin(labels, touched_labels))


def _document_places_in_lowest_branches(
    bench: Bench, scope_clustering: _ScopeClustering, first_places: np.ndarray, min_leaves: int
) -> np.ndarray:
    """Give the places of the documents of the lowest branches of so many that hold one of the
    first.
    """
    merge_tree_of_scope = _merge_tree_of_scope(
        bench,
        scope_clustering.level,
        scope_clustering.start,
        scope_clustering.end,
        scope_clustering.centred,
    )
    branches = np.unique(
        merge_tree_of_scope.branches_above(first_places - scope_clustering.start, min_leaves)
    )
    is_below_branch = np.any([merge_tree_of_scope.is_below(branch) for branch in branches], axis=0)
    return scope_clustering.start + np.flatnonzero(is_below_branch)


@cache_per_bench
def _merge_tree_of_scope(
    bench: Bench, level: Level, scope_start: int, scope_end: int, is_centred: bool
) -> MergeTree:
    """Join the documents of a scope by average linkage, once for all rankings."""
    documents = bench.documents(level)
    vectors = documents.speaker_centred() if is_centred else documents.vectors()
    return merge_tree(vectors[scope_start:scope_end])


@cache_per_bench
def _cluster_of_each_document(
    bench: Bench, scope_clustering: _ScopeClustering, clusterer: Callable[..., np.ndarray] | None
) -> np.ndarray:
    """Cluster a scope, once for all rankings: (n,) number of each document's cluster, from 0.

    :param clusterer: the function of that name, which may be registered anew.
    """
    documents = bench.documents(scope_clustering.level)
    vectors = documents.speaker_centred() if scope_clustering.centred else documents.vectors()
    n_clusters = -(-(scope_clustering.end - scope_clustering.start) // scope_clustering.size)
    cluster_sizes = {
        "n_clusters": n_clusters,
        "min_cluster_size": scope_clustering.size,
        "seed": scope_clustering.seed,
    }
    return _cluster_numbers_with_single_noise(
        vectors[scope_clustering.start : scope_clustering.end],
        scope_clustering.clustering,
        **cluster_sizes,
    )


def _cluster_numbers_with_single_noise(
    document_vectors: np.ndarray, clusterer_name: str, **clusterer_options: int
) -> np.ndarray:
    """Give every row a cluster from 0; what the clusterer leaves as noise has one of its own."""
    labels = cluster_labels(document_vectors, clusterer_name, **clusterer_options)
    labels = np.where(labels < 0, len(labels) + np.arange(len(labels)), labels)
    return np.unique(labels, return_inverse=True)[1]
