"""Verbs that ask one memory of the store: search, facts, recall, lists, and rollups of a time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import memlab
from memlab.cli import shared_options as opt
from memlab.cli.opening_memory import (
    OpenMemory,
    add_evidence_texts_if_wanted,
    day_or_undated,
    filter_by_session_and_date,
    open_memory,
    parse_date_or_none,
    print_evidence_texts,
    print_wrapped,
    rescore_facts,
    resolve_score_and_print_fact_notes,
)
from memlab.cli.shared_options import echo, register_command
from memlab.errors import DataError
from memlab.terminal_text import count_noun, escape_line, shorten_line

if TYPE_CHECKING:
    import polars as pl

    from memlab.config import RecallSettings, Settings
    from memlab.knowledge import Resolved

GROUP = "Ask"
Question = Annotated[str, typer.Argument(help="What to look for.")]
Session = Annotated[
    str | None, typer.Option(help="Only of this session: its id, or what follows the scope in it.")
]
Since = Annotated[str | None, typer.Option(help="From this day on.")]
Evidence = Annotated[bool, typer.Option("--evidence", help="With the turns that each stands on.")]
Json = Annotated[
    bool, typer.Option("--json", help="As JSON, an object a line; all of them, whatever --k says.")
]
All = Annotated[bool, typer.Option("--all", help="What no longer holds too.")]
Now = Annotated[
    str | None,
    typer.Option(
        help="The present. Default: the clock; for a memory that ended over a year ago, its end."
    ),
]
AsOf = Annotated[
    str | None,
    typer.Option(help="Facts that were active on this day, from what was known by then."),
]
History = Annotated[
    Path | None,
    typer.Option(help="JSON messages before the question, which is made to stand alone."),
]
Rewriter = Annotated[str, typer.Option(help="The service that rewrites it, or recorded.")]
Compare = Annotated[
    Path | None,
    typer.Option(
        help="A file as memlab.toml: ranks and confidences by its [confidence] and [recall] too.",
        show_default=False,
    ),
]
Person = Annotated[str | None, typer.Option(help="Only facts about what holds this name.")]
Slot = Annotated[
    str | None, typer.Option(help="Only what is stated under this name, such as employer.")
]
Log = Annotated[
    bool, typer.Option("--log", help="What superseded what: when, why, by what evidence.")
]
Undo = Annotated[
    tuple[str, str] | None, typer.Option(metavar="OLD NEW", help="NEW no longer ends OLD.")
]
Redo = Annotated[tuple[str, str] | None, typer.Option(metavar="OLD NEW", help="Take an undo back.")]
Summaries = Annotated[
    int,
    typer.Option(help="Also so many summaries of sessions.", min=0, max=opt.MOST_RESULTS),
]
Kind = Annotated[
    str,
    typer.Argument(
        help="summaries, topics, decisions, actions, questions, entities, timeline, weeks, months "
        "or clusters."
    ),
]
Whole = Annotated[
    bool,
    typer.Option(
        "--tree", help="All there is, or all of the week or month, each sentence with its messages."
    ),
]
Over = Annotated[
    str, typer.Option(help="Of a whole tree: weeks, or clusters of messages on one theme.")
]
Page = Annotated[
    Path | None,
    typer.Option(
        help="A file for it: .html opens and closes, .md is Markdown.", show_default=False
    ),
]
Writer = Annotated[
    str | None,
    typer.Option(
        help="extractive, recorded, or a service of the settings; by default what the store has, "
        "else the setting index.service."
    ),
]
_MOST_REASONS = 8
_STATED_COLUMNS = (
    *("fact_id", "session_id", "sentence", "about", "slot", "value", "kind", "holds"),
    *("since", "until", "source", "said_by"),
)
_RESOLVED_COLUMNS = (
    *("status", "confidence", "valid_from", "valid_to", "last_access", "n_reinforced"),
    *("superseded_by", "evidence"),
)


@register_command(GROUP, "search 'what did the bookcase cost?' --scope owen --k 5")
def search(
    query: Question,
    *,
    pipeline: Annotated[str, typer.Option(help="The pipeline.")] = "best",
    level: Annotated[str, typer.Option(help="turn or session.")] = "turn",
    k: opt.K = 10,
    history: History = None,
    service: Rewriter = "recorded",
    memory_options: opt.MemoryOptions,
) -> None:
    """Search one memory of the store, or all of a dataset where --scope names none."""
    from memlab import lookup
    from memlab.found_messages import format_hits_as_lines

    # What can be refused is, before a note of the memory is printed; plugins may bring stages.
    opt.settings_in_force()
    search_pipeline = memlab.pipeline(pipeline)
    search_pipeline.check_services_and_models()
    if level not in memlab.records.LEVELS:
        raise DataError(f"level is {level!r}; choose turn or session")
    memory = open_memory(memory_options, all_scopes=True)
    if history is not None:
        history_turns = memlab.conversation.read_history(history)
        query = memlab.conversation.rewrite(query, history=history_turns, service=service)
        echo(f"searched for: {query}", err=True)
    question_rows = lookup.make_checked_question_frame(query, memory.scope)
    bench = lookup.question_bench(
        memory.store,
        memory.dataset,
        question_rows,
        encoder=memory.encoder,
        language=memory.settings.language,
    )
    scope_size = memory.store.search.count_turns_of_scope(memory.dataset, memory.scope)
    if bench.turns.height < scope_size:
        echo(f"compared with {bench.turns.height:,} candidates of {scope_size:,} turns", err=True)
    hits = lookup.hit_rows(search_pipeline.run(bench, level=level).top(k), bench)
    if hits.is_empty():
        place_line = escape_line(memory.scope or memory.dataset)
        echo(f"no {level} of {place_line} matches {shorten_line(query)!r}")
        return
    for found_line in format_hits_as_lines(hits, question=query, pipeline=pipeline):
        echo(found_line)
    n_turns = max(bench.turns.height, scope_size)
    if level == "turn" and hits.height < min(k, n_turns):
        echo(
            f"{hits.height:,} of {n_turns:,} turns: {shorten_line(pipeline)} ranks no "
            "more; k= of its first stage says how many, as in best(k=1000)"
        )
    if not lookup.has_turn_sharing_question_word(bench):
        echo("nothing shares a word with the question: these are the nearest by meaning")


@register_command(GROUP, "facts --scope owen --person owen --evidence")
def facts(
    *,
    person: Person = None,
    slot: Slot = None,
    all_: All = False,
    as_of: AsOf = None,
    log: Log = False,
    undo: Undo = None,
    redo: Redo = None,
    why: Annotated[str, typer.Option(help="A reason, kept with the undo.")] = "",
    session: Session = None,
    since: Annotated[str | None, typer.Option(help="Only what was said from this day on.")] = None,
    evidence: Evidence = False,
    json: Json = False,
    k: opt.K = 50,
    now: Now = None,
    memory_options: opt.MemoryOptions,
) -> None:
    """List what a memory holds to be true, what was heard last first, and how sure it is."""
    memory = open_memory(memory_options)
    if undo or redo:
        echo(_store_undo_or_redo_and_describe(memory, undo, redo, why))
        return
    resolved, all_facts, present_line = resolve_score_and_print_fact_notes(
        memory, now=now, as_of=as_of
    )
    fact_rows = _drop_repeats_and_filter_facts(all_facts, person=person, slot=slot)
    if fact_rows.is_empty():
        echo(_describe_lack_of_matching_facts(all_facts, person=person, slot=slot), err=True)
    if log:
        closings = _supersessions_with_sessions(resolved, fact_rows)
        closings = filter_by_session_and_date(
            closings, memory, session=session, since=since, time_column="at"
        )
        if json:
            _print_rows_as_json(closings, memory, evidence=evidence)
            return
        last_closings = add_evidence_texts_if_wanted(closings.tail(k), memory, is_wanted=evidence)
        _print_supersession_log(last_closings, closings.height, memory, resolved)
        return
    fact_rows = filter_by_session_and_date(
        fact_rows, memory, session=session, since=since, time_column="last_access"
    )
    shown_facts = fact_rows
    if not all_:
        holding = [*memlab.indexing.HELD, "upcoming"]
        shown_facts = fact_rows.filter(fact_rows["status"].is_in(holding))
    shown_facts = shown_facts.sort("last_access", descending=True, maintain_order=True)
    if json:
        columns = shown_facts.select(*_STATED_COLUMNS, *_RESOLVED_COLUMNS)
        _print_rows_as_json(columns, memory, evidence=evidence)
        return
    echo(present_line)
    count_line = count_noun(shown_facts.height, "facts")
    n_hidden = fact_rows.height - shown_facts.height
    if n_hidden:
        count_line += f"; {n_hidden:,} no longer hold: --all shows them"
    echo(count_line)
    printed_facts = add_evidence_texts_if_wanted(shown_facts.head(k), memory, is_wanted=evidence)
    for fact_row in printed_facts.iter_rows(named=True):
        dates = _describe_fact_dates(fact_row)
        marks = _describe_status_in_brackets(fact_row, with_end=True)
        _print_fact(f"{fact_row['confidence']:.2f}  {dates}{marks}", fact_row)
        print_evidence_texts(fact_row)
    _print_count_of_hidden_rows(shown_facts, k)


def _drop_repeats_and_filter_facts(
    fact_rows: pl.DataFrame, *, person: str | None, slot: str | None
) -> pl.DataFrame:
    """Leave out what only repeats, and what is not of a person or a slot that was named."""
    fact_rows = fact_rows.filter(fact_rows["status"] != "repeat")
    if person:
        subjects = fact_rows["about"].str.to_lowercase()
        fact_rows = fact_rows.filter(subjects.str.contains(person.lower(), literal=True))
    if slot:
        fact_rows = fact_rows.filter(fact_rows["slot"].str.to_lowercase() == slot.lower())
    return fact_rows


def _describe_lack_of_matching_facts(
    fact_rows: pl.DataFrame, *, person: str | None, slot: str | None
) -> str:
    """Say that no fact is of a person or a slot, and what most facts are of."""
    column = "slot"
    wanted = f"about {person!r} under {slot!r}"
    if slot is None or person is None:
        column = "slot" if person is None else "about"
        wanted = f"under {slot!r}" if person is None else f"about {person!r}"
    frequent_names = fact_rows[column].value_counts(sort=True)[column].head(_MOST_REASONS)
    named = escape_line(", ".join(frequent_names))
    return f"no fact is {escape_line(wanted)}; most are of: {named}"


def _print_rows_as_json(record_rows: pl.DataFrame, memory: OpenMemory, *, evidence: bool) -> None:
    """Print rows as JSON, an object a line, with the turns of their evidence where wanted."""
    rows_with_turns = add_evidence_texts_if_wanted(record_rows, memory, is_wanted=evidence)
    echo(rows_with_turns.write_ndjson(), nl=False)


def _print_count_of_hidden_rows(listed_rows: pl.DataFrame, k: int) -> None:
    """Say how many rows were not printed."""
    n_more = listed_rows.height - k
    if n_more > 0:
        echo(f"… and {n_more:,} more; --k prints them")


def _supersessions_with_sessions(resolved: Resolved, fact_rows: pl.DataFrame) -> pl.DataFrame:
    """Give the log of what closed some facts, with the ``session_id`` in which that was said."""
    session_of_closing = resolved.facts.select("session_id", new="fact_id")
    closed_facts = fact_rows.select(old="fact_id")
    closings = resolved.log.join(closed_facts, on="old", how="semi", maintain_order="left")
    return closings.join(session_of_closing, on="new", how="left", maintain_order="left")


_IS_OVER = ("superseded", "ended", "corrected")
_DATED_BY_KIND = {
    "state": ("", "since"),
    "rule": ("a rule, ", "a rule since"),
    "event": ("happened, ", "happened"),
    "plan": ("planned, ", "planned for"),
}
"""What is printed of a kind of fact without a date, and before its date."""


def _describe_fact_dates(fact_row: dict[str, Any]) -> str:
    """Say when a fact began, happened or is planned, as exactly as it was said."""
    undated, before_date = _DATED_BY_KIND[fact_row["kind"]]
    if fact_row["since"]:
        date_text = f"{before_date} {fact_row['since']}"
    elif fact_row["valid_from"] is None:
        date_text = f"{undated}without a date"
    elif fact_row["kind"] in ("event", "plan"):
        date_text = f"{undated}said {day_or_undated(fact_row['valid_from'])}"
    else:
        date_text = f"{before_date} {day_or_undated(fact_row['valid_from'])}"
    if fact_row["until"]:
        date_text += f" until {fact_row['until']}"
    if fact_row["n_reinforced"]:
        date_text += f", last said {day_or_undated(fact_row['last_access'])}"
    return date_text


def _describe_last_statement(fact_row: dict[str, Any]) -> str:
    """Say when a fact was said for the last time, from which its confidence decays."""
    last_time = fact_row["last_access"]
    if last_time is None:
        return "undated"
    return f"said {day_or_undated(last_time)}"


def _describe_other_dates(fact_row: dict[str, Any]) -> str:
    """Say when a fact was said first, and when it began or is planned, where these are other days
    than that on which it was last said.
    """
    last_day = day_or_undated(fact_row["last_access"])
    date_texts: list[str] = []
    if fact_row["asserted_at"] and day_or_undated(fact_row["asserted_at"]) != last_day:
        date_texts.append(f"first said {day_or_undated(fact_row['asserted_at'])}")
    if fact_row["since"] and fact_row["since"] != last_day:
        date_texts.append(f"{_DATED_BY_KIND[fact_row['kind']][1]} {fact_row['since']}")
    if fact_row["until"]:
        date_texts.append(f"until {fact_row['until']}")
    return ", ".join(date_texts)


def _format_fact_date(fact_row: dict[str, Any]) -> str:
    """Give the date of a fact as precisely as it was said, else the day of its statement."""
    stated_since: str | None = fact_row["since"]
    return stated_since or day_or_undated(fact_row["valid_from"])


def _describe_status_in_brackets(fact_row: dict[str, Any], *, with_end: bool = False) -> str:
    """Give in brackets what a reader has to know of a fact beside its sentence.

    :param with_end: say until when what is over held.
    """
    mark_texts: list[str] = []
    status = fact_row["status"]
    if status == "due":
        mark_texts.append(f"due {_format_fact_date(fact_row)}")
    elif status in _IS_OVER and with_end and fact_row["valid_to"]:
        mark_texts.append(f"{status} until {day_or_undated(fact_row['valid_to'])}")
    elif status != "active":
        mark_texts.append(status)
    if not fact_row["holds"]:
        mark_texts.append("denied")
    if fact_row["source"] == "reported":
        mark_texts.append("words of others")
    if not mark_texts:
        return ""
    return f"  [{', '.join(mark_texts)}]"


@register_command(GROUP, "recall 'where does Owen work?' --scope owen")
def recall(
    question: Question,
    *,
    k: opt.K = 10,
    sessions: Summaries = 0,
    all_: All = False,
    as_of: AsOf = None,
    now: Now = None,
    compare: Compare = None,
    memory_options: opt.MemoryOptions,
) -> None:
    """Find the facts that answer a question, by similarity, the graph and confidence."""
    from memlab.knowledge import search_facts
    from memlab.lookup import make_checked_question_frame

    memory = open_memory(memory_options)
    other_settings = None
    if compare is not None:
        other_settings = _read_settings_and_print_ignored_tables(compare)
    _, known_facts, present_line = resolve_score_and_print_fact_notes(memory, now=now, as_of=as_of)
    question_rows = make_checked_question_frame(question, memory.scope)
    summaries, entities = _summaries_and_entities_until(memory, as_of)

    def rank_facts(facts: pl.DataFrame, weights: RecallSettings, k: int) -> pl.DataFrame:
        return search_facts(
            question_rows,
            facts,
            encoder=memory.encoder,
            entities=entities,
            settings=weights,
            k=k,
            superseded=all_,
        )

    ranking = rank_facts(known_facts, memory.settings.recall, k)
    echo(present_line)
    _print_entities_of_question(ranking)
    if compare is None or other_settings is None:
        _print_ranked_facts(ranking, known_facts)
    else:
        other_memory = replace(memory, settings=other_settings)
        rescored_facts = rescore_facts(other_memory, known_facts, now=now or as_of)
        # The facts among the first k of either ranking may stand anywhere in the other.
        n_known = max(known_facts.height, 1)
        ranking_before = rank_facts(known_facts, memory.settings.recall, n_known)
        ranking_after = rank_facts(rescored_facts, other_settings.recall, n_known)
        _print_two_rankings_of_facts(ranking_before, ranking_after, known_facts, k, compare.name)
    if sessions and summaries.height:
        _print_most_similar_summaries(summaries, question_rows["text"], memory, sessions)


def _summaries_and_entities_until(
    memory: OpenMemory, as_of: str | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give the summaries and entities of the sessions that had ended on a day, or of all."""
    summaries = memory.knowledge_rows("summaries")
    entities = memory.knowledge_rows("entities")
    last_moment = parse_date_or_none(as_of, as_end_of_day=True)
    if last_moment is None:
        return summaries, entities
    sessions = memory.store.sessions(
        memory.dataset, scopes=[memory.scope], columns=["session_id", "end"]
    )
    ended_sessions = sessions.filter(sessions["end"] <= last_moment)
    summaries = summaries.join(ended_sessions, on="session_id", how="semi")
    entities = entities.join(ended_sessions, on="session_id", how="semi")
    return summaries, entities


