"""Summaries of summaries: trees by likeness and by time over a scope's turns, and retrieval over them."""

from memlab.rollup.by_model import ByModel
from memlab.rollup.costs import cost, kept
from memlab.rollup.given import Given
from memlab.rollup.periods import rollup
from memlab.rollup.retrieval import tree, trees_of
from memlab.rollup.summarisers import Extractive, Summariser
from memlab.rollup.trees import Tree, build, grow

__all__ = [
    "ByModel",
    "Extractive",
    "Given",
    "Summariser",
    "Tree",
    "build",
    "cost",
    "grow",
    "kept",
    "rollup",
    "tree",
    "trees_of",
]
