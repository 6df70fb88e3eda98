"""What the verbs share: the app, their options, and reading the settings."""

from __future__ import annotations

import ast
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import memlab
from memlab.errors import DataError, MemlabError
from memlab.terminal import count_noun, escape_controls, package_version, shorten_line

if TYPE_CHECKING:
    import polars as pl

    from memlab.config import Settings
    from memlab.embed import Encoder
    from memlab.experiments.result_folders import ResultFolder
    from memlab.records import Dataset

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A workbench for chat memory.",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="markdown",
)
MOST_PROBLEMS = 20
"""Lines of problems that are printed."""
MOST_RESULTS = 1_000_000
"""The largest count that an option takes."""

Path_ = Annotated[
    Path,
    typer.Argument(
        help="An export of a chat tool (file, folder or ZIP), a chat log, a benchmark (its name once fetched), sample.",
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        help="Such as chatgpt, whatsapp, chatlog, locomo or a plugin's; found from the content by default."
    ),
]
Pool = Annotated[
    int | None, typer.Option(help="Pool a LongMemEval file to this many sessions a question.")
]
Systems = Annotated[
    list[str] | None,
    typer.Option(
        "--system",
        help="A pipeline, module:name of a memory, or http://HOST:PORT; may be repeated.",
    ),
]
Rankings = Annotated[
    list[Path] | None,
    typer.Option(
        "--run",
        help="A ranking from elsewhere: a TREC run of turns, JSON or JSONL; may be repeated.",
    ),
]
Service = Annotated[
    str | None,
    typer.Option(help="recorded, extractive, or one of [llm.services]; the setting index.service."),
]
Engine = Annotated[
    str, typer.Option(help="local, or ray: the work goes to a Ray cluster (RAY_ADDRESS).")
]
Jobs = Annotated[
    int, typer.Option(help="How many processes rank, each some scopes with one thread.", min=1)
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Ask no language model; estimate the tokens and the price of asking."
    ),
]
DAY = 86_400.0
"""Seconds: more than a computer can be asked to wait for is refused."""


def refuse_nan(value: float | None) -> float | None:
    """Refuse what is no number, which every comparison with a bound lets pass."""
    if value is not None and value != value:
        raise typer.BadParameter("nan is no number")
    return value


Timeout = Annotated[
    float,
    typer.Option(help="Seconds for one call of a memory.", min=0.001, max=DAY, callback=refuse_nan),
]
Out = Annotated[
    Path | None, typer.Option(help="Directory for what is written.", show_default=False)
]
Source = Annotated[Path, typer.Option(help="Where the notebooks are.")]
NOTEBOOKS = Path("notebooks")
Store = Annotated[str | None, typer.Option(help="Directory or URI of the store.")]
EncoderName = Annotated[
    str | None,
    typer.Option(help="minilm, hashing, endpoint:NAME, a directory, a hub id, or a plugin's."),
]
OnError = Annotated[str | None, typer.Option(help="raise or quarantine.")]
Language = Annotated[
    str | None,
    typer.Option(
        help="Of the conversations, such as de; by default what a chat log says, else English."
    ),
]
Seed = Annotated[int | None, typer.Option(help="Seed of everything that draws.")]
Unit = Annotated[
    str,
    typer.Option(
        help="What intervals and tests take as independent: question, scope, or auto: scopes where there are five."
    ),
]
DatasetName = Annotated[
    str | None, typer.Option(help="A dataset of the store; by default the last ingested.")
]
Scope = Annotated[str | None, typer.Option(help="Whose memory; the only one by default.")]
Scopes = Annotated[
    list[str] | None, typer.Option("--scope", help="Only this memory; may be repeated.")
]
QuestionSources = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        help="Only questions that are written, proposed or accepted; may be repeated.",
        show_default=False,
    ),
]
QuestionFile = Annotated[
    Path | None,
    typer.Option(
        "--questions",
        help="A file of questions about these conversations, such as proposed.jsonl.",
        show_default=False,
    ),
]
Sample = Annotated[
    int | None, typer.Option(help="Only so many memories, drawn by the seed.", min=1)
]
K = Annotated[int, typer.Option("--k", "-k", help="How many results.", min=1, max=MOST_RESULTS)]

_plugins: list[str] = []  # what --plugin gave: it stands before the verb


@app.callback()
def _main(
    context: typer.Context,
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            help="A module that adds stages, encoders, measures or formats; may be repeated.", metavar="MODULE"
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=lambda wanted: wanted and _version(),
                           is_eager=True)
    ] = False,
) -> None:  # fmt: skip
    _plugins[:] = plugin or []
    context.call_on_close(_plugins.clear)


def _version() -> None:
    typer.echo(package_version("memlab"))
    raise typer.Exit


