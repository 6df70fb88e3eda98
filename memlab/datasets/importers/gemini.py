"""Gemini, as Google Takeout has it: the entries of My Activity, in JSON or HTML, the newest first.

An entry is what somebody asked (``title``, behind a verb: "Prompted …") with Gemini's answer
(``safeHtmlItem``), which is missing where Google kept none. Entries of one conversation share its
address (``details`` or ``titleUrl``); those without one are split by silence. Layout:
kenn-io/agentsview 1330, NateBJones-Projects/OB1 455.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from memlab.datasets.importers.export_messages import OWNER_SCOPE, Message, make_message
from memlab.datasets.importers.html_text import TextBuilder, html_to_text
from memlab.datasets.importers.loose_json import first_field, first_text, get_list, get_nested
from memlab.datasets.importers.newest_first import oldest_first
from memlab.datasets.source import Source

_PRODUCT = re.compile(r"(?i)\b(?:gemini|bard)\b")
_HEADER = re.compile(r'(?i)"(?:header|products)"\s*:\s*\[?\s*"[^"]*\b(?:gemini|bard)\b')
_PAGE = re.compile(r"(?is)\s*<.*\bouter-cell\b")
_ASKED = re.compile(
    r"(?:Prompted with: |Prompted: |Prompted |Asked (?:Gemini|Bard): |Asked |Said |Branched |"
    r"Answered |Submitted query |Searched for )"
)
_DONE = re.compile(
    r"(?:Added|Canvas|Created|Deleted|Edited|Exported|Feedback|Gave|Gemini|Opened|Pinned|Published|"
    r"Renamed|Selected|Shared|Talked|Unpinned|Updated|Used|Viewed|Visited)\b"
)
"""What titles of entries begin with that are no prompts."""
_CANVAS = re.compile(r"(?:Canvas|Created Gemini Canvas)\b")
_ATTACHED = re.compile(r"\s*\bAttached \d+ files?\.?\s*$")
_FILE = re.compile(r"^[-–]\s+(\S.*)$")
_CONVERSATION = re.compile(
    r"(?:gemini|bard)\.google\.com/(?:u/\d+/)?(?:app|chat|gem/[^/]+)/([\w-]+)"
)
_TIME_LINE = re.compile(r"(?=.*\b\d{4}\b)(?=.*\b\d{1,2}:\d{2}:\d{2}\b)[\w\s.,:/+\-−]{12,50}$")
_TIMES = ("%b %d, %Y, %I:%M:%S %p", "%b %d, %Y, %H:%M:%S", "%d %b %Y, %H:%M:%S")
_TIMES += ("%B %d, %Y, %I:%M:%S %p", "%d %B %Y, %H:%M:%S", "%d.%m.%Y, %H:%M:%S")
_TIMES += ("%Y/%m/%d %H:%M:%S", "%d/%m/%Y, %H:%M:%S", "%Y-%m-%d %H:%M:%S", "%d %b %Y %H:%M:%S")
_ZONES = {"UTC": 0, "GMT": 0, "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "MEZ": 1, "CEST": 2}
_ZONES |= {"MESZ": 2, "EET": 2, "EEST": 3, "MSK": 3, "IST": 5.5, "SGT": 8, "JST": 9, "KST": 9}
_ZONES |= {"AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13, "EST": -5, "EDT": -4, "CST": -6}
_ZONES |= {"CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "BRT": -3}
_ZONED = re.compile(r"^(.*\S)\s+([A-Z]{2,5}|(?:GMT|UTC)[+\-−]\d{1,2}(?::?\d{2})?)$")


@dataclass
class _Entry:
    """An entry of My Activity."""

    title: str
    when: Any = None
    answer: str = ""
    product: str = ""
    beside: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    addresses: str = ""


def is_gemini_activity(file: Source) -> bool:
    if {"header", "title"} <= file.keys and {"time", "products"} & file.keys:
        return _HEADER.search(file.head) is not None
    is_page = _PAGE.match(file.head) is not None
    return is_page and _PRODUCT.search(file.head) is not None


def read_gemini_activity(source: Source) -> Iterator[Message]:
    """Read every prompt with its answer; the conversations of an account are sessions of one scope."""
    for file in source.members:
        is_page = file.head.lstrip().startswith("<")
        entries = _read_page(file) if is_page else _read_records(source, file)
        for entry in oldest_first(entries, lambda entry: entry.when):
            yield from _read_entry(source, entry)


def _read_records(source: Source, file: Source) -> list[_Entry]:
    entries = []
    for _, raw in file.values():
        if not isinstance(raw, dict):
            source.drop("unreadable messages", OWNER_SCOPE)
            continue
        entry = _Entry(first_field(raw, "title"), raw.get("time"))
        entry.product = " ".join(map(first_text, [raw.get("header"), *get_list(raw, "products")]))
        # Some have one object, others a list of them.
        shown = get_list(raw, "safeHtmlItem") or [raw.get("safeHtmlItem")]
        answers = [html_to_text(first_field(item, "html", "htmlValue")) for item in shown]
        entry.answer = "\n".join(filter(None, answers))
        for item in get_list(raw, "subtitles"):
            entry.beside.append(first_field(item, "name", "value"))
        for key in ("attachedFiles", "audioFiles", "imageFile"):
            listed = get_list(raw, key) or [raw.get(key)]
            entry.files += [first_text(name) or first_field(name, "name") for name in listed]
        links = [get_nested(item, "url") for item in get_list(raw, "details")]
        entry.addresses = " ".join(map(first_text, [raw.get("titleUrl"), *links]))
        entries.append(entry)
    return entries


def _read_entry(source: Source, entry: _Entry) -> Iterator[Message]:
    scope = OWNER_SCOPE
    if not _PRODUCT.search(entry.product or "Gemini"):
        source.drop("actions of other products", scope)
        return
    if _CANVAS.match(entry.title):
        source.drop("documents", scope)
        return
    asked = _ASKED.match(entry.title)
    if not asked and _DONE.match(entry.title):
        source.drop("other actions", scope)
        return
    prompt = _ATTACHED.sub("", entry.title[asked.end() if asked else 0 :])
    if prompt and not asked:
        source.keep("prompts", scope, "kept with the word before them, in another language")
    said = []
    for text in entry.beside:
        if found := _FILE.match(text):
            entry.files.append(found[1])
        elif not _ATTACHED.fullmatch(text):
            said.append(text)
    answer = entry.answer or "\n".join(filter(None, said))
    if entry.answer:
        source.drop("notes beside prompts", scope, sum(map(bool, said)))
    if not answer:
        source.keep("prompts without an answer", scope)
    found = _CONVERSATION.search(entry.addresses)
    more = {"session": found[1] if found else None, "timestamp": entry.when}
    files = "; ".join(f"file: {name}" for name in dict.fromkeys(entry.files) if name)
    yield from make_message(source, scope, "user", prompt, role="user", caption=files, **more)
    if answer:
        yield from make_message(source, scope, "assistant", answer, role="assistant", **more)


class _Page(TextBuilder):
    """The cells of a page of My Activity: in each entry a header, what was done, and details."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[tuple[list[tuple[str, str]], str]] = []
        self.cells: list[tuple[str, str]] = []
        self.kind = ""
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = dict(attrs)
        classes = (about.get("class") or "").split()
        if tag == "div" and "outer-cell" in classes:
            self.end_entry()
        for kind in ("header-cell", "content-cell"):
            if kind in classes:
                self.end_cell()
                self.kind = kind
                if "mdl-typography--caption" in classes:
                    self.kind = "caption"
        if tag == "a":
            self.links.append(about.get("href") or "")
        super().handle_starttag(tag, attrs)

    def end_cell(self) -> None:
        if self.kind:
            self.cells.append((self.kind, self.text()))
        self.pieces, self.kind = [], ""

    def end_entry(self) -> None:
        self.end_cell()
        if self.cells:
            self.entries.append((self.cells, " ".join(self.links)))
        self.cells, self.links = [], []


