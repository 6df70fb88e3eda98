"""What the verbs about knowledge share: opening one memory of the store, its facts, and the present."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Any

import typer

from memlab.cli._options import load_encoder, settings
from memlab.config import Settings
from memlab.errors import DataError
from memlab.terminal import one_line, only

if TYPE_CHECKING:
    import polars as pl

    from memlab.knowledge import Resolved
    from memlab.store import CachedEncoder, MemoryStore

_OLD_DAYS = 365


@dataclass(frozen=True)
class Place:
    """One memory of the store, and what reads it."""

    store: MemoryStore
    chosen: Settings
    dataset: str
    scope: str
    encoder: CachedEncoder


def opened(store: str | None, encoder: str | None, dataset: str | None, scope: str | None) -> Place:
    from memlab.records import id_part
    from memlab.store import CachedEncoder, MemoryStore

    chosen, _ = settings({"store": store, "encoder": encoder})
    memory = MemoryStore.open(chosen.store, create=False)
    names = memory.datasets()["name"].to_list()
    ingested = memory.chosen()
    if dataset is None and len(names) > 1 and ingested in names:
        typer.echo(f"dataset {one_line(str(ingested))}, the last that was ingested; --dataset names another", err=True)
        dataset = ingested
    name = only(names, dataset, "dataset", "memlab ingest FILE puts one there")
    scopes = memory.scopes(name)
    wanted = only(scopes, id_part(scope) if scope and scope not in scopes else scope, "scope", "see memlab info")
    return Place(memory, chosen, name, wanted, CachedEncoder(memory, load_encoder(chosen)))


def known_facts(place: Place, *, now: str | None, as_of: str | None) -> tuple[Resolved, pl.DataFrame, str]:
    """Resolve the facts of a memory and score them; the line says which present they are scored at."""
    from memlab import indexing
    from memlab.knowledge import ConfidenceSettings, score

    then = read_date(as_of, end=True)
    resolved = indexing.resolved(place.store, place.dataset, scopes=[place.scope], encoder=place.encoder, as_of=then)
    if resolved.facts.is_empty():
        before = f" before {as_of}" if as_of else ""
        raise DataError(f"{place.scope!r} of {place.dataset!r} has no facts{before}; memlab index makes them")
    at, present = moment(place, now or as_of)
    return resolved, score(resolved.facts, now=at, settings=ConfidenceSettings.of(place.chosen.confidence)), present


def moment(place: Place, given: str | None) -> tuple[datetime, str]:
    """Choose the present, and say which it is."""
    asked = read_date(given, end=True)
    if asked is not None:
        return asked, f"now: {day(asked)}, as asked"
    clock = datetime.now(UTC)
    times = place.store.sessions(place.dataset, scopes=[place.scope], columns=["start", "end"])
    latest: Any = max((t for t in (times["end"].max(), times["start"].max()) if t is not None), default=None)
    days = 0 if latest is None else (clock - latest).days
    if days <= _OLD_DAYS:
        return clock, f"now: {day(clock)}"
    age = f"{place.scope} ended {days / _OLD_DAYS:.1f} years ago"
    return latest, f"now: {day(latest)}, the last time in the memory ({one_line(age)}); --now sets another"


def found_facts(place: Place, known: pl.DataFrame, question: str, *, k: int, superseded: bool = False) -> pl.DataFrame:
    import polars as pl

    from memlab.knowledge import graph
    from memlab.knowledge.search import candidates, search_facts

    try:
        question.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"the question is not valid text at {error.start}; write it in the terminal's encoding"
        ) from None
    named = [
        place.store.knowledge.rows(name, place.dataset, scopes=[place.scope]) for name in ("entities", "relations")
    ]
    return search_facts(
        pl.DataFrame({"scope": [place.scope], "text": [question]}),
        known,
        encoder=place.encoder,
        graph=graph.build(candidates(known, superseded=superseded), *named),
        settings=place.chosen.recall,
        k=k,
        superseded=superseded,
    )


def found_summaries(place: Place, question: str, *, k: int) -> pl.DataFrame:
    import polars as pl

    from memlab.knowledge.search import search_summaries

    held = place.store.knowledge.rows("summaries", place.dataset, scopes=[place.scope])
    if not k or held.is_empty():
        return held.clear().with_columns(rank=pl.lit(0), score=pl.lit(0.0))
    asked = pl.DataFrame({"scope": [place.scope], "text": [question]})
    return search_summaries(asked, held, encoder=place.encoder, k=k).join(held, on="session_id", maintain_order="left")


def read_date(given: str | None, *, end: bool = False) -> datetime | None:
    """Read a day or a time, in UTC where it names no zone.

    :param end: a day alone stands for its end.
    :raises DataError: for what is no date.
    """
    if given is None:
        return None
    try:
        read = datetime.fromisoformat(given)
    except ValueError:
        raise DataError(f"{given!r} is no date; write it as 2023-06-30 or 2023-06-30T18:00") from None
    if end and len(given) <= len("2023-06-30"):
        read = datetime.combine(read, time.max)
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def day(when: datetime | None) -> str:
    return f"{when:%Y-%m-%d}" if when else "undated"
