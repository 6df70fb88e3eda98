"""Verbs that bring data in and show what is there."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memlab.cli import _options as opt
from memlab.cli._options import load_encoder, reading_options, say, settings, settings_in_force, table, verb
from memlab.errors import MemlabError
from memlab.terminal import issue_lines, mask_secrets, package_version

if TYPE_CHECKING:
    from memlab.records import Dataset

GROUP = "Data"


@verb(GROUP, "ingest export.zip --into my-chats")
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
    scope: Annotated[
        str | None, typer.Option(help="Name of the memory of an export; where it holds several, the one to take.")
    ] = None,
    date_order: Annotated[
        str | None, typer.Option(help="dmy, mdy or ymd: of a WhatsApp chat whose dates can be read in several ways.")
    ] = None,
    engine: opt.Engine = "local", store: opt.Store = None, encoder: opt.EncoderName = None,
    on_error: opt.OnError = None, language: opt.Language = None, seed: opt.Seed = None,
) -> None:  # fmt: skip
    """Load conversations, or an export of a chat tool, into the store, encode what is new, and build the indexes."""
    from memlab import datasets
    from memlab.retrieve import candidates
    from memlab.store import MemoryStore

    chosen = settings_in_force(store=store, encoder=encoder, on_error=on_error, language=language, seed=seed)
    about = {"tz": tz, "assistant": assistant or (), "scope": scope, "date_order": date_order}
    options = reading_options(chosen) | about | ({"name": into} if into else {})
    # What can be refused is refused before the store is made.
    read = datasets.stream(dataset, format=format, pool=pool, **options)
    model = load_encoder(chosen, engine)
    memory = MemoryStore.open(chosen.store)
    names: dict[str, None] = {}

    def parts() -> Iterator[Dataset]:
        for part in read:
            for line in (part.describe(), *issue_lines(part)):
                say(line)
            names[part.name] = None
            yield part

    with memory.alone(into) if into else nullcontext():
        if into and memory.whole(into):
            read = datasets.stream(
                dataset, format=format, pool=pool, into=lambda scopes: memory.dataset(into, scopes=scopes), **options
            )
        report = memory.ingest(parts(), progress=True)
    say(table(report))
    if removed := report.filter(table="turns")["removed"].sum():
        say(f"{removed:,} turns that their scopes no longer have were removed; --into NAME adds and keeps them")
    for name in names:
        memory.choose(name)
        added = memory.vectors.backfill(model, name, header=chosen.header)
        say(f"{name}: {added:,} turns newly encoded by {chosen.encoder}")
    for column, kind, made in memory.search.create_indexes(model).iter_rows():
        say(f"index of {column}: {kind}, {made}")
    for name in names if not chosen.header else ():
        if encoded := candidates.encode_large_scopes(memory, name, model):
            say(f"{name}: tokens of {encoded:,} turns in large scopes are encoded")
    say(f"store: {mask_secrets(chosen.store)}")


@verb(GROUP, "optimize --store .memlab/store")
def optimize(store: opt.Store = None) -> None:
    """Compact the tables of the store and remove versions that nothing needs; nobody else may be using it."""
    from memlab.store import MemoryStore

    chosen = settings_in_force(store=store)
    memory = MemoryStore.open(chosen.store, create=False)
    before = memory.size()
    say(table(memory.optimize()))
    after = memory.size()
    if before and after:
        say(f"{mask_secrets(chosen.store)}: {(before - after) / 1e6:,.1f} MB freed of {before / 1e6:,.1f}")


@verb(GROUP, "fetch locomo")
def fetch(
    name: Annotated[str, typer.Argument(help="locomo, longmemeval (the oracle file), longmemeval-s, longmemeval-m.")],
    directory: Annotated[Path, typer.Option(help="Where the file goes.")] = Path("data"),
) -> None:
    """Download a published dataset; resumes, and checks the checksum."""
    from memlab.datasets.fetch import SOURCES
    from memlab.datasets.fetch import fetch as download

    say(f"{download(name, directory=directory)}  (licence: {SOURCES[name].license})")


@verb(GROUP, "datasets", name="datasets")
def published_datasets() -> None:
    """List the benchmarks that memlab reads by name, with licence, parts, size and checksum of their files."""
    from memlab.datasets.fetch import list_published_benchmarks

    for name, license, splits, size, sha256, url in list_published_benchmarks().iter_rows():
        megabytes = f"{size / 1e6:,.0f} MB" if size else ""
        say(f"{name:20}{license:17}{megabytes:>9}  {splits}")
        say(f"{'':20}{url}\n{'':20}{f'SHA-256 {sha256}' if sha256 else 'not fetched: no published checksum'}")


@verb(GROUP, "convert my-chats.jsonl my-chats-folder")
def convert(
    dataset: opt.Path_,
    folder: Annotated[Path, typer.Argument(help="The folder that is written.", show_default=False)],
    format: opt.Format = None, pool: opt.Pool = None, on_error: opt.OnError = None, language: opt.Language = None,
    seed: opt.Seed = None,
) -> None:  # fmt: skip
    """Write a dataset as a retrieval folder of MTEB and LMEB: corpus, queries, qrels and candidates."""
    from memlab import datasets

    chosen = settings_in_force(on_error=on_error, language=language, seed=seed)
    data = datasets.load(dataset, format=format, pool=pool, **reading_options(chosen))
    say(f"{datasets.folders.write(data, folder)}: {data.describe()}")


@verb(GROUP, "info")
def info(store: opt.Store = None, encoder: opt.EncoderName = None) -> None:
    """Print the settings in force with their origin, versions, and what the store holds."""
    from memlab.store import MemoryStore

    chosen, origin = settings(store=store, encoder=encoder)
    for name, value in chosen.model_dump(exclude={"llm"}).items():
        say(f"{name:12} {mask_secrets(str(value)):45} {origin[name]}")
    for name, service in chosen.llm.services.items():
        say(f"service {name}: {service.model} at {mask_secrets(service.base_url)} {origin['llm']}")
    say(f"\nmemlab {package_version('memlab')}, Python {platform.python_version()}")
    say(", ".join(f"{p} {package_version(p)}" for p in ("lancedb", "polars", "torch", "transformers", "plotly")))
    try:
        memory = MemoryStore.open(chosen.store, create=False)
    except MemlabError as error:
        say(f"\n{mask_secrets(str(error))}")
        return
    say(f"\n{table(memory.datasets())}\n{memory.versions()}")
