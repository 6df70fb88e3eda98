"""Values out of JSON that nobody checked: what is missing or of another kind is empty, never an error."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from memlab.datasets.time_forms import unwrap_time

UNREADABLE = re.compile("[\x00\ud800-\udfff]")
"""Characters that no text can hold."""


def get_nested(value: Any, path: str) -> Any:
    """Follow keys into objects; ``None`` where one is missing.

    >>> get_nested({"author": {"role": "user"}}, "author.role"), get_nested([], "author")
    ('user', None)
    """
    if "." not in path:
        return value.get(path) if isinstance(value, dict) else None
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def get_list(value: Any, path: str) -> list[Any]:
    """Follow keys into objects to a list; anything else is an empty one."""
    return list_or_empty(get_nested(value, path))


def join_names(*names: str) -> str:
    """Join the names of what came with a message into a caption: each once, without empty ones.

    >>> join_names("image", "", "file: a.pdf", "image")
    'image; file: a.pdf'
    """
    return "; ".join(dict.fromkeys(filter(None, names)))


def list_or_empty(value: Any) -> list[Any]:
    """Give a list as it is, and anything else as an empty one."""
    return value if isinstance(value, list) else []


def first_text(*values: Any) -> str:
    """Give the first value that can name something, as text without white space around it; empty if none can."""
    for value in values:
        if (
            isinstance(value, (str, int))
            and not isinstance(value, bool)
            and (text := str(value).strip())
        ):
            return UNREADABLE.sub("\ufffd", text)
    return ""


def first_field(value: Any, *paths: str) -> str:
    """Give the first field of an object, or of those within it, that can name something; empty if none can.

    >>> first_field({"author": {"name": "Ann"}}, "title", "author.nick", "author.name")
    'Ann'
    """
    return first_text(*(get_nested(value, path) for path in paths))


def first_time(*values: Any) -> Any:
    """Give the first value that may be a time, out of the object around it; ``None`` where none is."""
    for each in values:
        value = unwrap_time(each)
        if isinstance(value, (str, int, float, datetime)) and value and value is not True:
            return value
    return None


def decode_json(value: Any) -> Any:
    """Decode JSON in a string, as tables have it; anything else stays as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
