"""What a stage may look at: the documents of every scope, the queries, their vectors.

Never the evidence.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

import numpy as np
import polars as pl

from memlab.embed.contextual_headers import header_of
from memlab.embed.encoder import check_nonzero_vectors
from memlab.embed.encoder_wrapper import without_cache
from memlab.embed.turn_texts import query_texts, turn_texts
from memlab.errors import DataError, StoreError
from memlab.records import LEVELS, Dataset, Level, Qrels, Run, qrels
from memlab.retrieve.documents import Documents, build_documents
from memlab.text.text_analyser import tokenize

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.embed.speaker_centring import SpeakerSums
    from memlab.store import MemoryStore
    from memlab.store.scope_statistics import ScopeStatistics

T = TypeVar("T")
Key = TypeVarTuple("Key")
_log = logging.getLogger(__name__)
Keep = Callable[[MutableMapping[Hashable, Any], Hashable, Callable[[], Any]], Any]
"""A way to keep results: of a cache, a place and what makes the result, it gives the result."""


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
        selections share one retrieval.
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
    _part_of: tuple[Bench, np.ndarray | slice] | None = field(default=None, init=False)

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

        data = dataset if isinstance(dataset, Dataset) else datasets.load(dataset)
        if not data.turns.height:
            raise DataError(f"dataset {data.name!r} holds no turns; there is nothing to search")
        provenance: dict[str, Any] = {"dataset": data.name, "fingerprint": data.fingerprint()}
        if data.language != "en":
            provenance["language"] = data.language
        if encoder is not None:
            encoder = embed.load(encoder, token_encoder=token_encoder)
            provenance |= embed.describe_encoder(encoder)
        store = MemoryStore.open(store) if isinstance(store, str) else store
        if store is not None:
            if ingest and not store.read_only:
                removed = store.ingest(data).filter(table="turns")["removed"].sum()
                if removed:
                    _log.warning(
                        "%s: %s turns that their scopes no longer have were removed from the "
                        "store; "
                        "give the dataset a name of its own to keep both",
                        data.name,
                        f"{removed:,}",
                    )
            encoder = encoder and embed.cache_encoder(store, encoder)
            provenance["versions"] = store.versions()
            if len(store.scopes(data.name)) > len(data.scopes):
                provenance["scopes"] = data.scopes
        asked = data.questions.select("query_id", "scope", "text", "timestamp")
        evidence: dict[Level, Qrels] = {
            level: qrels(data.questions, level, data.turns) for level in LEVELS
        }
        return cls(
            data.name,
            data.turns,
            data.sessions,
            asked,
            encoder=encoder,
            store=store,
            language=data.language,
            progress=progress,
            provenance=provenance,
            _evidence=evidence,
        )

    def but(self, **changes: Any) -> Bench:
        """Copy the bench with some fields replaced and without cached rankings."""
        other = replace(self, **changes)
        replaced = changes.keys() & {"turns", "sessions", "vectors", "language"}
        if not replaced and other.header == self.header:
            vars(other)["_levels"] = self._levels
            if "queries" not in changes and self.encoder is not None:
                vars(other)["_part_of"] = self, slice(None)
        return other

    def with_queries(self, queries: pl.DataFrame) -> Bench:
        """Copy the bench with other questions, encoded the same way.

        :param queries: ``scope`` and ``text``; ``query_id`` and ``timestamp`` are made up where
            absent.
        :raises DataError: when a column is missing, or two questions have one id.
        """
        if missing := {"scope", "text"} - set(queries.columns):
            raise DataError(
                f"queries have no column {min(missing)!r}; they need scope and text, not "
                f"{queries.columns}"
            )
        absent = {
            "query_id": pl.format("query-{}", pl.int_range(pl.len())).alias("query_id"),
            "timestamp": pl.lit(None, self.queries.schema["timestamp"]).alias("timestamp"),
        }
        filled = queries.select(
            name if name in queries.columns else absent[name] for name in self.queries.columns
        )
        for repeated in filled["query_id"].filter(filled["query_id"].is_duplicated()).head(1):
            raise DataError(
                f"query id {repeated!r} stands for several questions; give each its own"
            )
        return self.but(queries=filled, _evidence={})

    def with_rows(self, rows: np.ndarray, *, stored: bool = True) -> Bench:
        """Copy the bench with a subset of its questions.

        :param rows: of the questions.
        :param stored: whether it goes on reading the store, and what the store remembers of its
            encoder.
        """
        raw = {} if stored else {"store": None, "encoder": without_cache(self.encoder)}
        part = self.but(queries=self.queries[rows], **raw)
        vars(part)["_part_of"] = self, rows
        return part

    @property
    def header(self) -> tuple[str, ...]:
        """The fields that are put before what is embedded: those of the encoder."""
        return header_of(self.encoder)

    @cached_property
    def _levels(self) -> dict[Level, Documents]:
        embed = None if self.encoder is None and self.vectors is None else self._encoded
        return build_documents(
            self.turns,
            self.sessions,
            embed=embed,
            language=self.language,
            statistics=self.statistics,
            speaker_sums=self.speaker_sums,
        )

    def documents(self, level: Level) -> Documents:
        """Give the documents (turns or sessions) of a level, grouped by scope."""
        return self._levels[level]

    def _encoded(self) -> np.ndarray:
        """Encode the turns, or read what the store has of them: (n turns, d), in their order."""
        if self.vectors is not None:
            return self.vectors
        encoder = self.embedder()
        if self.store is None:
            made = encoder.encode(
                turn_texts(self.turns, header=self.header), progress=self.progress
            )
            return check_nonzero_vectors(made, of=f"encoder {encoder.identity.key}")
        vectors = self._stored(self.store, encoder)
        self.provenance["versions"] = self.store.versions()
        return vectors

    def _stored(self, store: MemoryStore, encoder: Encoder) -> np.ndarray:
        """Read the turns' vectors from a store, which may hold more turns under the same name.

        Where it cannot be written, or another process writes it, what its columns lack is encoded,
        and not written.
        """
        scopes = self.turns["scope"].unique(maintain_order=True).to_list()
        try:
            if not store.read_only:
                store.vectors.backfill(encoder, self.name, scopes=scopes, progress=self.progress)
            vectors = store.vectors.read(encoder, self.name, scopes=scopes)
            rows = store.turns(self.name, scopes=scopes, columns=["turn_id"]).with_row_index("at")
            at = self.turns.select("turn_id").join(
                rows, on="turn_id", how="left", maintain_order="left"
            )["at"]
            if rows.height == len(vectors) and not at.null_count():
                return vectors if at.equals(rows["at"]) else vectors[at.to_numpy()]
        except StoreError as error:
            if store.read_only:
                raise
            _log.warning("%s; the vectors serve this process alone", error)
        return store.encode(
            encoder, turn_texts(self.turns, header=self.header), progress=self.progress
        )

    @property
    def turn_vectors(self) -> Any:
        """The embeddings of the turns, in the order of their documents.

        ``None`` without an encoder.
        """
        return self.documents("turn").embeddings

    @cached_property
    def query_vectors(self) -> Any:
        """(n queries, d) float32 unit rows; ``None`` without an encoder."""
        if self.encoder is None:
            return None
        if self._part_of is not None:
            return self._part_of[0].query_vectors[self._part_of[1]]
        texts = query_texts(self.queries, self.turns, header=self.header)
        return self.encoder.encode(texts, kind="query", progress=self.progress)

    @cached_property
    def query_words(self) -> list[list[str]]:
        """Each question's words, split as the documents' are."""
        return tokenize(self.queries["text"].to_list(), language=self.language)

    def embedder(self) -> Encoder:
        """Give the encoder of the bench for further texts; with a store, their vectors are cached.

        :raises DataError: when the bench was made without an encoder.
        """
        if self.encoder is None:
            raise DataError(
                "this bench has no encoder to embed texts with; make it with one, such as "
                "encoder='minilm'"
            )
        return self.encoder

    def asked(self, frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Join columns of the questions, or their ``row``, to a frame by ``query_id``.

        :raises DataError: for a question that the bench does not hold.
        """
        queries = self.queries.with_row_index("row").select("query_id", *columns)
        for query_id in frame.join(queries, on="query_id", how="anti", maintain_order="left")[
            "query_id"
        ].head(1):
            raise DataError(
                f"question {query_id!r} is not in this bench; rank with the questions that the "
                "bench holds"
            )
        return frame.join(queries, on="query_id", how="left", maintain_order="left")

    def by_scope(self, level: Level) -> Iterator[tuple[np.ndarray, slice]]:
        """Iterate over scopes with queries: rows of the queries, and the slice of the scope's
        documents.
        """
        spans = self.documents(level).spans
        for scope, rows in self._rows_by_scope:
            if scope not in spans:
                raise DataError(
                    f"scope {scope!r} has questions but no {level}s; load its conversation too"
                )
            yield rows, slice(*spans[scope])

    @cached_property
    def _rows_by_scope(self) -> list[tuple[str, np.ndarray]]:
        """The rows of the queries of each scope, in the order in which scopes are asked first."""
        asked = self.queries.with_row_index("row").group_by("scope", maintain_order=True).agg("row")
        return [(scope, np.array(rows)) for scope, rows in asked.iter_rows()]

    def evidence(self, level: Level) -> Qrels | None:
        """Give the evidence of the questions, for showing results; no stage of memlab reads it."""
        return self._evidence.get(level)

    def show(self, run: Run) -> Run:
        """Give a run that shows the texts of its documents and marks the evidence when a notebook
        prints it.
        """
        documents = self.documents(run.level)

        def text_of(ids: list[str]) -> list[str]:
            return [documents.texts[at] for at in documents.at(pl.Series(ids, dtype=pl.String))]

        return replace(run, text_of=text_of, evidence=self.evidence(run.level))

    def __repr__(self) -> str:
        sizes = {"turns": self.turns, "sessions": self.sessions, "queries": self.queries}
        counts = ", ".join(f"{rows.height:,} {name}" for name, rows in sizes.items())
        place = "in memory" if self.store is None else str(self.store.uri)
        encoder = self.provenance.get("encoder", "no encoder")
        return f"Bench({self.name!r}: {counts}, {encoder}, {place})"


