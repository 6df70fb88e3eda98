"""What the verbs about one memory share: opening it, its facts, the present, and printing."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import memlab
from memlab.cli.shared_options import (
    LAST_INGESTED,
    MemoryOptions,
    echo,
    load_encoder,
    settings_in_force,
)
from memlab.errors import DataError
from memlab.terminal_text import choose_name_or_only_one, count_noun, escape_line

if TYPE_CHECKING:
    import polars as pl

    from memlab.config import Settings
    from memlab.embed import WrappedEncoder
    from memlab.knowledge import Resolved
    from memlab.store import MemoryStore

_OLD_DAYS = 365
_LINE_CHARACTERS = 100
_MOST_TURNS = 6


@dataclass(frozen=True)
class OpenMemory:
    """One memory of the store, and what reads it."""

    store: MemoryStore
    settings: Settings
    dataset: str
    scope: str

    @cached_property
    def encoder(self) -> WrappedEncoder:
        from memlab.embed import cache_encoder

        return cache_encoder(self.store, load_encoder(self.settings))

    def knowledge_rows(self, table_name: str) -> pl.DataFrame:
        return self.store.knowledge.rows(table_name, self.dataset, scopes=[self.scope])

    def resolved_facts(
        self, as_of: datetime | None = None, *, now: datetime | None = None
    ) -> Resolved:
        from memlab.indexing import resolved_facts

        return resolved_facts(
            self.store,
            self.dataset,
            scopes=[self.scope],
            encoder=self.encoder,
            as_of=as_of,
            now=now,
        )

    def missing_content_error(self, content: str, reason: str = "") -> DataError:
        """Give the error that says why there is nothing of a kind."""
        reason = reason or memlab.indexing.empty_reason(self.store, self.dataset, self.scope)
        return DataError(f"no {content}: {self.scope!r} of {self.dataset!r} {reason}")


class ScoredFacts(NamedTuple):
    """Facts of a memory, those with their confidence, and the line that says at which present."""

    resolved: Resolved
    facts: pl.DataFrame
    present_line: str


class PresentTime(NamedTuple):
    """The present at which a memory is asked, and the line that says which it is."""

    time: datetime
    line: str


def open_memory(options: MemoryOptions, *, all_scopes: bool = False) -> OpenMemory:
    """Open the memory that the options name.

    :param all_scopes: where no scope is named, give all of them as one whose name is empty.
    """
    from memlab.retrieve.large_scope_candidates import LARGE

    settings = settings_in_force(store=options.store, encoder=options.encoder)
    memory_store = memlab.MemoryStore.open(settings.store, create=False)
    dataset_names = memory_store.datasets()["name"].to_list()
    dataset = options.dataset
    if dataset is None and len(dataset_names) > 1:
        dataset = memory_store.chosen() or ""
        echo(f"dataset {escape_line(dataset)}, {LAST_INGESTED}", err=True)
    dataset_name = choose_name_or_only_one(
        dataset_names, dataset, "dataset", "memlab ingest FILE puts one there"
    )
    scope_names = memory_store.scopes(dataset_name)
    if all_scopes and options.scope is None and len(scope_names) > 1:
        sessions = memory_store.sessions(dataset_name, columns=["n_turns"])
        if sessions["n_turns"].sum() < LARGE:
            shown_name = escape_line(dataset_name)
            echo(f"all {len(scope_names):,} scopes of {shown_name}; --scope names one", err=True)
            return OpenMemory(memory_store, settings, dataset_name, "")
    resolved_scope = options.scope
    if resolved_scope:
        resolved_scope = memlab.records.resolve_scope_name(resolved_scope, scope_names)
    scope_name = choose_name_or_only_one(scope_names, resolved_scope, "scope", "see memlab info")
    return OpenMemory(memory_store, settings, dataset_name, scope_name)


def resolve_score_and_print_fact_notes(
    memory: OpenMemory, *, now: str | None, as_of: str | None
) -> ScoredFacts:
    """Resolve the facts of a memory and score them at the present; the text says which that is."""
    present_time, present_line = _choose_present_time(memory, now or as_of)
    resolved = memory.resolved_facts(
        parse_date_or_none(as_of, as_end_of_day=True), now=present_time
    )
    stored_facts = memory.knowledge_rows("facts")
    undated = memlab.knowledge.supersession.count_undated_facts(stored_facts)
    if resolved.facts.is_empty():
        first_statement: Any = stored_facts["asserted_at"].min()
        reason = ""
        if first_statement:
            reason = (
                f"said nothing before {as_of}: its first fact is of "
                f"{day_or_undated(first_statement)}"
            )
        elif undated:
            undated_count = count_noun(undated, "facts")
            reason = f"has {undated_count} without a date, so that nothing is known as of {as_of}"
        raise memory.missing_content_error("facts", reason)
    outdated_note = memlab.indexing.earlier_facts_note(
        memory.store, memory.dataset, scopes=[memory.scope]
    )
    if outdated_note:
        echo(outdated_note, err=True)
    if undated:
        treatment = "left out" if as_of else "in the order of the conversations"
        present_line += f"; {count_noun(undated, 'facts')} without a date, {treatment}"
    facts_with_sentences = resolved.facts.with_columns(
        sentence=memlab.knowledge.fact_search.write_fact_sentences_or_statements(resolved.facts)
    )
    settings = memlab.knowledge.ConfidenceSettings.from_table(memory.settings.confidence)
    facts = memlab.knowledge.score(facts_with_sentences, now=present_time, settings=settings)
    return ScoredFacts(resolved, facts, present_line)


def rescore_facts(memory: OpenMemory, facts: pl.DataFrame, *, now: str | None) -> pl.DataFrame:
    """Score facts that were scored by other settings, by those of a memory."""
    present_time, _ = _choose_present_time(memory, now)
    settings = memlab.knowledge.ConfidenceSettings.from_table(memory.settings.confidence)
    return memlab.knowledge.score(facts, now=present_time, settings=settings)


def _choose_present_time(memory: OpenMemory, wanted_time: str | None) -> PresentTime:
    """Choose the present, and say which it is."""
    wanted_date = parse_date_or_none(wanted_time, as_end_of_day=True)
    clock_time = datetime.now(UTC)
    if wanted_date is not None:
        return PresentTime(wanted_date, f"now: {day_or_undated(wanted_date)}, as asked")
    session_times = memory.store.sessions(
        memory.dataset, scopes=[memory.scope], columns=["start", "end"]
    )
    known_times: list[Any] = [session_times["end"].max(), session_times["start"].max()]
    latest_time: datetime = max(filter(None, known_times), default=clock_time)
    days_ago = (clock_time - latest_time).days
    if days_ago <= _OLD_DAYS:
        return PresentTime(clock_time, f"now: {day_or_undated(clock_time)}")
    age_note = escape_line(f"{memory.scope} ended {days_ago / _OLD_DAYS:.1f} years ago")
    return PresentTime(
        latest_time,
        f"now: {day_or_undated(latest_time)}, the last time in the memory ({age_note}); --now "
        "sets another",
    )


def parse_date_or_none(text: str | None, *, as_end_of_day: bool = False) -> datetime | None:
    """Read a day or a time, in UTC where it names no zone.

    :param as_end_of_day: a day alone stands for its end.
    :raises DataError: for what is no date.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        if as_end_of_day and len(text) <= len("2023-06-30"):
            moment = datetime.combine(moment, time.max)
        if moment.tzinfo is None:
            return moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise DataError(
            f"{text!r} is no date; write it as 2023-06-30 or 2023-06-30T18:00"
        ) from None


