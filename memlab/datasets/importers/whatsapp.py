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
        second_name = self.seconds.get(line.sender)
        if second_name:
            next_name, text_behind = _split_at_colon(line.said)
            if next_name == second_name:
                return f"{line.sender}: {second_name}", text_behind
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
    header_lines = [line for line in lines if isinstance(line, _Line)]
    if not header_lines:
        return False
    is_early = len(header_lines) > 1 and lines.index(header_lines[0]) < 5
    if not is_early and len(header_lines) * 20 < len(lines):
        return False
    if _CALLED_WHATSAPP.search(file.name):
        return True
    return 3 * sum(map(_is_message, header_lines)) > len(header_lines)


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
    chat_names = ChatNames()
    chats = dict[str, dict[str, Counter[tuple[datetime | None, str]]]]()
    for file in source.members:
        header_lines, is_readable = _read_headed_lines(file)
        _assign_times(file, header_lines)
        lines = deque(_merge_pasted_lines(header_lines))
        n_pasted = len(header_lines) - len(lines)
        del header_lines
        people = _find_people(lines)
        chat_name = _name_chat(file, lines, people)
        original_name = _COPY.sub("", chat_name)
        if original_name in people.names and chat_name not in people.names:
            chat_name = original_name
        chats_of_name = chats.setdefault(original_name, {})
        scope = _find_chat(chats_of_name, lines, people)
        if not scope:
            scope = name_chat(chat_names, file.stem, chat_name)
        source.keep("pasted lines", scope, "kept in the messages around them", n_pasted)
        if scope in chats_of_name:
            lines = deque(_drop_repeated(source, scope, lines, chats_of_name[scope]))
        if len(source.members) > 1:
            chats_of_name.setdefault(scope, Counter()).update(map(_key_of, lines))
        if UNREADABLE.search(scope):
            is_readable = False
        while lines:  # each is let go of when it is read: a chat may have a million
            line = lines.popleft()
            yield from _read_message(source, scope, line, people, readable=is_readable)


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
    message_keys = {line.key for line in lines if line.sender in people.names}
    for scope, known_keys in chats.items():
        if not message_keys.isdisjoint(known_keys):
            return scope
    return ""


def _drop_repeated(
    source: Source,
    scope: str,
    lines: Iterable[_Line],
    known_keys: Counter[tuple[datetime | None, str]],
) -> Iterator[_Line]:
    """Give the lines that are not there yet."""
    repeated_keys = Counter(map(_key_of, lines)) & known_keys
    for line in lines:
        if repeated_keys[line.key]:
            repeated_keys[line.key] -= 1
            source.drop("repeated messages", scope)
        else:
            yield line


def _parse_lines(text: str) -> Iterator[_Line | str]:
    """Give each line: as one that begins a message, or as it is."""
    for line_with_end in text.split("\n"):
        raw_line = line_with_end.rstrip("\r")
        header = _START.match(_begin_with_date(raw_line[:_LONGEST_HEADER]))
        if header is None:
            yield raw_line
            continue
        (
            bracket,
            first_part,
            first_separator,
            middle_part,
            second_separator,
            last_part,
            *clock_parts,
        ) = header.groups()
        words_before, hour, minute, second_part, words_after, end = clock_parts
        date = _read_date(first_part, middle_part, last_part)
        date_lengths = date[0] > 99, date[2] > 99, second_part is None
        line_form = _same_form(
            bracket, first_separator, second_separator, *date_lengths, _strip_end(end)
        )
        clock_time = _read_clock(hour, minute, second_part)
        day_half, beside = _read_beside(words_before, words_after)
        sender, sender_end = _find_sender(raw_line, header.end())
        yield _Line(
            date,
            clock_time,
            day_half,
            beside,
            line_form,
            raw_line,
            header.end(),
            sender,
            sender_end,
        )


def _begin_with_date(start: str) -> str:
    """Write the start of a line in ASCII digits, and its date before its time."""
    if not start.isascii():
        start = start.translate(words.DIGITS)
    time_first = _TIME_FIRST.match(start)
    if time_first is None:
        return start
    opening, time, date = time_first.groups()
    return f"{opening}{date}, {time}{start[time_first.end() :]}"


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
    sender_match = _SENDER.match(raw, header_end)
    if sender_match is None:
        return "", header_end
    return _clean_name(sender_match[1]), sender_match.end()


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
    undated_numbers = list[int]()
    for number, line in enumerate(lines, 1):
        line.time = _line_time(line, date_order)
        if line.time is None:
            undated_numbers.append(number)
    if len(undated_numbers) * 10 > len(lines):
        first_undated = lines[undated_numbers[0] - 1]
        remedy = "name another --date-order"
        # The Persian or the Islamic calendar.
        if any(1380 < date_part < 1500 for date_part in first_undated.date):
            remedy = "set the phone to the Gregorian calendar"
        undated_text = f"message {undated_numbers[0]} and {len(undated_numbers) - 1} more"
        file.fail(
            f"{undated_text}: {first_undated.raw[:30]!r} is no date as {date_order}; {remedy}"
        )


