"""Cutting a sentence into clauses that each make one statement, without what is asked, supposed or quoted."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from memlab.language.verbs import forms
from memlab.language.words import MONTHS

_QUOTED = re.compile(r"[\"“«]([^\"”»]*)[\"”»]")
_CLAUSE_IN_QUOTES = re.compile(r"\b(?:i|i'm|we|my|you|is|are|was|will|don't)\b", re.I)
_CONTRACTIONS = (
    (r"\b(i)'m\b", r"\1 am"), (r"\b(i|we|they|you)'ve\b", r"\1 have"), (r"\b(we|they|you)'re\b", r"\1 are"),
    (r"\b(i|we|they|you|he|she|it)'ll\b", r"\1 will"), (r"\bcan't\b", "can not"), (r"\bcannot\b", "can not"),
    (r"\bwon't\b", "will not"), (r"\b(is|are|was|were|do|does|did|has|have|had|could|would|should)n't\b", r"\1 not"),
    (r"\bgonna\b", "going to"), (r"\bwanna\b", "want to"), (r"\bim\b", "I am"), (r"\bive\b", "I have"),
    (r"\b(i|we|they|you|he|she)'d\b", r"\1 would"), (r"\bdont\b", "do not"), (r"\bhave got\b", "have"),
)  # fmt: skip
_EXPANDED = tuple((re.compile(pattern, re.I), to) for pattern, to in _CONTRACTIONS)
_SUBJECT = r"(?:i|we|it|he|she|they|you|this|that|there|it's|that's|he's|she's|there's|they're|you're)\b"
_VERB = (
    r"(?:is|are|was|were|has|have|had|got|loves?|likes?|works?|lives?|keeps?|makes?|gives?|helps?|said|bought|went)\b"
)
_NAMED = rf"(?-i:[A-Z])[\w'-]+\s+(?:{_VERB}|\w+ed\b)"
_WORDS = (
    "and|but|so|because|'cause|cause|since|although|though|while|when|whenever|after|before|until|if|unless|whether|"
    "that|which|who|where|or|as|than|then|yet|plus|even though|even if|so that|especially when|especially since|"
    "how|what|why|like|just like|except|and then|and now|and so|but then"
)
_BOUNDARY = re.compile(
    r"\s*(?:[;:!?…—–\n]+|\.{2,}|(?<=\w)\.\s|\s-+\s|-\s|[()\[\]])\s*"
    rf"|,?\s+(?P<word>{_WORDS})\s+"
    rf"(?={_SUBJECT}|{_NAMED}|(?:my|our)\s+(?:[\w'-]+\s+){{1,4}}{_VERB})"
    rf"|,\s+(?={_SUBJECT}|(?:my|our)\s+(?:[\w'-]+\s+){{1,4}}{_VERB})"
    r"|,\s+(?P<other>which|who|where|but|so|because|since|though|although|especially|like|hoping|plus|if|unless|"
    r"thanks|making|giving|knowing|right|huh|haha|lol|too|even|as|while|though)\b\s*"
    r"|\s+(?P<hinge>because|'cause|although|unless|whenever|if|when|while|though|whether|until|so that|so|but|now that|"
    r"now(?= the\b))\s+",
    re.I,
)
_FILLERS = re.compile(
    r"^(?:(?:well|yeah|yes|yep|yup|oh|wow|hey|hi|hello|ok|okay|so|and|but|also|plus|anyway|actually|honestly|thanks|"
    r"thank you|btw|by the way|no|nope|haha|lol|hm+|um+|sure|right|cool|nice|great|awesome|absolutely|definitely|"
    r"to be honest|in fact|fyi|guess what|for context|lately|nowadays|these days|then|now|"
    r"yesterday|today|tonight|earlier today|last \w+|this \w+|next \w+|sadly|luckily|unfortunately|fortunately|first|"
    r"personally|side note|off topic|as you know|in other news|on another note|that aside|speaking of which|"
    rf"(?:on|in) (?:\w+ ){{0,3}}(?:\w*day|\d{{4}}|{'|'.join(MONTHS)})|"
    r"(?:\w+ ){1,2}(?:days?|weeks?|months?|years?) ago|for (?:\w+ ){1,2}(?:days?|weeks?|months?|"
    r"years?)(?: now)?|(?:just|after|over) (?:\w+ ){0,2}(?:day|week|month|year)s?|i mean|you know|"
    r"[A-Z][a-z]+(?=,))(?:,\s*|\s+))+",
    re.I,
)
_SUPPOSING = re.compile(
    r"^(?:\W*)(?:if|unless|whenever|maybe|perhaps|suppose|imagine|what if|even if|as if|wish|once)\b", re.I
)


class Clause(NamedTuple):
    """A stretch of a sentence with one subject; ``hinge`` is the word that joins it to what is before."""

    words: list[str]
    hinge: str


def clauses(sentence: str) -> list[Clause]:
    """Cut a sentence into clauses; a question and what is only supposed or quoted give none.

    >>> from memlab.language.clauses import clauses
    >>> [" ".join(c.words) for c in clauses("Well, I quit my job and moved to Oslo, but my sister lives in Rome!")]
    ['I quit my job', 'I moved to Oslo', 'my sister lives in Rome']
    >>> clauses("Do you think I work at Acme?"), clauses("If I had a dog, I would walk more.")
    ([], [])
    """
    plain = " ".join(normal(sentence).split())
    plain = _QUOTED.sub(lambda m: " … " if _CLAUSE_IN_QUOTES.search(m[1]) else m[0], plain)
    if plain.rstrip("\"”') ").endswith("?"):
        return []
    found: list[Clause] = []
    at, hinge = 0, ""
    for cut in (*_BOUNDARY.finditer(plain), None):
        piece = plain[at : cut.start() if cut else len(plain)].strip(" ,.")
        if _SUPPOSING.match(f"{hinge} {piece}") and piece:
            break
        if piece and len(words := _with_subject(piece).split()) > 1:
            found.extend(_coordinated(words, hinge))
        if cut is None:
            break
        hinge = (cut["word"] or cut["other"] or cut["hinge"] or "").casefold()
        if cut[0].strip() == "?":
            found.clear()
        at = cut.end()
    return found


def led(text: str) -> str:
    """Leave out the words that only lead into a sentence.

    >>> from memlab.language.clauses import led
    >>> led("Well, by the way, I moved to Oslo.")
    'I moved to Oslo.'
    """
    rest = _FILLERS.sub("", text)
    return rest[:1].upper() + rest[1:]


def _with_subject(piece: str) -> str:
    """Leave fillers out, and give "Just finished a book", "Going to move" the "I" that they leave out."""
    plain = _FILLERS.sub("", piece)
    words = plain.split()
    left_out = words[0].casefold() if words else ""
    if left_out in ("just", "recently", "finally", "going", "currently", "still") and len(words) > 2:
        verb = words[0 if left_out == "going" else 1].casefold()
        form = forms().get(verb)
        if verb.endswith("ing") and (left_out != "going" or words[1] == "to"):
            return f"I am {plain}"
        if form and form.tense <= {"past", "participle"}:
            return f"I {plain}"
    return plain


def normal(text: str) -> str:
    """Write out contractions, with plain apostrophes."""
    text = unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")
    for pattern, to in _EXPANDED:
        text = pattern.sub(to, text)
    return text


def _coordinated(words: list[str], hinge: str) -> list[Clause]:
    """Give "I quit my job and moved to Oslo" as two clauses of one subject."""
    known = forms()
    subject = words[0].casefold()
    if subject not in ("i", "we"):
        return [Clause(words, hinge)]
    starts = [0]
    for i in range(2, len(words) - 2):
        joined = words[i].casefold() in ("and", "then", "but") or words[i - 1].endswith(",")
        at = i + 1 if words[i].casefold() in ("and", "then", "but") else i
        if joined and i > starts[-1] + 1:
            at += words[at].casefold() in ("then", "even", "also", "finally", "just", "now") and at + 2 < len(words)
            form = known.get(words[at].casefold())
            tense = form.tense if form else frozenset()
            if "past" in tense and not tense & {"present", "third"}:
                starts.append(i)
    pieces = [words[a:b] for a, b in zip(starts, [*starts[1:], len(words)], strict=True)]
    out = [Clause(pieces[0], hinge)]
    for piece in pieces[1:]:
        rest = piece[1:] if piece[0].casefold() in ("and", "then", "but") else piece
        out.append(Clause([words[0], *rest], hinge))
    return out
