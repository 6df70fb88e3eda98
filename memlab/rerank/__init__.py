"""Reranking: candidates scored again with features that retrieval does not use."""

from memlab.rerank.blend import position_aware
from memlab.rerank.cross_encoder import cross_encoder
from memlab.rerank.graded import rerank_llm
from memlab.rerank.learned import BOX, box_fits, learned
from memlab.rerank.light import light
from memlab.rerank.model import Model
from memlab.rerank.training import cross_validate, held_out_scores, train, training_lists

__all__ = [
    "BOX",
    "Model",
    "box_fits",
    "cross_encoder",
    "cross_validate",
    "held_out_scores",
    "learned",
    "light",
    "position_aware",
    "rerank_llm",
    "train",
    "training_lists",
]
