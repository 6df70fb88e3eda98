"""Telegram Desktop's ``result.json``: one chat, or an account with ``chats.list``.

Layout: tdesktop's ``export_output_json.cpp``, tg-parser's TELEGRAM_FORMAT.md. ``text`` is a string or a list of parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from memlab.datasets.importers import common
from memlab.datasets.importers.common import Message, first_field, get_list, get_nested
from memlab.datasets.reading import Source
from memlab.datasets.streams import stream_json

_TYPES = re.compile(
    r'"type"\s*:\s*"(?:personal_chat|bot_chat|saved_messages|replies|(?:private|public)_(?:group|supergroup|channel))"'
)
_KEYS = {"messages.date_unixtime", "messages.from_id", "messages.actor_id", "messages.text_entities"}
_KEYS |= {"chats.list.messages", "personal_information.user_id", "left_chats.list"}
_MEDIA = {"video_file": "videos", "audio_file": "audio files"}
_MEDIA |= {kind: f"{kind.replace('_', ' ')}s" for kind in ("sticker", "voice_message", "video_message", "animation")}
_OTHERS = {f"{kind}_information": f"{kind}s" for kind in ("location", "contact", "invoice", "giveaway")}
_OTHERS = {"file": "files", **_OTHERS, "game_title": "games"}


def detect(file: Source) -> bool:
    return bool(file.keys & _KEYS) or ("messages" in file.keys and bool(_TYPES.search(file.head)))


def records(source: Source) -> Iterator[Message]:
    """Read every chat as a scope of its own."""
    names = dict[str, str]()
    for file in source.members:
        about: dict[str, Any] = {}
        for path, value in stream_json(file, "messages", "chats.list", "left_chats.list"):
            if path == "messages":
                yield from _read_message(source, names, about, value)
            elif path.endswith(".list"):
                for each in get_list(value, "messages"):
                    yield from _read_message(source, names, value, each)
            else:
                about[path] = value


def _read_message(source: Source, names: dict[str, str], chat: dict[str, Any], each: Any) -> Sequence[Message]:
    called = first_field(chat, "name") or first_field(chat, "type").replace("_", " ").capitalize() or source.path.stem
    scope = common.name_chat(names, first_field(chat, "id") or called, called)
    kind = get_nested(each, "type")
    if kind != "message":
        call = str(get_nested(each, "action")).endswith("call")
        what = "calls" if call else "system messages"
        return source.drop("unsupported messages" if kind == "unsupported" else what, scope)
    text, what, caption = _message_text(source, scope, each), _name_media(each), ""
    person = " ".join(first_field(each.get("contact_information"), key) for key in ("first_name", "last_name")).strip()
    known = first_field(each, "place_name", "title", "game_title", *["file_name"] * (what == "files")) or person
    if what and not text.strip() and not known:
        return source.drop(f"{what} without text", scope)
    if what:
        source.keep(what, scope, "described in captions")
        caption = what.removesuffix("s") + f": {known}" * bool(known)
    sender = first_field(each, "from", "actor", "from_id") or "Deleted Account"
    bot = chat.get("type") == "bot_chat" and first_field(each, "from_id") == f"user{chat.get('id')}"
    for key, kept in (("edited", "edited messages"), ("forwarded_from", "forwarded messages")):
        if each.get(key) and not str(each[key]).startswith("1970"):  # of old, not edited
            source.keep(kept, scope)
    more = {"id": first_field(each, "id"), "role": "assistant" if bot else None, "caption": caption}
    when = common.first_time(each.get("date_unixtime"), each.get("date"))
    return common.make_message(source, scope, sender, text, timestamp=when, **more)


def _message_text(source: Source, scope: str, each: dict[str, Any]) -> str:
    """Give the text of a message, or its poll."""
    if not (poll := each.get("poll")):
        return _join_text_parts(each.get("text"))
    source.keep("polls", scope, "kept as text")
    answers = [_join_text_parts(get_nested(answer, "text")) for answer in get_list(poll, "answers")]
    return f"{_join_text_parts(get_nested(poll, 'question'))}\n{' / '.join(answers)}".strip()


def _join_text_parts(text: Any) -> str:
    """Join a text of parts; a link behind a word is put after it."""
    if isinstance(text, dict):
        inner, href = _join_text_parts(text.get("text")), first_field(text, "href")
        return f"{inner} ({href})" if href and href != inner else inner
    return "".join(map(_join_text_parts, text)) if isinstance(text, list) else text if isinstance(text, str) else ""


def _name_media(each: dict[str, Any]) -> str:
    """Name what a message carries beside text, in the plural; empty if nothing."""
    if kind := first_field(each, "media_type"):
        return _MEDIA.get(kind, "media")
    return "photos" if each.get("photo") else next((what for key, what in _OTHERS.items() if each.get(key)), "")