def register_command(
    group: str, example: str, name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a verb of a group, whose help ends with an example."""
    return app.command(name, rich_help_panel=group, epilog=f"Example: `memlab {example}`")


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print what steers no terminal: names of files, texts and ids come from outside."""
    typer.echo(escape_controls(str(text)), err=err, nl=nl)


def settings(**flags: Any) -> tuple[Settings, dict[str, str]]:
    """Read the settings in force and where each is from, and import the plugins that they name.

    :raises DataError: when a plugin cannot be imported.
    """
    chosen, origin = memlab.config.settings({"plugins": _plugins or None, **flags})
    if chosen.plugins:
        enable_local_imports()
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


def settings_in_force(**flags: Any) -> Settings:
    """Give the settings in force alone."""
    return settings(**flags)[0]


def enable_local_imports() -> None:
    """Let modules of the current directory be imported, those of all other places first."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def enable_system_imports(systems: Iterable[str]) -> None:
    """Let modules of the current directory be imported where a system is ``module:name``."""
    if any(map(memlab.memories.is_module_reference, systems)):
        enable_local_imports()


def reading_options(chosen: Settings) -> dict[str, Any]:
    """Give the settings that reading a file takes."""
    gap = timedelta(minutes=chosen.gap_minutes)
    return {
        "on_error": chosen.on_error,
        "seed": chosen.seed,
        "gap": gap,
        "language": chosen.language,
    }


def format_table(frame: pl.DataFrame) -> str:
    """Write a table with every row, column and word."""
    import polars as pl

    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=-1, fmt_str_lengths=1000):
        return str(frame)


def load_encoder(chosen: Settings, engine: str = "local") -> Encoder:
    """Load the encoder of the settings; with ``ray`` its texts are read by the workers of a cluster."""
    from memlab.embed import load

    services = {
        name: memlab.llm.Service(name, **each.model_dump())
        for name, each in chosen.llm.services.items()
    }
    return load(
        chosen.encoder,
        header=chosen.header,
        services=services,
        engine=engine,
        token_encoder=chosen.token_encoder,
    )


def load_files(
    files: list[Path],
    chosen: Settings,
    *,
    format: str | None,
    pool: int | None,
    scope: list[str] | None = None,
    sample: int | None = None,
    source: list[str] | None = None,
    questions: Path | None = None,
) -> Iterator[Dataset]:
    """Load files, or some scopes of them, one after the other; of several the pool is for those that can be pooled.

    :param source: of the questions that are kept; ``questions``: a file of more of them, see
        :func:`memlab.datasets.load`.
    :raises DataError: also when scopes are both named and drawn.
    """
    scopes = wanted_scopes(scope, sample)
    for path in files:
        fits = (
            len(files) == 1 or format is not None or memlab.datasets.detect(path) == "longmemeval"
        )
        yield memlab.datasets.load(
            path,
            format=format,
            pool=pool if fits else None,
            scopes=scopes,
            sources=source or None,
            questions=questions,
            **reading_options(chosen),
        )


def wanted_scopes(scope: list[str] | None, sample: int | None) -> list[str] | int | None:
    """Give the scopes that ``--scope`` names, or how many ``--sample`` draws; nothing for all.

    :raises DataError: when both are given.
    """
    if scope and sample:
        raise DataError("--scope names the memories and --sample draws some; give one of them")
    return scope or sample


def result_folder(
    chosen: Settings,
    name: str,
    file: Path,
    *,
    scope: list[str] | None = None,
    sample: int | None = None,
) -> ResultFolder:
    """Give where a dataset has its results; what is to be said of that is said."""
    from memlab.datasets.fetch import locate_file
    from memlab.experiments.result_folders import choose_result_folder

    part: dict[str, Any] = {}
    if scope:
        part = {"scopes": sorted(scope)}
    elif sample:
        part = {"scopes": sample, "seed": chosen.seed}
    folder = choose_result_folder(
        name, locate_file(file), part=part, results=chosen.results, figures=chosen.figures
    )
    if folder.note:
        echo(folder.note, err=True)
    return folder


def pipeline_lines(text: str) -> list[str]:
    """Give a pipeline, or those of a file named as ``@FILE``: one a line, empty lines and comments left out.

    :raises DataError: when the file cannot be read.
    """
    if not text.startswith("@"):
        return [text]
    try:
        lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise DataError(
            f"pipelines {text}: {error}; give a text file with one pipeline a line"
        ) from error
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def read_assignments(texts: list[str]) -> dict[str, Any]:
    """Read ``name=value``: a Python literal where it is one, else text; the name of a file becomes its full path.

    :raises DataError: for what has no name or no value.
    """
    values: dict[str, Any] = {}
    for each in texts:
        name, equals, text = each.partition("=")
        if not (name.isidentifier() and equals):
            raise DataError(
                f"--set {each!r} is no assignment; write it as name=value, for example n_scopes=3"
            )
        try:
            value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            value = text
        values[name] = (
            [_full_path(item) for item in value] if isinstance(value, list) else _full_path(value)
        )
    return values


def _full_path(value: Any) -> Any:
    # A notebook runs in its own folder.
    return str(Path(value).resolve()) if isinstance(value, str) and os.path.isfile(value) else value


def echo_problems(problems: pl.DataFrame, file: Path) -> None:
    """Print what went wrong, each kind once, and where all of it stands.

    :param problems: ``system``, ``scope``, ``query_id`` and ``problem``.
    """
    from memlab.memories.collecting import problem_lines

    if problems.is_empty():
        return
    lines = problem_lines(problems)
    for line in lines[:MOST_PROBLEMS]:
        echo(line, err=True)
    n_more = len(lines) - MOST_PROBLEMS
    if n_more > 0:
        echo(f"and {count_noun(n_more, 'more problems')}, in {file}", err=True)


def end_without_result(systems: list[str]) -> None:
    """End the command with 1 where systems have no result at all.

    :raises typer.Exit: with 1.
    """
    if not systems:
        return
    verb = "has" if len(systems) == 1 else "have"
    names = shorten_line(", ".join(systems))
    echo(f"{names} {verb} no result at all: the numbers in the tables measure nothing", err=True)
    raise typer.Exit(1)
