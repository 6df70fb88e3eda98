"""Retrieval: from a bench of documents and queries to a ranking."""

from memlab.retrieve.bench import Bench, Documents
from memlab.retrieve.bm25 import bm25
from memlab.retrieve.decompose import decompose
from memlab.retrieve.dense import dense
from memlab.retrieve.expansion import expand, prf
from memlab.retrieve.feedback import negative_feedback
from memlab.retrieve.fusion import best, combsum, rrf
from memlab.retrieve.hybrid import hybrid
from memlab.retrieve.hyde import hyde, weakness
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