def _print_entities_of_question(ranking: pl.DataFrame) -> None:
    """Say which entities of the graph the question of a ranking names."""
    if ranking.is_empty():
        return
    names = ", ".join(ranking["entities"][0].to_list())
    if names:
        echo(f"the question names: {escape_line(names)}")
    elif not ranking["graph"].max():
        echo("the question names nothing that the graph knows, so it says nothing")


def _print_most_similar_summaries(
    summaries: pl.DataFrame, question: pl.Series, memory: OpenMemory, n_shown: int
) -> None:
    """Print the summaries of sessions that are most similar to a question."""
    import polars as pl

    from memlab.knowledge.fact_search import clipped_cosines

    cosines = clipped_cosines(question, summaries["summary"], memory.encoder)[0]
    ranked = summaries.with_columns(score=pl.Series(cosines))
    ranked = ranked.sort("score", descending=True, maintain_order=True).head(n_shown)
    for rank, summary in enumerate(ranked.iter_rows(named=True), start=1):
        day = day_or_undated(summary["start"])
        session_id = escape_line(summary["session_id"])
        echo(f"{rank:>3}  {summary['score']:.3f}  {day}  {session_id}")
        print_wrapped(summary["summary"])


def _read_settings_and_print_ignored_tables(settings_file: Path) -> Settings:
    """Read the settings of a file; what it sets beside the two tables that are compared is said."""
    file_settings, table_names = memlab.config.settings_and_names_set_in_file(settings_file)
    memlab.knowledge.ConfidenceSettings.from_table(file_settings.confidence)
    other_tables = [
        table_name for table_name in table_names if table_name not in ("confidence", "recall")
    ]
    if other_tables:
        other_names = escape_line(", ".join(other_tables))
        echo(
            f"{settings_file}: [confidence] and [recall] are compared, not {other_names}", err=True
        )
    return file_settings


