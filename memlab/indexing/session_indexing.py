"""The worker of the index: finds the sessions that are due, and reads them in batches."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import tee
from typing import Any, NamedTuple
from uuid import uuid4

import polars as pl

from memlab.config import IndexSettings
from memlab.distributed import parallel_map
from memlab.embed import Encoder
from memlab.errors import ModelError
from memlab.indexing.index_reports import NO_FACTS, cache_summary_and_fact_vectors
from memlab.knowledge import fact_extraction
from memlab.knowledge.fact_extraction import TurnRow
from memlab.llm import RECORDED, Service, configured_service, recorded_answers
from memlab.llm.token_spending import is_estimating
from memlab.progress_bars import progress_bar
from memlab.records import TIMESTAMP, Entity, Fact, IndexEvent, IndexState, Summary, frame, schema
from memlab.records.dataset import in_utc
from memlab.sessions import GAP
from memlab.store import MemoryStore
from memlab.store.table_schemas import hash_texts
from memlab.summaries import summarize_sessions
from memlab.summaries.summary_prompts import SESSION

EXTRACTIVE = "extractive"
EARLIER_TURNS = 8
EARLIER_CHARS = 300
"""Turns before a session that a model reads for context, and characters of each."""
CODE_VERSION = 11  # raised with a change of code that gives other rows for the same turns
_NO_ROWS = {"summaries": frame(Summary), "facts": frame(Fact), "entities": frame(Entity)}
IndexRows = dict[str, pl.DataFrame]
"""The result of a batch: rows of the index by kind, and ``outcomes``.

