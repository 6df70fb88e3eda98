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

from memlab.datasets.importers.export_messages import (
    ChatNames,
    Message,
    describe_attached_file_or_empty,
    find_or_add_chat_name,
    find_or_add_person_name,
    make_message_or_count_drop,
)
from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    first_field_text,
    first_non_empty_text,
    get_nested,
    get_nested_list,
    get_nested_objects,
)
from memlab.datasets.record_sources import Source
from memlab.datasets.sender_roles import messenger_role_and_count_guess
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
class _SlackNameDirectory:
    """Who and what the ids of an export stand for.

    Of two workspaces beside each other they are different.

    :param people: names by the ids of users, ``humans``: ids of those whom the list says to be no
        bots, ``bots``: ids of those who are none.
    :param channels: names by the ids and names of conversations.
    :param taken: see :func:`find_or_add_person_name`.
    :param ids: ids of conversations by the folder of their list, and by the id or name that their
        own folder has.
    """

    people: dict[str, str] = field(default_factory=dict)
    humans: set[str] = field(default_factory=set)
    bots: set[str] = field(default_factory=partial(set, ("USLACKBOT",)))
    channels: dict[str, str] = field(default_factory=dict)
    taken: dict[tuple[str, str], str] = field(default_factory=dict)
    ids: dict[tuple[str, str], str] = field(default_factory=dict)

    def find_or_add_unique_name_in_channel(
        self, channel_id: str, user_id: str, default_name: str = ""
    ) -> str:
        """Give the name that a person has in a conversation."""
        shown_name = first_non_empty_text(self.people.get(user_id), default_name)
        if not shown_name:
            return user_id
        if user_id in self.bots:
            return shown_name
        return find_or_add_person_name(self.taken, channel_id, user_id, shown_name)

    def find_channel_id_or_given_name(self, file: Source, channel_name_or_id: str) -> str:
        """Give the id of a conversation from a list above its file.

        Where it is in none, what its folder is called.
        """
        for folder in PurePosixPath(file.name).parents:
            found_id = self.ids.get((str(folder), channel_name_or_id))
            if found_id is not None:
                return found_id
        return channel_name_or_id

    def add_user(self, raw_user: JsonValue) -> None:
        """Take up a user of the list, who is a bot, a human, or does not say."""
        shown_name = first_field_text(raw_user, *_NAMES)
        if not shown_name:
            return
        user_id = first_field_text(raw_user, "id")
        self.people[user_id] = shown_name
        is_bot = get_nested(raw_user, "is_bot")
        if is_bot is True:
            self.bots.add(user_id)
        elif is_bot is False:
            self.humans.add(user_id)

    def add_channel(self, list_folder: str, raw_channel: JsonValue) -> None:
        """Take up a conversation of a list; one without a name is called as its members."""
        channel_name = first_field_text(raw_channel, "name")
        channel_id = first_field_text(raw_channel, "id", "name")
        shown_name = channel_name
        if not channel_name:
            members = map(first_non_empty_text, get_nested_list(raw_channel, "members"))
            shown_name = ", ".join(
                map(partial(self.find_or_add_unique_name_in_channel, channel_id), members)
            )
        for channel_place in filter(None, (channel_id, channel_name)):
            self.channels[channel_place] = shown_name
            self.ids[list_folder, channel_place] = channel_id


def read_slack_export(source: Source) -> Iterator[Message]:
    """Read every channel, group and direct conversation as a scope."""
    chat_names = ChatNames()
    directory = _read_user_and_channel_lists(source)
    _add_guests_to_directory(source, directory)
    for file in source.members:
        member_path = PurePosixPath(file.name)
        channel_place = file.path.stem
        if _DAY.match(member_path.name):
            channel_place = first_non_empty_text(member_path.parent.name, file.path.parent.name)
        by_folder = directory.find_channel_id_or_given_name(file, channel_place)
        for outer_fields, record in _list_outer_objects_and_messages(file):
            channel = first_non_empty_text(
                get_nested(outer_fields, "channel_id"), by_folder
            )  # slackdump names it
            own_name = first_field_text(outer_fields, "name", "channel_name")
            shown_name = first_non_empty_text(own_name, directory.channels.get(channel), channel)
            scope = find_or_add_chat_name(chat_names, channel, shown_name)
            yield from _read_message_or_count_drop(source, scope, channel, record, directory)


