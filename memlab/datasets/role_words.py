"""The words by which tools call the roles of a conversation, in logs, tables and exports."""

from __future__ import annotations

import re
from functools import lru_cache

from memlab.datasets.record_fields import JsonValue

PRODUCTS = frozenset(
    ("ai assistant", "chatgpt", "github copilot", "le chat", "meta ai", "microsoft copilot")
)
"""Assistants whose names nobody else has: they are assistants in a messenger too."""
ASSISTANTS = PRODUCTS.union(
    ("assistant", "bard", "claude", "copilot", "deepseek", "gemini", "gpt", "grok", "perplexity")
)
"""Names of assistants, some of which people have too."""
_FAMILIES = (
    "(chat)?gpt|claude|gemini|gemma|(code)?llama|mistral|mixtral|qwen|deepseek|phi|command|grok"
)
_SIZES = (
    "pro|flash|ultra|nano|mini|tiny|small|medium|large|max|plus|turbo|lite|opus|sonnet|haiku"
    "|chat|reasoner|coder|instruct|preview|beta|latest"
)
_MODEL = (
    rf"([\w.-]+/)*({_FAMILIES})([-_ :./]?[\w.:/-]*\d[\w.:/-]*( ({_SIZES}))?"
    rf"|[-_:./]({_SIZES})([-_:.][\w:.-]*)?)"
    r"|([\w.-]+/)*o\d([-_][\w-]*)?"
)
"""Models that a role may name with their number or size: ``gpt-4o``, ``google/gemini-pro``."""
_ROLES = {
    "user": "(user|human)([ _]?message(chunk)?)?|person",
    "assistant": "(assistant|ai|api|bot)([ _]?message(chunk)?)?|model|machine|llm|chatbot"
    "|(ai|virtual|voice|digital|chat|llm)[ _-]?(assistant|agent|bot)|(assistant|agent|bot)[ _-]ai"
    f"|bing|llama|mistral|qwen|{'|'.join(sorted(ASSISTANTS))}"
    rf"|assistant\s*[^\w\s].*|assistant[ _](\d|{_FAMILIES}).*|{_MODEL}",
    "system": "system([ _]?message(chunk)?)?|developer|platform"
    "|error|event|info|notification|status",
    "document": "document",
    "tool": r"(?s)(.*[\W_])?(tool|function)s?"
    r"([^\w\s].*|_.*|([ _]?(message|call|output|result|use|response|chunk)s?)*)"
    r"|(\S*[\W_])?(observation|ipython)s?([^\w\s].*)?",
}
"""Forms of lower case; an assistant manager and the power tool shop are people."""
_TURN_ROLES = {"tool": "other", "document": "other"}
_PLAIN = re.compile(
    "(user|human|assistant|ai|api|bot|model|machine|llm|chatbot|gpt|system|developer|tool|function)"
    "([ _]?message(chunk)?)?"
)
_NOBODYS_NAMES = frozenset(("Assistant", "Model", "Machine", "Chatbot"))


def normalise_role(role_word: JsonValue) -> str | None:
    """Give the role that a tool calls so; ``None`` for no role, as for a name or another word.

    :returns: ``user``, ``assistant``, ``system``, ``document`` or ``tool``.

    >>> [normalise_role(word) for word in ("Human", "gpt-4o", "tool_output", "customer", None)]
    ['user', 'assistant', 'tool', None, None]
    """
    if not isinstance(role_word, str):
        return None
    return _role_of_lower_case_word(role_word.strip().lower())


def turn_role_of_word(role_word: JsonValue) -> str | None:
    """Give the role that a tool calls so as a turn has it: ``other`` for tools and documents.

    >>> [turn_role_of_word(word) for word in ("llm", "other", "function", "customer")]
    ['assistant', 'other', 'other', None]
    """
    if isinstance(role_word, str) and role_word.strip().lower() == "other":
        return "other"
    role = normalise_role(role_word)
    return _TURN_ROLES.get(role or "", role)


def is_plain_role_word(role_or_name: str) -> bool:
    """Say whether somebody is called by the plain word for a role, and not by a name.

    Ai, Bot and System are names of people; Claude and ChatGPT are names of assistants.

    >>> [is_plain_role_word(called) for called in ("ai", "AI", "Assistant", "Ai", "ChatGPT")]
    [True, True, True, False, False]
    """
    is_capitalised = role_or_name.istitle() and role_or_name not in _NOBODYS_NAMES
    return not is_capitalised and _PLAIN.fullmatch(role_or_name.lower()) is not None


@lru_cache(1 << 12)
def _role_of_lower_case_word(role_word: str) -> str | None:
    for role, pattern in _ROLES.items():
        if re.fullmatch(pattern, role_word):
            return role
    return None
