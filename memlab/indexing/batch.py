"""One batch of sessions: read, made, and committed together; a session that fails, fails alone."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import uuid4

import polars as pl

from memlab.config import IndexSettings
from memlab.knowledge.by_model import Before
from memlab.knowledge.extraction import extract
from memlab.knowledge.facts import from_observations
from memlab.language.analysis import english
from memlab.llm import Service
from memlab.records import TIMESTAMP, Dataset, IndexEvent, IndexState, Summary, schema
from memlab.store import MemoryStore
from memlab.store.registry import INDEX_TABLES, text_hashes
from memlab.summaries import summarize

EXTRACTIVE = "extractive"
EARLIER, EARLIER_CHARS = 8, 300
"""Turns before a session that a model sees, to understand it by, and characters of each."""


@dataclass(frozen=True)
class Work:
    """What all batches share.

    :param language: of the conversations; rules read facts in English alone.
    :param version: the recipe.
    :param before: what came before the sessions of a batch.
    """

    dataset: str
    language: str
    settings: IndexSettings
    service: Service | None
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


def read(store: MemoryStore, work: Work, batch: pl.DataFrame) -> tuple[Dataset, Before]:
    """Read what a batch of due sessions needs: its sessions of its scopes, and for a model what came before them.

    :param batch: rows of :func:`memlab.indexing.pending`.
    :raises StoreError: when the store cannot be read.
    """
    scopes = batch["scope"].unique(maintain_order=True).to_list()
    parts = {"turns": store.turns, "sessions": store.sessions, "annotations": store.annotations}
    rows: dict[str, Any] = {table: read(work.dataset, scopes=scopes) for table, read in parts.items()}
    before = Before()
    if work.service and work.settings.facts:
        facts = store.knowledge.rows("facts", work.dataset, scopes=scopes)
        before = Before(_earlier(rows["turns"], batch["session_id"].to_list()), facts)
    return _of(Dataset(work.dataset, "stored", **rows, language=work.language), batch), before


def _earlier(turns: pl.DataFrame, sessions: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Give of each session the last turns of its scope before it, with no more text than is read at a glance."""
    columns = ("scope", "session_id", "speaker", "text", "timestamp")
    glance = turns.select(*columns).with_columns(pl.col("text").str.slice(0, EARLIER_CHARS)).with_row_index("at")
    begins = glance.select("session_id", "at", begin=pl.col("at").first().over("scope")).unique(
        "session_id", keep="first"
    )
    begins = begins.filter(pl.col("session_id").is_in(sessions), pl.col("at") > pl.col("begin"))
    return {
        session: glance.slice(start := max(begin, at - EARLIER), at - start).drop("at").to_dicts()
        for session, at, begin in begins.iter_rows()
    }


def make(read: tuple[pl.DataFrame, tuple[Dataset, Before]], work: Work) -> Made:
    """Make the index of a batch of due sessions, which needs no store.

    :param read: the batch, its conversations, and what came before.
    """
    begun = time.perf_counter()
    batch, (data, before) = read
    work = replace(work, before=before)
    made = []
    if not (work.settings.facts or work.settings.observations):
        few = _few(work, batch)
        made = [Made({}, few.select("session_id", status=pl.lit("skipped"), reason="why"))]
        batch = batch.join(few, on="session_id", how="anti")
    made = [*_tried(work, batch, data), *made]
    tables = [table for table in INDEX_TABLES if any(table in part.parts for part in made)]
    parts = {table: pl.concat([part.parts[table] for part in made if table in part.parts]) for table in tables}
    outcomes = pl.concat([part.outcomes for part in made])
    return Made(parts, outcomes, (time.perf_counter() - begun) / outcomes.height)


def _few(work: Work, batch: pl.DataFrame) -> pl.DataFrame:
    """List the sessions that are too short for a summary, with ``why``: "gym code is 4417" is a session of its own."""
    why = pl.format("{} turns; min_turns is {}", "n_turns", pl.lit(work.settings.min_turns))
    return batch.filter(pl.col("n_turns") < work.settings.min_turns).select("session_id", why=why)


def _tried(work: Work, batch: pl.DataFrame, data: Dataset) -> list[Made]:
    """Make a batch; where that fails, each of its sessions alone."""
    if batch.is_empty():
        return []
    try:
        return [_make(work, batch, _of(data, batch))]
    except Exception as error:
        # Whatever a library does with the words of one session must not stop the others.
        if batch.height > 1:
            return [made for session in batch.iter_slices(1) for made in _tried(work, session, data)]
        # Not the text of the error's cause, which may hold the conversation.
        reason = f"{type(error).__name__}: {str(error)[:300]}"
        return [Made({}, batch.select("session_id", status=pl.lit("failed"), reason=pl.lit(reason)))]


