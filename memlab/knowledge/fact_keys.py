"""The keys by which facts are compared: folded parts, near-equal ones joined by an encoder."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from memlab.embed import Encoder
from memlab.knowledge.known_facts import FactRow
from memlab.knowledge.near_spelling import (
    EarlierRows,
    find_similarly_spelled_slots,
    find_values_containing_one_another,
)

SAME_SLOT_COSINE = 0.90
SAME_VALUE_COSINE = 0.95
_CACHE_SIZE = 100_000  # texts of which the folded form is remembered
_OPENING = " \"'“”„‚‘«‹([{「『《<¿¡"
_CLOSING = " \"'“”‘’»›)]}」』》>.,;:。、…"
_EXCLAMATIONS = "!?"
_CODE = re.compile(r"\S*\d\S*")

KeyByOwnerAndText = dict[tuple[Hashable, str], str]
"""Owner and folded text → key of the text among those of its owner."""


class ComparisonKeys(NamedTuple):
    """The keys of the parts of a fact, beside its scope: equal keys mean the same."""

    scope: str
    about: str
    slot: str
    value: str


@lru_cache(maxsize=_CACHE_SIZE)
def fold_text(text: str) -> str:
    """Fold the characters, the case, the blanks and the outer punctuation of a text.

    An exclamation or question mark behind a token that has a digit stays where that is the whole
    text: it may belong to a password.

    >>> from memlab.knowledge.fact_keys import fold_text
    >>> fold_text(" “ACME,  Inc.” "), fold_text("Ｏｓｌｏ！")
    ('acme, inc', 'oslo')
    >>> fold_text("hunter2!"), fold_text("C#")
    ('hunter2!', 'c#')
    """
    plain_text = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    closing_signs = _CLOSING
    if not _CODE.fullmatch(plain_text):
        closing_signs += _EXCLAMATIONS
    return plain_text.lstrip(_OPENING).rstrip(closing_signs) or plain_text


def make_comparison_keys(
    fact_rows: Sequence[FactRow], encoder: Encoder | None
) -> list[ComparisonKeys]:
    """Give the keys of the parts of facts.

    Without an encoder they are the folded texts. With one, a slot has the key of the first slot of
    its subject whose cosine with it reaches 0.90, and a value that of the first value of its
    subject and slot at 0.95. As vectors of "every Monday in the office" and "every Tuesday in the
    office" are as near as that, the texts must agree too: slots word by word but for a letter
    ("door codes"), values but for words that one has beside those of the other ("a nurse"). Texts
    that differ in a token with a digit stay apart, and so does a value of one token.

    :param fact_rows: facts with ``scope``, ``about``, ``slot`` and ``value``, in the order in
        which they were said.

    >>> from memlab.knowledge.fact_keys import make_comparison_keys
    >>> fact = {"scope": "u", "about": "Mel", "slot": "Door code", "value": "12u34."}
    >>> make_comparison_keys([fact], None)
    [ComparisonKeys(scope='u', about='mel', slot='door code', value='12u34')]
    """
    subjects = [(row["scope"], fold_text(row["about"])) for row in fact_rows]
    slot_texts = [row["slot"] for row in fact_rows]
    slot_keys = _give_near_texts_one_key(
        zip(subjects, slot_texts, strict=True),
        encoder,
        SAME_SLOT_COSINE,
        find_similarly_spelled_slots,
    )
    value_owners = []
    for subject, part_text in zip(subjects, slot_texts, strict=True):
        value_owners.append((*subject, slot_keys[subject, fold_text(part_text)]))
    value_texts = [row["value"] for row in fact_rows]
    value_keys = _give_near_texts_one_key(
        zip(value_owners, value_texts, strict=True),
        encoder,
        SAME_VALUE_COSINE,
        find_values_containing_one_another,
    )
    fact_parts = []
    for owner, part_text in zip(value_owners, value_texts, strict=True):
        fact_parts.append(ComparisonKeys(*owner, value_keys[owner, fold_text(part_text)]))
    return fact_parts


def _give_near_texts_one_key(
    owners_and_texts: Iterable[tuple[Hashable, str]],
    encoder: Encoder | None,
    min_cosine: float,
    find_near_spelling: Callable[[Sequence[str]], EarlierRows],
) -> KeyByOwnerAndText:
    """Give each text of an owner the key of the first one near it, else its own.

    :param find_near_spelling: gives the rows of texts that may be one by their spelling.
    """
    spellings_by_owner: dict[Hashable, dict[str, str]] = {}
    for owner, text in owners_and_texts:
        spellings_by_owner.setdefault(owner, {}).setdefault(fold_text(text), text)
    joined_keys: KeyByOwnerAndText = {}
    for owner, spellings in spellings_by_owner.items():
        for folded_text in spellings:
            joined_keys[owner, folded_text] = folded_text
    if encoder is None:
        return joined_keys
    near_rows = {}
    number_by_text: dict[str, int] = {}
    for owner, spellings in spellings_by_owner.items():
        near_rows[owner] = find_near_spelling(list(spellings))
        for text in _select_compared_texts(near_rows[owner], list(spellings.values())):
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
                    >= min_cosine
                ):
                    joined_keys[owner, folded_texts[text_row]] = joined_keys[
                        owner, folded_texts[earlier_row]
                    ]
                    break
    return joined_keys


def _select_compared_texts(earlier_rows_by_row: EarlierRows, texts: Sequence[str]) -> Iterator[str]:
    """Give the texts of rows and of those before them that they may be one with, in order."""
    compared_rows = set(earlier_rows_by_row).union(*earlier_rows_by_row.values())
    for row in sorted(compared_rows):
        yield texts[row]
