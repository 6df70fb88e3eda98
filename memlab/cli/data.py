"""Verbs that bring data in and show what is there."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memlab.cli._memory import read_date
from memlab.cli._options import Engine, Format, Path_, Pool, app, in_force, load_encoder, reading, settings, table, verb
from memlab.errors import MemlabError, ModelError
from memlab.terminal import choose_one, issue_lines, mask_secrets, package_version

if TYPE_CHECKING:
    from memlab.config import Settings
    from memlab.records import Dataset


@verb(in_force, "store", "encoder", "on_error", "language", "seed")
def ingest(
    chosen: Settings,
    dataset: Path_,
    format: Format = None,
    pool: Pool = None,
    into: Annotated[
        str | None, typer.Option(help="A chat log in the store that the file goes on; a new one where there is none.")
    ] = None,
    tz: Annotated[str | None, typer.Option(help="Zone of times without one, such as Europe/Oslo; UTC.")] = None,
    assistant: Annotated[
        list[str] | None, typer.Option(help="A sender who is the assistant; may be repeated. ChatGPT and the like are.")
    ] = None,
    scope: Annotated[
        str | None, typer.Option(help="Name of the memory of an export; where it holds several, the one to take.")
    ] = None,
    date_order: Annotated[
        str | None, typer.Option(help="dmy, mdy or ymd: of a WhatsApp chat whose dates can be read in several ways.")
    ] = None,
    engine: Engine = "local",
) -> None:
    """Load conversations, or an export of a chat tool, into the store, encode what is new, and build the indexes."""
    from memlab import datasets
    from memlab.retrieve import candidates
    from memlab.store import MemoryStore

    about = {"tz": tz, "assistant": assistant or (), "scope": scope, "date_order": date_order}
    options = reading(chosen) | about | ({"name": into} if into else {})
    # What can be refused is refused before the store is made.
    read = datasets.stream(dataset, format=format, pool=pool, **options)
    model = load_encoder(chosen, engine)
    memory = MemoryStore.open(chosen.store)
    names: dict[str, None] = {}

    def parts() -> Iterator[Dataset]:
        for part in read:
            typer.echo(part.describe())
            for line in issue_lines(part):
                typer.echo(line)
            names[part.name] = None
            yield part

    with memory.alone(into) if into else nullcontext():
        if into and memory.whole(into):
            read = datasets.stream(
                dataset, format=format, pool=pool, into=lambda scopes: memory.dataset(into, scopes=scopes), **options
            )
        report = memory.ingest(parts(), progress=True)
    typer.echo(table(report))
    if removed := report.filter(table="turns")["removed"].sum():
        typer.echo(f"{removed:,} turns that their scopes no longer have were removed; --into NAME adds and keeps them")
    for name in names:
        memory.choose(name)
        added = memory.vectors.backfill(model, name, header=chosen.header)
        typer.echo(f"{name}: {added:,} turns newly encoded by {chosen.encoder}")
    for column, kind, made in memory.search.create_indexes(model, header=chosen.header).iter_rows():
        typer.echo(f"index of {column}: {kind}, {made}")
    for name in names if not chosen.header else ():
        if encoded := candidates.fill(memory, name, model):
            typer.echo(f"{name}: tokens of {encoded:,} turns in large scopes are encoded")
    typer.echo(f"store: {mask_secrets(chosen.store)}")


@verb(in_force, "store", "encoder")
def index(
    chosen: Settings,
    dataset: Annotated[str | None, typer.Argument(help="Name of a dataset in the store; all by default.")] = None,
    service: Annotated[
        str | None, typer.Option(help="recorded, extractive, or one of [llm.services]; the setting index.service.")
    ] = None,
    now: Annotated[str | None, typer.Option(help="The present, in UTC; the clock by default.")] = None,
    watch: Annotated[float | None, typer.Option(help="Look again every so many seconds, until stopped.", min=1)] = None,
    engine: Engine = "local",
) -> None:
    """Summarise finished sessions and extract their entities and facts; what failed is tried again."""
    from memlab import indexing
    from memlab.store import MemoryStore

    present, wanted = read_date(now), chosen.index.model_copy(update={"service": service} if service else {})
    asked = None if wanted.service == indexing.EXTRACTIVE else wanted.service
    memory, model = MemoryStore.open(chosen.store, create=False), load_encoder(chosen, engine)
    while True:
        there = memory.datasets()["name"].to_list()
        faults: list[str] = []
        for name in [choose_one(there, dataset, "dataset", "memlab ingest FILE puts one there")] if dataset else there:
            events = indexing.index(
                memory,
                name,
                settings=wanted,
                service=asked,
                encoder=model,
                now=present,
                gap=timedelta(minutes=chosen.gap_minutes),
                progress=True,
                engine=engine,
            )
            for line in indexing.report_lines(memory, name, events):
                typer.echo(line)
            failed = events.filter(kind="failed")
            if failed.height and failed.height == events.height:
                faults.append(f"{name}: nothing was made: {failed['reason'][0]}")
        if watch is None and faults:
            raise ModelError(" | ".join(faults))
        if watch is None:
            return
        time.sleep(watch)


@verb(in_force, "store")
def optimize(chosen: Settings) -> None:
    """Compact the tables of the store and remove versions that nothing needs; nobody else may be using it."""
    from memlab.store import MemoryStore

    memory = MemoryStore.open(chosen.store, create=False)
    before = memory.size()
    typer.echo(table(memory.optimize()))
    after = memory.size()
    if before and after:
        typer.echo(f"{mask_secrets(chosen.store)}: {(before - after) / 1e6:,.1f} MB freed of {before / 1e6:,.1f}")


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="locomo, longmemeval (the oracle file), longmemeval-s, longmemeval-m.")],
    directory: Annotated[Path, typer.Option(help="Where the file goes.")] = Path("data"),
) -> None:
    """Download a published dataset; resumes, and checks the checksum."""
    from memlab.datasets.fetch import SOURCES
    from memlab.datasets.fetch import fetch as download

    typer.echo(f"{download(name, directory=directory)}  (licence: {SOURCES[name].license})")


@app.command("datasets")
def published_datasets() -> None:
    """List the benchmarks that memlab reads by name, with licence, parts, size and checksum of their files."""
    from memlab.datasets.fetch import published

    for name, license, splits, size, sha256, url in published().iter_rows():
        megabytes = f"{size / 1e6:,.0f} MB" if size else ""
        typer.echo(f"{name:20}{license:17}{megabytes:>9}  {splits}")
        typer.echo(f"{'':20}{url}\n{'':20}{f'SHA-256 {sha256}' if sha256 else 'not fetched: no published checksum'}")


@verb(in_force, "on_error", "language", "seed")
def convert(
    chosen: Settings,
    dataset: Path_,
    folder: Annotated[Path, typer.Argument(help="The folder that is written.", show_default=False)],
    format: Format = None,
    pool: Pool = None,
) -> None:
    """Write a dataset as a retrieval folder of MTEB and LMEB: corpus, queries, qrels and candidates."""
    from memlab import datasets

    data = datasets.load(dataset, format=format, pool=pool, **reading(chosen))
    typer.echo(f"{datasets.folders.write(data, folder)}: {data.describe()}")


@verb(settings, "store", "encoder")
def info(in_use: tuple[Settings, dict[str, str]]) -> None:
    """Print the settings in force with their origin, versions, and what the store holds."""
    from memlab.store import MemoryStore

    chosen, origin = in_use
    for name, value in chosen.model_dump(exclude={"llm"}).items():
        typer.echo(f"{name:12} {mask_secrets(str(value)):45} {origin[name]}")
    for name, service in chosen.llm.services.items():
        typer.echo(f"service {name}: {service.model} at {mask_secrets(service.base_url)} {origin['llm']}")
    typer.echo(f"\nmemlab {package_version('memlab')}, Python {platform.python_version()}")
    typer.echo(", ".join(f"{p} {package_version(p)}" for p in ("lancedb", "polars", "torch", "transformers", "plotly")))
    try:
        memory = MemoryStore.open(chosen.store, create=False)
    except MemlabError as error:
        typer.echo(f"\n{mask_secrets(str(error))}")
        return
    typer.echo(f"\n{table(memory.datasets())}\n{memory.versions()}")
