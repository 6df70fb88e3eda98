"""Streams of JSON out of files of any size, with the line and byte of what is broken; tables; archives in place.

JSON lists are read value by value with the standard decoder on a growing buffer. An event parser
would lose what must be reported (yajl turns lone surrogates into question marks) and is slower;
memory holds the largest value a few times.
"""

from __future__ import annotations

import codecs
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO
from zlib import error as ZlibError

import polars as pl

from memlab.datasets.fields import BadField, Record

if TYPE_CHECKING:
    from memlab.datasets.reading import Source


TEXTS = (".json", ".jsonl", ".ndjson", ".txt", ".af", ".csv", ".tsv", ".parquet", ".html", ".htm")
"""Endings of the files of a folder or an archive that may hold a chat."""
UNREAD = (".zip", ".gz", ".tgz", ".bz2", ".7z", ".rar", ".db", ".sqlite", ".md")
"""Endings of files that may hold one too, and are reported as left out; archives of a folder are opened first."""
FAULTS = (OSError, EOFError, RuntimeError, ValueError, zipfile.BadZipFile, ZlibError)
"""What a file or a broken archive raises, when it is opened or read."""
_MOST, _RATIO, _SMALL = (
    16 << 30,
    200,
    64 << 20,
)  # bytes of text; of text to packed; what is always read


def may_hold_text(name: str, endings: tuple[str, ...] = TEXTS) -> bool:
    """Say whether a file of a folder or an archive may hold a chat, by its name."""
    parts = PurePosixPath(name).parts
    hidden = any((part.startswith(".") and part != "..") or part == "__MACOSX" for part in parts)
    return name.lower().endswith(endings) and not hidden


def is_zip_bomb(unpacked: int, packed: int) -> bool:
    """Say whether so many bytes are more than any chat unpacks to."""
    return unpacked > _RATIO * packed + _SMALL


def list_entries(source: Source) -> dict[str, tuple[zipfile.ZipFile, zipfile.ZipInfo]]:
    """List the entries of an archive that may hold a chat, by their names; a name is a label, nothing is written.

    :raises DataError: for an archive that is broken, encrypted, or far larger unpacked than packed.
    """
    try:
        archive = zipfile.ZipFile(source.path)
        entries = {
            e.filename.replace("\\", "/").lstrip("/"): e
            for e in archive.infolist()
            if not e.is_dir()
        }
    except FAULTS as error:
        source.fail(f"is no whole ZIP archive ({error}); download it again", error)
    kept = {name: entry for name, entry in entries.items() if may_hold_text(name)}
    total, packed = (
        sum(getattr(entry, size) for entry in kept.values())
        for size in ("file_size", "compress_size")
    )
    if total > _MOST or is_zip_bomb(total, packed):
        source.fail(
            f"holds {total:,} bytes of text in {packed:,}: no chat does; unpack it, and give the file you mean"
        )
    for name, entry in kept.items():
        if entry.flag_bits & 1 or entry.compress_type not in (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        ):
            why = f"{name!r} has a password or a packing other than deflate"
            source.fail(f"{why}; unpack the archive, and give the folder")
    return {
        name: (archive, entry)
        for name, entry in entries.items()
        if may_hold_text(name, TEXTS + UNREAD)
    }


