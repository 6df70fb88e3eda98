"""The normal form of a statement: its mode, and its subject, relation and value in the form in which they are compared.

Statements come as :class:`memlab.records.Fact` has them: the predicate says "no longer", "used to",
"does not" or "plans to", and the object "not Oslo but Bergen".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import NamedTuple

from memlab.embed import Encoder
from memlab.text.dates import dates
from memlab.text.lemmas import irregular_forms
from memlab.text.numbers import numbers
from memlab.text.tokens import normalize_characters, stem
from memlab.text.words import (
    ARTICLES,
    BE,
    FINITE_AUXILIARIES,
    MONTHS,
    POSSESSIVES,
    WEEKDAYS,
    wordset,
)

IS, NOT, PLAN = "is", "not", "plan"
SAME_VALUE_COSINE = 0.85
_CACHE_SIZE = 100_000  # texts of which the normal form is remembered

_ADVERBS = wordset("now currently still already also really just recently always usually actually")
_CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen"}

_ENDING = re.compile(
    r"\bno longer\b|(?<!\bis )(?<!\bare )(?<!\bam )(?<!\bget )(?<!\bgets )\bused to\b", re.I
)
_DENIAL = re.compile(r"\b(?:does |do |did )?not\b(?! only)|\bnever\b", re.I)
_PLAN = re.compile(r"^(?:no longer )?plans? to ", re.I)
_CORRECTION = re.compile(r"^not (?P<old>.+?),? but (?P<new>.+)$", re.I)
_POSSESSIVE = re.compile(r"(?P<holder>.+?)(?:'s|(?<=s)') (?P<what>.+)")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MONEY = re.compile(r"([$€£¥])\s*(\d[\d,]*(?:\.\d+)?)")
_THOUSANDS = re.compile(r"\b\d{1,3}(?:,\d{3})+\b")
_TOKEN = re.compile(r"[^\W_]+(?:[._@/:\-–][^\W_]+)*|[\w\-]+")


class Statement(NamedTuple):
    """A statement in its parts.

    :param mode: ``is``, ``not`` or ``plan``.
    :param is_ending: whether it only says that this is over.
    :param subject: as written; ``relation``: in normal form.
    :param is_possession: whether the relation is a thing of the subject: ``door code`` of "Nora's
        door code".
    :param corrects: the value that it corrects.
    """

    mode: str
    is_ending: bool
    subject: str
    relation: str
    is_possession: bool
    value: str
    corrects: str | None


def parse_statement(subject: str, predicate: str, obj: str) -> Statement:
    """Parse subject, predicate and object of a fact into a statement.

    >>> from memlab.knowledge.normal_form import parse_statement
    >>> parse_statement("Ann", "no longer works at", "Acme")[:4]
    ('is', True, 'Ann', 'work at')
    >>> parse_statement("Ann's door code", "is", "not 4471 but 4417")[2:]
    ('Ann', 'door code', True, '4417', '4471')
    """
    phrase, value, corrects = (
        normalize_characters(predicate),
        normalize_characters(obj).strip(),
        None,
    )
    if correction := _CORRECTION.match(value):
        corrects, value = correction["old"].strip(), correction["new"].strip()
    is_ending = bool(_ENDING.search(phrase)) and corrects is None
    mode = PLAN if _PLAN.match(phrase) else IS
    if _DENIAL.search(phrase) and not is_ending and corrects is None:
        mode = NOT
    for pattern in (_PLAN, _ENDING, _DENIAL):
        phrase = pattern.sub(" ", phrase)
    holder = re.sub(
        r"^(?:(?:an?|the) )+", "", " ".join(normalize_characters(subject).split()), flags=re.I
    )
    owner = _POSSESSIVE.fullmatch(holder)
    if owner and not set(_lower_words(phrase)) - BE - _ADVERBS:
        what = re.sub(
            r"^(?:line )?manager$", "boss", re.sub(r"^new ", "", owner["what"].casefold())
        )
        return Statement(
            mode, is_ending, owner["holder"], normal_relation(what), True, value, corrects
        )
    return Statement(mode, is_ending, holder, normal_relation(phrase), False, value, corrects)


@lru_cache(maxsize=_CACHE_SIZE)
def normal_relation(phrase: str) -> str:
    """Give the normal form of a predicate: stems without auxiliaries, articles and adverbs.

    >>> from memlab.knowledge.normal_form import normal_relation
    >>> [normal_relation(phrase) for phrase in ("is working at", "worked at the", "API key is", "is")]
    ['work at', 'work at', 'api key', 'be']
    """
    words = _lower_words(phrase)
    left_out = _ADVERBS | ARTICLES | POSSESSIVES | FINITE_AUXILIARIES | BE | {"that"}
    content = [word for word in words if word not in left_out]
    if not content:
        return "have" if {"has", "have", "had"} & set(words) else "be"
    return " ".join(stem_words(content))


class Value(NamedTuple):
    """A value in normal form: its numbers and codes, compared exactly, and its other words.

    :param names: stems of the words that are written with a capital.
    """

    exact: tuple[str, ...]
    words: tuple[str, ...]
    names: frozenset[str]

    @property
    def key(self) -> str:
        """One text, equal for equal values."""
        return " ".join([*self.exact, "|", *self.words]) if self.exact else " ".join(self.words)

    def is_part_of(self, other: Value) -> bool:
        """Whether another value has all its words, numbers and codes."""
        return {*self.exact, *self.words} <= {*other.exact, *other.words}


@lru_cache(maxsize=_CACHE_SIZE)
def normal_value(text: str) -> Value:
    """Give the normal form of a value or a subject; codes stay as they are written.

    >>> from memlab.knowledge.normal_form import normal_value
    >>> normal_value("$1,250.00").exact == normal_value("1250 dollars").exact
    True
    >>> normal_value("sk-AB12").exact, normal_value("12u34").exact
    (('sk-AB12',), ('12u34',))
    """
    text = _MONEY.sub(
        lambda m: f"{m[2]} {_CURRENCIES[m[1]]}", numbers_as_digits(normalize_characters(text))
    )
    text = re.sub(r"'s\b", "", _THOUSANDS.sub(lambda m: m[0].replace(",", ""), text))
    exact, words, names = [], [], set()
    for token in _TOKEN.findall(text):
        low = token.casefold()
        if re.fullmatch(r"\d+\.?\d*", low):
            # A leading zero belongs to a number that is dialled, not counted.
            exact.append(
                low if low.startswith("0") else f"{float(low):.10g}" if len(low) < 12 else low
            )
        elif "@" in low:
            exact.append(low)
        elif re.search(r"\d|_", token) or len(re.findall(r"[a-z][A-Z]", token)) > 1:
            # Mixed case alone may be a brand ("iPhone", "GmbH"); a key changes case often.
            exact.append(token)
        else:
            words += [
                part
                for part in re.split(r"\W+", low)
                if part and part not in ARTICLES | POSSESSIVES
            ]
            if token[0].isupper():
                names.update(stem_words([low]))
    return Value(tuple(exact), tuple(stem_words(words)), frozenset(names))


def numbers_as_digits(text: str) -> str:
    """Write dates of a day in ISO 8601, and numbers in words as digits, except "one"."""
    for day in reversed(dates(text)):
        if _DAY.fullmatch(day.value) and day.offset is None:
            text = text[: day.start] + day.value + text[day.end :]
    for number in reversed(numbers(text)):
        if number.text[0].isalpha() and number.value != 1:
            text = f"{text[: number.start]}{number.value:.12g}{text[number.end :]}"
    return text


def value_keys(
    texts: Iterable[tuple[Hashable, str]], encoder: Encoder | None
) -> dict[tuple[Hashable, str], str]:
    """Give each value of an owner a key that is equal for equal values.

    Without an encoder normal forms are the keys. With one, a value has the key of the first value
    of its owner whose cosine with it reaches 0.85, unless a number, a name or a closed series
    (weekdays, colours …) sets them apart. The threshold was chosen with all-MiniLM-L6-v2; choose it
    again for another encoder. Subjects and relations are compared by normal form alone: opposites
    ("pays", "earns") are near each other too.

    :param texts: pairs of an owner and the text of a value.
    """
    forms = {(owner, text): normal_value(text).key for owner, text in texts}
    if encoder is None:
        return forms
    owners: defaultdict[Hashable, dict[str, str]] = defaultdict(dict)
    for (owner, text), key in forms.items():
        if any(letter.isalpha() for letter in text):
            owners[owner].setdefault(key, text)
    several = {owner: members for owner, members in owners.items() if len(members) > 1}
    if not several:
        return forms
    wanted = list({text: None for members in several.values() for text in members.values()})
    vectors, at = (
        encoder.encode(wanted, progress=False),
        {text: row for row, text in enumerate(wanted)},
    )
    first: dict[tuple[Hashable, str], str] = {}
    for owner, members in several.items():
        own = vectors[[at[text] for text in members.values()]]
        known, values = list(members), [normal_value(text) for text in members.values()]
        for row, key in enumerate(known):
            near = (own[:row] @ own[row] >= SAME_VALUE_COSINE).nonzero()[0]
            same = (
                first[owner, known[n]] for n in near if not values_differ(values[n], values[row])
            )
            first[owner, key] = next(same, key)
    return {(owner, text): first.get((owner, key), key) for (owner, text), key in forms.items()}


def values_differ(a: Value, b: Value) -> bool:
    """Say whether two values differ, however similar their vectors are.

    Another number or code, another name ("Toyota Corolla", "Toyota Camry"), and another member of a
    small closed series (weekday, month, colour, relative) make another value.
    """
    # Names on both sides: a capital alone may only begin a sentence.
    if a.exact != b.exact or (a.names - set(b.words) and b.names - set(a.words)):
        return True
    return any((set(a.words) & series) != (set(b.words) & series) for series in _CLOSED_SERIES)


def stem_words(words: list[str]) -> list[str]:
    """Stem words; an irregular form of a verb becomes the stem of its base form."""
    verbs = irregular_forms()
    return stem(verbs.get(word, word) for word in words)


_CLOSED_SERIES = [set(stem_words(line.split())) for line in (
    " ".join(WEEKDAYS), " ".join(MONTHS), "red orange yellow green blue purple violet black white brown grey gray pink",
    "mother father sister brother son daughter wife husband uncle aunt cousin grandmother grandfather niece nephew",
    "north south east west left right upper lower", "morning afternoon evening night",
)]  # fmt: skip


def _lower_words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:'[^\W_]+)?", normalize_characters(text).casefold())
