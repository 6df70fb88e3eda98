"""Messages of exports as records of a chat log: their texts and captions, roles, and names that are unique."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from memlab.datasets.chatlog import is_person
from memlab.datasets.fields import BadField
from memlab.datasets.importers.loose_json import (
    UNREADABLE,
    first_field,
    first_text,
    first_time,
    get_list,
    list_or_empty,
)
from memlab.datasets.importers.message_fields import (
    NAMES,
    THOUGHTS,
    TIMES,
    describe_version,
    find_content,
    has_thoughts,
    has_unreadable_time,
    holds_unknown_words,
    list_role_types,
    read_flagged_role,
    read_message_id,
    read_time_value,
)
from memlab.datasets.role_words import is_plain_role_word, normalise_role
from memlab.datasets.source import Source
from memlab.datasets.thoughts import cut_thoughts
from memlab.datasets.unread_texts import count_unread_texts, holds_words

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
}
_ITEMS = {"function_call": "tool", "function_call_output": "tool", "reasoning": "reasoning"}
_COUNTED = frozenset(("tool_calls", "function_call", "children", *THOUGHTS, *TIMES))
"""Keys of a message that are read, or counted, beside its content."""
_READ_OF_PARTS = frozenset(("text", "refusal", "annotations", "citations"))
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
    edited, shared_ids = more.pop("edited", ""), more.pop("shared_ids", False)
    if edited != "":
        edited = first_text(edited)
    spoken, thoughts = text, 0
    if more.get("role") == "assistant" and ("<" in text or not text.isascii()):
        spoken, thoughts = cut_thoughts(text)
        source.drop("thoughts", scope, thoughts)
    if not _is_count_of_seconds(more.get("timestamp")):
        more["timestamp"] = first_time(more.get("timestamp"))
    record: Message = {"text": _replace_unreadable(source, scope, spoken.strip())}
    for key, value in (("scope", scope), ("sender", sender), *more.items()):
        if isinstance(value, str):
            if value:
                record[key] = _replace_unreadable(source, scope, value)
        elif value is not None and value != []:
            record[key] = value
    if "quoted" in record:
        record["quoted"] = [UNREADABLE.sub("\ufffd", part) for part in record["quoted"]]
    if not record["text"] and not record.get("caption"):
        return () if thoughts else source.drop("empty messages", scope)
    if "id" in record:
        own = keep_newest_version(source, record, edited, shared_ids=shared_ids)
        if own is None:
            return source.drop("repeated messages", scope)
        record["id"] = own
    if "timestamp" in record and not _is_count_of_seconds(record["timestamp"]):
        try:
            source.parse_time(record["timestamp"], "timestamp")
        except BadField:
            source.drop("times that cannot be read", scope)
            del record["timestamp"]
    return [record]


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
    report, scope, session = source.report, record["scope"], str(record.get("session"))
    own, said = str(record["id"]), _hash_words(record)
    place = scope, own
    there = report.seen.get(place)
    if there is not None and there[0] != session and not (shared_ids and there[1] == said):
        own = f"{session} {own}"
        place = scope, own
        there = report.seen.get(place)
    if there is not None:
        before = report.edited.get(place, "")
        if edited < before or (edited == before and there[1] == said):
            return None
        source.drop("repeated messages", scope)
        report.newer.add(own)
    report.seen[place] = session, said
    if edited:
        report.edited[place] = edited
    return own


def _hash_words(record: Message) -> int:
    return hash((record["text"], record.get("caption") or None))


def find_same_messages(source: Source, scope: str, turns: list[Message]) -> str:
    """Give the session whose messages with the ids of these say the same.

    :returns: empty where there is none, or one of them says something else.
    """
    sessions = set[str]()
    for turn in turns:
        there = source.report.seen.get((scope, str(turn["id"])))
        if there is not None:
            is_same = there[1] == _hash_words(turn | {"text": turn["text"].strip()})
            sessions.add(there[0] if is_same else "")
    return sessions.pop() if len(sessions) == 1 else ""


def name_conversation(source: Source, file: Source, number: int) -> str:
    """Name a conversation that has no name by its place in the export."""
    return f"c{number:04}" if len(source.members) == 1 else f"{file.stem}-{number}"


def name_files(source: Source) -> dict[str, str]:
    """Give a name for the session of each file: its own, with its folder where another file is called so."""
    stems = [PurePosixPath(file.name).stem for file in source.members]
    names = {}
    for file, stem in zip(source.members, stems, strict=True):
        names[file.name] = file.stem if stems.count(stem) > 1 else stem
    return names


def is_spoken_role(source: Source, scope: str, role: str | None) -> bool:
    """Say whether a role is a person's or an assistant's; a message of another is counted."""
    if role not in ("user", "assistant"):
        source.drop(_UNSPOKEN.get(role or "", "unreadable messages"), scope)
    return role in ("user", "assistant")


def text_and_caption(source: Source, scope: str, parts: Any) -> tuple[str, str]:
    """Join the texts of a message's content and describe its images and files; the rest is counted.

    :param parts: a string, a part, or a list of both, as OpenAI, Anthropic and LangChain write
        them.
    :returns: text and caption.
    """
    texts: list[str] = []
    captions: list[str] = []
    for part in parts if isinstance(parts, list) else [parts]:
        if isinstance(part, str):
            texts.append(part)
        if not isinstance(part, dict):
            continue
        kind = first_field(part, "type", "content_type")
        if isinstance(part.get("parts"), list):
            inner = text_and_caption(source, scope, part["parts"])
            texts.append(inner[0])
            captions += filter(None, inner[1:])
            continue
        if kind in _THOUGHTS:
            source.drop("thoughts", scope)
        elif re.search("tool|function_call|execution|code_interpreter", kind):
            source.drop("tool calls", scope)
        elif re.search("image|video|audio|file|document|media", kind):
            if spoken := first_field(part, "transcript", "input_audio.transcript", "text"):
                texts.append(spoken)
                count_unread_texts(source, scope, part, ("text",), spoken)
                source.keep("recordings", scope, "kept as their transcripts")
                continue
            what = next((word for word in ("image", "audio", "video") if word in kind), "file")
            source.keep(f"{what}s", scope, "described in captions")
            keys = (
                "metadata.dalle.prompt",
                "alt",
                "title",
                "file_name",
                "filename",
                "name",
                "file.filename",
            )
            known = first_field(part, *keys)
            count_unread_texts(source, scope, part, keys, "")
            captions.append(f"{what}: {known}" if known else what)
        elif isinstance(said := part.get("text", part.get("refusal")), (str, dict)):
            texts.append(said if isinstance(said, str) else first_text(said.get("value")))
            count_unread_texts(source, scope, part, _READ_OF_PARTS, "")
            if isinstance(said, dict):
                count_unread_texts(source, scope, said, ("annotations",), texts[-1])
        elif kind or any(isinstance(each, str) and holds_words(each) for each in part.values()):
            source.drop(f"parts of the kind {kind or 'unknown'!r}", scope)
    return "\n".join(text for text in texts if text), "; ".join(captions)


def describe_file(file: Any, *keys: str, unnamed: str = "") -> str:
    """Describe an attached file by the first of the keys that names it: an image where its type says so."""
    kind, called = (
        first_field(file, "mime_type", "mimetype", "mimeType", "file_kind"),
        first_field(file, *keys),
    )
    return (
        f"{'image' if kind.startswith('image') else 'file'}: {called or unnamed}"
        if called or unnamed
        else ""
    )


def read_role(source: Source, scope: str, raw: dict[str, Any], inner: dict[str, Any]) -> Any:
    """Give the role of a message and the name of its speaker, empty where there is none.

    What the tool says of the kind of the speaker comes first, then ``role`` and the like. A role
    that is none is the name of a person, unless ``assistant=`` names it.

    :returns: the role, ``None`` for a person of another role or where there is none; and the name.
    """
    called = [raw.get("role"), inner.get("role")]
    senders = [raw.get("from"), raw.get("sender"), raw.get("author"), raw.get("speaker")]
    called = [*called[:1], *senders[:2], *called[1:], *senders[2:]]
    known = [read_flagged_role(raw), read_flagged_role(inner), *list_role_types(inner)]
    kinds = [inner.get("type"), *get_list(raw, "id")[-1:], raw.get("type")]
    own = first_text(*called)
    denied = is_person(source, own)
    stated = next(filter(None, map(normalise_role, known)), None)
    role = _ITEMS.get(first_field(raw, "type")) or stated
    if role is None and denied:
        role = "user"
    if role is None:
        roles = [*map(normalise_role, called), *map(_role_of_kind, kinds)]
        role = next(filter(None, roles), None)
        if own in senders and role == normalise_role(own) and _is_role_of_name(raw, own, role):
            source.report.guessed[own] += 1
    name = first_field(inner, *NAMES)
    is_person_called_so = denied or (stated == "user" and normalise_role(own) != "user")
    if own and (is_person_called_so or not normalise_role(own)):
        name = name or own
        if role is None:
            source.keep("messages of other roles", scope, "kept as those of persons")
    return role, name


def _role_of_kind(kind: Any) -> str | None:
    """Give the role that the type of a message says; one with a document is of who sent it."""
    role = normalise_role(kind)
    return None if role == "document" else role


def _is_role_of_name(raw: dict[str, Any], own: str, role: str | None) -> bool:
    """Say whether nothing but the name of a sender makes them another than a person.

    In ShareGPT's layout ``from`` stands for the role.
    """
    is_role = "value" in raw and raw.get("from") == own
    return not is_role and role not in (None, "user") and not is_plain_role_word(own)


def read_turns(source: Source, scope: str, listed: Iterable[Any]) -> Iterator[Message]:
    """Read messages in the layouts of OpenAI, Anthropic, ShareGPT and LangChain: role, text, caption, id and time.

    The sender is the name in a message, or else its role. System messages, tool calls and their
    output are counted, and so is what has no role.
    """
    for raw in listed:
        if isinstance(raw, list) and len(raw) == 2 and isinstance(raw[0], str):
            raw = {"role": raw[0], "content": raw[1]}
        if not isinstance(raw, dict):
            source.drop("unreadable messages", scope)
            continue
        inner = next(
            (raw[key] for key in ("kwargs", "data") if isinstance(raw.get(key), dict)), raw
        )
        role, name = read_role(source, scope, raw, inner)
        if (role or not name) and not is_spoken_role(source, scope, role):
            continue
        key, said = find_content(inner)
        calls = get_list(inner, "tool_calls") or [1] * bool(inner.get("function_call"))
        source.drop("tool calls", scope, len(calls))
        thinks = has_thoughts(inner)
        source.drop("thoughts", scope, thinks)
        text, caption = text_and_caption(source, scope, said)
        if role == "assistant":
            text, cut = cut_thoughts(text)
            source.drop("thoughts", scope, cut)
            thinks = thinks or cut > 0
        if not text and not caption:
            if calls or thinks or list_or_empty(said):
                continue  # its parts are counted
            if holds_unknown_words(inner):
                source.drop("messages whose content has an unknown key", scope)
                continue
        read, spoken = {key, *_COUNTED}, f"{text}\n{caption}\n{said}"
        count_unread_texts(source, scope, inner, read, spoken)
        if inner is not raw:
            count_unread_texts(source, scope, raw, {"kwargs", "data"}, spoken)
        source.drop("times that cannot be read", scope, has_unreadable_time(inner))
        more = {"caption": caption, "id": read_message_id(inner) or None}
        more |= {"timestamp": read_time_value(inner), "edited": describe_version(inner)}
        yield {"role": role, "sender": name or role, "text": text, **more}


def make_session_messages(
    source: Source, scope: str, session: str, listed: Iterable[Message], when: Any = None
) -> Iterator[Message]:
    """Give the messages of a session.

    :param listed: as of :func:`read_turns`.
    :param when: the time of the session, for messages of which none has one: beside others, one
        without a time keeps its place and has none.
    """
    turns = list(listed)
    if when is not None and turns and not any(turn["timestamp"] for turn in turns):
        source.keep("times of conversations", scope, "given to their messages, which have none")
        turns = [turn | {"timestamp": when} for turn in turns]
    for turn in turns:
        text = turn.pop("text")
        yield from make_message(source, scope, turn.pop("sender"), text, session=session, **turn)


def name_account(accounts: dict[str, str], key: str) -> str:
    """Give the scope of an account: of the first, the owner's; of another, its id. What names none is the first's.

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


def name_chat(names: dict[str, str], key: str, wanted: str) -> str:
    """Give a chat the name that is wanted, with its id behind it where another chat has that name.

    :param names: the names of the chats so far, by their ids.
    """
    while key not in names and wanted in names.values():
        wanted = f"{wanted} ({key})"
    return names.setdefault(key, wanted)


def name_person(taken: dict[tuple[str, str], str], chat: str, key: str, called: str) -> str:
    """Give a person's name, with the id behind it where somebody else in the chat has that name.

    :param taken: whose the names are, by chat and name.

    >>> taken = {}
    >>> [name_person(taken, "trip", key, "Ann") for key in ("1", "2", "1")]
    ['Ann', 'Ann (2)', 'Ann']
    """
    return f"{called} ({key})" if key and taken.setdefault((chat, called), key) != key else called