Those have ``session_id``, ``status`` (``ok``, ``fallback``, ``failed``), ``reason``, ``alone``
(whether a model was asked and made no part), and ``seconds``.
"""


@dataclass(frozen=True)
class IndexJob:
    """What all batches of a pass share."""

    dataset: str
    language: str
    settings: IndexSettings
    service: str | Service | None
    version: str
    now: datetime


class SessionBatch(NamedTuple):
    """Sessions that are due, and what is read with them.

    :param due: as of :func:`_list_due_sessions`.
    :param turns: of these sessions.
    :param before: what a model is shown beside them, as :func:`memlab.knowledge.extract` takes it.
    :param left_alone: why the model is not asked: it failed again and again in an earlier batch.
    """

    due: pl.DataFrame
    turns: pl.DataFrame
    before: dict[str, Any]
    left_alone: str = ""


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
    """Index the closed sessions that are due: not tried with this recipe, changed since, or failed.

    One where a model was asked in vain, and that was made without it, is due again; what is not
    recorded is due once the recordings change. A session's rows count once all of them are written:
    a process that dies, a model that fails or a full disk leaves what counted before. Turns can be
    ingested meanwhile. A session that fails, fails alone; one that a model does not answer has a
    summary of its own sentences and no facts, unless what a model made of the same turns is there.
    A service that fails again and again is asked for no further batch.

    Inside :func:`memlab.llm.track_spending` with ``estimate``, what a model would be asked is
    counted, and nothing is asked or written.

    :param settings: what is made; see :class:`memlab.config.IndexSettings`.
    :param service: the language model that makes it, see :func:`memlab.llm.ask`; ``None`` for none.
    :param encoder: embeds summaries and facts, so that they are found at once; otherwise they are
        when first searched.
    :param now: the present, by which sessions are open or closed; the clock where none is given.
    :param gap: the silence after which a session is closed.
    :param engine: ``ray``: the workers of a cluster read the sessions, see
        :func:`memlab.distributed.parallel_map`.
    :returns: what happened: rows of :class:`memlab.records.IndexEvent`.
    :raises ModelError: when the service cannot be asked at all (no client, no key): nothing was
        done.
    :raises StoreError: when the store cannot be read or written: what was committed before stays.

    >>> import tempfile, memlab
    >>> from memlab.indexing import index
    >>> data = memlab.datasets.load("data/facts/dev/nora.jsonl")
    >>> store = memlab.store.MemoryStore.open(tempfile.mkdtemp())
    >>> _ = store.ingest(data)
    >>> set(index(store, data.name)["kind"]), index(store, data.name).height
    ({'created'}, 0)
    """
    index_settings = settings or IndexSettings()
    if isinstance(service, str) and service != RECORDED:
        service = configured_service(service)
    if not is_estimating():
        store.knowledge.remove_orphaned_rows(dataset)
    language = store.datasets().filter(pl.col("name") == dataset)["language"].item()
    indexed_at = in_utc(now or datetime.now(UTC))
    version = _name_recipe_version(index_settings, service)
    job = IndexJob(dataset, language, index_settings, service, version, indexed_at)
    due_sessions = _list_due_sessions(store, job, gap)
    events = [frame(IndexEvent)]
    left_alone = ""
    # Workers that read at the same time know nothing of what the others find.
    asks_for_facts = index_settings.facts and service is not None
    whole_scopes = asks_for_facts and engine != "local"
    read_ahead, batches = tee(
        _split_sessions_into_batches(
            due_sessions, index_settings.batch, keeps_scopes_whole=whole_scopes
        )
    )
    batch_inputs = (
        _read_turns_and_earlier_facts(store, job, batch)._replace(left_alone=left_alone)
        for batch in read_ahead
    )
    results = parallel_map(_make_rows_of_batch_or_each_session, batch_inputs, job, engine=engine)
    bar_options: dict[str, Any] = {"total": due_sessions.height, "unit": "sessions", "delay": 2}
    with progress_bar(what="index", hidden=not progress, **bar_options) as session_bar:
        for batch, batch_rows in zip(batches, results, strict=True):
            if is_estimating():
                continue
            events.append(_write_batch_and_make_events(store, job, batch, batch_rows))
            in_vain = events[-1].filter(pl.col("reason").str.contains("not asked after"))
            if in_vain.height and not left_alone:
                left_alone = in_vain["reason"][0]
            session_bar.update(batch.height)
    if encoder is not None and due_sessions.height and not is_estimating():
        cache_summary_and_fact_vectors(store, dataset, encoder, progress=progress)
    return pl.concat(events)


def _split_sessions_into_batches(
    due_sessions: pl.DataFrame, batch_size: int, *, keeps_scopes_whole: bool
) -> Iterator[pl.DataFrame]:
    """Divide the sessions that are due into batches.

    :param batch_size: sessions of a batch.
    :param keeps_scopes_whole: whether the sessions of a scope stay together, also where they are
        more.
    """
    if not keeps_scopes_whole:
        yield from due_sessions.iter_slices(batch_size)
        return
    batch = due_sessions.clear()
    for scope_sessions in due_sessions.partition_by("scope", maintain_order=True):
        batch = pl.concat([batch, scope_sessions])
        if batch.height >= batch_size:
            yield batch
            batch = due_sessions.clear()
    if batch.height:
        yield batch


def _name_recipe_version(index_settings: IndexSettings, service: str | Service | None) -> str:
    """Give the version of the recipe: a digest of all but the turns that the rows depend on."""
    recipe_parts = index_settings.model_dump(exclude={"batch", "min_turns", "service"})
    model = service.model if isinstance(service, Service) else None
    recipe_parts |= {
        "code": CODE_VERSION,
        "model": model,
        "asked": [fact_extraction.VERSION, SESSION.version],
    }
    if service == RECORDED:
        recipe_parts["recordings"] = recorded_answers.digest_recordings()
    digest = hashlib.sha256(json.dumps(recipe_parts, sort_keys=True).encode()).hexdigest()[:8]
    return (
        f"{index_settings.version}-{fact_extraction.service_name(service) or EXTRACTIVE}-{digest}"
    )


def _list_due_sessions(
    store: MemoryStore, job: IndexJob, closing_silence: timedelta
) -> pl.DataFrame:
    """List the sessions that are closed and due, in the dataset's order.

    :returns: the columns of sessions with ``digest``, ``turns``, ``attempts`` (with this recipe on
        these turns), ``generation`` (of the rows that count now), ``service`` (that made those) and
        ``same`` (of these turns).
    """
    sessions = store.sessions(job.dataset, columns=["session_id", "scope", "end", "n_turns"])
    closed_sessions = sessions.filter((pl.col("end") + closing_silence < job.now).fill_null(True))
    session_states = store.knowledge.session_states(job.dataset).drop(
        "scope", "reason", "at", "turns"
    )
    due_sessions = closed_sessions.join(
        store.knowledge.session_digests(job.dataset), on="session_id", maintain_order="left"
    ).join(session_states, on="session_id", how="left", suffix="_seen", maintain_order="left")
    is_same = (pl.col("digest") == pl.col("digest_seen")).fill_null(False)
    was_tried = is_same & (pl.col("version") == job.version)
    final_states = ["indexed"]
    if job.service == RECORDED:
        final_states.append("fallback")
    is_done = was_tried & pl.col("status").is_in(final_states)
    attempts = pl.when(was_tried).then("attempts").otherwise(0)
    return (
        due_sessions.filter(~is_done)
        .with_columns(attempts=attempts, same=is_same)
        .drop("status", "version", "digest_seen")
    )


def _read_turns_and_earlier_facts(
    store: MemoryStore, job: IndexJob, due_sessions: pl.DataFrame
) -> SessionBatch:
    """Read the turns of a batch of sessions, and for a model the earlier facts and turns."""
    scopes = due_sessions["scope"].unique(maintain_order=True).to_list()
    turns = store.turns(job.dataset, scopes=scopes)
    earlier_knowledge: dict[str, Any] = {}
    if job.service and job.settings.facts:
        sessions = store.sessions(job.dataset, scopes=scopes, columns=["session_id"])
        earlier_knowledge = {
            "known": store.knowledge.rows("facts", job.dataset, scopes=scopes),
            "earlier": _short_last_turns_by_session(turns, due_sessions["session_id"].to_list()),
            "order": sessions["session_id"].to_list(),
        }
    own_turns = turns.join(due_sessions, on="session_id", how="semi", maintain_order="left")
    return SessionBatch(due_sessions, own_turns, earlier_knowledge)


def _short_last_turns_by_session(
    scope_turns: pl.DataFrame, session_ids: list[str]
) -> dict[str, list[TurnRow]]:
    """Give for each session the last turns of its scope before it, each cut short."""
    columns = ["scope", "session_id", "turn_id", "speaker", "text", "timestamp"]
    columns += ["forwarded_from", "quoted"]
    short_turns = (
        scope_turns.select(*columns)
        .with_columns(pl.col("text").str.slice(0, EARLIER_CHARS))
        .with_row_index("at")
    )
    scope_begin = pl.col("at").first().over("scope")
    session_begins = short_turns.with_columns(begin=scope_begin).unique("session_id", keep="first")
    session_begins = session_begins.filter(
        pl.col("session_id").is_in(session_ids), pl.col("at") > pl.col("begin")
    )
    earlier_turns = {}
    for session, row, first_row in session_begins.select("session_id", "at", "begin").iter_rows():
        start = max(first_row, row - EARLIER_TURNS)
        earlier_turns[session] = short_turns.slice(start, row - start).drop("at").to_dicts()
    return earlier_turns


def _make_rows_of_batch_or_each_session(batch: SessionBatch, job: IndexJob) -> IndexRows:
    """Index a batch of sessions without a store; where that fails, each session alone."""
    begun_at = time.perf_counter()
    due_sessions = batch.due
    try:
        index_rows = _make_index_rows(batch, job)
    except ModelError:
        raise  # the service cannot be asked at all
    except Exception as error:
        # Whatever a library does with the words of one session must not stop the others.
        if due_sessions.height > 1:
            return _make_rows_of_each_session_alone(batch, job)
        # Not the text of the error's cause, which may hold the conversation.
        reason = pl.lit(f"{type(error).__name__}: {str(error)[:300]}")
        failed_outcomes = due_sessions.select(
            "session_id", status=pl.lit("failed"), reason=reason, alone=pl.lit(False)
        )
        index_rows = _NO_ROWS | {"outcomes": failed_outcomes}
    seconds = (time.perf_counter() - begun_at) / due_sessions.height
    return index_rows | {"outcomes": index_rows["outcomes"].with_columns(seconds=pl.lit(seconds))}


def _make_rows_of_each_session_alone(batch: SessionBatch, job: IndexJob) -> IndexRows:
    """Index each session of a batch alone; each knows the facts of those before it."""
    session_rows: list[IndexRows] = []
    known_before = batch.before
    for due_session in batch.due.iter_slices(1):
        turns = batch.turns.join(due_session, on="session_id", how="semi", maintain_order="left")
        made_rows = _make_rows_of_batch_or_each_session(
            batch._replace(due=due_session, turns=turns, before=known_before), job
        )
        session_rows.append(made_rows)
        if "known" in known_before:
            other_facts = known_before["known"].join(
                due_session, on="session_id", how="anti", maintain_order="left"
            )
            known_before = known_before | {"known": pl.concat([other_facts, made_rows["facts"]])}
    joined_rows = {}
    for name in session_rows[0]:
        joined_rows[name] = pl.concat([rows[name] for rows in session_rows])
    return joined_rows


def _make_index_rows(batch: SessionBatch, job: IndexJob) -> IndexRows:
    """Make summaries, facts and entities of some sessions, as the settings ask for."""
    service = None if batch.left_alone else job.service
    index_rows = dict(_NO_ROWS)
    no_service = pl.lit(None, pl.String)
    outcomes = [batch.due.select("session_id", status=pl.lit("ok"), service=no_service)]
    without_facts = pl.Series("session_id", [], pl.String)
    if job.settings.facts and service is not None:
        extracted = fact_extraction.extract(batch.turns, service=service, **batch.before)
        unread = extracted.outcomes.filter(pl.col("service").is_null())
        without_facts = unread["session_id"]
        status = pl.col("status").replace("unanswered", "fallback")
        outcomes.append(extracted.outcomes.with_columns(status))
        # A message without a time counts as heard now.
        heard_at = pl.when(pl.col("asserted_at").is_null()).then(pl.lit(job.now)).cast(TIMESTAMP)
        index_rows["facts"] = extracted.facts.with_columns(recorded_at=heard_at)
        index_rows["entities"] = extracted.entities
    if job.settings.summaries:
        index_rows["summaries"], summary_outcomes = _make_summaries_and_outcomes(
            batch, job, service
        )
        outcomes += summary_outcomes
    if batch.left_alone:
        reason = pl.lit(batch.left_alone)
        outcomes.append(batch.due.select("session_id", status=pl.lit("fallback"), reason=reason))
    index_rows["outcomes"] = _merge_outcomes_by_session(outcomes, without_facts)
    return index_rows


def _make_summaries_and_outcomes(
    batch: SessionBatch, job: IndexJob, service: str | Service | None
) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Summarize the sessions of a batch that are long enough.

    :returns: the summaries, and outcomes as :func:`_merge_outcomes_by_session` takes them.
    """
    min_turns = job.settings.min_turns
    is_short = pl.col("n_turns") < min_turns
    short_reason = pl.format(
        "no summary: {} turns, and min_turns is {}", "n_turns", pl.lit(min_turns)
    )
    short_sessions = batch.due.filter(is_short)
    long_turns = batch.turns.join(
        batch.due.filter(~is_short), on="session_id", how="semi", maintain_order="left"
    )
    written = summarize_sessions(long_turns, service=service, language=job.language)
    is_answered = pl.col("reason") == ""
    status = pl.when(is_answered).then(pl.lit("ok")).otherwise(pl.lit("fallback"))
    outcomes = [
        short_sessions.select("session_id", reason=short_reason),
        written.select("session_id", "reason", "service", status=status),
    ]
    stamped = written.with_columns(
        version=pl.lit(job.version), created_at=pl.lit(job.now).cast(TIMESTAMP)
    )
    return stamped.select(*schema(Summary)), outcomes


