"""The form of a question, whether it needs several evidence items, and the questions that it asks at once.

Everything is read from the text alone, so that it is known when a question is asked.
"""

from __future__ import annotations

import re
from itertools import groupby, takewhile

import polars as pl

from memlab.text.words import (
    ARTICLES,
    AUXILIARIES,
    DEMONSTRATIVES,
    FINITE_AUXILIARIES,
    POSSESSIVES,
    QUESTION_WORDS,
    wordset,
)

_TOKEN = re.compile(
    r"(?P<word>(?<!\w)(?:'.+?'|\".+?\"|“.+?”|‘.+?’)(?!\w))"
    r"|(?P<and>\b(?:and|or|nor|versus|vs\.?|compared (?:to|with)|instead of|as well as)\b|&)|(?P<comma>,)"
    r"|(?P<name>\d?[A-Z][\w'’$%.&-]*\w|[A-Z])|(?P<noun>[\w$#][\w'’$%.&-]*[\w%]|[\w$])|(?P<mark>\S)"
)
_DETERMINERS = ARTICLES | POSSESSIVES | {"some", "any"}
# What no list of nouns, names or verbs goes across.
_BOUNDARIES = (AUXILIARIES | QUESTION_WORDS | DEMONSTRATIVES).union(
    wordset(
        "i you he she it we they there not per both each many much all together combined total"
    ),
    wordset(
        "of in on at for from to with by about since until during after before into over under between among"
    ),
    wordset("through around out up as if first second third last"),
)
_GATHERING = re.compile(r"\s*\b(?:both|in common|together|combined|in total)\b", re.I)
_BETWEEN = re.compile(r"^(.*\bbetween) (.+?),? and (.+)$", re.I)
_CHOICE = re.compile(
    r"^(.*\b(?:what|which|who|where|when|how)\b[^,:]*)(?:: *(.+)|, *([^,]+? or [^,]+))$", re.I
)
_LISTED = re.compile(r",\s*(?:and|or)\s+|[,;]\s*|\s+or\s+")


def split_question(text: str) -> list[str]:
    """Ask once for each thing that a question compares, lists or joins; one that asks for one thing gives none.

    A list or a pair ("gifts for my coworker and brother", "the bike or the car", "between X and Y",
    several questions) gives one question for each member.

    >>> from memlab.text.questions import split_question
    >>> split_question("What do Ann and Bob both like?")
    ['What do Ann like', 'What do Bob like']
    """
    text = " ".join(text.split())
    return [part for part in dict.fromkeys(_split_at_structure(text)) if part != text]


def _split_at_structure(asked: str) -> list[str]:
    """Split a question into the questions, sides or choices that it names, else into its coordinations."""
    questions = [
        question for found in re.findall(r"[^?]*\?", asked) if (question := found.strip(" ?"))
    ]
    if len(questions) > 1:
        return questions
    asked = (questions or [asked])[0].rstrip("!. ")
    sides = _BETWEEN.match(asked)
    if sides and not (sides[2].split()[-1][0].isupper() and sides[3][0].isupper()):
        return [f"{sides[1]} {side}" for side in (sides[2], sides[3])]
    if choice := _CHOICE.match(asked):
        items = [item for item in _LISTED.split(choice[2] or choice[3]) if item]
        if len(items) > 1:
            return [f"{choice[1]} {item}" for item in items]
    # Between boundary words, each list is one of its own.
    tokens = _TOKEN.finditer(asked)
    ends = groupby(
        tokens, lambda token: token.lastgroup == "mark" or token.group().lower() in _BOUNDARIES
    )
    return [
        part
        for ends_list, run in ends
        if not ends_list
        for part in _split_coordination(asked, list(run))
    ]


def _split_coordination(asked: str, run: list[re.Match[str]]) -> list[str]:
    """Ask once for each member of "a, b and c": the text with that member in place of the list."""
    listed = groupby(run, lambda token: token.lastgroup in ("and", "comma"))
    members = [list(tokens) for joins, tokens in listed if not joins]
    if len(members) < 2 or not any(token.lastgroup == "and" for token in run):
        return []
    first, last = members[0], members[-1]
    if first[-1].lastgroup == last[0].lastgroup == "name":
        names = [
            list(takewhile(lambda token: token.lastgroup == "name", each))
            for each in (reversed(first), last)
        ]
        begin, last = len(first) - len(names[0]), names[1]
    else:
        # "sold the ring and the vanity" lists from its article on, "choose the sofa and decor"
        # behind it.
        articles = [i for i, token in enumerate(first) if token.group().lower() in _DETERMINERS]
        both = last[0].group().lower() in _DETERMINERS
        begin = articles[-1] + (not both) if articles else len(first) - 1
    begin = min(begin, len(first) - 1)
    before, after = asked[: first[begin].start()], asked[last[-1].end() :]
    spans = [(each[0].start(), each[-1].end()) for each in (first[begin:], *members[1:-1], last)]
    return [
        " ".join(_GATHERING.sub("", f"{before}{asked[start:end]}{after}").split())
        for start, end in spans
    ]


