"""Answers that came in parts, as logs of streaming calls hold them: joined into one answer.

Layouts: chunks of OpenAI's chat completions and events of its responses, events of Anthropic's
messages, lines of Ollama, parts of Gemini; as a list, or as the text of server-sent events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    decode_if_json_text,
    first_field_text,
    get_nested,
    get_nested_list,
    list_or_empty,
)

_EVENT = "data:"
_TEXTS = ("delta.content", "delta.text", "text")
"""Where a part of a choice has its text."""
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
_COMPLETE = ("response.completed", "response.done")


def join_answer_if_streamed(json_value: JsonValue) -> JsonValue:
    """Give the parts of an answer as the answer that they make; anything else as it is.

    >>> parts = [{"choices": [{"delta": {"content": text}}]} for text in ("At ", "six.")]
    >>> join_answer_if_streamed(parts)
    {'choices': [{'message': {'role': 'assistant', 'content': 'At six.'}}]}
    >>> join_answer_if_streamed([{"role": "assistant", "content": "At six."}])
    [{'role': 'assistant', 'content': 'At six.'}]
    """
    parts = json_value
    if isinstance(json_value, str) and json_value.lstrip().startswith((_EVENT, "event:")):
        parts = list(_list_server_sent_events(json_value))
    part_list = list_or_empty(parts)
    if not part_list or not all(isinstance(answer_part, dict) for answer_part in part_list):
        return json_value
    for answer_part in reversed(part_list):
        if first_field_text(answer_part, "type") in _COMPLETE and isinstance(
            answer_part.get("response"), dict
        ):
            return answer_part["response"]
    texts = list(map(_text_of_answer_part, part_list))
    spoken_text = "".join(text for text in texts if text is not None)
    if not spoken_text:
        return json_value
    message: dict[str, Any] = {"role": "assistant", "content": spoken_text}
    thoughts = "".join(map(_thoughts_of_answer_part_or_empty, part_list))
    if thoughts:
        message["reasoning_content"] = thoughts  # which is counted
    if any(map(_holds_tool_call, part_list)):
        message["tool_calls"] = [{"type": "function"}]
    answer: dict[str, Any] = {"choices": [{"message": message}]}
    first_part = part_list[0]
    for key in ("id", "created", "created_at"):
        if key in first_part:
            answer[key] = first_part[key]
    return answer


def _list_server_sent_events(event_stream: str) -> Iterator[JsonObject]:
    """Give the data of server-sent events."""
    for line in event_stream.splitlines():
        if line.startswith(_EVENT):
            event = decode_if_json_text(line.removeprefix(_EVENT).strip())
            if isinstance(event, dict):
                yield event


def _text_of_answer_part(answer_part: JsonObject) -> str | None:
    """Give the text of a part of an answer; ``None`` for what is none, or has none."""
    streamed_text = None
    if "choices" in answer_part:
        for choice in get_nested_list(answer_part, "choices")[:1]:
            streamed_text = _first_unstripped_string(choice, *_TEXTS)
    elif first_field_text(answer_part, "type") == "content_block_delta":
        streamed_text = _first_unstripped_string(answer_part, "delta.text")
    elif first_field_text(answer_part, "type") == "response.output_text.delta":
        streamed_text = _first_unstripped_string(answer_part, "delta")
    elif "done" in answer_part:
        streamed_text = _first_unstripped_string(answer_part, "message.content", "response")
    elif "candidates" in answer_part:
        for candidate in get_nested_list(answer_part, "candidates")[:1]:
            candidate_texts = [
                candidate_part.get("text", "")
                for candidate_part in get_nested_list(candidate, "content.parts")
                if isinstance(candidate_part, dict) and candidate_part.get("thought") is not True
            ]
            streamed_text = "".join(filter(None, candidate_texts))
    return streamed_text


def _list_delta_objects(answer_part: JsonObject) -> list[JsonValue]:
    """List the objects in a part of an answer that hold what it adds."""
    choices = get_nested_list(answer_part, "choices")[:1]
    return [get_nested(choice, "delta") for choice in choices] + [answer_part.get("delta")]


def _thoughts_of_answer_part_or_empty(answer_part: JsonObject) -> str:
    """Give what a part of an answer adds to the thoughts before it; empty for any other."""
    for holder in (*_list_delta_objects(answer_part), answer_part.get("message")):
        thought = _first_unstripped_string(holder, *_THOUGHTS)
        if thought:
            return thought
    for candidate in get_nested_list(answer_part, "candidates")[:1]:
        for candidate_part in get_nested_list(candidate, "content.parts"):
            if get_nested(candidate_part, "thought") is True:
                return _first_unstripped_string(candidate_part, "text") or ""
    return ""


def _holds_tool_call(answer_part: JsonObject) -> bool:
    """Say whether a part of an answer is one of a call of a tool."""
    for holder in (*_list_delta_objects(answer_part), answer_part.get("message")):
        if get_nested(holder, "tool_calls") or get_nested(holder, "partial_json"):
            return True
    return False


def _first_unstripped_string(json_value: JsonValue, *dotted_paths: str) -> str | None:
    """Give the first field that is a text, with the white space around it."""
    for dotted_path in dotted_paths:
        nested_value = get_nested(json_value, dotted_path)
        if isinstance(nested_value, str):
            return nested_value
    return None