def _merge_outcomes_by_session(
    part_outcomes: list[pl.DataFrame], sessions_without_facts: pl.Series
) -> pl.DataFrame:
    """Give one outcome of each session, of those of its parts.

    :param part_outcomes: frames with ``session_id`` and some of ``status``, ``reason`` and
        ``service``.
    :param sessions_without_facts: ids of the sessions whose facts a model was asked for in vain.
    :returns: ``session_id``, ``status``, ``reason`` and ``alone``.
    """
    reasons = pl.col("reason").replace("", None).drop_nulls().unique(maintain_order=True)
    by_model = pl.col("service").drop_nulls() != EXTRACTIVE
    session_outcomes = pl.concat(part_outcomes, how="diagonal").group_by(
        "session_id", maintain_order=True
    )
    outcome_table = session_outcomes.agg(
        # Of "fallback" and "ok" the first in the alphabet.
        pl.col("status").min(),
        reason=pl.when(reasons.len() > 0).then(reasons.str.join("; ")),
        has_model=by_model.any(),
    )
    is_without_facts = pl.col("session_id").is_in(sessions_without_facts.to_list())
    named_reasons = pl.concat_str(pl.lit(NO_FACTS), "reason")
    return outcome_table.select(
        "session_id",
        "status",
        reason=pl.when(is_without_facts).then(named_reasons).otherwise("reason"),
        alone=(pl.col("status") == "fallback") & ~pl.col("has_model"),
    )


