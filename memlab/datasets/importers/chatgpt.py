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
from memlab.datasets.importers.message_branches import newest_branch, read_newest_conversations
from memlab.datasets.record_fields import Record
from memlab.datasets.record_sources import Source
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
    read_conversation = partial(_read_chatgpt_conversation, source)
    yield from read_newest_conversations(source, "conversation", read_conversation)


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
    conversation_facts = _Conversation(source, session, _find_wrong_times(conversation, nodes))
    node_keys = list[str]()
    spoken_messages = list[Any]()
    for node_key, node in zip(branch, nodes, strict=True):
        node_message = get_nested(node, "message")
        if node_message is not None:
            node_keys.append(node_key)
            spoken_messages.append(node_message)
    return _read_messages(conversation_facts, node_keys, spoken_messages)


def _read_messages(
    conversation: _Conversation, node_keys: list[str], raw_messages: list[Any]
) -> list[Message]:
    """Give the records of messages, whose nodes have some keys.

    Most conversations begin with a message that is hidden, and go on with plain texts.
    """
    plain_start = 0
    while plain_start < len(raw_messages) and not _read_plain_text(raw_messages[plain_start]):
        plain_start += 1
    messages = list[Message]()
    for node_key, raw_message in zip(node_keys[:plain_start], raw_messages, strict=False):
        messages += _read_message(conversation, node_key, raw_message)
    plain_messages = None
    if not conversation.wrong:
        plain_messages = read_in_columns(
            conversation.source,
            conversation.session,
            raw_messages[plain_start:],
            conversation.latest,
        )
    if plain_messages is not None:
        return messages + plain_messages
    for node_key, raw_message in zip(
        node_keys[plain_start:], raw_messages[plain_start:], strict=True
    ):
        messages += _read_message(conversation, node_key, raw_message)
    return messages


def _read_message(conversation: _Conversation, key: str, raw_message: Any) -> Sequence[Message]:
    """Give the record of a message, or nothing of one that is left out.

    :param key: of its node.
    """
    source = conversation.source
    caption = ""
    text = _read_plain_text(raw_message)
    if text:
        role = raw_message["author"]["role"]
    else:
        content = _read_content(source, raw_message, conversation.reports)
        if content is None:
            return ()
        role, text, caption = content
    written_at = _read_time(conversation, raw_message)
    if not text.isascii():
        text = _MARKER.sub(_render_marker, text)
    message_fields = {
        "caption": caption,
        "timestamp": written_at,
        "id": first_text(raw_message.get("id"), key),
    }
    return make_message(
        source, OWNER_SCOPE, role, text, role=role, session=conversation.session, **message_fields
    )


def _read_time(conversation: _Conversation, raw_message: Any) -> Any:
    """Give the time of a message, or that of the one before it, which it cannot lie before."""
    created_at = raw_message.get("create_time")
    if not created_at or not isinstance(created_at, float):
        created_at = first_time(created_at)
    if created_at in conversation.wrong:
        conversation.source.drop("times after the end of their conversation", OWNER_SCOPE)
        return None
    if not isinstance(created_at, (int, float)):
        return created_at
    conversation.source.keep(
        EARLIER_TIMES, OWNER_SCOPE, RAISED, int(created_at < conversation.latest)
    )
    conversation.latest = max(
        created_at, conversation.latest
    )  # Voice mode writes times out of order.
    return conversation.latest


def _climb_to_root(mapping: dict[str, Any], current: Any) -> list[str] | None:
    """Give the nodes from the root to the current one; ``None`` where not each names its parent.

    There :func:`_find_branch` has to look for more than what the nodes name.
    """
    branch = list[str]()
    node_key = current
    try:
        for _ in mapping:
            branch.append(node_key)
            node_key = mapping[node_key]["parent"]
            if not node_key:
                break
        children = chain.from_iterable(map(itemgetter("children"), mapping.values()))
        if node_key or not branch or branch[-1] in children:
            return None
    except (KeyError, TypeError):
        return None
    branch.reverse()
    return branch


def _find_branch(mapping: dict[str, Any], current: Any) -> list[str]:
    parents = _link_to_parents(mapping)
    ages = dict[str, float]()
    for node_key in parents:
        ages[node_key] = _creation_time(mapping.get(node_key))
    return newest_branch(parents, current, ages.__getitem__)


def _link_to_parents(mapping: dict[str, Any]) -> dict[str, Any]:
    """Give the parent of each node: the one that it names, or whose child it is.

    Nodes that are named and missing have one too.
    """
    parents_by_child: dict[str, str] = {}
    for node_key, node in mapping.items():
        for child in get_list(node, "children"):
            if isinstance(child, str):
                parents_by_child[child] = node_key
    parents = dict[str, Any]()
    for node_key, node in mapping.items():
        parent = get_nested(node, "parent")
        if not parent:
            parent = parents_by_child.get(node_key)
        parents[node_key] = parent
    for node_key, parent in parents_by_child.items():
        parents.setdefault(node_key, parent)
    return parents


def _count_other_branches(source: Source, mapping: dict[str, Any], branch: list[str]) -> None:
    """Count the messages that the branch does not have."""
    n_spoken = 0
    for node_key in mapping.keys() - set(branch):
        if get_nested(mapping[node_key], "message.author.role") in ("user", "assistant"):
            n_spoken += 1
    source.drop("messages of other branches", OWNER_SCOPE, n_spoken)


