"""Questions in conversations: made to stand alone, given a context, answered and judged.

- ``messages``: histories in several forms, and follow-ups with known answers. ``rewriting``: follow-ups made to stand
  alone.
- ``memory``: what a conversation has in play, a bias towards it, and a rolling buffer of messages.
- ``sources``, ``contexts``, ``tokens``: the context of a question within a budget of MiniLM tokens.
- ``answers``: whether a context holds the answer. ``answering``: answers and verdicts of a model.
"""

from memlab.conversation.answering import answer, judge
from memlab.conversation.answers import answer_presence, contains_answer
from memlab.conversation.contexts import Budget, Contexts, assemble_contexts
from memlab.conversation.memory import RollingBuffer, SessionMemory, bias, extend, remember
from memlab.conversation.messages import Message, follow_ups, messages, read_history
from memlab.conversation.rewriting import rewrite
from memlab.conversation.sources import gather_lines
from memlab.conversation.tokens import minilm_tokens

__all__ = [
    "Budget", "Contexts", "Message", "RollingBuffer", "SessionMemory", "answer", "answer_presence", "assemble_contexts",
    "bias", "contains_answer", "extend", "follow_ups", "gather_lines", "judge", "messages", "minilm_tokens",
    "read_history", "remember", "rewrite",
]  # fmt: skip
