"""Exports of chat tools, read into chat-log records: one module a tool, each a generator of dicts.

A module has ``matches``, which knows its files from their beginnings, and ``read``, which yields the records of
:mod:`memlab.datasets.chatlog`; that reader alone makes a dataset of them. :func:`detect` finds the tool of a file, a
folder or a ZIP archive, and refuses by name what is known and cannot be read. What an importer leaves out or changes it
counts by kind, and :func:`records` puts the counts into the issues of the dataset.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

from memlab.datasets._fields import Bad
from memlab.datasets._read import Source
from memlab.datasets.importers import (
    chatgpt,
    claude_ai,
    claude_code,
    discord,
    langfuse,
    langsmith,
    letta,
    mem0,
    openai_messages,
    sharegpt,
    slack,
    table,
    telegram,
    whatsapp,
)
from memlab.datasets.importers.common import Export
from memlab.datasets.importers.files import TEXTS, Member, members
from memlab.errors import DataError
from memlab.records import raw_part

__all__ = ["IMPORTERS", "detect", "records", "zone"]

IMPORTERS: dict[str, ModuleType] = {
    "chatgpt": chatgpt,
    "claude_ai": claude_ai,
    "claude_code": claude_code,
    "discord": discord,
    "letta": letta,
    "langsmith": langsmith,
    "langfuse": langfuse,
    "telegram": telegram,
    "slack": slack,
    "mem0": mem0,
    "table": table,
    "sharegpt": sharegpt,
    "openai_messages": openai_messages,
    "whatsapp": whatsapp,
}
"""Format name to the module that reads it; the first that knows a file has it."""

_PROBED = 400  # files of a folder or archive whose beginnings are looked at
_GENERIC = re.compile(r"(?i)_?chat|conversations(?:[-_]?\d+)?|result|messages|export")
_REFUSED = (
    (r"SQLite format 3\0", "a database of SQLite", "export the chat as text or JSON from its tool"),
    (r"%PDF-", "a PDF", "export the chat as text or JSON from its tool"),
    (r"\x1f.\x08|BZh|7z..'|Rar!", "a packed archive other than ZIP", "unpack it, and give the folder"),
    (
        r"(?s)\s*<.*(?:tgme|history|Exported Data|Telegram)",
        "Telegram's export in HTML",
        "export it again as JSON (machine-readable)",
    ),
    (
        r"(?s)\s*<.*(?:chatlog__|DiscordChatExporter)",
        "DiscordChatExporter's HTML",
        "export it again with --format Json",
    ),
    (r"(?s)\s*<.*(?:ChatGPT|jsonData)", "ChatGPT's chat.html", "give the whole ZIP, or conversations.json of it"),
    (r"(?s)\s*<(?:!doctype html|html)", "a web page", "export the chat as text or JSON from its tool"),
    (r"={20,}\s*\n(?:Guild|Server): ", "DiscordChatExporter's text", "export it again with --format Json"),
    (r"AuthorID,Author,Date,Content", "DiscordChatExporter's CSV", "export it again with --format Json"),
    (
        r"ID,Timestamp,Contents,Attachments",
        "Discord's own data package",
        "it has your half alone: use DiscordChatExporter",
    ),
    (r"From \S+ .*\n|(?:Delivered-To|Return-Path|Received): ", "mail", "memlab reads chats; write it as a chat log"),
)
_REFUSED_KEYS = (
    ({"messages.sender_name", "messages.timestamp_ms"}, "Messenger's or Instagram's export"),
    ({"messages.creator", "messages.created_date"}, "Google Chat's export"),
    ({"header", "titleUrl", "products"}, "Google's activity (My Activity), such as that of Gemini"),
    ({"ID", "Timestamp", "Contents"}, "Discord's own data package, which has your half alone"),
    ({"conversations.MessageList"}, "Skype's or Teams' export"),
    ({"nodes", "edges"}, "a graph"),
)


def detect(source: Source) -> str | None:
    """Find the tool whose export a file, folder or archive is; ``None`` if it is of none that is known.

    :raises DataError: for what is known and cannot be read, and where exports of several tools lie together.
    """
    probed = members(source)
    whole = not source.path.is_dir() and len(probed) == 1 and probed[0].archive is None
    found: dict[str, list[str]] = {}
    refused: str | None = None
    for member in _spread(probed):
        if not whole and _size(member) == 0:
            continue
        if kind := _kind(member):
            found.setdefault(kind, []).append(member.name)
        else:
            refused = refused or _refusal(member)
        member.forget()
    if len(found) > 1:
        what = "; ".join(f"{kind} ({names[0]})" for kind, names in found.items())
        source.fail(f"holds exports of several tools: {what}. Give one of the files, or name the format with --format")
    if not found and refused:
        source.fail(refused)
    if not found and any(member.archive for member in probed):
        names = ", ".join(member.name for member in probed[:5])
        source.fail(f"is a ZIP archive without a chat that is known; its first files are {names}")
    if not found and not probed and not source.path.is_dir():
        source.fail(f"is a ZIP archive without a file that may hold a chat ({', '.join(TEXTS)})")
    return next(iter(found), None)


def _spread(probed: list[Member]) -> list[Member]:
    """Choose the files to look at: all, or of many the first and some out of the rest."""
    step = max(1, len(probed) // _PROBED)
    return [*probed[:_PROBED:1], *probed[_PROBED::step]][: 2 * _PROBED] if step > 1 else probed


def _size(member: Member) -> int:
    return member.entry.file_size if member.entry else member.path.stat().st_size


def _kind(member: Member) -> str | None:
    return next((kind for kind, module in IMPORTERS.items() if module.matches(member)), None)


def _is(kind: str, member: Member) -> bool:
    known = _size(member) > 0 and IMPORTERS[kind].matches(member)
    member.forget()
    return known


def _refusal(member: Member) -> str | None:
    for form, what, remedy in _REFUSED:
        if re.match(form, member.head):
            return f"looks like {what}, which memlab does not read: {remedy}"
    for keys, what in _REFUSED_KEYS:
        if keys <= member.keys:
            return f"looks like {what}, which memlab does not read: write it as a chat log (docs/formats.md)"
    return None


def zone(name: str | None) -> ZoneInfo | None:
    """Find a time zone by its name in the database of zones.

    :raises DataError: for a name that is not there.

    >>> from memlab.datasets.importers import zone
    >>> zone("Europe/Oslo").key
    'Europe/Oslo'
    """
    try:
        return None if name is None else ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise DataError(f"tz is {name!r}, expected the name of a time zone such as Europe/Oslo") from error


def dataset_name(source: Source, kind: str) -> str:
    """Name the dataset of an export: by its file, or by its tool where every export's file is called so."""
    stem = source.path.stem
    return kind if _GENERIC.fullmatch(stem) else stem


