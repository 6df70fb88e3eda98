"""What a prompt shows of the facts that are known: made of earlier answers alone, not of what was
resolved of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import polars as pl

from memlab.knowledge.own_or_quoted_words import TurnRow
from memlab.records import Fact, frame
from memlab.records.facts import meaning_id
from memlab.text.tokens_and_sentences import stem, words

if TYPE_CHECKING:
    from pydantic import JsonValue

MAX_KNOWN = 60
"""The most facts of a scope that a prompt shows."""
MAX_SUBJECTS = 60
"""The most names of what facts are about that a prompt shows."""
CLOSING_EFFECTS = frozenset({"replaces", "ends", "came_about", "cancelled", "was_wrong"})
"""Effects after which a fact is not shown any more."""

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
FactRow = Mapping[str, Any]
"""A fact as a row of :class:`memlab.records.Fact`."""


class PromptFacts(TypedDict):
    """What a prompt shows of earlier facts: entries in the order of statement, and their
    subjects.
    """

    known: list[dict[str, JsonValue]]
    subjects: list[str]


def meaning_id_of_fact(fact: FactRow, *, n_digest_bytes: int = 8) -> str:
    """Give the id of what a fact states, by which effects name it.

    :param n_digest_bytes: bytes of its digest, see :func:`memlab.records.facts.meaning_id`.
    """
    about = fact["about"]
    slot = fact["slot"]
    value = fact["value"]
    return meaning_id(
        about, slot, value, kind=fact["kind"], holds=fact["holds"], size=n_digest_bytes
    )


def short_prompt_id(fact: FactRow) -> str:
    """Give the short id by which a prompt names a fact.

    No two of its sixty are likely to share one.
    """
    return meaning_id_of_fact(fact, n_digest_bytes=3)


def unclosed_facts_by_meaning_id(facts: Iterable[FactRow]) -> dict[str, FactRow]:
    """Give the facts that no later answer replaced, ended or took back, each as it was stated last.

    :param facts: in the order in which they were stated.
    :returns: by the id of what they state.

    >>> from memlab.knowledge.known_facts import meaning_id_of_fact, unclosed_facts_by_meaning_id
    >>> row = {"about": "Mel", "slot": "home", "kind": "state", "holds": True}
    >>> row |= {"effects": [], "affected": []}
    >>> first = row | {"value": "Oslo"}
    >>> affected = [meaning_id_of_fact(first)]
    >>> moved = row | {"value": "Rome", "effects": ["replaces"], "affected": affected}
    >>> [fact["value"] for fact in unclosed_facts_by_meaning_id([first, moved]).values()]
    ['Rome']
    """
    facts_by_meaning: dict[str, FactRow] = {}
    meaning_by_id: dict[str, str] = {}
    for fact in facts:
        for effect_name, affected_fact in zip(fact["effects"], fact["affected"], strict=True):
            if effect_name in CLOSING_EFFECTS:
                facts_by_meaning.pop(meaning_by_id.get(affected_fact, affected_fact), None)
        meaning = meaning_id_of_fact(fact)
        if "fact_id" in fact:
            meaning_by_id[fact["fact_id"]] = meaning
        earlier_fact = facts_by_meaning.pop(meaning, None)
        facts_by_meaning[meaning] = _inherit_missing_dates(fact, earlier_fact)
    return facts_by_meaning


class KnownFacts:
    """What sessions stated, while others are read: gives what stands before a session.

    :param known: rows of :class:`memlab.records.Fact`.
    :param skip: ids of sessions that are read anew: what they stated at another time is not known.
    :param order: ids of sessions in their order, by which facts without a time are placed.
    """

    def __init__(
        self, known: pl.DataFrame | None, *, skip: Collection[str], order: Sequence[str] = ()
    ) -> None:
        self._places = {session: place for place, session in enumerate(order)}
        self._by_scope: defaultdict[str, list[FactRow]] = defaultdict(list)
        if known is None:
            return
        for fact in known.iter_rows(named=True):
            if fact["session_id"] not in skip:
                self._by_scope[fact["scope"]].append(fact)

    def add_facts(self, facts: Iterable[Fact]) -> None:
        """Note what a session stated."""
        for fact in frame(Fact, facts).iter_rows(named=True):
            self._by_scope[fact["scope"]].append(fact)

    def list_facts_before_session(
        self, session_id: str, session_turns: Sequence[TurnRow]
    ) -> list[FactRow]:
        """Give what was stated before a session in its scope, in the order in which it was stated.

        :param session_turns: of the session, rows of :class:`memlab.records.Turn`.
        """
        begun_at = session_turns[0]["timestamp"]
        earlier_facts = [
            fact
            for fact in self._by_scope[session_turns[0]["scope"]]
            if not self._is_of_or_after_session(fact, session_id, begun_at)
        ]
        fact_times = [fact["asserted_at"] for fact in earlier_facts]
        return sort_by_time_keeping_undated(earlier_facts, fact_times)

    def _is_of_or_after_session(
        self, fact: FactRow, session_id: str, session_start: datetime | None
    ) -> bool:
        if fact["session_id"] == session_id:
            return True
        if session_start is not None and fact["asserted_at"] is not None:
            return bool(fact["asserted_at"] >= session_start)
        session_place = self._places.get(session_id)
        other_place = self._places.get(fact["session_id"])
        if session_place is None or other_place is None:
            return False
        return other_place > session_place


T = TypeVar("T")


def sort_by_time_keeping_undated(items: Sequence[T], times: Sequence[datetime | None]) -> list[T]:
    """Sort by time; what has none keeps its place behind what stands before it.

    >>> from datetime import datetime
    >>> from memlab.knowledge.known_facts import sort_by_time_keeping_undated
    >>> sort_by_time_keeping_undated("bca", [datetime(2026, 2, 1), None, datetime(2026, 1, 1)])
    ['a', 'b', 'c']
    """
    sorting_keys = []
    latest_time = None
    for thing_place, thing_time in enumerate(times):
        if thing_time is not None:
            latest_time = thing_time
        # What stands before all times comes first.
        has_time = latest_time is not None
        sorting_keys.append((has_time, latest_time or _NEVER, thing_place))
    return [items[thing_place] for _, _, thing_place in sorted(sorting_keys)]


def choose_facts_for_prompt(
    session_turns: Sequence[TurnRow], earlier_facts: Iterable[FactRow]
) -> PromptFacts:
    """Give what a prompt shows of what is known: the facts nearest to a session, and whom they are
    about.

    A fact is nearer the more and the rarer words it shares with the session; of equally near ones
    the latest are shown. Of facts that share words, and of those that share none, events come last.

    :param session_turns: its turns, rows of :class:`memlab.records.Turn`.
    :param earlier_facts: what was stated before it in its scope, in that order.
    :returns: ``known``, in the order in which they were stated, and ``subjects``.
    """
    shown_facts = unclosed_facts_by_meaning_id(earlier_facts)
    stems_by_meaning = {meaning: _stems_of_fact(fact) for meaning, fact in shown_facts.items()}
    n_facts = Counter(chain.from_iterable(stems_by_meaning.values()))
    turn_texts = [f"{turn['speaker']} {turn['text']}" for turn in session_turns]
    session_stems = _stems_of_text(" ".join(turn_texts))
    nearness = {}
    for fact_place, (meaning, stems_of_fact) in enumerate(stems_by_meaning.items()):
        shared_stems = sorted(stems_of_fact & session_stems)
        shared_weight = sum(1 / n_facts[word] for word in shared_stems)
        # What happened never ends: it gives way to what a session may change.
        may_end = shown_facts[meaning]["kind"] != "event"
        nearness[meaning] = (bool(shared_stems), may_end, shared_weight, fact_place)
    nearest = sorted(nearness, key=nearness.__getitem__, reverse=True)[:MAX_KNOWN]
    in_order = filter(frozenset(nearest).__contains__, shown_facts)
    entries = [_fact_as_prompt_entry(shown_facts[meaning]) for meaning in in_order]
    subjects = dict.fromkeys(map(itemgetter("about"), reversed(shown_facts.values())))
    return {"known": entries, "subjects": list(subjects)[:MAX_SUBJECTS]}


def _inherit_missing_dates(fact: FactRow, earlier_fact: FactRow | None) -> FactRow:
    """Give a fact with the dates that were known of it, where it was said again without any."""
    if earlier_fact is None:
        return fact
    known_dates = {name: fact[name] or earlier_fact[name] for name in ("since", "until")}
    return {**fact, **known_dates}


def _fact_as_prompt_entry(fact: FactRow) -> dict[str, JsonValue]:
    """Give a fact as a prompt shows it; what is as usual is left out."""
    entry = {
        "id": short_prompt_id(fact),
        "about": fact["about"],
        "slot": fact["slot"],
        "value": fact["value"],
    }
    if fact["kind"] != "state":
        entry["kind"] = fact["kind"]
    if not fact["holds"]:
        entry["holds"] = False
    for name in ("since", "until"):
        if fact[name]:
            entry[name] = fact[name]
    if fact["asserted_at"]:
        entry["said"] = f"{fact['asserted_at']:%Y-%m-%d}"
    return entry


def _stems_of_fact(fact: FactRow) -> frozenset[str]:
    fact_texts = (fact["about"], fact["slot"], fact["value"], fact["sentence"] or "")
    return _stems_of_text(" ".join(fact_texts))


@lru_cache(maxsize=100_000)
def _stems_of_text(text: str) -> frozenset[str]:
    return frozenset(stem(words(text)))
