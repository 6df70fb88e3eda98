"""The one class of the store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.errors import StoreError
from memlab.records import Dataset, Run
from memlab.store import ingest as _ingest
from memlab.store import reading as _reading
from memlab.store import runs as _runs
from memlab.store import search as _search
from memlab.store import vectors as _vectors
from memlab.store import versions as _versions
from memlab.store.tables import SCHEMAS, VERSIONED, arrow_schema, connect, guarded, open_table

if TYPE_CHECKING:
    from memlab.embed import Encoder

Place = str | os.PathLike[str]
Names = Iterable[str] | None


class MemoryStore:
    """Conversations, their vectors and the runs over them, in LanceDB tables.

    Several datasets live side by side. Writing is idempotent: what is already there is left as it is. Every write
    makes a new version of its table; :meth:`tag` names the present ones, and :meth:`at` reads them again later.

    :param database: an open LanceDB connection; use :meth:`open`.
    :param uri: where it is.
    :param pinned: versions of tables; a store with pinned versions is read-only.

    >>> import tempfile
    >>> from memlab import datasets, embed
    >>> from memlab.store import MemoryStore
    >>> store = MemoryStore.open(tempfile.mkdtemp())
    >>> small = datasets.synthetic.generate(turns=60, seed=0)
    >>> store.ingest(small).filter(table="turns")["inserted"].item() == small.turns.height
    True
    >>> store.ingest(small)["inserted"].sum()
    0
    >>> store.dataset(small.name).fingerprint() == small.fingerprint()
    True
    >>> encoder = embed.load("hashing:64")
    >>> store.backfill(encoder, small.name, progress=False) > 0
    True
    >>> store.vectors(encoder, small.name).shape == (small.turns.height, 64)
    True
    """

    def __init__(self, database: Any, uri: str, *, pinned: Mapping[str, int] | None = None) -> None:
        self.database = database
        self.uri = uri
        self.pinned = dict(pinned) if pinned is not None else None
        self._tables: dict[str, Any] = {}

    @classmethod
    def open(cls, uri: Place, *, storage_options: Mapping[str, str] | None = None, create: bool = True) -> MemoryStore:
        """Open a store, or make it.

        :param uri: a directory, or an ``s3://``, ``gs://`` or ``az://`` URI.
        :param storage_options: credentials and endpoint of an object store; see LanceDB's documentation.
        :param create: make the store where there is none.
        :raises StoreError: when it cannot be opened or made.
        """
        store = cls(connect(uri, storage_options=storage_options, create=create), os.fspath(uri))
        with guarded("opening", store.uri):
            for name in SCHEMAS:
                store.table(name)
        return store

    def __repr__(self) -> str:
        view = f", pinned={self.pinned}" if self.read_only else ""
        return f"MemoryStore({self.uri!r}{view})"

    @property
    def read_only(self) -> bool:
        """Whether this is a view on earlier versions."""
        return self.pinned is not None

    def table(self, name: str) -> Any:
        """Give the LanceDB table of a name, at the version of this view; for what the methods here do not cover."""
        if name not in self._tables:
            table = open_table(self.database, name, arrow_schema(SCHEMAS[name]))
            if self.pinned is not None and name in self.pinned:
                table.checkout(self.pinned[name])
            self._tables[name] = table
        return self._tables[name]

    def table_names(self) -> list[str]:
        """Give the names of all tables."""
        return list(self.database.list_tables(limit=10_000).tables)

    def ingest(
        self, parts: Dataset | Iterable[Dataset], *, progress: bool = False, now: datetime | None = None
    ) -> pl.DataFrame:
        """Write datasets: what is new is inserted, what differs is rewritten, the rest is left alone.

        Small parts of a stream are joined and written in whole batches. An ingest that was interrupted, run again,
        ends in the same tables; until it has, :meth:`dataset` refuses the dataset. A turn that is rewritten loses its
        vectors. Rows that the dataset no longer has stay.

        :param parts: a dataset, or a stream of datasets; parts of the same name belong together.
        :param now: what is noted as the time of the ingest; the clock where none is given.
        :returns: ``dataset``, ``table`` and the counts ``inserted``, ``updated``, ``unchanged``.
        :raises StoreError: when an id stands for two rows, or the store cannot be written.
        """
        self._writable("ingest")
        return _ingest.ingest(self, parts, progress=progress, now=now or datetime.now(UTC))

    def datasets(self) -> pl.DataFrame:
        """Give what is stored: a row for each dataset; ``complete`` is false where an ingest was interrupted."""
        with guarded("reading", self.uri):
            return _reading.datasets(self)

    def dataset(self, name: str) -> Dataset:
        """Read a dataset as it went in: same rows, same order, same fingerprint.

        :raises StoreError: when there is no such dataset, or its ingest was interrupted.
        """
        with guarded(f"reading {name!r}", self.uri):
            return _reading.whole_dataset(self, name)

    def turns(self, dataset: str, *, scopes: Names = None, columns: Names = None) -> pl.DataFrame:
        """Read turns in the order of the dataset.

        :param scopes: only these scopes.
        :param columns: only these columns; ``content`` (the text that is retrieved) and ``content_hash`` exist too.
        """
        return self._rows("turns", dataset, scopes, columns)

    def sessions(self, dataset: str, *, scopes: Names = None, columns: Names = None) -> pl.DataFrame:
        """Read sessions; parameters as for :meth:`turns`."""
        return self._rows("sessions", dataset, scopes, columns)

    def questions(self, dataset: str, *, scopes: Names = None, columns: Names = None) -> pl.DataFrame:
        """Read questions; parameters as for :meth:`turns`."""
        return self._rows("questions", dataset, scopes, columns)

    def encode(
        self, encoder: Encoder, texts: Iterable[str], *, kind: str = "document", progress: bool = True
    ) -> np.ndarray:
        """Encode texts; what this encoder encoded before, in any dataset or notebook, is read from the cache.

        New vectors are remembered chunk by chunk, so an interrupted run goes on where it stopped.

        :param kind: ``document`` or ``query``.
        :returns: (n, dim) float32, rows of length 1.
        """
        return _vectors.encode(self, encoder, texts, kind=kind, progress=progress)[0]

    def backfill(self, encoder: Encoder, dataset: str, *, header: Sequence[str] = (), progress: bool = True) -> int:
        """Give every turn of a dataset a current vector of this encoder; only what is missing or stale is written.

        :param header: fields put before the text of each turn; see :func:`memlab.embed.text.turn_texts`.
        :returns: how many texts the encoder had to encode; the others came from the cache.
        """
        self._writable("backfill")
        _reading.known(self, dataset)
        return _vectors.backfill(self, encoder, dataset, header=header, progress=progress)

    def vectors(self, encoder: Encoder, dataset: str, *, header: Sequence[str] = ()) -> np.ndarray:
        """Read the vectors of a dataset's turns, in the order of :meth:`turns`.

        :returns: (n, dim) float32, contiguous.
        :raises StoreError: when a turn has no current vector of this encoder, or the column is another encoder's.
        """
        _reading.known(self, dataset)
        return _vectors.vectors(self, encoder, dataset, header=header)

    def vector_column(self, encoder: Encoder, *, header: Sequence[str] = ()) -> str:
        """Give the name of the column of ``turns`` that holds the vectors of an encoder."""
        return _vectors.column_name(encoder, header)

    def create_indexes(self, encoder: Encoder | None = None, *, header: Sequence[str] = ()) -> pl.DataFrame:
        """Make the full-text index, the scalar indexes and, where it pays, the vector index of an encoder.

        :returns: ``column``, ``index`` and ``made``: whether it was made now, was there, or why it was left out.
        """
        self._writable("create_indexes")
        column = self.vector_column(encoder, header=header) if encoder is not None else None
        with guarded("indexing", self.uri):
            return _search.create_indexes(self, column)

    def search_vectors(
        self, vectors: np.ndarray, *, column: str, dataset: str, scopes: Sequence[str], k: int, exact: bool = False
    ) -> pl.DataFrame:
        """Find the nearest turns of each query within its scope: one database call for each scope.

        :param vectors: (n, d) queries.
        :param column: see :meth:`vector_column`.
        :param scopes: the scope of each query.
        :param exact: do not use the vector index.
        :returns: ``query`` (row of the query), ``doc_id``, ``score`` (cosine similarity); by query, best first, ties
            in the dataset's order.
        :raises StoreError: for a wrong width, a NaN, or an unknown column.
        """
        _reading.known(self, dataset)
        with guarded("searching", self.uri):
            where = {"column": column, "dataset": dataset}
            return _search.search_vectors(self, vectors, **where, scopes=list(scopes), k=k, exact=exact)

    def search_text(self, texts: Iterable[str], *, dataset: str, scopes: Sequence[str], k: int) -> pl.DataFrame:
        """Find turns by their words (BM25 over ``content``), for each query within its scope.

        Every sign in a query is text, never an operator. Word weights are those of the whole table, so scores
        differ from BM25 over one scope alone.

        :returns: ``query``, ``doc_id``, ``score``; by query, best first, ties in the dataset's order.
        :raises StoreError: when there is no full-text index: see :meth:`create_indexes`.
        """
        _reading.known(self, dataset)
        with guarded("searching", self.uri):
            return _search.search_text(self, list(texts), dataset=dataset, scopes=list(scopes), k=k)

    def versions(self) -> dict[str, int]:
        """Give the version of each table that a result can depend on; for :meth:`at` and for provenance."""
        with guarded("reading", self.uri):
            return {name: int(self.table(name).version) for name in VERSIONED}

    def tag(self, name: str) -> dict[str, int]:
        """Name the present versions, and keep them from being cleaned up.

        :raises StoreError: when the name is taken or is not made of letters, digits, ``.``, ``-`` and ``_``.
        """
        self._writable("tag")
        return _versions.tag(self, name)

    def tags(self) -> dict[str, dict[str, int]]:
        """Give the tags and the versions that they name."""
        with guarded("reading", self.uri):
            return _versions.tags(self)

    def at(self, what: str | Mapping[str, int]) -> MemoryStore:
        """Look at earlier versions: a read-only store on exactly those.

        :param what: a tag, or versions as :meth:`versions` gave them (a run's provenance holds them).
        :raises StoreError: when there is no such tag, or a version was cleaned up.
        """
        with guarded("reading", self.uri):
            return MemoryStore(self.database, self.uri, pinned=_versions.resolve(self, what))

    def optimize(self) -> pl.DataFrame:
        """Join small files, bring indexes up to date, and remove the versions before the oldest that is needed.

        What a tag or a saved run names stays readable. No other process may be using the store.

        :returns: ``table``, ``versions_before``, ``versions_after``.
        """
        self._writable("optimize")
        with guarded("optimizing", self.uri):
            return _versions.optimize(self)

    def save_run(self, run: Run, *, measures: Mapping[str, Any] | None = None, now: datetime | None = None) -> str:
        """Keep a run and where it came from; saving the same run twice keeps it once.

        Where the provenance holds ``versions`` (see :meth:`versions`), those stay readable.

        :returns: the id of the run, made from its content.
        """
        self._writable("save_run")
        with guarded("saving a run", self.uri):
            return _runs.save(self, run, measures=measures, now=now or datetime.now(UTC))

    def runs(self) -> pl.DataFrame:
        """Give the saved runs, newest first; provenance and measures as JSON."""
        with guarded("reading", self.uri):
            return _runs.listing(self)

    def run(self, run_id: str) -> Run:
        """Read a run back.

        :raises StoreError: when there is no such run.
        """
        with guarded("reading", self.uri):
            return _runs.load(self, run_id)

    def _rows(self, table: str, dataset: str, scopes: Names, columns: Names) -> pl.DataFrame:
        only = None if scopes is None else list(scopes)
        wanted = None if columns is None else list(columns)
        with guarded(f"reading {table} of {dataset!r}", self.uri):
            _reading.known(self, dataset)
            return _reading.read_rows(self, table, dataset, scopes=only, columns=wanted)

    def _writable(self, what: str) -> None:
        if self.read_only:
            raise StoreError(
                f"{what}: this is a view on versions {self.pinned} of store {self.uri}, and read-only; "
                "open the store itself to write"
            )

    def _repr_html_(self) -> str:
        return _runs.overview(self)
