"""Summaries of summaries: trees over a scope's turns, and retrieval over them.

In go turns, out come rows of :class:`memlab.records.Node`: grouped by likeness (``trees``) or by time (``periods``,
with the open ``questions`` that are carried on), written by a :class:`Summariser` (``summarisers``, ``by_model``;
``given`` takes those of the dataset), made into rows in ``nodes``. ``retrieval`` ranks turns by the nodes above them,
``costs`` counts what a tree takes and keeps,
``letters`` writes a week to be read.
"""

from memlab.rollup.by_model import ByModel
from memlab.rollup.costs import cost, kept
from memlab.rollup.given import Given
from memlab.rollup.letters import highlights, letter
from memlab.rollup.periods import rollup
from memlab.rollup.retrieval import tree, trees_of
from memlab.rollup.summarisers import Extractive, Summariser
from memlab.rollup.trees import Tree, grow

__all__ = [
    "ByModel", "Extractive", "Given", "Summariser", "Tree", "cost", "grow", "highlights", "kept", "letter",
    "rollup", "tree", "trees_of",
]  # fmt: skip
