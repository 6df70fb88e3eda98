"""Verbs that ask one memory of the store: search, facts, recall, lists, and rollups of a time."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import memlab
from memlab.cli import _options as opt
from memlab.cli._memory import (
    OpenMemory,
    add_turn_texts,
    day_or_undated,
    filter_rows,
    open_memory,
    print_turns,
    print_wrapped,
    read_date,
    score_again,
    scored_facts,
)
from memlab.cli._options import echo, register_command
from memlab.errors import DataError
from memlab.terminal import count_noun, escape_line, shorten_line

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
    pipeline: Annotated[str, typer.Option(help="The pipeline.")] = "best",
    level: Annotated[str, typer.Option(help="turn or session.")] = "turn",
    k: opt.K = 10,
    history: History = None,
    service: Rewriter = "recorded",
    dataset: opt.DatasetName = None,
    scope: opt.Scope = None,
    store: opt.Store = None,
    encoder: opt.EncoderName = None,
) -> None:
    """Search one memory of the store, or all of a dataset where --scope names none."""
    from memlab import lookup

    place = open_memory(dataset, scope, store, encoder, joined=True)
    stages = memlab.pipeline(pipeline)
    if history is not None:
        said = memlab.conversation.read_history(history)
        query = memlab.conversation.rewrite(query, history=said, service=service)
        echo(f"searched for: {query}", err=True)
    asked = lookup.question_frame(query, place.scope)
    if level not in memlab.records.LEVELS:
        raise DataError(f"level is {level!r}; choose turn or session")
    bench = lookup.question_bench(
        place.store,
        place.dataset,
        asked,
        encoder=place.encoder,
        language=place.chosen.language,
    )
    size = place.store.search.size(place.dataset, place.scope)
    if bench.turns.height < size:
        echo(f"compared with {bench.turns.height:,} candidates of {size:,} turns", err=True)
    found = lookup.hit_rows(stages.run(bench, level=level).top(k), bench)
    if found.is_empty():
        where = escape_line(place.scope or place.dataset)
        echo(f"no {level} of {where} matches {shorten_line(query)!r}")
    for row in found.iter_rows(named=True):
        where = escape_line(row["turn_id"] or row["session_id"])
        echo(f"{row['rank']:>3}  {row['score']:.4f}  {day_or_undated(row['time'])}  {where}")
        text = row["text"]
        if row["speaker"]:
            text = f"{row['speaker']}: {text}"
        echo(f"     {shorten_line(text)}")
    if found.height and not lookup.has_word_match(bench):
        echo("nothing shares a word with the question: these are the nearest by meaning")


@register_command(GROUP, "facts --scope owen --person owen --evidence")
def facts(
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
    dataset: opt.DatasetName = None,
    scope: opt.Scope = None,
    store: opt.Store = None,
    encoder: opt.EncoderName = None,
) -> None:
    """List what a memory holds to be true, what was heard last first, and how sure it is."""
    place = open_memory(dataset, scope, store, encoder)
    if undo or redo:
        echo(_write_undo(place, undo, redo, why))
        return
    resolved, rows, present = scored_facts(place, now=now, as_of=as_of)
    rows = rows.filter(rows["status"] != "repeat")
    if person:
        names = rows["about"].str.to_lowercase()
        rows = rows.filter(names.str.contains(person.lower(), literal=True))
    if slot:
        rows = rows.filter(rows["slot"].str.to_lowercase() == slot.lower())
    if log:
        closings = _log_with_sessions(resolved, rows)
        closings = filter_rows(closings, place, session=session, since=since, at="at")
        if json:
            echo(add_turn_texts(closings, place, wanted=evidence).write_ndjson(), nl=False)
            return
        shown = add_turn_texts(closings.tail(k), place, wanted=evidence)
        _print_log(shown, closings.height, place, resolved)
        return
    rows = filter_rows(rows, place, session=session, since=since, at="last_access")
    shown = rows
    if not all_:
        shown = rows.filter(rows["status"].is_in([*memlab.indexing.HELD, "upcoming"]))
    shown = shown.sort("last_access", descending=True, maintain_order=True)
    if json:
        columns = shown.select(*_STATED_COLUMNS, *_RESOLVED_COLUMNS)
        echo(add_turn_texts(columns, place, wanted=evidence).write_ndjson(), nl=False)
        return
    echo(present)
    counted = count_noun(shown.height, "facts")
    if rows.height > shown.height:
        counted += f"; {rows.height - shown.height:,} no longer hold: --all shows them"
    echo(counted)
    for row in add_turn_texts(shown.head(k), place, wanted=evidence).iter_rows(named=True):
        head = f"{row['confidence']:.2f}  {_dates(row)}{_marks(row, with_end=True)}"
        _print_fact(head, row)
        print_turns(row)
    if shown.height > k:
        echo(f"… and {shown.height - k:,} more; --k prints them")


def _log_with_sessions(resolved: Resolved, rows: pl.DataFrame) -> pl.DataFrame:
    """Give the log of what closed some facts, with the ``session_id`` in which that was said."""
    said_in = resolved.facts.select("session_id", new="fact_id")
    old = rows.select(old="fact_id")
    closings = resolved.log.join(old, on="old", how="semi", maintain_order="left")
    return closings.join(said_in, on="new", how="left", maintain_order="left")


_IS_OVER = ("superseded", "ended", "corrected")
_DATED_BY_KIND = {
    "state": ("", "since"),
    "rule": ("a rule, ", "a rule since"),
    "event": ("happened, ", "happened"),
    "plan": ("planned, ", "planned for"),
}
"""What is printed of a kind of fact without a date, and before its date."""


def _dates(row: dict[str, Any]) -> str:
    """Say when a fact began, happened or is planned, as exactly as it was said."""
    undated, before_date = _DATED_BY_KIND[row["kind"]]
    if row["since"]:
        text = f"{before_date} {row['since']}"
    elif row["valid_from"] is None:
        text = f"{undated}without a date"
    elif row["kind"] in ("event", "plan"):
        text = f"{undated}said {day_or_undated(row['valid_from'])}"
    else:
        text = f"{before_date} {day_or_undated(row['valid_from'])}"
    if row["until"]:
        text += f" until {row['until']}"
    if row["n_reinforced"]:
        text += f", last said {day_or_undated(row['last_access'])}"
    return text


def _day_of(row: dict[str, Any]) -> str:
    """Give the date of a fact as precisely as it was said, else the day of its statement."""
    since: str | None = row["since"]
    return since or day_or_undated(row["valid_from"])


def _marks(row: dict[str, Any], *, with_end: bool = False) -> str:
    """Give in brackets what a reader has to know of a fact beside its sentence.

    :param with_end: say until when what is over held.
    """
    marks: list[str] = []
    status = row["status"]
    if status == "due":
        marks.append(f"due {_day_of(row)}")
    elif status in _IS_OVER and with_end and row["valid_to"]:
        marks.append(f"{status} until {day_or_undated(row['valid_to'])}")
    elif status != "active":
        marks.append(status)
    if not row["holds"]:
        marks.append("denied")
    if row["source"] == "reported":
        marks.append("words of others")
    if not marks:
        return ""
    return f"  [{', '.join(marks)}]"


@register_command(GROUP, "recall 'where does Owen work?' --scope owen")
def recall(
    question: Question,
    k: opt.K = 10,
    sessions: Summaries = 0,
    all_: All = False,
    as_of: AsOf = None,
    now: Now = None,
    compare: Compare = None,
    dataset: opt.DatasetName = None,
    scope: opt.Scope = None,
    store: opt.Store = None,
    encoder: opt.EncoderName = None,
) -> None:
    """Find the facts that answer a question, by similarity, the graph and confidence."""
    import polars as pl

    from memlab.knowledge import search_facts
    from memlab.knowledge.fact_search import similarities
    from memlab.lookup import question_frame

    place = open_memory(dataset, scope, store, encoder)
    others = None
    if compare is not None:
        others = _settings_to_compare(compare)
    _, known, present = scored_facts(place, now=now, as_of=as_of)
    asked = question_frame(question, place.scope)
    summaries = place.rows("summaries")
    entities = place.rows("entities")
    until = read_date(as_of, end=True)
    if until is not None:
        columns = ["session_id", "end"]
        ended = place.store.sessions(place.dataset, scopes=[place.scope], columns=columns)
        ended = ended.filter(ended["end"] <= until)
        summaries = summaries.join(ended, on="session_id", how="semi")
        entities = entities.join(ended, on="session_id", how="semi")

    def rank_facts(facts: pl.DataFrame, weights: RecallSettings, k: int) -> pl.DataFrame:
        return search_facts(
            asked,
            facts,
            encoder=place.encoder,
            entities=entities,
            settings=weights,
            k=k,
            superseded=all_,
        )

    ranking = rank_facts(known, place.chosen.recall, k)
    echo(present)
    if ranking.height:
        names = ", ".join(ranking["entities"][0].to_list())
        if names:
            echo(f"the question names: {escape_line(names)}")
        elif not ranking["graph"].max():
            echo("the question names nothing that the graph knows, so it says nothing")
    if compare is None or others is None:
        _print_ranking(ranking, known)
    else:
        rescored = score_again(replace(place, chosen=others), known, now=now or as_of)
        whole = max(known.height, 1)
        before = rank_facts(known, place.chosen.recall, whole)
        after = rank_facts(rescored, others.recall, whole)
        _print_side_by_side(before, after, known, k, compare.name)
    if sessions and summaries.height:
        cosines = pl.Series(similarities(asked["text"], summaries["summary"], place.encoder)[0])
        ranked = summaries.with_columns(score=cosines)
        ranked = ranked.sort("score", descending=True, maintain_order=True)
        for rank, row in enumerate(ranked.head(sessions).iter_rows(named=True), start=1):
            day = day_or_undated(row["start"])
            echo(f"{rank:>3}  {row['score']:.3f}  {day}  {escape_line(row['session_id'])}")
            print_wrapped(row["summary"])


def _settings_to_compare(file: Path) -> Settings:
    """Read the settings of a file; what it sets beside the two tables that are compared is said."""
    settings, named = memlab.config.settings_of_file(file)
    memlab.knowledge.ConfidenceSettings.from_table(settings.confidence)
    beside = [name for name in named if name not in ("confidence", "recall")]
    if beside:
        names = escape_line(", ".join(beside))
        echo(f"{file}: [confidence] and [recall] are compared, not {names}", err=True)
    return settings


def _print_ranking(ranking: pl.DataFrame, known: pl.DataFrame) -> None:
    """Print ranked facts with what their scores are made of."""
    found = ranking.join(known, on="fact_id", how="left", suffix="_", maintain_order="left")
    for row in found.iter_rows(named=True):
        parts = [f"{name} {row[name]:.2f}" for name in ("vector", "graph", "confidence")]
        head = [f"{row['rank']:>3}", f"{row['score']:.3f}", *parts, _day_of(row)]
        _print_fact("  ".join(head) + _marks(row), row)


def _print_side_by_side(
    before: pl.DataFrame, after: pl.DataFrame, known: pl.DataFrame, k: int, name: str
) -> None:
    """Print the facts that are among the first ``k`` of either ranking, with both ranks and confidences."""
    import polars as pl

    columns = ["fact_id", "rank", "confidence"]
    both = before.select(columns).join(
        after.select(columns), on="fact_id", suffix="_after", maintain_order="left"
    )
    shown = both.filter((pl.col("rank") <= k) | (pl.col("rank_after") <= k))
    echo(f"rank and confidence by the settings in force → by {escape_line(name)}")
    details = known.drop("confidence")
    for row in shown.join(details, on="fact_id", maintain_order="left").iter_rows(named=True):
        ranks = f"{row['rank']:>3} → {row['rank_after']:<3}"
        sure = f"confidence {row['confidence']:.2f} → {row['confidence_after']:.2f}"
        _print_fact(f"{ranks}  {sure}  {_day_of(row)}{_marks(row)}", row)
    stay = shown.filter((pl.col("rank") <= k) & (pl.col("rank_after") <= k)).height
    moved = shown.filter(pl.col("rank") != pl.col("rank_after")).height
    first = min(k, both.height)
    echo(
        f"{stay:,} of the first {first:,} are among them by both; "
        f"{moved:,} of {count_noun(shown.height, 'facts')} change their rank"
    )


@register_command(GROUP, "list decisions --scope owen --evidence", name="list")
def list_(
    kind: Kind,
    session: Session = None,
    since: Since = None,
    evidence: Evidence = False,
    json: Json = False,
    k: opt.K = 50,
    dataset: opt.DatasetName = None,
    scope: opt.Scope = None,
    store: opt.Store = None,
    encoder: opt.EncoderName = None,
) -> None:
    """List what the index made of a memory's sessions, the latest first."""
    from memlab.knowledge.index_lists import KINDS, list_records

    place = open_memory(dataset, scope, store, encoder)
    if kind not in KINDS:
        raise DataError(f"there is no list of {kind!r}; choose from {', '.join(KINDS)}")
    resolved = place.resolved() if kind == "timeline" else None
    entities = place.rows("entities")
    if kind == "entities":  # of a session all that it names, also what a later one names too
        entities = filter_rows(entities, place, session=session, since=None, at="at")
    nodes = _listed_nodes(place, kind)
    every = list_records(
        kind,
        summaries=place.rows("summaries"),
        entities=entities,
        resolved=resolved,
        nodes=nodes,
    )
    if every.is_empty() and (session is None or kind != "entities"):
        raise place.nothing(kind)
    rows = filter_rows(every, place, session=session, since=since, at="at")
    if json:
        echo(add_turn_texts(rows, place, wanted=evidence).write_ndjson(), nl=False)
        return
    echo(f"{count_noun(rows.height, kind)} of {escape_line(place.scope)}")
    states = (
        place.store.knowledge.states(place.dataset).filter(scope=place.scope).drop_nulls("reason")
    )
    states = filter_rows(states, place, session=session, since=None, at="at")
    for skipped, reason in states.select("session_id", "reason").head(_MOST_REASONS).iter_rows():
        echo(f"{escape_line(skipped)}: {shorten_line(reason)}")
    above = ""
    for row in add_turn_texts(rows.head(k), place, wanted=evidence).iter_rows(named=True):
        head = f"{day_or_undated(row['at'])}  {escape_line(row['session_id'] or '')}"
        if head != above:
            echo(head)
        above = head
        print_wrapped(f"{row['type']:13}{row['text']}" if kind == "timeline" else row["text"])
        print_turns(row)
    if rows.height > k:
        echo(f"… and {rows.height - k:,} more; --k prints them")


