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

from memlab.datasets.chatlog import is_assistant
from memlab.datasets.importers.common import Message, Names, any_of, attached, dig, items, message, name, time
from memlab.datasets.reading import Source
from memlab.errors import DataError

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?:\.jsonl?)?")
_LISTS = ("channels.json", "groups.json", "dms.json", "mpims.json")
_TALK = {"", "thread_broadcast", "reply_broadcast", "me_message", "file_share", "file_comment", "file_mention"}
_TALK |= {"bot_message", "slackbot_response", "assistant_app_thread"}
_GONE = {"tombstone": "deleted messages", "message_deleted": "deleted messages", "message_changed": "edits"}
_LINK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


def detect(file: Source) -> bool:
    keys = file.keys
    one = {"type", "ts"} <= keys and bool(keys & {"user", "text", "subtype", "bot_id"}) and "scope" not in keys
    return one or {"messages.ts", "messages.type"} <= keys


def records(source: Source) -> Iterator[Message]:
    """Read every channel, group and direct conversation as a scope."""
    tables = {PurePosixPath(file.name).name: file for file in source.files()}
    named = {any_of(user, "id"): _called(user) for user in _listed(source, tables, "users.json")}
    people = {key: called for key, called in named.items() if called}
    names, channels = Names(), dict[str, str]()
    for each in (each for table in _LISTS for each in _listed(source, tables, table)):
        members = ", ".join(people.get(name(user), name(user)) for user in items(dig(each, "members")))
        channels[any_of(each, "id")] = channels[any_of(each, "name")] = any_of(each, "name") or members
    for file in source.members:
        folder = PurePosixPath(file.name).parent.name or file.path.parent.name
        place = folder if _DAY.match(PurePosixPath(file.name).name) else file.path.stem
        scope = names.give(place, channels.get(place) or place)
        for _, raw in file.values():
            for each in items(dig(raw, "messages")) or [raw]:
                yield from _message(source, scope, each, people, channels)


def _listed(source: Source, tables: dict[str, Source], table: str) -> list[Any]:
    """Read one of the lists of an export; of a single file, the list that lies beside or above it."""
    file = tables.get(table)
    if file is None:
        beside = [folder / table for folder in (source.path, *source.path.parents[:2]) if (folder / table).is_file()]
        file = Source(beside[0]) if beside else None
    try:
        return [] if file is None else [value for _, value in replace(file, on_error="raise").values()]
    except DataError as error:
        source.note(table, str(error), "left out")
        return []


def _called(user: Any) -> str:
    profile, keys = dig(user, "profile"), ("real_name", "display_name")
    return name(*(dig(about, key) for key in keys for about in (user, profile)), dig(user, "name"))


def _message(
    source: Source, scope: str, each: Any, people: dict[str, str], channels: dict[str, str]
) -> Iterator[Message]:
    """Read a message.

    :param people: and ``channels``: names by their ids.
    """
    kind = any_of(each, "subtype")
    if not isinstance(each, dict) or each.get("type", "message") != "message" or kind not in _TALK:
        source.drop(_GONE.get(kind, "system messages"), scope)
        return
    user, bot = any_of(each, "user"), any_of(each, "bot_id")
    sender = people.get(user) or _called(each.get("user_profile")) or any_of(each, "username")
    sender = sender or any_of(each.get("bot_profile"), "name") or user or bot
    sender = "Slackbot" if user == "USLACKBOT" else sender or "unknown"
    text = _plain(any_of(each, "text"), people, channels) or _plain(_blocks(each), people, channels)
    files = [file for file in items(each.get("files")) or [each.get("file")] if isinstance(file, dict)]
    there = [file for file in files if file.get("mode") not in ("tombstone", "hidden_by_limit")]
    source.drop("deleted files", scope, len(files) - len(there))
    source.keep("files", scope, "described in captions", len(there))
    # A deleted file leaves the place between two separators empty.
    caption = "; ".join(attached(f, any_of(f, "title", "name") or "without a name") * (f in there) for f in files)
    if each.get("edited"):
        source.keep("edited messages", scope)
    automatic = kind in ("bot_message", "slackbot_response") or (bot and not people.get(user))
    role = "assistant" if is_assistant(sender, source.assistants) else "other" if automatic else None
    thread, ts = any_of(each, "thread_ts"), any_of(each, "ts")
    more = {"session": f"thread {thread}" if thread else None, "timestamp": time(each.get("ts")), "role": role}
    yield from message(source, scope, sender, text, id=ts, caption=caption, **more)


def _plain(text: str, people: dict[str, str], channels: dict[str, str]) -> str:
    """Write mentions and links as they are read: ``<@U1>``, ``<#C1|general>``, ``<!here>``, ``<url|label>``."""

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


def _blocks(each: dict[str, Any]) -> str:
    """Give the text of a message that has it in attachments or blocks alone."""
    attachments = items(each.get("attachments"))
    parts = [any_of(one, key) for one in attachments for key in ("pretext", "title", "text")]
    parts += [any_of(one, "fallback") for one in attachments if not any_of(one, "text")]
    found, left = [part for part in parts if part], list(items(each.get("blocks")))
    while left and not parts:
        block = left.pop(0)
        if isinstance(block, dict):
            found += [block["text"]] if isinstance(block.get("text"), str) else []
            left = [*items(block.get("elements")), *items(block.get("fields")), block.get("text"), *left]
    return "\n".join(dict.fromkeys(found))
