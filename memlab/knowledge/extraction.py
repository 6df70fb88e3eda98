"""Facts, entities and relations from the turns of finished sessions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import polars as pl

from memlab.knowledge import entities as names
from memlab.knowledge._objects import EDGE
from memlab.knowledge._others import Statement, about_others, namings, read_named, read_possessed
from memlab.knowledge._reading import read
from memlab.knowledge.by_model import OUTCOME, RULES, Extracted, ask
from memlab.knowledge.facts import fact_id
from memlab.language.clauses import clauses
from memlab.language.statements import wordlist
from memlab.llm import Service
from memlab.records import Fact, frame
from memlab.summarize import sentences

_PLACE = re.compile(r"(?:the )?[A-Z][\w.'-]*(?:,? [A-Z][\w.'-]*)*")
_LONG_AGO = re.compile(r"\bago\b|\bwhen\b|\bin (?:19|20)\d\d\b|\bas a\b|\bback then\b|\bonce\b|\byears\b", re.I)


def extract(turns: pl.DataFrame, *, service: Service | None = None, ner: str | None = None) -> Extracted:
    """Read facts, entities and relations out of sessions: by a language model where a service is given, else by rule.

    The rules read what people say of themselves and of theirs ("I work at Acme", "my sister is called Anna"), and leave
    out questions, what is supposed or quoted, and small talk. What is only planned keeps its "plans to"; "no longer",
    "used to", "actually" stay, so that :func:`memlab.knowledge.resolve` understands them. They favour precision: what
    is not said in such words is not found.

    :param turns: rows of :class:`memlab.records.Turn`, whole sessions.
    :param service: a language-model service; a session that it answers badly is read by rule.
    :param ner: directory of a token-classification model that finds names instead of the rules.
    :raises ModelError: when ``ner`` is no such model, or the service cannot be asked at all.

    >>> from datetime import UTC, datetime
    >>> import memlab
    >>> from memlab.knowledge import extraction
    >>> said = "I work at Acme. My sister Anna lives in Rome. If I had a dog, I would walk more."
    >>> turn = memlab.Turn("u/s/1", "u", "u/s", 1, "Mel", "user", said, None, datetime(2026, 5, 1, tzinfo=UTC))
    >>> found = extraction.extract(memlab.records.frame(memlab.Turn, [turn]))
    >>> found.facts.select("subject", "predicate", "object").rows()
    [('Mel', 'works at', 'Acme'), ('Mel', 'has a sister named', 'Anna'), ('Anna', 'lives in', 'Rome')]
    >>> found.relations.select("subject", "predicate", "object").rows()
    [('Mel', 'works at', 'Acme'), ('Mel', 'sister', 'Anna'), ('Anna', 'lives in', 'Rome')]
    """
    if service is None:
        return by_rule(turns, ner=ner)
    answered = ask(turns, service)
    fallen = answered.outcomes.filter(pl.col("status") == "fallback")
    if fallen.is_empty():
        return answered
    ruled = by_rule(turns.join(fallen, on="session_id", how="semi"), ner=ner)
    return Extracted(
        pl.concat([answered.facts, ruled.facts]),
        pl.concat([answered.entities, ruled.entities]),
        pl.concat([answered.relations, ruled.relations]),
        answered.outcomes,
    )


def by_rule(turns: pl.DataFrame, *, ner: str | None = None) -> Extracted:
    """Read sessions by rule, the names by a model where a directory of one is given."""
    said = sentences.split(turns).join(
        turns.select("turn_id", "role", "timestamp"), on="turn_id", how="left", maintain_order="left"
    )
    entities = names.find(said, ner=ner)
    facts = _facts(said, entities)
    return Extracted(facts, entities, names.relate(facts, entities), _all_well(turns))


def _all_well(turns: pl.DataFrame) -> pl.DataFrame:
    sessions = turns["session_id"].unique(maintain_order=True).to_list()
    return pl.DataFrame([(session, "ok", None, RULES) for session in sessions], schema=OUTCOME, orient="row")


def _facts(said: pl.DataFrame, entities: pl.DataFrame) -> pl.DataFrame:
    """Read every sentence; the same statement twice in a session is one fact with both turns."""
    users, people = _users(said), _people(entities)
    facts: dict[tuple[str, ...], Fact] = {}
    for row in said.filter(pl.col("role") != "assistant").iter_rows(named=True):
        session, system = row["session_id"], row["role"] == "system"
        # What a system message says of "the user" is about who speaks as one.
        speaker = users.get(row["scope"]) if system else row["speaker"]
        named = people.get(session, {})
        told = _of_system(row["text"], named) if system else statements(row["text"], named)
        for statement, inferred in _with_inferred(told, row["text"]):
            subject, predicate, obj = _subject(statement, speaker or "user"), statement.predicate, statement.object
            key = (session, subject, predicate, obj.casefold())
            if key in facts:
                if row["turn_id"] not in facts[key].evidence:
                    facts[key].evidence.append(row["turn_id"])
                continue
            stated = "observed" if about_others(statement) else "stated"
            source = "inferred" if inferred else "system" if system else stated
            facts[key] = Fact(
                fact_id(row["turn_id"], subject, predicate, obj), row["scope"], subject, predicate, obj, source,
                [row["turn_id"]], row["timestamp"], None, speaker, row["text"], session,
            )  # fmt: skip
    return frame(Fact, facts.values())


def _subject(statement: Statement, me: str) -> str:
    if not statement.subject:
        return me
    return f"{me}'s {statement.subject}" if statement.own else statement.subject


def _with_inferred(told: Iterable[Statement], text: str) -> Iterator[tuple[Statement, bool]]:
    """Add where somebody now lives who says to have moved; not where that was long ago."""
    for statement in told:
        yield statement, False
        place = _PLACE.match(statement.object)
        if statement.predicate in ("moved to", "has moved to") and place and not _LONG_AGO.search(text):
            yield statement._replace(predicate="now lives in", object=place[0]), True


def statements(sentence: str, people: dict[str, str]) -> Iterator[Statement]:
    """Read what a sentence says in the first person, and of known people.

    :param people: names in lower case → as they are written.

    >>> from memlab.knowledge.extraction import statements
    >>> [s[:3] for s in statements("I switched from Vim to Emacs, and Tom bought a car.", {"tom": "Tom"})]
    [('', 'switched', 'from Vim to Emacs'), ('Tom', 'bought', 'a car')]
    """
    parts = clauses(sentence)
    yield from namings(sentence)
    for clause in parts:
        first = clause.words[0].casefold().strip(EDGE)
        if clause.hinge in _SUPPOSED:
            continue
        if first in ("my", "our"):
            yield from read_possessed(clause.words[1:])
        elif first in ("i", "we"):
            yield from read(clause)
        else:
            yield from read_named(clause.words, people)


_SUPPOSED = wordlist("supposed")


def _of_system(sentence: str, people: dict[str, str]) -> Iterator[Statement]:
    """Read what a system message says of the user: "The user lives in Oslo", "User's name is Tom"."""
    for clause in clauses(sentence):
        words = clause.words[1:] if clause.words[0].casefold() == "the" else clause.words
        if words[0].casefold() == "user":
            yield from (s._replace(subject="") for s in read_named(["User", *words[1:]], {"user": "User"}))
        elif words[0].casefold() == "user's":
            yield from read_possessed(words[1:])
        else:
            yield from read_named(clause.words, people)


def _users(said: pl.DataFrame) -> dict[str, str]:
    """Give the user of each scope that has one."""
    users = said.filter(pl.col("role") == "user").group_by("scope").agg(pl.col("speaker").unique())
    return {scope: names[0] for scope, names in users.iter_rows() if len(names) == 1}


def _people(entities: pl.DataFrame) -> dict[str, dict[str, str]]:
    """Give the people that each session names."""
    people: dict[str, dict[str, str]] = {}
    for session, name in entities.filter(pl.col("type") == "person").select("session_id", "name").iter_rows():
        people.setdefault(session, {})[name.casefold()] = name
    return people
