"""Rewriting without a model: what was asked and answered last is appended."""

from __future__ import annotations

from collections.abc import Sequence

from memlab.conversation.gate import signs
from memlab.conversation.messages import Message
from memlab.language.tokens import Token, base, tokens
from memlab.language.words import STOP_WORDS

MOST = 20
"""Content words of an answer that are appended; long answers would drown the question."""


def appended(question: str, history: Sequence[Message]) -> str:
    """Append the content words of the last question that stood alone, and of the last question and its answer.

    >>> from memlab.conversation import messages
    >>> from memlab.conversation.fallback import appended
    >>> appended("And when was that?", messages(["How much did the oak desk cost?", "$210."]))
    'And when was that? (oak desk cost 210)'
    """
    asked = [message.content for message in history if message.role == "user"]
    alone = next((text for text in reversed(asked) if not signs(text)), asked[0] if asked else "")
    answers = [message.content for message in history[-1:] if message.role == "assistant"]
    words = [word for text in (alone, *asked[-1:]) for word in content(text)]
    words += [word for text in answers for word in content(text)[:MOST]]
    has = {base(word.text) for word in tokens(question)}
    new = {base(word.text): word.text for word in reversed(words) if base(word.text) not in has}
    return f"{question} ({' '.join(reversed(new.values()))})" if new else question


def content(text: str) -> list[Token]:
    """Give the words of a text that carry meaning."""
    return [word for word in tokens(text) if base(word.text) not in STOP_WORDS and word.key not in STOP_WORDS]
