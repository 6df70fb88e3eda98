"""What is read of a completion: usage and the reason why it ended first, then its answer."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from memlab.llm.answer_reader import ONLY_THINKING, read_answer, strip_thinking
from memlab.llm.bodies import parse_json
from memlab.llm.spending import CHARS

CUT = "cut at the longest output: raise max_output"
FILTERED = "withheld by the content filter of the server"
TOOL_CALL = "it called a tool instead of giving an answer"
BROKEN_OFF = "the server broke it off"
EMPTY = "the answer is empty"
NO_CHOICE = "no choice is in it"
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
_SHOWN_REFUSAL = 120


class Reply(NamedTuple):
    """An answer or what is wrong with it.

    :param fault: what is wrong; with a value, what was left out of it.
    :param text: that the answer was read from, without thinking.
    :param tokens: read and written.
    :param is_estimated: whether the server did not count some of them.
    :param is_final: whether the same question would end the same way.
    """

    value: BaseModel | None = None
    fault: str = ""
    text: str = ""
    tokens: tuple[int, int] = (0, 0)
    is_estimated: bool = False
    is_final: bool = False


def read_completion(
    body: bytes, shape: type[BaseModel], *, key: str = "", sent_chars: int = 0
) -> Reply:
    """Read a completion.

    :param key: of the service. An answer that repeats it would carry it into recordings and stores:
        it becomes ``***``.
    :param sent_chars: of the messages that were sent, for an estimate where the server does not
        count.

    >>> from memlab.llm.completions import read_completion
    >>> read_completion(b'{"choices": []}', BaseModel).fault
    'no choice is in it'
    """
    try:
        completion = parse_json(body)
    except ValueError:
        return Reply(fault=NO_COMPLETION, is_final=True)
    choice = _first_choice(completion)
    message = _message(choice)
    text, thought = _text_and_thinking(message, choice)
    usage = completion.get("usage") if isinstance(completion, dict) else None
    if not choice:
        sent_chars = 0  # nothing says that a model has read it
    tokens, is_estimated = _usage_tokens(usage, sent_chars, len(text) + thought)
    reply = Reply(None, "", strip_thinking(text), tokens, is_estimated)
    if not message and not text:
        return reply._replace(fault=NO_CHOICE)
    fault, is_final = _ending(choice, message, text, thought)
    if fault:
        return reply._replace(fault=_without_key(fault, key), is_final=is_final)
    value, fault = read_answer(text, shape)
    if value is not None and key:
        value = _answer_without_key(value, key)
        if value is None:
            fault = "it repeats the key of the service"
    return reply._replace(value=value, fault=fault)


def _first_choice(completion: Any) -> dict[str, Any]:
    choices = completion.get("choices") if isinstance(completion, dict) else None
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return {}


def _message(choice: Mapping[str, Any]) -> dict[str, Any]:
    for name in ("message", "delta"):
        if isinstance(choice.get(name), dict):
            return choice[name]
    return {}


def _text_and_thinking(message: Mapping[str, Any], choice: Mapping[str, Any]) -> tuple[str, int]:
    """Give the text of a message, its parts joined, and how many characters of thinking stand apart."""
    content = message.get("content")
    if content is None:
        content = choice.get("text")
    parts = content if isinstance(content, list) else [content]
    texts, thought = list[str](), 0
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            if part.get("type") in _THINKING_PARTS or part.get("thought") is True:
                thought += len(json.dumps(part))
            elif isinstance(part.get("text"), str):
                texts.append(part["text"])
    for name in _REASONING:
        value = message.get(name)
        if value:
            thought = max(thought, len(value if isinstance(value, str) else json.dumps(value)))
    return "".join(texts), thought


def _ending(
    choice: Mapping[str, Any], message: Mapping[str, Any], text: str, thought: int
) -> tuple[str, bool]:
    """Say why a completion ended without an answer, and whether it would again; nothing where it may have one."""
    finish = str(choice.get("finish_reason") or "").lower()
    if finish in _CUT:
        return CUT, True
    if finish in _FILTERED:
        return FILTERED, True
    if finish in _BROKEN_OFF:
        return BROKEN_OFF, False
    if text.strip():
        return "", False
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        return f"the model refused: {refusal[:_SHOWN_REFUSAL]}", True
    if finish in _CALLED or message.get("tool_calls") or message.get("function_call"):
        return TOOL_CALL, False
    if thought:
        return ONLY_THINKING, False
    return EMPTY, False


def _without_key(text: str, key: str) -> str:
    shown = " ".join(text.split())
    return shown.replace(key, "***") if key else shown


def _answer_without_key(value: BaseModel, key: str) -> BaseModel | None:
    """Take a key out of an answer; where it does not fit without, there is none."""
    secret, written = json.dumps(key, ensure_ascii=False)[1:-1], value.model_dump_json()
    if len(key) < _SHORTEST_SECRET or secret not in written:
        return value
    without, _ = read_answer(written.replace(secret, "***"), type(value))
    return without


def _usage_tokens(usage: Any, sent_chars: int, written_chars: int) -> tuple[tuple[int, int], bool]:
    """Give the tokens read and written, and whether some of them are an estimate by characters."""
    counted = usage if isinstance(usage, dict) else {}
    read, written = _first_count(counted, _READ), _first_count(counted, _WRITTEN)
    total = _count(counted.get("total_tokens"))
    if total and read and not written and total > read:
        written = total - read
    if total and written and not read and total > written:
        read = total - written
    lacks_read = read == 0 and sent_chars > 0
    lacks_written = written == 0 and written_chars > 0
    if lacks_read:
        read = -(-sent_chars // CHARS)
    if lacks_written:
        written = -(-written_chars // CHARS)
    return (read, written), lacks_read or lacks_written


def _first_count(usage: Mapping[str, Any], names: tuple[str, ...]) -> int:
    for name in names:
        count = _count(usage.get(name))
        if count:
            return count
    return 0


def _count(value: Any) -> int:
    """Read a number of tokens, which some servers write as a float or as text; what is no sensible count is 0."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return 0
    return round(number) if math.isfinite(number) and 0 <= number < 2**40 else 0


def token_counts(tokens: Any) -> tuple[int, int]:
    """Take the tokens read and written of a recording; what is no sensible count is 0."""
    if isinstance(tokens, list | tuple) and len(tokens) == 2:
        return _count(tokens[0]), _count(tokens[1])
    return 0, 0
