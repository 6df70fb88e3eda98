"""Discord, as DiscordChatExporter writes it in JSON: a file a channel, or several parts of one.

Layout: its ``JsonMessageWriter.cs`` and ``MessageKind.cs``; kinds that it has no name for are
numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from memlab.datasets.importers.export_messages import (
    ChatNames,
    Message,
    make_message,
    name_chat,
    name_person,
)
from memlab.datasets.importers.loose_json import first_field, get_list, get_nested
from memlab.datasets.record_sources import Source
from memlab.datasets.sender_roles import messenger_role
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
        shown_name = first_field(person, "nickname", "name")
        if not shown_name:
            return
        user_id = first_field(person, "id")
        own_id = user_id
        if get_nested(person, "isBot") is True:
            own_id = ""
        self.names[user_id] = name_person(self.taken, scope, own_id, shown_name)

    def render_mentions(self, text: str) -> str:
        """Write the names of people and emojis in place of their ids."""
        named_text = _MENTION.sub(
            lambda mention: f"@{self.names.get(mention[1], mention[1])}", text
        )
        return _EMOJI.sub(r"\1", named_text)


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
    message_type = first_field(message, "type")
    if message_type == "Call":
        return source.drop("calls", scope)
    if message_type not in _TALK:
        return source.drop("system messages", scope)
    if not isinstance(message, dict):
        return source.drop("unreadable messages", scope)
    author = message.get("author")
    forwarded_message = message.get("forwardedMessage")
    for person in (author, *get_list(message, "mentions")):
        people.add(scope, person)
    sender = people.names.get(first_field(author, "id")) or "Deleted User"
    is_bot = get_nested(author, "isBot")
    if not isinstance(is_bot, bool):
        is_bot = None
    written_text = first_field(message, "content")
    forwarded_text = first_field(forwarded_message, "content")
    text = "\n".join(filter(None, (written_text, forwarded_text)))
    if forwarded_message:
        source.keep("forwarded messages", scope)
    embeds = get_list(message, "embeds") + get_list(forwarded_message, "embeds")
    if text and not is_bot:
        source.drop("previews of links", scope, len(embeds))
    else:
        text = "\n".join(filter(None, (text, *_list_embedded(embeds))))
    text = people.render_mentions(text)
    attached_files = get_list(message, "attachments") + get_list(forwarded_message, "attachments")
    caption = "; ".join(
        f"file: {first_field(attached_file, 'fileName')}" for attached_file in attached_files
    )
    if caption:
        source.keep("files", scope, "described in captions")
    if message.get("timestampEdited"):
        source.keep("edited messages", scope)
    stickers = get_list(message, "stickers") + get_list(forwarded_message, "stickers")
    if stickers and not text and not caption:
        return source.drop("stickers", scope)
    count_unread_texts(source, scope, message, _READ, f"{text}\n{written_text}\n{forwarded_text}")
    author_name = first_field(author, "nickname", "name")
    columns = {
        "id": first_field(message, "id"),
        "role": messenger_role(source, author_name, is_bot=is_bot),
        "caption": caption,
        "edited": message.get("timestampEdited"),
    }
    if written_text and forwarded_text:
        columns["quoted"] = [people.render_mentions(forwarded_text)]
    elif forwarded_message and not written_text:
        columns["forwarded_from"] = "unknown"  # the export does not say whose it was
    return make_message(source, scope, sender, text, timestamp=message.get("timestamp"), **columns)


def _list_embedded(embeds: list[Any]) -> Iterator[str]:
    """Give the texts of what is embedded: titles and descriptions, then names and values."""
    for embed in embeds:
        yield first_field(embed, "title")
        yield first_field(embed, "description")
    for embed in embeds:
        for entry in get_list(embed, "fields"):
            name_and_value = first_field(entry, "name"), first_field(entry, "value")
            yield ": ".join(filter(None, name_and_value))
