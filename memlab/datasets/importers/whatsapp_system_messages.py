"""What WhatsApp writes into a chat in place of what people said, in the languages of its users.

The words are in ``whatsapp.toml``; :func:`load_system_patterns` reads them when they are
first needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from tomllib import loads
from typing import Literal, NamedTuple

import regex

DIGITS = {
    zero + digit: str(digit) for zero in (0x660, 0x6F0, 0x966, 0x9E6, 0xE50) for digit in range(10)
}
"""Arabic, Persian, Devanagari, Bengali and Thai digits to those of ASCII."""
_LONGEST = 400
"""Characters of what WhatsApp writes; a search over a long message would take minutes."""
_SHORTEST_NOTICE = 60
_BEGINNING = 3
"""Letters of a text that say whether it can be WhatsApp's."""
_MARKS = re.compile("[\u200e\u202a-\u202e\u2066-\u2069\ufeff]")
_GENERATED = re.compile("[ \u200f]*\u200e(?!@)")
_MARKED = re.compile(r"\u200e(<[^<>\n]{3,300}>|[^\n\u200e<>]{3,60})[\s\u200f]*$")
_AROUND_HALF = re.compile(r"[\s.,،'’\"״\u200b-\u200f]")
_QUOTE = re.compile('[“”"„«「]')
_PAIRED = re.compile(r"\"[^\"]*\"|“[^”]*”|”[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」|\([^)]*\)")
_NAMED_FILE = re.compile(r"(.+\.\w{2,5})(?: • .*)?")
_FILE_GROUPS = ("described", "inside", "before", "coded")
_BY_NAME = {
    "images": re.compile(r"(?i)^IMG-|-PHOTO-|\.(?:jpe?g|png|heic)$"),
    "videos": re.compile(r"(?i)^VID-|-VIDEO-|\.(?:mp4|mov|3gp)$"),
    "voice messages": re.compile(r"(?i)^(?:PTT|AUD)-|-AUDIO-|\.(?:opus|ogg|m4a|mp3|aac|amr)$"),
    "stickers": re.compile(r"(?i)^STK-|-STICKER-|\.webp$"),
    "animations": re.compile(r"(?i)-GIF-|\.gif$"),
    "contacts": re.compile(r"(?i)\.vcf$"),
}
"""Kinds of files by their names."""


class MessageBody(NamedTuple):
    """What stands behind a sender: what was typed, what else it is, and what describes that."""

    text: str
    left_out_kind: str
    caption: str


class SystemMessagePatterns:
    """The forms of what WhatsApp writes, around the words of ``whatsapp.toml``."""

    def __init__(self, words: dict[str, dict[str, list[str]]]) -> None:
        self.morning = re.compile(_join_as_regex_alternatives(words["half_of_day"]["am"]))
        self.afternoon = re.compile(_join_as_regex_alternatives(words["half_of_day"]["pm"]))
        title_forms = {
            name: _join_as_regex_alternatives(word_forms)
            for name, word_forms in words["title"].items()
        }
        self.title = re.compile(
            r"(?i)^(?P<before>.*?)(?:whatsapp|واتساب)[ _-]*"
            rf"(?P<chat>(?:{title_forms['chat']})(?=[ _:–-]|$))?"
            rf"[ _:–-]*(?:(?:{title_forms['before_name']})[ _])?"
            rf"(?P<name>.*?)(?:{title_forms['after_name']})?$"
        )
        self.after_first_name = re.compile(f" ?(?:{title_forms['after_first_name']})$")
        self.notice_about = words["notice"]["about"]
        self.encrypted = re.compile(
            f"(?i){_join_as_regex_alternatives(words['notice']['encrypted'])}"
        )
        self.waiting = re.compile(_alternatives_in_all_languages(words["waiting"]))
        self.forwarded = re.compile(_alternatives_in_all_languages(words["forwarded"]))
        self.event = re.compile(
            rf"(?i)\b(?:{_alternatives_in_all_languages(words['event'])})[ ”\"„«“»(.]|[“”\"„«].*"
            rf"|{_alternatives_in_all_languages(words['event_anywhere'])}"
        )
        self.call = re.compile(f"(?i){_alternatives_in_all_languages(words['call'])}")
        self.missed_call = re.compile(f"(?i){_alternatives_in_all_languages(words['missed_call'])}")
        self.deleted = re.compile(
            rf"(?i)(?:{_alternatives_in_all_languages(words['deleted'])})"
            rf"(?: (?:{_alternatives_in_all_languages(words['deleted_by'])})[^?]*)?[.。।۔]?"
        )
        edited_forms = {
            name: _join_as_regex_alternatives(word_forms)
            for name, word_forms in words["edited"].items()
        }
        # With the words, or in any language by the mark of iPhones.
        self.edited = re.compile(
            rf"(?i)(?:<(?=[^<>]*(?:{edited_forms['message']}))[^<>\n]{{0,30}}"
            rf"(?:{edited_forms['edited']})"
            r"[^<>\n]{0,30}>|\u200e<[^<>:\n]{6,60}>)[\s\u200e\u200f]*$"
        )
        self.kinds = {
            media_kind: re.compile(rf"(?<![a-zà-ž])(?:{_join_as_regex_alternatives(word_forms)})")
            for media_kind, word_forms in words["media"].items()
        }
        left_out_words = _join_as_regex_alternatives(words["placeholder"]["left_out"])
        self.left_out = re.compile(rf"(?<![a-zà-ž])(?:{left_out_words})")
        self.any_media = re.compile(_join_as_regex_alternatives(words["placeholder"]["any_media"]))
        self.placeholder = re.compile(_regex_of_media_placeholder_lines(words))
        lone_words = _join_as_regex_alternatives(words["placeholder"]["alone"])
        self.whole = regex.compile(
            f"(?i)(?:{_regex_of_omitted_media(words)}|{lone_words})"
            f"|{self.deleted.pattern}|{self.missed_call.pattern}"
        )


