"""What a stage may look at: the documents of every scope, the queries, their vectors. Never the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.embed.text import query_texts, session_texts, turn_texts
from memlab.errors import DataError
from memlab.language.tokens import PIECE
from memlab.records import Dataset, Level, Qrels, Run, qrels

if TYPE_CHECKING:
    from memlab.embed import Encoder
    from memlab.embed.base import Kind
    from memlab.store import MemoryStore


@dataclass(frozen=True)
class Documents:
    """The documents of one level, grouped by scope: each scope's documents are neighbours, in order of time.

    :param ids: (n,) document ids.
    :param texts: (n,) what BM25 and encoders read.
    :param session: (n,) number of the session that each document belongs to.
    :param spans: scope → (first, last + 1) place of its documents.
    :param embeddings: (n, d) float32 unit rows; for sessions the normalised mean of their turns; ``None`` where no
        encoder was given.
    :param indexes: what was built over them: BM25's, by its parameters and the scope's place; summaries' vectors;
        sentences.
    """

    ids: np.ndarray
    texts: list[str]
    session: np.ndarray
    spans: Mapping[str, tuple[int, int]]
    embeddings: np.ndarray | None
    indexes: dict[Any, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def place(self) -> pl.DataFrame:
        """Give the place of each id: ``doc_id``, ``at``."""
        return pl.DataFrame({"doc_id": pl.Series(self.ids, dtype=pl.String), "at": np.arange(len(self.ids))})

    @cached_property
    def n_tokens(self) -> np.ndarray:
        """Count each document's words and punctuation marks: (n,) a token count that needs no model."""
        return pl.Series(self.texts, dtype=pl.String).str.count_matches(PIECE).to_numpy().astype(np.int64)

    def at(self, doc_ids: pl.Series) -> np.ndarray:
        """Give the places of ids.

        :raises DataError: for an id that is not among the documents.
        """
        found = pl.DataFrame({"doc_id": doc_ids}).join(self.place, on="doc_id", how="left", maintain_order="left")["at"]
        if found.null_count():
            missing = doc_ids.filter(found.is_null())[0]
            raise DataError(f"document {missing!r} is not in this bench; rank with the dataset that the bench holds")
        return found.to_numpy()

    def vectors(self) -> np.ndarray:
        """Give the embeddings.

        :raises DataError: when the bench was made without an encoder.
        """
        if self.embeddings is None:
            raise DataError("this stage needs embeddings: make the bench with an encoder, such as encoder='minilm'")
        return self.embeddings


