"""What is still true: facts, what supersedes them, and how sure a memory may be of them.

``extraction`` reads facts out of turns by a language model (``patterns`` without one); ``supersession`` resolves which
hold (``normal`` says which speak of the same); ``confidence`` scores them by a curve of ``decay``, which ``tuning``
fits to labels; ``recall`` ranks them for questions over the ``graph``.
"""

from memlab.knowledge.confidence import ConfidenceSettings, score
from memlab.knowledge.extraction import Extracted, extract
from memlab.knowledge.recall import search_facts
from memlab.knowledge.supersession import Resolved, active, resolve
from memlab.knowledge.tuning import compare, recommend

__all__ = [
    "ConfidenceSettings", "Extracted", "Resolved", "active", "compare", "extract", "recommend", "resolve", "score",
    "search_facts",
]  # fmt: skip
