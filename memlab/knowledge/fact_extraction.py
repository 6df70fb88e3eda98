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
from typing import TYPE_CHECKING, Any

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
    PromptFacts,
    choose_facts_for_prompt,
    meaning_id_of_fact,
    short_prompt_id,
    sort_by_time_keeping_undated,
)
from memlab.knowledge.own_or_quoted_words import (
    is_on_words_of_others_alone,
    names_a_speaker_of_turns,
)
from memlab.llm import RECORDED, Answer, Request, Service, ask
from memlab.llm.structured_answers import PATIENCE
from memlab.llm.token_spending import is_estimating
from memlab.records import Entity, Fact, frame
from memlab.terminal_text import count_noun
from memlab.text.quotations import remove_quotations

if TYPE_CHECKING:
    from pydantic import JsonValue

TurnRow = dict[str, Any]
"""A turn as a row of :class:`memlab.records.Turn`."""
LeftOutCounts = Counter[tuple[str, str]]
"""How often something was left out, by a noun for it and why."""
_OUTCOMES = dict.fromkeys(("session_id", "status", "reason", "service"), pl.String())
_DATE_FORMS = ("%Y-%m-%d", "%Y-%m", "%Y")
_OF_OTHERS = ("facts", "about a speaker left out: their turns only forward or quote the words")
_EFFECTS_OF_OTHERS = ("effects", "on facts about a speaker left out: words of others have none")
_UNKNOWN = ("effects", "left out: they name no known fact")
_UNCITED = ("facts", "left out: no turn of the session states them")
_UNREADABLE = ("dates", "left out: not written as year, month and day")
_PLACEHOLDER: dict[str, JsonValue] = {
    "id": "f" * 7,
    "about": "s" * 10,
    "slot": "s" * 10,
    "value": "s" * 12,
}
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
    sessions = _turns_by_session(turns)
    known_facts = KnownFacts(known, skip=sessions, order=order)
    readings: dict[str, _SessionReading] = {}
    failures: list[str] = []
    for round_sessions in _yield_next_session_of_each_scope(sessions):
        requests = []
        for session in round_sessions:
            shown_facts = _choose_prompt_facts_or_placeholders(
                known_facts, session, sessions[session]
            )
            earlier_turns = (earlier or {}).get(session, [])
            requests.append(_make_extraction_request(sessions[session], earlier_turns, shown_facts))
        answers = _ask_until_patience_ends_noting_errors(requests, service, failures)
        for session, answer in zip(round_sessions, answers, strict=True):
            session_turns = sessions[session]
            if answer.value is None:
                status = "none" if service is None else "unanswered"
                readings[session] = _SessionReading(status, answer.error)
                continue
            reading = _read_facts_and_entities(
                answer.value,
                session_turns,
                known_facts.list_facts_before_session(session, session_turns),
            )
            reading.service = service_name(service)
            readings[session] = reading
            known_facts.add_facts(reading.facts)
    in_order = [(session, readings[session]) for session in sessions]
    outcomes = [
        (session, reading.status, reading.error_or_left_out_note, reading.service)
        for session, reading in in_order
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
    **other_columns: Any,
) -> Fact:
    """Make the fact that some turns state.

    Its id is made of the first turn and of what it states: other turns and other facts do not
    change it. What only turns of the role ``system`` state has the source ``system``, and nobody
    said it.

    :param other_columns: further columns of :class:`memlab.records.Fact`: ``sentence``, ``kind``,
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
        other_columns.pop("said_by", None)
        or first_turn.get("forwarded_from")
        or first_turn["speaker"]
    )
    if all(turn["role"] == "system" for turn in turns):
        source = "system"
        said_by = None
    stated_parts = (
        about,
        slot,
        value.casefold(),
        other_columns.get("kind", "state"),
        other_columns.get("holds", True),
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
        **other_columns,
    )


def service_name(service: str | Service | None) -> str | None:
    """Give the name by which a service is called."""
    return service.name if isinstance(service, Service) else service


@dataclass
class _SessionReading:
    """What was read of a session.

    :param left_out: what of the answer was left out, and how often.
    """

    status: str
    error: str | None = None
    service: str | None = None
    facts: list[Fact] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)
    left_out: LeftOutCounts = field(default_factory=Counter)

    @property
    def error_or_left_out_note(self) -> str | None:
        if self.error:
            return self.error
        count_texts = [
            f"{count_noun(n_left_out, counted_noun)} {reason_text}"
            for (counted_noun, reason_text), n_left_out in self.left_out.items()
        ]
        if not count_texts:
            return None
        return "; ".join(count_texts)


def _turns_by_session(turns: pl.DataFrame) -> dict[str, list[TurnRow]]:
    return {
        str(session_key[0]): session_turns.to_dicts()
        for session_key, session_turns in turns.group_by("session_id", maintain_order=True)
    }


def _yield_next_session_of_each_scope(
    turns_by_session: Mapping[str, list[TurnRow]],
) -> Iterator[list[str]]:
    """Give the sessions that are asked together: the next one of each scope, in order of time."""
    sessions_by_scope: dict[str, list[str]] = {}
    for session, session_turns in turns_by_session.items():
        sessions_by_scope.setdefault(session_turns[0]["scope"], []).append(session)
    for scope, scope_sessions in sessions_by_scope.items():
        session_starts = [turns_by_session[session][0]["timestamp"] for session in scope_sessions]
        sessions_by_scope[scope] = sort_by_time_keeping_undated(scope_sessions, session_starts)
    most_sessions = max(map(len, sessions_by_scope.values()), default=0)
    for round_number in range(most_sessions):
        yield [
            scope_sessions[round_number]
            for scope_sessions in sessions_by_scope.values()
            if round_number < len(scope_sessions)
        ]


def _choose_prompt_facts_or_placeholders(
    known_facts: KnownFacts, session_id: str, session_turns: list[TurnRow]
) -> PromptFacts:
    if is_estimating():
        return {"known": [_PLACEHOLDER] * MAX_KNOWN, "subjects": []}
    return choose_facts_for_prompt(
        session_turns, known_facts.list_facts_before_session(session_id, session_turns)
    )


def _make_extraction_request(
    session_turns: list[TurnRow], earlier_turns: list[TurnRow], shown_facts: PromptFacts
) -> Request:
    """Make the request about a session; its key is made of the turns alone."""
    request_key = tuple(
        id_or_text for row in session_turns for id_or_text in (row["turn_id"], row["text"])
    )
    earlier = [
        _turn_as_prompt_entry(turn_number, row)
        for turn_number, row in enumerate(earlier_turns, -len(earlier_turns))
    ]
    entries = [
        _turn_as_prompt_entry(turn_number, row) for turn_number, row in enumerate(session_turns, 1)
    ]
    prompt = json.dumps({**shown_facts, "earlier": earlier, "session": entries}, ensure_ascii=False)
    system = FACTS
    for entry in (*earlier, *entries):
        if "forwarded_from" in entry or "quoted" in entry:
            system += WORDS_OF_OTHERS
            break
    return Request("facts", VERSION, request_key, prompt, Stated, system)


def _ask_until_patience_ends_noting_errors(
    requests: Sequence[Request], service: str | Service | None, recent_errors: list[str]
) -> list[Answer]:
    """Ask, unless a service failed for the last sessions in a row: then it is left alone.

    :param recent_errors: the errors of these sessions, which are noted here.
    """
    if len(recent_errors) >= PATIENCE:
        reason = (
            f"not asked after {len(recent_errors)} failures in a row; the last: {recent_errors[-1]}"
        )
        return [Answer(None, reason)] * len(requests)
    answers = ask(requests, service)
    if service in (None, RECORDED) or is_estimating():
        return answers
    for answer in answers:
        if answer.value is not None:
            recent_errors.clear()
        elif not answer.error.startswith("not asked"):
            recent_errors.append(answer.error)
    return answers


def _turn_as_prompt_entry(turn_number: int, turn: TurnRow) -> dict[str, JsonValue]:
    """Give a turn as a prompt shows it; words of others stand apart from those of the speaker."""
    sent_at = turn["timestamp"] and f"{turn['timestamp']:%Y-%m-%d %H:%M}"
    entry = {
        "id": turn_number,
        "time": sent_at,
        "speaker": turn["speaker"],
        "text": _collapse_whitespace(turn["text"]),
    }
    if turn.get("forwarded_from"):
        entry["forwarded_from"] = turn["forwarded_from"]
    if turn.get("quoted"):
        entry["text"] = _collapse_whitespace(remove_quotations(turn["text"], turn["quoted"]))
        entry["quoted"] = [_collapse_whitespace(quotation) for quotation in turn["quoted"]]
    return entry


def _collapse_whitespace(text: str) -> str:
    return " ".join(text.split())


def _read_facts_and_entities(
    model_answer: Stated, session_turns: list[TurnRow], known_facts: list[FactRow]
) -> _SessionReading:
    """Make rows of what a model answered about a session, and count what is left out."""
    reading = _SessionReading("ok")
    facts_by_id = {short_prompt_id(fact): fact for fact in known_facts}
    read_facts: dict[str, Fact] = {}
    for stated in model_answer.facts:
        fact = _read_fact_or_count_left_out(stated, session_turns, facts_by_id, reading.left_out)
        if fact is not None:
            read_facts.setdefault(fact.fact_id, fact)
    reading.facts = [*read_facts.values()]
    reading.entities = _read_entities_with_naming_turns(
        model_answer.entities, model_answer.relations, session_turns
    )
    return reading


def _read_fact_or_count_left_out(
    stated_fact: StatedFact,
    session_turns: list[TurnRow],
    fact_by_prompt_id: Mapping[str, FactRow],
    left_out_counts: LeftOutCounts,
) -> Fact | None:
    """Make the row of a fact; ``None`` where nothing of the session states it."""
    turns = _select_turns_by_number(stated_fact.turns, session_turns)
    if not turns:
        left_out_counts[_UNCITED] += 1
        return None
    source: str = stated_fact.source
    is_others_word = is_on_words_of_others_alone(turns, stated_fact.value)
    if is_others_word:
        source = "reported"
        if names_a_speaker_of_turns(stated_fact.about, turns):
            left_out_counts[_OF_OTHERS] += 1
            return None
    effects: list[str] = []
    affected: list[str] = []
    for effect in stated_fact.effects:
        target = fact_by_prompt_id.get(effect.id)
        if target is None:
            left_out_counts[_UNKNOWN] += 1
        elif is_others_word and names_a_speaker_of_turns(target["about"], turns):
            left_out_counts[_EFFECTS_OF_OTHERS] += 1
        else:
            effects.append(effect.how)
            affected.append(meaning_id_of_fact(target))
    return make_fact(
        turns,
        about=stated_fact.about,
        slot=stated_fact.slot,
        value=stated_fact.value,
        source=source,
        said_by=stated_fact.said_by,
        sentence=stated_fact.sentence,
        kind=stated_fact.kind,
        holds=stated_fact.holds,
        values=stated_fact.values,
        since=_read_date_or_count_unreadable(stated_fact.since, left_out_counts),
        until=_read_date_or_count_unreadable(stated_fact.until, left_out_counts),
        effects=effects,
        affected=affected,
    )


def _read_date_or_count_unreadable(date_text: str, left_out_counts: LeftOutCounts) -> str | None:
    """Give a date as it is written; a time of day behind it is dropped."""
    if not date_text:
        return None
    written_date = re.split("[ T]", date_text, maxsplit=1)[0]
    for date_form in _DATE_FORMS:
        with suppress(ValueError):
            return datetime.strptime(written_date, date_form).strftime(date_form)
    left_out_counts[_UNREADABLE] += 1
    return None


def _read_entities_with_naming_turns(
    stated_entities: list[NamedEntity],
    stated_relations: list[Relation],
    session_turns: list[TurnRow],
) -> list[Entity]:
    """Find the cited turns that contain a word of an entity's name; a speaker needs none."""
    speakers = {row["speaker"].casefold() for row in session_turns}
    name_by_key: dict[str, str] = {}
    for entity in stated_entities:
        name_by_key.setdefault(entity.name.casefold(), entity.name)
    relations_by_key: dict[str, list[tuple[str, str]]] = {}
    for stated_relation in stated_relations:
        entity_and_other = (stated_relation.entity.casefold(), stated_relation.other.casefold())
        if entity_and_other[0] in name_by_key and entity_and_other[1] in name_by_key:
            relations_by_key.setdefault(entity_and_other[0], []).append(
                (stated_relation.relation, name_by_key[entity_and_other[1]])
            )
    entities: dict[str, Entity] = {}
    for entity in stated_entities:
        entity_key = entity.name.casefold()
        turns = _select_naming_turns_or_first_if_speaker(
            entity_key, _select_turns_by_number(entity.turns, session_turns), speakers
        )
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


def _select_naming_turns_or_first_if_speaker(
    folded_name: str, cited_turns: list[TurnRow], folded_speakers: set[str]
) -> list[TurnRow]:
    """Give the cited turns that hold a word of a name."""
    name_words = {
        word for word in re.findall(r"\w+", folded_name) if len(word) > 1 or word.isdigit()
    }
    naming_turns = []
    for turn in cited_turns:
        turn_text = turn["text"].casefold()
        if folded_name in turn_text or name_words.intersection(re.findall(r"\w+", turn_text)):
            naming_turns.append(turn)
    if not naming_turns and folded_name in folded_speakers:
        return cited_turns[:1]
    return naming_turns


def _select_turns_by_number(turn_numbers: list[int], session_turns: list[TurnRow]) -> list[TurnRow]:
    """Give the turns with these numbers, from 1, each once and in order.

    Unknown numbers are dropped.
    """
    return [
        session_turns[turn_number - 1]
        for turn_number in sorted(set(turn_numbers))
        if 1 <= turn_number <= len(session_turns)
    ]
