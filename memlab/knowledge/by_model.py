"""Extraction by a language model: what a session says, then what that ends; prompts, and answers of bounded shape."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from memlab.knowledge._relations import in_manner, listed, over
from memlab.knowledge.entities import relate
from memlab.knowledge.facts import fact_id
from memlab.knowledge.supersession import believed, resolve
from memlab.language.manner import bases
from memlab.language.manner import told as alone
from memlab.language.sentences import sentences
from memlab.llm import Service, answers
from memlab.records import Entity, Fact, frame

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


@dataclass(frozen=True)
class Before:
    """What came before some sessions.

    :param turns: of each session that has any, the last turns of its scope before it, in order.
    :param facts: what is known of the scopes: rows of :class:`memlab.records.Fact`.
    """

    turns: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    facts: pl.DataFrame = field(default_factory=lambda: frame(Fact))


_Short = Annotated[str, Field(min_length=1, max_length=120)]
_Value = Annotated[str, Field(min_length=1, max_length=300)]
_Turns = Annotated[list[Annotated[int, Field(ge=0, le=100_000)]], Field(max_length=20)]
_Type = Literal["person", "organization", "place", "date", "event", "product", "work", "other"]
Manner = Literal["is", "not", "plan", "was", "ended"]

_HEADS = 40  # characters of what stands above turns and statements

PROMPTS_VERSION = 2
"""Raised with every change of what is asked: of the prompts, or of the shape of the answers."""

SHOWN = 60
"""Statements of a scope that are shown, at most, to ask which of them are over."""

SYSTEM = f"""You keep the memory of a chat. You read one session of it, its turns numbered, and write down as JSON what
will still be worth knowing weeks later.
facts: one statement each, in the words of the chat.
- subject: a name ("Mel", never "I", "we" or "she"), or what belongs to one ("Mel's sister", "Mel's door code"). What
  speakers share is said of the one who tells it.
- relation: one of these where it fits: {", ".join(listed())}; "is" for a name, number, code, time or role ("Mel's boss"
  is "Ida"; "Mel's gym code" is "4417"); "has" for what is owned or counted ("two cats"); else a short verb phrase
  ("keeps", "is afraid of").
- object: the value alone, short: "Acme", "two cats", "4417".
- manner: "is" for what is so now, or has happened and stays true; "not" for what is not so, a food or habit given up
  too; "plan" for what is decided but has not happened yet; "was" for what was over before this session; "ended" for a
  job, home, bond, thing, number or plan that this session says is over now.
- corrects: the wrong value that is taken back ("not Oslo, I meant Bergen": "Oslo"), else "".
- source: "stated" when somebody speaks of themselves or theirs, "observed" when of somebody else, "inferred" when it
  only follows.
A change is two facts: the old value, "ended", where it can be told, and the new one.
Each person told of is worth a fact: who they are to whom ("Mel's sister" is "Anna"), where they live and work, when
that is said.
Leave out questions, wishes, offers, suppositions, rumours, jokes, sarcasm and exaggeration; what is quoted or read
aloud (labels, recipes, songs, signs); what is over in hours or days (moods, meals, errands, being tired, ill or on the
way); advice and small talk. Rather nothing than a guess.
entities: names of people, organizations, places, dates, events, products and works that come up.
turns: the numbers of the turns that say so; each fact and entity needs one. Earlier turns, where some are shown, are
for understanding alone."""

SYSTEM_ENDED = """You keep the memory of a chat. You are shown numbered statements that it holds, and one later session.
Say as JSON which of the statements are no longer so after that session: its new value takes the place of the old one
(a new job, home, code, number, boss, count), it has ended or was cancelled, a plan has come about or was dropped, or it
is taken back as wrong. Give the number of each such statement, and the numbers of the turns that tell it. What merely
stands beside it, or may change some day, ends nothing. Most sessions end nothing: then the list is empty."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SaidFact(_Strict):
    """A fact, with the numbers of its turns."""

    subject: _Short
    relation: _Short
    object: _Value
    manner: Manner
    corrects: Annotated[str, Field(max_length=120)]
    source: Literal["stated", "observed", "inferred"]
    turns: _Turns


class SaidEntity(_Strict):
    """An entity, with the numbers of the turns that name it."""

    name: _Short
    type: _Type
    turns: _Turns


