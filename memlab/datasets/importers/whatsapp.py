"""WhatsApp's text export, of Android and of iPhones, in any locale.

A line that begins with a date and a time in the form of the file begins a message; any other goes
on the one before. The order of day and month follows from all dates of the file. Forms: whatstk's
headers, chat-miner's test files, and the notes of footprint-messaging on locales. What WhatsApp
itself writes (deleted, edited, left out, calls, events of a group) is recognised by marks around it
on iPhones, and by its words (:mod:`memlab.datasets.importers.whatsapp_words`).
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise
from operator import attrgetter, itemgetter
from typing import NamedTuple

from memlab.datasets.chatlog import messenger_role
from memlab.datasets.importers import whatsapp_words as words
from memlab.datasets.importers.export_messages import (
    ChatNames,
    Message,
    make_message,
    name_chat,
)
from memlab.datasets.importers.loose_json import UNREADABLE
from memlab.datasets.source import Source

_M = "[\u200e\u200f]*"
_START = re.compile(
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
ORDERS = {"dmy": (2, 1, 0), "mdy": (2, 0, 1), "ymd": (0, 1, 2)}
"""Order of the parts of a date: where year, month and day stand."""
_ERAS = {"R": 2018, "H": 1988}
"""What Japanese eras add to their years."""
_COPY = re.compile(r" ?\(\d{1,2}\)$|(?<=\S) [2-9]$")
"""What browsers and phones append to the name of a file that is there already."""
LEVEL = r"\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b\]?"
"""Of the lines in the log of a program, where a chat has its senders."""
_LOGGED = re.compile(rf"(?:.* - )?{LEVEL}(?: - .*)?")
_CALLED_WHATSAPP = re.compile("(?i)whatsapp|_chat")
_NO_NAME = re.compile(r"[<\u200e]|[^:]*:(?: ?https?://|\s*$)")
"""Behind the colon of a place, a poll or a file stands a link or nothing, before it a mark."""
_DAY = timedelta(days=1)
_AHEAD = 20


class _Form(NamedTuple):
    """How a file writes its headers: all are of one form."""

    bracket: str
    first_separator: str
    second_separator: str
    has_year_first: bool
    has_year_last: bool
    has_no_seconds: bool
    end: str


_same_form = lru_cache(256)(_Form)


@dataclass(slots=True)
class _Line:
    """A line that begins a message.

    :param date: its three numbers as they stand in the file; ``clock``: hour, minute and second.
    :param half: of the day, ``am``, ``pm`` or empty; ``beside``: the words beside the time.
    :param raw: the line; its header ends at ``header_end``, its sender at ``sender_end``.
    :param more: the lines that go on it.
    """

    date: tuple[int, int, int]
    clock: tuple[int, int, int]
    half: str
    beside: str
    form: _Form
    raw: str
    header_end: int
    sender: str
    sender_end: int
    more: list[str] | None = None
    time: datetime | None = None

    @property
    def rest(self) -> str:
        """What stands behind the header."""
        return self.raw[self.header_end :]

    @property
    def said(self) -> str:
        """What stands behind the first colon."""
        return self.raw[self.sender_end :]

    @property
    def key(self) -> tuple[datetime | None, str]:
        """What two messages have in common that are the same one."""
        return self.time, self.join_text(self.rest)

    def go_on(self, lines: Iterable[str]) -> None:
        """Put lines to the message."""
        if self.more is None:
            self.more = []
        self.more.extend(lines)

    def list_raw(self) -> list[str]:
        """Give all lines of the message."""
        if self.more is None:
            return [self.raw]
        return [self.raw, *self.more]

    def join_text(self, first: str) -> str:
        """Give the text of the message, which begins so in its first line."""
        if self.more is None:
            return first.rstrip()
        return "\n".join([first, *self.more]).rstrip()


_key_of = attrgetter("key")


@dataclass
class _People:
    """Who writes in a chat.

    :param names: of the senders; ``seconds``: what stands behind a first colon that is in a name.
    :param users: those who are known to be no assistants.
    """

    names: set[str]
    seconds: dict[str, str]
    users: set[str] = field(default_factory=set)

    def split_sender(self, line: _Line) -> tuple[str, str]:
        """Give the sender and the first line of the text; an event has no sender."""
        second = self.seconds.get(line.sender)
        if second:
            called, behind = _split_at_colon(line.said)
            if called == second:
                return f"{line.sender}: {second}", behind
        if line.sender in self.names:
            return line.sender, line.said
        return "", line.rest

    def find_role(self, source: Source, sender: str) -> str:
        """Give the role of a sender; every message of an assistant is counted as one."""
        if sender in self.users:
            return "user"
        role = messenger_role(source, sender)
        if role == "user":
            self.users.add(sender)
        return role


def is_whatsapp_export(file: Source) -> bool:
    if file.head.lstrip()[:1] == "{":
        return False
    lines = list[_Line | str]()
    for line in _parse_lines(file.head):
        if isinstance(line, _Line) or line.strip():
            lines.append(line)
    headed = [line for line in lines if isinstance(line, _Line)]
    if not headed:
        return False
    is_early = len(headed) > 1 and lines.index(headed[0]) < 5
    if not is_early and len(headed) * 20 < len(lines):
        return False
    if _CALLED_WHATSAPP.search(file.name):
        return True
    return 3 * sum(map(_is_message, headed)) > len(headed)


def _is_message(line: _Line) -> bool:
    """Say whether a line is of a chat, and not of the log of a program."""
    if _LOGGED.fullmatch(line.sender):
        return False
    if _LOGGED.fullmatch(line.beside):
        return False
    if line.sender[:1] not in ("", "<"):
        return True
    return words.patterns().event.search(line.rest) is not None


def read_whatsapp_export(source: Source) -> Iterator[Message]:
    """Read every chat as a scope of its own.

    A file that holds messages of another of its name goes on that one.
    """
    names = ChatNames()
    chats = dict[str, dict[str, Counter[tuple[datetime | None, str]]]]()
    for file in source.members:
        headed, readable = _read_headed_lines(file)
        _assign_times(file, headed)
        lines = deque(_merge_pasted_lines(headed))
        pasted = len(headed) - len(lines)
        del headed
        people = _find_people(lines)
        called = _name_chat(file, lines, people)
        without_copy = _COPY.sub("", called)
        if without_copy in people.names and called not in people.names:
            called = without_copy
        same_name = chats.setdefault(without_copy, {})
        scope = _find_chat(same_name, lines, people)
        if not scope:
            scope = name_chat(names, file.stem, called)
        source.keep("pasted lines", scope, "kept in the messages around them", pasted)
        if scope in same_name:
            lines = deque(_drop_repeated(source, scope, lines, same_name[scope]))
        if len(source.members) > 1:
            same_name.setdefault(scope, Counter()).update(map(_key_of, lines))
        if UNREADABLE.search(scope):
            readable = False
        while lines:  # each is let go of when it is read: a chat may have a million
            line = lines.popleft()
            yield from _read_message(source, scope, line, people, readable=readable)


def _read_headed_lines(file: Source) -> tuple[list[_Line], bool]:
    """Read the lines that begin messages, and say whether a text can hold all characters of
    the file.
    """
    text = file.text()
    lines = _join_continuations(list(_parse_lines(text)))
    if not lines:
        file.fail("holds no line that begins with a date and a time; is it a chat of WhatsApp?")
    return lines, UNREADABLE.search(text) is None


def _find_chat(
    chats: dict[str, Counter[tuple[datetime | None, str]]], lines: Iterable[_Line], people: _People
) -> str:
    """Find the chat of the same name that holds some of the messages; empty where none does."""
    if not chats:
        return ""
    spoken = {line.key for line in lines if line.sender in people.names}
    for scope, there in chats.items():
        if not spoken.isdisjoint(there):
            return scope
    return ""


def _drop_repeated(
    source: Source, scope: str, lines: Iterable[_Line], there: Counter[tuple[datetime | None, str]]
) -> Iterator[_Line]:
    """Give the lines that are not there yet."""
    repeated = Counter(map(_key_of, lines)) & there
    for line in lines:
        if repeated[line.key]:
            repeated[line.key] -= 1
            source.drop("repeated messages", scope)
        else:
            yield line


def _parse_lines(text: str) -> Iterator[_Line | str]:
    """Give each line: as one that begins a message, or as it is."""
    for ended in text.split("\n"):
        raw_line = ended.rstrip("\r")
        found = _START.match(_begin_with_date(raw_line[:_LONGEST_HEADER]))
        if found is None:
            yield raw_line
            continue
        bracket, first, separator, middle, second_separator, last, *others = found.groups()
        before, hour, minute, second, after, end = others
        date = _read_date(first, middle, last)
        lengths = date[0] > 99, date[2] > 99, second is None
        line_form = _same_form(bracket, separator, second_separator, *lengths, _strip_end(end))
        clock = _read_clock(hour, minute, second)
        day_half, beside = _read_beside(before, after)
        sender, sender_end = _find_sender(raw_line, found.end())
        yield _Line(
            date, clock, day_half, beside, line_form, raw_line, found.end(), sender, sender_end
        )


def _begin_with_date(start: str) -> str:
    """Write the start of a line in ASCII digits, and its date before its time."""
    if not start.isascii():
        start = start.translate(words.DIGITS)
    found = _TIME_FIRST.match(start)
    if found is None:
        return start
    opening, time, date = found.groups()
    return f"{opening}{date}, {time}{start[found.end() :]}"


@lru_cache(64)
def _strip_end(end: str) -> str:
    return end.strip(" \xa0\u200e\u200f")


@lru_cache(4096)
def _read_date(first: str, middle: str, last: str) -> tuple[int, int, int]:
    return _read_number(first), int(middle), _read_number(last)


def _read_number(part: str) -> int:
    """Read a year, month or day; a year may be one of a Japanese era."""
    return int(part.strip("RH")) + _ERAS.get(part[0], 0)


@lru_cache(4096)
def _read_clock(hour: str, minute: str, second: str | None) -> tuple[int, int, int]:
    if second is None:
        return int(hour), int(minute), 0
    return int(hour), int(minute), int(second)


@lru_cache(1024)
def _read_beside(before: str, after: str) -> tuple[str, str]:
    """Give the half of the day, and the words beside a time."""
    day_half = words.day_period(before)
    if not day_half:
        day_half = words.day_period(after)
    return day_half, f"{before} {after}".strip(" ,،.\u200f")


def _find_sender(raw: str, header_end: int) -> tuple[str, int]:
    """Give what stands before the first colon behind a header, and where it ends.

    Empty where there is no colon.
    """
    found = _SENDER.match(raw, header_end)
    if found is None:
        return "", header_end
    return _clean_name(found[1]), found.end()


@lru_cache(4096)
def _clean_name(name: str) -> str:
    return words.clean(name).strip(" \xa0\u202f\u200f~")


def _split_at_colon(text: str) -> tuple[str, str]:
    """Cut what stands before the first colon from what stands behind it.

    Nothing stands before where there is none.
    """
    name, end = _find_sender(text, 0)
    return name, text[end:]


def _join_continuations(lines: list[_Line | str]) -> list[_Line]:
    """Put lines to the messages that they go on.

    A header in another form than the file's is such a line.
    """
    forms = Counter(line.form for line in lines if isinstance(line, _Line))
    usual_form = max(forms, key=forms.__getitem__, default=None)
    messages = list[_Line]()
    for line in lines:
        if not isinstance(line, _Line):
            raw_line = line
        elif line.form == usual_form:
            messages.append(line)
            continue
        else:
            raw_line = line.raw
        if messages:
            messages[-1].go_on([raw_line])
    return messages


def _assign_times(file: Source, lines: list[_Line]) -> None:
    """Date the lines in the order that fits the whole file best.

    Where two fit equally, say which was taken.
    """
    date_order = _choose_order(file, lines)
    _note_unknown_words(file, lines)
    undated = list[int]()
    for number, line in enumerate(lines, 1):
        line.time = _line_time(line, date_order)
        if line.time is None:
            undated.append(number)
    if len(undated) * 10 > len(lines):
        first_undated = lines[undated[0] - 1]
        remedy = "name another --date-order"
        # The Persian or the Islamic calendar.
        if any(1380 < part < 1500 for part in first_undated.date):
            remedy = "set the phone to the Gregorian calendar"
        which = f"message {undated[0]} and {len(undated) - 1} more"
        file.fail(f"{which}: {first_undated.raw[:30]!r} is no date as {date_order}; {remedy}")


def _choose_order(file: Source, lines: list[_Line]) -> str:
    """Choose the order of day, month and year."""
    known_orders = list(ORDERS)
    if file.date_order:
        known_orders = [file.date_order]
    changes = lines[:1]
    for line, following in pairwise(lines):
        if following.date != line.date:
            changes.append(following)
    misfits = {date_order: _count_misfits(changes, date_order) for date_order in known_orders}
    fewest = min(misfits.values())
    fitting = [date_order for date_order in known_orders if misfits[date_order] == fewest]
    date_order = fitting[0]
    if "mdy" in fitting and ("dmy" not in fitting or all(map(_is_american, lines))):
        date_order = "mdy"
    if len(fitting) > 1 and len({part for line in changes for part in line.date[:2]}) > 1:
        finding = f"every date can be {' or '.join(fitting)}"
        file.note(
            f"{file.name}: dates", finding, f"read as {date_order}; --date-order names another"
        )
    return date_order


def _is_american(line: _Line) -> bool:
    """Say whether a date is written as in the United States: 1/2/26, 9:41 PM."""
    if line.form.first_separator != "/":
        return False
    if line.form.has_year_last:
        return False
    return line.beside.endswith(("AM", "PM"))


def _note_unknown_words(file: Source, lines: list[_Line]) -> None:
    """Note words beside the times that may be a half of the day in a language that is not known."""
    beside = {line.beside for line in lines}
    unknown = {line.beside for line in lines if not line.half} - {""}
    if not unknown or len(beside) < 2:
        return
    if all(0 < line.clock[0] < 13 for line in lines):
        finding = f"words beside them: {', '.join(sorted(unknown))}"
        file.note(f"{file.name}: times", finding, "taken as no half of the day")


def _count_misfits(lines: list[_Line], order: str) -> tuple[int, int, bool]:
    """Count the dates that an order makes impossible, and the steps back in time.

    Some orders no locale has.

    :param lines: the first of each date.
    """
    known_times = list[datetime]()
    for line in lines:
        known_time = _line_time(line, order)
        if known_time is not None:
            known_times.append(known_time)
    steps_back = sum(
        known_time - following > _DAY for known_time, following in pairwise(known_times)
    )
    form = lines[0].form
    unlikely = False
    if order == "mdy":
        unlikely = form.first_separator == "."
    elif order == "ymd":
        unlikely = not form.has_year_first
    return len(lines) - len(known_times), steps_back, unlikely


def _line_time(line: _Line, order: str) -> datetime | None:
    """Give the time of a line; ``None`` where it is none in this order."""
    year, month, day = _read_day(line.date, order)
    hour, minute, second = line.clock
    if line.half and hour <= 12:
        hour %= 12
        if line.half == "pm":
            hour += 12
    if not 2009 <= year < 2100:
        return None
    try:
        return datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None


@lru_cache(4096)
def _read_day(date: tuple[int, int, int], order: str) -> tuple[int, int, int]:
    """Give year, month and day, the year in our calendar."""
    year, month, day = itemgetter(*ORDERS[order])(date)
    if year < 52:
        year += 2000
    elif year < 100:  # the Buddhist calendar: no chat is of 2052
        year += 1957
    elif year < 200:  # the calendar of Taiwan
        year += 1911
    elif 2400 < year < 2700:  # the Buddhist calendar
        year -= 543
    return year, month, day


def _merge_pasted_lines(lines: list[_Line]) -> Iterator[_Line]:
    """Put back into its message a pasted line that looks like a header: alone, it is days
    off those around it.
    """
    previous: _Line | None = None
    senders = set[str]()
    counts: Counter[tuple[datetime | None, str]] | None = None
    is_within = False
    for place, line in enumerate(lines):
        is_pasted = line.time is None
        is_late = False
        if previous is None:
            is_pasted = False
        elif _is_days_before(line, previous):
            following = lines[place + 1 : place + 1 + _AHEAD]
            is_pasted = any(not _is_days_before(other, previous) for other in following)
            if counts is None:
                counts = Counter((each.time, each.rest) for each in lines)
            begun_above = (
                is_within or _START.match(previous.said) or _is_days_before(line, lines[0])
            )
            if is_pasted and not begun_above:
                is_late = _was_sent_late([line, *following], previous, senders, counts)
        elif _is_days_before(previous, line):
            is_pasted = _stands_alone(line, lines[place + 1 : place + 1 + _AHEAD])
        is_within = is_pasted and not is_late
        if previous is not None and is_within:
            previous.go_on(line.list_raw())
            continue
        if not is_late:
            previous = line
        if line.sender:
            senders.add(line.sender)
        yield line


def _is_days_before(line: _Line, other: _Line) -> bool:
    if line.time is None or other.time is None:
        return False
    return other.time - line.time > _DAY


def _was_sent_late(
    lines: list[_Line],
    last: _Line,
    senders: set[str],
    counts: Counter[tuple[datetime | None, str]],
) -> bool:
    """Say whether people of the chat wrote lines when they had no network.

    What they paste stands there twice.

    :param lines: those that may have been, of which the run that is days before the last counts.
    """
    for line in lines:
        if not _is_days_before(line, last):
            break
        if line.sender not in senders:
            return False
        if counts[line.time, line.rest] > 1:
            return False
    return True


def _stands_alone(line: _Line, following: list[_Line]) -> bool:
    """Say whether a line is days ahead of most that follow, none of them by its sender."""
    behind = [other.sender for other in following if _is_days_before(other, line)]
    return 2 * len(behind) > len(following) and line.sender not in behind


def _find_people(lines: Iterable[_Line]) -> _People:
    """Find the senders; a name has a colon where all its messages go on the same way after it.

    An event of the group with a colon in it has no sender, but what begins three times the same way
    is a name.
    """
    by_sender = dict[str, list[_Line]]()
    for line in lines:
        if line.sender:
            by_sender.setdefault(line.sender, []).append(line)
    people = _People(set(), {})
    for sender, messages in by_sender.items():
        if len(messages) > 2 or not words.is_event(sender):
            people.names.add(sender)
        second = _find_second(messages)
        if second:
            people.names.add(f"{sender}: {second}")
            people.seconds[sender] = second
    return people


def _find_second(lines: list[_Line]) -> str:
    """Give what follows the first colon of a sender whose name has one; empty for any other."""
    second, _ = _split_at_colon(lines[0].said)
    if len(lines) < 3 or second.count(" ") > 2 or len(second) >= 25:
        return ""
    is_name = False
    for line in lines:
        called, _ = _split_at_colon(line.said)
        if called != second:
            return ""
        if not _NO_NAME.match(line.said):
            is_name = True
    if is_name:
        return second
    return ""


def _name_chat(file: Source, lines: Iterable[_Line], people: _People) -> str:
    """Name the chat: by its file or archive, by who brings the notice of encryption, or by
    its folder.
    """
    file_stem = file.path.stem
    for path in (file.path, *file.path.parents[:2]):
        title = _read_title(path.stem)
        if title:
            return title
    for line in islice(lines, 3):
        sender, text = people.split_sender(line)
        if sender and words.patterns().encrypted.search(text):
            return sender
    folder = file.path.parent.name.removesuffix(".zip")
    if folder and file_stem == "_chat":
        return folder
    return file_stem


def _read_title(called: str) -> str:
    """Give the name of the chat in that of a file; empty where it holds none."""
    found = words.patterns().title.match(called)
    if found is None:
        return ""
    behind = found["name"].strip(" -_–")
    if behind or not found["chat"]:
        return behind
    return words.patterns().after_first_name.sub("", found["before"].strip(" -_"))


def _read_message(
    source: Source, scope: str, line: _Line, people: _People, *, readable: bool
) -> Iterable[Message]:
    """Read a message.

    :param readable: whether the file holds no character that a text cannot hold.
    """
    sender, first = people.split_sender(line)
    body = line.join_text(first)
    if sender == scope and len(people.names) > 2 and words.patterns().event.search(first):
        sender = ""  # the group tells it
    if not sender:
        if words.patterns().call.match(words.clean(body)):
            return source.drop("calls", scope)
        return source.drop("system messages", scope)
    text, left_out, caption = words.read_body(body)
    if left_out == "edited messages":
        source.keep(left_out, scope, "kept as last edited")
    elif left_out and not text and not caption:
        return source.drop(left_out, scope)
    elif left_out:
        source.keep(left_out, scope, "described in captions")
    message = {"role": people.find_role(source, sender)}
    if line.time is not None:
        message["timestamp"] = line.time.isoformat()
    if caption:
        message["caption"] = caption
    if text and readable and message["role"] == "user":
        # As make_message gives it, which has nothing to look for here.
        return [{"scope": scope, "sender": sender, "text": text, **message}]
    return make_message(source, scope, sender, text, **message)
