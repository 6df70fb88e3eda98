"""Selection: which of the candidates to keep, and in which order."""

from memlab.select.budget import budget
from memlab.select.by_cluster import by_cluster
from memlab.select.mmr import mmr

__all__ = ["budget", "by_cluster", "mmr"]
