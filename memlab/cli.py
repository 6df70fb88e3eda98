"""The command line ``memlab``: thin, every verb is one public function or a few."""

from __future__ import annotations

import contextlib
import platform
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memlab.config import Settings, settings
from memlab.errors import DataError, MemlabError
from memlab.terminal import issue_lines, no_secret, one_line, only, package_version, short

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.records import Dataset

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help="A workbench for chat memory."
)

Path_ = Annotated[Path, typer.Argument(help="A LoCoMo, LongMemEval or chat-log file.", show_default=False)]
Store = Annotated[str | None, typer.Option(help="Directory or URI of the store.", show_default=False)]
EncoderName = Annotated[
    str | None, typer.Option("--encoder", help="minilm, hashing, endpoint:NAME, a directory, a hub id.")
]
Format = Annotated[str | None, typer.Option(help="locomo, longmemeval or chatlog; found from the file by default.")]
OnError = Annotated[str | None, typer.Option(help="raise or quarantine.", show_default=False)]
Pool = Annotated[int | None, typer.Option(help="Pool a LongMemEval file to this many sessions a question.")]
Seed = Annotated[int | None, typer.Option(help="Seed of everything that draws.", show_default=False)]
Pipelines = Annotated[list[str] | None, typer.Option("--pipeline", help="For example 'hybrid | mmr'; may be repeated.")]
Out = Annotated[Path | None, typer.Option(help="Directory for what is written.", show_default=False)]


@app.command()
def ingest(
    dataset: Path_,
    store: Store = None,
    encoder: EncoderName = None,
    format: Format = None,
    on_error: OnError = None,
    pool: Pool = None,
    seed: Seed = None,
) -> None:
    """Load conversations into the store, encode what is new, and build the indexes."""
    from memlab import datasets
    from memlab.store import MemoryStore

    chosen, _ = settings({"store": store, "encoder": encoder, "on_error": on_error, "seed": seed})
    # What can be refused is refused before the store is made.
    read = datasets.stream(dataset, format=format, pool=pool, **_reading(chosen))
    model = _encoder(chosen)
    memory = MemoryStore.open(chosen.store)
    names: dict[str, None] = {}

    def parts() -> Iterator[Dataset]:
        for part in read:
            typer.echo(part.describe())
            for line in issue_lines(part):
                typer.echo(line)
            names[part.name] = None
            yield part

    typer.echo(memory.ingest(parts(), progress=True))
    for name in names:
        added = memory.backfill(model, name, header=chosen.header)
        typer.echo(f"{name}: {added:,} turns newly encoded by {chosen.encoder}")
    typer.echo(memory.create_indexes(model, header=chosen.header))
    typer.echo(f"store: {no_secret(chosen.store)}")


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    dataset: Annotated[
        str | None, typer.Option(help="Name of a dataset in the store; the only one by default.")
    ] = None,
    scope: Annotated[str | None, typer.Option(help="Whose memory; the only one by default.")] = None,
    pipeline: Annotated[str, typer.Option(help="The pipeline.")] = "hybrid",
    level: Annotated[str, typer.Option(help="turn or session.")] = "turn",
    k: Annotated[int, typer.Option(help="How many results.", min=1)] = 10,
    store: Store = None,
    encoder: EncoderName = None,
) -> None:
    """Search one memory of the store."""
    import polars as pl

    from memlab.pipelines import pipeline as read
    from memlab.records import LEVELS, id_part
    from memlab.retrieve import Bench
    from memlab.store import MemoryStore

    stages = read(pipeline)
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"the query is not valid text: {query[error.start]!r} at {error.start}; write it in the terminal's encoding"
        ) from error
    if level not in LEVELS:
        raise DataError(f"level is {level!r}; choose turn or session")
    chosen, _ = settings({"store": store, "encoder": encoder})
    memory = MemoryStore.open(chosen.store, create=False)
    name = only(memory.datasets()["name"].to_list(), dataset, "dataset", "memlab ingest FILE puts one there")
    data = memory.dataset(name)
    named = id_part(scope) if scope and scope not in data.scopes else scope
    wanted = only(data.scopes, named, "scope", "see memlab info")
    bench = Bench.of(data.take([wanted]), encoder=_encoder(chosen), store=memory, header=chosen.header)
    asked = bench.with_queries(pl.DataFrame({"scope": [wanted], "text": [query]}))
    run = stages.run(asked, level=level).top(k)
    texts = run.text_of(run.frame["doc_id"].to_list()) if run.text_of else []
    for (rank, score, doc_id), text in zip(run.frame.select("rank", "score", "doc_id").iter_rows(), texts, strict=True):
        typer.echo(f"{rank:>3}  {score:.4f}  {doc_id}\n     {short(text)}")


