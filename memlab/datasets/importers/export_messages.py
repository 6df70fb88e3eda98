"""Messages of exports as records of a chat log.

Their texts and captions, their roles, and names that are unique.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import PurePosixPath
from typing import Any

from memlab.datasets.importers.loose_json import (
    UNREADABLE,
    first_field,
    first_filled,
    first_text,
    first_time,
    get_list,
    list_or_empty,
)
from memlab.datasets.importers.unknown_message_layouts import (
    THOUGHTS,
    TIMES,
    describe_version,
    find_content,
    has_thoughts,
    has_unreadable_time,
    holds_unknown_words,
    is_flagged_thought,
    list_quotations,
    list_role_types,
    read_flagged_role,
    read_forwarder,
    read_message_id,
    read_name,
    read_time_value,
)
from memlab.datasets.record_fields import BadField
from memlab.datasets.record_sources import Source
from memlab.datasets.role_words import ASSISTANTS, is_plain_role_word, normalise_role
from memlab.datasets.sender_roles import is_person
from memlab.datasets.thinking_tags import cut_and_count_thoughts, may_hold_thoughts
from memlab.datasets.unread_texts import count_unread_texts, has_three_words, join_all_texts_within

__all__ = ["TIMES", "normalise_role"]

OWNER_SCOPE = "me"
"""The scope of an export that holds one person's conversations and does not name the person."""
Message = dict[str, Any]
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


def make_message(
    source: Source, scope: str, sender: str, text: str, /, **more: Any
) -> Sequence[Message]:
    """Give the record of a message, if there is anything in it.

    A message without text or caption is counted as empty, and one of an assistant that holds
    nothing but thoughts as these. Keys without a value and times that are none are left out;
    characters that no text can hold become question marks. For one whose id was there see
    :func:`keep_newest_version`.

    :param more: ``session``, ``id``, ``role``, ``timestamp``, ``caption``, ``forwarded_from``,
        ``quoted``; ``edited``, a time or version as the tool writes it; ``shared_ids``, whether a
        message keeps its id where another conversation repeats it.
    """
    edited = more.pop("edited", "")
    shared_ids = more.pop("shared_ids", False)
    if edited != "":
        edited = first_text(edited)
    spoken_text = text
    thoughts = 0
    if source.people and more.get("role") == "assistant" and is_person(source, sender):
        source.keep(_DENIED, scope, "kept as an assistant's, since the export says so")
    if more.get("role") == "assistant" and may_hold_thoughts(text):
        spoken_text, thoughts = cut_and_count_thoughts(text)
        source.drop("thoughts", scope, thoughts)
    if not _is_count_of_seconds(more.get("timestamp")):
        more["timestamp"] = first_time(more.get("timestamp"))
    record: Message = {"text": _replace_unreadable(source, scope, spoken_text.strip())}
    for column, value in (("scope", scope), ("sender", sender), *more.items()):
        if isinstance(value, str):
            if value:
                record[column] = _replace_unreadable(source, scope, value)
        elif value is not None and value != []:
            record[column] = value
    if "quoted" in record:
        record["quoted"] = [UNREADABLE.sub("\ufffd", quotation) for quotation in record["quoted"]]
    if not record["text"] and not record.get("caption"):
        return () if thoughts else source.drop("empty messages", scope)
    if "id" in record:
        newest_id = keep_newest_version(source, record, edited, shared_ids=shared_ids)
        if newest_id is None:
            return source.drop("repeated messages", scope)
        record["id"] = newest_id
    if "timestamp" in record and not _is_count_of_seconds(record["timestamp"]):
        try:
            source.parse_time(record["timestamp"], "timestamp")
        except BadField:
            source.drop("times that cannot be read", scope)
            del record["timestamp"]
    return [record]


