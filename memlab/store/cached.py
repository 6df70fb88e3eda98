"""An encoder that reads the store's cache."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.embed.base import EncoderIdentity, Kind
    from memlab.store.memory import MemoryStore


class CachedEncoder:
    """An encoder whose vectors are remembered in a store, for what takes an encoder and nothing else.

    >>> import tempfile
    >>> from memlab import embed
    >>> from memlab.store import CachedEncoder, MemoryStore
    >>> encoder = CachedEncoder(MemoryStore.open(tempfile.mkdtemp()), embed.load("hashing:64"))
    >>> encoder.encode(["tea", "coffee"]).shape
    (2, 64)
    """

    def __init__(self, store: MemoryStore, encoder: Encoder) -> None:
        self.store = store
        self.encoder = encoder

    @property
    def identity(self) -> EncoderIdentity:
        """What the encoder says of itself."""
        return self.encoder.identity

    @property
    def dim(self) -> int:
        """Number of dimensions."""
        return self.encoder.dim

    def encode(self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True) -> np.ndarray:
        """Encode texts: (n, dim) float32, rows of length 1."""
        return self.store.encode(self.encoder, texts, kind=kind, progress=progress)
