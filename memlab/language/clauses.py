"""What a sentence leaves short, written out, and the words that only lead into it."""

from __future__ import annotations

import re

from memlab.language.tokens import plain
from memlab.language.words import MONTHS

_CONTRACTIONS = (
    (r"\b(i)'m\b", r"\1 am"), (r"\b(i|we|they|you)'ve\b", r"\1 have"), (r"\b(we|they|you)'re\b", r"\1 are"),
    (r"\b(i|we|they|you|he|she|it)'ll\b", r"\1 will"), (r"\bcan't\b", "can not"), (r"\bcannot\b", "can not"),
    (r"\bwon't\b", "will not"), (r"\b(is|are|was|were|do|does|did|has|have|had|could|would|should)n't\b", r"\1 not"),
    (r"\bgonna\b", "going to"), (r"\bwanna\b", "want to"), (r"\bim\b", "I am"), (r"\bive\b", "I have"),
    (r"\b(i|we|they|you|he|she)'d\b", r"\1 would"), (r"\bdont\b", "do not"), (r"\bhave got\b", "have"),
)  # fmt: skip
_EXPANDED = tuple((re.compile(pattern, re.I), to) for pattern, to in _CONTRACTIONS)
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


def led(text: str) -> str:
    """Leave out the words that only lead into a sentence.

    >>> from memlab.language.clauses import led
    >>> led("Well, by the way, I moved to Oslo.")
    'I moved to Oslo.'
    """
    rest = _FILLERS.sub("", text)
    return rest[:1].upper() + rest[1:]


def normal(text: str) -> str:
    """Write out contractions, with plain apostrophes."""
    text = plain(text).replace("‘", "'")
    for pattern, to in _EXPANDED:
        text = pattern.sub(to, text)
    return text
