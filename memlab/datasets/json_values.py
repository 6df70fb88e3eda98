"""JSON of any size, value by value out of an open file, with the line and byte of what is broken.

Lists are read with the standard decoder on a growing buffer. An event parser would lose what must
be reported (yajl turns lone surrogates into question marks) and is slower; memory holds the largest
value a few times.
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
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # what the decoder makes of such bytes


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
    """Give the values of JSON, one held at a time: the elements of a list, or values one after the other.

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
    if not lists and text.peek() == "[":
        lists = ("",)
    around = "list" if lists == ("",) else "object"
    while text.peek():
        yield from _walk(text, "", lists)
        if lists and text.peek():
            raise text.broken(f"something after the end of the {around}", text.at)


def unwrap_records(value: Any) -> list[Any]:
    """Give the records in an object around them, or the value itself."""
    about = value if isinstance(value, dict) else {}
    listed = about.get("data", about.get("conversations"))
    first = listed[0] if isinstance(listed, list) and listed else None
    known = {"mapping", "chat_messages", "messages" if len(about) == 1 else ""}
    around = isinstance(first, dict) and ("data" in about or known & first.keys())
    return list(listed or ()) if around else [value]


def decode_line(raw: bytes) -> Any:
    """Decode a line of JSON lines: an object, as a :class:`Record`, or a list.

    :raises BadField: for anything else.
    """
    value = _decode_bytes(raw)
    return value if isinstance(value, list) else Record(value)


def _decode_bytes(raw: bytes) -> Any:
    try:
        return _DECODER.decode(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        found = f"a byte that is not UTF-8 (0x{raw[error.start]:02x}, byte {error.start + 1} of the line)"
    except json.JSONDecodeError as error:
        found = f"broken JSON at column {error.colno}: {error.msg}"
    except (ValueError, RecursionError) as error:
        found = f"JSON that cannot be read: {_describe_error(error)}"
    raise BadField("", found, "one whole JSON object on the line, in UTF-8") from None


def _describe_error(error: Exception) -> str:
    nested = isinstance(error, RecursionError)
    return "nested deeper than Python reads: about a thousand levels" if nested else str(error)


class _Window:
    """A window of decoded text that moves over a file and knows its line and byte."""

    def __init__(self, file: BinaryIO, repair: Callable[[str], str] | None) -> None:
        self.file, self.repair, self.decoder = (
            file,
            repair,
            codecs.getincrementaldecoder("utf-8")("surrogateescape"),
        )
        self.text, self.at, self.byte, self.line, self.fault = "", 0, file.tell(), 1, ""

    def more(self) -> bool:
        """Drop what was used and read on, twice as much as is held, so that long values are retried seldom."""
        self.byte += len(self.text[: self.at].encode())
        self.line += self.text.count("\n", 0, self.at)
        chunk = b"" if self.fault else self.file.read(max(_CHUNK, len(self.text) - self.at))
        new = self.decoder.decode(chunk, final=not chunk)
        if wrong := _NOT_UTF8.search(new):
            self.fault = f"a byte that is not UTF-8 (0x{ord(wrong[0]) - 0xDC00:02x})"
            new = new[: wrong.start()]
        self.text, self.at = self.text[self.at :] + new, 0
        return bool(chunk)

    def peek(self) -> str:
        """Give the next character that is no white space; empty at the end."""
        while True:
            rest = len(self.text)
            while self.at < rest and self.text[self.at] in " \t\r\n":
                self.at += 1
            if self.at < rest:
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
        """Go past a bracket, the commas and the bracket that closes it, with a stop before each element."""
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
        """Parse the next value; one that the window cuts is parsed again with more text, a number too."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated") or error.pos >= len(self.text) - _TOKEN
                if cut and len(self.text) - self.at > LONGEST:
                    raise self.broken(
                        f"a value of more than {LONGEST:,} characters", self.at
                    ) from None
                if not (cut and self.more()) and not self.mend(error.pos):
                    raise self.broken(error.msg, len(self.text) if cut else error.pos) from None
                continue
            except (ValueError, RecursionError) as error:
                raise self.broken(_describe_error(error), self.at) from None
            size = end - self.at
            whole = isinstance(value, (dict, list, str)) or end < len(self.text) - _TOKEN
            if whole or not self.more():
                self.at += size
                return value

    def mend(self, pos: int) -> bool:
        """Repair the text, which is no JSON from a place on; false where that does not help."""
        if self.repair is None or (
            self.text.find("\n", pos) < 0 and self.more()
        ):  # what is wrong may be cut
            return self.repair is not None
        before, self.text = self.text, self.repair(self.text)
        self.byte += len(before.encode()) - len(self.text.encode())
        return self.text != before

    def broken(self, why: str, pos: int) -> BrokenJson:
        byte, line = (
            self.byte + len(self.text[:pos].encode()),
            self.line + self.text.count("\n", 0, pos),
        )
        what = self.fault or ("the file ends here" if pos >= len(self.text) else why)
        found = f"broken JSON at line {line}, byte {byte}: {what}"
        expected = "whole JSON in UTF-8 (was the file written or downloaded whole?)"
        return BrokenJson(found, expected, self.text[self.at : self.at + _SNIPPET])


def _walk(text: _Window, path: str, lists: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Give path and value of what stands here: the elements of a wanted list, the fields of an object around one."""
    opening = text.peek()
    if path in lists and opening == "[":
        for _ in text.elements("]"):
            yield path, text.value()
    elif opening == "{" and any(
        wanted.startswith(f"{path}." if path else path) for wanted in lists if wanted
    ):
        for _ in text.elements("}"):
            key = text.value()
            text.skip(":" if isinstance(key, str) else "", "no name and colon before a value")
            yield from _walk(text, f"{path}.{key}" if path else key, lists)
    else:
        yield path, text.value()


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
            if len(path) <= (1 if first else depth):
                found.add(".".join(path))
    return found
