"""The store: one database, and what can be kept in it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memlab.embed.base import Encoder, Kind
from memlab.embed.tokens import TokenEncoder, TokenVectors
from memlab.store.conversations import Conversations
from memlab.store.database import Database
from memlab.store.knowledge import Knowledge
from memlab.store.opening import note, noted, open_database
from memlab.store.runs import Grids, Runs
from memlab.store.search import Search
from memlab.store.tokens import Tokens
from memlab.store.vectors import Vectors, encode
from memlab.store.versions import Versions


class MemoryStore(Conversations, Versions):
    """A LanceDB store of conversations, their vectors, extracted facts and runs, with versions.

    Several datasets live side by side. Writing is idempotent: what is already there is left as it is. Every write
    makes a new version of its table; :meth:`tag` names the present ones, and :meth:`at` reads them again later.

    Its parts: ``vectors`` (:class:`memlab.store.vectors.Vectors`), ``tokens`` (:class:`memlab.store.tokens.Tokens`),
    ``search`` (:class:`memlab.store.search.Search`), ``runs`` and ``grids`` (:mod:`memlab.store.runs`), and
    ``knowledge`` (:class:`memlab.store.knowledge.Knowledge`).

    >>> import tempfile
    >>> from memlab import embed, sample
    >>> from memlab.store import MemoryStore
    >>> store = MemoryStore.open(tempfile.mkdtemp())
    >>> small = sample(turns=60)
    >>> store.ingest(small).filter(table="turns")["inserted"].item() == small.turns.height
    True
    >>> store.ingest(small)["inserted"].sum()
    0
    >>> store.dataset(small.name).fingerprint() == small.fingerprint()
    True
    >>> encoder = embed.load("hashing:64")
    >>> store.vectors.backfill(encoder, small.name, progress=False) > 0
    True
    >>> store.vectors.read(encoder, small.name).shape == (small.turns.height, 64)
    True
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.vectors = Vectors(database)
        self.tokens = Tokens(database)
        self.search = Search(database)
        self.runs = Runs(database)
        self.grids = Grids(database)
        self.knowledge = Knowledge(database)

    @classmethod
    def open(
        cls,
        uri: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        create: bool = True,
    ) -> MemoryStore:
        """Open or create a store; the schema of an older memlab is migrated.

        :param uri: a directory, or an ``s3://``, ``gs://`` or ``az://`` URI.
        :param storage_options: credentials and endpoint of an object store; see LanceDB's documentation.
        :param create: make the store where there is none.
        :raises StoreError: when it cannot be opened or made, or was written by a newer memlab.
        """
        return cls(open_database(uri, storage_options=storage_options, create=create))

    def __repr__(self) -> str:
        view = f", pinned={self.database.pinned}" if self.read_only else ""
        return f"MemoryStore({self.uri!r}{view})"

    @property
    def uri(self) -> str:
        """Where the store is."""
        return self.database.uri

    @property
    def read_only(self) -> bool:
        """Whether this is a view on earlier versions."""
        return self.database.read_only

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
            note(self.database, dataset=name)

    def chosen(self) -> str | None:
        """Give the default dataset, or ``None`` before one was ingested."""
        return noted(self.database, "dataset")

    def encode(
        self, encoder: Encoder, texts: Iterable[str], *, kind: str = "document", progress: bool = True
    ) -> np.ndarray:
        """Encode texts; vectors that this encoder gave before are read from the cache.

        New vectors are remembered every few seconds, so an interrupted run goes on where it stopped.

        :returns: (n, dim) float32, rows of length 1.
        """
        return encode(self.database, encoder, texts, kind=kind, progress=progress)[0]


class CachedEncoder:
    """An encoder whose vectors are cached in a store.

    >>> import tempfile
    >>> from memlab import embed
    >>> from memlab.store import CachedEncoder, MemoryStore
    >>> encoder = CachedEncoder(MemoryStore.open(tempfile.mkdtemp()), embed.load("hashing:64"))
    >>> encoder.encode(["tea", "coffee"]).shape
    (2, 64)
    """

    def __init__(self, store: MemoryStore, encoder: Encoder) -> None:
        self.store, self.encoder = store, encoder
        self.identity, self.dim = encoder.identity, encoder.dim

    def encode(self, texts: Iterable[str], *, kind: Kind = "document", progress: bool = True) -> np.ndarray:
        """Encode texts: (n, dim) float32, rows of length 1."""
        texts = list(texts)
        if _sooner_read(self.encoder, texts, kind):
            return self.encoder.encode(texts, kind=kind, progress=progress)
        return self.store.encode(self.encoder, texts, kind=kind, progress=progress)


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
        """Embed the tokens of texts, see :class:`memlab.embed.tokens.TokenEncoder`."""
        if _sooner_read(self.encoder, texts, kind) and not any(before or ()):
            return self.encoder.encode_tokens(texts, kind=kind, progress=progress)
        return self.store.tokens.encode(self.encoder, texts, before=before, kind=kind, progress=progress)


def _sooner_read(encoder: Encoder, texts: Sequence[str], kind: Kind) -> bool:
    """Say whether a model reads texts sooner than the store finds them: one question, by a model of this process."""
    return kind == "query" and len(texts) == 1 and encoder.identity.kind == "transformer"


def uncached(encoder: Any) -> Any:
    """Unwrap a cached encoder."""
    return encoder.encoder if isinstance(encoder, CachedEncoder) else encoder


def cached(store: MemoryStore, encoder: Encoder) -> CachedEncoder:
    """Wrap an encoder so that a store caches its vectors."""
    raw = uncached(encoder)
    return (CachedTokenEncoder if isinstance(raw, TokenEncoder) else CachedEncoder)(store, raw)
