"""Slack's export: ``users.json``, ``channels.json`` and a folder a channel with a file a day; or one such file.

Layout: Slack's page on reading exports, hfaran/slack-export-viewer. A thread is a session; what
stands outside of threads is split by silence.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

from memlab.datasets.chatlog import messenger_role
from memlab.datasets.importers.export_messages import (
    Message,
    describe_file,
    make_message,
    name_chat,
    name_person,
)
from memlab.datasets.importers.loose_json import first_field, first_text, get_list, get_nested
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import count_unread_texts
from memlab.errors import DataError

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?:\.jsonl?)?")
_LISTS = ("channels.json", "groups.json", "dms.json", "mpims.json")
TABLES = (*_LISTS, "users.json")
_TALK = {
    "",
    "thread_broadcast",
    "reply_broadcast",
    "me_message",
    "file_share",
    "file_comment",
    "file_mention",
}
_TALK |= {"bot_message", "slackbot_response", "assistant_app_thread"}
_GONE = {
    "tombstone": "deleted messages",
    "message_deleted": "deleted messages",
    "message_changed": "edits",
}
_NAMES = ("real_name", "profile.real_name", "display_name", "profile.display_name", "name")
_PROFILE = [f"user_profile.{name}" for name in _NAMES]
_USER = re.compile(rb'"user"\s*:\s*"([UW]\w+)"')
_ELEMENTS = {
    "user": "<@{user_id}>",
    "channel": "<#{channel_id}>",
    "usergroup": "<!subteam^{usergroup_id}>",
}
_ELEMENTS |= {
    "broadcast": "<!{range}>",
    "link": "<{url}|{text}>",
    "emoji": ":{name}:",
    "color": "{value}",
}
_ELEMENTS |= {"date": "<!date^{timestamp}^{format}|{fallback}>"}
_ON_ONE_LINE = {"rich_text_section", "rich_text_quote", "rich_text_preformatted"}
_STAMP = re.compile(r'"ts"\s*:\s*"\d+(?:\.\d+)?"')
_KIND = re.compile(r'"type"\s*:\s*"message"')
_LINK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


_READ = {"text", "attachments", "files", "file", "user_profile", "bot_profile"}
_READ |= {"reactions", "edited", "root", "metadata", "username"}
_READ |= {"slackdump_thread_replies", "replies"}


def is_slack_export(file: Source) -> bool:
    keys = file.keys
    if not (_STAMP.search(file.head) and _KIND.search(file.head)):
        return False  # others have numbers there, or other kinds
    if {"messages.ts", "messages.type"} <= keys:
        return True
    said = keys & {"user", "text", "subtype", "bot_id"}
    return {"type", "ts"} <= keys and bool(said) and "scope" not in keys


@dataclass
class _Directory:
    """Who and what the ids of an export stand for; of two workspaces beside each other they are different.

    :param people: names by the ids of users, ``humans``: ids of those whom the list says to be no
        bots, ``bots``: ids of those who are none.
    :param channels: names by the ids and names of conversations.
    :param taken: see :func:`name_person`.
    :param ids: ids of conversations by the folder of their list, and by the id or name that their
        own folder has.
    """

    people: dict[str, str] = field(default_factory=dict)
    humans: set[str] = field(default_factory=set)
    bots: set[str] = field(default_factory=lambda: {"USLACKBOT"})
    channels: dict[str, str] = field(default_factory=dict)
    taken: dict[tuple[str, str], str] = field(default_factory=dict)
    ids: dict[tuple[str, str], str] = field(default_factory=dict)

    def name_person(self, channel: str, user: str, otherwise: str = "") -> str:
        """Give the name that a person has in a conversation."""
        called = self.people.get(user) or otherwise
        return (
            name_person(self.taken, channel, user * (user not in self.bots), called)
            if called
            else user
        )

    def find_channel(self, file: Source, place: str) -> str:
        """Give the id of a conversation from a list above its file; where it is in none, what its folder is called."""
        above = ((str(folder), place) for folder in PurePosixPath(file.name).parents)
        return next((self.ids[key] for key in above if key in self.ids), place)


def read_slack_export(source: Source) -> Iterator[Message]:
    """Read every channel, group and direct conversation as a scope."""
    names, known = dict[str, str](), _read_directory(source)
    _read_guests(source, known)
    for file in source.members:
        folder = PurePosixPath(file.name).parent.name or file.path.parent.name
        place = folder if _DAY.match(PurePosixPath(file.name).name) else file.path.stem
        by_folder = known.find_channel(file, place)
        for about, each in _list_messages(file):
            channel = first_field(about, "channel_id") or by_folder  # slackdump names it
            called = first_field(about, "name", "channel_name") or known.channels.get(channel)
            scope = name_chat(names, channel, called or channel)
            yield from _read_slack_message(source, scope, channel, each, known)


def _read_directory(source: Source) -> _Directory:
    """Read the lists of an export; of a single file or folder, those that lie beside or above it."""
    above = [
        folder / table for folder in (source.path, *source.path.parents[:2]) for table in TABLES
    ]
    found = [file for file in source.files() if PurePosixPath(file.name).name in TABLES]
    found = found or [Source(path) for path in above if path.is_file()]
    lists = [
        (PurePosixPath(file.name), each) for file in found for each in _read_list(source, file)
    ]
    known = _Directory()
    for path, each in lists:
        if path.name == "users.json" and (called := first_field(each, *_NAMES)):
            known.people[first_field(each, "id")] = called
            flag = get_nested(each, "is_bot")
            if isinstance(flag, bool):
                (known.bots if flag else known.humans).add(first_field(each, "id"))
    for path, each in lists:
        if path.name in _LISTS:
            members = [first_text(user) for user in get_list(each, "members")]
            name = first_field(each, "name")
            key = first_field(each, "id") or name
            called = name or ", ".join(known.name_person(key, user) for user in members)
            for place in filter(None, (key, name)):
                known.channels[place], known.ids[str(path.parent), place] = called, key
    return known


def _read_guests(source: Source, known: _Directory) -> None:
    """Name the guests of shared channels, who are in no list, by the profiles that some of their messages have."""
    for file in source.members:
        with file.open() as raw:
            there = {user.decode() for line in raw for user in _USER.findall(line)}
        with suppress(DataError):  # which is told when the messages are read
            for _, each in (
                _list_messages(replace(file, on_error="raise"))
                if there - known.people.keys()
                else ()
            ):
                if (called := first_field(each, *_PROFILE)) and not first_field(each, "bot_id"):
                    known.people.setdefault(first_field(each, "user"), called)


def _read_list(source: Source, file: Source) -> list[Any]:
    try:
        return [value for _, value in replace(file, on_error="raise").values()]
    except DataError as error:
        source.note(file.name, str(error), "left out")
        return []


def _list_messages(file: Source) -> Iterator[tuple[Any, Any]]:
    """Give the messages of a file, each with the object around them, which slackdump has."""
    for _, raw in file.values():
        listed = get_list(raw, "messages") or [raw]
        answers = chain(*(get_list(each, "slackdump_thread_replies") for each in listed))
        for each in (*listed, *answers):
            yield raw, each


def _read_slack_message(
    source: Source, scope: str, channel: str, each: Any, known: _Directory
) -> Sequence[Message]:
    kind = first_field(each, "subtype")
    if not isinstance(each, dict) or each.get("type", "message") != "message" or kind not in _TALK:
        return source.drop(_GONE.get(kind, "system messages"), scope)
    user = first_field(each, "user", "comment.user")
    bot = first_field(each, "bot_id")
    called = (
        known.people.get(user)
        or first_field(each, *_PROFILE, "username", "bot_profile.name")
        or user
        or bot
    )
    called = "Slackbot" if user == "USLACKBOT" else called or "unknown"
    automatic = kind in ("bot_message", "slackbot_response") or user in known.bots
    automatic = automatic or bool(bot and not known.people.get(user))
    sender = called if automatic else known.name_person(channel, user, called)
    text = first_field(each, "text").removeprefix("This content can't be displayed.")
    blocks = list(map(_read_block, get_list(each, "blocks")))
    text = (
        _add_texts(text, blocks) if bot or automatic or not text else text
    )  # a person's are the text once more
    shown = [one for one in get_list(each, "attachments") if isinstance(one, dict)]
    kept = [one for one in shown if not text or automatic or one.get("is_share") is True]
    source.drop("previews of links", scope, len(shown) - len(kept))
    text = "\n".join(filter(None, (text, *map(_read_attachment, kept))))
    shared = [_read_attachment(one) for one in kept if one.get("is_share") is True]
    files = [
        file for file in get_list(each, "files") or [each.get("file")] if isinstance(file, dict)
    ]
    there = [file for file in files if file.get("mode") not in ("tombstone", "hidden_by_limit")]
    source.drop("deleted files", scope, len(files) - len(there))
    source.keep("files", scope, "described in captions", len(there))
    heard = [file for file in there if first_field(file, "transcription.preview.content")]
    source.keep("recordings", scope, "kept as their transcripts", len(heard))
    text = _render_mentions(
        "\n".join(filter(None, (text, *map(_read_file, there)))), channel, known
    )
    # A deleted file leaves the place between two separators empty.
    named = (
        describe_file(file, "title", "name", unnamed="without a name") * (file in there)
        for file in files
    )
    caption = "; ".join(named)
    if each.get("edited"):
        source.keep("edited messages", scope)
    count_unread_texts(source, scope, each, _READ, text)
    flagged = False if user in known.humans else None
    role = messenger_role(source, called, is_bot=automatic or flagged)
    thread, ts = first_field(each, "thread_ts"), first_field(each, "ts")
    more = {
        "id": ts,
        "session": f"thread {thread}" if thread else None,
        "role": role,
        "caption": caption,
        "quoted": [_render_mentions(part, channel, known) for part in shared if part],
    }
    return make_message(
        source, scope, sender, text, timestamp=ts, edited=first_field(each, "edited.ts"), **more
    )


def _read_file(file: dict[str, Any]) -> str:
    """Give what an export has of the text of a file: the transcript of a recording, the beginning of a post."""
    if said := first_field(file, "transcription.preview.content"):
        return said + " …" * (get_nested(file, "transcription.preview.has_more") is True)
    written = first_field(file, "preview") if file.get("mode") == "space" else ""
    return " ".join(re.sub("<[^<>]+>", " ", written).split())


def _render_mentions(text: str, channel: str, known: _Directory) -> str:
    """Write mentions and links as they are read: ``<@U1>``, ``<#C1|general>``, ``<!here>``, ``<url|label>``."""

    def written(found: re.Match[str]) -> str:
        mark, target, label = found[1], found[2], found[3]
        if mark == "@":
            return f"@{known.name_person(channel, target, label or '')}"
        if mark == "#":
            return f"#{label or known.channels.get(target) or target}"
        if date := re.match(r"date\^(\d{1,11})\b", target if mark == "!" else ""):
            return label or f"{datetime.fromtimestamp(int(date[1]), UTC):%Y-%m-%d %H:%M} UTC"
        if mark == "!":
            return (
                label
                if label and label.startswith("@")
                else f"@{label or target.partition('^')[0]}"
            )
        address = target.removeprefix("mailto:")
        return f"{label} ({target})" if label and label not in (target, address) else address

    return html.unescape(_LINK.sub(written, text))


