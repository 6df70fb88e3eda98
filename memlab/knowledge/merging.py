"""Which values are one though their words differ: near vectors, with a veto."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable

from memlab.embed import Encoder
from memlab.knowledge.normal import apart, value

SAME_TEXT = 0.85


def keys(texts: Iterable[tuple[Hashable, str]], encoder: Encoder | None) -> dict[tuple[Hashable, str], str]:
    """Give each value of an owner a key: equal keys mean the same.

    Without an encoder normal forms are the keys. With one, a value has the key of the first value of its owner whose
    cosine with it reaches 0.85, unless a number, a name or a closed series (weekdays, colours …) sets them apart. The
    threshold was chosen with all-MiniLM-L6-v2; choose it again for another encoder. Subjects and relations are compared
    by normal form alone: opposites ("pays", "earns") are near each other too.

    :param texts: pairs of an owner and the text of a value.
    """
    forms = {(owner, text): value(text) for owner, text in texts}
    if encoder is None:
        return {its: form.key for its, form in forms.items()}
    owners: defaultdict[Hashable, dict[str, str]] = defaultdict(dict)
    for (owner, text), form in forms.items():
        if any(letter.isalpha() for letter in text):
            owners[owner].setdefault(form.key, text)
    several = [members for members in owners.values() if len(members) > 1]
    wanted = list({text: None for members in several for text in members.values()})
    at = {text: row for row, text in enumerate(wanted)}
    vectors = encoder.encode(wanted, progress=False) if wanted else None
    first: dict[tuple[Hashable, str], str] = {}
    for owner, members in owners.items():
        if vectors is None or len(members) < 2:
            continue
        its = vectors[[at[text] for text in members.values()]]
        known, values = list(members), [value(text) for text in members.values()]
        for row, key in enumerate(known):
            near = (its[:row] @ its[row] >= SAME_TEXT).nonzero()[0]
            same = (first[owner, known[n]] for n in near if not apart(values[n], values[row]))
            first[owner, key] = next(same, key)
    return {(owner, text): first.get((owner, form.key), form.key) for (owner, text), form in forms.items()}
