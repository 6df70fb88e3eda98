"""Who and what a session names, with the turns that name them, and how these belong together by its facts."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from memlab.embed.text import ROLES
from memlab.knowledge._namings import namings
from memlab.language import gazetteers
from memlab.language.dates import dates
from memlab.language.names import cases, is_title, names
from memlab.language.people import PETS
from memlab.language.statements import wordlist
from memlab.records import Entity, Relation, frame

TYPES = ("person", "organization", "place", "date", "event", "product", "work", "other")
# A day, also one without its year, or a year; neither a month nor a weekday alone.
_IN_A_YEAR = re.compile(r"\d{4}|\d\d-\d\d")

# Votes of the words around a name that outweigh a list.
_CLEAR = 5
_NAMED = re.compile(r"^has an? (?P<role>.+) named$")
_GOES_ON = wordlist("prepositions") | wordlist("after_entity")
_LEADING = re.compile(r"^(?:the|a|an|my|our|his|her|their|new|city of|town of|country of)\s+", re.I)


class Mention(NamedTuple):
    """A name in a sentence: the row of the sentence, and how much speaks for each type."""

    row: int
    name: str
    votes: tuple[tuple[str, int], ...]


def find(sentences: pl.DataFrame, *, ner: str | None = None) -> pl.DataFrame:
    """Find the entities of each session; a short form ("Lee") is joined with the long one ("Dr. Lee").

    By rule: words with a capital inside a sentence that the scope does not write in lower case, typed by the words
    around all their mentions in the scope ("moved to", "by", "works at"), by their own ("University", "Festival") and
    by :mod:`memlab.language.gazetteers`; without any of these they have no type, and are left out where all of them
    are words of the language ("Wanted", "Chicken Pot Pie"). Who speaks is a person. Dates are found by rule always.

    :param said: sentences with ``role``.
    :param ner: directory of a token-classification model that finds the names instead.
    :returns: rows of :class:`memlab.records.Entity`, in order of sessions and first mention.
    """
    texts = sentences["text"].to_list()
    mentions: list[Mention] = []
    for _, part in sentences.with_row_index("row").group_by("scope", maintain_order=True):
        speakers = {name.casefold() for name in part["speaker"].unique()} - set(ROLES)
        case = cases(part["text"].to_list()) if ner is None else None
        for row, text in part.select("row", "text").iter_rows():
            days = (day for day in dates(text) if _IN_A_YEAR.match(day.value))
            mentions.extend(Mention(row, day.text, (("date", 9),)) for day in days)
            if case is not None:
                mentions.extend(Mention(row, *name) for name in names(text, case, speakers))
    if ner is not None:
        from memlab.knowledge.ner import tag

        mentions.extend(Mention(*name) for name in tag(texts, ner))
    return _entities(sentences, sorted(mentions, key=lambda m: m.row))


def _entities(sentences: pl.DataFrame, mentions: list[Mention]) -> pl.DataFrame:
    """Join mentions to entities, session by session, with the types that the scopes' mentions speak for."""
    scopes, sessions = sentences["scope"].to_list(), sentences["session_id"].to_list()
    turns, texts = sentences["turn_id"].to_list(), sentences["text"].to_list()
    types = _types(mentions, scopes, texts)
    by_session: dict[str, list[Mention]] = defaultdict(list)
    for mention in mentions:
        by_session[sessions[mention.row]].append(mention)
    rows = []
    for session, first, speakers in _opened(sentences):
        best = _joined([mention.name for mention in by_session[session]], speakers)
        # Of each entity the name, its type, and the rows of the sentences that name it.
        entities: dict[str, tuple[str, str, list[int]]] = {n.casefold(): (n, "person", []) for n in speakers}
        for mention in by_session[session]:
            name, scope = best[mention.name], scopes[mention.row]
            kind = types[scope, name.casefold()] or types[scope, mention.name.casefold()]
            if not kind and not mention.votes and all(map(gazetteers.is_common, name.split())):
                continue
            entities.setdefault(name.casefold(), (name, kind, []))[2].append(mention.row)
        for n, (name, kind, named) in enumerate(entities.values(), 1):
            where = named or [speakers.get(name, first)]
            evidence = list(dict.fromkeys(turns[row] for row in where))
            rows.append(Entity(f"{session}/e{n}", scopes[first], session, name, kind, texts[where[0]], evidence))
    return frame(Entity, rows)


def _opened(sentences: pl.DataFrame) -> Iterable[tuple[str, int, dict[str, int]]]:
    """Give each session, its first sentence, and who speaks in it, with each one's first sentence."""
    opened: dict[str, tuple[int, dict[str, int]]] = {}
    rows = sentences.select("session_id", "speaker", "role").iter_rows()
    for row, (session, speaker, role) in enumerate(rows):
        _, speakers = opened.setdefault(session, (row, {}))
        if role not in ("assistant", "system"):
            speakers.setdefault(speaker, row)
    return ((session, first, speakers) for session, (first, speakers) in opened.items())


