"""Questions that stand alone: what a follow-up leaves out is put back before retrieval.

Questions come in, each with the messages before it; a frame goes out with the rewritten question and the signs that let
it in. Open ``rewriting`` for the whole way, then in the order of work:

- ``_context``: question, topics and messages, cut into words and names.
- ``signals``: the signs that a question leans on what was said; one without a sign passes.
- ``features`` and ``model``: which words of the context a question lacks, by small networks; ``training`` learns them.
- ``pointing``: words that a question points at outright (*the second*, *the other one*).
- ``assemble``: the chosen words as phrases, put into the question.
- ``asking``: the same by a language model.
- ``measure``: rewrites against those of people.
- ``follow_ups``: conversations with known answers, to measure retrieval with.
"""

from memlab.rewrite.measure import content_words, score
from memlab.rewrite.rewriting import rewrite

__all__ = ["content_words", "rewrite", "score"]
