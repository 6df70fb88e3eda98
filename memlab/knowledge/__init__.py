"""What is still true: facts, what supersedes them, and how sure a memory may be of them.

Turns come in (``extraction``, by rule or ``by_model``; ``entities`` and their relations) or observations (``facts``);
facts go out. ``supersession`` resolves which hold (``matching``: which say the same; ``cardinality``: where one value
can be true), ``confidence`` scores them by a curve of ``decay``, which ``tuning`` fits to labels; ``search`` ranks them
for questions over the ``graph``, ``profile`` and ``timeline`` show them. ``simulated`` has known hazards to fit.
"""

from memlab.knowledge.by_model import Extracted
from memlab.knowledge.confidence import ConfidenceSettings, score
from memlab.knowledge.extraction import extract
from memlab.knowledge.facts import from_observations
from memlab.knowledge.search import search_facts, search_summaries
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
    "search_facts",
    "search_summaries",
    "undo",
]
