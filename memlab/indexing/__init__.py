"""The index of finished sessions: summaries, entities and facts, made once a session is closed."""

from memlab.indexing.known import attached, report, resolved, why_nothing
from memlab.indexing.worker import EXTRACTIVE, index, pending, recipe

__all__ = ["EXTRACTIVE", "attached", "index", "pending", "recipe", "report", "resolved", "why_nothing"]
