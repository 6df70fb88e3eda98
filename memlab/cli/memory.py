"""Verbs that ask a memory what it knows: facts and recall."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memlab.cli._memory import (
    Place,
    day,
    memory_verb,
    print_wrapped,
    ranked_facts,
    ranked_summaries,
    scored_facts,
)
from memlab.cli._options import MOST
from memlab.cli.listing import Evidence, Json, Most, Session, chosen, evidence_of, print_json, print_turns
from memlab.errors import DataError
from memlab.terminal import one_line, short

if TYPE_CHECKING:
    import polars as pl

Now = Annotated[
    str | None, typer.Option(help="The present. Default: the clock; for a memory that ended over a year ago, its end.")
]
AsOf = Annotated[str | None, typer.Option(help="Facts that were active on this day, from what was known by then.")]
_SHOWN = (
    "fact_id", "session_id", "text", "subject", "predicate", "object", "status", "confidence", "valid_from", "valid_to",
    "last_access", "n_reinforced", "speaker", "superseded_by", "evidence",
)  # fmt: skip


@memory_verb
def facts(
    place: Place,
    person: Annotated[str | None, typer.Option(help="Only facts whose subject holds this name.")] = None,
    predicate: Annotated[str | None, typer.Option(help="Only this relation, in any form: 'work at'.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="What no longer holds too.")] = False,
    as_of: AsOf = None,
    log: Annotated[bool, typer.Option("--log", help="What superseded what: when, why, by what evidence.")] = False,
    undo: Annotated[tuple[str, str] | None, typer.Option(metavar="OLD NEW", help="NEW no longer ends OLD.")] = None,
    redo: Annotated[tuple[str, str] | None, typer.Option(metavar="OLD NEW", help="Take an undo back.")] = None,
    why: Annotated[str, typer.Option(help="A reason, kept with the undo.")] = "",
    session: Session = None,
    since: Annotated[str | None, typer.Option(help="Only what was said from this day on.")] = None,
    evidence: Evidence = False,
    json: Json = False,
    most: Most = 50,
    now: Now = None,
) -> None:
    """List what a memory holds to be true, what was heard last first, and how sure it is."""
    import polars as pl

    from memlab.knowledge import normal
    from memlab.knowledge.recall import fact_sentences

    if undo or redo:
        typer.echo(_undone(place, undo, redo, why))
        return
    resolved, rows, _, present = scored_facts(place, now=now, as_of=as_of)
    rows = rows.filter(~pl.col("status").is_in(["repeat", "closing"]))
    if person:
        rows = rows.filter(pl.col("subject").str.to_lowercase().str.contains(person.lower(), literal=True))
    if predicate:
        wanted = normal.normal_relation(predicate)
        rows = rows.filter([normal.normal_relation(said) == wanted for said in rows["predicate"]])
    if log:
        closings = resolved.log.join(rows.select(old="fact_id"), on="old", how="semi", maintain_order="left")
        _print_log(
            closings, place, most, dict(zip(resolved.facts["fact_id"], fact_sentences(resolved.facts), strict=True))
        )
        return
    rows = chosen(rows, place, session=session, since=since, at="last_access")
    shown = rows if all_ else rows.filter(rows["status"] == "active")
    shown = shown.sort("last_access", descending=True, maintain_order=True)
    written = evidence_of(place, shown if json else shown.head(most), wanted=evidence)
    if json:
        print_json(shown.select(_SHOWN), written)
        return
    typer.echo(present)
    rest = rows.height - shown.height
    others = f"; {rest:,} no longer hold: --all shows them" if rest else ""
    typer.echo(f"{shown.height:,} facts{others}")
    for row in shown.head(most).iter_rows(named=True):
        until = f" until {day(row['valid_to'])}" if row["valid_to"] else ""
        state = "" if row["status"] == "active" else f"  [{row['status']}{until}]"
        last = f", last said {day(row['last_access'])}" if row["n_reinforced"] else ""
        _print_fact(f"{row['confidence']:.2f}  since {day(row['valid_from'])}{last}{state}", row)
        print_turns(written(row["evidence"]))
    if shown.height > most:
        typer.echo(f"… and {shown.height - most:,} more; --most prints them")


@memory_verb
def recall(
    place: Place,
    question: Annotated[str, typer.Argument(help="What to look for.")],
    k: Annotated[int, typer.Option(help="How many facts.", min=1, max=MOST)] = 10,
    sessions: Annotated[int, typer.Option(help="How many summaries of sessions behind them.", min=0, max=MOST)] = 0,
    all_: Annotated[bool, typer.Option("--all", help="What no longer holds too.")] = False,
    as_of: AsOf = None,
    now: Now = None,
) -> None:
    """Find the facts that answer a question, by similarity, the graph and confidence; and the nearest summaries."""
    _, facts, _, present = scored_facts(place, now=now, as_of=as_of)
    ranking = ranked_facts(place, facts, question, k=k, superseded=all_)
    typer.echo(present)
    if ranking.height:
        names = ", ".join(ranking["entities"][0].to_list())
        typer.echo(f"the question names: {one_line(names) or 'nothing that the graph knows, so it says nothing'}")
    for row in ranking.join(facts, on="fact_id", how="left", suffix="_", maintain_order="left").iter_rows(named=True):
        parts = f"vector {row['vector']:.2f}  graph {row['graph']:.2f}  confidence {row['confidence']:.2f}"
        state = "" if row["status"] == "active" else f"  [{row['status']}]"
        _print_fact(f"{row['rank']:>3}  {row['score']:.3f}  {parts}  {day(row['valid_from'])}{state}", row)
    for row in ranked_summaries(place, question, k=sessions).iter_rows(named=True) if sessions else ():
        typer.echo(f"{row['rank']:>3}  {row['score']:.3f}  {day(row['start'])}  {one_line(row['session_id'])}")
        print_wrapped(row["summary"], indent=6, first=6)


def _undone(place: Place, undo: tuple[str, str] | None, redo: tuple[str, str] | None, why: str) -> str:
    """Write an undo, or take one back."""
    import polars as pl

    noted = place.store.knowledge
    old, new = undo or redo or ("", "")
    if undo:
        if place.resolved().log.filter(pl.col("old") == old, pl.col("new") == new).is_empty():
            raise DataError(f"the log has no row in which {new!r} ends {old!r}; give a pair of memlab facts --log")
        noted.undo(place.dataset, place.scope, old, new, at=datetime.now(UTC), why=why)
    elif not noted.redo(place.dataset, place.scope, old, new):
        raise DataError(f"that {new!r} ends {old!r} was not undone; memlab facts --log lists what was")
    return one_line(f"that {new} ends {old} {'no longer counts' if undo else 'counts again'}")


def _print_fact(head: str, row: dict[str, Any]) -> None:
    heard = f"  heard {row['n_reinforced'] + 1} times" if row["n_reinforced"] else ""
    typer.echo(head + heard)
    print_wrapped(row["text"], indent=6, first=6)
    typer.echo(f"      {one_line(row['fact_id'])}: {one_line(', '.join(row['evidence']) or 'no evidence')}")


def _print_log(rows: pl.DataFrame, place: Place, most: int, texts: dict[str, str]) -> None:
    for row in rows.tail(most).iter_rows(named=True):
        typer.echo(f"{day(row['at'])}  {row['rule']}, said by {one_line(row['by'] or 'nobody named')}")
        print_wrapped(f"old: {texts[row['old']]}  ({row['old']})", indent=11, first=6)
        print_wrapped(f"new: {texts[row['new']]}  ({row['new']})", indent=11, first=6)
        typer.echo(f"      evidence: {one_line(', '.join(row['evidence']) or 'none')}")
    undone = place.store.knowledge.undone(place.dataset, scopes=[place.scope])
    for row in undone.iter_rows(named=True):
        reason = f": {short(row['why'])}" if row["why"] else ""
        typer.echo(f"undone on {day(row['undone_at'])}: {one_line(row['new'])} ends {one_line(row['old'])}{reason}")
    last = f", the last {most:,} are shown" if rows.height > most else ""
    typer.echo(f"{rows.height:,} supersessions, {undone.height:,} undone{last}")
