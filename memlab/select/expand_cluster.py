"""Cluster expansion: what resembles the best hits comes with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from memlab.errors import DataError
from memlab.records import Run, run_from_scores
from memlab.registry import stage
from memlab.retrieve.bench import Bench
from memlab.retrieve.index import Documents
from memlab.select._groups import check, groups


@stage
def expand_cluster(
    run: Run,
    bench: Bench,
    *,
    seeds: int = 5,
    cluster_size: int = 5,
    clustering: str = "kmeans",
    seed: int = 0,
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

    >>> from memlab import datasets, retrieve
    >>> from memlab.select.expand_cluster import expand_cluster
    >>> bench = retrieve.Bench.of(datasets.synthetic.generate(turns=60, seed=0), encoder="hashing")
    >>> plain = retrieve.dense(bench)
    >>> expand_cluster(plain, bench, seeds=3).top(3).frame["doc_id"].equals(plain.top(3).frame["doc_id"])
    True
    """
    check(clustering, 1, 2)
    if cluster_size < 2:
        raise DataError(f"cluster_size is {cluster_size}; a cluster has at least 2 members")
    if seeds < 1:
        raise DataError(f"seeds is {seeds}; at least one document brings its cluster")
    documents = bench.documents(run.level)
    candidates = run.frame.select("query_id", "rank", at=pl.Series(documents.at(run.frame["doc_id"])))
    cluster = _clusters(documents, candidates["at"].to_numpy(), cluster_size, clustering, seed)
    candidates = candidates.with_columns(cluster=pl.Series(cluster[candidates["at"].to_numpy()]))
    brought = _members(candidates.filter(pl.col("rank") <= seeds), cluster, documents.vectors())
    both = candidates.drop("cluster").join(
        brought, on=["query_id", "at"], how="full", coalesce=True, maintain_order="left_right"
    )
    tier = (
        pl.when(pl.col("rank") <= seeds)
        .then(0)
        .when(pl.col("likeness").is_null())
        .then(3)
        .when(pl.col("rank").is_null())
        .then(2)
        .otherwise(1)
    )
    asked = run.frame.select(pl.col("query_id").unique(maintain_order=True)).with_row_index("query")
    ordered = (
        both.join(asked, on="query_id", maintain_order="left")
        .sort("query", tier, "rank", -pl.col("likeness"), "at", maintain_order=True)
        .with_columns(place=pl.int_range(1, pl.len() + 1).over("query"))
    )
    ranked = run_from_scores(
        ordered["query_id"].to_numpy(),
        documents.ids[ordered["at"].to_numpy()],
        1.0 / ordered["place"].to_numpy(),
        level=run.level,
        k=max(1, len(documents.ids)),
    )
    return replace(bench.show(ranked), name=run.name, provenance=run.provenance)


def _clusters(documents: Documents, used: np.ndarray, cluster_size: int, clustering: str, seed: int) -> np.ndarray:
    """Cluster each scope that the run touches: (n,) number of each document's cluster, −1 in the other scopes."""
    from tqdm.auto import tqdm

    cluster = np.full(len(documents.ids), -1)
    touched = np.zeros(len(documents.ids), bool)
    touched[used] = True
    spans = [slice(*span) for span in documents.spans.values() if touched[slice(*span)].any()]
    for span in tqdm(spans, desc="clustering scopes", disable=sum(s.stop - s.start for s in spans) < 20_000):
        points = documents.vectors()[span]
        cluster[span] = span.start + groups(
            points,
            clustering=clustering,
            n_clusters=-(-len(points) // cluster_size),
            min_cluster_size=cluster_size,
            seed=seed,
        )
    return cluster


def _members(seeds: pl.DataFrame, cluster: np.ndarray, vectors: np.ndarray) -> pl.DataFrame:
    """List the members of the seeds' clusters: ``query_id``, ``at``, ``likeness``, the cosine to the nearest seed."""
    pairs = seeds.join(pl.DataFrame({"cluster": cluster, "member": np.arange(len(cluster))}), on="cluster")
    # In float64, so that equal texts are equally like whatever the number of pairs.
    seed_vectors, member_vectors = (vectors[pairs[column].to_numpy()] for column in ("at", "member"))
    cosine = np.einsum("ij,ij->i", seed_vectors, member_vectors, dtype=np.float64)
    likeness = pl.Series("likeness", cosine.astype(np.float32))
    return pairs.select("query_id", likeness, at="member").group_by("query_id", "at").agg(pl.col("likeness").max())
