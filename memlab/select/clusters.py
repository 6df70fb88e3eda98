"""Clusters: one of each in turn, or all members of those of the first hits."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.errors import DataError, at_least
from memlab.records import Run
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.index import Documents
from memlab.retrieve.ranking import in_order
from memlab.select.candidates import each

CLUSTERINGS = ("kmeans", "hdbscan")


@stage
def by_cluster(
    run: Run,
    bench: Bench,
    *,
    n_clusters: int = 10,
    candidates: int = 50,
    clustering: str = "kmeans",
    min_cluster_size: int = 5,
    seed: int = 0,
) -> Run:
    """Group the first candidates by their embeddings, then take the best of each group in turn.

    In a round, groups come in the order of their best remaining candidate. :func:`expand_cluster` does the opposite.

    :param n_clusters: how many groups k-means makes; as many as there are different candidates where those are fewer.
    :param candidates: how many of the run's first documents to group; the rest follow as they were.
    :param clustering: ``kmeans``, or ``hdbscan``, where each candidate that is in no dense group is a group of its own:
        only what is very much alike waits for a later round.
    :param min_cluster_size: of HDBSCAN: the least members of a group.
    :param seed: of k-means.
    :raises DataError: for a count out of range, an unknown clustering, or without embeddings.

    >>> from memlab import retrieve, sample, select
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> plain = retrieve.dense(bench)
    >>> one_group = select.by_cluster(plain, bench, n_clusters=1)
    >>> one_group.frame["doc_id"].equals(plain.frame["doc_id"])
    True
    """
    _check(clustering)
    at_least(1, n_clusters=n_clusters)
    at_least(2, min_cluster_size=min_cluster_size)

    def in_turn(embedded: np.ndarray, _: np.ndarray) -> np.ndarray:
        return round_robin(_groups(embedded, clustering, n_clusters, min_cluster_size, seed))

    return each(run, bench, candidates, in_turn, task="clustering candidates")


def round_robin(labels: np.ndarray) -> np.ndarray:
    """Order candidates so that each round holds the best remaining one of every group.

    :param labels: (n,) group of each candidate, in order of rank.
    :returns: (n,) ranks (from 0) in their new order.

    >>> import numpy as np
    >>> from memlab.select.clusters import round_robin
    >>> round_robin(np.array([0, 0, 0, 1, 2, 1])).tolist()
    [0, 3, 4, 1, 5, 2]
    """
    rounds = pl.DataFrame({"group": labels}).select(pl.int_range(pl.len()).over("group").alias("round"))
    return np.argsort(rounds["round"].to_numpy(), kind="stable")


@stage
def expand_cluster(
    run: Run, bench: Bench, *, seeds: int = 5, cluster_size: int = 5, clustering: str = "kmeans", seed: int = 0
) -> Run:
    """Keep the first documents in front, then bring in every member of their clusters, then the rest as it was.

    The pieces of one answer resemble each other more than they resemble the question, so what lies beside a good hit
    may be the piece that the question's own words miss. The whole scope is clustered, not the candidates alone:
    members that the run does not hold come too, after those that it holds, the most like a seed first.

    :param seeds: how many of the first documents bring their clusters.
    :param cluster_size: members of a cluster: on average for k-means, at least for HDBSCAN.
    :param clustering: ``kmeans``, or ``hdbscan``, where a seed in no dense group brings nothing.
    :param seed: of k-means.
    :raises DataError: for a count out of range, an unknown clustering, or without embeddings.

    Source: the cluster hypothesis, van Rijsbergen, Information Retrieval (1979), chapter 3; cluster-based retrieval:
    Liu and Croft, Cluster-based retrieval using language models (SIGIR 2004).

    >>> from memlab import retrieve, sample, select
    >>> bench = retrieve.Bench.of(sample(turns=60), encoder="hashing")
    >>> plain = retrieve.dense(bench)
    >>> select.expand_cluster(plain, bench, seeds=3).top(3).frame["doc_id"].equals(plain.top(3).frame["doc_id"])
    True
    """
    _check(clustering)
    at_least(2, cluster_size=cluster_size)
    at_least(1, seeds=seeds)
    documents = bench.documents(run.level)
    candidates = run.frame.select("query_id", "rank", at=pl.Series(documents.at(run.frame["doc_id"])))
    cluster = _clusters(documents, candidates["at"].to_numpy(), cluster_size, clustering, seed)
    clustered = candidates.with_columns(cluster=pl.Series(cluster[candidates["at"].to_numpy()]))
    members = _members(clustered.filter(pl.col("rank") <= seeds), cluster, documents.vectors())
    both = candidates.join(members, on=["query_id", "at"], how="full", coalesce=True, maintain_order="left_right")
    rank, likeness = pl.col("rank"), pl.col("likeness")
    tier = pl.when(rank <= seeds).then(0).when(likeness.is_null()).then(3).when(rank.is_null()).then(2).otherwise(1)
    query = run.frame.select(pl.col("query_id").unique(maintain_order=True)).with_row_index("query")
    ordered = both.join(query, on="query_id", maintain_order="left").sort(
        "query", tier, "rank", -likeness, "at", maintain_order=True
    )
    return in_order(run, bench, ordered)


def _clusters(documents: Documents, used: np.ndarray, cluster_size: int, clustering: str, seed: int) -> np.ndarray:
    """Cluster each scope that the run touches: (n,) number of each document's cluster, −1 in the other scopes."""
    from tqdm.auto import tqdm

    cluster = np.full(len(documents.ids), -1)
    touched = np.zeros(len(documents.ids), bool)
    touched[used] = True
    spans = [slice(*span) for span in documents.spans.values() if touched[slice(*span)].any()]
    for span in tqdm(spans, desc="clustering scopes", disable=sum(s.stop - s.start for s in spans) < 20_000):
        points = documents.vectors()[span]
        cluster[span] = span.start + _groups(points, clustering, -(-len(points) // cluster_size), cluster_size, seed)
    return cluster


def _members(seeds: pl.DataFrame, cluster: np.ndarray, vectors: np.ndarray) -> pl.DataFrame:
    """List the members of the seeds' clusters: ``query_id``, ``at``, ``likeness``, the cosine to the nearest seed."""
    pairs = seeds.join(pl.DataFrame({"cluster": cluster, "member": np.arange(len(cluster))}), on="cluster")
    # In float64, so that equal texts are equally like whatever the number of pairs.
    seed_vectors, member_vectors = (vectors[pairs[column].to_numpy()] for column in ("at", "member"))
    cosine = np.einsum("ij,ij->i", seed_vectors, member_vectors, dtype=np.float64)
    likeness = pl.Series("likeness", cosine.astype(np.float32))
    return pairs.select("query_id", likeness, at="member").group_by("query_id", "at").agg(pl.col("likeness").max())


def _groups(points: np.ndarray, clustering: str, n_clusters: int, min_cluster_size: int, seed: int) -> np.ndarray:
    """Group unit rows; every row has a group, and what density leaves out as noise has one of its own.

    HDBSCAN works in the embedding space: UMAP before it, which finds clearer groups, would take seconds a query.
    """
    if clustering == "hdbscan":
        from memlab.cluster import hdbscan_labels

        labels = hdbscan_labels(points, min_cluster_size=min_cluster_size, n_components=None)
        alone = labels < 0
        labels[alone] = labels.max(initial=-1) + 1 + np.arange(alone.sum())
        return labels
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    n = min(n_clusters, len(np.unique(points, axis=0)))
    if n < 2:
        return np.zeros(len(points), np.int64)
    # These are too few rows for threads: starting them costs more than the work.
    with threadpool_limits(1):
        return KMeans(n, n_init=1, random_state=seed).fit_predict(points)


def _check(clustering: str) -> None:
    if clustering not in CLUSTERINGS:
        raise DataError(f"clustering is {clustering!r}; choose from {', '.join(CLUSTERINGS)}")
