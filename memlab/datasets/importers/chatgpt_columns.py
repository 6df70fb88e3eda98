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

from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    remember_messages_unless_known,
)
from memlab.datasets.importers.loose_json import JsonValue
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


def read_messages_if_all_plain(
    source: Source, session: str, raw_messages: list[JsonValue], earliest_seconds: float
) -> list[Message] | None:
    """Read the messages of a conversation; ``None``, and nothing noted, where one is odd.

    :param raw_messages: as the export has them, in their order.
    :param earliest_seconds: the time before which none of them can lie.

    >>> from pathlib import Path
    >>> source, content = Source(Path("conversations.json")), {"content_type": "text"}
    >>> said = {"id": "m1", "author": {"role": "user"}, "create_time": 1.7e9, "metadata": {}}
    >>> said |= {"content": content | {"parts": ["Hello"]}}
    >>> read_messages_if_all_plain(source, "c1", [said], 0.0)[0]["text"]
    'Hello'
    >>> read_messages_if_all_plain(source, "c1", [said | {"recipient": "browser"}], 0.0) is None
    True
    """
    if not session or not raw_messages or source.people:
        return None
    try:
        values_by_key = _transpose_messages_of_same_keys(raw_messages)
        _check_visible_and_no_other_words(values_by_key)
        texts = _check_and_strip_plain_texts(values_by_key["content"])
        roles = _check_and_list_roles(values_by_key["author"])
        message_ids = _check_message_ids(values_by_key["id"])
        times = _floats_in_seconds_or_value_error(values_by_key["create_time"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    if not remember_messages_unless_known(source, OWNER_SCOPE, session, message_ids, texts):
        return None
    raised_times = list(accumulate(times, max, initial=earliest_seconds))[1:]
    source.keep(EARLIER_TIMES, OWNER_SCOPE, RAISED, sum(map(operator.lt, times, raised_times)))
    return list(
        map(partial(_make_chatlog_record, session), texts, roles, raised_times, message_ids)
    )


def _make_chatlog_record(
    session: str, text: str, role: str, sent_at: float, message_id: str
) -> Message:
    return {
        "text": text,
        "scope": OWNER_SCOPE,
        "sender": role,
        "role": role,
        "session": session,
        "timestamp": sent_at,
        "id": message_id,
    }


def _transpose_messages_of_same_keys(
    raw_messages: list[JsonValue],
) -> dict[str, tuple[JsonValue, ...]]:
    """Give the values of messages by their keys, which are known and the same in each.

    :raises ValueError: where they are not.
    """
    (keys,) = set(map(tuple, raw_messages))
    if not _KEYS.issuperset(keys):
        raise ValueError(keys)
    columns = zip(*map(dict.values, raw_messages), strict=True)
    return dict(zip(keys, columns, strict=True))


def _check_and_strip_plain_texts(raw_contents: Sequence[JsonValue]) -> list[str]:
    """Give the texts of contents that have one each, and nothing that is shown otherwise.

    :raises ValueError: where one has not.
    """
    if set(map(itemgetter("content_type"), raw_contents)) != {"text"}:
        raise ValueError("a content of another kind")
    part_lists = list(map(itemgetter("parts"), raw_contents))
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


def _check_and_list_roles(raw_authors: Sequence[JsonValue]) -> list[str]:
    """Give the roles of authors.

    :raises ValueError: where one is neither a person nor the assistant.
    """
    roles = list(map(itemgetter("role"), raw_authors))
    if not _ROLES.issuperset(roles):
        raise ValueError("another role")
    return roles


def _check_message_ids(raw_ids: Sequence[JsonValue]) -> Sequence[str]:
    """Give ids that are plain texts without blanks, each there once.

    :raises ValueError: where they are not.
    """
    joined_ids = "".join(raw_ids)
    if not joined_ids.isascii() or not joined_ids.isprintable() or " " in joined_ids:
        raise ValueError("an odd id")
    if not all(raw_ids) or len(set(raw_ids)) < len(raw_ids):
        raise ValueError("no id, or one again")
    return raw_ids


def _floats_in_seconds_or_value_error(raw_times: Sequence[JsonValue]) -> Sequence[float]:
    """Give times that are all counts of seconds since 1970.

    :raises ValueError: where they are not.
    """
    if set(map(type, raw_times)) != {float} or min(raw_times) <= 0.0 or max(raw_times) >= _LATEST:
        raise ValueError("another form of time")
    return raw_times


def _check_visible_and_no_other_words(values_by_key: dict[str, tuple[JsonValue, ...]]) -> None:
    """Check that messages are for all to see, and hold no words beside their texts.

    :raises ValueError: where one is not, or does.
    """
    if not _UNSPOKEN.issuperset(map(type, values_by_key.get("update_time", ()))):
        raise ValueError("a time that may hold words")
    metadata_values = filter(None, values_by_key.get("metadata", ()))
    if not all(map(MORE.isdisjoint, metadata_values)):
        raise ValueError("metadata of what is no plain text")
    if not _RECIPIENTS.issuperset(values_by_key.get("recipient", ())):
        raise ValueError("another recipient")
    if "analysis" in values_by_key.get("channel", ()):
        raise ValueError("thoughts")
    for state_key in _STATES:
        for value in set(values_by_key.get(state_key, ())):
            if isinstance(value, str) and " " in value:
                raise ValueError("words in another field")
