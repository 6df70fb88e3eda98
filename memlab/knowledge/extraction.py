"""Extraction of facts and entities from sessions by a language model, and of the earlier facts that they end."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
from pydantic import BaseModel

from memlab.knowledge import patterns
from memlab.knowledge.patterns import make_fact
from memlab.knowledge.prompts import (
    ENDINGS,
    FACTS,
    MAX_STATEMENTS,
    VERSION,
    Endings,
    NamedEntity,
    Stated,
    StatedFact,
)
from memlab.knowledge.supersession import active_facts, resolve
from memlab.llm import Answer, Request, Service, ask
from memlab.llm.spending import is_estimating
from memlab.records import Entity, Fact, frame
from memlab.text.lemmas import base_form_stems, infinitive, strip_contrast, third_person

PATTERNS = "patterns"


@dataclass(frozen=True)
class Extracted:
    """Facts and entities that were read out of sessions.

    :param facts: rows of :class:`memlab.records.Fact`.
    :param entities: rows of :class:`memlab.records.Entity`.
    :param outcomes: for each session ``session_id``, ``status`` (``ok``; ``fallback`` where a model
        was asked in vain and the patterns were used), ``reason`` and ``service``, what made the
        rows.
    """

    facts: pl.DataFrame
    entities: pl.DataFrame
    outcomes: pl.DataFrame


def extract(
    turns: pl.DataFrame,
    *,
    service: str | Service | None = None,
    earlier: Mapping[str, list[dict[str, Any]]] | None = None,
    known: pl.DataFrame | None = None,
    undone: Collection[tuple[str, str]] = (),
) -> Extracted:
    """Read facts and entities out of sessions, by a language model or by :mod:`memlab.knowledge.patterns`.

    A model is asked twice of each session: what it states, then which of the statements that held
    before it are over. What is over becomes a fact of its own ("no longer works at"), so that log,
    undo and dates work as for everything else. Turns that do not exist are dropped, and what has no
    turn left.

    :param turns: rows of :class:`memlab.records.Turn`, whole sessions.
    :param service: see :func:`memlab.llm.ask`; ``None`` for patterns.
    :param earlier: of each session that has any, the last turns of its scope before it, in order.
    :param known: what is known of the scopes, rows of :class:`memlab.records.Fact`; of sessions
        given here together, each knows the facts of those before it.
    :param undone: closings of known facts that do not count; see :func:`memlab.knowledge.resolve`.
    :raises ModelError: when the service cannot be asked at all.

    >>> from datetime import UTC, datetime
    >>> import memlab
    >>> from memlab.knowledge import extraction
    >>> said = "I work at Acme. If I had a dog, I would walk more."
    >>> turn = memlab.Turn("u/s/1", "u", "u/s", 1, "Mel", "user", said, None, datetime(2026, 5, 1, tzinfo=UTC))
    >>> found = extraction.extract(memlab.records.frame(memlab.Turn, [turn]))
    >>> found.facts.select("subject", "predicate", "object").rows()
    [('Mel', 'works at', 'Acme')]
    """
    sessions = {
        str(key[0]): part.to_dicts()
        for key, part in turns.group_by("session_id", maintain_order=True)
    }
    requests = []
    for session, rows in sessions.items():
        before = (earlier or {}).get(session, [])
        requests.append(
            _request("facts", rows, Stated, FACTS, {"earlier": _turn_entries(before, -len(before))})
        )
    answers = [Answer(None)] * len(requests) if service is None else ask(requests, service)
    outcomes: dict[str, tuple[str, str | None, str | None]] = {}
    facts: dict[str, Fact] = {}
    entities: list[Entity] = []
    for (session, rows), answer in zip(sessions.items(), answers, strict=True):
        if answer.value is None:
            outcomes[session] = (
                "ok" if service is None else "fallback",
                answer.error or None,
                PATTERNS,
            )
            stated = patterns.pattern_facts(rows)
        else:
            outcomes[session] = ("ok", None, service_name(service))
            stated = _stated_facts(answer.value.facts, rows)
            entities += _named_entities(answer.value.entities, rows)
        for fact in stated:
            facts.setdefault(fact.fact_id, fact)
    # Facts that these sessions gave at another time are replaced.
    others = frame(Fact) if known is None else known
    others = others.filter(~pl.col("session_id").is_in(list(sessions)).fill_null(False))
    all_facts = pl.concat([others, frame(Fact, facts.values())])
    all_facts = all_facts.with_columns(
        recorded_at=pl.coalesce("recorded_at", "asserted_at", pl.lit(datetime.now(UTC)))
    )
    answered = {
        session: rows for session, rows in sessions.items() if outcomes[session][2] != PATTERNS
    }
    if service is not None and is_estimating():
        # What will be stated is not known: count the second question of each session at its usual,
        # full length.
        shown = {
            "statements": [{"id": "f" * 13, "said": "2026-01-01", "statement": "s" * 70}]
            * MAX_STATEMENTS
        }
        ask(
            [_request("endings", rows, Endings, ENDINGS, shown) for rows in sessions.values()],
            service,
        )
    for session, error, endings in _ask_ended_facts(answered, all_facts, undone, service):
        if error:
            outcomes[session] = ("fallback", f"what it ends: {error}", service_name(service))
        for fact in endings:
            facts.setdefault(fact.fact_id, fact)
    columns = dict.fromkeys(("session_id", "status", "reason", "service"), pl.String())
    table = pl.DataFrame(
        [(session, *how) for session, how in outcomes.items()], schema=columns, orient="row"
    )
    return Extracted(frame(Fact, facts.values()), frame(Entity, entities), table)


def relation_in_mode(relation: str, mode: str) -> str:
    """Give a relation in a mode: "keeps", not → "does not keep", ended → "no longer keeps".

    :param mode: ``is``, ``not``, ``plan``, ``was`` or ``ended``.

    >>> from memlab.knowledge.extraction import relation_in_mode
    >>> [relation_in_mode("keeps", mode) for mode in ("is", "not", "plan", "was", "ended")]
    ['keeps', 'does not keep', 'plans to keep', 'used to keep', 'no longer keeps']
    >>> relation_in_mode("is afraid of", "not"), relation_in_mode("does not eat", "ended")
    ('is not afraid of', 'eats')
    """
    if mode == "is":
        return relation
    if mode == "ended":
        if denied := re.match(r"(?:does not (?P<does>\S+)|is not\b)(?P<tail>.*)", relation):
            verb = denied["does"]
            return f"{'is' if verb in (None, 'be') else third_person(verb)}{denied['tail']}"
        bare = re.sub(r"^(is )?no longer ", r"\1", relation)
        return (
            re.sub(r"^is\b", "is no longer", bare)
            if re.match(r"is\b", bare)
            else f"no longer {bare}"
        )
    # A model may put the mode into the relation, too.
    relation = re.sub(
        r"^(is )?(?:(?:no longer|not)\b ?|(?:plans|used) to |does not )", r"\1", relation
    )
    first, _, tail = relation.partition(" ")
    plain = f"{infinitive(first)} {tail}".strip()
    if mode == "not":
        perfect = first == "has" and re.match(r"(?:been|had|\w+ed|\w+en)\b", tail)
        return f"{first} not {tail}".strip() if first == "is" or perfect else f"does not {plain}"
    return f"plans to {plain}" if mode == "plan" else f"used to {plain}"


def service_name(service: str | Service | None) -> str | None:
    return service.name if isinstance(service, Service) else service


def _turn_entries(rows: list[dict[str, Any]], start: int = 1) -> list[dict[str, Any]]:
    return [
        {"id": n, "time": row["timestamp"] and f"{row['timestamp']:%Y-%m-%d %H:%M}", "speaker": row["speaker"],
         "text": " ".join(row["text"].split())}
        for n, row in enumerate(rows, start)
    ]  # fmt: skip


def _request(
    task: str, rows: list[dict[str, Any]], shape: type[BaseModel], system: str, shown: Any
) -> Request:
    about = tuple(part for row in rows for part in (row["turn_id"], row["text"]))
    prompt = json.dumps({**shown, "session": _turn_entries(rows)}, ensure_ascii=False)
    return Request(task, VERSION, about, prompt, shape, system)


def _stated_facts(stated: list[StatedFact], rows: list[dict[str, Any]]) -> Iterator[Fact]:
    for fact in stated:
        if turns := _cited_turns(fact.turns, rows):
            value = f"not {fact.corrects} but {fact.object}" if fact.corrects else fact.object
            triple = (fact.subject, relation_in_mode(fact.relation, fact.mode), value)
            yield make_fact(turns, triple, source=fact.source, text=fact.sentence)


def _ask_ended_facts(
    sessions: Mapping[str, list[dict[str, Any]]],
    known: pl.DataFrame,
    undone: Collection[tuple[str, str]],
    service: str | Service | None,
) -> Iterator[tuple[str, str, list[Fact]]]:
    """Ask which earlier facts each session ends; give for each session the error, if any, and facts that say so."""
    resolved = (
        {scope: resolve(part, undone=undone) for (scope,), part in known.group_by("scope")}
        if sessions
        else {}
    )
    requests: dict[str, Request] = {}
    for session, rows in sessions.items():
        before = rows[0]["timestamp"] and rows[0]["timestamp"] - timedelta(microseconds=1)
        if (facts := resolved.get(rows[0]["scope"])) is None:
            continue
        # A correction holds from when the wrong value was said, and nobody knew it then.
        held = active_facts(facts, as_of=before).filter(
            before is None or pl.col("said_at") <= before
        )
        if statements := _statement_entries(rows, held):
            requests[session] = _request(
                "endings", rows, Endings, ENDINGS, {"statements": statements}
            )
    by_id = {(fact["scope"], _short_id(fact)): fact for fact in known.iter_rows(named=True)}
    answers = ask(list(requests.values()), service) if service and requests else []
    for session, answer in zip(requests, answers, strict=True):
        rows, ended = sessions[session], []
        for end in answer.value.ended if answer.value else ():
            old, turns = by_id.get((rows[0]["scope"], end.statement)), _cited_turns(end.turns, rows)
            if old and turns:
                value = strip_contrast(old["object"]).strip()
                triple = (old["subject"], relation_in_mode(old["predicate"], "ended"), value)
                ended.append(make_fact(turns, triple, source="observed", text=end.sentence))
        yield session, answer.error, ended


def _short_id(fact: dict[str, Any]) -> str:
    return str(fact["fact_id"]).rpartition("/")[2]


def _statement_entries(rows: list[dict[str, Any]], facts: pl.DataFrame) -> list[dict[str, Any]]:
    """Give the prompt's entries of earlier facts: those that share most words with a session, else the latest."""
    facts = facts.filter(pl.col("session_id").ne_missing(rows[0]["session_id"]))
    words = frozenset(base_form_stems(" ".join(f"{row['speaker']} {row['text']}" for row in rows)))
    texts = facts.select(text=pl.concat_str("subject", "object", separator=" "))["text"]
    shared = pl.Series(
        [len(words.intersection(base_form_stems(text))) for text in texts], dtype=pl.Int32
    )
    best = facts.with_columns(shared=shared).sort(
        "shared", "said_at", descending=True, maintain_order=True
    )
    return [
        {"id": _short_id(fact), "said": f"{fact['said_at']:%Y-%m-%d}",
         "statement": fact["text"] or f"{fact['subject']} {fact['predicate']} {fact['object']}"}
        for fact in best.head(MAX_STATEMENTS).sort("said_at").iter_rows(named=True)
    ]  # fmt: skip


def _named_entities(named: list[NamedEntity], rows: list[dict[str, Any]]) -> list[Entity]:
    """Give entities with the cited turns that contain a word of their name; a speaker needs none."""
    speakers = {row["speaker"].casefold() for row in rows}
    entities: dict[str, Entity] = {}
    for entity in named:
        key, cited = entity.name.casefold(), _cited_turns(entity.turns, rows)
        words = {word for word in re.findall(r"\w+", key) if len(word) > 1 or word.isdigit()}
        turns = [
            turn
            for turn in cited
            if words.intersection(re.findall(r"\w+", turn["text"].casefold()))
        ]
        turns = turns or (cited[:1] if key in speakers else [])
        if turns and key not in entities:
            first = turns[0]
            entities[key] = Entity(
                f"{first['session_id']}/e{len(entities) + 1}", first["scope"], first["session_id"], entity.name,
                entity.type, first["text"], [turn["turn_id"] for turn in turns],
            )  # fmt: skip
    return list(entities.values())


def _cited_turns(numbers: list[int], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the turns with these numbers, from 1, each once and in order; unknown numbers are dropped."""
    return [rows[n - 1] for n in sorted(set(numbers)) if 1 <= n <= len(rows)]
