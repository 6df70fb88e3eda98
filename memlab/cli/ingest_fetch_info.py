"""Verbs that bring data in and show what is there."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

import memlab
from memlab.cli import shared_options as opt
from memlab.cli.shared_options import echo, register_command
from memlab.errors import MemlabError
from memlab.records.dataset import describe_question_sources_or_empty
from memlab.terminal_text import (
    count_noun,
    escape_line,
    installed_version_or_note,
    mask_url_credentials,
    shorten_line,
    summarise_issues_as_lines,
)

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.records import Dataset
    from memlab.store import MemoryStore

GROUP = "Data"
RATE_TEXTS = 500
"""Texts from which on the time that they took is a rate: loading the model weighs little then."""
ANNOUNCED_TEXTS = 100
"""Texts from which on it is said before what encoding them is for."""


@register_command(GROUP, "ingest export.zip --into my-chats")
def ingest(
    dataset: opt.Path_,
    format: opt.Format = None,
    pool: opt.Pool = None,
    *,
    into: Annotated[
        str | None,
        typer.Option(
            help="A chat log in the store that the file goes on; a new one where there is none."
        ),
    ] = None,
    tz: Annotated[
        str | None, typer.Option(help="Zone of times without one, such as Europe/Oslo; UTC.")
    ] = None,
    assistant: Annotated[
        list[str] | None,
        typer.Option(
            help="A sender who is the assistant; may be repeated. ChatGPT and the like are."
        ),
    ] = None,
    person: Annotated[
        list[str] | None,
        typer.Option(help="A sender who is a person, though called Claude; may be repeated."),
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(
            help="Name of the memory of an export; where it holds several, the one to take."
        ),
    ] = None,
    date_order: Annotated[
        str | None,
        typer.Option(
            help="dmy, mdy or ymd: of dates that can be read in several ways, such as 2/1/2026."
        ),
    ] = None,
    engine: opt.Engine = "local",
    setting_options: opt.SettingOptions,
) -> None:
    """Load conversations, or an export of a chat tool, into the store, encode what is new, and
    build the indexes.
    """
    from memlab.retrieve import large_scope_candidates

    settings = setting_options.in_force()
    import_options: dict[str, Any] = {
        "tz": tz,
        "assistant": assistant or (),
        "person": person or (),
        "scope": scope,
        "date_order": date_order,
    }
    if into:
        import_options["name"] = into
    options = opt.dataset_loading_options(settings) | import_options
    # What can be refused is refused before the store is made.
    dataset_parts = memlab.datasets.stream(dataset, format=format, pool=pool, **options)
    text_encoder = opt.load_encoder(settings, engine)
    memory_store = memlab.MemoryStore.open(settings.store)
    dataset_names: dict[str, None] = {}
    scopes_before = {name: memory_store.scopes(name) for name in memory_store.datasets()["name"]}
    scopes_read: set[tuple[str, str]] = set()

    def print_parts() -> Iterator[Dataset]:
        for dataset_part in dataset_parts:
            for output_line in (dataset_part.describe(), *summarise_issues_as_lines(dataset_part)):
                echo(output_line)
            dataset_names[dataset_part.name] = None
            scopes_read.update((dataset_part.name, name) for name in dataset_part.scopes)
            yield dataset_part

    with memory_store.alone(into) if into else nullcontext():
        if into and memory_store.whole(into):
            dataset_parts = memlab.datasets.stream(
                dataset,
                format=format,
                pool=pool,
                into=lambda scopes: memory_store.dataset(into, scopes=scopes),
                **options,
            )
        ingest_report = memory_store.ingest(print_parts(), progress=True)
    for output_line in _describe_written_rows(ingest_report):
        echo(output_line)
    if not into:
        for output_line in _describe_kept_scopes(scopes_before, dataset_names, scopes_read):
            echo(output_line)
    n_removed = ingest_report.filter(table="turns")["removed"].sum()
    if n_removed:
        echo(
            f"{n_removed:,} turns that their scopes no longer have were removed; --into NAME adds "
            "and keeps them"
        )
    # By dataset that has many new turns, the seconds that a text of them took.
    seconds_by_dataset: dict[str, float] = {}
    with_new_turns = list[str]()
    for dataset_name in dataset_names:
        n_missing = memory_store.vectors.count_missing(text_encoder, dataset_name)
        if n_missing >= ANNOUNCED_TEXTS:
            echo(
                f"{dataset_name}: encoding {n_missing:,} turns by {settings.encoder}, once for "
                "this store, so that searches find them by meaning: most of the time goes there"
            )
        started_at = time.monotonic()
        n_added = memory_store.vectors.backfill(text_encoder, dataset_name)
        if n_added:
            with_new_turns.append(dataset_name)
        if n_added >= RATE_TEXTS:
            seconds_by_dataset[dataset_name] = (time.monotonic() - started_at) / n_added
        echo(f"{dataset_name}: {count_noun(n_added, 'turns')} newly encoded by {settings.encoder}")
    for output_line in _describe_made_indexes(memory_store.search.create_indexes(text_encoder)):
        echo(output_line)
    for dataset_name in dataset_names:
        if settings.header:
            continue
        n_encoded = large_scope_candidates.encode_large_scopes_and_count_turns(
            memory_store, dataset_name, text_encoder
        )
        if n_encoded:
            echo(f"{dataset_name}: tokens of {n_encoded:,} turns in large scopes are encoded")
    for dataset_name in with_new_turns:
        search_line = _first_search_wait_note_or_empty(
            memory_store,
            dataset_name,
            text_encoder,
            seconds_of_text=seconds_by_dataset.get(dataset_name),
        )
        if search_line:
            echo(search_line)
    echo(f"store: {mask_url_credentials(settings.store)}")


def _describe_written_rows(ingest_report: pl.DataFrame) -> Iterator[str]:
    """Say in a line a table what was written of each dataset; tables that hold nothing are left
    out.
    """
    for row in ingest_report.iter_rows(named=True):
        counts = {
            "new": row["inserted"],
            "changed": row["updated"],
            "as before": row["unchanged"],
            "removed": row["removed"],
        }
        counted = [f"{number:,} {state}" for state, number in counts.items() if number]
        if counted:
            yield f"{row['dataset']}: {row['table']}: {', '.join(counted)}"


def _describe_kept_scopes(
    scopes_before: Mapping[str, list[str]],
    dataset_names: Iterable[str],
    scopes_read: set[tuple[str, str]],
) -> Iterator[str]:
    """Say of each dataset that was in the store which of its scopes did not come again, and stay:
    a file of the same name may hold other conversations.
    """
    for name in dataset_names:
        other_scopes = [
            scope for scope in scopes_before.get(name, []) if (name, scope) not in scopes_read
        ]
        if other_scopes:
            counted_scopes = count_noun(len(other_scopes), "other scopes")
            yield (
                f"{name}: the store had a dataset of this name; it keeps {counted_scopes}: "
                f"{shorten_line(', '.join(other_scopes))}"
            )


def _describe_made_indexes(index_rows: pl.DataFrame) -> Iterator[str]:
    """Say which indexes were made now, and which failed.

    That one does not pay yet, or was there, is no news for who ingests.
    """
    made = index_rows.filter(pl.col("made").str.starts_with("made"))["column"].to_list()
    if made:
        yield f"indexes made: {', '.join(made)}"
    for column, state in index_rows.select("column", "made").iter_rows():
        _, *failures = state.split("; ")
        for failure in failures:
            yield f"index of {column}: {failure}"


def _first_search_wait_note_or_empty(
    memory_store: MemoryStore,
    dataset_name: str,
    encoder: Encoder,
    *,
    seconds_of_text: float | None,
) -> str:
    """Say what `ingest` leaves to the first search of a memory; "" where that is nothing.

    :param seconds_of_text: what encoding a text took just now, as its tokens do; ``None`` where
        too few were encoded to know.
    """
    from memlab.embed.encoder_wrapper import token_encoder_of
    from memlab.retrieve.large_scope_candidates import is_scope_large_and_indexed

    if token_encoder_of(encoder) is None:
        return ""
    scope_sizes = [
        memory_store.search.count_turns_of_scope(dataset_name, scope_name)
        for scope_name in memory_store.scopes(dataset_name)
        if not is_scope_large_and_indexed(memory_store, dataset_name, scope_name, encoder)
    ]
    if not scope_sizes:
        return ""
    duration_note = ""
    if seconds_of_text is not None:
        largest_seconds = max(scope_sizes) * seconds_of_text
        if largest_seconds >= 1:
            duration_note = f", about {largest_seconds:,.0f} s for the largest"
    return (
        f"{dataset_name}: the first search of a memory, or question on its map, encodes the "
        f"tokens of its turns{duration_note}; later ones do not wait"
    )


@register_command(GROUP, "optimize --store .memlab/store")
def optimize(
    runs: Annotated[
        bool,
        typer.Option("--runs", help="List the saved runs with what they hold, and change nothing."),
    ] = False,
    drop: Annotated[
        list[str] | None,
        typer.Option(help="Remove this saved run first, by its id; may be repeated."),
    ] = None,
    store: opt.Store = None,
) -> None:
    """Compact the tables of the store and remove versions that nothing needs; nobody else may be
    using it.

    Saved runs need the states that they were made on; --runs lists them, --drop lets go of them.
    """
    settings = opt.settings_in_force(store=store)
    memory_store = memlab.MemoryStore.open(settings.store, create=False)
    if runs:
        for output_line in _describe_saved_runs(memory_store):
            echo(output_line)
        return
    bytes_before = memory_store.size()
    if drop:
        memory_store.runs.remove(drop)
    echo(opt.format_whole_table(memory_store.optimize()))
    bytes_after = memory_store.size()
    if bytes_before and bytes_after:
        echo(
            f"{mask_url_credentials(settings.store)}: {(bytes_before - bytes_after) / 1e6:,.1f} MB "
            f"freed of {bytes_before / 1e6:,.1f}"
        )


def _describe_saved_runs(memory_store: MemoryStore) -> Iterator[str]:
    """Say of each saved run what it holds of earlier states."""
    saved_runs = memory_store.runs.held()
    for run_row in saved_runs.iter_rows(named=True):
        size_text = (
            f"{run_row['own_bytes'] / 1e6:8,.2f} MB of its own of {run_row['bytes'] / 1e6:8,.2f}"
        )
        run_name = shorten_line(run_row["name"])
        saved_time = f"{run_row['saved_at']:%Y-%m-%d %H:%M}"
        yield f"{run_row['run_id']}  {saved_time}  {size_text}  {run_row['level']:8}{run_name}"
    yield (
        f"{count_noun(saved_runs.height, 'saved runs')}; --drop ID removes one with what it "
        "alone holds"
    )


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
    """List the benchmarks that memlab reads by name, with licence, parts, size and checksum of
    their files.
    """
    from memlab.datasets.fetch import list_published_benchmarks

    for (
        benchmark_name,
        license_name,
        split_names,
        n_bytes,
        checksum,
        source_url,
    ) in list_published_benchmarks().iter_rows():
        megabytes = f"{n_bytes / 1e6:,.0f} MB" if n_bytes else ""
        echo(f"{benchmark_name:20}{license_name:17}{megabytes:>9}  {split_names}")
        checksum_note = "not fetched: no published checksum"
        if checksum:
            checksum_note = f"SHA-256 {checksum}"
        echo(f"{'':20}{source_url}\n{'':20}{checksum_note}")


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
        from memlab.llm.service_probing import probe_and_describe_service

        for output_line in probe_and_describe_service(memlab.llm.configured_service(service)):
            echo(mask_url_credentials(output_line))
        return
    if encoder is not None:
        from memlab.embed.encoder_description import encoder_description_lines

        for output_line in encoder_description_lines(memlab.embed.load(encoder)):
            echo(escape_line(output_line))
        return
    settings, origin_by_name = opt.read_settings_and_origins(store=store)
    for setting_name, setting_value in settings.model_dump(exclude={"llm"}).items():
        echo(
            f"{setting_name:12} {mask_url_credentials(str(setting_value)):45} "
            f"{origin_by_name[setting_name]}"
        )
    for service_name, service_settings in settings.llm.services.items():
        echo(
            f"service {service_name}: {service_settings.model} at "
            f"{mask_url_credentials(service_settings.base_url)} {origin_by_name['llm']}"
        )
    echo(f"\nmemlab {installed_version_or_note('memlab')}, Python {platform.python_version()}")
    echo(
        ", ".join(
            f"{package_name} {installed_version_or_note(package_name)}"
            for package_name in ("lancedb", "polars", "torch", "transformers", "plotly")
        )
    )
    try:
        memory_store = memlab.MemoryStore.open(settings.store, create=False)
    except MemlabError as error:
        echo(f"\n{mask_url_credentials(str(error))}")
        return
    # A comparison writes datasets too: when one was written is not when it was ingested.
    stored_datasets = memory_store.datasets().rename({"ingested_at": "last_written"})
    echo(f"\n{opt.format_whole_table(stored_datasets)}\n{memory_store.versions()}")
    if stored_datasets.height > 1:
        chosen_name = escape_line(memory_store.chosen() or "")
        echo(f"commands ask {chosen_name}, {opt.LAST_INGESTED}")
    for dataset_name in memory_store.datasets()["name"]:
        stored_questions = memory_store.questions(dataset_name, columns=["source"])
        question_sources = describe_question_sources_or_empty(stored_questions)
        if question_sources:
            echo(f"{escape_line(dataset_name)}: questions: {question_sources}")
        facts_note = memlab.indexing.earlier_facts_note(memory_store, dataset_name)
        if facts_note:
            echo(f"{escape_line(dataset_name)}: {facts_note}")
