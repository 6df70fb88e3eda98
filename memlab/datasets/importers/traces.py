"""Traces of LangSmith and Langfuse: conversations out of runs that each repeat what was said before them.

Layouts: LangSmith's page on the run data format, as its API and bulk export give it; Langfuse's
pages on exports. A trace that holds what was asked and answered itself is read by that, another by
the runs of its models; traces of one thread (LangSmith) or session (Langfuse) are a session.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from memlab.datasets.fields import BadField, parse_time
from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    make_session_messages,
    normalise_role,
    read_turns,
)
from memlab.datasets.importers.logged_calls import count_overlap
from memlab.datasets.importers.loose_json import (
    decode_json,
    first_field,
    first_text,
    first_time,
    get_list,
    get_nested,
    list_or_empty,
)
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import count_unread_texts, join_texts

_BARE = ("text", "content")
_TYPED = ("message", "user_message", "user_input", "user_query")
_ASKED = (
    "messages",
    "chat_history",
    "history",
    "input",
    "question",
    "query",
    "human_input",
    "prompt",
    *_BARE,
    *_TYPED,
)
_ANSWERED = (
    "messages",
    "message",
    "choices",
    "generations",
    "output",
    "answer",
    "response",
    "result",
    *_BARE,
)
_KINDS = ("llm", "chain", "prompt", "parser", "", "agent")
_THREAD = ("session_id", "thread_id", "conversation_id")
_TRACE = {"observations", "traceId", "trace_id", "traces.observations", "traces.input", "trace.id"}
_MORE = {
    "input",
    "output",
    "startTime",
    "start_time",
    "projectId",
    "traces.input",
    "trace.input",
    "traces.id",
}
_MODELS = ("GENERATION", "AGENT", "CHAIN", "SPAN", "")


@dataclass
class _Step:
    """A run of a model or of a whole application: the messages that went in and came out.

    :param key: what it is sorted by within its conversation.
    :param lost: how many of its two values hold no message; ``given`` are those that do.
    """

    scope: str
    session: str
    key: str
    asked: list[Any]
    answered: list[Any]
    begun: Any
    ended: Any
    lost: int
    given: list[Any]


def _make_step(
    scope: str, session: str, order: str, values: tuple[Any, Any], times: tuple[Any, Any]
) -> _Step:
    """Make the step of a run: ``values`` and ``times`` are those of its beginning and its end."""
    begun, ended = map(_assume_utc, times)
    given = [decode_json(value) for value in values]
    asked, answered = (
        _find_messages(given[0], _ASKED, "user"),
        _find_messages(given[1], _ANSWERED, "assistant"),
    )
    lost = sum(
        bool(value) and not found for value, found in zip(given, (asked, answered), strict=True)
    )
    found = zip(given, (asked, answered), strict=True)
    holding = [value for value, messages in found if messages]
    key = f"{_sortable_time(begun)} {order}"
    return _Step(scope, session, key, asked, answered, begun, ended or begun, lost, holding)


def _sortable_time(value: Any) -> str:
    """Give a time in a form that sorts, whatever file it stands in."""
    try:
        return parse_time(value, "time").astimezone(UTC).isoformat()
    except BadField:
        return str(value)


def is_langsmith_export(file: Source) -> bool:
    keys = file.keys or file.columns
    return bool({"run_type", "runs.run_type"} & keys) and bool(
        {"inputs", "outputs", "runs.inputs"} & keys
    )


def read_langsmith_export(source: Source) -> Iterator[Message]:
    """Read the messages that went into models and came out of them, each once."""
    traces: dict[str, list[tuple[bool, _Step]]] = {}
    for _, number, raw in source.member_values():
        listed = [*(get_list(raw, "runs") or [raw])]
        for run in listed:
            listed += get_list(run, "child_runs")
            kind = first_field(run, "run_type")
            if not isinstance(run, dict) or kind not in _KINDS:
                source.drop("tool calls" if kind == "tool" else "runs of other kinds", OWNER_SCOPE)
                continue
            trace = first_field(run, "trace_id", "id") or str(number)
            traces.setdefault(trace, []).append((not run.get("parent_run_id"), _read_run(run)))
    steps: list[_Step] = []
    for trace, runs in traces.items():
        thread = next((step.session for _, step in runs if step.session), f"trace {trace}")
        scope = next((step.scope for _, step in runs if step.scope != OWNER_SCOPE), OWNER_SCOPE)
        roots = [step for root, step in runs if root and step.asked and step.answered]
        if roots:
            source.drop("runs within others", scope, len(runs) - len(roots))
        steps += [
            replace(step, session=thread, scope=scope)
            for step in roots or [step for _, step in runs]
        ]
    yield from _deduplicate_messages(source, steps)


def _read_run(run: dict[str, Any]) -> _Step:
    about = get_nested(decode_json(run.get("extra")), "metadata") or decode_json(
        run.get("metadata")
    )
    scope = first_field(about, "user_id", "user", "ls_user_id") or OWNER_SCOPE
    thread = first_field(about, *_THREAD) or first_field(run, "thread_id")
    values, times = (
        (run.get("inputs"), run.get("outputs")),
        (run.get("start_time"), run.get("end_time")),
    )
    return _make_step(scope, thread, first_field(run, "dotted_order"), values, times)


def _assume_utc(value: Any) -> Any:
    """Give a time of a run, which LangSmith and Langfuse write in UTC where it names no zone."""
    if isinstance(value, str) and not value.strip().isdecimal():
        with suppress(ValueError):
            value = datetime.fromisoformat(value)
    zoneless = isinstance(value, datetime) and value.tzinfo is None
    return value.replace(tzinfo=UTC) if zoneless else first_time(value)


def is_langfuse_export(file: Source) -> bool:
    keys = file.keys or file.columns
    if "run_type" in keys or "mapping" in keys:
        return False
    session = {"sessionId", "input", "output"} <= keys or {
        "session_id",
        "project_id",
        "input",
    } <= keys
    return session or (bool(_TRACE & keys) and bool(_MORE & keys))


def read_langfuse_export(source: Source) -> Iterator[Message]:
    """Read the messages that went into models and came out of them, each once."""
    traces: dict[str, dict[str, Any]] = {}
    runs: dict[str, list[dict[str, Any]]] = {}
    for _, number, raw in source.member_values():
        for each in get_list(raw, "traces") or [raw]:
            if not isinstance(each, dict):
                source.drop("unreadable messages", OWNER_SCOPE)
            elif observed := first_field(each, "traceId", "trace_id"):
                runs.setdefault(observed, []).append(each)
            else:
                about = each["trace"] if isinstance(each.get("trace"), dict) else each
                key = first_field(about, "id") or str(number)
                session = first_field(raw, "id") if each is not raw else None
                traces[key] = {"sessionId": session} | about
                within = list_or_empty(decode_json(each.get("observations")))
                runs.setdefault(key, []).extend(run for run in within if isinstance(run, dict))
    keys = dict.fromkeys((*traces, *runs))
    steps = [
        step
        for key in keys
        for step in _read_trace(source, key, traces.get(key, {}), runs.get(key, []))
    ]
    yield from _deduplicate_messages(source, steps)


def _read_trace(
    source: Source, key: str, trace: dict[str, Any], runs: list[dict[str, Any]]
) -> Iterator[_Step]:
    everything = [trace, *runs]
    session = first_text(
        *(run.get(each) for run in everything for each in ("sessionId", "session_id"))
    )
    scope = (
        first_text(*(run.get(each) for run in everything for each in ("userId", "user_id")))
        or OWNER_SCOPE
    )
    kinds = [first_field(run, "type").upper() for run in runs]
    talk = [run for run, kind in zip(runs, kinds, strict=True) if kind in _MODELS]
    models = [run for run, kind in zip(runs, kinds, strict=True) if kind == "GENERATION"] or talk
    own, *steps = (
        _read_observation(scope, session or f"trace {key}", run) for run in (trace, *models)
    )
    told = any(step.asked or step.answered for step in steps)
    alone = bool(own.asked and own.answered) or (
        not told and bool(own.asked or own.answered or own.lost)
    )
    source.drop("tool calls", scope, kinds.count("TOOL"))
    source.drop(
        "observations of other kinds",
        scope,
        len(runs) - kinds.count("TOOL") - (0 if alone else len(models)),
    )
    yield from [own] if alone else steps


def _read_observation(scope: str, session: str, run: dict[str, Any]) -> _Step:
    begun = run.get("startTime") or run.get("start_time") or run.get("timestamp")
    values, times = (
        (run.get("input"), run.get("output")),
        (begun, run.get("endTime") or run.get("end_time")),
    )
    return _make_step(scope, session, "", values, times)


def _deduplicate_messages(source: Source, steps: list[_Step]) -> Iterator[Message]:
    """Give every message once, session by session: a run takes up what the runs before it ended with."""
    sessions: dict[tuple[str, str], list[_Step]] = {}
    for step in steps:
        sessions.setdefault((step.scope, step.session), []).append(step)
    for (scope, session), runs in sessions.items():
        said: list[Message] = []
        for run in sorted(runs, key=lambda run: run.key):
            source.drop("values of runs without messages", scope, run.lost)
            spoken = join_texts([run.asked, run.answered])
            count_unread_texts(source, scope, run.given, (), spoken, around=True)
            for listed, when in ((run.asked, run.begun), (run.answered, run.ended)):
                heard = list(read_turns(source, scope, listed))
                new = heard[count_overlap(said, heard) :]
                said += [turn | {"timestamp": turn["timestamp"] or when} for turn in new]
        yield from make_session_messages(source, scope, session, said)


def _find_messages(value: Any, keys: tuple[str, ...], role: str) -> list[Any]:
    """Find the messages in what went into a run or came out of it; a bare text is of the role."""
    value = decode_json(value)
    if isinstance(value, str):
        return [{"role": role, "content": value}] if value.strip() else []
    if isinstance(value, list):
        texts = [each for each in value if isinstance(each, str)]
        if len(value) == len(texts) == 2:
            return [value]
        if texts:
            return [{"role": role, "content": "\n".join(texts)}]
        return [found for each in value for found in _find_messages(each, keys, role)]
    if not isinstance(value, dict):
        return []
    if isinstance(args := value.get("args"), list) and isinstance(
        given := value.get("kwargs"), dict
    ):
        return _find_arguments(args, given, keys, role)
    if {"role", "kwargs", "tool_calls"} & value.keys() or (
        value.get("type") and {"content", "data"} & value.keys()
    ):
        return [value]
    inner = get_nested(value, "message") or get_nested(value, "kwargs")
    if isinstance(inner, dict):
        return _find_messages(inner, keys, role)
    found: list[Any] = []
    for key in keys:
        found += _find_messages(value[key], keys, role) if value.get(key) else []
        if found and value.get(key) and not key.endswith("history"):
            break
    return found


def _find_arguments(
    args: list[Any], given: dict[str, Any], keys: tuple[str, ...], role: str
) -> list[Any]:
    """Find the messages in the arguments of a function, as ``@observe`` of Langfuse has them.

    Of texts without a name that says more, one alone is a message, unless messages are there that
    wait for an answer.
    """
    found = [
        message
        for each in args
        if not isinstance(each, str)
        for message in _find_messages(each, keys, role)
    ]
    found += _find_messages(given, keys, role)
    texts = [each for each in (*args, *given.values()) if isinstance(each, str)]
    answered = (
        normalise_role(first_field(found[-1], "role", "type") if found else "assistant")
        == "assistant"
    )
    return found + (_find_messages(texts[0], keys, role) if answered and len(texts) == 1 else [])