def note_messages(
    source: Source, scope: str, session: str, ids: Sequence[str], texts: Sequence[str]
) -> bool:
    """Note messages without captions, as :func:`make_message` notes each.

    :returns: false, with nothing noted, where one of the ids was there.

    >>> from pathlib import Path
    >>> source = Source(Path("export.json"))
    >>> note_messages(source, "me", "c1", ["m1"], ["Hi"])
    True
    >>> note_messages(source, "me", "c2", ["m1"], ["Hi"])
    False
    """
    seen_messages = source.report.seen
    scoped_ids = list(zip(repeat(scope), ids, strict=False))
    if not seen_messages.keys().isdisjoint(scoped_ids):
        return False
    for scoped_id, text in zip(scoped_ids, texts, strict=True):
        seen_messages[scoped_id] = session, hash((text, ""))
    return True


def _replace_unreadable(source: Source, scope: str, value: str) -> str:
    """Put a question mark for each character that no text can hold."""
    if (value.isascii() and "\x00" not in value) or not UNREADABLE.search(value):
        return value
    source.keep("unreadable characters", scope, "replaced")
    return UNREADABLE.sub("\ufffd", value)


def _is_count_of_seconds(value: Any) -> bool:
    """Say whether a time is a plain count of seconds since 1970, which can always be read."""
    return type(value) is float and 0.0 < value < 1e11


def keep_newest_version(
    source: Source, record: Message, edited: str, *, shared_ids: bool = False
) -> str | None:
    """Give the id of a message, ``None`` where a newer version of it was there already, or itself.

    Of two versions that the tool does not date the later one in the files is the newer. An id that
    a message of another conversation has gets the session before it: ids may begin anew in each
    conversation.

    :param edited: when it was edited, or its version: texts that are compared.
    :param shared_ids: whether a message that another conversation repeats has its id there too.
    """
    report = source.report
    scope = record["scope"]
    session = str(record.get("session"))
    own_id = str(record["id"])
    digest = _hash_words(record)
    known_version = report.seen.get((scope, own_id))
    if known_version is not None:
        is_shared = shared_ids and known_version[1] == digest
        if known_version[0] != session and not is_shared:
            own_id = f"{session} {own_id}"
            known_version = report.seen.get((scope, own_id))
    if known_version is not None:
        edited_before = report.edited.get((scope, own_id), "")
        if edited == edited_before and known_version[1] == digest:
            return None
        if edited < edited_before:
            return None
        source.drop("repeated messages", scope)
        report.newer.add(own_id)
    report.seen[scope, own_id] = session, digest
    if edited:
        report.edited[scope, own_id] = edited
    return own_id


def _hash_words(record: Message) -> int:
    # A text that is none, an object say, is refused when the record is checked.
    return hash((str(record["text"]), str(record.get("caption") or "")))


def find_same_messages(source: Source, scope: str, turns: list[Message]) -> str:
    """Give the session whose messages with the ids of these say the same.

    :returns: empty where there is none, or one of them says something else.
    """
    sessions = set[str]()
    for message in turns:
        known_version = source.report.seen.get((scope, str(message["id"])))
        if known_version is None:
            continue
        session, digest = known_version
        if digest != _hash_words(message | {"text": message["text"].strip()}):
            session = ""
        sessions.add(session)
    if len(sessions) == 1:
        return sessions.pop()
    return ""


def name_conversation(source: Source, file: Source, number: int) -> str:
    """Name a conversation that has no name by its place in the export."""
    if len(source.members) == 1:
        return f"c{number:04}"
    return f"{file.stem}-{number}"


def name_files(source: Source) -> dict[str, str]:
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


def is_spoken_role(source: Source, scope: str, role: str | None) -> bool:
    """Say whether a role is a person's or an assistant's; a message of another is counted."""
    if role in ("user", "assistant"):
        return True
    source.drop(_UNSPOKEN.get(str(role), "unreadable messages"), scope)
    return False


