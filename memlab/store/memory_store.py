"""The store: one database, and what can be kept in it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memlab.embed.base import Encoder, Kind
from memlab.embed.token_vectors import TokenEncoder, TokenVectors
from memlab.store.caches import Tokens
from memlab.store.conversations import Conversations
from memlab.store.database import Database
from memlab.store.knowledge import Knowledge
from memlab.store.opening import Versions, open_database, read_store_note, write_store_note
from memlab.store.runs import Grids, Runs
from memlab.store.search import Search
from memlab.store.vectors import Vectors, encode_through_cache


class MemoryStore(Conversations, Versions):
    """A LanceDB store of conversations, their vectors, extracted facts and runs, with versions.

    Several datasets live side by side. Writing is idempotent: what is already there is left as it
    is. Every write makes a new version of its table; :meth:`versions` gives the present ones, and
    :meth:`at` reads them again later. Vectors, tokens, indexes, runs, comparisons and facts are in
    ``vectors``, ``tokens``, ``search``, ``runs``, ``grids`` and ``knowledge``, each the class of
    that name.

    >>> import tempfile
    >>> from memlab import embed, sample
    >>> from memlab.store import MemoryStore
    >>> store = MemoryStore.open(tempfile.mkdtemp())
    >>> small = sample(turns=60)
    >>> store.ingest(small).filter(table="turns")["inserted"].item() == small.turns.height
    True
    >>> store.ingest(small)["inserted"].sum()
    0
    >>> encoder = embed.load("hashing:64")
    >>> store.vectors.backfill(encoder, small.name, progress=False) > 0
    True
    >>> store.vectors.read(encoder, small.name).shape == (small.turns.height, 64)
    True
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.uri, self.read_only = database.uri, database.read_only
        self.vectors, self.tokens, self.search = (
            Vectors(database),
            Tokens(database),
            Search(database),
        )
        self.runs, self.grids, self.knowledge = Runs(database), Grids(database), Knowledge(database)

    @classmethod
    def open(cls, uri: str | os.PathLike[str], *, create: bool = True) -> MemoryStore:
        """Open or create a store.

        :param uri: a directory, or an ``s3://``, ``gs://`` or ``az://`` URI, with credentials in
            the environment.
        :param create: make the store where there is none.
        :raises StoreError: when it cannot be opened or made, or was written with other tables.
        """
        return cls(open_database(uri, create=create))

    def __repr__(self) -> str:
        view = f", pinned={self.database.pinned}" if self.read_only else ""
        return f"MemoryStore({self.uri!r}{view})"

    def table(self, name: str) -> Any:
        """Give the LanceDB table of a name, at the version of this view; for what the methods here do not cover."""
        return self.database.table(name)

    def size(self) -> int | None:
        """Give the bytes of the files of the store; ``None`` in an object store."""
        files = [] if "://" in self.uri else [f for f in Path(self.uri).rglob("*") if f.is_file()]
        return sum(f.stat().st_size for f in files) if files else None

    def choose(self, name: str) -> None:
        """Set the default dataset, which commands use where none is named."""
        with self.database.guarded("choosing a dataset", writes="choose"):
            write_store_note(self.database, dataset=name)

    def chosen(self) -> str | None:
        """Give the default dataset, or else the one that was written last; ``None`` in an empty store."""
        named = read_store_note(self.database, "dataset")
        written = self.datasets().sort("ingested_at")["name"].to_list()
        return named if named in written else (written or [None])[-1]

    def encode(
        self,
        encoder: Encoder,
        texts: Iterable[str],
        *,
        kind: str = "document",
        progress: bool = True,
    ) -> np.ndarray:
        """Encode texts; vectors that this encoder gave before are read from the cache.

        New vectors are remembered every few seconds, so an interrupted run goes on where it
        stopped.

        :returns: (n, dim) float32, rows of length 1.
        """
        return encode_through_cache(self.database, encoder, texts, kind=kind, progress=progress)[0]


class CachedEncoder:
    """An encoder whose vectors are cached in a store; made by :func:`cache_encoder`.

    One question is read by a model of this process, which is faster than to look it up.
    """

    def __init__(self, store: MemoryStore, encoder: Encoder) -> None:
        self.store, self.encoder = store, encoder
        self.identity, self.dim = encoder.identity, encoder.dim

    def encode(
        self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True
    ) -> np.ndarray:
        """Encode texts: (n, dim) float32, rows of length 1."""
        texts = list(texts)
        if self._sooner_read(texts, kind):
            return self.encoder.encode(texts, kind=kind, progress=progress)
        return self.store.encode(self.encoder, texts, kind=kind, progress=progress)

    def _sooner_read(self, texts: Sequence[str], kind: Kind) -> bool:
        return kind == "query" and len(texts) == 1 and self.identity.kind == "transformer"


class CachedTokenEncoder(CachedEncoder):
    """The same for an encoder that also gives the vectors of single tokens."""

    encoder: TokenEncoder

    def encode_tokens(
        self,
        texts: Sequence[str],
        *,
        before: Sequence[str] | None = None,
        kind: Kind = "document",
        progress: bool = True,
    ) -> TokenVectors:
        """Embed the tokens of texts, see :class:`memlab.embed.token_vectors.TokenEncoder`."""
        if self._sooner_read(texts, kind) and not any(before or ()):
            return self.encoder.encode_tokens(texts, kind=kind, progress=progress)
        return self.store.tokens.encode(
            self.encoder, texts, before=before, kind=kind, progress=progress
        )


def unwrap_encoder(encoder: Any) -> Any:
    """Unwrap a cached encoder."""
    return encoder.encoder if isinstance(encoder, CachedEncoder) else encoder


def cache_encoder(store: MemoryStore, encoder: Encoder) -> CachedEncoder:
    """Wrap an encoder so that a store caches its vectors.

    >>> import tempfile
    >>> from memlab import embed
    >>> from memlab.store import MemoryStore, cache_encoder
    >>> cache_encoder(MemoryStore.open(tempfile.mkdtemp()), embed.load("hashing:64")).encode(["tea", "coffee"]).shape
    (2, 64)
    """
    raw = unwrap_encoder(encoder)
    return (CachedTokenEncoder if isinstance(raw, TokenEncoder) else CachedEncoder)(store, raw)
