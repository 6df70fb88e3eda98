"""The worker: which sessions are due, and what is made of them, batch by batch."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import tee
from typing import Any
from uuid import uuid4

import polars as pl

from memlab.config import IndexSettings
from memlab.distributed import spread
from memlab.embed import Encoder
from memlab.errors import ModelError
from memlab.indexing.known import remember
from memlab.knowledge import extraction, from_observations
from memlab.knowledge.extraction import Before
from memlab.language.analysis import english
from memlab.llm import RECORDED, Service, configured, recording
from memlab.records import TIMESTAMP, Dataset, IndexEvent, IndexState, Summary, frame, schema
from memlab.sessions import GAP
from memlab.store import MemoryStore
from memlab.store.schemas import INDEX_TABLES, text_hashes
from memlab.summaries import summarize
from memlab.summaries.asking import SESSION

EXTRACTIVE = "extractive"
EARLIER, EARLIER_CHARS = 8, 300
"""Turns before a session that a model sees, to understand it by, and characters of each."""
CODE_VERSION = 7  # raised by whoever changes what the same turns give


@dataclass(frozen=True)
class Work:
    """What all batches share."""

    dataset: str
    language: str
    settings: IndexSettings
    service: str | Service | None
    version: str
    now: datetime
    before: Before = field(default_factory=Before)


@dataclass(frozen=True)
class Made:
    """What a batch gave.

    :param parts: rows of the tables of the index, with ``session_id``.
    :param outcomes: ``session_id``, ``status`` (``ok``, ``fallback``, ``failed``) and ``reason``.
    :param seconds: that a session took.
    """

    parts: dict[str, pl.DataFrame]
    outcomes: pl.DataFrame
    seconds: float = 0.0


def recipe(settings: IndexSettings, service: str | Service | None = None) -> str:
    """Name everything besides the turns that the index of a session depends on.

    >>> from memlab.config import IndexSettings
    >>> from memlab.indexing import recipe
    >>> recipe(IndexSettings()) == recipe(IndexSettings(batch=5))
    True
    >>> recipe(IndexSettings()) == recipe(IndexSettings(version=2))
    False
    """
    parts = settings.model_dump(exclude={"batch", "min_turns", "service"})
    model = service.model if isinstance(service, Service) else None
    parts |= {"code": CODE_VERSION, "model": model, "asked": [extraction.VERSION, SESSION.version]}
    if service == RECORDED:
        parts["recordings"] = [path.stat().st_size for path in recording.files() if path.exists()]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]
    return f"{settings.version}-{extraction.name_of(service) or EXTRACTIVE}-{digest}"


def pending(
    store: MemoryStore,
    dataset: str,
    *,
    settings: IndexSettings | None = None,
    service: str | Service | None = None,
    now: datetime | None = None,
    gap: timedelta = GAP,
) -> pl.DataFrame:
    """List the closed sessions that are due: never tried, tried with another recipe, changed since, or failed.

    One where a model was asked in vain, and that was made without it, is due again.

    :param now: the present; a session whose last turn lies less than ``gap`` before it is still open.
    :returns: ``session_id``, ``scope``, ``n_turns``, ``digest``, ``turns``, ``attempts`` (with this recipe on these
        turns), ``generation`` (of the rows that count now), ``service`` (that made those) and ``same`` (whether they
        were made of these turns), in the dataset's order.
    """
    version = recipe(settings or IndexSettings(), service)
    sessions = store.sessions(dataset, columns=["session_id", "scope", "end", "n_turns"])
    if now is not None:
        present = now.replace(tzinfo=UTC) if now.tzinfo is None else now.astimezone(UTC)
        sessions = sessions.filter((pl.col("end") < present - gap).fill_null(True))
    seen = store.knowledge.states(dataset).drop("scope", "reason", "at", "turns")
    due = sessions.join(store.knowledge.digests(dataset), on="session_id", maintain_order="left").join(
        seen, on="session_id", how="left", suffix="_seen", maintain_order="left"
    )
    same = (pl.col("digest") == pl.col("digest_seen")).fill_null(False)
    tried = same & (pl.col("version") == version)
    # What is not recorded will not be until the recordings change, and with them the recipe.
    done = tried & pl.col("status").is_in(["indexed", *["fallback"] * (service == RECORDED)])
    return due.filter(~done).select(
        "session_id", "scope", "n_turns", "digest", "turns",
        pl.when(tried).then("attempts").otherwise(0).alias("attempts"), "generation", "service", same.alias("same"),
    )  # fmt: skip


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
    """Index the sessions that are due, once; those that failed are due again at the next call.

    A session's rows count once all of them are written: a process that dies, a model that fails or a full disk leaves
    what counted before. Turns can be ingested meanwhile. A session that fails, fails alone; one that a model does not
    answer is made without it, unless what a model made of the same turns is there.

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
    present = now or datetime.now(UTC)
    store.knowledge.sweep(dataset)
    due = pending(store, dataset, settings=chosen, service=service, now=present, gap=gap)
    language = store.datasets().filter(pl.col("name") == dataset)["language"].item()
    work = Work(dataset, language, chosen, service, recipe(chosen, service), present)
    events = [frame(IndexEvent)]
    with tqdm(total=due.height, desc="index", unit=" sessions", disable=not progress, delay=2) as bar:
        ahead, own = tee(due.iter_slices(chosen.batch))
        reads = ((batch, _read(store, work, batch)) for batch in ahead)
        for batch, made in zip(own, spread(_make, reads, work, engine=engine), strict=True):
            events.append(_commit(store, work, batch, made))
            bar.update(batch.height)
    if encoder is not None:
        remember(store, dataset, encoder, summaries=chosen.summaries, facts=len(events) > 1, progress=progress)
    return pl.concat(events)


