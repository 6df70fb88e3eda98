"""Slack's export: ``users.json``, ``channels.json`` and a folder a channel with a file a day; or one such file.

Layout: Slack's page on reading exports, hfaran/slack-export-viewer. A thread is a session; what stands outside of
threads is split by silence.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from memlab.datasets.importers.common import Export, Message, Names, dig, items, name, time
from memlab.datasets.importers.files import Member
from memlab.errors import DataError

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?:\.jsonl?)?")
_LISTS = ("channels.json", "groups.json", "dms.json", "mpims.json")
_TALK = {"", "thread_broadcast", "reply_broadcast", "me_message", "file_share", "file_comment", "file_mention"}
_TALK |= {"bot_message", "slackbot_response", "assistant_app_thread"}
_LINK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


def matches(member: Member) -> bool:
    keys = member.keys
    one = {"type", "ts"} <= keys and bool(keys & {"user", "text", "subtype", "bot_id"}) and "scope" not in keys
    return one or {"messages.ts", "messages.type"} <= keys


def read(source: Export) -> Iterator[Message]:
    """Read every channel, group and direct conversation as a scope."""
    tables = {PurePosixPath(member.name).name: member for member in source.tables}
    people = _people(_listed(source, tables, "users.json"))
    names, called = Names(), dict[str, str]()
    for each in (each for table in _LISTS for each in _listed(source, tables, table)):
        key = name(dig(each, "id"))
        members = ", ".join(people.get(name(user), name(user)) for user in items(dig(each, "members")))
        called[key] = called[name(dig(each, "name"))] = name(dig(each, "name")) or members
    for member in source.members:
        folder = PurePosixPath(member.name).parent.name or member.path.parent.name
        place = folder if _DAY.match(PurePosixPath(member.name).name) else member.path.stem
        scope = names.give(place, called.get(place) or place)
        for _, raw in member.values():
            for message in items(dig(raw, "messages")) or [raw]:
                yield from _message(source, scope, people, called, message)


def _listed(source: Export, tables: dict[str, Member], table: str) -> list[Any]:
    """Read one of the lists of an export; of a single file, the list that lies beside or above it."""
    member = tables.get(table)
    if member is None:
        beside = [folder / table for folder in (source.path, *source.path.parents[:2]) if (folder / table).is_file()]
        if not beside:
            return []
        member = Member(beside[0], name=table)
    try:
        return [value for _, value in replace(member, on_error="raise").values()]
    except DataError as error:
        source.note(table, str(error), "left out")
        return []


def _people(users: list[Any]) -> dict[str, str]:
    return {name(dig(user, "id")): _called(user) for user in users if _called(user)}


def _called(user: Any) -> str:
    profile = dig(user, "profile")
    return name(
        dig(user, "real_name"), dig(profile, "real_name"), dig(user, "display_name"), dig(profile, "display_name"),
        dig(user, "name"),
    )  # fmt: skip


def _message(
    source: Export, scope: str, people: dict[str, str], channels: dict[str, str], message: Any
) -> Iterator[Message]:
    kind = name(dig(message, "subtype"))
    if not isinstance(message, dict) or message.get("type", "message") != "message" or kind not in _TALK:
        gone = kind in ("tombstone", "message_deleted")
        source.drop("deleted messages" if gone else "edits" if kind == "message_changed" else "system messages", scope)
        return
    user, bot = name(message.get("user")), name(message.get("bot_id"))
    own = _called(message.get("user_profile"))
    sender = people.get(user) or own or name(message.get("username"), dig(message, "bot_profile", "name"), user, bot)
    sender = "Slackbot" if user == "USLACKBOT" else sender or "unknown"
    text = _plain(name(message.get("text")), people, channels) or _plain(_blocks(message), people, channels)
    files = [each for each in items(message.get("files")) or [message.get("file")] if isinstance(each, dict)]
    caption = "; ".join(_file(source, scope, each) for each in files)
    if message.get("edited"):
        source.keep("edited messages", scope)
    automatic = kind in ("bot_message", "slackbot_response") or (bot and not people.get(user))
    role = "assistant" if source.is_assistant(sender) else "other" if automatic else None
    thread = name(message.get("thread_ts"))
    more = {"session": f"thread {thread}" if thread else None, "timestamp": time(message.get("ts")), "caption": caption}
    yield from source.message(scope, sender, text, id=name(message.get("ts")), role=role, **more)


def _file(source: Export, scope: str, file: dict[str, Any]) -> str:
    if file.get("mode") in ("tombstone", "hidden_by_limit"):
        source.drop("deleted files", scope)
        return ""
    source.keep("files", scope, "described in captions")
    image = name(file.get("mimetype")).startswith("image")
    return f"{'image' if image else 'file'}: {name(file.get('title'), file.get('name')) or 'without a name'}"


def _blocks(message: dict[str, Any]) -> str:
    """Give the text of a message that has it in attachments or blocks alone."""
    parts = [
        name(dig(each, key)) for each in items(message.get("attachments")) for key in ("pretext", "title", "text")
    ] + [name(dig(each, "fallback")) for each in items(message.get("attachments")) if not name(dig(each, "text"))]
    found, left = [part for part in parts if part], list(items(message.get("blocks")))
    while left and not parts:
        block = left.pop(0)
        if isinstance(block, dict):
            found += [block["text"]] if isinstance(block.get("text"), str) else []
            left = [*items(block.get("elements")), *items(block.get("fields")), block.get("text"), *left]
    return "\n".join(dict.fromkeys(found))


def _plain(text: str, people: dict[str, str], channels: dict[str, str]) -> str:
    """Write mentions and links as they are read: ``<@U1>``, ``<#C1|general>``, ``<!here>``, ``<https://…|label>``."""

    def written(found: re.Match[str]) -> str:
        mark, target, label = found[1], found[2], found[3]
        if mark == "@":
            return f"@{people.get(target) or label or target}"
        if mark == "#":
            return f"#{label or channels.get(target) or target}"
        if mark == "!":
            return label if label and label.startswith("@") else f"@{label or target.partition('^')[0]}"
        address = target.removeprefix("mailto:")
        return f"{label} ({target})" if label and label not in (target, address) else address

    return html.unescape(_LINK.sub(written, text))
