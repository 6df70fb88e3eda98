"""Retrieval: from a bench of documents and queries to a ranking."""

from memlab.retrieve.bench import Bench, Documents
from memlab.retrieve.bm25 import bm25
from memlab.retrieve.dense import dense
from memlab.retrieve.fusion import combsum, rrf
from memlab.retrieve.hybrid import hybrid
from memlab.retrieve.sessions import sessions_from_turns

__all__ = ["Bench", "Documents", "bm25", "combsum", "dense", "hybrid", "rrf", "sessions_from_turns"]
