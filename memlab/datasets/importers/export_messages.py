"""Messages of exports as records of a chat log.

Their texts and captions, their roles, and names that are unique.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from memlab.datasets.importers.loose_json import (
    UNREADABLE,
    JsonObject,
    JsonValue,
    RawTime,
    first_field_text,
    first_filled_field,
    first_non_empty_text,
    first_possible_time,
    get_nested_list,
    list_or_empty,
)
from memlab.datasets.importers.unknown_message_layouts import (
    THOUGHTS,
    TIMES,
    comparable_version_text_or_empty,
    find_content_key_and_value_or_empty,
    find_message_time,
    has_sentence_under_any_key,
    has_separate_thoughts,
    has_unreadable_time,
    is_flagged_as_thought,
    list_quotations_in_text,
    list_stated_speaker_types,
    read_forwarded_writer_or_empty,
    read_message_id_or_empty,
    read_role_from_flags_or_empty,
    read_speaker_name_or_empty,
)
from memlab.datasets.record_fields import BadField
from memlab.datasets.record_sources import Source
from memlab.datasets.role_words import ASSISTANTS, is_plain_role_word, normalise_role
from memlab.datasets.sender_roles import is_named_as_person
from memlab.datasets.thinking_tags import cut_and_count_thoughts, may_hold_thoughts
from memlab.datasets.unread_texts import count_unread_texts, has_three_words, join_all_texts_within

__all__ = ["TIMES", "normalise_role"]

OWNER_SCOPE = "me"
"""The scope of an export that holds one person's conversations and does not name the person."""
Message = dict[str, Any]
"""A record of a chat log."""
MessageFields = dict[str, Any]
"""What a message says in any layout, by the columns of a chat log; it has no session yet."""


class TextAndCaption(NamedTuple):
    """The text of a message, and what describes its images and files; either may be empty."""

    text: str
    caption: str


class RoleAndName(NamedTuple):
    """The role of a speaker, ``None`` for a person of another role; and the name, or nothing."""

    role: str | None
    name: str


_THOUGHTS = {
    "thinking",
    "redacted_thinking",
    "reasoning",
    "redacted_reasoning",
    "omitted_reasoning",
    "thoughts",
    "reasoningContent",
}
_ITEMS = {"function_call": "tool", "function_call_output": "tool", "reasoning": "reasoning"}
_COUNTED = frozenset(("tool_calls", "function_call", "children", *THOUGHTS, *TIMES))
"""Keys of a message that are read, or counted, beside its content."""
_TOOL = re.compile(
    "tool|function_call|execution|code_interpreter"
    "|functionCall|functionResponse|executableCode|codeExecution"
)
_MEDIA = re.compile("image|video|audio|file|document|media")
_NAMES_OF_MEDIA = (
    *("metadata.dalle.prompt", "alt", "title", "file_name", "filename", "name", "file.filename"),
)
_AROUND_MESSAGES = ("kwargs", "data")
"""Keys under which LangChain has its messages."""
_READ_OF_PARTS = frozenset(("text", "refusal", "annotations", "citations"))
_DENIED = "messages of those named with --person"
_UNSPOKEN = {
    "system": "system messages",
    "document": "documents",
    "tool": "tool calls",
    "reasoning": "thoughts",
}


