"""Reading what a service replied: the text of a completion, and in it an answer of a given shape."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from memlab.llm.request import Answer

_SECRET = 12  # characters: what is shorter, such as "ollama", is a word that an answer may hold


class _Message(BaseModel):
    content: str


class _Choice(BaseModel):
    message: _Message
    finish_reason: Any = None


class _Completion(BaseModel):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: Any = None


def read(body: bytes, shape: type[BaseModel], *, key: str = "") -> tuple[Answer, str]:
    """Read a completion, without a fence or words around the JSON.

    :param key: of the service. An answer that repeats it would carry it into recordings and stores: it becomes ``***``.
    :returns: the answer, whose ``error`` says what does not fit, and the text that it was read from.

    >>> from memlab.llm.reply import read
    >>> read(b'{"choices": []}', BaseModel)[0].error
    'choices: List should have at least 1 item after validation, not 0'
    """
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as error:
        return Answer(None, fault(error)), ""
    choice, usage = completion.choices[0], completion.usage
    tokens = counts(usage.get("prompt_tokens"), usage.get("completion_tokens")) if isinstance(usage, dict) else (0, 0)
    text = choice.message.content
    if choice.finish_reason == "length":
        return Answer(None, "cut at the longest output: raise max_output", tokens), text
    first, last = text.find("{"), text.rfind("}")
    try:
        value = shape.model_validate_json(text[first : last + 1] if 0 <= first < last else text)
        secret, written = json.dumps(key, ensure_ascii=False)[1:-1], value.model_dump_json()
        if len(key) >= _SECRET and secret in written:
            value = shape.model_validate_json(written.replace(secret, "***"))
    except ValidationError as error:
        return Answer(None, fault(error), tokens), text
    return Answer(value, tokens=tokens), text


def fault(error: ValidationError) -> str:
    """Say what the first fault is and where, never the input itself: it may echo the request with its key."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


def counts(read: Any, written: Any) -> tuple[int, int]:
    """Take two counts of tokens; what is no sensible count is 0."""
    sensible = [n if isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**40 else 0 for n in (read, written)]
    return sensible[0], sensible[1]
