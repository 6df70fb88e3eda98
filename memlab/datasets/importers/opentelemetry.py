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
from memlab.datasets.importers.loose_json import (
    decode_json,
    first_field,
    first_filled,
    first_text,
    get_list,
    get_nested,
    list_or_empty,
)
from memlab.datasets.importers.traces import Step, deduplicate_messages, make_step
from memlab.datasets.source import Source
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
    step: Step
    rest: dict[str, Any]
    system: int
    others: int


def is_opentelemetry_export(file: Source) -> bool:
    if {"context.trace_id", "attributes"} <= file.keys:
        return True
    return _BEGINS.match(file.head) is not None


def read_opentelemetry_spans(source: Source) -> Iterator[Message]:
    """Read the messages that went into models and came out of them, each once."""
    raw_spans: dict[tuple[str, str], dict[str, Any]] = {}
    for _, number, record in source.member_values():
        for raw in _list_spans(source, record):
            trace = first_text(first_field(raw, *_TRACE_IDS), number)
            own = first_text(first_field(raw, *_SPAN_IDS), f"{number} {len(raw_spans)}")
            known = raw_spans.get((trace, own), {})
            if raw == known:
                source.drop("repeated spans", OWNER_SCOPE)
                continue
            if raw.get("attributes") and known.get("attributes"):
                own, known = f"{own} {len(raw_spans)}", {}
            events = list_or_empty(known.get("events")) + list_or_empty(raw.get("events"))
            raw_spans[trace, own] = known | raw | {"events": events}
    traces: dict[str, list[_Span]] = {}
    for (trace, own), raw in raw_spans.items():
        traces.setdefault(trace, []).append(_read_span(trace, own, raw))
    steps = list[Step]()
    for trace, spans in traces.items():
        steps += _choose_steps(source, trace, spans)
    if not steps:
        source.fail(
            "holds spans of OpenTelemetry without messages: instrumentations leave them out unless "
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT, or a setting like it, is true"
        )
    yield from deduplicate_messages(source, steps)


def _list_spans(source: Source, record: Any) -> Iterator[dict[str, Any]]:
    """Give the spans of a record with plain attributes; a log is the event of its span."""
    is_packed = False
    for around, within, innermost in _KINDS:
        for resource in get_list(record, around):
            is_packed = True
            about = _plain_attributes(get_nested(resource, "resource.attributes"))
            count_unread_texts(source, OWNER_SCOPE, {"resource": about}, (), "")
            for scope in get_list(resource, within) or get_list(resource, _OLD_SCOPES):
                for raw in get_list(scope, innermost):
                    yield _make_plain(raw, is_log=innermost == "logRecords")
    if is_packed:
        return
    for raw in get_list(record, "spans") or [record]:
        if isinstance(raw, dict):
            yield _make_plain(raw, is_log=False)
        else:
            source.drop("unreadable messages", OWNER_SCOPE)


def _make_plain(raw: Any, *, is_log: bool) -> dict[str, Any]:
    """Give a span, or the span of a log, whose attributes and events are plain objects."""
    if not isinstance(raw, dict):
        return {}
    plain = dict(raw)
    plain["attributes"] = _plain_attributes(raw.get("attributes"))
    if is_log:
        event = {"name": first_field(raw, "eventName"), "attributes": plain.pop("attributes")}
        body = _plain_value(plain.pop("body", None))
        if isinstance(body, dict):
            event["attributes"] = event["attributes"] | body
        elif body is not None:
            event["attributes"]["content"] = body
        return plain | {"events": [event]}
    plain["events"] = list(map(_plain_event, get_list(raw, "events")))
    return plain


def _plain_event(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict):
        return {}
    return raw | {"attributes": _plain_attributes(raw.get("attributes"))}


def _plain_attributes(raw: Any) -> dict[str, Any]:
    """Give attributes as an object, of which OTLP makes a list; JSON in texts is decoded."""
    attributes = dict[str, Any]()
    if isinstance(raw, dict):
        attributes = {key: decode_json(value) for key, value in raw.items()}
    for pair in list_or_empty(raw):
        if isinstance(pair, dict):
            attributes[first_field(pair, "key")] = _plain_value(pair.get("value"))
    return attributes


def _plain_value(value: Any) -> Any:
    """Give a value out of the object that says its type; with what else that holds, if it does."""
    if not isinstance(value, dict):
        return decode_json(value)
    beside = dict(value)
    plain: Any = None
    for key in _VALUES:
        if key in value:
            plain = decode_json(beside.pop(key))
    if "arrayValue" in value:
        plain = list(map(_plain_value, get_list(beside.pop("arrayValue"), "values")))
    if "kvlistValue" in value:
        plain = _plain_attributes(get_list(beside.pop("kvlistValue"), "values"))
    if not beside:
        return plain
    return {"value": plain} | beside


