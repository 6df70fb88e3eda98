"""Selection: which of the candidates to keep, and in which order.

In goes a :class:`memlab.records.Run` with its bench, out comes a run of the same level. ``diversity`` keeps alike
documents apart (``mmr``, ``dpp``, ``msd``), ``clusters`` takes one of each group, or whole groups; ``coverage`` covers
the parts of a question, ``current`` puts later turns first, ``fill_sessions`` new sessions; ``adaptive`` and ``budget``
say where to cut. ``candidates`` is what they share: the first of many queries as padded arrays.
"""

from memlab.select.adaptive import adaptive
from memlab.select.budget import budget, kept_text
from memlab.select.clusters import by_cluster, expand_cluster
from memlab.select.coverage import coverage
from memlab.select.current import current
from memlab.select.diversity import dpp, mmr, msd
from memlab.select.fill_sessions import fill_sessions

__all__ = [
    "adaptive", "budget", "by_cluster", "coverage", "current", "dpp", "expand_cluster", "fill_sessions", "kept_text",
    "mmr", "msd",
]  # fmt: skip
