"""What memlab itself brings to the comparison: pipelines as memories, rankings in files, encoders for others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.embed import Encoder, load
from memlab.errors import DataError
from memlab.memories.collecting import (
    PROBLEMS_SCHEMA,
    RETURNED_SCHEMA,
    ReturnedTexts,
    known_turns,
    problem_row,
)
from memlab.memories.memory import TURNS
from memlab.memories.returned_rows import KnownTurn, list_returned_rows, select_usable_rows
from memlab.pipelines import Pipeline, pipeline
from memlab.records import Dataset, Run, decode_id_part
from memlab.retrieve import DEFAULT, Bench
from memlab.sessions import sessions_of
from memlab.terminal import shorten_line


class Embeddings:
    """An encoder with the methods that LangChain (``embed_documents``, ``embed_query``) and mem0 (``embed``) call.

    With it a memory from outside is compared on the same vectors as memlab's pipelines. Vectors of
    documents are kept, so that a memory that adds turn by turn does not wait for what another has
    encoded at once.

    :param encoder: of documents; the one of a bench reads what the store holds already.
    :param queries: of queries, where it is another: one without a store, where the time of a search
        is measured.

    >>> import memlab
    >>> from memlab.memories import Embeddings
    >>> vectors = Embeddings(memlab.embed.load("hashing:64"))
    >>> len(vectors.embed_documents(["tea", "coffee"])), len(vectors.embed_query("tea?"))
    (2, 64)
    """

    def __init__(self, encoder: Encoder, *, queries: Encoder | None = None) -> None:
        self.encoder, self.queries, self.dim = encoder, queries or encoder, encoder.dim
        self._kept = dict[str, np.ndarray]()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Encode texts that are searched for."""
        if new := [text for text in dict.fromkeys(texts) if text not in self._kept]:
            self._kept.update(zip(new, self.encoder.encode(new, progress=False), strict=True))
        return [self._kept[text].tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Encode a question."""
        vector: list[float] = self.queries.encode([text], kind="query", progress=False)[0].tolist()
        return vector

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Encode a text for mem0, which says whether it searches, adds or updates."""
        return (
            self.embed_query(text) if memory_action == "search" else self.embed_documents([text])[0]
        )

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        """Encode several texts for mem0."""
        return [self.embed(text, memory_action) for text in texts]


def read_ranking(path: str | Path, data: Dataset, *, k: int = 50) -> ReturnedTexts:
    """Read what a system returned for the questions of a dataset, elsewhere.

    By the end of the name: ``.json`` holds ``{query_id: [turn ids]}``, best first, or
    ``{query_id: {turn id: score}}``; ``.jsonl`` one ``{"query_id", "text"}`` a line, best first,
    with ``score``, ``source_ids`` and ``time`` where there are any. A message of a chat log may be
    called by its own id. A TREC run is read by :func:`memlab.evaluate.read_run` and comes here
    through :func:`run_to_returned_texts`. What cannot be used of it is left out, with a line in
    ``problems``.

    :raises DataError: for a file that is none of these, and one of which nothing can be used: names
        three of its ids.
    """
    place, odd = Path(path), list[str]()
    asked: dict[str, list[Any]] = {}
    try:
        text = place.read_text(encoding="utf-8")
        if place.suffix == ".jsonl":
            for number, line in enumerate(text.split("\n"), 1):
                try:
                    row = json.loads(line or "null")
                    asked.setdefault(row["query_id"] + "", []).append(row)
                except (ValueError, RecursionError, TypeError, KeyError):
                    odd += (
                        [f"line {number}: no JSON with query_id and text, left out"]
                        if line.strip()
                        else []
                    )
        else:
            for query, ids in json.loads(text).items():
                ranked = (
                    ids.items()
                    if isinstance(ids, dict)
                    else ((turn, -at) for at, turn in enumerate(ids))
                )
                ordered = sorted(ranked, key=lambda pair: -pair[1])
                asked[query] = [{"source_ids": turn, "score": score} for turn, score in ordered]
    except OSError as error:
        raise DataError(f"{place}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError, AttributeError, TypeError) as error:
        raise DataError(
            f"{place}: {shorten_line(error)}; expected JSON, {{query_id: [ids of turns, best first]}}, or in .jsonl a "
            "line of JSON with query_id and text for each text"
        ) from None
    return _make_returned_texts(place.stem, asked, odd, data, {"file": place.name}, k=k)


def run_to_returned_texts(run: Run, data: Dataset, name: str) -> ReturnedTexts:
    """Read a ranking of turns as texts that name their turn, like :func:`read_ranking`."""
    asked: dict[str, list[Any]] = {}
    for query, turn, score in run.frame.select("query_id", "doc_id", "score").iter_rows():
        asked.setdefault(query, []).append({"source_ids": turn, "score": score})
    return _make_returned_texts(name, asked, [], data, run.provenance, k=max(1, run.frame.height))


def _make_returned_texts(
    name: str,
    asked: Mapping[str, list[Any]],
    odd: list[str],
    data: Dataset,
    provenance: Mapping[str, Any],
    *,
    k: int,
) -> ReturnedTexts:
    """Take what is of the dataset's questions and of the turns of their scopes.

    :param odd: what was wrong so far.
    """
    scopes = dict(data.questions.select("query_id", "scope").iter_rows())
    turns, known = known_turns(data.turns), dict[str, dict[str, KnownTurn]]()
    for scope, ids in data.turns.group_by("scope").agg("turn_id").iter_rows():
        named = {
            decode_id_part(turn.removeprefix(f"{scope}/")): turn for turn in ids
        }  # as the chat log names messages
        known[scope] = {
            name: turns[turn] for name, turn in (named | {turn: turn for turn in ids}).items()
        }
    if strange := [query for query in asked if query not in scopes]:
        shown = ", ".join(repr(shorten_line(query, 60)) for query in strange[:3])
        odd = [
            *odd,
            f"{len(strange):,} of {len(asked):,} questions are not the dataset's ({shown}), left out",
        ]
    problems, rows = [problem_row(name, "", "", line) for line in odd], []
    for query in (each for each in asked if each in scopes):
        scope, given = scopes[query], list_returned_rows(asked[query][:k], k)
        read, lines = select_usable_rows(given, known.get(scope, {}), k)
        rows += [(query, *row) for row in read]
        problems += [problem_row(name, scope, query, line) for line in lines]
    if problems and not rows:
        example = f"its questions look like {next(iter(scopes), None)!r}, its turns like {next(iter(turns), None)!r}"
        raise DataError(f"nothing is of {data.name!r}: {problems[0][2]}; {example}")
    frame = pl.DataFrame(rows, schema=RETURNED_SCHEMA, orient="row")
    return ReturnedTexts(
        name,
        frame,
        problems=pl.DataFrame(problems, PROBLEMS_SCHEMA, orient="row"),
        provenance=provenance,
    )


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

    def __init__(
        self, stages: str | Pipeline = DEFAULT, *, encoder: Encoder | str | None = "settings"
    ) -> None:
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
        bench = self._benches[scope].with_queries(
            pl.DataFrame(asked, schema_overrides={"timestamp": TURNS["time"]})
        )
        texts = bench.turns.select(
            doc_id="turn_id",
            text=pl.Series(bench.documents("turn").texts, dtype=pl.String),
            time=pl.col("timestamp").dt.to_string("iso:strict"),
        )
        ranked = (
            self.pipeline.run(bench)
            .top(k)
            .frame.join(texts, on="doc_id", how="left", maintain_order="left")
        )
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
    turns = placed.sort(
        pl.col("session_id").cum_count().min().over("session_id"), maintain_order=True
    )
    return Dataset(scope, "memory", turns, sessions_of(turns))
