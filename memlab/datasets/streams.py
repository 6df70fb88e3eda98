"""Streams of JSON values out of files of any size, with the line and byte of what is broken.

JSON lists are read value by value with the standard decoder on a growing buffer. An event parser would lose what must
be reported (yajl turns lone surrogates into question marks) and is slower; memory holds the largest value a few times.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from memlab.datasets.fields import Bad, Record

if TYPE_CHECKING:
    from memlab.datasets.reading import Source

_CHUNK = 1 << 20
_TOKEN = 16  # an honest cut through a token that is no string leaves fewer characters than this
_SNIPPET = 2_000
_LONGEST = 1 << 29  # characters of one value
_NESTED = "nested deeper than Python reads: about a thousand lists and objects in each other"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON value")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def objects(source: Source) -> Iterator[tuple[int, Any]]:
    """Stream the values of a JSON list (or of values one after the other) with their index, one held at a time."""
    with source.open() as file, source.progress() as bar:
        text, index = _Text(file, bar), 0
        try:
            if text.peek() == "[":
                for _ in _between(text, "[", "]"):
                    yield index, text.value()
                    index += 1
                if text.peek():
                    raise text.broken("something after the end of the list", text.at)
            while text.peek():
                yield index, text.value()
                index += 1
        except Bad as bad:
            source.reject(f"record {index}", bad, text.rest())


def members(source: Source, *lists: str) -> Iterator[tuple[str, Any]]:
    """Stream one JSON object by its fields: dotted path and value of each, in the order of the file.

    :param lists: paths of lists whose elements are given one by one; the objects around them are gone into.
    """
    inside = {path[:at] for path in lists for at, letter in enumerate(path) if letter == "."}
    with source.open() as file, source.progress() as bar:
        text = _Text(file, bar)
        try:
            yield from _object(text, "", inside, set(lists))
            if text.peek():
                raise text.broken("something after the end of the object", text.at)
        except Bad as bad:
            source.reject("the file", bad, text.rest())


def lines(source: Source) -> Iterator[tuple[int, Record]]:
    """Stream the objects of a JSON-lines file with their line numbers (from 1); blank lines are passed over."""
    with source.open() as file, source.progress() as bar:
        for number, line in enumerate(iter(lambda: file.readline(_LONGEST), b""), 1):
            bar.update(len(line))
            if len(line) == _LONGEST:
                source.fail(f"line {number}: has {_LONGEST:,} bytes and more; expected one record on a line")
            raw = line.rstrip(b"\r\n")
            if not raw or raw.isspace():
                continue
            try:
                record = Record(_line(raw))
            except Bad as bad:
                source.reject(f"line {number}", bad, raw.decode("utf-8", "surrogateescape"))
            else:
                yield number, record


def _line(raw: bytes) -> Any:
    try:
        return _DECODER.decode(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        found = f"a byte that is not UTF-8 (0x{raw[error.start]:02x}, byte {error.start + 1} of the line)"
        raise Bad("", found, "UTF-8") from None
    except json.JSONDecodeError as error:
        found = f"broken JSON at column {error.colno}: {error.msg}"
    except RecursionError:
        found = f"JSON that is {_NESTED}"
    except ValueError as error:
        found = f"JSON that cannot be read: {error}"
    raise Bad("", found, "one whole JSON object on the line")


class _Text:
    """A window of decoded text that moves over a file and knows its line and byte."""

    def __init__(self, file: BinaryIO, bar: Any) -> None:
        self.file, self.bar, self.decoder = file, bar, codecs.getincrementaldecoder("utf-8")()
        self.text, self.at, self.byte, self.line = "", 0, file.tell(), 1
        self.undecodable = ""

    def more(self) -> bool:
        """Drop what was used and read on, twice as much as is held, so that long values are retried seldom."""
        self.byte += len(self.text[: self.at].encode())
        self.line += self.text.count("\n", 0, self.at)
        self.text, self.at = self.text[self.at :], 0
        pending = self.decoder.getstate()[0]
        chunk = b"" if self.undecodable else self.file.read(max(_CHUNK, len(self.text)))
        self.bar.update(len(chunk))
        try:
            new = self.decoder.decode(chunk, final=not chunk) if not self.undecodable else ""
        except UnicodeDecodeError as error:
            new = (pending + chunk)[: error.start].decode()
            self.undecodable = f"a byte that is not UTF-8 (0x{error.object[error.start]:02x})"
        self.text += new
        return bool(chunk)

    def peek(self) -> str:
        """Give the next character that is no white space; empty at the end."""
        while True:
            rest = len(self.text)
            while self.at < rest and self.text[self.at] in " \t\r\n":
                self.at += 1
            if self.at < rest or not self.more():
                return self.text[self.at : self.at + 1]

    def value(self) -> Any:
        """Parse the next value; one that the window cuts is parsed again with more text, a number too."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated") or error.pos >= len(self.text) - _TOKEN
                if cut and len(self.text) - self.at > _LONGEST:
                    raise self.broken(f"a value of more than {_LONGEST:,} characters", self.at) from None
                if not (cut and self.more()):
                    raise self.broken(error.msg, len(self.text) if cut else error.pos) from None
            except RecursionError:
                raise self.broken(_NESTED, self.at) from None
            except ValueError as error:
                raise self.broken(str(error), self.at) from None
            else:
                growing = not isinstance(value, (dict, list, str)) and end >= len(self.text) - _TOKEN
                size = end - self.at
                if growing and self.more():
                    continue
                self.at += size
                return value

    def rest(self) -> str:
        """Give the beginning of what is not read yet."""
        return self.text[self.at : self.at + _SNIPPET]

    def broken(self, why: str, pos: int) -> Bad:
        byte = self.byte + len(self.text[:pos].encode())
        line = self.line + self.text.count("\n", 0, pos)
        what = self.undecodable or ("the file ends here" if pos >= len(self.text) else why)
        found = f"broken JSON at line {line}, byte {byte}: {what}"
        return Bad("", found, "whole JSON in UTF-8 (was the file written or downloaded whole?)")


