"""What a model is given with a question: made under a token budget, and measured for whether it holds the answer.

Rankings, summaries and facts come in; ``sources`` makes them rows, ``assembly`` a context: ``filling`` chooses its
``lines`` (``overlap``: what is there already), which are written down last. ``dating`` writes days behind words that
only mean them. ``holding`` says whether the answer (``answers``) is in a context, ``by_model`` has it given and
judged. ``memory`` keeps what a session has in play, ``bias`` raises it in a ranking, ``buffer`` summarises a running
conversation.
"""

from memlab.context.assembly import Budget, Contexts, assemble
from memlab.context.bias import bias, follow_ups, rank_changes
from memlab.context.buffer import ByModel, RollingBuffer, append_turns, extractive, update_summary
from memlab.context.by_model import answer, judge
from memlab.context.dating import dated
from memlab.context.holding import (
    answer_kind,
    answers_in,
    evidence_only,
    holding,
    holding_table,
    holds,
    of_another,
    whole_history,
)
from memlab.context.memory import Active, Memories, SessionMemory, remember
from memlab.context.sources import ITEM, Sources, gather, known_facts, recent_messages, relevant_messages, summary_lines
from memlab.context.tokens import Count, count

__all__ = [
    "ITEM", "Active", "Budget", "ByModel", "Contexts", "Count", "Memories", "RollingBuffer", "SessionMemory", "Sources",
    "answer", "answer_kind", "answers_in", "append_turns", "assemble", "bias", "count", "dated", "evidence_only",
    "extractive", "follow_ups", "gather", "holding", "holding_table", "holds", "judge", "known_facts", "of_another",
    "rank_changes", "recent_messages", "relevant_messages", "remember", "summary_lines", "update_summary",
    "whole_history",
]  # fmt: skip
