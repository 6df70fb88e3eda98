"""The verb that lists what the index made of sessions, and the output that the verbs about knowledge share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from memlab.cli._memory import Place, day, memory_verb, print_wrapped, read_date
from memlab.cli._options import MOST
from memlab.errors import DataError
from memlab.terminal import one_line, short

if TYPE_CHECKING:
    import polars as pl

Session = Annotated[str | None, typer.Option(help="Only of this session: its id, or what follows the scope in it.")]
Since = Annotated[str | None, typer.Option(help="From this day on.")]
Evidence = Annotated[bool, typer.Option("--evidence", help="With the turns that each stands on.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON, an object a line; all of them, whatever --most says.")]
Most = Annotated[int, typer.Option(help="How many are printed.", min=1, max=MOST)]
_TURNS, _REASONS = 6, 8


@memory_verb
def list_(
    place: Place,
    kind: Annotated[
        str, typer.Argument(help="summaries, topics, decisions, actions, questions, entities or timeline.")
    ],
    session: Session = None,
    since: Since = None,
    evidence: Evidence = False,
    json: Json = False,
    most: Most = 50,
) -> None:
    """List what the index made of a memory's sessions, the latest first."""
    from memlab.indexing import empty_reason
    from memlab.knowledge.listing import KINDS, list_records

    if kind not in KINDS:
        raise DataError(f"there is no list of {kind!r}; choose from {', '.join(KINDS)}")
    resolved = place.resolved() if kind == "timeline" else None
    every = list_records(kind, summaries=place.rows("summaries"), entities=place.rows("entities"), resolved=resolved)
    if every.is_empty():
        raise DataError(
            f"no {kind}: {place.scope!r} of {place.dataset!r} {empty_reason(place.store, place.dataset, place.scope)}"
        )
    rows = chosen(every, place, session=session, since=since)
    written = evidence_of(place, rows if json else rows.head(most), wanted=evidence)
    if json:
        print_json(rows, written)
        return
    typer.echo(f"{rows.height:,} {kind} of {one_line(place.scope)}")
    states = place.store.knowledge.states(place.dataset).filter(scope=place.scope).drop_nulls("reason")
    if session is not None:
        states = states.filter(states["session_id"].is_in([session, f"{place.scope}/{session}"]))
    for skipped, reason in states.select("session_id", "reason").head(_REASONS).iter_rows():
        typer.echo(f"{one_line(skipped)}: {short(reason)}")
    above = ""
    for row in rows.head(most).iter_rows(named=True):
        head = f"{day(row['at'])}  {one_line(row['session_id'] or '')}"
        if head != above:
            typer.echo(head)
        above = head
        print_wrapped(f"{row['type']:13}{row['text']}" if kind == "timeline" else row["text"], indent=6, first=6)
        print_turns(written(row["evidence"]))
    if rows.height > most:
        typer.echo(f"… and {rows.height - most:,} more; --most prints them")


def chosen(rows: pl.DataFrame, place: Place, *, session: str | None, since: str | None, at: str = "at") -> pl.DataFrame:
    """Keep the rows of a session, and those from a day on; what has no time is then left out.

    :raises DataError: for a session that the memory does not have, or what is no date.
    """
    import polars as pl

    start = read_date(since)
    if start is not None:
        rows = rows.filter(pl.col(at) >= start)
    if session is not None:
        there = place.store.sessions(place.dataset, scopes=[place.scope], columns=["session_id"])["session_id"]
        wanted = next((each for each in (session, f"{place.scope}/{session}") if each in there), None)
        if wanted is None:
            raise DataError(f"{place.scope!r} has no session {session!r}; it has {', '.join(there.head(5))} …")
        rows = rows.filter(pl.col("session_id") == wanted)
    return rows


def evidence_of(place: Place, rows: pl.DataFrame, *, wanted: bool) -> Callable[[list[str]], list[str]]:
    """Give what writes the turns of some ids out, ``ID (speaker): text`` a line; nothing where that is not wanted."""
    import polars as pl

    turns: dict[str, str] = {}
    if wanted and rows.height:
        ids = rows.select(pl.col("evidence").explode().drop_nulls().unique())
        stored = place.store.turns(place.dataset, scopes=[place.scope], columns=["turn_id", "speaker", "text"])
        its = stored.join(ids, left_on="turn_id", right_on="evidence", how="semi")
        turns = {turn: f"{turn} ({speaker}): {text}" for turn, speaker, text in its.iter_rows()}
    return lambda ids: [turns.get(each, f"{each}: no such turn") for each in ids] if wanted else []


def print_json(rows: pl.DataFrame, written: Callable[[list[str]], list[str]]) -> None:
    """Print rows as JSON, an object a line, with the texts of their turns where these are wanted."""
    import polars as pl

    told = [written(ids) for ids in rows["evidence"].to_list()]
    if any(told):
        rows = rows.with_columns(turns=pl.Series(told, dtype=pl.List(pl.String)))
    typer.echo(rows.write_ndjson(), nl=False)


def print_turns(turns: list[str]) -> None:
    """Print the first turns of an evidence, and how many more there are."""
    for turn in turns[:_TURNS]:
        print_wrapped(turn, indent=10, first=8)
    if len(turns) > _TURNS:
        typer.echo(f"        … and {len(turns) - _TURNS:,} more; --json has all")
