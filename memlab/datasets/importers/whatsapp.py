"""WhatsApp's text export, of Android and of iPhones, in any locale.

A line that begins with a date and a time in the form of the file begins a message; any other goes
on the one before. The order of day and month follows from all dates of the file. Forms: whatstk's
headers, chat-miner's test files, and the notes of footprint-messaging on locales. What WhatsApp
itself writes (deleted, edited, left out, calls, events of a group) is recognised by marks around it
on iPhones, and by its words (:mod:`memlab.datasets.importers.whatsapp_words`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import pairwise, takewhile

from memlab.datasets.chatlog import messenger_role
from memlab.datasets.importers import whatsapp_words as words
from memlab.datasets.importers.export_messages import Message, make_message, name_chat
from memlab.datasets.source import Source

_M = "[\u200e\u200f]*"
_START = re.compile(
    rf"^[\ufeff]?{_M}(\[?){_M}"
    rf"([RH]?\d{{1,4}}){_M}([./\-年년])[ \xa0]?{_M}(\d{{1,2}}){_M}([./\-月월])[ \xa0]?{_M}([RH]?\d{{1,4}})[.日일]?"
    r"([^\d\[\]:]{1,18}?)"
    r"(\d{1,2})(?:[:.]| ?h ?)(\d{2})(?:[:.](\d{2}))?"
    r"([^\d\[\]:,–-]{0,20}?)"
    r"(\](?:[ \u200e\u200f]|$)|[ \xa0][-–](?:[ \xa0]|$)|:[ \xa0])"
)
_TIME_FIRST = re.compile(
    rf"^([\ufeff]?{_M}\[?{_M})(\d{{1,2}}[:.]\d{{2}}(?:[:.]\d{{2}})?(?:[ \xa0\u202f][^\d\[\]:,–-]{{1,16}})?), "
    r"(\d{1,4}[./-]\d{1,2}[./-]\d{1,4})(?=\]| [-–])"
)
"""As Vietnamese phones export, and as messages come that are copied out of WhatsApp Web; the date is put first."""
_SENDER = re.compile("([^\n]{1,80}?)[ \xa0]?:(?:[ \xa0]|$|(?=[\u200e\u200f]))")
ORDERS = {"dmy": (2, 1, 0), "mdy": (2, 0, 1), "ymd": (0, 1, 2)}
"""Order of the parts of a date: where year, month and day stand."""
_ERAS = {"R": 2018, "H": 1988}  # what Japanese eras add to their years
_COPY = re.compile(r" ?\(\d{1,2}\)$|(?<=\S) [2-9]$")
"""What browsers and phones append to the name of a file that is there already."""
LEVEL = r"\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b\]?"
"""Of the lines in the log of a program, where a chat has its senders."""
_LOGGED = re.compile(rf"(?:.* - )?{LEVEL}(?: - .*)?")
_DAY = 86_400
_AHEAD = 20


@dataclass
class _Line:
    """The beginning of a message: what its header says, and what follows, before and behind its first colon too."""

    date: tuple[int, int, int]
    clock: tuple[int, int, int]
    half: str
    beside: str
    shape: tuple[object, ...]
    rest: str
    sender: str
    said: str
    raw: str
    more: list[str]
    at: datetime | None = None

    @property
    def key(self) -> tuple[datetime | None, str]:
        return self.at, "\n".join([self.rest, *self.more]).rstrip()


def is_whatsapp_export(file: Source) -> bool:
    if file.head.lstrip()[:1] == "{":
        return False
    lines = [line for line in _parse_lines(file.head) if isinstance(line, _Line) or line.strip()]
    found = [line for line in lines if isinstance(line, _Line)]
    said = [
        line for line in found if line.sender[:1] not in ("", "<") or words.EVENT.search(line.rest)
    ]
    said = [
        line
        for line in said
        if not _LOGGED.fullmatch(line.sender) and not _LOGGED.fullmatch(line.beside)
    ]
    named = re.search("(?i)whatsapp|_chat", file.name) is not None
    early = len(found) > 1 and found[0] in lines[:5]
    return (
        (named or 3 * len(said) > len(found))
        and (early or len(found) * 20 >= len(lines))
        and bool(found)
    )


def read_whatsapp_export(source: Source) -> Iterator[Message]:
    """Read every chat as a scope of its own; a file that holds messages of another of its name goes on that one."""
    names, chats = dict[str, str](), dict[str, dict[str, Counter[tuple[datetime | None, str]]]]()
    for file in source.members:
        lines = _join_continuations(_parse_lines(file.text()))
        if not lines:
            file.fail("holds no line that begins with a date and a time; is it a chat of WhatsApp?")
        _assign_times(file, lines)
        every, lines = len(lines), list(_merge_pasted_lines(lines))
        people = _find_senders(lines)
        called = _name_chat(file, lines, people)
        plain = _COPY.sub("", called)
        called = plain if plain in people and called not in people else called
        same_name, spoken = (
            chats.setdefault(plain, {}),
            {line.key for line in lines if line.sender in people},
        )
        downloaded_twice = (name for name, there in same_name.items() if there.keys() & spoken)
        scope = next(downloaded_twice, "") or name_chat(names, file.stem, called)
        source.keep("pasted lines", scope, "kept in the messages around them", every - len(lines))
        there = same_name.setdefault(scope, Counter())
        repeated = Counter(line.key for line in lines) & there
        for line in lines:
            if repeated[line.key]:
                repeated[line.key] -= 1
                source.drop("repeated messages", scope)
            else:
                there[line.key] += 1
                yield from _read_whatsapp_message(source, scope, line, people)


def _parse_lines(text: str) -> Iterator[_Line | str]:
    for raw in text.split("\n"):
        raw = raw.rstrip("\r")
        found = _START.match(_TIME_FIRST.sub(r"\1\3, \2", raw[:120].translate(words.DIGITS)))
        if found is None:
            yield raw
            continue
        (
            bracket,
            first_part,
            first,
            b,
            second,
            last_part,
            before,
            hour,
            minute,
            second_,
            after,
            end,
        ) = found.groups()
        a, c = (int(part.strip("RH")) + _ERAS.get(part[0], 0) for part in (first_part, last_part))
        shape = (
            bracket,
            first,
            second,
            a > 99,
            c > 99,
            second_ is None,
            end.strip(" \xa0\u200e\u200f"),
        )
        clock = (int(hour), int(minute), int(second_ or 0))
        half = words.day_period(before) or words.day_period(after)
        beside = f"{before} {after}".strip(" ,،.\u200f")
        rest = raw[found.end() :]
        yield _Line(
            (a, int(b), c), clock, half, beside, shape, rest, *_split_at_colon(rest), raw, []
        )


def _join_continuations(lines: Iterator[_Line | str]) -> list[_Line]:
    """Put lines to the messages that they go on; a header in another form than the file's is such a line."""
    listed = list(lines)
    usual = Counter(line.shape for line in listed if isinstance(line, _Line)).most_common(1)
    messages: list[_Line] = []
    for line in listed:
        if isinstance(line, _Line) and line.shape == usual[0][0]:
            messages.append(line)
        elif messages:
            messages[-1].more.append(line if isinstance(line, str) else line.raw)
    return messages


