"""Loading a transformers model and its tokenizer from a directory: all of its weights, or an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memlab.errors import ModelError

# Of these only the encoder makes embeddings.
_ENCODER_DECODERS = ("t5", "mt5", "umt5")

# A tokenizer without a limit says 10**30.
_UNLIMITED = 10**9
_DEFAULT_LENGTH = 512


def load_parts(path: Path, name: str, *, what: str = "encoder") -> tuple[Any, Any]:
    """Load tokenizer and model; weights that the files do not hold are an error, not random numbers.

    :param path: directory with config.json, a tokenizer and weights.
    :param name: of the model, for messages.
    :param what: ``encoder`` for its hidden states, ``cross-encoder`` for a model that classifies sequences.
    :raises ModelError: when transformers cannot load it, or weights are missing.
    """
    import torch
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoModelForSequenceClassification,
        AutoModelForTextEncoding,
        AutoTokenizer,
    )

    options: dict[str, Any] = {"local_files_only": True, "dtype": torch.float32, "output_loading_info": True}
    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True)
        kind: Any = AutoModelForTextEncoding if config.model_type in _ENCODER_DECODERS else AutoModel
        if what == "cross-encoder":
            kind = AutoModelForSequenceClassification
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
        with quiet():
            model, info = kind.from_pretrained(path, config=config, **options)
    except Exception as error:
        raise ModelError(
            f"{what} {name}: transformers cannot load it ({type(error).__name__}: {error}); expected a directory with "
            "config.json, a tokenizer and model.safetensors"
        ) from error
    # The pooler on top of BERT belongs to its training task; encoders are often saved without it.
    missing = sorted(k for k in info["missing_keys"] if what != "encoder" or not k.startswith("pooler."))
    if missing:
        raise ModelError(
            f"{what} {name}: its weights lack {missing[0]!r} ({len(missing)} in all); the file is damaged or belongs "
            f"to another config.json, or the model is no {what}: fetch it again or choose another"
        )
    return tokenizer, model.eval()


def longest(tokenizer: Any, config: Any) -> int:
    """Give the most tokens that a model reads: the tokenizer's limit, at most the model's positions."""
    positions = getattr(config.get_text_config(), "max_position_embeddings", None)
    limits = [n for n in (tokenizer.model_max_length, positions) if n and 0 < n < _UNLIMITED]
    return int(min(limits, default=_DEFAULT_LENGTH))


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the library's bars for weights out of notebooks, and leave its setting as it was."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
