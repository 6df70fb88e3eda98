"""LanceDB's indexes over the turns, and search through them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from memlab.embed.base import Encoder
from memlab.errors import StoreError
from memlab.store.database import Database, Part
from memlab.store.reading import PRESENT, entry, in_order, read_rows
from memlab.store.schemas import matching, row_columns
from memlab.store.vectors import check_vectors, column_name

INDEXED_SCOPE = 100_000
"""Turns of one scope from which a vector index pays. Below it, comparing every vector of the scope is as fast (75,000
turns, 384-d, two cores: 12 ms a query, 10 ms through the index) and misses nothing."""

OVER_FETCH = 2
_FOUND = ["turn_id", "session_id", "content_hash", "position"]
_HITS = {"query": pl.Int32(), "doc_id": pl.String(), "session_id": pl.String(), "score": pl.Float64()}


class TurnsOf(NamedTuple):
    """Some sessions of a scope, whole and in its order.

    :param vectors: (n, d) float32 of the turns.
    """

    turns: pl.DataFrame
    sessions: pl.DataFrame
    vectors: np.ndarray


class _Snapshot:
    """What is known of the turns at one version of them and of what is listed."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.sessions: dict[tuple[str, str], pl.DataFrame] = {}
        self.samples: dict[tuple[Any, ...], TurnsOf] = {}

    @cached_property
    def indexed(self) -> set[str]:
        """The columns that have an index."""
        return {index.columns[0] for index in self.database.table("turns").list_indices()}

    @cached_property
    def widths(self) -> dict[str, int]:
        """The columns of vectors, and how wide they are."""
        fields = self.database.table("turns").schema
        return {f.name: f.type.list_size for f in fields if f.name.startswith("vector_")}

    @cached_property
    def sizes(self) -> dict[tuple[str, str], int]:
        """The turns of each (dataset, scope)."""
        sizes = self.database.read("sessions", ["dataset", "scope", "n_turns"]).group_by("dataset", "scope").sum()
        return {(dataset, scope): n for dataset, scope, n in sizes.iter_rows()}

    def width(self, column: str) -> int:
        """Give the width of a column of vectors.

        :raises StoreError: when there is no such column.
        """
        if column not in self.widths:
            raise StoreError(
                f"store {self.database.uri} has no vector column {column!r}; it has: {', '.join(self.widths) or 'none'}"
                ". Run store.vectors.backfill(encoder, dataset)"
            )
        return self.widths[column]


