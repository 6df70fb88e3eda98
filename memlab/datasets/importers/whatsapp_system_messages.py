"""What WhatsApp writes into a chat in place of what people said, in the languages of its users.

The words are in ``whatsapp.toml``; :func:`patterns` reads them when they are first needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from tomllib import loads

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


class Patterns:
    """The forms of what WhatsApp writes, around the words of ``whatsapp.toml``."""

    def __init__(self, words: dict[str, dict[str, list[str]]]) -> None:
        self.morning = re.compile(_any_of(words["half_of_day"]["am"]))
        self.afternoon = re.compile(_any_of(words["half_of_day"]["pm"]))
        title_forms = {name: _any_of(word_forms) for name, word_forms in words["title"].items()}
        self.title = re.compile(
            r"(?i)^(?P<before>.*?)(?:whatsapp|واتساب)[ _-]*"
            rf"(?P<chat>(?:{title_forms['chat']})(?=[ _:–-]|$))?"
            rf"[ _:–-]*(?:(?:{title_forms['before_name']})[ _])?"
            rf"(?P<name>.*?)(?:{title_forms['after_name']})?$"
        )
        self.after_first_name = re.compile(f" ?(?:{title_forms['after_first_name']})$")
        self.notice_about = words["notice"]["about"]
        self.encrypted = re.compile(f"(?i){_any_of(words['notice']['encrypted'])}")
        self.waiting = re.compile(_in_all_languages(words["waiting"]))
        self.forwarded = re.compile(_in_all_languages(words["forwarded"]))
        self.event = re.compile(
            rf"(?i)\b(?:{_in_all_languages(words['event'])})[ ”\"„«“»(.]|[“”\"„«].*"
            rf"|{_in_all_languages(words['event_anywhere'])}"
        )
        self.call = re.compile(f"(?i){_in_all_languages(words['call'])}")
        self.missed_call = re.compile(f"(?i){_in_all_languages(words['missed_call'])}")
        self.deleted = re.compile(
            rf"(?i)(?:{_in_all_languages(words['deleted'])})"
            rf"(?: (?:{_in_all_languages(words['deleted_by'])})[^?]*)?[.。।۔]?"
        )
        edited_forms = {name: _any_of(word_forms) for name, word_forms in words["edited"].items()}
        # With the words, or in any language by the mark of iPhones.
        self.edited = re.compile(
            rf"(?i)(?:<(?=[^<>]*(?:{edited_forms['message']}))[^<>\n]{{0,30}}"
            rf"(?:{edited_forms['edited']})"
            r"[^<>\n]{0,30}>|\u200e<[^<>:\n]{6,60}>)[\s\u200e\u200f]*$"
        )
        self.kinds = {
            media_kind: re.compile(rf"(?<![a-zà-ž])(?:{_any_of(word_forms)})")
            for media_kind, word_forms in words["media"].items()
        }
        left_out_words = _any_of(words["placeholder"]["left_out"])
        self.left_out = re.compile(rf"(?<![a-zà-ž])(?:{left_out_words})")
        self.any_media = re.compile(_any_of(words["placeholder"]["any_media"]))
        self.placeholder = re.compile(_form_of_placeholders(words))
        self.whole = regex.compile(
            f"(?i)(?:{_form_of_left_out(words)}|{_any_of(words['placeholder']['alone'])})"
            f"|{self.deleted.pattern}|{self.missed_call.pattern}"
        )


def _any_of(forms: Iterable[str]) -> str:
    return "|".join(forms)


def _in_all_languages(table: dict[str, list[str]]) -> str:
    return _any_of(chain.from_iterable(table.values()))


def _form_of_left_out(words: dict[str, dict[str, list[str]]], *kinds: str) -> str:
    """Give the form of media that were left out: ``image omitted`` or ``omitted image``."""
    media = words["media"]
    media_words = "|".join(_any_of(media[media_kind]) for media_kind in kinds or media)
    left_out_words = _any_of(words["placeholder"]["left_out"])
    media_first = f"(?:{media_words}) ?(?:{left_out_words})"
    media_last = f"(?:{left_out_words}) ?(?:{media_words})"
    return f"(?:{media_first}|{media_last})[.。।]?"


def _form_of_placeholders(words: dict[str, dict[str, list[str]]]) -> str:
    """Give the form of a line that stands for media, with the name of a file where it has one.

    ``document omitted``, ``a.pdf • 2 pages document omitted``, ``<attached: a.jpg>``, ``a.jpg (file
    attached)``, ``<Media omitted>``.
    """
    alone_words = _any_of(words["placeholder"]["alone"])
    attached_words = _any_of(words["placeholder"]["attached"])
    document_form = _form_of_left_out(words, "files")
    named_form = r"<[^<>:]{2,25}: [^<>]+\.\w{2,5}>"
    return (
        rf"(?i)(?:{alone_words}|{_form_of_left_out(words)}"
        rf"|(?P<described>\S.*?\.\w{{2,5}})(?: • [^•]*?)? (?:{document_form}|{named_form})"
        r"|(?:<[^<>:]{2,25}:\s?(?P<inside>[^<>]+\.\w{2,5})>"
        rf"|(?P<before>\S.*?\.\w{{2,5}}) \((?:{attached_words})\)"
        r"|(?P<coded>[a-z]{3}-\d{8}-WA\d+\.\w{2,5}) \([^()]{4,40}\)"
        r"|<(?!https?:)(?P<angle>[^<>:]{3,60})>)(?P<more> .*)?)"
    )


@cache
def patterns() -> Patterns:
    """Give the forms of what WhatsApp writes.

    >>> from memlab.datasets.importers.whatsapp_system_messages import patterns
    >>> patterns().deleted.fullmatch("Diese Nachricht wurde gelöscht.") is not None
    True
    """
    word_table = files("memlab.datasets.importers").joinpath("whatsapp.toml")
    return Patterns(loads(word_table.read_text(encoding="utf-8")))


@lru_cache(1024)
def day_period(words: str) -> str:
    """Give the half of the day that stands beside a time: ``am``, ``pm`` or nothing.

    >>> from memlab.datasets.importers.whatsapp_system_messages import day_period
    >>> day_period(" p.\\xa0m."), day_period("上午"), day_period(" à ")
    ('pm', 'am', '')
    """
    lower_words = words.lower()
    for period_word in (lower_words, *lower_words.split()):
        if period_word is not lower_words and len(period_word) < 4:
            continue
        half_word = _AROUND_HALF.sub("", period_word)
        if patterns().afternoon.fullmatch(half_word):
            return "pm"
        if patterns().morning.fullmatch(half_word):
            return "am"
    return ""


def is_event(sender: str) -> bool:
    """Say whether what stands before a colon is an event: its words, or a quote that the
    colon stands in.
    """
    unquoted = _PAIRED.sub("", sender)
    if _QUOTE.search(unquoted):
        return True
    return unquoted.count(" ") > 2 and patterns().event.search(f"{unquoted} ") is not None


def clean(text: str) -> str:
    """Take the marks of direction out of a text, and the space around it."""
    if not text.isascii():
        text = _MARKS.sub("", text)
    return text.strip()


def read_body(body: str) -> tuple[str, str, str]:
    """Read what stands behind a sender: the text that was typed, the kind of anything else,
    and its caption.

    >>> from memlab.datasets.importers.whatsapp_system_messages import read_body
    >>> read_body("<Media omitted>"), read_body("Room 6 <This message was edited>")
    (('', 'media', ''), ('Room 6', 'edited messages', ''))
    """
    body = body.rstrip()
    if not _may_be_written(body):
        return clean(body), "", ""
    forwarded_mark = patterns().forwarded.match(body)
    if forwarded_mark:
        body = body[forwarded_mark.end() :]
    edited_mark = None
    if ">" in body[-4:]:
        edited_mark = patterns().edited.search(body, max(0, len(body) - _LONGEST))
    if edited_mark:
        body_before_mark = body[: edited_mark.start()]
        clean_text = clean(body_before_mark)
        if clean_text:
            return _read_media(body_before_mark) or (clean_text, "edited messages", "")
    media_found = _read_media(body)
    if media_found is not None:
        return media_found
    clean_text = clean(body)
    first_line, _, other_lines = clean_text.lstrip("\u200f ").partition("\n")
    if other_lines:
        return clean_text, "", ""
    line_kind = _kind_of_line(first_line, generated=_GENERATED.match(body) is not None)
    if line_kind:
        return "", line_kind, ""
    return clean_text, "", ""


def _may_be_written(body: str) -> bool:
    """Say whether WhatsApp may have written a message or a part of it.

    Of most it is plain that it did not.
    """
    for mark in ("<", "(", ".", "[", "\u200e", "\u200f"):
        if mark in body:
            return True
    return _is_notice(body) or _may_begin(clean(body)[:_BEGINNING])


@lru_cache(1 << 14)
def _may_begin(beginning: str) -> bool:
    """Say whether a line of WhatsApp's can begin so."""
    return patterns().whole.fullmatch(beginning, partial=True) is not None


