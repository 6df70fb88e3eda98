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
    find_or_add_chat_name,
    find_or_add_person_name,
    make_message_or_count_drop,
)
from memlab.datasets.importers.loose_json import (
    JsonValue,
    first_field_text,
    get_nested,
    get_nested_list,
)
from memlab.datasets.record_sources import Source
from memlab.datasets.sender_roles import messenger_role_and_count_guess
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
class _DiscordPeople:
    """Who takes part.

    :param names: by their ids; ``taken``: see :func:`find_or_add_person_name`.
    """

    names: dict[str, str] = field(default_factory=dict)
    taken: dict[tuple[str, str], str] = field(default_factory=dict)

    def add_person_with_unique_name(self, scope: str, raw_person: JsonValue) -> None:
        """Take up a person; bots have names as they like."""
        shown_name = first_field_text(raw_person, "nickname", "name")
        if not shown_name:
            return
        user_id = first_field_text(raw_person, "id")
        own_id = user_id
        if get_nested(raw_person, "isBot") is True:
            own_id = ""
        self.names[user_id] = find_or_add_person_name(self.taken, scope, own_id, shown_name)

    def render_mentions_and_emojis(self, text: str) -> str:
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
    people = _DiscordPeople()
    for file in source.members:
        channel_fields: dict[str, Any] = {}
        for path, value in file.stream_json("messages"):
            if path != "messages":
                channel_fields[path] = value
                continue
            channel = first_field_text(channel_fields, "channel.name") or file.path.stem
            scope = find_or_add_chat_name(
                names, first_field_text(channel_fields, "channel.id") or channel, channel
            )
            yield from _read_message_or_count_drop(source, scope, people, value)


def _read_message_or_count_drop(
    source: Source, scope: str, people: _DiscordPeople, raw_message: JsonValue
) -> Sequence[Message]:
    message_type = first_field_text(raw_message, "type")
    if message_type == "Call":
        return source.drop("calls", scope)
    if message_type not in _TALK:
        return source.drop("system messages", scope)
    if not isinstance(raw_message, dict):
        return source.drop("unreadable messages", scope)
    author = raw_message.get("author")
    forwarded_message = raw_message.get("forwardedMessage")
    for person in (author, *get_nested_list(raw_message, "mentions")):
        people.add_person_with_unique_name(scope, person)
    sender = people.names.get(first_field_text(author, "id")) or "Deleted User"
    is_bot = get_nested(author, "isBot")
    if not isinstance(is_bot, bool):
        is_bot = None
    written_text = first_field_text(raw_message, "content")
    forwarded_text = first_field_text(forwarded_message, "content")
    text = "\n".join(filter(None, (written_text, forwarded_text)))
    if forwarded_message:
        source.keep("forwarded messages", scope)
    embeds = get_nested_list(raw_message, "embeds") + get_nested_list(forwarded_message, "embeds")
    if text and not is_bot:
        source.drop("previews of links", scope, len(embeds))
    else:
        text = "\n".join(filter(None, (text, *_list_texts_of_embeds(embeds))))
    text = people.render_mentions_and_emojis(text)
    attached_files = get_nested_list(raw_message, "attachments") + get_nested_list(
        forwarded_message, "attachments"
    )
    caption = "; ".join(
        f"file: {first_field_text(attached_file, 'fileName')}" for attached_file in attached_files
    )
    if caption:
        source.keep("files", scope, "described in captions")
    if raw_message.get("timestampEdited"):
        source.keep("edited messages", scope)
    stickers = get_nested_list(raw_message, "stickers") + get_nested_list(
        forwarded_message, "stickers"
    )
    if stickers and not text and not caption:
        return source.drop("stickers", scope)
    count_unread_texts(
        source, scope, raw_message, _READ, f"{text}\n{written_text}\n{forwarded_text}"
    )
    author_name = first_field_text(author, "nickname", "name")
    columns = {
        "id": first_field_text(raw_message, "id"),
        "role": messenger_role_and_count_guess(source, author_name, is_bot=is_bot),
        "caption": caption,
        "edited": raw_message.get("timestampEdited"),
    }
    if written_text and forwarded_text:
        columns["quoted"] = [people.render_mentions_and_emojis(forwarded_text)]
    elif forwarded_message and not written_text:
        columns["forwarded_from"] = "unknown"  # the export does not say whose it was
    return make_message_or_count_drop(
        source, scope, sender, text, timestamp=raw_message.get("timestamp"), **columns
    )


def _list_texts_of_embeds(raw_embeds: list[JsonValue]) -> Iterator[str]:
    """Give the texts of what is embedded: titles and descriptions, then names and values."""
    for embed in raw_embeds:
        yield first_field_text(embed, "title")
        yield first_field_text(embed, "description")
    for embed in raw_embeds:
        for entry in get_nested_list(embed, "fields"):
            name_and_value = first_field_text(entry, "name"), first_field_text(entry, "value")
            yield ": ".join(filter(None, name_and_value))
