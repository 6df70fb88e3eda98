"""What the verbs share: the app, their options, and reading the settings."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

import memlab
from memlab.errors import DataError, MemlabError
from memlab.terminal_text import (
    count_noun,
    escape_controls,
    installed_version_or_note,
    shorten_line,
)

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
        help="An export of a chat tool (file, folder or ZIP), a chat log, a benchmark "
        "(its name once fetched), sample.",
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        help="Such as chatgpt, whatsapp, chatlog, locomo or a plugin's; "
        "found from the content by default."
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


def refuse_place_within_file(place: Path | None) -> Path | None:
    """Refuse a place that cannot be written since a file stands where a folder would."""
    if place is None:
        return None
    for folder in (place, *place.parents):
        if os.path.isfile(folder):
            raise DataError(f"{folder} is a file; name a folder for what is written")
    return place


Out = Annotated[
    Path | None,
    typer.Option(
        help="Directory for what is written.",
        show_default=False,
        callback=refuse_place_within_file,
    ),
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
        help="What intervals and tests take as independent: question, scope, "
        "or auto: scopes where there are five."
    ),
]
LAST_INGESTED = "the last that was ingested; --dataset names another"
"""Why a command asks a dataset that nobody named."""
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


@dataclass(frozen=True)
class FileOptions:
    """How files of conversations are read, and which of their memories and questions are taken."""

    format: Format = None
    pool: Pool = None
    scope: Scopes = None
    sample: Sample = None
    questions: QuestionFile = None
    source: QuestionSources = None


@dataclass(frozen=True)
class SettingOptions:
    """Settings that a verb may be given beside those of memlab.toml and the environment."""

    store: Store = None
    encoder: EncoderName = None
    on_error: OnError = None
    language: Language = None
    seed: Seed = None

    def in_force(self) -> Settings:
        """Give the settings in force, these first."""
        return settings_in_force(
            store=self.store,
            encoder=self.encoder,
            on_error=self.on_error,
            language=self.language,
            seed=self.seed,
        )


@dataclass(frozen=True)
class MemoryOptions:
    """Which memory of which store is asked, and by which encoder."""

    dataset: DatasetName = None
    scope: Scope = None
    store: Store = None
    encoder: EncoderName = None


_plugins: list[str] = []  # what --plugin gave: it stands before the verb


def _print_version_and_exit_if_asked(is_asked: bool) -> None:
    if is_asked:
        typer.echo(installed_version_or_note("memlab"))
        raise typer.Exit


@app.callback()
def _main(
    context: typer.Context,
    plugin: Annotated[
        list[str] | None,
        typer.Option(
            help="A module that adds stages, encoders, measures or formats; may be repeated.",
            metavar="MODULE",
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version.",
            callback=_print_version_and_exit_if_asked,
            is_eager=True,
        ),
    ] = False,
) -> None:
    _plugins[:] = plugin or []
    context.call_on_close(_plugins.clear)


def register_command(
    group: str, example: str, name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as a verb of a group, whose help ends with an example."""
    command = app.command(name, rich_help_panel=group, epilog=f"Example: `memlab {example}`")

    def register(verb: Callable[..., None]) -> Callable[..., None]:
        return command(_flatten_option_groups(verb))

    return register


