"""Retrievers of LangChain and LlamaIndex as memories: ``pip install "memlab[langchain]"`` or ``[llamaindex]``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from typing import Any

import polars as pl

from memlab.errors import ModelError
from memlab.memories.contract import Rows, TurnsByScope
from memlab.memories.loading import source


class _RetrieverMemory(TurnsByScope, ABC):
    """What builds a retriever from a scope's turns and k: one for each scope, built when it is first searched."""

    package: str
    extra: str

    def __init__(self, build: Callable[[list[Any], int], Any]) -> None:
        try:
            installed = version(self.package)
        except ModuleNotFoundError as error:
            message = f'{self.package} is not installed; run: pip install "memlab[{self.extra}]"'
            raise ModelError(message) from error
        super().__init__()
        self.settings = {self.package: installed, "build": source(build)}
        self._build = build

    def search(self, scope: str, queries: Sequence[str], k: int, now: Sequence[datetime | None]) -> Rows:
        built = self._made.setdefault(scope, {})
        if k not in built:
            told = self.turns(scope).with_columns(pl.col("time").dt.to_string("iso:strict"))
            documents = [self._document(row) for row in told.iter_rows(named=True)]
            built[k] = self._build(documents, k)
        return [
            {"query": number, "text": text, "score": score, "time": metadata.get("time"), **_sources(metadata)}
            for number, query in enumerate(queries)
            for text, score, metadata in self._retrieve(built[k], query)[:k]
        ]

    @abstractmethod
    def _document(self, turn: dict[str, Any]) -> Any: ...

    @abstractmethod
    def _retrieve(self, retriever: Any, query: str) -> list[tuple[str, float | None, Mapping[str, Any]]]: ...


def _sources(metadata: Mapping[str, Any]) -> dict[str, list[str]]:
    return {"source_ids": [metadata["id"]]} if metadata.get("id") else {}


class LangChainMemory(_RetrieverMemory):
    """What builds a LangChain retriever from documents, as a memory.

    A turn is a ``Document`` whose ``page_content`` is "speaker: text" and whose ``id`` is the turn's, with ``id``,
    ``session``, ``speaker`` and ``time`` in its metadata. What comes back without an id is attributed by its text.

    :param build: takes the documents of a scope (a list) and k, gives a ``BaseRetriever``.
    :raises ModelError: when ``langchain-core`` is not installed.

    >>> from langchain_core.retrievers import BaseRetriever
    >>> from memlab.memories import collect
    >>> from memlab.memories.retrievers import LangChainMemory
    >>> class Latest(BaseRetriever):
    ...     documents: list
    ...
    ...     def _get_relevant_documents(self, query, *, run_manager):
    ...         return self.documents[-2:]
    >>> import memlab
    >>> data = memlab.sample(turns=200)
    >>> memory = LangChainMemory(lambda documents, k: Latest(documents=documents))
    >>> collect(memory, data, name="latest").rows["source_ids"].null_count()
    0
    """

    package, extra = "langchain-core", "langchain"

    def _document(self, turn: dict[str, Any]) -> Any:
        from langchain_core.documents import Document

        text = f"{turn['speaker']}: {turn.pop('text')}"
        return Document(id=turn["id"], page_content=text, metadata=turn)

    def _retrieve(self, retriever: Any, query: str) -> list[tuple[str, float | None, Mapping[str, Any]]]:
        return [(each.page_content, None, {"id": each.id, **each.metadata}) for each in retriever.invoke(query)]


class LlamaIndexMemory(_RetrieverMemory):
    """What builds a LlamaIndex retriever from nodes, as a memory: over vectors, keywords, a property graph.

    A turn is a ``TextNode`` whose text is "speaker: text" and whose ``id_`` is the turn's, with ``id``, ``session``,
    ``speaker`` and ``time`` in its metadata, none of which is embedded. What comes back without an id is attributed by
    its text.

    :param build: takes the nodes of a scope (a list) and k, gives a ``BaseRetriever``.
    :raises ModelError: when ``llama-index-core`` is not installed.

    >>> from llama_index.core.retrievers import BaseRetriever
    >>> from llama_index.core.schema import NodeWithScore
    >>> from memlab.memories import collect
    >>> from memlab.memories.retrievers import LlamaIndexMemory
    >>> class Latest(BaseRetriever):
    ...     def __init__(self, nodes):
    ...         super().__init__()
    ...         self.nodes = nodes
    ...
    ...     def _retrieve(self, query_bundle):
    ...         return [NodeWithScore(node=node, score=1.0) for node in self.nodes[-2:]]
    >>> import memlab
    >>> data = memlab.sample(turns=200)
    >>> collect(LlamaIndexMemory(lambda nodes, k: Latest(nodes)), data, name="latest").rows["source_ids"].null_count()
    0
    """

    package, extra = "llama-index-core", "llamaindex"

    def _document(self, turn: dict[str, Any]) -> Any:
        from llama_index.core.schema import TextNode

        text = f"{turn['speaker']}: {turn.pop('text')}"
        hidden = list(turn)
        return TextNode(
            id_=turn["id"],
            text=text,
            metadata=turn,
            excluded_embed_metadata_keys=hidden,
            excluded_llm_metadata_keys=hidden,
        )

    def _retrieve(self, retriever: Any, query: str) -> list[tuple[str, float | None, Mapping[str, Any]]]:
        return [(each.node.get_content(), each.score, each.node.metadata) for each in retriever.retrieve(query)]
