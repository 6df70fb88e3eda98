"""Retrievers of LangChain and LlamaIndex stand beside the pipelines: the real packages, their own vector stores."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError
from typing import TYPE_CHECKING, Any

import pytest
from talk import excerpt

import memlab
from memlab.embed import load
from memlab.errors import ModelError
from memlab.memories import collect, retrievers
from memlab.memories.retrievers import LangChainMemory, LlamaIndexMemory

if TYPE_CHECKING:  # both packages take seconds to import, and every process collects this file
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from llama_index.core.embeddings import BaseEmbedding

DATA = excerpt(120, scopes=("nadia", "owen"))
HASHING = load("hashing")


@cache
def hashed() -> Embeddings:
    """memlab's hashing encoder as LangChain's embeddings."""
    from langchain_core.embeddings import Embeddings

    class Hashed(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return HASHING.encode(texts).tolist()

        def embed_query(self, text: str) -> list[float]:
            return HASHING.encode([text], kind="query")[0].tolist()

    return Hashed()


@cache
def hashed_too() -> BaseEmbedding:
    """The same as LlamaIndex's."""
    from llama_index.core.embeddings import BaseEmbedding

    class Hashed(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return HASHING.encode([text])[0].tolist()

        def _get_query_embedding(self, query: str) -> list[float]:
            return HASHING.encode([query], kind="query")[0].tolist()

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    return Hashed()


def langchain(documents: list[Document], k: int) -> BaseRetriever:
    from langchain_core.vectorstores import InMemoryVectorStore

    return InMemoryVectorStore.from_documents(documents, hashed()).as_retriever(search_kwargs={"k": k})


def llamaindex(nodes: list[Any], k: int) -> Any:
    from llama_index.core import VectorStoreIndex

    return VectorStoreIndex(nodes, embed_model=hashed_too()).as_retriever(similarity_top_k=k)


BOTH = pytest.mark.parametrize(
    "make",
    [lambda: LangChainMemory(langchain), lambda: LlamaIndexMemory(llamaindex)],
    ids=["LangChain", "LlamaIndex"],
)


@pytest.mark.slow
@BOTH
def test_their_vector_store_ranks_as_dense_does(make: Any) -> None:
    done = memlab.compare_systems({"dense": "dense", "theirs": make()}, DATA, encoder="hashing")
    assert done.problems.is_empty()
    # Farther down many turns share no word with the question, and ties go as each likes.
    dense, theirs = done.table.select("recall_any@10", "recall_all@10").rows()
    assert theirs == dense
    assert dense[0] > 0
    assert done.table["named"].to_list() == [1.0, 1.0]


@BOTH
def test_later_turns_are_found(make: Any) -> None:
    memory = make()
    turns = DATA.turns.select(id="turn_id", session="session_id", speaker="speaker", time="timestamp", text="text")
    memory.reset("a")
    memory.ingest("a", turns[:5])
    assert len(memory.search("a", ["hello"], 9, [None])) == 5
    memory.ingest("a", turns[5:8])
    rows = memory.search("a", ["hello", turns["text"][7]], 9, [None, None])
    assert len(rows) == 16
    assert rows[8]["source_ids"] == [turns["id"][7]]
    assert rows[8]["time"].startswith("20")
    memory.reset("a")
    assert list(memory.search("a", ["hello"], 9, [None])) == []


def test_texts_without_an_id_are_attributed() -> None:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Reworded(BaseRetriever):
        documents: list[Any]

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(page_content=self.documents[0].page_content)]

    done = collect(LangChainMemory(lambda documents, k: Reworded(documents=documents)), DATA, name="reworded")
    assert done.rows["source_ids"].null_count() == done.rows.height > 0


def test_another_way_of_building_is_another_memory(tmp_path: Any) -> None:
    first = collect(LangChainMemory(langchain), DATA, name="one", k=3, folder=tmp_path)

    def fewer(documents: list[Document], k: int) -> BaseRetriever:
        return langchain(documents[:1], k)

    second = collect(LangChainMemory(fewer), DATA, name="one", k=3, folder=tmp_path)
    assert second.rows.height < first.rows.height
    assert "langchain-core" in first.provenance["memory"]["settings"]


@pytest.mark.parametrize("kind", [LangChainMemory, LlamaIndexMemory])
def test_without_the_package_the_install_is_named(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(retrievers, "version", missing)
    with pytest.raises(ModelError, match=rf'pip install "memlab\[{kind.extra}\]"'):
        kind(lambda documents, k: None)
