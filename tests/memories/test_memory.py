"""Whatever can be searched becomes a memory, or one line says why not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from talk import write

import memlab
from memlab.embed import load
from memlab.errors import DataError
from memlab.memories import Embeddings, collect, list_returned_rows, memory
from memlab.records import Dataset


def shared(query: str, texts: list[str]) -> list[int]:
    words = set(query.lower().split())
    return sorted(range(len(texts)), key=lambda n: -len(words & set(texts[n].lower().split())))


def by_turns(turns: pl.DataFrame, query: str, k: int) -> pl.DataFrame:
    return turns[shared(query, turns["text"].to_list())[:k]].select(
        "text", source_ids=pl.concat_list("id")
    )


def by_index(query: str, k: int) -> list[dict[str, Any]]:
    """Searches an index of its own, and names turns as the dataset does."""
    texts = {
        "ann/1.1": "My sister Ida adopted a grey cat named Muri.",
        "bo/1.1": "I started to learn the cello",
    }
    who = "bo" if "cello" in query or "Sam" in query else "ann"
    return [
        {"text": text, "source_ids": [turn]} for turn, text in texts.items() if turn.startswith(who)
    ][:k]


class Mem0Like:
    """mem0's shape: one object for all users."""

    def __init__(self) -> None:
        self.kept: dict[str, list[dict[str, Any]]] = {}

    def add(self, messages: list[dict[str, str]], *, user_id: str, metadata: Any = None) -> None:
        for message in messages:
            self.kept.setdefault(user_id, []).append(
                {"memory": message["content"], "metadata": metadata}
            )

    def search(self, query: str, *, user_id: str, limit: int = 9, **more: Any) -> dict[str, Any]:
        own = self.kept[user_id]
        return {
            "results": [own[n] for n in shared(query, [each["memory"] for each in own])[:limit]]
        }


