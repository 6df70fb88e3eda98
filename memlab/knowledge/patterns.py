"""Facts without a model: some twenty regular expressions for plain statements about oneself; a baseline."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

from memlab.records import Fact
from memlab.text.tokens import sentences

RECALL_NOTE = "patterns for facts, which find 3 of 515 in ordinary chats (a large model 6 of 10)"
_PROPER = r"[A-ZÀ-Þ0-9][\w'&-]*(?: (?:of |the |and |& )?[A-ZÀ-Þ0-9][\w'&-]*){0,4}"
_PROPER_VALUE = rf"(?P<o>{_PROPER})"
_NAME = rf"(?P<o>(?:(?:the|my|a|an) )?(?:{_PROPER}|[\w'&-]+))"
_NOUN = (
    r"(?P<o>(?:(?:a|an|the|my|our|some|two|three|four|five|six|\d+) )?[\w'-]+(?: [\w'-]+){0,2}?)"
)
_AFTER = (
    "now|and|but|so|since|because|for|with|who|which|as|from|again|last|this|these|after|any ?more"
)
_END = rf"(?= (?:{_AFTER})\b|[,.;:!?()–—]|$)"
_I = r"(?:^|\b(?:I|i) )(?:(?:just|also|now|still|finally|currently|actually|really) )*"
_I_AM = r"(?:^|\b(?:I am|I'm|i'm|im|i am) )(?:(?:just|also|now|still|finally|currently|actually) )*"
_CODE = "(?:code|number|password|passcode|pin|PIN|combination)"
_MY_THING = rf"\b[Mm]y(?: new)? (?P<what>[a-z][\w-]*(?: [a-z][\w-]*){{0,2}}(?: {_CODE})?)"

_PATTERNS: tuple[tuple[str, str], ...] = (
    (rf"{_I}(?:work|started|start|got a job|am working|'m working)(?: \w+)? (?:at|for) {_NAME}", "works at"),
    (rf"\b[Ii] (?:just |also |really )*(?:left|quit|resigned from) {_PROPER_VALUE}", "no longer works at"),
    (rf"{_I}(?:no longer|don't) work at {_NAME}", "no longer works at"),
    (rf"{_I}(?:work|am working|'m working) as (?:an? |the )?{_NOUN}", "works as"),
    (rf"{_I}report to {_NAME}", "reports to"),
    (rf"{_I}(?:live|am living|'m living) (?:in|at|on(?= (?:the )?[A-ZÀ-Þ0-9])) {_NAME}", "lives in"),
    (rf"{_I}(?:have |'ve )?moved (?:back )?to {_NAME}", "lives in"),
    (rf"{_I}(?:moved out of|moved away from|no longer live in|don't live in) {_NAME}", "no longer lives in"),
    (rf"{_I}(?:live|moved in|moved back in|am living) with {_NAME}", "lives with"),
    (rf"{_I}stud(?:y|ied) (?:\w+ )?at {_NAME}", "studies at"),
    (rf"{_I_AM}(?:originally )?from {_NAME}", "is from"),
    (rf"{_I_AM}(?:dating|engaged to|married to) {_NAME}", "is dating"),
    (rf"{_I}(?:broke|split) up with {_NAME}", "broke up with"),
    (rf"{_I_AM}(?P<o>\d{{1,2}}|[a-z]+(?:-[a-z]+)?) years old", "is years old"),
    (rf"{_I_AM}allergic to {_NOUN}", "is allergic to"),
    (rf"{_I_AM}(?P<o>vegan|vegetarian|retired|pregnant|divorced|single|diabetic)", "is"),
    (rf"{_I}(?:don't|do not|never) eat {_NOUN}", "does not eat"),
    (rf"{_I}(?:stopped|quit|gave up|no longer) (?:eat|eating) {_NOUN}", "no longer eats"),
    (rf"{_I}drive {_NOUN}", "drives"),
    (rf"{_I}speak {_NAME}", "speaks"),
    (rf"{_I}play (?:the )?{_NOUN}", "plays"),
    (rf"{_I}(?:have|own|adopted|got) (?P<o>(?:a|an|two|three|four|five|\d+) (?:\w+ )?"
     r"(?:dog|cat|puppy|kitten|rabbit|horse|bird|fish|hen|goat|sister|brother|son|daughter|bike|car|van)s?)", "has"),
    (rf"{_MY_THING}(?: is|'s) (?:now |called |named )*{_PROPER_VALUE}", "is"),
    (rf"\b[Mm]y(?: new)? (?P<what>(?:[\w-]+ ){{0,3}}{_CODE})(?: is|:|'s)(?: now)? (?P<o>\S*\d\S*?)", "is"),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern + _END), predicate) for pattern, predicate in _PATTERNS)
_UNSURE = re.compile(
    r"[?\"“”]|\b(?:if|would|could|might|maybe|perhaps|wish|used to|almost|nearly|imagine|pretend|joking|kidding|lol|"
    r"unless|thought|dream\w*|hope|want|tomorrow|plan\w*|going to|gonna|says?|said|told)\b",
    re.I,
)
_NO_VALUE = re.compile(
    r"^(?:I|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|a lot|it|that|this|when|where|you|him|her|them)$"
)


def pattern_facts(turns: list[dict[str, Any]]) -> Iterator[Fact]:
    """Extract facts from turns by regular expressions; turns of an assistant are skipped.

    Sentences that ask, suppose, quote or plan say nothing. Values stay as they are written.

    :param turns: rows of :class:`memlab.records.Turn`.

    >>> from memlab.knowledge import patterns
    >>> turn = {"turn_id": "u/1", "scope": "u", "session_id": "u/s", "speaker": "Mel", "role": "user",
    ...         "timestamp": None, "text": "My door code is 12u34. I would live in Rome if I could."}
    >>> [(fact.subject, fact.predicate, fact.object) for fact in patterns.pattern_facts([turn])]
    [("Mel's door code", 'is', '12u34')]
    """
    for turn in turns:
        if turn["role"] == "assistant":
            continue
        for sentence in sentences(turn["text"].replace("’", "'")):
            if _UNSURE.search(sentence):
                continue
            for pattern, predicate in _COMPILED:
                match = pattern.search(sentence)
                if match is None or _NO_VALUE.match(match["o"]):
                    continue
                subject = str(turn["speaker"] or "user")
                if what := match.groupdict().get("what"):
                    subject = f"{subject}'s {what}"
                yield make_fact([turn], (subject, predicate, match["o"]), source="stated")
                break


def make_fact(
    turns: list[dict[str, Any]],
    triple: tuple[str, str, str],
    *,
    source: str,
    text: str | None = None,
) -> Fact:
    """Make the fact that some turns state, from its subject, predicate and object.

    Its id is made of the first turn and the triple: other turns and other facts do not change it.

    :param text: a sentence that states the fact and is understood alone.
    """
    first = turns[0]
    system = all(turn["role"] == "system" for turn in turns)
    digest = hashlib.blake2b(
        "\x1f".join((*triple[:2], triple[2].casefold())).encode(), digest_size=6
    ).hexdigest()
    return Fact(
        f"{first['turn_id']}/f{digest}", first["scope"], *triple, "system" if system else source,
        [turn["turn_id"] for turn in turns], first["timestamp"], None, None if system else first["speaker"], text,
        first["session_id"],
    )  # fmt: skip
