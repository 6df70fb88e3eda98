"""mem0 as a memory; needs ``pip install "memlab[mem0]"``."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from typing import Any

import polars as pl

from memlab.embed import Encoder, load
from memlab.embed.base import Kind
from memlab.errors import ModelError
from memlab.memories.contract import Rows


class Mem0Memory:
    """mem0 as a memory: each turn, or what its language model makes of a session, added for the scope as its user.

    By default it runs in this process: its Qdrant in memory, an encoder of memlab's, no language model. Its telemetry
    is off where mem0 has not been imported before; its keyword search works where its own extras are installed.

    :param settings: what ``mem0.Memory.from_config`` takes, over these defaults; with an ``embedder``, that is asked.
    :param encoder: of the default embedder.
    :param infer: let its ``llm`` write the memories, session by session. They name no turns, and are attributed by
        their text.
    :raises ModelError: when mem0 is not installed, or ``infer`` has no ``llm``.

    >>> import memlab
    >>> from memlab.memories import collect
    >>> from memlab.memories.mem0 import Mem0Memory
    >>> data = memlab.sample(turns=60)
    >>> done = collect(Mem0Memory(encoder="hashing"), data, name="mem0", k=3)
    >>> done.problems.height
    0
    """

    def __init__(
        self, settings: Mapping[str, Any] | None = None, *, encoder: Encoder | str = "minilm", infer: bool = False
    ) -> None:
        own = dict(settings or {})
        if infer and "llm" not in own:
            raise ModelError("infer=True needs a language model; name it in the settings: {'llm': {'provider': …}}")
        os.environ.setdefault("MEM0_TELEMETRY", "False")
        try:
            import mem0
            from qdrant_client import QdrantClient
        except ImportError as error:
            raise ModelError('mem0 is not installed; run: pip install "memlab[mem0]"') from error
        logging.getLogger("mem0").setLevel(logging.ERROR)
        model = load(encoder) if isinstance(encoder, str) else encoder
        vectors = {"client": QdrantClient(":memory:"), "embedding_model_dims": model.dim}
        unused = {"provider": "openai", "config": {"api_key": "none"}}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of payload indexes, which a local Qdrant has not
            self._system = mem0.Memory.from_config(
                {
                    "vector_store": {"provider": "qdrant", "config": vectors},
                    "embedder": unused,
                    "llm": unused,
                    "history_db_path": ":memory:",
                    **own,
                }
            )
        self._embedder = None if "embedder" in own else _Embedder(model)
        if self._embedder is not None:
            self._system.embedding_model = self._embedder
        self._infer = infer
        self.settings = {
            "mem0ai": version("mem0ai"),
            "infer": infer,
            "encoder": None if self._embedder is None else model.identity.describe(),
            **{part: about.get("provider") for part, about in own.items() if isinstance(about, Mapping)},
        }

    def reset(self, scope: str) -> None:
        self._system.delete_all(user_id=scope)

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        rows = turns.with_columns(pl.col("time").dt.to_string("iso:strict"))
        if self._infer:
            for session in rows.partition_by("session", maintain_order=True):
                messages = [_message(row) for row in session.iter_rows(named=True)]
                self._system.add(messages, user_id=scope, metadata={"when": session["time"][0]})
            return
        messages = [_message(row) for row in rows.iter_rows(named=True)]
        if self._embedder is not None:
            self._embedder.prepare([each["content"] for each in messages])
        for row, message in zip(rows.iter_rows(named=True), messages, strict=True):
            about = {"turn": row["id"], "session": row["session"], "when": row["time"]}
            self._system.add([message], user_id=scope, metadata=about, infer=False)

    def wait(self) -> None:
        """What was added can be found at once."""

    def search(self, scope: str, queries: Sequence[str], k: int, now: Sequence[datetime | None]) -> Rows:
        rows: list[dict[str, Any]] = []
        for number, query in enumerate(queries):
            for result in self._system.search(query, filters={"user_id": scope}, top_k=k)["results"]:
                about = result.get("metadata") or {}
                row = {"query": number, "text": result["memory"], "score": result["score"], "time": about.get("when")}
                rows.append(row | ({"source_ids": [about["turn"]]} if "turn" in about else {}))
        return rows


def _message(row: dict[str, Any]) -> dict[str, str]:
    return {"role": "user", "content": f"{row['speaker']}: {row['text']}"}


class _Embedder:
    """memlab's encoder as mem0's, which asks for one text at a time; a batch is encoded before."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._prepared: dict[str, list[float]] = {}

    def prepare(self, texts: list[str]) -> None:
        self._prepared = dict(zip(texts, self._encoder.encode(texts, progress=False).tolist(), strict=True))

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        kind: Kind = "query" if memory_action == "search" else "document"
        return self._prepared.get(text) or self._encoder.encode([text], kind=kind, progress=False)[0].tolist()

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text, memory_action) for text in texts]
