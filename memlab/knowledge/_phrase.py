"""Verb phrases with their verb in its base form and their tense beside it; noun phrases cut where they end."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from memlab.knowledge._patterns import P, W
from memlab.language.clauses import normal
from memlab.language.lexicon import lexicon
from memlab.language.verbs import conjugated, forms

_MORE_VERBS = """
sleep:slept:slept keep:kept:kept split:split:split date conduct resign report cycle separate wear:wore:worn want plan
answer relocate settle employ dump major look need bike walk wait cancel loathe inherit rehome scrap qualify fire
lay:laid:laid appoint promote prepare share crash adore enjoy merge hand put:put:put:putting cut:cut:cut:cutting
let:let:let:letting handle turn quit:quit:quit:quitting call name retire feed:fed:fed park visit hire enroll enrol
migrate hunt search argue cry:cried:cried tell:told:told ask flood snore smell become:became:become
"""
_AUXILIARIES = {
    "be": "am:present is:present are:present was:past were:past be:present been:participle being:ing",
    "have": "has:third have:present had:past having:ing",
    "do": "does:third do:present did:past doing:ing done:participle",
    "cancel": "canceled:past+participle cancelled:past+participle",
}
PRESENT, PROGRESSIVE, PAST, PERFECT, PLAN, FORMER = "present", "progressive", "past", "perfect", "plan", "former"


IT, CHANGED = "it", "may have changed"
"""The subject of a statement that only earlier ones complete: see :mod:`memlab.knowledge.discourse`."""


class Statement(NamedTuple):
    """What is said: a subject in full ("Nora's boss", or :data:`IT`), a predicate that tells the manner, an object."""

    subject: str
    predicate: str
    object: str


class Verb(NamedTuple):
    """A verb phrase: ``text`` begins with the base of its verb.

    :param tense: ``present``, ``progressive``, ``past``, ``perfect``, ``plan`` or ``former`` ("used to").
    :param negated: ``""``, ``not`` or ``no longer``.
    :param now: whether a word says that it is so now.
    """

    text: str
    tense: str
    negated: str
    now: bool


@cache
def lemmas() -> dict[str, tuple[str, frozenset[str]]]:
    """Give base and tenses of every verb form that is known here."""
    table = {word: (form.base, form.tense) for word, form in forms().items()}
    for entry in _MORE_VERBS.split():
        base, tenses_of = conjugated(entry)
        for tense, word in tenses_of.items():
            known = table.get(word, (base, frozenset()))
            if known[0] == base:
                table[word] = (base, known[1] | {tense})
    for base, known_forms in _AUXILIARIES.items():
        for form in known_forms.split():
            word, tense = form.split(":")
            table[word] = (base, frozenset(tense.split("+")))
    return table


def verb_phrase(text: str) -> Verb | None:
    """Read a verb phrase; hypothetical and merely possible ones give none.

    >>> from memlab.knowledge._phrase import verb_phrase
    >>> verb_phrase("don't eat meat any more")
    Verb(text='eat meat', tense='present', negated='no longer', now=False)
    >>> verb_phrase("might move to Bruges").tense, verb_phrase("have been living in Oslo since May").text
    ('plan', 'live in Oslo since May')
    >>> verb_phrase("would love a dog")
    """
    rest, negated = " ".join(normal(text).split()), ""
    now = bool(P["now"].search(rest))
    rest = _strip(rest)
    if re.match(r"used to\b", rest, re.I):
        first, _, tail = rest[8:].partition(" ")
        base = _base(first)
        return Verb(f"{base} {tail}".strip(), FORMER, "", False) if base else None
    rest = P["be_adverb"].sub(r"\1 ", rest)
    plan = P["planning"].match(rest)
    if plan:
        first, _, tail = _strip(rest[plan.end() :]).partition(" ")
        base = _base(first)
        return Verb(f"{base} {tail}".strip(), PLAN, "", now) if base and first.lower() not in ("not", "never") else None
    if given := P["given_up"].match(rest):
        first, _, tail = rest[given.end() :].partition(" ")
        return Verb(f"{_base(first)} {tail}".strip(), PRESENT, "no longer", now)
    if P["hedged"].match(rest):
        return None
    words = rest.split()
    tense = ""
    for _ in range(6):
        if not words:
            return None
        low = words[0].lower().strip(",")
        two = f"{low} {words[1].lower()}" if len(words) > 1 else low
        if two in ("do not", "does not", "did not", "can not", "no longer", "not any") or low in ("never", "not"):
            if two.startswith(("can ", "did ")):
                return None if two.startswith("did ") else _cannot(words[2:])
            negated = "no longer" if two == "no longer" else "not"
            words = words[2:] if two.split()[0] in ("do", "does", "no") else words[1:]
        elif low in ("have", "has") and len(words) > 1 and _participle(words[1:]):
            tense, words = PERFECT, words[1:]
        elif low == "had" and len(words) > 1 and _participle(words[1:]):
            return None
        elif low in ("am", "is", "are", "was", "were", "been") and len(words) > 1 and _is_ing(words[1:]):
            past = low in ("was", "were")
            tense, words = (PAST if past else tense or PROGRESSIVE), words[1:]
        elif P["adverb"].fullmatch(low):
            words = words[1:]
        else:
            break
        words = _strip(" ".join(words)).split()
    if not words or P["hedged"].match(" ".join(words)):
        return None
    if words[0].lower() == "can" and len(words) > 2 and words[1].lower() in ("speak", "play"):
        return Verb(" ".join(words[1:]), PRESENT, negated, now)
    known = lemmas().get(words[0].lower().strip(","))
    if known is None:
        return None
    base, tenses = known
    if not tense:
        if tenses & {"ing"}:
            tense = PROGRESSIVE
        elif {"present", "past"} <= tenses and words[0].lower() not in ("read",):
            tense = PAST
        elif "present" in tenses or "third" in tenses:
            tense = PRESENT
        else:
            tense = PAST
        if base == "be" and words[0].lower() in ("was", "were"):
            tense = PAST
    tail = " ".join(words[1:])
    if base == "be":
        tail = _strip(tail)
        if re.match(r"(?:not|never)\b", tail, re.I):
            negated, tail = "not", _strip(tail[tail.find(" ") + 1 :] if " " in tail else "")
        elif re.match(r"no longer\b", tail, re.I):
            negated, tail = "no longer", _strip(tail[10:].strip())
    elif base == "have" and re.match(r"(?:no|not any|not got|never any)\b", tail, re.I):
        negated, tail = "not", re.sub(r"^(?:no|not any|not got|never any)\s*", "", tail, flags=re.I)
    elif base == "have" and re.match(r"(?:not)\b", tail, re.I):
        return None
    if P["over"].search(tail):
        negated, tail = "no longer", " ".join(P["over"].sub("", tail).split())
    return Verb(f"{base} {tail}".strip(), tense, negated, now)


def _cannot(words: list[str]) -> Verb | None:
    first, rest = (words[0].lower(), words[1:]) if words else ("", [])
    if first in ("stand", "bear"):
        return Verb(" ".join(["can not", first, *rest]), PRESENT, "", False)
    # Who cannot have or touch something does not eat it.
    eaten = first in ("eat", "have", "touch")
    return (
        Verb(" ".join(["eat" if eaten else first, *rest]), PRESENT, "not", False) if eaten or first == "drink" else None
    )


def _strip(text: str) -> str:
    while match := P["leading"].match(text):
        text = text[match.end() :]
    return text


def _base(word: str) -> str | None:
    known = lemmas().get(word.lower())
    return known[0] if known else None


def _participle(words: list[str]) -> bool:
    words = _strip(" ".join(words)).split()
    known = lemmas().get(words[0].lower()) if words else None
    return bool(known and "participle" in known[1])


def _is_ing(words: list[str]) -> bool:
    words = _strip(" ".join(words)).split()
    word = words[0].lower() if words else ""
    known = lemmas().get(word)
    return bool(known and "ing" in known[1])


_PLAIN_VERBS = W["plain_verbs"]


def nominal(text: str, *, most: int = 6) -> str:
    """Cut a noun phrase where it ends; what points elsewhere or says nothing gives an empty text.

    >>> from memlab.knowledge._phrase import nominal
    >>> nominal("the university library since March, which is nice"), nominal("it a lot")
    ('the university library', '')
    """
    text = " ".join(text.split())
    cut = P["cut"].search(f"{text} ")
    if cut and cut.start() < len(text):
        text = text[: cut.start()]
    for joint in P["joined"].finditer(text):
        base, tenses = lemmas().get(joint["next"].lower(), ("", frozenset()))
        finite = "past" in tenses and not tenses & {"present"}
        if (
            finite
            or (joint["word"] and ("third" in tenses or base in _PLAIN_VERBS))
            or (not joint["word"] and base in ("move", "start", "begin", "leave", "live", "go") and "ing" in tenses)
        ):
            text = text[: joint.start()]
            break
    text = trimmed(text)
    if not text or not re.search(r"\w", text) or P["pointing"].search(text) or P["loose"].search(text):
        return ""
    text = re.sub(r"(?:\s+(?:and|or|but|with|in|on|at|to|for|of|by|from|is|are|the|a|an|my))+$", "", text, flags=re.I)
    return text if text and len(text.split()) <= most else ""


def trimmed(text: str) -> str:
    """Leave out the times and the asides at the end."""
    before = None
    while before != text:
        before = text
        text = P["tail"].sub("", text.strip(" ,.'\"*_~")).strip(' ,."*_~')
    return text


def proper(text: str) -> bool:
    """Say whether a text is a name: by its capitals, or, where nobody writes any, because no lexicon knows it."""
    first = text.split()[0] if text else ""
    return bool(re.search(r"[A-ZÀ-Þ]", text)) or (
        first.isalpha() and len(first) > 3 and first not in lexicon() and first not in lemmas()
    )
