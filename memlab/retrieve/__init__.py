"""Retrieval: from a bench of documents and questions to a ranking.

A dataset comes in (:meth:`Bench.of`), a :class:`memlab.records.Run` of turns or sessions goes out.
``bench`` holds the questions and what every stage may see, ``documents`` what is searched,
``passages`` what long turns are cut into, ``large_scopes`` what is read of a large scope;
``ranking`` turns scores into runs. The retrievers are ``dense``, ``bm25``, ``late_interaction``,
``fusion`` (``hybrid``, ``combsum``), ``two_stage`` and ``best``, the default. Stages that search
again: ``decompose`` (for parts of the question), ``multi_hop`` (for what a language model misses in
the first results), ``expansion`` (for what it writes: ``expand``, ``hyde``).
"""

from memlab.errors import explain_arguments
from memlab.retrieve.bench import Bench
from memlab.retrieve.best import DEFAULT, best
from memlab.retrieve.bm25 import bm25
from memlab.retrieve.decompose import decompose
from memlab.retrieve.dense import dense
from memlab.retrieve.documents import Documents
from memlab.retrieve.expansion import expand, hyde
from memlab.retrieve.fusion import combsum, hybrid, rrf
from memlab.retrieve.late_interaction import late
from memlab.retrieve.multi_hop import multi_hop
from memlab.retrieve.ranking import sessions_from_turns
from memlab.retrieve.two_stage import two_stage

__all__ = [
    "DEFAULT",
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
    "rrf",
    "sessions_from_turns",
    "two_stage",
]

explain_arguments(globals())