def _kind_of_line(line: str, *, generated: bool) -> str:
    """Give the kind of a line that WhatsApp wrote; empty for one that somebody typed.

    :param generated: whether a mark of iPhones stands before it.
    """
    if patterns().deleted.fullmatch(line):
        return "deleted messages"
    if patterns().missed_call.fullmatch(line):
        return "calls"
    if generated and patterns().call.match(line):
        return "calls"
    if _is_notice(line) or patterns().waiting.match(line):
        return "system messages"
    if generated and "://" not in line:
        return "system messages"
    return ""


def _is_notice(line: str) -> bool:
    """Say whether a line is the notice that a chat is encrypted."""
    if len(line) <= _SHORTEST_NOTICE:
        return False
    lower_line = line.lower()
    if not any(notice_word in lower_line for notice_word in patterns().notice_about):
        return False
    return patterns().encrypted.search(line) is not None


def _read_media(body: str) -> tuple[str, str, str] | None:
    """Read a message that begins or ends with what stands for media; ``None`` for any other."""
    first_line, _, other_lines = clean(body).lstrip("\u200f ").partition("\n")
    placeholder = None
    if len(first_line) < _LONGEST:
        placeholder = patterns().placeholder.fullmatch(first_line.strip())
    media_kind = _media_kind(placeholder)
    if placeholder and media_kind:
        text_behind = placeholder.groupdict("")["more"]
        return _describe_media(
            f"{text_behind}\n{other_lines}".strip(), media_kind, _file_name(placeholder)
        )
    marked_line = _MARKED.search(body, max(0, len(body) - _LONGEST))
    media_kind = _marked_kind(marked_line)
    if not marked_line or not media_kind:
        return None
    text_before = clean(body[: marked_line.start()])
    named_file = _NAMED_FILE.fullmatch(text_before)
    if named_file and media_kind in ("files", "contacts"):
        return _describe_media("", media_kind, named_file[1])
    return _describe_media(text_before, media_kind, "")


