"""memlab's own pipelines as a memory, so that they can be served and stand behind the same contract."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memlab.embed import Encoder, load
from memlab.memories.memory import TURNS
from memlab.pipelines import Pipeline, pipeline
from memlab.records import Dataset
from memlab.retrieve import DEFAULT, Bench
from memlab.sessions import sessions_of


class PipelineMemory:
    """A pipeline as a memory: turns are kept as they come, and indexed while somebody waits.

    :param stages: a pipeline or its text.
    :param encoder: an encoder or its name; ``None`` for BM25 alone.

    >>> import polars as pl
    >>> from memlab.memories import TURNS, PipelineMemory
    >>> memory = PipelineMemory("bm25", encoder=None)
    >>> texts = [("1", None, "Ann", None, "I moved to Oslo."), ("2", None, "Bo", None, "Nice weather.")]
    >>> memory.ingest("ann", pl.DataFrame(texts, schema=TURNS, orient="row"))
    >>> memory.search("ann", "Who moved?", 1, None)["source_ids"].to_list()
    [['1']]
    """

    def __init__(self, stages: str | Pipeline = DEFAULT, *, encoder: Encoder | str | None = "settings") -> None:
        self.pipeline = pipeline(stages)
        self.encoder = load(encoder) if isinstance(encoder, str) else encoder
        identity = self.encoder.identity.describe() if self.encoder else None
        self.settings = {"pipeline": str(self.pipeline), "encoder": identity}
        self._turns: dict[str, list[pl.DataFrame]] = {}
        self._benches: dict[str, Bench] = {}

    def reset(self, scope: str) -> None:
        self._turns.pop(scope, None)
        self._benches.pop(scope, None)

    def ingest(self, scope: str, turns: pl.DataFrame) -> None:
        self._turns.setdefault(scope, []).append(turns)
        self._benches.pop(scope, None)

    def wait(self) -> None:
        for scope in self._turns.keys() - self._benches.keys():
            data = _make_scope_dataset(scope, pl.concat(self._turns[scope]))
            self._benches[scope] = bench = Bench.of(data, encoder=self.encoder, progress=False)
            bench.documents("turn").embeddings  # noqa: B018  encoded while it waits, not at the first question

    def search(self, scope: str, query: str, k: int, now: datetime | None) -> pl.DataFrame:
        self.wait()
        if scope not in self._benches:
            return pl.DataFrame(schema={"text": pl.String})
        asked = {"query_id": ["0"], "scope": [scope], "text": [query], "timestamp": [now]}
        bench = self._benches[scope].with_queries(pl.DataFrame(asked, schema_overrides={"timestamp": TURNS["time"]}))
        texts = bench.turns.select(
            doc_id="turn_id",
            text=pl.Series(bench.documents("turn").texts, dtype=pl.String),
            time=pl.col("timestamp").dt.to_string("iso:strict"),
        )
        ranked = self.pipeline.run(bench).top(k).frame.join(texts, on="doc_id", how="left", maintain_order="left")
        return ranked.select("text", "score", "time", source_ids=pl.concat_list("doc_id"))


def _make_scope_dataset(scope: str, turns: pl.DataFrame) -> Dataset:
    """Make a dataset of the turns of one scope, session by session; the ids are as they came."""
    own = turns.unique("id", keep="last", maintain_order=True).select(
        turn_id="id",
        scope=pl.lit(scope),
        session_id=pl.col("session").fill_null(scope),
        speaker=pl.col("speaker").fill_null(""),
        role=pl.lit("other"),
        text="text",
        caption=pl.lit(None, pl.String),
        timestamp="time",
    )
    placed = own.with_columns(n=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("session_id"))
    turns = placed.sort(pl.col("session_id").cum_count().min().over("session_id"), maintain_order=True)
    return Dataset(scope, "memory", turns, sessions_of(turns))