def _choose_order(file: Source, lines: list[_Line]) -> str:
    """Choose the order of day, month and year."""
    known_orders = list(ORDERS)
    if file.date_order:
        known_orders = [file.date_order]
    first_of_days = lines[:1]
    for line, following in pairwise(lines):
        if following.date != line.date:
            first_of_days.append(following)
    misfits_by_order = {
        date_order: _count_misfits(first_of_days, date_order) for date_order in known_orders
    }
    fewest_misfits = min(misfits_by_order.values())
    fitting_orders = [
        date_order for date_order in known_orders if misfits_by_order[date_order] == fewest_misfits
    ]
    date_order = fitting_orders[0]
    if "mdy" in fitting_orders and ("dmy" not in fitting_orders or all(map(_is_american, lines))):
        date_order = "mdy"
    if (
        len(fitting_orders) > 1
        and len({date_part for line in first_of_days for date_part in line.date[:2]}) > 1
    ):
        finding = f"every date can be {' or '.join(fitting_orders)}"
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
    words_beside = {line.beside for line in lines}
    unknown_words = {line.beside for line in lines if not line.half} - {""}
    if not unknown_words or len(words_beside) < 2:
        return
    if all(0 < line.clock[0] < 13 for line in lines):
        finding = f"words beside them: {', '.join(sorted(unknown_words))}"
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
    header_form = lines[0].form
    is_unlikely = False
    if order == "mdy":
        is_unlikely = header_form.first_separator == "."
    elif order == "ymd":
        is_unlikely = not header_form.has_year_first
    return len(lines) - len(known_times), steps_back, is_unlikely


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
            lines_ahead = lines[place + 1 : place + 1 + _AHEAD]
            is_pasted = any(not _is_days_before(line_ahead, previous) for line_ahead in lines_ahead)
            if counts is None:
                counts = Counter((any_line.time, any_line.rest) for any_line in lines)
            is_begun_above = (
                is_within or _START.match(previous.said) or _is_days_before(line, lines[0])
            )
            if is_pasted and not is_begun_above:
                is_late = _was_sent_late([line, *lines_ahead], previous, senders, counts)
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
    earlier_senders = [
        next_line.sender for next_line in following if _is_days_before(next_line, line)
    ]
    return 2 * len(earlier_senders) > len(following) and line.sender not in earlier_senders


def _find_people(lines: Iterable[_Line]) -> _People:
    """Find the senders; a name has a colon where all its messages go on the same way after it.

    An event of the group with a colon in it has no sender, but what begins three times the same way
    is a name.
    """
    lines_by_sender = dict[str, list[_Line]]()
    for line in lines:
        if line.sender:
            lines_by_sender.setdefault(line.sender, []).append(line)
    people = _People(set(), {})
    for sender, sender_lines in lines_by_sender.items():
        if len(sender_lines) > 2 or not words.is_event(sender):
            people.names.add(sender)
        second_name = _find_second(sender_lines)
        if second_name:
            people.names.add(f"{sender}: {second_name}")
            people.seconds[sender] = second_name
    return people


def _find_second(lines: list[_Line]) -> str:
    """Give what follows the first colon of a sender whose name has one; empty for any other."""
    second_name, _ = _split_at_colon(lines[0].said)
    if len(lines) < 3 or second_name.count(" ") > 2 or len(second_name) >= 25:
        return ""
    is_name = False
    for line in lines:
        next_name, _ = _split_at_colon(line.said)
        if next_name != second_name:
            return ""
        if not _NO_NAME.match(line.said):
            is_name = True
    if is_name:
        return second_name
    return ""


def _name_chat(file: Source, lines: Iterable[_Line], people: _People) -> str:
    """Name the chat: by its file or archive, by who brings the notice of encryption, or by
    its folder.
    """
    file_stem = file.path.stem
    for file_path in (file.path, *file.path.parents[:2]):
        title = _read_title(file_path.stem)
        if title:
            return title
    for line in islice(lines, 3):
        sender, text = people.split_sender(line)
        if sender and words.patterns().encrypted.search(text):
            return sender
    folder_name = file.path.parent.name.removesuffix(".zip")
    if folder_name and file_stem == "_chat":
        return folder_name
    return file_stem


def _read_title(called: str) -> str:
    """Give the name of the chat in that of a file; empty where it holds none."""
    title_match = words.patterns().title.match(called)
    if title_match is None:
        return ""
    name_behind = title_match["name"].strip(" -_–")
    if name_behind or not title_match["chat"]:
        return name_behind
    return words.patterns().after_first_name.sub("", title_match["before"].strip(" -_"))


def _read_message(
    source: Source, scope: str, line: _Line, people: _People, *, readable: bool
) -> Iterable[Message]:
    """Read a message.

    :param readable: whether the file holds no character that a text cannot hold.
    """
    sender, first_line = people.split_sender(line)
    message_body = line.join_text(first_line)
    if sender == scope and len(people.names) > 2 and words.patterns().event.search(first_line):
        sender = ""  # the group tells it
    if not sender:
        if words.patterns().call.match(words.clean(message_body)):
            return source.drop("calls", scope)
        return source.drop("system messages", scope)
    text, left_out_kind, caption = words.read_body(message_body)
    if left_out_kind == "edited messages":
        source.keep(left_out_kind, scope, "kept as last edited")
    elif left_out_kind and not text and not caption:
        return source.drop(left_out_kind, scope)
    elif left_out_kind:
        source.keep(left_out_kind, scope, "described in captions")
    message = {"role": people.find_role(source, sender)}
    if line.time is not None:
        message["timestamp"] = line.time.isoformat()
    if caption:
        message["caption"] = caption
    if text and readable and message["role"] == "user":
        # As make_message gives it, which has nothing to look for here.
        return [{"scope": scope, "sender": sender, "text": text, **message}]
    return make_message(source, scope, sender, text, **message)
