"""Which messages of an export are read: the branch that is shown, and the newest copy of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from memlab.datasets.fields import Record, Report
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
