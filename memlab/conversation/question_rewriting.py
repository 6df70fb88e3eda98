"""Rewriting of follow-up questions: which of them need the history, and their standalone form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import polars as pl
from pydantic import BaseModel, Field

from memlab import llm
from memlab.conversation.conversation_histories import Message, parse_messages
from memlab.errors import DataError, warn_user
from memlab.llm.structured_answers import service_advice_or_empty
from memlab.terminal_text import count_noun
from memlab.text.closed_word_classes import (
    FINITE_AUXILIARIES,
    HE,
    QUESTION_WORDS,
    SHE,
    STOP_WORDS,
    THIRD_PERSON,
)
from memlab.text.tokens_and_sentences import Token, bare_word, tokens

VERSION = 1
HISTORY_MESSAGES = 6
"""Messages before a question that a model reads."""

SYSTEM = (
    "The user asks one question after another. Rewrite the last question so that it is understood "
    "without the others: put what he, it, that, there, the second one or the other one stand for "
    "in their place, and add what is left out, such as whose, of what or when. Keep names and "
    "dates as they were written. Keep a question that stands alone, or that opens another topic, "
    "word for word. Add nothing else. Never answer it."
)
# A rewrite may be this many times as long as its question, and this many words longer.
_MAX_RATIO = 2
_MAX_EXTRA_WORDS = 30
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
_NO_CONTENT = STOP_WORDS | QUESTION_WORDS | {"many", "much", "long", "far", "old"}
_THIRD_PERSON_BEHIND_NAME = THIRD_PERSON - HE - SHE


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
    before are appended (:func:`append_earlier_content_words`). Where the answer is no rewrite
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
    if isinstance(questions, str):
        return _rewrite_all_and_warn([questions], [history], service)["rewritten"][0]
    if len(questions) != len(history):
        raise DataError(
            f"rewrite was given {len(questions)} questions and {len(history)} histories; "
            "give one for each"
        )
    return _rewrite_all_and_warn(questions, history, service)


def _rewrite_all_and_warn(
    questions: Sequence[str], histories: Sequence[Any], service: str | llm.Service | None
) -> pl.DataFrame:
    earlier_messages = [parse_messages(history) for history in histories]
    outcomes = []
    follow_ups = []
    for question_place, question in enumerate(questions):
        outcomes.append((question, "as asked" if earlier_messages[question_place] else "first"))
        if earlier_messages[question_place] and needs_history(question):
            follow_ups.append(question_place)

    requests = [
        make_rewrite_request(questions[question_place], earlier_messages[question_place])
        for question_place in follow_ups
    ]
    answers = llm.ask(requests, service)
    for question_place, answer in zip(follow_ups, answers, strict=True):
        outcomes[question_place] = _rewritten_question_and_method(
            answer, questions[question_place], earlier_messages[question_place]
        )

    if service is not None:
        _warn_if_words_were_appended(answers)
    rewritten, methods = zip(*outcomes, strict=True) if outcomes else ((), ())
    n_refused = methods.count("refused")
    if n_refused:
        warn_user(
            f"{n_refused} of {len(answers)} rewrites were refused, no form of their questions"
        )
    result_columns = {"question": questions, "rewritten": rewritten, "method": methods}
    return pl.DataFrame(result_columns, dict.fromkeys(result_columns, pl.String()))


def _warn_if_words_were_appended(answers: Sequence[llm.Answer]) -> None:
    """Warn of the questions that no model rewrote: what was done instead, and what to set."""
    errors = [answer.error for answer in answers if answer.value is None]
    if not errors:
        return
    counted_questions = f"{len(errors):,} of {count_noun(len(answers), 'follow-up questions')}"
    plural_verb = "was" if len(errors) == 1 else "were"
    warn_user(
        f"{counted_questions} {plural_verb} not rewritten by a model ({errors[0]}): words of the "
        f"messages before were appended instead{service_advice_or_empty(errors[0])}"
    )


def make_rewrite_request(question: str, earlier_messages: Sequence[Message]) -> llm.Request:
    """Write the request that asks a model to rewrite a question.

    Its answer is a :class:`Rewritten`.
    """
    recent = earlier_messages[-HISTORY_MESSAGES:]
    conversation = [message._asdict() for message in recent]
    prompt = json.dumps(
        {"conversation": conversation, "last question": question}, ensure_ascii=False
    )
    asked_about = (*chain.from_iterable(recent), question)
    return llm.Request("rewrite", VERSION, asked_about, prompt, Rewritten, SYSTEM)


def _rewritten_question_and_method(
    model_answer: llm.Answer, question: str, earlier_messages: Sequence[Message]
) -> tuple[str, str]:
    """Take the rewritten question from the answer of a model, and say by which method."""
    if model_answer.value is None:
        return append_earlier_content_words(question, earlier_messages), "appended"
    rewritten = model_answer.value.question.strip()
    if not is_valid_rewrite(rewritten, question):
        return question, "refused"
    return rewritten, "model"


def needs_history(question: str) -> bool:
    """Say whether a question needs the history of its conversation to be understood.

    Signs are a pronoun, a demonstrative, "other", "the second one" and the like, an ellipsis, and
    few words without a name. He and she are none behind a name ("What did Ann say about her
    sister?"), a demonstrative is none behind a content word, where it opens a clause ("the flat
    that Ann got").

    >>> from memlab.conversation.question_rewriting import needs_history
    >>> needs_history("And when did she buy that?")
    True
    >>> needs_history("When did Ann buy the lamp from her sister?")
    False
    """
    if _REFERENCE.search(question) or _ELLIPSIS.match(question):
        return True
    question_tokens = tokens(question)
    word_keys = [question_token.key for question_token in question_tokens]
    first_name = _place_of_first_name_or_end(question_tokens)
    if not THIRD_PERSON.isdisjoint(word_keys[:first_name]):
        return True
    if not _THIRD_PERSON_BEHIND_NAME.isdisjoint(word_keys[first_name:]):
        return True
    if _has_demonstrative_pointing_back(question, word_keys):
        return True
    if first_name < len(question_tokens):
        return False
    content_keys = [key for key in word_keys if key not in _NO_CONTENT]
    return len(content_keys) <= _SHORT_QUESTION_WORDS


def _place_of_first_name_or_end(question_tokens: Sequence[Token]) -> int:
    """Give the place of the first name; where there is none, the number of words."""
    for place, name_token in enumerate(question_tokens):
        if is_name_in_question(name_token.text, is_first_word=place == 0):
            return place
    return len(question_tokens)


def _has_demonstrative_pointing_back(question: str, word_keys: Sequence[str]) -> bool:
    """Say whether a demonstrative points to what was said; one of "there is" does not."""
    last_place = len(word_keys) - 1
    n_demonstratives = 0
    for place, key in enumerate(word_keys):
        if key not in _DEMONSTRATIVES:
            continue
        # Behind a content word it opens a clause, unless it ends the question.
        if place in (0, last_place) or word_keys[place - 1] in STOP_WORDS:
            n_demonstratives += 1
    if _EXISTENTIAL.search(question):
        return n_demonstratives > 1
    return n_demonstratives > 0


def append_earlier_content_words(question: str, history: Sequence[Message]) -> str:
    """Append content words of what was said before to a question.

    They are those of the last question that stood alone, and of the last question and its answer.

    >>> from memlab.conversation import parse_messages
    >>> from memlab.conversation.question_rewriting import append_earlier_content_words
    >>> history = parse_messages(["How much did the oak desk cost?", "$210."])
    >>> append_earlier_content_words("And when was that?", history)
    'And when was that? (oak desk cost 210)'
    """
    earlier_questions = [message.content for message in history if message.role == "user"]
    context_tokens = []
    if earlier_questions:
        context_tokens += content_words(_last_standalone_question_or_first(earlier_questions))
        context_tokens += content_words(earlier_questions[-1])
    if history and history[-1].role == "assistant":
        context_tokens += content_words(history[-1].content)[:_MAX_ANSWER_WORDS]

    own_words = _bare_word_set(tokens(question))
    added_words: dict[str, str] = {}
    # Of words that are said twice the last place counts, and the first spelling.
    for context_token in reversed(context_tokens):
        bare_form = bare_word(context_token.text)
        if bare_form not in own_words:
            added_words[bare_form] = context_token.text
    if not added_words:
        return question
    return f"{question} ({' '.join(reversed(added_words.values()))})"


def _last_standalone_question_or_first(questions: Sequence[str]) -> str:
    """Find the last question that needs no history; the first, where all do."""
    for question in reversed(questions):
        if not needs_history(question):
            return question
    return questions[0]


def is_valid_rewrite(rewritten: str, question: str) -> bool:
    """Say whether a model's answer can be a rewrite of a question.

    It is one line, a question and not much longer; it has all names of the question and half of its
    content words, not counting those that point elsewhere ("the first one", "another").

    >>> from memlab.conversation.question_rewriting import is_valid_rewrite
    >>> asked = "When was she born?"
    >>> [is_valid_rewrite(text, asked) for text in ("When was Ada born?", "Ada was born in 1815.")]
    [True, False]
    """
    rewrite_tokens = tokens(rewritten)
    question_words = tokens(question)
    if "\n" in rewritten:
        return False
    if not 0 < len(rewrite_tokens) <= _MAX_RATIO * len(question_words) + _MAX_EXTRA_WORDS:
        return False
    if _is_question(question) and not _is_question(rewritten):
        return False
    question_names = []
    for place, question_word in enumerate(question_words):
        if is_name_in_question(question_word.text, is_first_word=place == 0):
            question_names.append(question_word)
    if not _bare_word_set(question_names) <= _bare_word_set(rewrite_tokens):
        return False
    wanted_words = _bare_word_set(content_words(_REFERENCE.sub(" ", question)))
    kept_words = wanted_words & _bare_word_set(content_words(rewritten))
    return 2 * len(kept_words) >= len(wanted_words)


def content_words(text: str) -> list[Token]:
    """List the words of a text that are no stop words."""
    return [word for word in tokens(text) if not _is_stop_word(word)]


def _is_stop_word(word: Token) -> bool:
    return word.key in STOP_WORDS or bare_word(word.text) in STOP_WORDS


def is_name_in_question(word: str, *, is_first_word: bool) -> bool:
    """Say whether a word of a question is a name: a capital, not of the first word, nor of *I*."""
    if is_first_word or not word[0].isupper():
        return False
    return word.split("'")[0] != "I"


def _bare_word_set(words: Iterable[Token]) -> set[str]:
    return {bare_word(word.text) for word in words}


def _is_question(text: str) -> bool:
    if text.rstrip().endswith("?"):
        return True
    first_word = _bare_word_set(tokens(text)[:1])
    return not first_word.isdisjoint(QUESTION_WORDS | FINITE_AUXILIARIES)
