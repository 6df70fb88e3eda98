"""Signs that a question leans on what was said before it."""

from __future__ import annotations

import re

from memlab.rewrite._context import Context
from memlab.rewrite._words import AUXILIARIES, DEMONSTRATIVES, PRONOUNS, QUESTION_WORDS, Word, wordset

SHORT = 3
"""A question with at most so many content words, and no name, is short."""

# What asks for nothing: "Thank you very much!", "OK, good night".
_COURTESY = wordset(
    """a all alright and bye cheers cool day evening fine for goodbye good great hello help hey hi kind lot
    lovely morning much nice night no ok okay perfect right see so sure thank thanks the then very well
    wonderful yes you your"""
)
_OTHER = wordset("else other others another besides also additional")
_SAME = frozenset(["same", "such", "similar", "likewise"])
_CHOICE = re.compile(
    r"\b(which|what|the|this|that|other|first|second|third|last|next|any|each|either|neither|both)\s+ones?\b"
    r"|\b(the )?(former|latter|two|three|both|either|neither)\b\W*$"
    r"|\b(both|either|neither|any|some|all|which) of (them|these|those)\b"
    r"|\bthe (first|second|third|fourth|fifth|last|other)\b\W*$|^\W*which\W*$",
    re.I,
)
# Nouns that say nothing without what was spoken of, unless a name or "of" follows.
_DEFINITE = re.compile(
    r"\bthe ((?!of\b)[a-z]+ )?(album|article|band|battle|book|building|case|character|club|company|concert|contract"
    r"|deal|episode|event|fight|film|game|group|house|incident|issue|judge|match|meeting|movie|novel|party|play|plan"
    r"|program|project|race|rule|season|series|show|single|song|story|team|tour|trial|trip|video|war|work)s?\b"
    r"(?!,? (of|by|for|[A-Z\"]))"
)
_DEFINES = re.compile(r"\W*what is (an? )?[^\W\d_]{4,}\W*$", re.I)
_OPENS = re.compile(r"\W*(and|or|but|so|then|what about|how about|why not|how so|how come|like what|such as)\b", re.I)
_EXISTS = re.compile(
    r"\b(is|are|was|were|be|been|isn['’]t|aren['’]t|wasn['’]t|weren['’]t)\s+there\b"
    r"|\bthere(['’]s)?\s+(is|are|was|were|be|been|have|has|had|any|a|an)\b",
    re.I,
)
_EMPTY_IT = re.compile(
    r"\b(is|was|isn['’]t|would|will)\s+it\s+(be\s+)?(possible|true|likely|common|hard|easy|difficult|necessary|safe|legal|ok"
    r"|okay|better|best|worth|raining|snowing|cold|hot|late|early)\b|\b(what|which) (time|day|date|year|month) is it\b"
    r"|\bit (takes?|seems?|rains?|snows?)\b|\b(does|did|will|would) it take\b",
    re.I,
)
# After a noun or a verb and before these, "that" opens a clause: "did she say that he", "songs that were".
_CLAUSE = frozenset(PRONOUNS) | AUXILIARIES | {"the", "a", "an", "i", "you", "we", "there", "my", "your", "our"}
_OPENS_CLAUSE = wordset(
    """true possible likely clear sure say says said think thinks thought believe claim claimed mean means know known
    so"""
)


def signals(context: Context) -> list[str]:
    """Name the signs that a question does not stand alone.

    ``pronoun``, ``demonstrative`` (*this*, *those*), ``other`` (*else*, *another*), ``same``, ``choice`` (*which one*,
    *the second*), ``there``, ``then``, ``ellipsis`` (*And in 2019?*), ``definite`` (*the album*), and ``short`` for a
    question of few content words and no name. A pronoun that a name before it in the question explains is no sign, nor
    is the *it* of *is it true*.
    """
    text, found = context.question.text, context.question.words
    keys = {word.key for word in found}
    if keys <= _COURTESY and "?" not in text:
        return []
    content = [word for word in found if word.content]
    tests = {
        "pronoun": bool(open_pronouns(context)),
        "demonstrative": bool(demonstratives(found)),
        "other": _is_other([word.key for word in found]),
        "same": any(word.key in _SAME and word.text.islower() for word in found),
        "choice": bool(_CHOICE.search(text)),
        "there": "there" in keys and not _EXISTS.search(text),
        "then": bool(found) and any(word.key == "then" for word in found[1:]),
        "ellipsis": bool(found) and (bool(_OPENS.match(text)) or not content),
        "definite": _is_definite(context),
        "short": bool(found) and len(content) <= SHORT and not named(context) and not _DEFINES.match(text),
    }
    return [name for name, holds in tests.items() if holds]


def _is_other(keys: list[str]) -> bool:
    """Say whether more of something is asked for; *more than* compares, and *too* says so only at the end."""
    more = "more" in keys and "than" not in keys
    return bool(_OTHER & set(keys)) or more or keys[-1:] == ["too"]


def _is_definite(context: Context) -> bool:
    found, names = _DEFINITE.search(context.question.text), named(context)
    return found is not None and not any(found.start() <= word.start < found.end() for word in names)


def named(context: Context) -> list[Word]:
    """Give the words of names in the question: capitals inside it, names of the context and parts of the title."""
    content = [word for word in context.question.words if word.content]
    keys = {word.key for word in content}
    known = context.topic(0).keys.union(
        *(name & keys for name in context.names() if len(name & keys) >= min(2, len(name)))
    )
    first = context.question.words[0] if content else None
    return [word for word in content if (word.capital and word is not first) or word.key in known]


def open_pronouns(context: Context) -> list[Word]:
    """Give the third-person pronouns that nothing in the question explains.

    A name explains *he*, *she* and possessives after it, as in *What did Bachmann say about her time in Israel?*; not
    *him*, which would have to be *himself*, and not *it* or *they*, which seldom follow their name so closely.
    """
    found = context.question.words
    pronouns = [word for word in found if word.key in PRONOUNS]
    if _EMPTY_IT.search(context.question.text):
        pronouns = [word for word in pronouns if PRONOUNS[word.key] != "it"]
    people = [word.start for word in named(context) if word.capital or word.key in context.topic(0).keys]
    explained = min(people, default=len(context.question.text))
    return [word for word in pronouns if word.start < explained or not _follows_its_name(found, word)]


def _follows_its_name(found: list[Word], word: Word) -> bool:
    return word.key in ("he", "she", "his", "hers", "himself", "herself") or is_possessive(found, word)


def is_possessive(found: list[Word], word: Word) -> bool:
    """Say whether a pronoun owns what follows; *her* does before a content word."""
    if word.key != "her":
        return word.key in ("his", "their", "its", "theirs", "hers")
    after = found[found.index(word) + 1 :]
    return bool(after) and after[0].content


def demonstratives(found: list[Word]) -> list[Word]:
    """Give the words *this*, *that*, *these*, *those* that point at something said, not those that open a clause."""
    pointing = []
    for i, word in enumerate(found):
        if word.key not in DEMONSTRATIVES:
            continue
        after = found[i + 1].key if i + 1 < len(found) else ""
        before = found[i - 1] if i else None
        opens_clause = (
            word.key == "that"
            and before is not None
            and after != ""
            and (before.key in _OPENS_CLAUSE or (after in _CLAUSE and before.content))
        )
        if not opens_clause and not (before is not None and before.key in QUESTION_WORDS and after in QUESTION_WORDS):
            pointing.append(word)
    return pointing
