"""What a stage may look at: the documents of every scope, the queries, their vectors.

Never the evidence.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, TypeVarTuple

import numpy as np
import polars as pl

from memlab.embed.contextual_headers import header_fields_or_empty
from memlab.embed.encoder import check_nonzero_vectors
from memlab.embed.encoder_wrapper import without_cache
from memlab.embed.turn_texts import query_texts, turn_texts
from memlab.errors import DataError, StoreError
from memlab.records import LEVELS, Dataset, Level, Qrels, Run, qrels
from memlab.retrieve.documents import Documents, build_documents_by_level
from memlab.text.text_analyser import tokenize

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.embed.speaker_centring import SpeakerSums
    from memlab.store import MemoryStore
    from memlab.store.scope_statistics import ScopeStatistics

T = TypeVar("T")
Key = TypeVarTuple("Key")
_log = logging.getLogger(__name__)
CacheLookup = Callable[[MutableMapping[Hashable, Any], Hashable, Callable[[], Any]], Any]
"""A way to keep results: of a cache, a place and what makes the result, it gives the result."""


class ScopeQueries(NamedTuple):
    """The queries of one scope: their rows (q,), and where the scope's documents are."""

    query_rows: np.ndarray
    documents: slice


@dataclass(frozen=True, eq=False, repr=False)
class Bench:
    """A dataset encoded and indexed: everything that stages may read.

    Vectors are encoded when first needed.

    Evidence is held apart for showing results; stages get no way to it.

    :param name: the dataset's name; ``turns`` and ``sessions`` are its own.
    :param queries: ``query_id``, ``scope``, ``text``, ``timestamp`` and nothing else of the
        questions.
    :param vectors: (n turns, d) float32 unit rows, where they are there already.
    :param encoder: what embeds, and with which contextual header; with a store it reads the store's
        cache. ``None`` for BM25 alone.
    :param store: what remembers vectors; ``None`` for a bench held in memory alone.
    :param language: of the conversations.
    :param progress: whether encoding shows a bar.
    :param statistics: of the whole scope, where this bench has candidates of a large one.
    :param speaker_sums: gives those of the whole scope, in the same case; see
        :mod:`memlab.embed.speaker_centring`.
    :param provenance: dataset fingerprint, encoder identity, table versions: what every run over it
        carries.
    :param remembered: the last rankings, which :mod:`memlab.pipelines` keeps here so that ten
        selections share one retrieval, and ``dense`` and ``bm25`` for ``hybrid``.
    """

    name: str
    turns: pl.DataFrame
    sessions: pl.DataFrame
    queries: pl.DataFrame
    vectors: np.ndarray | None = None
    encoder: Encoder | None = None
    store: MemoryStore | None = None
    language: str = "en"
    progress: bool = True
    statistics: ScopeStatistics | None = None
    speaker_sums: Callable[[], SpeakerSums] | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    remembered: dict[tuple[Any, ...], Any] = field(default_factory=dict, init=False)
    _evidence: Mapping[Level, Qrels] = field(default_factory=dict)
    _whole_bench_and_rows: tuple[Bench, np.ndarray | slice] | None = field(default=None, init=False)

    @classmethod
    def of(
        cls,
        dataset: Dataset | str | Path,
        *,
        encoder: Encoder | str | None = "settings",
        store: MemoryStore | str | None = None,
        ingest: bool = True,
        progress: bool = True,
        token_encoder: Encoder | str | None = None,
    ) -> Bench:
        """Make a bench of a dataset; a store keeps what it has encoded.

        :param dataset: a dataset, or the path of a file that :func:`memlab.datasets.load` reads.
        :param encoder: an encoder or its name, see :func:`memlab.embed.load`, which also takes the
            fields of a contextual header; ``None`` for BM25 alone.
        :param store: a store or its URI; ``None`` keeps everything in memory. A view on earlier
            versions is read as it is; its versions, and the scopes where it holds more of them, are
            noted in the provenance.
        :param ingest: write the dataset to the store; ``False`` for one, or some scopes of one,
            that was read from it.
        :param token_encoder: what embeds single tokens, where it is another encoder, see
            :func:`memlab.embed.load`.
        :raises DataError: when the dataset is empty.

        >>> from memlab import retrieve, sample
        >>> small = sample(turns=60)
        >>> bench = retrieve.Bench.of(small, encoder="hashing")
        >>> bench.turn_vectors.shape[0] == small.turns.height
        True
        """
        from memlab import datasets, embed
        from memlab.store import MemoryStore

        loaded_dataset = dataset if isinstance(dataset, Dataset) else datasets.load(dataset)
        if not loaded_dataset.turns.height:
            raise DataError(
                f"dataset {loaded_dataset.name!r} holds no turns; there is nothing to search"
            )
        provenance: dict[str, Any] = {
            "dataset": loaded_dataset.name,
            "fingerprint": loaded_dataset.fingerprint(),
        }
        if loaded_dataset.language != "en":
            provenance["language"] = loaded_dataset.language
        if encoder is not None:
            encoder = embed.load(encoder, token_encoder=token_encoder)
            provenance |= embed.describe_encoder(encoder)
        store = MemoryStore.open(store) if isinstance(store, str) else store
        if store is not None:
            if ingest and not store.read_only:
                ingest_report = store.ingest(loaded_dataset, choose=False)
                n_removed = ingest_report.filter(table="turns")["removed"].sum()
                if n_removed:
                    _log.warning(
                        "%s: %s turns that their scopes no longer have were removed from the "
                        "store; "
                        "give the dataset a name of its own to keep both",
                        loaded_dataset.name,
                        f"{n_removed:,}",
                    )
            encoder = encoder and embed.cache_encoder(store, encoder)
            provenance["versions"] = store.versions()
            if len(store.scopes(loaded_dataset.name)) > len(loaded_dataset.scopes):
                provenance["scopes"] = loaded_dataset.scopes
        bench_queries = loaded_dataset.questions.select("query_id", "scope", "text", "timestamp")
        evidence: dict[Level, Qrels] = {
            level: qrels(loaded_dataset.questions, level, loaded_dataset.turns) for level in LEVELS
        }
        return cls(
            loaded_dataset.name,
            loaded_dataset.turns,
            loaded_dataset.sessions,
            bench_queries,
            encoder=encoder,
            store=store,
            language=loaded_dataset.language,
            progress=progress,
            provenance=provenance,
            _evidence=evidence,
        )

    def with_changes(self, **changes: Any) -> Bench:
        """Copy the bench with some fields replaced and without cached rankings."""
        changed_bench = replace(self, **changes)
        replaced_fields = changes.keys() & {"turns", "sessions", "vectors", "language"}
        if not replaced_fields and changed_bench.header == self.header:
            vars(changed_bench)["_documents_by_level"] = self._documents_by_level
            if "queries" not in changes and self.encoder is not None:
                vars(changed_bench)["_whole_bench_and_rows"] = self, slice(None)
        return changed_bench

    def with_queries(self, queries: pl.DataFrame) -> Bench:
        """Copy the bench with other questions, encoded the same way.

        :param queries: ``scope`` and ``text``; ``query_id`` and ``timestamp`` are made up where
            absent.
        :raises DataError: when a column is missing, or two questions have one id.
        """
        if missing_columns := {"scope", "text"} - set(queries.columns):
            raise DataError(
                f"queries have no column {min(missing_columns)!r}; they need scope and text, not "
                f"{queries.columns}"
            )
        default_columns = {
            "query_id": pl.format("query-{}", pl.int_range(pl.len())).alias("query_id"),
            "timestamp": pl.lit(None, self.queries.schema["timestamp"]).alias("timestamp"),
        }
        filled_queries = queries.select(
            column_name if column_name in queries.columns else default_columns[column_name]
            for column_name in self.queries.columns
        )
        for repeated_id in (
            filled_queries["query_id"].filter(filled_queries["query_id"].is_duplicated()).head(1)
        ):
            raise DataError(
                f"query id {repeated_id!r} stands for several questions; give each its own"
            )
        return self.with_changes(queries=filled_queries, _evidence={})

    def with_query_rows(self, query_rows: np.ndarray, *, with_store: bool = True) -> Bench:
        """Copy the bench with a subset of its questions.

        :param query_rows: of the questions.
        :param with_store: whether it goes on reading the store, and what the store remembers of its
            encoder.
        """
        storeless_fields = (
            {} if with_store else {"store": None, "encoder": without_cache(self.encoder)}
        )
        query_subset = self.with_changes(queries=self.queries[query_rows], **storeless_fields)
        vars(query_subset)["_whole_bench_and_rows"] = self, query_rows
        return query_subset

    @property
    def header(self) -> tuple[str, ...]:
        """The fields that are put before what is embedded: those of the encoder."""
        return header_fields_or_empty(self.encoder)

    @cached_property
    def _documents_by_level(self) -> dict[Level, Documents]:
        embed_turns = (
            None if self.encoder is None and self.vectors is None else self._read_or_encode_turns
        )
        return build_documents_by_level(
            self.turns,
            self.sessions,
            embed=embed_turns,
            language=self.language,
            statistics=self.statistics,
            speaker_sums=self.speaker_sums,
        )

    def documents(self, level: Level) -> Documents:
        """Give the documents (turns or sessions) of a level, grouped by scope."""
        return self._documents_by_level[level]

    def _read_or_encode_turns(self) -> np.ndarray:
        """Encode the turns, or read what the store has of them: (n turns, d), in their order."""
        if self.vectors is not None:
            return self.vectors
        encoder = self.embedder()
        if self.store is None:
            new_vectors = encoder.encode(
                turn_texts(self.turns, header=self.header), progress=self.progress
            )
            return check_nonzero_vectors(new_vectors, made_by=f"encoder {encoder.identity.key}")
        stored_vectors = self._turn_vectors_from_store(self.store, encoder)
        self.provenance["versions"] = self.store.versions()
        return stored_vectors

    def _turn_vectors_from_store(self, store: MemoryStore, encoder: Encoder) -> np.ndarray:
        """Read the turns' vectors from a store, which may hold more turns under the same name.

        Where it cannot be written, or another process writes it, what its columns lack is encoded,
        and not written.
        """
        scope_names = self.turns["scope"].unique(maintain_order=True).to_list()
        try:
            if not store.read_only:
                store.vectors.backfill(
                    encoder, self.name, scopes=scope_names, progress=self.progress
                )
            stored_vectors = store.vectors.read(encoder, self.name, scopes=scope_names)
            stored_turns = store.turns(
                self.name, scopes=scope_names, columns=["turn_id"]
            ).with_row_index("at")
            stored_places = self.turns.select("turn_id").join(
                stored_turns, on="turn_id", how="left", maintain_order="left"
            )["at"]
            if stored_turns.height == len(stored_vectors) and not stored_places.null_count():
                return (
                    stored_vectors
                    if stored_places.equals(stored_turns["at"])
                    else stored_vectors[stored_places.to_numpy()]
                )
        except StoreError as error:
            if store.read_only:
                raise
            _log.warning("%s; the vectors serve this process alone", error)
        return store.encode(
            encoder, turn_texts(self.turns, header=self.header), progress=self.progress
        )

    @property
    def turn_vectors(self) -> np.ndarray | None:
        """The embeddings of the turns, in the order of their documents.

        ``None`` without an encoder.
        """
        return self.documents("turn").embeddings

    @cached_property
    def query_vectors(self) -> np.ndarray | None:
        """(n queries, d) float32 unit rows; ``None`` without an encoder."""
        if self.encoder is None:
            return None
        if self._whole_bench_and_rows is not None:
            whole_bench, query_rows = self._whole_bench_and_rows
            return whole_bench.require_query_vectors()[query_rows]
        question_texts = query_texts(self.queries, self.turns, header=self.header)
        return self.encoder.encode(question_texts, kind="query", progress=self.progress)

    def require_query_vectors(self) -> np.ndarray:
        """Give :attr:`query_vectors` where a stage cannot do without.

        :raises DataError: when the bench was made without an encoder.
        """
        if self.query_vectors is None:
            raise _missing_encoder_error()
        return self.query_vectors

    @cached_property
    def query_words(self) -> list[list[str]]:
        """Each question's words, split as the documents' are."""
        return tokenize(self.queries["text"].to_list(), language=self.language)

    def embedder(self) -> Encoder:
        """Give the encoder of the bench for further texts; with a store, their vectors are cached.

        :raises DataError: when the bench was made without an encoder.
        """
        if self.encoder is None:
            raise _missing_encoder_error()
        return self.encoder

    def join_question_columns(self, rows_of_queries: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Join columns of the questions, or their ``row``, to a frame by ``query_id``.

        :raises DataError: for a question that the bench does not hold.
        """
        question_columns = self.queries.with_row_index("row").select("query_id", *columns)
        for query_id in rows_of_queries.join(
            question_columns, on="query_id", how="anti", maintain_order="left"
        )["query_id"].head(1):
            raise DataError(
                f"question {query_id!r} is not in this bench; rank with the questions that the "
                "bench holds"
            )
        return rows_of_queries.join(
            question_columns, on="query_id", how="left", maintain_order="left"
        )

    def by_scope(self, level: Level) -> Iterator[ScopeQueries]:
        """Iterate over scopes with queries: rows of the queries, and the slice of the scope's
        documents.
        """
        spans = self.documents(level).spans
        for scope_name, query_rows in self._query_rows_by_scope:
            if scope_name not in spans:
                raise DataError(
                    f"scope {scope_name!r} has questions but no {level}s; load its conversation too"
                )
            yield ScopeQueries(query_rows, slice(*spans[scope_name]))

    @cached_property
    def _query_rows_by_scope(self) -> list[tuple[str, np.ndarray]]:
        """The rows of the queries of each scope, in the order in which scopes are asked first."""
        grouped_queries = (
            self.queries.with_row_index("row").group_by("scope", maintain_order=True).agg("row")
        )
        return [
            (scope_name, np.array(query_rows))
            for scope_name, query_rows in grouped_queries.iter_rows()
        ]

    def evidence(self, level: Level) -> Qrels | None:
        """Give the evidence of the questions, for showing results; no stage of memlab reads it."""
        return self._evidence.get(level)

    def show(self, run: Run) -> Run:
        """Give a run that shows the texts of its documents and marks the evidence when a notebook
        prints it.
        """
        level_documents = self.documents(run.level)

        def texts_of_ids(doc_ids: list[str]) -> list[str]:
            return [
                level_documents.texts[place]
                for place in level_documents.at(pl.Series(doc_ids, dtype=pl.String))
            ]

        return replace(run, text_of=texts_of_ids, evidence=self.evidence(run.level))

    def __repr__(self) -> str:
        named_frames = {"turns": self.turns, "sessions": self.sessions, "queries": self.queries}
        frame_sizes = ", ".join(
            f"{named_frame.height:,} {frame_name}"
            for frame_name, named_frame in named_frames.items()
        )
        store_place = "in memory" if self.store is None else str(self.store.uri)
        encoder_key = self.provenance.get("encoder", "no encoder")
        return f"Bench({self.name!r}: {frame_sizes}, {encoder_key}, {store_place})"


def _missing_encoder_error() -> DataError:
    return DataError(
        "this bench has no encoder to embed texts with; make it with one, such as encoder='minilm'"
    )


def get_cached_or_make(
    cache: MutableMapping[Hashable, Any], cache_key: Hashable, make_value: Callable[[], Any]
) -> Any:
    """Give the result at a place of a cache, or make it and keep it there."""
    if cache_key not in cache:
        cache[cache_key] = make_value()
    return cache[cache_key]


MAX_REMEMBERED = 16
"""Rankings that a bench remembers."""


def rank_or_reuse(bench: Bench, ranking_key: tuple[Any, ...], rank: Callable[[], Run]) -> Run:
    """Give a ranking of all questions of a bench, or the same one again while it is remembered.

    :param ranking_key: the stage, and all its parameters.
    """
    ranking: Run | None = bench.remembered.pop(ranking_key, None)
    if ranking is None:
        ranking = rank()
    bench.remembered[ranking_key] = ranking
    while len(bench.remembered) > MAX_REMEMBERED:
        del bench.remembered[next(iter(bench.remembered))]
    return ranking


def cache_per_bench(function: Callable[[Bench, *Key], T]) -> Callable[[Bench, *Key], T]:
    """Make what a function makes of a bench once, and keep it as long as the bench's documents.

    So that a stage of any room works something out once for all pipelines over a bench. The result
    may depend on turns, sessions and the function's other arguments, never on the questions:
    benches that share their documents share it. What is asked of a language model is kept by
    ``cache_per_bench_with(memlab.llm.token_spending.get_or_make_result_with_spending)``.
    """
    return cache_per_bench_with(get_cached_or_make)(function)


def cache_per_bench_with(
    cache_lookup: CacheLookup,
) -> Callable[[Callable[[Bench, *Key], T]], Callable[[Bench, *Key], T]]:
    """Give a decorator that does as :func:`cache_per_bench`, with another way to keep a result."""

    def cache_function_per_bench(
        function: Callable[[Bench, *Key], T],
    ) -> Callable[[Bench, *Key], T]:
        @wraps(function)
        def cached_result_of_call(bench: Bench, *arguments: *Key) -> T:
            cache_key = (cached_result_of_call, *arguments)
            result: T = cache_lookup(
                bench.documents("turn").cache, cache_key, partial(function, bench, *arguments)
            )
            return result

        return cached_result_of_call

    return cache_function_per_bench
