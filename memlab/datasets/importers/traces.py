"""Traces of LangSmith and Langfuse: conversations out of runs that each repeat what was said
before them.

Layouts: LangSmith's page on the run data format, as its API and bulk export give it; Langfuse's
pages on exports. A trace that holds what was asked and answered itself is read by that, another by
the runs of its models; traces of one thread (LangSmith) or session (Langfuse) are a session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import Any

from memlab.datasets.fields import BadField, parse_time
from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    make_session_messages,
    normalise_role,
    read_turns,
)
from memlab.datasets.importers.logged_calls import count_overlap, says_who
from memlab.datasets.importers.loose_json import (
    decode_json,
    first_field,
    first_filled,
    first_text,
    first_time,
    get_list,
    get_nested,
    get_objects,
)
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import count_unread_texts, join_texts

_BARE = ("text", "content")
_TYPED = ("message", "user_message", "user_input", "user_query")
_ASKED = (
    *("messages", "chat_history", "history", "input"),
    *("question", "query", "human_input", "prompt", *_BARE, *_TYPED),
)
_ANSWERED = (
    *("messages", "message", "choices", "generations"),
    *("output", "answer", "response", "result", *_BARE),
)
"""Keys of what went into a run and of what came out of it, in the order in which they are looked
at.
"""
_KINDS = ("llm", "chain", "prompt", "parser", "", "agent")
_THREAD = ("session_id", "thread_id", "conversation_id")
_TRACE = {"observations", "traceId", "trace_id", "traces.observations", "traces.input", "trace.id"}
_MORE = {"input", "output", "startTime", "start_time", "projectId"}
_MORE |= {"traces.input", "trace.input", "traces.id"}
_MORE |= {"observations.input", "observations.startTime"}
_CALLS = {"messages", "response"}
"""Keys of a call that another tool logs with the id of its trace, as LiteLLM does."""
_MODELS = ("GENERATION", "AGENT", "CHAIN", "SPAN", "")


@dataclass
class Step:
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

    @property
    def says_both(self) -> bool:
        """Whether somebody asked and was answered."""
        return len(self.given) == 2


def make_step(
    scope: str, session: str, order: str, values: tuple[Any, Any], times: tuple[Any, Any]
) -> Step:
    """Make the step of a run: ``values`` and ``times`` are those of its beginning and its end."""
    begun, ended = map(_assume_utc, times)
    put_in, came_out = map(decode_json, values)
    asked = _find_messages(put_in, _ASKED, "user")
    answered = _find_messages(came_out, _ANSWERED, "assistant")
    lost = 0
    given = list[Any]()
    for value, messages in ((put_in, asked), (came_out, answered)):
        if messages:
            given.append(value)
        elif join_texts(value).strip():
            lost += 1
    if not ended:
        ended = begun
    key = f"{_sortable_time(begun)} {order}"
    return Step(scope, session, key, asked, answered, begun, ended, lost, given)


def _sortable_time(value: Any) -> str:
    """Give a time in a form that sorts, whatever file it stands in."""
    try:
        return parse_time(value, "time").astimezone(UTC).isoformat()
    except BadField:
        return str(value)


def is_langsmith_export(file: Source) -> bool:
    keys = file.keys or file.columns
    if keys.isdisjoint({"run_type", "runs.run_type"}):
        return False
    return not keys.isdisjoint({"inputs", "outputs", "runs.inputs"})


def read_langsmith_export(source: Source) -> Iterator[Message]:
    """Read the messages that went into models and came out of them, each once."""
    traces: dict[str, list[tuple[bool, Step]]] = {}
    for _, number, record in source.member_values():
        for run in _list_runs(record):
            kind = first_field(run, "run_type")
            if kind == "tool":
                source.drop("tool calls", OWNER_SCOPE)
            elif not isinstance(run, dict) or kind not in _KINDS:
                source.drop("runs of other kinds", OWNER_SCOPE)
            else:
                trace = first_text(first_field(run, "trace_id", "id"), number)
                is_root = not run.get("parent_run_id")
                traces.setdefault(trace, []).append((is_root, _read_run(run)))
    steps: list[Step] = []
    for trace, runs in traces.items():
        steps += _choose_steps(source, trace, runs)
    yield from deduplicate_messages(source, steps)


def _list_runs(raw: Any) -> Iterator[Any]:
    """Give the runs of a record, then those within them."""
    waiting = get_list(raw, "runs") or [raw]
    while waiting:
        within = list[Any]()
        for run in waiting:
            yield run
            within += get_list(run, "child_runs")
        waiting = within


def _choose_steps(source: Source, trace: str, runs: list[tuple[bool, Step]]) -> Iterator[Step]:
    """Give the steps of a trace: its roots where they say what was asked and answered, else all."""
    steps = [step for _, step in runs]
    thread = first_text(*(step.session for step in steps), f"trace {trace}")
    scope = next((step.scope for step in steps if step.scope != OWNER_SCOPE), OWNER_SCOPE)
    root_steps = [step for is_root, step in runs if is_root and step.says_both]
    if root_steps:
        source.drop("runs within others", scope, len(steps) - len(root_steps))
    for step in root_steps or steps:
        yield replace(step, session=thread, scope=scope)


def _read_run(run: dict[str, Any]) -> Step:
    about = get_nested(decode_json(run.get("extra")), "metadata")
    if not about:
        about = decode_json(run.get("metadata"))
    scope = first_text(first_field(about, "user_id", "user", "ls_user_id"), OWNER_SCOPE)
    thread = first_text(first_field(about, *_THREAD), run.get("thread_id"))
    values = run.get("inputs"), run.get("outputs")
    times = run.get("start_time"), run.get("end_time")
    return make_step(scope, thread, first_field(run, "dotted_order"), values, times)


def _assume_utc(value: Any) -> Any:
    """Give a time of a run, which LangSmith and Langfuse write in UTC where it names no zone."""
    if isinstance(value, str) and not value.strip().isdecimal():
        with suppress(ValueError):
            value = datetime.fromisoformat(value)
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return first_time(value)


def is_langfuse_export(file: Source) -> bool:
    keys = file.keys or file.columns
    if "run_type" in keys or "mapping" in keys:
        return False
    if file.first_keys >= _CALLS:
        return False
    if {"sessionId", "input", "output"} <= keys or {"session_id", "project_id", "input"} <= keys:
        return True
    return not keys.isdisjoint(_TRACE) and not keys.isdisjoint(_MORE)


def read_langfuse_export(source: Source) -> Iterator[Message]:
    """Read the messages that went into models and came out of them, each once."""
    traces: dict[str, dict[str, Any]] = {}
    runs: dict[str, list[dict[str, Any]]] = {}
    for _, number, around in source.member_values():
        for record in get_list(around, "traces") or [around]:
            if not isinstance(record, dict):
                source.drop("unreadable messages", OWNER_SCOPE)
                continue
            observed = first_field(record, "traceId", "trace_id")
            if observed:
                runs.setdefault(observed, []).append(record)
                continue
            about = record
            if isinstance(record.get("trace"), dict):
                about = record["trace"]
            key = first_text(about.get("id"), number)
            session = None
            if record is not around:
                session = first_field(around, "id")
            traces[key] = {"sessionId": session} | about
            within = get_objects({"runs": decode_json(record.get("observations"))}, "runs")
            runs.setdefault(key, []).extend(within)
    steps = list[Step]()
    for key in dict.fromkeys((*traces, *runs)):
        steps += _read_trace(source, key, traces.get(key, {}), runs.get(key, []))
    yield from deduplicate_messages(source, steps)


def _read_trace(
    source: Source, key: str, trace: dict[str, Any], runs: list[dict[str, Any]]
) -> list[Step]:
    """Give the steps of a trace: itself where it says what was asked and answered, else its
    runs.
    """
    about = (trace, *runs)
    sessions = [first_field(each, "sessionId", "session_id") for each in about]
    users = [first_field(each, "userId", "user_id") for each in about]
    session = first_text(*sessions, f"trace {key}")
    scope = first_text(*users, OWNER_SCOPE)
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        by_kind.setdefault(first_field(run, "type").upper(), []).append(run)
    models = by_kind.get("GENERATION")
    if models is None:
        models = [run for run in runs if first_field(run, "type").upper() in _MODELS]
    itself = _read_observation(scope, session, trace)
    steps = list(map(partial(_read_observation, scope, session), models))
    tools = len(by_kind.get("TOOL", ()))
    source.drop("tool calls", scope, tools)
    others = len(runs) - tools
    if _says_all(itself, steps):
        steps = [itself]
    else:
        others -= len(models)
    source.drop("observations of other kinds", scope, others)
    return steps


def _says_all(own: Step, steps: list[Step]) -> bool:
    """Say whether a trace is read by itself: its runs hold nothing, or it was asked and
    answered.
    """
    if own.says_both:
        return True
    if any(step.given for step in steps):
        return False
    return bool(own.given) or own.lost > 0


def _read_observation(scope: str, session: str, run: dict[str, Any]) -> Step:
    values = run.get("input"), run.get("output")
    begun = first_filled(run, "startTime", "start_time", "timestamp")
    times = begun, first_filled(run, "endTime", "end_time")
    return make_step(scope, session, "", values, times)


def deduplicate_messages(source: Source, steps: list[Step]) -> Iterator[Message]:
    """Give every message once, session by session: a run takes up what the runs before it
    ended with.
    """
    sessions: dict[tuple[str, str], list[Step]] = {}
    for step in steps:
        sessions.setdefault((step.scope, step.session), []).append(step)
    for (scope, session), runs in sessions.items():
        messages: list[Message] = []
        for run in sorted(runs, key=attrgetter("key")):
            source.drop("values of runs without messages", scope, run.lost)
            spoken = join_texts([run.asked, run.answered])
            count_unread_texts(source, scope, run.given, (), spoken, around=True)
            for listed, moment in ((run.asked, run.begun), (run.answered, run.ended)):
                heard = list(read_turns(source, scope, listed))
                unheard = heard[count_overlap(messages, heard) :]
                if not unheard:
                    # A run that goes on from nothing new was asked, or answered, once more.
                    source.drop("repeated messages", scope, len(heard))
                for turn in unheard:
                    turn["timestamp"] = turn["timestamp"] or moment
                messages += unheard
        yield from make_session_messages(source, scope, session, messages)


def _find_messages(value: Any, keys: tuple[str, ...], role: str) -> list[Any]:
    """Find the messages in what went into a run or came out of it; a bare text is of the role."""
    value = decode_json(value)
    if isinstance(value, str):
        if not value.strip():
            return []
        return [{"role": role, "content": value}]
    if isinstance(value, list):
        return _find_listed(value, keys, role)
    if not isinstance(value, dict):
        return []
    arguments, named = value.get("args"), value.get("kwargs")
    if isinstance(arguments, list) and isinstance(named, dict):
        return _find_arguments(arguments, named, keys, role)
    if _is_message(value):
        if "tool_calls" in value and not says_who(value):
            return [{"role": role} | value]
        return [value]
    wrapped = first_filled(value, "message", "kwargs")
    if isinstance(wrapped, dict):
        return _find_messages(wrapped, keys, role)
    found: list[Any] = []
    for key in keys:
        if not value.get(key):
            continue
        found += _find_messages(value[key], keys, role)
        if found and not key.endswith("history"):
            break
    return found


def _is_message(value: dict[str, Any]) -> bool:
    """Say whether an object is a message itself, and not around one."""
    if not value.keys().isdisjoint(("role", "kwargs", "tool_calls")):
        return True
    if not value.get("type"):
        return False
    return "content" in value or "data" in value


def _find_listed(value: list[Any], keys: tuple[str, ...], role: str) -> list[Any]:
    """Find the messages in a list: of a role and a text, of the parts of one text, or of
    anything.
    """
    texts = _list_texts(value)
    if len(value) == len(texts) == 2:
        return [value]
    if texts:
        return [{"role": role, "content": "\n".join(texts)}]
    found = list[Any]()
    for each in value:
        found += _find_messages(each, keys, role)
    return found


def _find_arguments(
    arguments: list[Any], named: dict[str, Any], keys: tuple[str, ...], role: str
) -> list[Any]:
    """Find the messages in the arguments of a function, as ``@observe`` of Langfuse has them.

    Of texts without a name that says more, one alone is a message, unless messages are there that
    wait for an answer.
    """
    found = list[Any]()
    for each in arguments:
        if not isinstance(each, str):
            found += _find_messages(each, keys, role)
    found += _find_messages(named, keys, role)
    texts = _list_texts((*arguments, *named.values()))
    last = "assistant"
    if found:
        last = first_field(found[-1], "role", "type")
    if len(texts) == 1 and normalise_role(last) == "assistant":
        found += _find_messages(texts[0], keys, role)
    return found


def _list_texts(values: Iterable[Any]) -> list[str]:
    return [each for each in values if isinstance(each, str)]
