"""Telegram Desktop's ``result.json``: one chat, or an account with ``chats.list``.

Layout: tdesktop's ``export_output_json.cpp``, tg-parser's TELEGRAM_FORMAT.md. ``text`` is a string or a list of parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from memlab.datasets.importers.common import Message, Names, any_of, dig, items, message, time
from memlab.datasets.reading import Source
from memlab.datasets.streams import members

_TYPES = re.compile(
    r'"type"\s*:\s*"(?:personal_chat|bot_chat|saved_messages|replies|(?:private|public)_(?:group|supergroup|channel))"'
)
_KEYS = {"messages.date_unixtime", "messages.from_id", "messages.actor_id", "messages.text_entities"}
_KEYS |= {"chats.list.messages", "personal_information.user_id", "left_chats.list"}
_MEDIA = {
    "sticker": "stickers",
    "voice_message": "voice messages",
    "video_message": "video messages",
    "animation": "animations",
    "video_file": "videos",
    "audio_file": "audio files",
}
_OTHERS = {
    "file": "files",
    "location_information": "locations",
    "contact_information": "contacts",
    "game_title": "games",
    "invoice_information": "invoices",
    "giveaway_information": "giveaways",
}


def detect(file: Source) -> bool:
    return bool(file.keys & _KEYS) or ("messages" in file.keys and bool(_TYPES.search(file.head)))


def records(source: Source) -> Iterator[Message]:
    """Read every chat as a scope of its own."""
    names = Names()
    for file in source.members:
        about: dict[str, Any] = {}
        for path, value in members(file, "messages", "chats.list", "left_chats.list"):
            if path == "messages":
                yield from _message(source, names, about, value)
            elif path.endswith(".list"):
                for each in items(dig(value, "messages")):
                    yield from _message(source, names, value, each)
            else:
                about[path] = value


def _message(source: Source, names: Names, chat: dict[str, Any], each: Any) -> Iterator[Message]:
    called = any_of(chat, "name") or any_of(chat, "type").replace("_", " ").capitalize() or source.path.stem
    scope = names.give(any_of(chat, "id") or called, called)
    kind = dig(each, "type")
    if kind != "message":
        call = str(dig(each, "action")).endswith("call")
        source.drop("unsupported messages" if kind == "unsupported" else "calls" if call else "system messages", scope)
        return
    text, caption = _said(source, scope, each)
    if not text and not caption and _media(each):
        return
    sender = any_of(each, "from", "actor", "from_id") or "Deleted Account"
    bot = chat.get("type") == "bot_chat" and any_of(each, "from_id") == f"user{chat.get('id')}"
    for key, kept in (("edited", "edited messages"), ("forwarded_from", "forwarded messages")):
        if each.get(key):
            source.keep(kept, scope)
    more = {"id": any_of(each, "id"), "role": "assistant" if bot else None, "caption": caption}
    when = time(each.get("date_unixtime"), each.get("date"))
    yield from message(source, scope, sender, text, timestamp=when, **more)


def flat(text: Any) -> str:
    """Join a text of parts; a link behind a word is put after it."""
    if isinstance(text, dict):
        inner, href = flat(text.get("text")), any_of(text, "href")
        return f"{inner} ({href})" if href and href != inner else inner
    return "".join(map(flat, text)) if isinstance(text, list) else text if isinstance(text, str) else ""


def _media(each: dict[str, Any]) -> str:
    """Name what a message carries beside text, in the plural; empty if nothing."""
    kind = any_of(each, "media_type")
    if kind or each.get("photo"):
        return _MEDIA.get(kind, "media") if kind else "photos"
    return next((what for key, what in _OTHERS.items() if each.get(key)), "")


def _said(source: Source, scope: str, each: dict[str, Any]) -> tuple[str, str]:
    """Give the text, or the poll, and the caption of media that have a name; media without either are counted."""
    text, what = flat(each.get("text")), _media(each)
    if poll := each.get("poll"):
        answers = [flat(dig(answer, "text")) for answer in items(dig(poll, "answers"))]
        text = f"{flat(dig(poll, 'question'))}\n{' / '.join(answers)}".strip()
        source.keep("polls", scope, "kept as text")
    contact = each.get("contact_information")
    person = " ".join(any_of(contact, key) for key in ("first_name", "last_name")).strip()
    known = any_of(each, "place_name", "title", "game_title", *["file_name"] * (what == "files")) or person
    if what and (text.strip() or known):
        source.keep(what, scope, "described in captions")
        return text, f"{what.removesuffix('s')}: {known}" if known else what.removesuffix("s")
    if what:
        source.drop(f"{what} without text", scope)
    return text, ""
