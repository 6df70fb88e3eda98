"""What an encoder is, in a few lines for people: what memlab took from the files of a model."""

from __future__ import annotations

from memlab.embed.encoder import HALF, Encoder, EncoderIdentity
from memlab.embed.encoder_wrapper import token_encoder_of


def encoder_description_lines(encoder: Encoder) -> list[str]:
    """Say in six lines how an encoder reads texts.

    >>> from memlab import embed
    >>> from memlab.embed.encoder_description import encoder_description_lines
    >>> for line in encoder_description_lines(embed.load("minilm")):
    ...     print(line)
    pooling    mean, 384 dimensions
    prompts    none
    length     256 tokens
    dtype      float32
    tokens     vectors of single tokens, for late
    centring   none
    """
    identity = encoder.identity
    token_text = "none: one vector for a text"
    centring_text = "none"
    token_encoder = token_encoder_of(encoder)
    if token_encoder is not None:
        token_text = "vectors of single tokens, for late"
        if token_encoder.identity != identity:
            token_text = f"{token_text}, by {token_encoder.identity.key}"
        centring_text = token_encoder.identity.token_mean or "none"
    number_type = identity.dtype
    if identity.revision.endswith(HALF):
        number_type = "bfloat16"
    text_by_name = {
        "pooling": f"{identity.pooling}, {_describe_width(identity)}",
        "prompts": _describe_prompts(identity),
        "length": _describe_max_length(identity),
        "dtype": number_type,
        "tokens": token_text,
        "centring": centring_text,
    }
    return [f"{name:11}{value}" for name, value in text_by_name.items()]


def _describe_width(identity: EncoderIdentity) -> str:
    if identity.cut_from is None:
        return f"{identity.dim} dimensions"
    return f"the first {identity.dim} of {identity.cut_from} dimensions"


def _describe_prompts(identity: EncoderIdentity) -> str:
    prompt_texts = []
    if identity.query_prompt:
        prompt_texts.append(f"query {identity.query_prompt!r}")
    if identity.document_prompt:
        prompt_texts.append(f"document {identity.document_prompt!r}")
    if not prompt_texts:
        return "none"
    return ", ".join(prompt_texts)


def _describe_max_length(identity: EncoderIdentity) -> str:
    if identity.max_length is None:
        return "texts are read whole"
    if identity.kind == "endpoint":
        return f"{identity.max_length} characters"
    return f"{identity.max_length} tokens"
