"""What a question asks for, and what kind of turn or question a text is: patterns over words, in the syntax of polars.

Everything is read from the text alone, so that it is known when a question is asked.
"""

from __future__ import annotations

import polars as pl

from memlab.text.words import FINITE_AUXILIARIES, MONTHS


def _any_of(*phrases: str) -> str:
    """Write phrases as one pattern of whole words, in any case, with straight or curled apostrophes."""
    joined = "|".join(phrases).replace("'", "['’]")
    return rf"(?i)\b(?:{joined})\b"


_YOU = "you(?:'ve| have| had)? (?:[a-z]+ )?"
OF_ASSISTANT = _any_of(
    "(?:did|had) you",
    f"{_YOU}(?:suggest|recommend|propos|advis|mention|explain|list|call|warn|work)ed",
    f"{_YOU}(?:said|told|gave|given|wrote|written|(?:comput|calculat|estimat|nam)ed)",
    f"{_YOU}(?:draft|offer)ed",
    "your (?:[a-z]+ )?(?:suggestion|recommendation|proposal|advice|answer|draft|plan|estimate|calculation|list)s?",
)
"""Asks for what the assistant said, rather than for what it was told."""

ORDER = _any_of(
    r"in (?:which|what|the) (?:\w+ )?(?:order|sequence)|(?:order|sequence) (?:of|in which)",
    r"chronolog\w*|timeline|one after (?:another|the other)|earliest|(?:first|start) to (?:last|finish|end)",
    r"first\b.{1,40}\b(?:last|next|second|what after|then what)|(?:sort|rank|put) (?:these|them|the following)",
)
"""Asks what came after what."""

SUMMARY = _any_of(
    r"sum(?: \w+){0,3} up|summar\w+|overview|recap\w*|(?:run|walk|take) me through|(?:story|account) of",
    "(?:describe|tell me|explain) (?:how|what happened)|over the (?:months|weeks|course|year)|in the course of",
    r"how (?:did|has|have) .*\b(?:evolved?|develop(?:ed)?|changed?|progress(?:ed)?)",
)
"""Asks how something went, as a whole."""

TURN_SHAPES = {
    "asks": r"\?",
    "exclaims": "!",
    "digits": r"\d+",
    "time_words": r"(?i)\b(?:yesterday|today|tomorrow|tonight|last|next|ago|since|recently|soon|weeks?|weekend|months?"
    r"|years?|days?|morning|evening|(?:mon|tues|wednes|thurs|fri|satur|sun)day|\d+)\b|"
    rf"\b(?:{'|'.join(MONTHS).title()})\b",
    "first_person": r"\b(?:I|me|my|mine|we|our|us)\b",
    "second_person": r"(?i)\b(?:you|your|yours)\b",
    "capitalised": r"[\p{Ll},] \p{Lu}\p{Ll}+",
}
"""Patterns that the learned reranker counts in a turn."""

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
"""Patterns that the learned reranker looks for in a question."""

