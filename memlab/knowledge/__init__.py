"""Knowledge: facts, their supersession, and their confidence.

``fact_extraction`` reads facts out of turns by a language model with the ``fact_prompts``.
``supersession`` finds out which facts are active: it reads them as ``fact_statements``, compared by
``fact_keys`` and placed by ``date_precision``, and gives each its ``validity_intervals`` in a
``supersession_timeline``. ``confidence`` scores them by a curve of ``decay_curves``, which
``decay_fitting`` fits to labels. ``fact_search`` ranks them for questions over a graph of names and
words, and ``listing_the_index`` lists what the index has.
"""

from memlab.errors import explain_arguments
from memlab.knowledge.confidence import ConfidenceSettings, score
from memlab.knowledge.decay_fitting import compare_curves, recommend
from memlab.knowledge.fact_extraction import Extracted, extract
from memlab.knowledge.fact_search import search_facts
from memlab.knowledge.supersession import Resolved, active_facts, resolve

__all__ = [
    "ConfidenceSettings",
    "Extracted",
    "Resolved",
    "active_facts",
    "compare_curves",
    "extract",
    "recommend",
    "resolve",
    "score",
    "search_facts",
]

explain_arguments(globals())
