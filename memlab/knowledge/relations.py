"""How the entities of a session belong together, from its facts."""

from __future__ import annotations

import re
from collections import defaultdict

import polars as pl

from memlab.language.statements import PREPOSITIONS, wordlist
from memlab.records import Relation, frame

_NAMED = re.compile(r"^has an? (?P<role>.+) named$")
_GOES_ON = PREPOSITIONS | wordlist("after_entity")
_LEADING = re.compile(r"^(?:the|a|an|my|our|his|her|their|new|city of|town of|country of)\s+", re.I)


def relate(facts: pl.DataFrame, entities: pl.DataFrame) -> pl.DataFrame:
    """Read a relation from each fact whose subject and object are entities of its session.

    "has a sister named Anna" becomes ``sister``; other predicates stay. The object may go on after the name ("Paris
    with a friend").

    :returns: rows of :class:`memlab.records.Relation`.
    """
    known: dict[str, dict[str, str]] = defaultdict(dict)
    for session, name in entities.filter(pl.col("type") != "date").select("session_id", "name").iter_rows():
        known[session][name.casefold()] = name
    found: dict[tuple[str, ...], Relation] = {}
    counts: dict[str, int] = {}
    for fact in facts.iter_rows(named=True):
        session = fact["session_id"]
        subject = known[session].get(fact["subject"].casefold())
        to = _entity(fact["object"], known[session])
        if not subject or not to or subject == to:
            continue
        named = _NAMED.match(fact["predicate"])
        key = (session, subject, named["role"] if named else fact["predicate"], to)
        if key in found:
            found[key].evidence.extend(t for t in fact["evidence"] if t not in found[key].evidence)
            continue
        counts[session] = n = counts.get(session, 0) + 1
        found[key] = Relation(f"{session}/r{n}", fact["scope"], session, *key[1:], list(fact["evidence"]))
    return frame(Relation, found.values())


def _entity(value: str, known: dict[str, str]) -> str | None:
    """Give the entity that an object is or begins with."""
    words = _LEADING.sub("", value).strip('"“”').split()
    for length in range(min(len(words), 8), 0, -1):
        name = re.sub(r"['’]s$", "", " ".join(words[:length]).strip(' ,.!"”'))
        # "a Nike deal" is no relation with Nike.
        after = words[length].casefold() if length < len(words) else "and"
        if not words[length - 1].endswith(",") and after not in _GOES_ON:
            continue
        if name.casefold() in known and not words[length - 1].endswith(("'s", "’s")):
            return known[name.casefold()]
    return None
