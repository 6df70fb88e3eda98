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

from memlab.datasets.chatlog import messenger_role
from memlab.datasets.importers.export_messages import Message, make_message, name_chat, name_person
from memlab.datasets.importers.loose_json import first_field, first_time, get_list, get_nested
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import count_unread_texts

_TYPES = re.compile(
    r'"type"\s*:\s*"(?:personal_chat|bot_chat|saved_messages|replies|(?:private|public)_(?:group|supergroup|channel))"'
)
_KEYS = {
    "messages.date_unixtime",
    "messages.from_id",
    "messages.actor_id",
    "messages.text_entities",
}
_KEYS |= {"chats.list.messages", "personal_information.user_id", "left_chats.list"}
_LISTS = ("messages", "chats.list", "left_chats.list")
_MEDIA = {"video_file": "videos", "audio_file": "audio files"}
_MEDIA |= {
    kind: f"{kind.replace('_', ' ')}s"
    for kind in ("sticker", "voice_message", "video_message", "animation")
}
_OTHERS = {
    f"{kind}_information": f"{kind}s" for kind in ("location", "contact", "invoice", "giveaway")
}
_OTHERS = {"file": "files", **_OTHERS, "game_title": "games"}
_NAMED = {"files", "videos", "audio files"}  # the others' names are made by Telegram
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
    return bool(file.keys & _KEYS) or ("messages" in file.keys and bool(_TYPES.search(file.head)))


@dataclass
class _Account:
    """What the messages of an account share.

    :param names: see :func:`name_chat`; ``taken``: see :func:`name_person`.
    :param topics: the session of every message in a topic of a forum, by scope and id.
    """

    names: dict[str, str] = field(default_factory=dict)
    taken: dict[tuple[str, str], str] = field(default_factory=dict)
    topics: dict[tuple[str, str], str] = field(default_factory=dict)

    def find_topic(self, scope: str, each: dict[str, Any]) -> str:
        """Give the topic of a message, which is that of what it answers; a topic is known by its first message."""
        number = first_field(each, "id")
        topic = self.topics.get((scope, first_field(each, "reply_to_message_id")), "")
        if each.get("action") == "topic_created":
            topic = f"topic {first_field(each, 'title') or number}"
            if topic in self.topics.values():
                topic = f"{topic} ({number})"
        if topic:
            self.topics[scope, number] = topic
        return topic


def read_telegram_export(source: Source) -> Iterator[Message]:
    """Read every chat as a scope of its own, and every topic of a forum as a session."""
    account = _Account()
    for file in source.members:
        about: dict[str, Any] = {}
        for path, value in file.stream_json(*_LISTS, repair=partial(_repair, source)):
            if path == "messages":
                yield from _read_telegram_message(source, account, about, value)
            elif path.endswith(".list"):
                for each in get_list(value, "messages"):
                    yield from _read_telegram_message(source, account, value, each)
            else:
                about[path] = value


def _repair(source: Source, text: str) -> str:
    """Mend what Telegram Desktop writes that is no JSON."""
    for form, proper in _REPAIRS:
        text, n = form.subn(proper, text)
        source.keep("broken values of the JSON", "", "repaired", n)
    return text


def _read_telegram_message(
    source: Source, account: _Account, chat: dict[str, Any], each: Any
) -> Sequence[Message]:
    kind_of_chat, number = first_field(chat, "type"), first_field(chat, "id")
    title = (
        first_field(chat, "name") or kind_of_chat.replace("_", " ").capitalize() or source.path.stem
    )
    scope = name_chat(account.names, number or title, title)
    kind = get_nested(each, "type")
    topic = account.find_topic(scope, each) if isinstance(each, dict) else ""
    if kind != "message":
        call = str(get_nested(each, "action")).endswith("call")
        left = "calls" if call else "system messages"
        return source.drop("unsupported messages" if kind == "unsupported" else left, scope)
    text, what, caption = _message_text(source, scope, each), _name_media(each), ""
    contact = " ".join(
        first_field(each.get("contact_information"), key) for key in ("first_name", "last_name")
    ).strip()
    known = (
        first_field(each, "place_name", "title", "game_title", *["file_name"] * (what in _NAMED))
        or contact
    )
    if what and not text.strip() and not known:
        return source.drop(f"{what} without text", scope)
    if what:
        source.keep(what, scope, "described in captions")
        caption = what.removesuffix("s") + f": {known}" * bool(known)
    called = first_field(each, "from", "actor", "from_id") or "Deleted Account"
    # In groups it is the title of an admin.
    signed = first_field(each, "author") if kind_of_chat.endswith("_channel") else ""
    person = first_field(each, "from_id").removeprefix("user")  # a bare number in old files
    bot = kind_of_chat == "bot_chat" and person == number
    sender = signed or (called if bot else name_person(account.taken, scope, person, called))
    if each.get("edited") and not str(each["edited"]).startswith("1970"):  # of old, not edited
        source.keep("edited messages", scope)
    writer = _find_writer(each)
    if writer:
        source.keep("forwarded messages", scope)
    if writer and writer != called and text.strip():
        text = f"{writer}: {text}"
    count_unread_texts(source, scope, each, _READ, f"{text}\n{caption}")
    role = "assistant" if bot else messenger_role(source, called)
    more: dict[str, Any] = {"id": first_field(each, "id"), "role": role, "caption": caption}
    more["session"] = topic
    more["forwarded_from"] = writer if writer != called else ""
    more["quoted"] = _quotations(each.get("text"))
    when = first_time(each.get("date_unixtime"), each.get("date"))
    return make_message(
        source, scope, sender, text, timestamp=when, edited=each.get("edited"), **more
    )


def _find_writer(each: dict[str, Any]) -> str:
    """Give whose words a message passes on; empty where they are the sender's."""
    if "forwarded_from" not in each:
        return ""
    return first_field(each, "forwarded_from") or "Deleted Account"


def _quotations(text: Any) -> list[str]:
    """Give the parts of a text that are marked as quotations, as :func:`_join_text_parts` writes them."""
    parts = text if isinstance(text, list) else []
    quoted = [part for part in parts if first_field(part, "type") == "blockquote"]
    return [said for part in quoted if (said := _join_text_parts(part).strip())]


def _message_text(source: Source, scope: str, each: dict[str, Any]) -> str:
    """Give the text of a message, with its poll or checklist."""
    texts = [_join_text_parts(each.get("text"))]
    for key, what, title in (("poll", "polls", "question"), ("todo_list", "checklists", "title")):
        if listed := each.get(key):
            source.keep(what, scope, "kept as text")
            items = [
                _join_text_parts(get_nested(item, "text")) for item in get_list(listed, "answers")
            ]
            texts += [_join_text_parts(get_nested(listed, title)), " / ".join(items)]
    return "\n".join(filter(None, texts))


def _join_text_parts(text: Any) -> str:
    """Join a text of parts; a link behind a word is put after it."""
    if isinstance(text, dict):
        inner, href = _join_text_parts(text.get("text")), first_field(text, "href")
        return f"{inner} ({href})" if href and href != inner else inner
    return (
        "".join(map(_join_text_parts, text))
        if isinstance(text, list)
        else text
        if isinstance(text, str)
        else ""
    )


def _name_media(each: dict[str, Any]) -> str:
    """Name what a message carries beside text, in the plural; empty if nothing."""
    if kind := first_field(each, "media_type"):
        return _MEDIA.get(kind, "media")
    return (
        "photos"
        if each.get("photo")
        else next((what for key, what in _OTHERS.items() if each.get(key)), "")
    )
