"""Gemini, as Google Takeout has it: the entries of My Activity, in JSON or HTML, the newest first.

An entry is what somebody asked (``title``, behind a verb: "Prompted …") with Gemini's answer
(``safeHtmlItem``), which is missing where Google kept none. Entries of one conversation share its
address (``details`` or ``titleUrl``); those without one are split by silence. Layout:
kenn-io/agentsview 1330, NateBJones-Projects/OB1 455.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta, timezone
from operator import attrgetter
from typing import NamedTuple

from memlab.datasets import record_fields
from memlab.datasets.importers.export_messages import (
    OWNER_SCOPE,
    Message,
    make_message_or_count_drop,
)
from memlab.datasets.importers.html_text import HtmlTextBuilder, html_to_text
from memlab.datasets.importers.loose_json import (
    JsonObject,
    JsonValue,
    first_field_text,
    first_non_empty_text,
    get_nested,
    get_nested_list,
    join_unique_names,
)
from memlab.datasets.importers.newest_first_lists import reverse_if_newest_first
from memlab.datasets.record_fields import BadField
from memlab.datasets.record_sources import Source
from memlab.datasets.unread_texts import count_unread_texts

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
_ATTACHED = re.compile(r"\s*\bAttached (\d+) files?\.?\s*$")
"""What stands behind a prompt with files, before their names, a line each.

