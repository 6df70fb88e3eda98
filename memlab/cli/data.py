"""Verbs that bring data in and show what is there."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import memlab
from memlab.cli import _options as opt
from memlab.cli._options import echo, register_command
from memlab.errors import MemlabError
from memlab.records.dataset import describe_sources
from memlab.terminal import (
    count_noun,
    escape_line,
    issue_lines,
    mask_secrets,
    package_version,
    shorten_line,
)

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.records import Dataset
    from memlab.store import MemoryStore

GROUP = "Data"


@register_command(GROUP, "ingest export.zip --into my-chats")
def ingest(
    dataset: opt.Path_,
    format: opt.Format = None, pool: opt.Pool = None,
    into: Annotated[
        str | None, typer.Option(help="A chat log in the store that the file goes on; a new one where there is none.")
    ] = None,
    tz: Annotated[str | None, typer.Option(help="Zone of times without one, such as Europe/Oslo; UTC.")] = None,
    assistant: Annotated[
        list[str] | None, typer.Option(help="A sender who is the assistant; may be repeated. ChatGPT and the like are.")
    ] = None,
    person: Annotated[
        list[str] | None, typer.Option(help="A sender who is a person, though called Claude; may be repeated.")
    ] = None,
    scope: Annotated[
        str | None, typer.Option(help="Name of the memory of an export; where it holds several, the one to take.")
    ] = None,
    date_order: Annotated[
        str | None, typer.Option(help="dmy, mdy or ymd: of dates that can be read in several ways, such as 2/1/2026.")
    ] = None,
    engine: opt.Engine = "local", store: opt.Store = None, encoder: opt.EncoderName = None,
    on_error: opt.OnError = None, language: opt.Language = None, seed: opt.Seed = None,
) -> None:  # fmt: skip
    """Load conversations, or an export of a chat tool, into the store, encode what is new, and build the indexes."""
    from memlab.retrieve import large_scopes

    chosen = opt.settings_in_force(
        store=store, encoder=encoder, on_error=on_error, language=language, seed=seed
    )
    about = {"tz": tz, "assistant": assistant or (), "person": person or ()}
    about |= {"scope": scope, "date_order": date_order}
    options = opt.reading_options(chosen) | about | ({"name": into} if into else {})
    # What can be refused is refused before the store is made.
    read = memlab.datasets.stream(dataset, format=format, pool=pool, **options)
    model = opt.load_encoder(chosen, engine)
    memory = memlab.MemoryStore.open(chosen.store)
    names: dict[str, None] = {}

    def parts() -> Iterator[Dataset]:
        for part in read:
            for line in (part.describe(), *issue_lines(part)):
                echo(line)
            names[part.name] = None
            yield part

    with memory.alone(into) if into else nullcontext():
        if into and memory.whole(into):
            read = memlab.datasets.stream(
                dataset,
                format=format,
                pool=pool,
                into=lambda scopes: memory.dataset(into, scopes=scopes),
                **options,
            )
        report = memory.ingest(parts(), progress=True)
    echo(opt.format_table(report))
    if removed := report.filter(table="turns")["removed"].sum():
        echo(
            f"{removed:,} turns that their scopes no longer have were removed; --into NAME adds and keeps them"
        )
    # By dataset that has new turns, the seconds that a text of them took.
    paces: dict[str, float] = {}
    for name in names:
        memory.choose(name)
        began = time.monotonic()
        added = memory.vectors.backfill(model, name)
        if added:
            paces[name] = (time.monotonic() - began) / added
        echo(f"{name}: {added:,} turns newly encoded by {chosen.encoder}")
    for column, kind, made in memory.search.create_indexes(model).iter_rows():
        echo(f"index of {column}: {kind}, {made}")
    for name in names if not chosen.header else ():
        if encoded := large_scopes.encode_large_scopes(memory, name, model):
            echo(f"{name}: tokens of {encoded:,} turns in large scopes are encoded")
    for name, pace in paces.items():
        if line := _first_search_line(memory, name, model, seconds_of_text=pace):
            echo(line)
    echo(f"store: {mask_secrets(chosen.store)}")


def _first_search_line(
    memory: MemoryStore, name: str, encoder: Encoder, *, seconds_of_text: float
) -> str:
    """Say what the first search of a memory still makes, which `ingest` leaves to it; "" where that is nothing.

    :param seconds_of_text: what encoding a text took just now; its tokens take about as long.
    """
    from memlab.embed.wrapper import token_encoder_of
    from memlab.retrieve.large_scopes import uses_candidates

    if token_encoder_of(encoder) is None:
        return ""
    sizes = [
        memory.search.size(name, scope)
        for scope in memory.scopes(name)
        if not uses_candidates(memory, name, scope, encoder)
    ]
    if not sizes:
        return ""
    seconds = max(sizes) * seconds_of_text
    took = f", about {seconds:,.0f} s for the largest" if seconds >= 1 else ""
    return f"{name}: the first search of a memory encodes the tokens of its turns{took}; later ones do not wait"


@register_command(GROUP, "optimize --store .memlab/store")
def optimize(
    runs: Annotated[
        bool, typer.Option("--runs", help="List the saved runs with what they hold, and change nothing.")
    ] = False,
    drop: Annotated[
        list[str] | None, typer.Option(help="Remove this saved run first, by its id; may be repeated.")
    ] = None,
    store: opt.Store = None,
) -> None:  # fmt: skip
    """Compact the tables of the store and remove versions that nothing needs; nobody else may be using it.

    Saved runs need the states that they were made on; --runs lists them, --drop lets go of them.
    """
    chosen = opt.settings_in_force(store=store)
    memory = memlab.MemoryStore.open(chosen.store, create=False)
    if runs:
        for line in _held_lines(memory):
            echo(line)
        return
    before = memory.size()
    if drop:
        memory.runs.remove(drop)
    echo(opt.format_table(memory.optimize()))
    after = memory.size()
    if before and after:
        echo(
            f"{mask_secrets(chosen.store)}: {(before - after) / 1e6:,.1f} MB freed of {before / 1e6:,.1f}"
        )


def _held_lines(memory: MemoryStore) -> Iterator[str]:
    """Say of each saved run what it holds of earlier states."""
    held = memory.runs.held()
    for row in held.iter_rows(named=True):
        sizes = f"{row['own_bytes'] / 1e6:8,.2f} MB of its own of {row['bytes'] / 1e6:8,.2f}"
        name = shorten_line(row["name"])
        when = f"{row['saved_at']:%Y-%m-%d %H:%M}"
        yield f"{row['run_id']}  {when}  {sizes}  {row['level']:8}{name}"
    yield f"{count_noun(held.height, 'saved runs')}; --drop ID removes one with what it alone holds"


@register_command(GROUP, "fetch locomo")
def fetch(
    name: Annotated[
        str,
        typer.Argument(help="locomo, longmemeval (the oracle file), longmemeval-s, longmemeval-m."),
    ],
    out: opt.Out = Path("data"),
) -> None:
    """Download a published dataset; resumes, and checks the checksum."""
    from memlab.datasets.fetch import SOURCES
    from memlab.datasets.fetch import fetch as download

    echo(f"{download(name, directory=out or 'data')}  (licence: {SOURCES[name].license})")


@register_command(GROUP, "datasets", name="datasets")
def published_datasets() -> None:
    """List the benchmarks that memlab reads by name, with licence, parts, size and checksum of their files."""
    from memlab.datasets.fetch import list_published_benchmarks

    for name, license, splits, size, sha256, url in list_published_benchmarks().iter_rows():
        megabytes = f"{size / 1e6:,.0f} MB" if size else ""
        echo(f"{name:20}{license:17}{megabytes:>9}  {splits}")
        echo(
            f"{'':20}{url}\n{'':20}{f'SHA-256 {sha256}' if sha256 else 'not fetched: no published checksum'}"
        )


@register_command(GROUP, "info")
def info(
    service: Annotated[
        str | None, typer.Option(help="Ask this service of [llm.services] one tiny question.")
    ] = None,
    store: opt.Store = None,
    encoder: opt.EncoderName = None,
) -> None:
    """Print the settings in force with their origin, versions, what the store holds.

    With --service what that takes; with --encoder what is taken from its files.
    """
    if service is not None:
        from memlab.llm.probing import describe_answering

        for line in describe_answering(memlab.llm.configured_service(service)):
            echo(mask_secrets(line))
        return
    if encoder is not None:
        from memlab.embed.description import encoder_lines

        for line in encoder_lines(memlab.embed.load(encoder)):
            echo(escape_line(line))
        return
    chosen, origin = opt.settings(store=store)
    for name, value in chosen.model_dump(exclude={"llm"}).items():
        echo(f"{name:12} {mask_secrets(str(value)):45} {origin[name]}")
    for name, each in chosen.llm.services.items():
        echo(f"service {name}: {each.model} at {mask_secrets(each.base_url)} {origin['llm']}")
    echo(f"\nmemlab {package_version('memlab')}, Python {platform.python_version()}")
    echo(
        ", ".join(
            f"{p} {package_version(p)}"
            for p in ("lancedb", "polars", "torch", "transformers", "plotly")
        )
    )
    try:
        memory = memlab.MemoryStore.open(chosen.store, create=False)
    except MemlabError as error:
        echo(f"\n{mask_secrets(str(error))}")
        return
    echo(f"\n{opt.format_table(memory.datasets())}\n{memory.versions()}")
    for name in memory.datasets()["name"]:
        sources = describe_sources(memory.questions(name, columns=["source"]))
        if sources:
            echo(f"{escape_line(name)}: questions: {sources}")
        note = memlab.indexing.earlier_facts_note(memory, name)
        if note:
            echo(f"{escape_line(name)}: {note}")
