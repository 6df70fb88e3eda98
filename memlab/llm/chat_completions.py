"""What is read of a completion: usage and the reason why it ended first, then its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel

from memlab.llm.answer_parsing import ONLY_THINKING, ValueAndNote, read_answer, strip_thinking
from memlab.llm.response_bodies import (
    JsonObject,
    JsonValue,
    first_object_or_empty,
    list_or_empty,
    object_or_empty,
    parse_json_body,
)
from memlab.llm.service_faults import mask_key_and_shorten_to_one_line
from memlab.llm.token_spending import CHARS, TokensReadAndWritten

CUT = "cut at the longest output: raise max_output"
FILTERED = "withheld by the content filter of the server"
TOOL_CALL = "it called a tool instead of giving an answer"
BROKEN_OFF = "the server broke it off"
EMPTY = "the answer is empty"
NO_CHOICE = "no choice is in it"
KEY_MASKED = "the key that its answers repeat stands as *** in them"
KEY_REPEATED = "it repeats the key of the service, and does not fit without it"
NO_COMPLETION = "the server sent no JSON: is base_url the address up to and including /v1?"

_CUT = ("length", "max_tokens", "max_output_tokens", "model_length")
_FILTERED = (
    "content_filter",
    "content-filter",
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
)
_CALLED = ("tool_calls", "function_call", "tool_use", "tool_call")
_BROKEN_OFF = (
    "error",
    "abort",
    "aborted",
    "cancelled",
    "insufficient_system_resource",
    "network_error",
)
_REASONING = ("reasoning_content", "reasoning", "thinking", "reasoning_details", "thoughts")
_THINKING_PARTS = ("thinking", "reasoning", "redacted_thinking", "thought", "summary")
_READ = ("prompt_tokens", "input_tokens", "prompt_eval_count", "promptTokenCount", "inputTokens")
_WRITTEN = (
    "completion_tokens",
    "output_tokens",
    "eval_count",
    "candidatesTokenCount",
    "outputTokens",
)

_SHORTEST_SECRET = (
    12  # characters: what is shorter, such as "ollama", is a word that an answer may hold
)
_SHOWN_REFUSAL, _SHOWN_FAULT = 120, 300


class Reply(NamedTuple):
    """An answer or what is wrong with it.

    :param fault: what is wrong; with a value, what was left out of it.
    :param text: that the answer was read from, without thinking.
    :param tokens: read and written.
    :param is_estimated: whether the server did not count some of them.
    :param is_final: whether the same question would end the same way.
    :param thought: characters of thinking, beside the text or in it.
    """

    value: BaseModel | None = None
    fault: str = ""
    text: str = ""
    tokens: TokensReadAndWritten = (0, 0)
    is_estimated: bool = False
    is_final: bool = False
    thought: int = 0


def read_completion(
    response_body: bytes, shape: type[BaseModel], *, api_key: str = "", sent_chars: int = 0
) -> Reply:
    """Read a completion.

    :param api_key: of the service. An answer that repeats it would carry it into recordings and
        stores: it becomes ``***``, there and in what is wrong.
    :param sent_chars: of the messages that were sent, for an estimate where the server does not
        count.

    >>> from memlab.llm.chat_completions import read_completion
    >>> read_completion(b'{"choices": []}', BaseModel).fault
    'no choice is in it'
    """
    try:
        completion = object_or_empty(parse_json_body(response_body))
    except ValueError:
        return Reply(fault=NO_COMPLETION, is_final=True)
    choice = first_object_or_empty(completion.get("choices"))
    message = _message_of_choice_or_empty(choice)
    message_text, n_thinking_chars = _raw_text_and_separate_thinking_chars(message)
    if not choice:
        sent_chars = 0  # nothing says that a model has read it
    token_usage = object_or_empty(completion.get("usage"))
    token_counts, is_estimated = _token_counts_and_if_estimated(
        token_usage, sent_chars, len(message_text) + n_thinking_chars
    )
    answer_text = strip_thinking(message_text)
    n_thinking_chars += len(message_text) - len(answer_text)
    reply = Reply(None, "", answer_text, token_counts, is_estimated, thought=n_thinking_chars)
    if not message:
        return reply._replace(fault=NO_CHOICE)
    fault, is_final = _fault_or_empty_and_whether_final(
        choice, message, answer_text, n_thinking_chars
    )
    shaped_value: BaseModel | None = None
    if not fault:
        shaped_value, fault = read_answer(message_text, shape)
    if shaped_value is not None:
        shaped_value, fault = _mask_api_key_in_answer(shaped_value, fault, api_key)
    shown_fault = mask_key_and_shorten_to_one_line(fault, _SHOWN_FAULT, api_key=api_key)
    return reply._replace(value=shaped_value, fault=shown_fault, is_final=is_final)


def _message_of_choice_or_empty(choice: Mapping[str, JsonValue]) -> JsonObject:
    for field_name in ("message", "delta"):
        if isinstance(choice.get(field_name), dict):
            return choice[field_name]
    if isinstance(choice.get("text"), str):
        return {"content": choice["text"]}
    return {}


def _raw_text_and_separate_thinking_chars(message: Mapping[str, JsonValue]) -> tuple[str, int]:
    """Give the text of a message, its parts joined, and the characters of thinking beside it."""
    content = message.get("content")
    if not isinstance(content, list):
        content = [content]
    text_parts = list[str]()
    n_thinking_chars = 0
    for content_part in content:
        if isinstance(content_part, str):
            text_parts.append(content_part)
            continue
        part_fields = object_or_empty(content_part)
        if part_fields.get("type") in _THINKING_PARTS:
            n_thinking_chars += len(json.dumps(part_fields))
        elif isinstance(part_fields.get("text"), str):
            text_parts.append(part_fields["text"])
    for field_name in _REASONING:
        if message.get(field_name):
            n_thinking_chars = max(n_thinking_chars, len(str(message[field_name])))
    return "".join(text_parts), n_thinking_chars


def _fault_or_empty_and_whether_final(
    choice: Mapping[str, JsonValue],
    message: Mapping[str, JsonValue],
    answer_text: str,
    n_thinking_chars: int,
) -> tuple[str, bool]:
    """Say why a completion has no answer, and whether another would; nothing where it may."""
    finish_reason = str(choice.get("finish_reason")).lower()
    if finish_reason in _CUT:
        return CUT, not answer_text.strip()  # a text may be shorter, thinking is as long again
    if finish_reason in _FILTERED:
        return FILTERED, True
    if finish_reason in _BROKEN_OFF:
        return BROKEN_OFF, False
    if answer_text.strip():
        return "", False
    refusal_text = _find_refusal_text_or_empty(message)
    if refusal_text:
        return f"the model refused: {refusal_text[:_SHOWN_REFUSAL]}", True
    tool_call = message.get("tool_calls") or message.get("function_call")
    if tool_call or finish_reason in _CALLED:
        return TOOL_CALL, False
    if n_thinking_chars:
        return ONLY_THINKING, False
    return EMPTY, False


def _find_refusal_text_or_empty(message: Mapping[str, JsonValue]) -> str:
    """Give what a model says that refuses, in a field of its own or in a part.

    Empty where it does not.
    """
    for message_part in (message, *map(object_or_empty, list_or_empty(message.get("content")))):
        refusal_field = message_part.get("refusal")
        if isinstance(refusal_field, str) and refusal_field.strip():
            return refusal_field
    return ""


def _mask_api_key_in_answer(answer: BaseModel, note: str, api_key: str) -> ValueAndNote:
    """Take a key out of an answer; where it does not fit without, there is none."""
    if len(api_key) < _SHORTEST_SECRET:
        return answer, note
    escaped_key = json.dumps(api_key, ensure_ascii=False)[1:-1]
    answer_json = answer.model_dump_json()
    if escaped_key not in answer_json:
        return answer, note
    masked_answer, _ = read_answer(answer_json.replace(escaped_key, "***"), type(answer))
    if masked_answer is None:
        return None, KEY_REPEATED
    return masked_answer, "; ".join(filter(None, (note, KEY_MASKED)))


def _token_counts_and_if_estimated(
    usage: Mapping[str, JsonValue], sent_chars: int, written_chars: int
) -> tuple[TokensReadAndWritten, bool]:
    """Give the tokens read and written, and whether some of them are an estimate by characters."""
    tokens_read = _first_token_count_or_zero(usage, _READ)
    tokens_written = _first_token_count_or_zero(usage, _WRITTEN)
    tokens_missing = _token_count_or_zero(usage.get("total_tokens")) - tokens_read - tokens_written
    if tokens_missing > 0 and tokens_read > 0 and tokens_written == 0:
        tokens_written = tokens_missing
    if tokens_missing > 0 and tokens_written > 0 and tokens_read == 0:
        tokens_read = tokens_missing
    estimated_tokens = (tokens_read, tokens_written)
    if tokens_read == 0:
        estimated_tokens = (-(-sent_chars // CHARS), tokens_written)
    if tokens_written == 0:
        estimated_tokens = (estimated_tokens[0], -(-written_chars // CHARS))
    return estimated_tokens, estimated_tokens != (tokens_read, tokens_written)


def _first_token_count_or_zero(usage: Mapping[str, JsonValue], field_names: tuple[str, ...]) -> int:
    for field_name in field_names:
        token_count = _token_count_or_zero(usage.get(field_name))
        if token_count:
            return token_count
    return 0


def _token_count_or_zero(json_value: JsonValue) -> int:
    """Read a number of tokens, which some write as a float or a text; no sensible one is 0."""
    if isinstance(json_value, bool) or not isinstance(json_value, int | float | str):
        return 0
    try:
        number = float(json_value)
    except (ValueError, OverflowError):
        return 0
    if 0 <= number < 2**40:
        return round(number)
    return 0


def token_counts_or_zeros(recorded_tokens: JsonValue) -> TokensReadAndWritten:
    """Take the tokens read and written of a recording; what is no sensible count is 0."""
    if isinstance(recorded_tokens, list | tuple) and len(recorded_tokens) == 2:
        return _token_count_or_zero(recorded_tokens[0]), _token_count_or_zero(recorded_tokens[1])
    return 0, 0
