"""ChatGPT's ``conversations.json``: a tree of messages a conversation, of which the branch that is
shown is kept.

Layout: mitkury/chatgpt-export-parser, ``docs/chatgpt-data-export-format.md``. Large accounts get
several files ``conversations-000.json`` and so on.

Most messages are one text that a person or the assistant says, and most branches a path of nodes
that each name their parent. Both have a short way, which gives what the long one does: see
:mod:`memlab.datasets.importers.chatgpt_columns` and :func:`_branch_keys_if_all_name_parents`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from memlab.datasets.importers.chatgpt_columns import (
    EARLIER_TIMES,
    MARKERS,
    MORE,
    RAISED,
    read_messages_if_all_plain,
)
from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    describe_attached_file_or_empty,
    make_message_or_count_drop,
    read_text_and_caption_and_count_rest,
)
from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    RawTime,
    decode_if_json_text,
    first_field_text,
    first_filled_field,
    first_non_empty_text,
    first_possible_time,
    get_nested,
    get_nested_list,
    list_or_empty,
)
from memlab.datasets.importers.message_branches import (
    branch_ids_to_current_or_newest,
    read_newest_copies_and_count_older,
)
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
    yield from read_newest_copies_and_count_older(source, "conversation", read_conversation)


@dataclass
class _ChatgptConversationState:
    """A conversation on its way into messages.

    :param impossible_times: times of its messages that cannot be.
    :param latest_time: the latest time so far.
    :param seen_reports: those that were given; each is given once.
    """

    source: Source
    session: str
    impossible_times: set[float]
    latest_time: float = 0.0

    seen_reports: set[str] = field(default_factory=set)


class _SpokenContent(NamedTuple):
    """What a message says, and who says it."""

    role: str
    text: str
    caption: str


def _read_chatgpt_conversation(source: Source, conversation: Record) -> list[Message]:
    mapping = conversation.read_field("mapping", Record)
    session = first_field_text(conversation, "conversation_id", "id", "title")
    branch = _branch_keys_if_all_name_parents(mapping, conversation.get("current_node"))
    if branch is None:
        branch = _branch_keys_to_current_or_newest(mapping, conversation.get("current_node"))
    _count_messages_off_branch(source, mapping, branch)
    nodes = list(map(mapping.get, branch))
    times_after_end = _find_rare_times_days_after_end(conversation.get("update_time"), nodes)
    state = _ChatgptConversationState(source, session, times_after_end)
    node_keys = list[str]()
    spoken_messages = list[Any]()
    for node_key, node in zip(branch, nodes, strict=True):
        node_message = get_nested(node, "message")
        if node_message is not None:
            node_keys.append(node_key)
            spoken_messages.append(node_message)
    return _read_node_messages(state, node_keys, spoken_messages)


def _read_node_messages(
    state: _ChatgptConversationState, node_keys: list[str], raw_messages: list[JsonValue]
) -> list[Message]:
    """Give the records of messages, whose nodes have some keys.

    Most conversations begin with a message that is hidden, and go on with plain texts.
    """
    plain_start = 0
    while plain_start < len(raw_messages) and not _plain_text_or_empty(raw_messages[plain_start]):
        plain_start += 1
    messages = list[Message]()
    for node_key, raw_message in zip(node_keys[:plain_start], raw_messages, strict=False):
        messages += _read_message_or_count_drop(state, node_key, raw_message)
    plain_messages = None
    if not state.impossible_times:
        plain_messages = read_messages_if_all_plain(
            state.source,
            state.session,
            raw_messages[plain_start:],
            state.latest_time,
        )
    if plain_messages is not None:
        return messages + plain_messages
    for node_key, raw_message in zip(
        node_keys[plain_start:], raw_messages[plain_start:], strict=True
    ):
        messages += _read_message_or_count_drop(state, node_key, raw_message)
    return messages


def _read_message_or_count_drop(
    state: _ChatgptConversationState, node_key: str, raw_message: JsonValue
) -> Sequence[Message]:
    """Give the record of a message, or nothing of one that is left out.

    :param node_key: of its node.
    """
    source = state.source
    caption = ""
    text = _plain_text_or_empty(raw_message)
    if text:
        role = raw_message["author"]["role"]
    else:
        content = _read_spoken_content_or_count_drop(source, raw_message, state.seen_reports)
        if content is None:
            return ()
        role, text, caption = content
    written_at = _read_time_and_advance_latest(state, raw_message)
    if not text.isascii():
        text = _MARKER.sub(_text_shown_for_marker_or_empty, text)
    message_fields = {
        "caption": caption,
        "timestamp": written_at,
        "id": first_non_empty_text(raw_message.get("id"), node_key),
    }
    return make_message_or_count_drop(
        source, OWNER_SCOPE, role, text, role=role, session=state.session, **message_fields
    )


def _read_time_and_advance_latest(
    state: _ChatgptConversationState, raw_message: JsonValue
) -> RawTime | None:
    """Give the time of a message, or that of the one before it, which it cannot lie before."""
    created_at = raw_message.get("create_time")
    if not created_at or not isinstance(created_at, float):
        created_at = first_possible_time(created_at)
    if created_at in state.impossible_times:
        state.source.drop("times after the end of their conversation", OWNER_SCOPE)
        return None
    if not isinstance(created_at, (int, float)):
        return created_at
    state.source.keep(EARLIER_TIMES, OWNER_SCOPE, RAISED, int(created_at < state.latest_time))
    state.latest_time = max(created_at, state.latest_time)  # Voice mode writes times out of order.
    return state.latest_time


def _branch_keys_if_all_name_parents(
    nodes_by_key: JsonObject, current_key: JsonValue
) -> list[str] | None:
    """Give the nodes from the root to the current one; ``None`` where not each names its parent.

    There :func:`_branch_keys_to_current_or_newest` has to look for more than what the nodes name.
    """
    branch_keys = list[str]()
    node_key = current_key
    try:
        for _ in nodes_by_key:
            branch_keys.append(node_key)
            node_key = nodes_by_key[node_key]["parent"]
            if not node_key:
                break
        children = chain.from_iterable(map(itemgetter("children"), nodes_by_key.values()))
        if node_key or not branch_keys or branch_keys[-1] in children:
            return None
    except (KeyError, TypeError):
        return None
    branch_keys.reverse()
    return branch_keys


def _branch_keys_to_current_or_newest(
    nodes_by_key: JsonObject, current_key: JsonValue
) -> list[str]:
    parents = _parent_key_by_node_key(nodes_by_key)
    ages = dict[str, float]()
    for node_key in parents:
        ages[node_key] = _node_seconds_or_zero_or_minus_one(nodes_by_key.get(node_key))
    return branch_ids_to_current_or_newest(parents, current_key, ages.__getitem__)


def _parent_key_by_node_key(nodes_by_key: JsonObject) -> dict[str, JsonValue]:
    """Give the parent of each node: the one that it names, or whose child it is.

    Nodes that are named and missing have one too.
    """
    parents_by_child: dict[str, str] = {}
    for node_key, node in nodes_by_key.items():
        for child in get_nested_list(node, "children"):
            if isinstance(child, str):
                parents_by_child[child] = node_key
    parents = dict[str, Any]()
    for node_key, node in nodes_by_key.items():
        parent = get_nested(node, "parent")
        if not parent:
            parent = parents_by_child.get(node_key)
        parents[node_key] = parent
    for node_key, parent in parents_by_child.items():
        parents.setdefault(node_key, parent)
    return parents


def _count_messages_off_branch(
    source: Source, nodes_by_key: JsonObject, branch_keys: list[str]
) -> None:
    """Count the messages that the branch does not have."""
    n_spoken = 0
    for node_key in nodes_by_key.keys() - set(branch_keys):
        if get_nested(nodes_by_key[node_key], "message.author.role") in ("user", "assistant"):
            n_spoken += 1
    source.drop("messages of other branches", OWNER_SCOPE, n_spoken)


def _plain_text_or_empty(raw_message: JsonValue) -> str:
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
    if not isinstance(text, str) or _may_hold_words_in_unknown_keys(raw_message):
        return ""
    return text


def _may_hold_words_in_unknown_keys(raw_message: JsonObject) -> bool:
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


def _read_spoken_content_or_count_drop(
    source: Source, raw_message: JsonValue, seen_reports: set[str]
) -> _SpokenContent | None:
    """Give role, text and caption of a message of any kind, ``None`` of one that is left out.

    :param seen_reports: those that were given; each is given once.
    """
    role = get_nested(raw_message, "author.role")
    report = _deep_research_report_or_empty(raw_message)
    if report and str(report) not in seen_reports:
        seen_reports.add(str(report))
        role = "assistant"
        raw_message = {"content": report}
    else:
        reason = _reason_to_drop_message_or_empty(
            raw_message, role, first_field_text(raw_message, "content.content_type")
        )
        if reason:
            source.drop(reason, OWNER_SCOPE)
            return None
    parts = get_nested_list(raw_message, "content.parts")
    if not parts:
        parts = [get_nested(raw_message, "content.text")]
    if role == "tool":
        role = "assistant"
        parts = list(filter(_is_generated_image, parts))
    text, caption = read_text_and_caption_and_count_rest(source, OWNER_SCOPE, parts)
    count_unread_texts(source, OWNER_SCOPE, raw_message, _READ, text)
    return _SpokenContent(role, text, _caption_with_file_names(caption, raw_message))


def _caption_with_file_names(caption: str, raw_message: JsonValue) -> str:
    """Put the names of attached files to a caption: they name the images of the text."""
    file_names = list[str]()
    for file in get_nested_list(raw_message, "metadata.attachments"):
        file_name = describe_attached_file_or_empty(file, "name")
        if file_name:
            file_names.append(file_name)
    if not file_names:
        return caption
    described_parts = [
        caption_part for caption_part in caption.split("; ") if caption_part not in ("", "image")
    ]
    return "; ".join(described_parts + file_names)


def _node_seconds_or_zero_or_minus_one(raw_node: JsonValue) -> float:
    """Give the time of a node, by which leaves are compared; -1 of one without a message."""
    if not isinstance(raw_node, dict):
        return -1.0
    message = raw_node.get("message")
    if not message:
        return -1.0
    if not isinstance(message, dict):
        return 0.0
    created_at = message.get("create_time")
    if isinstance(created_at, (int, float)):
        return created_at
    return 0.0


def _find_rare_times_days_after_end(
    changed_at: JsonValue, raw_nodes: list[JsonValue]
) -> set[float]:
    """Give the times that lie more than a day after the end of a conversation.

    Where most do, the end is wrong.
    """
    if not isinstance(changed_at, (int, float)):
        return set()
    latest_likely = changed_at + _DAY
    later_times = [
        created_at
        for created_at in map(_node_seconds_or_zero_or_minus_one, raw_nodes)
        if created_at > latest_likely
    ]
    if 2 * len(later_times) < len(raw_nodes):
        return set(later_times)
    return set()


def _deep_research_report_or_empty(raw_message: JsonValue) -> JsonObject:
    """Give the content of a report of Deep Research, which is in what a widget was shown (2026).

    It is empty without one.
    """
    if get_nested(raw_message, "author.role") != "tool":
        return {}
    first_part = first_non_empty_text(*get_nested_list(raw_message, "content.parts")[:1])
    widget = get_nested(raw_message, "metadata.chatgpt_sdk.widget_state")
    for state in (first_part.removeprefix(_WIDGET), widget):
        content = get_nested(decode_if_json_text(state), "report_message.content")
        if get_nested_list(content, "parts"):
            return content
    return {}


def _text_shown_for_marker_or_empty(marker: re.Match[str]) -> str:
    """Read what a marker shows: the name of an entity, the label of a link; else nothing."""
    marker_text = marker[1] or ""
    marker_kind, *shown_parts = marker_text.split("\ue202")
    if not shown_parts:
        return ""
    if marker_kind == "url":
        return shown_parts[0]
    if marker_kind != "entity":
        return ""
    entity_parts = list_or_empty(decode_if_json_text(shown_parts[0]))
    if entity_parts:
        return first_non_empty_text(*entity_parts[1:2])
    return shown_parts[0]


def _is_generated_image(content_part: JsonValue) -> bool:
    """Say whether a part of what a tool gives is an image that it drew.

    Others are pages of files and the like.
    """
    return first_filled_field(content_part, "metadata.dalle", "metadata.generation") is not None


def _reason_to_drop_message_or_empty(
    raw_message: JsonValue, role: JsonValue, content_type: JsonValue
) -> str:
    """Say as what a message is left out, if it is."""
    if _is_system_or_hidden_message(raw_message, role, content_type):
        return "system messages"
    if role not in ("user", "assistant", "tool"):
        return "unreadable messages"
    if content_type in _THOUGHTS or raw_message.get("channel") == "analysis":
        return "thoughts"
    if role == "tool":
        if any(map(_is_generated_image, get_nested_list(raw_message, "content.parts"))):
            return ""
        return "tool calls"
    if role == "assistant":
        recipient = first_non_empty_text(raw_message.get("recipient"), "all")
        if recipient.startswith("canmore."):
            return "documents"
        if recipient == "all" and content_type == "code":
            return ""
        if recipient != "all":
            return "tool calls"
    if content_type in _TEXT:
        return ""
    return "tool calls"


def _is_system_or_hidden_message(
    raw_message: JsonValue, role: JsonValue, content_type: JsonValue
) -> bool:
    if role == "system" or content_type in _CONTEXT:
        return True
    return any(get_nested(raw_message, path) is True for path in _HIDDEN)
