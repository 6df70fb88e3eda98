"""The worker: which sessions are due, and what is made of them, batch by batch."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import tee
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl

from memlab.config import IndexSettings
from memlab.config import settings as loaded
from memlab.distributed import spread
from memlab.embed import Encoder
from memlab.errors import ModelError
from memlab.indexing.known import remember
from memlab.knowledge import extraction, from_observations
from memlab.language.analysis import english
from memlab.llm import RECORDED, Service, configured, recording
from memlab.records import TIMESTAMP, Dataset, Entity, Fact, IndexEvent, IndexState, Summary, frame, schema
from memlab.sessions import GAP
from memlab.store import MemoryStore
from memlab.store.registry import text_hashes
from memlab.summaries import summarize
from memlab.summaries.asking import SESSION

EXTRACTIVE = "extractive"
EARLIER, EARLIER_CHARS = 8, 300
"""Turns before a session that a model sees, to understand it by, and characters of each."""
CODE_VERSION = 7  # raised by whoever changes what the same turns give
_ROWS = {"summaries": Summary, "facts": Fact, "entities": Entity}


@dataclass(frozen=True)
class Work:
    """What all batches share."""

    dataset: str
    language: str
    settings: IndexSettings
    service: str | Service | None
    version: str
    now: datetime


@dataclass(frozen=True)
class Made:
    """What a batch gave.

    :param parts: rows of the tables of the index.
    :param outcomes: ``session_id``, ``status`` (``ok``, ``fallback``, ``failed``) and ``reason``.
    :param seconds: that a session took.
    """

    parts: dict[str, pl.DataFrame]
    outcomes: pl.DataFrame
    seconds: float = 0.0


def index(
    store: MemoryStore,
    dataset: str,
    *,
    settings: IndexSettings | None = None,
    service: str | Service | None = None,
    encoder: Encoder | None = None,
    now: datetime | None = None,
    gap: timedelta = GAP,
    progress: bool = False,
    engine: str = "local",
) -> pl.DataFrame:
    """Index the closed sessions that are due: never tried, tried with another recipe, changed since, or failed.

    One where a model was asked in vain, and that was made without it, is due again; what is not recorded is due once
    the recordings change. A session's rows count once all of them are written: a process that dies, a model that fails
    or a full disk leaves what counted before. Turns can be ingested meanwhile. A session that fails, fails alone; one
    that a model does not answer is made without it, unless what a model made of the same turns is there.

    :param settings: what is made; see :class:`memlab.config.IndexSettings`.
    :param service: the language model that makes it, see :func:`memlab.llm.ask`; ``None`` for none.
    :param encoder: embeds summaries and facts, so that they are found at once; otherwise they are when first searched.
    :param now: the present, by which sessions are open or closed; the clock where none is given.
    :param gap: the silence after which a session is closed.
    :param engine: ``ray``: the sessions are read by the workers of a cluster, see :func:`memlab.distributed.spread`.
    :returns: what happened: rows of :class:`memlab.records.IndexEvent`.
    :raises ModelError: when the service cannot be asked at all (no client, no key): nothing was done.
    :raises StoreError: when the store cannot be read or written: what was committed before stays.

    >>> import tempfile, memlab
    >>> from memlab.indexing import index
    >>> data = memlab.datasets.load("data/facts/dev/nora.jsonl")
    >>> store = memlab.store.MemoryStore.open(tempfile.mkdtemp())
    >>> _ = store.ingest(data)
    >>> set(index(store, data.name)["kind"]), index(store, data.name).height
    ({'created'}, 0)
    """
    from tqdm import tqdm

    chosen = settings or IndexSettings()
    if isinstance(service, str) and service != RECORDED:
        service = configured(service)
    if not (chosen.summaries or chosen.facts or chosen.observations):
        return frame(IndexEvent)
    store.knowledge.sweep(dataset)
    language = store.datasets().filter(pl.col("name") == dataset)["language"].item()
    present = now or datetime.now(UTC)
    present = present.replace(tzinfo=present.tzinfo or UTC).astimezone(UTC)
    work = Work(dataset, language, chosen, service, _recipe(chosen, service), present)
    due = _due(store, work, gap)
    events = [frame(IndexEvent)]
    with tqdm(total=due.height, desc="index", unit=" sessions", disable=not progress, delay=2) as bar:
        ahead, own = tee(due.iter_slices(chosen.batch))
        reads = (_read(store, work, batch) for batch in ahead)
        for batch, made in zip(own, spread(_make, reads, work, engine=engine), strict=True):
            events.append(_commit(store, work, batch, made))
            bar.update(batch.height)
    if encoder is not None and due.height:
        remember(store, dataset, encoder, progress=progress)
    return pl.concat(events)


def _recipe(settings: IndexSettings, service: str | Service | None) -> str:
    """Name everything besides the turns that the index of a session depends on."""
    parts = settings.model_dump(exclude={"batch", "min_turns", "service"})
    model = service.model if isinstance(service, Service) else None
    parts |= {"code": CODE_VERSION, "model": model, "asked": [extraction.VERSION, SESSION.version]}
    if service == RECORDED:
        paths = [*map(Path, loaded()[0].llm.recordings), *recording.DEFAULT]
        parts["recordings"] = [path.stat().st_size for path in paths if path.exists()]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]
    return f"{settings.version}-{extraction.name_of(service) or EXTRACTIVE}-{digest}"


def _due(store: MemoryStore, work: Work, gap: timedelta) -> pl.DataFrame:
    """List the sessions that are closed and due, in the dataset's order.

    :returns: the columns of sessions with ``digest``, ``turns``, ``attempts`` (with this recipe on these turns),
        ``generation`` (of the rows that count now), ``service`` (that made those) and ``same`` (of these turns).
    """
    sessions = store.sessions(work.dataset, columns=["session_id", "scope", "start", "end", "n_turns", "participants"])
    closed = sessions.filter((pl.col("end") < work.now - gap).fill_null(True))
    seen = store.knowledge.states(work.dataset).drop("scope", "reason", "at", "turns")
    due = closed.join(store.knowledge.digests(work.dataset), on="session_id", maintain_order="left").join(
        seen, on="session_id", how="left", suffix="_seen", maintain_order="left"
    )
    same = (pl.col("digest") == pl.col("digest_seen")).fill_null(False)
    tried = same & (pl.col("version") == work.version)
    done = tried & pl.col("status").is_in(["indexed", *["fallback"] * (work.service == RECORDED)])
    attempts = pl.when(tried).then("attempts").otherwise(0)
    return due.filter(~done).with_columns(attempts=attempts, same=same).drop("status", "version", "digest_seen")


def _read(store: MemoryStore, work: Work, due: pl.DataFrame) -> tuple[Dataset, dict[str, Any]]:
    """Read what a batch needs: its sessions, which are the rows of what is due, and what came before them."""
    scopes = due["scope"].unique(maintain_order=True).to_list()
    turns, notes = store.turns(work.dataset, scopes=scopes), store.annotations(work.dataset, scopes=scopes)
    before: dict[str, Any] = {}
    if work.service and work.settings.facts:
        before["known"] = store.knowledge.rows("facts", work.dataset, scopes=scopes)
        before["earlier"] = _earlier(turns, due["session_id"].to_list())
    data = Dataset(work.dataset, "stored", turns, due, annotations=notes, language=work.language)
    return _of(data, due), before


def _of(data: Dataset, sessions: pl.DataFrame) -> Dataset:
    """Give some sessions alone."""
    turns, notes = (rows.join(sessions, on="session_id", how="semi") for rows in (data.turns, data.annotations))
    return replace(data, turns=turns, sessions=sessions, annotations=notes)


def _earlier(turns: pl.DataFrame, sessions: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Give of each session the last turns of its scope before it, with no more text than is read at a glance."""
    columns = ("scope", "session_id", "turn_id", "speaker", "text", "timestamp")
    glance = turns.select(*columns).with_columns(pl.col("text").str.slice(0, EARLIER_CHARS)).with_row_index("at")
    begins = glance.with_columns(begin=pl.col("at").first().over("scope")).unique("session_id", keep="first")
    begins = begins.filter(pl.col("session_id").is_in(sessions), pl.col("at") > pl.col("begin"))
    return {
        session: glance.slice(start := max(begin, at - EARLIER), at - start).drop("at").to_dicts()
        for session, at, begin in begins.select("session_id", "at", "begin").iter_rows()
    }


