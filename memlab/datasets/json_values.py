"""JSON of any size, value by value out of an open file, with the line and byte of what is broken.

Lists are read with the standard decoder on a growing buffer; memory holds the largest value a few
times. A file decoded as a whole takes twice the time, and about five times its size in memory. An
event parser takes half as long again, and loses what must be reported: yajl turns half surrogates
into question marks, refuses integers of more than 64 bits, gives no place of what is broken, and
does not go on behind a text that was repaired.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from memlab.datasets.fields import BadField, Record

_CHUNK = 1 << 20
_TOKEN = 16  # a cut through a token that is no string leaves fewer characters than this
_SNIPPET = 2_000  # characters of what is set aside
LONGEST = 1 << 29
"""Characters of one value, and bytes of one line."""
_ESCAPED = 0xDC00
"""What the decoder adds to a byte that is not UTF-8."""
_SPACE = re.compile(r"[ \t\r\n]+")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON value")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


class BrokenJson(BadField):
    """A place in a file from which on it is no JSON.

    :param rest: the beginning of what stands there.
    """

    def __init__(self, found: str, expected: str, rest: str) -> None:
        super().__init__("", found, expected)
        self.rest = rest


def iterate_values(
    file: BinaryIO, *lists: str, repair: Callable[[str], str] | None = None
) -> Iterator[tuple[str, Any]]:
    """Give the values of JSON, one held at a time: the elements of a list, or values one after the
    other.

    :param lists: dotted paths of lists in one object: instead of the object, its fields are given
        with their paths, in the order of the file, and the elements of these lists one by one.
    :param repair: mends a text that turned out to be no JSON, where its tool is known to write
        such; it may be cut.
    :raises BrokenJson: where it is none, when that place is reached.

    >>> import io
    >>> from memlab.datasets.json_values import iterate_values
    >>> list(iterate_values(io.BytesIO(b'[{"id": 1}, {"id": 2}]')))
    [('', {'id': 1}), ('', {'id': 2})]
    >>> list(iterate_values(io.BytesIO(b'{"name": "Ann", "messages": [1, 2]}'), "messages"))
    [('name', 'Ann'), ('messages', 1), ('messages', 2)]
    """
    text = _Window(file, repair)
    around = "object"
    if not lists and text.peek() == "[":
        lists = ("",)
        around = "list"
    while text.peek():
        yield from _walk(text, "", lists)
        if lists and text.peek():
            raise text.broken(f"something after the end of the {around}", text.at)


def unwrap_records(value: Any) -> list[Any]:
    """Give the records in an object around them, or the value itself."""
    if not isinstance(value, dict):
        return [value]
    listed = value.get("data", value.get("conversations"))
    if not isinstance(listed, list) or not listed or not isinstance(listed[0], dict):
        return [value]
    known = {"mapping", "chat_messages"}
    if len(value) == 1:
        known.add("messages")
    if "data" in value or not known.isdisjoint(listed[0]):
        return listed
    return [value]


def decode_line(raw: bytes) -> Any:
    """Decode a line of JSON lines: an object, as a :class:`Record`, or a list.

    :raises BadField: for anything else.
    """
    value = _decode_bytes(raw)
    if isinstance(value, list):
        return value
    return Record(value)


def _decode_bytes(raw: bytes) -> Any:
    try:
        return _DECODER.decode(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        place = f"byte {error.start + 1} of the line"
        found = f"a byte that is not UTF-8 (0x{raw[error.start]:02x}, {place})"
    except json.JSONDecodeError as error:
        found = f"broken JSON at column {error.colno}: {error.msg}"
    except (ValueError, RecursionError) as error:
        found = f"JSON that cannot be read: {_describe_error(error)}"
    raise BadField("", found, "one whole JSON object on the line, in UTF-8") from None


def _describe_error(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested deeper than Python reads: about a thousand levels"
    return str(error)


class _Window:
    """A window of decoded text that moves over a file and knows its line and byte.

    :param fault: what is wrong with the bytes behind the text, which then ends the file.
    """

    def __init__(self, file: BinaryIO, repair: Callable[[str], str] | None) -> None:
        self.file = file
        self.repair = repair
        self.decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self.text, self.at = "", 0
        self.byte, self.line = file.tell(), 1
        self.fault = ""

    def more(self) -> bool:
        """Drop what was used and read on; false at the end of the file.

        As much as is held is read, so that long values are retried seldom.
        """
        self.byte += _count_bytes(self.text[: self.at])
        self.line += self.text.count("\n", 0, self.at)
        chunk = b""
        if not self.fault:
            chunk = self.file.read(max(_CHUNK, len(self.text) - self.at))
        new = self.decoder.decode(chunk, final=not chunk)
        try:
            _count_bytes(new)
        except UnicodeEncodeError as error:
            byte = ord(new[error.start]) - _ESCAPED
            self.fault = f"a byte that is not UTF-8 (0x{byte:02x})"
            new = new[: error.start]
        self.text = self.text[self.at :] + new
        self.at = 0
        return bool(chunk)

    def peek(self) -> str:
        """Give the next character that is no white space; empty at the end."""
        while True:
            space = _SPACE.match(self.text, self.at)
            if space is not None:
                self.at = space.end()
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                if self.fault:
                    raise self.broken("", self.at)
                return ""

    def skip(self, wanted: str, otherwise: str) -> None:
        """Go past a character that must stand here."""
        if self.peek() != wanted:
            raise self.broken(otherwise, self.at)
        self.at += 1

    def elements(self, closing: str) -> Iterator[None]:
        """Go past a bracket, the commas and the bracket that closes it.

        It stops before each element.
        """
        self.at += 1
        first = True
        while self.peek() != closing:
            if not first:
                self.skip(",", "no comma between two values")
                self.peek()
            first = False
            yield
        self.at += 1

    def value(self) -> Any:
        """Parse the next value; one that the window cuts is parsed again with more text.

        A number at the end of the window is one too.
        """
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                self._widen(error)
                continue
            except (ValueError, RecursionError) as error:
                raise self.broken(_describe_error(error), self.at) from None
            size = end - self.at
            is_whole = isinstance(value, (dict, list, str)) or end < len(self.text) - _TOKEN
            if is_whole or not self.more():
                self.at += size
                return value

    def _widen(self, error: json.JSONDecodeError) -> None:
        """Read on or repair the text, where a value could not be parsed.

        :raises BrokenJson: where neither helps.
        """
        size = len(self.text)
        is_cut = error.msg.startswith("Unterminated") or error.pos >= size - _TOKEN
        if is_cut and size - self.at > LONGEST:
            raise self.broken(f"a value of more than {LONGEST:,} characters", self.at) from None
        if is_cut and self.more():
            return
        if self._mend(error.pos):
            return
        place = error.pos
        if is_cut:
            place = len(self.text)
        raise self.broken(error.msg, place) from None

    def _mend(self, pos: int) -> bool:
        """Repair the text, which is no JSON from a place on; false where that does not help."""
        if self.repair is None:
            return False
        if self.text.find("\n", pos) < 0 and self.more():
            return True  # what is wrong may be cut
        before = self.text
        self.text = self.repair(before)
        self.byte += _count_bytes(before) - _count_bytes(self.text)
        return self.text != before

    def broken(self, why: str, pos: int) -> BrokenJson:
        what = self.fault
        if not what and pos >= len(self.text):
            what = "the file ends here"
        byte = self.byte + _count_bytes(self.text[:pos])
        line = self.line + self.text.count("\n", 0, pos)
        found = f"broken JSON at line {line}, byte {byte}: {what or why}"
        expected = "whole JSON in UTF-8 (was the file written or downloaded whole?)"
        return BrokenJson(found, expected, self.text[self.at : self.at + _SNIPPET])


def _count_bytes(text: str) -> int:
    """Give the bytes of a text in UTF-8.

    :raises UnicodeEncodeError: at the first that stands for a byte that is not UTF-8.
    """
    if text.isascii():
        return len(text)
    return len(text.encode())


def _walk(text: _Window, path: str, lists: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Give path and value of what stands here.

    Of a wanted list these are the elements, of an object around one the fields.
    """
    opening = text.peek()
    if opening == "[" and path in lists:
        for _ in text.elements("]"):
            yield path, text.value()
    elif opening == "{" and _leads_to_list(path, lists):
        for _ in text.elements("}"):
            key = text.value()
            colon = ""
            if isinstance(key, str):
                colon = ":"
            text.skip(colon, "no name and colon before a value")
            inner = key
            if path:
                inner = f"{path}.{key}"
            yield from _walk(text, inner, lists)
    else:
        yield path, text.value()


