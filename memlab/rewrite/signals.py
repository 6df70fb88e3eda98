"""Signs that a question leans on what was said before it."""

from __future__ import annotations

from memlab.language.leaning import HELPING, PERSONS_OF, leaning, pattern
from memlab.language.words import DEMONSTRATIVES, HE, QUESTION_WORDS, SHE
from memlab.rewrite._context import Context, Word

SHORT = 3
"""A question with at most so many content words, and no name, is short."""

_COURTESY, _ELSE, _SAME = leaning("courtesy"), leaning("else"), leaning("same")
_CHOICE, _DEFINES, _OPENS = pattern("choice"), pattern("defines"), pattern("opens")
_EXISTS, _EMPTY_IT = pattern("exists"), pattern("empty_it")
_DEFINITE = pattern("definite", case=True)
_CLAUSE = frozenset(PERSONS_OF) | HELPING | leaning("clause")
_OPENS_CLAUSE = leaning("opens_clause")
_FOLLOWS_ITS_NAME = (HE | SHE) - {"him", "her"}


def signals(context: Context) -> list[str]:
    """Name the signs that a question does not stand alone.

    ``pronoun``, ``demonstrative`` (*this*, *those*), ``other`` (*else*, *another*), ``same``, ``choice`` (*which one*,
    *the second*), ``there``, ``then``, ``ellipsis`` (*And in 2019?*), ``definite`` (*the album*), and ``short`` for a
    question of few content words and no name. A pronoun that a name before it in the question explains is no sign, nor
    is the *it* of *is it true*.
    """
    text, words = context.question.text, context.question.words
    keys = {word.key for word in words}
    if keys <= _COURTESY and "?" not in text:
        return []
    content = [word for word in words if word.content]
    last = words[-1].key if words else ""
    tests = {
        "pronoun": bool(open_pronouns(context)),
        "demonstrative": bool(demonstratives(words)),
        # "More than" compares, and "too" asks for more only at the end.
        "other": bool(_ELSE & keys) or ("more" in keys and "than" not in keys) or last == "too",
        "same": any(word.key in _SAME and word.text.islower() for word in words),
        "choice": bool(_CHOICE.search(text)),
        "there": "there" in keys and not _EXISTS.search(text),
        "then": any(word.key == "then" for word in words[1:]),
        "ellipsis": bool(words) and (bool(_OPENS.match(text)) or not content),
        "definite": _is_definite(context),
        "short": bool(words) and len(content) <= SHORT and not named(context) and not _DEFINES.match(text),
    }
    return [name for name, holds in tests.items() if holds]


def _is_definite(context: Context) -> bool:
    match, names = _DEFINITE.search(context.question.text), named(context)
    return match is not None and not any(match.start() <= word.start < match.end() for word in names)


def named(context: Context) -> list[Word]:
    """Give the words of names in the question: capitals inside it, names of the context and parts of the title."""
    question = context.question
    names = [name for text in (*context.topics, *context.messages) for name in text.names]
    told = [name & question.keys for name in names if len(name & question.keys) >= min(2, len(name))]
    known = context.topic(0).keys.union(*told)
    places = enumerate(question.words)
    return [word for i, word in places if word.content and ((i and word.capital) or word.key in known)]


def open_pronouns(context: Context) -> list[Word]:
    """Give the third-person pronouns that nothing in the question explains.

    A name explains *he*, *she* and possessives after it, as in *What did Bachmann say about her time in Israel?*; not
    *him*, which would have to be *himself*, and not *it* or *they*, which seldom follow their name so closely.
    """
    words = context.question.words
    pronouns = [word for word in words if word.key in PERSONS_OF]
    if _EMPTY_IT.search(context.question.text):
        pronouns = [word for word in pronouns if PERSONS_OF[word.key] != "it"]
    people = [word.start for word in named(context) if word.capital or word.key in context.topic(0).keys]
    explained = min(people, default=len(context.question.text))
    return [
        word
        for word in pronouns
        if word.start < explained or not (word.key in _FOLLOWS_ITS_NAME or is_possessive(words, word))
    ]


def is_possessive(words: list[Word], word: Word) -> bool:
    """Say whether a pronoun owns what follows; *her* does before a content word."""
    if word.key != "her":
        return word.key in ("his", "their", "its", "theirs", "hers")
    after = words[words.index(word) + 1 :]
    return bool(after) and after[0].content


def demonstratives(words: list[Word]) -> list[Word]:
    """Give the words *this*, *that*, *these*, *those* that point at something said, not those that open a clause."""
    pointing = []
    for i, word in enumerate(words):
        if word.key not in DEMONSTRATIVES:
            continue
        if 0 < i < len(words) - 1:
            before, after = words[i - 1], words[i + 1].key
            opens_clause = before.key in _OPENS_CLAUSE or (after in _CLAUSE and before.content)
            if (word.key == "that" and opens_clause) or (before.key in QUESTION_WORDS and after in QUESTION_WORDS):
                continue
        pointing.append(word)
    return pointing