A list may be the prompt's own.
"""
_FILE = re.compile(r"^[-–]\s+(\S.*)$")
_CONVERSATION = re.compile(
    r"(?:gemini|bard)\.google\.com/(?:u/\d+/)?(?:app|chat|gem/[^/]+)/([\w-]+)"
)
_TIME_LINE = re.compile(r"(?=.*\b\d{4}\b)(?=.*\b\d{1,2}:\d{2}:\d{2}\b)[\w\s.,:/+\-−]{12,50}$")
_ZONES: dict[str, float] = {"UTC": 0, "GMT": 0, "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "MEZ": 1}
_ZONES |= {"CEST": 2, "MESZ": 2, "EET": 2, "EEST": 3, "MSK": 3, "IST": 5.5, "SGT": 8, "JST": 9}
_ZONES |= {"KST": 9, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13, "EST": -5, "EDT": -4}
_ZONES |= {"CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "BRT": -3}
_ZONED = re.compile(r"^(.*\S)\s+((?!AM|PM)[A-Z]{2,5}|(?:GMT|UTC)[+\-−]\d{1,2}(?::?\d{2})?)$")


_READ = {"safeHtmlItem", "subtitles", "attachedFiles", "audioFiles", "imageFile", "details"}
_READ |= {"header", "products", "activityControls", "time", "locationInfos", "title", "titleUrl"}


@dataclass
class _ActivityEntry:
    """An entry of My Activity."""

    title: str
    when: JsonValue = None
    answer: str = ""
    product: str = ""
    beside: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    addresses: str = ""


def is_gemini_activity(file: Source) -> bool:
    if file.head.lstrip().startswith("<"):
        return bool(_PAGE.match(file.head)) and bool(_PRODUCT.search(file.head))
    return {"header", "title"} <= file.keys and bool(_HEADER.search(file.head))


def read_gemini_activity(source: Source) -> Iterator[Message]:
    """Read every prompt with its answer.

    The conversations of an account are sessions of one scope.
    """
    for file in source.members:
        is_page = file.head.lstrip().startswith("<")
        entries = (
            _read_html_entries(file)
            if is_page
            else _read_json_entries_and_count_unread(source, file)
        )
        for entry in reverse_if_newest_first(entries, attrgetter("when")):
            yield from _read_prompt_and_answer_or_count_drop(source, entry)


def _read_json_entries_and_count_unread(source: Source, file: Source) -> list[_ActivityEntry]:
    entries = []
    for _, record in file.values():
        if isinstance(record, dict):
            entries.append(_read_json_entry(record))
            count_unread_texts(source, OWNER_SCOPE, record, _READ, "")
        else:
            source.drop("unreadable messages", OWNER_SCOPE)
    return entries


def _read_json_entry(raw_entry: JsonObject) -> _ActivityEntry:
    entry = _ActivityEntry(first_field_text(raw_entry, "title"), raw_entry.get("time"))
    entry.product = " ".join(
        map(
            first_non_empty_text, [raw_entry.get("header"), *get_nested_list(raw_entry, "products")]
        )
    )
    # Some have one object, others a list of them.
    items = [raw_entry.get("safeHtmlItem"), *get_nested_list(raw_entry, "safeHtmlItem")]
    answers = [first_field_text(element, "html", "htmlValue") for element in items]
    entry.answer = _join_non_empty_lines(map(html_to_text, answers))
    for element in get_nested_list(raw_entry, "subtitles"):
        entry.beside.append(
            _join_non_empty_lines(
                [first_field_text(element, "name"), first_field_text(element, "value")]
            )
        )
    for files_key in ("attachedFiles", "audioFiles", "imageFile"):
        for element in (raw_entry.get(files_key), *get_nested_list(raw_entry, files_key)):
            file_name = first_non_empty_text(element, get_nested(element, "name"))
            entry.files += filter(None, [file_name])
    links = [get_nested(element, "url") for element in get_nested_list(raw_entry, "details")]
    entry.addresses = " ".join(map(first_non_empty_text, [raw_entry.get("titleUrl"), *links]))
    return entry


def _join_non_empty_lines(texts: Iterable[str]) -> str:
    return "\n".join(filter(None, texts))


def _reason_to_drop_entry_or_empty(entry: _ActivityEntry) -> str:
    """Say as what an entry is left out; empty for a prompt."""
    if entry.product and not _PRODUCT.search(entry.product):
        return "actions of other products"
    if _CANVAS.match(entry.title):
        return "documents"
    if _DONE.match(entry.title):
        return "other actions"
    return ""


def _read_prompt_and_answer_or_count_drop(
    source: Source, entry: _ActivityEntry
) -> Iterator[Message]:
    reason = _reason_to_drop_entry_or_empty(entry)
    if reason:
        source.drop(reason, OWNER_SCOPE)
        return
    side_notes, file_names = _split_off_attached_file_names(list(filter(None, entry.beside)))
    entry.files += file_names
    prompt = _read_prompt_and_add_files_to_entry(source, entry)
    source.drop("notes beside prompts", OWNER_SCOPE, len(side_notes))
    if not entry.answer:
        source.keep("prompts without an answer", OWNER_SCOPE)
    columns = {"session": _find_conversation_id_or_empty(entry.addresses), "timestamp": entry.when}
    caption = join_unique_names(*(f"file: {file_name}" for file_name in entry.files))
    prompt_columns = columns | {"role": "user", "caption": caption}
    yield from make_message_or_count_drop(source, OWNER_SCOPE, "user", prompt, **prompt_columns)
    if entry.answer:
        columns["role"] = "assistant"
        yield from make_message_or_count_drop(
            source, OWNER_SCOPE, "assistant", entry.answer, **columns
        )


def _split_off_attached_file_names(text_lines: list[str]) -> tuple[list[str], list[str]]:
    """Part what Gemini says of attached files from other lines.

    That is their number, and at most as many names behind it.

    >>> _split_off_attached_file_names(["to buy:", "- eggs", "Attached 1 file.", "-  a.png"])
    (['to buy:', '- eggs'], ['a.png'])
    """
    file_names = list[str]()
    attached_line = len(text_lines)
    n_expected = 0
    for number, line in enumerate(text_lines):
        attached_match = _ATTACHED.match(line)
        if attached_match:
            attached_line = number
            n_expected = int(attached_match[1])
    for line in text_lines[attached_line + 1 : attached_line + 1 + n_expected]:
        file_match = _FILE.match(line)
        if not file_match:
            break
        file_names.append(file_match[1])
    return text_lines[:attached_line] + text_lines[
        attached_line + 1 + len(file_names) :
    ], file_names


def _read_prompt_and_add_files_to_entry(source: Source, entry: _ActivityEntry) -> str:
    """Give what was asked, without its files.

    The word before it is left out where that is English.
    """
    lines, file_names = _split_off_attached_file_names(entry.title.split("\n"))
    entry.files += file_names
    title = entry.title
    if entry.files:
        # Where they are named elsewhere, their number stands at the end of a line too.
        title = _ATTACHED.sub("", "\n".join(lines))
    asked_match = _ASKED.match(title)
    if asked_match:
        return title[asked_match.end() :]
    reason = "kept with the word before them, in another language"
    source.keep("prompts", OWNER_SCOPE, reason, bool(title))
    return title


def _find_conversation_id_or_empty(addresses: str) -> str:
    matched = _CONVERSATION.search(addresses)
    if matched:
        return matched[1]
    return ""


class _PageCell(NamedTuple):
    """A cell of an entry: a header, a content or a caption, and its text."""

    kind: str
    text: str


class _ActivityPageParser(HtmlTextBuilder):
    """The cells of a page of My Activity: in each entry a header, what was done, and details."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[tuple[list[_PageCell], str]] = []
        self.cells: list[_PageCell] = []
        self.kind = ""
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        classes = (attributes.get("class") or "").split()
        if tag == "div" and "outer-cell" in classes:
            self.store_open_entry()
        for cell_kind in ("header-cell", "content-cell"):
            if cell_kind in classes:
                self.store_open_cell()
                self.kind = cell_kind
                if "mdl-typography--caption" in classes:
                    self.kind = "caption"
        if tag == "a":
            self.links.append(attributes.get("href") or "")
        super().handle_starttag(tag, attrs)

    def store_open_cell(self) -> None:
        if self.kind:
            self.cells.append(_PageCell(self.kind, self.join_gathered_text()))
        self.pieces = []
        self.kind = ""

    def store_open_entry(self) -> None:
        self.store_open_cell()
        if self.cells:
            self.entries.append((self.cells, " ".join(self.links)))
        self.cells = []
        self.links = []


