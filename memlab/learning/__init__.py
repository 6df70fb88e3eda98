"""What the learned reranker learned: which features carry it, how much data it needs, and where it carries over."""

from memlab.learning.curve import curve
from memlab.learning.importance import group_of, importance
from memlab.learning.transfer import UNTRAINED, transfer

__all__ = ["UNTRAINED", "curve", "group_of", "importance", "transfer"]
