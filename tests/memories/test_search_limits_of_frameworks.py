"""Every memory is given k in its own way, or a line says how many rows it gave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from memory_server import serving
from talk import excerpt

from memlab.memories import collect, list_returned_rows, memory
from memlab.records import Dataset

TEXTS = [f"note {number}" for number in range(60)]
DOCUMENTS = [Document(text) for text in TEXTS]


@pytest.fixture(scope="module")
def vectors() -> InMemoryVectorStore:
    return InMemoryVectorStore.from_documents(DOCUMENTS, DeterministicFakeEmbedding(size=16))


def rows_and_lines(system: Any, data: Dataset, k: int) -> tuple[int, list[str]]:
    """Give the rows of each question, which all have as many, and the problems."""
    done = collect(system, data, name="mine", k=k)
    counts = done.rows["query_id"].value_counts()
    assert counts.height == data.questions.height
    assert counts["count"].n_unique() == 1
    return counts["count"][0], done.problems["problem"].to_list()


def test_a_retriever_of_a_vector_store_is_given_k(
    data: Dataset, vectors: InMemoryVectorStore
) -> None:
    plain = vectors.as_retriever()
    diverse = vectors.as_retriever(search_type="mmr", search_kwargs={"k": 3})
    for ready in (plain, plain.with_config(tags=["mine"]), plain.invoke, diverse):
        assert rows_and_lines(ready, data, 20) == (20, [])
    assert len(plain.invoke("who?")) == 4, "its own setting stays"
    long = excerpt(120, scopes=["owen"])
    assert long.turns.height > 50
    few = rows_and_lines(diverse, long, 50)
    assert few == (20, ["mine: gave at most 20 rows of 50"]), "MMR chooses among fetch_k"
    wide = vectors.as_retriever(search_type="mmr", search_kwargs={"fetch_k": 50})
    assert rows_and_lines(wide, long, 50) == (50, [])


class Swallows(BaseRetriever):
    """As BM25Retriever: the number stands in a field, and no keyword arrives."""

    k: int = 4

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return DOCUMENTS[: self.k]


class Refuses(BaseRetriever):
    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, top_n: int = 4
    ) -> list[Document]:
        return DOCUMENTS[:top_n]


class Obeys(BaseRetriever):
    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, **options: Any
    ) -> list[Document]:
        return DOCUMENTS[: options.get("k", 4)]


class Fails(BaseRetriever):
    def _get_relevant_documents(
        self, query: str, *, run_manager: Any, **options: Any
    ) -> list[Document]:
        raise TypeError("a list has no words")


def test_a_retriever_that_takes_no_k_is_named(data: Dataset) -> None:
    few = (4, ["mine: gave at most 4 rows of 20"])
    assert rows_and_lines(Swallows(), data, 20) == few
    assert rows_and_lines(Refuses(), data, 20) == few
    assert rows_and_lines(Obeys(), data, 20) == (20, [])
    assert rows_and_lines(Swallows(), data, 4) == (4, [])
    failed = collect(Fails(), data, name="mine").problems["problem"]
    assert failed.str.contains("a list has no words").all()


def first_four(turns: pl.DataFrame, query: str) -> pl.Series:
    return turns["text"].head(4)


class FirstFour:
    def add(self, text: str, user_id: str) -> None:
        self.texts = [*getattr(self, "texts", []), text]

    def search(self, query: str, user_id: str) -> list[str]:
        return self.texts[:4]


def test_every_memory_of_short_lists_is_named_once(data: Dataset, tmp_path: Path) -> None:
    few = (4, ["mine: gave at most 4 rows of 20"])
    for system in (first_four, FirstFour, FirstFour()):
        assert rows_and_lines(system, data, 20) == few
    with serving(first_four) as server:
        assert rows_and_lines(server.url, data, 20) == few
    for _ in range(2):  # the second time from the folder
        done = collect(first_four, data, name="mine", k=20, folder=tmp_path)
        assert done.problems["problem"].to_list() == few[1]
        assert done.failed == []


def test_one_full_list_or_no_more_turns_is_enough(data: Dataset) -> None:
    def mostly(turns: pl.DataFrame, query: str, k: int) -> pl.Series:
        return turns["text"].head(5 if "cat" in query else 1)

    def everything(turns: pl.DataFrame, query: str) -> pl.Series:
        return turns["text"]

    assert collect(mostly, data, name="mine", k=5).problems.is_empty()
    assert collect(mostly, data, name="mine", k=6).problems.height == 1
    assert collect(everything, data, name="mine", k=20).problems.is_empty(), "six turns are all"


def test_pairs_of_a_document_and_its_score_are_read(vectors: InMemoryVectorStore) -> None:
    similar = vectors.similarity_search_with_score("who?", 3)
    read = list_returned_rows(similar, 3)
    assert [row["text"] for row in read] == [found.page_content for found, _ in similar]
    assert [row["score"] for row in read] == [score for _, score in similar]

    def scores(*given: Any) -> list[Any]:
        pairs = [(document, score) for document, score in zip(DOCUMENTS, given, strict=False)]
        rows = list_returned_rows(pairs, 9)
        assert [row["text"] for row in rows] == TEXTS[: len(given)], "the order stays"
        return [row["score"] for row in rows]

    assert scores(0.2, 0.5, 0.5, 1.3) == [-0.2, -0.5, -0.5, -1.3], "distances rise"
    assert scores(np.float32(0.75), np.float32(0.5)) == [0.75, 0.5]
    assert scores(0.5, 0.9, 0.1) == [0.5, 0.9, 0.1], "in no order: as given"
    assert scores(0.5, 0.5) == [0.5, 0.5]
    assert scores(0.5) == [0.5], "one has no order"
    assert scores(0.5, None) == [0.5, None]
    assert list_returned_rows([("a text", 0.5)], 1)[0]["text"] == "a text"
    assert list_returned_rows([["a text", 0.5]], 1)[0]["score"] == 0.5, "as JSON has it"
    for odd in (("one", "two"), ("one", 0.5, 1), ("one",), (0.5, "one")):
        assert "tuple is no row" in list_returned_rows([odd], 1)[0]["problem"]
    mixed = list_returned_rows([("a", 0.1), {"text": "b", "score": 0.2}], 2)
    assert [row["score"] for row in mixed] == [0.1, 0.2], "no list of pairs"


@pytest.mark.slow
def test_a_retriever_of_llamaindex_is_given_k_for_the_call(data: Dataset) -> None:
    from llama_index.core import MockEmbedding, SummaryIndex, VectorStoreIndex
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.schema import TextNode

    nodes = [TextNode(text=text) for text in TEXTS]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))
    plain = index.as_retriever()
    for ready in (plain, plain.retrieve, index.as_retriever(vector_store_query_mode="mmr")):
        assert rows_and_lines(ready, data, 20) == (20, [])
    assert plain.similarity_top_k == 2
    assert rows_and_lines(SummaryIndex(nodes).as_retriever(), data, 20)[0] == 20
    fused = QueryFusionRetriever([plain], num_queries=1, llm=MockLLM())
    few = (2, ["mine: gave at most 2 rows of 20"])
    assert rows_and_lines(fused, data, 20) == few, "those that it asks keep their own"
    assert fused.similarity_top_k == 2


def unit(text: str) -> list[float]:
    """Give a vector whose cosine with that of a question is as its text says: ``cosine .05``."""
    cosine = float(text.rpartition(" ")[2]) if text.startswith("cosine") else 1.0
    return [cosine, float(np.sqrt(1 - cosine**2))]


class Cosines:
    """An embedder as mem0 calls one."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return unit(text)

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [unit(text) for text in texts]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Payload indexes have no effect")
def test_mem0_is_given_k_and_leaves_out_no_low_similarity(
    data: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    import mem0
    from qdrant_client import QdrantClient

    def filled(kind: type[Any]) -> Any:
        place = {"client": QdrantClient(":memory:"), "embedding_model_dims": 2}
        unused = {"provider": "openai", "config": {"api_key": "none"}}
        made = kind.from_config(
            {
                "embedder": unused,
                "llm": unused,
                "vector_store": {"provider": "qdrant", "config": place},
                "history_db_path": ":memory:",
            }
        )
        made.embedding_model = Cosines()
        for number in range(30):
            cosine = 0.05 if number < 10 else 0.2 + number / 100
            made.add(f"cosine {cosine}", user_id="ann", infer=False)
        return made

    class Passes(mem0.Memory):
        def search(self, query: str, **options: Any) -> Any:
            return super().search(query, **options)

    class OwnThreshold(mem0.Memory):
        def search(self, query: str, *, top_k: int, filters: dict[str, Any]) -> Any:
            return super().search(query, top_k=top_k, filters=filters)

    class OwnNumber(mem0.Memory):
        def search(self, query: str, *, filters: dict[str, Any], threshold: float) -> Any:
            return super().search(query, filters=filters, threshold=threshold)

    def given(kind: type[Any]) -> int:
        found = memory(filled(kind)).search("ann", "who?", 30, None)
        return len(list_returned_rows(found, 30))

    assert given(mem0.Memory) == 30
    assert given(Passes) == 30
    assert given(OwnThreshold) == 20, "ten have a cosine of .05"
    assert given(OwnNumber) == 20, "the default of top_k"
    assert memory(filled(Passes)).notes == []
    whole = filled(mem0.Memory).search("who?", filters={"user_id": "ann"}, limit=30, k=30)
    assert len(whole["results"]) == 20, "limit and k are swallowed"

    class Borrows:
        def __init__(self) -> None:
            self.system = filled(mem0.Memory)
            self.search = self.system.search

    found = memory(Borrows()).search("ann", "who?", 30, None)
    assert len(list_returned_rows(found, 30)) == 30

    one = data.take(["ann"])
    for kind, line in (
        (OwnThreshold, "search takes no threshold: mem0's own leaves out what is less similar"),
        (OwnNumber, "search takes neither top_k nor limit: mem0's own number of rows holds"),
    ):
        problems = collect(filled(kind), one, name="mem0", k=5).problems["problem"].to_list()
        assert problems.count(f"mem0: {line}") == 1
