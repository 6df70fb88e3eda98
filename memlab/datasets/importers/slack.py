"""Slack's export: ``users.json``, ``channels.json`` and a folder a channel with a file a day.

Or one such file.

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
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from memlab.datasets.chatlog import messenger_role
from memlab.datasets.importers.export_messages import (
    ChatNames,
    Message,
    describe_file,
    make_message,
    name_chat,
    name_person,
)
from memlab.datasets.importers.loose_json import (
    first_field,
    first_text,
    get_list,
    get_nested,
    get_objects,
)
from memlab.datasets.source import Source
from memlab.datasets.unread_texts import count_unread_texts
from memlab.errors import DataError

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?:\.jsonl?)?")
_LISTS = ("channels.json", "groups.json", "dms.json", "mpims.json")
TABLES = (*_LISTS, "users.json")
_TALK = frozenset(
    (
        *("", "thread_broadcast", "reply_broadcast", "me_message"),
        *("file_share", "file_comment", "file_mention"),
        *("bot_message", "slackbot_response", "assistant_app_thread"),
    )
)
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
    "broadcast": "<!{range}>",
    "link": "<{url}|{text}>",
    "emoji": ":{name}:",
    "color": "{value}",
    "date": "<!date^{timestamp}^{format}|{fallback}>",
}
_ON_ONE_LINE = {"rich_text_section", "rich_text_quote", "rich_text_preformatted"}
_STAMP = re.compile(r'"ts"\s*:\s*"\d+(?:\.\d+)?"')
_KIND = re.compile(r'"type"\s*:\s*"message"')
_LINK = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_DATE = re.compile(r"date\^(\d{1,11})\b")
_MARKUP = re.compile("<[^<>]+>")
_WORD = re.compile(r"[^\W_]+")
_READ = frozenset(
    (
        *("text", "attachments", "files", "file", "user_profile", "bot_profile"),
        *("reactions", "edited", "root", "metadata", "username"),
        *("slackdump_thread_replies", "replies"),
    )
)
"""Keys of a message that are read, or say nothing."""


def is_slack_export(file: Source) -> bool:
    keys = file.keys
    if not _STAMP.search(file.head) or not _KIND.search(file.head):
        return False  # others have numbers there, or other kinds
    if {"messages.ts", "messages.type"} <= keys:
        return True
    if "scope" in keys or not {"type", "ts"} <= keys:
        return False
    return not keys.isdisjoint({"user", "text", "subtype", "bot_id"})


@dataclass
class _Directory:
    """Who and what the ids of an export stand for.

    Of two workspaces beside each other they are different.

    :param people: names by the ids of users, ``humans``: ids of those whom the list says to be no
        bots, ``bots``: ids of those who are none.
    :param channels: names by the ids and names of conversations.
    :param taken: see :func:`name_person`.
    :param ids: ids of conversations by the folder of their list, and by the id or name that their
        own folder has.
    """

    people: dict[str, str] = field(default_factory=dict)
    humans: set[str] = field(default_factory=set)
    bots: set[str] = field(default_factory=partial(set, ("USLACKBOT",)))
    channels: dict[str, str] = field(default_factory=dict)
    taken: dict[tuple[str, str], str] = field(default_factory=dict)
    ids: dict[tuple[str, str], str] = field(default_factory=dict)

    def name_person(self, channel: str, user: str, otherwise: str = "") -> str:
        """Give the name that a person has in a conversation."""
        called = first_text(self.people.get(user), otherwise)
        if not called:
            return user
        if user in self.bots:
            return called
        return name_person(self.taken, channel, user, called)

    def find_channel(self, file: Source, place: str) -> str:
        """Give the id of a conversation from a list above its file.

        Where it is in none, what its folder is called.
        """
        for folder in PurePosixPath(file.name).parents:
            found = self.ids.get((str(folder), place))
            if found is not None:
                return found
        return place

    def add_person(self, record: Any) -> None:
        """Take up a user of the list, who is a bot, a human, or does not say."""
        called = first_field(record, *_NAMES)
        if not called:
            return
        user_id = first_field(record, "id")
        self.people[user_id] = called
        is_bot = get_nested(record, "is_bot")
        if is_bot is True:
            self.bots.add(user_id)
        elif is_bot is False:
            self.humans.add(user_id)

    def add_channel(self, folder: str, record: Any) -> None:
        """Take up a conversation of a list; one without a name is called as its members."""
        name = first_field(record, "name")
        key = first_field(record, "id", "name")
        called = name
        if not name:
            members = map(first_text, get_list(record, "members"))
            called = ", ".join(map(partial(self.name_person, key), members))
        for place in filter(None, (key, name)):
            self.channels[place] = called
            self.ids[folder, place] = key


def read_slack_export(source: Source) -> Iterator[Message]:
    """Read every channel, group and direct conversation as a scope."""
    names = ChatNames()
    known = _read_directory(source)
    _read_guests(source, known)
    for file in source.members:
        path = PurePosixPath(file.name)
        place = file.path.stem
        if _DAY.match(path.name):
            place = first_text(path.parent.name, file.path.parent.name)
        by_folder = known.find_channel(file, place)
        for about, record in _list_messages(file):
            channel = first_text(get_nested(about, "channel_id"), by_folder)  # slackdump names it
            own = first_field(about, "name", "channel_name")
            called = first_text(own, known.channels.get(channel), channel)
            scope = name_chat(names, channel, called)
            yield from _read_slack_message(source, scope, channel, record, known)


def _read_directory(source: Source) -> _Directory:
    """Read the lists of an export.

    Of a single file or folder, those that lie beside or above it.
    """
    found = [file for file in source.files() if PurePosixPath(file.name).name in TABLES]
    if not found:
        for folder in (source.path, *source.path.parents[:2]):
            found += [Source(folder / table) for table in TABLES if (folder / table).is_file()]
    lists = [(PurePosixPath(file.name), _read_list(source, file)) for file in found]
    known = _Directory()
    for path, listed in lists:
        if path.name == "users.json":
            for record in listed:
                known.add_person(record)
    for path, listed in lists:
        if path.name in _LISTS:
            for record in listed:
                known.add_channel(str(path.parent), record)
    return known


def _read_guests(source: Source, known: _Directory) -> None:
    """Name the guests of shared channels, who are in no list, by the profiles that some of
    their messages have.
    """
    for file in source.members:
        there = set[str]()
        with file.open() as raw:
            for line in raw:
                there.update(map(bytes.decode, _USER.findall(line)))
        if there <= known.people.keys():
            continue
        with suppress(DataError):  # which is told when the messages are read
            for _, record in _list_messages(replace(file, on_error="raise")):
                called = first_field(record, *_PROFILE)
                if called and not first_field(record, "bot_id"):
                    known.people.setdefault(first_field(record, "user"), called)


def _read_list(source: Source, file: Source) -> list[Any]:
    try:
        return [value for _, value in replace(file, on_error="raise").values()]
    except DataError as error:
        source.note(file.name, str(error), "left out")
        return []


def _list_messages(file: Source) -> Iterator[tuple[Any, Any]]:
    """Give the messages of a file, each with the object around them, which slackdump has."""
    for _, around in file.values():
        listed = get_list(around, "messages") or [around]
        for record in listed:
            yield around, record
        for record in listed:
            for answer in get_list(record, "slackdump_thread_replies"):
                yield around, answer


def _read_slack_message(
    source: Source, scope: str, channel: str, record: Any, known: _Directory
) -> Sequence[Message]:
    kind = first_field(record, "subtype")
    if (
        not isinstance(record, dict)
        or record.get("type", "message") != "message"
        or kind not in _TALK
    ):
        return source.drop(_GONE.get(kind, "system messages"), scope)
    user_id = first_field(record, "user", "comment.user")
    bot_id = first_field(record, "bot_id")
    called = _name_sender(record, user_id, known)
    automatic = kind in ("bot_message", "slackbot_response") or user_id in known.bots
    if bot_id and not known.people.get(user_id):
        automatic = True
    sender = called
    if not automatic:
        sender = known.name_person(channel, user_id, called)
    text = first_field(record, "text").removeprefix("This content can't be displayed.")
    if bot_id or automatic or not text:  # a person's blocks are the text once more
        text = _add_texts(text, list(map(_read_block, get_list(record, "blocks"))))
    kept = _choose_attachments(source, scope, record, is_person=bool(text) and not automatic)
    text = _join_lines(text, *map(_read_attachment, kept))
    texts, caption = _read_files(source, scope, record)
    text = _render_mentions(_join_lines(text, *texts), channel, known)
    if record.get("edited"):
        source.keep("edited messages", scope)
    count_unread_texts(source, scope, record, _READ, text)
    is_bot: bool | None = automatic
    if not automatic and user_id not in known.humans:
        is_bot = None
    thread = first_field(record, "thread_ts")
    columns = {
        "id": first_field(record, "ts"),
        "session": None,
        "role": messenger_role(source, called, is_bot=is_bot),
        "caption": caption,
        "quoted": _list_shared(kept, channel, known),
        "edited": first_field(record, "edited.ts"),
    }
    if thread:
        columns["session"] = f"thread {thread}"
    return make_message(source, scope, sender, text, timestamp=first_field(record, "ts"), **columns)


def _name_sender(record: dict[str, Any], user: str, known: _Directory) -> str:
    """Name who wrote a message by the list, by its own profile, or by an id."""
    if user == "USLACKBOT":
        return "Slackbot"
    profile = first_field(record, *_PROFILE, "username", "bot_profile.name")
    return first_text(known.people.get(user), profile, user, record.get("bot_id"), "unknown")


def _choose_attachments(
    source: Source, scope: str, record: dict[str, Any], *, is_person: bool
) -> list[dict[str, Any]]:
    """Choose what is part of a message.

    Beside the text of a person the others are previews of its links.
    """
    attachments = get_objects(record, "attachments")
    if not is_person:
        return attachments
    kept = list(filter(_is_shared, attachments))
    source.drop("previews of links", scope, len(attachments) - len(kept))
    return kept


def _list_shared(kept: list[dict[str, Any]], channel: str, known: _Directory) -> list[str]:
    """Give the messages of others among the attachments of one."""
    texts = filter(None, map(_read_attachment, filter(_is_shared, kept)))
    return [_render_mentions(text, channel, known) for text in texts]


def _is_shared(attachment: dict[str, Any]) -> bool:
    """Say whether an attachment is a message that is shared."""
    return attachment.get("is_share") is True


def _read_files(source: Source, scope: str, record: dict[str, Any]) -> tuple[list[str], str]:
    """Give what an export has of the texts of the files of a message, and its caption."""
    files = get_objects(record, "files")
    if not get_list(record, "files"):
        files = get_objects({"files": [record.get("file")]}, "files")
    texts = list[str]()
    names = list[str]()
    for file in files:
        if file.get("mode") in ("tombstone", "hidden_by_limit"):
            source.drop("deleted files", scope)
            names.append("")  # a deleted file leaves the place between two separators empty
            continue
        source.keep("files", scope, "described in captions")
        if first_field(file, "transcription.preview.content"):
            source.keep("recordings", scope, "kept as their transcripts")
        texts.append(_read_file(file))
        names.append(describe_file(file, "title", "name", unnamed="without a name"))
    return texts, "; ".join(names)


def _read_file(file: dict[str, Any]) -> str:
    """Give what an export has of the text of a file: the transcript of a recording, the
    beginning of a post.
    """
    spoken = first_field(file, "transcription.preview.content")
    if spoken:
        if get_nested(file, "transcription.preview.has_more") is True:
            spoken += " …"
        return spoken
    if file.get("mode") == "space":
        return " ".join(_MARKUP.sub(" ", first_field(file, "preview")).split())
    return ""


def _render_mentions(text: str, channel: str, known: _Directory) -> str:
    """Write mentions and links as they are read: ``<@U1>``, ``<#C1|general>``, ``<!here>``,
    ``<url|label>``.
    """

    def render(found: re.Match[str]) -> str:
        mark, target, label = found.groups("")
        if mark == "@":
            return f"@{known.name_person(channel, target, label)}"
        if mark == "#":
            return f"#{label or known.channels.get(target) or target}"
        if mark == "!":
            return _render_command(target, label)
        address = target.removeprefix("mailto:")
        if label and label not in (target, address):
            return f"{label} ({target})"
        return address

    return html.unescape(_LINK.sub(render, text))


def _render_command(target: str, label: str) -> str:
    """Write a date, or whom a message calls: ``<!here>``, ``<!subteam^S1|@cooks>``."""
    date = _DATE.match(target)
    if date:
        return label or f"{datetime.fromtimestamp(int(date[1]), UTC):%Y-%m-%d %H:%M} UTC"
    if label.startswith("@"):
        return label
    return f"@{label or target.partition('^')[0]}"


def _read_attachment(attachment: dict[str, Any]) -> str:
    """Give the text of an attachment; of a message that is shared, with who wrote it."""
    blocks = _join_lines(*map(_read_block, get_list(attachment, "blocks")))
    fallback = first_field(attachment, "fallback").removeprefix("[no preview available]")
    parts = [first_field(attachment, "pretext"), first_field(attachment, "title")]
    parts.append(first_field(attachment, "text") or blocks or fallback)
    for record in get_list(attachment, "fields"):
        pair = first_field(record, "title"), first_field(record, "value")
        parts.append(": ".join(filter(None, pair)))
    text = _join_lines(*dict.fromkeys(parts))
    if not text or not _is_shared(attachment):
        return text
    author = first_field(attachment, "author_name", "author_subname")
    return ": ".join(filter(None, (author, text)))


def _read_block(block: Any) -> str:
    """Give the text of a block, or of what is within one, with mentions and links as the
    text of a message has them.
    """
    if isinstance(block, list):  # a row of a table
        return " | ".join(filter(None, map(_read_block, block)))
    kind = first_field(block, "type")
    written = get_nested(block, "text")
    if kind in _ELEMENTS:
        values = defaultdict[str, str](str)
        for key, value in block.items():
            values[key] = html.escape(first_text(value), False)
        return _ELEMENTS[kind].format_map(values)
    if isinstance(written, str):
        if kind in ("text", "raw_text"):  # which Slack does not escape
            return html.escape(written, False)
        return written
    within = list[str]()
    for key in ("elements", "fields", "rows"):
        within += map(_read_block, get_list(block, key))
    if kind in _ON_ONE_LINE:
        return "".join(within)
    if get_nested(block, "style") == "ordered":
        within = [f"{number}. {part}" for number, part in enumerate(within, 1)]
    if written:
        within.insert(0, _read_block(written))
    return "\n".join(part.strip("\n") for part in within if part)


def _add_texts(text: str, others: list[str]) -> str:
    """Put texts under another; one whose words are all in a row in the rest is there already."""
    words = _list_words(text)
    added = [other for other in others if other and _list_words(other) not in words]
    if not added:
        return text
    if text and words not in _list_words("\n".join(added)):
        added.insert(0, text)
    return "\n".join(added)


def _list_words(text: str) -> str:
    found_words = _WORD.findall(html.unescape(text))
    return f" {' '.join(found_words) or text.strip()} "


def _join_lines(*texts: str) -> str:
    """Join texts, each on lines of its own, without empty ones."""
    return "\n".join(filter(None, texts))
