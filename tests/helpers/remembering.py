"""MiniLM that remembers every text of the test session, so that many small benches cost one reading.

A text has the same vectors whatever stands beside it, bit for bit: what a ranking may not depend on
cannot hide behind how floats round in batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from memlab.embed import load
from memlab.embed.encoder import EncoderIdentity
from memlab.embed.token_vectors import TokenVectors, concat_tokens


class Remembering:
    """Follows the protocols of encoders and token encoders.

    ``asked`` lists what was asked for: (kind, text), or (kind, text before, text) for tokens.
    """

    def __init__(self, encoder: Any, memory: dict[tuple[str, ...], Any]) -> None:
        self.encoder, self.memory = encoder, memory
        self.identity: EncoderIdentity = encoder.identity
        self.dim: int = encoder.dim
        self.asked: list[tuple[str, ...]] = []

    def encode(
        self, texts: Iterable[str], *, kind: str = "document", progress: bool = True
    ) -> np.ndarray:
        keys = [(kind, text) for text in texts]
        if new := self._new(keys):
            vectors = self.encoder.encode([text for _, text in new], kind=kind, progress=False)
            self.memory.update(zip(new, vectors, strict=True))
        return np.array([self.memory[key] for key in keys], np.float32).reshape(len(keys), self.dim)

    def encode_tokens(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: str = "document",
        progress: bool = True,
    ) -> TokenVectors:
        keys = [
            (kind, lead, text)
            for lead, text in zip(before or [""] * len(texts), texts, strict=True)
        ]
        if new := self._new(keys):
            _, leads, asked = map(list, zip(*new, strict=True))
            tokens = self.encoder.encode_tokens(asked, before=leads, kind=kind, progress=False)
            self.memory |= {key: tokens.take(np.array([i])) for i, key in enumerate(new)}
        return concat_tokens([self.memory[key] for key in keys], self.dim)

    def _new(self, keys: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        """Give what is not remembered."""
        self.asked += keys
        return [key for key in dict.fromkeys(keys) if key not in self.memory]


_load, _memory = cache(load), dict[tuple[str, ...], Any]()


def minilm() -> Remembering:
    """Give an encoder with a list of its own and the memory of all."""
    return Remembering(_load("minilm"), _memory)
