"""MiniLM that remembers every text of the test session, so that many small benches cost one reading.

A text has the same vectors whatever stands beside it, bit for bit: what a ranking may not depend on cannot hide behind
how floats round in batches.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from memlab.embed import load
from memlab.embed.base import EncoderIdentity
from memlab.embed.token_vectors import TokenVectors, concat_tokens


class Remembering:
    """Follows the protocols of encoders and token encoders.

    ``asked`` lists what was asked for: (kind, text), or (kind, text before, text) for tokens.
    """

    def __init__(self, encoder: Any, memory: dict[Hashable, Any]) -> None:
        self.encoder, self.memory = encoder, memory
        self.identity: EncoderIdentity = encoder.identity
        self.dim: int = encoder.dim
        self.asked: list[tuple[str, ...]] = []

    def encode(self, texts: Iterable[str], *, kind: str = "document", progress: bool = True) -> np.ndarray:
        keys = [(kind, text) for text in texts]
        self._read(keys, lambda new: list(self.encoder.encode([k[-1] for k in new], kind=kind, progress=False)))
        return np.array([self.memory[key] for key in keys], np.float32).reshape(len(keys), self.dim)

    def encode_tokens(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: str = "document",
        progress: bool = True,
    ) -> TokenVectors:
        keys = [(kind, b, text) for b, text in zip(before or [""] * len(texts), texts, strict=True)]

        def made(new: list[tuple[str, ...]]) -> list[TokenVectors]:
            tokens = self.encoder.encode_tokens(
                [k[-1] for k in new], before=[k[1] for k in new], kind=kind, progress=False
            )
            return [tokens.take(np.array([i])) for i in range(len(new))]

        self._read(keys, made)
        return concat_tokens([self.memory[key] for key in keys], self.dim)

    def _read(self, keys: list[tuple[str, ...]], made: Callable[[list[tuple[str, ...]]], list[Any]]) -> None:
        self.asked += keys
        new = list(dict.fromkeys(key for key in keys if key not in self.memory))
        if new:
            self.memory.update(zip(new, made(new), strict=True))


@cache
def _minilm() -> tuple[Any, dict[Hashable, Any]]:
    return load("minilm"), {}


def minilm() -> Remembering:
    """Give an encoder with a list of its own and the memory of all."""
    return Remembering(*_minilm())
