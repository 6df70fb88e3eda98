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
from typing import BinaryIO

from memlab.datasets.record_fields import BadField, JsonValue, Record

_CHUNK = 1 << 20
_TOKEN = 16  # a cut through a token that is no string leaves fewer characters than this
_SNIPPET = 2_000  # characters of what is set aside
LONGEST = 1 << 29
"""Characters of one value, and bytes of one line."""
_ESCAPED = 0xDC00
"""What the decoder adds to a byte that is not UTF-8."""
_SPACE = re.compile(r"[ \t\r\n]+")


def _refuse_json_constant(constant_name: str) -> None:
    raise ValueError(f"{constant_name} is no JSON value")


_DECODER = json.JSONDecoder(parse_constant=_refuse_json_constant)


class BrokenJson(BadField):
    """A place in a file from which on it is no JSON.

    :param rest: the beginning of what stands there.
    """

    def __init__(self, found: str, expected: str, rest: str) -> None:
        super().__init__("", found, expected)
        self.rest = rest


def stream_paths_and_values(
    file: BinaryIO, *list_paths: str, repair: Callable[[str], str] | None = None
) -> Iterator[tuple[str, JsonValue]]:
    """Give the values of JSON, one held at a time: the elements of a list, or values one after the
    other.

    :param list_paths: dotted paths of lists in one object: instead of the object, its fields are
        given with their paths, in the order of the file, and the elements of these lists one by
        one.
    :param repair: mends a text that turned out to be no JSON, where its tool is known to write
        such; it may be cut.
    :raises BrokenJson: where it is none, when that place is reached.

    >>> import io
    >>> from memlab.datasets.json_streaming import stream_paths_and_values
    >>> list(stream_paths_and_values(io.BytesIO(b'[{"id": 1}, {"id": 2}]')))
    [('', {'id': 1}), ('', {'id': 2})]
    >>> named_list = io.BytesIO(b'{"name": "Ann", "messages": [1, 2]}')
    >>> list(stream_paths_and_values(named_list, "messages"))
    [('name', 'Ann'), ('messages', 1), ('messages', 2)]
    """
    text_window = _JsonTextWindow(file, repair)
    outer_kind = "object"
    if not list_paths and text_window.skip_blanks_and_peek_character() == "[":
        list_paths = ("",)
        outer_kind = "list"
    while text_window.skip_blanks_and_peek_character():
        yield from _stream_value_or_wanted_elements(text_window, "", list_paths)
        if list_paths and text_window.skip_blanks_and_peek_character():
            raise text_window.make_error(
                f"something after the end of the {outer_kind}", text_window.at
            )


def unwrap_api_page(page_or_record: JsonValue) -> list[JsonValue]:
    """Give the records in an object around them, or the value itself."""
    if not isinstance(page_or_record, dict):
        return [page_or_record]
    record_list = page_or_record.get("data", page_or_record.get("conversations"))
    if not isinstance(record_list, list) or not record_list or not isinstance(record_list[0], dict):
        return [page_or_record]
    known_keys = {"mapping", "chat_messages"}
    if len(page_or_record) == 1:
        known_keys.add("messages")
    if "data" in page_or_record or not known_keys.isdisjoint(record_list[0]):
        return record_list
    return [page_or_record]


def decode_json_line(raw_line: bytes) -> Record | list[JsonValue]:
    """Decode a line of JSON lines: an object, as a :class:`Record`, or a list.

    :raises BadField: for anything else.
    """
    value = _decode_json_bytes(raw_line)
    if isinstance(value, list):
        return value
    return Record(value)


def _decode_json_bytes(raw_json: bytes) -> JsonValue:
    try:
        return _DECODER.decode(raw_json.decode("utf-8"))
    except UnicodeDecodeError as error:
        place = f"byte {error.start + 1} of the line"
        fault_text = f"a byte that is not UTF-8 (0x{raw_json[error.start]:02x}, {place})"
    except json.JSONDecodeError as error:
        fault_text = f"broken JSON at column {error.colno}: {error.msg}"
    except (ValueError, RecursionError) as error:
        fault_text = f"JSON that cannot be read: {_describe_decoding_error(error)}"
    raise BadField("", fault_text, "one whole JSON object on the line, in UTF-8") from None


