"""Selection: which of the candidates to keep, and in which order."""

from memlab.select.adaptive import adaptive
from memlab.select.budget import budget, kept_text
from memlab.select.by_cluster import by_cluster
from memlab.select.coverage import coverage
from memlab.select.dpp import dpp
from memlab.select.expand_cluster import expand_cluster
from memlab.select.fill_sessions import fill_sessions
from memlab.select.mmr import mmr
from memlab.select.msd import msd

__all__ = [
    "adaptive",
    "budget",
    "by_cluster",
    "coverage",
    "dpp",
    "expand_cluster",
    "fill_sessions",
    "kept_text",
    "mmr",
    "msd",
]
