"""memlab's own pipelines as a memory, so that they can be served and stand behind the same contract."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from memlab.embed import Encoder, load
from memlab.memories.contract import TURNS, Rows, TurnsByScope
from memlab.pipelines import Pipeline, pipeline
from memlab.records import Dataset
from memlab.retrieve import Bench
from memlab.sessions import sessions_of


class PipelineMemory(TurnsByScope):
    """A pipeline as a memory: turns are kept as they come, and indexed when they are first searched.

    :param stages: a pipeline or its text.
    :param encoder: an encoder or its name; ``None`` for BM25 alone.

    >>> from memlab.memories import PipelineMemory, collect
    >>> import memlab
    >>> data = memlab.sample(turns=200)
    >>> done = collect(PipelineMemory("bm25", encoder=None), data, name="bm25", k=3)
    >>> done.rows["source_ids"].list.len().unique().to_list()
    [1]
    """

    def __init__(self, stages: str | Pipeline = "best", *, encoder: Encoder | str | None = "minilm") -> None:
        super().__init__()
        self.pipeline = pipeline(stages)
        self.encoder = load(encoder) if isinstance(encoder, str) else encoder
        identity = self.encoder.identity.describe() if self.encoder else None
        self.settings = {"pipeline": str(self.pipeline), "encoder": identity}

    def wait(self) -> None:
        for scope, turns in self._turns.items():
            if scope not in self._made and turns.height:
                bench = Bench.of(_dataset(scope, turns), encoder=self.encoder, progress=False)
                bench.documents("turn").embeddings  # noqa: B018  encoded while it waits, not at the first question
                self._made[scope] = bench

    def search(self, scope: str, queries: Sequence[str], k: int, now: Sequence[datetime | None]) -> Rows:
        self.wait()
        if scope not in self._made:
            return []
        asked = pl.DataFrame(
            {"query_id": [str(n) for n in range(len(queries))], "text": list(queries), "timestamp": list(now)},
            schema_overrides={"timestamp": TURNS["time"]},
        )
        bench = self._made[scope].with_queries(asked.with_columns(scope=pl.lit(scope)))
        ranked = self.pipeline.run(bench).top(k).frame
        told = bench.turns.select(
            doc_id="turn_id",
            text=pl.Series(bench.documents("turn").texts, dtype=pl.String),
            time=pl.col("timestamp").dt.to_string("iso:strict"),
        )
        rows = ranked.join(told, on="doc_id", how="left", maintain_order="left")
        query, sources = pl.col("query_id").cast(pl.Int64), pl.concat_list("doc_id")
        return rows.select(query.alias("query"), "text", "score", sources.alias("source_ids"), "time")


def _dataset(scope: str, turns: pl.DataFrame) -> Dataset:
    """Make a dataset of the turns of one scope; the ids are as they came."""
    own = turns.unique("id", keep="last", maintain_order=True).select(
        turn_id="id",
        scope=pl.lit(scope),
        session_id=pl.col("session").fill_null(scope),
        n=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("session"),
        speaker=pl.col("speaker").fill_null(""),
        role=pl.lit("other"),
        text=pl.col("text").fill_null(""),
        caption=pl.lit(None, pl.String),
        timestamp="time",
    )
    together = own.sort(pl.col("session_id").cum_count().min().over("session_id"), maintain_order=True)
    return Dataset(scope, "memory", together, sessions_of(together))
