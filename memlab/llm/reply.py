"""Reading what a service replied: the text of a completion, and in it an answer of a given shape."""

from __future__ import annotations

import json
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, Field, ValidationError

_SHORTEST_SECRET = 12  # characters: what is shorter, such as "ollama", is a word that an answer may hold


class Reply(NamedTuple):
    """An answer or what does not fit, the text that it was read from, and tokens read and written."""

    value: BaseModel | None = None
    fault: str = ""
    text: str = ""
    tokens: tuple[int, int] = (0, 0)


class _Message(BaseModel):
    content: str


class _Choice(BaseModel):
    message: _Message
    finish_reason: Any = None


class _Completion(BaseModel):
    choices: Annotated[list[_Choice], Field(min_length=1)]
    usage: Any = None


def read_completion(body: bytes, shape: type[BaseModel], *, key: str = "") -> Reply:
    """Read a completion, without a fence or words around the JSON.

    :param key: of the service. An answer that repeats it would carry it into recordings and stores: it becomes ``***``.

    >>> from memlab.llm.reply import read_completion
    >>> read_completion(b'{"choices": []}', BaseModel).fault
    'choices: List should have at least 1 item after validation, not 0'
    """
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as error:
        return Reply(fault=describe_first_fault(error))
    choice, usage = completion.choices[0], completion.usage
    text, tokens = choice.message.content, token_counts(usage)
    if choice.finish_reason == "length":
        return Reply(None, "cut at the longest output: raise max_output", text, tokens)
    first, last = text.find("{"), text.rfind("}")
    try:
        value = shape.model_validate_json(text[first : last + 1] if 0 <= first < last else text)
        secret, written = json.dumps(key, ensure_ascii=False)[1:-1], value.model_dump_json()
        if len(key) >= _SHORTEST_SECRET and secret in written:
            value = shape.model_validate_json(written.replace(secret, "***"))
    except ValidationError as error:
        return Reply(None, describe_first_fault(error), text, tokens)
    return Reply(value, "", text, tokens)


def describe_first_fault(error: ValidationError) -> str:
    """Say what the first fault is and where, never the input itself: it may echo the request with its key."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))


def token_counts(usage: Any) -> tuple[int, int]:
    """Take the tokens read and written of a usage, or of a recording; what is no sensible count is 0."""
    if isinstance(usage, dict):
        usage = usage.get("prompt_tokens"), usage.get("completion_tokens")
    read, written = usage if isinstance(usage, list | tuple) and len(usage) == 2 else (0, 0)
    sensible = [n if type(n) is int and 0 <= n < 2**40 else 0 for n in (read, written)]
    return sensible[0], sensible[1]