def _join_as_regex_alternatives(word_forms: Iterable[str]) -> str:
    return "|".join(word_forms)


def _alternatives_in_all_languages(forms_by_language: dict[str, list[str]]) -> str:
    return _join_as_regex_alternatives(chain.from_iterable(forms_by_language.values()))


def _regex_of_omitted_media(word_tables: dict[str, dict[str, list[str]]], *media_kinds: str) -> str:
    """Give the form of media that were left out: ``image omitted`` or ``omitted image``."""
    media = word_tables["media"]
    media_words = "|".join(
        _join_as_regex_alternatives(media[media_kind]) for media_kind in media_kinds or media
    )
    left_out_words = _join_as_regex_alternatives(word_tables["placeholder"]["left_out"])
    media_first = f"(?:{media_words}) ?(?:{left_out_words})"
    media_last = f"(?:{left_out_words}) ?(?:{media_words})"
    return f"(?:{media_first}|{media_last})[.。।]?"


def _regex_of_media_placeholder_lines(word_tables: dict[str, dict[str, list[str]]]) -> str:
    """Give the form of a line that stands for media, with the name of a file where it has one.

    ``document omitted``, ``a.pdf • 2 pages document omitted``, ``<attached: a.jpg>``, ``a.jpg (file
    attached)``, ``<Media omitted>``.
    """
    alone_words = _join_as_regex_alternatives(word_tables["placeholder"]["alone"])
    attached_words = _join_as_regex_alternatives(word_tables["placeholder"]["attached"])
    document_form = _regex_of_omitted_media(word_tables, "files")
    named_form = r"<[^<>:]{2,25}: [^<>]+\.\w{2,5}>"
    return (
        rf"(?i)(?:{alone_words}|{_regex_of_omitted_media(word_tables)}"
        rf"|(?P<described>\S.*?\.\w{{2,5}})(?: • [^•]*?)? (?:{document_form}|{named_form})"
        r"|(?:<[^<>:]{2,25}:\s?(?P<inside>[^<>]+\.\w{2,5})>"
        rf"|(?P<before>\S.*?\.\w{{2,5}}) \((?:{attached_words})\)"
        r"|(?P<coded>[a-z]{3}-\d{8}-WA\d+\.\w{2,5}) \([^()]{4,40}\)"
        r"|<(?!https?:)(?P<angle>[^<>:]{3,60})>)(?P<more> .*)?)"
    )


@cache
def load_system_patterns() -> SystemMessagePatterns:
    """Give the forms of what WhatsApp writes.

    >>> from memlab.datasets.importers.whatsapp_system_messages import load_system_patterns
    >>> load_system_patterns().deleted.fullmatch("Diese Nachricht wurde gelöscht.") is not None
    True
    """
    word_table = files("memlab.datasets.importers").joinpath("whatsapp.toml")
    return SystemMessagePatterns(loads(word_table.read_text(encoding="utf-8")))


