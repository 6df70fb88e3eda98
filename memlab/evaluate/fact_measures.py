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
    WORDS_OF_OTHERS,
    Annotations,
    Entry,
    message_turn_id,
    read_gold,
    read_json_lines,
)
from memlab.evaluate.row_words import is_ahead, polarity
from memlab.evaluate.tables import Table
from memlab.knowledge import Resolved, active_facts, resolve
from memlab.knowledge.extraction import make_fact
from memlab.llm import Service
from memlab.records import Fact, frame
from memlab.records.facts import meaning_id
from memlab.store import MemoryStore

MEASURES = (
    "current precision",
    "current recall",
    "as-of precision",
    "as-of recall",
    "invalidation precision",
    "invalidation recall",
    "traps avoided",
)
AS_READ = "current precision as read"
"""The measure that counts what readers called true as right, beside what is in the annotations."""
_OUTCOMES = {
    "scope": pl.String(),
    "measure": pl.String(),
    "hit": pl.Boolean(),
    "kind": pl.String(),
    "what": pl.String(),
    "closed": pl.Boolean(),
}
_UNMATCHED = {
    "scope": pl.String(),
    "meaning": pl.String(),
    **{name: pl.String() for name in ("about", "slot", "value", "sentence", "kind")},
    "holds": pl.Boolean(),
    "evidence": pl.List(pl.String()),
    "turns": pl.List(pl.String()),
}
_HELD = ("active", "due", "superseded", "ended", "repeat")
"""The status of what was taken for a fact at some time."""
_Row = Mapping[str, Any]
_Outcome = tuple[str, bool, str | None, str]
_Known = Callable[..., Resolved]
Verdicts = Mapping[tuple[str, str], bool]
"""What readers made of facts that no annotation speaks of: by scope and meaning, whether it is true."""


def measure_folder(
    folder: str | Path,
    *,
    facts: str | Path | None = None,
    settings: IndexSettings | None = None,
    service: str | Service | None = None,
    encoder: Encoder | None = None,
    verdicts: str | Path | None = None,
) -> pl.DataFrame:
    """Index the chats of a folder in a store of their own, and measure what is known by their gold facts.

    An active fact, also a plan that is due, counts for precision if it says what an active entry
    says (a hit); if it falls into a trap, says what no longer holds, contradicts or is nowhere among
    the entries (a miss); neither way if it is a neutral entry, or states truly that something was
    planned, happened, is over or was not so. Recall asks which active entries are stated by such a
    fact. An invalidation is right if it ends an entry that has ended, and was known at most a day
    before that was said; what ends by the date that was stated of it has no such bound. A trap is
    avoided unless a fact from its message says it. A session that the model does not answer for has
    no facts, with a warning.

    :param facts: JSON lines of stated facts as in ``data/facts/frozen.jsonl``: nothing is indexed,
        they are resolved.
    :param service: the language model that extracts, where ``facts`` are not given.
    :param encoder: matches near-equal wordings when facts are resolved; ``None``: equal ones only.
    :param verdicts: JSON lines of readers, see :func:`read_verdicts`: of the chats of which they
        read all that no annotation speaks of, :data:`AS_READ` is measured too.
    :returns: a row for each thing counted: ``scope``, ``measure``, ``hit``, ``kind`` (of a trap; of
        what was wrong), ``what`` (in words; null where ``closed``) and ``closed``: see
        :func:`outcome_totals`.
    :raises DataError: when the folder has no annotations, a line is bad, or there is nothing to
        measure: no service and no facts, or no answer for any session.
    """
    read: Verdicts = {}
    if verdicts is not None:
        read = read_verdicts(verdicts)
    chats = _known_chats(folder, facts=facts, settings=settings, service=service, encoder=encoder)
    return pl.concat(measure_chat(gold, known, verdicts=read) for gold, known in chats)


