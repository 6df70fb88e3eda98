"""What a stage may look at: the documents of every scope, the queries, their vectors. Never the evidence."""

from __future__ import annotations

import html
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

import numpy as np
import polars as pl

from memlab.embed.base import some_direction
from memlab.embed.text import query_texts, turn_texts
from memlab.errors import DataError, StoreError
from memlab.language.analysis import tokenize
from memlab.records import Dataset, Level, Qrels, Run, qrels
from memlab.retrieve.index import Corpus, Documents, Lazy

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.store import MemoryStore

T = TypeVar("T")
Key = TypeVarTuple("Key")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Bench:
    """Documents and queries, ready for every stage of a pipeline.

    Evidence is held apart for showing results; stages get no way to it.

    :param name: the dataset's name.
    :param turns: the dataset's turns, in its order, which is that of ``turn_vectors``.
    :param sessions: the dataset's sessions.
    :param queries: ``query_id``, ``scope``, ``text``, ``timestamp`` and nothing else of the questions.
    :param turn_vectors: (n turns, d) float32 unit rows, encoded when a stage first reads them, or ``None``.
    :param query_vectors: (n queries, d) float32 unit rows, likewise, or ``None``.
    :param provenance: dataset fingerprint, encoder identity, table versions: what every run over it carries.
    :param store: where the indexed search path looks; ``None`` for a bench held in memory alone.
    :param encoder: what embedded them, and embeds more; with a store it reads the store's cache.
    :param header: fields of the contextual header of what was embedded.
    :param language: of the conversations.
    :param remembered: the last rankings that pipelines have made, so that ten selections share one retrieval; by the
        stages, the level, and digests of what the stages read.
    """

    name: str
    turns: pl.DataFrame
    sessions: pl.DataFrame
    queries: pl.DataFrame
    turn_vectors: Lazy = Lazy()  # noqa: RUF009
    query_vectors: Lazy = Lazy()  # noqa: RUF009
    provenance: Mapping[str, Any] = field(default_factory=dict)
    store: MemoryStore | None = field(default=None, repr=False)
    encoder: Encoder | None = field(default=None, repr=False)
    header: tuple[str, ...] = ()
    language: str = "en"
    remembered: dict[tuple[Any, ...], Run] = field(default_factory=dict, init=False, repr=False, compare=False)
    _shown: Mapping[Level, Qrels] = field(default_factory=dict, repr=False)
    _corpus: Corpus | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        dataset: Dataset | str | Path,
        *,
        encoder: Encoder | str | None = "minilm",
        store: MemoryStore | str | None = None,
        header: Sequence[str] = (),
        ingest: bool = True,
        progress: bool = True,
    ) -> Bench:
        """Make a bench of a dataset, encoded when a stage first reads vectors; a store keeps what it has encoded.

        :param dataset: a dataset, or the path of a file that :func:`memlab.datasets.load` reads.
        :param encoder: an encoder or its name; ``None`` for BM25 alone.
        :param store: a store or its URI; ``None`` keeps everything in memory. A view on earlier versions is read as it
            is; its versions, and the scopes where it holds more of them, are noted in the provenance.
        :param header: fields of the contextual header, see :mod:`memlab.embed.text`.
        :param ingest: write the dataset to the store; ``False`` for one, or some scopes of one, that was read from it.
        :raises DataError: when the dataset is empty.

        >>> from memlab import retrieve, sample
        >>> small = sample(turns=60)
        >>> bench = retrieve.Bench.of(small, encoder="hashing")
        >>> bench.turn_vectors.shape[0] == small.turns.height
        True
        """
        if not isinstance(dataset, Dataset):
            from memlab.datasets import load as load_dataset

            dataset = load_dataset(dataset)
        if not dataset.turns.height:
            raise DataError(f"dataset {dataset.name!r} holds no turns; there is nothing to search")
        if encoder is not None:
            from memlab.embed import load

            encoder = load(encoder)
        if isinstance(store, str):
            from memlab.store import MemoryStore

            store = MemoryStore.open(store)
        provenance: dict[str, Any] = {"dataset": dataset.name, "fingerprint": dataset.fingerprint()}
        if dataset.language != "en":
            provenance["language"] = dataset.language
        vectors: dict[str, Callable[[], np.ndarray]] = {}
        if store is not None and ingest and not store.read_only:
            store.ingest(dataset)
        if encoder is not None:
            provenance |= {"encoder": encoder.identity.describe(), "header": list(header)}
            if store is not None:
                from memlab.store import cached

                encoder = cached(store, encoder)
            vectors = _vectors(encoder, dataset, store, tuple(header), provenance, progress)
        if store is not None:
            provenance["versions"] = store.versions()
            if len(store.scopes(dataset.name)) > len(dataset.scopes):
                provenance["scopes"] = dataset.scopes
        return cls(
            dataset.name,
            dataset.turns,
            dataset.sessions,
            dataset.questions.select("query_id", "scope", "text", "timestamp"),
            provenance=provenance,
            store=store,
            encoder=encoder,
            header=tuple(header),
            language=dataset.language,
            turn_vectors=vectors.get("turn_vectors"),
            query_vectors=vectors.get("query_vectors"),
            _shown={
                "turn": qrels(dataset.questions, "turn", dataset.turns),
                "session": qrels(dataset.questions, "session"),
            },
        )

    def __post_init__(self) -> None:
        mine = (self.turns, self.sessions, self.__dict__["turn_vectors"], self.language)
        if self._corpus is None or not self._corpus.made_of(*mine):
            object.__setattr__(self, "_corpus", Corpus(self.name, *mine))

    def but(self, **changes: Any) -> Bench:
        """Give the same bench with other fields, as :func:`dataclasses.replace` does, and encode nothing for it."""
        lazy = {name: self.__dict__[name] for name in ("turn_vectors", "query_vectors")}
        return replace(self, **lazy | changes)

    def documents(self, level: Level) -> Documents:
        """Give the documents of a level; benches with the same turns share them."""
        assert self._corpus is not None  # set when the bench is made
        return self._corpus.levels[level]

    @cached_property
    def query_words(self) -> list[list[str]]:
        """Give each question's words, split as the documents' are."""
        return tokenize(self.queries["text"].to_list(), language=self.language)

    def embedder(self) -> Encoder:
        """Give what embeds more texts the way the bench's own were; where there is a store, it remembers them.

        :raises DataError: when the bench was made without an encoder.
        """
        if self.encoder is None:
            raise DataError("this bench has no encoder to embed texts with; make it with one, such as encoder='minilm'")
        return self.encoder

    def asked(self, frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Put columns of the questions, or their ``row``, beside the ``query_id`` of a frame.

        :raises DataError: for a question that the bench does not hold.
        """
        queries = self.queries.with_row_index("row").select("query_id", *columns)
        unknown = frame.join(queries, on="query_id", how="anti", maintain_order="left")["query_id"]
        if len(unknown):
            raise DataError(f"question {unknown[0]!r} is not in this bench; use the bench that the run was made on")
        return frame.join(queries, on="query_id", how="left", maintain_order="left")

    def by_scope(self, level: Level) -> Iterator[tuple[np.ndarray, slice]]:
        """Go through the scopes that have queries: rows of the queries, and where the scope's documents are."""
        spans = self.documents(level).spans
        for scope, rows in self._rows.items():
            if scope not in spans:
                raise DataError(f"scope {scope!r} has questions but no {level}s; load its conversation too")
            yield rows, slice(*spans[scope])

    @cached_property
    def _rows(self) -> dict[str, np.ndarray]:
        rows: dict[str, list[int]] = {}
        for row, scope in enumerate(self.queries["scope"].to_list()):
            rows.setdefault(scope, []).append(row)
        return {scope: np.array(members) for scope, members in rows.items()}

    def __repr__(self) -> str:
        encoder = self.provenance.get("encoder", "no encoder")
        return (
            f"Bench({self.name!r}: {self.turns.height:,} turns, {self.sessions.height:,} sessions, "
            f"{self.queries.height:,} queries, {encoder})"
        )

    def _repr_html_(self) -> str:
        rows = {
            "turns": f"{self.turns.height:,}",
            "sessions": f"{self.sessions.height:,}",
            "scopes": f"{self.turns['scope'].n_unique():,}",
            "queries": f"{self.queries.height:,}",
            "encoder": str(self.provenance.get("encoder", "none: BM25 alone")),
            "store": "in memory" if self.store is None else str(self.store.uri),
        }
        cells = "".join(
            f"<tr><th>{k}</th><td style='text-align:left'>{html.escape(v)}</td></tr>" for k, v in rows.items()
        )
        return (
            f"<p><b>{html.escape(self.name)}</b></p><table>{cells}</table>"
            "<p>Next: <code>memlab.pipeline('best').run(bench)</code> ranks, "
            "<code>memlab.evaluate.evaluate(run, data)</code> measures.</p>"
        )

    def with_queries(self, queries: pl.DataFrame) -> Bench:
        """Give the same bench with other questions, embedded the same way.

        :param queries: ``scope`` and ``text``; ``query_id`` and ``timestamp`` are made up where absent.
        :raises DataError: when a column is missing, or two questions have one id.
        """
        missing = [column for column in ("scope", "text") if column not in queries.columns]
        if missing:
            raise DataError(
                f"queries have no column {missing[0]!r}; they need scope and text, and have {queries.columns}"
            )
        absent = {
            "query_id": pl.format("query-{}", pl.int_range(pl.len())).alias("query_id"),
            "timestamp": pl.lit(None, self.queries.schema["timestamp"]).alias("timestamp"),
        }
        columns = ("query_id", "scope", "text", "timestamp")
        filled = queries.select(name if name in queries.columns else absent[name] for name in columns)
        ids = filled["query_id"]
        if ids.n_unique() < len(ids):
            repeated = ids.filter(ids.is_duplicated())
            raise DataError(f"query id {repeated[0]!r} stands for several questions; give each its own")
        texts = query_texts(filled, self.turns, header=self.header)
        encoder = self.encoder
        vectors = None if encoder is None else cache(lambda: encoder.encode(texts, kind="query"))
        return self.but(queries=filled, query_vectors=vectors, _shown={})

    def with_rows(self, rows: np.ndarray, *, stored: bool = True) -> Bench:
        """Give the same bench with some of its questions and no remembered rankings.

        :param rows: of the questions.
        :param stored: whether it goes on reading the store, and what the store remembers of its encoder.
        """
        embedded = self.__dict__["query_vectors"] is not None
        part = self.but(
            queries=self.queries[rows], query_vectors=(lambda: self.query_vectors[rows]) if embedded else None
        )
        if stored:
            return part
        from memlab.store import CachedEncoder

        raw = self.encoder.encoder if isinstance(self.encoder, CachedEncoder) else self.encoder
        return part.but(store=None, encoder=raw)

    def evidence(self, level: Level) -> Qrels | None:
        """Give the evidence of the questions, for showing results; no stage of memlab reads it."""
        return self._shown.get(level)

    def show(self, run: Run) -> Run:
        """Give a run that shows the texts of its documents and marks the evidence when a notebook prints it."""
        documents = self.documents(run.level)
        texts = documents.texts
        return replace(
            run,
            text_of=lambda ids: [texts[i] for i in documents.at(pl.Series(ids, dtype=pl.String))],
            evidence=self.evidence(run.level),
        )


def once(make: Callable[[Bench, *Key], T]) -> Callable[[Bench, *Key], T]:
    """Make what a function makes of a bench once, and keep it as long as the bench's documents.

    So that a stage of any room works something out once for all pipelines over a bench. The result may depend on turns,
    sessions and the function's other arguments, never on the questions: benches that share their documents share it.
    """

    @wraps(make)
    def kept(bench: Bench, *key: *Key) -> T:
        made, place = bench.documents("turn").made, (kept, *key)
        if place not in made:
            made[place] = make(bench, *key)
        result: T = made[place]
        return result

    return kept


def _vectors(
    encoder: Encoder,
    dataset: Dataset,
    store: MemoryStore | None,
    header: tuple[str, ...],
    provenance: dict[str, Any],
    progress: bool,
) -> dict[str, Callable[[], np.ndarray]]:
    """Give what encodes turns and questions, once each, when it is asked to."""

    @cache
    def turn_vectors() -> np.ndarray:
        if store is None:
            made = encoder.encode(turn_texts(dataset.turns, header=header), progress=progress)
            return some_direction(made, of=f"encoder {encoder.identity.key}")
        vectors = _stored_vectors(store, getattr(encoder, "encoder", encoder), dataset, header, progress)
        provenance["versions"] = store.versions()
        return vectors

    @cache
    def query_vectors() -> np.ndarray:
        texts = query_texts(dataset.questions, dataset.turns, header=header)
        return encoder.encode(texts, kind="query", progress=progress)

    return {"turn_vectors": turn_vectors, "query_vectors": query_vectors}


def _stored_vectors(
    store: MemoryStore, encoder: Encoder, dataset: Dataset, header: tuple[str, ...], progress: bool
) -> np.ndarray:
    """Read the dataset's vectors from the store, which may hold more turns under the same name than the dataset.

    Where it cannot be written, or another process writes it, what its columns lack is encoded, and not written.
    """
    try:
        if not store.read_only:
            store.vectors.backfill(encoder, dataset.name, header=header, scopes=dataset.scopes, progress=progress)
        vectors = store.vectors.read(encoder, dataset.name, header=header, scopes=dataset.scopes)
        stored = store.turns(dataset.name, scopes=dataset.scopes, columns=["turn_id"]).with_row_index("at")
        placed = dataset.turns.select("turn_id").join(stored, on="turn_id", how="left", maintain_order="left")
        if stored.height == len(vectors) and not placed["at"].null_count():
            rows = placed["at"].to_numpy()
            return vectors if np.array_equal(rows, np.arange(len(vectors))) else vectors[rows]
    except StoreError as error:
        if store.read_only:
            raise
        _log.warning("%s; the vectors serve this process alone", error)
    return store.encode(encoder, turn_texts(dataset.turns, header=header), progress=progress)
