"""Structured summaries of sessions, and the picking of sentences that rollups use too.

Turns come in. ``sentences`` splits them and reads their words, ``extractive`` picks the best, ``keywords`` names what
they are about, ``parts`` finds decisions, action items and open questions; ``recipe`` puts these together as rows of
:class:`memlab.records.Summary`, or those that a model wrote (``by_model``). ``faithfulness`` checks them.
"""

from memlab.summarize.extractive import Weights, extract
from memlab.summarize.faithfulness import share, unsupported
from memlab.summarize.keywords import topics
from memlab.summarize.parts import action_items, decisions, open_questions
from memlab.summarize.recipe import Summaries, summarize
from memlab.summarize.sentences import shared, split, spoken, words

__all__ = [
    "Summaries", "Weights", "action_items", "decisions", "extract", "open_questions", "share", "shared", "split",
    "spoken", "summarize", "topics", "unsupported", "words",
]  # fmt: skip
