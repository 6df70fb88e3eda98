"""Groups of questions: by kind, by number of evidence sessions, by form.

A mean over all questions hides the ones that need several pieces. The form of a question is read from its text alone,
so that it is known when the question is asked, before any label.
"""

from __future__ import annotations

import polars as pl

from memlab.errors import DataError
from memlab.records import Dataset, Level, qrels

MULTI_SESSION = "≥ 2"
"""The derived group of questions whose evidence lies in two or more sessions."""

_UNITS = "(?:seconds|minutes|hours|days|nights|weeks|weekends|months|years|decades)"
_SPAN = "(?:ago|pass(?:ed)?|elapsed|apart|between|since|before|after|until|till|when i|had i been|have i been|older)"
_PLURAL = r"(?:[a-z]+[- ]){0,3}[a-z]*[a-hj-rtv-z]s"

_FORMS: tuple[tuple[str, str], ...] = (
    ("how long", rf"how (?:long|old)\b|how many {_UNITS}\b.*\b{_SPAN}\b|how much (?:older|younger|longer|time)\b"),
    (
        "how many",
        r"how (?:many|much|often)\b|(?:what|which) (?:is|was|are|were) the (?:[a-z]+ ){0,2}(?:total|number)\b",
    ),
    # One of a kind, or one of several named: the plural below does not make these a list.
    ("what", r"what (?:kind|type|sort|pair|piece) of\b"),
    ("which", r"which (?:kind|type|sort|pair|piece) of\b|which .*\b(?:first|last|earlier|later|most|least)\b"),
    (
        "list",
        r"(?:list|name|enumerate)\b|(?:which|what|who) all\b|(?:what|which|who) (?:is|are|were|was) "
        r"(?:all|each|every|(?:the )?(?:different|order|various|two|three|four|five|six|seven|eight|nine|ten)|some)\b"
        rf"|(?:what|which) {_PLURAL} (?:has|have|had|are|were|do|does|did|would|can|could)\b"
        r"|(?:what|which) (?:[a-z]+ )?(?:kinds|types|sorts) of\b",
    ),
    (
        "advice",
        r"(?:can|could|would|will) you (?:please )?(?:suggest|recommend|help|give|advise|share|offer)\b"
        r"|(?:do you have )?any (?:[a-z]+ ){0,2}(?:tips|advice|suggestions?|ideas|recommendations|thoughts)\b"
        r"|do you have any\b|what should i\b|what do you (?:suggest|recommend|think)\b",
    ),
    ("when", r"when\b|(?:what|which) (?:time|date|day|week|weekend|month|year|season)\b"),
    ("who", r"who(?:m|se|'s|’s)?\b"),
    ("where", r"where(?:'s|’s)?\b"),
    ("why", r"why\b|how come\b|what (?:is|was|were|are) the reasons?\b"),
    ("which", r"which\b"),
    ("what", r"what(?:'s|’s)?\b"),
    ("how", r"how\b"),
    (
        "yes-no",
        r"(?:am|is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|might|may|must)(?:n't|n’t)?\b",
    ),
)
FORMS: tuple[str, ...] = (
    *("how many", "how long", "list", "when", "who", "where", "why", "which", "what", "how"),
    *("yes-no", "advice", "other"),
)

_START = (
    r"(?:^|[.,;:!?–—-]\s+)[\"'“‘(]*(?:(?:and|but|so|then|also|or)\s+)?"
    r"(?:(?:in|on|at|for|from|to|with|by|of|about|since|until|during|after|before)\s+)?"
)
_PREAMBLE = (
    r"(?:can|could|would) you (?:please )?(?:remind|tell) me(?: again)?(?: of| about)?|according to \S+(?: \S+)?,"
)
_ANYWHERE = ("how long", "how many", "when", "who", "where", "why", "which", "what", "how")
_AGGREGATION = (
    r"\b(?:how many|how often|in total|total|altogether|combined|all|each|every|different|various|both|in common"
    r"|average|sum|number of|list|order of|earliest to latest|in the order)\b"
)


