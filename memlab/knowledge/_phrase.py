"""Verb phrases with their verb in its base form and their tense beside it; noun phrases cut where they end."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from memlab.knowledge._patterns import P, W
from memlab.language.clauses import normal
from memlab.language.lexicon import lexicon
from memlab.language.verbs import conjugated, forms
from memlab.language.words import BE, HAVE

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
    >>> verb_phrase("will move to Bruges").tense, verb_phrase("have been living in Oslo since May").text
    ('plan', 'live in Oslo since May')
    >>> verb_phrase("would love a dog")
    """
    rest = " ".join(normal(text).split())
    now = bool(P["now"].search(rest))
    rest = P["be_adverb"].sub(r"\1 ", _strip(rest))
    for lead, tense, negated in (("former", FORMER, ""), ("planning", PLAN, ""), ("given_up", PRESENT, "no longer")):
        if match := P[lead].match(rest):
            first, _, tail = _strip(rest[match.end() :]).partition(" ")
            base = lemma(first)[0]
            return Verb(f"{base} {tail}".strip(), tense, negated, now) if base else None
    tense = negated = ""
    while True:
        rest = _strip(rest)
        if P["hedged"].match(rest):
            return None
        first, _, tail = rest.partition(" ")
        following = lemma(_strip(tail).partition(" ")[0])[1]
        if no := P["negation"].match(rest):
            if no["did"] or no["can"]:
                return _cannot(rest[no.end() :]) if no["can"] else None
            negated, rest = "no longer" if no["over"] else "not", rest[no.end() :]
        elif first.lower() in HAVE and "participle" in following:
            tense, rest = PERFECT, tail
            if first.lower() == "had":
                return None
        elif first.lower() in BE and "ing" in following:
            tense, rest = PAST if first.lower() in ("was", "were") else tense or PROGRESSIVE, tail
        else:
            break
    if first.lower() == "can" and tail.lower().startswith(("speak ", "play ")):
        return Verb(tail, PRESENT, negated, now)
    base, tenses = lemma(first)
    if not base:
        return None
    if not tense:
        present = tenses & {"present", "third"} and ("past" not in tenses or first.lower() == "read")
        tense = PROGRESSIVE if "ing" in tenses else PRESENT if present else PAST
    # "I have done yoga" and "we have played chess" are no habits.
    if tense == PERFECT and "ing" not in tenses and base in W["once"] - {"have", "get"}:
        tense = PAST
    if base == "be":
        tail = _strip(tail)
        if no := re.match(r"(?:not|never|(?P<over>no longer))\b\s*", tail, re.I):
            negated, tail = "no longer" if no["over"] else "not", _strip(tail[no.end() :])
    elif base == "have":
        if no := re.match(r"(?:no|not any|not got|never any)\b\s*", tail, re.I):
            negated, tail = "not", tail[no.end() :]
        elif re.match(r"not\b", tail, re.I):
            return None
    if P["over"].search(tail):
        negated, tail = "no longer", " ".join(P["over"].sub("", tail).split())
    return Verb(f"{base} {tail}".strip(), tense, negated, now)


def lemma(word: str) -> tuple[str, frozenset[str]]:
    """Give base and tenses of a word; no base and no tenses where it is no verb that is known here."""
    return lemmas().get(word.lower().strip(",."), ("", frozenset()))


def _cannot(text: str) -> Verb | None:
    first, _, tail = text.partition(" ")
    if first.lower() in ("stand", "bear"):
        return Verb(f"can not {text}", PRESENT, "", False)
    # Who cannot have or touch something does not eat it.
    does = {"eat": "eat", "have": "eat", "touch": "eat", "drink": "drink"}.get(first.lower())
    return Verb(f"{does} {tail}", PRESENT, "not", False) if does else None


def _strip(text: str) -> str:
    return P["leading"].sub("", text)


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
        base, tenses = lemma(joint["next"])
        verb = "third" in tenses or base in W["plain_verbs"]
        if ("past" in tenses and "present" not in tenses) or (joint["word"] and verb):
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
