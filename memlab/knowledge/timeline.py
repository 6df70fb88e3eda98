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
    "evidence": pl.List(pl.String()), "note": pl.String(),
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
    >>> data = memlab.datasets.synthetic.generate(turns=60, seed=0)
    >>> timeline(data, types=["session"])["type"].unique().to_list()
    ['session']
    """
    wanted = list(types) if types is not None else list(TYPES)
    unknown = [name for name in wanted if name not in TYPES]
    if unknown:
        raise DataError(f"type {unknown[0]!r} is not known; choose from {', '.join(TYPES)}")
    if since is not None and until is not None and since > until:
        raise DataError(f"since ({since.isoformat()}) is later than until ({until.isoformat()}); exchange them")
    parts = [*_sessions(data), *_annotations(data), *(_knowledge(resolved) if resolved else ())]
    rows = pl.concat([part.select(*_COLUMNS, "who") for part in parts])
    if person is not None:
        rows = _of(rows, person)
    rows = rows.filter(pl.col("type").is_in(wanted))
    if "fact" in wanted and resolved is not None:
        told = resolved.facts.select("scope", "text").drop_nulls("text").with_columns(type=pl.lit("observation"))
        rows = rows.join(told, on=["scope", "type", "text"], how="anti", maintain_order="left")
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


def _row(kind: str, **columns: pl.Expr) -> list[pl.Expr]:
    """Name the columns of one kind of row; those not given are empty."""
    given = {"type": pl.lit(kind), "note": pl.when(columns["at"].is_null()).then(pl.lit(UNDATED)), **columns}
    types = {**_COLUMNS, "who": pl.List(pl.String())}
    empty = {"evidence": pl.lit([], pl.List(pl.String())), "who": pl.lit([], pl.List(pl.String()))}
    return [given.get(name, empty.get(name, pl.col(name))).cast(kind_).alias(name) for name, kind_ in types.items()]


def _sessions(data: Dataset) -> list[pl.DataFrame]:
    turns = pl.format("{} turns of {}", "n_turns", pl.col("participants").list.join(", "))
    held = data.sessions
    return [
        held.select(_row("session", at=pl.col("start"), text=turns, who=pl.col("participants"))),
        held.drop_nulls("summary").select(
            _row("summary", at=pl.coalesce("end", "start"), text=pl.col("summary"), who=pl.col("participants"))
        ),
    ]


def _annotations(data: Dataset) -> list[pl.DataFrame]:
    starts = data.sessions.select("session_id", "start")
    times = data.turns.select("turn_id", "timestamp")
    said = (
        data.annotations.select("annotation_id", turn_id="evidence")
        .explode("turn_id")
        .join(times, on="turn_id")
        .group_by("annotation_id")
        .agg(pl.col("timestamp").max())
    )
    told = data.annotations.join(starts, on="session_id", how="left", maintain_order="left")
    told = told.join(said, on="annotation_id", how="left", maintain_order="left")
    columns = {"at": pl.coalesce("timestamp", "start"), "text": pl.col("text"), "evidence": pl.col("evidence")}
    who = pl.concat_list("speaker")
    return [told.filter(kind=kind).select(_row(kind, **columns, who=who)) for kind in ("event", "observation")]


def _knowledge(resolved: Resolved) -> list[pl.DataFrame]:
    facts = resolved.facts
    sessions = facts.select("session_id", new="fact_id")
    log = resolved.log.join(sessions, on="new", how="left", maintain_order="left")
    statement = _phrases.statement()
    over = pl.format("{} {}: {} → {} ({})", "subject", "predicate", "old_object", "new_object", "rule")
    return [
        facts.select(
            _row("fact", at=pl.coalesce("asserted_at", "recorded_at"), text=statement, evidence=pl.col("evidence"))
        ),
        log.select(_row("supersession", at=pl.col("at"), text=over, evidence=pl.col("evidence"))),
    ]


def _of(rows: pl.DataFrame, person: str) -> pl.DataFrame:
    """Keep what a person took part in or is named in, word for word."""
    name = _phrases.tokens(person)
    texts = [" ".join((*who, text or "")) if kind != "session" else " ".join(who)
             for who, text, kind in rows.select("who", "text", "type").iter_rows()]  # fmt: skip
    if (
        not name
        or not (
            named := rows.filter(pl.Series([_phrases.holds(text, name) for text in texts], dtype=pl.Boolean))
        ).height
    ):
        raise DataError(f"nothing names {person!r}; give a name as the conversations have it")
    return named