def _listed_nodes(place: OpenMemory, kind: str) -> pl.DataFrame | None:
    """Give the rollups of a kind, and say what they lack; ``None`` for another kind.

    :raises DataError: when there are none.
    """
    from memlab.knowledge.index_lists import NODE_KINDS
    from memlab.summaries.stored_trees import preferred_tree

    if kind not in NODE_KINDS:
        return None
    stored = place.store.nodes.rows(place.dataset, scopes=[place.scope])
    nodes = preferred_tree(stored.filter(kind=NODE_KINDS[kind]))
    if nodes.is_empty():
        over = "clusters" if kind == "clusters" else "weeks"
        command = _rollup_command(over, "UTC")
        raise place.nothing(kind, f"has no {kind} yet; {command} writes them")
    command = _rollup_command(nodes["over"][0], nodes["tz"][0])
    n_stale = int(nodes["stale"].sum())
    if n_stale:
        cut = f"{count_noun(n_stale, kind)} lost sentences: messages of theirs are gone or changed"
        echo(f"{cut}; {command} writes them again", err=True)
    turns = place.store.turns(place.dataset, scopes=[place.scope], columns=["turn_id"])
    n_missing = int((~turns["turn_id"].is_in(nodes["turns"].explode().implode())).sum())
    if n_missing:
        missing = f"{count_noun(n_missing, 'messages')} of {escape_line(place.scope)}"
        echo(f"{missing} stand in none of them; {command} writes what is new", err=True)
    return nodes


