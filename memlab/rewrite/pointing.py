"""What a question points at outright: *the same rule*, *the second*, *the other one*."""

from __future__ import annotations

import re
from collections.abc import Mapping

from memlab.rewrite._context import Context, Text
from memlab.rewrite._words import CONNECTORS, stem

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
_CLOSES = frozenset(",.;:!?")


def pointed(context: Context, probabilities: Mapping[str, float]) -> dict[str, float]:
    """Raise the probabilities of words that a question points at by their place in a list or by their noun.

    The networks learned from questions about articles, where this is rare; in a chat it is how people choose.
    """
    raised = dict(probabilities)
    for words, least in ((_chosen(context), SURE), (_described(context), LIKELY)):
        for word in words & raised.keys():
            raised[word] = max(raised[word], least)
    if any(_YEAR.fullmatch(word.key) for word in context.question.words):
        # "And in 2019?" has its year.
        raised = {word: p for word, p in raised.items() if not _YEAR.fullmatch(word)}
    return raised


def _chosen(context: Context) -> set[str]:
    """Give the words of the item of a list that a question chooses."""
    question = context.question.text
    ordinal, other, which = (pattern.search(question) for pattern in (_ORDINAL, _OTHER_ONE, _WHICH))
    if not (ordinal or other or which):
        return set()
    items = next((found for text in context.messages if len(found := listed(text)) > 1), [])
    if ordinal and items:
        place = _PLACES[ordinal.group(1).lower()]
        return items[place] if place < len(items) else set()
    if other and items:
        # What was spoken of since is not the other one.
        last = context.message(2).keys | context.message(1).keys if len(listed(context.message(1))) < 2 else set()
        rest = [item for item in items if not item & last]
        return rest[0] if len(rest) == 1 else items[-1]
    return set().union(*items) if which else set()


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
        if word.key in _ARTICLES:
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
