"""Clusters of turns: labels by any clusterer, trees, soft groups, maps, names, and how evidence
lies in them.

``clusterers`` calls what is registered, brings four of its own and finds soft groups,
``hdbscan_clusters`` gives all that HDBSCAN knows, ``merge_trees`` joins turns by average or single
linkage. ``umap_projection`` lays embeddings out in few dimensions, ``key_terms`` names clusters by
their terms, ``names_by_model`` by a language model. ``evidence_spread`` compares a benchmark's
evidence with clusters, ``evidence_merges`` with trees.
scikit-learn, hdbscan and UMAP load when they are first used.
"""

from memlab.cluster.clusterers import (
    NOISE,
    cluster_labels,
    hdbscan_labels,
    mixture_memberships,
    scope_labels,
)
from memlab.cluster.evidence_merges import observed_and_null_merges
from memlab.cluster.evidence_spread import observed_and_null_spread, pair_similarity
from memlab.cluster.hdbscan_clusters import DensityClusters, density_clusters
from memlab.cluster.key_terms import cluster_terms
from memlab.cluster.merge_trees import MergeTree, merge_tree, scope_trees
from memlab.cluster.umap_projection import project
from memlab.errors import explain_arguments

__all__ = [
    "NOISE",
    "DensityClusters",
    "MergeTree",
    "cluster_labels",
    "cluster_terms",
    "density_clusters",
    "hdbscan_labels",
    "merge_tree",
    "mixture_memberships",
    "observed_and_null_merges",
    "observed_and_null_spread",
    "pair_similarity",
    "project",
    "scope_labels",
    "scope_trees",
]

explain_arguments(globals())
