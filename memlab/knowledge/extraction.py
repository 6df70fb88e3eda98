"""Extraction of facts and entities from sessions by a language model, and of the earlier facts that they end."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import polars as pl
from pydantic import BaseModel

from memlab.knowledge.fact_prompts import (
    ENDINGS,
    FACTS,
    MAX_STATEMENTS,
    VERSION,
    WORDS_OF_OTHERS,
    Endings,
    NamedEntity,
    Stated,
    StatedFact,
)
from memlab.knowledge.supersession import active_facts, resolve
from memlab.llm import Request, Service, ask
from memlab.llm.spending import is_estimating
from memlab.records import Entity, Fact, frame
from memlab.terminal import count_noun
from memlab.text.lemmas import base_form_stems, infinitive, strip_contrast, third_person
from memlab.text.quotations import remove_quotations
from memlab.text.tokens import stem
from memlab.text.words import STOP_WORDS

TurnRow = dict[str, Any]
"""A turn as a row of :class:`memlab.records.Turn`."""
_NOT_OWN = "about a speaker left out: their turns only forward or quote the words"
_OUTCOMES = dict.fromkeys(("session_id", "status", "reason", "service"), pl.String())


@dataclass(frozen=True)
class Extracted:
    """Facts and entities that a model read out of sessions.

    :param facts: rows of :class:`memlab.records.Fact`.
    :param entities: rows of :class:`memlab.records.Entity`.
    :param outcomes: for each session ``session_id``, ``status`` (``ok``; ``unanswered`` where a
        model was asked in vain; ``none`` where no model was asked), ``reason``, why an answer is
        missing, and ``service``, what stated the facts; null where nothing did.
    """

    facts: pl.DataFrame
    entities: pl.DataFrame
    outcomes: pl.DataFrame

    @property
    def note(self) -> str:
        """One line on sessions that no model read, so that they have no facts; empty where it read all."""
        unread = self.outcomes.filter(pl.col("service").is_null())
        if unread.is_empty():
            return ""
        counted = f"{unread.height:,} of {self.outcomes.height:,} sessions"
        advice = 'service="NAME" or --service NAME asks a model'
        return f"no facts: no model read {counted} ({unread['reason'][0]}); {advice}"


def extract(
    turns: pl.DataFrame,
    *,
    service: str | Service | None = None,
    earlier: Mapping[str, list[TurnRow]] | None = None,
    known: pl.DataFrame | None = None,
    undone: Collection[tuple[str, str]] = (),
) -> Extracted:
    """Read facts and entities out of sessions by a language model; a session without an answer has none.

    A model is asked twice of each session: what it states, then which of the statements that held
    before it are over. What is over becomes a fact of its own ("no longer works at"), so that log,
    undo and dates work as for everything else. Turns that do not exist are dropped, and what has no
    turn left. The model sees which words a speaker only forwarded or quoted; what it states of
    the speaker out of such words alone is left out, and counted in the outcome of the session.

    :param turns: rows of :class:`memlab.records.Turn`, whole sessions.
    :param service: see :func:`memlab.llm.ask`; with ``None`` nothing is read.
    :param earlier: of each session that has any, the last turns of its scope before it, in order.
    :param known: what is known of the scopes, rows of :class:`memlab.records.Fact`; of sessions
        given here together, each knows the facts of those before it.
    :param undone: closings of known facts that do not count; see :func:`memlab.knowledge.resolve`.
    :raises ModelError: when the service cannot be asked at all.

    >>> import memlab
    >>> from memlab.knowledge import extract
    >>> turns = memlab.sample(scopes=["nadia"]).turns
    >>> session = turns.filter(turns["session_id"] == turns["session_id"][0])
    >>> found = extract(session, service="recorded")
    >>> found.facts.select("subject", "predicate", "object").row(1)
    ('Nadia', 'works at', 'Kwartel')
    >>> extract(session).facts.height
    0
    >>> extract(session).note
    'no facts: no model read 1 of 1 sessions (no service is named); service="NAME" or --service NAME asks a model'
    """
    sessions = {
        str(key[0]): part.to_dicts()
        for key, part in turns.group_by("session_id", maintain_order=True)
    }
    requests = []
    for session, rows in sessions.items():
        before = (earlier or {}).get(session, [])
        shown = {"earlier": _turn_entries(before, -len(before))}
        requests.append(_request("facts", rows, Stated, FACTS, shown))
    answers = ask(requests, service)

    outcomes: dict[str, tuple[str, str | None, str | None]] = {}
    answered: dict[str, list[TurnRow]] = {}
    facts: dict[str, Fact] = {}
    entities: list[Entity] = []
    for (session, rows), answer in zip(sessions.items(), answers, strict=True):
        if answer.value is None:
            status = "none" if service is None else "unanswered"
            outcomes[session] = (status, answer.error, None)
            continue
        outcomes[session] = ("ok", None, service_name(service))
        answered[session] = rows
        entities += _named_entities(answer.value.entities, rows)
        stated = _own_statements(answer.value.facts, rows)
        left_out = len(answer.value.facts) - len(stated)
        if left_out:
            reason = f"{count_noun(left_out, 'facts')} {_NOT_OWN}"
            outcomes[session] = ("ok", reason, service_name(service))
        for fact in _stated_facts(stated, rows):
            facts.setdefault(fact.fact_id, fact)

    if service is not None and is_estimating():
        _estimate_endings(sessions, service)
    all_facts = _all_known_facts(known, [*sessions], [*facts.values()])
    for session, error, endings, left_out in _ask_ended_facts(answered, all_facts, undone, service):
        if left_out:
            status, first_reason, name = outcomes[session]
            counted = f"{count_noun(left_out, 'endings')} {_NOT_OWN}"
            outcomes[session] = (status, "; ".join(filter(None, (first_reason, counted))), name)
        if error:
            outcomes[session] = ("unanswered", f"what it ends: {error}", service_name(service))
        for fact in endings:
            facts.setdefault(fact.fact_id, fact)
    rows_of_outcomes = [(session, *outcome) for session, outcome in outcomes.items()]
    table = pl.DataFrame(rows_of_outcomes, schema=_OUTCOMES, orient="row")
    return Extracted(frame(Fact, facts.values()), frame(Entity, entities), table)


def make_fact(
    turns: list[TurnRow],
    triple: tuple[str, str, str],
    *,
    source: str,
    text: str | None = None,
) -> Fact:
    """Make the fact that some turns state, from its subject, predicate and object.

    Its id is made of the first turn and the triple: other turns and other facts do not change it.

    :param text: a sentence that states the fact and is understood alone.

    >>> from memlab.knowledge.extraction import make_fact
    >>> turn = {"turn_id": "u/1", "scope": "u", "session_id": "u/s", "speaker": "Mel", "role": "user",
    ...         "timestamp": None, "text": "My door code is 12u34."}
    >>> fact = make_fact([turn], ("Mel's door code", "is", "12u34"), source="stated")
    >>> fact.fact_id, fact.evidence, fact.speaker
    ('u/1/fc79391c690c5', ['u/1'], 'Mel')
    """
    first = turns[0]
    speaker = first.get("forwarded_from") or first["speaker"]
    if all(turn["role"] == "system" for turn in turns):
        source, speaker = "system", None
    subject, predicate, value = triple
    digest = hashlib.blake2b(
        "\x1f".join((subject, predicate, value.casefold())).encode(), digest_size=6
    ).hexdigest()
    return Fact(
        fact_id=f"{first['turn_id']}/f{digest}",
        scope=first["scope"],
        subject=subject,
        predicate=predicate,
        object=value,
        source=source,
        evidence=[turn["turn_id"] for turn in turns],
        asserted_at=first["timestamp"],
        speaker=speaker,
        text=text,
        session_id=first["session_id"],
    )


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


def _turn_entries(rows: list[TurnRow], start: int = 1) -> list[dict[str, Any]]:
    return [_turn_entry(n, row) for n, row in enumerate(rows, start)]


def _turn_entry(n: int, row: TurnRow) -> dict[str, Any]:
    """Give a turn as a prompt shows it; words of others stand apart from those of the speaker."""
    when = row["timestamp"] and f"{row['timestamp']:%Y-%m-%d %H:%M}"
    entry = {"id": n, "time": when, "speaker": row["speaker"], "text": _on_one_line(row["text"])}
    if row.get("forwarded_from"):
        entry["forwarded_from"] = row["forwarded_from"]
    if row.get("quoted"):
        entry["text"] = _on_one_line(remove_quotations(row["text"], row["quoted"]))
        entry["quoted"] = [_on_one_line(part) for part in row["quoted"]]
    return entry


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _request(
    task: str, rows: list[TurnRow], shape: type[BaseModel], system: str, shown: Any
) -> Request:
    about = tuple(part for row in rows for part in (row["turn_id"], row["text"]))
    entries = _turn_entries(rows)
    prompt = json.dumps({**shown, "session": entries}, ensure_ascii=False)
    for entry in (*shown.get("earlier", ()), *entries):
        if "forwarded_from" in entry or "quoted" in entry:
            system += WORDS_OF_OTHERS
            break
    return Request(task, VERSION, about, prompt, shape, system)


def _own_words(row: TurnRow) -> str:
    """Give what the speaker of a turn says themselves: nothing of what they forward or quote."""
    if row.get("forwarded_from"):
        return ""
    return remove_quotations(row["text"], row.get("quoted") or [])


def _is_said_by_speaker(turns: list[TurnRow], subject: str, value: str) -> bool:
    """Say whether some turns may state such a fact: one of a speaker not out of words of others alone.

    A forwarded turn states nothing of its sender; one that quotes does where the speaker's own words
    share a word with the value. Facts of others may stand on words of others.
    """
    stated = frozenset(base_form_stems(value)) - _stop_stems() - {*base_form_stems(subject)}
    for row in turns:
        with_others = row.get("forwarded_from") or row.get("quoted")
        if not with_others or not _is_of_speaker(subject, row):
            return True
        if not stated.isdisjoint(base_form_stems(_own_words(row))):
            return True
    return False


def _is_of_speaker(subject: str, row: TurnRow) -> bool:
    """Say whether a fact is of the speaker of a turn, or of what the words of others call "my" there.

    "Mel's sister" is of Mel where somebody else writes "my sister", which is the sister of theirs;
    where Mel quotes her, it is of nobody but her.
    """
    owner, _, thing = re.sub("[\u2019']s\\b", "'s", subject.strip().casefold()).partition("'s ")
    if owner.split(maxsplit=1)[:1] != row["speaker"].strip().casefold().split(maxsplit=1)[:1]:
        return False
    others = row["text"] if row.get("forwarded_from") else "\n".join(row["quoted"])
    return not thing or re.search(rf"(?i)\b(?:my|our) {re.escape(thing)}\b", others) is not None


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(stem(STOP_WORDS)) | STOP_WORDS


def _own_statements(stated: list[StatedFact], rows: list[TurnRow]) -> list[StatedFact]:
    """Leave out what is stated of a speaker out of words that they only forwarded or quoted."""
    kept = []
    for fact in stated:
        turns = _cited_turns(fact.turns, rows)
        if not turns or _is_said_by_speaker(turns, fact.subject, fact.object):
            kept.append(fact)
    return kept


def _stated_facts(stated: list[StatedFact], rows: list[TurnRow]) -> Iterator[Fact]:
    for fact in stated:
        if turns := _cited_turns(fact.turns, rows):
            value = f"not {fact.corrects} but {fact.object}" if fact.corrects else fact.object
            triple = (fact.subject, relation_in_mode(fact.relation, fact.mode), value)
            yield make_fact(turns, triple, source=fact.source, text=fact.sentence)


def _all_known_facts(
    known: pl.DataFrame | None, sessions: list[str], stated: list[Fact]
) -> pl.DataFrame:
    """Give what is known with what sessions state now, in place of what they stated at another time."""
    if known is None:
        known = frame(Fact)
    others = known.filter(~pl.col("session_id").is_in(sessions).fill_null(False))
    recorded_at = pl.coalesce("recorded_at", "asserted_at", pl.lit(datetime.now(UTC)))
    return pl.concat([others, frame(Fact, stated)]).with_columns(recorded_at=recorded_at)


def _estimate_endings(sessions: Mapping[str, list[TurnRow]], service: str | Service) -> None:
    """Count the second question of each session at its usual, full length: what will be stated is not known."""
    statement = {"id": "f" * 13, "said": "2026-01-01", "statement": "s" * 70}
    shown = {"statements": [statement] * MAX_STATEMENTS}
    ask([_request("endings", rows, Endings, ENDINGS, shown) for rows in sessions.values()], service)


def _ask_ended_facts(
    sessions: Mapping[str, list[TurnRow]],
    known: pl.DataFrame,
    undone: Collection[tuple[str, str]],
    service: str | Service | None,
) -> Iterator[tuple[str, str, list[Fact], int]]:
    """Ask which earlier facts each session ends.

    :returns: for each session the error, if any, the facts that say so, and how many were left out
        since they stand on words of others.
    """
    resolved = (
        {scope: resolve(part, undone=undone) for (scope,), part in known.group_by("scope")}
        if sessions
        else {}
    )
    requests: dict[str, Request] = {}
    order = {session: place for place, session in enumerate(sessions)}
    for session, rows in sessions.items():
        before = rows[0]["timestamp"] and rows[0]["timestamp"] - timedelta(microseconds=1)
        if (facts := resolved.get(rows[0]["scope"])) is None:
            continue
        # A correction holds from when the wrong value was said, and nobody knew it then.
        held = active_facts(facts, as_of=before)
        if before is None:
            later = [other for other in order if order[other] > order[session]]
            held = held.filter(~pl.col("session_id").is_in(later).fill_null(False))
        else:
            held = held.filter(pl.col("said_at") <= before)
        if statements := _statement_entries(rows, held):
            requests[session] = _request(
                "endings", rows, Endings, ENDINGS, {"statements": statements}
            )
    by_id = {(fact["scope"], _short_id(fact)): fact for fact in known.iter_rows(named=True)}
    answers = ask(list(requests.values()), service) if service and requests else []
    for session, answer in zip(requests, answers, strict=True):
        rows, ended, left_out = sessions[session], list[Fact](), 0
        for end in answer.value.ended if answer.value else ():
            old, turns = by_id.get((rows[0]["scope"], end.statement)), _cited_turns(end.turns, rows)
            if old and turns and not _is_said_by_speaker(turns, old["subject"], end.sentence):
                left_out += 1
            elif old and turns:
                value = strip_contrast(old["object"]).strip()
                triple = (old["subject"], relation_in_mode(old["predicate"], "ended"), value)
                ended.append(make_fact(turns, triple, source="observed", text=end.sentence))
        yield session, answer.error, ended, left_out


def _short_id(fact: dict[str, Any]) -> str:
    return str(fact["fact_id"]).rpartition("/")[2]


def _statement_entries(rows: list[TurnRow], facts: pl.DataFrame) -> list[dict[str, Any]]:
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
        {"id": _short_id(fact), "said": fact["said_at"] and f"{fact['said_at']:%Y-%m-%d}",
         "statement": fact["text"] or f"{fact['subject']} {fact['predicate']} {fact['object']}"}
        for fact in best.head(MAX_STATEMENTS).sort("said_at").iter_rows(named=True)
    ]  # fmt: skip


def _named_entities(named: list[NamedEntity], rows: list[TurnRow]) -> list[Entity]:
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


def _cited_turns(numbers: list[int], rows: list[TurnRow]) -> list[TurnRow]:
    """Give the turns with these numbers, from 1, each once and in order; unknown numbers are dropped."""
    return [rows[n - 1] for n in sorted(set(numbers)) if 1 <= n <= len(rows)]
