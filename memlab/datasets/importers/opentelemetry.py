"""Spans and logs of OpenTelemetry that hold what went into models and came out of them.

Layouts: OTLP's JSON, and spans as SDKs print them. Messages stand in attributes (``gen_ai.*`` of
the semantic conventions, ``llm.*`` and ``input.value`` of OpenInference, ``ai.*`` of the AI SDK) or
in events (``gen_ai.user.message``, ``gen_ai.choice`` and others). A conversation is a session, else
a trace is; a span that was asked and answered stands for those within it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memlab.datasets.importers.export_messages import OWNER_SCOPE, Message
from memlab.datasets.importers.langsmith_langfuse import (
    TraceStep,
    make_trace_step,
    read_new_step_messages_and_count_rest,
)
from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    decode_if_json_text,
    first_field_text,
    first_filled_field,
    first_non_empty_text,
    get_nested,
    get_nested_list,
    list_or_empty,
)
from memlab.datasets.record_sources import Source
from memlab.datasets.unread_texts import count_unread_texts

_BEGINS = re.compile(
    r'(?s)\s*[\[{].*?(?<!\\)"(?:resourceSpans"|resourceLogs"|gen_ai\.|openinference\.|traceloop\.'
    r"|llm\.\w+_messages)"
)
_KINDS = (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords"))
_OLD_SCOPES = "instrumentationLibrarySpans"
_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue")
_INDEXED = re.compile(
    r"(gen_ai\.prompt|gen_ai\.completion|llm\.input_messages|llm\.output_messages)"
    r"\.(\d+)\.(?:message\.)?(.+)"
)
_PART = re.compile(r"contents\.(\d+)\.message_content\.(\w+)")
_ASKED = (
    *("gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages", "ai.prompt.messages"),
    *("ai.prompt", "pydantic_ai.all_messages", "input.value"),
)
_ANSWERED = (
    *("gen_ai.output.messages", "gen_ai.completion", "llm.output_messages", "ai.response.text"),
    "output.value",
)
"""Attributes with messages, in the order in which they are looked at."""
_ALTERNATIVES = ("gen_ai.output.messages", "gen_ai.completion")
"""Of whose messages each is another answer."""
_SYSTEM = "gen_ai.system_instructions"
_ROLE_OF_EVENT = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_CONTENT_OF_EVENT = {"gen_ai.content.prompt": "gen_ai.prompt"}
_CONTENT_OF_EVENT["gen_ai.content.completion"] = "gen_ai.completion"
_DETAILS = "gen_ai.client.inference.operation.details"
_USERS = ("user.id", "enduser.id", "langfuse.user.id", "traceloop.association.properties.user_id")
_SESSIONS = (
    *("gen_ai.conversation.id", "session.id", "langfuse.session.id", "thread.id"),
    *("traceloop.association.properties.session_id", "traceloop.association.properties.thread_id"),
)
_TRACE_IDS = ("traceId", "trace_id", "context.trace_id")
_SPAN_IDS = ("spanId", "span_id", "context.span_id")
_PARENT_IDS = ("parentSpanId", "parent_span_id", "parent_id")
_BEGUN = ("startTimeUnixNano", "start_time", "startTime", "start_timestamp")
_ENDED = ("endTimeUnixNano", "end_time", "endTime", "end_timestamp")
_SECOND = 10**9
"""In nanoseconds."""


@dataclass
class _Span:
    """A span: its place among others, and what was asked and answered in it."""

    trace: str
    own: str
    parent: str
    user: str
    session: str
    step: TraceStep
    rest: JsonObject
    system: int
    others: int


def is_opentelemetry_export(file: Source) -> bool:
    if {"context.trace_id", "attributes"} <= file.keys:
        return True
    return _BEGINS.match(file.head) is not None


def read_opentelemetry_spans(source: Source) -> Iterator[Message]:
    """Read the messages that went into models and came out of them, each once."""
    raw_spans: dict[tuple[str, str], dict[str, Any]] = {}
    for _, number, record in source.stream_numbered_member_values():
        for raw_span in _list_plain_spans_and_count_unread(source, record):
            trace_id = first_non_empty_text(first_field_text(raw_span, *_TRACE_IDS), number)
            span_id = first_non_empty_text(
                first_field_text(raw_span, *_SPAN_IDS), f"{number} {len(raw_spans)}"
            )
            known_span = raw_spans.get((trace_id, span_id), {})
            if raw_span == known_span:
                source.drop("repeated spans", OWNER_SCOPE)
                continue
            if raw_span.get("attributes") and known_span.get("attributes"):
                span_id = f"{span_id} {len(raw_spans)}"
                known_span = {}
            span_events = list_or_empty(known_span.get("events")) + list_or_empty(
                raw_span.get("events")
            )
            raw_spans[trace_id, span_id] = known_span | raw_span | {"events": span_events}
    traces: dict[str, list[_Span]] = {}
    for (trace_id, span_id), raw_span in raw_spans.items():
        traces.setdefault(trace_id, []).append(_read_span(trace_id, span_id, raw_span))
    span_steps = list[TraceStep]()
    for trace_id, spans in traces.items():
        span_steps += _choose_trace_steps_and_count_others(source, trace_id, spans)
    if not span_steps:
        source.fail(
            "holds spans of OpenTelemetry without messages: instrumentations leave them out unless "
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT, or a setting like it, is true"
        )
    yield from read_new_step_messages_and_count_rest(source, span_steps)


def _list_plain_spans_and_count_unread(
    source: Source, raw_record: JsonValue
) -> Iterator[JsonObject]:
    """Give the spans of a record with plain attributes; a log is the event of its span."""
    is_packed = False
    for outer_key, inner_key, span_key in _KINDS:
        for resource in get_nested_list(raw_record, outer_key):
            is_packed = True
            resource_attributes = _attributes_as_object(get_nested(resource, "resource.attributes"))
            count_unread_texts(source, OWNER_SCOPE, {"resource": resource_attributes}, (), "")
            for scope_spans in get_nested_list(resource, inner_key) or get_nested_list(
                resource, _OLD_SCOPES
            ):
                for raw_span in get_nested_list(scope_spans, span_key):
                    yield _span_with_plain_attributes(raw_span, is_log=span_key == "logRecords")
    if is_packed:
        return
    for raw_span in get_nested_list(raw_record, "spans") or [raw_record]:
        if isinstance(raw_span, dict):
            yield _span_with_plain_attributes(raw_span, is_log=False)
        else:
            source.drop("unreadable messages", OWNER_SCOPE)


def _span_with_plain_attributes(raw_span_or_log: JsonValue, *, is_log: bool) -> JsonObject:
    """Give a span, or the span of a log, whose attributes and events are plain objects."""
    if not isinstance(raw_span_or_log, dict):
        return {}
    plain_span = dict(raw_span_or_log)
    plain_span["attributes"] = _attributes_as_object(raw_span_or_log.get("attributes"))
    if is_log:
        log_event = {
            "name": first_field_text(raw_span_or_log, "eventName"),
            "attributes": plain_span.pop("attributes"),
        }
        log_body = _decode_typed_value(plain_span.pop("body", None))
        if isinstance(log_body, dict):
            log_event["attributes"] = log_event["attributes"] | log_body
        elif log_body is not None:
            log_event["attributes"]["content"] = log_body
        return plain_span | {"events": [log_event]}
    plain_span["events"] = list(
        map(_event_with_plain_attributes, get_nested_list(raw_span_or_log, "events"))
    )
    return plain_span


def _event_with_plain_attributes(raw_event: JsonValue) -> JsonObject:
    if not isinstance(raw_event, dict):
        return {}
    return raw_event | {"attributes": _attributes_as_object(raw_event.get("attributes"))}


def _attributes_as_object(raw_attributes: JsonValue) -> JsonObject:
    """Give attributes as an object, of which OTLP makes a list; JSON in texts is decoded."""
    attributes = dict[str, Any]()
    if isinstance(raw_attributes, dict):
        attributes = {
            attribute: decode_if_json_text(value) for attribute, value in raw_attributes.items()
        }
    for key_and_value in list_or_empty(raw_attributes):
        if isinstance(key_and_value, dict):
            attributes[first_field_text(key_and_value, "key")] = _decode_typed_value(
                key_and_value.get("value")
            )
    return attributes


def _decode_typed_value(raw_value: JsonValue) -> JsonValue:
    """Give a value out of the object that says its type; with what else that holds, if it does."""
    if not isinstance(raw_value, dict):
        return decode_if_json_text(raw_value)
    other_fields = dict(raw_value)
    decoded_value: Any = None
    for value_key in _VALUES:
        if value_key in raw_value:
            decoded_value = decode_if_json_text(other_fields.pop(value_key))
    if "arrayValue" in raw_value:
        decoded_value = list(
            map(_decode_typed_value, get_nested_list(other_fields.pop("arrayValue"), "values"))
        )
    if "kvlistValue" in raw_value:
        decoded_value = _attributes_as_object(
            get_nested_list(other_fields.pop("kvlistValue"), "values")
        )
    if not other_fields:
        return decoded_value
    return {"value": decoded_value} | other_fields


def _read_span(trace_id: str, span_id: str, plain_span: JsonObject) -> _Span:
    """Read a span; what it holds beside messages is kept to be counted."""
    attributes = dict(plain_span.get("attributes", {}))
    events = list[dict[str, Any]]()
    asked_messages = list[Any]()
    answer_messages = list[Any]()
    n_others = 0
    for event in plain_span["events"]:
        event_name = first_field_text(event, "name", "attributes.event.name")
        event_attributes = dict(event.get("attributes", {}))
        event_name = first_non_empty_text(event_name, event_attributes.pop("event.name", None))
        if event_name == _DETAILS:
            attributes = event_attributes | attributes
        elif _ROLE_OF_EVENT.fullmatch(event_name):
            asked_messages.append(_message_of_event(event_name, event_attributes))
        elif event_name == "gen_ai.choice":
            answer_messages.append(_answer_message_of_choice_event(event_attributes))
        elif event_attributes.get(_CONTENT_OF_EVENT.get(event_name, "")):
            attributes = event_attributes | attributes
        else:
            events.append(event)
    n_others += max(0, len(answer_messages) - 1)
    asked_and_answered = [asked_messages, answer_messages[:1]]
    _replace_numbered_attributes_by_messages(attributes)
    for value_number, attribute_names in enumerate((_ASKED, _ANSWERED)):
        for attribute in attribute_names:
            if asked_and_answered[value_number] or not attributes.get(attribute):
                continue
            asked_and_answered[value_number] = attributes.pop(attribute)
            if attribute in _ALTERNATIVES and isinstance(asked_and_answered[value_number], list):
                n_others += max(0, len(asked_and_answered[value_number]) - 1)
                asked_and_answered[value_number] = asked_and_answered[value_number][:1]
    n_system = int(bool(attributes.pop(_SYSTEM, None)))
    begun_and_ended = (
        _span_time_nanoseconds_as_seconds(plain_span, _BEGUN, "timeUnixNano"),
        _span_time_nanoseconds_as_seconds(plain_span, _ENDED),
    )
    user = first_non_empty_text(*map(attributes.get, _USERS))
    session = first_non_empty_text(*map(attributes.get, _SESSIONS))
    step = make_trace_step(
        "", "", "", (asked_and_answered[0], asked_and_answered[1]), begun_and_ended
    )
    unread_fields = plain_span | {"attributes": attributes, "events": events}
    parent_id = first_field_text(plain_span, *_PARENT_IDS)
    return _Span(
        trace_id, span_id, parent_id, user, session, step, unread_fields, n_system, n_others
    )


def _message_of_event(event_name: str, event_attributes: JsonObject) -> JsonObject:
    """Give the message of an event, which is called by its role."""
    role = event_name.split(".")[1]
    message: JsonObject = {"role": role} | event_attributes
    if message.get("content") is None:
        message["content"] = message.pop("gen_ai.event.content", None)
    return message


def _answer_message_of_choice_event(event_attributes: JsonObject) -> JsonObject:
    """Give the message of an event that is an answer."""
    message = dict(event_attributes)
    inner_message = message.pop("message", None)
    if isinstance(inner_message, dict):
        message |= inner_message
    elif inner_message is not None:
        message["content"] = inner_message
    return {"role": "assistant"} | message


def _replace_numbered_attributes_by_messages(span_attributes: JsonObject) -> None:
    """Put messages together whose fields are attributes each, with their numbers."""
    messages_by_prefix: dict[str, dict[int, dict[str, Any]]] = {}
    for attribute in list(span_attributes):
        indexed_match = _INDEXED.fullmatch(attribute)
        if indexed_match is None:
            continue
        prefix, message_number, field_name = indexed_match.groups()
        message = messages_by_prefix.setdefault(prefix, {}).setdefault(int(message_number), {})
        part_match = _PART.fullmatch(field_name)
        if part_match is not None:
            content_parts = message.setdefault("content", [])
            while isinstance(content_parts, list) and len(content_parts) <= int(
                part_match[1]
            ) < len(span_attributes):
                content_parts.append({})
            if isinstance(content_parts, list) and int(part_match[1]) < len(content_parts):
                content_parts[int(part_match[1])][part_match[2]] = span_attributes.pop(attribute)
        elif field_name.startswith("tool_calls."):
            message.setdefault("tool_calls", {})[field_name.split(".")[1]] = True
        else:
            message[field_name] = span_attributes.pop(attribute)
    for prefix, messages in messages_by_prefix.items():
        for message in messages.values():
            message["tool_calls"] = list(message.get("tool_calls", ()))
        span_attributes.setdefault(
            prefix, [messages[message_number] for message_number in sorted(messages)]
        )


def _span_time_nanoseconds_as_seconds(
    plain_span: JsonObject, time_keys: tuple[str, ...], *other_keys: str
) -> JsonValue:
    """Give a time of a span, which OTLP counts in nanoseconds."""
    value = first_filled_field(plain_span, *time_keys, *other_keys)
    time_text = first_non_empty_text(value)
    if time_text.isdecimal() and len(time_text) > 17:
        return int(time_text) / _SECOND
    return value


def _choose_trace_steps_and_count_others(
    source: Source, trace_id: str, spans: list[_Span]
) -> list[TraceStep]:
    """Give the steps of a trace: the outermost that were asked and answered, else all."""
    scope = first_non_empty_text(*(span.user for span in spans), OWNER_SCOPE)
    session = first_non_empty_text(*(span.session for span in spans), f"trace {trace_id}")
    speaking_spans = [span for span in spans if span.step.given]
    chosen_spans = speaking_spans
    spans_by_id = {span.own: span for span in spans}
    if any(span.step.has_request_and_answer for span in spans):
        chosen_spans = []
        for span in speaking_spans:
            if span.step.has_request_and_answer and not _is_within_complete_span(span, spans_by_id):
                chosen_spans.append(span)
    source.drop("spans within others", scope, len(speaking_spans) - len(chosen_spans))
    source.drop("spans without messages", scope, len(spans) - len(speaking_spans))
    for span in chosen_spans:
        source.drop("system messages", scope, span.system)
        source.drop("other answers", scope, span.others)
        count_unread_texts(source, scope, span.rest, (), "")
        span.step.scope = first_non_empty_text(span.user, scope)
        span.step.session = first_non_empty_text(span.session, session)
    return [span.step for span in chosen_spans]


def _is_within_complete_span(span: _Span, span_by_id: dict[str, _Span]) -> bool:
    """Say whether a span around this one was asked and answered."""
    seen_ids = {span.own}
    parent_span = span_by_id.get(span.parent)
    while parent_span is not None and parent_span.own not in seen_ids:
        if parent_span.step.has_request_and_answer:
            return True
        seen_ids.add(parent_span.own)
        parent_span = span_by_id.get(parent_span.parent)
    return False
