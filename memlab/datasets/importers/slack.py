"""Slack's export: ``users.json``, ``channels.json`` and a folder a channel with a file a day; or one such file.

Layout: Slack's page on reading exports, hfaran/slack-export-viewer. A thread is a session; what stands outside of
threads is split by silence.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

from memlab.datasets.chatlog import is_assistant
from memlab.datasets.importers import common
from memlab.datasets.importers.common import Message, first_field, first_text, get_list
from memlab.datasets.reading import Source
from memlab.errors import DataError

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?:\.jsonl?)?")
_LISTS = ("channels.json", "groups.json", "dms.json", "mpims.json")
TABLES = (*_LISTS, "users.json")
_TALK = {"", "thread_broadcast", "reply_broadcast", "me_message", "file_share", "file_comment", "file_mention"}
_TALK |= {"bot_message", "slackbot_response", "assistant_app_thread"}
_GONE = {"tombstone": "deleted messages", "message_deleted": "deleted messages", "message_changed": "edits"}
_NAMES = ("real_name", "profile.real_name", "display_name", "profile.display_name", "name")
_LINK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


def detect(file: Source) -> bool:
    keys = file.keys
    one = {"type", "ts"} <= keys and bool(keys & {"user", "text", "subtype", "bot_id"}) and "scope" not in keys
    return one or {"messages.ts", "messages.type"} <= keys


def records(source: Source) -> Iterator[Message]:
    """Read every channel, group and direct conversation as a scope."""
    tables = {PurePosixPath(file.name).name: file for file in source.files()}
    named = {first_field(user, "id"): first_field(user, *_NAMES) for user in _read_list(source, tables, "users.json")}
    people = {key: called for key, called in named.items() if called}
    names, channels = dict[str, str](), dict[str, str]()
    for each in (each for table in _LISTS for each in _read_list(source, tables, table)):
        members = [first_text(user) for user in get_list(each, "members")]
        called = first_field(each, "name") or ", ".join(people.get(user, user) for user in members)
        channels[first_field(each, "id")] = channels[first_field(each, "name")] = called
    for file in source.members:
        folder = PurePosixPath(file.name).parent.name or file.path.parent.name
        place = folder if _DAY.match(PurePosixPath(file.name).name) else file.path.stem
        scope = common.name_chat(names, place, channels.get(place) or place)
        for _, raw in file.values():
            listed = get_list(raw, "messages") or [raw]
            replies = (get_list(each, "slackdump_thread_replies") for each in listed)
            for each in (*listed, *chain(*replies)):
                yield from _read_message(source, scope, each, people, channels)


def _read_list(source: Source, tables: dict[str, Source], table: str) -> list[Any]:
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


def _read_message(
    source: Source, scope: str, each: Any, people: dict[str, str], channels: dict[str, str]
) -> Sequence[Message]:
    """Read a message.

    :param people: and ``channels``: names by their ids.
    """
    kind = first_field(each, "subtype")
    if not isinstance(each, dict) or each.get("type", "message") != "message" or kind not in _TALK:
        return source.drop(_GONE.get(kind, "system messages"), scope)
    user = first_field(each, "user", "comment.user")
    bot = first_field(each, "bot_id")
    profile = [f"user_profile.{name}" for name in _NAMES]
    sender = people.get(user) or first_field(each, *profile, "username", "bot_profile.name") or user or bot
    sender = "Slackbot" if user == "USLACKBOT" else sender or "unknown"
    automatic = kind in ("bot_message", "slackbot_response") or (bot and not people.get(user))
    text = first_field(each, "text").removeprefix("This content can't be displayed.")
    shown = [one for one in get_list(each, "attachments") if isinstance(one, dict)]
    kept = [one for one in shown if not text or automatic or one.get("is_share") is True]
    source.drop("previews of links", scope, len(shown) - len(kept))
    text = "\n".join([part for part in (text, *map(_read_attachment, kept)) if part]) or _read_block_text(each)
    text = _render_mentions(text, people, channels)
    files = [file for file in get_list(each, "files") or [each.get("file")] if isinstance(file, dict)]
    there = [file for file in files if file.get("mode") not in ("tombstone", "hidden_by_limit")]
    source.drop("deleted files", scope, len(files) - len(there))
    source.keep("files", scope, "described in captions", len(there))
    # A deleted file leaves the place between two separators empty.
    named = (common.describe_file(file, "title", "name", unnamed="without a name") * (file in there) for file in files)
    caption = "; ".join(named)
    if each.get("edited"):
        source.keep("edited messages", scope)
    role = "assistant" if is_assistant(sender, source.assistants) else "other" if automatic else None
    thread, ts = first_field(each, "thread_ts"), first_field(each, "ts")
    more = {"id": ts, "session": f"thread {thread}" if thread else None, "role": role, "caption": caption}
    return common.make_message(source, scope, sender, text, timestamp=ts, **more)


def _render_mentions(text: str, people: dict[str, str], channels: dict[str, str]) -> str:
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


def _read_attachment(one: dict[str, Any]) -> str:
    """Give the text of an attachment; of a message that is shared, with who wrote it."""
    keys = ("pretext", "title", "text") if first_field(one, "text") else ("pretext", "title", "fallback")
    text = "\n".join(dict.fromkeys(part for key in keys if (part := first_field(one, key))))
    author = first_field(one, "author_name", "author_subname") if one.get("is_share") is True else ""
    return f"{author}: {text}" if author and text else text


def _read_block_text(each: dict[str, Any]) -> str:
    """Give the text of a message that has it in blocks alone."""
    found, left = list[str](), list(get_list(each, "blocks"))
    while left:
        block = left.pop(0)
        if isinstance(block, dict):
            found += [block["text"]] if isinstance(block.get("text"), str) else []
            within = get_list(block, "elements"), get_list(block, "fields"), [block.get("text")]
            left = [*chain(*within), *left]
    return "\n".join(dict.fromkeys(found))
