"""Which subjects, relations and values are one though their words differ: near vectors, with a veto."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np

from memlab.embed import Encoder
from memlab.knowledge.normal import Statement, Value, abbreviated, apart, value

SAME_TEXT, SAME_IF_INITIALS = 0.85, 0.5
SAME_RELATION = 0.88
RELATED, SHARED, RELATED_AND_SHARING = 0.5, 3, 0.95
_CLAUSE = "She {} it"
_INITIALS = re.compile(r"(?:[A-Z]\.?){2,6}")
_BLOCK = 1024

Keys = list[tuple[str, str, str, str | None]]
"""Of each statement: subject, relation, value, and the value that it replaces."""


def keys(scopes: Sequence[str], statements: Sequence[Statement], encoder: Encoder | None) -> Keys:
    """Give the keys of statements: equal keys mean the same.

    Without an encoder normal forms are the keys. With one, texts of one scope whose cosine reaches 0.85 are one subject
    or one value, unless a number, a name or a closed series (weekdays, relatives …) sets them apart; relations,
    embedded within a clause, are one at a cosine of 0.88, or when cosine + half the share of values that they have in
    common for the same subjects (of the rarer one's, at least three) reaches 0.95.

    The thresholds were measured with all-MiniLM-L6-v2 on word lists and on the ``development`` vocabulary of
    :mod:`memlab.knowledge.simulated`; measure them again for another encoder.

    Source: shared arguments as evidence of paraphrase: Lin and Pantel, DIRT (KDD 2001).
    """
    subjects = [value(s.subject).key for s in statements]
    relations = [s.relation for s in statements]
    values = [value(s.value).key for s in statements]
    instead = [None if s.instead is None else value(s.instead).key for s in statements]
    if encoder is None or not statements:
        return list(zip(subjects, relations, values, instead, strict=True))
    raw = zip(scopes, subjects, (s.subject for s in statements), strict=True)
    of_subject = _merged(raw, encoder, _same_subject)
    subjects = [of_subject[scope, key] for scope, key in zip(scopes, subjects, strict=True)]
    owners = list(zip(scopes, subjects, strict=True))
    told = [*zip(owners, values, (s.value for s in statements), strict=True)]
    told += [(o, i, s.instead) for o, i, s in zip(owners, instead, statements, strict=True) if i and s.instead]
    of_value = _merged(told, encoder, _same_value)
    values = [of_value[key] for key in zip(owners, values, strict=True)]
    instead = [i and of_value[o, i] for o, i in zip(owners, instead, strict=True)]
    shared: defaultdict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for scope, *key, relation in zip(scopes, subjects, values, relations, strict=True):
        shared[scope, relation].add((key[0], key[1]))
    clauses = zip(scopes, relations, (_CLAUSE.format(s.phrase) for s in statements), strict=True)
    of_relation = _merged(clauses, encoder, None, shared)
    relations = [of_relation[key] for key in zip(scopes, relations, strict=True)]
    return list(zip(subjects, relations, values, instead, strict=True))


def _same_subject(a: Value, b: Value) -> bool:
    # "Ann" and "Ann's neighbour" are two.
    return not apart(a, b) and not a.within(b) and not b.within(a)


def _same_value(a: Value, b: Value) -> bool:
    return not apart(a, b)


def _merged(
    texts: Iterable[tuple[Hashable, str, str]],
    encoder: Encoder,
    same: Callable[[Value, Value], bool] | None,
    shared: dict[tuple[str, str], set[tuple[str, str]]] | None = None,
) -> dict[tuple[Hashable, str], str]:
    """Name the texts of each group by the first of those that are one.

    :param texts: group, normal form, and the text as written.
    :param same: the veto; ``None`` for relations, which ``shared`` values bring together.
    """
    groups: defaultdict[Hashable, dict[str, str]] = defaultdict(dict)
    for group, key, text in texts:
        groups[group].setdefault(key, text)
    worded = {
        group: [(key, text) for key, text in members.items() if any(c.isalpha() for c in text)]
        for group, members in groups.items()
    }
    wanted = list(dict.fromkeys(text for members in worded.values() if len(members) > 1 for _, text in members))
    row = {text: i for i, text in enumerate(wanted)}
    vectors = encoder.encode(wanted, progress=False) if wanted else np.zeros((0, 1))
    names = {(group, key): key for group, members in groups.items() for key in members}
    for group, members in worded.items():
        if len(members) < 2:
            continue
        parent = list(range(len(members)))
        its = vectors[[row[text] for _, text in members]]
        for i, j, cosine in _near(its, RELATED):
            (a, first), (b, second) = members[i], members[j]
            if same is None:
                one, other = shared[group, a], shared[group, b]  # type: ignore[index]
                both = len(one & other)
                lift = both / min(len(one), len(other)) / 2 if both >= SHARED else 0.0
                joined = cosine >= SAME_RELATION or (lift > 0 and cosine + lift >= RELATED_AND_SHARING)
            elif cosine < SAME_TEXT:
                initials = _INITIALS.fullmatch(first) or _INITIALS.fullmatch(second)
                joined = bool(initials) and cosine >= SAME_IF_INITIALS and abbreviated(value(first), value(second))
            else:
                joined = same(value(first), value(second))
            if joined:
                parent[_root(parent, max(i, j))] = _root(parent, min(i, j))
        for i, (key, _) in enumerate(members):
            names[group, key] = members[_root(parent, i)][0]
    return names


def _near(vectors: np.ndarray, least: float) -> Iterable[tuple[int, int, float]]:
    """Give the pairs of rows whose cosine reaches a threshold, in blocks of rows."""
    for start in range(0, len(vectors), _BLOCK):
        cosine = vectors[start : start + _BLOCK] @ vectors.T
        for i, j in np.argwhere(np.triu(cosine >= least, start + 1)):
            yield int(i) + start, int(j), float(cosine[i, j])


def _root(parent: list[int], i: int) -> int:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i