def text_and_caption(source: Source, scope: str, parts: Any) -> tuple[str, str]:
    """Join the texts of a message's content and describe its images and files; the rest is counted.

    :param parts: a string, a part, or a list of both, as OpenAI, Anthropic and LangChain write
        them.
    :returns: text and caption.
    """
    texts = list[str]()
    captions = list[str]()
    part_list = parts
    if not isinstance(parts, list):
        part_list = [parts]
    for content_part in part_list:
        if isinstance(content_part, str):
            texts.append(content_part)
        elif isinstance(content_part, (dict, list)):
            text, caption = _read_part(source, scope, content_part)
            texts.append(text)
            captions.append(caption)
    return "\n".join(filter(None, texts)), "; ".join(filter(None, captions))


def _read_part(source: Source, scope: str, content_part: Any) -> tuple[str, str]:
    """Give the text and the caption of a part; one that has neither is counted."""
    if isinstance(content_part, list):
        return text_and_caption(source, scope, content_part)
    if isinstance(content_part.get("parts"), list):
        return text_and_caption(source, scope, content_part["parts"])
    part_type = first_field(content_part, "type", "content_type")
    stated_text = content_part.get("text", content_part.get("refusal"))
    if stated_text is None and part_type == "text":
        stated_text = first_filled(content_part, "value", "content")
    if not part_type:
        part_type = _find_only_key(content_part)
    if part_type in _THOUGHTS or is_flagged_thought(content_part):
        source.drop("thoughts", scope)
    elif _TOOL.search(part_type):
        source.drop("tool calls", scope)
    elif _MEDIA.search(part_type):
        return _read_media(source, scope, content_part, part_type)
    elif isinstance(stated_text, str):
        count_unread_texts(source, scope, content_part, _READ_OF_PARTS, stated_text)
        return stated_text, ""
    elif isinstance(stated_text, dict):
        count_unread_texts(source, scope, content_part, _READ_OF_PARTS, "")
        text = first_text(stated_text.get("value"))
        count_unread_texts(source, scope, stated_text, ("annotations",), text)
        return text, ""
    elif part_type:
        source.drop(f"parts of the kind {part_type!r}", scope)
    elif any(map(has_three_words, join_all_texts_within(content_part).split("\n"))):
        source.drop("parts of the kind 'unknown'", scope)
    return "", ""


def _find_only_key(content_part: dict[str, Any]) -> str:
    """Give the key of a part that holds one object, which is its kind to Bedrock and Gemini."""
    if len(content_part) != 1:
        return ""
    for key, inner_value in content_part.items():
        if isinstance(inner_value, dict):
            return key
    return ""


def _read_media(
    source: Source, scope: str, media_part: dict[str, Any], kind: str
) -> tuple[str, str]:
    """Give the transcript of a recording as its text, or a caption of an image or a file."""
    transcript = first_field(media_part, "transcript", "input_audio.transcript", "text")
    if transcript:
        count_unread_texts(source, scope, media_part, ("text",), transcript)
        source.keep("recordings", scope, "kept as their transcripts")
        return transcript, ""
    medium_name = "file"
    for medium_word in ("image", "audio", "video"):
        if medium_word in kind:
            medium_name = medium_word
            break
    source.keep(f"{medium_name}s", scope, "described in captions")
    count_unread_texts(source, scope, media_part, _NAMES_OF_MEDIA, "")
    media_name = first_field(media_part, *_NAMES_OF_MEDIA)
    if media_name:
        return "", f"{medium_name}: {media_name}"
    return "", medium_name


def describe_file(file: Any, *keys: str, unnamed: str = "") -> str:
    """Describe an attached file by the first of the keys that names it.

    It is an image where its type says so.
    """
    file_name = first_field(file, *keys)
    if not file_name:
        file_name = unnamed
    if not file_name:
        return ""
    mime_type = first_field(file, "mime_type", "mimetype", "mimeType", "file_kind")
    if mime_type.startswith("image"):
        return f"image: {file_name}"
    return f"file: {file_name}"


