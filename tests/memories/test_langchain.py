"""A LangChain retriever stands beside the pipelines: the real package, its own vector store."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

import memlab
from memlab import datasets
from memlab.embed import load
from memlab.errors import ModelError
from memlab.memories import collect
from memlab.memories.langchain import LangChainMemory

DATA = datasets.synthetic.generate(turns=120, seed=0, turns_per_scope=60)


class Hashed(Embeddings):
    """memlab's hashing encoder as LangChain's embeddings."""

    def __init__(self) -> None:
        self.encoder = load("hashing")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.encoder.encode(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.encoder.encode([text], kind="query")[0].tolist()


def in_memory(documents: list[Document], k: int) -> BaseRetriever:
    return InMemoryVectorStore.from_documents(documents, Hashed()).as_retriever(search_kwargs={"k": k})


def test_their_vector_store_ranks_as_dense_does() -> None:
    systems = {"dense": "dense", "langchain": LangChainMemory(in_memory)}
    done = memlab.compare_systems(systems, DATA, encoder="hashing")
    assert done.problems.is_empty()
    # Farther down many turns share no word with the question, and ties go as each likes.
    dense, theirs = done.table.select("recall_any@10", "recall_all@10").rows()
    assert theirs == dense
    assert dense[0] > 0
    assert done.table["named"].to_list() == [1.0, 1.0]


def test_later_turns_are_found() -> None:
    memory = LangChainMemory(in_memory)
    turns = DATA.turns.select(id="turn_id", session="session_id", speaker="speaker", time="timestamp", text="text")
    memory.reset("a")
    memory.ingest("a", turns[:5])
    assert len(list(memory.search("a", ["hello"], 9, [None]))) == 5
    memory.ingest("a", turns[5:8])
    rows: Any = memory.search("a", ["hello", turns["text"][7]], 9, [None, None])
    assert len(rows) == 16
    assert rows[8]["source_ids"] == [turns["id"][7]]
    assert rows[8]["time"].startswith("20")


def test_texts_without_an_id_are_attributed() -> None:
    class Reworded(BaseRetriever):
        documents: list[Document]

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(page_content=self.documents[0].page_content)]

    done = collect(LangChainMemory(lambda documents, k: Reworded(documents=documents)), DATA, name="reworded")
    assert done.rows["source_ids"].null_count() == done.rows.height > 0


def test_without_the_package_the_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core", None)
    with pytest.raises(ModelError, match=r'pip install "memlab\[langchain\]"'):
        LangChainMemory(in_memory)
