"""What is still true: facts, what supersedes them, and how sure a memory may be of them."""

from memlab.knowledge.confidence import ConfidenceSettings, score
from memlab.knowledge.extracted import Extracted
from memlab.knowledge.extraction import extract
from memlab.knowledge.facts import from_observations
from memlab.knowledge.supersession import Resolved, believed, redo, resolve, undo
from memlab.knowledge.tuning import compare, fit_curves, recommend

__all__ = [
    "ConfidenceSettings",
    "Extracted",
    "Resolved",
    "believed",
    "compare",
    "extract",
    "fit_curves",
    "from_observations",
    "recommend",
    "redo",
    "resolve",
    "score",
    "undo",
]
