"""Questions that stand alone: what a follow-up leaves out is put back before retrieval."""

from memlab.rewrite.measure import content_words, score
from memlab.rewrite.rewriting import rewrite

__all__ = ["content_words", "rewrite", "score"]
