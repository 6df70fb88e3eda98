"""The normal form of a statement: what it does, and its subject, relation and value as they are compared."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from memlab.language.dates import dates
from memlab.language.lemmas import forms
from memlab.language.numbers import numbers
from memlab.language.tokens import plain, stem
from memlab.language.words import ARTICLES, BE, FINITE_AUXILIARIES, MONTHS, POSSESSIVES, WEEKDAYS, wordset

IS, NOT, PLAN = "is", "not", "plan"
CORRECT, HINT, UPDATE = "correct", "hint", "update"
_KEPT = 100_000  # texts of which the normal form is remembered

_SELF = wordset("i me myself user speaker my mine")
_ADVERBS = wordset("now currently still already also really just recently always usually actually")
_COMPANY = wordset("inc ltd llc corp gmbh co city")
_SPELLINGS = {
    "colour": "color", "favourite": "favorite", "mum": "mother", "mom": "mother", "dad": "father", "tv": "television",
    "usd": "dollar", "eur": "euro", "gbp": "pound",
}  # fmt: skip
_CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen"}
_SERIES = (
    " ".join(WEEKDAYS), " ".join(MONTHS), "red orange yellow green blue purple violet black white brown grey gray pink",
    "mother father sister brother son daughter wife husband uncle aunt cousin grandmother grandfather niece nephew",
    "north south east west left right upper lower", "morning afternoon evening night",
)  # fmt: skip

_OVER = re.compile(
    r"\bno longer\b|\bany ?more\b|\bany longer\b|\bstopped\b|\bhas left\b|\bgave up\b|\bceased to\b|\bformerly\b"
    r"|(?<!\bis )(?<!\bare )(?<!\bam )(?<!\bget )(?<!\bgot )(?<!\bgetting )\bused to\b",
    re.I,
)
_DENIAL = re.compile(r"\b(?:does |do |did )?not\b(?! only)|\bnever\b", re.I)
_PLANNED = re.compile(r"^(?:no longer )?plans? to ", re.I)
_ANY_MORE = re.compile(r",?\s*\b(?:any ?more|any longer|no longer)\b[\s.!]*$", re.I)
_MEANT = re.compile(
    r"\bI meant\b|\bI mean\b|\bmisspoke\b|\bmy mistake\b|\bcorrection\b|\bgot (?:it|that) wrong\b|\bI was wrong\b", re.I
)
_ACTUALLY = re.compile(r"^\W*(?:actually|wait|no)\b(?! longer)", re.I)
_NEW = re.compile(r"\bnow\b|\bnowadays\b|\bthese days\b|\bswitched\b|\bchanged\b", re.I)
_NOW = re.compile(r"^(?:now|actually|currently)\b,?\s*|,?\s+(?:now|these days|nowadays)[.!]?$", re.I)
_INSTEAD = (
    (re.compile(r"^not (?P<old>.+?),? but (?P<new>.+)$", re.I), CORRECT),
    (re.compile(r"^(?P<new>.+?)(?:,| and) not (?P<old>.+)$", re.I), CORRECT),
    (re.compile(r"^(?P<new>.+?),? rather than (?P<old>.+)$", re.I), CORRECT),
    (re.compile(r"^(?P<new>.+?),? instead of (?P<old>.+)$", re.I), UPDATE),
    (re.compile(r"^from (?P<old>.+?) to (?P<new>.+)$", re.I), UPDATE),
)
_CONTRACTIONS = (
    ("can't", "cannot"), ("won't", "will not"), ("n't", " not"), ("'re", " are"), ("'m", " am"), ("'ve", " have"),
)  # fmt: skip
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MONEY = re.compile(r"([$€£¥])\s*(\d[\d,]*(?:\.\d+)?)")
_THOUSANDS = re.compile(r"\b\d{1,3}(?:,\d{3})+\b")
_TOKEN = re.compile(r"[^\W_]+(?:[._@/:\-–][^\W_]+)*|[\w\-]+")
_PHONE = re.compile(r"(?=.*\d)[\d\-().+ ]+")


class Statement(NamedTuple):
    """A statement in its parts.

    :param mode: ``is``, ``not`` or ``plan``: what is said to hold, or to be over.
    :param over: whether it only says that this is over.
    :param does: ``correct``, ``hint`` (a bare "actually"), ``update`` ("now", "instead of"), or empty.
    :param subject: whom it is about, as written; ``relation``: in normal form.
    :param owned: whether the relation is what belongs to the subject: ``door code`` of "Nora's door code".
    :param instead: the value that is named as replaced or wrong.
    """

    mode: str
    over: bool
    does: str
    subject: str
    relation: str
    owned: bool
    value: str
    instead: str | None


def read(subject: str, predicate: str, obj: str, *, speaker: str | None, text: str | None) -> Statement:
    """Read a statement.

    >>> from memlab.knowledge.normal import read
    >>> read("I", "no longer works at", "Acme", speaker="Ann", text=None)[:5]
    ('is', True, '', 'ann', 'work at')
    >>> read("Ann's door code", "is", "not 4471 but 4417", speaker=None, text=None)[2:]
    ('correct', 'Ann', 'door code', True, '4417', '4471')
    """
    phrase, value = _plain(predicate), _plain(obj).strip()
    does = ""
    if _MEANT.search(f"{phrase} {value} {text or ''}"):
        does = CORRECT
    elif _NEW.search(phrase) or _NOW.search(value):
        does = UPDATE
    elif any(_ACTUALLY.search(part) for part in (phrase, value, text or "")):
        does = HINT
    value = _NOW.sub("", _MEANT.sub("", value)).strip(" ,") or value
    instead = None
    for shape, means in _INSTEAD:
        both = shape.match(value)
        if both and (not value.lower().startswith("from ") or _NEW.search(phrase) or "moved" in phrase):
            instead, value, does = both["old"].strip(), both["new"].strip(), means
            break
    mode = PLAN if _PLANNED.match(phrase) else IS
    over = bool(_OVER.search(phrase) or re.search(r"\bno longer\b[\s.!]*$", value, re.I)) and instead is None
    if not over and instead is None and _DENIAL.search(phrase):
        # "Does not work there any more" is an end.
        mode, over = (IS, True) if _ANY_MORE.search(value) else (NOT, False)
    value = _ANY_MORE.sub("", value).strip() or value
    for said in (_PLANNED, _OVER, _DENIAL, _MEANT):
        phrase = said.sub(" ", phrase)
    holder, phrase, owned = _owner(subject, " ".join(phrase.split()), speaker)
    return Statement(mode, over, does, holder, relation(phrase), owned, value, instead)


def _owner(subject: str, phrase: str, speaker: str | None) -> tuple[str, str, bool]:
    """Take "I", "my" and "the user" for the speaker, and "my API key | is" for "speaker | API key"."""
    me = " ".join(_words(speaker)) if speaker else "user"
    words = _plain(subject).split()
    while words and words[0].casefold() in ARTICLES:
        words = words[1:]
    if not words:
        return me, phrase, False
    if words[0].casefold().strip(".,") in _SELF:
        holder, rest = me, [word for word in words[1:] if word != "'s"]
    else:
        at = next((i for i, word in enumerate(words, 1) if word.endswith(("'s", "s'"))), len(words))
        name = re.sub(r"'s?$", "", " ".join(words[:at])) if at < len(words) else " ".join(words)
        holder, rest = (me if name.casefold() in _SELF else name), words[at:]
    if rest and not set(_words(phrase)) - BE - _ADVERBS:
        return holder, " ".join(rest), True
    return " ".join([holder, *rest]), phrase, False


@lru_cache(maxsize=_KEPT)
def relation(phrase: str) -> str:
    """Give the normal form of a predicate: stems without auxiliaries, articles and adverbs.

    >>> from memlab.knowledge.normal import relation
    >>> relation("is working at"), relation("worked at the"), relation("API key is"), relation("is")
    ('work at', 'work at', 'api key', 'be')
    """
    words = _words(phrase)
    left_out = _ADVERBS | ARTICLES | POSSESSIVES | FINITE_AUXILIARIES | BE | {"that"}
    content = [word for word in words if word not in left_out]
    if not content:
        return "have" if {"has", "have", "had"} & set(words) else "be"
    return " ".join(stems(content))


class Value(NamedTuple):
    """A value in normal form: its numbers and codes, compared exactly, and its other words.

    :param names: stems of the words that are written with a capital.
    """

    exact: tuple[str, ...]
    words: tuple[str, ...]
    names: frozenset[str]

    @property
    def key(self) -> str:
        """One text for what is the same value."""
        return " ".join([*self.exact, "|", *self.words]) if self.exact else " ".join(self.words)

    def within(self, other: Value) -> bool:
        """Whether all that it says is said by another."""
        return {*self.exact, *self.words} <= {*other.exact, *other.words}


@lru_cache(maxsize=_KEPT)
def value(text: str) -> Value:
    """Take a value or a subject apart; codes stay as they are written.

    >>> from memlab.knowledge.normal import value
    >>> value("$1,250.00").exact == value("1250 dollars").exact, value("3 May 1990") == value("1990-05-03")
    (True, True)
    >>> value("sk-AB12").exact, value("12u34").exact
    (('sk-AB12',), ('12u34',))
    """
    text = counted(_plain(text))
    text = _THOUSANDS.sub(lambda m: m[0].replace(",", ""), _MONEY.sub(r"\2 \1", text))
    text = re.sub(r"'s\b", "", text)
    if _PHONE.fullmatch(text):
        text = re.sub(r"[^\d.]+", " ", text)
    text = re.sub(r"[$€£¥]", lambda m: f" {_CURRENCIES[m[0]]} ", text)
    exact, words, names = [], [], set()
    for token in _TOKEN.findall(text):
        low = token.casefold()
        if re.fullmatch(r"\d+\.?\d*", low):
            # A leading zero belongs to a number that is dialled, not counted.
            exact.append(low if low.startswith("0") else f"{float(low):.10g}" if len(low) < 12 else low)
        elif "@" in low:
            exact.append(low)
        elif re.search(r"\d|_", token) or len(re.findall(r"[a-z][A-Z]", token)) > 1:
            # Mixed case alone may be a brand ("iPhone", "GmbH"); a key changes case often.
            exact.append(token)
        else:
            words += [part for part in re.split(r"\W+", low) if part and part not in ARTICLES | POSSESSIVES | _COMPANY]
            if token[0].isupper():
                names.update(stems([low]))
    return Value(tuple(exact), tuple(stems(words)), frozenset(names))


def counted(text: str) -> str:
    """Write days of a year in ISO 8601, and numbers in words as digits; "one dog" is "a dog"."""
    for day in reversed(dates(text)):
        if _DAY.fullmatch(day.value) and day.offset is None:
            text = text[: day.start] + day.value + text[day.end :]
    for number in reversed(numbers(text)):
        if number.text[0].isalpha() and number.value != 1:
            text = f"{text[: number.start]}{number.value:.12g}{text[number.end :]}"
    return text


def apart(a: Value, b: Value) -> bool:
    """Say whether two values differ however near their vectors are.

    Another number or code, another name ("Toyota Corolla", "Toyota Camry"), and another member of a small closed
    series (weekday, month, colour, relative) make another value.
    """
    # Names on both sides: a capital alone may only begin a sentence.
    if a.exact != b.exact or (a.names - set(b.words) and b.names - set(a.words)):
        return True
    return any((set(a.words) & series) != (set(b.words) & series) for series in _series())


@cache
def _series() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(stems(line.split())) for line in _SERIES)


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
    return stem(verbs.get(word) or _SPELLINGS.get(word, word) for word in words)
