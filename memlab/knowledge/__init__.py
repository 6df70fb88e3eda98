"""Knowledge: facts, their supersession, and their confidence.

``extraction`` reads facts out of turns by a language model with the ``fact_prompts``. ``supersession``
finds out which facts are active: it puts them into ``normal_form`` and a ``timeline`` a subject.
``confidence`` scores them by a curve of ``decay``, which ``tuning`` fits to labels. ``recall``
ranks them for questions over a graph of names and words, and ``listing`` lists what the index has.
"""

from memlab.knowledge.confidence import ConfidenceSettings, score
from memlab.knowledge.extraction import Extracted, extract
from memlab.knowledge.recall import search_facts
from memlab.knowledge.supersession import Resolved, active_facts, resolve
from memlab.knowledge.tuning import compare, recommend

__all__ = [
    "ConfidenceSettings", "Extracted", "Resolved", "active_facts", "compare", "extract", "recommend", "resolve",
    "score", "search_facts",
]  # fmt: skip
