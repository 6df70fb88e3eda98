"""A name in a question, and the pronoun that takes its place."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FORMS = {"he": ("he", "him", "his"), "she": ("she", "her", "her"), "they": ("they", "them", "their")}
_PLURAL = {"is": "are", "was": "were", "does": "do", "has": "have"}
_BEFORE_OBJECT = r"(?:about|at|behind|by|for|from|of|on|than|to|with|like|near|around)"


def only(names: Sequence[str], text: str) -> str | None:
    """Give the one name in a text."""
    found = [name for name in names if re.search(rf"\b{re.escape(name)}\b", text)]
    return found[0] if len(found) == 1 else None


def gender(texts: Sequence[str]) -> str:
    """Say which pronoun stands in sentences about a name; *they* where that is not clear."""
    words = re.findall(r"[a-z]+", " ".join(texts).lower())
    he, she = (sum(word in _FORMS[form] for word in words) for form in ("he", "she"))
    return "he" if he > 2 * she else "she" if she > 2 * he else "they"


def replaced(text: str, name: str, pronoun: str) -> str:
    """Put a pronoun in the place of a name.

    >>> from memlab.rewrite._follow_up_names import replaced
    >>> replaced("What is Kim's plan for Kim when Kim moves?", "Kim", "she")
    'What is her plan for her when she moves?'
    """
    subject, object_, possessive = _FORMS[pronoun]
    name = re.escape(name)
    text = re.sub(rf"\b{name}['’]s?(?!\w)", possessive, text)
    text = re.sub(rf"\b({_BEFORE_OBJECT}) {name}\b", rf"\1 {object_}", text)
    text = re.sub(rf"^(Who|What) (\w+ed) {name}\b", rf"\1 \2 {object_}", text)
    text = re.sub(rf"\b{name}(?=\W*$)", object_, text)
    if pronoun == "they":
        for one, many in _PLURAL.items():
            text = re.sub(rf"\b{one} {name}\b", f"{many} {subject}", text)
            text = re.sub(rf"^{one.title()} {name}\b", f"{many.title()} {subject}", text)
    return re.sub(rf"\b{name}\b", subject, text)