def _print_ranked_facts(ranking: pl.DataFrame, known_facts: pl.DataFrame) -> None:
    """Print ranked facts with what their scores are made of."""
    ranked_facts = ranking.join(
        known_facts, on="fact_id", how="left", suffix="_", maintain_order="left"
    )
    for fact_row in ranked_facts.iter_rows(named=True):
        score_parts = [
            f"{score_name} {fact_row[score_name]:.2f}"
            for score_name in ("vector", "graph", "confidence")
        ]
        head_columns = [
            f"{fact_row['rank']:>3}",
            f"{fact_row['score']:.3f}",
            *score_parts,
            _describe_last_statement(fact_row),
        ]
        _print_fact(
            "  ".join(head_columns) + _describe_status_in_brackets(fact_row),
            fact_row,
            with_dates=True,
        )


def _print_two_rankings_of_facts(
    ranking_before: pl.DataFrame,
    ranking_after: pl.DataFrame,
    known_facts: pl.DataFrame,
    k: int,
    file_name: str,
) -> None:
    """Print the first ``k`` facts of either ranking, with both ranks and confidences."""
    import polars as pl

    columns = ["fact_id", "rank", "confidence"]
    joined_rankings = ranking_before.select(columns).join(
        ranking_after.select(columns), on="fact_id", suffix="_after", maintain_order="left"
    )
    shown_facts = joined_rankings.filter((pl.col("rank") <= k) | (pl.col("rank_after") <= k))
    echo(f"rank and confidence by the settings in force → by {escape_line(file_name)}")
    details = known_facts.drop("confidence")
    for fact_row in shown_facts.join(details, on="fact_id", maintain_order="left").iter_rows(
        named=True
    ):
        rank_change = f"{fact_row['rank']:>3} → {fact_row['rank_after']:<3}"
        confidence_change = (
            f"confidence {fact_row['confidence']:.2f} → {fact_row['confidence_after']:.2f}"
        )
        date_and_status = _describe_last_statement(fact_row) + _describe_status_in_brackets(
            fact_row
        )
        head = f"{rank_change}  {confidence_change}  {date_and_status}"
        _print_fact(head, fact_row, with_dates=True)
    n_staying = shown_facts.filter((pl.col("rank") <= k) & (pl.col("rank_after") <= k)).height
    n_moved = shown_facts.filter(pl.col("rank") != pl.col("rank_after")).height
    n_first = min(k, joined_rankings.height)
    echo(
        f"{n_staying:,} of the first {n_first:,} are among them by both; "
        f"{n_moved:,} of {count_noun(shown_facts.height, 'facts')} change their rank"
    )


