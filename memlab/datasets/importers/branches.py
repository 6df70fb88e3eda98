"""Which messages of an export are read: the branch that is shown, and the newest copy of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any

from memlab.datasets.fields import BadField, Record, Report, parse_time, place_in_zone
from memlab.datasets.importers.loose_json import first_field
from memlab.datasets.importers.message_fields import (
    describe_version,
    read_message_id,
    read_time_value,
)
from memlab.datasets.source import Source

MOST_GAPS = 500
"""Missing nodes of one conversation that are bridged; what lies before is another branch."""


def newest_branch(parents: dict[str, Any], current: Any, age: Callable[[str], Any]) -> list[str]:
    """Give the nodes of a tree from the root to the current one; where that is not there, to the newest leaf.

    Where a node is missing, the newest branch of the older nodes that do not hang on it stands
    before what does.

    :param parents: node to its parent, in the order of the file.
    :param age: a function of a node by which leaves are compared.
    """
    branch, left, root = list[str](), parents, parents.get(min(parents, key=age, default=""))
    for _ in range(MOST_GAPS):
        if not (isinstance(current, str) and current in left):
            answered = {parent for parent in left.values() if isinstance(parent, str)}
            # max gives the first of equals, and of equals the last of the file is the newest.
            current = max(
                (key for key in reversed(left) if key not in answered), key=age, default=""
            )
        path: dict[str, None] = {}
        while isinstance(current, str) and current in left and current not in path:
            path[current] = None
            current = left[current]
        top = current if isinstance(current, str) else None
        if branch and top in parents:  # a side branch of what is there already
            break
        branch = list(path)[::-1] + branch
        if not path or top in (None, root) or top in parents:
            break
        older = {
            key: parent for key, parent in left.items() if parent != current and key not in path
        }
        left = {key: parent for key, parent in older.items() if age(key) <= age(branch[0])}
    return branch


_PARENTS = (
    *("parentId", "parent_id", "parentMessageId", "parent_message_id", "parent_message_uuid"),
    *("parent", "parentUuid"),
)
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
    named = list(_flatten_children(listed))
    by_id: dict[str, Any] = {}
    for own, each in named:
        if own not in by_id or describe_version(each) >= describe_version(by_id[own]):
            by_id[own] = each
    parents = link_to_parents(by_id)
    linked = any(parents[own] in by_id and _names_parent(each) for own, each in by_id.items())
    if not linked:
        return None
    ages = date_messages(by_id, parents)
    if current:
        current = _find_unnamed_behind(by_id).get(current, current)
    shown = dict.fromkeys(newest_branch(parents, current, ages.__getitem__))
    left = [each for own, each in by_id.items() if own not in shown]
    return Branch([by_id[own] for own in shown], left, len(named) - len(by_id))


def _flatten_children(listed: list[Any]) -> Iterator[tuple[str, Any]]:
    """Give messages that hold those after them (LibreChat's recursive export) as a list, each after its parent.

    :returns: the id of each, made up where it has none, and the message.
    """
    waiting = listed[::-1]
    place = 0
    while waiting:
        each = waiting.pop()
        own = name_message(read_message_id(each), place)
        place += 1
        inner = each.get("children") if isinstance(each, dict) else None
        if isinstance(inner, list) and any(isinstance(child, dict) for child in inner):
            waiting += [
                {"parentId": own} | child for child in inner[::-1] if isinstance(child, dict)
            ]
        yield own, each


def name_message(given: str, place: int) -> str:
    """Give the id of a message, made up of its place where it has none."""
    return given or f"{_UNNAMED}{place}"


def _names_parent(each: Any) -> bool:
    return isinstance(each, dict) and any(key in each for key in _PARENTS)


def link_to_parents(by_id: dict[str, Any]) -> dict[str, Any]:
    """Give the parent of each message, ``None`` where it has none.

    No message can name one without an id, which follows the one before it in the list unless it
    names another. What hangs on a message hangs on those without an id that follow it.

    :param by_id: messages in the order of the file, with ids of :func:`name_message`.

    >>> note = name_message("", 1)
    >>> link_to_parents({"q": {}, note: {}, "a": {"parentId": "q"}})["a"] == note
    True
    """
    behind = _find_unnamed_behind(by_id)
    beginning = behind.get("")
    parents, before = dict[str, Any](), ""
    for own, each in by_id.items():
        named = first_field(each, *_PARENTS) if _names_parent(each) else before
        is_known = named in by_id and named != own
        if own.startswith(_UNNAMED):
            parents[own] = named if is_known else before or None
        elif named == before or (not is_known and before == beginning):
            parents[own] = before or None
        elif named == own:
            parents[own] = None
        else:
            parents[own] = behind.get(named, named or None)
        before = own
    return parents


def _find_unnamed_behind(by_id: dict[str, Any]) -> dict[str, str]:
    """Give the last of the messages without an id that follow each message, and of those at the beginning."""
    behind = dict[str, str]()
    followed: str | None = ""
    for own, each in by_id.items():
        if not own.startswith(_UNNAMED):
            followed = own
        elif first_field(each, *_PARENTS) in by_id:
            followed = None
        elif followed is not None:
            behind[followed] = own
    return behind


def date_messages(by_id: dict[str, Any], parents: dict[str, Any]) -> dict[str, tuple[float, int]]:
    """Give the time of each message and its place, by which leaves are compared.

    One without a time has that of its parent.
    """
    ages = dict[str, tuple[float, int]]()
    for place, (own, each) in enumerate(by_id.items()):
        ages[own] = (_read_age(each) or ages.get(parents[own], (0.0, 0))[0], place)
    return ages


def _read_age(each: Any) -> float:
    """Give the time of a message in seconds, by which leaves are compared; the same for all without one."""
    with suppress(BadField, ValueError, OverflowError, OSError):
        when = parse_time(read_time_value(each), "timestamp")
        return place_in_zone(when, UTC, None).timestamp()
    return 0.0


def read_newest_conversations(
    source: Source, label: str, read: Callable[[Record], Iterable[Any]]
) -> Iterator[Any]:
    """Give what a function makes of each value of the members; one that is bad is rejected as a whole.

    Of a conversation that several exports hold, the newest copy is read.
    """
    # Of a single file nothing is newer.
    looked_through = source.members if len(source.members) > 1 else []
    apart = [replace(file, report=Report()) for file in looked_through]
    newest = newest_versions(raw for file in apart for _, raw in file.values())
    for file, number, raw in source.member_values():
        key, version = conversation_version(raw)
        if version < newest.get(key, version):
            source.drop("older versions of conversations")
            continue
        with file.record(f"{label} {number}", raw):
            yield from list(read(Record(raw, f"{label} {number}")))


def conversation_version(raw: Any) -> tuple[str, tuple[str, int]]:
    """Give the id of a conversation with all its branches, and when it was changed with how many messages it has.

    >>> conversation_version({"id": "c1", "update_time": 1772355600, "mapping": {"m1": {}}})
    ('c1', ('1772355600', 1))
    """
    about = raw if isinstance(raw, dict) else {}
    tree = about.get("mapping") or about.get("chat_messages")
    key = about.get("conversation_id") or about.get("uuid") or about.get("id")
    changed = about.get("update_time") or about.get("updated_at") or ""
    return (
        (str(key), (str(changed), len(tree)))
        if key and isinstance(tree, (dict, list))
        else ("", ("", 0))
    )


def newest_versions(values: Iterable[Any]) -> dict[str, tuple[str, int]]:
    """Give the newest version of each conversation of several exports, see :func:`conversation_version`."""
    newest: dict[str, tuple[str, int]] = {}
    for key, version in map(conversation_version, values):
        newest[key] = max(version, newest.get(key, version))
    return newest
