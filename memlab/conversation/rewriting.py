"""Follow-up questions made to stand alone, so that they can be searched for."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any

import polars as pl
from pydantic import BaseModel, Field

from memlab import llm
from memlab.conversation.fallback import appended, content
from memlab.conversation.gate import is_name, signs
from memlab.conversation.messages import READ, Message, messages
from memlab.errors import DataError
from memlab.language.tokens import base, tokens
from memlab.language.words import FINITE_AUXILIARIES, QUESTION_WORDS

VERSION = 1
SYSTEM = (
    "The user asks one question after another. Rewrite the last question so that it is understood without the others: "
    "put what he, it, that, there, the second one or the other one stand for in their place, and add what is left out, "
    "such as whose, of what or when. Keep names and dates as they were written. Keep a question that stands alone, or "
    "that opens another topic, word for word. Add nothing else. Never answer it."
)
# A rewrite may be this many times as long as its question, and this many words longer.
TIMES, MORE = 2, 30

SCHEMA = {"question": pl.String(), "rewritten": pl.String(), "signs": pl.List(pl.String()), "method": pl.String()}


class Rewritten(BaseModel, extra="forbid"):
    """What a model answers."""

    question: str = Field(min_length=1, max_length=1_000)


def rewrite(
    questions: str | Sequence[str],
    *,
    history: Sequence[Any],
    service: str | llm.Service | None = llm.RECORDED,
) -> Any:
    """Put back into follow-up questions what they leave out.

    The first question of a conversation never changes, nor does one without a sign that it leans on what was said
    (:func:`memlab.conversation.gate.signs`). The others are rewritten by a model, which reads the last :data:`READ`
    messages. Where there is no answer of a model, the content words of the questions before are appended; where the
    answer is no rewrite (:func:`is_rewrite`), the question stays as it was asked.

    :param questions: one text, or n.
    :param history: the messages before it, see :func:`memlab.conversation.messages`; for n questions n histories.
    :param service: the model, see :func:`memlab.llm.ask`; ``None`` appends without asking.
    :returns: for one question its rewritten text; for n a frame of ``question``, ``rewritten``, ``signs`` and
        ``method``: ``first``, ``as asked``, ``model``, ``appended`` or ``refused``.
    :raises DataError: when the numbers of questions and histories differ, or a history has another form.

    >>> from memlab.conversation import rewrite
    >>> history = [("user", "When did Ann see the skin doctor?"), ("assistant", "On 3 March.")]
    >>> rewrite("And what did it cost?", history=history, service=None)
    'And what did it cost? (Ann skin doctor 3 March)'
    """
    if isinstance(questions, str):
        return rewrite([questions], history=[history], service=service)["rewritten"][0]
    if len(questions) != len(history):
        raise DataError(f"rewrite was given {len(questions)} questions and {len(history)} histories; give one for each")
    before = [messages(each) for each in history]
    found = [signs(question) if said else [] for question, said in zip(questions, before, strict=True)]
    rewritten, methods = list(questions), ["as asked" if said else "first" for said in before]
    gated = [i for i, each in enumerate(found) if each]
    answers = llm.ask(requests([questions[i] for i in gated], [before[i] for i in gated]), service)
    for i, answer in zip(gated, answers, strict=True):
        if answer.value is None:
            rewritten[i], methods[i] = appended(questions[i], before[i]), "appended"
        elif is_rewrite(text := answer.value.question.strip(), of=questions[i]):
            rewritten[i], methods[i] = text, "model"
        else:
            methods[i] = "refused"
    if service is not None and (line := llm.unanswered(answers, "rewrites")):
        warnings.warn(f"{line}; the words of the questions before are appended", stacklevel=2)
    columns = {"question": list(questions), "rewritten": rewritten, "signs": found, "method": methods}
    return pl.DataFrame(columns, SCHEMA)


def requests(questions: Sequence[str], history: Sequence[Sequence[Message]]) -> list[llm.Request]:
    """Write what a model is asked for each question; its answers are :class:`Rewritten`."""
    made = []
    for question, before in zip(questions, history, strict=True):
        read = [message._asdict() for message in before[-READ:]]
        prompt = json.dumps({"conversation": read, "last question": question}, ensure_ascii=False)
        about = (*(text for message in before[-READ:] for text in message), question)
        made.append(llm.Request("rewrite", VERSION, about, prompt, Rewritten, SYSTEM))
    return made


def is_rewrite(text: str, *, of: str) -> bool:
    """Say whether a text can be a rewrite of a question: one line, a question, not much longer, with all its names.

    >>> from memlab.conversation.rewriting import is_rewrite
    >>> is_rewrite("When was Ada born?", of="When was she born?")
    True
    >>> is_rewrite("Ada was born in 1815.", of="When was she born?")
    False
    """
    words, asked = tokens(text), tokens(of)
    names = {base(word.text) for i, word in enumerate(asked) if is_name(word.text, opens=i == 0)}
    has, had = {base(word.text) for word in content(text)}, {base(word.text) for word in content(of)}
    return (
        "\n" not in text
        and 0 < len(words) <= TIMES * len(asked) + MORE
        and (_asks(text) or not _asks(of))
        and names <= {base(word.text) for word in words}
        and 2 * len(has & had) >= len(had)
    )


def _asks(text: str) -> bool:
    first = [base(word.text) for word in tokens(text)[:1]]
    return text.rstrip().endswith("?") or bool({*first} & (QUESTION_WORDS | FINITE_AUXILIARIES))
