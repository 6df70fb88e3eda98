"""Who goes by several names, as the settings declare it: joined when knowledge is read, so that an edit undoes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from memlab.errors import DataError

People = Mapping[str, Sequence[str] | Mapping[str, Sequence[str]]]
"""A person's name with their other names; or a scope with such a table of its own."""


def aliases(people: People, scope: str | None = None) -> dict[str, str]:
    """Give the other names of people in lower case, each with the name that stands for all.

    :param scope: the memory whose own table counts too.
    :raises DataError: where a name stands for two people, or is empty.

    >>> from memlab.knowledge.people import aliases
    >>> people = {"Katharina": ["Kate", "Emi"], "user-7": {"Rafael": ["dad"]}}
    >>> aliases(people), aliases(people, "user-7")["dad"]
    ({'kate': 'Katharina', 'emi': 'Katharina'}, 'Rafael')
    """
    names: dict[str, str] = {}
    for name, others in _tables(people, scope):
        for other in map(str.lower, others):
            if not other.strip():
                raise DataError(f"[people] gives {name!r} an empty name; take it out")
            if names.setdefault(other, name) != name:
                raise DataError(f"[people] gives {other!r} to {names[other]!r} and to {name!r}; a name is one person's")
    for name in names.values():
        whose = names.get(name.lower(), name)
        if whose != name:
            raise DataError(f"[people] has {name!r} as a person and as a name of {whose!r}; put all names in one row")
    return names


def _tables(people: People, scope: str | None) -> Iterator[tuple[str, Sequence[str]]]:
    for name, others in people.items():
        if not isinstance(others, Mapping):
            yield name, others
        elif name == scope:
            yield from others.items()


def join_people(rows: pl.DataFrame, people: People) -> pl.DataFrame:
    """Put each person's one name where facts, entities or relations have another of theirs, in any case.

    :param rows: with ``scope`` and some of ``subject``, ``object``, ``speaker`` and ``name``; ids and texts stay.

    >>> from memlab.knowledge.people import join_people
    >>> from memlab.records import Fact, frame
    >>> facts = frame(Fact, [Fact("f1", "u", "emi", "lives in", "Leeds", "stated", ["u/s1/1"], None)])
    >>> join_people(facts, {"Katharina": ["Emi"]})["subject"].to_list()
    ['Katharina']
    """
    if rows.is_empty() or not people:
        return rows
    parts = []
    for (scope,), part in rows.group_by("scope", maintain_order=True):
        names = aliases(people, str(scope))
        columns = [name for name in ("subject", "object", "speaker", "name") if name in rows.columns]
        if "type" in rows.columns:
            person = pl.col("name").str.to_lowercase().is_in([*names, *map(str.lower, names.values())])
            part = part.with_columns(type=pl.when(person).then(pl.lit("person")).otherwise("type"))
        own = {name: pl.col(name).str.to_lowercase().replace_strict(names, default=None) for name in columns}
        parts.append(part.with_columns(pl.coalesce(joined, name).alias(name) for name, joined in own.items()))
    return pl.concat(parts)


def name_people(text: str, people: People, scope: str) -> str:
    """Put each person's one name where a text, such as a question, has another of theirs.

    >>> from memlab.knowledge.people import name_people
    >>> name_people("Where does Emi's cat sleep?", {"Katharina": ["Emi"]}, "u")
    "Where does Katharina's cat sleep?"
    """
    names = aliases(people, scope)
    if not names:
        return text
    longest = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(rf"(?<!\w)(?:{longest})(?!\w)", lambda match: names.get(match[0].lower(), match[0]), text, flags=re.I)