def make_message_or_count_drop(
    source: Source, scope: str, sender: str, text: str, /, **columns: Any
) -> Sequence[Message]:
    """Give the record of a message, if there is anything in it.

    A message without text or caption is counted as empty, and one of an assistant that holds
    nothing but thoughts as these. Keys without a value and times that are none are left out;
    characters that no text can hold become question marks. For one whose id was there see
    :func:`remember_id_if_newest_version`.

    :param columns: ``session``, ``id``, ``role``, ``timestamp``, ``caption``, ``forwarded_from``,
        ``quoted``; ``edited``, a time or version as the tool writes it; ``shared_ids``, whether a
        message keeps its id where another conversation repeats it.
    """
    edited = columns.pop("edited", "")
    shared_ids = columns.pop("shared_ids", False)
    if edited != "":
        edited = first_non_empty_text(edited)
    spoken_text = text
    thoughts = 0
    if source.people and columns.get("role") == "assistant" and is_named_as_person(source, sender):
        source.keep(_DENIED, scope, "kept as an assistant's, since the export says so")
    if columns.get("role") == "assistant" and may_hold_thoughts(text):
        spoken_text, thoughts = cut_and_count_thoughts(text)
        source.drop("thoughts", scope, thoughts)
    if not _is_unix_seconds(columns.get("timestamp")):
        columns["timestamp"] = first_possible_time(columns.get("timestamp"))
    record: Message = {"text": _replace_and_count_unreadable(source, scope, spoken_text.strip())}
    for column, value in (("scope", scope), ("sender", sender), *columns.items()):
        if isinstance(value, str):
            if value:
                record[column] = _replace_and_count_unreadable(source, scope, value)
        elif value is not None and value != []:
            record[column] = value
    if "quoted" in record:
        record["quoted"] = [UNREADABLE.sub("\ufffd", quotation) for quotation in record["quoted"]]
    if not record["text"] and not record.get("caption"):
        return () if thoughts else source.drop("empty messages", scope)
    if "id" in record:
        newest_id = remember_id_if_newest_version(source, record, edited, are_ids_shared=shared_ids)
        if newest_id is None:
            return source.drop("repeated messages", scope)
        record["id"] = newest_id
    if "timestamp" in record and not _is_unix_seconds(record["timestamp"]):
        try:
            source.parse_time(record["timestamp"], "timestamp")
        except BadField:
            source.drop("times that cannot be read", scope)
            del record["timestamp"]
    return [record]


def remember_messages_unless_known(
    source: Source, scope: str, session: str, message_ids: Sequence[str], texts: Sequence[str]
) -> bool:
    """Note messages without captions, as :func:`make_message_or_count_drop` notes each.

    :returns: false, with nothing noted, where one of the ids was there.

    >>> from pathlib import Path
    >>> source = Source(Path("export.json"))
    >>> remember_messages_unless_known(source, "me", "c1", ["m1"], ["Hi"])
    True
    >>> remember_messages_unless_known(source, "me", "c2", ["m1"], ["Hi"])
    False
    """
    seen_messages = source.report.seen
    scoped_ids = list(zip(repeat(scope), message_ids, strict=False))
    if not seen_messages.keys().isdisjoint(scoped_ids):
        return False
    for scoped_id, text in zip(scoped_ids, texts, strict=True):
        seen_messages[scoped_id] = session, hash((text, ""))
    return True


def _replace_and_count_unreadable(source: Source, scope: str, text: str) -> str:
    """Put a question mark for each character that no text can hold."""
    if (text.isascii() and "\x00" not in text) or not UNREADABLE.search(text):
        return text
    source.keep("unreadable characters", scope, "replaced")
    return UNREADABLE.sub("\ufffd", text)


def _is_unix_seconds(raw_time: JsonValue) -> bool:
    """Say whether a time is a plain count of seconds since 1970, which can always be read."""
    return type(raw_time) is float and 0.0 < raw_time < 1e11


def remember_id_if_newest_version(
    source: Source, message: Message, edited_or_version: str, *, are_ids_shared: bool = False
) -> str | None:
    """Give the id of a message, ``None`` where a newer version of it was there already, or itself.

    Of two versions that the tool does not date the later one in the files is the newer. An id that
    a message of another conversation has gets the session before it: ids may begin anew in each
    conversation.

    :param edited_or_version: when it was edited, or its version: texts that are compared.
    :param are_ids_shared: whether a message that another conversation repeats has its id there too.
    """
    report = source.report
    scope = message["scope"]
    session = str(message.get("session"))
    own_id = str(message["id"])
    digest = _hash_text_and_caption(message)
    known_version = report.seen.get((scope, own_id))
    if known_version is not None:
        is_shared = are_ids_shared and known_version[1] == digest
        if known_version[0] != session and not is_shared:
            own_id = f"{session} {own_id}"
            known_version = report.seen.get((scope, own_id))
    if known_version is not None:
        edited_before = report.edited.get((scope, own_id), "")
        if edited_or_version == edited_before and known_version[1] == digest:
            return None
        if edited_or_version < edited_before:
            return None
        source.drop("repeated messages", scope)
        report.newer.add(own_id)
    report.seen[scope, own_id] = session, digest
    if edited_or_version:
        report.edited[scope, own_id] = edited_or_version
    return own_id


