"""Discord, as DiscordChatExporter writes it in JSON: a file a channel, or several parts of one.

Layout: its ``JsonMessageWriter.cs`` and ``MessageKind.cs``; kinds that it has no name for are
numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from memlab.datasets.chatlog import messenger_role
from memlab.datasets.importers.export_messages import (
    ChatNames,
    Message,
    make_message,
    name_chat,
    name_person,
)
from memlab.datasets.importers.loose_json import first_field, get_list, get_nested
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import count_unread_texts

_TALK = frozenset(
    (
        *("", "Default", "Reply", "0", "19", "20"),
        *("ChatInputCommand", "21", "ThreadStarterMessage", "23"),
    )
)
_MENTION = re.compile(r"<@!?([^>&\s]+)>")
_EMOJI = re.compile(r"<a?(:\w+:)\d+>")
_READ = frozenset(
    (
        *("author", "embeds", "attachments", "stickers", "reactions", "mentions"),
        *("inlineEmojis", "reference", "interaction"),
        "forwardedMessage.embeds",
        *("forwardedMessage.attachments", "forwardedMessage.stickers"),
    )
)
"""Keys of a message that are read, or say nothing."""


@dataclass
class _People:
    """Who takes part.

    :param names: by their ids; ``taken``: see :func:`name_person`.
    """

    names: dict[str, str] = field(default_factory=dict)
    taken: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, scope: str, person: Any) -> None:
        """Take up a person; bots have names as they like."""
        called = first_field(person, "nickname", "name")
        if not called:
            return
        key = first_field(person, "id")
        own_id = key
        if get_nested(person, "isBot") is True:
            own_id = ""
        self.names[key] = name_person(self.taken, scope, own_id, called)

    def render_mentions(self, text: str) -> str:
        """Write the names of people and emojis in place of their ids."""
        named = _MENTION.sub(lambda found: f"@{self.names.get(found[1], found[1])}", text)
        return _EMOJI.sub(r"\1", named)


def is_discord_export(file: Source) -> bool:
    if not {"guild", "channel"} <= file.keys:
        return False
    return not file.keys.isdisjoint({"messages", "channel.id", "exportedAt"})


def read_discord_export(source: Source) -> Iterator[Message]:
    """Read every channel as a scope.

    A bot is no assistant unless its name says so or it was named.
    """
    names = ChatNames()
    people = _People()
    for file in source.members:
        channel_fields: dict[str, Any] = {}
        for path, value in file.stream_json("messages"):
            if path != "messages":
                channel_fields[path] = value
                continue
            channel = first_field(channel_fields, "channel.name") or file.path.stem
            scope = name_chat(names, first_field(channel_fields, "channel.id") or channel, channel)
            yield from _read_discord_message(source, scope, people, value)


def _read_discord_message(
    source: Source, scope: str, people: _People, message: Any
) -> Sequence[Message]:
    kind = first_field(message, "type")
    if kind == "Call":
        return source.drop("calls", scope)
    if kind not in _TALK:
        return source.drop("system messages", scope)
    if not isinstance(message, dict):
        return source.drop("unreadable messages", scope)
    author = message.get("author")
    passed_on = message.get("forwardedMessage")
    for person in (author, *get_list(message, "mentions")):
        people.add(scope, person)
    sender = people.names.get(first_field(author, "id")) or "Deleted User"
    is_bot = get_nested(author, "isBot")
    if not isinstance(is_bot, bool):
        is_bot = None
    written = first_field(message, "content")
    forwarded = first_field(passed_on, "content")
    text = "\n".join(filter(None, (written, forwarded)))
    if passed_on:
        source.keep("forwarded messages", scope)
    embeds = get_list(message, "embeds") + get_list(passed_on, "embeds")
    if text and not is_bot:
        source.drop("previews of links", scope, len(embeds))
    else:
        text = "\n".join(filter(None, (text, *_list_embedded(embeds))))
    text = people.render_mentions(text)
    files = get_list(message, "attachments") + get_list(passed_on, "attachments")
    caption = "; ".join(f"file: {first_field(file, 'fileName')}" for file in files)
    if caption:
        source.keep("files", scope, "described in captions")
    if message.get("timestampEdited"):
        source.keep("edited messages", scope)
    stickers = get_list(message, "stickers") + get_list(passed_on, "stickers")
    if stickers and not text and not caption:
        return source.drop("stickers", scope)
    count_unread_texts(source, scope, message, _READ, f"{text}\n{written}\n{forwarded}")
    called = first_field(author, "nickname", "name")
    columns = {
        "id": first_field(message, "id"),
        "role": messenger_role(source, called, is_bot=is_bot),
        "caption": caption,
        "edited": message.get("timestampEdited"),
    }
    if written and forwarded:
        columns["quoted"] = [people.render_mentions(forwarded)]
    elif passed_on and not written:
        columns["forwarded_from"] = "unknown"  # the export does not say whose it was
    return make_message(source, scope, sender, text, timestamp=message.get("timestamp"), **columns)


def _list_embedded(embeds: list[Any]) -> Iterator[str]:
    """Give the texts of what is embedded: titles and descriptions, then names and values."""
    for embed in embeds:
        yield first_field(embed, "title")
        yield first_field(embed, "description")
    for embed in embeds:
        for entry in get_list(embed, "fields"):
            pair = first_field(entry, "name"), first_field(entry, "value")
            yield ": ".join(filter(None, pair))
