"""What the verbs share: the app, their options, and reading the settings."""

from __future__ import annotations

import ast
import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memlab import config
from memlab.config import Settings
from memlab.errors import DataError, MemlabError

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.records import Dataset

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A workbench for chat memory.",
    rich_markup_mode=None,
)

_named: list[str] = []  # what --plugin gave: it stands before the verb


@app.callback()
def _main(
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            help="A module that adds stages, encoders, measures or formats; may be repeated.", metavar="MODULE"
        ),
    ] = None,
) -> None:
    _named[:] = plugin or []


def settings(flags: Mapping[str, Any]) -> tuple[Settings, dict[str, str]]:
    """Read the settings in force, as :func:`memlab.config.settings` does, and import the plugins that they name.

    :raises DataError: when a plugin cannot be imported.
    """
    chosen, origin = config.settings({"plugins": _named or None, **flags})
    if chosen.plugins and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name in chosen.plugins:
        try:
            importlib.import_module(name)
        except MemlabError:
            raise
        except Exception as error:  # whatever the code of a module raises
            raise DataError(
                f"plugin {name!r} cannot be imported ({type(error).__name__}: {error}); name a module of the current "
                "directory or of an installed package"
            ) from error
    return chosen, origin


Path_ = Annotated[Path, typer.Argument(help="A LoCoMo, LongMemEval or chat-log file.", show_default=False)]
Store = Annotated[str | None, typer.Option(help="Directory or URI of the store.", show_default=False)]
EncoderName = Annotated[
    str | None, typer.Option("--encoder", help="minilm, hashing, endpoint:NAME, a directory, a hub id, or a plugin's.")
]
Format = Annotated[
    str | None, typer.Option(help="locomo, longmemeval, chatlog or a plugin's; found from the file by default.")
]
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
        values[name] = [_full(item) for item in value] if isinstance(value, list) else _full(value)
    return values


def _full(value: Any) -> Any:
    # A notebook runs in its own folder.
    return str(Path(value).resolve()) if isinstance(value, str) and Path(value).is_file() else value
