"""What an encoder is, in a few lines for people: what memlab took from the files of a model."""

from __future__ import annotations

from memlab.embed.encoder import HALF, Encoder, EncoderIdentity
from memlab.embed.wrapper import token_encoder_of


def encoder_lines(encoder: Encoder) -> list[str]:
    """Say in six lines how an encoder reads texts.

    >>> from memlab import embed
    >>> from memlab.embed.description import encoder_lines
    >>> for line in encoder_lines(embed.load("minilm")):
    ...     print(line)
    pooling    mean, 384 dimensions
    prompts    none
    length     256 tokens
    dtype      float32
    tokens     vectors of single tokens, for late
    centring   none
    """
    identity = encoder.identity
    tokens = "none: one vector for a text"
    centring = "none"
    tokens_by = token_encoder_of(encoder)
    if tokens_by is not None:
        tokens = "vectors of single tokens, for late"
        if tokens_by.identity != identity:
            tokens = f"{tokens}, by {tokens_by.identity.key}"
        centring = tokens_by.identity.token_mean or "none"
    dtype = identity.dtype
    if identity.revision.endswith(HALF):
        dtype = "bfloat16"
    rows = {
        "pooling": f"{identity.pooling}, {_width(identity)}",
        "prompts": _prompts(identity),
        "length": _length(identity),
        "dtype": dtype,
        "tokens": tokens,
        "centring": centring,
    }
    return [f"{name:11}{value}" for name, value in rows.items()]


def _width(identity: EncoderIdentity) -> str:
    if identity.cut_from is None:
        return f"{identity.dim} dimensions"
    return f"the first {identity.dim} of {identity.cut_from} dimensions"


def _prompts(identity: EncoderIdentity) -> str:
    parts = []
    if identity.query_prompt:
        parts.append(f"query {identity.query_prompt!r}")
    if identity.document_prompt:
        parts.append(f"document {identity.document_prompt!r}")
    if not parts:
        return "none"
    return ", ".join(parts)


def _length(identity: EncoderIdentity) -> str:
    if identity.max_length is None:
        return "texts are read whole"
    if identity.kind == "endpoint":
        return f"{identity.max_length} characters"
    return f"{identity.max_length} tokens"
