"""What the verbs about knowledge share: opening one memory of the store, its facts, and the present."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import cached_property
from typing import TYPE_CHECKING, Any

import typer

from memlab.cli._options import in_force, load_encoder, verb
from memlab.errors import DataError
from memlab.terminal import choose_one, one_line

if TYPE_CHECKING:
    import polars as pl

    from memlab.config import Settings
    from memlab.knowledge import Resolved
    from memlab.store import CachedEncoder, MemoryStore

_OLD_DAYS = 365
_WIDTH = 100


@dataclass(frozen=True)
class Place:
    """One memory of the store, and what reads it."""

    store: MemoryStore
    chosen: Settings
    dataset: str
    scope: str

    @cached_property
    def encoder(self) -> CachedEncoder:
        from memlab.store import CachedEncoder

        return CachedEncoder(self.store, load_encoder(self.chosen))

    def rows(self, table: str) -> pl.DataFrame:
        return self.store.knowledge.rows(table, self.dataset, scopes=[self.scope])

    def resolved(self, as_of: datetime | None = None) -> Resolved:
        from memlab import indexing

        scopes = [self.scope]
        return indexing.resolved_facts(self.store, self.dataset, scopes=scopes, encoder=self.encoder, as_of=as_of)

    def asked(self, question: str) -> pl.DataFrame:
        """Give a question of this memory as a frame.

        :raises DataError: for what is no text.
        """
        import polars as pl

        try:
            question.encode()
        except UnicodeEncodeError as error:
            fault = f"{question[error.start]!r} at {error.start}"
            raise DataError(f"the question is not valid text: {fault}; write it in the terminal's encoding") from None
        return pl.DataFrame({"scope": [self.scope], "text": [question]})


def opened(flags: dict[str, str | None]) -> Place:
    from memlab.records import known_scope
    from memlab.store import MemoryStore

    dataset, scope = flags.pop("dataset"), flags.pop("scope")
    chosen = in_force(flags)
    memory = MemoryStore.open(chosen.store, create=False)
    names = memory.datasets()["name"].to_list()
    ingested = memory.chosen()
    if dataset is None and len(names) > 1 and ingested in names:
        typer.echo(f"dataset {one_line(str(ingested))}, the last that was ingested; --dataset names another", err=True)
        dataset = ingested
    name = choose_one(names, dataset, "dataset", "memlab ingest FILE puts one there")
    scopes = memory.scopes(name)
    wanted = choose_one(scopes, scope and known_scope(scope, scopes), "scope", "see memlab info")
    return Place(memory, chosen, name, wanted)


memory_verb = verb(opened, "dataset", "scope", "store", "encoder")
"""Registers a verb that is given the memory that the options name."""


def scored_facts(place: Place, *, now: str | None, as_of: str | None) -> tuple[Resolved, pl.DataFrame, datetime, str]:
    """Resolve the facts of a memory and score them at the present; the text says which that is."""
    import polars as pl

    from memlab import indexing
    from memlab.knowledge import ConfidenceSettings, score
    from memlab.knowledge.recall import fact_sentences

    resolved = place.resolved(read_date(as_of, end=True))
    if resolved.facts.is_empty():
        said = place.rows("facts").select(pl.coalesce("asserted_at", "recorded_at").alias("said"))["said"]
        why = f"said nothing before {as_of}: its first fact is of {day(said.min())}" if said.len() else None  # type: ignore[arg-type]
        why = why or indexing.empty_reason(place.store, place.dataset, place.scope)
        raise DataError(f"no facts: {place.scope!r} of {place.dataset!r} {why}")
    at, present = _moment(place, now or as_of)
    worded = resolved.facts.with_columns(text=fact_sentences(resolved.facts))
    facts = score(worded, now=at, settings=ConfidenceSettings.from_table(place.chosen.confidence))
    return resolved, facts, at, present


def _moment(place: Place, wanted: str | None) -> tuple[datetime, str]:
    """Choose the present, and say which it is."""
    date = read_date(wanted, end=True)
    if date is not None:
        return date, f"now: {day(date)}, as asked"
    clock = datetime.now(UTC)
    times = place.store.sessions(place.dataset, scopes=[place.scope], columns=["start", "end"])
    latest: Any = max((t for t in (times["end"].max(), times["start"].max()) if t is not None), default=None)
    days = 0 if latest is None else (clock - latest).days
    if days <= _OLD_DAYS:
        return clock, f"now: {day(clock)}"
    age = f"{place.scope} ended {days / _OLD_DAYS:.1f} years ago"
    return latest, f"now: {day(latest)}, the last time in the memory ({one_line(age)}); --now sets another"


def ranked_facts(place: Place, facts: pl.DataFrame, question: str, *, k: int, superseded: bool = False) -> pl.DataFrame:
    """Rank scored facts for a question, by the graph of the whole memory and the weights of the settings."""
    from memlab.knowledge import search_facts

    return search_facts(
        place.asked(question), facts, encoder=place.encoder, entities=place.rows("entities"),
        settings=place.chosen.recall, k=k, superseded=superseded,
    )  # fmt: skip


def ranked_summaries(place: Place, question: str, *, k: int) -> pl.DataFrame:
    """Rank the summaries of a memory by the cosine of question and text."""
    import polars as pl

    from memlab.knowledge import recall

    summaries = place.rows("summaries")
    cosines = recall.similarities(place.asked(question)["text"], summaries["summary"], place.encoder)
    ranked = summaries.with_columns(score=pl.Series(cosines[0])).sort("score", descending=True, maintain_order=True)
    return ranked.head(k).with_row_index("rank", offset=1)


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
        return date.astimezone(UTC) if date.tzinfo else date.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise DataError(f"{text!r} is no date; write it as 2023-06-30 or 2023-06-30T18:00") from None


def day(when: datetime | None) -> str:
    return f"{when:%Y-%m-%d}" if when else "undated"


def print_wrapped(text: str, *, indent: int = 2, first: int = 0) -> None:
    """Print a text in lines of a terminal, whatever it holds."""
    import textwrap

    lines = textwrap.wrap(
        one_line(text), _WIDTH, initial_indent=" " * first, subsequent_indent=" " * indent, break_on_hyphens=False
    )
    typer.echo("\n".join(lines))
