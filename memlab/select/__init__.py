"""Selection: which of the candidates to keep, and in which order.

In goes a :class:`memlab.records.Run` with its bench, out comes a run of the same level. Each strategy has a file of its
own name; what they share is candidates as padded arrays (``_candidates``), one query after another (``_each``), groups
of embeddings (``_groups``) and the parts of a question (``_parts``).
"""

from memlab.select.adaptive import adaptive
from memlab.select.budget import budget, kept_text
from memlab.select.by_cluster import by_cluster
from memlab.select.coverage import coverage
from memlab.select.current import current
from memlab.select.dpp import dpp
from memlab.select.expand_cluster import expand_cluster
from memlab.select.fill_sessions import fill_sessions
from memlab.select.mmr import mmr
from memlab.select.msd import msd

__all__ = [
    "adaptive", "budget", "by_cluster", "coverage", "current", "dpp", "expand_cluster", "fill_sessions", "kept_text",
    "mmr", "msd",
]  # fmt: skip