def _leads_to_list(path: str, lists: tuple[str, ...]) -> bool:
    """Say whether a wanted list may stand in the object of a path."""
    wanted = list(filter(None, lists))
    if not path:
        return bool(wanted)
    return any(name.startswith(f"{path}.") for name in wanted)


# A string that the excerpt cuts is taken to its end: looked for again from each of its quotes, it
# takes minutes.
_KEYS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"(\s*:)?|\\?\Z)|[\[\]{}]', re.DOTALL)


def key_paths(text: str, *, first: bool = False, depth: int = 3) -> set[str]:
    """Give the dotted paths of the keys in the beginning of a JSON text; lists count for nothing.

    :param first: the keys of the first object alone, without those within them.
    :param depth: the most keys of a path.

    >>> from memlab.datasets.json_values import key_paths
    >>> sorted(key_paths('[{"id": 1, "messages": [{"role": "us'))
    ['id', 'messages', 'messages.role']
    """
    found, around, key = set[str](), list[str](), ""
    # A list around the records is no level of theirs.
    outermost = int(text.lstrip().startswith("["))
    longest = depth
    if first:
        longest = 1
    for token in _KEYS.finditer(text):
        written = token[0]
        if written in "[{":
            around.append(key)
            key = ""
        elif written in "]}":
            key = ""
            if around:
                key = around.pop()
            if first and len(around) <= outermost:
                break
        elif token[1]:
            key = written[1 : written.rindex('"')]
            path = list(filter(None, (*around, key)))
            if len(path) <= longest:
                found.add(".".join(path))
    return found
