"""Reading of the index: resolved facts, the report of a pass, and why a scope has nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import polars as pl

from memlab.config import settings
from memlab.embed import Encoder, cache_encoder
from memlab.knowledge import Resolved, fact_search, resolve
from memlab.store import MemoryStore
from memlab.terminal_text import count_noun, shorten_line

NO_FACTS = "no facts: "
"""How the reason of a session begins whose facts a model was asked for in vain."""
HELD = ("active", "due")
"""The status of facts that hold: a plan whose day has come does until somebody says more."""
_FACT_DIGEST = re.compile(r".*/(f[0-9a-f]{12})")
_MAX_LISTED = 8
FactPair = tuple[str, str]
"""The ids of a fact and of the one that superseded it."""


def resolved_facts(
    store: MemoryStore,
    dataset: str,
    *,
    scopes: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    as_of: datetime | None = None,
    now: datetime | None = None,
) -> Resolved:
    """Read the facts of a dataset and resolve them, without the supersessions that were undone.

    :param encoder: matches near-equal values too; see :func:`memlab.knowledge.resolve`.
    :param as_of: only what had reached the memory by then counts.
    :param now: when it is asked, by which plans are due; ``None``: when something was said last.
    """
    facts = store.knowledge.rows("facts", dataset, scopes=scopes)
    undone_pairs = map_undone_pairs_to_current_or_empty(store, dataset, facts).values()
    cached_encoder = None
    if encoder is not None:
        cached_encoder = cache_encoder(store, encoder)
    return resolve(facts, encoder=cached_encoder, as_of=as_of, now=now, undone=undone_pairs)


def map_undone_pairs_to_current_or_empty(
    store: MemoryStore, dataset: str, current_facts: pl.DataFrame
) -> dict[FactPair, FactPair]:
    """Give for each undo, a pair of fact ids, the current facts of its scope that state the same.

    :returns: noted pair → current pair; an id is empty where no fact states it any more.
    """
    fact_keys = current_facts.select("scope", "fact_id").rows()
    by_content = {(scope, _FACT_DIGEST.sub(r"\1", fact)): fact for scope, fact in fact_keys}
    known_facts = frozenset(fact_keys)

    def current_fact_id_or_empty(scope: str, fact: str) -> str:
        if (scope, fact) in known_facts:
            return fact
        return by_content.get((scope, _FACT_DIGEST.sub(r"\1", fact)), "")

    noted_undos = (
        store.knowledge.undone_supersessions(dataset).select("scope", "old", "new").iter_rows()
    )
    return {
        (old_fact, new_fact): (
            current_fact_id_or_empty(scope, old_fact),
            current_fact_id_or_empty(scope, new_fact),
        )
        for scope, old_fact, new_fact in noted_undos
    }


def cache_summary_and_fact_vectors(
    store: MemoryStore, dataset: str, encoder: Encoder, *, progress: bool = False
) -> None:
    """Encode the summaries and facts of the index into the store's cache of vectors."""
    facts = resolved_facts(store, dataset, encoder=encoder).facts
    facts = facts.filter(pl.col("status") != "repeat")
    summaries = store.knowledge.rows("summaries", dataset)["summary"]
    texts = [*summaries, *fact_search.write_fact_statements(facts)]
    if texts:
        store.encode(encoder, texts, progress=progress)


def report_lines(store: MemoryStore, dataset: str, events: pl.DataFrame) -> list[str]:
    """Report in lines what a pass did, what the index holds, and which sessions no model read.

    :param events: what :func:`memlab.indexing.index` gave.
    """

    counted_kinds = f"nothing was due{_describe_open_sessions_or_empty(store, dataset)}"
    if not events.is_empty():
        counted_kinds = _describe_event_counts(events)
    knowledge = store.knowledge
    counted_tables = ("summaries", "entities")
    held_counts = [
        count_noun(knowledge.rows(kind, dataset).height, kind) for kind in counted_tables
    ]
    known_facts = resolved_facts(store, dataset).facts
    distinct_facts = known_facts.filter(pl.col("status") != "repeat")
    n_held = distinct_facts.filter(pl.col("status").is_in(HELD)).height
    held_counts.append(f"{count_noun(distinct_facts.height, 'facts')}, of which {n_held:,} hold")
    lines = [f"{dataset}: {counted_kinds}; the index holds {', '.join(held_counts)}"]
    lines.append("  read it with memlab facts, memlab list summaries, memlab recall 'QUESTION'")
    failed_events = events.filter(kind="failed").select("session_id", "reason")
    for session, reason in failed_events.head(_MAX_LISTED).iter_rows():
        lines.append(f"  {session}: failed: {shorten_line(reason or '')}")
    n_more = failed_events.height - _MAX_LISTED
    if n_more > 0:
        lines.append(f"  … and {n_more:,} more; all of them: store.knowledge.events")
    lines += _describe_sessions_without_model(events)
    awaiting = earlier_facts_note(store, dataset)
    if awaiting:
        lines.append(f"  {awaiting}")
    for (old, new), current_pair in map_undone_pairs_to_current_or_empty(
        store, dataset, known_facts
    ).items():
        if "" in current_pair:
            lines.append(f"  undone: {new} ends {old}: what it names is no longer said")
    return lines


