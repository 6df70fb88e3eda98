"""Settings: ``memlab.toml`` in the current directory, then ``MEMLAB_*`` variables, then flags.

Later ones win.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError
from pydantic_settings import EnvSettingsSource

from memlab.errors import DataError, explain_arguments

FILE = "memlab.toml"
PREFIX = "MEMLAB_"
TOKEN_VARIABLE = "MEMLAB_MEMORY_TOKEN"
RESERVED_VARIABLES = (TOKEN_VARIABLE, "MEMLAB_NOTEBOOK", "MEMLAB_LOG_PROGRESS")
"""Environment variables that are no settings: the token of memories over HTTP, and the mark of a
notebook run.
"""


Parameter = Literal["temperature", "seed", "max_tokens", "response_format", "encoding_format"]
"""What can be left out of requests to a service; see :class:`memlab.llm.Service`."""


class ServiceSettings(BaseModel, extra="forbid"):
    """A language-model service: any OpenAI-compatible endpoint.

    The key itself stays in the environment.
    """

    base_url: str
    model: str
    api_key_env: str | None = None
    timeout: float = Field(60.0, gt=0)
    max_retries: int = Field(3, ge=0)
    max_input: int | None = Field(None, gt=0)
    query_prompt: str = ""
    document_prompt: str = ""
    max_output: int | None = Field(1024, gt=0)
    record: str | None = None
    concurrency: int = Field(4, gt=0, le=64)
    batch: int = Field(32, gt=0, le=2048)
    dimensions: int | None = Field(None, gt=0)
    leave_out: tuple[Parameter, ...] = ()
    input_price: float | None = Field(None, ge=0, allow_inf_nan=False)
    output_price: float | None = Field(None, ge=0, allow_inf_nan=False)


class EmbedSettings(BaseModel, extra="forbid"):
    """A table ``[embed.NAME]``: an encoder of one's own, which ``encoder = "NAME"`` then means.

    :param path: a folder, or a model of the hub: ``owner/name@revision``.
    :param query_prompt: put before a query; by default what the model's files say, and ``""`` for
        none.
    :param document_prompt: the same for a document.
    :param dimensions: of a vector, the first so many; for models that were trained for it.
    :param max_length: tokens of a text that are read; by default what the model's files say.
    :param batch: texts that are read at once; by default as many as suit the device.
    :param dtype: what the transformer's layers are computed in.
    """

    path: str = Field(min_length=1)
    query_prompt: str | None = None
    document_prompt: str | None = None
    dimensions: int | None = Field(default=None, gt=0)
    max_length: int | None = Field(default=None, gt=0)
    batch: int | None = Field(default=None, gt=0)
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"


class LLMSettings(BaseModel, extra="forbid"):
    """The table ``[llm]``: services by name, and further files of recorded answers, which come
    first.
    """

    services: dict[str, ServiceSettings] = {}
    recordings: tuple[str, ...] = ()


class IndexSettings(BaseModel, extra="forbid"):
    """The table ``[index]``: what is made of a session once it is closed.

    See :mod:`memlab.indexing`.

    :param service: what makes it: ``recorded`` (answers that were written down, see
        :func:`memlab.llm.ask`), ``extractive`` (no model, so no facts), or the name of a service
        of ``[llm.services]``.
    :param version: raise it to make everything anew.
    :param min_turns: a session with fewer turns has its facts read, and no summary.
    :param batch: sessions that are written at once.
    :param summaries: whether sessions are summarised.
    :param facts: whether entities and facts are extracted.
    """

    service: str = Field(default="recorded", min_length=1)
    version: int = Field(default=1, ge=0)
    min_turns: int = Field(default=4, ge=1)
    batch: int = Field(default=32, ge=1)
    summaries: bool = True
    facts: bool = True


class RecallSettings(BaseModel, extra="forbid"):
    """The table ``[recall]``: the weights of a fact's score.

    See :mod:`memlab.knowledge.fact_search`.

    Iterating gives each component with its weight; ``calibrated`` is none of them.

    :param vector: weight of the similarity of question and fact.
    :param graph: weight of the fact's nearness to the question's entities in the graph.
    :param confidence: weight of how sure the fact is.
    :param calibrated: whether nearness in the graph is brought to the scale of the question's
        similarities, and confidence counts in proportion to the similarity; else all three are
        summed as they are.

    >>> from memlab.config import RecallSettings
    >>> dict(RecallSettings())
    {'vector': 0.4, 'graph': 0.3, 'confidence': 0.3}
    """

    vector: float = Field(default=0.4, ge=0, allow_inf_nan=False)
    graph: float = Field(default=0.3, ge=0, allow_inf_nan=False)
    confidence: float = Field(default=0.3, ge=0, allow_inf_nan=False)
    calibrated: bool = True

    def __iter__(self) -> Iterator[tuple[str, float]]:  # type: ignore[override]
        """Give each component with its weight."""
        for name, value in super().__iter__():
            if name != "calibrated":
                yield name, value


class Settings(BaseModel, extra="forbid"):
    """The settings of memlab.

    :param store: directory or object-store URI of the LanceDB store.
    :param encoder: ``minilm``, ``hashing``, ``endpoint:NAME``, a name of ``embed``, a directory or
        a hub id.
    :param token_encoder: the encoder of token vectors, where it is another than ``encoder``.
    :param header: fields of the contextual header: scope, time, participants.
    :param pipelines: what ``memlab evaluate`` compares; the first is the baseline. None: controls
        and the best.
    :param plugins: modules that add stages, encoders, measures or formats, found from the current
        directory too.
    :param on_error: stop at a bad record, or put it aside and go on.
    :param gap_minutes: the silence that ends a session of a chat log that does not name its
        sessions.
    :param language: of the conversations, such as ``de``; ``None`` for what a chat log says, else
        English.
    :param seed: of everything that draws.
    :param figures: where figures are exported to.
    :param results: where evaluations and executed notebooks go.
    :param embed: encoders of one's own by name.
    :param llm: language-model services.
    :param index: what is made of finished sessions.
    :param recall: how facts are ranked.
    :param confidence: how sure a fact is; see :class:`memlab.knowledge.ConfidenceSettings`.

    >>> from memlab.config import Settings
    >>> Settings().encoder
    'minilm'
    """

    store: str = Field(".memlab/store", min_length=1)
    encoder: str = Field("minilm", min_length=1)
    token_encoder: str = ""
    header: tuple[Literal["scope", "time", "participants"], ...] = ()
    pipelines: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    on_error: Literal["raise", "quarantine"] = "raise"
    gap_minutes: float = Field(30.0, gt=0, le=5_000_000)
    language: str | None = None
    seed: int = Field(0, ge=0)
    figures: str = Field("figures", min_length=1)
    results: str = Field("results", min_length=1)
    embed: dict[str, EmbedSettings] = {}
    llm: LLMSettings = LLMSettings()
    index: IndexSettings = IndexSettings()
    recall: RecallSettings = RecallSettings()
    confidence: dict[str, Any] = {}


def settings(
    flags: Mapping[str, Any] | None = None, *, directory: str | Path = "."
) -> tuple[Settings, dict[str, str]]:
    """Read the settings, and the source of each.

    :param flags: what the command line gave; ``None`` values count as not given.
    :param directory: where ``memlab.toml`` is looked for.
    :returns: the settings, and for each one ``default``, ``memlab.toml``, the name of a variable,
        or ``flag``.
    :raises DataError: for a file that is no TOML, an unknown name or a wrong value, naming it and
        its source.

    >>> from memlab.config import settings
    >>> in_force, origin = settings({"seed": 3}, directory="/nowhere")
    >>> in_force.seed, origin["seed"], origin["store"]
    (3, 'flag', 'default')
    """
    given_flags = {name: value for name, value in (flags or {}).items() if value is not None}
    layer_by_source = {
        FILE: _read_toml_or_empty(Path(directory) / FILE),
        PREFIX: _read_and_check_environment_settings(),
        "flag": given_flags,
    }
    merged_values = dict[str, Any]()
    origin = dict.fromkeys(Settings.model_fields, "default")
    for source, layer in layer_by_source.items():
        for name, value in layer.items():
            merged_values[name] = _merge_setting_values(merged_values.get(name), value)
            origin[name] = PREFIX + name.upper() if source == PREFIX else source
    return _validate_settings_naming_source(merged_values, origin), origin


def settings_and_names_set_in_file(path: str | Path) -> tuple[Settings, list[str]]:
    """Read the settings that a file alone makes, over the defaults, and the names that it sets.

    :param path: a TOML file of the form of ``memlab.toml``, of any name.
    :raises DataError: for a file that is not there or no TOML, an unknown name or a wrong value.

    >>> import tempfile
    >>> from memlab.config import settings_and_names_set_in_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "slow.toml")
    ...     _ = file.write_text("[confidence]\\nunknown_age = 1.0")
    ...     settings_and_names_set_in_file(file)[0].confidence
    {'unknown_age': 1.0}
    """
    if not Path(path).exists():
        raise DataError(f"{path} is not there; name a file of settings, of the form of {FILE}")
    if not Path(path).is_file():
        raise DataError(f"{path} is no file of settings; name one of the form of {FILE}")
    file_values = _read_toml_or_empty(Path(path))
    return _validate_settings_naming_source(
        file_values, dict.fromkeys(file_values, str(path))
    ), list(file_values)


def _validate_settings_naming_source(
    values_by_name: dict[str, Any], source_by_name: Mapping[str, str]
) -> Settings:
    """Make settings of values; an error names the first that is wrong and its source."""
    try:
        return Settings.model_validate(values_by_name)
    except ValidationError as error:
        first_error = error.errors()[0]
        setting_name = ".".join(map(str, first_error["loc"]))
        source = source_by_name.get(str(first_error["loc"][0]), "?")
        known_names = ", ".join(Settings.model_fields)
        owner_text = "settings are"
        # A service's table may hold a key that somebody wrote into it.
        found_text = "" if first_error["loc"][0] == "llm" else f", found {first_error['input']!r}"
        if first_error["loc"][:2] == ("llm", "services") and len(first_error["loc"]) > 2:
            known_names = ", ".join(ServiceSettings.model_fields)
            owner_text = "a table of [llm.services] has"
        if first_error["loc"][0] == "embed":
            known_names = ", ".join(EmbedSettings.model_fields)
            owner_text = "a table of [embed] has"
        raise DataError(
            f"setting {setting_name!r} (from {source}): {first_error['msg']}{found_text}; "
            f"{owner_text} {known_names}"
        ) from None


def _merge_setting_values(earlier_value: Any, later_value: Any) -> Any:
    """Merge two values of a setting; of tables, fields that the later one does not set are kept."""
    if not (isinstance(earlier_value, dict) and isinstance(later_value, dict)):
        return later_value
    return earlier_value | {
        table_key: _merge_setting_values(earlier_value.get(table_key), inner_value)
        for table_key, inner_value in later_value.items()
    }


def _read_toml_or_empty(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (
        ValueError,
        RecursionError,
    ) as error:  # no TOML, no UTF-8, a number of thousands of digits, deep nesting
        raise DataError(
            f"{path} is not valid TOML: {error}; mend that line or remove the file"
        ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error


def _read_and_check_environment_settings() -> dict[str, Any]:
    if not any(variable.upper().startswith(PREFIX) for variable in os.environ):
        # As in most processes: to find nothing takes pydantic-settings milliseconds.
        return {}
    known_variables = {PREFIX + name.upper() for name in Settings.model_fields}
    own_variables = [
        variable
        for variable in os.environ
        if variable.startswith(PREFIX) and variable not in RESERVED_VARIABLES
    ]
    unknown_variables = [
        variable for variable in own_variables if variable.split("__")[0] not in known_variables
    ]
    if unknown_variables:
        raise DataError(
            f"variable {sorted(unknown_variables)[0]} names no setting; there are "
            f"{', '.join(sorted(known_variables))}"
        )
    try:
        # Its values alone are wanted: `settings` says of each where it came from.
        environment_source = EnvSettingsSource(
            Settings,  # type: ignore[arg-type]
            env_prefix=PREFIX,
            env_nested_delimiter="__",
        )
        return environment_source()
    except (
        Exception
    ) as error:  # pydantic-settings raises its own kinds for a variable that is no JSON
        raise DataError(
            f"a {PREFIX}* variable cannot be read: {error}; write lists and tables as JSON"
        ) from error


explain_arguments(globals())