def _flatten_option_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options of its groups one by one, as typer and callers name them.

    A group is a parameter whose type is a dataclass of options, such as :class:`FileOptions`.
    """
    type_hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(verb).parameters.values():
        annotation = type_hints[parameter.name]
        if is_dataclass(annotation):
            groups[parameter.name] = annotation
            parameters += _parameters_of_option_group(annotation)
        else:
            parameters.append(parameter.replace(annotation=annotation))
    signature = inspect.Signature(parameters)

    def run_verb(*args: Any, **options: Any) -> None:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        arguments = bound.arguments
        for group_name, group in groups.items():
            values = {field.name: arguments.pop(field.name) for field in fields(group)}
            arguments[group_name] = group(**values)
        verb(**arguments)

    run_verb.__name__ = verb.__name__
    run_verb.__doc__ = verb.__doc__
    run_verb.__module__ = verb.__module__
    run_verb.__signature__ = signature  # type: ignore[attr-defined]
    run_verb.__annotations__ = {each.name: each.annotation for each in parameters}
    return run_verb


def _parameters_of_option_group(option_group: Any) -> list[inspect.Parameter]:
    """Give the options of a group as parameters of a function."""
    type_hints = get_type_hints(option_group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=type_hints[field.name],
        )
        for field in fields(option_group)
    ]


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print what steers no terminal: names of files, texts and ids come from outside."""
    typer.echo(escape_controls(str(text)), err=err, nl=nl)


def read_settings_and_origins(**flags: Any) -> tuple[Settings, dict[str, str]]:
    """Read the settings in force and where each is from, and import the plugins that they name.

    :raises DataError: when a plugin cannot be imported.
    """
    settings_found, origin_by_name = memlab.config.settings({"plugins": _plugins or None, **flags})
    if settings_found.plugins:
        enable_local_imports()
    for plugin_name in settings_found.plugins:
        try:
            importlib.import_module(plugin_name)
        except MemlabError:
            raise
        except Exception as error:  # whatever the code of a module raises
            raise DataError(
                f"plugin {plugin_name!r} cannot be imported ({type(error).__name__}: {error}); "
                "name a module of the current directory or of an installed package"
            ) from error
    return settings_found, origin_by_name


def settings_in_force(**flags: Any) -> Settings:
    """Give the settings in force alone."""
    return read_settings_and_origins(**flags)[0]


