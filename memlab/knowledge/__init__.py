"""What is still true: facts, what supersedes them, and how sure a memory may be of them."""

from memlab.knowledge.supersession import Resolved, active, redo, resolve, undo

__all__ = ["Resolved", "active", "redo", "resolve", "undo"]
