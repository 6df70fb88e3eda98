"""Rewriting of follow-up questions: which of them need the history, and their standalone form."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import polars as pl
from pydantic import BaseModel, Field

from memlab import llm
from memlab.conversation.messages import Message, parse_messages
from memlab.errors import DataError, warn_user
from memlab.text.tokens import Token, bare_word, tokens
from memlab.text.words import FINITE_AUXILIARIES, HE, QUESTION_WORDS, SHE, STOP_WORDS, THIRD_PERSON

VERSION = 1
HISTORY_MESSAGES = 6
"""Messages before a question that a model reads."""

SYSTEM = (
    "The user asks one question after another. Rewrite the last question so that it is understood without the others: "
    "put what he, it, that, there, the second one or the other one stand for in their place, and add what is left out, "
    "such as whose, of what or when. Keep names and dates as they were written. Keep a question that stands alone, or "
    "that opens another topic, word for word. Add nothing else. Never answer it."
)
# A rewrite may be this many times as long as its question, and this many words longer.
_MAX_RATIO, _MAX_EXTRA_WORDS = 2, 30
# A question without a name is short with at most so many content words.
_SHORT_QUESTION_WORDS = 2
# Content words of an answer that are appended; long answers would drown the question.
_MAX_ANSWER_WORDS = 20

_ELLIPSIS = re.compile(
    r"\s*(?:and|but|or|so|also|then|now|what about|how about|why(?: not)?\s*\?|for how)\b", re.I
)
_REFERENCE = re.compile(
    r"\b(?:else|others?|another|same|former|latter|too\s*\?)(?!\w)"
    r"|\b(?:the|that|this|which|first|second|third|last|old|new) ones?\b"
    r"|\bthe (?:first|second|third|fourth|fifth|last)\s*(?:[,?.]|$)",
    re.I,
)
_DEMONSTRATIVES = {"this", "that", "these", "those", "there", "then"}
_EXISTENTIAL = re.compile(
    r"\bthere (?:is|are|was|were|been|be)\b|\b(?:is|are|was|were) there\b", re.I
)
_INTERROGATIVES = QUESTION_WORDS | {"many", "much", "long", "far", "old"}


class Rewritten(BaseModel, extra="forbid"):
    """What a model answers."""

    question: str = Field(min_length=1, max_length=1_000)


def rewrite(
    questions: str | Sequence[str],
    *,
    history: Sequence[Any],
    service: str | llm.Service | None = llm.RECORDED,
) -> Any:
    """Rewrite follow-up questions so that they are understood without the conversation.

    The first question of a conversation never changes, nor does one that stands alone
    (:func:`needs_history`). The others are rewritten by a model, which reads the last
    :data:`HISTORY_MESSAGES` messages. Without an answer of a model, content words of the questions
    before are appended (:func:`append_context`). Where the answer is no rewrite
    (:func:`is_valid_rewrite`), the question stays as it was asked.

    :param questions: one text, or n.
    :param history: the messages before it, see :func:`memlab.conversation.parse_messages`; for n
        questions n histories.
    :param service: the model, see :func:`memlab.llm.ask`; ``None`` appends without asking.
    :returns: for one question its rewritten text; for n a frame of ``question``, ``rewritten`` and
        ``method``: ``first``, ``as asked``, ``model``, ``appended`` or ``refused``.
    :raises DataError: when the numbers of questions and histories differ, or a history has another
        form.

    >>> from memlab.conversation import rewrite
    >>> history = [("user", "When did Ann see the skin doctor?"), ("assistant", "On 3 March.")]
    >>> rewrite("And what did it cost?", history=history, service=None)
    'And what did it cost? (Ann skin doctor 3 March)'
    """
    single = isinstance(questions, str)
    if isinstance(questions, str):
        questions, history = [questions], [history]
    if len(questions) != len(history):
        raise DataError(
            f"rewrite was given {len(questions)} questions and {len(history)} histories; give one for each"
        )
    before = [parse_messages(each) for each in history]
    results = [
        (text, "as asked" if earlier else "first")
        for text, earlier in zip(questions, before, strict=True)
    ]
    follow_ups = [
        i for i, question in enumerate(questions) if before[i] and needs_history(question)
    ]
    answers = llm.ask([rewrite_request(questions[i], before[i]) for i in follow_ups], service)
    for i, answer in zip(follow_ups, answers, strict=True):
        results[i] = _apply_answer(answer, questions[i], before[i])
    if service is not None and (line := llm.describe_unanswered(answers, "rewrites")):
        warn_user(f"{line}; the words of the questions before are appended")
    if refused := sum(how == "refused" for _, how in results):
        warn_user(f"{refused} of {len(answers)} rewrites were refused, no form of their questions")
    rows = [(question, *how) for question, how in zip(questions, results, strict=True)]
    table = pl.DataFrame(
        rows, dict.fromkeys(("question", "rewritten", "method"), pl.String()), orient="row"
    )
    return table["rewritten"][0] if single else table


def rewrite_request(question: str, before: Sequence[Message]) -> llm.Request:
    """Write the request that asks a model to rewrite a question; its answer is a :class:`Rewritten`."""
    read = before[-HISTORY_MESSAGES:]
    prompt = {"conversation": [message._asdict() for message in read], "last question": question}
    about = (*(text for message in read for text in message), question)
    return llm.Request(
        "rewrite", VERSION, about, json.dumps(prompt, ensure_ascii=False), Rewritten, SYSTEM
    )


def _apply_answer(answer: llm.Answer, question: str, before: Sequence[Message]) -> tuple[str, str]:
    """Give the rewritten question and the method, from the answer of a model."""
    if answer.value is None:
        return append_context(question, before), "appended"
    text = answer.value.question.strip()
    return (text, "model") if is_valid_rewrite(text, question) else (question, "refused")


def needs_history(question: str) -> bool:
    """Say whether a question needs the history of its conversation to be understood.

    Signs are a pronoun, a demonstrative, "other", "the second one" and the like, an ellipsis, and
    few words without a name. He and she are none behind a name ("What did Ann say about her
    sister?"), a demonstrative is none behind a content word, where it opens a clause ("the flat
    that Ann got").

    >>> from memlab.conversation.rewriting import needs_history
    >>> needs_history("And when did she buy that?"), needs_history("When did Ann buy the lamp from her sister?")
    (True, False)
    """
    if _REFERENCE.search(question) or _ELLIPSIS.match(question):
        return True
    words = tokens(question)
    keys = [word.key for word in words]
    named = next(
        (i for i, word in enumerate(words) if is_name(word.text, opens=i == 0)), len(words)
    )
    ends = (0, len(keys) - 1)
    pointing = [
        i
        for i, key in enumerate(keys)
        if key in _DEMONSTRATIVES and (i in ends or keys[i - 1] in STOP_WORDS)
    ]
    is_pointing = len(pointing) > (1 if _EXISTENTIAL.search(question) else 0)
    n_content = sum(key not in STOP_WORDS | _INTERROGATIVES for key in keys)
    is_short = named == len(words) and n_content <= _SHORT_QUESTION_WORDS
    refers = any(
        key in (THIRD_PERSON if i < named else THIRD_PERSON - HE - SHE)
        for i, key in enumerate(keys)
    )
    return refers or is_pointing or is_short


def append_context(question: str, history: Sequence[Message]) -> str:
    """Append the content words of the last question that stood alone, and of the last question and its answer.

    >>> from memlab.conversation import parse_messages
    >>> from memlab.conversation.rewriting import append_context
    >>> append_context("And when was that?", parse_messages(["How much did the oak desk cost?", "$210."]))
    'And when was that? (oak desk cost 210)'
    """
    asked = [message.content for message in history if message.role == "user"]
    alone = next(
        (text for text in reversed(asked) if not needs_history(text)), asked[0] if asked else ""
    )
    words = [*content_words(alone), *content_words(asked[-1] if asked else "")]
    if history and history[-1].role == "assistant":
        words += content_words(history[-1].content)[:_MAX_ANSWER_WORDS]
    has = _bare_word_set(tokens(question))
    new = {
        bare_word(word.text): word.text
        for word in reversed(words)
        if bare_word(word.text) not in has
    }
    return f"{question} ({' '.join(reversed(new.values()))})" if new else question


def is_valid_rewrite(text: str, question: str) -> bool:
    """Say whether a model's answer can be a rewrite of a question.

    It is one line, a question and not much longer; it has all names of the question and half of its
    content words, not counting those that point elsewhere ("the first one", "another").

    >>> from memlab.conversation.rewriting import is_valid_rewrite
    >>> asked = "When was she born?"
    >>> [is_valid_rewrite(text, asked) for text in ("When was Ada born?", "Ada was born in 1815.")]
    [True, False]
    """
    words, asked = tokens(text), tokens(question)
    names = _bare_word_set(word for i, word in enumerate(asked) if is_name(word.text, opens=i == 0))
    had = _bare_word_set(content_words(_REFERENCE.sub(" ", question)))
    return (
        "\n" not in text
        and 0 < len(words) <= _MAX_RATIO * len(asked) + _MAX_EXTRA_WORDS
        and (_is_question(text) or not _is_question(question))
        and names <= _bare_word_set(words)
        and 2 * len(_bare_word_set(content_words(text)) & had) >= len(had)
    )


def content_words(text: str) -> list[Token]:
    """Give the content words of a text, without stop words."""
    return [
        word
        for word in tokens(text)
        if bare_word(word.text) not in STOP_WORDS and word.key not in STOP_WORDS
    ]


def is_name(word: str, *, opens: bool) -> bool:
    """Say whether a word of a question is a name: a capital, not of the first word, nor of *I*."""
    return word[0].isupper() and not opens and word.split("'")[0] != "I"


def _bare_word_set(words: Any) -> set[str]:
    return {bare_word(word.text) for word in words}


def _is_question(text: str) -> bool:
    first = [bare_word(word.text) for word in tokens(text)[:1]]
    return text.rstrip().endswith("?") or bool({*first} & (QUESTION_WORDS | FINITE_AUXILIARIES))
