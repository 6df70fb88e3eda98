"""The keys by which facts are compared: folded parts, near-equal ones joined by an encoder."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from memlab.embed import Encoder
from memlab.knowledge.near_spelling import Earlier, find_near_slots, find_near_values

SAME_SLOT_COSINE = 0.90
SAME_VALUE_COSINE = 0.95
_CACHE_SIZE = 100_000  # texts of which the folded form is remembered
_OPENING = " \"'“”„‚‘«‹([{「『《<¿¡"
_CLOSING = " \"'“”‘’»›)]}」』》>.,;:。、…"
_EXCLAMATIONS = "!?"
_CODE = re.compile(r"\S*\d\S*")

Joined = dict[tuple[Hashable, str], str]
"""Owner and folded text → key of the text among those of its owner."""


class Parts(NamedTuple):
    """The keys of the parts of a fact, beside its scope: equal keys mean the same."""

    scope: str
    about: str
    slot: str
    value: str


@lru_cache(maxsize=_CACHE_SIZE)
def fold(text: str) -> str:
    """Fold the characters, the case, the blanks and the outer punctuation of a text.

    An exclamation or question mark behind a token that has a digit stays where that is the whole
    text: it may belong to a password.

    >>> from memlab.knowledge.fact_keys import fold
    >>> fold(" “ACME,  Inc.” "), fold("Ｏｓｌｏ！"), fold("hunter2!"), fold("C#")
    ('acme, inc', 'oslo', 'hunter2!', 'c#')
    """
    plain_text = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    closing_signs = _CLOSING
    if not _CODE.fullmatch(plain_text):
        closing_signs += _EXCLAMATIONS
    return plain_text.lstrip(_OPENING).rstrip(closing_signs) or plain_text


def part_keys(rows: list[dict[str, Any]], encoder: Encoder | None) -> list[Parts]:
    """Give the keys of the parts of facts.

    Without an encoder they are the folded texts. With one, a slot has the key of the first slot of
    its subject whose cosine with it reaches 0.90, and a value that of the first value of its
    subject and slot at 0.95. As vectors of "every Monday in the office" and "every Tuesday in the
    office" are as near as that, the texts must agree too: slots word by word but for a letter
    ("door codes"), values but for words that one has beside those of the other ("a nurse"). Texts
    that differ in a token with a digit stay apart, and so does a value of one token.

    :param rows: facts with ``scope``, ``about``, ``slot`` and ``value``, in the order in which they
        were said.

    >>> from memlab.knowledge.fact_keys import part_keys
    >>> part_keys([{"scope": "u", "about": "Mel", "slot": "Door code", "value": "12u34."}], None)
    [Parts(scope='u', about='mel', slot='door code', value='12u34')]
    """
    subjects = [(row["scope"], fold(row["about"])) for row in rows]
    slot_texts = [row["slot"] for row in rows]
    slot_keys = _join(
        zip(subjects, slot_texts, strict=True), encoder, SAME_SLOT_COSINE, find_near_slots
    )
    value_owners = []
    for subject, part_text in zip(subjects, slot_texts, strict=True):
        value_owners.append((*subject, slot_keys[subject, fold(part_text)]))
    value_texts = [row["value"] for row in rows]
    value_keys = _join(
        zip(value_owners, value_texts, strict=True), encoder, SAME_VALUE_COSINE, find_near_values
    )
    fact_parts = []
    for owner, part_text in zip(value_owners, value_texts, strict=True):
        fact_parts.append(Parts(*owner, value_keys[owner, fold(part_text)]))
    return fact_parts


def _join(
    texts: Iterable[tuple[Hashable, str]],
    encoder: Encoder | None,
    threshold: float,
    find_near: Callable[[Sequence[str]], Earlier],
) -> Joined:
    """Give each text of an owner the key of the first one near it, else its own.

    :param find_near: gives the rows of texts that may be one by their spelling.
    """
    spellings_by_owner: dict[Hashable, dict[str, str]] = {}
    for owner, text in texts:
        spellings_by_owner.setdefault(owner, {}).setdefault(fold(text), text)
    joined_keys: Joined = {}
    for owner, spellings in spellings_by_owner.items():
        for folded_text in spellings:
            joined_keys[owner, folded_text] = folded_text
    if encoder is None:
        return joined_keys
    near_rows = {}
    number_by_text: dict[str, int] = {}
    for owner, spellings in spellings_by_owner.items():
        near_rows[owner] = find_near(list(spellings))
        for text in _texts_of(near_rows[owner], list(spellings.values())):
            number_by_text.setdefault(text, len(number_by_text))
    if not number_by_text:
        return joined_keys
    vectors = encoder.encode(list(number_by_text), progress=False)
    for owner, earlier in near_rows.items():
        folded_texts = list(spellings_by_owner[owner])
        text_numbers = [number_by_text.get(text, -1) for text in spellings_by_owner[owner].values()]
        for text_row, earlier_rows in earlier.items():
            for earlier_row in earlier_rows:
                if (
                    vectors[text_numbers[text_row]] @ vectors[text_numbers[earlier_row]]
                    >= threshold
                ):
                    joined_keys[owner, folded_texts[text_row]] = joined_keys[
                        owner, folded_texts[earlier_row]
                    ]
                    break
    return joined_keys


def _texts_of(earlier: Earlier, texts: Sequence[str]) -> Iterator[str]:
    """Give the texts of rows and of those before them that they may be one with, in order."""
    compared_rows = set(earlier).union(*earlier.values())
    for row in sorted(compared_rows):
        yield texts[row]
