"""Reranking: candidates scored again with features that retrieval does not use.

``learned`` ranks by a ``network_ensemble`` of the ``reranker_features``, which
``reranker_training`` makes; ``light`` needs none, ``cross_encoder`` runs one of yours, and
``llm_grades`` asks a language model. ``rank_blending`` keeps some of the ranking that was there.
"""

from memlab.errors import explain_arguments
from memlab.rerank.cross_encoder import cross_encoder
from memlab.rerank.learned_reranker import BUNDLED_MODEL, learned
from memlab.rerank.light_reranker import light
from memlab.rerank.llm_grades import rerank_llm
from memlab.rerank.network_ensemble import Model
from memlab.rerank.rank_blending import blend_by_position
from memlab.rerank.reranker_training import held_out_recall, hold_out_scopes, train, training_lists

__all__ = [
    "BUNDLED_MODEL",
    "Model",
    "blend_by_position",
    "cross_encoder",
    "held_out_recall",
    "hold_out_scopes",
    "learned",
    "light",
    "rerank_llm",
    "train",
    "training_lists",
]

explain_arguments(globals())
