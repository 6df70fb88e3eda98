"""Answers judged without a model: containment, token F1, numbers and dates as values, and whether one refuses."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

import polars as pl

from memlab.context.answers import UNMEASURABLE, answer_content, content
from memlab.language.cues import UNKNOWN
from memlab.language.tokens import plain, words
from memlab.language.words import ARTICLES

RULES = ("contains", "token F1", "values")
F1_ENOUGH = 0.5
"""Token F1 from which an answer counts as right; fixed beforehand, not fitted."""

_UNKNOWN = re.compile(UNKNOWN)


def refuses(answer: str) -> bool:
    """Say whether an answer says that it is not known (English).

    >>> from memlab.context import refuses
    >>> refuses("You never told me what it cost."), refuses("It cost $12.")
    (True, False)
    """
    return _UNKNOWN.search(answer) is not None


def contains(answer: str, gold: str) -> bool:
    """Say whether an answer contains the right one, without case, articles and punctuation.

    Source: SQuAD's normalisation (Rajpurkar et al., EMNLP 2016).

    >>> from memlab.context.rules import contains
    >>> contains("It was the Casa Viktor.", "Casa Viktor"), contains("Casablanca", "Casa")
    (True, False)
    """
    asked = _plain(gold)
    return bool(asked.strip()) and asked in _plain(answer)


def token_f1(answer: str, gold: str) -> float:
    """Give the F1 of the words that an answer shares with the right one.

    Source: Rajpurkar et al. (EMNLP 2016), section 6.1.

    >>> from memlab.context import token_f1
    >>> round(token_f1("a clarinet", "clarinet and violin"), 2)
    0.5
    """
    said, asked = Counter(_plain(answer).split()), Counter(_plain(gold).split())
    shared = (said & asked).total()
    return 2 * shared / (said.total() + asked.total()) if shared else 0.0


def by_rules(questions: pl.DataFrame, answered: pl.DataFrame) -> pl.DataFrame:
    """Judge answers by each of :data:`RULES`.

    ``values`` reads an answer as :func:`memlab.context.holds` reads a line: all numbers and dates, as values, and all
    telling words of the right answer must be in it, but for words of the question: "923" answers "how many pages". An
    answer that cannot be looked for (yes or no, or in words of its own) is judged by token F1 in ``values`` too.
    Where the conversations do not hold an answer, refusing is right; else it is wrong.

    :param questions: ``query_id``, ``text``, ``answer`` and ``abstention``.
    :param answered: ``query_id`` and ``answer``, null where there is none.
    :returns: ``query_id``, ``refuses``, ``f1``, and a column of true or false for each rule; null without an answer, or
        without a right one.
    """
    about = questions.select("query_id", "abstention", gold="answer", question="text")
    rows = answered.select("query_id", "answer").join(about, on="query_id", how="left", maintain_order="left")
    judged = [_judged(*row) for row in rows.select("answer", "gold", "question", "abstention").iter_rows()]
    schema = {"refuses": pl.Boolean(), "f1": pl.Float64(), **dict.fromkeys(RULES, pl.Boolean())}
    return rows.select("query_id").hstack(pl.DataFrame(judged, schema, orient="row"))


def _judged(answer: str | None, gold: str | None, question: str, abstention: bool) -> tuple[bool | float | None, ...]:
    if answer is None or (gold is None and not abstention):
        return (None,) * (2 + len(RULES))
    refused = refuses(answer)
    if abstention:
        return refused, None, *[refused] * len(RULES)
    f1 = token_f1(answer, gold or "")
    enough = f1 >= F1_ENOUGH
    values = enough if answer_content(gold).kind in UNMEASURABLE else _says(answer, gold or "", question)
    return refused, f1, *(verdict and not refused for verdict in (contains(answer, gold or ""), enough, values))


def _says(answer: str, gold: str, question: str) -> bool:
    said, asked = content(answer), content(question).words
    for items in answer_content(gold).alternatives:
        # An item that the question names as a whole, as one of two to choose from, is needed as a whole.
        needed = [new if (new := item._replace(words=item.words - asked)).tells else item for item in items]
        if all(said.has(item) for item in needed):
            return True
    return False


@lru_cache(maxsize=2_000)
def _plain(text: str) -> str:
    return f" {' '.join(word for word in words(plain(text)) if word not in ARTICLES)} "
