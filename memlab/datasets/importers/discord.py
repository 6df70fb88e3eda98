"""Discord, as DiscordChatExporter writes it in JSON: a file a channel, or several parts of one.

Layout: its ``JsonMessageWriter.cs`` and ``MessageKind.cs``; kinds that it has no name for are numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from memlab.datasets.chatlog import is_assistant
from memlab.datasets.importers.common import Message, Names, any_of, dig, items, message, name, time
from memlab.datasets.reading import Source
from memlab.datasets.streams import members

_TALK = {"", "Default", "Reply", "0", "19", "20", "ChatInputCommand", "21", "ThreadStarterMessage", "23"}
_MENTION = re.compile(r"<@!?([^>&\s]+)>")
_EMOJI = re.compile(r"<a?(:\w+:)\d+>")


def detect(file: Source) -> bool:
    return {"guild", "channel"} <= file.keys and bool(file.keys & {"messages", "channel.id", "exportedAt"})


def records(source: Source) -> Iterator[Message]:
    """Read every channel as a scope; a bot is no assistant unless its name says so or it was named."""
    names, people = Names(), dict[str, str]()
    for file in source.members:
        about: dict[str, Any] = {}
        for path, value in members(file, "messages"):
            if path != "messages":
                about[path] = value
                continue
            channel = any_of(about.get("channel"), "name") or file.path.stem
            scope = names.give(any_of(about.get("channel"), "id") or channel, channel)
            yield from _message(source, scope, people, value)


def _message(source: Source, scope: str, people: dict[str, str], each: Any) -> Iterator[Message]:
    kind = any_of(each, "type")
    if not isinstance(each, dict) or kind not in _TALK:
        source.drop("calls" if kind == "Call" else "system messages" if kind else "unreadable messages", scope)
        return
    author, forwarded = each.get("author"), each.get("forwardedMessage")
    for person in (author, *items(each.get("mentions"))):
        if called := any_of(person, "nickname", "name"):
            people[any_of(person, "id")] = called
    sender = people.get(any_of(author, "id")) or "Deleted User"
    text = any_of(each, "content")
    if forwarded:
        source.keep("forwarded messages", scope)
        text = "\n".join(filter(None, (text, any_of(forwarded, "content"))))
    embeds = [name(dig(embed, key)) for embed in items(each.get("embeds")) for key in ("title", "description")]
    text = text or "\n".join(filter(None, embeds))
    text = _EMOJI.sub(r"\1", _MENTION.sub(lambda found: f"@{people.get(found[1], found[1])}", text))
    files = [*items(each.get("attachments")), *items(dig(forwarded, "attachments"))]
    caption = "; ".join(f"file: {any_of(file, 'fileName')}" for file in files)
    if caption:
        source.keep("files", scope, "described in captions")
    if each.get("timestampEdited"):
        source.keep("edited messages", scope)
    if not text and not caption and items(each.get("stickers")):
        source.drop("stickers", scope)
        return
    bot = dig(author, "isBot") is True
    role = "assistant" if is_assistant(sender, source.assistants) else "other" if bot else None
    more = {"id": any_of(each, "id"), "role": role, "timestamp": time(each.get("timestamp")), "caption": caption}
    yield from message(source, scope, sender, text, **more)
