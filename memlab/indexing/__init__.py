"""The index of finished sessions: summaries, entities and facts, made once a session is closed."""

from memlab.indexing.known import report, resolved, why_nothing
from memlab.indexing.worker import EXTRACTIVE, index

__all__ = ["EXTRACTIVE", "index", "report", "resolved", "why_nothing"]