@dataclass(frozen=True)
class Bench:
    """Documents and queries, ready for every stage of a pipeline.

    Evidence is held apart for showing results; stages get no way to it.

    :param name: the dataset's name.
    :param turns: the dataset's turns, in its order, which is that of ``turn_vectors``.
    :param sessions: the dataset's sessions.
    :param queries: ``query_id``, ``scope``, ``text``, ``timestamp`` and nothing else of the questions.
    :param turn_vectors: (n turns, d) float32 unit rows, or ``None``.
    :param query_vectors: (n queries, d) float32 unit rows, or ``None``.
    :param provenance: dataset fingerprint, encoder identity, table versions: what every run over it carries.
    :param store: where the indexed search path looks; ``None`` for a bench held in memory alone.
    :param remembered: the last rankings that pipelines have made, so that ten selections share one retrieval; by the
        stages, the level, and digests of what the stages read.
    """

    name: str
    turns: pl.DataFrame
    sessions: pl.DataFrame
    queries: pl.DataFrame
    turn_vectors: np.ndarray | None = None
    query_vectors: np.ndarray | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    store: MemoryStore | None = field(default=None, repr=False)
    encoder: Encoder | None = field(default=None, repr=False)
    header: tuple[str, ...] = ()
    remembered: dict[tuple[Any, ...], Run] = field(default_factory=dict, init=False, repr=False, compare=False)
    _shown: Mapping[Level, Qrels] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        *,
        encoder: Encoder | str | None = "minilm",
        store: MemoryStore | str | None = None,
        header: Sequence[str] = (),
        ingest: bool = True,
        progress: bool = True,
    ) -> Bench:
        """Make a bench of a dataset; with a store, what it has encoded before is not encoded again.

        :param encoder: an encoder or its name; ``None`` for BM25 alone.
        :param store: a store or its URI; ``None`` keeps everything in memory. A view on earlier versions is read as it
            is; its versions, and the scopes where it holds more of them, are noted in the provenance.
        :param header: fields of the contextual header, see :mod:`memlab.embed.text`.
        :param ingest: write the dataset to the store; ``False`` for one, or some scopes of one, that was read from it.
        :raises DataError: when the dataset is empty.

        >>> from memlab import datasets, retrieve
        >>> small = datasets.synthetic.generate(turns=60, seed=0)
        >>> bench = retrieve.Bench.of(small, encoder="hashing")
        >>> bench.turn_vectors.shape[0] == small.turns.height
        True
        """
        if not dataset.turns.height:
            raise DataError(f"dataset {dataset.name!r} holds no turns; there is nothing to search")
        if isinstance(encoder, str):
            from memlab.embed import load

            encoder = load(encoder)
        if isinstance(store, str):
            from memlab.store import MemoryStore

            store = MemoryStore.open(store)
        provenance: dict[str, Any] = {"dataset": dataset.name, "fingerprint": dataset.fingerprint()}
        turn_vectors = query_vectors = None
        if store is not None and ingest and not store.read_only:
            store.ingest(dataset)
        if encoder is not None:
            provenance |= {"encoder": encoder.identity.describe(), "header": list(header)}
            queries = query_texts(dataset.questions, dataset.turns, header=header)
            if store is None:
                turn_vectors = encoder.encode(turn_texts(dataset.turns, header=header), progress=progress)
                query_vectors = encoder.encode(queries, kind="query", progress=progress)
            else:
                turn_vectors = _stored_vectors(store, encoder, dataset, tuple(header), progress)
                query_vectors = store.encode(encoder, queries, kind="query", progress=progress)
        if store is not None:
            provenance["versions"] = store.versions()
            if len(store.scopes(dataset.name)) > len(dataset.scopes):
                provenance["scopes"] = dataset.scopes
        return cls(
            dataset.name,
            dataset.turns,
            dataset.sessions,
            dataset.questions.select("query_id", "scope", "text", "timestamp"),
            turn_vectors,
            query_vectors,
            provenance,
            store,
            encoder,
            tuple(header),
            _shown={"turn": qrels(dataset.questions, "turn"), "session": qrels(dataset.questions, "session")},
        )

    @cached_property
    def _documents(self) -> dict[Level, Documents]:
        order = self.sessions.sort("scope", "n", maintain_order=True).with_row_index("session")
        placed = self.turns.with_row_index("row").join(
            order.select("session_id", "session"), on="session_id", how="left", maintain_order="left"
        )
        homeless = placed.filter(pl.col("session").is_null())
        if homeless.height:
            turn, session = homeless.row(0, named=True)["turn_id"], homeless.row(0, named=True)["session_id"]
            raise DataError(f"turn {turn!r} belongs to session {session!r}, which dataset {self.name!r} does not list")
        placed = placed.sort("session", "n", maintain_order=True)
        rows = placed["row"].to_numpy()
        session = placed["session"].to_numpy().astype(np.int64)
        turn_embeddings = None if self.turn_vectors is None else np.ascontiguousarray(self.turn_vectors[rows])
        of_turns = Documents(
            placed["turn_id"].to_numpy(),
            turn_texts(placed.drop("row", "session")),
            session,
            _spans(placed["scope"]),
            turn_embeddings,
        )
        of_sessions = Documents(
            order["session_id"].to_numpy(),
            session_texts(placed.drop("row", "session"), order.drop("session")),
            np.arange(order.height),
            _spans(order["scope"]),
            None if turn_embeddings is None else mean_by(turn_embeddings, session, order.height),
        )
        return {"turn": of_turns, "session": of_sessions}

    def documents(self, level: Level) -> Documents:
        """Give the documents of a level."""
        return self._documents[level]

    def encode(self, texts: list[str], *, kind: Kind = "document") -> np.ndarray:
        """Embed more texts the way the bench's own were; where there is a store, it remembers them.

        :returns: (n, d) float32 unit rows.
        :raises DataError: when the bench was made without an encoder.
        """
        if self.encoder is None:
            raise DataError("this bench has no encoder to embed texts with; make it with one, such as encoder='minilm'")
        if self.store is None:
            return self.encoder.encode(texts, kind=kind)
        return self.store.encode(self.encoder, texts, kind=kind)

    def by_scope(self, level: Level) -> Iterator[tuple[np.ndarray, slice]]:
        """Go through the scopes that have queries: rows of the queries, and where the scope's documents are."""
        spans = self.documents(level).spans
        rows = self.queries.with_row_index("row").group_by("scope", maintain_order=True).agg("row")
        for scope, members in rows.iter_rows():
            if scope not in spans:
                raise DataError(f"scope {scope!r} has questions but no {level}s; load its conversation too")
            yield np.array(members), slice(*spans[scope])

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
        filled = queries.with_columns(
            query_id=pl.col("query_id")
            if "query_id" in queries.columns
            else pl.format("query-{}", pl.int_range(pl.len())),
            timestamp=pl.col("timestamp")
            if "timestamp" in queries.columns
            else pl.lit(None, self.queries.schema["timestamp"]),
        ).select("query_id", "scope", "text", "timestamp")
        repeated = filled.filter(pl.col("query_id").is_duplicated())["query_id"]
        if len(repeated):
            raise DataError(f"query id {repeated[0]!r} stands for several questions; give each its own")
        texts = query_texts(filled, self.turns, header=self.header)
        vectors = None if self.encoder is None else self.encode(texts, kind="query")
        other = replace(self, queries=filled, query_vectors=vectors, _shown={})
        other.__dict__["_documents"] = self._documents  # what cached_property fills; the documents are the same
        return other

    def show(self, run: Run) -> Run:
        """Give a run that shows the texts of its documents and marks the evidence when a notebook prints it."""
        documents = self.documents(run.level)
        texts = documents.texts
        return replace(
            run,
            text_of=lambda ids: [texts[i] for i in documents.at(pl.Series(ids, dtype=pl.String))],
            evidence=self._shown.get(run.level),
        )