def _write_batch_and_make_events(
    store: MemoryStore, job: IndexJob, due_sessions: pl.DataFrame, index_rows: IndexRows
) -> pl.DataFrame:
    """Write the rows of a batch with states and events; a session that failed keeps its rows.

    What a model made of these very turns is better than what can be made without it: it is kept,
    with its state.

    :raises StoreError: when the store cannot be written.
    """
    service_asked = fact_extraction.service_name(job.service) or EXTRACTIVE
    outcome_rows = _add_status_and_maker(due_sessions, job, index_rows["outcomes"], service_asked)
    events = _make_index_events(outcome_rows, service_asked)
    counting_rows = outcome_rows.filter(~pl.col("better"))
    indexed_rows = counting_rows.filter(~_HAS_FAILED)
    rows_by_table = {}
    for table in _NO_ROWS:
        rows_by_table[table] = index_rows[table].join(indexed_rows, on="session_id", how="semi")
    states = _make_index_states(counting_rows)
    store.knowledge.commit_sessions(
        job.dataset, rows_by_kind=rows_by_table, states=states, events=events
    )
    return events


_HAS_FAILED = pl.col("status") == "failed"


def _add_status_and_maker(
    due_sessions: pl.DataFrame, job: IndexJob, outcomes: pl.DataFrame, asked_service_name: str
) -> pl.DataFrame:
    """Say what became of each session, beside what is there of it.

    :returns: the sessions with ``status``, ``made_by``, and ``better``: whether a model made what
        is there of these very turns, and none made what came.
    """
    was_made_by_model = (pl.col("service") != EXTRACTIVE).fill_null(False)
    is_fallback = pl.col("status") == "fallback"
    is_better_before = is_fallback & pl.col("same") & was_made_by_model
    is_in_vain = pl.col("alone") & pl.lit(job.service != RECORDED)
    failed_or_kept = pl.when(is_in_vain).then(pl.lit("failed")).otherwise(pl.lit("kept"))
    made_by = pl.when("alone").then(pl.lit(EXTRACTIVE)).otherwise(pl.lit(asked_service_name))
    sessions = due_sessions.join(outcomes, on="session_id", maintain_order="left")
    return sessions.with_columns(
        at=pl.lit(job.now).cast(TIMESTAMP),
        version=pl.lit(job.version),
        status=pl.when(is_better_before).then(failed_or_kept).otherwise("status"),
        made_by=made_by,
        attempts=(pl.col("attempts") + 1).cast(pl.Int32),
        better=is_better_before,
    )


