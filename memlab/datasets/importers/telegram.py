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
    make_message,
    name_chat,
    name_person,
)
from memlab.datasets.importers.loose_json import (
    first_field,
    first_text,
    first_time,
    get_list,
    get_nested,
    list_or_empty,
)
from memlab.datasets.record_sources import Source
from memlab.datasets.sender_roles import messenger_role
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
class _Account:
    """What the messages of an account share.

    :param names: see :func:`name_chat`; ``taken``: see :func:`name_person`.
    :param topics: the session of every message in a topic of a forum, by scope and id; ``titles``:
        those of the topics, each with its scope.
    """

    names: ChatNames = field(default_factory=ChatNames)
    taken: dict[tuple[str, str], str] = field(default_factory=dict)
    topics: dict[tuple[str, str], str] = field(default_factory=dict)
    titles: set[tuple[str, str]] = field(default_factory=set)

    def find_topic(self, scope: str, message: dict[str, Any]) -> str:
        """Give the topic of a message, which is that of what it answers.

        A topic is known by its first message.
        """
        message_id = first_field(message, "id")
        topic = self.topics.get((scope, first_field(message, "reply_to_message_id")), "")
        if message.get("action") == "topic_created":
            topic = f"topic {first_field(message, 'title') or message_id}"
            if (scope, topic) in self.titles:
                topic = f"{topic} ({message_id})"
            self.titles.add((scope, topic))
        if topic:
            self.topics[scope, message_id] = topic
        return topic


def read_telegram_export(source: Source) -> Iterator[Message]:
    """Read every chat as a scope of its own, and every topic of a forum as a session."""
    account = _Account()
    for file in source.members:
        chat_fields: dict[str, Any] = {}
        for json_path, value in file.stream_json(*_LISTS, repair=partial(_repair, source)):
            if json_path == "messages":
                yield from _read_telegram_message(source, account, chat_fields, value)
            elif json_path.endswith(".list"):
                for message in get_list(value, "messages"):
                    yield from _read_telegram_message(source, account, value, message)
            else:
                chat_fields[json_path] = value


def _repair(source: Source, text: str) -> str:
    """Mend what Telegram Desktop writes that is no JSON."""
    for broken_form, proper_form in _REPAIRS:
        text, count = broken_form.subn(proper_form, text)
        source.keep("broken values of the JSON", "", "repaired", count)
    return text


def _read_telegram_message(
    source: Source, account: _Account, chat: dict[str, Any], message: Any
) -> Sequence[Message]:
    chat_type = first_field(chat, "type")
    chat_id = first_field(chat, "id")
    chat_type_name = chat_type.replace("_", " ").capitalize()
    title = first_text(get_nested(chat, "name"), chat_type_name, source.path.stem)
    scope = name_chat(account.names, chat_id or title, title)
    topic = ""
    if isinstance(message, dict):
        topic = account.find_topic(scope, message)
    message_type = get_nested(message, "type")
    if message_type != "message":
        return source.drop(_name_other(message_type, message), scope)
    text = _message_text(source, scope, message)
    media_name = _name_media(message)
    media_text = _describe_media(media_name, message)
    if media_name and not text.strip() and not media_text:
        return source.drop(f"{media_name} without text", scope)
    caption = ""
    if media_name:
        source.keep(media_name, scope, "described in captions")
        caption = ": ".join(filter(None, (media_name.removesuffix("s"), media_text)))
    sender_name = first_text(first_field(message, "from", "actor", "from_id"), "Deleted Account")
    person_id = first_field(message, "from_id").removeprefix("user")  # a bare number in old files
    is_bot = chat_type == "bot_chat" and person_id == chat_id
    role = "assistant"
    if not is_bot:
        role = messenger_role(source, sender_name)
    signature = first_field(message, "author")
    if signature and chat_type.endswith("_channel"):  # in groups it is the title of an admin
        sender = signature
    elif is_bot:
        sender = sender_name
    else:
        sender = name_person(account.taken, scope, person_id, sender_name)
    if message.get("edited") and not str(message["edited"]).startswith(
        "1970"
    ):  # of old, not edited
        source.keep("edited messages", scope)
    writer = _find_writer(message)
    if writer:
        source.keep("forwarded messages", scope)
    if writer == sender_name:
        writer = ""
    if writer and text.strip():
        text = f"{writer}: {text}"
    count_unread_texts(source, scope, message, _READ, f"{text}\n{caption}")
    columns = {
        "id": first_field(message, "id"),
        "session": topic,
        "role": role,
        "caption": caption,
        "timestamp": first_time(message.get("date_unixtime"), message.get("date")),
        "forwarded_from": writer,
        "quoted": _quotations(message.get("text")),
        "edited": message.get("edited"),
    }
    return make_message(source, scope, sender, text, **columns)


def _name_other(kind: Any, message: Any) -> str:
    """Name what is no message, in the plural."""
    if kind == "unsupported":
        return "unsupported messages"
    if str(get_nested(message, "action")).endswith("call"):
        return "calls"
    return "system messages"


def _find_writer(message: dict[str, Any]) -> str:
    """Give whose words a message passes on; empty where it passes none on."""
    if "forwarded_from" not in message:
        return first_text(message.get("saved_from"))
    return first_text(message["forwarded_from"], "Deleted Account")


def _quotations(text: Any) -> list[str]:
    """Give the parts of a text that are marked as quotations, as :func:`_join_text_parts`
    writes them.
    """
    quotations = list[str]()
    for text_part in list_or_empty(text):
        if first_field(text_part, "type") == "blockquote":
            quotations.append(_join_text_parts(text_part).strip())
    return list(filter(None, quotations))


def _message_text(source: Source, scope: str, message: dict[str, Any]) -> str:
    """Give the text of a message, with its poll or checklist."""
    message_texts = [_join_text_parts(message.get("text"))]
    for listed_key, plural, title_path in _LISTED:
        listed_object = message.get(listed_key)
        if listed_object:
            source.keep(plural, scope, "kept as text")
            message_texts.append(_join_text_parts(get_nested(listed_object, title_path)))
            answers = get_list(listed_object, "answers")
            message_texts.append(
                " / ".join(_join_text_parts(get_nested(answer, "text")) for answer in answers)
            )
    return "\n".join(filter(None, message_texts))


def _join_text_parts(text: Any) -> str:
    """Join a text of parts; a link behind a word is put after it."""
    if isinstance(text, str):
        return text
    if isinstance(text, list):
        return "".join(map(_join_text_parts, text))
    if not isinstance(text, dict):
        return ""
    inner_text = _join_text_parts(text.get("text"))
    address = first_field(text, "href")
    if address and address != inner_text:
        return f"{inner_text} ({address})"
    return inner_text


def _name_media(message: dict[str, Any]) -> str:
    """Name what a message carries beside text, in the plural; empty if nothing."""
    media_type = first_field(message, "media_type")
    if media_type:
        return _MEDIA.get(media_type, "media")
    for media_key, plural in _OTHERS.items():
        if message.get(media_key):
            return plural
    return ""


def _describe_media(media: str, message: dict[str, Any]) -> str:
    """Name a place, a song, a game, a file or a contact that a message carries."""
    name_keys = ["place_name", "title", "game_title"]
    if media in _NAMED:
        name_keys.append("file_name")
    contact = message.get("contact_information")
    contact_name = first_field(contact, "first_name"), first_field(contact, "last_name")
    return first_text(first_field(message, *name_keys), " ".join(contact_name))