def read_role(source: Source, scope: str, raw: dict[str, Any], inner: dict[str, Any]) -> Any:
    """Give the role of a message and the name of its speaker, empty where there is none.

    What the tool says of the kind of the speaker comes first, then ``role`` and the like. A role
    that is none is the name of a person, unless ``assistant=`` names it.

    :returns: the role, ``None`` for a person of another role or where there is none; and the name.
    """
    senders = [raw.get("from"), raw.get("sender"), raw.get("author"), raw.get("speaker")]
    stated_roles = [raw.get("role"), *senders[:2], inner.get("role"), *senders[2:]]
    flags = [read_flagged_role(raw), read_flagged_role(inner), *list_role_types(inner)]
    type_values = [inner.get("type"), *get_list(raw, "id")[-1:], raw.get("type")]
    speaker = first_text(*stated_roles)
    role_of_speaker = normalise_role(speaker)
    flagged_role = next(filter(None, map(normalise_role, flags)), None)
    is_denied_name = is_person(source, speaker)
    if flagged_role is None and any(flags) and speaker in senders:
        is_denied_name = True  # a customer, say
    role = _ITEMS.get(first_field(raw, "type"), flagged_role)
    if role is None:
        roles: list[str | None] = ["user"]
        if not is_denied_name:
            roles = [*map(normalise_role, stated_roles), *map(_role_of_kind, type_values)]
        role = next(filter(None, roles), None)
        is_name = _is_name_of_assistant(speaker)
        if speaker in senders:
            is_name = True
        if is_name and role == role_of_speaker and _is_role_of_name(raw, speaker, role):
            source.report.guessed[speaker] += 1
    shown_name = read_name(inner)
    is_denied = flagged_role == "user" and role_of_speaker != "user"
    if speaker and (is_denied_name or is_denied or not role_of_speaker):
        if not shown_name:
            shown_name = speaker
        if role is None:
            source.keep("messages of other roles", scope, "kept as those of persons")
    return role, shown_name


def _role_of_kind(kind: Any) -> str | None:
    """Give the role that the type of a message says; one with a document is of who sent it."""
    role = normalise_role(kind)
    if role == "document":
        return None
    return role


def _is_role_of_name(raw: dict[str, Any], speaker: str, role: str | None) -> bool:
    """Say whether nothing but the name of a sender makes them another than a person.

    In ShareGPT's layout ``from`` stands for the role.
    """
    if "value" in raw and raw.get("from") == speaker and not _is_name_of_assistant(speaker):
        return False
    return role not in (None, "user") and not is_plain_role_word(speaker)


def _is_name_of_assistant(name: str) -> bool:
    """Say whether a role is written as the name of an assistant that people have too: Claude."""
    if not name.istitle() or is_plain_role_word(name):
        return False
    return name.lower() in ASSISTANTS


def read_turns(source: Source, scope: str, listed: Iterable[Any]) -> Iterator[Message]:
    """Read messages in the layouts of OpenAI, Anthropic, ShareGPT and LangChain.

    A turn has a role, a text, a caption, an id and a time. The sender is the name in a message, or
    else its role. System messages, tool calls and their output are counted, and so is what has no
    role.
    """
    for message in listed:
        match message:
            case dict():
                yield from _read_turn(source, scope, message)
            case [str(role), content]:
                yield from _read_turn(source, scope, {"role": role, "content": content})
            case _:
                source.drop("unreadable messages", scope)