def keep_once(kept: MutableMapping[Hashable, Any], place: Hashable, make: Callable[[], Any]) -> Any:
    """Give the result at a place of a cache, or make it and keep it there."""
    if place not in kept:
        kept[place] = make()
    return kept[place]


def cache_per_bench(make: Callable[[Bench, *Key], T]) -> Callable[[Bench, *Key], T]:
    """Make what a function makes of a bench once, and keep it as long as the bench's documents.

    So that a stage of any room works something out once for all pipelines over a bench. The result
    may depend on turns, sessions and the function's other arguments, never on the questions:
    benches that share their documents share it. What is asked of a language model is kept by
    ``cache_per_bench_by(memlab.llm.token_spending.cached_result_with_spending)``.
    """
    return cache_per_bench_by(keep_once)(make)


def cache_per_bench_by(
    keep: Keep,
) -> Callable[[Callable[[Bench, *Key], T]], Callable[[Bench, *Key], T]]:
    """Give a decorator that does as :func:`cache_per_bench`, with another way to keep a result."""

    def decorate(make: Callable[[Bench, *Key], T]) -> Callable[[Bench, *Key], T]:
        @wraps(make)
        def cached(bench: Bench, *key: *Key) -> T:
            place = (cached, *key)
            result: T = keep(bench.documents("turn").made, place, partial(make, bench, *key))
            return result

        return cached

    return decorate