def read_table(source: Source, rows: int | None = None) -> pl.DataFrame:
    """Read a CSV or Parquet file, or its first rows; the cells of a CSV are texts.

    :raises DataError: when it cannot be read.
    """
    parquet, (separator, _) = source.head.startswith("PAR1"), source.split_header()
    options: dict[str, Any] = {"separator": separator, "infer_schema": False, "n_rows": rows}
    with source.open() as file:
        raw = source.path if parquet and not source.packed else io.BytesIO(file.read())
    try:
        if not parquet:
            # A cell between tabs may begin with a quote that does not end it.
            with suppress(*[pl.exceptions.PolarsError] * (separator == "\t")):
                return pl.read_csv(raw, **options)
            return pl.read_csv(raw, **options, quote_char=None)
        n = pl.scan_parquet(raw).select(pl.len()).collect().item()
        if is_zip_bomb(16 * n, source.size):  # a text takes as much, however often it is repeated
            source.fail(
                f"holds {n:,} rows in {source.size:,} bytes: no chat does; see how it was written"
            )
        return pl.read_parquet(raw, n_rows=rows)
    except (OSError, pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        source.fail(
            f"cannot be read as a table ({str(error)[:200]}); was it written whole, in UTF-8?",
            error,
        )


_CHUNK = 1 << 20
_TOKEN = 16  # a cut through a token that is no string leaves fewer characters than this
_SNIPPET, _LONGEST = 2_000, 1 << 29  # characters of what is set aside, and of one value
_NOT_UTF8 = re.compile("[\udc80-\udcff]")  # what the decoder makes of such bytes


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON value")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def stream_json(
    source: Source, *lists: str, repair: Callable[[str], str] | None = None
) -> Iterator[tuple[str, Any]]:
    """Stream the values of a JSON file, one held at a time: the elements of a list, or values one after the other.

    :param lists: dotted paths of lists in one object: instead of the object, its fields are given
        with their paths, in the order of the file, and the elements of these lists one by one.
    :param repair: mends a text that turned out to be no JSON, where its tool is known to write
        such; it may be cut.
    """
    n = 0
    with source.open() as file:
        text = _Window(file, repair)
        try:
            whole = bool(lists) or text.peek() == "["
            while text.peek():
                for path, value in _walk(text, "", lists or ("",) * whole):
                    yield path, value
                    n += 1
                if whole and text.peek():
                    raise text.broken(
                        f"something after the end of the {'object' if lists else 'list'}", text.at
                    )
        except BadField as bad:
            source.reject(
                "the file" if lists else f"record {n}", bad, text.text[text.at : text.at + _SNIPPET]
            )


def unwrap_records(value: Any) -> list[Any]:
    """Give the records in an object around them, or the value itself."""
    about = value if isinstance(value, dict) else {}
    listed = about.get("data", about.get("conversations"))
    first = listed[0] if isinstance(listed, list) and listed else None
    known = {"mapping", "chat_messages", "messages" if len(about) == 1 else ""}
    around = isinstance(first, dict) and ("data" in about or known & first.keys())
    return list(listed or ()) if around else [value]


def stream_json_lines(source: Source) -> Iterator[tuple[int, Any]]:
    """Stream the objects, or lists, of a JSON-lines file with their line numbers (from 1); blank lines are skipped."""
    with source.open() as file:
        for number, raw in enumerate(iter(lambda: file.readline(_LONGEST), b""), 1):
            if len(raw) == _LONGEST:
                source.fail(
                    f"line {number}: has {_LONGEST:,} bytes and more; expected one record on a line"
                )
            if not (line := raw.rstrip(b"\r\n")).strip():
                continue
            try:
                record = _decode_line(line)
                record = record if isinstance(record, list) else Record(record)
            except BadField as bad:
                source.reject(f"line {number}", bad, line.decode("utf-8", "surrogateescape"))
            else:
                yield number, record


def _decode_line(raw: bytes) -> Any:
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
                if cut and len(self.text) - self.at > _LONGEST:
                    raise self.broken(
                        f"a value of more than {_LONGEST:,} characters", self.at
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

    def broken(self, why: str, pos: int) -> BadField:
        byte, line = (
            self.byte + len(self.text[:pos].encode()),
            self.line + self.text.count("\n", 0, pos),
        )
        what = self.fault or ("the file ends here" if pos >= len(self.text) else why)
        found = f"broken JSON at line {line}, byte {byte}: {what}"
        return BadField(
            "", found, "whole JSON in UTF-8 (was the file written or downloaded whole?)"
        )


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


def key_paths(text: str, *, first: bool = False) -> set[str]:
    """Give the dotted paths of the keys in the beginning of a JSON text, down to three; lists count for nothing.

    :param first: the keys of the first object alone, without those within them.

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
            if len(path) <= (1 if first else 3):
                found.add(".".join(path))
    return found