def _assign_times(file: Source, lines: list[_Line]) -> None:
    """Date the lines in the order that fits the whole file best; where two fit equally, say which was taken."""
    wanted = file.date_order
    misfits = {order: _count_misfits(lines, order) for order in ([wanted] if wanted else ORDERS)}
    best = min(misfits.values())
    fitting = [order for order, misfit in misfits.items() if misfit == best]
    american = all(
        line.shape[1] == "/" and not line.shape[4] and line.beside[-2:] in ("AM", "PM")
        for line in lines
    )
    order = "mdy" if "mdy" in fitting and (american or "dmy" not in fitting) else fitting[0]
    if (
        len(fitting) > 1
        and len({line.date[0] for line in lines} | {line.date[1] for line in lines}) > 1
    ):
        what = f"every date can be {' or '.join(fitting)}"
        file.note(f"{file.name}: dates", what, f"read as {order}; --date-order names another")
    unknown = sorted({line.beside for line in lines if line.beside and not line.half})
    if (
        unknown
        and len({line.beside for line in lines}) > 1
        and all(0 < line.clock[0] < 13 for line in lines)
    ):
        file.note(
            f"{file.name}: times",
            f"words beside them: {', '.join(unknown)}",
            "taken as no half of the day",
        )
    for line in lines:
        line.at = _line_datetime(line, order)
    wrong = [number for number, line in enumerate(lines, 1) if line.at is None]
    if len(wrong) * 10 > len(lines):
        odd, more = lines[wrong[0] - 1].raw[:30], len(wrong) - 1
        other = any(
            1380 < part < 1500 for part in lines[wrong[0] - 1].date
        )  # the Persian or the Islamic calendar
        remedy = "set the phone to the Gregorian calendar" if other else "name another --date-order"
        file.fail(f"message {wrong[0]} and {more} more: {odd!r} is no date as {order}; {remedy}")


def _count_misfits(lines: list[_Line], order: str) -> tuple[int, int, bool]:
    """Count the dates that an order makes impossible, and the steps back in time; some orders no locale has."""
    dates = [
        line
        for line, last in zip(lines, [None, *lines], strict=False)
        if last is None or line.date != last.date
    ]
    times = [_line_datetime(line, order) for line in dates]
    known = [time for time in times if time is not None]
    back = sum((b - a).total_seconds() < -_DAY for a, b in pairwise(known))
    unlikely = (order == "mdy" and lines[0].shape[1] == ".") or (
        order == "ymd" and not lines[0].shape[3]
    )
    return len(times) - len(known), back, unlikely


def _line_datetime(line: _Line, order: str) -> datetime | None:
    year, month, day = (line.date[at] for at in ORDERS[order])
    if year < 100:
        year += 2000 if year < 52 else 1957  # the Buddhist calendar: no chat is of 2052
    elif year < 200:  # the calendar of Taiwan
        year += 1911
    elif 2400 < year < 2700:  # the Buddhist calendar
        year -= 543
    hour = line.clock[0]
    if line.half and hour <= 12:
        hour = hour % 12 + 12 * (line.half == "pm")
    try:
        return datetime(year, month, day, hour, *line.clock[1:]) if 2009 <= year < 2100 else None
    except ValueError:
        return None


