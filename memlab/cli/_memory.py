"""What the verbs about one memory share: opening it, its facts, the present, and printing."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import cached_property
from typing import TYPE_CHECKING, Any

import memlab
from memlab.cli._options import echo, load_encoder, settings_in_force
from memlab.errors import DataError
from memlab.terminal import choose_one, count_noun, escape_line

if TYPE_CHECKING:
    import polars as pl

    from memlab.config import Settings
    from memlab.embed import WrappedEncoder
    from memlab.knowledge import Resolved
    from memlab.store import MemoryStore

_OLD_DAYS, _WIDTH, _TURNS = 365, 100, 6


@dataclass(frozen=True)
class OpenMemory:
    """One memory of the store, and what reads it."""

    store: MemoryStore
    chosen: Settings
    dataset: str
    scope: str

    @cached_property
    def encoder(self) -> WrappedEncoder:
        from memlab.embed import cache_encoder

        return cache_encoder(self.store, load_encoder(self.chosen))

    def rows(self, table: str) -> pl.DataFrame:
        return self.store.knowledge.rows(table, self.dataset, scopes=[self.scope])

    def resolved(self, as_of: datetime | None = None, *, now: datetime | None = None) -> Resolved:
        from memlab.indexing import resolved_facts

        return resolved_facts(
            self.store,
            self.dataset,
            scopes=[self.scope],
            encoder=self.encoder,
            as_of=as_of,
            now=now,
        )

    def nothing(self, what: str, why: str = "") -> DataError:
        """Give the error that says why there is nothing of a kind."""
        why = why or memlab.indexing.empty_reason(self.store, self.dataset, self.scope)
        return DataError(f"no {what}: {self.scope!r} of {self.dataset!r} {why}")


def open_memory(
    dataset: str | None,
    scope: str | None,
    store: str | None,
    encoder: str | None = None,
    *,
    joined: bool = False,
) -> OpenMemory:
    """Open the memory that the options name.

    :param joined: where no scope is named, give all of them as one whose name is empty.
    """
    from memlab.retrieve.large_scopes import LARGE

    chosen = settings_in_force(store=store, encoder=encoder)
    memory = memlab.MemoryStore.open(chosen.store, create=False)
    names = memory.datasets()["name"].to_list()
    if dataset is None and len(names) > 1:
        dataset = memory.chosen() or ""
        echo(
            f"dataset {escape_line(dataset)}, the last that was ingested; --dataset names another",
            err=True,
        )
    name = choose_one(names, dataset, "dataset", "memlab ingest FILE puts one there")
    scopes = memory.scopes(name)
    joined = joined and scope is None and len(scopes) > 1
    if joined and memory.sessions(name, columns=["n_turns"])["n_turns"].sum() < LARGE:
        echo(f"all {len(scopes):,} scopes of {escape_line(name)}; --scope names one", err=True)
        return OpenMemory(memory, chosen, name, "")
    named = scope and memlab.records.resolve_scope_name(scope, scopes)
    wanted = choose_one(scopes, named, "scope", "see memlab info")
    return OpenMemory(memory, chosen, name, wanted)


def scored_facts(
    place: OpenMemory, *, now: str | None, as_of: str | None
) -> tuple[Resolved, pl.DataFrame, str]:
    """Resolve the facts of a memory and score them at the present; the text says which that is."""
    at, present = _resolve_now(place, now or as_of)
    resolved = place.resolved(read_date(as_of, end=True), now=at)
    stated = place.rows("facts")
    undated = memlab.knowledge.supersession.count_undated_facts(stated)
    if resolved.facts.is_empty():
        first: Any = stated["asserted_at"].min()
        why = ""
        if first:
            why = f"said nothing before {as_of}: its first fact is of {day_or_undated(first)}"
        elif undated:
            counted = count_noun(undated, "facts")
            why = f"has {counted} without a date, so that nothing is known as of {as_of}"
        raise place.nothing("facts", why)
    awaiting = memlab.indexing.earlier_facts_note(place.store, place.dataset, scopes=[place.scope])
    if awaiting:
        echo(awaiting, err=True)
    if undated:
        how = "left out" if as_of else "in the order of the conversations"
        present += f"; {count_noun(undated, 'facts')} without a date, {how}"
    worded = resolved.facts.with_columns(
        sentence=memlab.knowledge.fact_search.fact_sentences(resolved.facts)
    )
    settings = memlab.knowledge.ConfidenceSettings.from_table(place.chosen.confidence)
    return resolved, memlab.knowledge.score(worded, now=at, settings=settings), present


def score_again(place: OpenMemory, facts: pl.DataFrame, *, now: str | None) -> pl.DataFrame:
    """Score facts that were scored by other settings, by those of a place."""
    at, _ = _resolve_now(place, now)
    settings = memlab.knowledge.ConfidenceSettings.from_table(place.chosen.confidence)
    return memlab.knowledge.score(facts, now=at, settings=settings)


def _resolve_now(place: OpenMemory, wanted: str | None) -> tuple[datetime, str]:
    """Choose the present, and say which it is."""
    date, clock = read_date(wanted, end=True), datetime.now(UTC)
    if date is not None:
        return date, f"now: {day_or_undated(date)}, as asked"
    times = place.store.sessions(place.dataset, scopes=[place.scope], columns=["start", "end"])
    known: list[Any] = [times["end"].max(), times["start"].max()]
    latest: datetime = max(filter(None, known), default=clock)
    days = (clock - latest).days
    if days <= _OLD_DAYS:
        return clock, f"now: {day_or_undated(clock)}"
    age = escape_line(f"{place.scope} ended {days / _OLD_DAYS:.1f} years ago")
    return (
        latest,
        f"now: {day_or_undated(latest)}, the last time in the memory ({age}); --now sets another",
    )


def read_date(text: str | None, *, end: bool = False) -> datetime | None:
    """Read a day or a time, in UTC where it names no zone.

    :param end: a day alone stands for its end.
    :raises DataError: for what is no date.
    """
    if text is None:
        return None
    try:
        date = datetime.fromisoformat(text)
        if end and len(text) <= len("2023-06-30"):
            date = datetime.combine(date, time.max)
        if date.tzinfo is None:
            return date.replace(tzinfo=UTC)
        return date.astimezone(UTC)
    except (ValueError, OverflowError):
        raise DataError(
            f"{text!r} is no date; write it as 2023-06-30 or 2023-06-30T18:00"
        ) from None


def day_or_undated(when: datetime | None) -> str:
    if when is None:
        return "undated"
    return f"{when:%Y-%m-%d}"


def filter_rows(
    rows: pl.DataFrame, place: OpenMemory, *, session: str | None, since: str | None, at: str
) -> pl.DataFrame:
    """Keep the rows of a session, and those from a day on; what has no time is then left out.

    :raises DataError: for a session that the memory does not have, or what is no date.
    """
    start = read_date(since)
    if start is not None:
        rows = rows.filter(rows[at] >= start)
    if session is None:
        return rows
    sessions = place.store.sessions(place.dataset, scopes=[place.scope], columns=["session_id"])
    there = sessions["session_id"]
    for wanted in (session, f"{place.scope}/{session}"):
        if wanted in there:
            return rows.filter(session_id=wanted)
    named = ", ".join(there.head(5))
    raise DataError(f"{place.scope!r} has no session {session!r}; it has {named} …")


def add_turn_texts(rows: pl.DataFrame, place: OpenMemory, *, wanted: bool) -> pl.DataFrame:
    """Add the ``turns`` of the evidence, ``ID (speaker): text`` each, where that is wanted."""
    import polars as pl

    if not wanted:
        return rows
    stored = place.store.turns(
        place.dataset, scopes=[place.scope], columns=["turn_id", "speaker", "text"]
    )
    cited = stored.filter(pl.col("turn_id").is_in(rows["evidence"].explode().implode()))
    texts = {turn: f"{turn} ({speaker}): {text}" for turn, speaker, text in cited.iter_rows()}
    turns = [[texts.get(each, f"{each}: no such turn") for each in ids] for ids in rows["evidence"]]
    return rows.with_columns(turns=pl.Series(turns, dtype=pl.List(pl.String)))


def print_turns(row: dict[str, Any]) -> None:
    """Print the first turns of a row's evidence, where it has them, and how many more there are."""
    turns = row.get("turns", [])
    for turn in turns[:_TURNS]:
        print_wrapped(turn, indent=10, first=8)
    if len(turns) > _TURNS:
        echo(f"        … and {len(turns) - _TURNS:,} more; --json has all")


def print_wrapped(text: str, *, indent: int = 6, first: int = 6) -> None:
    """Print a text in lines of a terminal, whatever it holds."""
    lines = textwrap.wrap(
        escape_line(text),
        _WIDTH,
        initial_indent=" " * first,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
    )
    echo("\n".join(lines))
