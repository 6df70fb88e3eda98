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

from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    make_session_messages,
    normalise_role,
    read_turns,
)
from memlab.datasets.importers.logged_model_calls import count_overlap, says_who
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
from memlab.datasets.record_fields import BadField, parse_time
from memlab.datasets.record_sources import Source
from memlab.datasets.unread_texts import count_unread_texts, join_all_texts_within

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
    begun_at, ended_at = map(_assume_utc, times)
    input_value, output_value = map(decode_json, values)
    asked_messages = _find_messages(input_value, _ASKED, "user")
    answer_messages = _find_messages(output_value, _ANSWERED, "assistant")
    n_lost = 0
    given_values = list[Any]()
    for value, messages in ((input_value, asked_messages), (output_value, answer_messages)):
        if messages:
            given_values.append(value)
        elif join_all_texts_within(value).strip():
            n_lost += 1
    if not ended_at:
        ended_at = begun_at
    sorting_key = f"{_sortable_time(begun_at)} {order}"
    return Step(
        scope,
        session,
        sorting_key,
        asked_messages,
        answer_messages,
        begun_at,
        ended_at,
        n_lost,
        given_values,
    )


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
    runs_by_trace: dict[str, list[tuple[bool, Step]]] = {}
    for _, number, record in source.member_values():
        for run in _list_runs(record):
            run_type = first_field(run, "run_type")
            if run_type == "tool":
                source.drop("tool calls", OWNER_SCOPE)
            elif not isinstance(run, dict) or run_type not in _KINDS:
                source.drop("runs of other kinds", OWNER_SCOPE)
            else:
                trace_id = first_text(first_field(run, "trace_id", "id"), number)
                is_root = not run.get("parent_run_id")
                runs_by_trace.setdefault(trace_id, []).append((is_root, _read_run(run)))
    trace_steps: list[Step] = []
    for trace_id, runs in runs_by_trace.items():
        trace_steps += _choose_steps(source, trace_id, runs)
    yield from deduplicate_messages(source, trace_steps)


def _list_runs(raw: Any) -> Iterator[Any]:
    """Give the runs of a record, then those within them."""
    waiting_runs = get_list(raw, "runs") or [raw]
    while waiting_runs:
        inner_runs = list[Any]()
        for run in waiting_runs:
            yield run
            inner_runs += get_list(run, "child_runs")
        waiting_runs = inner_runs


def _choose_steps(source: Source, trace: str, runs: list[tuple[bool, Step]]) -> Iterator[Step]:
    """Give the steps of a trace: its roots where they say what was asked and answered, else all."""
    steps = [step for _, step in runs]
    thread_name = first_text(*(step.session for step in steps), f"trace {trace}")
    user_scope = next((step.scope for step in steps if step.scope != OWNER_SCOPE), OWNER_SCOPE)
    root_steps = [step for is_root, step in runs if is_root and step.says_both]
    if root_steps:
        source.drop("runs within others", user_scope, len(steps) - len(root_steps))
    for step in root_steps or steps:
        yield replace(step, session=thread_name, scope=user_scope)


def _read_run(run: dict[str, Any]) -> Step:
    run_metadata = get_nested(decode_json(run.get("extra")), "metadata")
    if not run_metadata:
        run_metadata = decode_json(run.get("metadata"))
    scope = first_text(first_field(run_metadata, "user_id", "user", "ls_user_id"), OWNER_SCOPE)
    thread_id = first_text(first_field(run_metadata, *_THREAD), run.get("thread_id"))
    input_and_output = run.get("inputs"), run.get("outputs")
    begun_and_ended = run.get("start_time"), run.get("end_time")
    return make_step(
        scope, thread_id, first_field(run, "dotted_order"), input_and_output, begun_and_ended
    )


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
    traces_by_id: dict[str, dict[str, Any]] = {}
    runs_by_trace: dict[str, list[dict[str, Any]]] = {}
    for _, number, outer_record in source.member_values():
        for record in get_list(outer_record, "traces") or [outer_record]:
            if not isinstance(record, dict):
                source.drop("unreadable messages", OWNER_SCOPE)
                continue
            observed_trace = first_field(record, "traceId", "trace_id")
            if observed_trace:
                runs_by_trace.setdefault(observed_trace, []).append(record)
                continue
            trace_fields = record
            if isinstance(record.get("trace"), dict):
                trace_fields = record["trace"]
            trace_id = first_text(trace_fields.get("id"), number)
            session = None
            if record is not outer_record:
                session = first_field(outer_record, "id")
            traces_by_id[trace_id] = {"sessionId": session} | trace_fields
            inner_runs = get_objects({"runs": decode_json(record.get("observations"))}, "runs")
            runs_by_trace.setdefault(trace_id, []).extend(inner_runs)
    trace_steps = list[Step]()
    for trace_id in dict.fromkeys((*traces_by_id, *runs_by_trace)):
        trace_steps += _read_trace(
            source, trace_id, traces_by_id.get(trace_id, {}), runs_by_trace.get(trace_id, [])
        )
    yield from deduplicate_messages(source, trace_steps)