def unmatched_facts(
    folder: str | Path,
    *,
    facts: str | Path | None = None,
    settings: IndexSettings | None = None,
    service: str | Service | None = None,
    encoder: Encoder | None = None,
) -> pl.DataFrame:
    """List the active facts of which no annotation speaks, for readers to call true or not.

    Chats that are ``closed`` are left out. Parameters as of :func:`measure_folder`.

    :returns: ``scope``, ``meaning`` (:func:`memlab.records.facts.meaning_id`), ``about``, ``slot``,
        ``value``, ``sentence``, ``kind``, ``holds``, ``evidence`` (ids of turns) and ``turns`` (who
        said them, and their text).
    :raises DataError: as :func:`measure_folder`.
    """
    chats = _known_chats(folder, facts=facts, settings=settings, service=service, encoder=encoder)
    listed = [pl.DataFrame(schema=_UNMATCHED)]
    listed.extend(_unmatched_in(gold, known(as_of=None)) for gold, known in chats)
    return pl.concat(listed)


def read_verdicts(file: str | Path) -> dict[tuple[str, str], bool]:
    """Read what readers made of the facts that :func:`unmatched_facts` lists.

    :param file: JSON lines with ``scope``, ``meaning`` and ``true``; a fact stands in one line for
        each reader, and counts as true where all of them say so.
    :raises DataError: for a line without these.
    """
    verdicts: dict[tuple[str, str], bool] = {}
    for n, row in enumerate(read_json_lines(file), 1):
        try:
            key = (row["scope"], row["meaning"])
            true = row["true"]
        except (KeyError, TypeError) as error:
            raise DataError(
                f"{file}, row {n}: {error!r}; a verdict has scope, meaning and true"
            ) from None
        if not isinstance(true, bool):
            raise DataError(f"{file}, row {n}: true is {true!r}; give true or false")
        verdicts[key] = true and verdicts.get(key, True)
    return verdicts


def _known_chats(
    folder: str | Path,
    *,
    facts: str | Path | None,
    settings: IndexSettings | None,
    service: str | Service | None,
    encoder: Encoder | None,
) -> Iterator[tuple[Annotations, _Known]]:
    """Give each chat with what gives its resolved facts: to be called before the next chat is asked for."""
    if facts is None and service is None:
        raise DataError(
            "no facts: only a model reads them out of chats; name one with service= "
            "(--service NAME), or give stated ones with facts= (--facts FILE)"
        )
    chats = read_gold(folder)
    if facts is not None:
        rows = read_json_lines(facts)
        for gold in chats:
            yield gold, partial(resolve, facts_from_rows(rows, gold), encoder=encoder)
        return
    facts_alone = (settings or IndexSettings()).model_copy(update={"summaries": False})
    events = []
    with tempfile.TemporaryDirectory(prefix="memlab-knowledge-") as place:
        store = MemoryStore.open(place)
        for gold in chats:
            events.append(_index_chat(store, gold, facts_alone, service))
            about: dict[str, Any] = {"scopes": [gold.scope], "encoder": encoder}
            yield gold, partial(indexing.resolved_facts, store, gold.data.name, **about)
    _note_unread_sessions(pl.concat(events))


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
            f"{failed.height} sessions of {name} were not indexed ({failed['reason'][0]}), so nothing "
            "is measured; see that the service answers, and run it again"
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
    """Give the facts of one chat, of a file of stated facts: rows of :class:`memlab.records.Fact`.

    :param rows: as of ``data/facts/frozen.jsonl``: ``scope``, ``about``, ``slot``, ``value``,
        ``source`` and ``messages`` (of the chat log); ``sentence``, ``kind``, ``holds``, ``values``,
        ``since``, ``until``, ``said_by`` and ``effects``, each with ``id`` and ``how``, where there
        are any.
    :raises DataError: when a row lacks something, or cites a message that the chat does not have.
    """
    turns = {row["turn_id"]: row for row in gold.data.turns.iter_rows(named=True)}
    facts: dict[str, Fact] = {}
    for n, row in enumerate(rows, 1):
        try:
            if row["scope"] == gold.scope:
                fact = _fact_from_row(row, turns)
                facts.setdefault(fact.fact_id, fact)
        except (KeyError, IndexError, TypeError) as error:
            raise DataError(
                f"stated facts, row {n}: {error!r}; see data/README.md for what a row holds"
            ) from None
    return frame(Fact, facts.values())


