"""Which subjects and values are one though their words differ: near vectors, with a veto."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from memlab.embed import Encoder
from memlab.knowledge.normal import Statement, Value, apart, value

SAME_TEXT = 0.85
_BLOCK = 1024

Keys = list[tuple[str, str, str | None]]
"""Of each statement: subject, value, and the value that it replaces."""


def keys(scopes: Sequence[str], statements: Sequence[Statement], encoder: Encoder | None) -> Keys:
    """Give the keys of statements: equal keys mean the same.

    Without an encoder normal forms are the keys. With one, texts whose cosine reaches 0.85 are one subject of a scope,
    or one value of a subject, unless a number, a name or a closed series (weekdays, relatives …) sets them apart. The
    threshold was chosen with all-MiniLM-L6-v2; choose it again for another encoder. Relations are compared by normal
    form alone: opposites ("pays", "earns") are near each other too.
    """
    subjects = _merged(zip(scopes, (s.subject for s in statements), strict=True), encoder, of_subjects=True)
    owners = [(scope, subjects[scope, s.subject]) for scope, s in zip(scopes, statements, strict=True)]
    stated = [(owner, text) for owner, s in zip(owners, statements, strict=True) for text in (s.value, s.instead)]
    values = _merged([(owner, text) for owner, text in stated if text is not None], encoder, of_subjects=False)
    return [
        (owner[1], values[owner, s.value], None if s.instead is None else values[owner, s.instead])
        for owner, s in zip(owners, statements, strict=True)
    ]


def _merged(
    texts: Iterable[tuple[Hashable, str]], encoder: Encoder | None, *, of_subjects: bool
) -> dict[tuple[Hashable, str], str]:
    """Give each text of a group the normal form of the first text that it is one with."""
    forms = {(group, text): value(text) for group, text in texts}
    groups: defaultdict[Hashable, dict[str, str]] = defaultdict(dict)
    for (group, text), form in forms.items():
        if any(letter.isalpha() for letter in text):
            groups[group].setdefault(form.key, text)
    several = {group: members for group, members in groups.items() if len(members) > 1 and encoder is not None}
    wanted = list({text: None for members in several.values() for text in members.values()})
    encoded = encoder.encode(wanted, progress=False) if encoder is not None and wanted else ()
    vectors = dict(zip(wanted, encoded, strict=True))
    names: dict[tuple[Hashable, str], str] = {}
    for group, members in several.items():
        its = [forms[group, text] for text in members.values()]
        label = _components(np.array([vectors[text] for text in members.values()]), its, of_subjects=of_subjects)
        first: dict[int, str] = {}
        names |= {(group, key): first.setdefault(at, key) for key, at in zip(members, label, strict=True)}
    return {(group, text): names.get((group, form.key), form.key) for (group, text), form in forms.items()}


def _components(vectors: np.ndarray, forms: Sequence[Value], *, of_subjects: bool) -> list[int]:
    """Number the groups of texts that are joined by pairs that are near and that nothing sets apart."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    joined: list[tuple[int, int]] = []
    for start in range(0, len(vectors), _BLOCK):
        cosine = vectors[start : start + _BLOCK] @ vectors.T
        for i, j in np.argwhere(np.triu(cosine >= SAME_TEXT, start + 1)):
            a, b = forms[i + start], forms[j]
            # "Ann" and "Ann's neighbour" are two.
            if not apart(a, b) and not (of_subjects and (a.within(b) or b.within(a))):
                joined.append((int(i) + start, int(j)))
    rows, columns = zip(*joined, strict=True) if joined else ((), ())
    ones = np.ones(len(joined), dtype=np.int8)
    return list(connected_components(coo_array((ones, (rows, columns)), shape=(len(forms),) * 2), directed=False)[1])
