"""What happened when: sessions, their summaries, facts and events, and what superseded what, in order of time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from memlab.errors import DataError
from memlab.knowledge import _phrases
from memlab.knowledge.supersession import Resolved
from memlab.records import TIMESTAMP, Dataset

TYPES = ("session", "event", "observation", "fact", "supersession", "summary")
UNDATED = "undated: the source gives no time"
_COLUMNS = {
    "scope": pl.String(), "at": TIMESTAMP, "type": pl.String(), "text": pl.String(), "session_id": pl.String(),
    "evidence": pl.List(pl.String()), "note": pl.String(), "who": pl.List(pl.String()),
}  # fmt: skip


def timeline(
    data: Dataset,
    resolved: Resolved | None = None,
    *,
    types: Sequence[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    person: str | None = None,
) -> pl.DataFrame:
    """List what is known of each scope in order of time.

    A session stands at its start and its summary at its end; a fact when it was said, a supersession when the old value
    stopped to hold, an event and an observation at the latest turn of their evidence, else at the start of their
    session. A fact that was read from an observation is not listed as both.

    :param data: sessions (with summaries where there are: :func:`memlab.indexing.attached`), turns and annotations.
    :param resolved: facts and what superseded them.
    :param types: which of :data:`TYPES`; all by default.
    :param since: from this time on; what has no time is then left out.
    :param until: up to and with this time; likewise.
    :param person: only what they took part in, what is about them or names them.
    :returns: ``scope``, ``at``, ``type``, ``text``, ``session_id``, ``evidence`` and ``note``; what has no time comes
        last in its scope, and ``note`` says so.
    :raises DataError: for an unknown type, times that end before they begin, or a person whom nothing names.

    >>> import memlab
    >>> from memlab.knowledge.timeline import timeline
    >>> data = memlab.sample(turns=60)
    >>> timeline(data, types=["session"])["type"].unique().to_list()
    ['session']
    """
    wanted = list(types) if types is not None else list(TYPES)
    unknown = [name for name in wanted if name not in TYPES]
    if unknown:
        raise DataError(f"type {unknown[0]!r} is not known; choose from {', '.join(TYPES)}")
    if since is not None and until is not None and since > until:
        raise DataError(f"since ({since.isoformat()}) is later than until ({until.isoformat()}); exchange them")
    rows = pl.concat([*_sessions(data), *_annotations(data), *(_knowledge(resolved) if resolved else ())])
    if person is not None:
        rows = _of(rows, person)
    rows = rows.filter(pl.col("type").is_in(wanted))
    if "fact" in wanted and resolved is not None:
        read = resolved.facts.select("scope", "text").drop_nulls("text").with_columns(type=pl.lit("observation"))
        rows = rows.join(read, on=["scope", "type", "text"], how="anti", maintain_order="left")
    if since is not None:
        rows = rows.filter(pl.col("at") >= since)
    if until is not None:
        rows = rows.filter(pl.col("at") <= until)
    place = {scope: i for i, scope in enumerate(data.scopes)}
    order = [
        pl.col("scope").replace_strict(place, default=len(place), return_dtype=pl.Int64),
        pl.col("at"),
        pl.col("type").replace_strict({name: i for i, name in enumerate(TYPES)}, return_dtype=pl.Int64),
    ]
    return rows.sort(order, nulls_last=True, maintain_order=True).drop("who")


def _entries(rows: pl.DataFrame, kind: str, at: pl.Expr, text: pl.Expr, who: pl.Expr | None = None) -> pl.DataFrame:
    """Write rows as entries of a type; what has no ``evidence`` has none."""
    none = pl.lit([], pl.List(pl.String))
    evidence = pl.col("evidence") if "evidence" in rows.columns else none
    undated = pl.when(at.is_null()).then(pl.lit(UNDATED))
    return rows.select(
        "scope", "session_id", at=at, type=pl.lit(kind), text=text, evidence=evidence, note=undated,
        who=none if who is None else who,
    ).select(pl.col(name).cast(type_) for name, type_ in _COLUMNS.items())  # fmt: skip


def _sessions(data: Dataset) -> list[pl.DataFrame]:
    who = pl.col("participants")
    turns = pl.format("{} turns of {}", "n_turns", who.list.join(", "))
    ends = pl.coalesce("end", "start")
    return [
        _entries(data.sessions, "session", pl.col("start"), turns, who),
        _entries(data.sessions.drop_nulls("summary"), "summary", ends, pl.col("summary"), who),
    ]


def _annotations(data: Dataset) -> list[pl.DataFrame]:
    times = data.turns.select("turn_id", "timestamp")
    latest = data.annotations.select("annotation_id", turn_id="evidence").explode("turn_id").join(times, on="turn_id")
    latest = latest.group_by("annotation_id").agg(pl.col("timestamp").max())
    starts = data.sessions.select("session_id", "start")
    rows = data.annotations.join(starts, on="session_id", how="left", maintain_order="left")
    rows = rows.join(latest, on="annotation_id", how="left", maintain_order="left")
    at, who = pl.coalesce("timestamp", "start"), pl.concat_list("speaker")
    return [_entries(rows.filter(kind=kind), kind, at, pl.col("text"), who) for kind in ("event", "observation")]


def _knowledge(resolved: Resolved) -> list[pl.DataFrame]:
    facts = resolved.facts
    log = resolved.log.join(facts.select("session_id", new="fact_id"), on="new", how="left", maintain_order="left")
    over = pl.format("{} {}: {} → {} ({})", "subject", "predicate", "old_object", "new_object", "rule")
    return [
        _entries(facts, "fact", pl.coalesce("asserted_at", "recorded_at"), _phrases.statement()),
        _entries(log, "supersession", pl.col("at"), over),
    ]


def _of(rows: pl.DataFrame, person: str) -> pl.DataFrame:
    """Keep what a person took part in or is named in, word for word."""
    name = _phrases.tokens(person)
    texts = pl.when(pl.col("type") != "session").then(pl.col("text").fill_null("")).otherwise(pl.lit(""))
    words = rows.select(pl.concat_str(pl.col("who").list.join(" "), texts, separator=" ")).to_series()
    rows = rows.filter(pl.Series([bool(name) and _phrases.holds(text, name) for text in words], dtype=pl.Boolean))
    if rows.is_empty():
        raise DataError(f"nothing names {person!r}; give a name as the conversations have it")
    return rows
