"""The index of finished sessions: summaries, entities, facts and relations, made once a session is closed."""

from memlab.indexing.batch import EXTRACTIVE
from memlab.indexing.events import nothing_made, report
from memlab.indexing.known import attached, resolved
from memlab.indexing.worker import index, pending, recipe

__all__ = ["EXTRACTIVE", "attached", "index", "nothing_made", "pending", "recipe", "report", "resolved"]
