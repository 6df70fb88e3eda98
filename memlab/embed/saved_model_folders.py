"""Models that sentence-transformers, transformers, model2vec or PyLate saved: what memlab takes
from their folders.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from memlab.config import EmbedSettings
from memlab.embed import model_files
from memlab.embed.encoder import Encoder, EncoderIdentity
from memlab.embed.encoder_prompts import choose_prompts, warn_without_prompts
from memlab.embed.model_kinds import model_kind
from memlab.embed.multi_vector_encoder import MultiVectorEncoder
from memlab.embed.static_encoder import StaticEncoder, load_static_model
from memlab.embed.token_centring import VOCABULARY, has_common_direction
from memlab.embed.transformer_encoder import TransformerEncoder
from memlab.errors import ModelError, warn_user


def load_folder(
    path: Path, *, name: str, revision: str, own: EmbedSettings | None = None
) -> Encoder:
    """Load a model from its folder, as what it is; without a pooling in its files it is the mean.

    :param name: its portable name.
    :param revision: of the hub, or the digest of the weights.
    :param own: what the settings say of it.
    :raises ModelError: when it cannot be loaded, or gives no vectors that memlab compares.
    """
    loaders = {"dense": _load_dense, "static": _load_static, "multi-vector": _load_multi_vector}
    if own is None:
        own = EmbedSettings(path=str(path))
    named_identity = EncoderIdentity("", name, revision)
    encoder = loaders[model_kind(path, name)](path, named_identity, own)
    if not encoder.identity.query_prompt + encoder.identity.document_prompt:
        warn_without_prompts(path, name, own)
    return encoder


def _load_dense(
    path: Path, named_identity: EncoderIdentity, own_settings: EmbedSettings
) -> Encoder:
    from sentence_transformers.sentence_transformer.modules import Transformer

    model = model_files.load_model(path, named_identity.model, dtype=_torch_dtype(own_settings))
    if not isinstance(model[0], Transformer):
        raise ModelError(
            f"encoder {named_identity.model}: it begins with {type(model[0]).__name__}, expected a "
            "transformer"
        )
    for module in list(model)[1:]:
        module.float()  # as they are small, only the transformer is computed in fewer bits
    identity = replace(
        _with_width(named_identity, model, own_settings),
        kind="transformer",
        pooling=_pooling(model, path),
        max_length=_max_length(model, named_identity.model, own_settings),
        normalized=_is_normalized(model),
        dtype=own_settings.dtype,
    )
    _warn_of_similarity(model, identity)
    encoder = TransformerEncoder(path, identity, batch=own_settings.batch)
    encoder._model = model
    if has_common_direction(encoder.token_mean):
        encoder.identity = replace(identity, token_mean=VOCABULARY)
    return encoder


def _load_static(
    path: Path, named_identity: EncoderIdentity, own_settings: EmbedSettings
) -> Encoder:
    if own_settings.max_length is not None:
        raise ModelError(
            f"encoder {named_identity.model} is a table of vectors and reads texts whole: leave "
            "max_length out"
        )
    model = load_static_model(path, named_identity.model)
    identity = replace(
        _with_width(named_identity, model, own_settings),
        kind="static",
        pooling="mean",
        normalized=_is_normalized(model),
    )
    _warn_of_similarity(model, identity)
    encoder = StaticEncoder(path, identity, batch=own_settings.batch)
    encoder._model = model
    return encoder


def _load_multi_vector(
    path: Path, named_identity: EncoderIdentity, own_settings: EmbedSettings
) -> Encoder:
    if own_settings.dimensions is not None:
        raise ModelError(
            f"encoder {named_identity.model} gives a vector for each token, which is not cut: "
            "leave dimensions out"
        )
    encoder_kind = "multi-vector encoder"
    model = model_files.load_model(
        path, named_identity.model, what=encoder_kind, dtype=_torch_dtype(own_settings)
    )
    transformer = model[0]
    if own_settings.max_length is not None or transformer.document_length is None:
        transformer.document_length = _max_length(model, named_identity.model, own_settings)
    identity = replace(
        _with_width(named_identity, model, own_settings),
        kind="multi-vector",
        pooling=_describe_queries(transformer),
        max_length=transformer.document_length,
        dtype=own_settings.dtype,
    )
    encoder = MultiVectorEncoder(path, identity, batch=own_settings.batch)
    encoder._model = model
    return encoder


def _pooling(model: Any, path: Path) -> str:
    """Name how the vectors of tokens become one; a model without a pooling gets the mean."""
    from sentence_transformers.sentence_transformer.modules import Pooling

    pooling_modules = [module for module in model if isinstance(module, Pooling)]
    is_stated = bool(pooling_modules) and (path / "modules.json").is_file()
    if not pooling_modules:
        pooling_modules = [Pooling(model[0].get_embedding_dimension())]
        model.append(pooling_modules[0])
    pooling_modes = pooling_modules[0].pooling_mode
    if not isinstance(pooling_modes, str):
        pooling_modes = "+".join(pooling_modes)
    return pooling_modes if is_stated else f"{pooling_modes} (assumed)"


def _is_normalized(model: Any) -> bool:
    from sentence_transformers.sentence_transformer.modules import Normalize

    return any(isinstance(module, Normalize) for module in model)


def _warn_of_similarity(model: Any, identity: EncoderIdentity) -> None:
    """Warn of a model that was trained for another similarity than the cosine: only cosines are
    compared here.
    """
    trained_for = model.similarity_fn_name
    if trained_for not in (None, "cosine") and not identity.normalized:
        warn_user(
            f"encoder {identity.model} was trained for the similarity {trained_for!r} of vectors "
            "as they "
            "are; memlab brings them to length 1 and compares their cosines"
        )


def _describe_queries(transformer: Any) -> str:
    """Say how a ColBERT reads queries, which their vectors depend on."""
    expansion = transformer.query_expansion
    if expansion is not None:
        attended_text = "seen" if expansion["attend"] else "unseen"
        return f"no (queries expanded to {expansion['length']} tokens, {attended_text})"
    if transformer.query_length is not None:
        return f"no (queries of {transformer.query_length} tokens)"
    return "no"


def _with_width(
    named_identity: EncoderIdentity, model: Any, own_settings: EmbedSettings
) -> EncoderIdentity:
    """Add prompts and dimensions of a model to what names it.

    Vectors are cut here and not by the library.

    :raises ModelError: when the settings ask for more dimensions than there are.
    """
    wanted_width = getattr(model, "truncate_dim", None)
    model.truncate_dim = None
    model_width = model.get_embedding_dimension()
    if own_settings.dimensions is not None:
        wanted_width = own_settings.dimensions
        if wanted_width > model_width:
            raise ModelError(
                f"encoder {named_identity.model} gives {model_width} dimensions, and dimensions of "
                f"the settings is {wanted_width}"
            )
    query_prompt, document_prompt = choose_prompts(
        model.prompts, model.default_prompt_name, own_settings
    )
    prompted = replace(
        named_identity, query_prompt=query_prompt, document_prompt=document_prompt, dim=model_width
    )
    if wanted_width is None or wanted_width >= model_width:
        return prompted
    return replace(prompted, dim=wanted_width, cut_from=model_width)


def _max_length(model: Any, name: str, own_settings: EmbedSettings) -> int:
    """Give how many tokens of a text are read.

    :raises ModelError: when the settings ask for more than the model has positions.
    """
    positions = _positions(model)
    if own_settings.max_length is None:
        usual_length = int(model.max_seq_length or 512)
        if positions is not None and _position_table(model) is not None:
            usual_length = min(usual_length, positions)
        return usual_length
    if positions is not None and own_settings.max_length > positions:
        raise ModelError(
            f"encoder {name} has {positions} positions, and max_length of the settings is "
            f"{own_settings.max_length}"
        )
    return own_settings.max_length


def _position_table(model: Any) -> Any:
    """Give the table of a transformer's positions, beyond which it reads nothing.

    ``None`` where it computes them.
    """
    embeddings = getattr(model[0].model, "embeddings", None)
    return getattr(embeddings, "position_embeddings", None)


def _positions(model: Any) -> int | None:
    """Give how many tokens a transformer has positions for; ``None`` where its files do not say."""
    positions: int | None = getattr(model[0].model.config, "max_position_embeddings", None)
    padding = getattr(_position_table(model), "padding_idx", None)
    if positions is None or padding is None:
        return positions
    return positions - (padding + 1)  # RoBERTa counts from behind its padding


def _torch_dtype(own_settings: EmbedSettings) -> Any:
    """Give what the transformer is computed in: float32 whatever the files hold, so that machines
    agree.
    """
    import torch

    return getattr(torch, own_settings.dtype)
