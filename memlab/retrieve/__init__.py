"""Retrieval: from a bench of documents and questions to a ranking.

A dataset comes in (:meth:`Bench.of`), a :class:`memlab.records.Run` of turns or sessions goes out.
``bench`` holds the questions and what every stage may see, ``documents`` what is searched,
``passages`` what long turns are cut into, ``large_scope_candidates`` what is read of a large scope;
``rankings_from_scores`` turns scores into runs. The retrievers are ``dense``, ``bm25``,
``late_interaction``, ``rank_fusion`` (``hybrid``, ``combsum``), ``two_stage`` and ``best``, the
default. Stages that search again: ``decompose`` (for parts of the question), ``multi_hop`` (for
what a language model misses in the first results), ``query_expansion`` (for what it writes:
``expand``, ``hyde``).
"""

from memlab.errors import explain_arguments
from memlab.retrieve.bench import Bench
from memlab.retrieve.best_pipeline import DEFAULT, best
from memlab.retrieve.bm25 import bm25
from memlab.retrieve.dense import dense
from memlab.retrieve.documents import Documents
from memlab.retrieve.late_interaction import late
from memlab.retrieve.multi_hop import multi_hop
from memlab.retrieve.query_expansion import expand, hyde
from memlab.retrieve.question_decomposition import decompose
from memlab.retrieve.rank_fusion import combsum, hybrid, rrf
from memlab.retrieve.rankings_from_scores import sessions_from_turns
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
