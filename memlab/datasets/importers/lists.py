"""Lists of messages: of the OpenAI API, ShareGPT and its kin, mem0's dumps, and tables of chat-log records.

Layouts: axolotl's page on conversation data sets; mem0's history of memories, or what was given to
``add``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby, pairwise
from pathlib import PurePosixPath
from typing import Any

from memlab.datasets import fields
from memlab.datasets.fields import BadField, Record
from memlab.datasets.importers import common
from memlab.datasets.importers.common import OWNER_SCOPE, Message, first_field, get_list, get_nested
from memlab.datasets.reading import Source
from memlab.datasets.streams import key_paths

_LISTS = ("conversations", "conversation", "items")
_PAIR = {
    "user": ("human", "user", "input", "instruction", "prompt"),
    "assistant": ("gpt", "assistant", "output", "response", "bot"),
}
_TURN = ("from", "value", "role", *_PAIR["user"], *_PAIR["assistant"])
_PAIRS = [{"object", "output.role"}, {"messages.role", "messages.content"}, {"role", "content"}]
_PAIRS += [{"messages.role", "messages.parts"}, {"role", "parts"}]  # of the AI SDK
_MEMORY = {"memory", "old_memory", "new_memory", "memory_id"}
_MEMORY |= {"results.memory", "results.memory_id", "results.old_memory"}
_ABOUT = {"id", "hash", "user_id", "created_at", "event", "results", "memories", "metadata"}
_NO_ROW = {"scope", "memlab", "question", "content", "messages", "conversations", "parts", "qa"}
_FIELDS = ("scope", "session", "id", "sender", "role", "text", "timestamp", "caption")


def is_openai(file: Source) -> bool:
    keys = file.keys
    if keys & {"agents", "run_type", "scope"}:
        return False
    if (
        keys & {"body.messages.role", "request.messages.role", "response.body.choices"}
        or "messages" in file.columns
    ):
        return True
    return any(pair <= keys for pair in _PAIRS)


def openai_messages(source: Source) -> Iterator[Message]:
    """Read every conversation as a session; a list of single messages is one."""
    for name, values in groupby(source.member_values(), lambda value: value[0].name):
        alone = list[Any]()
        for file, number, raw in values:
            asked = (
                get_nested(raw, path) for path in ("messages", "body.messages", "request.messages")
            )
            listed = common.decode_json(
                next(filter(None, asked), None) or get_nested(raw, "output")
            )
            answers = (
                get_list(raw, path)
                for path in ("choices", "response.choices", "response.body.choices")
            )
            answer = [
                get_nested(choice, "message") for choices in answers for choice in choices[:1]
            ]
            listed = (
                [*common.list_or_empty(listed), *answer]
                if answer or isinstance(listed, list)
                else None
            )
            session = first_field(
                raw, "conversation_id", "thread_id", "session_id", "custom_id", "id"
            )
            if listed is None and isinstance(raw, list):
                raw, listed, session = {}, raw, ""
            if listed is None:
                alone.append(raw)
            else:
                yield from _read_conversation(source, file, number, raw, listed, session)
        if alone:
            yield from _read_conversation(source, file, 1, {}, alone, PurePosixPath(name).stem)


def is_sharegpt(file: Source) -> bool:
    turns = {f"{key}.{part}" for key in _LISTS for part in _TURN}
    known = (
        bool(file.keys & turns) or "conversations" in file.columns or {"from", "value"} <= file.keys
    )
    return known and "evidence_items" not in file.keys


def sharegpt(source: Source) -> Iterator[Message]:
    """Read every conversation as a session of one scope; a pair of question and answer is two messages."""
    sessions = set[str]()
    for file, number, raw in source.member_values():
        found = (common.decode_json(get_nested(raw, key)) for key in _LISTS)
        listed = next((each for each in found if isinstance(each, list)), None)
        if listed is not None:
            source.drop(
                "system messages", OWNER_SCOPE, bool(first_field(raw, "system", "system_prompt"))
            )
            listed = [turn for each in listed for turn in _split_pair(each)]
        session = first_field(raw, "id", "conversation_id", "conversation_hash")
        if (
            session and listed is not None and session in sessions
        ):  # An id that two have names neither.
            session = f"{session} ({common.name_conversation(source, file, number)})"
        sessions.add(session)
        yield from _read_conversation(source, file, number, raw, listed, session)


def _split_pair(raw: Any) -> Iterator[Any]:
    if not isinstance(raw, dict) or {"from", "role", "value", "content"} & raw.keys():
        yield raw
        return
    for role, keys in _PAIR.items():
        if said := next((raw[key] for key in keys if isinstance(raw.get(key), str)), None):
            yield {"role": role, "content": said}


def _read_conversation(
    source: Source, file: Source, number: int, raw: Any, listed: list[Any] | None, session: str
) -> Iterator[Message]:
    """Give the messages of one conversation, whose time is that of messages without one; without a list, a message."""
    if listed is None:
        raw, listed, session = {}, [raw], PurePosixPath(file.name).stem
    scope = first_field(raw, "user_id", "user", "metadata.user_id") or OWNER_SCOPE
    made = ("created_at", "created", "timestamp", "createdAt", "response.body.created")
    when = common.first_time(*(get_nested(raw, path) for path in made))
    session = session or common.name_conversation(source, file, number)
    said = common.turns(source, scope, _oldest_first(listed))
    yield from common.session_messages(source, scope, session, said, when, own_ids=True)


def _oldest_first(listed: list[Any]) -> list[Any]:
    """Give messages in the order of their times, where a list from an API has the newest first."""
    with suppress(TypeError, BadField):
        written = (
            common.first_time(*(get_nested(each, key) for key in common.TIMES)) for each in listed
        )
        times = [fields.parse_time(when, "timestamp") for when in written]
        if (
            times
            and times[0] > times[-1]
            and all(newer >= older for newer, older in pairwise(times))
        ):
            return listed[::-1]
    return listed


def is_mem0(file: Source) -> bool:
    return bool(_MEMORY & file.keys) and bool(_ABOUT & file.keys) and "scope" not in file.keys


def mem0(source: Source) -> Iterator[Message]:
    """Read the messages that memories were made of; a memory alone is no message, and is counted."""
    for file, number, raw in source.member_values():
        entries = get_list(raw, "results") or get_list(raw, "memories")
        for entry in entries or [raw]:
            scope = first_field(entry, "user_id", "agent_id") or OWNER_SCOPE
            listed = get_list(entry, "input") or get_list(entry, "messages")
            source.drop("facts without their messages", scope, not listed)
            said = list(common.turns(source, scope, listed))
            key = scope, "\x1f".join(f"{turn['role']} {turn['text']}" for turn in said)
            if (
                said and key in source.report.seen
            ):  # One call makes several memories, each with its messages.
                source.drop("repeated messages", scope, len(said))
                continue
            source.report.seen[key] = ""
            session = first_field(entry, "run_id", "session_id") or common.name_conversation(
                source, file, number
            )
            when = common.first_time(get_nested(entry, "created_at"))
            yield from common.session_messages(source, scope, session, said, when)


def is_table(file: Source) -> bool:
    if columns := file.columns:
        return "text" in columns and bool(columns & {"sender", "role"})
    if file.head.lstrip()[:1] == "[" and "text" in file.keys and file.keys & {"scope", "sender"}:
        return "qa" not in file.keys
    first = key_paths(file.head, first=True)  # a chat log is one by its scopes, or by its header
    return "text" in first and bool(first & {"sender", "role"}) and not file.keys & _NO_ROW


def table(source: Source) -> Iterator[Message]:
    """Read every row of JSON, a CSV or a Parquet file; those of a file without scopes are one, named by it."""
    for file, number, raw in source.member_values():
        with file.record(f"row {number}", raw):
            record = Record(raw, f"row {number}")
            row = {key: record[key] for key in (*_FIELDS, *record) if key in record}
            yield {
                "scope": file.path.stem,
                **row,
                "text": "" if row.get("text") is None else row["text"],
            }