@lru_cache(1024)
def find_half_of_day(words_beside_time: str) -> Literal["am", "pm", ""]:
    """Give the half of the day that stands beside a time: ``am``, ``pm`` or nothing.

    >>> from memlab.datasets.importers.whatsapp_system_messages import find_half_of_day
    >>> find_half_of_day(" p.\\xa0m."), find_half_of_day("上午"), find_half_of_day(" à ")
    ('pm', 'am', '')
    """
    lower_words = words_beside_time.lower()
    for period_word in (lower_words, *lower_words.split()):
        if period_word is not lower_words and len(period_word) < 4:
            continue
        half_word = _AROUND_HALF.sub("", period_word)
        if load_system_patterns().afternoon.fullmatch(half_word):
            return "pm"
        if load_system_patterns().morning.fullmatch(half_word):
            return "am"
    return ""


def is_event_not_sender(text_before_colon: str) -> bool:
    """Say whether what stands before a colon is an event: its words, or a quote that the
    colon stands in.
    """
    unquoted = _PAIRED.sub("", text_before_colon)
    if _QUOTE.search(unquoted):
        return True
    return (
        unquoted.count(" ") > 2 and load_system_patterns().event.search(f"{unquoted} ") is not None
    )


def strip_direction_marks(text: str) -> str:
    """Take the marks of direction out of a text, and the space around it."""
    if not text.isascii():
        text = _MARKS.sub("", text)
    return text.strip()


def read_message_body(raw_body: str) -> MessageBody:
    """Read what stands behind a sender: the text that was typed, the kind of anything else,
    and its caption.

    >>> from memlab.datasets.importers.whatsapp_system_messages import read_message_body
    >>> tuple(read_message_body("<Media omitted>"))
    ('', 'media', '')
    >>> tuple(read_message_body("Room 6 <This message was edited>"))
    ('Room 6', 'edited messages', '')
    """
    raw_body = raw_body.rstrip()
    if not _may_be_written_by_whatsapp(raw_body):
        return MessageBody(strip_direction_marks(raw_body), "", "")
    forwarded_mark = load_system_patterns().forwarded.match(raw_body)
    if forwarded_mark:
        raw_body = raw_body[forwarded_mark.end() :]
    edited_mark = None
    if ">" in raw_body[-4:]:
        edited_mark = load_system_patterns().edited.search(
            raw_body, max(0, len(raw_body) - _LONGEST)
        )
    if edited_mark:
        body_before_mark = raw_body[: edited_mark.start()]
        clean_text = strip_direction_marks(body_before_mark)
        if clean_text:
            return _read_media_body(body_before_mark) or MessageBody(
                clean_text, "edited messages", ""
            )
    media_found = _read_media_body(raw_body)
    if media_found is not None:
        return media_found
    clean_text = strip_direction_marks(raw_body)
    first_line, _, other_lines = clean_text.lstrip("\u200f ").partition("\n")
    if other_lines:
        return MessageBody(clean_text, "", "")
    line_kind = _kind_of_system_line_or_empty(
        first_line, has_iphone_mark=_GENERATED.match(raw_body) is not None
    )
    if line_kind:
        return MessageBody("", line_kind, "")
    return MessageBody(clean_text, "", "")


def _may_be_written_by_whatsapp(raw_body: str) -> bool:
    """Say whether WhatsApp may have written a message or a part of it.

    Of most it is plain that it did not.
    """
    for mark in ("<", "(", ".", "[", "\u200e", "\u200f"):
        if mark in raw_body:
            return True
    return _is_encryption_notice(raw_body) or _may_begin_system_line(
        strip_direction_marks(raw_body)[:_BEGINNING]
    )


@lru_cache(1 << 14)
def _may_begin_system_line(beginning: str) -> bool:
    """Say whether a line of WhatsApp's can begin so."""
    return load_system_patterns().whole.fullmatch(beginning, partial=True) is not None


