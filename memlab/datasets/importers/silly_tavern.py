"""SillyTavern's chats: JSON lines, the first of which says who talks, then a message a line.

Layout: SillyTavern's ``public/script.js`` (``saveChat``, ``getMessageTimeStamp``). ``swipes`` are
the versions of an answer, of which ``mes`` is shown; what the program itself says has a kind in
``extra.type``. A message that was hidden from the model stays one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from memlab.datasets.importers.export_messages import OWNER_SCOPE, Message, make_message
from memlab.datasets.importers.loose_json import first_field, get_list, get_nested
from memlab.datasets.source import Source

_FORMS = ("%B %d, %Y %I:%M%p", "%B %d, %Y %I:%M %p", "%b %d, %Y %I:%M%p", "%B %d, %Y %H:%M")
_STAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2}) ?@ ?(\d{1,2})h ?(\d{1,2})m ?(\d{1,2})s(?: ?(\d{1,3})ms)?"
)
_PROGRAM = {"sillytavern system", "system", "note", "sillytavern"}


def is_silly_tavern_chat(file: Source) -> bool:
    keys = file.keys
    return {"mes", "is_user"} <= keys or {"chat_metadata", "character_name"} <= keys


def read_silly_tavern_chat(source: Source) -> Iterator[Message]:
    """Read every chat as a session of one scope; the character is the assistant."""
    for file in source.members:
        session = PurePosixPath(file.name).stem
        for _, raw in file.values():
            if first_field(raw, "character_name", "user_name") and "mes" not in raw:
                note = first_field(raw, "chat_metadata.note_prompt")
                source.drop("system messages", OWNER_SCOPE, bool(note))
                continue
            yield from _read_message(source, session, raw)


def _read_message(source: Source, session: str, each: Any) -> Iterator[Message]:
    if not isinstance(each, dict):
        source.drop("unreadable messages", OWNER_SCOPE)
        return
    name = first_field(each, "name")
    is_user = each.get("is_user") is True
    swipes = get_list(each, "swipes")
    source.drop("messages of other branches", OWNER_SCOPE, max(0, len(swipes) - 1))
    source.drop("thoughts", OWNER_SCOPE, bool(first_field(each, "extra.reasoning")))
    is_named_so = each.get("is_system") is True and name.lower() in _PROGRAM
    if first_field(each, "extra.type") or is_named_so:
        source.drop("system messages", OWNER_SCOPE)
        return
    if each.get("is_system") is True:
        source.keep("messages hidden from the model", OWNER_SCOPE)
    role = "user" if is_user else "assistant"
    more = {"session": session, "role": role, "caption": _caption(each)}
    more["timestamp"] = _read_time(each.get("send_date"))
    text = first_field(each, "mes") or _shown_swipe(each, swipes)
    yield from make_message(source, OWNER_SCOPE, name or role, text, **more)


def _shown_swipe(each: dict[str, Any], swipes: list[Any]) -> str:
    place = each.get("swipe_id")
    if isinstance(place, int) and 0 <= place < len(swipes):
        return first_field({"mes": swipes[place]}, "mes")
    return ""


def _caption(each: dict[str, Any]) -> str:
    """Describe the image or the files of a message."""
    extra = get_nested(each, "extra")
    images = [
        get_nested(extra, "image"),
        *get_list(extra, "image_swipes"),
        *get_list(extra, "media"),
    ]
    files = [get_nested(extra, "file"), *get_list(extra, "files")]
    title = first_field(extra, "title")
    parts = [f"image: {title}" if title else "image"] if any(images) else []
    parts += [f"file: {name}" for file in files if (name := first_field(file, "name"))]
    return "; ".join(parts)


def _read_time(written: Any) -> Any:
    """Give a time as ISO 8601 writes it; one in another form as it stands."""
    if not isinstance(written, str):
        return written
    if found := _STAMP.fullmatch(written.strip()):
        *parts, thousandths = (int(part or 0) for part in found.groups())
        with suppress(ValueError):
            return datetime(*parts, thousandths * 1000).isoformat()
    for form in _FORMS:
        with suppress(ValueError):
            return datetime.strptime(written.strip(), form).isoformat()
    return written