def _read_trace(
    source: Source, key: str, trace: dict[str, Any], runs: list[dict[str, Any]]
) -> list[Step]:
    """Give the steps of a trace: itself where it says what was asked and answered, else its
    runs.
    """
    trace_and_runs = (trace, *runs)
    session_ids = [
        first_field(described_run, "sessionId", "session_id") for described_run in trace_and_runs
    ]
    user_ids = [first_field(described_run, "userId", "user_id") for described_run in trace_and_runs]
    session = first_text(*session_ids, f"trace {key}")
    scope = first_text(*user_ids, OWNER_SCOPE)
    runs_by_kind: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        runs_by_kind.setdefault(first_field(run, "type").upper(), []).append(run)
    model_runs = runs_by_kind.get("GENERATION")
    if model_runs is None:
        model_runs = [run for run in runs if first_field(run, "type").upper() in _MODELS]
    trace_step = _read_observation(scope, session, trace)
    run_steps = list(map(partial(_read_observation, scope, session), model_runs))
    n_tools = len(runs_by_kind.get("TOOL", ()))
    source.drop("tool calls", scope, n_tools)
    n_others = len(runs) - n_tools
    if _says_all(trace_step, run_steps):
        run_steps = [trace_step]
    else:
        n_others -= len(model_runs)
    source.drop("observations of other kinds", scope, n_others)
    return run_steps


def _says_all(trace_step: Step, steps: list[Step]) -> bool:
    """Say whether a trace is read by itself: its runs hold nothing, or it was asked and
    answered.
    """
    if trace_step.says_both:
        return True
    if any(step.given for step in steps):
        return False
    return bool(trace_step.given) or trace_step.lost > 0


def _read_observation(scope: str, session: str, run: dict[str, Any]) -> Step:
    input_and_output = run.get("input"), run.get("output")
    begun_at = first_filled(run, "startTime", "start_time", "timestamp")
    begun_and_ended = begun_at, first_filled(run, "endTime", "end_time")
    return make_step(scope, session, "", input_and_output, begun_and_ended)


def deduplicate_messages(source: Source, steps: list[Step]) -> Iterator[Message]:
    """Give every message once, session by session: a run takes up what the runs before it
    ended with.
    """
    sessions: dict[tuple[str, str], list[Step]] = {}
    for step in steps:
        sessions.setdefault((step.scope, step.session), []).append(step)
    for (scope, session), session_steps in sessions.items():
        messages: list[Message] = []
        for session_step in sorted(session_steps, key=attrgetter("key")):
            source.drop("values of runs without messages", scope, session_step.lost)
            joined_texts = join_all_texts_within([session_step.asked, session_step.answered])
            count_unread_texts(
                source, scope, session_step.given, (), joined_texts, is_around_messages=True
            )
            for said_messages, moment in (
                (session_step.asked, session_step.begun),
                (session_step.answered, session_step.ended),
            ):
                read_messages = list(read_turns(source, scope, said_messages))
                new_messages = read_messages[count_overlap(messages, read_messages) :]
                if not new_messages:
                    # A run that goes on from nothing new was asked, or answered, once more.
                    source.drop("repeated messages", scope, len(read_messages))
                for turn in new_messages:
                    turn["timestamp"] = turn["timestamp"] or moment
                messages += new_messages
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
    arguments = value.get("args")
    named_arguments = value.get("kwargs")
    if isinstance(arguments, list) and isinstance(named_arguments, dict):
        return _find_arguments(arguments, named_arguments, keys, role)
    if _is_message(value):
        if "tool_calls" in value and not says_who(value):
            return [{"role": role} | value]
        return [value]
    wrapped_message = first_filled(value, "message", "kwargs")
    if isinstance(wrapped_message, dict):
        return _find_messages(wrapped_message, keys, role)
    found_messages: list[Any] = []
    for message_key in keys:
        if not value.get(message_key):
            continue
        found_messages += _find_messages(value[message_key], keys, role)
        if found_messages and not message_key.endswith("history"):
            break
    return found_messages


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
    list_texts = _list_texts(value)
    if len(value) == len(list_texts) == 2:
        return [value]
    if list_texts:
        return [{"role": role, "content": "\n".join(list_texts)}]
    found_messages = list[Any]()
    for list_value in value:
        found_messages += _find_messages(list_value, keys, role)
    return found_messages


def _find_arguments(
    arguments: list[Any], named_arguments: dict[str, Any], keys: tuple[str, ...], role: str
) -> list[Any]:
    """Find the messages in the arguments of a function, as ``@observe`` of Langfuse has them.

    Of texts without a name that says more, one alone is a message, unless messages are there that
    wait for an answer.
    """
    found_messages = list[Any]()
    for argument in arguments:
        if not isinstance(argument, str):
            found_messages += _find_messages(argument, keys, role)
    found_messages += _find_messages(named_arguments, keys, role)
    argument_texts = _list_texts((*arguments, *named_arguments.values()))
    last_role = "assistant"
    if found_messages:
        last_role = first_field(found_messages[-1], "role", "type")
    if len(argument_texts) == 1 and normalise_role(last_role) == "assistant":
        found_messages += _find_messages(argument_texts[0], keys, role)
    return found_messages


def _list_texts(values: Iterable[Any]) -> list[str]:
    return [list_value for list_value in values if isinstance(list_value, str)]
