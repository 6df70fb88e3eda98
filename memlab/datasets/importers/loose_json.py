"""Values out of JSON that nobody checked: what is missing or of another kind is empty, never an
error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from memlab.datasets.time_forms import unwrap_time_object

UNREADABLE = re.compile("[\x00\ud800-\udfff]")
"""Characters that no text can hold."""
_METADATA = (
    *("metadata", "meta", "additional_kwargs", "extra", "extra_info", "properties"),
    *("attributes", "info", "request_properties"),
)
_METADATA_KEYS = frozenset(_METADATA)


def get_nested(value: Any, path: str) -> Any:
    """Follow keys into objects; ``None`` where one is missing.

    >>> get_nested({"author": {"role": "user"}}, "author.role"), get_nested([], "author")
    ('user', None)
    """
    path_keys: Iterable[str] = (path,)
    if "." in path:
        path_keys = path.split(".")
    for path_key in path_keys:
        if not isinstance(value, dict):
            return None
        value = value.get(path_key)
    return value


def get_list(value: Any, path: str) -> list[Any]:
    """Follow keys into objects to a list; anything else is an empty one."""
    return list_or_empty(get_nested(value, path))


def first_list(value: Any, *paths: str) -> list[Any]:
    """Give the first field that is a list with something in it; an empty list if none is.

    >>> first_list({"results": [], "memories": [1]}, "results", "memories")
    [1]
    """
    for path in paths:
        listed_value = get_list(value, path)
        if listed_value:
            return listed_value
    return []


def get_objects(value: Any, path: str) -> list[dict[str, Any]]:
    """Follow keys into objects to a list, and give the objects in it.

    >>> get_objects({"files": [{"name": "a.pdf"}, None]}, "files")
    [{'name': 'a.pdf'}]
    """
    return [list_value for list_value in get_list(value, path) if isinstance(list_value, dict)]


def join_names(*names: str) -> str:
    """Join the names of what came with a message into a caption: each once, without empty ones.

    >>> join_names("image", "", "file: a.pdf", "image")
    'image; file: a.pdf'
    """
    return "; ".join(dict.fromkeys(filter(None, names)))


def list_or_empty(value: Any) -> list[Any]:
    """Give a list as it is, and anything else as an empty one."""
    if isinstance(value, list):
        return value
    return []


def first_text(*values: Any) -> str:
    """Give the first value that can name something, as text without white space around it.

    It is empty if none can.
    """
    for value in values:
        if not isinstance(value, (str, int)) or isinstance(value, bool):
            continue
        value_text = str(value).strip()
        if not value_text:
            continue
        if value_text.isascii() and "\x00" not in value_text:
            return value_text  # as most are
        return UNREADABLE.sub("\ufffd", value_text)
    return ""


def first_field(value: Any, *paths: str) -> str:
    """Give the first field of an object, or of those within it, that can name something.

    It is empty if none can.

    >>> first_field({"author": {"name": "Ann"}}, "title", "author.nick", "author.name")
    'Ann'
    """
    for path in paths:
        field_text = first_text(get_nested(value, path))
        if field_text:
            return field_text
    return ""


def first_filled(value: Any, *paths: str) -> Any:
    """Give the first field of an object, or of those within it, that is not empty.

    ``None`` if none is.

    >>> first_filled({"messages": [], "data": {"turns": [1]}}, "messages", "data.turns")
    [1]
    """
    for path in paths:
        field_value = get_nested(value, path)
        if field_value:
            return field_value
    return None


def first_time(*values: Any) -> Any:
    """Give the first value that may be a time, out of the object around it.

    ``None`` where none is.
    """
    for time_value in values:
        plain_time = unwrap_time_object(time_value)
        if plain_time is True or not isinstance(plain_time, (str, int, float, datetime)):
            continue
        if plain_time:
            return plain_time
    return None


def list_with_metadata(raw: Any) -> list[dict[str, Any]]:
    """List a record and the objects, or JSON texts, in which it says something about itself.

    >>> list_with_metadata({"text": "Hi", "metadata": '{"user_id": "ann"}'})[1]
    {'user_id': 'ann'}
    """
    if not isinstance(raw, dict):
        return []
    described_objects = [raw]
    if _METADATA_KEYS.isdisjoint(raw):
        return described_objects
    for metadata_key in _METADATA:
        metadata = decode_json(raw.get(metadata_key))
        if not isinstance(metadata, dict):
            continue
        described_objects.append(metadata)
        inner_metadata = metadata.get("metadata")
        if isinstance(inner_metadata, dict):
            described_objects.append(inner_metadata)
    return described_objects


def decode_json(value: Any) -> Any:
    """Decode JSON in a string, as tables have it; anything else stays as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
