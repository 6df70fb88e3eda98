"""A BERT encoder of a few texts in numpy: importing torch takes ten seconds, a question
milliseconds.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np


class Bert:
    """Tokens and last hidden states of single texts, equal to transformers' up to the rounding of
    float32.

    Source: Devlin et al., BERT (NAACL 2019); the layers as ``transformers`` has them, without
    dropout.

    :param path: a directory with a plain BERT in one ``model.safetensors``, and ``tokenizer.json``.
    :param max_length: in tokens, the two special ones included; the rest of a text is left out.
    """

    def __init__(self, path: Path, max_length: int) -> None:
        from safetensors.numpy import load_file
        from threadpoolctl import ThreadpoolController
        from tokenizers import Tokenizer

        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        self.width, self._heads = config["hidden_size"], config["num_attention_heads"]
        self._layers, self._epsilon = config["num_hidden_layers"], config["layer_norm_eps"]
        # Matrices as the products read them: with so few rows, turning them took a third of the
        # time.
        self._weights = {
            name: np.ascontiguousarray(
                w.T if name.startswith("encoder.") and w.ndim == 2 else w, dtype=np.float32
            )
            for name, w in load_file(path / "model.safetensors").items()
        }
        self.tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(max_length)
        # Products this small gain nothing from a second thread, and wait for it where the machine
        # is busy.
        self._threads = ThreadpoolController()
        # One reading of a question gives its vector and the vectors of its tokens.
        self.read = lru_cache(maxsize=32)(self._read)

    def _read(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Give the token ids of a text, special ones included, and their hidden states (n, d)."""
        ids = np.array(self.tokenizer.encode(text).ids, np.int64)
        words, types, positions = (
            self._weights[f"embeddings.{name}_embeddings.weight"]
            for name in ("word", "token_type", "position")
        )
        hidden = self._norm(words[ids] + types[0] + positions[: len(ids)], "embeddings.LayerNorm")
        with self._threads.limit(limits=1, user_api="blas"):
            for n in range(self._layers):
                hidden = self._layer(hidden, f"encoder.layer.{n}")
        return ids, hidden

    def _layer(self, hidden: np.ndarray, name: str) -> np.ndarray:
        from scipy.special import erf, softmax

        parts = [
            self._linear(hidden, f"{name}.attention.self.{part}")
            for part in ("query", "key", "value")
        ]
        query, key, value = (
            part.reshape(len(hidden), self._heads, -1).swapaxes(0, 1) for part in parts
        )
        weights = softmax(
            query @ key.swapaxes(1, 2) / np.float32(np.sqrt(query.shape[-1])), axis=-1
        )
        context = (weights @ value).swapaxes(0, 1).reshape(len(hidden), -1)
        attended = self._linear(context, f"{name}.attention.output.dense") + hidden
        attended = self._norm(attended, f"{name}.attention.output.LayerNorm")
        inner = self._linear(attended, f"{name}.intermediate.dense")
        inner = inner * (0.5 * (1 + erf(inner / np.float32(np.sqrt(2)))))
        return self._norm(
            self._linear(inner, f"{name}.output.dense") + attended, f"{name}.output.LayerNorm"
        )

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        normed = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + self._epsilon)
        return normed * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