def _fact_from_row(row: _Row, turns: Mapping[str, dict[str, Any]]) -> Fact:
    """Make the fact of a row from the turns that it cites."""
    cited = [turns[message_turn_id(row["scope"], message)] for message in row["messages"]]
    effects = row.get("effects") or []
    names = ("sentence", "kind", "holds", "values", "since", "until", "said_by")
    optional: dict[str, Any] = {name: row[name] for name in names if row.get(name) is not None}
    return make_fact(
        cited,
        about=row["about"],
        slot=row["slot"],
        value=row["value"],
        source=row["source"],
        effects=[effect["how"] for effect in effects],
        affected=[effect["id"] for effect in effects],
        **optional,
    )


def measure_chat(
    gold: Annotations, known: _Known, *, verdicts: Verdicts | None = None
) -> pl.DataFrame:
    """Measure what is known of one chat by its annotations; rows as of :func:`measure_folder`.

    :param known: gives the resolved facts; called with ``as_of``, a date or ``None``.
    :param verdicts: what readers made of facts of this and other chats.

    >>> from functools import partial
    >>> from memlab.evaluate.gold_facts import read_gold
    >>> from memlab.evaluate.fact_measures import measure_chat, outcome_totals
    >>> from memlab.knowledge import resolve
    >>> from memlab.records import Fact, frame
    >>> known = partial(resolve, frame(Fact, []))
    >>> outcomes = measure_chat(read_gold("data/facts/dev")[0], known)
    >>> outcome_totals(outcomes).filter(measure="traps avoided")["n"].item()
    46
    """
    rows: list[_Outcome] = []
    for day in gold.dates:
        rows += _active_fact_outcomes(gold, "as-of", day, known(as_of=day))
    end = known(as_of=None)
    rows += _active_fact_outcomes(gold, "current", None, end)
    rows += _closing_outcomes(gold, end)
    rows += _trap_outcomes(gold, end)
    if verdicts:
        rows += _read_outcomes(gold, end, verdicts)
    about = []
    for measure, hit, kind, what in rows:
        told = None if gold.closed else what
        about.append((gold.scope, measure, hit, kind, told, gold.closed))
    return pl.DataFrame(about, schema=_OUTCOMES, orient="row")


def outcome_totals(outcomes: pl.DataFrame, *, unit: Unit = "auto") -> Table:
    """Put shares with their intervals beside each measure, in its order.

    :param outcomes: of :func:`measure_folder`.
    :param unit: what is independent: ``question``, here each thing counted, ``scope``, or ``auto``:
        scopes where there are five or more.
    :returns: of :data:`MEASURES`, and of :data:`AS_READ` where readers were asked, ``measure``,
        ``n``, ``share``, ``low`` and ``high`` (null where there is nothing to
        say), ``level``, ``unit`` and ``units``.
    """
    rows = []
    measures = [*MEASURES]
    if AS_READ in outcomes["measure"]:
        measures.append(AS_READ)
    for measure in measures:
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
        if verdict == "right":
            stated |= {entry.same or entry.id for entry in entries}
        if verdict != "neutral":
            yield f"{name} precision", verdict == "right", verdict, _fact_text(row)
    active = [entry for entry in gold.of_kind("fact") if gold.active(entry, when)]
    holding = [entry for entry in active if not _is_optional(entry, when)]
    yield from _recall_outcomes(name, holding, stated)


def _read_outcomes(gold: Annotations, end: Resolved, verdicts: Verdicts) -> list[_Outcome]:
    """Count active facts as for precision, and those that no entry speaks of by what readers said.

    None where one of those was not read.
    """
    outcomes: list[_Outcome] = []
    for row in active_facts(end).iter_rows(named=True):
        verdict, _ = _verdict(gold, row, None)
        if verdict == "unlisted":
            read = verdicts.get((gold.scope, _meaning(row)))
            if read is None:
                return []
            if read:
                verdict = "called true"
        if verdict != "neutral":
            is_right = verdict in ("right", "called true")
            outcomes.append((AS_READ, is_right, verdict, _fact_text(row)))
    return outcomes