def _read_html_entries(file: Source) -> list[_ActivityEntry]:
    page = _ActivityPageParser()
    page.feed(file.text())
    page.close()
    page.store_open_entry()
    return [_read_html_entry(cells, links) for cells, links in page.entries]


def _read_html_entry(cells: list[_PageCell], addresses: str) -> _ActivityEntry:
    """Read an entry: what was asked with its files, the time, and the answer.

    Each has a line or several.
    """
    headers = [content for cell_kind, content in cells if cell_kind == "header-cell"]
    contents = [content for cell_kind, content in cells if cell_kind == "content-cell"]
    entry = _ActivityEntry("", product=" ".join(headers), addresses=addresses)
    title_lines: list[str] = []
    answer_lines: list[str] = []
    for line in "\n".join(contents).split("\n"):
        if entry.when:
            answer_lines.append(line)
        elif _TIME_LINE.match(line.strip()):
            entry.when = _time_line_as_iso_or_as_written(line)
        else:
            title_lines.append(line)
    entry.title = "\n".join(title_lines)
    entry.answer = "\n".join(answer_lines).strip()
    return entry


def _time_line_as_iso_or_as_written(time_line: str) -> str:
    """Give a time as ISO 8601 writes it, or as it stands where no form fits."""
    written_time = re.sub(r"\s+", " ", time_line.replace("−", "-")).strip()
    zone = None
    zoned_match = _ZONED.match(written_time)
    if zoned_match:
        written_time = zoned_match[1]
        zone = _parse_time_zone(zoned_match[2])
    try:
        moment = record_fields.parse_time(written_time, "time", "dmy")
    except BadField:
        return time_line
    return moment.replace(tzinfo=moment.tzinfo or zone).isoformat()


def _parse_time_zone(zone_text: str) -> timezone | None:
    """Give the zone of an abbreviation or of hours beside GMT.

    :returns: ``None`` for one that is not known.
    """
    if zone_text in _ZONES:
        return timezone(timedelta(hours=_ZONES[zone_text]))
    offset_match = re.fullmatch(r"(?:GMT|UTC)([+-])(\d{1,2}):?(\d{2})?", zone_text)
    if not offset_match:
        return None
    offset_sign, hours, minutes = offset_match.groups("0")
    utc_offset = timedelta(hours=int(hours), minutes=int(minutes))
    if offset_sign == "-":
        utc_offset = -utc_offset
    return timezone(utc_offset)
