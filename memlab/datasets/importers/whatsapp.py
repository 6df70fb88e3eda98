"""WhatsApp's text export, of Android and of iPhones, in any locale.

Its lines are read by :mod:`memlab.datasets.importers.whatsapp_lines`, and dated by
:mod:`memlab.datasets.importers.whatsapp_dates`. What WhatsApp itself writes (deleted, edited, left
out, calls, events of a group) is recognised by marks around it on iPhones, and by its words
(:mod:`memlab.datasets.importers.whatsapp_system_messages`).
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from memlab.datasets.importers import whatsapp_system_messages as words
from memlab.datasets.importers.export_messages import (
    ChatNames,
    Message,
    find_or_add_chat_name,
    make_message_or_count_drop,
)
from memlab.datasets.importers.loose_json import UNREADABLE
from memlab.datasets.importers.whatsapp_dates import DAY, assign_line_times_and_note_doubts
from memlab.datasets.importers.whatsapp_lines import (
    HEADER,
    HeadedLine,
    join_continuation_lines,
    parse_headers_of_lines,
    split_at_first_colon,
)
from memlab.datasets.record_sources import Source
from memlab.datasets.sender_roles import messenger_role_and_count_guess

_COPY = re.compile(r" ?\(\d{1,2}\)$|(?<=\S) [2-9]$")
"""What browsers and phones append to the name of a file that is there already."""
LEVEL = r"\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b\]?"
"""Of the lines in the log of a program, where a chat has its senders."""
_LOGGED = re.compile(rf"(?:.* - )?{LEVEL}(?: - .*)?")
_CALLED_WHATSAPP = re.compile("(?i)whatsapp|_chat")
_NO_NAME = re.compile(r"[<\u200e]|[^:]*:(?: ?https?://|\s*$)")
"""Behind the colon of a place, a poll or a file stands a link or nothing, before it a mark."""
_AHEAD = 20
"""How many lines are looked at behind one that may be pasted."""
_time_and_text_of = attrgetter("time_and_text")
TimeAndText = tuple[datetime | None, str]


class _ChatLines(NamedTuple):
    """The lines of a chat that begin messages, and whether a text can hold all its characters."""

    lines: list[HeadedLine]
    has_only_valid_characters: bool


class _KnownChat(NamedTuple):
    """The scope of a chat, and how often each message stands in it so far."""

    scope: str
    message_counts: Counter[TimeAndText]


@dataclass
class _WhatsappPeople:
    """Who writes in a chat.

    :param names: of the senders; ``second_names``: what stands behind a first colon that is in a
        name.
    :param users: those who are known to be no assistants.
    """

    names: set[str]
    second_names: dict[str, str]
    users: set[str] = field(default_factory=set)

    def split_sender_or_empty_and_text(self, line: HeadedLine) -> tuple[str, str]:
        """Give the sender and the first line of the text; an event has no sender."""
        second_name = self.second_names.get(line.sender)
        if second_name:
            next_name, text_behind = split_at_first_colon(line.text_after_sender)
            if next_name == second_name:
                return f"{line.sender}: {second_name}", text_behind
        if line.sender in self.names:
            return line.sender, line.text_after_sender
        return "", line.text_after_header

    def find_role_and_count_guess(self, source: Source, sender: str) -> str:
        """Give the role of a sender; every message of an assistant is counted as one."""
        if sender in self.users:
            return "user"
        role = messenger_role_and_count_guess(source, sender)
        if role == "user":
            self.users.add(sender)
        return role


def is_whatsapp_export(file: Source) -> bool:
    if file.head.lstrip()[:1] == "{":
        return False
    lines = list[HeadedLine | str]()
    for line in parse_headers_of_lines(file.head):
        if isinstance(line, HeadedLine) or line.strip():
            lines.append(line)
    header_lines = [line for line in lines if isinstance(line, HeadedLine)]
    if not header_lines:
        return False
    is_early = len(header_lines) > 1 and lines.index(header_lines[0]) < 5
    if not is_early and len(header_lines) * 20 < len(lines):
        return False
    if _CALLED_WHATSAPP.search(file.name):
        return True
    return 3 * sum(map(_is_chat_line, header_lines)) > len(header_lines)


def _is_chat_line(line: HeadedLine) -> bool:
    """Say whether a line is of a chat, and not of the log of a program."""
    if _LOGGED.fullmatch(line.sender):
        return False
    if _LOGGED.fullmatch(line.words_beside):
        return False
    if line.sender[:1] not in ("", "<"):
        return True
    return words.load_system_patterns().event.search(line.text_after_header) is not None


def read_whatsapp_export(source: Source) -> Iterator[Message]:
    """Read every chat as a scope of its own.

    A file that holds messages of another of its name goes on that one.
    """
    chats = _KnownChats()
    for file in source.members:
        header_lines, has_only_valid_characters = _read_chat_lines(file)
        assign_line_times_and_note_doubts(file, header_lines)
        lines = deque(_merge_pasted_lines(header_lines))
        n_pasted = len(header_lines) - len(lines)
        del header_lines
        people = _find_people(lines)
        scope, known_messages = chats.find_or_add_chat(file, lines, people)
        source.keep("pasted lines", scope, "kept in the messages around them", n_pasted)
        if known_messages:
            lines = deque(_drop_and_count_known_lines(source, scope, lines, known_messages))
        if len(source.members) > 1:
            known_messages.update(map(_time_and_text_of, lines))
        if UNREADABLE.search(scope):
            has_only_valid_characters = False
        while lines:  # each is let go of when it is read: a chat may have a million
            yield from _read_message_or_count_drop(
                source,
                scope,
                lines.popleft(),
                people,
                has_only_valid_characters=has_only_valid_characters,
            )


@dataclass
class _KnownChats:
    """The chats of an export so far.

    :param messages: those of each scope, by the name of its chat.
    """

    names: ChatNames = field(default_factory=ChatNames)
    messages: dict[str, dict[str, Counter[TimeAndText]]] = field(default_factory=dict)

    def find_or_add_chat(
        self, file: Source, lines: Iterable[HeadedLine], people: _WhatsappPeople
    ) -> _KnownChat:
        """Give the scope of a file, and the messages that are there of it: to be added to."""
        chat_name = _choose_chat_name(file, lines, people)
        original_name = _COPY.sub("", chat_name)
        if original_name in people.names and chat_name not in people.names:
            chat_name = original_name
        chats_of_name = self.messages.setdefault(original_name, {})
        scope = _find_scope_of_same_messages_or_empty(chats_of_name, lines, people)
        if not scope:
            scope = find_or_add_chat_name(self.names, file.stem, chat_name)
        return _KnownChat(scope, chats_of_name.setdefault(scope, Counter()))


def _read_chat_lines(file: Source) -> _ChatLines:
    """Read the lines that begin messages, and say whether a text can hold all characters of
    the file.
    """
    text = file.text()
    lines = join_continuation_lines(list(parse_headers_of_lines(text)))
    if not lines:
        file.fail("holds no line that begins with a date and a time; is it a chat of WhatsApp?")
    return _ChatLines(lines, UNREADABLE.search(text) is None)


def _find_scope_of_same_messages_or_empty(
    line_counts_by_scope: dict[str, Counter[TimeAndText]],
    lines: Iterable[HeadedLine],
    people: _WhatsappPeople,
) -> str:
    """Find the chat of the same name that holds some of the messages; empty where none does."""
    if not line_counts_by_scope:
        return ""
    message_keys = {line.time_and_text for line in lines if line.sender in people.names}
    for scope, known_keys in line_counts_by_scope.items():
        if not message_keys.isdisjoint(known_keys):
            return scope
    return ""


def _drop_and_count_known_lines(
    source: Source,
    scope: str,
    lines: Iterable[HeadedLine],
    known_line_counts: Counter[TimeAndText],
) -> Iterator[HeadedLine]:
    """Give the lines that are not there yet."""
    repeated_keys = Counter(map(_time_and_text_of, lines)) & known_line_counts
    for line in lines:
        if repeated_keys[line.time_and_text]:
            repeated_keys[line.time_and_text] -= 1
            source.drop("repeated messages", scope)
        else:
            yield line


class _LineOrder(Enum):
    """How a line that looks like a header stands among those around it."""

    IN_ORDER = auto()
    PASTED = auto()
    SENT_LATE = auto()


class _PastedLineFinder:
    """Finds pasted lines: alone, they are days off those around them.

    ``previous`` is the last line in order, ``is_within`` says whether the last one was pasted.
    """

    def __init__(self, lines: list[HeadedLine]) -> None:
        self.lines = lines
        self.previous: HeadedLine | None = None
        self.senders: set[str] = set()
        self.is_within = False

    @cached_property
    def line_counts(self) -> Counter[TimeAndText]:
        """How often each line stands in the chat."""
        return Counter((line.time, line.text_after_header) for line in self.lines)

    def append_to_previous_if_pasted(self, line_index: int) -> bool:
        """Put a line to the message before it, where it is pasted in it."""
        line = self.lines[line_index]
        standing = self._classify_line_order(line_index)
        self.is_within = standing is _LineOrder.PASTED
        if self.previous is not None and self.is_within:
            self.previous.append_further_lines(line.list_raw_lines())
            return True
        if standing is not _LineOrder.SENT_LATE:
            self.previous = line
        if line.sender:
            self.senders.add(line.sender)
        return False

    def _classify_line_order(self, line_index: int) -> _LineOrder:
        line = self.lines[line_index]
        if self.previous is None:
            return _LineOrder.IN_ORDER
        if line.time is None:
            return _LineOrder.PASTED
        next_lines = self.lines[line_index + 1 : line_index + 1 + _AHEAD]
        if _is_over_a_day_before(line, self.previous):
            return self._classify_earlier_line(line, self.previous, next_lines)
        if _is_over_a_day_before(self.previous, line) and _is_alone_days_ahead(line, next_lines):
            return _LineOrder.PASTED
        return _LineOrder.IN_ORDER

    def _classify_earlier_line(
        self, line: HeadedLine, previous_line: HeadedLine, next_lines: list[HeadedLine]
    ) -> _LineOrder:
        """Find how a line stands that is days before the one above it."""
        if all(_is_over_a_day_before(line_ahead, previous_line) for line_ahead in next_lines):
            return _LineOrder.IN_ORDER
        if self.is_within or HEADER.match(previous_line.text_after_sender):
            return _LineOrder.PASTED
        if _is_over_a_day_before(line, self.lines[0]):
            return _LineOrder.PASTED
        if _were_sent_late_by_members(
            [line, *next_lines], previous_line, self.senders, self.line_counts
        ):
            return _LineOrder.SENT_LATE
        return _LineOrder.PASTED


def _merge_pasted_lines(lines: list[HeadedLine]) -> Iterator[HeadedLine]:
    """Put back into its message a pasted line that looks like a header."""
    pasted_lines = _PastedLineFinder(lines)
    for number, line in enumerate(lines):
        if not pasted_lines.append_to_previous_if_pasted(number):
            yield line


def _is_over_a_day_before(line: HeadedLine, later_line: HeadedLine) -> bool:
    if line.time is None or later_line.time is None:
        return False
    return later_line.time - line.time > DAY


def _were_sent_late_by_members(
    lines: list[HeadedLine],
    last_line: HeadedLine,
    known_senders: set[str],
    line_counts: Counter[TimeAndText],
) -> bool:
    """Say whether people of the chat wrote lines when they had no network.

    What they paste stands there twice.

    :param lines: those that may have been, of which the run that is days before the last counts.
    """
    for line in lines:
        if not _is_over_a_day_before(line, last_line):
            break
        if line.sender not in known_senders:
            return False
        if line_counts[line.time, line.text_after_header] > 1:
            return False
    return True


def _is_alone_days_ahead(line: HeadedLine, next_lines: list[HeadedLine]) -> bool:
    """Say whether a line is days ahead of most that follow, none of them by its sender."""
    earlier_senders = [
        next_line.sender for next_line in next_lines if _is_over_a_day_before(next_line, line)
    ]
    return 2 * len(earlier_senders) > len(next_lines) and line.sender not in earlier_senders


def _find_people(lines: Iterable[HeadedLine]) -> _WhatsappPeople:
    """Find the senders; a name has a colon where all its messages go on the same way after it.

    An event of the group with a colon in it has no sender, but what begins three times the same way
    is a name.
    """
    lines_by_sender = dict[str, list[HeadedLine]]()
    for line in lines:
        if line.sender:
            lines_by_sender.setdefault(line.sender, []).append(line)
    people = _WhatsappPeople(set(), {})
    for sender, sender_lines in lines_by_sender.items():
        if len(sender_lines) > 2 or not words.is_event_not_sender(sender):
            people.names.add(sender)
        second_name = _name_after_first_colon_or_empty(sender_lines)
        if second_name:
            people.names.add(f"{sender}: {second_name}")
            people.second_names[sender] = second_name
    return people


def _name_after_first_colon_or_empty(lines_of_sender: list[HeadedLine]) -> str:
    """Give what follows the first colon of a sender whose name has one; empty for any other."""
    second_name, _ = split_at_first_colon(lines_of_sender[0].text_after_sender)
    if len(lines_of_sender) < 3 or second_name.count(" ") > 2 or len(second_name) >= 25:
        return ""
    is_name = False
    for line in lines_of_sender:
        next_name, _ = split_at_first_colon(line.text_after_sender)
        if next_name != second_name:
            return ""
        if not _NO_NAME.match(line.text_after_sender):
            is_name = True
    if is_name:
        return second_name
    return ""


def _choose_chat_name(file: Source, lines: Iterable[HeadedLine], people: _WhatsappPeople) -> str:
    """Name the chat: by its file or archive, by who brings the notice of encryption, or by
    its folder.
    """
    file_stem = file.path.stem
    for file_path in (file.path, *file.path.parents[:2]):
        title = _chat_name_in_file_name_or_empty(file_path.stem)
        if title:
            return title
    for line in islice(lines, 3):
        sender, text = people.split_sender_or_empty_and_text(line)
        if sender and words.load_system_patterns().encrypted.search(text):
            return sender
    folder_name = file.path.parent.name.removesuffix(".zip")
    if folder_name and file_stem == "_chat":
        return folder_name
    return file_stem


def _chat_name_in_file_name_or_empty(file_stem: str) -> str:
    """Give the name of the chat in that of a file; empty where it holds none."""
    title_match = words.load_system_patterns().title.match(file_stem)
    if title_match is None:
        return ""
    name_behind = title_match["name"].strip(" -_–")
    if name_behind or not title_match["chat"]:
        return name_behind
    return words.load_system_patterns().after_first_name.sub("", title_match["before"].strip(" -_"))


def _read_message_or_count_drop(
    source: Source,
    scope: str,
    line: HeadedLine,
    people: _WhatsappPeople,
    *,
    has_only_valid_characters: bool,
) -> Iterable[Message]:
    """Read a message.

    :param has_only_valid_characters: whether the file holds no character that a text cannot hold.
    """
    sender, first_line = people.split_sender_or_empty_and_text(line)
    message_body = line.join_with_further_lines(first_line)
    if (
        sender == scope
        and len(people.names) > 2
        and words.load_system_patterns().event.search(first_line)
    ):
        sender = ""  # the group tells it
    if not sender:
        if words.load_system_patterns().call.match(words.strip_direction_marks(message_body)):
            return source.drop("calls", scope)
        return source.drop("system messages", scope)
    text, left_out_kind, caption = words.read_message_body(message_body)
    if left_out_kind == "edited messages":
        source.keep(left_out_kind, scope, "kept as last edited")
    elif left_out_kind and not text and not caption:
        return source.drop(left_out_kind, scope)
    elif left_out_kind:
        source.keep(left_out_kind, scope, "described in captions")
    message = {"role": people.find_role_and_count_guess(source, sender)}
    if line.time is not None:
        message["timestamp"] = line.time.isoformat()
    if caption:
        message["caption"] = caption
    if text and has_only_valid_characters and message["role"] == "user":
        # As make_message_or_count_drop gives it, which has nothing to look for here.
        return [{"scope": scope, "sender": sender, "text": text, **message}]
    return make_message_or_count_drop(source, scope, sender, text, **message)
