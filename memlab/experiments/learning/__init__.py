"""What the learned reranker learned: which features carry it, how much data it needs, and where it carries over."""

from memlab.experiments.learning.curve import curve
from memlab.experiments.learning.importance import group_of, importance
from memlab.experiments.learning.transfer import UNTRAINED, transfer

__all__ = ["UNTRAINED", "curve", "group_of", "importance", "transfer"]
