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
        title = {name: _any_of(forms) for name, forms in words["title"].items()}
        self.title = re.compile(
            r"(?i)^(?P<before>.*?)(?:whatsapp|واتساب)[ _-]*"
            rf"(?P<chat>(?:{title['chat']})(?=[ _:–-]|$))?"
            rf"[ _:–-]*(?:(?:{title['before_name']})[ _])?(?P<name>.*?)(?:{title['after_name']})?$"
        )
        self.after_first_name = re.compile(f" ?(?:{title['after_first_name']})$")
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
        edited = {name: _any_of(forms) for name, forms in words["edited"].items()}
        # With the words, or in any language by the mark of iPhones.
        self.edited = re.compile(
            rf"(?i)(?:<(?=[^<>]*(?:{edited['message']}))[^<>\n]{{0,30}}(?:{edited['edited']})"
            r"[^<>\n]{0,30}>|\u200e<[^<>:\n]{6,60}>)[\s\u200e\u200f]*$"
        )
        self.kinds = {
            kind: re.compile(rf"(?<![a-zà-ž])(?:{_any_of(forms)})")
            for kind, forms in words["media"].items()
        }
        left_out = _any_of(words["placeholder"]["left_out"])
        self.left_out = re.compile(rf"(?<![a-zà-ž])(?:{left_out})")
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
    named = "|".join(_any_of(media[kind]) for kind in kinds or media)
    left_out = _any_of(words["placeholder"]["left_out"])
    return f"(?:(?:{named}) ?(?:{left_out})|(?:{left_out}) ?(?:{named}))[.。।]?"


def _form_of_placeholders(words: dict[str, dict[str, list[str]]]) -> str:
    """Give the form of a line that stands for media, with the name of a file where it has one.

    ``document omitted``, ``a.pdf • 2 pages document omitted``, ``<attached: a.jpg>``, ``a.jpg (file
    attached)``, ``<Media omitted>``.
    """
    alone = _any_of(words["placeholder"]["alone"])
    attached = _any_of(words["placeholder"]["attached"])
    document = _form_of_left_out(words, "files")
    named = r"<[^<>:]{2,25}: [^<>]+\.\w{2,5}>"
    return (
        rf"(?i)(?:{alone}|{_form_of_left_out(words)}"
        rf"|(?P<described>\S.*?\.\w{{2,5}})(?: • [^•]*?)? (?:{document}|{named})"
        r"|(?:<[^<>:]{2,25}:\s?(?P<inside>[^<>]+\.\w{2,5})>"
        rf"|(?P<before>\S.*?\.\w{{2,5}}) \((?:{attached})\)"
        r"|(?P<coded>[a-z]{3}-\d{8}-WA\d+\.\w{2,5}) \([^()]{4,40}\)"
        r"|<(?!https?:)(?P<angle>[^<>:]{3,60})>)(?P<more> .*)?)"
    )


@cache
def patterns() -> Patterns:
    """Give the forms of what WhatsApp writes.

    >>> from memlab.datasets.importers.whatsapp_words import patterns
    >>> patterns().deleted.fullmatch("Diese Nachricht wurde gelöscht.") is not None
    True
    """
    table = files("memlab.datasets.importers").joinpath("whatsapp.toml")
    return Patterns(loads(table.read_text(encoding="utf-8")))


@lru_cache(1024)
def day_period(words: str) -> str:
    """Give the half of the day that stands beside a time: ``am``, ``pm`` or nothing.

    >>> from memlab.datasets.importers.whatsapp_words import day_period
    >>> day_period(" p.\\xa0m."), day_period("上午"), day_period(" à ")
    ('pm', 'am', '')
    """
    whole = words.lower()
    for word in (whole, *whole.split()):
        if word is not whole and len(word) < 4:
            continue
        half = _AROUND_HALF.sub("", word)
        if patterns().afternoon.fullmatch(half):
            return "pm"
        if patterns().morning.fullmatch(half):
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

    >>> from memlab.datasets.importers.whatsapp_words import read_body
    >>> read_body("<Media omitted>"), read_body("Room 6 <This message was edited>")
    (('', 'media', ''), ('Room 6', 'edited messages', ''))
    """
    body = body.rstrip()
    if not _may_be_written(body):
        return clean(body), "", ""
    forwarded = patterns().forwarded.match(body)
    if forwarded:
        body = body[forwarded.end() :]
    edited = None
    if ">" in body[-4:]:
        edited = patterns().edited.search(body, max(0, len(body) - _LONGEST))
    if edited:
        rest = body[: edited.start()]
        text = clean(rest)
        if text:
            return _read_media(rest) or (text, "edited messages", "")
    media = _read_media(body)
    if media is not None:
        return media
    text = clean(body)
    first, _, more = text.lstrip("\u200f ").partition("\n")
    if more:
        return text, "", ""
    kind = _kind_of_line(first, generated=_GENERATED.match(body) is not None)
    if kind:
        return "", kind, ""
    return text, "", ""


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
    lower = line.lower()
    if not any(word in lower for word in patterns().notice_about):
        return False
    return patterns().encrypted.search(line) is not None


def _read_media(body: str) -> tuple[str, str, str] | None:
    """Read a message that begins or ends with what stands for media; ``None`` for any other."""
    first, _, more = clean(body).lstrip("\u200f ").partition("\n")
    found = None
    if len(first) < _LONGEST:
        found = patterns().placeholder.fullmatch(first.strip())
    kind = _media_kind(found)
    if found and kind:
        behind = found.groupdict("")["more"]
        return _describe_media(f"{behind}\n{more}".strip(), kind, _file_name(found))
    marked = _MARKED.search(body, max(0, len(body) - _LONGEST))
    kind = _marked_kind(marked)
    if not marked or not kind:
        return None
    text = clean(body[: marked.start()])
    named = _NAMED_FILE.fullmatch(text)
    if named and kind in ("files", "contacts"):
        return _describe_media("", kind, named[1])
    return _describe_media(text, kind, "")


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


def _file_name(found: re.Match[str]) -> str:
    for name in found.group(*_FILE_GROUPS):
        if name:
            return name
    return ""


def _media_kind(found: re.Match[str] | None) -> str:
    """Give the kind of what a placeholder stands for, in the plural.

    Empty if it is talk in angle brackets.
    """
    if found is None:
        return ""
    file = _file_name(found)
    if file:
        for kind, form in _BY_NAME.items():
            if form.search(file):
                return kind
        return "files"
    line = (found["angle"] or found[0]).lower()
    if found["angle"] and not patterns().left_out.search(line):
        alone = not found["more"] and patterns().any_media.search(line)
        if not alone or (line.isascii() and " " not in line):
            return ""
    return _named_kind(line) or "media"


def _marked_kind(marked: re.Match[str] | None) -> str:
    """Give the kind of what follows a mark of iPhones."""
    if marked is None:
        return ""
    line = clean(marked[1])
    found = patterns().placeholder.fullmatch(line)
    if found:
        return _media_kind(found) or "media"
    lower = line.lower()
    if patterns().left_out.search(lower):
        return _named_kind(lower)
    return ""


def _named_kind(line: str) -> str:
    for kind, form in patterns().kinds.items():
        if form.search(line):
            return kind
    return ""
