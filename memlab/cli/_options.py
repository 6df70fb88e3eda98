"""What the verbs share: the app, their options, and reading the settings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memlab.config import Settings
from memlab.errors import DataError

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
Pipelines = Annotated[
    list[str] | None,
    typer.Option("--pipeline", help="For example 'hybrid | mmr', or @FILE with one a line; may be repeated."),
]
Out = Annotated[Path | None, typer.Option(help="Directory for what is written.", show_default=False)]


def reading(chosen: Settings) -> dict[str, Any]:
    gap = timedelta(minutes=chosen.gap_minutes)
    return {"on_error": chosen.on_error, "seed": chosen.seed, "gap": gap, "language": chosen.language}


def load_encoder(chosen: Settings) -> Encoder:
    from memlab.embed import load
    from memlab.llm import Service

    services = {name: Service(name, **service.model_dump()) for name, service in chosen.llm.services.items()}
    return load(chosen.encoder, services=services)


def load_files(files: list[Path], chosen: Settings, *, format: str | None, pool: int | None) -> Iterator[Dataset]:
    """Load files one after the other; among several the pool is for those that can be pooled."""
    from memlab import datasets

    for path in files:
        fits = len(files) == 1 or format is not None or datasets.detect(path) == "longmemeval"
        yield datasets.load(path, format=format, pool=pool if fits else None, **reading(chosen))


def pipeline_lines(given: str) -> list[str]:
    """Give a pipeline, or those of a file named as ``@FILE``: one a line, empty lines and comments left out.

    :raises DataError: when the file cannot be read.
    """
    if not given.startswith("@"):
        return [given]
    try:
        lines = Path(given[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"pipelines {given}: {error}; give a text file with one pipeline a line") from error
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def assignments(given: list[str]) -> dict[str, Any]:
    """Read ``name=value``: a Python literal where it is one, else text; the name of a file becomes its full path.

    :raises DataError: for what has no name or no value.
    """
    values: dict[str, Any] = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not (name.isidentifier() and equals):
            raise DataError(f"--set {each!r} is no assignment; write it as name=value, for example n_scopes=3")
        try:
            value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            value = text
        values[name] = [_full(one) for one in value] if isinstance(value, list) else _full(value)
    return values


def _full(value: Any) -> Any:
    # A notebook runs in its own folder.
    return str(Path(value).resolve()) if isinstance(value, str) and Path(value).is_file() else value
