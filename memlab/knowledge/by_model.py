"""Extraction by a language model: one prompt for each session, an answer of a bounded shape; and its result."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from memlab.knowledge.facts import fact_id
from memlab.llm import Service, answers
from memlab.records import Entity, Fact, Relation, frame

RULES = "rules"
OUTCOME: dict[str, Any] = {"session_id": pl.String, "status": pl.String, "reason": pl.String, "service": pl.String}


@dataclass(frozen=True)
class Extracted:
    """What sessions say.

    :param facts: rows of :class:`memlab.records.Fact`.
    :param entities: rows of :class:`memlab.records.Entity`.
    :param relations: rows of :class:`memlab.records.Relation`.
    :param outcomes: for each session ``session_id``, ``status`` (``ok``; ``fallback`` where a model answered badly and
        the rules were used; ``failed`` where its service did not answer: such a session has no rows), ``reason`` and
        ``service``, what made the rows.
    """

    facts: pl.DataFrame
    entities: pl.DataFrame
    relations: pl.DataFrame
    outcomes: pl.DataFrame


_Short = Annotated[str, Field(min_length=1, max_length=120)]
_Value = Annotated[str, Field(min_length=1, max_length=300)]
_Turns = Annotated[list[Annotated[int, Field(ge=0, le=100_000)]], Field(max_length=20)]
_Type = Literal["person", "organization", "place", "date", "event", "product", "work", "other"]

PROMPTS_VERSION = 1
"""Raised with every change of what is asked: of the prompt, or of the shape of the answer."""

SYSTEM = """You read a conversation with numbered turns and write down what is worth remembering, as JSON.
- facts: what people say about themselves or others. subject: a name, or "Name's sister". predicate: the relation as it
  was said ("works at", "no longer works at", "plans to visit"). object: the value, short. source: "stated" when
  somebody speaks of themselves, "observed" when somebody speaks of somebody else, "inferred" when it only follows.
- entities: names of people, organizations, places, dates, events, products and works that come up.
- relations: how two of these entities belong together: subject, predicate, object.
- turns: the numbers of the turns that say so. Each fact, entity and relation needs at least one.
Leave out questions, wishes, what is only supposed, small talk and advice. Write nothing that the turns do not say."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SaidFact(_Strict):
    """A fact, with the numbers of its turns."""

    subject: _Short
    predicate: _Short
    object: _Value
    source: Literal["stated", "observed", "inferred"]
    turns: _Turns


class SaidEntity(_Strict):
    """An entity, with the numbers of the turns that name it."""

    name: _Short
    type: _Type
    turns: _Turns


class SaidRelation(_Strict):
    """A relation between two entities."""

    subject: _Short
    predicate: _Short
    object: _Short
    turns: _Turns


class Knowledge(_Strict):
    """What a session says."""

    facts: Annotated[list[SaidFact], Field(max_length=60)]
    entities: Annotated[list[SaidEntity], Field(max_length=60)]
    relations: Annotated[list[SaidRelation], Field(max_length=60)]


def prompt(turns: Iterable[dict[str, Any]]) -> str:
    """Write the turns of a session, numbered from 1.

    >>> from memlab.knowledge.by_model import prompt
    >>> prompt([{"speaker": "Mel", "text": "I moved to Oslo.", "timestamp": None}])
    '[1] Mel: I moved to Oslo.'
    """
    lines = []
    for n, turn in enumerate(turns, 1):
        date = f" ({turn['timestamp']:%Y-%m-%d})" if turn["timestamp"] else ""
        lines.append(f"[{n}]{date} {turn['speaker']}: {' '.join(turn['text'].split())}")
    return "\n".join(lines)