def _hash_text_and_caption(message: Message) -> int:
    # A text that is none, an object say, is refused when the record is checked.
    return hash((str(message["text"]), str(message.get("caption") or "")))


def find_session_of_same_messages_or_empty(
    source: Source, scope: str, messages: list[MessageFields]
) -> str:
    """Give the session whose messages with the ids of these say the same.

    :returns: empty where there is none, or one of them says something else.
    """
    sessions = set[str]()
    for message in messages:
        known_version = source.report.seen.get((scope, str(message["id"])))
        if known_version is None:
            continue
        session, digest = known_version
        if digest != _hash_text_and_caption(message | {"text": message["text"].strip()}):
            session = ""
        sessions.add(session)
    if len(sessions) == 1:
        return sessions.pop()
    return ""


def name_conversation_by_place(source: Source, file: Source, conversation_number: int) -> str:
    """Name a conversation that has no name by its place in the export."""
    if len(source.members) == 1:
        return f"c{conversation_number:04}"
    return f"{file.stem}-{conversation_number}"


def session_name_by_file_name(source: Source) -> dict[str, str]:
    """Give a name for the session of each file.

    It is its own, with its folder where another file is called so.
    """
    stems_by_file = dict[str, str]()
    for file in source.members:
        stems_by_file[file.name] = PurePosixPath(file.name).stem
    counts = Counter(stems_by_file.values())
    for file in source.members:
        if counts[stems_by_file[file.name]] > 1:
            stems_by_file[file.name] = file.stem
    return stems_by_file


def is_spoken_role_or_count_drop(source: Source, scope: str, role: str | None) -> bool:
    """Say whether a role is a person's or an assistant's; a message of another is counted."""
    if role in ("user", "assistant"):
        return True
    source.drop(_UNSPOKEN.get(str(role), "unreadable messages"), scope)
    return False


def read_text_and_caption_and_count_rest(
    source: Source, scope: str, raw_content: JsonValue
) -> TextAndCaption:
    """Join the texts of a message's content and describe its images and files; the rest is counted.

    :param raw_content: a string, a part, or a list of both, as OpenAI, Anthropic and LangChain
        write them.
    """
    texts = list[str]()
    captions = list[str]()
    part_list = raw_content
    if not isinstance(raw_content, list):
        part_list = [raw_content]
    for content_part in part_list:
        if isinstance(content_part, str):
            texts.append(content_part)
        elif isinstance(content_part, (dict, list)):
            text, caption = _read_part_or_count_drop(source, scope, content_part)
            texts.append(text)
            captions.append(caption)
    return TextAndCaption("\n".join(filter(None, texts)), "; ".join(filter(None, captions)))


def _read_part_or_count_drop(source: Source, scope: str, content_part: JsonValue) -> TextAndCaption:
    """Give the text and the caption of a part; one that has neither is counted."""
    if isinstance(content_part, list):
        return read_text_and_caption_and_count_rest(source, scope, content_part)
    if isinstance(content_part.get("parts"), list):
        return read_text_and_caption_and_count_rest(source, scope, content_part["parts"])
    part_type = first_field_text(content_part, "type", "content_type")
    stated_text = content_part.get("text", content_part.get("refusal"))
    if stated_text is None and part_type == "text":
        stated_text = first_filled_field(content_part, "value", "content")
    if not part_type:
        part_type = _sole_key_with_object_value_or_empty(content_part)
    if part_type in _THOUGHTS or is_flagged_as_thought(content_part):
        source.drop("thoughts", scope)
    elif _TOOL.search(part_type):
        source.drop("tool calls", scope)
    elif _MEDIA.search(part_type):
        return _read_and_count_media_part(source, scope, content_part, part_type)
    elif isinstance(stated_text, str):
        count_unread_texts(source, scope, content_part, _READ_OF_PARTS, stated_text)
        return TextAndCaption(stated_text, "")
    elif isinstance(stated_text, dict):
        count_unread_texts(source, scope, content_part, _READ_OF_PARTS, "")
        text = first_non_empty_text(stated_text.get("value"))
        count_unread_texts(source, scope, stated_text, ("annotations",), text)
        return TextAndCaption(text, "")
    elif part_type:
        source.drop(f"parts of the kind {part_type!r}", scope)
    elif any(map(has_three_words, join_all_texts_within(content_part).split("\n"))):
        source.drop("parts of the kind 'unknown'", scope)
    return TextAndCaption("", "")