def _make(read: tuple[Dataset, dict[str, Any]], work: Work) -> Made:
    """Make the index of a batch of due sessions, which needs no store; where that fails, of each session alone."""
    begun = time.perf_counter()
    data, before = read
    due = data.sessions
    try:
        made = _made(data, before, work)
    except ModelError:
        raise  # the service cannot be asked at all
    except Exception as error:
        # Whatever a library does with the words of one session must not stop the others.
        if due.height > 1:
            each = [_make((_of(data, session), before), work) for session in due.iter_slices(1)]
            parts = {table: pl.concat(one.parts[table] for one in each) for table in _ROWS}
            made = Made(parts, pl.concat(one.outcomes for one in each))
        else:
            # Not the text of the error's cause, which may hold the conversation.
            reason = f"{type(error).__name__}: {str(error)[:300]}"
            parts = {table: frame(row) for table, row in _ROWS.items()}
            made = Made(parts, due.select("session_id", status=pl.lit("failed"), reason=pl.lit(reason)))
    return replace(made, seconds=(time.perf_counter() - begun) / due.height)


def _made(data: Dataset, before: dict[str, Any], work: Work) -> Made:
    """Make everything that the settings ask for of some sessions."""
    chosen, due = work.settings, data.sessions
    turns, cut = _capped(data.turns, chosen.max_input)
    facts, entities, summaries = [frame(Fact)], frame(Entity), frame(Summary)
    outcomes = [due.select("session_id", status=pl.lit("ok")).join(cut, on="session_id", how="left")]
    if chosen.facts and (work.service or english(work.language, "the reading of facts")):
        extracted = extraction.extract(turns, service=work.service, **before)
        outcomes.append(extracted.outcomes)
        facts.append(extracted.facts)
        entities = extracted.entities
    if chosen.observations:
        facts.append(from_observations(data))
    # A message without a time counts as heard now.
    undated = pl.col("asserted_at").is_null() & pl.col("recorded_at").is_null()
    heard = pl.when(undated).then(pl.lit(work.now)).otherwise("recorded_at").cast(TIMESTAMP)
    if chosen.summaries:
        few = pl.col("n_turns") < chosen.min_turns
        why = pl.format("no summary: {} turns, and min_turns is {}", "n_turns", pl.lit(chosen.min_turns))
        outcomes.append(due.filter(few).select("session_id", status=pl.lit("ok"), reason=why))
        long = turns.join(due.filter(~few), on="session_id", how="semi", maintain_order="left")
        written = summarize(long, service=work.service, language=work.language)
        unanswered = pl.when(pl.col("reason") == "").then(pl.lit("ok")).otherwise(pl.lit("fallback"))
        outcomes.append(written.select("session_id", status=unanswered, reason="reason"))
        # What the session is, not what of it was read.
        whole = due.select("session_id", "start", "end", "participants", "n_turns")
        written = written.drop("start", "end", "participants", "n_turns").join(whole, on="session_id")
        stamp = {"version": pl.lit(work.version), "created_at": pl.lit(work.now).cast(TIMESTAMP)}
        summaries = written.with_columns(**stamp).select(*schema(Summary))
    parts = {"summaries": summaries, "facts": pl.concat(facts).with_columns(recorded_at=heard), "entities": entities}
    return Made(parts, _worst(outcomes))


