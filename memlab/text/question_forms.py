"""The form of a question, whether it needs several evidence items, and what it asks at once.

Everything is read from the text alone, so that it is known when a question is asked.
"""

from __future__ import annotations

import re
from itertools import groupby, takewhile

import polars as pl

from memlab.text.closed_word_classes import (
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
    r"|(?P<and>\b(?:and|or|nor|versus|vs\.?|compared (?:to|with)|instead of|as well as)\b|&)"
    r"|(?P<comma>,)|(?P<name>\d?[A-Z][\w'’$%.&-]*\w|[A-Z])"
    r"|(?P<noun>[\w$#][\w'’$%.&-]*[\w%]|[\w$])|(?P<mark>\S)"
)
_DETERMINERS = ARTICLES | POSSESSIVES | {"some", "any"}
# What no list of nouns, names or verbs goes across.
_BOUNDARIES = (AUXILIARIES | QUESTION_WORDS | DEMONSTRATIVES).union(
    wordset(
        "i you he she it we they there not per both each many much all together combined total"
    ),
    wordset("of in on at for from to with by about since until during after before"),
    wordset("into over under between among"),
    wordset("through around out up as if first second third last"),
)
_GATHERING = re.compile(r"\s*\b(?:both|in common|together|combined|in total)\b", re.I)
_BETWEEN = re.compile(r"^(.*\bbetween) (.+?),? and (.+)$", re.I)
_CHOICE = re.compile(
    r"^(.*\b(?:what|which|who|where|when|how)\b[^,:]*)(?:: *(.+)|, *([^,]+? or [^,]+))$", re.I
)
_LISTED = re.compile(r",\s*(?:and|or)\s+|[,;]\s*|\s+or\s+")


def split_question(text: str) -> list[str]:
    """Ask once for each thing that a question compares, lists or joins.

    One that asks for one thing gives none. A list or a pair ("gifts for my coworker and brother",
    "the bike or the car", "between X and Y", several questions) gives one question for each member.

    >>> from memlab.text.question_forms import split_question
    >>> split_question("What do Ann and Bob both like?")
    ['What do Ann like', 'What do Bob like']
    """
    text = " ".join(text.split())
    return [
        sub_question
        for sub_question in dict.fromkeys(_split_into_asked_parts(text))
        if sub_question != text
    ]


def _split_into_asked_parts(question: str) -> list[str]:
    """Split a question into the questions, sides or choices that it names.

    Where it names none, it is split into its coordinations.
    """
    sentences = [sentence.strip(" ?") for sentence in re.findall(r"[^?]*\?", question)]
    questions = [*filter(None, sentences)]
    if len(questions) > 1:
        return questions
    if questions:
        question = questions[0]
    question = question.rstrip("!. ")
    between_sides = _BETWEEN.match(question)
    if between_sides and not _are_both_sides_names(between_sides):
        return [f"{between_sides[1]} {between_sides[2]}", f"{between_sides[1]} {between_sides[3]}"]
    choice_match = _CHOICE.match(question)
    if choice_match:
        choice_items = [*filter(None, _LISTED.split(choice_match[2] or choice_match[3]))]
        if len(choice_items) > 1:
            return [f"{choice_match[1]} {choice_item}" for choice_item in choice_items]
    # Between boundary words, each list is one of its own.
    sub_questions = []
    for is_boundary, token_run in groupby(_TOKEN.finditer(question), _is_clause_boundary):
        if not is_boundary:
            sub_questions += _split_coordination(question, list(token_run))
    return sub_questions


def _are_both_sides_names(between_match: re.Match[str]) -> bool:
    """Say whether "between X and Y" is between two names, which are asked about together."""
    last_word = between_match[2].split()[-1]
    return last_word[0].isupper() and between_match[3][0].isupper()


def _is_clause_boundary(token: re.Match[str]) -> bool:
    return token.lastgroup == "mark" or token.group().lower() in _BOUNDARIES


def _is_and_or_comma(token: re.Match[str]) -> bool:
    return token.lastgroup in ("and", "comma")


def _is_name_token(token: re.Match[str]) -> bool:
    return token.lastgroup == "name"


def _is_determiner_token(token: re.Match[str]) -> bool:
    return token.group().lower() in _DETERMINERS


def _split_coordination(question: str, token_run: list[re.Match[str]]) -> list[str]:
    """Ask once for each member of "a, b and c": the text with that member in place of the list."""
    member_tokens = []
    for is_joining, tokens in groupby(token_run, _is_and_or_comma):
        if not is_joining:
            member_tokens.append(list(tokens))
    has_and = any(token.lastgroup == "and" for token in token_run)
    if len(member_tokens) < 2 or not has_and:
        return []
    member_tokens[0], member_tokens[-1] = _trim_first_and_last_member(
        member_tokens[0], member_tokens[-1]
    )

    text_before = question[: member_tokens[0][0].start()]
    text_after = question[member_tokens[-1][-1].end() :]
    sub_questions = []
    for member in member_tokens:
        wording = question[member[0].start() : member[-1].end()]
        member_question = _GATHERING.sub("", f"{text_before}{wording}{text_after}")
        sub_questions.append(" ".join(member_question.split()))
    return sub_questions