@register_command(GROUP, "list decisions --scope owen --evidence", name="list")
def list_(
    kind: Kind,
    *,
    session: Session = None,
    since: Since = None,
    evidence: Evidence = False,
    json: Json = False,
    k: opt.K = 50,
    memory_options: opt.MemoryOptions,
) -> None:
    """List what the index made of a memory's sessions, the latest first."""
    from memlab.knowledge.listing_the_index import KINDS, list_records

    memory = open_memory(memory_options)
    if kind not in KINDS:
        raise DataError(f"there is no list of {kind!r}; choose from {', '.join(KINDS)}")
    resolved = None
    if kind == "timeline":
        resolved = memory.resolved_facts()
    entities = memory.knowledge_rows("entities")
    if kind == "entities":  # of a session all that it names, also what a later one names too
        entities = filter_by_session_and_date(
            entities, memory, session=session, since=None, time_column="at"
        )
    tree_nodes = _tree_nodes_and_print_what_they_lack(memory, kind)
    all_records = list_records(
        kind,
        summaries=memory.knowledge_rows("summaries"),
        entities=entities,
        resolved=resolved,
        nodes=tree_nodes,
    )
    if all_records.is_empty() and (session is None or kind != "entities"):
        raise memory.missing_content_error(kind)
    shown_records = filter_by_session_and_date(
        all_records, memory, session=session, since=since, time_column="at"
    )
    if json:
        _print_rows_as_json(shown_records, memory, evidence=evidence)
        return
    echo(f"{count_noun(shown_records.height, kind)} of {escape_line(memory.scope)}")
    _print_why_sessions_lack_records(memory, session)
    previous_head = ""
    printed_records = add_evidence_texts_if_wanted(
        shown_records.head(k), memory, is_wanted=evidence
    )
    for record in printed_records.iter_rows(named=True):
        session_id = escape_line(record["session_id"] or "")
        head = f"{day_or_undated(record['at'])}  {session_id}"
        if head != previous_head:
            echo(head)
        previous_head = head
        text = record["text"]
        if kind == "timeline":
            text = f"{record['type']:13}{text}"
        print_wrapped(text)
        print_evidence_texts(record)
    _print_count_of_hidden_rows(shown_records, k)


