"""Retrieval: from a bench of documents and questions to a ranking.

A dataset comes in (:meth:`Bench.of`, which embeds it), a :class:`memlab.records.Run` of turns or sessions goes out.
``bench`` holds the questions and what every stage may see, ``index`` the documents and their statistics of words,
``ranking`` turns scores into runs.

- Retrievers: ``dense``, ``bm25``, ``late``, and what joins them: ``hybrid``, ``fusion`` (``combsum``), ``two_stage``.
- Stages that search again, through ``subqueries``: ``expansion`` (``prf``, ``expand``), ``feedback``, ``decompose``
  (by the rules of ``facets``), ``multi_hop``, ``hyde``.
- ``sessions``: rankings of sessions from those of turns.
"""

from memlab.retrieve.bench import Bench
from memlab.retrieve.bm25 import bm25
from memlab.retrieve.decompose import decompose
from memlab.retrieve.dense import dense
from memlab.retrieve.expansion import expand, prf
from memlab.retrieve.feedback import negative_feedback
from memlab.retrieve.fusion import best, combsum, rrf
from memlab.retrieve.hybrid import hybrid
from memlab.retrieve.hyde import hyde, weakness
from memlab.retrieve.index import Documents
from memlab.retrieve.late import late
from memlab.retrieve.multi_hop import multi_hop
from memlab.retrieve.sessions import sessions_from_turns
from memlab.retrieve.two_stage import summary_storage, two_stage

__all__ = [
    "Bench",
    "Documents",
    "best",
    "bm25",
    "combsum",
    "decompose",
    "dense",
    "expand",
    "hybrid",
    "hyde",
    "late",
    "multi_hop",
    "negative_feedback",
    "prf",
    "rrf",
    "sessions_from_turns",
    "summary_storage",
    "two_stage",
    "weakness",
]
