"""Which messages of an export are read: the branch that is shown, and of copies the newest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any, NamedTuple

from memlab.datasets.importers.export_messages import Message
from memlab.datasets.importers.loose_json import (
    JsonValue,
    first_field_text,
    first_filled_field,
    get_nested_objects,
)
from memlab.datasets.importers.unknown_message_layouts import (
    comparable_version_text_or_empty,
    find_message_time,
    read_message_id_or_empty,
)
from memlab.datasets.record_fields import BadField, Record, Report, parse_time, resolve_time_to_utc
from memlab.datasets.record_sources import Source

MOST_GAPS = 500
"""Missing nodes of one conversation that are bridged; what lies before is another branch."""


class _PathUpwards(NamedTuple):
    """The ids from a node upwards, and the id of the parent that is missing, if one is."""

    ids: dict[str, None]
    missing_parent_id: str | None


def branch_ids_to_current_or_newest(
    parent_by_id: dict[str, JsonValue], current_id: JsonValue, time_of_id: Callable[[str], Any]
) -> list[str]:
    """Give the nodes of a tree from the root to the current one.

    Where that is not there, they lead to the newest leaf. Where a node is missing, the newest
    branch of the older nodes that do not hang on it stands before what does.

    :param parent_by_id: node to its parent, in the order of the file.
    :param time_of_id: a function of a node by which leaves are compared.
    """
    branch = list[str]()
    waiting = parent_by_id
    root = parent_by_id.get(min(parent_by_id, key=time_of_id, default=""))
    for _ in range(MOST_GAPS):
        climbed_nodes, missing_parent = _find_path_upwards(waiting, current_id)
        if not climbed_nodes:
            climbed_nodes, missing_parent = _find_path_upwards(
                waiting, _find_newest_leaf_id_or_empty(waiting, time_of_id)
            )
        if branch and missing_parent in parent_by_id:  # a side branch of what is there already
            break
        branch = [*reversed(climbed_nodes), *branch]
        if not climbed_nodes or missing_parent in parent_by_id or missing_parent in (None, root):
            break
        beginning = time_of_id(branch[0])
        older_nodes = dict[str, Any]()
        for node_id, parent in waiting.items():
            if parent == missing_parent or node_id in climbed_nodes:
                continue
            if time_of_id(node_id) <= beginning:
                older_nodes[node_id] = parent
        waiting = older_nodes
        current_id = missing_parent
    return branch


def _find_newest_leaf_id_or_empty(
    parent_by_id: dict[str, JsonValue], time_of_id: Callable[[str], Any]
) -> str:
    leaves = dict.fromkeys(reversed(parent_by_id))
    for parent in parent_by_id.values():
        if isinstance(parent, str):
            leaves.pop(parent, None)
    # max gives the first of equals, and of equals the last of the file is the newest.
    return max(leaves, key=time_of_id, default="")


def _find_path_upwards(parent_by_id: dict[str, JsonValue], start_id: JsonValue) -> _PathUpwards:
    """Give the nodes from one up to the first whose parent is not there, and that parent."""
    climbed_nodes = dict[str, None]()
    while isinstance(start_id, str) and start_id in parent_by_id and start_id not in climbed_nodes:
        climbed_nodes[start_id] = None
        start_id = parent_by_id[start_id]
    if isinstance(start_id, str):
        return _PathUpwards(climbed_nodes, start_id)
    return _PathUpwards(climbed_nodes, None)


_PARENTS = (
    *("parentId", "parent_id", "parentMessageId", "parent_message_id", "parent_message_uuid"),
    *("parent", "parentUuid", "parent_uuid", "parentID", "parentMessageUuid", "parent_node"),
    *("previousMessageId", "previous_message_id", "previousId", "previous_id", "prevId", "prev_id"),
)
_PARENT_KEYS = frozenset(_PARENTS)
_UNDATED = (0.0, 0)
_UNNAMED = "\ufffd"
"""What ids begin with that messages without one are given: a character that no tool writes."""


class ConversationVersion(NamedTuple):
    """When a conversation was changed, as it is written, and how many messages it has."""

    changed_at: str
    n_messages: int


@dataclass
class ShownBranch:
    """The messages of the branch that is shown, from the first on, and those of the other branches.

    :param n_older_versions: how many are older versions of one that is among these.
    """

    messages: list[JsonValue]
    other_messages: list[JsonValue]
    n_older_versions: int


def find_shown_branch(raw_messages: list[JsonValue], current_id: str = "") -> ShownBranch | None:
    """Find the branch of messages that each name the message before them; ``None`` where none does.

    One that has no key for its parent follows the one before it in the list, and so does one
    without an id, see :func:`parent_id_by_message_id`. Of several versions of a message the newest
    stands in the tree.

    :param current_id: the last message of the branch that is shown; the newest leaf where it is not
        there.

    >>> said = [{"id": "q"}, {"id": "a", "parentId": "q"}, {"id": "b", "parentId": "q"}]
    >>> [message["id"] for message in find_shown_branch(said).messages]
    ['q', 'b']
    """
    identified = list(_ids_and_flattened_messages(raw_messages))
    by_id = dict[str, Any]()
    for own_id, message in identified:
        known_version = by_id.get(own_id)
        if known_version is None or comparable_version_text_or_empty(
            message
        ) >= comparable_version_text_or_empty(known_version):
            by_id[own_id] = message
    parents = parent_id_by_message_id(by_id)
    named_parents = [
        parents[own_id] for own_id, message in by_id.items() if _has_parent_key(message)
    ]
    if by_id.keys().isdisjoint(named_parents):
        return None
    ages = time_and_place_by_message_id(by_id, parents)
    if current_id:
        current_id = _last_made_up_id_after_each_id(by_id).get(current_id, current_id)
    branch = branch_ids_to_current_or_newest(parents, current_id, ages.__getitem__)
    other_messages = by_id.copy()
    shown_messages = list(map(other_messages.pop, branch))
    return ShownBranch(shown_messages, list(other_messages.values()), len(identified) - len(by_id))


def _ids_and_flattened_messages(raw_messages: list[JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """Give messages that hold those after them as a list, each after its parent.

    LibreChat's recursive export has them so.

    :returns: the id of each, made up where it has none, and the message.
    """
    waiting_messages = raw_messages[::-1]
    message_place = 0
    while waiting_messages:
        message = waiting_messages.pop()
        own_id = given_or_made_up_id(read_message_id_or_empty(message), message_place)
        message_place += 1
        for child in reversed(get_nested_objects(message, "children")):
            waiting_messages.append({"parentId": own_id} | child)
        yield own_id, message


def given_or_made_up_id(given_id: str, message_place: int) -> str:
    """Give the id of a message, made up of its place where it has none."""
    if given_id:
        return given_id
    return f"{_UNNAMED}{message_place}"


def _has_parent_key(raw_message: JsonValue) -> bool:
    return isinstance(raw_message, dict) and contains_parent_key(raw_message)


def contains_parent_key(message_keys: Iterable[str]) -> bool:
    """Say whether one of the keys of a message is for the message before it."""
    return not _PARENT_KEYS.isdisjoint(message_keys)


def parent_id_by_message_id(message_by_id: dict[str, JsonValue]) -> dict[str, str | None]:
    """Give the parent of each message, ``None`` where it has none.

    No message can name one without an id, which follows the one before it in the list unless it
    names another. What hangs on a message hangs on those without an id that follow it.

    :param message_by_id: messages in the order of the file, with ids of
        :func:`given_or_made_up_id`.

    >>> note = given_or_made_up_id("", 1)
    >>> parent_id_by_message_id({"q": {}, note: {}, "a": {"parentId": "q"}})["a"] == note
    True
    """
    unnamed_behind = _last_made_up_id_after_each_id(message_by_id)
    beginning = unnamed_behind.get("")
    parents = dict[str, str | None]()
    previous = ""
    for own_id, message in message_by_id.items():
        parent_before = previous or None
        named_parent = previous
        if _has_parent_key(message):
            named_parent = first_field_text(message, *_PARENTS)
        is_known = named_parent in message_by_id and named_parent != own_id
        if own_id.startswith(_UNNAMED):
            parents[own_id] = parent_before
            if is_known:
                parents[own_id] = named_parent
        elif named_parent == previous or (not is_known and previous == beginning):
            parents[own_id] = parent_before
        elif named_parent == own_id:
            parents[own_id] = None
        elif named_parent:
            parents[own_id] = unnamed_behind.get(named_parent, named_parent)
        else:
            parents[own_id] = beginning
        previous = own_id
    return parents


def _last_made_up_id_after_each_id(message_by_id: dict[str, JsonValue]) -> dict[str, str]:
    """Give the last of the messages without an id that follow each message.

    Of those at the beginning of the list it stands under an empty id.
    """
    unnamed_behind = dict[str, str]()
    followed_id: str | None = ""
    for own_id, message in message_by_id.items():
        if not own_id.startswith(_UNNAMED):
            followed_id = own_id
        elif first_field_text(message, *_PARENTS) in message_by_id:
            followed_id = None
        elif followed_id is not None:
            unnamed_behind[followed_id] = own_id
    return unnamed_behind


def time_and_place_by_message_id(
    message_by_id: dict[str, JsonValue], parent_by_id: dict[str, JsonValue]
) -> dict[str, tuple[float, int]]:
    """Give the time of each message and its place, by which leaves are compared.

    One without a time has that of its parent.
    """
    ages = dict[str, tuple[float, int]]()
    for message_place, (own_id, message) in enumerate(message_by_id.items()):
        seconds = _time_in_seconds_or_zero(message)
        if not seconds:
            seconds, _ = ages.get(parent_by_id[own_id], _UNDATED)
        ages[own_id] = seconds, message_place
    return ages


def _time_in_seconds_or_zero(raw_message: JsonValue) -> float:
    """Give the time of a message in seconds, by which leaves are compared.

    It is the same for all without one.
    """
    with suppress(BadField, ValueError, OverflowError, OSError):
        written = parse_time(find_message_time(raw_message), "timestamp")
        return resolve_time_to_utc(written, UTC, None).timestamp()
    return 0.0


def read_newest_copies_and_count_older(
    source: Source, record_label: str, read_conversation: Callable[[Record], Iterable[Message]]
) -> Iterator[Message]:
    """Give what a function makes of each value of the members.

    One that is bad is rejected as a whole. Of a conversation that several exports hold, the newest
    copy is read.
    """
    newest_by_id = dict[str, ConversationVersion]()
    if len(source.members) > 1:  # of a single file nothing is newer
        separate_files = [replace(file, report=Report()) for file in source.members]
        newest_by_id = newest_version_by_conversation_id(
            raw_conversation for file in separate_files for _, raw_conversation in file.values()
        )
    for file, number, raw_conversation in source.stream_numbered_member_values():
        conversation, version = read_id_or_empty_and_version(raw_conversation)
        if version < newest_by_id.get(conversation, version):
            source.drop("older versions of conversations")
            continue
        with file.record(f"{record_label} {number}", raw_conversation):
            yield from list(read_conversation(Record(raw_conversation, f"{record_label} {number}")))


def read_id_or_empty_and_version(
    raw_conversation: JsonValue,
) -> tuple[str, ConversationVersion]:
    """Give the id of a conversation with all its branches, and its version.

    That is when it was changed, and how many messages it has.

    >>> said = {"id": "c1", "update_time": 1772355600, "mapping": {"m1": {}}}
    >>> read_id_or_empty_and_version(said)
    ('c1', ConversationVersion(changed_at='1772355600', n_messages=1))
    """
    own_id = first_filled_field(raw_conversation, "conversation_id", "uuid", "id")
    messages = first_filled_field(
        raw_conversation, "mapping", "chat_messages", "chat.history.messages"
    )
    if own_id is None or not isinstance(messages, (dict, list)):
        return "", ConversationVersion("", 0)
    changed_at = first_filled_field(raw_conversation, "update_time", "updated_at")
    if changed_at is None:
        changed_at = ""
    return str(own_id), ConversationVersion(str(changed_at), len(messages))


def newest_version_by_conversation_id(
    raw_conversations: Iterable[JsonValue],
) -> dict[str, ConversationVersion]:
    """Give the newest version of each conversation of several exports.

    See :func:`read_id_or_empty_and_version`.
    """
    newest_by_id = dict[str, ConversationVersion]()
    for conversation, version in map(read_id_or_empty_and_version, raw_conversations):
        newest_by_id[conversation] = max(version, newest_by_id.get(conversation, version))
    return newest_by_id