class Knowledge(_Strict):
    """What a session says."""

    facts: Annotated[list[SaidFact], Field(max_length=60)]
    entities: Annotated[list[SaidEntity], Field(max_length=60)]


class SaidEnd(_Strict):
    """A statement that is over, with the numbers of the turns that tell it."""

    statement: Annotated[int, Field(ge=0, le=100_000)]
    turns: _Turns


class Ended(_Strict):
    """What a session ends."""

    ended: Annotated[list[SaidEnd], Field(max_length=SHOWN)]


def prompt(turns: Iterable[dict[str, Any]], earlier: Iterable[dict[str, Any]] = (), most: int | None = None) -> str:
    """Write the turns of a session, numbered from 1, after those before it.

    :param most: characters; of what came earlier, what does not fit is left out.

    >>> from memlab.knowledge.by_model import prompt
    >>> prompt([{"speaker": "Mel", "text": "I moved to Oslo.", "timestamp": None}])
    '[1] Mel: I moved to Oslo.'
    """
    session = "\n".join(f"[{n}] {_line(turn)}" for n, turn in enumerate(turns, 1))
    before = _fitting([_line(turn) for turn in earlier], session, most)
    return "\n".join(["Earlier turns:", *before, "", "The session:", session]) if before else session


def _fitting(lines: list[str], rest: str, most: int | None) -> list[str]:
    """Leave out the first lines until the others fit before a text: a service cuts what it is sent at the end."""
    room = None if most is None else most - len(rest) - _HEADS
    while lines and room is not None and sum(len(line) + 1 for line in lines) > room:
        lines = lines[1:]
    return lines


def _line(turn: dict[str, Any]) -> str:
    date = f"({turn['timestamp']:%Y-%m-%d}) " if turn["timestamp"] else ""
    return f"{date}{turn['speaker']}: {' '.join(turn['text'].split())}"


def ask(turns: pl.DataFrame, service: Service, before: Before | None = None) -> Extracted:
    """Extract each session by a language model, then ask which of the statements before it are over.

    A session that the model answers badly has status ``fallback`` and no rows here; one without an answer ``failed``.
    Turn numbers that do not exist are dropped, and what has no turn left; an entity's turns have to name it. What is
    over becomes a fact of its own, with the words of the old one ("no longer works at"), so that resolving finds it.
    Relations are read from the facts, by :func:`memlab.knowledge.entities.relate`.

    :param before: what came before; of sessions given here together, each knows the facts of those before it.
    :raises ModelError: when the service cannot be asked at all.
    """
    before = before or Before()
    sessions = {str(key[0]): part.to_dicts() for key, part in turns.group_by("session_id", maintain_order=True)}
    most = service.max_input
    texts = {session: prompt(rows, before.turns.get(session, ()), most) for session, rows in sessions.items()}
    outcomes = answers(service, list(texts.values()), Knowledge, system=SYSTEM)
    facts: list[Fact] = []
    entities: list[Entity] = []
    told: dict[str, tuple[str, str | None, str | None]] = {}
    for (session, rows), outcome in zip(sessions.items(), outcomes, strict=True):
        if outcome.answer is None:
            fallback = outcome.kind == "content"
            told[session] = ("fallback" if fallback else "failed", outcome.failure, RULES if fallback else None)
            continue
        told[session] = ("ok", None, service.name)
        entities.extend(_entities(outcome.answer.entities, rows))
        facts.extend(_facts(outcome.answer.facts, rows))
    read = {session: rows for session, rows in sessions.items() if told[session][0] == "ok"}
    ends, failed = _ends(read, texts, pl.concat([before.facts, frame(Fact, facts)]), service)
    told |= {session: ("failed", failure, None) for session, failure in failed.items()}
    kept = pl.DataFrame([(session, *how) for session, how in told.items()], schema=OUTCOME, orient="row")
    # What a session says is over, and what it ends of what was known, may be told in the same words.
    own = {fact.fact_id for fact in facts}
    facts += [end for end in ends if end.fact_id not in own]
    parts = {"facts": frame(Fact, facts), "entities": frame(Entity, entities)}
    good = kept.filter(status="ok").select("session_id")
    parts = {name: rows.join(good, on="session_id", how="semi") for name, rows in parts.items()}
    return Extracted(**parts, relations=relate(**parts), outcomes=kept)


