"""Rewriting follow-up questions so that they stand alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from memlab.errors import DataError
from memlab.llm import Service
from memlab.rewrite._context import Context
from memlab.rewrite.asking import asked
from memlab.rewrite.assemble import assemble, phrases
from memlab.rewrite.features import features
from memlab.rewrite.measure import content_words
from memlab.rewrite.model import Model, choose, shipped
from memlab.rewrite.pointing import pointed
from memlab.rewrite.signals import signals

SCHEMA: dict[str, Any] = {
    "question": pl.String,
    "rewritten": pl.String,
    "gated": pl.Boolean,
    "signals": pl.List(pl.String),
    "added": pl.List(pl.String),
    "method": pl.String,
}


def rewrite(
    questions: Sequence[str],
    histories: Sequence[Sequence[str]],
    *,
    topics: Sequence[Sequence[str]] | None = None,
    service: Service | None = None,
) -> pl.DataFrame:
    """Put back into follow-up questions what they leave out, so that they can be searched for.

    Only a question with a sign that it leans on what was said is touched (:func:`memlab.rewrite.signals.signals` names
    them), and never the first of a conversation. Without a service, small networks learned which words of the context
    people put into such questions; the names among these take the place of pronouns, the rest is appended. With a
    service, the model is shown the last six messages and rewrites; where it fails or answers instead, the question
    stays as it was.

    :param questions: n texts, each the newest message of its conversation.
    :param histories: for each, the messages before it, newest last, of both sides in turn; the last six are read.
    :param topics: for each, what the conversation is about where that is known, such as title and section of a page;
        they count as context, not as messages. Without them, a heading that opens a history is taken for one.
    :param service: a language model.
    :returns: a row for each question: ``question``, ``rewritten``, ``gated`` (whether a sign let it in), ``signals``,
        ``added`` (content words that are new) and ``method``: ``first``, ``untouched``, ``offline``, ``service`` or
        ``failed``.
    :raises DataError: when the lists differ in length, or a history is one text instead of messages.

    Source: term classification is that of Voskarides et al., Query Resolution for Conversational Search (SIGIR 2020);
    the weights were learned from rewrites of CANARD (Elgohary et al., EMNLP 2019; CC BY-SA 4.0).

    >>> from memlab.rewrite import rewrite
    >>> history = ["Who taught Lena Fischer to skate?", "Tomas Novak taught her in Prague."]
    >>> rewrite(["Where was she born?"], [history], topics=[["Lena Fischer"]])["rewritten"].item()
    'Where was Lena Fischer born?'
    """
    _check(questions, histories, topics)
    subjects = topics if topics is not None else [()] * len(questions)
    contexts = [Context.of(q, h, t) for q, h, t in zip(questions, histories, subjects, strict=True)]
    signs = [signals(c) if h else [] for c, h in zip(contexts, histories, strict=True)]
    rewritten = list(questions)
    methods = ["untouched" if history else "first" for history in histories]
    gated = [i for i, its in enumerate(signs) if its]
    new: list[str | None]
    if service is None:
        new = [offline(contexts[i], signs[i], shipped()) for i in gated]
    else:
        told = [histories[i] for i in gated], [subjects[i] for i in gated]
        new = asked([questions[i] for i in gated], *told, service=service)
    for i, text in zip(gated, new, strict=True):
        methods[i] = "failed" if text is None else "offline" if service is None else "service"
        rewritten[i] = questions[i] if text is None else text
    return pl.DataFrame(
        {
            "question": list(questions),
            "rewritten": rewritten,
            "gated": [bool(its) for its in signs],
            "signals": signs,
            "added": [_added(*pair) for pair in zip(questions, rewritten, strict=True)],
            "method": methods,
        },
        schema=SCHEMA,
    )


def offline(context: Context, signs: list[str], model: Model) -> str:
    """Rewrite one question, whose signals are there, by what a model says of the words before it."""
    chosen = choose(pointed(context, model.probabilities(features(context))))
    return assemble(context, phrases(context, chosen), signs)


def _added(question: str, rewritten: str) -> list[str]:
    had = set(content_words(question))
    return [word for word in dict.fromkeys(content_words(rewritten)) if word not in had]


def _check(
    questions: Sequence[str], histories: Sequence[Sequence[str]], topics: Sequence[Sequence[str]] | None
) -> None:
    counts = {"questions": len(questions), "histories": len(histories)}
    if topics is not None:
        counts["topics"] = len(topics)
    if len(set(counts.values())) > 1:
        lengths = ", ".join(f"{n} {name}" for name, n in counts.items())
        raise DataError(f"rewrite was given {lengths}; give one of each for every question")
    if any(isinstance(texts, str) for texts in [questions, *histories, *(topics or [])]):
        raise DataError("rewrite was given one text where it expects a list of texts: questions, histories of messages")