def _read_page(file: Source) -> list[_Entry]:
    page = _Page()
    page.feed(file.text())
    page.close()
    page.end_entry()
    entries = []
    for cells, links in page.entries:
        product = " ".join(text for kind, text in cells if kind == "header-cell")
        lines = [
            line for kind, text in cells if kind == "content-cell" for line in text.split("\n")
        ]
        places = [n for n, line in enumerate(lines) if _TIME_LINE.match(line.strip())]
        at = places[0] if places else len(lines)
        entry = _Entry("", product=product, addresses=links)
        title = []
        for line in lines[:at]:
            if _FILE.match(line) or _ATTACHED.fullmatch(line):
                entry.beside.append(line)
            else:
                title.append(line)
        entry.title = "\n".join(title)
        entry.answer = "\n".join(lines[at + 1 :]).strip()
        entry.when = _read_time(lines[at]) if places else None
        entries.append(entry)
    return entries


def _read_time(line: str) -> str:
    """Give a time as ISO 8601 writes it, or as it stands where no form fits."""
    written = re.sub(r"\s+", " ", line.replace("−", "-")).strip()
    written = re.sub(r"\bSept\b", "Sep", written)
    zoned = _ZONED.match(written)
    zone = None
    if zoned and zoned[2] not in ("AM", "PM"):
        written, zone = zoned[1], _read_zone(zoned[2])
    for form in _TIMES:
        try:
            when = datetime.strptime(written, form)
        except ValueError:
            continue
        return when.replace(tzinfo=zone).isoformat()
    return line


def _read_zone(name: str) -> timezone | None:
    """Give the zone of an abbreviation or of hours beside GMT; ``None`` for one that is not known."""
    if name in _ZONES:
        return timezone(timedelta(hours=_ZONES[name]))
    beside = re.fullmatch(r"(?:GMT|UTC)([+-])(\d{1,2}):?(\d{2})?", name)
    if not beside:
        return None
    shift = timedelta(hours=int(beside[2]), minutes=int(beside[3] or 0))
    return timezone(-shift if beside[1] == "-" else shift)
