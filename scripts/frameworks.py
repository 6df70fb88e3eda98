"""Memories of other people, each as a class with ``add`` (one session) and ``search``.

Run by the Python of the framework's own environment, which needs nothing of memlab:
``ENV/bin/python scripts/frameworks.py NAME`` reads requests as JSON lines and answers each with one.
All of them ask the model and the encoder at ``OPENAI_BASE_URL``. Run with: mem0ai 2.2.1, langmem
0.0.30, langchain-core 1.8.3, langgraph 1.2.24, hindsight-api-slim 1.1.0.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import traceback
from datetime import datetime
from importlib.metadata import version
from typing import Any

URL = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8765/v1")
WIDTH = int(os.environ.get("EMBEDDING_WIDTH", "384"))
Turns = list[dict[str, Any]]
"""Of one session: ``id``, ``session``, ``speaker``, ``role``, ``time`` (ISO) and ``text``."""


def messages(turns: Turns) -> list[dict[str, str]]:
    return [{"role": turn["role"], "content": turn["text"]} for turn in turns]


def transcript(turns: Turns) -> str:
    return "\n".join(f"{turn['speaker']}: {turn['text']}" for turn in turns)


class Mem0:
    """mem0ai: one call of the model a session, none to search; its prompt holds today's date."""

    packages = ("mem0ai",)
    infer = True

    def __init__(self) -> None:
        place = os.environ["MEM0_DIR"] = tempfile.mkdtemp()
        os.environ |= {"MEM0_TELEMETRY": "False", "HF_HUB_OFFLINE": "1"}
        from mem0 import Memory

        qdrant = {"path": f"{place}/qdrant", "embedding_model_dims": WIDTH}
        config = {
            "vector_store": {"provider": "qdrant", "config": qdrant},
            "embedder": {"provider": "openai", "config": {"embedding_dims": WIDTH}},
            "history_db_path": f"{place}/history.db",
        }
        self.memory = Memory.from_config(config)

    def add(self, turns: Turns) -> None:
        about = {"session": turns[0]["session"], "time": turns[0]["time"]}
        self.memory.add(messages(turns), user_id="owner", metadata=about, infer=self.infer)

    def search(self, query: str, k: int) -> list[dict[str, Any]]:
        found = self.memory.search(query, filters={"user_id": "owner"}, top_k=k)["results"]
        return [
            {
                "text": row["memory"],
                "score": row["score"],
                "time": row["metadata"]["time"],
                "session": row["metadata"]["session"],
            }
            for row in found
        ]

    def stored(self) -> list[dict[str, str]]:
        rows = self.memory.get_all(filters={"user_id": "owner"}, top_k=100_000)["results"]
        kept = [{"text": row["memory"], "session": row["metadata"]["session"]} for row in rows]
        return sorted(kept, key=lambda row: (int(row["session"].split("-")[1]), row["text"]))


class Mem0Verbatim(Mem0):
    """mem0ai with ``infer=False``: messages are stored as they are, no model is asked."""

    infer = False


class LangMem:
    """langmem's store manager on langgraph's InMemoryStore: one call a session, texts alone."""

    packages = ("langmem",)

    def __init__(self) -> None:
        os.environ["LANGSMITH_TRACING"] = "false"
        from langchain_openai import ChatOpenAI, OpenAIEmbeddings
        from langgraph.store.memory import InMemoryStore
        from langmem import create_memory_store_manager

        embed = OpenAIEmbeddings(model="text-embedding-3-small", check_embedding_ctx_length=False)
        self.store = InMemoryStore(index={"dims": WIDTH, "embed": embed})
        self.memory = create_memory_store_manager(
            ChatOpenAI(model="recorded-large"), namespace=("memories", "owner"), store=self.store
        )

    def add(self, turns: Turns) -> None:
        self.memory.invoke({"messages": messages(turns)})

    def search(self, query: str, k: int) -> list[dict[str, Any]]:
        found = self.memory.search(query=query, limit=k)
        # The values are objects of the schema, although they print as dictionaries.
        return [{"text": row.value.content, "score": row.score} for row in found]

    def stored(self) -> list[str]:
        rows = self.store.search(("memories", "owner"), limit=100_000)
        return sorted(row.value["content"]["content"] for row in rows)


