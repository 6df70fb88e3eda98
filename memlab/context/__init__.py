"""What a model is given with a question: made under a token budget, and measured for whether it holds the answer."""

from memlab.context.assembly import Budget, Contexts, assemble
from memlab.context.bias import bias, follow_ups, moved
from memlab.context.buffer import ByModel, RollingBuffer, add, extractive, read
from memlab.context.by_model import answer, judge
from memlab.context.dating import dated
from memlab.context.gathering import gather
from memlab.context.holding import (
    answer_kind,
    evidence_only,
    held,
    holding,
    holding_table,
    holds,
    of_another,
    whole_history,
)
from memlab.context.items import ITEM, Sources, known_facts, recent_messages, relevant_messages, summary_lines
from memlab.context.memory import Active, Memories, SessionMemory, remember
from memlab.context.tokens import Count, count

__all__ = [
    "ITEM",
    "Active",
    "Budget",
    "ByModel",
    "Contexts",
    "Count",
    "Memories",
    "RollingBuffer",
    "SessionMemory",
    "Sources",
    "add",
    "answer",
    "answer_kind",
    "assemble",
    "bias",
    "count",
    "dated",
    "evidence_only",
    "extractive",
    "follow_ups",
    "gather",
    "held",
    "holding",
    "holding_table",
    "holds",
    "judge",
    "known_facts",
    "moved",
    "of_another",
    "read",
    "recent_messages",
    "relevant_messages",
    "remember",
    "summary_lines",
    "whole_history",
]
