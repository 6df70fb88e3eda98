"""Who and what a session names: people, places, organisations, works and dates, with the turns that name them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from memlab.embed.text import ROLES
from memlab.knowledge._others import namings
from memlab.language.dates import dates
from memlab.language.names import cases, is_title, names
from memlab.language.people import PETS
from memlab.records import Entity, frame

TYPES = ("person", "organization", "place", "date", "event", "product", "work", "other")
# A day, also one without its year, or a year; neither a month nor a weekday alone.
_IN_A_YEAR = re.compile(r"\d{4}|\d\d-\d\d")


class Mention(NamedTuple):
    """A name in a sentence: the row of the sentence, and how much speaks for each type."""

    row: int
    name: str
    votes: tuple[tuple[str, int], ...]


def find(said: pl.DataFrame, *, ner: str | None = None) -> pl.DataFrame:
    """Find the entities of each session; a short form ("Lee") is joined with the long one ("Dr. Lee").

    By rule: words with a capital inside a sentence that the scope does not write in lower case, typed by the words
    around all their mentions in the scope ("moved to", "by", "works at") and by their own ("University", "Festival").
    Who speaks is a person. Dates are found by rule always.

    :param said: sentences (see :func:`memlab.summarize.split`) with ``role``.
    :param ner: directory of a token-classification model that finds the names instead.
    :returns: rows of :class:`memlab.records.Entity`, in order of sessions and first mention.
    """
    texts = said["text"].to_list()
    found: list[Mention] = []
    for _, part in said.with_row_index("row").group_by("scope", maintain_order=True):
        speakers = _speakers(part)
        case = cases(part["text"].to_list()) if ner is None else None
        for row, text in part.select("row", "text").iter_rows():
            found.extend(Mention(row, day.text, (("date", 9),)) for day in dates(text) if _IN_A_YEAR.match(day.value))
            if case is not None:
                found.extend(Mention(row, *name) for name in names(text, case, speakers))
    if ner is not None:
        from memlab.knowledge.ner import tag

        found.extend(Mention(*name) for name in tag(texts, ner))
    return _entities(said, sorted(found, key=lambda m: m.row))


def _speakers(part: pl.DataFrame) -> set[str]:
    return {name.casefold() for name in part["speaker"].unique() if name.casefold() not in ROLES}


def _entities(said: pl.DataFrame, found: list[Mention]) -> pl.DataFrame:
    """Join mentions to entities, session by session, with the types that the scopes' mentions speak for."""
    scopes, sessions = said["scope"].to_list(), said["session_id"].to_list()
    turns, texts = said["turn_id"].to_list(), said["text"].to_list()
    types = _types(found, scopes, texts)
    by_session: dict[str, list[Mention]] = defaultdict(list)
    for mention in found:
        by_session[sessions[mention.row]].append(mention)
    rows = []
    for session, first, speakers in _opened(said):
        best = _joined([m.name for m in by_session[session]], speakers)
        entities: dict[str, Entity] = {}
        for name in speakers:
            entities[name.casefold()] = _entity(session, scopes[first], name, "person", "", [])
        for mention in by_session[session]:
            name = best[mention.name]
            key = name.casefold()
            if key not in entities:
                kind = types[scopes[mention.row], key] or types[scopes[mention.row], mention.name.casefold()] or "other"
                entities[key] = _entity(session, scopes[mention.row], name, kind, texts[mention.row], [])
            held = entities[key]
            if turns[mention.row] not in held.evidence:
                held.evidence.append(turns[mention.row])
            if not held.context:
                entities[key] = _entity(session, held.scope, held.name, held.type, texts[mention.row], held.evidence)
        for n, held in enumerate(entities.values(), 1):
            opening = speakers.get(held.name, first)
            context, evidence = held.context or texts[opening], held.evidence or [turns[opening]]
            rows.append(Entity(f"{session}/e{n}", held.scope, session, held.name, held.type, context, evidence))
    return frame(Entity, rows)


def _entity(session: str, scope: str, name: str, kind: str, context: str, evidence: list[str]) -> Entity:
    return Entity("", scope, session, name, kind, context, evidence)


def _opened(said: pl.DataFrame) -> Iterable[tuple[str, int, dict[str, int]]]:
    """Give each session, its first sentence, and who speaks in it, with each one's first sentence."""
    opened: dict[str, tuple[int, dict[str, int]]] = {}
    rows = said.select("session_id", "speaker", "role").iter_rows()
    for row, (session, speaker, role) in enumerate(rows):
        _, speakers = opened.setdefault(session, (row, {}))
        if role not in ("assistant", "system"):
            speakers.setdefault(speaker, row)
    return ((session, first, speakers) for session, (first, speakers) in opened.items())


def _types(found: list[Mention], scopes: list[str], texts: list[str]) -> dict[tuple[str, str], str]:
    """Give each name of a scope the type that most speaks for."""
    votes: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for mention in found:
        for kind, weight in mention.votes:
            # Weak cues, however many, decide nothing alone.
            votes[scopes[mention.row], mention.name.casefold()][kind] += weight if weight > 1 else 0
    for row in {mention.row for mention in found}:
        for naming in namings(texts[row]):
            pet = naming.predicate.split()[-2] in PETS
            votes[scopes[row], naming.object.casefold()]["other" if pet else "person"] += 9
    kinds: dict[tuple[str, str], str] = defaultdict(str)
    for key, counted in votes.items():
        top = max(counted.values())
        kinds[key] = next(kind for kind in TYPES if counted[kind] == top) if top > 1 else ""
    return kinds


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
