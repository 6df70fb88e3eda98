"""The lines of WhatsApp's text export, in any locale.

A line that begins with a date and a time in the form of the file begins a message; any other goes
on the one before. Forms: whatstk's headers, chat-miner's test files, and the notes of
footprint-messaging on locales.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

from memlab.datasets.importers import whatsapp_system_messages as words

_M = "[\u200e\u200f]*"
HEADER = re.compile(
    rf"^[\ufeff]?{_M}(\[?){_M}"
    rf"([RH]?\d{{1,4}}){_M}([./\-年년])[ \xa0]?{_M}"
    rf"(\d{{1,2}}){_M}([./\-月월])[ \xa0]?{_M}"
    r"([RH]?\d{1,4})[.日일]?"
    r"([^\d\[\]:]{1,18}?)"
    r"(\d{1,2})(?:[:.]| ?h ?)(\d{2})(?:[:.](\d{2}))?"
    r"([^\d\[\]:,–-]{0,20}?)"
    r"(\](?:[ \u200e\u200f]|$)|[ \xa0][-–](?:[ \xa0]|$)|:[ \xa0])"
)
_LONGEST_HEADER = 120
_TIME_FIRST = re.compile(
    rf"^([\ufeff]?{_M}\[?{_M})"
    r"(\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:[ \xa0\u202f][^\d\[\]:,–-]{1,16})?), "
    r"(\d{1,4}[./-]\d{1,2}[./-]\d{1,4})(?=\]| [-–])"
)
"""As Vietnamese phones export, and as messages come that are copied out of WhatsApp Web.

