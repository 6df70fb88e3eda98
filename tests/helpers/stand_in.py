"""A stand-in for MiniLM where a test needs an encoder of tokens and no meaning: words hashed, in milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from zlib import crc32

import numpy as np

from memlab.embed import load
from memlab.embed.token_vectors import TokenVectors


class StandIn:
    """The hashing encoder, with a vector for every word."""

    def __init__(self, dim: int = 64) -> None:
        self._texts = load(f"hashing:{dim}")
        self.dim, self.encode = dim, self._texts.encode
        self.identity = replace(
            self._texts.identity, kind="transformer", model="minilm", revision="stand-in"
        )

    def encode_tokens(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: str = "document",
        progress: bool = True,
    ) -> TokenVectors:
        words = [text.lower().split() for text in texts]
        flat = [word for text in words for word in text]
        known = {word: row for row, word in enumerate(dict.fromkeys(flat))}
        vectors = (
            self._texts.encode(list(known), progress=False) if known else np.zeros((0, self.dim))
        )
        rows = [known[word] for word in flat]
        ids = np.array([crc32(word.encode()) % 30_000 for word in flat], np.int32)
        start = np.r_[0, np.cumsum([len(text) for text in words])].astype(np.int64)
        return TokenVectors(ids, vectors[rows].astype(np.float16), start)
