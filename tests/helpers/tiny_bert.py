"""Transformers with random weights, small enough to be made for a test."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memlab.embed import model_files

Harm = Callable[[Path], object]


def save_bert(path: Path, *, kind: str = "BertModel", **options: Any) -> Path:
    """Save a model with random weights and MiniLM's tokenizer, as transformers saves it."""
    import torch
    import transformers

    torch.manual_seed(0)
    sizes = {
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "hidden_size": 32,
        "intermediate_size": 64,
    }
    config = transformers.BertConfig(**sizes, initializer_range=0.5, **options)
    getattr(transformers, kind)(config).save_pretrained(path)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(model_files.installed_minilm_folder() / name, path)
    return path


def change_weights(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Harm:
    def harm(path: Path) -> None:
        from safetensors.torch import load_file, save_file

        save_file(
            change(load_file(path / "model.safetensors")),
            path / "model.safetensors",
            {"format": "pt"},
        )

    return harm
