"""Which messages of an export are read: the branch that is shown, and of copies the newest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any

from memlab.datasets.importers.loose_json import first_field, first_filled, get_objects
from memlab.datasets.importers.unknown_message_layouts import (
    describe_version,
    read_message_id,
    read_time_value,
)
from memlab.datasets.record_fields import BadField, Record, Report, parse_time, resolve_time_to_utc
from memlab.datasets.record_sources import Source

MOST_GAPS = 500
"""Missing nodes of one conversation that are bridged; what lies before is another branch."""


def newest_branch(parents: dict[str, Any], current: Any, age: Callable[[str], Any]) -> list[str]:
    """Give the nodes of a tree from the root to the current one.

    Where that is not there, they lead to the newest leaf. Where a node is missing, the newest
    branch of the older nodes that do not hang on it stands before what does.

    :param parents: node to its parent, in the order of the file.
    :param age: a function of a node by which leaves are compared.
    """
    branch = list[str]()
    waiting = parents
    root = parents.get(min(parents, key=age, default=""))
    for _ in range(MOST_GAPS):
        climbed_nodes, missing_parent = _climb(waiting, current)
        if not climbed_nodes:
            climbed_nodes, missing_parent = _climb(waiting, _find_newest_leaf(waiting, age))
        if branch and missing_parent in parents:  # a side branch of what is there already
            break
        branch = [*reversed(climbed_nodes), *branch]
        if not climbed_nodes or missing_parent in parents or missing_parent in (None, root):
            break
        beginning = age(branch[0])
        older_nodes = dict[str, Any]()
        for node_id, parent in waiting.items():
            if parent == missing_parent or node_id in climbed_nodes:
                continue
            if age(node_id) <= beginning:
                older_nodes[node_id] = parent
        waiting = older_nodes
        current = missing_parent
    return branch


def _find_newest_leaf(parents: dict[str, Any], age: Callable[[str], Any]) -> str:
    leaves = dict.fromkeys(reversed(parents))
    for parent in parents.values():
        if isinstance(parent, str):
            leaves.pop(parent, None)
    # max gives the first of equals, and of equals the last of the file is the newest.
    return max(leaves, key=age, default="")


def _climb(parents: dict[str, Any], current: Any) -> tuple[dict[str, None], str | None]:
    """Give the nodes from one up to the first whose parent is not there, and the id of that parent.

    It is ``None`` for a node that names none.
    """
    climbed_nodes = dict[str, None]()
    while isinstance(current, str) and current in parents and current not in climbed_nodes:
        climbed_nodes[current] = None
        current = parents[current]
    if isinstance(current, str):
        return climbed_nodes, current
    return climbed_nodes, None


_PARENTS = (
    *("parentId", "parent_id", "parentMessageId", "parent_message_id", "parent_message_uuid"),
    *("parent", "parentUuid", "parent_uuid", "parentID", "parentMessageUuid", "parent_node"),
    *("previousMessageId", "previous_message_id", "previousId", "previous_id", "prevId", "prev_id"),
)
_PARENT_KEYS = frozenset(_PARENTS)
_UNDATED = (0.0, 0)
_UNNAMED = "\ufffd"
"""What ids begin with that messages without one are given: a character that no tool writes."""


@dataclass
class Branch:
    """The messages of the branch that is shown, from the first on, and those of the other branches.

    :param older: how many are older versions of one that is among these.
    """

    branch: list[Any]
    left: list[Any]
    older: int


def find_branch(listed: list[Any], current: str = "") -> Branch | None:
    """Find the branch of messages that each name the message before them; ``None`` where none does.

    One that has no key for its parent follows the one before it in the list, and so does one
    without an id, see :func:`link_to_parents`. Of several versions of a message the newest stands
    in the tree.

    :param current: the last message of the branch that is shown; the newest leaf where it is not
        there.

    >>> said = [{"id": "q"}, {"id": "a", "parentId": "q"}, {"id": "b", "parentId": "q"}]
    >>> [message["id"] for message in find_branch(said).branch]
    ['q', 'b']
    """
    identified = list(_flatten_children(listed))
    by_id = dict[str, Any]()
    for own_id, message in identified:
        known_version = by_id.get(own_id)
        if known_version is None or describe_version(message) >= describe_version(known_version):
            by_id[own_id] = message
    parents = link_to_parents(by_id)
    named_parents = [parents[own_id] for own_id, message in by_id.items() if _names_parent(message)]
    if by_id.keys().isdisjoint(named_parents):
        return None
    ages = date_messages(by_id, parents)
    if current:
        current = _find_unnamed_behind(by_id).get(current, current)
    branch = newest_branch(parents, current, ages.__getitem__)
    other_messages = by_id.copy()
    shown_messages = list(map(other_messages.pop, branch))
    return Branch(shown_messages, list(other_messages.values()), len(identified) - len(by_id))


def _flatten_children(messages: list[Any]) -> Iterator[tuple[str, Any]]:
    """Give messages that hold those after them as a list, each after its parent.

    LibreChat's recursive export has them so.

    :returns: the id of each, made up where it has none, and the message.
    """
    waiting_messages = messages[::-1]
    message_place = 0
    while waiting_messages:
        message = waiting_messages.pop()
        own_id = name_message(read_message_id(message), message_place)
        message_place += 1
        for child in reversed(get_objects(message, "children")):
            waiting_messages.append({"parentId": own_id} | child)
        yield own_id, message


def name_message(given: str, place: int) -> str:
    """Give the id of a message, made up of its place where it has none."""
    if given:
        return given
    return f"{_UNNAMED}{place}"


def _names_parent(message: Any) -> bool:
    return isinstance(message, dict) and holds_parent_key(message)


def holds_parent_key(keys: Iterable[str]) -> bool:
    """Say whether one of the keys of a message is for the message before it."""
    return not _PARENT_KEYS.isdisjoint(keys)


def link_to_parents(by_id: dict[str, Any]) -> dict[str, Any]:
    """Give the parent of each message, ``None`` where it has none.

    No message can name one without an id, which follows the one before it in the list unless it
    names another. What hangs on a message hangs on those without an id that follow it.

    :param by_id: messages in the order of the file, with ids of :func:`name_message`.

    >>> note = name_message("", 1)
    >>> link_to_parents({"q": {}, note: {}, "a": {"parentId": "q"}})["a"] == note
    True
    """
    unnamed_behind = _find_unnamed_behind(by_id)
    beginning = unnamed_behind.get("")
    parents = dict[str, Any]()
    previous = ""
    for own_id, message in by_id.items():
        parent_before = previous or None
        named_parent = previous
        if _names_parent(message):
            named_parent = first_field(message, *_PARENTS)
        is_known = named_parent in by_id and named_parent != own_id
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


def _find_unnamed_behind(by_id: dict[str, Any]) -> dict[str, str]:
    """Give the last of the messages without an id that follow each message.

    Of those at the beginning of the list it stands under an empty id.
    """
    unnamed_behind = dict[str, str]()
    followed_id: str | None = ""
    for own_id, message in by_id.items():
        if not own_id.startswith(_UNNAMED):
            followed_id = own_id
        elif first_field(message, *_PARENTS) in by_id:
            followed_id = None
        elif followed_id is not None:
            unnamed_behind[followed_id] = own_id
    return unnamed_behind


def date_messages(by_id: dict[str, Any], parents: dict[str, Any]) -> dict[str, tuple[float, int]]:
    """Give the time of each message and its place, by which leaves are compared.

    One without a time has that of its parent.
    """
    ages = dict[str, tuple[float, int]]()
    for message_place, (own_id, message) in enumerate(by_id.items()):
        seconds = _read_age(message)
        if not seconds:
            seconds, _ = ages.get(parents[own_id], _UNDATED)
        ages[own_id] = seconds, message_place
    return ages


def _read_age(message: Any) -> float:
    """Give the time of a message in seconds, by which leaves are compared.

    It is the same for all without one.
    """
    with suppress(BadField, ValueError, OverflowError, OSError):
        written = parse_time(read_time_value(message), "timestamp")
        return resolve_time_to_utc(written, UTC, None).timestamp()
    return 0.0


def read_newest_conversations(
    source: Source, label: str, read: Callable[[Record], Iterable[Any]]
) -> Iterator[Any]:
    """Give what a function makes of each value of the members.

    One that is bad is rejected as a whole. Of a conversation that several exports hold, the newest
    copy is read.
    """
    newest_by_id = dict[str, tuple[str, int]]()
    if len(source.members) > 1:  # of a single file nothing is newer
        separate_files = [replace(file, report=Report()) for file in source.members]
        newest_by_id = newest_versions(
            raw_conversation for file in separate_files for _, raw_conversation in file.values()
        )
    for file, number, raw_conversation in source.member_values():
        conversation, version = conversation_version(raw_conversation)
        if version < newest_by_id.get(conversation, version):
            source.drop("older versions of conversations")
            continue
        with file.record(f"{label} {number}", raw_conversation):
            yield from list(read(Record(raw_conversation, f"{label} {number}")))


def conversation_version(raw: Any) -> tuple[str, tuple[str, int]]:
    """Give the id of a conversation with all its branches, and its version.

    That is when it was changed, and how many messages it has.

    >>> conversation_version({"id": "c1", "update_time": 1772355600, "mapping": {"m1": {}}})
    ('c1', ('1772355600', 1))
    """
    own_id = first_filled(raw, "conversation_id", "uuid", "id")
    messages = first_filled(raw, "mapping", "chat_messages", "chat.history.messages")
    if own_id is None or not isinstance(messages, (dict, list)):
        return "", ("", 0)
    changed_at = first_filled(raw, "update_time", "updated_at")
    if changed_at is None:
        changed_at = ""
    return str(own_id), (str(changed_at), len(messages))


def newest_versions(values: Iterable[Any]) -> dict[str, tuple[str, int]]:
    """Give the newest version of each conversation of several exports.

    See :func:`conversation_version`.
    """
    newest_by_id = dict[str, tuple[str, int]]()
    for conversation, version in map(conversation_version, values):
        newest_by_id[conversation] = max(version, newest_by_id.get(conversation, version))
    return newest_by_id