def _print_why_sessions_lack_records(memory: OpenMemory, session: str | None) -> None:
    """Say of the first sessions that have no record why they have none."""
    states = memory.store.knowledge.session_states(memory.dataset).filter(scope=memory.scope)
    states = states.drop_nulls("reason")
    states = filter_by_session_and_date(
        states, memory, session=session, since=None, time_column="at"
    )
    reasons = states.select("session_id", "reason").head(_MOST_REASONS)
    for session_id, reason in reasons.iter_rows():
        echo(f"{escape_line(session_id)}: {shorten_line(reason)}")


def _tree_nodes_and_print_what_they_lack(memory: OpenMemory, list_kind: str) -> pl.DataFrame | None:
    """Give the rollups of a kind, and say what they lack; ``None`` for another kind.

    :raises DataError: when there are none.
    """
    from memlab.knowledge.listing_the_index import NODE_KINDS
    from memlab.summaries.stored_trees import rows_of_preferred_tree

    if list_kind not in NODE_KINDS:
        return None
    stored_nodes = memory.store.nodes.rows(memory.dataset, scopes=[memory.scope])
    tree_nodes = rows_of_preferred_tree(stored_nodes.filter(kind=NODE_KINDS[list_kind]))
    if tree_nodes.is_empty():
        grouping = "clusters" if list_kind == "clusters" else "weeks"
        rollup_command = _command_that_writes_tree(grouping, "UTC")
        raise memory.missing_content_error(
            list_kind, f"has no {list_kind} yet; {rollup_command} writes them"
        )
    rollup_command = _command_that_writes_tree(tree_nodes["over"][0], tree_nodes["tz"][0])
    n_stale = int(tree_nodes["stale"].sum())
    if n_stale:
        stale_count = count_noun(n_stale, list_kind)
        stale_line = f"{stale_count} lost sentences: messages of theirs are gone or changed"
        echo(f"{stale_line}; {rollup_command} writes them again", err=True)
    memory_turns = memory.store.turns(memory.dataset, scopes=[memory.scope], columns=["turn_id"])
    n_missing = int((~memory_turns["turn_id"].is_in(tree_nodes["turns"].explode().implode())).sum())
    if n_missing:
        missing_line = f"{count_noun(n_missing, 'messages')} of {escape_line(memory.scope)}"
        echo(f"{missing_line} stand in none of them; {rollup_command} writes what is new", err=True)
    return tree_nodes


