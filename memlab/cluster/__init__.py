"""Clusters of turns: labels by any clusterer, soft groups, maps, names, and how evidence lies in them.

``clusterers`` calls what is registered, brings four of its own and finds soft groups,
``projection`` lays embeddings out in few dimensions, ``cluster_names`` names clusters, ``evidence_spread``
compares a benchmark's evidence with them. scikit-learn and UMAP load when they are first used.
"""

from memlab.arguments import explain_arguments
from memlab.cluster.cluster_names import cluster_terms
from memlab.cluster.clusterers import (
    NOISE,
    cluster_labels,
    hdbscan_labels,
    mixture_memberships,
    scope_labels,
)
from memlab.cluster.evidence_spread import observed_and_null_spread, pair_similarity
from memlab.cluster.projection import project

__all__ = [
    "NOISE",
    "cluster_labels",
    "cluster_terms",
    "hdbscan_labels",
    "mixture_memberships",
    "observed_and_null_spread",
    "pair_similarity",
    "project",
    "scope_labels",
]  # fmt: skip

explain_arguments(globals())