def _read_user_and_channel_lists(source: Source) -> _SlackNameDirectory:
    """Read the lists of an export.

    Of a single file or folder, those that lie beside or above it.
    """
    table_files = [file for file in source.files() if PurePosixPath(file.name).name in TABLES]
    if not table_files:
        for folder in (source.path, *source.path.parents[:2]):
            table_files += [
                Source(folder / table) for table in TABLES if (folder / table).is_file()
            ]
    listed_tables = [
        (PurePosixPath(file.name), _read_list_or_note_error(source, file)) for file in table_files
    ]
    directory = _SlackNameDirectory()
    for table_path, table_records in listed_tables:
        if table_path.name == "users.json":
            for record in table_records:
                directory.add_user(record)
    for table_path, table_records in listed_tables:
        if table_path.name in _LISTS:
            for record in table_records:
                directory.add_channel(str(table_path.parent), record)
    return directory


def _add_guests_to_directory(source: Source, directory: _SlackNameDirectory) -> None:
    """Name the guests of shared channels, who are in no list, by the profiles that some of
    their messages have.
    """
    for file in source.members:
        mentioned_users = set[str]()
        with file.open() as raw_lines:
            for raw_line in raw_lines:
                mentioned_users.update(map(bytes.decode, _USER.findall(raw_line)))
        if mentioned_users <= directory.people.keys():
            continue
        with suppress(DataError):  # which is told when the messages are read
            for _, record in _list_outer_objects_and_messages(replace(file, on_error="raise")):
                guest_name = first_field_text(record, *_PROFILE)
                if guest_name and not first_field_text(record, "bot_id"):
                    directory.people.setdefault(first_field_text(record, "user"), guest_name)


def _read_list_or_note_error(source: Source, file: Source) -> list[JsonValue]:
    try:
        return [value for _, value in replace(file, on_error="raise").values()]
    except DataError as error:
        source.note(file.name, str(error), "left out")
        return []


def _list_outer_objects_and_messages(file: Source) -> Iterator[tuple[JsonValue, JsonValue]]:
    """Give the messages of a file, each with the object around them, which slackdump has."""
    for _, outer_record in file.values():
        channel_records = get_nested_list(outer_record, "messages") or [outer_record]
        for record in channel_records:
            yield outer_record, record
        for record in channel_records:
            for answer in get_nested_list(record, "slackdump_thread_replies"):
                yield outer_record, answer


def _read_message_or_count_drop(
    source: Source,
    scope: str,
    channel_id: str,
    raw_message: JsonValue,
    directory: _SlackNameDirectory,
) -> Sequence[Message]:
    subtype = first_field_text(raw_message, "subtype")
    if (
        not isinstance(raw_message, dict)
        or raw_message.get("type", "message") != "message"
        or subtype not in _TALK
    ):
        return source.drop(_GONE.get(subtype, "system messages"), scope)
    user_id = first_field_text(raw_message, "user", "comment.user")
    bot_id = first_field_text(raw_message, "bot_id")
    sender_name = _shown_name_of_sender_or_unknown(raw_message, user_id, directory)
    is_automatic = subtype in ("bot_message", "slackbot_response") or user_id in directory.bots
    if bot_id and not directory.people.get(user_id):
        is_automatic = True
    sender = sender_name
    if not is_automatic:
        sender = directory.find_or_add_unique_name_in_channel(channel_id, user_id, sender_name)
    text = first_field_text(raw_message, "text").removeprefix("This content can't be displayed.")
    if bot_id or is_automatic or not text:  # a person's blocks are the text once more
        text = _join_texts_not_contained(
            text, list(map(_text_of_block, get_nested_list(raw_message, "blocks")))
        )
    kept_attachments = _drop_and_count_link_previews(
        source, scope, raw_message, has_text_of_person=bool(text) and not is_automatic
    )
    text = _join_non_empty_texts(text, *map(_text_of_attachment, kept_attachments))
    file_texts, caption = _read_file_texts_and_caption_and_count(source, scope, raw_message)
    text = _render_mentions_and_links(
        _join_non_empty_texts(text, *file_texts), channel_id, directory
    )
    if raw_message.get("edited"):
        source.keep("edited messages", scope)
    count_unread_texts(source, scope, raw_message, _READ, text)
    is_bot: bool | None = is_automatic
    if not is_automatic and user_id not in directory.humans:
        is_bot = None
    thread_time = first_field_text(raw_message, "thread_ts")
    columns = {
        "id": first_field_text(raw_message, "ts"),
        "session": None,
        "role": messenger_role_and_count_guess(source, sender_name, is_bot=is_bot),
        "caption": caption,
        "quoted": _list_texts_of_shared_messages(kept_attachments, channel_id, directory),
        "edited": first_field_text(raw_message, "edited.ts"),
    }
    if thread_time:
        columns["session"] = f"thread {thread_time}"
    return make_message_or_count_drop(
        source, scope, sender, text, timestamp=first_field_text(raw_message, "ts"), **columns
    )