def _command_that_writes_tree(grouping: str, time_zone: str) -> str:
    """Give the command that writes a tree like one that is stored."""
    command = "memlab rollup --tree"
    if grouping == "clusters":
        return f"{command} --over clusters"
    if time_zone != "UTC":
        command += f" --tz {time_zone}"
    return command


@register_command(GROUP, "rollup --scope owen --month 2026-03")
def rollup(
    *,
    week: Annotated[str | None, typer.Option(help="A day of the week, as 2026-03-02.")] = None,
    month: Annotated[str | None, typer.Option(help="As 2026-03.")] = None,
    tree: Whole = False,
    over: Over = "weeks",
    out: Page = None,
    tz: Annotated[str, typer.Option(help="Time zone of weeks, as Europe/Oslo.")] = "UTC",
    service: Writer = None,
    memory_options: opt.MemoryOptions,
) -> None:
    """Write what happened in a week, a month or all of a memory, and keep it.

    A model is asked only for what is new. A week or month is printed as Markdown. With --tree or
    --out it is written with all that stands below it.
    """
    from memlab import summaries
    from memlab.summaries import stored_trees
    from memlab.summaries.summary_rows import writer_name

    if out is not None and out.suffix not in (".html", ".md"):
        raise DataError(f"--out is {str(out)!r}; end it in .html or .md")
    period_kind, period_day = _parse_period_kind_or_empty_and_day(
        week, month, tree or out is not None, over
    )
    memory = open_memory(memory_options)
    is_whole_tree = period_kind == ""
    memory_data = memory.store.dataset(memory.dataset, scopes=[memory.scope])
    tree_encoder = None
    if is_whole_tree:
        tree_encoder = memory.encoder
    memory_bench = memlab.Bench.of(
        memory_data, encoder=tree_encoder, store=memory.store, ingest=False
    )
    tree_design = stored_trees.TreeDesign("weeks", tz=tz)
    if over == "clusters":
        tree_design = stored_trees.TreeDesign("clusters", seed=memory.settings.seed)
    tree_design = stored_trees.choose_service_of_design(
        memory_bench, tree_design, service, memory.settings.index.service
    )
    if is_whole_tree:
        tree_nodes = stored_trees.read_or_write_tree(memory_bench, tree_design).nodes
    else:
        tree_nodes = stored_trees.read_or_write_period(
            memory_bench, tree_design, period_kind, period_day
        )
    if tree_nodes.is_empty():
        raise DataError(
            f"{memory.scope!r} has too few messages for {over}: there is no summary to write"
        )
    if tree or out is not None:
        _write_or_print_tree(tree_nodes, memory_data.turns, tz, out)
    else:
        echo(summaries.to_markdown(tree_nodes.filter(kind=period_kind).row(0, named=True), tz=tz))
    writing_model = writer_name(tree_design.service)
    fallback_line = (
        "no model was asked: these are sentences of the conversation; --service NAME asks one"
    )
    if writing_model:
        fallback_line = summaries.fallback_note(tree_nodes, "summaries")
    if fallback_line:
        echo(fallback_line, err=True)


