"""What importers share: the export being read, the record of a message, and the parts of a message's content."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from memlab.datasets._fields import is_assistant
from memlab.datasets._read import Source
from memlab.datasets.importers.files import Member

ME = "me"
"""The scope of an export that holds one person's conversations and does not name the person."""
Message = dict[str, Any]
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "bot": "assistant"}
_ROLES |= {"model": "assistant", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant", "claude": "assistant"}
_ROLES |= {"bard": "assistant", "humanmessage": "user", "aimessage": "assistant", "aimessagechunk": "assistant"}
_ROLES |= {"humanmessagechunk": "user"}
_SYSTEM = {"system", "developer", "systemmessage"}
_THOUGHTS = {"thinking", "redacted_thinking", "reasoning", "redacted_reasoning", "omitted_reasoning", "thoughts"}
_UNREADABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass
class Export(Source):
    """An export of a chat tool: its files, and a count of what was not taken as it was.

    :param kind: the name of its format.
    :param date_order: of dates that are ambiguous: ``dmy``, ``mdy`` or ``ymd``.
    :param tables: all its files; ``members`` are those of the format.
    :param seen: scope and id of every message so far.
    """

    kind: str = ""
    date_order: str | None = None
    tables: list[Member] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    seen: set[tuple[str, str]] = field(default_factory=set)

    def drop(self, kind: str, scope: str = "", n: int = 1) -> None:
        """Count what is left out, by kind in the plural."""
        if n:
            self.counts["left out", kind, scope] += n

    def keep(self, kind: str, scope: str = "", how: str = "kept") -> None:
        """Count what is kept in another form than in the export."""
        self.counts[how, kind, scope] += 1

    def message(self, scope: str, sender: str, text: str, /, **more: Any) -> Iterator[Message]:
        """Give the record of a message, if there is anything in it.

        A message without text or caption is counted as empty, one whose id was there as repeated. Keys without a value
        are left out; characters that no text can hold become question marks.

        :param more: ``session``, ``id``, ``role``, ``timestamp``, ``caption``.
        """
        record = {"scope": scope or self.kind, "sender": sender, "text": text.strip(), **more}
        record = {key: value for key, value in record.items() if value not in (None, "") or key == "text"}
        for key, value in record.items():
            if isinstance(value, str) and _UNREADABLE.search(value):
                record[key] = _UNREADABLE.sub("\ufffd", value)
                self.keep("unreadable characters", scope, "replaced")
        if not record["text"] and not record.get("caption"):
            self.drop("empty messages", scope)
            return
        if "id" in record:
            record["id"] = str(record["id"])
            if (scope, record["id"]) in self.seen:
                self.drop("repeated messages", scope)
                return
            self.seen.add((scope, record["id"]))
        yield record

    def numbered(self, member: Member, number: int) -> str:
        """Name a conversation that has no name by its place in the export."""
        return f"c{number:04}" if len(self.members) == 1 else f"{PurePosixPath(member.name).with_suffix('')}-{number}"

    def is_assistant(self, sender: str) -> bool:
        return is_assistant(sender, self.assistants)


def dig(value: Any, *path: str) -> Any:
    """Follow keys into objects; ``None`` where one is missing.

    >>> dig({"author": {"role": "user"}}, "author", "role"), dig([], "author")
    ('user', None)
    """
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def items(value: Any) -> list[Any]:
    """Give a list as it is, and anything else as an empty one."""
    return value if isinstance(value, list) else []


def name(*values: Any) -> str:
    """Give the first value that can name something, as text without white space around it; empty if none can."""
    for value in values:
        if isinstance(value, (str, int)) and not isinstance(value, bool) and (text := str(value).strip()):
            return _UNREADABLE.sub("\ufffd", text)
    return ""


def time(value: Any) -> Any:
    """Give a time as the chat log takes it; ``None`` where there is none."""
    return value if isinstance(value, (str, int, float, datetime)) and value and value is not True else None


def decoded(value: Any) -> Any:
    """Decode JSON in a string, as tables have it; anything else stays as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def role_of(value: Any) -> str | None:
    """Give the role that a tool calls so: ``user``, ``assistant``, ``system``, ``tool``; ``None`` for no role."""
    called = value.strip().lower() if isinstance(value, str) else ""
    role = _ROLES.get(called) or ("system" if called in _SYSTEM else None)
    return role or ("tool" if re.search("tool|function|observation|ipython", called) else None)


def content(export: Export, scope: str, parts: Any) -> tuple[str, str]:
    """Join the texts of a message's content and describe its images and files; the rest is counted.

    :param parts: a string, a part, or a list of both, as OpenAI, Anthropic and LangChain write them.
    :returns: text and caption.
    """
    texts: list[str] = []
    captions: list[str] = []
    for part in parts if isinstance(parts, list) else [parts]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            kind = name(part.get("type"), part.get("content_type"))
            if kind in _THOUGHTS:
                export.drop("thoughts", scope)
            elif re.search("tool|function_call|execution|code_interpreter", kind):
                export.drop("tool calls", scope)
            elif re.search("image|video|audio|file|document|media", kind):
                texts.append(name(part.get("transcript"), dig(part, "input_audio", "transcript"), part.get("text")))
                if texts[-1]:
                    export.keep("recordings", scope, "kept as their transcripts")
                else:
                    captions.append(described(export, scope, part, kind))
            elif isinstance(text := part.get("text", part.get("refusal")), (str, dict)):
                texts.append(text if isinstance(text, str) else name(text.get("value")))
            elif kind:
                export.drop(f"parts of the kind {kind!r}", scope)
    return "\n".join(text for text in texts if text), "; ".join(caption for caption in captions if caption)


def described(export: Export, scope: str, part: dict[str, Any], kind: str) -> str:
    """Describe an image or a file by what is known of it, and count it."""
    what = next((word for word in ("image", "video", "audio") if word in kind), "file")
    export.keep(f"{what}s", scope, "described in captions")
    known = name(
        dig(part, "metadata", "dalle", "prompt"), part.get("alt"), part.get("title"), part.get("file_name"),
        part.get("filename"), part.get("name"), dig(part, "file", "filename"),
    )  # fmt: skip
    return f"{what}: {known}" if known else what


def turns(export: Export, scope: str, listed: Iterable[Any]) -> Iterator[Message]:
    """Read messages in the layouts of OpenAI, Anthropic, ShareGPT and LangChain: role, text, caption, id and time.

    System messages, tool calls and their output are counted, and so is what has no role.
    """
    for raw in listed:
        if isinstance(raw, list) and len(raw) == 2 and isinstance(raw[0], str):
            raw = {"role": raw[0], "content": raw[1]}
        if not isinstance(raw, dict):
            export.drop("unreadable messages", scope)
            continue
        inner = next((raw[key] for key in ("kwargs", "data") if isinstance(raw.get(key), dict)), raw)
        kinds = (raw.get("role"), raw.get("from"), raw.get("sender"), inner.get("role"), inner.get("type"))
        called = [*kinds, items(raw.get("id"))[-1:] and raw["id"][-1], raw.get("type")]
        role = next((role for value in called if (role := role_of(value))), None)
        said = next((inner[key] for key in ("content", "value", "text", "parts") if inner.get(key) is not None), None)
        if raw.get("type") in ("function_call", "function_call_output", "reasoning"):
            role = "tool"
        if role in ("system", "tool"):
            export.drop("system messages" if role == "system" else "tool calls", scope)
            continue
        if role is None:
            export.drop("unreadable messages", scope)
            continue
        calls = items(inner.get("tool_calls")) or items([inner["function_call"]] if inner.get("function_call") else [])
        export.drop("tool calls", scope, len(calls))
        text, caption = content(export, scope, said)
        if not text and not caption and (calls or items(said)):
            continue  # its parts are counted
        when = next((inner[key] for key in ("timestamp", "created_at", "create_time") if inner.get(key)), None)
        own = inner.get("id") or inner.get("uuid")
        yield {"role": role, "text": text, "caption": caption, "id": name(own) or None, "timestamp": time(when)}


class Names:
    """Names of chats: each its own, with the id behind a name that another chat has."""

    def __init__(self) -> None:
        self.by_key: dict[str, str] = {}

    def give(self, key: str, wanted: str) -> str:
        if key not in self.by_key:
            taken = wanted in self.by_key.values()
            self.by_key[key] = f"{wanted} ({key})" if taken else wanted
        return self.by_key[key]
