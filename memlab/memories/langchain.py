"""A LangChain retriever as a memory; needs ``pip install "memlab[langchain]"``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from memlab.errors import ModelError
from memlab.memories.contract import Rows, TurnsByScope

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever


class LangChainMemory(TurnsByScope):
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
        super().__init__()
        self._build = build
        self._retrievers: dict[str, dict[int, BaseRetriever]] = {}

    def reset(self, scope: str) -> None:
        super().reset(scope)
        self._retrievers.pop(scope, None)

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        super().ingest(scope, turns)
        self._retrievers.pop(scope, None)

    def search(self, scope: str, queries: Sequence[str], k: int, now: Sequence[datetime | None]) -> Rows:
        built = self._retrievers.setdefault(scope, {})
        if k not in built:
            built[k] = self._build(self._documents(scope), k)
        rows: list[dict[str, Any]] = []
        for number, documents in enumerate(built[k].batch(list(queries))):
            for document in documents[:k]:
                known = document.id or document.metadata.get("id")
                sources = {"source_ids": [known]} if known else {}
                time = document.metadata.get("time")
                rows.append({"query": number, "text": document.page_content, "time": time, **sources})
        return rows

    def _documents(self, scope: str) -> list[Document]:
        from langchain_core.documents import Document

        told = self.turns(scope).with_columns(pl.col("time").dt.to_string("iso:strict"))
        return [
            Document(id=row["id"], page_content=f"{row['speaker']}: {row.pop('text')}", metadata=row)
            for row in told.iter_rows(named=True)
        ]