def _merge_pasted_lines(lines: list[_Line]) -> Iterator[_Line]:
    """Put back into its message a pasted line that looks like a header: alone, it is days off those around it."""
    last: _Line | None = None
    senders, there, within = set[str](), Counter((line.at, line.rest) for line in lines), False
    for place, line in enumerate(lines):
        following, pasted, late = lines[place + 1 : place + 1 + _AHEAD], line.at is None, False
        if last is not None and _is_days_before(line, last):
            pasted = any(not _is_days_before(other, last) for other in following)
            run = [line, *takewhile(partial(_is_days_before, other=last), following)]
            # People of the chat wrote it when they had no network; what they paste stands there
            # twice, or began above.
            own = (each.sender in senders and there[each.at, each.rest] == 1 for each in run)
            late = (
                not within
                and not _START.match(last.said)
                and not _is_days_before(line, lines[0])
                and all(own)
            )
        elif last is not None and _is_days_before(last, line):
            behind = [other.sender for other in following if _is_days_before(other, line)]
            pasted = 2 * len(behind) > len(following) and line.sender not in behind
        within = last is not None and pasted and not late
        if last is not None and within:
            last.more += [line.raw, *line.more]
            continue
        last = last if late and pasted else line
        senders |= {line.sender} - {""}
        yield line


def _is_days_before(line: _Line, other: _Line) -> bool:
    return (
        line.at is not None and other.at is not None and (other.at - line.at).total_seconds() > _DAY
    )


def _find_senders(lines: list[_Line]) -> set[str]:
    """Give the senders; a name has a colon where all its messages go on the same way after it.

    An event of the group with a colon in it has no sender, but what begins three times the same way
    is a name.
    """
    rests: dict[str, list[str]] = {}
    for line in lines:
        rests.setdefault(line.sender, []).append(line.said)
    rests.pop("", None)
    people = {
        sender for sender, said in rests.items() if len(said) > 2 or not words.is_event(sender)
    }
    for sender, said in rests.items():
        behind = {_split_at_colon(rest)[0] for rest in said}
        second = behind.pop() if len(behind) == 1 and len(said) > 2 else ""
        # A place, a poll and a file have a colon too: behind it stands a link or nothing, before it
        # a mark.
        written = all(re.match(r"[<\u200e]|[^:]*:(?: ?https?://|\s*$)", rest) for rest in said)
        if second and not written and second.count(" ") < 3 and len(second) < 25:
            people.add(f"{sender}: {second}")
    return people


def _split_at_colon(rest: str) -> tuple[str, str]:
    """Cut what stands before the first colon from what stands behind it; nothing stands before where there is none."""
    found = _SENDER.match(rest)
    return (
        (words.MARKS.sub("", found[1]).strip(" \xa0\u202f\u200f~"), rest[found.end() :])
        if found
        else ("", rest)
    )


def _split_sender(line: _Line, people: set[str]) -> tuple[str, str]:
    """Give sender and text; an event has no sender."""
    second, behind = _split_at_colon(line.said)
    if second and f"{line.sender}: {second}" in people:
        return f"{line.sender}: {second}", behind
    return (line.sender, line.said) if line.sender in people else ("", line.rest)


def _name_chat(file: Source, lines: list[_Line], people: set[str]) -> str:
    """Name the chat: by its file or archive, by who brings the notice of encryption, or by its folder."""
    for called in (file.path.stem, *(part.stem for part in list(file.path.parents)[:2])):
        if found := words.TITLE.match(called):
            behind, before = (
                found["name"].strip(" -_–"),
                words.WITH.sub("", found["before"].strip(" -_")),
            )
            if chat := behind or before * bool(found["chat"]):
                return chat
    for line in lines[:3]:
        sender, text = _split_sender(line, people)
        if sender and words.ENCRYPTED.search(text):
            return sender
    folder = file.path.parent.name.removesuffix(".zip")
    return folder if file.path.stem == "_chat" and folder else file.path.stem


def _read_whatsapp_message(
    source: Source, scope: str, line: _Line, people: set[str]
) -> Sequence[Message]:
    sender, first = _split_sender(line, people)
    body = "\n".join([first, *line.more]).rstrip()
    if not sender or (sender == scope and len(people) > 2 and words.EVENT.search(first)):
        return source.drop(
            "calls" if words.CALL.match(words.MARKS.sub("", body).strip()) else "system messages",
            scope,
        )
    text, kind, caption = words.read_body(body)
    if kind == "edited messages":
        source.keep(kind, scope, "kept as last edited")
    elif kind and (text or caption):
        source.keep(kind, scope, "described in captions")
    elif kind:
        return source.drop(kind, scope)
    when = line.at.isoformat() if line.at else None
    more = {"timestamp": when, "caption": caption, "role": messenger_role(source, sender)}
    return make_message(source, scope, sender, text, **more)
