"""Extraction of facts and entities from sessions by a language model, and of what they do to
earlier facts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl

from memlab.knowledge.fact_prompts import (
    FACTS,
    VERSION,
    WORDS_OF_OTHERS,
    NamedEntity,
    Relation,
    Stated,
    StatedFact,
)
from memlab.knowledge.known_facts import (
    MAX_KNOWN,
    FactRow,
    KnownFacts,
    fact_meaning,
    in_order_of_time,
    known_entries,
    prompt_id,
)
from memlab.knowledge.own_or_quoted_words import is_about_speaker, is_reported
from memlab.llm import RECORDED, Answer, Request, Service, ask
from memlab.llm.structured_answers import PATIENCE
from memlab.llm.token_spending import is_estimating
from memlab.records import Entity, Fact, frame
from memlab.terminal_text import count_noun
from memlab.text.quotations import remove_quotations

TurnRow = dict[str, Any]
"""A turn as a row of :class:`memlab.records.Turn`."""
_OUTCOMES = dict.fromkeys(("session_id", "status", "reason", "service"), pl.String())
_DATE_FORMS = ("%Y-%m-%d", "%Y-%m", "%Y")
_OF_OTHERS = ("facts", "about a speaker left out: their turns only forward or quote the words")
_EFFECTS_OF_OTHERS = ("effects", "on facts about a speaker left out: words of others have none")
_UNKNOWN = ("effects", "left out: they name no known fact")
_UNCITED = ("facts", "left out: no turn of the session states them")
_UNREADABLE = ("dates", "left out: not written as year, month and day")
_PLACEHOLDER = {"id": "f" * 7, "about": "s" * 10, "slot": "s" * 10, "value": "s" * 12}
"""A known fact of the usual length: what will be known is not known when prompts are only counted.
"""


@dataclass(frozen=True)
class Extracted:
    """Facts and entities that a model read out of sessions.

    :param facts: rows of :class:`memlab.records.Fact`.
    :param entities: rows of :class:`memlab.records.Entity`.
    :param outcomes: for each session ``session_id``, ``status`` (``ok``; ``unanswered`` where a
        model was asked in vain; ``none`` where no model was asked), ``reason``, why an answer is
        missing or what of it was left out, and ``service``, what stated the facts; null where
        nothing did.
    """

    facts: pl.DataFrame
    entities: pl.DataFrame
    outcomes: pl.DataFrame

    @property
    def note(self) -> str:
        """One line on sessions that no model read, so that they have no facts.

        Empty where it read all.
        """
        unread_sessions = self.outcomes.filter(pl.col("service").is_null())
        if unread_sessions.is_empty():
            return ""
        count_text = f"{unread_sessions.height:,} of {self.outcomes.height:,} sessions"
        advice = 'service="NAME" or --service NAME asks a model'
        return f"no facts: no model read {count_text} ({unread_sessions['reason'][0]}); {advice}"


def extract(
    turns: pl.DataFrame,
    *,
    service: str | Service | None = None,
    earlier: Mapping[str, list[TurnRow]] | None = None,
    known: pl.DataFrame | None = None,
    order: Sequence[str] = (),
) -> Extracted:
    """Read facts and entities out of sessions by a language model.

    A session without an answer has none.

    A model is asked once of each session: what it states, and what that does to facts that earlier
    sessions stated. The sessions of one scope are asked one after the other, those of several
    scopes together. What a prompt shows of earlier facts is made of earlier answers alone
    (:mod:`memlab.knowledge.known_facts`). Turns, dates and known facts that do not exist are
    dropped, and what has no turn left. The model sees which words a speaker only forwarded or
    quoted; what it states of the speaker out of such words alone is left out, other statements out
    of them are ``reported``. What was left out is counted in the outcome of the session.

    :param turns: rows of :class:`memlab.records.Turn`, whole sessions.
    :param service: see :func:`memlab.llm.ask`; with ``None`` nothing is read.
    :param earlier: of each session that has any, the last turns of its scope before it, in order.
    :param known: what other sessions of the scopes stated, rows of :class:`memlab.records.Fact`; a
        session is shown what was stated before it.
    :param order: ids of sessions in their order, also of those that ``known`` was read from: by it
        what stands before a session without times is kept from what stands after it. Without it,
        known facts without a time stand before all sessions.
    :raises ModelError: when the service cannot be asked at all.

    >>> import memlab
    >>> from memlab.knowledge import extract
    >>> turns = memlab.sample(scopes=["nadia"]).turns
    >>> session = turns.filter(turns["session_id"] == turns["session_id"][0])
    >>> found = extract(session, service="recorded")
    >>> found.facts.select("about", "slot", "value").row(1)
    ('Nadia', 'employer', 'Kwartel')
    >>> extract(session).facts.height
    0
    >>> extract(session).note
    'no facts: no model read 1 of 1 sessions (no service is named); service="NAME" or --service NAME
    asks a model'
    """
    sessions = _sessions(turns)
    known_facts = KnownFacts(known, skip=sessions, order=order)
    readings: dict[str, _Reading] = {}
    failures: list[str] = []
    for round_sessions in _rounds(sessions):
        requests = []
        for session in round_sessions:
            shown_facts = _shown_facts(known_facts, session, sessions[session])
            earlier_turns = (earlier or {}).get(session, [])
            requests.append(_request(sessions[session], earlier_turns, shown_facts))
        answers = _ask_patiently(requests, service, failures)
        for session, answer in zip(round_sessions, answers, strict=True):
            session_turns = sessions[session]
            if answer.value is None:
                status = "none" if service is None else "unanswered"
                readings[session] = _Reading(status, answer.error)
                continue
            reading = _read_answer(
                answer.value, session_turns, known_facts.before(session, session_turns)
            )
            reading.service = service_name(service)
            readings[session] = reading
            known_facts.add(reading.facts)
    in_order = [(session, readings[session]) for session in sessions]
    outcomes = [
        (session, reading.status, reading.reason, reading.service) for session, reading in in_order
    ]
    return Extracted(
        frame(Fact, (fact for _, reading in in_order for fact in reading.facts)),
        frame(Entity, (entity for _, reading in in_order for entity in reading.entities)),
        pl.DataFrame(outcomes, schema=_OUTCOMES, orient="row"),
    )


def make_fact(
    turns: Sequence[TurnRow],
    *,
    about: str,
    slot: str,
    value: str,
    source: str = "stated",
    **parts: Any,
) -> Fact:
    """Make the fact that some turns state.

    Its id is made of the first turn and of what it states: other turns and other facts do not
    change it. What only turns of the role ``system`` state has the source ``system``, and nobody
    said it.

    :param parts: further columns of :class:`memlab.records.Fact`: ``sentence``, ``kind``,
        ``since`` …

    >>> from memlab.knowledge.fact_extraction import make_fact
    >>> turn = {"turn_id": "u/1", "scope": "u", "session_id": "u/s", "speaker": "Mel"}
    >>> turn |= {"role": "user", "timestamp": None, "text": "My door code is 12u34."}
    >>> fact = make_fact([turn], about="Mel", slot="door code", value="12u34")
    >>> fact.fact_id, fact.evidence, fact.said_by
    ('u/1/fbacd316172aa', ['u/1'], 'Mel')
    """
    first_turn = turns[0]
    said_by = (
        parts.pop("said_by", None) or first_turn.get("forwarded_from") or first_turn["speaker"]
    )
    if all(turn["role"] == "system" for turn in turns):
        source = "system"
        said_by = None
    stated_parts = (
        about,
        slot,
        value.casefold(),
        parts.get("kind", "state"),
        parts.get("holds", True),
    )
    joined_parts = "\x1f".join(map(str, stated_parts))
    digest = hashlib.blake2b(joined_parts.encode(), digest_size=6).hexdigest()
    return Fact(
        fact_id=f"{first_turn['turn_id']}/f{digest}",
        scope=first_turn["scope"],
        about=about,
        slot=slot,
        value=value,
        source=source,
        evidence=[turn["turn_id"] for turn in turns],
        asserted_at=first_turn["timestamp"],
        said_by=said_by,
        session_id=first_turn["session_id"],
        **parts,
    )


def service_name(service: str | Service | None) -> str | None:
    """Give the name by which a service is called."""
    return service.name if isinstance(service, Service) else service


@dataclass
class _Reading:
    """What was read of a session.

    :param left_out: what of the answer was left out, and how often.
    """

    status: str
    error: str | None = None
    service: str | None = None
    facts: list[Fact] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def reason(self) -> str | None:
        if self.error:
            return self.error
        count_texts = [
            f"{count_noun(n_left_out, counted_noun)} {reason_text}"
            for (counted_noun, reason_text), n_left_out in self.left_out.items()
        ]
        if not count_texts:
            return None
        return "; ".join(count_texts)


def _sessions(turns: pl.DataFrame) -> dict[str, list[TurnRow]]:
    return {
        str(session_key[0]): session_turns.to_dicts()
        for session_key, session_turns in turns.group_by("session_id", maintain_order=True)
    }


def _rounds(sessions: Mapping[str, list[TurnRow]]) -> Iterator[list[str]]:
    """Give the sessions that are asked together: the next one of each scope, in order of time."""
    sessions_by_scope: dict[str, list[str]] = {}
    for session, session_turns in sessions.items():
        sessions_by_scope.setdefault(session_turns[0]["scope"], []).append(session)
    for scope, scope_sessions in sessions_by_scope.items():
        session_starts = [sessions[session][0]["timestamp"] for session in scope_sessions]
        sessions_by_scope[scope] = in_order_of_time(scope_sessions, session_starts)
    most_sessions = max(map(len, sessions_by_scope.values()), default=0)
    for round_number in range(most_sessions):
        yield [
            scope_sessions[round_number]
            for scope_sessions in sessions_by_scope.values()
            if round_number < len(scope_sessions)
        ]


def _shown_facts(memory: KnownFacts, session: str, rows: list[TurnRow]) -> dict[str, list[Any]]:
    if is_estimating():
        return {"known": [_PLACEHOLDER] * MAX_KNOWN, "subjects": []}
    return known_entries(rows, memory.before(session, rows))


def _request(
    rows: list[TurnRow], earlier_turns: list[TurnRow], shown_facts: dict[str, list[Any]]
) -> Request:
    """Make the request about a session; its key is made of the turns alone."""
    request_key = tuple(id_or_text for row in rows for id_or_text in (row["turn_id"], row["text"]))
    earlier = [
        _turn_entry(turn_number, row)
        for turn_number, row in enumerate(earlier_turns, -len(earlier_turns))
    ]
    entries = [_turn_entry(turn_number, row) for turn_number, row in enumerate(rows, 1)]
    prompt = json.dumps({**shown_facts, "earlier": earlier, "session": entries}, ensure_ascii=False)
    system = FACTS
    for entry in (*earlier, *entries):
        if "forwarded_from" in entry or "quoted" in entry:
            system += WORDS_OF_OTHERS
            break
    return Request("facts", VERSION, request_key, prompt, Stated, system)


def _ask_patiently(
    requests: Sequence[Request], service: str | Service | None, failures: list[str]
) -> list[Answer]:
    """Ask, unless a service failed for the last sessions in a row: then it is left alone.

    :param failures: the errors of these sessions, which are noted here.
    """
    if len(failures) >= PATIENCE:
        reason = f"not asked after {len(failures)} failures in a row; the last: {failures[-1]}"
        return [Answer(None, reason)] * len(requests)
    answers = ask(requests, service)
    if service in (None, RECORDED) or is_estimating():
        return answers
    for answer in answers:
        if answer.value is not None:
            failures.clear()
        elif not answer.error.startswith("not asked"):
            failures.append(answer.error)
    return answers


def _turn_entry(number: int, row: TurnRow) -> dict[str, Any]:
    """Give a turn as a prompt shows it; words of others stand apart from those of the speaker."""
    sent_at = row["timestamp"] and f"{row['timestamp']:%Y-%m-%d %H:%M}"
    entry = {
        "id": number,
        "time": sent_at,
        "speaker": row["speaker"],
        "text": _on_one_line(row["text"]),
    }
    if row.get("forwarded_from"):
        entry["forwarded_from"] = row["forwarded_from"]
    if row.get("quoted"):
        entry["text"] = _on_one_line(remove_quotations(row["text"], row["quoted"]))
        entry["quoted"] = [_on_one_line(quotation) for quotation in row["quoted"]]
    return entry


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _read_answer(answer: Stated, rows: list[TurnRow], known_facts: list[FactRow]) -> _Reading:
    """Make rows of what a model answered about a session, and count what is left out."""
    reading = _Reading("ok")
    facts_by_id = {prompt_id(fact): fact for fact in known_facts}
    read_facts: dict[str, Fact] = {}
    for stated in answer.facts:
        fact = _read_fact(stated, rows, facts_by_id, reading.left_out)
        if fact is not None:
            read_facts.setdefault(fact.fact_id, fact)
    reading.facts = [*read_facts.values()]
    reading.entities = _named_entities(answer.entities, answer.relations, rows)
    return reading


def _read_fact(
    stated: StatedFact,
    rows: list[TurnRow],
    by_id: Mapping[str, FactRow],
    left_out: Counter[tuple[str, str]],
) -> Fact | None:
    """Make the row of a fact; ``None`` where nothing of the session states it."""
    turns = _cited_turns(stated.turns, rows)
    if not turns:
        left_out[_UNCITED] += 1
        return None
    source: str = stated.source
    is_others_word = is_reported(turns, stated.value)
    if is_others_word:
        source = "reported"
        if is_about_speaker(stated.about, turns):
            left_out[_OF_OTHERS] += 1
            return None
    effects: list[str] = []
    affected: list[str] = []
    for effect in stated.effects:
        target = by_id.get(effect.id)
        if target is None:
            left_out[_UNKNOWN] += 1
        elif is_others_word and is_about_speaker(target["about"], turns):
            left_out[_EFFECTS_OF_OTHERS] += 1
        else:
            effects.append(effect.how)
            affected.append(fact_meaning(target))
    return make_fact(
        turns,
        about=stated.about,
        slot=stated.slot,
        value=stated.value,
        source=source,
        said_by=stated.said_by,
        sentence=stated.sentence,
        kind=stated.kind,
        holds=stated.holds,
        values=stated.values,
        since=_read_date(stated.since, left_out),
        until=_read_date(stated.until, left_out),
        effects=effects,
        affected=affected,
    )


def _read_date(text: str, left_out: Counter[tuple[str, str]]) -> str | None:
    """Give a date as it is written; a time of day behind it is dropped."""
    if not text:
        return None
    written_date = re.split("[ T]", text, maxsplit=1)[0]
    for date_form in _DATE_FORMS:
        with suppress(ValueError):
            return datetime.strptime(written_date, date_form).strftime(date_form)
    left_out[_UNREADABLE] += 1
    return None


def _named_entities(
    stated_entities: list[NamedEntity], relations: list[Relation], rows: list[TurnRow]
) -> list[Entity]:
    """Find the cited turns that contain a word of an entity's name; a speaker needs none."""
    speakers = {row["speaker"].casefold() for row in rows}
    name_by_key: dict[str, str] = {}
    for entity in stated_entities:
        name_by_key.setdefault(entity.name.casefold(), entity.name)
    relations_by_key: dict[str, list[tuple[str, str]]] = {}
    for stated_relation in relations:
        entity_and_other = (stated_relation.entity.casefold(), stated_relation.other.casefold())
        if entity_and_other[0] in name_by_key and entity_and_other[1] in name_by_key:
            relations_by_key.setdefault(entity_and_other[0], []).append(
                (stated_relation.relation, name_by_key[entity_and_other[1]])
            )
    entities: dict[str, Entity] = {}
    for entity in stated_entities:
        entity_key = entity.name.casefold()
        turns = _naming_turns(entity_key, _cited_turns(entity.turns, rows), speakers)
        if not turns or entity_key in entities:
            continue
        first_turn = turns[0]
        entities[entity_key] = Entity(
            entity_id=f"{first_turn['session_id']}/e{len(entities) + 1}",
            scope=first_turn["scope"],
            session_id=first_turn["session_id"],
            name=entity.name,
            type=entity.type,
            context=first_turn["text"],
            evidence=[turn["turn_id"] for turn in turns],
            relations=[relation for relation, _ in relations_by_key.get(entity_key, ())],
            related=[other_name for _, other_name in relations_by_key.get(entity_key, ())],
        )
    return list(entities.values())


def _naming_turns(name: str, cited: list[TurnRow], speakers: set[str]) -> list[TurnRow]:
    """Give the cited turns that hold a word of a name."""
    name_words = {word for word in re.findall(r"\w+", name) if len(word) > 1 or word.isdigit()}
    naming_turns = []
    for turn in cited:
        turn_text = turn["text"].casefold()
        if name in turn_text or name_words.intersection(re.findall(r"\w+", turn_text)):
            naming_turns.append(turn)
    if not naming_turns and name in speakers:
        return cited[:1]
    return naming_turns


def _cited_turns(numbers: list[int], rows: list[TurnRow]) -> list[TurnRow]:
    """Give the turns with these numbers, from 1, each once and in order.

    Unknown numbers are dropped.
    """
    return [
        rows[turn_number - 1]
        for turn_number in sorted(set(numbers))
        if 1 <= turn_number <= len(rows)
    ]