def _read_plain_text(raw_message: Any) -> str:
    """Give what somebody says in a message of one text and nothing else, as most are.

    It is empty for any other.
    """
    try:
        content = raw_message["content"]
        parts = content["parts"]
        if raw_message["author"]["role"] not in ("user", "assistant"):
            return ""
        if content["content_type"] != "text" or type(parts) is not list:
            return ""
        (text,) = parts
        metadata = raw_message.get("metadata")
        if metadata and not MORE.isdisjoint(metadata):
            return ""
        if (
            raw_message.get("recipient") not in (None, "all")
            or raw_message.get("channel") == "analysis"
        ):
            return ""
    except (AttributeError, KeyError, TypeError, ValueError):
        return ""
    if not isinstance(text, str) or _may_hold_more(raw_message):
        return ""
    return text


def _may_hold_more(raw_message: dict[str, Any]) -> bool:
    """Say whether a key that nobody knows may hold words, which are counted."""
    for key, value in raw_message.items():
        if not value:
            continue
        value_type = type(value)
        if value_type is str:
            if " " in value:
                return True
        elif (value_type is dict or value_type is list) and key not in _READ:
            return True
    return False


def _read_content(
    source: Source, raw_message: Any, reports: set[str]
) -> tuple[Any, str, str] | None:
    """Give role, text and caption of a message of any kind, ``None`` of one that is left out.

    :param reports: those that were given; each is given once.
    """
    role = get_nested(raw_message, "author.role")
    report = _read_report(raw_message)
    if report and str(report) not in reports:
        reports.add(str(report))
        role = "assistant"
        raw_message = {"content": report}
    else:
        reason = _omission_reason(
            raw_message, role, first_field(raw_message, "content.content_type")
        )
        if reason:
            source.drop(reason, OWNER_SCOPE)
            return None
    parts = get_list(raw_message, "content.parts")
    if not parts:
        parts = [get_nested(raw_message, "content.text")]
    if role == "tool":
        role = "assistant"
        parts = list(filter(_is_generated, parts))
    text, caption = text_and_caption(source, OWNER_SCOPE, parts)
    count_unread_texts(source, OWNER_SCOPE, raw_message, _READ, text)
    return role, text, _add_file_names(caption, raw_message)


def _add_file_names(caption: str, raw_message: Any) -> str:
    """Put the names of attached files to a caption: they name the images of the text."""
    file_names = list[str]()
    for file in get_list(raw_message, "metadata.attachments"):
        file_name = describe_file(file, "name")
        if file_name:
            file_names.append(file_name)
    if not file_names:
        return caption
    described_parts = [
        caption_part for caption_part in caption.split("; ") if caption_part not in ("", "image")
    ]
    return "; ".join(described_parts + file_names)


def _creation_time(node: Any) -> float:
    """Give the time of a node, by which leaves are compared; -1 of one without a message."""
    if not isinstance(node, dict):
        return -1.0
    message = node.get("message")
    if not message:
        return -1.0
    if not isinstance(message, dict):
        return 0.0
    created_at = message.get("create_time")
    if isinstance(created_at, (int, float)):
        return created_at
    return 0.0


def _find_wrong_times(conversation: Record, nodes: list[Any]) -> set[float]:
    """Give the times that lie more than a day after the end of a conversation.

    Where most do, the end is wrong.
    """
    changed_at = conversation.get("update_time")
    if not isinstance(changed_at, (int, float)):
        return set()
    latest_likely = changed_at + _DAY
    later_times = [
        created_at for created_at in map(_creation_time, nodes) if created_at > latest_likely
    ]
    if 2 * len(later_times) < len(nodes):
        return set(later_times)
    return set()


def _read_report(raw_message: Any) -> dict[str, Any]:
    """Give the content of a report of Deep Research, which is in what a widget was shown (2026).

    It is empty without one.
    """
    if get_nested(raw_message, "author.role") != "tool":
        return {}
    first_part = first_text(*get_list(raw_message, "content.parts")[:1])
    widget = get_nested(raw_message, "metadata.chatgpt_sdk.widget_state")
    for state in (first_part.removeprefix(_WIDGET), widget):
        content = get_nested(decode_json(state), "report_message.content")
        if get_list(content, "parts"):
            return content
    return {}


def _render_marker(marker: re.Match[str]) -> str:
    """Read what a marker shows: the name of an entity, the label of a link; else nothing."""
    marker_text = marker[1] or ""
    marker_kind, *shown_parts = marker_text.split("\ue202")
    if not shown_parts:
        return ""
    if marker_kind == "url":
        return shown_parts[0]
    if marker_kind != "entity":
        return ""
    entity_parts = list_or_empty(decode_json(shown_parts[0]))
    if entity_parts:
        return first_text(*entity_parts[1:2])
    return shown_parts[0]


def _is_generated(content_part: Any) -> bool:
    """Say whether a part of what a tool gives is an image that it drew.

    Others are pages of files and the like.
    """
    return first_filled(content_part, "metadata.dalle", "metadata.generation") is not None


def _omission_reason(raw_message: Any, role: Any, kind: Any) -> str:
    """Say as what a message is left out, if it is."""
    if _is_of_system(raw_message, role, kind):
        return "system messages"
    if role not in ("user", "assistant", "tool"):
        return "unreadable messages"
    if kind in _THOUGHTS or raw_message.get("channel") == "analysis":
        return "thoughts"
    if role == "tool":
        if any(map(_is_generated, get_list(raw_message, "content.parts"))):
            return ""
        return "tool calls"
    if role == "assistant":
        recipient = first_text(raw_message.get("recipient"), "all")
        if recipient.startswith("canmore."):
            return "documents"
        if recipient == "all" and kind == "code":
            return ""
        if recipient != "all":
            return "tool calls"
    if kind in _TEXT:
        return ""
    return "tool calls"


def _is_of_system(raw_message: Any, role: Any, kind: Any) -> bool:
    if role == "system" or kind in _CONTEXT:
        return True
    return any(get_nested(raw_message, path) is True for path in _HIDDEN)