def _make_index_events(outcome_rows: pl.DataFrame, asked_service_name: str) -> pl.DataFrame:
    # Named by what was there before: an attempt that was cut off and is made again is one event.
    generation = pl.col("generation").fill_null("")
    attempt_name = pl.concat_str("version", "digest", generation, "attempts", separator="@")
    event_names = pl.Series(hash_texts(outcome_rows.select(attempt_name).to_series()))
    is_new = pl.col("generation").is_null()
    change_kind = pl.when(is_new).then(pl.lit("created")).otherwise(pl.lit("updated"))
    service = pl.when(_HAS_FAILED).then(pl.lit(asked_service_name)).when("better").then("service")
    events = outcome_rows.with_columns(
        event_id=pl.format("{}@{}", "session_id", event_names),
        kind=pl.when(pl.col("status") == "ok").then(change_kind).otherwise("status"),
        service=service.otherwise("made_by"),
    )
    return events.select(*schema(IndexEvent))


def _make_index_states(outcome_rows: pl.DataFrame) -> pl.DataFrame:
    """Make the states of sessions: one that failed keeps its generation, and with it its rows."""
    generation = pl.when(_HAS_FAILED).then("generation").otherwise(pl.lit(uuid4().hex))
    states = outcome_rows.with_columns(
        status=pl.col("status").replace("ok", "indexed"),
        generation=generation,
        service=pl.when(_HAS_FAILED).then("service").otherwise("made_by"),
    )
    return states.select(*schema(IndexState))
