"""What a question is like: its pronouns, what it points at, and how it follows what was said."""

from __future__ import annotations

import itertools
import re

from memlab.language.leaning import FUNCTION_WORDS, JOINING, PERSONS_OF, leaning, listed, pattern
from memlab.language.words import DEMONSTRATIVES
from memlab.rewrite._context import Context, Text
from memlab.rewrite._words import stem

_POSSESSIVE = frozenset(["his", "their", "its", "theirs", "hers"])
_OTHER, _MORE = leaning("other"), leaning("more")
_ANY_OTHER = pattern("any_other")
_OPENINGS = listed("openings")
_YES_NO = leaning("yes_no")


def stems(text: Text) -> set[str]:
    """Give the stems of the content words."""
    return {stem(word.key) for word in text.words if word.content}


def question_features(context: Context) -> dict[str, float]:
    """Describe a question, and how it hangs together with topic and messages."""
    question = context.question
    keys = [word.key for word in question.words]
    return _signs(question, keys) | _shape(question, keys) | _ties(context, keys)


def _signs(question: Text, keys: list[str]) -> dict[str, float]:
    found = set(keys)
    pointing = [i for i, key in enumerate(keys) if key in DEMONSTRATIVES]
    # "her" is a possessive when a noun follows.
    her = any(a == "her" and b not in FUNCTION_WORDS for a, b in itertools.pairwise(keys))
    return {
        **{name: any(PERSONS_OF.get(key) == name for key in keys) for name in ("he", "she", "they", "it")},
        "possessive": bool(found & _POSSESSIVE) or her,
        "pronoun": any(key in PERSONS_OF for key in keys),
        "this_noun": any(i + 1 < len(keys) and keys[i + 1] not in FUNCTION_WORDS for i in pointing),
        "this": any(i + 1 >= len(keys) or keys[i + 1] in FUNCTION_WORDS for i in pointing),
        "the_noun": bool(re.search(r"\b[Tt]he [a-z]", question.text)),
        "else": "else" in found,
        "other": bool(found & _OTHER),
        "more": bool(found & _MORE),
        "any_other": bool(_ANY_OTHER.search(question.text)),
        "there": "there" in found,
        "then": "then" in found,
        "same": "same" in found,
        "article": "article" in found,
    }


def _shape(question: Text, keys: list[str]) -> dict[str, float]:
    content = [word for word in question.words if word.content]
    return {
        **{f"asks_{name}": name in keys[:4] for name in _OPENINGS},
        "yes_no": bool(keys) and keys[0] in _YES_NO,
        "length": min(len(keys), 15) / 10,
        "content": min(len(content), 8) / 4,
        "capital": any(word.capital for word in content if word is not question.words[0]),
        "open_end": bool(keys) and keys[-1] in JOINING,
    }


def _ties(context: Context, keys: list[str]) -> dict[str, float]:
    title, question, answer = context.topic(0), context.message(2), context.message(1)
    here, asked, answered = stems(context.question), stems(question), stems(answer)
    pronouns = {PERSONS_OF[key] for key in keys if key in PERSONS_OF}
    before = {PERSONS_OF[w.key] for text in context.messages[1::2] for w in text.words if w.key in PERSONS_OF}
    last = {PERSONS_OF[w.key] for w in question.words if w.key in PERSONS_OF}
    told = {PERSONS_OF[w.key] for w in answer.words if w.key in PERSONS_OF}
    spoken = [word.key for text in context.messages for word in text.words]
    last_keys = [word.key for word in question.words]
    return {
        "topic": bool(title.words),
        "title_share": len(title.keys & set(keys)) / max(1, len(title.keys)),
        "title_any": bool(title.keys & set(keys)),
        "title_length": len(title.keys) / 3,
        "title_the": title.text.lower().startswith("the "),
        "title_spoken": min(5, sum(key in title.keys for key in spoken)) / 5,
        "title_asked": bool(title.keys & question.keys),
        "title_answered": bool(title.keys & answer.keys),
        "messages": len(context.messages) / 6,
        "answer_length": min(len(answer.words), 40) / 20,
        "no_answer": bool(context.messages) and not answer.words,
        "pronoun_before": bool(pronouns & before),
        "pronoun_new": bool(pronouns - before),
        "pronoun_again": bool(pronouns & last),
        "pronoun_told": bool(pronouns & told),
        **{f"told_{name}": name in told for name in ("he", "she", "they")},
        "asked_with_pronoun": bool(last),
        "asked_other": "else" in last_keys or "other" in last_keys,
        "on_asked": bool(here & asked),
        "on_answered": bool(here & answered),
        **_names_told(context, title.keys),
    }


def _names_told(context: Context, title: set[str]) -> dict[str, float]:
    """Count the names in the last answer that are not the title's."""
    answer = context.message(1)
    keys = [{word.key for word in answer.words[i:j] if word.content} for i, j in answer.runs]
    fresh = sum(not key <= title for key in keys)
    return {"names_told": min(fresh, 4) / 2, "one_name_told": fresh == 1}