def question_form(text: str | pl.Expr = "text") -> pl.Expr:
    """Tell the form of questions, as an expression over a column of their texts.

    The first form that opens a clause counts; a question word in the middle of one is the fallback, so that "I forgot,
    which was it?" and "remind me what I said" both find theirs. The forms are :data:`FORMS`.

    :param text: name of the column, or an expression.

    >>> import polars as pl
    >>> from memlab.evaluate import question_form
    >>> asked = pl.DataFrame({"text": ["How many doctors did I see?", "What pets do I have?", "Did I go?"]})
    >>> asked.select(question_form())["form"].to_list()
    ['how many', 'list', 'yes-no']
    """
    clean = _clean(text)
    form = pl.lit("other")
    for name, pattern in reversed(_FORMS):
        if name in _ANYWHERE:
            form = pl.when(clean.str.contains(rf"\b(?:{pattern})")).then(pl.lit(name)).otherwise(form)
    for name, pattern in reversed(_FORMS):
        form = pl.when(clean.str.contains(rf"{_START}(?:{pattern})")).then(pl.lit(name)).otherwise(form)
    return form.alias("form")


def aggregation(text: str | pl.Expr = "text") -> pl.Expr:
    """Tell whether questions ask for something counted, summed or listed, so that one piece of evidence cannot do.

    :param text: name of the column, or an expression.

    >>> import polars as pl
    >>> from memlab.evaluate import aggregation
    >>> asked = pl.DataFrame({"text": ["How many doctors did I see?", "Where do I live?"]})
    >>> asked.select(aggregation())["aggregation"].to_list()
    [True, False]
    """
    clean = _clean(text)
    counted = clean.str.contains(_AGGREGATION) & (question_form(text) != "how long")
    return (counted | question_form(text).is_in(["how many", "list"])).alias("aggregation")


def _clean(text: str | pl.Expr) -> pl.Expr:
    expr = pl.col(text) if isinstance(text, str) else text
    return expr.str.to_lowercase().str.strip_chars().str.replace_all(r"\s+", " ").str.replace_all(_PREAMBLE, ". ")


def describe_questions(dataset: Dataset, level: Level) -> pl.DataFrame:
    """Give what each question with evidence is grouped by.

    :returns: a row a question that has evidence at this level: ``query_id``, ``scope``, ``question_type``, ``form``,
        ``aggregation``, ``n_evidence_sessions``, ``evidence_sessions`` (``1``, ``2``, ``3``, ``4+``), ``n_relevant``
        and ``n_docs``, the number of turns or sessions in the question's scope.
    :raises DataError: when no question has evidence.
    """
    relevant = qrels(dataset.questions, level).frame.group_by("query_id").agg(n_relevant=pl.len().cast(pl.Int32))
    # A session without turns has nothing to be found by, so it is no candidate.
    documents = dataset.turns if level == "turn" else dataset.sessions.filter(pl.col("n_turns") > 0)
    sizes = documents.group_by("scope").agg(n_docs=pl.len().cast(pl.Int32))
    asked = dataset.questions.join(relevant, on="query_id", maintain_order="left")
    if not asked.height:
        raise DataError(
            f"dataset {dataset.name!r} has {dataset.questions.height} questions and none with evidence {level}s; "
            "measures need evidence ids: ask without measuring, or label some questions"
        )
    unknown = asked.join(sizes, on="scope", how="anti")
    if unknown.height:
        at = unknown.row(0, named=True)
        raise DataError(
            f"dataset {dataset.name!r}: question {at['query_id']!r} is about scope {at['scope']!r}, which has "
            f"no {level}s; load the conversation together with its questions"
        )
    n_sessions = pl.col("evidence_sessions").list.n_unique().cast(pl.Int32)
    return (
        asked.join(sizes, on="scope", how="left", maintain_order="left")
        .with_columns(question_form(), aggregation(), n_evidence_sessions=n_sessions)
        .with_columns(
            evidence_sessions=pl.when(pl.col("n_evidence_sessions") >= 4)
            .then(pl.lit("4+"))
            .otherwise(pl.col("n_evidence_sessions").cast(pl.String))
        )
        .select(
            *("query_id", "scope", "question_type", "form", "aggregation"),
            *("n_evidence_sessions", "evidence_sessions", "n_relevant", "n_docs"),
        )
    )
