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
from memlab.terminal import count_noun, shorten_line

NO_FACTS = "no facts: "
"""How the reason of a session begins whose facts a model was asked for in vain."""
HELD = ("active", "due")
"""The status of facts that hold: a plan whose day has come does until somebody says more."""
_FACT_DIGEST = re.compile(r".*/(f[0-9a-f]{12})")
_MAX_LISTED = 8


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
    pairs = map_undos_to_current_facts(store, dataset, facts).values()
    cached = None
    if encoder is not None:
        cached = cache_encoder(store, encoder)
    return resolve(facts, encoder=cached, as_of=as_of, now=now, undone=pairs)


def map_undos_to_current_facts(
    store: MemoryStore, dataset: str, facts: pl.DataFrame
) -> dict[tuple[str, str], tuple[str, str]]:
    """Give for each undo, a pair of fact ids, the current facts of its scope that state the same.

    :returns: noted pair → current pair; an id is empty where no fact states it any more.
    """
    rows = facts.select("scope", "fact_id").rows()
    by_content = {(scope, _FACT_DIGEST.sub(r"\1", fact)): fact for scope, fact in rows}
    there = frozenset(rows)

    def current(scope: str, fact: str) -> str:
        if (scope, fact) in there:
            return fact
        return by_content.get((scope, _FACT_DIGEST.sub(r"\1", fact)), "")

    noted = store.knowledge.undone(dataset).select("scope", "old", "new").iter_rows()
    return {(old, new): (current(scope, old), current(scope, new)) for scope, old, new in noted}


def cache_vectors(
    store: MemoryStore, dataset: str, encoder: Encoder, *, progress: bool = False
) -> None:
    """Encode the summaries and facts of the index into the store's cache of vectors."""
    facts = resolved_facts(store, dataset, encoder=encoder).facts
    facts = facts.filter(pl.col("status") != "repeat")
    summaries = store.knowledge.rows("summaries", dataset)["summary"]
    texts = [*summaries, *fact_search.fact_statements(facts)]
    if texts:
        store.encode(encoder, texts, progress=progress)


def report_lines(store: MemoryStore, dataset: str, events: pl.DataFrame) -> list[str]:
    """Report in lines what a pass did, what the index holds, and which sessions no model read.

    :param events: what :func:`memlab.indexing.index` gave.
    """
    counted = ", ".join(f"{n:,} {kind}" for kind, n in Counter(events["kind"]).items())
    if events.is_empty():
        counted = f"nothing was due{_open_note(store, dataset)}"
    knowledge = store.knowledge
    made = ("summaries", "entities")
    holds = [count_noun(knowledge.rows(kind, dataset).height, kind) for kind in made]
    known = resolved_facts(store, dataset).facts
    facts = known.filter(pl.col("status") != "repeat")
    n_held = facts.filter(pl.col("status").is_in(HELD)).height
    holds.append(f"{count_noun(facts.height, 'facts')}, of which {n_held:,} hold")
    lines = [f"{dataset}: {counted}; the index holds {', '.join(holds)}"]
    failed = events.filter(kind="failed").select("session_id", "reason")
    for session, reason in failed.head(_MAX_LISTED).iter_rows():
        lines.append(f"  {session}: failed: {shorten_line(reason or '')}")
    n_more = failed.height - _MAX_LISTED
    if n_more > 0:
        lines.append(f"  … and {n_more:,} more; all of them: store.knowledge.events")
    lines += _unanswered_lines(events)
    awaiting = earlier_facts_note(store, dataset)
    if awaiting:
        lines.append(f"  {awaiting}")
    for (old, new), pair in map_undos_to_current_facts(store, dataset, known).items():
        if "" in pair:
            lines.append(f"  undone: {new} ends {old}: what it names is no longer said")
    return lines


def _unanswered_lines(events: pl.DataFrame) -> list[str]:
    """Say in a line each how many sessions a model did not read, read in part, or read earlier."""
    alone, kind = pl.col("service") == "extractive", pl.col("kind")
    in_part = ~alone & (kind == "fallback")
    no_facts = pl.col("reason").str.starts_with(NO_FACTS).fill_null(False)
    again = "the next memlab index asks again"
    made = "no facts, summaries of their own sentences; --service NAME asks a model"
    lines = []
    for chosen, words in (
        (alone, f"came from no model{{}}: {made}"),
        (in_part & no_facts, f"have a summary of a model, and no facts{{}}; {again}"),
        (in_part & ~no_facts, f"came in part from no model{{}}; {again}"),
        (kind == "kept", "stay as a model made them{}"),
    ):
        part = events.filter(chosen)
        if part.height:
            counted = f"{part.height:,} of {events.height:,} sessions"
            lines.append(f"  {counted} {words.format(_first_reason(part['reason']))}")
    return lines


def _first_reason(reasons: pl.Series) -> str:
    """Give the first reason in brackets; that a session was too short for a summary is none."""
    errors = reasons.drop_nulls().str.strip_prefix(NO_FACTS)
    errors = errors.str.replace(r"(; )?no summary: .*$", "")
    errors = errors.filter(errors != "")
    if errors.is_empty():
        return ""
    return f" ({shorten_line(errors[0])})"


def earlier_facts_note(
    store: MemoryStore, dataset: str, *, scopes: Sequence[str] | None = None
) -> str:
    """Say how many facts there are in an earlier layout, which nothing reads; empty for none."""
    n_earlier = store.knowledge.count_earlier_facts(dataset, scopes=scopes)
    if not n_earlier:
        return ""
    verb = "awaits" if n_earlier == 1 else "await"
    return f"{count_noun(n_earlier, 'facts')} of an earlier layout {verb} memlab index"


def empty_reason(store: MemoryStore, dataset: str, scope: str) -> str:
    """Say why a scope has nothing to list: it is not indexed, or nothing was found in it."""
    states = store.knowledge.states(dataset).filter(scope=scope)
    if states.is_empty():
        return f"is not indexed{_open_note(store, dataset, scope) or '; memlab index does that'}"
    why = _reasons_in_brackets(states["reason"])
    if (states["status"] == "failed").all():
        return f"has no session that was indexed{why}"
    awaiting = earlier_facts_note(store, dataset, scopes=[scope])
    if awaiting:
        why += f"; {awaiting}"
    n_unread = states.filter(service="extractive").height
    if n_unread == states.height:
        return (
            f"is indexed without a model{why}, and only a model finds facts, entities and "
            "decisions; memlab index --service NAME asks one"
        )
    unread = ""
    if n_unread:
        unread = f"; no model read {n_unread:,} of its {states.height:,} sessions"
    return f"is indexed, and nothing was found{why}{unread}"


def _reasons_in_brackets(reasons: pl.Series) -> str:
    """Give the first reasons, each once; empty where there is none."""
    named = reasons.drop_nulls().str.strip_prefix(NO_FACTS).unique(maintain_order=True)
    if named.is_empty():
        return ""
    return f" ({'; '.join(map(shorten_line, named.head(3)))})"


def _open_note(store: MemoryStore, dataset: str, *scopes: str) -> str:
    """Say how many sessions are still open, so that they are not indexed."""
    minutes = settings()[0].gap_minutes
    ends = store.sessions(dataset, scopes=scopes or None, columns=["end"])["end"]
    n_open = (ends + timedelta(minutes=minutes) >= datetime.now(UTC)).sum()
    if not n_open:
        return ""
    return f"; still open, until {minutes:g} minutes of silence: {n_open:,} of its sessions"
