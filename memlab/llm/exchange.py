"""One request to a model: the answer checked against its shape, and asked for once more where it does not fit."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from openai import AsyncOpenAI, OpenAIError
from pydantic import BaseModel, ValidationError

from memlab.llm.request import Answer, Request, counts
from memlab.llm.service import Service, redact, where
from memlab.llm.wire import explain

ATTEMPTS = 2
SHOWN_CHARS = 2_000  # of an answer that does not fit, when the model sees it again
_SECRET = 12  # characters: what is shorter, such as "ollama", is a word that an answer may hold


async def exchange(client: AsyncOpenAI, service: Service, request: Request) -> Answer:
    """Ask a model once, whatever comes back: an answer of the shape, or the reason why there is none."""
    begun, tokens = time.perf_counter(), [0, 0]
    value, failure = None, ""
    if service.max_input and len(request.prompt) > service.max_input:
        failure = f"the prompt has {len(request.prompt):,} characters, max_input allows {service.max_input:,}"
        return Answer(None, f"{where(service)}: {failure}")
    limit = service.timeout * (service.max_retries + ATTEMPTS)
    try:
        async with asyncio.timeout(limit):
            value, failure = await _attempts(client, service, request, tokens)
    except TimeoutError:
        failure = f"no answer within {limit:g} s"
    except OpenAIError as error:
        failure = explain(error)
    reason = "" if value is not None else f"{where(service)}: {redact(client.api_key, failure)}"
    return Answer(value, reason, (tokens[0], tokens[1]), time.perf_counter() - begun)


async def _attempts(
    client: AsyncOpenAI, service: Service, request: Request, tokens: list[int]
) -> tuple[BaseModel | None, str]:
    shape = {"name": request.shape.__name__, "schema": request.shape.model_json_schema(), "strict": True}
    bound: Any = {} if service.max_output is None else {"max_tokens": service.max_output}
    messages: Any = request.messages
    wrong = ""
    for _ in range(ATTEMPTS):
        raw = await client.chat.completions.with_raw_response.create(
            model=service.model,
            messages=messages,
            response_format={"type": "json_schema", "json_schema": shape},
            temperature=0,
            seed=0,
            **bound,
        )
        text, wrong, usage = _content(raw.http_response.content)
        tokens[:] = [sum(pair) for pair in zip(tokens, usage, strict=True)]
        value, misfit = _value(text, request.shape, client.api_key)
        if value is not None and not wrong:
            return value, ""
        wrong = wrong or misfit
        again = f"That does not fit: {wrong}. Answer again, with JSON of the schema and nothing else."
        shown = {"role": "assistant", "content": text[:SHOWN_CHARS]}
        messages = [*request.messages, shown, {"role": "user", "content": again}]
    return None, f"the answer does not fit {request.shape.__name__} ({wrong})"


def _content(body: bytes) -> tuple[str, str, tuple[int, int]]:
    """Take out of a completion its text, what is wrong with it, and the tokens read and written."""
    try:
        completion = json.loads(body)
        choice = completion["choices"][0]
        text, reason = choice["message"]["content"], choice.get("finish_reason")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return "", "the server sent no JSON with choices and a message", (0, 0)
    usage = completion.get("usage")
    tokens = counts(usage.get("prompt_tokens"), usage.get("completion_tokens")) if isinstance(usage, dict) else (0, 0)
    if not isinstance(text, str):
        return "", "the message has no text", tokens
    return text, "cut at the longest output: raise max_output" if reason == "length" else "", tokens


def _value(text: str, shape: type[BaseModel], key: str) -> tuple[BaseModel | None, str]:
    """Read an answer, without a fence or words around the JSON, or say what is wrong with it."""
    first, last = text.find("{"), text.rfind("}")
    try:
        value = shape.model_validate_json(text[first : last + 1] if 0 <= first < last else text)
        # An answer that repeats the key would carry it into recordings and stores.
        secret, shown = json.dumps(key, ensure_ascii=False)[1:-1], value.model_dump_json()
        if len(key) >= _SECRET and secret in shown:
            value = shape.model_validate_json(shown.replace(secret, "***"))
        return value, ""
    except ValidationError as error:
        # Never the answer itself, which may echo the request.
        first_error = error.errors(include_input=False, include_url=False, include_context=False)[0]
        return None, ": ".join(filter(None, (".".join(map(str, first_error["loc"])), first_error["msg"])))