def _describe_event_counts(events: pl.DataFrame) -> str:
    """Say what happened to how many sessions, and how many of them a model did not answer for."""
    counts_by_kind = Counter(events["kind"])
    kind_counts = ", ".join(f"{n_events:,} {kind}" for kind, n_events in counts_by_kind.items())
    counted_sessions = f"{count_noun(events.height, 'sessions')}: {kind_counts}"
    n_unanswered = counts_by_kind["failed"] + counts_by_kind["fallback"]
    if n_unanswered:
        counted_sessions += f"; {n_unanswered:,} without all answers of a model"
    return counted_sessions


def _describe_sessions_without_model(events: pl.DataFrame) -> list[str]:
    """Say in a line each how many sessions a model did not read, read in part, or read earlier."""
    is_without_model = pl.col("service") == "extractive"
    event_kind = pl.col("kind")
    is_in_part = ~is_without_model & (event_kind == "fallback")
    no_facts = pl.col("reason").str.starts_with(NO_FACTS).fill_null(False)
    again_text = "the next memlab index asks again"
    extractive_text = "no facts, summaries of their own sentences; --service NAME asks a model"
    note_lines = []
    for is_chosen, line_form in (
        (is_without_model, f"came from no model{{}}: {extractive_text}"),
        (is_in_part & no_facts, f"have a summary of a model, and no facts{{}}; {again_text}"),
        (is_in_part & ~no_facts, f"came in part from no model{{}}; {again_text}"),
        (event_kind == "kept", "stay as a model made them{}"),
    ):
        chosen_events = events.filter(is_chosen)
        if chosen_events.height:
            counted_text = f"{chosen_events.height:,} of {events.height:,} sessions"
            note_lines.append(
                f"  {counted_text} "
                f"{line_form.format(_bracket_first_failure_or_empty(chosen_events['reason']))}"
            )
    return note_lines


def _bracket_first_failure_or_empty(reasons: pl.Series) -> str:
    """Give the first reason in brackets; that a session was too short for a summary is none."""
    error_texts = reasons.drop_nulls().str.strip_prefix(NO_FACTS)
    error_texts = error_texts.str.replace(r"(; )?no summary: .*$", "")
    error_texts = error_texts.filter(error_texts != "")
    if error_texts.is_empty():
        return ""
    return f" ({shorten_line(error_texts[0])})"


def earlier_facts_note(
    store: MemoryStore, dataset: str, *, scopes: Sequence[str] | None = None
) -> str:
    """Say how many facts there are in an earlier layout, which nothing reads; empty for none."""
    n_earlier = store.knowledge.count_facts_of_earlier_layout(dataset, scopes=scopes)
    if not n_earlier:
        return ""
    plural_verb = "awaits" if n_earlier == 1 else "await"
    return f"{count_noun(n_earlier, 'facts')} of an earlier layout {plural_verb} memlab index"


def empty_reason(store: MemoryStore, dataset: str, scope: str) -> str:
    """Say why a scope has nothing to list: it is not indexed, or nothing was found in it."""
    session_states = store.knowledge.session_states(dataset).filter(scope=scope)
    if session_states.is_empty():
        open_text = _describe_open_sessions_or_empty(store, dataset, scope)
        return f"is not indexed{open_text or '; memlab index does that'}"
    reasons_text = _bracket_first_reasons_or_empty(session_states["reason"])
    if (session_states["status"] == "failed").all():
        return f"has no session that was indexed{reasons_text}"
    awaiting = earlier_facts_note(store, dataset, scopes=[scope])
    if awaiting:
        reasons_text += f"; {awaiting}"
    n_unread = session_states.filter(service="extractive").height
    if n_unread == session_states.height:
        return (
            f"is indexed without a model{reasons_text}, and only a model finds facts, entities and "
            "decisions; memlab index --service NAME asks one"
        )
    unread_text = ""
    if n_unread:
        unread_text = f"; no model read {n_unread:,} of its {session_states.height:,} sessions"
    return f"is indexed, and nothing was found{reasons_text}{unread_text}"


def _bracket_first_reasons_or_empty(reasons: pl.Series) -> str:
    """Give the first reasons, each once; empty where there is none."""
    distinct_reasons = reasons.drop_nulls().str.strip_prefix(NO_FACTS).unique(maintain_order=True)
    if distinct_reasons.is_empty():
        return ""
    return f" ({'; '.join(map(shorten_line, distinct_reasons.head(3)))})"


def _describe_open_sessions_or_empty(store: MemoryStore, dataset: str, *scopes: str) -> str:
    """Say how many sessions are still open, so that they are not indexed."""
    minutes = settings()[0].gap_minutes
    session_ends = store.sessions(dataset, scopes=scopes or None, columns=["end"])["end"]
    n_open = (session_ends + timedelta(minutes=minutes) >= datetime.now(UTC)).sum()
    if not n_open:
        return ""
    return f"; still open, until {minutes:g} minutes of silence: {n_open:,} of its sessions"
