"""What a model is given with a question: made under a token budget, and measured for whether it holds the answer.

Rankings, summaries and facts come in; ``sources`` makes them rows, ``assembly`` a context: ``filling`` chooses its
``lines``, which are written down last. ``holding`` says whether the answer (``answers``) is in a context, ``by_model``
has it given and judged, ``rules`` judge without a model, ``labels`` compares judges with people. ``memory`` keeps what
a session has in play, ``bias`` raises it in a ranking, ``buffer`` summarises a running conversation.
"""

from memlab.context.assembly import Budget, Contexts, assemble
from memlab.context.bias import bias, follow_ups, rank_changes
from memlab.context.buffer import ByModel, RollingBuffer, append_turns, extractive, update_summary
from memlab.context.by_model import answer, judge
from memlab.context.holding import (
    evidence_only,
    holding,
    holding_table,
    holds,
    of_another,
    whole_history,
)
from memlab.context.labels import agreement, disagreements, labelled
from memlab.context.memory import Active, Memories, SessionMemory, remember
from memlab.context.rules import by_rules, refuses, token_f1
from memlab.context.sources import ITEM, Sources, gather, known_facts, recent_messages, relevant_messages, summary_lines
from memlab.context.tokens import Count, count
from memlab.language.dating import dated

__all__ = [
    "ITEM", "Active", "Budget", "ByModel", "Contexts", "Count", "Memories", "RollingBuffer", "SessionMemory", "Sources",
    "agreement", "answer", "append_turns", "assemble", "bias", "by_rules", "count",
    "dated", "disagreements", "evidence_only", "extractive", "follow_ups", "gather", "holding", "holding_table",
    "holds", "judge", "known_facts", "labelled", "of_another", "rank_changes", "recent_messages", "refuses",
    "relevant_messages", "remember", "summary_lines", "token_f1", "update_summary", "whole_history",
]  # fmt: skip