def ask(turns: pl.DataFrame, service: Service) -> Extracted:
    """Extract each session by a language model.

    A session that the model answers badly has status ``fallback`` and no rows here; one without an answer ``failed``.
    Turn numbers that do not exist are dropped, and what has no turn left; an entity's turns have to name it, and a
    relation joins two of the session's entities.

    :raises ModelError: when the service cannot be asked at all.
    """
    sessions = {str(key[0]): part.to_dicts() for key, part in turns.group_by("session_id", maintain_order=True)}
    outcomes = answers(service, [prompt(rows) for rows in sessions.values()], Knowledge, system=SYSTEM)
    facts: list[Fact] = []
    entities: list[Entity] = []
    relations: list[Relation] = []
    told: list[tuple[str, str, str | None, str | None]] = []
    for (session, rows), outcome in zip(sessions.items(), outcomes, strict=True):
        if outcome.answer is None:
            fallback = outcome.kind == "content"
            told.append((session, "fallback" if fallback else "failed", outcome.failure, RULES if fallback else None))
            continue
        told.append((session, "ok", None, service.name))
        named = _entities(outcome.answer.entities, rows)
        facts.extend(_facts(outcome.answer.facts, rows))
        entities.extend(named)
        relations.extend(_relations(outcome.answer.relations, rows, named))
    return Extracted(
        frame(Fact, facts),
        frame(Entity, entities),
        frame(Relation, relations),
        pl.DataFrame(told, schema=OUTCOME, orient="row"),
    )


def _facts(answered: list[SaidFact], rows: list[dict[str, Any]]) -> list[Fact]:
    facts: dict[str, Fact] = {}
    for fact in answered:
        turns = _cited(fact.turns, rows)
        if not turns:
            continue
        first = turns[0]
        named = fact_id(first["turn_id"], fact.subject, fact.predicate, fact.object)
        if named in facts:
            continue
        system = all(turn["role"] == "system" for turn in turns)
        facts[named] = Fact(
            named, first["scope"], fact.subject, fact.predicate, fact.object,
            "system" if system else fact.source, [turn["turn_id"] for turn in turns], first["timestamp"], None,
            None if system else first["speaker"], first["text"], first["session_id"],
        )  # fmt: skip
    return list(facts.values())


def _entities(answered: list[SaidEntity], rows: list[dict[str, Any]]) -> list[Entity]:
    speakers = {row["speaker"].casefold() for row in rows}
    entities: dict[str, Entity] = {}
    for entity in answered:
        turns = [t for t in _cited(entity.turns, rows) if _names(t, entity.name)]
        if not turns and entity.name.casefold() in speakers:
            turns = _cited(entity.turns, rows)[:1]
        if turns and entity.name.casefold() not in entities:
            first = turns[0]
            entities[entity.name.casefold()] = Entity(
                f"{first['session_id']}/e{len(entities) + 1}", first["scope"], first["session_id"], entity.name,
                entity.type, first["text"], [turn["turn_id"] for turn in turns],
            )  # fmt: skip
    return list(entities.values())


def _relations(answered: list[SaidRelation], rows: list[dict[str, Any]], entities: list[Entity]) -> list[Relation]:
    spelling = {entity.name.casefold(): entity.name for entity in entities}
    relations: list[Relation] = []
    for relation in answered:
        subject, to = spelling.get(relation.subject.casefold()), spelling.get(relation.object.casefold())
        turns = _cited(relation.turns, rows)
        if subject and to and subject != to and turns:
            first = turns[0]
            relations.append(
                Relation(
                    f"{first['session_id']}/r{len(relations) + 1}", first["scope"], first["session_id"], subject,
                    relation.predicate, to, [turn["turn_id"] for turn in turns],
                )
            )  # fmt: skip
    return relations


def _cited(numbers: list[int], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the turns of the numbers that exist, each once, in order."""
    return [rows[n - 1] for n in sorted(set(numbers)) if 1 <= n <= len(rows)]


def _names(turn: dict[str, Any], name: str) -> bool:
    """Say whether a turn holds a word of a name."""
    words = set(re.findall(r"\w+", turn["text"].casefold()))
    return bool(words & {w for w in re.findall(r"\w+", name.casefold()) if len(w) > 1 or w.isdigit()})
