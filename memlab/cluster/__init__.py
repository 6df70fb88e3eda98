"""Groups of turns: in go embeddings, out come labels, coordinates, words, and how evidence lies in the groups.

``density`` finds hard groups, ``mixture`` soft ones, ``projection`` lays embeddings out in few dimensions, ``labels``
names groups, ``spans`` reads a benchmark's evidence against them.

Importing it costs nothing: hdbscan, umap and scikit-learn load when they are first used.
"""

from memlab.cluster.density import NOISE, hdbscan_labels
from memlab.cluster.labels import cluster_terms
from memlab.cluster.mixture import mixture_memberships
from memlab.cluster.projection import project
from memlab.cluster.spans import concentration, pair_similarity, permuted_spread

__all__ = [
    "NOISE", "cluster_terms", "concentration", "hdbscan_labels", "mixture_memberships", "pair_similarity",
    "permuted_spread", "project",
]  # fmt: skip