def _shown_name_of_sender_or_unknown(
    raw_message: JsonObject, user_id: str, directory: _SlackNameDirectory
) -> str:
    """Name who wrote a message by the list, by its own profile, or by an id."""
    if user_id == "USLACKBOT":
        return "Slackbot"
    profile = first_field_text(raw_message, *_PROFILE, "username", "bot_profile.name")
    return first_non_empty_text(
        directory.people.get(user_id), profile, user_id, raw_message.get("bot_id"), "unknown"
    )


def _drop_and_count_link_previews(
    source: Source, scope: str, raw_message: JsonObject, *, has_text_of_person: bool
) -> list[JsonObject]:
    """Choose what is part of a message.

    Beside the text of a person the others are previews of its links.
    """
    attachments = get_nested_objects(raw_message, "attachments")
    if not has_text_of_person:
        return attachments
    kept_attachments = list(filter(_is_shared_message, attachments))
    source.drop("previews of links", scope, len(attachments) - len(kept_attachments))
    return kept_attachments


def _list_texts_of_shared_messages(
    attachments: list[JsonObject], channel_id: str, directory: _SlackNameDirectory
) -> list[str]:
    """Give the messages of others among the attachments of one."""
    shared_texts = filter(None, map(_text_of_attachment, filter(_is_shared_message, attachments)))
    return [_render_mentions_and_links(text, channel_id, directory) for text in shared_texts]


def _is_shared_message(attachment: JsonObject) -> bool:
    """Say whether an attachment is a message that is shared."""
    return attachment.get("is_share") is True


def _read_file_texts_and_caption_and_count(
    source: Source, scope: str, raw_message: JsonObject
) -> tuple[list[str], str]:
    """Give what an export has of the texts of the files of a message, and its caption."""
    file_objects = get_nested_objects(raw_message, "files")
    if not get_nested_list(raw_message, "files"):
        file_objects = get_nested_objects({"files": [raw_message.get("file")]}, "files")
    file_texts = list[str]()
    file_descriptions = list[str]()
    for file_object in file_objects:
        if file_object.get("mode") in ("tombstone", "hidden_by_limit"):
            source.drop("deleted files", scope)
            file_descriptions.append(
                ""
            )  # a deleted file leaves the place between two separators empty
            continue
        source.keep("files", scope, "described in captions")
        if first_field_text(file_object, "transcription.preview.content"):
            source.keep("recordings", scope, "kept as their transcripts")
        file_texts.append(_text_of_file_or_empty(file_object))
        file_descriptions.append(
            describe_attached_file_or_empty(
                file_object, "title", "name", name_if_missing="without a name"
            )
        )
    return file_texts, "; ".join(file_descriptions)


def _text_of_file_or_empty(raw_file: JsonObject) -> str:
    """Give what an export has of the text of a file: the transcript of a recording, the
    beginning of a post.
    """
    transcript = first_field_text(raw_file, "transcription.preview.content")
    if transcript:
        if get_nested(raw_file, "transcription.preview.has_more") is True:
            transcript += " …"
        return transcript
    if raw_file.get("mode") == "space":
        return " ".join(_MARKUP.sub(" ", first_field_text(raw_file, "preview")).split())
    return ""


