"""Discord, as DiscordChatExporter writes it in JSON: a file a channel, or several parts of one.

Layout: its ``JsonMessageWriter.cs`` and ``MessageKind.cs``; kinds that it has no name for are
numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from memlab.datasets.chatlog import messenger_role
from memlab.datasets.importers.export_messages import Message, make_message, name_chat, name_person
from memlab.datasets.importers.loose_json import first_field, get_list, get_nested
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import count_unread_texts

_TALK = {
    "",
    "Default",
    "Reply",
    "0",
    "19",
    "20",
    "ChatInputCommand",
    "21",
    "ThreadStarterMessage",
    "23",
}
_MENTION = re.compile(r"<@!?([^>&\s]+)>")
_EMOJI = re.compile(r"<a?(:\w+:)\d+>")


_READ = {"content", "author", "embeds", "attachments", "stickers", "reactions", "mentions"}
_READ |= {"inlineEmojis", "reference", "interaction"}
_READ |= {f"forwardedMessage.{key}" for key in ("content", "embeds", "attachments", "stickers")}


def is_discord_export(file: Source) -> bool:
    return {"guild", "channel"} <= file.keys and bool(
        file.keys & {"messages", "channel.id", "exportedAt"}
    )


def read_discord_export(source: Source) -> Iterator[Message]:
    """Read every channel as a scope; a bot is no assistant unless its name says so or it was named."""
    names, people, taken = dict[str, str](), dict[str, str](), dict[tuple[str, str], str]()
    for file in source.members:
        about: dict[str, Any] = {}
        for path, value in file.stream_json("messages"):
            if path != "messages":
                about[path] = value
                continue
            channel = first_field(about, "channel.name") or file.path.stem
            scope = name_chat(names, first_field(about, "channel.id") or channel, channel)
            yield from _read_discord_message(source, scope, people, taken, value)


def _read_discord_message(
    source: Source, scope: str, people: dict[str, str], taken: dict[tuple[str, str], str], each: Any
) -> Sequence[Message]:
    """Read a message.

    :param people: names by their ids; ``taken``: see :func:`name_person`.
    """
    kind = first_field(each, "type")
    if not isinstance(each, dict) or kind not in _TALK:
        return source.drop(
            "calls" if kind == "Call" else "system messages" if kind else "unreadable messages",
            scope,
        )
    author, parts = each.get("author"), [each, each.get("forwardedMessage")]
    for person in (author, *get_list(each, "mentions")):
        if called := first_field(person, "nickname", "name"):
            key = first_field(person, "id")
            own = key * (get_nested(person, "isBot") is not True)  # which have names as they like
            people[key] = name_person(taken, scope, own, called)
    sender = people.get(first_field(author, "id")) or "Deleted User"
    own, passed_on = (first_field(part, "content") for part in parts)
    text = "\n".join(filter(None, (own, passed_on)))
    if parts[1]:
        source.keep("forwarded messages", scope)
    embeds, files, stickers = (
        [one for part in parts for one in get_list(part, key)]
        for key in ("embeds", "attachments", "stickers")
    )
    is_bot = get_nested(author, "isBot")
    bot = is_bot is True
    kept = embeds if bot or not text else []
    source.drop("previews of links", scope, len(embeds) - len(kept))
    shown = [first_field(embed, key) for embed in kept for key in ("title", "description")]
    listed = (field for embed in kept for field in get_list(embed, "fields"))
    shown += [
        ": ".join(filter(None, (first_field(each, "name"), first_field(each, "value"))))
        for each in listed
    ]
    text = "\n".join(filter(None, (text, *shown)))
    text = _render_mentions(text, people)
    caption = "; ".join(f"file: {first_field(file, 'fileName')}" for file in files)
    if caption:
        source.keep("files", scope, "described in captions")
    if each.get("timestampEdited"):
        source.keep("edited messages", scope)
    if not text and not caption and stickers:
        return source.drop("stickers", scope)
    count_unread_texts(source, scope, each, _READ, text)
    called = first_field(author, "nickname", "name")
    role = messenger_role(source, called, is_bot=is_bot if isinstance(is_bot, bool) else None)
    more = {
        "id": first_field(each, "id"),
        "role": role,
        "caption": caption,
        # The export does not say whose it was.
        "forwarded_from": "unknown" if parts[1] and not own else None,
        "quoted": [_render_mentions(passed_on, people)] if own and passed_on else None,
        "edited": each.get("timestampEdited"),
    }
    return make_message(source, scope, sender, text, timestamp=each.get("timestamp"), **more)


def _render_mentions(text: str, people: dict[str, str]) -> str:
    """Write the names of people and emojis in place of their ids."""
    named = _MENTION.sub(lambda found: f"@{people.get(found[1], found[1])}", text)
    return _EMOJI.sub(r"\1", named)