def _read(store: MemoryStore, work: Work, batch: pl.DataFrame) -> tuple[Dataset, Before]:
    """Read what a batch needs: its sessions, and for a model what came before them."""
    scopes = batch["scope"].unique(maintain_order=True).to_list()
    parts = {"turns": store.turns, "sessions": store.sessions, "annotations": store.annotations}
    rows: dict[str, Any] = {table: read(work.dataset, scopes=scopes) for table, read in parts.items()}
    before = Before()
    if work.service and work.settings.facts:
        facts = store.knowledge.rows("facts", work.dataset, scopes=scopes)
        before = Before(_earlier(rows["turns"], batch["session_id"].to_list()), facts)
    return _of(Dataset(work.dataset, "stored", **rows, language=work.language), batch), before


def _earlier(turns: pl.DataFrame, sessions: list[str]) -> Mapping[str, list[dict[str, Any]]]:
    """Give of each session the last turns of its scope before it, with no more text than is read at a glance."""
    columns = ("scope", "session_id", "turn_id", "speaker", "text", "timestamp")
    glance = turns.select(*columns).with_columns(pl.col("text").str.slice(0, EARLIER_CHARS)).with_row_index("at")
    begins = glance.select("session_id", "at", begin=pl.col("at").first().over("scope")).unique(
        "session_id", keep="first"
    )
    begins = begins.filter(pl.col("session_id").is_in(sessions), pl.col("at") > pl.col("begin"))
    return {
        session: glance.slice(start := max(begin, at - EARLIER), at - start).drop("at").to_dicts()
        for session, at, begin in begins.iter_rows()
    }


def _make(read: tuple[pl.DataFrame, tuple[Dataset, Before]], work: Work) -> Made:
    """Make the index of a batch of due sessions, which needs no store; where that fails, of each session alone."""
    begun = time.perf_counter()
    batch, (data, before) = read
    try:
        made = _made(replace(work, before=before), _of(data, batch), batch)
    except ModelError:
        raise  # the service cannot be asked at all
    except Exception as error:
        # Whatever a library does with the words of one session must not stop the others.
        if batch.height > 1:
            each = [_make((session, (data, before)), work) for session in batch.iter_slices(1)]
            tables = [table for table in INDEX_TABLES if any(table in part.parts for part in each)]
            parts = {t: pl.concat([part.parts[t] for part in each if t in part.parts]) for t in tables}
            made = Made(parts, pl.concat([part.outcomes for part in each]))
        else:
            # Not the text of the error's cause, which may hold the conversation.
            reason = f"{type(error).__name__}: {str(error)[:300]}"
            made = Made({}, batch.select("session_id", status=pl.lit("failed"), reason=pl.lit(reason)))
    return replace(made, seconds=(time.perf_counter() - begun) / batch.height)


def _made(work: Work, data: Dataset, batch: pl.DataFrame) -> Made:
    """Make everything that the settings ask for of some sessions."""
    chosen = work.settings
    turns, cut = _capped(data.turns, chosen.max_input)
    parts: dict[str, pl.DataFrame] = {}
    outcomes = [batch.select("session_id", status=pl.lit("ok")).join(cut, on="session_id", how="left")]
    facts = [frame(extraction.Fact)]
    if chosen.facts and (work.service or english(work.language, "the reading of facts")):
        extracted = extraction.extract(turns, service=work.service, before=work.before)
        outcomes.append(extracted.outcomes)
        facts.append(extracted.facts)
        parts["entities"] = extracted.entities
    if chosen.observations and data.annotations.filter(pl.col("kind") == "observation").height:
        facts.append(from_observations(data))
    # A message without a time counts as heard now.
    undated = pl.col("asserted_at").is_null() & pl.col("recorded_at").is_null()
    heard = pl.when(undated).then(pl.lit(work.now)).otherwise("recorded_at").cast(TIMESTAMP)
    parts["facts"] = pl.concat(facts).with_columns(recorded_at=heard)
    if chosen.summaries:
        few = pl.col("n_turns") < chosen.min_turns
        why = pl.format("no summary: {} turns, and min_turns is {}", "n_turns", pl.lit(chosen.min_turns))
        outcomes.append(batch.filter(few).select("session_id", status=pl.lit("ok"), reason=why))
        long = turns.join(batch.filter(~few), on="session_id", how="semi", maintain_order="left")
        summaries = summarize(long, service=work.service, language=work.language)
        unanswered = pl.when(pl.col("reason") == "").then(pl.lit("ok")).otherwise(pl.lit("fallback"))
        outcomes.append(summaries.select("session_id", status=unanswered, reason="reason"))
        # What the session is, not what of it was read.
        whole = data.sessions.select("session_id", "start", "end", "participants", "n_turns")
        known = ("start", "end", "participants", "n_turns", "version", "created_at")
        rows = summaries.drop(known).with_columns(version=pl.lit(work.version), created_at=pl.lit(work.now))
        parts["summaries"] = rows.join(whole, on="session_id", maintain_order="left").select(*schema(Summary))
    return Made(parts, _worst(outcomes))