def _read_turn(source: Source, scope: str, raw: dict[str, Any]) -> Iterator[Message]:
    inner_message = _unwrap_langchain(raw)
    role, name = read_role(source, scope, raw, inner_message)
    if is_flagged_thought(raw):
        source.drop("thoughts", scope)
        return
    is_person = role is None and name != ""  # of another role
    if not is_person and not is_spoken_role(source, scope, role):
        return
    sender = name
    if not name:
        sender = role
    content_key, content = find_content(inner_message)
    n_tool_calls = len(get_list(inner_message, "tool_calls"))
    if not n_tool_calls:
        n_tool_calls = int(bool(inner_message.get("function_call")))
    thoughts = int(has_thoughts(inner_message))
    text, caption = text_and_caption(source, scope, content)
    if role == "assistant":
        text, thoughts_in_text = cut_and_count_thoughts(text)
        thoughts += thoughts_in_text
    source.drop("tool calls", scope, n_tool_calls)
    source.drop("thoughts", scope, thoughts)
    if not text and not caption:
        if n_tool_calls or thoughts or list_or_empty(content):
            return  # its parts are counted
        if holds_unknown_words(inner_message):
            source.drop("messages whose content has an unknown key", scope)
            return
    written_at = read_time_value(inner_message)
    forwarder = read_forwarder(inner_message)
    read_text = f"{text}\n{caption}\n{content}\n{written_at}\n{forwarder}"
    count_unread_texts(source, scope, inner_message, {content_key, *_COUNTED}, read_text)
    if inner_message is not raw:
        count_unread_texts(source, scope, raw, _AROUND_MESSAGES, read_text)
    source.drop("times that cannot be read", scope, has_unreadable_time(inner_message))
    yield {
        "role": role,
        "sender": sender,
        "text": text,
        "caption": caption,
        "id": read_message_id(inner_message) or None,
        "timestamp": written_at,
        "forwarded_from": forwarder,
        "quoted": list_quotations(inner_message, text),
        "edited": describe_version(inner_message),
    }


def _unwrap_langchain(raw: dict[str, Any]) -> dict[str, Any]:
    """Give the message in an object of LangChain; any other is one itself."""
    for around_key in _AROUND_MESSAGES:
        inner_message = raw.get(around_key)
        if isinstance(inner_message, dict):
            return inner_message
    return raw


def make_session_messages(
    source: Source, scope: str, session: str, listed: Iterable[Message], when: Any = None
) -> Iterator[Message]:
    """Give the messages of a session.

    :param listed: as of :func:`read_turns`.
    :param when: the time of the session, for messages of which none has one: beside others, one
        without a time keeps its place and has none.
    """
    messages = list(listed)
    is_dated = any(message["timestamp"] for message in messages)
    if messages and when is not None and not is_dated:
        source.keep("times of conversations", scope, "given to their messages, which have none")
        for message in messages:
            message["timestamp"] = when
    for message in messages:
        sender = message.pop("sender")
        text = message.pop("text")
        yield from make_message(source, scope, sender, text, session=session, **message)


def name_account(accounts: dict[str, str], key: str) -> str:
    """Give the scope of an account: of the first, the owner's; of another, its id.

    What names none is the first's.

    :param accounts: the scopes of the accounts so far, by their ids.

    >>> accounts = {}
    >>> [name_account(accounts, key) for key in ("u1", "", "u2", "u1")]
    ['me', 'me', 'u2', 'me']
    """
    if not accounts:
        accounts[key] = OWNER_SCOPE
    if not key:
        return OWNER_SCOPE
    return accounts.setdefault(key, key)


class ChatNames(dict[str, str]):
    """The names of the chats so far, by their ids.

    :param taken: these names, of which each is looked up for every chat.
    """

    def __init__(self) -> None:
        super().__init__()
        self.taken = set[str]()


def name_chat(names: ChatNames, key: str, wanted: str) -> str:
    """Give a chat the name that is wanted, with its id behind it where another chat has that name.

    >>> names = ChatNames()
    >>> [name_chat(names, key, "Trip") for key in ("1", "2", "1")]
    ['Trip', 'Trip (2)', 'Trip']
    """
    if key in names:
        return names[key]
    while wanted in names.taken:
        wanted = f"{wanted} ({key})"
    names.taken.add(wanted)
    names[key] = wanted
    return wanted


def name_person(taken: dict[tuple[str, str], str], chat: str, key: str, called: str) -> str:
    """Give a person's name, with the id behind it where somebody else in the chat has that name.

    :param taken: whose the names are, by chat and name.

    >>> taken = {}
    >>> [name_person(taken, "trip", key, "Ann") for key in ("1", "2", "1")]
    ['Ann', 'Ann (2)', 'Ann']
    """
    if not key:
        return called
    if taken.setdefault((chat, called), key) == key:
        return called
    return f"{called} ({key})"