class LangGraphStore:
    """langgraph's InMemoryStore with an index: one item a message, no model."""

    packages = ("langgraph",)

    def __init__(self) -> None:
        from langchain_openai import OpenAIEmbeddings
        from langgraph.store.memory import InMemoryStore

        embed = OpenAIEmbeddings(model="text-embedding-3-small", check_embedding_ctx_length=False)
        self.store = InMemoryStore(index={"dims": WIDTH, "embed": embed})
        self.texts = list[str]()

    def add(self, turns: Turns) -> None:
        for turn in turns:
            self.texts.append(turn["text"])
            value = {"text": turn["text"], "time": turn["time"]}
            self.store.put(("memories", "owner"), turn["id"], value)

    def search(self, query: str, k: int) -> list[dict[str, Any]]:
        found = self.store.search(("memories", "owner"), query=query, limit=k)
        return [
            {
                "text": row.value["text"],
                "time": row.value["time"],
                "score": row.score,
                "id": row.key,
            }
            for row in found
        ]

    def stored(self) -> list[str]:
        return self.texts


class LangChainMMR:
    """LangChain's in-memory vector store, searched by maximal marginal relevance, no model."""

    packages = ("langchain-core",)

    def __init__(self) -> None:
        from langchain_core.vectorstores import InMemoryVectorStore
        from langchain_openai import OpenAIEmbeddings

        embed = OpenAIEmbeddings(model="text-embedding-3-small", check_embedding_ctx_length=False)
        self.store = InMemoryVectorStore(embed)
        self.texts = list[str]()

    def add(self, turns: Turns) -> None:
        texts = [turn["text"] for turn in turns]
        self.texts += texts
        about = [{"id": turn["id"], "time": turn["time"]} for turn in turns]
        self.store.add_texts(texts, about, ids=[turn["id"] for turn in turns])

    def search(self, query: str, k: int) -> list[dict[str, Any]]:
        found = self.store.max_marginal_relevance_search(query, k=k)
        return [{"text": each.page_content, **each.metadata} for each in found]

    def stored(self) -> list[str]:
        return self.texts


class Hindsight:
    """hindsight with its embedded Postgres (not as root): one call a session, observations off."""

    packages = ("hindsight-api-slim",)

    def __init__(self) -> None:
        for name in ("LLM", "EMBEDDINGS_OPENAI"):
            os.environ[f"HINDSIGHT_API_{name}_API_KEY"] = "none"
            os.environ[f"HINDSIGHT_API_{name}_BASE_URL"] = URL
        os.environ |= {
            "HINDSIGHT_API_LLM_PROVIDER": "openai", "HINDSIGHT_API_LLM_MODEL": "gpt-4o-mini",
            "HINDSIGHT_API_EMBEDDINGS_PROVIDER": "openai", "HINDSIGHT_API_RERANKER_PROVIDER": "rrf",
            "HINDSIGHT_API_ENABLE_OBSERVATIONS": "false",
            "HINDSIGHT_API_EMBEDDINGS_OPENAI_DIMENSIONS": str(WIDTH),
        }  # fmt: skip
        from hindsight_api import MemoryEngine, RequestContext

        self.loop = asyncio.new_event_loop()
        self.engine, self.about = MemoryEngine(), {"request_context": RequestContext()}
        self.loop.run_until_complete(self.engine.initialize())
        self.bank = f"owner-{os.getpid()}"

    def add(self, turns: Turns) -> None:
        when = datetime.fromisoformat(turns[0]["time"])
        kept = self.engine.retain_async(
            self.bank, transcript(turns), event_date=when, document_id=turns[0]["session"],
            **self.about,
        )  # fmt: skip
        self.loop.run_until_complete(kept)

    def search(self, query: str, k: int) -> Any:
        asked = self.engine.recall_async(self.bank, query, **self.about)
        found = self.loop.run_until_complete(asked).results
        return [
            {"text": row.text, "time": row.occurred_start, "session": row.document_id}
            for row in found[:k]
        ]

    def stored(self) -> list[str]:
        asked = self.engine.list_memory_units(self.bank, limit=100_000, **self.about)
        return sorted(row["text"] for row in self.loop.run_until_complete(asked)["items"])


SYSTEMS = {
    "mem0": Mem0,
    "mem0-verbatim": Mem0Verbatim,
    "langmem": LangMem,
    "langgraph-store": LangGraphStore,
    "langchain-mmr": LangChainMMR,
    "hindsight": Hindsight,
}


def main(name: str) -> None:
    """Answer requests until the input ends; what libraries print goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    system = SYSTEMS[name]()
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {"id": request["id"]}
        try:
            answer["rows"] = _answer(system, request)
        except Exception as error:  # whatever a framework raises costs its request
            traceback.print_exc()
            answer["error"] = f"{type(error).__name__}: {error}"
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()
    if hasattr(system, "close"):
        system.close()


def _answer(system: Any, request: dict[str, Any]) -> list[Any]:
    if request["do"] == "add":
        system.add(request["turns"])
        return []
    if request["do"] == "search":
        return system.search(request["query"], request["k"])
    if request["do"] == "versions":
        return [f"{name} {version(name)}" for name in system.packages]
    return system.stored()


if __name__ == "__main__":
    main(sys.argv[1])
