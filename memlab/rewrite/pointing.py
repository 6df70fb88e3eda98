"""What a question points at outright: *the same rule*, *the second*, *the other one*, or what was spoken of."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from memlab.language.leaning import HELPING, PERSONS_OF, PLACES, leaning, pattern
from memlab.language.tokens import stem
from memlab.language.words import ARTICLES, DEMONSTRATIVES, NAME_JOINERS, POSSESSIVES, QUESTION_WORDS
from memlab.rewrite._context import Context, Text

SURE = 0.9
LIKELY = 0.6

_ORDINAL, _OTHER_ONE, _WHICH = pattern("ordinal"), pattern("other_one"), pattern("which")
_SAME_NOUN, _YEAR, _AGAIN = pattern("same_noun"), pattern("year"), pattern("again")
_LONGEST_ITEM = 4
_IN_ITEMS = ARTICLES | {"of", "in"}
_OPENS_NOUN = ARTICLES | POSSESSIVES
_CLOSES = frozenset(",.;:!?")
_ASPECTS, _BEFORE = leaning("aspects"), leaning("before")
_CLAUSE = QUESTION_WORDS | HELPING
_LEANS = frozenset(PERSONS_OF) | DEMONSTRATIVES | {"there", "one", "ones"}


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
    spoken = context.message(1).keys if _BEFORE & {word.key for word in context.question.words} else set()
    for text in context.messages[1::2]:
        words = text.keys - _ASPECTS
        spoken = spoken | words
        if words and not any(word.key in _LEANS for word in text.words):
            break
    return spoken


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
    lists = ((text.age, items) for text in context.messages if len(items := listed(text)) > 1)
    age, items = next(lists, (0, []))
    if not (ordinal or other or which) or not items:
        return set(), set()
    words = set().union(*items)
    if ordinal:
        place = PLACES[ordinal.group(1).lower()]
        return (items[place], words) if place < len(items) else (set(), set())
    if other:
        # What was spoken of since, or asked about with the list itself, is not the other one.
        since = set().union(*(text.keys for text in context.messages if text.age < max(age, 3) and text.age != age))
        rest = [item for item in items if not item & since]
        return (rest[0] if len(rest) == 1 else items[-1]), words
    return words, set()


def listed(text: Text) -> list[set[str]]:
    """Find the items of the first list in a text, *A, B and C* or *A or B*, as sets of content words."""
    for i, word in enumerate(text.words):
        if word.key not in ("and", "or") or not 0 < i < len(text.words) - 1:
            continue
        after = _item(text, i, 1)
        items, start = [_item(text, i, -1)], i
        while items[0] and (start := start - _span(text, start)) > 0 and "," in text.gap(start):
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
        if (size and _CLOSES & set(text.gap(end - size))) or not (word.content or word.key in _IN_ITEMS):
            break
        size += 1
        if word.key in ARTICLES and "&" not in text.gap(end - size):
            break
    return size


def _item(text: Text, place: int, step: int) -> set[str]:
    """Give the content words of the item before or after a place."""
    if step < 0:
        return {w.key for w in text.words[place - _span(text, place) : place] if w.content}
    item: set[str] = set()
    for i in range(place + 1, min(place + 1 + _LONGEST_ITEM, len(text.words))):
        word = text.words[i]
        inside = i == place + 1 or not (_CLOSES & set(text.gap(i)) or word.key in ARTICLES)
        if not inside or not (word.content or word.key in _IN_ITEMS):
            break
        item |= {word.key} if word.content else set()
    return item


def _described(context: Context) -> set[str]:
    """Give the words that describe the noun of *the same rule*, *that album* where it was used before."""
    nouns = set(stem(match.group(1).lower() for match in _SAME_NOUN.finditer(context.question.text)))
    for text in context.messages if nouns else []:
        for i, root in enumerate(stem(word.key for word in text.words)):
            if root in nouns and (words := _around(text, i)):
                return words
    return set()


def _around(text: Text, place: int) -> set[str]:
    """Give the content words right before a noun, and those after it with *of* or *for*."""
    first = place
    while first and text.words[first - 1].content and text.gap(first) in (" ", "-"):
        first -= 1
    words = {word.key for word in text.words[first:place]}
    after = text.words[place + 1 : place + 5]
    if after and after[0].key in ("of", "for", "about", "on"):
        inside = takewhile(lambda word: word.content or word.key in NAME_JOINERS, after[1:])
        words |= {word.key for word in inside if word.content}
    return words