class Search(Part):
    """Search in the database itself: ``store.search``."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._seen: tuple[tuple[int, int], _Snapshot] | None = None

    def _now(self) -> _Snapshot:
        with self.database.guarded("reading turns"):
            version = self.database.table("turns").version, self.database.table("datasets").version
        if self._seen is None or self._seen[0] != version:
            self._seen = version, _Snapshot(self.database)
        return self._seen[1]

    def create_indexes(self, encoder: Encoder | None = None, *, header: Sequence[str] = ()) -> pl.DataFrame:
        """Make the full-text index, the scalar indexes and, where it pays, the vector index of an encoder.

        :returns: ``column``, ``index`` and ``made``: whether it was made now, was there, or why it was left out.
        """
        from lancedb.index import FTS, Bitmap, BTree, IvfFlat

        wanted: dict[str, Any] = {"content": FTS(remove_stop_words=False), "scope": BTree(), "dataset": Bitmap()}
        wanted["session_id"], rows = BTree(), []
        with self.database.guarded("indexing", writes="create_indexes"):
            table, now = self.database.table("turns"), _Snapshot(self.database)
            if encoder is not None:
                now.width(column := column_name(encoder, header))
                # Flat within a partition: distances are exact, which those of quantised indexes are not.
                wanted[column] = IvfFlat(distance_type="cosine")
            largest = max(now.sizes.values(), default=0)
            for name, config in wanted.items():
                made = "there" if name in now.indexed else "made"
                if made == "made" and isinstance(config, IvfFlat) and largest < INDEXED_SCOPE:
                    made = f"left out: the largest scope has {largest:,} turns, it pays from {INDEXED_SCOPE:,}"
                elif made == "made":
                    table.create_index(name, config=config)
                rows.append((name, type(config).__name__, made))
        return pl.DataFrame(rows, schema=["column", "index", "made"], orient="row")

    def by_vector(
        self, vectors: np.ndarray, *, column: str, dataset: str, scopes: Sequence[str], k: int
    ) -> pl.DataFrame:
        """Find the nearest turns of each query within its scope: one database call for each scope.

        :param column: see :meth:`memlab.store.vectors.Vectors.column`.
        :param scopes: the scope of each query.
        :returns: ``query`` (row of the query), ``doc_id``, ``session_id``, ``score`` (cosine similarity); by query,
            best first, ties by the hash of the text.
        :raises StoreError: for a wrong width, a NaN, or an unknown column.
        """
        entry(self.database, dataset)
        now = self._now()
        queries = check_vectors(vectors, dim=now.width(column), what=f"queries on {column}")
        _check(len(queries), scopes, k)
        hits = []
        with self.database.guarded("searching"):
            table = self.database.table("turns")
            for scope in dict.fromkeys(scopes):
                rows = np.array([row for row, of in enumerate(scopes) if of == scope])
                query = table.search(queries[rows], vector_column_name=column)
                query = query.distance_type("cosine").where(matching(dataset=dataset, scope=scope))
                if column not in now.indexed or now.sizes.get((dataset, scope), 0) < INDEXED_SCOPE:
                    query = query.bypass_vector_index()
                near = query.limit(OVER_FETCH * k).select([*_FOUND, "_distance"]).to_polars()
                # One query alone has no index.
                place = near["query_index"].to_numpy() if "query_index" in near.columns else np.zeros(len(near), int)
                hits.append(near.select(*_FOUND, query=pl.Series(rows[place]), score=1.0 - pl.col("_distance")))
        return _best(hits, k)

    def by_text(self, texts: Iterable[str], *, dataset: str, scopes: Sequence[str], k: int) -> pl.DataFrame:
        """Find turns by their words (BM25 over ``content``), for each query within its scope.

        Every sign in a query is text, never an operator. Word weights are those of the whole table, so scores
        differ from BM25 over one scope alone.

        :returns: ``query``, ``doc_id``, ``session_id``, ``score``; by query, best first, ties by the hash of the text.
        :raises StoreError: when there is no full-text index: see :meth:`create_indexes`.
        """
        from lancedb.query import MatchQuery

        queries = list(texts)
        _check(len(queries), scopes, k)
        entry(self.database, dataset)
        if "content" not in self._now().indexed:
            raise StoreError(f"store {self.database.uri} has no full-text index; run store.search.create_indexes()")
        hits = []
        with self.database.guarded("searching"):
            table = self.database.table("turns")
            for row, (text, scope) in enumerate(zip(queries, scopes, strict=True)):
                query = table.search(MatchQuery(text, "content"), query_type="fts")  # type: ignore[call-arg]
                # More than wanted, since which of the turns with one score come first changes with the limit.
                query = query.where(matching(dataset=dataset, scope=scope)).limit(OVER_FETCH * k + 50)
                near = query.select([*_FOUND, "_score"]).to_polars()
                hits.append(near.select(*_FOUND, query=pl.lit(row), score="_score"))
        return _best(hits, k)

    def searchable(self, encoder: Encoder) -> bool:
        """Say whether turns can be found here by their words and by an encoder's vectors."""
        now = self._now()
        return {"content", "session_id"} <= now.indexed and column_name(encoder) in now.widths

    def size(self, dataset: str, scope: str) -> int:
        """Count the turns of a scope."""
        return self._now().sizes.get((dataset, scope), 0)

    def sample(self, dataset: str, scope: str, *, column: str, most: int) -> tuple[TurnsOf, int]:
        """Read sessions of a scope that are drawn at random, the same ones until the store changes.

        :param most: as for :meth:`sessions`.
        :returns: the sessions, and how many the scope has.
        """
        samples, key = self._now().samples, (dataset, scope, column, most)
        every = self._sessions(dataset, scope)["session_id"]
        if key not in samples:
            drawn = every.sample(fraction=1, shuffle=True, seed=0).head(most)
            samples[key] = self.sessions(dataset, scope, drawn, column=column, most=most)
        return samples[key], len(every)

    def sessions(
        self, dataset: str, scope: str, session_ids: pl.Series, *, column: str, most: int | None = None
    ) -> TurnsOf:
        """Read sessions of a scope whole, but for turns that were ingested a moment ago and have no vectors yet.

        :param session_ids: the first are the wanted ones.
        :param column: of the vectors that are read.
        :param most: turns after which no further session is begun.
        :raises StoreError: where no turn has a vector.
        """
        every = self._sessions(dataset, scope)
        if most is not None:
            wanted = session_ids.to_frame("session_id").join(every, on="session_id", maintain_order="left")
            session_ids = wanted.filter(pl.col("n_turns").cum_sum().shift(1, fill_value=0) < most)["session_id"]
        listed = every.filter(pl.col("session_id").is_in(session_ids.implode()))
        names = [*row_columns("turns"), "dataset", "position", "key"]
        # By sessions alone: an index that gives all turns of a large scope takes longer than to leave some out.
        read = self.database.read("turns", [*names, column], session_id=listed["session_id"])
        rows = read.select(names).with_row_index("row").filter(dataset=dataset, scope=scope)  # vectors are slow to sort
        place = listed.select("session_id", place=pl.int_range(pl.len()))
        turns = in_order("turns", rows).join(place, on="session_id").sort("place", "n", maintain_order=True)
        encoded = turns.filter(read[column].gather(turns["row"]).is_not_null())
        if encoded.is_empty() and turns.height:
            raise StoreError(f"turns of {dataset!r} have no vectors in {column}; run store.vectors.backfill")
        vectors = read[column].gather(encoded["row"]).to_numpy()
        return TurnsOf(encoded.select(*row_columns("turns")), listed, vectors)

    def _sessions(self, dataset: str, scope: str) -> pl.DataFrame:
        """Read all sessions of a scope, in order, once for a version of the turns."""
        known, key = self._now().sessions, (dataset, scope)
        if key not in known:
            known[key] = read_rows(self.database, "sessions", dataset, scopes=[scope], at=PRESENT).sort("n")
        return known[key]


def _check(queries: int, scopes: Sequence[str], k: int) -> None:
    if len(scopes) != queries:
        raise StoreError(f"{queries} queries have {len(scopes)} scopes; expected one scope for each query")
    if k < 1:
        raise StoreError(f"k is {k}; expected at least 1")


def _best(hits: list[pl.DataFrame], k: int) -> pl.DataFrame:
    """Keep the first k of each query: best score first, ties by the hash of the text, whatever the database's order.

    Never by id, which in some benchmarks gives the label away, nor by age.
    """
    if not hits:
        return pl.DataFrame(schema=_HITS)
    rows = pl.concat(hits, how="vertical_relaxed").drop_nulls("score").rename({"turn_id": "doc_id"})
    ordered = rows.sort("query", "score", "content_hash", "position", descending=[False, True, False, False])
    return ordered.filter(pl.int_range(pl.len()).over("query") < k).select(*_HITS).cast(_HITS)  # type: ignore[arg-type]
