"""What a question points at outright: *the same rule*, *the second*, *the other one*, or what was spoken of."""

from __future__ import annotations

import re
from collections.abc import Mapping

from memlab.rewrite._context import Context, Text
from memlab.rewrite._words import AUXILIARIES, CONNECTORS, DEMONSTRATIVES, PRONOUNS, QUESTION_WORDS, stem, wordset

SURE = 0.9
LIKELY = 0.6

_PLACES = {"first": 0, "former": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4, "last": -1, "latter": -1}
_ORDINAL = re.compile(r"\bthe (first|former|second|third|fourth|fifth|last|latter)(\s+one)?\b\W*(?=$|[a-z]+)", re.I)
_OTHER_ONE = re.compile(
    r"\b(the|that) other( one)?\b(?=\W*$|\W+(is|was|are|were|do|does|did|has|have|cost|one)\b| one\b)", re.I
)
_WHICH = re.compile(r"\b(which|what|either|neither|both|any)( one\b| of (them|these|those|the two)\b|\W*$)", re.I)
_SAME_NOUN = re.compile(r"\b(?:same|this|that|these|those|such)\s+([^\W\d_]{3,})", re.I)
_YEAR = re.compile(r"(1[5-9]|20)\d\d")
_LONGEST_ITEM = 4
_ARTICLES = frozenset(("the", "a", "an"))
_IN_ITEMS = _ARTICLES | {"of", "in"}
_OPENS_NOUN = _ARTICLES | {"my", "your", "our", "his", "her", "its", "their"}
_CLOSES = frozenset(",.;:!?")

# What is asked about a thing, and not the thing.
_ASPECTS = wordset(
    """amount age average bill charge charged charges cost costs date dates day days distance duration end ended
    expensive far finish finished happen happened happens hour hours kilometres kind last lasted length long
    miles minute minutes moment month months name paid pay place point price reason size sort spend spent start
    started sum take taken takes time times took total type week weeks weight year years"""
)
_CLAUSE = QUESTION_WORDS | AUXILIARIES
_AGAIN = re.compile(r"\W*(and )?(what about|how about|same( question)? for|and)\b", re.I)
_BEFORE = frozenset(("before", "previously", "earlier", "formerly"))
_LEANS = frozenset(PRONOUNS) | DEMONSTRATIVES | {"there", "one", "ones"}


def pointed(context: Context, probabilities: Mapping[str, float]) -> dict[str, float]:
    """Raise the probabilities of words that a question points at: by place in a list, by a noun, or by naming nothing.

    The networks learned from questions about articles, where this is rare; in a chat it is how people choose, and how
    they go on. Words of what was not chosen, and of what was measured before, are left out.
    """
    chosen, rest = _chosen(context)
    spoken_of = set() if chosen else _spoken_of(context)
    asked, replaced = _asked_again(context)
    out = rest - chosen | replaced | (_ASPECTS if spoken_of else set())
    raised = {word: p for word, p in probabilities.items() if word not in out}
    for words, least in ((chosen, SURE), (_described(context), LIKELY), (spoken_of, LIKELY), (asked, LIKELY)):
        for word in words & raised.keys():
            raised[word] = max(raised[word], least)
    if any(_YEAR.fullmatch(word.key) for word in context.question.words):
        # "And in 2019?" has its year.
        raised = {word: p for word, p in raised.items() if not _YEAR.fullmatch(word)}
    return raised


def _spoken_of(context: Context) -> set[str]:
    """Give the words of what was asked about last, for a question that names nothing: *And when?*, *Which day was it?*

    Questions that themselves lean on one before (*How much did it cost?*) lead further back.
    """
    if context.topics or context.question.keys - _ASPECTS:
        return set()
    # What came before something is found by what it was.
    found = context.message(1).keys if _BEFORE & {word.key for word in context.question.words} else set()
    for text in context.messages[1::2]:
        words = text.keys - _ASPECTS
        found = found | words
        if words and not any(word.key in _LEANS for word in text.words):
            break
    return found


def _asked_again(context: Context) -> tuple[set[str], set[str]]:
    """Give what is asked again of another thing, as in *And the tablet?*, and the words of the thing before.

    Its answer goes with it.
    """
    opening = _AGAIN.match(context.question.text)
    last = context.message(2)
    if context.topics or not opening or not last.words:
        return set(), set()
    named = [word for word in context.question.words if word.start >= opening.end()]
    thing = {word.key for word in named if word.content and not word.key.isdigit()} - _ASPECTS
    if not thing or any(word.key in _CLAUSE for word in named):
        return set(), set()
    replaced = _nouns(last)
    return last.keys - replaced, (replaced | context.message(1).keys - last.keys) - context.question.keys