def enable_local_imports() -> None:
    """Let modules of the current directory be imported, those of all other places first."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def enable_system_imports(systems: Iterable[str]) -> None:
    """Let modules of the current directory be imported where a system is ``module:name``."""
    if any(map(memlab.memories.is_module_reference, systems)):
        enable_local_imports()


def dataset_loading_options(settings: Settings) -> dict[str, Any]:
    """Give the settings that reading a file takes."""
    session_gap = timedelta(minutes=settings.gap_minutes)
    return {
        "on_error": settings.on_error,
        "seed": settings.seed,
        "gap": session_gap,
        "language": settings.language,
    }


def format_whole_table(frame: pl.DataFrame) -> str:
    """Write a table with every row, column and word."""
    import polars as pl

    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=-1, fmt_str_lengths=1000):
        return str(frame)


def load_encoder(settings: Settings, engine: str = "local") -> Encoder:
    """Load the encoder of the settings; with ``ray`` workers of a cluster read its texts."""
    from memlab.embed import load

    services = {
        service_name: memlab.llm.Service(service_name, **service_settings.model_dump())
        for service_name, service_settings in settings.llm.services.items()
    }
    return load(
        settings.encoder,
        header=settings.header,
        services=services,
        engine=engine,
        token_encoder=settings.token_encoder,
    )


def load_files(files: list[Path], options: FileOptions, settings: Settings) -> Iterator[Dataset]:
    """Load files, or some scopes of them, one after the other.

    Of several files the pool is for those that can be pooled.

    :raises DataError: also when scopes are both named and drawn.
    """
    scope_choice = scopes_or_sample_size(options.scope, options.sample)
    for path in files:
        pool = options.pool
        has_one_format = len(files) == 1 or options.format is not None
        if not has_one_format and memlab.datasets.detect(path) != "longmemeval":
            pool = None
        yield memlab.datasets.load(
            path,
            format=options.format,
            pool=pool,
            scopes=scope_choice,
            sources=options.source or None,
            questions=options.questions,
            **dataset_loading_options(settings),
        )


def scopes_or_sample_size(scope: list[str] | None, sample: int | None) -> list[str] | int | None:
    """Give the scopes that ``--scope`` names, or how many ``--sample`` draws; nothing for all.

    :raises DataError: when both are given.
    """
    if scope and sample:
        raise DataError("--scope names the memories and --sample draws some; give one of them")
    return scope or sample


def choose_result_folder_and_print_note(
    settings: Settings,
    name: str,
    file: Path,
    options: FileOptions,
) -> ResultFolder:
    """Give where a dataset, or the part that options choose, has its results; print its note."""
    from memlab.datasets.fetch import resolve_path_or_benchmark_name
    from memlab.experiments.result_folders import choose_result_folder

    dataset_part: dict[str, Any] = {}
    if options.scope:
        dataset_part = {"scopes": sorted(options.scope)}
    elif options.sample:
        dataset_part = {"scopes": options.sample, "seed": settings.seed}
    folder = choose_result_folder(
        name,
        resolve_path_or_benchmark_name(file),
        part=dataset_part,
        results=settings.results,
        figures=settings.figures,
    )
    if folder.note:
        echo(folder.note, err=True)
    return folder


def read_pipelines(text: str) -> list[str]:
    """Give a pipeline, or those of a file named as ``@FILE``.

    Such a file has one a line; empty lines and comments are left out.

    :raises DataError: when the file cannot be read.
    """
    if not text.startswith("@"):
        return [text]
    try:
        file_lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise DataError(
            f"pipelines {text}: {error}; give a text file with one pipeline a line"
        ) from error
    pipelines = []
    for file_line in file_lines:
        pipeline_line = file_line.strip()
        if pipeline_line and not pipeline_line.startswith("#"):
            pipelines.append(pipeline_line)
    return pipelines


def parse_parameter_assignments(texts: list[str]) -> dict[str, Any]:
    """Read ``name=value``: a Python literal where it is one, else text.

    The name of a file becomes its full path.

    :raises DataError: for what has no name or no value.
    """
    parameters: dict[str, Any] = {}
    for assignment in texts:
        parameter_name, equals_sign, value_text = assignment.partition("=")
        if not (parameter_name.isidentifier() and equals_sign):
            raise DataError(
                f"--set {assignment!r} is no assignment; "
                "write it as name=value, for example n_scopes=3"
            )
        try:
            value = ast.literal_eval(value_text.strip())
        except (ValueError, SyntaxError):
            value = value_text
        if isinstance(value, list):
            parameters[parameter_name] = [_full_path_if_file(list_item) for list_item in value]
        else:
            parameters[parameter_name] = _full_path_if_file(value)
    return parameters


def _full_path_if_file(parameter_value: Any) -> Any:
    """Give the full path of what names a file, since a notebook runs in its own folder."""
    if isinstance(parameter_value, str) and os.path.isfile(parameter_value):
        return str(Path(parameter_value).resolve())
    return parameter_value


def print_memory_problems(problems: pl.DataFrame, file: Path) -> None:
    """Print what went wrong, each kind once, and where all of it stands.

    :param problems: ``system``, ``scope``, ``query_id`` and ``problem``.
    """
    from memlab.memories.running_a_memory import merge_problems_into_counted_lines

    if problems.is_empty():
        return
    problem_texts = merge_problems_into_counted_lines(problems)
    for problem_text in problem_texts[:MOST_PROBLEMS]:
        echo(problem_text, err=True)
    n_more = len(problem_texts) - MOST_PROBLEMS
    if n_more > 0:
        echo(f"and {count_noun(n_more, 'more problems')}, in {file}", err=True)


def exit_if_without_result(systems_without_result: list[str]) -> None:
    """End the command with 1 where systems have no result at all.

    :raises typer.Exit: with 1.
    """
    if not systems_without_result:
        return
    verb = "has" if len(systems_without_result) == 1 else "have"
    system_names = shorten_line(", ".join(systems_without_result))
    echo(
        f"{system_names} {verb} no result at all: the numbers in the tables measure nothing",
        err=True,
    )
    raise typer.Exit(1)