def _describe_media(text: str, kind: str, file: str) -> tuple[str, str, str]:
    """Give the text beside media, their kind, and the caption: the kind beside a text, the
    file of a document.
    """
    caption = ""
    if text:
        caption = kind.removesuffix("s")
    if file and kind in ("files", "contacts"):
        caption = f"{kind.removesuffix('s')}: {file}"
    return text, kind, caption


def _file_name(placeholder: re.Match[str]) -> str:
    for group_text in placeholder.group(*_FILE_GROUPS):
        if group_text:
            return group_text
    return ""


def _media_kind(placeholder: re.Match[str] | None) -> str:
    """Give the kind of what a placeholder stands for, in the plural.

    Empty if it is talk in angle brackets.
    """
    if placeholder is None:
        return ""
    file_name = _file_name(placeholder)
    if file_name:
        for file_kind, name_form in _BY_NAME.items():
            if name_form.search(file_name):
                return file_kind
        return "files"
    placeholder_text = (placeholder["angle"] or placeholder[0]).lower()
    if placeholder["angle"] and not patterns().left_out.search(placeholder_text):
        stands_alone = not placeholder["more"] and patterns().any_media.search(placeholder_text)
        if not stands_alone or (placeholder_text.isascii() and " " not in placeholder_text):
            return ""
    return _named_kind(placeholder_text) or "media"


def _marked_kind(marked_line: re.Match[str] | None) -> str:
    """Give the kind of what follows a mark of iPhones."""
    if marked_line is None:
        return ""
    line_text = clean(marked_line[1])
    placeholder = patterns().placeholder.fullmatch(line_text)
    if placeholder:
        return _media_kind(placeholder) or "media"
    lower_line = line_text.lower()
    if patterns().left_out.search(lower_line):
        return _named_kind(lower_line)
    return ""


def _named_kind(line: str) -> str:
    for media_kind, media_form in patterns().kinds.items():
        if media_form.search(line):
            return media_kind
    return ""