def _nouns(question: Text) -> set[str]:
    """Give the words of names, and those after an article or possessive, but for what is asked about them."""
    keys = [word.key for word in question.words]
    inside = {i for start, end in question.runs for i in range(start, end) if start > 0}
    for i, word in enumerate(question.words):
        if i and (keys[i - 1] in _OPENS_NOUN or i - 1 in inside) and word.content and word.key not in _ASPECTS:
            inside.add(i)
    last = len(keys) - 1
    first = max((i for i in range(last + 1) if i not in inside), default=0)
    # "Where does my brother live?" ends with its verb.
    if last - first > 1 and keys[first - 1 : first] and keys[first - 1] in ("do", "does", "did"):
        inside.discard(last)
    return {keys[i] for i in inside}


def _chosen(context: Context) -> tuple[set[str], set[str]]:
    """Give the words of the item of a list that a question chooses, and those of the whole list."""
    question = context.question.text
    ordinal, other, which = (pattern.search(question) for pattern in (_ORDINAL, _OTHER_ONE, _WHICH))
    lists = ((text.age, found) for text in context.messages if len(found := listed(text)) > 1)
    age, items = next(lists, (0, []))
    if not (ordinal or other or which) or not items:
        return set(), set()
    words = set().union(*items)
    if ordinal:
        place = _PLACES[ordinal.group(1).lower()]
        return (items[place], words) if place < len(items) else (set(), set())
    if other:
        # What was spoken of since, or asked about with the list itself, is not the other one.
        since = set().union(*(text.keys for text in context.messages if text.age < max(age, 3) and text.age != age))
        rest = [item for item in items if not item & since]
        return (rest[0] if len(rest) == 1 else items[-1]), words
    return words, set()


def listed(text: Text) -> list[set[str]]:
    """Find the items of the first list in a text, *A, B and C* or *A or B*, as sets of content words."""
    found = text.words
    for i, word in enumerate(found):
        if word.key not in ("and", "or") or not 0 < i < len(found) - 1:
            continue
        after = _item(text, i, 1)
        items, start = [_item(text, i, -1)], i
        while items[0] and (start := start - _span(text, start)) > 0 and "," in _gap(text, start):
            items.insert(0, _item(text, start, -1))
        items = [item for item in [*items, after] if item]
        if after and len(items) > 1:
            return items
    return []


def _span(text: Text, end: int) -> int:
    """Count the words of the item that ends before a place, back to its article or to a comma."""
    size = 0
    while size < _LONGEST_ITEM and end - size > 0:
        word = text.words[end - size - 1]
        if (size and _CLOSES & set(_gap(text, end - size))) or not (word.content or word.key in _IN_ITEMS):
            break
        size += 1
        if word.key in _ARTICLES and "&" not in _gap(text, end - size):
            break
    return size


def _item(text: Text, place: int, step: int) -> set[str]:
    """Give the content words of the item before or after a place."""
    if step < 0:
        return {w.key for w in text.words[place - _span(text, place) : place] if w.content}
    item: set[str] = set()
    for i in range(place + 1, min(place + 1 + _LONGEST_ITEM, len(text.words))):
        word = text.words[i]
        inside = i == place + 1 or not (_CLOSES & set(_gap(text, i)) or word.key in _ARTICLES)
        if not inside or not (word.content or word.key in _IN_ITEMS):
            break
        item |= {word.key} if word.content else set()
    return item


def _gap(text: Text, place: int) -> str:
    """Give what stands between a word and the one before it."""
    return text.text[text.words[place - 1].end : text.words[place].start] if 0 < place < len(text.words) else ""


def _described(context: Context) -> set[str]:
    """Give the words that describe the noun of *the same rule*, *that album* where it was used before."""
    nouns = {stem(match.group(1).lower()) for match in _SAME_NOUN.finditer(context.question.text)}
    for text in context.messages:
        for i, word in enumerate(text.words):
            if stem(word.key) in nouns and (words := _around(text, i)):
                return words
    return set()


def _around(text: Text, place: int) -> set[str]:
    """Give the content words right before a noun, and those after it with *of* or *for*."""
    words, i = set(), place - 1
    while i >= 0 and text.words[i].content and text.text[text.words[i].end : text.words[i + 1].start] in (" ", "-"):
        words.add(text.words[i].key)
        i -= 1
    after = text.words[place + 1 : place + 5]
    if after and after[0].key in ("of", "for", "about", "on"):
        for word in after[1:]:
            if not word.content and word.key not in CONNECTORS:
                break
            words |= {word.key} if word.content else set()
    return words
