"""Answers in the layout of OpenAI's servers."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from memlab.llm.chat_completions import NO_CHOICE, NO_COMPLETION
from memlab.llm.proxy.recorded_exchanges import Exchange, estimate_tokens, is_token_count
from memlab.llm.response_bodies import (
    JsonObject,
    JsonValue,
    first_object_or_empty,
    list_or_empty,
    object_or_empty,
    parse_json_body,
)
from memlab.llm.token_spending import CHARS

_KEPT = ("role", "content", "tool_calls", "refusal")


def completion_of_exchange(exchange: Exchange, model_name: str) -> JsonObject:
    """Write an exchange as a chat completion; its id follows from what was answered."""
    tokens_read, tokens_written = exchange.tokens
    token_usage = {
        "prompt_tokens": tokens_read,
        "completion_tokens": tokens_written,
        "total_tokens": tokens_read + tokens_written,
    }
    answer_json = json.dumps(exchange.answer, sort_keys=True)
    digest = hashlib.sha256(answer_json.encode()).hexdigest()[:24]
    choice = {"index": 0, "logprobs": None, **exchange.answer}
    return {
        "id": f"chatcmpl-{digest}",
        "object": "chat.completion",
        "created": 0,
        "model": model_name,
        "choices": [choice],
        "usage": token_usage,
    }


def asks_for_usage(request_body: Mapping[str, JsonValue]) -> bool:
    """Say whether a request wants the tokens behind its stream."""
    return object_or_empty(request_body.get("stream_options")).get("include_usage") is True


def stream_events(
    completion_object: Mapping[str, JsonValue], *, with_usage: bool
) -> Iterator[bytes]:
    """Write a completion as the events of a stream: all of the message, then its end.

    :param with_usage: whether a last event without choices has the tokens, as OpenAI's servers send
        it to who asks for it.
    """
    choice = completion_object["choices"][0]
    chunk_fields = {
        field_name: completion_object[field_name] for field_name in ("id", "created", "model")
    }
    chunk_fields["object"] = "chat.completion.chunk"
    delta = dict(choice["message"])
    tool_calls = list_or_empty(delta.get("tool_calls"))
    if tool_calls:
        delta["tool_calls"] = [
            {**tool_call, "index": place} for place, tool_call in enumerate(tool_calls)
        ]
    first_choice = {"index": 0, "delta": delta, "finish_reason": None}
    last_choice = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    chunks: list[dict[str, Any]] = [
        {**chunk_fields, "choices": [first_choice]},
        {**chunk_fields, "choices": [last_choice]},
    ]
    if with_usage:
        chunks.append({**chunk_fields, "choices": [], "usage": completion_object["usage"]})
    for chunk in chunks:
        yield b"data: " + json.dumps(chunk).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def read_exchange(
    response_body: bytes, deciding_fields: Mapping[str, JsonValue], *, api_key: str = ""
) -> Exchange:
    """Read the completion of a service as an exchange.

    :param api_key: of the service; where an answer repeats it, it becomes ``***``.
    :raises ValueError: when the body is no completion.
    """
    if api_key:
        response_body = response_body.replace(json.dumps(api_key)[1:-1].encode(), b"***")
    try:
        completion_object = object_or_empty(parse_json_body(response_body))
    except ValueError:
        raise ValueError(NO_COMPLETION) from None
    choice = first_object_or_empty(completion_object.get("choices"))
    message = object_or_empty(choice.get("message"))
    if not message:
        raise ValueError(NO_CHOICE)
    answer_message = {
        field_name: message[field_name]
        for field_name in _KEPT
        if message.get(field_name) is not None
    }
    answer_message = {"role": "assistant", "content": None, **answer_message}
    answer = {"message": answer_message, "finish_reason": choice.get("finish_reason") or "stop"}
    token_usage = object_or_empty(completion_object.get("usage"))
    tokens_read = token_usage.get("prompt_tokens")
    tokens_written = token_usage.get("completion_tokens")
    if tokens_read and is_token_count(tokens_read) and is_token_count(tokens_written):
        return Exchange(deciding_fields, answer, (tokens_read, tokens_written))
    return Exchange(
        deciding_fields, answer, estimate_tokens(deciding_fields, answer_message), is_estimated=True
    )


def embeddings_response(
    vectors: np.ndarray, request_body: Mapping[str, JsonValue], n_chars: int
) -> JsonObject:
    """Write vectors, (n, width), as floats, or as base64 where the request asks for it."""
    as_text = request_body.get("encoding_format") == "base64"
    vector_rows = [
        {"object": "embedding", "index": place, "embedding": _encode_vector(vector, as_text)}
        for place, vector in enumerate(vectors)
    ]
    n_tokens = -(-n_chars // CHARS)
    token_usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
    return {
        "object": "list",
        "data": vector_rows,
        "model": request_body.get("model"),
        "usage": token_usage,
    }


def _encode_vector(vector: np.ndarray, is_base64: bool) -> str | list[float]:
    if is_base64:
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(number) for number in vector]


def read_texts_to_embed(request_body: Mapping[str, JsonValue]) -> Sequence[str]:
    """Give the texts of a request for embeddings.

    :raises ValueError: when they are none, or tokens.
    """
    input_value = request_body.get("input")
    texts = [input_value] if isinstance(input_value, str) else input_value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(
            "input must be a text or a list of texts; tokens are not read: in LangChain give "
            "OpenAIEmbeddings(check_embedding_ctx_length=False)"
        )
    return texts


def openai_error_body(message: str, error_type: str) -> JsonObject:
    """Write an error."""
    return {"error": {"message": message, "type": error_type, "param": None, "code": error_type}}