def _sole_key_with_object_value_or_empty(content_part: JsonObject) -> str:
    """Give the key of a part that holds one object, which is its kind to Bedrock and Gemini."""
    if len(content_part) != 1:
        return ""
    for key, inner_value in content_part.items():
        if isinstance(inner_value, dict):
            return key
    return ""


def _read_and_count_media_part(
    source: Source, scope: str, media_part: JsonObject, part_type: str
) -> TextAndCaption:
    """Give the transcript of a recording as its text, or a caption of an image or a file."""
    transcript = first_field_text(media_part, "transcript", "input_audio.transcript", "text")
    if transcript:
        count_unread_texts(source, scope, media_part, ("text",), transcript)
        source.keep("recordings", scope, "kept as their transcripts")
        return TextAndCaption(transcript, "")
    medium_name = "file"
    for medium_word in ("image", "audio", "video"):
        if medium_word in part_type:
            medium_name = medium_word
            break
    source.keep(f"{medium_name}s", scope, "described in captions")
    count_unread_texts(source, scope, media_part, _NAMES_OF_MEDIA, "")
    media_name = first_field_text(media_part, *_NAMES_OF_MEDIA)
    if media_name:
        return TextAndCaption("", f"{medium_name}: {media_name}")
    return TextAndCaption("", medium_name)


def describe_attached_file_or_empty(
    raw_file: JsonValue, *name_paths: str, name_if_missing: str = ""
) -> str:
    """Describe an attached file by the first of the keys that names it.

    It is an image where its type says so.
    """
    file_name = first_field_text(raw_file, *name_paths)
    if not file_name:
        file_name = name_if_missing
    if not file_name:
        return ""
    mime_type = first_field_text(raw_file, "mime_type", "mimetype", "mimeType", "file_kind")
    if mime_type.startswith("image"):
        return f"image: {file_name}"
    return f"file: {file_name}"


def read_role_and_name_and_count_guess(
    source: Source, scope: str, raw_message: JsonObject, inner_message: JsonObject
) -> RoleAndName:
    """Give the role of a message and the name of its speaker, empty where there is none.

    What the tool says of the kind of the speaker comes first, then ``role`` and the like. A role
    that is none is the name of a person, unless ``assistant=`` names it.
    """
    senders = [
        raw_message.get("from"),
        raw_message.get("sender"),
        raw_message.get("author"),
        raw_message.get("speaker"),
    ]
    stated_roles = [raw_message.get("role"), *senders[:2], inner_message.get("role"), *senders[2:]]
    flags = [
        read_role_from_flags_or_empty(raw_message),
        read_role_from_flags_or_empty(inner_message),
        *list_stated_speaker_types(inner_message),
    ]
    type_values = [
        inner_message.get("type"),
        *get_nested_list(raw_message, "id")[-1:],
        raw_message.get("type"),
    ]
    speaker = first_non_empty_text(*stated_roles)
    role_of_speaker = normalise_role(speaker)
    flagged_role = next(filter(None, map(normalise_role, flags)), None)
    is_denied_name = is_named_as_person(source, speaker)
    if flagged_role is None and any(flags) and speaker in senders:
        is_denied_name = True  # a customer, say
    role = _ITEMS.get(first_field_text(raw_message, "type"), flagged_role)
    if role is None:
        roles: list[str | None] = ["user"]
        if not is_denied_name:
            roles = [*map(normalise_role, stated_roles), *map(_role_of_message_type, type_values)]
        role = next(filter(None, roles), None)
        is_name = _is_titlecased_assistant_name(speaker)
        if speaker in senders:
            is_name = True
        if (
            is_name
            and role == role_of_speaker
            and _is_role_only_from_sender_name(raw_message, speaker, role)
        ):
            source.report.guessed[speaker] += 1
    shown_name = read_speaker_name_or_empty(inner_message)
    is_denied = flagged_role == "user" and role_of_speaker != "user"
    if speaker and (is_denied_name or is_denied or not role_of_speaker):
        if not shown_name:
            shown_name = speaker
        if role is None:
            source.keep("messages of other roles", scope, "kept as those of persons")
    return RoleAndName(role, shown_name)


