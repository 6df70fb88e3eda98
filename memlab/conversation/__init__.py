"""Questions in conversations: rewriting, contexts, answers and verdicts.

- ``conversation_histories``: histories in several forms, and files of follow-ups.
  ``question_rewriting``: follow-ups as standalone questions.
- ``session_memory``: the sessions in play, a bias towards them, and a rolling buffer of messages.
- ``context_lines``, ``contexts``: the context of a question within a budget of MiniLM tokens.
- ``answer_containment``: whether a context contains the answer. ``answers_and_judge``: answers and
  verdicts of a model.
"""

from memlab.conversation.answer_containment import answer_presence, contains_answer
from memlab.conversation.answers_and_judge import answer, judge
from memlab.conversation.context_lines import gather_lines
from memlab.conversation.contexts import Budget, Contexts, assemble_contexts, minilm_tokens
from memlab.conversation.conversation_histories import (
    Message,
    parse_messages,
    read_follow_ups,
    read_history,
)
from memlab.conversation.question_rewriting import rewrite
from memlab.conversation.session_memory import (
    RollingBuffer,
    SessionMemory,
    bias,
    extend_buffer,
    remember,
)
from memlab.errors import explain_arguments

__all__ = [
    "Budget",
    "Contexts",
    "Message",
    "RollingBuffer",
    "SessionMemory",
    "answer",
    "answer_presence",
    "assemble_contexts",
    "bias",
    "contains_answer",
    "extend_buffer",
    "gather_lines",
    "judge",
    "minilm_tokens",
    "parse_messages",
    "read_follow_ups",
    "read_history",
    "remember",
    "rewrite",
]

explain_arguments(globals())
