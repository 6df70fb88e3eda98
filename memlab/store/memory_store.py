"""The store: one database, and what can be kept in it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memlab.embed.encoder import Encoder
from memlab.store.database import Database
from memlab.store.knowledge_tables import Knowledge
from memlab.store.saved_runs import Grids, Runs
from memlab.store.store_opening import open_database, read_store_note, write_store_notes
from memlab.store.stored_datasets import Conversations
from memlab.store.table_versions import Versions
from memlab.store.tree_nodes import TreeNodes
from memlab.store.turn_vectors import Vectors, encode_through_cache_and_count_new
from memlab.store.vector_and_text_search import Search
from memlab.store.vector_cache import Tokens

if TYPE_CHECKING:
    from lancedb.table import Table as LanceTable


class MemoryStore(Conversations, Versions):
    """A LanceDB store of conversations, their vectors, extracted facts and runs, with versions.

    Several datasets live side by side. Writing is idempotent: what is already there is left as it
    is. Every write makes a new version of its table; :meth:`versions` gives the present ones, and
    :meth:`at` reads them again later. Vectors, tokens, indexes, runs, comparisons, facts and trees
    of summaries are in ``vectors``, ``tokens``, ``search``, ``runs``, ``grids``, ``knowledge`` and
    ``nodes``.

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
        self.uri = database.uri
        self.read_only = database.read_only
        self.vectors = Vectors(database)
        self.tokens = Tokens(database)
        self.search = Search(database)
        self.runs = Runs(database)
        self.grids = Grids(database)
        self.knowledge = Knowledge(database)
        self.nodes = TreeNodes(database)

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
        pinned_text = f", pinned={self.database.pinned}" if self.read_only else ""
        return f"MemoryStore({self.uri!r}{pinned_text})"

    def table(self, name: str) -> LanceTable:
        """Give the LanceDB table of a name, at the version of this view; for what the methods here
        do not cover.
        """
        return self.database.open_or_create_table(name)

    def size(self) -> int | None:
        """Give the bytes of the files of the store; ``None`` in an object store."""
        if not self.database.is_local:
            return None
        file_sizes = [file.stat().st_size for file in Path(self.uri).rglob("*") if file.is_file()]
        if not file_sizes:
            return None
        return sum(file_sizes)

    def choose(self, name: str) -> None:
        """Set the default dataset, which commands use where none is named."""
        with self.database.translating_errors("choosing a dataset", refused_write="choose"):
            write_store_notes(self.database, dataset=name)

    def chosen(self) -> str | None:
        """Give the default dataset, or else the one that was written last; ``None`` in an empty
        store.
        """
        noted_name = read_store_note(self.database, "dataset")
        written_names = self.datasets().sort("ingested_at")["name"].to_list()
        if noted_name in written_names:
            return noted_name
        return written_names[-1] if written_names else None

    def encode(
        self,
        encoder: Encoder,
        texts: Iterable[str],
        *,
        kind: str = "document",
        progress: bool = True,
        remember: bool = True,
    ) -> np.ndarray:
        """Encode texts; vectors that this encoder gave before are read from the cache.

        New vectors are remembered every few seconds, so an interrupted run goes on where it
        stopped.

        :param remember: ``False`` for texts whose vectors are kept by whoever asks.
        :returns: (n, dim) float32, rows of length 1.
        """
        return encode_through_cache_and_count_new(
            self.database, encoder, texts, kind=kind, progress=progress, remember=remember
        )[0]