def _unmatched_in(gold: Annotations, end: Resolved) -> pl.DataFrame:
    """List the active facts of a chat of which no annotation speaks, each once."""
    rows: dict[str, dict[str, Any]] = {}
    if gold.closed:
        return pl.DataFrame(schema=_UNMATCHED)
    turns = {row["turn_id"]: row for row in gold.data.turns.iter_rows(named=True)}
    for row in active_facts(end).iter_rows(named=True):
        verdict, _ = _verdict(gold, row, None)
        if verdict == "unlisted":
            cited = [turns[turn] for turn in row["evidence"]]
            said = [f"{turn['speaker']}: {turn['text']}" for turn in cited]
            meaning = _meaning(row)
            rows.setdefault(meaning, {**row, "meaning": meaning, "turns": said})
    return pl.DataFrame(
        [{name: row[name] for name in _UNMATCHED} for row in rows.values()], schema=_UNMATCHED
    )


def _verdict(gold: Annotations, row: _Row, when: datetime | None) -> tuple[str, list[Entry]]:
    """Say what an active fact is: right (and by which entries), trap, stale, wrong, unlisted or neutral."""
    known = [entry for entry in gold.of_kind("fact") if gold.stated(entry, when)]
    facts = [entry for entry in known if entry.matches_ignoring_polarity(row)]
    agreeing = [entry for entry in facts if entry.matches(row)]
    holding = [entry for entry in agreeing if gold.active(entry, when)]
    if _is_stale(row, agreeing, holding):
        return "stale", []
    if holding:
        optional = all(_is_optional(entry, when) for entry in holding)
        return "neutral" if optional else "right", holding
    about = [entry for entry in gold.entries if entry.since in row["evidence"]]
    near = [entry for entry in about if entry.matches_ignoring_polarity(row)]
    traps = [entry for entry in near if entry.kind == "trap"]
    if any(_falls_into(trap, row) for trap in traps):
        return "trap", []
    if facts and polarity(row) == "not" and _all_hold(gold, facts, when):
        return "wrong", []
    harmless = [entry for entry in about if entry.kind == "neutral" and entry.is_mentioned(row)]
    if traps or facts or harmless or gold.only_names_person(row):
        return "neutral", []
    return "unlisted", []


def _all_hold(gold: Annotations, entries: list[Entry], when: datetime | None) -> bool:
    """Whether all entries are so at a time, none of them a denial or a plan."""
    return all(entry.mode == "is" and gold.active(entry, when) for entry in entries)


def _is_stale(row: _Row, agreeing: list[Entry], holding: list[Entry]) -> bool:
    """Whether a fact says of an entry that is over that it holds.

    What holds does not excuse what does not ("chemistry at the old school"), but for a plan, which
    came about. An event stays true of what was so.
    """
    current = frozenset[str]().union(*(entry.value_words(row) for entry in holding))
    for entry in agreeing:
        told = row["kind"] == "event" and not entry.corrected
        came_about = entry.mode == "plan" and bool(holding)
        if entry in holding or told or came_about:
            continue
        if not entry.value_words(row) <= current:
            return True
    return False


def _falls_into(trap: Entry, row: _Row) -> bool:
    """Whether a fact says what a trap says.

    Words of others may say what was quoted or rumoured, what is dated ahead what was planned, and an
    event what is past. What only the slot calls so is none: "Una | deputy head | Ben". An event is
    what its slot says: to view a flat is not to live in it.
    """
    if row["source"] == "reported" and trap.trap in WORDS_OF_OTHERS:
        return False
    if trap.trap == "plan" and is_ahead(row):
        return False
    if row["kind"] == "event" and (trap.trap == "past" or not trap.has_relation(row["slot"])):
        return False
    return trap.matches(row) and bool(trap.value_words(row))


