"""Bodies of answers, compressed and streamed ones too, which some servers send unasked."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

JsonValue = Any
"""What :func:`json.loads` gives: an object, a list, a text, a number, a truth value or ``None``."""
JsonObject = dict[str, Any]
"""An object of JSON, which may hold anything."""

_GZIP, _STEP = b"\x1f\x8b", 16_384
"""How a member begins; and bytes that are inflated at once."""
_STREAM = (b":", b"data:", b"event:", b"id:", b"retry:")
_PLAIN = ("", "identity", "utf-8")
_ZLIB = ("gzip", "x-gzip", "deflate")


def parse_json_body(response_body: bytes) -> JsonValue:
    """Parse a body; a byte that is no UTF-8 becomes a question mark in a diamond.

    :raises ValueError: for what is no JSON, or nests too deeply.
    """
    try:
        return json.loads(response_body.decode("utf-8-sig", "replace"))
    except RecursionError:
        raise ValueError("the answer nests too deeply") from None


def object_or_empty(json_value: JsonValue) -> JsonObject:
    """Give an object of JSON as it is, and an empty one for anything else."""
    if isinstance(json_value, dict):
        return json_value
    return {}


def list_or_empty(json_value: JsonValue) -> list[JsonValue]:
    """Give a list of JSON as it is, and an empty one for anything else."""
    if isinstance(json_value, list):
        return json_value
    return []


def first_object_or_empty(json_value: JsonValue) -> JsonObject:
    """Give the first of a list if it is an object, and an empty one for anything else."""
    return object_or_empty(next(iter(list_or_empty(json_value)), None))


class DamagedError(ValueError):
    """A compressed body arrived damaged or cut off; another attempt may bring it whole."""


def decompress_body(response_body: bytes, content_encoding: str, max_bytes: int) -> bytes:
    """Give a body as it was before it was compressed, up to a limit.

    :param content_encoding: the header ``Content-Encoding``; what begins like gzip is read as such
        without it.
    :raises DamagedError: for a body that is damaged or cut off.
    :raises ValueError: for a body that is longer, or is compressed otherwise.

    >>> import gzip
    >>> from memlab.llm.response_bodies import decompress_body
    >>> decompress_body(gzip.compress(b"{}"), "gzip", 100)
    b'{}'
    """
    content_encoding = content_encoding.strip().lower()
    if not response_body.startswith(_GZIP):
        if (
            not response_body
            or content_encoding in _PLAIN
            or response_body.lstrip().startswith((b"{", b"[", *_STREAM))
        ):
            return response_body
        if content_encoding not in _ZLIB:
            raise ValueError(
                f"the answer is compressed as {content_encoding[:20]!r}, which was not asked for"
            )
    for window_bits in (
        zlib.MAX_WBITS | 32,
        -zlib.MAX_WBITS,
    ):  # with a header, and deflate without one
        with suppress(zlib.error):
            return _inflate_all_members(response_body, window_bits, max_bytes)
    raise DamagedError("the answer is compressed and damaged")


def _inflate_all_members(compressed_body: bytes, window_bits: int, max_bytes: int) -> bytes:
    """Inflate a body and all members that follow the first; other bytes after one are padding."""
    plain_bytes = bytearray()
    decompressor = zlib.decompressobj(window_bits)
    for chunk_start in range(0, len(compressed_body), _STEP):  # what a member leaves over is copied
        compressed_rest = compressed_body[chunk_start : chunk_start + _STEP]
        while compressed_rest:
            if decompressor.eof and not compressed_rest.startswith(_GZIP[:1]):
                return bytes(plain_bytes)
            if decompressor.eof:
                decompressor = zlib.decompressobj(window_bits)
            plain_bytes += decompressor.decompress(
                compressed_rest, max_bytes + 1 - len(plain_bytes)
            )
            if len(plain_bytes) > max_bytes:
                raise ValueError(f"the answer has more than {max_bytes:,} bytes")
            compressed_rest = decompressor.unused_data
    if not decompressor.eof:
        raise DamagedError("the answer is compressed and cut off")
    return bytes(plain_bytes)


def join_event_stream(response_body: bytes) -> bytes:
    """Join the events of a stream into the completion that they spell.

    Any other body is given as it is. Comments before one, which keep a connection alive, are left
    out.

    >>> from memlab.llm.response_bodies import join_event_stream
    >>> event = b'data: {"choices": [{"delta": {"content": "a"}}]}\\n\\n'
    >>> join_event_stream(event + b"data: [DONE]\\n\\n")
    b'{"choices": [{"message": {"content": "a"}, "finish_reason": null}]}'
    """
    body_start = response_body[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not body_start.startswith(_STREAM):
        return response_body
    # Not at other line separators, which may stand within a JSON string.
    stream_lines = re.split("\r\n|\n|\r", response_body.decode("utf-8", "replace"))
    chunks = [*_parse_event_data(stream_lines)]
    if not chunks:
        other_lines = [line for line in stream_lines if not line.startswith(":")]
        return "\n".join(other_lines).encode()
    return json.dumps(_join_chunks_into_completion(chunks)).encode()


def _parse_event_data(stream_lines: list[str]) -> Iterator[JsonValue]:
    """Give what the events of a stream hold, but what is no JSON, such as ``[DONE]``."""
    data_lines = list[str]()
    for line in [*stream_lines, ""]:
        if line.startswith("data:"):
            data_lines.append(line.removeprefix("data:").strip())
        elif not line.strip():
            with suppress(ValueError, RecursionError):
                yield json.loads("\n".join(data_lines))
            data_lines = []


def _join_chunks_into_completion(chunks: list[JsonValue]) -> JsonObject:
    """Join the parts of the first choice: texts one after another, of all else the last."""
    joined_fields = dict[str, Any]()
    message = dict[str, Any]()
    finish_reason = None
    for chunk in map(object_or_empty, chunks):
        for field_name in ("usage", "error"):
            if chunk.get(field_name):
                joined_fields[field_name] = chunk[field_name]
        choice = first_object_or_empty(chunk.get("choices"))
        if choice.get("index", 0) not in (0, None):
            continue
        finish_reason = choice.get("finish_reason") or finish_reason
        if object_or_empty(choice.get("message")):
            message = dict(choice["message"])
        elif isinstance(choice.get("text"), str):
            _append_message_part(message, {"content": choice["text"]})
        else:
            _append_message_part(message, object_or_empty(choice.get("delta")))
    if "error" in joined_fields:
        return joined_fields
    return {"choices": [{"message": message, "finish_reason": finish_reason}], **joined_fields}


def _append_message_part(message: JsonObject, message_part: JsonObject) -> None:
    """Add the part of a message to what came of it; a text to a text, a list to a list."""
    for field_name, value in message_part.items():
        earlier_value: Any = message.get(field_name)
        is_joined = type(earlier_value) is type(value) and field_name != "role"
        if isinstance(value, str | list) and is_joined:
            message[field_name] = earlier_value + value
        elif value is not None:
            message[field_name] = value
