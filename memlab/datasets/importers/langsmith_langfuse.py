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
from typing import Any, NamedTuple

from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    make_session_messages_and_count_drops,
    normalise_role,
    read_message_fields_and_count_drops,
)
from memlab.datasets.importers.logged_model_calls import (
    count_overlapping_messages,
    names_its_speaker,
)
from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    RawTime,
    decode_if_json_text,
    first_field_text,
    first_filled_field,
    first_non_empty_text,
    first_possible_time,
    get_nested,
    get_nested_list,
    get_nested_objects,
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
class TraceStep:
    """A run of a model or of a whole application: the messages that went in and came out.

    :param key: what it is sorted by within its conversation.
    :param lost: how many of its two values hold no message; ``given`` are those that do.
    """

    scope: str
    session: str
    key: str
    asked: list[JsonValue]
    answered: list[JsonValue]
    begun: JsonValue
    ended: JsonValue
    lost: int
    given: list[JsonValue]

    @property
    def has_request_and_answer(self) -> bool:
        """Whether somebody asked and was answered."""
        return len(self.given) == 2


class _LangsmithRun(NamedTuple):
    """The step of a run, and whether the run stands within no other."""

    is_root: bool
    step: TraceStep


def make_trace_step(
    scope: str,
    session: str,
    sort_suffix: str,
    input_and_output: tuple[JsonValue, JsonValue],
    begin_and_end: tuple[JsonValue, JsonValue],
) -> TraceStep:
    """Make the step of a run.

    :param sort_suffix: what sorts the steps that begin at one time.
    """
    begun_at, ended_at = map(_with_utc_if_without_zone, begin_and_end)
    input_value, output_value = map(decode_if_json_text, input_and_output)
    asked_messages = _find_messages_in_value(input_value, _ASKED, "user")
    answer_messages = _find_messages_in_value(output_value, _ANSWERED, "assistant")
    n_lost = 0
    given_values = list[Any]()
    for value, messages in ((input_value, asked_messages), (output_value, answer_messages)):
        if messages:
            given_values.append(value)
        elif join_all_texts_within(value).strip():
            n_lost += 1
    if not ended_at:
        ended_at = begun_at
    sorting_key = f"{_utc_iso_time_for_sorting(begun_at)} {sort_suffix}"
    return TraceStep(
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


def _utc_iso_time_for_sorting(raw_time: JsonValue) -> str:
    """Give a time in a form that sorts, whatever file it stands in."""
    try:
        return parse_time(raw_time, "time").astimezone(UTC).isoformat()
    except BadField:
        return str(raw_time)


def is_langsmith_export(file: Source) -> bool:
    keys = file.keys or file.columns
    if keys.isdisjoint({"run_type", "runs.run_type"}):
        return False
    return not keys.isdisjoint({"inputs", "outputs", "runs.inputs"})


def read_langsmith_export(source: Source) -> Iterator[Message]:
    """Read the messages that went into models and came out of them, each once."""
    runs_by_trace: dict[str, list[_LangsmithRun]] = {}
    for _, number, record in source.stream_numbered_member_values():
        for run in _list_runs_outer_first(record):
            run_type = first_field_text(run, "run_type")
            if run_type == "tool":
                source.drop("tool calls", OWNER_SCOPE)
            elif not isinstance(run, dict) or run_type not in _KINDS:
                source.drop("runs of other kinds", OWNER_SCOPE)
            else:
                trace_id = first_non_empty_text(first_field_text(run, "trace_id", "id"), number)
                is_root = not run.get("parent_run_id")
                runs_by_trace.setdefault(trace_id, []).append(
                    _LangsmithRun(is_root, _read_langsmith_run(run))
                )
    trace_steps: list[TraceStep] = []
    for trace_id, runs in runs_by_trace.items():
        trace_steps += _choose_trace_steps_and_count_others(source, trace_id, runs)
    yield from read_new_step_messages_and_count_rest(source, trace_steps)


def _list_runs_outer_first(raw_record: JsonValue) -> Iterator[JsonValue]:
    """Give the runs of a record, then those within them."""
    waiting_runs = get_nested_list(raw_record, "runs") or [raw_record]
    while waiting_runs:
        inner_runs = list[Any]()
        for raw_run in waiting_runs:
            yield raw_run
            inner_runs += get_nested_list(raw_run, "child_runs")
        waiting_runs = inner_runs


def _choose_trace_steps_and_count_others(
    source: Source, trace_id: str, runs: list[_LangsmithRun]
) -> Iterator[TraceStep]:
    """Give the steps of a trace: its roots where they say what was asked and answered, else all."""
    steps = [step for _, step in runs]
    thread_name = first_non_empty_text(*(step.session for step in steps), f"trace {trace_id}")
    user_scope = next((step.scope for step in steps if step.scope != OWNER_SCOPE), OWNER_SCOPE)
    root_steps = [step for is_root, step in runs if is_root and step.has_request_and_answer]
    if root_steps:
        source.drop("runs within others", user_scope, len(steps) - len(root_steps))
    for step in root_steps or steps:
        yield replace(step, session=thread_name, scope=user_scope)


def _read_langsmith_run(raw_run: JsonObject) -> TraceStep:
    run_metadata = get_nested(decode_if_json_text(raw_run.get("extra")), "metadata")
    if not run_metadata:
        run_metadata = decode_if_json_text(raw_run.get("metadata"))
    scope = first_non_empty_text(
        first_field_text(run_metadata, "user_id", "user", "ls_user_id"), OWNER_SCOPE
    )
    thread_id = first_non_empty_text(
        first_field_text(run_metadata, *_THREAD), raw_run.get("thread_id")
    )
    input_and_output = raw_run.get("inputs"), raw_run.get("outputs")
    begun_and_ended = raw_run.get("start_time"), raw_run.get("end_time")
    return make_trace_step(
        scope,
        thread_id,
        first_field_text(raw_run, "dotted_order"),
        input_and_output,
        begun_and_ended,
    )


def _with_utc_if_without_zone(raw_time: JsonValue) -> RawTime | None:
    """Give a time of a run, which LangSmith and Langfuse write in UTC where it names no zone."""
    if isinstance(raw_time, str) and not raw_time.strip().isdecimal():
        with suppress(ValueError):
            raw_time = datetime.fromisoformat(raw_time)
    if isinstance(raw_time, datetime) and raw_time.tzinfo is None:
        return raw_time.replace(tzinfo=UTC)
    return first_possible_time(raw_time)


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
    for _, number, outer_record in source.stream_numbered_member_values():
        for record in get_nested_list(outer_record, "traces") or [outer_record]:
            if not isinstance(record, dict):
                source.drop("unreadable messages", OWNER_SCOPE)
                continue
            observed_trace = first_field_text(record, "traceId", "trace_id")
            if observed_trace:
                runs_by_trace.setdefault(observed_trace, []).append(record)
                continue
            trace_fields = record
            if isinstance(record.get("trace"), dict):
                trace_fields = record["trace"]
            trace_id = first_non_empty_text(trace_fields.get("id"), number)
            session = None
            if record is not outer_record:
                session = first_field_text(outer_record, "id")
            traces_by_id[trace_id] = {"sessionId": session} | trace_fields
            inner_runs = get_nested_objects(
                {"runs": decode_if_json_text(record.get("observations"))}, "runs"
            )
            runs_by_trace.setdefault(trace_id, []).extend(inner_runs)
    trace_steps = list[TraceStep]()
    for trace_id in dict.fromkeys((*traces_by_id, *runs_by_trace)):
        trace_steps += _read_langfuse_trace_and_count_others(
            source, trace_id, traces_by_id.get(trace_id, {}), runs_by_trace.get(trace_id, [])
        )
    yield from read_new_step_messages_and_count_rest(source, trace_steps)


def _read_langfuse_trace_and_count_others(
    source: Source, trace_id: str, raw_trace: JsonObject, raw_runs: list[JsonObject]
) -> list[TraceStep]:
    """Give the steps of a trace: itself where it says what was asked and answered, else its
    runs.
    """
    trace_and_runs = (raw_trace, *raw_runs)
    session_ids = [
        first_field_text(described_run, "sessionId", "session_id")
        for described_run in trace_and_runs
    ]
    user_ids = [
        first_field_text(described_run, "userId", "user_id") for described_run in trace_and_runs
    ]
    session = first_non_empty_text(*session_ids, f"trace {trace_id}")
    scope = first_non_empty_text(*user_ids, OWNER_SCOPE)
    runs_by_kind: dict[str, list[dict[str, Any]]] = {}
    for raw_run in raw_runs:
        runs_by_kind.setdefault(first_field_text(raw_run, "type").upper(), []).append(raw_run)
    model_runs = runs_by_kind.get("GENERATION")
    if model_runs is None:
        model_runs = [
            raw_run for raw_run in raw_runs if first_field_text(raw_run, "type").upper() in _MODELS
        ]
    trace_step = _read_langfuse_trace_or_observation(scope, session, raw_trace)
    run_steps = list(map(partial(_read_langfuse_trace_or_observation, scope, session), model_runs))
    n_tools = len(runs_by_kind.get("TOOL", ()))
    source.drop("tool calls", scope, n_tools)
    n_others = len(raw_runs) - n_tools
    if _is_trace_enough_without_runs(trace_step, run_steps):
        run_steps = [trace_step]
    else:
        n_others -= len(model_runs)
    source.drop("observations of other kinds", scope, n_others)
    return run_steps


def _is_trace_enough_without_runs(trace_step: TraceStep, run_steps: list[TraceStep]) -> bool:
    """Say whether a trace is read by itself: its runs hold nothing, or it was asked and
    answered.
    """
    if trace_step.has_request_and_answer:
        return True
    if any(step.given for step in run_steps):
        return False
    return bool(trace_step.given) or trace_step.lost > 0


def _read_langfuse_trace_or_observation(
    scope: str, session: str, raw_observation: JsonObject
) -> TraceStep:
    input_and_output = raw_observation.get("input"), raw_observation.get("output")
    begun_at = first_filled_field(raw_observation, "startTime", "start_time", "timestamp")
    begun_and_ended = begun_at, first_filled_field(raw_observation, "endTime", "end_time")
    return make_trace_step(scope, session, "", input_and_output, begun_and_ended)


def read_new_step_messages_and_count_rest(
    source: Source, steps: list[TraceStep]
) -> Iterator[Message]:
    """Give every message once, session by session: a run takes up what the runs before it
    ended with.
    """
    sessions: dict[tuple[str, str], list[TraceStep]] = {}
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
                read_messages = list(
                    read_message_fields_and_count_drops(source, scope, said_messages)
                )
                new_messages = read_messages[count_overlapping_messages(messages, read_messages) :]
                if not new_messages:
                    # A run that goes on from nothing new was asked, or answered, once more.
                    source.drop("repeated messages", scope, len(read_messages))
                for turn in new_messages:
                    turn["timestamp"] = turn["timestamp"] or moment
                messages += new_messages
        yield from make_session_messages_and_count_drops(source, scope, session, messages)


def _find_messages_in_value(
    run_value: JsonValue, message_keys: tuple[str, ...], role_of_text: str
) -> list[JsonValue]:
    """Find the messages in what went into a run or came out of it; a bare text is of the role."""
    run_value = decode_if_json_text(run_value)
    if isinstance(run_value, str):
        if not run_value.strip():
            return []
        return [{"role": role_of_text, "content": run_value}]
    if isinstance(run_value, list):
        return _find_messages_in_list(run_value, message_keys, role_of_text)
    if not isinstance(run_value, dict):
        return []
    arguments = run_value.get("args")
    named_arguments = run_value.get("kwargs")
    if isinstance(arguments, list) and isinstance(named_arguments, dict):
        return _find_messages_in_arguments(arguments, named_arguments, message_keys, role_of_text)
    if _is_message_object(run_value):
        if "tool_calls" in run_value and not names_its_speaker(run_value):
            return [{"role": role_of_text} | run_value]
        return [run_value]
    wrapped_message = first_filled_field(run_value, "message", "kwargs")
    if isinstance(wrapped_message, dict):
        return _find_messages_in_value(wrapped_message, message_keys, role_of_text)
    found_messages: list[Any] = []
    for message_key in message_keys:
        if not run_value.get(message_key):
            continue
        found_messages += _find_messages_in_value(
            run_value[message_key], message_keys, role_of_text
        )
        if found_messages and not message_key.endswith("history"):
            break
    return found_messages


def _is_message_object(json_object: JsonObject) -> bool:
    """Say whether an object is a message itself, and not around one."""
    if not json_object.keys().isdisjoint(("role", "kwargs", "tool_calls")):
        return True
    if not json_object.get("type"):
        return False
    return "content" in json_object or "data" in json_object


def _find_messages_in_list(
    run_values: list[JsonValue], message_keys: tuple[str, ...], role_of_text: str
) -> list[JsonValue]:
    """Find the messages in a list: of a role and a text, of the parts of one text, or of
    anything.
    """
    list_texts = _keep_strings(run_values)
    if len(run_values) == len(list_texts) == 2:
        return [run_values]
    if list_texts:
        return [{"role": role_of_text, "content": "\n".join(list_texts)}]
    found_messages = list[Any]()
    for list_value in run_values:
        found_messages += _find_messages_in_value(list_value, message_keys, role_of_text)
    return found_messages


def _find_messages_in_arguments(
    arguments: list[JsonValue],
    named_arguments: JsonObject,
    message_keys: tuple[str, ...],
    role_of_text: str,
) -> list[JsonValue]:
    """Find the messages in the arguments of a function, as ``@observe`` of Langfuse has them.

    Of texts without a name that says more, one alone is a message, unless messages are there that
    wait for an answer.
    """
    found_messages = list[Any]()
    for argument in arguments:
        if not isinstance(argument, str):
            found_messages += _find_messages_in_value(argument, message_keys, role_of_text)
    found_messages += _find_messages_in_value(named_arguments, message_keys, role_of_text)
    argument_texts = _keep_strings((*arguments, *named_arguments.values()))
    last_role = "assistant"
    if found_messages:
        last_role = first_field_text(found_messages[-1], "role", "type")
    if len(argument_texts) == 1 and normalise_role(last_role) == "assistant":
        found_messages += _find_messages_in_value(argument_texts[0], message_keys, role_of_text)
    return found_messages


def _keep_strings(values: Iterable[JsonValue]) -> list[str]:
    return [list_value for list_value in values if isinstance(list_value, str)]