def _closing_outcomes(gold: Annotations, end: Resolved) -> Iterator[_Outcome]:
    """Count what was ended by whether it is over, and what is over by whether it was ended."""
    ended = [entry for entry in gold.of_kind("fact") if entry.until]
    stated: set[str] = set()
    for row, new, told_at in _closings(end):
        due = [entry for entry in ended if _is_in_time(gold, entry, told_at)]
        over = [entry for entry in due if entry.matches(row)]
        stated |= {entry.same or entry.id for entry in over}
        verdict, _ = _verdict(gold, row, None)
        if over or verdict not in ("neutral", "trap"):
            what = _fact_text(row)
            if new:
                what += f" <- {_fact_text(new)}"
            yield "invalidation precision", bool(over), None if over else verdict, what
    plans = [entry for entry in ended if entry.mode == "plan"]
    for row in end.facts.iter_rows(named=True):
        # A plan that was read as what begins on a later day is over once that has come.
        if row["kind"] != "plan" and row["status"] != "upcoming" and is_ahead(row):
            stated |= {entry.same or entry.id for entry in plans if entry.matches(row)}
    yield from _recall_outcomes("invalidation", ended, stated)


def _closings(end: Resolved) -> Iterator[tuple[_Row, _Row | None, datetime | None]]:
    """Give each fact that was ended, what ended it, and when that was both said and so.

    The time is ``None`` for what ended by its own date, which was said before.
    """
    facts = {row["fact_id"]: row for row in end.facts.iter_rows(named=True)}
    for log in end.log.iter_rows(named=True):
        times = [when for when in (log["at"], log["recorded_at"]) if when is not None]
        yield facts[log["old"]], facts.get(log["new"]), max(times, default=None)
    closed = set(end.log["old"])
    for fact_id, row in facts.items():
        dated = row["status"] == "ended" and fact_id not in closed
        # What was over when it was said was never active.
        if dated and polarity(row) != "was":
            yield row, None, None


def _is_in_time(gold: Annotations, entry: Entry, told_at: datetime | None) -> bool:
    """Whether an ending was known at most a day before the chat says so; of a correction, whenever."""
    if told_at is None or entry.corrected:
        return True
    return told_at >= gold.times[str(entry.until)] - timedelta(days=1)


def _trap_outcomes(gold: Annotations, end: Resolved) -> Iterator[_Outcome]:
    """Count traps by whether no fact from their message says them."""
    facts = end.facts.filter(pl.col("status").is_in(_HELD)).to_dicts()
    for trap in gold.of_kind("trap"):
        about = [row for row in facts if trap.since in row["evidence"]]
        broken = [row for row in about if _falls_into(trap, row)]
        what = _entry_line(trap)
        if broken:
            what += f" <- {_fact_text(broken[0])}"
        yield "traps avoided", not broken, trap.trap, what


def _recall_outcomes(name: str, entries: list[Entry], stated: set[str]) -> Iterator[_Outcome]:
    """Count entries that say the same of several subjects once, by the one that does not refer to another."""
    asked: dict[str, Entry] = {}
    for entry in entries:
        if entry.same is not None:
            asked.setdefault(entry.same, entry)
    for entry in entries:
        if entry.same is None:
            asked[entry.id] = entry
    for group, entry in asked.items():
        yield f"{name} recall", group in stated, entry.mode, _entry_line(entry)


def _is_optional(entry: Entry, when: datetime | None) -> bool:
    """Whether it need not be known: what was over before it was stated, and on a date what was only said by mistake."""
    return entry.mode == "was" or (when is not None and entry.corrected)


def _meaning(row: _Row) -> str:
    return meaning_id(row["about"], row["slot"], row["value"], kind=row["kind"], holds=row["holds"])


def _fact_text(row: _Row) -> str:
    """Write a fact down, with its kind and what it denies where that is not plain."""
    marks = []
    if row["kind"] != "state":
        marks.append(row["kind"])
    if not row["holds"]:
        marks.append("not so")
    behind = f" ({', '.join(marks)})" if marks else ""
    return f"{row['about']} | {row['slot']} | {row['value']}{behind}"


def _entry_line(entry: Entry) -> str:
    way = "" if entry.mode == "is" else f" ({entry.mode})"
    relation = entry.about[0] if entry.about else ""
    return f"{entry.id}: {entry.subject}, {relation}{way}: {entry.value[0]}"
