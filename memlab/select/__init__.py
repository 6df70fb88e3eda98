"""Selection: which candidates to keep, and in which order.

A stage takes a :class:`memlab.records.Run` and its bench and gives a run of the same level.
``mmr_dpp_msd`` trades relevance for dissimilarity (``mmr``, ``dpp``, ``msd``; ``greedy_selection``
chooses for many queries at once), ``cluster_selection`` takes one document of each cluster or whole
clusters, ``similarity_to_first_hits`` does the opposite of diversity (``resonate``),
``relevance_feedback`` searches again, towards the first hits or away from them (``feedback``),
``session_order_and_budget`` puts new sessions first, or cuts the ranking (``budget``), and
``outdated_turns_later`` puts what was said later on a subject first (``current``).
"""

from memlab.errors import explain_arguments
from memlab.select.cluster_selection import by_cluster, expand_cluster
from memlab.select.mmr_dpp_msd import dpp, mmr, msd
from memlab.select.outdated_turns_later import current
from memlab.select.relevance_feedback import feedback
from memlab.select.session_order_and_budget import budget, fill_sessions
from memlab.select.similarity_to_first_hits import resonate

__all__ = [
    "budget",
    "by_cluster",
    "current",
    "dpp",
    "expand_cluster",
    "feedback",
    "fill_sessions",
    "mmr",
    "msd",
    "resonate",
]

explain_arguments(globals())
