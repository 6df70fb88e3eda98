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
from memlab.llm.response_bodies import as_list, as_object, first_object, parse_json
from memlab.llm.token_spending import CHARS

_KEPT = ("role", "content", "tool_calls", "refusal")


def completion(exchange: Exchange, model: str) -> dict[str, Any]:
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
        "model": model,
        "choices": [choice],
        "usage": token_usage,
    }


def asks_for_usage(body: Mapping[str, Any]) -> bool:
    """Say whether a request wants the tokens behind its stream."""
    return as_object(body.get("stream_options")).get("include_usage") is True


def stream_events(whole: Mapping[str, Any], *, with_usage: bool) -> Iterator[bytes]:
    """Write a completion as the events of a stream: all of the message, then its end.

    :param with_usage: whether a last event without choices has the tokens, as OpenAI's servers send
        it to who asks for it.
    """
    choice = whole["choices"][0]
    chunk_fields = {field_name: whole[field_name] for field_name in ("id", "created", "model")}
    chunk_fields["object"] = "chat.completion.chunk"
    delta = dict(choice["message"])
    tool_calls = as_list(delta.get("tool_calls"))
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
        chunks.append({**chunk_fields, "choices": [], "usage": whole["usage"]})
    for chunk in chunks:
        yield b"data: " + json.dumps(chunk).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def read_exchange(body: bytes, asked: Mapping[str, Any], *, key: str = "") -> Exchange:
    """Read the completion of a service as an exchange.

    :param key: of the service; where an answer repeats it, it becomes ``***``.
    :raises ValueError: when the body is no completion.
    """
    if key:
        body = body.replace(json.dumps(key)[1:-1].encode(), b"***")
    try:
        completion_object = as_object(parse_json(body))
    except ValueError:
        raise ValueError(NO_COMPLETION) from None
    choice = first_object(completion_object.get("choices"))
    message = as_object(choice.get("message"))
    if not message:
        raise ValueError(NO_CHOICE)
    answer_message = {
        field_name: message[field_name]
        for field_name in _KEPT
        if message.get(field_name) is not None
    }
    answer_message = {"role": "assistant", "content": None, **answer_message}
    answer = {"message": answer_message, "finish_reason": choice.get("finish_reason") or "stop"}
    token_usage = as_object(completion_object.get("usage"))
    tokens_read = token_usage.get("prompt_tokens")
    tokens_written = token_usage.get("completion_tokens")
    if tokens_read and is_token_count(tokens_read) and is_token_count(tokens_written):
        return Exchange(asked, answer, (tokens_read, tokens_written))
    return Exchange(asked, answer, estimate_tokens(asked, answer_message), is_estimated=True)


def embeddings(vectors: np.ndarray, body: Mapping[str, Any], n_chars: int) -> dict[str, Any]:
    """Write vectors, (n, width), as floats, or as base64 where the request asks for it."""
    as_text = body.get("encoding_format") == "base64"
    vector_rows = [
        {"object": "embedding", "index": place, "embedding": _encode_vector(vector, as_text)}
        for place, vector in enumerate(vectors)
    ]
    n_tokens = -(-n_chars // CHARS)
    token_usage = {"prompt_tokens": n_tokens, "total_tokens": n_tokens}
    return {"object": "list", "data": vector_rows, "model": body.get("model"), "usage": token_usage}


def _encode_vector(vector: np.ndarray, as_text: bool) -> str | list[float]:
    if as_text:
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(number) for number in vector]


def embedded_texts(body: Mapping[str, Any]) -> Sequence[str]:
    """Give the texts of a request for embeddings.

    :raises ValueError: when they are none, or tokens.
    """
    input_value = body.get("input")
    texts = [input_value] if isinstance(input_value, str) else input_value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(
            "input must be a text or a list of texts; tokens are not read: in LangChain give "
            "OpenAIEmbeddings(check_embedding_ctx_length=False)"
        )
    return texts


def error_body(message: str, kind: str) -> dict[str, Any]:
    """Write an error."""
    return {"error": {"message": message, "type": kind, "param": None, "code": kind}}
