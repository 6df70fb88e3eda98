"""Models that sentence-transformers, transformers, model2vec or PyLate saved: what memlab takes
from their folders.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memlab.config import EmbedSettings
from memlab.embed import model_files
from memlab.embed.encoder import Encoder, EncoderIdentity
from memlab.embed.encoder_prompts import choose_query_and_document_prompt, warn_of_missing_prompts
from memlab.embed.model_kinds import supported_kind_of_model_folder
from memlab.embed.multi_vector_encoder import MultiVectorEncoder
from memlab.embed.static_encoder import StaticEncoder, load_static_model
from memlab.embed.token_centring import VOCABULARY, has_common_direction
from memlab.embed.transformer_encoder import TransformerEncoder
from memlab.errors import ModelError, warn_user

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer


def load_model_folder(
    model_folder: Path,
    *,
    model_name: str,
    revision: str,
    model_settings: EmbedSettings | None = None,
) -> Encoder:
    """Load a model from its folder, as what it is; without a pooling in its files it is the mean.

    :param model_name: its portable name.
    :param revision: of the hub, or the digest of the weights.
    :param model_settings: what the settings say of it.
    :raises ModelError: when it cannot be loaded, or gives no vectors that memlab compares.
    """
    loaders = {
        "dense": _load_dense_encoder,
        "static": _load_static_encoder,
        "multi-vector": _load_multi_vector_encoder,
    }
    if model_settings is None:
        model_settings = EmbedSettings(path=str(model_folder))
    named_identity = EncoderIdentity("", model_name, revision)
    encoder = loaders[supported_kind_of_model_folder(model_folder, model_name)](
        model_folder, named_identity, model_settings
    )
    if not encoder.identity.query_prompt + encoder.identity.document_prompt:
        warn_of_missing_prompts(model_folder, model_name, model_settings)
    return encoder


def _load_dense_encoder(
    model_folder: Path, named_identity: EncoderIdentity, model_settings: EmbedSettings
) -> Encoder:
    from sentence_transformers.sentence_transformer.modules import Transformer

    model = model_files.load_sentence_transformers_model(
        model_folder, named_identity.model, dtype=_torch_dtype(model_settings)
    )
    if not isinstance(model[0], Transformer):
        raise ModelError(
            f"encoder {named_identity.model}: it begins with {type(model[0]).__name__}, expected a "
            "transformer"
        )
    for module in list(model)[1:]:
        module.float()  # as they are small, only the transformer is computed in fewer bits
    identity = replace(
        _with_prompts_and_dimensions(named_identity, model, model_settings),
        kind="transformer",
        pooling=_name_pooling_or_add_mean(model, model_folder),
        max_length=_choose_or_refuse_max_tokens(model, named_identity.model, model_settings),
        normalized=_ends_in_normalization(model),
        dtype=model_settings.dtype,
    )
    _warn_unless_trained_for_cosine(model, identity)
    encoder = TransformerEncoder(model_folder, identity, batch=model_settings.batch)
    encoder._model = model
    if has_common_direction(encoder.token_mean):
        encoder.identity = replace(identity, token_mean=VOCABULARY)
    return encoder


def _load_static_encoder(
    model_folder: Path, named_identity: EncoderIdentity, model_settings: EmbedSettings
) -> Encoder:
    if model_settings.max_length is not None:
        raise ModelError(
            f"encoder {named_identity.model} is a table of vectors and reads texts whole: leave "
            "max_length out"
        )
    model = load_static_model(model_folder, named_identity.model)
    identity = replace(
        _with_prompts_and_dimensions(named_identity, model, model_settings),
        kind="static",
        pooling="mean",
        normalized=_ends_in_normalization(model),
    )
    _warn_unless_trained_for_cosine(model, identity)
    encoder = StaticEncoder(model_folder, identity, batch=model_settings.batch)
    encoder._model = model
    return encoder


def _load_multi_vector_encoder(
    model_folder: Path, named_identity: EncoderIdentity, model_settings: EmbedSettings
) -> Encoder:
    if model_settings.dimensions is not None:
        raise ModelError(
            f"encoder {named_identity.model} gives a vector for each token, which is not cut: "
            "leave dimensions out"
        )
    encoder_kind = "multi-vector encoder"
    model = model_files.load_sentence_transformers_model(
        model_folder,
        named_identity.model,
        model_noun=encoder_kind,
        dtype=_torch_dtype(model_settings),
    )
    transformer = model[0]
    if model_settings.max_length is not None or transformer.document_length is None:
        transformer.document_length = _choose_or_refuse_max_tokens(
            model, named_identity.model, model_settings
        )
    identity = replace(
        _with_prompts_and_dimensions(named_identity, model, model_settings),
        kind="multi-vector",
        pooling=_describe_query_expansion(transformer),
        max_length=transformer.document_length,
        dtype=model_settings.dtype,
    )
    encoder = MultiVectorEncoder(model_folder, identity, batch=model_settings.batch)
    encoder._model = model
    return encoder


def _name_pooling_or_add_mean(model: SentenceTransformer, model_folder: Path) -> str:
    """Name how the vectors of tokens become one; a model without a pooling gets the mean."""
    from sentence_transformers.sentence_transformer.modules import Pooling

    pooling_modules = [module for module in model if isinstance(module, Pooling)]
    is_stated = bool(pooling_modules) and (model_folder / "modules.json").is_file()
    if not pooling_modules:
        pooling_modules = [Pooling(model[0].get_embedding_dimension())]
        model.append(pooling_modules[0])
    pooling_modes = pooling_modules[0].pooling_mode
    if not isinstance(pooling_modes, str):
        pooling_modes = "+".join(pooling_modes)
    return pooling_modes if is_stated else f"{pooling_modes} (assumed)"


def _ends_in_normalization(model: SentenceTransformer) -> bool:
    from sentence_transformers.sentence_transformer.modules import Normalize

    return any(isinstance(module, Normalize) for module in model)


def _warn_unless_trained_for_cosine(model: SentenceTransformer, identity: EncoderIdentity) -> None:
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


def _describe_query_expansion(transformer: torch.nn.Module) -> str:
    """Say how a ColBERT reads queries, which their vectors depend on."""
    expansion = transformer.query_expansion
    if expansion is not None:
        attended_text = "seen" if expansion["attend"] else "unseen"
        return f"no (queries expanded to {expansion['length']} tokens, {attended_text})"
    if transformer.query_length is not None:
        return f"no (queries of {transformer.query_length} tokens)"
    return "no"


def _with_prompts_and_dimensions(
    named_identity: EncoderIdentity, model: SentenceTransformer, model_settings: EmbedSettings
) -> EncoderIdentity:
    """Add prompts and dimensions of a model to what names it.

    Vectors are cut here and not by the library.

    :raises ModelError: when the settings ask for more dimensions than there are.
    """
    wanted_width = getattr(model, "truncate_dim", None)
    model.truncate_dim = None
    model_width = model.get_embedding_dimension()
    if model_settings.dimensions is not None:
        wanted_width = model_settings.dimensions
        if wanted_width > model_width:
            raise ModelError(
                f"encoder {named_identity.model} gives {model_width} dimensions, and dimensions of "
                f"the settings is {wanted_width}"
            )
    query_prompt, document_prompt = choose_query_and_document_prompt(
        model.prompts, model.default_prompt_name, model_settings
    )
    prompted = replace(
        named_identity, query_prompt=query_prompt, document_prompt=document_prompt, dim=model_width
    )
    if wanted_width is None or wanted_width >= model_width:
        return prompted
    return replace(prompted, dim=wanted_width, cut_from=model_width)


def _choose_or_refuse_max_tokens(
    model: SentenceTransformer, model_name: str, model_settings: EmbedSettings
) -> int:
    """Give how many tokens of a text are read.

    :raises ModelError: when the settings ask for more than the model has positions.
    """
    positions = _position_count_or_none(model)
    if model_settings.max_length is None:
        usual_length = int(model.max_seq_length or 512)
        if positions is not None and _position_embeddings(model) is not None:
            usual_length = min(usual_length, positions)
        return usual_length
    if positions is not None and model_settings.max_length > positions:
        raise ModelError(
            f"encoder {model_name} has {positions} positions, and max_length of the settings is "
            f"{model_settings.max_length}"
        )
    return model_settings.max_length


def _position_embeddings(model: SentenceTransformer) -> torch.nn.Module | None:
    """Give the table of a transformer's positions, beyond which it reads nothing.

    ``None`` where it computes them.
    """
    embeddings = getattr(model[0].model, "embeddings", None)
    return getattr(embeddings, "position_embeddings", None)


def _position_count_or_none(model: SentenceTransformer) -> int | None:
    """Give how many tokens a transformer has positions for; ``None`` where its files do not say."""
    positions: int | None = getattr(model[0].model.config, "max_position_embeddings", None)
    padding = getattr(_position_embeddings(model), "padding_idx", None)
    if positions is None or padding is None:
        return positions
    return positions - (padding + 1)  # RoBERTa counts from behind its padding


def _torch_dtype(model_settings: EmbedSettings) -> torch.dtype:
    """Give what the transformer is computed in: float32 whatever the files hold, so that machines
    agree.
    """
    import torch

    return getattr(torch, model_settings.dtype)
