"""The verb that prints a week or a month of a memory."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from memlab.cli._memory import opened, read_date
from memlab.cli._options import verb
from memlab.errors import DataError


@verb(dict, "dataset", "store")
def rollup(
    flags: dict[str, Any],
    scope: Annotated[str, typer.Argument(help="Whose memory.", show_default=False)],
    week: Annotated[str | None, typer.Option(help="A day of the week, as 2026-03-02.")] = None,
    month: Annotated[str | None, typer.Option(help="As 2026-03.")] = None,
    tz: Annotated[str, typer.Option(help="Time zone in which weeks begin, as Europe/Oslo.")] = "UTC",
    service: Annotated[
        str | None, typer.Option(help="extractive, recorded, or a service of the settings; the setting index.service.")
    ] = None,
) -> None:
    """Print what happened in a week or a month, and what was carried on into it, as Markdown."""
    from memlab import summaries

    if (week is None) == (month is None):
        raise DataError("name one period: --week 2026-03-02 or --month 2026-03")
    kind, day = ("week", read_date(week)) if month is None else ("month", read_date(f"{month}-01"))
    assert day is not None  # one of the two was given
    place = opened({**flags, "scope": scope, "encoder": None})
    rows = place.rows("summaries")
    if rows.is_empty():
        raise DataError(f"{place.scope!r} of {place.dataset!r} has no summaries; memlab index makes them")
    wanted = service or place.chosen.index.service
    by = None if wanted == summaries.EXTRACTIVE else wanted
    turns = place.store.turns(place.dataset, scopes=[place.scope])
    language = place.store.datasets().filter(name=place.dataset)["language"].item() or "en"
    node = summaries.period(turns, kind, day.date(), summaries=rows, tz=tz, service=by, language=language)
    typer.echo(summaries.to_markdown(node.row(0, named=True), tz=tz))
    no_model = "no model was asked: these are sentences of the conversation; --service NAME asks one"
    if line := summaries.fallback_note(node, "summaries") if by else no_model:
        typer.echo(line, err=True)
