"""Verbs that list what the index made of sessions, one kind each: summaries, topics, decisions, entities …"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from memlab.cli._memory import Place, day, memory_verb, print_wrapped, read_date
from memlab.errors import DataError
from memlab.terminal import one_line

if TYPE_CHECKING:
    import polars as pl

Session = Annotated[str | None, typer.Option(help="Only of this session: its id, or what follows the scope in it.")]
Since = Annotated[str | None, typer.Option(help="From this day on.")]
Evidence = Annotated[bool, typer.Option("--evidence", help="With the turns that each stands on.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON, an object a line; all of them, whatever --most says.")]
Most = Annotated[int, typer.Option(help="How many are printed.", min=1)]
_TURNS = 6


class Kind(NamedTuple):
    """What a verb lists: of summaries the column with its texts, and that with the turns of each."""

    help: str
    texts: str | None = None
    evidence: str | None = None


KINDS = {
    "summaries": Kind("List the summaries of sessions, the latest first.", "summary", "evidence"),
    "topics": Kind("List what each session was about, the latest first.", "topics"),
    "decisions": Kind("List what was decided, the latest first.", "decisions", "decision_evidence"),
    "actions": Kind("List what somebody was to do, the latest first.", "action_items", "action_item_evidence"),
    "questions": Kind(
        "List what was asked and not answered, the latest first.", "open_questions", "open_question_evidence"
    ),
    "entities": Kind("List who and what came up: type, sessions, first and last day, the latest first."),
}


def listed(place: Place, kind: str) -> pl.DataFrame:
    """Read everything of a kind: ``at``, ``session_id``, ``text`` and ``evidence``, the latest first.

    Entities, which many sessions may name, have ``name``, ``type``, ``since`` and ``sessions`` too.
    """
    import polars as pl

    texts, evidence = KINDS[kind].texts, KINDS[kind].evidence
    if texts is None:
        rows = _entities(place)
    else:
        rows = place.rows("summaries")
        none = pl.lit([], pl.List(pl.String))
        turns = pl.col(evidence) if evidence else none
        columns = {"at": pl.col("start"), "text": pl.col(texts), "evidence": turns}
        if kind == "topics":
            columns["text"] = pl.col("topics").list.join(", ")
        elif kind == "summaries":
            columns["evidence"] = turns.list.eval(pl.element().explode()).list.unique(maintain_order=True)
        rows = rows.select("session_id", **columns)
        if rows.schema["text"] == pl.List(pl.String):
            rows = rows.explode("text", "evidence")
        rows = rows.filter(pl.col("text").fill_null("") != "")
    return rows.sort("at", descending=True, nulls_last=True, maintain_order=True)


def _entities(place: Place) -> pl.DataFrame:
    import polars as pl

    sessions = place.store.sessions(place.dataset, scopes=[place.scope], columns=["session_id", "start"])
    named = place.rows("entities").join(sessions, on="session_id", how="left", maintain_order="left")
    rows = named.sort("start", nulls_last=False, maintain_order=True).group_by("name", "type", maintain_order=True)
    joined = rows.agg(
        at=pl.col("start").max(), since=pl.col("start").min(), session_id=pl.col("session_id").last(),
        sessions=pl.col("session_id").unique(maintain_order=True),
        evidence=pl.col("evidence").explode().drop_nulls().unique(maintain_order=True),
    )  # fmt: skip
    kind = pl.when(pl.col("type") == "").then(pl.lit("")).otherwise(pl.format(" ({})", "type"))
    n = pl.col("sessions").list.len()
    more = pl.when(n > 1).then(pl.format(", {} sessions since {}", n, pl.col("since").dt.date()))
    return joined.select("at", "session_id", pl.concat_str("name", kind, more.fill_null("")).alias("text"),
                         "evidence", "name", "type", "since", "sessions")  # fmt: skip


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
        its = pl.col("sessions").list.contains(wanted) if "sessions" in rows.columns else pl.col("session_id") == wanted
        rows = rows.filter(its)
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


def _print(place: Place, kind: str, rows: pl.DataFrame, most: int, written: Callable[[list[str]], list[str]]) -> None:
    typer.echo(f"{rows.height:,} {kind} of {one_line(place.scope)}")
    above = ""
    for row in rows.head(most).iter_rows(named=True):
        head = f"{day(row['at'])}  {one_line(row['session_id'])}"
        if head != above:
            typer.echo(head)
        above = head
        print_wrapped(row["text"], indent=6, first=6)
        print_turns(written(row["evidence"]))
    if rows.height > most:
        typer.echo(f"… and {rows.height - most:,} more; --most prints them")


def _register(kind: str) -> None:
    def run(
        place: Place,
        session: Session = None,
        since: Since = None,
        evidence: Evidence = False,
        json: Json = False,
        most: Most = 50,
    ) -> None:
        rows = listed(place, kind)
        if rows.is_empty() and place.rows("summaries").is_empty():
            raise DataError(f"{place.scope!r} of {place.dataset!r} is not indexed; memlab index does that")
        rows = chosen(rows, place, session=session, since=since)
        shown = rows if json else rows.head(most)
        written = evidence_of(place, shown, wanted=evidence)
        if json:
            print_json(rows, written)
        else:
            _print(place, kind, rows, most, written)

    run.__name__, run.__doc__ = kind, KINDS[kind].help
    memory_verb(run)


for _kind in KINDS:
    _register(_kind)