def _trim_first_and_last_member(
    first_member: list[re.Match[str]], last_member: list[re.Match[str]]
) -> tuple[list[re.Match[str]], list[re.Match[str]]]:
    """Cut what stands before the list off its first member, and what follows it off its last."""
    if _is_name_token(first_member[-1]) and _is_name_token(last_member[0]):
        n_names = len(list(takewhile(_is_name_token, reversed(first_member))))
        return first_member[-n_names:], list(takewhile(_is_name_token, last_member))
    start_place = len(first_member) - 1
    determiners = [place for place, token in enumerate(first_member) if _is_determiner_token(token)]
    if determiners:
        # "sold the ring and the vanity" lists from its article on, "choose the sofa and decor"
        # behind it.
        place_behind = (
            determiners[-1] if _is_determiner_token(last_member[0]) else determiners[-1] + 1
        )
        start_place = min(start_place, place_behind)
    return first_member[start_place:], last_member


# Orders of events, and overviews.
_ORDER_OR_OVERVIEW = (
    r"\b(?:in (?:which|what|the) (?:\w+ )?(?:order|sequence)|(?:order|sequence) (?:of|in which)"
    r"|chronolog\w*|timeline|one after (?:another|the other)|earliest"
    r"|(?:first|start) to (?:last|finish|end)"
    r"|first\b.{1,40}\b(?:last|next|second|what after|then what)"
    r"|(?:sort|rank|put) (?:these|them|the following)"
    r"|sum(?: \w+){0,3} up|summar\w+|overview|recap\w*|(?:run|walk|take) me through"
    r"|(?:story|account) of|(?:describe|tell me|explain) (?:how|what happened)"
    r"|over the (?:months|weeks|course|year)|in the course of"
    r"|how (?:did|has|have) .*\b(?:evolved?|develop(?:ed)?|changed?|progress(?:ed)?))\b"
)
_UNITS = "(?:seconds|minutes|hours|days|nights|weeks|weekends|months|years|decades)"
_SPAN = (
    "(?:ago|pass(?:ed)?|elapsed|apart|between|since|before|after|until|till|when i|had i been"
    "|have i been|older)"
)
_KIND = "(?:kind|type|sort) of"
_PLURAL = (
    r"(?:[a-z]+[- ]){0,3}[a-z]*[a-hj-rtv-z]s "
    r"(?:has|have|had|are|were|do|does|did|would|can|could)\b"
)
_FORMS: tuple[tuple[str, str], ...] = (
    (
        "how long",
        rf"how (?:long|old)\b|how many {_UNITS}\b.*\b{_SPAN}\b"
        r"|how much (?:older|younger|longer|time)\b",
    ),
    (
        "how many",
        r"how (?:many|much|often)\b"
        r"|(?:what|which) (?:is|was|are|were) the (?:[a-z]+ ){0,2}(?:total|number)\b",
    ),
    # One of several named, and no list.
    ("which", r"which .*\b(?:first|last|earlier|later|most|least)\b"),
    (
        "list",
        r"(?:list|name|enumerate)\b|(?:which|what|who) all\b"
        r"|(?:what|which|who) (?:is|are|were|was) (?:all|each|every|(?:the )?(?:different|order"
        r"|various|two|three|four|five|six|seven|eight|nine|ten)|some)\b"
        rf"|(?:what|which) (?:{_KIND} )?{_PLURAL}"
        r"|(?:what|which) (?:[a-z]+ )?(?:kinds|types|sorts) of\b",
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
    r"\b(?:how many|how often|in total|total|altogether|combined|all|each|every|different|various"
    r"|both|in common|average|sum|number of|order of|earliest to latest|in the order)\b"
)


def question_form(text: str | pl.Expr = "text") -> pl.Expr:
    """Read the form of questions, one of :data:`FORMS`: an expression over a column of texts.

    The first form that opens a clause counts. "What kind of books has he?" asks for a list, as
    "what books" does; "what kind of car" does not.

    :param text: name of the column, or an expression.

    >>> import polars as pl
    >>> from memlab.text.question_forms import question_form
    >>> texts = ["How many doctors did I see?", "What pets do I have?", "Did I go?"]
    >>> pl.DataFrame({"text": texts}).select(question_form())["form"].to_list()
    ['how many', 'list', 'yes-no']
    """
    normalized = _normalized_question_expr(text)
    form_expr = pl.lit("other")
    # The first form that fits is written last, around all others.
    for form_name, pattern in reversed(_FORMS):
        form_fits = normalized.str.contains(f"{_START}(?:{pattern})")
        form_expr = pl.when(form_fits).then(pl.lit(form_name)).otherwise(form_expr)
    return form_expr.alias("form")


def asks_for_aggregation(text: str | pl.Expr = "text") -> pl.Expr:
    """Tell whether questions ask for a count, a list, an order or an overview.

    One evidence item cannot give these. However much there is to count, one or two dates answer
    "how many weeks ago": a question of form ``how long`` is none.

    :param text: name of the column, or an expression.

    >>> import polars as pl
    >>> from memlab.text.question_forms import asks_for_aggregation
    >>> asked = pl.DataFrame({"text": ["How many doctors did I see?", "Where do I live?"]})
    >>> asked.select(asks_for_aggregation())["aggregation"].to_list()
    [True, False]
    """
    form_expr = question_form(text)
    normalized = _normalized_question_expr(text)
    asks_for_count = normalized.str.contains(_AGGREGATE) & (form_expr != "how long")
    asks_for_order = normalized.str.contains(_ORDER_OR_OVERVIEW)
    asks_for_list = form_expr.is_in(["how many", "list"])
    return (asks_for_count | asks_for_order | asks_for_list).alias("aggregation")


def _normalized_question_expr(text: str | pl.Expr) -> pl.Expr:
    text_column = pl.col(text) if isinstance(text, str) else text
    return (
        text_column.str.to_lowercase()
        .str.strip_chars()
        .str.replace_all(r"\s+", " ")
        .str.replace_all(_PREAMBLE, ". ")
    )
