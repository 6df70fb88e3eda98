"""Reading what a service replied: the text of a completion, and in it an answer of a given shape."""

from __future__ import annotations

import json
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, Field, ValidationError

_SECRET = 12  # characters: what is shorter, such as "ollama", is a word that an answer may hold


class _Message(BaseModel):
    content: str


class _Choice(BaseModel):
    message: _Message
    finish_reason: Any = None


class _Completion(BaseModel):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: Any = None


class Reply(NamedTuple):
    """What a service replied: ``value`` of the shape or ``None``, what is ``wrong``, the ``text``, and ``tokens``."""

    value: BaseModel | None
    wrong: str
    text: str = ""
    tokens: tuple[int, int] = (0, 0)


def read(body: bytes, shape: type[BaseModel], *, key: str = "") -> Reply:
    """Read a completion, without a fence or words around the JSON; what does not fit says what is wrong with it.

    :param key: of the service. An answer that repeats it would carry it into recordings and stores: it becomes ``***``.

    >>> from memlab.llm.reply import read
    >>> read(b'{"choices": []}', BaseModel).wrong
    'choices: List should have at least 1 item after validation, not 0'
    """
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as error:
        return Reply(None, fault(error))
    text, usage = completion.choices[0].message.content, completion.usage
    tokens = counts(usage.get("prompt_tokens"), usage.get("completion_tokens")) if isinstance(usage, dict) else (0, 0)
    if completion.choices[0].finish_reason == "length":
        return Reply(None, "cut at the longest output: raise max_output", text, tokens)
    first, last = text.find("{"), text.rfind("}")
    try:
        value = shape.model_validate_json(text[first : last + 1] if 0 <= first < last else text)
        secret, written = json.dumps(key, ensure_ascii=False)[1:-1], value.model_dump_json()
        if len(key) >= _SECRET and secret in written:
            value = shape.model_validate_json(written.replace(secret, "***"))
        return Reply(value, "", text, tokens)
    except ValidationError as error:
        return Reply(None, fault(error), text, tokens)


def fault(error: ValidationError) -> str:
    """Say what the first fault is and where, never the input itself: it may echo the request with its key."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


def counts(read: Any, written: Any) -> tuple[int, int]:
    """Take two counts of tokens; what is no sensible count is 0."""
    sensible = [n if isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**40 else 0 for n in (read, written)]
    return sensible[0], sensible[1]