The date is put first.
"""
_SENDER = re.compile("([^\n]{1,80}?)[ \xa0]?:(?:[ \xa0]|$|(?=[\u200e\u200f]))")
_ERAS = {"R": 2018, "H": 1988}
"""What Japanese eras add to their years."""


class HeaderForm(NamedTuple):
    """How a file writes its headers: all are of one form."""

    bracket: str
    first_separator: str
    second_separator: str
    has_year_first: bool
    has_year_last: bool
    has_no_seconds: bool
    end: str


_same_form = lru_cache(256)(HeaderForm)


@dataclass(slots=True)
class HeadedLine:
    """A line that begins a message.

    :param date_parts: its three numbers as they stand in the file; ``clock_time``: hour, minute
        and second.
    :param day_half: ``am``, ``pm`` or empty; ``words_beside``: the words beside the time.
    :param raw_line: the line; its header ends at ``header_end``, its sender at ``sender_end``.
    :param further_lines: those that go on it.
    """

    date_parts: tuple[int, int, int]
    clock_time: tuple[int, int, int]
    day_half: str
    words_beside: str
    form: HeaderForm
    raw_line: str
    header_end: int
    sender: str
    sender_end: int
    further_lines: list[str] | None = None
    time: datetime | None = None

    @property
    def text_after_header(self) -> str:
        """What stands behind the header."""
        return self.raw_line[self.header_end :]

    @property
    def text_after_sender(self) -> str:
        """What stands behind the first colon."""
        return self.raw_line[self.sender_end :]

    @property
    def time_and_text(self) -> tuple[datetime | None, str]:
        """What two messages have in common that are the same one."""
        return self.time, self.join_with_further_lines(self.text_after_header)

    def append_further_lines(self, raw_lines: Iterable[str]) -> None:
        """Put lines to the message."""
        if self.further_lines is None:
            self.further_lines = []
        self.further_lines.extend(raw_lines)

    def list_raw_lines(self) -> list[str]:
        """Give all lines of the message."""
        if self.further_lines is None:
            return [self.raw_line]
        return [self.raw_line, *self.further_lines]

    def join_with_further_lines(self, first_text: str) -> str:
        """Give the text of the message, which begins so in its first line."""
        if self.further_lines is None:
            return first_text.rstrip()
        return "\n".join([first_text, *self.further_lines]).rstrip()


def parse_headers_of_lines(export_text: str) -> Iterator[HeadedLine | str]:
    """Give each line: as one that begins a message, or as it is."""
    for line_with_end in export_text.split("\n"):
        raw_line = line_with_end.rstrip("\r")
        header = HEADER.match(_with_ascii_digits_and_date_first(raw_line[:_LONGEST_HEADER]))
        if header is None:
            yield raw_line
        else:
            yield _headed_line_of_match(header, raw_line)


def _headed_line_of_match(header_match: re.Match[str], raw_line: str) -> HeadedLine:
    bracket, first_part, first_separator, middle_part, second_separator = header_match.groups()[:5]
    last_part, words_before, hour, minute, second, words_after, end = header_match.groups()[5:]
    date_parts = _date_parts_as_numbers(first_part, middle_part, last_part)
    day_half, words_beside = _day_half_and_words_beside_time(words_before, words_after)
    sender, sender_end = _sender_or_empty_and_its_end(raw_line, header_match.end())
    form = _same_form(
        bracket,
        first_separator,
        second_separator,
        has_year_first=date_parts[0] > 99,
        has_year_last=date_parts[2] > 99,
        has_no_seconds=second is None,
        end=_strip_header_end(end),
    )
    return HeadedLine(
        date_parts=date_parts,
        clock_time=_clock_as_numbers(hour, minute, second),
        day_half=day_half,
        words_beside=words_beside,
        form=form,
        raw_line=raw_line,
        header_end=header_match.end(),
        sender=sender,
        sender_end=sender_end,
    )


def _with_ascii_digits_and_date_first(line_start: str) -> str:
    """Write the start of a line in ASCII digits, and its date before its time."""
    if not line_start.isascii():
        line_start = line_start.translate(words.DIGITS)
    time_first = _TIME_FIRST.match(line_start)
    if time_first is None:
        return line_start
    opening, time, date = time_first.groups()
    return f"{opening}{date}, {time}{line_start[time_first.end() :]}"


@lru_cache(64)
def _strip_header_end(header_end: str) -> str:
    return header_end.strip(" \xa0\u200e\u200f")


@lru_cache(4096)
def _date_parts_as_numbers(
    first_part: str, middle_part: str, last_part: str
) -> tuple[int, int, int]:
    return _date_part_as_number(first_part), int(middle_part), _date_part_as_number(last_part)


def _date_part_as_number(date_part: str) -> int:
    """Read a year, month or day; a year may be one of a Japanese era."""
    return int(date_part.strip("RH")) + _ERAS.get(date_part[0], 0)


@lru_cache(4096)
def _clock_as_numbers(hour: str, minute: str, second: str | None) -> tuple[int, int, int]:
    if second is None:
        return int(hour), int(minute), 0
    return int(hour), int(minute), int(second)


@lru_cache(1024)
def _day_half_and_words_beside_time(
    words_before_time: str, words_after_time: str
) -> tuple[str, str]:
    """Give the half of the day, and the words beside a time."""
    day_half = words.find_half_of_day(words_before_time)
    if not day_half:
        day_half = words.find_half_of_day(words_after_time)
    return day_half, f"{words_before_time} {words_after_time}".strip(" ,،.\u200f")


def _sender_or_empty_and_its_end(raw_line: str, header_end: int) -> tuple[str, int]:
    """Give what stands before the first colon behind a header, and where it ends.

    Empty where there is no colon.
    """
    sender_match = _SENDER.match(raw_line, header_end)
    if sender_match is None:
        return "", header_end
    return _clean_sender_name(sender_match[1]), sender_match.end()


@lru_cache(4096)
def _clean_sender_name(raw_name: str) -> str:
    return words.strip_direction_marks(raw_name).strip(" \xa0\u202f\u200f~")


def split_at_first_colon(text: str) -> tuple[str, str]:
    """Cut what stands before the first colon from what stands behind it.

    Nothing stands before where there is none.
    """
    name, end = _sender_or_empty_and_its_end(text, 0)
    return name, text[end:]


def join_continuation_lines(parsed_lines: list[HeadedLine | str]) -> list[HeadedLine]:
    """Put lines to the messages that they go on.

    A header in another form than the file's is such a line.
    """
    forms = Counter(line.form for line in parsed_lines if isinstance(line, HeadedLine))
    usual_form = max(forms, key=forms.__getitem__, default=None)
    messages = list[HeadedLine]()
    for line in parsed_lines:
        if not isinstance(line, HeadedLine):
            raw_line = line
        elif line.form == usual_form:
            messages.append(line)
            continue
        else:
            raw_line = line.raw_line
        if messages:
            messages[-1].append_further_lines([raw_line])
    return messages