def _parse_period_kind_or_empty_and_day(
    week: str | None, month: str | None, whole_tree: bool, grouping: str
) -> tuple[str, date]:
    """Give the kind of period that was asked for and a day of it; of a whole tree an empty kind.

    :raises DataError: where none or several are named.
    """
    if grouping not in ("weeks", "clusters"):
        raise DataError(f"over is {grouping!r}; choose weeks or clusters")
    named_periods = [period_text for period_text in (week, month) if period_text is not None]
    if len(named_periods) > 1 or (not named_periods and not whole_tree):
        raise DataError("name one period: --week 2026-03-02, --month 2026-03, or --tree for all")
    if not named_periods:
        return "", date.min
    if grouping != "weeks":
        raise DataError("clusters lie across weeks and months: leave --week and --month out")
    kind = "week"
    first_moment = parse_date_or_none(week)
    if month is not None:
        kind = "month"
        first_moment = parse_date_or_none(f"{month}-01")
    assert first_moment is not None  # one of the two was given
    return kind, first_moment.date()


def _write_or_print_tree(
    nodes: pl.DataFrame, turns: pl.DataFrame, time_zone: str, page_path: Path | None
) -> None:
    """Write a tree to a file, as its ending says, or print it as Markdown."""
    from memlab.atomic_files import open_atomically
    from memlab.summaries.tree_pages import tree_html, tree_markdown

    if page_path is None:
        echo(tree_markdown(nodes, turns, tz=time_zone))
        return
    write_page = tree_html if page_path.suffix == ".html" else tree_markdown
    page_bytes = write_page(nodes, turns, tz=time_zone).encode("utf-8", "replace")
    with open_atomically(page_path) as page_file:
        page_file.write(page_bytes)
    echo(f"{count_noun(nodes.height, 'summaries')}: {page_path}")


