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

from memlab.datasets.record_fields import BadField, Record

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
    >>> from memlab.datasets.json_streaming import iterate_values
    >>> list(iterate_values(io.BytesIO(b'[{"id": 1}, {"id": 2}]')))
    [('', {'id': 1}), ('', {'id': 2})]
    >>> list(iterate_values(io.BytesIO(b'{"name": "Ann", "messages": [1, 2]}'), "messages"))
    [('name', 'Ann'), ('messages', 1), ('messages', 2)]
    """
    text_window = _Window(file, repair)
    outer_kind = "object"
    if not lists and text_window.peek() == "[":
        lists = ("",)
        outer_kind = "list"
    while text_window.peek():
        yield from _walk(text_window, "", lists)
        if lists and text_window.peek():
            raise text_window.broken(f"something after the end of the {outer_kind}", text_window.at)


def unwrap_records(value: Any) -> list[Any]:
    """Give the records in an object around them, or the value itself."""
    if not isinstance(value, dict):
        return [value]
    record_list = value.get("data", value.get("conversations"))
    if not isinstance(record_list, list) or not record_list or not isinstance(record_list[0], dict):
        return [value]
    known_keys = {"mapping", "chat_messages"}
    if len(value) == 1:
        known_keys.add("messages")
    if "data" in value or not known_keys.isdisjoint(record_list[0]):
        return record_list
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
        fault_text = f"a byte that is not UTF-8 (0x{raw[error.start]:02x}, {place})"
    except json.JSONDecodeError as error:
        fault_text = f"broken JSON at column {error.colno}: {error.msg}"
    except (ValueError, RecursionError) as error:
        fault_text = f"JSON that cannot be read: {_describe_error(error)}"
    raise BadField("", fault_text, "one whole JSON object on the line, in UTF-8") from None


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
        self.text = ""
        self.at = 0
        self.byte = file.tell()
        self.line = 1
        self.fault = ""

    def more(self) -> bool:
        """Drop what was used and read on; false at the end of the file.

        As much as is held is read, so that long values are retried seldom.
        """
        self.byte += _count_bytes(self.text[: self.at])
        self.line += self.text.count("\n", 0, self.at)
        byte_chunk = b""
        if not self.fault:
            byte_chunk = self.file.read(max(_CHUNK, len(self.text) - self.at))
        new_text = self.decoder.decode(byte_chunk, final=not byte_chunk)
        try:
            _count_bytes(new_text)
        except UnicodeEncodeError as error:
            faulty_byte = ord(new_text[error.start]) - _ESCAPED
            self.fault = f"a byte that is not UTF-8 (0x{faulty_byte:02x})"
            new_text = new_text[: error.start]
        self.text = self.text[self.at :] + new_text
        self.at = 0
        return bool(byte_chunk)

    def peek(self) -> str:
        """Give the next character that is no white space; empty at the end."""
        while True:
            space_match = _SPACE.match(self.text, self.at)
            if space_match is not None:
                self.at = space_match.end()
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
        is_first = True
        while self.peek() != closing:
            if not is_first:
                self.skip(",", "no comma between two values")
                self.peek()
            is_first = False
            yield
        self.at += 1

    def value(self) -> Any:
        """Parse the next value; one that the window cuts is parsed again with more text.

        A number at the end of the window is one too.
        """
        while True:
            try:
                value, value_end = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                self._widen(error)
                continue
            except (ValueError, RecursionError) as error:
                raise self.broken(_describe_error(error), self.at) from None
            value_size = value_end - self.at
            is_whole = isinstance(value, (dict, list, str)) or value_end < len(self.text) - _TOKEN
            if is_whole or not self.more():
                self.at += value_size
                return value

    def _widen(self, error: json.JSONDecodeError) -> None:
        """Read on or repair the text, where a value could not be parsed.

        :raises BrokenJson: where neither helps.
        """
        n_letters = len(self.text)
        is_cut = error.msg.startswith("Unterminated") or error.pos >= n_letters - _TOKEN
        if is_cut and n_letters - self.at > LONGEST:
            raise self.broken(f"a value of more than {LONGEST:,} characters", self.at) from None
        if is_cut and self.more():
            return
        if self._mend(error.pos):
            return
        fault_place = error.pos
        if is_cut:
            fault_place = len(self.text)
        raise self.broken(error.msg, fault_place) from None

    def _mend(self, pos: int) -> bool:
        """Repair the text, which is no JSON from a place on; false where that does not help."""
        if self.repair is None:
            return False
        if self.text.find("\n", pos) < 0 and self.more():
            return True  # what is wrong may be cut
        text_before = self.text
        self.text = self.repair(text_before)
        self.byte += _count_bytes(text_before) - _count_bytes(self.text)
        return self.text != text_before

    def broken(self, why: str, pos: int) -> BrokenJson:
        fault_text = self.fault
        if not fault_text and pos >= len(self.text):
            fault_text = "the file ends here"
        byte_number = self.byte + _count_bytes(self.text[:pos])
        line_number = self.line + self.text.count("\n", 0, pos)
        broken_text = f"broken JSON at line {line_number}, byte {byte_number}: {fault_text or why}"
        expected = "whole JSON in UTF-8 (was the file written or downloaded whole?)"
        return BrokenJson(broken_text, expected, self.text[self.at : self.at + _SNIPPET])


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
    opening_letter = text.peek()
    if opening_letter == "[" and path in lists:
        for _ in text.elements("]"):
            yield path, text.value()
    elif opening_letter == "{" and _leads_to_list(path, lists):
        for _ in text.elements("}"):
            object_key = text.value()
            expected_colon = ""
            if isinstance(object_key, str):
                expected_colon = ":"
            text.skip(expected_colon, "no name and colon before a value")
            inner_path = object_key
            if path:
                inner_path = f"{path}.{object_key}"
            yield from _walk(text, inner_path, lists)
    else:
        yield path, text.value()


def _leads_to_list(path: str, lists: tuple[str, ...]) -> bool:
    """Say whether a wanted list may stand in the object of a path."""
    list_paths = list(filter(None, lists))
    if not path:
        return bool(list_paths)
    return any(name.startswith(f"{path}.") for name in list_paths)


# A string that the excerpt cuts is taken to its end: looked for again from each of its quotes, it
# takes minutes.
_KEYS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"(\s*:)?|\\?\Z)|[\[\]{}]', re.DOTALL)


def key_paths(text: str, *, first: bool = False, depth: int = 3) -> set[str]:
    """Give the dotted paths of the keys in the beginning of a JSON text; lists count for nothing.

    :param first: the keys of the first object alone, without those within them.
    :param depth: the most keys of a path.

    >>> from memlab.datasets.json_streaming import key_paths
    >>> sorted(key_paths('[{"id": 1, "messages": [{"role": "us'))
    ['id', 'messages', 'messages.role']
    """
    found_paths = set[str]()
    outer_keys = list[str]()
    last_key = ""
    # A list around the records is no level of theirs.
    outermost = int(text.lstrip().startswith("["))
    longest = depth
    if first:
        longest = 1
    for token in _KEYS.finditer(text):
        token_text = token[0]
        if token_text in "[{":
            outer_keys.append(last_key)
            last_key = ""
        elif token_text in "]}":
            last_key = ""
            if outer_keys:
                last_key = outer_keys.pop()
            if first and len(outer_keys) <= outermost:
                break
        elif token[1]:
            last_key = token_text[1 : token_text.rindex('"')]
            path_keys = list(filter(None, (*outer_keys, last_key)))
            if len(path_keys) <= longest:
                found_paths.add(".".join(path_keys))
    return found_paths