_UNITS = "(?:seconds|minutes|hours|days|nights|weeks|weekends|months|years|decades)"
_SPAN = "(?:ago|pass(?:ed)?|elapsed|apart|between|since|before|after|until|till|when i|had i been|have i been|older)"
_PLURAL = r"(?:[a-z]+[- ]){0,3}[a-z]*[a-hj-rtv-z]s (?:has|have|had|are|were|do|does|did|would|can|could)\b"
_KIND = "(?:kind|type|sort) of"
_FORMS: tuple[tuple[str, str], ...] = (
    ("how long", rf"how (?:long|old)\b|how many {_UNITS}\b.*\b{_SPAN}\b|how much (?:older|younger|longer|time)\b"),
    (
        "how many",
        r"how (?:many|much|often)\b|(?:what|which) (?:is|was|are|were) the (?:[a-z]+ ){0,2}(?:total|number)\b",
    ),
    # One of a kind, or one of several named: the plural below does not make these a list.
    ("what", rf"what (?:pair|piece) of\b|what {_KIND} (?:.*\bmost\b|(?:[a-z]+ ){{0,3}}(?:lens|series|news|species)\b)"),
    ("which", r"which (?:pair|piece) of\b|which .*\b(?:first|last|earlier|later|most|least)\b"),
    (
        "list",
        r"(?:list|name|enumerate)\b|(?:which|what|who) all\b|(?:what|which|who) (?:is|are|were|was) "
        r"(?:all|each|every|(?:the )?(?:different|order|various|two|three|four|five|six|seven|eight|nine|ten)|some)\b"
        rf"|(?:what|which) (?:{_KIND} )?{_PLURAL}|(?:what|which) (?:[a-z]+ )?(?:kinds|types|sorts) of\b",
    ),
    (
        "advice",
        r"(?:can|could|would|will) you (?:please )?(?:suggest|recommend|help|give|advise|share|offer)\b"
        r"|(?:do you have )?any (?:[a-z]+ ){0,2}(?:tips|advice|suggestions?|ideas|recommendations|thoughts)\b"
        r"|do you have any\b|what should i\b|what do you (?:suggest|recommend|think)\b",
    ),
    ("when", r"when\b|(?:what|which) (?:time|date|day|week|weekend|month|year|season)\b"),
    ("who", r"who(?:m|se|'s|’s)?\b"),
    ("where", r"where\b"),
    ("why", r"why\b|how come\b|what (?:is|was|were|are) the reasons?\b"),
    ("which", r"which\b"),
    ("what", r"what\b"),
    ("how", r"how\b"),
    ("yes-no", rf"(?:{'|'.join(sorted(FINITE_AUXILIARIES))})(?:n't|n’t)?\b"),
)
FORMS: tuple[str, ...] = (
    *("how many", "how long", "list", "when", "who", "where", "why", "which", "what", "how"),
    *("yes-no", "advice", "other"),
)
_ANYWHERE = frozenset(FORMS[:10]) - {"list"}
_START = (
    r"(?:^|[.,;:!?–—-]\s+)[\"'“‘(]*(?:(?:and|but|so|then|also|or)\s+)?"
    r"(?:(?:in|on|at|for|from|to|with|by|of|about|since|until|during|after|before)\s+)?"
)
_PREAMBLE = (
    r"(?:can|could|would) you (?:please )?(?:remind|tell) me(?: again)?(?: of| about)?|according to \S+(?: \S+)?,"
)
# What opens a clause counts before what stands anywhere.
_PATTERNS = (
    *((name, rf"{_START}(?:{pattern})") for name, pattern in _FORMS),
    *((name, rf"\b(?:{pattern})") for name, pattern in _FORMS if name in _ANYWHERE),
)
_COUNTED = (
    r"\b(?:how many|how often|in total|total|altogether|combined|all|each|every|different|various|both|in common"
    r"|average|sum|number of|order of|earliest to latest|in the order)\b"
)


def question_form(text: str | pl.Expr = "text") -> pl.Expr:
    """Tell the form of questions, one of :data:`FORMS`, as an expression over a column of their texts.

    The first form that opens a clause counts; a question word in the middle of one is the fallback, so that "I forgot,
    which was it?" and "remind me what I said" both find theirs. "What kind of books has he?" asks for a list, as "what
    books" does; "what kind of car" does not.

    :param text: name of the column, or an expression.

    >>> import polars as pl
    >>> from memlab.text.questions import question_form
    >>> asked = pl.DataFrame({"text": ["How many doctors did I see?", "What pets do I have?", "Did I go?"]})
    >>> asked.select(question_form())["form"].to_list()
    ['how many', 'list', 'yes-no']
    """
    clean = _clean(text)
    which = pl.lit("other")
    for name, pattern in reversed(_PATTERNS):
        which = pl.when(clean.str.contains(pattern)).then(pl.lit(name)).otherwise(which)
    return which.alias("form")


def aggregation(text: str | pl.Expr = "text") -> pl.Expr:
    """Tell whether questions ask for something counted, listed, put in order or told as a whole: one piece cannot do.

    However much there is to count, one or two dates answer "how many weeks ago": a question of form ``how long`` is
    none.

    :param text: name of the column, or an expression.

    >>> import polars as pl
    >>> from memlab.text.questions import aggregation
    >>> asked = pl.DataFrame({"text": ["How many doctors did I see?", "Where do I live?"]})
    >>> asked.select(aggregation())["aggregation"].to_list()
    [True, False]
    """
    which = question_form(text)
    counted = _clean(text).str.contains(_COUNTED) & (which != "how long")
    whole = _clean(text).str.contains(f"{ORDER}|{SUMMARY}")
    return (counted | whole | which.is_in(["how many", "list"])).alias("aggregation")


def _clean(text: str | pl.Expr) -> pl.Expr:
    expr = pl.col(text) if isinstance(text, str) else text
    return expr.str.to_lowercase().str.strip_chars().str.replace_all(r"\s+", " ").str.replace_all(_PREAMBLE, ". ")