def _store_undo_or_redo_and_describe(
    memory: OpenMemory,
    undo: tuple[str, str] | None,
    redo: tuple[str, str] | None,
    reason: str,
) -> str:
    """Write an undo, or take one back; one that is there stays, as after an interruption."""
    stored_knowledge = memory.store.knowledge
    old_fact, new_fact = undo or redo or ("", "")
    undone_pairs = stored_knowledge.undone_supersessions(memory.dataset, scopes=[memory.scope])
    is_undone = not undone_pairs.filter(old=old_fact, new=new_fact).is_empty()
    is_in_log = not memory.resolved_facts().log.filter(old=old_fact, new=new_fact).is_empty()
    if undo and not is_undone:
        if not is_in_log:
            raise DataError(
                f"the log has no row in which {new_fact!r} ends {old_fact!r}; give a pair of "
                "memlab facts --log"
            )
        stored_knowledge.undo_supersession(
            memory.dataset,
            memory.scope,
            old_fact,
            new_fact,
            at=datetime.now(UTC),
            reason=reason,
        )
    elif redo and not is_undone and not is_in_log:
        raise DataError(
            f"that {new_fact!r} ends {old_fact!r} was not undone; memlab facts --log lists what was"
        )
    elif redo:
        stored_knowledge.redo_supersession(memory.dataset, memory.scope, old_fact, new_fact)
    return escape_line(
        f"that {new_fact} ends {old_fact} {'no longer counts' if undo else 'counts again'}"
    )


def _print_fact(line_head: str, fact_row: dict[str, Any], *, with_dates: bool = False) -> None:
    """Print a fact: its head, its sentence, its slot where that says more, and its evidence.

    :param with_dates: also the dates that a head does not have which only says when it was last
        said.
    """
    n_heard = fact_row["n_reinforced"] + 1
    if n_heard > 1:
        line_head += f"  heard {n_heard} times"
    echo(line_head)
    print_wrapped(fact_row["sentence"])
    subject = fact_row["about"]
    slot_name = fact_row["slot"]
    slot_value = fact_row["value"]
    if fact_row["sentence"] != f"{subject} {slot_name} {slot_value}":
        print_wrapped(f"{subject}, {slot_name}: {slot_value}")
    if with_dates and _describe_other_dates(fact_row):
        print_wrapped(_describe_other_dates(fact_row))
    print_wrapped(_describe_fact_evidence(fact_row))


def _describe_fact_evidence(fact_row: dict[str, Any]) -> str:
    """Give the id of a fact, and the messages that it stands on beside the one in its id."""
    fact_id = fact_row["fact_id"]
    evidence_ids = fact_row["evidence"]
    if not evidence_ids:
        return f"{fact_id}: no evidence"
    other_ids = [turn_id for turn_id in evidence_ids if not fact_id.startswith(f"{turn_id}/")]
    if not other_ids:
        return str(fact_id)
    joined_ids = ", ".join(other_ids)
    if len(other_ids) < len(evidence_ids):
        return f"{fact_id}, and {joined_ids}"
    return f"{fact_id}: {joined_ids}"


def _print_supersession_log(
    log_rows: pl.DataFrame, n_total: int, memory: OpenMemory, resolved: Resolved
) -> None:
    """Print the rows of a log, of so many in total, and what of it was undone."""
    from memlab.knowledge.fact_search import write_fact_sentences_or_statements

    sentences = write_fact_sentences_or_statements(resolved.facts)
    text_by_fact = dict(zip(resolved.facts["fact_id"], sentences, strict=True))
    for log_row in log_rows.iter_rows(named=True):
        said_by = escape_line(log_row["by"] or "nobody named")
        echo(f"{day_or_undated(log_row['at'])}  {log_row['rule']}, said by {said_by}")
        value_change = f"{log_row['old_value']} → {log_row['new_value']}"
        print_wrapped(f"{log_row['about']}, {log_row['slot']}: {value_change}")
        for side in ("old", "new"):
            print_wrapped(f"{side}: {text_by_fact[log_row[side]]}  ({log_row[side]})", indent=11)
        echo(f"      evidence: {escape_line(', '.join(log_row['evidence']) or 'none')}")
        print_evidence_texts(log_row)
    undone_rows = memory.store.knowledge.undone_supersessions(memory.dataset, scopes=[memory.scope])
    for log_row in undone_rows.iter_rows(named=True):
        reason_note = ""
        if log_row["why"]:
            reason_note = f": {shorten_line(log_row['why'])}"
        undone_pair = escape_line(f"{log_row['new']} ends {log_row['old']}")
        echo(f"undone on {day_or_undated(log_row['undone_at'])}: {undone_pair}{reason_note}")
    shown_note = ""
    if log_rows.height < n_total:
        shown_note = f", the last {log_rows.height:,} are shown"
    echo(f"{count_noun(n_total, 'supersessions')}, {undone_rows.height:,} undone{shown_note}")
