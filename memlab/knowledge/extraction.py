"""Facts, entities and relations from the turns of finished sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import polars as pl

from memlab.knowledge import entities as names
from memlab.knowledge._attributes import Talk
from memlab.knowledge._namings import namings
from memlab.knowledge._patterns import KIN
from memlab.knowledge._phrase import CHANGED, IT, Statement
from memlab.knowledge._reading import asked, read, split, tells_of_change
from memlab.knowledge._replies import replied
from memlab.knowledge.by_model import OUTCOME, RULES, Before, Extracted, ask
from memlab.knowledge.facts import fact_id
from memlab.language.people import PETS
from memlab.language.sentences import sentences
from memlab.language.words import NEGATIONS
from memlab.llm import Service
from memlab.records import Fact, frame


def extract(
    turns: pl.DataFrame, *, service: Service | None = None, ner: str | None = None, before: Before | None = None
) -> Extracted:
    """Read facts, entities and relations out of sessions: by a language model where a service is given, else by rule.

    The rules read the relations of ``relations.toml`` (home, work, family, pets, food, codes …) in what people say of
    themselves and of theirs, with and without punctuation, and in answers with their questions; they leave out
    questions, what is supposed, quoted or said in jest, and what holds for an hour. A predicate tells the manner:
    "plans to", "does not", "no longer", "used to". What only earlier messages complete ("it's Henrik now", "so three")
    is a statement about "it", which :func:`memlab.knowledge.resolve` completes or leaves out. They favour precision.

    :param turns: rows of :class:`memlab.records.Turn`, whole sessions.
    :param service: a language-model service; a session that it answers badly is read by rule.
    :param ner: directory of a token-classification model that finds names instead of the rules.
    :param before: what came before these sessions, for the language model to understand them by.
    :raises ModelError: when ``ner`` is no such model, or the service cannot be asked at all.

    >>> from datetime import UTC, datetime
    >>> import memlab
    >>> from memlab.knowledge import extraction
    >>> said = "I work at Acme. My sister Anna lives in Rome. If I had a dog, I would walk more."
    >>> turn = memlab.Turn("u/s/1", "u", "u/s", 1, "Mel", "user", said, None, datetime(2026, 5, 1, tzinfo=UTC))
    >>> found = extraction.extract(memlab.records.frame(memlab.Turn, [turn]))
    >>> found.facts.select("subject", "predicate", "object").rows()
    [('Mel', 'works at', 'Acme'), ('Anna', 'lives in', 'Rome'), ('Mel', 'has a sister named', 'Anna')]
    >>> found.relations.select("subject", "predicate", "object").rows()
    [('Mel', 'works at', 'Acme'), ('Anna', 'lives in', 'Rome'), ('Mel', 'sister', 'Anna')]
    """
    if service is None:
        return by_rule(turns, ner=ner)
    answered = ask(turns, service, before)
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
    said = _split(turns).join(turns.select("turn_id", "timestamp"), on="turn_id", how="left", maintain_order="left")
    entities = names.find(said, ner=ner)
    facts = _facts(turns, entities)
    return Extracted(facts, entities, names.relate(facts, entities), _all_well(turns))


def _all_well(turns: pl.DataFrame) -> pl.DataFrame:
    sessions = turns["session_id"].unique(maintain_order=True).to_list()
    return pl.DataFrame([(session, "ok", None, RULES) for session in sessions], schema=OUTCOME, orient="row")


def _facts(turns: pl.DataFrame, entities: pl.DataFrame) -> pl.DataFrame:
    """Read every message; the same statement twice in a session is one fact with both turns."""
    users, people = _users(turns), _people(turns, entities)
    facts: dict[tuple[str, ...], Fact] = {}
    for row, statement, sentence in _statements(turns, users, people):
        session = row["session_id"]
        key = (session, statement.subject, statement.predicate, statement.object.casefold())
        if key in facts:
            if row["turn_id"] not in facts[key].evidence:
                facts[key].evidence.append(row["turn_id"])
            continue
        system = row["role"] == "system"
        speaker = users.get(row["scope"]) if system else row["speaker"]
        source = "system" if system else "stated" if _of(statement, speaker) else "observed"
        facts[key] = Fact(
            fact_id(row["turn_id"], *statement), row["scope"], *statement, source, [row["turn_id"]], row["timestamp"],
            None, speaker, sentence, session,
        )  # fmt: skip
    return frame(Fact, facts.values())


def _of(statement: Statement, speaker: str | None) -> bool:
    """Whether a statement is about who makes it, or about a thing of theirs."""
    owned = statement.subject.removeprefix(f"{speaker}'s ")
    return statement.subject in (speaker, IT) or (owned != statement.subject and owned.casefold() not in KIN | PETS)


def _statements(
    turns: pl.DataFrame, users: dict[str, str], people: dict[str, dict[str, str]]
) -> Iterator[tuple[dict[str, Any], Statement, str]]:
    """Read the turns of each session in their order, each answer with the question before it."""
    talk, session, question = Talk(""), None, ("", "")
    for row in turns.iter_rows(named=True):
        if row["session_id"] != session:
            session, question = row["session_id"], ("", "")
            talk = Talk("", people.get(session, {}))
        system, whole = row["role"] == "system", row["text"]
        speaker = (users.get(row["scope"]) if system else row["speaker"]) or "user"
        talk.speaker, talk.he, talk.she, talk.role = speaker, None, None, None
        told = list(split(_of_user(whole, speaker) if system else whole))
        if row["role"] != "assistant":
            said: list[tuple[Statement, str]] = []
            if question[1] and question[0] != speaker and told:
                said = [(statement, told[0]) for statement in replied(question[1], told[0], talk)]
            for sentence in told:
                new = [(statement, sentence) for statement in (*read(sentence, talk), *namings(sentence, speaker))]
                if not new and tells_of_change(sentence) and not asked(sentence):
                    # Not understood, it may still end what was: rather nothing is said than what was so once.
                    new = [(Statement(IT, CHANGED, sentence), sentence)]
                said += new
            for statement, sentence in said:
                if statement.subject.casefold().partition(" ")[0] not in _NOBODY:
                    # What "it" is may stand anywhere in the message.
                    anywhere = statement.subject == IT and statement.predicate != CHANGED
                    yield row, statement, whole if anywhere else sentence
        # A question waits for the next message of another.
        asking = [sentence for sentence in told if asked(sentence) or _ASKED_SHORT.match(sentence)]
        question = (speaker, asking[-1] if asking else question[1] if question[0] == speaker else "")


# "Please come on Sunday" says nothing of somebody called Please.
_NOBODY = NEGATIONS | {"please"}
# "u allergic to mango" asks, whatever it ends with.
_ASKED_SHORT = re.compile(r"^(?:u|you)\s+(?:\S+\s*){1,6}$", re.I)


def _of_user(text: str, speaker: str) -> str:
    """Let a system message speak for the user: "The user lives in Oslo" is "I live in Oslo"."""
    text = re.sub(r"\b(?:[Tt]he )?[Uu]ser's\b", "my", text)
    return re.sub(r"\b(?:[Tt]he )?[Uu]ser(?=\s+(?:is|has|was|\w+s)\b)", speaker, text)


def _users(turns: pl.DataFrame) -> dict[str, str]:
    """Give the user of each scope that has one."""
    users = turns.filter(pl.col("role") == "user").group_by("scope").agg(pl.col("speaker").unique())
    return {scope: names[0] for scope, names in users.iter_rows() if len(names) == 1}


def _people(turns: pl.DataFrame, entities: pl.DataFrame) -> dict[str, dict[str, str]]:
    """Give the people that each session names or hears, in lower case and as they are written."""
    people: dict[str, dict[str, str]] = {}
    heard = turns.select("session_id", name="speaker").unique(maintain_order=True)
    named = entities.filter(pl.col("type") == "person").select("session_id", "name")
    for session, name in pl.concat([named, heard.drop_nulls()]).iter_rows():
        people.setdefault(session, {})[name.casefold()] = name
    return people


def _split(turns: pl.DataFrame) -> pl.DataFrame:
    """Split turns into sentences: columns of the turns, ``position`` (place within the turn, from 1) and ``text``."""
    columns = ("turn_id", "session_id", "scope", "speaker", "role")
    parts = [sentences(text) for text in turns["text"]]
    return (
        turns.select(*columns, text=pl.Series(parts, dtype=pl.List(pl.String)))
        .with_columns(position=pl.int_ranges(1, pl.col("text").list.len() + 1, dtype=pl.Int32))
        .filter(pl.col("text").list.len() > 0)
        .explode("position", "text")
        .select(*columns, "position", "text")
    )
