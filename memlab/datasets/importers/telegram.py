"""Telegram Desktop's ``result.json``: one chat, or an account with ``chats.list``.

Layout: tdesktop's ``export_output_json.cpp``, tg-parser's TELEGRAM_FORMAT.md. ``text`` is a string
or a list of parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from memlab.datasets.importers.export_messages import (
    ChatNames,
    Message,
    find_or_add_chat_name,
    find_or_add_person_name,
    make_message_or_count_drop,
)
from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    first_field_text,
    first_non_empty_text,
    first_possible_time,
    get_nested,
    get_nested_list,
    list_or_empty,
)
from memlab.datasets.record_sources import Source
from memlab.datasets.sender_roles import messenger_role_and_count_guess
from memlab.datasets.unread_texts import count_unread_texts

_TYPES = re.compile(
    r'"type"\s*:\s*"(?:personal_chat|bot_chat|saved_messages|replies'
    r'|(?:private|public)_(?:group|supergroup|channel))"'
)
_KEYS = {"messages.date_unixtime", "messages.from_id", "messages.actor_id"}
_KEYS |= {"messages.text_entities"}
_KEYS |= {"chats.list.messages", "personal_information.user_id", "left_chats.list"}
_LISTS = ("messages", "chats.list", "left_chats.list")
_MEDIA = {
    "video_file": "videos",
    "audio_file": "audio files",
    "sticker": "stickers",
    "voice_message": "voice messages",
    "video_message": "video messages",
    "animation": "animations",
}
_OTHERS = {
    "photo": "photos",
    "file": "files",
    "location_information": "locations",
    "contact_information": "contacts",
    "invoice_information": "invoices",
    "giveaway_information": "giveaways",
    "game_title": "games",
}
"""What a message carries beside text, by its kind, or by the key that it stands under."""
_NAMED = {"files", "videos", "audio files"}  # the others' names are made by Telegram
_LISTED = (("poll", "polls", "question"), ("todo_list", "checklists", "title"))
_REPAIRS = (
    (
        re.compile(r"(?<!\\)((?:\\\\)*)\\x([01][0-9A-F])"),
        r"\1\\u00\2",
    ),  # control characters, of any version
    (
        re.compile(r'("document_id": )(?!null)([^\s"\d{\[-][^"\r\n]*?)(?=,?\r?\n)'),
        r'\1"\2"',
    ),  # paths, of 4.1.1
)


_READ = {"text", "text_entities", "from", "actor", "author", "forwarded_from", "saved_from"}
_READ |= {"photo", "file", "thumbnail"}


def is_telegram_export(file: Source) -> bool:
    if not file.keys.isdisjoint(_KEYS):
        return True
    return "messages" in file.keys and _TYPES.search(file.head) is not None


@dataclass
class _KnownNamesAndTopics:
    """What the messages of an account share.

    :param names: see :func:`find_or_add_chat_name`; ``taken``: see :func:`find_or_add_person_name`.
    :param topics: the session of every message in a topic of a forum, by scope and id; ``titles``:
        those of the topics, each with its scope.
    """

    names: ChatNames = field(default_factory=ChatNames)
    taken: dict[tuple[str, str], str] = field(default_factory=dict)
    topics: dict[tuple[str, str], str] = field(default_factory=dict)
    titles: set[tuple[str, str]] = field(default_factory=set)

    def find_or_add_topic_of_message(self, scope: str, raw_message: JsonObject) -> str | None:
        """Give the topic of a message, which is that of what it answers; ``None`` without one.

        A topic is known by its first message.
        """
        message_id = first_field_text(raw_message, "id")
        topic = self.topics.get((scope, first_field_text(raw_message, "reply_to_message_id")))
        if raw_message.get("action") == "topic_created":
            topic = f"topic {first_field_text(raw_message, 'title') or message_id}"
            if (scope, topic) in self.titles:
                topic = f"{topic} ({message_id})"
            self.titles.add((scope, topic))
        if topic:
            self.topics[scope, message_id] = topic
        return topic


def read_telegram_export(source: Source) -> Iterator[Message]:
    """Read every chat as a scope of its own, and every topic of a forum as a session."""
    account = _KnownNamesAndTopics()
    for file in source.members:
        chat_fields: dict[str, Any] = {}
        for json_path, value in file.stream_json(
            *_LISTS, repair=partial(_repair_and_count_broken_json, source)
        ):
            if json_path == "messages":
                yield from _read_message_or_count_drop(source, account, chat_fields, value)
            elif json_path.endswith(".list"):
                for message in get_nested_list(value, "messages"):
                    yield from _read_message_or_count_drop(source, account, value, message)
            else:
                chat_fields[json_path] = value


def _repair_and_count_broken_json(source: Source, json_text: str) -> str:
    """Mend what Telegram Desktop writes that is no JSON."""
    for broken_form, proper_form in _REPAIRS:
        json_text, count = broken_form.subn(proper_form, json_text)
        source.keep("broken values of the JSON", "", "repaired", count)
    return json_text


def _read_message_or_count_drop(
    source: Source, account: _KnownNamesAndTopics, chat_fields: JsonObject, raw_message: JsonValue
) -> Sequence[Message]:
    chat_type = first_field_text(chat_fields, "type")
    chat_id = first_field_text(chat_fields, "id")
    chat_type_name = chat_type.replace("_", " ").capitalize()
    title = first_non_empty_text(get_nested(chat_fields, "name"), chat_type_name, source.path.stem)
    scope = find_or_add_chat_name(account.names, chat_id or title, title)
    topic = None
    if isinstance(raw_message, dict):
        topic = account.find_or_add_topic_of_message(scope, raw_message)
    message_type = get_nested(raw_message, "type")
    if message_type != "message":
        return source.drop(_reason_to_drop_non_message(message_type, raw_message), scope)
    text = _join_text_and_count_poll_or_checklist(source, scope, raw_message)
    media_name = _plural_kind_of_media_or_empty(raw_message)
    media_text = _name_of_media_or_empty(media_name, raw_message)
    if media_name and not text.strip() and not media_text:
        return source.drop(f"{media_name} without text", scope)
    caption = ""
    if media_name:
        source.keep(media_name, scope, "described in captions")
        caption = ": ".join(filter(None, (media_name.removesuffix("s"), media_text)))
    sender_name = first_non_empty_text(
        first_field_text(raw_message, "from", "actor", "from_id"), "Deleted Account"
    )
    person_id = first_field_text(raw_message, "from_id").removeprefix(
        "user"
    )  # a bare number in old files
    is_bot = chat_type == "bot_chat" and person_id == chat_id
    role = "assistant"
    if not is_bot:
        role = messenger_role_and_count_guess(source, sender_name)
    signature = first_field_text(raw_message, "author")
    if signature and chat_type.endswith("_channel"):  # in groups it is the title of an admin
        sender = signature
    elif is_bot:
        sender = sender_name
    else:
        sender = find_or_add_person_name(account.taken, scope, person_id, sender_name)
    if raw_message.get("edited") and not str(raw_message["edited"]).startswith(
        "1970"
    ):  # of old, not edited
        source.keep("edited messages", scope)
    writer = _find_forwarded_writer_or_empty(raw_message)
    if writer:
        source.keep("forwarded messages", scope)
    if writer == sender_name:
        writer = ""
    if writer and text.strip():
        text = f"{writer}: {text}"
    count_unread_texts(source, scope, raw_message, _READ, f"{text}\n{caption}")
    columns = {
        "id": first_field_text(raw_message, "id"),
        "session": topic,
        "role": role,
        "caption": caption,
        "timestamp": first_possible_time(raw_message.get("date_unixtime"), raw_message.get("date")),
        "forwarded_from": writer,
        "quoted": _list_quotations(raw_message.get("text")),
        "edited": raw_message.get("edited"),
    }
    return make_message_or_count_drop(source, scope, sender, text, **columns)


def _reason_to_drop_non_message(message_type: JsonValue, raw_message: JsonValue) -> str:
    """Name what is no message, in the plural."""
    if message_type == "unsupported":
        return "unsupported messages"
    if str(get_nested(raw_message, "action")).endswith("call"):
        return "calls"
    return "system messages"


def _find_forwarded_writer_or_empty(raw_message: JsonObject) -> str:
    """Give whose words a message passes on; empty where it passes none on."""
    if "forwarded_from" not in raw_message:
        return first_non_empty_text(raw_message.get("saved_from"))
    return first_non_empty_text(raw_message["forwarded_from"], "Deleted Account")


def _list_quotations(raw_text: JsonValue) -> list[str]:
    """Give the parts of a text that are marked as quotations, as :func:`_join_text_parts`
    writes them.
    """
    quotations = list[str]()
    for text_part in list_or_empty(raw_text):
        if first_field_text(text_part, "type") == "blockquote":
            quotations.append(_join_text_parts(text_part).strip())
    return list(filter(None, quotations))


def _join_text_and_count_poll_or_checklist(
    source: Source, scope: str, raw_message: JsonObject
) -> str:
    """Give the text of a message, with its poll or checklist."""
    message_texts = [_join_text_parts(raw_message.get("text"))]
    for listed_key, plural, title_path in _LISTED:
        listed_object = raw_message.get(listed_key)
        if listed_object:
            source.keep(plural, scope, "kept as text")
            message_texts.append(_join_text_parts(get_nested(listed_object, title_path)))
            answers = get_nested_list(listed_object, "answers")
            message_texts.append(
                " / ".join(_join_text_parts(get_nested(answer, "text")) for answer in answers)
            )
    return "\n".join(filter(None, message_texts))


def _join_text_parts(raw_text: JsonValue) -> str:
    """Join a text of parts; a link behind a word is put after it."""
    if isinstance(raw_text, str):
        return raw_text
    if isinstance(raw_text, list):
        return "".join(map(_join_text_parts, raw_text))
    if not isinstance(raw_text, dict):
        return ""
    inner_text = _join_text_parts(raw_text.get("text"))
    address = first_field_text(raw_text, "href")
    if address and address != inner_text:
        return f"{inner_text} ({address})"
    return inner_text


def _plural_kind_of_media_or_empty(raw_message: JsonObject) -> str:
    """Name what a message carries beside text, in the plural; empty if nothing."""
    media_type = first_field_text(raw_message, "media_type")
    if media_type:
        return _MEDIA.get(media_type, "media")
    for media_key, plural in _OTHERS.items():
        if raw_message.get(media_key):
            return plural
    return ""


def _name_of_media_or_empty(plural_kind: str, raw_message: JsonObject) -> str:
    """Name a place, a song, a game, a file or a contact that a message carries."""
    name_keys = ["place_name", "title", "game_title"]
    if plural_kind in _NAMED:
        name_keys.append("file_name")
    contact = raw_message.get("contact_information")
    contact_name = first_field_text(contact, "first_name"), first_field_text(contact, "last_name")
    return first_non_empty_text(first_field_text(raw_message, *name_keys), " ".join(contact_name))