def _rollup_command(over: str, tz: str) -> str:
    """Give the command that writes a tree like one that is stored."""
    command = "memlab rollup --tree"
    if over == "clusters":
        return f"{command} --over clusters"
    if tz != "UTC":
        command += f" --tz {tz}"
    return command


@register_command(GROUP, "rollup --scope owen --month 2026-03")
def rollup(
    week: Annotated[str | None, typer.Option(help="A day of the week, as 2026-03-02.")] = None,
    month: Annotated[str | None, typer.Option(help="As 2026-03.")] = None,
    tree: Whole = False,
    over: Over = "weeks",
    out: Page = None,
    tz: Annotated[str, typer.Option(help="Time zone of weeks, as Europe/Oslo.")] = "UTC",
    service: Writer = None,
    dataset: opt.DatasetName = None,
    scope: opt.Scope = None,
    store: opt.Store = None,
    encoder: opt.EncoderName = None,
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
    kind, day = _asked_period(week, month, tree or out is not None, over)
    place = open_memory(dataset, scope, store, encoder)
    whole = kind == ""
    data = place.store.dataset(place.dataset, scopes=[place.scope])
    model = place.encoder if whole else None
    bench = memlab.Bench.of(data, encoder=model, store=place.store, ingest=False)
    design = stored_trees.TreeDesign("weeks", tz=tz)
    if over == "clusters":
        design = stored_trees.TreeDesign("clusters", seed=place.chosen.seed)
    design = stored_trees.choose_design(bench, design, service, place.chosen.index.service)
    if whole:
        nodes = stored_trees.read_or_write_tree(bench, design).nodes
    else:
        nodes = stored_trees.read_or_write_period(bench, design, kind, day)
    if nodes.is_empty():
        raise DataError(
            f"{place.scope!r} has too few messages for {over}: there is no summary to write"
        )
    if tree or out is not None:
        _write_tree(nodes, data.turns, tz, out)
    else:
        echo(summaries.to_markdown(nodes.filter(kind=kind).row(0, named=True), tz=tz))
    by = writer_name(design.service)
    line = "no model was asked: these are sentences of the conversation; --service NAME asks one"
    if by:
        line = summaries.fallback_note(nodes, "summaries")
    if line:
        echo(line, err=True)


def _asked_period(week: str | None, month: str | None, tree: bool, over: str) -> tuple[str, date]:
    """Give the kind of period that was asked for and a day of it; of a whole tree an empty kind.

    :raises DataError: where none or several are named.
    """
    if over not in ("weeks", "clusters"):
        raise DataError(f"over is {over!r}; choose weeks or clusters")
    named = [text for text in (week, month) if text is not None]
    if len(named) > 1 or (not named and not tree):
        raise DataError("name one period: --week 2026-03-02, --month 2026-03, or --tree for all")
    if not named:
        return "", date.min
    if over != "weeks":
        raise DataError("clusters lie across weeks and months: leave --week and --month out")
    start = read_date(week) if month is None else read_date(f"{month}-01")
    assert start is not None  # one of the two was given
    return ("week" if month is None else "month"), start.date()


def _write_tree(nodes: pl.DataFrame, turns: pl.DataFrame, tz: str, out: Path | None) -> None:
    """Write a tree to a file, as its ending says, or print it as Markdown."""
    from memlab.files import open_atomically
    from memlab.summaries.tree_pages import tree_html, tree_markdown

    if out is None:
        echo(tree_markdown(nodes, turns, tz=tz))
        return
    write = tree_html if out.suffix == ".html" else tree_markdown
    page = write(nodes, turns, tz=tz).encode("utf-8", "replace")
    with open_atomically(out) as file:
        file.write(page)
    echo(f"{count_noun(nodes.height, 'summaries')}: {out}")


def _write_undo(
    place: OpenMemory, undo: tuple[str, str] | None, redo: tuple[str, str] | None, why: str
) -> str:
    """Write an undo, or take one back; one that is there, as after an interruption, stays as it is."""
    noted = place.store.knowledge
    old, new = undo or redo or ("", "")
    undone = noted.undone(place.dataset, scopes=[place.scope])
    is_undone = not undone.filter(old=old, new=new).is_empty()
    counts = not place.resolved().log.filter(old=old, new=new).is_empty()
    if undo and not is_undone:
        if not counts:
            raise DataError(
                f"the log has no row in which {new!r} ends {old!r}; give a pair of "
                "memlab facts --log"
            )
        noted.undo(place.dataset, place.scope, old, new, at=datetime.now(UTC), why=why)
    elif redo and not is_undone and not counts:
        raise DataError(
            f"that {new!r} ends {old!r} was not undone; memlab facts --log lists what was"
        )
    elif redo:
        noted.redo(place.dataset, place.scope, old, new)
    return escape_line(f"that {new} ends {old} {'no longer counts' if undo else 'counts again'}")


def _print_fact(head: str, row: dict[str, Any]) -> None:
    n_heard = row["n_reinforced"] + 1
    echo(f"{head}  heard {n_heard} times" if n_heard > 1 else head)
    print_wrapped(row["sentence"])
    about, slot, value = row["about"], row["slot"], row["value"]
    if row["sentence"] != f"{about} {slot} {value}":
        print_wrapped(f"{about}, {slot}: {value}")
    evidence = ", ".join(row["evidence"]) or "no evidence"
    echo(f"      {escape_line(row['fact_id'])}: {escape_line(evidence)}")


def _print_log(rows: pl.DataFrame, total: int, place: OpenMemory, resolved: Resolved) -> None:
    """Print the rows of a log, of so many in total, and what of it was undone."""
    from memlab.knowledge.fact_search import fact_sentences

    sentences = fact_sentences(resolved.facts)
    texts = dict(zip(resolved.facts["fact_id"], sentences, strict=True))
    for row in rows.iter_rows(named=True):
        said_by = escape_line(row["by"] or "nobody named")
        echo(f"{day_or_undated(row['at'])}  {row['rule']}, said by {said_by}")
        values = f"{row['old_value']} → {row['new_value']}"
        print_wrapped(f"{row['about']}, {row['slot']}: {values}")
        for which in ("old", "new"):
            print_wrapped(f"{which}: {texts[row[which]]}  ({row[which]})", indent=11)
        echo(f"      evidence: {escape_line(', '.join(row['evidence']) or 'none')}")
        print_turns(row)
    undone = place.store.knowledge.undone(place.dataset, scopes=[place.scope])
    for row in undone.iter_rows(named=True):
        reason = f": {shorten_line(row['why'])}" if row["why"] else ""
        pair = escape_line(f"{row['new']} ends {row['old']}")
        echo(f"undone on {day_or_undated(row['undone_at'])}: {pair}{reason}")
    last = f", the last {rows.height:,} are shown" if rows.height < total else ""
    echo(f"{count_noun(total, 'supersessions')}, {undone.height:,} undone{last}")