def _render_mentions_and_links(text: str, channel_id: str, directory: _SlackNameDirectory) -> str:
    """Write mentions and links as they are read: ``<@U1>``, ``<#C1|general>``, ``<!here>``,
    ``<url|label>``.
    """

    def render_markup(markup: re.Match[str]) -> str:
        mention_mark, target, label = markup.groups("")
        if mention_mark == "@":
            return f"@{directory.find_or_add_unique_name_in_channel(channel_id, target, label)}"
        if mention_mark == "#":
            return f"#{label or directory.channels.get(target) or target}"
        if mention_mark == "!":
            return _render_date_or_group_mention(target, label)
        address = target.removeprefix("mailto:")
        if label and label not in (target, address):
            return f"{label} ({target})"
        return address

    return html.unescape(_LINK.sub(render_markup, text))


def _render_date_or_group_mention(command: str, label: str) -> str:
    """Write a date, or whom a message calls: ``<!here>``, ``<!subteam^S1|@cooks>``."""
    date_match = _DATE.match(command)
    if date_match:
        return label or f"{datetime.fromtimestamp(int(date_match[1]), UTC):%Y-%m-%d %H:%M} UTC"
    if label.startswith("@"):
        return label
    return f"@{label or command.partition('^')[0]}"


def _text_of_attachment(attachment: JsonObject) -> str:
    """Give the text of an attachment; of a message that is shared, with who wrote it."""
    blocks = _join_non_empty_texts(*map(_text_of_block, get_nested_list(attachment, "blocks")))
    fallback = first_field_text(attachment, "fallback").removeprefix("[no preview available]")
    text_parts = [first_field_text(attachment, "pretext"), first_field_text(attachment, "title")]
    text_parts.append(first_field_text(attachment, "text") or blocks or fallback)
    for record in get_nested_list(attachment, "fields"):
        title_and_value = first_field_text(record, "title"), first_field_text(record, "value")
        text_parts.append(": ".join(filter(None, title_and_value)))
    joined_text = _join_non_empty_texts(*dict.fromkeys(text_parts))
    if not joined_text or not _is_shared_message(attachment):
        return joined_text
    author = first_field_text(attachment, "author_name", "author_subname")
    return ": ".join(filter(None, (author, joined_text)))


def _text_of_block(raw_block: JsonValue) -> str:
    """Give the text of a block, or of what is within one, with mentions and links as the
    text of a message has them.
    """
    if isinstance(raw_block, list):  # a row of a table
        return " | ".join(filter(None, map(_text_of_block, raw_block)))
    block_type = first_field_text(raw_block, "type")
    written_text = get_nested(raw_block, "text")
    if block_type in _ELEMENTS:
        escaped_values = defaultdict[str, str](str)
        for key, value in raw_block.items():
            escaped_values[key] = html.escape(first_non_empty_text(value), False)
        return _ELEMENTS[block_type].format_map(escaped_values)
    if isinstance(written_text, str):
        if block_type in ("text", "raw_text"):  # which Slack does not escape
            return html.escape(written_text, False)
        return written_text
    inner_texts = list[str]()
    for key in ("elements", "fields", "rows"):
        inner_texts += map(_text_of_block, get_nested_list(raw_block, key))
    if block_type in _ON_ONE_LINE:
        return "".join(inner_texts)
    if get_nested(raw_block, "style") == "ordered":
        inner_texts = [
            f"{number}. {inner_text}" for number, inner_text in enumerate(inner_texts, 1)
        ]
    if written_text:
        inner_texts.insert(0, _text_of_block(written_text))
    return "\n".join(inner_text.strip("\n") for inner_text in inner_texts if inner_text)


def _join_texts_not_contained(text: str, other_texts: list[str]) -> str:
    """Put texts under another; one whose words are all in a row in the rest is there already."""
    text_words = _words_separated_by_spaces(text)
    added_texts = [
        other_text
        for other_text in other_texts
        if other_text and _words_separated_by_spaces(other_text) not in text_words
    ]
    if not added_texts:
        return text
    if text and text_words not in _words_separated_by_spaces("\n".join(added_texts)):
        added_texts.insert(0, text)
    return "\n".join(added_texts)


def _words_separated_by_spaces(text: str) -> str:
    found_words = _WORD.findall(html.unescape(text))
    return f" {' '.join(found_words) or text.strip()} "


def _join_non_empty_texts(*texts: str) -> str:
    """Join texts, each on lines of its own, without empty ones."""
    return "\n".join(filter(None, texts))
