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

        model_config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        self.width = model_config["hidden_size"]
        self._heads = model_config["num_attention_heads"]
        self._layers = model_config["num_hidden_layers"]
        self._epsilon = model_config["layer_norm_eps"]
        self._weights: dict[str, np.ndarray] = {}
        for name, weights in load_file(path / "model.safetensors").items():
            if name.startswith("encoder.") and weights.ndim == 2:
                weights = _split_columns(weights.T)
            self._weights[name] = np.ascontiguousarray(weights, dtype=np.float32)
        self.tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(max_length)
        # Products this small gain nothing from a second thread, and wait for it where the machine
        # is busy.
        self._threads = ThreadpoolController()
        # One reading of a question gives its vector and the vectors of its tokens.
        self.read = lru_cache(maxsize=32)(self._read_tokens_and_hidden_states)

    def _read_tokens_and_hidden_states(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Give the token ids of a text, special ones included, and their hidden states (n, d)."""
        token_ids = np.array(self.tokenizer.encode(text).ids, np.int64)
        word_vectors = self._weights["embeddings.word_embeddings.weight"]
        type_vectors = self._weights["embeddings.token_type_embeddings.weight"]
        position_vectors = self._weights["embeddings.position_embeddings.weight"]
        hidden_states = self._apply_layer_norm(
            word_vectors[token_ids] + type_vectors[0] + position_vectors[: len(token_ids)],
            "embeddings.LayerNorm",
        )
        with self._threads.limit(limits=1, user_api="blas"):
            for layer_number in range(self._layers):
                hidden_states = self._apply_layer(hidden_states, f"encoder.layer.{layer_number}")
        return token_ids, hidden_states

    def _apply_layer(self, hidden_states: np.ndarray, layer_name: str) -> np.ndarray:
        query = self._project_to_heads(hidden_states, f"{layer_name}.attention.self.query")
        key = self._project_to_heads(hidden_states, f"{layer_name}.attention.self.key")
        value = self._project_to_heads(hidden_states, f"{layer_name}.attention.self.value")
        cosines = query @ key.swapaxes(1, 2) / np.float32(np.sqrt(query.shape[-1]))
        context = (_softmax(cosines) @ value).swapaxes(0, 1).reshape(len(hidden_states), -1)
        attended = (
            self._apply_linear(context, f"{layer_name}.attention.output.dense") + hidden_states
        )
        attended = self._apply_layer_norm(attended, f"{layer_name}.attention.output.LayerNorm")
        inner_states = self._apply_linear(attended, f"{layer_name}.intermediate.dense")
        inner_states *= _gelu_gate(inner_states)
        return self._apply_layer_norm(
            self._apply_linear(inner_states, f"{layer_name}.output.dense") + attended,
            f"{layer_name}.output.LayerNorm",
        )

    def _project_to_heads(self, hidden_states: np.ndarray, weight_name: str) -> np.ndarray:
        """Project hidden states for each head of attention: (n, d) → (heads, n, d / heads)."""
        return (
            self._apply_linear(hidden_states, weight_name)
            .reshape(len(hidden_states), self._heads, -1)
            .swapaxes(0, 1)
        )

    def _apply_linear(self, hidden_states: np.ndarray, weight_name: str) -> np.ndarray:
        part_products = hidden_states @ self._weights[f"{weight_name}.weight"]
        product = part_products.swapaxes(0, 1).reshape(len(hidden_states), -1)
        return product + self._weights[f"{weight_name}.bias"]

    def _apply_layer_norm(self, hidden_states: np.ndarray, weight_name: str) -> np.ndarray:
        # In place, and by `reduce`: of a few rows the calls take longer than what they count.
        width = hidden_states.shape[-1]
        normalised = hidden_states - np.add.reduce(hidden_states, axis=-1, keepdims=True) / width
        variance = np.add.reduce(normalised * normalised, axis=-1, keepdims=True) / width
        normalised /= np.sqrt(variance + self._epsilon)
        normalised *= self._weights[f"{weight_name}.weight"]
        normalised += self._weights[f"{weight_name}.bias"]
        return normalised


_COLUMNS = 64
_ROWS = 384
"""Of matrices that are divided: of more rows OpenBLAS adds up some at a time, and the sums would
differ in their last digits.
"""


def _split_columns(matrix: np.ndarray) -> np.ndarray:
    """Divide a matrix as products with few rows read it: (d, m) → (parts, d, m / parts).

    OpenBLAS copies a matrix before it multiplies, unless a product is small: with the few rows of a
    question that is most of the work.
    """
    n_rows, n_columns = matrix.shape
    if n_rows > _ROWS or n_columns % _COLUMNS:
        return matrix[None]
    return matrix.reshape(n_rows, -1, _COLUMNS).swapaxes(0, 1)


def _softmax(attention_scores: np.ndarray) -> np.ndarray:
    """Give shares along the last axis; scipy's checks its arguments longer than it counts."""
    shares = np.exp(attention_scores - attention_scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return shares


def _gelu_gate(inner_states: np.ndarray) -> np.ndarray:
    """Give what GELU multiplies numbers by: the share of a normal distribution below each."""
    from scipy.special import erf

    gate = inner_states / np.float32(np.sqrt(2))
    erf(gate, out=gate)
    gate += 1
    gate *= 0.5
    return gate
