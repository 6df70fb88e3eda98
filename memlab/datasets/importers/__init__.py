"""Exports of chat tools: an importer each, with ``detect(file)`` and ``records(source)``.

``detect`` knows a file from its beginning; ``records`` yields the records of
:mod:`memlab.datasets.chatlog`. What an importer leaves out or changes it counts by kind, and
:func:`read_export` puts the counts into the issues of the dataset."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from memlab.datasets.importers import (
    chatgpt,
    claude_ai,
    claude_code,
    discord,
    letta,
    lists,
    slack,
    telegram,
    traces,
    whatsapp,
)
from memlab.datasets.importers.common import Message
from memlab.datasets.reading import Source
from memlab.records import decode_id_part


class Importer(NamedTuple):
    """What knows the files of a tool from their beginnings, and what reads them."""

    detect: Callable[[Source], bool]
    records: Callable[[Source], Iterator[Message]]


IMPORTERS = {
    "chatgpt": Importer(chatgpt.detect, chatgpt.records),
    "claude_ai": Importer(claude_ai.detect, claude_ai.records),
    "claude_code": Importer(claude_code.detect, claude_code.records),
    "discord": Importer(discord.detect, discord.records),
    "letta": Importer(letta.detect, letta.records),
    "langsmith": Importer(traces.is_langsmith, traces.langsmith),
    "langfuse": Importer(traces.is_langfuse, traces.langfuse),
    "telegram": Importer(telegram.detect, telegram.records),
    "slack": Importer(slack.detect, slack.records),
    "mem0": Importer(lists.is_mem0, lists.mem0),
    "table": Importer(lists.is_table, lists.table),
    "sharegpt": Importer(lists.is_sharegpt, lists.sharegpt),
    "openai_messages": Importer(lists.is_openai, lists.openai_messages),
    "whatsapp": Importer(whatsapp.detect, whatsapp.records),
}
"""Format name to what reads it; the first that knows a file has it."""

_HTML, _SECOND = r"(?s)\s*<.*", r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
_KAKAOTALK = (
    r"[^[{:\n]*카카오톡 대화|KakaoTalk Chats|\d+[년.] \d+[월.] \d+[일.] 오[전후] [\d:]+[,\r\n]"
)
_DISCORD, _WRITE = (
    "export it again with --format Json",
    "write it as a chat log (docs/conversations.md)",
)
_EXPORT = "export the chat as text or JSON from its tool"
_BEGINNINGS = (
    (r"SQLite format 3\0", "a database of SQLite", _EXPORT),
    (r"%PDF-", "a PDF", _EXPORT),
    (
        r"\x1f.\x08|BZh|7z..'|Rar!",
        "a packed archive other than ZIP",
        "unpack it, and give the folder",
    ),
    (r"PK\x03\x04", "a ZIP archive within another, or broken", "unpack it, and give the folder"),
    (
        rf"{_HTML}(?:tgme|history|Exported Data|Telegram)",
        "Telegram's export in HTML",
        "export it again as JSON",
    ),
    (rf"{_HTML}(?:chatlog__|DiscordChatExporter)", "DiscordChatExporter's HTML", _DISCORD),
    (
        rf"{_HTML}(?:ChatGPT|jsonData)",
        "ChatGPT's chat.html",
        "give the whole ZIP, or conversations.json of it",
    ),
    (r"(?s)\s*<(?:!doctype html|html)", "a web page", _EXPORT),
    (
        r'(?s)\s*\{.{0,400}?"data_files":.*"export_url":',
        "a list of Claude's ZIPs",
        "give the ZIPs themselves",
    ),
    (r"={20,}\s*\n(?:Guild|Server): ", "DiscordChatExporter's text", _DISCORD),
    (r"AuthorID,Author,Date,Content", "DiscordChatExporter's CSV", _DISCORD),
    (
        r"ID,Timestamp,Contents,Attachments",
        "Discord's own data package, your half alone",
        "use DiscordChatExporter",
    ),
    (r"\[?\d[\d:./T -]{3,24}\]? <[^<>\n]{1,30}> ", "a log of IRC", _WRITE),
    (r"\[[\d:.T+ -]{19,35}\] \w+\.[A-Z]{4,9}: ", "the log of a program", _WRITE),
    (
        rf"\[?{_SECOND}[\d:.,+Z]*\]? (?:- )?(?:[\w.]+ - )*{whatsapp.LEVEL}",
        "the log of a program",
        _WRITE,
    ),
    (r"\[LINE\] ", "LINE's export", _WRITE),
    (_KAKAOTALK, "KakaoTalk's export", _WRITE),
    (
        r"# WhatsApp Chat Export",
        "WhatsApp Web's export in Markdown",
        "export it again as plain text",
    ),
    (r'(?s)\s*\[\{"id".{0,400}?"mapping".*?[^\\]"fragments":', "DeepSeek's export", _WRITE),
    (r"From \S+ .*\n|(?:Delivered-To|Return-Path|Received): ", "mail", _WRITE),
)
# Of ChatGPT, and of WhatsApp on an iPhone; of DiscordChatExporter, Claude Code and slackdump.
_SENT = re.compile(
    r"(?:.*/)?(?:(?:file[-_]\w+-|0\d{7}-)[^/]+|(?:[^/]+\.\w+_Files|tool-results|__uploads)/.+)"
)
_SENT_BY_TELEGRAM = re.compile(
    r"(?:chats/chat_\d+/)?(?:files|video_files|(?:voice|round_video)_messages)/.+"
)  # below result.json
_CHAT_TEXT = re.compile(r"(?i)_chat\.txt|.*(?:whatsapp|واتساب).*\.txt")
_KEYS = (
    ({"messages.sender_name", "messages.timestamp_ms"}, "Messenger's or Instagram's export"),
    ({"messages.creator", "messages.created_date"}, "Google Chat's export"),
    ({"header", "titleUrl", "products"}, "Google's activity (My Activity), such as that of Gemini"),
    ({"ID", "Timestamp", "Contents"}, "Discord's own data package, which has your half alone"),
    ({"conversations_memory"}, "what Claude remembers, without the conversations"),
    ({"prompt_template", "docs"}, "Claude's projects, without the conversations"),
    ({"full_name", "email_address"}, "Claude's list of users, without the conversations"),
    ({"chatgpt_plus_user"}, "ChatGPT's account, without the conversations"),
    ({"profile.real_name"}, "Slack's list of users, without the conversations"),
    ({"mapping", "inserted_at"}, "DeepSeek's export"),
    ({"conversations.responses"}, "Grok's export"),
    ({"payload.originator"}, "a session of Codex"),
    ({"projectHash", "messages.type"}, "a session of Gemini CLI"),
    ({"parent_tool_use_id"}, "the output of Claude Code, not its session file"),
    ({"conversationId", "sent_at"}, "Signal's messages"),
    ({"messages.origin_server_ts"}, "Matrix's export"),
    ({"post.create_at"}, "Mattermost's export"),
    ({"conversations.MessageList"}, "Skype's or Teams' export"),
    ({"nodes", "edges"}, "a graph"),
)


def detect_tool(file: Source) -> str | None:
    """Find the tool of a file from its beginning; ``None`` where none is known."""
    kind = next((kind for kind, module in IMPORTERS.items() if module.detect(file)), None)
    return (
        None if kind in ("whatsapp", "chatgpt") and explain_refusal(file) else kind
    )  # others write as these two do


def explain_refusal(file: Source) -> str | None:
    """Say what a file is that is known and cannot be read, and what to do; ``None`` for any other."""
    for form, what, remedy in _BEGINNINGS:
        if re.match(form, file.head):
            return f"looks like {what}, which memlab does not read: {remedy}"
    for keys, what in _KEYS:
        if keys <= file.keys:
            return f"looks like {what}, which memlab does not read: {_WRITE}"
    return None


def read_export(kind: str, source: Source, *, scope: str | None = None) -> Iterator[Message]:
    """Read an export; at its end, what was left out or changed is in the issues of the source.

    :param scope: names the memory of an export that has one; of several it chooses the one called
        so.
    :raises DataError: for a scope that is none of several, and as the importer of the tool does.
    """
    files = source.files()
    source = replace(source, members=_choose_files(kind, source, files))
    read = {file.name for file in source.members}
    others = [
        file
        for file in (*files, *source.files(unread=True))
        if file.name not in read and file.path.name not in slack.TABLES
    ]
    if others := [file for file in others if file.size != len("[]")]:
        some = ", ".join(file.name for file in others[:5]) + ", …" * (len(others) > 5)
        source.note(
            "export", f"{len(others):,} other file{'s' * (len(others) > 1)}: {some}", "left out"
        )
    records: Iterable[Message] = IMPORTERS[kind].records(source)
    rename, n = dict[str, str](), 0
    if scope is not None:
        records = [*records]
        there = list(dict.fromkeys(str(record.get("scope")) for record in records))
        scope = (
            decode_id_part(scope)
            if scope not in there and decode_id_part(scope) in there
            else scope
        )
        if scope not in there and len(there) > 1:
            source.fail(
                f"holds {len(there)} chats or people, none is {scope!r}: {', '.join(there[:20])}"
            )
        rename = {there[0]: scope} if scope not in there and there else {scope: scope}
    for record in records:
        if not rename or str(record.get("scope")) in rename:
            n += 1
            yield {**record, "scope": rename[str(record.get("scope"))]} if rename else record
    counts = Counter[tuple[str, str]]()
    for (how, what, of), count in source.report.counts.items():
        counts[how, what] += count if not rename or of in {"", *rename} else 0
    found = list[str]()
    for (how, what), count in sorted(counts.items()):
        if count:
            found.append(
                f"{count:,} {re.sub('s$|s(?= )', '', what, count=1) if count == 1 else what}"
            )
            source.note("export", found[-1], how)
    if not n:
        left = f"left out: {', '.join(found)}" if found else "and nothing else that it knows"
        source.fail(f"holds no message that memlab keeps ({kind}); {left}")


def without_sent_files(files: list[Source]) -> list[Source]:
    """Leave out the files that people sent in a chat, which may be chats too, unless there is nothing else.

    A tool keeps them where its pattern says, WhatsApp beside the text that is named as its archive
    or folder, or is the only one of its archive.
    """
    telegram = {file.path.parent for file in files if file.path.name == "result.json"}
    texts = [file for file in files if _CHAT_TEXT.fullmatch(file.path.name)]
    named = {
        text.path.parent: text
        for text in texts
        if text.path.stem == text.path.parent.name.removesuffix(".zip")
    }
    several = Counter(text.path.parent for text in texts)
    chats = {
        text.path.parent: text for text in texts if text.packed and several[text.path.parent] == 1
    } | named
    around = telegram | chats.keys()

    def is_sent(file: Source) -> bool:
        for folder in (
            (folder for folder in file.path.parents if folder in around) if around else ()
        ):
            below = file.path.relative_to(folder).as_posix()
            if folder in telegram and _SENT_BY_TELEGRAM.fullmatch(below):
                return True
            if chats.get(folder, file) is not file and ("/" not in below or folder in named):
                return True
        return _SENT.fullmatch(file.name) is not None

    return [file for file in files if not is_sent(file)] or files


def _choose_files(kind: str, source: Source, files: list[Source]) -> list[Source]:
    """Choose the files that the importer of a tool reads; a file that is given alone it reads in any case."""
    known, detect = list[Source](), IMPORTERS[kind].detect
    for file in without_sent_files(files):
        if file.size and (detect(file) or (file.look_further() and detect(file))):
            known.append(file)
        file.forget()
    if known or len(files) != 1:
        return known or source.fail(f"holds no file that looks like {kind}")
    if other := detect_tool(files[0]):
        source.fail(f"looks like {other}, not {kind}: leave the format out, or name that one")
    return files
