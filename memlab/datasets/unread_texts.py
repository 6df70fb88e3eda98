"""Texts that stand under keys which a reader does not know.

They are counted, so that none is lost in silence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from memlab.datasets.record_sources import Source

_ABOUT = frozenset(
    (
        *("title", "name", "summary", "description", "persona"),
        *("instructions", "system", "system_prompt"),  # which are counted where they are read
    )
)
"""Keys of texts about a conversation, a person or a tool, beside its messages.

Nobody said these.
"""
_NAMES = frozenset(("name",))
"""Keys of texts that nobody said also within a message."""
_WORD = re.compile(r"\S*[^\W\d_]\S*")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Tibetan, Burmese, Khmer
    "\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""A letter of a script that puts no spaces between words."""
_LETTERS_OF_WORD = 2
"""How many such letters are taken for a word."""


def count_unread_texts(
    source: Source,
    scope: str,
    record: Any,
    read: Collection[str],
    spoken: str,
    *,
    around: bool = False,
) -> None:
    """Count the texts of three words or more in a record that its reader has not read.

    They are counted by their keys.

    :param read: dotted paths of what was read, or is counted elsewhere.
    :param spoken: all that was read of it: what a second key repeats is not lost.
    :param around: whether the record is one around messages, whose title or description nobody
        said.
    """
    for path in list_unread_keys(record, read, spoken, around=around):
        source.drop(f"texts under the key {path!r}", scope)


def list_unread_keys(
    record: Any, read: Collection[str], spoken: str, path: str = "", *, around: bool = False
) -> Iterator[str]:
    """Give the dotted path of every such text.

    >>> list(list_unread_keys({"text": "Hi", "aside": {"note": "call her back"}}, {"text"}, "Hi"))
    ['aside.note']
    """
    if isinstance(record, dict):
        unspoken_keys = _ABOUT if around else _NAMES
        for key, value in record.items():
            dotted_path = f"{path}.{key}" if path else str(key)
            if dotted_path not in read and key not in unspoken_keys:
                yield from list_unread_keys(value, read, spoken, dotted_path, around=around)
    elif isinstance(record, list):
        for value in record:
            yield from list_unread_keys(value, read, spoken, path, around=around)
    elif isinstance(record, str) and holds_words(record) and record.strip() not in spoken:
        yield path


def holds_words(text: str) -> bool:
    """Say whether a text has three words or more.

    Without spaces between words, as in Japanese, two letters are taken for a word.

    >>> holds_words("call her back"), holds_words("call back"), holds_words("来週電話して")
    (True, False, True)
    """
    n_spaces = text.count(" ") + text.count("\n") + text.count("\t")
    if n_spaces < 2 and text.isascii():
        return False  # as most are
    unspaced_letters = _UNSPACED.findall(text)
    spaced_text = _UNSPACED.sub(" ", text)
    return len(_WORD.findall(spaced_text)) + len(unspaced_letters) // _LETTERS_OF_WORD > 2


def join_texts(value: Any) -> str:
    """Join all texts in a value, a line each."""
    texts = list[str]()
    waiting_values = [value]
    while waiting_values:
        element = waiting_values.pop()
        if isinstance(element, str):
            texts.append(element)
        elif isinstance(element, dict):
            waiting_values += element.values()
        elif isinstance(element, list):
            waiting_values += element
    return "\n".join(texts)