@app.command()
def evaluate(
    dataset: Path_,
    pipeline: Pipelines = None,
    out: Out = None,
    store: Store = None,
    encoder: EncoderName = None,
    format: Format = None,
    on_error: OnError = None,
    pool: Pool = None,
    scope: Annotated[list[str] | None, typer.Option(help="Only this memory; may be repeated.")] = None,
    seed: Seed = None,
) -> None:
    """Measure pipelines on a dataset, at turn and session level, and write runs, qrels and reports."""
    from memlab import datasets
    from memlab.experiment import measurable, run_pipelines
    from memlab.pipelines import pipeline as parse
    from memlab.retrieve import Bench
    from memlab.store import MemoryStore

    chosen, _ = settings(
        {"store": store, "encoder": encoder, "on_error": on_error, "seed": seed, "pipelines": pipeline or None}
    )
    stages = [parse(text) for text in chosen.pipelines]
    data = datasets.load(dataset, format=format, pool=pool, **_reading(chosen))
    data = data.take(scope) if scope else data
    typer.echo(data.describe())
    for line in issue_lines(data):
        typer.echo(line)
    levels = measurable(data)
    if "turn" not in levels:
        typer.echo("no question cites turns: sessions alone are measured")
    memory = MemoryStore.open(chosen.store)
    bench = Bench.of(data, encoder=_encoder(chosen), store=memory, header=chosen.header)
    directory = out or Path(chosen.results) / data.name
    result = run_pipelines(stages, bench, data, levels=levels, seed=chosen.seed)
    result.write(directory)
    result.save(memory)
    typer.echo(result.to_markdown())
    typer.echo(f"runs, qrels, per-query results and reports: {directory}")


@app.command()
def notebooks(
    dataset: Path_ = Path("data/sample/sample.jsonl"),
    out: Out = None,
    source: Annotated[Path, typer.Option(help="Where the notebooks are.")] = Path("notebooks"),
    only: Annotated[str, typer.Option(help="Run only notebooks whose name holds this.")] = "",
    store: Store = None,
    encoder: EncoderName = None,
    pool: Pool = None,
    seed: Seed = None,
) -> None:
    """Run the notebooks on a dataset; the executed ones are kept, figures are exported."""
    from memlab.notebooks import run_notebooks

    chosen, _ = settings({"store": store, "encoder": encoder, "seed": seed})
    parameters = {
        "dataset": str(dataset.resolve()),
        "pool": pool,
        "seed": chosen.seed,
        "encoder": chosen.encoder,
        "store": chosen.store if "://" in chosen.store else str(Path(chosen.store).resolve()),
        "figures": str(Path(chosen.figures).resolve()),
    }
    directory = out or Path(chosen.results) / "notebooks"
    for path, seconds in run_notebooks(source, directory, parameters, only=only):
        typer.echo(f"{path}  {seconds:.0f} s")


@app.command()
def figures(
    directory: Annotated[
        Path | None, typer.Argument(help="Where figures were exported to.", show_default=False)
    ] = None,
) -> None:
    """Make the gallery of all exported figures."""
    from memlab.figures import gallery

    chosen, _ = settings({"figures": str(directory) if directory else None})
    typer.echo(gallery(chosen.figures))


@app.command()
def synth(
    path: Annotated[Path, typer.Argument(help="The JSONL file to write.")],
    turns: Annotated[int, typer.Option(help="How many turns, 50 to 1,000,000.")] = 2000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
) -> None:
    """Write synthetic conversations with questions and exact evidence."""
    from memlab.datasets import synthetic

    synthetic.write(path, turns, seed=seed)
    typer.echo(f"{path}: {path.stat().st_size:,} bytes")


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="locomo, longmemeval (the oracle file), longmemeval-s, longmemeval-m.")],
    directory: Annotated[Path, typer.Option(help="Where the file goes.")] = Path("data"),
) -> None:
    """Download a published dataset; resumes, and checks the checksum."""
    from memlab.datasets.fetch import SOURCES
    from memlab.datasets.fetch import fetch as download

    typer.echo(f"{download(name, directory=directory)}  (licence: {SOURCES[name].license})")


@app.command()
def info(store: Store = None, encoder: EncoderName = None) -> None:
    """Print the settings in force with their origin, versions, and what the store holds."""
    from memlab.store import MemoryStore

    chosen, origin = settings({"store": store, "encoder": encoder})
    for name, value in chosen.model_dump(exclude={"llm"}).items():
        typer.echo(f"{name:12} {no_secret(str(value)):45} {origin[name]}")
    for name, service in chosen.llm.services.items():
        typer.echo(f"service {name}: {service.model} at {no_secret(service.base_url)} {origin['llm']}")
    typer.echo(f"\nmemlab {package_version('memlab')}, Python {platform.python_version()}")
    typer.echo(", ".join(f"{p} {package_version(p)}" for p in ("lancedb", "polars", "torch", "transformers", "plotly")))
    try:
        memory = MemoryStore.open(chosen.store, create=False)
    except MemlabError as error:
        typer.echo(f"\n{no_secret(str(error))}")
        return
    typer.echo(f"\n{memory.datasets()}\n{memory.versions()}")


def main() -> None:
    """Run the command line; an error that the user can mend is one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app()
    except MemlabError as error:
        typer.echo(f"memlab: {one_line(no_secret(str(error)))}", err=True)
        raise SystemExit(2) from None


def _reading(chosen: Settings) -> dict[str, Any]:
    return {"on_error": chosen.on_error, "seed": chosen.seed, "gap": timedelta(minutes=chosen.gap_minutes)}


def _encoder(chosen: Settings) -> Encoder:
    from memlab.embed import load
    from memlab.llm import Service

    services = {name: Service(name, **service.model_dump()) for name, service in chosen.llm.services.items()}
    return load(chosen.encoder, services=services)
