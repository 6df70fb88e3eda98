"""Reading a statement: what it does, and the normal form of its subject, predicate and object."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from memlab.language.dates import dates
from memlab.language.numbers import numbers
from memlab.language.statements import entries, table, wordlist
from memlab.language.tokens import plain, stem
from memlab.language.verbs import forms
from memlab.language.words import ARTICLES, BE, FINITE_AUXILIARIES, MONTHS, POSSESSIVES, WEEKDAYS

USER = "user"
# Texts of which the normal form is remembered: a memory that runs for months meets new ones without end.
_KEPT = 100_000
ASSERT, END, CORRECT, HINT, UPDATE, DENIAL = "assert", "end", "correct", "hint", "update", "deny"

SELF = wordlist("self")
_ADVERBS, _COMPANY, _SPELLINGS = wordlist("no_change"), wordlist("company"), table("spellings")
_CURRENCY = table("currencies")
_AUXILIARIES = FINITE_AUXILIARIES | BE
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MONEY = re.compile(r"([$€£¥])\s*(\d[\d,]*(?:\.\d+)?)")
_THOUSANDS = re.compile(r"\b\d{1,3}(?:,\d{3})+\b")
_CODE = re.compile(r"[^\W_]+(?:[._@/:\-–][^\W_]+)*|[\w\-]+")
_PHONE = re.compile(r"[\d\-().+ ]+")

_ENDING = re.compile(
    r"\bno longer\b|\bnot\b(?! only)|\bnever\b|\bany ?more\b|\bany longer\b|\bstopped\b"
    r"|\bhas left\b|\bgave up\b|\bceased to\b|\bformerly\b"
    r"|(?<!\bis )(?<!\bare )(?<!\bam )(?<!\bget )(?<!\bgot )(?<!\bgetting )\bused to\b",
    re.I,
)
_DENYING = re.compile(r"\bnot\b|\bnever\b", re.I)
_OVER = re.compile(r"\bno longer\b|\bany ?more\b|\bany longer\b|\bused to\b", re.I)
_TRAILING = re.compile(r",?\s*\b(?:any ?more|any longer|no longer)\b[\s.!]*$", re.I)
_NO_LONGER = re.compile(r"\bno longer\b[\s.!]*$", re.I)
_MEANT = re.compile(
    r"\bI meant\b|\bI mean\b|\bmisspoke\b|\bmy mistake\b|\bcorrection\b|\bgot (?:it|that) wrong\b|\bI was wrong\b", re.I
)
_ACTUALLY = re.compile(r"^\W*(?:actually|wait|no)\b", re.I)
_NEW = re.compile(r"\bnow\b|\bnowadays\b|\bthese days\b|\bswitched\b|\bchanged\b", re.I)
_LEADING_NOW = re.compile(r"^(?:now|actually|currently)\b,?\s*|,?\s+(?:now|these days|nowadays)[.!]?$", re.I)
_SHAPES = (
    (re.compile(r"^not (?P<old>.+?),? but (?P<new>.+)$", re.I), CORRECT),
    (re.compile(r"^(?P<new>.+?)(?:,| and) not (?P<old>.+)$", re.I), CORRECT),
    (re.compile(r"^(?P<new>.+?),? rather than (?P<old>.+)$", re.I), CORRECT),
    (re.compile(r"^(?P<new>.+?),? instead of (?P<old>.+)$", re.I), UPDATE),
    (re.compile(r"^from (?P<old>.+?) to (?P<new>.+)$", re.I), UPDATE),
)
_CONTRACTIONS = (
    ("can't", "cannot"), ("won't", "will not"), ("n't", " not"), ("'re", " are"), ("'m", " am"), ("'ve", " have"),
)  # fmt: skip


class Reading(NamedTuple):
    """What a statement does, and its predicate and object without the words that say so.

    ``hint`` is a bare "actually", which corrects only where one value can be true.
    """

    kind: str
    predicate: str
    object: str
    instead_of: str | None


def read(predicate: str, obj: str, text: str | None) -> Reading:
    """Find the cue words of ends, corrections and updates."""
    relation = _plain(predicate)
    value = _plain(obj).strip()
    kind = ASSERT
    if _MEANT.search(f"{relation} {value} {text or ''}"):
        kind = CORRECT
    elif _NEW.search(relation) or _LEADING_NOW.search(value):
        kind = UPDATE
    elif _ACTUALLY.search(relation) or _ACTUALLY.search(value) or _ACTUALLY.search(text or ""):
        kind = HINT
    value = _LEADING_NOW.sub("", _MEANT.sub("", value)).strip(" ,") or value
    old = None
    for shape, means in _SHAPES:
        shaped = shape.match(value)
        if shaped and (not value.lower().startswith("from ") or _NEW.search(relation) or "moved" in relation):
            old, value, kind = shaped["old"].strip(), shaped["new"].strip(), means
            break
    # A trailing "any more" says nothing without its "not"; that stands in the predicate.
    ending = _ENDING.search(relation) or _NO_LONGER.search(value)
    if ending and old is None:
        # A denial beside a correction ("no, she does not work there") is an end as well; a plain one holds by itself.
        kind = DENIAL if _DENYING.search(relation) and not _OVER.search(f"{relation} {value}") else END
    value = _TRAILING.sub("", value).strip() or value
    relation = _MEANT.sub(" ", _ENDING.sub(" ", relation))
    return Reading(kind, " ".join(relation.split()), value, old)


def owner(subject: str, predicate: str, speaker: str | None) -> tuple[str, str]:
    """Resolve "I", "my" and "the user" to the speaker, and "my API key | is" to "speaker | API key"."""
    me = " ".join(_words(speaker)) if speaker else USER
    words = _plain(subject).split()
    while words and words[0].casefold() in ARTICLES:
        words = words[1:]
    if words and words[0].casefold().strip(".,") in SELF:
        if len(words) == 1 or words[1:] == ["'s"]:
            return me, predicate
        holder, rest = me, words[1:]
    else:
        at = next((i for i, word in enumerate(words) if word.endswith(("'s", "s'"))), None)
        if at is None or at == len(words) - 1:
            return " ".join(words) if words else me, predicate
        name = re.sub(r"'s?$", "", " ".join(words[: at + 1]))
        holder, rest = (me if name.casefold() in SELF else name), words[at + 1 :]
    if not set(_words(predicate)) - _AUXILIARIES - _ADVERBS:
        return holder, " ".join(rest)
    return f"{holder} {' '.join(rest)}", predicate


@lru_cache(maxsize=_KEPT)
def relation(predicate: str) -> str:
    """Give the normal form of a predicate: stems without auxiliaries, articles and adverbs.

    >>> from memlab.knowledge._text import relation
    >>> relation("is working at"), relation("worked at the"), relation("API key is"), relation("is")
    ('work at', 'work at', 'api key', 'be')
    """
    words = _words(predicate)
    content = [w for w in words if w not in _ADVERBS | ARTICLES | POSSESSIVES | _AUXILIARIES | {"that"}]
    if not content:
        return "have" if {"has", "have", "had"} & set(words) else "be"
    return " ".join(stems(content))


class Value(NamedTuple):
    """An object in normal form: its numbers and codes, compared as values, and its other words."""

    exact: tuple[str, ...]
    words: tuple[str, ...]
    names: frozenset[str]
    initials: str = ""


@lru_cache(maxsize=_KEPT)
def value(text: str) -> Value:
    """Take an object or a subject apart.

    >>> from memlab.knowledge._text import value
    >>> value("$1,250.00").exact == value("1250 dollars").exact, value("3 May 1990") == value("1990-05-03")
    (True, True)
    >>> value("sk-AB12").exact == value("sk-AB13").exact
    False
    """
    text = _valued(_plain(text))
    text = _THOUSANDS.sub(lambda m: m[0].replace(",", ""), _MONEY.sub(r"\2 \1", text))
    text = re.sub(r"'s\b", "", text)
    if re.search(r"\d", text) and _PHONE.fullmatch(text):
        text = re.sub(r"[^\d.]+", " ", text)
    text = re.sub(r"[$€£¥]", lambda m: f" {_CURRENCY[m[0]]} ", text)
    exact, words, names, initials = [], [], set(), ""
    for token in _CODE.findall(text):
        low = token.casefold()
        if re.fullmatch(r"\d+\.?\d*", low):
            # A leading zero belongs to a number that is dialled, not counted.
            exact.append(low if low.startswith("0") else f"{float(low):.10g}" if len(low) < 12 else low)
        elif "@" in low:
            exact.append(low)
        elif _is_code(token):
            exact.append(token)
        else:
            for part in re.split(r"[^\w]+", low):
                initials += part[:1] if part not in ARTICLES else ""
                if part and part not in ARTICLES | POSSESSIVES | _COMPANY:
                    words.append(_CURRENCY.get(part, part))
            if token[0].isupper():
                names.update(stems([low]))
    return Value(tuple(exact), tuple(stems(words)), frozenset(names), initials)


def _valued(text: str) -> str:
    """Write days of a year in ISO 8601, and numbers in words as digits; "one dog" is "a dog"."""
    for day in reversed(dates(text)):
        if _DAY.fullmatch(day.value) and day.offset is None:
            text = text[: day.start] + day.value + text[day.end :]
    for number in reversed(numbers(text)):
        if number.text[0].isalpha() and number.value != 1:
            text = f"{text[: number.start]}{number.value:.12g}{text[number.end :]}"
    return text


def apart(a: Value, b: Value) -> bool:
    """Say whether two objects cannot be the same, however near their vectors are.

    Another number or code, another name ("Toyota Corolla", "Toyota Camry"), and another member of a small closed
    series (weekday, month, colour, relative) make another object.
    """
    if a.exact != b.exact:
        return True
    # Both sides: a capital alone may only begin a sentence.
    if a.names - set(b.words) and b.names - set(a.words) and not abbreviated(a, b):
        return True
    return any((set(a.words) & series) != (set(b.words) & series) for series in _series())


def abbreviated(a: Value, b: Value) -> bool:
    """Say whether one is the initials of the other: "NYC", "New York City"."""
    return any(
        len(short.words) == 1 < len(long.words) and len(long.initials) > 1 and short.words[0] == long.initials
        for short, long in ((a, b), (b, a))
    )


@cache
def _series() -> tuple[set[str], ...]:
    lines = (" ".join(WEEKDAYS), " ".join(MONTHS), *entries("series"))
    return tuple(set(stems(line.split())) for line in lines)


def _is_code(token: str) -> bool:
    # Mixed case alone may be a brand ("iPhone", "GmbH"); a key changes case often.
    return bool(re.search(r"\d|_", token)) or len(re.findall(r"[a-z][A-Z]", token)) > 1


def _plain(text: str) -> str:
    text = plain(text)
    for short, long in _CONTRACTIONS:
        text = text.replace(short, long)
    return text


def _words(text: str | None) -> list[str]:
    return re.findall(r"[^\W_]+(?:'[^\W_]+)?", _plain(text or "").casefold())


def stems(words: list[str]) -> list[str]:
    """Stem words, irregular forms by their base."""
    verbs = forms()
    return stem(verbs[word].base if word in verbs else _SPELLINGS.get(word, word) for word in words)