def _worst(outcomes: list[pl.DataFrame]) -> pl.DataFrame:
    """Give each session the worst of its outcomes, with every reason; a service that failed once is asked again."""
    rows = pl.concat([part.select("session_id", "status", "reason") for part in outcomes])
    reason = pl.col("reason").drop_nulls().unique(maintain_order=True).str.join("; ")
    return rows.group_by("session_id", maintain_order=True).agg(
        status=pl.when((pl.col("status") == "ok").all()).then(pl.lit("ok")).otherwise(pl.lit("fallback")), reason=reason
    ).with_columns(pl.col("reason").replace("", None))  # fmt: skip


def _of(data: Dataset, batch: pl.DataFrame) -> Dataset:
    """Give the sessions of a batch alone."""
    wanted = batch.select("session_id")
    rows: dict[str, Any] = {
        table: getattr(data, table).join(wanted, on="session_id", how="semi")
        for table in ("turns", "sessions", "annotations")
    }
    return replace(data, **rows)


def _capped(turns: pl.DataFrame, most: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep the first turns of each session, whole, up to so many characters, and say where some were left out."""
    so_far = pl.col("text").str.len_chars().cum_sum().over("session_id")
    first = pl.int_range(pl.len()).over("session_id") == 0
    read = turns.filter((so_far <= most) | first)
    counts = turns.group_by("session_id").len("all").join(read.group_by("session_id").len("read"), on="session_id")
    cut = pl.format("the first {} of {} turns were read: max_input is {}", "read", "all", pl.lit(most))
    return read, counts.filter(pl.col("read") < pl.col("all")).select("session_id", reason=cut)


def _commit(store: MemoryStore, work: Work, batch: pl.DataFrame, made: Made) -> pl.DataFrame:
    """Write rows with states and events, which it gives; a session that failed keeps the rows that counted before.

    :raises StoreError: when the store cannot be written.
    """
    generation, asked = uuid4().hex, extraction.name_of(work.service) or EXTRACTIVE
    told = batch.join(made.outcomes, on="session_id", maintain_order="left")
    # What a model made of these very turns is better than what can be made without it.
    better = (pl.col("status") == "fallback") & pl.col("same") & (pl.col("service") != EXTRACTIVE).fill_null(False)
    told = told.with_columns(status=pl.when(better).then(pl.lit("failed")).otherwise("status"))
    failed, fell = pl.col("status") == "failed", pl.col("status") == "fallback"
    told = told.with_columns(
        at=pl.lit(work.now).cast(TIMESTAMP),
        version=pl.lit(work.version),
        made_by=pl.when(fell).then(pl.lit(EXTRACTIVE)).otherwise(pl.lit(asked)),
        attempts=(pl.col("attempts") + 1).cast(pl.Int32),
        first=pl.col("generation").is_null(),
    )
    # Named by what was there before: an attempt that was cut off and is made again is one event.
    before = told.select(
        pl.concat_str("version", "digest", pl.col("generation").fill_null(""), "attempts", separator="@")
    )
    change = pl.when("first").then(pl.lit("created")).otherwise(pl.lit("updated"))
    events = told.with_columns(
        event_id=pl.format("{}@{}", "session_id", pl.Series(text_hashes(before.to_series()), dtype=pl.String)),
        kind=pl.when(failed | fell).then("status").otherwise(change),
        seconds=pl.lit(made.seconds),
        service=pl.when(failed).then(pl.lit(asked)).otherwise("made_by"),
    ).select(*schema(IndexEvent))
    states = told.with_columns(
        status=pl.when(failed | fell).then("status").otherwise(pl.lit("indexed")),
        generation=pl.when(failed).then("generation").otherwise(pl.lit(generation)),
        service=pl.when(failed).then("service").otherwise("made_by"),
    ).select(*schema(IndexState))
    good = told.filter(~failed).select("session_id")
    parts = {table: rows.join(good, on="session_id", how="semi") for table, rows in made.parts.items()}
    store.knowledge.commit(work.dataset, parts=parts, states=states, events=events)
    return events