class OfOne:
    """Knows nothing of scopes: an object is made for each."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, fact: str) -> None:
        self.texts.append(fact)

    def search(self, question: str) -> list[str]:
        return [self.texts[n] for n in shared(question, self.texts)]


class FourVerbs:
    def initialize(self, user_id: str) -> None:
        self.user, self.turns = user_id, pl.DataFrame()

    def reset(self) -> None:
        self.turns = pl.DataFrame()

    def ingest(self, turns: pl.DataFrame) -> None:
        self.turns = turns

    def retrieve(self, query: str, k: int, user_id: str, query_timestamp: Any) -> pl.DataFrame:
        assert user_id == self.user
        assert query_timestamp.year == 2024
        return by_turns(self.turns, query, k)


class Batches:
    """Takes several queries at a time."""

    def reset(self, scope: str) -> None: ...

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        self.turns = turns

    def wait(self) -> None:
        self.waited = True

    def search(
        self, scope: str, queries: list[str], k: int, now: list[Any]
    ) -> list[dict[str, Any]]:
        assert self.waited
        assert len(queries) == len(now) == 1
        return [row | {"query": 0} for row in by_turns(self.turns, queries[0], k).to_dicts()]


def test_every_shape_finds_the_same(data: Dataset) -> None:
    shapes = [by_turns, Mem0Like, Mem0Like(), OfOne, FourVerbs, Batches(), by_index]
    done = memlab.compare({str(n): shape for n, shape in enumerate(shapes)}, data, encoder=None)
    assert done.problems["problem"].to_list() == ["6: gave at most 1 row of 50"], "by_index"
    first = done.returned.filter(pl.col("query_id").str.ends_with("q0"), rank=1)
    found = first.select("query_id", pl.col("turn_ids").list.first()).rows()
    assert found == [("ann/q0", "ann/1.1"), ("bo/q0", "bo/1.1")] * len(shapes)


def test_only_searching_is_enough_and_nothing_that_forgets_every_scope_is_called(
    data: Dataset,
) -> None:
    class Alone:
        def search(self, query: str) -> list[str]:
            return ["a fact"]

    for alone in (Alone(), Alone):
        assert (
            collect(alone, data, name="alone").rows["text"].to_list()
            == ["a fact"] * data.questions.height
        )

    class Careful(Mem0Like):
        def reset(self) -> None:
            raise AssertionError

        delete_all = reset

    memory(Careful()).reset("ann")

    class Forgets(Mem0Like):
        def delete_all(self, user_id: str) -> None:
            self.kept.pop(user_id, None)

    once, again = (collect(shared_by_both, data, name="mem0") for shared_by_both in [Forgets()] * 2)
    assert again.rows.equals(once.rows)
    assert again.problems.is_empty()


class Mixes:
    def add(self, text: str) -> None: ...

    def search(self, query: str) -> list[str]:
        return [query]


class NeedsKey(Mixes):
    def __init__(self, key: str) -> None: ...


@pytest.mark.parametrize(
    ("system", "word"),
    [
        (7, "no search"),
        (NeedsKey, "key"),
        (lambda query, alpha, beta: [], "alpha, beta"),
        (Mixes(), "give the class"),
        ("nothing", "names no memory"),
        ("broken_memory:search", "SystemExit"),
        ("no_such_module:search", "cannot be imported"),
        ("http://user:word@host", "no address"),
        ("http://host:99999", "no address"),
        ("http://host/\n", "no address"),
    ],
)
def test_what_is_none_is_refused(
    system: Any, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "broken_memory.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(DataError, match=word):
        memory(system)


@pytest.mark.slow
def test_the_current_folder_is_read_only_for_what_is_named(data: Dataset, tmp_path: Path) -> None:
    write(tmp_path / "talk.jsonl", data)
    (tmp_path / "scipy.py").write_text("raise SystemExit('scipy of the folder was run')\n")
    (tmp_path / "mine_here.py").write_text("import os, scipy\nos._exit(7)\n")
    arguments = ("compare", "talk.jsonl", "--system", "mine_here:search", "--encoder", "hashing")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    # As the installed command starts: without the current folder.
    start = "import sys; sys.path.remove(''); from memlab.cli import main; main()"
    command = (sys.executable, "-c", start, *arguments)
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 7, done.stderr


@pytest.mark.slow
def test_retrievers_of_langchain_and_llamaindex(data: Dataset) -> None:
    from langchain_core.documents import Document
    from langchain_core.vectorstores import InMemoryVectorStore
    from llama_index.core import VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.schema import TextNode

    lent: Any = Embeddings(load("hashing"))

    class Hashed(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return lent.embed(text, "add")

        def _get_query_embedding(self, query: str) -> list[float]:
            return lent.embed_query(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return lent.embed_query(query)

    query, turns = "a cat called Muri", data.turns.select("turn_id", "text").rows()
    scores = np.array(lent.embed_documents([text for _, text in turns])) @ lent.embed_query(query)
    expected = [turns[i] for i in np.argsort(-scores)[:2]]
    documents = [Document(text, id=turn) for turn, text in turns]
    nodes = [
        TextNode(text=text, metadata={"id": turn}, excluded_embed_metadata_keys=["id"])
        for turn, text in turns
    ]
    chain = InMemoryVectorStore.from_documents(documents, lent).as_retriever()
    index = VectorStoreIndex(nodes, embed_model=Hashed()).as_retriever()
    for ready in (chain, index):
        rows = list_returned_rows(memory(ready).search("ann", query, 9, None), 9)
        assert [(row["id"], row["text"]) for row in rows[:2]] == expected


def test_a_class_of_a_module_that_nobody_imported_is_a_memory_too(data: Dataset) -> None:
    space: dict[str, Any] = {"__name__": "page"}
    code = "class Given:\n    def add(self, text):\n        self.text = text\n"
    exec(f"{code}    def search(self, query):\n        return [self.text]\n", space)
    given = memlab.compare({"given": space["Given"]}, data, encoder=None)
    assert given.systems["failed scopes"].item() == 0