def _worst(outcomes: list[pl.DataFrame]) -> pl.DataFrame:
    """Give each session the worst of its outcomes, with every reason; a service that failed once is asked again."""
    rows = pl.concat([part.select("session_id", "status", "reason") for part in outcomes])
    reason = pl.col("reason").replace("", None).drop_nulls().unique(maintain_order=True).str.join("; ")
    # Of "fallback" and "ok" the first in the alphabet.
    worst = rows.group_by("session_id", maintain_order=True).agg(pl.col("status").min(), reason)
    return worst.with_columns(pl.col("reason").replace("", None))


def _capped(turns: pl.DataFrame, most: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep the first turns of each session, whole, up to so many characters, and say where some were left out."""
    so_far = pl.col("text").str.len_chars().cum_sum().over("session_id")
    first = pl.int_range(pl.len()).over("session_id") == 0
    marked = turns.with_columns(read=(so_far <= most) | first)
    why = pl.format("the first {} of {} turns were read: max_input is {}", pl.col("read").sum(), pl.len(), pl.lit(most))
    cut = marked.group_by("session_id").agg(pl.col("read").all(), reason=why)
    return marked.filter("read").drop("read"), cut.filter(~pl.col("read")).drop("read")


def _commit(store: MemoryStore, work: Work, due: pl.DataFrame, made: Made) -> pl.DataFrame:
    """Write rows with states and events, which it gives; a session that failed keeps the rows that counted before.

    :raises StoreError: when the store cannot be written.
    """
    asked = extraction.name_of(work.service) or EXTRACTIVE
    fell = pl.col("status") == "fallback"
    # What a model made of these very turns is better than what can be made without it.
    better = fell & pl.col("same") & (pl.col("service") != EXTRACTIVE).fill_null(False)
    # Named by what was there before: an attempt that was cut off and is made again is one event.
    before = pl.concat_str("version", "digest", pl.col("generation").fill_null(""), "attempts", separator="@")
    rows = due.join(made.outcomes, on="session_id", maintain_order="left").with_columns(
        at=pl.lit(work.now).cast(TIMESTAMP), version=pl.lit(work.version), seconds=pl.lit(made.seconds),
        status=pl.when(better).then(pl.lit("failed")).otherwise("status"),
        made_by=pl.when(fell).then(pl.lit(EXTRACTIVE)).otherwise(pl.lit(asked)),
        attempts=(pl.col("attempts") + 1).cast(pl.Int32),
    )  # fmt: skip
    failed, change = pl.col("status") == "failed", pl.when(pl.col("generation").is_null()).then(pl.lit("created"))
    events = rows.with_columns(
        event_id=pl.format("{}@{}", "session_id", pl.Series(text_hashes(rows.select(before).to_series()))),
        kind=pl.when(pl.col("status") == "ok").then(change.otherwise(pl.lit("updated"))).otherwise("status"),
        service=pl.when(failed).then(pl.lit(asked)).otherwise("made_by"),
    ).select(*schema(IndexEvent))
    states = rows.with_columns(
        status=pl.col("status").replace("ok", "indexed"),
        generation=pl.when(failed).then("generation").otherwise(pl.lit(uuid4().hex)),
        service=pl.when(failed).then("service").otherwise("made_by"),
    ).select(*schema(IndexState))
    good = rows.filter(~failed)
    parts = {table: part.join(good, on="session_id", how="semi") for table, part in made.parts.items()}
    store.knowledge.commit(work.dataset, parts=parts, states=states, events=events)
    return events
