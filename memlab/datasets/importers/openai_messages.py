"""Lists of messages with roles and contents, as the OpenAI API takes and gives them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby, pairwise
from pathlib import PurePosixPath
from typing import Any

from memlab.datasets import fields
from memlab.datasets.fields import BadField
from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    TIMES,
    Message,
    make_session_messages,
    name_conversation,
    read_turns,
)
from memlab.datasets.importers.loose_json import (
    decode_json,
    first_field,
    first_time,
    get_list,
    get_nested,
    list_or_empty,
)
from memlab.datasets.source import Source

_PAIRS = [{"object", "output.role"}, {"messages.role", "messages.content"}, {"role", "content"}]
_PAIRS += [{"messages.role", "messages.parts"}, {"role", "parts"}]  # of the AI SDK


def is_openai_list(file: Source) -> bool:
    keys = file.keys
    if keys & {"agents", "run_type", "scope"}:
        return False
    if (
        keys & {"body.messages.role", "request.messages.role", "response.body.choices"}
        or "messages" in file.columns
    ):
        return True
    return any(pair <= keys for pair in _PAIRS)


def read_openai_messages(source: Source) -> Iterator[Message]:
    """Read every conversation as a session; a list of single messages is one."""
    for name, values in groupby(source.member_values(), lambda value: value[0].name):
        alone = list[Any]()
        for file, number, raw in values:
            asked = (
                get_nested(raw, path) for path in ("messages", "body.messages", "request.messages")
            )
            listed = decode_json(next(filter(None, asked), None) or get_nested(raw, "output"))
            answers = (
                get_list(raw, path)
                for path in ("choices", "response.choices", "response.body.choices")
            )
            answer = [
                get_nested(choice, "message") for choices in answers for choice in choices[:1]
            ]
            listed = (
                [*list_or_empty(listed), *answer] if answer or isinstance(listed, list) else None
            )
            session = first_field(
                raw, "conversation_id", "thread_id", "session_id", "custom_id", "id"
            )
            if listed is None and isinstance(raw, list):
                raw, listed, session = {}, raw, ""
            if listed is None:
                alone.append(raw)
            else:
                yield from read_conversation(source, file, number, raw, listed, session)
        if alone:
            yield from read_conversation(source, file, 1, {}, alone, PurePosixPath(name).stem)


def read_conversation(
    source: Source, file: Source, number: int, raw: Any, listed: list[Any] | None, session: str
) -> Iterator[Message]:
    """Give the messages of one conversation, whose time is that of messages without one; without a list, a message."""
    if listed is None:
        raw, listed, session = {}, [raw], PurePosixPath(file.name).stem
    scope = first_field(raw, "user_id", "user", "metadata.user_id") or OWNER_SCOPE
    made = ("created_at", "created", "timestamp", "createdAt", "response.body.created")
    when = first_time(*(get_nested(raw, path) for path in made))
    session = session or name_conversation(source, file, number)
    said = read_turns(source, scope, _oldest_first(listed))
    yield from make_session_messages(source, scope, session, said, when, own_ids=True)


def _oldest_first(listed: list[Any]) -> list[Any]:
    """Give messages in the order of their times, where a list from an API has the newest first."""
    with suppress(TypeError, BadField):
        written = (first_time(*(get_nested(each, key) for key in TIMES)) for each in listed)
        times = [fields.parse_time(when, "timestamp") for when in written]
        if (
            times
            and times[0] > times[-1]
            and all(newer >= older for newer, older in pairwise(times))
        ):
            return listed[::-1]
    return listed
