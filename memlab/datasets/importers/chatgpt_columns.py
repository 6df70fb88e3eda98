"""Messages of ChatGPT column by column, where all of a conversation are plain texts, as most are.

What is odd in any way is left to the reader of single messages,
:mod:`memlab.datasets.importers.chatgpt`, which gives the same of what is plain.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from itertools import accumulate, chain
from operator import itemgetter
from typing import Any

from memlab.datasets.importers.export_messages import OWNER_SCOPE, Message, note_messages
from memlab.datasets.record_sources import Source
from memlab.datasets.thinking_tags import may_hold_thoughts

MARKERS = "\ue200-\ue203"
"""The range of characters around what ChatGPT shows in another form."""
_SPECIAL = "\x00\ue200\ue201\ue202\ue203"
MORE = frozenset(
    (
        *("is_visually_hidden_from_conversation", "is_user_system_message"),
        *("attachments", "chatgpt_sdk"),
    )
)
"""Metadata of messages that are no plain text."""
_ROLES = frozenset(("user", "assistant"))
_RECIPIENTS = frozenset((None, "all"))
_KEYS = frozenset(
    (
        *("id", "author", "create_time", "update_time", "content", "metadata"),
        *("status", "end_turn", "weight", "recipient", "channel"),
    )
)
_STATES = ("status", "end_turn", "weight", "channel")
_UNSPOKEN = frozenset((float, int, bool, type(None)))
"""Types of values that hold no words."""
EARLIER_TIMES = "times before that of the message above"
RAISED = "raised to it"
_LATEST = 1e11
"""From which on a number is no count of seconds."""


def read_in_columns(
    source: Source, session: str, messages: list[Any], latest: float
) -> list[Message] | None:
    """Read the messages of a conversation; ``None``, and nothing noted, where one is odd.

    :param messages: as the export has them, in their order.
    :param latest: the time before which none of them can lie.

    >>> from pathlib import Path
    >>> source, content = Source(Path("conversations.json")), {"content_type": "text"}
    >>> said = {"id": "m1", "author": {"role": "user"}, "create_time": 1.7e9, "metadata": {}}
    >>> said |= {"content": content | {"parts": ["Hello"]}}
    >>> read_in_columns(source, "c1", [said], 0.0)[0]["text"]
    'Hello'
    >>> read_in_columns(source, "c1", [said | {"recipient": "browser"}], 0.0) is None
    True
    """
    if not session or not messages or source.people:
        return None
    try:
        columns = _make_columns(messages)
        _check_nothing_more(columns)
        texts = _read_texts(columns["content"])
        roles = _read_roles(columns["author"])
        message_ids = _check_names(columns["id"])
        times = _check_seconds(columns["create_time"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    if not note_messages(source, OWNER_SCOPE, session, message_ids, texts):
        return None
    raised_times = list(accumulate(times, max, initial=latest))[1:]
    source.keep(EARLIER_TIMES, OWNER_SCOPE, RAISED, sum(map(operator.lt, times, raised_times)))
    return list(map(partial(_make_record, session), texts, roles, raised_times, message_ids))


def _make_record(session: str, text: str, role: str, sent_at: float, own_id: str) -> Message:
    return {
        "text": text,
        "scope": OWNER_SCOPE,
        "sender": role,
        "role": role,
        "session": session,
        "timestamp": sent_at,
        "id": own_id,
    }


def _make_columns(messages: list[Any]) -> dict[str, tuple[Any, ...]]:
    """Give the values of messages by their keys, which are known and the same in each.

    :raises ValueError: where they are not.
    """
    (keys,) = set(map(tuple, messages))
    if not _KEYS.issuperset(keys):
        raise ValueError(keys)
    columns = zip(*map(dict.values, messages), strict=True)
    return dict(zip(keys, columns, strict=True))


def _read_texts(contents: Sequence[Any]) -> list[str]:
    """Give the texts of contents that have one each, and nothing that is shown otherwise.

    :raises ValueError: where one has not.
    """
    if set(map(itemgetter("content_type"), contents)) != {"text"}:
        raise ValueError("a content of another kind")
    part_lists = list(map(itemgetter("parts"), contents))
    if set(map(type, part_lists)) != {list} or set(map(len, part_lists)) != {1}:
        raise ValueError("several parts")
    texts = list(map(str.strip, chain.from_iterable(part_lists)))
    joined_texts = "\n".join(texts)
    joined_texts.encode()  # fails for half a surrogate
    if not all(texts) or any(map(joined_texts.__contains__, _SPECIAL)):
        raise ValueError("no text, or what is shown otherwise")
    if may_hold_thoughts(joined_texts) and any(map(may_hold_thoughts, texts)):
        raise ValueError("thoughts")
    return texts


def _read_roles(authors: Sequence[Any]) -> list[str]:
    """Give the roles of authors.

    :raises ValueError: where one is neither a person nor the assistant.
    """
    roles = list(map(itemgetter("role"), authors))
    if not _ROLES.issuperset(roles):
        raise ValueError("another role")
    return roles


def _check_names(ids: Sequence[Any]) -> Sequence[str]:
    """Give ids that are plain texts without blanks, each there once.

    :raises ValueError: where they are not.
    """
    joined_ids = "".join(ids)
    if not joined_ids.isascii() or not joined_ids.isprintable() or " " in joined_ids:
        raise ValueError("an odd id")
    if not all(ids) or len(set(ids)) < len(ids):
        raise ValueError("no id, or one again")
    return ids


def _check_seconds(times: Sequence[Any]) -> Sequence[float]:
    """Give times that are all counts of seconds since 1970.

    :raises ValueError: where they are not.
    """
    if set(map(type, times)) != {float} or min(times) <= 0.0 or max(times) >= _LATEST:
        raise ValueError("another form of time")
    return times


def _check_nothing_more(columns: dict[str, tuple[Any, ...]]) -> None:
    """Check that messages are for all to see, and hold no words beside their texts.

    :raises ValueError: where one is not, or does.
    """
    if not _UNSPOKEN.issuperset(map(type, columns.get("update_time", ()))):
        raise ValueError("a time that may hold words")
    metadata_values = filter(None, columns.get("metadata", ()))
    if not all(map(MORE.isdisjoint, metadata_values)):
        raise ValueError("metadata of what is no plain text")
    if not _RECIPIENTS.issuperset(columns.get("recipient", ())):
        raise ValueError("another recipient")
    if "analysis" in columns.get("channel", ()):
        raise ValueError("thoughts")
    for state_key in _STATES:
        for value in set(columns.get(state_key, ())):
            if isinstance(value, str) and " " in value:
                raise ValueError("words in another field")
