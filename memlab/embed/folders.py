"""Models that sentence-transformers, transformers, model2vec or PyLate saved: what memlab takes from their folders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from memlab.config import EmbedSettings
from memlab.embed import model_files
from memlab.embed.encoder import Encoder, EncoderIdentity
from memlab.embed.model_kinds import model_kind
from memlab.embed.multi_vector import MultiVectorEncoder
from memlab.embed.prompts import choose_prompts, warn_without_prompts
from memlab.embed.static import StaticEncoder, load_static_model
from memlab.embed.transformer import TransformerEncoder
from memlab.errors import ModelError


def load_folder(
    path: Path, *, name: str, revision: str, own: EmbedSettings | None = None
) -> Encoder:
    """Load a model from its folder, as what it is; without a pooling in its files it is the mean.

    :param name: its portable name.
    :param revision: of the hub, or the digest of the weights.
    :param own: what the settings say of it.
    :raises ModelError: when it cannot be loaded, or gives no vectors that memlab compares.
    """
    load = {"dense": _load_dense, "static": _load_static, "multi-vector": _load_multi_vector}
    encoder = load[model_kind(path, name)](path, EncoderIdentity("", name, revision), own)
    if not (encoder.identity.query_prompt or encoder.identity.document_prompt):
        warn_without_prompts(path, name, own)
    return encoder


def _load_dense(path: Path, named: EncoderIdentity, own: EmbedSettings | None) -> Encoder:
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    dtype = _dtype(own)
    model = model_files.load_model(path, named.model, dtype=_torch_dtype(dtype))
    if not isinstance(model[0], Transformer):
        raise ModelError(
            f"encoder {named.model}: it begins with {type(model[0]).__name__}, expected a transformer"
        )
    for module in list(model)[1:]:
        module.float()  # as they are small, only the transformer is computed in fewer bits
    assumed = "" if (path / "modules.json").is_file() else " (assumed)"
    pooling = next((module for module in model if isinstance(module, Pooling)), None)
    if pooling is None:
        assumed = " (assumed)"
        pooling = Pooling(model[0].get_embedding_dimension())
        model.append(pooling)
    modes = pooling.pooling_mode
    if isinstance(modes, str):
        modes = [modes]
    identity = replace(
        _with_width(named, model, own),
        kind="transformer",
        pooling="+".join(modes) + assumed,
        max_length=_max_length(model, named.model, own),
        normalized=any(isinstance(module, Normalize) for module in model),
        dtype=dtype,
    )
    encoder = TransformerEncoder(path, identity, batch=_batch(own))
    encoder._model = model
    return encoder


def _load_static(path: Path, named: EncoderIdentity, own: EmbedSettings | None) -> Encoder:
    from sentence_transformers.sentence_transformer.modules import Normalize

    if own is not None and own.max_length is not None:
        raise ModelError(
            f"encoder {named.model} is a static encoder, which reads texts whole: leave max_length out"
        )
    model = load_static_model(path, named.model)
    identity = replace(
        _with_width(named, model, own),
        kind="static",
        pooling="mean",
        normalized=any(isinstance(module, Normalize) for module in model),
    )
    encoder = StaticEncoder(path, identity, batch=_batch(own))
    encoder._model = model
    return encoder


def _load_multi_vector(path: Path, named: EncoderIdentity, own: EmbedSettings | None) -> Encoder:
    if own is not None and own.dimensions is not None:
        raise ModelError(
            f"encoder {named.model} gives a vector for each token, which is not cut: leave dimensions out"
        )
    dtype = _dtype(own)
    what = "multi-vector encoder"
    model = model_files.load_model(path, named.model, what=what, dtype=_torch_dtype(dtype))
    if own is not None and own.max_length is not None:
        model[0].document_length = _max_length(model, named.model, own)
    identity = replace(
        _with_width(named, model, own),
        kind="multi-vector",
        pooling=_describe_queries(model[0]),
        max_length=model[0].document_length or _max_length(model, named.model, own),
        dtype=dtype,
    )
    encoder = MultiVectorEncoder(path, identity, batch=_batch(own))
    encoder._model = model
    return encoder


def _describe_queries(transformer: Any) -> str:
    """Say how a ColBERT reads queries, which their vectors depend on."""
    expansion = transformer.query_expansion
    if expansion is not None:
        seen = "seen" if expansion["attend"] else "unseen"
        return f"no (queries expanded to {expansion['length']} tokens, {seen})"
    if transformer.query_length is not None:
        return f"no (queries of {transformer.query_length} tokens)"
    return "no"


def _with_width(named: EncoderIdentity, model: Any, own: EmbedSettings | None) -> EncoderIdentity:
    """Add prompts and dimensions of a model to what names it; vectors are cut here and not by the library.

    :raises ModelError: when the settings ask for more dimensions than there are.
    """
    wanted = getattr(model, "truncate_dim", None)
    model.truncate_dim = None
    width = model.get_embedding_dimension()
    if own is not None and own.dimensions is not None:
        wanted = own.dimensions
        if wanted > width:
            raise ModelError(
                f"encoder {named.model} gives {width} dimensions, and dimensions of the settings is {wanted}"
            )
    query, document = choose_prompts(model.prompts, model.default_prompt_name, own)
    prompted = replace(named, query_prompt=query, document_prompt=document, dim=width)
    if wanted is None or wanted >= width:
        return prompted
    return replace(prompted, dim=wanted, cut_from=width)


def _max_length(model: Any, name: str, own: EmbedSettings | None) -> int:
    """Give how many tokens of a text are read.

    :raises ModelError: when the settings ask for more than the model has positions.
    """
    if own is None or own.max_length is None:
        return int(model.max_seq_length or 512)
    positions = getattr(model[0].model.config, "max_position_embeddings", None)
    table = getattr(getattr(model[0].model, "embeddings", None), "position_embeddings", None)
    if positions is not None and getattr(table, "padding_idx", None) is not None:
        positions -= table.padding_idx + 1  # RoBERTa counts from behind its padding
    if positions is not None and own.max_length > positions:
        raise ModelError(
            f"encoder {name} has {positions} positions, and max_length of the settings is {own.max_length}"
        )
    return own.max_length


def _dtype(own: EmbedSettings | None) -> str:
    """Give what the transformer is computed in: float32 whatever the files hold, so that machines agree."""
    return "float32" if own is None else own.dtype


def _torch_dtype(name: str) -> Any:
    import torch

    return getattr(torch, name)


def _batch(own: EmbedSettings | None) -> int | None:
    return None if own is None else own.batch
