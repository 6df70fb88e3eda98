"""LanceDB's indexes over the turns, and search through them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from memlab.embed.encoder import Encoder
from memlab.embed.speaker_centring import SpeakerSums, sum_vectors_by_speaker
from memlab.errors import ModelError, StoreError
from memlab.store.database import Database
from memlab.store.dataset_rows import CURRENT_VERSIONS, read_dataset_entry, read_dataset_rows
from memlab.store.full_text_index import TextIndex, VersionedReads
from memlab.store.scope_statistics import Statistics
from memlab.store.table_schemas import (
    build_required_row_filter,
    hash_text_column,
    type_by_record_column,
)
from memlab.store.turn_vectors import check_vectors_and_give_float32, vector_column_name
from memlab.store.version_cleaning import clean_due_tables_or_warn
from memlab.text.bm25_formula import ScopeWords
from memlab.text.text_analyser import tokenize

if TYPE_CHECKING:
    from lancedb.query import LanceVectorQueryBuilder

INDEXED_SCOPE = 100_000
"""Turns of one scope from which a vector index pays. Below it, comparing every vector of the scope
is as fast (75,000 turns, 384-d, two cores: 12 ms a query, 10 ms through the index) and misses
nothing."""

SPEAKER_TURNS = 10_000
"""Turns of a scope, about, from which what its speakers have in common is taken; of a smaller one
all."""

OVER_FETCH = 2
_FOUND = ["turn_id", "session_id", "content_hash", "position"]
_HITS = {
    "query": pl.Int32(),
    "doc_id": pl.String(),
    "session_id": pl.String(),
    "score": pl.Float64(),
}


class SessionTurns(NamedTuple):
    """Some sessions of a scope, whole and in its order.

    :param vectors: (n, d) float32 of the turns.
    """

    turns: pl.DataFrame
    sessions: pl.DataFrame
    vectors: np.ndarray


class Search(VersionedReads):
    """Search in the database itself: ``store.search``.

    :param text: the full-text index; ``statistics`` are the counts of scopes.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.text = TextIndex(database)
        self.statistics = Statistics(database, self.text)

    def _indexed_turn_columns(self) -> set[str]:
        """Give the columns that have an index."""
        return {
            index.columns[0] for index in self.database.open_or_create_table("turns").list_indices()
        }

    def _width_by_vector_column(self) -> dict[str, int]:
        """Give the columns of vectors, and how wide they are."""
        fields = self.database.open_or_create_table("turns").schema
        return {
            field.name: field.type.list_size for field in fields if field.name.startswith("vector_")
        }

    def _count_turns_by_dataset_and_scope(self) -> dict[tuple[str, str], int]:
        """Give the turns of each (dataset, scope)."""
        size_rows = (
            self.database.read_table("sessions", ["dataset", "scope", "n_turns"])
            .group_by("dataset", "scope")
            .sum()
        )
        return {(dataset, scope): n_turns for dataset, scope, n_turns in size_rows.iter_rows()}

    def _read_turn_count_by_scope(self, dataset: str) -> dict[str, int]:
        """Read the scopes of a dataset, in its order, and the turns of each."""
        session_rows = read_dataset_rows(
            self.database, "sessions", dataset, columns=["scope", "n_turns"]
        )
        return dict(session_rows.group_by("scope", maintain_order=True).sum().iter_rows())

    def _read_sessions_in_order(self, dataset: str, scope: str) -> pl.DataFrame:
        """Read all sessions of a scope, in order."""
        return read_dataset_rows(
            self.database, "sessions", dataset, scopes=[scope], versions=CURRENT_VERSIONS
        ).sort("n")

    def create_indexes(self, encoder: Encoder | None = None) -> pl.DataFrame:
        """Make the full-text index, the scalar indexes and, where it pays, the vector index of an
        encoder.

        :returns: ``column``, ``index`` and ``made``: whether it was made now, was there, or why it
            was left out.
        """
        from lancedb.index import Bitmap, BTree, IvfFlat

        wanted_indexes: dict[str, Any] = {
            "scope": BTree(),
            "dataset": Bitmap(),
            "session_id": BTree(),
        }
        if encoder is not None:
            # Flat within a partition: distances are exact, which those of quantised indexes are
            # not.
            wanted_indexes[vector_column_name(encoder)] = IvfFlat(distance_type="cosine")
        with self.database.translating_errors("indexing", refused_write="create_indexes"):
            index_rows = [("words", "FTS", self._update_word_index_and_describe())]
            table = self.database.open_or_create_table("turns")
            indexed_columns = self._indexed_turn_columns()
            largest_scope = max(self._count_turns_by_dataset_and_scope().values(), default=0)
            for name, config in wanted_indexes.items():
                action_text = "there" if name in indexed_columns else "made"
                if (
                    action_text == "made"
                    and isinstance(config, IvfFlat)
                    and largest_scope < INDEXED_SCOPE
                ):
                    action_text = (
                        f"left out: the largest scope has {largest_scope:,} turns, "
                        f"it pays from {INDEXED_SCOPE:,}"
                    )
                elif action_text == "made":
                    table.create_index(name, config=config)
                index_rows.append((name, type(config).__name__, action_text))
            search_tables = [
                table_name
                for table_name in self.database.table_names()
                if table_name.startswith(("words_", "statistics"))
            ]
            clean_due_tables_or_warn(self.database, ["turns", "store", *search_tables])
        return pl.DataFrame(index_rows, schema=["column", "index", "made"], orient="row")

    def _update_word_index_and_describe(self) -> str:
        """Index the words of all turns, and count those of large scopes."""
        filled_datasets = []
        languages = set()
        left_out_texts = []
        for name, language in (
            self.database.list_datasets()["name", "language"].sort("name").iter_rows()
        ):
            try:
                if self.text.update_words_if_due(name):
                    filled_datasets.append(name)
                languages.add(language)
            except ModelError as error:  # the stop words of the language are not installed
                left_out_texts.append(f"left out for {name}: {error}")
        for language in sorted(languages):
            self.text.index_unindexed_words(language)
        for name in filled_datasets:
            self.statistics.count_and_keep_words_of_large_scopes(name)
        return "; ".join(["made" if filled_datasets else "there", *left_out_texts])

    def by_vector(
        self, vectors: np.ndarray, *, column: str, dataset: str, scopes: Sequence[str], k: int
    ) -> pl.DataFrame:
        """Find the nearest turns of each query within its scope.

        :param column: see :meth:`memlab.store.turn_vectors.Vectors.column`.
        :param scopes: the scope of each query.
        :returns: ``query`` (row of the query), ``doc_id``, ``session_id``, ``score`` (cosine
            similarity); by query, best first, ties by the hash of the text.
        :raises StoreError: for a wrong width, a NaN, zeros alone (for which LanceDB 0.40 gives no
            rows and no error), or an unknown column.
        """
        vector_widths = self._call_once_per_search_state(self._width_by_vector_column)
        indexed_columns = self._call_once_per_search_state(self._indexed_turn_columns)
        scope_sizes = self._call_once_per_search_state(self._count_turns_by_dataset_and_scope)
        if column not in vector_widths:
            raise StoreError(
                f"store {self.database.uri} has no vectors {column!r}; run store.vectors.backfill"
            )
        queries = check_vectors_and_give_float32(
            vectors, dim=vector_widths[column], error_subject=f"queries on {column}"
        )
        for row in np.flatnonzero(~queries.any(axis=1)):
            raise StoreError(
                f"queries on {column}: row {row} holds zeros alone, which point nowhere; "
                "encode a text that the encoder knows a word of"
            )

        def build_nearest_query(row: int) -> LanceVectorQueryBuilder:
            query: Any = self.database.open_or_create_table("turns").search(
                queries[row], vector_column_name=column
            )
            is_exact = (
                column not in indexed_columns
                or scope_sizes.get((dataset, scopes[row]), 0) < INDEXED_SCOPE
            )
            query = query.distance_type("cosine")
            if is_exact:
                query = query.bypass_vector_index()
            built_query: LanceVectorQueryBuilder = query
            return built_query

        def search_one_query(row: int, scope: str) -> pl.DataFrame:
            query = build_nearest_query(row).where(
                build_required_row_filter(dataset=dataset, scope=scope)
            )
            nearest_turns = (
                query.limit(OVER_FETCH * k + 50).select([*_FOUND, "_distance"]).to_polars()
            )
            return nearest_turns.with_columns(score=1.0 - pl.col("_distance"))

        return self._best_hits_of_each_query(
            search_one_query, dataset, list(scopes), k, n_queries=len(queries)
        )

    def by_text(
        self, texts: Iterable[str], *, dataset: str, scopes: Sequence[str], k: int
    ) -> pl.DataFrame:
        """Find turns by their words, for each query within its scope: BM25 over the scope.

        Every sign in a query is text, never an operator. A turn has the score that BM25 over the
        whole scope gives, see :mod:`memlab.text.bm25_formula`; LanceDB's index chooses the turns
        that are scored, and those that came after it was filled all are.

        :returns: as :meth:`by_vector` does, ``score`` from BM25.
        :raises StoreError: when there is no full-text index: see :meth:`create_indexes`.
        """
        language = read_dataset_entry(self.database, dataset)["language"]
        queries = tokenize(list(texts), language=language)
        if not self.text.has_index(language):
            raise StoreError(
                f"store {self.database.uri} has no full-text index; "
                "run store.search.create_indexes()"
            )

        def search_one_query(row: int, scope: str) -> pl.DataFrame:
            matching_turns = self.text.find_candidate_turns(
                queries[row], dataset, scope, max_indexed_turns=OVER_FETCH * k + 50
            )
            scope_statistics = self.statistics.read_or_count_scope_statistics(
                dataset, scope, language=language
            ).turn
            scope_words = ScopeWords.of(matching_turns["words"].to_list(), scope_statistics)
            scores = scope_words.scores([queries[row]], *scope_words.k1_and_b)[0]
            return matching_turns.with_columns(score=scores.astype(np.float64)).filter(
                pl.col("score") > 0
            )

        return self._best_hits_of_each_query(
            search_one_query, dataset, list(scopes), k, n_queries=len(queries)
        )

    def _best_hits_of_each_query(
        self,
        search_one_query: Callable[[int, str], pl.DataFrame],
        dataset: str,
        scopes: list[str],
        k: int,
        *,
        n_queries: int,
    ) -> pl.DataFrame:
        """Keep the first k of each of n queries: best first, ties by the hash of the text, not the
        database's order.

        Never by id, which in some benchmarks gives the label away, nor by age.

        :param search_one_query: gives more than wanted, since which of the turns with one score
            come first changes with the limit.
        """
        read_dataset_entry(self.database, dataset)
        if len(scopes) != n_queries or k < 1:
            raise StoreError(
                f"{n_queries} queries have {len(scopes)} scopes, k is {k}; "
                "expected a scope for each and k ≥ 1"
            )
        query_hits = [pl.DataFrame(schema=_HITS)]
        with self.database.translating_errors("searching"):
            for row, scope in enumerate(scopes):
                # Again where the files that were being read were cleaned away.
                near_turns = self.database.retry_on_conflict(
                    partial(search_one_query, row, scope)
                ).with_columns(query=pl.lit(row), doc_id="turn_id")
                best_turns = near_turns.drop_nulls("score").sort(
                    "score", "content_hash", "position", descending=[True, False, False]
                )
                query_hits.append(
                    best_turns.head(k).select(
                        pl.col(name).cast(column_type) for name, column_type in _HITS.items()
                    )
                )
        return pl.concat(query_hits)

    def can_search_words_and_vectors(self, encoder: Encoder, dataset: str) -> bool:
        """Say whether turns of a dataset are found by their words and an encoder's vectors."""
        language = read_dataset_entry(self.database, dataset)["language"]
        indexed = "session_id" in self._call_once_per_search_state(
            self._indexed_turn_columns
        ) and self.text.has_index(language)
        return indexed and vector_column_name(encoder) in self._call_once_per_search_state(
            self._width_by_vector_column
        )

    def count_turns_by_scope(self, dataset: str) -> dict[str, int]:
        """Count the turns of each scope of a dataset, in its order, once for each state of the
        store.
        """
        return self._call_once_per_search_state(self._read_turn_count_by_scope, dataset)

    def count_turns_of_scope(self, dataset: str, scope: str) -> int:
        """Count the turns of a scope."""
        return self._call_once_per_search_state(self._count_turns_by_dataset_and_scope).get(
            (dataset, scope), 0
        )

    def sum_vectors_by_speaker(
        self, dataset: str, scope: str, *, vector_column: str
    ) -> SpeakerSums:
        """Add up the vectors of a scope by speaker, of whole sessions evenly over it: some 10,000
        turns.

        :param vector_column: of the vectors that are read.
        """
        return self._call_once_per_search_state(
            self._sum_sampled_vectors_by_speaker, dataset, scope, vector_column
        )

    def _sum_sampled_vectors_by_speaker(
        self, dataset: str, scope: str, vector_column: str
    ) -> SpeakerSums:
        session_rows = self._call_once_per_search_state(
            self._read_sessions_in_order, dataset, scope
        )
        session_step = max(1, int(session_rows["n_turns"].sum()) // SPEAKER_TURNS)
        sampled_turns = self.read_sessions_with_vectors(
            dataset,
            scope,
            session_rows["session_id"].gather_every(session_step),
            vector_column=vector_column,
        )
        return sum_vectors_by_speaker(sampled_turns.vectors, sampled_turns.turns["speaker"])

    def digest_sessions_of_scope(self, dataset: str, scope: str) -> pl.DataFrame:
        """Hash what the turns of each session of a scope say: ``session_id``, ``digest``."""
        columns = ["session_id", "n", "content_hash"]
        turns = self.database.read_table("turns", columns, dataset=dataset, scope=scope)
        # Most stand in order: to see that takes a part of the time of sorting.
        if not _stand_in_order_of_sessions(turns):
            turns = turns.sort("session_id", "n")
        by_session = turns.group_by("session_id", maintain_order=True)
        session_hashes = by_session.agg(pl.col("content_hash").str.join())
        return session_hashes.select(
            "session_id", hash_text_column(session_hashes["content_hash"]).alias("digest")
        )

    def read_sessions_with_vectors(
        self,
        dataset: str,
        scope: str,
        session_ids: pl.Series,
        *,
        vector_column: str,
        max_turns: int | None = None,
    ) -> SessionTurns:
        """Read sessions of a scope whole, but for turns that were ingested a moment ago and have no
        vectors yet.

        :param session_ids: the first are the wanted ones.
        :param vector_column: of the vectors that are read.
        :param max_turns: turns after which no further session is begun.
        :raises StoreError: where no turn has a vector.
        """
        session_rows = self._call_once_per_search_state(
            self._read_sessions_in_order, dataset, scope
        )
        if max_turns is not None:
            wanted_sessions = session_ids.to_frame("session_id").join(
                session_rows, on="session_id", maintain_order="left"
            )
            session_ids = wanted_sessions.filter(
                pl.col("n_turns").cum_sum().shift(1, fill_value=0) < max_turns
            )["session_id"]
        listed_sessions = session_rows.filter(pl.col("session_id").is_in(session_ids.implode()))
        column_names = [*type_by_record_column("turns"), "dataset", "position", "key"]
        # By sessions alone: an index that gives all turns of a large scope takes longer than to
        # leave some out.
        turns_read = self.database.read_table(
            "turns", [*column_names, vector_column], session_id=listed_sessions["session_id"]
        )
        scope_rows = (
            turns_read.select(column_names)
            .with_row_index("row")
            .filter(dataset=dataset, scope=scope)
        )  # vectors are slow to sort
        session_place = listed_sessions.select("session_id", place=pl.int_range(pl.len()))
        ordered_turns = (
            scope_rows.sort("position", "key")
            .join(session_place, on="session_id", maintain_order="left")
            .sort("place", "n", maintain_order=True)
        )
        encoded_turns = ordered_turns.filter(
            turns_read[vector_column].gather(ordered_turns["row"]).is_not_null()
        )
        if encoded_turns.is_empty() and ordered_turns.height:
            raise StoreError(
                f"turns of {dataset!r} have no vectors in {vector_column}; run "
                "store.vectors.backfill"
            )
        vectors = turns_read[vector_column].gather(encoded_turns["row"]).to_numpy()
        return SessionTurns(
            encoded_turns.select(*type_by_record_column("turns")), listed_sessions, vectors
        )


def _stand_in_order_of_sessions(turns: pl.DataFrame) -> bool:
    """Say whether the turns (``session_id``, ``n``) of each session are neighbours, in order."""
    if turns.is_empty():
        return True
    session_numbers = turns["session_id"].rle_id().to_numpy()
    if session_numbers[-1] + 1 > turns["session_id"].n_unique():
        return False
    goes_on = np.diff(session_numbers) == 0
    return bool((np.diff(turns["n"].to_numpy())[goes_on] > 0).all())