def _make(work: Work, batch: pl.DataFrame, data: Dataset) -> Made:
    """Make everything that the settings ask for of some sessions."""
    turns, cut = _capped(data.turns, work.settings.max_input)
    parts: dict[str, pl.DataFrame] = {}
    told = [batch.select("session_id", status=pl.lit("ok")).join(cut, on="session_id", how="left")]
    if work.settings.facts and (work.service or english(work.language, "the reading of facts")):
        extracted = extract(turns, service=work.service, ner=work.settings.ner, before=work.before)
        told.append(extracted.outcomes)
        parts |= {"entities": extracted.entities, "relations": extracted.relations, "facts": extracted.facts}
    if work.settings.observations and data.annotations.filter(pl.col("kind") == "observation").height:
        observed = from_observations(data)
        parts["facts"] = pl.concat([parts["facts"], observed]) if "facts" in parts else observed
    few = _few(work, batch)
    if work.settings.summaries:
        short = few.select("session_id", status=pl.lit("ok"), reason=pl.concat_str("why", pl.lit(", so no summary")))
        told.append(short)
        long = turns.join(few, on="session_id", how="anti", maintain_order="left")
        summaries = summarize(long, service=work.service, version=work.version, now=work.now)
        reason = pl.col("reason")
        status = pl.when(reason == "").then(pl.lit("ok")).otherwise(pl.lit("fallback"))
        told.append(summaries.select("session_id", status=status, reason=pl.when(reason != "").then(reason)))
        # What the session is, not what of it was read.
        whole = data.sessions.select("session_id", "start", "end", "participants", "n_turns")
        rows = summaries.drop("start", "end", "participants", "n_turns")
        parts["summaries"] = rows.join(whole, on="session_id", maintain_order="left").select(*schema(Summary))
    if "facts" in parts:
        # A message without a time counts as heard now.
        undated = pl.col("asserted_at").is_null() & pl.col("recorded_at").is_null()
        heard = pl.when(undated).then(pl.lit(work.now)).otherwise("recorded_at").cast(TIMESTAMP)
        parts["facts"] = parts["facts"].with_columns(recorded_at=heard)
    outcomes = _worst(told)
    good = outcomes.filter(pl.col("status") != "failed").select("session_id")
    return Made({table: rows.join(good, on="session_id", how="semi") for table, rows in parts.items()}, outcomes)


def _worst(told: list[pl.DataFrame]) -> pl.DataFrame:
    """Give each session the worst of its outcomes, with every reason."""
    rank = pl.col("status").replace_strict({"ok": 0, "fallback": 1, "failed": 2}, return_dtype=pl.Int8())
    return (
        pl.concat([part.select("session_id", "status", "reason") for part in told])
        .with_columns(rank=rank)
        .group_by("session_id", maintain_order=True)
        .agg(pl.col("status").sort_by("rank").last(), pl.col("reason").drop_nulls().unique(maintain_order=True))
        .with_columns(reason=pl.when(pl.col("reason").list.len() > 0).then(pl.col("reason").list.join("; ")))
    )


def _of(data: Dataset, batch: pl.DataFrame) -> Dataset:
    """Give the sessions of a batch alone."""
    tables = ("turns", "sessions", "annotations")
    wanted = batch.select("session_id")
    rows: dict[str, Any] = {t: getattr(data, t).join(wanted, on="session_id", how="semi") for t in tables}
    return replace(data, **rows)


def _capped(turns: pl.DataFrame, most: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep the first turns of each session, whole, up to so many characters, and say where some were left out."""
    so_far = pl.col("text").str.len_chars().cum_sum().over("session_id")
    first = pl.int_range(pl.len()).over("session_id") == 0
    read = turns.filter((so_far <= most) | first)
    counts = turns.group_by("session_id").len("all").join(read.group_by("session_id").len("read"), on="session_id")
    cut = pl.format("the first {} of {} turns were read: max_input is {}", "read", "all", pl.lit(most))
    return read, counts.filter(pl.col("read") < pl.col("all")).select("session_id", reason=cut)


def commit(store: MemoryStore, work: Work, batch: pl.DataFrame, made: Made) -> pl.DataFrame:
    """Write rows with states and events, which it gives; a session that failed keeps the rows that counted before.

    :raises StoreError: when the store cannot be written.
    """
    generation = uuid4().hex
    failed, fell = pl.col("status") == "failed", pl.col("status") == "fallback"
    good = pl.col("status").is_in(["ok", "fallback"])
    asked = pl.lit(work.service.name if work.service else EXTRACTIVE)
    told = batch.join(made.outcomes, on="session_id", maintain_order="left").with_columns(
        at=pl.lit(work.now).cast(TIMESTAMP),
        version=pl.lit(work.version),
        made_by=pl.when(fell).then(pl.lit(EXTRACTIVE)).when(good).then(asked),
        attempts=(pl.col("attempts") + 1).cast(pl.Int32),
    )
    states = told.with_columns(
        status=pl.when(good).then(pl.lit("indexed")).otherwise("status"),
        generation=pl.when(failed).then("generation").when(good).then(pl.lit(generation)),
        service=pl.when(failed).then("service").otherwise("made_by"),
    )
    first = pl.col("generation").is_null()
    # Named by what was there before: an attempt that was cut off and is made again is one event.
    before = told.select(
        pl.concat_str("version", "digest", pl.col("generation").fill_null(""), "attempts", separator="@")
    )
    events = told.with_columns(
        event_id=pl.format("{}@{}", "session_id", pl.Series(text_hashes(before.to_series()), dtype=pl.String)),
        kind=pl.when(pl.col("status") != "ok")
        .then("status")
        .when(first)
        .then(pl.lit("created"))
        .otherwise(pl.lit("updated")),
        seconds=pl.lit(made.seconds),
        service=pl.when(failed).then(asked).otherwise("made_by"),
    ).select(*schema(IndexEvent))
    states = states.select(*schema(IndexState))
    store.knowledge.commit(work.dataset, parts=made.parts, states=states, events=events, now=work.now)
    return events
