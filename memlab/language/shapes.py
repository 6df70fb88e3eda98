"""What kind of turn or question a text is, by what it contains: patterns by name, in the syntax of polars."""

from __future__ import annotations

from memlab.language.words import MONTHS


def any_of(*phrases: str) -> str:
    """Write phrases as one pattern of whole words, in any case, with straight or curled apostrophes."""
    joined = "|".join(phrases).replace("'", "['’]")
    return rf"(?i)\b(?:{joined})\b"


OF_ASSISTANT = any_of(
    "(?:did|had) you",
    "you(?:'ve| have| had)? (?:[a-z]+ )?(?:suggest|recommend|propos|advis|mention|explain|list|call|warn|work)ed",
    "you(?:'ve| have| had)? (?:[a-z]+ )?(?:said|told|gave|given|wrote|written|(?:comput|calculat|estimat|nam)ed)",
    "you(?:'ve| have| had)? (?:[a-z]+ )?(?:draft|offer)ed",
    "your (?:[a-z]+ )?(?:suggestion|recommendation|proposal|advice|answer|draft|plan|estimate|calculation|list)s?",
)
"""Asks for what the assistant said, rather than for what it was told."""

ORDER = any_of(
    r"in (?:which|what|the) (?:\w+ )?(?:order|sequence)|(?:order|sequence) (?:of|in which)",
    r"chronolog\w*|timeline|one after (?:another|the other)|earliest|(?:first|start) to (?:last|finish|end)",
    r"first\b.{1,40}\b(?:last|next|second|what after|then what)|(?:sort|rank|put) (?:these|them|the following)",
)
"""Asks what came after what."""

SUMMARY = any_of(
    r"sum(?: \w+){0,3} up|summar\w+|overview|recap\w*|(?:run|walk|take) me through|(?:story|account) of",
    "(?:describe|tell me|explain) (?:how|what happened)|over the (?:months|weeks|course|year)|in the course of",
    r"how (?:did|has|have) .*\b(?:evolved?|develop(?:ed)?|changed?|progress(?:ed)?)",
)
"""Asks how something went, as a whole."""

_TIME = (
    r"(?i)\b(?:yesterday|today|tomorrow|tonight|last|next|ago|since|recently|soon|weeks?|weekend|months?|years?|days?|morning"
    r"|evening|(?:mon|tues|wednes|thurs|fri|satur|sun)day|\d+)\b"
)
TURN_SHAPES = {
    "asks": r"\?",
    "exclaims": "!",
    "digits": r"\d+",
    "time_words": _TIME + "|" + r"\b(?:" + "|".join(name.title() for name in MONTHS) + r")\b",
    "first_person": r"\b(?:I|me|my|mine|we|our|us)\b",
    "second_person": r"(?i)\b(?:you|your|yours)\b",
    "capitalised": r"[\p{Ll},] \p{Lu}\p{Ll}+",
}
QUESTION_SHAPES = {
    **{
        f"asks_{word}": rf"(?i)^\W*(?:[^?]*, )?{word}\b"
        for word in ("what", "which", "who", "where", "when", "why", "how")
    },
    "asks_how_many": r"(?i)\bhow (?:many|much|often)\b",
    "asks_yes_no": r"(?i)^\W*(?:do|does|did|is|are|was|were|has|have|had|can|could|will|would)\b",
    "asks_time": r"(?i)\b(?:when|how long|(?:what|which) (?:date|day|month|year|time))\b",
    "asks_plural": r"(?i)\b(?:what|which)(?: \w+){0,2} \w+s\b|"
    r"\b(?:all|both|each|every|many|list|different|types?|kinds?)\b",
    "asks_of_assistant": OF_ASSISTANT,
    "asks_opinion": r"(?i)\b(?:would|might|could|likely|probably|considered)\b",
}
