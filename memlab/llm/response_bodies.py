"""Bodies of answers, compressed and streamed ones too, which some servers send unasked."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

_GZIP, _STEP = b"\x1f\x8b", 16_384
"""How a member begins; and bytes that are inflated at once."""
_STREAM = (b":", b"data:", b"event:", b"id:", b"retry:")
_PLAIN = ("", "identity", "utf-8")
_ZLIB = ("gzip", "x-gzip", "deflate")


def parse_json(body: bytes) -> Any:
    """Parse a body; a byte that is no UTF-8 becomes a question mark in a diamond.

    :raises ValueError: for what is no JSON, or nests too deeply.
    """
    try:
        return json.loads(body.decode("utf-8-sig", "replace"))
    except RecursionError:
        raise ValueError("the answer nests too deeply") from None


def as_object(value: Any) -> dict[str, Any]:
    """Give an object of JSON as it is, and an empty one for anything else."""
    if isinstance(value, dict):
        return value
    return {}


def as_list(value: Any) -> list[Any]:
    """Give a list of JSON as it is, and an empty one for anything else."""
    if isinstance(value, list):
        return value
    return []


def first_object(value: Any) -> dict[str, Any]:
    """Give the first of a list if it is an object, and an empty one for anything else."""
    return as_object(next(iter(as_list(value)), None))


class DamagedError(ValueError):
    """A compressed body arrived damaged or cut off; another attempt may bring it whole."""


def decompress(body: bytes, encoding: str, limit: int) -> bytes:
    """Give a body as it was before it was compressed, up to a limit.

    :param encoding: the header ``Content-Encoding``; what begins like gzip is read as such without
        it.
    :raises DamagedError: for a body that is damaged or cut off.
    :raises ValueError: for a body that is longer, or is compressed otherwise.

    >>> import gzip
    >>> from memlab.llm.response_bodies import decompress
    >>> decompress(gzip.compress(b"{}"), "gzip", 100)
    b'{}'
    """
    encoding = encoding.strip().lower()
    if not body.startswith(_GZIP):
        if not body or encoding in _PLAIN or body.lstrip().startswith((b"{", b"[", *_STREAM)):
            return body
        if encoding not in _ZLIB:
            raise ValueError(
                f"the answer is compressed as {encoding[:20]!r}, which was not asked for"
            )
    for window_bits in (
        zlib.MAX_WBITS | 32,
        -zlib.MAX_WBITS,
    ):  # with a header, and deflate without one
        with suppress(zlib.error):
            return _inflate(body, window_bits, limit)
    raise DamagedError("the answer is compressed and damaged")


def _inflate(body: bytes, window_bits: int, limit: int) -> bytes:
    """Inflate a body and all members that follow the first; other bytes after one are padding."""
    plain_bytes = bytearray()
    decompressor = zlib.decompressobj(window_bits)
    for chunk_start in range(0, len(body), _STEP):  # what a member leaves over is copied
        compressed_rest = body[chunk_start : chunk_start + _STEP]
        while compressed_rest:
            if decompressor.eof and not compressed_rest.startswith(_GZIP[:1]):
                return bytes(plain_bytes)
            if decompressor.eof:
                decompressor = zlib.decompressobj(window_bits)
            plain_bytes += decompressor.decompress(compressed_rest, limit + 1 - len(plain_bytes))
            if len(plain_bytes) > limit:
                raise ValueError(f"the answer has more than {limit:,} bytes")
            compressed_rest = decompressor.unused_data
    if not decompressor.eof:
        raise DamagedError("the answer is compressed and cut off")
    return bytes(plain_bytes)


def join_stream(body: bytes) -> bytes:
    """Join the events of a stream into the completion that they spell.

    Any other body is given as it is. Comments before one, which keep a connection alive, are left
    out.

    >>> from memlab.llm.response_bodies import join_stream
    >>> join_stream(b'data: {"choices": [{"delta": {"content": "a"}}]}\\n\\ndata: [DONE]\\n\\n')
    b'{"choices": [{"message": {"content": "a"}, "finish_reason": null}]}'
    """
    body_start = body[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not body_start.startswith(_STREAM):
        return body
    # Not at other line separators, which may stand within a JSON string.
    lines = re.split("\r\n|\n|\r", body.decode("utf-8", "replace"))
    chunks = [*_events(lines)]
    if not chunks:
        other_lines = [line for line in lines if not line.startswith(":")]
        return "\n".join(other_lines).encode()
    return json.dumps(_join_chunks(chunks)).encode()


def _events(lines: list[str]) -> Iterator[Any]:
    """Give what the events of a stream hold, but what is no JSON, such as ``[DONE]``."""
    data_lines = list[str]()
    for line in [*lines, ""]:
        if line.startswith("data:"):
            data_lines.append(line.removeprefix("data:").strip())
        elif not line.strip():
            with suppress(ValueError, RecursionError):
                yield json.loads("\n".join(data_lines))
            data_lines = []


def _join_chunks(chunks: list[Any]) -> dict[str, Any]:
    """Join the parts of the first choice: texts one after another, of all else the last."""
    joined_fields = dict[str, Any]()
    message = dict[str, Any]()
    finish_reason = None
    for chunk in map(as_object, chunks):
        for field_name in ("usage", "error"):
            if chunk.get(field_name):
                joined_fields[field_name] = chunk[field_name]
        choice = first_object(chunk.get("choices"))
        if choice.get("index", 0) not in (0, None):
            continue
        finish_reason = choice.get("finish_reason") or finish_reason
        if as_object(choice.get("message")):
            message = dict(choice["message"])
        elif isinstance(choice.get("text"), str):
            _add_part(message, {"content": choice["text"]})
        else:
            _add_part(message, as_object(choice.get("delta")))
    if "error" in joined_fields:
        return joined_fields
    return {"choices": [{"message": message, "finish_reason": finish_reason}], **joined_fields}


def _add_part(message: dict[str, Any], message_part: dict[str, Any]) -> None:
    """Add the part of a message to what came of it; a text to a text, a list to a list."""
    for field_name, value in message_part.items():
        earlier_value: Any = message.get(field_name)
        is_joined = type(earlier_value) is type(value) and field_name != "role"
        if isinstance(value, str | list) and is_joined:
            message[field_name] = earlier_value + value
        elif value is not None:
            message[field_name] = value