def _describe_decoding_error(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested deeper than Python reads: about a thousand levels"
    return str(error)


class _JsonTextWindow:
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

    def drop_used_and_read_more(self) -> bool:
        """Drop what was used and read on; false at the end of the file.

        As much as is held is read, so that long values are retried seldom.
        """
        self.byte += _count_utf8_bytes(self.text[: self.at])
        self.line += self.text.count("\n", 0, self.at)
        byte_chunk = b""
        if not self.fault:
            byte_chunk = self.file.read(max(_CHUNK, len(self.text) - self.at))
        new_text = self.decoder.decode(byte_chunk, final=not byte_chunk)
        try:
            _count_utf8_bytes(new_text)
        except UnicodeEncodeError as error:
            faulty_byte = ord(new_text[error.start]) - _ESCAPED
            self.fault = f"a byte that is not UTF-8 (0x{faulty_byte:02x})"
            new_text = new_text[: error.start]
        self.text = self.text[self.at :] + new_text
        self.at = 0
        return bool(byte_chunk)

    def skip_blanks_and_peek_character(self) -> str:
        """Give the next character that is no white space; empty at the end."""
        while True:
            space_match = _SPACE.match(self.text, self.at)
            if space_match is not None:
                self.at = space_match.end()
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.drop_used_and_read_more():
                if self.fault:
                    raise self.make_error("", self.at)
                return ""

    def check_and_skip_character(self, wanted_character: str, fault_text: str) -> None:
        """Go past a character that must stand here."""
        if self.skip_blanks_and_peek_character() != wanted_character:
            raise self.make_error(fault_text, self.at)
        self.at += 1

    def step_through_elements(self, closing_bracket: str) -> Iterator[None]:
        """Go past a bracket, the commas and the bracket that closes it.

        It stops before each element.
        """
        self.at += 1
        is_first = True
        while self.skip_blanks_and_peek_character() != closing_bracket:
            if not is_first:
                self.check_and_skip_character(",", "no comma between two values")
                self.skip_blanks_and_peek_character()
            is_first = False
            yield
        self.at += 1

    def parse_value(self) -> JsonValue:
        """Parse the next value; one that the window cuts is parsed again with more text.

        A number at the end of the window is one too.
        """
        while True:
            try:
                value, value_end = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                self._read_more_or_repair(error)
                continue
            except (ValueError, RecursionError) as error:
                raise self.make_error(_describe_decoding_error(error), self.at) from None
            value_size = value_end - self.at
            is_whole = isinstance(value, (dict, list, str)) or value_end < len(self.text) - _TOKEN
            if is_whole or not self.drop_used_and_read_more():
                self.at += value_size
                return value

    def _read_more_or_repair(self, decoding_error: json.JSONDecodeError) -> None:
        """Read on or repair the text, where a value could not be parsed.

        :raises BrokenJson: where neither helps.
        """
        n_letters = len(self.text)
        is_cut = (
            decoding_error.msg.startswith("Unterminated")
            or decoding_error.pos >= n_letters - _TOKEN
        )
        if is_cut and n_letters - self.at > LONGEST:
            raise self.make_error(f"a value of more than {LONGEST:,} characters", self.at) from None
        if is_cut and self.drop_used_and_read_more():
            return
        if self._repair_text_or_read_more(decoding_error.pos):
            return
        fault_place = decoding_error.pos
        if is_cut:
            fault_place = len(self.text)
        raise self.make_error(decoding_error.msg, fault_place) from None

    def _repair_text_or_read_more(self, fault_position: int) -> bool:
        """Repair the text, which is no JSON from a place on; false where that does not help."""
        if self.repair is None:
            return False
        if self.text.find("\n", fault_position) < 0 and self.drop_used_and_read_more():
            return True  # what is wrong may be cut
        text_before = self.text
        self.text = self.repair(text_before)
        self.byte += _count_utf8_bytes(text_before) - _count_utf8_bytes(self.text)
        return self.text != text_before

    def make_error(self, parser_fault: str, position: int) -> BrokenJson:
        fault_text = self.fault
        if not fault_text and position >= len(self.text):
            fault_text = "the file ends here"
        byte_number = self.byte + _count_utf8_bytes(self.text[:position])
        line_number = self.line + self.text.count("\n", 0, position)
        broken_text = (
            f"broken JSON at line {line_number}, byte {byte_number}: {fault_text or parser_fault}"
        )
        expected = "whole JSON in UTF-8 (was the file written or downloaded whole?)"
        return BrokenJson(broken_text, expected, self.text[self.at : self.at + _SNIPPET])


def _count_utf8_bytes(text: str) -> int:
    """Give the bytes of a text in UTF-8.

    :raises UnicodeEncodeError: at the first that stands for a byte that is not UTF-8.
    """
    if text.isascii():
        return len(text)
    return len(text.encode())


def _stream_value_or_wanted_elements(
    text_window: _JsonTextWindow, path: str, list_paths: tuple[str, ...]
) -> Iterator[tuple[str, JsonValue]]:
    """Give path and value of what stands here.

    Of a wanted list these are the elements, of an object around one the fields.
    """
    opening_letter = text_window.skip_blanks_and_peek_character()
    if opening_letter == "[" and path in list_paths:
        for _ in text_window.step_through_elements("]"):
            yield path, text_window.parse_value()
    elif opening_letter == "{" and _may_contain_wanted_list(path, list_paths):
        for _ in text_window.step_through_elements("}"):
            object_key = text_window.parse_value()
            expected_colon = ""
            if isinstance(object_key, str):
                expected_colon = ":"
            text_window.check_and_skip_character(expected_colon, "no name and colon before a value")
            inner_path = object_key
            if path:
                inner_path = f"{path}.{object_key}"
            yield from _stream_value_or_wanted_elements(text_window, inner_path, list_paths)
    else:
        yield path, text_window.parse_value()


def _may_contain_wanted_list(object_path: str, list_paths: tuple[str, ...]) -> bool:
    """Say whether a wanted list may stand in the object of a path."""
    inner_paths = list(filter(None, list_paths))
    if not object_path:
        return bool(inner_paths)
    return any(list_path.startswith(f"{object_path}.") for list_path in inner_paths)


# A string that the excerpt cuts is taken to its end: looked for again from each of its quotes, it
# takes minutes.
_KEYS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"(\s*:)?|\\?\Z)|[\[\]{}]', re.DOTALL)


def keys(json_text: str, *, first_object_only: bool = False, max_depth: int = 3) -> set[str]:
    """Give the dotted paths of the keys in the beginning of a JSON text; lists count for nothing.

    :param first_object_only: the keys of the first object alone, without those within them.
    :param max_depth: the most keys of a path.

    >>> from memlab.datasets.json_streaming import keys
    >>> sorted(keys('[{"id": 1, "messages": [{"role": "us'))
    ['id', 'messages', 'messages.role']
    """
    found_paths = set[str]()
    outer_keys = list[str]()
    last_key = ""
    # A list around the records is no level of theirs.
    outermost = int(json_text.lstrip().startswith("["))
    longest = max_depth
    if first_object_only:
        longest = 1
    for token in _KEYS.finditer(json_text):
        token_text = token[0]
        if token_text in "[{":
            outer_keys.append(last_key)
            last_key = ""
        elif token_text in "]}":
            last_key = ""
            if outer_keys:
                last_key = outer_keys.pop()
            if first_object_only and len(outer_keys) <= outermost:
                break
        elif token[1]:
            last_key = token_text[1 : token_text.rindex('"')]
            path_keys = list(filter(None, (*outer_keys, last_key)))
            if len(path_keys) <= longest:
                found_paths.add(".".join(path_keys))
    return found_paths
