"""Telegram Desktop's ``result.json``: one chat, or an account with ``chats.list``.

Layout: tdesktop's ``export_output_json.cpp``, tg-parser's TELEGRAM_FORMAT.md. ``text`` is a string or a list of parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from memlab.datasets._json import fields
from memlab.datasets.importers.common import Export, Message, Names, dig, items, name, time
from memlab.datasets.importers.files import Member

_TYPES = re.compile(
    r'"type"\s*:\s*"(?:personal_chat|bot_chat|saved_messages|replies|(?:private|public)_(?:group|supergroup|channel))"'
)
_KEYS = {"messages.date_unixtime", "messages.from_id", "messages.actor_id", "messages.text_entities"}
_KEYS |= {"chats.list.messages", "personal_information.user_id", "left_chats.list"}
_MEDIA = {
    "sticker": "stickers", "voice_message": "voice messages", "video_message": "video messages",
    "animation": "animations", "video_file": "videos", "audio_file": "audio files",
}  # fmt: skip


def matches(member: Member) -> bool:
    keys = member.keys
    return bool(keys & _KEYS) or ("messages" in keys and bool(_TYPES.search(member.head)))


def read(source: Export) -> Iterator[Message]:
    """Read every chat as a scope of its own."""
    names = Names()
    for member in source.members:
        about: dict[str, Any] = {}
        for path, value in fields(member, "messages", "chats.list", "left_chats.list"):
            if path == "messages":
                yield from _message(source, names, about, value)
            elif path.endswith(".list"):
                for message in items(dig(value, "messages")):
                    yield from _message(source, names, value, message)
            else:
                about[path] = value


def _message(source: Export, names: Names, chat: dict[str, Any], message: Any) -> Iterator[Message]:
    called = name(chat.get("name")) or name(chat.get("type")).replace("_", " ").capitalize() or source.path.stem
    scope = names.give(name(chat.get("id"), called), called)
    kind = dig(message, "type")
    if kind != "message":
        call = str(dig(message, "action")).endswith("call")
        source.drop("unsupported messages" if kind == "unsupported" else "calls" if call else "system messages", scope)
        return
    text = flat(message.get("text"))
    text, caption = _with_media(source, scope, text, message)
    if not text and not caption and _media(message):
        return
    sender = name(message.get("from"), message.get("actor"), message.get("from_id")) or "Deleted Account"
    bot = chat.get("type") == "bot_chat" and name(message.get("from_id")) == f"user{chat.get('id')}"
    for key in ("edited", "forwarded_from"):
        if message.get(key):
            source.keep("edited messages" if key == "edited" else "forwarded messages", scope)
    role = "assistant" if bot else None
    when = time(message.get("date_unixtime")) or time(message.get("date"))
    yield from source.message(
        scope, sender, text, id=name(message.get("id")), role=role, timestamp=when, caption=caption
    )


def flat(text: Any) -> str:
    """Join a text of parts; a link behind a word is put after it."""
    if isinstance(text, dict):
        inner = flat(text.get("text"))
        href = name(text.get("href"))
        return f"{inner} ({href})" if href and href != inner else inner
    return "".join(map(flat, text)) if isinstance(text, list) else text if isinstance(text, str) else ""


def _media(message: dict[str, Any]) -> str:
    """Name what a message carries beside text, in the plural; empty if nothing."""
    kind = name(message.get("media_type"))
    if kind or message.get("photo"):
        return _MEDIA.get(kind, "media") if kind else "photos"
    others = {"file": "files", "location_information": "locations", "contact_information": "contacts"}
    others |= {"game_title": "games", "invoice_information": "invoices", "giveaway_information": "giveaways"}
    return next((what for key, what in others.items() if message.get(key)), "")


def _with_media(source: Export, scope: str, text: str, message: dict[str, Any]) -> tuple[str, str]:
    """Give the text with a poll in it, and the caption of what has a name; media without either are counted."""
    if poll := message.get("poll"):
        answers = [flat(dig(answer, "text")) for answer in items(dig(poll, "answers"))]
        text = f"{flat(dig(poll, 'question'))}\n{' / '.join(answers)}".strip()
        source.keep("polls", scope, "kept as text")
    what = _media(message)
    contact = message.get("contact_information")
    known = name(message.get("place_name"), message.get("title"), message.get("game_title"))
    known = known or name(message.get("file_name") if what == "files" else None)
    known = known or " ".join(name(dig(contact, key)) for key in ("first_name", "last_name")).strip()
    if what and (text.strip() or known):
        source.keep(what, scope, "described in captions")
        return text, f"{what.removesuffix('s')}: {known}" if known else what.removesuffix("s")
    source.drop(what and f"{what} without text", scope, bool(what))
    return text, ""