# Orders of events, and overviews.
_ORDER_OR_OVERVIEW = (
    r"\b(?:in (?:which|what|the) (?:\w+ )?(?:order|sequence)|(?:order|sequence) (?:of|in which)"
    r"|chronolog\w*|timeline|one after (?:another|the other)|earliest|(?:first|start) to (?:last|finish|end)"
    r"|first\b.{1,40}\b(?:last|next|second|what after|then what)|(?:sort|rank|put) (?:these|them|the following)"
    r"|sum(?: \w+){0,3} up|summar\w+|overview|recap\w*|(?:run|walk|take) me through|(?:story|account) of"
    r"|(?:describe|tell me|explain) (?:how|what happened)|over the (?:months|weeks|course|year)|in the course of"
    r"|how (?:did|has|have) .*\b(?:evolved?|develop(?:ed)?|changed?|progress(?:ed)?))\b"
)
_UNITS = "(?:seconds|minutes|hours|days|nights|weeks|weekends|months|years|decades)"
_SPAN = "(?:ago|pass(?:ed)?|elapsed|apart|between|since|before|after|until|till|when i|had i been|have i been|older)"
_KIND = "(?:kind|type|sort) of"
_PLURAL = r"(?:[a-z]+[- ]){0,3}[a-z]*[a-hj-rtv-z]s (?:has|have|had|are|were|do|does|did|would|can|could)\b"
_FORMS: tuple[tuple[str, str], ...] = (
    (
        "how long",
        rf"how (?:long|old)\b|how many {_UNITS}\b.*\b{_SPAN}\b|how much (?:older|younger|longer|time)\b",
    ),
    (
        "how many",
        r"how (?:many|much|often)\b|(?:what|which) (?:is|was|are|were) the (?:[a-z]+ ){0,2}(?:total|number)\b",
    ),
    (
        "which",
        r"which .*\b(?:first|last|earlier|later|most|least)\b",
    ),  # one of several named, and no list
    (
        "list",
        r"(?:list|name|enumerate)\b|(?:which|what|who) all\b|(?:what|which|who) (?:is|are|were|was) "
        r"(?:all|each|every|(?:the )?(?:different|order|various|two|three|four|five|six|seven|eight|nine|ten)|some)\b"
        rf"|(?:what|which) (?:{_KIND} )?{_PLURAL}|(?:what|which) (?:[a-z]+ )?(?:kinds|types|sorts) of\b",
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
FORMS = (
    "how many",
    "how long",
    "list",
    "when",
    "who",
    "where",
    "why",
    "which",
    "what",
    "how",
    "yes-no",
    "other",
)
_START = (
    r"(?:^|[.,;:!?–—-]\s+)[\"'“‘(]*(?:(?:and|but|so|then|also|or|roughly|about)\s+)?"
    r"(?:(?:in|on|at|for|from|to|with|by|of|about|since|until|during|after|before)\s+)?"
)
_PREAMBLE = (
    r"(?:can|could|would) you (?:please )?(?:remind|tell) me(?: again)?(?: of| about)?"
    r"|according to \S+(?: \S+)?,"
)
_AGGREGATE = (
    r"\b(?:how many|how often|in total|total|altogether|combined|all|each|every|different|various|both|in common"
    r"|average|sum|number of|order of|earliest to latest|in the order)\b"
)


def question_form(text: str | pl.Expr = "text") -> pl.Expr:
    """Give the form of questions, one of :data:`FORMS`, as an expression over a column of their texts.

    The first form that opens a clause counts. "What kind of books has he?" asks for a list, as
    "what books" does; "what kind of car" does not.

    :param text: name of the column, or an expression.

    >>> import polars as pl
    >>> from memlab.text.questions import question_form
    >>> asked = pl.DataFrame({"text": ["How many doctors did I see?", "What pets do I have?", "Did I go?"]})
    >>> asked.select(question_form())["form"].to_list()
    ['how many', 'list', 'yes-no']
    """
    clean, which = _normalized_text(text), pl.lit("other")
    for name, pattern in reversed(_FORMS):
        which = (
            pl.when(clean.str.contains(f"{_START}(?:{pattern})"))
            .then(pl.lit(name))
            .otherwise(which)
        )
    return which.alias("form")


def asks_for_aggregation(text: str | pl.Expr = "text") -> pl.Expr:
    """Tell whether questions ask for a count, a list, an order or an overview, which one evidence item cannot give.

    However much there is to count, one or two dates answer "how many weeks ago": a question of form
    ``how long`` is none.

    :param text: name of the column, or an expression.

    >>> import polars as pl
    >>> from memlab.text.questions import asks_for_aggregation
    >>> asked = pl.DataFrame({"text": ["How many doctors did I see?", "Where do I live?"]})
    >>> asked.select(asks_for_aggregation())["aggregation"].to_list()
    [True, False]
    """
    which, clean = question_form(text), _normalized_text(text)
    counted = clean.str.contains(_AGGREGATE) & (which != "how long")
    return (
        counted | clean.str.contains(_ORDER_OR_OVERVIEW) | which.is_in(["how many", "list"])
    ).alias("aggregation")


def _normalized_text(text: str | pl.Expr) -> pl.Expr:
    expr = pl.col(text) if isinstance(text, str) else text
    return (
        expr.str.to_lowercase()
        .str.strip_chars()
        .str.replace_all(r"\s+", " ")
        .str.replace_all(_PREAMBLE, ". ")
    )
