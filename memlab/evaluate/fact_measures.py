"""What the index knows of chats with gold facts: active facts, as of dates, invalidations, and false positives."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from memlab import indexing
from memlab.config import IndexSettings
from memlab.embed import Encoder
from memlab.errors import DataError
from memlab.evaluate.confidence_intervals import Unit, clustering_scopes, mean_intervals
from memlab.evaluate.gold_facts import (
    Annotations,
    Entry,
    message_turn_id,
    read_gold,
    read_json_lines,
)
from memlab.evaluate.tables import Table
from memlab.knowledge import Resolved, active_facts, resolve
from memlab.knowledge.extraction import make_fact
from memlab.llm import Service
from memlab.records import Fact, frame
from memlab.store import MemoryStore
from memlab.text.lemmas import strip_contrast

MEASURES = (
    "current precision", "current recall", "as-of precision", "as-of recall",
    "invalidation precision", "invalidation recall", "traps avoided",
)  # fmt: skip
_OUTCOMES = {"scope": pl.String(), "measure": pl.String(), "hit": pl.Boolean(), "kind": pl.String(),
             "what": pl.String(), "closed": pl.Boolean()}  # fmt: skip
_Row = Mapping[str, Any]
_Outcome = tuple[str, bool, str | None, str]


def measure_folder(
    folder: str | Path,
    *,
    facts: str | Path | None = None,
    settings: IndexSettings | None = None,
    service: str | Service | None = None,
    encoder: Encoder | None = None,
) -> pl.DataFrame:
    """Index the chats of a folder in a store of their own, and measure what is known by their gold annotations.

    An active fact counts for precision if it says what an active entry says (a hit); if it falls
    into a trap, says what no longer holds, contradicts or is nowhere among the entries (a miss);
    neither way if it is a neutral entry, or states truly that something was planned, is over or was
    not so. Recall asks which active entries are stated by such a fact. An invalidation is right if
    it ends an entry that has ended, at most a day before that was said. A trap is avoided unless a
    fact from its message says it. A session that the model does not answer for has no facts, with
    a warning.

    :param facts: JSON lines of stated facts as in ``data/facts/frozen.jsonl``: nothing is indexed,
        they are resolved.
    :param service: the language model that extracts, where ``facts`` are not given.
    :param encoder: matches near-equal wordings when facts are resolved; ``None``: normal forms
        only.
    :returns: a row for each thing counted: ``scope``, ``measure``, ``hit``, ``kind`` (of a trap; of
        what was wrong), ``what`` (in words; null where ``closed``) and ``closed``: see
        :func:`outcome_totals`.
    :raises DataError: when the folder has no annotations, a line is bad, or there is nothing to
        measure: no service and no facts, or no answer for any session.
    """
    if facts is None and service is None:
        raise DataError(
            "no facts: only a model reads them out of chats; name one with service= (--service NAME), "
            "or give stated ones with facts= (--facts FILE)"
        )
    chats = read_gold(folder)
    if facts is not None:
        rows = read_json_lines(facts)
        measured = [
            measure_chat(gold, partial(resolve, facts_from_rows(rows, gold), encoder=encoder))
            for gold in chats
        ]
        return pl.concat(measured)
    facts_alone = (settings or IndexSettings()).model_copy(update={"summaries": False})
    measured = []
    events = []
    with tempfile.TemporaryDirectory(prefix="memlab-knowledge-") as place:
        store = MemoryStore.open(place)
        for gold in chats:
            events.append(_index_chat(store, gold, facts_alone, service))
            about: dict[str, Any] = {"scopes": [gold.scope], "encoder": encoder}
            known = partial(indexing.resolved_facts, store, gold.data.name, **about)
            measured.append(measure_chat(gold, known))
    _note_unread_sessions(pl.concat(events))
    return pl.concat(measured)


def _index_chat(
    store: MemoryStore, gold: Annotations, settings: IndexSettings, service: str | Service | None
) -> pl.DataFrame:
    """Index a chat and give the events.

    :raises DataError: when a session fails.
    """
    name = gold.data.name
    store.ingest(gold.data)
    events = indexing.index(store, name, settings=settings, service=service)
    failed = events.filter(kind="failed")
    if failed.height:
        raise DataError(
            f"{failed.height} sessions of {name} were not indexed ({failed['reason'][0]}), so nothing is measured; see "
            "that the service answers, and run it again"
        )
    return events


def _note_unread_sessions(events: pl.DataFrame) -> None:
    """Warn of sessions that no model read.

    :raises DataError: when it read none.
    """
    # A file with several chats is tried once for each.
    sessions = events.unique("session_id", keep="last", maintain_order=True)
    unread = sessions.filter(service=indexing.EXTRACTIVE)
    if unread.is_empty():
        return
    line = (
        f"{unread['reason'][0]}, for {unread.height:,} of {sessions.height:,} sessions; "
        "--service NAME asks a model, and llm.recordings names recorded answers"
    )
    if unread.height == sessions.height:
        raise DataError(line)
    warnings.warn(line, stacklevel=3)


def facts_from_rows(rows: Sequence[_Row], gold: Annotations) -> pl.DataFrame:
    """Give the facts of one chat, of a file of stated facts and endings: rows of :class:`memlab.records.Fact`.

    :raises DataError: when a row lacks something, or cites a message that the chat does not have.
    """
    turns = {row["turn_id"]: row for row in gold.data.turns.iter_rows(named=True)}
    facts: dict[str, Fact] = {}
    for n, row in enumerate(rows, 1):
        try:
            if row["scope"] == gold.scope:
                cited = [turns[message_turn_id(gold.scope, message)] for message in row["messages"]]
                value = (
                    f"not {row['corrects']} but {row['object']}"
                    if row.get("corrects")
                    else row["object"]
                )
                said = (row["subject"], row["predicate"], value)
                fact = make_fact(cited, said, source=row["source"], text=row["text"])
                facts.setdefault(fact.fact_id, fact)
        except (KeyError, IndexError, TypeError) as error:
            raise DataError(
                f"stated facts, row {n}: {error!r}; see data/README.md for what a row holds"
            ) from None
    return frame(Fact, facts.values())


def measure_chat(gold: Annotations, known: Callable[..., Resolved]) -> pl.DataFrame:
    """Measure what is known of one chat by its annotations; rows as of :func:`measure_folder`.

    :param known: gives the resolved facts; called with ``as_of``, a date or ``None``.

    >>> from functools import partial
    >>> from memlab.evaluate.gold_facts import read_json_lines, read_gold
    >>> from memlab.evaluate.fact_measures import facts_from_rows, measure_chat, outcome_totals
    >>> from memlab.knowledge import resolve
    >>> gold = read_gold("data/facts/dev")[0]
    >>> known = partial(resolve, facts_from_rows(read_json_lines("data/facts/frozen.jsonl"), gold))
    >>> outcome_totals(measure_chat(gold, known)).filter(measure="traps avoided")["n"].item()
    46
    """
    rows = [
        row
        for day in gold.dates
        for row in _active_fact_outcomes(gold, "as-of", day, known(as_of=day))
    ]
    end = known(as_of=None)
    rows += [*_active_fact_outcomes(gold, "current", None, end), *_closing_outcomes(gold, end)]
    rows += _trap_outcomes(gold, end)
    about = [(gold.scope, *row[:3], None if gold.closed else row[3], gold.closed) for row in rows]
    return pl.DataFrame(about, schema=_OUTCOMES, orient="row")


def outcome_totals(outcomes: pl.DataFrame, *, unit: Unit = "auto") -> Table:
    """Put shares with their intervals beside each measure, in its order.

    :param outcomes: of :func:`measure_folder`.
    :param unit: what is independent: ``question``, here each thing counted, ``scope``, or ``auto``:
        scopes where there are five or more.
    :returns: ``measure``, ``n``, ``share``, ``low`` and ``high`` (null where there is nothing to
        say), ``level``, ``unit`` and ``units``.
    """
    rows = []
    for measure in MEASURES:
        counted = outcomes.filter(measure=measure)
        hits = counted["hit"].cast(pl.Float64).to_numpy()[:, None]
        scopes = clustering_scopes(counted["scope"], unit)
        span = mean_intervals(hits, scopes=scopes).select("low", "high", "level", "unit", "units")
        row = {"measure": measure, "n": counted.height, "share": counted["hit"].mean()}
        rows.append(row | span.row(0, named=True))
    table = pl.DataFrame(rows, schema_overrides=dict.fromkeys(("share", "low", "high"), pl.Float64))
    return Table(table.with_columns(pl.col("unit").replace("question", "outcome")))


def format_outcomes(outcomes: pl.DataFrame, *, errors: int = 20) -> str:
    """Write totals down, and of what is not ``closed`` what was wrong.

    :param errors: of each measure, how many are written.
    """
    parts = [str(outcome_totals(outcomes))]
    for measure in MEASURES if errors else ():
        wrong = outcomes.filter(~pl.col("hit") & ~pl.col("closed"), measure=measure)
        if wrong.height:
            lines = [
                f"- {kind}: {scope}: {what}"
                for kind, scope, what in wrong["kind", "scope", "what"].iter_rows()
            ]
            head = f"{measure}: {wrong.height} errors" + (
                "" if wrong.height <= errors else f", the first {errors}"
            )
            parts.append("\n".join([head, *lines[:errors]]))
    return "\n\n".join(parts)


def _active_fact_outcomes(
    gold: Annotations, name: str, when: datetime | None, known: Resolved
) -> Iterator[_Outcome]:
    """Count active facts by what they are, and active entries by whether a fact states them."""
    stated: set[str] = set()
    for row in active_facts(known, as_of=when).iter_rows(named=True):
        verdict, entries = _verdict(gold, row, when)
        stated |= {entry.same or entry.id for entry in entries if verdict == "right"}
        if verdict != "neutral":
            yield f"{name} precision", verdict == "right", verdict, _fact_text(row)
    holding = [
        entry
        for entry in gold.of_kind("fact")
        if gold.active(entry, when) and not _is_optional(entry, when)
    ]
    yield from _recall_outcomes(name, holding, stated)


def _verdict(gold: Annotations, row: _Row, when: datetime | None) -> tuple[str, list[Entry]]:
    """Say what an active fact is: right (and by which entries), trap, stale, wrong, unlisted or neutral."""
    stated = [entry for entry in gold.of_kind("fact") if gold.stated(entry, when)]
    facts = [entry for entry in stated if entry.matches_ignoring_polarity(row)]
    agreeing = [entry for entry in facts if entry.matches(row)]
    holding = [entry for entry in agreeing if gold.active(entry, when)]
    # "Chemistry at the old school": what holds does not excuse what does not.
    text = f"{row['subject']} {row['predicate']} {strip_contrast(row['object'])}"
    current = frozenset[str]().union(*(entry.value_words(text) for entry in holding))
    if any(not entry.value_words(text) <= current for entry in agreeing if entry not in holding):
        return "stale", []
    if holding:
        return (
            "neutral" if all(_is_optional(entry, when) for entry in holding) else "right"
        ), holding
    about = [entry for entry in gold.entries if entry.since in row["evidence"]]
    traps = [
        entry for entry in about if entry.kind == "trap" and entry.matches_ignoring_polarity(row)
    ]
    if any(entry.matches(row) for entry in traps):
        return "trap", []
    denied = any(entry.polarity(row) == "not" for entry in facts)
    if denied and all(entry.mode == "is" and gold.active(entry, when) for entry in facts):
        return "wrong", []
    near = any(entry.kind == "neutral" and entry.is_mentioned(row) for entry in about)
    return ("neutral" if traps or facts or near or gold.only_names_person(row) else "unlisted"), []


def _closing_outcomes(gold: Annotations, end: Resolved) -> Iterator[_Outcome]:
    """Count what was ended by whether it is over, and what is over by whether it was ended."""
    facts = {row["fact_id"]: row for row in end.facts.iter_rows(named=True)}
    ended = [entry for entry in gold.of_kind("fact") if entry.until]
    # A correction takes effect from when the wrong value was said.
    since = {
        entry.id: gold.times[str(entry.until)] - timedelta(days=1)
        for entry in ended
        if not entry.corrected
    }
    stated: set[str] = set()
    for log in end.log.iter_rows(named=True):
        row, new = facts[log["old"]], facts.get(log["new"])
        over = [
            entry
            for entry in ended
            if log["at"] >= since.get(entry.id, log["at"]) and entry.matches(row)
        ]
        stated |= {entry.same or entry.id for entry in over}
        verdict, _ = _verdict(gold, row, None)
        if over or verdict not in ("neutral", "trap"):
            what = _fact_text(row) + (f" <- {_fact_text(new)}" if new else "")
            yield "invalidation precision", bool(over), None if over else verdict, what
    yield from _recall_outcomes("invalidation", ended, stated)


def _trap_outcomes(gold: Annotations, end: Resolved) -> Iterator[_Outcome]:
    """Count traps by whether no fact from their message says them."""
    facts = end.facts.filter(
        pl.col("status").is_in(["active", "superseded", "ended", "repeat"])
    ).to_dicts()
    for trap in gold.of_kind("trap"):
        broken = [row for row in facts if trap.since in row["evidence"] and trap.matches(row)]
        what = f"{_entry_line(trap)} <- {_fact_text(broken[0])}" if broken else _entry_line(trap)
        yield "traps avoided", not broken, trap.trap, what


def _recall_outcomes(name: str, entries: list[Entry], stated: set[str]) -> Iterator[_Outcome]:
    """Count entries that say the same of several subjects once, by the one that does not refer to another."""
    asked = {
        entry.same or entry.id: entry
        for entry in sorted(entries, key=lambda entry: entry.same is None)
    }
    for group, entry in asked.items():
        yield f"{name} recall", group in stated, entry.mode, _entry_line(entry)


def _is_optional(entry: Entry, when: datetime | None) -> bool:
    """Whether it need not be known: what was over before it was stated, and on a date what was only said by mistake."""
    return entry.mode == "was" or (when is not None and entry.corrected)


def _fact_text(row: _Row) -> str:
    return f"{row['subject']} | {row['predicate']} | {row['object']}"


def _entry_line(entry: Entry) -> str:
    way = "" if entry.mode == "is" else f" ({entry.mode})"
    return f"{entry.id}: {entry.subject}, {entry.about[0] if entry.about else ''}{way}: {entry.value[0]}"
