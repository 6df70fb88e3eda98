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

JsonValue = Any
"""A value out of JSON, or out of a row of a table, of any kind."""
JsonObject = dict[str, JsonValue]
RawTime = str | int | float | datetime
"""A time as a tool writes it."""
UNREADABLE = re.compile("[\x00\ud800-\udfff]")
"""Characters that no text can hold."""
_METADATA = (
    *("metadata", "meta", "additional_kwargs", "extra", "extra_info", "properties"),
    *("attributes", "info", "request_properties"),
)
_METADATA_KEYS = frozenset(_METADATA)


def get_nested(json_value: JsonValue, dotted_path: str) -> JsonValue:
    """Follow keys into objects; ``None`` where one is missing.

    >>> get_nested({"author": {"role": "user"}}, "author.role"), get_nested([], "author")
    ('user', None)
    """
    path_keys: Iterable[str] = (dotted_path,)
    if "." in dotted_path:
        path_keys = dotted_path.split(".")
    for path_key in path_keys:
        if not isinstance(json_value, dict):
            return None
        json_value = json_value.get(path_key)
    return json_value


def get_nested_list(json_value: JsonValue, dotted_path: str) -> list[JsonValue]:
    """Follow keys into objects to a list; anything else is an empty one."""
    return list_or_empty(get_nested(json_value, dotted_path))


def first_filled_list(json_value: JsonValue, *dotted_paths: str) -> list[JsonValue]:
    """Give the first field that is a list with something in it; an empty list if none is.

    >>> first_filled_list({"results": [], "memories": [1]}, "results", "memories")
    [1]
    """
    for dotted_path in dotted_paths:
        listed_value = get_nested_list(json_value, dotted_path)
        if listed_value:
            return listed_value
    return []


def get_nested_objects(json_value: JsonValue, dotted_path: str) -> list[JsonObject]:
    """Follow keys into objects to a list, and give the objects in it.

    >>> get_nested_objects({"files": [{"name": "a.pdf"}, None]}, "files")
    [{'name': 'a.pdf'}]
    """
    return [
        list_value
        for list_value in get_nested_list(json_value, dotted_path)
        if isinstance(list_value, dict)
    ]


def join_unique_names(*names: str) -> str:
    """Join the names of what came with a message into a caption: each once, without empty ones.

    >>> join_unique_names("image", "", "file: a.pdf", "image")
    'image; file: a.pdf'
    """
    return "; ".join(dict.fromkeys(filter(None, names)))


def list_or_empty(json_value: JsonValue) -> list[JsonValue]:
    """Give a list as it is, and anything else as an empty one."""
    if isinstance(json_value, list):
        return json_value
    return []


def first_non_empty_text(*json_values: JsonValue) -> str:
    """Give the first value that can name something, as text without white space around it.

    It is empty if none can.
    """
    for json_value in json_values:
        if not isinstance(json_value, (str, int)) or isinstance(json_value, bool):
            continue
        value_text = str(json_value).strip()
        if not value_text:
            continue
        if value_text.isascii() and "\x00" not in value_text:
            return value_text  # as most are
        return UNREADABLE.sub("\ufffd", value_text)
    return ""


def first_field_text(json_value: JsonValue, *dotted_paths: str) -> str:
    """Give the first field of an object, or of those within it, that can name something.

    It is empty if none can.

    >>> first_field_text({"author": {"name": "Ann"}}, "title", "author.nick", "author.name")
    'Ann'
    """
    for dotted_path in dotted_paths:
        field_text = first_non_empty_text(get_nested(json_value, dotted_path))
        if field_text:
            return field_text
    return ""


def first_filled_field(json_value: JsonValue, *dotted_paths: str) -> JsonValue:
    """Give the first field of an object, or of those within it, that is not empty.

    ``None`` if none is.

    >>> first_filled_field({"messages": [], "data": {"turns": [1]}}, "messages", "data.turns")
    [1]
    """
    for dotted_path in dotted_paths:
        field_value = get_nested(json_value, dotted_path)
        if field_value:
            return field_value
    return None


def first_possible_time(*raw_times: JsonValue) -> RawTime | None:
    """Give the first value that may be a time, out of the object around it.

    ``None`` where none is.
    """
    for time_value in raw_times:
        plain_time = unwrap_time_object(time_value)
        if plain_time is True or not isinstance(plain_time, (str, int, float, datetime)):
            continue
        if plain_time:
            return plain_time
    return None


def list_record_and_its_metadata(raw_record: JsonValue) -> list[JsonObject]:
    """List a record and the objects, or JSON texts, in which it says something about itself.

    >>> list_record_and_its_metadata({"text": "Hi", "metadata": '{"user_id": "ann"}'})[1]
    {'user_id': 'ann'}
    """
    if not isinstance(raw_record, dict):
        return []
    described_objects = [raw_record]
    if _METADATA_KEYS.isdisjoint(raw_record):
        return described_objects
    for metadata_key in _METADATA:
        metadata = decode_if_json_text(raw_record.get(metadata_key))
        if not isinstance(metadata, dict):
            continue
        described_objects.append(metadata)
        inner_metadata = metadata.get("metadata")
        if isinstance(inner_metadata, dict):
            described_objects.append(inner_metadata)
    return described_objects


def decode_if_json_text(json_value: JsonValue) -> JsonValue:
    """Decode JSON in a string, as tables have it; anything else stays as it is."""
    if not isinstance(json_value, str) or json_value.lstrip()[:1] not in ("{", "["):
        return json_value
    try:
        return json.loads(json_value)
    except (ValueError, RecursionError):
        return json_value