def _object(text: _Text, path: str, inside: set[str], lists: set[str]) -> Iterator[tuple[str, Any]]:
    for _ in _between(text, "{", "}"):
        key = text.value()
        if not isinstance(key, str) or text.peek() != ":":
            raise text.broken("no name and colon before a value", text.at)
        text.at += 1
        here, following = f"{path}.{key}" if path else key, text.peek()
        if here in inside and following == "{":
            yield from _object(text, here, inside, lists)
        elif here in lists and following == "[":
            for _ in _between(text, "[", "]"):
                yield here, text.value()
        else:
            yield here, text.value()


def _between(text: _Text, begin: str, end: str) -> Iterator[None]:
    """Go past a bracket, the commas and the bracket that closes it, with a stop before each element."""
    if text.peek() != begin:
        raise text.broken(f"no {begin}", text.at)
    text.at += 1
    first = True
    while (following := text.peek()) != end:
        if not first:
            if following != ",":
                raise text.broken("no comma between two values", text.at)
            text.at += 1
            text.peek()
        first = False
        yield
    text.at += 1


# A string that the piece cuts is taken to its end: looked for again from each of its quotes, it takes minutes.
_KEYS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"(\s*:)?|\\?\Z)|[\[\]{}]', re.DOTALL)


def key_paths(text: str, *, first: bool = False, depth: int = 3) -> set[str]:
    """Give the dotted paths of the keys in the beginning of a JSON text; lists count for nothing.

    :param first: of the first object alone.

    >>> from memlab.datasets.streams import key_paths
    >>> sorted(key_paths('[{"id": 1, "messages": [{"role": "us'))
    ['id', 'messages', 'messages.role']
    """
    around: list[str] = []
    found, key, outside = set(), "", text.lstrip().startswith("[")
    for token in _KEYS.finditer(text):
        if token[0] in "[{":
            around.append(key)
            key = ""
        elif token[0] in "]}":
            key = around.pop() if around else ""
            if first and len(around) <= outside:
                break
        elif token[1]:
            key = token[0][1 : token[0].rindex('"')]
            path = [name for name in (*around, key) if name]
            if len(path) <= depth:
                found.add(".".join(path))
    return found