def day_or_undated(when: datetime | None) -> str:
    if when is None:
        return "undated"
    return f"{when:%Y-%m-%d}"


def filter_by_session_and_date(
    rows: pl.DataFrame,
    memory: OpenMemory,
    *,
    session: str | None,
    since: str | None,
    time_column: str,
) -> pl.DataFrame:
    """Keep the rows of a session, and those from a day on; what has no time is then left out.

    :raises DataError: for a session that the memory does not have, or what is no date.
    """
    first_moment = parse_date_or_none(since)
    if first_moment is not None:
        rows = rows.filter(rows[time_column] >= first_moment)
    if session is None:
        return rows
    sessions = memory.store.sessions(memory.dataset, scopes=[memory.scope], columns=["session_id"])
    session_ids = sessions["session_id"]
    for session_id in (session, f"{memory.scope}/{session}"):
        if session_id in session_ids:
            return rows.filter(session_id=session_id)
    first_sessions = ", ".join(session_ids.head(5))
    raise DataError(f"{memory.scope!r} has no session {session!r}; it has {first_sessions} …")


def add_evidence_texts_if_wanted(
    rows: pl.DataFrame, memory: OpenMemory, *, is_wanted: bool
) -> pl.DataFrame:
    """Add the ``turns`` of the evidence, ``ID (speaker): text`` each, where that is wanted."""
    import polars as pl

    if not is_wanted:
        return rows
    stored_turns = memory.store.turns(
        memory.dataset, scopes=[memory.scope], columns=["turn_id", "speaker", "text"]
    )
    cited_turns = stored_turns.filter(pl.col("turn_id").is_in(rows["evidence"].explode().implode()))
    text_by_turn = {
        turn_id: f"{turn_id} ({speaker}): {text}"
        for turn_id, speaker, text in cited_turns.iter_rows()
    }
    evidence_texts = []
    for evidence_ids in rows["evidence"]:
        texts = [text_by_turn.get(turn_id, f"{turn_id}: no such turn") for turn_id in evidence_ids]
        evidence_texts.append(texts)
    return rows.with_columns(turns=pl.Series(evidence_texts, dtype=pl.List(pl.String)))


def print_evidence_texts(row_with_turns: dict[str, Any]) -> None:
    """Print the first turns of a row's evidence, where it has them, and how many more there are."""
    turn_texts = row_with_turns.get("turns", [])
    for turn_text in turn_texts[:_MOST_TURNS]:
        print_wrapped(turn_text, indent=10, first_indent=8)
    if len(turn_texts) > _MOST_TURNS:
        echo(f"        … and {len(turn_texts) - _MOST_TURNS:,} more; --json has all")


def print_wrapped(text: str, *, indent: int = 6, first_indent: int = 6) -> None:
    """Print a text in lines of a terminal, whatever it holds."""
    wrapped_lines = textwrap.wrap(
        escape_line(text),
        _LINE_CHARACTERS,
        initial_indent=" " * first_indent,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
    )
    echo("\n".join(wrapped_lines))