def _kind_of_system_line_or_empty(line: str, *, has_iphone_mark: bool) -> str:
    """Give the kind of a line that WhatsApp wrote; empty for one that somebody typed.

    :param has_iphone_mark: whether a mark of iPhones stands before it.
    """
    if load_system_patterns().deleted.fullmatch(line):
        return "deleted messages"
    if load_system_patterns().missed_call.fullmatch(line):
        return "calls"
    if has_iphone_mark and load_system_patterns().call.match(line):
        return "calls"
    if _is_encryption_notice(line) or load_system_patterns().waiting.match(line):
        return "system messages"
    if has_iphone_mark and "://" not in line:
        return "system messages"
    return ""


def _is_encryption_notice(line: str) -> bool:
    """Say whether a line is the notice that a chat is encrypted."""
    if len(line) <= _SHORTEST_NOTICE:
        return False
    lower_line = line.lower()
    if not any(notice_word in lower_line for notice_word in load_system_patterns().notice_about):
        return False
    return load_system_patterns().encrypted.search(line) is not None


def _read_media_body(raw_body: str) -> MessageBody | None:
    """Read a message that begins or ends with what stands for media; ``None`` for any other."""
    first_line, _, other_lines = strip_direction_marks(raw_body).lstrip("\u200f ").partition("\n")
    placeholder = None
    if len(first_line) < _LONGEST:
        placeholder = load_system_patterns().placeholder.fullmatch(first_line.strip())
    media_kind = _media_kind_of_placeholder_or_empty(placeholder)
    if placeholder and media_kind:
        text_behind = placeholder.groupdict("")["more"]
        return _media_body_with_caption(
            f"{text_behind}\n{other_lines}".strip(),
            media_kind,
            _file_name_in_placeholder_or_empty(placeholder),
        )
    marked_line = _MARKED.search(raw_body, max(0, len(raw_body) - _LONGEST))
    media_kind = _media_kind_of_marked_line_or_empty(marked_line)
    if not marked_line or not media_kind:
        return None
    text_before = strip_direction_marks(raw_body[: marked_line.start()])
    named_file = _NAMED_FILE.fullmatch(text_before)
    if named_file and media_kind in ("files", "contacts"):
        return _media_body_with_caption("", media_kind, named_file[1])
    return _media_body_with_caption(text_before, media_kind, "")


def _media_body_with_caption(text: str, media_kind: str, file_name: str) -> MessageBody:
    """Give the text beside media, their kind, and the caption: the kind beside a text, the
    file of a document.
    """
    caption = ""
    if text:
        caption = media_kind.removesuffix("s")
    if file_name and media_kind in ("files", "contacts"):
        caption = f"{media_kind.removesuffix('s')}: {file_name}"
    return MessageBody(text, media_kind, caption)


def _file_name_in_placeholder_or_empty(placeholder: re.Match[str]) -> str:
    for group_text in placeholder.group(*_FILE_GROUPS):
        if group_text:
            return group_text
    return ""


def _media_kind_of_placeholder_or_empty(placeholder: re.Match[str] | None) -> str:
    """Give the kind of what a placeholder stands for, in the plural.

    Empty if it is talk in angle brackets.
    """
    if placeholder is None:
        return ""
    file_name = _file_name_in_placeholder_or_empty(placeholder)
    if file_name:
        for file_kind, name_form in _BY_NAME.items():
            if name_form.search(file_name):
                return file_kind
        return "files"
    placeholder_text = (placeholder["angle"] or placeholder[0]).lower()
    if placeholder["angle"] and not load_system_patterns().left_out.search(placeholder_text):
        stands_alone = not placeholder["more"] and load_system_patterns().any_media.search(
            placeholder_text
        )
        if not stands_alone or (placeholder_text.isascii() and " " not in placeholder_text):
            return ""
    return _media_kind_named_in_or_empty(placeholder_text) or "media"


def _media_kind_of_marked_line_or_empty(marked_line: re.Match[str] | None) -> str:
    """Give the kind of what follows a mark of iPhones."""
    if marked_line is None:
        return ""
    line_text = strip_direction_marks(marked_line[1])
    placeholder = load_system_patterns().placeholder.fullmatch(line_text)
    if placeholder:
        return _media_kind_of_placeholder_or_empty(placeholder) or "media"
    lower_line = line_text.lower()
    if load_system_patterns().left_out.search(lower_line):
        return _media_kind_named_in_or_empty(lower_line)
    return ""


def _media_kind_named_in_or_empty(lowercase_line: str) -> str:
    for media_kind, media_form in load_system_patterns().kinds.items():
        if media_form.search(lowercase_line):
            return media_kind
    return ""