def _read_attachment(one: dict[str, Any]) -> str:
    """Give the text of an attachment; of a message that is shared, with who wrote it."""
    blocks = "\n".join(filter(None, map(_read_block, get_list(one, "blocks"))))
    fallback = first_field(one, "fallback").removeprefix("[no preview available]")
    fields = (
        (first_field(each, "title"), first_field(each, "value")) for each in get_list(one, "fields")
    )
    parts = [
        first_field(one, "pretext"),
        first_field(one, "title"),
        first_field(one, "text") or blocks or fallback,
    ]
    parts += [": ".join(filter(None, pair)) for pair in fields]
    text = "\n".join(dict.fromkeys(filter(None, parts)))
    author = (
        first_field(one, "author_name", "author_subname") if one.get("is_share") is True else ""
    )
    return f"{author}: {text}" if author and text else text


def _read_block(block: Any) -> str:
    """Give the text of a block, or of what is within one, with mentions and links as the text of a message has them."""
    if isinstance(block, list):  # a row of a table
        return " | ".join(filter(None, map(_read_block, block)))
    kind, said = first_field(block, "type"), get_nested(block, "text")
    if kind in _ELEMENTS:
        values = {key: html.escape(first_text(value), False) for key, value in block.items()}
        return _ELEMENTS[kind].format_map(defaultdict(str, values))
    if isinstance(said, str):
        return (
            html.escape(said, False) if kind in ("text", "raw_text") else said
        )  # which Slack does not escape
    within = [
        _read_block(part) for key in ("elements", "fields", "rows") for part in get_list(block, key)
    ]
    if kind in _ON_ONE_LINE:
        return "".join(within)
    if get_nested(block, "style") == "ordered":
        within = [f"{n}. {part}" for n, part in enumerate(within, 1)]
    return "\n".join(
        part.strip("\n") for part in (_read_block(said) if said else "", *within) if part
    )


def _add_texts(text: str, others: list[str]) -> str:
    """Put texts under another; one whose words are all in a row in the rest is there already."""
    new = [other for other in others if other and _list_words(other) not in _list_words(text)]
    first = [text] if text and _list_words(text) not in _list_words("\n".join(new)) else []
    return "\n".join([*first, *new]) if new else text


def _list_words(text: str) -> str:
    words = re.findall(r"[^\W_]+", html.unescape(text))
    return f" {' '.join(words) or text.strip()} "
