"""Lines that may enter the context of a question: messages, summaries, facts and rollups."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from memlab.embed.turn_texts import turn_text_expr
from memlab.errors import DataError
from memlab.records import TIMESTAMP, Run
from memlab.retrieve import Bench
from memlab.text.dates import annotate_dates, format_day

LINE_SCHEMA = pl.Schema({
    "query_id": pl.String(), "source": pl.String(), "ref": pl.String(), "head": pl.String(), "text": pl.String(),
    "turns": pl.List(pl.String()), "at": TIMESTAMP, "confidence": pl.Float64(),
})  # fmt: skip
"""The columns of a line: the question; its source, a key of :data:`memlab.conversation.contexts.TITLES`; id of the
turn, session, fact or node; the heading that it stands under; the line itself; the turns that it
stands on; when it was said; how sure it is."""

NODE_KINDS = ("cluster", "week", "month")
"""Kinds of nodes of rollups that are read."""

RELEVANT, RECENT, FACTS, SUMMARIES, ROLLUPS = 100, 6, 20, 3, 2
"""The most lines of each source for a question; of summaries and rollups the most documents."""


def gather_lines(
    run: Run,
    bench: Bench,
    *,
    recent: pl.DataFrame | None = None,
    summaries: pl.DataFrame | None = None,
    facts: pl.DataFrame | None = None,
    rollups: pl.DataFrame | None = None,
    dates: bool = True,
) -> pl.DataFrame:
    """Gather the lines that may enter the context of each question, the most relevant first.

    :param run: a ranking of turns.
    :param recent: ``query_id`` and rows of :class:`memlab.records.Turn`: the conversation in which
        it is asked.
    :param summaries: rows of :class:`memlab.records.Summary`.
    :param facts: resolved facts with their confidence at the time of reading.
    :param rollups: rows of :class:`memlab.records.Node`; those over several sessions are read.
    :param dates: write the date behind words that only mean it: "yesterday (7 May 2023)".
    :returns: rows of :data:`LINE_SCHEMA`.
    :raises DataError: for a ranking of sessions, or with summaries, facts or rollups when the bench
        has no encoder.

    >>> from memlab import conversation, datasets, retrieve
    >>> data = datasets.load("data/sample/sample.jsonl")
    >>> bench = retrieve.Bench.of(data, encoder=None)
    >>> lines = conversation.gather_lines(retrieve.bm25(bench, k=3), bench)
    >>> lines["source"].unique().to_list(), lines["at"].null_count()
    (['relevant'], 0)
    """
    if run.level != "turn":
        raise DataError(
            "a context quotes messages, and this run ranks sessions; give a run of turns"
        )
    retrieved = run.top(RELEVANT).frame.select("query_id", turn_id="doc_id")
    parts = [
        turn_lines(
            retrieved.join(bench.turns, on="turn_id", maintain_order="left"),
            "relevant",
            dates=dates,
        )
    ]
    if recent is not None:
        last = recent.reverse().group_by("query_id", maintain_order=True).head(RECENT)
        parts.append(turn_lines(last, "recent", dates=False))
    if summaries is not None:
        parts.append(
            _summary_lines(bench, summaries.rename({"session_id": "ref"}), "summaries", SUMMARIES)
        )
    if rollups is not None:
        over = rollups.filter(pl.col("kind").is_in(NODE_KINDS))
        parts.append(_summary_lines(bench, over.rename({"node_id": "ref"}), "rollups", ROLLUPS))
    if facts is not None:
        parts.append(_fact_lines(bench, facts))
    return pl.concat(parts)


def turn_lines(turns: pl.DataFrame, source: str, *, dates: bool) -> pl.DataFrame:
    """Give turns, each with its ``query_id``, as lines of a context: speaker and text, under the day."""
    rows = turns.select(
        "query_id", "turn_id", text=turn_text_expr(), at=pl.col("timestamp").cast(TIMESTAMP)
    )
    pairs = rows.select("text", "at").rows()
    days = ["" if at is None else f"[{format_day(at)}]" for _, at in pairs]
    texts = [annotate_dates(text, at.date()) if dates and at else text for text, at in pairs]
    lines = rows.with_columns(
        text=pl.Series(texts, dtype=pl.String), head=pl.Series(days, dtype=pl.String)
    )
    named = lines.with_columns(
        source=pl.lit(source), ref="turn_id", turns=pl.concat_list("turn_id")
    )
    return named.with_columns(confidence=pl.lit(None)).select(LINE_SCHEMA.names()).cast(LINE_SCHEMA)


def _summary_lines(bench: Bench, rows: pl.DataFrame, source: str, most: int) -> pl.DataFrame:
    """Give the sentences of the summaries most similar to each question, under their days and topics."""
    ranked: list[tuple[Any, ...]] = []
    vectors = bench.query_vectors
    if vectors is None:
        raise DataError(f"{source} are found by similarity: make the bench with an encoder")
    documents = bench.embedder().encode(
        rows["sentences"].list.join(" ").to_list(), kind="document", progress=False
    )
    scopes = rows["scope"].to_numpy()
    for query, scope, vector in zip(
        bench.queries["query_id"], bench.queries["scope"], vectors, strict=True
    ):
        at = np.flatnonzero(scopes == scope)
        for i in at[np.argsort(-(documents[at] @ vector), kind="stable")[:most]]:
            row = rows.row(int(i), named=True)
            days = dict.fromkeys(
                format_day(day) for day in (row["start"], row["end"]) if day is not None
            )
            head = " | ".join(
                filter(None, (" to ".join(days), ", ".join((row["topics"] or [])[:4])))
            )
            for text, turns in zip(row["sentences"], row["evidence"], strict=True):
                ranked.append(
                    (
                        query,
                        source,
                        row["ref"],
                        f"[{head}]" if head else "",
                        text,
                        turns,
                        row["start"],
                        None,
                    )
                )
    return pl.DataFrame(ranked, LINE_SCHEMA, orient="row")


def _fact_lines(bench: Bench, facts: pl.DataFrame) -> pl.DataFrame:
    """Give the facts that rank first for each question as lines."""
    from memlab.knowledge.fact_search import fact_sentences, search_facts

    questions = bench.queries.select("query_id", "scope", "text")
    ranked = search_facts(questions, facts, encoder=bench.embedder(), k=FACTS).select(
        "query_id", "rank", "fact_id"
    )
    rows = ranked.join(facts, on="fact_id", maintain_order="left")
    lines = rows.with_columns(
        ref="fact_id", text=fact_sentences(rows), turns="evidence", at="asserted_at"
    )
    lines = lines.with_columns(source=pl.lit("facts"), head=pl.lit(""))
    return lines.select(LINE_SCHEMA.names()).cast(LINE_SCHEMA)