def _stored_vectors(
    store: MemoryStore, encoder: Encoder, dataset: Dataset, header: tuple[str, ...], progress: bool
) -> np.ndarray:
    """Read the dataset's vectors from the store, which may hold more turns under the same name than the dataset."""
    if not store.read_only:
        store.vectors.backfill(encoder, dataset.name, header=header, scopes=dataset.scopes, progress=progress)
    vectors = store.vectors.read(encoder, dataset.name, header=header, scopes=dataset.scopes)
    stored = store.turns(dataset.name, scopes=dataset.scopes, columns=["turn_id"]).with_row_index("at")
    placed = dataset.turns.select("turn_id").join(stored, on="turn_id", how="left", maintain_order="left")
    rows = placed["at"].to_numpy()
    return vectors if np.array_equal(rows, np.arange(len(vectors))) else vectors[rows]


def _spans(scopes: pl.Series) -> dict[str, tuple[int, int]]:
    runs = (
        pl.DataFrame({"scope": scopes})
        .with_row_index("at")
        .group_by("scope", maintain_order=True)
        .agg(first=pl.col("at").min(), last=pl.col("at").max() + 1)
    )
    return {scope: (first, last) for scope, first, last in runs.iter_rows()}


def mean_by(vectors: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Average unit rows within groups and normalise: (n_groups, d); a group without rows gives zeros."""
    from scipy.sparse import csr_array

    member = csr_array((np.ones(len(group), np.float32), (group, np.arange(len(group)))), shape=(n_groups, len(group)))
    means = np.asarray(member @ vectors, dtype=np.float32)
    length = np.linalg.norm(means, axis=1, keepdims=True)
    return np.divide(means, length, out=np.zeros_like(means), where=length > 0)
