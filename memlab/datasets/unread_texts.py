"""Texts that stand under keys which a reader does not know: they are counted, so that none is lost in silence."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from memlab.datasets.source import Source

_ABOUT = frozenset(
    (
        *("title", "name", "summary", "description", "persona"),
        *("instructions", "system", "system_prompt"),  # which are counted where they are read
    )
)
"""Keys of texts about a conversation, a person or a tool: nobody said these."""
_WORD = re.compile(r"\S*[^\W\d_]\S*")


def count_unread_texts(
    source: Source, scope: str, record: Any, read: Collection[str], spoken: str
) -> None:
    """Count the texts of three words or more in a record that its reader has not read, by their keys.

    :param read: dotted paths of what was read, or is counted elsewhere.
    :param spoken: all that was read of it: what a second key repeats is not lost.
    """
    for path in list_unread_keys(record, read, spoken):
        source.drop(f"texts under the key {path!r}", scope)


def list_unread_keys(
    record: Any, read: Collection[str], spoken: str, path: str = ""
) -> Iterator[str]:
    """Give the dotted path of every such text.

    >>> list(list_unread_keys({"text": "Hi", "aside": {"note": "call her back"}}, {"text"}, "Hi"))
    ['aside.note']
    """
    if isinstance(record, dict):
        for key, value in record.items():
            inner = f"{path}.{key}" if path else str(key)
            if inner not in read and key not in _ABOUT:
                yield from list_unread_keys(value, read, spoken, inner)
    elif isinstance(record, list):
        for value in record:
            yield from list_unread_keys(value, read, spoken, path)
    elif isinstance(record, str) and holds_words(record) and record.strip() not in spoken:
        yield path


def holds_words(text: str) -> bool:
    """Say whether a text has three words or more."""
    return text.count(" ") + text.count("\n") > 1 and len(_WORD.findall(text)) > 2


def join_texts(value: Any) -> str:
    """Join all texts in a value, a line each."""
    texts, waiting = list[str](), [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            texts.append(each)
        elif isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return "\n".join(texts)
