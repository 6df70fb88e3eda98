"""Discord, as DiscordChatExporter writes it in JSON: a file a channel, or several parts of one.

Layout: its ``JsonMessageWriter.cs`` and ``MessageKind.cs``; kinds that it has no name for are numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from memlab.datasets._json import fields
from memlab.datasets.importers.common import Export, Message, Names, dig, items, name, time
from memlab.datasets.importers.files import Member

_TALK = {"", "Default", "Reply", "0", "19", "20", "ChatInputCommand", "21", "ThreadStarterMessage", "23"}
_MENTION = re.compile(r"<@!?([^>&\s]+)>")
_EMOJI = re.compile(r"<a?(:\w+:)\d+>")


def matches(member: Member) -> bool:
    return {"guild", "channel"} <= member.keys and bool(member.keys & {"messages", "channel.id", "exportedAt"})


def read(source: Export) -> Iterator[Message]:
    """Read every channel as a scope; a bot is no assistant unless its name says so or it was named."""
    names, people = Names(), dict[str, str]()
    for member in source.members:
        about: dict[str, Any] = {}
        for path, value in fields(member, "messages"):
            if path != "messages":
                about[path] = value
                continue
            channel = name(dig(about.get("channel"), "name")) or member.path.stem
            scope = names.give(name(dig(about.get("channel"), "id"), channel), channel)
            yield from _message(source, scope, people, value)


def _message(source: Export, scope: str, people: dict[str, str], message: Any) -> Iterator[Message]:
    kind = name(dig(message, "type"))
    if not isinstance(message, dict) or kind not in _TALK:
        source.drop("calls" if kind == "Call" else "system messages" if kind else "unreadable messages", scope)
        return
    author = message.get("author")
    for person in (author, *items(message.get("mentions"))):
        if called := name(dig(person, "nickname"), dig(person, "name")):
            people[name(dig(person, "id"))] = called
    sender = people.get(name(dig(author, "id"))) or "Deleted User"
    text, forwarded = name(message.get("content")), message.get("forwardedMessage")
    if forwarded:
        source.keep("forwarded messages", scope)
        text = "\n".join(filter(None, (text, name(dig(forwarded, "content")))))
    embeds = [name(dig(each, key)) for each in items(message.get("embeds")) for key in ("title", "description")]
    text = text or "\n".join(filter(None, embeds))
    text = _EMOJI.sub(r"\1", _MENTION.sub(lambda found: f"@{people.get(found[1], found[1])}", text))
    files = [*items(message.get("attachments")), *items(dig(forwarded, "attachments"))]
    caption = "; ".join(f"file: {name(dig(each, 'fileName'))}" for each in files)
    if caption:
        source.keep("files", scope, "described in captions")
    if message.get("timestampEdited"):
        source.keep("edited messages", scope)
    if not text and not caption and items(message.get("stickers")):
        source.drop("stickers", scope)
        return
    bot = dig(author, "isBot") is True
    role = "assistant" if source.is_assistant(sender) else "other" if bot else None
    when = time(message.get("timestamp"))
    yield from source.message(
        scope, sender, text, id=name(message.get("id")), role=role, timestamp=when, caption=caption
    )