def _types(mentions: list[Mention], scopes: list[str], texts: list[str]) -> dict[tuple[str, str], str]:
    """Give each name of a scope the type that most speaks for."""
    votes: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for mention in mentions:
        for kind, weight in mention.votes:
            # Weak cues, however many, decide nothing alone.
            votes[scopes[mention.row], mention.name.casefold()][kind] += weight if weight > 1 else 0
    for row in {mention.row for mention in mentions}:
        for naming in namings(texts[row]):
            pet = naming.predicate.split()[-2] in PETS
            votes[scopes[row], naming.object.casefold()]["other" if pet else "person"] += 9
    names = {(scopes[mention.row], mention.name.casefold()): mention.name for mention in mentions}
    return defaultdict(str, {key: _type(name, votes[key]) for key, name in names.items()})


def _type(name: str, votes: Counter[str]) -> str:
    """Weigh what the words around a name speak for and what lists say; empty where neither says anything.

    Lists win over weak cues. Of somebody's name that is a place too, the cues decide.
    """
    listed = gazetteers.types(name)
    if "place" in listed and "place" not in votes and not gazetteers.is_large(name):
        # "Reading" and "Panda" are towns where the words say so.
        listed -= {"place"}
    if listed and max(votes.values(), default=0) < _CLEAR:
        best = max(votes[kind] for kind in listed)
        fitting = [kind for kind in TYPES if kind in listed and votes[kind] == best]
        return fitting[0] if len(fitting) == 1 else ""
    top = max(votes.values(), default=0)
    kind = next(kind for kind in TYPES if votes[kind] == top) if top > 1 else ""
    # "Her name is Shadow" is mostly said of a pet.
    return "" if kind == "person" and top < _CLEAR and gazetteers.is_common(name) else kind


def _joined(mentioned: list[str], speakers: Iterable[str]) -> dict[str, str]:
    """Give each name the longest form of it that the session has; what could be two stays alone.

    >>> from memlab.knowledge.entities import _joined
    >>> _joined(["Dr. Lee", "Lee", "Mel"], ["Melanie"])
    {'Dr. Lee': 'Dr. Lee', 'Lee': 'Dr. Lee', 'Mel': 'Melanie'}
    """
    spelled: dict[str, str] = {name.casefold(): name for name in speakers}
    for name in mentioned:
        spelled.setdefault(name.casefold(), name)
    joined = {}
    for name in dict.fromkeys(mentioned):
        key = name.casefold()
        own = [w for w in key.split() if not is_title(w)]
        longer = {
            other for low, other in spelled.items()
            if low != key and len(own) == 1 and len(low.split()) > 1 and own[0] in (low.split()[0], low.split()[-1])
        }  # fmt: skip
        nick = {who for who in speakers if len(key) > 1 and who.casefold().startswith(key) and who.casefold() != key}
        to = nick or longer
        joined[name] = to.pop() if len(to) == 1 else spelled[key]
    return joined


def relate(facts: pl.DataFrame, entities: pl.DataFrame) -> pl.DataFrame:
    """Read a relation from each fact whose subject and object are entities of its session.

    "has a sister named Anna" becomes ``sister``; other predicates stay. The object may go on after the name ("Paris
    with a friend").

    :returns: rows of :class:`memlab.records.Relation`.
    """
    names_of: dict[str, dict[str, str]] = defaultdict(dict)
    for session, name in entities.filter(pl.col("type") != "date").select("session_id", "name").iter_rows():
        names_of[session][name.casefold()] = name
    related: dict[tuple[str, ...], Relation] = {}
    counts: dict[str, int] = {}
    for fact in facts.iter_rows(named=True):
        session = fact["session_id"]
        subject = names_of[session].get(fact["subject"].casefold())
        to = _entity(fact["object"], names_of[session])
        if not subject or not to or subject == to:
            continue
        named = _NAMED.match(fact["predicate"])
        key = (session, subject, named["role"] if named else fact["predicate"], to)
        if key in related:
            related[key].evidence.extend(t for t in fact["evidence"] if t not in related[key].evidence)
            continue
        counts[session] = n = counts.get(session, 0) + 1
        related[key] = Relation(f"{session}/r{n}", fact["scope"], session, *key[1:], list(fact["evidence"]))
    return frame(Relation, related.values())


def _entity(value: str, names: dict[str, str]) -> str | None:
    """Give the entity that an object is or begins with."""
    words = _LEADING.sub("", value).strip('"“”').split()
    for length in range(min(len(words), 8), 0, -1):
        name = re.sub(r"['’]s$", "", " ".join(words[:length]).strip(' ,.!"”'))
        # "a Nike deal" is no relation with Nike.
        after = words[length].casefold() if length < len(words) else "and"
        if not words[length - 1].endswith(",") and after not in _GOES_ON:
            continue
        if name.casefold() in names and not words[length - 1].endswith(("'s", "’s")):
            return names[name.casefold()]
    return None