def _read_span(trace: str, own: str, raw: dict[str, Any]) -> _Span:
    """Read a span; what it holds beside messages is kept to be counted."""
    attributes = dict(raw.get("attributes", {}))
    events = list[dict[str, Any]]()
    asked, answered, others = list[Any](), list[Any](), 0
    for event in raw["events"]:
        name = first_field(event, "name", "attributes.event.name")
        about = dict(event.get("attributes", {}))
        name = first_text(name, about.pop("event.name", None))
        if name == _DETAILS:
            attributes = about | attributes
        elif _ROLE_OF_EVENT.fullmatch(name):
            asked.append(_read_event(name, about))
        elif name == "gen_ai.choice":
            answered.append(_read_choice(about))
        elif about.get(_CONTENT_OF_EVENT.get(name, "")):
            attributes = about | attributes
        else:
            events.append(event)
    others += max(0, len(answered) - 1)
    values = [asked, answered[:1]]
    _gather_indexed(attributes)
    for place, keys in enumerate((_ASKED, _ANSWERED)):
        for key in keys:
            if values[place] or not attributes.get(key):
                continue
            values[place] = attributes.pop(key)
            if key in _ALTERNATIVES and isinstance(values[place], list):
                others += max(0, len(values[place]) - 1)
                values[place] = values[place][:1]
    system = int(bool(attributes.pop(_SYSTEM, None)))
    times = _read_time(raw, _BEGUN, "timeUnixNano"), _read_time(raw, _ENDED)
    user = first_text(*map(attributes.get, _USERS))
    session = first_text(*map(attributes.get, _SESSIONS))
    step = make_step("", "", "", (values[0], values[1]), times)
    rest = raw | {"attributes": attributes, "events": events}
    parent = first_field(raw, *_PARENT_IDS)
    return _Span(trace, own, parent, user, session, step, rest, system, others)


def _read_event(name: str, about: dict[str, Any]) -> dict[str, Any]:
    """Give the message of an event, which is called by its role."""
    role = name.split(".")[1]
    message = {"role": role} | about
    if message.get("content") is None:
        message["content"] = message.pop("gen_ai.event.content", None)
    return message


def _read_choice(about: dict[str, Any]) -> dict[str, Any]:
    """Give the message of an event that is an answer."""
    message = dict(about)
    inner = message.pop("message", None)
    if isinstance(inner, dict):
        message |= inner
    elif inner is not None:
        message["content"] = inner
    return {"role": "assistant"} | message


def _gather_indexed(attributes: dict[str, Any]) -> None:
    """Put messages together whose fields are attributes each, with their numbers."""
    gathered: dict[str, dict[int, dict[str, Any]]] = {}
    for key in list(attributes):
        found = _INDEXED.fullmatch(key)
        if found is None:
            continue
        prefix, number, name = found.groups()
        message = gathered.setdefault(prefix, {}).setdefault(int(number), {})
        part = _PART.fullmatch(name)
        if part is not None:
            parts = message.setdefault("content", [])
            while isinstance(parts, list) and len(parts) <= int(part[1]) < len(attributes):
                parts.append({})
            if isinstance(parts, list) and int(part[1]) < len(parts):
                parts[int(part[1])][part[2]] = attributes.pop(key)
        elif name.startswith("tool_calls."):
            message.setdefault("tool_calls", {})[name.split(".")[1]] = True
        else:
            message[name] = attributes.pop(key)
    for prefix, messages in gathered.items():
        for message in messages.values():
            message["tool_calls"] = list(message.get("tool_calls", ()))
        attributes.setdefault(prefix, [messages[number] for number in sorted(messages)])


def _read_time(raw: dict[str, Any], keys: tuple[str, ...], *more: str) -> Any:
    """Give a time of a span, which OTLP counts in nanoseconds."""
    value = first_filled(raw, *keys, *more)
    text = first_text(value)
    if text.isdecimal() and len(text) > 17:
        return int(text) / _SECOND
    return value


def _choose_steps(source: Source, trace: str, spans: list[_Span]) -> list[Step]:
    """Give the steps of a trace: the outermost that were asked and answered, else all."""
    scope = first_text(*(span.user for span in spans), OWNER_SCOPE)
    session = first_text(*(span.session for span in spans), f"trace {trace}")
    speaking = [span for span in spans if span.step.given]
    chosen = speaking
    by_id = {span.own: span for span in spans}
    if any(span.step.says_both for span in spans):
        chosen = []
        for span in speaking:
            if span.step.says_both and not _is_within_step(span, by_id):
                chosen.append(span)
    source.drop("spans within others", scope, len(speaking) - len(chosen))
    source.drop("spans without messages", scope, len(spans) - len(speaking))
    for span in chosen:
        source.drop("system messages", scope, span.system)
        source.drop("other answers", scope, span.others)
        count_unread_texts(source, scope, span.rest, (), "")
        span.step.scope = first_text(span.user, scope)
        span.step.session = first_text(span.session, session)
    return [span.step for span in chosen]


def _is_within_step(span: _Span, by_id: dict[str, _Span]) -> bool:
    """Say whether a span around this one was asked and answered."""
    seen = {span.own}
    around = by_id.get(span.parent)
    while around is not None and around.own not in seen:
        if around.step.says_both:
            return True
        seen.add(around.own)
        around = by_id.get(around.parent)
    return False