def _facts(answered: list[SaidFact], rows: list[dict[str, Any]]) -> list[Fact]:
    facts: dict[str, Fact] = {}
    for fact in answered:
        turns = _cited(fact.turns, rows)
        if not turns:
            continue
        predicate = in_manner(fact.relation, fact.manner)
        value = f"not {fact.corrects} but {fact.object}" if fact.corrects else fact.object
        said = _fact(turns, fact.subject, predicate, value, fact.source, fact.object)
        facts.setdefault(said.fact_id, said)
    return list(facts.values())


def _fact(turns: list[dict[str, Any]], subject: str, predicate: str, value: str, source: str, near: str) -> Fact:
    first = turns[0]
    system = all(turn["role"] == "system" for turn in turns)
    return Fact(
        fact_id(first["turn_id"], subject, predicate, value), first["scope"], subject, predicate, value,
        "system" if system else source, [turn["turn_id"] for turn in turns], first["timestamp"], None,
        None if system else first["speaker"], _sentence(first["text"], near), first["session_id"],
    )  # fmt: skip


def _sentence(text: str, value: str) -> str:
    """Give the sentence that holds most words of a value."""
    words = set(bases(value))
    return max(sentences(text) or [text], key=lambda sentence: len(words.intersection(bases(sentence))))


def _ends(
    sessions: dict[str, list[dict[str, Any]]], texts: dict[str, str], known: pl.DataFrame, service: Service
) -> tuple[list[Fact], dict[str, str]]:
    """Ask what each session ends of what was known before it; also give why sessions were not answered."""
    shown: dict[str, list[dict[str, Any]]] = {}
    prompts = []
    for session, rows in sessions.items():
        held = _shown(rows, known)
        lines = [f"({n}) {_statement(fact)}" for n, fact in enumerate(held, 1)]
        if lines := _fitting(lines, texts[session], service.max_input):
            shown[session] = held
            prompts.append("\n".join(["Statements:", *lines, "", texts[session]]))
    outcomes = answers(service, prompts, Ended, system=SYSTEM_ENDED)
    facts: dict[str, Fact] = {}
    failed: dict[str, str] = {}
    for (session, held), outcome in zip(shown.items(), outcomes, strict=True):
        if outcome.answer is None:
            # A bad answer ends nothing; without one, the session is asked again.
            failed |= {session: outcome.failure} if outcome.kind != "content" else {}
            continue
        for end in outcome.answer.ended:
            turns = _cited(end.turns, sessions[session])
            if turns and 1 <= end.statement <= len(held):
                old = held[end.statement - 1]
                value = alone(old["object"]).strip()
                said = _fact(turns, old["subject"], over(old["predicate"]), value, "observed", value)
                facts.setdefault(said.fact_id, said)
    return list(facts.values()), failed


def _shown(rows: list[dict[str, Any]], known: pl.DataFrame) -> list[dict[str, Any]]:
    """Give what was believed before a session: of much, what shares most words with it, else the latest."""
    first = rows[0]
    said = pl.coalesce("asserted_at", "recorded_at")
    mine = known.filter(pl.col("scope") == first["scope"], pl.col("session_id").ne_missing(first["session_id"]))
    mine = mine.filter(said < first["timestamp"] if first["timestamp"] else said.is_not_null())
    held = believed(resolve(mine)).with_columns(said=said)
    words = frozenset(bases(" ".join(f"{row['speaker']} {row['text']}" for row in rows)))
    texts = held.select(text=pl.concat_str("subject", "object", separator=" "))["text"]
    shared = [len(words.intersection(bases(text))) for text in texts]
    held = held.with_columns(shared=pl.Series(shared, dtype=pl.Int32))
    return held.sort("shared", "said", descending=True, maintain_order=True).head(SHOWN).sort("said").to_dicts()


def _statement(fact: dict[str, Any]) -> str:
    return f"{fact['said']:%Y-%m-%d}: {fact['subject']} {fact['predicate']} {fact['object']}"


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


def _cited(numbers: list[int], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the turns of the numbers that exist, each once, in order."""
    return [rows[n - 1] for n in sorted(set(numbers)) if 1 <= n <= len(rows)]


def _names(turn: dict[str, Any], name: str) -> bool:
    """Say whether a turn holds a word of a name."""
    words = set(re.findall(r"\w+", turn["text"].casefold()))
    return bool(words & {w for w in re.findall(r"\w+", name.casefold()) if len(w) > 1 or w.isdigit()})
