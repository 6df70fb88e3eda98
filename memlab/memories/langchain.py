"""A LangChain retriever as a memory; needs ``pip install "memlab[langchain]"``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.errors import ModelError
from memlab.memories.contract import TURNS, Rows

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever


class LangChainMemory:
    """What builds a LangChain retriever from documents, as a memory: one retriever a scope, built when it is searched.

    A turn is a ``Document`` whose ``page_content`` is "speaker: text" and whose ``id`` is the turn's, with ``id``,
    ``session``, ``speaker`` and ``time`` in its metadata. What comes back without an id is attributed by its text.

    :param build: takes the documents of a scope and k, gives a ``BaseRetriever``.
    :raises ModelError: when ``langchain-core`` is not installed.

    >>> from langchain_core.retrievers import BaseRetriever
    >>> from memlab.memories import collect
    >>> from memlab.memories.langchain import LangChainMemory
    >>> class Latest(BaseRetriever):
    ...     documents: list
    ...
    ...     def _get_relevant_documents(self, query, *, run_manager):
    ...         return self.documents[-2:]
    >>> import memlab
    >>> data = memlab.datasets.synthetic.generate(turns=200, seed=0)
    >>> memory = LangChainMemory(lambda documents, k: Latest(documents=documents))
    >>> collect(memory, data, name="latest").rows["source_ids"].null_count()
    0
    """

    def __init__(self, build: Callable[[list[Document], int], BaseRetriever]) -> None:
        try:
            import langchain_core  # noqa: F401
        except ImportError as error:
            raise ModelError('LangChain is not installed; run: pip install "memlab[langchain]"') from error
        self._build = build
        self._turns: dict[str, pl.DataFrame] = {}
        self._retrievers: dict[tuple[str, int], BaseRetriever] = {}

    def reset(self, scope: str) -> None:
        self._turns[scope] = pl.DataFrame(schema=TURNS)
        self._forget(scope)

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        self._turns[scope] = pl.concat([self._turns.get(scope, turns.clear()), turns])
        self._forget(scope)

    def wait(self) -> None:
        """Retrievers are built when they are searched, for they are built with k."""

    def search(self, scope: str, queries: Sequence[str], k: int, now: Sequence[datetime | None]) -> Rows:
        retriever = self._retrievers.get((scope, k))
        if retriever is None:
            retriever = self._retrievers[scope, k] = self._build(self._documents(scope), k)
        rows: list[dict[str, Any]] = []
        for number, documents in enumerate(retriever.batch(list(queries))):
            for document in documents[:k]:
                known = document.id or document.metadata.get("id")
                sources = {"source_ids": [known]} if known else {}
                time = document.metadata.get("time")
                rows.append({"query": number, "text": document.page_content, "time": time, **sources})
        return rows

    def _documents(self, scope: str) -> list[Document]:
        from langchain_core.documents import Document

        turns = self._turns.get(scope, pl.DataFrame(schema=TURNS))
        told = turns.with_columns(pl.col("time").dt.to_string("iso:strict"))
        return [
            Document(id=row["id"], page_content=f"{row['speaker']}: {row.pop('text')}", metadata=row)
            for row in told.iter_rows(named=True)
        ]

    def _forget(self, scope: str) -> None:
        self._retrievers = {place: kept for place, kept in self._retrievers.items() if place[0] != scope}
