"""An encoder that reads the store's cache."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from memlab.embed.tokens import TokenEncoder, TokenVectors

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


class CachedTokenEncoder(CachedEncoder):
    """The same for an encoder that also gives the vectors of single tokens."""

    encoder: TokenEncoder  # type: ignore[assignment]

    def encode_tokens(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: Kind = "document",
        progress: bool = True,
    ) -> TokenVectors:
        """Embed the tokens of texts, see :class:`memlab.embed.tokens.TokenEncoder`."""
        return self.store.tokens.encode(self.encoder, texts, before=before, kind=kind, progress=progress)


def cached(store: MemoryStore, encoder: Encoder) -> CachedEncoder:
    """Let an encoder read and fill a store's cache."""
    raw = encoder.encoder if isinstance(encoder, CachedEncoder) else encoder
    return (CachedTokenEncoder if isinstance(raw, TokenEncoder) else CachedEncoder)(store, raw)