def _role_of_message_type(type_value: JsonValue) -> str | None:
    """Give the role that the type of a message says; one with a document is of who sent it."""
    role = normalise_role(type_value)
    if role == "document":
        return None
    return role


def _is_role_only_from_sender_name(
    raw_message: JsonObject, sender_name: str, role: str | None
) -> bool:
    """Say whether nothing but the name of a sender makes them another than a person.

    In ShareGPT's layout ``from`` stands for the role.
    """
    if (
        "value" in raw_message
        and raw_message.get("from") == sender_name
        and not _is_titlecased_assistant_name(sender_name)
    ):
        return False
    return role not in (None, "user") and not is_plain_role_word(sender_name)


def _is_titlecased_assistant_name(role_or_name: str) -> bool:
    """Say whether a role is written as the name of an assistant that people have too: Claude."""
    if not role_or_name.istitle() or is_plain_role_word(role_or_name):
        return False
    return role_or_name.lower() in ASSISTANTS


def read_message_fields_and_count_drops(
    source: Source, scope: str, raw_messages: Iterable[JsonValue]
) -> Iterator[MessageFields]:
    """Read messages in the layouts of OpenAI, Anthropic, ShareGPT and LangChain.

    A turn has a role, a text, a caption, an id and a time. The sender is the name in a message, or
    else its role. System messages, tool calls and their output are counted, and so is what has no
    role.
    """
    for raw_message in raw_messages:
        match raw_message:
            case dict():
                yield from _read_fields_or_count_drop(source, scope, raw_message)
            case [str(role), content]:
                yield from _read_fields_or_count_drop(
                    source, scope, {"role": role, "content": content}
                )
            case _:
                source.drop("unreadable messages", scope)


def _read_fields_or_count_drop(
    source: Source, scope: str, raw_message: JsonObject
) -> Iterator[MessageFields]:
    inner_message = _unwrap_langchain_message(raw_message)
    role, name = read_role_and_name_and_count_guess(source, scope, raw_message, inner_message)
    if is_flagged_as_thought(raw_message):
        source.drop("thoughts", scope)
        return
    is_of_other_role = role is None and name != ""
    if not is_of_other_role and not is_spoken_role_or_count_drop(source, scope, role):
        return
    sender = name
    if not name:
        sender = str(role)
    content_key, content = find_content_key_and_value_or_empty(inner_message)
    n_tool_calls = len(get_nested_list(inner_message, "tool_calls"))
    if not n_tool_calls:
        n_tool_calls = int(bool(inner_message.get("function_call")))
    thoughts = int(has_separate_thoughts(inner_message))
    text, caption = read_text_and_caption_and_count_rest(source, scope, content)
    if role == "assistant":
        text, thoughts_in_text = cut_and_count_thoughts(text)
        thoughts += thoughts_in_text
    source.drop("tool calls", scope, n_tool_calls)
    source.drop("thoughts", scope, thoughts)
    if not text and not caption:
        if n_tool_calls or thoughts or list_or_empty(content):
            return  # its parts are counted
        if has_sentence_under_any_key(inner_message):
            source.drop("messages whose content has an unknown key", scope)
            return
    written_at = find_message_time(inner_message)
    forwarder = read_forwarded_writer_or_empty(inner_message)
    read_text = f"{text}\n{caption}\n{content}\n{written_at}\n{forwarder}"
    count_unread_texts(source, scope, inner_message, {content_key, *_COUNTED}, read_text)
    if inner_message is not raw_message:
        count_unread_texts(source, scope, raw_message, _AROUND_MESSAGES, read_text)
    source.drop("times that cannot be read", scope, has_unreadable_time(inner_message))
    yield {
        "role": role,
        "sender": sender,
        "text": text,
        "caption": caption,
        "id": read_message_id_or_empty(inner_message) or None,
        "timestamp": written_at,
        "forwarded_from": forwarder,
        "quoted": list_quotations_in_text(inner_message, text),
        "edited": comparable_version_text_or_empty(inner_message),
    }


