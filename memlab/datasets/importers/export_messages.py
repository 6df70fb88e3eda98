"""Messages of exports as records of a chat log: their texts and captions, roles, and names that are unique."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from memlab.datasets import fields
from memlab.datasets.fields import BadField
from memlab.datasets.importers.loose_json import (
    UNREADABLE,
    first_field,
    first_text,
    first_time,
    get_list,
    get_nested,
    list_or_empty,
)
from memlab.datasets.source import Source

OWNER_SCOPE = "me"
"""The scope of an export that holds one person's conversations and does not name the person."""
Message = dict[str, Any]
TIMES = ("timestamp", "created_at", "create_time", "createdAt")
_ROLES = {
    "user": "user|human(message(chunk)?)?",
    "assistant": "assistant|ai(message(chunk)?)?|bot|model|gpt|chatgpt|bing|claude|bard",
    "system": "system(message)?|developer",
    "tool": "(?s).*(tool|function|observation|ipython).*",
}
_THOUGHTS = {
    "thinking",
    "redacted_thinking",
    "reasoning",
    "redacted_reasoning",
    "omitted_reasoning",
    "thoughts",
}
_ITEMS = {"function_call": "tool", "function_call_output": "tool", "reasoning": "reasoning"}
_UNSPOKEN = {"system": "system messages", "tool": "tool calls", "reasoning": "thoughts"}


def make_message(
    source: Source, scope: str, sender: str, text: str, /, **more: Any
) -> Sequence[Message]:
    """Give the record of a message, if there is anything in it.

    A message without text or caption is counted as empty, one whose id was there as repeated, of
    which the one that was edited last stays. Keys without a value and times that are none are left
    out; characters that no text can hold become question marks.

    :param more: ``session``, ``id``, ``role``, ``timestamp``, ``caption``, ``forwarded_from``,
        ``quoted``; ``edited``, a time as the tool writes it.
    """
    report, edited = source.report, first_text(more.pop("edited", ""))
    record = {"scope": scope, "sender": sender, "text": text.strip(), **more}
    record["timestamp"] = first_time(record.get("timestamp"))
    record = {
        key: value for key, value in record.items() if value not in (None, "", []) or key == "text"
    }
    if "quoted" in record:
        record["quoted"] = [UNREADABLE.sub("\ufffd", part) for part in record["quoted"]]
    for key, value in record.items():
        if isinstance(value, str) and UNREADABLE.search(value):
            record[key] = UNREADABLE.sub("\ufffd", value)
            source.keep("unreadable characters", scope, "replaced")
    if not record["text"] and not record.get("caption"):
        return source.drop("empty messages", scope)
    if "id" in record:
        record["id"] = str(record["id"])
        place = scope, str(record["id"])
        if place in report.seen:
            source.drop("repeated messages", scope)
            if edited <= report.edited.get(place, ""):
                return ()
            report.newer.add(record["id"])
        report.seen[place] = str(record.get("session"))
        report.edited |= {place: edited} if edited else {}
    if "timestamp" in record:
        try:
            fields.parse_time(record["timestamp"], "timestamp")
        except BadField:
            source.drop("times that cannot be read", scope)
            del record["timestamp"]
    return [record]


def name_conversation(source: Source, file: Source, number: int) -> str:
    """Name a conversation that has no name by its place in the export."""
    return f"c{number:04}" if len(source.members) == 1 else f"{file.stem}-{number}"


def normalise_role(value: Any) -> str | None:
    """Give the role that a tool calls so: ``user``, ``assistant``, ``system``, ``tool``; ``None`` for no role."""
    called = value.strip().lower() if isinstance(value, str) else ""
    return next((role for role, form in _ROLES.items() if re.fullmatch(form, called)), None)


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
        if kind in _THOUGHTS:
            source.drop("thoughts", scope)
        elif re.search("tool|function_call|execution|code_interpreter", kind):
            source.drop("tool calls", scope)
        elif re.search("image|video|audio|file|document|media", kind):
            if spoken := first_field(part, "transcript", "input_audio.transcript", "text"):
                texts.append(spoken)
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
            captions.append(f"{what}: {known}" if known else what)
        elif isinstance(said := part.get("text", part.get("refusal")), (str, dict)):
            texts.append(said if isinstance(said, str) else first_text(said.get("value")))
        elif kind:
            source.drop(f"parts of the kind {kind!r}", scope)
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
        called = [
            raw.get("role"),
            raw.get("from"),
            raw.get("sender"),
            inner.get("role"),
            inner.get("type"),
        ]
        called += [*get_list(raw, "id")[-1:], raw.get("type")]
        role = next((role for value in called if (role := normalise_role(value))), None)
        role = _ITEMS.get(first_field(raw, "type"), role)
        if not role and first_text(*called[:3]):
            source.drop("messages of other roles", scope)
            continue
        if not is_spoken_role(source, scope, role):
            continue
        keys = ("content", "value", "text", "parts", "refusal")
        said = next((inner[key] for key in keys if inner.get(key) is not None), None)
        said = get_nested(inner, "audio.transcript") if said is None else said
        calls = get_list(inner, "tool_calls") or [1] * bool(inner.get("function_call"))
        source.drop("tool calls", scope, len(calls))
        text, caption = text_and_caption(source, scope, said)
        if not text and not caption and (calls or list_or_empty(said)):
            continue  # its parts are counted
        when = first_time(*(inner.get(key) for key in TIMES))
        own, name = first_text(inner.get("id") or inner.get("uuid")), first_field(inner, "name")
        more = {"caption": caption, "id": own or None, "timestamp": when}
        yield {"role": role, "sender": name or role, "text": text, **more}


def make_session_messages(
    source: Source,
    scope: str,
    session: str,
    listed: Iterable[Message],
    when: Any = None,
    *,
    own_ids: bool = False,
) -> Iterator[Message]:
    """Give the messages of a session.

    :param listed: as of :func:`read_turns`.
    :param when: the time of messages without one.
    :param own_ids: whether ids count within the session: one that another has is another message's.
    """
    for turn in listed:
        if own_ids and source.report.seen.get((scope, str(turn["id"])), session) != session:
            turn["id"] = f"{session} {turn['id']}"
        text, turn["timestamp"] = turn.pop("text"), turn["timestamp"] or when
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
