"""Texts that stand under keys which a reader does not know.

They are counted, so that none is lost in silence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from memlab.datasets.record_fields import JsonValue
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
    record: JsonValue,
    read_paths: Collection[str],
    spoken_text: str,
    *,
    is_around_messages: bool = False,
) -> None:
    """Count the texts of three words or more in a record that its reader has not read.

    They are counted by their keys.

    :param read_paths: dotted paths of what was read, or is counted elsewhere.
    :param spoken_text: all that was read of it: what a second key repeats is not lost.
    :param is_around_messages: whether the record is one around messages, whose title or description
        nobody said.
    """
    for path in list_paths_of_unread_texts(
        record, read_paths, spoken_text, is_around_messages=is_around_messages
    ):
        source.drop(f"texts under the key {path!r}", scope)


def list_paths_of_unread_texts(
    record: JsonValue,
    read_paths: Collection[str],
    spoken_text: str,
    path_above: str = "",
    *,
    is_around_messages: bool = False,
) -> Iterator[str]:
    """Give the dotted path of every such text.

    >>> record = {"text": "Hi", "aside": {"note": "call her back"}}
    >>> list(list_paths_of_unread_texts(record, {"text"}, "Hi"))
    ['aside.note']
    """
    if isinstance(record, dict):
        unspoken_keys = _ABOUT if is_around_messages else _NAMES
        for key, value in record.items():
            dotted_path = f"{path_above}.{key}" if path_above else str(key)
            if dotted_path not in read_paths and key not in unspoken_keys:
                yield from list_paths_of_unread_texts(
                    value,
                    read_paths,
                    spoken_text,
                    dotted_path,
                    is_around_messages=is_around_messages,
                )
    elif isinstance(record, list):
        for value in record:
            yield from list_paths_of_unread_texts(
                value, read_paths, spoken_text, path_above, is_around_messages=is_around_messages
            )
    elif isinstance(record, str) and has_three_words(record) and record.strip() not in spoken_text:
        yield path_above


def has_three_words(text: str) -> bool:
    """Say whether a text has three words or more.

    Without spaces between words, as in Japanese, two letters are taken for a word.

    >>> [has_three_words(text) for text in ("call her back", "call back", "来週電話して")]
    [True, False, True]
    """
    n_spaces = text.count(" ") + text.count("\n") + text.count("\t")
    if n_spaces < 2 and text.isascii():
        return False  # as most are
    unspaced_letters = _UNSPACED.findall(text)
    spaced_text = _UNSPACED.sub(" ", text)
    return len(_WORD.findall(spaced_text)) + len(unspaced_letters) // _LETTERS_OF_WORD > 2


def join_all_texts_within(value: JsonValue) -> str:
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