def _unwrap_langchain_message(raw_message: JsonObject) -> JsonObject:
    """Give the message in an object of LangChain; any other is one itself."""
    for around_key in _AROUND_MESSAGES:
        inner_message = raw_message.get(around_key)
        if isinstance(inner_message, dict):
            return inner_message
    return raw_message


def make_session_messages_and_count_drops(
    source: Source,
    scope: str,
    session: str,
    messages: Iterable[MessageFields],
    session_time: RawTime | None = None,
) -> Iterator[Message]:
    """Give the messages of a session.

    :param messages: as of :func:`read_message_fields_and_count_drops`.
    :param session_time: the time of the session, for messages of which none has one: beside
        others, one without a time keeps its place and has none.
    """
    message_list = list(messages)
    is_dated = any(message["timestamp"] for message in message_list)
    if message_list and session_time is not None and not is_dated:
        source.keep("times of conversations", scope, "given to their messages, which have none")
        for message in message_list:
            message["timestamp"] = session_time
    for message in message_list:
        sender = message.pop("sender")
        text = message.pop("text")
        yield from make_message_or_count_drop(
            source, scope, sender, text, session=session, **message
        )


def find_or_add_account_scope(scope_by_account: dict[str, str], account_id: str) -> str:
    """Give the scope of an account: of the first, the owner's; of another, its id.

    What names none is the first's.

    :param scope_by_account: the scopes of the accounts so far, by their ids.

    >>> accounts = {}
    >>> [find_or_add_account_scope(accounts, key) for key in ("u1", "", "u2", "u1")]
    ['me', 'me', 'u2', 'me']
    """
    if not scope_by_account:
        scope_by_account[account_id] = OWNER_SCOPE
    if not account_id:
        return OWNER_SCOPE
    return scope_by_account.setdefault(account_id, account_id)


class ChatNames(dict[str, str]):
    """The names of the chats so far, by their ids.

    :param taken: these names, of which each is looked up for every chat.
    """

    def __init__(self) -> None:
        super().__init__()
        self.taken = set[str]()


def find_or_add_chat_name(chat_names: ChatNames, chat_id: str, wanted_name: str) -> str:
    """Give a chat the name that is wanted, with its id behind it where another chat has that name.

    >>> names = ChatNames()
    >>> [find_or_add_chat_name(names, key, "Trip") for key in ("1", "2", "1")]
    ['Trip', 'Trip (2)', 'Trip']
    """
    if chat_id in chat_names:
        return chat_names[chat_id]
    while wanted_name in chat_names.taken:
        wanted_name = f"{wanted_name} ({chat_id})"
    chat_names.taken.add(wanted_name)
    chat_names[chat_id] = wanted_name
    return wanted_name


def find_or_add_person_name(
    id_by_chat_and_name: dict[tuple[str, str], str], chat: str, person_id: str, wanted_name: str
) -> str:
    """Give a person's name, with the id behind it where somebody else in the chat has that name.

    :param id_by_chat_and_name: whose the names are, by chat and name.

    >>> taken = {}
    >>> [find_or_add_person_name(taken, "trip", key, "Ann") for key in ("1", "2", "1")]
    ['Ann', 'Ann (2)', 'Ann']
    """
    if not person_id:
        return wanted_name
    if id_by_chat_and_name.setdefault((chat, wanted_name), person_id) == person_id:
        return wanted_name
    return f"{wanted_name} ({person_id})"
