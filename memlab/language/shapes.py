"""What kind of turn or question a text is, by what it contains: patterns by name, in the syntax of polars."""

from __future__ import annotations

from memlab.language import cues
from memlab.language.words import MONTHS

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
    "asks_of_assistant": cues.OF_ASSISTANT,
    "asks_opinion": r"(?i)\b(?:would|might|could|likely|probably|considered)\b",
}