def records(
    kind: str, source: Source, *, scope: str | None = None, date_order: str | None = None
) -> Iterator[dict[str, Any]]:
    """Read an export; at its end, what was left out or changed is in the issues of the source.

    :param scope: names the memory of an export that has one; of several it chooses the one called so.
    :raises DataError: for a scope that is none of several, and as the importer of the tool does.
    """
    shared = {f.name: getattr(source, f.name) for f in fields(Source)}
    files = members(source)
    known = [member for member in files if len(files) == 1 or _is(kind, member)]
    if not known:
        source.fail(f"holds no file that looks like {kind}")
    if len(files) == 1 and not IMPORTERS[kind].matches(known[0]) and (other := _kind(known[0])):
        source.fail(f"looks like {other}, not {kind}: leave the format out, or name that one")
    export = Export(**shared, kind=kind, date_order=date_order, tables=files, members=known)
    rename: dict[str, str] = {}
    if scope is not None:
        there = list(dict.fromkeys(str(record.get("scope")) for record in _read(kind, _apart(export))))
        scope = raw_part(scope) if scope not in there and raw_part(scope) in there else scope
        if scope not in there and len(there) > 1:
            source.fail(f"holds {len(there)} chats or people, none is {scope!r}: {', '.join(there[:20])}")
        rename = {there[0]: scope} if scope not in there and there else {scope: scope}
    n = 0
    for record in _read(kind, export):
        if not rename or str(record.get("scope")) in rename:
            n += 1
            yield {**record, "scope": rename[str(record.get("scope"))]} if rename else record
    wanted = {"", *rename} if rename else None
    counts = Counter[tuple[str, str]]()
    for (how, what, of), count in export.counts.items():
        counts[how, what] += count if wanted is None or of in wanted else 0
    for (how, what), count in sorted(counts.items()):
        if count:
            source.note(
                "export", f"{count:,} {re.sub('s$|s(?= )', '', what, count=count == 1) if count == 1 else what}", how
            )
    if not n:
        left = ", ".join(f"{count:,} {what}" for (_, what), count in sorted(counts.items()) if count)
        source.fail(f"holds no message that memlab keeps ({kind}); left out: {left or 'nothing'}")


def _apart(export: Export) -> Export:
    """Give an export whose counts and issues are its own, to read it once before."""
    files = [replace(member, issues=[]) for member in export.members]
    return replace(export, issues=[], counts=Counter(), seen=set(), members=files)


def _read(kind: str, export: Export) -> Iterator[dict[str, Any]]:
    try:
        yield from IMPORTERS[kind].read(export)
    except Bad as bad:
        export.fail(str(bad), bad)
