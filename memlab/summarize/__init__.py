"""Structured summaries of sessions, and the picking of sentences that rollups use too."""

from memlab.summarize._features import Weights
from memlab.summarize._words import words
from memlab.summarize.extractive import extract
from memlab.summarize.faithfulness import share, unsupported
from memlab.summarize.keywords import topics
from memlab.summarize.parts import action_items, decisions, open_questions
from memlab.summarize.recipe import Summaries, summarize
from memlab.summarize.sentences import split, spoken

__all__ = [
    "Summaries",
    "Weights",
    "action_items",
    "decisions",
    "extract",
    "open_questions",
    "share",
    "split",
    "spoken",
    "summarize",
    "topics",
    "unsupported",
    "words",
]
