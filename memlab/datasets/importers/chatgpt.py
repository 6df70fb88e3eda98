"""ChatGPT's ``conversations.json``: a tree of messages a conversation, of which the branch that is
shown is kept.

Layout: mitkury/chatgpt-export-parser, ``docs/chatgpt-data-export-format.md``. Large accounts get
several files ``conversations-000.json`` and so on.

Most messages are one text that a person or the assistant says, and most branches a path of nodes
that each name their parent. Both have a short way, which gives what the long one does: see
:mod:`memlab.datasets.importers.chatgpt_columns` and :func:`_climb_to_root`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any

from memlab.datasets.fields import Record
from memlab.datasets.importers.branches import newest_branch, read_newest_conversations
from memlab.datasets.importers.chatgpt_columns import (
    EARLIER_TIMES,
    MARKERS,
    MORE,
    RAISED,
    read_in_columns,
)
from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    describe_file,
    make_message,
    text_and_caption,
)
from memlab.datasets.importers.loose_json import (
    decode_json,
    first_field,
    first_filled,
    first_text,
    first_time,
    get_list,
    get_nested,
    list_or_empty,
)
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import count_unread_texts

_TEXT = {"text", "multimodal_text"}
_CONTEXT = {"user_editable_context", "model_editable_context"}
_THOUGHTS = {"thoughts", "reasoning_recap"}
_WIDGET = "The latest state of the widget is:"
_DAY = 86_400
_HIDDEN = ("metadata.is_visually_hidden_from_conversation", "metadata.is_user_system_message")
_MARKER = re.compile(f"\ue200([^\ue200\ue201]*)\ue201|[{MARKERS}]")
_READ = {"content", "metadata", "author"}


def is_chatgpt_export(file: Source) -> bool:
    keys = file.keys
    if "mapping" not in keys:
        return False
    return not keys.isdisjoint(("current_node", "create_time", "conversation_id"))


def read_chatgpt_export(source: Source) -> Iterator[Message]:
    """Read every conversation as a session of one scope."""
    read = partial(_read_chatgpt_conversation, source)
    yield from read_newest_conversations(source, "conversation", read)


@dataclass
class _Conversation:
    """A conversation on its way into messages.

    :param wrong: times of its messages that cannot be.
    :param latest: the latest time so far.
    :param reports: those that were given; each is given once.
    """

    source: Source
    session: str
    wrong: set[float]
    latest: float = 0.0
    reports: set[str] = field(default_factory=set)


def _read_chatgpt_conversation(source: Source, conversation: Record) -> list[Message]:
    mapping = conversation.take("mapping", Record)
    session = first_field(conversation, "conversation_id", "id", "title")
    branch = _climb_to_root(mapping, conversation.get("current_node"))
    if branch is None:
        branch = _find_branch(mapping, conversation.get("current_node"))
    _count_other_branches(source, mapping, branch)
    nodes = list(map(mapping.get, branch))
    about = _Conversation(source, session, _find_wrong_times(conversation, nodes))
    keys, said = list[str](), list[Any]()
    for key, node in zip(branch, nodes, strict=True):
        each = get_nested(node, "message")
        if each is not None:
            keys.append(key)
            said.append(each)
    return _read_messages(about, keys, said)


def _read_messages(about: _Conversation, keys: list[str], said: list[Any]) -> list[Message]:
    """Give the records of messages, whose nodes have some keys.

    Most conversations begin with a message that is hidden, and go on with plain texts.
    """
    begin = 0
    while begin < len(said) and not _read_plain_text(said[begin]):
        begin += 1
    messages = list[Message]()
    for key, each in zip(keys[:begin], said, strict=False):
        messages += _read_message(about, key, each)
    plain = None
    if not about.wrong:
        plain = read_in_columns(about.source, about.session, said[begin:], about.latest)
    if plain is not None:
        return messages + plain
    for key, each in zip(keys[begin:], said[begin:], strict=True):
        messages += _read_message(about, key, each)
    return messages


def _read_message(about: _Conversation, key: str, each: Any) -> Sequence[Message]:
    """Give the record of a message, or nothing of one that is left out.

    :param key: of its node.
    """
    source, caption = about.source, ""
    text = _read_plain_text(each)
    if text:
        role = each["author"]["role"]
    else:
        content = _read_content(source, each, about.reports)
        if content is None:
            return ()
        role, text, caption = content
    when = _read_time(about, each)
    if not text.isascii():
        text = _MARKER.sub(_render_marker, text)
    more = {"caption": caption, "timestamp": when, "id": first_text(each.get("id"), key)}
    return make_message(source, OWNER_SCOPE, role, text, role=role, session=about.session, **more)


def _read_time(about: _Conversation, each: Any) -> Any:
    """Give the time of a message, or that of the one before it, which it cannot lie before."""
    when = each.get("create_time")
    if not when or not isinstance(when, float):
        when = first_time(when)
    if when in about.wrong:
        about.source.drop("times after the end of their conversation", OWNER_SCOPE)
        return None
    if not isinstance(when, (int, float)):
        return when
    about.source.keep(EARLIER_TIMES, OWNER_SCOPE, RAISED, int(when < about.latest))
    about.latest = max(when, about.latest)  # Voice mode writes times out of order.
    return about.latest


def _climb_to_root(mapping: dict[str, Any], current: Any) -> list[str] | None:
    """Give the nodes from the root to the current one; ``None`` where not each names its parent.

    There :func:`_find_branch` has to look for more than what the nodes name.
    """
    branch = list[str]()
    key = current
    try:
        for _ in mapping:
            branch.append(key)
            key = mapping[key]["parent"]
            if not key:
                break
        children = chain.from_iterable(map(itemgetter("children"), mapping.values()))
        if key or not branch or branch[-1] in children:
            return None
    except (KeyError, TypeError):
        return None
    branch.reverse()
    return branch


def _find_branch(mapping: dict[str, Any], current: Any) -> list[str]:
    parents = _link_to_parents(mapping)
    ages = dict[str, float]()
    for key in parents:
        ages[key] = _creation_time(mapping.get(key))
    return newest_branch(parents, current, ages.__getitem__)


def _link_to_parents(mapping: dict[str, Any]) -> dict[str, Any]:
    """Give the parent of each node: the one that it names, or whose child it is.

    Nodes that are named and missing have one too.
    """
    above: dict[str, str] = {}
    for key, node in mapping.items():
        for child in get_list(node, "children"):
            if isinstance(child, str):
                above[child] = key
    parents = dict[str, Any]()
    for key, node in mapping.items():
        parent = get_nested(node, "parent")
        if not parent:
            parent = above.get(key)
        parents[key] = parent
    for key, parent in above.items():
        parents.setdefault(key, parent)
    return parents


def _count_other_branches(source: Source, mapping: dict[str, Any], branch: list[str]) -> None:
    """Count the messages that the branch does not have."""
    spoken = 0
    for key in mapping.keys() - set(branch):
        if get_nested(mapping[key], "message.author.role") in ("user", "assistant"):
            spoken += 1
    source.drop("messages of other branches", OWNER_SCOPE, spoken)


def _read_plain_text(each: Any) -> str:
    """Give what somebody says in a message of one text and nothing else, as most are.

    It is empty for any other.
    """
    try:
        content = each["content"]
        parts = content["parts"]
        if each["author"]["role"] not in ("user", "assistant"):
            return ""
        if content["content_type"] != "text" or type(parts) is not list:
            return ""
        (text,) = parts
        about = each.get("metadata")
        if about and not MORE.isdisjoint(about):
            return ""
        if each.get("recipient") not in (None, "all") or each.get("channel") == "analysis":
            return ""
    except (AttributeError, KeyError, TypeError, ValueError):
        return ""
    if not isinstance(text, str) or _may_hold_more(each):
        return ""
    return text


def _may_hold_more(each: dict[str, Any]) -> bool:
    """Say whether a key that nobody knows may hold words, which are counted."""
    for key, value in each.items():
        if not value:
            continue
        kind = type(value)
        if kind is str:
            if " " in value:
                return True
        elif (kind is dict or kind is list) and key not in _READ:
            return True
    return False


def _read_content(source: Source, each: Any, reports: set[str]) -> tuple[Any, str, str] | None:
    """Give role, text and caption of a message of any kind, ``None`` of one that is left out.

    :param reports: those that were given; each is given once.
    """
    role, report = get_nested(each, "author.role"), _read_report(each)
    if report and str(report) not in reports:
        reports.add(str(report))
        role, each = "assistant", {"content": report}
    else:
        reason = _omission_reason(each, role, first_field(each, "content.content_type"))
        if reason:
            source.drop(reason, OWNER_SCOPE)
            return None
    parts = get_list(each, "content.parts")
    if not parts:
        parts = [get_nested(each, "content.text")]
    if role == "tool":
        role = "assistant"
        parts = list(filter(_is_generated, parts))
    text, caption = text_and_caption(source, OWNER_SCOPE, parts)
    count_unread_texts(source, OWNER_SCOPE, each, _READ, text)
    return role, text, _add_file_names(caption, each)


def _add_file_names(caption: str, each: Any) -> str:
    """Put the names of attached files to a caption: they name the images of the text."""
    names = list[str]()
    for file in get_list(each, "metadata.attachments"):
        name = describe_file(file, "name")
        if name:
            names.append(name)
    if not names:
        return caption
    described = [part for part in caption.split("; ") if part not in ("", "image")]
    return "; ".join(described + names)


def _creation_time(node: Any) -> float:
    """Give the time of a node, by which leaves are compared; -1 of one without a message."""
    if not isinstance(node, dict):
        return -1.0
    message = node.get("message")
    if not message:
        return -1.0
    if not isinstance(message, dict):
        return 0.0
    when = message.get("create_time")
    if isinstance(when, (int, float)):
        return when
    return 0.0


def _find_wrong_times(conversation: Record, nodes: list[Any]) -> set[float]:
    """Give the times that lie more than a day after the end of a conversation.

    Where most do, the end is wrong.
    """
    end = conversation.get("update_time")
    if not isinstance(end, (int, float)):
        return set()
    latest = end + _DAY
    after = [when for when in map(_creation_time, nodes) if when > latest]
    if 2 * len(after) < len(nodes):
        return set(after)
    return set()


def _read_report(each: Any) -> dict[str, Any]:
    """Give the content of a report of Deep Research, which is in what a widget was shown (2026).

    It is empty without one.
    """
    if get_nested(each, "author.role") != "tool":
        return {}
    said = first_text(*get_list(each, "content.parts")[:1])
    widget = get_nested(each, "metadata.chatgpt_sdk.widget_state")
    for state in (said.removeprefix(_WIDGET), widget):
        content = get_nested(decode_json(state), "report_message.content")
        if get_list(content, "parts"):
            return content
    return {}


def _render_marker(marker: re.Match[str]) -> str:
    """Read what a marker shows: the name of an entity, the label of a link; else nothing."""
    written = marker[1] or ""
    kind, *shown = written.split("\ue202")
    if not shown:
        return ""
    if kind == "url":
        return shown[0]
    if kind != "entity":
        return ""
    listed = list_or_empty(decode_json(shown[0]))
    if listed:
        return first_text(*listed[1:2])
    return shown[0]


def _is_generated(part: Any) -> bool:
    """Say whether a part of what a tool gives is an image that it drew.

    Others are pages of files and the like.
    """
    return first_filled(part, "metadata.dalle", "metadata.generation") is not None


def _omission_reason(each: Any, role: Any, kind: Any) -> str:
    """Say as what a message is left out, if it is."""
    if _is_of_system(each, role, kind):
        return "system messages"
    if role not in ("user", "assistant", "tool"):
        return "unreadable messages"
    if kind in _THOUGHTS or each.get("channel") == "analysis":
        return "thoughts"
    if role == "tool":
        if any(map(_is_generated, get_list(each, "content.parts"))):
            return ""
        return "tool calls"
    if role == "assistant":
        called = first_text(each.get("recipient"), "all")
        if called.startswith("canmore."):
            return "documents"
        if called == "all" and kind == "code":
            return ""
        if called != "all":
            return "tool calls"
    if kind in _TEXT:
        return ""
    return "tool calls"


def _is_of_system(each: Any, role: Any, kind: Any) -> bool:
    if role == "system" or kind in _CONTEXT:
        return True
    return any(get_nested(each, path) is True for path in _HIDDEN)
